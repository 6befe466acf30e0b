/**
 * How is a transcript written in the Chat Completions protocol? Each message once, in text that is kept, so that a
 * request begins with the same bytes as the one before and costs only what is new.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Arguments from "../../internal/arguments.ts"
import * as Parts from "./chatParts.ts"
import * as Thoughts from "./chatThoughts.ts"
import type { Traits } from "./chatTraits.ts"
import { type Json, write } from "./json.ts"
import * as Names from "./names.ts"

/** A transcript as the inside of a JSON list, and the ids in it. */
export interface Transcript {
  readonly text: string
  readonly ids: Names.Ids
  readonly warnings: ReadonlyArray<string>
}

/** Writes transcripts, with these names of tools. */
export interface Writer {
  (list: ReadonlyArray<Prompt.Message>, names: Names.Names): Transcript
}

interface Written {
  /** The ids and names in it. */
  readonly key: string
  readonly text: string
  readonly warnings: ReadonlyArray<string>
}

interface Growing {
  readonly names: Names.Names
  readonly ids: Names.Ids
  readonly warnings: Array<string>
  text: string
  count: number
}

export const make = (traits: Traits): Writer => {
  const messages = new WeakMap<Prompt.Message, Written>()
  const transcripts = new WeakMap<ReadonlyArray<Prompt.Message>, Growing>()
  const one = (message: Prompt.Message, growing: Growing): Written => {
    const labels = labelsOf(message, growing)
    const key = labels.map((label) => label === undefined ? "" : `${label.id}\n${label.name}`).join("\n")
    const known = messages.get(message)
    if (known?.key === key) return known
    const warnings: Array<string> = []
    const list = writeMessage(message, { labels, traits, warn: (warning) => warnings.push(warning) })
    const written = { key, text: list.map(write).join(","), warnings }
    messages.set(message, written)
    return written
  }
  return (list, names) => {
    const known = transcripts.get(list)
    const growing = known !== undefined && known.names === names && known.count <= list.length
      ? known
      : { names, ids: Names.ids(traits.ids), warnings: [], text: "", count: 0 }
    // One that cannot be written leaves nothing half done behind.
    transcripts.delete(list)
    for (const message of list.slice(growing.count)) {
      const { text, warnings } = one(message, growing)
      if (text !== "") growing.text += growing.text === "" ? text : `,${text}`
      growing.warnings.push(...warnings)
    }
    growing.count = list.length
    transcripts.set(list, growing)
    return growing
  }
}

interface Label {
  readonly id: string
  readonly name: string
}

interface Context {
  readonly labels: ReadonlyArray<Label | undefined>
  readonly traits: Traits
  readonly warn: (warning: string) => void
}

const none: ReadonlyArray<undefined> = []

// A call takes an id before its result asks for it, so parts are labelled in order.
const labelsOf = (message: Prompt.Message, { ids, names }: Growing): Context["labels"] =>
  message.role === "assistant" || message.role === "tool"
    ? message.content.map((part) =>
      part.type === "tool-call"
        ? { id: ids.call(part.id), name: names.to(part.name) }
        : part.type === "tool-result"
        ? { id: ids.result(part.id), name: names.to(part.name) }
        : undefined
    )
    : none

const writeMessage = (message: Prompt.Message, context: Context): ReadonlyArray<Json> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return message.content.length === 0
        ? []
        : [{ role: "user", content: Parts.writeShown(message.content, context.traits, context.warn) }]
    case "assistant":
      return writeAssistant(message.content, context)
    case "tool":
      return writeResults(message.content, context)
  }
}

const writeAssistant = (
  content: ReadonlyArray<Prompt.AssistantMessagePart>,
  { labels, traits, warn }: Context
): ReadonlyArray<Json> => {
  let text = ""
  const calls: Array<Json> = []
  content.forEach((part, at) => {
    const label = labels[at]
    if (part.type === "text") text += part.text
    else if (part.type === "tool-call" && label !== undefined) {
      if (part.providerExecuted) warn(`a call that its provider ran is not sent back: ${part.name}`)
      else calls.push(writeCall(part, label, traits))
    } else if (part.type === "file") warn(`a file that the model gave is not sent back: ${part.mediaType}`)
  })
  const back = Thoughts.back(content, traits)
  if (text === "" && calls.length === 0 && back.content.length === 0 && Object.keys(back.fields).length === 0) return []
  return [{
    role: "assistant",
    content: back.content.length > 0
      ? [...back.content, ...(text === "" ? [] : [{ type: "text", text }])]
      // Only calls may stand without content.
      : text === "" && calls.length > 0
      ? null
      : text,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...back.fields
  }]
}

const writeCall = (part: Prompt.ToolCallPart, { id, name }: Label, traits: Traits): Json => ({
  id,
  type: "function",
  function: {
    name,
    arguments: write(Arguments.isObject(part.params) ? part.params : Arguments.toObject(part.params))
  },
  ...Thoughts.ofCall(part, traits)
})

const writeResults = (
  content: ReadonlyArray<Prompt.ToolMessagePart>,
  { labels, traits, warn }: Context
): ReadonlyArray<Json> => {
  const results = content.filter((part) => part.type === "tool-result")
  const files = Parts.writeResultFiles(results, traits, warn)
  return [
    ...content.flatMap((part, at) => {
      const label = labels[at]
      return part.type === "tool-result" && label !== undefined
        ? [{ role: "tool", tool_call_id: label.id, content: Parts.writeResult(part) }]
        : []
    }),
    ...(files.length === 0 ? [] : [{ role: "user", content: files }])
  ]
}
