// What does toolfold's own provider cost, over the fetch client of effect/http?
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as AgentLoop from "../../src/AgentLoop.ts"
import * as OpenAiCompatible from "../../src/providers/OpenAiCompatible.ts"
import * as Tool from "../../src/Tool.ts"
import * as ToolRegistry from "../../src/ToolRegistry.ts"
import * as EffectWork from "../effectWork.ts"
import type { Contender } from "../requests.ts"
import * as Work from "../work.ts"

export const contender: Contender = {
  define: (_turns, baseUrl) => {
    const weather = Tool.make("get_weather", {
      description: Work.description,
      input: EffectWork.fields(),
      output: EffectWork.output,
      handler: (input) => Effect.succeed(Work.weather(input))
    })
    const agent = AgentLoop.make("bench", { maxTurns: Infinity, maxRepeats: Infinity })
    const model = OpenAiCompatible.layer({ model: "scripted", baseUrl }).pipe(Layer.provide(FetchHttpClient.layer))
    const run = Effect.map(AgentLoop.run(agent, { prompt: Work.question }), ({ text }) => text)
    return EffectWork.runner(run, ToolRegistry.layer(weather), model)
  }
}
