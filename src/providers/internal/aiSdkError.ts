/**
 * What went wrong behind the AI SDK? Its errors, known by name since its code is not ours to load, as typed ones.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import * as Text from "../../internal/text.ts"
import * as ChatError from "./chatError.ts"
import { isJson, type Json, list, object, text } from "./json.ts"

const fail = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "AiSdk", method: "ask", reason })

/** A request that cannot be sent. */
export const unsendable = (description: string): AiError.AiError =>
  fail(new AiError.InvalidRequestError({ description }))

/** A stream that ended before the answer did. */
export const endedEarly = (provider: string): AiError.AiError =>
  fail(
    new AiError.NetworkError({
      reason: "TransportError",
      method: "POST",
      url: provider,
      description: "the stream ended before the answer did"
    })
  )

const asked = new Set([
  "AI_UnsupportedFunctionalityError",
  "AI_InvalidPromptError",
  "AI_InvalidArgumentError",
  "AI_LoadSettingError",
  "AI_NoSuchModelError",
  "AI_NoSuchProviderReferenceError"
])

const answered = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError"
])

/** Whatever a provider threw, rejected with, or put into its stream; a key that it says again is left out. */
export const of = (error: unknown, provider: string): AiError.AiError => {
  const failed = read(error, provider)
  const { reason } = failed
  if (reason._tag !== "AuthenticationError" || reason.description === undefined) return failed
  const { description, http, kind, metadata } = reason
  return fail(
    new AiError.AuthenticationError({
      kind,
      metadata,
      description: description.replace(keyLike, "<redacted>"),
      ...(http === undefined ? {} : { http })
    })
  )
}

// The key is the client's, so it is known by its looks only.
const keyLike =
  /\b(?:bearer|basic)\s+\S+|\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_][\w-]{4,}|\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{20,}/gi

const read = (error: unknown, provider: string): AiError.AiError => {
  const { cause, name }: Json = error instanceof Error ? { name: error.name, cause: error.cause } : {}
  const description = Text.excerpt(answered.has(text(name)) ? unreadable(error) : messageOf(error), 500)
  if (name === "AI_APICallError") return fail(ofCall(object(error), description, provider))
  if (name === "AI_LoadAPIKeyError") return fail(new AiError.AuthenticationError({ kind: "MissingKey", description }))
  if (asked.has(text(name))) return fail(new AiError.InvalidRequestError({ description }))
  if (answered.has(text(name))) return fail(new AiError.InvalidResponseError({ description }))
  if (!(error instanceof Error)) return fail(ofStream(error, provider))
  // What fetch throws, and what a connection does that breaks off.
  const isNetwork = error instanceof TypeError || name === "AbortError" || name === "TimeoutError" ||
    "code" in error || (isJson(cause) && "code" in cause)
  return isNetwork ? fail(network(error, provider)) : fail(new AiError.UnknownError({ description }))
}

const messageOf = (error: unknown): string => {
  const said = error instanceof Error ? error.message : typeof error === "string" ? error : text(object(error).message)
  return said === "" ? "no message" : said
}

/** What is wrong with an answer, without the answer, with which such messages begin. */
const unreadable = (error: unknown): string => {
  const said = messageOf(error)
  const at = said.lastIndexOf(marker)
  if (at < 0) return said
  const why = said.slice(at + marker.length)
  const lines = issuesIn(why).map(({ message, path }) => `${text(message)} at ${list(path).join(".")}`)
  return `${said.slice(0, said.indexOf(":"))}: ${lines.length > 0 ? lines.join(", ") : why.replace(/\s+/g, " ")}`
}

const marker = "Error message: "

const issuesIn = (why: string): ReadonlyArray<Json> => {
  const issues = Result.try((): unknown => JSON.parse(why))
  return Result.isSuccess(issues) ? list(issues.success).map(object) : []
}

/** An event in a stream that a client refuses for its type alone: newer than the client, and nothing that it would show. */
export const unknownEvent = (error: unknown): string | undefined => {
  if (!(error instanceof Error) || error.name !== "AI_TypeValidationError") return undefined
  const type = text(object("value" in error ? error.value : undefined).type)
  const issues = error.cause instanceof Error ? issuesIn(error.cause.message) : []
  const isOfType = issues.length > 0 && issues.every(({ path }) => list(path).length === 1 && list(path)[0] === "type")
  return type !== "" && isOfType ? `an event of a type that is not known here was left out: ${type}` : undefined
}

const network = (error: unknown, url: string) => {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return new AiError.NetworkError({
    reason: "TransportError",
    method: "POST",
    url,
    description: Text.excerpt(messageOf(inner), 500)
  })
}

const ofCall = (error: Json, description: string, provider: string): AiError.AiErrorReason => {
  const { cause, responseBody, responseHeaders, statusCode } = error
  const url = text(error.url).replace(/\?.*$/, "") || provider
  if (typeof statusCode !== "number") return network(error.cause ?? error, url)
  if (statusCode >= 200 && statusCode < 300) {
    // The status was good, so it was the answer that could not be read.
    const why = cause instanceof Error ? `: ${unreadable(cause)}` : ""
    return new AiError.InvalidResponseError({ description: Text.excerpt(`${description}${why}`, 500) })
  }
  const headers = Object.fromEntries(
    Object.entries(object(responseHeaders)).map(([key, value]) => [key.toLowerCase(), text(value)])
  )
  const body = first(text(responseBody))
  const { reason } = ChatError.make(url, []).status(statusCode, body ?? description, headers)
  return closer(reason, { body: body ?? "", description, status: statusCode })
}

/** A body that is a list says its error in the first element. */
const first = (body: string): string | undefined => {
  if (body.trim() === "") return undefined
  return /^\s*\[/.test(body) ? body.replace(/^\s*\[/, "").replace(/\]\s*$/, "") : body
}

/** What an answer says beside its status: whose fault it is, and how long to wait. */
const closer = (
  reason: AiError.AiErrorReason,
  { body, description, status }: { readonly body: string; readonly description: string; readonly status: number }
): AiError.AiErrorReason => {
  // Some call a wrong key a bad request.
  if (
    reason._tag === "InvalidRequestError" &&
    (status === 401 || /API_KEY_INVALID|(?:incorrect|invalid) api key/i.test(body))
  ) return new AiError.AuthenticationError({ kind: "InvalidKey", description: reason.description ?? description })
  if (reason._tag !== "RateLimitError" || reason.retryAfter !== undefined) return reason
  const { metadata } = reason
  // Google says it in the body.
  const seconds = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1]
  if (seconds !== undefined) {
    return new AiError.RateLimitError({ metadata, retryAfter: Duration.millis(Math.ceil(Number(seconds) * 1_000)) })
  }
  // What is used up for the day does not come back while somebody waits.
  return /per ?day|daily/i.test(body) ? new AiError.QuotaExhaustedError({ metadata }) : reason
}

/** What a stream says of its error: a status where the provider knows one, else the name that the server gave it. */
const ofStream = (error: unknown, provider: string): AiError.AiErrorReason => {
  const { code, data, message, statusCode, type } = object(error)
  const errors = ChatError.make(provider, [])
  if (typeof statusCode === "number" && statusCode >= 400) {
    return errors.status(statusCode, JSON.stringify({ error: { message, code, type } }), {}).reason
  }
  const inner = isJson(data) ? data.error ?? data : undefined
  const said = message === undefined && inner !== undefined ? inner : error
  return errors.said(list(said).length > 0 ? list(said)[0] : said).reason
}
