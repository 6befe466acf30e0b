// Do recorded agent loops end as they were recorded? All 114 of Chat Completions, once plain and once streamed.
//
//   npm run suite:traffic               all loops in both modes
//   npm run suite:traffic -- --only ID  those with a part of their name
import { parseArgs } from "node:util"
import * as Replay from "./replay.ts"

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } })
const loops = Replay.loops()?.filter(({ sequence }) => sequence.includes(values.only))
if (loops === undefined || loops.length === 0) {
  console.log(`no recorded loops at ${Replay.root}: set TOOLFOLD_DATA to the folder that holds traffic/loops.json`)
  process.exit(2)
}

const replay = await Replay.serve()
let passed = 0
for (const mode of ["plain", "streamed"] as const) {
  let good = 0
  for (const loop of loops) {
    const miss = await replay.play(loop, mode === "streamed")
    if (miss === undefined) good++
    else console.log(`miss  ${mode}  ${loop.sequence}: ${miss}`)
  }
  console.log(`${mode}: ${good} of ${loops.length} loops end as recorded`)
  passed += good
}
replay.close()
const failed = 2 * loops.length - passed
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
