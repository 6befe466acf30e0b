// What do servers send that call themselves compatible, and what becomes of it?
import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as Provider from "toolfold/Provider"
import type * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import {
  type Answer,
  ask,
  type Asked,
  call,
  chunk,
  done,
  failed,
  hi,
  json,
  lines,
  respond,
  sse,
  whole
} from "./chatHost.ts"

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

  const forms: ReadonlyArray<readonly [string, () => Response, unknown]> = [
    [
      "in the form before tools, whole",
      () => json(whole({ content: null, function_call: { name: "get", arguments: '{"a":1}' } }, "function_call")),
      '{"a":1}'
    ],
    [
      "in the form before tools, in pieces",
      () =>
        sse(
          chunk({ content: null, function_call: { name: "get", arguments: "" } }),
          chunk({ function_call: { arguments: '{"a"' } }),
          chunk({ function_call: { arguments: ":1}" } }),
          chunk({}, "function_call"),
          done
        ),
      '{"a":1}'
    ],
    [
      "with arguments that are an object, not its text",
      () => json(whole({ tool_calls: [{ function: { name: "get", arguments: { a: 1 } } }] })),
      '{"a":1}'
    ],
    [
      "with arguments that are a list, which is left for the tool to judge",
      () => json(whole({ tool_calls: [{ function: { name: "get", arguments: [1] } }] })),
      "[1]"
    ],
    [
      "with arguments that are null",
      () => json(whole({ tool_calls: [{ function: { name: "get", arguments: null } }] })),
      ""
    ]
  ]
  for (const [what, answer, args] of forms) {
    it.effect(`${what} are calls`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* ask(answer())).calls, [["call_1_0", "get", args]])
      }))
  }

  it.effect("go back with what the server hung on them, each with its own", () =>
    Effect.gen(function*() {
      const extra_content = { google: { thought_signature: "s" } }
      const answers = [
        json(whole({ tool_calls: [call("{}", { id: "a", extra_content }), call("{}", { id: "b" })] })),
        sse(
          chunk({ tool_calls: [call("{", { id: "a", index: 0, extra_content })] }),
          chunk({ tool_calls: [call("}", { index: 0 }, ""), call("{}", { id: "b", index: 1 })] }, "tool_calls"),
          done
        )
      ]
      for (const answer of answers) {
        const { reply } = yield* ask(answer)
        const messages = [hi, Prompt.assistantMessage({ content: reply.content })]
        const sent = (model: Partial<OpenAiCompatible.Options>) =>
          Effect.map(ask(json(whole({ content: "" })), { messages, model }), ({ body }) =>
            body.messages[1].tool_calls.map(({ extra_content, id }: any) => [id, extra_content]))
        assert.deepStrictEqual(yield* sent({ rulesOf: "gemini" }), [["a", extra_content], ["b", undefined]])
        assert.deepStrictEqual(yield* sent({ rulesOf: "openai" }), [["a", undefined], ["b", undefined]])
      }
    }))

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
  const pieces = [chunk({ content: "a" }), chunk({ content: "b" }, "stop")]
  const cost = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }
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
    [
      "with a message that is null is empty until there is one",
      sse({ choices: [{ delta: null }] }, ...pieces, done),
      both
    ],
    ["with chunks without choices is read past them", sse({ choices: [] }, { id: "x" }, ...pieces), both],
    ["without a reason is over at [DONE]", sse(chunk({ content: "ab" }), done), ["ab"]],
    ["without a reason and [DONE] is over at what it cost", sse(chunk({ content: "ab" }), cost), ["ab"]],
    ["without [DONE] is over at its reason", sse(...pieces), both],
    ["is read past comments and blank lines", sse(": PROCESSING", "", ...pieces, ": PROCESSING", done), both],
    ["that is whole is read past blank lines", respond(`\n\n \n${pretty}`, "application/json"), ["ab"]],
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

describe("usage", () => {
  const parts = { uncached: 40, total: 100, cacheRead: 60, cacheWrite: undefined }
  const out = { total: 40, text: 40, reasoning: undefined }
  const base = { prompt_tokens: 100, completion_tokens: 40 }
  type Of = Provider.Reply["usage"]
  const rows: ReadonlyArray<readonly [string, object, Of["inputTokens"], Of["outputTokens"]?]> = [
    ["a cache as OpenAI says it", { prompt_tokens_details: { cached_tokens: 60 } }, parts],
    ["a cache as DeepSeek says it", { prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 }, parts],
    ["a cache as Together says it", { cached_tokens: 60 }, parts],
    ["what was put into a cache", { prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } }, {
      uncached: 10,
      total: 100,
      cacheRead: 60,
      cacheWrite: 30
    }],
    [
      "a cache beside the prompt, as Anthropic counts",
      { cache_read_input_tokens: 500, cache_creation_input_tokens: 20, total_tokens: 140 },
      { uncached: 100, total: 620, cacheRead: 500, cacheWrite: 20 }
    ],
    ["a cache beside the prompt by the sum", { cached_tokens: 60, total_tokens: 200 }, {
      uncached: 100,
      total: 160,
      cacheRead: 60,
      cacheWrite: undefined
    }],
    ["more of a cache than there is by the sum", { cached_tokens: 130, total_tokens: 140 }, {
      uncached: 0,
      total: 100,
      cacheRead: 100,
      cacheWrite: undefined
    }],
    ["thoughts in the answer", { completion_tokens_details: { reasoning_tokens: 30 }, cached_tokens: 60 }, parts, {
      total: 40,
      text: 10,
      reasoning: 30
    }],
    [
      "thoughts beside the answer, as xAI counts",
      { completion_tokens_details: { reasoning_tokens: 30 }, cached_tokens: 60, total_tokens: 170 },
      parts,
      { total: 70, text: 40, reasoning: 30 }
    ]
  ]
  for (const [what, usage, inputTokens, outputTokens = out] of rows) {
    it.effect(`is in parts that do not overlap: ${what}`, () =>
      Effect.gen(function*() {
        const { reply } = yield* ask(json({ ...whole({ content: "a" }), usage: { ...base, ...usage } }))
        assert.deepStrictEqual(reply.usage, { inputTokens, outputTokens })
      }))
  }

  it.effect("is found where a stream has it: in a chunk of its own, in the last choice, or under a name of the host", () =>
    Effect.gen(function*() {
      const [choice] = chunk({}, "stop").choices
      const streams = [
        sse(chunk({ content: "a" }, "stop"), { choices: [], usage: base }, done),
        sse(chunk({ content: "a" }), { ...chunk({}, "stop"), usage: base }, done),
        sse(chunk({ content: "a" }), { choices: [{ ...choice, usage: base }], usage: null }, done),
        sse(chunk({ content: "a" }), { ...chunk({}, "stop"), x_groq: { usage: base } }, done)
      ]
      for (const stream of streams) {
        assert.deepStrictEqual((yield* ask(stream)).reply.usage, {
          inputTokens: { uncached: 100, total: 100, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: out
        })
      }
    }))

  it.effect("has beside it the model that answered, and nothing where the server does not say it", () =>
    Effect.gen(function*() {
      const of = (answer: Response) => Effect.map(ask(answer), ({ reply }) => [reply.model, "model" in reply])
      const model = "gpt-4o-2024-08-06"
      assert.deepStrictEqual(yield* of(json({ ...whole({ content: "a" }), model })), [model, true])
      assert.deepStrictEqual(yield* of(sse({ ...chunk({ content: "a" }, "stop"), model }, done)), [model, true])
      assert.deepStrictEqual(yield* of(sse(chunk({ content: "a" }, "stop"), done)), [undefined, false])
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
    [403, "Your input was flagged", "ContentPolicyError", false],
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

  const tooLong = "the transcript is too long for the model"
  const bodies: ReadonlyArray<readonly [string, number, unknown, string, string]> = [
    [
      "a wrong key that is called a bad request",
      401,
      { error: { message: "Incorrect API key", type: "invalid_request_error" } },
      "AuthenticationError",
      "InvalidKey: Verify your API key is correct. Incorrect API key [invalid_request_error] (HTTP 401)"
    ],
    [
      "a filter",
      400,
      { error: { code: "content_filter", message: "Filtered", innererror: { code: "ResponsibleAIPolicyViolation" } } },
      "ContentPolicyError",
      "Content policy violation: Filtered [content_filter] (HTTP 400)"
    ],
    [
      "a list of one error",
      400,
      [{ error: { code: 400, message: "Missing a signature", status: "INVALID_ARGUMENT" } }],
      "InvalidRequestError",
      "Invalid request. Missing a signature (HTTP 400)"
    ],
    [
      "a gateway's words and those of the one behind it",
      400,
      { error: { message: "Provider returned error", code: 400, metadata: { raw: "no such field" } } },
      "InvalidRequestError",
      "Invalid request. Provider returned error: no such field (HTTP 400)"
    ],
    [
      "a prompt that is too long, by its words",
      400,
      { error: { message: "prompt too long; exceeded max context length by 9 tokens", type: "invalid_request_error" } },
      "InvalidRequestError",
      `Invalid request. prompt too long; exceeded max context length by 9 tokens [invalid_request_error] (HTTP 400): ${tooLong}`
    ],
    [
      "a prompt that is too long, by its code",
      400,
      { error: { message: "No", code: "context_length_exceeded" } },
      "InvalidRequestError",
      `Invalid request. No [context_length_exceeded] (HTTP 400): ${tooLong}`
    ],
    [
      "an id that is too long",
      400,
      { error: { message: "Invalid 'messages[1].tool_calls[0].id': string too long." } },
      "InvalidRequestError",
      "Invalid request. Invalid 'messages[1].tool_calls[0].id': string too long. (HTTP 400)"
    ],
    [
      "a body that is too large",
      413,
      { error: { message: "No" } },
      "InvalidRequestError",
      `Invalid request. No (HTTP 413): ${tooLong}`
    ]
  ]
  for (const [what, status, body, tag, message] of bodies) {
    it.effect(`is typed by what the server means and says it: ${what}`, () =>
      Effect.gen(function*() {
        const reason = yield* failed(json(body, status))
        assert.deepStrictEqual([reason._tag, reason.message], [tag, message])
      }))
  }

  it.effect("of a rate limit says how long to wait also where the body does, and of a day's limit that it is used up", () =>
    Effect.gen(function*() {
      const of = (error: object) =>
        Effect.map(
          failed(json({ error }, 429)),
          (reason) =>
            reason._tag === "RateLimitError" ? reason.retryAfter && Duration.toMillis(reason.retryAfter) : reason._tag
        )
      const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "38s" }]
      assert.deepStrictEqual(yield* of({ message: "Quota exceeded.", details }), 38_000)
      assert.deepStrictEqual(yield* of({ message: "Please try again in 1.574s." }), 1_574)
      assert.deepStrictEqual(yield* of({ message: "slow down" }), undefined)
      assert.deepStrictEqual(yield* of({ message: "Limit exceeded: free-models-per-day" }), "QuotaExhaustedError")
    }))

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
