/**
 * What becomes of a call? It is decoded, run and encoded, and has exactly one outcome whatever happens on the way.
 *
 * Arguments that do not decode are read once more as what the schema says they were meant to be. Only an interruption of
 * the caller is no outcome.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Issue from "effect/SchemaIssue"
import * as Context from "../Context.ts"
import * as Tool from "../Tool.ts"
import type * as Turn from "../Turn.ts"
import * as Around from "./around.ts"
import * as Attempt from "./attempt.ts"
import { type Entry, inputOf, outputOf, type Way } from "./entry.ts"
import * as Failing from "./failing.ts"
import type { Body } from "./guard.ts"
import * as Outcome from "./outcome.ts"
import * as Plain from "./plain.ts"
import * as Repair from "./repair.ts"
import * as Text from "./text.ts"
import { unheard } from "./unheard.ts"

const noWrites: ReadonlyArray<Context.Write> = []

/** A call that has its outcome without being run. */
export const unrun = (scope: Context.CallScope, outcome: Turn.Outcome): Fiber.Fiber<Turn.Outcome> => {
  scope.open = false
  return Effect.runFork(Effect.succeed(outcome))
}

/**
 * Begins to answer a call of this tool, among the services of whoever makes it. The call has a fiber of its own, with
 * which ends what its tool leaves behind; it gives an outcome unless it is interrupted.
 */
export const begin = (
  entry: Entry,
  call: Turn.Call,
  scope: Context.CallScope,
  running: Services.Context<never>
): Fiber.Fiber<Turn.Outcome> => {
  const misread = Failing.unreadable(call)
  if (misread !== undefined) return unrun(scope, misread)
  // Most often there is none; a look into the map says so for less than `Services.get`.
  scope.outer = running.mapUnsafe.get(Context.CurrentCall.key) as Context.CallScope | undefined
  return Effect.runForkWith(Services.add(entry.environment(running), Context.CurrentCall, scope))(
    answered(entry, call, scope)
  )
}

/** A call that fits, with its input as JSON and decoded; or what it comes to because it does not. */
export type Read =
  | { readonly _tag: "Fits"; readonly input: unknown; readonly decoded: unknown }
  | { readonly _tag: "Misfit"; readonly outcome: Turn.Outcome }

/** Reads a call without running it, for whoever must know before. */
export const read = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Read> => {
  const misread = Failing.unreadable(call)
  if (misread !== undefined) return Effect.succeed({ _tag: "Misfit", outcome: misread })
  const way = start(entry, call, scope)
  const fitting = Effect.map(Effect.suspend(() => decode(way)), (decoded): Read => ({
    _tag: "Fits",
    input: way.input,
    decoded
  }))
  const read = Effect.catchCause(
    fitting as Effect.Effect<Read, unknown>, // see `path`
    (cause) => Effect.map(Failing.failing(way, cause), (outcome): Read => ({ _tag: "Misfit", outcome }))
  )
  return Effect.updateContext(read, entry.environment)
}

const answered = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Effect.Effect<Turn.Outcome> => {
  const way = start(entry, call, scope)
  return Effect.catchCause(Effect.suspend(() => path(way)), (cause) => over(way, cause))
}

const start = (entry: Entry, call: Turn.Call, scope: Context.CallScope): Way => ({
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
  finish: closed
})

const over = (way: Way, cause: Cause.Cause<unknown>): Effect.Effect<Turn.Outcome> =>
  Effect.map(Failing.failing(way, cause), (outcome) => way.finish(way, outcome))

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
const path = (way: Way): Effect.Effect<Turn.Outcome, unknown> => {
  // What is plain costs no step of the runtime.
  const input = inputOf(way.entry).read(way.call.input)
  return (input === Plain.unread
    ? Effect.flatMap(decode(way), (input) => passed(way, input))
    : passed(way, input)) as Effect.Effect<Turn.Outcome, unknown>
}

const passed = (way: Way, input: unknown): Effect.Effect<Turn.Outcome, unknown, unknown> => {
  way.stage = "body"
  return way.entry.around.length === 0 ? served(way, input) : surrounded(way, input)
}

const decode = (way: Way): Body => {
  const { call, entry, scope } = way
  const codec = inputOf(entry)
  return Effect.catchIf(codec.decode(call.input), Issue.isIssue, (issue) => {
    const repaired = Repair.repair(Tool.schema(entry.tool).input_schema, call.input)
    if (repaired === undefined) return Effect.fail(issue)
    way.input = repaired.input
    return Effect.map(codec.decode(repaired.input), (input) => {
      scope.repaired = { input: repaired.input, repairs: [...call.repairs, ...repaired.repairs] }
      return input
    })
  })
}

const served = (way: Way, input: unknown): Effect.Effect<Turn.Outcome, unknown, unknown> => {
  const { call, entry, scope } = way
  const { plan } = entry
  if (plan === undefined) scope.attempts = 1
  const body = plan === undefined
    ? bodyOf(entry, input, call.id)
    : Attempt.run(plan, input, Effect.suspend(() => bodyOf(entry, input, call.id)), scope, way)
  return Effect.flatMap(body, (value) => {
    if (plan === undefined) scope.open = false
    way.stage = "output"
    way.value = value
    const codec = outputOf(entry)
    const json = codec.write(value)
    return json === Plain.unread
      ? Effect.map(codec.encode(value), (json) => succeeded(way, json))
      : Effect.succeed(succeeded(way, json))
  })
}

const succeeded = (way: Way, json: unknown): Turn.Outcome =>
  way.finish(way, Failing.success(way, way.entry.isPlain ? json : shown(way, json)))

/** A result as its tool wants it shown: cut, or as parts. */
const shown = (way: Way, json: unknown): unknown => {
  const { maxResultSize: most, tool } = way.entry
  const cut = (value: unknown) => most === undefined ? value : Outcome.cut(value, most)
  if (tool.toModelOutput !== undefined) {
    way.stage = "around"
    way.parts = tool.toModelOutput(way.value).map((part) =>
      // The same with whole characters.
      Text.wellFormed(part.type === "text" ? { ...part, text: cut(part.text) } : part) as Prompt.ToolModelOutputPart
    )
  }
  return cut(json)
}

const bodyOf = (entry: Entry, input: unknown, callId: string): Body => {
  const body = entry.run(input, callId)
  if (Effect.isEffect(body)) return body
  unheard(body)
  return Effect.die(new Error("the handler did not give an Effect"))
}

const surrounded = (way: Way, input: unknown): Effect.Effect<Turn.Outcome, unknown, unknown> => {
  const { call, entry, scope } = way
  const finish = (run: Way, outcome: Turn.Outcome): Turn.Outcome => {
    way.writes = run.writes
    way.at = run.at
    way.own = outcome._tag === "Success" ? { ...outcome, writes: stored(run.writes) } : outcome
    return way.own
  }
  const once = Effect.suspend(() => {
    const run: Way = { ...way, stage: "body", writes: noWrites, at: scope.writes.length, finish }
    const tried = Effect.catchCause(served(run, input), (cause) => over(run, cause))
    return Effect.updateContext(tried as Effect.Effect<Turn.Outcome>, entry.environment) // see `path`
  })
  way.stage = "around"
  const asked: Around.Asked = { id: call.id, name: call.name, input, tool: entry.tool }
  return Effect.map(Around.within(entry.around, asked, once), (outcome) => {
    const isOwn = way.own !== undefined && outcome === way.own
    return closed(way, isOwn ? outcome : Around.sound(outcome, entry.maxResultSize))
  })
}
