/**
 * How does an agent work? It asks the model, answers the calls that the model makes, folds what they wrote, and decides
 * whether to go on.
 *
 * There is one loop, with an optional watch for what happens: `run` gives it the observers that it was given, or none,
 * and then no event is built; `stream` gives it a queue.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
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
import * as Context from "./Context.ts"
import type * as Events from "./Event.ts"
import * as Id from "./internal/id.ts"
import * as Log from "./internal/log.ts"
import * as Observe from "./internal/observe.ts"
import * as Run from "./internal/run.ts"
import * as SideBySide from "./internal/sideBySide.ts"
import * as Provider from "./Provider.ts"
import * as Ending from "./Result.ts"
import { type Registry, ToolRegistry } from "./ToolRegistry.ts"
import type * as Turn from "./Turn.ts"

export { type Agent, isAgent, make, type Options } from "./Agent.ts"
export {
  type Cancelled,
  type Completed,
  type Ended,
  type LimitReached,
  ModelFailed,
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
  withModel(agent, Effect.flatMap(prepare(agent, options), (run) => loop(agent, run, Observe.make(options))))

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
    return withModel(agent, Effect.flatMap(prepare(agent, options), (run) => loop(agent, run, watch))).pipe(
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
    const fiber = yield* Effect.forkScoped(withModel(agent, loop(agent, run, Observe.make(options))))
    const cancelling = Effect.sync(() => {
      cancelled = true
    })
    yield* Effect.addFinalizer(() => cancelling)
    const ended = Effect.flatMap(Fiber.await(fiber), (exit) =>
      cancelled && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        ? Effect.as(reportOthers(exit.cause), { _tag: "Cancelled", ...end(run) } satisfies Ending.Result)
        : exit)
    return {
      await: ended,
      cancel: Effect.andThen(Effect.andThen(cancelling, Fiber.interrupt(fiber)), ended),
      partial: Effect.sync(() =>
        end(run)
      )
    }
  })

// What else went wrong while a run was cancelled is no reason to lose what the run had.
const reportOthers = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Log.safely(Effect.logWarning("a cancelled run failed while it was ending", cause))

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

const end = (run: Run.Run): Ending.Ended => ({
  runId: run.id,
  text: run.text,
  messages: run.messages.slice(run.first),
  turns: run.turns.slice(),
  usage: run.usage,
  context: Ref.getUnsafe(run.context)
})

/** How one run asks and who answers it; fixed when the run begins. */
interface Desk {
  readonly ask: Provider.Ask
  readonly registry: Registry
  readonly watch: Observe.Watch | undefined
}

const loop = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  watch: Observe.Watch | undefined
): Effect.Effect<Ending.Result, Ending.ModelFailed, LanguageModel.LanguageModel | ToolRegistry> =>
  turns(agent, run, watch).pipe(
    Effect.mapError((reason) => new Ending.ModelFailed({ reason, partial: end(run) })),
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && run.batch !== undefined
        ? Effect.sync(() => run.batch && Run.settle(run, run.batch, "the run ended before it was run"))
        : Effect.void
    )
  )

const turns = Effect.fnUntraced(
  function*(agent: Agent<unknown, unknown>, run: Run.Run, watch: Observe.Watch | undefined) {
    const desk: Desk = {
      ask: Provider.askOf(yield* LanguageModel.LanguageModel),
      registry: yield* offered(agent, yield* ToolRegistry),
      watch
    }
    while (run.turns.length < agent.maxTurns) {
      const reply = yield* ask(agent, run, desk)
      const batch = Run.hear(run, reply)
      run.batch = batch
      const halt = halts(agent, run, batch)
      if (halt === undefined && batch.places.length > 0) yield* answer(agent, run, batch, desk)
      const settled = Run.settle(run, batch, halt === undefined ? "it was not answered" : reasons[halt])
      if (watch !== undefined || settled.dropped.length > 0) yield* Observe.folded(run, settled, watch)
      const result = decide(agent, run, batch, halt, settled.isAnswer)
      if (result !== undefined) return result
    }
    return limited(run, "turns")
  }
)

const offered = (agent: Agent<unknown, unknown>, registry: Registry): Effect.Effect<Registry> =>
  agent.timeout === undefined && agent.offers.length === 0 && typeof agent.toolChoice === "string"
    ? Effect.succeed(registry)
    : narrowed(agent, registry)

const narrowed = Effect.fnUntraced(function*(
  { name, offers, timeout, toolChoice }: Agent<unknown, unknown>,
  all: Registry
): Effect.fn.Return<Registry> {
  let registry = timeout === undefined ? all : all.within(timeout)
  for (const selection of offers) registry = yield* Effect.orDie(registry.select(selection))
  if (typeof toolChoice === "object" && "tool" in toolChoice && registry.get(toolChoice.tool) === undefined) {
    throw new Error(`agent ${JSON.stringify(name)}: toolChoice names ${toolChoice.tool}, which it is not offered`)
  }
  return registry
})

const ask = (agent: Agent<unknown, unknown>, run: Run.Run, { ask, registry, watch }: Desk) => {
  const turn = run.turns.length
  const request = { messages: run.messages, table: registry.table, toolChoice: choice(agent.toolChoice, turn) }
  return watch === undefined ? ask(request) : Observe.asking(ask, request, watch, turn)
}

// What is offered was narrowed when the run began; a choice that forces holds for the first turn.
const choice = (toolChoice: LanguageModel.ToolChoice<string>, turn: number): LanguageModel.ToolChoice<string> => {
  if (turn > 0 || toolChoice === "none") return "auto"
  if (typeof toolChoice === "object" && "oneOf" in toolChoice) return toolChoice.mode ?? "auto"
  return toolChoice
}

const answer = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  { registry, watch }: Desk
): Effect.Effect<void> => {
  const { places } = batch
  const allowed = agent.maxToolCalls - run.toolCalls
  run.toolCalls += places.length
  batch.isDirect = places.every(({ call }) => registry.isReturnDirect(call.name))
  const begin = (place: Run.Place, at: number, running: Services.Context<never>): Fiber.Fiber<Turn.Outcome> => {
    place.started = true
    return at < allowed
      ? registry.begin(place.call, place.scope, running)
      : Effect.runFork(Effect.succeed(tooMany(agent.maxToolCalls)))
  }
  return SideBySide.run(
    places,
    atATime(agent, places, registry),
    watch === undefined ?
      begin :
      (place, at, running) =>
        Effect.runForkWith(running)(Observe.answering((running) => begin(place, at, running), place, watch, run)),
    (place, outcome) => {
      place.outcome = outcome
    }
  )
}

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

const tooMany = (most: number): Turn.Outcome => ({
  _tag: "Failure",
  kind: "limit",
  class: "policy",
  message: `Not run: the run may make ${most} tool calls, and they are used up.`
})

/** Why the calls of a batch do not run. */
type Halt = "refused" | "stopped"

const halts = (
  { stop }: Agent<unknown, unknown>,
  run: Run.Run,
  { places, reply, text }: Run.Batch
): Halt | undefined => {
  if (reply.finish === "length" || reply.finish === "content-filter" || reply.finish === "error") return "refused"
  if (stop === undefined || places.length === 0) return undefined
  const at = { context: Ref.getUnsafe(run.context), text, asked: places.map(({ call }) => call) }
  return stop(run.turns, at) ? "stopped" : undefined
}

const reasons = {
  refused: "the model's answer was cut off, so no call of it was run",
  stopped: "the run was stopped before its calls were run"
}

const decide = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  halt: Halt | undefined,
  isAnswer: boolean
): Ending.Result | undefined => {
  if (halt === "refused") return { _tag: "Refused", reason: batch.reply.finish, ...end(run) }
  // A paused answer goes on when the model is asked again.
  if (halt === "stopped" || (batch.places.length === 0 && batch.reply.finish !== "pause")) return completed(run)
  if (isAnswer) return { ...completed(run), direct: true }
  for (const { outcome } of batch.places) {
    if (outcome?._tag === "Success") run.errorsInARow = 0
    else if (outcome?._tag === "Failure" || outcome?._tag === "Interrupted") run.errorsInARow++
  }
  if (run.toolCalls > agent.maxToolCalls) return limited(run, "tool-calls")
  if (run.errorsInARow >= agent.maxConsecutiveToolErrors) return limited(run, "tool-errors")
  const { stop } = agent
  return stop?.(run.turns, { context: Ref.getUnsafe(run.context), text: batch.text, asked: [] })
    ? completed(run)
    : undefined
}

const completed = (run: Run.Run): Ending.Completed => ({ _tag: "Completed", ...end(run) })

const limited = (run: Run.Run, limit: Ending.LimitReached["limit"]): Ending.Result => ({
  _tag: "LimitReached",
  limit,
  ...end(run)
})
