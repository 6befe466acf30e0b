// What is the least agent of toolfold?
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentLoop from "../../src/AgentLoop.ts"
import * as Provider from "../../src/Provider.ts"
import * as Tool from "../../src/Tool.ts"
import * as ToolRegistry from "../../src/ToolRegistry.ts"

const weather = Tool.make("get_weather", {
  description: "Current weather for a city",
  input: { city: Schema.String, days: Schema.Int },
  output: Schema.Struct({ city: Schema.String, temp: Schema.Finite }),
  handler: ({ city }) => Effect.succeed({ city, temp: 21 })
})

const model = Provider.layer({
  ask: ({ messages }) =>
    Effect.succeed(
      messages.length === 1
        ? {
          content: [
            Prompt.makePart("tool-call", {
              id: "1",
              name: "get_weather",
              params: '{"city":"Paris","days":3}',
              providerExecuted: false
            })
          ],
          finish: "tool-calls",
          usage: Provider.unknownUsage
        }
        : { content: [Prompt.makePart("text", { text: "done" })], finish: "stop", usage: Provider.unknownUsage }
    )
})

const run = AgentLoop.run(AgentLoop.make("bench"), { prompt: "What is the weather in Paris?" })
const result = await Effect.runPromise(run.pipe(Effect.provide(ToolRegistry.layer(weather)), Effect.provide(model)))
console.log(result.text)
