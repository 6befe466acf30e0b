/**
 * How is JSON read that may be anything, and written so that every server takes it? Read a field at a time, each with a
 * value to fall back on.
 */
import * as Arguments from "../../internal/arguments.ts"
import * as Text from "../../internal/text.ts"

export type Json = { readonly [key: string]: unknown }

export const isJson = (u: unknown): u is Json => Arguments.isObject(u)

export const object = (u: unknown): Json => isJson(u) ? u : {}

export const list = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []

export const text = (u: unknown): string => typeof u === "string" ? u : ""

/** The text of a value, in which half a surrogate pair is replaced, wherever it stands. */
export const write = (value: unknown): string => {
  const text = JSON.stringify(value)
  // JSON.stringify escapes exactly the surrogates that stand alone.
  return text?.includes("\\ud") ? JSON.stringify(Text.wellFormed(JSON.parse(text))) : text
}

/** The fields of an object without its braces, to be written after others: each with a comma before it. */
export const fields = (u: object): string => {
  const inner = write(u).slice(1, -1)
  return inner === "" ? "" : `,${inner}`
}
