/**
 * What becomes of what a model thought? It is kept in the options of its part, as it came, and goes back in the way that
 * the server wants it, since some refuse a transcript without it and others one with it.
 */
import * as Prompt from "effect/ai/Prompt"
import type { Traits } from "./chatTraits.ts"
import { isJson, type Json, list, object, text } from "./json.ts"

const key = "openaiCompatible"

// What came as JSON goes back as JSON.
const options = (kept: Json): Prompt.ProviderOptions =>
  (Object.keys(kept).length === 0 ? {} : { [key]: kept }) as Prompt.ProviderOptions

/** The names that servers have for what a model thought. */
export const names = ["reasoning_content", "reasoning"] as const

/** What came of thoughts in one answer. */
export interface Came {
  readonly text: string
  /** The name that they came by. */
  readonly field: string | undefined
  /** Whether they came in the content. */
  readonly inContent: boolean
  /** Parts that the server signed. */
  readonly details: ReadonlyArray<unknown>
}

export const part = ({ details, field, inContent, text }: Came): Prompt.ReasoningPart =>
  Prompt.makePart("reasoning", {
    text,
    options: options({
      ...(field === undefined ? {} : { [field]: text }),
      ...(inContent ? { thinking: true } : {}),
      ...(details.length === 0 ? {} : { reasoning_details: joined(details) })
    })
  })

/** A call with what the server hung on it, such as a signature. */
export const callOptions = (extra: unknown): Prompt.ProviderOptions =>
  options(isJson(extra) ? { extra_content: extra } : {})

/** What goes back with a call. */
export const ofCall = (part: Prompt.ToolCallPart, { thoughts }: Traits): Json => {
  const { extra_content } = object(part.options[key])
  return thoughts === "as-came" && extra_content !== undefined ? { extra_content } : {}
}

/** What goes back with a message: fields of its own, or the beginning of its content. */
export interface Back {
  readonly fields: Json
  readonly content: ReadonlyArray<Json>
}

const nothing: Back = { fields: {}, content: [] }

export const back = (parts: ReadonlyArray<Prompt.AssistantMessagePart>, { thoughts }: Traits): Back => {
  if (thoughts === "none") return nothing
  const thinking = parts.filter((part) => part.type === "reasoning")
  const { reasoning_details, thinking: inContent, ...named } = thinking.reduce<Json>(
    (all, { options }) => ({ ...all, ...object(options[key]) }),
    {}
  )
  const said = thinking.map(({ text }) => text).join("")
  if (thoughts === "reasoning_content") {
    // Where a model thinks between its calls, a message with calls and without a thought is refused.
    const isNeeded = said !== "" || parts.some(({ type }) => type === "tool-call")
    return isNeeded ? { fields: { reasoning_content: said }, content: [] } : nothing
  }
  if (inContent === true) {
    const content = [{ type: "thinking", thinking: [{ type: "text", text: said }] }]
    return thoughts === "reasoning" ? nothing : { fields: {}, content }
  }
  if (thoughts === "content") return nothing
  // Details hold the text, too.
  if (reasoning_details !== undefined) return { fields: { reasoning_details }, content: [] }
  if (thoughts === "as-came") return { fields: named, content: [] }
  const own = names.map((name) => text(named[name])).find((thought) => thought !== "")
  return own === undefined ? nothing : { fields: { reasoning: own }, content: [] }
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
        ...joinedText(last, detail, "summary"),
        ...joinedText(last, detail, "data")
      }
    }
  }
  return out
}

const joinedText = (one: Json, other: Json, name: string): Json =>
  name in one || name in other ? { [name]: text(one[name]) + text(other[name]) } : {}

/** What a content holds that may be a text or a list of parts. */
export const ofContent = (content: unknown): { readonly said: string; readonly thought: string } => {
  if (typeof content === "string") return { said: content, thought: "" }
  let said = ""
  let thought = ""
  for (const part of list(content).map(object)) {
    if (part.type !== "thinking") said += text(part.text)
    else {
      thought += typeof part.thinking === "string"
        ? part.thinking
        : list(part.thinking).map((piece) => text(object(piece).text)).join("")
    }
  }
  return { said, thought }
}
