// Does everything hold? Types, floors, lint, format, claims, unit and property tests, type tests, and documents that run.
// Ends with one line that counts every test, and non-zero if anything failed.
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { stripVTControlCharacters } from "node:util"
import * as Claims from "./claims.ts"
import * as Docs from "./docs.ts"
import * as Floors from "./floors.ts"

// By its path: `node_modules/.bin/tsc` may be that of the type tests.
const compiler = "node_modules/typescript/bin/tsc"

interface Step {
  readonly name: string
  readonly passed: number
  readonly failed: number
  readonly skipped?: number
  readonly output: string
}

const run = (
  command: string,
  args: ReadonlyArray<string>
): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((done) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
    })
    child.stderr.on("data", (chunk) => {
      output += chunk
    })
    child.on("error", (error) => done({ code: 1, output: String(error) }))
    child.on("close", (code) => done({ code: code ?? 1, output }))
  })

const command = async (name: string, program: string, ...args: ReadonlyArray<string>): Promise<Step> => {
  const { code, output } = await run(program, args)
  return { name, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, output: code === 0 ? "" : output }
}

const listed = (name: string, problems: ReadonlyArray<string>): Step => ({
  name,
  passed: problems.length === 0 ? 1 : 0,
  failed: problems.length === 0 ? 0 : 1,
  output: problems.join("\n")
})

const vitest = async (): Promise<Step> => {
  const folder = mkdtempSync(join(tmpdir(), "toolfold-"))
  const file = join(folder, "report.json")
  const { code, output } = await run("vitest", [
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${file}`
  ])
  const report = await Promise.resolve().then(() => JSON.parse(readFileSync(file, "utf8"))).catch(() => undefined)
  rmSync(folder, { recursive: true, force: true })
  const passed: number = report?.numPassedTests ?? 0
  const failed: number = report?.numFailedTests ?? 0
  // A file that does not load has no failed tests of its own.
  return {
    name: "tests",
    passed,
    failed: code === 0 ? failed : Math.max(1, failed),
    skipped: report?.numPendingTests ?? 0,
    output: code === 0 ? seeds(output) : output
  }
}

const seeds = (output: string): string => output.split("\n").filter((line) => line.includes("seed")).join("\n")

// The compiler of the project has no API for tools, so the type tests bring the one before it.
const tstyche = async (): Promise<Step> => {
  process.env.TSTYCHE_TYPESCRIPT_MODULE = resolve("node_modules/typescript-api/lib/typescript.js")
  const { code, output } = await run("tstyche", [])
  const plain = stripVTControlCharacters(output)
  const tests = /^Assertions:.*$/m.exec(plain)?.[0] ?? /^Tests:.*$/m.exec(plain)?.[0] ?? ""
  const passed = Number(/(\d+) passed/.exec(tests)?.[1] ?? 0)
  const failed = Number(/(\d+) failed/.exec(tests)?.[1] ?? 0)
  return {
    name: "type tests",
    passed,
    failed: code === 0 ? failed : Math.max(1, failed),
    output: code === 0 ? "" : plain
  }
}

const examples = Docs.write()
const claims = Claims.check()
const steps: Array<Step> = [
  listed("floors: imports go down", [...Floors.check("src"), ...Floors.empty("src")]),
  listed(`claims: ${claims.count} behaviours have a test`, claims.problems),
  listed(
    `documents: ${examples.run} examples run, ${examples.checked} more are checked, names are alive`,
    Docs.deadNames()
  )
]
for (const step of steps) report(step)
for (
  const next of [
    () => command("types", process.execPath, compiler, "-p", "."),
    () => command("lint", "oxlint", "--deny-warnings"),
    () => command("format", "dprint", "check"),
    tstyche,
    vitest
  ]
) {
  const step = await next()
  report(step)
  steps.push(step)
}

function report(step: Step): void {
  const skipped = step.skipped ? `, ${step.skipped} skipped (no data)` : ""
  console.log(
    `${step.failed === 0 ? "ok  " : "FAIL"} ${step.name}${
      step.passed + step.failed > 1 ? ` (${step.passed} passed, ${step.failed} failed${skipped})` : ""
    }`
  )
  if (step.output !== "") console.log(step.output.replace(/^/gm, "     "))
}

const total = (count: (step: Step) => number) => steps.reduce((sum, step) => sum + count(step), 0)
const skipped = total((step) => step.skipped ?? 0)
console.log(
  `\n${total((step) => step.passed)} passed, ${total((step) => step.failed)} failed${
    skipped === 0 ? "" : `, ${skipped} skipped`
  }`
)
process.exitCode = total((step) => step.failed) === 0 ? 0 : 1
