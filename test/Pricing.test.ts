import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Pricing from "../src/Pricing.ts"
import * as Usage from "../src/Usage.ts"

const usage = (given: Partial<Usage.Usage>): Usage.Usage => ({ ...Usage.empty, calls: 1, ...given })
const listed = Pricing.make()
const price = (pricing: Pricing.Pricing, model: string) => pricing.priceOf(model)?.input

describe("the price of a model", () => {
  it("is that of the list, by its id, without its provider, its date and its version", () => {
    assert.deepStrictEqual(
      [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4.5",
        "claude-sonnet-4-5@20250929",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "Claude-Sonnet-4-5",
        "claude-3-5-haiku-latest",
        "anthropic/claude-3.5-haiku",
        "openai/gpt-4o",
        "gpt-4o-2024-08-06",
        "gpt-4o-2024-05-13",
        "openai/gpt-4o-2024-05-13",
        "gpt-4o-mini-2024-07-18",
        "models/gemini-2.5-flash"
      ].map((model) => price(listed, model)),
      [3, 3, 3, 3, 3, 3, 3, 0.8, 0.8, 2.5, 2.5, 5, 5, 0.15, 0.3]
    )
  })

  it("is not known of a model that only looks like one of the list", () => {
    for (
      const model of [
        "gpt-5-super",
        "gpt-5-mini-fast",
        "ft:gpt-4o-2024-08-06:org::id",
        "my-claude-sonnet-4-5",
        "claude-sonnet-4-5-fast",
        "openai/gpt-4o:free",
        "gemini-2.5-flash-image",
        "",
        "__proto__",
        "constructor"
      ]
    ) assert.strictEqual(listed.priceOf(model), undefined, model)
  })

  it("is your own first: by the id, then without provider and date, then by the longest part", () => {
    const own = Pricing.make({
      "gpt-4o": { input: 1, output: 1 },
      "openai/gpt-4o": { input: 2, output: 2 },
      qwen: { input: 3, output: 3 },
      "qwen3-coder": { input: 4, output: 4 },
      Local: { input: 0, output: 0 }
    })
    assert.deepStrictEqual(
      [
        "gpt-4o",
        "openai/gpt-4o",
        "azure/gpt-4o-2024-08-06",
        "ft:gpt-4o:org",
        "qwen2.5",
        "QWEN3-CODER-480b",
        "local-model",
        "gpt-4.1",
        "mistral"
      ].map((model) => price(own, model)),
      [1, 2, 1, 1, 3, 4, 0, 2, undefined]
    )
  })

  it("is refused where it is none, all of them at once", () => {
    assert.throws(
      () => Pricing.make({ a: { input: -1, output: Number.NaN }, "": { input: 1, output: 1, cacheRead: Infinity } }),
      'Pricing: input of "a" must be a number that is not negative, got -1; output of "a" must be a number that is not negative, got NaN; a model without an id; cacheRead of "" must be a number that is not negative, got Infinity'
    )
  })
})

describe("the cost of a usage", () => {
  it("USE-01: is that of disjoint parts, whichever way a provider counts what was cached", () => {
    const openAi = Usage.fromResponse({
      inputTokens: { total: 117_231, uncached: 1_647, cacheRead: 115_584, cacheWrite: undefined },
      outputTokens: { total: 225, text: 225, reasoning: undefined }
    })
    const anthropic = Usage.fromResponse({
      inputTokens: { total: 130_213, uncached: 5, cacheRead: 128_955, cacheWrite: 1_253 },
      outputTokens: { total: 10, text: 10, reasoning: undefined }
    })
    assert.deepStrictEqual(
      [openAi, anthropic].map((
        { cacheRead, cacheWrite, inputTokens, totalTokens }
      ) => [inputTokens, cacheRead, cacheWrite, totalTokens]),
      [[117_231, 115_584, 0, 117_456], [130_213, 128_955, 1_253, 130_223]]
    )
    close(Pricing.costOf(listed, "gpt-4o", openAi), (1_647 * 2.5 + 115_584 * 1.25 + 225 * 10) / 1e6)
    close(
      Pricing.costOf(listed, "claude-sonnet-4-5", anthropic),
      (5 * 3 + 128_955 * 0.3 + 1_253 * 3.75 + 10 * 15) / 1e6
    )
  })

  it("SPEC-133: is undefined where the price is not known, and the tokens are counted all the same", () => {
    const spent = usage({ inputTokens: 10, outputTokens: 4, totalTokens: 14 })
    assert.strictEqual(Pricing.costOf(listed, "a-model-of-tomorrow", spent), undefined)
    assert.strictEqual(Usage.add(spent, spent).totalTokens, 28)
  })

  it("takes the price of input for what was cached where there is none for it", () => {
    const own = Pricing.make({ mine: { input: 2, output: 8 } })
    const all = usage({ inputTokens: 1_000_000, cacheRead: 400_000, cacheWrite: 100_000, outputTokens: 500_000 })
    assert.strictEqual(Pricing.costOf(own, "mine", all), 6)
    assert.strictEqual(Pricing.costOf(own, "mine", Usage.empty), 0)
  })

  it("is never less than nothing, also where a provider counts what was cached beside its input", () => {
    const odd = usage({ inputTokens: 5, cacheRead: 1_000_000 })
    close(Pricing.costOf(listed, "claude-sonnet-4-5", odd), 0.3)
  })

  it.effect("of two usages of one model is that of both together", () =>
    Effect.gen(function*() {
      const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))
      const aUsage = Schema.Struct({ rest: count, cacheRead: count, cacheWrite: count, outputTokens: count })
      const toUsage = ({ cacheRead, cacheWrite, outputTokens, rest }: typeof aUsage.Type) =>
        usage({ inputTokens: rest + cacheRead + cacheWrite, cacheRead, cacheWrite, outputTokens })
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.schema(Schema.Struct({
          one: aUsage,
          other: aUsage,
          model: Schema.Literals(["claude-opus-5", "gpt-5-nano", "gemini-2.5-pro", "gpt-4o-2024-05-13"])
        })),
        ({ model, one, other }) =>
          Effect.sync(() => {
            const cost = (usage: Usage.Usage) => Pricing.costOf(listed, model, usage) ?? Number.NaN
            const apart = cost(toUsage(one)) + cost(toUsage(other))
            const together = cost(Usage.add(toUsage(one), toUsage(other)))
            return together >= 0 && Math.abs(apart - together) <= 1e-9 * Math.max(1, together)
          }),
        { runs: 300, seed: 1 }
      )
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    }))
})

describe("the prices in force", () => {
  it.effect("are the list's, and with a layer your own before them", () =>
    Effect.gen(function*() {
      const known = Effect.map(Pricing.Pricing, (pricing) => [price(pricing, "gpt-4o"), price(pricing, "mine")])
      assert.deepStrictEqual(yield* known, [2.5, undefined])
      const layer = Pricing.layer({ mine: { input: 7, output: 7 } })
      assert.deepStrictEqual(yield* Effect.provide(known, layer), [2.5, 7])
    }))
})

const close = (given: number | undefined, wanted: number) => assert.closeTo(given ?? Number.NaN, wanted, 1e-9)
