/**
 * How is a transcript written in the Chat Completions protocol? Each message and each table of tools once, in strings
 * that are kept, so that a request begins with the same bytes as the one before and costs only what is new.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Arguments from "../../internal/arguments.ts"
import * as Text from "../../internal/text.ts"
import type * as Provider from "../../Provider.ts"
import type * as Tool from "../../Tool.ts"

/** Writes request bodies, and keeps what it wrote of messages and tools. */
export interface Writer {
  (request: Provider.Request, streamed: boolean): string
}

/** A writer for one model; `extra` goes into every body as it is. */
export const make = (model: string, extra: { readonly [key: string]: unknown }): Writer => {
  const messages = new WeakMap<Prompt.Message, string>()
  const transcripts = new WeakMap<ReadonlyArray<Prompt.Message>, { readonly count: number; readonly text: string }>()
  const tables = new WeakMap<Tool.Table, string>()
  const head = `{${inner({ model, ...extra })}`
  const oneMessage = (message: Prompt.Message): string => {
    const known = messages.get(message) ?? writeMessage(message)
    messages.set(message, known)
    return known
  }
  const transcript = (list: ReadonlyArray<Prompt.Message>): string => {
    const known = transcripts.get(list)
    const from = known === undefined || known.count > list.length ? 0 : known.count
    let text = from === 0 ? "" : known?.text ?? ""
    for (const message of list.slice(from)) {
      const written = oneMessage(message)
      if (written !== "") text += text === "" ? written : `,${written}`
    }
    transcripts.set(list, { count: list.length, text })
    return text
  }
  const tools = (table: Tool.Table): string => {
    if (table.schemas.length === 0) return ""
    const known = tables.get(table) ?? `,"tools":${json(table.schemas.map(writeTool))}`
    tables.set(table, known)
    return known
  }
  return ({ format, messages, table, toolChoice }, streamed) => {
    const choice = table.schemas.length === 0 || toolChoice === "auto"
      ? ""
      : `,"tool_choice":${json(writeChoice(toolChoice))}`
    const shape = format === undefined
      ? ""
      : `,"response_format":${
        json({ type: "json_schema", json_schema: { name: legal(format.name), schema: format.schema } })
      }`
    const stream = streamed ? `,"stream":true,"stream_options":{"include_usage":true}` : ""
    return `${head}${tools(table)},"messages":[${transcript(messages)}]${choice}${shape}${stream}}`
  }
}

const inner = (object: object): string => json(object).slice(1, -1)

/** JSON that every server takes: half a surrogate pair is replaced, wherever it stands. */
export const json = (value: unknown): string => {
  const text = JSON.stringify(value)
  // JSON.stringify escapes exactly the surrogates that stand alone.
  return text?.includes("\\ud") ? JSON.stringify(Text.wellFormed(JSON.parse(text))) : text
}

const legal = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64)

const writeTool = ({ description, input_schema, name, strict }: Tool.Advertised) => ({
  type: "function",
  function: { name, description, parameters: input_schema, strict }
})

const writeChoice = (choice: Provider.Request["toolChoice"]): unknown => {
  if (typeof choice === "string") return choice
  return "tool" in choice ? { type: "function", function: { name: choice.tool } } : choice.mode ?? "auto"
}

// The messages of one turn's results are several here, so a message is written as a list without its brackets.
const writeMessage = (message: Prompt.Message): string => {
  switch (message.role) {
    case "system":
      return json({ role: "system", content: message.content })
    case "user":
      return json({ role: "user", content: writeUser(message.content) })
    case "assistant":
      return json(writeAssistant(message.content))
    case "tool":
      return message.content.filter((part) => part.type === "tool-result")
        .map((part) => json({ role: "tool", tool_call_id: part.id, content: writeResult(part) })).join(",")
  }
}

const writeUser = (content: ReadonlyArray<Prompt.UserMessagePart>): unknown => {
  const [only] = content
  if (content.length === 1 && only?.type === "text") return only.text
  return content.map((part) => part.type === "text" ? { type: "text", text: part.text } : writeFile(part))
}

const writeFile = (part: Prompt.FilePart): unknown => {
  const { data, fileName, mediaType } = part
  const known = data instanceof URL
    ? data.href
    : typeof data === "string" && /^(https?:|data:)/.test(data)
    ? data
    : undefined
  const base64 = data instanceof Uint8Array ? Base64.encode(data) : String(data)
  const url = known ?? `data:${mediaType === "image/*" ? "image/jpeg" : mediaType};base64,${base64}`
  if (mediaType.startsWith("image/")) return { type: "image_url", image_url: { url } }
  const audio = /^audio\/(?:x-)?(wav|mp3|mpeg)$/.exec(mediaType)?.[1]
  if (audio !== undefined && known === undefined) {
    return { type: "input_audio", input_audio: { data: base64, format: audio === "mpeg" ? "mp3" : audio } }
  }
  return { type: "file", file: { filename: fileName ?? "file", file_data: url } }
}

const writeAssistant = (content: ReadonlyArray<Prompt.AssistantMessagePart>): object => {
  let text = ""
  let details: unknown
  const calls: Array<unknown> = []
  for (const part of content) {
    if (part.type === "text") text += part.text
    else if (part.type === "reasoning") details = part.options.openaiCompatible ?? details
    else if (part.type === "tool-call" && !part.providerExecuted) {
      calls.push({
        id: part.id,
        type: "function",
        function: {
          name: part.name,
          arguments: json(Arguments.isObject(part.params) ? part.params : Arguments.toObject(part.params))
        }
      })
    }
  }
  return {
    role: "assistant",
    // Only calls may stand without content.
    content: text === "" && calls.length > 0 ? null : text,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    // Some hosts want back what a model thought, as it was.
    ...(typeof details === "object" && details !== null ? details : {})
  }
}

const writeResult = (part: Prompt.ToolResultPart): string => {
  const text = part.modelOutput === undefined ? resultText(part.result) : Prompt.toolModelOutputToText(part.modelOutput)
  const shown = text.trim() === "" ? "(empty)" : text
  // The protocol has no flag for a failed call, so the text says it.
  return part.isFailure ? `Error: ${shown}` : shown
}

/** A result as text: strings as they are, everything else as JSON. */
const resultText = (result: unknown): string =>
  typeof result === "string" ? result.toWellFormed() : result === undefined ? "null" : json(result)
