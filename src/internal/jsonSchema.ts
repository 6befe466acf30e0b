/**
 * Which JSON Schema does a tool advertise? The one of the codec that decodes its arguments, with a root that is an
 * object, defaults where decoding has them, and nothing that says nothing.
 *
 * The order of properties is the order of declaration, and the bytes never change: the list of tools is the front of
 * every request, and a provider's cache holds it by its bytes.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"

/** A JSON Schema document, or a part of one. */
export interface JsonSchema {
  [key: string]: unknown
}

const isNode = (u: unknown): u is JsonSchema => typeof u === "object" && u !== null && !Array.isArray(u)

const nodes = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []

/** The JSON Schema of a schema's JSON form; throws what the conversion throws for a schema that has none. */
export const advertise = (schema: Schema.Constraint): JsonSchema => {
  // A struct without fields would be advertised as anything but null.
  if (isEmptyStruct(schema.ast)) return { type: "object", properties: {} }
  const document = Schema.toJsonSchemaDocument(schema)
  const definitions: JsonSchema = { ...document.definitions }
  const name = referred(document.schema)
  const root: JsonSchema = { ...(name === undefined ? document.schema : definitions[name] as JsonSchema) }
  complete(schema.ast, root, definitions, new Set())
  const inlined = name !== undefined &&
    !JSON.stringify([root, definitions]).includes(JSON.stringify(document.schema.$ref))
  if (inlined) delete definitions[name]
  return {
    ...tidy(root),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: tidyEach(definitions) })
  }
}

const isEmptyStruct = (ast: AST.AST): boolean =>
  AST.isObjects(ast) && ast.propertySignatures.length === 0 && ast.indexSignatures.length === 0

/** The definition that a node refers to; a reference is a JSON pointer in a URI. */
const referred = ({ $ref }: JsonSchema): string | undefined =>
  typeof $ref === "string"
    ? decodeURIComponent($ref.slice($ref.lastIndexOf("/") + 1)).replaceAll("~1", "/").replaceAll("~0", "~")
    : undefined

const named = new Set(["properties", "patternProperties", "$defs"])
const verbatim = new Set(["default", "enum", "const", "examples"])

// `additionalProperties: true` is what JSON Schema means without it, and costs tokens in every request.
const tidy = (node: JsonSchema): JsonSchema =>
  Object.fromEntries(
    Object.entries(node).filter(([key, value]) => key !== "additionalProperties" || value !== true).map((
      [key, value]
    ) => [
      key,
      verbatim.has(key) ? value : named.has(key) && isNode(value) ? tidyEach(value) : tidyAny(value)
    ])
  )

const tidyEach = (byName: JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(byName).map(([name, node]) => [name, tidyAny(node)]))

const tidyAny = (u: unknown): unknown => Array.isArray(u) ? u.map(tidyAny) : isNode(u) ? tidy(u) : u

/**
 * Walks a schema and its document side by side, and adds to the document what the conversion leaves out: the defaults that
 * the schema decodes to, and patterns whose regular expression lacks the `u` flag.
 */
const complete = (ast: AST.AST, node: unknown, definitions: JsonSchema, seen: Set<string>): void => {
  if (!isNode(node)) return
  const name = referred(node)
  if (name !== undefined) {
    if (seen.has(name)) return
    seen.add(name)
    return complete(ast, definitions[name], definitions, seen)
  }
  const walk = (part: AST.AST | undefined, node: unknown) => part && complete(part, node, definitions, seen)
  const shape = structure(ast)
  if (AST.isObjects(shape)) {
    const properties = isNode(node.properties) ? node.properties : {}
    for (const { name, type } of shape.propertySignatures) {
      const property = properties[String(name)]
      if (!isNode(property)) continue
      walk(type, property)
      const initial = defaultOf(String(name), type)
      if (initial !== undefined && !("default" in property)) property.default = initial
    }
    walk(shape.indexSignatures[0]?.type, node.additionalProperties)
  } else if (AST.isArrays(shape)) {
    shape.elements.forEach((element, at) => walk(element, nodes(node.prefixItems)[at]))
    walk(shape.rest[0], node.items)
  } else if (AST.isUnion(shape)) {
    shape.types.forEach((type, at) => walk(type, nodes(node.anyOf)[at]))
  } else if (AST.isSuspend(shape)) walk(shape.thunk(), node)
  else if (AST.isString(shape) && !("pattern" in node)) {
    const pattern = shape.checks?.map(patternOf).find((source) => source !== undefined)
    if (pattern !== undefined) node.pattern = pattern
  }
}

/** The pattern of a check, where it means with the `u` flag, which JSON Schema says, what it means without. */
const patternOf = ({ annotations }: AST.Check<never>): string | undefined => {
  const { id, payload }: JsonSchema = isNode(annotations?.representation) ? annotations.representation : {}
  const { flags, source }: JsonSchema = id === "effect/schema/isPattern" && isNode(payload) ? payload : {}
  return typeof source === "string" && flags === "" && Result.isSuccess(Result.try(() => new RegExp(source, "u")))
    ? source
    : undefined
}

/** What a schema looks like on the side of JSON: a class is its fields. */
const structure = (ast: AST.AST): AST.AST => {
  const to = AST.isDeclaration(ast) ? ast.encoding?.at(-1)?.to : undefined
  return to === undefined ? ast : structure(to)
}

/** Whether a property may be left out although its decoded value is always there. */
export const hasDefault = (type: AST.AST): boolean =>
  type.encoding !== undefined && AST.isOptional(AST.toEncoded(type)) && !AST.isOptional(type)

const defaultOf = (name: string, type: AST.AST): unknown => {
  if (!hasDefault(type)) return undefined
  const alone = Schema.toCodecJson(Schema.Struct({ [name]: Schema.make<Schema.Codec<unknown>>(type) }))
  // Only what is there at once is a constant: a default that is computed has no value that could be advertised.
  const decoded = Schema.decodeUnknownEffect(alone)({})
  if (!Exit.isExit(decoded) || !Exit.isSuccess(decoded)) return undefined
  const encoded = Effect.runSyncExit(Schema.encodeUnknownEffect(alone)(decoded.value))
  return Exit.isSuccess(encoded) && isNode(encoded.value) ? encoded.value[name] : undefined
}
