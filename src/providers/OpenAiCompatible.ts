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
import * as ChatTraits from "./internal/chatTraits.ts"
import type { Takes } from "./internal/chatTraits.ts"
import { type Json, list, object } from "./internal/json.ts"

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
  /** Sent as a bearer token; empty is none. */
  readonly apiKey?: string | Redacted.Redacted | undefined
  /** Further headers of every request. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Further fields of every request's body, as the server takes them; a setting of the loop goes before the same one. */
  readonly body?: { readonly [field: string]: unknown } | undefined
  /**
   * Whose rules hold where the base URL does not say it, as for a gateway or a proxy: `"openai"`, `"azure"`,
   * `"anthropic"`, `"cerebras"`, `"dashscope"`, `"deepseek"`, `"foundry"`, `"gemini"`, `"groq"`, `"mistral"`,
   * `"moonshot"`, `"ollama"`, `"openrouter"`, `"xai"`, `"zai"`, or the host's address.
   */
  readonly rulesOf?: string | undefined
  /** What the server takes, where that is otherwise than is known of it. */
  readonly takes?: { readonly [K in keyof Takes]?: Takes[K] | undefined } | undefined
}

export type { Takes } from "./internal/chatTraits.ts"

/**
 * A model on such a server. Bring an HTTP client: `FetchHttpClient.layer`, or one of your platform.
 *
 * **Details**
 *
 * What a server takes is known by its base URL and the model's name, for OpenAI, Azure, OpenRouter, Groq, xAI, Mistral,
 * DeepSeek, Moonshot, Z.ai, DashScope, Gemini, Anthropic, Cerebras and Ollama; of any other the protocol's own rules are
 * assumed. `rulesOf` names the rules for a server behind an address of its own, and `takes` changes any of them. What is
 * not sent is said in the reply's `warnings`.
 *
 * Names of tools and ids of calls that the server would refuse are replaced by ones that it takes, and come back as they
 * were. Tools that ask to be strict have their schemas narrowed to what strict means, and those that cannot be are sent
 * as they are. What a model thought goes back to a server that wants it. A file in a result follows it in a message of
 * the user, since a result is text here.
 *
 * It fails with an `AiError` whose reason says what to do: `RateLimitError` with `retryAfter` where the server says how
 * long, `QuotaExhaustedError`, `AuthenticationError`, `ContentPolicyError`, `InvalidRequestError` (also for a transcript
 * that is too long for the model, which it says, and for more tools than the server takes, before anything is sent),
 * `InternalProviderError`, `NetworkError` (also for a stream that ends before the answer does), `InvalidResponseError`.
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
 * **Example** (A gateway under an address of one's own, to a model that takes no schema for its answer)
 *
 * ```ts
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 * import * as Layer from "effect/Layer"
 * import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
 *
 * export const Gateway = OpenAiCompatible.layer({
 *   model: "house-model",
 *   baseUrl: "https://llm.example.com/v1",
 *   rulesOf: "openai",
 *   takes: { format: "json_object", maxTools: 64 }
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient> =>
  Layer.unwrap(Effect.map(HttpClient.HttpClient, (client) => Provider.layer({ ask: asking(client, options) })))

const asking = (client: HttpClient.HttpClient, options: Options): Provider.Ask => {
  const base = options.baseUrl ?? "https://api.openai.com/v1"
  const key = (Redacted.isRedacted(options.apiKey) ? Redacted.value(options.apiKey) : options.apiKey ?? "").trim()
  const headers = { ...(key === "" ? {} : { authorization: `Bearer ${key}` }), ...options.headers }
  const url = URL.canParse(base) ? endpoint(base) : base
  const errors = ChatError.make(url, [key, ...Object.values(options.headers ?? {})])
  const problem = problemOf(base, headers)
  if (problem !== undefined) return () => Effect.fail(errors.unsendable(problem))
  const blank = HttpClientRequest.post(url).pipe(HttpClientRequest.setHeaders(headers))
  const { hostname, host } = new URL(base)
  const server = options.rulesOf ?? host
  const write = ChatRequest.make({
    model: options.model,
    server: options.rulesOf ?? hostname,
    traits: ChatTraits.of(server, options.model, options.takes ?? {}),
    extra: options.body ?? {}
  })
  return (request, sink) =>
    Effect.suspend(() => {
      const tried = Result.try(() => write(request, sink !== undefined))
      if (Result.isFailure(tried)) return Effect.fail(errors.unsendable(`the transcript is no JSON: ${tried.failure}`))
      if (Result.isFailure(tried.success)) return Effect.fail(errors.unsendable(tried.success.failure))
      const { body, ...rest } = tried.success.success
      const reader = ChatReply.make({ idPrefix: `call_${request.messages.length}`, ...rest })
      const answer: Answer = { reader, errors, sink }
      return client.execute(HttpClientRequest.bodyText(blank, body, "application/json")).pipe(
        Effect.flatMap((response) => read(response, answer)),
        Effect.catchTag("HttpClientError", (error) => Effect.fail(errors.http(error)))
      )
    })
}

const problemOf = (base: string, headers: { readonly [name: string]: string }): string | undefined => {
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    return `the base URL is no http URL: ${base.replace(/^.*@/s, "<redacted>@")}`
  }
  const illegal = Object.entries(headers).find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value))
  return illegal === undefined ? undefined : `header ${illegal[0]} has characters that no header may have`
}

const endpoint = (base: string): string => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`
  return url.href
}

/** One answer while it is read. */
interface Answer {
  readonly reader: ChatReply.Reader
  readonly errors: ChatError.Errors
  readonly sink: Provider.Sink | undefined
}

type Reading<A> = Effect.Effect<A, AiError.AiError>

const read = Effect.fnUntraced(function*(response: HttpClientResponse.HttpClientResponse, answer: Answer) {
  const { errors, sink } = answer
  if (response.status < 200 || response.status > 299) {
    return yield* Effect.fail(errors.status(response.status, yield* beginning(response), response.headers))
  }
  return sink === undefined ? yield* readWhole(yield* response.text, answer) : yield* readStream(response, answer)
})

/** As much of an error's body as anybody reads. */
const beginning = (response: HttpClientResponse.HttpClientResponse) => {
  let body = ""
  return Stream.decodeText(response.stream).pipe(
    Stream.takeUntil((text) => (body += text).length > 64_000),
    Stream.runDrain,
    Effect.map(() => body.slice(0, 64_000))
  )
}

const readWhole = (body: string, answer: Answer): Reading<Provider.Reply> => {
  const { errors, reader, sink } = answer
  const json = ChatReply.parse(body)
  if (json === undefined) {
    // A server may stream although it was not asked to.
    if (/^\s*(?:data|event|id|retry)?:/.test(body)) return readText(body, answer)
    return Effect.fail(errors.malformed("an answer that is not JSON", body))
  }
  const error = errorOf(json)
  if (error !== undefined) return Effect.fail(errors.said(error))
  if (list(json.choices).length === 0) return Effect.fail(errors.malformed("an answer without choices"))
  const deltas = reader.whole(json)
  const reply = Effect.sync(reader.reply)
  return sink === undefined || deltas.length === 0 ? reply : Effect.andThen(sink(deltas), reply)
}

/** An error that came in the place of an answer. */
const errorOf = (json: Json): unknown => {
  const [choice] = list(json.choices).map(object)
  const error = json.error ?? choice?.error
  if (error !== undefined && error !== null && error !== "") return error
  return choice === undefined && (json.object === "error" || json.type === "error") ? json : undefined
}

/** Reads a stream up to the server's last word; what comes after that, or instead of its end, changes nothing. */
const readStream = (response: HttpClientResponse.HttpClientResponse, answer: Answer) => {
  const { errors, reader } = answer
  const events = eventReader(answer)
  return Stream.decodeText(response.stream).pipe(
    Stream.mapArrayEffect((chunk) => Effect.map(events.read(chunk), (isOver) => [isOver] as const)),
    Stream.takeUntil((isOver) => isOver),
    Stream.runDrain,
    Effect.catchTag("HttpClientError", (error) => reader.finished() ? Effect.void : Effect.fail(errors.http(error))),
    Effect.andThen(events.close)
  )
}

const readText = (body: string, answer: Answer): Reading<Provider.Reply> => {
  const events = eventReader(answer)
  return Effect.andThen(events.read([body]), events.close)
}

const eventReader = (answer: Answer) => {
  const { errors, reader, sink } = answer
  let events: Array<Sse.Event> = []
  let seen = 0
  let raw = ""
  const parser = Sse.makeParser((event) => event._tag === "Event" && events.push(event))
  const read = (chunk: ReadonlyArray<string>): Reading<boolean> => {
    for (const text of chunk) {
      if (seen === 0 && events.length === 0) raw += text
      const tooLarge = parser.feed(text)
      if (tooLarge !== undefined) return Effect.fail(errors.malformed(tooLarge.message))
    }
    const arrived = events
    events = []
    seen += arrived.length
    const { deltas, failure, isOver } = take(arrived, answer)
    const shown = sink === undefined || deltas.length === 0 ? Effect.void : sink(deltas)
    return Effect.andThen(shown, failure === undefined ? Effect.succeed(isOver) : Effect.fail(failure))
  }
  return {
    read,
    // The last event may lack the blank line that ends it.
    close: Effect.flatMap(Effect.suspend(() => read(["\n\n"])), () => {
      if (seen === 0) return readWhole(raw.trimEnd(), answer)
      return reader.finished() ? Effect.succeed(reader.reply()) : Effect.fail(errors.endedEarly())
    })
  }
}

interface Taken {
  readonly deltas: ReadonlyArray<Provider.Delta>
  readonly failure?: AiError.AiError
  readonly isOver: boolean
}

const take = (events: ReadonlyArray<Sse.Event>, { errors, reader }: Answer): Taken => {
  const deltas: Array<Provider.Delta> = []
  for (const { data, event } of events) {
    if (data.trim() === "[DONE]") {
      reader.end()
      return { deltas, isOver: true }
    }
    const json = ChatReply.parse(data)
    const error = json === undefined ? undefined : errorOf(json)
    // Nothing that follows a complete answer takes it back.
    if (reader.finished() && (json === undefined || error !== undefined)) continue
    if (event === "error" || error !== undefined) {
      return { deltas, failure: errors.said(error ?? json ?? data), isOver: true }
    }
    if (json !== undefined) { for (const delta of reader.piece(json)) deltas.push(delta) }
    // Events of a name that the protocol does not have are not for us.
    else if (event === "message") {
      return { deltas, failure: errors.malformed("an event that is not JSON", data), isOver: true }
    }
  }
  return { deltas, isOver: false }
}
