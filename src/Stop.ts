/**
 * When does a run end before the model is done? A stop is a function over finished turns; combine with `any` and `all`.
 *
 * A stop is looked at twice a turn: when the model has asked for calls and none has run (`at.asked` holds them), and
 * when they are answered. A stop before the calls leaves them unrun; they are answered as cancelled, and the run
 * completes with the text that the model gave.
 *
 * @since 0.1.0
 */
import type * as Context from "./Context.ts"
import type * as Turn from "./Turn.ts"

/**
 * Where a run stands when a stop is looked at: what it remembers, what the model has just said, and the calls that it
 * asks for and that have not run, if any.
 *
 * @category models
 * @since 0.1.0
 */
export interface At {
  readonly context: Context.Context
  readonly text: string
  readonly asked: ReadonlyArray<Turn.Call>
}

/**
 * A reason to end.
 *
 * @category models
 * @since 0.1.0
 */
export interface Stop {
  (turns: ReadonlyArray<Turn.Turn>, at: At): boolean
}

/**
 * After so many turns.
 *
 * **Example** (Whatever comes first)
 *
 * ```ts run
 * import * as Context from "toolfold/Context"
 * import * as Stop from "toolfold/Stop"
 *
 * const stop = Stop.any(Stop.afterTurns(3), Stop.whenCalled("finish"))
 * stop([], { context: Context.empty, text: "", asked: [] }) // => false
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const afterTurns = (most: number): Stop => (turns) => turns.length >= most

/**
 * When a tool of this name was called and answered in the last turn.
 *
 * @category constructors
 * @since 0.1.0
 */
export const whenCalled = (name: string): Stop => (turns) =>
  turns.at(-1)?.calls.some((call) => call.name === name) ?? false

/**
 * When the model asks for a tool of this name: its calls do not run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const whenAsked = (name: string): Stop => (_, { asked }) => asked.some((call) => call.name === name)

/**
 * When one of these stops.
 *
 * @category combinators
 * @since 0.1.0
 */
export const any = (...stops: ReadonlyArray<Stop>): Stop => (turns, at) => stops.some((stop) => stop(turns, at))

/**
 * When all of these stop.
 *
 * @category combinators
 * @since 0.1.0
 */
export const all = (...stops: ReadonlyArray<Stop>): Stop => (turns, at) => stops.every((stop) => stop(turns, at))
