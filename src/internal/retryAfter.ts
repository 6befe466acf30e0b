/**
 * How long does a server want to be left alone? What it says of that, in one of the forms that servers have.
 */
import type * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"

type Headers = { readonly [name: string]: unknown }

/**
 * What headers with names in lower case say. A date is one of the server's clock, so its own `date` goes before `now`,
 * which is the time here in milliseconds.
 */
export const ofHeaders = (headers: Headers, now?: number): Duration.Duration | undefined => {
  const after = headers["retry-after"]
  const millis = above0(Number(headers["retry-after-ms"])) ?? above0(Number(after) * 1_000) ??
    above0((dateOf(after) ?? NaN) - (dateOf(headers.date) ?? now ?? NaN))
  return millis === undefined ? undefined : Duration.millis(millis)
}

/** What an error says: the wait that its provider read, or else the headers that came with it. */
export const ofError = ({ reason }: AiError.AiError, now: number): Duration.Duration | undefined => {
  if ("retryAfter" in reason && reason.retryAfter !== undefined && Duration.isPositive(reason.retryAfter)) {
    return reason.retryAfter
  }
  const headers = "http" in reason ? reason.http?.response?.headers : undefined
  return headers === undefined
    ? undefined
    : ofHeaders(Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])), now)
}

const above0 = (millis: number): number | undefined => millis > 0 && Number.isFinite(millis) ? millis : undefined

// The form that HTTP asks for; of others `Date.parse` makes dates that nobody meant.
const dateOf = (u: unknown): number | undefined =>
  typeof u === "string" && /^\w{3}, \d{1,2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(u) ? Date.parse(u) : undefined
