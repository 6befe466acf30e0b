// What does a run do that is interrupted? It calls tools that write, wait, fail, try again, listen, and ask another agent,
// and that count what they hold.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { EventEmitter } from "node:events"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

const { call } = ScriptedModel

export class Log extends Context.Slots<Log>()("test/InterruptedLog", {
  order: Context.list(Schema.String),
  sum: Context.sum
}) {}

/** A failure that may pass. */
class Busy extends Schema.TaggedError<Busy>()("Busy", {}) {}

const Label = { label: Schema.String }

/** Tools that write before and after they wait, with a count of what they hold. */
export const tooling = () => {
  const heard = new EventEmitter()
  const held = { open: 0 }
  const attempts = new Map<string, number>()
  const writing = <A, E>(label: string, body: Effect.Effect<A, E>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => held.open++),
      () =>
        Effect.gen(function*() {
          const log = yield* Log
          yield* log.write({ order: [`${label}<`], sum: 1 })
          const value = yield* body
          yield* log.write({ order: [`${label}>`], sum: 1 })
          return value
        }),
      () => Effect.sync(() => held.open--)
    )
  const step = Tool.make("step", {
    input: Label,
    handler: ({ label }) => writing(label, Effect.as(Effect.sleep("3 millis"), `did ${label}`))
  })
  const bad = Tool.make("bad", {
    input: Label,
    failure: Busy,
    handler: ({ label }) => writing(label, Effect.fail(new Busy()))
  })
  const flaky = Tool.make("flaky", {
    input: Label,
    failure: Busy.pipe(Tool.failureClass("transient")),
    retry: Schedule.spaced("10 millis"),
    timeout: "1 second",
    concurrency: 1,
    handler: ({ label }) =>
      writing(
        label,
        Effect.suspend(() => {
          const attempt = (attempts.get(label) ?? 0) + 1
          attempts.set(label, attempt)
          return attempt < 3 ? Effect.fail(new Busy()) : Effect.succeed(`did ${label}`)
        }).pipe(Effect.delay("2 millis"))
      )
  })
  const hear = Tool.make("hear", {
    input: Label,
    conflictKey: () => "ear",
    handler: ({ label }) =>
      writing(
        label,
        Effect.callback<string>((resume) => {
          const on = () => resume(Effect.succeed(`heard ${label}`))
          heard.once("said", on)
          return Effect.sync(() => heard.off("said", on))
        })
      )
  })
  const foreign = Tool.make("foreign", {
    input: Label,
    handler: ({ label }) =>
      writing(
        label,
        Tool.promise((signal) =>
          new Promise<string>((resolve) => {
            const on = () => {
              heard.off("said", on)
              signal.removeEventListener("abort", on)
              resolve(`heard ${label}`)
            }
            heard.on("said", on)
            signal.addEventListener("abort", on)
          })
        )
      )
  })
  const say = Tool.make("say", {
    input: Label,
    handler: ({ label }) => writing(label, Effect.sync(() => String(heard.emit("said"))).pipe(Effect.delay("5 millis")))
  })
  const pay = Tool.make("pay", {
    input: Label,
    sensitive: true,
    handler: ({ label }) => writing(label, Effect.succeed("paid"))
  })
  const helper = AgentLoop.make("helper", {
    model: ScriptedModel.layer([call("step", { label: "inner" })], "helped")
  })
  const help = AgentLoop.asTool(helper, { description: "Helps" })
  const inner = ToolRegistry.layer(step)
  return {
    held: () => held.open + heard.listenerCount("said"),
    layer: ToolRegistry.layer(step, bad, flaky, hear, foreign, say, pay, help).pipe(
      Layer.provide([inner, Log.layer]),
      Layer.provide(Log.layer)
    )
  }
}
