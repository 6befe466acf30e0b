/**
 * What does a tool declare besides its schemas and its body? Options, which sit on it as annotations, so that a tool of
 * any toolkit can have them; each with the combinator that sets it and the query that reads it. `Tool` exports them.
 */
import * as WireTool from "effect/ai/Tool"
import * as Services from "effect/Context"
import type * as Duration from "effect/Duration"
import { dual } from "effect/Function"
import * as Schedule from "effect/Schedule"
import { Guards } from "./guard.ts"
import * as Legal from "./legal.ts"

/** @internal */
export type Retry = true | Schedule.Schedule<unknown, unknown>

type ConflictKey = (input: never) => string

const optional = <A>(name: string) =>
  Services.Reference<A | undefined>(`toolfold/Tool/${name}`, { defaultValue: () => undefined })

const Tags = Services.Reference<ReadonlyArray<string>>("toolfold/Tool/Tags", { defaultValue: () => [] })
const Category = optional<string>("Category")
const Serial = Services.Reference<boolean>("toolfold/Tool/Serial", { defaultValue: () => false })
const ReturnDirect = Services.Reference<boolean>("toolfold/Tool/ReturnDirect", { defaultValue: () => false })
const Timeout = optional<Duration.Input>("Timeout")
const RetryPolicy = optional<Retry | false>("Retry")
const Concurrency = optional<number>("Concurrency")
const ConflictKey = optional<ConflictKey>("ConflictKey")
const MaxCalls = optional<number>("MaxCalls")
const MaxResultSize = optional<number>("MaxResultSize")

/** @internal */
export const annotations = {
  tags: Tags,
  category: Category,
  serial: Serial,
  timeout: Timeout,
  retry: RetryPolicy,
  concurrency: Concurrency,
  conflictKey: ConflictKey,
  returnDirect: ReturnDirect,
  maxCalls: MaxCalls,
  maxResultSize: MaxResultSize,
  title: WireTool.Title,
  readOnly: WireTool.Readonly,
  destructive: WireTool.Destructive,
  idempotent: WireTool.Idempotent,
  openWorld: WireTool.OpenWorld,
  strict: WireTool.Strict,
  meta: WireTool.Meta
}

/**
 * What a tool declares besides its schemas and its body. Each is also a pipeable combinator of that name.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** For selection: a registry or an agent may take the tools that have one of some tags. */
  readonly tags?: ReadonlyArray<string> | undefined
  /** A heading for lists of tools. */
  readonly category?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  /** Changes nothing. Default: false. */
  readonly readOnly?: boolean | undefined
  /** May destroy something. Default: true. */
  readonly destructive?: boolean | undefined
  /** Twice is as good as once. Default: false. */
  readonly idempotent?: boolean | undefined
  /** Reaches beyond the application. Default: true. */
  readonly openWorld?: boolean | undefined
  /** Asks the provider to hold the model to the schema, where it can. Default: the provider's. */
  readonly strict?: boolean | undefined
  /** Data of the application's own; MCP clients see it as `_meta`. */
  readonly meta?: Record<string, unknown> | undefined
  /** A batch with a call of this tool runs in call order, one at a time. Default: false. */
  readonly serial?: boolean | undefined
  /** How long one attempt of the body may take. Default: the agent's, else the registry's, else for ever. */
  readonly timeout?: Duration.Input | undefined
  /** Tries again after a failure that time may put right: by this schedule, or twice after 200 and 400 ms. Default: never. */
  readonly retry?: Retry | false | undefined
  /** At most so many calls of this tool at a time, in all runs of a registry together. Default: no limit. */
  readonly concurrency?: number | undefined
  /** How often it may be called in one run; a call beyond that is answered unrun and ends the run. Default: no limit. */
  readonly maxCalls?: number | undefined
  /** A larger result is cut after so many characters, and says so. Default: no limit. */
  readonly maxResultSize?: number | undefined
  /** If every call of a batch has it and succeeds, their results are the answer. Default: false. */
  readonly returnDirect?: boolean | undefined
  /** A call of it needs somebody's yes before it runs. Default: false. */
  readonly sensitive?: boolean | undefined
}

/** @internal */
export interface Combinator<in A> {
  (value: A): <T extends WireTool.Any>(self: T) => T
  <T extends WireTool.Any>(self: T, value: A): T
}

/** @internal */
export const combinator = <A>(
  annotation: Services.Key<never, A> | Services.Key<WireTool.Title, A> | Services.Key<WireTool.Meta, A>
): Combinator<A> =>
  dual(2, (self: WireTool.Any, value: A) => self.annotate(annotation as Services.Key<never, A>, value))

const set = <A>(annotation: Services.Reference<A | undefined>): Combinator<A> =>
  combinator<A>(annotation as Services.Reference<A>) // what is set is never absent

/**
 * The tags of a tool; or, given names, adds them to a tool.
 *
 * **Example** (Asked and told)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Tool from "toolfold/Tool"
 *
 * const now = Tool.make("now", { handler: () => Effect.succeed("12:00") }).pipe(Tool.tags("clock"))
 * Tool.tags(now) // => ["clock"]
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export const tags: {
  (self: WireTool.Any): ReadonlyArray<string>
  (...names: ReadonlyArray<string>): <T extends WireTool.Any>(self: T) => T
} = (...args: ReadonlyArray<unknown>): never => {
  const [self] = args
  const result = args.length === 1 && typeof self !== "string"
    ? Services.get((self as WireTool.Any).annotations, Tags)
    : (tool: WireTool.Any) => tool.annotate(Tags, [...tags(tool), ...args as ReadonlyArray<string>])
  return result as never // the overloads tell the two uses apart
}

/**
 * Whether a tool has one of these tags.
 *
 * @category queries
 * @since 0.1.0
 */
export const hasAnyTag = (self: WireTool.Any, names: Iterable<string>): boolean => {
  const own = tags(self)
  return Array.from(names).some((name) => own.includes(name))
}

/**
 * @category options
 * @since 0.1.0
 */
export const category: Combinator<string> = set(Category)

/**
 * @category options
 * @since 0.1.0
 */
export const title: Combinator<string> = combinator(WireTool.Title)

/**
 * @category options
 * @since 0.1.0
 */
export const readOnly: Combinator<boolean> = combinator(WireTool.Readonly)

/**
 * @category options
 * @since 0.1.0
 */
export const destructive: Combinator<boolean> = combinator(WireTool.Destructive)

/**
 * @category options
 * @since 0.1.0
 */
export const idempotent: Combinator<boolean> = combinator(WireTool.Idempotent)

/**
 * @category options
 * @since 0.1.0
 */
export const openWorld: Combinator<boolean> = combinator(WireTool.OpenWorld)

/**
 * @category options
 * @since 0.1.0
 */
export const strict: Combinator<boolean> = combinator<boolean>(WireTool.Strict as Services.Reference<boolean>)

/**
 * @category options
 * @since 0.1.0
 */
export const meta: Combinator<Record<string, unknown>> = combinator(WireTool.Meta)

/**
 * A batch with a call of this tool runs in call order, one at a time. What the calls see of the state stays the same.
 *
 * @category options
 * @since 0.1.0
 */
export const serial: Combinator<boolean> = combinator(Serial)

/**
 * How long one attempt of the body may take. At the deadline it is interrupted and has 100 ms for its finalizers; what
 * goes on after that is left behind, and the outcome says so. A synchronous loop cannot be timed out.
 *
 * **Example** (A body that never ends)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Context from "toolfold/Context"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 * import * as Turn from "toolfold/Turn"
 *
 * const wait = Tool.make("wait", { handler: () => Effect.never }).pipe(Tool.timeout("10 millis"))
 *
 * const answer = Effect.flatMap(ToolRegistry.ToolRegistry, (registry) =>
 *   registry.answer(Turn.call({ id: "1", name: "wait", params: "" }), Context.callScope()))
 * const outcome = await Effect.runPromise(Effect.provide(answer, ToolRegistry.layer(wait)))
 * Turn.told(outcome) // => "The tool did not answer within 10ms and was stopped. Whether it took effect is unknown."
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export const timeout: Combinator<Duration.Input> = set(Timeout)

/**
 * Tries again after a failure of the class `transient`, and after a timeout: by a schedule, or, with `true`, twice after
 * 200 and 400 ms. Whoever declares it says that running twice does no harm. Every attempt has its own time and an empty
 * buffer of writes, and none follows one whose work may still be going on.
 *
 * @category options
 * @since 0.1.0
 */
export const retry: Combinator<Retry | false> = set(RetryPolicy)

/**
 * At most so many calls of this tool at a time, in all runs of a registry together; the others wait. A call that waits for
 * a rate limit or another try keeps its place; what is left behind after a deadline does not. A body that calls its own tool
 * through the registry may wait for itself.
 *
 * @category options
 * @since 0.1.0
 */
export const concurrency: Combinator<number> = set(Concurrency)

/**
 * At most so many calls of this tool in one run, those that failed too. Calls beyond it are answered unrun, in call order, and
 * the run ends.
 *
 * @category options
 * @since 0.1.0
 */
export const maxCalls: Combinator<number> = set(MaxCalls)

/**
 * Calls whose keys are equal run in call order, one at a time; others run beside them. Keys hold for a whole registry,
 * over all attempts of a call: tools that touch one thing give one key. What is left behind after a deadline holds none.
 * A call that waits for its key keeps one of the places of the agent's `concurrency`.
 *
 * **Example** (One file at a time)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "toolfold/Tool"
 *
 * const write = Tool.make("write", {
 *   input: { path: Schema.String, text: Schema.String },
 *   handler: ({ path }) => Effect.succeed(`wrote ${path}`)
 * }).pipe(Tool.conflictKey(({ path }) => `file ${path}`))
 *
 * Tool.conflictKeyOf(write)?.({ path: "a.txt", text: "" }) // => "file a.txt"
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export const conflictKey: {
  <T extends WireTool.Any>(key: (input: WireTool.Parameters<T>) => string): (self: T) => T
  <T extends WireTool.Any>(self: T, key: (input: WireTool.Parameters<T>) => string): T
} = dual(2, <T extends WireTool.Any>(self: T, key: ConflictKey): WireTool.Any => self.annotate(ConflictKey, key))

/**
 * If every call of a batch is of such a tool and succeeds, their results are the answer, and the model is not asked
 * again. A failure goes back to the model.
 *
 * @category options
 * @since 0.1.0
 */
export const returnDirect: Combinator<boolean> = combinator(ReturnDirect)

/**
 * A result of more characters is cut, and the model is told how much is missing.
 *
 * @category options
 * @since 0.1.0
 */
export const maxResultSize: Combinator<number> = set(MaxResultSize)

/**
 * Whether a batch with a call of this tool runs one call at a time.
 *
 * @category queries
 * @since 0.1.0
 */
export const isSerial = (self: WireTool.Any): boolean => Services.get(self.annotations, Serial)

/**
 * Whether the results of this tool may be the answer.
 *
 * @category queries
 * @since 0.1.0
 */
export const isReturnDirect = (self: WireTool.Any): boolean => Services.get(self.annotations, ReturnDirect)

/**
 * The heading that a tool stands under, if it has one.
 *
 * @category queries
 * @since 0.1.0
 */
export const categoryOf = (self: WireTool.Any): string | undefined => Services.get(self.annotations, Category)

/**
 * How long one attempt may take, where the tool itself says so.
 *
 * @category queries
 * @since 0.1.0
 */
export const timeoutOf = (self: WireTool.Any): Duration.Duration | undefined =>
  Legal.duration(Services.get(self.annotations, Timeout))

const twice = Schedule.upTo(Schedule.exponential("200 millis"), { times: 2 })

/**
 * How a tool is tried again, if it is.
 *
 * @category queries
 * @since 0.1.0
 */
export const retryOf = (self: WireTool.Any): Schedule.Schedule<unknown, unknown> | undefined => {
  const declared = Services.get(self.annotations, RetryPolicy)
  return declared === true ? twice : declared === false ? undefined : declared
}

/**
 * How many calls of a tool may run at a time, where that is limited.
 *
 * @category queries
 * @since 0.1.0
 */
export const concurrencyOf = (self: WireTool.Any): number | undefined => Services.get(self.annotations, Concurrency)

/**
 * How often a tool may be called in one run, where that is limited.
 *
 * @category queries
 * @since 0.1.0
 */
export const maxCallsOf = (self: WireTool.Any): number | undefined => Services.get(self.annotations, MaxCalls)

/**
 * What names the thing that calls of a tool must not touch at the same time.
 *
 * @category queries
 * @since 0.1.0
 */
export const conflictKeyOf = <T extends WireTool.Any>(
  self: T
): ((input: WireTool.Parameters<T>) => string) | undefined =>
  // `conflictKey` and `make` took it for this tool's input.
  Services.get(self.annotations, ConflictKey) as ((input: WireTool.Parameters<T>) => string) | undefined

/**
 * How many characters of a result the model sees, where that is limited.
 *
 * @category queries
 * @since 0.1.0
 */
export const maxResultSizeOf = (self: WireTool.Any): number | undefined => Services.get(self.annotations, MaxResultSize)

/** What is wrong with the options of a tool, without its name. */
export const problemsOf = (self: WireTool.Any): ReadonlyArray<string> => {
  const given = <A>(annotation: Services.Reference<A>): unknown => Services.get(self.annotations, annotation)
  const timeout = given(Timeout)
  const retry = given(RetryPolicy)
  const counts = {
    concurrency: given(Concurrency),
    maxCalls: given(MaxCalls),
    maxResultSize: given(MaxResultSize)
  }
  const key = given(ConflictKey)
  return [
    ...(timeout === undefined ? [] : Legal.durationProblem("timeout", timeout)),
    ...(retry === undefined || typeof retry === "boolean" || Schedule.isSchedule(retry)
      ? []
      : [`retry must be a Schedule or true, got ${Legal.shown(retry)}`]),
    ...Object.entries(counts).flatMap(([option, count]) =>
      count === undefined ? [] : Legal.countProblem(option, count)
    ),
    ...(key === undefined || typeof key === "function"
      ? []
      : [`conflictKey must be a function, got ${Legal.shown(key)}`]),
    ...Services.get(self.annotations, Guards).flatMap(({ problems }) => problems)
  ]
}
