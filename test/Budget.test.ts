// What may still be spent? One budget, whoever shares it, and never more than that.
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Budget from "toolfold/Budget"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Usage from "toolfold/Usage"
import { logged } from "./utils.ts"

const usage = (totalTokens: number, costUsd?: number): Usage.Usage => ({
  ...Usage.empty,
  totalTokens,
  calls: 1,
  model: "m",
  ...(costUsd === undefined ? {} : { costUsd })
})

describe("a budget", () => {
  it("gives requests until they are used up", () => {
    const budget = Budget.make({ requests: 2 })
    assert.deepStrictEqual([Budget.takeRequest(budget), Budget.takeRequest(budget), Budget.takeRequest(budget)], [
      true,
      true,
      false
    ])
    assert.deepStrictEqual(budget.spent(), { requests: 2, toolCalls: 0, tokens: 0, usd: 0 })
  })

  it("gives as many calls as are left of those that are wanted", () => {
    const budget = Budget.make({ toolCalls: 5 })
    assert.deepStrictEqual([3, 3, 3].map((wanted) => Budget.takeCalls(budget, wanted)), [3, 2, 0])
  })

  it.effect("gives no request when its tokens or dollars are spent, and lets the last one go beyond", () =>
    Effect.gen(function*() {
      const tokens = Budget.make({ tokens: 100 })
      assert.isTrue(Budget.takeRequest(tokens))
      yield* Budget.charge(tokens, usage(99))
      assert.isTrue(Budget.takeRequest(tokens))
      yield* Budget.charge(tokens, usage(50))
      assert.isFalse(Budget.takeRequest(tokens))
      assert.strictEqual(tokens.spent().tokens, 149)
      const usd = Budget.make({ usd: 1 })
      yield* Budget.charge(usd, usage(1, 1))
      assert.isFalse(Budget.takeRequest(usd))
    }))

  it.effect("SPEC-133: a price that is not known never blocks, and is reported once", () =>
    Effect.gen(function*() {
      const { layer, lines } = logged()
      const budget = Budget.make({ usd: 1 })
      yield* Effect.provide(Effect.andThen(Budget.charge(budget, usage(1)), Budget.charge(budget, usage(1))), layer)
      assert.isTrue(Budget.takeRequest(budget))
      assert.deepStrictEqual(lines.map(({ message }) => message), [
        "the price of m is not known: the budget's usd does not hold for it"
      ])
    }))

  it.effect("SPEC-131: is charged nothing for a request that is cancelled, but that it was made", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const budget = Budget.make({ requests: 10, tokens: 100 })
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go", budget }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(ScriptedModel.layer({
          says: ["never said"],
          usage: { input: 10, output: 5 },
          after: Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        }))
      )
      yield* Deferred.await(asked)
      const result = yield* handle.cancel
      assert.deepStrictEqual([result._tag, result.usage, budget.spent()], [
        "Cancelled",
        { ...Usage.empty, byModel: {} },
        { requests: 1, toolCalls: 0, tokens: 0, usd: 0 }
      ])
    }))

  it.effect("within another spends of both, and takes nothing where one has nothing left", () =>
    Effect.gen(function*() {
      const outer = Budget.make({ requests: 2, tokens: 10 })
      const inner = Budget.within(Budget.make({ requests: 5, toolCalls: 1 }), outer)
      assert.deepStrictEqual([Budget.takeRequest(inner), Budget.takeRequest(inner), Budget.takeRequest(inner)], [
        true,
        true,
        false
      ])
      yield* Budget.charge(inner, usage(7))
      assert.deepStrictEqual([inner.spent(), outer.spent()], [
        { requests: 2, toolCalls: 0, tokens: 7, usd: 0 },
        { requests: 2, toolCalls: 0, tokens: 7, usd: 0 }
      ])
      const tight = Budget.within(Budget.make({ requests: 0 }), outer)
      assert.isFalse(Budget.takeRequest(tight))
      assert.strictEqual(outer.spent().requests, 2)
    }))

  it("needs a limit, and one that is a number from 0 on", () => {
    assert.throws(() => Budget.make({}), "a budget needs a limit: requests, toolCalls, tokens, usd")
    assert.throws(() => Budget.make({ requests: -1 }), "a budget's requests must be a number from 0 on, got -1")
    assert.throws(() => Budget.make({ usd: NaN }), "a budget's usd must be a number from 0 on, got NaN")
  })

  it.effect("never gives more than its own limit and that of any around it", () =>
    Effect.gen(function*() {
      const small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 6 }))
      const aCase = Arbitrary.schema(Schema.Struct({ outer: small, inner: small, wanted: Schema.Array(small) }))
      const result = yield* Arbitrary.checkEffect(aCase, ({ inner, outer, wanted }) =>
        Effect.sync(() => {
          const around = Budget.make({ toolCalls: outer })
          const budget = Budget.within(Budget.make({ toolCalls: inner }), around)
          const taken = wanted.map((calls) => Budget.takeCalls(budget, calls))
          assert.strictEqual(budget.spent().toolCalls, Math.min(inner, outer, wanted.reduce((sum, n) => sum + n, 0)))
          assert.strictEqual(around.spent().toolCalls, budget.spent().toolCalls)
          assert.isTrue(taken.every((given, at) => given <= (wanted[at] ?? 0)))
          return true
        }), { runs: 300 })
      const failure = Arbitrary.formatCheckFailure(result)
      if (failure !== undefined) assert.fail(failure)
    }))

  it("within itself, however deep, spends once", () => {
    const shared = Budget.make({ requests: 10 })
    const twice = Budget.within(shared, Budget.within(Budget.make({ requests: 50 }), shared))
    assert.isTrue(Budget.takeRequest(twice))
    assert.isTrue(Budget.takeRequest(Budget.within(shared, shared)))
    assert.strictEqual(shared.spent().requests, 2)
  })
})
