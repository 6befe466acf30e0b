import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as OfflineModel from "toolfold/testing/OfflineModel"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief, converse } from "./utils.ts"

describe("a scripted model", () => {
  const ok = Tool.make("ok", { handler: () => Effect.succeed("fine") })

  it.effect("refuses to be asked for more than its script has", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(converse([ok], [[ScriptedModel.call("ok")]]))
      assert.include(String(exit), "the script has 1 turns, and the model was asked for turn 2")
    }))

  it.effect("checks what it is sent, where the script says so", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(converse([ok], [{
        says: ["hi"],
        expect: ({ messages }) => assert.deepStrictEqual(brief(messages), ["user: something else"])
      }]))
      assert.include(String(exit), "something else")
    }))

  it.effect("keeps every request as it was at the time, and says what is left", () =>
    Effect.gen(function*() {
      yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" })
      const { remaining, requests } = yield* ScriptedModel.Script
      assert.deepStrictEqual(requests.map(({ messages }) => messages.length), [1, 3])
      assert.strictEqual(remaining(), 1)
    }).pipe(
      Effect.provide(ToolRegistry.layer(ok)),
      Effect.provide(ScriptedModel.layer([ScriptedModel.call("ok")], "done", "never"))
    ))

  it.effect("fails where the script says so", () =>
    Effect.gen(function*() {
      const fails = AiError.make({
        module: "Test",
        method: "ask",
        reason: new AiError.UnknownError({ description: "down" })
      })
      const error = yield* Effect.flip(converse([ok], [{ fails }]))
      assert.include(error.message, "down")
    }))
})

describe("the offline model", () => {
  const weather = Tool.make("get_weather", {
    description: "Current weather for a city",
    input: {
      city: Schema.String,
      days: Schema.Int.pipe(Schema.optionalKey),
      unit: Schema.Literals(["metric", "imperial"]).pipe(Schema.optionalKey)
    },
    handler: ({ city }) => Effect.succeed(`${city}: 21 degrees`)
  })
  const readFile = Tool.make("read_file", {
    description: "Read the text of a file",
    input: { path: Schema.String, query: Schema.String.pipe(Schema.optionalKey) },
    handler: ({ path }) => Effect.succeed(`text of ${path}`)
  })
  const ask = (prompt: string) =>
    Effect.map(
      AgentLoop.run(AgentLoop.make("bot"), { prompt }).pipe(
        Effect.provide(ToolRegistry.layer(weather, readFile)),
        Effect.provide(OfflineModel.layer)
      ),
      (result) => ({
        text: result.text,
        calls: result.turns.map((turn) => turn.calls.map(({ input, name }) => [name, input]))
      })
    )

  it.effect("says what it is", () =>
    Effect.gen(function*() {
      assert.match(
        (yield* ask('How is the weather in "Oslo"?')).text,
        /^\[OfflineModel: a stand-in without a language model\] /
      )
    }))

  it.effect("picks the tool whose words fit, and fills it with what stands in the question", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* ask('How is the weather in "Oslo" for 3 days, metric?')).calls[0], [[
        "get_weather",
        { city: "Oslo", days: 3 }
      ]])
      assert.deepStrictEqual((yield* ask('Weather in imperial units for "Bergen"')).calls[0], [["get_weather", {
        city: "Bergen",
        unit: "imperial"
      }]])
      assert.deepStrictEqual((yield* ask("Please read src/index.ts.")).calls[0], [["read_file", {
        path: "src/index.ts"
      }]])
    }))

  it.effect("calls the clauses of a step together, and steps one after the other", () =>
    Effect.gen(function*() {
      const { calls, text } = yield* ask('Weather of "Oslo" and weather of "Bergen", then read "a.txt"')
      assert.deepStrictEqual(calls, [[["get_weather", { city: "Oslo" }], ["get_weather", { city: "Bergen" }]], [[
        "read_file",
        { path: "a.txt" }
      ]], []])
      assert.include(text, "- get_weather: Bergen: 21 degrees")
      assert.include(text, "- read_file: text of a.txt")
    }))

  it.effect("asks for what it cannot fill, and says so when nothing fits", () =>
    Effect.gen(function*() {
      assert.include((yield* ask("How is the weather?")).text, "For get_weather I need city: put it in quotes.")
      assert.include((yield* ask("Sing!")).text, "none of yours fits a tool. The tools are: get_weather, read_file.")
    }))
})
