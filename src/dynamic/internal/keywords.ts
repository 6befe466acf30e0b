/**
 * What may a keyword of JSON Schema hold, and in which dialect does it say anything?
 */
import * as Arguments from "../../internal/arguments.ts"
import type { JsonSchema } from "../../internal/jsonSchema.ts"

/** The dialects that are known, each with what names it. */
export const dialects = [
  [/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/, "draft-07"],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, "2019-09"],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, "2020-12"]
] as const

export type Dialect = typeof dialects[number][1]

/** The dialect that a `$schema` names. */
export const dialectOf = (uri: unknown): Dialect | undefined =>
  typeof uri === "string" ? dialects.find(([named]) => named.test(uri))?.[1] : undefined

/** Keywords of a later dialect, or of an earlier one, which say nothing. */
export const unsaid: { readonly [dialect in Dialect]: ReadonlySet<string> } = {
  "draft-07": new Set([
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "dependentSchemas",
    "dependentRequired",
    "minContains",
    "maxContains",
    "$dynamicRef",
    "$recursiveRef"
  ]),
  "2019-09": new Set(["prefixItems", "$dynamicRef"]),
  "2020-12": new Set(["$recursiveRef"])
}

// The applicators, by the shape of their value. Those in place judge the value itself, the others a part of it.
export const ofOneInPlace = new Set(["not", "if", "then", "else"])
export const ofManyInPlace = new Set(["allOf", "anyOf", "oneOf"])
export const ofOne = new Set([
  ...ofOneInPlace,
  "items",
  "contains",
  "additionalItems",
  "additionalProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties"
])
export const ofMany = new Set([...ofManyInPlace, "prefixItems"])
export const byName = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "$defs",
  "definitions"
])
export const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"])

const typeNames = ["string", "number", "integer", "boolean", "null", "array", "object"]

const isNames = (u: unknown): boolean => Array.isArray(u) && u.every((name) => typeof name === "string")
const isCount = (u: unknown): boolean => Number.isInteger(u) && Number(u) >= 0

/** The types that a `type` names. Gemini's dialect has them in capitals. */
export const typesOf = (u: unknown): ReadonlyArray<string> | undefined => {
  const named = (Array.isArray(u) ? u : [u]).map((name) => String(name).toLowerCase())
  return named.length > 0 && named.every((name) => typeNames.includes(name)) ? named : undefined
}

const number = ["a number", (u: unknown) => typeof u === "number"] as const
const schemas = ["an object of schemas by name", Arguments.isObject] as const
const count = ["a whole number that is not negative", isCount] as const

/** What the value of a keyword has to be. */
export const shapes = new Map<string, readonly [what: string, is: (u: unknown) => boolean]>(Object.entries({
  type: [`one or several of ${typeNames.join(", ")}`, (u) => typesOf(u) !== undefined],
  enum: ["a list of values", Array.isArray],
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: ["a number above 0", (u) => typeof u === "number" && u > 0],
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minContains: count,
  maxContains: count,
  minProperties: count,
  maxProperties: count,
  uniqueItems: ["true or false", (u) => typeof u === "boolean"],
  pattern: ["a string", (u) => typeof u === "string"],
  ...Object.fromEntries(Array.from(byName, (keyword) => [keyword, schemas])),
  required: ["a list of names", isNames],
  dependentRequired: ["lists of names by name", (u) => Arguments.isObject(u) && Object.values(u).every(isNames)],
  $ref: ["a string", (u) => typeof u === "string"],
  $dynamicRef: ["a string", (u) => typeof u === "string"],
  $recursiveRef: ['"#"', (u) => u === "#"]
}))

/** Whether a schema is one with keywords. */
export const isNode = (u: unknown): u is JsonSchema => Arguments.isObject(u)

/** The schemas right below a schema. */
export const below = (schema: JsonSchema): ReadonlyArray<unknown> =>
  Object.entries(schema).flatMap(([keyword, value]) =>
    Array.isArray(value)
      ? ofMany.has(keyword) || keyword === "items" ? value : []
      : byName.has(keyword) && isNode(value)
      ? Object.values(value)
      : ofOne.has(keyword)
      ? [value]
      : []
  )
