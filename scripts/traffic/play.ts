// Is an exchange understood as it was recorded, and does a loop end as it was? Each gives what is otherwise, or nothing.
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Asked from "./asked.ts"
import { type Api, canonical, type Exchange, type Json, object, text } from "./data.ts"
import { type Answer, answer, type Host } from "./host.ts"
import { said, tokens } from "./said.ts"
import * as Sending from "./sending.ts"

const shown = (u: unknown): string => JSON.stringify(u)?.slice(0, 200) ?? String(u)

const differ = (
  pairs: ReadonlyArray<readonly [what: string, made: unknown, recorded: unknown]>
): string | undefined => {
  const pair = pairs.find(([, made, recorded]) => JSON.stringify(made) !== JSON.stringify(recorded))
  return pair === undefined ? undefined : `${pair[0]} ${shown(pair[1])}, recorded ${shown(pair[2])}`
}

const ask = (host: Host, api: Api, model: string, streamed: boolean, request: Partial<Provider.Request>) => {
  let shown = ""
  const sink: Provider.Sink = (deltas) =>
    Effect.sync(() => {
      for (const { delta, type } of deltas) if (type === "text") shown += delta
    })
  return Effect.gen(function*() {
    const entry = Provider.askOf(yield* LanguageModel.LanguageModel)
    const messages = [Prompt.userMessage({ content: [Prompt.textPart({ text: "go" })] })]
    const whole: Provider.Request = { messages, table: Tool.table([]), toolChoice: "auto", ...request }
    const reply = yield* Effect.result(streamed ? entry(whole, sink) : entry(whole))
    return { reply, shown }
  }).pipe(Effect.provide(host.model(api, model)))
}

/** Asks once and compares what is heard with what was said, or how it fails with its status. */
export const exchange = (host: Host, recorded: Exchange): Promise<string | undefined> => {
  const { api, model, request, status, streamed } = recorded
  host.say([answer(recorded)])
  return Effect.runPromise(
    Effect.gen(function*() {
      const { reply, shown } = yield* ask(host, api, model, streamed, { table: Tool.table(Asked.tools(api, request)) })
      if (status !== 200) {
        return Result.isSuccess(reply)
          ? "an error was heard as an answer"
          : mistyped(reply.failure, status)
      }
      if (Result.isFailure(reply)) return `failed: ${String(reply.failure)}`
      const heard = heardIn(reply.success)
      const expected = said(recorded)
      return differ([
        ["text", heard.text, expected.text],
        ["calls", canonical(heard.calls), canonical(expected.calls)],
        ["shown", streamed ? shown : heard.text, heard.text],
        ["tokens", heard.tokens, tokens(recorded).map((count, at) => count ?? heard.tokens[at])]
      ])
    }).pipe(Effect.catchCause((cause) => Effect.succeed(String(cause).slice(0, 300))))
  )
}

const heardIn = ({ content, usage }: Provider.Reply) => ({
  tokens: [usage.inputTokens.total, usage.outputTokens.total],
  text: content.map((part) => part.type === "text" ? part.text : "").join(""),
  calls: content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted
      ? [[part.name, typeof part.params === "string" ? JSON.parse(part.params || "{}") : part.params]]
      : []
  )
})

const reasons: { readonly [status: number]: ReadonlyArray<AiError.AiErrorReason["_tag"]> } = {
  400: ["InvalidRequestError", "AuthenticationError"],
  401: ["AuthenticationError"],
  403: ["AuthenticationError"],
  404: ["InvalidRequestError"],
  429: ["RateLimitError", "QuotaExhaustedError"]
}

const mistyped = ({ reason }: AiError.AiError, status: number): string | undefined =>
  (reasons[status] ?? ["InternalProviderError"]).includes(reason._tag) ? undefined : `${status} became ${reason._tag}`

/** An error of which it is known whether trying again helps. */
interface Synthetic {
  readonly name: string
  readonly api: Api
  readonly answer: Answer
  readonly streamed: boolean
  readonly retryable: boolean
}

/** An error as it is described in the data; in the middle of a stream it follows what an answer begins with. */
export const synthetic = (described: Json): Synthetic => {
  const { body, endpoint, headers, provider, retryable, sse_tail, status } = described
  const api = provider === "openai" ? "openai-chat" : provider as Api
  return {
    name: `${text(provider)} ${String(status)} ${text(described.note) || shown(body)}`,
    api,
    answer: {
      status: Number(status),
      type: text(object(headers)["content-type"]),
      headers: object(headers) as Answer["headers"],
      text: typeof sse_tail === "string" ? `${begun}${sse_tail}` : JSON.stringify(body)
    },
    streamed: typeof sse_tail === "string" || text(endpoint).startsWith("stream"),
    retryable: retryable === true
  }
}

const begun = [
  { type: "message_start", message: { id: "msg", model: "claude", usage: { input_tokens: 3, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Par" } }
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")

/** Whether such an error says rightly if trying again helps. */
export const error = (host: Host, { answer, api, retryable, streamed }: Synthetic): Promise<string | undefined> => {
  host.say([answer])
  return Effect.runPromise(
    Effect.gen(function*() {
      const { reply } = yield* ask(host, api, "recorded", streamed, {})
      if (Result.isSuccess(reply)) return "an error was heard as an answer"
      const { reason } = reply.failure
      return reason.isRetryable === retryable ? undefined : `${reason._tag}, retryable: ${reason.isRetryable}`
    }).pipe(Effect.catchCause((cause) => Effect.succeed(String(cause).slice(0, 300))))
  )
}

/** Runs a loop whose tools give the recorded results. */
export const loop = (host: Host, name: string, records: ReadonlyArray<Exchange>): Promise<string | undefined> => {
  const [first, last] = [records[0], records.at(-1)]
  if (first === undefined || last === undefined) return Promise.resolve("nothing is recorded")
  const { api, model, request, streamed } = first
  host.say(records.map(answer))
  // A loop that hands over to another agent goes on with that agent's tools.
  const offered = records.flatMap((record) => Asked.tools(api, record.request)).toReversed()
  const tools = [...new Map(offered.map((tool) => [tool.name, tool])).values()].toReversed()
  const given = records.slice(1).flatMap((record) => newResults(api, record, records))
  const queues = Map.groupBy(given, ({ key }) => key)
  const kit = Toolkit.make(...tools)
  const handlers = Object.fromEntries(tools.map((tool) => [
    tool.name,
    (_input: unknown, { toolCallId = "" }: { readonly toolCallId?: string | undefined }) =>
      Effect.sync(() => {
        const queue = queues.get(api === "gemini" ? tool.name : toolCallId)
        return queue === undefined || queue.length === 0 ? `nothing recorded for ${tool.name}` : queue.shift()?.value
      })
  ]))
  const agent = AgentLoop.make(name, {
    maxTurns: records.length,
    maxRepeats: Infinity,
    concurrency: "sequential",
    prepare: ({ turn }) => Effect.succeed(preparedFor(api, records[turn]?.request ?? {}))
  })
  const messages = Asked.transcript(api, request)
  return Effect.runPromise(
    AgentLoop.run(agent, streamed ? { messages, onText: () => undefined } : { messages }).pipe(
      Effect.map((result) => difference(result, records, host)),
      Effect.provide(ToolRegistry.fromToolkit(kit)),
      Effect.provide(kit.toLayer(handlers)),
      Effect.provide(host.model(api, model, Sending.chatOf(first))),
      Effect.catchCause((cause) => Effect.succeed(String(cause).slice(0, 300)))
    )
  )
}

/** Each turn is offered what it was offered in the recording, and asked in the same way. */
const preparedFor = (api: Api, request: Json): AgentLoop.Override => {
  const { effort, ...settings } = api === "openai-chat" ? Sending.settingsOf(request) : {}
  return {
    tools: { names: Asked.tools(api, request).map(({ name }) => name) },
    toolChoice: Sending.choiceOf(api, request),
    settings,
    reasoningEffort: effort
  }
}

/** The results that a request is the first to give back. */
const newResults = (api: Api, record: Exchange, records: ReadonlyArray<Exchange>): ReadonlyArray<Asked.Answered> => {
  const all = Asked.results(api, record.request)
  const before = Asked.results(api, records[records.indexOf(record) - 1]?.request ?? {})
  return before.length <= all.length && JSON.stringify(before) === JSON.stringify(all.slice(0, before.length))
    ? all.slice(before.length)
    : all
}

const difference = (result: AgentLoop.Result, records: ReadonlyArray<Exchange>, host: Host): string | undefined => {
  const expected = records.map(said)
  const api = records[0]?.api ?? "openai-chat"
  const isCutOff = (expected.at(-1)?.calls.length ?? 0) > 0
  if (result._tag !== (isCutOff ? "LimitReached" : "Completed")) {
    return `ended as ${result._tag} after ${result.turns.length} of ${records.length} turns`
  }
  const sent = host.sent.at(-1) ?? {}
  const given = records.slice(1).flatMap((record) => newResults(api, record, records))
  const asBefore = Asked.signatures(api, records[0]?.request ?? {})
  return differ([
    ["text", isCutOff ? "" : result.text, isCutOff ? "" : expected.at(-1)?.text],
    [
      "calls",
      result.turns.map((turn) => turn.calls.map(({ input, name }) => [name, canonical(input)])),
      expected.map(({ calls }) => calls.map(([name, input]) => [name, canonical(input)]))
    ],
    [
      "results",
      canonical(Asked.results(api, sent).slice(-given.length || Infinity).map(value)),
      canonical(given.map(({ value }) => value))
    ],
    [
      "signatures",
      Asked.signatures(api, sent),
      [...asBefore, ...expected.slice(0, -1).flatMap(({ signatures }) => signatures)]
    ]
  ])
}

// Gemini's results are an object in which the client says where the result is.
const value = ({ value }: Asked.Answered): unknown => {
  const { content, name } = object(value)
  return name === undefined ? value : content
}
