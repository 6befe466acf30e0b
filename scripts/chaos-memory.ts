// Does a thread survive `kill -9`? Processes that run an agent on a thread are killed anywhere, and the next one goes on.
//
//   npm run chaos:memory                     200 kills: in SQLite, and half of them in PostgreSQL where it is
//   npm run chaos:memory -- --count 20       fewer; SEED=N repeats what was drawn
import { parseArgs } from "node:util"
import * as Kills from "./chaos/kills.ts"
import * as Random from "./chaos/random.ts"
import * as Stores from "./chaos/stores.ts"

const { values } = parseArgs({ options: { count: { type: "string", default: "200" } } })
const count = Number(values.count)
if (!Number.isSafeInteger(count) || count < 1) {
  console.log(`--count is a number of kills, not ${values.count}`)
  process.exit(2)
}

const seed = Random.seed()
const hasPostgres = await Stores.hasPostgres()
console.log(`seed ${seed} (again: SEED=${seed})`)
if (!hasPostgres) console.log("no PostgreSQL, so all of it in SQLite: PG_URL says where it is")
const inPostgres = hasPostgres ? Math.floor(count / 2) : 0
const outcomes = (await Promise.all([
  Kills.inStore("sqlite", count - inPostgres, seed),
  inPostgres === 0 ? [] : Kills.inStore("pg", inPostgres, seed)
])).flat()

for (const { problems, what } of outcomes) {
  // The first says it; the others follow from it.
  const [problem] = problems
  if (problem !== undefined) console.log(`  FAIL   ${what}: ${problem} (${problems.length} problems)`)
}
const failed = outcomes.filter(({ problems }) => problems.length > 0).length
console.log(`${count} kills, ${outcomes.length - count} threads that went on to the end`)
console.log(`${outcomes.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
