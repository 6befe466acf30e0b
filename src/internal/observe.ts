/**
 * What is told of a run, and when? Each step of it says here what happened, where somebody watches.
 */
import type * as AiError from "effect/ai/AiError"
import type * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Context from "../Context.ts"
import type * as Event from "../Event.ts"
import type * as Pause from "../Pause.ts"
import type * as Provider from "../Provider.ts"
import * as Ending from "../Result.ts"
import * as Turn from "../Turn.ts"
import * as Failing from "./failing.ts"
import * as Log from "./log.ts"
import * as Resilience from "./resilience.ts"
import * as Run from "./run.ts"
import * as SideBySide from "./sideBySide.ts"
import * as Text from "./text.ts"
import * as Watch from "./watch.ts"

/** A run begins, and the turn that it goes on with, if it waited. */
export const begun = (run: Run.Run, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isResumed = run.batch !== undefined
    watch.isOpen = true
    watch.take([{ _tag: "RunStart", runId: run.id, agent: run.agent, isResumed }])
    return isResumed ? turnStart(run, watch) : watch.told
  })

export const turnStart = (run: Run.Run, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.suspend(() => {
    watch.turn = run.turns.length
    watch.take([{ _tag: "TurnStart", turn: watch.turn }])
    return watch.told
  })

export const turnEnd = (run: Run.Run, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.suspend(() => {
    endTurn(run, watch)
    return watch.told
  })

/** Ends the turn that was shown to begin, if it has not ended. */
const endTurn = (run: Run.Run, watch: Watch.Watch): void => {
  const { turn } = watch
  if (turn === undefined) return
  watch.turn = undefined
  const record = run.turns[turn]
  watch.take([{ _tag: "TurnEnd", turn, ...(record === undefined ? {} : { record }) }])
}

/** A run ended, whichever way; what it had begun has ended with it. */
export const over = <A>(
  run: Run.Run,
  watch: Watch.Watch,
  exit: Exit.Exit<Ending.Result<A>, unknown>
): Effect.Effect<void> =>
  Effect.flatMap(Run.ended(run), ({ runId, text, usage }) => {
    if (watch.isOpen) {
      watch.isOpen = false
      endTurn(run, watch)
      watch.take([{ _tag: "RunEnd", runId, ...wayOf(exit), text, usage }])
    }
    return Exit.isSuccess(exit) ? watch.told : watch.last
  })

const wayOf = (exit: Exit.Exit<Ending.Result, unknown>): Pick<typeof Event.RunEnd.Type, "end" | "reason"> => {
  if (Exit.isFailure(exit)) {
    const error = Result.getOrUndefined(Exit.findError(exit))
    return error === undefined && Exit.hasInterrupts(exit)
      ? { end: "Cancelled" }
      : { end: "Failed", reason: nameOf(error) }
  }
  const result = exit.value
  switch (result._tag) {
    case "LimitReached":
      return { end: result._tag, reason: result.limit }
    case "Paused":
    case "Refused":
      return { end: result._tag, reason: result.reason }
    default:
      return { end: result._tag }
  }
}

// What an error says may be secret, so a watcher gets its name.
const nameOf = (error: unknown): string => {
  if (error instanceof Ending.ModelFailed) return `${error._tag}: ${error.reason.reason._tag}`
  if (typeof error !== "object" || error === null) return error === undefined ? "defect" : "error"
  return "_tag" in error ? String(error._tag) : error.constructor.name
}

/** Asks the model before watchers. A provider that does not stream is shown as one piece. */
export const asking = (
  ask: Provider.Ask,
  request: Provider.Request,
  watch: Watch.Watch,
  run: Run.Run
): Effect.Effect<Provider.Reply, AiError.AiError> => {
  const { all, deltas } = watch
  const turn = run.turns.length
  const show = (delta: Provider.Delta): ReadonlyArray<Watch.Happening> => {
    if (delta.type !== "input") return [{ _tag: tags[delta.type], turn, delta: delta.delta }]
    if (!all) return []
    const { id, name } = delta
    return [{ _tag: "InputDelta", turn, callId: Run.hearing(run, id, delta.part), tool: name, delta: delta.delta }]
  }
  let streamed = false
  const sink: Provider.Sink | undefined = deltas
    ? (pieces) => {
      streamed ||= pieces.some(({ type }) => type !== "input")
      return Watch.emit(watch, ...pieces.flatMap(show))
    }
    : undefined
  const asked = Effect.flatMap(ask(request, sink), (reply) => {
    const whole = deltas && !streamed ? wholeOf(reply, turn) : []
    const { warnings = [] } = reply
    const said = warnings.length === 0 ? whole : [...whole, { _tag: "Warning" as const, turn, warnings }]
    return said.length === 0 ? Effect.succeed(reply) : Effect.as(Watch.emit(watch, ...said), reply)
  })
  return all
    ? Effect.provideService(asked, Resilience.Retrying, (attempt, error) => retried(run, attempt, error))
    : asked
}

/** A request of the turn is made again, or another in its place. */
export const retried = (
  { turns, watch }: Run.Run,
  attempt: number,
  { reason }: AiError.AiError
): Effect.Effect<void> =>
  watch === undefined
    ? Effect.void
    : Watch.emit(watch, { _tag: "Retry", turn: turns.length, attempt, reason: reason._tag })

const tags = { text: "TextDelta", reasoning: "ReasoningDelta" } as const

const wholeOf = ({ content }: Provider.Reply, turn: number): ReadonlyArray<Watch.Happening> =>
  content.flatMap((part) =>
    part.type === "text" || part.type === "reasoning" ? [{ _tag: tags[part.type], turn, delta: part.text }] : []
  )

/** A gate decided about a call. */
export const gated = (
  { turns, watch }: Run.Run,
  { call }: Run.Place,
  decision: (typeof Event.Gate.Type)["decision"],
  reason: string | undefined
): Effect.Effect<void> =>
  watch === undefined ? Effect.void : Watch.emit(watch, {
    _tag: "Gate",
    turn: turns.length,
    callId: call.id,
    tool: call.name,
    decision,
    ...(reason === undefined ? {} : { reason })
  })

/** The calls of a batch that were answered without being run. */
export const unrun = (run: Run.Run, places: ReadonlyArray<Run.Place>, watch: Watch.Watch): Effect.Effect<void> => {
  const turn = run.turns.length
  const happened = places.flatMap((place): ReadonlyArray<Watch.Happening> => {
    if (place.outcome === undefined || place.scope.attempts > 0) return []
    return [{ _tag: "CallStart", turn, call: place.call }, callEnd(turn, place, place.outcome, 0)]
  })
  return Watch.emit(watch, ...happened)
}

/** Answers a call before watchers: one start, and one end whatever happens. */
export const answering = (
  begin: (running: Services.Context<never>) => Fiber.Fiber<Turn.Outcome>,
  place: Run.Place,
  watch: Watch.Watch,
  run: Run.Run
): Effect.Effect<Turn.Outcome> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.clockWith((clock) => {
      const { call, scope } = place
      const turn = run.turns.length
      const of = { turn, callId: call.id, tool: call.name }
      const from = clock.currentTimeMillisUnsafe()
      if (watch.all) scope.report = (report) => Watch.emit(watch, { ...report, ...of })
      watch.take([{ _tag: "CallStart", turn, call }])
      const answered = Effect.map(SideBySide.one(begin, () => Failing.lost(scope)), (outcome) => {
        // Recorded before anybody is told, so that what was shown and what is kept are the same.
        place.outcome = outcome
        return outcome
      })
      return Effect.onExit(restore(Effect.andThen(watch.told, answered)), (exit) => {
        const outcome = Run.outcomeOf(place, "the run ended before it was run")
        watch.take([callEnd(turn, place, outcome, clock.currentTimeMillisUnsafe() - from)])
        return Exit.isSuccess(exit) ? restore(watch.told) : watch.last
      })
    })
  )

const callEnd = (turn: number, place: Run.Place, outcome: Turn.Outcome, durationMs: number): Watch.Happening => ({
  _tag: "CallEnd",
  turn,
  call: Run.callOf(place),
  outcome,
  attempts: place.scope.attempts,
  durationMs,
  preview: preview(outcome),
  isError: Turn.isError(outcome)
})

/** The first 200 characters of what a model is told of an outcome. */
const preview = (outcome: Turn.Outcome): string => {
  const told = Turn.told(outcome)
  return Text.excerpt(typeof told === "string" ? told : JSON.stringify(told) ?? "", 200)
}

/** Tells what a batch folded to. Writes that a combiner threw on are warned of, watched or not. */
export const folded = Effect.fnUntraced(function*(
  run: Run.Run,
  { before, dropped }: Run.Settled
): Effect.fn.Return<void> {
  for (const { error, id } of dropped) {
    yield* Log.safely(Effect.logWarning(`the writes of call ${id} did not fold and are lost`, error))
  }
  const { watch } = run
  const turn = run.turns.at(-1)
  const context = Ref.getUnsafe(run.context)
  if (watch === undefined || !watch.all || turn === undefined || (before === context && dropped.length === 0)) return
  const lost = dropped.map(({ id }) => id)
  const writes = turn.outcomes.flatMap((outcome, at) =>
    outcome._tag === "Success" && !lost.includes(turn.calls[at]?.id ?? "") ? outcome.writes : []
  )
  // What does not encode is not shown; whoever keeps it is told why.
  const slots = yield* Effect.match(Context.encode(Context.changes(before, context)), {
    onSuccess: (encoded) => encoded.slots,
    onFailure: () => ({})
  })
  yield* Watch.emit(watch, { _tag: "Fold", turn: turn.index, writes, slots, dropped: lost })
})

/** A run waits. */
export const paused = (
  { turns, watch }: Run.Run,
  reason: typeof Pause.Reason.Type,
  pending: ReadonlyArray<Pause.Pending>
): Effect.Effect<void> =>
  watch === undefined ? Effect.void : Watch.emit(watch, { _tag: "Pause", turn: turns.length, reason, pending })
