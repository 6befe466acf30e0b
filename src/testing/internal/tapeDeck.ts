/**
 * What plays or records? A deck: models are asked through it, and calls are answered through it.
 */
import * as Services from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Context from "../../Context.ts"
import type * as Provider from "../../Provider.ts"
import type * as ToolRegistry from "../../ToolRegistry.ts"
import type * as Turn from "../../Turn.ts"

/** Asks and answers in the place of a model and of tools, or listens to them. */
export interface Deck {
  /** A model is not needed. */
  readonly isReplaying: boolean
  /** Asks through the tape; a tape that is replayed asks nobody. */
  readonly ask: (model: Provider.Ask) => Provider.Ask
  /** Answers a call through the tape. */
  readonly answer: (
    call: ToolRegistry.AroundCall,
    next: Effect.Effect<Turn.Outcome>,
    scope: Context.CallScope,
    slots: () => ReadonlyArray<Context.AnySlots>
  ) => Effect.Effect<Turn.Outcome>
}

/**
 * The tape that a program is recorded on, or replayed from.
 *
 * @category services
 * @since 0.1.0
 */
export class Tape extends Services.Service<Tape, Deck>()("toolfold/testing/Tape") {}

/** The call within which another is made; empty outside of any. */
export const withinOf = ({ id, outer }: Context.CallScope): string => {
  let around = outer
  // An attempt has a scope of its own, and the name of its call.
  while (around !== undefined && around.id === id) around = around.outer
  return around?.id ?? ""
}
