/**
 * What is a model asked, and what does it say? The words that a provider and the loop have in common.
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Tool from "../Tool.ts"

/**
 * One request to a model. `messages` only ever grows within a run, and `table` is one object as long as the tools are
 * the same, so a provider may keep what it made of either by identity.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly table: Tool.Table
  readonly toolChoice: LanguageModel.ToolChoice<string>
  /** Asks for JSON of this form instead of text; `source` is the Schema that the form was made of. */
  readonly format?: {
    readonly name: string
    readonly schema: Tool.Advertised["input_schema"]
    readonly source?: Schema.Constraint | undefined
  } | undefined
  readonly settings?: Settings | undefined
}

/**
 * How a model is to speak. A provider sends what its protocol has and warns of what it has not. `maxTokens` bounds the
 * answer, `stop` are texts that end it, `cache` asks for the front of the transcript to be kept, `effort` is how hard a
 * model that reasons is to try.
 *
 * @category models
 * @since 0.1.0
 */
export interface Settings {
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
  readonly topP?: number | undefined
  readonly seed?: number | undefined
  readonly stop?: ReadonlyArray<string> | undefined
  readonly cache?: boolean | undefined
  readonly effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | undefined
}

/**
 * What a model said. Arguments of a call may be the text that the model wrote.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  readonly content: ReadonlyArray<Prompt.AssistantMessagePart>
  readonly finish: Response.FinishReason
  readonly usage: Pick<Response.Usage, "inputTokens" | "outputTokens">
  /** The model that answered, as its provider names it. */
  readonly model?: string | undefined
  /** What of the request the provider could not do. */
  readonly warnings?: ReadonlyArray<string> | undefined
}

/**
 * A piece of what a model is saying, or of the arguments of a call that it makes. `part` says of which of its texts, of its
 * thoughts or of its calls, counted from 0: a provider that may give several says it. `id` and `name` are those that the
 * reply has for the call.
 *
 * @category models
 * @since 0.1.0
 */
export type Delta =
  | { readonly type: "text" | "reasoning"; readonly delta: string; readonly part?: number | undefined }
  | {
    readonly type: "input"
    readonly delta: string
    readonly part: number
    readonly id: string
    readonly name: string
  }

/**
 * Takes the pieces of a reply while they arrive, a chunk at a time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sink {
  (deltas: ReadonlyArray<Delta>): Effect.Effect<void>
}

/**
 * Asks a model once. With a sink the reply is streamed into it, and is given whole at the end all the same.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ask {
  (request: Request, sink?: Sink): Effect.Effect<Reply, AiError.AiError>
}
