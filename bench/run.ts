// What does an agent's loop cost in toolfold and elsewhere? Every workload on every contender in a fresh process, rounds
// interleaved; prints the table of goals, writes RESULTS.md, and ends with 1 if a must does not hold.
//
//   npm run bench -- [--only W2,W3] [--rounds 3] [--contenders ours,effect] [--json]
import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { parseArgs, promisify } from "node:util"
import * as Baton from "./baton.ts"
import type { Figures } from "./measure.ts"
import * as Report from "./report.ts"
import * as Start from "./start.ts"
import * as Types from "./types.ts"
import { isSpared, urgency, workloads } from "./workloads.ts"

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "3" },
    contenders: { type: "string" },
    json: { type: "boolean", default: false }
  }
})

const rounds = Number(options.rounds)
const chosen = options.only?.split(",") ?? Object.keys(workloads)
const known = new Set(Object.values(workloads).flatMap(({ contenders }) => contenders))
const wanted = new Set(options.contenders?.split(",") ?? known)
const unknown = [...chosen.filter((id) => !(id in workloads)), ...[...wanted].filter((name) => !known.has(name))]
if (!(rounds > 0) || unknown.length > 0) {
  console.error(`usage: npm run bench -- [--only W2,W3] [--rounds 3] [--contenders ours,effect] [--json]`)
  if (unknown.length > 0) console.error(`unknown: ${unknown.join(", ")}`)
  process.exit(2)
}

const environment = {
  ...process.env,
  NODE_ENV: "production",
  LANGSMITH_TRACING: "false",
  LANGCHAIN_TRACING_V2: "false",
  OPENAI_AGENTS_DISABLE_TRACING: "1",
  MASTRA_TELEMETRY_DISABLED: "1"
}

const patience = 90_000
const given: Array<string> = []
const start = promisify(execFile)
const file = join(import.meta.dirname, "measure.ts")
const execArgv = ["--expose-gc", "--conditions=@toolfold/source"]

const measure = async ({ contender, id }: Job): Promise<Figures> => {
  try {
    if (id === "W8") return Start.measure([contender])[0] ?? {}
    if (id === "W11") return Types.measure(contender)
    const { stdout } = await start(
      process.execPath,
      [...execArgv, file, contender, id, ...isLook ? ["look"] : []],
      // A contender that blocks its event loop cannot give up by itself.
      {
        encoding: "utf8",
        env: environment,
        timeout: isLook ? Math.ceil(1_000 * Math.max(1, rest())) : id === "W9" ? 20_000 : patience
      }
    )
    return figuresOf(stdout)
  } catch (error) {
    const { killed, stderr } = error as { readonly killed?: boolean; readonly stderr?: string }
    return givenUp({ contender, id }, killed === true, String(stderr ?? error))
  }
}

/** Measures what is compared with each other a slice each in turn. */
const together = async (id: string, jobs: ReadonlyArray<Job>): Promise<ReadonlyArray<Figures>> => {
  if (id === "W8") return starts(jobs)
  const ran = await Baton.inTurns(jobs.map(({ contender, id }) => [contender, id]), {
    file,
    execArgv,
    env: environment,
    patience
  })
  return jobs.map((job, at) => {
    const { isKilled = false, stderr = "", stdout = "" } = ran[at] ?? {}
    return isKilled || !stdout.trimEnd().endsWith("}") ? givenUp(job, isKilled, stderr) : figuresOf(stdout)
  })
}

const starts = (jobs: ReadonlyArray<Job>): ReadonlyArray<Figures> => {
  try {
    return Start.measure(jobs.map(({ contender }) => contender))
  } catch (error) {
    return jobs.map((job) => givenUp(job, false, String(error)))
  }
}

const figuresOf = (stdout: string): Figures => JSON.parse(stdout.slice(stdout.lastIndexOf("\n")))

const givenUp = ({ contender, id }: Job, isKilled: boolean, said: string): Figures => {
  const why = isKilled
    ? "did not end in time"
    : said.split("\n").find((line) => line.includes("Error")) ?? "it failed"
  given.push(`${contender}, ${id}: ${why}`)
  return {}
}

const turned = <A>(list: ReadonlyArray<A>, by: number): ReadonlyArray<A> => {
  const at = by % Math.max(1, list.length)
  return [...list.slice(at), ...list.slice(0, at)]
}

const contendersOf = (id: string): ReadonlyArray<string> =>
  (workloads[id]?.contenders ?? []).filter((name) => wanted.has(name))

// A part of the work is for a look, and would overwrite what the whole of it said.
const isWhole = options.only === undefined && options.contenders === undefined

// Whoever names workloads and no contenders wants an answer soon: half a minute a workload, two processes at a time, the
// most important contenders first, and the others in as many rounds as there is time for.
const isLook = options.only !== undefined && options.contenders === undefined
const lanes = isLook ? Math.min(2, availableParallelism()) : 1

interface Job {
  readonly contender: string
  readonly id: string
}

const plan: ReadonlyArray<ReadonlyArray<Job>> = Array.from({ length: rounds }, (_, round) => {
  const jobs = chosen.flatMap((id) =>
    turned(contendersOf(id), round).filter((contender) => !(isWhole && isSpared(contender, id, round)))
      .map((contender) => ({ contender, id }))
  )
  return isLook ? jobs.toSorted((a, b) => urgency(a.contender) - urgency(b.contender)) : jobs
})

const from = performance.now()
if (chosen.includes("W8")) await Start.prepare(contendersOf("W8"))
if (chosen.includes("W11")) Types.prepare()
const results: Record<string, Array<Record<string, Figures>>> = Object.fromEntries(chosen.map((id) => [id, []]))
const took = new Map<string, number>()
for (const [round, jobs] of plan.entries()) {
  const figures: Record<string, Record<string, Figures>> = {}
  // A look has no time for it, and two lanes.
  const compared = (job: Job): boolean => !isLook && workloads[job.id]?.isSliced === true
  for (const id of isLook ? [] : chosen) {
    const those = jobs.filter((job) => job.id === id && compared(job))
    if (those.length === 0) continue
    if (process.stderr.isTTY) process.stderr.write(`round ${round + 1}: ${id}\u001B[K\r`)
    const found = await together(id, those)
    figures[id] = Object.fromEntries(those.map(({ contender }, at) => [contender, found[at] ?? {}]))
  }
  const waiting = jobs.filter((job) => !compared(job))
  const lane = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const { contender, id } = job
      if (process.stderr.isTTY) process.stderr.write(`round ${round + 1}: ${id} ${contender}\u001B[K\r`)
      const key = `${contender} ${id}`
      if (isLook && 1.2 * (took.get(key) ?? 3) > rest() - 3) continue
      const before = seconds()
      const found = await measure(job)
      took.set(key, seconds() - before)
      figures[id] = { ...figures[id], [contender]: found }
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  for (const [id, found] of Object.entries(figures)) results[id]?.push(found)
  console.error(`round ${round + 1} of ${rounds}: ${seconds().toFixed(0)} s so far\u001B[K`)
  // After every round, so that whoever stops early has what there is.
  if (isWhole) writeFileSync(join(import.meta.dirname, "RESULTS.md"), Report.page(measured()))
}

/** The seconds that are left of a look. */
function rest(): number {
  return 29 * chosen.length - seconds()
}

function seconds(): number {
  return (performance.now() - from) / 1_000
}

function measured(): Report.Measured {
  const rounds = Math.max(0, ...Object.values(results).map(({ length }) => length))
  return { results, given, rounds, seconds: seconds(), isLook, isWhole }
}

const goals = Report.goals(results)
console.log(options.json ? JSON.stringify({ goals, ...measured() }, null, 2) : Report.page(measured()))
const missed = goals.flatMap(({ must, work }) =>
  must.filter(({ holds }) => holds === false).map(({ text }) => `${work}: ${text}`)
)
for (const line of missed) console.error(`missed: ${line}`)
process.exit(missed.length === 0 ? 0 : 1)
