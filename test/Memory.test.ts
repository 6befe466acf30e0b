// Whatever store a thread rests in: what was appended is there, whole and in order, and of two writers one is told.
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
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
import * as Context from "toolfold/Context"
import * as Memory from "toolfold/Memory"
import * as InMemory from "toolfold/memory/InMemory"
import * as KeyValue from "toolfold/memory/KeyValue"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as Sql from "toolfold/memory/Sql"
import * as Usage from "toolfold/Usage"

const postgres = process.env.PG_URL ?? "postgres://postgres@127.0.0.1:5432/test"
process.env.PG_URL = postgres

const answers = (url: URL) =>
  new Promise<boolean>((done) => {
    const socket = connect(Number(url.port || 5432), url.hostname)
    socket.on("connect", () => done(true)).on("error", () => done(false))
    socket.on("connect", () => socket.end())
  })
const hasPostgres = await answers(new URL(postgres))

const base = mkdtempSync(join(tmpdir(), "toolfold-memory-"))
let places = 0
const place = () => join(base, String(places++))

const files = (folder: string) =>
  KeyValue.layer.pipe(Layer.provide(KeyValueStore.layerFileSystem(folder)), Layer.provide(NodeServices.layer))
const sqlite = (filename: string) => Sql.layer.pipe(Layer.provide(NodeSqlite.layer({ filename })))

// A schema of its own for every test, in the database of the tests.
const schemas = `toolfold_${process.pid}`
const pg = (schema: string) =>
  PgClient.layer({ url: Redacted.make(postgres), startupParameters: { search_path: schema } })
const inSchema = (schema: string) =>
  Layer.effectDiscard(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`CREATE SCHEMA ${sql(schema)}`)).pipe(
    Layer.provideMerge(pg(schema))
  )
const freshSchema = () => `${schemas}_${places++}`

const stores: ReadonlyArray<
  readonly [name: string, layer: () => Layer.Layer<Memory.Memory, unknown>, isThere: boolean]
> = [
  ["in memory", () => InMemory.layer, true],
  ["over a key-value store", () => KeyValue.layer.pipe(Layer.provide(KeyValueStore.layerMemory)), true],
  ["over files", () => files(place()), true],
  ["in SQLite", () => sqlite(":memory:"), true],
  ["in a SQLite file", () => sqlite(place()), true],
  ["in PostgreSQL", () => Sql.layer.pipe(Layer.provide(inSchema(freshSchema()))), hasPostgres]
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

class Trip extends Context.Slots<Trip>()("test/Trip", {
  notes: Context.list(Schema.String),
  at: Context.last(Schema.Date, new Date(0))
}) {}

class Odd extends Context.Slots<Odd>()("test/Odd", {
  bytes: Context.last(Schema.Uint8Array, new Uint8Array()),
  map: Context.last(Schema.ReadonlyMap(Schema.String, Schema.Finite), new Map()),
  big: Context.last(Schema.BigInt, 0n),
  maybe: Context.last(Schema.UndefinedOr(Schema.String), "something")
}) {}

const usage = { ...Usage.empty, inputTokens: 3, totalTokens: 3, calls: 1 }

/** A turn: a question, an answer with a call, and its result. */
const turn = (id: string): Memory.Entry => ({
  id,
  usage,
  messages: [
    ...Prompt.make(`question ${id}`).content,
    Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("reasoning", { text: "…", options: { vendor: { signature: "s" } } }),
        Prompt.makePart("tool-call", { id: `c${id}`, name: "look", params: { at: id }, providerExecuted: false })
      ]
    }),
    Prompt.makeMessage("tool", {
      content: [
        Prompt.makePart("tool-result", {
          id: `c${id}`,
          name: "look",
          isFailure: false,
          result: { found: [id, null, 1.5, "\u0000 ü \u{1F600}"] },
          providerExecuted: false
        })
      ]
    })
  ]
})

const texts = ({ messages }: Memory.Thread) =>
  messages.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
  )

const append = (thread: string, ...ids: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const memory = yield* Memory.Memory
    let { version } = yield* memory.load(thread)
    for (const id of ids) version = yield* memory.append(thread, version, turn(id))
    return version
  })

for (const [name, layer, isThere] of stores) {
  const test = (title: string, body: Effect.Effect<void, unknown, Memory.Memory>) =>
    it.live.skipIf(!isThere)(title, () => Effect.provide(Effect.suspend(() => body), layer()))

  describe(`a thread ${name}`, () => {
    test(
      "that was never written to has nothing, at version 0",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        assert.deepStrictEqual(yield* memory.load("new"), {
          id: "new",
          version: 0,
          turns: 0,
          messages: [],
          context: { version: 1, slots: {} },
          usage: Usage.empty
        })
        assert.deepStrictEqual(yield* memory.list, [])
      })
    )

    test(
      "MEM-06: has what was appended, once and in the order of the appends, though all came at one moment",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const context = yield* Context.encode(
          Trip.into(Context.empty, { notes: ["a"], at: new Date("2024-02-29T00:00:00Z") })
        )
        const versions = [
          yield* memory.append("t", 0, { ...turn("1"), context }),
          yield* memory.append("t", 1, turn("2")),
          yield* memory.append("t", 2, turn("3"))
        ]
        assert.deepStrictEqual(versions, [1, 2, 3])
        const thread = yield* memory.load("t")
        assert.deepStrictEqual(thread, {
          id: "t",
          version: 3,
          turns: 3,
          messages: [...turn("1").messages, ...turn("2").messages, ...turn("3").messages],
          context,
          usage: Usage.add(Usage.add(usage, usage), usage)
        })
        assert.deepStrictEqual(Trip.from(yield* Context.decode(thread.context, [Trip])), {
          notes: ["a"],
          at: new Date("2024-02-29T00:00:00Z")
        })
      })
    )

    test(
      "keeps files, addresses and options of a message",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const messages = [Prompt.makeMessage("user", {
          content: [
            Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([0, 255]) }),
            Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://example.org/a.png") }),
            Prompt.makePart("text", { text: "look", options: { vendor: { cache: true } } })
          ]
        })]
        yield* memory.append("t", 0, { id: "1", usage, messages })
        assert.deepStrictEqual((yield* memory.load("t")).messages, messages)
      })
    )

    test(
      "tells the second of two writers, and keeps nothing of it",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        yield* append("t", "1")
        const late = yield* Effect.flip(memory.append("t", 0, turn("late")))
        assert.deepStrictEqual(late, new Memory.ThreadConflict({ thread: "t", expected: 0, actual: 1 }))
        assert.strictEqual(
          late.message,
          'thread "t" is at version 1, not at 0: another writer was first; load the thread and take the turn again'
        )
        const early = yield* Effect.flip(memory.append("t", 5, turn("early")))
        assert.deepStrictEqual(early, new Memory.ThreadConflict({ thread: "t", expected: 5, actual: 1 }))
        assert.deepStrictEqual(
          yield* Effect.flip(memory.append("gone", 3, turn("x"))),
          new Memory.ThreadConflict({ thread: "gone", expected: 3, actual: 0 })
        )
        assert.deepStrictEqual(texts(yield* memory.load("t")), ["question 1"])
        assert.deepStrictEqual((yield* memory.list).map(({ id }) => id), ["t"])
      })
    )

    test(
      "takes an append that is sent twice once",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        yield* append("t", "1")
        assert.deepStrictEqual(
          [yield* memory.append("t", 1, turn("2")), yield* memory.append("t", 1, turn("2"))],
          [2, 2]
        )
        assert.deepStrictEqual(texts(yield* memory.load("t")), ["question 1", "question 2"])
      })
    )

    test(
      "lets one of 20 writers through at each version",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        for (let version = 0; version < 3; version++) {
          const exits = yield* Effect.forEach(
            Array.from({ length: 20 }, (_, at) => `${version}.${at}`),
            (id) => Effect.exit(memory.append("t", version, turn(id))),
            { concurrency: "unbounded" }
          )
          const conflict = Exit.fail(new Memory.ThreadConflict({ thread: "t", expected: version, actual: version + 1 }))
          assert.deepStrictEqual(
            exits.toSorted((one, other) => Number(Exit.isFailure(one)) - Number(Exit.isFailure(other))),
            [Exit.succeed(version + 1), ...Array.from({ length: 19 }, () => conflict)]
          )
        }
        assert.strictEqual((yield* memory.load("t")).turns, 3)
      })
    )

    test(
      "MEM-02: keeps bytes, maps, big integers and what is undefined where the schemas of slots say so",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const values = { bytes: new Uint8Array([0, 255]), map: new Map([["k", 1]]), big: 2n ** 64n, maybe: undefined }
        const context = yield* Context.encode(Odd.into(Context.empty, values))
        yield* memory.append("t", 0, { ...turn("1"), context })
        assert.deepStrictEqual(Odd.from(yield* Context.decode((yield* memory.load("t")).context, [Odd])), values)
      })
    )

    test(
      "MEM-02: refuses what is not JSON, and says where",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const bad = (result: unknown): Memory.Entry => ({
          id: "bad",
          usage,
          messages: [Prompt.makeMessage("tool", {
            content: [
              Prompt.makePart("tool-result", { id: "1", name: "n", isFailure: false, result, providerExecuted: false })
            ]
          })]
        })
        for (const value of [new Date(0), 2n ** 64n, NaN, new Map([["k", 1]]), { nested: { err: new Error("x") } }]) {
          const failed = yield* Effect.flip(memory.append("t", 0, bad(value)))
          assert.strictEqual(
            failed.message,
            'memory of "t": not JSON: Expected JSON value at ["messages"][0]["content"][0]["result"]'
          )
          const context = { version: 1, slots: { "test/Trip": { notes: value } } } as const
          const remembered = yield* Effect.flip(memory.append("t", 0, { ...turn("1"), context }))
          assert.strictEqual(
            remembered.message,
            'memory of "t": not JSON: Expected JSON value at ["context"]["slots"]["test/Trip"]["notes"]'
          )
        }
        assert.strictEqual((yield* memory.load("t")).version, 0)
      })
    )

    test(
      "SPEC-147: knows nothing of another, whatever their names have in common; deleting one leaves the other",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const names = ["a", "A", "a/b", "a.0", "a~", "a%2Fb", "a.head", "../a", "a ", "ä", "a_", "%", "con"]
        for (const name of names) yield* append(name, name)
        for (const name of names) assert.deepStrictEqual(texts(yield* memory.load(name)), [`question ${name}`])
        yield* memory.delete("a")
        assert.strictEqual((yield* memory.load("a")).version, 0)
        for (const name of names.slice(1)) assert.deepStrictEqual(texts(yield* memory.load(name)), [`question ${name}`])
        assert.deepStrictEqual((yield* memory.list).map(({ id }) => id), names.slice(1).toSorted())
      })
    )

    test(
      "must have a name that every store can tell apart",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        for (const name of ["", "a\0", "\uD800"]) {
          const failed = yield* Effect.flip(memory.load(name))
          assert.strictEqual(failed.reason, "not-storable")
        }
      })
    )

    test(
      "is forked at a turn, and the two share nothing afterwards",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        yield* append("t", "1", "2", "3")
        yield* memory.fork("t", "some", 2)
        yield* memory.fork("t", "all")
        assert.deepStrictEqual(
          [texts(yield* memory.load("some")), texts(yield* memory.load("all"))],
          [["question 1", "question 2"], ["question 1", "question 2", "question 3"]]
        )
        yield* append("some", "other")
        yield* append("t", "4")
        yield* memory.rollback("t", 1)
        const some = yield* memory.load("some")
        assert.deepStrictEqual(
          [some.version, some.turns, some.parent, texts(some)],
          [3, 3, { thread: "t", turns: 2 }, ["question 1", "question 2", "question other"]]
        )
        assert.deepStrictEqual(texts(yield* memory.load("t")), ["question 1"])
      })
    )

    test(
      "SPEC-148: refuses a fork of nothing, out of range, or over another thread, and to be deleted while forks are there",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        yield* append("t", "1", "2")
        yield* append("taken", "1")
        yield* memory.fork("t", "child", 1)
        const before = yield* memory.list
        const refusals = []
        for (
          const asked of [
            memory.fork("gone", "to"),
            memory.fork("t", "to", 0),
            memory.fork("t", "to", 3),
            memory.fork("t", "to", 1.5),
            memory.fork("t", "taken"),
            memory.fork("t", "t"),
            memory.delete("t"),
            memory.rollback("t", 3),
            memory.rollback("t", -1)
          ]
        ) refusals.push(yield* Effect.flip(asked))
        assert.deepStrictEqual(refusals.map((error) => error._tag === "ThreadRefused" ? error.reason : error._tag), [
          "empty-source",
          "out-of-range",
          "out-of-range",
          "out-of-range",
          "target-exists",
          "target-exists",
          "has-children",
          "out-of-range",
          "out-of-range"
        ])
        assert.deepStrictEqual(refusals.map(({ message }) => message).slice(5, 8), [
          'thread "t": it is there already; fork to a name that is free',
          'thread "t": it was forked to "child"; delete those first',
          'thread "t": it has 2 turns to keep, so it cannot keep 3'
        ])
        assert.deepStrictEqual(yield* memory.list, before)
        yield* memory.delete("child")
        yield* memory.delete("t")
        assert.deepStrictEqual((yield* memory.list).map(({ id }) => id), ["taken"])
      })
    )

    test(
      "is rolled back to a turn, and a writer who saw what was dropped is told",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const seen = yield* append("t", "1", "2", "3")
        assert.strictEqual(yield* memory.rollback("t", 3), 3)
        assert.strictEqual(yield* memory.rollback("t", 1), 4)
        assert.strictEqual((yield* Effect.flip(memory.append("t", seen, turn("late"))))._tag, "ThreadConflict")
        assert.strictEqual(yield* append("t", "again"), 5)
        const thread = yield* memory.load("t")
        assert.deepStrictEqual([thread.turns, texts(thread)], [2, ["question 1", "question again"]])
        assert.strictEqual(yield* memory.rollback("t", 0), 6)
        assert.deepStrictEqual(texts(yield* memory.load("t")), [])
        assert.strictEqual(yield* memory.rollback("gone", 0), 0)
      })
    )

    test(
      "starts anew after it was deleted",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        yield* append("t", "1", "2", "3")
        yield* memory.delete("t")
        yield* memory.delete("t")
        assert.strictEqual(yield* append("t", "new"), 1)
        assert.deepStrictEqual(texts(yield* memory.load("t")), ["question new"])
      })
    )

    test(
      "is listed by its name, with when it changed",
      Effect.gen(function*() {
        const memory = yield* Memory.Memory
        const before = yield* Clock.currentTimeMillis
        yield* append("b", "1", "2")
        yield* memory.fork("b", "a", 1)
        const after = yield* Clock.currentTimeMillis
        const listed = yield* memory.list
        assert.deepStrictEqual(listed, [
          { id: "a", version: 1, turns: 1, updatedAt: listed[0]!.updatedAt, parent: { thread: "b", turns: 1 } },
          { id: "b", version: 2, turns: 2, updatedAt: listed[1]!.updatedAt }
        ])
        const times = [before, listed[1]!.updatedAt, listed[0]!.updatedAt, after]
        assert.deepStrictEqual(times, times.toSorted((one, other) => one - other))
      })
    )

    test(
      "has facts beside it: the last write of a key wins, and each owner has its own",
      Effect.gen(function*() {
        const { fact, ...memory } = yield* Memory.Memory
        yield* append("ann", "1")
        yield* fact.set("ann", "city", "Oslo")
        yield* fact.set("ann", "city", { name: "Rome", at: [1, null] })
        yield* fact.set("ann", "City", true)
        yield* fact.set("ann", "__proto__", 0)
        yield* fact.set("ann.city", "a", 1)
        yield* memory.delete("ann")
        assert.deepStrictEqual(Object.entries(yield* fact.all("ann")).toSorted(), [
          ["City", true],
          ["__proto__", 0],
          ["city", { name: "Rome", at: [1, null] }]
        ])
        yield* fact.remove("ann", "city")
        yield* fact.remove("ann", "city")
        assert.deepStrictEqual(
          [yield* fact.get("ann", "city"), yield* fact.get("ann", "City"), yield* fact.get("bob", "city")],
          [undefined, true, undefined]
        )
        yield* fact.set("ann", "city", "Bonn")
        assert.strictEqual(yield* fact.get("ann", "city"), "Bonn")
      })
    )
  })
}

describe("what a store has that was damaged", () => {
  const after = <E>(
    damage: Effect.Effect<unknown, E, SqlClient.SqlClient>
  ) =>
    Effect.gen(function*() {
      yield* append("t", "1", "2")
      yield* damage
      return (yield* Effect.flip(Effect.flatMap(Memory.Memory, (memory) => memory.load("t")))).message
    }).pipe(Effect.provide(Sql.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" })))))
  const put = (entry: string) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE toolfold_turns SET entry = ${entry} WHERE turn = 1`)

  it.effect("MEM-02: is not read as if it were nothing: a turn that is torn, of a newer form, or gone", () =>
    Effect.gen(function*() {
      const newer = JSON.stringify({ version: 2, id: "2", messages: [], usage })
      assert.deepStrictEqual([
        (yield* after(put('{"version":1,'))).split(":").slice(0, 2).join(":"),
        yield* after(put(newer)),
        yield* after(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DELETE FROM toolfold_turns WHERE turn = 1`)),
        yield* after(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DELETE FROM toolfold_turns`))
      ], [
        'memory of "t": turn 1 does not decode',
        'memory of "t": turn 1 does not decode: Expected 1 at ["version"]',
        'memory of "t": it has 1 entries and should have 2',
        'memory of "t": it has 0 entries and should have 2'
      ])
    }))

  it.effect("over files is the thread before the write that was torn, in whatever file the program died", () =>
    Effect.gen(function*() {
      const folder = place()
      const whole = yield* Effect.provide(
        Effect.gen(function*() {
          yield* append("t", "1", "2")
          return Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), "utf8")]))
        }),
        files(folder)
      )
      // The head has two places, and the older one is written over.
      const head = whole["thread.t.head.b"] ?? ""
      for (let length = 0; length < head.length; length += 7) {
        writeFileSync(join(folder, "thread.t.head.a"), whole["thread.t.head.a"] ?? "")
        writeFileSync(join(folder, "thread.t.head.b"), head.slice(0, length))
        writeFileSync(join(folder, "thread.t.2"), '{"version":1,')
        const thread = yield* Effect.provide(
          Effect.flatMap(Memory.Memory, (memory) => memory.load("t")),
          files(folder)
        )
        assert.deepStrictEqual([thread.version, texts(thread)], [1, ["question 1"]])
      }
      yield* Effect.provide(append("t", "next"), files(folder))
      assert.deepStrictEqual(
        texts(yield* Effect.provide(Effect.flatMap(Memory.Memory, (memory) => memory.load("t")), files(folder))),
        ["question 1", "question next"]
      )
    }))
})

describe("threads in SQL", () => {
  it.effect("are part of the application's transaction where there is one", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const memory = yield* Memory.Memory
      yield* append("t", "1")
      yield* Effect.flip(sql.withTransaction(Effect.andThen(memory.append("t", 1, turn("2")), Effect.fail("no"))))
      assert.deepStrictEqual(texts(yield* memory.load("t")), ["question 1"])
    }).pipe(Effect.provide(Sql.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))))

  it.effect("fail with the store's error as the cause", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const memory = yield* Memory.Memory
      yield* sql`DROP TABLE toolfold_turns`
      const failed = yield* Effect.flip(memory.load("t"))
      assert.strictEqual(failed.message, 'memory of "t": the store failed; its error is the cause')
      assert.include(String(failed.cause), "SqlError")
    }).pipe(Effect.provide(Sql.layer.pipe(Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" }))))))

  it.effect("are set up once where several programs begin at one moment", () =>
    Effect.gen(function*() {
      const filename = place()
      const versions = yield* Effect.forEach(
        Array.from({ length: 5 }, (_, at) => `t${at}`),
        (thread) => Effect.provide(append(thread, "1"), sqlite(filename)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(versions, [1, 1, 1, 1, 1])
    }))
})

/** Lets processes begin together: when as many of them are ready. */
const start = (processes: number) => {
  const ready: Array<() => void> = []
  return (go: () => void) => {
    if (ready.push(go) === processes) ready.forEach((go) => go())
  }
}

/** Runs a process of writers until it ends, or is killed after so many accepted turns; gives their lines. */
const writing = (
  [kind, where, name, writers, turns]: readonly [string, string, string, number, number],
  begin: (go: () => void) => void,
  killAfter = Infinity
) =>
  Effect.callback<ReadonlyArray<string>, Error>((resume) => {
    const args = ["--conditions=@toolfold/source", "--no-warnings", "test/programs/writer.ts"]
    const child = spawn(process.execPath, [...args, kind, where, "t", name, String(writers), String(turns)])
    let output = ""
    let problems = ""
    child.stdout.on("data", (chunk) => {
      if (output === "") begin(() => child.stdin.end("go"))
      output += chunk
      if (output.split("\n").length > killAfter) child.kill("SIGKILL")
    })
    child.stderr.on("data", (chunk) => {
      problems += chunk
    })
    child.on("close", (code, signal) =>
      resume(
        code === 0 || signal === "SIGKILL"
          // The first says that it is ready, and one that was not ended was cut off.
          ? Effect.succeed(output.split("\n").slice(1, -1))
          : Effect.fail(new Error(problems))
      ))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("50 writers in 5 processes on one thread", () => {
  const check = (kind: string, where: string, layer: Layer.Layer<Memory.Memory, unknown>) =>
    Effect.gen(function*() {
      const begin = start(5)
      const lines = (yield* Effect.forEach(
        ["a", "b", "c", "d", "e"],
        (name) => writing([kind, where, name, 10, 1], begin),
        { concurrency: "unbounded" }
      )).flat()
      const conflicts = lines.filter((line) => line.startsWith("conflicts"))
      const accepted = lines.filter((line) => !line.startsWith("conflicts")).map((line) => line.split(" "))
        .toSorted(([, one], [, other]) => Number(one) - Number(other))
      const thread = yield* Effect.provide(Effect.flatMap(Memory.Memory, (memory) => memory.load("t")), layer)
      assert.deepStrictEqual(
        accepted.map(([, version]) => Number(version)),
        Array.from({ length: 50 }, (_, at) => at + 1)
      )
      assert.deepStrictEqual(texts(thread), accepted.map(([id]) => id))
      assert.deepStrictEqual(
        thread.messages.map(({ role }) => role),
        Array.from({ length: 50 }, () => ["user", "assistant"]).flat()
      )
      assert.deepStrictEqual([thread.version, thread.turns, thread.usage.calls], [50, 50, 50])
      assert.isAbove(conflicts.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0), 0)
    })

  it.live("in a SQLite file: every accepted turn is there, whole, at its version", () => {
    const filename = place()
    return check("sqlite", filename, sqlite(filename))
  }, 120_000)

  it.live.skipIf(!hasPostgres)("in PostgreSQL: every accepted turn is there, whole, at its version", () => {
    const schema = freshSchema()
    return Effect.gen(function*() {
      yield* Effect.provide(Effect.void, inSchema(schema))
      yield* check("pg", schema, Sql.layer.pipe(Layer.provide(pg(schema))))
    })
  }, 120_000)
})

describe("a process that is killed while it writes", () => {
  const check = (kind: string, where: string, layer: Layer.Layer<Memory.Memory, unknown>) =>
    Effect.gen(function*() {
      let accepted: ReadonlyArray<string> = []
      for (const name of ["a", "b", "c"]) {
        const lines = yield* writing([kind, where, name, 3, 1_000], start(1), 20)
        accepted = [...accepted, ...lines.map((line) => line.split(" ")[0] ?? "")]
        const thread = yield* Effect.provide(Effect.flatMap(Memory.Memory, (memory) => memory.load("t")), layer)
        assert.strictEqual(thread.version, thread.turns)
        assert.strictEqual(thread.messages.length, 2 * thread.turns)
        assert.deepStrictEqual(texts(thread).filter((id) => accepted.includes(id)), accepted)
        assert.strictEqual(new Set(texts(thread)).size, thread.turns)
      }
    })

  it.live("leaves whole turns in a SQLite file", () => {
    const filename = place()
    return check("sqlite", filename, sqlite(filename))
  }, 60_000)

  it.live("leaves whole turns in files", () => {
    const folder = place()
    return check("files", folder, files(folder))
  }, 60_000)
})
