// What the model is told of what a handler gave: of anything that a program may hold, and of every way to fail.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { brief, converse, faults, logged, quiet } from "./utils.ts"

const { call } = ScriptedModel
const ok = Tool.make("ok", { handler: () => Effect.succeed("fine") })

/** What becomes of one call of a tool. */
const answer = <T extends Tool.Any>(tool: T) =>
  Effect.flatMap(
    ToolRegistry.ToolRegistry,
    (registry) => registry.answer(Turn.call({ id: "1", name: tool.name, params: "" }), Context.callScope())
  ).pipe(Effect.provide(ToolRegistry.layer(tool)))

const giving = (value: unknown) => Tool.make("t", { output: Schema.Unknown, handler: () => Effect.sync(() => value) })

const results = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap((message) => message.role === "tool" ? message.content : []).flatMap((part) =>
    part.type === "tool-result" ? [part] : []
  )

const kinds = (turn: Turn.Turn | undefined) =>
  turn?.outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag)

describe("a result of any kind", () => {
  const self: Record<string, unknown> = { n: 1 }
  self.self = self
  self.list = [self]
  const shared = { a: 1 }
  class Money {
    readonly #cents = 150
    toJSON() {
      return { cents: this.#cents }
    }
  }
  const broken = new Error("no disk", { cause: "secret" })

  const forms: ReadonlyArray<readonly [string, unknown, unknown]> = [
    ["nothing", undefined, null],
    ["null", null, null],
    ["an empty text", "", ""],
    ["a BigInt", 2n ** 64n, "18446744073709551616"],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a date that is none", new Date(NaN), null],
    ["a Map", new Map<unknown, unknown>([["k", 1n], [{ a: 1 }, new Set([NaN])]]), [["k", "1"], [{ a: 1 }, [null]]]],
    ["a Set", new Set(["a", undefined]), ["a", null]],
    ["what holds itself", self, { n: 1, self: "[circular]", list: ["[circular]"] }],
    ["what stands twice", [shared, shared], [{ a: 1 }, { a: 1 }]],
    ["infinities", [NaN, Infinity, -Infinity, -0], [null, null, null, -0]],
    ["an error", broken, { name: "Error", message: "no disk" }],
    ["bytes", new Uint8Array([137, 80, 78, 71]), "iVBORw=="],
    ["a part of a buffer", new Uint8Array([0, 1, 2, 3]).subarray(1, 3), "AQI="],
    ["a buffer", new Uint8Array([1, 2]).buffer, "AQI="],
    ["functions and symbols", { f: () => 1, s: Symbol("s"), a: [() => 1], ok: true }, { a: [null], ok: true }],
    ["a function alone", () => 1, null],
    ["what is left undefined", { a: undefined, b: [undefined] }, { b: [null] }],
    ["a URL and a pattern", [new URL("http://a/b"), /x/g], ["http://a/b", "/x/g"]],
    ["what says its JSON itself", { price: new Money() }, { price: { cents: 150 } }],
    ["without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["__proto__", JSON.parse('{"__proto__":{"admin":true},"a":1}'), JSON.parse('{"__proto__":{"admin":true},"a":1}')]
  ]

  for (const [name, value, json] of forms) {
    it.effect(`RES-01 has one form as JSON: ${name}`, () =>
      Effect.gen(function*() {
        const outcome = yield* answer(giving(value))
        assert.deepStrictEqual(outcome, { _tag: "Success", value: json, writes: [] })
        assert.strictEqual(Reflect.get(Object(Turn.told(outcome)), "admin"), undefined)
        const result = yield* converse([giving(value)], [[call("t")], "done"])
        assert.deepStrictEqual(results(result.messages).map((part) => [part.isFailure, part.result]), [[false, json]])
        assert.strictEqual(JSON.stringify(JSON.parse(JSON.stringify(json))), JSON.stringify(json))
      }))
  }

  it.effect("SPEC-140 NaN inside it is null, and what stands beside it stays", () =>
    Effect.gen(function*() {
      const outcome = yield* answer(giving({ a: 1, bad: NaN, deep: [{ worse: Infinity, b: "x" }] }))
      assert.deepStrictEqual(Turn.told(outcome), { a: 1, bad: null, deep: [{ worse: null, b: "x" }] })
    }))

  it.effect("ARG-19 half a surrogate pair in it, in a key too, is made whole before the model sees it", () =>
    Effect.gen(function*() {
      const result = yield* converse([giving({ "k\uD83D": ["a\uDE00", "😀"] })], [[call("t")], "done"])
      assert.deepStrictEqual(results(result.messages).map((part) => part.result), [
        { "k\uFFFD": ["a\uFFFD", "😀"] }
      ])
    }))

  it.effect("has its form also within what a schema does describe, which is still judged", () =>
    Effect.gen(function*() {
      interface Tree {
        readonly data: unknown
        readonly kids: ReadonlyArray<Tree>
      }
      const Tree: Schema.Codec<Tree> = Schema.Struct({
        data: Schema.Unknown,
        kids: Schema.Array(Schema.suspend(() => Tree))
      })
      class Page extends Schema.Class<Page>("Page")({ at: Schema.Date, meta: Schema.optionalKey(Schema.Unknown) }) {}
      const output = Schema.Struct({
        tree: Tree,
        page: Page,
        list: Schema.Array(Schema.Unknown),
        either: Schema.Union([Schema.Int, Schema.Struct({ any: Schema.Unknown })]),
        byName: Schema.Record(Schema.String, Schema.Unknown)
      })
      const value: typeof output.Type = {
        tree: { data: 1n, kids: [{ data: new Date(0), kids: [] }] },
        page: new Page({ at: new Date(0), meta: new Map([["k", NaN]]) }),
        list: [NaN, new Set(["a"])],
        either: { any: new Uint8Array([1]) },
        byName: { e: new Error("x"), f: () => 1 }
      }
      const outcome = yield* answer(Tool.make("t", { output, handler: () => Effect.succeed(value) }))
      assert.deepStrictEqual(Turn.told(outcome), {
        tree: { data: "1", kids: [{ data: "1970-01-01T00:00:00.000Z", kids: [] }] },
        page: { at: "1970-01-01T00:00:00.000Z", meta: [["k", null]] },
        list: [null, ["a"]],
        either: { any: "AQ==" },
        byName: { e: { name: "Error", message: "x" } }
      })
      const plainPage = yield* answer(
        Tool.make("t", { output: Page, handler: () => Effect.succeed(new Page({ at: new Date(0) })) })
      )
      assert.deepStrictEqual(Turn.told(plainPage), { at: "1970-01-01T00:00:00.000Z" })
      const wrong = yield* answer(
        Tool.make("t", { output, handler: () => Effect.succeed({ ...value, either: "x" } as never) })
      )
      assert.strictEqual(wrong._tag === "Failure" && wrong.kind, "invalid-output")
    }).pipe(Effect.provide(quiet)))

  it.effect("has its form in a tool of effect/ai too", () =>
    Effect.gen(function*() {
      const kit = Toolkit.make(WireTool.make("theirs", { success: Schema.Struct({ any: Schema.Unknown }) }))
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.fromToolkit(kit)),
        Effect.provide(kit.toLayer({ theirs: () => Effect.succeed({ any: [1n, NaN] }) })),
        Effect.provide(ScriptedModel.layer([call("theirs")], "done"))
      )
      assert.deepStrictEqual(results(result.messages).map((part) => part.result), [{ any: ["1", null] }])
    }))

  it.effect("shares nothing with what the handler keeps", () =>
    Effect.gen(function*() {
      const kept = { list: ["a"] }
      const outcome = yield* answer(giving(kept))
      kept.list.push("b")
      assert.deepStrictEqual(Turn.told(outcome), { list: ["a"] })
    }))

  it.effect("that cannot be read, and one that never ends, stay inside their call", () =>
    Effect.gen(function*() {
      const again = (): object => ({ toJSON: again })
      const endless = Tool.make("endless", { output: Schema.Unknown, handler: () => Effect.succeed(again()) })
      const throws = giving({
        get secret() {
          throw new Error("password=1")
        }
      })
      const result = yield* converse([throws, endless, ok], [[call("t"), call("endless"), call("ok")], "done"])
      assert.deepStrictEqual(kinds(result.turns[0]), ["invalid-output", "invalid-output", "Success"])
      assert.notInclude(JSON.stringify(result.messages), "password")
    }).pipe(Effect.provide(quiet)))
})

describe("a result that the tool does not declare", () => {
  it.effect("is told without what it holds, and the log has that under the same id", () =>
    Effect.gen(function*() {
      const lines: Array<readonly [string, string, unknown]> = []
      const log = Logger.layer([
        Logger.make(({ cause, fiber, message }) => {
          lines.push([String(message), String(cause), fiber.getRef(References.CurrentLogAnnotations)])
        })
      ])
      const tool = Tool.make("t", {
        output: Schema.Struct({ n: Schema.Finite }),
        handler: () => Effect.succeed({ n: "password=1" } as never)
      })
      const result = yield* Effect.provide(converse([tool, ok], [[call("t"), call("ok")], "done"]), log)
      const [outcome, sibling] = result.turns[0]?.outcomes ?? []
      const errorId = `${result.runId}-0-0`
      assert.deepStrictEqual(outcome, {
        _tag: "Failure",
        kind: "invalid-output",
        class: "semantic",
        message:
          `The tool gave a result that it does not declare (error id ${errorId}). Its arguments are not to blame.`,
        errorId
      })
      assert.strictEqual(sibling?._tag, "Success")
      assert.deepStrictEqual(lines.map(([message, , annotations]) => [message, annotations]), [
        ['tool "t" gave a result that it does not declare', { errorId, callId: "call_1" }]
      ])
      assert.include(lines[0]?.[1], "n")
    }))
})

describe("a result that is larger than the tool says", () => {
  const cut = (value: unknown, most: number) => Effect.map(answer(Tool.maxResultSize(giving(value), most)), Turn.told)

  it.effect("is cut after so many characters, never within one, and says so; one that fits is left alone", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* cut("abcdef", 4), "abcd\n[cut: the first 4 of 6 characters]")
      assert.strictEqual(yield* cut("abcd", 4), "abcd")
      assert.deepStrictEqual(yield* cut({ a: 1 }, 7), { a: 1 })
      assert.strictEqual(yield* cut({ a: [1, 2] }, 7), '{"a":[1\n[cut: the first 7 of 11 characters]')
      assert.strictEqual(yield* cut("ab😀", 3), "ab\n[cut: the first 2 of 4 characters]")
      assert.strictEqual(yield* cut("a😀b", 3), "a😀\n[cut: the first 3 of 4 characters]")
      assert.strictEqual(yield* cut("x".repeat(5_000_000), 10), "xxxxxxxxxx\n[cut: the first 10 of 5000000 characters]")
    }))

  it.effect("is cut in the transcript and in the record, and the plain call has all of it", () =>
    Effect.gen(function*() {
      const long = Tool.make("long", { maxResultSize: 2, handler: () => Effect.succeed("long") })
      const result = yield* converse([long], [[call("long")], "done"])
      const shown = "lo\n[cut: the first 2 of 4 characters]"
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{ _tag: "Success", value: shown, writes: [] }])
      assert.strictEqual(brief(result.messages)[2], `tool: #call_1=${shown}`)
      assert.strictEqual(yield* long(), "long")
    }))
})

describe("what the model is to see in the place of a result", () => {
  const shot = Tool.make("shot", {
    output: Schema.Struct({ title: Schema.String, png: Schema.Uint8Array }),
    toModelOutput: ({ png, title }) => [
      Prompt.textPart({ text: `the page ${title}` }),
      Prompt.filePart({ mediaType: "image/png", fileName: "page.png", data: png })
    ],
    handler: () => Effect.succeed({ title: "a\uD83D", png: new Uint8Array([1, 2]) })
  })
  const parts = [
    Prompt.textPart({ text: "the page a\uFFFD" }),
    Prompt.filePart({ mediaType: "image/png", fileName: "page.png", data: new Uint8Array([1, 2]) })
  ]

  it.effect("is in the transcript beside the result, and in the record", () =>
    Effect.gen(function*() {
      const result = yield* converse([shot, ok], [[call("shot"), call("ok")], "done"])
      const json = { title: "a\uFFFD", png: "AQI=" }
      assert.deepStrictEqual(results(result.messages).map((part) => [part.result, part.modelOutput]), [
        [json, parts],
        ["fine", undefined]
      ])
      assert.deepStrictEqual(result.turns[0]?.outcomes[0], {
        _tag: "Success",
        value: { title: "a\uD83D", png: "AQI=" },
        writes: [],
        parts
      })
    }))

  it.effect("is what a server of the Chat protocol is sent: text as the result, files as a message after it", () =>
    Effect.gen(function*() {
      const bodies: Array<any> = []
      const answers = [
        {
          message: { tool_calls: [{ id: "1", function: { name: "shot", arguments: "" } }] },
          finish_reason: "tool_calls"
        },
        { message: { content: "done" }, finish_reason: "stop" }
      ]
      const host = Layer.succeed(HttpClient.HttpClient)(HttpClient.make((request) =>
        Effect.sync(() => {
          const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
          const choice = answers[bodies.push(JSON.parse(body)) - 1]
          return HttpClientResponse.fromWeb(
            request,
            new Response(JSON.stringify({ choices: [choice] }), { headers: { "content-type": "application/json" } })
          )
        })
      ))
      yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer(shot)),
        Effect.provide(OpenAiCompatible.layer({ model: "m" }).pipe(Layer.provide(host)))
      )
      assert.deepStrictEqual(bodies[1]?.messages.slice(-2), [
        { role: "tool", tool_call_id: "1", content: bodies[1]?.messages.at(-2).content },
        {
          role: "user",
          content: [
            { type: "text", text: "Files that shot gave:" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AQI=" } }
          ]
        }
      ])
      assert.match(bodies[1]?.messages.at(-2).content, /^the page a\uFFFD/)
    }))

  it.effect("that cannot be made is an outcome of its call, told without its cause", () =>
    Effect.gen(function*() {
      const broken = Tool.make("broken", {
        toModelOutput: () => {
          throw new Error("password=1")
        },
        handler: () => Effect.succeed("x")
      })
      const log = logged()
      const result = yield* Effect.provide(converse([broken, ok], [[call("broken"), call("ok")], "done"]), log.layer)
      const [outcome, sibling] = result.turns[0]?.outcomes ?? []
      assert.deepStrictEqual([outcome?._tag, sibling?._tag, result._tag], ["Failure", "Success", "Completed"])
      assert.notInclude(JSON.stringify(result.messages), "password")
      assert.include(log.lines[0]?.cause, "password=1")
    }))
})

describe("the class of a failure", () => {
  class Down extends Schema.TaggedError<Down>()("Down", { status: Schema.Int }) {}
  class Locked extends Schema.TaggedError<Locked>()("Locked", { by: Schema.String }) {}
  class Wrong extends Schema.TaggedError<Wrong>()("Wrong", { why: Schema.String }) {}
  const byStatus = Down.pipe(Tool.failureClass(({ status }) => status >= 500 ? "transient" : "environment"))

  const classOf = <S extends Schema.Top>(failure: S, error: S["Type"]) =>
    Effect.map(
      answer(Tool.make("t", { failure, handler: () => Effect.fail(error) })),
      (outcome): ReadonlyArray<string> => outcome._tag === "Failure" ? [outcome.kind, outcome.class] : [outcome._tag]
    )

  it.effect("SPEC-76 is semantic where nothing is said, else what its schema says: one for all, or by the failure", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* classOf(Wrong, new Wrong({ why: "x" })), ["failure", "semantic"])
      assert.deepStrictEqual(yield* classOf(Tool.failureClass(Wrong, "policy"), new Wrong({ why: "x" })), [
        "failure",
        "policy"
      ])
      assert.deepStrictEqual(yield* classOf(Tool.failureClass(Schema.String, "transient"), "later"), [
        "failure",
        "transient"
      ])
      assert.deepStrictEqual(yield* classOf(byStatus, new Down({ status: 503 })), ["failure", "transient"])
      assert.deepStrictEqual(yield* classOf(byStatus, new Down({ status: 401 })), ["failure", "environment"])
    }))

  it.effect("SPEC-76 is that of the member in a union, however deep, unless the union says one itself", () =>
    Effect.gen(function*() {
      const inner = Schema.Union([byStatus, Wrong])
      const union = Schema.Union([Tool.failureClass(Locked, "environment"), inner])
      assert.deepStrictEqual(yield* classOf(union, new Locked({ by: "Bo" })), ["failure", "environment"])
      assert.deepStrictEqual(yield* classOf(union, new Down({ status: 500 })), ["failure", "transient"])
      assert.deepStrictEqual(yield* classOf(union, new Wrong({ why: "x" })), ["failure", "semantic"])
      assert.deepStrictEqual(yield* classOf(Tool.failureClass(union, "policy"), new Down({ status: 500 })), [
        "failure",
        "policy"
      ])
    }))

  it.effect("SPEC-76 of an AiError is known by its reason, and an explicit one goes before", () =>
    Effect.gen(function*() {
      const failed = (reason: AiError.AiErrorReason) => AiError.make({ module: "Test", method: "ask", reason })
      const reasons: ReadonlyArray<readonly [AiError.AiErrorReason, string]> = [
        [new AiError.AuthenticationError({ kind: "InvalidKey" }), "environment"],
        [new AiError.QuotaExhaustedError({}), "environment"],
        [new AiError.RateLimitError({}), "transient"],
        [new AiError.InternalProviderError({ description: "overloaded" }), "transient"],
        [new AiError.ContentPolicyError({ description: "no" }), "semantic"],
        [new AiError.UnknownError({}), "semantic"]
      ]
      for (const [reason, expected] of reasons) {
        assert.deepStrictEqual(yield* classOf(AiError.AiError, failed(reason)), ["failure", expected])
        assert.deepStrictEqual(yield* classOf(Schema.Union([Wrong, AiError.AiError]), failed(reason)), [
          "failure",
          expected
        ])
        assert.deepStrictEqual(
          yield* classOf(Tool.failureClass(AiError.AiError, "policy"), failed(reason)),
          ["failure", "policy"]
        )
      }
    }))

  it.effect("that a function cannot tell is semantic", () =>
    Effect.gen(function*() {
      const throwing = Tool.failureClass(Schema.String, () => {
        throw new Error("x")
      })
      assert.deepStrictEqual(yield* classOf(throwing, "x"), ["failure", "semantic"])
    }))

  it.effect("RES-04 is kept where the failure is of any kind, which reads well too", () =>
    Effect.gen(function*() {
      const open = Tool.failureClass(Schema.Unknown, "environment")
      const cyclic: Record<string, unknown> = { n: 2n }
      cyclic.self = cyclic
      const outcome = yield* answer(Tool.make("t", { failure: open, handler: () => Effect.fail(cyclic) }))
      assert.deepStrictEqual(outcome, {
        _tag: "Failure",
        kind: "failure",
        class: "environment",
        message: '{"n":"2","self":"[circular]"}'
      })
    }))
})

describe("what goes wrong beside a call", () => {
  it.effect("SPEC-62 a stack overflow and a failed assertion stay inside their call, and the run goes on", () =>
    Effect.gen(function*() {
      const deep = (n: number): number => deep(n + 1) + 1
      const overflow = Tool.make("overflow", { output: Schema.Int, handler: () => Effect.sync(() => deep(0)) })
      const asserts = Tool.make("asserts", { handler: () => Effect.sync(() => assert.fail("no") as string) })
      for (const concurrency of ["sequential", "unbounded"] as const) {
        const result = yield* converse(
          [overflow, asserts, ok],
          [[call("ok"), call("overflow"), call("asserts"), call("ok")], "done"],
          { concurrency }
        )
        assert.deepStrictEqual(kinds(result.turns[0]), ["Success", "defect", "defect", "Success"])
        assert.deepStrictEqual([result._tag, result.text, faults(result.messages)], ["Completed", "done", []])
      }
    }).pipe(Effect.provide(quiet)))

  it.effect("SPEC-139 an observer that fails, dies, throws or interrupts itself changes nothing, and is logged", () =>
    Effect.gen(function*() {
      const script = [["one two", call("ok"), call("gone")], "done"]
      const plain = yield* converse([ok], script)
      const observers: ReadonlyArray<() => Effect.Effect<never, string>> = [
        () => Effect.fail("no"),
        () => Effect.die(new Error("no")),
        () => {
          throw new Error("no")
        },
        () => Effect.interrupt
      ]
      for (const observer of observers) {
        const log = logged()
        const watched = yield* Effect.provide(
          converse([ok], script, { onToolCall: observer, onText: observer }),
          log.layer
        )
        assert.deepStrictEqual(watched.turns, plain.turns)
        assert.deepStrictEqual(brief(watched.messages), brief(plain.messages))
        assert.deepStrictEqual(log.lines.map(({ level, message }) => `${level} ${message}`).toSorted(), [
          ...Array(3).fill("Warn observer onText failed"),
          ...Array(4).fill("Warn observer onToolCall failed")
        ])
      }
    }))

  it.effect("SPEC-139 nor does one of a stream hurt what the stream shows", () =>
    Effect.gen(function*() {
      const shown = (onToolCall?: () => Effect.Effect<never, string>) =>
        AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go", onToolCall }).pipe(
          Stream.map(({ _tag }) => _tag),
          Stream.runCollect,
          Effect.provide(ToolRegistry.layer(ok)),
          Effect.provide(ScriptedModel.layer([call("ok")], "done"))
        )
      assert.deepStrictEqual(yield* shown(() => Effect.fail("no")), yield* shown())
    }).pipe(Effect.provide(quiet)))
})
