/**
 * How is a body tried? Within its time, again where that may help, never beside a call that it conflicts with.
 *
 * An attempt with a deadline runs in a fiber of its own, which the registry's scope keeps: at the deadline, or when the
 * run is cancelled, it is interrupted and has a grace for its finalizers. What does not end by then is left behind and
 * reported; it cannot write any more.
 */
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as References from "effect/References"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Tracer from "effect/Tracer"
import * as Context from "../Context.ts"
import type * as Guard from "./guard.ts"
import * as Log from "./log.ts"
import * as Reporting from "./reporting.ts"

/** The deadline of an attempt passed. */
export class TimedOut {
  readonly _tag = "toolfold/TimedOut"
  readonly after: Duration.Duration
  readonly stillRunning: boolean
  constructor(after: Duration.Duration, stillRunning: boolean) {
    this.after = after
    this.stillRunning = stillRunning
  }
}

/** How the bodies of one tool are tried; made once for each registry. */
export interface Plan {
  readonly tool: string
  readonly timeout: Duration.Duration | undefined
  readonly retry: Schedule.Schedule<unknown, unknown> | undefined
  readonly isTransient: (failed: unknown) => boolean
  readonly guard: ((body: Guard.Body) => Guard.Body) | undefined
  readonly permits: Semaphore.Semaphore | undefined
  readonly conflictKey: ((input: unknown) => string) | undefined
  readonly locks: Locks
  /** Keeps what is left behind. */
  readonly scope: Scope.Scope
}

/** Where what the attempt that succeeded wrote goes. */
export interface Tries {
  writes: ReadonlyArray<Context.Write>
}

/** Tries a body by its plan. Fails as the last attempt did, with `TimedOut`, or with a guard's `Refusal`. */
export const run = (
  plan: Plan,
  input: unknown,
  body: Guard.Body,
  scope: Context.CallScope,
  tries: Tries
): Guard.Body => {
  const once = Effect.suspend(() => attempt(plan, body, scope, tries))
  const tried = plan.retry === undefined ? once : again(plan, plan.retry, once, scope)
  const permitted = plan.permits === undefined ? tried : Semaphore.withPermits(plan.permits, 1)(tried)
  return plan.conflictKey === undefined ? permitted : plan.locks.holding(keyOf(plan.conflictKey, input), permitted)
}

const again = (
  { isTransient }: Plan,
  schedule: Schedule.Schedule<unknown, unknown>,
  once: Guard.Body,
  scope: Context.CallScope
): Guard.Body => {
  let reason: "failure" | "timeout" | undefined
  const told = Effect.suspend(() =>
    reason === undefined ? Effect.void : Reporting.report({ _tag: "Retry", attempt: scope.attempts + 1, reason })
  )
  return Effect.retry(Effect.andThen(told, once), {
    schedule,
    while: (failed) => {
      reason = failed instanceof TimedOut ? "timeout" : "failure"
      return isTransient(failed)
    }
  })
}

const keyOf = (conflictKey: (input: unknown) => unknown, input: unknown): string => {
  const key = conflictKey(input)
  if (typeof key !== "string") throw new Error("conflictKey did not give a string")
  return key
}

const attempt = (plan: Plan, body: Guard.Body, scope: Context.CallScope, tries: Tries): Guard.Body => {
  const own = Context.callScope(scope.context, scope.id, scope)
  scope.attempts++
  const alone = Effect.onExit(Effect.provideService(body, Context.CurrentCall, own), (exit) =>
    Effect.sync(() => {
      // An attempt that was given up is closed before it ends.
      if (own.open && exit._tag === "Success") tries.writes = own.writes
      own.open = false
    }))
  const timed = plan.timeout === undefined ? alone : within(plan, plan.timeout, alone, own, scope)
  const guarded = plan.guard === undefined ? timed : plan.guard(timed)
  return plan.retry === undefined ? guarded : traced(plan.tool, scope.attempts, guarded)
}

// A span costs as much as a call, so there is none where no tracer listens.
const traced = (tool: string, attempt: number, body: Guard.Body): Guard.Body =>
  Effect.withFiber(({ context }) =>
    context.mapUnsafe.has(Tracer.TracerKey) && Services.get(context, References.TracerEnabled)
      ? Effect.withSpan(body, "tool attempt", { attributes: { tool, attempt }, captureStackTrace: false })
      : body
  )

const within = (
  plan: Plan,
  deadline: Duration.Duration,
  body: Guard.Body,
  own: Context.CallScope,
  scope: Context.CallScope
): Guard.Body =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkIn(Effect.interruptible(body), plan.scope, { startImmediately: true }), (fiber) => {
      const abandoned = Effect.suspend(() => abandon(plan, fiber, own))
      return Effect.flatMap(
        Effect.onInterrupt(restore(Effect.timeoutOption(Fiber.await(fiber), deadline)), () => abandoned),
        (ended) =>
          Option.isSome(ended)
            ? ended.value
            : Effect.flatMap(abandoned, () => Effect.fail(new TimedOut(deadline, scope.stillRunning)))
      )
    })
  )

/** How long finalizers of an interrupted body have. */
const grace = Duration.millis(100)

const abandon = (
  plan: Plan,
  fiber: Fiber.Fiber<unknown, unknown>,
  own: Context.CallScope
): Effect.Effect<void> => {
  own.open = false
  fiber.interruptUnsafe()
  return Effect.flatMap(inGrace(Fiber.await(fiber)), (ended) => {
    if (!ended) Context.goesOn(own)
    return own.stillRunning
      ? Log.safely(Effect.logWarning(`tool ${JSON.stringify(plan.tool)} goes on after it was interrupted`))
      : Effect.void
  })
}

/** Whether an effect ends within the grace. Waits for no longer, also while its caller is being interrupted. */
export const inGrace = (effect: Effect.Effect<unknown>): Effect.Effect<boolean> =>
  // The two that race have fibers of their own, which nobody has interrupted.
  Effect.raceFirst(
    Effect.interruptible(Effect.as(effect, true)),
    Effect.interruptible(Effect.as(Effect.sleep(grace), false))
  )

/** Locks by key. Whoever asks first holds first. */
export interface Locks {
  readonly holding: (key: string, body: Guard.Body) => Guard.Body
}

/** The locks of one registry. */
export const locks = (): Locks => {
  const held = new Map<string, { readonly lock: Semaphore.Semaphore; users: number }>()
  return {
    holding: (key, body) =>
      Effect.suspend(() => {
        const entry = held.get(key) ?? { lock: Semaphore.makeUnsafe(1), users: 0 }
        held.set(key, entry)
        entry.users++
        return Effect.ensuring(
          Semaphore.withPermits(entry.lock, 1)(body),
          Effect.sync(() => {
            entry.users--
            if (entry.users === 0) held.delete(key)
          })
        )
      })
  }
}

/** A foreign promise as a body; see `Tool.promise`. */
export const promise = <A, E>(
  start: (signal: AbortSignal) => PromiseLike<A>,
  fail: (error: unknown) => Effect.Effect<never, E>
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const abort = new AbortController()
    const settled = Promise.withResolvers<void>()
    const started = Effect.callback<A, E>((resume) => {
      const rejected = (error: unknown) => {
        settled.resolve()
        resume(fail(error))
      }
      const resolved = (value: A) => {
        settled.resolve()
        resume(Effect.succeed(value))
      }
      // A function that throws is one whose promise rejects.
      new Promise<A>((resolve) => resolve(start(abort.signal))).then(resolved, rejected)
    })
    return Effect.onInterrupt(started, () =>
      Effect.withFiber((fiber) => {
        abort.abort()
        const scope = fiber.getRef(Context.CurrentCall)
        return Effect.map(inGrace(Effect.promise(() => settled.promise)), (ended) => {
          if (!ended) Context.goesOn(scope)
        })
      }))
  })
