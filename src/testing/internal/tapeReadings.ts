/**
 * What did the clock say, and which numbers were drawn? Each call has a line of its own, and what is outside of any call
 * has one, so that it does not matter which of several calls looked first.
 *
 * A clock stands still where nothing more was read, and goes on with the next exchange. It sleeps as the clock around it
 * does. A number that was not drawn is missed.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Random from "effect/Random"
import * as Context from "../../Context.ts"
import type { Line, Readings } from "./tapeLines.ts"

/** The call that the running fiber answers; empty outside of any. */
export const line = (): string => Fiber.getCurrent()?.getRef(Context.CurrentCall)?.id ?? ""

/** What a clock and a random generator are made of. */
interface Source {
  readonly millis: () => number
  readonly nanos: () => bigint
  readonly monotonic: () => bigint
  readonly int: () => number
  readonly double: () => number
}

const clockOf = (around: Clock.Clock, { millis, monotonic, nanos }: Source): Clock.Clock => {
  // What more it can do, as the one of tests, it still can.
  const own: object = Object.create(around)
  return Object.assign(own, {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration: Parameters<Clock.Clock["sleep"]>[0]) => around.sleep(duration)
  })
}

const randomOf = ({ double, int }: Source): Random.Random => ({ nextIntUnsafe: int, nextDoubleUnsafe: double })

/** A clock and a random generator that are listened to. */
export interface Listening {
  readonly clock: Clock.Clock
  readonly random: Random.Random
  /** What was read on a line since it was last asked for. */
  readonly take: (line: string) => Readings | undefined
  readonly takeAll: () => { readonly [line: string]: Readings }
}

type Heard = { [Kind in keyof Readings]-?: Array<NonNullable<Readings[Kind]>[number]> }

const keep = <A>(kept: Array<A>, value: A): A => {
  kept.push(value)
  return value
}

export const listen = (clock: Clock.Clock, random: Random.Random): Listening => {
  const lines = new Map<string, Heard>()
  const heard = (): Heard => {
    const own = line()
    const known = lines.get(own) ?? { millis: [], nanos: [], monotonic: [], ints: [], doubles: [] }
    lines.set(own, known)
    return known
  }
  const source: Source = {
    millis: () => keep(heard().millis, clock.currentTimeMillisUnsafe()),
    nanos: () => keep(heard().nanos, clock.currentTimeNanosUnsafe()),
    monotonic: () => keep(heard().monotonic, clock.monotonicTimeNanosUnsafe()),
    int: () => keep(heard().ints, random.nextIntUnsafe()),
    double: () => keep(heard().doubles, random.nextDoubleUnsafe())
  }
  const take = (line: string): Readings | undefined => {
    const known = lines.get(line)
    lines.delete(line)
    return known && Object.fromEntries(Object.entries(known).filter(([, values]) => values.length > 0))
  }
  return {
    clock: clockOf(clock, source),
    random: randomOf(source),
    take,
    takeAll: () => Object.fromEntries(Array.from(lines.keys(), (line) => [line, take(line) ?? {}]))
  }
}

/** A clock and a random generator that say what they said. */
export interface Saying {
  readonly clock: Clock.Clock
  readonly random: Random.Random
  /** An exchange of a line is over: the clock goes on to what was read after it. */
  readonly goOn: (line: string) => void
}

interface Told {
  readonly parts: ReadonlyArray<Readings>
  part: number
  /** How far each kind was read in this part. */
  read: { -readonly [Kind in keyof Shown]: number }
  /** What it showed last. */
  last: Shown
  readonly ints: Array<number>
  readonly doubles: Array<number>
}

interface Shown {
  readonly millis: number
  readonly nanos: bigint
  readonly monotonic: bigint
}

export const say = (
  clock: Clock.Clock,
  recorded: ReadonlyArray<Line>,
  missed: (line: string) => void
): Saying => {
  const [head] = recorded
  const begun = head?.kind === "tape" ? head.at : 0
  const lines = new Map(Array.from(partsOf(recorded), ([line, parts]) => [line, toldOf(parts, begun)]))
  const shown = (kind: keyof Shown): Shown => {
    const own = line()
    const told = lines.get(own) ?? toldOf([], begun)
    lines.set(own, told)
    const value = told.parts[told.part]?.[kind]?.[told.read[kind]++]
    if (value !== undefined) told.last = { ...told.last, [kind]: value }
    return told.last
  }
  const drawn = (kind: "ints" | "doubles"): number => {
    const own = line()
    const value = lines.get(own)?.[kind].shift()
    if (value === undefined) missed(own)
    return value ?? 0
  }
  const source: Source = {
    millis: () => shown("millis").millis,
    nanos: () => shown("nanos").nanos,
    monotonic: () => shown("monotonic").monotonic,
    int: () => drawn("ints"),
    double: () => drawn("doubles")
  }
  return {
    clock: clockOf(clock, source),
    random: randomOf(source),
    goOn: (line) => {
      const told = lines.get(line)
      if (told === undefined) return
      told.part++
      told.read = unread()
    }
  }
}

const unread = (): Told["read"] => ({ millis: 0, nanos: 0, monotonic: 0 })

const toldOf = (parts: ReadonlyArray<Readings>, begun: number): Told => ({
  parts,
  part: 0,
  read: unread(),
  last: { millis: begun, nanos: BigInt(Math.floor(begun)) * 1_000_000n, monotonic: 0n },
  ints: parts.flatMap(({ ints = [] }) => ints),
  doubles: parts.flatMap(({ doubles = [] }) => doubles)
})

/** What was read on each line, cut where an exchange of the line was over. */
const partsOf = (recorded: ReadonlyArray<Line>): ReadonlyMap<string, ReadonlyArray<Readings>> => {
  const lines = new Map<string, Array<Readings>>()
  const add = (line: string, readings: Readings = {}) => {
    const parts = lines.get(line)
    if (parts === undefined) lines.set(line, [readings])
    else parts.push(readings)
  }
  for (const record of recorded) {
    if (record.kind === "ask") add(record.within, record.readings)
    // A call outside of any run has no line of its own.
    else if (record.kind === "call" && record.id !== "") add(record.id, record.readings)
    else if (record.kind === "end") {
      for (const [line, readings] of Object.entries(record.readings)) add(line, readings)
    }
  }
  return lines
}
