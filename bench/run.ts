// What does an agent's loop cost in toolfold and elsewhere? Every workload on every contender in a fresh process, rounds
// interleaved; prints the table of goals, writes RESULTS.md, and ends with 1 if a must does not hold.
//
//   npm run bench -- [--only W2,W3] [--rounds 3] [--contenders ours,effect] [--json]
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Figures } from "./measure.ts"
import * as Report from "./report.ts"
import * as Start from "./start.ts"
import { slow, workloads } from "./workloads.ts"

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

const measure = (contender: string, id: string): Figures => {
  try {
    if (id === "W8") return Start.measure(contender)
    const output = execFileSync(
      process.execPath,
      ["--expose-gc", "--conditions=@toolfold/source", join(import.meta.dirname, "measure.ts"), contender, id],
      // A contender that blocks its event loop cannot give up by itself.
      {
        encoding: "utf8",
        env: environment,
        timeout: id === "W9" ? 20_000 : patience,
        stdio: ["ignore", "pipe", "pipe"]
      }
    )
    return JSON.parse(output.slice(output.lastIndexOf("\n")))
  } catch (error) {
    const { code, stderr } = error as { readonly code?: string; readonly stderr?: string }
    const why = code === "ETIMEDOUT"
      ? "did not end in time"
      : String(stderr ?? error).split("\n").find((line) => line.includes("Error")) ?? "it failed"
    given.push(`${contender}, ${id}: ${why}`)
    return {}
  }
}

/** What W9 counts does not scatter. */
const isLeftOut = (contender: string, id: string, round: number): boolean =>
  round > 0 && (slow.includes(contender) || id === "W9")

const turned = <A>(list: ReadonlyArray<A>, by: number): ReadonlyArray<A> => {
  const at = by % Math.max(1, list.length)
  return [...list.slice(at), ...list.slice(0, at)]
}

const contendersOf = (id: string): ReadonlyArray<string> =>
  (workloads[id]?.contenders ?? []).filter((name) => wanted.has(name))

// A part of the work is for a look, and would overwrite what the whole of it said.
const isWhole = options.only === undefined && options.contenders === undefined

const from = performance.now()
if (chosen.includes("W8")) await Start.prepare(contendersOf("W8"))
const results: Record<string, Array<Record<string, Figures>>> = Object.fromEntries(chosen.map((id) => [id, []]))
for (let round = 0; round < rounds; round++) {
  for (const id of chosen) {
    const figures: Record<string, Figures> = {}
    for (const contender of turned(contendersOf(id), round)) {
      if (isLeftOut(contender, id, round)) continue
      if (process.stderr.isTTY) process.stderr.write(`round ${round + 1}: ${id} ${contender}\u001B[K\r`)
      figures[contender] = measure(contender, id)
    }
    if (Object.keys(figures).length > 0) results[id]?.push(figures)
  }
  console.error(`round ${round + 1} of ${rounds}: ${seconds().toFixed(0)} s so far\u001B[K`)
  // After every round, so that whoever stops early has what there is.
  if (isWhole) writeFileSync(join(import.meta.dirname, "RESULTS.md"), Report.page(measured(round + 1)))
}

function seconds(): number {
  return (performance.now() - from) / 1_000
}

function measured(rounds: number): Report.Measured {
  return { results, given, rounds, seconds: seconds() }
}

const goals = Report.goals(results)
console.log(options.json ? JSON.stringify({ goals, ...measured(rounds) }, null, 2) : Report.page(measured(rounds)))
const missed = goals.flatMap(({ must, work }) =>
  must.filter(({ holds }) => holds === false).map(({ text }) => `${work}: ${text}`)
)
for (const line of missed) console.error(`missed: ${line}`)
process.exit(missed.length === 0 ? 0 : 1)
