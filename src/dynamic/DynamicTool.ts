/**
 * How does a tool come to be whose parameters are known at run time only? From a JSON Schema: of a server, a file, a
 * user.
 *
 * The document is advertised as it stands, with `type: "object"` at a root that leaves its type open. Arguments are held
 * to it without code generation, all mistakes at once, each in the words of a Schema tool; everything else is as for any
 * tool. This wing needs `@cfworker/json-schema`.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Callable from "../internal/callable.ts"
import * as Tool from "../Tool.ts"
import * as Validator from "./internal/validator.ts"

/**
 * The arguments that a JSON Schema describes, as far as types know them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Arguments {
  readonly [name: string]: unknown
}

/**
 * Declares a tool by the JSON Schema of its arguments.
 *
 * The dialect is what `$schema` says: draft-07, 2019-09 or 2020-12, which is also the default. `format`, `default` and
 * keywords that are not known say nothing; an array of `items` and `dependencies` are understood in each dialect, and
 * so are names of types in capitals. The handler gets a copy of the arguments, with nothing filled in.
 *
 * A document is refused where a registry is assembled if its root is no schema of an object, if a reference leads out of
 * it or nowhere (nothing is ever fetched) or depends on the way it is reached, if it asks for `$async`, is malformed, of
 * another dialect, no JSON, or more than 100 levels deep, if a pattern does not compile, if checking would never end, or
 * if a property is required that is not among the properties.
 *
 * **Gotchas**
 *
 * Patterns are matched by the engine's own regular expressions, and never on more than 10,000 code points: a longer
 * string does not fit a schema that has a pattern. That does not make a malicious pattern harmless, which may take very
 * long for a short string. Look at the patterns of a schema that you do not trust, or do without.
 *
 * **Example** (A tool of a server)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as DynamicTool from "toolfold/dynamic/DynamicTool"
 * import * as Tool from "toolfold/Tool"
 *
 * const forecast = DynamicTool.make("forecast", {
 *   description: "Tells the weather of the next days",
 *   jsonSchema: {
 *     type: "object",
 *     properties: { city: { type: "string" }, days: { type: "integer", maximum: 7 } },
 *     required: ["city"]
 *   },
 *   handler: ({ city }) => Effect.succeed(`Rain in ${city}`)
 * })
 *
 * await Effect.runPromise(forecast({ city: "Bergen" })) // => "Rain in Bergen"
 * Tool.validate(forecast, { days: 9 }).errors // => ["city: Missing key", "days: Expected a value less than or equal to 7, got number 9"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <
  const Name extends string,
  R,
  Out extends Schema.Constraint = Schema.String,
  Fail extends Schema.Constraint = Schema.Never
>(
  name: Name,
  options: Tool.Options & {
    readonly description?: string | undefined
    /** The JSON Schema of the arguments. It is copied: what becomes of it later changes nothing. */
    readonly jsonSchema: { readonly [keyword: string]: unknown }
    readonly output?: Out | undefined
    readonly failure?: Fail | undefined
    /** See `Tool.conflictKey`. */
    readonly conflictKey?: ((input: Arguments) => string) | undefined
    readonly handler: (input: Arguments) => Effect.Effect<NoInfer<Out>["Type"], NoInfer<Fail>["Type"], R>
  }
): Tool.Tool<Name, Schema.Codec<Arguments>, Out, Fail, R> => {
  const { jsonSchema, ...others } = options
  const { advertised, problems, validate } = Validator.make(jsonSchema)
  const input: Schema.Codec<Arguments> = Schema.Record(Schema.String, Schema.Unknown).check(
    Schema.makeFilter((value) => validate(value).map(({ message, path }) => ({ path, issue: message })))
  )
  const tool = Tool.make(name, { ...others, input })
  const document = typeof advertised === "object" ? advertised : {}
  const rootless = typeof advertised === "boolean" || !allowsObject(document.type)
    ? ["is no schema of an object, which arguments always are"]
    : []
  return Callable.advertiseAs(
    tool as unknown as Tool.Any, // what `Out` and `Fail` are is not known here
    { ...document, type: "object" },
    [...problems, ...rootless].map((problem) => `its JSON Schema ${problem}`)
  ) as unknown as typeof tool // the same tool
}

const allowsObject = (type: unknown): boolean =>
  type === undefined || (Array.isArray(type) ? type : [type]).some((one) => String(one).toLowerCase() === "object")
