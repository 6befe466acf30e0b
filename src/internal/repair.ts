/**
 * Which arguments did the model mean that do not fit as they are? The schema that it was shown says so, or nobody does.
 *
 * A value is changed only where the schema has no use for what came and exactly one for what it reads as. A text that
 * the schema takes as a text is never touched. Each change is recorded with its path.
 */
import * as Result from "effect/Result"
import * as Arguments from "./arguments.ts"
import type { JsonSchema } from "./jsonSchema.ts"
import * as Text from "./text.ts"

/** A repaired input, and what was changed. */
export interface Repaired {
  readonly input: unknown
  readonly repairs: ReadonlyArray<string>
}

/** Repairs an input that did not decode; nothing where there is nothing to repair. The input itself stays as it is. */
export const repair = (schema: JsonSchema, input: unknown): Repaired | undefined => {
  const run: Run = { root: schema, repairs: [], steps: 0 }
  const repaired = walk(run, schema, input, "", 0)
  if (run.steps > mostSteps || run.repairs.length === 0) return undefined
  const more = run.repairs.length - mostRepairs
  const repairs = more > 0 ? [...run.repairs.slice(0, mostRepairs), `… and ${more} more like these`] : run.repairs
  return { input: repaired, repairs }
}

const mostRepairs = 100

interface Run {
  readonly root: JsonSchema
  readonly repairs: Array<string>
  steps: number
}

// Alternatives are tried, and nested ones multiply: an input that takes longer than this is not repaired at all.
const mostSteps = 300_000
const mostDepth = 200

const isSpent = (run: Run, depth: number): boolean => ++run.steps > mostSteps || depth > mostDepth

const walk = (run: Run, schema: unknown, value: unknown, path: string, depth: number): unknown => {
  if (isSpent(run, depth)) return value
  const parts = partsOf(run, schema)
  let current = typeof value === "string" ? readText(run, typesOf(run, parts, depth), value, path) : value
  for (const part of parts) {
    for (const alternatives of alternativesOf(part)) {
      current = walkAlternatives(run, alternatives, current, path, depth + 1)
    }
    if (Array.isArray(current)) current = walkItems(run, part, current, path, depth + 1)
    else if (Arguments.isObject(current)) current = walkMembers(run, part, parts, current, path, depth + 1)
  }
  return current
}

const readText = (run: Run, types: Types | undefined, text: string, path: string): unknown => {
  if (types === undefined || types.has("string")) return text
  const read = readAs(types, text.trim())
  if (read === undefined) return text
  const note = at(path, `read the string ${JSON.stringify(Text.excerpt(text))} as ${nouns[kindOf(read.value)]}`)
  run.repairs.push(note, ...read.repairs.map((repair) => at(path, repair)))
  return read.value
}

const readAs = (types: Types, text: string): Arguments.Reading | undefined => {
  const read = /^(?:true|false)$/i.test(text)
    ? { value: text.toLowerCase() === "true", repairs: [] }
    : isNumber(text)
    ? { value: Number(text), repairs: [] }
    : /^[[{]/.test(text)
    ? Arguments.json(text)
    : undefined
  return read !== undefined && admits(types, read.value) ? read : undefined
}

// A whole number that is written out and that no number holds is not read as one: it would be another.
const isNumber = (text: string): boolean => {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) return false
  const number = Number(text)
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number) || /e/i.test(text))
}

const nouns = {
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  array: "an array",
  object: "an object",
  null: "null"
} as const

const at = (path: string, what: string): string => path === "" ? what : `${Text.excerpt(path, 200)}: ${what}`

const gone = Symbol("gone")

const walkMembers = (run: Run, part: JsonSchema, parts: Parts, value: object, path: string, depth: number): unknown => {
  const entries = Object.entries(value)
  const walked = entries.map(([key, member]) => {
    const below = Text.excerpt(key)
    const place = path === "" ? below : `${path}.${below}`
    const property = own(part.properties, key)
    if (property !== undefined && member === null && isAbsent(run, property, parts, key, depth)) {
      run.repairs.push(at(place, "read null as absent"))
      return gone
    }
    const schema = property ?? additionalOf(part)
    return schema === undefined ? member : walk(run, schema, member, place, depth)
  })
  // Own keys only are ever set: a key may be called __proto__.
  return walked.every((member, index) => member === entries[index]?.[1])
    ? value
    : Object.fromEntries(
      entries.flatMap(([key], index) => walked[index] === gone ? [] : [[key, walked[index]] as const])
    )
}

const isAbsent = (run: Run, property: unknown, parts: Parts, key: string, depth: number): boolean => {
  if (parts.some(({ required }) => Array.isArray(required) && required.includes(key))) return false
  const types = typesOf(run, partsOf(run, property), depth)
  return types !== undefined && !types.has("null")
}

const walkItems = (
  run: Run,
  { items, prefixItems }: JsonSchema,
  value: ReadonlyArray<unknown>,
  path: string,
  depth: number
): unknown => {
  const first = listOf(prefixItems)
  if (first.length === 0 && !Arguments.isObject(items)) return value
  const walked = value.map((item, index) => walk(run, first[index] ?? items, item, `${path}[${index}]`, depth))
  return walked.every((item, index) => item === value[index]) ? value : walked
}

/**
 * A value that one of the alternatives takes as it is stays. Else it becomes what the first takes that a repair makes fit;
 * and where only one can be meant, what can be repaired of it is, so that the rest can be told.
 */
const walkAlternatives = (
  run: Run,
  alternatives: ReadonlyArray<unknown>,
  value: unknown,
  path: string,
  depth: number
): unknown => {
  if (alternatives.some((schema) => fits(run, schema, value, depth))) return value
  const meant = Arguments.isObject(value) || Array.isArray(value)
    ? alternatives.filter((schema) => isMeant(run, schema, value, depth))
    : alternatives
  const before = run.repairs.length
  const changed = meant.flatMap((schema) => {
    const walked = walk(run, schema, value, path, depth)
    const repairs = run.repairs.splice(before)
    return walked === value ? [] : [{ walked, repairs, isFit: fits(run, schema, walked, depth) }]
  })
  const isClear = meant.length === 1 || typeof value === "string"
  const chosen = changed.find(({ isFit }) => isFit) ?? (isClear ? changed[0] : undefined)
  if (chosen === undefined) return value
  run.repairs.push(...chosen.repairs)
  return chosen.walked
}

/** Whether an alternative is one of this type, and of this tag. */
const isMeant = (run: Run, schema: unknown, value: object, depth: number): boolean => {
  const parts = partsOf(run, schema)
  const types = typesOf(run, parts, depth)
  return (types === undefined || admits(types, value)) &&
    parts.every(({ properties }) =>
      Object.entries(value).every(([key, member]) => {
        const allowed = typeof member === "string" ? constantsOf(run, own(properties, key)) : undefined
        return allowed === undefined || !allowed.every((constant) => typeof constant === "string") ||
          allowed.includes(member)
      })
    )
}

const constantsOf = (run: Run, schema: unknown): ReadonlyArray<unknown> | undefined =>
  partsOf(run, schema).map(allowedBy).find((allowed) => allowed !== undefined)

/** Whether a schema takes a value, as far as its types, its constants and its required properties say. */
const fits = (run: Run, schema: unknown, value: unknown, depth: number): boolean => {
  if (isSpent(run, depth) || schema === false) return false
  const parts = partsOf(run, schema)
  const types = typesOf(run, parts, depth)
  return (types === undefined || admits(types, value)) && parts.every((part) => {
    const allowed = allowedBy(part)
    return (allowed === undefined || allowed.some((constant) => isSame(constant, value))) &&
      alternativesOf(part).every((schemas) => schemas.some((schema) => fits(run, schema, value, depth + 1))) &&
      (Array.isArray(value)
        ? value.every((item, index) => fits(run, listOf(part.prefixItems)[index] ?? part.items, item, depth + 1))
        : !Arguments.isObject(value) || (
          listOf(part.required).every((key) => typeof key !== "string" || Object.hasOwn(value, key)) &&
          Object.entries(value).every(([key, member]) =>
            fits(run, own(part.properties, key) ?? additionalOf(part), member, depth + 1)
          )
        ))
  })
}

const isSame = (constant: unknown, value: unknown): boolean =>
  constant === value ||
  (typeof constant === "object" && typeof value === "object" && JSON.stringify(constant) === JSON.stringify(value))

/** What must hold at once of a value: a schema, what it refers to, and each of its `allOf`. */
type Parts = ReadonlyArray<JsonSchema>

const partsOf = (run: Run, schema: unknown): Parts => {
  const parts = new Set<JsonSchema>()
  const add = (node: unknown): void => {
    if (!isNode(node) || parts.has(node)) return
    parts.add(node)
    if (typeof node.$ref === "string") add(refer(run.root, node.$ref))
    listOf(node.allOf).forEach(add)
  }
  add(schema)
  return [...parts]
}

const isNode = (u: unknown): u is JsonSchema => Arguments.isObject(u)

const listOf = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []

const own = (record: unknown, key: string): unknown =>
  isNode(record) && Object.hasOwn(record, key) ? record[key] : undefined

// Which names a pattern takes is not asked.
const additionalOf = ({ additionalProperties, patternProperties }: JsonSchema): unknown =>
  patternProperties === undefined ? additionalProperties : undefined

/** What a JSON pointer in a URI refers to. */
const refer = (root: JsonSchema, $ref: string): unknown => {
  const pointer = $ref.startsWith("#") ? Result.try(() => decodeURIComponent($ref.slice(1))) : undefined
  if (pointer === undefined || Result.isFailure(pointer)) return undefined
  return pointer.success.split("/").slice(1).reduce<unknown>(
    (node, key) => own(node, key.replaceAll("~1", "/").replaceAll("~0", "~")),
    root
  )
}

const alternativesOf = ({ anyOf, oneOf }: JsonSchema): ReadonlyArray<ReadonlyArray<unknown>> =>
  [listOf(anyOf), listOf(oneOf)].filter((alternatives) => alternatives.length > 0)

const allowedBy = (node: JsonSchema): ReadonlyArray<unknown> | undefined =>
  Object.hasOwn(node, "const") ? [node.const] : Array.isArray(node.enum) ? node.enum : undefined

type Kind = keyof typeof nouns

/** The types of a value that a schema takes; nothing where it does not say. */
type Types = ReadonlySet<Kind | "integer">

const kindOf = (value: unknown): Kind =>
  value === null || value === undefined
    ? "null"
    : Array.isArray(value)
    ? "array"
    : typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? typeof value as "string" | "number" | "boolean" // what the line above has found out
    : "object"

const admits = (types: Types, value: unknown): boolean =>
  types.has(kindOf(value)) || (types.has("integer") && Number.isInteger(value))

const typesOf = (run: Run, parts: Parts, depth: number): Types | undefined =>
  isSpent(run, depth)
    ? undefined
    : parts.flatMap((part) => typesOfPart(run, part, depth + 1)).reduce<Types | undefined>(both, undefined)

const typesOfPart = (run: Run, part: JsonSchema, depth: number): ReadonlyArray<Types> => {
  const allowed = allowedBy(part)
  const named = typeof part.type === "string" ? [part.type] : part.type
  return [
    ...(Array.isArray(named) ? [new Set(named)] : []),
    ...(allowed === undefined ? [] : [new Set(allowed.map(kindOf))]),
    ...alternativesOf(part).flatMap((alternatives) => {
      const each = alternatives.map((schema) => typesOf(run, partsOf(run, schema), depth))
      return each.includes(undefined) ? [] : [new Set(each.flatMap((types) => [...types ?? []]))]
    })
  ]
}

const both = (known: Types | undefined, types: Types): Types =>
  known === undefined
    ? types
    : new Set(
      [...known, ...types].filter((type) => isAmong(known, type) && isAmong(types, type))
    )

const isAmong = (types: Types, type: Kind | "integer"): boolean =>
  types.has(type) || (type === "integer" && types.has("number"))
