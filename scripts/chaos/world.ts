// How is a program of fibers driven one step at a time? By a world of its own: a scheduler that yields as often as it can
// and runs what waits only when it is told to, a clock that moves when nothing else can, and a count of fibers.
import * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Scheduler from "effect/Scheduler"

/** What of a world is still there. */
export interface Left {
  readonly fibers: number
  readonly timers: number
}

export interface World {
  /** Starts a program among the services of the world. */
  readonly fork: <A, E>(program: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Goes on until a fiber has ended; at the point of this number, counted from here, does something else first. */
  readonly drive: <A, E>(fiber: Fiber.Fiber<A, E>, at?: number, first?: () => void) => Promise<Exit.Exit<A, E>>
  /** Does what waits to be done at this moment, and gives what there is then. */
  readonly settle: () => Left
  /** How many points there were: the operations of every fiber, and the moments between them when none of them runs. */
  readonly points: () => number
}

// With fewer a fiber that was resumed would yield again before it has done anything.
const operations = 3

export const make = (): World => {
  const tasks: Array<() => void> = []
  const timers = new Set<{ readonly due: number; readonly wake: () => void }>()
  let now = 0
  let points = 0
  let fibers = 0
  let planned: { readonly at: number; readonly first: () => void } | undefined

  const point = (): void => {
    if (++points !== planned?.at) return
    const { first } = planned
    planned = undefined
    first()
  }

  const flush = (): void => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task()
  }
  const scheduler: Scheduler.Scheduler = {
    executionMode: "async",
    shouldYield: (fiber) => {
      point()
      return fiber.currentOpCount >= operations
    },
    makeDispatcher: () => ({
      scheduleTask: (task) => void tasks.push(task),
      flush
    })
  }
  const nanos = () => BigInt(now) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback<void>((resume) => {
        const timer = { due: now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
        timers.add(timer)
        return Effect.sync(() => timers.delete(timer))
      })
  }
  const services = Services.empty().pipe(
    Services.add(Scheduler.Scheduler, scheduler),
    Services.add(Clock.Clock, clock),
    Services.add(Metric.FiberRuntimeMetrics, {
      recordFiberStart: () => void fibers++,
      recordFiberEnd: () => void fibers--
    })
  )

  /** One step: what waits, or else the next timer. Says whether there was one. */
  const step = async (): Promise<boolean> => {
    // What promises are about to say comes first.
    if (tasks.length === 0) await new Promise((done) => setImmediate(done))
    const task = tasks.shift()
    if (task !== undefined) {
      task()
      return true
    }
    const [timer] = Array.from(timers).toSorted((one, other) => one.due - other.due)
    if (timer === undefined) return false
    timers.delete(timer)
    now = timer.due
    timer.wake()
    return true
  }

  return {
    fork: (program) => Effect.runForkWith(services)(program),
    drive: async (fiber, at, first) => {
      planned = at === undefined || first === undefined ? undefined : { at: points + at, first }
      for (;;) {
        const exit = fiber.pollUnsafe()
        if (exit !== undefined) return exit
        point()
        if (!(await step()) && fiber.pollUnsafe() === undefined) {
          throw new Error(`nothing goes on after point ${points}, and it has not ended`)
        }
      }
    },
    settle: () => {
      flush()
      return { fibers, timers: timers.size }
    },
    points: () => points
  }
}
