// Is recorded traffic understood, and do recorded agent loops end as they did? All 965 exchanges and 240 loops: Chat
// Completions through our own client, Anthropic, OpenAI Responses and Gemini through the AI SDK; the loops of Chat once
// plain and once streamed.
//
//   npm run suite:traffic                    all of it
//   npm run suite:traffic -- --only ID       what has this in its name
//   npm run suite:traffic -- --api gemini    one API
import { parseArgs } from "node:util"
import * as Replay from "./replay.ts"
import * as Data from "./traffic/data.ts"
import { serve } from "./traffic/host.ts"
import * as Play from "./traffic/play.ts"

const { values } = parseArgs({
  options: { only: { type: "string", default: "" }, api: { type: "string", default: "" } }
})
const data = Data.load()
if (data === undefined) {
  console.log(`no recorded traffic at ${Data.root}: set TOOLFOLD_DATA to the folder that holds traffic/loops.json`)
  process.exit(2)
}
const apis = Data.apis.filter((api) => api.includes(values.api))
const wanted = (name: string) => name.includes(values.only)

let passed = 0
let failed = 0
const play = async (
  what: string,
  cases: ReadonlyArray<readonly [name: string, run: () => Promise<string | undefined>]>
): Promise<void> => {
  let good = 0
  for (const [name, run] of cases) {
    const miss = await run()
    if (miss === undefined) good++
    else console.log(`miss  ${name}: ${miss}`)
  }
  if (cases.length > 0) console.log(`${good} of ${cases.length} ${what}`)
  passed += good
  failed += cases.length - good
}

const host = await serve()
for (const api of apis) {
  const exchanges = data.files.filter(wanted).map(data.exchange).filter((exchange) => exchange.api === api)
  const asCases = (some: typeof exchanges) =>
    some.map((exchange) => [exchange.file, () => Play.exchange(host, exchange)] as const)
  await play(`answers of ${api} are heard as they were`, asCases(exchanges.filter(({ status }) => status === 200)))
  await play(`errors of ${api} are typed rightly`, asCases(exchanges.filter(({ status }) => status !== 200)))
  const errors = data.errors.map(Play.synthetic).filter((error) => error.api === api)
  await play(
    `errors of ${api} that nobody recorded say rightly whether to try again`,
    errors.filter(({ name }) => wanted(name)).map((error) => [error.name, () => Play.error(host, error)] as const)
  )
  const loops = data.loops.filter((loop) => loop.api === api && wanted(loop.sequence))
  await play(
    `loops of ${api} end as recorded`,
    loops.map((loop) => [loop.sequence, () => Play.loop(host, loop.sequence, loop.files.map(data.exchange))] as const)
  )
}
host.close()

if (apis.includes("openai-chat")) {
  const replay = await Replay.serve()
  for (const mode of ["plain", "streamed"] as const) {
    const loops = (Replay.loops() ?? []).filter(({ sequence }) => wanted(sequence))
    await play(
      `loops of openai-chat end as recorded when all are ${mode}`,
      loops.map((loop) => [`${mode}  ${loop.sequence}`, () => replay.play(loop, mode === "streamed")] as const)
    )
  }
  replay.close()
}
if (passed + failed === 0) {
  console.log("nothing has that in its name")
  process.exit(2)
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
