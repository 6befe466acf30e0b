import type * as LanguageModel from "effect/ai/LanguageModel"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Gate from "toolfold/Gate"
import * as Policy from "toolfold/policy/Policy"
import * as Subject from "toolfold/Subject"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { describe, expect, it } from "tstyche"

class Db extends Services.Service<Db, { readonly find: (key: string) => Effect.Effect<string> }>()("app/Db") {}
class Trip extends Context.Slots<Trip>()("app/Trip", { notes: Context.list(Schema.String), spent: Context.sum }) {}
class Down extends Schema.TaggedError<Down>()("Down", { why: Schema.String }) {}

const weather = Tool.make("get_weather", {
  input: {
    city: Schema.String,
    days: Schema.Int.pipe(Schema.optionalKey),
    unit: Schema.Literals(["c", "f"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("c" as const)))
  },
  output: Schema.Struct({ degrees: Schema.Finite }),
  failure: Down,
  handler: ({ city, unit }) =>
    Effect.gen(function*() {
      const trip = yield* Trip
      const db = yield* Db
      yield* trip.write({ notes: [yield* db.find(city)], spent: 1 })
      if (unit === "f") return yield* new Down({ why: "no" })
      return { degrees: trip.get("spent") }
    })
})
const now = Tool.make("now", { handler: () => Effect.succeed("12:00") })

describe("a tool", () => {
  it("knows its input, output, failure and needs", () => {
    expect<Tool.Input<typeof weather>>().type.toBe<
      { readonly city: string; readonly days?: number; readonly unit: "c" | "f" }
    >()
    expect<Tool.Output<typeof weather>>().type.toBe<{ readonly degrees: number }>()
    expect<Tool.Failure<typeof weather>>().type.toBe<Down>()
    expect<Tool.Services<typeof weather>>().type.toBe<Trip | Db>()
    expect<Tool.Services<typeof now>>().type.toBe<never>()
  })

  it("is the plain function, where a parameter with a default may be left out", () => {
    expect(weather({ city: "Oslo" })).type.toBe<Effect.Effect<{ readonly degrees: number }, Down, Trip | Db>>()
    expect(weather({ city: "Oslo", unit: "f", days: 3 })).type.toBe<
      Effect.Effect<{ readonly degrees: number }, Down, Trip | Db>
    >()
    expect(now()).type.toBe<Effect.Effect<string>>()
    expect(weather).type.not.toBeCallableWith()
    expect(weather).type.not.toBeCallableWith({})
    expect(weather).type.not.toBeCallableWith({ city: "Oslo", unit: "k" })
  })

  it("keeps its type through combinators", () => {
    expect(weather.pipe(Tool.tags("a"), Tool.serial(true))).type.toBe<typeof weather>()
    expect(weather.annotate(WireTool.Title, "Weather")).type.toBe<typeof weather>()
  })

  it("does not show the setters of its schemas", () => {
    // @ts-expect-error This expression is not callable
    weather.setParameters(Schema.Struct({}))
  })

  it("is refused where its handler gives or fails with something else", () => {
    Tool.make("t", {
      output: Schema.Finite,
      // @ts-expect-error Type 'string' is not assignable to type 'number'
      handler: () => Effect.succeed("text")
    })
    Tool.make("t", {
      // @ts-expect-error Type 'Down' is not assignable to type 'never'
      handler: () => Effect.fail(new Down({ why: "" }))
    })
  })

  it("is refused with an option that does not exist", () => {
    // @ts-expect-error 'retries' does not exist in type
    Tool.make("t", { retries: 2, handler: () => Effect.succeed("") })
  })

  it("has a conflict key of its own input, as an option and as a combinator", () => {
    Tool.make("t", {
      input: { path: Schema.String, lines: Schema.Int },
      conflictKey: (input) => {
        expect(input).type.toBe<{ readonly path: string; readonly lines: number }>()
        return input.path
      },
      handler: () => Effect.succeed("")
    })
    Tool.make("t", {
      input: { path: Schema.String },
      // @ts-expect-error Property 'file' does not exist on type
      conflictKey: ({ file }) => file,
      handler: () => Effect.succeed("")
    })
    Tool.make("t", {
      input: { lines: Schema.Int },
      // @ts-expect-error Type 'number' is not assignable to type 'string'
      conflictKey: ({ lines }) => lines,
      handler: () => Effect.succeed("")
    })
    expect(weather.pipe(Tool.conflictKey(({ city, unit }) => `${city} ${unit}`))).type.toBe<typeof weather>()
    expect(Tool.conflictKey(weather, ({ city }) => city)).type.toBe<typeof weather>()
    // @ts-expect-error Property 'town' does not exist on type
    weather.pipe(Tool.conflictKey(({ town }) => town))
    // @ts-expect-error Property 'town' does not exist on type
    Tool.conflictKey(weather, ({ town }) => town)
    const theirs = WireTool.make("theirs", { parameters: Schema.Struct({ path: Schema.String }) })
    expect(Tool.conflictKey(theirs, ({ path }) => path)).type.toBe<typeof theirs>()
    // @ts-expect-error Property 'town' does not exist on type
    Tool.conflictKey(theirs, ({ town }) => town)
    expect(Tool.conflictKeyOf(weather)).type.toBe<
      | ((input: { readonly city: string; readonly days?: number; readonly unit: "c" | "f" }) => string)
      | undefined
    >()
  })

  it("touches subjects by its own input, as an option and as a combinator", () => {
    Tool.make("t", {
      input: { path: Schema.String, lines: Schema.Int },
      subjects: (input) => {
        expect(input).type.toBe<{ readonly path: string; readonly lines: number }>()
        return [Subject.fileRead(input.path)]
      },
      handler: () => Effect.succeed("")
    })
    Tool.make("t", {
      input: { path: Schema.String },
      subjects: [{ kind: "file-read", pathArg: "path" }, { kind: "mine", pathArg: "path" }],
      handler: () => Effect.succeed("")
    })
    Tool.make("t", {
      input: { path: Schema.String },
      // @ts-expect-error Type '"file"' is not assignable to type '"path"'
      subjects: [{ kind: "file-read", pathArg: "file" }],
      handler: () => Effect.succeed("")
    })
    Tool.make("t", {
      input: { path: Schema.String },
      // @ts-expect-error Property 'file' does not exist on type
      subjects: ({ file }) => [Subject.fileRead(file)],
      handler: () => Effect.succeed("")
    })
    expect(weather.pipe(Tool.subjects(({ city }) => [Subject.external(city)]), Tool.sensitive(true))).type.toBe<
      typeof weather
    >()
    expect(weather.pipe(Tool.subjects([{ kind: "external", pathArg: "city" }]))).type.toBe<typeof weather>()
    // @ts-expect-error Property 'town' does not exist on type
    weather.pipe(Tool.subjects(({ town }) => [Subject.external(town)]))
    // @ts-expect-error Type '"town"' is not assignable to type
    Tool.subjects(weather, [{ kind: "external", pathArg: "town" }])
    // @ts-expect-error Argument of type 'string' is not assignable to parameter of type 'boolean'
    weather.pipe(Tool.sensitive("yes"))
    const theirs = WireTool.make("theirs", { parameters: Schema.Struct({ path: Schema.String }) })
    expect(Tool.subjects(theirs, [{ kind: "file-read", pathArg: "path" }])).type.toBe<typeof theirs>()
    expect(Tool.subjectsOf(weather, { city: "Oslo", unit: "c" })).type.toBe<ReadonlyArray<Subject.Subject>>()
    // @ts-expect-error Property 'unit' is missing in type
    Tool.subjectsOf(weather, { city: "Oslo" })
  })

  it("keeps its type through every option with a value of its own, and refuses other values", () => {
    expect(
      weather.pipe(
        Tool.timeout("5 seconds"),
        Tool.retry(true),
        Tool.concurrency(2),
        Tool.returnDirect(true),
        Tool.maxResultSize(100)
      )
    ).type.toBe<typeof weather>()
    expect(Tool.timeout(weather, 2.7)).type.toBe<typeof weather>()
    // @ts-expect-error Argument of type '"5s"' is not assignable to parameter of type 'Input'
    Tool.timeout(weather, "5s")
    // @ts-expect-error Argument of type '-1' is not assignable to parameter of type
    Tool.retry(weather, -1)
  })

  it("may have the body of a foreign promise, which fails with nothing or with what `catch` gives", () => {
    expect(Tool.promise(() => Promise.resolve(1))).type.toBe<Effect.Effect<number>>()
    expect(Tool.promise(async (signal) => signal.aborted)).type.toBe<Effect.Effect<boolean>>()
    expect(
      Tool.promise({
        try: (signal: AbortSignal) => Promise.resolve(signal.aborted),
        catch: () => new Down({ why: "" })
      })
    ).type.toBe<Effect.Effect<boolean, Down>>()
    expect(
      Tool.promise({ try: () => Promise.resolve("x"), catch: (error) => `${typeof error}` })
    ).type.toBe<Effect.Effect<string, string>>()
    Tool.make("t", {
      failure: Down,
      handler: () => Tool.promise({ try: async () => "", catch: () => new Down({ why: "" }) })
    })
    Tool.make("t", {
      // @ts-expect-error Type 'Down' is not assignable to type 'never'
      handler: () => Tool.promise({ try: async () => "", catch: () => new Down({ why: "" }) })
    })
  })

  it("says whom a failure is for by a word or by the failure, whose type it knows", () => {
    expect(Down.pipe(Tool.failureClass("transient"))).type.toBe<(typeof Down)["Rebuild"]>()
    Down.pipe(
      Tool.failureClass((failure) => {
        expect(failure).type.toBe<Down>()
        return "environment"
      })
    )
    Tool.failureClass(Schema.Struct({ status: Schema.Int }), ({ status }) => status >= 500 ? "transient" : "semantic")
    // @ts-expect-error Property 'status' does not exist on type 'Down'
    Tool.failureClass(Down, ({ status }) => status > 0 ? "transient" : "semantic")
    // @ts-expect-error Argument of type '"later"' is not assignable to parameter of type
    Tool.failureClass(Down, "later")
    const tool = Tool.make("t", {
      failure: Down.pipe(Tool.failureClass("transient")),
      handler: () => Effect.fail(new Down({ why: "" }))
    })
    expect<Tool.Failure<typeof tool>>().type.toBe<Down>()
  })

  it("goes into a toolkit of effect/ai with its types", () => {
    const kit = Toolkit.make(weather)
    kit.toLayer({ get_weather: (input) => weather(input) })
    expect(kit.tools.get_weather).type.toBe<typeof weather>()
  })
})

describe("a cell", () => {
  it("reads and writes its slots by their types", () => {
    Effect.map(Trip, (trip) => {
      expect(trip.get("notes")).type.toBe<ReadonlyArray<string>>()
      expect(trip.snapshot).type.toBe<{ readonly notes: ReadonlyArray<string>; readonly spent: number }>()
      // @ts-expect-error Argument of type '"cost"' is not assignable to parameter of type '"notes" | "spent"'
      trip.get("cost")
      // @ts-expect-error Type 'string' is not assignable to type 'number'
      trip.write({ spent: "much" })
      // @ts-expect-error 'cost' does not exist in type
      trip.write({ cost: 1 })
    })
    expect(Trip.from(Context.empty)).type.toBe<{ readonly notes: ReadonlyArray<string>; readonly spent: number }>()
  })

  it("is provided by capture, and nothing else is", () => {
    expect(Context.capture(weather({ city: "Oslo" }))).type.toBe<
      Effect.Effect<
        {
          readonly value: { readonly degrees: number }
          readonly writes: ReadonlyArray<Context.Write>
          readonly context: Context.Context
        },
        Down,
        Db
      >
    >()
  })
})

describe("a registry", () => {
  const registry = ToolRegistry.layer(weather, now)

  it("of tools whose needs were forgotten needs anything, so that it does not run unprovided", () => {
    const wide: ReadonlyArray<Tool.Any> = [weather, now]
    const layer = ToolRegistry.layer(...wide)
    expect(layer).type.toBe<Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError, unknown>>()
    // @ts-expect-error Type 'unknown' is not assignable to type 'never'
    Effect.runPromise(Effect.scoped(Layer.build(layer)))
    expect<Tool.Services<Tool.Any>>().type.toBe<unknown>()
  })

  it("needs what its handlers need", () => {
    expect(registry).type.toBe<Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError, Trip | Db>>()
    expect(registry.pipe(Layer.provide(Trip.layer))).type.toBe<
      Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError, Db>
    >()
    expect(ToolRegistry.merge(registry, ToolRegistry.layer(now))).type.toBe<
      Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError, Trip | Db>
    >()
    expect(registry.pipe(ToolRegistry.select({ tags: ["a"] }), ToolRegistry.prefix("x_"))).type.toBe<
      Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError, Trip | Db>
    >()
  })
})

describe("a program", () => {
  const bot = AgentLoop.make("bot", { instructions: "be kind" })
  const run = AgentLoop.run(bot, { prompt: "go" })
  const registry = ToolRegistry.layer(weather, now)
  const everything = Layer.mergeAll(Trip.layer, Layer.succeed(Db)({ find: Effect.succeed }))

  it("needs a model and a registry", () => {
    expect(run).type.toBe<
      Effect.Effect<AgentLoop.Result, AgentLoop.ModelFailed, LanguageModel.LanguageModel | ToolRegistry.ToolRegistry>
    >()
  })

  it("compiles when everything is provided", () => {
    const program = run.pipe(Effect.provide(registry), Effect.provide([everything, ScriptedModel.layer("hi")]))
    expect(program).type.toBe<Effect.Effect<AgentLoop.Result, AgentLoop.ModelFailed | ToolRegistry.RegistryError>>()
    Effect.runPromise(program)
  })

  it("does not compile without the slots of a tool, and the message names them", () => {
    const program = run.pipe(
      Effect.provide(registry),
      Effect.provide([Layer.succeed(Db)({ find: Effect.succeed }), ScriptedModel.layer("hi")])
    )
    // @ts-expect-error Type 'Trip' is not assignable to type 'never'
    Effect.runPromise(program)
  })

  it("does not compile without a service of a handler, and the message names it", () => {
    const program = run.pipe(Effect.provide(registry), Effect.provide([Trip.layer, ScriptedModel.layer("hi")]))
    // @ts-expect-error Type 'Db' is not assignable to type 'never'
    Effect.runPromise(program)
  })

  it("needs what its agent's instructions and model need, and no other model where the agent has its own", () => {
    const own = AgentLoop.make("own", { instructions: Effect.as(Db, "x"), model: ScriptedModel.layer("hi") })
    expect(own).type.toBe<AgentLoop.Agent<never, Db>>()
    expect(AgentLoop.run(own, { prompt: "go" })).type.toBe<
      Effect.Effect<AgentLoop.Result, AgentLoop.ModelFailed, Db | ToolRegistry.ToolRegistry>
    >()
  })

  it("needs what its observers need", () => {
    const watched = AgentLoop.run(bot, { prompt: "go", onText: () => Effect.asVoid(Db) })
    expect(watched).type.toBe<
      Effect.Effect<
        AgentLoop.Result,
        AgentLoop.ModelFailed,
        LanguageModel.LanguageModel | ToolRegistry.ToolRegistry | Db
      >
    >()
  })

  it("ends in one of a closed set of ways", () => {
    expect<AgentLoop.Result["_tag"]>().type.toBe<"Completed" | "Paused" | "LimitReached" | "Refused" | "Cancelled">()
  })
})

describe("a gate", () => {
  const needy: Gate.Gate<Db> = () => Effect.as(Db, Gate.proceed)

  it("needs what it needs, alone and with others", () => {
    const call = Gate.asked({ id: "1", tool: now, input: {} })
    const info: Gate.Info = { agent: "a", runId: "r", turn: 0, context: Context.empty, calls: [] }
    expect(Gate.all(Gate.sensitive, Gate.allow)).type.toBe<Gate.Gate>()
    expect(Gate.all(needy, Gate.sensitive)).type.toBe<Gate.Gate<Db>>()
    expect(Gate.forTools(["now"], needy)).type.toBe<Gate.Gate<Db>>()
    expect(Gate.ask(Gate.sensitive, () => Effect.as(Db, Gate.proceed))).type.toBe<Gate.Gate<Db>>()
    expect(Gate.decide(needy, call, info)).type.toBe<Effect.Effect<Gate.Decision, never, Db>>()
    expect(Gate.decide(Gate.sensitive, call, info)).type.toBe<Effect.Effect<Gate.Decision>>()
    expect<Gate.Gate<Db>>().type.not.toBeAssignableTo<Gate.Gate>()
    expect(Policy.make({ rules: [] })).type.toBeAssignableTo<Gate.Gate>()
  })

  it("gives a decision", () => {
    // @ts-expect-error Type 'boolean' is not assignable to type
    const gate: Gate.Gate = () => Effect.succeed(true)
    expect(gate).type.toBe<Gate.Gate>()
  })
})
