/**
 * How do observers watch a run without being able to hurt it? They are told one event after the other, in order, and what
 * they fail with is logged.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import * as Context from "../Context.ts"
import type * as Event from "../Event.ts"
import type { Ended } from "../Result.ts"
import * as Log from "./log.ts"
import type * as Watch from "./watch.ts"

/** What observers of a run may be given; each may be plain or an Effect. What they fail with is logged. */
export interface Observers<R> {
  /** Gets everything that happens, before the other observers. */
  readonly onEvent?: ((event: Event.Event) => Effect.Effect<unknown, unknown, R> | void) | undefined
  /**
   * Gets what the run has when it fails or is cancelled, before whoever runs it is told. It is not interrupted, and has one
   * second.
   */
  readonly onPartial?: ((partial: Ended) => Effect.Effect<unknown, unknown, R> | void) | undefined
  readonly onToolCall?: ((call: Event.ToolCall) => Effect.Effect<unknown, unknown, R> | void) | undefined
  readonly onText?: ((delta: string) => Effect.Effect<unknown, unknown, R> | void) | undefined
}

type Told = Effect.Effect<void> | undefined

/** These observers as one who takes events; none where there is nobody. */
export const make = <R>(observers: Observers<R>): Watch.Sink | undefined => {
  // Observers run in the fiber of the run, which states what they need.
  const { onEvent, onText, onToolCall } = observers as Observers<never>
  if (onEvent === undefined && onText === undefined && onToolCall === undefined) return undefined
  const tellOf = (event: Event.Event): Told => {
    if (event.path.length > 0) return undefined
    switch (event._tag) {
      case "TextDelta":
        return onText && safely("onText", () => onText(event.delta))
      case "CallStart":
      case "CallEnd":
        return onToolCall && safely("onToolCall", () => onToolCall(toolCall(event)))
      default:
        return undefined
    }
  }
  const tell = (event: Event.Event): Told => {
    const told = onEvent && safely("onEvent", () => onEvent(event))
    return told === undefined ? tellOf(event) : Effect.andThen(told, Effect.suspend(() => tellOf(event) ?? Effect.void))
  }
  return {
    deltas: onText !== undefined || onEvent !== undefined,
    all: onEvent !== undefined,
    ...inOrder(tell)
  }
}

/**
 * Tells events in their order, though fibers side by side give them: whoever gives some tells what is there up to those, and
 * waits while another does. What one who is interrupted leaves the next tells.
 */
const inOrder = (tell: (event: Event.Event) => Told): Pick<Watch.Sink, "take" | "told" | "last"> => {
  const waiting: Array<Event.Event> = []
  let busy: Latch.Latch | undefined
  // Not interrupted between its steps, since who waits waits for it to be free.
  const upTo = (seq: number, restore: Restore): Effect.Effect<void> => {
    if (busy !== undefined) return Effect.andThen(restore(busy.await), Effect.suspend(() => upTo(seq, restore)))
    for (let next = waiting[0]; next !== undefined && next.seq <= seq; next = waiting[0]) {
      waiting.shift()
      const told = tell(next)
      if (told === undefined) continue
      // Only an observer that is an Effect takes a step of the runtime.
      const latch = Latch.makeUnsafe(false)
      busy = latch
      const free = Effect.sync(() => {
        busy = undefined
        latch.openUnsafe()
      })
      return Effect.andThen(Effect.ensuring(restore(told), free), Effect.suspend(() => upTo(seq, restore)))
    }
    return Effect.void
  }
  const told = Effect.uninterruptibleMask((restore) =>
    // An interruption that is due comes before this step.
    Effect.suspend(() => {
      const last = waiting.at(-1)
      return last === undefined ? Effect.void : upTo(last.seq, restore)
    })
  )
  return {
    take: (events) => {
      for (const event of events) waiting.push(event)
    },
    told,
    last: briefly(told)
  }
}

type Restore = (effect: Effect.Effect<void>) => Effect.Effect<void>

// It has a fiber of its own, which nobody interrupts.
const briefly = (told: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(told), "1 second"))

/** Tells of what a run has that ends without a result. */
export const partial = <R>({ onPartial }: Observers<R>, ended: Ended): Effect.Effect<void> => {
  // Observers run in the fiber of the run, which states what they need.
  const observe = onPartial as Observers<never>["onPartial"]
  const told = observe && safely("onPartial", () => observe(ended))
  return told === undefined ? Effect.void : briefly(told)
}

const safely = (name: string, observe: () => Effect.Effect<unknown, unknown> | void): Told => {
  const failed = (cause: Cause.Cause<unknown>) => Log.safely(Effect.logWarning(`observer ${name} failed`, cause))
  const observed = Result.try(observe)
  if (Result.isFailure(observed)) return failed(Cause.die(observed.failure))
  if (!Effect.isEffect(observed.success)) return undefined
  // It is told of a call, and is no part of it: what it runs is a run of its own.
  const apart = Effect.provideService(observed.success, Context.CurrentCall, undefined)
  return Effect.asVoid(Effect.catchCause(apart, failed))
}

const toolCall = (event: Extract<Event.Event, { readonly _tag: "CallStart" | "CallEnd" }>): Event.ToolCall => {
  const { id, input, name, raw } = event.call
  const args = input ?? raw
  return event._tag === "CallStart"
    ? { event: "start", tool: name, id, args }
    : {
      event: "end",
      tool: name,
      id,
      args,
      result: event.preview,
      error: event.isError,
      durationMs: event.durationMs
    }
}
