// Does a thread survive `kill -9`? A few of the kills of `npm run chaos:memory`, and whether it would see what was lost.
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Memory from "toolfold/Memory"
import * as InMemory from "toolfold/memory/InMemory"
import * as Kills from "../scripts/chaos/kills.ts"
import * as Random from "../scripts/chaos/random.ts"
import * as Stores from "../scripts/chaos/stores.ts"
import * as Story from "../scripts/chaos/story.ts"

const hasPostgres = await Stores.hasPostgres()

describe("a process that is killed in the middle of a run", () => {
  const seed = Random.seed()
  const check = async (kind: Stores.Kind) => {
    // oxlint-disable-next-line no-console -- a failure must be found again
    console.log(`seed ${seed}, 3 kills (again: SEED=${seed})`)
    const outcomes = await Kills.inStore(kind, 3, seed)
    assert.deepStrictEqual([outcomes.length, outcomes.filter(({ problems }) => problems.length > 0)], [4, []])
  }
  it(
    "leaves every turn that was finished in a SQLite file, and the next process goes on",
    () => check("sqlite"),
    120_000
  )
  it.skipIf(!hasPostgres)(
    "leaves every turn that was finished in PostgreSQL, and the next process goes on",
    () => check("pg"),
    120_000
  )
})

describe("the thread of a story", () => {
  const told = Effect.gen(function*() {
    const memory = Memory.thread("t")
    for (const turns of [0, 4]) yield* AgentLoop.run(Story.agent, { prompt: Story.promptOf(turns), memory })
    const thread = yield* memory.load
    return { thread, remembered: Story.Log.from(yield* Context.decode(thread.context, [Story.Log])) }
  }).pipe(Effect.provide([
    InMemory.layer,
    Story.Tools,
    Layer.effect(LanguageModel.LanguageModel, Story.model(() => {}))
  ]))

  it.live("is right as it is told, and wrong where a turn is lost, doubled, half there or not remembered", () =>
    Effect.gen(function*() {
      const { remembered, thread } = yield* told
      const { messages, turns } = thread
      const count = (changed: Partial<Memory.Thread>, least = turns, memory = remembered) =>
        Math.min(1, Story.faults({ ...thread, ...changed }, memory, least).length)
      assert.deepStrictEqual(Story.faults(thread, remembered, turns), [])
      assert.deepStrictEqual(Story.faults(thread, remembered, turns - 1), [])
      assert.deepStrictEqual([
        count({}, turns + 1),
        count({}, turns - 2),
        count({ version: turns + 1 }),
        count({ messages: messages.slice(0, -1) }),
        count({ messages: messages.filter((_, at) => at !== 3 && at !== 4) }),
        count({ messages: [...messages, ...messages.slice(-2)] }),
        count({ messages: messages.toSpliced(4, 1) }),
        count({ messages: messages.toSpliced(1, 0, ...messages.slice(0, 1)) }),
        count({ context: { version: 1, slots: {} } }),
        count({}, turns, { ...remembered, sum: remembered.sum + 1 }),
        count({}, turns, { ...remembered, order: remembered.order.toReversed() })
      ], Array.from({ length: 11 }, () => 1))
    }))
})
