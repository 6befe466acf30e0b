import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Context from "toolfold/Context"
import * as Gate from "toolfold/Gate"
import * as Subject from "toolfold/Subject"
import * as Tool from "toolfold/Tool"

const info: Gate.Info = { agent: "bot", runId: "r", turn: 0, context: Context.empty, calls: [] }
const plain = Tool.make("plain", { input: { n: Schema.Int }, handler: () => Effect.succeed("") })
const publish = Tool.make("publish", { sensitive: true, handler: () => Effect.succeed("") })
const asked = (tool: Tool.Any, input: unknown = { n: 1 }) => Gate.asked({ id: "c1", tool, input })
const says = (decision: Gate.Decision): Gate.Gate => () => Effect.succeed(decision)
const decide = <R>(gate: Gate.Gate<R>, call = asked(plain)) => Gate.decide(gate, call, info)

/** What a gate comes to, and what stands in the log. */
const withLog = (gate: Gate.Gate) => {
  const log: Array<{ readonly message: unknown; readonly cause: string; readonly annotations: unknown }> = []
  const logger = Logger.make(({ cause, fiber, message }) => {
    const annotations =
      Logger.formatStructured.log({ cause, fiber, message, date: new Date(0), logLevel: "Error" }).annotations
    log.push({ message, cause: Cause.pretty(cause), annotations })
  })
  return Effect.map(Effect.provide(decide(gate), Logger.layer([logger])), (decision) => ({ decision, log }))
}

describe("a gate", () => {
  it.effect("comes to what it decides", () =>
    Effect.gen(function*() {
      const decisions = [
        Gate.proceed,
        Gate.pause("wait"),
        Gate.reject("no"),
        Gate.reply("42"),
        Gate.edit({ n: 2 })
      ]
      assert.deepStrictEqual(yield* Effect.forEach(decisions, (decision) => decide(says(decision))), decisions)
      const stored = Schema.decodeUnknownSync(Gate.Decision)(JSON.parse(JSON.stringify(decisions[4])))
      assert.deepStrictEqual(stored, { _tag: "Edit", input: { n: 2 } })
    }))

  it.effect("sees the call and where it comes from, and needs what it needs", () =>
    Effect.gen(function*() {
      class Users extends Services.Service<Users, { readonly name: string }>()("test/Users") {}
      const gate: Gate.Gate<Users> = (call, { agent, calls }) =>
        Effect.map(Users, ({ name }) =>
          Gate.reject([name, agent, calls.length, call.id, call.name, JSON.stringify(call.input)].join(" ")))
      assert.deepStrictEqual(
        yield* Effect.provideService(decide(gate), Users, { name: "Ada" }),
        Gate.reject('Ada bot 0 c1 plain {"n":1}')
      )
    }))

  it.effect("that fails refuses, and its error is in the log alone, under an id that both carry", () =>
    Effect.gen(function*() {
      const { decision, log } = yield* withLog(() => Effect.fail(new Error("password=1")))
      const reason = decision._tag === "Reject" ? decision.reason : ""
      const [, errorId] = /^it could not be decided whether it may run \(error id (\w+)\)$/.exec(reason) ?? []
      assert.deepStrictEqual(log.map(({ annotations, message }) => ({ annotations, message })), [
        { annotations: { errorId, callId: "c1" }, message: ['the gate of a call of "plain" failed'] }
      ])
      assert.include(log[0]?.cause ?? "", "password=1")
    }))

  const broken: { readonly [how: string]: Gate.Gate } = {
    dies: () => Effect.die("password=1"),
    throws: () => {
      throw new Error("password=1")
    },
    "interrupts itself": () => Effect.interrupt,
    "waits for what was interrupted": () => Effect.flatMap(Effect.forkChild(Effect.interrupt), Fiber.join),
    "gives nothing": says(undefined as never),
    "gives true": says(true as never),
    "gives a decision without its reason": says({ _tag: "Pause" } as never),
    "gives a decision that does not exist": says({ _tag: "Approve" } as never),
    "gives no Effect": (() => Gate.proceed) as never,
    "gives a promise": (() => Promise.reject(new Error("password=1"))) as never
  }
  for (const [how, gate] of Object.entries(broken)) {
    it.effect(`that ${how} refuses`, () =>
      Effect.gen(function*() {
        for (const one of [gate, Gate.all(Gate.allow, gate), Gate.all(gate, Gate.allow), Gate.ask(gate, Gate.allow)]) {
          const { decision, log } = yield* withLog(one)
          assert.strictEqual(decision._tag, "Reject")
          assert.notInclude(JSON.stringify(decision), "password")
          assert.strictEqual(log.length, 1)
        }
      }))
  }

  it.effect("is over when whoever asks is interrupted", () =>
    Effect.gen(function*() {
      const entered = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        decide(() => Effect.andThen(Deferred.succeed(entered, undefined), Effect.never))
      )
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }))

  it.effect("that edits a call to what it is lets it go on", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* decide(says(Gate.edit({ n: 1 }))), Gate.proceed)
      const both = Gate.all(says(Gate.edit({ n: 1 })), says(Gate.edit({ n: 2 })))
      assert.deepStrictEqual(yield* decide(both), Gate.edit({ n: 2 }))
    }))
})

describe("ready-made gates", () => {
  it.effect("SPEC-107 the default pauses on tools that are declared sensitive, and on no other", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* decide(Gate.sensitive), Gate.proceed)
      assert.deepStrictEqual(
        yield* decide(Gate.sensitive, asked(publish)),
        Gate.pause('the tool "publish" is sensitive: a call of it needs approval')
      )
      assert.deepStrictEqual(yield* decide(Gate.allow, asked(publish)), Gate.proceed)
      assert.deepStrictEqual(yield* decide(Gate.deny("not on Sundays")), Gate.reject("not on Sundays"))
    }))

  it.effect("the default asks a tool's own needsApproval, and pauses where that says so or cannot say", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const large = plain.setNeedsApproval(({ n }, context) =>
        Effect.sync(() => {
          seen.push([n, context])
          return n > 10
        })
      )
      const gate = (decoded: unknown) =>
        decide(Gate.sensitive, Gate.asked({ id: "c2", tool: large, input: { n: "as JSON" }, decoded }))
      assert.strictEqual((yield* gate({ n: 1 }))._tag, "Proceed")
      assert.strictEqual((yield* gate({ n: 11 }))._tag, "Pause")
      assert.deepStrictEqual(seen, [1, 11].map((n) => [n, { toolCallId: "c2", messages: [] }]))
      const broken = plain.setNeedsApproval(() => {
        throw new Error("no")
      })
      const { decision } = yield* withLog((_, info) => Gate.sensitive(asked(broken), info))
      assert.strictEqual(decision._tag, "Reject")
    }))

  it.effect("a gate for some tools leaves the others alone", () =>
    Effect.gen(function*() {
      const gate = Gate.forTools(["publish"], Gate.deny("no"))
      assert.deepStrictEqual(yield* decide(gate), Gate.proceed)
      assert.deepStrictEqual(yield* decide(gate, asked(publish)), Gate.reject("no"))
    }))

  it.effect("SPEC-109 asking on the spot: who says yes lets it run, who says no refuses it, and others are not asked", () =>
    Effect.gen(function*() {
      const heard: Array<string> = []
      const gate = (answer: boolean) =>
        Gate.ask(Gate.sensitive, (call, _, reason) =>
          Effect.sync(() => {
            heard.push(`${call.name}: ${reason}`)
            return answer ? Gate.proceed : Gate.reject("the user said no")
          }))
      assert.deepStrictEqual(yield* decide(gate(true), asked(publish)), Gate.proceed)
      assert.deepStrictEqual(yield* decide(gate(false), asked(publish)), Gate.reject("the user said no"))
      assert.deepStrictEqual(yield* decide(gate(false)), Gate.proceed)
      const reason = 'publish: the tool "publish" is sensitive: a call of it needs approval'
      assert.deepStrictEqual(heard, [reason, reason])
    }))
})

describe("a call as a gate sees it", () => {
  it.effect("says what it touches by its decoded input, once, and only to who looks", () =>
    Effect.gen(function*() {
      let looked = 0
      const tool = Tool.make("read", {
        input: { at: Schema.URL },
        subjects: ({ at }) => {
          looked++
          return [Subject.network(at)]
        },
        handler: () => Effect.succeed("")
      })
      const at = new URL("https://example.com/a")
      const call = Gate.asked({ id: "1", tool, input: { at: at.href }, decoded: { at } })
      yield* decide(Gate.sensitive, call)
      assert.strictEqual(looked, 0)
      assert.deepStrictEqual([call.subjects, call.subjects], [[Subject.network(at.href)], [Subject.network(at.href)]])
      assert.strictEqual(looked, 1)
    }))
})

const rank = { Proceed: 0, Edit: 1, Reply: 2, Pause: 3, Reject: 4 }

describe("several gates", () => {
  it.effect("give the strictest answer, and of equally strict ones the first", () =>
    Effect.gen(function*() {
      const all = (...decisions: ReadonlyArray<Gate.Decision>) => decide(Gate.all(...decisions.map(says)))
      assert.deepStrictEqual(yield* all(), Gate.proceed)
      assert.deepStrictEqual(yield* all(Gate.edit({}), Gate.reply("r"), Gate.pause("p"), Gate.proceed), Gate.pause("p"))
      assert.deepStrictEqual(yield* all(Gate.edit({}), Gate.reply("r")), Gate.reply("r"))
      assert.deepStrictEqual(yield* all(Gate.proceed, Gate.edit({})), Gate.edit({}))
      assert.deepStrictEqual(yield* all(Gate.pause("1"), Gate.pause("2")), Gate.pause("1"))
      assert.deepStrictEqual(yield* all(Gate.edit({ n: 2 }), Gate.edit({ n: 3 })), Gate.edit({ n: 2 }))
    }))

  it.effect("are asked in order, and none after one that rejects", () =>
    Effect.gen(function*() {
      const heard: Array<string> = []
      const gate = (decision: Gate.Decision): Gate.Gate => () =>
        Effect.sync(() => {
          heard.push(decision._tag)
          return decision
        })
      yield* decide(Gate.all(gate(Gate.pause("")), gate(Gate.proceed), gate(Gate.reject("")), gate(Gate.reply(""))))
      assert.deepStrictEqual(heard, ["Pause", "Proceed", "Reject"])
    }))

  const aDecision = Arbitrary.schema(
    Schema.Union([
      Gate.Proceed,
      Schema.TaggedStruct("Pause", { reason: Schema.Literals(["1", "2"]) }),
      Schema.TaggedStruct("Reject", { reason: Schema.Literals(["1", "2"]) }),
      Schema.TaggedStruct("Reply", { text: Schema.Literals(["1", "2"]) }),
      Schema.TaggedStruct("Edit", { input: Schema.Struct({ n: Schema.Literals([1, 2, 3]) }) }),
      Schema.TaggedStruct("Broken", {})
    ])
  )
  const gateOf = (decision: Gate.Decision | { readonly _tag: "Broken" }): Gate.Gate =>
    decision._tag === "Broken" ? () => Effect.fail("no") : says(decision)
  const shown = (gate: Gate.Gate) =>
    Effect.map(
      Effect.provide(decide(gate), Logger.layer([])),
      (decision) => JSON.stringify(decision).replace(/error id \w+/, "error id")
    )

  it.effect("are the same however they are grouped, and no weaker than any of them", () =>
    Effect.gen(function*() {
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.array(aDecision, { minLength: 3, maxLength: 3 }),
        (decisions) =>
          Effect.gen(function*() {
            const [a, b, c] = decisions.map(gateOf)
            if (a === undefined || b === undefined || c === undefined) return false
            const one = yield* shown(Gate.all(a, Gate.all(b, c)))
            const isSame = one === (yield* shown(Gate.all(Gate.all(a, b), c))) &&
              one === (yield* shown(Gate.all(a, b, c)))
            const together: Gate.Decision = JSON.parse(one)
            const alone = yield* Effect.forEach([a, b, c], shown)
            return isSame && alone.every((each) => {
              const decision: Gate.Decision = JSON.parse(each)
              return rank[together._tag] >= rank[decision._tag]
            })
          }),
        { runs: 300, seed: 3 }
      )
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    }))
})
