// When does a run end that its model would not end? At a limit, with everything kept that ran.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { converse, faults } from "./utils.ts"

const { call } = ScriptedModel

const write = Tool.make("write", { input: { p: Schema.String, c: Schema.String }, handler: () => Effect.succeed("ok") })
const look = Tool.make("look", { handler: () => Effect.succeed("ok") })

const limitOf = (result: AgentLoop.Result) => [
  result._tag === "LimitReached" ? result.limit : result._tag,
  result.turns.length
]

describe("repeats", () => {
  const same = (...args: ReadonlyArray<string>) => args.map((text) => [call("write", text)])

  it.effect("LOOP-01: the same call three times in a row ends the run, whatever the order of its keys", () =>
    Effect.gen(function*() {
      const [a, b] = ['{"p":"a","c":"x"}', '{"c":"x","p":"a"}']
      const result = yield* converse([write], same(a, b, a))
      assert.deepStrictEqual(limitOf(result), ["repeats", 3])
      assert.deepStrictEqual(faults(result.messages), [])
      assert.deepStrictEqual(result.turns[2]?.outcomes.map(Turn.told), ["ok"])
      const other = '{"p":"a","c":"y"}'
      assert.deepStrictEqual(limitOf(yield* converse([write], [...same(a, a, other, a, a), "done"])), ["Completed", 6])
    }))

  it.effect("arguments are the same only where all of them are", () =>
    Effect.gen(function*() {
      const look = Tool.make("look", { input: { at: Schema.Json }, handler: () => Effect.succeed("ok") })
      const differ: ReadonlyArray<Schema.Json> = [[1], { 0: 1 }, [1, null], [null, 1], { a: [1] }, { a: [2] }, {
        b: [1]
      }]
      const looks = (ats: ReadonlyArray<Schema.Json>) => ats.map((at) => [call("look", { at })])
      for (const one of differ) {
        for (const other of differ.filter((at) => at !== one)) {
          const result = yield* converse([look], [...looks([one, one, other, one, one]), "done"])
          assert.deepStrictEqual(limitOf(result), ["Completed", 6])
        }
        assert.deepStrictEqual(limitOf(yield* converse([look], looks([one, one, one]))), ["repeats", 3])
      }
    }))

  it.effect("a batch is the same in any order", () =>
    Effect.gen(function*() {
      const [one, two] = [call("write", { p: "a", c: "x" }), call("look")]
      const result = yield* converse([write, look], [[one, two], [two, one], [one, two]])
      assert.deepStrictEqual(limitOf(result), ["repeats", 3])
    }))

  it.effect("two turns by turns end the run when both have come three times", () =>
    Effect.gen(function*() {
      const [one, two] = [[call("write", { p: "a", c: "x" })], [call("look")]]
      const result = yield* converse([write, look], [one, two, one, two, one, two])
      assert.deepStrictEqual(limitOf(result), ["repeats", 6])
    }))

  it.effect("an agent that polls says so", () =>
    Effect.gen(function*() {
      const polls = Array.from({ length: 6 }, () => [call("look")])
      assert.deepStrictEqual(limitOf(yield* converse([look], [...polls, "done"], { maxRepeats: Infinity })), [
        "Completed",
        7
      ])
      assert.deepStrictEqual(limitOf(yield* converse([look], polls, { maxRepeats: 5 })), ["repeats", 5])
      assert.throws(
        () => AgentLoop.make("bot", { maxRepeats: 1 }),
        "maxRepeats must be a whole number from 2 on, got 1"
      )
    }))
})

describe("maxCalls", () => {
  it.effect("of a tool are its calls in a run; those beyond it are answered unrun, in call order", () =>
    Effect.gen(function*() {
      const ran: Array<number> = []
      const step = Tool.make("step", {
        input: { n: Schema.Int },
        maxCalls: 3,
        handler: ({ n }) => Effect.sync(() => (ran.push(n), "ok"))
      })
      const steps = (...ns: ReadonlyArray<number>) => ns.map((n) => call("step", { n }))
      const result = yield* converse([step, look], [steps(1, 2), [...steps(3, 4), call("look")], "done"])
      assert.deepStrictEqual([ran, limitOf(result)], [[1, 2, 3], ["tool-calls", 2]])
      assert.deepStrictEqual(result.turns[1]?.outcomes.map(Turn.told), [
        "ok",
        "Not run: the tool calls that the run may make are used up.",
        "ok"
      ])
      assert.deepStrictEqual([Tool.maxCallsOf(step), Tool.maxCallsOf(look.pipe(Tool.maxCalls(2)))], [3, 2])
    }))
})

describe("runTimeout", () => {
  it.effect("ends the run with everything that ran until then, and what still ran is answered as cut off", () =>
    Effect.gen(function*() {
      let stopped = false
      const wait = Tool.make("wait", {
        handler: () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              stopped = true
            }))
      })
      const agent = AgentLoop.make("bot", { runTimeout: "1 minute" })
      const fiber = yield* Effect.forkChild(
        AgentLoop.run(agent, { prompt: "go" }).pipe(
          Effect.provide([
            ToolRegistry.layer(wait, look),
            ScriptedModel.layer([call("look")], [call("look"), call("wait")])
          ])
        )
      )
      yield* TestClock.adjust("1 minute")
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual([limitOf(result), stopped], [["time", 2], true])
      assert.deepStrictEqual(result.turns.map(({ outcomes }) => outcomes.map(({ _tag }) => _tag)), [
        ["Success"],
        ["Success", "Interrupted"]
      ])
      assert.deepStrictEqual(faults(result.messages), [])
    }))

  it("must be a duration that is positive and finite", () => {
    assert.throws(() => AgentLoop.make("bot", { runTimeout: 0 }), "runTimeout")
  })
})
