/**
 * What did the model send as arguments? Text or data becomes an input that is ready to be decoded.
 */
import * as Result from "effect/Result"

/** Arguments as they came, and as they are read. Text that is not JSON has no `input`. */
export interface Arguments {
  readonly input?: unknown
  readonly raw?: string
  readonly repairs: ReadonlyArray<string>
}

const none: ReadonlyArray<string> = []
const emptied: ReadonlyArray<string> = ["read empty arguments as {}"]

/** Reads arguments: text as the model wrote it, or what a provider made of it. */
export const parse = (params: unknown): Arguments => {
  if (typeof params !== "string") {
    return params === undefined || params === null ? { input: {}, repairs: emptied } : { input: params, repairs: none }
  }
  if (params.trim() === "") return { input: {}, raw: params, repairs: emptied }
  const parsed = Result.try((): unknown => JSON.parse(params))
  if (Result.isFailure(parsed)) return { raw: params, repairs: none }
  return parsed.success === null
    ? { input: {}, raw: params, repairs: emptied }
    : { input: parsed.success, raw: params, repairs: none }
}

/** What is stored of arguments: an object, which every provider takes back. */
export const toObject = (params: unknown): object => {
  const { input } = parse(params)
  return isObject(input) ? input : {}
}

/** Whether a value is an object in JSON's sense. */
export const isObject = (u: unknown): u is object => typeof u === "object" && u !== null && !Array.isArray(u)
