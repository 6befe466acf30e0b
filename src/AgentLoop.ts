/**
 * How does an agent work? It asks the model, answers the calls that the model makes, folds what they wrote, and decides
 * whether to go on.
 *
 * There is one loop, with an optional watch for what happens: `run` gives it the observers that it was given, or none,
 * and then no event is built; `stream` gives it a queue.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Cause from "effect/Cause"
import type * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Ref from "effect/Ref"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Budget from "./Budget.ts"
import * as Context from "./Context.ts"
import type * as Events from "./Event.ts"
import * as Desk from "./internal/desk.ts"
import * as Gating from "./internal/gating.ts"
import * as Id from "./internal/id.ts"
import * as Log from "./internal/log.ts"
import * as Observe from "./internal/observe.ts"
import * as Pausing from "./internal/pausing.ts"
import * as Repeats from "./internal/repeats.ts"
import * as Run from "./internal/run.ts"
import * as SideBySide from "./internal/sideBySide.ts"
import type * as Pause from "./Pause.ts"
import * as PauseStore from "./PauseStore.ts"
import * as Pricing from "./Pricing.ts"
import * as Ending from "./Result.ts"
import type { Registry, ToolRegistry } from "./ToolRegistry.ts"
import type * as Turn from "./Turn.ts"

export { type Agent, type Before, isAgent, make, type Options, type Override, type Prepare } from "./Agent.ts"
export {
  type Cancelled,
  type Completed,
  type Ended,
  type LimitReached,
  ModelFailed,
  type Paused,
  type Refused,
  type Result
} from "./Result.ts"

/**
 * What a run is given.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions<R = never> extends Observe.Observers<R> {
  /** What is asked: text, or messages, with images and files. */
  readonly prompt?: Prompt.RawInput | undefined
  /** The transcript that it follows on. It is healed: every call gets its one result. */
  readonly messages?: Prompt.RawInput | ReadonlyArray<Prompt.Message> | undefined
  /** What the agent remembers at the start. Default: the initial values of every slot. */
  readonly context?: Context.Context | undefined
  /** What it may spend, or a budget that it shares; goes before that of the agent. */
  readonly budget?: Budget.Limits | Budget.Budget | undefined
}

/**
 * What `stream` shows: everything that happens, and at the end the result.
 *
 * @category models
 * @since 0.1.0
 */
export type Event = Events.Event | { readonly _tag: "RunEnd"; readonly result: Ending.Result }

/**
 * Runs an agent to its end.
 *
 * **Example** (A tool, an agent, and a scripted model)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const add = Tool.make("add", {
 *   input: { a: Schema.Finite, b: Schema.Finite },
 *   output: Schema.Finite,
 *   handler: ({ a, b }) => Effect.succeed(a + b)
 * })
 *
 * const program = AgentLoop.run(AgentLoop.make("adder"), { prompt: "What is 40 + 2?" }).pipe(
 *   Effect.provide(ToolRegistry.layer(add)),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("add", { a: 40, b: 2 })], "It is 42."))
 * )
 *
 * const result = await Effect.runPromise(program)
 * result._tag // => "Completed"
 * result.text // => "It is 42."
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <E, R, RO = never>(
  agent: Agent<E, R>,
  options: RunOptions<RO>
): Effect.Effect<Ending.Result, Ending.ModelFailed | E, R | RO | ToolRegistry> =>
  withModel(
    agent,
    Effect.flatMap(prepare(agent, options), (run) => loop(agent, run, Observe.make(options), options.budget))
  )

/**
 * Runs an agent and shows what happens while it does; the last event is the result. The run waits while nobody takes the
 * events, and is cancelled with the stream.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <E, R, RO = never>(
  agent: Agent<E, R>,
  options: RunOptions<RO>
): Stream.Stream<Event, Ending.ModelFailed | E, R | RO | ToolRegistry> =>
  Stream.callback<Event, Ending.ModelFailed | E, R | RO | ToolRegistry>((queue) => {
    const own = Observe.make(options)
    const watch: Observe.Watch = {
      deltas: true,
      emit: (events) => Effect.andThen(own?.emit(events) ?? Effect.void, Queue.offerAll(queue, events)),
      // Whoever ended the stream reads no more, so what does not fit is dropped.
      last: (events) =>
        Effect.andThen(own?.last(events) ?? Effect.void, Effect.sync(() => Queue.offerAllUnsafe(queue, events)))
    }
    return withModel(agent, Effect.flatMap(prepare(agent, options), (run) => loop(agent, run, watch, options.budget)))
      .pipe(
        Effect.flatMap((result) => Queue.offer(queue, { _tag: "RunEnd", result })),
        Effect.matchCauseEffect({
          onFailure: (cause) => Queue.failCause(queue, cause),
          onSuccess: () => Queue.end(queue)
        })
      )
  }, { bufferSize: 64, strategy: "suspend" })

/**
 * A run that goes on by itself, in the scope that it was started in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Handle<out E> {
  /** How the run ends; `Cancelled` if it was cancelled. */
  readonly await: Effect.Effect<Ending.Result, Ending.ModelFailed | E>
  /** Ends the run and gives what it had: a valid transcript, and the results and writes of the calls that finished. */
  readonly cancel: Effect.Effect<Ending.Result, Ending.ModelFailed | E>
  /** What the run has so far, in whole turns. */
  readonly partial: Effect.Effect<Ending.Ended>
}

/**
 * Starts an agent and gives a handle on it.
 *
 * @category running
 * @since 0.1.0
 */
export const start = <E, R, RO = never>(
  agent: Agent<E, R>,
  options: RunOptions<RO>
): Effect.Effect<Handle<E>, E, R | RO | ToolRegistry | Scope.Scope> =>
  Effect.gen(function*() {
    const run = yield* prepare(agent, options)
    let cancelled = false
    const fiber = yield* Effect.forkScoped(withModel(agent, loop(agent, run, Observe.make(options), options.budget)))
    const cancelling = Effect.sync(() => {
      cancelled = true
    })
    yield* Effect.addFinalizer(() => cancelling)
    const last = Effect.flatMap(Fiber.await(fiber), (exit) =>
      cancelled && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        ? Effect.andThen(reportOthers(exit.cause), cancelledAs(run))
        : exit)
    return {
      await: last,
      cancel: Effect.andThen(Effect.andThen(cancelling, Fiber.interrupt(fiber)), last),
      partial: Effect.suspend(() =>
        ended(run)
      )
    }
  })

const cancelledAs = (run: Run.Run): Effect.Effect<Ending.Result> =>
  Effect.map(ended(run), (end) => ({ _tag: "Cancelled", ...end }))

// What else went wrong while a run was cancelled is no reason to lose what the run had.
const reportOthers = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Log.safely(Effect.logWarning("a cancelled run failed while it was ending", cause))

/**
 * What a resumed run is given. `slots` are classes of slots that the run began with and no tool needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeOptions<R = never> extends Observe.Observers<R> {
  readonly slots?: ReadonlyArray<Context.AnySlots> | undefined
  readonly budget?: RunOptions["budget"]
}

/**
 * Goes on with a paused run, in this process or another, with the same agent and registry. There must be one decision for
 * each call that waits; all of it is checked before anything runs, and a pause is resumed once.
 *
 * **Example** (A payment that somebody approves with another amount)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as Pause from "toolfold/Pause"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const pay = Tool.make("pay", {
 *   input: { amount: Schema.Finite },
 *   sensitive: true,
 *   handler: ({ amount }) => Effect.succeed(`paid ${amount}`)
 * })
 * const bot = AgentLoop.make("bot")
 *
 * const program = Effect.gen(function*() {
 *   const paused = yield* AgentLoop.run(bot, { prompt: "Pay 90" })
 *   if (paused._tag !== "Paused") return paused
 *   return yield* AgentLoop.resume(bot, paused, { [paused.pending[0]!.id]: Pause.approveWith({ amount: 80 }) })
 * }).pipe(
 *   Effect.provide(ToolRegistry.layer(pay)),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("pay", { amount: 90 })], "Done."))
 * )
 *
 * const result = await Effect.runPromise(program)
 * result.text // => "Done."
 * result.turns[0]!.outcomes[0] // => { _tag: "Success", value: "paid 80", writes: [] }
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const resume = <E, R, RO = never>(
  agent: Agent<E, R>,
  paused: Ending.Paused | Pause.Encoded,
  decisions: Pause.Decisions,
  options: ResumeOptions<RO> = {}
): Effect.Effect<Ending.Result, Ending.ModelFailed | Pause.ResumeRefused | E, R | RO | ToolRegistry> =>
  withModel(
    agent,
    Effect.flatMap(
      Desk.reopen(agent, isPaused(paused) ? paused.state : paused, decisions, options.slots ?? []),
      (run) => loop(agent, run, Observe.make(options), options.budget)
    )
  )

const isPaused = (paused: Ending.Paused | Pause.Encoded): paused is Ending.Paused =>
  typeof paused === "object" && paused !== null && "_tag" in paused && paused["_tag"] === "Paused"

const withModel = <A, EA, E, R, RA>(
  agent: Agent<E, R>,
  effect: Effect.Effect<A, EA, RA>
): Effect.Effect<A, EA | E, R | Exclude<RA, LanguageModel.LanguageModel>> =>
  // Without a model of its own an agent's `R` says that it needs one.
  (agent.model === undefined ? effect : Effect.provide(effect, agent.model)) as Effect.Effect<
    A,
    EA | E,
    R | Exclude<RA, LanguageModel.LanguageModel>
  >

const prepare = <E, R>(agent: Agent<E, R>, options: RunOptions<unknown>): Effect.Effect<Run.Run, E, R> =>
  Effect.flatMap(
    Effect.isEffect(agent.instructions) ? agent.instructions : Effect.succeed(agent.instructions),
    (instructions) =>
      Effect.map(Id.fresh, (id) => {
        const messages = [...messagesOf(options.messages ?? []), ...messagesOf(options.prompt ?? [])]
        const run = Run.make(id, instructions, messages, options.context ?? Context.empty)
        if (run.messages.length === run.first) {
          throw new Error(`agent ${JSON.stringify(agent.name)}: a run needs a prompt or messages that are not blank`)
        }
        return run
      })
  )

const messagesOf = (input: Prompt.RawInput | ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  Array.isArray(input) && input.every(isMessage) ? input : Prompt.make(input as Prompt.RawInput).content

const isMessage = (u: object): u is Prompt.Message => "~effect/ai/Prompt/Message" in u

const loop = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  watch: Observe.Watch | undefined,
  budget: RunOptions["budget"] = agent.budget
): Effect.Effect<Ending.Result, Ending.ModelFailed, LanguageModel.LanguageModel | ToolRegistry> => {
  const whole = Desk.within(budget, run, Desk.scoped(agent, turns(agent, run, watch))).pipe(
    Effect.catch((error) => Effect.flatMap(ended(run), (partial) => Effect.fail(failure(error, partial)))),
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && run.batch !== undefined
        ? Effect.sync(() => run.batch && Run.settle(run, run.batch, "the run ended before it was run"))
        : Effect.void
    )
  )
  return agent.runTimeout === undefined ? whole : Effect.timeoutOrElse(whole, {
    duration: agent.runTimeout,
    orElse: () => Effect.map(ended(run), (end) => ({ ...limited("time"), ...end }))
  })
}

// An error of the agent's own code is one that its type says.
const failure = (error: AiError.AiError | Desk.Unprepared, partial: Ending.Ended): Ending.ModelFailed =>
  error instanceof Desk.Unprepared
    ? error.error as Ending.ModelFailed
    : new Ending.ModelFailed({ reason: error, partial })

const turns = Effect.fnUntraced(
  function*(agent: Agent<unknown, unknown>, run: Run.Run, watch: Observe.Watch | undefined) {
    const desk = yield* Desk.open(agent, watch)
    while (run.batch !== undefined || run.turns.length < agent.maxTurns) {
      if (run.batch === undefined) {
        if (desk.budget !== undefined && !Budget.takeRequest(desk.budget)) break
        run.batch = Run.hear(run, yield* Desk.ask(desk, agent, run))
        if (desk.budget !== undefined) yield* Desk.charge(desk, run.batch.usage)
      }
      const { batch } = run
      const halt = halts(agent, run, batch)
      if (halt === undefined && batch.places.length > 0) {
        const paused = yield* answer(agent, run, batch, desk)
        if (paused !== undefined) return paused
      }
      const settled = Run.settle(run, batch, halt === undefined ? "it was not answered" : reasons[halt])
      if (watch !== undefined || settled.dropped.length > 0) yield* Observe.folded(run, settled, watch)
      const end = decide(agent, run, batch, halt, settled.isAnswer)
      if (end !== undefined) return { ...end, ...(yield* ended(run)) }
    }
    return { ...limited(run.turns.length < agent.maxTurns ? "budget" : "turns"), ...(yield* ended(run)) }
  }
)

const ended = (run: Run.Run): Effect.Effect<Ending.Ended> =>
  Effect.map(Pricing.Pricing, (pricing) => Run.end(run, pricing))

/** Answers what may run of a batch, once all of it is gated. Gives the end of the run where something waits. */
const answer = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  desk: Desk.Desk
): Effect.Effect<Ending.Paused | undefined> =>
  Gating.isNeeded(agent, batch, desk.registry)
    ? Effect.flatMap(Gating.gate(agent, run, batch, desk.registry), (waiting) =>
      waiting.length > 0 ? paused(agent, run, batch, desk, "approval", waiting) : answerOpen(agent, run, batch, desk))
    : answerOpen(agent, run, batch, desk)

const answerOpen = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  desk: Desk.Desk
): Effect.Effect<Ending.Paused | undefined> =>
  Effect.flatMap(runOpen(agent, run, batch, desk), () => {
    const failed = agent.onEnvironmentError === "pause" ? Gating.failed(batch) : []
    return failed.length > 0 ? paused(agent, run, batch, desk, "environment", failed) : Effect.succeed(undefined)
  })

const paused = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  { registry }: Desk.Desk,
  reason: Ending.Paused["reason"],
  waiting: ReadonlyArray<Gating.Waiting>
): Effect.fn.Return<Ending.Paused> {
  const state = yield* Pausing.encode(agent.name, run, batch, registry, reason, waiting)
  run.batch = undefined
  const pending = Pausing.pendingOf(registry, waiting)
  const store = yield* PauseStore.PauseStore
  yield* Effect.catch(
    store.put({ id: Run.pauseId(run), agent: agent.name, runId: run.id, reason, pending }, state),
    // Whoever ran it has the state all the same.
    (error) => Log.safely(Effect.logWarning("a pause was not kept", error))
  )
  return { _tag: "Paused", reason, pending, state, ...(yield* ended(Pausing.shownOf(run, batch))) }
})

const runOpen = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  { budget, registry, watch }: Desk.Desk
): Effect.Effect<void> => {
  batch.isDirect = batch.places.every(({ call }) => registry.isReturnDirect(call.name))
  const open = batch.places.every(isOpen) ? batch.places : batch.places.filter(isOpen)
  const left = Math.max(0, agent.maxToolCalls - run.toolCalls)
  const allowed = budget === undefined ? left : Budget.takeCalls(budget, Math.min(left, open.length))
  run.toolCalls += open.length
  if (allowed < open.length) run.isOut = left < open.length ? "tool-calls" : "budget"
  const begin = (place: Run.Place, at: number, running: Services.Context<never>): Fiber.Fiber<Turn.Outcome> => {
    place.started = true
    return at < allowed
      ? registry.begin(place.call, place.scope, running)
      : Effect.runFork(Effect.succeed(tooMany))
  }
  return SideBySide.run(
    open,
    atATime(agent, open, registry),
    watch === undefined ?
      begin :
      (place, at, running) =>
        Effect.runForkWith(running)(Observe.answering((running) => begin(place, at, running), place, watch, run)),
    (place, outcome) => {
      place.outcome = outcome
    }
  )
}

const isOpen = ({ outcome }: Run.Place): boolean => outcome === undefined

const atATime = (
  { concurrency }: Agent<unknown, unknown>,
  places: ReadonlyArray<Run.Place>,
  registry: Registry
): number =>
  concurrency === "sequential" || places.some(({ call }) => registry.isSerial(call.name))
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

/** Why the calls of a batch do not run. */
type Halt = "refused" | "stopped"

const halts = (
  { stop }: Agent<unknown, unknown>,
  run: Run.Run,
  { finish, places, text }: Run.Batch
): Halt | undefined => {
  if (finish === "length" || finish === "content-filter" || finish === "error") return "refused"
  if (stop === undefined || places.length === 0) return undefined
  const at = { context: Ref.getUnsafe(run.context), text, asked: places.map(({ call }) => call) }
  return stop(run.turns, at) ? "stopped" : undefined
}

const reasons = {
  refused: "the model's answer was cut off, so no call of it was run",
  stopped: "the run was stopped before its calls were run"
}

/** Which way a run ends, without what every end carries. */
type Way<Ended = Ending.Result> = Ended extends Ended ? Omit<Ended, keyof Ending.Ended> : never

const decide = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  halt: Halt | undefined,
  isAnswer: boolean
): Way | undefined => {
  if (halt === "refused") return { _tag: "Refused", reason: batch.finish }
  // A paused answer goes on when the model is asked again.
  if (halt === "stopped" || (batch.places.length === 0 && batch.finish !== "pause")) return completed
  if (isAnswer) return { ...completed, direct: true }
  for (const { outcome } of batch.places) {
    if (outcome?._tag === "Success") run.errorsInARow = 0
    else if (outcome?._tag === "Failure" || outcome?._tag === "Interrupted") run.errorsInARow++
  }
  if (run.isOut !== undefined) return limited(run.isOut)
  if (run.errorsInARow >= agent.maxConsecutiveToolErrors) return limited("tool-errors")
  if (run.turns.length < agent.maxTurns && Repeats.isCircling(run.turns, agent.maxRepeats)) return limited("repeats")
  const { stop } = agent
  return stop?.(run.turns, { context: Ref.getUnsafe(run.context), text: batch.text, asked: [] })
    ? completed
    : undefined
}

const completed = { _tag: "Completed" } as const

const limited = (limit: Ending.LimitReached["limit"]) => ({ _tag: "LimitReached", limit }) as const
