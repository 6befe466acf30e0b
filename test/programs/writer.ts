// A process in which some writers append to one thread, each as often as it is told: loads it, and tries again where
// another was first. Says `ready` and waits to be told to begin. Prints a line for each append that was accepted,
// `writer/turn version`, and at the end how many were not.
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Redacted from "effect/Redacted"
import { Memory } from "toolfold/Memory"
import * as KeyValue from "toolfold/memory/KeyValue"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as Sql from "toolfold/memory/Sql"
import * as Usage from "toolfold/Usage"

const [kind = "", where = "", thread = "", name = "", writers = "1", turns = "1"] = process.argv.slice(2)

const stores: { readonly [kind: string]: () => Layer.Layer<Memory, unknown> } = {
  sqlite: () => Sql.layer.pipe(Layer.provide(NodeSqlite.layer({ filename: where, busyTimeout: "20 seconds" }))),
  files: () =>
    KeyValue.layer.pipe(
      Layer.provide(KeyValueStore.layerFileSystem(where)),
      Layer.provide(NodeServices.layer)
    ),
  pg: () =>
    Sql.layer.pipe(Layer.provide(PgClient.layer({
      url: Redacted.make(process.env.PG_URL ?? ""),
      startupParameters: { search_path: where }
    })))
}

let conflicts = 0

const write = Effect.fnUntraced(function*(writer: string) {
  const memory = yield* Memory
  for (let turn = 0; turn < Number(turns); turn++) {
    const id = `${writer}/${turn}`
    const entry = {
      id,
      messages: [
        ...Prompt.make(id).content,
        Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: id.repeat(200) })] })
      ],
      usage: { ...Usage.empty, calls: 1 }
    }
    let version: number | undefined
    while (version === undefined) {
      const seen = yield* memory.load(thread)
      version = yield* memory.append(thread, seen.version, entry).pipe(
        Effect.catchTag("ThreadConflict", () => Effect.sync(() => void conflicts++))
      )
    }
    process.stdout.write(`${id} ${version}\n`)
  }
})

const told = Effect.callback<void>((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
  process.stdout.write("ready\n")
})

const program = Effect.forEach(
  Array.from({ length: Number(writers) }, (_, at) => `${name}.${at}`),
  write,
  { concurrency: "unbounded", discard: true }
).pipe((writing) => Effect.andThen(told, writing))

await Effect.runPromise(Effect.provide(program, stores[kind]?.() ?? Layer.empty as never))
process.stdout.write(`conflicts ${conflicts}\n`)
