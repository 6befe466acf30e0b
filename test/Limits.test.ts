import { assert, describe, it } from "@effect/vitest"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Context from "toolfold/Context"
import * as Limits from "toolfold/limits/Limits"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { type Blames, type Body, Guards } from "../src/internal/guard.ts"
import { logged } from "./utils.ts"

const named = (name: string) => Tool.make(name, { handler: () => Effect.succeed(name) })
const weather = named("weather")

const guardsOf = (tool: WireTool.Any) => Services.get(tool.annotations, Guards)
const problemsOf = (tool: WireTool.Any) => guardsOf(tool).flatMap(({ problems }) => problems)

const always: Blames = () => true

/** The guards of a tool, the outermost first, made in the scope and among the services of the running effect. */
const guarded = (tool: WireTool.Any, blames: Blames = always) =>
  Effect.map(
    Effect.forEach(guardsOf(tool), (guard) => guard.make(tool.name, blames)),
    (guards) => (body: Body): Effect.Effect<unknown, unknown> =>
      guards.reduceRight((inner, guard) => guard(inner), body) as Effect.Effect<unknown, unknown> // bodies here need nothing
  )

/** What became of an attempt, in short: what it gave, what a guard said, or how it failed. */
const said = (attempt: Effect.Effect<unknown, unknown>): Effect.Effect<string> =>
  Effect.map(Effect.exit(attempt), (exit) => {
    if (Exit.isSuccess(exit)) return String(exit.value)
    const error = Cause.squash(exit.cause)
    return typeof error === "object" && error !== null && "_tag" in error && error._tag === "toolfold/Refusal"
      ? `refused: ${"message" in error ? error.message : ""}`
      : `failed: ${String(error)}`
  })

const body = Effect.succeed("sunny")
const down = Effect.fail("down")
const often = (most: string, again: number) =>
  `refused: The tool is called too often: at most ${most}. Try again in ${again} s.`
const resting = (again: number) => `refused: The tool is resting after repeated failures. Try again in ${again} s.`
const trying =
  "refused: The tool is resting after repeated failures, and another call is trying it out. Try again when that has ended."

/** Moves the clock once everything that can run has come to wait. */
const later = (duration: Duration.Input) => Effect.andThen(TestClock.adjust(0), TestClock.adjust(duration))

describe("Limits.rateLimit", () => {
  it.effect("lets a call that is too many wait until the window has passed", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(weather.pipe(Limits.rateLimit({ limit: 2, window: "1 minute" })))
      const times: Array<number> = []
      const attempt = limit(Effect.clockWith((clock) => Effect.map(clock.currentTimeMillis, (now) => times.push(now))))
      const all = yield* Effect.forkChild(Effect.all([attempt, attempt, attempt, attempt, attempt], {
        concurrency: "unbounded",
        discard: true
      }))
      yield* later("59999 millis")
      assert.deepStrictEqual(times, [0, 0])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(times, [0, 0, 60_000, 60_000])
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(all)
      assert.deepStrictEqual(times, [0, 0, 60_000, 60_000, 120_000])
    }))

  it.effect("lets calls through one by one with the token bucket", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(
        Limits.rateLimit(weather, { limit: 3, window: "3 seconds", algorithm: "token-bucket" })
      )
      const times: Array<number> = []
      const attempt = limit(Effect.clockWith((clock) => Effect.map(clock.currentTimeMillis, (now) => times.push(now))))
      const all = yield* Effect.forkChild(Effect.replicateEffect(attempt, 5))
      yield* later("1 second")
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(all)
      assert.deepStrictEqual(times, [0, 0, 0, 1000, 2000])
    }))

  it.effect("refuses a call that is too many and says when to try again, and keeps that word", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(
        weather.pipe(Limits.rateLimit({ limit: 10, window: "1 minute", onExceeded: "fail" }))
      )
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(limit(body)), 10), Array(10).fill("sunny"))
      assert.strictEqual(yield* said(limit(body)), often("10 calls in 60 s", 60))
      yield* TestClock.adjust("48500 millis")
      assert.strictEqual(yield* said(limit(body)), often("10 calls in 60 s", 12))
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual(yield* said(limit(body)), "sunny")
    }))

  it.effect("says a time that is true for token buckets, single calls and windows below a second", () =>
    Effect.gen(function*() {
      const bucket = yield* guarded(weather.pipe(
        Limits.rateLimit({ limit: 2, window: "1 minute", algorithm: "token-bucket", onExceeded: "fail" })
      ))
      yield* Effect.replicateEffect(bucket(body), 2)
      assert.strictEqual(yield* said(bucket(body)), often("2 calls in 60 s", 30))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(bucket(body)), 2), [
        "sunny",
        often("2 calls in 60 s", 30)
      ])
      const short = yield* guarded(named("short").pipe(Limits.rateLimit({ limit: 1, window: 250, onExceeded: "fail" })))
      yield* short(body)
      assert.strictEqual(yield* said(short(body)), often("1 call in 0.25 s", 1))
    }))

  it.effect("never waits or refuses early where a window does not divide evenly", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_790_000_000_123)
      const limit = yield* guarded(weather.pipe(Limits.rateLimit({ limit: 7, window: "1 second" })))
      // Nothing moves the clock: a call that waits, however shortly, would never end.
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(limit(body)), 7), Array(7).fill("sunny"))
    }))

  it.effect("counts by the name of the tool, by a key, and apart for each registry", () =>
    Effect.gen(function*() {
      const limit = Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" })
      const keyed = Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail", key: "api" })
      const registry = Effect.scoped(Effect.gen(function*() {
        const [a, b] = [yield* guarded(named("a").pipe(limit)), yield* guarded(named("b").pipe(limit))]
        const [c, d] = [yield* guarded(named("c").pipe(keyed)), yield* guarded(named("d").pipe(keyed))]
        return [yield* said(a(body)), yield* said(b(body)), yield* said(c(body)), yield* said(d(body))]
      }))
      const expected = ["sunny", "sunny", "sunny", often("1 call in 60 s", 60)]
      assert.deepStrictEqual(yield* registry, expected)
      assert.deepStrictEqual(yield* registry, expected)
    }))

  it.effect("counts several limits of one tool apart", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(weather.pipe(
        Limits.rateLimit({ limit: 3, window: "1 minute", onExceeded: "fail" }),
        Limits.rateLimit({ limit: 2, window: "1 second", onExceeded: "fail" })
      ))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(limit(body)), 3), [
        "sunny",
        "sunny",
        often("2 calls in 1 s", 1)
      ])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(limit(body)), 2), [
        "sunny",
        often("3 calls in 60 s", 59)
      ])
    }))

  it.effect("can be interrupted while a call waits, which has had its turn, and while its body runs", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute" })))
      const running = yield* Effect.forkChild(limit(Effect.never))
      const waiting = yield* Effect.forkChild(limit(body))
      const third = yield* Effect.forkChild(said(limit(body)))
      yield* TestClock.adjust(0)
      for (const fiber of [running, waiting]) {
        yield* Fiber.interrupt(fiber)
        const exit = yield* Fiber.await(fiber)
        assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      }
      yield* TestClock.adjust("119999 millis")
      assert.isUndefined(third.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(third), "sunny")
    }))

  it.effect("passes on how a body fails, also with the error of a limit of its own", () =>
    Effect.gen(function*() {
      const limit = yield* guarded(weather.pipe(Limits.rateLimit({ limit: 9, window: "1 minute" })))
      const own = new RateLimiter.RateLimiterError({
        reason: new RateLimiter.RateLimitExceeded({ key: "k", retryAfter: Duration.zero, limit: 1, remaining: 0 })
      })
      assert.deepStrictEqual(yield* Effect.exit(limit(Effect.fail(own))), Exit.fail(own))
      assert.deepStrictEqual(yield* Effect.exit(limit(Effect.die("bug"))), Exit.die("bug"))
    }))

  it.effect("counts in the store, or with the limiter, that is provided", () =>
    Effect.gen(function*() {
      const tool = weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" }))
      const registry = Effect.scoped(Effect.flatMap(guarded(tool), (limit) => said(limit(body))))
      const refusal = often("1 call in 60 s", 60)
      const stored = yield* Layer.build(Layer.fresh(RateLimiter.layerStoreMemory))
      const twice = Effect.all([registry, registry])
      assert.deepStrictEqual(yield* Effect.provideContext(twice, stored), ["sunny", refusal])
      const asked: Array<unknown> = []
      const counting = RateLimiter.RateLimiter.of({
        ...yield* Effect.provideContext(RateLimiter.make, stored),
        consume: (options) => {
          asked.push(options)
          return Effect.succeed({ delay: Duration.zero, limit: 1, remaining: 0, resetAfter: Duration.zero })
        }
      })
      assert.deepStrictEqual(
        yield* twice.pipe(
          Effect.provideService(RateLimiter.RateLimiter, counting),
          Effect.provideContext(stored)
        ),
        ["sunny", "sunny"]
      )
      const options = { algorithm: undefined, key: "weather", limit: 1, onExceeded: "fail", window: "1 minute" }
      assert.deepStrictEqual(asked, [options, options])
    }))

  it.effect("lets calls through when the store does not answer, and logs that", () => {
    const { layer, lines } = logged()
    const failing = new RateLimiter.RateLimiterError({
      reason: new RateLimiter.RateLimitStoreError({ message: "no connection" })
    })
    return Effect.gen(function*() {
      const stored = yield* RateLimiter.RateLimiterStore
      const limit = yield* Effect.provideService(
        guarded(weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" }))),
        RateLimiter.RateLimiterStore,
        { ...stored, fixedWindow: () => Effect.fail(failing) }
      )
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(limit(body)), 2), ["sunny", "sunny"])
      const warning = "Warn: the store of a rate limit does not answer"
      assert.deepStrictEqual(lines.map(({ level, message }) => `${level}: ${message}`), [warning, warning])
    }).pipe(Effect.provide([layer, RateLimiter.layerStoreMemory]))
  })
})

describe("Limits.breaker", () => {
  it.effect("opens after failures in a row, refuses with the time, tries one call, and closes", () =>
    Effect.gen(function*() {
      const breaker = yield* guarded(weather.pipe(Limits.breaker({ failures: 2, openFor: "30 seconds" })))
      let ran = 0
      const failing = breaker(Effect.suspend(() => Effect.fail(`down ${++ran}`)))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(failing), 3), [
        "failed: down 1",
        "failed: down 2",
        resting(30)
      ])
      yield* TestClock.adjust("29001 millis")
      assert.strictEqual(yield* said(failing), resting(1))
      yield* TestClock.adjust("999 millis")
      const probe = yield* Effect.forkChild(said(breaker(Effect.as(Effect.sleep("1 second"), "sunny"))))
      yield* TestClock.adjust(0)
      assert.strictEqual(yield* said(failing), trying)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(probe), "sunny")
      // It counts from zero again.
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(failing), 2), ["failed: down 3", "failed: down 4"])
      assert.strictEqual(ran, 4)
    }))

  it.effect("opens again when the call that tries it out fails, and not when that is interrupted", () =>
    Effect.gen(function*() {
      const breaker = yield* guarded(weather.pipe(Limits.breaker({ failures: 1, openFor: 10_000 })))
      yield* said(breaker(down))
      yield* TestClock.adjust("10 seconds")
      const probe = yield* Effect.forkChild(breaker(Effect.never))
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(probe)
      const exit = yield* Fiber.await(probe)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(breaker(down)), 2), ["failed: down", resting(10)])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(breaker(body)), 2), ["sunny", "sunny"])
    }))

  it.effect("opens after five failures for thirty seconds where nothing else is said", () =>
    Effect.gen(function*() {
      for (const tool of [Limits.breaker(weather), weather.pipe(Limits.breaker()), Limits.breaker({})(weather)]) {
        const breaker = yield* Effect.scoped(guarded(tool))
        assert.deepStrictEqual(yield* Effect.replicateEffect(said(breaker(down)), 6), [
          ...Array(5).fill("failed: down"),
          resting(30)
        ])
      }
    }))

  it.effect("counts what blames the dependency alone, asked with the cause; a success starts again", () =>
    Effect.gen(function*() {
      const causes: Array<unknown> = []
      const breaker = yield* guarded(weather.pipe(Limits.breaker({ failures: 2 })), (failed) => {
        causes.push(failed)
        return !Cause.isCause(failed) || Cause.squash(failed) !== "mistake"
      })
      const mistake = Effect.fail("mistake")
      const calls = [down, mistake, mistake, body, down, Effect.interrupt, mistake, Effect.die("bug"), body]
      assert.deepStrictEqual(yield* Effect.forEach(calls, (call) => said(breaker(call))), [
        "failed: down",
        "failed: mistake",
        "failed: mistake",
        "sunny",
        "failed: down",
        "failed: Error: All fibers interrupted without error",
        "failed: mistake",
        "failed: bug",
        resting(30)
      ])
      assert.deepStrictEqual(causes, [
        Cause.fail("down"),
        Cause.fail("mistake"),
        Cause.fail("mistake"),
        Cause.fail("down"),
        Cause.fail("mistake"),
        Cause.die("bug")
      ])
    }))

  it.effect("passes on how a body fails, also with the error of a breaker of its own", () =>
    Effect.gen(function*() {
      const breaker = yield* guarded(weather.pipe(Limits.breaker({ failures: 2 })))
      const own = new CircuitBreaker.CircuitBreakerError({
        reason: new CircuitBreaker.CircuitOpen({ key: "k", retryAfter: Duration.zero })
      })
      assert.deepStrictEqual(yield* Effect.exit(breaker(Effect.fail(own))), Exit.fail(own))
    }))

  it.effect("rests for each tool and each registry apart, or as the store that is provided says", () =>
    Effect.gen(function*() {
      const one = Limits.breaker({ failures: 1 })
      const registry = Effect.scoped(Effect.gen(function*() {
        const [a, b] = [yield* guarded(named("a").pipe(one)), yield* guarded(named("b").pipe(one))]
        return [yield* said(a(down)), yield* said(a(down)), yield* said(b(down))]
      }))
      const apart = ["failed: down", resting(30), "failed: down"]
      assert.deepStrictEqual(yield* Effect.all([registry, registry]), [apart, apart])
      const stored = yield* Layer.build(CircuitBreaker.layerStoreMemory())
      assert.deepStrictEqual(yield* Effect.provideContext(Effect.all([registry, registry]), stored), [
        apart,
        [resting(30), resting(30), resting(30)]
      ])
      const state = yield* Services.get(stored, CircuitBreaker.CircuitBreakerStore).state("a")
      assert.deepStrictEqual(state, {
        _tag: "Open",
        key: "a",
        retryAfter: Duration.seconds(30),
        consecutiveOpenings: 1
      })
    }))
})

describe("limits together", () => {
  const limit = Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" })
  const breaker = Limits.breaker({ failures: 1, openFor: "2 minutes" })

  it.effect("ask the latest first: what the breaker refuses takes nothing of the limit", () =>
    Effect.gen(function*() {
      const inner = yield* guarded(weather.pipe(limit, breaker))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(inner(down)), 2), ["failed: down", resting(120)])
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(yield* said(inner(body)), resting(60))
      yield* TestClock.adjust("60 seconds")
      // The limit has been free for a minute.
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(inner(body)), 2), [
        "sunny",
        often("1 call in 60 s", 60)
      ])
      const outer = yield* guarded(named("outer").pipe(breaker, limit))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(outer(down)), 2), [
        "failed: down",
        often("1 call in 60 s", 60)
      ])
    }))

  it.effect("do not blame the dependency for a refusal, nor close the breaker for it", () =>
    Effect.gen(function*() {
      const both = yield* guarded(weather.pipe(limit, Limits.breaker({ failures: 1, openFor: "10 seconds" })))
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(both(body)), 3), [
        "sunny",
        often("1 call in 60 s", 60),
        often("1 call in 60 s", 60)
      ])
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(yield* said(both(down)), "failed: down")
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* said(both(body)), often("1 call in 60 s", 50))
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual(yield* Effect.replicateEffect(said(both(down)), 2), ["failed: down", resting(10)])
    }))
})

describe("illegal options", () => {
  const rate = (options: object) =>
    problemsOf(Limits.rateLimit(weather, { limit: 1, window: 1, ...options } as Limits.RateLimitOptions))
  const breaker = (options: object) => problemsOf(Limits.breaker(weather, options as Limits.BreakerOptions))

  it("are problems of the guard, and do not throw", () => {
    assert.deepStrictEqual(rate({ window: -1 }), ["rateLimit: window must be a positive finite duration, got -1"])
    assert.deepStrictEqual(
      [0, Infinity, Number.NaN, "soon", { seconds: -1 }, undefined, null].flatMap((window) => rate({ window })),
      ["0", "Infinity", "NaN", '"soon"', "an object with seconds", "undefined", "null"].map((got) =>
        `rateLimit: window must be a positive finite duration, got ${got}`
      )
    )
    assert.deepStrictEqual(
      [0, -1, 1.5, Infinity, Number.NaN, "10", undefined].flatMap((limit) => rate({ limit })),
      ["0", "-1", "1.5", "Infinity", "NaN", '"10"', "undefined"].map((got) =>
        `rateLimit: limit must be a positive whole number, got ${got}`
      )
    )
    assert.deepStrictEqual(rate({ limit: 0, window: "", algorithm: "leaky", onExceeded: "wait", key: "", per: 1 }), [
      'rateLimit: unknown option "per"; known: limit, window, algorithm, onExceeded, key',
      "rateLimit: limit must be a positive whole number, got 0",
      'rateLimit: window must be a positive finite duration, got ""',
      'rateLimit: algorithm must be fixed-window or token-bucket, got "leaky"',
      'rateLimit: onExceeded must be delay or fail, got "wait"',
      'rateLimit: key must be a text that is not empty, got ""'
    ])
    assert.deepStrictEqual(breaker({ failures: 0, openFor: "forever", key: "x" }), [
      'breaker: unknown option "key"; known: failures, openFor',
      "breaker: failures must be a positive whole number, got 0",
      'breaker: openFor must be a positive finite duration, got "forever"'
    ])
    assert.deepStrictEqual(breaker({ openFor: Duration.infinity }), [
      "breaker: openFor must be a positive finite duration, got Infinity"
    ])
    assert.deepStrictEqual(rate({ limit: 1, window: Duration.minutes(1), algorithm: undefined, key: "k" }), [])
    assert.deepStrictEqual(breaker({}), [])
  })
})

describe("a registry of limited tools", () => {
  const Offline = Schema.Struct({ offline: Schema.String })
  const flaky = Tool.make("flaky", {
    input: { fail: Schema.Literals(["no", "failure", "defect"]) },
    failure: Offline,
    retry: true,
    handler: ({ fail }) =>
      fail === "no" ? Effect.succeed("up") : fail === "failure" ? Effect.fail({ offline: "x" }) : Effect.die("bug")
  })

  const answer = (registry: ToolRegistry.Registry, name: string, params: unknown = {}) =>
    registry.answer(Turn.call({ id: "1", name, params }), Context.callScope())

  const limited = (message: string): Turn.Outcome => ({ _tag: "Failure", kind: "limit", class: "transient", message })
  const success = (value: string): Turn.Outcome => ({ _tag: "Success", value, writes: [] })
  const tooOften = limited("The tool is called too often: at most 1 call in 60 s. Try again in 60 s.")

  it.effect("shares a limit between runs, and tells the model when to try again", () =>
    Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      const runs = yield* Effect.all([answer(registry, "weather"), answer(registry, "weather")], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(runs, [success("weather"), tooOften])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* answer(registry, "weather"), success("weather"))
    }).pipe(
      Effect.provide(ToolRegistry.layer(
        weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" }))
      ))
    ))

  it.effect("shares a limit between tools of one key, and not with another registry", () => {
    const limit = Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail", key: "api" })
    const both = Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      return [yield* answer(registry, "a"), yield* answer(registry, "b")]
    })
    const layer = ToolRegistry.layer(named("a").pipe(limit), named("b").pipe(limit))
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* Effect.provide(both, Layer.fresh(layer)), [success("a"), tooOften])
      assert.deepStrictEqual(yield* Effect.provide(both, Layer.fresh(layer)), [success("a"), tooOften])
    })
  })

  it.effect("delays a call on the clock", () =>
    Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      yield* answer(registry, "weather")
      const second = yield* Effect.forkChild(answer(registry, "weather"))
      yield* later("59 seconds")
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(second), success("weather"))
    }).pipe(Effect.provide(ToolRegistry.layer(weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute" }))))))

  it.effect("lets a tool rest after defects, not after mistakes of the model, and never tries a refusal again", () => {
    const { layer } = logged()
    return Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      const kinds: Array<unknown> = []
      for (const fail of ["defect", "failure", "failure", "gone", "defect"]) {
        const outcome = yield* answer(registry, "flaky", { fail })
        kinds.push(outcome._tag === "Failure" ? outcome.kind : outcome)
      }
      assert.deepStrictEqual(kinds, ["defect", "failure", "failure", "invalid-input", "defect"])
      assert.deepStrictEqual(
        yield* answer(registry, "flaky", { fail: "no" }),
        limited("The tool is resting after repeated failures. Try again in 30 s.")
      )
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* answer(registry, "flaky", { fail: "no" }), success("up"))
    }).pipe(
      Effect.provide(ToolRegistry.layer(flaky.pipe(Limits.breaker({ failures: 2 })))),
      Effect.provide(layer)
    )
  })

  it.effect("keeps its counts in a store that its layer is provided with", () =>
    Effect.gen(function*() {
      const layer = Layer.fresh(ToolRegistry.layer(
        weather.pipe(Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" }))
      ))
      const once = Effect.flatMap(ToolRegistry.ToolRegistry, (registry) => answer(registry, "weather"))
      const store = Layer.succeedContext(yield* Layer.build(RateLimiter.layerStoreMemory))
      assert.deepStrictEqual(yield* Effect.provide(once, Layer.provide(layer, store)), success("weather"))
      assert.deepStrictEqual(yield* Effect.provide(once, Layer.provide(layer, store)), tooOften)
    }))

  it.effect("limits tools of a toolkit of effect/ai", () => {
    const theirs = Limits.rateLimit(WireTool.make("theirs", { success: Schema.String }), {
      limit: 1,
      window: "1 minute",
      onExceeded: "fail"
    })
    const kit = Toolkit.make(theirs)
    return Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      assert.deepStrictEqual(yield* answer(registry, "theirs"), success("x"))
      assert.deepStrictEqual(yield* answer(registry, "theirs"), tooOften)
    }).pipe(
      Effect.provide(ToolRegistry.fromToolkit(kit)),
      Effect.provide(kit.toLayer({ theirs: () => Effect.succeed("x") }))
    )
  })

  it.effect("is refused where a limit is illegal", () =>
    Effect.gen(function*() {
      const tool = weather.pipe(Limits.rateLimit({ limit: 1, window: -1 }), Limits.breaker({ failures: 0 }))
      const error = yield* Effect.flip(Layer.build(ToolRegistry.layer(tool)))
      assert.deepStrictEqual(error.problems, [
        'tool "weather": breaker: failures must be a positive whole number, got 0',
        'tool "weather": rateLimit: window must be a positive finite duration, got -1'
      ])
    }))
})
