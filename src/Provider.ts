/**
 * Who is asked? A language model; and for a model of ours a direct entry, which takes a transcript as it is.
 *
 * The loop asks for `effect/ai`'s `LanguageModel` and nothing else, so every provider works. A provider made here is
 * such a model and carries one more entry: the loop hands it the transcript and the table of tools as they are, so that
 * it can keep what it encoded of them, and a turn costs the same at turn 10 and at turn 1,000. The entry names the model
 * that it belongs to: a user's wrapper round a model is asked itself, and sees every request.
 *
 * @since 0.1.0
 */
export type { Ask, Delta, Reply, Request, Settings, Sink } from "./internal/ask.ts"
export { unknownUsage } from "./internal/foreignModel.ts"
export { askOf, layer, make } from "./internal/model.ts"
export { isTransient, type RateLimitOptions, type RetryOptions } from "./internal/resilience.ts"
export { fallback, rateLimit, retry, timeout, type Wrapper } from "./internal/wrapped.ts"
