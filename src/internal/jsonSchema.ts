/**
 * Which JSON Schema does a tool advertise? The one of the codec that decodes its arguments, with a root that is an
 * object, defaults where decoding has them, and nothing that says nothing.
 *
 * The order of properties is the order of declaration, and the bytes never change: the list of tools is the front of
 * every request, and a provider's cache holds it by its bytes.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"

/** A JSON Schema document, or a part of one. */
export interface JsonSchema {
  [key: string]: unknown
}

const isNode = (u: unknown): u is JsonSchema => typeof u === "object" && u !== null && !Array.isArray(u)

/** The JSON Schema of a schema's JSON form; throws what the conversion throws for a schema that has none. */
export const advertise = (schema: Schema.Constraint): JsonSchema => {
  // A struct without fields would be advertised as anything but null.
  if (isEmptyStruct(schema.ast)) return { type: "object", properties: {} }
  const document = Schema.toJsonSchemaDocument(schema)
  const definitions: JsonSchema = { ...document.definitions }
  const name = rootName(document.schema.$ref)
  const root: JsonSchema = { ...(name === undefined ? document.schema : definitions[name] as JsonSchema) }
  addDefaults(schema.ast, root)
  if (name !== undefined && !JSON.stringify([root, definitions]).includes(JSON.stringify(document.schema.$ref))) {
    delete definitions[name]
  }
  return {
    ...tidy(root),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: tidy(definitions) })
  }
}

const isEmptyStruct = (ast: AST.AST): boolean =>
  AST.isObjects(ast) && ast.propertySignatures.length === 0 && ast.indexSignatures.length === 0

const rootName = (ref: unknown): string | undefined =>
  typeof ref === "string" ? ref.slice(ref.lastIndexOf("/") + 1).replaceAll("~1", "/").replaceAll("~0", "~") : undefined

// `additionalProperties: true` is what JSON Schema means without it, and costs tokens in every request.
const tidy = (node: JsonSchema): JsonSchema => {
  const walk = (u: unknown): unknown =>
    Array.isArray(u)
      ? u.map(walk)
      : isNode(u)
      ? Object.fromEntries(
        Object.entries(u).filter(([key, value]) =>
          key !== "additionalProperties" || value !== true || "type" in u === false
        )
          .map((
            [key, value]
          ) => [
            key,
            key === "default" || key === "enum" || key === "const" || key === "examples" ? value : walk(value)
          ])
      )
      : u
  return walk(node) as JsonSchema // an object node maps to an object node
}

const addDefaults = (ast: AST.AST, node: JsonSchema): void => {
  if (AST.isObjects(ast) && isNode(node.properties)) {
    for (const { name, type } of ast.propertySignatures) {
      const property = typeof name === "string" ? node.properties[name] : undefined
      if (!isNode(property)) continue
      const initial = defaultOf(String(name), type)
      if (initial !== undefined && !("default" in property)) property.default = initial
      addDefaults(type, property)
    }
  } else if (AST.isArrays(ast) && isNode(node.items)) {
    const [item] = ast.rest
    if (item !== undefined) addDefaults(item, node.items)
  }
}

/** Whether a property may be left out although its decoded value is always there. */
export const hasDefault = (type: AST.AST): boolean =>
  type.encoding !== undefined && AST.isOptional(AST.toEncoded(type)) && !AST.isOptional(type)

const defaultOf = (name: string, type: AST.AST): unknown => {
  if (!hasDefault(type)) return undefined
  const alone = Schema.toCodecJson(Schema.Struct({ [name]: Schema.make<Schema.Codec<unknown>>(type) }))
  // A default that needs services or time has no value that could be advertised.
  const exit = Effect.runSyncExit(Effect.flatMap(Schema.decodeUnknownEffect(alone)({}), Schema.encodeEffect(alone)))
  return Exit.isSuccess(exit) && isNode(exit.value) ? exit.value[name] : undefined
}
