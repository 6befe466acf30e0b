// Effect's SQL over the SQLite that Node has built in.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"

const memory = NodeSqlite.layer({ filename: ":memory:" })

const table = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, v)`
  return sql
})

describe("the SQLite of Node", () => {
  it.effect("keeps what it is given, and gives it in every form", () =>
    Effect.gen(function*() {
      const sql = yield* table
      for (const value of ["ü\u{1F600}", 1.5, 2n ** 60n, true, null, undefined, new Uint8Array([0, 255])]) {
        yield* sql`INSERT INTO t (v) VALUES (${value})`
      }
      const rows = sql<{ readonly v: unknown }>`SELECT v FROM t WHERE v IS NULL OR typeof(v) <> 'integer' ORDER BY id`
      const expected = ["ü\u{1F600}", 1.5, null, null, new Uint8Array([0, 255])]
      assert.deepStrictEqual((yield* rows).map(({ v }) => v), expected)
      assert.deepStrictEqual(yield* rows.values, expected.map((v) => [v]))
      assert.deepStrictEqual((yield* rows.unprepared).map(({ v }) => v), expected)
      assert.deepStrictEqual((yield* Stream.runCollect(rows.stream)).map(({ v }) => v), expected)
      assert.deepStrictEqual((yield* rows).map(({ v }) => v), expected)
      assert.deepStrictEqual(
        (yield* Effect.provideService(
          sql<{ readonly v: unknown }>`SELECT v FROM t WHERE typeof(v) = 'integer' ORDER BY id`,
          SqlClient.SafeIntegers,
          true
        )).map(({ v }) => v),
        [2n ** 60n, 1n]
      )
      const { changes } = (yield* sql`DELETE FROM t`.raw) as { readonly changes: number }
      assert.strictEqual(changes, 7)
    }).pipe(Effect.provide(memory)))

  it.effect("takes a transaction back when it fails or is interrupted, and one within it alone", () =>
    Effect.gen(function*() {
      const sql = yield* table
      const put = (v: string) => sql`INSERT INTO t (v) VALUES (${v})`
      yield* Effect.flip(sql.withTransaction(Effect.andThen(put("failed"), Effect.fail("no"))))
      const fiber = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(put("interrupted"), Effect.never)), {
        startImmediately: true
      })
      yield* Fiber.interrupt(fiber)
      yield* sql.withTransaction(Effect.gen(function*() {
        yield* put("outer")
        yield* Effect.flip(sql.withTransaction(Effect.andThen(put("inner"), Effect.fail("no"))))
      }))
      assert.deepStrictEqual(yield* sql`SELECT v FROM t`.values, [["outer"]])
    }).pipe(Effect.provide(memory)))

  it.live("says of an error what it is", () => {
    const folder = mkdtempSync(join(tmpdir(), "toolfold-sqlite-"))
    const filename = join(folder, "db")
    return Effect.gen(function*() {
      const sql = yield* table
      yield* sql`INSERT INTO t (id) VALUES (1)`
      const reason = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.map(
          Effect.flip(effect),
          (error) => (error as { readonly reason: { readonly _tag: string } }).reason._tag
        )
      const locked = Effect.scoped(
        Effect.provide(
          Effect.flatMap(SqlClient.SqlClient, (other) => other`INSERT INTO t (id) VALUES (2)`),
          NodeSqlite.layer({ filename, busyTimeout: "10 millis" })
        )
      )
      assert.deepStrictEqual([
        yield* reason(sql`INSERT INTO t (id) VALUES (1)`),
        yield* reason(sql`SELECT * FROM gone`),
        yield* reason(sql.withTransaction(Effect.andThen(sql`INSERT INTO t (id) VALUES (2)`, locked))),
        yield* reason(Effect.provide(SqlClient.SqlClient, NodeSqlite.layer({ filename: join(folder, "no", "db") })))
      ], ["ConstraintError", "UnknownError", "LockTimeoutError", "ConnectionError"])
    }).pipe(
      Effect.provide(NodeSqlite.layer({ filename })),
      Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true })))
    )
  })
})
