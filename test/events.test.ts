// What does a watcher see of a run? Everything, in order, as data, and nothing that is left open.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import type * as Event from "toolfold/Event"
import * as Gate from "toolfold/Gate"
import * as Memory from "toolfold/Memory"
import * as InMemory from "toolfold/memory/InMemory"
import * as Pause from "toolfold/Pause"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { eventFaults, logged, quiet } from "./utils.ts"

const { call } = ScriptedModel

class Memo extends Context.Slots<Memo>()("test/Memo", {
  notes: Context.list(Schema.String),
  seen: Context.set(Schema.String)
}) {}

const note = Tool.make("note", {
  input: { text: Schema.String },
  handler: ({ text }) => Effect.as(Effect.flatMap(Memo, (memo) => memo.write({ notes: [text] })), "noted")
})
const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
const bot = AgentLoop.make("bot")

const busy = AiError.make({
  module: "Test",
  method: "ask",
  reason: new AiError.InternalProviderError({ description: "sk-secret is busy" })
})

/** Watches a run, whatever becomes of it, and looks at the form of what it sees. */
const watched = <E, R>(
  run: (onEvent: (event: Event.Event) => void) => Effect.Effect<unknown, E, R>
): Effect.Effect<ReadonlyArray<Event.Event>, never, R> =>
  Effect.gen(function*() {
    const events: Array<Event.Event> = []
    yield* Effect.exit(run((event) => {
      events.push(event)
    }))
    assert.deepStrictEqual(eventFaults(events), [])
    return events
  })

const tags = (events: ReadonlyArray<Event.Event>) => events.map(({ _tag }) => _tag)

const only = <Tag extends Event.Event["_tag"]>(events: ReadonlyArray<Event.Event>, ...wanted: ReadonlyArray<Tag>) =>
  events.flatMap((event) => {
    if (!wanted.some((tag) => tag === event._tag)) return []
    const { path: _, seq: __, ...rest } = event as Extract<Event.Event, { readonly _tag: Tag }>
    return [rest]
  })

describe("events", () => {
  it.effect("of a run that folds, fails calls and answers are data, and whole", () =>
    Effect.gen(function*() {
      const events = yield* watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
        Effect.provide(ToolRegistry.layer(note)),
        Effect.provide(ScriptedModel.layer(
          ["first", call("note", { text: "a" }), call("note", {}), call("gone")],
          { says: ["done"], usage: { input: 3, output: 2 } }
        ))
      )
      assert.deepStrictEqual(tags(events), [
        "RunStart",
        "TurnStart",
        "TextDelta",
        "InputDelta",
        "InputDelta",
        "InputDelta",
        "CallStart",
        "CallEnd",
        "CallStart",
        "CallEnd",
        "CallStart",
        "CallEnd",
        "Fold",
        "TurnEnd",
        "TurnStart",
        "TextDelta",
        "TurnEnd",
        "RunEnd"
      ])
      assert.deepStrictEqual(
        only(events, "CallEnd").map(({ attempts, call, isError, preview }) => [call.id, attempts, isError, preview]),
        [
          ["call_1", 1, false, "noted"],
          ["call_2", 0, true, "The arguments do not fit:\n- text: Missing key\nCorrect them and call again."],
          ["call_3", 0, true, 'There is no tool named "gone". The tools are: note.']
        ]
      )
      assert.deepStrictEqual(only(events, "Fold"), [{
        _tag: "Fold",
        turn: 0,
        writes: [{ slots: "test/Memo", values: { notes: ["a"] } }],
        slots: { "test/Memo": { notes: ["a"], seen: [] } },
        dropped: []
      }])
      assert.deepStrictEqual(only(events, "InputDelta").slice(0, 1), [
        { _tag: "InputDelta", turn: 0, callId: "call_1", tool: "note", delta: '{"text":"a"}' }
      ])
      const [end] = only(events, "RunEnd")
      assert.deepStrictEqual([end?.end, end?.text, end?.usage.totalTokens], ["Completed", "done", 5])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("name a call before all of it is there as they name it afterwards, also where the provider uses an id twice", () =>
    Effect.gen(function*() {
      const twice = [call("note", { text: "a" }, "x"), call("note", { text: "b" }, "x")]
      const events = yield* watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
        Effect.provide(ToolRegistry.layer(note)),
        Effect.provide(ScriptedModel.layer(twice, twice, "done"))
      )
      const ids = only(events, "InputDelta").map(({ callId }) => callId)
      assert.deepStrictEqual(new Set(ids).size, 4)
      assert.deepStrictEqual(only(events, "CallStart").map(({ call }) => call.id), ids)
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("are the same through a model without the direct entry", () =>
    Effect.gen(function*() {
      const script = [["let me see", call("note", { text: "a" }), call("note", { text: "b" })], "done"] as const
      const seen = yield* Effect.forEach([ScriptedModel.layer, ScriptedModel.layerPlain], (layer) =>
        watched((onEvent) =>
          AgentLoop.run(bot, { prompt: "go", onEvent })
        ).pipe(
          Effect.provide([ToolRegistry.layer(note), layer(...script)])
        ))
      const [direct, plain] = seen.map((events) => [tags(events), only(events, "InputDelta", "TextDelta")])
      assert.deepStrictEqual(plain, direct)
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("say how far a tool is, until it was answered", () =>
    Effect.gen(function*() {
      const late = yield* Deferred.make<void>()
      const told = yield* Deferred.make<void>()
      const slow = Tool.make("slow", {
        handler: () =>
          Effect.gen(function*() {
            yield* Tool.progress({ done: 1 })
            const scope = yield* Context.CurrentCall
            yield* Deferred.await(late).pipe(
              Effect.andThen(Tool.progress("too late")),
              Effect.andThen(Deferred.succeed(told, undefined)),
              Effect.provideService(Context.CurrentCall, scope),
              Effect.forkDetach
            )
            return "all of it"
          })
      })
      const events = yield* watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
        Effect.provide(ToolRegistry.layer(slow)),
        Effect.provide(ScriptedModel.layer([call("slow")], {
          says: ["done"],
          after: Effect.andThen(Deferred.succeed(late, undefined), Deferred.await(told))
        }))
      )
      assert.deepStrictEqual(only(events, "Progress"), [
        { _tag: "Progress", turn: 0, callId: "call_1", tool: "slow", progress: { done: 1 } }
      ])
    }))

  it.effect("say nothing of how far a tool is where nobody watches", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t", { handler: () => Effect.as(Tool.progress(1), "ok") })
      const result = yield* AgentLoop.run(bot, { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer(tool)),
        Effect.provide(ScriptedModel.layer([call("t")], "done"))
      )
      assert.strictEqual(result.text, "done")
      assert.strictEqual(yield* tool(), "ok")
    }))

  it.effect("show preliminary results of a tool of effect/ai, as data; one that does not fit is left out", () =>
    Effect.gen(function*() {
      const kit = Toolkit.make(WireTool.make("slow", { success: Schema.Struct({ at: Schema.DateFromString }) }))
      const date = (text: string) => ({ at: new Date(text) })
      const handlers = kit.toLayer({
        slow: (_, { preliminary }) =>
          preliminary(date("2026-01-01")).pipe(
            Effect.andThen(preliminary({ at: new Date(NaN) })),
            Effect.as(date("2026-02-01"))
          )
      })
      const events = yield* watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
        Effect.provide([ToolRegistry.fromToolkit(kit).pipe(Layer.provide(handlers)), quiet]),
        Effect.provide(ScriptedModel.layer([call("slow")], "done"))
      )
      assert.deepStrictEqual(only(events, "Progress").map(({ progress }) => progress), [
        { at: "2026-01-01T00:00:00.000Z" }
      ])
    }))

  it.effect("say that a call is tried again, and what for", () =>
    Effect.gen(function*() {
      let tries = 0
      const flaky = Tool.make("flaky", {
        failure: Schema.Struct({ class: Schema.Literal("transient") }).pipe(Tool.failureClass("transient")),
        retry: true,
        timeout: "1 second",
        handler: () =>
          Effect.suspend(() => {
            tries++
            if (tries === 1) return Effect.fail({ class: "transient" as const })
            return tries === 2 ? Effect.never : Effect.succeed("at last")
          })
      })
      const running = yield* Effect.forkChild(
        watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
          Effect.provide(ToolRegistry.layer(flaky)),
          Effect.provide(ScriptedModel.layer([call("flaky")], "done"))
        )
      )
      yield* TestClock.adjust("10 seconds")
      const events = yield* Fiber.join(running)
      const of = { _tag: "Retry", turn: 0, callId: "call_1", tool: "flaky" } as const
      assert.deepStrictEqual(only(events, "Retry"), [
        { ...of, attempt: 2, reason: "failure" },
        { ...of, attempt: 3, reason: "timeout" }
      ])
      assert.deepStrictEqual(only(events, "CallEnd").map(({ attempts }) => attempts), [3])
    }))

  it.effect("RET-05: say that a model is asked again, and by which failure, but not in which words", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.layer({ says: [call("note", { text: "a" })], fails: busy }, "done")
      const events = yield* watched((onEvent) =>
        AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
          Effect.raceFirst(Effect.forever(TestClock.adjust("1 second")))
        )
      ).pipe(Effect.provide([ToolRegistry.layer(), model.pipe(Provider.retry()), quiet]))
      assert.deepStrictEqual(only(events, "Retry"), [
        { _tag: "Retry", turn: 0, attempt: 2, reason: "InternalProviderError" }
      ])
      assert.notInclude(JSON.stringify(events), "sk-secret")
    }))

  it.effect("STR-09: say what a gate decided; a call that it refuses ends too", () =>
    Effect.gen(function*() {
      const gate: Gate.Gate = ({ id }) =>
        Effect.succeed(
          id === "call_1" ? Gate.reject("not now") : id === "call_2" ? Gate.reply("said so") : Gate.proceed
        )
      const agent = AgentLoop.make("bot", { gate })
      const events = yield* watched((onEvent) => AgentLoop.run(agent, { prompt: "go", onEvent })).pipe(
        Effect.provide(ToolRegistry.layer(note)),
        Effect.provide(ScriptedModel.layer(
          [call("note", { text: "a" }), call("note", { text: "b" }), call("note", { text: "c" }), call("gone")],
          "done"
        ))
      )
      assert.deepStrictEqual(
        only(events, "Gate").map(({ callId, decision, reason }) => [callId, decision, reason]),
        [["call_1", "Reject", "not now"], ["call_2", "Reply", undefined], ["call_3", "Proceed", undefined]]
      )
      assert.deepStrictEqual(
        only(events, "CallEnd").map(({ call, outcome }) => [call.id, outcome._tag]),
        [["call_1", "Rejected"], ["call_2", "Replied"], ["call_4", "Failure"], ["call_3", "Success"]]
      )
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("STR-09: end a call once that was too late in its last attempt, and one beyond the limit", () =>
    Effect.gen(function*() {
      const slow = Tool.make("slow", { timeout: "1 second", retry: true, handler: () => Effect.never })
      const agent = AgentLoop.make("bot", { maxToolCalls: 2 })
      const running = yield* Effect.forkChild(
        watched((onEvent) => AgentLoop.run(agent, { prompt: "go", onEvent })).pipe(
          Effect.provide(ToolRegistry.layer(slow, note)),
          Effect.provide(ScriptedModel.layer([call("slow"), call("note", { text: "a" }), call("note", { text: "b" })]))
        )
      )
      yield* TestClock.adjust("1 minute")
      const events = yield* Fiber.join(running)
      assert.deepStrictEqual(only(events, "CallStart").map(({ call }) => call.id).toSorted(), [
        "call_1",
        "call_2",
        "call_3"
      ])
      assert.deepStrictEqual(
        only(events, "CallEnd").map(({ attempts, call, isError, outcome }) => [
          call.id,
          outcome._tag === "Failure" ? outcome.kind : outcome._tag,
          attempts,
          isError
        ]).toSorted(),
        [
          ["call_1", "timeout", 3, true],
          ["call_2", "Success", 1, false],
          ["call_3", "limit", 0, true]
        ]
      )
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("STR-09: end a call once that somebody refused or answered when it was decided", () =>
    Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "go" })
      if (paused._tag !== "Paused") return assert.fail()
      const decisions = { call_1: Pause.reject("not now"), call_2: Pause.reply("paid by hand") }
      const events = yield* watched((onEvent) => AgentLoop.resume(bot, paused, decisions, { onEvent }))
      assert.deepStrictEqual(only(events, "CallStart").map(({ call }) => call.id), ["call_1", "call_2"])
      assert.deepStrictEqual(only(events, "CallEnd").map(({ call, isError, outcome }) => [call.id, outcome, isError]), [
        ["call_1", { _tag: "Rejected", reason: "not now" }, true],
        ["call_2", { _tag: "Replied", text: "paid by hand" }, false]
      ])
    }).pipe(Effect.provide([ToolRegistry.layer(pay), ScriptedModel.layer([call("pay"), call("pay")], "done")])))

  it.effect("say that a run waits, and are whole before and after it", () =>
    Effect.gen(function*() {
      let paused: AgentLoop.Result | undefined
      const before = yield* watched((onEvent) =>
        Effect.map(AgentLoop.run(bot, { prompt: "go", onEvent }), (result) => {
          paused = result
        })
      ).pipe(Effect.provide(ScriptedModel.layer([call("pay")])))
      assert.deepStrictEqual(tags(before), [
        "RunStart",
        "TurnStart",
        "InputDelta",
        "Gate",
        "Pause",
        "TurnEnd",
        "RunEnd"
      ])
      assert.deepStrictEqual(only(before, "TurnEnd"), [{ _tag: "TurnEnd", turn: 0 }])
      const [end] = only(before, "RunEnd")
      assert.deepStrictEqual([end?.end, end?.reason], ["Paused", "approval"])
      if (paused?._tag !== "Paused") return assert.fail()
      const { state } = paused
      const after = yield* watched((onEvent) => AgentLoop.resume(bot, state, { call_1: Pause.approve }, { onEvent }))
        .pipe(Effect.provide(ScriptedModel.layer("done")))
      assert.deepStrictEqual(tags(after), [
        "RunStart",
        "TurnStart",
        "CallStart",
        "CallEnd",
        "TurnEnd",
        "TurnStart",
        "TextDelta",
        "TurnEnd",
        "RunEnd"
      ])
      assert.deepStrictEqual(only(after, "RunStart").map(({ isResumed }) => isResumed), [true])
    }).pipe(Effect.provide(ToolRegistry.layer(pay))))

  it.effect("say that a run failed, by the name of the error", () =>
    Effect.gen(function*() {
      const events = yield* watched((onEvent) => AgentLoop.run(bot, { prompt: "go", onEvent })).pipe(
        Effect.provide([ToolRegistry.layer(), ScriptedModel.layer({ says: ["half an"], fails: busy })])
      )
      assert.deepStrictEqual(tags(events), ["RunStart", "TurnStart", "TextDelta", "TextDelta", "TurnEnd", "RunEnd"])
      const [end] = only(events, "RunEnd")
      assert.deepStrictEqual([end?.end, end?.reason], ["Failed", "ModelFailed: InternalProviderError"])
      const reached = yield* watched((onEvent) =>
        AgentLoop.run(AgentLoop.make("bot", { maxTurns: 1 }), { prompt: "go", onEvent })
      ).pipe(Effect.provide([ToolRegistry.layer(), ScriptedModel.layer([call("gone")])]))
      assert.deepStrictEqual(only(reached, "RunEnd").map(({ end, reason }) => [end, reason]), [[
        "LimitReached",
        "turns"
      ]])
    }))

  it.effect("end a turn when it rests in its thread, and not before", () =>
    Effect.gen(function*() {
      const memory = Memory.thread("t")
      const rested: Array<number> = []
      const { load } = yield* Memory.Memory
      yield* AgentLoop.run(bot, {
        prompt: "go",
        memory,
        onEvent: ({ _tag }) =>
          _tag === "TurnEnd"
            ? Effect.map(load("t"), ({ turns }) => void rested.push(turns))
            : undefined
      }).pipe(
        Effect.provide(ToolRegistry.layer(note)),
        Effect.provide(ScriptedModel.layer([call("note", { text: "a" })], "done"))
      )
      assert.deepStrictEqual(rested, [1, 2])
    }).pipe(Effect.provide([Memo.layer, InMemory.layer])))
})

describe("watchers", () => {
  it.effect("are told one event after the other, in order, though agents run side by side within the run", () =>
    Effect.gen(function*() {
      const inner = AgentLoop.make("inner", {
        model: ScriptedModel.layer(...Array.from({ length: 4 }, () => "a b c d"))
      })
      const tools = ToolRegistry.layer(AgentLoop.asTool(inner, { description: "" })).pipe(
        Layer.provide(ToolRegistry.layer())
      )
      let telling = 0
      const seen: Array<number> = []
      const events = yield* watched((onEvent) =>
        AgentLoop.run(bot, {
          prompt: "go",
          onEvent: (event) => {
            onEvent(event)
            assert.strictEqual(telling++, 0)
            return Effect.sync(() => {
              telling--
              seen.push(event.seq)
            }).pipe(Effect.delay(event.seq % 3))
          }
        }).pipe(Effect.raceFirst(Effect.forever(TestClock.adjust(1))))
      ).pipe(
        Effect.provide([
          tools,
          ScriptedModel.layer([1, 2, 3, 4].map(() => call("inner", { prompt: "x" })), "done")
        ])
      )
      assert.deepStrictEqual(seen, events.map(({ seq }) => seq))
      assert.strictEqual(only(events, "RunEnd").length, 5)
    }))

  it.effect("may run agents of their own, which are no part of what they watch", () =>
    Effect.gen(function*() {
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer("deep") })
      const tools = ToolRegistry.layer(AgentLoop.asTool(inner, { description: "" })).pipe(
        Layer.provide(ToolRegistry.layer())
      )
      const summary = AgentLoop.make("summary", { model: ScriptedModel.layer("short") })
      const ask = AgentLoop.asTool(summary, { description: "" })
      const answers: Array<unknown> = []
      const events: Array<Event.Event> = []
      yield* AgentLoop.run(bot, {
        prompt: "go",
        onEvent: (event) => {
          events.push(event)
          return event._tag === "RunEnd" && event.path.length > 0
            ? Effect.map(ask({ prompt: event.text }), (text) => void answers.push(text))
            : undefined
        }
      }).pipe(Effect.provide([tools, ScriptedModel.layer([call("inner", { prompt: "x" })], "done")]))
      assert.deepStrictEqual(answers, ["short"])
      assert.deepStrictEqual(eventFaults(events), [])
      assert.deepStrictEqual(only(events, "RunStart").map(({ agent }) => agent), ["bot", "inner"])
    }))

  it.effect("of texts alone are not told of agents within, and nothing else is made for them", () =>
    Effect.gen(function*() {
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer("deep thought") })
      const tools = ToolRegistry.layer(AgentLoop.asTool(inner, { description: "" })).pipe(
        Layer.provide(ToolRegistry.layer())
      )
      const texts: Array<string> = []
      yield* AgentLoop.run(bot, { prompt: "go", onText: (delta) => void texts.push(delta) }).pipe(
        Effect.provide([tools, ScriptedModel.layer([call("inner", { prompt: "x" })], "all done")])
      )
      assert.deepStrictEqual(texts, ["all ", "done"])
    }))

  it.effect("that fail in every event change nothing", () =>
    Effect.gen(function*() {
      const { layer, lines } = logged()
      const result = yield* AgentLoop.run(bot, {
        prompt: "go",
        onEvent: ({ seq }) => {
          if (seq % 2 === 0) throw new Error("no")
          return Effect.die("no")
        }
      }).pipe(
        Effect.provide([ToolRegistry.layer(note), layer]),
        Effect.provide(ScriptedModel.layer([call("note", { text: "a" })], "done"))
      )
      assert.deepStrictEqual([result.text, Memo.from(result.context).notes], ["done", ["a"]])
      assert.strictEqual(lines.length, 11)
    }).pipe(Effect.provide(Memo.layer)))
})

describe("a stream", () => {
  it.effect("holds up its run while nobody reads, and loses nothing", () =>
    Effect.gen(function*() {
      let asked = 0
      const chatty = Array.from({ length: 50 }, (): ScriptedModel.Turn => ({
        says: ["a b c d e f g h", call("note", { text: "x" })],
        after: Effect.sync(() => void asked++)
      }))
      const go = yield* Deferred.make<void>()
      const read = yield* Effect.forkChild(
        AgentLoop.stream(AgentLoop.make("bot", { maxTurns: 100, maxRepeats: 100 }), { prompt: "go" }).pipe(
          Stream.tap((event) => event._tag === "RunStart" ? Deferred.await(go) : Effect.void),
          Stream.runCollect,
          Effect.provide(ToolRegistry.layer(note)),
          Effect.provide(ScriptedModel.layer(...chatty, "done"))
        )
      )
      yield* TestClock.adjust("1 minute")
      assert.isBelow(asked, 15)
      yield* Deferred.succeed(go, undefined)
      const all = yield* Fiber.join(read)
      assert.deepStrictEqual(eventFaults(all.flatMap((event) => event._tag === "Result" ? [] : [event])), [])
      assert.strictEqual(asked, 50)
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("ends with the result, whose value has the type of the answer", () =>
    Effect.gen(function*() {
      const agent = AgentLoop.make("bot", { output: Schema.Struct({ n: Schema.Finite }) })
      const last = yield* Stream.runLast(AgentLoop.stream(agent, { prompt: "go" })).pipe(
        Effect.provide([ToolRegistry.layer(), ScriptedModel.layer('{"n":1}')])
      )
      const event = last._tag === "Some" ? last.value : undefined
      if (event?._tag !== "Result" || event.result._tag !== "Completed") return assert.fail()
      const n: number | undefined = event.result.value?.n
      assert.strictEqual(n, 1)
    }))
})
