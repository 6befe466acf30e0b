/**
 * How is a run held that goes on by itself? By a handle that waits for its end, cancels it, and shows what it has.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Take from "effect/Take"
import type * as Event from "../Event.ts"
import type * as Ending from "../Result.ts"
import * as Log from "./log.ts"
import * as Run from "./run.ts"
import type * as Watch from "./watch.ts"

/**
 * A run that goes on by itself, in the scope that it was started in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Handle<out E, out A = unknown> {
  /** How the run ends; `Cancelled` if it was cancelled. */
  readonly await: Effect.Effect<Ending.Result<A>, Ending.ModelFailed | E>
  /** Ends the run and gives what it had: a valid transcript, and the results and writes of the calls that finished. */
  readonly cancel: Effect.Effect<Ending.Result<A>, Ending.ModelFailed | E>
  /** What the run has so far, in whole turns. */
  readonly partial: Effect.Effect<Ending.Ended>
  /**
   * What happens, for any number of watchers, up to the last 1,024 events before each began. The run does not wait for them, so
   * what one that is slow has not taken is kept for it.
   */
  readonly events: Stream.Stream<Event.Event>
  /** Adds a message of the user, which joins at the next turn. A run that would end goes on with it; one that has ended does not. */
  readonly tell: (message: string | Prompt.UserMessage) => Effect.Effect<void>
}

/** What a run that is held is watched by. */
export interface Held {
  readonly sink: Watch.Sink
  readonly events: Stream.Stream<Event.Event>
  readonly end: () => void
}

/** One who takes events, and of whom many can take them. */
export const hold: Effect.Effect<Held> = Effect.map(
  PubSub.unbounded<Take.Take<Event.Event>>({ replay: 1_024 }),
  (hub) => {
    // One by one, since a hub counts what it is given at a time.
    const take = (events: ReadonlyArray<Event.Event>): void => {
      for (const event of events) PubSub.publishUnsafe(hub, [event])
    }
    return {
      sink: { deltas: true, all: true, take, told: () => Effect.void, last: () => Effect.void },
      events: Stream.fromPubSubTake(hub),
      end: () => void PubSub.publishUnsafe(hub, Exit.void)
    }
  }
)

/** Starts what runs, in the scope around, and gives a handle on it. */
export const make = <A, E, R>(
  run: Run.Run,
  { end, events }: Held,
  running: Effect.Effect<Ending.Result<A>, Ending.ModelFailed | E, R>
): Effect.Effect<Handle<E, A>, never, R | Scope.Scope> =>
  Effect.gen(function*() {
    let cancelled = false
    // It says itself where it can be cancelled, so that one that is cancelled before it has begun ends as every run does.
    const fiber = yield* Effect.forkScoped(running, { uninterruptible: true })
    fiber.addObserver(end)
    const cancelling = Effect.sync(() => {
      cancelled = true
    })
    yield* Effect.addFinalizer(() => cancelling)
    const last = Effect.flatMap(Fiber.await(fiber), (exit): Effect.Effect<Ending.Result<A>, Ending.ModelFailed | E> =>
      cancelled && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        ? Effect.andThen(reportOthers(exit.cause), endOf<A>(run))
        : exit)
    return {
      await: last,
      cancel: Effect.andThen(Effect.andThen(cancelling, Fiber.interrupt(fiber)), last),
      partial: Effect.suspend(() =>
        Run.ended(run)
      ),
      events,
      tell: (message) => Effect.sync(() => Run.tell(run, message))
    }
  })

/** The end of a run that was cancelled: one whose end was shown has ended so. */
const endOf = <A>(run: Run.Run): Effect.Effect<Ending.Result<A>> =>
  // A value was decoded by the schema of the answer.
  run.shown === undefined
    ? Effect.map(Run.ended(run), (end): Ending.Cancelled => ({ _tag: "Cancelled", ...end }))
    : Effect.succeed(run.shown as Ending.Result<A>)

// What else went wrong while a run was cancelled is no reason to lose what the run had.
const reportOthers = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Log.safely(Effect.logWarning("a cancelled run failed while it was ending", cause))
