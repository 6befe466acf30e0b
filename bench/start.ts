// What does the start of a minimal agent cost? Its bundle's size, and the CPU time of a process that imports the agent and
// runs it once, from its modules and from its bundle, over that of a process that does nothing.
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { gzipSync } from "node:zlib"
import { markPure } from "../scripts/pure.ts"
import type { Figures } from "./measure.ts"

const here = import.meta.dirname
const out = join(here, ".out")
const watch = join(out, "cpu.mjs")
const idle = join(out, "idle.mjs")

const bundleOf = (name: string): string => join(out, `${name}.min.mjs`)
const moduleOf = (name: string): string => join(out, "modules", "bench", "minimal", `${name}.js`)

/** Compiles the minimal agents, as they would be installed, and bundles each. */
export const prepare = async (names: ReadonlyArray<string>): Promise<void> => {
  mkdirSync(out, { recursive: true })
  writeFileSync(
    watch,
    `process.on("exit", () => { const { user, system } = process.cpuUsage(); console.log("cpu=" + (user + system)) })`
  )
  writeFileSync(idle, `console.log("done")`)
  const compiler = resolve(here, "..", "node_modules", "typescript", "bin", "tsc")
  execFileSync(process.execPath, [compiler, "-p", join(here, "tsconfig.minimal.json")], { stdio: "inherit" })
  // Ours as it is published, which is what a bundler gets of everybody else.
  markPure(join(out, "modules", "src"))
  await Promise.all(names.map((name) =>
    build({
      entryPoints: [moduleOf(name)],
      outfile: bundleOf(name),
      bundle: true,
      minify: true,
      format: "esm",
      platform: "node",
      target: "node22",
      logLevel: "error",
      banner: {
        js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`
      }
    })
  ))
}

const startOf = (file: string): number => {
  const output = execFileSync(process.execPath, ["--import", watch, file], { encoding: "utf8" })
  if (!output.startsWith("done")) throw new Error(`${file} said ${output}`)
  return Number(/cpu=(\d+)/.exec(output)?.[1])
}

/** The least of five starts of each, one of each in turn. */
export const measure = (names: ReadonlyArray<string>): ReadonlyArray<Figures> => {
  const files = [idle, ...names.flatMap((name) => [moduleOf(name), bundleOf(name)])]
  const least = new Map(files.map((file) => [file, Infinity]))
  const of = (file: string): number => least.get(file) ?? Infinity
  for (let at = 0; at < 5; at++) for (const file of files) least.set(file, Math.min(of(file), startOf(file)))
  return names.map((name) => {
    const bundle = readFileSync(bundleOf(name))
    return {
      "import and run": of(moduleOf(name)) - of(idle),
      "bundle starts": of(bundleOf(name)) - of(idle),
      "bundle bytes": bundle.length,
      "bundle bytes gz": gzipSync(bundle, { level: 9 }).length
    }
  })
}
