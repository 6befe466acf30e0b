// What does one run cost when it is warm? Runs until the engine has settled, then the median of slices with its quartiles:
// what a slice meets of garbage collection and of the compiler's second thoughts is part of what the work costs.
import * as Baton from "./baton.ts"

export interface Spent {
  readonly cpu: number
  readonly wall: number
}

/** Starts now; says what was spent since, in microseconds. */
export const clock = (): () => Spent => {
  const cpu = process.cpuUsage()
  const wall = performance.now()
  return () => {
    const { system, user } = process.cpuUsage(cpu)
    return { cpu: user + system, wall: (performance.now() - wall) * 1_000 }
  }
}

export interface Quartiles {
  readonly low: number
  readonly middle: number
  readonly high: number
}

export const quartiles = (numbers: ReadonlyArray<number>): Quartiles => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const at = (share: number): number => {
    const place = share * (sorted.length - 1)
    const [below = NaN, above = NaN] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
    return below + (above - below) * (place % 1)
  }
  return { low: at(0.25), middle: at(0.5), high: at(0.75) }
}

export interface Cost {
  readonly cpu: Quartiles
  readonly wall: Quartiles
}

export interface Limits {
  /** The most CPU time that a warm-up takes. */
  readonly warmUp: number
  readonly slices: number
  /** So many slices in any case, however long a run takes. */
  readonly least: number
}

const slice = 50_000

/** A run whose engine has settled, and about what it costs. */
export interface Warm {
  readonly run: () => Promise<unknown>
  readonly known: number
}

/** Gets a run warm; `first` is what it cost when it was cold. */
export const warm = async (run: () => Promise<unknown>, first: Spent, limits: Limits): Promise<Warm> => ({
  run,
  // Who is that slow is warm after one.
  known: first.cpu > 1_500_000 ? first.cpu : await settle(run, limits.warmUp)
})

/** What each run costs, a slice of each in turn: a machine that others slow down for a while slows down all of them. */
export const costs = async (runs: ReadonlyArray<Warm>, limits: Limits): Promise<ReadonlyArray<Cost>> => {
  globalThis.gc?.()
  const spent = clock()
  const found = runs.map(({ known, run }) => ({
    run,
    times: Math.max(1, Math.round(slice / known)),
    slices: new Array<Spent>()
  }))
  for (let at = 0; at < limits.slices; at++) {
    if (at >= limits.least && spent().cpu > 1_200_000 * runs.length) break
    await Baton.turn()
    for (const { run, slices, times } of found) slices.push(await spend(run, times))
  }
  return found.map(({ slices }) => ({
    cpu: quartiles(slices.map(({ cpu }) => cpu)),
    wall: quartiles(slices.map(({ wall }) => wall))
  }))
}

const spend = async (run: () => Promise<unknown>, times: number): Promise<Spent> => {
  const spent = clock()
  for (let at = 0; at < times; at++) await run()
  const { cpu, wall } = spent()
  return { cpu: cpu / times, wall: wall / times }
}

/**
 * Runs until ten pieces are no cheaper than the ten before and hardly scatter, or as long as it may. A compiler that goes
 * back and forth, as it does for two seconds over code on Effect, shows in both.
 */
const settle = async (run: () => Promise<unknown>, most: number): Promise<number> => {
  const spent = clock()
  const pieces: Array<number> = []
  let times = 1
  for (;;) {
    const piece = (await spend(run, times)).cpu
    pieces.push(piece)
    times = Math.max(1, Math.min(2 * times, Math.round(slice / 2 / piece)))
    const [recent, before] = [quartiles(pieces.slice(-10)), quartiles(pieces.slice(-20, -10))]
    const isSettled = recent.middle > 0.97 * before.middle && recent.high < 1.1 * recent.low
    if (isSettled || spent().cpu > most) return recent.middle
  }
}
