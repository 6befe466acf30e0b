// A program with 1,000 calls that never end and a deadline; it ends by itself when nothing is left behind.
import * as Effect from "effect/Effect"
import * as Context from "toolfold/Context"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"

let finalized = 0
const endless = Tool.make("endless", {
  timeout: "10 millis",
  handler: () => Effect.ensuring(Effect.never, Effect.sync(() => finalized++))
})
const answers = Effect.flatMap(
  ToolRegistry.ToolRegistry,
  (registry) =>
    Effect.forEach(
      Array.from({ length: 1_000 }, (_, at) => String(at)),
      (id) => registry.answer(Turn.call({ id, name: "endless", params: "" }), Context.callScope()),
      {
        concurrency: "unbounded"
      }
    )
)

const outcomes = await Effect.runPromise(Effect.provide(answers, ToolRegistry.layer(endless)))
const timedOut = outcomes.filter((outcome) => outcome._tag === "Failure" && outcome.kind === "timeout")
process.stdout.write(
  JSON.stringify({
    timedOut: timedOut.length,
    finalized,
    handles: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
  })
)
