// Which form has an answer? The one that the agent says: asked for, decoded, and sent back until it fits.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Pause from "toolfold/Pause"
import * as Stop from "toolfold/Stop"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief } from "./utils.ts"

const { call } = ScriptedModel

const Weather = Schema.Struct({ city: Schema.String, degrees: Schema.Finite, sky: Schema.Literals(["clear", "grey"]) })
const good = { city: "Oslo", degrees: 3, sky: "grey" as const }
const look = Tool.make("look", { handler: () => Effect.succeed("grey") })

const play = <E, R, A>(agent: AgentLoop.Agent<E, R, A>, ...script: ReadonlyArray<ScriptedModel.Turn>) =>
  Effect.gen(function*() {
    const result = yield* AgentLoop.run(agent, { prompt: "Weather?" })
    const { requests } = yield* ScriptedModel.Script
    return { result, requests }
  }).pipe(Effect.provide([ToolRegistry.layer(look), ScriptedModel.layer(...script)]))

const bot = AgentLoop.make("bot", { output: Weather })

describe("an answer with a form", () => {
  it.effect("is asked for in every request, decoded, and typed", () =>
    Effect.gen(function*() {
      const { requests, result } = yield* play(bot, [call("look")], JSON.stringify(good))
      assert.strictEqual(result._tag, "Completed")
      if (result._tag !== "Completed") return
      const value: typeof Weather.Type | undefined = result.value
      assert.deepStrictEqual(value, good)
      assert.deepStrictEqual(
        requests.map(({ format }) => [format?.name, Object.keys(Object(format?.schema["properties"]))]),
        [
          ["answer", ["city", "degrees", "sky"]],
          ["answer", ["city", "degrees", "sky"]]
        ]
      )
    }))

  it.effect("SPEC-138 SPEC-115: that does not fit is sent back with all that is wrong with it, text that is no JSON too", () =>
    Effect.gen(function*() {
      const { requests, result } = yield* play(bot, "It is grey.", '{"city":"Oslo","sky":"blue"}', JSON.stringify(good))
      assert.deepStrictEqual(result._tag === "Completed" && result.value, good)
      assert.deepStrictEqual(requests.map(({ messages }) => brief(messages).at(-1)), [
        "user: Weather?",
        "user: Your answer does not have the form that was asked for:\n" +
        '- expected one JSON object and nothing else, got string "It is grey."\n' +
        "Answer again, with the corrected JSON alone.",
        "user: Your answer does not have the form that was asked for:\n" +
        '- degrees: Missing key, expected number (a finite number)\n- sky: Expected "clear" | "grey", got string "blue"\n' +
        "Answer again, with the corrected JSON alone."
      ])
    }))

  it.effect("that never fits ends the run as refused, with the last one as its text", () =>
    Effect.gen(function*() {
      const { requests, result } = yield* play(
        AgentLoop.make("bot", { output: Weather, outputRetries: 1 }),
        "no",
        "still no"
      )
      assert.deepStrictEqual([result._tag, result._tag === "Refused" && result.reason, result.text, requests.length], [
        "Refused",
        "invalid-output",
        "still no",
        2
      ])
    }))

  it.effect("SPEC-115: that never fits is sent back twice where nothing else is said", () =>
    Effect.gen(function*() {
      const { requests, result } = yield* play(bot, "no", "still no", '{"city":"Oslo"}')
      assert.deepStrictEqual([result._tag, result._tag === "Refused" && result.reason, result.text, requests.length], [
        "Refused",
        "invalid-output",
        '{"city":"Oslo"}',
        3
      ])
    }))

  it.effect("SPEC-116: is asked for of a run that is resumed as of any other", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "Weather?" })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      const result = yield* AgentLoop.resume(bot, paused, { call_1: Pause.approve })
      const { requests } = yield* ScriptedModel.Script
      assert.deepStrictEqual(result._tag === "Completed" && result.value, good)
      assert.deepStrictEqual(requests.map(({ format, messages }) => [format?.name, brief(messages).at(-1)]), [
        ["answer", "user: Weather?"],
        ["answer", "tool: #call_1=paid"],
        [
          "answer",
          "user: Your answer does not have the form that was asked for:\n" +
          '- expected one JSON object and nothing else, got string "It is grey."\n' +
          "Answer again, with the corrected JSON alone."
        ]
      ])
    }).pipe(
      Effect.provide(
        ToolRegistry.layer(Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") }))
      ),
      Effect.provide(ScriptedModel.layer([call("pay")], "It is grey.", JSON.stringify(good)))
    ))

  it.effect("is read out of a fence, and out of numbers that came as text", () =>
    Effect.gen(function*() {
      const { result } = yield* play(bot, '```json\n{"city":"Oslo","degrees":"3","sky":"grey"}\n```')
      assert.deepStrictEqual(result._tag === "Completed" && result.value, good)
    }))

  it.effect("that is no object is asked for as a member of one", () =>
    Effect.gen(function*() {
      const list = AgentLoop.make("bot", { output: Schema.Array(Schema.Finite) })
      const { requests, result } = yield* play(list, '{"answer":[1,2]}')
      assert.deepStrictEqual(result._tag === "Completed" && result.value, [1, 2])
      assert.deepStrictEqual(requests[0]?.format?.schema["type"], "object")
    }))

  it.effect("is not asked for again where a stop ended the run", () =>
    Effect.gen(function*() {
      const stopped = AgentLoop.make("bot", { output: Weather, stop: Stop.whenCalled("look") })
      const { result } = yield* play(stopped, { says: ["looking", call("look")] })
      assert.deepStrictEqual([result._tag, result._tag === "Completed" && result.value], ["Completed", undefined])
    }))

  it.effect("is asked for as one more tool of a model of effect/ai, and as an object where there are no tools", () =>
    Effect.gen(function*() {
      const plain =
        (...script: ReadonlyArray<ScriptedModel.Turn>) =>
        (tools: Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>) =>
          AgentLoop.run(bot, { prompt: "Weather?" }).pipe(Effect.provide([tools, ScriptedModel.layerPlain(...script)]))
      const early = [call("look"), call("final_answer", { ...good, degrees: 0 })]
      const result = yield* plain(early, [call("final_answer", good)])(ToolRegistry.layer(look))
      assert.deepStrictEqual(result._tag === "Completed" && result.value, good)
      assert.deepStrictEqual(brief(result.messages), [
        "user: Weather?",
        "assistant: look#call_1({})",
        "tool: #call_1=grey",
        `assistant: ${JSON.stringify(good)}`
      ])
      const alone = yield* plain(JSON.stringify(good))(ToolRegistry.layer())
      assert.deepStrictEqual(alone._tag === "Completed" && alone.value, good)
    }))

  it.effect("is sent back where a model of effect/ai without tools gives one that does not fit", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.layerPlain('{"city":"Oslo"}', JSON.stringify(good))
      const result = yield* AgentLoop.run(bot, { prompt: "Weather?" }).pipe(
        Effect.provide([ToolRegistry.layer(), model])
      )
      assert.deepStrictEqual([result._tag === "Completed" && result.value, result.turns.length], [good, 2])
    }))

  it.effect("offers a model of effect/ai what each turn offers, and no tool of another registry", () =>
    Effect.gen(function*() {
      const other = Tool.make("other", { handler: () => Effect.succeed("x") })
      const asked: Array<ReadonlyArray<string>> = []
      const narrowed = AgentLoop.make("bot", {
        output: Weather,
        prepare: ({ turn }) => Effect.succeed(turn === 1 ? { tools: { names: ["look"] } } : {})
      })
      const seen = {
        expect: ({ table }: { readonly table: { readonly tools: ReadonlyArray<{ readonly name: string }> } }) =>
          asked.push(table.tools.map(({ name }) => name))
      }
      yield* AgentLoop.run(narrowed, { prompt: "go" }).pipe(
        Effect.provide([
          ToolRegistry.layer(look, other),
          ScriptedModel.layerPlain({ ...seen, says: [call("look")] }, { ...seen, says: [call("final_answer", good)] })
        ])
      )
      assert.deepStrictEqual(asked, [["look", "other", "final_answer"], ["look", "final_answer"]])
    }))
})
