/**
 * How often may a tool be called, and when does it rest? A rate limit and a circuit breaker, on effect's own.
 *
 * Both are combinators of a tool, made once for each registry and shared by all of its runs. They stand around each
 * attempt of the body, so that a retry counts like a call; the tool called as a plain function knows nothing of them. A
 * call that they refuse has the outcome `limit`, of class `transient`, whose message tells the model when to try again.
 *
 * The latest combinator is the outermost: in `tool.pipe(Limits.rateLimit(a), Limits.breaker(b))` a call asks the breaker
 * first, and one that the breaker refuses takes nothing of the limit. Several limits of one tool are one inside the other,
 * each with its own count.
 *
 * The counts are in the memory of the registry, and go by `Clock`. Where the registry's layer is provided with effect's
 * `RateLimiter`, `RateLimiterStore` or `CircuitBreakerStore`, they are there: in Redis, say, for all processes. Their key
 * is the tool's name. A store that does not answer lets the call through and logs that.
 *
 * @since 0.1.0
 */
import * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Guard from "../internal/guard.ts"
import * as Legal from "../internal/legal.ts"
import * as Log from "../internal/log.ts"

/**
 * How often a tool may be called.
 *
 * @category models
 * @since 0.1.0
 */
export interface RateLimitOptions {
  /** How many calls in a window: an integer of at least 1. */
  readonly limit: number
  /** How long a window is; a number is milliseconds. Positive and finite, counted in whole milliseconds. */
  readonly window: Duration.Input
  /**
   * How it is counted. `fixed-window`: a window's calls may come all at once, and then the window has to pass.
   * `token-bucket`: calls come back one by one, evenly over the window. Default: `fixed-window`.
   */
  readonly algorithm?: "fixed-window" | "token-bucket" | undefined
  /**
   * What becomes of a call that is too many. `delay`: it waits for its turn, and keeps it when it is interrupted while it
   * waits. `fail`: it is refused at once, and takes nothing of the limit. Default: `delay`.
   */
  readonly onExceeded?: "delay" | "fail" | undefined
  /**
   * What is counted: the tools of one registry that have one key share one limit, and should declare the same. In a store
   * that is provided it is the key there. Default: the tool's name as it was declared, without a registry's prefix; with
   * `#2` after it for its second limit, and so on.
   */
  readonly key?: string | undefined
}

/**
 * When a tool rests, and for how long.
 *
 * @category models
 * @since 0.1.0
 */
export interface BreakerOptions {
  /** After how many failures in a row: an integer of at least 1. Default: 5. */
  readonly failures?: number | undefined
  /** How long it rests; a number is milliseconds. Positive and finite. Default: 30 seconds. */
  readonly openFor?: Duration.Input | undefined
}

/**
 * Limits how often a tool is called. A call that is too many waits, or is refused.
 *
 * Options that are illegal are refused where a registry is assembled.
 *
 * **Example** (One call a minute)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Context from "toolfold/Context"
 * import * as Limits from "toolfold/limits/Limits"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 * import * as Turn from "toolfold/Turn"
 *
 * const getWeather = Tool.make("getWeather", { handler: () => Effect.succeed("sunny") }).pipe(
 *   Limits.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" })
 * )
 *
 * const ask = Effect.gen(function*() {
 *   const registry = yield* ToolRegistry.ToolRegistry
 *   const outcome = yield* registry.answer(Turn.call({ id: "1", name: "getWeather", params: {} }), Context.callScope())
 *   return outcome._tag === "Failure" ? outcome.message : outcome._tag
 * })
 * const twice = Effect.all([ask, ask]).pipe(Effect.provide(ToolRegistry.layer(getWeather)))
 *
 * const [first, second] = await Effect.runPromise(twice)
 * first // => "Success"
 * second // => "The tool is called too often: at most 1 call in 60 s. Try again in 60 s."
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const rateLimit: {
  (options: RateLimitOptions): <T extends WireTool.Any>(self: T) => T
  <T extends WireTool.Any>(self: T, options: RateLimitOptions): T
} = dual(2, (self: WireTool.Any, options: RateLimitOptions) => {
  const { algorithm, key, limit, onExceeded = "delay", window } = options
  return add(self, {
    by: "rateLimit",
    wrong: [
      ...unknownOptions(options, ["limit", "window", "algorithm", "onExceeded", "key"]),
      ...Legal.countProblem("limit", limit),
      ...Legal.durationProblem("window", window),
      ...oneOf("algorithm", algorithm, ["fixed-window", "token-bucket"]),
      ...oneOf("onExceeded", onExceeded, ["delay", "fail"]),
      ...(key === undefined || (typeof key === "string" && key !== "")
        ? []
        : [`key must be a text that is not empty, got ${Legal.shown(key)}`])
    ],
    make: (own) =>
      Effect.map(limiter, (limiter) => {
        const often = `at most ${limit} ${limit === 1 ? "call" : "calls"} in ${seconds(Duration.toMillis(window))}`
        const turn = Effect.suspend(() => limiter.consume({ algorithm, key: key ?? own, limit, onExceeded, window }))
          .pipe(
            Effect.map(({ delay }) => delay),
            Effect.catchReason("RateLimiterError", "RateLimitExceeded", ({ retryAfter }) =>
              Effect.fail(new Guard.Refusal(`The tool is called too often: ${often}. ${again(retryAfter)}`))),
            Effect.catchTag("RateLimiterError", (error) =>
              Effect.as(
                Log.safely(Effect.logWarning("the store of a rate limit does not answer", Cause.fail(error))),
                Duration.zero
              ))
          )
        // What is below a millisecond is a rounding error of the windows, and no timer is as fine.
        return (body) =>
          Effect.flatMap(turn, (delay) =>
            Duration.toMillis(delay) < 1 ? body : Effect.delay(body, delay))
      })
  })
})

/**
 * Lets a tool rest when what it depends on is broken: after some failures in a row its calls are refused for a while.
 * Then one call tries it out, and the others are refused until that has ended: a success closes the breaker, a failure
 * that counts opens it again.
 *
 * What counts is a failure that blames what the tool depends on: a timeout, a defect, a transient failure. A mistake of
 * the model, an interruption, and a refusal of a limit further in count neither for nor against; a success sets the
 * count back to zero. Options that are illegal are refused where a registry is assembled.
 *
 * **Example** (A tool that rests after one failure)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Logger from "effect/Logger"
 * import * as Context from "toolfold/Context"
 * import * as Limits from "toolfold/limits/Limits"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 * import * as Turn from "toolfold/Turn"
 *
 * const getWeather = Tool.make("getWeather", { handler: () => Effect.die("the server is down") }).pipe(
 *   Limits.breaker({ failures: 1, openFor: "1 minute" })
 * )
 *
 * const ask = Effect.gen(function*() {
 *   const registry = yield* ToolRegistry.ToolRegistry
 *   return yield* registry.answer(Turn.call({ id: "1", name: "getWeather", params: {} }), Context.callScope())
 * })
 * const twice = Effect.all([ask, ask]).pipe(
 *   Effect.provide(ToolRegistry.layer(getWeather)),
 *   Effect.provide(Logger.layer([]))
 * )
 *
 * const [first, second] = await Effect.runPromise(twice)
 * first._tag === "Failure" && first.kind // => "defect"
 * second._tag === "Failure" && second.message // => "The tool is resting after repeated failures. Try again in 60 s."
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const breaker: {
  (options?: BreakerOptions): <T extends WireTool.Any>(self: T) => T
  <T extends WireTool.Any>(self: T, options?: BreakerOptions): T
} = dual((args) => isTool(args[0]), (self: WireTool.Any, options: BreakerOptions = {}) => {
  const { failures = 5, openFor = "30 seconds" } = options
  return add(self, {
    by: "breaker",
    wrong: [
      ...unknownOptions(options, ["failures", "openFor"]),
      ...Legal.countProblem("failures", failures),
      ...Legal.durationProblem("openFor", openFor)
    ],
    make: (key, blames) =>
      Effect.map(
        circuits({ tripPolicy: CircuitBreaker.consecutive(failures), openDuration: openFor }),
        (circuits) => (body) =>
          Effect.suspend(() => {
            // A body may fail with the error of a breaker of its own.
            let admitted = false
            const attempt = Effect.suspend(() => {
              admitted = true
              return body
            })
            return Effect.catchCause(circuits.execute(attempt, { key, classify: classify(blames) }), (cause) => {
              const error = admitted ? undefined : Result.getOrUndefined(Cause.findError(cause))
              return error instanceof CircuitBreaker.CircuitBreakerError
                ? Effect.fail(resting(error))
                : Effect.failCause(cause)
            })
          })
      )
  })
})

const classify = (blames: Guard.Blames) => (exit: Exit.Exit<unknown, unknown>): CircuitBreaker.Outcome => {
  if (Exit.isSuccess(exit)) return CircuitBreaker.success
  return isRefused(exit.cause) || !blames(exit.cause) ? CircuitBreaker.ignored : CircuitBreaker.failure()
}

const resting = (error: CircuitBreaker.CircuitBreakerError): Guard.Refusal =>
  new Guard.Refusal(
    error.reason._tag === "CircuitOpen"
      ? `The tool is resting after repeated failures. ${again(error.reason.retryAfter)}`
      : "The tool is resting after repeated failures, and another call is trying it out. Try again when that has ended."
  )

const isRefused = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error instanceof Guard.Refusal)

// Rounded up, so that whoever waits as long as it says is let through.
const again = (after: Duration.Duration): string =>
  `Try again in ${Math.max(1, Math.ceil(Math.round(Duration.toMillis(after)) / 1000))} s.`

const seconds = (millis: number): string => `${Math.max(1, Math.round(millis)) / 1000} s`

const isTool = (u: unknown): boolean =>
  WireTool.isUserDefined(u) || WireTool.isDynamic(u) || WireTool.isProviderDefined(u)

/** One of ours, as it is declared. */
interface Limit {
  readonly by: "rateLimit" | "breaker"
  readonly wrong: ReadonlyArray<string>
  /** Made with a key of its own, among those of its kind. */
  readonly make: (own: string, blames: Guard.Blames) => ReturnType<Guard.Guard["make"]>
}

const add = (self: WireTool.Any, { by, make, wrong }: Limit): WireTool.Any => {
  const guards = Services.get(self.annotations, Guard.Guards)
  const earlier = guards.filter((guard) => "by" in guard && guard.by === by).length
  const guard: Guard.Guard & Pick<Limit, "by"> = {
    by,
    problems: wrong.map((problem) => `${by}: ${problem}`),
    make: (tool, blames) => make(earlier === 0 ? tool : `${tool}#${earlier + 1}`, blames)
  }
  return self.annotate(Guard.Guards, [guard, ...guards])
}

/** What was built for each registry, which is known by its scope. */
const memory = new WeakMap<Scope.Scope, Layer.MemoMap>()

/** A service of the registry's context; where that has none, one of the registry's own. */
const ownOr = <I, S>(key: Services.Key<I, S>, inMemory: Layer.Layer<I>): Effect.Effect<S, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.serviceOption(key),
    Option.match({
      onSome: (service) => Effect.succeed(service),
      onNone: () =>
        Effect.flatMap(Effect.scope, (scope) => {
          const built = memory.get(scope) ?? Layer.makeMemoMapUnsafe()
          memory.set(scope, built)
          return Effect.map(Layer.buildWithMemoMap(inMemory, built, scope), Services.get(key))
        })
    })
  )

const circuitsInMemory = CircuitBreaker.layerStoreMemory()

const circuits = (
  options: Parameters<typeof CircuitBreaker.make>[0]
): Effect.Effect<CircuitBreaker.CircuitBreaker, never, Scope.Scope> =>
  Effect.provideServiceEffect(
    CircuitBreaker.make(options),
    CircuitBreaker.CircuitBreakerStore,
    ownOr(CircuitBreaker.CircuitBreakerStore, circuitsInMemory)
  )

const limiter: Effect.Effect<RateLimiter.RateLimiter, never, Scope.Scope> = Effect.flatMap(
  Effect.serviceOption(RateLimiter.RateLimiter),
  Option.match({
    onSome: (limiter) => Effect.succeed(limiter),
    onNone: () =>
      Effect.provideServiceEffect(
        RateLimiter.make,
        RateLimiter.RateLimiterStore,
        ownOr(RateLimiter.RateLimiterStore, RateLimiter.layerStoreMemory)
      )
  })
)

const oneOf = (option: string, given: string | undefined, legal: ReadonlyArray<string>): ReadonlyArray<string> =>
  given === undefined || legal.includes(given)
    ? []
    : [`${option} must be ${legal.join(" or ")}, got ${Legal.shown(given)}`]

const unknownOptions = (options: object, known: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.keys(options).filter((option) => !known.includes(option))
    .map((option) => `unknown option ${JSON.stringify(option)}; known: ${known.join(", ")}`)
