/**
 * Which calls of a batch may run? Each is read and gated, in call order, before any of them runs.
 */
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type { Agent } from "../Agent.ts"
import * as Gate from "../Gate.ts"
import type * as Pause from "../Pause.ts"
import type { Registry } from "../ToolRegistry.ts"
import type * as Turn from "../Turn.ts"
import * as Arguments from "./arguments.ts"
import * as Observe from "./observe.ts"
import * as Run from "./run.ts"

/** A call that waits for somebody's decision, and why. */
export interface Waiting {
  readonly place: Run.Place
  readonly waitsFor: Pause.Pending["waitsFor"]
  readonly reason: string
}

/** What a gate says of a call that somebody has approved with another input: a pause would ask for what was just given. */
type Approved = "approved" | "not asked"

const mostEdits = 8

/** Whether anything of a batch has to be gated at all. */
export const isNeeded = (
  { gate }: Agent<unknown, unknown>,
  { places }: Run.Batch,
  registry: Registry
): boolean =>
  gate !== Gate.sensitive || (!registry.isSimple && places.some(({ call }) => registry.isSensitive(call.name)))

/** Gates a batch. What may not run has its outcome then; what waits is given back, and then nothing may run. */
export const gate = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  registry: Registry
): Effect.fn.Return<ReadonlyArray<Waiting>> {
  const waiting: Array<Waiting> = []
  for (const place of batch.places) {
    // One within which an agent goes on has begun.
    if (place.outcome !== undefined || place.isAllowed || place.scope.waiting !== undefined) continue
    const reason = yield* one(agent, run, batch, registry, place, "not asked")
    if (reason !== undefined) waiting.push({ place, waitsFor: "approval", reason })
  }
  return waiting
})

/** Gates a call that somebody approved with another input. */
export const edited = (
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  registry: Registry,
  place: Run.Place,
  input: unknown
): Effect.Effect<void> => {
  return edit(batch, place, input, "edited when it was approved")
    ? Effect.asVoid(one(agent, run, batch, registry, place, "approved"))
    : Effect.void
}

/** Gates one call; gives a reason where it waits. */
const one = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  registry: Registry,
  place: Run.Place,
  approved: Approved
): Effect.fn.Return<string | undefined> {
  for (let edits = 0; edits <= mostEdits; edits++) {
    const tool = registry.get(place.call.name)
    const read = yield* registry.read(place.call, place.scope)
    if (tool === undefined || read._tag === "Misfit") {
      if (read._tag === "Misfit") place.outcome = read.outcome
      return undefined
    }
    const { decoded, input } = read
    const decision = yield* Gate.decide(
      agent.gate as Gate.Gate, // what it needs, the agent needs
      Gate.asked({ id: place.call.id, tool, input, decoded, messages: run.messages }),
      {
        agent: agent.name,
        runId: run.id,
        turn: run.turns.length,
        context: Ref.getUnsafe(run.context),
        calls: batch.places.map(({ call }) => call)
      }
    )
    const isApproved = decision._tag === "Pause" && approved === "approved"
    yield* Observe.gated(
      run,
      place,
      isApproved ? "Proceed" : decision._tag,
      !isApproved && "reason" in decision ? decision.reason : undefined
    )
    switch (decision._tag) {
      case "Proceed":
        place.isAllowed = true
        return undefined
      case "Pause":
        if (approved === "not asked") return decision.reason
        place.isAllowed = true
        return undefined
      case "Edit":
        if (!edit(batch, place, decision.input, "edited by a gate")) return undefined
        break
      default:
        place.outcome = outcomeOf(decision)
        return undefined
    }
  }
  place.outcome = { _tag: "Rejected", reason: "its gate went on changing it" }
  return undefined
})

/** What a call comes to that a gate, or somebody in its place, answers. */
export const outcomeOf = (
  decision: { readonly _tag: "Reject"; readonly reason: string } | { readonly _tag: "Reply"; readonly text: string }
): Turn.Outcome =>
  decision._tag === "Reject"
    ? { _tag: "Rejected", reason: decision.reason }
    : { _tag: "Replied", text: decision.text }

/**
 * Gives a call another input. The transcript says what ran, so that what the model reads goes with its result; so it is JSON,
 * or the call is rejected.
 */
const edit = (batch: Run.Batch, place: Run.Place, given: unknown, how: string): boolean => {
  const { id, name, repairs } = place.call
  const input = Result.try((): unknown => JSON.parse(JSON.stringify(given)))
  if (Result.isFailure(input)) {
    place.outcome = { _tag: "Rejected", reason: "it was given an input that is no JSON" }
    return false
  }
  place.call = { id, name, input: input.success, repairs: [...repairs, how] }
  // What was read into the arguments that it replaces is not of it.
  place.scope.repaired = undefined
  batch.content = batch.content.map((part) =>
    part.type === "tool-call" && part.id === id
      ? { ...part, params: Arguments.isObject(input.success) ? input.success : {} }
      : part
  )
  return true
}

/** The calls that failed because of their environment. */
export const failed = ({ places }: Run.Batch): ReadonlyArray<Waiting> =>
  places.flatMap((place) => {
    const { isTold, outcome } = place
    return !isTold && outcome?._tag === "Failure" && outcome.class === "environment"
      ? [{ place, waitsFor: "environment", reason: outcome.message }]
      : []
  })

const none: ReadonlyArray<Waiting> = []

/** The calls within which an agent waits: they are not answered yet, whatever they came to. */
export const waitingWithin = ({ places }: Run.Batch): ReadonlyArray<Waiting> =>
  places.every(({ scope }) => scope.waiting === undefined) ? none : places.flatMap((place) => {
    if (Run.pauseWithin(place) === undefined) return []
    place.outcome = undefined
    return [{ place, waitsFor: "approval", reason: "an agent within it waits" }]
  })
