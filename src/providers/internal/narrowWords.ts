/**
 * How is a JSON Schema walked, and how does it say in words what it cannot say in keywords?
 */
import { isJson, type Json, list, text } from "./json.ts"

/** A schema with something more in its description. */
export const saying = (node: Json, words: ReadonlyArray<string>): Json => {
  if (words.length === 0) return node
  const said = text(node.description)
  return { ...node, description: `${said}${said === "" ? "" : " "}(${words.join("; ")})` }
}

/** A keyword as it stands, which models read well. */
export const word = (key: string, value: unknown): string => `${key}: ${JSON.stringify(value)}`

/** Keywords that say nothing of what a value may be. */
export const mute = new Set([
  "$schema",
  "$id",
  "$comment",
  "$anchor",
  "$vocabulary",
  "readOnly",
  "writeOnly",
  "deprecated"
])

/** A node without these keywords. */
export const omit = (node: Json, keys: ReadonlySet<string>): Json =>
  Object.fromEntries(Object.entries(node).filter(([key]) => !keys.has(key)))

const maps = ["properties", "patternProperties", "$defs", "definitions"]
const lists = ["anyOf", "oneOf", "allOf", "prefixItems"]
const singles = ["items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"]

/** The same node with its parts changed. */
export const inside = (node: Json, change: (part: unknown) => unknown): Json =>
  Object.fromEntries(
    Object.entries(node).map(([key, value]) => [
      key,
      maps.includes(key) && isJson(value)
        ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, change(part)]))
        : lists.includes(key) && Array.isArray(value)
        ? value.map(change)
        : singles.includes(key) && (isJson(value) || (key === "items" && typeof value === "boolean"))
        ? change(value)
        : value
    ])
  )

/** A tuple in the words of the newer drafts. */
export const modern = (node: Json): Json => {
  if (!Array.isArray(node.items)) return node
  const { additionalItems, items, ...rest } = node
  return { ...rest, prefixItems: items, ...(additionalItems === undefined ? {} : { items: additionalItems }) }
}

/** Whether a node may be an array. */
export const isArray = ({ type }: Json): boolean => type === "array" || list(type).includes("array")

/** A node that is nothing but a choice. */
export const isChoice = (u: unknown): u is Json => isJson(u) && Object.keys(u).length === 1 && "anyOf" in u
