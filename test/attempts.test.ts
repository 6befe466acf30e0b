import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { converse, logged } from "./utils.ts"

class Trip extends Context.Slots<Trip>()("app/Trip", { notes: Context.list(Schema.String) }) {}

class Down extends Schema.TaggedError<Down>()("Down", { why: Schema.String }) {}

const Flaky = Down.pipe(Tool.failureClass("transient"))

const timedOut = (after: string, stillRunning = false): Turn.Outcome => ({
  _tag: "Failure",
  kind: "timeout",
  class: "transient",
  message: stillRunning
    ? `The tool did not answer within ${after}; its work may still be going on, so its effect is unknown.`
    : `The tool did not answer within ${after} and was stopped. Whether it took effect is unknown.`,
  stillRunning
})

const succeeded = (value: unknown, ...notes: ReadonlyArray<string>): Turn.Outcome => ({
  _tag: "Success",
  value,
  writes: notes.map((note) => ({ slots: "app/Trip", values: { notes: [note] } }))
})

const ask = (name: string, params: unknown = {}, scope = Context.callScope()) =>
  Effect.flatMap(ToolRegistry.ToolRegistry, (registry) => registry.answer(Turn.call({ id: name, name, params }), scope))

/** An effect with what it logs. */
const withLog = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const { layer, lines } = logged()
  return Effect.map(Effect.provide(effect, layer), (value) => [value, lines] as const)
}

/** A body that waits for ever and counts its finalizers. */
const endless = () => {
  const seen = { started: 0, finalized: 0 }
  const body = Effect.suspend(() => {
    seen.started++
    return Effect.ensuring(Effect.never, Effect.sync(() => seen.finalized++))
  })
  return { seen, body }
}

describe("a timeout", () => {
  it.effect("SPEC-64, CON-03 ends the body, runs its finalizers, and its writes never land", () =>
    Effect.gen(function*() {
      const { body, seen } = endless()
      const slow = Tool.make("slow", {
        timeout: "5 seconds",
        handler: () =>
          Effect.gen(function*() {
            yield* (yield* Trip).write({ notes: ["too early"] })
            return yield* body
          })
      })
      const scope = Context.callScope()
      const fiber = yield* Effect.forkChild(Effect.provide(ask("slow", {}, scope), ToolRegistry.layer(slow)))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), timedOut("5s"))
      assert.deepStrictEqual(seen, { started: 1, finalized: 1 })
      assert.deepStrictEqual(scope.writes, [])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-65 does nothing to a body that ends in time", () =>
    Effect.gen(function*() {
      const tool = Tool.make("quick", {
        timeout: "5 seconds",
        handler: () =>
          Effect.gen(function*() {
            yield* Effect.sleep("1 second")
            yield* (yield* Trip).write({ notes: ["in time"] })
            return "done"
          })
      })
      const fiber = yield* Effect.forkChild(Effect.provide(ask("quick"), ToolRegistry.layer(tool)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), succeeded("done", "in time"))
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-66, SPEC-67 is the tool's, else the agent's, else the registry's, else there is none", () =>
    Effect.gen(function*() {
      const plain = Tool.make("plain", { handler: () => Effect.never })
      const own = Tool.make("own", { timeout: "1 second", handler: () => Effect.never })
      const of = (it: ToolRegistry.Registry) => [
        it.timeout("own"),
        it.effectiveTimeout("own"),
        it.timeout("plain"),
        it.effectiveTimeout("plain"),
        it.effectiveTimeout("unknown")
      ]
      const bare = yield* Effect.provide(ToolRegistry.ToolRegistry, ToolRegistry.layer(plain, own))
      const second = Duration.seconds(1)
      assert.deepStrictEqual(of(bare), [second, second, undefined, undefined, undefined])
      const timed = yield* Effect.provide(
        ToolRegistry.ToolRegistry,
        ToolRegistry.layer(plain, own).pipe(ToolRegistry.defaultTimeout("3 seconds"))
      )
      assert.deepStrictEqual(of(timed), [second, second, undefined, Duration.seconds(3), undefined])

      const run = (timeout: Duration.Input | undefined) =>
        AgentLoop.run(AgentLoop.make("bot", { timeout }), { prompt: "go" }).pipe(
          Effect.provide(ToolRegistry.layer(plain, own).pipe(ToolRegistry.defaultTimeout("3 seconds"))),
          Effect.provide(ScriptedModel.layer([ScriptedModel.call("plain", {}), ScriptedModel.call("own", {})], "done"))
        )
      for (const [timeout, after] of [["2 seconds", "2s"], [undefined, "3s"]] as const) {
        const fiber = yield* Effect.forkChild(run(timeout))
        yield* TestClock.adjust("3 seconds")
        const { turns } = yield* Fiber.join(fiber)
        assert.deepStrictEqual(turns[0]?.outcomes, [timedOut(after), timedOut("1s")])
      }
    }))

  it.effect("SPEC-70 of one call of a batch leaves its siblings as they are", () =>
    Effect.gen(function*() {
      const slow = Tool.make("slow", { timeout: "1 second", handler: () => Effect.never })
      const note = Tool.make("note", {
        input: { text: Schema.String },
        handler: ({ text }) => Effect.flatMap(Trip, (trip) => Effect.as(trip.write({ notes: [text] }), text))
      })
      const fiber = yield* Effect.forkChild(converse([slow, note], [
        [
          ScriptedModel.call("note", { text: "a" }),
          ScriptedModel.call("slow", {}),
          ScriptedModel.call("note", { text: "b" })
        ],
        "done"
      ]))
      yield* TestClock.adjust("1 second")
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual(result.turns[0]?.outcomes, [succeeded("a", "a"), timedOut("1s"), succeeded("b", "b")])
      assert.deepStrictEqual(Trip.from(result.context), { notes: ["a", "b"] })
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-72 leaves what a body fails or dies with as it is", () =>
    Effect.gen(function*() {
      const thrown = new Error("the very one")
      const dies = Tool.make("dies", { timeout: "1 second", handler: () => Effect.die(thrown) })
      const fails = Tool.make("fails", {
        timeout: "1 second",
        failure: Down,
        handler: () => Effect.fail(new Down({ why: "x" }))
      })
      const [outcome, log] = yield* withLog(Effect.provide(ask("dies"), ToolRegistry.layer(dies)))
      assert.strictEqual(outcome._tag === "Failure" && outcome.kind, "defect")
      assert.isTrue(log.some(({ cause }) => cause.includes("the very one")))
      assert.deepStrictEqual(yield* Effect.provide(ask("fails"), ToolRegistry.layer(fails)), {
        _tag: "Failure",
        kind: "failure",
        class: "semantic",
        message: '{"_tag":"Down","why":"x"}'
      })
    }))

  it.effect("SPEC-68 does not count what stands around a call, such as somebody's slow yes", () =>
    Effect.gen(function*() {
      const quick = Tool.make("quick", {
        timeout: "1 second",
        handler: () => Effect.delay(Effect.succeed("in time"), "900 millis")
      })
      const slow = ToolRegistry.around((_, next) => Effect.delay(next, "1 hour"))
      const fiber = yield* Effect.forkChild(Effect.provide(ask("quick"), ToolRegistry.layer(quick).pipe(slow)))
      yield* TestClock.adjust("2 hours")
      assert.deepStrictEqual(yield* Fiber.join(fiber), succeeded("in time"))
    }))

  it.effect("SPEC-71, CON-03 says of a body that cannot be stopped that it goes on, and drops what it writes then", () =>
    Effect.gen(function*() {
      const end = yield* Deferred.make<void>()
      const wrote = yield* Deferred.make<void>()
      const stubborn = Tool.make("stubborn", {
        timeout: "1 second",
        handler: () =>
          Effect.uninterruptible(Effect.gen(function*() {
            yield* Deferred.await(end)
            yield* (yield* Trip).write({ notes: ["late"] })
            yield* Deferred.succeed(wrote, undefined)
            return "late"
          }))
      })
      const scope = Context.callScope()
      const program = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(ask("stubborn", {}, scope))
        yield* TestClock.adjust("1 second")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(yield* Fiber.join(fiber), timedOut("1s", true))
        yield* Deferred.succeed(end, undefined)
        yield* Deferred.await(wrote)
      })
      const [, log] = yield* withLog(Effect.provide(program, ToolRegistry.layer(stubborn)))
      assert.deepStrictEqual(scope.writes, [])
      assert.deepStrictEqual(log.map(({ message }) => message), [
        'tool "stubborn" goes on after it was interrupted',
        "write to app/Trip after its call was answered: dropped"
      ])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("leaves stragglers to the registry, whose end waits for them", () =>
    Effect.gen(function*() {
      const end = yield* Deferred.make<void>()
      const stubborn = Tool.make("stubborn", {
        timeout: "1 second",
        handler: () => Effect.uninterruptible(Effect.as(Deferred.await(end), "late"))
      })
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(ToolRegistry.layer(stubborn), scope)
      const fiber = yield* Effect.forkChild(Effect.provide(ask("stubborn"), services))
      yield* TestClock.adjust("1100 millis")
      yield* Fiber.join(fiber)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* Effect.yieldNow
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(closing)
    }))

  it.effect("of a foreign promise aborts its signal, and says whether it settled in its grace", () =>
    Effect.gen(function*() {
      const settles = Tool.make("settles", {
        timeout: "1 second",
        handler: () =>
          Tool.promise((signal) =>
            new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))))
          )
      })
      const ignores = Tool.make("ignores", {
        timeout: "1 second",
        handler: () => Tool.promise(() => new Promise<string>(() => {}))
      })
      const program = Effect.gen(function*() {
        const one = yield* Effect.forkChild(ask("settles"))
        const other = yield* Effect.forkChild(ask("ignores"))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(one), timedOut("1s"))
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(yield* Fiber.join(other), timedOut("1s", true))
      })
      yield* withLog(Effect.provide(program, ToolRegistry.layer(settles, ignores)))
    }))

  it.effect("CON-03 of foreign promises drops what they come to and write afterwards, also where they are rejected", () =>
    Effect.gen(function*() {
      const later = () => ({ answer: Promise.withResolvers<string>(), written: Promise.withResolvers<void>() })
      const late = { resolved: later(), rejected: later() }
      const tool = (name: keyof typeof late) =>
        Tool.make(name, {
          timeout: "1 second",
          handler: () =>
            Effect.gen(function*() {
              const trip = yield* Trip
              const context = yield* Effect.context()
              const scope = yield* Context.CurrentCall
              yield* trip.write({ notes: [`${name} too early`] })
              const write = Effect.provideService(trip.write({ notes: [`${name} late`] }), Context.CurrentCall, scope)
              const { answer, written } = late[name]
              const value = yield* Tool.promise(() =>
                answer.promise.finally(() => Effect.runPromiseWith(context)(write).then(written.resolve))
              )
              yield* trip.write({ notes: [`${name} never`] })
              return value
            })
        })
      const note = Tool.make("note", {
        handler: () => Effect.flatMap(Trip, (trip) => Effect.as(trip.write({ notes: ["fine"] }), "noted"))
      })
      const unhandled: Array<unknown> = []
      const listen = (reason: unknown) => void unhandled.push(reason)
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("unhandledRejection", listen)),
        () => Effect.sync(() => process.off("unhandledRejection", listen))
      )
      const fiber = yield* Effect.forkChild(
        withLog(converse([tool("resolved"), tool("rejected"), note], [
          [ScriptedModel.call("resolved"), ScriptedModel.call("note"), ScriptedModel.call("rejected")],
          {
            says: ["done"],
            after: Effect.promise(async () => {
              late.resolved.answer.resolve("late")
              late.rejected.answer.reject(new Error("late"))
              await Promise.all([late.resolved.written.promise, late.rejected.written.promise])
              // A rejection that nobody handles is reported once the microtasks are over.
              await new Promise(setImmediate)
            })
          }
        ]))
      )
      yield* TestClock.adjust("2 seconds")
      const [result, log] = yield* Fiber.join(fiber)
      assert.deepStrictEqual(result.turns[0]?.outcomes, [
        timedOut("1s", true),
        succeeded("noted", "fine"),
        timedOut("1s", true)
      ])
      assert.deepStrictEqual(Trip.from(result.context), { notes: ["fine"] })
      assert.deepStrictEqual(unhandled, [])
      assert.deepStrictEqual(log.map(({ message }) => message).toSorted(), [
        'tool "rejected" goes on after it was interrupted',
        'tool "resolved" goes on after it was interrupted',
        "write to app/Trip after its call was answered: dropped",
        "write to app/Trip after its call was answered: dropped"
      ])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("CON-04 of nothing: a cancelled run interrupts its bodies, and says what goes on", () =>
    Effect.gen(function*() {
      const { body, seen } = endless()
      let aborted = false
      const native = Tool.make("native", { handler: () => body })
      const timed = Tool.make("timed", { timeout: "1 hour", handler: () => body })
      const foreign = Tool.make("foreign", {
        handler: () =>
          Tool.promise((signal) => {
            signal.addEventListener("abort", () => {
              aborted = true
            })
            return new Promise<string>(() => {})
          })
      })
      const program = Effect.gen(function*() {
        const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go" })
        yield* TestClock.adjust(0)
        const cancelling = yield* Effect.forkChild(handle.cancel)
        yield* TestClock.adjust("100 millis")
        return yield* Fiber.join(cancelling)
      })
      const result = yield* Effect.scoped(program).pipe(
        Effect.provide(ToolRegistry.layer(native, timed, foreign)),
        Effect.provide(ScriptedModel.layer(
          [ScriptedModel.call("native", {}), ScriptedModel.call("timed", {}), ScriptedModel.call("foreign", {})]
        ))
      )
      const cut = (stillRunning: boolean): Turn.Outcome => ({
        _tag: "Interrupted",
        stillRunning,
        reason: "the run ended while it ran, so whether it took effect is unknown"
      })
      assert.deepStrictEqual(result.turns[0]?.outcomes, [cut(false), cut(false), cut(true)])
      assert.deepStrictEqual([seen, aborted], [{ started: 2, finalized: 2 }, true])
    }))

  it.live("ends 1,000 bodies that never end, and leaves nothing behind that keeps a program alive", () =>
    Effect.gen(function*() {
      const program = ["--conditions=@toolfold/source", "test/programs/endless.ts"]
      const { stdout } = yield* Effect.promise(() => promisify(execFile)(process.execPath, program))
      assert.deepStrictEqual(JSON.parse(stdout), { timedOut: 1_000, finalized: 1_000, handles: 0 })
    }))
})

describe("a retry", () => {
  const failing = (
    times: number,
    failure: typeof Flaky | typeof Down,
    options: Pick<Tool.Options, "retry" | "timeout">
  ) => {
    const tries = { count: 0 }
    const tool = Tool.make("flaky", {
      ...options,
      failure,
      handler: () =>
        Effect.gen(function*() {
          tries.count++
          yield* (yield* Trip).write({ notes: [`try ${tries.count}`] })
          return tries.count <= times ? yield* Effect.fail(new Down({ why: "busy" })) : "done"
        })
    })
    return { tries, tool }
  }
  const busy = (failureClass: Turn.Failure["class"]): Turn.Outcome => ({
    _tag: "Failure",
    kind: "failure",
    class: failureClass,
    message: '{"_tag":"Down","why":"busy"}'
  })
  const after = ({ tool }: ReturnType<typeof failing>) =>
    Effect.gen(function*() {
      const scope = Context.callScope()
      const fiber = yield* Effect.forkChild(Effect.provide(ask("flaky", {}, scope), ToolRegistry.layer(tool)))
      yield* TestClock.adjust("1 minute")
      return { outcome: yield* Fiber.join(fiber), attempts: scope.attempts }
    })

  it.effect("SPEC-58 tries a transient failure again, each time with an empty buffer of writes", () =>
    Effect.gen(function*() {
      const flaky = failing(2, Flaky, { retry: Schedule.recurs(3) })
      assert.deepStrictEqual(yield* after(flaky), { outcome: succeeded("done", "try 3"), attempts: 3 })
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-59 ends with the last failure when its schedule does", () =>
    Effect.gen(function*() {
      const flaky = failing(9, Flaky, { retry: Schedule.recurs(2) })
      assert.deepStrictEqual(yield* after(flaky), { outcome: busy("transient"), attempts: 3 })
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-60, RET-03 is neither made where none is declared, nor for what time cannot put right", () =>
    Effect.gen(function*() {
      const undeclared = failing(9, Flaky, {})
      assert.deepStrictEqual(yield* after(undeclared), { outcome: busy("transient"), attempts: 1 })
      const semantic = failing(9, Down, { retry: true })
      assert.deepStrictEqual(yield* after(semantic), { outcome: busy("semantic"), attempts: 1 })
      let ran = 0
      const dies = Tool.make("dies", { retry: true, handler: () => Effect.suspend(() => Effect.die(++ran)) })
      yield* withLog(Effect.provide(ask("dies"), ToolRegistry.layer(dies)))
      const unfit = Tool.make("unfit", {
        retry: true,
        input: { n: Schema.Finite },
        handler: () => Effect.sync(() => `${++ran}`)
      })
      yield* Effect.provide(ask("unfit", {}), ToolRegistry.layer(unfit))
      assert.strictEqual(ran, 1)
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("that is `true` waits 200 ms, then 400 ms, and tries no more", () =>
    Effect.gen(function*() {
      const { tool, tries } = failing(9, Flaky, { retry: true })
      const fiber = yield* Effect.forkChild(Effect.provide(ask("flaky"), ToolRegistry.layer(tool)))
      const seen: Array<number> = []
      for (const millis of [0, 199, 1, 399, 1, 60_000]) {
        yield* TestClock.adjust(millis)
        seen.push(tries.count)
      }
      assert.deepStrictEqual(seen, [1, 1, 2, 2, 3, 3])
      assert.deepStrictEqual(yield* Fiber.join(fiber), busy("transient"))
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("SPEC-69 follows a timeout, and every attempt has its own time", () =>
    Effect.gen(function*() {
      let tries = 0
      const tool = Tool.make("slow", {
        timeout: "1 second",
        retry: Schedule.recurs(2),
        handler: () =>
          Effect.suspend(() => ++tries < 3 ? Effect.never : Effect.delay(Effect.succeed("third"), "900 millis"))
      })
      const fiber = yield* Effect.forkChild(Effect.provide(ask("slow"), ToolRegistry.layer(tool)))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), succeeded("third"))
    }))

  it.effect("shows in events how often a body was tried, and not to the model", () =>
    Effect.gen(function*() {
      const { tool } = failing(1, Flaky, { retry: Schedule.recurs(1) })
      const attempts: Array<number> = []
      const all = yield* Stream.runCollect(AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go" })).pipe(
        Effect.provide(ToolRegistry.layer(tool)),
        Effect.provide(ScriptedModel.layer([ScriptedModel.call("flaky", {})], "done"))
      )
      for (const event of all) if (event._tag === "CallEnd") attempts.push(event.attempts)
      assert.deepStrictEqual(attempts, [2])
      const end = all.at(-1)
      assert.deepStrictEqual(end?._tag === "Result" && end.result.turns[0]?.outcomes, [succeeded("done", "try 2")])
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("has a span for each attempt where a tracer listens", () =>
    Effect.gen(function*() {
      const spans: Array<readonly [string, unknown, string]> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          const end = span.end.bind(span)
          span.end = (at, exit) => {
            end(at, exit)
            spans.push([span.name, Object.fromEntries(span.attributes), exit._tag])
          }
          return span
        }
      })
      const { tool } = failing(1, Flaky, { retry: Schedule.recurs(1) })
      yield* Effect.withTracer(Effect.provide(ask("flaky"), ToolRegistry.layer(tool)), tracer)
      assert.deepStrictEqual(spans, [
        ["tool attempt", { tool: "flaky", attempt: 1 }, "Failure"],
        ["tool attempt", { tool: "flaky", attempt: 2 }, "Success"]
      ])
    }).pipe(Effect.provide(Trip.layer)))
})
