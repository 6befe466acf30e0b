// A payment waits for somebody's approval, and the process that asked ends; another one pays, once. What waits, and what
// was paid, rests in a SQLite file.
//
//   npm run example:approval                    both, as two processes
//   npm run example:approval -- ask FILE        asks for a payment of 90, and waits for approval in FILE
//   npm run example:approval -- approve FILE 80 approves it with the amount 80
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as NodeSqlite from "toolfold/memory/NodeSqlite"
import * as SqlPauses from "toolfold/memory/SqlPauses"
import * as Pause from "toolfold/Pause"
import { PauseStore } from "toolfold/PauseStore"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"

/** What the agent remembers, in whatever process it goes on. */
class Desk extends Context.Slots<Desk>()("example/Desk", { notes: Context.list(Schema.String) }) {}

const findInvoice = Tool.make("find_invoice", {
  description: "Finds the open invoice of a customer",
  input: { customer: Schema.String },
  output: Schema.Struct({ payee: Schema.String, amount: Schema.Finite }),
  readOnly: true,
  handler: ({ customer }) =>
    Effect.gen(function*() {
      const desk = yield* Desk
      yield* desk.write({ notes: [`looked up ${customer}`] })
      return { payee: customer, amount: 90 }
    })
})

const pay = Tool.make("pay", {
  description: "Pays somebody",
  input: { payee: Schema.String, amount: Schema.Finite },
  sensitive: true,
  handler: ({ amount, payee }) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const desk = yield* Desk
      yield* Effect.orDie(sql`INSERT INTO payments (payee, amount) VALUES (${payee}, ${amount})`)
      yield* desk.write({ notes: [`paid ${amount}`] })
      return `paid ${amount} to ${payee}`
    })
})

const cashier = AgentLoop.make("cashier", { instructions: "You pay the invoices that you are asked to pay." })

/** What a model would say in each of the two processes. */
const said = {
  ask: ScriptedModel.layer(
    [ScriptedModel.call("find_invoice", { customer: "Ada" })],
    [ScriptedModel.call("pay", { payee: "Ada", amount: 90 })]
  ),
  approve: ScriptedModel.layer("Ada's invoice is paid.")
}

const Tools = ToolRegistry.layer(findInvoice, pay).pipe(Layer.provide(Desk.layer))

const Ledger = Layer.effectDiscard(Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, payee TEXT NOT NULL, amount REAL NOT NULL)`
}))

/** All that one of the processes needs: its tools, where pauses rest, the ledger, and the file that has it all. */
const within = (filename: string) =>
  Layer.mergeAll(Tools, SqlPauses.layer, Ledger).pipe(Layer.provideMerge(NodeSqlite.layer({ filename })))

const shown = ({ input, name }: Pause.Pending): string => `${name}(${JSON.stringify(input)})`

const ask = Effect.gen(function*() {
  const result = yield* AgentLoop.run(cashier, { prompt: "Pay the open invoice of Ada" })
  if (result._tag !== "Paused") return yield* Effect.fail(new Error(`the run did not wait: ${result._tag}`))
  yield* Console.log(`asked: ${result.pending.map(shown).join(", ")} waits for approval; nothing is paid`)
}).pipe(Effect.provide(said.ask))

const approve = Effect.fnUntraced(
  function*(amount: number) {
    const store = yield* PauseStore
    const [waiting] = yield* store.list
    const state = waiting === undefined ? undefined : yield* store.get(waiting.id)
    if (waiting === undefined || state === undefined) {
      return yield* Effect.fail(new Error("no payment waits; each is approved once"))
    }
    const decisions = waiting.pending.map((call) =>
      [call.id, Pause.approveWith({ ...Object(call.input), amount })] as const
    )
    yield* Console.log(`approving: ${waiting.pending.map(shown).join(", ")} with the amount ${amount}`)
    const result = yield* AgentLoop.resume(cashier, state, Object.fromEntries(decisions))
    const outcomes = result.turns.flatMap(({ outcomes }) => outcomes).map(Turn.told)
    yield* Console.log(`resumed: ${JSON.stringify(outcomes.at(-1))}; the model says: ${result.text}`)
    yield* Console.log(`remembered: ${Desk.from(result.context).notes.join(", ")}`)
    const sql = yield* SqlClient.SqlClient
    const paid = yield* sql<{ readonly payee: string; readonly amount: number }>`SELECT * FROM payments ORDER BY id`
    yield* Console.log(`ledger: ${paid.map(({ amount, payee }) => `${payee} ${amount}`).join(", ")}`)
  },
  Effect.provide(said.approve)
)

/** Runs this program as a process of its own. */
const asProcess = (...args: ReadonlyArray<string>) =>
  Effect.callback<void, Error>((resume) => {
    const child = spawn(process.execPath, [...process.execArgv, import.meta.filename, ...args], { stdio: "inherit" })
    child.on("error", (error) => resume(Effect.fail(error)))
    child.on("close", (code) => resume(code === 0 ? Effect.void : Effect.fail(new Error(`${args[0]} failed`))))
  })

const both = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "approval-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const file = join(folder, "approval.db")
  yield* asProcess("ask", file)
  yield* Console.log("… that process has ended")
  yield* asProcess("approve", file, "80")
}).pipe(Effect.scoped)

const usage = Effect.fail(new Error("Usage: npm run example:approval -- ask FILE | approve FILE AMOUNT"))

const main = Effect.suspend((): Effect.Effect<void, Error> => {
  const [command, filename = "", amount = "", ...rest] = process.argv.slice(2)
  if (command === undefined) return both
  if (filename === "" || rest.length > 0) return usage
  if (command === "ask" && amount === "") return Effect.provide(ask, within(filename))
  const number = Number(amount)
  return command === "approve" && amount.trim() !== "" && Number.isFinite(number) && number > 0
    ? Effect.provide(approve(number), within(filename))
    : usage
})

main.pipe(
  // Whatever a person can put right is one line.
  Effect.catch(({ message }) =>
    Effect.andThen(
      Console.error(`error: ${message}`),
      Effect.sync(() => {
        process.exitCode = 1
      })
    )
  ),
  NodeRuntime.runMain
)
