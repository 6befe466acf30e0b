/**
 * How does a run rest in a thread? It starts from what is there, and appends what each turn adds, whole, at the version that
 * it has seen.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Ref from "effect/Ref"
import * as Context from "../Context.ts"
import * as Memory from "../Memory.ts"
import { ToolRegistry } from "../ToolRegistry.ts"
import type * as Turn from "../Turn.ts"
import * as Usage from "../Usage.ts"
import * as Explain from "./explain.ts"
import * as Log from "./log.ts"
import * as Transcript from "./transcript.ts"

type AnyThread = Memory.ThreadRef<unknown, unknown>

/** How far a run has come in its thread. */
export interface Place {
  readonly ref: AnyThread
  version: number
  /** How many of the run's own messages are there. */
  messages: number
  /** How many of its turns. */
  turns: number
  context: Context.Context
}

/** What of a run rests. */
interface Running {
  readonly id: string
  readonly first: number
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly turns: ReadonlyArray<Turn.Turn>
  readonly context: Ref.Ref<Context.Context>
}

/** What a thread gives a run to start from. */
export interface Start {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly context: Context.Context
  readonly version: number
}

/** Loads a thread; what the agent remembered is read by the slots of its registry. */
export const load = Effect.fnUntraced(function*(
  ref: AnyThread
): Effect.fn.Return<Start, unknown, unknown> {
  const { context, messages, version } = yield* ref.load
  const { slots } = yield* ToolRegistry
  const decoded = yield* Effect.mapError(Context.decode(context, slots), ({ issue }) =>
    new Memory.MemoryFailed({
      reason: "unreadable",
      subject: ref.id,
      problem: `what the agent remembered does not fit the slots of its tools: ${Explain.describe(issue)}`
    }))
  return { messages, context: decoded, version }
})

/** Where a run stands in its thread when it begins: what it was asked is not there yet. */
export const begin = (ref: AnyThread, { context, messages, version }: Start): Place => ({
  ref,
  version,
  messages: Transcript.heal(messages).length,
  turns: 0,
  context
})

/** Appends what is not there yet: the messages of a turn, what is remembered after it where that changed, what it spent. */
export const append = Effect.fnUntraced(function*(
  run: Running,
  place: Place
): Effect.fn.Return<void, unknown, unknown> {
  const messages = run.messages.slice(run.first + place.messages)
  if (messages.length === 0) return
  const context = run.context.ref.current
  const entry: Memory.Entry = {
    id: `${run.id}/${run.turns.length}/${place.messages}`,
    messages,
    ...(context === place.context ? {} : { context: yield* Context.encode(context) }),
    usage: run.turns.slice(place.turns).reduce((sum, turn) => Usage.add(sum, turn.usage), Usage.empty)
  }
  place.version = yield* place.ref.append(place.version, entry)
  place.messages += messages.length
  place.turns = run.turns.length
  place.context = context
})

/** Appends what is left when a run ends otherwise; whoever ends it is told of that, and not of the memory. */
export const appendLast = (run: Running, place: Place): Effect.Effect<void> =>
  // What the thread needs, the run needs.
  Effect.catchCause(
    append(run, place) as Effect.Effect<void, unknown>,
    (cause) => Log.safely(Effect.logWarning(`the end of a run is not in its thread ${place.ref.id}`, cause))
  )
