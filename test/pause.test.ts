// Who may run a call, and what becomes of a run that waits for somebody's decision?
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Gate from "toolfold/Gate"
import * as Pause from "toolfold/Pause"
import * as PauseStore from "toolfold/PauseStore"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { brief, faults, quiet } from "./utils.ts"

const { call } = ScriptedModel

class Log extends Context.Slots<Log>()("test/PauseLog", { seen: Context.list(Schema.String) }) {}

class Unpaid extends Schema.TaggedClass<Unpaid>()("Unpaid", { why: Schema.String }) {}

/** Tools that keep what they ran with. */
const shop = () => {
  const ran: Array<string> = []
  const note = (text: string) =>
    Effect.gen(function*() {
      const log = yield* Log
      yield* log.write({ seen: [text] })
      ran.push(text)
    })
  const pay = Tool.make("pay", {
    input: { amount: Schema.Finite },
    sensitive: true,
    handler: ({ amount }) => Effect.as(note(`pay ${amount}`), `paid ${amount}`)
  })
  const look = Tool.make("look", {
    input: { what: Schema.String },
    handler: ({ what }) => Effect.as(note(`look ${what}`), `saw ${what}`)
  })
  let isBroken = true
  const send = Tool.make("send", {
    input: { to: Schema.String },
    failure: Unpaid.pipe(Tool.failureClass("environment")),
    handler: ({ to }) =>
      Effect.flatMap(
        note(`send ${to}`),
        () => isBroken ? Effect.fail(new Unpaid({ why: "no licence" })) : Effect.succeed("sent")
      )
  })
  return {
    ran,
    repair: () => {
      isBroken = false
    },
    layer: ToolRegistry.layer(pay, look, send).pipe(Layer.provide(Log.layer))
  }
}

const bot = AgentLoop.make("bot", { instructions: "Be careful." })

const provided = (tools: ReturnType<typeof shop>, script: ReadonlyArray<ScriptedModel.Turn>) =>
  Effect.provide([tools.layer, ScriptedModel.layer(...script), quiet])

const pausedOf = (result: AgentLoop.Result): AgentLoop.Paused => {
  if (result._tag !== "Paused") throw new Error(`it ended as ${result._tag}`)
  return result
}

/** As another process would read it. */
const stored = (paused: AgentLoop.Paused): Pause.Encoded => JSON.parse(JSON.stringify(paused.state))

const told = (result: AgentLoop.Result) => result.turns.map(({ outcomes }) => outcomes.map(Turn.told))

describe("a call of a sensitive tool", () => {
  it.effect("SPEC-96 SPEC-108 APR-08: has the run pause, and nothing of its batch has run", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const result = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      assert.deepStrictEqual(tools.ran, [])
      assert.deepStrictEqual(result.pending, [{
        id: "call_2",
        name: "pay",
        input: { amount: 90 },
        agent: "bot",
        waitsFor: "approval",
        reason: 'the tool "pay" is sensitive: a call of it needs approval',
        seal: result.pending[0]?.seal ?? ""
      }])
      assert.deepStrictEqual([result.reason, result.turns.length, result.usage.calls], ["approval", 0, 1])
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        'assistant: look#call_1({"what":"price"}) pay#call_2({"amount":90})',
        "tool: #call_1!This call was cancelled: the run waits for a decision #call_2!This call was cancelled: the run waits for a decision"
      ])
    }).pipe(provided(tools, [[call("look", { what: "price" }), call("pay", { amount: 90 })]]))
  })

  it.effect("SPEC-104 SPEC-105 APR-05: runs once when another process approves it, with the rest of its batch, in call order", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const result = yield* AgentLoop.resume(bot, stored(paused), { call_2: Pause.approve })
      assert.deepStrictEqual(tools.ran, ["look price", "pay 90"])
      assert.deepStrictEqual([result._tag, result.text, told(result)], ["Completed", "done", [
        ["saw price", "paid 90"],
        []
      ]])
      assert.deepStrictEqual(faults(result.messages), [])
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        'assistant: look#call_1({"what":"price"}) pay#call_2({"amount":90})',
        "tool: #call_1=saw price #call_2=paid 90",
        "assistant: done"
      ])
      assert.deepStrictEqual(Log.from(result.context).seen, ["look price", "pay 90"])
      assert.deepStrictEqual([result.runId, result.usage.calls], [paused.runId, 2])
    }).pipe(provided(tools, [[call("look", { what: "price" }), call("pay", { amount: 90 })], "done"]))
  })

  it.effect("SPEC-97 SPEC-99: is rejected with a reason, or answered in its place, and does not run", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const result = yield* AgentLoop.resume(bot, paused, {
        call_1: Pause.reject("too expensive"),
        call_2: Pause.reply("it was paid by hand")
      })
      assert.deepStrictEqual(tools.ran, [])
      assert.deepStrictEqual(result.turns[0]?.outcomes, [
        { _tag: "Rejected", reason: "too expensive" },
        { _tag: "Replied", text: "it was paid by hand" }
      ])
      assert.strictEqual(
        brief(result.messages)[2],
        "tool: #call_1!This call was refused: too expensive #call_2=it was paid by hand"
      )
    }).pipe(provided(tools, [[call("pay", { amount: 1 }), call("pay", { amount: 2 })], "done"]))
  })

  it.effect("SPEC-100: is a question to the user, whose answer is its result and goes to the model", () => {
    let ran = 0
    const askUser = Tool.make("ask_user", {
      input: { question: Schema.String },
      sensitive: true,
      handler: () => Effect.sync(() => `asked ${++ran}`)
    })
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      assert.deepStrictEqual(paused.pending.map(({ input, name }) => [name, input]), [
        ["ask_user", { question: "Which city?" }]
      ])
      const result = yield* AgentLoop.resume(bot, stored(paused), { call_1: Pause.reply("Oslo") })
      const { requests } = yield* ScriptedModel.Script
      assert.deepStrictEqual(requests.map(({ messages }) => brief(messages)), [
        ["system: Be careful.", "user: go"],
        [
          "system: Be careful.",
          "user: go",
          'assistant: ask_user#call_1({"question":"Which city?"})',
          "tool: #call_1=Oslo"
        ]
      ])
      assert.deepStrictEqual([result._tag, result.text, ran], ["Completed", "It is grey in Oslo.", 0])
    }).pipe(
      Effect.provide(ToolRegistry.layer(askUser)),
      Effect.provide(ScriptedModel.layer([call("ask_user", { question: "Which city?" })], "It is grey in Oslo."))
    )
  })

  it.effect("SPEC-98: runs with the input that it was approved with, which the transcript then says", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const result = yield* AgentLoop.resume(bot, paused, { call_1: Pause.approveWith({ amount: 80 }) })
      assert.deepStrictEqual(tools.ran, ["pay 80"])
      assert.strictEqual(brief(result.messages)[1], 'assistant: pay#call_1({"amount":80})')
      assert.deepStrictEqual(result.turns[0]?.calls, [
        { id: "call_1", name: "pay", input: { amount: 80 }, repairs: ["edited when it was approved"] }
      ])
    }).pipe(provided(tools, [[call("pay", { amount: 90 })], "done"]))
  })

  it.effect("cannot be approved with an input that does not fit, and does not run with one that its gate rejects", () => {
    const tools = shop()
    const gate: Gate.Gate = (asked) =>
      Effect.succeed(
        Reflect.get(Object(asked.input), "amount") === 1_000 ? Gate.reject("over the limit") : Gate.pause("a payment")
      )
    const careful = AgentLoop.make("careful", { gate })
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(careful, { prompt: "go" }))
      const approved = (input: Schema.Json) => AgentLoop.resume(careful, paused, { call_1: Pause.approveWith(input) })
      const refused = yield* Effect.flip(approved({ amount: "much" }))
      assert.deepStrictEqual(refused._tag === "ResumeRefused" && [refused.reason, ...refused.problems], [
        "decisions",
        "the input of call call_1: The arguments do not fit:\n" +
        '- amount: Expected number, got string "much"\nCorrect them and call again.'
      ])
      const result = yield* approved({ amount: 1_000 })
      assert.deepStrictEqual(tools.ran, [])
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{ _tag: "Rejected", reason: "over the limit" }])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })], "done"]))
  })

  it.effect("SPEC-107: runs unasked where the gate allows everything", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const result = yield* AgentLoop.run(AgentLoop.make("bold", { gate: Gate.allow }), { prompt: "go" })
      assert.deepStrictEqual([result._tag, tools.ran], ["Completed", ["pay 90"]])
    }).pipe(provided(tools, [[call("pay", { amount: 90 })], "done"]))
  })

  it.effect("APR-08: waits whatever reason the model gives for stopping, and in a stream", () => {
    const tools = shop()
    const asks = [call("pay", { amount: 90 })]
    return Effect.gen(function*() {
      const stopped = yield* AgentLoop.run(bot, { prompt: "go" })
      const last = yield* Stream.runLast(AgentLoop.stream(bot, { prompt: "go" }))
      const streamed = last._tag === "Some" && last.value._tag === "Result" ? last.value.result : undefined
      assert.deepStrictEqual([stopped._tag, streamed?._tag, tools.ran], ["Paused", "Paused", []])
    }).pipe(provided(tools, [{ says: asks, finish: "stop" }, asks]))
  })

  it.effect("APR-08: does not run under a name that is almost its own", () => {
    const tools = shop()
    const names = ["Pay", "functions.pay", "pay "]
    return Effect.gen(function*() {
      const result = yield* AgentLoop.run(bot, { prompt: "go" })
      assert.deepStrictEqual([result._tag, tools.ran], ["Completed", []])
      assert.deepStrictEqual(
        told(result)[0],
        names.map((name) => `There is no tool named ${JSON.stringify(name)}. The tools are: look, pay, send.`)
      )
    }).pipe(provided(tools, [names.map((name) => call(name, { amount: 90 })), "done"]))
  })

  it.effect("SPEC-106: a new run on the transcript of a paused one closes what waits, and completes", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const { messages } = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const result = yield* AgentLoop.run(bot, { messages, prompt: "never mind" })
      assert.deepStrictEqual([result._tag, tools.ran, faults(result.messages)], ["Completed", [], []])
    }).pipe(provided(tools, [[call("pay", { amount: 90 })], "fine"]))
  })
})

describe("a resume", () => {
  const refusal = (given: unknown, decisions: Pause.Decisions, agent: AgentLoop.Agent = bot) =>
    Effect.map(
      Effect.flip(AgentLoop.resume(agent, given as Pause.Encoded, decisions)),
      (error) => error._tag === "ResumeRefused" ? [error.reason, ...error.problems] : [error._tag]
    )

  it.effect("SPEC-99: is refused for decisions that are partial, forged or of another kind, and then still waits", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const state = stored(paused)
      assert.deepStrictEqual(yield* refusal(state, {}), [
        "decisions",
        "call call_1 waits and has no decision",
        "call call_2 waits and has no decision"
      ])
      assert.deepStrictEqual(yield* refusal(state, { call_1: Pause.approve, call_9: Pause.approve }), [
        "decisions",
        'no call "call_9" waits',
        "call call_2 waits and has no decision"
      ])
      assert.deepStrictEqual(yield* refusal(state, { call_1: Pause.retry, call_2: Pause.approve }), [
        "decisions",
        "call call_1 waits for approval, to which Retry is no answer"
      ])
      const wordless = { call_1: { _tag: "Reply" } as Pause.Decision, call_2: Pause.approve }
      assert.deepStrictEqual(yield* refusal(state, wordless), [
        "decisions",
        "what was said of call call_1 is no decision"
      ])
      const inherited = Object.create({ call_1: Pause.approve, call_2: Pause.approve })
      assert.strictEqual((yield* refusal(state, inherited))[0], "decisions")
      assert.deepStrictEqual(tools.ran, [])
      yield* AgentLoop.resume(bot, state, { call_1: Pause.approve, call_2: Pause.reject("no") })
      assert.deepStrictEqual(tools.ran, ["pay 1"])
    }).pipe(provided(tools, [[call("pay", { amount: 1 }), call("pay", { amount: 2 })], "done"]))
  })

  it.effect("APR-03: decides all of a mixed batch or nothing of it, and every call of it runs once", () => {
    const tools = shop()
    const batch = [
      call("look", { what: "price" }, "a"),
      call("pay", { amount: 1 }, "b"),
      call("pay", { amount: 2 }, "c"),
      call("pay", { amount: 3 }, "d")
    ]
    return Effect.gen(function*() {
      const { requests } = yield* ScriptedModel.Script
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const some = { b: Pause.approve, c: Pause.reject("too expensive") }
      assert.deepStrictEqual(yield* refusal(stored(paused), some), [
        "decisions",
        "call d waits and has no decision"
      ])
      assert.deepStrictEqual([tools.ran, requests.length], [[], 1])
      const result = yield* AgentLoop.resume(bot, stored(paused), { ...some, d: Pause.approve })
      assert.deepStrictEqual([result._tag, tools.ran, requests.length], [
        "Completed",
        ["look price", "pay 1", "pay 3"],
        2
      ])
      assert.strictEqual(
        brief(result.messages)[2],
        "tool: #a=saw price #b=paid 1 #c!This call was refused: too expensive #d=paid 3"
      )
    }).pipe(provided(tools, [batch, "done"]))
  })

  it.effect("is refused a second time, also beside the first", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const resumes = yield* Effect.all(
        [1, 2, 3].map(() => Effect.exit(AgentLoop.resume(bot, stored(paused), { call_1: Pause.approve }))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(resumes.map(Exit.isSuccess), [true, false, false])
      assert.deepStrictEqual(tools.ran, ["pay 1"])
      assert.deepStrictEqual(yield* refusal(paused, { call_1: Pause.approve }), ["used", "it was resumed before"])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })], "done"]), Effect.provide(PauseStore.layerMemory))
  })

  it.effect("is refused where agent, tool, schema or input is not what it was, or the state is damaged", () => {
    const tools = shop()
    const other = Tool.make("pay", {
      input: { amount: Schema.String },
      sensitive: true,
      handler: () => Effect.succeed("paid")
    })
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const decisions = { call_1: Pause.approve }
      const text = JSON.stringify(paused.state)
      const changed = "call call_1: the tool pay, its schema or the input is not what it was"
      assert.deepStrictEqual(yield* refusal(paused, decisions, AgentLoop.make("another")), [
        "other-agent",
        'it is of the agent "bot", not "another"'
      ])
      assert.deepStrictEqual(yield* refusal(JSON.parse(text.replaceAll('"amount":1', '"amount":9')), decisions), [
        "tool-changed",
        changed
      ])
      for (const registry of [ToolRegistry.layer(other), ToolRegistry.layer()]) {
        assert.deepStrictEqual(yield* Effect.provide(refusal(paused, decisions), registry), ["tool-changed", changed])
      }
      for (
        const damaged of [
          null,
          7,
          {},
          JSON.parse(text.replace('"version":1', '"version":2')),
          JSON.parse(text.replace("user", "nobody"))
        ]
      ) {
        assert.strictEqual((yield* refusal(damaged, decisions))[0], "unreadable")
      }
      const huge = { ...JSON.parse(text), instructions: "x".repeat(17_000_000) }
      assert.strictEqual((yield* refusal(huge, decisions))[0], "unreadable")
      assert.deepStrictEqual(tools.ran, [])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })]]))
  })

  it.effect("APR-05: that is refused for a tool leaves the pause to be looked at, and resumed where the tool is there", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const store = yield* PauseStore.PauseStore
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const before = yield* store.list
      const refused = yield* Effect.provide(refusal(paused, { call_1: Pause.approve }), ToolRegistry.layer())
      assert.strictEqual(refused[0], "tool-changed")
      assert.deepStrictEqual(yield* store.list, before)
      const state = yield* store.get(before[0]?.id ?? "")
      assert.deepStrictEqual(state, paused.state)
      const result = yield* AgentLoop.resume(bot, state ?? null, { call_1: Pause.approve })
      assert.deepStrictEqual([result._tag, tools.ran, yield* store.list], ["Completed", ["pay 1"], []])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })], "done"]), Effect.provide(PauseStore.layerMemory))
  })

  it.effect("SPEC-45 APR-07: keeps usage, turns and slots of the run", () => {
    const tools = shop()
    const usage = { input: 1_000, output: 50 }
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      assert.strictEqual(paused.usage.totalTokens, 2_100)
      const result = yield* AgentLoop.resume(bot, stored(paused), { call_2: Pause.approve })
      assert.deepStrictEqual([result.usage.inputTokens, result.usage.outputTokens, result.usage.calls], [3_000, 150, 3])
      assert.deepStrictEqual(result.turns.map(({ index }) => index), [0, 1, 2])
      assert.deepStrictEqual(Log.from(result.context).seen, ["look a", "pay 1"])
    }).pipe(provided(tools, [
      { says: [call("look", { what: "a" })], usage },
      { says: [call("pay", { amount: 1 })], usage },
      { says: ["done"], usage }
    ]))
  })

  it.effect("SPEC-45 APR-07: keeps the errors in a row, so that one more may be the last", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const result = yield* AgentLoop.resume(bot, stored(paused), { call_5: Pause.reject("not now") })
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit, result.turns.length], [
        "LimitReached",
        "tool-errors",
        3
      ])
    }).pipe(provided(tools, [
      ["a", "b", "c", "d"].map((to) => call("send", { to })),
      [call("pay", { amount: 1 })],
      [call("send", { to: "e" })]
    ]))
  })

  it.effect("lists what waits from the store alone", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const store = yield* PauseStore.PauseStore
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const [waiting] = yield* store.list
      assert.deepStrictEqual(waiting, {
        id: waiting?.id ?? "",
        agent: "bot",
        runId: paused.runId,
        reason: "approval",
        pending: paused.pending
      })
      const state = yield* store.get(waiting?.id ?? "")
      yield* AgentLoop.resume(bot, state ?? null, { call_1: Pause.approve })
      assert.deepStrictEqual([tools.ran, yield* store.list], [["pay 1"], []])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })], "done"]), Effect.provide(PauseStore.layerMemory))
  })
})

describe("a state that somebody else put together", () => {
  it.effect("is refused where it contradicts itself", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(bot, { prompt: "go" }))
      const forged = (change: (state: any) => void) => {
        const state = JSON.parse(JSON.stringify(paused.state))
        change(state)
        return Effect.map(
          Effect.flip(AgentLoop.resume(bot, state, { call_1: Pause.approve })),
          (error) => error._tag === "ResumeRefused" ? [error.reason, error.problems[0]] : [error._tag]
        )
      }
      const results = yield* Effect.all([
        forged((state) =>
          state.places.push({ ...state.places[0], call: { ...state.places[0].call, input: { amount: 9 } } })
        ),
        forged((state) => {
          state.pending = []
          state.places[0].isAllowed = true
        }),
        forged((state) => {
          state.id = "another"
        }),
        forged((state) => {
          state.places[0].call.name = "refund"
        }),
        forged((state) => {
          state.said.content = []
        })
      ])
      assert.deepStrictEqual(results, [
        ["unreadable", "two calls have one id"],
        ["unreadable", "nothing waits"],
        ["unreadable", "its id is not that of the run"],
        ["unreadable", "call call_1 waits and is not there"],
        ["unreadable", "its calls are not those that the model asked for"]
      ])
      assert.deepStrictEqual(tools.ran, [])
    }).pipe(provided(tools, [[call("pay", { amount: 1 })]]))
  })
})

describe("calls that failed because of their environment", () => {
  const patient = AgentLoop.make("patient", { onEnvironmentError: "pause" })
  const script = [[call("look", { what: "a" }), call("send", { to: "b" }), call("look", { what: "c" })], "done"]

  it.effect("SPEC-102 SPEC-104: have the run pause after the batch, and run again alone, in their place", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const paused = pausedOf(yield* AgentLoop.run(patient, { prompt: "go" }))
      assert.deepStrictEqual([paused.reason, paused.pending.map(({ id }) => id)], ["environment", ["call_2"]])
      assert.deepStrictEqual(tools.ran, ["look a", "send b", "look c"])
      tools.repair()
      const result = yield* AgentLoop.resume(patient, stored(paused), { call_2: Pause.retry })
      assert.deepStrictEqual(tools.ran, ["look a", "send b", "look c", "send b"])
      assert.deepStrictEqual([result._tag, told(result)[0]], ["Completed", ["saw a", "sent", "saw c"]])
      assert.deepStrictEqual(Log.from(result.context).seen, ["look a", "send b", "look c"])
      assert.deepStrictEqual(faults(result.messages), [])
    }).pipe(provided(tools, script))
  })

  it.effect("SPEC-101: refuse a reply, and pause again when they fail again", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const first = pausedOf(yield* AgentLoop.run(patient, { prompt: "go" }))
      const refused = yield* Effect.flip(AgentLoop.resume(patient, first, { call_2: Pause.reply("sent by hand") }))
      assert.strictEqual(refused._tag === "ResumeRefused" && refused.reason, "decisions")
      const second = pausedOf(yield* AgentLoop.resume(patient, first, { call_2: Pause.retry }))
      const result = yield* AgentLoop.resume(patient, second, { call_2: Pause.proceed })
      assert.deepStrictEqual(tools.ran, ["look a", "send b", "look c", "send b"])
      assert.match(String(told(result)[0]?.[1]), /no licence/)
      assert.strictEqual(result._tag, "Completed")
    }).pipe(provided(tools, script))
  })

  it.effect("SPEC-103: are told to the model without a pause by default", () => {
    const tools = shop()
    return Effect.gen(function*() {
      const result = yield* AgentLoop.run(bot, { prompt: "go" })
      assert.strictEqual(result._tag, "Completed")
    }).pipe(provided(tools, script))
  })
})

describe("a gate", () => {
  it.effect("is asked for each call that fits, in call order, before anything runs", () => {
    const tools = shop()
    const asked: Array<unknown> = []
    const gate: Gate.Gate = ({ id, input, name }, { calls, turn }) =>
      Effect.sync(() => {
        asked.push([id, name, input, calls.length, turn, tools.ran.length])
        return Gate.proceed
      })
    return Effect.gen(function*() {
      const result = yield* AgentLoop.run(AgentLoop.make("gated", { gate }), { prompt: "go" })
      assert.deepStrictEqual(asked, [
        ["call_1", "look", { what: "a" }, 4, 0, 0],
        ["call_4", "pay", { amount: 5 }, 4, 0, 0]
      ])
      assert.deepStrictEqual(tools.ran, ["look a", "pay 5"])
      assert.deepStrictEqual(
        result.turns[0]?.outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag),
        [
          "Success",
          "invalid-input",
          "unknown-tool",
          "Success"
        ]
      )
    }).pipe(provided(tools, [
      [
        call("look", { what: "a" }),
        call("look", { what: { no: "text" } }),
        call("nothing"),
        call("pay", { amount: "5" })
      ],
      "done"
    ]))
  })

  it.effect("SPEC-109: rejects, answers and edits calls, and each says so in the transcript", () => {
    const tools = shop()
    const gate: Gate.Gate = ({ input, name }) => {
      if (name === "look") return Effect.succeed(Gate.reply("it is 90"))
      const { amount } = input as { readonly amount: number }
      return Effect.succeed(
        amount > 100 ? Gate.reject("too much") : amount > 50 ? Gate.edit({ amount: 50 }) : Gate.proceed
      )
    }
    return Effect.gen(function*() {
      const result = yield* AgentLoop.run(AgentLoop.make("gated", { gate }), { prompt: "go" })
      assert.deepStrictEqual(tools.ran, ["pay 50"])
      assert.deepStrictEqual(told(result)[0], ["it is 90", "This call was refused: too much", "paid 50"])
      assert.deepStrictEqual(result.turns[0]?.calls[2]?.repairs, ["edited by a gate"])
    }).pipe(provided(tools, [
      [call("look", { what: "a" }), call("pay", { amount: 500 }), call("pay", { amount: 90 })],
      "done"
    ]))
  })

  it.effect("SPEC-68: may take its time, which no timeout of a tool counts", () => {
    const gate: Gate.Gate = () => Effect.delay(Effect.succeed(Gate.proceed), "1 hour")
    const quick = Tool.make("quick", {
      timeout: "1 second",
      handler: () => Effect.delay(Effect.succeed("in time"), "900 millis")
    })
    return Effect.gen(function*() {
      const running = yield* Effect.forkChild(AgentLoop.run(AgentLoop.make("gated", { gate }), { prompt: "go" }))
      yield* TestClock.adjust("2 hours")
      const result = yield* Fiber.join(running)
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{ _tag: "Success", value: "in time", writes: [] }])
    }).pipe(Effect.provide([ToolRegistry.layer(quick), ScriptedModel.layer([call("quick")], "done")]))
  })

  it.effect("CON-08: that pauses one call has the run wait until all are gated, and nothing starts afterwards", () => {
    const tools = shop()
    const happened: Array<string> = []
    const gate: Gate.Gate = ({ id }) =>
      Effect.sync(() => {
        happened.push(id)
        return id === "call_1" ? Gate.pause("who knows") : Gate.proceed
      }).pipe(Effect.delay(id === "call_1" ? "10 millis" : "100 millis"))
    return Effect.gen(function*() {
      const running = yield* Effect.forkChild(
        Effect.map(AgentLoop.run(AgentLoop.make("gated", { gate }), { prompt: "go" }), ({ _tag }) => {
          happened.push(_tag)
        })
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([happened, tools.ran], [["call_1", "call_2", "Paused"], []])
    }).pipe(provided(tools, [[call("look", { what: "a" }), call("send", { to: "b" })]]))
  })

  it.effect("that fails, dies or never stops editing refuses the call", () => {
    const tools = shop()
    let amount = 10
    const gates: ReadonlyArray<Gate.Gate> = [
      () => Effect.fail("down"),
      () => Effect.die("broken"),
      () => Effect.sync(() => Gate.edit({ amount: ++amount }))
    ]
    return Effect.gen(function*() {
      for (const gate of gates) {
        const result = yield* AgentLoop.run(AgentLoop.make("gated", { gate }), { prompt: "go" })
        assert.deepStrictEqual(result.turns[0]?.outcomes.map(({ _tag }) => _tag), ["Rejected"])
      }
      assert.deepStrictEqual(tools.ran, [])
    }).pipe(provided(tools, gates.flatMap(() => [[call("pay", { amount: 1 })], "done"])))
  })
})

describe("random batches and decisions", () => {
  const steady = AgentLoop.make("steady", { maxConsecutiveToolErrors: Infinity, maxTurns: Infinity })

  const small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
  const aCase = Arbitrary.schema(Schema.Struct({
    batches: Schema.Array(
      Schema.Array(Schema.Struct({ isPay: Schema.Boolean, amount: small })).check(Schema.isMaxLength(4))
    )
      .check(Schema.isMaxLength(3)),
    choices: Schema.Array(Schema.Literals(["approve", "edit", "bad edit", "reject", "reply"])).check(
      Schema.isMinLength(1)
    ),
    forged: Schema.Boolean
  }))

  it.effect(
    "run no call without a yes, no approved call twice, and leave a valid transcript at every pause and end",
    () =>
      Effect.gen(function*() {
        const seed = Number(process.env["SEED"] ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
        // oxlint-disable-next-line no-console -- a failure must be found again
        console.log(`seed ${seed}, 500 cases (again: SEED=${seed})`)
        const result = yield* Arbitrary.checkEffect(aCase, ({ batches, choices, forged }) => {
          const tools = shop()
          let amount = 0
          const script = batches.filter((batch) => batch.length > 0).map((batch) =>
            batch.map(({ isPay }) => isPay ? call("pay", { amount: ++amount }) : call("look", { what: `${++amount}` }))
          )
          const wanted = script.flat().flatMap(({ call, params }) =>
            call === "look" ? [`look ${Reflect.get(Object(params), "what")}`] : []
          )
          return Effect.gen(function*() {
            let at = 0
            let ended = yield* AgentLoop.run(steady, { prompt: "go" })
            while (ended._tag === "Paused") {
              assert.deepStrictEqual(faults(ended.messages), [])
              const before = tools.ran.length
              if (forged) {
                const partial = yield* Effect.exit(AgentLoop.resume(steady, stored(ended), {}))
                assert.isTrue(Exit.isFailure(partial))
                assert.strictEqual(tools.ran.length, before)
              }
              const decisions: Record<string, Pause.Decision> = {}
              for (const { id, input } of ended.pending) {
                const { amount } = input as { readonly amount: number }
                switch (choices[at++ % choices.length]) {
                  case "approve":
                    decisions[id] = Pause.approve
                    wanted.push(`pay ${amount}`)
                    break
                  case "edit":
                    decisions[id] = Pause.approveWith({ amount: amount + 1_000 })
                    wanted.push(`pay ${amount + 1_000}`)
                    break
                  case "bad edit": {
                    const others = Object.fromEntries(ended.pending.map(({ id }) => [id, Pause.approve]))
                    const bad = { ...others, [id]: Pause.approveWith({ amount: {} }) }
                    assert.isTrue(Exit.isFailure(yield* Effect.exit(AgentLoop.resume(steady, stored(ended), bad))))
                    assert.strictEqual(tools.ran.length, before)
                    decisions[id] = Pause.reject("it cannot be paid")
                    break
                  }
                  case "reject":
                    decisions[id] = Pause.reject("no")
                    break
                  default:
                    decisions[id] = Pause.reply("done by hand")
                }
              }
              const state = stored(ended)
              const next: AgentLoop.Result = yield* AgentLoop.resume(steady, state, decisions)
              assert.isTrue(Exit.isFailure(yield* Effect.exit(AgentLoop.resume(steady, state, decisions))))
              ended = next
            }
            assert.deepStrictEqual([ended._tag, faults(ended.messages)], ["Completed", []])
            assert.deepStrictEqual(tools.ran.toSorted(), wanted.toSorted())
            return true
          }).pipe(provided(tools, [...script, "done"]), Effect.provide(PauseStore.layerMemory))
        }, { runs: 500, seed })
        const failure = Arbitrary.formatCheckFailure(result)
        if (failure !== undefined) assert.fail(failure)
      }),
    120_000
  )
})
