/**
 * How did a run end? One of a closed set of ways, each with everything that the run has to show.
 *
 * What the caller must repair is an error instead: `ModelFailed`.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Data from "effect/Data"
import type * as Context from "./Context.ts"
import type * as Pause from "./Pause.ts"
import type * as Turn from "./Turn.ts"
import type * as Usage from "./Usage.ts"

/**
 * What every end of a run carries. `text` is what the model said last. `messages` is a valid transcript, without the
 * instructions: each call has one result, directly after it; given to another run it goes on from there.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended {
  readonly runId: string
  readonly text: string
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly turns: ReadonlyArray<Turn.Turn>
  readonly usage: Usage.Total
  readonly context: Context.Context
}

/**
 * The model gave its answer, or a stop said that it is enough, or, with `direct`, results of tools are the answer. `value`
 * is the answer of an agent that says which form it has.
 *
 * @category models
 * @since 0.1.0
 */
export interface Completed<A = unknown> extends Ended {
  readonly _tag: "Completed"
  readonly direct?: true
  readonly value?: A
}

/**
 * A limit of the agent ended the run; everything that ran is kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface LimitReached extends Ended {
  readonly _tag: "LimitReached"
  readonly limit: "turns" | "tool-calls" | "tool-errors" | "repeats" | "budget" | "time"
}

/**
 * The model broke off: a content filter, the limit of its output, an error of its own. Calls of that turn did not run. Or
 * its answer did not have the form that was asked for, however often it was sent back (`invalid-output`).
 *
 * @category models
 * @since 0.1.0
 */
export interface Refused extends Ended {
  readonly _tag: "Refused"
  readonly reason: Response.FinishReason | "invalid-output"
}

/**
 * The run was cancelled; calls that had finished are kept, with their writes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cancelled extends Ended {
  readonly _tag: "Cancelled"
}

/**
 * Calls wait for a decision, and nothing of their batch has run (`approval`), or calls failed because of their environment
 * (`environment`). `state` is JSON that another process can resume; `messages` answer the waiting calls as that.
 *
 * @category models
 * @since 0.1.0
 */
export interface Paused extends Ended {
  readonly _tag: "Paused"
  readonly reason: "approval" | "environment"
  readonly pending: ReadonlyArray<Pause.Pending>
  readonly state: Pause.Encoded
}

/**
 * How a run ended.
 *
 * @category models
 * @since 0.1.0
 */
export type Result<A = unknown> = Completed<A> | Paused | LimitReached | Refused | Cancelled

/**
 * The model could not be asked. `partial` is what the run had until then.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelFailed extends Data.TaggedError("ModelFailed")<{
  readonly reason: AiError.AiError
  readonly partial: Ended
}> {
  override get message(): string {
    return this.reason.reason.message
  }
}

/** The end of a run that reached a limit, without what every end carries. */
export const limited = (limit: LimitReached["limit"]) => ({ _tag: "LimitReached", limit }) as const
