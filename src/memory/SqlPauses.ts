/**
 * Where do pauses rest that another process resumes? In SQLite or PostgreSQL, through effect's `SqlClient`.
 *
 * One schema serves both: a row of `toolfold_pauses` is a pause, `toolfold_pause_migrations` says what was set up. A pause is
 * claimed by one statement, so of processes that claim it at one moment one gets it. Its row stays, with when it was
 * `claimed`: it is what keeps the pause from being given away again. `waiting` and `state` stay too, for whoever must find
 * out what became of a run whose process died: where nothing of it ran, `claimed` set to null gives the pause away again.
 * Set the two to null when nobody needs them; the row must stay.
 *
 * Inside a transaction of the application a claim is part of it, so resume outside of one: what is rolled back can be
 * claimed again, and its tools have run.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import * as PauseStore from "../PauseStore.ts"
import * as Database from "./internal/database.ts"
import * as Pauses from "./internal/pauses.ts"

/**
 * The store of pauses in the database of the `SqlClient` that it is provided with: `toolfold/memory/NodeSqlite` for SQLite,
 * the `PgClient` of `@effect/sql-pg` for PostgreSQL. Sets its table up, beside those of `toolfold/memory/Sql` if they are
 * there. It cannot be built where the database is another one.
 *
 * **Example** (What waits, in a database)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as Schema from "effect/Schema"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as NodeSqlite from "toolfold/memory/NodeSqlite"
 * import * as SqlPauses from "toolfold/memory/SqlPauses"
 * import { PauseStore } from "toolfold/PauseStore"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const pay = Tool.make("pay", {
 *   input: { amount: Schema.Finite },
 *   sensitive: true,
 *   handler: ({ amount }) => Effect.succeed(`paid ${amount}`)
 * })
 *
 * const program = Effect.gen(function*() {
 *   yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "Pay 90" })
 *   const store = yield* PauseStore
 *   return yield* store.list
 * }).pipe(
 *   Effect.provide(ToolRegistry.layer(pay)),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("pay", { amount: 90 })])),
 *   Effect.provide(SqlPauses.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: ":memory:" }))))
 * )
 *
 * const waiting = await Effect.runPromise(program)
 * waiting.map(({ agent, pending }) => [agent, pending[0]?.input]) // => [["bot", { amount: 90 }]]
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<
  never,
  Migrator.MigrationError | SqlError.SqlError,
  SqlClient.SqlClient
> = Layer.effect(
  PauseStore.PauseStore,
  Effect.suspend(() =>
    Effect.map(
      Database.open("toolfold/memory/SqlPauses", "toolfold_pause_migrations", migrations),
      ({ sql }) => store(sql)
    )
  )
)

const migrations = {
  "1_pauses": Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      CREATE TABLE toolfold_pauses (
        id TEXT NOT NULL PRIMARY KEY,
        kept DOUBLE PRECISION,
        waiting TEXT,
        state TEXT,
        claimed DOUBLE PRECISION
      )`
    yield* sql`CREATE INDEX toolfold_pauses_kept ON toolfold_pauses (kept, id) WHERE claimed IS NULL`
  })
}

const Waiting = Pauses.text(Pauses.Waiting)

const store = (sql: SqlClient.SqlClient): PauseStore.PauseStore => {
  const now = Pauses.ticking()
  return {
    put: (waiting, state) =>
      Pauses.inside(
        Effect.gen(function*() {
          const { id } = waiting
          const shown = yield* Pauses.encode(Waiting, id, { version: 1, ...waiting })
          const text = yield* Pauses.stateText(id, state)
          // What was given away does not wait again.
          yield* sql`
            INSERT INTO toolfold_pauses (id, kept, waiting, state) VALUES (${id}, ${yield* now}, ${shown}, ${text})
            ON CONFLICT (id) DO UPDATE SET waiting = EXCLUDED.waiting, state = EXCLUDED.state
            WHERE toolfold_pauses.claimed IS NULL`
        }),
        waiting.id
      ),
    claim: (id) =>
      Pauses.inside(
        // Whoever does not hear the answer has claimed it all the same.
        Effect.uninterruptible(Effect.flatMap(now, (claimed) =>
          Effect.map(
            sql<{ readonly id: string }>`
              INSERT INTO toolfold_pauses (id, claimed) VALUES (${id}, ${claimed})
              ON CONFLICT (id) DO UPDATE SET claimed = EXCLUDED.claimed WHERE toolfold_pauses.claimed IS NULL
              RETURNING id`,
            (rows) => rows.length === 1
          ))),
        id
      ),
    get: (id) =>
      Pauses.inside(
        Effect.flatMap(
          sql<{ readonly state: string }>`SELECT state FROM toolfold_pauses WHERE id = ${id} AND claimed IS NULL`,
          ([row]) => row === undefined ? Effect.undefined : Pauses.stateOf(id, row.state)
        ),
        id
      ),
    list: Pauses.inside(Effect.flatMap(
      sql<{ readonly id: string; readonly waiting: string }>`
        SELECT id, waiting FROM toolfold_pauses WHERE claimed IS NULL ORDER BY kept, id`,
      (rows) =>
        Effect.forEach(
          rows,
          ({ id, waiting }) => Effect.map(Pauses.decode(Waiting, id, waiting), ({ version: _, ...waiting }) => waiting)
        )
    ))
  }
}
