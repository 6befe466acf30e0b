/**
 * How does an agent work? It asks the model, answers the calls that the model makes, folds what they wrote, and decides
 * whether to go on.
 *
 * There is one loop, with an optional watch for what happens: `run` gives it the observers that it was given, or none,
 * and then no event is built; `stream` gives it whoever reads the stream.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Budget from "./Budget.ts"
import * as Answering from "./internal/answering.ts"
import * as Desk from "./internal/desk.ts"
import * as Edges from "./internal/edges.ts"
import * as FinalAnswer from "./internal/finalAnswer.ts"
import * as Handle from "./internal/handle.ts"
import * as Nested from "./internal/nested.ts"
import * as Observe from "./internal/observe.ts"
import * as Observers from "./internal/observers.ts"
import * as Opening from "./internal/opening.ts"
import * as OwnModel from "./internal/ownModel.ts"
import * as Reopening from "./internal/reopening.ts"
import * as Repeats from "./internal/repeats.ts"
import * as Run from "./internal/run.ts"
import * as Spending from "./internal/spending.ts"
import * as Streaming from "./internal/streaming.ts"
import * as Watch from "./internal/watch.ts"
import type * as Pause from "./Pause.ts"
import * as Ending from "./Result.ts"
import type { ToolRegistry } from "./ToolRegistry.ts"

export { type Agent, type Before, isAgent, make, type Options, type Override, type Prepare } from "./Agent.ts"
export type { Handle } from "./internal/handle.ts"
export { AgentStopped } from "./internal/nested.ts"
export type { ResumeOptions, RunOptions } from "./internal/opening.ts"
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
 * What `stream` shows: everything that happens (`toolfold/Event`), and at the end `Result`.
 *
 * @category models
 * @since 0.1.0
 */
export type Event<A = unknown> = Streaming.Shown<A>

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
export const run = <E, R, A, RO = never, EM = never, RM = never>(
  agent: Agent<E, R, A>,
  options: Opening.RunOptions<RO, EM, RM>
): Effect.Effect<Ending.Result<A>, Ending.ModelFailed | E | EM, R | RO | RM | ToolRegistry> =>
  OwnModel.provide(
    agent,
    Effect.flatMap(Opening.prepare(agent, options), (run) =>
      loop(agent, run, Watch.make(Observers.make(options)), options))
  )

/**
 * Runs an agent and shows what happens while it does, and at the end the result. The run waits while nobody takes the events,
 * and is cancelled with the stream.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <E, R, A, RO = never, EM = never, RM = never>(
  agent: Agent<E, R, A>,
  options: Opening.RunOptions<RO, EM, RM>
): Stream.Stream<Event<A>, Ending.ModelFailed | E | EM, R | RO | RM | ToolRegistry> =>
  Streaming.of((sink) =>
    OwnModel.provide(
      agent,
      Effect.flatMap(
        Opening.prepare(agent, options),
        (run) => loop(agent, run, Watch.make(Observers.make(options), sink), options)
      )
    )
  )

/**
 * Starts an agent and gives a handle on it.
 *
 * @category running
 * @since 0.1.0
 */
export const start = <E, R, A, RO = never, EM = never, RM = never>(
  agent: Agent<E, R, A>,
  options: Opening.RunOptions<RO, EM, RM>
): Effect.Effect<Handle.Handle<E | EM, A>, E | EM, R | RO | RM | ToolRegistry | Scope.Scope> =>
  Effect.flatMap(
    OwnModel.built(agent),
    (agent) =>
      Effect.flatMap(OwnModel.provide(agent, Opening.prepare(agent, options)), (run) =>
        Effect.flatMap(Handle.hold, (held) => {
          const watch = Watch.make(Observers.make(options), held.sink)
          return Handle.make(run, held, OwnModel.provide(agent, loop(agent, run, watch, options, Edges.cancellable)))
        }))
  )

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
export const resume = <E, R, A, RO = never, EM = never, RM = never>(
  agent: Agent<E, R, A>,
  paused: Ending.Paused | Pause.Encoded,
  decisions: Pause.Decisions,
  options: Opening.ResumeOptions<RO, EM, RM> = {}
): Effect.Effect<Ending.Result<A>, Ending.ModelFailed | Pause.ResumeRefused | E | EM, R | RO | RM | ToolRegistry> =>
  OwnModel.provide(
    agent,
    Reopening.goOn(
      agent,
      options,
      isPaused(paused) ? paused.state : paused,
      decisions,
      (run, how) => loop(agent, run, Watch.make(Observers.make(options)), options, how)
    )
  )

/**
 * An agent as a tool of another. It has a transcript and a context of its own, and shares the other's budget and
 * cancellation; its events are nested in the other's, its usage counts for the other's, and where it waits the other waits
 * with it, its calls behind the id of this one. Its registry is what the tool needs.
 *
 * It gives the agent's answer, and fails with `AgentStopped` where it comes to none.
 *
 * **Example** (A researcher of a writer)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const Answers = ScriptedModel.layer("Oslo has 700,000 inhabitants")
 * const researcher = AgentLoop.make("researcher", { model: Answers })
 * const research = AgentLoop.asTool(researcher, { description: "Finds things out" })
 *
 * const program = AgentLoop.run(AgentLoop.make("writer"), { prompt: "Write about Oslo" }).pipe(
 *   Effect.provide(ToolRegistry.layer(research).pipe(Layer.provide(ToolRegistry.layer()))),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("researcher", { prompt: "How large is Oslo?" })], "Large."))
 * )
 * const result = await Effect.runPromise(program)
 * result.turns[0]!.outcomes[0] // => { _tag: "Success", value: "Oslo has 700,000 inhabitants", writes: [] }
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const asTool = <E, R, A, const Name extends string = string, I extends Schema.Struct.Fields = Nested.AskedFor>(
  agent: Agent<E, R, A>,
  options: Nested.Options<Name, I>
): Nested.AgentTool<Name, I, R | ToolRegistry> =>
  Nested.toolOf(agent, options, (prompt, place, resumed) => {
    const begin = (run: Run.Run, how?: Reopening.Protected) => {
      run.isNested = true
      const running = loop(agent, run, Nested.watch(place, run), {}, how)
      return Effect.ensuring(running, Effect.sync(() => Nested.count(place, Spending.of(run))))
    }
    const ran: Effect.Effect<
      Ending.Result<A>,
      E | Ending.ModelFailed | Pause.ResumeRefused,
      R | ToolRegistry | LanguageModel.LanguageModel
    > = resumed === undefined
      ? Effect.flatMap(Opening.prepare(agent, { prompt }), (run) => begin(run))
      : Reopening.goOn(
        agent,
        {},
        resumed.state,
        resumed.decisions,
        (run, how) => Effect.andThen(Spending.forget(run), begin(run, how))
      )
    return OwnModel.provide(agent, ran)
  })

const isPaused = (paused: Ending.Paused | Pause.Encoded): paused is Ending.Paused =>
  typeof paused === "object" && paused !== null && "_tag" in paused && paused["_tag"] === "Paused"

const loop = <A>(
  agent: Agent<unknown, unknown, A>,
  run: Run.Run,
  watch: Watch.Watch | undefined,
  options?: Edges.Options,
  how?: Reopening.Protected
): Effect.Effect<Ending.Result<A>, Ending.ModelFailed, LanguageModel.LanguageModel | ToolRegistry> =>
  // A value was decoded by the schema of the answer.
  Edges.around(agent, run, watch, turns(agent, run) as Edges.Turns<Ending.Result<A>>, options, how)

const turns = Effect.fnUntraced(
  function*(agent: Agent<unknown, unknown>, run: Run.Run) {
    const desk = yield* Desk.open(agent)
    const { watch } = run
    while (run.batch !== undefined || run.turns.length < agent.maxTurns) {
      if (run.batch === undefined) {
        Run.join(run)
        if (desk.budget !== undefined && !Budget.takeRequest(desk.budget)) break
        if (watch !== undefined) yield* Observe.turnStart(run, watch)
        run.batch = Run.hear(run, yield* Desk.ask(desk, agent, run))
        if (desk.budget !== undefined) yield* Desk.charge(desk, run.batch.usage)
      }
      const { batch } = run
      const halt = halts(agent, run, batch)
      if (halt === undefined && batch.places.length > 0) {
        const paused = yield* Answering.answer(agent, run, batch, desk)
        if (paused !== undefined) return paused
      }
      const settled = Run.settle(run, batch, halt === undefined ? "it was not answered" : reasons[halt])
      if (watch !== undefined || settled.dropped.length > 0) yield* Observe.folded(run, settled)
      if (run.thread !== undefined) yield* Desk.rest(run)
      if (watch !== undefined) yield* Observe.turnEnd(run, watch)
      const end = decide(agent, run, batch, halt, settled.isAnswer)
      // What the user has said since is not left unanswered.
      if (end?._tag === "Completed" && run.turns.length < agent.maxTurns && Run.join(run)) continue
      const last = end && (yield* concluded(agent, run, end, halt === undefined && batch.places.length === 0))
      if (last !== undefined) return { ...last, ...Run.end(run, desk.pricing) }
    }
    return { ...Ending.limited(run.turns.length < agent.maxTurns ? "budget" : "turns"), ...Run.end(run, desk.pricing) }
  }
)

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
  if (run.isOut !== undefined) return Ending.limited(run.isOut)
  if (run.errorsInARow >= agent.maxConsecutiveToolErrors) return Ending.limited("tool-errors")
  if (run.turns.length < agent.maxTurns && Repeats.isCircling(run.turns, agent.maxRepeats)) {
    return Ending.limited("repeats")
  }
  const { stop } = agent
  return stop?.(run.turns, { context: Ref.getUnsafe(run.context), text: batch.text, asked: [] })
    ? completed
    : undefined
}

/** An end whose answer has the form that was asked for; none where the model is asked once more. */
const concluded = (
  { maxTurns, output, outputRetries }: Agent<unknown, unknown>,
  run: Run.Run,
  end: Way,
  isFinal: boolean
): Effect.Effect<Way | undefined> =>
  output === undefined || end._tag !== "Completed" || end.direct === true
    ? Effect.succeed(end)
    : Effect.map(FinalAnswer.read(output, run.text), (read) => {
      if (read._tag === "Fits") return { ...end, value: read.value }
      // Whoever stopped a run before its last word is given what there is.
      if (!isFinal) return end
      if (run.misfits++ >= outputRetries) return { _tag: "Refused", reason: "invalid-output" }
      if (run.turns.length >= maxTurns) return Ending.limited("turns")
      run.messages.push(FinalAnswer.correction(read.problems))
      return undefined
    })

const completed = { _tag: "Completed" } as const
