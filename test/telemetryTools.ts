import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

/** A tracer that keeps its spans, and how often each was ended. */
export const recorder = () => {
  const spans: Array<Tracer.Span> = []
  const ends = new Map<string, number>()
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const end = span.end.bind(span)
      span.end = (time: bigint, exit: Exit.Exit<unknown, unknown>) => {
        ends.set(span.spanId, (ends.get(span.spanId) ?? 0) + 1)
        end(time, exit)
      }
      spans.push(span)
      return span
    }
  })
  const traced = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Tracer.Tracer, tracer)
  return { spans, tracer, traced, ends: () => spans.map(({ spanId }) => ends.get(spanId) ?? 0) }
}

/** How a span ended. */
export const statusOf = ({ status }: Tracer.Span): string =>
  status._tag === "Started"
    ? "open"
    : status.exit._tag === "Success"
    ? "ok"
    : Cause.prettyErrors(status.exit.cause).map(({ message, name }) => `${name}: ${message}`).join("; ")

/** Spans as lines: each below its parent, in the order in which they began, with how it ended. */
export const tree = (spans: ReadonlyArray<Tracer.Span>): ReadonlyArray<string> => {
  const parentOf = (span: Tracer.Span) => Option.getOrUndefined(span.parent)?.spanId
  const known = new Set(spans.map(({ spanId }) => spanId))
  const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
    spans.filter((span) => {
      const its = parentOf(span)
      return parent === undefined ? its === undefined || !known.has(its) : its === parent
    }).flatMap((span) => [`${"  ".repeat(depth)}${span.name}: ${statusOf(span)}`, ...below(span.spanId, depth + 1)])
  return below(undefined, 0)
}

/** The attributes of the spans of this name. */
export const attributesOf = (spans: ReadonlyArray<Tracer.Span>, name: string) =>
  spans.filter((span) => span.name === name).map(({ attributes }) => Object.fromEntries(attributes))

/** Everything that a span says, as one text. */
export const allOf = (spans: ReadonlyArray<Tracer.Span>): string =>
  spans.map((span) =>
    JSON.stringify([
      span.name,
      [...span.attributes],
      "events" in span ? span.events : [],
      span.status._tag === "Ended" && span.status.exit._tag === "Failure"
        ? Cause.prettyErrors(span.status.exit.cause).map((error) => [error.name, error.message, error.stack, error])
        : []
    ], (_, value: unknown) => typeof value === "bigint" ? String(value) : value)
  ).join("\n")
