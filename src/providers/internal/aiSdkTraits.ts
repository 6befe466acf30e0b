/**
 * What does a provider behind the AI SDK take? Its names, ids, schemas, numbers of tools: known of those that refuse
 * more than the protocol does, by what the provider calls itself.
 */
import type * as AiSdk from "./aiSdk.ts"
import * as Names from "./names.ts"
import type * as Narrow from "./narrow.ts"

export interface Traits {
  readonly names: Names.Rule
  readonly ids: Names.Rule
  /** How schemas are narrowed; as they are where nothing is known. */
  readonly dialect: Narrow.Dialect | undefined
  /** Whether a tool that does not ask to be strict must say that it is not. */
  readonly strictByDefault: boolean
  readonly maxTools: number
  /** Whether a result may hold files; else they follow in a message of their own. */
  readonly filesInResults: boolean
  /** Whether tokens are counted when all is said; else a stream tells them as it goes on. */
  readonly countsAtEnd: boolean
  /** What marks the end of what is to be cached. */
  readonly cachePoint: AiSdk.SharedV4ProviderOptions | undefined
}

const plain = "a-zA-Z0-9_-"

const common: Traits = {
  names: Names.rule(plain, { most: 64 }),
  ids: Names.anything,
  dialect: undefined,
  strictByDefault: false,
  maxTools: Infinity,
  filesInResults: false,
  countsAtEnd: true,
  cachePoint: undefined
}

const anthropic: Traits = {
  ...common,
  ids: Names.rule(plain, { most: 64 }),
  dialect: "anthropic",
  filesInResults: true,
  cachePoint: { anthropic: { cacheControl: { type: "ephemeral" } } }
}

const chat: Traits = { ...common, ids: Names.rule("\\x21-\\x7e", { most: 40 }), dialect: "openai", maxTools: 128 }

// The first that fits; what a gateway or a cloud calls a model of somebody else comes before its own name.
const known: ReadonlyArray<readonly [RegExp, Traits]> = [
  [/anthropic|claude/, anthropic],
  [/bedrock/, {
    ...common,
    names: Names.rule(plain, { most: 64, first: "a-zA-Z" }),
    ids: Names.rule(plain, { most: 64 }),
    filesInResults: true,
    cachePoint: { bedrock: { cachePoint: { type: "default" } } }
  }],
  [/^(?:google|vertex)|gemini/, {
    ...common,
    names: Names.rule("a-zA-Z0-9_.:-", { most: 64, first: "a-zA-Z_" }),
    dialect: "gemini",
    maxTools: 512,
    filesInResults: true,
    countsAtEnd: false
  }],
  [/^(?:openai|azure).*responses/, {
    ...chat,
    ids: Names.rule("\\x21-\\x7e", { most: 64 }),
    strictByDefault: true,
    filesInResults: true
  }],
  [/^(?:openai|azure|azure-openai)\./, chat],
  [/^mistral/, { ...common, ids: Names.rule("a-zA-Z0-9", { least: 9, most: 9 }) }],
  [/^groq/, { ...common, maxTools: 128 }]
]

/** What is known of a provider by its name. */
export const of = (provider: string): Traits =>
  known.find(([pattern]) => pattern.test(provider.toLowerCase()))?.[1] ?? common

/** Whose rules hold for a model: those of its provider, and through a gateway those of the one that is behind it. */
export const nameOf = ({ modelId, provider }: AiSdk.LanguageModelV4): string =>
  provider === "gateway" ? modelId.replace("/", ".") : provider
