// What does an agent's loop cost in toolfold and elsewhere? Every workload on every contender in a fresh process, rounds
// interleaved; prints the table of goals, writes RESULTS.md, and ends with 1 if a must does not hold.
//
//   npm run bench -- [--only W2,W3] [--rounds 3] [--contenders ours,effect] [--json]
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as Goals from "./goals.ts"
import type { Figures } from "./measure.ts"
import * as Start from "./start.ts"

const main = ["zod", "effect", "effect-ai", "ai-sdk", "ours"]
const slow = ["openai-agents", "langchain", "mastra"]
const all = [...main, ...slow]

interface Workload {
  readonly what: string
  readonly unit: string
  readonly contenders: ReadonlyArray<string>
}

const workloads: Readonly<Record<string, Workload>> = {
  W1: { what: "one turn without a call", unit: "a run", contenders: [...all, "ours-plain"] },
  W2: {
    what: "10 turns with one call each, and a closing one",
    unit: "a turn",
    contenders: [...all, "effect-ai-deferred", "ours-plain"]
  },
  W3: { what: "5 turns with so many calls each", unit: "a call", contenders: all },
  W4: { what: "200 tools", unit: "a definition, a turn", contenders: all },
  W5: { what: "10,000 runs at once with a tool of 50 ms", unit: "a run", contenders: all },
  W6: { what: "so many turns with one call each", unit: "a turn", contenders: all },
  W7: { what: "2,000 text deltas and a call", unit: "a run", contenders: [...all, "ours-onText"] },
  W8: { what: "start of a minimal agent", unit: "a process, a file", contenders: all },
  W9: {
    what: "1,000 calls that never end, 10 ms each",
    unit: "a run",
    contenders: ["zod", "effect", "ours", "ai-sdk", "openai-agents", "langchain"]
  }
}

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

/** The slow ones are far off, and what W9 counts does not scatter: once is enough. */
const isLeftOut = (contender: string, id: string, round: number): boolean =>
  round > 0 && (slow.includes(contender) || id === "W9")

const turned = <A>(list: ReadonlyArray<A>, by: number): ReadonlyArray<A> => {
  const at = by % Math.max(1, list.length)
  return [...list.slice(at), ...list.slice(0, at)]
}

const contendersOf = (id: string): ReadonlyArray<string> =>
  (workloads[id]?.contenders ?? []).filter((name) => wanted.has(name))

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
  console.error(`round ${round + 1} of ${rounds}: ${((performance.now() - from) / 1_000).toFixed(0)} s so far\u001B[K`)
}
const seconds = (performance.now() - from) / 1_000

const mark = ({ holds, text }: Goals.Verdict): string => `${holds === undefined ? "?" : holds ? "✓" : "✗"} ${text}`

const goals = Goals.rows(results)
const measured = goals.filter(({ must, ours }) => ours !== "–" && must.length > 0)

const table = (head: ReadonlyArray<string>, lines: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

const summary = table(
  ["work", "hand-written zod", "hand-written Effect", "effect/ai loop", "best peer", "ours", "must", "aim"],
  measured.map((row) => [
    row.work,
    row.zod,
    row.effect,
    row.effectAi,
    row.peer,
    row.ours,
    row.must.map(mark).join("<br>"),
    row.aim.map(mark).join("<br>")
  ])
)

const figure = (key: string): (value: number) => string =>
  key.includes("bytes") || key.startsWith("heap")
    ? Goals.size
    : /answered|stopped|running|left$|^runs$|made/.test(key)
    ? String
    : Goals.time

const spread = (values: ReadonlyArray<number>, show: (value: number) => string): string =>
  values.length === 0
    ? "–"
    : values.length === 1
    ? show(Goals.median(values))
    : `${show(Goals.median(values))} (${show(Math.min(...values))}–${show(Math.max(...values))})`

const detail = (id: string): string => {
  const { unit, what } = workloads[id] ?? { unit: "", what: "" }
  const runs = results[id] ?? []
  const keys = [...new Set(runs.flatMap((round) => Object.values(round).flatMap((figures) => Object.keys(figures))))]
  const lines = contendersOf(id).map((contender) => [
    contender,
    ...keys.map((key) => {
      const ratios = Goals.ratios(runs, key, contender, "ours").filter(Number.isFinite)
      const against = contender === "ours" || ratios.length === 0 || figure(key) === String
        ? ""
        : `; ×${Goals.median(ratios).toPrecision(2)}`
      return `${spread(Goals.valuesOf(runs, contender, key), figure(key))}${against}`
    })
  ])
  return `## ${id}: ${what}\n\nCPU and wall time ${unit}.\n\n${table(["", ...keys], lines)}\n`
}

const report = `# What an agent's loop costs

Written by \`npm run bench\`: Node ${process.versions.node}, ${
  rounds === 1 ? "one round" : `${rounds} rounds (one for ${slow.join(", ")} and W9)`
}, ${
  seconds.toFixed(0)
} s. A model without latency; the same work is checked for the same result before it is timed. Times are
CPU time of a fresh process a contender and workload, warm, medians with the least and the most; ratios (×) are medians of the
ratios to ours within a round. A dash: not measured, since it has none or would take longer than five seconds.

${summary}

${chosen.map(detail).join("\n")}${
  given.length === 0 ? "" : `\n## Given up\n\n${given.map((line) => `- ${line}\n`).join("")}`
}`

// A part of the work is for a look, and would overwrite what the whole of it said.
if (options.only === undefined && options.contenders === undefined) {
  writeFileSync(join(import.meta.dirname, "RESULTS.md"), report)
}
console.log(options.json ? JSON.stringify({ goals: measured, results, given, seconds }, null, 2) : report)
const missed = measured.flatMap(({ must, work }) =>
  must.filter(({ holds }) => holds === false).map(({ text }) => `${work}: ${text}`)
)
for (const line of missed) console.error(`missed: ${line}`)
process.exit(missed.length === 0 ? 0 : 1)
