// What do the types cost? The compiler's time and its instantiations for a generated project with 100 tools, and for the same
// with a single one: what is more is the tools', the rest is reading the library.
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Cost from "./cost.ts"
import type { Figures } from "./measure.ts"
import { projects } from "./typeProjects.ts"

const out = join(import.meta.dirname, ".out", "types")
const root = resolve(import.meta.dirname, "..")
const compiler = join(root, "node_modules", "typescript", "bin", "tsc")

/** Writes the declarations that a user of toolfold has, so that nobody's sources are checked. */
export const prepare = (): void => {
  rmSync(out, { recursive: true, force: true })
  // Where the sources do not hold just now, there are declarations all the same.
  const options = ["--emitDeclarationOnly", "--noCheck", "--declarationMap", "false", "--sourceMap", "false"]
  execFileSync(
    process.execPath,
    [compiler, "-p", join(root, "tsconfig.build.json"), "--outDir", join(out, "toolfold"), ...options],
    { stdio: ["ignore", "ignore", "inherit"] }
  )
}

const write = (name: string, count: number): string => {
  const folder = join(out, `${name}-${count}`)
  mkdirSync(folder, { recursive: true })
  const project = projects[name]
  if (project === undefined) throw new Error(`there is no project of ${name}`)
  const numbers = Array.from({ length: count }, (_, at) => at)
  const imports: Array<string> = []
  for (let at = 0; at < count; at += 10) {
    const ten = numbers.slice(at, at + 10)
    writeFileSync(join(folder, `tools_${at}.ts`), project.tools(ten))
    const named = ten.flatMap((n) => name === "effect-ai" ? [`tool_${n}`, `handler_${n}`] : [`tool_${n}`])
    imports.push(`import { ${named.join(", ")} } from "./tools_${at}.ts"`)
  }
  writeFileSync(join(folder, "main.ts"), project.main(imports.join("\n"), numbers))
  const compilerOptions = { customConditions: [], paths: { "toolfold/*": ["../toolfold/*.d.ts"] } }
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../../../../tsconfig.json", compilerOptions, include: ["*.ts"] })
  )
  return folder
}

/** One check by one thread, since with several the work is done more than once; times in microseconds. */
const check = (folder: string) => {
  const command = [process.execPath, compiler, "-p", folder, "--extendedDiagnostics", "--singleThreaded"]
  // The shell knows what its children cost, which Node does not say.
  const output = execFileSync("sh", ["-c", `"$@" || exit; times`, "sh", ...command], { encoding: "utf8" })
  const said = (what: string): number => Number(new RegExp(`^${what}:\\s+([\\d.]+)`, "m").exec(output)?.[1])
  const [user = NaN, system = NaN] = [...(output.trim().split("\n").at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)]
    .map(([, minutes, seconds]) => (Number(minutes) * 60 + Number(seconds)) * 1_000_000)
  return { instantiations: said("Instantiations"), check: said("Check time") * 1_000_000, cpu: user + system }
}

export const measure = (name: string): Figures => {
  const found: Figures = {}
  for (const [count, suffix, times] of [[100, "", 3], [1, ", 1 tool", 1]] as const) {
    const folder = write(name, count)
    const checks = Array.from({ length: times }, () => check(folder))
    found[`instantiations${suffix}`] = checks[0]?.instantiations ?? NaN
    for (const key of ["check", "cpu"] as const) {
      const { high, low, middle } = Cost.quartiles(checks.map((each) => each[key]))
      Object.assign(found, {
        [`${key}${suffix}`]: middle,
        [`${key}${suffix} low`]: low,
        [`${key}${suffix} high`]: high
      })
    }
  }
  return found
}
