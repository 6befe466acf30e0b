/**
 * How are values read that JSON holds as they are? Texts, numbers, truth values, and objects and lists of them are looked
 * at and copied, which gives what Schema's own parser gives in a fraction of its time.
 *
 * It knows only what fits. All else is left for Schema, which decides it, and says what is wrong.
 */
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Arguments from "./arguments.ts"

/** What a reader gives for a value that it does not know. */
export const unread: unique symbol = Symbol("toolfold/plain/unread")

/** Gives a copy of a value that fits. What a check throws, it throws. */
export interface Reader {
  (u: unknown): unknown
}

/** The reader for a schema that encodes nothing and asks nobody; none for another. */
export const reader = (ast: AST.AST): Reader | undefined => readerOf(ast, inward)

/** The same for the way back. */
export const writer = (ast: AST.AST): Reader | undefined => readerOf(ast, outward)

/** Inward or outward: what a check sees of what was given and what was read of it, and the readers that are made. */
interface Direction {
  readonly seen: (given: unknown, read: unknown) => unknown
  /** A schema may share its parts, many times over. */
  readonly readers: WeakMap<AST.AST, { readonly read: Reader | undefined }>
}

const inward: Direction = { seen: (_, read) => read, readers: new WeakMap() }

// A check sees what is written with all that is in it and not in the schema.
const outward: Direction = { seen: (given) => given, readers: new WeakMap() }

const readerOf = (ast: AST.AST, direction: Direction): Reader | undefined => {
  const known = direction.readers.get(ast)
  if (known !== undefined) return known.read
  const read = isPlain(ast) ? checked(unchecked(ast, direction), ast, direction) : undefined
  direction.readers.set(ast, { read })
  return read
}

const isPlain = (ast: AST.AST): boolean =>
  ast.encoding === undefined && !("encodingChecks" in ast && ast.encodingChecks !== undefined)

const unchecked = (ast: AST.AST, direction: Direction): Reader | undefined => {
  switch (ast._tag) {
    case "String":
      return (u) => typeof u === "string" ? u : unread
    case "Number":
      return (u) => typeof u === "number" ? u : unread
    case "Boolean":
      return (u) => typeof u === "boolean" ? u : unread
    case "Null":
      return (u) => u === null ? u : unread
    case "Literal":
      return (u) => u === ast.literal ? u : unread
    case "Objects":
      return objects(ast, direction)
    case "Arrays":
      return arrays(ast, direction)
    case "Union":
      return union(ast, direction)
    default:
      return undefined
  }
}

/** Says whether a check holds. */
interface Holds {
  (u: unknown, ast: AST.AST): boolean
}

const checked = (read: Reader | undefined, ast: AST.AST, { seen }: Direction): Reader | undefined => {
  if (read === undefined || ast.checks === undefined) return read
  const checks = checksOf(ast.checks)
  return (u) => {
    const value = read(u)
    if (value === unread) return unread
    for (const holds of checks) if (!holds(seen(u, value), ast)) return unread
    return value
  }
}

const checksOf = (checks: ReadonlyArray<AST.Check<unknown>>): ReadonlyArray<Holds> =>
  checks.flatMap((check) => check._tag === "Filter" ? [holdsOf(check)] : checksOf(check.checks))

const options: AST.ParseOptions = {}

// Schema's own way round an issue would be the dearest part of a number, and nearly every number has one of two checks.
const holdsOf = ({ run }: AST.Filter<unknown>): Holds =>
  run === runOf(Schema.Finite)
    ? Number.isFinite
    : run === runOf(Schema.Int)
    ? Number.isSafeInteger
    : (u, ast) => run(u, ast, options) === undefined

/** What the check of a schema does, which an annotated one does too, and nobody else's that only says the same. */
const runOf = ({ ast: { checks } }: Schema.Constraint): AST.Filter<unknown>["run"] | undefined => {
  const check = checks?.[0]
  return check?._tag === "Filter" ? check.run : undefined
}

interface Field {
  readonly name: string
  readonly read: Reader
  readonly isOptional: boolean
}

const objects = ({ indexSignatures, propertySignatures }: AST.Objects, direction: Direction): Reader | undefined => {
  const fields = propertySignatures.flatMap(({ name, type }): ReadonlyArray<Field> => {
    const read = readerOf(type, direction)
    return typeof name !== "string" || name === "__proto__" || read === undefined
      ? []
      : [{ name, read, isOptional: AST.isOptional(type) }]
  })
  if (indexSignatures.length > 0 || fields.length === 0 || fields.length < propertySignatures.length) return undefined
  return (u) => {
    if (!Arguments.isObject(u)) return unread
    const out: Record<string, unknown> = {}
    for (const { isOptional, name, read } of fields) {
      // One that must be there is there if it has a value; whether it is costs several times as much to ask.
      // Whether it is there costs several times as much to ask as its value, which says it of one that must be there.
      if (isOptional && !(name in u)) continue
      const value = read(u[name])
      if (value === unread) return unread
      out[name] = value
    }
    return out
  }
}

/** Lists, not tuples. */
const arrays = ({ elements, rest: [item, ...more] }: AST.Arrays, direction: Direction): Reader | undefined => {
  const read = item && readerOf(item, direction)
  if (read === undefined || elements.length > 0 || more.length > 0) return undefined
  return (u) => {
    if (!Array.isArray(u)) return unread
    const { length } = u
    const out: Array<unknown> = []
    for (let at = 0; at < length; at++) {
      const value = read(u[at])
      if (value === unread) return unread
      out.push(value)
    }
    return out
  }
}

/** Literals, or members of which no two are of one type: Schema would look at no other of them first. */
const union = ({ options, types }: AST.Union, direction: Direction): Reader | undefined => {
  const kinds = new Set(types.map(kindOf))
  const isClear = types.every(isLiteral) || (kinds.size === types.length && !kinds.has("Union"))
  const readers = types.map((type) => readerOf(type, direction)).filter((read) => read !== undefined)
  if (options?.mode === "oneOf" || !isClear || readers.length < types.length) return undefined
  return (u) => {
    for (const read of readers) {
      const value = read(u)
      if (value !== unread) return value
    }
    return unread
  }
}

const isLiteral = (ast: AST.AST): boolean => ast._tag === "Literal" && ast.checks === undefined

const kindOf = (ast: AST.AST): string => ast._tag === "Literal" ? tags[typeof ast.literal] ?? ast._tag : ast._tag

const tags: { readonly [type: string]: AST.AST["_tag"] } = { string: "String", number: "Number", boolean: "Boolean" }
