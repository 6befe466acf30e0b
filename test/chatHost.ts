/**
 * What does a Chat Completions server say, and what was it asked? A server in this process, for the tests of its client.
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Provider from "toolfold/Provider"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as Tool from "toolfold/Tool"

export type Answer = Response | ((request: HttpClientRequest.HttpClientRequest) => HttpClientError.HttpClientError)

export interface Asked extends Partial<Provider.Request> {
  readonly model?: Partial<OpenAiCompatible.Options>
  /** Nobody listens, so no stream is asked for. */
  readonly plain?: boolean
}

export const hi = Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" })] })

/** A server in this process that gives these answers, and the texts of what it was sent. */
export const host = (answer: () => Answer) => {
  const sent: Array<string> = []
  const client = HttpClient.make((request) =>
    Effect.suspend(() => {
      sent.push(request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "")
      const given = answer()
      return given instanceof Response
        ? Effect.succeed(HttpClientResponse.fromWeb(request, given))
        : Effect.fail(given(request))
    })
  )
  const model = (options: Partial<OpenAiCompatible.Options> = {}) =>
    OpenAiCompatible.layer({ model: "m", baseUrl: "http://host/v1", ...options }).pipe(
      Layer.provide(Layer.succeed(HttpClient.HttpClient)(client))
    )
  return { sent, model }
}

/** Asks a server in this process once: what it was sent, what was shown of its answer, and the reply. */
export const ask = (answer: Answer, { model, plain = false, ...request }: Asked = {}) => {
  const server = host(() => answer)
  const shown: Array<Provider.Delta> = []
  const sink = (deltas: ReadonlyArray<Provider.Delta>) => Effect.sync(() => void shown.push(...deltas))
  return Effect.gen(function*() {
    const ask = Provider.askOf(yield* LanguageModel.LanguageModel)
    const asked: Provider.Request = { messages: [hi], table: Tool.table([]), toolChoice: "auto", ...request }
    const reply = yield* ask(asked, plain ? undefined : sink)
    const text = reply.content.map((part) => part.type === "text" ? part.text : "").join("")
    const calls = reply.content.flatMap((part) => part.type === "tool-call" ? [[part.id, part.name, part.params]] : [])
    const body: any = JSON.parse(server.sent[0] ?? "null")
    return { reply, text, calls, shown, body }
  }).pipe(Effect.provide(server.model(model)))
}

/** The error of such a question. */
export const failed = (answer: Answer, asked?: Asked) =>
  Effect.map(Effect.flip(ask(answer, asked)), ({ reason }) => reason)

export const respond = (body: BodyInit, type: string | undefined, status = 200) => {
  const response = new Response(body, { status })
  response.headers.delete("content-type")
  if (type !== undefined) response.headers.set("content-type", type)
  return response
}
export const json = (body: unknown, status = 200) => respond(JSON.stringify(body), "application/json", status)
export const lines = (...events: ReadonlyArray<unknown>) =>
  events.map((event) => `${typeof event === "string" ? event : `data: ${JSON.stringify(event)}`}\n\n`).join("")
export const sse = (...events: ReadonlyArray<unknown>) => respond(lines(...events), "text/event-stream")

export const whole = (message: object, finish_reason = "stop") => ({ choices: [{ message, finish_reason }] })
export const chunk = (delta: object, finish_reason: string | null = null) => ({ choices: [{ delta, finish_reason }] })
export const call = (args: string, more: object = {}, name = "get") => ({
  ...more,
  function: { name, arguments: args }
})
export const done = "data: [DONE]"
