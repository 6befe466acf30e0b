/**
 * How does a thread rest in a store that knows only keys and values? One value a turn, and a head that says which of them
 * count; so it is whole wherever the program dies.
 *
 * A value that is written over may be torn when the program dies meanwhile. So what changes has two places that take
 * turns, and the newer one that can be read holds. A turn is written before the head counts it, and no head counts one
 * that is written over.
 *
 * A key-value store cannot say who was first: two writers find out about each other only within one layer. Several
 * processes over one folder need `toolfold/memory/Sql`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Memory from "../Memory.ts"
import * as Key from "./internal/key.ts"

/**
 * A memory over the `KeyValueStore` that it is provided with; effect has one over files, among others. One layer at a
 * time may write to a store. Use `KeyValueStore.prefix` to keep its keys apart from yours.
 *
 * **Example** (Over files)
 *
 * ```ts
 * import * as NodeServices from "@effect/platform-node/NodeServices"
 * import * as Layer from "effect/Layer"
 * import * as KeyValueStore from "effect/persistence/KeyValueStore"
 * import * as KeyValue from "toolfold/memory/KeyValue"
 *
 * export const memory = KeyValue.layer.pipe(
 *   Layer.provide(KeyValueStore.layerFileSystem("./threads")),
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Memory.Memory, never, KeyValueStore.KeyValueStore> = Layer.effect(
  Memory.Memory,
  Effect.map(KeyValueStore.KeyValueStore, (values) => Memory.make(store(values)))
)

const store = (values: KeyValueStore.KeyValueStore): Memory.Store => {
  const alone = Semaphore.makeUnsafe(1)
  const heads = places(values, KeptHead)
  const facts = places(values, KeptFact)
  const head = (thread: string) => Effect.map(heads.get(headKey(thread)), (kept) => kept?.head)
  const entry = (thread: string, turn: number) =>
    Effect.flatMap(values.get(turnKey(thread, turn)), (text) =>
      text === undefined
        ? Effect.fail(unreadable(thread, `turn ${turn} is missing`))
        : Effect.succeed(text))
  const listed = Effect.map(
    heads.all("thread."),
    (all) => all.flatMap(({ head, thread }) => head === undefined ? [] : [[thread, head] as const])
  )
  return {
    // A write that was begun is ended, or it could come after the next one.
    change: (_, change) => alone.withPermit(Effect.uninterruptible(change)),
    read: (thread) =>
      alone.withPermit(Effect.flatMap(head(thread), (head) =>
        head === undefined ? Effect.undefined : Effect.map(
          Effect.forEach(Array.from({ length: head.turns }, (_, turn) => turn), (turn) => entry(thread, turn)),
          (entries) => ({ head, entries })
        ))),
    heads: alone.withPermit(listed),
    head,
    children: (thread) =>
      Effect.map(listed, (all) => all.flatMap(([id, { parent }]) => parent?.thread === thread ? [id] : [])),
    write: (thread, turn, text) => values.set(turnKey(thread, turn), text),
    keep: (thread, head) => heads.set(headKey(thread), { version: 1, thread, head }),
    copy: (from, to, turns) =>
      Effect.forEach(
        Array.from({ length: turns }, (_, turn) => turn),
        (turn) => Effect.flatMap(entry(from, turn), (text) => values.set(turnKey(to, turn), text)),
        { discard: true }
      ),
    drop: (thread, from, to) => removed(values, thread, from, to),
    remove: (thread, { turns }) =>
      heads.set(headKey(thread), { version: 1, thread }).pipe(
        Effect.andThen(removed(values, thread, 0, turns)),
        Effect.andThen(heads.remove(headKey(thread)))
      ),
    facts: {
      set: (owner, key, value) => facts.set(factKey(owner, key), { version: 1, key, value }),
      get: (owner, key) => Effect.map(facts.get(factKey(owner, key)), (fact) => fact?.value),
      all: (owner) =>
        Effect.map(facts.all(factKey(owner, "")), (all) => all.map(({ key, value }) => [key, value] as const)),
      remove: (owner, key) => facts.remove(factKey(owner, key))
    }
  }
}

const removed = (values: KeyValueStore.KeyValueStore, thread: string, from: number, to: number) =>
  Effect.forEach(
    Array.from({ length: to - from }, (_, at) => from + at),
    (turn) => values.remove(turnKey(thread, turn)),
    { discard: true }
  )

/** A head that is not there is that of a thread that is being deleted. */
const KeptHead = Schema.Struct({
  version: Schema.Literal(1),
  thread: Schema.String,
  head: Schema.optionalKey(Memory.Head)
})

const KeptFact = Schema.Struct({ version: Schema.Literal(1), key: Schema.String, value: Schema.String })

const turnKey = (thread: string, turn: number): string => `thread.${Key.spelled(thread)}.${turn}`
const headKey = (thread: string): string => `thread.${Key.spelled(thread)}.head`
const factKey = (owner: string, key: string): string => `fact.${Key.spelled(owner)}.${Key.spelled(key)}`

const unreadable = (subject: string, problem: string): Memory.MemoryFailed =>
  new Memory.MemoryFailed({ reason: "unreadable", subject, problem })

// What was torn is no JSON any more: it ends before its braces do.
const parsed = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

const at = (key: string, number: number): string => `${key}.${number % 2 === 0 ? "a" : "b"}`

/** Values that change: each has two places, `.a` and `.b`, and the one with the higher number holds. */
const places = <A, I>(values: KeyValueStore.KeyValueStore, schema: Schema.Codec<A, I>) => {
  const Place = Schema.toCodecJson(Schema.Struct({ number: Schema.Int, value: schema }))
  const decode = Schema.decodeUnknownEffect(Place)
  const alone = Semaphore.makeUnsafe(1)
  const look = Effect.fnUntraced(function*(key: string) {
    const texts = [yield* values.get(`${key}.a`), yield* values.get(`${key}.b`)]
    let newest: typeof Place.Type | undefined
    let torn = 0
    for (const text of texts) {
      if (text === undefined) continue
      const json = yield* Effect.option(parsed(text))
      if (Option.isNone(json)) {
        torn++
        continue
      }
      const place = yield* Effect.mapError(
        decode(json.value),
        ({ message }) => unreadable(key, `it does not decode: ${message}`)
      )
      if (newest === undefined || place.number > newest.number) newest = place
    }
    // A write can tear one place, and the first one there is may be it.
    if (newest === undefined && torn === 2) return yield* unreadable(key, "both of its places are damaged")
    return newest
  })
  const get = (key: string) => Effect.map(look(key), (place) => place?.value)
  return {
    get,
    set: (key: string, value: A) =>
      alone.withPermit(Effect.uninterruptible(Effect.gen(function*() {
        const number = ((yield* look(key))?.number ?? -1) + 1
        yield* values.set(at(key, number), JSON.stringify(yield* Schema.encodeEffect(Place)({ number, value })))
      }))),
    /** The older place goes first: what holds goes last. */
    remove: (key: string) =>
      alone.withPermit(Effect.uninterruptible(Effect.gen(function*() {
        const number = (yield* look(key))?.number ?? 0
        yield* values.remove(at(key, number + 1))
        yield* values.remove(at(key, number))
      }))),
    /** Everything whose key begins so. */
    all: Effect.fnUntraced(function*(prefix: string) {
      const keys = (yield* values.keys).filter((key) => key.startsWith(prefix) && /\.[ab]$/.test(key))
      const found: Array<A> = []
      for (const key of new Set(keys.map((key) => key.slice(0, -2)))) {
        const value = yield* get(key)
        if (value !== undefined) found.push(value)
      }
      return found
    })
  }
}
