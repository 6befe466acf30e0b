// Where is the recorded traffic, and what is in one exchange of it?
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** Where the recordings are; they are not part of the project. */
export const root = process.env.TOOLFOLD_DATA ?? join(dirname(dirname(import.meta.dirname)), "../shared/data")

export type Api = "anthropic" | "gemini" | "openai-chat" | "openai-responses"
export const apis: ReadonlyArray<Api> = ["anthropic", "gemini", "openai-responses", "openai-chat"]

export type Json = { readonly [key: string]: unknown }

export const object = (u: unknown): Json => typeof u === "object" && u !== null && !Array.isArray(u) ? u as Json : {}
export const list = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []
export const text = (u: unknown): string => typeof u === "string" ? u : ""

/** One request and its answer, as they were recorded. */
export interface Exchange {
  readonly api: Api
  readonly file: string
  /** Where the server was; empty where that is not known. */
  readonly host: string
  readonly model: string
  readonly status: number
  readonly streamed: boolean
  readonly request: Json
  readonly headers: { readonly [name: string]: string }
  /** What came: JSON, or the text of a stream. */
  readonly body?: unknown
  readonly text?: string
}

/** A whole agent loop: its exchanges, in order. */
export interface Loop {
  readonly sequence: string
  readonly api: Api
  readonly files: ReadonlyArray<string>
  readonly stream: boolean
}

interface Row {
  readonly file: string
  readonly api: Api
  readonly host: string | null
  readonly model: string | null
  readonly status: number
  readonly stream: boolean
}

interface Recorded {
  readonly model?: string
  readonly status: number
  readonly request: { readonly body: Json } | null
  readonly response: {
    readonly headers?: { readonly [name: string]: string }
    readonly body?: unknown
    readonly text?: string
  }
}

const read = <A>(file: string): A => JSON.parse(readFileSync(join(root, "traffic", file), "utf8"))

/** All exchanges and loops, or nothing where there is no data. */
export const load = () => {
  if (!existsSync(join(root, "traffic/loops.json"))) return undefined
  const rows = new Map(read<ReadonlyArray<Row>>("index.json").map((row) => [row.file, row]))
  const exchange = (file: string): Exchange => {
    const row = rows.get(file)
    if (row === undefined) throw new Error(`the index has no ${file}`)
    const { api, host, model, status, stream } = row
    const { request, response } = read<Recorded>(file)
    return {
      api,
      file,
      host: host ?? "",
      model: text(request?.body.model) || model || "recorded",
      status,
      streamed: stream,
      request: request?.body ?? {},
      headers: response.headers ?? {},
      ...("body" in response ? { body: response.body } : {}),
      ...("text" in response ? { text: response.text } : {})
    }
  }
  return {
    files: [...rows.keys()],
    exchange,
    loops: read<ReadonlyArray<Loop>>("loops.json"),
    errors: read<ReadonlyArray<Json>>("errors-synthetic.json")
  }
}

/** The events of a stream, as JSON. */
export const events = (stream: string): ReadonlyArray<Json> =>
  stream.split("\n").filter((line) => /^\s*data:/.test(line) && !line.includes("[DONE]")).map((line) =>
    object(JSON.parse(line.slice(line.indexOf(":") + 1)))
  )

/** The same value with its keys in order. */
export const canonical = (u: unknown): unknown =>
  Array.isArray(u)
    ? u.map(canonical)
    : typeof u === "object" && u !== null
    ? Object.fromEntries(Object.entries(u).sort().map(([key, value]) => [key, canonical(value)]))
    : u
