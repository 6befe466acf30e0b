// What was broken once, each by somebody who tried to.
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Services from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import type * as Turn from "toolfold/Turn"
import { brief, converse, faults, logged } from "./utils.ts"

const { call } = ScriptedModel
const silent = logged().layer
const kinds = (turn: Turn.Turn | undefined) =>
  turn?.outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag)
const ok = Tool.make("ok", { handler: () => Effect.succeed("fine") })

describe("a schema that throws", () => {
  const throwing = Schema.String.check(Schema.makeFilter((text) => {
    if (text === "boom") throw new Error("secret")
    return true
  }))

  it.effect("is an outcome of its call, on the way in and on the way out", () =>
    Effect.gen(function*() {
      const into = Tool.make("into", { input: { a: throwing }, handler: () => Effect.succeed("") })
      const out = Tool.make("out", { output: throwing, handler: () => Effect.succeed("boom") })
      const result = yield* converse([into, out, ok], [[call("into", { a: "boom" }), call("out"), call("ok")], "done"])
      assert.deepStrictEqual(kinds(result.turns[0]), ["invalid-input", "invalid-output", "Success"])
      assert.notInclude(JSON.stringify(result.messages), "secret")
    }).pipe(Effect.provide(silent)))

  it.effect("as deep as a stack is an outcome too", () =>
    Effect.gen(function*() {
      interface Tree {
        readonly kids: ReadonlyArray<Tree>
      }
      const Tree: Schema.Codec<Tree> = Schema.Struct({ kids: Schema.Array(Schema.suspend(() => Tree)) })
      const tool = Tool.make("tree", { input: { root: Tree }, handler: () => Effect.succeed("") })
      const deep = `{"root":${'{"kids":['.repeat(4_000)}${"]}".repeat(4_000)}}`
      const result = yield* converse([tool, ok], [[call("tree", deep), call("ok")], "done"])
      assert.deepStrictEqual(kinds(result.turns[0]), ["invalid-input", "Success"])
    }).pipe(Effect.provide(silent)))
})

describe("a run that is cancelled", () => {
  it.effect("does not wait for a stream that nobody reads, however many calls are going on", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const endless = Tool.make("endless", { handler: () => Effect.never })
      const batch = Array.from({ length: 90 }, () => call("endless"))
      const reader = yield* AgentLoop.stream(AgentLoop.make("bot", { concurrency: "unbounded" }), { prompt: "go" })
        .pipe(
          Stream.runForEach(() => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)),
          Effect.provide(ToolRegistry.layer(endless)),
          Effect.provide(ScriptedModel.layer(batch)),
          Effect.forkChild
        )
      yield* Deferred.await(started)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(reader)
    }))

  it.live("does not wait long for an observer that never answers, and keeps what the observer was shown", () =>
    Effect.gen(function*() {
      const shown = yield* Deferred.make<void>()
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), {
        prompt: "go",
        onToolCall: ({ event }) =>
          event === "end" ? Effect.andThen(Deferred.succeed(shown, undefined), Effect.never) : undefined
      }).pipe(Effect.provide(ToolRegistry.layer(ok)), Effect.provide(ScriptedModel.layer([call("ok")])))
      yield* Deferred.await(shown)
      const result = yield* handle.cancel
      assert.deepStrictEqual(brief(result.messages).at(-1), "tool: #call_1=fine")
    }).pipe(Effect.scoped))

  it.effect("says of a call that was running that its effect is unknown, and of one that was not that it did not run", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const endless = Tool.make("endless", {
        handler: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
      const handle = yield* AgentLoop.start(AgentLoop.make("bot", { concurrency: "sequential" }), { prompt: "go" })
        .pipe(
          Effect.provide(ToolRegistry.layer(endless)),
          Effect.provide(ScriptedModel.layer([call("endless"), call("endless")]))
        )
      yield* Deferred.await(started)
      const result = yield* handle.cancel
      assert.strictEqual(
        brief(result.messages).at(-1),
        "tool: #call_1!This call was cancelled: the run ended while it ran, so whether it took effect is unknown" +
          " #call_2!This call was cancelled: the run ended before it was run"
      )
    }).pipe(Effect.scoped))

  it.effect("is cancelled also when a tool's clean-up fails; a model that interrupts itself is no cancellation", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const messy = Tool.make("messy", {
        handler: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.ensuring(Effect.die("clean-up broke"))
          )
      })
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer(messy)),
        Effect.provide(ScriptedModel.layer([call("messy")]))
      )
      yield* Deferred.await(started)
      const result = yield* handle.cancel
      assert.deepStrictEqual([result._tag, faults(result.messages)], ["Cancelled", []])

      const quitter = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(Provider.layer({ ask: () => Effect.interrupt }))
      )
      assert.strictEqual((yield* Effect.exit(quitter.await))._tag, "Failure")
    }).pipe(Effect.scoped, Effect.provide(silent)))

  it.effect("ends what a handler left behind, whatever the size of its batch and its concurrency", () =>
    Effect.gen(function*() {
      for (const concurrency of ["sequential", 8] as const) {
        for (const size of [1, 2]) {
          let running = 0
          const leaves = Tool.make("leaves", {
            handler: () =>
              Effect.gen(function*() {
                running++
                yield* Effect.forkChild(Effect.onInterrupt(Effect.never, () => Effect.sync(() => running--)))
                yield* Effect.yieldNow
                return "left"
              })
          })
          const seen: Array<number> = []
          yield* converse([leaves], [
            Array.from({ length: size }, () => call("leaves")),
            { says: ["done"], expect: () => void seen.push(running) }
          ], { concurrency })
          assert.deepStrictEqual(seen, [0])
        }
      }
    }))
})

describe("layers below merged registries", () => {
  it.effect("are built once", () =>
    Effect.gen(function*() {
      let built = 0
      class Db extends Services.Service<Db, number>()("test/Db") {}
      const DbLive = Layer.effect(Db)(Effect.sync(() => ++built))
      const named = (name: string) =>
        ToolRegistry.layer(Tool.make(name, { output: Schema.Int, handler: () => Effect.map(Db, (db) => db) })).pipe(
          Layer.provide(DbLive)
        )
      const merged = ToolRegistry.merge(
        named("a").pipe(ToolRegistry.prefix("x_")),
        named("b"),
        named("c").pipe(ToolRegistry.select({}))
      )
      yield* Effect.provide(ToolRegistry.ToolRegistry, Layer.mergeAll(merged, DbLive))
      assert.strictEqual(built, 1)
    }))
})

describe("what a handler holds", () => {
  class Kept extends Context.Slots<Kept>()("test/Kept", {
    list: Context.list(Schema.String),
    any: Context.last(Schema.Unknown, null)
  }) {}

  it.effect("changes nothing when it is changed: not what was written, asked or answered", () =>
    Effect.gen(function*() {
      const mutates = Tool.make("mutates", {
        input: { data: Schema.Unknown },
        output: Schema.Unknown,
        handler: ({ data }) =>
          Effect.gen(function*() {
            const kept = yield* Kept
            const list = ["written"]
            const any = { n: 1 }
            yield* kept.write({ list, any })
            list.push("not written")
            any.n = 2
            Reflect.set(data as object, "secret", "gone")
            return data
          })
      })
      const result = yield* converse([mutates], [[call("mutates", { data: { secret: "s" } })], "done"]).pipe(
        Effect.provide(Kept.layer)
      )
      assert.deepStrictEqual(Kept.from(result.context), { list: ["written"], any: { n: 1 } })
      assert.deepStrictEqual(result.turns[0]?.calls[0]?.input, { data: { secret: "s" } })
      assert.strictEqual(brief(result.messages)[1], 'assistant: mutates#call_1({"data":{"secret":"s"}})')
    }))

  it.effect("that needs a scope is released with the run that has one", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      const acquires = Tool.make("acquires", {
        handler: () =>
          Effect.as(Effect.acquireRelease(Effect.void, () => Effect.sync(() => events.push("released"))), "acquired")
      })
      yield* Effect.gen(function*() {
        const registry = yield* Layer.build(ToolRegistry.layer(acquires))
        yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
          Effect.provide(registry),
          Effect.provide(ScriptedModel.layer([call("acquires")], "done")),
          Effect.scoped
        )
        events.push("run over")
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(events, ["released", "run over"])
    }))
})

describe("given messages", () => {
  const toolCall = (id: string, more: object = {}) =>
    Prompt.toolCallPart({ id, name: "ok", params: {}, providerExecuted: false, ...more })
  const toolResult = (id: string, result: string, more: object = {}) =>
    Prompt.toolResultPart({ id, name: "ok", isFailure: false, result, providerExecuted: false, ...more })
  const healed = (...messages: ReadonlyArray<Prompt.Message>) =>
    Effect.map(converse([ok], ["done"], { messages, prompt: "go" }), (result) => {
      assert.deepStrictEqual(
        faults(
          result.messages.map((message) =>
            message.role === "assistant"
              ? {
                ...message,
                content: message.content.filter((part) => !("providerExecuted" in part && part.providerExecuted))
              }
              : message
          ).filter((message) => message.role !== "assistant" || message.content.length > 0)
        ),
        []
      )
      return brief(result.messages).slice(0, -2)
    })
  const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) => Prompt.assistantMessage({ content })
  const tool = (...content: ReadonlyArray<Prompt.ToolMessagePart>) => Prompt.toolMessage({ content })

  it.effect("with one id twice keep both calls and both results apart", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* healed(
          assistant(toolCall("x"), toolCall("x")),
          tool(toolResult("x", "first"), toolResult("x", "second"))
        ),
        [
          "assistant: ok#x({}) ok#call_0_1({})",
          "tool: #x=first #call_0_1=second"
        ]
      )
    }))

  it.effect("with a result inside the assistant's message have it after", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* healed(assistant(toolCall("x"), toolResult("x", "inline"))), [
        "assistant: ok#x({})",
        "tool: #x=inline"
      ])
    }))

  it.effect("keep what a provider ran itself together, and drop what of it is alone", () =>
    Effect.gen(function*() {
      const ran = { providerExecuted: true }
      assert.deepStrictEqual(yield* healed(assistant(toolCall("p", ran), toolResult("p", "found", ran))), [
        "assistant: ok#p({}) #p=found"
      ])
      assert.deepStrictEqual(yield* healed(assistant(Prompt.textPart({ text: "hm" }), toolCall("p", ran))), [
        "assistant: hm"
      ])
      assert.deepStrictEqual(
        yield* healed(assistant(Prompt.textPart({ text: "hm" }), toolResult("p", "orphan", ran))),
        ["assistant: hm"]
      )
    }))

  it.effect("with arguments as text have them as an object", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* healed(assistant(toolCall("a", { params: '{"x":1}' }), toolCall("b", { params: "{bad" }))),
        [
          'assistant: ok#a({"x":1}) ok#b({})',
          "tool: #a!This call was cancelled: the run ended before it was answered #b!This call was cancelled: the run ended before it was answered"
        ]
      )
    }))

  it.effect("that are all blank are no prompt", () =>
    Effect.gen(function*() {
      assert.include(
        String(yield* Effect.exit(converse([ok], ["done"], { prompt: "  " }))),
        "a run needs a prompt or messages that are not blank"
      )
    }))
})

describe("defaults", () => {
  const five = Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5)))

  it("are advertised wherever decoding has them, and only if they are constants", () => {
    class Named extends Schema.Class<Named>("Named")({ n: five }) {}
    const tool = Tool.make("t", {
      input: {
        named: Named,
        record: Schema.Record(Schema.String, Schema.Struct({ n: five })),
        nullable: Schema.NullOr(Schema.Struct({ n: five })),
        pair: Schema.Tuple([Schema.Struct({ n: five })]),
        computed: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.sync(() => Math.random())))
      },
      handler: () => Effect.succeed("")
    })
    const { $defs, properties } = Tool.schema(tool).input_schema as any
    assert.deepStrictEqual(
      [
        ($defs === undefined ? properties.named : Object.values<any>($defs)[0]).properties.n.default,
        properties.record.additionalProperties.properties.n.default,
        properties.nullable.anyOf[0].properties.n.default,
        properties.pair.prefixItems[0].properties.n.default,
        "default" in properties.computed
      ],
      [5, 5, 5, 5, false]
    )
  })

  it("leave a property alone that is called like a keyword", () => {
    const tool = Tool.make("t", {
      input: { default: Schema.Struct({ a: Schema.Record(Schema.String, Schema.Unknown) }), enum: Schema.String },
      handler: () => Effect.succeed("")
    })
    assert.notInclude(JSON.stringify(Tool.schema(tool)), 'additionalProperties":true')
  })

  it("and a name that needs escaping leave an object at the root", () => {
    const tool = Tool.make("t", {
      input: Schema.Struct({ a: Schema.String }).annotate({ identifier: "app/Größe a%b" }),
      handler: () => Effect.succeed("")
    })
    assert.deepStrictEqual(Tool.schema(tool).input_schema.type, "object")
  })
})

describe("many mistakes at once", () => {
  it.effect("are told up to a number of lines", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { input: { list: Schema.Array(Schema.Int) }, handler: () => Effect.succeed("") })
      const result = yield* converse([tool], [[call("t", { list: Array(5_000).fill("x") })], "done"])
      const told = brief(result.messages)[2] ?? ""
      assert.include(told, "… and 4980 more like these")
      assert.isBelow(told.length, 2_000)
    }))
})

describe("a provider that does not stream", () => {
  const content = [
    Prompt.reasoningPart({ text: "hm", options: { vendor: { signature: "S" } } }),
    Prompt.textPart({ text: "before " }),
    Prompt.textPart({ text: "after" })
  ]

  it.effect("gives all it says, with its signatures, to whoever asks its public stream", () =>
    Effect.gen(function*() {
      const model = Provider.make({
        ask: () => Effect.succeed({ content, finish: "stop", usage: Provider.unknownUsage })
      })
      const wrapped = Layer.effect(LanguageModel.LanguageModel, Effect.map(model, (model) => ({ ...model })))
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go", onText: () => undefined }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(wrapped)
      )
      const [, answer] = result.messages
      assert.deepStrictEqual(answer?.content, content)
    }))
})
