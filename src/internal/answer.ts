/**
 * What becomes of a call? It is decoded, run and encoded, and has exactly one outcome whatever happens on the way.
 *
 * Who can repair a mistake decides where it goes: what the model can put right is told to it in full, what it cannot is
 * an opaque line, and only an interruption of the caller is no outcome.
 */
import type * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Context from "../Context.ts"
import type * as Turn from "../Turn.ts"
import * as Arguments from "./arguments.ts"
import * as Codec from "./codec.ts"
import type * as Environment from "./environment.ts"

/** A tool with what it takes to answer a call of it. */
export interface Entry {
  readonly tool: WireTool.Any
  readonly run: (input: unknown, callId: string) => Effect.Effect<unknown, unknown, unknown>
  readonly environment: Environment.Environment
}

/** Names for a sentence. */
export const listed = (names: ReadonlyArray<string>): string => names.length === 0 ? "none" : names.join(", ")

const failure = (
  kind: Turn.Failure["kind"],
  message: string,
  more: Partial<Pick<Turn.Failure, "issues" | "errorId">> = {}
): Turn.Failure => ({ _tag: "Failure", kind, class: "semantic", message, ...more })

const closing = (scope: Context.CallScope, outcome: Turn.Outcome): Effect.Effect<Turn.Outcome> => {
  scope.open = false
  return Effect.succeed(outcome)
}

/** Answers a call of a tool that is not there with the names of those that are. */
export const unknownTool = (
  call: Turn.Call,
  names: ReadonlyArray<string>,
  scope: Context.CallScope
): Effect.Effect<Turn.Outcome> =>
  closing(
    scope,
    failure(
      "unknown-tool",
      `There is no tool named ${JSON.stringify(Codec.excerpt(call.name))}. The tools are: ${listed(names)}.`
    )
  )

/** Answers a call of this tool. */
export const answer = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> => {
  if (!Object.hasOwn(call, "input")) {
    const raw = JSON.stringify(Codec.excerpt(call.raw ?? "", 200))
    return closing(scope, failure("invalid-json", `The arguments are not valid JSON: ${raw}. Send one JSON object.`))
  }
  const codec = Codec.jsonCodec(entry.tool.parametersSchema)
  // What decoding may need was captured with the registry; schemas that need nothing are done at once.
  const decoded = Arguments.isObject(call.input)
    ? codec.decode(call.input) as Effect.Effect<unknown, unknown>
    : Effect.fail(undefined)
  return Exit.isExit(decoded) && Exit.isSuccess(decoded)
    ? run(entry, call, scope, decoded.value)
    : Effect.matchEffect(Effect.updateContext(decoded, entry.environment), {
      onFailure: () => Effect.updateContext(refused(codec, call, scope), entry.environment),
      onSuccess: (input) => run(entry, call, scope, input)
    })
}

const refused = (codec: Codec.Codec, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> =>
  Effect.flatMap(
    Arguments.isObject(call.input)
      ? codec.explain(call.input) as Effect.Effect<ReadonlyArray<Turn.Issue>>
      : Effect.succeed([{ path: "", message: `Expected one object of arguments, got ${Codec.describe(call.input)}` }]),
    (issues) => {
      const lines = issues.map((issue) => `- ${Codec.line(issue)}`).join("\n")
      return closing(
        scope,
        failure("invalid-input", `The arguments do not fit:\n${lines}\nCorrect them and call again.`, { issues })
      )
    }
  )

const run = (entry: Entry, call: Turn.Call, scope: Context.CallScope, input: unknown): Effect.Effect<Turn.Outcome> => {
  const body = Effect.suspend(() => {
    const effect = entry.run(input, call.id)
    return Effect.isEffect(effect) ? effect : Effect.die(new Error("the handler did not give an Effect"))
  }) as Effect.Effect<unknown, unknown>
  return Effect.matchCauseEffect(
    Effect.updateContext(
      body,
      (running: Services.Context<never>) => Services.add(entry.environment(running), Context.CurrentCall, scope)
    ),
    {
      onSuccess: (value) => succeeded(entry, call, scope, value),
      onFailure: (cause) => failed(entry, call, scope, cause)
    }
  )
}

const succeeded = (
  entry: Entry,
  call: Turn.Call,
  scope: Context.CallScope,
  value: unknown
): Effect.Effect<Turn.Outcome> => {
  scope.open = false
  const encoded = Codec.jsonCodec(entry.tool.successSchema).encode(value) as Effect.Effect<unknown, unknown>
  return Exit.isExit(encoded) && Exit.isSuccess(encoded)
    ? Effect.succeed(success(scope, encoded.value))
    : Effect.matchEffect(Effect.updateContext(encoded, entry.environment), {
      onSuccess: (value) => Effect.succeed(success(scope, value)),
      // Nothing has no JSON, also where a schema of anything allows it.
      onFailure: (error) =>
        value === undefined && Schema.is(entry.tool.successSchema)(undefined)
          ? Effect.succeed(success(scope, null))
          : opaque(call, scope, "invalid-output", "gave a result that it does not declare", Cause.fail(error))
    })
}

const success = (scope: Context.CallScope, value: unknown): Turn.Outcome => ({
  _tag: "Success",
  value: value === undefined ? null : value,
  writes: scope.writes.map(({ encoded, slots }) => ({ slots: slots.key, values: encoded }))
})

const failed = (
  entry: Entry,
  call: Turn.Call,
  scope: Context.CallScope,
  cause: Cause.Cause<unknown>
): Effect.Effect<Turn.Outcome> => {
  scope.open = false
  if (Cause.hasInterruptsOnly(cause)) return interrupted(cause as Cause.Cause<never>)
  const error = Cause.findError(cause)
  if (Result.isFailure(error)) return opaque(call, scope, "defect", "failed", cause)
  const encoded = Codec.jsonCodec(entry.tool.failureSchema).encode(error.success) as Effect.Effect<unknown, unknown>
  return Effect.matchEffect(Effect.updateContext(encoded, entry.environment), {
    onSuccess: (failing) => Effect.succeed(failure("failure", inFull(failing))),
    onFailure: () => opaque(call, scope, "failure", "failed", cause)
  })
}

// An interruption may be the caller's, who must be left to end, or of the tool's own making, which is an outcome. An
// interruptible region inside an uninterruptible one fails at once in the first case.
const interrupted = (cause: Cause.Cause<never>): Effect.Effect<Turn.Outcome> =>
  Effect.matchCauseEffect(Effect.uninterruptible(Effect.interruptible(Effect.void)), {
    onFailure: () => Effect.failCause(cause),
    onSuccess: () =>
      Effect.succeed<Turn.Outcome>({ _tag: "Interrupted", stillRunning: false, reason: "the tool interrupted itself" })
  })

const inFull = (failing: unknown): string => {
  const text = typeof failing === "string" ? failing : JSON.stringify(failing)
  return text === undefined || /^(null|\{\}|\s*)$/.test(text) ? "The tool failed and did not say why." : text
}

// What the model is not told goes to the log, under an id that both carry.
const opaque = (
  call: Turn.Call,
  scope: Context.CallScope,
  kind: Turn.Failure["kind"],
  what: string,
  cause: Cause.Cause<unknown>
): Effect.Effect<Turn.Outcome> =>
  Effect.gen(function*() {
    const errorId = scope.id === "" ? (yield* Random.nextIntBetween(0, 2 ** 48)).toString(36) : scope.id
    yield* Effect.logError(`tool ${JSON.stringify(call.name)} ${what}`, cause).pipe(
      Effect.annotateLogs({ errorId, callId: call.id })
    )
    return failure(kind, `The tool ${what} (error id ${errorId}). Its arguments are not to blame.`, { errorId })
  })
