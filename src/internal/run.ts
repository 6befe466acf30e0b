/**
 * What moves during a run, and how does a turn become part of it?
 *
 * A turn enters a run whole: the assistant's message, one result for each of its calls, the fold of what they wrote, the
 * record. `settle` is that step. It is also what closes a turn that was cut off, so the transcript is valid on every
 * exit.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Context from "../Context.ts"
import * as Pricing from "../Pricing.ts"
import type * as Provider from "../Provider.ts"
import type { Ended, Paused, Result as Ending } from "../Result.ts"
import * as Turn from "../Turn.ts"
import * as Usage from "../Usage.ts"
import * as Arguments from "./arguments.ts"
import * as Arriving from "./arriving.ts"
import * as Spending from "./spending.ts"
import type * as Threading from "./threading.ts"
import * as Transcript from "./transcript.ts"
import type { Watch } from "./watch.ts"

/** One call of a batch: what was asked, what it sees and writes, and what became of it. What is seldom true is absent. */
export interface Place {
  call: Turn.Call
  readonly scope: Context.CallScope
  started: boolean
  /** Somebody or something has said that it may run. */
  isAllowed?: boolean
  /** Somebody has said that the model is to be told of its failure. */
  isTold?: boolean
  /** It was taken from what the run may call when it began. */
  isCounted?: boolean
  /** When its start was shown, if its end was not. */
  shownSince?: number | undefined
  /** Ends the agents within it for whoever watches. */
  within?: Array<(now: number) => void>
  outcome: Turn.Outcome | undefined
}

/** What became of a call: its outcome, or why it has none. */
export const outcomeOf = ({ outcome, scope, started }: Place, reason: string): Turn.Outcome =>
  outcome ?? { _tag: "Interrupted", stillRunning: scope.stillRunning, reason: started ? midway : reason }

/** A call with what was read into its arguments. */
export const callOf = ({ call, scope }: Place): Turn.Call =>
  scope.repaired === undefined ? call : { ...call, ...scope.repaired }

const midway = "the run ended while it ran, so whether it took effect is unknown"

/** A turn whose calls are being answered, in any order; their places are in call order. */
export interface Batch {
  readonly finish: Provider.Reply["finish"]
  readonly usage: Usage.Usage
  content: ReadonlyArray<Prompt.AssistantMessagePart>
  readonly text: string
  readonly reasoning: string
  readonly places: ReadonlyArray<Place>
  /** Its results are the answer if all of them are good. */
  isDirect: boolean
  /** It goes on after a pause. */
  readonly isResumed?: boolean
}

/** Everything that moves. */
export interface Run {
  readonly id: string
  readonly agent: string
  /** Where the run's own messages begin; what stands before are the instructions. */
  readonly first: number
  readonly messages: Array<Prompt.Message>
  readonly turns: Array<Turn.Turn>
  readonly context: Ref.Ref<Context.Context>
  /** Gives a call an id that no other call of the transcript has. */
  readonly own: (id: string) => string
  /** How often it has paused. */
  pauses: number
  /** What the user says meanwhile. */
  readonly told: Array<Prompt.UserMessage>
  /** Where it rests, if anywhere. */
  thread: Threading.Place | undefined
  /** Models of single turns. */
  models: Map<unknown, Provider.Ask> | undefined
  /** By model. */
  readonly spent: Array<Usage.Usage>
  /** What agents within it spent, by agent and model. */
  readonly nested: Array<Spending.Spent>
  /** What it spent before it was resumed within a call, which the run around it has counted. */
  readonly before: Array<Spending.Spent>
  /** An agent within it has waited. */
  hasWaited: boolean
  /** It runs within a call of another, which waits with it. */
  isNested: boolean
  /** Who watches it. */
  watch: Watch | undefined
  /** Calls whose arguments are arriving. */
  arriving: Array<Arriving.Arriving> | undefined
  /** How it ended, from when that was shown. */
  shown: Ending | undefined
  text: string
  toolCalls: number
  errorsInARow: number
  /** How often its answer did not fit. */
  misfits: number
  /** Which limit a call of it was not run for. */
  isOut: "tool-calls" | "budget" | undefined
  batch: Batch | undefined
}

export const make = (
  id: string,
  agent: string,
  instructions: string | undefined,
  messages: ReadonlyArray<Prompt.Message>,
  context: Context.Context
): Run => {
  const system = instructions === undefined || instructions.trim() === ""
    ? []
    : [Prompt.makeMessage("system", { content: instructions })]
  const own = Transcript.ids((at) => `call_${id}_${at}`, hasNoSlash)
  const healed = Transcript.heal(messages)
  for (const message of healed) {
    if (message.role !== "assistant") continue
    for (const part of message.content) if (part.type === "tool-call") own(part.id)
  }
  return {
    id,
    agent,
    first: system.length,
    messages: [...system, ...healed],
    own,
    pauses: 0,
    told: [],
    thread: undefined,
    models: undefined,
    turns: [],
    context: Ref.makeUnsafe(context),
    spent: [],
    nested: [],
    before: [],
    hasWaited: false,
    isNested: false,
    watch: undefined,
    arriving: undefined,
    shown: undefined,
    text: "",
    toolCalls: 0,
    errorsInARow: 0,
    misfits: 0,
    isOut: undefined,
    batch: undefined
  }
}

// Ids of calls within a call are told apart by a slash.
const hasNoSlash = (id: string): boolean => !id.includes("/")

/** What the model said, as a batch of calls that have not run. */
export const hear = (run: Run, reply: Provider.Reply): Batch => {
  let text = ""
  let reasoning = ""
  let isSpoken = false
  let places = noPlaces
  const idOf = Arriving.idsOf(run, reply.content)
  const content = reply.content.slice()
  // Loops here and in `settle` because a turn would pay for what a function closes over.
  let next = 0
  for (const part of reply.content) {
    const at = next++
    if (part.type !== "tool-call") {
      isSpoken = true
      if (part.type === "text") text += part.text
      else if (part.type === "reasoning") reasoning += part.text
      continue
    }
    const id = idOf(part.id)
    if (part.providerExecuted) continue
    const call = Turn.call({ id, name: part.name, params: part.params }, reply.finish === "length" ? cutOff : undefined)
    const place = placeOf(run, call, places.length)
    // An array that starts with its member has no room to spare; most often there is one call.
    if (places.length === 0) places = [place]
    else places.push(place)
    content[at] = { ...part, id, params: Arguments.isObject(call.input) ? call.input : {} }
  }
  run.arriving = undefined
  const usage = Usage.fromResponse(reply.usage, reply.model)
  Spending.add(run, usage)
  // What is blank is said, and not kept.
  return {
    finish: reply.finish,
    usage,
    content: isSpoken ? Transcript.spoken(content) : content,
    text,
    reasoning,
    places,
    isDirect: false
  }
}

const placeOf = (run: Run, call: Turn.Call, at: number): Place => ({
  call,
  scope: Context.callScopeOf(run, Ref.getUnsafe(run.context), run.turns.length, at),
  started: false,
  outcome: undefined
})

const noPlaces: Array<Place> = [] // replaced, not filled

const cutOff = { isCutOff: true } as const

/** What a settled batch changed. */
export interface Settled {
  readonly before: Context.Context
  readonly dropped: ReadonlyArray<{ readonly id: string; readonly error: unknown }>
  /** Its results are the answer. */
  readonly isAnswer: boolean
}

/** Makes the batch part of the run; calls without an outcome were cut off for this reason. */
export const settle = (run: Run, batch: Batch, reason: string): Settled => {
  const { content, finish, isDirect, places, reasoning, text, usage } = batch
  const before = Ref.getUnsafe(run.context)
  const outcomes = places.map((place) => {
    place.scope.open = false
    return place.outcome = outcomeOf(place, reason)
  })
  const dropped = fold(run.context, places)
  const isAnswer = isDirect && places.length > 0 && outcomes.every(({ _tag }) => _tag === "Success")
  run.text = isAnswer ? outcomes.map(shown).join("\n") : text
  if (content.length > 0) run.messages.push(Transcript.assistant(content))
  if (places.length > 0) run.messages.push(Transcript.results(places.map(told)))
  run.turns.push({
    index: run.turns.length,
    text,
    reasoning,
    calls: places.map(callOf),
    outcomes,
    usage,
    finish
  })
  run.batch = undefined
  return { before, dropped, isAnswer }
}

const told = (place: Place): Prompt.ToolResultPart => {
  const outcome = outcomeOf(place, midway) // `settle` has given it one
  const parts = outcome._tag === "Success" ? outcome.parts : undefined
  const { id, name } = place.call
  return Transcript.result(id, name, Turn.isError(outcome), Turn.told(outcome), parts)
}

const shown = (outcome: Turn.Outcome): string => {
  const told = Turn.told(outcome)
  return typeof told === "string" ? told : JSON.stringify(told)
}

const nothing: Settled["dropped"] = []

/** Folds what the calls wrote that succeeded, in call order; a call whose writes do not fold loses all of them. */
const fold = (context: Ref.Ref<Context.Context>, places: ReadonlyArray<Place>): Settled["dropped"] => {
  let dropped = nothing
  for (const { call, outcome, scope } of places) {
    if (outcome?._tag !== "Success" || scope.writes.length === 0) continue
    const folded = tried(Ref.getUnsafe(context), scope.writes)
    if (Result.isSuccess(folded)) context.ref.current = folded.success
    else dropped = [...dropped, { id: call.id, error: folded.failure }]
  }
  return dropped
}

const tried = (context: Context.Context, writes: ReadonlyArray<Context.Write>) =>
  Result.try(() => Context.fold(context, writes))

/** What the run has to show: whole turns, and a cost where all of it has a price. */
export const ended = (run: Run): Effect.Effect<Ended> => Effect.map(Pricing.Pricing, (pricing) => end(run, pricing))

/** `ended` for who has the prices. */
export const end = (run: Run, pricing: Pricing.Pricing): Ended => {
  const costOf = (model: string, usage: Usage.Usage) => Pricing.costOf(pricing, model, usage)
  return {
    runId: run.id,
    text: run.text,
    messages: run.messages.slice(run.first),
    turns: run.turns.slice(),
    usage: Spending.total(run, costOf),
    context: Ref.getUnsafe(run.context)
  }
}

/** What names the pause that a run is about to make. */
export const pauseId = ({ id, pauses, turns }: Run): string => `${id}-${turns.length}-${pauses}`

/** Keeps what the user says until the next turn. */
export const tell = ({ told }: Run, message: string | Prompt.UserMessage): void => {
  const content = typeof message === "string" ? [Prompt.makePart("text", { text: message })] : message.content
  const [healed] = Transcript.heal([Prompt.makeMessage("user", { content })])
  if (healed?.role === "user") told.push(healed)
}

/** Lets what the user said join. Gives whether there was something. */
export const join = (run: Run): boolean => {
  if (run.told.length === 0) return false
  const said = run.told.splice(0)
  run.messages.push(...said)
  return true
}

/** How the agent within a call waits, if it does. */
export const pauseWithin = ({ scope: { waiting } }: Place): Paused | undefined =>
  typeof waiting === "object" && waiting !== null && "_tag" in waiting && waiting._tag === "Paused"
    ? waiting as Paused // `Nested` puts it there
    : undefined
