/**
 * What does a JSON Schema document say? Whatever its dialect, one small language: 2020-12 without identifiers, each
 * reference one hop to a definition at the root, only keywords that are there to be obeyed. And all that is wrong with
 * the document, as sentences.
 */
import * as Result from "effect/Result"
import type { JsonSchema } from "../../internal/jsonSchema.ts"
import * as Keywords from "./keywords.ts"
import * as References from "./references.ts"

/** A document as it is advertised, as it is obeyed, and what is wrong with it. */
export interface Document {
  /** A copy of our own; nothing where the document is no JSON. */
  readonly advertised: JsonSchema | boolean | undefined
  readonly schema: JsonSchema
  readonly problems: ReadonlyArray<string>
}

/** A longer string is not matched against a pattern: the time that takes may grow with the square of the length. */
const longestMatched = 10_000

const deepest = 100
const largest = 100_000

/** The same JSON in objects without a prototype, which have no names but their own. */
export const bare = (u: unknown): unknown => {
  if (Array.isArray(u)) return u.map(bare)
  if (!Keywords.isNode(u)) return u
  const out: JsonSchema = Object.create(null)
  for (const [key, value] of Object.entries(u)) if (value !== undefined) out[key.toWellFormed()] = bare(value)
  return out
}

const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1")

/** Reads a document; never throws. */
export const read = (given: unknown): Document => {
  const problems: Array<string> = []
  const copied = Result.try(() => copyJson(given, problems))
  if (Result.isFailure(copied)) problems.push(`cannot be read: ${copied.failure}`)
  const advertised = Result.isSuccess(copied) && problems.length === 0 ? copied.success : undefined
  if (advertised === undefined) {
    if (problems.length === 0) problems.push("is no object")
    return { advertised: undefined, schema: {}, problems }
  }
  const named = typeof advertised === "boolean" ? undefined : advertised.$schema
  const dialect = named === undefined ? "2020-12" : Keywords.dialectOf(named)
  if (dialect === undefined) {
    const known = Keywords.dialects.map(([, name]) => name).join(", ")
    problems.push(`has a dialect that is not known, ${JSON.stringify(named)}; known: ${known}`)
    return { advertised, schema: {}, problems }
  }
  const schema = compile(advertised, dialect, problems)
  return { advertised, schema, problems: Array.from(new Set(problems)) }
}

const copyJson = (given: unknown, problems: Array<string>): JsonSchema | boolean | undefined => {
  let size = 0
  const copy = (u: unknown, at: string, above: ReadonlyArray<object>): unknown => {
    if (u === null || typeof u === "string" || typeof u === "boolean" || Number.isFinite(u)) return u
    const problem = typeof u !== "object"
      ? `is no JSON at ${at}: ${typeof u === "function" ? "a function" : String(u)}`
      : above.includes(u)
      ? `contains itself at ${at}`
      : above.length >= deepest
      ? `is nested more than ${deepest} levels deep`
      : ++size > largest
      ? `has more than ${largest} parts`
      : !Array.isArray(u) && !isPlain(u)
      ? `is no JSON at ${at}: an instance of a class`
      : undefined
    if (problem !== undefined || typeof u !== "object") {
      if (problem !== undefined && !problems.includes(problem)) problems.push(problem)
      return null
    }
    const inside = [...above, u]
    if (Array.isArray(u)) return u.map((part, index) => copy(part, `${at}/${index}`, inside))
    return Object.fromEntries(
      Object.entries(u).filter(([, part]) => part !== undefined)
        .map(([name, part]) => [name, copy(part, `${at}/${escaped(name)}`, inside)])
    )
  }
  const copied = copy(given, "#", [])
  return typeof copied === "boolean" || Keywords.isNode(copied) ? copied : undefined
}

const isPlain = (u: object): boolean => {
  const proto: unknown = Object.getPrototypeOf(u)
  return proto === null || Object.getPrototypeOf(proto) === null
}

const compile = (root: JsonSchema | boolean, dialect: Keywords.Dialect, problems: Array<string>): JsonSchema => {
  const library = References.catalogue(root, dialect, problems)
  // The interpreter takes for evaluated what a condition saw that did not hold; of alternatives it does not.
  const watched = JSON.stringify(root).includes('"unevaluated')
  const definitions: JsonSchema = {}
  const names = new Map<string, string>()
  const waiting: Array<() => void> = []

  /** A definition's place, for what a reference leads to; it is compiled when its turn comes. */
  const definition = ({ base, schema, uri }: References.Target): string => {
    const name = names.get(uri) ?? String(names.size)
    if (!names.has(uri)) {
      names.set(uri, name)
      waiting.push(() => {
        definitions[name] = node(schema, base, uri.slice(uri.indexOf("#")), false)
      })
    }
    return `#/$defs/${name}`
  }

  const refer = (keyword: string, reference: string, base: string, at: string): JsonSchema => {
    const target = library.resolve(keyword, reference, base)
    if (typeof target === "object") return { $ref: definition(target) }
    problems.push(`has a ${keyword} at ${at} to ${JSON.stringify(reference)}, ${target}`)
    return {}
  }

  /** `whole`: no other schema judges the same value, so what is said here is all that is said of its properties. */
  const node = (schema: unknown, from: string, at: string, whole: boolean): JsonSchema => {
    if (typeof schema === "boolean") return schema ? {} : { not: {} }
    if (!Keywords.isNode(schema)) {
      problems.push(`has no schema at ${at}, but ${JSON.stringify(schema)}`)
      return {}
    }
    const base = library.baseOf(schema) ?? from
    const said = Object.entries(schema).filter(([keyword, value]) => {
      if (Keywords.unsaid[dialect].has(keyword)) return false
      const [what, is] = Keywords.shapes.get(keyword) ?? []
      if (is === undefined || is(value)) return true
      problems.push(`has a ${JSON.stringify(keyword)} at ${at} that is not ${what}: ${JSON.stringify(value)}`)
      return false
    })
    if (Object.hasOwn(schema, "$async")) problems.push(`asks at ${at} to be checked with "$async", which is not done`)
    if (at !== "#" && Object.hasOwn(schema, "$schema") && Keywords.dialectOf(schema.$schema) !== dialect) {
      problems.push(`changes its dialect at ${at}`)
    }
    const reference = said.find(([keyword]) => keyword === "$ref")
    const obeyed = dialect === "draft-07" && reference !== undefined ? [reference] : said
    const alone = whole &&
      !obeyed.some(([keyword]) =>
        Keywords.references.has(keyword) || Keywords.ofOneInPlace.has(keyword) || Keywords.ofManyInPlace.has(keyword) ||
        keyword.startsWith("depend")
      )
    if (alone) problems.push(...unnamed(schema, at))
    const out: JsonSchema = {}
    const all: Array<unknown> = []
    const part = (u: unknown, place: string, inPlace: boolean) => node(u, base, `${at}/${place}`, whole && !inPlace)
    const each = (u: unknown, keyword: string, inPlace: boolean) =>
      Object.entries(Keywords.isNode(u) ? u : {}).map(([name, value]) =>
        [name.toWellFormed(), part(value, `${keyword}/${escaped(name)}`, inPlace)] as const
      )
    for (const [keyword, value] of obeyed) {
      if (Keywords.references.has(keyword)) {
        // Of two references, one is obeyed beside the other.
        const referred = refer(keyword, String(value), base, at)
        if (out.$ref === undefined) Object.assign(out, referred)
        else all.push(referred)
      } else if (keyword === "type") {
        const types = Keywords.typesOf(value) ?? []
        out.type = types.length === 1 ? types[0] : types
      } else if (keyword === "const" || keyword === "enum") out[keyword] = bare(value)
      else if (keyword === "pattern") out.pattern = unicode(String(value), at, problems)
      else if (keyword === "patternProperties") {
        out.patternProperties = Object.fromEntries(
          each(value, keyword, false).map(([pattern, part]) => [unicode(pattern, at, problems), part])
        )
      } else if (keyword === "dependencies" || keyword === "dependentSchemas") {
        const needs = dependenciesOn("names", value)
        if (Object.keys(needs).length > 0) out.dependentRequired = { ...needs, ...out.dependentRequired as object }
        out.dependentSchemas = {
          ...Object.fromEntries(each(dependenciesOn("schemas", value), keyword, true)),
          ...out.dependentSchemas as object
        }
      } else if (keyword === "dependentRequired") {
        out.dependentRequired = { ...out.dependentRequired as object, ...value as object }
      } else if (keyword === "items" && Array.isArray(value)) {
        out.prefixItems = value.map((item, index) => part(item, `items/${index}`, false))
        if (Object.hasOwn(schema, "additionalItems")) out.items = part(schema.additionalItems, "additionalItems", false)
      } else if (keyword === "$defs" || keyword === "definitions") each(value, keyword, true) // for their problems
      else if (Keywords.byName.has(keyword)) out[keyword] = Object.fromEntries(each(value, keyword, false))
      else if (Keywords.ofMany.has(keyword)) {
        const branches = Array.isArray(value) ? value : []
        if (branches.length === 0) problems.push(`has no list of schemas at ${at}/${keyword}`)
        const inPlace = Keywords.ofManyInPlace.has(keyword)
        out[keyword] = branches.map((branch, index) => part(branch, `${keyword}/${index}`, inPlace))
      } else if (keyword !== "additionalItems" && Keywords.ofOne.has(keyword)) {
        out[keyword] = part(value, keyword, Keywords.ofOneInPlace.has(keyword))
      } else if (Keywords.shapes.has(keyword)) out[keyword] = value
    }
    if (typeof out.pattern === "string") {
      out.maxLength = Math.min(Number(out.maxLength ?? longestMatched), longestMatched)
    }
    // At least one is meant where only the most are said.
    if (out.contains !== undefined && out.maxContains !== undefined) out.minContains ??= 1
    if (watched && out.if !== undefined) {
      const { else: otherwise = {}, if: condition, then = {} } = out
      all.push({ anyOf: [{ allOf: [condition, then] }, { allOf: [{ not: condition }, otherwise] }] })
      delete out.if
      delete out.then
      delete out.else
    }
    if (all.length > 0) out.allOf = [...Array.isArray(out.allOf) ? out.allOf : [], ...all]
    return out
  }

  const schema = node(root, library.base, "#", true)
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) next()
  if (names.size > 0) schema.$defs = definitions
  if (problems.length === 0) problems.push(...References.endless(schema, definitions))
  return schema
}

/** Names that are required and that nothing allows to be there. */
const unnamed = (schema: JsonSchema, at: string): ReadonlyArray<string> => {
  const { additionalProperties, patternProperties, properties, required, unevaluatedProperties } = schema
  const others = [additionalProperties, patternProperties, unevaluatedProperties].some((u) =>
    u !== undefined && u !== false
  )
  return !Keywords.isNode(properties) || others || !Array.isArray(required)
    ? []
    : required.filter((name) => !Object.hasOwn(properties, name))
      .map((name) => `requires ${JSON.stringify(name)} at ${at}, which its properties do not name`)
}

/** Of dependencies, those on names or those on schemas. */
const dependenciesOn = (what: "names" | "schemas", dependencies: unknown): JsonSchema =>
  Object.fromEntries(
    Object.entries(Object(dependencies)).filter(([, value]) => Array.isArray(value) === (what === "names"))
  )

// A pattern is compiled with the `u` flag. One that compiles only without it is written anew, to mean the same with it.
const unicode = (pattern: string, at: string, problems: Array<string>): string => {
  if (compiles(pattern, "u")) return pattern
  let inClass = false
  const written = pattern.replace(/\\[dDsSwW]-(?!\])|-(?=\\[dDsSwW])|\\.|\{\d+(?:,\d*)?\}|[[\]{}]/gs, (token) => {
    if (token.endsWith("-") && token !== "\\-") return inClass ? token.replace("-", "\\-") : token
    if (token.startsWith("\\")) {
      const meant = /[\^$\\.*+?()[\]{}|/dDsSwWbBfnrtv\dcxukpP]/.test(token.slice(1)) || (inClass && token === "\\-")
      return meant ? token : token.slice(1)
    }
    if (token === "[" || (token === "]" && inClass)) inClass = token === "["
    else if (!inClass && token.length === 1) return `\\${token}`
    return token
  })
  if (compiles(pattern, "") && compiles(written, "u")) return written
  problems.push(`has a pattern at ${at} that is no regular expression: ${JSON.stringify(pattern)}`)
  return "(?:)"
}

const compiles = (pattern: string, flags: string): boolean =>
  Result.isSuccess(Result.try(() => new RegExp(pattern, flags)))
