/**
 * What moves during a run, and how does a turn become part of it?
 *
 * A turn enters a run whole: the assistant's message, one result for each of its calls, the fold of what they wrote, the
 * record. `settle` is that step. It is also what closes a turn that was cut off, so the transcript is valid on every
 * exit.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Context from "../Context.ts"
import type * as Provider from "../Provider.ts"
import * as Turn from "../Turn.ts"
import * as Usage from "../Usage.ts"
import * as Arguments from "./arguments.ts"
import * as Transcript from "./transcript.ts"

/** One call of a batch: what was asked, what it sees and writes, and what became of it. */
export interface Place {
  readonly call: Turn.Call
  readonly scope: Context.CallScope
  started: boolean
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
  readonly reply: Provider.Reply
  readonly content: ReadonlyArray<Prompt.AssistantMessagePart>
  readonly text: string
  readonly reasoning: string
  readonly places: ReadonlyArray<Place>
  /** Its results are the answer if all of them are good. */
  isDirect: boolean
}

/** Everything that moves. */
export interface Run {
  readonly id: string
  /** Where the run's own messages begin; what stands before are the instructions. */
  readonly first: number
  readonly messages: Array<Prompt.Message>
  readonly turns: Array<Turn.Turn>
  readonly context: Ref.Ref<Context.Context>
  usage: Usage.Usage
  text: string
  toolCalls: number
  errorsInARow: number
  batch: Batch | undefined
}

export const make = (
  id: string,
  instructions: string | undefined,
  messages: ReadonlyArray<Prompt.Message>,
  context: Context.Context
): Run => {
  const system = instructions === undefined || instructions.trim() === ""
    ? []
    : [Prompt.makeMessage("system", { content: instructions })]
  return {
    id,
    first: system.length,
    messages: [...system, ...Transcript.heal(messages)],
    turns: [],
    context: Ref.makeUnsafe(context),
    usage: Usage.empty,
    text: "",
    toolCalls: 0,
    errorsInARow: 0,
    batch: undefined
  }
}

/** What the model said, as a batch of calls that have not run. */
export const hear = (run: Run, reply: Provider.Reply): Batch => {
  let text = ""
  let reasoning = ""
  const places: Array<Place> = []
  const own = Transcript.ids((at) => `call_${run.id}_${run.turns.length}_${at}`)
  const context = Ref.getUnsafe(run.context)
  const content = Transcript.spoken(reply.content).map((part) => {
    if (part.type === "text") text += part.text
    else if (part.type === "reasoning") reasoning += part.text
    else if (part.type === "tool-call" && part.providerExecuted) own(part.id)
    else if (part.type === "tool-call") {
      const call = Turn.call({ ...part, id: own(part.id) }, { isCutOff: reply.finish === "length" })
      const scope = Context.callScope(context, `${run.id}-${run.turns.length}-${places.length}`)
      places.push({ call, scope, started: false, outcome: undefined })
      return { ...part, id: call.id, params: Arguments.isObject(call.input) ? call.input : {} }
    }
    return part
  })
  return { reply, content, text, reasoning, places, isDirect: false }
}

/** The results of a batch as an answer, where every call of it may be one and succeeded. */
const direct = ({ isDirect, places }: Batch, outcomes: ReadonlyArray<Turn.Outcome>): string | undefined =>
  isDirect && places.length > 0 && outcomes.every(({ _tag }) => _tag === "Success")
    ? outcomes.map(Turn.told).map((told) => typeof told === "string" ? told : JSON.stringify(told)).join("\n")
    : undefined

/** What a settled batch changed. */
export interface Settled {
  readonly before: Context.Context
  readonly dropped: ReadonlyArray<{ readonly id: string; readonly error: unknown }>
}

/** Makes the batch part of the run; calls without an outcome were cut off for this reason. */
export const settle = (run: Run, batch: Batch, reason: string): Settled => {
  const before = Ref.getUnsafe(run.context)
  const calls: Array<Turn.Call> = []
  const outcomes: Array<Turn.Outcome> = []
  const results: Array<Transcript.Told> = []
  const dropped: Array<{ readonly id: string; readonly error: unknown }> = []
  let context = before
  for (const place of batch.places) {
    const { call: { id, name }, scope } = place
    const outcome = outcomeOf(place, reason)
    scope.open = false
    calls.push(callOf(place))
    outcomes.push(outcome)
    results.push({
      id,
      name,
      isFailure: Turn.isError(outcome),
      result: Turn.told(outcome),
      parts: outcome._tag === "Success" ? outcome.parts : undefined
    })
    if (outcome._tag !== "Success" || scope.writes.length === 0) continue
    const folded = Result.try(() => Context.fold(context, scope.writes))
    if (Result.isSuccess(folded)) context = folded.success
    else dropped.push({ id, error: folded.failure })
  }
  run.context.ref.current = context
  const usage = Usage.fromResponse(batch.reply.usage)
  run.usage = Usage.add(run.usage, usage)
  run.text = direct(batch, outcomes) ?? batch.text
  if (batch.content.length > 0) run.messages.push(Transcript.assistant(batch.content))
  if (calls.length > 0) {
    run.messages.push(Transcript.results(results))
  }
  const { finish } = batch.reply
  run.turns.push({
    index: run.turns.length,
    text: batch.text,
    reasoning: batch.reasoning,
    calls,
    outcomes,
    usage,
    finish
  })
  run.batch = undefined
  return { before, dropped }
}
