/**
 * What stands around a call? Whatever a registry was given: each sees the call and what is within, the first of them
 * everything.
 */
import type * as WireTool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import type * as Turn from "../Turn.ts"
import type * as Environment from "./environment.ts"
import * as Outcome from "./outcome.ts"
import * as Results from "./results.ts"
import * as Text from "./text.ts"

/** A call as those around it see it: its arguments are decoded and fit. */
export interface Asked {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly tool: WireTool.Any
}

/** What stands around every call of a tool, and where it runs. */
export interface Around {
  readonly wrap: (call: Asked, next: Effect.Effect<Turn.Outcome>) => Effect.Effect<Turn.Outcome, never, unknown>
  readonly environment: Environment.Environment
}

/** Runs a call within all of them, outermost first. */
export const within = (
  arounds: ReadonlyArray<Around>,
  asked: Asked,
  innermost: Effect.Effect<Turn.Outcome>
): Effect.Effect<Turn.Outcome> =>
  arounds.reduceRight<Effect.Effect<Turn.Outcome>>(
    (next, { environment, wrap }) =>
      Effect.updateContext(
        // What it needs was captured with it.
        Effect.suspend(() => wrap(asked, next)) as Effect.Effect<Turn.Outcome>,
        environment
      ),
    innermost
  )

const tags = new Set(["Success", "Failure", "Rejected", "Replied", "Interrupted"])

/** An outcome that somebody around gave, in the form of one that a tool gave; throws where it is none. */
export const sound = (outcome: Turn.Outcome, maxResultSize: number | undefined): Turn.Outcome => {
  if (typeof outcome !== "object" || outcome === null || !tags.has(outcome._tag)) {
    throw new Error("what stands around the call did not give an outcome")
  }
  if (outcome._tag !== "Success") return outcome
  const value = Text.wellFormed(Results.toJson(outcome.value) ?? null)
  return { ...outcome, value: maxResultSize === undefined ? value : Outcome.cut(value, maxResultSize) }
}
