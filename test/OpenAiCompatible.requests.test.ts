// What is a server asked, which of it does it take, and what is said of the rest?
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as DynamicTool from "toolfold/dynamic/DynamicTool"
import * as Provider from "toolfold/Provider"
import type * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { ask, type Asked, call, failed, hi, host, json, whole } from "./chatHost.ts"

const ok = () => json(whole({ content: "ok" }))
const on = (baseUrl: string, model = "m"): Partial<OpenAiCompatible.Options> => ({ baseUrl, model })
const openai = (model = "gpt-4o") => on("https://api.openai.com/v1", model)
const mistral = on("https://api.mistral.ai/v1", "mistral-small-latest")
const deepseek = on("https://api.deepseek.com", "deepseek-chat")
const openrouter = (model: string) => on("https://openrouter.ai/api/v1", model)

/** The body that is sent, without what it is about, and what is said of what is not sent. */
const sent = (asked: Asked) =>
  Effect.map(
    ask(ok(), { plain: true, ...asked }),
    ({ body: { messages: _messages, model: _model, ...body }, reply }) => [
      body,
      reply.warnings
    ]
  )

const get = Tool.make("get", { description: "Gets", input: { a: Schema.Int }, handler: () => Effect.succeed("got") })
const table = Tool.table([get])
const user = (...content: ReadonlyArray<Prompt.UserMessagePart>) => Prompt.userMessage({ content })
const said = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) => Prompt.assistantMessage({ content })
const called = (id: string, name = "get", params: unknown = { a: 1 }) =>
  Prompt.toolCallPart({ id, name, params, providerExecuted: false })
const answered = (id: string, more: Partial<Prompt.ToolResultPart> = {}) =>
  Prompt.toolResultPart({ id, name: "get", isFailure: false, result: "got", providerExecuted: false, ...more })
const results = (...content: ReadonlyArray<Prompt.ToolResultPart>) => Prompt.toolMessage({ content })

describe("settings", () => {
  const notTaken = (setting: string, why = "this model does not take it") =>
    `the setting ${setting} is not sent: ${why}`
  const all: Provider.Settings = {
    temperature: 0.5,
    maxTokens: 100,
    topP: 0.9,
    seed: 7,
    stop: ["END"],
    effort: "low"
  }
  const rows: ReadonlyArray<
    readonly [what: string, Partial<OpenAiCompatible.Options>, Provider.Settings, object, ReadonlyArray<string>?]
  > = [
    ["a server that nobody knows", {}, all, {
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ["END"],
      reasoning_effort: "low"
    }],
    ["a model of OpenAI that does not reason", openai(), all, {
      max_completion_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ["END"]
    }, [notTaken("effort")]],
    ["a model of OpenAI that reasons", openai("o3-mini"), all, {
      max_completion_tokens: 100,
      seed: 7,
      reasoning_effort: "low"
    }, [notTaken("temperature"), notTaken("topP"), notTaken("stop")]],
    ["one that need not reason", openai("gpt-5.2"), { temperature: 0, effort: "none" }, {
      temperature: 0,
      reasoning_effort: "none"
    }],
    ["one that need not reason and does", openai("gpt-5.2"), { temperature: 0 }, {}, [
      notTaken("temperature", 'this model takes it only with the effort "none"')
    ]],
    ["a gateway to one that reasons", { model: "openai/gpt-5-mini" }, { maxTokens: 9, topP: 1 }, {
      max_completion_tokens: 9
    }, [notTaken("topP")]],
    ["Azure under a name of one's own", on("https://r.openai.azure.com/openai/v1", "mine"), all, {
      max_completion_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ["END"],
      reasoning_effort: "low"
    }],
    ["Mistral", mistral, { maxTokens: 100, seed: 7, cache: true }, { max_tokens: 100, random_seed: 7 }],
    ["DeepSeek", deepseek, { effort: "high", seed: 7 }, { reasoning_effort: "high" }, [notTaken("seed")]],
    ["DeepSeek that is not to reason", deepseek, { effort: "none" }, { thinking: { type: "disabled" } }],
    ["Groq", on("https://api.groq.com/openai/v1"), { maxTokens: 9 }, { max_completion_tokens: 9 }],
    ["OpenRouter", openrouter("anthropic/claude-haiku-4.5"), { effort: "low", maxTokens: 9, cache: true }, {
      reasoning: { effort: "low" },
      max_tokens: 9,
      cache_control: { type: "ephemeral" }
    }],
    ["a cache that is kept anyway", openai(), { cache: true }, {}],
    ["a cache that nobody knows of", {}, { cache: true }, {}, [
      notTaken("cache", "there is no field for it, and whether this server keeps anything is not known")
    ]],
    ["more stops than are taken", openai(), { stop: ["a", "b", "c", "d", "e"] }, { stop: ["a", "b", "c", "d"] }, [
      "of the setting stop the first 4 of 5 texts are sent, which is all that is taken"
    ]],
    ["a server under its other name", { rulesOf: "mistral" }, { seed: 7 }, { random_seed: 7 }],
    [
      "what an option says",
      { takes: { maxTokens: "max_completion_tokens", seed: "none" } },
      { maxTokens: 9, seed: 7 },
      {
        max_completion_tokens: 9
      },
      [notTaken("seed")]
    ],
    ["a body of one's own, which a setting goes before", { body: { max_tokens: 5, top_k: 3, seed: 1 } }, {
      maxTokens: 9
    }, { max_tokens: 9, top_k: 3, seed: 1 }]
  ]
  for (const [what, model, settings, body, warnings] of rows) {
    it.effect(`are sent as the server takes them: ${what}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* sent({ model, settings }), [body, warnings])
      }))
  }

  it.effect("for the effort are not sent beside tools where a model takes one or the other", () =>
    Effect.gen(function*() {
      const asked = { model: openai("gpt-5.4"), settings: { effort: "high" } } as const
      assert.deepStrictEqual(yield* sent(asked), [{ reasoning_effort: "high" }, undefined])
      const [{ tools, ...body }, warnings]: any = yield* sent({ ...asked, table })
      assert.deepStrictEqual([tools.length, body, warnings], [1, {}, [
        notTaken("effort", "this model does not take it beside tools")
      ]])
    }))

  it.effect("leave parallel_tool_calls out where there are no tools, or a model refuses it", () =>
    Effect.gen(function*() {
      const body = { parallel_tool_calls: false }
      const of = (model: string, asked: Asked = {}) =>
        Effect.map(sent({ model: { ...openai(model), body }, ...asked }), ([body, warnings]) => [
          body.parallel_tool_calls,
          warnings
        ])
      assert.deepStrictEqual(yield* of("gpt-4o", { table }), [false, undefined])
      assert.deepStrictEqual(yield* of("gpt-4o"), [undefined, undefined])
      assert.deepStrictEqual(yield* of("o3-mini", { table }), [undefined, [
        "parallel_tool_calls is not sent: this model does not take it"
      ]])
    }))

  it.effect("of a stream ask for its usage, but where that is refused", () =>
    Effect.gen(function*() {
      const [body]: any = yield* sent({ plain: false, model: openai() })
      assert.deepStrictEqual(body, { stream: true, stream_options: { include_usage: true } })
      assert.deepStrictEqual((yield* sent({ plain: false, model: mistral }))[0], { stream: true })
    }))
})

describe("the form of the answer", () => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } as const
  const closed = { ...schema, additionalProperties: false }
  const format = { name: "Form", schema }
  const asked = (model: Partial<OpenAiCompatible.Options>, more: Asked = {}) => sent({ model, format, ...more })
  const asSchema = (json_schema: object) => ({ response_format: { type: "json_schema", json_schema } })

  it.effect("is a schema, strict where that is taken and the schema can be", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* asked({}), [asSchema({ name: "Form", schema }), undefined])
      assert.deepStrictEqual(yield* asked(openai()), [
        asSchema({ name: "Form", schema: closed, strict: true }),
        undefined
      ])
      const loose = { ...schema, required: [] }
      assert.deepStrictEqual(yield* asked(openai(), { format: { name: "Form", schema: loose } }), [
        asSchema({ name: "Form", schema: loose, strict: false }),
        ['the form of the answer is not sent as strict: "n" may be left out at #']
      ])
    }))

  it.effect("is told to the model where the server takes no schema", () =>
    Effect.gen(function*() {
      const warnings = [
        "the form of the answer is not sent as a schema, which this server does not take: the model is told of it"
      ]
      const last = {
        role: "user",
        content: `Answer with nothing but JSON that fits this JSON Schema: ${JSON.stringify(schema)}`
      }
      const models = [deepseek, openai("gpt-4-turbo"), { takes: { format: "json_object" } }] as const
      for (const model of models) {
        const { body, reply } = yield* ask(ok(), { model, format })
        assert.deepStrictEqual([body.response_format, body.messages, reply.warnings], [
          { type: "json_object" },
          [{ role: "user", content: "hi" }, last],
          warnings
        ])
      }
      const { body } = yield* ask(ok(), { model: { takes: { format: "none" } }, format })
      assert.deepStrictEqual([body.response_format, body.messages.at(-1)], [undefined, last])
    }))
})

describe("tools", () => {
  const query = {
    type: "object",
    properties: {
      query: { type: "string" },
      limit: { type: "number" },
      opts: { type: "object", properties: { deep: { type: "boolean" } }, required: [], additionalProperties: false }
    },
    required: ["query"]
  } as const
  const find = (jsonSchema: { readonly [keyword: string]: unknown }, strict = true) =>
    DynamicTool.make("find", { jsonSchema, strict, handler: (input) => Effect.succeed(JSON.stringify(input)) })

  it.effect("SCH-01 that are strict have every key required and what may be left out nullable, and null is read as left out", () =>
    Effect.gen(function*() {
      const strict = {
        type: "object",
        properties: {
          query: { type: "string" },
          limit: { type: ["number", "null"] },
          opts: {
            type: ["object", "null"],
            properties: { deep: { type: ["boolean", "null"] } },
            required: ["deep"],
            additionalProperties: false
          }
        },
        required: ["query", "limit", "opts"],
        additionalProperties: false
      }
      for (const model of [openai(), mistral, {}]) {
        const [body, warnings] = yield* sent({ model, table: Tool.table([find(query)]) })
        assert.deepStrictEqual([body.tools[0].function.strict, body.tools[0].function.parameters, warnings], [
          true,
          strict,
          undefined
        ])
      }
      const answers = [
        json(whole({ tool_calls: [call('{"query":"q","limit":null,"opts":{"deep":null}}', { id: "1" }, "find")] })),
        ok()
      ]
      const server = host(() => answers.shift() ?? assert.fail("asked too often"))
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
        Effect.provide(ToolRegistry.layer(find(query))),
        Effect.provide(server.model(openai()))
      )
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{
        _tag: "Success",
        value: '{"query":"q","opts":{}}',
        writes: []
      }])
    }))

  it.effect("SCH-01 that cannot be strict are sent as they are, and that is said", () =>
    Effect.gen(function*() {
      const open = { type: "object", properties: { any: {} }, required: ["any"] } as const
      const warning = (why: string) => [`tool "find" is not sent as strict: ${why}`]
      const of = (model: Partial<OpenAiCompatible.Options>) =>
        Effect.map(sent({ model, table: Tool.table([find(open)]) }), ([body, warnings]) => [
          body.tools[0].function,
          warnings
        ])
      const why = "anything is allowed at #/any"
      assert.deepStrictEqual(yield* of(openai()), [
        { name: "find", strict: false, parameters: open },
        warning(why)
      ])
      assert.deepStrictEqual(yield* of(deepseek), [
        { name: "find", parameters: open },
        warning("this server does not take that")
      ])
    }))

  it.effect("SCH-07 whose arrays or properties may be anything say so where a server asks for it", () =>
    Effect.gen(function*() {
      const schema = { type: "object", properties: { tags: { type: "array" }, count: { default: 10 }, any: true } }
      const of = (model: Partial<OpenAiCompatible.Options>) =>
        Effect.map(sent({ model, table: Tool.table([find(schema, false), get]) }), ([body, warnings]) => [
          body.tools.map(({ function: f }: any) => [f.name, f.parameters.properties]),
          warnings
        ])
      const own = ["get", Tool.schema(get).input_schema.properties]
      assert.deepStrictEqual(yield* of(openai()), [
        [["find", { tags: { type: "array", items: {} }, count: { default: 10 }, any: {} }], own],
        undefined
      ])
      assert.deepStrictEqual(yield* of({}), [[["find", schema.properties], own], undefined])
    }))

  it.effect("SCH-11 of which there are too many are an error that says how many, and nothing is sent", () =>
    Effect.gen(function*() {
      const many = Tool.table(
        Array.from({ length: 200 }, (_, at) => Tool.make(`tool_${at}`, { handler: () => Effect.succeed("") }))
      )
      const reason = yield* failed(() => assert.fail("was sent"), { model: openai(), table: many })
      assert.deepStrictEqual([reason._tag, reason.message], [
        "InvalidRequestError",
        "Invalid request. 200 tools are offered, and api.openai.com takes at most 128: select fewer"
      ])
      const oneOf = ["tool_3", "tool_150"]
      const { body } = yield* ask(ok(), { model: openai(), table: many, toolChoice: { oneOf, mode: "required" } })
      assert.deepStrictEqual([body.tools.map((tool: any) => tool.function.name), body.tool_choice], [oneOf, "required"])
      assert.strictEqual((yield* ask(ok(), { table: many })).body.tools.length, 200)
      const reopened = { ...openai(), takes: { maxTools: 200 } }
      assert.strictEqual((yield* ask(ok(), { model: reopened, table: many })).body.tools.length, 200)
    }))

  it.effect("that a provider runs are left out, and that is said", () =>
    Effect.gen(function*() {
      const search = WireTool.providerDefined({
        id: "openai.web_search",
        customName: "Search",
        providerName: "web_search"
      })()
      const [body, warnings] = yield* sent({ table: Tool.table([get, search]) })
      assert.deepStrictEqual([body.tools.length, warnings], [1, [
        `tool "${search.name}" is not sent: its provider runs it, which is not possible here`
      ]])
    }))

  it.effect("with names that no server takes have others there, in the transcript too, and come back by their own", () =>
    Effect.gen(function*() {
      const names = ["my.resource/read", "my_resource_read", "my resource read", "ж", "n".repeat(65)]
      const named = Tool.table(names.map((name) => WireTool.make(name, { success: Schema.String })))
      const messages = [hi, said(...names.map((name) => called(name, name)))]
      const toolChoice = { tool: "my.resource/read" } as const
      const first = yield* ask(ok(), { table: named, messages, toolChoice })
      const there: ReadonlyArray<string> = first.body.tools.map((tool: any) => tool.function.name)
      assert.strictEqual(there[1], "my_resource_read")
      assert.strictEqual(new Set(there).size, names.length)
      for (const name of there) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
      assert.deepStrictEqual(first.body.messages[1].tool_calls.map((call: any) => call.function.name), there)
      assert.deepStrictEqual(first.body.tool_choice, { type: "function", function: { name: there[0] } })
      const back = yield* ask(json(whole({ tool_calls: there.map((name, at) => call("{}", { id: `${at}` }, name)) })), {
        table: named
      })
      assert.deepStrictEqual(back.calls.map(([, name]) => name), names)
    }))

  it.effect("that must be called are asked for in the server's word", () =>
    Effect.gen(function*() {
      const of = (model: Partial<OpenAiCompatible.Options>) =>
        Effect.map(sent({ model, table, toolChoice: "required" }), ([body]) => body.tool_choice)
      assert.deepStrictEqual([yield* of({}), yield* of(mistral)], ["required", "any"])
    }))
})

describe("ids of calls", () => {
  const ids = [
    "call_AbCdEfGhIjKlMnOpQrStUvWx",
    "functions.search:0",
    "toolu_01Ab",
    "x".repeat(90),
    "turn1_0",
    "Ab3dEf7hI"
  ]
  const messages = [hi, said(...ids.map((id) => called(id))), results(...ids.map((id) => answered(id)))]
  const targets: ReadonlyArray<readonly [string, Partial<OpenAiCompatible.Options>, RegExp]> = [
    ["Mistral", mistral, /^[a-zA-Z0-9]{9}$/],
    ["Anthropic", on("https://api.anthropic.com/v1", "claude-haiku-4-5"), /^[a-zA-Z0-9_-]{1,64}$/],
    ["OpenAI", openai(), /^[\x21-\x7e]{1,40}$/]
  ]
  for (const [what, model, legal] of targets) {
    it.effect(`PRO-05 of other providers are ones that ${what} takes, the same on results and in every process`, () =>
      Effect.gen(function*() {
        const before = JSON.stringify(messages)
        const of = () =>
          Effect.map(ask(ok(), { model, messages }), ({ body }) => [
            body.messages[1].tool_calls.map(({ id }: any) => id),
            body.messages.slice(2).map((message: any) => message.tool_call_id)
          ])
        const [calls, answers] = yield* of()
        assert.deepStrictEqual(answers, calls)
        assert.deepStrictEqual(yield* of(), [calls, answers])
        assert.strictEqual(new Set(calls).size, ids.length)
        for (const [at, id] of calls.entries()) {
          assert.match(id, legal)
          if (legal.test(ids[at]!)) assert.strictEqual(id, ids[at])
        }
        assert.strictEqual(JSON.stringify(messages), before)
      }))
  }

  it.effect("that a provider answered itself are left out, and that is said", () =>
    Effect.gen(function*() {
      const search = Prompt.toolCallPart({ id: "1", name: "search", params: {}, providerExecuted: true })
      const messages = [hi, said(Prompt.textPart({ text: "found" }), search)]
      const { body, reply } = yield* ask(ok(), { messages })
      assert.deepStrictEqual([body.messages[1], reply.warnings], [
        { role: "assistant", content: "found" },
        ["a call that its provider ran is not sent back: search"]
      ])
    }))

  it.effect("that a provider gives again in a later turn are told apart, each with its own result", () =>
    Effect.gen(function*() {
      const turn = [said(called("call_0")), results(answered("call_0"))]
      const { body } = yield* ask(ok(), {
        messages: [hi, ...turn, said(called("call_0")), results(answered("call_0"))]
      })
      const [first, second] = [body.messages[1].tool_calls[0].id, body.messages[3].tool_calls[0].id]
      assert.deepStrictEqual([first, body.messages[2].tool_call_id], ["call_0", "call_0"])
      assert.notStrictEqual(second, "call_0")
      assert.strictEqual(body.messages[4].tool_call_id, second)
    }))
})

describe("a run", () => {
  const again = json(whole({ content: "so", tool_calls: [call('{"a":1}', { id: "call_0" })] }))

  for (const [what, model] of [["a server that nobody knows", {}], ["Mistral", mistral]] as const) {
    it.effect(`begins each request with the bytes of the one before, over five turns, also where ids repeat: ${what}`, () =>
      Effect.gen(function*() {
        const answers = [again, again, again, again].map((answer) => answer.clone())
        const server = host(() => answers.shift() ?? ok())
        const bot = AgentLoop.make("bot", {
          instructions: "be kind",
          settings: { temperature: 0 },
          maxRepeats: 100
        })
        yield* Effect.result(AgentLoop.run(bot, { prompt: "hi" })).pipe(
          Effect.provide(ToolRegistry.layer(get)),
          Effect.provide(server.model(model))
        )
        assert.isAtLeast(server.sent.length, 5)
        for (const [at, text] of server.sent.slice(1, 5).entries()) {
          const before = server.sent[at] ?? ""
          const front = before.slice(0, before.lastIndexOf("]"))
          assert.strictEqual(text.slice(0, front.length), front)
        }
      }))
  }

  it.effect("reads each message and each tool for one request alone, at turn 10 as at turn 1,000", () =>
    Effect.gen(function*() {
      const read: Array<string> = []
      const watched = <A extends object>(value: A, key: keyof A & string, name: string): A =>
        Object.defineProperty(Object.create(value), key, {
          enumerable: true,
          get: () => {
            read.push(name)
            return value[key]
          }
        })
      const server = host(ok)
      const model = yield* Effect.provide(LanguageModel.LanguageModel, server.model())
      const messages: Array<Prompt.Message> = []
      const [schema] = table.schemas
      const seen: Provider.Request["table"] = { ...table, schemas: [watched(schema!, "input_schema", "tool")] }
      let turns = 0
      const askAt = (turn: number) =>
        Effect.suspend(() => {
          for (; turns < turn; turns++) {
            messages.push(
              watched(said(called(`${turns}`)), "content", `${turns}`),
              watched(results(answered(`${turns}`)), "content", `${turns}`)
            )
          }
          read.length = 0
          const request = { messages, table: seen, toolChoice: "auto" } as const
          return Effect.map(Provider.askOf(model)(request), () => [...new Set(read)])
        })
      assert.deepStrictEqual(yield* askAt(1), ["tool", "0"])
      yield* askAt(9)
      assert.deepStrictEqual(yield* askAt(10), ["9"])
      yield* askAt(999)
      assert.deepStrictEqual(yield* askAt(1_000), ["999"])
      assert.strictEqual(JSON.parse(server.sent.at(-1) ?? "").messages.length, 2_000)
    }))
})

describe("files", () => {
  const png = (fileName?: string) =>
    Prompt.filePart({
      mediaType: "image/png",
      data: new Uint8Array([1, 2, 3]),
      ...(fileName === undefined ? {} : { fileName })
    })
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } }
  const notes = Prompt.filePart({ mediaType: "text/plain", fileName: "notes.txt", data: new TextEncoder().encode("é") })
  const pdf = (data: string | URL) => Prompt.filePart({ mediaType: "application/pdf", data })
  const shown = (model: Partial<OpenAiCompatible.Options>, ...parts: ReadonlyArray<Prompt.UserMessagePart>) =>
    Effect.map(ask(ok(), { model, messages: [user(...parts)] }), ({ body, reply }) => [
      body.messages[0].content,
      reply.warnings
    ])
  const omitted = (what: string) => ({ type: "text", text: `[${what} omitted]` })

  it.effect("of text are sent as text, and what a server does not take is named, and warned of", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* shown({}, notes, pdf("AQID"), pdf("data:application/pdf;base64,AQID")), [
        [
          { type: "text", text: "[text/plain notes.txt]\né" },
          { type: "file", file: { filename: "file.pdf", file_data: "data:application/pdf;base64,AQID" } },
          { type: "file", file: { filename: "file.pdf", file_data: "data:application/pdf;base64,AQID" } }
        ],
        undefined
      ])
      assert.deepStrictEqual(yield* shown(deepseek, Prompt.textPart({ text: "see" }), png("cat.png")), [
        [{ type: "text", text: "see" }, omitted("image/png cat.png")],
        ["a file is not sent: image/png cat.png, which this server does not take"]
      ])
      assert.deepStrictEqual(yield* shown(openai(), pdf(new URL("https://host/a.pdf"))), [
        [omitted("application/pdf")],
        ["a file is not sent: application/pdf, which this server does not take by its URL"]
      ])
    }))

  it.effect("of results follow in a message after all results of the turn, and never stand in a text", () =>
    Effect.gen(function*() {
      const modelOutput = [Prompt.textPart({ text: "a cat" }), png("cat.png")]
      const messages = [
        hi,
        said(called("1"), called("2")),
        results(answered("1", { modelOutput }), answered("2", { result: { b: 2 } }))
      ]
      const { body, reply } = yield* ask(ok(), { messages })
      assert.deepStrictEqual([body.messages.slice(2), reply.warnings], [[
        { role: "tool", tool_call_id: "1", content: "a cat\n[image/png cat.png follows]" },
        { role: "tool", tool_call_id: "2", content: '{"b":2}' },
        { role: "user", content: [{ type: "text", text: "Files that get gave:" }, image] }
      ], undefined])
    }))
})

describe("a loop", () => {
  const looped = (
    answer: object,
    tools: Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>,
    model: Partial<OpenAiCompatible.Options> = {}
  ) =>
    Effect.gen(function*() {
      const answers = [json(whole(answer)), ok()]
      const server = host(() => answers.shift() ?? assert.fail("asked too often"))
      yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "hi" }).pipe(
        Effect.provide(tools),
        Effect.provide(server.model(model))
      )
      const body: any = JSON.parse(server.sent[1] ?? "null")
      return body.messages.slice(1)
    })

  it.effect("shows a model the picture that its tool made, and no text with the bytes of it", () =>
    Effect.gen(function*() {
      const data = new Uint8Array(150_000)
      const shot = Tool.make("shot", {
        output: Schema.String,
        toModelOutput: (name) => [
          Prompt.textPart({ text: name }),
          Prompt.filePart({ mediaType: "image/png", data })
        ],
        handler: () => Effect.succeed("a cat")
      })
      const [, result, files] = yield* looped(
        { tool_calls: [call("{}", { id: "1" }, "shot")] },
        ToolRegistry.layer(shot)
      )
      assert.deepStrictEqual(result, { role: "tool", tool_call_id: "1", content: "a cat\n[image/png follows]" })
      assert.deepStrictEqual(files.content[0], { type: "text", text: "Files that shot gave:" })
      assert.strictEqual(
        files.content[1].image_url.url,
        `data:image/png;base64,${Buffer.from(data).toString("base64")}`
      )
    }))

  it.effect("gives back what a host hung on a call, and what its model thought before it", () =>
    Effect.gen(function*() {
      const extra_content = { google: { thought_signature: "s" } }
      const thought = { content: null, reasoning_content: "hm" }
      const tool_calls = [call('{"a":1}', { id: "1", extra_content })]
      const [first] = yield* looped({ ...thought, tool_calls }, ToolRegistry.layer(get))
      assert.deepStrictEqual(first, {
        role: "assistant",
        ...thought,
        tool_calls: [{ ...tool_calls[0], type: "function" }]
      })
    }))
})

describe("what a model thought", () => {
  const thinking = (openaiCompatible: Prompt.ProviderOptions[string], text = "hm") =>
    Prompt.reasoningPart({ text, options: openaiCompatible === undefined ? {} : { openaiCompatible } })
  const back = (model: Partial<OpenAiCompatible.Options>, ...content: ReadonlyArray<Prompt.AssistantMessagePart>) =>
    Effect.map(ask(ok(), { model, messages: [hi, said(...content)] }), ({ body }) => {
      const { role: _role, tool_calls: _calls, ...rest } = body.messages[1]
      return rest
    })
  const yes = Prompt.textPart({ text: "yes" })
  const came = thinking({ reasoning_content: "hm" })

  it.effect("goes back under the name that the server asks for, or not at all where it is refused", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* back({}, came, yes), { content: "yes", reasoning_content: "hm" })
      assert.deepStrictEqual(yield* back(openai(), came, yes), { content: "yes" })
      assert.deepStrictEqual(yield* back(mistral, came, yes), { content: "yes" })
      assert.deepStrictEqual(yield* back(on("https://api.groq.com/openai/v1"), came, yes), { content: "yes" })
      assert.deepStrictEqual(yield* back(openrouter("m"), came, yes), { content: "yes", reasoning: "hm" })
      assert.deepStrictEqual(yield* back({ takes: { thoughts: "none" } }, came, yes), { content: "yes" })
    }))

  it.effect("goes back with every call where a server refuses calls without it, whoever thought it", () =>
    Effect.gen(function*() {
      const foreign = Prompt.reasoningPart({ text: "hm", options: { anthropic: { signature: "s" } } })
      assert.deepStrictEqual(yield* back(deepseek, foreign, called("1")), { content: null, reasoning_content: "hm" })
      assert.deepStrictEqual(yield* back(deepseek, called("1")), { content: null, reasoning_content: "" })
      assert.deepStrictEqual(yield* back(deepseek, yes), { content: "yes" })
    }))

  it.effect("goes back in the content where it came in it, and in details where it came in those", () =>
    Effect.gen(function*() {
      const inContent = [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }, { type: "text", text: "yes" }]
      assert.deepStrictEqual(yield* back(mistral, thinking({ thinking: true }), yes), { content: inContent })
      const reasoning_details = [{ type: "reasoning.text", text: "hm", signature: "s" }]
      assert.deepStrictEqual(yield* back(openrouter("m"), thinking({ reasoning: "hm", reasoning_details }), yes), {
        content: "yes",
        reasoning_details
      })
    }))
})
