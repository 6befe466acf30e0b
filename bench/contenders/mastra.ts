// What does Mastra cost? Its agent on the AI SDK's mock model, telemetry off.
import { Agent, type AgentConfig } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { z } from "zod"
import * as Work from "../work.ts"
import { mockModel } from "./ai-sdk.ts"

export const contender: Work.Contender = {
  timesOut: [],
  define: (spec, seen) => {
    const perform = Work.perform(spec, seen)
    const tools = Object.fromEntries(
      Work.toolNames(spec.tools).map((name) => [
        name,
        createTool({
          id: name,
          description: Work.description,
          inputSchema: z.object({ city: z.string(), days: z.int() }),
          execute: async (input) => perform(input)
        })
      ])
    )
    // The type asks for its own wrapper, which it makes from an AI SDK model.
    const model = mockModel(spec, seen) as AgentConfig["model"]
    const agent = new Agent({ id: "bench", name: "bench", instructions: "", model, tools })
    const options = { maxSteps: spec.turns + 2, toolCallConcurrency: 1_000 }
    if (spec.deltas === 0) return async () => (await agent.generate(Work.question, options)).text
    return async () => {
      const result = await agent.stream(Work.question, options)
      let last = ""
      for await (const delta of result.textStream) {
        last = delta
        if (delta !== Work.answer) seen.deltas++
      }
      return last
    }
  }
}
