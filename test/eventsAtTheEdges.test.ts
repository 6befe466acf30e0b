// Events where a run does not go its plain way: what goes on after its call, watchers that interfere, answers that break off.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
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
import * as Pause from "toolfold/Pause"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { eventFaults, logged, quiet } from "./utils.ts"

const { call } = ScriptedModel
const bot = AgentLoop.make("bot")
const look = Tool.make("look", { handler: () => Effect.succeed("seen") })
const note = Tool.make("note", { input: { n: Schema.Finite }, handler: ({ n }) => Effect.succeed(String(n)) })

const busy = AiError.make({
  module: "Test",
  method: "ask",
  reason: new AiError.InternalProviderError({ description: "busy" })
})

/** An event in short: in which agent, what, of which call, how it ended. */
const short = (event: Event.Event): string =>
  [
    ...event.path.map(({ agent }) => `${agent}/`),
    event._tag,
    ...("call" in event ? [` ${event.call.id}`] : []),
    ...("outcome" in event ? [` ${event.outcome._tag}`] : []),
    ...(event._tag === "RunEnd" ? [` ${event.end}`] : [])
  ].join("")

/** Keeps what is told of a run. */
const keep = () => {
  const events: Array<Event.Event> = []
  return { events, onEvent: (event: Event.Event): void => void events.push(event) }
}

/** Runs to the end while the clock goes on. */
const ticking = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let at = 0; at < 100 && fiber.pollUnsafe() === undefined; at++) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(fiber)
  })

describe("what goes on after its call", () => {
  it.effect("is not seen any more: an agent that was given up ends for whoever watches when its call does", () =>
    Effect.gen(function*() {
      const slow = Tool.make("slow", {
        handler: () => Effect.uninterruptible(Effect.as(Effect.sleep("3 seconds"), "x"))
      })
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer([call("slow")], "deep") })
      const tools = ToolRegistry.layer(AgentLoop.asTool(inner, { description: "" }).pipe(Tool.timeout("1 second")))
        .pipe(
          Layer.provide(ToolRegistry.layer(slow))
        )
      const { events, onEvent } = keep()
      const streamed = yield* ticking(
        Stream.runCollect(AgentLoop.stream(bot, { prompt: "go", onEvent })).pipe(
          Effect.provide([tools, ScriptedModel.layer([call("inner", { prompt: "x" })], "done"), quiet])
        )
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(eventFaults(events), [])
      assert.deepStrictEqual(streamed.slice(0, -1), events)
      assert.deepStrictEqual(events.map(short), [
        "RunStart",
        "TurnStart",
        "InputDelta",
        "CallStart call_1",
        "inner/RunStart",
        "inner/TurnStart",
        "inner/InputDelta",
        "inner/CallStart call_1",
        "inner/CallEnd call_1 Interrupted",
        "inner/TurnEnd",
        "inner/RunEnd Cancelled",
        "CallEnd call_1 Failure",
        "TurnEnd",
        "TurnStart",
        "TextDelta",
        "TurnEnd",
        "RunEnd Completed"
      ])
    }))

  it.effect("and began after it: an agent in a daemon is a run of its own", () =>
    Effect.gen(function*() {
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer("deep") })
      const ask = AgentLoop.asTool(inner, { description: "" })
      const background = Tool.make("background", {
        handler: () =>
          Effect.as(Effect.forkDetach(Effect.ignore(Effect.andThen(Effect.sleep(10), ask({ prompt: "x" })))), "started")
      })
      const { events, onEvent } = keep()
      yield* AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
        Effect.provide(ToolRegistry.layer(background).pipe(Layer.provide(ToolRegistry.layer()))),
        Effect.provide(ScriptedModel.layer([call("background")], { says: ["done"], after: TestClock.adjust(20) }))
      )
      assert.deepStrictEqual(eventFaults(events), [])
      assert.deepStrictEqual(events.filter(({ path }) => path.length > 0), [])
    }))

  it.effect("says nothing of how far it is once its call was interrupted", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const reporting = Tool.make("reporting", {
        handler: () =>
          Effect.gen(function*() {
            const scope = yield* Context.CurrentCall
            yield* Effect.forever(Effect.andThen(Effect.sleep(10), Tool.progress("on"))).pipe(
              Effect.provideService(Context.CurrentCall, scope),
              Effect.forkDetach
            )
            return yield* Effect.never
          })
      })
      const stubborn = Tool.make("stubborn", {
        handler: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.uninterruptible(Effect.as(Effect.sleep(50), "b")))
      })
      const { events, onEvent } = keep()
      const running = yield* Effect.forkChild(
        AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
          Effect.provide([
            ToolRegistry.layer(reporting, stubborn),
            ScriptedModel.layer([call("reporting"), call("stubborn")], "done")
          ])
        )
      )
      yield* Deferred.await(started)
      yield* TestClock.adjust(20)
      const ending = yield* Effect.forkChild(Fiber.interrupt(running))
      yield* TestClock.adjust(100)
      yield* Fiber.join(ending)
      const ended = events.findIndex((event) => event._tag === "CallEnd" && event.call.name === "reporting")
      assert.deepStrictEqual(eventFaults(events), [])
      assert.deepStrictEqual(events.slice(0, ended).filter(({ _tag }) => _tag === "Progress").length, 2)
      assert.deepStrictEqual(events.slice(ended).filter(({ _tag }) => _tag === "Progress"), [])
    }))

  it.effect("folds when a run is cut off, and is shown and warned of as at any other time", () =>
    Effect.gen(function*() {
      class Sum extends Context.Slots<Sum>()("test/Sum", {
        s: Context.slot(Schema.Finite, {
          combine: (one: number, other: number) => {
            if (other === 2) throw new Error("no two")
            return one + other
          }
        }, 0)
      }) {}
      const add = Tool.make("add", {
        input: { n: Schema.Finite },
        handler: ({ n }) => Effect.as(Effect.flatMap(Sum, (sum) => sum.write({ s: n })), "ok")
      })
      const hang = Tool.make("hang", { handler: () => Effect.never })
      const { layer, lines } = logged()
      const { events, onEvent } = keep()
      const agent = AgentLoop.make("bot", { runTimeout: "1 second" })
      const result = yield* ticking(
        AgentLoop.run(agent, { prompt: "go", onEvent }).pipe(
          Effect.provide([
            ToolRegistry.layer(add, hang).pipe(Layer.provide(Sum.layer)),
            ScriptedModel.layer([call("add", { n: 1 }), call("add", { n: 2 }), call("hang")]),
            layer
          ])
        )
      )
      assert.deepStrictEqual([result._tag, Sum.from(result.context)], ["LimitReached", { s: 1 }])
      assert.deepStrictEqual(lines.map(({ message }) => message), [
        "the writes of call call_2 did not fold and are lost"
      ])
      const fold = events.find((event) => event._tag === "Fold")
      assert.deepStrictEqual([fold?.slots, fold?.dropped], [{ "test/Sum": { s: 1 } }, ["call_2"]])
      assert.deepStrictEqual(eventFaults(events), [])
    }))
})

describe("agents side by side within one call", () => {
  it.effect("are told apart by their runs", () =>
    Effect.gen(function*() {
      const both = { says: ["deep"], after: Effect.sleep(10) }
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer(both, both) })
      const ask = AgentLoop.asTool(inner, { description: "" })
      const two = Tool.make("two", {
        failure: AgentLoop.AgentStopped,
        handler: () => Effect.as(Effect.all([ask({ prompt: "x" }), ask({ prompt: "y" })], { concurrency: 2 }), "both")
      })
      const { events, onEvent } = keep()
      yield* ticking(
        AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
          Effect.provide(ToolRegistry.layer(two).pipe(Layer.provide(ToolRegistry.layer()))),
          Effect.provide(ScriptedModel.layer([call("two")], "done"))
        )
      )
      assert.deepStrictEqual(eventFaults(events), [])
      assert.strictEqual(new Set(events.flatMap(({ path }) => path.map(({ runId }) => runId))).size, 2)
    }))
})

describe("a watcher", () => {
  class Who extends Services.Service<Who, string>()("test/Who") {}

  it.effect("runs among the services of whoever runs the run, whoever gave the event", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer("deep") })
      const tool = Tool.make("tool", { handler: () => Effect.as(Effect.andThen(Who, Tool.progress(1)), "ok") })
      const tools = ToolRegistry.layer(tool, AgentLoop.asTool(inner, { description: "" })).pipe(
        Layer.provide([ToolRegistry.layer(), Layer.succeed(Who)("of the registry")])
      )
      yield* AgentLoop.run(bot, {
        prompt: "go",
        onEvent: () => Effect.map(Who, (who) => void seen.push(who))
      }).pipe(
        Effect.provide(tools),
        Effect.provide(ScriptedModel.layer([call("tool"), call("inner", { prompt: "x" })], "done")),
        Effect.provideService(Who, "of the run")
      )
      assert.deepStrictEqual(new Set(seen), new Set(["of the run"]))
    }))

  it.effect("that runs agents spends nothing of the run, and does not wait for itself", () =>
    Effect.gen(function*() {
      const summary = AgentLoop.make("summary", {
        model: ScriptedModel.layer({ fails: busy }, ...Array.from({ length: 20 }, () => "short")).pipe(
          Provider.retry({ base: 1 })
        )
      })
      const agent = AgentLoop.make("bot", { budget: { requests: 2 } })
      const result = yield* ticking(
        AgentLoop.run(agent, {
          prompt: "go",
          onEvent: ({ _tag }) => _tag === "TextDelta" ? AgentLoop.run(summary, { prompt: "s" }) : undefined
        }).pipe(
          Effect.provide([ToolRegistry.layer(look), quiet]),
          Effect.provide(ScriptedModel.layer(["words", call("look")], "done"))
        )
      )
      assert.deepStrictEqual([result._tag, result.usage.calls], ["Completed", 2])
    }))

  it.effect("that is slow is told all of it, also what a tool gave that was cut off meanwhile", () =>
    Effect.gen(function*() {
      const { events, onEvent } = keep()
      const cut = Tool.make("cut", {
        timeout: "300 millis",
        handler: () => Effect.as(Effect.andThen(Tool.progress(1), Effect.never), "x")
      })
      yield* ticking(
        AgentLoop.run(bot, {
          prompt: "go",
          onEvent: (event) => Effect.andThen(Effect.sleep("500 millis"), Effect.sync(() => onEvent(event)))
        }).pipe(Effect.provide([ToolRegistry.layer(cut), ScriptedModel.layer([call("cut")], "done")]))
      )
      assert.deepStrictEqual(eventFaults(events), [])
      assert.isTrue(events.some(({ _tag }) => _tag === "Progress"))
    }))

  it.effect("that causes an event while it is told one is told that afterwards", () =>
    Effect.gen(function*() {
      const go = yield* Deferred.make<void>()
      const a = Tool.make("a", {
        handler: () => Effect.as(Effect.andThen(Deferred.await(go), Tool.progress("a")), "a")
      })
      const { events, onEvent } = keep()
      const ends: Array<string> = []
      yield* AgentLoop.run(bot, {
        prompt: "go",
        onEvent: (event) => {
          onEvent(event)
          if (event._tag === "CallEnd" && event.call.name === "look") Deferred.doneUnsafe(go, Effect.void)
        },
        onToolCall: ({ event, tool }) => void ends.push(`${event} ${tool}`)
      }).pipe(Effect.provide([ToolRegistry.layer(a, look), ScriptedModel.layer([call("a"), call("look")], "done")]))
      assert.deepStrictEqual(eventFaults(events), [])
      assert.deepStrictEqual(ends, ["start a", "start look", "end look", "end a"])
    }))

  it.effect("that gives a promise which is rejected does not end the program", () =>
    Effect.gen(function*() {
      const rejected: Array<unknown> = []
      const hear = (error: unknown) => void rejected.push(error)
      process.on("unhandledRejection", hear)
      yield* AgentLoop.run(bot, { prompt: "go", onText: () => Promise.reject(new Error("no")) as never }).pipe(
        Effect.provide([ToolRegistry.layer(), ScriptedModel.layer("done")])
      )
      yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
      process.off("unhandledRejection", hear)
      assert.deepStrictEqual(rejected, [])
    }))

  it.effect("changes nothing: not where slots do not encode, and no ids of calls that are made again", () =>
    Effect.gen(function*() {
      const strict = Schema.Finite.check(Schema.makeFilter((n: number) => {
        if (n > 1) throw new Error("boom")
        return true
      }))
      class Odd extends Context.Slots<Odd>()("test/Odd", {
        n: Context.slot(strict, { combine: (a, b) => a + b }, 0)
      }) {}
      const add = Tool.make("add", {
        handler: () => Effect.as(Effect.flatMap(Odd, (odd) => odd.write({ n: 1 })), "ok")
      })
      const run = (watch: AgentLoop.RunOptions) =>
        ticking(
          AgentLoop.run(bot, { prompt: "go", ...watch }).pipe(
            Effect.provide([
              ToolRegistry.layer(add).pipe(Layer.provide(Odd.layer)),
              ScriptedModel.layer(
                { says: [call("gone", {}, "a"), call("add", {}, "b")], fails: busy },
                [call("add", {}, "b"), call("add", {}, "c")],
                "done"
              ).pipe(Provider.retry({ base: 1 })),
              quiet
            ])
          )
        )
      const plain = yield* run({})
      const { events, onEvent } = keep()
      const watched = yield* run({ onEvent })
      assert.deepStrictEqual(plain._tag, "Completed")
      assert.deepStrictEqual({ ...watched, runId: "" }, { ...plain, runId: "" })
      assert.deepStrictEqual(plain.turns[0]?.calls.map(({ id }) => id), ["b", "c"])
      assert.deepStrictEqual(events.flatMap((event) => event._tag === "Fold" ? [event.slots] : []), [{}])
      assert.deepStrictEqual(eventFaults(events), [])
    }))
})

describe("a stream that nobody reads on", () => {
  it.effect("ends, though a tool that cannot be interrupted goes on saying how far it is", () =>
    Effect.gen(function*() {
      const said = yield* Deferred.make<void>()
      const chatty = Tool.make("chatty", {
        handler: () =>
          Effect.uninterruptible(
            Effect.forEach(Array.from({ length: 300 }), (_, at) => Tool.progress(at), { discard: true })
          ).pipe(Effect.andThen(Deferred.succeed(said, undefined)), Effect.as("ok"))
      })
      yield* ticking(
        AgentLoop.stream(bot, { prompt: "go" }).pipe(
          Stream.tap(({ _tag }) => _tag === "CallStart" ? Effect.sleep(20) : Effect.void),
          Stream.takeUntil(({ _tag }) => _tag === "Progress"),
          Stream.runDrain,
          Effect.provide([ToolRegistry.layer(chatty), ScriptedModel.layer([call("chatty")], "done")])
        )
      )
      assert.isTrue(yield* Deferred.isDone(said))
    }))
})

describe("a handle", () => {
  it.effect("that is cancelled before its run has begun ends its events, and says what there is", () =>
    Effect.gen(function*() {
      const partials: Array<unknown> = []
      const handle = yield* AgentLoop.start(bot, {
        prompt: "go",
        onPartial: ({ turns }) => void partials.push(turns)
      }).pipe(Effect.provide([ToolRegistry.layer(), ScriptedModel.layer("done")]))
      const result = yield* handle.cancel
      const events = yield* Stream.runCollect(handle.events)
      assert.deepStrictEqual([result._tag, events, partials], ["Cancelled", [], [[]]])
    }))

  it.effect("that is cancelled while its end is told has ended", () =>
    Effect.gen(function*() {
      const telling = yield* Deferred.make<void>()
      const partials: Array<unknown> = []
      const handle = yield* AgentLoop.start(bot, {
        prompt: "go",
        onPartial: () => void partials.push("partial"),
        onEvent: ({ _tag }) =>
          _tag === "RunEnd" ? Effect.andThen(Deferred.succeed(telling, undefined), Effect.never) : undefined
      }).pipe(Effect.provide([ToolRegistry.layer(), ScriptedModel.layer("done")]))
      yield* Deferred.await(telling)
      const result = yield* ticking(handle.cancel)
      const last = (yield* Stream.runCollect(handle.events)).at(-1)
      assert.deepStrictEqual([result._tag, last?._tag === "RunEnd" && last.end, partials], [
        "Completed",
        "Completed",
        []
      ])
    }))

  it.effect("shows who comes late the last 1,024 events, and no more", () =>
    Effect.gen(function*() {
      const chatty = Tool.make("chatty", {
        handler: () => Effect.as(Effect.forEach(Array.from({ length: 2_000 }), () => Tool.progress(1)), "ok")
      })
      const handle = yield* AgentLoop.start(bot, { prompt: "go" }).pipe(
        Effect.provide([ToolRegistry.layer(chatty), ScriptedModel.layer([call("chatty")], "done")])
      )
      yield* handle.await
      const events = yield* Stream.runCollect(handle.events)
      assert.isAtMost(events.length, 1_024)
      assert.strictEqual(events.at(-1)?._tag, "RunEnd")
    }))
})

describe("an end", () => {
  it.effect("says what the result says, where calls wait, too", () =>
    Effect.gen(function*() {
      const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
      const { events, onEvent } = keep()
      const result = yield* AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
        Effect.provide([ToolRegistry.layer(pay), ScriptedModel.layer(["Let me pay", call("pay")])])
      )
      const end = events.at(-1)
      assert.deepStrictEqual(
        end?._tag === "RunEnd" && [end.end, end.text, end.usage],
        [result._tag, "Let me pay", result.usage]
      )
    }))

  it.effect("is there whatever an agent's own code fails with", () =>
    Effect.gen(function*() {
      for (const error of [Object.create(null), { constructor: undefined }, { _tag: Object.create(null) }, "text", 1]) {
        const { events, onEvent } = keep()
        const agent = AgentLoop.make("bot", { prepare: () => Effect.fail(error) })
        yield* Effect.exit(
          AgentLoop.run(agent, { prompt: "go", onEvent }).pipe(
            Effect.provide([ToolRegistry.layer(), ScriptedModel.layer()])
          )
        )
        assert.deepStrictEqual(events.map(short), ["RunStart", "TurnStart", "TurnEnd", "RunEnd Failed"])
      }
    }))
})

describe("a call", () => {
  it.effect("that shows its result as a picture, or has an input of a gate, is data", () =>
    Effect.gen(function*() {
      const picture = Tool.make("picture", {
        sensitive: true,
        handler: () => Effect.succeed("x"),
        toModelOutput: () => [Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1, 2, 255]) })]
      })
      for (const input of [{ n: 1, m: undefined }, undefined, 10n, NaN, new Date(0)]) {
        const { events, onEvent } = keep()
        const agent = AgentLoop.make("bot", {
          gate: (asked) =>
            Effect.succeed(
              asked.tool.name === "note" && JSON.stringify(asked.input) === '{"n":2}'
                ? Gate.edit(input)
                : Gate.proceed
            )
        })
        const result = yield* AgentLoop.run(agent, { prompt: "go", onEvent }).pipe(
          Effect.provide([
            ToolRegistry.layer(note, picture),
            ScriptedModel.layer([call("note", { n: 2 }), call("picture")], "done")
          ])
        )
        assert.deepStrictEqual(eventFaults(events), [])
        assert.deepStrictEqual(
          result.turns[0]?.outcomes[0]?._tag,
          typeof input === "object" && "n" in input ? "Success" : input === undefined || typeof input === "bigint"
            ? "Rejected"
            : "Failure"
        )
      }
    }))

  it.effect("with a picture can wait with others in a pause", () =>
    Effect.gen(function*() {
      class Down extends Schema.TaggedError<Down>()("Down", {}) {}
      let isDown = true
      const picture = Tool.make("picture", {
        handler: () => Effect.succeed("x"),
        toModelOutput: () => [Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1, 2, 255]) })]
      })
      const env = Tool.make("env", {
        failure: Down.pipe(Tool.failureClass("environment")),
        handler: () => Effect.suspend(() => isDown ? Effect.fail(new Down()) : Effect.succeed("up"))
      })
      const agent = AgentLoop.make("bot", { onEnvironmentError: "pause" })
      const result = yield* Effect.gen(function*() {
        const paused = yield* AgentLoop.run(agent, { prompt: "go" })
        if (paused._tag !== "Paused") throw new Error(paused._tag)
        isDown = false
        const state: Pause.Encoded = JSON.parse(JSON.stringify(paused.state))
        return yield* AgentLoop.resume(agent, state, { call_2: Pause.retry })
      }).pipe(Effect.provide([
        ToolRegistry.layer(picture, env),
        ScriptedModel.layer([call("picture"), call("env")], "done")
      ]))
      const [shown] = result.turns[0]?.outcomes ?? []
      const [part] = shown?._tag === "Success" ? shown.parts ?? [] : []
      assert.deepStrictEqual(part?.type === "file" && part.data, new Uint8Array([1, 2, 255]))
    }))

  it.effect("that was answered without being run is shown once, however often its run waits", () =>
    Effect.gen(function*() {
      class Down extends Schema.TaggedError<Down>()("Down", {}) {}
      let isDown = true
      const env = Tool.make("env", {
        failure: Down.pipe(Tool.failureClass("environment")),
        handler: () => Effect.suspend(() => isDown ? Effect.fail(new Down()) : Effect.succeed("up"))
      })
      const agent = AgentLoop.make("bot", {
        onEnvironmentError: "pause",
        gate: ({ tool }) => Effect.succeed(tool.name === "look" ? Gate.reject("no") : Gate.proceed)
      })
      const [first, second] = [keep(), keep()]
      yield* Effect.gen(function*() {
        const paused = yield* AgentLoop.run(agent, { prompt: "go", onEvent: first.onEvent })
        if (paused._tag !== "Paused") throw new Error(paused._tag)
        isDown = false
        yield* AgentLoop.resume(agent, paused, { call_3: Pause.retry }, { onEvent: second.onEvent })
      }).pipe(Effect.provide([
        ToolRegistry.layer(look, env),
        ScriptedModel.layer([call("look"), call("gone"), call("env")], "done")
      ]))
      const ends = ({ events }: typeof first) => events.filter(({ _tag }) => _tag === "CallEnd").map(short)
      assert.deepStrictEqual(ends(first), [
        "CallEnd call_1 Rejected",
        "CallEnd call_2 Failure",
        "CallEnd call_3 Failure"
      ])
      assert.deepStrictEqual(ends(second), ["CallEnd call_3 Success"])
    }))

  it.effect("that a gate edits runs with that input after a pause too, whatever was read into the one it replaced", () =>
    Effect.gen(function*() {
      const ran: Array<number> = []
      const pay = Tool.make("pay", {
        input: { n: Schema.Finite },
        handler: ({ n }) => Effect.sync(() => String(ran.push(n)))
      })
      const agent = AgentLoop.make("bot", {
        gate: ({ input }) =>
          Effect.succeed(JSON.stringify(input) === '{"n":150}' ? Gate.edit({ n: 10 }) : Gate.pause("who pays?"))
      })
      const result = yield* Effect.gen(function*() {
        const paused = yield* AgentLoop.run(agent, { prompt: "go" })
        if (paused._tag !== "Paused") throw new Error(paused._tag)
        assert.deepStrictEqual(paused.pending.map(({ input }) => input), [{ n: 10 }])
        return yield* AgentLoop.resume(agent, paused, { call_1: Pause.approve })
      }).pipe(Effect.provide([ToolRegistry.layer(pay), ScriptedModel.layer([call("pay", { n: "150" })], "done")]))
      assert.deepStrictEqual([ran, result.turns[0]?.calls.map(({ input }) => input)], [[10], [{ n: 10 }]])
    }))

  it.effect("within which an agent waits has not failed", () =>
    Effect.gen(function*() {
      const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
      const inner = AgentLoop.make("inner", { model: ScriptedModel.layer([call("pay")]) })
      const { events, onEvent } = keep()
      yield* AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
        Effect.provide([
          ToolRegistry.layer(AgentLoop.asTool(inner, { description: "" })).pipe(Layer.provide(ToolRegistry.layer(pay))),
          ScriptedModel.layer([call("inner", { prompt: "x" })])
        ])
      )
      const end = events.find((event) => event._tag === "CallEnd")
      assert.deepStrictEqual(end?.outcome, {
        _tag: "Interrupted",
        stillRunning: false,
        reason: "an agent within it waits"
      })
    }))

  it.effect("that throws was tried, and one that `around` runs twice was tried twice, though nothing of it was retried", () =>
    Effect.gen(function*() {
      const throwing = Tool.make("throwing", {
        handler: (): Effect.Effect<string> => {
          throw new Error("no")
        }
      })
      const twice = Tool.make("twice", { retry: true, handler: () => Effect.succeed("x") })
      const { events, onEvent } = keep()
      yield* AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
        Effect.provide([
          ToolRegistry.layer(throwing, twice).pipe(ToolRegistry.around((_, next) => Effect.andThen(next, next))),
          quiet
        ]),
        Effect.provide(ScriptedModel.layer([call("throwing"), call("twice")], "done"))
      )
      assert.deepStrictEqual(
        events.flatMap((event) => event._tag === "CallEnd" ? [[event.call.name, event.attempts]] : []),
        [["throwing", 2], ["twice", 2]]
      )
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "Retry"), [])
    }))

  it.effect("is shown while it arrives as the call that it becomes, though a sibling of its id is empty", () =>
    Effect.gen(function*() {
      const { events, onEvent } = keep()
      yield* AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
        Effect.provide([
          ToolRegistry.layer(note),
          ScriptedModel.layer([call("note", "", "x"), call("note", { n: 1 }, "x")], "done")
        ])
      )
      const shown = events.flatMap((event) => event._tag === "InputDelta" ? [event.callId] : [])
      const [, second] = events.flatMap((event) => event._tag === "CallStart" ? [event.call.id] : [])
      assert.deepStrictEqual(shown, [second])
    }))
})

describe("requests that are made again", () => {
  it.effect("are counted over everything that stands around a model", () =>
    Effect.gen(function*() {
      const failing = ScriptedModel.layer({ fails: busy }, { fails: busy }).pipe(Provider.retry({ times: 1, base: 1 }))
      const model = Provider.fallback(failing, ScriptedModel.layer("done"))
      const { events, onEvent } = keep()
      yield* ticking(
        AgentLoop.run(bot, { prompt: "go", onEvent }).pipe(
          Effect.provide([ToolRegistry.layer(), model, quiet])
        )
      )
      assert.deepStrictEqual(events.flatMap((event) => event._tag === "Retry" ? [event.attempt] : []), [2, 3])
    }))

  it.effect("begin and end each call in a stream of effect/ai", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.layer(
        { says: [call("note", { n: 1 }, "a")], fails: busy },
        [call("note", { n: 2 }, "b")]
      ).pipe(Provider.retry({ base: 1 }))
      const parts = yield* ticking(
        LanguageModel.streamText({ prompt: "go", disableToolCallResolution: true, toolkit: Toolkit.make(note) }).pipe(
          Stream.map((part) => "id" in part ? `${part.type} ${part.id}` : part.type),
          Stream.runCollect,
          Effect.provide([model, quiet])
        )
      )
      assert.deepStrictEqual(parts.filter((part) => part.startsWith("tool-params")), [
        "tool-params-start a",
        "tool-params-delta a",
        "tool-params-start b",
        "tool-params-delta b",
        "tool-params-end a",
        "tool-params-end b"
      ])
    }))
})
