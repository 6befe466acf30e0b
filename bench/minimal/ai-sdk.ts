// What is the least agent of the AI SDK?
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { generateText, isStepCount, tool } from "ai"
import { z } from "zod"

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}
const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "bench",
  modelId: "scripted",
  supportedUrls: {},
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
      },
  doStream: () => Promise.reject(new Error("not streamed"))
}

const { text } = await generateText({
  model,
  prompt: "What is the weather in Paris?",
  stopWhen: isStepCount(5),
  tools: {
    get_weather: tool({
      description: "Current weather for a city",
      inputSchema: z.object({ city: z.string(), days: z.int() }),
      execute: ({ city }) => ({ city, temp: 21 })
    })
  }
})
console.log(text)
