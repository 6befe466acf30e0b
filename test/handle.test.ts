// How is a run watched, told something and ended from outside?
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Pause from "toolfold/Pause"
import * as Provider from "toolfold/Provider"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief, faults, logged } from "./utils.ts"

const { call } = ScriptedModel

const bot = AgentLoop.make("bot")
const look = Tool.make("look", { handler: () => Effect.succeed("seen") })

const down = AiError.make({
  module: "T",
  method: "m",
  reason: new AiError.InternalProviderError({ description: "down" })
})

/** A tool that says when it has started, and ends when it is let. */
const gate = Effect.gen(function*() {
  const [started, open] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const tool = Tool.make("wait", {
    handler: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.as(Deferred.await(open), "waited"))
  })
  return { tool, started: Deferred.await(started), open: Deferred.succeed(open, undefined) }
})

const happened = [
  "RunStart",
  "TurnStart",
  "InputDelta",
  "CallStart",
  "CallEnd",
  "TurnEnd",
  "TurnStart",
  "TextDelta",
  "TurnEnd",
  "RunEnd"
]

describe("a handle", () => {
  it.effect("builds the agent's own model once, and releases it with the scope", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const kept = Effect.acquireRelease(
        Effect.sync(() => log.push("built")),
        () => Effect.sync(() => log.push("released"))
      )
      const model = Layer.unwrap(Effect.as(kept, ScriptedModel.layer([call("look")], "done")))
      const own = AgentLoop.make("own", { model, instructions: Effect.succeed("Look.") })
      yield* Effect.scoped(Effect.gen(function*() {
        const handle = yield* AgentLoop.start(own, { prompt: "go" })
        log.push((yield* handle.await).text)
      }))
      assert.deepStrictEqual(log, ["built", "done", "released"])
    }).pipe(Effect.provide(ToolRegistry.layer(look))))

  it.effect("can be given up while the agent's own model is built", () =>
    Effect.gen(function*() {
      const building = yield* Deferred.make<void>()
      const model = Layer.unwrap(
        Effect.andThen(Deferred.succeed(building, undefined), Effect.as(Effect.never, ScriptedModel.layer()))
      )
      const own = AgentLoop.make("own", { model })
      const starting = yield* Effect.forkChild(Effect.scoped(AgentLoop.start(own, { prompt: "go" })))
      yield* Deferred.await(building)
      yield* Fiber.interrupt(starting)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(starting)))
    }).pipe(Effect.provide(ToolRegistry.layer(look))))

  it.effect("shows everything that happened, also to who begins to watch when it is over", () =>
    Effect.gen(function*() {
      const handle = yield* AgentLoop.start(bot, { prompt: "go" })
      const watching = yield* Effect.forkChild(Stream.runCollect(handle.events))
      yield* handle.await
      const tags = happened
      assert.deepStrictEqual((yield* Fiber.join(watching)).map(({ _tag }) => _tag), tags)
      assert.deepStrictEqual((yield* Stream.runCollect(handle.events)).map(({ _tag }) => _tag), tags)
    }).pipe(Effect.provide([ToolRegistry.layer(look), ScriptedModel.layer([call("look")], "done")])))

  it.effect("tells a running run something at the next turn, never between a call and its result", () =>
    Effect.gen(function*() {
      const { open, started, tool } = yield* gate
      const result = yield* Effect.gen(function*() {
        const handle = yield* AgentLoop.start(bot, { prompt: "go" })
        yield* started
        yield* handle.tell("hurry")
        yield* handle.tell("  ")
        yield* open
        return yield* handle.await
      }).pipe(Effect.provide([ToolRegistry.layer(tool), ScriptedModel.layer([call("wait")], "done")]))
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        "assistant: wait#call_1({})",
        "tool: #call_1=waited",
        "user: hurry",
        "assistant: done"
      ])
      assert.deepStrictEqual(faults(result.messages), [])
    }))

  it.effect("leaves nothing unanswered that was said while the model gave its last word", () =>
    Effect.gen(function*() {
      const [asked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const first = { says: ["done"], after: Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go)) }
      const result = yield* Effect.gen(function*() {
        const handle = yield* AgentLoop.start(bot, { prompt: "go" })
        yield* Deferred.await(asked)
        yield* handle.tell("one more thing")
        yield* Deferred.succeed(go, undefined)
        return yield* handle.await
      }).pipe(Effect.provide([ToolRegistry.layer(), ScriptedModel.layer(first, "really done")]))
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        "assistant: done",
        "user: one more thing",
        "assistant: really done"
      ])
    }))
})

describe("a run that pauses", () => {
  it.effect("keeps what it was told meanwhile, and hears it after the calls that waited", () =>
    Effect.gen(function*() {
      const [asked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
      const first = {
        says: [call("pay")],
        after: Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go))
      }
      const result = yield* Effect.gen(function*() {
        const handle = yield* AgentLoop.start(bot, { prompt: "go" })
        yield* Deferred.await(asked)
        yield* handle.tell("and be quick")
        yield* Deferred.succeed(go, undefined)
        const paused = yield* handle.await
        if (paused._tag !== "Paused") throw new Error(paused._tag)
        const state: Pause.Encoded = JSON.parse(JSON.stringify(paused.state))
        return yield* AgentLoop.resume(bot, state, { call_1: Pause.approve })
      }).pipe(Effect.provide([ToolRegistry.layer(pay), ScriptedModel.layer(first, "done")]))
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        "assistant: pay#call_1({})",
        "tool: #call_1=paid",
        "user: and be quick",
        "assistant: done"
      ])
    }))
})

describe("cancelling", () => {
  it.effect("SPEC-122: stops the words of a model, and what was begun ends as cancelled", () =>
    Effect.gen(function*() {
      let released = 0
      const talking = Provider.layer({
        ask: (_, sink) =>
          Effect.forever(
            Effect.andThen(sink?.([{ type: "text", delta: "and " }]) ?? Effect.void, Effect.sleep("1 second"))
          ).pipe(Effect.onInterrupt(() => Effect.sync(() => void released++)))
      })
      const handle = yield* AgentLoop.start(bot, { prompt: "go" }).pipe(Effect.provide([ToolRegistry.layer(), talking]))
      yield* TestClock.adjust("2 seconds")
      const result = yield* handle.cancel
      yield* TestClock.adjust("1 minute")
      const events = yield* Stream.runCollect(handle.events)
      assert.deepStrictEqual(events.map(({ _tag }) => _tag), [
        "RunStart",
        "TurnStart",
        "TextDelta",
        "TextDelta",
        "TextDelta",
        "TurnEnd",
        "RunEnd"
      ])
      const last = events.at(-1)
      assert.deepStrictEqual([result._tag, last?._tag === "RunEnd" && last.end, released], [
        "Cancelled",
        "Cancelled",
        1
      ])
      assert.deepStrictEqual(brief(result.messages), ["user: go"])
    }))

  it.effect("SPEC-127: is how the run ended, whatever ends later and however often it is cancelled", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const late = Promise.withResolvers<string>()
      const slow = Tool.make("slow", {
        handler: () =>
          Effect.andThen(
            Deferred.succeed(started, undefined),
            Tool.promise(() => late.promise)
          )
      })
      const { layer } = logged()
      const handle = yield* AgentLoop.start(bot, { prompt: "go" }).pipe(
        Effect.provide([ToolRegistry.layer(slow), ScriptedModel.layer([call("slow")], "done"), layer])
      )
      yield* Deferred.await(started)
      const cancelling = yield* Effect.forkChild(handle.cancel)
      yield* TestClock.adjust("1 second")
      const first = yield* Fiber.join(cancelling)
      late.resolve("too late")
      yield* TestClock.adjust("1 second")
      const again = yield* Effect.all([handle.cancel, handle.await])
      assert.strictEqual(first._tag, "Cancelled")
      assert.deepStrictEqual(again, [first, first])
      assert.deepStrictEqual(first.turns[0]?.outcomes, [{
        _tag: "Interrupted",
        stillRunning: true,
        reason: "the run ended while it ran, so whether it took effect is unknown"
      }])
    }))
})

describe("a run that goes on by itself", () => {
  const ways = (prompt: string) => [
    AgentLoop.run(bot, { prompt }),
    Effect.scoped(Effect.flatMap(AgentLoop.start(bot, { prompt }), (handle) => handle.await)),
    Effect.flatMap(Stream.runCollect(AgentLoop.stream(bot, { prompt })), (events) => {
      const last = events.at(-1)
      return last?._tag === "Result" ? Effect.succeed(last.result) : Effect.die(last)
    })
  ]

  it.effect("SPEC-124: is the same run, with its transcript, as one that is waited for", () =>
    Effect.gen(function*() {
      const results = yield* Effect.forEach(ways("go"), (way) =>
        Effect.map(
          Effect.provide(way, ScriptedModel.layer(["look", call("look"), call("gone")], [call("look")], "done")),
          (result) => ({ ...result, runId: "" })
        ))
      assert.strictEqual(results[0]?.messages.length, 6)
      assert.deepStrictEqual(results.slice(1), [results[0], results[0]])
    }).pipe(Effect.provide(ToolRegistry.layer(look))))

  it.effect("SPEC-124: fails with the very error of the model", () =>
    Effect.gen(function*() {
      for (const way of ways("go")) {
        const error = yield* Effect.flip(Effect.provide(way, ScriptedModel.layer([call("look")], { fails: down })))
        assert.strictEqual(error.reason, down)
        assert.strictEqual(error.partial.turns.length, 1)
      }
    }).pipe(Effect.provide(ToolRegistry.layer(look))))
})

describe("observers", () => {
  it.effect("onEvent gets everything, in order, and may fail", () =>
    Effect.gen(function*() {
      const { layer, lines } = logged()
      const seen: Array<string> = []
      const result = yield* AgentLoop.run(bot, {
        prompt: "go",
        onEvent: ({ _tag }) => {
          seen.push(_tag)
          return _tag === "TurnEnd" ? Effect.fail("no") : undefined
        }
      }).pipe(Effect.provide([ToolRegistry.layer(look), ScriptedModel.layer([call("look")], "done"), layer]))
      assert.deepStrictEqual([result.text, seen], [
        "done",
        happened
      ])
      assert.deepStrictEqual(lines.map(({ message }) => message), [
        "observer onEvent failed",
        "observer onEvent failed"
      ])
    }))

  it.effect("onPartial gets what a run has when its model fails, before the error is given", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const run = AgentLoop.run(bot, {
        prompt: "go",
        onPartial: ({ messages, turns, usage }) => {
          seen.push([brief(messages), turns.length, usage.calls])
        }
      })
      const error = yield* Effect.tapError(run, () => Effect.sync(() => seen.push("error"))).pipe(
        Effect.provide([ToolRegistry.layer(look), ScriptedModel.layer([call("look")], { fails: down })]),
        Effect.flip
      )
      assert.strictEqual(error._tag, "ModelFailed")
      assert.deepStrictEqual(seen, [[["user: go", "assistant: look#call_1({})", "tool: #call_1=seen"], 1, 1], "error"])
    }))

  it.effect("onPartial gets the calls that finished when a run is cancelled or interrupted, and is not interrupted itself", () =>
    Effect.gen(function*() {
      for (const end of ["cancel", "interrupt"] as const) {
        const { started, tool } = yield* gate
        const seen: Array<unknown> = []
        const options = {
          prompt: "go",
          onPartial: ({ messages }: AgentLoop.Ended) =>
            Effect.andThen(Effect.yieldNow, Effect.sync(() => seen.push([brief(messages).length, faults(messages)])))
        }
        const layers = Effect.provide([
          ToolRegistry.layer(tool, look),
          ScriptedModel.layer([call("look"), call("wait")])
        ])
        if (end === "cancel") {
          const result = yield* Effect.gen(function*() {
            const handle = yield* AgentLoop.start(bot, options)
            yield* started
            return yield* handle.cancel
          }).pipe(layers)
          assert.strictEqual(result._tag, "Cancelled")
        } else {
          const fiber = yield* Effect.forkChild(layers(AgentLoop.run(bot, options)))
          yield* started
          yield* Fiber.interrupt(fiber)
        }
        assert.deepStrictEqual(seen, [[3, []]])
      }
    }))

  it.effect("onPartial that never ends holds the end of a run up for a second", () =>
    Effect.gen(function*() {
      const run = AgentLoop.run(bot, { prompt: "go", onPartial: () => Effect.never })
      const fiber = yield* Effect.forkChild(
        Effect.flip(Effect.provide(run, [ToolRegistry.layer(), ScriptedModel.layer({ fails: down })]))
      )
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error._tag, "ModelFailed")
    }))
})
