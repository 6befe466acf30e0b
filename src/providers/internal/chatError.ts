/**
 * What went wrong with a request? A status, a body and a broken connection become one typed error, with the server's own
 * words and without its caller's key.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as Result from "effect/Result"
import * as Text from "../../internal/text.ts"

const fail = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "OpenAiCompatible", method: "ask", reason })

interface ServerError {
  readonly message: string
  readonly code: string
}

const at = (u: unknown, key: string): unknown => typeof u === "object" && u !== null ? Reflect.get(u, key) : undefined

/** What a body says of an error; servers differ in where they say it. */
const serverError = (body: unknown): ServerError => {
  const error = at(Array.isArray(body) ? body[0] : body, "error") ?? body
  const message = [error, at(error, "message"), at(error, "detail"), at(error, "error")].find((u) =>
    typeof u === "string" && u !== ""
  )
  const code = [at(error, "code"), at(error, "type")].find((u) =>
    (typeof u === "string" && u !== "") || typeof u === "number"
  )
  return {
    message: typeof message === "string" ? message : Text.excerpt(JSON.stringify(error) ?? "", 200),
    code: code === undefined ? "" : String(code)
  }
}

/** The error of an answer whose status is none of success. */
export const fromStatus = (
  status: number,
  body: string,
  headers: { readonly [name: string]: string | undefined },
  url: string
): AiError.AiError => {
  const parsed = Result.getOrElse(Result.try((): unknown => JSON.parse(body)), () => Text.excerpt(body.trim(), 200))
  return fail(reasonOf(status, serverError(parsed), headers, url))
}

/** The error that a server sends in the middle of a stream that began well. */
export const fromStream = (error: unknown): AiError.AiError => {
  const { code, message } = serverError({ error })
  const status = Number(code)
  return fail(
    status >= 400 && status < 600
      ? reasonOf(status, { message, code: "" }, {}, "")
      : code === "rate_limit_exceeded"
      ? new AiError.RateLimitError({})
      : new AiError.InternalProviderError({ description: said(200, { message, code }) })
  )
}

const said = (status: number, { code, message }: ServerError): string =>
  `${message === "" ? "no message" : message}${code === "" ? "" : ` [${code}]`}${
    status === 200 ? "" : ` (HTTP ${status})`
  }`

const reasonOf = (
  status: number,
  error: ServerError,
  headers: { readonly [name: string]: string | undefined },
  url: string
): AiError.AiErrorReason => {
  const description = said(status, error)
  switch (status) {
    case 401:
      return new AiError.AuthenticationError({ kind: "InvalidKey", description })
    case 403:
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description })
    case 402:
      return new AiError.QuotaExhaustedError({})
    case 404:
      return new AiError.InvalidRequestError({
        description: `${description}: check the model's name and the base URL (${url})`
      })
    case 429: {
      if (error.code === "insufficient_quota") return new AiError.QuotaExhaustedError({})
      const retryAfter = waits(headers)
      return new AiError.RateLimitError(retryAfter === undefined ? {} : { retryAfter })
    }
    default:
      return status >= 500
        ? new AiError.InternalProviderError({ description })
        : new AiError.InvalidRequestError({ description })
  }
}

const waits = (headers: { readonly [name: string]: string | undefined }): Duration.Duration | undefined => {
  const millis = Number(headers["retry-after-ms"] ?? NaN)
  const seconds = Number(headers["retry-after"] ?? NaN)
  if (millis > 0 && Number.isFinite(millis)) return Duration.millis(millis)
  return seconds > 0 && Number.isFinite(seconds) ? Duration.seconds(seconds) : undefined
}

/** The error of a request that got no answer, or one that broke off. */
export const fromHttp = (error: HttpClientError.HttpClientError): AiError.AiError => {
  const { reason } = error
  const { method, url } = reason.request
  return fail(
    reason._tag === "TransportError" || reason._tag === "EncodeError" || reason._tag === "InvalidUrlError"
      ? new AiError.NetworkError({
        reason: reason._tag,
        method,
        url,
        description: cause(reason.cause) ?? reason.description
      })
      : new AiError.NetworkError({ reason: "TransportError", method, url, description: "the answer broke off" })
  )
}

const cause = (u: unknown): string | undefined => {
  if (!(u instanceof Error)) return undefined
  const inner = cause(u.cause)
  return inner ?? (u.message === "" ? ("code" in u ? String(u.code) : u.name) : u.message)
}

/** The error of an answer that is not what the protocol says. */
export const malformed = (description: string): AiError.AiError =>
  fail(new AiError.InvalidResponseError({ description }))

/** The error of a stream that ended before the server was done. */
export const endedEarly = (url: string): AiError.AiError =>
  fail(
    new AiError.NetworkError({
      reason: "TransportError",
      method: "POST",
      url,
      description: "the stream ended before the answer did"
    })
  )
