/**
 * What does an error say in a span or a log? Its name and where it was thrown; its message is content, and is said only
 * where outputs are recorded.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"
import * as Names from "./names.ts"

/** What may be said of an error's message; nothing where it is content that is not recorded. */
export interface Say {
  (message: string): string | undefined
}

/** What stands in the place of a message. */
export const Unsaid = "(not recorded)"

/** The same cause, with errors that say no more than may be said. Interruptions stay what they are. */
export const cause = (say: Say, of: Cause.Cause<unknown>): Cause.Cause<unknown> =>
  Cause.fromReasons(
    of.reasons.map((reason) =>
      Cause.isFailReason(reason)
        ? Cause.makeFailReason(error(say, reason.error))
        : Cause.isDieReason(reason)
        ? Cause.makeDieReason(error(say, reason.defect))
        : reason
    )
  )

/** The exit of a span that ended in an error. */
export const failed = (type: string, message: string): Exit.Exit<never, Error> => Exit.fail(named(type, message, ""))

/** An error is anything that somebody threw, so all of it is asked with care. */
const error = (say: Say, of: unknown): Error =>
  of instanceof Quiet ? of : Result.getOrElse(
    Result.try(() => {
      const message = messageOf(of)
      return named(nameOf(of), say(message) ?? Unsaid, framesOf(of, message))
    }),
    () => named(Names.errorType.other, Unsaid, "")
  )

/** One of ours, which may be said as it is. */
class Quiet extends Error {}

const named = (name: string, message: string, frames: string): Error => {
  const quiet = new Quiet(message)
  quiet.name = name
  quiet.stack = `${name}: ${message}${frames}`
  return quiet
}

/** The name of an error, where it is one and not a text of somebody's. */
export const nameOf = (of: unknown): string => {
  if (typeof of !== "object" || of === null) return Names.errorType.other
  const name: unknown = Reflect.get(of, "_tag") ?? Reflect.get(of, "name")
  return typeof name === "string" && /^[\w$.:/@~-]{1,100}$/.test(name) ? name : Names.errorType.other
}

const messageOf = (of: unknown): string => {
  if (typeof of === "string") return of
  const message: unknown = typeof of === "object" && of !== null ? Reflect.get(of, "message") : undefined
  return typeof message === "string" ? message : ""
}

// A message may have lines that look like frames, so what stands before its end is not looked at.
const framesOf = (of: unknown, message: string): string => {
  const stack: unknown = typeof of === "object" && of !== null ? Reflect.get(of, "stack") : undefined
  if (typeof stack !== "string") return ""
  const after = message === "" ? stack : stack.slice(stack.lastIndexOf(message) + message.length)
  const frames = after.split("\n").filter((line) =>
    /^\s+at [\w$.<>[\] #]*\(?[^()\s]*(?::\d+:\d+|<anonymous>)\)?$/.test(line)
  )
  return frames.map((line) => `\n${line}`).join("")
}

const quieted = new WeakMap<Say, WeakMap<object, unknown>>()

// Once for each, since a run within a run has been given what is quiet already.
const once = <A extends object>(say: Say, of: A, make: () => A): A => {
  const known = quieted.get(say) ?? new WeakMap<object, unknown>()
  quieted.set(say, known)
  const before = known.get(of)
  if (before !== undefined) return before as A // it is kept under what it was made of
  const made = make()
  known.set(of, made)
  known.set(made, made)
  return made
}

/** The same loggers, which are shown quiet errors. */
export const loggers = (
  say: Say,
  of: ReadonlySet<Logger.Logger<unknown, unknown>>
): ReadonlySet<Logger.Logger<unknown, unknown>> =>
  once(say, of, () =>
    new Set(
      Array.from(of, (logger) =>
        Logger.make<unknown, unknown>((options) =>
          logger.log({ ...options, cause: cause(say, options.cause), message: spoken(say, options.message) })
        ))
    ))

const spoken = (say: Say, message: unknown): unknown =>
  Array.isArray(message)
    ? message.map((part: unknown) => part instanceof Error ? error(say, part) : part)
    : message instanceof Error
    ? error(say, message)
    : message

/** The same tracer, whose spans end with quiet errors. */
export const tracer = (say: Say, of: Tracer.Tracer): Tracer.Tracer =>
  once(say, of, () => {
    const { context } = of
    return Tracer.make({
      span: (options) => muted(say, of.span(options)),
      context: context === undefined ? undefined : (step, fiber) => context(step, fiber)
    })
  })

// A tracer's span is an object of its own class, which its exporter knows again, so it is not wrapped.
const muted = (say: Say, span: Tracer.Span): Tracer.Span => {
  const end = span.end
  Reflect.defineProperty(span, "end", {
    configurable: true,
    value: (time: bigint, exit: Exit.Exit<unknown, unknown>) =>
      end.call(span, time, Exit.isFailure(exit) ? Exit.failCause(cause(say, exit.cause)) : exit)
  })
  return span
}
