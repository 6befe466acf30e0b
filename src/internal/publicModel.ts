/**
 * How do those who do not know the direct entry ask a model of ours? As any model of `effect/ai`: by requests and parts of
 * its own.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "../Tool.ts"
import * as Arguments from "./arguments.ts"
import type { Ask, Delta, Reply, Request, Sink } from "./ask.ts"
import * as Codec from "./codec.ts"
import * as JsonSchema from "./jsonSchema.ts"

/** The methods that `LanguageModel.make` makes the rest of. */
export const methods = (ask: Ask): Parameters<typeof LanguageModel.make>[0] => ({
  generateText: (request) => Effect.flatMap(ask(toRequest(request)), (reply) => toParts(reply, request)),
  streamText: (request) => toStream(ask, request)
})

const toRequest = (options: LanguageModel.ProviderOptions): Request => ({
  messages: options.prompt.content,
  table: Tool.table(options.tools),
  toolChoice: options.toolChoice,
  format: options.responseFormat.type === "json"
    ? {
      name: options.responseFormat.objectName,
      schema: JsonSchema.advertise(options.responseFormat.schema),
      source: options.responseFormat.schema
    }
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
    const shown = new Set<string>()
    const merged = new Set<Delta["type"]>()
    const inputs = new Map<string, string>()
    const sink: Sink = (deltas) => {
      const parts = deltas.flatMap((piece): Array<Response.StreamPartEncoded> => {
        const { delta, part, type } = piece
        if (type === "input") return inputOf(piece, inputs)
        const id = `${type}-${part ?? 0}`
        const said: Response.StreamPartEncoded = { type: `${type}-delta`, id, delta }
        if (part === undefined) merged.add(type)
        if (shown.has(id)) return [said]
        shown.add(id)
        return [{ type: `${type}-start`, id }, said]
      })
      return Effect.asVoid(Queue.offerAll(queue, parts))
    }
    return Effect.gen(function*() {
      const reply = yield* ask(toRequest(options), sink)
      const others = yield* Effect.forEach(
        reply.content.filter((part) => !isSpoken(part)),
        (part) => toPart(part, options)
      )
      yield* Queue.offerAll(queue, [
        ...Array.from(inputs.values(), (id) => ({ type: "tool-params-end" as const, id })),
        ...restOf(reply.content.filter(isSpoken), shown, merged),
        // A part that was neither text nor reasoning is the same whole and streamed.
        ...others.flat() as Array<Response.StreamPartEncoded>,
        finishPart(reply)
      ])
      yield* Queue.end(queue)
    }).pipe(Effect.catchCause((cause) => Queue.failCause(queue, cause)))
  })

const inputOf = (
  { delta, id, name, part }: Extract<Delta, { readonly type: "input" }>,
  begun: Map<string, string>
): Array<Response.StreamPartEncoded> => {
  const piece: Response.StreamPartEncoded = { type: "tool-params-delta", id, delta }
  // An answer that broke off may have had another call there.
  const key = `${part} ${id}`
  if (begun.has(key)) return [piece]
  begun.set(key, id)
  return [{ type: "tool-params-start", id, name }, piece]
}

type Spoken = Prompt.TextPart | Prompt.ReasoningPart

const isSpoken = (part: Prompt.AssistantMessagePart): part is Spoken =>
  part.type === "text" || part.type === "reasoning"

/**
 * What is still to be streamed of what was said: the end and the metadata of a part whose pieces were shown, all of one
 * that was not. A provider that does not tell its parts apart has shown them all as the first.
 */
const restOf = (
  parts: ReadonlyArray<Spoken>,
  shown: ReadonlySet<string>,
  merged: ReadonlySet<Delta["type"]>
): ReadonlyArray<Response.StreamPartEncoded> => {
  const next = { text: 0, reasoning: 0 }
  return parts.flatMap(({ options: metadata, text, type }): ReadonlyArray<Response.StreamPartEncoded> => {
    const id = `${type}-${next[type]++}`
    const end: Response.StreamPartEncoded = { type: `${type}-end`, id, metadata }
    if (shown.has(id)) return [end]
    const start: Response.StreamPartEncoded = { type: `${type}-start`, id }
    return merged.has(type) ? [start, end] : [start, { type: `${type}-delta`, id, delta: text }, end]
  })
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
    case "file":
      return Effect.succeed([{ type: "file", mediaType: part.mediaType, data: dataOf(part.data), metadata }])
    default:
      return Effect.succeed([])
  }
}

// A part of a prompt may be bytes or an address; one of an answer is text.
const dataOf = (data: Prompt.FilePart["data"]): string =>
  data instanceof Uint8Array ? Base64.encode(data) : String(data)

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
