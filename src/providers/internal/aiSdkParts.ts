/**
 * How are texts, files and results written for the AI SDK? Nothing blank, no half of a character, and no file as text.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Results from "../../internal/results.ts"
import * as Text from "../../internal/text.ts"
import type * as AiSdk from "./aiSdk.ts"
import * as Marks from "./aiSdkMarks.ts"
import { object, text } from "./json.ts"

/** What a part with an id is called there. */
export interface Label {
  readonly id: string
  readonly name: string
}

type TextPart = Extract<
  Extract<AiSdk.LanguageModelV4Message, { readonly role: "user" }>["content"][number],
  { readonly type: "text" }
>

/** A text, unless it is blank and says nothing else. */
export const writeText = (part: Prompt.TextPart): ReadonlyArray<TextPart> => {
  const options = Marks.given(part.options)
  if (part.text.trim() === "" && options.providerOptions === undefined) return []
  return [{ type: "text", text: part.text.toWellFormed(), ...options }]
}

/** A file: bytes, or where they are. */
export const writeFile = (part: Prompt.FilePart): AiSdk.LanguageModelV4FilePart => {
  const { data, mediaType } = fileOf(part)
  return {
    type: "file",
    mediaType,
    data,
    ...(part.fileName === undefined ? {} : { filename: part.fileName }),
    ...Marks.given(part.options)
  }
}

/** What people and tools show: texts and files. */
export const writeShown = (
  parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>
): Array<TextPart | AiSdk.LanguageModelV4FilePart> =>
  parts.flatMap((part): ReadonlyArray<TextPart | AiSdk.LanguageModelV4FilePart> =>
    part.type === "text" ? writeText(part) : [writeFile(part)]
  )

const fileOf = ({ data, mediaType }: Prompt.FilePart): Pick<AiSdk.LanguageModelV4FilePart, "data" | "mediaType"> => {
  if (data instanceof Uint8Array) return { data: { type: "data", data }, mediaType }
  const address = data instanceof URL ? data.href : data
  const [, type = "", encoding = "", body = ""] = /^data:([^;,]*)([^,]*),([^]*)$/.exec(address) ?? []
  if (address.startsWith("data:")) {
    const bytes = encoding.endsWith(";base64") ? body : new TextEncoder().encode(decodeURIComponent(body))
    return { data: { type: "data", data: bytes }, mediaType: type === "" ? mediaType : type }
  }
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(address) && URL.canParse(address)
    ? { data: { type: "url", url: new URL(address) }, mediaType }
    : { data: { type: "data", data: address }, mediaType }
}

/** A result, of which `output` is what it says. */
export const writeResult = (
  part: Prompt.ToolResultPart,
  { id, name }: Label,
  output: AiSdk.LanguageModelV4ToolResultOutput
): AiSdk.LanguageModelV4ToolResultPart => ({
  type: "tool-result",
  toolCallId: id,
  toolName: name,
  output,
  ...Marks.given(part.options)
})

/** What a result says: text, JSON, or parts where the provider takes files there. */
export const outputOf = (
  part: Prompt.ToolResultPart,
  filesInResults: boolean
): AiSdk.LanguageModelV4ToolResultOutput => {
  const { isFailure, modelOutput, result } = part
  const said = (words: string) => ({
    type: isFailure ? "error-text" as const : "text" as const,
    value: words.trim() === "" ? "(empty)" : words.toWellFormed()
  })
  if (modelOutput !== undefined) {
    const hasFiles = modelOutput.some((part) => part.type === "file")
    if (hasFiles && filesInResults) return { type: "content", value: contentOf(modelOutput, isFailure) }
    const texts = modelOutput.map((part) => part.type === "text" ? part.text : `(${part.mediaType} follows)`)
    return said(hasFiles ? texts.join("\n") : Prompt.toolModelOutputToText(modelOutput))
  }
  if (typeof result === "string" && !part.providerExecuted) return said(result)
  // It was JSON already, or becomes it here.
  const value = (Text.wellFormed(Results.toJson(result)) ?? null) as Extract<
    AiSdk.LanguageModelV4ToolResultOutput,
    { readonly type: "json" }
  >["value"]
  const denial = isFailure && text(object(result).type) === "execution-denied"
  if (denial) return { type: "execution-denied", reason: text(object(result).reason) }
  return { type: isFailure ? "error-json" : "json", value }
}

type Content = Extract<AiSdk.LanguageModelV4ToolResultOutput, { readonly type: "content" }>["value"]

// A list of parts has no flag for a failed call, so the first text says it.
const contentOf = (parts: ReadonlyArray<Prompt.ToolModelOutputPart>, isFailure: boolean): Content => [
  ...(isFailure ? [{ type: "text" as const, text: "Error:" }] : []),
  ...writeShown(parts)
]
