/**
 * What is the JSON of a value that no schema describes? One form for everything that a program may hold, so that a
 * result always reaches the model and a copy shares nothing with what it was made from.
 */
/**
 * A copy of a value as JSON data. A date is its ISO text, a BigInt its digits, a Map its entries, a Set its members,
 * bytes are base64, an error is its name and message; NaN and infinities are null, functions and symbols are left out,
 * and a value that holds itself says so in the place where it would go on for ever. Throws for a value that is too much.
 */
export const toJson = (value: unknown): unknown => copy(value, [], { objects: 0 })

/** How many objects were copied: one that is held in many places is copied in each. */
interface Spent {
  objects: number
}

const mostObjects = 1_000_000
const mostLevels = 1_000

const copy = (value: unknown, above: ReadonlyArray<object>, spent: Spent): unknown => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : null
    case "bigint":
      return String(value)
    case "object":
      return value === null ? null : above.includes(value) ? "[circular]" : copyObject(value, above, spent)
    default:
      return undefined
  }
}

const copyObject = (value: object, above: ReadonlyArray<object>, spent: Spent): unknown => {
  if (++spent.objects > mostObjects || above.length > mostLevels) throw new Error("the value is too large for JSON")
  const within = [...above, value]
  const all = (members: Iterable<unknown>) => Array.from(members, (member) => copy(member, within, spent) ?? null)
  if (Array.isArray(value) || value instanceof Set) return all(value)
  if (value instanceof Map) return Array.from(value, all)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof ArrayBuffer) return base64(new Uint8Array(value))
  if (ArrayBuffer.isView(value)) return base64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  if (value instanceof Error) {
    return { name: copy(value.name, within, spent), message: copy(value.message, within, spent) }
  }
  if (value instanceof RegExp || value instanceof URL) return String(value)
  const json: unknown = "toJSON" in value && typeof value.toJSON === "function" ? value.toJSON() : value
  if (json !== value) return copy(json, within, spent)
  const entries = Object.entries(value).map(([key, member]) => [key, copy(member, within, spent)] as const)
  // Entries define their keys, so that not even __proto__ is more than a key.
  return Object.fromEntries(entries.filter(([, member]) => member !== undefined))
}

const base64 = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}
