/**
 * How is JSON read that may be anything? A field at a time, each with a value to fall back on.
 */
import * as Arguments from "../../internal/arguments.ts"

export type Json = { readonly [key: string]: unknown }

export const isJson = (u: unknown): u is Json => Arguments.isObject(u)

export const object = (u: unknown): Json => isJson(u) ? u : {}

export const list = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []

export const text = (u: unknown): string => typeof u === "string" ? u : ""
