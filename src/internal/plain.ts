/**
 * How are values read that JSON holds as they are? Texts, numbers, truth values, and objects and lists of them are looked
 * at and copied, which gives what Schema's own parser gives in a fraction of its time.
 *
 * It knows only what fits. All else is left for Schema, which decides it, and says what is wrong.
 */
import * as AST from "effect/SchemaAST"

/** What a reader gives for a value that it does not know. */
export const unread: unique symbol = Symbol("toolfold/plain/unread")

/** Gives a copy of a value that fits. What a check throws, it throws. */
export interface Reader {
  (u: unknown): unknown
}

/** The reader for a schema that encodes nothing and asks nobody; none for another. */
export const reader = (ast: AST.AST): Reader | undefined => readerOf(ast, (_, read) => read)

/** The same for the way back. A check there sees what is written, with all that is in it and not in the schema. */
export const writer = (ast: AST.AST): Reader | undefined => readerOf(ast, (given) => given)

/** What a check sees, of what was given and what was read of it. */
interface Seen {
  (given: unknown, read: unknown): unknown
}

const readerOf = (ast: AST.AST, seen: Seen): Reader | undefined => {
  if (ast.encoding !== undefined || ("encodingChecks" in ast && ast.encodingChecks !== undefined)) return undefined
  const read = unchecked(ast, seen)
  return read === undefined || ast.checks === undefined ? read : checked(read, checksOf(ast.checks), ast, seen)
}

const unchecked = (ast: AST.AST, seen: Seen): Reader | undefined => {
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
      return objects(ast, seen)
    case "Arrays":
      return arrays(ast, seen)
    case "Union":
      return union(ast, seen)
    default:
      return undefined
  }
}

/** Says whether a check holds. */
interface Holds {
  (u: unknown, ast: AST.AST): boolean
}

const checked = (read: Reader, checks: ReadonlyArray<Holds>, ast: AST.AST, seen: Seen): Reader => (u) => {
  const value = read(u)
  if (value === unread) return unread
  for (const holds of checks) if (!holds(seen(u, value), ast)) return unread
  return value
}

const checksOf = (checks: ReadonlyArray<AST.Check<unknown>>): ReadonlyArray<Holds> =>
  checks.flatMap((check) => check._tag === "Filter" ? [holdsOf(check)] : checksOf(check.checks))

const options: AST.ParseOptions = {}

// Nearly every number has one of the first two, which Schema's way round its issues would make the dearest part of it.
const holdsOf = (filter: AST.Filter<unknown>): Holds => {
  switch (filter.annotations?.representation?.id) {
    case "effect/schema/isFinite":
      return Number.isFinite
    case "effect/schema/isInt":
      return Number.isSafeInteger
    default:
      return (u, ast) => filter.run(u, ast, options) === undefined
  }
}

interface Field {
  readonly name: string
  readonly read: Reader
  readonly isOptional: boolean
}

const objects = ({ indexSignatures, propertySignatures }: AST.Objects, seen: Seen): Reader | undefined => {
  const fields = propertySignatures.flatMap(({ name, type }): ReadonlyArray<Field> => {
    const read = readerOf(type, seen)
    return typeof name !== "string" || name === "__proto__" || read === undefined
      ? []
      : [{ name, read, isOptional: AST.isOptional(type) }]
  })
  if (indexSignatures.length > 0 || fields.length === 0 || fields.length < propertySignatures.length) return undefined
  return (u) => {
    if (!isRecord(u)) return unread
    const out: Record<string, unknown> = {}
    for (const { isOptional, name, read } of fields) {
      const given = u[name]
      // Nothing plain is undefined; asked first, since `in` costs several times as much.
      if (given === undefined) {
        if (!isOptional || name in u) return unread
        continue
      }
      const value = read(given)
      if (value === unread) return unread
      out[name] = value
    }
    return out
  }
}

const isRecord = (u: unknown): u is { readonly [key: string]: unknown } =>
  typeof u === "object" && u !== null && !Array.isArray(u)

/** Lists, not tuples. */
const arrays = ({ elements, rest: [item, ...more] }: AST.Arrays, seen: Seen): Reader | undefined => {
  const read = item && readerOf(item, seen)
  if (read === undefined || elements.length > 0 || more.length > 0) return undefined
  return (u) => {
    if (!Array.isArray(u)) return unread
    const out: Array<unknown> = []
    for (const member of u) {
      const value = read(member)
      if (value === unread) return unread
      out.push(value)
    }
    return out
  }
}

/** The first that fits. */
const union = ({ options, types }: AST.Union, seen: Seen): Reader | undefined => {
  const readers = types.map((type) => readerOf(type, seen)).filter((read) => read !== undefined)
  if (options?.mode === "oneOf" || readers.length < types.length) return undefined
  return (u) => {
    for (const read of readers) {
      const value = read(u)
      if (value !== unread) return value
    }
    return unread
  }
}
