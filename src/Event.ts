/**
 * What does a watcher see of a run? Events, in the order in which things happen.
 *
 * @since 0.1.0
 */
import type * as Context from "./Context.ts"
import type * as Turn from "./Turn.ts"

/**
 * A turn begins: the model is asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface TurnStart {
  readonly _tag: "TurnStart"
  readonly turn: number
}

/**
 * A piece of the model's answer, or of its reasoning.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextDelta {
  readonly _tag: "TextDelta" | "ReasoningDelta"
  readonly turn: number
  readonly delta: string
}

/**
 * The provider could not do all of what the request asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Warned {
  readonly _tag: "Warned"
  readonly turn: number
  readonly warnings: ReadonlyArray<string>
}

/**
 * A call begins; its arguments have not been looked at yet.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallStart {
  readonly _tag: "CallStart"
  readonly turn: number
  readonly call: Turn.Call
}

/**
 * A call ended. Every `CallStart` has exactly one, also when the run is interrupted. `call.repairs` says what had to be
 * read into its arguments, `attempts` how often its body was tried.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallEnd {
  readonly _tag: "CallEnd"
  readonly turn: number
  readonly call: Turn.Call
  readonly outcome: Turn.Outcome
  readonly attempts: number
  readonly durationMs: number
}

/**
 * Something happened within a call whose tool is an agent. An event of an agent further within is nested again.
 *
 * @category models
 * @since 0.1.0
 */
export interface Nested {
  readonly _tag: "Nested"
  readonly turn: number
  readonly callId: string
  readonly agent: string
  readonly event: Event
}

/**
 * The writes of a batch folded. `dropped` holds the ids of calls whose writes a combiner threw on: those are lost as a
 * whole, and the others stand.
 *
 * @category models
 * @since 0.1.0
 */
export interface Folded {
  readonly _tag: "Folded"
  readonly turn: number
  readonly before: Context.Context
  readonly context: Context.Context
  readonly dropped: ReadonlyArray<string>
}

/**
 * A turn ended: every call of it is answered.
 *
 * @category models
 * @since 0.1.0
 */
export interface TurnEnd {
  readonly _tag: "TurnEnd"
  readonly turn: Turn.Turn
}

/**
 * What a watcher sees while a run goes on.
 *
 * @category models
 * @since 0.1.0
 */
export type Event = TurnStart | TextDelta | Warned | CallStart | CallEnd | Nested | Folded | TurnEnd

/**
 * What `onToolCall` gets. `start` comes before the arguments are looked at; `result` is a preview of at most 200
 * characters.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolCall =
  | { readonly event: "start"; readonly tool: string; readonly id: string; readonly args: unknown }
  | {
    readonly event: "end"
    readonly tool: string
    readonly id: string
    readonly args: unknown
    readonly result: string
    readonly error: boolean
    readonly durationMs: number
  }
