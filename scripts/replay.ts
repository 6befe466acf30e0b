// Does a recorded agent loop end as it was recorded? A local server answers as the recording did, and the loop must make
// the same calls, send the same results, and end with the same text.
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import * as AgentLoop from "toolfold/AgentLoop"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { type Message, type Recorded, recordedAnswer, toJsonAnswer, toPrompt, toStream } from "./recording.ts"
import * as Rules from "./traffic/rules.ts"

export interface Loop {
  readonly sequence: string
  readonly api: string
  readonly files: ReadonlyArray<string>
}

/** Where the recordings are; they are not part of the project. */
export const root = process.env.TOOLFOLD_DATA ?? join(dirname(import.meta.dirname), "../shared/data")

const read = <A>(file: string): A => JSON.parse(readFileSync(join(root, "traffic", file), "utf8"))

/** The recorded loops of Chat Completions, or nothing where there is no data. */
export const loops = (): ReadonlyArray<Loop> | undefined =>
  existsSync(join(root, "traffic/loops.json"))
    ? read<ReadonlyArray<Loop>>("loops.json").filter((loop) => loop.api === "openai-chat")
    : undefined

/** A server that answers as recorded; `play` gives what a loop did otherwise, or nothing. */
export interface Replay {
  readonly play: (loop: Loop, streamed: boolean) => Promise<string | undefined>
  readonly close: () => void
}

export const serve = async (): Promise<Replay> => {
  let answers: Array<Recorded> = []
  let streamed = false
  const requests: Array<{ readonly messages: ReadonlyArray<Message>; readonly [field: string]: unknown }> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => {
      body += chunk
    })
    request.on("end", () => {
      requests.push(JSON.parse(body))
      const next = answers.shift()
      const [type, text] = next === undefined
        ? ["application/json", JSON.stringify({ error: { message: "the recording has no further answer" } })]
        : streamed
        ? ["text/event-stream", toStream(next)]
        : ["application/json", JSON.stringify(toJsonAnswer(next))]
      response.writeHead(next?.status ?? 500, { "content-type": type }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`

  const play = Effect.fnUntraced(function*(loop: Loop, mode: boolean) {
    const records = loop.files.map((file) => read<Recorded>(file))
    const first = records[0]?.request?.body
    if (first === undefined) return "the recording has no request"
    answers = records.slice()
    streamed = mode
    requests.length = 0
    const { handlers, kit } = toolsOf(records)
    const agent = AgentLoop.make(loop.sequence, {
      maxTurns: records.length,
      maxRepeats: Infinity,
      concurrency: "sequential"
    })
    const messages = toPrompt(first.messages)
    const result = yield* AgentLoop.run(agent, streamed ? { messages, onText: () => undefined } : { messages }).pipe(
      Effect.provide(ToolRegistry.fromToolkit(kit)),
      Effect.provide(kit.toLayer(handlers)),
      Effect.provide(OpenAiCompatible.layer({ model: first.model ?? "recorded", baseUrl })),
      Effect.provide(FetchHttpClient.layer)
    )
    const [broken] = requests.flatMap((request) => Rules.problems("openai-chat", request))
    return broken ?? difference(result, records, requests.at(-1)?.messages ?? [])
  }, Effect.catchCause((cause) => Effect.succeed(String(cause).slice(0, 300))))

  return {
    play: (loop, mode) => Effect.runPromise(play(loop, mode)),
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

/** The tools that were offered, which give the results that were recorded. */
const toolsOf = (records: ReadonlyArray<Recorded>) => {
  const results = new Map<string, string>()
  for (const { request } of records) {
    for (const message of request?.body.messages ?? []) {
      if (message.role === "tool") results.set(String(message.tool_call_id), String(message.content))
    }
  }
  const tools = (records[0]?.request?.body.tools ?? []).map(({ function: { description, name, parameters } }) =>
    WireTool.dynamic(name, { description, parameters: { type: "object", ...parameters } })
  )
  const handler = (_input: unknown, { toolCallId }: { readonly toolCallId?: string | undefined }) =>
    Effect.sync(() => results.get(toolCallId ?? "") ?? `nothing recorded for ${toolCallId}`)
  return { kit: Toolkit.make(...tools), handlers: Object.fromEntries(tools.map(({ name }) => [name, handler])) }
}

/** What a run did otherwise than the recording. */
const difference = (
  result: AgentLoop.Result,
  records: ReadonlyArray<Recorded>,
  sent: ReadonlyArray<Message>
): string | undefined => {
  const expected = records.map(recordedAnswer)
  if (result._tag !== "Completed") {
    return `ended as ${result._tag} after ${result.turns.length} of ${records.length} turns`
  }
  const compared: ReadonlyArray<readonly [string, unknown, unknown]> = [
    ["text", result.text, expected.at(-1)?.text],
    ["calls", result.turns.map((turn) => turn.calls.map(asCall)), expected.map((turn) => turn.calls.map(asCall))],
    ["results", resultsIn(sent), resultsIn(records.at(-1)?.request?.body.messages ?? [])]
  ]
  for (const [what, made, recorded] of compared) {
    const [one, other] = [made, recorded].map((value) => JSON.stringify(value)?.slice(0, 200))
    if (JSON.stringify(made) !== JSON.stringify(recorded)) return `${what} ${one}, recorded ${other}`
  }
  return undefined
}

const asCall = ({ input, name }: { readonly name: string; readonly input?: unknown }) => [name, canonical(input)]

const resultsIn = (messages: ReadonlyArray<Message>) =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => content)

const canonical = (u: unknown): unknown =>
  Array.isArray(u)
    ? u.map(canonical)
    : typeof u === "object" && u !== null
    ? Object.fromEntries(Object.entries(u).sort().map(([key, value]) => [key, canonical(value)]))
    : u
