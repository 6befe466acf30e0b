/**
 * How is a run shown as a stream? What happens goes to whoever reads, and the run waits while too much of it is unread.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type * as Event from "../Event.ts"
import type { Result } from "../Result.ts"
import type * as Watch from "./watch.ts"

/** What a stream shows: everything that happens, and at the end the result. */
export type Shown<A> = Event.Event | { readonly _tag: "Result"; readonly result: Result<A> }

const mostUnread = 64

/** Shows what runs with this sink. It is cancelled with the stream. */
export const of = <A, E, R>(
  running: (sink: Watch.Sink) => Effect.Effect<Result<A>, E, R>
): Stream.Stream<Shown<A>, E, R> =>
  Stream.unwrap(Effect.gen(function*() {
    const queue = yield* Queue.unbounded<Shown<A>, E | Cause.Done>()
    const room = Latch.makeUnsafe(true)
    let unread = 0
    let isLeft = false
    // An event has its number when it is taken, so it is never turned away: who gives it waits afterwards.
    const take = (events: ReadonlyArray<Shown<A>>): void => {
      unread += events.length
      if (unread >= mostUnread && !isLeft) room.closeUnsafe()
      Queue.offerAllUnsafe(queue, events)
    }
    // Most often there is room, and then nobody waits.
    const told = (): Effect.Effect<void> => unread < mostUnread ? Effect.void : room.await
    const sink: Watch.Sink = { deltas: true, all: true, take, told, last: () => Effect.void }
    yield* Effect.forkScoped(Effect.onExit(running(sink), (exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit)) return Queue.failCauseUnsafe(queue, exit.cause)
        take([{ _tag: "Result", result: exit.value }])
        return Queue.endUnsafe(queue)
      })))
    // Before the run is cancelled with the stream: nobody reads any more, and what cannot be cancelled must not wait for that.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isLeft = true
        room.openUnsafe()
      })
    )
    return Stream.mapArray(Stream.fromQueue(queue), (events) => {
      unread -= events.length
      room.openUnsafe()
      return events
    })
  }))
