// How does a run rest in a thread? It goes on from what is there, and what it adds is there turn by turn, however it ends.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Memory from "toolfold/Memory"
import * as InMemory from "toolfold/memory/InMemory"
import * as Pause from "toolfold/Pause"
import * as PauseStore from "toolfold/PauseStore"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Usage from "toolfold/Usage"
import { brief, faults, quiet } from "./utils.ts"

const { call } = ScriptedModel

class Notes extends Context.Slots<Notes>()("test/ThreadNotes", { seen: Context.list(Schema.String) }) {}

const look = Tool.make("look", {
  input: { what: Schema.String },
  handler: ({ what }) =>
    Effect.gen(function*() {
      const notes = yield* Notes
      yield* notes.write({ seen: [what] })
      return `saw ${what} after ${notes.get("seen").join()}`
    })
})
const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
const never = Tool.make("wait", { handler: () => Effect.never })

const Tools = ToolRegistry.layer(look, pay, never).pipe(Layer.provide(Notes.layer))
const bot = AgentLoop.make("bot", { instructions: "Be brief." })
const memory = Memory.thread("t1")

const provided = (...script: ReadonlyArray<ScriptedModel.Turn>) =>
  Effect.provide([Tools, ScriptedModel.layer(...script), InMemory.layer, quiet])

const stored = Effect.flatMap(
  Memory.Memory,
  (service) =>
    Effect.map(service.load("t1"), ({ context, messages, turns, usage, version }) => ({
      messages: brief(messages),
      turns,
      version,
      seen: Object(context.slots["test/ThreadNotes"]).seen,
      tokens: usage.totalTokens
    }))
)

const down = AiError.make({
  module: "T",
  method: "m",
  reason: new AiError.InternalProviderError({ description: "down" })
})

describe("a run on a thread", () => {
  it.effect("appends turn by turn, and the next run goes on from its messages and what the agent remembered", () =>
    Effect.gen(function*() {
      yield* AgentLoop.run(bot, { prompt: "one", memory })
      const result = yield* AgentLoop.run(bot, { prompt: "two", memory })
      assert.deepStrictEqual(brief(result.messages), [
        "user: one",
        'assistant: look#call_1({"what":"a"})',
        "tool: #call_1=saw a after ",
        "assistant: first",
        "user: two",
        'assistant: look#call_2({"what":"b"})',
        "tool: #call_2=saw b after a",
        "assistant: second"
      ])
      assert.deepStrictEqual(yield* stored, {
        messages: brief(result.messages),
        turns: 4,
        version: 4,
        seen: ["a", "b"],
        tokens: 5
      })
      assert.deepStrictEqual([Notes.from(result.context).seen, result.turns.length], [["a", "b"], 2])
    }).pipe(
      provided([call("look", { what: "a" })], "first", {
        says: [call("look", { what: "b" })],
        usage: { input: 5, output: 0 }
      }, "second")
    ))

  it.effect("MEM-04: keeps what was asked and every finished turn when the model fails", () =>
    Effect.gen(function*() {
      yield* Effect.flip(AgentLoop.run(bot, { prompt: "one", memory }))
      assert.deepStrictEqual((yield* stored).messages, [
        "user: one",
        'assistant: look#call_1({"what":"a"})',
        "tool: #call_1=saw a after "
      ])
      const result = yield* AgentLoop.run(bot, { prompt: "go on", memory })
      assert.deepStrictEqual(faults(result.messages), [])
      const first = yield* Effect.flip(AgentLoop.run(bot, { prompt: "asked in vain", memory }))
      assert.strictEqual(first._tag, "ModelFailed")
      assert.strictEqual((yield* stored).messages.at(-1), "user: asked in vain")
    }).pipe(provided([call("look", { what: "a" })], { fails: down }, "better", { fails: down })))

  /** A model that asks for a look, says half of its answer, and then goes no further. */
  const halfway = (end: Effect.Effect<never, AiError.AiError>) =>
    Provider.layer({
      ask: ({ messages }, sink) =>
        messages.at(-1)?.role === "tool"
          ? Effect.andThen(sink?.([{ type: "text", delta: "partial an" }]) ?? Effect.void, end)
          : Effect.succeed({
            content: [
              Prompt.makePart("tool-call", {
                id: "a",
                name: "look",
                params: '{"what":"A"}',
                providerExecuted: false
              })
            ],
            finish: "tool-calls",
            usage: Provider.unknownUsage
          })
    })

  const ends = {
    "is aborted": Effect.gen(function*() {
      const half = yield* Deferred.make<string>()
      const onText = (text: string) => Deferred.succeed(half, text)
      const fiber = yield* Effect.forkChild(
        Effect.provide(AgentLoop.run(bot, { prompt: "u1", memory, onText }), halfway(Effect.never))
      )
      const text = yield* Deferred.await(half)
      yield* Fiber.interrupt(fiber)
      return text
    }),
    fails: Effect.gen(function*() {
      const texts: Array<string> = []
      const onText = (text: string) => void texts.push(text)
      yield* Effect.flip(
        Effect.provide(AgentLoop.run(bot, { prompt: "u1", memory, onText }), halfway(Effect.fail(down)))
      )
      return texts.join()
    }),
    "is read by nobody any more": Stream.runLast(
      AgentLoop.stream(bot, { prompt: "u1", memory }).pipe(Stream.takeUntil(({ _tag }) => _tag === "TextDelta"))
    ).pipe(
      Effect.map((last) => last._tag === "Some" && last.value._tag === "TextDelta" ? last.value.delta : undefined),
      Effect.provide(halfway(Effect.never))
    )
  }

  for (const [how, ended] of Object.entries(ends)) {
    it.effect(`MEM-04: keeps its finished turns and no half of an answer when it ${how}, and the next goes on from there`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ended, "partial an")
        const { messages, seen } = yield* stored
        assert.deepStrictEqual([messages, seen], [
          ["user: u1", 'assistant: look#a({"what":"A"})', "tool: #a=saw A after "],
          ["A"]
        ])
        yield* AgentLoop.run(bot, { prompt: "go on", memory })
        const { requests } = yield* ScriptedModel.Script
        assert.deepStrictEqual(requests.map(({ messages }) => brief(messages)), [
          ["system: Be brief.", ...messages, "user: go on"]
        ])
        const after = yield* stored
        assert.deepStrictEqual([after.messages, after.seen], [
          [...messages, "user: go on", "assistant: better"],
          ["A"]
        ])
      }).pipe(provided("better")))
  }

  it.effect("MEM-02: does not begin where what was remembered is not what its slots are", () =>
    Effect.gen(function*() {
      const { append } = yield* Memory.Memory
      yield* append("t1", 0, {
        id: "1",
        messages: [Prompt.userMessage({ content: [Prompt.textPart({ text: "one" })] })],
        context: { version: 1, slots: { "test/ThreadNotes": { seen: "a" } } },
        usage: Usage.empty
      })
      const error = yield* Effect.flip(AgentLoop.run(bot, { prompt: "two", memory }))
      assert.deepStrictEqual(error._tag === "MemoryFailed" && [error.reason, error.message], [
        "unreadable",
        'memory of "t1": what the agent remembered does not fit the slots of its tools: ' +
        'Expected array at ["slots"]["test/ThreadNotes"]["seen"]'
      ])
      assert.deepStrictEqual([(yield* ScriptedModel.Script).requests, (yield* stored).messages], [[], ["user: one"]])
    }).pipe(provided("never said")))

  it.effect("SPEC-123: keeps the calls that finished when it is cancelled, and the next run works", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        AgentLoop.run(bot, {
          prompt: "one",
          memory,
          onToolCall: ({ event, tool }) =>
            event === "start" && tool === "wait" ? Deferred.succeed(asked, undefined) : undefined
        })
      )
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      const { messages, seen } = yield* stored
      assert.deepStrictEqual([messages.length, seen], [3, ["a"]])
      assert.match(messages[2] ?? "", /#call_1=saw a after {2}#call_2!This call was cancelled/)
      const result = yield* AgentLoop.run(bot, { prompt: "again", memory })
      assert.deepStrictEqual([result.text, faults(result.messages)], ["done", []])
    }).pipe(provided([call("look", { what: "a" }), call("wait")], "done")))

  it.effect("ends with a conflict when another writer was first, and nothing is interleaved", () =>
    Effect.gen(function*() {
      const inside = AgentLoop.run(bot, { prompt: "other", memory })
      const slow = Tool.make("slow", { handler: () => Effect.as(Effect.orDie(inside), "slow is done") })
      const tools = ToolRegistry.layer(slow).pipe(Layer.provide([Tools, ScriptedModel.layer("other answer")]))
      const error = yield* Effect.flip(AgentLoop.run(bot, { prompt: "mine", memory })).pipe(
        Effect.provide([tools, ScriptedModel.layer([call("slow")], "unreached")])
      )
      assert.strictEqual(error._tag, "ThreadConflict")
      assert.deepStrictEqual((yield* stored).messages, ["user: other", "assistant: other answer"])
    }).pipe(provided()))

  it.effect("SPEC-126: is not touched by a run without one", () =>
    Effect.gen(function*() {
      yield* AgentLoop.run(bot, { prompt: "one" })
      assert.deepStrictEqual((yield* stored).turns, 0)
    }).pipe(provided("done")))

  it.effect("rests where it pauses, and goes on there when it is resumed; another thread is refused", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      assert.deepStrictEqual((yield* stored).messages, [
        "user: pay",
        'assistant: look#call_1({"what":"a"})',
        "tool: #call_1=saw a after "
      ])
      const state: Pause.Encoded = JSON.parse(JSON.stringify(paused.state))
      const decisions = { call_2: Pause.approve }
      const elsewhere = yield* Effect.flip(AgentLoop.resume(bot, state, decisions, { memory: Memory.thread("t2") }))
      assert.deepStrictEqual(elsewhere._tag === "ResumeRefused" && [elsewhere.reason, ...elsewhere.problems], [
        "other-thread",
        'it rests in the thread "t1", and is resumed in the thread "t2"'
      ])
      const result = yield* AgentLoop.resume(bot, state, decisions, { memory })
      const { messages, seen, version } = yield* stored
      assert.deepStrictEqual([messages, seen, version], [brief(result.messages), ["a"], 3])
    }).pipe(provided([call("look", { what: "a" })], [call("pay")], "done")))

  it.effect("SPEC-148: that waits is forked without its pause, and the fork goes on without it", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      const { fork, load } = yield* Memory.Memory
      yield* fork("t1", "t2")
      const inFork = { memory: Memory.thread("t2") }
      const refused = yield* Effect.flip(AgentLoop.resume(bot, paused, { call_2: Pause.approve }, inFork))
      assert.deepStrictEqual(refused._tag === "ResumeRefused" && [refused.reason, ...refused.problems], [
        "other-thread",
        'it rests in the thread "t1", and is resumed in the thread "t2"'
      ])
      const { messages } = yield* stored
      const result = yield* AgentLoop.run(bot, { prompt: "never mind", ...inFork })
      assert.strictEqual(result._tag, "Completed")
      assert.deepStrictEqual([brief((yield* load("t2")).messages), (yield* stored).messages], [
        [...messages, "user: never mind", "assistant: fine"],
        messages
      ])
    }).pipe(provided([call("look", { what: "a" })], [call("pay")], "fine")))

  it.effect("SPEC-106: a pause is of the thread as it was: after another run, or taken back, nothing of it runs", () =>
    Effect.gen(function*() {
      const pauses = yield* PauseStore.PauseStore
      const { rollback } = yield* Memory.Memory
      const refusal = ({ pending, state }: AgentLoop.Paused) =>
        Effect.map(
          Effect.flip(AgentLoop.resume(bot, state, { [pending[0]?.id ?? ""]: Pause.approve }, { memory })),
          (error) => error._tag === "ResumeRefused" ? [error.reason, ...error.problems] : []
        )
      const first = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (first._tag !== "Paused") throw new Error(first._tag)
      yield* AgentLoop.run(bot, { prompt: "never mind", memory })
      assert.deepStrictEqual(yield* refusal(first), [
        "thread-changed",
        'it paused at version 1 of the thread "t1", which is at version 2 now'
      ])
      // Nothing of it was claimed.
      assert.strictEqual((yield* pauses.list).length, 1)
      yield* rollback("t1", 0)
      const second = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (second._tag !== "Paused") throw new Error(second._tag)
      yield* rollback("t1", 0)
      assert.deepStrictEqual((yield* refusal(second))[0], "thread-changed")
      assert.deepStrictEqual((yield* stored).messages, [])
    }).pipe(provided([call("pay")], "fine", [call("pay")]), Effect.provide(PauseStore.layerMemory)))

  it.effect("can be given up while a pause is looked at, and the pause still waits", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      const asked = yield* Deferred.make<void>()
      const slow = { ...memory, load: Effect.andThen(Deferred.succeed(asked, undefined), Effect.never) }
      const resuming = yield* Effect.forkChild(
        AgentLoop.resume(bot, paused, { call_1: Pause.approve }, { memory: slow })
      )
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(resuming)
      const result = yield* AgentLoop.resume(bot, paused, { call_1: Pause.approve }, { memory })
      assert.strictEqual(result.text, "done")
    }).pipe(provided([call("pay")], "done")))

  it.effect("goes on from a pause in its first turn", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "pay", memory })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      assert.deepStrictEqual((yield* stored).messages, ["user: pay"])
      const result = yield* AgentLoop.resume(bot, paused, { call_1: Pause.approve }, { memory })
      assert.deepStrictEqual((yield* stored).messages, brief(result.messages))
    }).pipe(provided([call("pay")], "done")))
})
