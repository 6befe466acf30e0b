// What does one workload cost on one contender? Prints the figures as JSON; times are microseconds, sizes bytes.
//
//   node --expose-gc bench/measure.ts CONTENDER WORKLOAD
import * as Work from "./work.ts"

export type Figures = Record<string, number>

const [name = "", workload = ""] = process.argv.slice(2)
const { contender }: { readonly contender: Work.Contender } = await import(`./contenders/${name}.ts`)

const gc = globalThis.gc ?? (() => {})

interface Spent {
  readonly cpu: number
  readonly wall: number
}

const clock = (): () => Spent => {
  const cpu = process.cpuUsage()
  const wall = performance.now()
  return () => {
    const { system, user } = process.cpuUsage(cpu)
    return { cpu: user + system, wall: (performance.now() - wall) * 1_000 }
  }
}

/** Defines the work and does it once, to see that it is the same for all. */
const checked = async (options: Partial<Work.Spec>) => {
  const spec = Work.spec(options)
  const seen = Work.nothingSeen()
  const run = await contender.define(spec, seen)
  const spent = clock()
  const faults = Work.faults(spec, seen, await run())
  if (faults.length > 0) throw new Error(`${name} ${JSON.stringify(options)}: ${faults.join("; ")}`)
  return { run, seen, first: spent() }
}

/** The cost of a run over at least so much CPU time. */
const repeat = async (run: Work.Run, cpu: number): Promise<Spent> => {
  const spent = clock()
  let times = 0
  for (let batch = 1;; batch *= 2) {
    for (let at = 0; at < batch; at++) await run()
    times += batch
    const total = spent()
    if (total.cpu >= cpu) return { cpu: total.cpu / times, wall: total.wall / times }
  }
}

const slice = 50_000

// The compiler of the engine goes back and forth for two seconds over code on Effect.
let warmUp = 1_500_000

/**
 * What one run costs when it is warm: the least of eight slices. What disturbs a slice (another process, the compiler)
 * only adds to it, often several times its cost; what the work allocates is collected within each.
 */
const cost = async (options: Partial<Work.Spec>): Promise<Spent> => {
  const { first, run } = await checked(options)
  // Who is that slow is warm after one.
  if (first.cpu < 1_500_000) await repeat(run, warmUp)
  warmUp = 300_000
  gc()
  const spent = clock()
  let least = await repeat(run, slice)
  for (let at = 1; at < 8 && spent().cpu < 1_200_000; at++) {
    const next = await repeat(run, slice)
    if (next.cpu < least.cpu) least = next
  }
  return least
}

const median = (numbers: ReadonlyArray<number>): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN

const perUnit = async (options: Partial<Work.Spec>, units: number, key: string): Promise<Figures> => {
  const { cpu, wall } = await cost(options)
  return { [key]: cpu / units, [`${key} wall`]: wall / units }
}

/** The costs of growing work, for as long as a run promises to end within five seconds. */
const growing = async (
  sizes: ReadonlyArray<number>,
  work: (size: number) => { readonly options: Partial<Work.Spec>; readonly units: number }
): Promise<Figures> => {
  const figures: Figures = {}
  let last = { size: Infinity, wall: 0 }
  for (const size of sizes) {
    if (last.wall * Math.max(1, size / last.size) ** 2 > 6_000_000) break
    const { options, units } = work(size)
    const { cpu, wall } = await cost(options)
    figures[size] = cpu / units
    figures[`${size} wall`] = wall / units
    last = { size, wall }
  }
  return figures
}

const manyTools = async (): Promise<Figures> => {
  const one = Work.spec({ turns: 10 })
  const many = Work.spec({ turns: 10, tools: 200 })
  const schemas = new Set<object>()
  const counted = await contender.define(many, { ...Work.nothingSeen(), schemas })
  for (let at = 0; at < 3; at++) await counted()
  const fresh = []
  for (let at = 0; at < 3; at++) {
    const defining = clock()
    const run = await contender.define({ ...many, turns: 0 }, Work.nothingSeen())
    const define = defining().cpu
    const asking = clock()
    await run()
    fresh.push({ define, first: asking().cpu })
  }
  const [later, alone] = [await cost(many), await cost(one)]
  return {
    ...schemas.size > 0 ? { "schemas made": schemas.size } : {},
    define: median(fresh.map(({ define }) => define)),
    first: median(fresh.map(({ first }) => first)),
    later: later.cpu / 11,
    "later, 1 tool": alone.cpu / 11
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

const atOnce = (run: Work.Run, count: number): Promise<ReadonlyArray<string>> =>
  Promise.all(Array.from({ length: count }, run))

const heap = (): number => {
  gc()
  gc()
  return process.memoryUsage().heapUsed
}

const parked = async (): Promise<Figures> => {
  const { run, seen } = await checked({ body: "gate" })
  await atOnce(run, 200)
  const runs = 2_000
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
  const few = clock()
  await atOnce(run, 500)
  // Who needs longer than a millisecond a run shows it with a fifth of them.
  const runs = few().cpu / 500 > 1_500 ? 2_000 : 10_000
  gc()
  const spent = clock()
  await atOnce(run, runs)
  const { cpu, wall } = spent()
  return { runs, run: cpu / runs, "wall, all": wall, "timers left": timers(), ...await parked() }
}

const endless = async (body: Work.Body): Promise<Figures> => {
  const seen = Work.nothingSeen()
  const run = await contender.define(Work.spec({ calls: 1_000, body }), seen)
  const spent = clock()
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

const workloads: Record<string, () => Promise<Figures>> = {
  W1: () => perUnit({ turns: 0 }, 1, "run"),
  W2: () => perUnit({ turns: 10 }, 11, "turn"),
  W3: () =>
    growing([1, 8, 32, 128, 1_024], (calls) => ({ options: { turns: 5, calls, body: "settled" }, units: 5 * calls })),
  W4: manyTools,
  W5: crowd,
  W6: () => growing([50, 100, 300, 1_000], (turns) => ({ options: { turns }, units: turns })),
  W7: () => perUnit({ deltas: 2_000 }, 1, "run"),
  W9: async () => {
    const figures: Figures = {}
    for (const body of contender.timesOut) Object.assign(figures, await endless(body))
    return figures
  }
}

const measure = workloads[workload]
if (measure === undefined) throw new Error(`there is no workload ${workload}`)
// On a line of its own, behind whatever a contender logged.
process.stdout.write(`\n${JSON.stringify(await measure())}`)
process.exit(0)
