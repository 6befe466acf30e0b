/**
 * How is a server asked that speaks OpenAI's Chat Completions? Over `effect/http`, plain or streamed, with no further
 * dependency: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, Groq, Mistral, DeepSeek, …
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Provider from "../Provider.ts"
import * as ChatError from "./internal/chatError.ts"
import * as ChatReply from "./internal/chatReply.ts"
import * as ChatRequest from "./internal/chatRequest.ts"

/**
 * Which server and which of its models.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly model: string
  /** Where the API begins, with its version. Default: OpenAI's. */
  readonly baseUrl?: string | undefined
  readonly apiKey?: string | Redacted.Redacted | undefined
  /** Further headers of every request. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Further fields of every request's body, as the server takes them: `temperature`, `seed`, … */
  readonly body?: { readonly [field: string]: unknown } | undefined
}

/**
 * A model on such a server. Bring an HTTP client: `FetchHttpClient.layer`, or one of your platform.
 *
 * **Example** (A model of a server on this machine)
 *
 * ```ts
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 * import * as Layer from "effect/Layer"
 * import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
 *
 * export const Qwen = OpenAiCompatible.layer({ model: "qwen3", baseUrl: "http://localhost:11434/v1" }).pipe(
 *   Layer.provide(FetchHttpClient.layer)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient> =>
  Layer.unwrap(Effect.map(HttpClient.HttpClient, (client) => Provider.layer({ ask: asking(client, options) })))

const asking = (client: HttpClient.HttpClient, options: Options): Provider.Ask => {
  const url = `${(options.baseUrl ?? "https://api.openai.com/v1").replace(/\/+$/, "")}/chat/completions`
  const key = Redacted.isRedacted(options.apiKey) ? Redacted.value(options.apiKey) : options.apiKey
  const blank = HttpClientRequest.post(url).pipe(
    HttpClientRequest.setHeaders({
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...options.headers
    })
  )
  const write = ChatRequest.make(options.model, options.body ?? {})
  return (request, sink) =>
    Effect.suspend(() => {
      const body = write(request, sink !== undefined)
      const reader = ChatReply.make(`call_${request.messages.length}`)
      return client.execute(HttpClientRequest.bodyText(blank, body, "application/json")).pipe(
        Effect.flatMap((response) => answerOf(response, reader, sink, url)),
        Effect.catchTag("HttpClientError", (error) => Effect.fail(ChatError.fromHttp(error)))
      )
    })
}

const answerOf = Effect.fnUntraced(function*(
  response: HttpClientResponse.HttpClientResponse,
  reader: ChatReply.Reader,
  sink: Provider.Sink | undefined,
  url: string
) {
  if (response.status < 200 || response.status > 299) {
    return yield* Effect.fail(ChatError.fromStatus(response.status, yield* response.text, response.headers, url))
  }
  // A server may answer in one piece although it was asked for a stream.
  if (sink !== undefined && !(response.headers["content-type"] ?? "").includes("application/json")) {
    yield* readStream(response, reader, sink)
    return reader.finished() ? reader.reply() : yield* Effect.fail(ChatError.endedEarly(url))
  }
  const piece = yield* parsed(yield* response.text)
  if (!Array.isArray(Reflect.get(piece, "choices"))) {
    return yield* Effect.fail(ChatError.malformed(`an answer without choices from ${url}`))
  }
  const deltas = reader.read(piece)
  if (sink !== undefined && deltas.length > 0) yield* sink(deltas)
  return reader.reply()
})

const readStream = (response: HttpClientResponse.HttpClientResponse, reader: ChatReply.Reader, sink: Provider.Sink) => {
  let events: Array<Sse.AnyEvent> = []
  const parser = Sse.makeParser((event) => events.push(event))
  return Stream.runForEachArray(Stream.decodeText(response.stream), (chunk) => {
    for (const text of chunk) {
      const tooLarge = parser.feed(text)
      if (tooLarge !== undefined) return Effect.fail(ChatError.malformed(tooLarge.message))
    }
    const arrived = events
    events = []
    return readEvents(arrived, reader, sink)
  })
}

const readEvents = Effect.fnUntraced(function*(
  events: ReadonlyArray<Sse.AnyEvent>,
  reader: ChatReply.Reader,
  sink: Provider.Sink
) {
  const deltas: Array<Provider.Delta> = []
  let failure: AiError.AiError | undefined
  for (const event of events) {
    if (event._tag !== "Event") continue
    if (event.data === "[DONE]") {
      reader.end()
      continue
    }
    const piece = yield* Effect.result(parsed(event.data))
    if (Result.isFailure(piece)) {
      // Events of a name that the protocol does not have are not for us.
      if (event.event === "message") failure = piece.failure
      continue
    }
    const error: unknown = Reflect.get(piece.success, "error")
    if (error !== undefined && error !== null) failure = ChatError.fromStream(error)
    else deltas.push(...reader.read(piece.success))
    if (failure !== undefined) break
  }
  if (deltas.length > 0) yield* sink(deltas)
  if (failure !== undefined) return yield* Effect.fail(failure)
})

const parsed = (text: string): Effect.Effect<{ readonly [key: string]: unknown }, AiError.AiError> => {
  const result = Result.try((): unknown => JSON.parse(text))
  return Result.isSuccess(result) && typeof result.success === "object" && result.success !== null
    ? Effect.succeed(result.success as { readonly [key: string]: unknown }) // an object that came as JSON
    : Effect.fail(
      ChatError.malformed(`an answer that is not JSON: ${JSON.stringify(text.slice(0, 100).toWellFormed())}`)
    )
}
