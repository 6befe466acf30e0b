/**
 * What holds for a run whatever happens in its turns? It has the budget, the time and the watchers that it was given, and at its
 * end, whichever that is, its last turn is closed, what there is is kept, and everybody is told.
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Agent } from "../Agent.ts"
import * as Ending from "../Result.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"
import * as Desk from "./desk.ts"
import * as Nested from "./nested.ts"
import * as Observe from "./observe.ts"
import * as Observers from "./observers.ts"
import type * as Opening from "./opening.ts"
import type * as Reopening from "./reopening.ts"
import * as Run from "./run.ts"
import * as Threading from "./threading.ts"
import type * as Watch from "./watch.ts"

/** What of the options of a run is about its edges. */
export interface Options extends Pick<Opening.RunOptions<unknown>, "budget" | "onPartial"> {}

/** Everything between the edges. */
export type Turns<Result> = Effect.Effect<
  Result,
  AiError.AiError | Desk.Unprepared,
  LanguageModel.LanguageModel | ToolRegistry
>

/** For a run whose fiber is not interruptible outside of it. */
export const cancellable: Reopening.Protected = { before: undefined, restore: Effect.interruptible }

const unprotected: Reopening.Protected = { before: undefined, restore: (effect) => effect }

/** Runs the turns of a run between its edges. */
export const around = <A>(
  agent: Agent<unknown, unknown, A>,
  run: Run.Run,
  watch: Watch.Watch | undefined,
  turns: Turns<Ending.Result<A>>,
  options: Options = {},
  { before, restore }: Reopening.Protected = unprotected
): Effect.Effect<Ending.Result<A>, Ending.ModelFailed, LanguageModel.LanguageModel | ToolRegistry> => {
  const asking = before === undefined ? turns : Effect.andThen(before, turns)
  const running = watch === undefined ? asking : Effect.andThen(Effect.suspend(watch.told), asking)
  const rested = run.thread === undefined ? running : Effect.tap(running, () => Desk.rest(run))
  const whole = Effect.catch(
    Desk.within(options.budget ?? agent.budget, run, Desk.scoped(agent, rested)),
    (error) => Effect.flatMap(Run.ended(run), (partial) => Effect.fail(failure(error, partial)))
  )
  const timed: typeof whole = agent.runTimeout === undefined ? whole : Effect.timeoutOrElse(whole, {
    duration: agent.runTimeout,
    orElse: () =>
      Effect.andThen(close(run), Effect.map(Run.ended(run), (end) => ({ ...Ending.limited("time"), ...end })))
  })
  return Effect.onExit(restore(Nested.probed(run, watched(run, watch, timed))), (exit) => {
    if (Exit.isSuccess(exit) || run.shown !== undefined) return Effect.void
    const closed = options.onPartial === undefined ? close(run) : Effect.andThen(
      close(run),
      Effect.flatMap(Run.ended(run), (partial) => Observers.partial(options, partial))
    )
    return watch === undefined ? closed : Effect.andThen(closed, Observe.over(run, watch, exit))
  })
}

const watched = <A, E, R>(
  run: Run.Run,
  watch: Watch.Watch | undefined,
  running: Effect.Effect<Ending.Result<A>, E, R>
): Effect.Effect<Ending.Result<A>, E, R> => {
  if (watch === undefined) return running
  run.watch = watch
  return Effect.withFiber(({ context }) => {
    Observe.begin(run, watch, context)
    return Effect.tap(running, (result) => Observe.over(run, watch, Exit.succeed(result)))
  })
}

/** Closes a turn that was cut off, and keeps what there is. */
const close = (run: Run.Run): Effect.Effect<void> =>
  Effect.suspend(() => {
    const settled = run.batch && Run.settle(run, run.batch, "the run ended before it was run")
    const rested = run.thread === undefined ? Effect.void : Threading.appendLast(run, run.thread)
    return settled === undefined || (run.watch === undefined && settled.dropped.length === 0)
      ? rested
      : Effect.andThen(Observe.folded(run, settled), rested)
  })

// An error of the agent's own code is one that its type says.
const failure = (error: AiError.AiError | Desk.Unprepared, partial: Ending.Ended): Ending.ModelFailed =>
  error instanceof Desk.Unprepared
    ? error.error as Ending.ModelFailed
    : new Ending.ModelFailed({ reason: error, partial })
