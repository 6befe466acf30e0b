/**
 * Where does a tape lie? In a file, or in memory; either takes whole lines at the end, and begins only where there is no
 * tape yet.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/**
 * A tape could not be read or written. A run whose tape could not be written has run, and its tape is not complete.
 *
 * @category errors
 * @since 0.1.0
 */
export class TapeFailed extends Schema.TaggedError<TapeFailed>()("TapeFailed", {
  tape: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `the tape ${JSON.stringify(this.tape)} ${this.problem}`
  }
}

/**
 * Where a tape lies. `begin` fails where there is one already, and gives what appends to it: a line whole, or not at all.
 *
 * @category models
 * @since 0.1.0
 */
export interface Store<R = never> {
  readonly name: string
  readonly read: Effect.Effect<string, TapeFailed, R>
  readonly begin: Effect.Effect<(line: string) => Effect.Effect<void, TapeFailed>, TapeFailed, R | Scope.Scope>
}

/**
 * A tape in memory, with what is on it so far.
 *
 * @category models
 * @since 0.1.0
 */
export interface Memory extends Store {
  readonly text: () => string
}

export const file = (path: string): Store<FileSystem.FileSystem> => {
  const failed = (doing: string) => (error: PlatformError.PlatformError) =>
    new TapeFailed({ tape: path, problem: problemOf(doing, error) })
  return {
    name: path,
    read: Effect.flatMap(
      FileSystem.FileSystem,
      (files) => Effect.mapError(files.readFileString(path), failed("read"))
    ),
    begin: Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const encoder = new TextEncoder()
      const opened = yield* Effect.mapError(files.open(path, { flag: "ax" }), failed("begun"))
      return (line) => Effect.mapError(opened.writeAll(encoder.encode(`${line}\n`)), failed("written"))
    })
  }
}

const problemOf = (doing: string, { reason }: PlatformError.PlatformError): string =>
  reason._tag === "AlreadyExists"
    ? "is there already: replay it, or remove it to record it anew"
    : reason._tag === "NotFound" && doing === "read"
    ? "is not there: record it first"
    : `cannot be ${doing}: ${reason.message}`

export const memory = (text = ""): Memory => {
  const name = "in memory"
  let written = text
  return {
    name,
    text: () => written,
    read: Effect.sync(() => written),
    begin: Effect.suspend(() =>
      written === ""
        ? Effect.succeed((line) =>
          Effect.sync(() => {
            written += `${line}\n`
          })
        )
        : Effect.fail(new TapeFailed({ tape: name, problem: "holds a recording already: begin another" }))
    )
  }
}
