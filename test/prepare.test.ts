// What holds for one request? What the agent says, and what its `prepare` says for that one; and what it cost, by model.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Pricing from "toolfold/Pricing"
import type * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import * as Usage from "toolfold/Usage"
import { brief, converse, faults } from "./utils.ts"

const { call } = ScriptedModel

const read = Tool.make("read", { tags: ["safe"], handler: () => Effect.succeed("text") })
const write = Tool.make("write", { handler: () => Effect.succeed("written") })

const tooLong = AiError.make({
  module: "Test",
  method: "ask",
  reason: new AiError.InvalidRequestError({ description: "maximum context length is 100 tokens" })
})

/** Runs an agent on a script, and gives what the model was sent besides. */
const play = <E, R>(
  agent: AgentLoop.Agent<E, R>,
  script: ReadonlyArray<ScriptedModel.Turn>,
  options: AgentLoop.RunOptions = { prompt: "go" }
) =>
  Effect.gen(function*() {
    const result = yield* Effect.exit(AgentLoop.run(agent, options))
    const { requests } = yield* ScriptedModel.Script
    return { result, requests }
  }).pipe(Effect.provide([ToolRegistry.layer(read, write), ScriptedModel.layer(...script)]))

const sent = (requests: ReadonlyArray<Provider.Request>) => requests.map(({ messages }) => brief(messages))
const tools = (requests: ReadonlyArray<Provider.Request>) =>
  requests.map(({ table }) => table.schemas.map(({ name }) => name))

describe("prepare", () => {
  it.effect("is asked before each request, with where the run stands", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const agent = AgentLoop.make("bot", {
        instructions: "Be brief.",
        maxTurns: 3,
        prepare: ({ messages, remaining, turn, turns }) =>
          Effect.sync(() => {
            seen.push([turn, remaining, turns.length, brief(messages)])
            return {}
          })
      })
      const { requests } = yield* play(agent, [[call("read")], [call("read")], "done"])
      assert.deepStrictEqual(seen.map((at) => (at as ReadonlyArray<unknown>).slice(0, 3)), [[0, 3, 0], [1, 2, 1], [
        2,
        1,
        2
      ]])
      assert.deepStrictEqual((seen[1] as ReadonlyArray<unknown>)[3], [
        "user: go",
        "assistant: read#call_1({})",
        "tool: #call_1=text"
      ])
      assert.deepStrictEqual(sent(requests)[0], ["system: Be brief.", "user: go"])
    }))

  it.effect("SPEC-117: counts turns from 0 and what is left from 10, where nothing else is said", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [turn: number, remaining: number]> = []
      const agent = AgentLoop.make("bot", {
        prepare: ({ remaining, turn }) =>
          Effect.sync(() => {
            seen.push([turn, remaining])
            return {}
          })
      })
      yield* play(agent, [[call("read")], [call("write")], "done"])
      assert.deepStrictEqual(seen, [[0, 10], [1, 9], [2, 8]])
    }))

  it.effect("narrows the tools of one turn, and what is not offered then is not answered then", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", {
        prepare: ({ turn }) => Effect.succeed(turn === 0 ? { tools: { tags: ["safe"] } } : {})
      })
      const { requests, result } = yield* play(agent, [[call("write")], [call("write")], "done"])
      assert.deepStrictEqual(tools(requests), [["read"], ["read", "write"], ["read", "write"]])
      assert.isTrue(Exit.isSuccess(result))
      if (Exit.isFailure(result)) return
      assert.deepStrictEqual(result.value.turns.map(({ outcomes }) => outcomes.map(Turn.told)), [
        ['There is no tool named "write". The tools are: read.'],
        ["written"],
        []
      ])
    }))

  it.effect("forces a tool in any turn, and sends none where none may be called", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", {
        prepare: ({ turn }) =>
          Effect.succeed({ toolChoice: turn === 1 ? { tool: "write" } : turn === 2 ? "none" : "auto" })
      })
      const { requests } = yield* play(agent, [[call("read")], [call("write")], "done"])
      assert.deepStrictEqual(requests.map(({ toolChoice }) => toolChoice), ["auto", { tool: "write" }, "auto"])
      assert.deepStrictEqual(tools(requests), [["read", "write"], ["read", "write"], []])
    }))

  it.effect("shortens what is sent, never to a call without its result, and the transcript keeps all of it", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", {
        instructions: "Be brief.",
        prepare: ({ messages }) => Effect.succeed({ messages: messages.slice(-2), instructions: "Be briefer." })
      })
      const { requests, result } = yield* play(agent, [[call("read")], [call("read")], "done"])
      assert.deepStrictEqual(sent(requests), [
        ["system: Be briefer.", "user: go"],
        ["system: Be briefer.", "assistant: read#call_1({})", "tool: #call_1=text"],
        ["system: Be briefer.", "assistant: read#call_2({})", "tool: #call_2=text"]
      ])
      assert.isTrue(Exit.isSuccess(result))
      if (Exit.isFailure(result)) return
      assert.strictEqual(result.value.messages.length, 6)
      const cut = AgentLoop.make("bot", { prepare: ({ messages }) => Effect.succeed({ messages: messages.slice(-1) }) })
      const orphaned = yield* play(cut, [[call("read")], "done"])
      assert.deepStrictEqual(sent(orphaned.requests)[1], [])
    }))

  it.effect("gives a turn another model, which is built once for the run and released with it", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const Other = Layer.effect(
        LanguageModel.LanguageModel,
        Effect.acquireRelease(
          Effect.map(LanguageModel.LanguageModel, (model) => (log.push("built"), model)),
          () => Effect.sync(() => log.push("released"))
        )
      ).pipe(Layer.provide(ScriptedModel.layer([call("read")], [call("read")])))
      const agent = AgentLoop.make("bot", { prepare: ({ turn }) => Effect.succeed(turn < 2 ? { model: Other } : {}) })
      const { requests, result } = yield* play(agent, ["done"])
      assert.isTrue(Exit.isSuccess(result))
      assert.deepStrictEqual([requests.length, log], [1, ["built", "released"]])
    }))

  it.effect("fails the run with its own error, and not with the model's", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", { prepare: () => Effect.fail("no budget" as const) })
      const { requests, result } = yield* play(agent, [])
      assert.deepStrictEqual(result, Exit.fail("no budget"))
      assert.deepStrictEqual(requests, [])
    }))

  it.effect("is asked once more when the transcript no longer fits, and the run goes on with what it gives", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", {
        prepare: ({ isTooLong, messages }) => Effect.succeed(isTooLong ? { messages: messages.slice(-1) } : {})
      })
      const options = { messages: [{ role: "user" as const, content: "a long story" }], prompt: "go" }
      const { requests, result } = yield* play(agent, [{ fails: tooLong }, "done"], options)
      assert.isTrue(Exit.isSuccess(result) && result.value.text === "done")
      assert.deepStrictEqual(sent(requests), [["user: a long story", "user: go"], ["user: go"]])
      const twice = yield* play(agent, [{ fails: tooLong }, { fails: tooLong }], options)
      assert.strictEqual(Exit.isFailure(twice.result) && twice.requests.length, 2)
    }))

  it.effect("is not asked once more for what a budget does not have, and a turn that is asked twice begins once", () =>
    Effect.gen(function*() {
      const prepare = () => Effect.succeed({})
      const poor = yield* play(AgentLoop.make("bot", { prepare, budget: { requests: 1 } }), [
        { fails: tooLong },
        "done"
      ])
      assert.strictEqual(Exit.isFailure(poor.result) && poor.requests.length, 1)
      const starts: Array<string> = []
      const onEvent = ({ _tag }: AgentLoop.Event) => {
        if (_tag === "TurnStart") starts.push(_tag)
      }
      yield* play(AgentLoop.make("bot", { prepare }), [{ fails: tooLong }, "done"], { prompt: "go", onEvent })
      assert.deepStrictEqual(starts, ["TurnStart"])
    }))

  it.effect("a transcript that no longer fits fails the run, which says so and keeps what it had", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(converse([read], [[call("read")], { fails: tooLong }]))
      if (error._tag !== "ModelFailed") throw error
      assert.match(error.message, /maximum context length/)
      assert.deepStrictEqual(faults(error.partial.messages), [])
      assert.strictEqual(error.partial.turns.length, 1)
    }))
})

describe("settings", () => {
  it.effect("reach the provider with the effort, and those of one turn go before those of the agent", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", {
        settings: { temperature: 0, maxTokens: 100 },
        reasoningEffort: "low",
        prepare: ({ turn }) =>
          Effect.succeed(turn === 1 ? { settings: { temperature: 1 }, reasoningEffort: "high" } : {})
      })
      const { requests } = yield* play(agent, [[call("read")], "done"])
      assert.deepStrictEqual(requests.map(({ settings }) => settings), [
        { temperature: 0, maxTokens: 100, effort: "low" },
        { temperature: 1, maxTokens: 100, effort: "high" }
      ])
      const plain = yield* play(AgentLoop.make("bot", { settings: { seed: 7 } }), ["done"])
      assert.deepStrictEqual(plain.requests[0]?.settings, { seed: 7 })
    }))

  it.effect("that a model cannot take are an event, and the run goes on", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", { settings: { seed: 7, topP: 0.5 } })
      const events = yield* Stream.runCollect(AgentLoop.stream(agent, { prompt: "go" })).pipe(
        Effect.provide([ToolRegistry.layer(), ScriptedModel.layerPlain("done")])
      )
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "Warning"), [{
        _tag: "Warning",
        seq: 3,
        path: [],
        turn: 0,
        warnings: ["this model has settings of its own, and was not told of seed, topP"]
      }])
    }))
})

describe("usage", () => {
  const turns = [
    { says: [call("read")], model: "small", usage: { input: 1_000_000, output: 0 } },
    { says: [call("read")], model: "large", usage: { input: 1_000_000, output: 1_000_000 } },
    { says: ["done"], model: "small", usage: { input: 0, output: 1_000_000 } }
  ]

  it.effect("is added up over the run and by model, with what it cost", () =>
    Effect.gen(function*() {
      const prices = Pricing.layer({ small: { input: 1, output: 2 }, large: { input: 10, output: 20 } })
      const { turns: done, usage } = yield* Effect.provide(converse([read], turns), prices)
      const none = { cacheRead: 0, cacheWrite: 0, reasoning: 0 }
      const total = { inputTokens: 2_000_000, outputTokens: 2_000_000, totalTokens: 4_000_000, ...none, calls: 3 }
      const each = { inputTokens: 1_000_000, outputTokens: 1_000_000, totalTokens: 2_000_000, ...none }
      assert.deepStrictEqual(usage, {
        ...total,
        costUsd: 33,
        byModel: {
          small: { ...each, calls: 2, model: "small", costUsd: 3 },
          large: { ...each, calls: 1, model: "large", costUsd: 30 }
        }
      })
      assert.deepStrictEqual(done.map(({ usage }) => usage.model), ["small", "large", "small"])
      assert.deepStrictEqual(Schema.decodeUnknownSync(Usage.Total)(JSON.parse(JSON.stringify(usage))), usage)
    }))

  it.effect("counts the tokens of a model whose price is unknown, and then has no cost", () =>
    Effect.gen(function*() {
      const { usage } = yield* Effect.provide(
        converse([read], turns),
        Pricing.layer({ small: { input: 1, output: 2 } })
      )
      assert.isFalse("costUsd" in usage)
      assert.strictEqual(usage.totalTokens, 4_000_000)
      assert.strictEqual(usage.byModel["small"]?.costUsd, 3)
    }))

  it.effect("of a model that its provider does not name is in the sum alone", () =>
    Effect.gen(function*() {
      const { usage } = yield* converse([read], [{ says: ["done"], usage: { input: 3, output: 4 } }])
      assert.deepStrictEqual(usage, {
        ...Usage.empty,
        inputTokens: 3,
        outputTokens: 4,
        totalTokens: 7,
        calls: 1,
        byModel: {}
      })
    }))
})

describe("ids", () => {
  it.effect("that a provider repeats in another turn are told apart, also from those of an earlier transcript", () =>
    Effect.gen(function*() {
      const earlier = yield* converse([read], [[call("read", {}, "call_0")], "done"])
      const { messages, runId, turns } = yield* converse(
        [read],
        [[call("read", {}, "call_0")], [call("read", {}, "call_0")], "done"],
        { messages: earlier.messages }
      )
      const ids = turns.flatMap(({ calls }) => calls.map(({ id }) => id))
      assert.deepStrictEqual(ids, [`call_${runId}_1`, `call_${runId}_2`])
      assert.deepStrictEqual(faults(messages), [])
      const all = messages.flatMap(({ content, role }) =>
        role === "assistant" ? content.flatMap((part) => part.type === "tool-call" ? [part.id] : []) : []
      )
      assert.strictEqual(new Set(all).size, all.length)
    }))
})
