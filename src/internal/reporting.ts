/**
 * How does a running call say something to whoever watches? Through its scope, or that of the call within which it runs.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Schema from "effect/Schema"
import * as Context from "../Context.ts"
import * as Codec from "./codec.ts"
import * as Log from "./log.ts"

/** Who listens to the call that the running fiber answers; nobody where it has been answered. */
const listener = (): Context.CallScope["report"] => {
  for (let scope = Fiber.getCurrent()?.getRef(Context.CurrentCall); scope?.open === true; scope = scope.outer) {
    if (scope.report !== undefined) return scope.report
  }
  return undefined
}

/** Says it, if somebody listens. */
export const report = (report: Context.Report): Effect.Effect<void> =>
  Effect.suspend(() => listener()?.(report) ?? Effect.void)

/** Says a result that is not the last, as its schema stores it. */
export const preliminary = (schema: Schema.Top, value: unknown): Effect.Effect<void> =>
  Effect.suspend(() => {
    const told = listener()
    if (told === undefined) return Effect.void
    // What its schema needs is there where its handler runs.
    const encoded = Codec.jsonCodec(schema).encode(value) as Effect.Effect<unknown, unknown>
    return Effect.matchEffect(encoded, {
      onFailure: (issue) => Log.safely(Effect.logWarning("a preliminary result does not fit its tool", issue)),
      onSuccess: (progress) => told({ _tag: "Progress", progress })
    })
  })
