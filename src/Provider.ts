/**
 * Who is asked? A language model; and for a model of ours a direct entry, which takes a transcript as it is.
 *
 * The loop asks for `effect/ai`'s `LanguageModel` and nothing else, so every provider works. A provider made here is
 * such a model and carries one more entry: the loop hands it the transcript and the table of tools as they are, so that
 * it can keep what it encoded of them, and a turn costs the same at turn 10 and at turn 1,000. The entry names the model
 * that it belongs to: a user's wrapper round a model is asked itself, and sees every request.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as WireTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Arguments from "./internal/arguments.ts"
import type { Ask, Delta, Reply, Request, Sink } from "./internal/ask.ts"
import * as Codec from "./internal/codec.ts"
import * as JsonSchema from "./internal/jsonSchema.ts"
import * as Tool from "./Tool.ts"

export type { Ask, Delta, Reply, Request, Settings, Sink } from "./internal/ask.ts"

const EntryKey = Symbol("toolfold/Provider/Entry")

interface Entry {
  readonly model: LanguageModel.LanguageModel
  readonly ask: Ask
}

/**
 * Makes a language model from one function, for use with `effect/ai` and, through its direct entry, with the loop.
 *
 * **Example** (A model that repeats the question)
 *
 * ```ts run
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Effect from "effect/Effect"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Provider from "toolfold/Provider"
 *
 * const Echo = Provider.layer({
 *   ask: ({ messages }) =>
 *     Effect.succeed({
 *       content: [Prompt.textPart({ text: `You sent ${messages.length} message` })],
 *       finish: "stop",
 *       usage: { inputTokens: { total: 3 }, outputTokens: { total: 4 } } as any
 *     })
 * })
 *
 * const reply = await Effect.runPromise(LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide(Echo)))
 * reply.text // => "You sent 1 message"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: { readonly ask: Ask }): Effect.Effect<LanguageModel.LanguageModel> =>
  Effect.map(
    LanguageModel.make({
      generateText: (request) => Effect.flatMap(options.ask(toRequest(request)), (reply) => toParts(reply, request)),
      streamText: (request) => toStream(options.ask, request)
    }),
    (model) => Object.defineProperty(model, EntryKey, { value: { model, ask: options.ask } satisfies Entry })
  )

/**
 * `make` as a layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: { readonly ask: Ask }): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

/**
 * How a model is asked: through its direct entry if it is the very model that the entry belongs to, else through its
 * public methods, with calls left unresolved and unjudged.
 *
 * @category asking
 * @since 0.1.0
 */
export const askOf = (model: LanguageModel.LanguageModel): Ask => {
  const entry: Entry | undefined = Reflect.get(model, EntryKey)
  return entry?.model === model ? entry.ask : throughPublic(model)
}

const throughPublic = (model: LanguageModel.LanguageModel): Ask => (request, sink) => {
  const options = {
    // A copy, since a wrapper may keep what it was asked and the transcript goes on growing.
    prompt: Prompt.fromMessages(request.messages.slice()),
    toolChoice: request.toolChoice,
    disableToolCallResolution: true,
    toolCallValidation: "deferred",
    toolkit: toolkitOf(request.table)
  } as const
  if (sink === undefined) {
    return Effect.flatMap(model.generateText(options), ({ content }) => toReply(content))
  }
  const parts: Array<Response.AnyPart> = []
  return Effect.flatMap(
    Stream.runForEachArray(model.streamText(options), (chunk) => {
      const deltas: Array<Delta> = []
      for (const part of chunk) {
        parts.push(part)
        if (part.type === "text-delta") deltas.push({ type: "text", delta: part.delta })
        else if (part.type === "reasoning-delta") deltas.push({ type: "reasoning", delta: part.delta })
      }
      return deltas.length === 0 ? Effect.void : sink(deltas)
    }),
    () => toReply(parts)
  )
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

const toReply = (parts: ReadonlyArray<Response.AnyPart>): Effect.Effect<Reply, AiError.AiError> => {
  let finish: Reply["finish"] = "unknown"
  let usage = unknownUsage
  for (const part of parts) {
    if (part.type === "finish") ({ reason: finish, usage } = part)
    else if (part.type === "error") return Effect.fail(toAiError(part.error))
  }
  const [message] = Prompt.fromResponseParts(parts).content
  return Effect.succeed({ content: message?.role === "assistant" ? message.content : [], finish, usage })
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

const toolkits = new WeakMap<Tool.Table, Toolkit.WithHandler<Record<string, Opaque>>>()

// Calls are not resolved there, so the toolkit says which tools there are and answers none.
const toolkitOf = (table: Tool.Table): Toolkit.WithHandler<Record<string, Opaque>> => {
  const known = toolkits.get(table)
  if (known !== undefined) return known
  const tools: Record<string, Opaque> = Object.create(null)
  for (const tool of table.tools) Object.defineProperty(tools, tool.name, { value: tool, enumerable: true })
  const toolkit: Toolkit.WithHandler<Record<string, Opaque>> = {
    tools,
    handle: () => Effect.die(new Error("calls are answered by the loop"))
  }
  toolkits.set(table, toolkit)
  return toolkit
}

const toRequest = (options: LanguageModel.ProviderOptions): Request => ({
  messages: options.prompt.content,
  table: Tool.table(options.tools),
  toolChoice: options.toolChoice,
  format: options.responseFormat.type === "json"
    ? { name: options.responseFormat.objectName, schema: JsonSchema.advertise(options.responseFormat.schema) }
    : undefined
})

const finishPart = (reply: Reply): Response.FinishPartEncoded => ({
  type: "finish",
  reason: reply.finish,
  usage: reply.usage
})

const toParts = (
  reply: Reply,
  options: LanguageModel.ProviderOptions
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.map(
    Effect.forEach(reply.content, (part) => toPart(part, options)),
    (parts) => [...parts.flat(), finishPart(reply)]
  )

const toStream = (
  ask: Ask,
  options: LanguageModel.ProviderOptions
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.callback<Response.StreamPartEncoded, AiError.AiError>((queue) => {
    const shown = new Set<Delta["type"]>()
    const sink: Sink = (deltas) => {
      const parts = deltas.flatMap(({ delta, type }): Array<Response.StreamPartEncoded> => {
        const part: Response.StreamPartEncoded = { type: `${type}-delta`, id: type, delta }
        if (shown.has(type)) return [part]
        shown.add(type)
        return [{ type: `${type}-start`, id: type }, part]
      })
      return Effect.asVoid(Queue.offerAll(queue, parts))
    }
    return Effect.gen(function*() {
      const reply = yield* ask(toRequest(options), sink)
      const rest: Array<Response.StreamPartEncoded> = []
      reply.content.forEach((part, at) => rest.push(...spokenInStream(part, `${at}`, shown)))
      const others = yield* Effect.forEach(
        reply.content.filter((part) => !isSpoken(part)),
        (part) => toPart(part, options)
      )
      // A part that was neither text nor reasoning is the same whole and streamed.
      rest.push(...others.flat() as Array<Response.StreamPartEncoded>, finishPart(reply))
      yield* Queue.offerAll(queue, rest)
      yield* Queue.end(queue)
    }).pipe(Effect.catchCause((cause) => Queue.failCause(queue, cause)))
  })

const isSpoken = (part: Prompt.AssistantMessagePart): part is Prompt.TextPart | Prompt.ReasoningPart =>
  part.type === "text" || part.type === "reasoning"

/**
 * What is still to be streamed of a part: its end and its metadata where its pieces were shown, all of it where a
 * provider showed none.
 */
const spokenInStream = (
  part: Prompt.AssistantMessagePart,
  id: string,
  shown: Set<Delta["type"]>
): ReadonlyArray<Response.StreamPartEncoded> => {
  if (!isSpoken(part)) return []
  const { options: metadata, text, type } = part
  if (shown.delete(type)) return [{ type: `${type}-end`, id: type, metadata }]
  return [{ type: `${type}-start`, id }, { type: `${type}-delta`, id, delta: text }, {
    type: `${type}-end`,
    id,
    metadata
  }]
}

const toPart = (
  part: Prompt.AssistantMessagePart,
  options: LanguageModel.ProviderOptions
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> => {
  const metadata = part.options
  switch (part.type) {
    case "text":
    case "reasoning":
      return Effect.succeed([{ type: part.type, text: part.text, metadata }])
    case "tool-call":
      return Effect.map(
        toParams(part, options),
        (
          params
        ) => [{
          type: "tool-call",
          id: part.id,
          name: part.name,
          params,
          providerExecuted: part.providerExecuted,
          metadata
        }]
      )
    case "tool-result":
      return Effect.succeed([{
        type: "tool-result",
        id: part.id,
        name: part.name,
        result: part.result,
        isFailure: part.isFailure,
        providerExecuted: part.providerExecuted,
        metadata
      }])
    default:
      return Effect.succeed([])
  }
}

// `effect/ai` expects the encoded form of a tool's own schema, unless it leaves judging the calls to somebody else.
const toParams = (
  part: Prompt.ToolCallPart,
  options: LanguageModel.ProviderOptions
): Effect.Effect<unknown, AiError.AiError> => {
  const { input } = Arguments.parse(part.params)
  if (options.toolCallValidation === "deferred") return Effect.succeed(input ?? part.params)
  const tool = options.tools.find((tool) => tool.name === part.name)
  if (tool === undefined) return Effect.succeed(input)
  return Codec.jsonCodec(tool.parametersSchema).decode(input).pipe(
    Effect.flatMap((value) => Schema.encodeUnknownEffect(tool.parametersSchema)(value)),
    Effect.mapError((error) =>
      AiError.make({
        module: "Provider",
        method: "generateText",
        reason: new AiError.InvalidOutputError({
          description: `arguments of tool ${JSON.stringify(part.name)}: ${String(error)}`
        })
      })
    )
  ) as Effect.Effect<unknown, AiError.AiError> // `effect/ai` forgets what the schemas of a tool need
}
