/**
 * How does a run become data and data a run? As it is between hearing a turn and answering it.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Context from "../Context.ts"
import * as Pause from "../Pause.ts"
import * as Tool from "../Tool.ts"
import type { Registry } from "../ToolRegistry.ts"
import { problemsOf, refused } from "./deciding.ts"
import * as Explain from "./explain.ts"
import type * as Gating from "./gating.ts"
import * as Run from "./run.ts"
import type * as Threading from "./threading.ts"
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

/** What waits, for whoever decides: calls of this run, and those of agents within them. */
export const pendingOf = (
  run: Run.Run,
  registry: Registry,
  waiting: ReadonlyArray<Gating.Waiting>
): ReadonlyArray<Pause.Pending> =>
  waiting.flatMap(({ place, reason, waitsFor }) => {
    const { id, input, name } = Run.callOf(place)
    const within = Run.pauseWithin(place)
    return within === undefined
      ? [{ id, name, input: input ?? {}, agent: run.agent, waitsFor, reason, seal: sealOf(registry, name, input) }]
      : within.pending.map((pending) => ({ ...pending, id: `${id}/${pending.id}` }))
  })

/** A run that waits, as JSON. */
export const encode = Effect.fnUntraced(function*(
  run: Run.Run,
  batch: Run.Batch,
  reason: Pause.State["reason"],
  pending: ReadonlyArray<Pause.Pending>
): Effect.fn.Return<Pause.Encoded> {
  const [system] = run.messages.slice(0, run.first)
  const state: Pause.State = {
    version: 1,
    id: Run.pauseId(run),
    agent: run.agent,
    runId: run.id,
    ...(run.thread === undefined ? {} : { thread: restOf(run, run.thread) }),
    reason,
    pending,
    ...(system?.role === "system" ? { instructions: system.content } : {}),
    messages: run.messages.slice(run.first),
    turns: run.turns,
    context: yield* Effect.orDie(Context.encode(run.context.ref.current)),
    spent: run.spent,
    nested: run.nested,
    before: run.before,
    toolCalls: run.toolCalls,
    ...(run.isOut === undefined ? {} : { isOut: run.isOut }),
    errorsInARow: run.errorsInARow,
    misfits: run.misfits,
    told: run.told,
    said: Transcript.assistant(batch.content),
    text: batch.text,
    reasoning: batch.reasoning,
    finish: batch.finish,
    usage: batch.usage,
    places: batch.places.map((place) => {
      const within = Run.pauseWithin(place)
      return {
        call: Run.callOf(place),
        ...(place.outcome === undefined ? {} : { outcome: place.outcome }),
        attempts: place.scope.attempts,
        isAllowed: place.isAllowed === true,
        isTold: place.isTold === true,
        ...(within === undefined ? {} : { within: within.state })
      }
    })
  }
  return yield* Effect.orDie(Schema.encodeEffect(codecOf(Pause.State))(state))
})

const restOf = (run: Run.Run, { context, messages, ref, version }: Threading.Place) => ({
  id: ref.id,
  version,
  messages,
  isContextThere: context === run.context.ref.current
})

// Made when a run first pauses: most processes start without one that does.
const codecOf = memoize((state: typeof Pause.State) => Schema.toCodecJson(state))

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
    Schema.decodeUnknownEffect(codecOf(Pause.State))(given, { errors: "all" }),
    (error) => refused("unreadable", `its state is damaged, or of another version: ${Explain.describe(error.issue)}`)
  )
  const damage = contradictions(state)
  if (damage.length > 0) return yield* refused("unreadable", ...damage)
  if (state.agent !== agent) {
    return yield* refused(
      "other-agent",
      `it is of the agent ${JSON.stringify(state.agent)}, not ${JSON.stringify(agent)}`
    )
  }
  const changed = state.pending.filter(({ id, name, seal }) => {
    const own = placeOf(state, id)
    // What waits within a call is looked at by the agent there.
    return own === undefined || (own.within === undefined
      ? seal !== sealOf(registry, name, own.call.input)
      : registry.get(own.call.name) === undefined)
  })
  if (changed.length > 0) {
    return yield* refused(
      "tool-changed",
      ...changed.map(({ id, name }) => `call ${id}: the tool ${name}, its schema or the input is not what it was`)
    )
  }
  const misdecided = problemsOf(state.pending, decisions)
  if (misdecided.length > 0) return yield* refused("decisions", ...misdecided)
  const context = yield* Effect.catch(
    Context.decode(state.context, classes),
    (error) =>
      refused("unreadable", `what the agent remembered does not fit its slots: ${Explain.describe(error.issue)}`)
  )
  return { state, context }
})

/** The call of a batch by which a waiting call is reached: itself, or one within which an agent waits. */
const placeOf = ({ places }: Pause.State, id: string): Pause.State["places"][number] | undefined =>
  places.find(({ call, within }) => within === undefined && call.id === id) ??
    places.find(({ call, within }) => within !== undefined && id.startsWith(`${call.id}/`))

/** What in a state contradicts itself: it was put together by somebody else. */
const contradictions = (state: Pause.State): ReadonlyArray<string> => {
  const ids = state.places.map(({ call }) => call.id)
  const said = state.said.content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted ? [part.id] : []
  )
  const waiting = state.places.filter(({ call, isAllowed, outcome, within }) =>
    within !== undefined || state.pending.some(({ id }) => id === call.id) || (outcome === undefined && !isAllowed)
  )
  return [
    ...(new Set(ids).size === ids.length ? [] : ["two calls have one id"]),
    ...(JSON.stringify(said) === JSON.stringify(ids) ? [] : ["its calls are not those that the model asked for"]),
    ...(state.id === `${state.runId}-${state.turns.length}-${pausesOf(state)}`
      ? []
      : ["its id is not that of the run"]),
    ...(state.pending.length > 0 ? [] : ["nothing waits"]),
    ...state.pending.filter(({ id, name }) => {
      const place = placeOf(state, id)
      return place === undefined || (place.within === undefined && place.call.name !== name)
    }).map(({ id }) => `call ${id} waits and is not there`),
    ...waiting.filter(({ call, within }) =>
      !state.pending.some(({ id }) => within === undefined ? id === call.id : id.startsWith(`${call.id}/`))
    ).map(({ call }) => `call ${call.id} is open and does not wait`)
  ]
}

const pausesOf = ({ id }: Pause.State): number => Number(id.slice(id.lastIndexOf("-") + 1))

/** The run of a pause, and its batch as it was. */
export const restore = (
  state: Pause.State,
  context: Context.Context,
  classes: ReadonlyArray<Context.AnySlots>
): Effect.Effect<{ readonly run: Run.Run; readonly batch: Run.Batch }, Pause.ResumeRefused> => {
  // A write that was stored may not fit its slot any more.
  const restored = Result.try(() => restoreNow(state, context, classes))
  return Result.isSuccess(restored)
    ? Effect.succeed(restored.success)
    : refused("unreadable", `what a call wrote does not fit its slots: ${String(restored.failure)}`)
}

const restoreNow = (
  state: Pause.State,
  context: Context.Context,
  classes: ReadonlyArray<Context.AnySlots>
): { readonly run: Run.Run; readonly batch: Run.Batch } => {
  const run = Run.make(state.runId, state.agent, state.instructions, state.messages, context)
  run.turns.push(...state.turns)
  run.spent.push(...state.spent)
  run.nested.push(...state.nested)
  run.before.push(...state.before)
  run.toolCalls = state.toolCalls
  run.errorsInARow = state.errorsInARow
  run.misfits = state.misfits ?? 0
  run.told.push(...state.told ?? [])
  run.isOut = state.isOut
  run.pauses = pausesOf(state) + 1
  const places = state.places.map(({ attempts, call, isAllowed, isTold, outcome, within }, at): Run.Place => {
    run.own(call.id)
    const scope = Context.callScopeOf(run, context, state.turns.length, at)
    scope.waiting = within
    scope.attempts = attempts
    for (const write of outcome?._tag === "Success" ? outcome.writes : []) {
      const slots = classes.find(({ id }) => id === write.slots)
      if (slots === undefined) throw new Error(`there is no class of slots ${JSON.stringify(write.slots)}`)
      scope.writes.push(Context.decodeWrite(slots, write.values))
    }
    return { call, scope, started: outcome !== undefined, isAllowed, isTold, isCounted: within !== undefined, outcome }
  })
  const { finish, reasoning, said, text, usage } = state
  return {
    run,
    batch: { finish, usage, content: said.content, text, reasoning, places, isDirect: false, isResumed: true }
  }
}

/** What a run has to show that waits: a transcript in which each waiting call is answered as that. */
export const shownOf = (run: Run.Run, batch: Run.Batch): Run.Run => {
  const copy: Run.Run = {
    ...run,
    messages: run.messages.slice(),
    turns: run.turns.slice(),
    spent: run.spent.slice(),
    context: { ...run.context, ref: { ...run.context.ref } },
    nested: run.nested.slice(),
    before: run.before.slice(),
    batch: undefined
  }
  const waits = batch.places.map((place) => ({ ...place, scope: Context.callScope(place.scope.context) }))
  Run.settle(copy, { ...batch, places: waits }, "the run waits for a decision")
  copy.turns.pop()
  return copy
}
