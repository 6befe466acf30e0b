/**
 * What does a rule say of a subject? Each kind has its way to read a value and to compare it with a pattern; a rule is
 * compared with everything that the value may mean.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Text from "../../internal/text.ts"
import type * as Subject from "../../Subject.ts"
import * as Command from "./command.ts"
import * as Host from "./host.ts"
import * as Name from "./name.ts"
import * as Path from "./path.ts"

export type Verdict = "allow" | "ask" | "deny"

/** A rule, as it is declared. */
export interface Rule {
  readonly verdict: Verdict
  readonly kind: string | ReadonlyArray<string>
  readonly pattern: string | ReadonlyArray<string>
  readonly reason?: string
}

/** What a rule says of everything that a value may mean, in order. */
type Against = (things: Things) => Effect.Effect<ReadonlyArray<Name.Match>>

/** Everything that a value may mean: each as it is compared, and as it is shown. */
export interface Things {
  readonly values: ReadonlyArray<unknown>
  readonly shown: ReadonlyArray<string>
}

interface Reader {
  readonly read: (value: string) => Effect.Effect<Result.Result<Things, string>>
  readonly compile: (pattern: string | ReadonlyArray<string>) => Result.Result<Against, string>
}

/** Where paths begin, and what sees links. */
export interface Place {
  readonly root: string | undefined
  readonly fs: Effect.Effect<Option.Option<FileSystem.FileSystem>>
}

// Between `read` and `compile` of one reader a value is of one type, which a table of readers forgets.
const reader = <A>(options: {
  readonly read: (value: string) => Effect.Effect<Result.Result<ReadonlyArray<A>, string>>
  readonly show: (thing: A) => string
  readonly compile: (
    pattern: string | ReadonlyArray<string>
  ) => Result.Result<Effect.Effect<(thing: A) => Name.Match>, string>
}): Reader => ({
  read: (value) =>
    Effect.map(options.read(value), Result.map((values) => ({ values, shown: values.map(options.show) }))),
  compile: (pattern) =>
    Result.map(
      options.compile(pattern),
      (matcher) => ({ values }) => Effect.map(matcher, (match) => (values as ReadonlyArray<A>).map(match))
    ) // what `read` gave
})

const text = <A>(read: (pattern: string) => Result.Result<A, string>) => (pattern: string | ReadonlyArray<string>) =>
  typeof pattern === "string" ? read(pattern) : Result.fail("is a list, which a command alone is")

const paths = ({ fs, root }: Place): Reader =>
  reader<string>({
    read: (value) => Effect.flatMap(fs, (fs) => Path.forms(value, root, fs)),
    show: (path) => path,
    compile: text((pattern) =>
      Result.map(Path.pattern(pattern, root), (read) => {
        const unlinked = [Path.matcher([read])] as const
        return Effect.map(
          Effect.flatMap(fs, (fs) => Path.followed(read, fs)),
          (patterns) => patterns.length === 1 ? unlinked[0] : Path.matcher(patterns)
        )
      })
    )
  })

const hosts = reader<Host.Host>({
  read: (value) => Effect.succeed(Result.map(Host.normalise(value), (host) => [host])),
  show: ({ name, port }) => port === undefined ? name : `${name}:${port}`,
  compile: text((pattern) => Result.map(Host.matcher(pattern), Effect.succeed))
})

const commands = reader<Command.Command>({
  read: (value) => Effect.succeed(Command.parse(value)),
  show: ({ assigned, words }) => [...assigned, ...words].map(({ text }) => text).join(" "),
  compile: (pattern) => Result.map(Command.matcher(pattern), Effect.succeed)
})

const names = reader<string>({
  read: (value) => Effect.succeed(Result.map(Name.normalise(value), (name) => [name])),
  show: (name) => name,
  compile: text((pattern) => Result.map(Name.normalise(pattern), (normal) => Effect.succeed(Name.matcher(normal))))
})

/** Who reads the values of a kind. */
const readers = (place: Place): (kind: string) => Reader => {
  const ofPaths = paths(place)
  const special: ReadonlyMap<string, Reader> = new Map([
    ["file-read", ofPaths],
    ["file-write", ofPaths],
    ["network", hosts],
    ["command", commands]
  ])
  return (kind) => special.get(kind) ?? names
}

/**
 * What was decided of one subject, and by which rule.
 *
 * @category models
 * @since 0.1.0
 */
export interface Judgement {
  readonly subject: Subject.Subject
  readonly verdict: Verdict
  /** The first rule that says so, and its place in the list; nothing where no rule matched. */
  readonly rule: Rule | undefined
  readonly index: number | undefined
  /** What the value was taken to mean. */
  readonly judgedAs: ReadonlyArray<string>
  /** Why it could not be judged. */
  readonly problem: string | undefined
}

interface Compiled {
  readonly rule: Rule
  readonly index: number
  readonly kinds: ReadonlySet<string>
  readonly against: Against
}

export const strictness = { allow: 0, ask: 1, deny: 2 }

/** What is said of one meaning of a value, and by which rule, if by one. */
type Said = Pick<Judgement, "verdict" | "rule" | "index">

const strictest = (first: Said, others: ReadonlyArray<Said>): Said =>
  others.reduce((found, said) => strictness[said.verdict] > strictness[found.verdict] ? said : found, first)

/** The rules as what judges a subject by them, or everything that is wrong with them. */
export const compile = (
  rules: ReadonlyArray<Rule>,
  otherwise: Verdict,
  place: Place
): Result.Result<(subject: Subject.Subject) => Effect.Effect<Judgement>, ReadonlyArray<string>> => {
  const readerOf = readers(place)
  const compiled: Array<Compiled> = []
  const problems: Array<string> = []
  for (const [index, rule] of rules.entries()) {
    const kinds = new Set(typeof rule.kind === "string" ? [rule.kind] : rule.kind)
    const [reader, ...others] = new Set(Array.from(kinds, readerOf))
    const against = reader?.compile(rule.pattern)
    const problem = reader === undefined || kinds.has("")
      ? "names no kind"
      : others.length > 0
      ? "has kinds whose patterns are not of one sort; write a rule for each"
      : against !== undefined && Result.isFailure(against)
      ? `has a pattern ${JSON.stringify(rule.pattern)} that ${against.failure.replace(/^it /, "")}`
      : undefined
    if (problem !== undefined) problems.push(`rule ${index + 1} ${problem}`)
    else if (against !== undefined && Result.isSuccess(against)) {
      compiled.push({ rule, index, kinds, against: against.success })
    }
  }
  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed((subject) =>
    Effect.flatMap(readerOf(subject.kind).read(subject.value), (read) =>
      Result.isFailure(read)
        ? Effect.succeed<Judgement>({
          subject,
          verdict: "deny",
          rule: undefined,
          index: undefined,
          judgedAs: [],
          problem: read.failure
        })
        : judged(subject, read.success, compiled.filter(({ kinds }) => kinds.has(subject.kind)), otherwise))
  )
}

/**
 * A value is judged by the strictest of what is said of everything that it may mean. Where nothing is said for sure it is
 * what holds otherwise; what a rule says that may mean it can only make that stricter.
 */
const judged = Effect.fnUntraced(function*(
  subject: Subject.Subject,
  things: Things,
  rules: ReadonlyArray<Compiled>,
  otherwise: Verdict
): Effect.fn.Return<Judgement> {
  const matches = yield* Effect.forEach(rules, ({ against }) => against(things))
  const nothing: Said = { verdict: otherwise, rule: undefined, index: undefined }
  const [first, ...others] = things.values.map((_, thing) => {
    const said = (match: Name.Match): ReadonlyArray<Said> =>
      rules.filter((_, at) => matches[at]?.[thing] === match)
        .map(({ index, rule }) => ({ verdict: rule.verdict, rule, index }))
    const [sure = nothing, ...more] = said("yes")
    return strictest(sure, [...more, ...said("maybe")])
  })
  const decisive = strictest(first ?? nothing, others)
  return { subject, ...decisive, judgedAs: things.shown, problem: undefined }
})

/** A rule in a few words. */
export const shown = ({ kind, pattern, verdict }: Rule): string =>
  `${verdict} ${typeof kind === "string" ? kind : kind.join(" or ")} ${
    JSON.stringify(Text.excerpt(typeof pattern === "string" ? pattern : pattern.join(" ")))
  }`
