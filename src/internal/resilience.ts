/**
 * What becomes of a request that fails, is too many, or takes too long? Each answer makes one way to ask of another.
 */
import * as AiError from "effect/ai/AiError"
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import type { Ask, Delta, Reply, Sink } from "./ask.ts"
import * as Legal from "./legal.ts"
import * as Log from "./log.ts"
import * as RetryAfter from "./retryAfter.ts"

/** Around one way to ask: another. */
export interface Wrap {
  (ask: Ask): Ask
}

type Asked = Effect.Effect<Reply, AiError.AiError>

/**
 * How a failed request is tried again.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryOptions {
  /** How many times after the first. Default: 2. */
  readonly times?: number | undefined
  /** The longest wait before the first retry; it doubles with each. Default: 500 milliseconds. */
  readonly base?: Duration.Input | undefined
  /** The longest wait of all, also where a server asks for more. Default: 30 seconds. */
  readonly cap?: Duration.Input | undefined
  /** Which errors are worth it. Default: `isTransient`. */
  readonly while?: ((error: AiError.AiError) => boolean) | undefined
}

/** Who is told that a request is made again, and what the one before failed with. */
export const Retrying = Services.Reference<((error: AiError.AiError) => Effect.Effect<void>) | undefined>(
  "toolfold/Retrying",
  { defaultValue: () => undefined }
)

export const retrying = (options: RetryOptions = {}): Wrap => {
  const { base = 500, cap = "30 seconds", times = 2, while: mayHelp = isTransient } = options
  refuse("retry", [
    ...unknownOptions(options, ["times", "base", "cap", "while"]),
    ...(Number.isSafeInteger(times) && times >= 0
      ? []
      : [`times must be a whole number that is not negative, got ${Legal.shown(times)}`]),
    ...Legal.durationProblem("base", base),
    ...Legal.durationProblem("cap", cap),
    ...(typeof mayHelp === "function" ? [] : [`while must be a function, got ${Legal.shown(mayHelp)}`])
  ])
  const longest = Duration.toMillis(cap)
  const wait = (error: AiError.AiError, retries: number): Effect.Effect<void> =>
    Effect.clockWith((clock) => {
      const asked = RetryAfter.ofError(error, clock.currentTimeMillisUnsafe())
      return asked === undefined
        ? Effect.flatMap(jittered(Math.min(longest, Duration.toMillis(base) * 2 ** retries)), Effect.sleep)
        : Effect.sleep(Math.min(longest, Duration.toMillis(asked)))
    })
  return (ask) => (request, sink) =>
    Effect.suspend(() => {
      const shown = new Shown(sink)
      const attempt = (retries: number): Asked =>
        Effect.catch(ask(request, shown.sink), (error) =>
          shown.any || retries >= times || !mayHelp(error)
            ? Effect.fail(error)
            : report("Debug", "a model failed and is asked again", error).pipe(
              Effect.andThen(wait(error, retries)),
              Effect.andThen(begin(error)),
              Effect.flatMap(() => attempt(retries + 1))
            ))
      return attempt(0)
    })
}

/** Says that another attempt begins. */
const begin = (error: AiError.AiError): Effect.Effect<void> =>
  Effect.flatMap(Retrying, (told) => told?.(error) ?? Effect.void)

/** Full jitter: anything up to a number of milliseconds, so that many who failed at once do not come back at once. */
export const jittered = (most: number): Effect.Effect<number> =>
  Effect.map(Random.next, (share) => Math.ceil(share * most))

/**
 * Whether the same request may succeed later: no connection, a rate limit, a server that is down or busy (5xx, 408, 409).
 * Never an answer that was not liked: `effect/ai`'s own `isRetryable` is true for output that does not fit, too.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isTransient = ({ reason }: AiError.AiError): boolean => {
  switch (reason._tag) {
    case "RateLimitError":
    case "InternalProviderError":
      return true
    case "NetworkError":
      return reason.reason === "TransportError"
    case "UnknownError": {
      const status = statusOf(reason)
      return status === 408 || status === 409 || status >= 500
    }
    default:
      return false
  }
}

const statusOf = (reason: AiError.AiErrorReason): number => "http" in reason ? reason.http?.response?.status ?? 0 : 0

export const fallback = (first: Ask, ...others: ReadonlyArray<Ask>): Ask => (request, sink) =>
  Effect.suspend(() => {
    const shown = new Shown(sink)
    const from = (ask: Ask, [next, ...rest]: ReadonlyArray<Ask>): Asked =>
      next === undefined
        ? ask(request, shown.sink)
        : Effect.catch(ask(request, shown.sink), (error) =>
          shown.any || !isOfOneModel(error)
            ? Effect.fail(error)
            : report("Warn", "a model failed and the next is asked", error).pipe(
              Effect.andThen(begin(error)),
              Effect.flatMap(() => from(next, rest))
            ))
    return from(first, others)
  })

/** What is wrong with the request or with the run, and a refusal, which is an answer. */
const ofEveryModel = new Set<AiError.AiErrorReason["_tag"]>([
  "ContentPolicyError",
  "InvalidToolResultError",
  "ToolConfigurationError",
  "ToolkitRequiredError",
  "ToolNotFoundError",
  "ToolParameterValidationError",
  "ToolResultEncodingError"
])

// Providers say these of one model with a status that means an invalid request.
const tooLong =
  /context.?(?:length|window|size)|max(?:imum)? (?:context|prompt)|too (?:long|large)|token count|reduce the length|prompt_tokens/i
const notHere =
  /model.?not.?found|deployment.?not.?found|no such model|unknown model|models?\b.{0,200}(?:not found|not exist|deprecated)/is
const noEntry = /api.?key/i

/** Whether the transcript no longer fits the model. */
export const isTooLong = ({ reason }: AiError.AiError): boolean =>
  reason._tag === "InvalidRequestError" && tooLong.test(reason.message)

/** Whether another model may do better with the same request. */
export const isOfOneModel = ({ reason }: AiError.AiError): boolean => {
  if (ofEveryModel.has(reason._tag)) return false
  const status = statusOf(reason)
  if (reason._tag !== "InvalidRequestError" && status !== 400 && status !== 422) return true
  return status === 404 || status === 413 || /\(HTTP 4(?:04|13)\)/.test(reason.message) ||
    [tooLong, notHere, noEntry].some((pattern) => pattern.test(reason.message))
}

/**
 * How many requests in a window.
 *
 * @category models
 * @since 0.1.0
 */
export interface RateLimitOptions {
  /** An integer of at least 1. */
  readonly limit: number
  /** Positive and finite; a number is milliseconds. */
  readonly window: Duration.Input
}

export const rateLimiting = (options: RateLimitOptions): Wrap => {
  const { limit, window } = options
  refuse("rateLimit", [
    ...unknownOptions(options, ["limit", "window"]),
    ...Legal.countProblem("limit", limit),
    ...Legal.durationProblem("window", window)
  ])
  const turn = turns(limit, Duration.toMillis(window))
  return (ask) => (request, sink) => Effect.flatMap(turn, () => ask(request, sink))
}

/** Waits until fewer than `limit` have begun within the window that ends now. Who asks first is first. */
const turns = (limit: number, window: number): Effect.Effect<void> => {
  // Who waits for its time holds up who comes later, and leaves no mark when it is interrupted.
  const line = Semaphore.makeUnsafe(1)
  const begun: Array<number> = []
  let at = 0
  const now = stopwatch()
  const begin = Effect.clockWith((clock) => {
    const earlier = begun[at]
    const free = earlier === undefined ? 0 : earlier + window
    const mark = Effect.sync(() => {
      begun[at] = Math.max(free, now(clock))
      at = (at + 1) % limit
    })
    const wait = Math.ceil(free - now(clock))
    return wait > 0 ? Effect.andThen(Effect.sleep(wait), mark) : mark
  })
  return line.withPermit(begin)
}

/** Milliseconds that have passed, by whichever clock is asked: one that goes back, or is another, takes nothing back. */
const stopwatch = () => {
  let passed = 0
  let last: number | undefined
  return (clock: Clock.Clock): number => {
    const now = Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    passed += Math.max(0, now - (last ?? now))
    last = now
    return passed
  }
}

export const timingOut = (duration: Duration.Input): Wrap => {
  refuse("timeout", Legal.durationProblem("duration", duration))
  const deadline = Duration.fromInputUnsafe(duration)
  return (ask) => (request, sink) =>
    Effect.uninterruptibleMask((restore) => {
      let isLate = false
      const open: Sink | undefined = sink && ((deltas) => isLate ? Effect.void : sink(deltas))
      // A fiber of its own, since an effect that is timed out is waited for, and some cannot be interrupted.
      return Effect.flatMap(
        Effect.forkDetach(Effect.suspend(() => ask(request, open)), { startImmediately: true }),
        (fiber) =>
          restore(before(deadline, Fiber.await(fiber))).pipe(
            Effect.onInterrupt(() => Fiber.interrupt(fiber)),
            Effect.flatMap((ended): Asked => {
              if (ended !== undefined) return ended
              isLate = true
              fiber.interruptUnsafe()
              return Effect.fail(timedOut(deadline))
            })
          )
      )
    })
}

const before = <A>(deadline: Duration.Duration, effect: Effect.Effect<A>): Effect.Effect<A | undefined> =>
  Effect.raceFirst(Effect.interruptible(effect), Effect.interruptible(Effect.as(Effect.sleep(deadline), undefined)))

// The reason that a gateway's own timeout (504) has; the network's would need a URL, which is not known here.
const timedOut = (deadline: Duration.Duration): AiError.AiError =>
  AiError.make({
    module: "Provider",
    method: "timeout",
    reason: new AiError.InternalProviderError({
      description: `no answer within ${Duration.format(deadline)}`,
      metadata: { toolfold: { timeout: Duration.toMillis(deadline) } }
    })
  })

/** Whether there is something in it that a model said, and not only a piece of a call that has not started. */
export const isSaid = (deltas: ReadonlyArray<Delta>): boolean => deltas.some(({ type }) => type !== "input")

/** Knows whether anything that a model said was shown, which cannot be taken back; a call that never started is none. */
class Shown {
  any = false
  readonly sink: Sink | undefined
  constructor(sink: Sink | undefined) {
    this.sink = sink && ((deltas) => {
      this.any ||= isSaid(deltas)
      return sink(deltas)
    })
  }
}

const report = (level: "Debug" | "Warn", message: string, error: AiError.AiError): Effect.Effect<void> =>
  Log.safely(Effect.logWithLevel(level)(message, Cause.fail(error)))

const refuse = (by: string, problems: ReadonlyArray<string>): void => {
  if (problems.length > 0) throw new Error(`Provider.${by}: ${problems.join("; ")}`)
}

const unknownOptions = (options: object, known: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.keys(options).filter((option) => !known.includes(option))
    .map((option) => `unknown option ${JSON.stringify(option)}; known: ${known.join(", ")}`)
