/**
 * What did a Chat Completions server say? One message, whole or in pieces, as parts of a transcript.
 *
 * Servers that call themselves compatible differ: ids may be missing or numbers, indexes missing or repeated, content
 * may be a list, and what a model thought has several names. All of it is read here by hand, where the bytes arrive.
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Provider from "../../Provider.ts"

type Json = { readonly [key: string]: unknown }

const isJson = (u: unknown): u is Json => typeof u === "object" && u !== null && !Array.isArray(u)
const object = (u: unknown): Json => isJson(u) ? u : {}
const list = (u: unknown): ReadonlyArray<unknown> => Array.isArray(u) ? u : []
const text = (u: unknown): string => typeof u === "string" ? u : ""
const count = (u: unknown): number | undefined =>
  typeof u === "number" && Number.isFinite(u) && u >= 0 ? Math.trunc(u) : undefined

/** Collects what a server sends, a piece at a time; a whole message is one piece. */
export interface Reader {
  /** Reads one piece, and gives what it adds to the answer. */
  readonly read: (piece: Json) => Array<Provider.Delta>
  readonly reply: () => Provider.Reply
  /** The server says that it is done, which some do instead of giving a reason. */
  readonly end: () => void
  /** Whether the server said that it was done, in one way or the other. */
  readonly finished: () => boolean
}

interface Call {
  readonly index: unknown
  id: string
  name: string
  args: string
}

/** A reader for one answer; `idPrefix` makes the ids that a server leaves out. */
export const make = (idPrefix: string): Reader => {
  let said = ""
  let thought = ""
  let refused = ""
  let finish: unknown
  let ended = false
  let usage: Json = {}
  const details: Array<unknown> = []
  const calls: Array<Call> = []

  const callFor = (piece: Json, id: string, name: string): Call => {
    const index = piece.index
    const open = typeof index === "number" ? calls.findLast((call) => call.index === index) : calls.at(-1)
    const another = open === undefined || (id !== "" && open.id !== "" && open.id !== id) ||
      (id === "" && name !== "" && open.name !== "" && typeof index !== "number" && isWhole(open.args))
    if (!another) return open
    const call: Call = { index, id: "", name: "", args: "" }
    calls.push(call)
    return call
  }

  const readCall = (u: unknown): void => {
    const piece = object(u)
    const id = typeof piece.id === "number" ? String(piece.id) : text(piece.id)
    const called = object(piece.function)
    const name = text(called.name)
    const call = callFor(piece, id, name)
    if (call.id === "") call.id = id
    if (call.name === "") call.name = name
    call.args += typeof called.arguments === "string"
      ? called.arguments
      : isJson(called.arguments)
      ? JSON.stringify(called.arguments)
      : ""
  }

  return {
    read: (piece) => {
      if (isJson(piece.usage)) usage = piece.usage
      const choice = object(list(piece.choices)[0])
      const message = object(choice.message ?? choice.delta)
      const deltas: Array<Provider.Delta> = []
      const spoken = contentOf(message.content)
      const reasoning = (text(message.reasoning) || text(message.reasoning_content)) + spoken.thought
      if (reasoning !== "") deltas.push({ type: "reasoning", delta: reasoning })
      if (spoken.said !== "") deltas.push({ type: "text", delta: spoken.said })
      thought += reasoning
      said += spoken.said
      refused += text(message.refusal)
      details.push(...list(message.reasoning_details))
      list(message.tool_calls).forEach(readCall)
      finish = choice.finish_reason ?? finish
      return deltas
    },
    end: () => {
      ended = true
    },
    finished: () => ended || (finish !== undefined && finish !== null),
    reply: () => ({
      content: [
        ...(thought === "" && details.length === 0 ? [] : [reasoningPart(thought, details)]),
        ...(said === "" && refused === "" ? [] : [Prompt.makePart("text", { text: said === "" ? refused : said })]),
        ...calls.map((call, at) =>
          Prompt.makePart("tool-call", {
            id: call.id === "" ? `${idPrefix}_${at}` : call.id,
            name: call.name,
            params: call.args,
            providerExecuted: false
          })
        )
      ],
      finish: refused !== "" && said === "" ? "content-filter" : finishOf(finish),
      usage: usageOf(usage)
    })
  }
}

const isWhole = (args: string): boolean => {
  let depth = 0
  for (const char of args) depth += char === "{" ? 1 : char === "}" ? -1 : 0
  return args.trim().endsWith("}") && depth === 0
}

const contentOf = (content: unknown): { readonly said: string; readonly thought: string } => {
  if (typeof content === "string") return { said: content, thought: "" }
  let said = ""
  let thought = ""
  for (const part of list(content).map(object)) {
    if (part.type === "thinking") thought += list(part.thinking).map((piece) => text(object(piece).text)).join("")
    else said += text(part.text)
  }
  return { said, thought }
}

const reasoningPart = (thought: string, details: ReadonlyArray<unknown>): Prompt.ReasoningPart =>
  Prompt.makePart("reasoning", {
    text: thought,
    // What came as JSON goes back as JSON.
    options: details.length === 0
      ? {}
      : { openaiCompatible: { reasoning_details: joined(details) } } as Prompt.ReasoningPart["options"]
  })

// Details of one index arrive in pieces; the text of pieces is one text.
const joined = (details: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const out: Array<Json> = []
  for (const detail of details.map(object)) {
    const last = out.at(-1)
    if (last === undefined || last.type !== detail.type || last.index !== detail.index) out.push(detail)
    else {out[out.length - 1] = {
        ...last,
        ...detail,
        ...joinedText(last, detail, "text"),
        ...joinedText(last, detail, "summary")
      }}
  }
  return out
}

const joinedText = (one: Json, other: Json, key: string): Json =>
  key in one || key in other ? { [key]: text(one[key]) + text(other[key]) } : {}

const finishes: { readonly [reason: string]: Provider.Reply["finish"] } = {
  stop: "stop",
  eos: "stop",
  length: "length",
  model_length: "length",
  content_filter: "content-filter",
  tool_calls: "tool-calls",
  function_call: "tool-calls",
  error: "error"
}

const finishOf = (finish: unknown): Provider.Reply["finish"] =>
  typeof finish !== "string" ? "unknown" : Object.hasOwn(finishes, finish) ? finishes[finish] ?? "other" : "other"

const usageOf = (usage: Json): Provider.Reply["usage"] => {
  const total = count(usage.prompt_tokens)
  const cacheRead = count(object(usage.prompt_tokens_details).cached_tokens) ?? count(usage.prompt_cache_hit_tokens)
  const output = count(usage.completion_tokens)
  const reasoning = count(object(usage.completion_tokens_details).reasoning_tokens)
  return {
    inputTokens: {
      uncached: total === undefined ? undefined : Math.max(0, total - (cacheRead ?? 0)),
      total,
      cacheRead,
      cacheWrite: undefined
    },
    outputTokens: {
      total: output,
      text: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
      reasoning
    }
  }
}
