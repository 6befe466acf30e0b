// Whatever a batch does and wherever a run ends: the transcript is valid, the context is the fold of the calls that
// succeeded in call order, and the order in which calls finish shows nowhere.
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Stop from "toolfold/Stop"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief, faults, quiet } from "./utils.ts"

class Log extends Context.Slots<Log>()("test/Log", {
  order: Context.list(Schema.String),
  last: Context.last(Schema.String, ""),
  sum: Context.sum
}) {}

class Failed extends Schema.TaggedError<Failed>()("Failed", {}) {}

const step = Tool.make("step", {
  input: { label: Schema.String, ms: Schema.Int, does: Schema.Literals(["succeed", "fail", "die", "quit"]) },
  failure: Failed,
  handler: ({ does, label, ms }) =>
    Effect.gen(function*() {
      const log = yield* Log
      yield* log.write({ order: [`${label}a`], last: label, sum: ms })
      if (ms > 0) yield* Effect.sleep(ms)
      yield* log.write({ order: [`${label}b`] })
      switch (does) {
        case "succeed":
          return `saw ${log.get("order").length}`
        case "fail":
          return yield* new Failed()
        case "die":
          return yield* Effect.die(new Error(label))
        case "quit":
          return yield* Effect.interrupt
      }
    })
})

// Success is the most frequent, so that there is something to fold.
const aCall = Arbitrary.schema(Schema.Struct({
  ms: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8 })),
  does: Schema.Literals(["succeed", "succeed", "succeed", "fail", "die", "quit"]),
  name: Schema.Literals(["step", "step", "step", "step", "gone"])
}))

const aCase = Arbitrary.all({
  turns: Arbitrary.array(Arbitrary.array(aCall, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 }),
  concurrency: Arbitrary.schema(Schema.Literals(["sequential", 2, 8, "unbounded"])),
  cancelAt: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })))
})
type Case = typeof aCase extends Arbitrary.Arbitrary<infer A> ? A : never

type Exit = "end" | "cancel" | "limit" | "stop" | "failure"

const down = AiError.make({
  module: "Test",
  method: "ask",
  reason: new AiError.InternalProviderError({ description: "down" })
})

const play = (sample: Case, exit: Exit, concurrency: Case["concurrency"] = sample.concurrency) =>
  Effect.gen(function*() {
    const script: Array<ScriptedModel.Turn> = sample.turns.map((calls, turn) =>
      calls.map(({ does, ms, name }, at) => ScriptedModel.call(name, { label: `${turn}.${at}`, ms, does }))
    )
    script.push(exit === "failure" ? { fails: down } : "done")
    const agent = AgentLoop.make("bot", {
      concurrency,
      maxTurns: exit === "limit" ? sample.turns.length : 10,
      maxConsecutiveToolErrors: Infinity,
      ...(exit === "stop" ? { stop: Stop.afterTurns(Math.max(1, sample.turns.length - 1)) } : {})
    })
    const handle = yield* AgentLoop.start(agent, { prompt: "go" }).pipe(
      Effect.provide(ToolRegistry.layer(step)),
      Effect.provide([Log.layer, ScriptedModel.layer(...script), quiet])
    )
    if (exit === "cancel") {
      yield* TestClock.adjust(sample.cancelAt)
      return yield* handle.cancel
    }
    yield* TestClock.adjust(1_000)
    return yield* handle.await.pipe(
      Effect.catchTag("ModelFailed", (error) => Effect.succeed({ _tag: "Failed" as const, ...error.partial }))
    )
  }).pipe(Effect.scoped, Random.withSeed("one seed for every run"))

type Ended = Effect.Success<ReturnType<typeof play>>

/** The fold of what the calls that succeeded wrote, in call order: from the script and the outcomes alone. */
const expected = ({ turns }: Ended) =>
  Log.from(Context.fold(
    Context.empty,
    turns.flatMap(({ calls, outcomes }) =>
      calls.flatMap(({ input }, at) => {
        if (outcomes[at]?._tag !== "Success") return []
        const { label, ms } = input as { readonly label: string; readonly ms: number }
        return [Log.write({ order: [`${label}a`, `${label}b`], last: label, sum: ms })]
      })
    )
  ))

/** Holds unless an assertion throws. */
const holds = (assertions: () => void): Effect.Effect<boolean, unknown> =>
  Effect.try({
    try: () => {
      assertions()
      return true
    },
    catch: (error) => error
  })

const sound = (ended: Ended) =>
  holds(() => {
    assert.deepStrictEqual(faults(ended.messages), [])
    assert.deepStrictEqual(Log.from(ended.context), expected(ended))
    for (const turn of ended.turns) assert.strictEqual(turn.outcomes.length, turn.calls.length)
  })

const check = (runs: number, property: (sample: Case) => Effect.Effect<boolean, unknown>) =>
  Effect.gen(function*() {
    const seed = Number(process.env.SEED ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
    // oxlint-disable-next-line no-console -- a failure must be found again
    console.log(`seed ${seed}, ${runs} cases (again: SEED=${seed})`)
    const result = yield* Arbitrary.checkEffect(aCase, property, { runs, seed })
    const failure = Arbitrary.formatCheckFailure(result)
    if (failure !== undefined) assert.fail(failure)
  })

describe("a run of random batches", () => {
  it.effect(
    "ends with a valid transcript and the fold of what succeeded, in call order",
    () => check(500, (sample) => Effect.flatMap(play(sample, "end"), sound)),
    60_000
  )

  it.effect(
    "gives the same messages and the same context one call at a time and all at once",
    () =>
      check(250, (sample) =>
        Effect.gen(function*() {
          const one = yield* play(sample, "end", "sequential")
          const all = yield* play(sample, "end", "unbounded")
          return yield* holds(() => {
            assert.strictEqual(all._tag, "Completed")
            assert.deepStrictEqual(brief(all.messages), brief(one.messages))
            assert.deepStrictEqual(Log.from(all.context), Log.from(one.context))
          })
        })),
    60_000
  )

  it.effect(
    "is sound wherever it is cancelled",
    () => check(500, (sample) => Effect.flatMap(play(sample, "cancel"), sound)),
    60_000
  )

  for (const exit of ["limit", "stop", "failure"] as const) {
    it.effect(
      `is sound when it ends by ${exit}`,
      () => check(60, (sample) => Effect.flatMap(play(sample, exit), sound)),
      60_000
    )
  }
})
