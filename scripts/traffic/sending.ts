// What do we send where a recorded conversation is asked again? The request's own messages, tools, choice and settings in
// our words, to a server that has the recorded one's rules.
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Provider from "toolfold/Provider"
import * as Tool from "toolfold/Tool"
import * as Asked from "./asked.ts"
import { type Api, type Exchange, type Json, object, text } from "./data.ts"
import type { Chat, Host } from "./host.ts"

/** The body that was sent, or why none was. */
export const send = (host: Host, exchange: Exchange): Promise<Json | string> => {
  const { api, model, request } = exchange
  const streamed = request.stream === true || exchange.streamed
  host.say([])
  return Effect.runPromise(
    Effect.gen(function*() {
      const entry = Provider.askOf(yield* LanguageModel.LanguageModel)
      const whole: Provider.Request = {
        messages: Asked.transcript(api, request),
        table: Tool.table(Asked.tools(api, request)),
        toolChoice: choiceOf(api, request),
        ...(api === "openai-chat" ? { format: formatOf(request), settings: settingsOf(request) } : {})
      }
      const reply = yield* Effect.result(streamed ? entry(whole, () => Effect.void) : entry(whole))
      return host.sent[0] ?? (Result.isFailure(reply) ? String(reply.failure) : "nothing was sent")
    }).pipe(
      Effect.provide(host.model(api, model, chatOf(exchange))),
      Effect.catchCause((cause) => Effect.succeed(String(cause).slice(0, 300)))
    )
  )
}

/** What our own client is told of the server and of fields that have no setting. */
export const chatOf = ({ api, host, request }: Exchange): Chat =>
  api === "openai-chat" ? { rulesOf: host || undefined, body: furtherOf(request) } : {}

/** Whether and what the model must call. */
export const choiceOf = (api: Api, request: Json): Provider.Request["toolChoice"] => {
  const choice = request.tool_choice
  if (api !== "openai-chat") return "auto"
  if (choice === "required" || choice === "any") return "required"
  const name = text(object(object(choice).function).name)
  return name === "" ? "auto" : { tool: name }
}

/** The settings that the loop has words for. */
export const settingsOf = (request: Json): Provider.Settings => {
  const { max_completion_tokens, max_tokens, reasoning_effort, seed, stop, temperature, top_p } = request
  const said = {
    temperature,
    topP: top_p,
    maxTokens: max_completion_tokens ?? max_tokens,
    seed,
    stop: typeof stop === "string" ? [stop] : stop,
    effort: reasoning_effort
  }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined))
}

const formatOf = (request: Json): Provider.Request["format"] => {
  const { name, schema } = object(object(request.response_format).json_schema)
  return schema === undefined ? undefined : { name: text(name), schema: object(schema) }
}

const inOurWords = new Set(
  "model messages tools tool_choice stream stream_options temperature top_p seed stop max_tokens max_completion_tokens reasoning_effort"
    .split(" ")
)

const furtherOf = (request: Json): Json =>
  Object.fromEntries(
    Object.entries(request).filter(([field, value]) =>
      !inOurWords.has(field) && !(field === "response_format" && formatOf({ response_format: value }) !== undefined)
    )
  )
