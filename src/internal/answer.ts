/**
 * What becomes of a call? It is decoded, run and encoded, and has exactly one outcome whatever happens on the way.
 *
 * Arguments that do not decode are read once more as what the schema says they were meant to be. Only an interruption of
 * the caller is no outcome.
 */
import type * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Issue from "effect/SchemaIssue"
import * as Context from "../Context.ts"
import * as Tool from "../Tool.ts"
import type * as Turn from "../Turn.ts"
import * as Arguments from "./arguments.ts"
import * as Around from "./around.ts"
import * as Attempt from "./attempt.ts"
import * as Callable from "./callable.ts"
import * as Codec from "./codec.ts"
import type * as Environment from "./environment.ts"
import type * as Explain from "./explain.ts"
import * as FailureClass from "./failureClass.ts"
import { type Body, Refusal } from "./guard.ts"
import * as Outcome from "./outcome.ts"
import * as Repair from "./repair.ts"
import * as Results from "./results.ts"
import * as Text from "./text.ts"

/** A tool with what it takes to answer a call of it. */
export interface Entry {
  readonly tool: WireTool.Any
  readonly run: (input: unknown, callId: string) => Body
  readonly environment: Environment.Environment
  /** Outermost first. */
  readonly around: ReadonlyArray<Around.Around>
  /** What its options come to. */
  readonly declared: Attempt.Plan
  /** What an agent or the registry says for tools that do not say it themselves. */
  readonly fallbackTimeout: Duration.Duration | undefined
  /** How its body is tried, with the timeout that holds; nothing where it is just run. */
  readonly plan: Attempt.Plan | undefined
  readonly maxResultSize: number | undefined
  /** Its results are shown as they are. */
  readonly isPlain: boolean
  readonly isSerial: boolean
  readonly isReturnDirect: boolean
  /** Made at the first call. */
  readonly codecs: { input?: Codec.Codec; output?: Codec.Codec }
}

const inputOf = ({ codecs, tool }: Entry): Codec.Codec => codecs.input ??= Codec.jsonCodec(tool.parametersSchema)

const outputOf = ({ codecs, tool }: Entry): Codec.Codec =>
  codecs.output ??= Codec.jsonCodec(Results.open(tool.successSchema))

/** A call on its way: how far it came, and what it has so far. */
interface Way {
  readonly entry: Entry
  readonly call: Turn.Call
  readonly scope: Context.CallScope
  stage: "input" | "body" | "output" | "around"
  input: unknown
  value: unknown
  parts: ReadonlyArray<unknown> | undefined
  /** What the last run wrote, and where among the writes of those around it that stands. */
  writes: ReadonlyArray<Context.Write>
  at: number
  /** What the last run came to, and what those around it made of that. */
  own: Turn.Outcome | undefined
  outcome: Turn.Outcome | undefined
}

const noWrites: ReadonlyArray<Context.Write> = []

/** Closes a call that has its outcome without being run. */
export const unrun = (scope: Context.CallScope, outcome: Turn.Outcome): Effect.Effect<Turn.Outcome> => {
  scope.open = false
  return Effect.succeed(outcome)
}

/** Answers a call of this tool. */
export const answer = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> => {
  if (!Object.hasOwn(call, "input")) {
    const raw = call.raw ?? ""
    const tooMuch = Arguments.tooMuch(raw)
    return unrun(
      scope,
      tooMuch === undefined ? Outcome.invalidJson(raw) : Outcome.failure("invalid-input", `${tooMuch} Send less.`)
    )
  }
  if (!Arguments.isObject(call.input)) {
    const message = `Expected one object of arguments, got ${Text.describe(call.input)}`
    return unrun(scope, Outcome.misfit([{ path: "", message }]))
  }
  const way: Way = {
    entry,
    call,
    scope,
    stage: "input",
    input: call.input,
    value: undefined,
    parts: undefined,
    writes: noWrites,
    at: 0,
    own: undefined,
    outcome: undefined
  }
  return Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => path(way)),
      (running: Services.Context<never>) => {
        // Most often there is none; a look into the map says so for less than `Services.get`.
        scope.outer = running.mapUnsafe.get(Context.CurrentCall.key) as Context.CallScope | undefined
        return Services.add(entry.environment(running), Context.CurrentCall, scope)
      }
    ),
    {
      onSuccess: (encoded) => Effect.succeed(closed(way, way.outcome ?? success(way, encoded))),
      onFailure: (cause) => Effect.map(failing(way, cause), (outcome) => closed(way, outcome))
    }
  )
}

// What a call wrote is what its last run wrote, and what those around it did.
const closed = ({ at, scope, writes: own }: Way, outcome: Turn.Outcome): Turn.Outcome => {
  scope.open = false
  if (outcome._tag !== "Success" || scope.writes.length + own.length + outcome.writes.length === 0) return outcome
  if (own.length > 0) scope.writes.splice(at, 0, ...own)
  return { ...outcome, writes: stored(scope.writes) }
}

const stored = (writes: ReadonlyArray<Context.Write>) =>
  writes.map(({ encoded, slots }) => ({ slots: slots.id, values: encoded }))

/** In, through the body, and out. What schemas and handler need was captured with the registry. */
const path = (way: Way) =>
  next(decode(way), (input) => {
    way.stage = "body"
    return way.entry.around.length === 0 ? served(way, input) : surrounded(way, input)
  }) as Effect.Effect<unknown, unknown>

// A codec that needs nothing is done at once; going on from its result costs no step of the runtime.
const next = (effect: Body, f: (value: unknown) => Body): Body =>
  Exit.isExit(effect) && Exit.isSuccess(effect) ? f(effect.value) : Effect.flatMap(effect, f)

const decode = (way: Way): Body => {
  const { call, entry, scope } = way
  const codec = inputOf(entry)
  const decoded = codec.decode(call.input)
  if (Exit.isExit(decoded) && Exit.isSuccess(decoded)) return decoded
  return Effect.catchIf(decoded, Issue.isIssue, (issue) => {
    const repaired = Repair.repair(Tool.schema(entry.tool).input_schema, call.input)
    if (repaired === undefined) return Effect.fail(issue)
    way.input = repaired.input
    return Effect.map(codec.decode(repaired.input), (input) => {
      scope.repaired = { input: repaired.input, repairs: [...call.repairs, ...repaired.repairs] }
      return input
    })
  })
}

const served = (way: Way, input: unknown): Body => {
  const { call, entry, scope } = way
  const { plan } = entry
  const body = plan === undefined
    ? bodyOf(entry, input, call.id)
    : Attempt.run(plan, input, Effect.suspend(() => bodyOf(entry, input, call.id)), scope, way)
  if (plan === undefined) scope.attempts = 1
  return Effect.flatMap(body, (value) => {
    if (plan === undefined) scope.open = false
    way.stage = "output"
    way.value = value
    const encoded = outputOf(entry).encode(value)
    return entry.isPlain ? encoded : Effect.map(encoded, (json) => shown(way, json))
  })
}

/** A result as its tool wants it shown: cut, or as parts. */
const shown = (way: Way, json: unknown): unknown => {
  const { maxResultSize: most, tool } = way.entry
  const cut = (value: unknown) => most === undefined ? value : Outcome.cut(value, most)
  if (tool.toModelOutput !== undefined) {
    way.stage = "around"
    way.parts = tool.toModelOutput(way.value).map((part) =>
      Text.wellFormed(part.type === "text" ? { ...part, text: cut(part.text) } : part)
    )
  }
  return cut(json)
}

const bodyOf = (entry: Entry, input: unknown, callId: string): Body => {
  const body = entry.run(input, callId)
  if (Effect.isEffect(body)) return body
  // A promise that nobody waits for must not end the program when it is rejected.
  if ((body as unknown) instanceof Promise) Promise.prototype.then.call(body, undefined, () => {})
  return Effect.die(new Error("the handler did not give an Effect"))
}

const surrounded = (way: Way, input: unknown): Body => {
  const { call, entry, scope } = way
  const once = Effect.suspend(() => {
    const run: Way = { ...way, stage: "body", writes: noWrites, at: scope.writes.length }
    const ended = (outcome: Turn.Outcome): Turn.Outcome => {
      way.writes = run.writes
      way.at = run.at
      way.own = outcome._tag === "Success" ? { ...outcome, writes: stored(run.writes) } : outcome
      return way.own
    }
    return Effect.matchCauseEffect(
      Effect.updateContext(served(run, input) as Effect.Effect<unknown, unknown>, entry.environment), // see `path`
      {
        onSuccess: (encoded) => Effect.succeed(ended(success(run, encoded))),
        onFailure: (cause) => Effect.map(failing(run, cause), ended)
      }
    )
  })
  way.stage = "around"
  const asked: Around.Asked = { id: call.id, name: call.name, input, tool: entry.tool }
  return Effect.map(Around.within(entry.around, asked, once), (outcome) => {
    way.outcome = way.own !== undefined && outcome === way.own ? outcome : Around.sound(outcome, entry.maxResultSize)
  })
}

const success = ({ parts }: Way, encoded: unknown): Turn.Outcome => {
  const outcome: Turn.Outcome = { _tag: "Success", value: encoded === undefined ? null : encoded, writes: [] }
  return parts === undefined ? outcome : { ...outcome, parts }
}

// Somebody's code is asked about a failure too: its schema, its class. What that dies of is an outcome as well.
const failing = (way: Way, cause: Cause.Cause<unknown>): Effect.Effect<Turn.Outcome> =>
  Effect.catchCause(Effect.suspend(() => failed(way, cause)), (worse) =>
    Cause.hasInterruptsOnly(worse)
      ? Effect.failCause(worse)
      : Outcome.opaque(way.call, way.scope, "defect", "failed", worse))

const failed = (way: Way, cause: Cause.Cause<unknown>): Effect.Effect<Turn.Outcome> => {
  const { call, entry, scope } = way
  if (Cause.hasInterruptsOnly(cause)) return interrupted(way, cause as Cause.Cause<never>)
  const error = Result.getOrUndefined(Cause.findError(cause))
  if (error instanceof Attempt.TimedOut) return Effect.succeed(Outcome.timedOut(error))
  if (error instanceof Refusal) return Effect.succeed(Outcome.refused(error.message))
  switch (way.stage) {
    case "input":
      return Issue.isIssue(error)
        ? explained(way)
        : Outcome.opaque(call, scope, "invalid-input", "could not read its arguments", cause)
    case "body":
      return error === undefined && !Cause.hasFails(cause)
        ? Outcome.opaque(call, scope, "defect", "failed", cause)
        : declared(way, error, cause)
    case "output":
      // Nothing has no JSON, also where a schema of anything allows it.
      return way.value === undefined && Schema.is(entry.tool.successSchema)(undefined)
        ? Effect.succeed(success(way, null))
        : Outcome.opaque(call, scope, "invalid-output", "gave a result that it does not declare", cause)
    case "around":
      return Outcome.opaque(call, scope, "defect", "failed", cause)
  }
}

const explained = ({ call, entry, input, scope }: Way): Effect.Effect<Turn.Outcome> =>
  Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => inputOf(entry).explain(input)) as Effect.Effect<
        ReadonlyArray<Explain.PathIssue>
      >,
      entry.environment
    ),
    {
      onSuccess: (issues) => Effect.succeed(Outcome.misfit(issues)),
      onFailure: (cause) => Outcome.opaque(call, scope, "invalid-input", "could not read its arguments", cause)
    }
  )

/** A failure that the tool declares reaches the model in full; one that it does not is opaque. */
const declared = (
  { call, entry, scope }: Way,
  error: unknown,
  cause: Cause.Cause<unknown>
): Effect.Effect<Turn.Outcome> => {
  const failureClass = classOf(entry.tool, error)
  return Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => Codec.jsonCodec(Results.open(entry.tool.failureSchema)).encode(error)) as Effect.Effect<
        unknown,
        unknown
      >,
      entry.environment
    ),
    {
      onSuccess: (failing) => Effect.succeed(Outcome.declared(failing, failureClass)),
      onFailure: () =>
        Outcome.opaque(call, scope, "failure", "failed", cause, failureClass === "policy" ? "semantic" : failureClass)
    }
  )
}

/** The class of a failure of this tool. */
export const classOf = (tool: WireTool.Any, error: unknown): FailureClass.FailureClass => {
  const schema = Tool.isTool(tool) ? tool[Callable.TypeId].failure : tool.failureSchema
  return Result.getOrElse(Result.try(() => FailureClass.of(schema, error)), () => "semantic" as const)
}

// An interruption may be the caller's, who must be left to end, or of the tool's own making, which is an outcome. An
// interruptible region inside an uninterruptible one fails at once in the first case.
const interrupted = ({ entry, scope }: Way, cause: Cause.Cause<never>): Effect.Effect<Turn.Outcome> =>
  Effect.matchCauseEffect(Effect.uninterruptible(Effect.interruptible(Effect.void)), {
    onFailure: () => Effect.failCause(cause),
    onSuccess: () =>
      Effect.succeed<Turn.Outcome>({
        _tag: "Interrupted",
        stillRunning: scope.stillRunning,
        reason: entry.declared.scope.state._tag === "Closed"
          ? "its registry was closed"
          : "the tool interrupted itself"
      })
  })
