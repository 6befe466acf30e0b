/**
 * What did a model behind the AI SDK say? Content, whole or in pieces, as parts of a transcript in the order in which the
 * model began them.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import type * as Provider from "../../Provider.ts"
import type * as AiSdk from "./aiSdk.ts"
import * as Marks from "./aiSdkMarks.ts"
import type { Json } from "./json.ts"
import type * as Names from "./names.ts"

type Part = Prompt.AssistantMessagePart

/** A call whose arguments are still arriving. */
interface Input {
  readonly name: string
  /** Which of the calls of the answer. */
  readonly part: number
  readonly isOurs: boolean
  metadata: AiSdk.SharedV4ProviderMetadata | undefined
  text: string
  ended: boolean
}

/** A text or a thought that is still arriving. */
interface Spoken {
  readonly type: "text" | "reasoning"
  /** Which of its kind. */
  readonly part?: number
  text: string
  metadata: AiSdk.SharedV4ProviderMetadata | undefined
  mark: Json | undefined
}

/** Collects an answer; each piece gives what it adds to what is said. */
export interface Reader {
  readonly whole: (content: AiSdk.LanguageModelV4Content) => void
  readonly piece: (part: AiSdk.LanguageModelV4StreamPart) => Provider.Delta | undefined
  readonly answeredBy: (model: string | undefined) => void
  readonly warn: (warnings: ReadonlyArray<AiSdk.SharedV4Warning>) => void
  /** Whether it ended with what an end is known by: a reason, or tokens that are counted when all is said. */
  readonly hasEnded: (countsAtEnd: boolean) => boolean
  readonly end: (finish: Finish) => void
  readonly reply: () => Provider.Reply
}

type Finish = Pick<Extract<AiSdk.LanguageModelV4StreamPart, { readonly type: "finish" }>, "finishReason" | "usage">

export interface Options {
  readonly names: Names.Names
  readonly ids: Names.Ids
  readonly warnings: ReadonlyArray<string>
  readonly unknownUsage: Provider.Reply["usage"]
}

/** A reader for one answer. */
export const make = ({ ids, names, unknownUsage, warnings }: Options): Reader => {
  const content: Array<Part | Spoken> = []
  const open = new Map<string, Spoken>()
  const inputs = new Map<string, Input>()
  const sources: Array<AiSdk.LanguageModelV4Source> = []
  const warned = warnings.slice()
  let begun = 0
  let model: string | undefined
  let finish: Finish | undefined

  const spoken = (type: Spoken["type"], id: string): Spoken => {
    const known = open.get(`${type} ${id}`)
    if (known !== undefined) return known
    const part = content.filter((known) => known.type === type).length
    const made: Spoken = { type, part, text: "", metadata: undefined, mark: undefined }
    open.set(`${type} ${id}`, made)
    content.push(made)
    return made
  }

  const call = (id: string, name: string, params: string, providerExecuted: boolean, metadata: Input["metadata"]) =>
    content.push(
      Prompt.makePart("tool-call", {
        id,
        name: names.from(name),
        params,
        providerExecuted,
        options: Marks.kept(metadata)
      })
    )

  const whole: Reader["whole"] = (part) => {
    switch (part.type) {
      case "text":
        content.push({ ...part, metadata: part.providerMetadata, mark: cited(part.citations) })
        break
      case "reasoning":
        content.push({ ...part, metadata: part.providerMetadata, mark: undefined })
        break
      case "tool-call":
        inputs.delete(part.toolCallId)
        call(part.toolCallId, part.toolName, part.input, part.providerExecuted === true, part.providerMetadata)
        break
      case "tool-result":
        if (part.preliminary !== true) {
          content.push(Prompt.makePart("tool-result", {
            id: ids.from(part.toolCallId),
            name: names.from(part.toolName),
            isFailure: part.isError === true,
            result: part.result,
            providerExecuted: true,
            options: Marks.kept(part.providerMetadata)
          }))
        }
        break
      case "file":
      case "reasoning-file":
        content.push(Prompt.makePart("file", {
          mediaType: part.mediaType,
          data: part.data.type === "url"
            ? part.data.url
            : typeof part.data.data === "string"
            ? part.data.data
            : Base64.encode(part.data.data),
          options: Marks.kept(part.providerMetadata, part.type === "file" ? undefined : { isReasoning: true })
        }))
        break
      case "custom":
        // It announces an answer, and is no part of it.
        if (part.kind === "anthropic.message_start") break
        content.push(
          Prompt.makePart("reasoning", { text: "", options: Marks.kept(part.providerMetadata, { kind: part.kind }) })
        )
        break
      case "tool-approval-request":
        content.push(
          Prompt.makePart("tool-approval-request", { approvalId: part.approvalId, toolCallId: part.toolCallId })
        )
        break
      case "source":
        sources.push(part)
    }
  }

  const piece: Reader["piece"] = (part) => {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
      case "text-delta":
      case "reasoning-delta":
      case "text-end":
      case "reasoning-end": {
        const type = part.type.startsWith("text") ? "text" : "reasoning"
        // An id may be used again.
        if (part.type.endsWith("-start")) open.delete(`${type} ${part.id}`)
        const it = spoken(type, part.id)
        it.metadata = Marks.joined(it.metadata, part.providerMetadata)
        if (part.type === "text-end") it.mark = cited(part.citations)
        if (part.type.endsWith("-end")) open.delete(`${type} ${part.id}`)
        if (!("delta" in part) || part.delta === "") return undefined
        it.text += part.delta
        return { type, delta: part.delta, part: it.part }
      }
      case "tool-input-start":
        inputs.set(part.id, {
          name: part.toolName,
          part: begun++,
          isOurs: part.providerExecuted !== true,
          metadata: part.providerMetadata,
          text: "",
          ended: false
        })
        return undefined
      case "tool-input-delta":
      case "tool-input-end": {
        const input = inputs.get(part.id)
        if (input === undefined) return undefined
        input.metadata = Marks.joined(input.metadata, part.providerMetadata)
        if (part.type === "tool-input-end") {
          input.ended = true
          return undefined
        }
        input.text += part.delta
        return part.delta === "" || !input.isOurs
          ? undefined
          : { type: "input", delta: part.delta, part: input.part, id: part.id, name: names.from(input.name) }
      }
      case "stream-start":
        reader.warn(part.warnings)
        return undefined
      case "response-metadata":
        reader.answeredBy(part.modelId)
        return undefined
      case "finish":
        finish = part
        return undefined
      case "ping":
      case "raw":
      case "error":
        return undefined
      default:
        whole(part)
        return undefined
    }
  }

  const reader: Reader = {
    whole,
    piece,
    answeredBy: (named) => {
      model = named ?? model
    },
    warn: (more) => {
      for (const warning of more) warned.push(warningText(warning))
    },
    end: (it) => {
      finish = it
    },
    hasEnded: (countsAtEnd) => {
      if (finish === undefined || finish.finishReason.unified === "interrupted") return false
      const { finishReason: { raw, unified }, usage } = finish
      return unified !== "other" || raw !== undefined || (countsAtEnd && usage.outputTokens.total !== undefined)
    },
    reply: () => {
      // A call that was cut off is one too: whoever answers it must know that it was asked.
      for (const [id, { ended, isOurs, metadata, name, text }] of inputs) {
        if (isOurs && (ended || finish?.finishReason.unified === "length")) call(id, name, text, false, metadata)
      }
      inputs.clear()
      return {
        content: withSources(content, sources).map(toPart),
        finish: finishOf(finish?.finishReason),
        usage: finish === undefined ? unknownUsage : usageOf(finish.usage),
        model,
        warnings: warned.length === 0 ? undefined : warned
      }
    }
  }
  return reader
}

const cited = (citations: ReadonlyArray<object> | undefined): Json | undefined =>
  citations === undefined || citations.length === 0 ? undefined : { citations }

/** What an answer was made from stands with the last of its texts. */
const withSources = (
  content: ReadonlyArray<Part | Spoken>,
  sources: ReadonlyArray<AiSdk.LanguageModelV4Source>
): ReadonlyArray<Part | Spoken> => {
  const last = content.findLastIndex((part) => part.type === "text")
  return sources.length === 0
    ? content
    : content.map((part, at) => at === last && "metadata" in part ? { ...part, mark: { ...part.mark, sources } } : part)
}

const toPart = (part: Part | Spoken): Part =>
  "metadata" in part
    ? Prompt.makePart(part.type, { text: part.text, options: Marks.kept(part.metadata, part.mark) })
    : part

const finishOf = (reason: AiSdk.LanguageModelV4FinishReason | undefined): Provider.Reply["finish"] => {
  if (reason === undefined || reason.unified === "interrupted") return "unknown"
  if (reason.raw === "pause_turn") return "pause"
  return reason.unified === "other" && reason.raw === undefined ? "unknown" : reason.unified
}

const usageOf = ({ inputTokens, outputTokens }: AiSdk.LanguageModelV4Usage): Provider.Reply["usage"] => ({
  inputTokens: {
    uncached: inputTokens.noCache,
    total: inputTokens.total,
    cacheRead: inputTokens.cacheRead,
    cacheWrite: inputTokens.cacheWrite
  },
  outputTokens: { total: outputTokens.total, text: outputTokens.text, reasoning: outputTokens.reasoning }
})

const warningText = (warning: AiSdk.SharedV4Warning): string => {
  switch (warning.type) {
    case "unsupported":
    case "compatibility": {
      const what = warning.type === "unsupported" ? "is not supported" : "is imitated"
      return `${warning.feature} ${what}${warning.details === undefined ? "" : `: ${warning.details}`}`
    }
    case "deprecated":
      return `${warning.setting} is deprecated: ${warning.message}`
    case "other":
      return warning.message
  }
}
