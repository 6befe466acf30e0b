/**
 * Where do threads rest that need not outlive the program? In its memory.
 *
 * Entries are kept in their stored form, so what another store would refuse is refused here too, and nobody holds what
 * is kept.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as Memory from "../Memory.ts"

/**
 * A memory of its own for each time that it is built.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Memory.Memory> = Layer.sync(Memory.Memory, () => Memory.make(store()))

const store = (): Memory.Store => {
  const heads = new Map<string, Memory.Head>()
  const entries = new Map<string, ReadonlyArray<string>>()
  const facts = new Map<string, ReadonlyMap<string, string>>()
  const alone = Semaphore.makeUnsafe(1)
  const put = (thread: string, kept: ReadonlyArray<string>) => Effect.sync(() => entries.set(thread, kept))
  const of = (thread: string): ReadonlyArray<string> => entries.get(thread) ?? []
  return {
    change: (_, change) => alone.withPermit(Effect.uninterruptible(change)),
    read: (thread) =>
      Effect.sync(() => {
        const head = heads.get(thread)
        return head === undefined ? undefined : { head, entries: of(thread).slice(0, head.turns) }
      }),
    heads: Effect.sync(() => Array.from(heads)),
    head: (thread) => Effect.sync(() => heads.get(thread)),
    children: (thread) =>
      Effect.sync(() => Array.from(heads).flatMap(([id, { parent }]) => parent?.thread === thread ? [id] : [])),
    write: (thread, turn, entry) => Effect.suspend(() => put(thread, [...of(thread).slice(0, turn), entry])),
    keep: (thread, head) => Effect.sync(() => heads.set(thread, head)),
    copy: (from, to, turns) => Effect.suspend(() => put(to, of(from).slice(0, turns))),
    drop: (thread, from) => Effect.suspend(() => put(thread, of(thread).slice(0, from))),
    remove: (thread) => Effect.sync(() => heads.delete(thread) && entries.delete(thread)),
    facts: {
      set: (owner, key, value) => Effect.sync(() => facts.set(owner, new Map(facts.get(owner)).set(key, value))),
      get: (owner, key) => Effect.sync(() => facts.get(owner)?.get(key)),
      all: (owner) => Effect.sync(() => Array.from(facts.get(owner) ?? [])),
      remove: (owner, key) =>
        Effect.sync(() => {
          const kept = new Map(facts.get(owner))
          kept.delete(key)
          facts.set(owner, kept)
        })
    }
  }
}
