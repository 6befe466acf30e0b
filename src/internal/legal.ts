/**
 * Is an option one that makes sense? What is wrong with it is said without its owner's name, in one form everywhere.
 */
import * as Duration from "effect/Duration"
import * as Text from "./text.ts"

/** A value as it is shown to whoever wrote it. */
export const shown = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(Text.excerpt(value))
    : typeof value === "object" && value !== null && !Duration.isDuration(value)
    ? Text.describe(value)
    : Text.excerpt(String(value))

/** A duration that somebody can wait for; nothing where there is none. */
export const duration = (given: unknown): Duration.Duration | undefined => {
  if (given === undefined) return undefined
  const duration = Duration.fromInput(given as Duration.Input) // which looks at what it is given
  return duration._tag === "Some" && Duration.isFinite(duration.value) && Duration.toMillis(duration.value) > 0
    ? duration.value
    : undefined
}

/** What is wrong with an option that is a duration. */
export const durationProblem = (option: string, given: unknown): ReadonlyArray<string> =>
  duration(given) === undefined ? [`${option} must be a positive finite duration, got ${shown(given)}`] : []

/** What is wrong with an option that is a count. */
export const countProblem = (option: string, given: unknown): ReadonlyArray<string> =>
  Number.isSafeInteger(given) && Number(given) > 0
    ? []
    : [`${option} must be a positive whole number, got ${shown(given)}`]
