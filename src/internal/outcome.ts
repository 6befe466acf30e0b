/**
 * What is a call answered with? One outcome, in words that its reader can act on: what the model can put right is told
 * to it in full, what it cannot is an opaque line whose cause is in the log.
 */
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Context from "../Context.ts"
import type * as Turn from "../Turn.ts"
import type * as Attempt from "./attempt.ts"
import * as Explain from "./explain.ts"
import * as Id from "./id.ts"
import * as Log from "./log.ts"
import * as Text from "./text.ts"

/** Names for a sentence. */
export const listed = (names: ReadonlyArray<string>): string => names.length === 0 ? "none" : names.join(", ")

export const failure = (
  kind: Turn.Failure["kind"],
  message: string,
  more: Partial<Pick<Turn.Failure, "class" | "issues" | "errorId" | "stillRunning">> = {}
): Turn.Failure => ({ _tag: "Failure", kind, class: "semantic", message, ...more })

/** A call of a tool that is not there is answered with the names of those that are. */
export const unknownTool = (name: string, names: ReadonlyArray<string>): Turn.Outcome =>
  failure(
    "unknown-tool",
    `There is no tool named ${JSON.stringify(Text.excerpt(name))}. The tools are: ${listed(names)}.`
  )

/** Arguments that are no JSON. */
export const invalidJson = (raw: string): Turn.Outcome =>
  failure(
    "invalid-json",
    `The arguments are not valid JSON: ${JSON.stringify(Text.excerpt(raw, 200))}. Send one JSON object.`
  )

/** Arguments that do not fit, one line an issue. */
export const misfit = (issues: ReadonlyArray<Explain.PathIssue>): Turn.Outcome => {
  const lines = Explain.lines(issues).map((line) => `- ${line}`).join("\n")
  return failure("invalid-input", `The arguments do not fit:\n${lines}\nCorrect them and call again.`, { issues })
}

/** A failure that the tool declares. */
export const declared = (failing: unknown, failureClass: Turn.Failure["class"]): Turn.Outcome => {
  const text = typeof failing === "string" ? failing : JSON.stringify(failing)
  const isBlank = text === undefined || /^(null|\{\}|\s*)$/.test(text)
  return failure("failure", isBlank ? "The tool failed and did not say why." : text, { class: failureClass })
}

/** A deadline that passed. */
export const timedOut = ({ after, stillRunning }: Attempt.TimedOut): Turn.Outcome =>
  failure(
    "timeout",
    `The tool did not answer within ${Duration.format(after)}${
      stillRunning
        ? "; its work may still be going on, so its effect is unknown."
        : " and was stopped. Whether it took effect is unknown."
    }`,
    { class: "transient", stillRunning }
  )

/** An attempt that a guard did not let through. */
export const refused = (message: string): Turn.Outcome => failure("limit", message, { class: "transient" })

/** A result, its text cut to so many characters. */
export const cut = (value: unknown, most: number): unknown => {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  if (text === undefined || text.length <= most) return value
  const kept = Text.excerpt(text, most).slice(0, -1)
  return `${kept}\n[cut: the first ${kept.length} of ${text.length} characters]`
}

const advice = {
  semantic: "Its arguments are not to blame.",
  transient: "Its arguments are not to blame; later it may work.",
  environment: "Its arguments are not to blame; somebody must repair it."
}

/** What the model is not told goes to the log, under an id that both carry. */
export const opaque = Effect.fnUntraced(function*(
  call: Turn.Call,
  scope: Context.CallScope,
  kind: Turn.Failure["kind"],
  what: string,
  cause: Cause.Cause<unknown>,
  failureClass: keyof typeof advice = "semantic"
): Effect.fn.Return<Turn.Outcome> {
  const errorId = scope.id === "" ? yield* Id.fresh : scope.id
  const line = `tool ${JSON.stringify(call.name)} ${what}`
  yield* Effect.logError(line, cause).pipe(
    Effect.catchCause(() => Log.safely(Effect.logError(`${line} of something that cannot be shown`))),
    Effect.annotateLogs({ errorId, callId: call.id })
  )
  const help = kind === "invalid-input" ? "Send simpler ones." : advice[failureClass]
  return failure(kind, `The tool ${what} (error id ${errorId}). ${help}`, { class: failureClass, errorId })
})
