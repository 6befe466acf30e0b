/**
 * How are texts, files and results written in the Chat Completions protocol? A file that it has no part for is named in
 * words, so that the model knows that there is one, and warned of.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Traits } from "./chatTraits.ts"
import { type Json, write } from "./json.ts"

type Warn = (warning: string) => void

/** What a user shows: a text, or parts. */
export const writeShown = (
  content: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>,
  traits: Traits,
  warn: Warn
): string | ReadonlyArray<Json> => {
  const [only] = content
  if (content.length === 1 && only?.type === "text") return only.text
  return content.map((part) => part.type === "text" ? textOf(part.text) : writeFile(part, traits, warn))
}

const textOf = (text: string): Json => ({ type: "text", text })

const nameOf = ({ fileName, mediaType }: Prompt.FilePart): string =>
  fileName === undefined ? mediaType : `${mediaType} ${fileName}`

interface Data {
  /** Where it is, if it is somewhere else. */
  readonly url: string | undefined
  readonly base64: string
}

const dataOf = ({ data }: Prompt.FilePart): Data => {
  if (data instanceof Uint8Array) return { url: undefined, base64: Base64.encode(data) }
  const text = data instanceof URL ? data.href : data
  const inline = /^data:[^,]*;base64,/.exec(text)
  if (inline !== null) return { url: undefined, base64: text.slice(inline[0].length) }
  return /^(?:https?|data):/.test(text) ? { url: text, base64: "" } : { url: undefined, base64: text }
}

const audio = /^audio\/(?:x-)?(wav|mp3|mpeg)$/

const writeFile = (part: Prompt.FilePart, { files }: Traits, warn: Warn): Json => {
  const { base64, url } = dataOf(part)
  const mediaType = part.mediaType === "image/*" ? "image/jpeg" : part.mediaType
  const anywhere = url ?? `data:${mediaType};base64,${base64}`
  const takes = (kind: Traits["files"][number]) => files.includes(kind)
  if (mediaType.startsWith("image/") && takes("image")) return { type: "image_url", image_url: { url: anywhere } }
  if (mediaType.startsWith("video/") && takes("video")) return { type: "video_url", video_url: { url: anywhere } }
  const format = audio.exec(mediaType)?.[1]
  if (format !== undefined && url === undefined && takes("audio")) {
    return { type: "input_audio", input_audio: { data: base64, format: format === "mpeg" ? "mp3" : format } }
  }
  if (mediaType === "application/pdf" && takes("pdf") && (url === undefined || takes("video"))) {
    return { type: "file", file: { filename: part.fileName ?? "file.pdf", file_data: anywhere } }
  }
  const text = url === undefined && /^text\/|^application\/(?:json|xml)$/.test(mediaType) ? textIn(base64) : undefined
  if (text !== undefined) return textOf(`[${nameOf(part)}]\n${text}`)
  warn(`a file is not sent: ${nameOf(part)}, which this server does not take${url === undefined ? "" : " by its URL"}`)
  return textOf(`[${nameOf(part)} omitted]`)
}

const textIn = (base64: string): string | undefined => Result.getOrUndefined(Base64.decodeString(base64))

/** What a tool answered, as text: strings as they are, everything else as JSON. */
export const writeResult = (part: Prompt.ToolResultPart): string => {
  const text = part.modelOutput === undefined ? resultText(part.result) : outputText(part.modelOutput)
  const shown = text.trim() === "" ? "(empty)" : text
  // The protocol has no flag for a failed call, so the text says it.
  return part.isFailure ? `Error: ${shown}` : shown
}

const resultText = (result: unknown): string =>
  typeof result === "string" ? result.toWellFormed() : result === undefined ? "null" : write(result)

const outputText = (parts: ReadonlyArray<Prompt.ToolModelOutputPart>): string =>
  parts.map((part) => part.type === "text" ? part.text.toWellFormed() : `[${nameOf(part)} follows]`).join("\n")

/** The files of results, which a result cannot hold: in a message after the last of them. */
export const writeResultFiles = (
  results: ReadonlyArray<Prompt.ToolResultPart>,
  traits: Traits,
  warn: Warn
): ReadonlyArray<Json> =>
  results.flatMap(({ modelOutput = [], name }) => {
    const files = modelOutput.filter((part) => part.type === "file")
    return files.length === 0
      ? []
      : [textOf(`Files that ${name} gave:`), ...files.map((file) => writeFile(file, traits, warn))]
  })
