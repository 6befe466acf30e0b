/**
 * Where does a thread rest? Its turns, what its agent remembered after each, and facts; the service, not the store.
 *
 * A thread is a conversation with an id: a sequence of entries, one a finished turn. Entries are appended at the version
 * that the writer has seen, so of two writers one is first and the other is told (`ThreadConflict`): nothing is lost and
 * nothing interleaved. An entry is there whole or not at all. A thread that was never written to is one without entries.
 *
 * Laws, for every store:
 *
 * - what `load` gives after `append` is what was there, then the entry
 * - each append that was accepted adds exactly 1 to the version; a rollback that drops something adds 1 too
 * - the same append again, at the same version, changes nothing and gives the same version
 * - `load(to)` after `fork(from, to, at)` is the first `at` turns of `from`, and stays so whatever becomes of `from`
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Context from "./Context.ts"
import * as Explain from "./internal/explain.ts"
import * as Legal from "./internal/legal.ts"
import * as Change from "./memory/internal/change.ts"
import * as Usage from "./Usage.ts"

export { Head, type Parent, type Store, ThreadConflict, ThreadRefused } from "./memory/internal/change.ts"
export { type Shortened, summarize, type SummaryOptions } from "./memory/internal/summary.ts"
export { window, type WindowOptions } from "./memory/internal/window.ts"

/**
 * What one finished turn adds to a thread: its messages, what the agent remembers after it (`Context.encode`; absent where
 * that did not change), what it spent. `id` names the turn once and for all, so that an append whose answer was lost can
 * be sent again.
 *
 * @category models
 * @since 0.1.0
 */
export const Entry = Schema.Struct({
  id: Schema.String,
  messages: Schema.Array(Prompt.Message),
  context: Schema.optionalKey(Schema.Struct({
    version: Schema.Literal(1),
    slots: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown))
  })),
  usage: Usage.Usage
})

/**
 * @category models
 * @since 0.1.0
 */
export type Entry = typeof Entry.Type

/**
 * A thread as it is loaded. `version` is what the next append expects; `turns` is how many there are. `context` is what
 * the agent remembered at the end, for `Context.decode`; `usage` is the sum of all turns.
 *
 * @category models
 * @since 0.1.0
 */
export interface Thread {
  readonly id: string
  readonly version: number
  readonly turns: number
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly context: Context.Encoded
  readonly usage: Usage.Usage
  readonly parent?: Change.Parent
}

/**
 * A thread in a list. `updatedAt` is when it changed last, in milliseconds since 1970.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listed {
  readonly id: string
  readonly version: number
  readonly turns: number
  readonly updatedAt: number
  readonly parent?: Change.Parent
}

/**
 * A thread or fact could not be written or read. `not-storable`: it is not JSON, or a name is empty or not text;
 * `unreadable`: what the store has is damaged or of a newer form; `store`: the store failed, with its error as `cause`.
 *
 * @category errors
 * @since 0.1.0
 */
export class MemoryFailed extends Data.TaggedError("MemoryFailed")<{
  readonly reason: "not-storable" | "unreadable" | "store"
  readonly subject: string
  readonly problem: string
  readonly cause?: unknown
}> {
  override get message(): string {
    return `memory of ${Legal.shown(this.subject)}: ${this.problem}`
  }
}

/**
 * What a memory does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Everything that a thread has; a thread that is not there has nothing, at version 0. */
  readonly load: (thread: string) => Effect.Effect<Thread, MemoryFailed>
  /** Adds a turn at the version that was seen, and gives the next version. */
  readonly append: (
    thread: string,
    expected: number,
    entry: Entry
  ) => Effect.Effect<number, Change.ThreadConflict | MemoryFailed>
  /** Copies the first `at` turns (default: all) to a thread that is not there yet. The two share nothing afterwards. */
  readonly fork: (from: string, to: string, at?: number) => Effect.Effect<void, Change.ThreadRefused | MemoryFailed>
  /** Drops the turns after the first `turns`, and gives the version then. Facts stay, and so do forks. */
  readonly rollback: (thread: string, turns: number) => Effect.Effect<number, Change.ThreadRefused | MemoryFailed>
  /** Forgets a thread; one that is not there is forgotten already. Refused while forks of it are there. */
  readonly delete: (thread: string) => Effect.Effect<void, Change.ThreadRefused | MemoryFailed>
  /** All threads, by id. */
  readonly list: Effect.Effect<ReadonlyArray<Listed>, MemoryFailed>
  readonly fact: Facts
}

/**
 * What is known, apart from any thread: JSON values by key, of an owner that the application names (a user, say). The
 * last write of a key wins. Forks, rollbacks and deletions of threads do not touch them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Facts {
  readonly set: (owner: string, key: string, value: Schema.Json) => Effect.Effect<void, MemoryFailed>
  readonly get: (owner: string, key: string) => Effect.Effect<Schema.Json | undefined, MemoryFailed>
  readonly all: (owner: string) => Effect.Effect<{ readonly [key: string]: Schema.Json }, MemoryFailed>
  readonly remove: (owner: string, key: string) => Effect.Effect<void, MemoryFailed>
}

/**
 * Threads and facts. The layers are in `toolfold/memory`: in memory, over a `KeyValueStore`, in SQLite and PostgreSQL.
 *
 * **Example** (Two writers)
 *
 * ```ts run
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Effect from "effect/Effect"
 * import { Memory } from "toolfold/Memory"
 * import * as InMemory from "toolfold/memory/InMemory"
 * import * as Usage from "toolfold/Usage"
 *
 * const said = (id: string, content: string) => ({
 *   id,
 *   messages: [Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: content })] })],
 *   usage: Usage.empty
 * })
 *
 * const program = Effect.gen(function*() {
 *   const memory = yield* Memory
 *   const { version } = yield* memory.load("support/42")
 *   const first = yield* memory.append("support/42", version, said("a", "Hello"))
 *   const second = yield* Effect.flip(memory.append("support/42", version, said("b", "Hi")))
 *   return [first, second._tag] as const
 * })
 *
 * await Effect.runPromise(Effect.provide(program, InMemory.layer)) // => [1, "ThreadConflict"]
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Memory extends Services.Service<Memory, Service>()("toolfold/Memory") {}

const ThreadTypeId = "~toolfold/Memory/ThreadRef"

/**
 * A thread of the memory around, for a run to start from and append to. `E` is how that may fail, `R` what it needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface ThreadRef<out E = Change.ThreadConflict | MemoryFailed, out R = Memory> {
  readonly [ThreadTypeId]: typeof ThreadTypeId
  readonly id: string
  readonly load: Effect.Effect<Thread, E, R>
  readonly append: (expected: number, entry: Entry) => Effect.Effect<number, E, R>
}

/**
 * The thread of this id. A run that is given it starts from its messages and what the agent remembered, and appends turn by
 * turn, also when it is cancelled or fails.
 *
 * **Example** (Two runs of one conversation)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as Memory from "toolfold/Memory"
 * import * as InMemory from "toolfold/memory/InMemory"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const bot = AgentLoop.make("bot")
 * const memory = Memory.thread("support/42")
 *
 * const program = Effect.gen(function*() {
 *   yield* AgentLoop.run(bot, { prompt: "I am Kim", memory })
 *   return yield* AgentLoop.run(bot, { prompt: "Who am I?", memory })
 * }).pipe(Effect.provide([InMemory.layer, ToolRegistry.layer(), ScriptedModel.layer("Hello Kim", "You are Kim")]))
 *
 * const result = await Effect.runPromise(program)
 * result.messages.length // => 4
 * ```
 *
 * @category threads
 * @since 0.1.0
 */
export const thread = (id: string): ThreadRef => ({
  [ThreadTypeId]: ThreadTypeId,
  id,
  load: Effect.flatMap(Memory, (memory) => memory.load(id)),
  append: (expected, entry) => Effect.flatMap(Memory, (memory) => memory.append(id, expected, entry))
})

/**
 * The memory over a store.
 *
 * @category stores
 * @since 0.1.0
 */
export const make = (store: Change.Store): Service => ({
  load: (thread) => inside(thread, Effect.flatMap(store.read(thread), (kept) => loaded(thread, kept))),
  append: (thread, expected, entry) =>
    Effect.flatMap(
      toText(Stored, thread, { version: 1, ...entry }),
      (data) =>
        changing(store, [thread], (updatedAt) =>
          Change.append(store, thread, expected, { id: entry.id, data, updatedAt }))
    ),
  fork: (from, to, at) => changing(store, [to, from], (updatedAt) => Change.fork(store, from, to, at, updatedAt)),
  rollback: (thread, turns) =>
    changing(store, [thread], (updatedAt) => Change.rollback(store, thread, turns, updatedAt)),
  delete: (thread) => changing(store, [thread], () => Change.forget(store, thread)),
  list: inside(
    "every thread",
    Effect.map(store.heads, (heads) =>
      heads
        .map(([id, { last: _, ...head }]): Listed => ({ id, ...head }))
        .toSorted((one, other) => one.id < other.id ? -1 : 1))
  ),
  fact: {
    set: (owner, key, value) =>
      inside(
        owner,
        Effect.flatMap(toText(Fact, owner, { version: 1, value }), (text) => store.facts.set(owner, key, text)),
        key
      ),
    get: (owner, key) =>
      inside(
        owner,
        Effect.flatMap(
          store.facts.get(owner, key),
          (text) => text === undefined ? Effect.undefined : factOf(owner, key, text)
        ),
        key
      ),
    all: (owner) =>
      inside(
        owner,
        Effect.flatMap(store.facts.all(owner), (facts) =>
          Effect.map(
            Effect.forEach(facts, ([key, text]) =>
              Effect.map(factOf(owner, key, text), (value) => [key, value] as const)),
            (entries) =>
              Object.fromEntries(entries)
          ))
      ),
    remove: (owner, key) => inside(owner, Effect.asVoid(store.facts.remove(owner, key)), key)
  }
})

/** What a store fails with is a failure of the memory; a name that stores do not tell apart from others is refused. */
const inside = <A>(
  subject: string,
  effect: Effect.Effect<A, unknown>,
  other = subject
): Effect.Effect<A, MemoryFailed> => {
  const illegal = [subject, other].find((text) => text === "" || !text.isWellFormed() || text.includes("\0"))
  if (illegal !== undefined) {
    const problem = `a name must be text that is not empty, without half characters and NUL, got ${
      Legal.shown(illegal)
    }`
    return Effect.fail(new MemoryFailed({ reason: "not-storable", subject, problem }))
  }
  return Effect.mapError(effect, (cause) =>
    cause instanceof MemoryFailed
      ? cause
      : new MemoryFailed({ reason: "store", subject, problem: "the store failed; its error is the cause", cause }))
}

/** A change decides before it writes, so what it refuses is a value, and there is nothing to take back. */
const changing = <A, E>(
  store: Change.Store,
  threads: readonly [string, string?],
  change: (updatedAt: number) => Effect.Effect<Result.Result<A, E>, unknown>
): Effect.Effect<A, E | MemoryFailed> =>
  Effect.flatMap(
    inside(
      threads[0],
      Effect.flatMap(Clock.currentTimeMillis, (now) => store.change(threads.filter(isThere), change(now))),
      threads[1]
    ),
    Effect.fromResult
  )

const isThere = (thread: string | undefined): thread is string => thread !== undefined

const loaded = Effect.fnUntraced(
  function*(thread: string, kept: Effect.Success<ReturnType<Change.Store["read"]>>) {
    const messages: Array<Prompt.Message> = []
    let context: Context.Encoded = { version: 1, slots: {} }
    let usage = Usage.empty
    for (const [turn, text] of (kept?.entries ?? []).entries()) {
      const entry = yield* fromText(Stored, thread, text, `turn ${turn}`)
      for (const message of entry.messages) messages.push(message)
      if (entry.context !== undefined) context = entry.context
      usage = Usage.add(usage, entry.usage)
    }
    const { parent, turns = 0, version = 0 } = kept?.head ?? {}
    const found = kept?.entries.length ?? 0
    if (found !== turns) return yield* unreadable(thread, `it has ${found} entries and should have ${turns}`)
    const self: Thread = { id: thread, version, turns, messages, context, usage }
    return parent === undefined ? self : { ...self, parent }
  }
)

const Stored = Schema.fromJsonString(
  Schema.toCodecJson(Entry.mapFields((fields) => ({ version: Schema.Literal(1), ...fields })))
)

const Fact = Schema.fromJsonString(
  Schema.toCodecJson(Schema.Struct({ version: Schema.Literal(1), value: Schema.Json }))
)

const factOf = (owner: string, key: string, text: string): Effect.Effect<Schema.Json, MemoryFailed> =>
  Effect.map(fromText(Fact, owner, text, `fact ${Legal.shown(key)}`), ({ value }) => value)

const toText = <A>(schema: Schema.Codec<A, string>, subject: string, value: A): Effect.Effect<string, MemoryFailed> =>
  Effect.mapError(
    Schema.encodeEffect(schema)(value),
    ({ issue }) =>
      new MemoryFailed({ reason: "not-storable", subject, problem: `not JSON: ${Explain.describe(issue)}` })
  )

const fromText = <A>(
  schema: Schema.Codec<A, string>,
  subject: string,
  text: string,
  what: string
): Effect.Effect<A, MemoryFailed> =>
  Effect.catchTag(
    Schema.decodeEffect(schema)(text),
    "SchemaError",
    ({ issue }) => unreadable(subject, `${what} does not decode: ${Explain.describe(issue)}`)
  )

const unreadable = (subject: string, problem: string): Effect.Effect<never, MemoryFailed> =>
  Effect.fail(new MemoryFailed({ reason: "unreadable", subject, problem }))
