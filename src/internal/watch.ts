/**
 * Who is told what happens in a run, and in which order? Each event gets its number when it is given away, to all at once, so
 * that everybody sees one sequence without gaps, whoever is interrupted meanwhile.
 */
import type * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Event from "../Event.ts"

/** An event that has no number yet, of the run that it happens in. What happens often is made with room for both. */
export type Happening<E = Event.Event> = E extends Event.Event
  ? Omit<E, "seq" | "path"> & Partial<Pick<E, "seq" | "path">>
  : never

type Numbered = Event.Event & { -readonly [K in "seq" | "path"]: Event.Event[K] }

export type Path = ReadonlyArray<Event.Step>

/** Where what happens in a run is told. */
export interface Watch {
  /** Somebody wants the pieces of an answer while they arrive. */
  readonly deltas: boolean
  /** Somebody wants all there is, and not only texts and calls. */
  readonly all: boolean
  /** Begins, among the services of whoever runs it. */
  readonly begin: (services: Services.Context<never>) => void
  /** Nothing is given away before it begins, and after its end was given. */
  isOpen: boolean
  /** Lets go of whoever has not been told by now. */
  readonly close: () => void
  /** Gives what happened away, at once. */
  readonly take: (happened: ReadonlyArray<Happening>, path?: Path) => void
  /** Waits until what was given away by now was told. */
  readonly told: () => Effect.Effect<void>
  /** `told` for a run that is being interrupted: it never waits long. */
  readonly last: () => Effect.Effect<void>
  /** The turn that was shown to begin and not to end. */
  turn: number | undefined
  /** How often the model was asked in it. */
  attempts: number
}

/** Who takes events. It takes them at once, and has told them, or has room again, when `told()` is done; `last()` waits less. */
export interface Sink {
  readonly deltas: boolean
  readonly all: boolean
  readonly begin?: (services: Services.Context<never>) => void
  readonly close?: () => void
  readonly take: (events: ReadonlyArray<Event.Event>) => void
  readonly told: () => Effect.Effect<void>
  readonly last: () => Effect.Effect<void>
}

/** The path of what happens in the run itself. */
export const here: Path = []

/** The watch of a run that these look at, or none where there is nobody. */
export const make = (...sinks: ReadonlyArray<Sink | undefined>): Watch | undefined => {
  const open = sinks.filter((sink) => sink !== undefined)
  const [first, ...others] = open
  if (first === undefined) return undefined
  let seq = 0
  const all = (of: (sink: Sink) => Effect.Effect<void>): () => Effect.Effect<void> =>
    others.length === 0
      ? () => of(first)
      : () => others.reduce((before, sink) => Effect.andThen(before, Effect.suspend(() => of(sink))), of(first))
  return watching(
    {
      deltas: open.some(({ deltas }) => deltas),
      all: open.some(({ all }) => all),
      told: all(({ told }) => told()),
      last: all(({ last }) => last())
    },
    {
      begin: (services) => {
        for (const { begin } of open) begin?.(services)
      },
      close: () => {
        for (const { close } of open) close?.()
      }
    },
    (happened, path = here) => {
      // They were made for this and are nobody else's yet, so each is given its number, and not copied with it.
      const events = happened as ReadonlyArray<Numbered>
      for (const event of events) {
        event.seq = seq++
        event.path = path
      }
      for (const sink of open) sink.take(events)
    }
  )
}

/** The watch of an agent that runs within a call: that of the run around it, one step further. */
export const within = (outer: Watch, step: Event.Step): Watch =>
  watching(outer, {}, (happened, path = here) => outer.take(happened, [step, ...path]))

const watching = (
  { all, deltas, last, told }: Pick<Watch, "all" | "deltas" | "last" | "told">,
  { begin, close = () => {} }: Pick<Sink, "begin" | "close">,
  take: Watch["take"]
): Watch => {
  const watch: Watch = {
    deltas,
    all,
    begin: (services) => {
      watch.isOpen = true
      begin?.(services)
    },
    isOpen: false,
    close,
    take: (happened, path) => {
      if (watch.isOpen) take(happened, path)
    },
    told,
    last,
    turn: undefined,
    attempts: 0
  }
  return watch
}

/** Gives it away and waits until it was told. */
export const emit = (watch: Watch, happened: () => ReadonlyArray<Happening>): Effect.Effect<void> =>
  Effect.suspend(() => {
    watch.take(happened())
    return watch.told()
  })
