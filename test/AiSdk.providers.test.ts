// The same with the clients of the vendors: what they send, and what becomes of what a server says.
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import type * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as AiSdk from "toolfold/providers/AiSdk"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

/** A server in this process: answers one after the other, and keeps what it was sent. */
const server = (...answers: ReadonlyArray<Response>) => {
  const sent: Array<any> = []
  const pending = answers.slice()
  const fetch = async (_url: unknown, init: RequestInit = {}) => {
    sent.push(JSON.parse(String(init.body)))
    const answer = pending.shift()
    if (answer === undefined) throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })
    return answer
  }
  const settings = { apiKey: "secret", fetch: fetch as typeof globalThis.fetch, generateId: () => `id${sent.length}` }
  return {
    sent,
    anthropic: createAnthropic(settings)("claude-sonnet-4-5"),
    google: createGoogleGenerativeAI(settings)("gemini-3-pro-preview"),
    openai: createOpenAI(settings).responses("gpt-5"),
    chat: createOpenAI(settings).chat("gpt-4o")
  }
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })

const sse = (...events: ReadonlyArray<any>) =>
  new Response(
    events.map((event) =>
      `${event.type === undefined ? "" : `event: ${event.type}\n`}data: ${JSON.stringify(event)}\n\n`
    )
      .join(""),
    { headers: { "content-type": "text/event-stream" } }
  )

const get = Tool.make("get", {
  description: "Gets",
  input: { a: Schema.Int },
  handler: ({ a }) => Effect.succeed(`got ${a}`)
})

const run = (model: LanguageModelV4, options: AgentLoop.RunOptions = {}, own: AiSdk.Options = {}) =>
  AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi", ...options }).pipe(
    Effect.provide(ToolRegistry.layer(get)),
    Effect.provide(AiSdk.layer(model, own))
  )

const ask = (model: LanguageModelV4, request: Partial<Provider.Request> = {}, sink?: Provider.Sink) =>
  Effect.flatMap(AiSdk.make(model), (made) =>
    Provider.askOf(made)({
      messages: [Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" })] })],
      table: Tool.table([]),
      toolChoice: "auto",
      ...request
    }, sink))

const quiet: Provider.Sink = () => Effect.void
const streamed = { onText: () => undefined }

describe("Anthropic", () => {
  const message = (content: ReadonlyArray<unknown>, stop_reason: string) =>
    json({
      type: "message",
      id: "msg",
      model: "claude-sonnet-4-5-20250929",
      content,
      stop_reason,
      usage: {
        input_tokens: 5,
        output_tokens: 10,
        cache_read_input_tokens: 128955,
        cache_creation_input_tokens: 1253
      }
    })
  const thinking = [
    { type: "thinking", thinking: "hm", signature: "S1==" },
    { type: "redacted_thinking", data: "R1==" },
    { type: "text", text: "so" },
    { type: "tool_use", id: "toolu_1", name: "get", input: { a: 1 } },
    { type: "tool_use", id: "toolu_2", name: "get", input: { a: 2 } }
  ]
  const results = [
    { type: "tool_result", tool_use_id: "toolu_1", content: "got 1" },
    { type: "tool_result", tool_use_id: "toolu_2", content: "got 2" }
  ]
  const bare = (body: any) => JSON.parse(JSON.stringify(body.messages.slice(1)))

  it.effect("gets back its thoughts, signed and redacted, byte for byte and in order", () =>
    Effect.gen(function*() {
      const host = server(message(thinking, "tool_use"), message([{ type: "text", text: "done" }], "end_turn"))
      const result = yield* run(host.anthropic)
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "done"])
      assert.deepStrictEqual(bare(host.sent[1]), [
        { role: "assistant", content: thinking },
        { role: "user", content: results }
      ])
    }))

  it.effect("gets them back from a transcript that was stored", () =>
    Effect.gen(function*() {
      const host = server(
        message(thinking, "tool_use"),
        message([{ type: "text", text: "done" }], "end_turn"),
        message([{ type: "text", text: "again" }], "end_turn")
      )
      const { messages } = yield* run(host.anthropic)
      const stored = Schema.fromJsonString(Prompt.Prompt)
      const text = yield* Schema.encodeEffect(stored)(Prompt.fromMessages(messages))
      const { content } = yield* Schema.decodeEffect(stored)(text)
      yield* run(host.anthropic, { messages: content, prompt: "go on" })
      assert.deepStrictEqual(bare(host.sent[2]).slice(0, 2), bare(host.sent[1]))
    }))

  it.effect("gets them back when they were streamed, and its arguments are put together", () =>
    Effect.gen(function*() {
      const start = {
        type: "message_start",
        message: { id: "m", model: "c", usage: { input_tokens: 10, output_tokens: 1 } }
      }
      const block = (index: number, content_block: object, ...deltas: ReadonlyArray<object>) => [
        { type: "content_block_start", index, content_block },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index }
      ]
      const end = (stop_reason: string) => [
        { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 4 } },
        { type: "message_stop" }
      ]
      const use = (id: string) => ({ type: "tool_use", id, name: "get", input: {} })
      const part = (partial_json: string) => ({ type: "input_json_delta", partial_json })
      const host = server(
        sse(
          start,
          { type: "ping" },
          ...block(
            0,
            { type: "thinking", thinking: "" },
            { type: "thinking_delta", thinking: "h" },
            { type: "thinking_delta", thinking: "m" },
            { type: "signature_delta", signature: "S1==" }
          ),
          ...block(1, { type: "redacted_thinking", data: "R1==" }),
          ...block(2, { type: "text", text: "" }, { type: "text_delta", text: "so" }),
          ...block(3, use("toolu_1"), part(""), part('{"a"'), part(": 1}")),
          ...block(4, use("toolu_2"), part('{"a":2}')),
          ...end("tool_use")
        ),
        sse(start, ...block(0, { type: "text", text: "" }, { type: "text_delta", text: "done" }), ...end("end_turn"))
      )
      const result = yield* run(host.anthropic, streamed)
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "done"])
      assert.deepStrictEqual(bare(host.sent[1]), [
        { role: "assistant", content: thinking },
        { role: "user", content: results }
      ])
      assert.deepStrictEqual([result.usage.inputTokens, result.usage.outputTokens], [20, 8])
    }))

  it.effect("USE-03: counts a streamed answer as the same one in one piece, since what it says at the end is the sum", () =>
    Effect.gen(function*() {
      const host = server(
        json({
          type: "message",
          id: "m",
          model: "c",
          content: [{ type: "text", text: "hello" }],
          stop_reason: "end_turn",
          usage: { input_tokens: 10, output_tokens: 4 }
        }),
        sse(
          { type: "message_start", message: { id: "m", model: "c", usage: { input_tokens: 10, output_tokens: 1 } } },
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
          { type: "content_block_stop", index: 0 },
          { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
          { type: "message_stop" }
        )
      )
      const plain = yield* run(host.anthropic)
      const { text, usage } = yield* run(host.anthropic, streamed)
      assert.deepStrictEqual([text, usage], [plain.text, plain.usage])
      assert.deepStrictEqual([usage.inputTokens, usage.outputTokens, usage.totalTokens, usage.calls], [10, 4, 14, 1])
      assert.strictEqual(host.sent[1].stream, true)
    }))

  it.effect("says what was read from its cache and what was written to it", () =>
    Effect.gen(function*() {
      const host = server(message([{ type: "text", text: "hello" }], "end_turn"))
      const { model, usage } = yield* ask(host.anthropic)
      assert.deepStrictEqual([model, usage.inputTokens], [
        "claude-sonnet-4-5-20250929",
        { total: 130213, uncached: 5, cacheRead: 128955, cacheWrite: 1253 }
      ])
    }))

  it.effect("goes on where it paused, with what it searched for itself", () =>
    Effect.gen(function*() {
      const searched = [
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
        {
          type: "web_search_tool_result",
          tool_use_id: "srvtoolu_1",
          content: [{
            type: "web_search_result",
            url: "https://u",
            title: "t",
            page_age: null,
            encrypted_content: "E=="
          }]
        }
      ]
      const host = server(message(searched, "pause_turn"), message([{ type: "text", text: "found" }], "end_turn"))
      const made = Provider.askOf(
        yield* AiSdk.make(host.anthropic, {
          providerTools: [{ type: "provider", id: "anthropic.web_search_20250305", name: "web_search", args: {} }]
        })
      )
      const messages: Array<Prompt.Message> = [Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" })] })]
      const request = { messages, table: Tool.table([]), toolChoice: "auto" } as const
      const paused = yield* made(request)
      assert.strictEqual(paused.finish, "pause")
      messages.push(Prompt.assistantMessage({ content: paused.content }))
      const found = yield* made(request)
      assert.deepStrictEqual(found.content, [Prompt.textPart({ text: "found" })])
      assert.deepStrictEqual(bare(host.sent[1]), [{ role: "assistant", content: searched }])
    }))

  it.effect("is sent a choice between objects as one object that says so", () =>
    Effect.gen(function*() {
      const host = server(message([{ type: "text", text: "hello" }], "end_turn"))
      const schema = {
        anyOf: [
          { type: "object", properties: { op: { const: "get" }, key: { type: "string" } }, required: ["op", "key"] },
          { type: "object", properties: { op: { const: "list" }, prefix: { type: "string" } }, required: ["op"] }
        ]
      }
      yield* ask(host.anthropic, {
        table: { schemas: [{ name: "store", input_schema: schema }], tools: [] }
      })
      assert.deepStrictEqual(host.sent[0].tools[0].input_schema, {
        type: "object",
        properties: {
          op: { anyOf: [{ const: "get" }, { const: "list" }] },
          key: { type: "string" },
          prefix: { type: "string" }
        },
        required: ["op"],
        description: `(anyOf: ${JSON.stringify(schema.anyOf)})`
      })
    }))

  it.effect("may send events that its client does not know, and the reply says so", () =>
    Effect.gen(function*() {
      const host = server(sse(
        { type: "message_start", message: { id: "m", model: "c", usage: { input_tokens: 10, output_tokens: 1 } } },
        { type: "vertex_event", a: 1 },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ok" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
        { type: "message_stop" }
      ))
      const reply = yield* ask(host.anthropic, {}, quiet)
      assert.deepStrictEqual([reply.content, reply.finish, reply.warnings], [
        [Prompt.textPart({ text: "ok" })],
        "stop",
        ["an event of a type that is not known here was left out: vertex_event"]
      ])
    }))

  it.effect("whose stream breaks off, fails or cannot be read is an error of that kind", () =>
    Effect.gen(function*() {
      const start = [
        { type: "message_start", message: { id: "m", model: "c", usage: { input_tokens: 10, output_tokens: 1 } } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Par" } }
      ]
      const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
      const host = server(sse(...start), sse(...start, overloaded), sse(overloaded), json({ type: "message" }))
      const errors = []
      for (let at = 0; at < 4; at++) {
        const { isRetryable, reason } = yield* Effect.flip(ask(host.anthropic, {}, at === 3 ? undefined : quiet))
        errors.push([reason._tag, isRetryable])
      }
      assert.deepStrictEqual(errors, [
        ["NetworkError", true],
        ["InternalProviderError", true],
        ["InternalProviderError", true],
        ["InvalidResponseError", false]
      ])
    }))
})

describe("Gemini", () => {
  const answer = (parts: ReadonlyArray<unknown>, finishReason = "STOP") => ({
    candidates: [{ content: { role: "model", parts }, finishReason }],
    usageMetadata: {
      promptTokenCount: 20,
      cachedContentTokenCount: 8,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 7,
      totalTokenCount: 32
    },
    modelVersion: "gemini-3"
  })
  const calls = [
    { text: "hm", thought: true },
    { functionCall: { name: "get", args: { a: 1 } }, thoughtSignature: "T1==" },
    { functionCall: { name: "get", args: { a: 2 } } }
  ]
  const parts = (body: any) =>
    JSON.parse(JSON.stringify(body.contents[1].parts)).map(({ functionCall, ...part }: any) =>
      functionCall === undefined
        ? part
        : { functionCall: { name: functionCall.name, args: functionCall.args }, ...part }
    )

  for (const mode of ["plain", "streamed"] as const) {
    it.effect(`gets back the signature of a thought on the call that it came with, ${mode}`, () =>
      Effect.gen(function*() {
        const as = (body: object) => mode === "plain" ? json(body) : sse(body)
        const host = server(as(answer(calls)), as(answer([{ text: "done", thoughtSignature: "T2==" }])))
        const result = yield* run(host.google, mode === "plain" ? {} : streamed)
        assert.deepStrictEqual([result._tag, result.text], ["Completed", "done"])
        assert.deepStrictEqual(parts(host.sent[1]), calls)
        assert.deepStrictEqual(
          host.sent[1].contents[2].parts.map(({ functionResponse }: any) => functionResponse.response.content),
          ["got 1", "got 2"]
        )
        const { cacheRead, inputTokens, outputTokens, reasoning } = result.usage
        assert.deepStrictEqual([inputTokens, cacheRead, outputTokens, reasoning], [40, 16, 24, 14])
      }))
  }

  it.effect("is sent schemas in the words that it takes, and the rest in prose", () =>
    Effect.gen(function*() {
      const host = server(json(answer([{ text: "hello" }])))
      yield* ask(host.google, {
        table: {
          schemas: [{
            name: "t",
            input_schema: {
              $schema: "https://json-schema.org/draft/2020-12/schema",
              type: "object",
              additionalProperties: false,
              properties: {
                n: { type: "integer", exclusiveMinimum: 0, default: 5 },
                when: { type: "string", format: "date-time" },
                mail: { type: "string", format: "email", description: "An address" },
                mode: { const: "fast" },
                on: { const: true },
                ids: { type: "array", items: { type: "string", pattern: "^a" }, uniqueItems: true },
                maybe: { type: ["string", "null"] },
                tags: { type: "array" },
                any: true,
                node: { $ref: "#/definitions/node", description: "A node" }
              },
              required: ["n"],
              definitions: { node: { type: "object", properties: { next: { $ref: "#/definitions/node" } } } }
            }
          }],
          tools: []
        }
      })
      assert.deepStrictEqual(host.sent[0].tools[0].functionDeclarations[0].parametersJsonSchema, {
        type: "object",
        additionalProperties: false,
        properties: {
          n: { type: "integer", minimum: 1, description: "(default: 5)" },
          when: { type: "string", format: "date-time" },
          mail: { type: "string", description: 'An address (format: "email")' },
          mode: { type: "string", enum: ["fast"] },
          on: { description: "(const: true)" },
          ids: {
            type: "array",
            items: { type: "string", description: '(pattern: "^a")' },
            description: "(uniqueItems: true)"
          },
          maybe: { type: ["string", "null"] },
          tags: { type: "array", items: {} },
          any: {},
          node: { description: "A node", anyOf: [{ $ref: "#/$defs/node" }] }
        },
        required: ["n"],
        $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } }
      })
    }))

  it.effect("whose stream breaks off is an error that says so", () =>
    Effect.gen(function*() {
      const { candidates: [{ content }], ...rest } = answer([{ text: "Par" }]) as any
      const host = server(sse({ ...rest, candidates: [{ content }] }))
      const error = yield* Effect.flip(ask(host.google, {}, quiet))
      assert.include(error.message, "the stream ended before the answer did")
    }))
})

describe("OpenAI Responses", () => {
  const response = (output: ReadonlyArray<unknown>) => ({
    id: "resp_1",
    object: "response",
    created_at: 0,
    status: "completed",
    model: "gpt-5-2025",
    output,
    usage: {
      input_tokens: 117231,
      input_tokens_details: { cached_tokens: 115584 },
      output_tokens: 225,
      output_tokens_details: { reasoning_tokens: 200 }
    }
  })
  const reasoning = {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: "hm" }],
    encrypted_content: "E=="
  }
  const called = (at: number) => ({
    type: "function_call",
    id: `fc_${at}`,
    call_id: `call_${at}`,
    name: "get",
    arguments: `{"a": ${at}}`,
    status: "completed"
  })
  const says = (text: string) => ({
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }]
  })
  const unstored = { call: { providerOptions: { openai: { store: false } } } }

  it.effect("gets back its encrypted thoughts, its calls, and their results", () =>
    Effect.gen(function*() {
      const host = server(json(response([reasoning, called(1), called(2)])), json(response([says("done")])))
      const result = yield* run(host.openai, {}, unstored)
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "done"])
      assert.deepStrictEqual(JSON.parse(JSON.stringify(host.sent[1].input.slice(1))), [
        reasoning,
        { type: "function_call", call_id: "call_1", name: "get", arguments: '{"a":1}' },
        { type: "function_call", call_id: "call_2", name: "get", arguments: '{"a":2}' },
        { type: "function_call_output", call_id: "call_1", output: "got 1" },
        { type: "function_call_output", call_id: "call_2", output: "got 2" }
      ])
      assert.strictEqual(host.sent[0].tools[0].strict, false)
    }))

  it.effect("counts what it had cached as a part of what it was sent", () =>
    Effect.gen(function*() {
      const host = server(json(response([says("hello")])))
      const { model, usage } = yield* ask(host.openai)
      assert.strictEqual(model, "gpt-5-2025")
      assert.deepStrictEqual(usage, {
        inputTokens: { total: 117231, uncached: 1647, cacheRead: 115584, cacheWrite: undefined },
        outputTokens: { total: 225, text: 25, reasoning: 200 }
      })
    }))

  const strictTable = (schema: object) => ({
    schemas: [{
      name: "t",
      input_schema: schema as Provider.Request["table"]["schemas"][number]["input_schema"],
      strict: true
    }],
    tools: []
  })

  it.effect("is held to a strict schema in which every property is named, and null is one that is left out", () =>
    Effect.gen(function*() {
      const host = server(json(response([says("hello")])))
      const reply = yield* ask(host.openai, {
        table: strictTable({
          type: "object",
          properties: {
            query: { type: "string", minLength: 2 },
            limit: { type: "number", default: 3 },
            mode: { type: "string", enum: ["a"] },
            node: { $ref: "#/$defs/node", description: "A node" },
            opts: { type: "object", properties: { deep: { type: "boolean" } }, required: [] }
          },
          required: ["query"],
          $defs: { node: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } }
        })
      })
      assert.isUndefined(reply.warnings)
      const { parameters, strict } = host.sent[0].tools[0]
      assert.isTrue(strict)
      assert.deepStrictEqual(parameters, {
        type: "object",
        properties: {
          query: { type: "string", description: "(minLength: 2)" },
          limit: { type: ["number", "null"], description: "(default: 3)" },
          mode: { type: ["string", "null"], enum: ["a", null] },
          node: { description: "A node", anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
          opts: {
            type: ["object", "null"],
            properties: { deep: { type: ["boolean", "null"] } },
            required: ["deep"],
            additionalProperties: false
          }
        },
        required: ["query", "limit", "mode", "node", "opts"],
        $defs: {
          node: {
            type: "object",
            properties: { name: { type: "string" } },
            required: ["name"],
            additionalProperties: false
          }
        },
        additionalProperties: false
      })
    }))

  it.effect("may say null for what it leaves out, and the tool hears nothing of it", () =>
    Effect.gen(function*() {
      const heard: Array<unknown> = []
      const find = Tool.make("get", {
        input: { a: Schema.Int, most: Schema.optionalKey(Schema.Int) },
        strict: true,
        handler: (input) => Effect.sync(() => (heard.push(input), "found"))
      })
      const host = server(
        json(response([{ ...called(1), arguments: '{"a":1,"most":null}' }])),
        json(response([says("done")]))
      )
      yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
        Effect.provide(ToolRegistry.layer(find)),
        Effect.provide(AiSdk.layer(host.openai))
      )
      const [{ parameters, strict }] = host.sent[0].tools
      assert.deepStrictEqual([strict, parameters.required, parameters.properties.most.type], [
        true,
        ["a", "most"],
        ["integer", "null"]
      ])
      assert.deepStrictEqual(heard, [{ a: 1 }])
    }))

  it.effect("is not held to a schema that cannot be strict, and the reply says why", () =>
    Effect.gen(function*() {
      const host = server(json(response([says("hello")])))
      const schema = {
        type: "object",
        properties: { by: { type: "object", additionalProperties: { type: "string" } } },
        required: ["by"]
      }
      const { warnings } = yield* ask(host.openai, { table: strictTable(schema) })
      assert.deepStrictEqual(warnings, [
        'tool "t" is not sent as strict: properties of any name are allowed at #/by'
      ])
      assert.deepStrictEqual([host.sent[0].tools[0].parameters, host.sent[0].tools[0].strict], [schema, false])
    }))

  it.effect("is asked for an answer of a form, strictly only where nothing may be left out", () =>
    Effect.gen(function*() {
      const host = server(json(response([says("{}")])), json(response([says("{}")])))
      const a = { type: "object", properties: { a: { type: "string" } } }
      yield* ask(host.openai, { format: { name: "f", schema: { ...a, required: ["a"] } } })
      const { warnings } = yield* ask(host.openai, { format: { name: "f", schema: a } })
      assert.deepStrictEqual(
        host.sent.map(({ text: { format } }) => [format.strict, format.schema.additionalProperties]),
        [
          [true, false],
          [false, undefined]
        ]
      )
      assert.deepStrictEqual(warnings, ['the form of the answer is not sent as strict: "a" may be left out at #'])
    }))

  it.effect("whose stream breaks off or fails is an error of that kind", () =>
    Effect.gen(function*() {
      const begun = [
        { type: "response.created", response: { id: "resp_1", created_at: 0, model: "gpt-5" } },
        { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1" } },
        { type: "response.output_text.delta", item_id: "msg_1", delta: "Par" }
      ]
      const failed = {
        type: "error",
        sequence_number: 4,
        error: { type: "server_error", code: "server_error", message: "The server had an error", param: null }
      }
      const host = server(sse(...begun), sse(...begun, failed))
      const early = yield* Effect.flip(ask(host.openai, {}, quiet))
      assert.include(early.message, "the stream ended before the answer did")
      const broken = yield* Effect.flip(ask(host.openai, {}, quiet))
      assert.deepStrictEqual([broken.reason._tag, broken.isRetryable], ["InternalProviderError", true])
      assert.include(broken.message, "The server had an error")
    }))
})

describe("an error", () => {
  const failing = (status: number, body: unknown, headers: Record<string, string> = {}) =>
    Effect.map(
      Effect.flip(ask(server(json(body, status, headers)).chat)),
      ({ reason }): AiError.AiErrorReason => reason
    )
  const said = (message: string, code: string | null = null, type = "invalid_request_error") => ({
    error: { message, type, param: null, code }
  })

  const kinds: ReadonlyArray<readonly [string, number, unknown, string, boolean]> = [
    ["a wrong key", 401, said("Incorrect API key provided: x", "invalid_api_key"), "AuthenticationError", false],
    ["a wrong key as a bad request", 400, said("API key not valid.", "API_KEY_INVALID"), "AuthenticationError", false],
    ["no permission", 403, said("no", null, "permission_error"), "AuthenticationError", false],
    ["a bad request", 400, said("no"), "InvalidRequestError", false],
    ["an unknown model", 404, said("no", "model_not_found"), "InvalidRequestError", false],
    ["too many requests", 429, said("slow down", "rate_limit_exceeded", "tokens"), "RateLimitError", true],
    ["a request over the limit", 429, said("Request too large", "rate_limit_exceeded"), "InvalidRequestError", false],
    ["an empty purse", 429, said("pay", "insufficient_quota", "insufficient_quota"), "QuotaExhaustedError", false],
    ["a broken server", 500, said("oh", null, "server_error"), "InternalProviderError", true],
    [
      "an overloaded server",
      529,
      { type: "error", error: { type: "overloaded_error", message: "x" } },
      "InternalProviderError",
      true
    ]
  ]
  for (const [what, status, body, tag, isRetryable] of kinds) {
    it.effect(`for ${what} is typed as one`, () =>
      Effect.gen(function*() {
        const reason = yield* failing(status, body)
        assert.deepStrictEqual([reason._tag, reason.isRetryable], [tag, isRetryable])
      }))
  }

  const waits: ReadonlyArray<readonly [Record<string, string>, number | undefined]> = [
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after-ms": "1500" }, 1_500],
    [{ "retry-after-ms": "1500", "retry-after": "7" }, 1_500],
    [{ "retry-after": "Tue, 01 Dec 2026 07:00:05 GMT", date: "Tue, 01 Dec 2026 07:00:00 GMT" }, 5_000],
    [{ "retry-after": "-1" }, undefined],
    [{ "retry-after": "abc" }, undefined],
    [{}, undefined]
  ]
  for (const [headers, millis] of waits) {
    it.effect(`says how long to wait from ${JSON.stringify(headers)}`, () =>
      Effect.gen(function*() {
        const reason = yield* failing(429, said("slow down", "rate_limit_exceeded", "tokens"), headers)
        const { retryAfter } = reason as AiError.RateLimitError
        assert.strictEqual(retryAfter === undefined ? undefined : Duration.toMillis(retryAfter), millis)
      }))
  }

  it.effect("of Google says how long to wait in its body, and that a day's quota is used up", () =>
    Effect.gen(function*() {
      const exhausted = (message: string, details: ReadonlyArray<object>) =>
        json({ error: { code: 429, message, status: "RESOURCE_EXHAUSTED", details } }, 429)
      const host = server(
        exhausted("Quota exceeded.", [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "38s" }]),
        exhausted("Daily quota exceeded.", []),
        json([{ error: { code: 429, message: "Resource exhausted.", status: "RESOURCE_EXHAUSTED" } }], 429)
      )
      const [wait, day, listed] = [
        yield* Effect.flip(ask(host.google)),
        yield* Effect.flip(ask(host.google)),
        yield* Effect.flip(ask(host.google, {}, quiet))
      ].map(({ reason }) => reason)
      assert.deepStrictEqual((wait as AiError.RateLimitError).retryAfter, Duration.seconds(38))
      assert.deepStrictEqual([day?._tag, listed?._tag], ["QuotaExhaustedError", "RateLimitError"])
    }))

  it.effect("for a server that is not there says what the connection said", () =>
    Effect.gen(function*() {
      const { message, reason } = yield* Effect.flip(ask(server().chat))
      assert.strictEqual(reason._tag, "NetworkError")
      assert.include(message, "connect ECONNREFUSED")
    }))

  it.effect("for a key that is missing, and for what a provider cannot do, needs no server", () =>
    Effect.gen(function*() {
      const keyless = createOpenAI({ fetch: globalThis.fetch, baseURL: "http://host/v1" }).chat("gpt-4o")
      const before = process.env.OPENAI_API_KEY
      delete process.env.OPENAI_API_KEY
      const missing = yield* Effect.flip(ask(keyless))
      if (before !== undefined) process.env.OPENAI_API_KEY = before
      assert.deepStrictEqual(
        [missing.reason._tag, (missing.reason as AiError.AuthenticationError).kind],
        ["AuthenticationError", "MissingKey"]
      )
      const late = yield* Effect.flip(ask(server().google, {
        messages: [
          Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" })] }),
          Prompt.systemMessage({ content: "be kind" })
        ]
      }))
      assert.strictEqual(late.reason._tag, "InvalidRequestError")
    }))

  it.effect("comes from an interruption to nobody: the request is aborted", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<AbortSignal>()
      const fetch = (_url: unknown, init: RequestInit = {}) => {
        Effect.runSync(Deferred.succeed(started, init.signal!))
        return new Promise<never>(() => {})
      }
      const model = createAnthropic({ apiKey: "secret", fetch: fetch as typeof globalThis.fetch })("claude")
      const fiber = yield* Effect.forkChild(ask(model, {}, quiet))
      const signal = yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal.aborted)
    }))
})
