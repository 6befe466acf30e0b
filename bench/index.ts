// Are the contenders installed? If not, installs them from their lock; then runs the benchmark.
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"

if (!existsSync(join(import.meta.dirname, "node_modules", ".package-lock.json"))) {
  console.error("installing the contenders, once")
  execFileSync("npm", ["ci", "--prefix", import.meta.dirname, "--no-audit", "--no-fund"], {
    // What is said on the standard output is the benchmark's.
    stdio: ["ignore", "ignore", "inherit"]
  })
}
await import("./run.ts")
