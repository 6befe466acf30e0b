// What is a provider of effect/ai? A scripted one, which makes the JSON Schemas of a request as the provider packages do.
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as EffectWork from "../effectWork.ts"
import type * as Work from "../work.ts"

export const model = (spec: Work.Spec, seen: Work.Seen): Layer.Layer<LanguageModel.LanguageModel> => {
  const turnOf = ({ prompt, tools }: LanguageModel.ProviderOptions): number => {
    seen.requests++
    seen.definitions = tools.map((tool) => Tool.getJsonSchema(tool)).length
    return (prompt.content.length - 1) / 2
  }
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (request) => Effect.sync(() => EffectWork.parts(spec, turnOf(request))),
      streamText: (request) =>
        Stream.suspend(() => Stream.fromIteratorSucceed(EffectWork.pieces(spec, turnOf(request)).values(), 1))
    })
  )
}
