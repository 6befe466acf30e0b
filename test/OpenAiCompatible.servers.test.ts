// What do servers send that call themselves compatible, and what becomes of it?
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Provider from "toolfold/Provider"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as Tool from "toolfold/Tool"

type Answer = Response | ((request: HttpClientRequest.HttpClientRequest) => HttpClientError.HttpClientError)

interface Asked extends Partial<Provider.Request> {
  readonly model?: Partial<OpenAiCompatible.Options>
  /** Nobody listens, so no stream is asked for. */
  readonly plain?: boolean
}

const hi = Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" })] })

/** Asks a server in this process once: what it was sent, what was shown of its answer, and the reply. */
const ask = (answer: Answer, { model, plain = false, ...request }: Asked = {}) => {
  const sent: Array<any> = []
  const shown: Array<Provider.Delta> = []
  const client = HttpClient.make((request) =>
    Effect.suspend(() => {
      sent.push(request.body._tag === "Uint8Array" && JSON.parse(new TextDecoder().decode(request.body.body)))
      return answer instanceof Response
        ? Effect.succeed(HttpClientResponse.fromWeb(request, answer))
        : Effect.fail(answer(request))
    })
  )
  const sink = (deltas: ReadonlyArray<Provider.Delta>) => Effect.sync(() => void shown.push(...deltas))
  return Effect.gen(function*() {
    const ask = Provider.askOf(yield* LanguageModel.LanguageModel)
    const asked: Provider.Request = { messages: [hi], table: Tool.table([]), toolChoice: "auto", ...request }
    const reply = yield* ask(asked, plain ? undefined : sink)
    const text = reply.content.map((part) => part.type === "text" ? part.text : "").join("")
    const calls = reply.content.flatMap((part) => part.type === "tool-call" ? [[part.id, part.name, part.params]] : [])
    return { reply, text, calls, shown, body: sent[0] }
  }).pipe(Effect.provide(
    OpenAiCompatible.layer({ model: "m", baseUrl: "http://host/v1", ...model }).pipe(
      Layer.provide(Layer.succeed(HttpClient.HttpClient)(client))
    )
  ))
}

/** The error of such a question. */
const failed = (answer: Answer, asked?: Asked) => Effect.map(Effect.flip(ask(answer, asked)), ({ reason }) => reason)

const respond = (body: BodyInit, type: string | undefined, status = 200) => {
  const response = new Response(body, { status })
  response.headers.delete("content-type")
  if (type !== undefined) response.headers.set("content-type", type)
  return response
}
const json = (body: unknown, status = 200) => respond(JSON.stringify(body), "application/json", status)
const lines = (...events: ReadonlyArray<unknown>) =>
  events.map((event) => `${typeof event === "string" ? event : `data: ${JSON.stringify(event)}`}\n\n`).join("")
const sse = (...events: ReadonlyArray<unknown>) => respond(lines(...events), "text/event-stream")

const whole = (message: object, finish_reason = "stop") => ({ choices: [{ message, finish_reason }] })
const chunk = (delta: object, finish_reason: string | null = null) => ({ choices: [{ delta, finish_reason }] })
const call = (args: string, more: object = {}, name = "get") => ({ ...more, function: { name, arguments: args } })
const done = "data: [DONE]"

/** A body longer than anybody should read, and how much of it was read, and whether it was let go. */
const long = (...pieces: readonly [string, ...ReadonlyArray<string>]) => {
  const seen = { pulls: 0, isCancelled: false }
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (seen.pulls === 1_000) return controller.close()
      controller.enqueue(encoder.encode(pieces[seen.pulls++] ?? pieces.at(-1)))
    },
    cancel: () => {
      seen.isCancelled = true
    }
  })
  return { seen, body }
}

describe("calls", () => {
  const none = undefined
  type Piece = readonly [id: string | undefined, index: number | undefined, name: string, args: string]
  const streams: ReadonlyArray<readonly [string, ReadonlyArray<Piece>, ReadonlyArray<unknown>]> = [
    [
      "a fresh id in every piece of one index are one call",
      [["x", 0, "get", '{"a"'], ["y", 0, "", ":1"], ["z", 0, "", "}"]],
      [["x", "get", '{"a":1}']]
    ],
    [
      "ids and no indexes are told apart by id, in whatever order the pieces come",
      [["x", none, "get", '{"a"'], ["y", none, "get", '{"b"'], ["x", none, "", ":1}"], ["y", none, "", ":2}"]],
      [["x", "get", '{"a":1}'], ["y", "get", '{"b":2}']]
    ],
    [
      "ids and one index for all are told apart by id, in whatever order the pieces come",
      [["x", 0, "get", '{"a"'], ["y", 0, "get", '{"b"'], ["x", 0, "", ":1}"], ["y", 0, "", ":2}"]],
      [["x", "get", '{"a":1}'], ["y", "get", '{"b":2}']]
    ],
    [
      "indexes alone are told apart by index, in whatever order the pieces come",
      [[none, 0, "get", '{"a"'], [none, 1, "get", '{"b"'], [none, 1, "", ":2}"], [none, 0, "", ":1}"]],
      [["call_1_0", "get", '{"a":1}'], ["call_1_1", "get", '{"b":2}']]
    ]
  ]
  for (const [what, pieces, expected] of streams) {
    it.effect(`streamed with ${what}`, () =>
      Effect.gen(function*() {
        const chunks = pieces.map(([id, index, name, args]) => chunk({ tool_calls: [call(args, { id, index }, name)] }))
        assert.deepStrictEqual((yield* ask(sse(...chunks, chunk({}, "stop"), done))).calls, expected)
      }))
  }

  const messages: ReadonlyArray<readonly [string, object, ReadonlyArray<string>]> = [
    ["equal ids", { id: "x" }, ["x", "x"]],
    ["equal ids and indexes", { id: "x", index: 0 }, ["x", "x"]],
    ["equal indexes and no ids", { index: 0 }, ["call_1_0", "call_1_1"]],
    ["neither ids nor indexes", {}, ["call_1_0", "call_1_1"]]
  ]
  for (const [what, same, [first, second]] of messages) {
    it.effect(`in one message with ${what} are as many calls as there are elements`, () =>
      Effect.gen(function*() {
        const { calls } = yield* ask(json(whole({ tool_calls: [call("", same), call("", same)] })))
        assert.deepStrictEqual(calls, [[first, "get", ""], [second, "get", ""]])
      }))
  }
})

describe("an answer", () => {
  for (const field of ["reasoning_content", "reasoning"]) {
    it.effect(`whose thoughts are called ${field} goes back with them under that name`, () =>
      Effect.gen(function*() {
        for (
          const answer of [
            json(whole({ [field]: "hm", content: "yes" })),
            sse(chunk({ [field]: "h" }), chunk({ [field]: "m" }), chunk({ content: "yes" }, "stop"), done)
          ]
        ) {
          const { reply } = yield* ask(answer)
          const messages = [hi, Prompt.assistantMessage({ content: reply.content })]
          const { body } = yield* ask(json(whole({ content: "" })), { messages })
          assert.deepStrictEqual(body.messages[1], { role: "assistant", content: "yes", [field]: "hm" })
        }
      }))
  }

  const both = ["a", "b"]
  const fine = lines(chunk({ content: "a" }), chunk({ content: "b" }, "stop"))
  const pretty = `${JSON.stringify(whole({ content: "ab" }), null, 2)}\n`
  const twice = (said: string, soFar: string, finish_reason: string | null) => ({
    choices: [{ delta: { content: said }, message: { content: soFar }, finish_reason }]
  })
  const late = [chunk({ content: "c" }), { error: { message: "late" } }]
  const readings: ReadonlyArray<readonly [string, Response, ReadonlyArray<string>, Asked?]> = [
    ["that is a stream called JSON is read as a stream", respond(fine, "application/json"), both],
    ["that is a stream called nothing is read as a stream", respond(fine, undefined), both],
    ["that is a stream nobody asked for is read as a stream", respond(fine, undefined), [], { plain: true }],
    ["that is JSON called a stream is read as JSON", respond(pretty, "text/event-stream"), ["ab"]],
    ["whose last event no blank line ends has that event too", respond(fine.trimEnd(), undefined), both],
    ["with a message in the place of its pieces is read all the same", sse(whole({ content: "ab" })), ["ab"]],
    ["whose pieces hold the message so far says it once", sse(twice("a", "a", null), twice("b", "ab", "stop")), both],
    ["that is whole and holds a piece says it once", json(twice("b", "ab", "stop")), ["ab"]],
    ["is over at [DONE], whatever comes after it", sse(chunk({ content: "ab" }), done, ...late), ["ab"]]
  ]
  for (const [what, answer, pieces, asked] of readings) {
    it.effect(what, () =>
      Effect.gen(function*() {
        const { shown, text } = yield* ask(answer, asked)
        assert.deepStrictEqual([text, shown.map(({ delta }) => delta)], ["ab", pieces])
      }))
  }

  it.effect("lets go of a connection that goes on after [DONE]", () =>
    Effect.gen(function*() {
      const { body, seen } = long(lines(chunk({ content: "a" }, "stop")), lines(done), ": still here\n\n")
      const { text } = yield* ask(respond(body, "text/event-stream"))
      assert.deepStrictEqual([text, seen.isCancelled], ["a", true])
    }))

  it.effect("that is a refusal is shown as text and has content-filter as its reason", () =>
    Effect.gen(function*() {
      for (
        const [answer, pieces] of [
          [json(whole({ content: null, refusal: "I will not." })), ["I will not."]],
          [sse(chunk({ refusal: "I will " }), chunk({ refusal: "not." }, "stop"), done), ["I will ", "not."]]
        ] as const
      ) {
        const { reply, shown, text } = yield* ask(answer)
        assert.deepStrictEqual([reply.finish, text], ["content-filter", "I will not."])
        assert.deepStrictEqual(shown, pieces.map((delta) => ({ type: "text", delta })))
      }
    }))
})

describe("an error", () => {
  const noRoom = { message: "No room" }
  const said = "Internal provider error: No room"
  const choices = [{ error: noRoom, message: { content: "" }, finish_reason: "stop" }]
  const coded = [{ error: { ...noRoom, code: 502 }, delta: {}, finish_reason: "error" }]
  const early = "TransportError: the stream ended before the answer did (POST http://host/v1/chat/completions)\n\n" +
    "Check your network connection and verify that the requested URL is accessible."
  const failures: ReadonlyArray<readonly [string, Response, string, string]> = [
    ["an error event in words", sse("event: error\ndata: No room"), "InternalProviderError", said],
    ["an error event in JSON", sse('event: error\ndata: {"message":"No room"}'), "InternalProviderError", said],
    ["an error object as an event", sse({ object: "error", ...noRoom }, done), "InternalProviderError", said],
    ["an error object as the body", json({ object: "error", ...noRoom }), "InternalProviderError", said],
    ["an error by type as the body", json({ type: "error", ...noRoom }), "InternalProviderError", `${said} [error]`],
    ["an error in a choice of the body", json({ choices }), "InternalProviderError", said],
    ["an error in a choice of an event", sse({ choices: coded }, done), "InternalProviderError", `${said} (HTTP 502)`],
    ["no choices", json({ choices: [] }), "InvalidResponseError", "Invalid response: an answer without choices"],
    ["nothing but [DONE]", sse(done), "NetworkError", early],
    ["nothing", sse(), "InvalidResponseError", 'Invalid response: an answer that is not JSON: ""']
  ]
  for (const [what, answer, tag, message] of failures) {
    it.effect(`is what a 200 with ${what} is`, () =>
      Effect.gen(function*() {
        const reason = yield* failed(answer)
        assert.deepStrictEqual([reason._tag, reason.message], [tag, message])
      }))
  }

  const statuses: ReadonlyArray<readonly [number, string, string, boolean]> = [
    [402, "pay first", "QuotaExhaustedError", false],
    [408, "too slow", "InternalProviderError", true],
    [409, "in conflict", "InternalProviderError", true],
    [429, "slow down", "RateLimitError", true],
    [429, "Request too large for m: limit 6000, requested 9000", "InvalidRequestError", false],
    [413, "Request too large", "InvalidRequestError", false]
  ]
  for (const [status, message, tag, isRetryable] of statuses) {
    it.effect(`of status ${status} that says "${message}" is ${tag}, ${isRetryable ? "worth" : "not worth"} a retry`, () =>
      Effect.gen(function*() {
        const reason = yield* failed(json({ error: { message } }, status))
        assert.deepStrictEqual([reason._tag, reason.isRetryable], [tag, isRetryable])
      }))
  }

  it.effect("has a body that is read up to a bound and told in a few words", () =>
    Effect.gen(function*() {
      const { body, seen } = long("x".repeat(1_000))
      const reason = yield* failed(respond(body, "text/plain", 500))
      assert.deepStrictEqual(reason.message, `Internal provider error: ${"x".repeat(500)}… (HTTP 500)`)
      assert.isTrue(seen.isCancelled)
      assert.isBelow(seen.pulls, 100)
    }))

  const noUrl = "the base URL is no http URL: "
  const illegal = (name: string) => `header ${name} has characters that no header may have`
  const unsendable: ReadonlyArray<readonly [string, Partial<OpenAiCompatible.Options>, string]> = [
    ["a line break in a header", { headers: { "x-a": "a\r\nx-b: b" } }, illegal("x-a")],
    ["a key of other letters", { apiKey: "ключ" }, illegal("authorization")],
    ["no base URL", { baseUrl: "" }, noUrl],
    ["a base URL without a scheme", { baseUrl: "localhost:80/v1" }, `${noUrl}localhost:80/v1`],
    ["a base URL of another scheme", { baseUrl: "ftp://host/v1" }, `${noUrl}ftp://host/v1`]
  ]
  for (const [what, model, why] of unsendable) {
    it.effect(`is what ${what} is, and nothing is sent`, () =>
      Effect.gen(function*() {
        const { _tag, message } = yield* failed(() => assert.fail("was sent"), { model })
        assert.deepStrictEqual([_tag, message], ["InvalidRequestError", `Invalid request. ${why}`])
      }))
  }

  const model = {
    baseUrl: "https://user:p%40ss-word@host/v1",
    apiKey: "sk-key",
    headers: { "x-token": 'cut"glass', authorization: "Bearer sk-bearer" }
  }
  const echo = `got sk-key, cut"glass and Bearer sk-bearer (sk-bearer) at ${model.baseUrl}`
  const broken: Answer = (request) => {
    const cause = new TypeError("failed", { cause: new Error(echo) })
    return new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
  }
  const leaks: ReadonlyArray<readonly [string, Answer, Partial<OpenAiCompatible.Options>?]> = [
    ["whose message repeats them", json({ error: { message: echo } }, 401)],
    ["whose code repeats them", json({ error: { message: "no", code: echo } }, 400)],
    ["of a form nobody knows", json({ error: { what: echo } }, 500)],
    ["in words", respond(echo, "text/plain", 404)],
    ["within a 200", sse({ error: { message: echo } })],
    ["of an answer that is no JSON", respond(echo, "application/json")],
    ["of an answer that is no JSON and is cut within them", respond("-".repeat(92) + echo, "text/plain")],
    ["of an event that is no JSON", sse(`data: ${echo}`)],
    ["of the connection", broken],
    ["of a header", json({}), { headers: { "x-token": 'cut"glass\n' } }],
    ["of a base URL", json({}), { baseUrl: "http://user:p/@ss-word@host" }]
  ]
  for (const [what, answer, more] of leaks) {
    it.effect(`${what} shows neither key nor header nor what a URL says of its user`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ask(answer, { model: { ...model, ...more } }))
        const all = `${JSON.stringify(error)} ${error.message} ${String(error)} ${error.stack}`
        assert.deepStrictEqual(all.match(/sk-\w*|cut\W*glass|user:|ss-word/g), null, all)
      }))
  }
})

describe("a request", () => {
  it.effect("for JSON calls it by a name that every server takes", () =>
    Effect.gen(function*() {
      const schema = { type: "object", properties: {} } as const
      const formats = yield* Effect.forEach(["Form/2 é", "n".repeat(70), "a-B_1"], (name) =>
        Effect.map(ask(json(whole({ content: "{}" })), { format: { name, schema } }), ({ body }) =>
          body.response_format))
      assert.deepStrictEqual(
        formats,
        ["Form_2__", "n".repeat(64), "a-B_1"].map((name) => ({ type: "json_schema", json_schema: { name, schema } }))
      )
    }))
})
