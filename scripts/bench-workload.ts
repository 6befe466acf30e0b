// One round of the workloads on one tree: prints the CPU time of each, in microseconds, as JSON.
//
//   node scripts/bench-workload.ts PATH-OF-TREE
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import type * as AgentLoopModule from "../src/AgentLoop.ts"
import type * as ProviderModule from "../src/Provider.ts"
import type * as ToolModule from "../src/Tool.ts"
import type * as ToolRegistryModule from "../src/ToolRegistry.ts"

const [tree = "."] = process.argv.slice(2)
const room = <A>(name: string): Promise<A> => import(join(tree, "src", `${name}.ts`))
const AgentLoop = await room<typeof AgentLoopModule>("AgentLoop")
const Provider = await room<typeof ProviderModule>("Provider")
const Tool = await room<typeof ToolModule>("Tool")
const ToolRegistry = await room<typeof ToolRegistryModule>("ToolRegistry")

const weather = Tool.make("get_weather", {
  description: "Current weather for a city",
  input: { city: Schema.String, days: Schema.Int },
  output: Schema.Struct({ city: Schema.String, temp: Schema.Finite }),
  handler: ({ city }) => Effect.succeed({ city, temp: 21 })
})

const usage = {
  inputTokens: { uncached: 10, total: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}

/** A model that asks for so many calls in each of so many turns, and then answers. */
const model = (turns: number, calls: number) =>
  Provider.layer({
    ask: ({ messages }) =>
      Effect.sync(() => {
        const turn = (messages.length - 1) / 2
        return turn >= turns
          ? { content: [Prompt.makePart("text", { text: "done" })], finish: "stop", usage }
          : {
            content: Array.from({ length: calls }, (_, at) =>
              Prompt.makePart("tool-call", {
                id: `call_${turn}_${at}`,
                name: "get_weather",
                params: '{"city":"Paris","days":3}',
                providerExecuted: false
              })),
            finish: "tool-calls",
            usage
          }
      })
  })

const agent = AgentLoop.make("bench", { maxTurns: Infinity, concurrency: "unbounded" })

const measure = async (turns: number, calls: number, times: number): Promise<number> => {
  const repeat = (count: number) =>
    Effect.gen(function*() {
      for (let at = 0; at < count; at++) {
        const result = yield* AgentLoop.run(agent, { prompt: "Weather?" })
        if (result.text !== "done" || result.turns.length !== turns + 1) throw new Error("the run ended otherwise")
      }
    }).pipe(Effect.provide(ToolRegistry.layer(weather)), Effect.provide(model(turns, calls)))
  await Effect.runPromise(repeat(times))
  const from = process.cpuUsage()
  await Effect.runPromise(repeat(times))
  const { system, user } = process.cpuUsage(from)
  return (user + system) / times / turns / calls
}

console.log(JSON.stringify({
  "a run of one turn with one call": await measure(1, 1, 3_000),
  "a turn with one call": await measure(100, 1, 200),
  "one of 32 parallel calls": await measure(5, 32, 200),
  "a turn of 1,000": await measure(1_000, 1, 60)
}))
