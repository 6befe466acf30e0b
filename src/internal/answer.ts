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
import * as Issue from "effect/SchemaIssue"
import * as Context from "../Context.ts"
import type * as Turn from "../Turn.ts"
import * as Arguments from "./arguments.ts"
import * as Codec from "./codec.ts"
import type * as Environment from "./environment.ts"
import * as Text from "./text.ts"

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
): Effect.Effect<Turn.Outcome> => {
  const name = JSON.stringify(Text.excerpt(call.name))
  return closing(scope, failure("unknown-tool", `There is no tool named ${name}. The tools are: ${listed(names)}.`))
}

/** How far a call came, and what its body gave. */
interface Progress {
  stage: "input" | "body" | "output"
  value: unknown
}

/** Answers a call of this tool. */
export const answer = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> => {
  if (!Object.hasOwn(call, "input")) {
    const raw = JSON.stringify(Text.excerpt(call.raw ?? "", 200))
    return closing(scope, failure("invalid-json", `The arguments are not valid JSON: ${raw}. Send one JSON object.`))
  }
  if (!Arguments.isObject(call.input)) {
    const message = `Expected one object of arguments, got ${Text.describe(call.input)}`
    return closing(scope, misfit([{ path: "", message }]))
  }
  const progress: Progress = { stage: "input", value: undefined }
  return Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => path(entry, call, scope, progress)),
      (running: Services.Context<never>) => Services.add(entry.environment(running), Context.CurrentCall, scope)
    ),
    {
      onSuccess: (encoded) => Effect.succeed(success(scope, encoded)),
      onFailure: (cause) => failed(entry, call, scope, progress, cause)
    }
  )
}

/** In, through the body, and out. What schemas and handler need was captured with the registry. */
const path = (entry: Entry, call: Turn.Call, scope: Context.CallScope, progress: Progress) =>
  next(Codec.jsonCodec(entry.tool.parametersSchema).decode(call.input), (input) => {
    progress.stage = "body"
    const body = entry.run(input, call.id)
    if (!Effect.isEffect(body)) return Effect.die(new Error("the handler did not give an Effect"))
    return Effect.flatMap(body, (value) => {
      scope.open = false
      progress.stage = "output"
      progress.value = value
      return Codec.jsonCodec(entry.tool.successSchema).encode(value)
    })
  }) as Effect.Effect<unknown, unknown>

// A codec that needs nothing is done at once; going on from its result costs no step of the runtime.
const next = (
  effect: Effect.Effect<unknown, unknown, unknown>,
  f: (value: unknown) => Effect.Effect<unknown, unknown, unknown>
): Effect.Effect<unknown, unknown, unknown> =>
  Exit.isExit(effect) && Exit.isSuccess(effect) ? f(effect.value) : Effect.flatMap(effect, f)

const success = (scope: Context.CallScope, value: unknown): Turn.Outcome => ({
  _tag: "Success",
  value: value === undefined ? null : value,
  writes: scope.writes.map(({ encoded, slots }) => ({ slots: slots.id, values: encoded }))
})

const failed = (
  entry: Entry,
  call: Turn.Call,
  scope: Context.CallScope,
  { stage, value }: Progress,
  cause: Cause.Cause<unknown>
): Effect.Effect<Turn.Outcome> => {
  scope.open = false
  if (Cause.hasInterruptsOnly(cause)) return interrupted(cause as Cause.Cause<never>)
  const error = Result.getOrUndefined(Cause.findError(cause))
  switch (stage) {
    case "input":
      return Issue.isIssue(error)
        ? refused(entry, call, scope)
        : opaque(call, scope, "invalid-input", "could not read its arguments", cause)
    case "body":
      return error === undefined && !Cause.hasFails(cause)
        ? opaque(call, scope, "defect", "failed", cause)
        : declared(entry, call, scope, error, cause)
    case "output":
      // Nothing has no JSON, also where a schema of anything allows it.
      return value === undefined && Schema.is(entry.tool.successSchema)(undefined)
        ? Effect.succeed(success(scope, null))
        : opaque(call, scope, "invalid-output", "gave a result that it does not declare", cause)
  }
}

const misfit = (issues: ReadonlyArray<Codec.PathIssue>): Turn.Failure => {
  const lines = Codec.lines(issues).map((line) => `- ${line}`).join("\n")
  return failure("invalid-input", `The arguments do not fit:\n${lines}\nCorrect them and call again.`, { issues })
}

const refused = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> =>
  Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => Codec.jsonCodec(entry.tool.parametersSchema).explain(call.input)) as Effect.Effect<
        ReadonlyArray<Codec.PathIssue>
      >,
      entry.environment
    ),
    {
      onSuccess: (issues) => Effect.succeed<Turn.Outcome>(misfit(issues)),
      onFailure: (cause) => opaque(call, scope, "invalid-input", "could not read its arguments", cause)
    }
  )

/** A failure that the tool declares reaches the model in full; one that it does not is opaque. */
const declared = (
  entry: Entry,
  call: Turn.Call,
  scope: Context.CallScope,
  error: unknown,
  cause: Cause.Cause<unknown>
): Effect.Effect<Turn.Outcome> =>
  Effect.matchCauseEffect(
    Effect.updateContext(
      Effect.suspend(() => Codec.jsonCodec(entry.tool.failureSchema).encode(error)) as Effect.Effect<unknown, unknown>,
      entry.environment
    ),
    {
      onSuccess: (failing) => Effect.succeed<Turn.Outcome>(failure("failure", inFull(failing))),
      onFailure: () => opaque(call, scope, "failure", "failed", cause)
    }
  )

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
    const advice = kind === "invalid-input" ? "Send simpler ones." : "Its arguments are not to blame."
    return failure(kind, `The tool ${what} (error id ${errorId}). ${advice}`, { errorId })
  })
