// What does effect/ai cost with its own resolution of tools, in the loop that its documentation shows?
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as EffectWork from "../effectWork.ts"
import * as Work from "../work.ts"
import { model } from "./plainModel.ts"

export const contender: Work.Contender = {
  timesOut: [],
  define: (spec, seen) => {
    const perform = EffectWork.perform(spec, seen, Effect.promise)
    const names = Work.toolNames(spec.tools)
    const toolkit = Toolkit.make(
      ...names.map((name) =>
        Tool.make(name, {
          description: Work.description,
          parameters: EffectWork.struct(),
          success: EffectWork.output
        })
      )
    )
    const handlers = toolkit.toLayer(Object.fromEntries(names.map((name) => [name, perform])))

    const ask = (prompt: Prompt.Prompt, kit: Toolkit.WithHandler<(typeof toolkit)["tools"]>) =>
      spec.deltas === 0
        ? Effect.map(LanguageModel.generateText({ prompt, toolkit: kit }), ({ content }) => content)
        : Effect.gen(function*() {
          const parts: Array<Response.AnyPart> = []
          yield* Stream.runForEach(LanguageModel.streamText({ prompt, toolkit: kit }), (part) =>
            Effect.sync(() => {
              parts.push(part)
              if (part.type === "text-delta" && part.delta !== Work.answer) seen.deltas++
            }))
          return parts
        })

    const run = Effect.gen(function*() {
      const kit = yield* toolkit
      let prompt = Prompt.make(Work.question)
      for (;;) {
        const parts: ReadonlyArray<Response.AnyPart> = yield* ask(prompt, kit)
        prompt = Prompt.concat(prompt, Prompt.fromResponseParts(parts))
        if (!parts.some((part) => part.type === "tool-call")) return textOf(parts)
      }
    })
    return EffectWork.runner(run, handlers, model(spec, seen))
  }
}

const textOf = (parts: ReadonlyArray<Response.AnyPart>): string =>
  parts.map((part) => part.type === "text" ? part.text : part.type === "text-delta" ? part.delta : "").join("")
