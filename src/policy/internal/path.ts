/**
 * Which file does a path mean, and does a pattern mean it too? A path is read as text and, where there is a FileSystem,
 * as the links lead.
 *
 * Paths are those of POSIX. A path that a tool might read otherwise than it is read here is refused.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Glob from "effect/Glob"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import type { Match } from "./name.ts"

const mostCharacters = 4096
const mostLinks = 40

/** The absolute path, without `.`, `..` and empty segments, that a path is spelled as; or why it is none. */
export const normalise = (given: string, root: string | undefined): Result.Result<string, string> =>
  Result.map(absolute(given, root), (path) => folded(path).normalize("NFC"))

const absolute = (given: string, root: string | undefined): Result.Result<string, string> => {
  const problem = given === ""
    ? "it is empty"
    : given.length > mostCharacters
    ? "it is too long"
    : given.includes("\0")
    ? "it holds a null byte"
    : !given.isWellFormed()
    ? "it is no well-formed text"
    : given.includes("\\")
    ? "it holds a backslash; separate with /"
    : given.startsWith("~")
    ? "it begins with ~; write the folder out"
    : /^[a-z]:|^[a-z][a-z\d+.-]*:\//i.test(given)
    ? "it is a URL or names a drive; give the path alone"
    : !given.startsWith("/") && root === undefined
    ? "it is relative, and the policy has no root"
    : undefined
  if (problem !== undefined) return Result.fail(problem)
  return Result.succeed(given.startsWith("/") ? given : `${root}/${given}`)
}

const folded = (path: string): string => {
  const kept: Array<string> = []
  for (const segment of path.split("/")) {
    if (segment === "..") kept.pop()
    else if (segment !== "" && segment !== ".") kept.push(segment)
  }
  return `/${kept.join("/")}`
}

/** Every path that a given one may come to: as it is spelled, and as the links lead. */
export const forms = (
  given: string,
  root: string | undefined,
  fs: Option.Option<FileSystem.FileSystem>
): Effect.Effect<Result.Result<ReadonlyArray<string>, string>> => {
  const spelled = absolute(given, root)
  if (Result.isFailure(spelled)) return Effect.succeed(Result.fail(spelled.failure))
  const paths = [folded(spelled.success), spelled.success]
  // Tools fold `..` as text or leave it to the system, which goes to what is above the target of a link.
  const followed = Option.isNone(fs) ? [] : paths.map((path) => follow(path, fs.value))
  return Effect.map(
    Effect.result(Effect.all(followed)),
    Result.map((real) => Array.from(new Set([folded(spelled.success), ...real].map((path) => path.normalize("NFC")))))
  )
}

/** Where the links of an absolute path lead; what is not there yet is kept as it is spelled. */
const follow = Effect.fnUntraced(function*(
  path: string,
  fs: FileSystem.FileSystem
): Effect.fn.Return<string, string> {
  const ahead = path.split("/").toReversed()
  let at = ""
  let links = 0
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (name === "" || name === ".") continue
    if (name === "..") {
      at = at.slice(0, Math.max(0, at.lastIndexOf("/")))
      continue
    }
    const next = `${at}/${name}`
    const target = yield* targetOf(next, fs)
    if (target === undefined) {
      at = next
      continue
    }
    if (++links > mostLinks) return yield* Effect.fail("it leads over too many links")
    if (target.startsWith("/")) at = ""
    ahead.push(...target.split("/").toReversed())
  }
  return at === "" ? "/" : at
})

// Node reports what is no link as "Unknown".
const noLink = new Set(["NotFound", "Unknown", "BadResource"])

const targetOf = (path: string, fs: FileSystem.FileSystem): Effect.Effect<string | undefined, string> =>
  Effect.catch(
    fs.readLink(path),
    (error: PlatformError) =>
      noLink.has(error.reason._tag) ? Effect.succeed(undefined) : Effect.fail("where its links lead cannot be seen")
  )

/** A pattern: the absolute path before its first wildcard, and what follows. */
export interface Pattern {
  readonly base: string
  readonly rest: ReadonlyArray<string>
}

/** Reads a pattern, or says what is wrong with it. */
export const pattern = (given: string, root: string | undefined): Result.Result<Pattern, string> => {
  const problem = given.endsWith("/") && given !== "/"
    ? "ends with /: write /** for a folder and what is in it"
    : malformed(given)
  if (problem !== undefined) return Result.fail(problem)
  const segments = given.split("/")
  const wild = segments.findIndex((segment) => /[*?[\]{}\\]/.test(segment))
  const literal = wild === -1 ? segments : segments.slice(0, wild)
  const base = given.startsWith("/") ? literal.join("/") || "/" : literal.join("/") || "."
  return Result.map(normalise(base, root), (base) => ({
    base,
    rest: wild === -1 ? [] : segments.slice(wild).map((segment) => segment.normalize("NFC"))
  }))
}

const characterSet =
  /^\[[!^]?\]?(?:\[:(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]|\\[^]|(?!\[:)[^\]\\/])*\]/

// effect's Glob takes what it cannot read literally, or lets it match nothing: neither is what somebody meant.
const malformed = (given: string): string | undefined => {
  if (given === "") return "is empty"
  if (given.split("/").some((segment) => segment === "..")) return "holds a .. segment"
  if (/^\{(?:[^{}]*,)?\//.test(given)) return "has a root inside braces"
  const groups: Array<{ sum: number; product: number; commas: number }> = [{ sum: 0, product: 1, commas: 0 }]
  for (let at = 0; at < given.length; at++) {
    const char = given.charAt(at)
    const group = groups.at(-1)
    if (group === undefined) break
    if (char === "\\") {
      if (++at === given.length) return "ends with a backslash"
    } else if (char === "[") {
      const [set] = characterSet.exec(given.slice(at)) ?? []
      if (set === undefined) return "has a [ that is not closed"
      if (isBackwards(set)) return "has a range in [ ] that goes backwards"
      at += set.length - 1
    } else if (char === "{") groups.push({ sum: 0, product: 1, commas: 0 })
    else if (char === "," && groups.length > 1) {
      group.sum += group.product
      group.product = 1
      group.commas++
    } else if (char === "}") {
      groups.pop()
      const outer = groups.at(-1)
      if (outer === undefined) return "has a } that opens nowhere"
      if (group.commas === 0) return "has braces with nothing to choose from"
      outer.product *= group.sum + group.product
      if (outer.product > 1000 || groups.length > 32) return "has too many alternatives"
    } else if (
      given.startsWith("**", at) && !/(?:^|[/{,])\*\*(?:$|[/},])/.test(given.slice(Math.max(0, at - 1), at + 3))
    ) {
      return "has a ** that does not stand alone between slashes"
    } else if (char === "*" && given.charAt(at + 1) === "*") at++
  }
  return groups.length > 1 ? "has a { that is not closed" : undefined
}

const isBackwards = (set: string): boolean =>
  Array.from(set.replace(/\[:[a-z]+:\]/g, "").matchAll(/([^\\])-([^\]\\])/gu)).some(([, from = "", to = ""]) =>
    from > to
  )

/** The same pattern where the links before its first wildcard lead. */
export const followed = (
  pattern: Pattern,
  fs: Option.Option<FileSystem.FileSystem>
): Effect.Effect<ReadonlyArray<Pattern>> =>
  Option.isNone(fs)
    ? Effect.succeed([pattern])
    : Effect.match(follow(pattern.base, fs.value), {
      onFailure: () => [pattern],
      onSuccess: (base) => base === pattern.base ? [pattern] : [pattern, { ...pattern, base: base.normalize("NFC") }]
    })

/**
 * Whether one of these spellings of a pattern means a path. It may where the two differ in case alone, which many file
 * systems do not tell apart.
 */
export const matcher = (patterns: ReadonlyArray<Pattern>): (path: string) => Match => {
  const globs = patterns.map(({ base, rest }) => [base === "/" ? "" : Glob.escape(base), ...rest].join("/") || "/")
  const exact = globs.map(compiled)
  const caseless = globs.map((glob) => compiled(lower(glob)))
  return (path) =>
    exact.some((glob) => Glob.match(glob, path))
      ? "yes"
      : caseless.some((glob) => Glob.match(glob, lower(path)))
      ? "maybe"
      : "no"
}

const compiled = (pattern: string): Glob.Glob => Glob.make(pattern, { dot: true })

const lower = (text: string): string => text.toUpperCase().toLowerCase().normalize("NFC")
