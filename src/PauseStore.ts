/**
 * Which runs wait, and which were resumed? The service, not the store: it keeps what waits, and gives each pause away once.
 *
 * @since 0.1.0
 */
import * as Services from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Pause from "./Pause.ts"

/**
 * A pause that waits, for a list: which run of which agent, and which calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Waiting {
  readonly id: string
  readonly agent: string
  readonly runId: string
  readonly reason: Pause.State["reason"]
  readonly pending: ReadonlyArray<Pause.Pending>
}

/**
 * The store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export class PauseStoreFailed extends Data.TaggedError("PauseStoreFailed")<{ readonly cause: unknown }> {
  override get message(): string {
    return `the store of pauses failed: ${String(this.cause)}`
  }
}

/**
 * Keeps pauses. `claim` gives a pause away once, also to processes beside each other, and also one that it was never given:
 * a state may have been kept elsewhere.
 *
 * @category models
 * @since 0.1.0
 */
export interface PauseStore {
  readonly put: (waiting: Waiting, state: Pause.Encoded) => Effect.Effect<void, PauseStoreFailed>
  readonly claim: (id: string) => Effect.Effect<boolean, PauseStoreFailed>
  readonly get: (id: string) => Effect.Effect<Pause.Encoded | undefined, PauseStoreFailed>
  /** What waits, the oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<Waiting>, PauseStoreFailed>
}

/**
 * A store in the memory of this process.
 *
 * **Example** (A pause is given away once)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as PauseStore from "toolfold/PauseStore"
 *
 * const store = PauseStore.make()
 * const claims = await Effect.runPromise(Effect.all([store.claim("a"), store.claim("a"), store.claim("b")]))
 * claims // => [true, false, true]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): PauseStore => {
  const kept = new Map<string, { readonly waiting: Waiting; readonly state: Pause.Encoded }>()
  const claimed = new Set<string>()
  return {
    put: (waiting, state) => Effect.sync(() => kept.set(waiting.id, { waiting, state })),
    claim: (id) =>
      Effect.sync(() => {
        if (claimed.has(id)) return false
        claimed.add(id)
        kept.delete(id)
        return true
      }),
    get: (id) => Effect.sync(() => kept.get(id)?.state),
    list: Effect.sync(() => Array.from(kept.values(), ({ waiting }) => waiting))
  }
}

/**
 * The store in force: one in the memory of this process, unless another is provided. Runs that are resumed elsewhere need
 * one that is shared.
 *
 * @category services
 * @since 0.1.0
 */
export const PauseStore: Services.Reference<PauseStore> = Services.Reference<PauseStore>("toolfold/PauseStore", {
  defaultValue: make
})

/**
 * A store of one's own, in memory, as a layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<never> = Layer.sync(PauseStore, make)
