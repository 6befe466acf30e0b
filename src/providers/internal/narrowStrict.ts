/**
 * What is a strict JSON Schema? One that closes every object and names each property, so that a model can be held to it.
 */
import { isJson, type Json, list, object, text } from "./json.ts"
import { isArray, isChoice, mute, omit, saying, word } from "./narrowWords.ts"

interface Strict {
  readonly takes: ReadonlySet<string>
  readonly formats: ReadonlySet<string>
}

const structure = "$defs definitions $ref type title description enum const items anyOf properties required"
const strictFormats = new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" "))
const stricts: { readonly [D in "openai" | "anthropic"]: Strict } = {
  openai: {
    takes: new Set(
      `${structure} format pattern multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems`
        .split(" ")
    ),
    formats: strictFormats
  },
  anthropic: {
    takes: new Set(`${structure} format default`.split(" ")),
    formats: new Set([...strictFormats, "uri"])
  }
}

/** A schema that says exactly what there is, or why there is none. */
export type Made = { readonly schema: Json } | { readonly why: string }

/** Makes a schema strict; where a property may be left out, OpenAI's form has it, and null is its absence. */
export const strictly = (
  schema: Json,
  dialect: "openai" | "anthropic",
  { mayBeNull = true }: { readonly mayBeNull?: boolean } = {}
): Made => {
  const { formats, takes } = stricts[dialect]
  const reasons: Array<string> = []
  const walk = (u: unknown, path: string): Json => {
    const refuse = (why: string): Json => {
      reasons.push(`${why} at ${path}`)
      return {}
    }
    if (!isJson(u)) return refuse("anything is allowed")
    const node = alike(u)
    const shape = node.type === "object" || node.properties !== undefined
    if (
      isJson(node.additionalProperties) || node.additionalProperties === true || node.patternProperties !== undefined
    ) {
      return refuse("properties of any name are allowed")
    }
    if (shape && path !== "#" && node.properties === undefined && node.additionalProperties !== false) {
      return refuse("properties of any name are allowed")
    }
    if (node.allOf !== undefined) return refuse("a conjunction")
    if (node.prefixItems !== undefined || Array.isArray(node.items)) return refuse("a tuple")
    if (isArray(node) && !isJson(node.items)) return refuse("items of any kind are allowed")
    if (!["type", "anyOf", "enum", "const", "$ref", "properties"].some((key) => key in node)) {
      return refuse("anything is allowed")
    }
    const dropped = Object.entries(omit(node, mute)).filter(([key, value]) =>
      key !== "additionalProperties" && (!takes.has(key) || (key === "format" && !formats.has(text(value))))
    )
    const kept = omit(node, new Set([...mute, ...dropped.map(([key]) => key)]))
    const made = saying(
      Object.fromEntries(
        Object.entries(kept).map(([key, value]) => [
          key,
          key === "items"
            ? walk(value, `${path}/items`)
            : key === "anyOf"
            ? list(value).map((member, at) => walk(member, `${path}/anyOf/${at}`))
            : key === "$defs" || key === "definitions"
            ? Object.fromEntries(
              Object.entries(object(value)).map(([name, part]) => [name, walk(part, `${path}/${name}`)])
            )
            : value
        ])
      ),
      dropped.map(([key, value]) => word(key, value))
    )
    if (!shape) return made
    const required = list(node.required)
    const properties = Object.entries(object(node.properties)).map(([name, part]) => {
      const property = walk(part, `${path}/${name}`)
      if (required.includes(name) || dialect === "anthropic") return [name, property] as const
      if (!mayBeNull) return [name, refuse(`${JSON.stringify(name)} may be left out`)] as const
      return [name, nullable(property)] as const
    })
    return {
      ...made,
      type: node.type ?? "object",
      properties: Object.fromEntries(properties),
      required: dialect === "openai" ? properties.map(([name]) => name) : required,
      additionalProperties: false
    }
  }
  const made = walk(schema, "#")
  return reasons.length === 0 ? { schema: made } : { why: reasons.slice(0, 3).join(", ") }
}

/** A node in fewer words: a conjunction of one is that one, and one of several is any of them. */
const alike = (node: Json): Json => {
  const [only, ...others] = list(node.allOf)
  const { allOf, oneOf, ...rest } = node
  const plain = isJson(only) && others.length === 0
    ? { ...only, ...rest }
    : allOf === undefined
    ? rest
    : { ...rest, allOf }
  return oneOf === undefined ? plain : { ...plain, anyOf: plain.anyOf ?? oneOf }
}

const nullable = (node: Json): Json => {
  const { description, type } = node
  if (node.enum !== undefined) {
    return {
      ...node,
      ...(type === undefined ? {} : { type: withNull(type) }),
      enum: list(node.enum).includes(null) ? node.enum : [...list(node.enum), null]
    }
  }
  if (node.const === undefined && node.anyOf === undefined && node.$ref === undefined) {
    return { ...node, type: withNull(type) }
  }
  const { description: _description, ...rest } = node
  return {
    ...(description === undefined ? {} : { description }),
    anyOf: isChoice(rest) ? [...list(rest.anyOf), { type: "null" }] : [rest, { type: "null" }]
  }
}

const withNull = (type: unknown): unknown => {
  const types = Array.isArray(type) ? type : [type]
  return types.includes("null") ? type : [...types, "null"]
}
