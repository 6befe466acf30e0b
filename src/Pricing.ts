/**
 * What does a model cost? Its usage in US dollars, by a table of your own and one of list prices; nothing for a model whose
 * price is not known.
 *
 * The list prices are of the providers' own APIs, in dollars per million tokens, as they could be found on 2026-12-01,
 * most in two places that agree and some, such as Gemini's caches, in one:
 *
 * - Anthropic: platform.claude.com/docs/en/about-claude/pricing and the models' own pages there (copies of September 2026;
 *   of March 2026 for what is older than Opus 4.5), and models.dev. A cache is written for five minutes.
 * - OpenAI: developers.openai.com/api/docs/models (GPT-5 nano), GitHub's price table for GPT-4.1, GPT-5 mini and GPT-5.2,
 *   quotations of developers.openai.com/api/docs/pricing of March and June 2026 for the rest; models.dev and genai-prices.
 * - Google: ai.google.dev/gemini-api/docs/pricing as transcribed on 2026-10-07, and models.dev.
 *
 * They are those of the standard tier, a short context and text: a batch costs less, a long context, audio or a region may
 * cost more. Prices change: what you are billed by is yours to say, with `layer`.
 *
 * @since 0.1.0
 */
import * as Services from "effect/Context"
import * as Layer from "effect/Layer"
import type { Usage } from "./Usage.ts"

/**
 * What a million tokens cost, in US dollars.
 *
 * @category models
 * @since 0.1.0
 */
export interface Price {
  readonly input: number
  readonly output: number
  /** Of input that a cache served. Default: that of `input`. */
  readonly cacheRead?: number | undefined
  /** Of input that a cache kept. Default: that of `input`. */
  readonly cacheWrite?: number | undefined
}

/**
 * Prices by model: its id, or a part of it for a family.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prices {
  readonly [model: string]: Price
}

/**
 * Knows what models cost.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pricing {
  readonly priceOf: (model: string) => Price | undefined
}

/**
 * Prices of your own before the list prices. Yours are found by the id of the model; by that id without its provider, date
 * and version; or by the longest of your ids that is a part of it. List prices are found by the first two only, since a model
 * that is not listed need not cost what its family does. Throws for a price that is none.
 *
 * **Example** (A model of a server of your own)
 *
 * ```ts run
 * import * as Pricing from "toolfold/Pricing"
 *
 * const pricing = Pricing.make({ qwen3: { input: 0.1, output: 0.4 } })
 * pricing.priceOf("qwen3-32b-awq") // => { input: 0.1, output: 0.4 }
 * pricing.priceOf("openai/gpt-4o-2024-08-06")?.output // => 10
 * pricing.priceOf("a-model-of-tomorrow") // => undefined
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (own: Prices = {}): Pricing => {
  const problems = Object.entries(own).flatMap(([model, price]) => problemsOf(model, price))
  if (problems.length > 0) throw new Error(`Pricing: ${problems.join("; ")}`)
  const prices = new Map(Object.entries(own))
  const parts = [...prices].sort(([one], [other]) => other.length - one.length)
  return {
    priceOf: (model) => {
      const lower = model.toLowerCase()
      const ids = [model, ...idsOf(lower)]
      return firstOf(prices, ids) ?? parts.find(([part]) => lower.includes(part.toLowerCase()))?.[1] ??
        firstOf(list, ids)
    }
  }
}

/**
 * The prices in force: the list prices, unless others are provided.
 *
 * @category services
 * @since 0.1.0
 */
export const Pricing: Services.Reference<Pricing> = Services.Reference<Pricing>("toolfold/Pricing", {
  defaultValue: () => make()
})

/**
 * `make` as a layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (own: Prices): Layer.Layer<never> => Layer.succeed(Pricing, make(own))

/**
 * What a model's usage costs in US dollars, or `undefined` where its price is not known. Of the input, what a cache served or
 * kept has a price of its own, and the rest that of input.
 *
 * **Example** (Input, most of it from a cache)
 *
 * ```ts run
 * import * as Pricing from "toolfold/Pricing"
 * import * as Usage from "toolfold/Usage"
 *
 * const pricing = Pricing.make({ mine: { input: 2, output: 8, cacheRead: 0.5 } })
 * const usage = { ...Usage.empty, inputTokens: 1_000_000, cacheRead: 800_000, outputTokens: 100_000 }
 * Pricing.costOf(pricing, "mine", usage) // => 1.6
 * ```
 *
 * @category combining
 * @since 0.1.0
 */
export const costOf = (pricing: Pricing, model: string, usage: Usage): number | undefined => {
  const price = pricing.priceOf(model)
  if (price === undefined) return undefined
  const { cacheRead, cacheWrite, inputTokens, outputTokens } = usage
  const { cacheRead: read = price.input, cacheWrite: write = price.input, input, output } = price
  // A provider that counts what was cached beside its input is not paid back for that.
  const rest = Math.max(0, inputTokens - cacheRead - cacheWrite)
  return (rest * input + cacheRead * read + cacheWrite * write + outputTokens * output) / 1_000_000
}

const firstOf = (prices: ReadonlyMap<string, Price>, ids: ReadonlyArray<string>): Price | undefined => {
  const id = ids.find((id) => prices.has(id))
  return id === undefined ? undefined : prices.get(id)
}

/** An id without its provider (`openai/`, `us.anthropic.`), and then without its version and date. */
const idsOf = (model: string): ReadonlyArray<string> => {
  const bare = model.replace(/^.*\//, "").replace(/^(?:[a-z]+\.)?anthropic\./, "")
    .replace(/^(claude-[^.]*\d)\.(\d)/, "$1-$2")
  const unversioned = bare.startsWith("claude-") ? bare.replace(/-v\d+(?::\d+)?$/, "") : bare
  return [bare, unversioned.replace(/[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "")]
}

const problemsOf = (model: string, price: Price): ReadonlyArray<string> => [
  ...(model === "" ? ["a model without an id"] : []),
  ...(["input", "output", "cacheRead", "cacheWrite"] as const).flatMap((part) => {
    const given = price[part]
    return (given === undefined && part.startsWith("cache")) || (Number.isFinite(given) && Number(given) >= 0)
      ? []
      : [`${part} of ${JSON.stringify(model)} must be a number that is not negative, got ${given}`]
  })
]

const of = (input: number, output: number, cacheRead?: number, cacheWrite?: number): Price => ({
  input,
  output,
  cacheRead,
  cacheWrite
})

const opus5 = of(5, 25, 0.5, 6.25)
const opus4 = of(15, 75, 1.5, 18.75)
const sonnet4 = of(3, 15, 0.3, 3.75)

// Prices that some sources have and others contradict are left out: Sonnet 5.5, GPT-5.6.
const list: ReadonlyMap<string, Price> = new Map([
  ["claude-fable-5", of(10, 50, 1, 12.5)],
  ["claude-opus-5-5", of(4, 20, 0.2, 5)],
  ["claude-opus-5", opus5],
  ["claude-opus-4-8", opus5],
  ["claude-opus-4-7", opus5],
  ["claude-opus-4-6", opus5],
  ["claude-opus-4-5", opus5],
  ["claude-opus-4-1", opus4],
  ["claude-opus-4-0", opus4],
  ["claude-opus-4", opus4],
  ["claude-sonnet-5", of(2, 10, 0.2, 2.5)],
  ["claude-sonnet-4-6", sonnet4],
  ["claude-sonnet-4-5", sonnet4],
  ["claude-sonnet-4-0", sonnet4],
  ["claude-sonnet-4", sonnet4],
  ["claude-3-7-sonnet", sonnet4],
  ["claude-haiku-4-5", of(1, 5, 0.1, 1.25)],
  ["claude-3-5-haiku", of(0.8, 4, 0.08, 1)],
  ["claude-3-haiku", of(0.25, 1.25, 0.03, 0.3)],
  ["gpt-5.5", of(5, 30, 0.5)],
  ["gpt-5.4", of(2.5, 15, 0.25)],
  ["gpt-5.4-mini", of(0.75, 4.5, 0.075)],
  ["gpt-5.4-nano", of(0.2, 1.25, 0.02)],
  ["gpt-5.2", of(1.75, 14, 0.175)],
  ["gpt-5.1", of(1.25, 10, 0.125)],
  ["gpt-5", of(1.25, 10, 0.125)],
  ["gpt-5-mini", of(0.25, 2, 0.025)],
  ["gpt-5-nano", of(0.05, 0.4, 0.005)],
  ["gpt-4.1", of(2, 8, 0.5)],
  ["gpt-4.1-mini", of(0.4, 1.6, 0.1)],
  ["gpt-4.1-nano", of(0.1, 0.4, 0.025)],
  ["gpt-4o", of(2.5, 10, 1.25)],
  ["gpt-4o-2024-05-13", of(5, 15)],
  ["gpt-4o-mini", of(0.15, 0.6, 0.075)],
  ["o3", of(2, 8, 0.5)],
  ["o4-mini", of(1.1, 4.4, 0.275)],
  ["gemini-3.5-flash", of(1.5, 9, 0.15)],
  ["gemini-3.1-pro-preview", of(2, 12, 0.2)],
  ["gemini-2.5-pro", of(1.25, 10, 0.125)],
  ["gemini-2.5-flash", of(0.3, 2.5, 0.03)],
  ["gemini-2.5-flash-lite", of(0.1, 0.4, 0.01)]
])
