/**
 * How may a program that is replayed differ from its tape? It asks something else, it asks for more, or it asks for less.
 */
import * as Schema from "effect/Schema"

/**
 * The program asked something else than was recorded. `turn` is the exchange, counted from 0, `within` the call in which
 * it was asked, empty outside of any, and `path` the first place that differs: of a request, or of the input of a call.
 *
 * @category errors
 * @since 0.1.0
 */
export class Drift extends Schema.TaggedError<Drift>()("TapeDrift", {
  tape: Schema.String,
  turn: Schema.Int,
  within: Schema.String,
  path: Schema.String,
  recorded: Schema.String,
  came: Schema.String
}) {
  override get message(): string {
    return `the program differs from the tape ${JSON.stringify(this.tape)} in turn ${this.turn}${
      inCall(this.within)
    }, at ${this.path}: recorded was ${this.recorded}, and now came ${this.came}; record it anew if that is meant`
  }
}

/**
 * The program asked for what the tape does not have.
 *
 * @category errors
 * @since 0.1.0
 */
export class Miss extends Schema.TaggedError<Miss>()("TapeMiss", {
  tape: Schema.String,
  turn: Schema.Int,
  within: Schema.String,
  wanted: Schema.String,
  isComplete: Schema.Boolean
}) {
  override get message(): string {
    return `the tape ${JSON.stringify(this.tape)} has no ${this.wanted} for turn ${this.turn}${inCall(this.within)}${
      this.isComplete ? "" : ": its recording was cut off"
    }; record it anew`
  }
}

/**
 * The program ended, and did not ask for all that the tape has.
 *
 * @category errors
 * @since 0.1.0
 */
export class LeftOver extends Schema.TaggedError<LeftOver>()("TapeLeftOver", {
  tape: Schema.String,
  left: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `the program ended before the tape ${JSON.stringify(this.tape)}, of which is left:\n${
      this.left.map((each) => `- ${each}`).join("\n")
    }`
  }
}

/** Where, for a message. */
export const inCall = (within: string): string => within === "" ? "" : ` within call ${within}`
