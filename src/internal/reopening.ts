/**
 * How does a pause become a run again? Once everything about it and its decisions is found good, and only once.
 */
import * as Effect from "effect/Effect"
import type { Agent } from "../Agent.ts"
import * as Context from "../Context.ts"
import type * as Memory from "../Memory.ts"
import type * as Pause from "../Pause.ts"
import * as PauseStore from "../PauseStore.ts"
import { type Registry, ToolRegistry } from "../ToolRegistry.ts"
import * as Deciding from "./deciding.ts"
import * as Desk from "./desk.ts"
import type * as Opening from "./opening.ts"
import * as Pausing from "./pausing.ts"
import type * as Run from "./run.ts"

/** What a run does first, and how it can be interrupted, where it must be closed whatever happens. */
export interface Protected {
  readonly before: Effect.Effect<void> | undefined
  readonly restore: <B, EB, RB>(effect: Effect.Effect<B, EB, RB>) => Effect.Effect<B, EB, RB>
}

/** Goes on with a pause. From where it is claimed the run is closed whatever happens: nothing of it is lost. */
export const goOn = <A, E, R>(
  agent: Agent<unknown, unknown>,
  options: Opening.ResumeOptions<unknown, unknown, unknown>,
  paused: Pause.Encoded,
  decisions: Pause.Decisions,
  then: (run: Run.Run, how: Protected) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Pause.ResumeRefused, R | ToolRegistry> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      restore(reopen(agent, paused, decisions, options)),
      ({ batch, id, registry, run }) =>
        Effect.flatMap(claim(id), () => {
          run.batch = batch
          return then(run, { before: Deciding.apply(agent, run, batch, registry, decisions), restore })
        })
    )
  )

/** The run of a pause, once everything about it is found good. */
const reopen = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  paused: unknown,
  decisions: Pause.Decisions,
  { memory, slots = [] }: Opening.ResumeOptions<unknown, unknown, unknown>
): Effect.fn.Return<Reopened, Pause.ResumeRefused, ToolRegistry> {
  const registry = yield* Desk.offeredTo(agent, yield* ToolRegistry)
  const classes = [...registry.slots, ...slots]
  const { context, state } = yield* Pausing.decode(agent.name, paused, decisions, registry, classes)
  if (state.thread?.id !== memory?.id) {
    const problem = `it rests in ${threadOf(state.thread?.id)}, and is resumed in ${threadOf(memory?.id)}`
    return yield* Deciding.refused("other-thread", problem)
  }
  const { batch, run } = yield* Pausing.restore(state, context, classes)
  if (memory !== undefined && state.thread !== undefined) {
    const { isContextThere, messages, version } = state.thread
    const there = isContextThere ? context : Context.empty
    run.thread = { ref: memory, version, messages, turns: state.turns.length, context: there }
    yield* checkThread(memory, version)
  }
  yield* Deciding.checkEdits(batch, registry, decisions)
  return { id: state.id, run, batch, registry }
})

interface Reopened {
  readonly id: string
  readonly run: Run.Run
  readonly batch: Run.Batch
  readonly registry: Registry
}

/** Takes a pause, which is taken once. */
const claim = Effect.fnUntraced(function*(id: string): Effect.fn.Return<void, Pause.ResumeRefused> {
  const store = yield* PauseStore.PauseStore
  const isFirst = yield* Effect.catch(store.claim(id), (error) => Deciding.refused("store", error.message))
  if (!isFirst) yield* Deciding.refused("used", "it was resumed before")
})

/** A pause is of the thread as it was: what is there now may answer its calls otherwise. */
const checkThread = (memory: Memory.ThreadRef<unknown, unknown>, version: number) =>
  Effect.matchEffect(
    memory.load as Effect.Effect<Memory.Thread, Memory.MemoryFailed>, // what it needs, the run needs
    {
      onFailure: ({ message }) => Deciding.refused("store", message),
      onSuccess: (thread) =>
        thread.version === version
          ? Effect.void
          : Deciding.refused(
            "thread-changed",
            `it paused at version ${version} of ${threadOf(memory.id)}, which is at version ${thread.version} now`
          )
    }
  )

const threadOf = (id: string | undefined): string => id === undefined ? "no thread" : `the thread ${JSON.stringify(id)}`
