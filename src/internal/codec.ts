/**
 * How does JSON become a value and a value JSON? By one codec per schema, compiled once.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Issue from "effect/SchemaIssue"
import * as Parser from "effect/SchemaParser"

/** What is wrong with one place of a value. */
export interface PathIssue {
  readonly path: string
  readonly message: string
}

/**
 * A schema's JSON codec. Both directions give an Effect that is already an `Exit` when the schema needs neither
 * services nor time, so that a caller can go on without a step of the runtime.
 */
export interface Codec {
  readonly decode: (input: unknown) => Effect.Effect<unknown, Issue.Issue, unknown>
  readonly encode: (value: unknown) => Effect.Effect<unknown, Issue.Issue, unknown>
  /** Every issue of an input that does not decode, one a place. */
  readonly explain: (input: unknown) => Effect.Effect<ReadonlyArray<PathIssue>, never, unknown>
}

const compiled = new WeakMap<Schema.Constraint, Codec>()

/** The codec between a schema's values and JSON. */
export const jsonCodec = (schema: Schema.Constraint): Codec => {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const json = Schema.toCodecJson(schema)
  const decode = Parser.decodeUnknownEffect(json)
  const codec: Codec = {
    decode,
    encode: Parser.encodeUnknownEffect(json),
    explain: (input) =>
      Effect.match(decode(input, { errors: "all" }), {
        onFailure: (issue) => toPathIssues(issue, input),
        onSuccess: () => []
      })
  }
  compiled.set(schema, codec)
  return codec
}

const format = Issue.makeFormatterStandardSchemaV1()

const toPathIssues = (issue: Issue.Issue, input: unknown): ReadonlyArray<PathIssue> => {
  const seen = new Set<string>()
  return format(issue).issues.flatMap(({ message, path = [] }) => {
    const keys = path.map((segment) => typeof segment === "object" ? segment.key : segment)
    const line = { path: renderPath(keys), message: `${message}${received(keys, input)}` }
    const id = `${line.path}: ${line.message}`
    if (seen.has(id)) return []
    seen.add(id)
    return [line]
  })
}

const renderPath = (keys: ReadonlyArray<PropertyKey>): string =>
  keys.reduce<string>(
    (path, key) => typeof key === "number" ? `${path}[${key}]` : path === "" ? String(key) : `${path}.${String(key)}`,
    ""
  )

const received = (keys: ReadonlyArray<PropertyKey>, input: unknown): string => {
  let value = input
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return ""
    value = Reflect.get(value, key)
  }
  return `, got ${describe(value)}`
}

/** A value in a few words, for a message: its type, and a bounded excerpt. */
export const describe = (value: unknown): string => {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === "object") return `an object with ${excerpt(Object.keys(value).join(", ")) || "no keys"}`
  return `${typeof value} ${typeof value === "string" ? JSON.stringify(excerpt(value)) : excerpt(String(value))}`
}

/** At most 60 characters of a text, never half a character. */
export const excerpt = (text: string, most = 60): string => {
  if (text.length <= most) return text.toWellFormed()
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most
  return `${text.slice(0, end).toWellFormed()}…`
}

/** An issue as one line. */
export const line = ({ message, path }: PathIssue): string => path === "" ? message : `${path}: ${message}`
