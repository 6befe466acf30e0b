/**
 * What does a watcher see of a run? Events, in the order in which things happen, as data.
 *
 * `seq` counts the events of a run from 0, without gaps, those of agents within it too. `path` is the way to an agent within
 * calls, from the outside in; it is empty for the run itself. Everything that starts ends, also when a run fails or is
 * cancelled, and `RunEnd` is the last.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Waiting from "./Pause.ts"
import * as Turn from "./Turn.ts"
import * as Usage from "./Usage.ts"

/**
 * One step of the way to an agent that is a tool: the call in which it runs, its name, and which run of it that is.
 *
 * @category models
 * @since 0.1.0
 */
export const Step = Schema.Struct({ callId: Schema.String, agent: Schema.String, runId: Schema.String })

/**
 * @category models
 * @since 0.1.0
 */
export type Step = typeof Step.Type

const event = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.TaggedStruct(tag, { seq: Schema.Int, path: Schema.Array(Step), ...fields })

const turn = Schema.Int
const ofCall = { turn, callId: Schema.String, tool: Schema.String }

/**
 * A run begins, or goes on after a pause.
 *
 * @category models
 * @since 0.1.0
 */
export const RunStart = event("RunStart", { runId: Schema.String, agent: Schema.String, isResumed: Schema.Boolean })

/**
 * A run ended: how, and why where that says more: the limit, what the model broke off for, what it waits for, the name of the
 * error. `text` is its answer so far, `usage` what it spent.
 *
 * @category models
 * @since 0.1.0
 */
export const RunEnd = event("RunEnd", {
  runId: Schema.String,
  end: Schema.Literals(["Completed", "Paused", "LimitReached", "Refused", "Cancelled", "Failed"]),
  reason: Schema.optionalKey(Schema.String),
  text: Schema.String,
  usage: Usage.Total
})

/**
 * A turn begins: the model is asked, or calls that waited go on.
 *
 * @category models
 * @since 0.1.0
 */
export const TurnStart = event("TurnStart", { turn })

/**
 * A turn ended: `record` is what happened in it, which is in the run's thread then, unless the run fails. It is absent where the
 * model gave no answer, or where calls of it wait.
 *
 * @category models
 * @since 0.1.0
 */
export const TurnEnd = event("TurnEnd", { turn, record: Schema.optionalKey(Turn.Turn) })

/**
 * A piece of the model's answer.
 *
 * @category models
 * @since 0.1.0
 */
export const TextDelta = event("TextDelta", { turn, delta: Schema.String })

/**
 * A piece of the model's reasoning.
 *
 * @category models
 * @since 0.1.0
 */
export const ReasoningDelta = event("ReasoningDelta", { turn, delta: Schema.String })

/**
 * A piece of the arguments of a call, as the model writes them. The call starts when all of it is there, if it does.
 *
 * @category models
 * @since 0.1.0
 */
export const InputDelta = event("InputDelta", { ...ofCall, delta: Schema.String })

/**
 * The provider could not do all of what the request asked for.
 *
 * @category models
 * @since 0.1.0
 */
export const Warning = event("Warning", { turn, warnings: Schema.Array(Schema.String) })

/**
 * A gate decided about a call. `reason` says why it waits or is refused.
 *
 * @category models
 * @since 0.1.0
 */
export const Gate = event("Gate", {
  ...ofCall,
  decision: Schema.Literals(["Proceed", "Pause", "Reject", "Reply", "Edit"]),
  reason: Schema.optionalKey(Schema.String)
})

/**
 * A call begins; its arguments have not been looked at yet, unless a gate had to know them. One that a gate answers starts and
 * ends at once; one of an answer that was cut off, or of a run that a stop ended, does not start.
 *
 * @category models
 * @since 0.1.0
 */
export const CallStart = event("CallStart", { turn, call: Turn.Call })

/**
 * What a tool says of how far it is (`Tool.progress`), or a preliminary result of a tool of `effect/ai`.
 *
 * @category models
 * @since 0.1.0
 */
export const Progress = event("Progress", { ...ofCall, progress: Schema.Unknown })

/**
 * Attempt `attempt`, counted from 1, begins: of a call, or of the request of a turn where there is no `callId`. `reason` is
 * the kind of failure of the one before, of which no text was shown, though pieces of calls may have been.
 *
 * @category models
 * @since 0.1.0
 */
export const Retry = event("Retry", {
  turn,
  callId: Schema.optionalKey(Schema.String),
  tool: Schema.optionalKey(Schema.String),
  attempt: Schema.Int,
  reason: Schema.String
})

/**
 * A call ended. Every `CallStart` has exactly one, also when the run is interrupted; one within which an agent waits ends as
 * interrupted, and starts again when the run is resumed. `call.repairs` says what had to be
 * read into its arguments, `attempts` how often its body was tried, `preview` is the first 200 characters of what the model
 * is told, `isError` whether it is to take that as an error.
 *
 * @category models
 * @since 0.1.0
 */
export const CallEnd = event("CallEnd", {
  turn,
  call: Turn.Call,
  outcome: Turn.Outcome,
  attempts: Schema.Int,
  durationMs: Schema.Finite,
  preview: Schema.String,
  isError: Schema.Boolean
})

/**
 * What the calls of a batch wrote was folded, in call order. `slots` are the classes that changed, as they are now;
 * `dropped` are the ids of calls whose writes a combiner threw on: those are lost as a whole, and the others stand.
 *
 * @category models
 * @since 0.1.0
 */
export const Fold = event("Fold", {
  turn,
  writes: Schema.Array(Turn.Write),
  slots: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown)),
  dropped: Schema.Array(Schema.String)
})

/**
 * The run waits for decisions.
 *
 * @category models
 * @since 0.1.0
 */
export const Pause = event("Pause", { turn, reason: Waiting.Reason, pending: Schema.Array(Waiting.Pending) })

/**
 * What a watcher sees while a run goes on: a closed union, and the form in which to send it on or to keep it.
 *
 * **Example** (An event as JSON)
 *
 * ```ts run
 * import * as Schema from "effect/Schema"
 * import * as Event from "toolfold/Event"
 *
 * const asJson = Schema.toCodecJson(Event.Event)
 * const sent = JSON.stringify(Schema.encodeSync(asJson)({ _tag: "TextDelta", seq: 3, path: [], turn: 0, delta: "Hi" }))
 * sent // => '{"_tag":"TextDelta","seq":3,"path":[],"turn":0,"delta":"Hi"}'
 * Schema.decodeUnknownSync(asJson)(JSON.parse(sent)).seq // => 3
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const Event = Schema.Union([
  RunStart,
  TurnStart,
  TextDelta,
  ReasoningDelta,
  InputDelta,
  Warning,
  Gate,
  CallStart,
  Progress,
  Retry,
  CallEnd,
  Fold,
  Pause,
  TurnEnd,
  RunEnd
])

/**
 * @category models
 * @since 0.1.0
 */
export type Event = typeof Event.Type

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
