import { assert, describe, it } from "@effect/vitest"
import * as Services from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { quiet } from "./utils.ts"

class Trip extends Context.Slots<Trip>()("app/Trip", { notes: Context.list(Schema.String) }) {}

class Audit extends Services.Service<Audit, { readonly log: Array<string> }>()("app/Audit") {}

const double = Tool.make("double", {
  input: { n: Schema.FiniteFromString },
  output: Schema.Finite,
  handler: ({ n }) => Effect.flatMap(Trip, (trip) => Effect.as(trip.write({ notes: [`doubled ${n}`] }), 2 * n))
})

const ask = (name: string, params: unknown = {}, scope = Context.callScope()) =>
  Effect.flatMap(ToolRegistry.ToolRegistry, (registry) => registry.answer(Turn.call({ id: "1", name, params }), scope))

const succeeded = (value: unknown, ...notes: ReadonlyArray<string>): Turn.Outcome => ({
  _tag: "Success",
  value,
  writes: notes.map((note) => ({ slots: "app/Trip", values: { notes: [note] } }))
})

describe("around", () => {
  it.effect("SPEC-110 nests in the order of registration, the first outermost, and sees decoded input", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const noting = (name: string) =>
        ToolRegistry.around((call, next) =>
          Effect.sync(() => log.push(`${name} before ${call.name} ${JSON.stringify(call.input)}`)).pipe(
            Effect.andThen(next),
            Effect.tap((outcome) => Effect.sync(() => log.push(`${name} after ${Turn.told(outcome)}`)))
          )
        )
      const layer = ToolRegistry.layer(double).pipe(noting("a"), noting("b"))
      assert.deepStrictEqual(
        yield* Effect.provide(ask("double", { n: "21" }), layer),
        succeeded(42, "doubled 21")
      )
      assert.deepStrictEqual(log, [
        'a before double {"n":21}',
        'b before double {"n":21}',
        "b after 42",
        "a after 42"
      ])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-111 may answer itself, and then nothing within runs", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const layer = ToolRegistry.layer(double).pipe(
        ToolRegistry.around((_, next) => Effect.tap(next, (outcome) => Effect.sync(() => log.push(outcome._tag)))),
        ToolRegistry.around(() => Effect.succeed<Turn.Outcome>({ _tag: "Replied", text: "from the cache" })),
        ToolRegistry.around(() => Effect.die("never reached"))
      )
      const scope = Context.callScope()
      assert.deepStrictEqual(yield* Effect.provide(ask("double", { n: "1" }, scope), layer), {
        _tag: "Replied",
        text: "from the cache"
      })
      assert.deepStrictEqual([log, scope.attempts, scope.writes], [["Replied"], 0, []])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-111 may run what is within again; what a call wrote is what its last run wrote", () =>
    Effect.gen(function*() {
      let runs = 0
      const tool = Tool.make("count", {
        output: Schema.Finite,
        handler: () =>
          Effect.gen(function*() {
            yield* (yield* Trip).write({ notes: [`run ${++runs}`] })
            return runs
          })
      })
      const layer = ToolRegistry.layer(tool).pipe(
        ToolRegistry.around((_, next) => Effect.andThen(next, Effect.andThen(next, next)))
      )
      assert.deepStrictEqual(yield* Effect.provide(ask("count"), layer), succeeded(3, "run 3"))
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("a cache gives a known answer again, which then writes nothing", () =>
    Effect.gen(function*() {
      const known = new Map<string, Turn.Outcome>()
      const layer = ToolRegistry.layer(double).pipe(ToolRegistry.around((call, next) => {
        const key = JSON.stringify([call.name, call.input])
        const hit = known.get(key)
        return hit === undefined
          ? Effect.tap(next, (outcome) => Effect.sync(() => known.set(key, outcome)))
          : Effect.succeed(hit)
      }))
      const outcomes = yield* Effect.provide(
        Effect.forEach([1, 2], () => ask("double", { n: "21" })),
        layer
      )
      assert.deepStrictEqual(outcomes, [succeeded(42, "doubled 21"), succeeded(42)])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-63 that dies is an outcome of its call, and siblings go on", () =>
    Effect.gen(function*() {
      const layer = ToolRegistry.layer(double).pipe(
        ToolRegistry.around((call, next) => JSON.stringify(call.input) === '{"n":1}' ? Effect.die("broken") : next)
      )
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(layer),
        Effect.provide(ScriptedModel.layer(
          [ScriptedModel.call("double", { n: "1" }), ScriptedModel.call("double", { n: "2" })],
          "done"
        ))
      )
      const [broken, fine] = result.turns[0]?.outcomes ?? []
      assert.deepStrictEqual([broken?._tag === "Failure" && broken.kind, fine], ["defect", succeeded(4, "doubled 2")])
      assert.deepStrictEqual(Trip.from(result.context), { notes: ["doubled 2"] })
    }).pipe(Effect.provide(Trip.layer), Effect.provide(quiet)))

  it.effect("states what it needs, and sees neither unknown tools nor arguments that do not fit", () =>
    Effect.gen(function*() {
      const { log } = yield* Audit
      const layer = ToolRegistry.layer(double).pipe(
        ToolRegistry.around((call, next) =>
          Effect.flatMap(Audit, ({ log }) => Effect.andThen(Effect.sync(() => log.push(call.name)), next))
        )
      )
      const outcomes = yield* Effect.provide(
        Effect.forEach(
          [["double", { n: "x" }], ["gone", {}], ["double", { n: "1" }]] as const,
          ([name, params]) => ask(name, params)
        ),
        layer
      )
      assert.deepStrictEqual(outcomes.map((outcome) => outcome._tag), ["Failure", "Failure", "Success"])
      assert.deepStrictEqual(log, ["double"])
    }).pipe(Effect.provide(Layer.mergeAll(Trip.layer, Layer.sync(Audit, () => ({ log: [] }))))))

  it.effect("runs once a call, whatever is tried within", () =>
    Effect.gen(function*() {
      let seen = 0
      let tries = 0
      const flaky = Tool.make("flaky", {
        failure: Schema.String.pipe(Tool.failureClass("transient")),
        retry: true,
        handler: () => Effect.suspend(() => ++tries < 3 ? Effect.fail("busy") : Effect.succeed("done"))
      })
      const layer = ToolRegistry.layer(flaky).pipe(
        ToolRegistry.around((_, next) => Effect.andThen(Effect.sync(() => seen++), next))
      )
      const fiber = yield* Effect.forkChild(Effect.provide(ask("flaky"), layer))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), succeeded("done"))
      assert.deepStrictEqual([seen, tries], [1, 3])
    }))
})

/** Bodies that wait to be let go, and how many of them run. */
const gated = () => {
  const running = new Set<string>()
  const started: Array<string> = []
  let most = 0
  const gates = new Map<string, Deferred.Deferred<void>>()
  const gate = (name: string) => {
    const known = gates.get(name) ?? Deferred.makeUnsafe<void>()
    gates.set(name, known)
    return known
  }
  const body = (name: string) =>
    Effect.gen(function*() {
      running.add(name)
      started.push(name)
      most = Math.max(most, running.size)
      yield* Deferred.await(gate(name))
      running.delete(name)
      return name
    })
  return {
    body,
    started,
    most: () => most,
    open: (name: string) => Effect.andThen(Deferred.succeed(gate(name), undefined), TestClock.adjust(0))
  }
}

describe("load", () => {
  const call = (name: string, params: unknown) => ScriptedModel.call(name, params)
  const run = (...calls: ReadonlyArray<ReturnType<typeof call>>) =>
    AgentLoop.run(AgentLoop.make("bot", { concurrency: "unbounded" }), { prompt: "go" }).pipe(
      Effect.provide(ScriptedModel.layer([...calls], "done"))
    )

  it.effect("calls with one conflict key run in call order, those with another beside them, over all tools", () =>
    Effect.gen(function*() {
      const bodies = gated()
      const options = { input: { path: Schema.String, id: Schema.String } }
      const read = Tool.make("read", { ...options, handler: ({ id }) => bodies.body(id) }).pipe(
        Tool.conflictKey(({ path }) => path)
      )
      const write = Tool.make("write", {
        ...options,
        conflictKey: ({ path }) => path,
        handler: ({ id }) => bodies.body(id)
      })
      const fiber = yield* Effect.forkChild(Effect.provide(
        run(
          call("read", { path: "a", id: "1" }),
          call("write", { path: "a", id: "2" }),
          call("write", { path: "b", id: "3" }),
          call("read", { path: "a", id: "4" })
        ),
        ToolRegistry.layer(read, write)
      ))
      const seen: Array<ReadonlyArray<string>> = []
      yield* TestClock.adjust(0)
      for (const id of ["1", "2", "3", "4"]) {
        seen.push([...bodies.started])
        yield* bodies.open(id)
      }
      assert.deepStrictEqual(seen, [["1", "3"], ["1", "3", "2"], ["1", "3", "2", "4"], ["1", "3", "2", "4"]])
      const { turns } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(turns[0]?.outcomes.map(Turn.told), ["1", "2", "3", "4"])
    }))

  it.effect("a conflict key is held over all attempts of a call", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      let tries = 0
      const flaky = Tool.make("flaky", {
        input: { id: Schema.String },
        failure: Schema.String.pipe(Tool.failureClass("transient")),
        retry: true,
        conflictKey: () => "one",
        handler: ({ id }) =>
          Effect.suspend(() => {
            log.push(id)
            return id === "a" && ++tries < 3 ? Effect.fail("busy") : Effect.succeed(id)
          })
      })
      const fiber = yield* Effect.forkChild(
        Effect.provide(run(call("flaky", { id: "a" }), call("flaky", { id: "b" })), ToolRegistry.layer(flaky))
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(log, ["a", "a", "a", "b"])
    }))

  it.effect("a conflict key that throws is an outcome of its call", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", {
        conflictKey: () => {
          throw new Error("no key")
        },
        handler: () => Effect.succeed("ran")
      })
      const outcome = yield* Effect.provide(ask("t"), ToolRegistry.layer(tool))
      assert.strictEqual(outcome._tag === "Failure" && outcome.kind, "defect")
    }).pipe(Effect.provide(quiet)))

  it.effect("a tool's concurrency holds over all runs of a registry, and a timeout does not count the wait", () =>
    Effect.gen(function*() {
      const bodies = gated()
      const tool = Tool.make("busy", {
        concurrency: 2,
        timeout: "1 second",
        input: { id: Schema.String },
        handler: ({ id }) => bodies.body(id)
      })
      const both = Effect.forEach(
        ["x", "y"],
        (name) => run(call("busy", { id: `${name}1` }), call("busy", { id: `${name}2` })),
        { concurrency: 2 }
      )
      const fiber = yield* Effect.forkChild(Effect.provide(both, ToolRegistry.layer(tool)))
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual(bodies.started, ["x1", "x2"])
      for (const id of ["x1", "x2"]) yield* bodies.open(id)
      yield* TestClock.adjust("900 millis")
      for (const id of ["y1", "y2"]) yield* bodies.open(id)
      const results = yield* Fiber.join(fiber)
      assert.deepStrictEqual(results.map(({ turns }) => turns[0]?.outcomes.map(Turn.told)), [["x1", "x2"], [
        "y1",
        "y2"
      ]])
      assert.strictEqual(bodies.most(), 2)
    }))

  it.effect("of a merged registry knows one set of conflict keys", () =>
    Effect.gen(function*() {
      const bodies = gated()
      const one = Tool.make("one", { conflictKey: () => "k", handler: () => bodies.body("one") })
      const other = Tool.make("other", { conflictKey: () => "k", handler: () => bodies.body("other") })
      const fiber = yield* Effect.forkChild(Effect.provide(
        run(call("one", {}), call("other", {})),
        ToolRegistry.merge(ToolRegistry.layer(one), ToolRegistry.layer(other))
      ))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(bodies.started, ["one"])
      yield* bodies.open("one")
      assert.deepStrictEqual(bodies.started, ["one", "other"])
      yield* bodies.open("other")
      yield* Fiber.join(fiber)
    }))
})
