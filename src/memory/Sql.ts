/**
 * Where do threads rest that several processes write to? In SQLite or PostgreSQL, through effect's `SqlClient`.
 *
 * One schema serves both: `toolfold_threads` has the heads, `toolfold_turns` the entries, `toolfold_facts` the facts,
 * `toolfold_migrations` what was set up. Each change is one transaction that holds its threads, so of two writers the
 * second sees what the first has done. Inside a transaction of the application a change is part of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import * as Memory from "../Memory.ts"
import * as Database from "./internal/database.ts"

/**
 * A memory in the database of the `SqlClient` that it is provided with: `toolfold/memory/NodeSqlite` for SQLite, the
 * `PgClient` of `@effect/sql-pg` for PostgreSQL. Sets its tables up, and brings those of earlier releases up to date. It
 * cannot be built where the database is another one.
 *
 * **Example** (PostgreSQL)
 *
 * ```ts
 * import * as PgClient from "@effect/sql-pg/PgClient"
 * import * as Layer from "effect/Layer"
 * import * as Redacted from "effect/Redacted"
 * import * as Sql from "toolfold/memory/Sql"
 *
 * export const memory = Sql.layer.pipe(
 *   Layer.provide(PgClient.layer({ url: Redacted.make("postgres://localhost/app") }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<
  Memory.Memory,
  Migrator.MigrationError | SqlError.SqlError,
  SqlClient.SqlClient
> = Layer.effect(
  Memory.Memory,
  Effect.suspend(() =>
    Effect.map(
      Database.open("toolfold/memory/Sql", "toolfold_migrations", migrations),
      (database) => Memory.make(store(database))
    )
  )
)

/** Holds a thread, whether it is there or not, until the change ends. In SQLite whoever writes holds everything. */
const holding = (sql: SqlClient.SqlClient): (thread: string) => Effect.Effect<unknown, SqlError.SqlError> =>
  sql.onDialectOrElse({
    pg: () => (thread: string) => sql`SELECT pg_advisory_xact_lock(hashtextextended(${`toolfold ${thread}`}, 0))`,
    orElse: () => () => Effect.void
  })

const migrations = {
  "1_threads": Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      CREATE TABLE toolfold_threads (
        id TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        last TEXT NOT NULL,
        updated DOUBLE PRECISION NOT NULL,
        parent TEXT,
        forked INTEGER
      )`
    yield* sql`CREATE INDEX toolfold_threads_parent ON toolfold_threads (parent)`
    yield* sql`
      CREATE TABLE toolfold_turns (
        thread TEXT NOT NULL,
        turn INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (thread, turn)
      )`
    yield* sql`
      CREATE TABLE toolfold_facts (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (owner, name)
      )`
  })
}

interface Row {
  readonly id: string
  readonly version: number
  readonly turns: number
  readonly last: string
  readonly updated: number
  readonly parent: string | null
  readonly forked: number | null
}

const headOf = ({ forked, last, parent, turns, updated, version }: Row): Memory.Head => ({
  version,
  turns,
  last,
  updatedAt: updated,
  ...(parent === null || forked === null ? {} : { parent: { thread: parent, turns: forked } })
})

const store = ({ begin, sql }: Database.Database, hold = holding(sql)): Memory.Store => ({
  change: (threads, change) =>
    // Always in one order, so that two changes of two threads do not wait for each other.
    Effect.andThen(Effect.forEach(threads.toSorted(), hold, { discard: true }), change).pipe(
      sql.withTransaction,
      Effect.provideService(SqlClient.BeginTransaction, begin)
    ),
  // In one statement, so at one moment.
  read: (thread) =>
    Effect.map(
      sql<Row & { readonly entry: string | null }>`
        SELECT h.id, h.version, h.turns, h.last, h.updated, h.parent, h.forked, t.entry
        FROM toolfold_threads h LEFT JOIN toolfold_turns t ON t.thread = h.id
        WHERE h.id = ${thread} ORDER BY t.turn`,
      (rows) =>
        rows[0] === undefined
          ? undefined
          : { head: headOf(rows[0]), entries: rows.flatMap(({ entry }) => entry === null ? [] : [entry]) }
    ),
  heads: Effect.map(sql<Row>`SELECT * FROM toolfold_threads`, (rows) => rows.map((row) => [row.id, headOf(row)])),
  head: (thread) =>
    Effect.map(
      sql<Row>`SELECT * FROM toolfold_threads WHERE id = ${thread}`,
      ([row]) => row === undefined ? undefined : headOf(row)
    ),
  children: (thread) =>
    Effect.map(
      sql<{ readonly id: string }>`SELECT id FROM toolfold_threads WHERE parent = ${thread}`,
      (rows) => rows.map(({ id }) => id)
    ),
  write: (thread, turn, entry) =>
    sql`INSERT INTO toolfold_turns (thread, turn, entry) VALUES (${thread}, ${turn}, ${entry})`,
  keep: (id, { last, parent, turns, updatedAt, version }) =>
    sql`
      INSERT INTO toolfold_threads (id, version, turns, last, updated, parent, forked)
      VALUES (${id}, ${version}, ${turns}, ${last}, ${updatedAt}, ${parent?.thread ?? null}, ${parent?.turns ?? null})
      ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version, turns = EXCLUDED.turns, last = EXCLUDED.last,
        updated = EXCLUDED.updated`,
  copy: (from, to, turns) =>
    sql`
      INSERT INTO toolfold_turns (thread, turn, entry)
      SELECT ${to}, turn, entry FROM toolfold_turns WHERE thread = ${from} AND turn < ${turns}`,
  drop: (thread, from) => sql`DELETE FROM toolfold_turns WHERE thread = ${thread} AND turn >= ${from}`,
  remove: (thread) =>
    Effect.andThen(
      sql`DELETE FROM toolfold_turns WHERE thread = ${thread}`,
      sql`DELETE FROM toolfold_threads WHERE id = ${thread}`
    ),
  facts: {
    set: (owner, name, value) =>
      sql`
        INSERT INTO toolfold_facts (owner, name, value) VALUES (${owner}, ${name}, ${value})
        ON CONFLICT (owner, name) DO UPDATE SET value = EXCLUDED.value`,
    get: (owner, name) =>
      Effect.map(
        sql<{ readonly value: string }>`SELECT value FROM toolfold_facts WHERE owner = ${owner} AND name = ${name}`,
        ([row]) => row?.value
      ),
    all: (owner) =>
      Effect.map(
        sql<{ readonly name: string; readonly value: string }>`
          SELECT name, value FROM toolfold_facts WHERE owner = ${owner}`,
        (rows) => rows.map(({ name, value }) => [name, value])
      ),
    remove: (owner, name) => sql`DELETE FROM toolfold_facts WHERE owner = ${owner} AND name = ${name}`
  }
})
