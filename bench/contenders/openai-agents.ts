// What does the OpenAI Agents SDK cost? Its runner on a scripted model, tracing off.
import {
  Agent,
  type AgentOutputItem,
  type Model,
  type ModelRequest,
  Runner,
  setTracingDisabled,
  type StreamEvent,
  tool,
  Usage
} from "@openai/agents"
import { z } from "zod"
import * as Work from "../work.ts"

setTracingDisabled(true)

export const contender: Work.Contender = {
  timesOut: ["heeds", "deaf"],
  define: (spec, seen) => {
    const perform = Work.perform(spec, seen)
    const output = (request: ModelRequest): Array<AgentOutputItem> => {
      seen.requests++
      seen.definitions = request.tools.length
      const turn = (request.input.length - 1) / (2 * spec.calls + (spec.deltas > 0 ? 1 : 0))
      const calls = Work.callsOf(spec, turn).map((callId) => ({
        type: "function_call" as const,
        callId,
        name: "get_weather",
        arguments: Work.json,
        status: "completed" as const
      }))
      const text = calls.length === 0 ? Work.answer : Work.deltasOf(spec, turn).join("")
      return text === "" ? calls : [message(text), ...calls]
    }
    const model: Model = {
      getResponse: async (request) => ({ usage: new Usage(), output: output(request) }),
      getStreamedResponse: async function*(request) {
        const items = output(request)
        const turn = items.some((item) => item.type === "function_call") ? 0 : spec.turns
        for (const delta of Work.deltasOf(spec, turn)) yield { type: "output_text_delta", delta }
        yield {
          type: "response_done",
          response: { id: "response", usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, output: items }
        } as StreamEvent // its own items, which it types twice
      }
    }
    const agent = new Agent({
      name: "bench",
      model,
      tools: Work.toolNames(spec.tools).map((name) =>
        tool({
          name,
          description: Work.description,
          parameters: z.object({ city: z.string(), days: z.int() }),
          execute: (input, _context, details) => perform(input, details?.signal),
          ...Work.isTimed(spec) ? { timeoutMs: 10 } : {}
        })
      )
    })
    const runner = new Runner({ tracingDisabled: true })
    const options = { maxTurns: spec.turns + 2 }
    if (spec.deltas === 0) {
      return async () => (await runner.run(agent, Work.question, options)).finalOutput ?? ""
    }
    return async () => {
      const result = await runner.run(agent, Work.question, { ...options, stream: true })
      for await (const event of result) {
        if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") seen.deltas++
      }
      await result.completed
      return result.finalOutput ?? ""
    }
  }
}

const message = (text: string): AgentOutputItem => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text }]
})
