// What is the least agent of Mastra?
import { Agent, type AgentConfig } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { MockLanguageModelV4 } from "ai/test"
import { z } from "zod"

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) =>
    prompt.length === 1
      ? {
        content: [{ type: "tool-call", toolCallId: "1", toolName: "get_weather", input: '{"city":"Paris","days":3}' }],
        finishReason: { unified: "tool-calls", raw: "tool_calls" },
        usage,
        warnings: []
      }
      : {
        content: [{ type: "text", text: "done" }],
        finishReason: { unified: "stop", raw: "stop" },
        usage,
        warnings: []
      }
})

const weather = createTool({
  id: "get_weather",
  description: "Current weather for a city",
  inputSchema: z.object({ city: z.string(), days: z.int() }),
  execute: async ({ city }) => ({ city, temp: 21 })
})
const agent = new Agent({
  id: "bench",
  name: "bench",
  instructions: "",
  // The type asks for its own wrapper, which it makes from an AI SDK model.
  model: model as AgentConfig["model"],
  tools: { get_weather: weather }
})
console.log((await agent.generate("What is the weather in Paris?")).text)
