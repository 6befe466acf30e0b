// What does one workload cost on one contender? Prints the figures as JSON; times are microseconds, sizes bytes.
//
//   node --expose-gc bench/measure.ts CONTENDER WORKLOAD [look]
import * as Baton from "./baton.ts"
import * as Cost from "./cost.ts"
import * as Work from "./work.ts"
import { slow } from "./workloads.ts"

/** A figure with its quartiles, where it has any, under the same key with `low` and `high`. */
export type Figures = Record<string, number>

const [name = "", workload = "", look] = process.argv.slice(2)
const isLook = look === "look"
// The goals compare us with it, and it is three times as dear before it is warm.
const isBest = name === "ai-sdk"
const isSlow = slow.includes(name)

const contenderOf = async (): Promise<Work.Contender> => (await import(`./contenders/${name}.ts`)).contender

/** Defines the work and does it once, to see that it is the same for all. */
const checked = async (options: Partial<Work.Spec>) => {
  const spec = Work.spec(options)
  const seen = Work.nothingSeen()
  const run = await (await contenderOf()).define(spec, seen)
  const spent = Cost.clock()
  const faults = Work.faults(spec, seen, await run())
  if (faults.length > 0) throw new Error(`${name} ${JSON.stringify(options)}: ${faults.join("; ")}`)
  return { run, seen, first: spent() }
}

let isFirst = true

const limits = (warmUp: number): Cost.Limits => ({
  warmUp: warmUp * (isLook && !isBest ? 0.67 : 1) * (isSlow ? 0.33 : 1),
  slices: isSlow || isLook ? 5 : 11,
  least: isSlow ? 1 : 3
})

/** Gets a run warm; the first gets the process warm. */
const warm = (run: Work.Run, first: Cost.Spent): Promise<Cost.Warm> => {
  const warmUp = isFirst ? 3_000_000 : 400_000
  isFirst = false
  return Cost.warm(run, first, limits(warmUp))
}

const costsOf = (runs: ReadonlyArray<Cost.Warm>): Promise<ReadonlyArray<Cost.Cost>> => Cost.costs(runs, limits(0))

const figures = (key: string, { high, low, middle }: Cost.Quartiles, units: number): Figures => ({
  [key]: middle / units,
  [`${key} low`]: low / units,
  [`${key} high`]: high / units
})

const both = (key: string, { cpu, wall }: Cost.Cost, units: number): Figures => ({
  ...figures(key, cpu, units),
  ...figures(`${key} wall`, wall, units)
})

const perUnit = async (options: Partial<Work.Spec>, units: number, key: string): Promise<Figures> => {
  const { first, run } = await checked(options)
  const [cost] = await costsOf([await warm(run, first)])
  return cost === undefined ? {} : both(key, cost, units)
}

interface Sized {
  readonly run: Work.Run
  readonly first: Cost.Spent
  readonly units: number
  readonly figures?: Figures
}

/** The costs of growing work, for as long as a run promises to end within so many seconds if it grows by its square. */
const growing = async (
  sizes: ReadonlyArray<number>,
  work: (size: number) => Promise<Sized>,
  { isTogether = true, patience = isLook ? 1.5 : isSlow ? 4 : 6 } = {}
): Promise<Figures> => {
  const found: Array<Sized & { readonly size: number; readonly warm: Cost.Warm }> = []
  const costs: Array<Cost.Cost> = []
  for (const size of sizes) {
    const last = found.at(-1)
    if (last !== undefined && last.warm.known * (size / last.size) ** 2 > patience * 1_000_000) break
    const sized = await work(size)
    const ready = await warm(sized.run, sized.first)
    found.push({ ...sized, size, warm: ready })
    if (!isTogether) costs.push(...await costsOf([ready]))
  }
  if (isTogether) costs.push(...await costsOf(found.map(({ warm }) => warm)))
  return Object.assign(
    {},
    ...found.map(({ figures, size, units }, at) => {
      const cost = costs[at]
      return { ...cost === undefined ? {} : both(String(size), cost, units), ...figures }
    })
  )
}

const grown =
  (options: (size: number) => Partial<Work.Spec>, units: (size: number) => number) => async (size: number) => ({
    ...await checked(options(size)),
    units: units(size)
  })

const manyTools = async (): Promise<Figures> => {
  const contender = await contenderOf()
  const many = Work.spec({ turns: 10, tools: 200 })
  const schemas = new Set<object>()
  const counted = await contender.define(many, { ...Work.nothingSeen(), schemas })
  for (let at = 0; at < 3; at++) await counted()
  const fresh = []
  for (let at = 0; at < 3; at++) {
    const defining = Cost.clock()
    const run = await contender.define({ ...many, turns: 0 }, Work.nothingSeen())
    const define = defining().cpu
    const asking = Cost.clock()
    await run()
    fresh.push({ define, first: asking().cpu })
  }
  const [later, one] = [await checked(many), await checked({ turns: 10 })]
  const [spent, alone] = await costsOf([await warm(later.run, later.first), await warm(one.run, one.first)])
  return {
    ...schemas.size > 0 ? { "schemas made": schemas.size } : {},
    ...figures("define", Cost.quartiles(fresh.map(({ define }) => define)), 1),
    ...figures("first", Cost.quartiles(fresh.map(({ first }) => first)), 1),
    ...spent === undefined ? {} : figures("later", spent.cpu, 11),
    ...alone === undefined ? {} : figures("later, 1 tool", alone.cpu, 11)
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

const atOnce = (run: Work.Run, count: number): Promise<ReadonlyArray<string>> =>
  Promise.all(Array.from({ length: count }, run))

const heap = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const parked = async (): Promise<Figures> => {
  const { run, seen } = await checked({ body: "gate" })
  await atOnce(run, 200)
  const runs = isSlow ? 1_000 : 2_000
  const before = heap()
  seen.started = 0
  const gate = Promise.withResolvers<void>()
  seen.gate = gate.promise
  const ended = atOnce(run, runs).then((texts) => texts.every((text) => text === Work.answer))
  while (seen.started < runs) await new Promise((done) => setImmediate(done))
  const during = heap()
  gate.resolve()
  if (!await ended) throw new Error(`${name}: a run ended otherwise`)
  seen.gate = Promise.resolve()
  await new Promise((done) => setTimeout(done, 50))
  return { heap: (during - before) / runs, "heap left": (heap() - before) / runs }
}

const crowd = async (): Promise<Figures> => {
  const { run } = await checked({ body: "50 ms" })
  const few = Cost.clock()
  const most = isSlow ? 500 : 10_000
  let tried = 0
  while (tried < most && few().cpu < 2_500_000) {
    await atOnce(run, 500)
    tried += 500
  }
  // Who needs longer than a millisecond a run shows it with fewer of them.
  const runs = few().cpu / tried > 1_000 ? isSlow ? 1_000 : 2_000 : 10_000
  const found: Array<Cost.Spent> = []
  const all = Cost.clock()
  while (found.length < (isSlow ? 1 : 3) && (found.length === 0 || all().wall < 3_000_000)) {
    globalThis.gc?.()
    const spent = Cost.clock()
    await atOnce(run, runs)
    found.push(spent())
  }
  return {
    runs,
    ...figures("run", Cost.quartiles(found.map(({ cpu }) => cpu)), runs),
    ...figures("wall, all", Cost.quartiles(found.map(({ wall }) => wall)), 1),
    "timers left": timers(),
    ...await parked()
  }
}

const endless = async (contender: Work.Contender, body: Work.Body): Promise<Figures> => {
  const seen = Work.nothingSeen()
  const run = await contender.define(Work.spec({ calls: 1_000, body }), seen)
  const spent = Cost.clock()
  let timer: NodeJS.Timeout | undefined
  const given = new Promise((done) => {
    timer = setTimeout(done, 5_000)
  })
  const ended = await Promise.race([run(), given])
  clearTimeout(timer)
  const { cpu, wall } = spent()
  return {
    [`${body}: answered`]: ended === Work.answer ? seen.started : 0,
    [`${body}: stopped`]: seen.stopped,
    [`${body}: said to be running`]: seen.stillRunning,
    [`${body}: timers left`]: timers(),
    [`${body}: cpu`]: cpu,
    [`${body}: wall`]: wall
  }
}

const deadlines = async (): Promise<Figures> => {
  const contender = await contenderOf()
  const found: Figures = {}
  for (const body of contender.timesOut) Object.assign(found, await endless(contender, body))
  return found
}

const requests = async (): Promise<Figures> => {
  const Requests = await import("./requests.ts")
  const server = await Requests.start()
  return growing([10, 100, 1_000], (turns) => Requests.checked(name, server, turns), {
    // The server plays one script at a time.
    isTogether: false,
    patience: 20
  })
}

const workloads: Record<string, () => Promise<Figures>> = {
  W1: () => perUnit({ turns: 0 }, 1, "run"),
  W2: () => perUnit({ turns: 10 }, 11, "turn"),
  W3: () =>
    growing(
      [1, 8, 32, 128, 1_024],
      grown((calls) => ({ turns: 5, calls, body: "settled" }), (calls) => 5 * calls)
    ),
  W4: manyTools,
  W5: crowd,
  W6: () => growing([50, 100, 300, 1_000], grown((turns) => ({ turns }), (turns) => turns)),
  W7: () => perUnit({ deltas: 2_000 }, 1, "run"),
  W9: deadlines,
  W10: requests
}

const measure = workloads[workload]
if (measure === undefined) throw new Error(`there is no workload ${workload}`)
await Baton.turn()
// On a line of its own, behind whatever a contender logged.
process.stdout.write(`\n${JSON.stringify(await measure())}`)
process.exit(0)
