/**
 * What must not stand on a tape? What a schema of a tool says is redacted, wherever it stands in a call or a result, and
 * the same text where it is said again; and what the user's own hook takes out.
 */
import type * as WireTool from "effect/ai/Tool"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { partsOf } from "../../internal/codec.ts"
import * as Results from "../../internal/results.ts"
import * as Turn from "../../Turn.ts"

/** What stands in the place of a secret. */
export const redacted = "<redacted>"

/** Takes secrets out of what is about to be written or compared. */
export interface Cleaner {
  /** Every text in a JSON value, by the user's hook. */
  readonly hook: (json: unknown) => unknown
  /** Every text in a JSON value, by the hook and without what is known to be secret. */
  readonly clean: (json: unknown) => unknown
  /** Every text in a JSON value, without what is known to be secret. */
  readonly scrub: (json: unknown) => unknown
  /** The arguments of a call, without what its schema says is redacted. */
  readonly params: (tool: WireTool.Any | undefined, params: unknown) => unknown
  /** What a model is told of a failed call, unless it may quote arguments that hold a secret. */
  readonly failure: (tool: WireTool.Any | undefined, told: unknown) => unknown
  /** The result of a call, without what its schema says is redacted. */
  readonly result: (tool: WireTool.Any | undefined, value: unknown) => unknown
}

// A shorter text is no secret that anybody keeps, and would take words apart.
const fewest = 4

export const make = (redact: ((text: string) => string) | undefined): Cleaner => {
  const known = new Set<string>()
  const hooked = redact ?? ((text: string) => text)
  const scrubbed = (text: string) => {
    let out = text
    for (const secret of known) if (out.includes(secret)) out = out.replaceAll(secret, redacted)
    return out
  }
  const found = (text: string) => {
    if (text.length >= fewest) known.add(text)
  }
  return {
    hook: (json) => redact === undefined ? json : texts(json, hooked),
    clean: (json) => redact === undefined && known.size === 0 ? json : texts(json, (text) => hooked(scrubbed(text))),
    scrub: (json) => known.size === 0 ? json : texts(json, scrubbed),
    params: (tool, params) => {
      const ast = tool === undefined ? undefined : secretive(tool.parametersSchema)
      if (ast === undefined) return params
      if (typeof params !== "string") return mask(ast, params, found)
      const { input } = Turn.call({ id: "", name: "", params })
      // What cannot be read is not written.
      return input === undefined ? redacted : JSON.stringify(mask(ast, input, found))
    },
    failure: (tool, told) => tool === undefined || secretive(tool.parametersSchema) === undefined ? told : redacted,
    result: (tool, value) => {
      const ast = tool === undefined ? undefined : secretive(tool.successSchema)
      return ast === undefined ? value : mask(ast, value, found)
    }
  }
}

/** The same JSON with every text in it changed. */
const texts = (json: unknown, change: (text: string) => string): unknown =>
  typeof json === "string"
    ? change(json)
    : Array.isArray(json)
    ? json.map((member) => texts(member, change))
    : typeof json === "object" && json !== null
    ? Object.fromEntries(Object.entries(json).map(([key, member]) => [key, texts(member, change)]))
    : json

const forms = new WeakMap<Schema.Constraint, AST.AST>()

/** The form of a schema's JSON, where it has a redacted place. */
const secretive = (schema: Schema.Constraint): AST.AST | undefined => {
  const ast = forms.get(schema) ?? Schema.toCodecJson(schema).ast
  forms.set(schema, ast)
  return mayHold(ast) ? ast : undefined
}

const held = new WeakMap<AST.AST, boolean>()

/** Whether a schema has a redacted place. */
const mayHold = (ast: AST.AST): boolean => {
  const known = held.get(ast)
  if (known !== undefined) return known
  held.set(ast, false) // for a schema that holds itself
  const holds = isRedacted(ast) || partsOf(ast).some(mayHold)
  held.set(ast, holds)
  return holds
}

const isRedacted = (ast: AST.AST): boolean => {
  const { representation } = ast.annotations ?? {}
  return AST.isDeclaration(ast) && typeof representation === "object" && representation !== null &&
    "id" in representation && representation.id === "effect/schema/Redacted"
}

/** JSON without what stands in a redacted place, in the form that it had, so that it still decodes. */
const mask = (ast: AST.AST, json: unknown, found: (text: string) => void): unknown => {
  if (isRedacted(ast)) return hidden(json, found)
  if (!mayHold(ast)) return json
  const within = (part: AST.AST, value: unknown) => mask(part, value, found)
  const whole = (ast.encoding ?? []).reduce((value, { to }) => within(to, value), json)
  if (AST.isUnion(ast)) return ast.types.reduce((value, type) => within(type, value), whole)
  if (AST.isSuspend(ast)) return within(ast.thunk(), whole)
  if (AST.isDeclaration(ast)) return mayHold(ast) && ast.encoding === undefined ? hidden(whole, found) : whole
  if (Array.isArray(whole)) {
    if (!AST.isArrays(ast)) return whole
    const { elements, rest } = ast
    return whole.map((value, at) => {
      const type = elements[at] ?? rest[0]
      return type === undefined ? value : within(type, value)
    })
  }
  if (!AST.isObjects(ast) || typeof whole !== "object" || whole === null) return whole
  const types = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), type]))
  return Object.fromEntries(
    Object.entries(whole).map(([key, value]) => {
      const type = types.get(key)
      const all = type === undefined ? ast.indexSignatures.map((signature) => signature.type) : [type]
      return [key, all.reduce((value, type) => within(type, value), value)]
    })
  )
}

const hidden = (json: unknown, found: (text: string) => void): unknown => {
  switch (typeof json) {
    case "string":
      if (json !== redacted) found(json)
      return redacted
    case "number":
      return 0
    case "boolean":
      return false
    default:
      return Array.isArray(json)
        ? json.map((member) => hidden(member, found))
        : typeof json === "object" && json !== null
        ? Object.fromEntries(Object.entries(json).map(([key, member]) => [key, hidden(member, found)]))
        : json
  }
}

/** Any value as JSON, without marks that effect keeps in its data. */
export const plain = (value: unknown): unknown => unmarked(Results.toJson(value) ?? null)

const unmarked = (json: unknown): unknown =>
  Array.isArray(json)
    ? json.map(unmarked)
    : typeof json === "object" && json !== null
    ? Object.fromEntries(
      Object.entries(json).flatMap(([key, member]) => key.startsWith("~") ? [] : [[key, unmarked(member)] as const])
    )
    : json
