/**
 * How is a value shown in a few words, and which text does everybody take?
 */

/** The same value with every half surrogate pair in it replaced; the very same where there is none. */
export const wellFormed = (u: unknown): unknown => {
  if (typeof u === "string") return u.isWellFormed() ? u : u.toWellFormed()
  if (Array.isArray(u)) {
    const members = u.map(wellFormed)
    return members.every((member, at) => member === u[at]) ? u : members
  }
  if (typeof u !== "object" || u === null || !isPlain(u)) return u
  const entries = Object.entries(u)
  const made = entries.map(([key, value]) =>
    [key.isWellFormed() ? key : key.toWellFormed(), wellFormed(value)] as const
  )
  return made.every(([key, value], at) => key === entries[at]?.[0] && value === entries[at][1])
    ? u
    : Object.fromEntries(made)
}

const isPlain = (u: object): boolean => {
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
