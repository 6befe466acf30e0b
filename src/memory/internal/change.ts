/**
 * What may become of a thread, and what does a store have to do for it? Each change decides before it writes.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Legal from "../../internal/legal.ts"

/**
 * The turn of another thread that a thread was forked at.
 *
 * @category models
 * @since 0.1.0
 */
export interface Parent {
  readonly thread: string
  readonly turns: number
}

/**
 * Another writer was first: the thread is no longer at the version that an append expected. Nothing was written. Load the
 * thread again, and take the turn again on what is there now.
 *
 * @category errors
 * @since 0.1.0
 */
export class ThreadConflict extends Data.TaggedError("ThreadConflict")<{
  readonly thread: string
  readonly expected: number
  readonly actual: number
}> {
  override get message(): string {
    return `thread ${
      Legal.shown(this.thread)
    } is at version ${this.actual}, not at ${this.expected}: another writer was ` +
      "first; load the thread and take the turn again"
  }
}

/**
 * A thread cannot be forked, rolled back or deleted as it was asked. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ThreadRefused extends Data.TaggedError("ThreadRefused")<{
  readonly thread: string
  readonly reason: "empty-source" | "out-of-range" | "target-exists" | "has-children"
  readonly problem: string
}> {
  override get message(): string {
    return `thread ${Legal.shown(this.thread)}: ${this.problem}`
  }
}

/**
 * What a store keeps of a thread beside its entries. `last` is the id of the entry that was appended last, empty after a
 * rollback.
 *
 * @category stores
 * @since 0.1.0
 */
export const Head = Schema.Struct({
  version: Schema.Int,
  turns: Schema.Int,
  last: Schema.String,
  updatedAt: Schema.Finite,
  parent: Schema.optionalKey(Schema.Struct({ thread: Schema.String, turns: Schema.Int }))
})

/**
 * @category stores
 * @since 0.1.0
 */
export type Head = typeof Head.Type

/**
 * What a store has to do; `make` does the rest. Entries and facts are text to it. Whatever it fails with becomes the
 * cause of a `MemoryFailed`.
 *
 * The order in which a change writes (turns, then the head; the head, then what falls away) leaves a thread whole wherever
 * it breaks off, as long as each write is whole itself: what lies behind the turns that the head counts is not there.
 *
 * @category stores
 * @since 0.1.0
 */
export interface Store {
  /** Runs a change of these threads. Meanwhile nobody else changes them; where it can, the store takes it back as a whole. */
  readonly change: <A>(threads: ReadonlyArray<string>, change: Effect.Effect<A, unknown>) => Effect.Effect<A, unknown>
  /** A thread at one moment: its head and, in order, its entries. */
  readonly read: (
    thread: string
  ) => Effect.Effect<{ readonly head: Head; readonly entries: ReadonlyArray<string> } | undefined, unknown>
  /** Every thread's head, in any order. */
  readonly heads: Effect.Effect<ReadonlyArray<readonly [thread: string, head: Head]>, unknown>
  /** Within a change: the head of a thread. */
  readonly head: (thread: string) => Effect.Effect<Head | undefined, unknown>
  /** Within a change: the ids of its forks. */
  readonly children: (thread: string) => Effect.Effect<ReadonlyArray<string>, unknown>
  /** Within a change: puts the entry of a turn, over one that a head no longer counts. */
  readonly write: (thread: string, turn: number, entry: string) => Effect.Effect<unknown, unknown>
  /** Within a change: puts the head. */
  readonly keep: (thread: string, head: Head) => Effect.Effect<unknown, unknown>
  /** Within a change: copies the first entries of a thread to another. */
  readonly copy: (from: string, to: string, turns: number) => Effect.Effect<unknown, unknown>
  /** Within a change: drops the entries from one turn to before another. */
  readonly drop: (thread: string, from: number, to: number) => Effect.Effect<unknown, unknown>
  /** Within a change: drops head and entries. */
  readonly remove: (thread: string, head: Head) => Effect.Effect<unknown, unknown>
  readonly facts: {
    readonly set: (owner: string, key: string, value: string) => Effect.Effect<unknown, unknown>
    readonly get: (owner: string, key: string) => Effect.Effect<string | undefined, unknown>
    readonly all: (owner: string) => Effect.Effect<ReadonlyArray<readonly [key: string, value: string]>, unknown>
    readonly remove: (owner: string, key: string) => Effect.Effect<unknown, unknown>
  }
}

/** Adds an entry where the thread is at the version that was expected, or has this very entry there already. */
export const append = Effect.fnUntraced(
  function*(
    store: Store,
    thread: string,
    expected: number,
    { data, id, updatedAt }: { readonly id: string; readonly data: string; readonly updatedAt: number }
  ) {
    const head = yield* store.head(thread)
    const actual = head?.version ?? 0
    if (head !== undefined && actual === expected + 1 && head.last === id) return Result.succeed(actual)
    if (actual !== expected) return Result.fail(new ThreadConflict({ thread, expected, actual }))
    const turns = head?.turns ?? 0
    yield* store.write(thread, turns, data)
    yield* store.keep(thread, { ...head, version: actual + 1, turns: turns + 1, last: id, updatedAt })
    return Result.succeed(actual + 1)
  }
)

/** Copies the beginning of a thread to a free name. */
export const fork = Effect.fnUntraced(
  function*(store: Store, from: string, to: string, at: number | undefined, updatedAt: number) {
    const source = yield* store.head(from)
    if (source === undefined || source.turns === 0) {
      return refused(from, "empty-source", "there is nothing to fork; fork it when it has a turn")
    }
    const turns = at ?? source.turns
    if (!Number.isSafeInteger(turns) || turns < 1 || turns > source.turns) {
      return refused(from, "out-of-range", `it has turns 1 to ${source.turns} to fork at, not ${Legal.shown(turns)}`)
    }
    if ((yield* store.head(to)) !== undefined) {
      return refused(to, "target-exists", "it is there already; fork to a name that is free")
    }
    yield* store.copy(from, to, turns)
    yield* store.keep(to, { version: turns, turns, last: "", updatedAt, parent: { thread: from, turns } })
    return Result.void
  }
)

/** Drops the end of a thread. */
export const rollback = Effect.fnUntraced(function*(store: Store, thread: string, turns: number, updatedAt: number) {
  const head = yield* store.head(thread)
  const most = head?.turns ?? 0
  if (!Number.isSafeInteger(turns) || turns < 0 || turns > most) {
    return refused(thread, "out-of-range", `it has ${most} turns to keep, so it cannot keep ${Legal.shown(turns)}`)
  }
  if (head === undefined || turns === most) return Result.succeed(head?.version ?? 0)
  yield* store.keep(thread, { ...head, version: head.version + 1, turns, last: "", updatedAt })
  yield* store.drop(thread, turns, most)
  return Result.succeed(head.version + 1)
})

/** Drops a thread that has no forks. */
export const forget = Effect.fnUntraced(function*(store: Store, thread: string) {
  const head = yield* store.head(thread)
  if (head === undefined) return Result.void
  const children = yield* store.children(thread)
  if (children.length > 0) {
    const forks = children.toSorted().map(Legal.shown).join(", ")
    return refused(thread, "has-children", `it was forked to ${forks}; delete those first`)
  }
  yield* store.remove(thread, head)
  return Result.void
})

const refused = (
  thread: string,
  reason: ThreadRefused["reason"],
  problem: string
): Result.Result<never, ThreadRefused> => Result.fail(new ThreadRefused({ thread, reason, problem }))
