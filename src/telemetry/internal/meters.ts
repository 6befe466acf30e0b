/**
 * What is counted of a request to a model? How long it took, and the tokens that its provider reported.
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { Reply } from "../../internal/ask.ts"
import * as Names from "./names.ts"

/** What tells one request from another. */
export interface Labels {
  readonly [name: string]: string
}

// The exporters take a metric's unit from this label.
const histogram = (
  { boundaries, name, unit }: typeof Names.metric.duration | typeof Names.metric.tokens,
  description: string
) => Metric.histogram(name, { description, boundaries, attributes: { unit } })

const duration = /* @__PURE__ */ histogram(Names.metric.duration, "GenAI operation duration.")
const tokens = /* @__PURE__ */ histogram(Names.metric.tokens, "Number of input and output tokens used.")

/** Counts a request. It must not fail, so what does is passed over. */
export const count = (labels: Labels, seconds: number, usage: Reply["usage"] | undefined): Effect.Effect<void> => {
  const input = usage?.inputTokens.total ?? usage?.inputTokens.uncached
  const output = usage?.outputTokens.total ?? usage?.outputTokens.text
  const spent = (type: string, count: number | undefined) =>
    count === undefined ? Effect.void : record(tokens, { ...labels, [Names.attribute.tokenType]: type }, count)
  // Tokens do not depend on whether it ended well.
  return Effect.catchCause(
    Effect.andThen(record(duration, labels, seconds), Effect.andThen(spent("input", input), spent("output", output))),
    () => Effect.void
  )
}

const record = (metric: Metric.Histogram<number>, labels: Labels, value: number): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(metric, labels), value)
