// What does the AI SDK cost? generateText and streamText on its own mock model; telemetry is off by default.
import { generateText, isStepCount, type ModelMessage, streamText, tool, type ToolSet } from "ai"
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test"
import { z } from "zod"
import * as Work from "../work.ts"

type Options = Parameters<MockLanguageModelV4["doGenerate"]>[0]
type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>

export const contender: Work.Contender = {
  timesOut: ["heeds", "deaf"],
  define: (spec, seen) => {
    const perform = Work.perform(spec, seen)
    const tools: ToolSet = Object.fromEntries(
      Work.toolNames(spec.tools).map((name) => [
        name,
        tool({
          description: Work.description,
          inputSchema: z.object({ city: z.string(), days: z.int() }),
          execute: (input, { abortSignal }) => perform(input, abortSignal)
        })
      ])
    )
    const options = {
      model: mockModel(spec, seen),
      tools,
      messages: [{ role: "user", content: Work.question }] satisfies Array<ModelMessage>,
      stopWhen: isStepCount(spec.turns + 2),
      ...Work.isTimed(spec) ? { timeout: { toolMs: 10 } } : {}
    }
    if (spec.deltas === 0) return async () => (await generateText(options)).text
    return async () => {
      const result = streamText(options)
      for await (const delta of result.textStream) if (delta !== Work.answer) seen.deltas++
      return result.text
    }
  }
}

/** The scripted model; it counts the messages behind the question, whatever stands before it. */
export const mockModel = (spec: Work.Spec, seen: Work.Seen): MockLanguageModelV4 => {
  const turnOf = ({ prompt, tools }: Options): number => {
    seen.requests++
    seen.definitions = tools?.length ?? 0
    // The log of the mock would grow with every request.
    model.doGenerateCalls.length = 0
    model.doStreamCalls.length = 0
    return (prompt.length - 1) / 2
  }
  const callsOf = (turn: number) =>
    Work.callsOf(spec, turn).map((toolCallId) => ({
      type: "tool-call" as const,
      toolCallId,
      toolName: "get_weather",
      input: Work.json
    }))
  const model = new MockLanguageModelV4({
    doGenerate: async (options) => {
      const calls = callsOf(turnOf(options))
      return {
        content: calls.length === 0 ? [{ type: "text", text: Work.answer }] : calls,
        finishReason: finish(calls.length),
        usage,
        warnings: []
      }
    },
    doStream: async (options) => {
      const turn = turnOf(options)
      const calls = callsOf(turn)
      const deltas = calls.length === 0 ? [Work.answer] : Work.deltasOf(spec, turn)
      return {
        stream: convertArrayToReadableStream([
          { type: "stream-start" as const, warnings: [] },
          { type: "text-start" as const, id: "text" },
          ...deltas.map((delta) => ({ type: "text-delta" as const, id: "text", delta })),
          { type: "text-end" as const, id: "text" },
          ...calls,
          { type: "finish" as const, finishReason: finish(calls.length), usage }
        ])
      }
    }
  })
  return model
}

const usage: Generated["usage"] = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}

const finish = (calls: number): Generated["finishReason"] =>
  calls === 0 ? { unified: "stop", raw: "stop" } : { unified: "tool-calls", raw: "tool_calls" }
