/**
 * What is recorded of what is said, and in which form? Nothing, unless inputs or outputs are asked for; then without what
 * Schemas hide, as the application's own redaction leaves it, and no more than so many bytes of it.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { Reply, Request } from "../../internal/ask.ts"
import * as Turn from "../../Turn.ts"
import * as Hiding from "./hiding.ts"
import * as Names from "./names.ts"

/** Which text is recorded. */
export type Where = "instructions" | "prompt" | "messages" | "answer" | "arguments" | "result" | "error"

/** What is recorded. */
export interface Settings {
  readonly inputs: boolean
  readonly outputs: boolean
  readonly redact: ((text: string, where: Where) => string) | undefined
  /** How many bytes of each text. */
  readonly most: number
}

/** A text as it is recorded. A redaction that fails leaves nothing of it. */
export const text = ({ most, redact }: Settings, where: Where, of: string): string =>
  redact === undefined ? cut(of, most) : Result.match(Result.try(() => redact(of, where)), {
    onFailure: () => Hiding.Placeholder,
    onSuccess: (redacted) => typeof redacted === "string" ? cut(redacted, most) : Hiding.Placeholder
  })

/** The first bytes of a text, never half a character. */
export const cut = (of: string, most: number): string => {
  if (of.length * 3 <= most) return of
  const bytes = new TextEncoder().encode(of)
  if (bytes.length <= most) return of
  let end = Math.max(0, most - mark.length)
  // A byte that goes on with a character is no beginning of one.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${new TextDecoder().decode(bytes.subarray(0, end))}…`
}

const mark = new TextEncoder().encode("…")

const json = (settings: Settings, where: Where, of: unknown): string =>
  text(
    settings,
    where,
    JSON.stringify(of, (_, value: unknown) => typeof value === "bigint" ? String(value) : value) ?? ""
  )

/** The instructions of an agent. */
export const instructions = (settings: Settings, of: ReadonlyArray<string>): string | undefined =>
  !settings.inputs || of.length === 0
    ? undefined
    : json(settings, "instructions", of.map((content) => ({ type: "text", content })))

/** What a run was asked: the texts of its user. */
export const asked = (settings: Settings, messages: ReadonlyArray<Prompt.Message>): string | undefined =>
  settings.inputs
    ? latest(settings, "prompt", messages.filter(({ role }) => role === "user"), (message) => shown(message, nobody))
    : undefined

/** What a model was sent, without its instructions. */
export const sent = (settings: Settings, { format, messages, table }: Request): string | undefined => {
  if (!settings.inputs) return undefined
  const reader = { tools: table.tools, answer: format?.source, hidden: new Set<string>() }
  const said = messages.filter(({ role }) => role !== "system").map((message) => shown(message, reader))
  return latest(settings, "messages", said, (message) => bare(message, reader.hidden))
}

/** What a model was sent as its instructions. */
export const sentInstructions = (settings: Settings, { messages }: Request): string | undefined =>
  instructions(settings, messages.flatMap((message) => message.role === "system" ? [message.content] : []))

/** What a model said. */
export const said = (settings: Settings, { format, table }: Request, reply: Reply): string | undefined => {
  if (!settings.outputs) return undefined
  const reader = { tools: table.tools, answer: format?.source, hidden: new Set<string>() }
  const parts = reply.content.map((part) => partOf(part, reader))
  const message = { role: "assistant", parts, finish_reason: Names.finishReason(reply.finish) }
  return json(settings, "answer", [bare(message, reader.hidden)])
}

/** The answer of a run, of the form that its agent says. */
export const answered = (
  settings: Settings,
  answer: string,
  form: Schema.Constraint | undefined
): string | undefined => {
  if (!settings.outputs) return undefined
  const content = ofForm(answer, form, new Set())
  return json(settings, "answer", [{ role: "assistant", parts: [{ type: "text", content }], finish_reason: "stop" }])
}

/** The arguments of a call. */
export const argumentsOf = (
  settings: Settings,
  call: Turn.Call,
  tool: WireTool.Any | undefined
): string | undefined => {
  if (!settings.inputs) return undefined
  const params = Object.hasOwn(call, "input") ? call.input : call.raw
  return json(settings, "arguments", hiddenBy(tool?.parametersSchema, params, new Set()))
}

/** The result of a call; of one that went wrong, what its model was told. */
export const resultOf = (
  settings: Settings,
  call: Turn.Call,
  outcome: Turn.Outcome,
  tool: WireTool.Any | undefined
): string | undefined => {
  if (!settings.outputs) return undefined
  const hidden = new Set<string>()
  hiddenBy(tool?.parametersSchema, Object.hasOwn(call, "input") ? call.input : call.raw, hidden)
  if (outcome._tag === "Success") {
    return json(settings, "result", bare(hiddenBy(tool?.successSchema, outcome.value, hidden), hidden))
  }
  return outcome._tag === "Failure" && mayQuote(outcome.kind, tool)
    ? Hiding.Placeholder
    : text(
      settings,
      outcome._tag === "Replied" ? "result" : "error",
      Hiding.without(String(Turn.told(outcome)), hidden)
    )
}

/** Whether what a model was told of a failure has pieces of what is hidden in it. */
const mayQuote = (kind: Turn.Failure["kind"], tool: WireTool.Any | undefined): boolean => {
  if (tool === undefined) return false
  if (kind === "failure") return Hiding.hides(tool.failureSchema)
  return (kind === "invalid-json" || kind === "invalid-input") && Hiding.hides(tool.parametersSchema)
}

/** Who knows what is to be hidden of a transcript. */
interface Reader {
  readonly tools: ReadonlyArray<WireTool.Any>
  readonly answer: Schema.Constraint | undefined
  readonly hidden: Set<string>
}

const nobody: Reader = { tools: [], answer: undefined, hidden: new Set() }

const shown = (message: Prompt.Message, reader: Reader): unknown =>
  typeof message.content === "string"
    ? { role: message.role, parts: [{ type: "text", content: message.content }] }
    : { role: message.role, parts: message.content.map((part) => partOf(part, reader)) }

type Part = Exclude<Prompt.Message["content"], string>[number]

const partOf = (part: Part, reader: Reader): unknown => {
  const toolOf = (name: string) => reader.tools.find((tool) => tool.name === name)
  switch (part.type) {
    case "text":
      return { type: "text", content: ofForm(part.text, reader.answer, reader.hidden) }
    case "reasoning":
      return { type: "reasoning", content: part.text }
    case "tool-call":
      return {
        type: "tool_call",
        id: part.id,
        name: part.name,
        arguments: hiddenBy(toolOf(part.name)?.parametersSchema, readable(part.params), reader.hidden)
      }
    case "tool-result":
      return { type: "tool_call_response", id: part.id, response: responseOf(part, toolOf(part.name), reader.hidden) }
    default:
      // What a file holds is never recorded.
      return { type: part.type }
  }
}

// A transcript does not say how a call failed.
const responseOf = (part: Prompt.ToolResultPart, tool: WireTool.Any | undefined, hidden: Set<string>): unknown =>
  !part.isFailure
    ? hiddenBy(tool?.successSchema, part.result, hidden)
    : mayQuote("failure", tool) || mayQuote("invalid-input", tool)
    ? Hiding.Placeholder
    : part.result

const readable = (params: unknown): unknown =>
  typeof params === "string" ? Result.getOrElse(Result.try((): unknown => JSON.parse(params)), () => params) : params

const hiddenBy = (schema: Schema.Constraint | undefined, value: unknown, hidden: Set<string>): unknown =>
  schema === undefined ? value : Hiding.hide(schema, value, hidden)

/** A text that is to be JSON of a form. */
const ofForm = (of: string, form: Schema.Constraint | undefined, hidden: Set<string>): string => {
  if (form === undefined || !Hiding.hides(form)) return of
  return Result.match(Result.try((): unknown => JSON.parse(of)), {
    onFailure: () => Hiding.Placeholder,
    onSuccess: (value) => JSON.stringify(Hiding.hide(form, value, hidden)) ?? Hiding.Placeholder
  })
}

/** JSON whose texts do not say what was hidden elsewhere. */
const bare = (value: unknown, hidden: ReadonlySet<string>): unknown => {
  if (hidden.size === 0 || value === Hiding.Placeholder) return value
  if (typeof value === "string") return Hiding.without(value, hidden)
  if (Array.isArray(value)) return value.map((item: unknown) => bare(item, hidden))
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, bare(item, hidden)]))
    : value
}

/** As many messages as there is room for, from the end, in order. */
const latest = <M>(
  settings: Settings,
  where: Where,
  messages: ReadonlyArray<M>,
  show: (message: M) => unknown
): string => {
  const kept: Array<unknown> = []
  let left = settings.most - 2
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    const one = message === undefined ? undefined : show(message)
    left -= new TextEncoder().encode(JSON.stringify(one)).length + 1
    if (left < 0 && kept.length > 0) break
    kept.unshift(one)
  }
  return json(settings, where, kept)
}
