// Did anything get dearer? Every workload of the benchmark on this tree and on another revision's sources, with the harness
// of this tree for both, in fresh processes, rounds interleaved: for each figure the median of the ratios and their spread.
//
//   npm run bench:compare -- REF [--only W2,W3] [--rounds 5]
//   npm run bench:compare -- REF --together [--rounds 5]     turns and calls alone, in one process: finer, where others work too
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative, resolve } from "node:path"
import { parseArgs } from "node:util"
import type { Figures } from "../bench/measure.ts"

/** What is measured, and on which of our contenders. */
const workloads: Readonly<Record<string, ReadonlyArray<string>>> = {
  W1: ["ours", "ours-plain"],
  W2: ["ours", "ours-plain"],
  W3: ["ours"],
  W4: ["ours"],
  W5: ["ours"],
  W6: ["ours"],
  W7: ["ours", "ours-onText"],
  W8: ["ours"],
  W9: ["ours"],
  W10: ["ours"],
  W11: ["ours"]
}

const { positionals: [ref], values } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    only: { type: "string" },
    together: { type: "boolean", default: false }
  }
})
const rounds = Number(values.rounds)
const chosen = values.only?.split(",") ?? Object.keys(workloads)
const unknown = chosen.filter((id) => !(id in workloads))
if (ref === undefined || !(rounds > 0) || unknown.length > 0) {
  console.error("usage: npm run bench:compare -- REF [--only W2,W3 | --together] [--rounds 5]")
  if (unknown.length > 0) console.error(`unknown: ${unknown.join(", ")}`)
  process.exit(2)
}

const here = resolve(import.meta.dirname, "..")
const bench = join(here, "bench")
if (!existsSync(join(bench, "node_modules"))) {
  execFileSync("npm", ["ci", "--prefix", bench, "--no-audit", "--no-fund"], { stdio: ["ignore", "ignore", "inherit"] })
}

const folder = mkdtempSync(join(tmpdir(), "toolfold-bench-"))
const there = join(folder, "tree")
const checkOut = (): void => {
  try {
    execFileSync("git", ["worktree", "add", "--detach", there, ref], {
      cwd: here,
      stdio: ["ignore", "ignore", "pipe"]
    })
  } catch (error) {
    const said = (error as { readonly stderr: Buffer }).stderr.toString().trim()
    console.error(`error: there is no revision ${ref}: ${said}`)
    process.exit(2)
  }
  for (const part of ["bench", "scripts"]) {
    rmSync(join(there, part), { recursive: true, force: true })
    cpSync(join(here, part), join(there, part), {
      recursive: true,
      filter: (path) => !/^(node_modules|\.out)/.test(relative(join(here, part), path))
    })
  }
  symlinkSync(join(here, "node_modules"), join(there, "node_modules"))
  symlinkSync(join(bench, "node_modules"), join(there, "bench", "node_modules"))
}

type Side = "before" | "after"
const trees: Readonly<Record<Side, string>> = { before: there, after: here }

const failures = new Map<string, string>()

const measure = (side: Side, contender: string, id: string): Figures => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [
      "--expose-gc",
      "--conditions=@toolfold/source",
      join(trees[side], "scripts", "bench-workload.ts"),
      contender,
      id
    ],
    { encoding: "utf8", cwd: trees[side], env: { ...process.env, NODE_ENV: "production" }, timeout: 120_000 }
  )
  if (status === 0) return JSON.parse(stdout.slice(stdout.lastIndexOf("\n")))
  const why = stderr.split("\n").find((line) => line.includes("Error")) ?? "did not end in time"
  failures.set(`${id} ${contender}, ${side === "before" ? ref : "this tree"}`, why)
  return {}
}

const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] ?? NaN) + (sorted[sorted.length >> 1] ?? NaN)) / 2
}

interface Pair {
  readonly before: Figures
  readonly after: Figures
}

const ratioOf = (pairs: ReadonlyArray<Pair>, key: string): string => {
  const ratios = pairs.map(({ after, before }) => (after[key] ?? NaN) / (before[key] ?? NaN))
    .filter((ratio) => Number.isFinite(ratio) && ratio > 0)
  if (ratios.length === 0) return ""
  return `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`
}

/** Quartiles are for the page, and wall time says less than CPU time does. */
const isShown = (key: string): boolean => !/ (low|high)$|wall/.test(key)

const show = (name: string, pairs: ReadonlyArray<Pair>): void => {
  const keys = new Set(pairs.flatMap(({ after, before }) => [...Object.keys(before), ...Object.keys(after)]))
  for (const key of [...keys].filter(isShown)) {
    const [before, after] = (["before", "after"] as const).map((side) => {
      const found = median(pairs.flatMap((pair) => pair[side][key] ?? []))
      return Number.isNaN(found) ? "–" : found.toFixed(Math.abs(found) < 100 ? 2 : 0)
    })
    console.log(
      `${`${name} ${key}`.padEnd(36)} ${String(before).padStart(10)} → ${String(after).padStart(10)}   ${
        ratioOf(pairs, key)
      }`
    )
  }
}

/** Both trees in one process, each the first of it in half of the rounds. */
const together = (turns: number, calls: number): void => {
  const medians = Array.from({ length: rounds }, (_, round) => {
    const isTurned = round % 2 === 1
    const args = [isTurned ? here : there, isTurned ? there : here, String(turns), String(calls)]
    const output = execFileSync(
      process.execPath,
      ["--conditions=@toolfold/source", join(here, "scripts", "bench-together.ts"), ...args],
      {
        encoding: "utf8",
        cwd: here,
        env: { ...process.env, NODE_ENV: "production" },
        stdio: ["ignore", "pipe", "ignore"]
      }
    )
    const ratio = median(JSON.parse(output))
    return isTurned ? 1 / ratio : ratio
  })
  const name = `${turns} turns, calls each: ${calls}`
  console.log(
    `${name.padEnd(36)} ${median(medians).toFixed(3)}   (${medians.map((ratio) => ratio.toFixed(3)).join(" ")})`
  )
}

const jobs = chosen.flatMap((id) => (workloads[id] ?? []).map((contender) => ({ id, contender })))
const found = new Map<string, Array<Pair>>()
// An interruption must not leave the worktree behind either.
process.once("SIGINT", () => process.exit(130))
process.once("exit", () => {
  spawnSync("git", ["worktree", "remove", "--force", there], { cwd: here })
  rmSync(folder, { recursive: true, force: true })
})
checkOut()
if (values.together) {
  console.log(
    `time of this tree over ${ref}, in one process; the median of ${rounds} rounds, each a median of 150 pairs`
  )
  for (const [turns, calls] of [[10, 1], [100, 1], [5, 8], [5, 32], [5, 128]] as const) together(turns, calls)
  process.exit(0)
}
for (let round = 0; round < rounds; round++) {
  for (const { contender, id } of jobs) {
    const name = `${id} ${contender}`
    if ([...failures.keys()].some((key) => key.startsWith(`${name},`))) continue
    if (process.stderr.isTTY) process.stderr.write(`round ${round + 1} of ${rounds}: ${name}\u001B[K\r`)
    // Whoever runs second finds a warmer machine, so the order changes every round.
    const order: ReadonlyArray<Side> = round % 2 === 0 ? ["before", "after"] : ["after", "before"]
    const pair: Record<Side, Figures> = { before: {}, after: {} }
    for (const side of order) pair[side] = measure(side, contender, id)
    found.set(name, [...found.get(name) ?? [], pair])
  }
}
console.log(`median of ${rounds} rounds, ${ref} → this tree; the ratio of a round, its median and its spread`)
console.log(`times are µs of CPU a unit of the workload (bench/RESULTS.md says which), sizes bytes`)
for (const [name, pairs] of found) show(name, pairs)
for (const [what, why] of failures) console.log(`not measured: ${what}: ${why}`)
