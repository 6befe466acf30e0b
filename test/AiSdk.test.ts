import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage
} from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as AiSdk from "toolfold/providers/AiSdk"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief } from "./utils.ts"

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 10, noCache: 6, cacheRead: 3, cacheWrite: 1 },
  outputTokens: { total: 5, text: 3, reasoning: 2 }
}

interface Answer {
  readonly content?: ReadonlyArray<LanguageModelV4Content>
  readonly parts?: ReadonlyArray<LanguageModelV4StreamPart>
  readonly finish?: LanguageModelV4StreamPart & { type: "finish" }
  readonly extra?: object
}

const finish = (
  unified: "stop" | "tool-calls" | "length" | "interrupted" | "other" = "stop",
  raw: string | undefined = unified
) => ({ type: "finish", finishReason: { unified, raw }, usage }) as const

const streamOf = (source: UnderlyingDefaultSource<LanguageModelV4StreamPart>, highWaterMark = 1) =>
  new ReadableStream<LanguageModelV4StreamPart>(source, { highWaterMark })

/** A model that gives these answers, one after the other, and keeps what it was asked. */
const scripted = (provider: string, ...answers: ReadonlyArray<Answer>) => {
  const asked: Array<LanguageModelV4CallOptions> = []
  const pending = answers.slice()
  const next = (options: LanguageModelV4CallOptions): Answer => {
    asked.push(options)
    const answer = pending.shift()
    if (answer === undefined) throw new Error("no further answer")
    return answer
  }
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider,
    modelId: "m",
    supportedUrls: {},
    doGenerate: async (options) => {
      const { content = [], extra, finish: end = finish() } = next(options)
      return { content: [...content], finishReason: end.finishReason, usage: end.usage, warnings: [], ...extra }
    },
    doStream: async (options) => {
      const { parts = [] } = next(options)
      return {
        stream: streamOf({
          start: (controller) => {
            for (const part of parts) controller.enqueue(part)
            controller.close()
          }
        })
      }
    }
  }
  return { asked, model }
}

const text = (text: string, providerMetadata?: any): LanguageModelV4Content => ({
  type: "text",
  text,
  ...(providerMetadata === undefined ? {} : { providerMetadata })
})
const call = (toolCallId: string, toolName: string, input: string, providerMetadata?: any): LanguageModelV4Content => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input,
  ...(providerMetadata === undefined ? {} : { providerMetadata })
})

const user = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

/** Asks once, through the direct entry. */
const ask = (
  model: LanguageModelV4,
  request: Partial<Provider.Request> = {},
  options: AiSdk.Options & { readonly sink?: Provider.Sink } = {}
) =>
  Effect.flatMap(AiSdk.make(model, options), (made) =>
    Provider.askOf(made)(
      { messages: [user("hi")], table: Tool.table([]), toolChoice: "auto", ...request },
      options.sink
    ))

const quiet: Provider.Sink = () => Effect.void

const get = Tool.make("get", {
  description: "Gets",
  input: { a: Schema.Int },
  output: Schema.Struct({ b: Schema.Int }),
  handler: ({ a }) => Effect.succeed({ b: a + 1 })
})

describe("a request", () => {
  it.effect("is what the AI SDK says: instructions, tools, calls, and their results", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted(
        "some.chat",
        {
          content: [text("so "), call("c1", "get", '{"a":1}'), call("c2", "nope", "{}")],
          finish: finish("tool-calls")
        },
        { content: [text("done")] }
      )
      const result = yield* AgentLoop.run(AgentLoop.make("bot", { instructions: "be kind" }), { prompt: "hi" }).pipe(
        Effect.provide(ToolRegistry.layer(get)),
        Effect.provide(AiSdk.layer(model))
      )
      assert.deepStrictEqual(brief(result.messages).slice(-1), ["assistant: done"])
      const [first, second] = asked.map(({ abortSignal: _, ...options }) => options)
      const tools = [{
        type: "function",
        name: "get",
        description: "Gets",
        inputSchema: Tool.schema(get).input_schema
      }]
      assert.deepStrictEqual(first as unknown, {
        prompt: [{ role: "system", content: "be kind" }, { role: "user", content: [{ type: "text", text: "hi" }] }],
        tools
      })
      assert.deepStrictEqual(second as unknown, {
        prompt: [
          ...first!.prompt,
          {
            role: "assistant",
            content: [
              { type: "text", text: "so " },
              { type: "tool-call", toolCallId: "c1", toolName: "get", input: { a: 1 } },
              { type: "tool-call", toolCallId: "c2", toolName: "nope", input: {} }
            ]
          },
          {
            role: "tool",
            content: [
              { type: "tool-result", toolCallId: "c1", toolName: "get", output: { type: "json", value: { b: 2 } } },
              {
                type: "tool-result",
                toolCallId: "c2",
                toolName: "nope",
                output: { type: "error-text", value: 'There is no tool named "nope". The tools are: get.' }
              }
            ]
          }
        ],
        tools
      })
    }))

  it.effect("begins with the very messages and tools of the one before", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("some.chat", { content: [text("a")] }, { content: [text("b")] })
      const made = Provider.askOf(yield* AiSdk.make(model))
      const messages: Array<Prompt.Message> = [user("one"), user("two")]
      const table = Tool.table([get])
      yield* made({ messages, table, toolChoice: "auto" })
      messages.push(user("three"))
      yield* made({ messages, table, toolChoice: "auto" })
      const [first, second] = asked
      assert.isTrue(first!.prompt.every((message, at) => message === second!.prompt[at]))
      assert.isTrue(first!.tools!.every((tool, at) => tool === second!.tools![at]))
      assert.deepStrictEqual([first!.prompt.length, second!.prompt.length], [2, 3])
    }))

  it.effect("carries the settings, what the application adds, and the form of the answer", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("some.chat", { content: [text("{}")] })
      yield* ask(model, {
        settings: { temperature: 0, maxTokens: 9, topP: 1, seed: 2, stop: ["x"], effort: "high", cache: true },
        format: { name: "an answer", schema: { type: "object" } }
      }, { call: { topK: 3, temperature: 1, headers: { a: "b" }, providerOptions: { some: { c: 1 } } } })
      const { abortSignal: _, ...options } = asked[0]!
      assert.deepStrictEqual(options as unknown, {
        prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
        temperature: 0,
        maxOutputTokens: 9,
        topP: 1,
        topK: 3,
        seed: 2,
        stopSequences: ["x"],
        reasoning: "high",
        headers: { a: "b" },
        providerOptions: { some: { c: 1 } },
        responseFormat: { type: "json", name: "an_answer", schema: { type: "object" } }
      })
    }))

  it.effect("marks what Anthropic is to cache: the instructions, and the transcript so far", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("anthropic.messages", { content: [text("a")] }, { content: [text("b")] })
      const made = Provider.askOf(yield* AiSdk.make(model))
      const messages: Array<Prompt.Message> = [Prompt.systemMessage({ content: "be kind" }), user("one")]
      const request = { messages, table: Tool.table([]), toolChoice: "auto", settings: { cache: true } } as const
      yield* made(request)
      messages.push(Prompt.assistantMessage({ content: [Prompt.textPart({ text: "two" })] }), user("three"))
      yield* made(request)
      const point = { anthropic: { cacheControl: { type: "ephemeral" } } }
      assert.deepStrictEqual(
        asked.map(({ prompt }) => prompt.map(({ providerOptions }) => providerOptions)) as unknown,
        [[point, point], [point, undefined, undefined, point]]
      )
    }))

  const choices: ReadonlyArray<readonly [Provider.Request["toolChoice"], unknown, ReadonlyArray<string>]> = [
    ["auto", undefined, ["get", "put"]],
    ["none", { type: "none" }, ["get", "put"]],
    ["required", { type: "required" }, ["get", "put"]],
    [{ tool: "put" }, { type: "tool", toolName: "put" }, ["get", "put"]],
    [{ oneOf: ["put"] }, undefined, ["put"]],
    [{ mode: "required", oneOf: ["put"] }, { type: "required" }, ["put"]]
  ]
  for (const [toolChoice, expected, offered] of choices) {
    it.effect(`offers what may be called when the choice is ${JSON.stringify(toolChoice)}`, () =>
      Effect.gen(function*() {
        const { asked, model } = scripted("some.chat", { content: [] })
        const put = WireTool.dynamic("put", { parameters: { type: "object" } })
        yield* ask(model, { table: Tool.table([get, put]), toolChoice })
        assert.deepStrictEqual(asked[0]!.toolChoice as unknown, expected)
        assert.deepStrictEqual(asked[0]!.tools!.map(({ name }) => name), offered)
      }))
  }

  it.effect("hands over what users show and the options on it, and nothing blank", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("some.chat", { content: [] })
      const options = { anthropic: { cacheControl: { type: "ephemeral" } } }
      const file = (mediaType: string, data: string | Uint8Array | URL) => Prompt.filePart({ mediaType, data })
      yield* ask(model, {
        messages: [
          Prompt.systemMessage({ content: " " }),
          Prompt.systemMessage({ content: "be kind", options }),
          Prompt.userMessage({
            content: [
              Prompt.textPart({ text: " " }),
              Prompt.textPart({ text: "half \ud83d", options }),
              file("image/*", "iVBORw0KGgo="),
              file("image/*", "data:image/png;base64,iVBORw0KGgo="),
              file("image/jpeg", "https://example.com/a.jpg"),
              file("image/jpeg", new URL("https://example.com/b.jpg")),
              Prompt.filePart({ mediaType: "application/pdf", data: new Uint8Array([1]), fileName: "a.pdf", options })
            ]
          }),
          Prompt.assistantMessage({ content: [Prompt.textPart({ text: "" })] })
        ]
      })
      assert.deepStrictEqual(asked[0]!.prompt as unknown, [
        { role: "system", content: "be kind", providerOptions: options },
        {
          role: "user",
          content: [
            { type: "text", text: "half \ufffd", providerOptions: options },
            { type: "file", mediaType: "image/*", data: { type: "data", data: "iVBORw0KGgo=" } },
            { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
            { type: "file", mediaType: "image/jpeg", data: { type: "url", url: new URL("https://example.com/a.jpg") } },
            { type: "file", mediaType: "image/jpeg", data: { type: "url", url: new URL("https://example.com/b.jpg") } },
            {
              type: "file",
              mediaType: "application/pdf",
              data: { type: "data", data: new Uint8Array([1]) },
              filename: "a.pdf",
              providerOptions: options
            }
          ]
        }
      ])
    }))

  describe("gives back results", () => {
    const image = Prompt.filePart({ mediaType: "image/png", data: "iVBORw0KGgo=" })
    const imagePart = { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } }
    const results = [
      { isFailure: false, result: "text" },
      { isFailure: false, result: "" },
      { isFailure: true, result: "text" },
      { isFailure: false, result: { a: [1, null] } },
      { isFailure: false, result: undefined },
      { isFailure: true, result: { a: 1 } },
      {
        isFailure: false,
        result: "seen",
        modelOutput: [Prompt.textPart({ text: "a" }), Prompt.textPart({ text: "b" })]
      },
      { isFailure: false, result: "seen", modelOutput: [Prompt.textPart({ text: "see" }), image] },
      { isFailure: true, result: "seen", modelOutput: [image] }
    ].map((part, at) => Prompt.toolResultPart({ id: `c${at}`, name: "get", providerExecuted: false, ...part }))
    const messages = [
      Prompt.assistantMessage({
        content: results.map(({ id, name }) => Prompt.toolCallPart({ id, name, params: {}, providerExecuted: false }))
      }),
      Prompt.toolMessage({ content: results })
    ]
    const outputs = (prompt: LanguageModelV4CallOptions["prompt"]): unknown =>
      prompt.flatMap((message) =>
        message.role === "tool"
          ? message.content.flatMap((part) => part.type === "tool-result" ? [part.output] : [])
          : []
      )
    const plain = [
      { type: "text", value: "text" },
      { type: "text", value: "(empty)" },
      { type: "error-text", value: "text" },
      { type: "json", value: { a: [1, null] } },
      { type: "json", value: null },
      { type: "error-json", value: { a: 1 } },
      { type: "text", value: "a\nb" }
    ]

    it.effect("as texts, JSON and files, and says which are failures", () =>
      Effect.gen(function*() {
        const { asked, model } = scripted("anthropic.messages", { content: [] })
        yield* ask(model, { messages })
        assert.deepStrictEqual(outputs(asked[0]!.prompt), [
          ...plain,
          { type: "content", value: [{ type: "text", text: "see" }, imagePart] },
          { type: "content", value: [{ type: "text", text: "Error:" }, imagePart] }
        ])
      }))

    it.effect("with their files after all of them where a result takes none", () =>
      Effect.gen(function*() {
        const { asked, model } = scripted("openai.chat", { content: [] })
        yield* ask(model, { messages })
        assert.deepStrictEqual(outputs(asked[0]!.prompt), [
          ...plain,
          { type: "text", value: "see\n(image/png follows)" },
          { type: "error-text", value: "(image/png follows)" }
        ])
        assert.deepStrictEqual(asked[0]!.prompt.slice(2) as unknown, [{
          role: "user",
          content: [imagePart, imagePart]
        }])
      }))
  })

  it.effect("has names and ids that the provider takes, and the reply has the own ones", () =>
    Effect.gen(function*() {
      const tools = ["fs.read", "fs_read"].map((name) => WireTool.dynamic(name, { parameters: { type: "object" } }))
      const said = (id: string, name: string) =>
        Prompt.assistantMessage({ content: [Prompt.toolCallPart({ id, name, params: {}, providerExecuted: false })] })
      const answered = (id: string, name: string) =>
        Prompt.toolMessage({
          content: [Prompt.toolResultPart({ id, name, isFailure: false, result: "r", providerExecuted: false })]
        })
      const messages = [
        user("hi"),
        said("functions.search:0", "fs.read"),
        answered("functions.search:0", "fs.read"),
        said("abcDEF123", "fs_read"),
        answered("abcDEF123", "fs_read"),
        said("abcDEF123", "gone/tool"),
        answered("abcDEF123", "gone/tool")
      ]
      const first = scripted("mistral.chat", { content: [] })
      yield* ask(first.model, { messages, table: Tool.table(tools) })
      const { prompt, tools: offered = [] } = first.asked[0]!
      const [read, other] = offered.map(({ name }) => name)
      const parts = prompt.flatMap((message) =>
        message.role === "assistant" || message.role === "tool"
          ? message.content.flatMap((part) => "toolCallId" in part ? [[part.toolCallId, part.toolName]] : [])
          : []
      )
      assert.match(read!, /^fs_read_[a-zA-Z0-9]{9}$/)
      assert.strictEqual(other, "fs_read")
      assert.deepStrictEqual([parts[0], parts[2], parts[4]], [parts[1], parts[3], parts[5]])
      assert.deepStrictEqual(parts[2], ["abcDEF123", "fs_read"])
      assert.isTrue(parts.every(([id = "", name = ""]) => /^[a-zA-Z0-9]{9}$/.test(id) && /^[a-zA-Z0-9_-]+$/.test(name)))
      assert.strictEqual(new Set(parts.map(([id]) => id)).size, 3)

      const second = scripted("mistral.chat", { content: [call("x", read!, "{}"), call("y", "fs_read", "{}")] })
      const reply = yield* ask(second.model, { messages, table: Tool.table(tools) })
      assert.deepStrictEqual(reply.content.map((part) => part.type === "tool-call" ? part.name : ""), [
        "fs.read",
        "fs_read"
      ])
      assert.deepStrictEqual(second.asked[0]!.prompt, prompt)
    }))

  it.effect("is refused before it is sent when it offers more tools than the provider takes", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("openai.chat", { content: [] })
      const tools = Array.from(
        { length: 200 },
        (_, at) => WireTool.dynamic(`t${at}`, { parameters: { type: "object" } })
      )
      const error = yield* Effect.flip(ask(model, { table: Tool.table(tools) }))
      assert.deepStrictEqual(
        [error.reason._tag, error.message, asked.length],
        [
          "InvalidRequestError",
          "AiSdk.ask: Invalid request. 200 tools are offered, and openai.chat takes at most 128: select fewer",
          0
        ]
      )
      yield* ask(model, { table: Tool.table(tools) }, { maxTools: 200 })
    }))

  it.effect("keeps the rules of whoever runs the models behind a host", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("host.chat", { content: [] }, { content: [] })
      const messages = [
        Prompt.assistantMessage({
          content: [Prompt.toolCallPart({ id: "call_1", name: "get", params: {}, providerExecuted: false })]
        })
      ]
      yield* ask(model, { messages })
      yield* ask(model, { messages }, { rulesOf: "mistral.chat" })
      const ids = asked.map(({ prompt: [message] }) =>
        message?.role === "assistant" && message.content[0]?.type === "tool-call" ? message.content[0].toolCallId : ""
      )
      assert.strictEqual(ids[0], "call_1")
      assert.match(ids[1]!, /^[a-zA-Z0-9]{9}$/)
    }))

  it.effect("is not sent to a model of an older AI SDK", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("some.chat")
      const error = yield* Effect.flip(ask({ ...model, specificationVersion: "v3" as "v4" }))
      assert.deepStrictEqual([error.reason._tag, asked.length], ["InvalidRequestError", 0])
      assert.include(error.message, "some.chat speaks v3 of the AI SDK's language, and v4 is needed")
    }))

  it.effect("offers tools that the provider runs, by the words of either side", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("openai.responses", { content: [] })
      const search = WireTool.providerDefined({
        id: "openai.web_search",
        customName: "Search",
        providerName: "web_search",
        args: Schema.Struct({ size: Schema.String })
      })({ size: "low" })
      const code = { type: "provider", id: "openai.code_interpreter", name: "code", args: {} } as const
      yield* ask(model, { table: Tool.table([search]) }, { providerTools: [code] })
      assert.deepStrictEqual(asked[0]!.tools as unknown, [
        { type: "provider", id: "openai.web_search", name: "Search", args: { size: "low" } },
        code
      ])
    }))
})

const signed = (signature: string) => ({ anthropic: { signature } })

describe("a reply", () => {
  const content: ReadonlyArray<LanguageModelV4Content> = [
    { type: "reasoning", text: "hm", providerMetadata: signed("S1") },
    { type: "reasoning", text: "", providerMetadata: { anthropic: { redactedData: "R" } } },
    text("so ", { openai: { itemId: "i1" } }),
    {
      type: "tool-call",
      toolCallId: "s1",
      toolName: "web_search",
      input: '{"query":"q"}',
      providerExecuted: true,
      providerMetadata: { x: { a: 1 } }
    },
    { type: "tool-result", toolCallId: "s1", toolName: "web_search", result: { early: true }, preliminary: true },
    { type: "tool-result", toolCallId: "s1", toolName: "web_search", result: [{ url: "u" }] },
    { type: "custom", kind: "openai.compaction", providerMetadata: { openai: { itemId: "i2" } } },
    { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2]) } },
    { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AQI=" } },
    { type: "source", sourceType: "url", id: "1", url: "u" },
    call("c1", "get", '{"a":1', { google: { thoughtSignature: "T" } }),
    call("c2", "get", '{"a":2}')
  ]
  const streamed: ReadonlyArray<LanguageModelV4StreamPart> = [
    { type: "stream-start", warnings: [{ type: "unsupported", feature: "seed", details: "no" }] },
    { type: "reasoning-start", id: "0" },
    { type: "reasoning-delta", id: "0", delta: "h" },
    { type: "reasoning-delta", id: "0", delta: "m" },
    { type: "reasoning-delta", id: "0", delta: "", providerMetadata: signed("S1") },
    { type: "reasoning-end", id: "0" },
    { type: "reasoning-start", id: "0", providerMetadata: { anthropic: { redactedData: "R" } } },
    { type: "reasoning-end", id: "0" },
    { type: "text-start", id: "0", providerMetadata: { openai: { itemId: "i1" } } },
    { type: "text-delta", id: "0", delta: "so " },
    { type: "text-end", id: "0" },
    ...content.slice(3, 10) as ReadonlyArray<LanguageModelV4StreamPart>,
    { type: "tool-input-start", id: "c1", toolName: "get" },
    { type: "tool-input-delta", id: "c1", delta: '{"a":1' },
    { type: "tool-input-end", id: "c1" },
    ...content.slice(10) as ReadonlyArray<LanguageModelV4StreamPart>,
    { type: "response-metadata", modelId: "m-2" },
    { type: "ping" },
    finish("tool-calls")
  ]
  const expected = [
    Prompt.reasoningPart({ text: "hm", options: signed("S1") }),
    Prompt.reasoningPart({ text: "", options: { anthropic: { redactedData: "R" } } }),
    Prompt.textPart({
      text: "so ",
      options: {
        openai: { itemId: "i1" },
        aiSdk: { sources: [{ type: "source", sourceType: "url", id: "1", url: "u" }] }
      }
    }),
    Prompt.toolCallPart({
      id: "s1",
      name: "web_search",
      params: '{"query":"q"}',
      providerExecuted: true,
      options: { x: { a: 1 } }
    }),
    Prompt.toolResultPart({
      id: "s1",
      name: "web_search",
      isFailure: false,
      result: [{ url: "u" }],
      providerExecuted: true
    }),
    Prompt.reasoningPart({ text: "", options: { openai: { itemId: "i2" }, aiSdk: { kind: "openai.compaction" } } }),
    Prompt.filePart({ mediaType: "image/png", data: "AQI=" }),
    Prompt.filePart({ mediaType: "image/png", data: "AQI=", options: { aiSdk: { isReasoning: true } } }),
    Prompt.toolCallPart({
      id: "c1",
      name: "get",
      params: '{"a":1',
      providerExecuted: false,
      options: { google: { thoughtSignature: "T" } }
    }),
    Prompt.toolCallPart({ id: "c2", name: "get", params: '{"a":2}', providerExecuted: false })
  ]
  const whole: Provider.Reply = {
    content: expected,
    finish: "tool-calls",
    usage: {
      inputTokens: { total: 10, uncached: 6, cacheRead: 3, cacheWrite: 1 },
      outputTokens: { total: 5, text: 3, reasoning: 2 }
    },
    model: "m-2",
    warnings: ["seed is not supported: no"]
  }
  const extra = { response: { modelId: "m-2" }, warnings: [{ type: "unsupported", feature: "seed", details: "no" }] }

  it.effect("holds everything that was said, in its order, and arguments as the model wrote them", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", { content, extra, finish: finish("tool-calls") })
      assert.deepStrictEqual(yield* ask(model), whole)
    }))

  it.effect("is the same when it is streamed, and what is said is shown while it arrives", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", { parts: streamed })
      const shown: Array<Provider.Delta> = []
      const sink: Provider.Sink = (deltas) => Effect.sync(() => void shown.push(...deltas))
      assert.deepStrictEqual(yield* ask(model, {}, { sink }), whole)
      assert.deepStrictEqual(shown, [
        { type: "reasoning", delta: "h", part: 0 },
        { type: "reasoning", delta: "m", part: 0 },
        { type: "text", delta: "so ", part: 0 },
        { type: "input", delta: '{"a":1', part: 0, id: "c1", name: "get" }
      ])
    }))

  it.effect("can be stored, also where a provider says undefined for what it has not", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", {
        content: [
          text("hello", { google: { thoughtSignature: "T", other: undefined }, none: { a: [{ b: undefined }] } })
        ]
      })
      const { content } = yield* ask(model)
      const stored = Schema.fromJsonString(Prompt.Prompt)
      const prompt = Prompt.fromMessages([Prompt.assistantMessage({ content })])
      const again = yield* Schema.decodeEffect(stored)(yield* Schema.encodeEffect(stored)(prompt))
      assert.deepStrictEqual(again, prompt)
      assert.deepStrictEqual(content[0]!.options as unknown, {
        google: { thoughtSignature: "T" },
        none: { a: [{}] }
      })
    }))

  it.effect("goes back as it came, part by part", () =>
    Effect.gen(function*() {
      const { asked, model } = scripted("some.chat", { content: [] })
      yield* ask(model, { messages: [user("hi"), Prompt.assistantMessage({ content: expected })] })
      assert.deepStrictEqual(asked[0]!.prompt[1] as unknown, {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm", providerOptions: signed("S1") },
          { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "R" } } },
          { type: "text", text: "so ", providerOptions: { openai: { itemId: "i1" } } },
          {
            type: "tool-call",
            toolCallId: "s1",
            toolName: "web_search",
            input: { query: "q" },
            providerExecuted: true,
            providerOptions: { x: { a: 1 } }
          },
          {
            type: "tool-result",
            toolCallId: "s1",
            toolName: "web_search",
            output: { type: "json", value: [{ url: "u" }] }
          },
          { type: "custom", kind: "openai.compaction", providerOptions: { openai: { itemId: "i2" } } },
          { type: "file", mediaType: "image/png", data: { type: "data", data: "AQI=" } },
          { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AQI=" } },
          {
            type: "tool-call",
            toolCallId: "c1",
            toolName: "get",
            input: {},
            providerOptions: { google: { thoughtSignature: "T" } }
          },
          { type: "tool-call", toolCallId: "c2", toolName: "get", input: { a: 2 } }
        ]
      })
    }))

  for (
    const [reason, expected] of [
      [{ unified: "stop", raw: "end_turn" }, "stop"],
      [{ unified: "stop", raw: "pause_turn" }, "pause"],
      [{ unified: "length", raw: "max_tokens" }, "length"],
      [{ unified: "content-filter", raw: "refusal" }, "content-filter"],
      [{ unified: "tool-calls", raw: "tool_use" }, "tool-calls"],
      [{ unified: "error", raw: "MALFORMED_FUNCTION_CALL" }, "error"],
      [{ unified: "other", raw: "compaction" }, "other"],
      [{ unified: "other", raw: undefined }, "unknown"]
    ] as const
  ) {
    it.effect(`ends as ${expected} when the provider says ${reason.unified} for ${reason.raw}`, () =>
      Effect.gen(function*() {
        const { model } = scripted("some.chat", { finish: { type: "finish", finishReason: reason, usage } })
        assert.strictEqual((yield* ask(model)).finish, expected)
      }))
  }

  it.effect("says in words what the provider warns of", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", {
        extra: {
          warnings: [
            { type: "unsupported", feature: "topK" },
            { type: "compatibility", feature: "json", details: "as a tool" },
            { type: "deprecated", setting: "a", message: "use b" },
            { type: "other", message: "beware" }
          ]
        }
      })
      assert.deepStrictEqual((yield* ask(model)).warnings, [
        "topK is not supported",
        "json is imitated: as a tool",
        "a is deprecated: use b",
        "beware"
      ])
    }))
})

describe("a stream", () => {
  const Spoken = Schema.Struct({ type: Schema.Literals(["text", "reasoning"]), pieces: Schema.Array(Schema.String) })
  const Called = Schema.Struct({ type: Schema.Literals(["call"]), pieces: Schema.Array(Schema.String) })

  it.effect.prop("says the same as the whole answer, however it is cut", [
    Schema.Array(Schema.Union([Spoken, Called]))
  ], ([said]) =>
    Effect.gen(function*() {
      const content = said.map(({ pieces, type }, at): LanguageModelV4Content =>
        type === "call" ? call(`c${at}`, "get", pieces.join("")) : { type, text: pieces.join("") }
      )
      const parts = said.flatMap(({ pieces, type }, at): ReadonlyArray<LanguageModelV4StreamPart> =>
        type === "call"
          ? [
            { type: "tool-input-start", id: `c${at}`, toolName: "get" },
            ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: "tool-input-delta", id: `c${at}`, delta })),
            { type: "tool-input-end", id: `c${at}` },
            call(`c${at}`, "get", pieces.join("")) as LanguageModelV4StreamPart
          ]
          : [
            { type: `${type}-start`, id: "0" },
            ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: `${type}-delta`, id: "0", delta })),
            { type: `${type}-end`, id: "0" }
          ]
      )
      const { model } = scripted("some.chat", { content }, { parts: [...parts, finish()] })
      assert.deepStrictEqual(yield* ask(model), yield* ask(model, {}, { sink: quiet }))
    }))

  const begun: ReadonlyArray<LanguageModelV4StreamPart> = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Par" }
  ]
  const input = (id: string, args: string, ends: boolean): ReadonlyArray<LanguageModelV4StreamPart> => [
    { type: "tool-input-start", id, toolName: "get" },
    ...[...args].map((delta): LanguageModelV4StreamPart => ({ type: "tool-input-delta", id, delta })),
    ...(ends ? [{ type: "tool-input-end", id } as const] : [])
  ]
  const calls = ({ content }: Provider.Reply) =>
    content.map((part) => part.type === "tool-call" ? [part.id, part.name, part.params] : part.type)

  it.effect("makes a call of its pieces where the provider does not say it whole", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", { parts: [...input("c1", '{"a":1}', true), finish("tool-calls")] })
      assert.deepStrictEqual(calls(yield* ask(model, {}, { sink: quiet })), [["c1", "get", '{"a":1}']])
    }))

  it.effect("keeps a call that the token limit cut off, and drops one that was given up", () =>
    Effect.gen(function*() {
      const parts = input("c1", '{"a"', false)
      const { model } = scripted("some.chat", { parts: [...parts, finish("length")] }, { parts: [...parts, finish()] })
      assert.deepStrictEqual(calls(yield* ask(model, {}, { sink: quiet })), [["c1", "get", '{"a"']])
      assert.deepStrictEqual(calls(yield* ask(model, {}, { sink: quiet })), [])
    }))

  for (
    const [how, end] of [
      ["without a last word", []],
      ["with a last word that says so", [finish("interrupted")]],
      ["with a last word that gives no reason and counts nothing", [{
        type: "finish",
        finishReason: { unified: "other", raw: undefined },
        usage: { ...usage, outputTokens: { total: undefined, text: undefined, reasoning: undefined } }
      }]]
    ] as ReadonlyArray<readonly [string, ReadonlyArray<LanguageModelV4StreamPart>]>
  ) {
    it.effect(`that ends too early, ${how}, is an error that says so`, () =>
      Effect.gen(function*() {
        const { model } = scripted("some.chat", { parts: [...begun, ...end] })
        const error = yield* Effect.flip(ask(model, {}, { sink: quiet }))
        assert.deepStrictEqual([error.reason._tag, error.isRetryable], ["NetworkError", true])
        assert.include(error.message, "the stream ended before the answer did")
      }))
  }

  it.effect("fails with what an error in the middle of it says, after what was shown", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", {
        parts: [...begun, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, finish()]
      })
      const shown: Array<string> = []
      const error = yield* Effect.flip(
        ask(model, {}, { sink: (deltas) => Effect.sync(() => void shown.push(...deltas.map(({ delta }) => delta))) })
      )
      assert.deepStrictEqual(
        [error.reason._tag, error.message, error.isRetryable, shown],
        ["InternalProviderError", "AiSdk.ask: Internal provider error: Overloaded [overloaded_error]", true, ["Par"]]
      )
    }))

  it.effect("stands once it is complete, whatever comes after", () =>
    Effect.gen(function*() {
      const { model } = scripted("some.chat", { parts: [...begun, finish(), { type: "error", error: "late" }] })
      assert.strictEqual((yield* ask(model, {}, { sink: quiet })).finish, "stop")
    }))

  it.effect("is read only as fast as its sink takes it", () =>
    Effect.gen(function*() {
      let pulled = 0
      const { model } = scripted("some.chat")
      model.doStream = async () => ({
        stream: streamOf({
          pull: (controller) => {
            pulled++
            controller.enqueue(pulled < 100 ? { type: "text-delta", id: "1", delta: `${pulled} ` } : finish())
          }
        }, 0)
      })
      const taken = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const sink: Provider.Sink = () => Effect.andThen(Deferred.succeed(taken, undefined), Deferred.await(goOn))
      const fiber = yield* Effect.forkChild(ask(model, {}, { sink }))
      yield* Deferred.await(taken)
      const early = pulled
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual([early, pulled], [1, 100])
    }))
})

describe("an interruption", () => {
  for (const way of ["plain", "streamed"] as const) {
    it.effect(`aborts a request that is not answered yet, ${way}`, () =>
      Effect.gen(function*() {
        const started = yield* Deferred.make<AbortSignal>()
        const { model } = scripted("some.chat")
        const wait = ({ abortSignal }: LanguageModelV4CallOptions): Promise<never> => {
          Effect.runSync(Deferred.succeed(started, abortSignal!))
          return new Promise(() => {})
        }
        Object.assign(model, { doGenerate: wait, doStream: wait })
        const fiber = yield* Effect.forkChild(ask(model, {}, way === "streamed" ? { sink: quiet } : {}))
        const signal = yield* Deferred.await(started)
        assert.isFalse(signal.aborted)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(signal.aborted)
      }))
  }

  it.effect("aborts a request whose answer is arriving, and tells its stream", () =>
    Effect.gen(function*() {
      const shown = yield* Deferred.make<void>()
      const told = yield* Deferred.make<void>()
      let signal: AbortSignal | undefined
      const { model } = scripted("some.chat")
      model.doStream = async ({ abortSignal }) => {
        signal = abortSignal
        return {
          stream: streamOf({
            start: (controller) => controller.enqueue({ type: "text-delta", id: "1", delta: "Par" }),
            cancel: () => void Effect.runSync(Deferred.succeed(told, undefined))
          })
        }
      }
      const fiber = yield* Effect.forkChild(ask(model, {}, { sink: () => Deferred.succeed(shown, undefined) }))
      yield* Deferred.await(shown)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(told)
      assert.isTrue(signal?.aborted)
    }))
})

describe("the public model", () => {
  const kit = Toolkit.make(get)

  it.effect("answers, runs tools and streams for effect/ai too", () =>
    Effect.gen(function*() {
      const { model } = scripted(
        "some.chat",
        { content: [text("hello")] },
        { content: [call("c1", "get", '{"a":1}')], finish: finish("tool-calls") },
        {
          parts: [
            { type: "text-start", id: "1" },
            { type: "text-delta", id: "1", delta: "hel" },
            { type: "text-delta", id: "1", delta: "lo" },
            { type: "text-end", id: "1" },
            finish()
          ]
        },
        { content: [text('{"b":2}')] }
      )
      yield* Effect.gen(function*() {
        assert.strictEqual((yield* LanguageModel.generateText({ prompt: "hi" })).text, "hello")
        const { toolResults } = yield* LanguageModel.generateText({ prompt: "hi", toolkit: kit })
        assert.deepStrictEqual(toolResults.map(({ result }) => result), [{ b: 2 }])
        const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "hi" }))
        assert.deepStrictEqual(
          parts.map((part) => part.type === "text-delta" ? part.delta : part.type),
          ["text-start", "hel", "lo", "text-end", "finish"]
        )
        const { value } = yield* LanguageModel.generateObject({
          prompt: "hi",
          schema: Schema.Struct({ b: Schema.Int })
        })
        assert.deepStrictEqual(value, { b: 2 })
      }).pipe(
        Effect.provide(kit.toLayer({ get: ({ a }) => Effect.succeed({ b: a + 1 }) })),
        Effect.provide(AiSdk.layer(model))
      )
    }))
})
