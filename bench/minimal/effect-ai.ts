// What is the least agent of effect/ai?
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const toolkit = Toolkit.make(Tool.make("get_weather", {
  description: "Current weather for a city",
  parameters: Schema.Struct({ city: Schema.String, days: Schema.Int }),
  success: Schema.Struct({ city: Schema.String, temp: Schema.Finite })
}))
const handlers = toolkit.toLayer({ get_weather: ({ city }) => Effect.succeed({ city, temp: 21 }) })

const usage = {
  inputTokens: { uncached: 10, total: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}
const model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: ({ prompt, tools }) =>
      Effect.sync((): Array<Response.PartEncoded> => {
        tools.forEach((tool) => Tool.getJsonSchema(tool))
        return prompt.content.length === 1
          ? [
            { type: "tool-call", id: "1", name: "get_weather", params: { city: "Paris", days: 3 } },
            { type: "finish", reason: "tool-calls", usage }
          ]
          : [{ type: "text", text: "done" }, { type: "finish", reason: "stop", usage }]
      }),
    streamText: () => Stream.empty
  })
)

const run = Effect.gen(function*() {
  let prompt = Prompt.make("What is the weather in Paris?")
  for (;;) {
    const reply = yield* LanguageModel.generateText({ prompt, toolkit })
    prompt = Prompt.concat(prompt, Prompt.fromResponseParts(reply.content))
    if (reply.toolCalls.length === 0) return reply.text
  }
})
console.log(await Effect.runPromise(run.pipe(Effect.provide(handlers), Effect.provide(model))))
