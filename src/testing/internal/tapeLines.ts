/**
 * What stands on a tape? One JSON record a line: a head, then what was asked and what was called, in the order in which it
 * was over, then an end. Nothing of a request in plain unless somebody asked for it, nothing of a call but its outcome.
 */
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Response from "effect/ai/Response"
import * as Schema from "effect/Schema"
import * as Turn from "../../Turn.ts"

/** What a clock and a random generator gave, by kind. */
export const Readings = Schema.Struct({
  millis: Schema.optionalKey(Schema.Array(Schema.Finite)),
  nanos: Schema.optionalKey(Schema.Array(Schema.BigInt)),
  monotonic: Schema.optionalKey(Schema.Array(Schema.BigInt)),
  ints: Schema.optionalKey(Schema.Array(Schema.Finite)),
  doubles: Schema.optionalKey(Schema.Array(Schema.Finite))
})
export type Readings = typeof Readings.Type

export const Head = Schema.Struct({
  kind: Schema.Literal("tape"),
  version: Schema.Literal(1),
  /** When it was begun. */
  at: Schema.Finite
})

/** A request beside the one before it on its line: how many messages are the same, and what comes after them. */
export const Request = Schema.Struct({
  same: Schema.Int,
  messages: Schema.Array(Schema.Unknown),
  rest: Schema.optionalKey(Schema.Unknown)
})
export type Request = typeof Request.Type

const Reply = Schema.Struct({
  content: Schema.Array(Prompt.AssistantMessagePart),
  finish: Turn.Finish,
  usage: Schema.Struct({
    inputTokens: Response.Usage.fields.inputTokens,
    outputTokens: Response.Usage.fields.outputTokens
  }),
  model: Schema.optionalKey(Schema.String),
  warnings: Schema.optionalKey(Schema.Array(Schema.String))
})

const Delta = Schema.Struct({
  type: Schema.Literals(["text", "reasoning"]),
  delta: Schema.String,
  part: Schema.optionalKey(Schema.Int)
})

/** How an exchange with a model ended. */
export const Said = Schema.Union([
  Schema.TaggedStruct("Replied", { reply: Reply }),
  Schema.TaggedStruct("Failed", { error: AiError.AiError }),
  Schema.TaggedStruct("Died", { message: Schema.String }),
  Schema.TaggedStruct("Interrupted", {})
])
export type Said = typeof Said.Type

/** An exchange with a model; `within` is the call in which it was asked, empty outside of any. */
export const Asked = Schema.Struct({
  kind: Schema.Literal("ask"),
  within: Schema.String,
  readings: Schema.optionalKey(Readings),
  request: Request,
  deltas: Schema.optionalKey(Schema.Array(Schema.Array(Delta))),
  said: Said
})
export type Asked = typeof Asked.Type

/** What became of a call. */
export const Answer = Schema.Union([
  Schema.TaggedStruct("Answered", {
    // What a tool shows as parts is data of any kind elsewhere.
    outcome: Schema.Union([
      Schema.Struct({ ...Turn.Success.fields, parts: Schema.optionalKey(Schema.Array(Prompt.ToolModelOutputPart)) }),
      Turn.Failure,
      Turn.Rejected,
      Turn.Replied,
      Turn.Interrupted
    ])
  }),
  Schema.TaggedStruct("Died", { message: Schema.String }),
  Schema.TaggedStruct("Cut", { stillRunning: Schema.Boolean })
])
export type Answer = typeof Answer.Type

/** A call of a tool: `id` is its place, `within` that of the call in which it was made, empty outside of any. */
export const Called = Schema.Struct({
  kind: Schema.Literal("call"),
  id: Schema.String,
  within: Schema.String,
  readings: Schema.optionalKey(Readings),
  name: Schema.String,
  input: Schema.Unknown,
  attempts: Schema.Int,
  answer: Answer
})
export type Called = typeof Called.Type

/** The recording ended, with what was read since the last records. */
export const End = Schema.Struct({
  kind: Schema.Literal("end"),
  readings: Schema.Record(Schema.String, Readings)
})

export const Line = Schema.Union([Head, Asked, Called, End])
export type Line = typeof Line.Type

const codec = Schema.toCodecJson(Line)
export const encode = Schema.encodeEffect(codec)
export const decode = Schema.decodeUnknownEffect(codec)
