// Which model answers? The one that the environment names, else a server on this machine, else a stand-in.
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as AiSdk from "toolfold/providers/AiSdk"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as OfflineModel from "toolfold/testing/OfflineModel"

/** The model of a key that somebody set, or of a server that somebody named. */
export interface Named {
  readonly api: "openai" | "anthropic" | "google"
  readonly model: string
  readonly apiKey?: string
  readonly baseUrl?: string
  /** What is said of it. */
  readonly line: string
}

/** What the environment names, if it names anything; an empty variable is one that is not set. */
export const namedBy = (env: NodeJS.ProcessEnv, wanted: string | undefined): Named | undefined => {
  const apiKey = env.OPENAI_API_KEY
  const baseUrl = env.OPENAI_BASE_URL
  if (apiKey || baseUrl) {
    const model = wanted ?? (env.OPENAI_MODEL || "gpt-5-mini")
    return {
      api: "openai",
      model,
      ...(apiKey ? { apiKey } : {}),
      ...(baseUrl ? { baseUrl } : {}),
      line: `model: ${model} at ${
        baseUrl || "OpenAI"
      } (another: OPENAI_MODEL or --model; another server: OPENAI_BASE_URL)`
    }
  }
  const [found] = withKeys.filter(({ variable }) => env[variable])
  if (found === undefined) return undefined
  const model = wanted ?? found.model
  return {
    api: found.api,
    model,
    apiKey: env[found.variable] ?? "",
    line: `model: ${model} at ${found.vendor} (another: --model; another vendor: OPENAI_API_KEY)`
  }
}

const withKeys = [
  { api: "anthropic", vendor: "Anthropic", variable: "ANTHROPIC_API_KEY", model: "claude-haiku-4-5" },
  { api: "google", vendor: "Google", variable: "GOOGLE_GENERATIVE_AI_API_KEY", model: "gemini-2.5-flash" }
] as const

const layerOf = ({ api, apiKey, baseUrl, model }: Named): Chosen["layer"] => {
  switch (api) {
    case "openai":
      return OpenAiCompatible.layer({ model, baseUrl, apiKey })
    case "anthropic":
      return AiSdk.layer(createAnthropic({ apiKey: apiKey ?? "" })(model))
    case "google":
      return AiSdk.layer(createGoogleGenerativeAI({ apiKey: apiKey ?? "" })(model))
  }
}

export interface Chosen {
  readonly line: string
  readonly layer: Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient>
}

const local = [
  { server: "Ollama", baseUrl: "http://localhost:11434/v1" },
  { server: "LM Studio", baseUrl: "http://localhost:1234/v1" },
  { server: "llama.cpp", baseUrl: "http://localhost:8080/v1" }
]

const firstModel = Effect.fnUntraced(
  function*(baseUrl: string) {
    const response = yield* HttpClient.get(`${baseUrl}/models`)
    const body = (yield* response.json) as { readonly data?: ReadonlyArray<{ readonly id?: unknown }> } | null
    const id = body?.data?.[0]?.id
    return typeof id === "string" ? id : yield* Effect.fail("no model" as const)
  },
  Effect.timeout("400 millis"),
  Effect.option
)

export const chooseModel = Effect.fnUntraced(function*(env: NodeJS.ProcessEnv, wanted: string | undefined) {
  const named = namedBy(env, wanted)
  if (named !== undefined) {
    const chosen: Chosen = { line: named.line, layer: layerOf(named) }
    return chosen
  }
  for (const { baseUrl, server } of local) {
    const found = yield* firstModel(baseUrl)
    if (found._tag === "None") continue
    const model = wanted ?? found.value
    const chosen: Chosen = {
      line:
        `model: ${model} of ${server} on this machine (another: --model; another server: a key, or OPENAI_BASE_URL)`,
      layer: OpenAiCompatible.layer({ model, baseUrl })
    }
    return chosen
  }
  const offline: Chosen = {
    line:
      "model: OfflineModel, a stand-in that matches words (a real one: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY, or start Ollama, LM Studio or llama.cpp)",
    layer: OfflineModel.layer
  }
  return offline
})
