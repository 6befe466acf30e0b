/**
 * What is kept of a run that waits? All that another process needs to go on, as data, and the decisions that it waits for.
 *
 * A pause is resumed once, with one decision for each call that waits, and only where agent, tools and inputs are what they
 * were. Nothing of its batch runs before that is checked.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Data from "effect/Data"
import * as Schema from "effect/Schema"
import * as Turn from "./Turn.ts"
import * as Usage from "./Usage.ts"

/**
 * Why a run waits: somebody must allow calls, or somebody must repair what calls depend on.
 *
 * @category models
 * @since 0.1.0
 */
export const Reason = Schema.Literals(["approval", "environment"])

/**
 * A call that waits for a decision, of the run's `agent` or of one within it, whose ids stand behind those of the calls that
 * lead to it (`call_1/call_7`). `reason` is what its gate said, or how it failed. `seal` names the tool, its schema and the
 * input as they were when the run paused.
 *
 * @category models
 * @since 0.1.0
 */
export const Pending = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  input: Schema.Unknown,
  agent: Schema.String,
  waitsFor: Reason,
  reason: Schema.String,
  seal: Schema.String
})

/**
 * @category models
 * @since 0.1.0
 */
export type Pending = typeof Pending.Type

/**
 * A call of the batch that waits: what it came to, where it has run or was decided; the pause of the agent `within` it.
 *
 * @category models
 * @since 0.1.0
 */
export const Place = Schema.Struct({
  call: Turn.Call,
  outcome: Schema.optionalKey(Turn.Outcome),
  attempts: Schema.Finite,
  isAllowed: Schema.Boolean,
  isTold: Schema.Boolean,
  within: Schema.optionalKey(Schema.Json)
})

const SpentBy = Schema.Struct({ agent: Schema.String, spent: Schema.Array(Usage.Usage) })

/**
 * A paused run. Plain JSON once it is encoded, which `Result.Paused` has done. Whoever can change it can change what runs: it
 * rests where the application alone can write.
 *
 * @category models
 * @since 0.1.0
 */
export const State = Schema.Struct({
  version: Schema.Literal(1),
  id: Schema.String,
  agent: Schema.String,
  runId: Schema.String,
  thread: Schema.optionalKey(
    Schema.Struct({
      id: Schema.String,
      version: Schema.Finite,
      messages: Schema.Finite,
      isContextThere: Schema.Boolean
    })
  ),
  reason: Reason,
  pending: Schema.Array(Pending),
  instructions: Schema.optionalKey(Schema.String),
  messages: Schema.Array(Prompt.Message),
  turns: Schema.Array(Turn.Turn),
  context: Schema.Struct({
    version: Schema.Literal(1),
    slots: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown))
  }),
  spent: Schema.Array(Usage.Usage),
  nested: Schema.Array(SpentBy),
  before: Schema.Array(SpentBy),
  toolCalls: Schema.Finite,
  isOut: Schema.optionalKey(Schema.Literals(["tool-calls", "budget"])),
  errorsInARow: Schema.Finite,
  misfits: Schema.optionalKey(Schema.Finite),
  told: Schema.optionalKey(Schema.Array(Prompt.UserMessage)),
  said: Prompt.AssistantMessage,
  text: Schema.String,
  reasoning: Schema.String,
  finish: Turn.Finish,
  usage: Usage.Usage,
  places: Schema.Array(Place)
})

/**
 * @category models
 * @since 0.1.0
 */
export type State = typeof State.Type

/**
 * A paused run as JSON.
 *
 * @category models
 * @since 0.1.0
 */
export type Encoded = Schema.Json

/**
 * What somebody says of a call that waits: for one that waits for approval `Approve` (with another input, if that is given;
 * it is validated and gated again, where a call that is approved as it was is not), `Reject` or `Reply`; for one that failed because of its environment `Retry` or
 * `Proceed`, which tells the model.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Decision = Schema.Union([
  Schema.TaggedStruct("Approve", { input: Schema.optionalKey(Schema.Json) }),
  Schema.TaggedStruct("Reject", { reason: Schema.String }),
  Schema.TaggedStruct("Reply", { text: Schema.String }),
  Schema.TaggedStruct("Retry", {}),
  Schema.TaggedStruct("Proceed", {})
])

/**
 * @category decisions
 * @since 0.1.0
 */
export type Decision = typeof Decision.Type

/**
 * One decision for each call that waits, by its id.
 *
 * @category decisions
 * @since 0.1.0
 */
export interface Decisions {
  readonly [callId: string]: Decision
}

/**
 * The call runs as it was asked for.
 *
 * @category decisions
 * @since 0.1.0
 */
export const approve: Decision = { _tag: "Approve" }

/**
 * The call runs with this input, given as JSON.
 *
 * @category decisions
 * @since 0.1.0
 */
export const approveWith = (input: Schema.Json): Decision => ({ _tag: "Approve", input })

/**
 * The call does not run; the model is told why.
 *
 * @category decisions
 * @since 0.1.0
 */
export const reject = (reason: string): Decision => ({ _tag: "Reject", reason })

/**
 * The call does not run; this is its result.
 *
 * @category decisions
 * @since 0.1.0
 */
export const reply = (text: string): Decision => ({ _tag: "Reply", text })

/**
 * The failed call runs again, and its result takes the place of the failure.
 *
 * @category decisions
 * @since 0.1.0
 */
export const retry: Decision = { _tag: "Retry" }

/**
 * The model is told of the failure.
 *
 * @category decisions
 * @since 0.1.0
 */
export const proceed: Decision = { _tag: "Proceed" }

/**
 * A pause cannot be resumed as it was asked; nothing of it ran, and it still waits (unless it was resumed before).
 *
 * - `unreadable`: the state is damaged, too large, or of a newer form
 * - `other-agent`: it is of another agent
 * - `other-thread`: its run rests in a thread that it is not resumed in
 * - `thread-changed`: that thread went on without it, or was taken back, so its calls are answered or gone
 * - `tool-changed`: a tool is gone, or its schema or the call is not what it was
 * - `decisions`: a call that waits has no decision, a decision is of a call that does not wait, or it does not fit the reason
 * - `used`: it was resumed before
 * - `store`: the store of pauses failed, so it is not known whether it was
 *
 * @category errors
 * @since 0.1.0
 */
export class ResumeRefused extends Data.TaggedError("ResumeRefused")<{
  readonly reason:
    | "unreadable"
    | "other-agent"
    | "other-thread"
    | "thread-changed"
    | "tool-changed"
    | "decisions"
    | "used"
    | "store"
  readonly problems: ReadonlyArray<string>
}> {
  override get message(): string {
    return `the run cannot be resumed: ${this.problems.join("; ")}`
  }
}
