/**
 * How does effect's SQL reach the SQLite that Node has built in? By a client over `node:sqlite`, with no further
 * dependency.
 *
 * `node:sqlite` is synchronous: a statement holds the thread for as long as it runs, and while it waits for another process
 * that writes.
 *
 * @since 0.1.0
 */
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"

/**
 * Which database.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** A file, made where there is none, or `:memory:`. */
  readonly filename: string
  /** How long a statement waits for another process that writes. Default: 5 seconds. */
  readonly busyTimeout?: Duration.Input | undefined
}

/**
 * A client for one database, open until the scope closes. The file is kept in write-ahead mode, so that readers and a writer
 * do not wait for each other; transactions begin as writers (`BEGIN IMMEDIATE`), so that one never has to give up halfway.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  { busyTimeout = "5 seconds", filename }: Options
): Effect.fn.Return<SqlClient.SqlClient, SqlError.SqlError, Reactivity.Reactivity | Scope.Scope> {
  const database = yield* Effect.acquireRelease(
    attempt("open", () => new DatabaseSync(filename, { timeout: Duration.toMillis(busyTimeout) })),
    (database) => Effect.sync(() => database.close())
  )
  // Those who come at the same moment do not wait for each other here, whatever the timeout is.
  yield* Effect.retry(attempt("set the journal mode", () => database.exec("PRAGMA journal_mode = WAL")), {
    while: (error) => error.reason._tag === "LockTimeoutError",
    schedule: Schedule.spaced("20 millis"),
    times: 100
  })
  const prepared = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    if (prepared.size >= mostPrepared) prepared.clear()
    const statement = database.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
  const acquirers = SqlClient.makeSqliteAcquirers({
    connection: Effect.succeed(connection(prepare, (sql) => database.prepare(sql))),
    semaphore: Semaphore.makeUnsafe(1),
    isTransaction: () => database.isTransaction
  })
  return yield* SqlClient.make({
    ...acquirers,
    beginTransaction: "BEGIN IMMEDIATE",
    compiler: Statement.makeCompilerSqlite(),
    driver: "node-sqlite",
    spanAttributes: [["db.system.name", "sqlite"]]
  })
})

/**
 * The client as a layer.
 *
 * **Example** (A memory in a database)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import { Memory } from "toolfold/Memory"
 * import * as NodeSqlite from "toolfold/memory/NodeSqlite"
 * import * as Sql from "toolfold/memory/Sql"
 *
 * const memory = Sql.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" })))
 *
 * const program = Effect.flatMap(Memory, (memory) => memory.load("support/42"))
 * const thread = await Effect.runPromise(Effect.provide(program, memory))
 * thread.version // => 0
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

const mostPrepared = 200

const attempt = <A>(operation: string, body: () => A): Effect.Effect<A, SqlError.SqlError> =>
  Effect.try({
    try: body,
    catch: (cause) =>
      new SqlError.SqlError({
        reason: SqlError.classifySqliteError(numbered(cause), { message: `SQLite: cannot ${operation}`, operation })
      })
  })

// Node names the number of an error `errcode`; effect looks for `errno`.
const numbered = (cause: unknown): unknown =>
  cause instanceof Error && "errcode" in cause ? Object.assign(cause, { errno: cause.errcode }) : cause

const run = <A>(
  statement: (sql: string) => StatementSync,
  sql: string,
  parameters: ReadonlyArray<unknown>,
  read: (statement: StatementSync, parameters: ReadonlyArray<SQLInputValue>) => A
) =>
  Effect.withFiber<A, SqlError.SqlError>((fiber) =>
    attempt("execute a statement", () => {
      const ready = statement(sql)
      ready.setReadBigInts(Services.get(fiber.context, SqlClient.SafeIntegers))
      return read(ready, parameters.map(bound))
    })
  )

const connection = (
  prepare: (sql: string) => StatementSync,
  prepareOnce: (sql: string) => StatementSync
): SqlConnection.Connection => {
  const rows: SqlConnection.Connection["execute"] = (sql, parameters, transform) =>
    Effect.map(run(prepare, sql, parameters, all), (found) => transform === undefined ? found : transform(found))
  return {
    execute: rows,
    executeRaw: (sql, parameters) => run(prepare, sql, parameters, (statement, bound) => statement.run(...bound)),
    executeStream: (sql, parameters, transform) => Stream.fromIterableEffect(rows(sql, parameters, transform)),
    executeValues: (sql, parameters) => run(prepare, sql, parameters, values),
    executeValuesUnprepared: (sql, parameters) => run(prepareOnce, sql, parameters, values),
    executeUnprepared: (sql, parameters, transform) =>
      Effect.map(run(prepareOnce, sql, parameters, all), (found) => transform === undefined ? found : transform(found))
  }
}

const all = (statement: StatementSync, parameters: ReadonlyArray<SQLInputValue>) => {
  statement.setReturnArrays(false)
  return statement.all(...parameters)
}

const values = (statement: StatementSync, parameters: ReadonlyArray<SQLInputValue>) => {
  statement.setReturnArrays(true)
  // Whose types do not say that rows are arrays then.
  return statement.all(...parameters) as unknown as ReadonlyArray<ReadonlyArray<unknown>>
}

/** SQLite has no booleans, and Node none of its other values for what is missing. */
const bound = (value: unknown): SQLInputValue =>
  // Anything else Node refuses, with an error that says so.
  typeof value === "boolean" ? BigInt(value) : value === undefined ? null : value as SQLInputValue
