/**
 * How are the calls of a batch answered? Gated first, all of them; then run, so many at a time; and where something waits the
 * run ends as paused.
 */
import type * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Agent } from "../Agent.ts"
import * as Budget from "../Budget.ts"
import * as PauseStore from "../PauseStore.ts"
import type * as Ending from "../Result.ts"
import * as Tool from "../Tool.ts"
import type { Registry } from "../ToolRegistry.ts"
import type * as Turn from "../Turn.ts"
import * as Desk from "./desk.ts"
import * as Failing from "./failing.ts"
import * as Gating from "./gating.ts"
import * as Log from "./log.ts"
import * as Observe from "./observe.ts"
import * as Pausing from "./pausing.ts"
import type * as Probe from "./probe.ts"
import * as Run from "./run.ts"
import * as SideBySide from "./sideBySide.ts"

/** Answers a batch. Gives the end of the run where something waits. */
export const answer = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  desk: Desk.Desk
): Effect.Effect<Ending.Paused | undefined, Desk.Unprepared> =>
  Gating.isNeeded(agent, batch, desk.registry)
    ? gated(agent, run, batch, desk)
    : running(agent, run, batch, desk, batch.isResumed === true ? batch.places.filter(isOpen) : batch.places)

const gated = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  desk: Desk.Desk
): Effect.Effect<Ending.Paused | undefined, Desk.Unprepared> =>
  Effect.flatMap(Gating.gate(agent, run, batch, desk.registry), (waiting) => {
    const goes = waiting.length > 0
      ? paused(run, batch, desk, waiting)
      : running(agent, run, batch, desk, batch.places.filter(isOpen))
    return run.watch === undefined ? goes : Effect.andThen(Observe.unrun(run, batch.places, run.watch), goes)
  })

const answered = (
  { agent, batch, desk, run }: Answering
): Effect.Effect<Ending.Paused | undefined, Desk.Unprepared> => {
  if (agent.onEnvironmentError === "proceed" && !run.hasWaited) return goesOn
  const failed = agent.onEnvironmentError === "pause" ? Gating.failed(batch) : []
  const within = Gating.waitingWithin(batch)
  return failed.length + within.length > 0 ? paused(run, batch, desk, [...within, ...failed]) : goesOn
}

const goesOn = Effect.succeed(undefined)

const paused = Effect.fnUntraced(function*(
  run: Run.Run,
  batch: Run.Batch,
  { registry }: Desk.Desk,
  waiting: ReadonlyArray<Gating.Waiting>
): Effect.fn.Return<Ending.Paused, Desk.Unprepared> {
  // What was asked is in the thread before anybody can go on from here.
  yield* Desk.rest(run)
  const pending = Pausing.pendingOf(run, registry, waiting)
  const reason = pending.some(({ waitsFor }) => waitsFor === "approval") ? "approval" : "environment"
  const state = yield* Pausing.encode(run, batch, reason, pending)
  run.batch = undefined
  if (!run.isNested) {
    const store = yield* PauseStore.PauseStore
    yield* Effect.catch(
      store.put({ id: Run.pauseId(run), agent: run.agent, runId: run.id, reason, pending }, state),
      // Whoever ran it has the state all the same.
      (error) => Log.safely(Effect.logWarning("a pause was not kept", error))
    )
  }
  yield* Observe.paused(run, reason, pending)
  return { _tag: "Paused", reason, pending, state, ...(yield* Run.ended(Pausing.shownOf(run, batch))) }
})

/** A batch whose calls run. */
interface Answering {
  readonly agent: Agent<unknown, unknown>
  readonly run: Run.Run
  readonly batch: Run.Batch
  readonly desk: Desk.Desk
  /** Calls for which nothing is left of what may be called. */
  readonly beyond: ReadonlyArray<Run.Place>
}

/** Runs the calls of a batch that are open. */
const running = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  desk: Desk.Desk,
  open: ReadonlyArray<Run.Place>
): Effect.Effect<Ending.Paused | undefined, Desk.Unprepared> => {
  const { budget, registry } = desk
  batch.isDirect = !registry.isSimple && batch.places.every(({ call }) => registry.isReturnDirect(call.name))
  // One that goes on was counted when it began.
  const fresh = batch.isResumed === true ? open.filter(({ isCounted }) => isCounted !== true) : open
  const beyond = beyondLimits(agent, run, fresh, budget, registry)
  return SideBySide.run(open, atATime(agent, open, registry), calls, { agent, run, batch, desk, beyond })
}

const begin = ({ beyond, desk }: Answering, place: Run.Place, running: Services.Context<never>) => {
  place.started = true
  return beyond.length === 0 || !beyond.includes(place)
    ? desk.registry.begin(place.call, place.scope, running)
    : Effect.runFork(Effect.succeed(tooMany))
}

// Who is watched or measured has a fiber around that of its call.
const beginWatched = (
  at: Answering,
  place: Run.Place,
  running: Services.Context<never>
): Fiber.Fiber<Turn.Outcome> => {
  const { desk: { probe, registry }, run } = at
  const { watch } = run
  const inner = (running: Services.Context<never>) => begin(at, place, running)
  const answered = watch === undefined
    ? SideBySide.one(inner, () => Failing.lost(place.scope))
    : Observe.answering(inner, place, watch, run)
  return Effect.runForkWith(running)(
    probe === undefined ? answered : probe.call(aboutOf(run, place, registry), answered)
  )
}

const calls: SideBySide.Work<Answering, Run.Place, Turn.Outcome, Ending.Paused | undefined, Desk.Unprepared> = {
  begin: (at, place, running) =>
    (at.run.watch === undefined && at.desk.probe === undefined ? begin : beginWatched)(at, place, running),
  ended: (_, place, outcome) => {
    place.outcome = outcome
  },
  lost: ({ scope }) => Failing.lost(scope),
  next: answered
}

const aboutOf = ({ agent, id, turns }: Run.Run, { call }: Run.Place, registry: Registry): Probe.AboutCall => {
  const tool = registry.get(call.name)
  return {
    agent,
    runId: id,
    turn: turns.length,
    call,
    tool,
    description: tool === undefined ? undefined : Tool.schema(tool).description
  }
}

/** Takes calls from what may still be made, in call order, and gives those for which nothing is left. */
const beyondLimits = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  fresh: ReadonlyArray<Run.Place>,
  budget: Budget.Budget | undefined,
  registry: Registry
): ReadonlyArray<Run.Place> => {
  const left = Math.max(0, agent.maxToolCalls - run.toolCalls)
  const allowed = budget === undefined ? left : Budget.takeCalls(budget, Math.min(left, fresh.length))
  run.toolCalls += fresh.length
  const beyond = registry.isSimple ? none : beyondMost(run, fresh, registry)
  if (allowed < fresh.length) run.isOut = left < fresh.length ? "tool-calls" : "budget"
  if (beyond.length > 0) run.isOut = "tool-calls"
  return allowed < fresh.length ? [...fresh.slice(allowed), ...beyond] : beyond
}

/** The calls of a batch that are more than their tools may be called. */
const beyondMost = (
  { turns }: Run.Run,
  open: ReadonlyArray<Run.Place>,
  registry: Registry
): ReadonlyArray<Run.Place> => {
  const isLimited = ({ call }: Run.Place) => registry.maxCalls(call.name) !== undefined
  if (!open.some(isLimited)) return none
  const limited = open.filter(isLimited)
  const before = (name: string) =>
    turns.reduce((sum, { calls }) => sum + calls.filter((call) => call.name === name).length, 0)
  return limited.filter(({ call: { name } }, at) =>
    before(name) + limited.slice(0, at).filter(({ call }) => call.name === name).length >=
      (registry.maxCalls(name) ?? Infinity)
  )
}

const none: ReadonlyArray<Run.Place> = []

const isOpen = ({ outcome }: Run.Place): boolean => outcome === undefined

const atATime = (
  { concurrency }: Agent<unknown, unknown>,
  places: ReadonlyArray<Run.Place>,
  registry: Registry
): number =>
  concurrency === "sequential" || (!registry.isSimple && places.some(({ call }) => registry.isSerial(call.name)))
    ? 1
    : concurrency === "unbounded"
    ? Infinity
    : concurrency

const tooMany: Turn.Outcome = {
  _tag: "Failure",
  kind: "limit",
  class: "policy",
  message: "Not run: the tool calls that the run may make are used up."
}
