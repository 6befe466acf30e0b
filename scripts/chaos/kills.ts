// Is what a thread had there after the process that wrote it was killed? One process after the other goes on with a thread
// and is killed, from inside before an operation or from outside after a line and some microseconds.
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as Context from "toolfold/Context"
import * as Memory from "toolfold/Memory"
import * as Random from "./random.ts"
import * as Stores from "./stores.ts"
import * as Story from "./story.ts"

/** Where a process is killed: before an operation; or so long after a line that it prints. */
type Point = { readonly operation: number } | { readonly line: number; readonly micros: number }

interface Told {
  /** How many turns have to be there, as far as it said. */
  readonly turns: number
  readonly operations: number
  readonly lines: number
  /** Why it ended, if nobody killed it. */
  readonly ended: string | undefined
}

const spin = (micros: number): void => {
  const until = process.hrtime.bigint() + BigInt(micros) * 1_000n
  while (process.hrtime.bigint() < until) { /* A timer is too coarse. */ }
}

/** Runs a process on a thread until it ends or is killed. */
const tell = (kind: Stores.Kind, where: string, runs: number, point?: Point): Promise<Told> =>
  new Promise((done) => {
    const args = ["--conditions=@toolfold/source", "--no-warnings", "scripts/chaos/storyteller.ts", kind, where, "t"]
    const operation = point !== undefined && "operation" in point ? point.operation : 0
    const child = spawn(process.execPath, [...args, String(runs), String(operation)])
    let output = ""
    let problems = ""
    let isKilled = false
    const lines = () => output.split("\n").slice(0, -1)
    const check = () => {
      if (isKilled || point === undefined || !("line" in point) || lines().length < point.line) return
      isKilled = true
      spin(point.micros)
      child.kill("SIGKILL")
    }
    child.on("spawn", check)
    child.stdout.on("data", (chunk) => {
      output += chunk
      check()
    })
    child.stderr.on("data", (chunk) => {
      problems += chunk
    })
    child.on("close", (code, signal) => {
      const numbers = (word: string) =>
        lines().filter((line) => line.startsWith(`${word} `)).map((line) => Number(line.slice(word.length)))
      done({
        turns: Math.max(0, ...numbers("turns")),
        operations: Math.max(0, ...numbers("operations")),
        lines: lines().length,
        ended: signal === "SIGKILL" ? undefined : `it ended by itself with ${code} ${problems}`
      })
    })
  })

const load = (kind: Stores.Kind, where: string) =>
  Effect.runPromise(
    Effect.gen(function*() {
      const thread = yield* Memory.thread("t").load
      return { thread, remembered: Story.Log.from(yield* Context.decode(thread.context, [Story.Log])) }
    }).pipe(Effect.provide(Stores.memory(kind, where)))
  )

const drawn = (next: () => number, most: Told): Point =>
  next() < 0.5
    ? { operation: 1 + Math.floor(next() * most.operations) }
    : { line: Math.floor(next() * most.lines), micros: Math.floor(next() * 3_000) }

const shown = (point: Point): string =>
  "operation" in point
    ? `before operation ${point.operation}`
    : `${point.micros} µs after line ${point.line}`

export interface Outcome {
  readonly what: string
  readonly problems: ReadonlyArray<string>
}

/** Kills processes on one thread, one after the other; at last lets one end. An outcome for each of them. */
const onOneThread = async (
  kind: Stores.Kind,
  kills: number,
  next: () => number,
  most: Told
): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const place = await Stores.open(kind)
  let turns = 0
  let before = ""
  const go = async (what: string, runs: number, point?: Point) => {
    const problems: Array<string> = []
    try {
      const told = await tell(kind, place.where, runs, point)
      if (point !== undefined && told.ended !== undefined) problems.push(told.ended)
      if (point === undefined && told.operations === 0) problems.push(told.ended ?? "it was killed")
      await place.quiet()
      const { remembered, thread } = await load(kind, place.where)
      const messages = JSON.stringify(thread.messages).slice(0, -1)
      if (!messages.startsWith(before)) problems.push("what was there before is not there any more")
      const least = Math.max(turns, told.turns)
      problems.push(...Story.faults(thread, remembered, least))
      if (point === undefined && thread.turns !== turns + runs * Story.turnsOfARun) {
        problems.push(`it went on from ${turns} turns to ${thread.turns}`)
      }
      turns = thread.turns
      before = messages
    } catch (error) {
      problems.push(String(error))
    }
    outcomes.push({ what: `${kind}: ${what}`, problems })
  }
  for (let kill = 0; kill < kills; kill++) {
    const point = drawn(next, most)
    await go(`a process killed ${shown(point)}`, Infinity, point)
  }
  await go(`a process that goes on after ${kills} that were killed`, 1)
  await place.remove()
  return outcomes
}

const killsOfAThread = 10

/** Kills so many processes that write to a store of this kind. */
export const inStore = async (
  kind: Stores.Kind,
  kills: number,
  seed: number
): Promise<ReadonlyArray<Outcome>> => {
  const next = Random.numbers(seed)
  const rehearsal = await Stores.open(kind)
  const most = await tell(kind, rehearsal.where, 3)
  await rehearsal.remove()
  if (most.operations === 0) throw new Error(`the story is not told to its end: ${most.ended}`)
  const outcomes: Array<Outcome> = []
  for (let left = kills; left > 0; left -= killsOfAThread) {
    outcomes.push(...await onOneThread(kind, Math.min(left, killsOfAThread), next, most))
  }
  return outcomes
}
