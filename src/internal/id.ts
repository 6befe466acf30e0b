/**
 * What is a name that nobody else has? Sixty random bits in the digits and letters that every provider takes.
 */
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

// In two halves: the digits of a number beyond 31 bits cost the engine six times as much.
const half = (random: number): string => Math.floor(random * 2 ** 30).toString(36)

/** A new name, of the random numbers of who asks. */
export const make = (services: Services.Context<never>): string => {
  const random = Services.get(services, Random.Random)
  return half(random.nextDoubleUnsafe()) + half(random.nextDoubleUnsafe())
}

/** A new name. */
export const fresh: Effect.Effect<string> = Effect.withFiber(({ context }) => Effect.succeed(make(context)))
