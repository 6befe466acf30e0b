/**
 * How does a run become data and data a run? As it is between hearing a turn and answering it.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent } from "../Agent.ts"
import * as Context from "../Context.ts"
import * as Pause from "../Pause.ts"
import * as Tool from "../Tool.ts"
import type { Registry } from "../ToolRegistry.ts"
import * as Explain from "./explain.ts"
import * as Gating from "./gating.ts"
import * as Run from "./run.ts"
import * as Transcript from "./transcript.ts"

const mostCharacters = 16_000_000

/** What names a tool, its schema and an input: if one of them is another, so is this. */
const sealOf = (registry: Registry, name: string, input: unknown): string => {
  const tool = registry.get(name)
  const schema = tool === undefined ? "" : JSON.stringify(Tool.schema(tool).input_schema)
  return digest(`${name}\n${schema}\n${JSON.stringify(input)}`)
}

// Tells what changed by itself from what did not; whoever may write the state may write this too.
const digest = (text: string): string => {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  return (high >>> 0).toString(36) + (low >>> 0).toString(36)
}

/** What waits, for whoever decides. */
export const pendingOf = (
  registry: Registry,
  waiting: ReadonlyArray<Gating.Waiting>
): ReadonlyArray<Pause.Pending> =>
  waiting.map(({ place, reason }) => {
    const { id, input, name } = Run.callOf(place)
    return { id, name, input: input ?? {}, reason, seal: sealOf(registry, name, input) }
  })

/** A run that waits, as JSON. */
export const encode = Effect.fnUntraced(function*(
  agent: string,
  run: Run.Run,
  batch: Run.Batch,
  registry: Registry,
  reason: Pause.State["reason"],
  waiting: ReadonlyArray<Gating.Waiting>
): Effect.fn.Return<Pause.Encoded> {
  const [system] = run.messages.slice(0, run.first)
  const state: Pause.State = {
    version: 1,
    id: Run.pauseId(run),
    agent,
    runId: run.id,
    reason,
    pending: pendingOf(registry, waiting),
    ...(system?.role === "system" ? { instructions: system.content } : {}),
    messages: run.messages.slice(run.first),
    turns: run.turns,
    context: yield* Effect.orDie(Context.encode(run.context.ref.current)),
    spent: run.spent,
    toolCalls: run.toolCalls,
    errorsInARow: run.errorsInARow,
    said: Transcript.assistant(batch.content),
    text: batch.text,
    reasoning: batch.reasoning,
    finish: batch.finish,
    usage: batch.usage,
    places: batch.places.map((place) => ({
      call: Run.callOf(place),
      ...(place.outcome === undefined ? {} : { outcome: place.outcome }),
      attempts: place.scope.attempts,
      isAllowed: place.isAllowed
    }))
  }
  return yield* Effect.orDie(encodeState(state))
})

const codec = Schema.toCodecJson(Pause.State)
const encodeState = Schema.encodeEffect(codec)
const decodeState = Schema.decodeUnknownEffect(codec)

const refused = (reason: Pause.ResumeRefused["reason"], ...problems: ReadonlyArray<string>) =>
  Effect.fail(new Pause.ResumeRefused({ reason, problems }))

/** Reads a pause, and says what is wrong with it or with the decisions before anything is touched. */
export const decode = Effect.fnUntraced(function*(
  agent: string,
  given: unknown,
  decisions: Pause.Decisions,
  registry: Registry,
  classes: ReadonlyArray<Context.AnySlots>
): Effect.fn.Return<{ readonly state: Pause.State; readonly context: Context.Context }, Pause.ResumeRefused> {
  const size = Result.try(() => JSON.stringify(given)?.length ?? 0)
  if (Result.isFailure(size) || size.success > mostCharacters) {
    return yield* refused("unreadable", `its state is not JSON, or larger than ${mostCharacters} characters`)
  }
  const state = yield* Effect.catch(
    decodeState(given, { errors: "all" }),
    (error) => refused("unreadable", `its state is damaged, or of another version: ${Explain.describe(error.issue)}`)
  )
  if (state.agent !== agent) {
    return yield* refused(
      "other-agent",
      `it is of the agent ${JSON.stringify(state.agent)}, not ${JSON.stringify(agent)}`
    )
  }
  const changed = state.pending.filter(({ id, name, seal }) => {
    const call = state.places.find((place) => place.call.id === id)?.call
    return call === undefined || seal !== sealOf(registry, name, call.input)
  })
  if (changed.length > 0) {
    return yield* refused(
      "tool-changed",
      ...changed.map(({ id, name }) => `call ${id}: the tool ${name}, its schema or the input is not what it was`)
    )
  }
  const misdecided = problemsOf(state, decisions)
  if (misdecided.length > 0) return yield* refused("decisions", ...misdecided)
  const context = yield* Effect.catch(
    Context.decode(state.context, classes),
    (error) =>
      refused("unreadable", `what the agent remembered does not fit its slots: ${Explain.describe(error.issue)}`)
  )
  return { state, context }
})

const fits = {
  approval: new Set<Pause.Decision["_tag"]>(["Approve", "Reject", "Reply"]),
  environment: new Set<Pause.Decision["_tag"]>(["Retry", "Proceed"])
}

const problemsOf = ({ pending, reason }: Pause.State, decisions: Pause.Decisions): ReadonlyArray<string> => {
  const wanted = new Set(pending.map(({ id }) => id))
  const unknown = Object.keys(decisions).filter((id) => !wanted.has(id))
  return [
    ...unknown.map((id) => `no call ${JSON.stringify(id)} waits`),
    ...pending.flatMap(({ id }) => {
      const decision: unknown = Object.hasOwn(decisions, id) ? decisions[id] : undefined
      if (decision === undefined) return [`call ${id} waits and has no decision`]
      const tag = Reflect.get(Object(decision), "_tag")
      return fits[reason].has(tag) ? [] : [`call ${id} waits for ${reason}, to which ${String(tag)} is no answer`]
    })
  ]
}

/** The run of a pause, and its batch as it was. */
export const restore = (
  state: Pause.State,
  context: Context.Context,
  classes: ReadonlyArray<Context.AnySlots>
): { readonly run: Run.Run; readonly batch: Run.Batch } => {
  const run = Run.make(state.runId, state.instructions, state.messages, context)
  run.turns.push(...state.turns)
  run.spent.push(...state.spent)
  run.toolCalls = state.toolCalls
  run.errorsInARow = state.errorsInARow
  run.pauses = Number(state.id.slice(state.id.lastIndexOf("-") + 1)) + 1
  const places = state.places.map(({ attempts, call, isAllowed, outcome }, at): Run.Place => {
    run.own(call.id)
    const scope = Context.callScope(context, `${state.runId}-${state.turns.length}-${at}`)
    scope.attempts = attempts
    for (const write of outcome?._tag === "Success" ? outcome.writes : []) {
      const slots = classes.find(({ id }) => id === write.slots)
      if (slots !== undefined) scope.writes.push(Context.decodeWrite(slots, write.values))
    }
    return { call, scope, started: outcome !== undefined, isAllowed, isTold: false, outcome }
  })
  const { finish, reasoning, said, text, usage } = state
  return { run, batch: { finish, usage, content: said.content, text, reasoning, places, isDirect: false } }
}

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
        place.outcome = undefined
        place.started = false
        break
      case "Proceed":
        place.isTold = true
    }
  }
})

/** What a run has to show that waits: a transcript in which each waiting call is answered as that. */
export const shownOf = (run: Run.Run, batch: Run.Batch): Run.Run => {
  const copy: Run.Run = {
    ...run,
    messages: run.messages.slice(),
    turns: run.turns.slice(),
    spent: run.spent.slice(),
    context: { ...run.context, ref: { ...run.context.ref } },
    batch: undefined
  }
  const waits = batch.places.map((place) => ({ ...place, scope: Context.callScope(place.scope.context) }))
  Run.settle(copy, { ...batch, places: waits }, "the run waits for a decision")
  copy.turns.pop()
  return copy
}
