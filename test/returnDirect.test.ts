// When are the results the answer? When every call of the batch is of a tool that says so, and succeeded.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief, converse, faults, quiet } from "./utils.ts"

const { call } = ScriptedModel

class Memo extends Context.Slots<Memo>()("test/Memo", { notes: Context.list(Schema.String) }) {}

const lookup = Tool.make("lookup", {
  input: { q: Schema.String },
  returnDirect: true,
  handler: ({ q }) => Effect.succeed(`found ${q}`)
})
const plain = Tool.make("plain", { handler: () => Effect.succeed("plain") })
const broken = Tool.make("broken", { returnDirect: true, failure: Schema.String, handler: () => Effect.fail("no") })

const one = [call("lookup", { q: "a" })]

describe("a result that is the answer", () => {
  it.effect("SPEC-91 is the text of the run, which asks the model once and says so", () =>
    Effect.gen(function*() {
      const result = yield* converse([lookup], [one])
      const { byModel: _, ...usage } = result.usage
      assert.deepStrictEqual(result, {
        _tag: "Completed",
        direct: true,
        runId: result.runId,
        text: "found a",
        messages: result.messages,
        turns: [{
          index: 0,
          text: "",
          reasoning: "",
          calls: [{ id: "call_1", name: "lookup", input: { q: "a" }, raw: '{"q":"a"}', repairs: [] }],
          outcomes: [{ _tag: "Success", value: "found a", writes: [] }],
          usage,
          finish: "tool-calls"
        }],
        usage: result.usage,
        context: Context.empty
      })
      assert.strictEqual(result.usage.calls, 1)
      const asked = yield* converse([plain], [[call("plain")], "done"])
      assert.isFalse("direct" in asked)
    }))

  it.effect("SPEC-92 leaves user, assistant and tool in the transcript, and the next run heals nothing", () =>
    Effect.gen(function*() {
      const first = yield* converse([lookup], [one])
      assert.deepStrictEqual(brief(first.messages), [
        "user: go",
        'assistant: lookup#call_1({"q":"a"})',
        "tool: #call_1=found a"
      ])
      const second = yield* converse([lookup], ["done"], { messages: first.messages, prompt: "more" })
      assert.deepStrictEqual(second.messages.slice(0, 3), first.messages)
      assert.deepStrictEqual(brief(second.messages).slice(3), ["user: more", "assistant: done"])
      assert.deepStrictEqual(faults(second.messages), [])
    }))

  it.effect("SPEC-93 is none in a batch with a call of another tool, or of one that is not there", () =>
    Effect.gen(function*() {
      for (const other of [call("plain"), call("gone"), call("lookup", "{")]) {
        const result = yield* converse([lookup, plain], [[...one, other], "done"])
        assert.deepStrictEqual([result.text, result.usage.calls, "direct" in result], ["done", 2, false])
      }
    }))

  it.effect("SPEC-94 is two lines of two calls, in call order, whoever finishes first; each is on record", () =>
    Effect.gen(function*() {
      const slow = Tool.make("slow", {
        output: Schema.Struct({ n: Schema.Int }),
        returnDirect: true,
        handler: () => Effect.as(Effect.yieldNow, { n: 1 })
      })
      const result = yield* converse([slow, lookup], [["let me look", call("slow"), ...one]])
      assert.deepStrictEqual([result.text, result.usage.calls], ['{"n":1}\nfound a', 1])
      assert.deepStrictEqual(result.turns.map(({ outcomes, text }) => [text, outcomes]), [
        ["let me look", [
          { _tag: "Success", value: { n: 1 }, writes: [] },
          { _tag: "Success", value: "found a", writes: [] }
        ]]
      ])
    }))

  it.effect("SPEC-95 is none where it failed, or one beside it did: the model is asked again", () =>
    Effect.gen(function*() {
      for (
        const batch of [[call("broken")], [...one, call("broken")], [call("broken"), ...one], [call("lookup", {})]]
      ) {
        const result = yield* converse([lookup, broken], [batch, "I could not look it up"])
        assert.deepStrictEqual([result._tag, result.text, result.usage.calls, "direct" in result], [
          "Completed",
          "I could not look it up",
          2,
          false
        ])
        assert.deepStrictEqual(faults(result.messages), [])
      }
    }))

  it.effect("SPEC-95 is that of the turn in which all went well", () =>
    Effect.gen(function*() {
      const result = yield* converse([lookup, broken], [[call("broken")], one])
      assert.deepStrictEqual([result._tag, result.text, result.usage.calls], ["Completed", "found a", 2])
    }))

  it.effect("is the answer also in the last turn that there may be, and at the last call", () =>
    Effect.gen(function*() {
      const result = yield* converse([lookup], [one], { maxTurns: 1, maxToolCalls: 1 })
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "found a"])
      const beyond = yield* converse([lookup], [[...one, ...one]], { maxToolCalls: 1 })
      assert.deepStrictEqual([beyond._tag, beyond._tag === "LimitReached" && beyond.limit], [
        "LimitReached",
        "tool-calls"
      ])
    }))

  it.effect("folds what its tool wrote", () =>
    Effect.gen(function*() {
      const note = Tool.make("note", {
        returnDirect: true,
        handler: () => Effect.as(Effect.flatMap(Memo, (memo) => memo.write({ notes: ["a"] })), "noted")
      })
      const result = yield* converse([note], [[call("note")]])
      assert.deepStrictEqual([result.text, Memo.from(result.context).notes], ["noted", ["a"]])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("is what a registry says of its tool, under its name there", () =>
    Effect.gen(function*() {
      const registry = ToolRegistry.layer(lookup, plain).pipe(ToolRegistry.prefix("fs_"))
      const it = yield* Effect.provide(Effect.map(ToolRegistry.ToolRegistry, (it) => it), registry)
      assert.deepStrictEqual(["fs_lookup", "fs_plain", "lookup"].map(it.isReturnDirect), [true, false, undefined])
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(registry),
        Effect.provide(ScriptedModel.layer([call("fs_lookup", { q: "x" })]))
      )
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "found x"])
    }))

  it.effect("of a tool that dies is none, and the next turn may have one", () =>
    Effect.gen(function*() {
      const dies = Tool.make("dies", { returnDirect: true, handler: () => Effect.die("x") })
      const result = yield* converse([lookup, dies], [[call("dies")], one])
      assert.deepStrictEqual([result.text, result.turns.length], ["found a", 2])
    }).pipe(Effect.provide(quiet)))
})
