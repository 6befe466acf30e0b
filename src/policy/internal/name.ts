/**
 * Does a pattern mean a name? `*` stands for any text, everything else for itself.
 *
 * Names are not paths: effect's Glob reads `/`, `.` and `..` in them, so that one could slip by a wildcard.
 */
import * as Result from "effect/Result"

/** Whether a rule means a thing. It may where that cannot be told for sure, which counts for what forbids alone. */
export type Match = "yes" | "maybe" | "no"

/** A name in its one form, or why it is none. */
export const normalise = (given: string): Result.Result<string, string> =>
  given === ""
    ? Result.fail("it is empty")
    : given.includes("\0")
    ? Result.fail("it holds a null byte")
    : !given.isWellFormed()
    ? Result.fail("it is no well-formed text")
    : Result.succeed(given.normalize("NFC"))

/** What tells whether a pattern means a name. */
export const matcher = (pattern: string): (name: string) => Match => {
  const [first = "", ...others] = pattern.split("*")
  const last = others.pop()
  return (name) => {
    if (last === undefined) return name === first ? "yes" : "no"
    if (!name.startsWith(first)) return "no"
    let at = first.length
    for (const part of others) {
      const found = name.indexOf(part, at)
      if (found === -1) return "no"
      at = found + part.length
    }
    return name.length - last.length >= at && name.endsWith(last) ? "yes" : "no"
  }
}
