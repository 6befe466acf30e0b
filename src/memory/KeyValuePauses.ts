/**
 * How does a pause rest in a store that knows only keys and values? As its state, what a list shows of it, and a mark once
 * it was claimed.
 *
 * What waits is written after its state, and a mark holds by being there, so a pause is whole wherever the program dies. A
 * claimed one stays, for whoever must find out what became of a run whose program died; its mark is what keeps it from being
 * given away again.
 *
 * A key-value store cannot say who was first: a pause is given away once within one layer. Several processes over one folder
 * need `toolfold/memory/SqlPauses`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as PauseStore from "../PauseStore.ts"
import * as Key from "./internal/key.ts"
import * as Pauses from "./internal/pauses.ts"

/**
 * The store of pauses over the `KeyValueStore` that it is provided with; effect has one over files, among others. One layer
 * at a time may write to a store. Threads of `toolfold/memory/KeyValue` may rest in the same one.
 *
 * **Example** (Over files)
 *
 * ```ts
 * import * as NodeServices from "@effect/platform-node/NodeServices"
 * import * as Layer from "effect/Layer"
 * import * as KeyValueStore from "effect/persistence/KeyValueStore"
 * import * as KeyValuePauses from "toolfold/memory/KeyValuePauses"
 *
 * export const pauses = KeyValuePauses.layer.pipe(
 *   Layer.provide(KeyValueStore.layerFileSystem("./pauses")),
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never, never, KeyValueStore.KeyValueStore> = Layer.effect(
  PauseStore.PauseStore,
  Effect.map(KeyValueStore.KeyValueStore, (values) => store(values))
)

const Waiting = Pauses.text(Schema.Struct({ ...Pauses.Waiting.fields, kept: Schema.Finite }))

const store = (values: KeyValueStore.KeyValueStore): PauseStore.PauseStore => {
  const alone = Semaphore.makeUnsafe(1)
  const now = Pauses.ticking()
  // A write that was begun is ended, or it could come after the next one.
  const changing = <A>(id: string, change: Effect.Effect<A, unknown>) =>
    Pauses.inside(alone.withPermit(Effect.uninterruptible(change)), id)
  return {
    put: (waiting, state) => {
      const { id } = waiting
      return changing(
        id,
        Effect.gen(function*() {
          const text = yield* Pauses.stateText(id, state)
          if (yield* values.has(key(id, "claimed"))) return
          const before = yield* values.get(key(id, "waiting"))
          const kept = before === undefined || isTorn(before)
            ? yield* now
            : (yield* Pauses.decode(Waiting, id, before)).kept
          const shown = yield* Pauses.encode(Waiting, id, { version: 1, ...waiting, kept })
          yield* values.set(key(id, "state"), text)
          yield* values.set(key(id, "waiting"), shown)
        })
      )
    },
    claim: (id) =>
      changing(
        id,
        Effect.gen(function*() {
          if (yield* values.has(key(id, "claimed"))) return false
          yield* values.set(key(id, "claimed"), String(yield* now))
          return true
        })
      ),
    get: (id) =>
      Pauses.inside(
        alone.withPermit(Effect.gen(function*() {
          if (yield* values.has(key(id, "claimed"))) return undefined
          const text = yield* values.get(key(id, "state"))
          return text === undefined || isTorn(text) ? undefined : yield* Pauses.stateOf(id, text)
        })),
        id
      ),
    list: Pauses.inside(alone.withPermit(Effect.gen(function*() {
      const keys = new Set(yield* values.keys)
      const found: Array<typeof Waiting.Type> = []
      for (const name of keys) {
        const id = /^(pause\..*\.)waiting$/.exec(name)?.[1]
        if (id === undefined || keys.has(`${id}claimed`)) continue
        const text = yield* values.get(name)
        if (text !== undefined && !isTorn(text)) found.push(yield* Pauses.decode(Waiting, name, text))
      }
      return found.toSorted((one, other) => one.kept - other.kept).map(({ kept: _, version: __, ...waiting }) =>
        waiting
      )
    })))
  }
}

const key = (id: string, what: "claimed" | "state" | "waiting"): string => `pause.${Key.spelled(id)}.${what}`

// What was torn is no JSON any more: it ends before its braces do. Its writer was not told that it is kept.
const parse = Schema.decodeResult(Schema.fromJsonString(Schema.Unknown))
const isTorn = (text: string): boolean => Result.isFailure(parse(text))
