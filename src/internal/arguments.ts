/**
 * What did the model send as arguments? Text or data becomes an input that is ready to be decoded.
 *
 * What is read into a text is one of a few things that can mean nothing else, and is recorded. Anything else that is
 * wrong with it is left for the model to put right.
 */
import * as Result from "effect/Result"

/** Arguments as they came, and as they are read. Text that is not JSON, or too much of it, has no `input`. */
export interface Arguments {
  readonly input?: unknown
  readonly raw?: string
  readonly repairs: ReadonlyArray<string>
}

const none: ReadonlyArray<string> = []
const emptied: ReadonlyArray<string> = ["read empty arguments as {}"]

/**
 * Reads arguments: text as the model wrote it, or what a provider made of it. Into arguments that were cut off nothing
 * is read: what is missing cannot be known.
 */
export const parse = (params: unknown, options?: { readonly isCutOff?: boolean }): Arguments => {
  const isCutOff = options?.isCutOff === true
  if (typeof params !== "string") {
    if (params !== undefined && params !== null) return { input: params, repairs: none }
    return isCutOff ? { repairs: none } : { input: {}, repairs: emptied }
  }
  if (tooMuch(params) !== undefined) return { raw: params, repairs: none }
  if (isCutOff) {
    const plain = plainly(params)
    return Result.isFailure(plain)
      ? { raw: params, repairs: none }
      : { input: plain.success, raw: params, repairs: none }
  }
  const read = within(params)
  if (isObject(read?.value)) return { input: read.value, raw: params, repairs: read.repairs }
  if (read?.value === null || params.trim() === "") return { input: {}, raw: params, repairs: emptied }
  const found = unwrap(params, read, 3)
  if (found !== undefined) return { input: found.value, raw: params, repairs: [...new Set(found.repairs)] }
  return read === undefined ? { raw: params, repairs: none } : { input: read.value, raw: params, repairs: read.repairs }
}

/** What is stored of arguments: an object, which every provider takes back. */
export const toObject = (params: unknown): object => {
  const { input } = parse(params)
  return isObject(input) ? input : {}
}

/** Whether a value is an object in JSON's sense. */
export const isObject = (u: unknown): u is { readonly [key: string]: unknown } =>
  typeof u === "object" && u !== null && !Array.isArray(u)

const mostCharacters = 4_000_000
const mostLevels = 200

/** Says of a text that is more than is read what is too much about it. */
export const tooMuch = (raw: string): string | undefined =>
  raw.length > mostCharacters
    ? `The arguments are too large: ${raw.length} characters, at most ${mostCharacters}.`
    : raw.length > 2 * mostLevels && isTooDeep(raw)
    ? `The arguments are nested too deep: more than ${mostLevels} levels.`
    : undefined

const isTooDeep = (text: string): boolean => {
  let levels = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (isInString) {
      if (character === 0x5c) at++ // \ and what it escapes
      else if (character === 0x22) isInString = false
    } else if (character === 0x22) isInString = true
    else if (character === 0x5b || character === 0x7b) { // [ {
      if (++levels > mostLevels) return true
    } else if (character === 0x5d || character === 0x7d) levels-- // ] }
  }
  return false
}

/** A value read from a text, and what had to be read into it. */
export interface Reading {
  readonly value: unknown
  readonly repairs: ReadonlyArray<string>
}

/** Reads JSON in which no whole number is rounded: one that no number holds is kept as the text of its digits. */
export const json = (text: string): Reading | undefined => tooMuch(text) === undefined ? within(text) : undefined

const within = (text: string): Reading | undefined => {
  if (/\d{16}/.test(text)) return exactly(text)
  const read = plainly(text)
  return Result.isFailure(read) ? undefined : { value: read.success, repairs: none }
}

const mostKept = 5

const keptAsText = (digits: string): string =>
  `kept ${digits.length > 40 ? `${digits.slice(0, 40)}…` : digits} as text, because a number ${
    isRounded(digits) ? "would" : "could"
  } round it`

/** Whether no number holds a whole number exactly. */
export const isRounded = (digits: string): boolean => {
  const number = Number(digits)
  return !Number.isFinite(number) || BigInt(number) !== BigInt(digits)
}

const plainly = (text: string): Result.Result<unknown, unknown> => Result.try((): unknown => JSON.parse(text))

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown // the lib lacks the reviver's third argument

const exactly = (text: string): Reading | undefined => {
  const kept = new Set<string>()
  const read = Result.try(() =>
    parseWithSource(text, (_key, value, { source }) => {
      if (typeof value !== "number" || source === undefined || isExact(source, value)) return value
      kept.add(source)
      return source
    })
  )
  return Result.isFailure(read)
    ? undefined
    : { value: read.success, repairs: [...kept].slice(0, mostKept).map(keptAsText) }
}

const isExact = (source: string, value: number): boolean => Number.isSafeInteger(value) || !/^-?\d+$/.test(source)

/** The object in a text that models wrap: as a string of JSON once more, in a fence of Markdown, or both. */
const unwrap = (text: string, read: Reading | undefined, levels: number): Reading | undefined => {
  if (isObject(read?.value)) return read
  if (typeof read?.value === "string") {
    return levels > 0 ? inside(read.value, levels - 1, "read double-encoded JSON") : undefined
  }
  const body = read === undefined ? unfence(text) : undefined
  return body === undefined ? undefined : inside(body, levels, "removed a code fence")
}

const inside = (text: string, levels: number, repair: string): Reading | undefined => {
  const found = unwrap(text, json(text), levels)
  return found === undefined ? undefined : { value: found.value, repairs: [repair, ...found.repairs] }
}

const fence = "```"

// One fence only: what is fenced and begins with another is not JSON.
const unfence = (text: string): string | undefined => {
  const trimmed = text.trim()
  if (trimmed.length < 2 * fence.length || !trimmed.startsWith(fence) || !trimmed.endsWith(fence)) return undefined
  const body = trimmed.slice(fence.length, -fence.length).replace(/^\w*/, "").trim()
  return body.startsWith(fence) ? undefined : body
}
