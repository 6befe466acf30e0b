/**
 * How do observers watch a run without being able to hurt it? They are told one event after the other, in order, and what
 * they fail with is logged.
 */
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Context from "../Context.ts"
import type * as Event from "../Event.ts"
import type { Ended } from "../Result.ts"
import * as Log from "./log.ts"
import { unheard } from "./unheard.ts"
import type * as Watch from "./watch.ts"

/**
 * What observers of a run may be given; each may be plain or an Effect. What they fail with is logged. The run waits for one
 * that is an Effect, as long as it takes; one that is cancelled or failed waits for a second.
 */
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
  // They run among the services of the run, which states what they need.
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
 * Tells events in their order, though fibers side by side give them. Plain observers are told at once. One that is an Effect
 * runs in a fiber of its own, among the services of whoever runs the run; what is given meanwhile waits its turn, and whoever
 * gave it waits with it, or stops waiting when it is interrupted.
 */
const inOrder = (tell: (event: Event.Event) => Told): Omit<Watch.Sink, "deltas" | "all"> => {
  const open: Array<Event.Event> = []
  const waiting: Array<{ readonly upTo: number; readonly resume: () => void }> = []
  let services: Services.Context<never> = Services.empty()
  let isBusy = false
  let telling: Fiber.Fiber<void> | undefined
  const advance = (): void => {
    if (isBusy) return
    isBusy = true
    for (let next = open[0]; next !== undefined; next = open[0]) {
      const told = tell(next)
      // Most are plain, or over as soon as they have begun.
      const fiber = told && Effect.runForkWith(services)(told)
      if (fiber !== undefined && fiber.pollUnsafe() === undefined) {
        telling = fiber
        fiber.addObserver(() => {
          telling = undefined
          isBusy = false
          done()
          advance()
        })
        return
      }
      done()
    }
    isBusy = false
  }
  const done = (): void => {
    const seq = open.shift()?.seq ?? 0
    for (let first = waiting[0]; first !== undefined && first.upTo <= seq; first = waiting[0]) {
      waiting.shift()
      first.resume()
    }
  }
  const told = (): Effect.Effect<void> => {
    const upTo = open.at(-1)?.seq
    return upTo === undefined ? Effect.void : Effect.callback<void>((resume) => {
      const next = open[0]
      // It may have been told since.
      if (next === undefined || next.seq > upTo) return resume(Effect.void)
      const waiter = { upTo, resume: () => resume(Effect.void) }
      waiting.push(waiter)
      return Effect.sync(() => {
        const at = waiting.indexOf(waiter)
        if (at >= 0) waiting.splice(at, 1)
      })
    })
  }
  return {
    begin: (running) => {
      services = Services.add(running, Context.CurrentCall, undefined)
    },
    close: () => {
      open.splice(1)
      for (const { resume } of waiting.splice(0)) resume()
      telling?.interruptUnsafe()
    },
    take: (events) => {
      for (const event of events) open.push(event)
      advance()
    },
    told,
    last: () => briefly(Effect.suspend(told))
  }
}

// It has a fiber of its own, which nobody interrupts.
const briefly = (told: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(told), "1 second"))

/** Tells of what a run has that ends without a result. */
export const partial = <R>({ onPartial }: Observers<R>, ended: Ended): Effect.Effect<void> => {
  // It runs in the fiber of the run, which states what it needs.
  const observe = onPartial as Observers<never>["onPartial"]
  const told = observe && safely("onPartial", () => observe(ended))
  return told === undefined ? Effect.void : briefly(told)
}

const safely = (name: string, observe: () => Effect.Effect<unknown, unknown> | void): Told => {
  const observed = Result.try(observe)
  if (Result.isFailure(observed)) return failed(name, Cause.die(observed.failure))
  const { success } = observed
  if (success === undefined) return undefined
  if (Effect.isEffect(success)) return Effect.asVoid(Effect.catchCause(success, (cause) => failed(name, cause)))
  unheard(success)
  return undefined
}

const failed = (name: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Log.safely(Effect.logWarning(`observer ${name} failed`, cause))

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
