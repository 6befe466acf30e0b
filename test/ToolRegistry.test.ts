import { assert, describe, it } from "@effect/vitest"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Context from "toolfold/Context"
import * as Tool from "toolfold/Tool"
import { RegistryError, ToolRegistry } from "toolfold/ToolRegistry"
import * as Registry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { logged } from "./utils.ts"

const named = (name: string) => Tool.make(name, { handler: () => Effect.succeed(name) })
const now = Tool.make("now", {
  description: "The time",
  tags: ["clock"],
  readOnly: true,
  handler: () => Effect.succeed("12:00")
})
const add = Tool.make("add", {
  input: { a: Schema.Finite, b: Schema.Finite },
  output: Schema.Finite,
  tags: ["math", "pure"],
  handler: ({ a, b }) => Effect.succeed(a + b)
})

const registry = <E, R>(layer: Layer.Layer<ToolRegistry, E, R>) =>
  Effect.provide(Effect.map(ToolRegistry, (it) => it), layer)

const answer = (it: Registry.Registry, name: string, params: unknown) =>
  it.answer(Turn.call({ id: "1", name, params }), Context.callScope())

const problems = <R>(layer: Layer.Layer<ToolRegistry, RegistryError, R>) =>
  Effect.map(Effect.flip(registry(layer)), (error) => error.problems)

describe("assembly", () => {
  it.effect("SPEC-25 refuses one name twice: two tools, one tool twice, ours and a toolkit's", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* problems(Registry.layer(named("a"), named("a"))), ["duplicate tool names: a"])
      assert.deepStrictEqual(yield* problems(Registry.layer(now, now)), ["duplicate tool names: now"])
      const kit = Toolkit.make(WireTool.make("now", { success: Schema.String }))
      const both = Registry.merge(Registry.layer(now), Registry.fromToolkit(kit)).pipe(
        Layer.provide(kit.toLayer({ now: () => Effect.succeed("") }))
      )
      assert.deepStrictEqual(yield* problems(both), ["duplicate tool names: now"])
    }))

  it.effect("SPEC-26 lists all duplicates, sorted", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        registry(Registry.layer(named("b"), named("a"), named("b"), named("a"), named("c")))
      )
      assert.strictEqual(error.message, "the tool registry cannot be assembled:\n- duplicate tool names: a, b")
    }))

  it.effect("SPEC-27 lists duplicates before everything else that is wrong, and all of that", () =>
    Effect.gen(function*() {
      const listed = yield* problems(Registry.layer(
        named("no spaces"),
        named("a"),
        named("a"),
        Tool.make("union", {
          input: Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ b: Schema.String })]),
          handler: () => Effect.succeed("")
        })
      ))
      assert.deepStrictEqual(listed, [
        "duplicate tool names: a",
        'tool "no spaces": a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -',
        'tool "union": its input must be an object at the root'
      ])
    }))

  it.effect("SPEC-21 refuses an option that it does not have, and does not ignore it", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", {
        retries: 2,
        handler: () => Effect.succeed("")
      } as { readonly handler: () => Effect.Effect<string> })
      const [problem = ""] = yield* problems(Registry.layer(tool))
      assert.match(problem, /^tool "t": unknown option "retries"; known: description, input, output,/)
    }))

  it.effect("ARG-13 takes a tool that is called __proto__ under that name", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(named("__proto__")))
      assert.deepStrictEqual(it.names, ["__proto__"])
      assert.deepStrictEqual(yield* answer(it, "__proto__", {}), { _tag: "Success", value: "__proto__", writes: [] })
      assert.isUndefined(it.get("constructor"))
    }))
})

describe("a registry", () => {
  it.effect("SPEC-22 answers questions about an unknown name with undefined", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(now))
      assert.deepStrictEqual([it.get("gone"), it.meta("gone"), it.isSerial("gone")], [undefined, undefined, undefined])
      assert.strictEqual(it.isSerial("now"), false)
    }))

  it.effect("SPEC-23 answers the same questions about a tool of ours and one of effect/ai", () =>
    Effect.gen(function*() {
      const theirs = WireTool.make("theirs", {
        description: "Theirs",
        parameters: Schema.Struct({ a: Schema.String }),
        success: Schema.String
      })
        .annotate(WireTool.Readonly, true)
      const kit = Toolkit.make(theirs)
      const it = yield* registry(
        Registry.merge(Registry.layer(now), Registry.fromToolkit(kit)).pipe(
          Layer.provide(kit.toLayer({ theirs: ({ a }) => Effect.succeed(`got ${a}`) }))
        )
      )
      assert.deepStrictEqual(it.meta("theirs"), {
        name: "theirs",
        description: "Theirs",
        tags: [],
        category: undefined,
        title: undefined,
        readOnly: true,
        destructive: true,
        idempotent: false,
        openWorld: true,
        serial: false,
        sensitive: false,
        meta: undefined
      })
      assert.deepStrictEqual(it.meta("now")?.tags, ["clock"])
      assert.deepStrictEqual(yield* answer(it, "theirs", '{"a":"x"}'), { _tag: "Success", value: "got x", writes: [] })
      const refused = yield* answer(it, "theirs", '{"a":1}')
      assert.strictEqual(refused._tag === "Failure" ? refused.kind : "", "invalid-input")
    }))

  it.effect("SPEC-24 knows a tool by one name, as it was declared", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(now))
      assert.strictEqual(it.get("now"), now)
      assert.strictEqual(it.get("now")?.name, "now")
      assert.isUndefined(it.get("NOW"))
    }))

  it.effect("SPEC-30 shows no handler in what it advertises", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(add, now))
      assert.deepStrictEqual(it.schemas(), [
        {
          name: "add",
          input_schema: {
            type: "object",
            properties: { a: { type: "number" }, b: { type: "number" } },
            required: ["a", "b"]
          }
        },
        { name: "now", description: "The time", input_schema: { type: "object", properties: {} } }
      ])
    }))

  it.effect("SPEC-31 stands alone, and gives one selection as one registry", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(add, now))
      const selection = { tags: ["math"] }
      const some = yield* it.select(selection)
      assert.strictEqual(yield* it.select(selection), some)
      assert.deepStrictEqual(some.names, ["add"])
      assert.deepStrictEqual(yield* answer(some, "add", { a: 1, b: 2 }), { _tag: "Success", value: 3, writes: [] })
    }))

  it.effect("SPEC-32 answers a call of an unknown tool with the names of those that are there", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(add, now))
      assert.deepStrictEqual(yield* answer(it, "subtract", {}), {
        _tag: "Failure",
        kind: "unknown-tool",
        class: "semantic",
        message: 'There is no tool named "subtract". The tools are: add, now.'
      })
    }))

  it.effect("SPEC-05 refuses a call that lacks an argument, names it, and does not run the body", () =>
    Effect.gen(function*() {
      let ran = 0
      const tool = Tool.make("t", { input: { city: Schema.String }, handler: () => Effect.sync(() => String(++ran)) })
      const it = yield* registry(Registry.layer(tool))
      assert.deepStrictEqual(yield* answer(it, "t", {}), {
        _tag: "Failure",
        kind: "invalid-input",
        class: "semantic",
        message: "The arguments do not fit:\n- city: Missing key\nCorrect them and call again.",
        issues: [{ path: "city", message: "Missing key" }]
      })
      assert.strictEqual(ran, 0)
    }))

  it.effect("SPEC-14 ignores what a schema does not know, leaves out what is optional, and refuses what is no object", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const tool = Tool.make("t", {
        input: { a: Schema.optionalKey(Schema.String) },
        handler: (input) => Effect.sync(() => String(seen.push(input)))
      })
      const it = yield* registry(Registry.layer(tool))
      yield* answer(it, "t", { extra: 1 })
      assert.deepStrictEqual(seen, [{}])
      const refused = yield* answer(it, "t", "[1,2]")
      assert.deepStrictEqual(refused._tag === "Failure" && refused.issues, [{
        path: "",
        message: "Expected one object of arguments, got an array of 2"
      }])
    }))

  it.effect("SPEC-03 gives a tool that reads slots its defaults too", () =>
    Effect.gen(function*() {
      class Seen extends Context.Slots<Seen>()("test/Seen", { count: Context.sum }) {}
      const tool = Tool.make("t", {
        input: { by: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(7))) },
        output: Schema.Int,
        handler: ({ by }) => Effect.map(Seen, (seen) => seen.get("count") + by)
      })
      const it = yield* registry(Registry.layer(tool).pipe(Layer.provide(Seen.layer)))
      assert.deepStrictEqual(yield* answer(it, "t", ""), { _tag: "Success", value: 7, writes: [] })
    }))

  it.effect("ARG-13 lets no key of the arguments reach a prototype", () =>
    Effect.gen(function*() {
      const seen: Array<object> = []
      const tool = Tool.make("ok", {
        input: Schema.Record(Schema.String, Schema.Unknown),
        handler: (input) => Effect.sync(() => String(seen.push(input)))
      })
      const it = yield* registry(Registry.layer(tool))
      yield* answer(it, "ok", '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"polluted":1}},"a":1}')
      assert.deepStrictEqual([Reflect.get({}, "isAdmin"), Reflect.get({}, "polluted")], [undefined, undefined])
      assert.include([Object.prototype, null], Object.getPrototypeOf(seen[0]))
      assert.strictEqual(Reflect.get(seen[0]!, "isAdmin"), undefined)
    }))

  it.effect("ARG-16 refuses values that JSON does not have, and shows them", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { input: { n: Schema.Finite, b: Schema.Finite }, handler: () => Effect.succeed("") })
      const it = yield* registry(Registry.layer(tool))
      const refused = yield* answer(it, "t", { n: NaN, m: Infinity, b: 1n })
      assert.deepStrictEqual(refused._tag === "Failure" && refused.issues, [
        { path: "n", message: "Expected a finite number, got number NaN" },
        { path: "b", message: "Expected number, got bigint 1" }
      ])
      assert.doesNotThrow(() => JSON.stringify(refused))
    }))
})

describe("selection", () => {
  const all = Registry.layer(add, now, named("plain"))
  const names = (selection: Registry.Selection) =>
    Effect.map(registry(all.pipe(Registry.select(selection))), (it) => it.names)

  it.effect("takes tools with one of the tags, and exclusion wins", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* names({}), ["add", "now", "plain"])
      assert.deepStrictEqual(yield* names({ tags: ["math", "clock"] }), ["add", "now"])
      assert.deepStrictEqual(yield* names({ tags: ["math", "clock"], excludeTags: ["pure"] }), ["now"])
      assert.deepStrictEqual(yield* names({ names: ["plain", "add"] }), ["add", "plain"])
    }))

  it.effect("refuses a name that is not there", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(names({ names: ["add", "gone"] }))
      assert.deepStrictEqual(error.problems, ["no tools are named gone; there are: add, now, plain"])
    }))

  it.effect("does not execute what it does not show", () =>
    Effect.gen(function*() {
      const it = yield* registry(all.pipe(Registry.select({ tags: ["clock"] })))
      const outcome = yield* answer(it, "add", { a: 1, b: 2 })
      assert.strictEqual(
        outcome._tag === "Failure" ? outcome.message : "",
        'There is no tool named "add". The tools are: now.'
      )
    }))

  it.effect("SCH-10 is the same list, byte for byte, whoever was registered first", () =>
    Effect.gen(function*() {
      const fs = Registry.layer(named("zeta"), named("alpha"))
      const swapped = Registry.layer(named("alpha"), named("zeta"))
      const gh = Registry.layer(named("mu"))
      const bytes = (layer: Layer.Layer<ToolRegistry, RegistryError>) =>
        Effect.map(registry(layer), (it) => JSON.stringify(it.schemas()))
      const first = yield* bytes(Registry.merge(fs, gh))
      assert.strictEqual(yield* bytes(Registry.merge(gh, fs)), first)
      assert.strictEqual(yield* bytes(Registry.merge(gh, swapped)), first)
    }))

  it.effect("puts a prefix before every name, and the tools answer under it", () =>
    Effect.gen(function*() {
      const it = yield* registry(Registry.layer(add).pipe(Registry.prefix("fs_")))
      assert.deepStrictEqual(it.schemas().map(({ name }) => name), ["fs_add"])
      assert.deepStrictEqual(yield* answer(it, "fs_add", { a: 1, b: 1 }), { _tag: "Success", value: 2, writes: [] })
      const error = yield* Effect.flip(registry(Registry.layer(add).pipe(Registry.prefix("f s "))))
      assert.instanceOf(error, RegistryError)
    }))
})

describe("failures", () => {
  class Down extends Schema.TaggedError<Down>()("Down", { why: Schema.String }) {}

  it.effect("that are declared reach the model in full", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { failure: Down, handler: () => Effect.fail(new Down({ why: "rain" })) })
      const it = yield* registry(Registry.layer(tool))
      assert.deepStrictEqual(yield* answer(it, "t", {}), {
        _tag: "Failure",
        kind: "failure",
        class: "semantic",
        message: '{"_tag":"Down","why":"rain"}'
      })
    }))

  it.effect("RES-04 that are declared read well, whatever was thrown", () =>
    Effect.gen(function*() {
      const thrown: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [
        [new Error("disk full"), ["disk full"]],
        [{ code: "E1", msg: "x" }, ["E1", "x"]],
        ["plain string", ["plain string"]],
        [undefined, ["did not say why"]],
        [new AggregateError([new Error("a"), new Error("b")], "many"), ["many"]],
        [new Error("outer", { cause: new Error("inner") }), ["outer"]]
      ]
      for (const [error, words] of thrown) {
        const tool = Tool.make("t", { failure: Schema.Defect(), handler: () => Effect.fail(error) })
        const it = yield* registry(Registry.layer(tool))
        const outcome = yield* answer(it, "t", {})
        assert.isTrue(Turn.isError(outcome))
        for (const word of words) assert.include(String(Turn.told(outcome)), word)
      }
    }))

  it.effect("RES-04 that are not declared are an opaque line, and the log has the cause under the same id", () =>
    Effect.gen(function*() {
      for (const error of [new Error("password=1"), { code: "E1" }, "plain", undefined]) {
        const log = logged()
        const tool = Tool.make("t", { handler: () => Effect.die(error) })
        const it = yield* registry(Registry.layer(tool))
        const outcome = yield* Effect.provide(answer(it, "t", {}), log.layer)
        assert.deepStrictEqual(outcome._tag === "Failure" && [outcome.kind, outcome.message], [
          "defect",
          `The tool failed (error id ${
            outcome._tag === "Failure" ? outcome.errorId : ""
          }). Its arguments are not to blame.`
        ])
        assert.deepStrictEqual(log.lines.map(({ level, message }) => [level, message]), [["Error", 'tool "t" failed']])
        assert.include(log.lines[0]!.cause, error instanceof Error ? error.message : "")
      }
    }))

  it.effect("SPEC-61 a stack overflow and a failed assertion stay inside their call", () =>
    Effect.gen(function*() {
      const overflow = Tool.make("overflow", {
        handler: () => {
          const deep = (n: number): number => deep(n + 1) + 1
          return Effect.succeed(String(deep(0)))
        }
      })
      const asserting = Tool.make("asserting", { handler: () => Effect.sync(() => assert.fail("no") as string) })
      const it = yield* registry(Registry.layer(overflow, asserting, now))
      const outcomes = yield* Effect.forEach(["overflow", "asserting", "now"], (name) => answer(it, name, {}), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag), [
        "defect",
        "defect",
        "Success"
      ])
    }).pipe(Effect.provide(logged().layer)))

  it.effect("of a handler that gives no Effect stay inside its call", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { handler: (() => Promise.resolve("x")) as never as () => Effect.Effect<string> })
      const it = yield* registry(Registry.layer(tool))
      const outcome = yield* answer(it, "t", {})
      assert.strictEqual(outcome._tag === "Failure" ? outcome.kind : "", "defect")
    }).pipe(Effect.provide(logged().layer)))

  it.effect("of a result that is not what the tool declares are its own", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", {
        output: Schema.Struct({ n: Schema.Finite }),
        handler: () => Effect.succeed({ n: NaN })
      })
      const it = yield* registry(Registry.layer(tool))
      const outcome = yield* answer(it, "t", {})
      assert.strictEqual(outcome._tag === "Failure" ? outcome.kind : "", "invalid-output")
    }).pipe(Effect.provide(logged().layer)))
})

describe("results", () => {
  it.effect("are JSON by the output's schema", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", {
        output: Schema.Struct({ at: Schema.Date, tags: Schema.ReadonlySet(Schema.String) }),
        handler: () => Effect.succeed({ at: new Date(0), tags: new Set(["a"]) })
      })
      const it = yield* registry(Registry.layer(tool))
      assert.deepStrictEqual(yield* answer(it, "t", {}), {
        _tag: "Success",
        value: { at: "1970-01-01T00:00:00.000Z", tags: ["a"] },
        writes: []
      })
    }))

  it.effect("RES-01 of nothing are null", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { output: Schema.Void, handler: () => Effect.void })
      const it = yield* registry(Registry.layer(tool))
      assert.deepStrictEqual(yield* answer(it, "t", {}), { _tag: "Success", value: null, writes: [] })
    }))
})

describe("where a handler runs", () => {
  class Db extends Services.Service<Db, { readonly name: string }>()("test/Db") {}
  const Locale = Services.Reference<string>("test/Locale", { defaultValue: () => "en" })
  const tool = Tool.make("where", {
    handler: () =>
      Effect.gen(function*() {
        return `${(yield* Db).name} ${yield* Locale}`
      })
  })
  const layer = Registry.layer(tool).pipe(Layer.provide(Layer.succeed(Db)({ name: "the registry's" })))

  it.effect("has the registry's services and the run's references", () =>
    Effect.gen(function*() {
      const it = yield* registry(layer)
      const outcome = yield* answer(it, "where", {}).pipe(
        Effect.provideService(Db, { name: "the run's" }),
        Effect.provideService(Locale, "nb")
      )
      assert.strictEqual(Turn.told(outcome), "the registry's nb")
    }))

  it.effect("does not inherit the call in which its registry was built", () =>
    Effect.gen(function*() {
      const outer = Context.callScope()
      const reads = Tool.make("reads", {
        handler: () => Effect.map(Context.CurrentCall, (call) => String(call === outer))
      })
      const it = yield* Effect.provideService(registry(Registry.layer(reads)), Context.CurrentCall, outer)
      assert.strictEqual(Turn.told(yield* answer(it, "reads", {})), "false")
    }))
})

describe("a tool of effect/ai", () => {
  it.effect("may show preliminary results, and its last one is its outcome", () =>
    Effect.gen(function*() {
      const kit = Toolkit.make(WireTool.make("slow", { success: Schema.String }))
      const layer = Registry.fromToolkit(kit).pipe(Layer.provide(kit.toLayer({
        slow: (_, { preliminary }) => Effect.as(preliminary("half way"), "all of it")
      })))
      assert.deepStrictEqual(yield* answer(yield* registry(layer), "slow", {}), {
        _tag: "Success",
        value: "all of it",
        writes: []
      })
    }))

  it.effect("fails as it declares, in both of its modes", () =>
    Effect.gen(function*() {
      for (const failureMode of ["error", "return"] as const) {
        const kit = Toolkit.make(
          WireTool.make("fails", { success: Schema.String, failure: Schema.String, failureMode })
        )
        const layer = Registry.fromToolkit(kit).pipe(
          Layer.provide(kit.toLayer({ fails: () => Effect.fail("no room") }))
        )
        assert.deepStrictEqual(yield* answer(yield* registry(layer), "fails", {}), {
          _tag: "Failure",
          kind: "failure",
          class: "semantic",
          message: "no room"
        })
      }
    }))
})
