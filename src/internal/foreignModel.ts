/**
 * How is a model asked that has no direct entry? Through its public methods, with calls left unresolved and unjudged.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as WireTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type * as Tool from "../Tool.ts"
import type { Ask, Delta, Reply, Request } from "./ask.ts"

/**
 * Asks it as anybody does. It has settings of its own, and what it was asked for is warned of. JSON is asked for as an
 * object where there are no tools, and as the arguments of one more tool where there are; and as text where its Schema is
 * not known.
 */
export const throughPublic = (model: LanguageModel.LanguageModel): Ask => (request, sink) => {
  const options = {
    // A copy, since a wrapper may keep what it was asked and the transcript goes on growing.
    prompt: Prompt.fromMessages(request.messages.slice()),
    toolChoice: request.toolChoice,
    disableToolCallResolution: true,
    toolCallValidation: "deferred",
    toolkit: toolkitOf(request)
  } as const
  const warnings = warningsOf(request)
  const { format } = request
  if (format?.source !== undefined && request.table.tools.length === 0) {
    const schema = format.source as Schema.Codec<unknown, Record<string, unknown>> // of an object; what it needs is there where it was asked for
    return Effect.flatMap(
      model.generateObject({ ...options, schema, objectName: format.name }),
      ({ content }) => toReply(content, request, warnings)
    ).pipe(Effect.catch(misfit))
  }
  if (sink === undefined) {
    return Effect.flatMap(model.generateText(options), ({ content }) => toReply(content, request, warnings))
  }
  const parts: Array<Response.AnyPart> = []
  const calls: Array<{ readonly id: string; readonly name: string }> = []
  const answer = format?.source === undefined ? undefined : nameOf(request.table)
  return Effect.flatMap(
    Stream.runForEachArray(model.streamText(options), (chunk) => {
      const deltas: Array<Delta> = []
      for (const part of chunk) {
        parts.push(part)
        if (part.type === "text-delta") deltas.push({ type: "text", delta: part.delta })
        else if (part.type === "reasoning-delta") deltas.push({ type: "reasoning", delta: part.delta })
        else if (part.type === "tool-params-start" && !part.providerExecuted && part.name !== answer) calls.push(part)
        else if (part.type === "tool-params-delta") {
          const at = calls.findLastIndex(({ id }) => id === part.id)
          const call = calls[at]
          if (call !== undefined) {
            deltas.push({ type: "input", delta: part.delta, part: at, id: call.id, name: call.name })
          }
        }
      }
      return deltas.length === 0 ? Effect.void : sink(deltas)
    }),
    () => toReply(parts, request, warnings)
  )
}

/** What is no answer of that form is an answer all the same: whoever asked for it says what is wrong with it. */
const misfit = (error: AiError.AiError): Effect.Effect<Reply, AiError.AiError> => {
  if (error.reason._tag !== "StructuredOutputError") return Effect.fail(error)
  const { responseText: text, usage = {} } = error.reason
  const { inputTokens, outputTokens } = unknownUsage
  return Effect.succeed({
    content: [Prompt.makePart("text", { text })],
    finish: "stop",
    usage: {
      inputTokens: { ...inputTokens, total: usage.promptTokens },
      outputTokens: { ...outputTokens, total: usage.completionTokens }
    }
  })
}

const warningsOf = ({ settings = {} }: Request): Reply["warnings"] => {
  const asked = Object.entries(settings).flatMap(([name, value]) => value === undefined ? [] : [name])
  return asked.length === 0
    ? undefined
    : [`this model has settings of its own, and was not told of ${asked.join(", ")}`]
}

/**
 * The usage of a provider that reports none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unknownUsage: Reply["usage"] = {
  inputTokens: { uncached: undefined, total: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined }
}

const toReply = (
  parts: ReadonlyArray<Response.AnyPart>,
  request: Request,
  warnings: Reply["warnings"]
): Effect.Effect<Reply, AiError.AiError> => {
  let finish: Reply["finish"] = "unknown"
  let usage = unknownUsage
  let model: string | undefined
  for (const part of parts) {
    if (part.type === "finish") ({ reason: finish, usage } = part)
    else if (part.type === "response-metadata") model = part.modelId ?? model
    else if (part.type === "error") return Effect.fail(toAiError(part.error))
  }
  const [message] = Prompt.fromResponseParts(parts).content
  const content = message?.role === "assistant" ? message.content : []
  return Effect.succeed({ ...answered(content, finish, request), usage, model, warnings })
}

const toAiError = (error: unknown): AiError.AiError =>
  AiError.isAiError(error) ? error : AiError.make({
    module: "Provider",
    method: "stream",
    reason: new AiError.InternalProviderError({
      description: typeof error === "string" ? error : JSON.stringify(error) ?? "error"
    })
  })

// Tools whose schemas are forgotten, since `Tool.Any` would make every requirement unknown.
type Opaque = WireTool.Tool<string, {
  readonly parameters: typeof Schema.Unknown
  readonly success: typeof Schema.Unknown
  readonly failure: typeof Schema.Unknown
  readonly failureMode: "return"
}>

type AnyToolkit = Toolkit.WithHandler<Record<string, Opaque>>

const toolkits = new WeakMap<Tool.Table, WeakMap<object, AnyToolkit>>()

// Calls are not resolved there, so the toolkit says which tools there are and answers none.
const toolkitOf = ({ format, table }: Request): AnyToolkit => {
  const source = table.tools.length === 0 ? undefined : format?.source
  const byForm = toolkits.get(table) ?? new WeakMap<object, AnyToolkit>()
  toolkits.set(table, byForm)
  const known = byForm.get(source ?? table)
  if (known !== undefined) return known
  const tools: Record<string, Opaque> = Object.create(null)
  for (const tool of table.tools) Object.defineProperty(tools, tool.name, { value: tool, enumerable: true })
  if (source !== undefined) {
    const name = nameOf(table)
    const parameters = source as Schema.Struct<Schema.Struct.Fields> // who asks for JSON asks for an object
    const description = "Gives the final answer. Call it once, alone, when everything else is done."
    Object.defineProperty(tools, name, { value: WireTool.make(name, { description, parameters }), enumerable: true })
  }
  const toolkit: AnyToolkit = {
    tools,
    handle: () => Effect.die(new Error("calls are answered by the loop"))
  }
  byForm.set(source ?? table, toolkit)
  return toolkit
}

/** The tool by which a model with other tools gives an answer that has a form. */
const nameOf = ({ tools }: Tool.Table): string => {
  let name = "final_answer"
  while (tools.some((tool) => tool.name === name)) name += "_"
  return name
}

/** An answer that came as a call is the text that it would have been; beside other calls it is too early. */
const answered = (
  content: Reply["content"],
  finish: Reply["finish"],
  { format, table }: Request
): Pick<Reply, "content" | "finish"> => {
  if (format?.source === undefined || table.tools.length === 0) return { content, finish }
  const name = nameOf(table)
  const isAnswer = (part: Reply["content"][number]) => part.type === "tool-call" && part.name === name
  const others = content.filter((part) => !isAnswer(part))
  const answer = content.find(isAnswer)
  if (answer?.type !== "tool-call" || others.some((part) => part.type === "tool-call")) {
    return { content: others, finish }
  }
  const { params } = answer
  const text = typeof params === "string" ? params : JSON.stringify(params)
  return {
    content: [...others.filter(({ type }) => type !== "text"), Prompt.makePart("text", { text })],
    finish: "stop"
  }
}
