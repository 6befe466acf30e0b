/**
 * What went wrong with a request? A status, a body and a broken connection become one typed error, with the server's own
 * words and without its caller's secrets.
 */
import * as AiError from "effect/ai/AiError"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as RetryAfter from "../../internal/retryAfter.ts"
import * as Text from "../../internal/text.ts"
import * as ChatReply from "./chatReply.ts"
import { isJson, type Json, list, object, text } from "./json.ts"

/** Makes the errors of one server. */
export interface Errors {
  /** Of an answer whose status is none of success. */
  readonly status: (status: number, body: string, headers: Headers) => AiError.AiError
  /** Of an error that came where an answer should have been. */
  readonly said: (error: unknown) => AiError.AiError
  /** Of a request that got no answer, or one that broke off. */
  readonly http: (error: HttpClientError.HttpClientError) => AiError.AiError
  /** Of an answer that is not what the protocol says; `body` is what it says instead. */
  readonly malformed: (what: string, body?: string) => AiError.AiError
  /** Of a stream that ended before the answer did. */
  readonly endedEarly: () => AiError.AiError
  /** Of a request that cannot be sent. */
  readonly unsendable: (what: string) => AiError.AiError
}

type Headers = { readonly [name: string]: string | undefined }

const method = "POST"

const fail = (reason: AiError.AiErrorReason) => AiError.make({ module: "OpenAiCompatible", method: "ask", reason })

/** The errors of a server at a URL; `secrets` are never shown. */
export const make = (address: string, secrets: ReadonlyArray<string>): Errors => {
  const forms = [...new Set(secrets.flatMap(formsOf))].filter((form) => form.length > 3)
  const scrub = (words: string): string =>
    Text.excerpt(
      forms.reduce((all, form) => all.replaceAll(form, "<redacted>"), words)
        .replace(/\/\/[^/\s@]+@/g, "//<redacted>@"),
      500
    )
  const url = scrub(address.replace(/\?.*$/, ""))
  const network = (reason: AiError.NetworkError["reason"], description: string) =>
    fail(new AiError.NetworkError({ reason, method, url, description: scrub(description) }))
  return {
    status: (status, body, headers) =>
      fail(classify(status, errorIn(ChatReply.parse(body) ?? body.trim(), scrub), headers, url)),
    said: (error) => fail(classify(200, errorIn(error, scrub), {}, url)),
    http: ({ reason }) =>
      reason._tag === "TransportError" || reason._tag === "EncodeError" || reason._tag === "InvalidUrlError"
        ? network(reason._tag, causeOf(reason.cause) ?? reason.description ?? "no connection")
        : network("TransportError", "the answer broke off"),
    malformed: (what, body) => {
      // What is cut or escaped first is no longer recognised as a secret.
      const shown = body === undefined ? "" : `: ${JSON.stringify(Text.excerpt(scrub(body.slice(0, 5_000)), 100))}`
      return fail(new AiError.InvalidResponseError({ description: what + shown }))
    },
    endedEarly: () => network("TransportError", "the stream ended before the answer did"),
    unsendable: (what) => fail(new AiError.InvalidRequestError({ description: scrub(what) }))
  }
}

/** How a server may repeat a secret: as it is, without the scheme before it, or escaped as JSON. */
const formsOf = (secret: string): ReadonlyArray<string> =>
  [secret, secret.replace(/^(?:bearer|basic|token)\s+/i, "")].flatMap((form) => [
    form,
    JSON.stringify(form).slice(1, -1)
  ])

interface ServerError {
  readonly message: string
  readonly codes: ReadonlyArray<string>
  /** How many seconds it says to wait. */
  readonly wait: string | undefined
}

/** What a body says of an error; servers differ in where they say it. */
const errorIn = (body: unknown, scrub: (words: string) => string): ServerError => {
  const error = isJson(body) ? body.error ?? body : body
  const { code, detail, details, error: inner, innererror, message, metadata, type }: Json = object(error)
  const words = [error, message, detail, inner].find((u) => typeof u === "string" && u !== "")
  const fallback = isJson(error) && Object.keys(error).length > 0 ? JSON.stringify(error) : ""
  // What a gateway heard from the one behind it.
  const behind = text(object(metadata).raw)
  const said = scrub((text(words) || fallback) + (behind === "" ? "" : `: ${behind}`)) || "no message"
  const delay = list(details).map((detail) => text(object(detail).retryDelay)).find((delay) => delay !== "")
  return {
    message: said,
    codes: [code, type, object(innererror).code].filter((u) =>
      (typeof u === "string" && u !== "") || typeof u === "number"
    ).map((u) => scrub(String(u))),
    wait: (/^(\d+(?:\.\d+)?)s$/.exec(delay ?? "") ?? /try again in (\d+(?:\.\d+)?)s\b/i.exec(said))?.[1]
  }
}

const classify = (answered: number, error: ServerError, headers: Headers, url: string): AiError.AiErrorReason => {
  const named = error.codes.map(Number).find((code) => code >= 400 && code < 600)
  const status = answered === 200 ? named ?? 200 : answered
  const is = (pattern: RegExp) => error.codes.some((code) => pattern.test(code))
  const [code] = error.codes
  const description = `${error.message}${code === undefined || code === String(status) ? "" : ` [${code}]`}${
    status === 200 ? "" : ` (HTTP ${status})`
  }`
  const metadata = { openaiCompatible: { message: error.message } }
  const waits = waiting(status, headers)
  // What the server calls it says more than its status.
  if (status === 402 || is(/insufficient_quota|billing|credit/)) return new AiError.QuotaExhaustedError({ metadata })
  if (is(/content_filter|content_policy|moderation|ResponsibleAI/) || (status === 403 && flagged.test(error.message))) {
    return new AiError.ContentPolicyError({ description })
  }
  if (status === 401 || is(/invalid_api_key|authentication/)) {
    return new AiError.AuthenticationError({ kind: "InvalidKey", description })
  }
  if (status === 403 || is(/permission/)) {
    return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description })
  }
  if (
    status === 413 || is(/context_length|too_many_prompt_tokens/) || /request too large/i.test(error.message) ||
    ((status === 400 || status === 422 || status === 200) && tooLong.test(error.message))
  ) return new AiError.InvalidRequestError({ description: `${description}: the transcript is too long for the model` })
  if (is(/invalid_request|model_not_found/)) {
    return new AiError.InvalidRequestError({ description: withHint(description, status, url) })
  }
  if (status === 429 || is(/rate_limit/)) {
    const retryAfter = RetryAfter.ofHeaders(headers) ?? RetryAfter.ofHeaders({ "retry-after": error.wait })
    // What is used up for the day does not come back while somebody waits.
    if (retryAfter === undefined && /per.?day|daily/i.test(error.message)) {
      return new AiError.QuotaExhaustedError({ metadata })
    }
    return new AiError.RateLimitError({ metadata, ...waits, ...(retryAfter === undefined ? {} : { retryAfter }) })
  }
  // 408 and 409 mean another try, as 5xx do; an error without a status is the server's own.
  return status >= 500 || status === 408 || status === 409 || status === 200
    ? new AiError.InternalProviderError({ description, ...waits })
    : new AiError.InvalidRequestError({ description: withHint(description, status, url) })
}

const flagged = /flagged|moderat|usage guidelines|content policy/i

const tooLong =
  /context.?(?:length|window|size)|max(?:imum)? (?:context|prompt)|(?:prompt|input|messages) (?:is |are )?too (?:long|large)|too many (?:prompt |input )?tokens|reduce the length|exceed\w* .{0,40}context/i

const withHint = (description: string, status: number, url: string): string =>
  status === 404 ? `${description}: check the model's name and the base URL (${url})` : description

/** The headers that say how long to wait, where they do: of a server that is busy there is no other place for them. */
const waiting = (status: number, headers: Headers): { readonly http?: typeof AiError.HttpContext.Type } => {
  if (RetryAfter.ofHeaders(headers, 0) === undefined) return {}
  const shown: { [name: string]: string } = {}
  for (const name of ["retry-after-ms", "retry-after", "date"]) {
    const value = headers[name]
    if (value !== undefined) shown[name] = value
  }
  return { http: { response: { status, headers: shown } } }
}

const causeOf = (u: unknown): string | undefined => {
  if (!(u instanceof Error)) return undefined
  const inner = causeOf(u.cause)
  return inner ?? (u.message === "" ? ("code" in u ? String(u.code) : u.name) : u.message)
}
