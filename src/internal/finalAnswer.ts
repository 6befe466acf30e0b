/**
 * Does the model's last word have the form that was asked for? It is read as JSON, decoded by the schema of the answer, and
 * sent back with everything that is wrong with it.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Arguments from "./arguments.ts"
import type { Request } from "./ask.ts"
import * as Codec from "./codec.ts"
import * as Explain from "./explain.ts"
import * as JsonSchema from "./jsonSchema.ts"
import * as Repair from "./repair.ts"
import * as Text from "./text.ts"

/** The form of an answer: what a model is asked for, and how its text is read. */
export interface Form {
  readonly schema: Schema.Constraint
  readonly format: NonNullable<Request["format"]>
  readonly codec: Codec.Codec
  /** Whether the answer is a member of the object that is asked for, since providers take objects only. */
  readonly isWrapped: boolean
}

const name = "answer"

/** The form of answers of a schema. */
export const form = (schema: Schema.Constraint): Form => {
  const isWrapped = JsonSchema.advertise(schema)["type"] !== "object"
  const source = isWrapped ? Schema.Struct({ [name]: schema }) : schema
  return {
    schema,
    format: { name, schema: JsonSchema.advertise(source), source },
    codec: Codec.jsonCodec(source),
    isWrapped
  }
}

/** An answer that fits, or everything that is wrong with it, one line an issue. */
export type Read =
  | { readonly _tag: "Fits"; readonly value: unknown }
  | { readonly _tag: "Misfit"; readonly problems: ReadonlyArray<string> }

/** Reads an answer. What needs no guess is read into it, as into the arguments of a call. */
export const read = ({ codec, format, isWrapped }: Form, text: string): Effect.Effect<Read> => {
  const { input } = Arguments.parse(text)
  if (!Arguments.isObject(input)) {
    return Effect.succeed({
      _tag: "Misfit",
      problems: [`expected one JSON object and nothing else, got ${Text.describe(input ?? text)}`]
    })
  }
  const fits = (value: unknown): Read => ({ _tag: "Fits", value: isWrapped ? Reflect.get(Object(value), name) : value })
  const repaired = Repair.repair(format.schema, input)?.input ?? input
  return Effect.catch(
    Effect.map(codec.decode(input), fits),
    () =>
      Effect.catch(
        Effect.map(codec.decode(repaired), fits),
        () =>
          Effect.map(codec.explain(repaired), (issues): Read => ({ _tag: "Misfit", problems: Explain.lines(issues) }))
      )
    // The schema of an answer needs nothing.
  ) as Effect.Effect<Read>
}

/** What the model is told of an answer that does not fit. */
export const correction = (problems: ReadonlyArray<string>): Prompt.UserMessage =>
  Prompt.makeMessage("user", {
    content: [
      Prompt.makePart("text", {
        text: `Your answer does not have the form that was asked for:\n${
          problems.map((problem) => `- ${problem}`).join("\n")
        }\nAnswer again, with the corrected JSON alone.`
      })
    ]
  })
