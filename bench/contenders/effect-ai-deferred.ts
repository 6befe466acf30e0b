// What is the least that a loop costs on a plain model of effect/ai? One request a turn with its calls left unresolved,
// answered by hand: the mark for toolfold on such a model.
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as EffectWork from "../effectWork.ts"
import * as Work from "../work.ts"
import { model } from "./plainModel.ts"

export const contender: Work.Contender = {
  timesOut: [],
  define: (spec, seen) => {
    const perform = EffectWork.perform(spec, seen, Effect.promise)
    const tools = Work.toolNames(spec.tools).map((name) =>
      Tool.make(name, {
        description: Work.description,
        parameters: EffectWork.struct(),
        success: EffectWork.output
      })
    )
    const decode = Schema.decodeUnknownEffect(EffectWork.struct())
    const toolkit: Toolkit.WithHandler<Record<string, (typeof tools)[number]>> = {
      tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])),
      handle: () => Effect.die("calls are answered by hand")
    }
    const answer = (call: { readonly id: string; readonly name: string; readonly params: unknown }) =>
      Effect.map(
        Effect.flatMap(decode(call.params), perform),
        (result) =>
          Prompt.toolResultPart({ id: call.id, name: call.name, providerExecuted: false, isFailure: false, result })
      )
    const run = Effect.gen(function*() {
      const messages: Array<Prompt.Message> = [...Prompt.make(Work.question).content]
      for (;;) {
        const { content } = yield* LanguageModel.generateText({
          prompt: Prompt.fromMessages(messages.slice()),
          toolkit,
          disableToolCallResolution: true,
          toolCallValidation: "deferred"
        })
        messages.push(...Prompt.fromResponseParts(content).content)
        const calls = content.filter((part) => part.type === "tool-call")
        if (calls.length === 0) return content.map((part) => part.type === "text" ? part.text : "").join("")
        const results = yield* Effect.forEach(calls, answer, { concurrency: "unbounded" })
        messages.push(Prompt.makeMessage("tool", { content: results }))
      }
    })
    return EffectWork.runner(run, Layer.empty, model(spec, seen))
  }
}
