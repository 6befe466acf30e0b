/**
 * What may be decided about what waits, and what becomes of it then?
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Agent } from "../Agent.ts"
import * as Pause from "../Pause.ts"
import type { Registry } from "../ToolRegistry.ts"
import * as Turn from "../Turn.ts"
import * as Gating from "./gating.ts"
import type * as Run from "./run.ts"

/** Fails with why a pause is not resumed. */
export const refused = (reason: Pause.ResumeRefused["reason"], ...problems: ReadonlyArray<string>) =>
  Effect.fail(new Pause.ResumeRefused({ reason, problems }))

const fits = {
  approval: new Set<Pause.Decision["_tag"]>(["Approve", "Reject", "Reply"]),
  environment: new Set<Pause.Decision["_tag"]>(["Retry", "Proceed"])
}

const isDecision = Schema.is(Pause.Decision)

/** What is wrong with decisions about what waits: there must be one for each, which answers it. */
export const problemsOf = (
  pending: ReadonlyArray<Pause.Pending>,
  decisions: Pause.Decisions
): ReadonlyArray<string> => {
  if (typeof decisions !== "object" || decisions === null) return ["the decisions are no object"]
  const wanted = new Set(pending.map(({ id }) => id))
  const unknown = Object.keys(decisions).filter((id) => !wanted.has(id))
  return [
    ...unknown.map((id) => `no call ${JSON.stringify(id)} waits`),
    ...pending.flatMap(({ id, waitsFor }) => {
      const decision: unknown = Object.hasOwn(decisions, id) ? decisions[id] : undefined
      if (decision === undefined) return [`call ${id} waits and has no decision`]
      if (!isDecision(decision)) return [`what was said of call ${id} is no decision`]
      const tag = decision._tag
      return fits[waitsFor].has(tag) ? [] : [`call ${id} waits for ${waitsFor}, to which ${tag} is no answer`]
    })
  ]
}

/** Refuses a decision whose input does not fit, before anything is touched: who gave it can give another. */
export const checkEdits = Effect.fnUntraced(function*(
  { places }: Run.Batch,
  registry: Registry,
  decisions: Pause.Decisions
): Effect.fn.Return<void, Pause.ResumeRefused> {
  const problems: Array<string> = []
  for (const { call, scope } of places) {
    const decision = Object.hasOwn(decisions, call.id) ? decisions[call.id] : undefined
    if (decision?._tag !== "Approve" || !("input" in decision)) continue
    const { id, name, repairs } = call
    const read = yield* registry.read({ id, name, input: decision.input, repairs }, scope)
    if (read._tag === "Misfit") problems.push(`the input of call ${id}: ${Turn.told(read.outcome)}`)
  }
  if (problems.length > 0) return yield* refused("decisions", ...problems)
})

/** Does what was decided, once all of it is found good. */
export const apply = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  run: Run.Run,
  batch: Run.Batch,
  registry: Registry,
  decisions: Pause.Decisions
): Effect.fn.Return<void> {
  for (const place of batch.places) {
    const { id } = place.call
    if (place.scope.waiting !== undefined) {
      const decided = Object.entries(decisions).filter(([key]) => key.startsWith(`${id}/`))
      const within = Object.fromEntries(decided.map(([key, decision]) => [key.slice(id.length + 1), decision]))
      place.scope.waiting = { _tag: "Resumed", state: place.scope.waiting, decisions: within }
      continue
    }
    const decision = Object.hasOwn(decisions, id) ? decisions[id] : undefined
    switch (decision?._tag) {
      case "Approve":
        if ("input" in decision) yield* Gating.edited(agent, run, batch, registry, place, decision.input)
        else place.isAllowed = true
        break
      case "Reject":
      case "Reply":
        place.outcome = Gating.outcomeOf(decision)
        break
      case "Retry":
        place.isCounted = true
        place.outcome = undefined
        place.started = false
        break
      case "Proceed":
        place.isTold = true
    }
  }
})
