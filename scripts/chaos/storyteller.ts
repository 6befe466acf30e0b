// A process that tells the story on a thread, run after run, until it is killed or has had so many runs. Prints `turns N`
// when N turns have to be in the thread, and `operations N` when it has ended by itself. It kills itself before the
// operation that it is told to, if it is.
//
//   storyteller.ts KIND WHERE THREAD RUNS OPERATION
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scheduler from "effect/Scheduler"
import { writeSync } from "node:fs"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Memory from "toolfold/Memory"
import * as Stores from "./stores.ts"
import * as Story from "./story.ts"

const [kind, where = "", thread = "", runs, operation] = process.argv.slice(2)

let operations = 0

class Deadly extends Scheduler.MixedScheduler {
  override shouldYield(fiber: Parameters<Scheduler.Scheduler["shouldYield"]>[0]): boolean {
    if (++operations === Number(operation)) process.kill(process.pid, "SIGKILL")
    return super.shouldYield(fiber)
  }
}

const say = (line: string): void => void writeSync(1, `${line}\n`)

const program = Effect.gen(function*() {
  const memory = Memory.thread(thread)
  for (let run = 0; run < Number(runs); run++) {
    const { turns } = yield* memory.load
    const result = yield* AgentLoop.run(Story.agent, { prompt: Story.promptOf(turns), memory })
    if (result._tag !== "Completed") throw new Error(`a run ended as ${result._tag}`)
    say(`turns ${turns + result.turns.length}`)
  }
})

await Effect.runPromise(program.pipe(
  Effect.provide([
    Stores.memory(kind === "pg" ? "pg" : "sqlite", where),
    Story.Tools,
    Layer.effect(LanguageModel.LanguageModel, Story.model((turns) => say(`turns ${turns}`)))
  ]),
  Effect.provideService(Scheduler.Scheduler, new Deadly())
))
say(`operations ${operations}`)
