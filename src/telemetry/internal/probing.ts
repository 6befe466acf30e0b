/**
 * What stands around a run, a request and a call, for whoever only watches? A span around each, a count of each request, and
 * quiet errors within.
 */
import type * as AiError from "effect/ai/AiError"
import * as Clock from "effect/Clock"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import type * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import type { Reply } from "../../internal/ask.ts"
import type * as Probe from "../../internal/probe.ts"
import * as Content from "./content.ts"
import * as Meters from "./meters.ts"
import * as Names from "./names.ts"
import * as Quiet from "./quiet.ts"
import * as Saying from "./saying.ts"
import * as Spanning from "./spanning.ts"

const { attribute, operation } = Names

/** What is recorded, and when requests are counted. */
export interface Settings extends Content.Settings {
  readonly metrics: "traced" | "always" | "never"
}

/**
 * The conversation of which a run is a part, as its application calls it. Default: the id of the thread that the run rests
 * in. The conventions want an id that is known elsewhere, so none is made up.
 *
 * **Example** (Two runs of one conversation)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as Telemetry from "toolfold/telemetry/Telemetry"
 *
 * const bot = AgentLoop.make("bot")
 * const ask = (prompt: string) =>
 *   AgentLoop.run(bot, { prompt }).pipe(Effect.provideService(Telemetry.Conversation, "support/42"))
 * export const both = Effect.andThen(ask("Hello"), ask("And again"))
 * ```
 *
 * @category references
 * @since 0.1.0
 */
export const Conversation: Services.Reference<string | undefined> = Services.Reference<string | undefined>(
  "toolfold/telemetry/Conversation",
  { defaultValue: () => undefined }
)

/** What a run's requests and calls have in common. */
interface Mark {
  readonly conversation: string | undefined
  /** Which form its answer is to have, as its requests say. */
  form: Schema.Constraint | undefined
}

const CurrentRun = Services.Reference<Mark | undefined>("toolfold/telemetry/CurrentRun", {
  defaultValue: () => undefined
})

/** What an agent within a call says of that call: it waits. */
const CurrentCall = Services.Reference<{ waits: boolean } | undefined>("toolfold/telemetry/CurrentCall", {
  defaultValue: () => undefined
})

/** The probe that records so. */
export const make = (settings: Settings): Probe.Probe => {
  const say: Quiet.Say = (message) => settings.outputs ? Content.text(settings, "error", message) : undefined
  return {
    run: (about, run) =>
      Effect.withFiber(({ context }) => {
        const outer = Services.get(context, CurrentRun)?.conversation
        const conversation = Services.get(context, Conversation) ?? about.thread ?? outer
        const mark: Mark = { conversation, form: undefined }
        const call = Services.get(context, CurrentCall)
        const work = Effect.onExit(Effect.provideService(run, CurrentRun, mark), (exit) =>
          Effect.sync(() => {
            if (call !== undefined && Exit.isSuccess(exit) && exit.value._tag === "Paused") call.waits = true
          }))
        if (!Spanning.isHeard(context)) return quietly(say, context, work)
        const opening = () => Saying.openRun(settings, conversation, about)
        return quietly(say, context, Spanning.around(opening, work, (exit) => Saying.endRun(settings, mark.form, exit)))
      }),
    request: (about, request) =>
      Effect.withFiber(({ context }) => {
        const mark = Services.get(context, CurrentRun)
        if (mark !== undefined) mark.form = about.request.format?.source
        const isHeard = Spanning.isHeard(context)
        const isCounted = settings.metrics === "always" || (settings.metrics === "traced" && isHeard)
        const work = isCounted ? counted(about, request) : request
        return isHeard
          ? Spanning.around(
            () => Saying.openRequest(settings, conversationIn(context), about),
            work,
            (exit) => Saying.endRequest(settings, about.request, exit)
          )
          : work
      }),
    call: (about, call) =>
      Effect.withFiber(({ context }) => {
        const mark = { waits: false }
        const work = Effect.provideService(call, CurrentCall, mark)
        return Spanning.isHeard(context)
          ? Spanning.around(() => Saying.openCall(settings, conversationIn(context), about), work, (exit) =>
            Saying.endCall(settings, about, mark, exit))
          : work
      })
  }
}

/** Does the work where errors say no more than may be said. */
const quietly = <A, E, R>(
  say: Quiet.Say,
  context: Services.Context<never>,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const loggers = Quiet.loggers(say, Services.get(context, Logger.CurrentLoggers))
  const quiet = Effect.provideService(work, Logger.CurrentLoggers, loggers)
  return Spanning.isHeard(context)
    ? Effect.provideService(quiet, Tracer.Tracer, Quiet.tracer(say, Services.get(context, Tracer.Tracer)))
    : quiet
}

const conversationIn = (context: Services.Context<never>) => Services.get(context, CurrentRun)?.conversation

const counted = (
  { named }: Probe.AboutRequest,
  request: Effect.Effect<Reply, AiError.AiError>
): Effect.Effect<Reply, AiError.AiError> =>
  Clock.clockWith((clock) => {
    const start = clock.currentTimeNanosUnsafe()
    return Effect.onExit(request, (exit) => {
      const reply = Exit.isSuccess(exit) ? exit.value : undefined
      const labels = {
        [attribute.operationName]: operation.chat,
        ...label(attribute.providerName, named?.provider),
        ...label(attribute.requestModel, named?.model),
        ...label(attribute.responseModel, reply?.model),
        ...label(attribute.errorType, Exit.isFailure(exit) ? Saying.failureOf(exit.cause).type : undefined)
      }
      return Meters.count(labels, Number(clock.currentTimeNanosUnsafe() - start) / 1e9, reply?.usage)
    })
  })

const label = (name: string, value: string | undefined): Meters.Labels => value === undefined ? {} : { [name]: value }
