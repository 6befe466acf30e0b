// Is recorded traffic understood, and do recorded agent loops end as they did? All 965 exchanges and 240 loops: Chat
// Completions through our own client, Anthropic, OpenAI Responses and Gemini through the AI SDK; the loops of Chat once
// plain and once streamed. And is what we send right? Every request against its API's rules, those of Chat against the
// recorded ones.
//
//   npm run suite:traffic                    all of it
//   npm run suite:traffic -- --only ID       what has this in its name
//   npm run suite:traffic -- --api gemini    one API
//
// What cannot be right because of the recording is written down in scripts/known-misses, each with its reason: a miss that
// is not there fails, and so does one that is there and passes. What is different on purpose is in scripts/traffic/alike.ts.
import { parseArgs } from "node:util"
import * as Replay from "./replay.ts"
import * as Schemas from "./schemas.ts"
import * as Alike from "./traffic/alike.ts"
import * as Data from "./traffic/data.ts"
import { serve } from "./traffic/host.ts"
import * as Play from "./traffic/play.ts"
import * as Requests from "./traffic/requests.ts"
import * as Sending from "./traffic/sending.ts"

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
const knownMisses = Schemas.knownMisses("traffic")

let passed = 0
let failed = 0
const known: Array<string> = []

interface Case {
  readonly name: string
  readonly run: () => Promise<string | undefined> | string | undefined
}

const play = async (what: string, cases: ReadonlyArray<Case>): Promise<void> => {
  const misses: Array<Schemas.Miss> = []
  for (const { name, run } of cases) {
    const miss = await run()
    if (miss !== undefined) misses.push({ id: name, what: miss })
  }
  const { gone, unexpected } = Schemas.compare(knownMisses, misses)
  const stale = gone.filter((id) => cases.some(({ name }) => name === id))
  for (const { id, what } of misses) {
    const reason = Schemas.reasonOf(knownMisses, id)
    console.log(reason === undefined ? `FAIL   ${id}: ${what}` : `known  ${id}: ${reason}`)
    if (reason !== undefined) known.push(reason)
  }
  for (const id of stale) console.log(`FAIL   ${id}: passes, so it is a known miss no more`)
  if (cases.length > 0) console.log(`${cases.length - misses.length} of ${cases.length} ${what}`)
  passed += cases.length - misses.length - stale.length
  failed += unexpected.length + stale.length
}

const host = await serve()
for (const api of apis) {
  const exchanges = data.files.filter(wanted).map(data.exchange).filter((exchange) => exchange.api === api)
  const asCases = (some: typeof exchanges): ReadonlyArray<Case> =>
    some.map((exchange) => ({ name: exchange.file, run: () => Play.exchange(host, exchange) }))
  await play(`answers of ${api} are heard as they were`, asCases(exchanges.filter(({ status }) => status === 200)))
  await play(`errors of ${api} are typed rightly`, asCases(exchanges.filter(({ status }) => status !== 200)))
  const errors = data.errors.map(Play.synthetic).filter((error) => error.api === api)
  await play(
    `errors of ${api} that nobody recorded say rightly whether to try again`,
    errors.filter(({ name }) => wanted(name)).map((error) => ({ name: error.name, run: () => Play.error(host, error) }))
  )
  const sentInLoops: Array<Requests.Sent> = []
  const loops = data.loops.filter((loop) => loop.api === api && wanted(loop.sequence))
  const playLoop = async ({ files, sequence }: Data.Loop) => {
    const records = files.map(data.exchange)
    const miss = await Play.loop(host, sequence, records)
    const differences = Alike.inLoop(records[0]?.request ?? {})
    // A loop that broke off says so itself.
    for (const [at, recorded] of records.entries()) {
      const body = host.sent[at]
      if (miss === undefined || body !== undefined) sentInLoops.push({ body, recorded, differences })
    }
    return miss
  }
  await play(
    `loops of ${api} end as recorded`,
    loops.map((loop) => ({ name: loop.sequence, run: () => playLoop(loop) }))
  )

  const sent: Array<Requests.Sent> = []
  for (const recorded of exchanges) {
    sent.push({ body: await Sending.send(host, recorded), recorded, differences: Alike.deliberate })
  }
  const each = (some: typeof sent, before: string, run: (one: Requests.Sent) => string | undefined) =>
    some.map((one): Case => ({ name: `${before} ${one.recorded.file}`, run: () => run(one) }))
  await play(`requests of ${api} keep its rules`, each(sent, "rules of", Requests.broken))
  await play(`requests in loops of ${api} keep its rules`, each(sentInLoops, "rules of a loop", Requests.broken))
  if (api === "openai-chat") {
    await play(`requests of ${api} are as recorded`, each(sent, "request", Requests.difference))
    await play(
      `requests in loops of ${api} are as recorded`,
      each(sentInLoops, "request of a loop", Requests.difference)
    )
    for (const [count, { what, why }] of Requests.needed([...sent, ...sentInLoops])) {
      if (count > 0) console.log(`  on purpose in ${count}: ${what} (${why})`)
    }
  }
}
host.close()

if (apis.includes("openai-chat")) {
  const replay = await Replay.serve()
  for (const mode of ["plain", "streamed"] as const) {
    const loops = (Replay.loops() ?? []).filter(({ sequence }) => wanted(sequence))
    await play(
      `loops of openai-chat end as recorded when all are ${mode}`,
      loops.map((loop) => ({ name: `${mode} ${loop.sequence}`, run: () => replay.play(loop, mode === "streamed") }))
    )
  }
  replay.close()
}
if (passed + failed + known.length === 0) {
  console.log("nothing has that in its name")
  process.exit(2)
}
console.log(known.length === 1 ? "1 known miss" : `${known.length} known misses`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
