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
 * `calls` is how many round trips the provider answered.
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
  calls: Schema.Finite
})

/**
 * @category models
 * @since 0.1.0
 */
export type Usage = typeof Usage.Type

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
  { inputTokens, outputTokens }: Pick<Response.Usage, "inputTokens" | "outputTokens">
): Usage => {
  const input = inputTokens.total ?? inputTokens.uncached ?? 0
  const output = outputTokens.total ?? outputTokens.text ?? 0
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cacheRead: inputTokens.cacheRead ?? 0,
    cacheWrite: inputTokens.cacheWrite ?? 0,
    reasoning: outputTokens.reasoning ?? 0,
    calls: 1
  }
}

/**
 * Both together.
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
export const add = (self: Usage, that: Usage): Usage => ({
  inputTokens: self.inputTokens + that.inputTokens,
  outputTokens: self.outputTokens + that.outputTokens,
  totalTokens: self.totalTokens + that.totalTokens,
  cacheRead: self.cacheRead + that.cacheRead,
  cacheWrite: self.cacheWrite + that.cacheWrite,
  reasoning: self.reasoning + that.reasoning,
  calls: self.calls + that.calls
})
