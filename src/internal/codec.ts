/**
 * How does JSON become a value and a value JSON? By one codec per schema, compiled once.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type * as Issue from "effect/SchemaIssue"
import * as Parser from "effect/SchemaParser"
import * as Explain from "./explain.ts"
import * as Plain from "./plain.ts"
import * as Results from "./results.ts"

/**
 * A schema's JSON codec. `decode` and `encode` give an Effect that is already an `Exit` when the schema needs neither
 * services nor time. What comes out shares nothing mutable with what went in. A check that throws is a defect of the
 * Effect, or thrown.
 */
export interface Codec {
  /** `decode` of what JSON holds as it is, at once; `Plain.unread` of all else. */
  readonly read: Plain.Reader
  /** `encode` of the same. */
  readonly write: Plain.Reader
  readonly decode: (input: unknown) => Effect.Effect<unknown, Issue.Issue, unknown>
  readonly encode: (value: unknown) => Effect.Effect<unknown, Issue.Issue, unknown>
  /** The issues of an input that does not decode, one a place, and no more of them than anybody reads. */
  readonly explain: (input: unknown) => Effect.Effect<ReadonlyArray<Explain.PathIssue>, never, unknown>
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
    read: Plain.reader(json.ast) ?? knowsNone,
    write: Plain.writer(json.ast) ?? knowsNone,
    decode: shares ? (input) => decode(structuredClone(input)) : decode,
    encode: shares ? (value) => Effect.map(encode(value), Results.toJson) : encode,
    explain: (input) =>
      Effect.match(decode(input, { errors: "all" }), {
        onFailure: (issue) => Explain.explain(issue, { ast: json.ast, input }),
        onSuccess: () => []
      })
  }
  compiled.set(schema, codec)
  return codec
}

const knowsNone: Plain.Reader = () => Plain.unread

// A schema of anything hands on what it is given, so both sides would hold one mutable value.
const passesThrough = (ast: AST.AST, seen: Set<AST.AST>): boolean => {
  if (seen.has(ast)) return false
  seen.add(ast)
  return AST.isUnknown(ast) || AST.isAny(ast) || AST.isObjectKeyword(ast) ||
    (AST.isDeclaration(ast) && ast.encoding === undefined) ||
    partsOf(ast).some((part) => passesThrough(part, seen))
}

/** What a schema is made of, and what it is encoded to. */
export const partsOf = (ast: AST.AST): ReadonlyArray<AST.AST> => [
  ...(AST.isObjects(ast)
    ? [...ast.propertySignatures.map(({ type }) => type), ...ast.indexSignatures.map(({ type }) => type)]
    : AST.isArrays(ast)
    ? [...ast.elements, ...ast.rest]
    : AST.isUnion(ast)
    ? ast.types
    : AST.isSuspend(ast)
    ? [ast.thunk()]
    : AST.isDeclaration(ast)
    ? ast.typeParameters
    : []),
  ...(ast.encoding ?? []).map(({ to }) => to)
]
