/**
 * What does Gemini take of a JSON Schema? A subset: what has another word in it is said with that one, the rest in prose.
 */
import { isJson, type Json, list, object, text } from "./json.ts"
import { inside, isArray, modern, mute, omit, saying, word } from "./narrowWords.ts"

const taken = new Set(
  ("$defs $ref type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf " +
    "properties additionalProperties required propertyOrdering").split(" ")
)

const formats = new Set(["date-time", "date", "time", "float", "double", "int32", "int64", "enum"])

/** A schema in the words of the subset. */
export const subset = (u: unknown): Json => {
  if (!isJson(u)) return u === false ? { description: "(never allowed)" } : {}
  const { definitions, ...rest } = u
  const node = whole(modern(
    definitions === undefined ? rest : { ...rest, $defs: { ...object(definitions), ...object(u.$defs) } }
  ))
  const words = Object.entries(node).filter(([key, value]) =>
    !mute.has(key) && (!taken.has(key) || (key === "format" && !formats.has(text(value))))
  )
  const kept = inside(omit(node, new Set([...mute, ...words.map(([key]) => key)])), subset)
  const said = saying(kept, words.map(([key, value]) => word(key, value)))
  if (typeof said.$ref === "string") return referring(said, said.$ref)
  return isArray(said) && said.items === undefined && said.prefixItems === undefined ? { ...said, items: {} } : said
}

/** What has another word for the same: a constant, a bound of whole numbers, a conjunction of one. */
const whole = (node: Json): Json => {
  const [only, ...others] = list(node.allOf)
  if (isJson(only) && others.length === 0) {
    const { allOf: _allOf, ...rest } = node
    return whole({ ...only, ...rest })
  }
  const isInteger = node.type === "integer"
  const { const: constant, exclusiveMaximum: below, exclusiveMinimum: above, ...rest } = node
  return {
    ...rest,
    ...(typeof constant === "string" || typeof constant === "number"
      ? { type: node.type ?? (typeof constant === "string" ? "string" : "number"), enum: [constant] }
      : "const" in node
      ? { const: constant }
      : {}),
    ...bound("minimum", above, isInteger, node.minimum, 1),
    ...bound("maximum", below, isInteger, node.maximum, -1)
  }
}

const bound = (key: "minimum" | "maximum", open: unknown, isInteger: boolean, closed: unknown, step: 1 | -1): Json => {
  if (open === undefined) return {}
  if (!isInteger || typeof open !== "number") {
    return { [key === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum"]: open }
  }
  const next = step === 1 ? Math.floor(open) + 1 : Math.ceil(open) - 1
  return { [key]: typeof closed !== "number" ? next : step === 1 ? Math.max(closed, next) : Math.min(closed, next) }
}

// A reference stands alone; what was said beside it is said around it.
const referring = (node: Json, $ref: string): Json => {
  const { $defs, $ref: _ref, ...beside } = node
  const reference = { $ref: $ref.replace(/^#\/definitions\//, "#/$defs/") }
  const around = Object.keys(beside).length === 0 ? reference : { ...beside, anyOf: [reference] }
  return $defs === undefined ? around : { ...around, $defs }
}
