/**
 * How is a model asked that comes from an AI SDK provider? Any `LanguageModelV4` is one of ours here: Anthropic, OpenAI
 * Responses, Google, Bedrock and the rest, each with the client that its vendor keeps.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Provider from "../Provider.ts"
import type * as AiSdk from "./internal/aiSdk.ts"
import * as Errors from "./internal/aiSdkError.ts"
import * as Replies from "./internal/aiSdkReply.ts"
import * as Requests from "./internal/aiSdkRequest.ts"
import * as Traits from "./internal/aiSdkTraits.ts"

/**
 * What goes into every request beside what the loop asks, and what the provider takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Sent as it is: `topK`, `headers`, `providerOptions`, …; a setting of the loop goes before the same one here. */
  readonly call?: Requests.Extra | undefined
  /** Tools that the provider runs itself, such as a web search. */
  readonly providerTools?: ReadonlyArray<AiSdk.LanguageModelV4ProviderTool> | undefined
  /** How many tools the provider takes, where that is not known of it or has changed. */
  readonly maxTools?: number | undefined
  /**
   * Whose rules for names, ids and schemas hold, as an AI SDK provider is called: `"mistral.chat"` for a host that runs
   * models of Mistral. Default: the model's own provider.
   */
  readonly rulesOf?: string | undefined
}

/**
 * A model of an AI SDK provider, for the loop and for `effect/ai`.
 *
 * **Details**
 *
 * What a provider says of a part of an answer (a signature of a thought, an id under which it keeps an item) is in the
 * part's `options` and goes back with it, byte for byte and in order. `options` of a user's own, under the provider's
 * name, reach it in the same way. Names of tools and ids of calls that the provider would refuse are replaced by ones
 * that it takes, and come back as they were. Schemas are narrowed to what the provider takes; what falls away is said in
 * the description, or in the reply's `warnings`. With the setting `cache`, Anthropic and Bedrock are told to keep the
 * instructions and the transcript so far; others do by themselves. OpenAI Responses keeps what was said under ids, and is
 * sent those; with `providerOptions: { openai: { store: false } }` it is sent everything, thoughts encrypted.
 *
 * A reply has no place for what a provider says of the whole answer: its id, the finish reason in its own words,
 * probabilities. Sources and citations are under `aiSdk` in the options of the text that they belong to.
 *
 * It fails with an `AiError` whose reason says what to do: `RateLimitError` with `retryAfter` where the server says how
 * long, `QuotaExhaustedError`, `AuthenticationError`, `InvalidRequestError` (also for more tools than the provider
 * takes, before anything is sent), `InternalProviderError`, `NetworkError` (also for a stream that ends before the
 * answer does), `InvalidResponseError`. Interruption aborts the request.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  model: AiSdk.LanguageModelV4,
  options: Options = {}
): Effect.Effect<LanguageModel.LanguageModel> => Provider.make({ ask: asking(model, options) })

/**
 * `make` as a layer.
 *
 * **Example** (A model of a provider)
 *
 * ```ts
 * import { createAnthropic } from "@ai-sdk/anthropic"
 * import * as AiSdk from "toolfold/providers/AiSdk"
 *
 * const anthropic = createAnthropic({ apiKey: "…" })
 *
 * export const Claude = AiSdk.layer(anthropic("claude-sonnet-4-5"), {
 *   call: { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } } }
 * })
 * ```
 *
 * **Example** (A model of one's own, in the words of the AI SDK)
 *
 * ```ts run
 * import type { LanguageModelV4 } from "@ai-sdk/provider"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Effect from "effect/Effect"
 * import * as AiSdk from "toolfold/providers/AiSdk"
 *
 * const parrot: LanguageModelV4 = {
 *   specificationVersion: "v4",
 *   provider: "zoo.parrot",
 *   modelId: "grey",
 *   supportedUrls: {},
 *   doGenerate: ({ prompt }) =>
 *     Promise.resolve({
 *       content: [{ type: "text", text: `${prompt.length} message, said the parrot` }],
 *       finishReason: { unified: "stop", raw: "stop" },
 *       usage: {
 *         inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
 *         outputTokens: { total: 5, text: 5, reasoning: undefined }
 *       },
 *       warnings: []
 *     }),
 *   doStream: () => Promise.reject(new Error("parrots speak at once"))
 * }
 *
 * const reply = await Effect.runPromise(
 *   LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide(AiSdk.layer(parrot)))
 * )
 * reply.text // => "1 message, said the parrot"
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  model: AiSdk.LanguageModelV4,
  options: Options = {}
): Layer.Layer<LanguageModel.LanguageModel> => Provider.layer({ ask: asking(model, options) })

type Reading<A> = Effect.Effect<A, AiError.AiError>

const asking = (model: AiSdk.LanguageModelV4, options: Options): Provider.Ask => {
  const traits = Traits.of(options.rulesOf ?? Traits.nameOf(model))
  const limited = options.maxTools === undefined ? traits : { ...traits, maxTools: options.maxTools }
  const write = Requests.make(model.provider, limited, options.call ?? {}, options.providerTools ?? [])
  const failure = (error: unknown) => Errors.of(error, model.provider)
  // Whoever is not checked by the compiler may bring a model of an older AI SDK.
  const version: string = model.specificationVersion
  if (version !== "v4") {
    const problem = `${model.provider} speaks ${version} of the AI SDK's language, and v4 is needed: update its package`
    return () => Effect.fail(Errors.unsendable(problem))
  }
  return (request, sink) =>
    Effect.suspend(() => {
      // A transcript may hold what no JSON does.
      const written = Result.try(() => write(request))
      if (Result.isFailure(written)) return Effect.fail(failure(written.failure))
      if (Result.isFailure(written.success)) return Effect.fail(Errors.unsendable(written.success.failure))
      const { options, ...rest } = written.success.success
      const reader = Replies.make({ ...rest, unknownUsage: Provider.unknownUsage })
      return sink === undefined
        ? Effect.flatMap(generate(model, options, failure), (result) => readWhole(result, reader, model.provider))
        : readStream(model, options, { reader, sink, failure, traits })
    })
}

type Generated = Awaited<ReturnType<AiSdk.LanguageModelV4["doGenerate"]>>

const generate = (
  model: AiSdk.LanguageModelV4,
  options: AiSdk.LanguageModelV4CallOptions,
  failure: (error: unknown) => AiError.AiError
): Reading<Generated> =>
  Effect.tryPromise({ try: (abortSignal) => model.doGenerate({ ...options, abortSignal }), catch: failure })

const readWhole = (result: Generated, reader: Replies.Reader, provider: string): Reading<Provider.Reply> => {
  for (const part of result.content) reader.whole(part)
  reader.warn(result.warnings)
  reader.answeredBy(result.response?.modelId)
  reader.end(result)
  return result.finishReason.unified === "interrupted"
    ? Effect.fail(Errors.endedEarly(provider))
    : Effect.succeed(reader.reply())
}

interface Reception {
  readonly traits: Traits.Traits
  readonly reader: Replies.Reader
  readonly sink: Provider.Sink
  readonly failure: (error: unknown) => AiError.AiError
}

/** Reads a stream as fast as its sink takes it, up to the provider's last word; the request ends with the reading. */
const readStream = (
  model: AiSdk.LanguageModelV4,
  options: AiSdk.LanguageModelV4CallOptions,
  { failure, reader, sink, traits }: Reception
): Reading<Provider.Reply> =>
  Effect.suspend(() => {
    const controller = new AbortController()
    let stream: ReadableStreamDefaultReader<AiSdk.LanguageModelV4StreamPart> | undefined
    const reading = Effect.gen(function*() {
      const answer = yield* Effect.tryPromise({
        try: () => model.doStream({ ...options, abortSignal: controller.signal }),
        catch: failure
      })
      const parts = answer.stream.getReader()
      stream = parts
      while (true) {
        const { done, value } = yield* Effect.tryPromise({ try: () => parts.read(), catch: failure })
        if (done) break
        if (value.type === "error") {
          const leftOut = Errors.unknownEvent(value.error)
          if (leftOut === undefined) return yield* Effect.fail(failure(value.error))
          reader.warn([{ type: "other", message: leftOut }])
        }
        const delta = reader.piece(value)
        if (delta !== undefined) yield* sink([delta])
        // Nothing that follows a complete answer takes it back.
        if (value.type === "finish") break
      }
      return reader.hasEnded(traits.countsAtEnd)
        ? reader.reply()
        : yield* Effect.fail(Errors.endedEarly(model.provider))
    })
    return Effect.onExit(reading, (exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit)) controller.abort()
        // Whoever produces the stream is told, and what it says to that is nobody's concern.
        stream?.cancel().then(nothing, nothing)
      }))
  })

const nothing = (): void => undefined
