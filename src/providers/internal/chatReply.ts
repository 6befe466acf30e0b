/**
 * What did a Chat Completions server say? One message, whole or in pieces, as parts of a transcript.
 *
 * Servers that call themselves compatible differ: ids may be missing, fresh in every piece, or numbers; indexes missing or
 * repeated; content may be a list; and what a model thought has several names. All of it is read here by hand, where the
 * bytes arrive.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Provider from "../../Provider.ts"
import * as Calls from "./chatCalls.ts"
import { type Json, list, object, text } from "./json.ts"

/** Collects what a server sends; each step gives what it adds to the answer. */
export interface Reader {
  readonly whole: (answer: Json) => Array<Provider.Delta>
  readonly piece: (chunk: Json) => Array<Provider.Delta>
  /** The server says that it is done, which some do instead of giving a reason. */
  readonly end: () => void
  /** Whether there is an answer, and the server said in one way or the other that it is complete. */
  readonly finished: () => boolean
  readonly reply: () => Provider.Reply
}

const thoughts = ["reasoning_content", "reasoning"] as const

/** A reader for one answer; `idPrefix` makes the ids that a server leaves out. */
export const make = (idPrefix: string): Reader => {
  let said = ""
  let thought = ""
  let field: string | undefined
  let refused = false
  let finish = ""
  let ended = false
  let answered = false
  let usage: Json = {}
  const details: Array<unknown> = []
  const calls = Calls.make()

  const take = (chunk: Json, message: (choice: Json) => Json, readCalls: (calls: ReadonlyArray<unknown>) => void) => {
    const deltas: Array<Provider.Delta> = []
    if (Object.keys(object(chunk.usage)).length > 0) usage = object(chunk.usage)
    const choice = list(chunk.choices).map(object).find(({ index }) =>
      index === undefined || index === null || index === 0
    )
    if (choice === undefined) return deltas
    answered = true
    finish = text(choice.finish_reason) || finish
    const { content, reasoning_details, refusal, tool_calls, ...rest } = message(choice)
    const spoken = contentOf(content)
    const named = thoughts.find((name) => text(rest[name]) !== "")
    field ??= named
    refused ||= text(refusal) !== ""
    for (
      const [type, delta] of [
        ["reasoning", (named === undefined ? "" : text(rest[named])) + spoken.thought],
        ["text", spoken.said + text(refusal)]
      ] as const
    ) if (delta !== "") deltas.push({ type, delta })
    for (const { delta, type } of deltas) {
      if (type === "text") said += delta
      else thought += delta
    }
    for (const detail of list(reasoning_details)) details.push(detail)
    readCalls(list(tool_calls))
    return deltas
  }

  return {
    whole: (answer) => take(answer, (choice) => object(choice.message ?? choice.delta), calls.whole),
    piece: (chunk) => take(chunk, (choice) => object(choice.delta ?? choice.message), calls.piece),
    end: () => {
      ended = true
    },
    finished: () => answered && (ended || finish !== ""),
    reply: () => ({
      content: [
        ...(thought === "" && details.length === 0 ? [] : [reasoningPart(thought, field, details)]),
        ...(said === "" ? [] : [Prompt.makePart("text", { text: said })]),
        ...calls.all().map((call, at) =>
          Prompt.makePart("tool-call", {
            id: call.id === "" ? `${idPrefix}_${at}` : call.id,
            name: call.name,
            params: call.args,
            providerExecuted: false
          })
        )
      ],
      finish: refused ? "content-filter" : finishOf(finish),
      usage: usageOf(usage)
    })
  }
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

// A host that has a thinking model goes on from its thoughts wants them back as they came, under the name they came by.
const reasoningPart = (
  thought: string,
  field: string | undefined,
  details: ReadonlyArray<unknown>
): Prompt.ReasoningPart => {
  const back = {
    ...(field === undefined ? {} : { [field]: thought }),
    ...(details.length === 0 ? {} : { reasoning_details: joined(details) })
  }
  return Prompt.makePart("reasoning", {
    text: thought,
    // What came as JSON goes back as JSON.
    options: (Object.keys(back).length === 0 ? {} : { openaiCompatible: back }) as Prompt.ReasoningPart["options"]
  })
}

// Details of one index arrive in pieces; the text of pieces is one text.
const joined = (details: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const out: Array<Json> = []
  for (const detail of details.map(object)) {
    const last = out.at(-1)
    if (last === undefined || last.type !== detail.type || last.index !== detail.index) out.push(detail)
    else {
      out[out.length - 1] = {
        ...last,
        ...detail,
        ...joinedText(last, detail, "text"),
        ...joinedText(last, detail, "summary")
      }
    }
  }
  return out
}

const joinedText = (one: Json, other: Json, key: string): Json =>
  key in one || key in other ? { [key]: text(one[key]) + text(other[key]) } : {}

const finishes = new Map<string, Provider.Reply["finish"]>([
  ["", "unknown"],
  ["stop", "stop"],
  ["eos", "stop"],
  ["length", "length"],
  ["model_length", "length"],
  ["content_filter", "content-filter"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["error", "error"]
])

const finishOf = (finish: string): Provider.Reply["finish"] => finishes.get(finish) ?? "other"

const count = (u: unknown): number | undefined =>
  typeof u === "number" && Number.isFinite(u) && u >= 0 ? Math.trunc(u) : undefined

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

/** JSON that is an object, if a text is that. */
export const parse = (body: string): Json | undefined => {
  const result = Result.try((): unknown => JSON.parse(body))
  return Result.isSuccess(result) && typeof result.success === "object" && result.success !== null
    ? object(result.success)
    : undefined
}
