// What is an agent as a tool of another? A run of its own that spends, waits and ends with the run around it.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Services from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Budget from "toolfold/Budget"
import * as Context from "toolfold/Context"
import * as Pause from "toolfold/Pause"
import * as PauseStore from "toolfold/PauseStore"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { brief, faults, quiet } from "./utils.ts"

const { call } = ScriptedModel

const scripted = (...script: ReadonlyArray<ScriptedModel.Turn>) => ScriptedModel.layer(...script)

/** A boss whose one tool is another agent. */
const boss = AgentLoop.make("boss")

const within = <T extends Tool.Any>(
  tool: T,
  inner: Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>
) => Layer.provide(ToolRegistry.layer(tool), inner)

const told = (result: AgentLoop.Result) => result.turns.map(({ outcomes }) => outcomes.map(Turn.told))

const json = (paused: AgentLoop.Paused): Pause.Encoded => JSON.parse(JSON.stringify(paused.state))

describe("an agent as a tool", () => {
  it.effect("has a transcript of its own, and gives its answer", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const look = Tool.make("look", { handler: () => Effect.sync(() => (ran.push("look"), "seen")) })
      const helper = AgentLoop.make("helper", { model: scripted([call("look")], "it was seen") })
      const tools = within(AgentLoop.asTool(helper, { description: "Helps" }), ToolRegistry.layer(look))
      const result = yield* AgentLoop.run(boss, { prompt: "go" }).pipe(
        Effect.provide([tools, scripted([call("helper", { prompt: "look there" })], "done")])
      )
      assert.deepStrictEqual([ran, told(result)], [["look"], [["it was seen"], []]])
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        'assistant: helper#call_1({"prompt":"look there"})',
        "tool: #call_1=it was seen",
        "assistant: done"
      ])
    }))

  it.effect("SPEC-56: has a concurrency and slots of its own, and sees the references of the application", () =>
    Effect.gen(function*() {
      class Memo extends Context.Slots<Memo>()("test/Memo", { notes: Context.list(Schema.String) }) {}
      const Locale = Services.Reference<string>("test/Locale", { defaultValue: () => "en" })
      const saw: Array<unknown> = []
      const met = { one: yield* Deferred.make<void>(), two: yield* Deferred.make<void>() }
      const meets = (name: keyof typeof met, other: keyof typeof met) =>
        Tool.make(name, {
          handler: () =>
            Effect.gen(function*() {
              yield* Deferred.succeed(met[name], undefined)
              yield* Deferred.await(met[other])
              const memo = yield* Memo
              yield* memo.write({ notes: [name] })
              saw.push([yield* Locale, memo.get("notes")])
              return name
            })
        })
      const note = Tool.make("note", {
        handler: () => Effect.flatMap(Memo, (memo) => Effect.as(memo.write({ notes: ["outer"] }), "noted"))
      })
      const helper = AgentLoop.make("helper", { model: scripted([call("one"), call("two")], "met") })
      const tools = ToolRegistry.merge(
        within(
          AgentLoop.asTool(helper, { description: "" }),
          Layer.provide(ToolRegistry.layer(meets("one", "two"), meets("two", "one")), Memo.layer)
        ),
        Layer.provide(ToolRegistry.layer(note), Memo.layer)
      )
      const result = yield* AgentLoop.run(AgentLoop.make("boss", { concurrency: "sequential" }), { prompt: "go" }).pipe(
        Effect.provide([tools, scripted([call("note")], [call("helper", { prompt: "a" })], "done")]),
        Effect.provideService(Locale, "nb")
      )
      assert.deepStrictEqual(told(result), [["noted"], ["met"], []])
      assert.deepStrictEqual(saw, [["nb", []], ["nb", []]])
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["outer"] })
    }))

  it.effect("takes what it says, is asked what is made of that, and gives the form of its answers", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const model = Provider.layer({
        ask: ({ messages }) => {
          asked.push(...brief(messages))
          return Effect.succeed({
            content: [{ ...blank, text: '{"degrees":3}' }],
            finish: "stop",
            usage: Provider.unknownUsage
          })
        }
      })
      const weather = AgentLoop.make("weather", { model, output: Schema.Struct({ degrees: Schema.Finite }) })
      const tool = AgentLoop.asTool(weather, {
        name: "get_weather",
        description: "Weather of a city",
        input: { city: Schema.String },
        prompt: ({ city }) => `How warm is ${city}?`
      })
      const result = yield* AgentLoop.run(boss, { prompt: "go" }).pipe(
        Effect.provide([within(tool, ToolRegistry.layer()), scripted([call("get_weather", { city: "Oslo" })], "done")])
      )
      assert.deepStrictEqual([asked, told(result)[0]], [["user: How warm is Oslo?"], [{ degrees: 3 }]])
    }))

  it.effect("that comes to no answer is a failure that says why, and nothing of an error that is not the model's business", () =>
    Effect.gen(function*() {
      const down = AiError.make({
        module: "T",
        method: "m",
        reason: new AiError.InternalProviderError({ description: "key=1" })
      })
      const endless = AgentLoop.make("endless", { model: scripted({ says: ["hm", call("look")] }), maxTurns: 1 })
      const broken = AgentLoop.make("broken", { model: scripted({ fails: down }) })
      const look = Tool.make("look", { handler: () => Effect.succeed("seen") })
      const tools = ToolRegistry.merge(
        within(AgentLoop.asTool(endless, { description: "" }), ToolRegistry.layer(look)),
        within(AgentLoop.asTool(broken, { description: "" }), ToolRegistry.layer())
      )
      const result = yield* AgentLoop.run(boss, { prompt: "go" }).pipe(
        Effect.provide([
          tools,
          scripted([call("endless", { prompt: "a" }), call("broken", { prompt: "b" })], "done"),
          quiet
        ])
      )
      assert.deepStrictEqual(told(result)[0], [
        '{"_tag":"AgentStopped","agent":"endless","why":"it reached its limit: turns","text":"hm"}',
        '{"_tag":"AgentStopped","agent":"broken","why":"it failed","text":""}'
      ])
    }))

  it.effect("counts for the usage of the run around it, by agent and model", () =>
    Effect.gen(function*() {
      const usage = { input: 10, output: 5 }
      const helper = AgentLoop.make("helper", { model: scripted({ says: ["a"], usage, model: "small" }) })
      const tools = within(AgentLoop.asTool(helper, { description: "" }), ToolRegistry.layer())
      const result = yield* AgentLoop.run(boss, { prompt: "go" }).pipe(
        Effect.provide([
          tools,
          scripted(
            { says: [call("helper", { prompt: "a" })], usage, model: "large" },
            { says: ["done"], usage, model: "large" }
          )
        ])
      )
      const spent = (calls: number) => [calls, 15 * calls]
      const shown = (
        usage: { readonly calls: number; readonly totalTokens: number } | undefined
      ) => [usage?.calls, usage?.totalTokens]
      const { byAgent, byModel } = result.usage
      assert.deepStrictEqual(
        [result.usage, byModel["small"], byModel["large"], byAgent?.["boss"], byAgent?.["helper"]].map(shown),
        [spent(3), spent(1), spent(2), spent(2), spent(1)]
      )
    }))

  it.effect("SPEC-89: is seen by whoever watches the run around it, with the way to it", () =>
    Effect.gen(function*() {
      const look = Tool.make("look", { handler: () => Effect.succeed("seen") })
      const inner = AgentLoop.make("inner", { model: scripted([call("look")], "deep") })
      const middle = AgentLoop.make("middle", { model: scripted([call("inner", { prompt: "b" })], "mid") })
      const innerTool = within(AgentLoop.asTool(inner, { description: "" }), ToolRegistry.layer(look))
      const tools = within(AgentLoop.asTool(middle, { description: "" }), innerTool)
      const events = yield* Stream.runCollect(AgentLoop.stream(boss, { prompt: "go" })).pipe(
        Effect.provide([tools, scripted([call("middle", { prompt: "a" })], "done")])
      )
      const shown = events.flatMap((event) => {
        if (event._tag === "Result") return []
        return [[...event.path.map(({ agent, callId }) => `${agent}(${callId})`), event._tag].join("/")]
      })
      assert.deepStrictEqual(shown, [
        "RunStart",
        "TurnStart",
        "InputDelta",
        "CallStart",
        "middle(call_1)/RunStart",
        "middle(call_1)/TurnStart",
        "middle(call_1)/InputDelta",
        "middle(call_1)/CallStart",
        "middle(call_1)/inner(call_1)/RunStart",
        "middle(call_1)/inner(call_1)/TurnStart",
        "middle(call_1)/inner(call_1)/InputDelta",
        "middle(call_1)/inner(call_1)/CallStart",
        "middle(call_1)/inner(call_1)/CallEnd",
        "middle(call_1)/inner(call_1)/TurnEnd",
        "middle(call_1)/inner(call_1)/TurnStart",
        "middle(call_1)/inner(call_1)/TextDelta",
        "middle(call_1)/inner(call_1)/TurnEnd",
        "middle(call_1)/inner(call_1)/RunEnd",
        "middle(call_1)/CallEnd",
        "middle(call_1)/TurnEnd",
        "middle(call_1)/TurnStart",
        "middle(call_1)/TextDelta",
        "middle(call_1)/TurnEnd",
        "middle(call_1)/RunEnd",
        "CallEnd",
        "TurnEnd",
        "TurnStart",
        "TextDelta",
        "TurnEnd",
        "RunEnd"
      ])
      assert.deepStrictEqual(
        events.flatMap((event) => event._tag === "Result" ? [] : [event.seq]),
        shown.map((_, at) => at)
      )
    }))

  it.effect("ends with the run around it", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      let stopped = false
      const wait = Tool.make("wait", {
        handler: () =>
          Effect.onInterrupt(Effect.andThen(Deferred.succeed(started, undefined), Effect.never), () =>
            Effect.sync(() => {
              stopped = true
            }))
      })
      const helper = AgentLoop.make("helper", { model: scripted([call("wait")]) })
      const tools = within(AgentLoop.asTool(helper, { description: "" }), ToolRegistry.layer(wait))
      const fiber = yield* Effect.forkChild(
        AgentLoop.run(boss, { prompt: "go" }).pipe(Effect.provide([tools, scripted([call("helper", { prompt: "a" })])]))
      )
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(stopped)
    }))
})

const blank = { "~effect/ai/Prompt/Part": "~effect/ai/Prompt/Part", type: "text", text: "", options: {} } as const

const callPart = (name: string, id: string, params: string) => ({
  "~effect/ai/Prompt/Part": "~effect/ai/Prompt/Part" as const,
  type: "tool-call" as const,
  id,
  name,
  params,
  providerExecuted: false,
  options: {}
})

describe("a budget", () => {
  /** A model that counts its requests, asks for calls of these tools while it may, and then answers. */
  const counting = (seen: { requests: number }, ...tools: ReadonlyArray<string>) =>
    Provider.layer({
      ask: ({ messages }) =>
        Effect.map(Effect.yieldNow, () => {
          seen.requests++
          const isDone = messages.length > 6 || tools.length === 0
          const calls = tools.map((name, at) =>
            callPart(name, `${messages.length}-${at}`, `{"prompt":"${messages.length}"}`)
          )
          return {
            content: isDone ? [{ ...blank, text: "done" }] : calls,
            finish: isDone ? "stop" as const : "tool-calls" as const,
            usage: { ...Provider.unknownUsage, inputTokens: { ...Provider.unknownUsage.inputTokens, total: 1 } }
          }
        })
    })

  it.effect("SPEC-132: of 20 requests holds for a tree of three agents in eight runs at once", () =>
    Effect.gen(function*() {
      const seen = { requests: 0 }
      const leaf = AgentLoop.make("leaf", { model: counting(seen) })
      const middle = AgentLoop.make("middle", { model: counting(seen, "leaf", "leaf") })
      const leafTool = within(AgentLoop.asTool(leaf, { description: "" }), ToolRegistry.layer())
      const tools = within(AgentLoop.asTool(middle, { description: "" }), leafTool)
      const budget = Budget.make({ requests: 20 })
      const top = AgentLoop.make("top", { model: counting(seen, "middle"), budget, maxRepeats: Infinity })
      const results = yield* Effect.forEach(
        Array.from({ length: 8 }),
        () => AgentLoop.run(top, { prompt: "go" }),
        { concurrency: "unbounded" }
      ).pipe(Effect.provide(tools))
      assert.deepStrictEqual([seen.requests, budget.spent().requests], [20, 20])
      assert.isTrue(results.every((result) => result._tag === "LimitReached" && result.limit === "budget"))
      for (const { messages } of results) assert.deepStrictEqual(faults(messages), [])
    }))

  it.effect("of a run is fresh for each run, and within the one around it", () =>
    Effect.gen(function*() {
      const seen = { requests: 0 }
      const poor = AgentLoop.make("poor", { model: counting(seen), budget: { requests: 1 } })
      const one = AgentLoop.run(poor, { prompt: "go" })
      const outer = Budget.make({ requests: 2 })
      const tags = yield* Effect.forEach([1, 2, 3], () => Effect.map(one, ({ _tag }) => _tag)).pipe(
        Effect.provideService(Budget.Current, outer),
        Effect.provide(ToolRegistry.layer())
      )
      assert.deepStrictEqual([tags, outer.spent().requests], [["Completed", "Completed", "LimitReached"], 2])
    }))

  it.effect("SPEC-134: that is spent keeps a stream from asking, which it does without one", () =>
    Effect.gen(function*() {
      const seen = { requests: 0 }
      const talker = AgentLoop.make("talker", { model: counting(seen) })
      const shown = (budget?: Budget.Budget) =>
        Effect.map(Stream.runCollect(AgentLoop.stream(talker, { prompt: "go", budget })), (events) => {
          const last = events.at(-1)
          const result = last?._tag === "Result" ? last.result : undefined
          return [
            events.map(({ _tag }) => _tag),
            result?._tag === "LimitReached" ? result.limit : result?._tag,
            seen.requests
          ]
        }).pipe(Effect.provide(ToolRegistry.layer()))
      const spent = Budget.make({ tokens: 10 })
      spent.spend({ tokens: 10 })
      assert.deepStrictEqual(yield* shown(spent), [["RunStart", "RunEnd", "Result"], "budget", 0])
      assert.deepStrictEqual(yield* shown(), [
        ["RunStart", "TurnStart", "TextDelta", "TurnEnd", "RunEnd", "Result"],
        "Completed",
        1
      ])
    }))

  it.effect("CON-09: gives a batch no more calls than are left, the first of them, and ends the run", () =>
    Effect.gen(function*() {
      const ran: Array<number> = []
      const step = Tool.make("step", {
        input: { n: Schema.Int },
        handler: ({ n }) => Effect.sync(() => (ran.push(n), "ok"))
      })
      const calls = Array.from({ length: 8 }, (_, n) => call("step", { n }))
      const result = yield* AgentLoop.run(AgentLoop.make("bot", { budget: { toolCalls: 6 } }), { prompt: "go" }).pipe(
        Effect.provide([ToolRegistry.layer(step), scripted(calls)])
      )
      assert.deepStrictEqual(ran, [0, 1, 2, 3, 4, 5])
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit], ["LimitReached", "budget"])
      assert.deepStrictEqual(
        result.turns[0]?.outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag),
        [...Array.from({ length: 6 }, () => "Success"), "limit", "limit"]
      )
      assert.deepStrictEqual(faults(result.messages), [])
    }))

  it.effect("of tokens is looked at before a request and charged after it", () =>
    Effect.gen(function*() {
      const seen = { requests: 0 }
      const bot = AgentLoop.make("bot", { model: counting(seen, "look", "see"), budget: { tokens: 2 } })
      const both = ["look", "see"].map((name) =>
        Tool.make(name, { input: { prompt: Schema.String }, handler: () => Effect.succeed("ok") })
      )
      const result = yield* Effect.provide(AgentLoop.run(bot, { prompt: "go" }), ToolRegistry.layer(...both))
      assert.deepStrictEqual([result._tag, seen.requests, result.usage.totalTokens], ["LimitReached", 2, 2])
    }))
})

describe("an agent that waits within a call", () => {
  /** A model that asks for these calls, and answers when it has their results. */
  const thinking = (calls: ReadonlyArray<readonly [string, string]>, text: string) =>
    Provider.layer({
      ask: ({ messages }) =>
        Effect.succeed({
          content: messages.at(-1)?.role === "tool"
            ? [{ ...blank, text }]
            : calls.map(([name, params], at) => callPart(name, `call_${at + 1}`, params)),
          finish: messages.at(-1)?.role === "tool" ? "stop" : "tool-calls",
          usage: { ...Provider.unknownUsage, inputTokens: { ...Provider.unknownUsage.inputTokens, total: 1 } }
        })
    })

  /** A boss whose helper's helper pays. */
  const tree = (ran: Array<string>) => {
    const pay = Tool.make("pay", {
      input: { amount: Schema.Finite },
      sensitive: true,
      handler: ({ amount }) => Effect.sync(() => (ran.push(`pay ${amount}`), `paid ${amount}`))
    })
    const note = Tool.make("note", { handler: () => Effect.sync(() => (ran.push("note"), "noted")) })
    const clerk = AgentLoop.make("clerk", {
      model: thinking([["note", "{}"], ["pay", '{"amount":90}']], "clerk is done")
    })
    const helper = AgentLoop.make("helper", { model: thinking([["clerk", '{"prompt":"pay"}']], "helper is done") })
    const clerkTool = within(AgentLoop.asTool(clerk, { description: "" }), ToolRegistry.layer(pay, note))
    const helperTool = within(AgentLoop.asTool(helper, { description: "" }), clerkTool)
    return ToolRegistry.merge(helperTool, ToolRegistry.layer(note))
  }

  it.effect("has every run around it wait, and goes on there once it is decided, in another process", () => {
    const ran: Array<string> = []
    return Effect.gen(function*() {
      const paused = yield* AgentLoop.run(boss, { prompt: "go" })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      assert.deepStrictEqual(ran, ["note"])
      assert.deepStrictEqual(paused.pending.map(({ agent, id, name, input }) => [agent, id, name, input]), [
        ["clerk", "call_1/call_1/call_2", "pay", { amount: 90 }]
      ])
      assert.deepStrictEqual(faults(paused.messages), [])
      const refused = yield* Effect.flip(AgentLoop.resume(boss, json(paused), { "call_1/call_2": Pause.approve }))
      assert.strictEqual(refused._tag, "ResumeRefused")
      const [first] = paused.pending
      const result = yield* AgentLoop.resume(boss, json(paused), {
        [first?.id ?? ""]: Pause.approveWith({ amount: 80 })
      })
      assert.deepStrictEqual(ran, ["note", "note", "pay 80"])
      assert.deepStrictEqual([result._tag, told(result)[0]], ["Completed", ["helper is done", "noted"]])
      assert.deepStrictEqual(faults(result.messages), [])
      assert.deepStrictEqual(result.usage.totalTokens, 6)
      const again = yield* Effect.flip(AgentLoop.resume(boss, json(paused), { [first?.id ?? ""]: Pause.approve }))
      assert.strictEqual(again._tag === "ResumeRefused" && again.reason, "used")
    }).pipe(Effect.provide([
      tree(ran),
      scripted(
        { says: [call("helper", { prompt: "a" }), call("note")], usage: { input: 1, output: 0 } },
        { says: ["done"], usage: { input: 1, output: 0 } }
      ),
      PauseStore.layerMemory
    ]))
  })

  /** A boss of one helper, whose model asks for these calls. */
  const one = (
    ran: Array<string>,
    calls: ReadonlyArray<readonly [string, string]>,
    options: AgentLoop.Options = {}
  ) => {
    const pay = Tool.make("pay", {
      input: { amount: Schema.Finite },
      sensitive: true,
      handler: ({ amount }) => Effect.sync(() => (ran.push(`pay ${amount}`), `paid ${amount}`))
    })
    const helper = AgentLoop.make("helper", { ...options, model: thinking(calls, "helper is done") })
    return { helper: AgentLoop.asTool(helper, { description: "" }), tools: ToolRegistry.layer(pay) }
  }
  const pausedOf = (result: AgentLoop.Result): AgentLoop.Paused => {
    if (result._tag !== "Paused") throw new Error(`it ended as ${result._tag}`)
    return result
  }
  const asks = [call("helper", { prompt: "a" })]

  it.effect("is one call of the run around it, for its limit and for a budget, however often it waits", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const { helper, tools } = one(ran, [["pay", '{"amount":1}']])
      const budget = Budget.make({ toolCalls: 10 })
      const strict = AgentLoop.make("strict", { maxToolCalls: 1, budget })
      const result = yield* Effect.gen(function*() {
        const paused = pausedOf(yield* AgentLoop.run(strict, { prompt: "go" }))
        return yield* AgentLoop.resume(strict, json(paused), { "call_1/call_1": Pause.approve })
      }).pipe(Effect.provide([within(helper, tools), scripted(asks, "done")]))
      assert.deepStrictEqual([result._tag, ran, budget.spent().toolCalls], ["Completed", ["pay 1"], 2])
    }))

  it.effect("still waits where what was decided for it does not fit", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const { helper, tools } = one(ran, [["pay", '{"amount":1}']])
      const result = yield* Effect.gen(function*() {
        const first = pausedOf(yield* AgentLoop.run(boss, { prompt: "go" }))
        const bad = { "call_1/call_1": Pause.approveWith({ amount: "much" }) }
        const second = pausedOf(yield* AgentLoop.resume(boss, json(first), bad))
        assert.deepStrictEqual([second.pending, ran], [first.pending, []])
        return yield* AgentLoop.resume(boss, json(second), { "call_1/call_1": Pause.approve })
      }).pipe(Effect.provide([within(helper, tools), scripted(asks, "done")]))
      assert.deepStrictEqual([result._tag, ran], ["Completed", ["pay 1"]])
    }))

  it.effect("is the first within a call; another there is told that nobody decides", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const { helper, tools } = one(ran, [["pay", '{"amount":1}']])
      const quick = AgentLoop.asTool(AgentLoop.make("quick", { model: scripted("quick") }), { description: "" })
      const both = Tool.make("both", {
        handler: () =>
          Effect.gen(function*() {
            yield* Effect.orDie(quick({ prompt: "first" }))
            return yield* Effect.match(helper({ prompt: "second" }), {
              onFailure: ({ why }) => why,
              onSuccess: () => "it did not wait"
            })
          })
      })
      const result = yield* AgentLoop.run(boss, { prompt: "go" }).pipe(
        Effect.provide([within(both, tools), scripted([call("both")], "done")])
      )
      assert.deepStrictEqual([told(result)[0], ran], [["it waits for a decision, for which nobody asks here"], []])
    }))

  it.effect("does not make an approval of a sibling that failed because of its environment", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const { helper, tools } = one(ran, [["pay", '{"amount":1}']])
      let isUp = false
      const env = Tool.make("env", {
        failure: Schema.String.pipe(Tool.failureClass("environment")),
        handler: () => Effect.suspend(() => isUp ? Effect.succeed("up") : Effect.fail("no licence"))
      })
      const patient = AgentLoop.make("patient", { onEnvironmentError: "pause" })
      const result = yield* Effect.gen(function*() {
        const paused = pausedOf(yield* AgentLoop.run(patient, { prompt: "go" }))
        assert.deepStrictEqual(paused.pending.map(({ id, waitsFor }) => [id, waitsFor]), [
          ["call_2/call_1", "approval"],
          ["call_1", "environment"]
        ])
        isUp = true
        return yield* AgentLoop.resume(patient, json(paused), { "call_2/call_1": Pause.approve, call_1: Pause.retry })
      }).pipe(Effect.provide([
        ToolRegistry.merge(within(helper, tools), ToolRegistry.layer(env)),
        scripted([call("env"), ...asks], "done")
      ]))
      assert.deepStrictEqual([result._tag, told(result)[0]], ["Completed", ["up", "helper is done"]])
    }))

  it.effect("spends of budgets what it spent before it waited", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const poor = AgentLoop.make("poor", { budget: { requests: 3 } })
      const { helper, tools } = one(ran, [["pay", '{"amount":1}']])
      const result = yield* Effect.gen(function*() {
        const paused = pausedOf(yield* AgentLoop.run(poor, { prompt: "go" }))
        return yield* AgentLoop.resume(poor, json(paused), { "call_1/call_1": Pause.approve })
      }).pipe(Effect.provide([within(helper, tools), scripted(asks, "never said")]))
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit, result.usage.calls], [
        "LimitReached",
        "budget",
        3
      ])
    }))
})
