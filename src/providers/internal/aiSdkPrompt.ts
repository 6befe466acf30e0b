/**
 * How is a transcript written for the AI SDK? Each message once: what was made of it is kept, so that a turn costs what
 * is new, and signatures go back as they came, on the part that they came with.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Arguments from "../../internal/arguments.ts"
import * as Text from "../../internal/text.ts"
import type * as AiSdk from "./aiSdk.ts"
import * as Marks from "./aiSdkMarks.ts"
import { type Label, outputOf, writeFile, writeResult, writeShown, writeText } from "./aiSdkParts.ts"
import type * as Traits from "./aiSdkTraits.ts"
import * as Names from "./names.ts"

/** A transcript as the AI SDK has it, and the ids in it. */
export interface Transcript {
  readonly messages: ReadonlyArray<AiSdk.LanguageModelV4Message>
  readonly ids: Names.Ids
}

/** Writes transcripts, with these names of tools. */
export interface Writer {
  (list: ReadonlyArray<Prompt.Message>, names: Names.Names): Transcript
}

interface Kept {
  readonly key: string
  readonly written: ReadonlyArray<AiSdk.LanguageModelV4Message>
}

interface Growing extends Transcript {
  readonly names: Names.Names
  readonly messages: Array<AiSdk.LanguageModelV4Message>
  count: number
}

export const make = (traits: Traits.Traits): Writer => {
  const messages = new WeakMap<Prompt.Message, Kept>()
  const transcripts = new WeakMap<ReadonlyArray<Prompt.Message>, Growing>()
  const one = (message: Prompt.Message, { ids, names }: Growing) => {
    const labels = labelsOf(message, ids, names)
    const key = labels.map((label) => label === undefined ? "" : `${label.id}\n${label.name}`).join("\n")
    const known = messages.get(message)
    if (known?.key === key) return known.written
    const written = write(message, labels, traits)
    messages.set(message, { key, written })
    return written
  }
  return (list, names) => {
    const known = transcripts.get(list)
    const growing = known !== undefined && known.names === names && known.count <= list.length
      ? known
      : { names, ids: Names.ids(traits.ids), messages: [], count: 0 }
    for (const message of list.slice(growing.count)) growing.messages.push(...one(message, growing))
    growing.count = list.length
    transcripts.set(list, growing)
    return growing
  }
}

// A call takes an id before its result asks for it, so parts are labelled in order.
const labelsOf = (message: Prompt.Message, ids: Names.Ids, names: Names.Names): ReadonlyArray<Label | undefined> =>
  message.role === "assistant" || message.role === "tool"
    ? message.content.map((part) =>
      part.type === "tool-call"
        ? { id: ids.call(part.id), name: names.to(part.name) }
        : part.type === "tool-result"
        ? { id: ids.result(part.id), name: names.to(part.name) }
        : undefined
    )
    : []

const write = (
  message: Prompt.Message,
  labels: ReadonlyArray<Label | undefined>,
  traits: Traits.Traits
): ReadonlyArray<AiSdk.LanguageModelV4Message> => {
  const options = Marks.given(message.options)
  switch (message.role) {
    case "system":
      return message.content.trim() === ""
        ? []
        : [{ role: "system", content: message.content.toWellFormed(), ...options }]
    case "user": {
      const content = writeShown(message.content)
      return content.length === 0 ? [] : [{ role: "user", content, ...options }]
    }
    case "assistant": {
      const content = message.content.flatMap((part, at) => writeSpoken(part, labels[at]))
      return content.length === 0 ? [] : [{ role: "assistant", content, ...options }]
    }
    case "tool":
      return writeResults(message, labels, traits)
  }
}

type Spoken = Extract<AiSdk.LanguageModelV4Message, { readonly role: "assistant" }>["content"][number]

const writeSpoken = (part: Prompt.AssistantMessagePart, label: Label | undefined): ReadonlyArray<Spoken> => {
  switch (part.type) {
    case "text":
      return writeText(part)
    case "reasoning": {
      const options = Marks.given(part.options)
      const kind = Marks.kindOf(part)
      if (kind !== undefined) return [{ type: "custom", kind, ...options }]
      // What was signed is not ours to change.
      return part.text.trim() === "" && options.providerOptions === undefined
        ? []
        : [{ type: "reasoning", text: part.text, ...options }]
    }
    case "file": {
      const file = writeFile(part)
      return Marks.isReasoning(part) && (file.data.type === "data" || file.data.type === "url")
        ? [{ type: "reasoning-file", mediaType: file.mediaType, data: file.data, ...Marks.given(part.options) }]
        : [file]
    }
    case "tool-call":
      return label === undefined ? [] : [writeCall(part, label)]
    case "tool-result":
      return label === undefined ? [] : [writeResult(part, label, outputOf(part, true))]
    case "tool-approval-request":
      return []
  }
}

// What a provider ran itself may have been anything; a call to a tool is an object.
const inputOf = ({ params, providerExecuted }: Prompt.ToolCallPart): unknown => {
  if (Arguments.isObject(params)) return params
  if (!providerExecuted) return Arguments.toObject(params)
  return typeof params === "string" ? Arguments.json(params)?.value ?? params : params
}

const writeCall = (part: Prompt.ToolCallPart, { id, name }: Label): AiSdk.LanguageModelV4ToolCallPart => ({
  type: "tool-call",
  toolCallId: id,
  toolName: name,
  input: Text.wellFormed(inputOf(part)),
  ...(part.providerExecuted ? { providerExecuted: true } : {}),
  ...Marks.given(part.options)
})

type Answer = Extract<AiSdk.LanguageModelV4Message, { readonly role: "tool" }>["content"][number]

const writeResults = (
  message: Prompt.ToolMessage,
  labels: ReadonlyArray<Label | undefined>,
  { filesInResults }: Traits.Traits
): ReadonlyArray<AiSdk.LanguageModelV4Message> => {
  const files: Array<AiSdk.LanguageModelV4FilePart> = []
  const content = message.content.map(
    (part, at): Answer => {
      const label = labels[at]
      if (part.type === "tool-result" && label !== undefined) {
        if (!filesInResults) {
          files.push(...(part.modelOutput ?? []).filter((part) => part.type === "file").map(writeFile))
        }
        return writeResult(part, label, outputOf(part, filesInResults))
      }
      const { approvalId = "", approved = false, reason }: Partial<Prompt.ToolApprovalResponsePart> =
        part.type === "tool-approval-response" ? part : {}
      return {
        type: "tool-approval-response",
        approvalId,
        approved,
        ...(reason === undefined ? {} : { reason }),
        ...Marks.given(part.options)
      }
    }
  )
  if (content.length === 0) return []
  const results = { role: "tool", content, ...Marks.given(message.options) } as const
  // Results stand together, so the files of all of them come after the last.
  return files.length === 0 ? [results] : [results, { role: "user", content: files }]
}
