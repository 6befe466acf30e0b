/**
 * Which databases are there, and how do our tables come into one? SQLite and PostgreSQL; by migrations, each set of them
 * with a table of its own that says which have run.
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"

/** A database with our tables. */
export interface Database {
  readonly sql: SqlClient.SqlClient
  /** How a change begins: SQLite as a writer, PostgreSQL so that it sees what was done while it waited. */
  readonly begin: string
}

/** Sets up what is missing. It dies where the database is another one; `door` is who says so. */
export const open = Effect.fnUntraced(function*(
  door: string,
  table: string,
  migrations: { readonly [name: string]: Effect.Effect<unknown, unknown, SqlClient.SqlClient> }
): Effect.fn.Return<Database, Migrator.MigrationError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const begin = sql.onDialectOrElse({
    sqlite: () => "BEGIN IMMEDIATE",
    pg: () => "BEGIN ISOLATION LEVEL READ COMMITTED",
    orElse: () => undefined
  })
  if (begin === undefined) {
    throw new Error(`${door}: the database must be SQLite or PostgreSQL; provide a SqlClient of one of them`)
  }
  yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table }).pipe(
    Effect.provideService(SqlClient.BeginTransaction, begin)
  )
  return { sql, begin }
})
