/**
 * What does a call come to that went wrong? What the model can put right it is told in full; what it cannot is an opaque
 * line. Only an interruption of the caller is no outcome.
 */
import type * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Issue from "effect/SchemaIssue"
import type * as Context from "../Context.ts"
import * as Tool from "../Tool.ts"
import type * as Turn from "../Turn.ts"
import * as Arguments from "./arguments.ts"
import * as Attempt from "./attempt.ts"
import * as Callable from "./callable.ts"
import { failureOf, inputOf, type Way } from "./entry.ts"
import type * as Explain from "./explain.ts"
import * as FailureClass from "./failureClass.ts"
import { Refusal } from "./guard.ts"
import * as Outcome from "./outcome.ts"
import * as Text from "./text.ts"

/** The outcome of a call whose arguments cannot even be decoded. */
export const unreadable = (call: Turn.Call): Turn.Outcome | undefined => {
  if (!Object.hasOwn(call, "input")) {
    const raw = call.raw ?? ""
    const tooMuch = Arguments.tooMuch(raw)
    return tooMuch === undefined ? Outcome.invalidJson(raw) : Outcome.failure("invalid-input", `${tooMuch} Send less.`)
  }
  return Arguments.isObject(call.input)
    ? undefined
    : Outcome.misfit([{ path: "", message: `Expected one object of arguments, got ${Text.describe(call.input)}` }])
}

/** A call whose fiber somebody interrupted, and not whoever makes it. */
export const lost = ({ stillRunning }: Context.CallScope): Turn.Outcome => ({
  _tag: "Interrupted",
  stillRunning,
  reason: "the tool interrupted itself"
})

/** A call that went well. */
export const success = ({ parts }: Way, encoded: unknown): Turn.Outcome => {
  const outcome: Turn.Outcome = { _tag: "Success", value: encoded === undefined ? null : encoded, writes: [] }
  return parts === undefined ? outcome : { ...outcome, parts }
}

// Somebody's code is asked about a failure too: its schema, its class. What that dies of is an outcome as well.
/** What a call comes to that failed. */
export const failing = (way: Way, cause: Cause.Cause<unknown>): Effect.Effect<Turn.Outcome> =>
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
    Effect.suspend(() => inputOf(entry).explain(input)) as Effect.Effect<ReadonlyArray<Explain.PathIssue>>, // see `path`
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
    Effect.suspend(() => failureOf(entry).encode(error)) as Effect.Effect<
      unknown,
      unknown
    >, // see `path`
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
