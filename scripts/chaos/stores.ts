// Where does a thread rest whose agent is killed? In a SQLite file, or in a schema of its own of a PostgreSQL database.
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Memory } from "toolfold/Memory"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as Sql from "toolfold/memory/Sql"

export type Kind = "sqlite" | "pg"

const postgres = process.env.PG_URL ?? "postgres://postgres@127.0.0.1:5432/test"

/** Whether there is a PostgreSQL. */
export const hasPostgres = (): Promise<boolean> =>
  new Promise((done) => {
    const url = new URL(postgres)
    const socket = connect(Number(url.port || 5432), url.hostname)
    socket.on("error", () => done(false)).on("connect", () => {
      socket.end()
      done(true)
    })
  })

const clientOf = (schema: string) =>
  PgClient.layer({
    url: Redacted.make(postgres),
    applicationName: schema,
    startupParameters: { search_path: schema }
  })

/** The memory of a store. */
export const memory = (kind: Kind, where: string): Layer.Layer<Memory, unknown> =>
  kind === "sqlite"
    ? Sql.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: where })))
    : Sql.layer.pipe(Layer.provide(clientOf(where)))

const onServer = (name: string, program: Effect.Effect<void, unknown, SqlClient.SqlClient>): Promise<void> =>
  Effect.runPromise(Effect.provide(
    program,
    PgClient.layer({ url: Redacted.make(postgres), applicationName: `${name}_beside` })
  ))

export interface Place {
  readonly where: string
  /** Waits until nobody works for a process that died: a server ends what it had begun for it. */
  readonly quiet: () => Promise<void>
  readonly remove: () => Promise<void>
}

let places = 0

/** A new place for threads. */
export const open = async (kind: Kind): Promise<Place> => {
  if (kind === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "toolfold-chaos-"))
    return {
      where: join(folder, "threads.db"),
      quiet: () => Promise.resolve(),
      remove: async () => rmSync(folder, { recursive: true, force: true })
    }
  }
  const where = `toolfold_chaos_${process.pid}_${places++}`
  await onServer(
    where,
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`CREATE SCHEMA ${sql(where)}`).pipe(Effect.asVoid)
  )
  return {
    where,
    quiet: () =>
      onServer(
        where,
        Effect.gen(function*() {
          const sql = yield* SqlClient.SqlClient
          for (let working = 1; working > 0;) {
            working = (yield* sql`SELECT pid FROM pg_stat_activity WHERE application_name = ${where}`).length
          }
        })
      ),
    remove: () =>
      onServer(
        where,
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DROP SCHEMA ${sql(where)} CASCADE`).pipe(Effect.asVoid)
      )
  }
}
