// What does the encoding of requests cost? A run of an agent against a server of Chat Completions, by whom it is asked:
// toolfold's own provider, the AI SDK's, and for the floor of HTTP a loop that posts ready bodies.
import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import * as Cost from "./cost.ts"
import * as Work from "./work.ts"

export interface Server {
  readonly url: string
  readonly tell: (path: string) => Promise<Seen>
}

interface Seen {
  /** The bytes of the bodies of the last run. */
  readonly sizes: ReadonlyArray<number>
  /** The last body. */
  readonly last: { readonly messages: ReadonlyArray<Message>; readonly tools: ReadonlyArray<unknown> }
}

interface Message {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: ReadonlyArray<{ readonly id: string; readonly function: { readonly arguments: string } }>
  readonly tool_call_id?: string
}

/** One who asks. */
export interface Contender {
  readonly define: (turns: number, url: string) => Work.Run | Promise<Work.Run>
}

/** Starts a server; it ends with this process. */
export const start = async (): Promise<Server> => {
  const child = fork(join(import.meta.dirname, "requests", "server.ts"))
  const [port] = await once(child, "message")
  const url = `http://127.0.0.1:${port}`
  return { url, tell: async (path) => (await fetch(`${url}${path}`)).json() }
}

/** Defines a run of so many turns with a call each, does it once, and compares what the server was sent. */
export const checked = async (name: string, server: Server, turns: number) => {
  const { contender }: { readonly contender: Contender } = await import(`./requests/${name}.ts`)
  const run = await contender.define(turns, `${server.url}/v1`)
  await server.tell(`/script?turns=${turns}`)
  const spent = Cost.clock()
  const text = await run()
  const first = spent()
  const { last, sizes } = await server.tell("/seen")
  const [wanted, found] = [conversation(turns), last.messages.map(normal)].map((messages) => JSON.stringify(messages))
  if (text !== Work.answer || last.tools.length !== 1 || sizes.length !== turns + 1 || wanted !== found) {
    throw new Error(`${name}, ${turns} turns: the conversation is another: ${sizes.length} requests, ${text}, ${found}`)
  }
  const bytes = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  return { run, first, units: turns + 1, figures: { [`${turns} bytes`]: bytes } }
}

/** What is the same whoever wrote it. */
const normal = ({ content, role, tool_call_id, tool_calls = [] }: Message) => [
  role,
  typeof content === "string" ? content : "",
  ...tool_calls.flatMap((call) => [call.id, JSON.parse(call.function.arguments)]),
  ...tool_call_id === undefined ? [] : [tool_call_id]
]

const conversation = (turns: number) => messages(turns).map(normal)

/** What the last request of such a run has to say. */
export const messages = (turns: number): ReadonlyArray<Message> => [
  { role: "user", content: Work.question },
  ...Work.script(Work.spec({ turns })).calls.flat().flatMap((id) => [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name: "get_weather", arguments: Work.json } }]
    },
    { role: "tool", tool_call_id: id, content: JSON.stringify(Work.weather({ city: "Paris", days: 3 })) }
  ])
]
