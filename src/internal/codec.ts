/**
 * How does JSON become a value and a value JSON? By one codec per schema, compiled once.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Issue from "effect/SchemaIssue"
import * as Parser from "effect/SchemaParser"
import * as Text from "./text.ts"

/** What is wrong with one place of a value. */
export interface PathIssue {
  readonly path: string
  readonly message: string
}

/**
 * A schema's JSON codec. Both directions give an Effect that is already an `Exit` when the schema needs neither
 * services nor time, so that a caller can go on without a step of the runtime. What comes out shares nothing mutable
 * with what went in. A check that throws is a defect of the Effect, or thrown.
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
  const encode = Parser.encodeUnknownEffect(json)
  const shares = passesThrough(json.ast, new Set())
  const codec: Codec = {
    decode: shares ? (input) => decode(structuredClone(input)) : decode,
    encode: shares ? (value) => Effect.map(encode(value), (encoded) => structuredClone(encoded)) : encode,
    explain: (input) =>
      Effect.match(decode(input, { errors: "all" }), {
        onFailure: (issue) => toPathIssues(issue, input),
        onSuccess: () => []
      })
  }
  compiled.set(schema, codec)
  return codec
}

// A schema of anything hands on what it is given, so both sides would hold one mutable value.
const passesThrough = (ast: AST.AST, seen: Set<AST.AST>): boolean => {
  if (seen.has(ast)) return false
  seen.add(ast)
  const parts = AST.isObjects(ast)
    ? [...ast.propertySignatures.map(({ type }) => type), ...ast.indexSignatures.map(({ type }) => type)]
    : AST.isArrays(ast)
    ? [...ast.elements, ...ast.rest]
    : AST.isUnion(ast)
    ? ast.types
    : AST.isSuspend(ast)
    ? [ast.thunk()]
    : AST.isDeclaration(ast)
    ? ast.typeParameters
    : []
  return AST.isUnknown(ast) || AST.isAny(ast) || AST.isObjectKeyword(ast) ||
    (AST.isDeclaration(ast) && ast.encoding === undefined) ||
    [...parts, ...(ast.encoding ?? []).map(({ to }) => to)].some((part) => passesThrough(part, seen))
}

const format = Issue.makeFormatterStandardSchemaV1()

const toPathIssues = (issue: Issue.Issue, input: unknown): ReadonlyArray<PathIssue> => {
  const seen = new Set<string>()
  return format(issue).issues.flatMap(({ message, path = [] }) => {
    const keys = path.map((segment) => typeof segment === "object" ? segment.key : segment)
    const issue = { path: renderPath(keys), message: `${message}${received(keys, input)}` }
    if (seen.has(line(issue))) return []
    seen.add(line(issue))
    return [issue]
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
  return `, got ${Text.describe(value)}`
}

/** An issue of a value that does not encode, in a few words. */
export const describe = (issue: Issue.Issue): string =>
  new Schema.SchemaError(issue).message.replaceAll("\n  at ", " at ")

/** An issue as one line. */
export const line = ({ message, path }: PathIssue): string => path === "" ? message : `${path}: ${message}`

const most = 20

/** The first issues as lines, and how many more there are. */
export const lines = (issues: ReadonlyArray<PathIssue>): ReadonlyArray<string> =>
  issues.length <= most
    ? issues.map(line)
    : [...issues.slice(0, most).map(line), `… and ${issues.length - most} more like these`]
