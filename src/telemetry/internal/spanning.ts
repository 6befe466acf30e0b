/**
 * How does a span stand around work without changing it? It is opened only where a tracer listens, ends exactly once however
 * the work ends, and what fails while it is opened or ended is nobody's failure.
 */
import * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"

/** What a span says. */
export interface Attributes {
  readonly [name: string]: unknown
}

/** How a span ends. */
export interface End {
  readonly attributes: Attributes
  /** That of the span, which is not that of the work. */
  readonly exit: Exit.Exit<unknown, unknown>
}

/** A span that is to be opened. */
export interface Opening {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
}

/** Whether somebody listens to spans. */
export const isHeard = (context: Services.Context<never>): boolean =>
  context.mapUnsafe.has(Tracer.TracerKey) && Services.get(context, References.TracerEnabled)

/** Does the work within a span. Neither function must need anything; both may throw. */
export const around = <A, E, R>(
  opening: () => Opening,
  work: Effect.Effect<A, E, R>,
  ending: (exit: Exit.Exit<A, E>) => End
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(open(opening), (span) =>
      span === undefined ? restore(work) : Effect.onExit(
        restore(Effect.withParentSpan(work, span, { captureStackTrace: false })),
        (exit) => end(span, () => ending(exit))
      ))
  )

const open = (opening: () => Opening): Effect.Effect<Tracer.Span | undefined> =>
  Effect.catchCause(
    Effect.suspend(() => {
      const { attributes, kind, name } = opening()
      return Effect.makeSpan(name, { kind, attributes: present(attributes) })
    }),
    () => Effect.succeed(undefined)
  )

const end = (span: Tracer.Span, ending: () => End): Effect.Effect<void> =>
  Effect.withFiber(({ context }) =>
    Effect.catchCause(
      Effect.sync(() => {
        const { attributes, exit } = Result.getOrElse(Result.try(ending), () => blank)
        // It has to end, whatever becomes of what it says.
        Result.try(() => {
          for (const [name, value] of Object.entries(present(attributes))) span.attribute(name, value)
        })
        const isTimed = Services.get(context, References.TracerTimingEnabled)
        span.end(isTimed ? Services.get(context, Clock.Clock).currentTimeNanosUnsafe() : 0n, exit)
      }),
      () => Effect.void
    )
  )

const present = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

const blank: End = { attributes: {}, exit: Exit.void }
