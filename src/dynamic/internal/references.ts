/**
 * Where does a reference in a JSON Schema document lead, and does following references come to an end?
 */
import * as Result from "effect/Result"
import type { JsonSchema } from "../../internal/jsonSchema.ts"
import * as Keywords from "./keywords.ts"

const mostInPlace = 10_000

/** What a reference leads to, and where that is. */
export interface Target {
  readonly schema: unknown
  readonly base: string
  readonly uri: string
}

/** Where everything is in a document that may be referred to. */
export const catalogue = (root: JsonSchema | boolean, dialect: Keywords.Dialect, problems: Array<string>) => {
  const base = "schema://document/"
  const bases = new Map<unknown, string>()
  const resources = new Map<string, unknown>([[base, root]])
  const anchors = new Map<string, unknown>()
  const dynamic = new Map<string, number>()

  const dynamicName = (schema: JsonSchema): unknown =>
    dialect === "2019-09" && schema.$recursiveAnchor === true ? "" : schema.$dynamicAnchor

  const scan = (schema: unknown, from: string): void => {
    if (!Keywords.isNode(schema)) return
    const overridden = dialect === "draft-07" && Object.hasOwn(schema, "$ref")
    const id = overridden || typeof schema.$id !== "string" || !URL.canParse(schema.$id, from)
      ? undefined
      : new URL(schema.$id, from)
    const here = id === undefined || id.hash.length > 1 ? from : withoutHash(id)
    bases.set(schema, here)
    if (id !== undefined && id.hash.length > 1) anchors.set(id.href, schema)
    else if (id !== undefined) {
      if (resources.has(here) && resources.get(here) !== schema) {
        problems.push(`has ${JSON.stringify(here)} as an $id twice`)
      }
      resources.set(here, schema)
    }
    const named = dialect === "draft-07"
      ? []
      : dialect === "2019-09"
      ? [schema.$anchor]
      : [schema.$anchor, schema.$dynamicAnchor]
    for (const anchor of named) if (typeof anchor === "string") anchors.set(`${here}#${anchor}`, schema)
    const name = dynamicName(schema)
    if (typeof name === "string") dynamic.set(name, (dynamic.get(name) ?? 0) + 1)
    for (const part of Keywords.below(schema)) scan(part, here)
  }
  scan(root, base)

  /** Whether it depends on the way to a dynamic reference where it leads. */
  const moves = (schema: unknown): boolean => {
    if (!Keywords.isNode(schema)) return false
    const name = dynamicName(schema)
    return typeof name === "string" && (dynamic.get(name) ?? 0) > 1
  }

  /** The target of a reference, or why it has none. */
  const resolve = (keyword: string, reference: string, from: string): Target | string => {
    const url = URL.canParse(reference, from) ? new URL(reference, from) : undefined
    const resource = url === undefined ? undefined : withoutHash(url)
    if (url === undefined || resource === undefined || !resources.has(resource)) {
      return "which is not in the document: nothing is fetched"
    }
    const fragment = decoded(url.hash.slice(1))
    let schema = resources.get(resource)
    let at = resource
    if (fragment !== "" && !fragment.startsWith("/")) {
      schema = anchors.get(`${resource}#${fragment}`)
      at = bases.get(schema) ?? at
    }
    for (const name of fragment.startsWith("/") ? names(fragment) : []) {
      schema = typeof schema === "object" && schema !== null && Object.hasOwn(schema, name)
        ? Reflect.get(schema, name)
        : undefined
      at = bases.get(schema) ?? at
    }
    if (schema === undefined) return "where nothing is"
    return keyword !== "$ref" && moves(schema)
      ? "where several places may be meant, which is not supported"
      : { schema, base: at, uri: `${resource}#${fragment}` }
  }

  return { base, baseOf: (schema: unknown) => bases.get(schema), resolve }
}

const withoutHash = ({ href }: URL): string => href.split("#", 1)[0] ?? href

// A percent sign that escapes nothing is one.
const decoded = (text: string): string => Result.getOrElse(Result.try(() => decodeURIComponent(text)), () => text)

/** The names that a JSON pointer goes through. */
const names = (pointer: string): ReadonlyArray<string> =>
  pointer.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))

/** The names that a JSON pointer goes through whose every name is escaped for a URI. */
export const segments = (pointer: string): ReadonlyArray<string> =>
  pointer.split("/").slice(1).map((name) => decoded(name).replaceAll("~1", "/").replaceAll("~0", "~"))

/**
 * What is wrong with a document whose references are resolved. Where a value is judged by a schema and, without a step
 * into the value, by the same schema again, judging never ends; and references that double at each step may end after
 * years.
 */
export const endless = (root: JsonSchema, definitions: JsonSchema): ReadonlyArray<string> => {
  const problems = new Set<string>()
  const weights = new Map<JsonSchema, number>()
  const weigh = (schema: unknown): number => {
    if (!Keywords.isNode(schema)) return 0
    const known = weights.get(schema)
    if (known !== undefined) {
      if (known === Infinity) problems.add("has a reference that leads back to itself, so that checking would not end")
      return known
    }
    weights.set(schema, Infinity)
    const { $ref, dependentSchemas } = schema
    const inPlace = [
      ...typeof $ref === "string" ? [definitions[$ref.slice("#/$defs/".length)]] : [],
      ...Object.values(Keywords.isNode(dependentSchemas) ? dependentSchemas : {}),
      ...Object.entries(schema).flatMap(([keyword, value]) =>
        Keywords.ofOneInPlace.has(keyword)
          ? [value]
          : Keywords.ofManyInPlace.has(keyword) && Array.isArray(value)
          ? value
          : []
      )
    ]
    const weight = inPlace.reduce<number>((sum, part) => sum + weigh(part), 1)
    if (weight > mostInPlace && weight < Infinity) {
      problems.add(`has references and alternatives that make more than ${mostInPlace} checks of one value`)
    }
    weights.set(schema, Math.min(weight, Number.MAX_VALUE))
    return weight
  }
  const visit = (schema: unknown): void => {
    if (!Keywords.isNode(schema)) return
    weigh(schema)
    Keywords.below(schema).forEach(visit)
  }
  if (Result.isFailure(Result.try(() => visit(root)))) problems.add("has a chain of references that is too long")
  return Array.from(problems)
}
