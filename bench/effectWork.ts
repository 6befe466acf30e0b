// What is the same work on Effect? A tool's work, its schemas, and the parts of a scripted answer.
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Work from "./work.ts"

export const fields = () => ({ city: Schema.String, days: Schema.Int })

export const output = Schema.Struct({ city: Schema.String, temp: Schema.Finite })

/** A tool's work; what comes from outside is a promise that `foreign` turns into an effect. */
export const perform = (
  spec: Work.Spec,
  seen: Work.Seen,
  foreign: (start: (signal: AbortSignal) => PromiseLike<Work.Weather>) => Effect.Effect<Work.Weather>
): (input: Work.Input) => Effect.Effect<Work.Weather> => {
  const promised = Work.perform(spec, seen)
  const now = (input: Work.Input) =>
    Effect.sync(() => {
      seen.started++
      return Work.weather(input)
    })
  switch (spec.body) {
    case "at once":
      return now
    case "50 ms":
      return (input) => Effect.delay(now(input), 50)
    case "endless":
      return (input) =>
        Effect.onInterrupt(Effect.andThen(now(input), Effect.never), () =>
          Effect.sync(() => {
            seen.stopped++
          }))
    default:
      return (input) => foreign((signal) => promised(input, signal) as Promise<Work.Weather>)
  }
}

export const usage: Response.FinishPartEncoded["usage"] = {
  inputTokens: { uncached: 10, total: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}

/** The parts that `effect/ai`'s model gives, whole. */
export const parts = (spec: Work.Spec, turn: number): Array<Response.PartEncoded> => {
  const calls = Work.callsOf(spec, turn).map((id): Response.PartEncoded => ({
    type: "tool-call",
    id,
    name: "get_weather",
    params: JSON.parse(Work.json)
  }))
  return calls.length === 0
    ? [{ type: "text", text: Work.answer }, { type: "finish", reason: "stop", usage }]
    : [...calls, { type: "finish", reason: "tool-calls", usage }]
}

/** The parts that `effect/ai`'s model gives, streamed. */
export const pieces = (spec: Work.Spec, turn: number): Array<Response.StreamPartEncoded> => {
  const deltas = turn < spec.turns ? Work.deltasOf(spec, turn) : [Work.answer]
  return [
    { type: "text-start", id: "text" },
    ...deltas.map((delta) => ({ type: "text-delta" as const, id: "text", delta })),
    { type: "text-end", id: "text" },
    ...parts(spec, turn).filter((part) => part.type !== "text") as Array<Response.StreamPartEncoded>
  ]
}

export const struct = () => Schema.Struct(fields())

/** A run in services that are made once, as an application does. */
export const runner = async <E, R, RH, EH>(
  run: Effect.Effect<string, E, R>,
  handlers: Layer.Layer<RH, EH>,
  model: Layer.Layer<LanguageModel.LanguageModel>
): Promise<Work.Run> => {
  const services = await Effect.runPromise(
    Layer.buildWithScope(Layer.merge(handlers, model), Scope.makeUnsafe())
  )
  const go = Effect.runPromiseWith(services as Context.Context<R | RH>)
  return () => go(run)
}
