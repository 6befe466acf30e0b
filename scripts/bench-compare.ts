// Did a turn or a call get dearer? The same workloads on this tree and on another revision, in fresh processes, rounds
// interleaved: CPU time, the median ratio, and its spread.
//
//   npm run bench:compare -- REF [--rounds 10]
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"

const { positionals: [ref], values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "10" } }
})
const rounds = Number(values.rounds)
if (ref === undefined || !(rounds > 0)) {
  console.error("usage: npm run bench:compare -- REF [--rounds 10]")
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), "toolfold-bench-"))
const there = join(folder, "tree")
try {
  execFileSync("git", ["worktree", "add", "--detach", there, ref], { stdio: ["ignore", "ignore", "pipe"] })
} catch (error) {
  console.error(
    `error: there is no revision ${ref}: ${(error as { readonly stderr: Buffer }).stderr.toString().trim()}`
  )
  process.exit(2)
}
symlinkSync(resolve("node_modules"), join(there, "node_modules"))

const round = (tree: string): { readonly [workload: string]: number } =>
  JSON.parse(execFileSync(process.execPath, ["scripts/bench-workload.ts", tree], { encoding: "utf8" }))

const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}

try {
  const pairs = Array.from({ length: rounds }, (_, at) => {
    // Whoever runs second finds a warmer machine, so the order changes every round.
    const first = round(at % 2 === 0 ? there : resolve("."))
    const second = round(at % 2 === 0 ? resolve(".") : there)
    process.stderr.write(`round ${at + 1} of ${rounds}\r`)
    return at % 2 === 0 ? { before: first, after: second } : { before: second, after: first }
  })
  console.log(`CPU time in microseconds, median of ${rounds} rounds; ratio = this tree / ${ref}`)
  for (const workload of Object.keys(pairs[0]?.after ?? {})) {
    const ratios = pairs.map(({ after, before }) => (after[workload] ?? NaN) / (before[workload] ?? NaN))
    const [before, after] = (["before", "after"] as const).map((side) =>
      median(pairs.map((pair) => pair[side][workload] ?? NaN)).toFixed(2)
    )
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
    console.log(`${workload.padEnd(34)} ${before} -> ${after}   ratio ${median(ratios).toFixed(2)} (${spread})`)
  }
} finally {
  execFileSync("git", ["worktree", "remove", "--force", there])
  rmSync(folder, { recursive: true, force: true })
}
