/**
 * What is wrong with a value, by a JSON Schema? `@cfworker/json-schema` interprets the schema; what it finds becomes one
 * expectation for each place, as a Schema tool would word it.
 */
import { type OutputUnit, Validator as Interpreter } from "@cfworker/json-schema"
import * as Result from "effect/Result"
import * as Arguments from "../../internal/arguments.ts"
import type { JsonSchema } from "../../internal/jsonSchema.ts"
import * as Text from "../../internal/text.ts"
import * as Document from "./document.ts"
import * as References from "./references.ts"

/** What is wrong with one place of a value, and what would be right. */
export interface Issue {
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

/** A document's copy and problems, and the judge of values: it never throws. Values are JSON. */
export interface Validator {
  readonly advertised: JsonSchema | boolean | undefined
  readonly problems: ReadonlyArray<string>
  readonly validate: (value: unknown) => ReadonlyArray<Issue>
}

/** The validator of a document. One that has problems must not be asked. */
export const make = (document: unknown): Validator => {
  const { advertised, problems, schema } = Document.read(document)
  const interpreter = new Interpreter(schema, "2020-12", false)
  const validate = (value: unknown): ReadonlyArray<Issue> => {
    // Its lookups are plain: only an object without a prototype has no names but its own.
    const own = Document.bare(value)
    const { errors } = interpreter.validate(own)
    return errors.length === 0 ? [] : distinct(explain({ schema, value: own }, errors))
  }
  return {
    advertised,
    problems,
    // Only the stack gives out, where arguments are very deep or have very many mistakes.
    validate: (value) =>
      Result.getOrElse(Result.try(() => validate(value)), () => [
        { path: [], message: "Expected arguments that are smaller, or less deep" }
      ])
  }
}

const distinct = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> =>
  Array.from(new Map(issues.map((issue) => [JSON.stringify([issue.path, issue.message]), issue])).values())

interface Judged {
  readonly schema: JsonSchema
  readonly value: unknown
}

type Errors = ReadonlyArray<OutputUnit>

/** Errors come flat, each before those that explain it. */
const explain = (judged: Judged, errors: Errors): ReadonlyArray<Issue> => {
  const issues: Array<Issue> = []
  const wrong = new Set<string>()
  const told = new Set<string>()
  for (let at = 0; at < errors.length; at++) {
    const error = errors[at]
    if (error === undefined) continue
    const within = below(errors, at)
    if (isEcho(wrong, error, within)) at += within.length
    else wrong.add(error.instanceLocation)
    if (wrappers.has(error.keyword)) continue
    const group = whole.has(error.keyword)
    const complaint = `${error.instanceLocation} ${error.keywordLocation}`
    if (group || !told.has(complaint)) issues.push(...explainOne(judged, error, within))
    told.add(complaint)
    if (group) at += within.length
  }
  return issues
}

/** Whether a property is said to be one too many only because it was found wrong before. */
const isEcho = (wrong: ReadonlySet<string>, { instanceLocation, keyword }: OutputUnit, within: Errors): boolean => {
  if (keyword !== "additionalProperties" && keyword !== "unevaluatedProperties") return false
  const holder = `${instanceLocation}/`
  return wrong.has(holder + (within[0]?.instanceLocation ?? "").slice(holder.length).split("/", 1)[0])
}

/** Errors that only say that there are errors below. */
const wrappers = new Set([
  "$ref",
  "allOf",
  "if",
  "properties",
  "patternProperties",
  "additionalProperties",
  "unevaluatedProperties",
  "dependentSchemas",
  "prefixItems",
  "items",
  "unevaluatedItems"
])

/** Errors that say what those below them come to. */
const whole = new Set(["anyOf", "oneOf", "contains", "minContains", "maxContains", "propertyNames"])

const below = (errors: Errors, at: number): Errors => {
  const prefix = `${errors[at]?.keywordLocation}/`
  const explains = (error: OutputUnit | undefined) => error?.keywordLocation.startsWith(prefix)
  let end = at + 1
  while (explains(errors[end])) end++
  return errors.slice(at + 1, end)
}

const explainOne = (judged: Judged, error: OutputUnit, within: Errors): ReadonlyArray<Issue> => {
  const path = pathOf(judged, error)
  const schema = schemaOf(judged, error)
  const value = valueAt(judged.value, path)
  const stated: unknown = Reflect.get(schema, error.keyword)
  const issue = (expected: string): ReadonlyArray<Issue> => [{ path, message: `Expected ${expected}` }]
  const missing = (names: ReadonlyArray<string>, message: string): ReadonlyArray<Issue> =>
    names.filter((name) => !Object.hasOwn(Object(value), name)).map((name) => ({ path: [...path, name], message }))
  switch (error.keyword) {
    case "required":
      return missing(strings(stated), "Missing key")
    case "dependentRequired":
      return Object.entries(Object(stated)).flatMap(([name, needs]) =>
        Object.hasOwn(Object(value), name) ? missing(strings(needs), `Missing key, which comes with ${name}`) : []
      )
    case "anyOf":
    case "oneOf":
      return alternatives(judged, error, within, Array.isArray(stated) ? stated.length : 0)
    case "not":
      return issue(unwanted(judged, error, stated))
    case "propertyNames":
      return issue(
        `names of properties that are each ${
          expectations(explain({ ...judged, value: undefined }, within)).join(" and ")
        }`
      )
    default:
      return issue(expectation(error.keyword, stated, schema))
  }
}

// The words are those of effect's own checks.
const expectation = (keyword: string, stated: unknown, schema: JsonSchema): string => {
  switch (keyword) {
    case "type":
      return (Array.isArray(stated) ? stated : [stated]).map((type) => type === "integer" ? "an integer" : String(type))
        .join(" | ")
    case "enum":
      return (Array.isArray(stated) ? stated : []).map((member) => JSON.stringify(member)).join(" | ")
    case "const":
      return JSON.stringify(stated)
    case "minimum":
      return `a value greater than or equal to ${stated}`
    case "maximum":
      return `a value less than or equal to ${stated}`
    case "exclusiveMinimum":
      return `a value greater than ${stated}`
    case "exclusiveMaximum":
      return `a value less than ${stated}`
    case "multipleOf":
      return `a value that is a multiple of ${stated}`
    case "minLength":
      return `a string with at least ${stated} code points`
    case "maxLength":
      return `a string with at most ${stated} code points`
    case "pattern":
      return `a string matching the RegExp ${stated}`
    case "minItems":
      return `a value with a length of at least ${stated}`
    case "maxItems":
      return `a value with a length of at most ${stated}`
    case "uniqueItems":
      return "an array with unique items"
    case "minProperties":
      return `a value with at least ${entries(stated)}`
    case "maxProperties":
      return `a value with at most ${entries(stated)}`
    case "contains":
    case "minContains":
      return `an array with at least ${schema.minContains ?? 1} of ${shown(schema.contains)}`
    case "maxContains":
      return `an array with at most ${stated} of ${shown(schema.contains)}`
    default:
      return `what ${JSON.stringify(keyword)} asks for`
  }
}

const entries = (count: unknown): string => count === 1 ? "1 entry" : `${count} entries`

const shown = (schema: unknown): string => Text.excerpt(JSON.stringify(schema), 200)

const strings = (u: unknown): ReadonlyArray<string> => Array.isArray(u) ? u.map(String) : []

/** What is not to be there; a schema of nothing stands where nothing more is allowed. */
const unwanted = (judged: Judged, error: OutputUnit, stated: unknown): string => {
  if (!Arguments.isObject(stated) || Object.keys(stated).length > 0) return `a value that is not ${shown(stated)}`
  const [holder = "", keyword] = split(parentOf(error.keywordLocation))
  if (keyword === "items" || keyword === "unevaluatedItems") return "no such item"
  const { properties } = nodeAt(judged.schema, holder)
  const names = Object.keys(Object(properties)).join(", ")
  return keyword === "additionalProperties" && names !== ""
    ? `no such property; there are ${names}`
    : "no such property"
}

/** Of alternatives that all fail, the one that was most likely meant explains the failure. */
const alternatives = (
  judged: Judged,
  error: OutputUnit,
  within: Errors,
  count: number
): ReadonlyArray<Issue> => {
  const path = pathOf(judged, error)
  const branches = new Map<string, Array<OutputUnit>>()
  for (const one of within) {
    const branch = one.keywordLocation.slice(error.keywordLocation.length + 1).split("/", 1)[0] ?? ""
    const errors = branches.get(branch)
    if (errors === undefined) branches.set(branch, [one])
    else errors.push(one)
  }
  const issue = (expected: string): ReadonlyArray<Issue> => [{ path, message: `Expected ${expected}` }]
  if (branches.size < count) {
    return issue(`a value that fits exactly one of ${count} alternatives, not ${count - branches.size} of them`)
  }
  const failures = Array.from(branches.values(), (errors) => {
    const distance = distanceOf(errors, error.instanceLocation)
    // What tells the alternatives apart is all that needs to be said of the wrong one.
    const telling = errors.filter((one) => distance > 0 && distanceOf([one], error.instanceLocation) === distance)
    return { issues: distinct(explain(judged, telling.length === 0 ? errors : telling)), distance }
  })
  const nearest = Math.min(...failures.map(({ distance }) => distance))
  const [first, ...others] = failures.filter(({ distance }) => distance === nearest)
  if (first === undefined) return issue("nothing")
  if (others.length === 0) return first.issues
  const likely = [first, ...others].map(({ issues }) => issues)
  const place = first.issues[0]?.path ?? path
  const inOnePlace = likely.every((issues) =>
    issues.length === 1 && JSON.stringify(issues[0]?.path) === JSON.stringify(place)
  )
  const expected = likely.flatMap(expectations)
  return inOnePlace && expected.length === likely.length
    ? [{ path: place, message: `Expected ${Array.from(new Set(expected)).join(" | ")}` }]
    : issue(
      `a value that fits one of these: ${
        likely.slice(0, 5).map((issues) => `(${issues.map((one) => relative(one, path)).join("; ")})`).join(" or ")
      }${likely.length > 5 ? ` or one of ${likely.length - 5} more` : ""}`
    )
}

/** How far a value is from an alternative: of another kind, of another name, or only wrong in its details. */
const distanceOf = (errors: Errors, instance: string): number =>
  Math.max(
    0,
    ...errors.map(({ instanceLocation, keyword }) => {
      const tells = keyword === "const" || keyword === "enum"
      if (instanceLocation === instance) return tells || keyword === "type" ? 2 : 0
      return tells && parentOf(instanceLocation) === instance ? 1 : 0
    })
  )

const expectations = (issues: ReadonlyArray<Issue>): ReadonlyArray<string> =>
  issues.flatMap(({ message }) => message.startsWith("Expected ") ? [message.slice("Expected ".length)] : [])

const relative = ({ message, path }: Issue, from: Issue["path"]): string =>
  path.length === from.length ? message : `${path.slice(from.length).join(".")}: ${message}`

const parentOf = (location: string): string => location.slice(0, location.lastIndexOf("/"))

const split = (location: string): readonly [string, string] => [
  parentOf(location),
  location.slice(location.lastIndexOf("/") + 1)
]

const pathOf = ({ value }: Judged, { instanceLocation }: OutputUnit): Issue["path"] => {
  let at = value
  return References.segments(instanceLocation).map((name) => {
    const key = Array.isArray(at) ? Number(name) : name
    at = typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined
    return key
  })
}

const valueAt = (value: unknown, path: Issue["path"]): unknown =>
  path.reduce<unknown>((at, key) => typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined, value)

const schemaOf = ({ schema }: Judged, { keywordLocation }: OutputUnit): JsonSchema =>
  nodeAt(schema, parentOf(keywordLocation))

/** The schema at a place that may be reached over references. */
const nodeAt = (root: JsonSchema, location: string): JsonSchema => {
  let at: unknown = root
  for (const name of References.segments(location)) {
    const next: unknown = typeof at === "object" && at !== null ? Reflect.get(at, name) : undefined
    at = name === "$ref" && typeof next === "string" ? nodeAt(root, next) : next
  }
  return Arguments.isObject(at) ? at as JsonSchema : {} // an object with names of its own
}
