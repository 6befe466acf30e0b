/**
 * How is a provider made to withstand what goes wrong? It is wrapped, and is a provider again, with its direct entry.
 *
 * The order is the order of the pipe: in `model.pipe(Provider.timeout("30 seconds"), Provider.retry())` each try has its
 * 30 seconds, the other way round all tries together. The loop and everybody who asks the model themselves go the same way.
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Services from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Model from "./model.ts"
import * as Resilience from "./resilience.ts"

type AnyModel = LanguageModel.LanguageModel

/**
 * Makes of a provider's layer another, which gives what that gave, with its model wrapped.
 *
 * @category models
 * @since 0.1.0
 */
export interface Wrapper {
  <A, E, R>(self: Layer.Layer<A | AnyModel, E, R>): Layer.Layer<A | AnyModel, E, R>
}

/**
 * Asks again when a request fails for a reason that passes: no connection, a rate limit, a server that is down or busy
 * (5xx, 408, 409). Never for another 4xx, an exhausted quota, a refusal, or an answer that is not right.
 *
 * The wait is what the server asks for (`Retry-After`), else anything up to 500 ms, then 1 s, and so on; never more than
 * 30 s. A stream is asked again only before its first piece was shown: after that it fails, and what was shown stands.
 * Throws for options that make no sense.
 *
 * **Example** (A model that is busy once)
 *
 * ```ts run
 * import * as AiError from "effect/ai/AiError"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Effect from "effect/Effect"
 * import * as Provider from "toolfold/Provider"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 *
 * const busy = AiError.make({ module: "Docs", method: "ask", reason: new AiError.RateLimitError({}) })
 * const Model = ScriptedModel.layer({ fails: busy }, "Here I am").pipe(Provider.retry({ base: "1 millis" }))
 *
 * const reply = await Effect.runPromise(LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide(Model)))
 * reply.text // => "Here I am"
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry = (options?: Resilience.RetryOptions): Wrapper => wrapper(Resilience.retrying(options))

/**
 * Ends a request that takes too long, with an `InternalProviderError` that says so, and interrupts it. What the server
 * still does is not charged to the run. For a stream the time is that of the whole answer, and what its watcher holds it
 * up counts too. Throws for a duration that is not positive and finite.
 *
 * **Example** (A model that does not answer)
 *
 * ```ts run
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Effect from "effect/Effect"
 * import * as Provider from "toolfold/Provider"
 *
 * const Model = Provider.layer({ ask: () => Effect.never }).pipe(Provider.timeout("10 millis"))
 *
 * const asked = LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide(Model), Effect.flip)
 * const error = await Effect.runPromise(asked)
 * error.reason.message // => "Internal provider error: no answer within 10ms"
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const timeout = (duration: Duration.Input): Wrapper => wrapper(Resilience.timingOut(duration))

/**
 * Bounds how many requests begin in any window of time. One that is too many waits, and who asks first is first.
 *
 * What one value wraps shares one limit: all runs, however often the layer is built, and several models of one provider
 * where they are piped into the same value. A retry outside of it counts as a request. Throws for options that make no
 * sense.
 *
 * **Example** (Two models of one provider)
 *
 * ```ts
 * import * as Provider from "toolfold/Provider"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 *
 * const limited = Provider.rateLimit({ limit: 50, window: "1 minute" })
 * export const Small = ScriptedModel.layer("Yes").pipe(limited)
 * export const Large = ScriptedModel.layer("It depends").pipe(limited)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const rateLimit = (options: Resilience.RateLimitOptions): Wrapper => wrapper(Resilience.rateLimiting(options))

const wrapper = (wrap: Resilience.Wrap): Wrapper => (self) =>
  Layer.flatMap(self, (context) =>
    Layer.effectContext(
      Effect.map(
        Model.make({ ask: wrap(Model.askOf(Services.get(context, LanguageModel.LanguageModel))) }),
        (model) => Services.add(context, LanguageModel.LanguageModel, model)
      )
    ))

/**
 * Asks the next model when one fails for good; each has its own name and its own retries. The error is the last one's,
 * and the ones before it are logged as warnings.
 *
 * The next is asked wherever it may do better: also when the key of one is refused, its quota is used up, its model is not
 * there, its answer is no answer, or the transcript is too long for it. It is not asked about what is wrong with the request
 * itself (another 400), nor after a refusal, which is an answer, nor when the run is interrupted. A stream goes over to the
 * next only before its first piece was shown.
 *
 * **Example** (A second model for when the first is down)
 *
 * ```ts run
 * import * as AiError from "effect/ai/AiError"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Effect from "effect/Effect"
 * import * as Logger from "effect/Logger"
 * import * as Provider from "toolfold/Provider"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 *
 * const down = AiError.make({
 *   module: "Docs",
 *   method: "ask",
 *   reason: new AiError.InternalProviderError({ description: "down" })
 * })
 * const Model = Provider.fallback(ScriptedModel.layer({ fails: down }), ScriptedModel.layer("The second answers"))
 *
 * const asked = LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide([Model, Logger.layer([])]))
 * const reply = await Effect.runPromise(asked)
 * reply.text // => "The second answers"
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const fallback = <
  First extends Layer.Layer<AnyModel, unknown, unknown>,
  const Others extends ReadonlyArray<Layer.Layer<AnyModel, unknown, unknown>>
>(
  first: First,
  ...others: Others
): Layer.Layer<AnyModel, Layer.Error<First | Others[number]>, Layer.Services<First | Others[number]>> => {
  // Each layer is one of those, whose errors and needs the result has.
  type Each = Layer.Layer<AnyModel, Layer.Error<First | Others[number]>, Layer.Services<First | Others[number]>>
  // In one build, so that a layer below several of them is built once.
  return Layer.fromBuild((memoMap, scope) => {
    const asking = (layer: Each) =>
      Effect.map(
        Layer.buildWithMemoMap(layer, memoMap, scope),
        (context) => Model.askOf(Services.get(context, LanguageModel.LanguageModel))
      )
    return Effect.gen(function*() {
      const ask = yield* asking(first as Each)
      const next = yield* Effect.forEach(others as ReadonlyArray<Each>, asking)
      const model = yield* Model.make({ ask: Resilience.fallback(ask, ...next) })
      return Services.make(LanguageModel.LanguageModel, model)
    })
  })
}
