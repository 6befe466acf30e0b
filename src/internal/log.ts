/**
 * What if a log cannot be written? Nothing: what is reported must not hurt whom it is reported of.
 */
import * as Effect from "effect/Effect"

/** Writes a log. A logger that dies, as it may of the very cause that it is to show, changes nothing. */
export const safely = (log: Effect.Effect<void>): Effect.Effect<void> => Effect.catchCause(log, () => Effect.void)
