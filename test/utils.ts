import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as AgentLoop from "toolfold/AgentLoop"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import type * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

/** Runs a scripted conversation with these tools. */
export const converse = <const Tools extends ReadonlyArray<Tool.Any>>(
  tools: Tools,
  script: ReadonlyArray<ScriptedModel.Turn>,
  options: AgentLoop.Options & AgentLoop.RunOptions = {}
) => {
  const { context, messages, onText, onToolCall, prompt = "go", ...agent } = options
  return AgentLoop.run(AgentLoop.make("tester", agent), { prompt, context, messages, onText, onToolCall }).pipe(
    Effect.provide(ToolRegistry.layer(...tools)),
    Effect.provide(ScriptedModel.layer(...script))
  )
}

/** A transcript in short: who said what, which call got which result. */
export const brief = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> =>
  messages.map((message) =>
    typeof message.content === "string"
      ? `${message.role}: ${message.content}`
      : `${message.role}: ${
        message.content.map((part) => {
          switch (part.type) {
            case "text":
            case "reasoning":
              return part.text
            case "tool-call":
              return `${part.name}#${part.id}(${JSON.stringify(part.params)})`
            case "tool-result":
              return `#${part.id}${part.isFailure ? "!" : "="}${
                typeof part.result === "string" ? part.result : JSON.stringify(part.result)
              }`
            default:
              return `<${part.type}>`
          }
        }).join(" ")
      }`
  )

/** What is wrong with a transcript: each call has exactly one result, directly after its message, in call order. */
export const faults = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => {
  const found: Array<string> = []
  messages.forEach((message, at) => {
    const next = messages[at + 1]
    if (message.role === "assistant") {
      if (message.content.length === 0) found.push(`message ${at} is empty`)
      const calls = message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
      const results = next?.role === "tool"
        ? next.content.flatMap((part) => part.type === "tool-result" ? [part.id] : [])
        : []
      if (JSON.stringify(calls) !== JSON.stringify(results)) {
        found.push(`message ${at} asks for ${calls.join(",")} and is answered for ${results.join(",")}`)
      }
    }
    if (message.role === "tool" && messages[at - 1]?.role !== "assistant") found.push(`message ${at} answers nothing`)
  })
  return found
}

/** Keeps what is logged instead of printing it. */
export const logged = () => {
  const lines: Array<{ readonly message: string; readonly cause: string; readonly level: string }> = []
  const layer: Layer.Layer<never> = Logger.layer([
    Logger.make(({ cause, logLevel, message }) => {
      lines.push({
        message: String(Array.isArray(message) ? message[0] : message),
        cause: String(cause),
        level: logLevel
      })
    })
  ])
  return { lines, layer }
}

export const quiet: Layer.Layer<never> = Layer.suspend(() => logged().layer)
