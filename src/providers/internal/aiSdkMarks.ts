/**
 * How does a part go back as what it came as, where a transcript has no word for it? The options of a part are the
 * provider's metadata, and under a name of ours they hold what else must be known.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Results from "../../internal/results.ts"
import type * as AiSdk from "./aiSdk.ts"
import { isJson, type Json, object, text } from "./json.ts"

const name = "aiSdk"

/** What a provider said of a part, as the part's options; `mark` is what is to be known of it beside that. */
export const kept = (metadata: AiSdk.SharedV4ProviderMetadata | undefined, mark?: Json): Prompt.ProviderOptions =>
  metadata === undefined && mark === undefined
    ? {}
    // Some write `undefined` for what they have not, which could not be stored.
    : Results.toJson({ ...metadata, ...(mark === undefined ? {} : { [name]: mark }) }) as Prompt.ProviderOptions // an object

/** Metadata that came in pieces: of each provider what came last. */
export const joined = (
  one: AiSdk.SharedV4ProviderMetadata | undefined,
  other: AiSdk.SharedV4ProviderMetadata | undefined
): AiSdk.SharedV4ProviderMetadata | undefined => {
  if (one === undefined || other === undefined) return one ?? other
  const out = { ...one }
  for (const [provider, said] of Object.entries(other)) out[provider] = { ...out[provider], ...said }
  return out
}

interface Given {
  readonly providerOptions?: AiSdk.SharedV4ProviderOptions
}

const nothing: Given = {}

/** The options of a part, as they go back. */
export const given = (options: Prompt.ProviderOptions): Given => {
  const entries = Object.entries(options).filter(([key, value]) => key !== name && isJson(value))
  return entries.length === 0
    ? nothing
    : { providerOptions: Object.fromEntries(entries) as AiSdk.SharedV4ProviderOptions } // options are JSON
}

/** The kind of a part that only its provider understands. */
export const kindOf = ({ options }: Prompt.ReasoningPart): `${string}.${string}` | undefined => {
  const kind = text(object(options[name]).kind)
  return isKind(kind) ? kind : undefined
}

const isKind = (kind: string): kind is `${string}.${string}` => kind.includes(".")

/** Whether a file belongs to what a model thought. */
export const isReasoning = ({ options }: Prompt.FilePart): boolean => object(options[name]).isReasoning === true
