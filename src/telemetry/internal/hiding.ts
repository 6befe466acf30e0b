/**
 * Which parts of a value are never recorded? What its Schema marks: values that are `Redacted`, and what carries the
 * annotation. The value is JSON as it goes over the wire, so the Schema is followed along its encoding.
 *
 * Where it cannot be followed (a value of another shape, a key that the Schema does not have, a transformation of the whole)
 * and something of it is marked, all of it is hidden.
 */
import type * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"

/** The annotation. */
export const Key = "toolfold/hidden"

/** What stands in the place of what is hidden. */
export const Placeholder = "<redacted>"

/** A value without what its Schema hides. What was hidden is added to `hidden`, as texts. */
export const hide = (schema: Schema.Constraint, value: unknown, hidden: Set<string>): unknown =>
  inNode(schema.ast, value, hidden)

/** Whether a Schema hides anything. */
export const hides = (schema: Schema.Constraint): boolean => holds(schema.ast)

/** A text without what was hidden elsewhere. Where that is too short to be told from other text, all of it goes. */
export const without = (text: string, hidden: ReadonlySet<string>): string => {
  let rest = text
  for (const secret of hidden) {
    if (secret === "" || !rest.includes(secret)) continue
    if (secret.length < shortest) return Placeholder
    rest = rest.replaceAll(secret, Placeholder)
  }
  return rest
}

const shortest = 4

const inNode = (node: SchemaAST.AST, value: unknown, hidden: Set<string>): unknown => {
  if (value === undefined || value === null || !holds(node)) return value
  if (isMarked(node)) return swallow(value, hidden)
  if (node.encoding !== undefined) {
    const wire = node.encoding[node.encoding.length - 1]?.to
    return wire === undefined || below(node).some(holds) || node.encoding.some(({ to }) => to !== wire && holds(to))
      ? swallow(value, hidden)
      : inNode(wire, value, hidden)
  }
  switch (node._tag) {
    case "Suspend":
      return inNode(node.thunk(), value, hidden)
    case "Union":
      return node.types.filter(holds).reduce<unknown>(
        (rest, member) => rest === Placeholder ? rest : inNode(member, rest, hidden),
        value
      )
    case "Arrays":
      return Array.isArray(value)
        ? value.map((item, at) => inElement(node, item, at, hidden))
        : swallow(value, hidden)
    case "Objects":
      return typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inProperty(node, key, item, hidden)]))
        : swallow(value, hidden)
    default:
      return swallow(value, hidden)
  }
}

const inElement = (node: SchemaAST.Arrays, item: unknown, at: number, hidden: Set<string>): unknown => {
  const fixed = node.elements[at]
  if (fixed !== undefined) return inNode(fixed, item, hidden)
  // What comes after the repeated one has no fixed place from the front.
  return node.rest.reduce<unknown>((rest, each) => rest === Placeholder ? rest : inNode(each, rest, hidden), item)
}

const inProperty = (node: SchemaAST.Objects, key: string, item: unknown, hidden: Set<string>): unknown => {
  const property = node.propertySignatures.find(({ name }) => name === key)
  if (property !== undefined) return inNode(property.type, item, hidden)
  if (node.indexSignatures.length === 0) return swallow(item, hidden)
  return node.indexSignatures.reduce<unknown>(
    (rest, { type }) => rest === Placeholder ? rest : inNode(type, rest, hidden),
    item
  )
}

const swallow = (value: unknown, hidden: Set<string>): string => {
  collect(value, hidden)
  return Placeholder
}

const collect = (value: unknown, hidden: Set<string>): void => {
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") hidden.add(String(value))
  else if (typeof value === "object" && value !== null) Object.values(value).forEach((item) => collect(item, hidden))
}

const isMarked = (node: SchemaAST.AST): boolean =>
  [node.annotations, node.context?.annotations, ...(node.checks ?? []).map(({ annotations }) => annotations)]
    .some((annotations) => annotations !== undefined && (annotations[Key] === true || isRedacted(annotations)))

const isRedacted = ({ representation }: { readonly representation?: unknown }): boolean =>
  typeof representation === "object" && representation !== null && "id" in representation &&
  representation.id === "effect/schema/Redacted"

const known = new WeakMap<SchemaAST.AST, boolean>()

/** Whether something marked can be reached from a node. */
const holds = (node: SchemaAST.AST): boolean => {
  const before = known.get(node)
  if (before !== undefined) return before
  // Only the root's answer is kept: within a circle another node's would be that of half the way.
  const found = reaches(node, new Set())
  known.set(node, found)
  return found
}

const reaches = (node: SchemaAST.AST, seen: Set<SchemaAST.AST>): boolean => {
  if (seen.has(node)) return false
  seen.add(node)
  return isMarked(node) || below(node).some((each) => reaches(each, seen)) ||
    (node.encoding ?? []).some(({ to }) => reaches(to, seen))
}

const below = (node: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  switch (node._tag) {
    case "Declaration":
      return node.typeParameters
    case "Suspend":
      return [node.thunk()]
    case "Union":
      return node.types
    case "Arrays":
      return [...node.elements, ...node.rest]
    case "Objects":
      return [...node.propertySignatures, ...node.indexSignatures].map(({ type }) => type)
    default:
      return []
  }
}
