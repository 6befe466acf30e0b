/**
 * How does a program run again as it once did, without a network and without its tools? From a tape: what its models and
 * its tools said, the time, and the random numbers, as they were recorded.
 *
 * `Tape.model` and `Tape.tools` stand around the layers of a program, and `Tape.record` or `Tape.replay` around the program.
 * A tape tells requests apart by digests, and never sees what goes over a wire. What is said on it is plain text: whoever
 * commits a tape has read it. What a tool says of how far it is is not on it, and pieces of calls are played after those of texts.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Context from "../Context.ts"
import * as Provider from "../Provider.ts"
import * as ToolRegistry from "../ToolRegistry.ts"
import { Tape } from "./internal/tapeDeck.ts"
import type * as Errors from "./internal/tapeErrors.ts"
import * as Player from "./internal/tapePlayer.ts"
import * as Recorder from "./internal/tapeRecorder.ts"
import * as Store from "./internal/tapeStore.ts"

export { Tape } from "./internal/tapeDeck.ts"
export { Drift, LeftOver, Miss } from "./internal/tapeErrors.ts"
export { type Memory, type Store, TapeFailed } from "./internal/tapeStore.ts"

/**
 * A tape in a file, one record a line.
 *
 * @category constructors
 * @since 0.1.0
 */
export const file = (path: string): Store.Store<FileSystem.FileSystem> => Store.file(path)

/**
 * A tape in memory; `text()` is what a file would hold.
 *
 * @category constructors
 * @since 0.1.0
 */
export const memory = (text?: string): Store.Memory => Store.memory(text)

/**
 * A model that is recorded, or answers from the tape. A tape that is replayed does not build the model, so that it needs no
 * key. What stands around it outside of the tape, as `Provider.retry`, works on both as it does.
 *
 * @category combinators
 * @since 0.1.0
 */
export const model = <E, R>(
  self: Layer.Layer<LanguageModel.LanguageModel, E, R>
): Layer.Layer<LanguageModel.LanguageModel, E, R | Tape> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.gen(function*() {
      const deck = yield* Tape
      const own = deck.isReplaying ? undefined : yield* Layer.buildWithMemoMap(self, memoMap, scope)
      const asked: Provider.Ask = own === undefined
        ? () => Effect.die(new Error("a tape that is replayed asks nobody"))
        : Provider.askOf(Services.get(own, LanguageModel.LanguageModel))
      return Services.make(LanguageModel.LanguageModel, yield* Provider.make({ ask: deck.ask(asked) }))
    })
  )

/**
 * A registry whose calls are recorded, or answered from the tape. Pipe it last: what stands around calls within it does not
 * run when the tape is replayed. Gates, and what does not fit, are the program's own and are not on the tape.
 *
 * @category combinators
 * @since 0.1.0
 */
export const tools = <E, R>(
  self: Layer.Layer<ToolRegistry.ToolRegistry, E, R>
): Layer.Layer<ToolRegistry.ToolRegistry, E, R | Tape> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.gen(function*() {
      const deck = yield* Tape
      const own = yield* Layer.buildWithMemoMap(self, memoMap, scope)
      const registry = Services.get(own, ToolRegistry.ToolRegistry)
      const taped = ToolRegistry.around((call, next) =>
        Effect.withFiber((fiber) => {
          const running = fiber.getRef(Context.CurrentCall) ?? Context.callScope()
          return deck.answer(call, next, running, () => registry.slots)
        })
      )(Layer.succeed(ToolRegistry.ToolRegistry)(registry))
      return yield* Layer.buildWithMemoMap(taped, memoMap, scope)
    })
  )

/**
 * What a recording keeps. `requests: "text"` keeps what models were asked, so that a drift shows both sides; the default
 * keeps digests. `redact` is given every text before it is written or compared, and takes out what nobody must read: give
 * the same to the replay.
 *
 * @category models
 * @since 0.1.0
 */
export type RecordOptions = Recorder.Options

/**
 * Runs a program and records it on a new tape; fails where there is a tape already. What fits a parameter or a result that
 * a tool declares as `Schema.Redacted` is never on it.
 *
 * **Example** (Recorded once, replayed without the model and the tool)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import type * as Schema from "effect/Schema"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tape from "toolfold/testing/Tape"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * let ran = 0
 * const roll = Tool.make("roll", { handler: () => Effect.sync(() => `rolled ${++ran}`) })
 * const Model = ScriptedModel.layer([ScriptedModel.call("roll")], "You rolled.")
 *
 * const program = AgentLoop.run(AgentLoop.make("bot"), { prompt: "Roll!" }).pipe(
 *   Effect.provide(ToolRegistry.layer(roll).pipe(Tape.tools)),
 *   Effect.provide(Model.pipe(Tape.model))
 * )
 *
 * const tape = Tape.memory()
 * const first = await Effect.runPromise(program.pipe(Tape.record(tape)))
 * const again = await Effect.runPromise(program.pipe(Tape.replay(tape)))
 * ran // => 1
 * again // => first
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const record =
  <RT>(store: Store.Store<RT>, options: RecordOptions = {}) =>
  <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E | Store.TapeFailed, Exclude<R, Tape> | RT> =>
    // The tape has a scope of its own; that of the program, if it has one, stays the program's.
    Effect.acquireUseRelease(
      Scope.make(),
      Effect.fnUntraced(function*(scope) {
        const made = Recorder.make(store, options, yield* Clock.Clock, yield* Random.Random)
        const recorder = yield* Scope.provide(made, scope)
        const recorded = program.pipe(
          Effect.provideService(Tape, recorder.deck),
          Effect.provideService(Clock.Clock, recorder.listening.clock),
          Effect.provideService(Random.Random, recorder.listening.random)
        )
        const value = yield* Effect.ensuring(recorded, recorder.end)
        yield* recorder.written
        return value
      }),
      (scope, exit) => Scope.close(scope, exit)
    )

/**
 * How a tape is replayed. With `tools: "run"` the tools run, and only models answer from the tape.
 *
 * @category models
 * @since 0.1.0
 */
export type ReplayOptions = Player.Options

/**
 * Runs a program again from its tape. Where it asks something else than was recorded it is interrupted, and fails with the
 * first difference (`Drift`); where nothing is recorded, with `Miss`; where it ends and something is left, with `LeftOver`.
 *
 * Calls are found by their place in the call order of their turn, so that a replay may answer more or fewer at a time. The
 * clock shows the times that it showed, and sleeps as the clock around the program does. An agent that is a tool runs again,
 * from the same tape. What was interrupted waits to be interrupted again.
 *
 * **Example** (A question that was not recorded)
 *
 * ```ts run
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Effect from "effect/Effect"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tape from "toolfold/testing/Tape"
 *
 * const Model = ScriptedModel.layer("Hello").pipe(Tape.model)
 * const ask = (prompt: string) => Effect.provide(LanguageModel.generateText({ prompt }), Model)
 *
 * const tape = Tape.memory()
 * await Effect.runPromise(ask("Hi").pipe(Tape.record(tape)))
 * const error = await Effect.runPromise(ask("Hi there").pipe(Tape.replay(tape), Effect.flip))
 * error._tag // => "TapeDrift"
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const replay = <RT>(store: Store.Store<RT>, options: ReplayOptions = {}) =>
<A, E, R>(
  program: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Store.TapeFailed | Errors.Drift | Errors.Miss | Errors.LeftOver, Exclude<R, Tape> | RT> =>
  Effect.gen(function*() {
    const player = yield* Player.make(store, options, yield* Clock.Clock)
    const replayed = program.pipe(
      Effect.provideService(Tape, player.deck),
      Effect.provideService(Clock.Clock, player.clock),
      Effect.provideService(Random.Random, player.random)
    )
    const value = yield* Effect.raceFirst(replayed, player.stopped)
    yield* player.finished
    return value
  })
