/**
 * Who may run a call? A gate is asked once for each call of a batch, in call order, before anything of it runs.
 *
 * It lets a call go on, has the run pause for somebody's decision, refuses it with a reason for the model, answers in the
 * tool's place, or changes the arguments, which are then validated and gated again. A gate that fails, dies, or gives no
 * decision refuses.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import type * as Context from "./Context.ts"
import * as Id from "./internal/id.ts"
import * as Log from "./internal/log.ts"
import { unheard } from "./internal/unheard.ts"
import type * as Subject from "./Subject.ts"
import * as Tool from "./Tool.ts"
import type * as Turn from "./Turn.ts"

/**
 * The call may run, as far as this gate is concerned.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Proceed = Schema.TaggedStruct("Proceed", {})

/**
 * Nothing of the batch runs until somebody has decided. `reason` is for whoever decides.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Pause = Schema.TaggedStruct("Pause", { reason: Schema.String })

/**
 * The call does not run. `reason` is for the model.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Reject = Schema.TaggedStruct("Reject", { reason: Schema.String })

/**
 * The call does not run, and `text` is its result.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Reply = Schema.TaggedStruct("Reply", { text: Schema.String })

/**
 * The call has another input, as JSON: it is validated and gated again.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Edit = Schema.TaggedStruct("Edit", { input: Schema.Unknown })

/**
 * What a gate says of a call.
 *
 * @category decisions
 * @since 0.1.0
 */
export const Decision = Schema.Union([Proceed, Pause, Reject, Reply, Edit])

/**
 * @category decisions
 * @since 0.1.0
 */
export type Decision = typeof Decision.Type

/**
 * A call as a gate sees it. `input` is JSON that was validated. `subjects` is what the tool says that it touches;
 * reading it throws where the tool's own function does. `needsApproval` is whether its tool wants somebody's yes for it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asked {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly tool: WireTool.Any
  readonly subjects: ReadonlyArray<Subject.Subject>
  readonly needsApproval: Effect.Effect<boolean>
}

/**
 * Where a call comes from: which agent, which run and turn, what the agent remembers at its start, and all calls of the
 * batch, also those that cannot run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Info {
  readonly agent: string
  readonly runId: string
  readonly turn: number
  readonly context: Context.Context
  readonly calls: ReadonlyArray<Turn.Call>
}

/**
 * Decides whether a call may run. `R` is what it needs. Whatever it fails with is for the log: the call is refused.
 *
 * **Example** (A gate of one's own)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Context from "toolfold/Context"
 * import * as Gate from "toolfold/Gate"
 * import * as Tool from "toolfold/Tool"
 *
 * const drop = Tool.make("drop_table", { handler: () => Effect.succeed("gone") })
 * const noDrops: Gate.Gate = (call) =>
 *   Effect.succeed(call.name.startsWith("drop") ? Gate.reject("nothing is dropped here") : Gate.proceed)
 *
 * const call = Gate.asked({ id: "1", tool: drop, input: {} })
 * const info = { agent: "bot", runId: "r", turn: 0, context: Context.empty, calls: [] }
 * await Effect.runPromise(Gate.decide(noDrops, call, info)) // => { _tag: "Reject", reason: "nothing is dropped here" }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Gate<out R = never> {
  (call: Asked, info: Info): Effect.Effect<Decision, unknown, R>
}

/**
 * @category decisions
 * @since 0.1.0
 */
export const proceed: Decision = { _tag: "Proceed" }

/**
 * @category decisions
 * @since 0.1.0
 */
export const pause = (reason: string): Decision => ({ _tag: "Pause", reason })

/**
 * @category decisions
 * @since 0.1.0
 */
export const reject = (reason: string): Decision => ({ _tag: "Reject", reason })

/**
 * @category decisions
 * @since 0.1.0
 */
export const reply = (text: string): Decision => ({ _tag: "Reply", text })

/**
 * @category decisions
 * @since 0.1.0
 */
export const edit = (input: unknown): Decision => ({ _tag: "Edit", input })

/**
 * A call as a gate sees it. `input` is its JSON and `decoded` what that decodes to, which the tool's own functions are
 * given (default: `input`); `messages` is what was said before the call (default: nothing). Nothing is asked of the tool
 * before a gate looks.
 *
 * @category constructors
 * @since 0.1.0
 */
export const asked = (call: {
  readonly id: string
  readonly tool: WireTool.Any
  readonly input: unknown
  readonly decoded?: unknown
  readonly messages?: ReadonlyArray<Prompt.Message> | undefined
}): Asked => {
  const { id, input, messages = [], tool } = call
  const decoded = "decoded" in call ? call.decoded : input
  let subjects: ReadonlyArray<Subject.Subject> | undefined
  return {
    id,
    name: tool.name,
    input,
    tool,
    get subjects() {
      return subjects ??= Tool.subjectsOf(tool, decoded)
    },
    needsApproval: Effect.suspend(() => Tool.needsApproval(tool, decoded, { toolCallId: id, messages }))
  }
}

/**
 * Every call may run, also those of sensitive tools.
 *
 * @category gates
 * @since 0.1.0
 */
export const allow: Gate = () => Effect.succeed(proceed)

/**
 * No call may run, for this reason.
 *
 * @category gates
 * @since 0.1.0
 */
export const deny = (reason: string): Gate => () => Effect.succeed(reject(reason))

/**
 * The default: calls of tools that are declared `sensitive`, or whose `needsApproval` says so, wait for somebody's yes;
 * all others may run.
 *
 * @category gates
 * @since 0.1.0
 */
export const sensitive: Gate = (call) =>
  Effect.map(
    call.needsApproval,
    (needed) =>
      needed ? pause(`the tool ${JSON.stringify(call.name)} is sensitive: a call of it needs approval`) : proceed
  )

/**
 * A gate for the calls of these tools alone; all others may run. The names are those of the registry, with its prefixes.
 *
 * @category combinators
 * @since 0.1.0
 */
export const forTools = <R>(names: Iterable<string>, gate: Gate<R>): Gate<R> => {
  const own = new Set(names)
  return (call, info) => own.has(call.name) ? gate(call, info) : Effect.succeed(proceed)
}

/**
 * Asks on the spot instead of pausing: where the gate pauses, `answer` decides, and is told for what reason. In an
 * application whose user is there; the run waits, and no timeout of a tool counts the time. What `answer` fails with
 * refuses the call.
 *
 * **Example** (A question in the terminal)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Context from "toolfold/Context"
 * import * as Gate from "toolfold/Gate"
 * import * as Tool from "toolfold/Tool"
 *
 * const publish = Tool.make("publish", { sensitive: true, handler: () => Effect.succeed("done") })
 * const askUser = (question: string) => Effect.succeed(question.includes("publish"))
 *
 * const gate = Gate.ask(Gate.sensitive, (call, _, reason) =>
 *   Effect.map(askUser(`${reason}. ${call.name}?`), (isYes) => isYes ? Gate.proceed : Gate.reject("the user said no")))
 *
 * const call = Gate.asked({ id: "1", tool: publish, input: {} })
 * const info = { agent: "bot", runId: "r", turn: 0, context: Context.empty, calls: [] }
 * await Effect.runPromise(Gate.decide(gate, call, info)) // => { _tag: "Proceed" }
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const ask: {
  <R2>(
    answer: (call: Asked, info: Info, reason: string) => Effect.Effect<Decision, unknown, R2>
  ): <R>(self: Gate<R>) => Gate<R | R2>
  <R, R2>(
    self: Gate<R>,
    answer: (call: Asked, info: Info, reason: string) => Effect.Effect<Decision, unknown, R2>
  ): Gate<R | R2>
} = dual(
  2,
  <R, R2>(
    self: Gate<R>,
    answer: (call: Asked, info: Info, reason: string) => Effect.Effect<Decision, unknown, R2>
  ): Gate<R | R2> =>
  (call, info): Effect.Effect<Decision, unknown, R | R2> =>
    Effect.flatMap(
      said(self, call, info),
      (decision): Effect.Effect<Decision, unknown, R2> =>
        decision._tag === "Pause"
          ? said((call, info) => answer(call, info, decision.reason), call, info)
          : Effect.succeed(decision)
    )
)

const strictness = { Reject: 4, Pause: 3, Reply: 2, Edit: 1, Proceed: 0 }

/**
 * Several gates as one: the strictest answer wins, `Reject` before `Pause` before `Reply` before `Edit` before
 * `Proceed`. They are asked in order, and none after one that rejects. Of two answers that are equally strict the first
 * one counts: an edited call is gated again, so that a later gate sees the first one's edit and makes its own on top. An
 * edit that changes nothing is no edit. No gate lets everything run.
 *
 * Laws: `all(a, all(b, c)) = all(all(a, b), c)`, and `all` is no weaker than any of its gates.
 *
 * @category combinators
 * @since 0.1.0
 */
export const all = <const Gates extends ReadonlyArray<Gate<unknown>>>(
  ...gates: Gates
): Gate<Needs<Gates[number]>> =>
  Effect.fnUntraced(function*(call: Asked, info: Info) {
    let strictest: Decision = proceed
    // Each is one of `Gates`, whose needs the result has.
    for (const gate of gates as ReadonlyArray<Gate<Needs<Gates[number]>>>) {
      const decision = yield* said(gate, call, info)
      if (strictness[decision._tag] > strictness[strictest._tag]) strictest = decision
      if (strictest._tag === "Reject") break
    }
    return strictest
  })

type Needs<G> = G extends Gate<infer R> ? R : never

/**
 * What a gate comes to: always a decision. A gate that fails, dies, interrupts itself or gives something else rejects, the
 * cause goes to the log, and the reason holds the id under which it stands there. An edit that changes nothing proceeds. Only
 * an interruption of whoever asks ends it.
 *
 * @category running
 * @since 0.1.0
 */
export const decide = <R>(gate: Gate<R>, call: Asked, info: Info): Effect.Effect<Decision, never, R> =>
  Effect.catchCause(said(gate, call, info), (cause) => refused(call, cause))

const isDecision = Schema.is(Decision)

/** What a gate says, where that is a decision; else it dies. */
const said = <R>(gate: Gate<R>, call: Asked, info: Info): Effect.Effect<Decision, unknown, R> =>
  Effect.suspend(() => {
    const deciding = gate(call, info)
    if (!Effect.isEffect(deciding)) {
      unheard(deciding)
      return Effect.die(new Error("the gate did not give an Effect"))
    }
    return Effect.map(deciding, (decision) => {
      if (!isDecision(decision)) throw new Error("the gate did not give a decision")
      return decision._tag === "Edit" && Equal.equals(decision.input, call.input) ? proceed : decision
    })
  })

const refused = Effect.fnUntraced(function*(call: Asked, cause: Cause.Cause<unknown>): Effect.fn.Return<Decision> {
  const errorId = yield* Id.fresh
  const line = `the gate of a call of ${JSON.stringify(call.name)} ${Cause.hasDies(cause) ? "died" : "failed"}`
  yield* Effect.logError(line, cause).pipe(
    Effect.catchCause(() => Log.safely(Effect.logError(`${line} of something that cannot be shown`))),
    Effect.annotateLogs({ errorId, callId: call.id })
  )
  return reject(`it could not be decided whether it may run (error id ${errorId})`)
})
