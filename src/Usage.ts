/**
 * What was spent? Tokens and round trips, added up over the turns of a run.
 *
 * @since 0.1.0
 */
import type * as Response from "effect/ai/Response"
import * as Schema from "effect/Schema"

/**
 * Tokens and round trips. `inputTokens` counts everything sent, `cacheRead` and `cacheWrite` are the parts of it that a
 * cache served or kept; `outputTokens` counts everything produced, `reasoning` is the part of it that was thinking.
 * `calls` is how many round trips the provider answered. `model` is who was asked, where that is one and its provider
 * says so; `costUsd` what it cost in US dollars, where its price is known.
 *
 * @category models
 * @since 0.1.0
 */
export const Usage = Schema.Struct({
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  totalTokens: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  reasoning: Schema.Finite,
  calls: Schema.Finite,
  model: Schema.optionalKey(Schema.String),
  costUsd: Schema.optionalKey(Schema.Finite)
})

/**
 * @category models
 * @since 0.1.0
 */
export type Usage = typeof Usage.Type

/**
 * What a run spent, in all and by model. A model is there under the name that its provider gave it; what models without a
 * name spent is in the sum alone. `costUsd` is there where the price of all of it is known; `byAgent` where agents were tools
 * of the run.
 *
 * @category models
 * @since 0.1.0
 */
export const Total = Usage.mapFields((fields) => ({
  ...fields,
  byModel: Schema.Record(Schema.String, Usage),
  byAgent: Schema.optionalKey(Schema.Record(Schema.String, Usage))
}))

/**
 * @category models
 * @since 0.1.0
 */
export type Total = typeof Total.Type

/**
 * Nothing spent.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  calls: 0
}

/**
 * What one round trip spent, as the provider reported it. What it did not report counts as 0.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromResponse = (
  { inputTokens, outputTokens }: Pick<Response.Usage, "inputTokens" | "outputTokens">,
  model?: string
): Usage => {
  const input = counted(inputTokens.total ?? inputTokens.uncached)
  const output = counted(outputTokens.total ?? outputTokens.text)
  const usage = {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cacheRead: counted(inputTokens.cacheRead),
    cacheWrite: counted(inputTokens.cacheWrite),
    reasoning: counted(outputTokens.reasoning),
    calls: 1
  }
  return model === undefined ? usage : { ...usage, model }
}

const counted = (tokens: number | undefined): number => tokens !== undefined && Number.isFinite(tokens) ? tokens : 0

/**
 * Both together. They have a model where both have the same, and a cost where both have one.
 *
 * **Example** (Two round trips)
 *
 * ```ts run
 * import * as Usage from "toolfold/Usage"
 *
 * const once = { ...Usage.empty, inputTokens: 12, outputTokens: 3, totalTokens: 15, calls: 1 }
 * Usage.add(once, once).totalTokens // => 30
 * ```
 *
 * @category combining
 * @since 0.1.0
 */
export const add = (self: Usage, that: Usage): Usage => {
  const sum = {
    inputTokens: self.inputTokens + that.inputTokens,
    outputTokens: self.outputTokens + that.outputTokens,
    totalTokens: self.totalTokens + that.totalTokens,
    cacheRead: self.cacheRead + that.cacheRead,
    cacheWrite: self.cacheWrite + that.cacheWrite,
    reasoning: self.reasoning + that.reasoning,
    calls: self.calls + that.calls
  }
  const named = self.model !== undefined && self.model === that.model ? { ...sum, model: self.model } : sum
  return self.costUsd !== undefined && that.costUsd !== undefined
    ? { ...named, costUsd: self.costUsd + that.costUsd }
    : named
}

/**
 * The total of what several models spent, priced by `costOf`.
 *
 * **Example** (Two models, one of which has a price)
 *
 * ```ts run
 * import * as Usage from "toolfold/Usage"
 *
 * const cheap = { ...Usage.empty, totalTokens: 1_000, calls: 1, model: "cheap" }
 * const unknown = { ...Usage.empty, totalTokens: 200, calls: 1, model: "unknown" }
 * const total = Usage.total([cheap, unknown], (model) => model === "cheap" ? 0.5 : undefined)
 * total.totalTokens // => 1200
 * total.costUsd // => undefined
 * total.byModel["cheap"]?.costUsd // => 0.5
 * ```
 *
 * @category combining
 * @since 0.1.0
 */
export const total = (
  spent: ReadonlyArray<Usage>,
  costOf: (model: string, usage: Usage) => number | undefined
): Total => {
  const [only = empty] = spent
  // Many providers name no model, and then there is nothing to price or to list.
  if (spent.length < 2 && only.model === undefined) return { ...only, byModel: {} }
  const priced = spent.map((usage) => {
    const costUsd = usage.model === undefined ? undefined : costOf(usage.model, usage)
    return costUsd === undefined ? usage : { ...usage, costUsd }
  })
  const [first = empty, ...others] = priced
  return {
    ...others.reduce(add, first),
    byModel: Object.fromEntries(priced.flatMap((usage) => usage.model === undefined ? [] : [[usage.model, usage]]))
  }
}
