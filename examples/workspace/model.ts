// Which model answers? The one that the environment names, else a server on this machine, else a stand-in.
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as OfflineModel from "toolfold/testing/OfflineModel"

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
  // An empty variable is one that is not set.
  const [apiKey, baseUrl, named] = [env.OPENAI_API_KEY, env.OPENAI_BASE_URL, env.OPENAI_MODEL].map((value) =>
    value || undefined
  )
  if (apiKey !== undefined || baseUrl !== undefined) {
    const model = wanted ?? named ?? "gpt-5-mini"
    const chosen: Chosen = {
      line: `model: ${model} at ${
        baseUrl ?? "OpenAI"
      } (another: OPENAI_MODEL or --model; another server: OPENAI_BASE_URL)`,
      layer: OpenAiCompatible.layer({ model, baseUrl, apiKey })
    }
    return chosen
  }
  for (const { baseUrl, server } of local) {
    const found = yield* firstModel(baseUrl)
    if (found._tag === "None") continue
    const model = wanted ?? found.value
    const chosen: Chosen = {
      line:
        `model: ${model} of ${server} on this machine (another: --model; another server: OPENAI_API_KEY or OPENAI_BASE_URL)`,
      layer: OpenAiCompatible.layer({ model, baseUrl })
    }
    return chosen
  }
  const offline: Chosen = {
    line:
      "model: OfflineModel, a stand-in that matches words (a real one: set OPENAI_API_KEY, or start Ollama, LM Studio or llama.cpp)",
    layer: OfflineModel.layer
  }
  return offline
})
