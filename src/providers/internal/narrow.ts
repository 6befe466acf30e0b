/**
 * What of a JSON Schema does a provider take? What it does not take is said in words, where the model reads it; the tool
 * itself goes on judging its arguments by the whole schema.
 */
import { isJson, type Json, list, object } from "./json.ts"
import { strictly } from "./narrowStrict.ts"
import { subset } from "./narrowSubset.ts"
import { inside, isArray, isChoice, modern, omit, saying, word } from "./narrowWords.ts"

/** Whose rules: strict schemas differ, and what else a schema may say. */
export type Dialect = "openai" | "anthropic" | "gemini"

/** A schema that a provider takes; `why` says what kept it from being strict. */
export interface Narrowed {
  readonly schema: Json
  readonly isStrict: boolean
  readonly why?: string
}

/** The schema of a tool's arguments in a provider's terms. */
export const narrow = (schema: Json, dialect: Dialect, isStrict: boolean): Narrowed => {
  const root = objectRoot(schema, dialect)
  if (dialect === "gemini") return { schema: subset(root), isStrict }
  if (!isStrict) return { schema: object(plainly(root)), isStrict }
  const made = strictly(root, dialect)
  return "why" in made ? { schema: root, isStrict: false, why: made.why } : { schema: made.schema, isStrict }
}

/** The schema of an answer, whose reader expects what the schema says: nothing may become null. */
export const narrowFormat = (schema: Json, dialect: Dialect): Narrowed => {
  if (dialect === "gemini") return { schema: subset(schema), isStrict: false }
  if (dialect === "anthropic") return { schema, isStrict: true }
  const made = strictly(schema, "openai", { mayBeNull: false })
  return "why" in made ? { schema, isStrict: false, why: made.why } : { schema: made.schema, isStrict: true }
}

const choices = ["anyOf", "oneOf", "allOf"] as const

/**
 * A root that is an object. A choice between objects becomes one object with the properties of all of them, of which
 * those are required that each of them requires; which belong together is said in words.
 */
const objectRoot = (schema: Json, dialect: Dialect): Json => {
  const typed = schema.type === "object" ? schema : { ...schema, type: "object" }
  if (dialect === "gemini") return typed
  return choices.reduce<Json>((root, key) => root[key] === undefined ? root : merged(root, key), typed)
}

const merged = (root: Json, key: typeof choices[number]): Json => {
  const members = list(root[key]).map(object)
  const required = members.map((member) => list(member.required))
  const inAll = (name: unknown) => required.every((names) => names.includes(name))
  const needed = key === "allOf" ? required.flat() : required.flat().filter(inAll)
  const properties = [...members, root].flatMap((member) => Object.entries(object(member.properties)))
  const one = new Map<string, unknown>()
  for (const [name, property] of properties) {
    const known = one.get(name)
    const same = known === undefined || JSON.stringify(known) === JSON.stringify(property)
    one.set(name, same ? property : { anyOf: [...(isChoice(known) ? list(known.anyOf) : [known]), property] })
  }
  return saying({
    ...omit(root, new Set([key])),
    properties: Object.fromEntries(one),
    required: [...new Set([...list(root.required), ...needed])]
  }, [word(key, members.map((member) => ({ ...member, description: undefined })))])
}

// An array whose items may be anything must say so, and anything is an object that says nothing.
const plainly = (u: unknown): unknown => {
  if (!isJson(u)) return u === true ? {} : u
  const node = inside(modern(u), plainly)
  return isArray(node) && node.items === undefined && node.prefixItems === undefined ? { ...node, items: {} } : node
}
