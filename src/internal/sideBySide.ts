/**
 * How do several things run side by side? Each in a fiber of its own, begun in order, so many at a time. Whoever waits
 * for them waits for all, and interrupts all.
 *
 * What is over as soon as it has begun costs no step of the runtime, which is why this is not `Effect.forEach`.
 */
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"

/**
 * Runs one for each member, among the services of who waits, and goes on with `then` when all are over. `begin` and `then`
 * must not throw; `ended` is told what a member came to, as soon as it is over, and `lost` says it of one whose fiber
 * somebody interrupted.
 */
export const run = <M, A, B, E>(
  members: ReadonlyArray<M>,
  most: number,
  begin: (member: M, at: number, running: Services.Context<never>) => Fiber.Fiber<A, E>,
  ended: (member: M, value: A) => void,
  lost: (member: M) => A,
  then: () => Effect.Effect<B, E>
): Effect.Effect<B, E> =>
  Effect.callback((resume) => {
    const services = running()
    let isCancelled = false
    const [first] = members
    if (members.length === 1 && first !== undefined) {
      // Most often there is one, and it has ended when it has begun.
      const over = (exit: Exit.Exit<A, E>): void => {
        if (!isCancelled) resume(told(first, exit, ended, lost) ?? then())
      }
      const fiber = begin(first, 0, services)
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return over(exit)
      fiber.addObserver(over)
      return Effect.suspend(() => {
        isCancelled = true
        return Fiber.interrupt(fiber)
      })
    }
    let next = 0
    let open = 0
    let failure: Exit.Exit<never, E> | undefined
    let fibers: Set<Fiber.Fiber<A, E>> | undefined
    const end = (member: M, exit: Exit.Exit<A, E>): void => {
      open--
      if (!isCancelled) failure = told(member, exit, ended, lost) ?? failure
    }
    // What begins counts first, since it may end others.
    const advance = (): void => {
      while (next < members.length && open < most) {
        const at = next++
        const member = members[at] as M // it is below the length
        open++
        const fiber = begin(member, at, services)
        const exit = fiber.pollUnsafe()
        if (exit === undefined) wait(member, fiber)
        else end(member, exit)
      }
      if (next === members.length && open === 0 && !isCancelled) resume(failure ?? then())
    }
    const wait = (member: M, fiber: Fiber.Fiber<A, E>): void => {
      fibers ??= new Set()
      fibers.add(fiber)
      fiber.addObserver((exit) => {
        fibers?.delete(fiber)
        end(member, exit)
        advance()
      })
    }
    advance()
    return fibers === undefined ? undefined : Effect.suspend(() => {
      next = members.length
      isCancelled = true
      return Fiber.interruptAll(fibers ?? [])
    })
  })

/** Tells what a member came to; gives a failure, which a member does not come to. */
const told = <M, A, E>(
  member: M,
  exit: Exit.Exit<A, E>,
  ended: (member: M, value: A) => void,
  lost: (member: M) => A
): Exit.Exit<never, E> | undefined => {
  if (Exit.isSuccess(exit)) ended(member, exit.value)
  else if (Cause.hasInterruptsOnly(exit.cause)) ended(member, lost(member))
  else return Exit.failCause(exit.cause)
  return undefined
}

/** Runs one thing, and gives what it came to. */
export const one = <A, E>(
  begin: (running: Services.Context<never>) => Fiber.Fiber<A, E>,
  lost: () => A
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    const fiber = begin(running())
    fiber.addObserver((exit) =>
      resume(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? Effect.sync(lost) : exit)
    )
    return fiber.pollUnsafe() === undefined ? Fiber.interrupt(fiber) : undefined
  })

// Asked for only where a fiber runs.
const running = (): Services.Context<never> => Fiber.getCurrent()?.context ?? Services.empty()
