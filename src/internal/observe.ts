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
import type * as Pricing from "../Pricing.ts"
import type * as Provider from "../Provider.ts"
import * as Ending from "../Result.ts"
import * as Turn from "../Turn.ts"
import * as Arriving from "./arriving.ts"
import * as Failing from "./failing.ts"
import * as Log from "./log.ts"
import * as Resilience from "./resilience.ts"
import * as Run from "./run.ts"
import * as SideBySide from "./sideBySide.ts"
import * as Text from "./text.ts"
import * as Watch from "./watch.ts"

/** A run begins among these services, and the turn that it goes on with, if it waited. */
export const begin = (run: Run.Run, watch: Watch.Watch, services: Services.Context<never>): void => {
  const isResumed = run.batch !== undefined
  watch.begin(services)
  watch.take([{ _tag: "RunStart", runId: run.id, agent: run.agent, isResumed }])
  if (isResumed) startTurn(run, watch)
}

export const turnStart = (run: Run.Run, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.suspend(() => {
    startTurn(run, watch)
    return watch.told()
  })

const startTurn = ({ turns }: Run.Run, watch: Watch.Watch): void => {
  watch.turn = turns.length
  watch.attempts = 1
  watch.take([{ _tag: "TurnStart", turn: watch.turn }])
}

export const turnEnd = (run: Run.Run, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.suspend(() => {
    endTurn(run, watch)
    return watch.told()
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
  Effect.flatMap(Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Run.ended(run), (ended) => {
    end(run, watch, ended, wayOf(exit))
    if (Exit.isSuccess(exit)) run.shown = exit.value
    const told = Exit.isSuccess(exit) ? Effect.onInterrupt(watch.told(), watch.last) : watch.last()
    return Effect.ensuring(told, Effect.sync(watch.close))
  })

const end = (
  run: Run.Run,
  watch: Watch.Watch,
  { runId, text, usage }: Pick<Ending.Ended, "runId" | "text" | "usage">,
  way: Pick<typeof Event.RunEnd.Type, "end" | "reason">
): void => {
  endTurn(run, watch)
  watch.take([{ _tag: "RunEnd", runId, ...way, text, usage }])
  watch.isOpen = false
}

/** Ends for whoever watches what an agent has begun within a call that has ended: if it goes on, nobody sees it. */
export const leave = (run: Run.Run, watch: Watch.Watch, pricing: Pricing.Pricing, now: number): void => {
  if (!watch.isOpen) return
  for (const place of run.batch?.places ?? []) endCall(run, place, watch, now)
  end(run, watch, Run.end(run, pricing), { end: "Cancelled" })
}

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
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "error"
}

/** Asks the model before watchers. What of its answer was not shown while it arrived is shown then. */
export const asking = (
  ask: Provider.Ask,
  request: Provider.Request,
  watch: Watch.Watch,
  run: Run.Run
): Effect.Effect<Provider.Reply, AiError.AiError> => {
  const { all, deltas } = watch
  const turn = run.turns.length
  const shown = { text: false, reasoning: false }
  const show = (pieces: ReadonlyArray<Provider.Delta>): ReadonlyArray<Watch.Happening> => {
    const happened: Array<Watch.Happening> = []
    for (const piece of pieces) {
      const { delta, type } = piece
      if (type !== "input") {
        shown[type] = true
        happened.push({ _tag: tags[type], turn, delta, seq: 0, path: Watch.here })
      } else if (all) {
        const callId = Arriving.idOf(run, piece.id, piece.part, watch.attempts)
        happened.push({ _tag: "InputDelta", turn, callId, tool: piece.name, delta, seq: 0, path: Watch.here })
      }
    }
    return happened
  }
  const sink: Provider.Sink = (pieces) =>
    Effect.suspend(() => {
      watch.take(show(pieces))
      return watch.told()
    })
  const asked = Effect.flatMap(
    ask(request, deltas ? sink : undefined),
    (reply) => {
      const { content, warnings = [] } = reply
      const rest = deltas
        ? content.flatMap((part) =>
          (part.type === "text" || part.type === "reasoning") && !shown[part.type]
            ? [{ _tag: tags[part.type], turn, delta: part.text }]
            : []
        )
        : []
      const said = [...rest, ...(warnings.length === 0 ? [] : [{ _tag: "Warning" as const, turn, warnings }])]
      return said.length === 0 ? Effect.succeed(reply) : Effect.as(Watch.emit(watch, () => said), reply)
    }
  )
  return all
    ? Effect.provideService(asked, Resilience.Retrying, (error) => retried(run, error))
    : asked
}

const tags = { text: "TextDelta", reasoning: "ReasoningDelta" } as const

/** A request of the turn is made again, or another in its place. */
export const retried = ({ turns, watch }: Run.Run, { reason }: AiError.AiError): Effect.Effect<void> =>
  watch === undefined
    ? Effect.void
    : Watch.emit(watch, () => [
      { _tag: "Retry", turn: turns.length, attempt: ++watch.attempts, reason: reason._tag }
    ])

/** A gate decided about a call. */
export const gated = (
  { turns, watch }: Run.Run,
  { call }: Run.Place,
  decision: (typeof Event.Gate.Type)["decision"],
  reason: string | undefined
): Effect.Effect<void> =>
  watch === undefined ? Effect.void : Watch.emit(watch, () => [{
    _tag: "Gate",
    turn: turns.length,
    callId: call.id,
    tool: call.name,
    decision,
    ...(reason === undefined ? {} : { reason })
  }])

/** The calls of a batch that were answered without being run. */
export const unrun = (run: Run.Run, places: ReadonlyArray<Run.Place>, watch: Watch.Watch): Effect.Effect<void> =>
  Effect.clockWith((clock) => {
    const now = clock.currentTimeMillisUnsafe()
    for (const place of places) {
      if (place.outcome === undefined || place.started) continue
      place.started = true
      startCall(run, place, watch, now)
      endCall(run, place, watch, now)
    }
    return watch.told()
  })

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
      const of = { turn: run.turns.length, callId: call.id, tool: call.name }
      if (watch.all) scope.report = (report) => Watch.emit(watch, () => [{ ...report, ...of }])
      startCall(run, place, watch, clock.currentTimeMillisUnsafe())
      const answered = Effect.map(SideBySide.one(begin, () => Failing.lost(scope)), (outcome) => {
        // Recorded before anybody is told, so that what was shown and what is kept are the same.
        place.outcome = outcome
        return outcome
      })
      return Effect.onExit(restore(Effect.andThen(Effect.suspend(watch.told), answered)), (exit) => {
        // What it says afterwards is of no call.
        scope.open = false
        endCall(run, place, watch, clock.currentTimeMillisUnsafe())
        return Exit.isSuccess(exit) ? restore(Effect.suspend(watch.told)) : watch.last()
      })
    })
  )

const startCall = ({ turns }: Run.Run, place: Run.Place, watch: Watch.Watch, now: number): void => {
  place.shownSince = now
  watch.take([{ _tag: "CallStart", turn: turns.length, call: place.call }])
}

/** Ends a call that was shown to start, and what was shown within it. */
const endCall = ({ turns }: Run.Run, place: Run.Place, watch: Watch.Watch, now: number): void => {
  if (place.shownSince === undefined) return
  for (const end of place.within?.splice(0) ?? []) end(now)
  watch.take([callEnd(turns.length, place, now - place.shownSince)])
  place.shownSince = undefined
}

const callEnd = (turn: number, place: Run.Place, durationMs: number): Watch.Happening => {
  const outcome = Run.pauseWithin(place) === undefined
    ? Run.outcomeOf(place, "the run ended before it was run")
    : waiting
  return {
    _tag: "CallEnd",
    turn,
    call: Run.callOf(place),
    outcome,
    attempts: place.scope.attempts,
    durationMs,
    preview: preview(outcome),
    isError: Turn.isError(outcome)
  }
}

const waiting: Turn.Outcome = { _tag: "Interrupted", stillRunning: false, reason: "an agent within it waits" }

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
  const slots = yield* Effect.matchCauseEffect(Context.encode(Context.changes(before, context)), {
    onSuccess: (encoded) => Effect.succeed(encoded.slots),
    onFailure: (cause) => Effect.as(Log.safely(Effect.logWarning("slots are no JSON, and are not shown", cause)), {})
  })
  watch.take([{ _tag: "Fold", turn: turn.index, writes, slots, dropped: lost }])
})

/** A run waits. */
export const paused = (
  { turns, watch }: Run.Run,
  reason: typeof Pause.Reason.Type,
  pending: ReadonlyArray<Pause.Pending>
): Effect.Effect<void> =>
  watch === undefined ? Effect.void : Watch.emit(watch, () => [{ _tag: "Pause", turn: turns.length, reason, pending }])
