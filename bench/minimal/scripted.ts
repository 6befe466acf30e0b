// What does the scripted model of the AI SDK and of Mastra say? A call, and when it is answered a text.
import type { LanguageModelV4 } from "@ai-sdk/provider"

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}

export const doGenerate: LanguageModelV4["doGenerate"] = async ({ prompt }) =>
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
