/**
 * What is a name that nobody else has? Sixty random bits in the digits and letters that every provider takes.
 */
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

// In two halves: the digits of a number beyond 31 bits cost the engine six times as much.
const half = (random: number): string => Math.floor(random * 2 ** 30).toString(36)

/** A new name. */
export const fresh: Effect.Effect<string> = Effect.withFiber(({ context }) => {
  const random = Services.get(context, Random.Random)
  return Effect.succeed(half(random.nextDoubleUnsafe()) + half(random.nextDoubleUnsafe()))
})
