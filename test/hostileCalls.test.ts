import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { converse, logged, quiet } from "./utils.ts"

const { call } = ScriptedModel

class Trip extends Context.Slots<Trip>()("app/Trip", { notes: Context.list(Schema.String) }) {}

class Down extends Schema.TaggedError<Down>()("Down", { why: Schema.String }) {}

const note = (text: string) => Effect.flatMap(Trip, (trip) => trip.write({ notes: [text] }))

const ask = (name: string, params: unknown = {}, scope = Context.callScope()) =>
  Effect.flatMap(ToolRegistry.ToolRegistry, (registry) => registry.answer(Turn.call({ id: "1", name, params }), scope))

const kindOf = (outcome: Turn.Outcome | undefined) => outcome?._tag === "Failure" ? outcome.kind : outcome?._tag

const thrower = (key: string) =>
  Object.defineProperty(new Error("odd"), key, {
    get: () => {
      throw new Error("no")
    }
  })

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe("an odd value", () => {
  const odd: ReadonlyArray<readonly [string, () => unknown]> = [
    ["an object whose toJSON throws", () => ({ toJSON: () => thrower("message").message })],
    ["an error whose message throws", () => thrower("message")],
    ["an error whose stack throws", () => thrower("stack")],
    ["an error whose name is a symbol", () => Object.assign(new Error("odd"), { name: Symbol("odd") })],
    ["an error whose message is a BigInt", () => Object.assign(new Error("odd"), { message: 1n })],
    ["a proxy that was revoked", revoked]
  ]
  const how: ReadonlyArray<readonly [string, (value: unknown) => Effect.Effect<never>]> = [
    ["dies with", Effect.die],
    ["fails with, undeclared,", (value) => Effect.fail(value) as Effect.Effect<never>] // what a type would refuse
  ]
  for (const [what, value] of odd) {
    for (const [verb, end] of how) {
      it.effect(`that a body ${verb} stays inside its call: ${what}`, () =>
        Effect.gen(function*() {
          const bad = Tool.make("bad", { handler: () => Effect.suspend(() => end(value())) })
          const good = Tool.make("good", { handler: () => Effect.succeed("fine") })
          const { turns } = yield* converse([bad, good], [
            [ScriptedModel.call("bad", {}), ScriptedModel.call("good", {})],
            "done"
          ])
          assert.deepStrictEqual(turns[0]?.outcomes.map(({ _tag }) => _tag), ["Failure", "Success"])
        }).pipe(Effect.provide(quiet)))
    }
  }

  it.effect("that is held in two places of each of 40 levels is too large, and not copied for ever", () =>
    Effect.gen(function*() {
      let value: unknown = {}
      for (let level = 0; level < 40; level++) value = [value, value]
      const tool = Tool.make("wide", { output: Schema.Unknown, handler: () => Effect.succeed(value) })
      assert.strictEqual(kindOf(yield* Effect.provide(ask("wide"), ToolRegistry.layer(tool))), "invalid-output")
    }).pipe(Effect.provide(quiet)))

  it.effect("is reported or not, and a logger that dies changes nothing", () =>
    Effect.gen(function*() {
      const tool = Tool.make("bad", { handler: () => Effect.die("odd") })
      const dying = Logger.layer([
        Logger.make(() => {
          throw new Error("no log")
        })
      ])
      const outcome = yield* ask("bad").pipe(Effect.provide(ToolRegistry.layer(tool)), Effect.provide(dying))
      assert.strictEqual(kindOf(outcome), "defect")
    }))

  it.effect("that is given as a conflict key is an outcome of its call", () =>
    Effect.gen(function*() {
      const key: unknown = { path: "a" }
      const tool = Tool.make("t", { conflictKey: () => key as string, handler: () => Effect.succeed("ran") })
      assert.strictEqual(kindOf(yield* Effect.provide(ask("t"), ToolRegistry.layer(tool))), "defect")
    }).pipe(Effect.provide(quiet)))
})

describe("what stands around a call", () => {
  const giving = (outcome: unknown, options: Tool.Options = {}) =>
    Effect.provide(
      ask("t"),
      ToolRegistry.layer(Tool.make("t", { ...options, handler: () => Effect.succeed("own") })).pipe(
        // Around is written in types that forbid some of these.
        ToolRegistry.around(() => Effect.succeed(outcome as Turn.Outcome))
      )
    )
  const value = (value: unknown): Turn.Outcome => ({ _tag: "Success", value, writes: [] })

  it.effect("gives results in the form that a tool's have", () =>
    Effect.gen(function*() {
      const circular: Array<unknown> = []
      circular.push(circular)
      const rows: ReadonlyArray<readonly [unknown, unknown]> = [
        [undefined, null],
        [1n, "1"],
        [circular, ["[circular]"]],
        [new Map([["a", 1]]), [["a", 1]]],
        ["\uD83D", "\uFFFD"]
      ]
      for (const [given, told] of rows) assert.deepStrictEqual(yield* giving(value(given)), value(told))
      assert.deepStrictEqual(
        yield* giving(value("x".repeat(1_000)), { maxResultSize: 10 }),
        value(`${"x".repeat(10)}\n[cut: the first 10 of 1000 characters]`)
      )
    }))

  it.effect("is at fault when it gives no outcome", () =>
    Effect.gen(function*() {
      for (const given of [undefined, "hi", { _tag: "Done" }]) {
        assert.strictEqual(kindOf(yield* giving(given)), "defect")
      }
    }).pipe(Effect.provide(quiet)))

  it.effect("writes before and after what is within, and sees what that wrote", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const body = Tool.make("body", { handler: () => Effect.as(note("body"), "done") })
      const layer = ToolRegistry.layer(body).pipe(
        ToolRegistry.around((_, next) =>
          Effect.gen(function*() {
            yield* note("before")
            const outcome = yield* next
            seen.push(outcome)
            yield* note("after")
            return outcome
          })
        )
      )
      const outcome = yield* Effect.provide(ask("body"), layer)
      const writes = (...notes: ReadonlyArray<string>) =>
        notes.map((text) => ({ slots: "app/Trip", values: { notes: [text] } }))
      assert.deepStrictEqual(seen, [{ _tag: "Success", value: "done", writes: writes("body") }])
      assert.deepStrictEqual(outcome, { _tag: "Success", value: "done", writes: writes("before", "body", "after") })
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("may run what is within twice at once, and each run has its own outcome", () =>
    Effect.gen(function*() {
      let runs = 0
      const tool = Tool.make("flaky", {
        failure: Down,
        handler: () => Effect.suspend(() => Effect.delay(Effect.fail(new Down({ why: `run ${++runs}` })), runs * 10))
      })
      const seen: Array<unknown> = []
      const layer = ToolRegistry.layer(tool).pipe(ToolRegistry.around((_, next) =>
        Effect.map(Effect.all([next, next], { concurrency: 2 }), (outcomes) => {
          seen.push(...outcomes.map(Turn.told))
          return outcomes[0]
        })
      ))
      const fiber = yield* Effect.forkChild(Effect.provide(ask("flaky"), layer))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(seen, ['{"_tag":"Down","why":"run 1"}', '{"_tag":"Down","why":"run 2"}'])
    }))
})

describe("work that goes on", () => {
  const stubborn = (end: Deferred.Deferred<void>) =>
    Tool.make("stubborn", {
      timeout: "1 second",
      handler: () => Effect.uninterruptible(Effect.as(Deferred.await(end), "late"))
    })

  it.effect("within a nested run is said of the call that made the run", () =>
    Effect.gen(function*() {
      const end = yield* Deferred.make<void>()
      const outer = Tool.make("outer", {
        timeout: "500 millis",
        handler: () =>
          Effect.map(
            Effect.orDie(AgentLoop.run(AgentLoop.make("inner"), { prompt: "go" })),
            ({ text }) => text
          ).pipe(
            Effect.provide(ToolRegistry.layer(stubborn(end))),
            Effect.provide(ScriptedModel.layer([ScriptedModel.call("stubborn", {})], "done")),
            Effect.orDie
          )
      })
      const program = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(ask("outer"))
        yield* TestClock.adjust("500 millis")
        yield* TestClock.adjust("200 millis")
        const outcome = yield* Effect.map(Effect.exit(Fiber.join(fiber)), (exit) => exit)
        yield* Deferred.succeed(end, undefined)
        return outcome
      })
      const outcome = yield* yield* Effect.provide(program, ToolRegistry.layer(outer))
      assert.deepInclude(outcome, { kind: "timeout", stillRunning: true })
    }).pipe(Effect.provide(quiet)))

  it.effect("is not tried again beside itself", () =>
    Effect.gen(function*() {
      const end = yield* Deferred.make<void>()
      const scope = Context.callScope()
      const program = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(ask("stubborn", {}, scope))
        yield* TestClock.adjust("1 second")
        yield* TestClock.adjust("10 seconds")
        const outcome = yield* Fiber.join(fiber)
        yield* Deferred.succeed(end, undefined)
        return outcome
      })
      const layer = ToolRegistry.layer(stubborn(end).pipe(Tool.retry(Schedule.recurs(3))))
      assert.deepInclude(yield* Effect.provide(program, layer), { kind: "timeout", stillRunning: true })
      assert.strictEqual(scope.attempts, 1)
    }).pipe(Effect.provide(quiet)))

  it.effect("is logged under the name that its registry has for the tool", () =>
    Effect.gen(function*() {
      const end = yield* Deferred.make<void>()
      const { layer, lines } = logged()
      const program = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(ask("p_stubborn"))
        yield* TestClock.adjust("1 second")
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(fiber)
        yield* Deferred.succeed(end, undefined)
      })
      yield* program.pipe(
        Effect.provide(ToolRegistry.layer(stubborn(end)).pipe(ToolRegistry.prefix("p_"))),
        Effect.provide(layer)
      )
      assert.deepStrictEqual(lines.map(({ message }) => message), [
        'tool "p_stubborn" goes on after it was interrupted'
      ])
    }))
})

describe("the class of a failure", () => {
  const classOf = (failure: Schema.Codec<unknown, unknown>, error: unknown) =>
    Effect.gen(function*() {
      const handler = () => Effect.fail(error) as Effect.Effect<never> // what its type would refuse
      const outcome = yield* Effect.provide(ask("t"), ToolRegistry.layer(Tool.make("t", { failure, handler })))
      return outcome._tag === "Failure" ? outcome.class : outcome._tag
    })

  it.effect("is not asked of what is no failure of the schema", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const failure = Down.pipe(Tool.failureClass((error) => {
        seen.push(error)
        return "transient"
      }))
      assert.strictEqual(yield* classOf(failure, "secret"), "semantic")
      assert.deepStrictEqual(seen, [])
    }).pipe(Effect.provide(quiet)))

  it.effect("is semantic where a function gives none of the four, or dies", () =>
    Effect.gen(function*() {
      const junk: unknown = "banana"
      const given = Down.pipe(Tool.failureClass(() => junk as "semantic"))
      assert.strictEqual(yield* classOf(given, new Down({ why: "x" })), "semantic")
      const dying = Down.pipe(Tool.failureClass(() => {
        throw new Error("no class")
      }))
      assert.strictEqual(yield* classOf(dying, new Down({ why: "x" })), "semantic")
    }).pipe(Effect.provide(quiet)))

  it.effect("is found below a check, and in what is suspended", () =>
    Effect.gen(function*() {
      const transient = Schema.String.pipe(Tool.failureClass("transient"))
      assert.strictEqual(yield* classOf(transient.check(Schema.isNonEmpty()), "busy"), "transient")
      assert.strictEqual(yield* classOf(Schema.suspend(() => transient), "busy"), "transient")
    }))
})

describe("a call whose own fiber is interrupted", () => {
  it.effect("has an outcome that says so, and the run and its siblings go on", () =>
    Effect.gen(function*() {
      const suicidal = Tool.make("suicidal", {
        handler: () => Effect.withFiber((fiber) => Fiber.interrupt(fiber)) as Effect.Effect<string>
      })
      const ok = Tool.make("fine", { handler: () => Effect.succeed("fine") })
      const result = yield* converse([suicidal, ok], [[call("suicidal"), call("fine")], "done"])
      assert.deepStrictEqual([result._tag, result.turns[0]?.outcomes], ["Completed", [
        { _tag: "Interrupted", stillRunning: false, reason: "the tool interrupted itself" },
        { _tag: "Success", value: "fine", writes: [] }
      ]])
    }))
})
