// Builds `dist`: JavaScript, declarations and maps by the compiler, and marks for bundlers.
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { markPure } from "./pure.ts"

rmSync("dist", { recursive: true, force: true })
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { stdio: "inherit" })
markPure("dist")
