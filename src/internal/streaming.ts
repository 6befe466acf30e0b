/**
 * How is a run shown as a stream? What happens goes to whoever reads, and the run waits while too much of it is unread.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
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
  Stream.unwrap(Effect.sync(() => {
    const room = Latch.makeUnsafe(true)
    let unread = 0
    const shown = Stream.callback<Shown<A>, E, R>((queue) => {
      // An event has its number when it is taken, so it is never turned away: who gives it waits afterwards.
      const take = (events: ReadonlyArray<Shown<A>>): void => {
        unread += events.length
        if (unread >= mostUnread) room.closeUnsafe()
        Queue.offerAllUnsafe(queue, events)
      }
      const sink: Watch.Sink = { deltas: true, all: true, take, told: room.await, last: Effect.void }
      return Effect.matchCause(running(sink), {
        onSuccess: (result) => {
          take([{ _tag: "Result", result }])
          Queue.endUnsafe(queue)
        },
        onFailure: (cause: Cause.Cause<E>) => void Queue.failCauseUnsafe(queue, cause)
      })
    })
    return Stream.mapArray(shown, (events) => {
      unread -= events.length
      room.openUnsafe()
      return events
    })
  }))
