// What does a server of Chat Completions say? Its script: a call in each turn, then the answer. A process of its own, so that
// what it costs is not counted; it counts the bytes that it is sent and keeps the last body for whoever asks.
import { createServer, type IncomingMessage } from "node:http"
import * as Work from "../work.ts"

const head = { id: "chatcmpl-1", object: "chat.completion", created: 1, model: "scripted" }
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

const answer = (id: string | undefined): string => {
  const tool_calls = [{ id, type: "function", function: { name: "get_weather", arguments: Work.json } }]
  const message = id === undefined
    ? { role: "assistant", content: Work.answer }
    : { role: "assistant", content: null, tool_calls }
  const finish_reason = id === undefined ? "stop" : "tool_calls"
  return JSON.stringify({ ...head, choices: [{ index: 0, message, finish_reason }], usage })
}

let spec = Work.spec({ turns: 0 })
let turn = 0
let sizes: Array<number> = []
let last: ReadonlyArray<Buffer> = []

const read = async (request: IncomingMessage): Promise<ReadonlyArray<Buffer>> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return chunks
}

const server = createServer(async (request, response) => {
  const chunks = await read(request)
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost")
  response.setHeader("content-type", "application/json")
  if (pathname === "/script") {
    spec = Work.spec({ turns: Number(searchParams.get("turns")) })
    turn = 0
    sizes = []
    response.end("{}")
  } else if (pathname === "/seen") {
    response.end(JSON.stringify({ sizes, last: JSON.parse(Buffer.concat(last).toString()) }))
  } else {
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    // Runs come one after the other, so a request is the turn after the last.
    const [id] = Work.callsOf(spec, turn)
    if (turn === 0) sizes = []
    sizes.push(bytes)
    last = chunks
    turn = id === undefined ? 0 : turn + 1
    response.end(answer(id))
  }
})

server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.send?.(typeof address === "object" ? address?.port : undefined)
})
process.on("disconnect", () => process.exit(0))
