// A process that claims pauses, one after the other: says `ready`, waits to be told to begin, and prints the ids that it got.
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as SqlPauses from "toolfold/memory/SqlPauses"
import { PauseStore } from "toolfold/PauseStore"

const [kind = "", where = "", ...ids] = process.argv.slice(2)

const stores: { readonly [kind: string]: () => Layer.Layer<never, unknown> } = {
  sqlite: () => SqlPauses.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: where, busyTimeout: "20 seconds" }))),
  pg: () =>
    SqlPauses.layer.pipe(Layer.provide(PgClient.layer({
      url: Redacted.make(process.env.PG_URL ?? ""),
      startupParameters: { search_path: where }
    })))
}

const told = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
  process.stdout.write("ready\n")
})

const program = Effect.gen(function*() {
  const store = yield* PauseStore
  yield* told
  for (const id of ids) if (yield* store.claim(id)) process.stdout.write(`${id}\n`)
})

await Effect.runPromise(Effect.provide(program, stores[kind]?.() ?? Layer.empty))
