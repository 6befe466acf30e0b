/**
 * How do observers watch a run without being able to hurt it?
 */
import type * as AiError from "effect/ai/AiError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type * as Event from "../Event.ts"
import type * as Provider from "../Provider.ts"
import type { Ended } from "../Result.ts"
import * as Turn from "../Turn.ts"
import * as Failing from "./failing.ts"
import * as Log from "./log.ts"
import * as Run from "./run.ts"
import * as SideBySide from "./sideBySide.ts"
import * as Text from "./text.ts"

/** Where events go. `deltas` says that somebody wants the pieces of the answer while they arrive. */
export interface Watch {
  readonly deltas: boolean
  readonly emit: (events: ReadonlyArray<Event.Event>) => Effect.Effect<void>
  /** `emit` for a run that is being interrupted: it never waits for whoever watches. */
  readonly last: (events: ReadonlyArray<Event.Event>) => Effect.Effect<void>
}

/** Two watches as one; the first is told first. */
export const both = (one: Watch | undefined, other: Watch): Watch =>
  one === undefined ? other : {
    deltas: one.deltas || other.deltas,
    emit: (events) => Effect.andThen(one.emit(events), other.emit(events)),
    last: (events) => Effect.andThen(one.last(events), other.last(events))
  }

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

/** A watch for these observers, or none where there is nobody. */
export const make = <R>(observers: Observers<R>): Watch | undefined => {
  // Observers run in the fiber of the run, which states what they need.
  const { onEvent, onText, onToolCall } = observers as Observers<never>
  if (onEvent === undefined && onText === undefined && onToolCall === undefined) return undefined
  const tell = (event: Event.Event): Effect.Effect<void> | undefined => {
    const told = onEvent && safely("onEvent", () => onEvent(event))
    return told === undefined ? tellOf(event) : Effect.andThen(told, Effect.suspend(() => tellOf(event) ?? Effect.void))
  }
  const tellOf = (event: Event.Event): Effect.Effect<void> | undefined => {
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
  // A plain observer is called as it is; only one that is an Effect takes a step of the runtime.
  const tellFrom = (events: ReadonlyArray<Event.Event>, first: number): Effect.Effect<void> => {
    for (let at = first; at < events.length; at++) {
      const event = events[at]
      const told = event && tell(event)
      if (told !== undefined) return Effect.flatMap(told, () => tellFrom(events, at + 1))
    }
    return Effect.void
  }
  const emit = (events: ReadonlyArray<Event.Event>) => Effect.suspend(() => tellFrom(events, 0))
  return {
    deltas: onText !== undefined || onEvent !== undefined,
    emit,
    last: (events) => Effect.asVoid(Effect.timeoutOption(Effect.interruptible(emit(events)), "1 second"))
  }
}

/** Tells of what a run has that ends without a result. */
export const partial = <R>({ onPartial }: Observers<R>, ended: Ended): Effect.Effect<void> => {
  // Observers run in the fiber of the run, which states what they need.
  const observe = onPartial as Observers<never>["onPartial"]
  const told = observe && safely("onPartial", () => observe(ended))
  if (told === undefined) return Effect.void
  // Its time has a fiber of its own, which nobody interrupts.
  return Effect.asVoid(Effect.timeoutOption(Effect.interruptible(told), "1 second"))
}

const safely = (
  name: string,
  observe: () => Effect.Effect<unknown, unknown> | void
): Effect.Effect<void> | undefined => {
  const failed = (cause: Cause.Cause<unknown>) => Log.safely(Effect.logWarning(`observer ${name} failed`, cause))
  const observed = Result.try(observe)
  if (Result.isFailure(observed)) return failed(Cause.die(observed.failure))
  return Effect.isEffect(observed.success)
    ? Effect.asVoid(Effect.catchCause(observed.success, failed))
    : undefined
}

const toolCall = (event: Event.CallStart | Event.CallEnd): Event.ToolCall => {
  const { id, input, name, raw } = event.call
  const args = input ?? raw
  return event._tag === "CallStart"
    ? { event: "start", tool: name, id, args }
    : {
      event: "end",
      tool: name,
      id,
      args,
      result: preview(event.outcome),
      error: Turn.isError(event.outcome),
      durationMs: event.durationMs
    }
}

/** The first 200 characters of what a model is told of an outcome. */
export const preview = (outcome: Turn.Outcome): string => {
  const told = Turn.told(outcome)
  return Text.excerpt(typeof told === "string" ? told : JSON.stringify(told) ?? "", 200)
}

/** Asks the model before watchers. A provider that does not stream is shown as one piece. */
export const asking = Effect.fnUntraced(function*(
  ask: Provider.Ask,
  request: Provider.Request,
  { deltas, emit }: Watch,
  turn: number,
  isAgain: boolean
): Effect.fn.Return<Provider.Reply, AiError.AiError> {
  const warning = (reply: Provider.Reply) =>
    reply.warnings === undefined || reply.warnings.length === 0
      ? Effect.succeed(reply)
      : Effect.as(emit([{ _tag: "Warned", turn, warnings: reply.warnings }]), reply)
  if (!isAgain) yield* emit([{ _tag: "TurnStart", turn }])
  if (!deltas) return yield* warning(yield* ask(request))
  const show = ({ delta, type }: Provider.Delta): Event.TextDelta => ({ _tag: tags[type], turn, delta })
  let streamed = false
  const reply = yield* ask(request, (pieces) => {
    streamed = true
    return emit(pieces.map(show))
  })
  if (!streamed) {
    const whole = reply.content.filter((part) => part.type === "text" || part.type === "reasoning")
    if (whole.length > 0) yield* emit(whole.map(({ text, type }) => show({ type, delta: text })))
  }
  return yield* warning(reply)
})

const tags = { text: "TextDelta", reasoning: "ReasoningDelta" } as const

/** Answers a call before watchers: one start, and one end whatever happens. */
export const answering = Effect.fnUntraced(function*(
  begin: (running: Services.Context<never>) => Fiber.Fiber<Turn.Outcome>,
  place: Run.Place,
  { emit, last }: Watch,
  run: Run.Run
): Effect.fn.Return<Turn.Outcome> {
  const { call } = place
  const turn = run.turns.length
  const from = yield* Clock.currentTimeMillis
  const ended = (emit: Watch["emit"]) =>
    Effect.flatMap(Clock.currentTimeMillis, (to) =>
      emit([{
        _tag: "CallEnd",
        turn,
        call: Run.callOf(place),
        outcome: Run.outcomeOf(place, "the run ended before it was run"),
        attempts: place.scope.attempts,
        durationMs: to - from
      }]))
  const answered = Effect.map(SideBySide.one(begin, () => Failing.lost(place.scope)), (outcome) => {
    // Recorded before anybody is told, so that what was shown and what is kept are the same.
    place.outcome = outcome
    return outcome
  })
  const outcome = yield* Effect.onInterrupt(
    Effect.andThen(emit([{ _tag: "CallStart", turn, call }]), answered),
    () => ended(last)
  )
  yield* ended(emit)
  return outcome
})

/** Tells what a batch folded to. Writes that a combiner threw on are warned of, watched or not. */
export const folded = Effect.fnUntraced(function*(
  run: Run.Run,
  { before, dropped }: Run.Settled,
  watch: Watch | undefined
): Effect.fn.Return<void> {
  for (const { error, id } of dropped) {
    yield* Log.safely(Effect.logWarning(`the writes of call ${id} did not fold and are lost`, error))
  }
  const turn = run.turns.at(-1)
  if (watch === undefined || turn === undefined) return
  const context = Ref.getUnsafe(run.context)
  const fold: ReadonlyArray<Event.Event> = before === context && dropped.length === 0
    ? []
    : [{ _tag: "Folded", turn: turn.index, before, context, dropped: dropped.map(({ id }) => id) }]
  yield* watch.emit([...fold, { _tag: "TurnEnd", turn }])
})
