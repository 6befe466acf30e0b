import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief } from "./utils.ts"

interface Sent {
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly text: string
  readonly body: any
}

/** A server in this process: answers one after the other, and keeps what it was sent. */
const server = (...answers: ReadonlyArray<Response>) => {
  const sent: Array<Sent> = []
  const pending = answers.slice()
  const layer = Layer.succeed(HttpClient.HttpClient)(HttpClient.make((request) =>
    Effect.sync(() => {
      const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      sent.push({ url: request.url, headers: request.headers, text, body: JSON.parse(text) })
      return HttpClientResponse.fromWeb(request, pending.shift() ?? new Response("no further answer", { status: 500 }))
    })
  ))
  return { sent, layer }
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(typeof body === "string" ? body : JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", ...headers }
  })

const sse = (...events: ReadonlyArray<unknown>) =>
  new Response(
    events.map((event) => typeof event === "string" ? `${event}\n\n` : `data: ${JSON.stringify(event)}\n\n`).join(""),
    {
      headers: { "content-type": "text/event-stream" }
    }
  )

const message = (
  message: object,
  finish_reason: string | null = "stop",
  usage: object = { prompt_tokens: 10, completion_tokens: 4 }
) => ({
  choices: [{ message, finish_reason }],
  usage
})
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }]
})
const done = "data: [DONE]"

const get = Tool.make("get", {
  description: "Gets",
  input: { a: Schema.Int },
  output: Schema.Struct({ b: Schema.Int }),
  handler: ({ a }) => Effect.succeed({ b: a + 1 })
})

const ask = (
  { layer }: ReturnType<typeof server>,
  options: AgentLoop.RunOptions & { readonly instructions?: string } = {},
  model: Partial<OpenAiCompatible.Options> = {}
) =>
  AgentLoop.run(AgentLoop.make("bot", { instructions: options.instructions }), { prompt: "hi", ...options }).pipe(
    Effect.provide(ToolRegistry.layer(get)),
    Effect.provide(
      OpenAiCompatible.layer({ model: "m", baseUrl: "http://host/v1/", ...model }).pipe(Layer.provide(layer))
    )
  )

const streamed = { onText: () => undefined }
const calls = (result: AgentLoop.Result) =>
  result.turns.flatMap((turn) => turn.calls.map(({ id, input, name }) => [id, name, input]))

describe("a request", () => {
  it.effect("is what the protocol says: model, tools, messages, and results by the ids of their calls", () =>
    Effect.gen(function*() {
      const host = server(
        json(
          message({
            content: null,
            tool_calls: [{ id: "c1", type: "function", function: { name: "get", arguments: '{"a": 1}' } }]
          }, "tool_calls")
        ),
        json(message({ content: "done" }))
      )
      const result = yield* ask(host, { instructions: "be kind" }, {
        apiKey: Redacted.make("secret"),
        body: { temperature: 0 }
      })
      assert.strictEqual(result.text, "done")
      const [first, second] = host.sent
      assert.deepStrictEqual([first?.url, first?.headers.authorization, first?.headers["content-type"]], [
        "http://host/v1/chat/completions",
        "Bearer secret",
        "application/json"
      ])
      assert.deepStrictEqual(first?.body, {
        model: "m",
        temperature: 0,
        tools: [{
          type: "function",
          function: { name: "get", description: "Gets", parameters: Tool.schema(get).input_schema }
        }],
        messages: [{ role: "system", content: "be kind" }, { role: "user", content: "hi" }]
      })
      assert.deepStrictEqual(second?.body.messages.slice(2), [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "get", arguments: '{"a":1}' } }]
        },
        { role: "tool", tool_call_id: "c1", content: '{"b":2}' }
      ])
    }))

  it.effect("begins with the same bytes as the one before", () =>
    Effect.gen(function*() {
      const call = (id: string) =>
        json(message({ tool_calls: [{ id, function: { name: "get", arguments: '{"a":1}' } }] }, "tool_calls"))
      const host = server(call("1"), call("2"), call("3"), json(message({ content: "done" })))
      yield* ask(host)
      for (const [at, { text }] of host.sent.slice(1).entries()) {
        const before = host.sent[at]!.text
        assert.isTrue(text.startsWith(before.slice(0, before.lastIndexOf("]"))), text)
      }
    }))

  it.effect("asks for a stream, and for its usage, only when somebody listens", () =>
    Effect.gen(function*() {
      const host = server(json(message({ content: "a" })), sse(chunk({ content: "a" }, "stop"), done))
      yield* ask(host)
      yield* ask(host, streamed)
      assert.deepStrictEqual(host.sent.map(({ body }) => [body.stream, body.stream_options]), [[undefined, undefined], [
        true,
        { include_usage: true }
      ]])
    }))

  it.effect("carries images and files, and says what it is", () =>
    Effect.gen(function*() {
      const host = server(json(message({ content: "a cat" })))
      const bytes = new Uint8Array([1, 2, 3])
      yield* ask(host, {
        prompt: [Prompt.userMessage({
          content: [
            Prompt.textPart({ text: "what?" }),
            Prompt.filePart({ mediaType: "image/png", data: bytes }),
            Prompt.filePart({ mediaType: "image/*", data: new URL("https://host/cat.png") }),
            Prompt.filePart({ mediaType: "audio/mpeg", data: bytes }),
            Prompt.filePart({ mediaType: "application/pdf", fileName: "a.pdf", data: "AQID" })
          ]
        })]
      })
      assert.deepStrictEqual(host.sent[0]?.body.messages[0].content, [
        { type: "text", text: "what?" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
        { type: "image_url", image_url: { url: "https://host/cat.png" } },
        { type: "input_audio", input_audio: { data: "AQID", format: "mp3" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AQID" } }
      ])
    }))

  it.effect("ARG-19 has no half surrogate pair in it, whoever put it there, and keeps whole ones", () =>
    Effect.gen(function*() {
      const host = server(
        json(
          message({
            content: "t\uD83D",
            tool_calls: [{ id: "1", function: { name: "get\uD83D", arguments: '{"k\\uDE00":"v\\uD83D","ok":"😀"}' } }]
          }, "tool_calls")
        ),
        json(message({ content: "done" }))
      )
      yield* ask(host, { prompt: "hi \uDE00 😀" })
      for (const { text } of host.sent) {
        assert.notMatch(text, /\\ud[89a-f]/i)
        assert.include(text, "😀")
        assert.isTrue(text.isWellFormed())
      }
    }))

  it.effect("RES-01 RES-04 tells results that are empty, nothing or an error so that no server refuses them", () =>
    Effect.gen(function*() {
      const results: ReadonlyArray<unknown> = [undefined, null, "", "   ", [], {}, "text"]
      const contents = yield* Effect.forEach(results, (value) =>
        Effect.gen(function*() {
          const tool = Tool.make("get", { output: Schema.Unknown, handler: () => Effect.succeed(value) })
          const host = server(
            json(message({ tool_calls: [{ id: "1", function: { name: "get", arguments: "" } }] }, "tool_calls")),
            json(message({ content: "done" }))
          )
          const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
            Effect.provide(ToolRegistry.layer(tool)),
            Effect.provide(OpenAiCompatible.layer({ model: "m" }).pipe(Layer.provide(host.layer)))
          )
          assert.strictEqual(result._tag, "Completed")
          return host.sent[1]?.body.messages.at(-1).content
        }))
      assert.deepStrictEqual(contents, ["null", "null", "(empty)", "(empty)", "[]", "{}", "text"])
      const host = server(
        json(message({ tool_calls: [{ id: "1", function: { name: "gone", arguments: "" } }] }, "tool_calls")),
        json(message({ content: "done" }))
      )
      yield* ask(host)
      assert.deepStrictEqual(
        host.sent[1]?.body.messages.at(-1).content,
        'Error: There is no tool named "gone". The tools are: get.'
      )
    }))
})

describe("an answer", () => {
  it.effect("has text, reasoning, calls, a reason and usage, plain and streamed alike", () =>
    Effect.gen(function*() {
      const usage = {
        prompt_tokens: 100,
        completion_tokens: 40,
        prompt_tokens_details: { cached_tokens: 60 },
        completion_tokens_details: { reasoning_tokens: 30 }
      }
      const plain = yield* ask(server(json(message({ reasoning_content: "hm", content: "yes" }, "stop", usage))))
      const pieces: Array<string> = []
      const flowing = yield* ask(
        server(sse(
          ": a comment",
          chunk({ role: "assistant", content: "" }),
          chunk({ reasoning_content: "h" }),
          chunk({ reasoning_content: "m" }),
          chunk({ content: "ye" }),
          chunk({ content: "s" }),
          chunk({}, "stop"),
          { choices: [], usage },
          done
        )),
        { onText: (delta) => void pieces.push(delta) }
      )
      assert.deepStrictEqual(pieces, ["ye", "s"])
      for (const result of [plain, flowing]) {
        assert.deepStrictEqual(brief(result.messages), ["user: hi", "assistant: hm yes"])
        assert.deepStrictEqual(result.turns[0]?.reasoning, "hm")
        assert.deepStrictEqual(result.usage, {
          inputTokens: 100,
          outputTokens: 40,
          totalTokens: 140,
          cacheRead: 60,
          cacheWrite: 0,
          reasoning: 30,
          calls: 1,
          byModel: {}
        })
      }
    }))

  it.effect("USE-03 is not over before the chunk with the usage, which has no choices", () =>
    Effect.gen(function*() {
      const result = yield* ask(
        server(
          sse(chunk({ content: "a" }), chunk({}, "stop"), {
            choices: [],
            usage: { prompt_tokens: 10, completion_tokens: 4 }
          }, done)
        ),
        streamed
      )
      assert.deepStrictEqual([result.usage.inputTokens, result.usage.outputTokens], [10, 4])
    }))

  const variants: ReadonlyArray<readonly [string, ReadonlyArray<object>, string]> = [
    ["no id", [{ index: 0, function: { name: "get", arguments: '{"a"' } }, {
      index: 0,
      function: { arguments: ":1}" }
    }], "call_1_0"],
    ["a number as id", [{ index: 0, id: 12345, function: { name: "get", arguments: '{"a":1}' } }], "12345"],
    ["the id in the first piece alone", [{ index: 0, id: "c1", function: { name: "get", arguments: "" } }, {
      index: 0,
      function: { arguments: '{"a":1}' }
    }], "c1"],
    ["an empty id and name later", [{ index: 0, id: "c1", function: { name: "get", arguments: '{"a"' } }, {
      index: 0,
      id: "",
      function: { name: "", arguments: ":1}" }
    }], "c1"],
    ["no index", [{ id: "a", function: { name: "get", arguments: '{"a":' } }, { function: { arguments: "1}" } }], "a"]
  ]
  for (const [what, pieces, id] of variants) {
    it.effect(`STR-01 with a call in pieces with ${what} has one call`, () =>
      Effect.gen(function*() {
        const host = server(
          sse(...pieces.map((piece) => chunk({ tool_calls: [piece] })), chunk({}, "tool_calls"), done),
          sse(chunk({ content: "done" }, "stop"), done)
        )
        assert.deepStrictEqual(calls(yield* ask(host, streamed)), [[id, "get", { a: 1 }]])
      }))
  }

  it.effect("STR-01 keeps calls apart that share an index, or have none", () =>
    Effect.gen(function*() {
      const two = (first: object, second: object) =>
        server(
          sse(
            chunk({ tool_calls: [{ ...first, function: { name: "get", arguments: '{"a":1}' } }] }),
            chunk({ tool_calls: [{ ...second, function: { name: "get", arguments: '{"a":2}' } }] }),
            chunk({}, "tool_calls"),
            done
          ),
          sse(chunk({ content: "done" }, "stop"), done)
        )
      assert.deepStrictEqual(calls(yield* ask(two({ index: 0, id: "x" }, { index: 0, id: "y" }), streamed)), [[
        "x",
        "get",
        { a: 1 }
      ], ["y", "get", { a: 2 }]])
      assert.deepStrictEqual(calls(yield* ask(two({}, {}), streamed)), [["call_1_0", "get", { a: 1 }], [
        "call_1_1",
        "get",
        { a: 2 }
      ]])
    }))

  it.effect("STR-04 with calls is one with calls, whatever the reason", () =>
    Effect.gen(function*() {
      for (const reason of ["stop", "something", null]) {
        const host = server(
          json(
            message(
              { content: "let me", tool_calls: [{ id: "1", function: { name: "get", arguments: '{"a":1}' } }] },
              reason
            )
          ),
          json(message({ content: "done" }))
        )
        assert.strictEqual(calls(yield* ask(host)).length, 1)
      }
    }))

  it.effect("STR-08 whose arguments never become JSON is an error of that call alone, and the text stays", () =>
    Effect.gen(function*() {
      const pieces = ['{"newText": "x = " foo', ' " + y", "q": 1', "}"]
      const host = server(
        sse(
          chunk({ content: "Let me see." }),
          ...pieces.map((args, at) =>
            chunk({
              tool_calls: [{
                index: 0,
                ...(at === 0 ? { id: "1" } : {}),
                function: { name: at === 0 ? "get" : "", arguments: args }
              }]
            })
          ),
          chunk({}, "tool_calls"),
          done
        ),
        sse(chunk({ content: "done" }, "stop"), done)
      )
      const shown: Array<string> = []
      const result = yield* ask(host, { onText: (delta) => void shown.push(delta) })
      assert.deepStrictEqual(shown, ["Let me see.", "done"])
      assert.deepStrictEqual(result.turns[0]?.outcomes.map((outcome) => outcome._tag === "Failure" && outcome.kind), [
        "invalid-json"
      ])
      assert.strictEqual(result.turns[0]?.text, "Let me see.")
    }))

  it.effect("that comes whole although a stream was asked for is shown as one piece", () =>
    Effect.gen(function*() {
      const shown: Array<string> = []
      const result = yield* ask(server(json(message({ content: "all of it" }))), {
        onText: (delta) => void shown.push(delta)
      })
      assert.deepStrictEqual([result.text, shown], ["all of it", ["all of it"]])
    }))

  it.effect("that is a list of parts is read part by part", () =>
    Effect.gen(function*() {
      const content = [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }, { type: "text", text: "yes" }]
      const result = yield* ask(server(json(message({ content }))))
      assert.deepStrictEqual([result.text, result.turns[0]?.reasoning], ["yes", "hm"])
    }))

  it.effect("that is a refusal, or cut off, ends the run as refused", () =>
    Effect.gen(function*() {
      const refusal = yield* ask(server(json(message({ content: null, refusal: "I will not." }))))
      assert.deepStrictEqual([refusal._tag, refusal.text], ["Refused", "I will not."])
      const cut = yield* ask(server(json(message({ content: "half an ans" }, "length"))))
      assert.deepStrictEqual([cut._tag, cut._tag === "Refused" && cut.reason], ["Refused", "length"])
    }))

  it.effect("gives back what a host signed of the reasoning, as it came", () =>
    Effect.gen(function*() {
      const details = [{ type: "reasoning.text", text: "hm", signature: "s", index: 0 }]
      const host = server(
        sse(
          chunk({ reasoning: "h", reasoning_details: [{ type: "reasoning.text", text: "h", index: 0 }] }),
          chunk({ reasoning: "m", reasoning_details: [{ type: "reasoning.text", text: "m", index: 0 }] }),
          chunk({ reasoning_details: [{ type: "reasoning.text", signature: "s", index: 0 }] }),
          chunk({ tool_calls: [{ index: 0, id: "1", function: { name: "get", arguments: '{"a":1}' } }] }, "tool_calls"),
          done
        ),
        sse(chunk({ content: "done" }, "stop"), done)
      )
      yield* ask(host, streamed)
      assert.deepStrictEqual(host.sent[1]?.body.messages[1].reasoning_details, details)
    }))
})

describe("an error", () => {
  const reason = (host: ReturnType<typeof server>, options: AgentLoop.RunOptions = {}) =>
    Effect.map(Effect.flip(ask(host, options, { apiKey: "sk-secret" })), (error) => {
      assert.instanceOf(error, AgentLoop.ModelFailed)
      assert.notInclude(JSON.stringify(error.reason) + error.message, "sk-secret")
      return error.reason.reason
    })
  const body = (message: string, more: object = {}) => ({ error: { message, ...more } })

  it.effect("has a type and the server's words: 400, 401, 403, 404, 429, 5xx", () =>
    Effect.gen(function*() {
      const of = (status: number, answer: unknown, headers: Record<string, string> = {}) =>
        Effect.map(reason(server(json(answer, status, headers))), (reason) => [reason._tag, reason.message])
      assert.deepStrictEqual(yield* of(400, body("context length exceeded", { code: "context_length_exceeded" })), [
        "InvalidRequestError",
        "Invalid request. context length exceeded [context_length_exceeded] (HTTP 400): the transcript is too long for the model"
      ])
      assert.deepStrictEqual(yield* of(401, body("bad key")), [
        "AuthenticationError",
        "InvalidKey: Verify your API key is correct. bad key (HTTP 401)"
      ])
      assert.strictEqual((yield* of(403, { message: "no" }))[0], "AuthenticationError")
      assert.deepStrictEqual(yield* of(404, body("no such model")), [
        "InvalidRequestError",
        "Invalid request. no such model (HTTP 404): check the model's name and the base URL (http://host/v1/chat/completions)"
      ])
      assert.strictEqual((yield* of(429, body("quota", { code: "insufficient_quota" })))[0], "QuotaExhaustedError")
      assert.deepStrictEqual(yield* of(500, "<html>oops</html>"), [
        "InternalProviderError",
        "Internal provider error: <html>oops</html> (HTTP 500)"
      ])
      assert.strictEqual((yield* of(529, body("overloaded")))[0], "InternalProviderError")
    }))

  it.effect("of a rate limit says how long to wait, where the server does", () =>
    Effect.gen(function*() {
      const wait = (headers: Record<string, string>) =>
        Effect.map(reason(server(json(body("slow down"), 429, headers))), (reason) =>
          reason._tag === "RateLimitError" && reason.retryAfter && Duration.toMillis(reason.retryAfter))
      assert.strictEqual(yield* wait({ "retry-after": "7" }), 7_000)
      assert.strictEqual(yield* wait({ "retry-after-ms": "1500" }), 1_500)
      assert.strictEqual(yield* wait({ "retry-after": "soon" }), undefined)
      assert.strictEqual(yield* wait({}), undefined)
    }))

  it.effect("of an answer that is not what the protocol says is an invalid response", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* reason(server(json("not json"))))._tag, "InvalidResponseError")
      assert.strictEqual((yield* reason(server(json({ object: "list" }))))._tag, "InvalidResponseError")
      assert.strictEqual((yield* reason(server(sse("data: {broken")), streamed))._tag, "InvalidResponseError")
    }))

  it.effect("STR-06 in the middle of a stream is typed, after what came before it; unknown events are passed over", () =>
    Effect.gen(function*() {
      const shown: Array<string> = []
      const overloaded = yield* reason(
        server(
          sse(
            chunk({ content: "Par" }),
            'event: error\ndata: {"error":{"type":"overloaded_error","message":"Overloaded"}}'
          )
        ),
        { onText: (delta) => void shown.push(delta) }
      )
      assert.deepStrictEqual([overloaded._tag, overloaded.message, overloaded.isRetryable, shown], [
        "InternalProviderError",
        "Internal provider error: Overloaded [overloaded_error]",
        true,
        ["Par"]
      ])
      const limited = yield* reason(server(sse({ error: { message: "slow down", code: 429 } })), streamed)
      assert.strictEqual(limited._tag, "RateLimitError")
      const fine = yield* ask(
        server(
          sse("event: vertex_event\ndata: not json", "event: ping\ndata: {}", chunk({ content: "ok" }, "stop"), done)
        ),
        streamed
      )
      assert.strictEqual(fine.text, "ok")
    }))

  it.effect("of a stream that ends too early is one of the network", () =>
    Effect.gen(function*() {
      const early = yield* reason(server(sse(chunk({ content: "half" }))), streamed)
      assert.deepStrictEqual([early._tag, early.isRetryable], ["NetworkError", true])
    }))

  it.live("of a server that is not there is one of the network, and says where it was looked for", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
          Effect.provide(ToolRegistry.layer()),
          Effect.provide(
            OpenAiCompatible.layer({ model: "m", baseUrl: "http://127.0.0.1:47" }).pipe(
              Layer.provide(FetchHttpClient.layer)
            )
          )
        )
      )
      assert.instanceOf(error, AgentLoop.ModelFailed)
      assert.deepStrictEqual(error.reason.reason._tag, "NetworkError")
      assert.include(error.message, "http://127.0.0.1:47/chat/completions")
    }))
})

describe("its public face", () => {
  const model = (host: ReturnType<typeof server>) =>
    OpenAiCompatible.layer({ model: "m" }).pipe(Layer.provide(host.layer))

  it.effect("answers effect/ai's own functions: text, objects, streams, and tools that effect/ai resolves", () =>
    Effect.gen(function*() {
      const text = yield* Effect.provide(
        LanguageModel.generateText({ prompt: "hi" }),
        model(server(json(message({ content: "hello" }))))
      )
      assert.deepStrictEqual([text.text, text.finishReason, text.usage.inputTokens.total], ["hello", "stop", 10])

      const host = server(json(message({ content: '{"n":1}' })))
      const object = yield* Effect.provide(
        LanguageModel.generateObject({ prompt: "hi", schema: Schema.Struct({ n: Schema.Int }) }),
        model(host)
      )
      assert.deepStrictEqual(object.value, { n: 1 })
      assert.deepStrictEqual(host.sent[0]?.body.response_format.json_schema.schema.required, ["n"])

      const parts = yield* LanguageModel.streamText({ prompt: "hi" }).pipe(
        Stream.map((part) => part.type === "text-delta" ? part.delta : part.type),
        Stream.runCollect,
        Effect.provide(model(server(sse(chunk({ content: "a" }), chunk({ content: "b" }, "stop"), done))))
      )
      assert.deepStrictEqual(Array.from(parts), ["text-start", "a", "b", "text-end", "finish"])

      const kit = Toolkit.make(
        WireTool.make("when", { parameters: Schema.Struct({ at: Schema.String }), success: Schema.String })
      )
      const call = { id: "1", function: { name: "when", arguments: '{"at":"noon"}' } }
      const resolved = yield* LanguageModel.generateText({ prompt: "hi", toolkit: kit }).pipe(
        Effect.provide(kit.toLayer({ when: ({ at }) => Effect.succeed(`at ${at}`) })),
        Effect.provide(model(server(json(message({ tool_calls: [call] }, "tool_calls")))))
      )
      assert.deepStrictEqual(resolved.toolResults.map(({ result }) => result), ["at noon"])

      const wrong = { id: "1", function: { name: "when", arguments: '{"at":5}' } }
      const refused = yield* LanguageModel.generateText({ prompt: "hi", toolkit: kit }).pipe(
        Effect.provide(kit.toLayer({ when: () => Effect.succeed("") })),
        Effect.provide(model(server(json(message({ tool_calls: [wrong] }, "tool_calls"))))),
        Effect.flip
      )
      assert.isTrue(AiError.isAiError(refused) && refused.reason._tag === "InvalidOutputError")
    }))

  it.effect("stops asking when it is interrupted", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const endless = Layer.succeed(HttpClient.HttpClient)(HttpClient.make(() =>
        Effect.onInterrupt(
          Effect.andThen(Deferred.succeed(asked, undefined), Effect.never),
          () => Deferred.succeed(stopped, undefined)
        )
      ))
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(OpenAiCompatible.layer({ model: "m" }).pipe(Layer.provide(endless)))
      )
      yield* Deferred.await(asked)
      assert.strictEqual((yield* handle.cancel)._tag, "Cancelled")
      yield* Deferred.await(stopped)
    }).pipe(Effect.scoped))
})

describe("Provider", () => {
  it.effect("gives a model an entry that a copy of it does not have", () =>
    Effect.gen(function*() {
      const requests: Array<Provider.Request> = []
      const model = yield* Provider.make({
        ask: (request) =>
          Effect.sync(() => {
            requests.push(request)
            return { content: [Prompt.textPart({ text: "hi" })], finish: "stop", usage: Provider.unknownUsage }
          })
      })
      const table = Tool.table([get])
      const messages = [Prompt.userMessage({ content: [Prompt.textPart({ text: "a" })] })]
      const request: Provider.Request = { messages, table, toolChoice: "auto" }
      yield* Provider.askOf(model)(request)
      yield* Provider.askOf({ ...model })(request)
      assert.strictEqual(requests[0], request)
      assert.notStrictEqual(requests[1]?.messages, messages)
      assert.deepStrictEqual(Object.keys(model).toSorted(), Object.keys({ ...model }).toSorted())
    }))
})
