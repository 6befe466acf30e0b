// Is the package what a consumer expects? Packs it, lints what is packed, installs it in an empty project, and
// type-checks and runs README's first example there.
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

const bin = resolve("node_modules/.bin")
const compiler = resolve("node_modules/typescript/bin/tsc")
const manifest: {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly devDependencies: { readonly [name: string]: string }
} = JSON.parse(readFileSync("package.json", "utf8"))

let passed = 0
let failed = 0
const step = (name: string, run: () => string | void): void => {
  let problem: string | undefined
  try {
    problem = run() ?? undefined
  } catch (error) {
    const { message, stderr, stdout } = error as {
      readonly message: string
      readonly stdout?: string
      readonly stderr?: string
    }
    problem = [stdout, stderr].filter((text) => text !== undefined && text !== "").join("\n") || message
  }
  if (problem === undefined) passed++
  else failed++
  console.log(`${problem === undefined ? "ok  " : "FAIL"} ${name}`)
  if (problem !== undefined) console.log(problem.replace(/^/gm, "     "))
}
const call = (command: string, args: ReadonlyArray<string>, cwd?: string): string =>
  execFileSync(command, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd })
  })

const folder = mkdtempSync(join(tmpdir(), "toolfold-package-"))
const tarball = join(folder, `toolfold-${manifest.version}.tgz`)

step("builds", () => void call(process.execPath, ["scripts/build.ts"]))
step("packs", () => void call("npm", ["pack", "--pack-destination", folder]))
step("publint finds nothing", () => void call(join(bin, "publint"), ["run", tarball, "--strict"]))
step(
  "its types resolve for whoever imports it (attw)",
  () => void call(join(bin, "attw"), [tarball, "--profile", "esm-only"])
)

const [, code = "", prints = ""] =
  /```ts run\n([\s\S]*?)```\s*```text output\n([\s\S]*?)```/.exec(readFileSync("README.md", "utf8")) ?? []
step("README begins with an example of 13 lines and its output", () => {
  const lines = code.split("\n").filter((line) => line.trim() !== "").length
  return lines === 13 && prints !== "" ? undefined : `the example has ${lines} lines`
})

const project = join(folder, "project")
mkdirSync(project)
writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
writeFileSync(join(project, "example.ts"), code)
writeFileSync(
  join(project, "tsconfig.json"),
  JSON.stringify({
    compilerOptions: {
      target: "ES2022",
      module: "NodeNext",
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: true,
      types: ["node"],
      lib: ["ES2024", "DOM", "DOM.Iterable"]
    },
    files: ["example.ts"]
  })
)
step("installs in an empty project, with effect as its only peer", () => {
  const wanted = ["effect", "@types/node"].map((name) => `${name}@${manifest.devDependencies[name]}`)
  call("npm", ["install", "--no-audit", "--no-fund", tarball, ...wanted], project)
  const installed = call("npm", ["ls", "--omit=dev", "--parseable", "--all"], project).trim().split("\n").length - 1
  return installed > 12 ? `${installed} packages were installed` : undefined
})
step("README's example type-checks there", () => void call(process.execPath, [compiler, "-p", "."], project))
step("README's example prints there what README says", () => {
  const out = call(process.execPath, ["example.ts"], project)
  return out.trim() === prints.trim() ? undefined : `it printed:\n${out}`
})
step("its internals are closed there", () => {
  const opens = "import('toolfold/internal/run').then(() => process.exit(1), () => process.exit(0))"
  call(process.execPath, ["-e", opens], project)
})

rmSync(folder, { recursive: true, force: true })
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
