/**
 * How are values read that JSON holds as they are? Texts, numbers, truth values, and objects and lists of them are looked
 * at and copied, which gives what Schema's own parser gives in a fraction of its time.
 *
 * It knows only what fits. All else is left for Schema, which decides it, and says what is wrong.
 */
import * as AST from "effect/SchemaAST"

/** What a reader gives for a value that it does not know. */
export const unknown: unique symbol = Symbol("toolfold/plain/unknown")

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
  return read === undefined || ast.checks === undefined ? read : checked(read, filtersOf(ast.checks), ast, seen)
}

const unchecked = (ast: AST.AST, seen: Seen): Reader | undefined => {
  switch (ast._tag) {
    case "String":
      return (u) => typeof u === "string" ? u : unknown
    case "Number":
      return (u) => typeof u === "number" ? u : unknown
    case "Boolean":
      return (u) => typeof u === "boolean" ? u : unknown
    case "Null":
      return (u) => u === null ? u : unknown
    case "Literal":
      return (u) => u === ast.literal ? u : unknown
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

const options: AST.ParseOptions = {}

const checked =
  (read: Reader, filters: ReadonlyArray<AST.Filter<unknown>>, ast: AST.AST, seen: Seen): Reader => (u) => {
    const value = read(u)
    if (value === unknown) return unknown
    for (const filter of filters) if (filter.run(seen(u, value), ast, options) !== undefined) return unknown
    return value
  }

const filtersOf = (checks: ReadonlyArray<AST.Check<unknown>>): ReadonlyArray<AST.Filter<unknown>> =>
  checks.flatMap((check) => check._tag === "Filter" ? [check] : filtersOf(check.checks))

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
    if (!isRecord(u)) return unknown
    const out: Record<string, unknown> = {}
    for (const { isOptional, name, read } of fields) {
      if (name in u) {
        const value = read(u[name])
        if (value === unknown) return unknown
        out[name] = value
      } else if (!isOptional) return unknown
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
    if (!Array.isArray(u)) return unknown
    const out: Array<unknown> = []
    for (const member of u) {
      const value = read(member)
      if (value === unknown) return unknown
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
      if (value !== unknown) return value
    }
    return unknown
  }
}
