/**
 * What happened? One exchange as storable data: what the model said, what it asked for, what became of each call.
 *
 * Every call has exactly one outcome. Stop conditions, watchers and stores read the same record.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as Arguments from "./internal/arguments.ts"
import * as Usage from "./Usage.ts"

/**
 * What the model asked for. `raw` is the text of the arguments where they came as text, `input` what it parses to
 * (absent when it does not parse), `repairs` what had to be read into it.
 *
 * @category models
 * @since 0.1.0
 */
export const Call = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  input: Schema.optionalKey(Schema.Unknown),
  raw: Schema.optionalKey(Schema.String),
  repairs: Schema.Array(Schema.String)
})

/**
 * @category models
 * @since 0.1.0
 */
export type Call = typeof Call.Type

/**
 * The call that a model asked for. `params` are its arguments: text as the model wrote it, or what a provider made of
 * it. Empty arguments are read as `{}`, a code fence and a second encoding are taken off, and integers that no number
 * holds are kept as text; each is recorded, and none is done where the answer was cut off. Text that is not JSON, or too
 * much, leaves the call without `input`.
 *
 * **Example** (Arguments as text)
 *
 * ```ts run
 * import * as Turn from "toolfold/Turn"
 *
 * Turn.call({ id: "1", name: "get_weather", params: '{"city":"Oslo"}' }).input // => { city: "Oslo" }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const call = (
  asked: { readonly id: string; readonly name: string; readonly params: unknown },
  options?: { readonly isCutOff?: boolean }
): Call => ({ ...Arguments.parse(asked.params, options), id: asked.id, name: asked.name })

/**
 * A write as data: the class of slots, and its values as JSON.
 *
 * @category models
 * @since 0.1.0
 */
export const Write = Schema.Struct({ slots: Schema.String, values: Schema.Record(Schema.String, Schema.Unknown) })

/**
 * What is wrong with one place of the arguments.
 *
 * @category models
 * @since 0.1.0
 */
export const Issue = Schema.Struct({ path: Schema.String, message: Schema.String })

/**
 * @category models
 * @since 0.1.0
 */
export type Issue = typeof Issue.Type

/**
 * What went wrong with a call.
 *
 * @category models
 * @since 0.1.0
 */
export const FailureKind = Schema.Literals([
  "unknown-tool",
  "invalid-json",
  "invalid-input",
  "failure",
  "defect",
  "timeout",
  "invalid-output",
  "denied",
  "limit"
])

/**
 * Who can put a failure right: the model (`semantic`, the default), time (`transient`), a person (`environment`), or
 * whoever decides what is allowed (`policy`).
 *
 * @category models
 * @since 0.1.0
 */
export const FailureClass = Schema.Literals(["semantic", "transient", "environment", "policy"])

/**
 * The call ran: its result as JSON data, and what it wrote. `parts` are the texts and files that the model is to see in
 * the place of the value, where its provider takes them.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Success = Schema.TaggedStruct("Success", {
  value: Schema.Unknown,
  writes: Schema.Array(Write),
  parts: Schema.optionalKey(Schema.Array(Prompt.ToolModelOutputPart))
})

/**
 * The call did not run, or ran and failed. `message` is what the model is told; `errorId` finds the cause in the log
 * where the model is told nothing more. `stillRunning` says of a timeout whether its work may go on.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Failure = Schema.TaggedStruct("Failure", {
  kind: FailureKind,
  class: FailureClass,
  message: Schema.String,
  issues: Schema.optionalKey(Schema.Array(Issue)),
  errorId: Schema.optionalKey(Schema.String),
  stillRunning: Schema.optionalKey(Schema.Boolean)
})

/**
 * @category outcomes
 * @since 0.1.0
 */
export type Failure = typeof Failure.Type

/**
 * The call was refused before it ran.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Rejected = Schema.TaggedStruct("Rejected", { reason: Schema.String })

/**
 * Somebody answered in the tool's place.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Replied = Schema.TaggedStruct("Replied", { text: Schema.String })

/**
 * The call was cut off or never started. `stillRunning` says that its work may go on.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Interrupted = Schema.TaggedStruct("Interrupted", { stillRunning: Schema.Boolean, reason: Schema.String })

/**
 * What became of one call.
 *
 * @category outcomes
 * @since 0.1.0
 */
export const Outcome = Schema.Union([Success, Failure, Rejected, Replied, Interrupted])

/**
 * @category outcomes
 * @since 0.1.0
 */
export type Outcome = typeof Outcome.Type

/**
 * Why the model stopped speaking.
 *
 * @category models
 * @since 0.1.0
 */
export const Finish = Schema.Literals([
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "pause",
  "other",
  "unknown"
])

/**
 * One exchange: the model spoke once, and its calls were answered. `outcomes[i]` is what became of `calls[i]`.
 *
 * @category models
 * @since 0.1.0
 */
export const Turn = Schema.Struct({
  index: Schema.Int,
  text: Schema.String,
  reasoning: Schema.String,
  calls: Schema.Array(Call),
  outcomes: Schema.Array(Outcome),
  usage: Usage.Usage,
  finish: Finish
})

/**
 * @category models
 * @since 0.1.0
 */
export type Turn = typeof Turn.Type

/**
 * Whether the model is to take an outcome as an error.
 *
 * @category queries
 * @since 0.1.0
 */
export const isError = (outcome: Outcome): boolean => outcome._tag !== "Success" && outcome._tag !== "Replied"

/**
 * What the model is told of an outcome: the value of a success, and a sentence for everything else.
 *
 * **Example** (A refused call)
 *
 * ```ts run
 * import * as Turn from "toolfold/Turn"
 *
 * Turn.told({ _tag: "Rejected", reason: "too expensive" }) // => "This call was refused: too expensive"
 * ```
 *
 * @category queries
 * @since 0.1.0
 */
export const told = (outcome: Outcome): unknown => {
  switch (outcome._tag) {
    case "Success":
      return outcome.value
    case "Failure":
      return outcome.message
    case "Rejected":
      return `This call was refused: ${outcome.reason}`
    case "Replied":
      return outcome.text
    case "Interrupted":
      return outcome.stillRunning
        ? `This call was cut off (${outcome.reason}); its work may still be going on, so its effect is unknown.`
        : `This call was cancelled: ${outcome.reason}`
  }
}
