/**
 * How is a value shown in a few words, and which text does everybody take?
 */

/** The same value with every half surrogate pair in it replaced; the very same where there is none. */
export const wellFormed = (u: unknown): unknown => isWellFormed(u) ? u : mended(u)

// Asked first, since it is nearly always so and costs no copy.
const isWellFormed = (u: unknown): boolean => {
  if (typeof u === "string") return u.isWellFormed()
  if (typeof u !== "object" || u === null) return true
  if (Array.isArray(u)) return u.every(isWellFormed)
  if (!isPlain(u)) return true
  // Of a plain object these are its own keys, without a list of them.
  for (const key in u) if (!key.isWellFormed() || !isWellFormed(u[key])) return false
  return true
}

const mended = (u: unknown): unknown =>
  typeof u === "string"
    ? u.toWellFormed()
    : Array.isArray(u)
    ? u.map(wellFormed)
    : typeof u === "object" && u !== null && isPlain(u)
    ? Object.fromEntries(Object.entries(u).map(([key, value]) => [key.toWellFormed(), wellFormed(value)]))
    : u

const isPlain = (u: object): u is { readonly [key: string]: unknown } => {
  const proto: unknown = Object.getPrototypeOf(u)
  return proto === Object.prototype || proto === null
}

/** A value in a few words, for a message: its type, and a bounded excerpt. */
export const describe = (value: unknown): string => {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === "object") return `an object with ${excerpt(Object.keys(value).join(", ")) || "no keys"}`
  return `${typeof value} ${typeof value === "string" ? JSON.stringify(excerpt(value)) : excerpt(String(value))}`
}

/** The first characters of a text, never half a character. */
export const excerpt = (text: string, most = 60): string => {
  if (text.length <= most) return text.toWellFormed()
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most
  return `${text.slice(0, end).toWellFormed()}…`
}
