/**
 * Where does a handler run? Among the services that its registry was built with, and with what the running fiber itself
 * carries: its clock, tracer and span, loggers, random, scheduler, and the call that it answers.
 */
import * as Services from "effect/Context"

// A Context holds values by key and does not know which keys are references, so what belongs to the fiber is named.
// A reference of the application is taken from the registry's context where that has it, else from the fiber.
const ofTheFiber = new Set([
  "effect/Clock",
  "effect/Console",
  "effect/ErrorReporter/CurrentErrorReporters",
  "effect/Layer/CurrentMemoMap",
  "effect/Logger/CurrentLoggers",
  "effect/Logger/LogToStderr",
  "effect/Metric/CurrentMetricAttributes",
  "effect/Metric/FiberRuntimeMetrics",
  "effect/Metric/MetricRegistry",
  "effect/Random",
  "effect/References/CurrentLogAnnotations",
  "effect/References/CurrentLogLevel",
  "effect/References/CurrentLogSpans",
  "effect/References/CurrentStackFrame",
  "effect/References/MinimumLogLevel",
  "effect/References/TracerEnabled",
  "effect/References/TracerSpanAnnotations",
  "effect/References/TracerSpanLinks",
  "effect/References/TracerTimingEnabled",
  "effect/References/UnhandledLogLevel",
  "effect/Schedule/CurrentMetadata",
  "effect/Scheduler",
  "effect/Scheduler/MaxOpsBeforeYield",
  "effect/Scheduler/PreventSchedulerYield",
  "effect/Tracer",
  "effect/Tracer/CurrentTraceLevel",
  "effect/Tracer/DisablePropagation",
  "effect/Tracer/MinimumTraceLevel",
  "effect/Tracer/ParentSpan",
  "effect/workflow/Activity/CurrentAttempt",
  "toolfold/Budget/Current",
  "toolfold/Context/CurrentCall",
  "toolfold/Probe",
  "toolfold/telemetry/Conversation",
  "toolfold/telemetry/CurrentCall",
  "toolfold/telemetry/CurrentRun"
])

/** From a running fiber's context to the one its handlers run in; merged once for each. */
export interface Environment {
  (running: Services.Context<never>): Services.Context<never>
  /** What was captured, by key. */
  readonly services: ReadonlyArray<readonly [string, unknown]>
}

/** The environment of handlers whose registry was built among these services. */
export const make = (captured: Services.Context<never>): Environment => {
  const services = Array.from(captured.mapUnsafe).filter(([key]) => !ofTheFiber.has(key))
  const merged = new WeakMap<Services.Context<never>, Services.Context<never>>()
  const environment = (running: Services.Context<never>) => {
    const known = merged.get(running)
    if (known !== undefined) return known
    const own = running.mapUnsafe
    const scope = own.get(scopeKey)
    const context = services.every(([key, service]) => own.get(key) === service)
      ? running
      : Services.makeUnsafe<never>(
        new Map([...own, ...services, ...(scope === undefined ? [] : [[scopeKey, scope] as const])])
      )
    merged.set(running, context)
    return context
  }
  return Object.assign(environment, { services })
}

// What a handler acquires is released with the run, where that has a scope, and not only with the registry.
const scopeKey = "effect/Scope"
