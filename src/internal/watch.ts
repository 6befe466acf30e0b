/**
 * Who is told what happens in a run, and in which order? Each event gets its number when it is given away, to all at once, so
 * that everybody sees one sequence without gaps, whoever is interrupted meanwhile.
 */
import * as Effect from "effect/Effect"
import type * as Event from "../Event.ts"

/** An event that has no number yet, of the run that it happens in. */
export type Happening<E = Event.Event> = E extends Event.Event ? Omit<E, "seq" | "path"> : never

export type Path = ReadonlyArray<Event.Step>

/** Where what happens is told. */
export interface Watch {
  /** Somebody wants the pieces of an answer while they arrive. */
  readonly deltas: boolean
  /** Somebody wants all there is, and not only texts and calls. */
  readonly all: boolean
  /** Gives what happened away, at once. */
  readonly take: (happened: ReadonlyArray<Happening>, path?: Path) => void
  /** Waits until it was told. */
  readonly told: Effect.Effect<void>
  /** `told` for a run that is being interrupted: it never waits long. */
  readonly last: Effect.Effect<void>
  /** Of the run, its start was shown, and not its end. */
  isOpen: boolean
  /** The turn that was shown to begin and not to end. */
  turn: number | undefined
}

/** Who takes events. It takes them at once, and has told them, or has room again, when `told` is done; `last` waits less. */
export interface Sink {
  readonly deltas: boolean
  readonly all: boolean
  readonly take: (events: ReadonlyArray<Event.Event>) => void
  readonly told: Effect.Effect<void>
  readonly last: Effect.Effect<void>
}

const here: Path = []

/** The watch of a run that these look at, or none where there is nobody. */
export const make = (...sinks: ReadonlyArray<Sink | undefined>): Watch | undefined => {
  const open = sinks.filter((sink) => sink !== undefined)
  const [first, ...others] = open
  if (first === undefined) return undefined
  let seq = 0
  const all = (of: (sink: Sink) => Effect.Effect<void>) =>
    others.reduce((before, sink) => Effect.andThen(before, of(sink)), of(first))
  return {
    deltas: open.some(({ deltas }) => deltas),
    all: open.some(({ all }) => all),
    take: (happened, path = here) => {
      const events = happened.map((happening): Event.Event => ({ ...happening, seq: seq++, path }))
      for (const sink of open) sink.take(events)
    },
    told: all(({ told }) => told),
    last: all(({ last }) => last),
    isOpen: false,
    turn: undefined
  }
}

/** The watch of an agent that runs within a call: that of the run around it, one step further. */
export const within = (outer: Watch, step: Event.Step): Watch => ({
  ...outer,
  take: (happened, path = here) => outer.take(happened, [step, ...path]),
  isOpen: false,
  turn: undefined
})

/** Gives it away and waits until it was told. */
export const emit = (watch: Watch, ...happened: ReadonlyArray<Happening>): Effect.Effect<void> =>
  Effect.suspend(() => {
    watch.take(happened)
    return watch.told
  })
