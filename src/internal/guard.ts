/**
 * What may stand between a call and its body? A guard, made once for each registry and shared by all of its runs: it
 * lets an attempt through, holds it back, or refuses it.
 */
import type * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Any body of a tool, its types forgotten. */
export type Body = Effect.Effect<unknown, unknown, unknown>

/** An attempt that a guard did not let through; the model is told the message, and nothing tries again by itself. */
export class Refusal {
  readonly _tag = "toolfold/Refusal"
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** Whether what a tool depends on is to blame for a failed attempt, and not the model. */
export interface Blames {
  (failed: Cause.Cause<unknown>): boolean
}

/** A guard of one tool, as it was declared. */
export interface Guard {
  /** The option that declared it, and what is wrong with that, without the owner's name. */
  readonly problems: ReadonlyArray<string>
  /** Makes it for one tool of one registry, in the registry's scope. Fails attempts with `Refusal` alone. */
  readonly make: (tool: string, blames: Blames) => Effect.Effect<(body: Body) => Body, never, Scope.Scope>
}

/** The guards of a tool, the outermost first. They stand around each attempt. */
export const Guards = Services.Reference<ReadonlyArray<Guard>>("toolfold/Tool/Guards", { defaultValue: () => [] })
