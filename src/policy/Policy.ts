/**
 * Which calls may run, by what they touch? A gate made of rules over the subjects that tools declare.
 *
 * A rule allows, asks or denies. Of all rules that match a subject the strictest counts: deny beats ask beats allow; where
 * none matches, `otherwise` holds. Of all subjects of a call the strictest counts. A call that declares none is of the
 * kind `undeclared`, with the name of its tool as the value. What cannot be judged is denied, and the reason says why.
 *
 * What a pattern is depends on the kind:
 *
 * - `file-read`, `file-write`: a glob of effect's `Glob`, whose wildcards match names with a dot in front too. It and the
 *   paths are read from `root`, without `.`, `..` and doubled slashes, in one Unicode form. Where a `FileSystem` is among
 *   the services of the run, links are followed, in paths and in patterns, and a path counts as what it is spelled as
 *   and as what it leads to. `secret/**` is a folder and everything in it. Paths are those of POSIX; one with a backslash, a
 *   drive, a `~` in front or a null byte is denied, since tools do not read it alike.
 * - `network`: a host (`example.com`), everything below one (`*.example.com`), a range of addresses (`10.0.0.0/8`), or `*`;
 *   a host may have a port. Hosts and addresses are compared in the form of the URL standard.
 * - `command`: the first words of a command, as a text or a list, or `*`. A text that a shell would read as several commands is
 *   several; one that cannot be told without running it (`$(…)`, backticks, files beside it) is denied.
 * - every other kind: a name, in which `*` stands for any text.
 *
 * A call of a sensitive tool needs a rule that allows it; that `otherwise` allows it is not enough, and asks.
 *
 * What may match and may not (another case of a path, another folder of a program, a variable in a command, a port that is
 * not known) counts for `ask` and `deny` and not for `allow`.
 *
 * **Gotchas**
 *
 * A policy judges what a tool declares, at the moment of the call. It cannot see what the handler does, nor what changes
 * between the check and the use: a link that is set meanwhile leads elsewhere, a name resolves to another address, a
 * server redirects. Hard links and mounts are not seen. A handler that must be sure opens without following links, or runs
 * in a sandbox of the system. A list of denied commands stops a mistake and nobody who wants around it, who finds another
 * program: to keep commands in, allow the few that are needed and deny the rest.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Gate from "../Gate.ts"
import * as Log from "../internal/log.ts"
import * as Text from "../internal/text.ts"
import * as Subject from "../Subject.ts"
import * as Path from "./internal/path.ts"
import * as Rules from "./internal/rule.ts"

export type { Judgement } from "./internal/rule.ts"

/**
 * What a rule says.
 *
 * @category models
 * @since 0.1.0
 */
export const Verdict = Schema.Literals(["allow", "ask", "deny"])

/**
 * @category models
 * @since 0.1.0
 */
export type Verdict = typeof Verdict.Type

/**
 * A rule as data: what it says, of subjects of which kind, or kinds, by which pattern. A `reason` is added to what the
 * model and the log are told.
 *
 * @category models
 * @since 0.1.0
 */
export const Rule = Schema.Struct({
  verdict: Verdict,
  kind: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  pattern: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  reason: Schema.optionalKey(Schema.String)
})

/**
 * @category models
 * @since 0.1.0
 */
export type Rule = typeof Rule.Type

/**
 * A gate over the subjects of tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface Policy extends Gate.Gate {
  readonly [JudgeKey]: (subject: Subject.Subject) => Effect.Effect<Rules.Judgement>
}

const JudgeKey = Symbol("toolfold/Policy/Judge")

/**
 * Why a call is judged as it is: of every subject, which rule decided (nothing where no rule matched), what its value was
 * taken to mean, and why it could not be judged.
 *
 * @category models
 * @since 0.1.0
 */
export interface Explanation {
  readonly verdict: Verdict
  /** What the model and the log are told; empty where the call is allowed. */
  readonly reason: string
  readonly subjects: ReadonlyArray<Rules.Judgement>
}

/** What a rule is for: the kinds that are known here, those of the application, or `undeclared`. */
type Kinds = Subject.Kind | "undeclared" | ReadonlyArray<Subject.Kind | "undeclared">

const rule = (verdict: Verdict) => (kind: Kinds, pattern: string | ReadonlyArray<string>, reason?: string): Rule => ({
  verdict,
  kind,
  pattern,
  ...(reason === undefined ? {} : { reason })
})

/**
 * A rule that lets subjects of this kind pass.
 *
 * @category rules
 * @since 0.1.0
 */
export const allow: (kind: Kinds, pattern: string | ReadonlyArray<string>, reason?: string) => Rule = rule("allow")

/**
 * A rule that asks for somebody's yes for subjects of this kind.
 *
 * @category rules
 * @since 0.1.0
 */
export const ask: (kind: Kinds, pattern: string | ReadonlyArray<string>, reason?: string) => Rule = rule("ask")

/**
 * A rule that refuses subjects of this kind.
 *
 * @category rules
 * @since 0.1.0
 */
export const deny: (kind: Kinds, pattern: string | ReadonlyArray<string>, reason?: string) => Rule = rule("deny")

/**
 * A policy of these rules. `otherwise` is for what no rule matches (default: `ask`). `root` is the absolute folder from
 * which the tools read relative paths; without one a relative path cannot be judged. Throws for rules that are none, for
 * patterns that are empty or malformed, and for a root that is not absolute, and says everything that is wrong.
 *
 * **Example** (A coding agent)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 * import * as Gate from "toolfold/Gate"
 * import * as Policy from "toolfold/policy/Policy"
 * import * as Tool from "toolfold/Tool"
 *
 * const policy = Policy.make({
 *   root: "/work",
 *   rules: [
 *     Policy.allow(["file-read", "file-write"], "src/**"),
 *     Policy.deny(["file-read", "file-write"], "**\/.env*", "secrets stay here"),
 *     Policy.allow("command", "git status"),
 *     Policy.ask("command", "git push"),
 *     Policy.allow("network", "*.example.com:443"),
 *     Policy.allow("undeclared", "get_*")
 *   ],
 *   otherwise: "deny"
 * })
 *
 * const readFile = Tool.make("read_file", {
 *   input: { path: Schema.String },
 *   subjects: [{ kind: "file-read", pathArg: "path" }],
 *   handler: () => Effect.succeed("…")
 * })
 * const info = { agent: "bot", runId: "r", turn: 0, context: Context.empty, calls: [] }
 * const decide = (path: string) =>
 *   Effect.runPromise(Gate.decide(policy, Gate.asked({ id: "1", tool: readFile, input: { path } }), info))
 *
 * await decide("lib/../src/a.ts") // => { _tag: "Proceed" }
 * const refused = await decide("src//.env.local")
 * refused._tag === "Reject" && refused.reason // => 'the policy denies file-read "src//.env.local" by rule 2 (deny file-read or file-write "**\/.env*"): secrets stay here'
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: {
  readonly rules: ReadonlyArray<Rule>
  readonly otherwise?: Verdict | undefined
  readonly root?: string | undefined
}): Policy => {
  const { otherwise = "ask", root, rules } = options
  const place = root === undefined ? undefined : Result.getOrUndefined(Path.normalise(root, undefined))
  const problems = [
    ...Object.keys(options).filter((option) => !["rules", "otherwise", "root"].includes(option))
      .map((option) => `unknown option ${JSON.stringify(option)}; known: rules, otherwise, root`),
    ...(root === undefined || place !== undefined
      ? []
      : [`root must be an absolute path, got ${JSON.stringify(root)}`]),
    ...(isVerdict(otherwise) ? [] : [`otherwise must be allow, ask or deny, got ${JSON.stringify(otherwise)}`]),
    ...rules.flatMap((rule, at) => isRule(rule) ? [] : [`rule ${at + 1} is none: got ${Text.describe(rule)}`])
  ]
  const judge = problems.length > 0
    ? Result.fail(problems)
    : Rules.compile(rules, otherwise, { root: place, fs: Effect.serviceOption(FileSystem.FileSystem) })
  if (Result.isFailure(judge)) throw new Error(`Policy: ${judge.failure.join("; ")}`)
  const gate: Gate.Gate = (call) =>
    Effect.flatMap(explained(judge.success, call), ({ reason, verdict }) => {
      if (verdict === "allow") return Effect.succeed(Gate.proceed)
      const decision = verdict === "deny" ? Gate.reject(reason) : Gate.pause(reason)
      const told = Effect.annotateLogs(Effect.logInfo(reason), { callId: call.id, tool: call.name })
      return Effect.as(Log.safely(told), decision)
    })
  return Object.assign(gate, { [JudgeKey]: judge.success })
}

const isRule = Schema.is(Rule)
const isVerdict = Schema.is(Verdict)

/**
 * What a policy would say of a call, and why: a dry run, of which nothing is logged.
 *
 * **Example** (Which rule was it?)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Policy from "toolfold/policy/Policy"
 * import * as Subject from "toolfold/Subject"
 *
 * const policy = Policy.make({ rules: [Policy.allow("command", ["git"]), Policy.deny("command", ["git", "push"])] })
 *
 * const { subjects, verdict } = await Effect.runPromise(
 *   Policy.explain(policy, { name: "shell", subjects: [Subject.command("git status && git -C . push")] })
 * )
 * verdict // => "deny"
 * subjects[0]?.index // => 1
 * subjects[0]?.judgedAs // => ["git status", "git -C . push"]
 * ```
 *
 * @category queries
 * @since 0.1.0
 */
export const explain = (policy: Policy, call: Explained): Effect.Effect<Explanation> =>
  explained(policy[JudgeKey], call)

/** What is looked at of a call; whether its tool is sensitive where that is said. */
type Explained = Pick<Gate.Asked, "name" | "subjects"> & Partial<Pick<Gate.Asked, "needsApproval">>

const explained = Effect.fnUntraced(function*(
  judge: Policy[typeof JudgeKey],
  { name, needsApproval = Effect.succeed(false), subjects: declared }: Explained
): Effect.fn.Return<Explanation> {
  const subjects = yield* Effect.forEach(
    declared.length === 0 ? [Subject.make("undeclared", name)] : declared,
    (subject) => judge(subject)
  )
  const verdict = subjects.reduce<Verdict>(
    (found, { verdict }) => Rules.strictness[verdict] > Rules.strictness[found] ? verdict : found,
    "allow"
  )
  if (verdict !== "allow") return { verdict, reason: reasonOf(verdict, subjects), subjects }
  const isUnsaid = subjects.some(({ rule }) => rule === undefined)
  return isUnsaid && (yield* needsApproval)
    ? {
      verdict: "ask",
      reason: `the tool ${JSON.stringify(name)} is sensitive, and no rule allows this call`,
      subjects
    }
    : { verdict, reason: "", subjects }
})

const mostShown = 3

const reasonOf = (verdict: Verdict, subjects: ReadonlyArray<Rules.Judgement>): string => {
  const own = subjects.filter((subject) => subject.verdict === verdict)
  const lines = own.slice(0, mostShown).map(({ index, problem, rule, subject }) => {
    const what = `${subject.kind} ${JSON.stringify(Text.excerpt(subject.value))}`
    if (problem !== undefined) return `${what}, which cannot be judged: ${problem}`
    if (rule === undefined) return `${what}, for which there is no rule`
    return `${what} by rule ${Number(index) + 1} (${Rules.shown(rule)})${
      rule.reason === undefined ? "" : `: ${rule.reason}`
    }`
  })
  const more = own.length > mostShown ? `; and ${own.length - mostShown} more` : ""
  return `the policy ${verdict === "deny" ? "denies" : "asks for approval of"} ${lines.join("; ")}${more}`
}
