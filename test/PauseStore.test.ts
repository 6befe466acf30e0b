// Whatever store a pause rests in: what waits is there, whole, the oldest first, and it is given away once.
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AgentLoop from "toolfold/AgentLoop"
import { Memory } from "toolfold/Memory"
import * as KeyValuePauses from "toolfold/memory/KeyValuePauses"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as Sql from "toolfold/memory/Sql"
import * as SqlPauses from "toolfold/memory/SqlPauses"
import * as Pause from "toolfold/Pause"
import * as PauseStore from "toolfold/PauseStore"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

const postgres = process.env.PG_URL ?? "postgres://postgres@127.0.0.1:5432/test"
process.env.PG_URL = postgres

const answers = (url: URL) =>
  new Promise<boolean>((done) => {
    const socket = connect(Number(url.port || 5432), url.hostname)
    socket.on("connect", () => done(true)).on("error", () => done(false))
    socket.on("connect", () => socket.end())
  })
const hasPostgres = await answers(new URL(postgres))

const base = mkdtempSync(join(tmpdir(), "toolfold-pauses-"))
let places = 0
const place = () => join(base, String(places++))

const files = (folder: string) =>
  KeyValuePauses.layer.pipe(Layer.provide(KeyValueStore.layerFileSystem(folder)), Layer.provide(NodeServices.layer))
const sqlite = (filename: string) => SqlPauses.layer.pipe(Layer.provide(NodeSqlite.layer({ filename })))

// A schema of its own for every test, in the database of the tests.
const schemas = `toolfold_pauses_${process.pid}`
const pg = (schema: string) =>
  PgClient.layer({ url: Redacted.make(postgres), startupParameters: { search_path: schema } })
const inSchema = (schema: string) =>
  Layer.effectDiscard(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`CREATE SCHEMA ${sql(schema)}`)).pipe(
    Layer.provideMerge(pg(schema))
  )
const freshSchema = () => `${schemas}_${places++}`

const overValues = KeyValuePauses.layer.pipe(Layer.provide(KeyValueStore.layerMemory))

/** Those that outlive the program. */
const resting: ReadonlyArray<readonly [name: string, layer: () => Layer.Layer<never, unknown>, isThere: boolean]> = [
  ["over a key-value store", () => overValues, true],
  ["over files", () => files(place()), true],
  ["in SQLite", () => sqlite(":memory:"), true],
  ["in a SQLite file", () => sqlite(place()), true],
  ["in PostgreSQL", () => SqlPauses.layer.pipe(Layer.provide(inSchema(freshSchema()))), hasPostgres]
]

afterAll(async () => {
  rmSync(base, { recursive: true, force: true })
  if (!hasPostgres) return
  const drop = Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const found = yield* sql<{ readonly name: string }>`
      SELECT nspname AS name FROM pg_namespace WHERE starts_with(nspname, ${schemas})`
    for (const { name } of found) yield* sql`DROP SCHEMA ${sql(name)} CASCADE`
  })
  await Effect.runPromise(Effect.provide(drop, pg("public")))
})

const waiting = (id: string, input: unknown = { amount: 90 }): PauseStore.Waiting => ({
  id,
  agent: "bot",
  runId: "run",
  reason: "approval",
  pending: [{ id: "call_1", name: "pay", input, agent: "bot", waitsFor: "approval", reason: "a payment", seal: "s" }]
})

const tests = (
  stores: typeof resting,
  bodies: { readonly [title: string]: Effect.Effect<void, unknown> }
) => {
  for (const [name, layer, isThere] of stores) {
    describe(`a pause ${name}`, () => {
      for (const [title, body] of Object.entries(bodies)) {
        it.live.skipIf(!isThere)(title, () => Effect.provide(body, layer()))
      }
    })
  }
}

tests([["in memory", () => PauseStore.layerMemory, true], ...resting], {
  "is there as it was put, whatever it holds, the oldest first": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    const odd = ["\u0000 ü \u{1F600}", { __proto__: null, "": [null, 1.5, true], "a.b": "\\" }]
    const put = ["z", "a", "A", "a.b/ü", "m"].map((id) => [waiting(id, odd), { version: 1, id, odd }] as const)
    for (const [shown, state] of put) yield* store.put(shown, state)
    assert.deepStrictEqual(yield* store.list, put.map(([shown]) => shown))
    for (const [{ id }, state] of put) assert.deepStrictEqual(yield* store.get(id), state)
    assert.deepStrictEqual([yield* store.get("b"), yield* store.get("a.b")], [undefined, undefined])
  }),

  "is given away once, and then waits no more": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    yield* store.put(waiting("a"), 1)
    yield* store.put(waiting("b"), 2)
    const claims = yield* Effect.all([store.claim("a"), store.claim("a"), store.claim("A"), store.claim("a")])
    assert.deepStrictEqual(claims, [true, false, true, false])
    assert.deepStrictEqual([yield* store.get("a"), yield* store.list], [undefined, [waiting("b")]])
  }),

  "is given to one of many who ask at one moment": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    yield* store.put(waiting("a"), 1)
    const claims = yield* Effect.all(Array.from({ length: 20 }, () => store.claim("a")), { concurrency: "unbounded" })
    assert.deepStrictEqual(claims.toSorted(), [...Array.from({ length: 19 }, () => false), true])
  }),

  "is given away once though it was never put": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    assert.deepStrictEqual([yield* store.claim("kept elsewhere"), yield* store.claim("kept elsewhere")], [true, false])
    assert.deepStrictEqual(yield* store.list, [])
  }),

  "keeps its place when it is put again, with what it has now": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    for (const id of ["a", "b", "a"]) yield* store.put(waiting(id, id), [id])
    yield* store.put(waiting("a", "new"), ["new"])
    assert.deepStrictEqual(yield* store.list, [waiting("a", "new"), waiting("b", "b")])
    assert.deepStrictEqual(yield* store.get("a"), ["new"])
  })
})

tests(resting, {
  "does not wait again when it is put after it was given away": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    yield* store.put(waiting("a"), 1)
    yield* store.claim("a")
    yield* store.put(waiting("a"), 1)
    assert.deepStrictEqual([yield* store.list, yield* store.get("a"), yield* store.claim("a")], [[], undefined, false])
  }),

  "must have an id that every store can tell apart": Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    for (const [id, shown] of [["", '""'], ["a\0", '"a\\u0000"'], ["\uD800", '"\uFFFD"']] as const) {
      for (const asked of [store.put(waiting(id), 1), store.claim(id), store.get(id)]) {
        assert.strictEqual(
          (yield* Effect.flip(Effect.asVoid(asked))).message,
          `the store of pauses failed: the pause ${shown} needs an id that is not empty, without half characters and NUL`
        )
      }
    }
  })
})

/** A cashier whose payments are kept. */
const shop = () => {
  const paid: Array<number> = []
  const pay = Tool.make("pay", {
    input: { amount: Schema.Finite },
    sensitive: true,
    handler: ({ amount }) => Effect.sync(() => `payment ${paid.push(amount)}`)
  })
  const model = ScriptedModel.layer([ScriptedModel.call("pay", { amount: 90 }, "c")], "done", "done")
  return { paid, layer: Layer.merge(ToolRegistry.layer(pay), model) }
}

const bot = AgentLoop.make("bot")

describe("a run whose pause rests in a SQLite file", () => {
  const approve = (state: Pause.Encoded) => AgentLoop.resume(bot, state, { c: Pause.approve })

  it.live("APR-05: is resumed by the program that lists it, and a copy of its state is refused by the next", () => {
    const filename = place()
    const { layer, paid } = shop()
    return Effect.gen(function*() {
      const paused = yield* Effect.provide(AgentLoop.run(bot, { prompt: "go" }), sqlite(filename))
      const listing = Effect.gen(function*() {
        const store = yield* PauseStore.PauseStore
        const [waits] = yield* store.list
        const state = (yield* store.get(waits?.id ?? "")) ?? null
        return { waits, state, result: yield* approve(state) }
      })
      const { result, state, waits } = yield* Effect.provide(listing, sqlite(filename))
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      assert.deepStrictEqual(state, paused.state)
      assert.deepStrictEqual([waits?.runId, waits?.agent, waits?.pending], [paused.runId, "bot", paused.pending])
      assert.deepStrictEqual([result.text, paid], ["done", [90]])
      const refused = yield* Effect.flip(Effect.provide(approve(state), sqlite(filename)))
      assert.deepStrictEqual([refused.message, paid], ["the run cannot be resumed: it was resumed before", [90]])
    }).pipe(Effect.provide(layer))
  })

  it.live("is not resumed where the store cannot say whether it was", () => {
    const { layer, paid } = shop()
    return Effect.gen(function*() {
      const paused = yield* AgentLoop.run(bot, { prompt: "go" })
      if (paused._tag !== "Paused") throw new Error(paused._tag)
      const sql = yield* SqlClient.SqlClient
      yield* sql`DROP TABLE toolfold_pauses`
      const refused = yield* Effect.flip(approve(paused.state))
      assert.strictEqual(refused._tag === "ResumeRefused" && refused.reason, "store")
      assert.deepStrictEqual(paid, [])
    }).pipe(
      Effect.provide(layer),
      Effect.provide(SqlPauses.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))
    )
  })
})

describe("pauses in SQL", () => {
  it.live("rest beside threads in one database, whichever was set up first", () =>
    Effect.gen(function*() {
      const filename = place()
      const threads = Sql.layer.pipe(Layer.provide(NodeSqlite.layer({ filename })))
      const put = Effect.flatMap(PauseStore.PauseStore, (store) => store.put(waiting("a"), 1))
      yield* Effect.provide(put, sqlite(filename))
      const both = Effect.gen(function*() {
        const memory = yield* Memory
        yield* memory.fact.set("ann", "city", "Oslo")
        const store = yield* PauseStore.PauseStore
        return [yield* memory.fact.get("ann", "city"), yield* store.list]
      })
      assert.deepStrictEqual(
        yield* Effect.provide(both, Layer.merge(threads, sqlite(filename))),
        ["Oslo", [waiting("a")]]
      )
    }))

  it.live("are set up once where several programs begin at one moment", () =>
    Effect.gen(function*() {
      const filename = place()
      const claims = yield* Effect.forEach(
        ["a", "b", "c", "a", "b"],
        (id) => Effect.provide(Effect.flatMap(PauseStore.PauseStore, (store) => store.claim(id)), sqlite(filename)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(claims.toSorted(), [false, false, true, true, true])
    }))

  it.effect("are part of the application's transaction where there is one", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* PauseStore.PauseStore
      yield* store.put(waiting("a"), 1)
      yield* Effect.flip(sql.withTransaction(Effect.andThen(store.claim("a"), Effect.fail("no"))))
      assert.deepStrictEqual([yield* store.list, yield* store.claim("a")], [[waiting("a")], true])
    }).pipe(Effect.provide(SqlPauses.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))))

  it.effect("that were damaged are not read as if they were nothing", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* PauseStore.PauseStore
      yield* store.put(waiting("a"), 1)
      yield* sql`UPDATE toolfold_pauses SET waiting = ${JSON.stringify({ version: 2, ...waiting("a") })}, state = '{'`
      const failures = [yield* Effect.flip(store.list), yield* Effect.flip(store.get("a"))]
      assert.deepStrictEqual(failures.map(({ message }) => message), [
        'the store of pauses failed: the pause "a" does not decode: Expected 1 at ["version"]',
        'the store of pauses failed: the pause "a" does not decode: Expected a valid JSON string'
      ])
    }).pipe(Effect.provide(SqlPauses.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))))

  it.effect("keep what was given away in its row, for whoever looks into what became of it", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* PauseStore.PauseStore
      yield* store.put(waiting("a"), { at: 1 })
      yield* store.claim("a")
      const rows = yield* sql`SELECT id, state, claimed IS NULL AS waits FROM toolfold_pauses`
      assert.deepStrictEqual(rows.map((row) => ({ ...row })), [{ id: "a", state: '{"at":1}', waits: 0 }])
    }).pipe(Effect.provide(SqlPauses.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))))
})

describe("pauses over files", () => {
  const within = <A, E>(folder: string, use: (store: PauseStore.PauseStore) => Effect.Effect<A, E>) =>
    Effect.provide(Effect.flatMap(PauseStore.PauseStore, use), files(folder))

  it.live(
    "are whole or not there, in whatever file the program died, and one half claimed is not given away",
    () =>
      Effect.gen(function*() {
        const folder = place()
        yield* within(
          folder,
          (store) => Effect.andThen(store.put(waiting("a"), 1), store.put(waiting("b"), { n: [2] }))
        )
        const torn = (name: string) => {
          const path = join(folder, name)
          const whole = readFileSync(path, "utf8")
          return Effect.map(
            Effect.forEach(
              Array.from({ length: whole.length }, (_, at) => at),
              (length) => {
                writeFileSync(path, whole.slice(0, length))
                return within(folder, (store) => Effect.all([store.list, store.get("b")]))
              }
            ),
            (seen) => {
              writeFileSync(path, whole)
              return [...new Set(seen.map((both) => JSON.stringify(both)))].map((both) => JSON.parse(both))
            }
          )
        }
        const nothing = null
        assert.deepStrictEqual(yield* torn("pause.b.waiting"), [[[waiting("a")], { n: [2] }]])
        assert.deepStrictEqual(yield* torn("pause.b.state"), [[[waiting("a"), waiting("b")], nothing]])
        writeFileSync(join(folder, "pause.b.claimed"), "")
        assert.deepStrictEqual(
          yield* within(
            folder,
            (store) => Effect.all([store.list, store.get("b"), store.claim("b"), store.claim("a")])
          ),
          [[waiting("a")], undefined, false, true]
        )
        assert.deepStrictEqual(readdirSync(folder).toSorted(), [
          "pause.a.claimed",
          "pause.a.state",
          "pause.a.waiting",
          "pause.b.claimed",
          "pause.b.state",
          "pause.b.waiting"
        ])
      }),
    30_000
  )

  it.live("fail with the store's error as the cause", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(within(place(), (store) => store.claim("a".repeat(300))))
      assert.include(Exit.isFailure(exit) ? String(exit.cause) : "", "KeyValueStoreError")
    }))
})

/** Runs processes that claim these pauses, all from one moment on; gives what each of them got. */
const claiming = Effect.fnUntraced(function*(kind: string, where: string, ids: ReadonlyArray<string>) {
  const ready: Array<() => void> = []
  const one = Effect.callback<ReadonlyArray<string>, Error>((resume) => {
    const args = ["--conditions=@toolfold/source", "--no-warnings", "test/programs/claimer.ts", kind, where, ...ids]
    const child = spawn(process.execPath, args)
    let output = ""
    let problems = ""
    child.stdout.on("data", (chunk) => {
      if (output === "" && ready.push(() => child.stdin.end("go")) === 3) ready.forEach((go) => go())
      output += chunk
    })
    child.stderr.on("data", (chunk) => {
      problems += chunk
    })
    child.on(
      "close",
      (code) => resume(code === 0 ? Effect.succeed(output.split("\n").slice(1, -1)) : Effect.fail(new Error(problems)))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })
  return yield* Effect.all([one, one, one], { concurrency: "unbounded" })
})

describe("three processes that claim the same pauses at one moment", () => {
  const ids = Array.from({ length: 200 }, (_, at) => `p-${at}`)
  // Every other one was never put: its state is kept elsewhere.
  const putting = Effect.gen(function*() {
    const store = yield* PauseStore.PauseStore
    for (const id of ids.filter((_, at) => at % 2 === 0)) yield* store.put(waiting(id), 1)
  })
  const check = Effect.fnUntraced(function*(kind: string, where: string, layer: Layer.Layer<never, unknown>) {
    yield* Effect.provide(putting, layer)
    const got = (yield* claiming(kind, where, ids)).flat()
    assert.deepStrictEqual(got.toSorted(), ids.toSorted())
    assert.deepStrictEqual(
      yield* Effect.provide(Effect.flatMap(PauseStore.PauseStore, (store) => store.list), layer),
      []
    )
  })

  it.live("in a SQLite file: each pause is given to exactly one", () => {
    const filename = place()
    return check("sqlite", filename, sqlite(filename))
  }, 60_000)

  it.live.skipIf(!hasPostgres)("in PostgreSQL: each pause is given to exactly one", () => {
    const schema = freshSchema()
    return Effect.gen(function*() {
      yield* Effect.provide(Effect.void, inSchema(schema))
      yield* check("pg", schema, SqlPauses.layer.pipe(Layer.provide(pg(schema))))
    })
  }, 60_000)
})
