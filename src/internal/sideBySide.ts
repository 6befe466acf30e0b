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
 * What is done with members of which whoever does it knows `At`. None of it may throw. It is data and functions that know
 * nothing, since a turn would pay for making them anew.
 */
export interface Work<At, M, A, B, E> {
  /** Begins one, among the services of who waits. */
  readonly begin: (at: At, member: M, running: Services.Context<never>) => Fiber.Fiber<A, E>
  /** Is told what a member came to, as soon as it is over. */
  readonly ended: (at: At, member: M, value: A) => void
  /** What a member came to whose fiber somebody interrupted. */
  readonly lost: (member: M) => A
  /** Goes on when all are over. */
  readonly next: (at: At) => Effect.Effect<B, E>
}

/** Does the work with each member. */
export const run = <At, M, A, B, E>(
  members: ReadonlyArray<M>,
  most: number,
  work: Work<At, M, A, B, E>,
  at: At
): Effect.Effect<B, E> => {
  const [first] = members
  return first !== undefined && members.length === 1 ? alone(first, work, at) : several(members, most, work, at)
}

// Most often there is one, and it has ended when it has begun.
const alone = <At, M, A, B, E>(member: M, work: Work<At, M, A, B, E>, at: At): Effect.Effect<B, E> =>
  Effect.callback((resume) => {
    const fiber = work.begin(at, member, running())
    const exit = fiber.pollUnsafe()
    const over = (exit: Exit.Exit<A, E>): void => resume(told(member, exit, work, at) ?? work.next(at))
    return exit === undefined ? waiting(fiber, over) : over(exit)
  })

const waiting = <A, E>(fiber: Fiber.Fiber<A, E>, over: (exit: Exit.Exit<A, E>) => void): Effect.Effect<void> => {
  let isCancelled = false
  fiber.addObserver((exit) => {
    if (!isCancelled) over(exit)
  })
  return Effect.suspend(() => {
    isCancelled = true
    return Fiber.interrupt(fiber)
  })
}

const several = <At, M, A, B, E>(
  members: ReadonlyArray<M>,
  most: number,
  work: Work<At, M, A, B, E>,
  at: At
): Effect.Effect<B, E> =>
  Effect.callback((resume) => {
    const services = running()
    let isCancelled = false
    let next = 0
    let open = 0
    let failure: Exit.Exit<never, E> | undefined
    let fibers: Set<Fiber.Fiber<A, E>> | undefined
    const end = (member: M, exit: Exit.Exit<A, E>): void => {
      open--
      if (!isCancelled) failure = told(member, exit, work, at) ?? failure
    }
    // What begins counts first, since it may end others.
    const advance = (): void => {
      while (next < members.length && open < most) {
        const member = members[next++] as M // it is below the length
        open++
        const fiber = work.begin(at, member, services)
        const exit = fiber.pollUnsafe()
        if (exit === undefined) wait(member, fiber)
        else end(member, exit)
      }
      if (next === members.length && open === 0 && !isCancelled) resume(failure ?? work.next(at))
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
const told = <At, M, A, E>(
  member: M,
  exit: Exit.Exit<A, E>,
  work: Work<At, M, A, unknown, E>,
  at: At
): Exit.Exit<never, E> | undefined => {
  if (Exit.isSuccess(exit)) work.ended(at, member, exit.value)
  else if (Cause.hasInterruptsOnly(exit.cause)) work.ended(at, member, work.lost(member))
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
