import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { isDeepStrictEqual } from "node:util"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Event from "toolfold/Event"
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

const asJson = Schema.toCodecJson(Schema.Array(Event.Event))

/**
 * What is wrong with the events of a run: they are numbered from 0 without gaps, are data, what starts ends once, within what
 * it is part of, and the end of the run is the last.
 */
export const eventFaults = (events: ReadonlyArray<Event.Event>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const open = new Set<string>()
  const start = (what: string) => open.has(what) ? found.push(`${what} starts twice`) : open.add(what)
  const end = (what: string) => {
    if (!open.delete(what)) found.push(`${what} ends and did not start`)
    for (const other of open) if (other.startsWith(`${what}/`)) found.push(`${what} ends before ${other}`)
  }
  events.forEach((event, at) => {
    if (event.seq !== at) found.push(`event ${at} has the number ${event.seq}`)
    const run = ["run", ...event.path.map(({ callId, runId }) => `${callId}/${runId}`)].join("/")
    if (event._tag === "RunStart") start(run)
    else if (!open.has(run)) found.push(`${event._tag} outside of ${run}`)
    if (event._tag === "RunEnd") end(run)
    else if (event._tag === "TurnStart") start(`${run}/turn`)
    else if (event._tag === "TurnEnd") end(`${run}/turn`)
    else if (event._tag === "CallStart") start(`${run}/${event.call.id}`)
    else if (event._tag === "CallEnd") end(`${run}/${event.call.id}`)
  })
  for (const what of open) found.push(`${what} does not end`)
  const sent = JSON.parse(JSON.stringify(Schema.encodeSync(asJson)(events)))
  if (!isDeepStrictEqual(Schema.decodeUnknownSync(asJson)(sent), events)) found.push("it is not the same as JSON")
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
