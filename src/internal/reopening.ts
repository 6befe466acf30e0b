/**
 * How does a pause become a run again? Once everything about it and its decisions is found good, and only once.
 */
import * as Effect from "effect/Effect"
import type { Agent } from "../Agent.ts"
import * as Context from "../Context.ts"
import type * as Memory from "../Memory.ts"
import type * as Pause from "../Pause.ts"
import * as PauseStore from "../PauseStore.ts"
import { ToolRegistry } from "../ToolRegistry.ts"
import * as Deciding from "./deciding.ts"
import * as Desk from "./desk.ts"
import type * as Opening from "./opening.ts"
import * as Pausing from "./pausing.ts"
import type * as Run from "./run.ts"

/** A run that goes on, and what it does first: what was decided. */
interface Reopened {
  readonly run: Run.Run
  readonly before: Effect.Effect<void>
}

/** The run of a pause, once everything about it is found good and it was not resumed before. */
export const reopen = Effect.fnUntraced(function*(
  agent: Agent<unknown, unknown>,
  paused: unknown,
  decisions: Pause.Decisions,
  { memory, slots = [] }: Opening.ResumeOptions<unknown, unknown, unknown> = {}
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
  const store = yield* PauseStore.PauseStore
  const isFirst = yield* Effect.catch(
    store.claim(state.id),
    (error) => Deciding.refused("store", error.message)
  )
  if (!isFirst) return yield* Deciding.refused("used", "it was resumed before")
  run.batch = batch
  return { run, before: Deciding.apply(agent, run, batch, registry, decisions) }
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
