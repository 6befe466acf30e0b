/**
 * Who answers? A registry: a call in, exactly one outcome out.
 *
 * A registry is one table that is built at assembly, where every bad declaration is refused; at run time a call is one
 * look-up. A mistake of the model is an outcome that it is told about, never an error of the program. What a registry
 * does not advertise it does not execute.
 *
 * @since 0.1.0
 */
import * as WireTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Context from "./Context.ts"
import * as Answer from "./internal/answer.ts"
import type * as Around from "./internal/around.ts"
import * as Assembly from "./internal/assembly.ts"
import * as Attempt from "./internal/attempt.ts"
import * as Callable from "./internal/callable.ts"
import type { Entry } from "./internal/entry.ts"
import * as Environment from "./internal/environment.ts"
import * as Failing from "./internal/failing.ts"
import * as Legal from "./internal/legal.ts"
import * as Outcome from "./internal/outcome.ts"
import * as Reporting from "./internal/reporting.ts"
import * as SideBySide from "./internal/sideBySide.ts"
import * as Tool from "./Tool.ts"
import type * as Turn from "./Turn.ts"

/**
 * Which tools of a registry: those with one of the `tags`, without any of `excludeTags`, and with one of the `names`.
 * Exclusion wins; what is not said does not restrict.
 *
 * @category models
 * @since 0.1.0
 */
export interface Selection {
  readonly tags?: ReadonlyArray<string> | undefined
  readonly excludeTags?: ReadonlyArray<string> | undefined
  readonly names?: ReadonlyArray<string> | undefined
}

/**
 * What a tool declares, for whoever lists tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface Meta {
  readonly name: string
  readonly description: string | undefined
  readonly tags: ReadonlyArray<string>
  readonly category: string | undefined
  readonly title: string | undefined
  readonly readOnly: boolean
  readonly destructive: boolean
  readonly idempotent: boolean
  readonly openWorld: boolean
  readonly serial: boolean
  readonly sensitive: boolean
  readonly meta: Record<string, unknown> | undefined
}

/**
 * A registry as a value. Tools stand in the order of their names, so that one set of tools is always the same list, byte
 * for byte, whoever was registered first. A question about an unknown name is answered with `undefined`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Registry {
  readonly names: ReadonlyArray<string>
  readonly table: Tool.Table
  readonly get: (name: string) => WireTool.Any | undefined
  readonly meta: (name: string) => Meta | undefined
  readonly isSerial: (name: string) => boolean | undefined
  readonly isReturnDirect: (name: string) => boolean | undefined
  /** How often it may be called in one run. */
  readonly maxCalls: (name: string) => number | undefined
  /** Whether its calls may need somebody's yes. */
  readonly isSensitive: (name: string) => boolean | undefined
  /** No tool of it is serial, sensitive, limited or the answer, so that nobody needs to ask for each call. */
  readonly isSimple: boolean
  /** What the tool itself declares. */
  readonly timeout: (name: string) => Duration.Duration | undefined
  /** What holds for it: what it declares, else what its agent, else what its registry says. */
  readonly effectiveTimeout: (name: string) => Duration.Duration | undefined
  readonly retryPolicy: (name: string) => Schedule.Schedule<unknown, unknown> | undefined
  readonly schemas: (selection?: Selection) => ReadonlyArray<Tool.Advertised>
  /** A registry of some of these tools; refuses names that are not there. */
  readonly select: (selection: Selection) => Effect.Effect<Registry, RegistryError>
  /** A registry of the same tools; those that declare no timeout have this one. */
  readonly within: (timeout: Duration.Duration) => Registry
  /** Answers a call. Always succeeds, with one outcome; ends otherwise only when the caller is interrupted. */
  readonly answer: (call: Turn.Call, scope: Context.CallScope) => Effect.Effect<Turn.Outcome>
  /** Reads a call without running it: its input as JSON and decoded, or what it comes to because it does not fit. */
  readonly read: (call: Turn.Call, scope: Context.CallScope) => Effect.Effect<Answer.Read>
  /** The classes of slots among what its handlers need. */
  readonly slots: ReadonlyArray<Context.AnySlots>
  /** Begins to answer a call, in a fiber of its own, for whoever runs among these services. */
  readonly begin: (
    call: Turn.Call,
    scope: Context.CallScope,
    running: Services.Context<never>
  ) => Fiber.Fiber<Turn.Outcome>
  readonly [EntriesKey]: ReadonlyArray<Entry>
}

const EntriesKey = Symbol("toolfold/ToolRegistry/Entries")

/**
 * The registry of a program, as a service.
 *
 * **Example** (A registry for a test)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const now = Tool.make("now", { handler: () => Effect.succeed("12:00") })
 *
 * const names = Effect.map(ToolRegistry.ToolRegistry, (registry) => registry.names).pipe(
 *   Effect.provide(ToolRegistry.layer(now))
 * )
 * await Effect.runPromise(names) // => ["now"]
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class ToolRegistry extends Services.Service<ToolRegistry, Registry>()("toolfold/ToolRegistry") {}

/**
 * Why a registry could not be assembled: everything that is wrong, duplicate names first.
 *
 * @category errors
 * @since 0.1.0
 */
export class RegistryError extends Schema.TaggedError<RegistryError>()("RegistryError", {
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `the tool registry cannot be assembled:\n${this.problems.map((problem) => `- ${problem}`).join("\n")}`
  }
}

/**
 * A registry of tools. What the handlers need, services and slots, is what the layer needs.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Layer.Layer<ToolRegistry, RegistryError, Tool.Services<Tools[number]>> =>
  Layer.effect(
    ToolRegistry,
    Effect.contextWith((context: Services.Context<Tool.Services<Tools[number]>>) => {
      const environment = Environment.make(context as Services.Context<never>) // needed by handlers, whose needs are forgotten
      return start(tools.map((tool) => ({ tool, run: tool[Callable.TypeId].handler, environment })))
    })
  )

/**
 * A registry of any toolkit of `effect/ai`. Its handlers are what the layer needs.
 *
 * @category layers
 * @since 0.1.0
 */
export const fromToolkit = <Tools extends Record<string, WireTool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): Layer.Layer<
  ToolRegistry,
  RegistryError,
  WireTool.HandlersFor<Tools> | WireTool.HandlerServices<Tools[keyof Tools]>
> =>
  Layer.effect(
    ToolRegistry,
    Effect.contextWith((context: Services.Context<WireTool.HandlersFor<Tools>>) =>
      start(
        Object.values(toolkit.tools).map((tool): Assembly.Draft => {
          const handler: WireTool.Handler<string> | undefined = context.mapUnsafe.get(tool.id)
          return {
            tool,
            run: (input, toolCallId) =>
              handler === undefined
                ? Effect.die(new Error(`tool ${JSON.stringify(tool.name)} has no handler`))
                : handler.handler(input, {
                  toolCallId,
                  preliminary: (value: unknown) => Reporting.preliminary(tool.successSchema, value)
                }),
            environment: Environment.make(
              Services.merge(context as Services.Context<never>, handler?.context ?? Services.empty())
            )
          }
        })
      )
    )
  )

/**
 * One registry of the tools of several. A name in two of them is refused.
 *
 * @category combinators
 * @since 0.1.0
 */
export const merge = <const Layers extends ReadonlyArray<Layer.Layer<ToolRegistry, unknown, unknown>>>(
  ...layers: Layers
): Layer.Layer<ToolRegistry, RegistryError | Layer.Error<Layers[number]>, Layer.Services<Layers[number]>> =>
  // In one build, so that a layer below several of them is built once.
  Layer.fromBuild((memoMap, scope) =>
    Effect.gen(function*() {
      const entries: Array<ReadonlyArray<Entry>> = []
      // Each layer is one of `Layers`, whose errors and needs the result has.
      for (const each of layers as ReadonlyArray<Each<Layers>>) {
        const context = yield* Layer.buildWithMemoMap(each, memoMap, scope)
        entries.push(Services.get(context, ToolRegistry)[EntriesKey])
      }
      return Services.make(ToolRegistry, yield* assemble(Assembly.together(entries.flat())))
    })
  )

type Each<Layers extends ReadonlyArray<Layer.Layer<ToolRegistry, unknown, unknown>>> = Layer.Layer<
  ToolRegistry,
  Layer.Error<Layers[number]>,
  Layer.Services<Layers[number]>
>

/**
 * A registry of some of the tools of another.
 *
 * @category combinators
 * @since 0.1.0
 */
export const select =
  (selection: Selection) =>
  <E, R>(self: Layer.Layer<ToolRegistry, E, R>): Layer.Layer<ToolRegistry, E | RegistryError, R> =>
    Layer.effect(ToolRegistry, Effect.flatMap(ToolRegistry, (registry) => registry.select(selection))).pipe(
      Layer.provide(self)
    )

/**
 * A registry of the same tools under names with a prefix.
 *
 * @category combinators
 * @since 0.1.0
 */
export const prefix =
  (prefix: string) => <E, R>(self: Layer.Layer<ToolRegistry, E, R>): Layer.Layer<ToolRegistry, E | RegistryError, R> =>
    Layer.effect(
      ToolRegistry,
      Effect.flatMap(ToolRegistry, (registry) =>
        assemble(
          registry[EntriesKey].map((entry) => {
            const name = `${prefix}${entry.tool.name}`
            const tool = Callable.rename(entry.tool, name)
            return Assembly.planned({ ...entry, tool, declared: { ...entry.declared, tool: name } })
          })
        ))
    ).pipe(Layer.provide(self))

/**
 * A registry with something around every call: a cache, an audit log, a metric. What was added first is outermost. It
 * sees input that fits, runs once a call whatever is tried within, and may answer itself instead of running `next`, or
 * run `next` again. What a call wrote is what its last `next` wrote. What dies in it is an outcome of that call. One that
 * waits before `next` lets later calls with the same conflict key go first.
 *
 * **Example** (A metric, an audit log, and a cache)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Metric from "effect/Metric"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 * import * as Turn from "toolfold/Turn"
 *
 * const calls = Metric.counter("tool_calls")
 * const log: Array<string> = []
 * const cache = new Map<string, Turn.Outcome>()
 *
 * const double = Tool.make("double", {
 *   input: { n: Schema.Finite },
 *   output: Schema.Finite,
 *   handler: ({ n }) => Effect.sync(() => (log.push("ran"), 2 * n))
 * })
 *
 * const Tools = ToolRegistry.layer(double).pipe(
 *   ToolRegistry.around((_, next) => Effect.tap(next, () => Metric.update(calls, 1))),
 *   ToolRegistry.around((call, next) =>
 *     Effect.tap(next, (outcome) => Effect.sync(() => log.push(`${call.name}: ${Turn.told(outcome)}`)))
 *   ),
 *   ToolRegistry.around((call, next) => {
 *     const key = JSON.stringify([call.name, call.input])
 *     const known = cache.get(key)
 *     return known === undefined
 *       ? Effect.tap(next, (outcome) => Effect.sync(() => cache.set(key, outcome)))
 *       : Effect.succeed(known)
 *   })
 * )
 *
 * const twice = Effect.flatMap(ToolRegistry.ToolRegistry, (registry) => {
 *   const call = Turn.call({ id: "1", name: "double", params: { n: 21 } })
 *   return Effect.forEach([1, 2], () => registry.answer(call, Context.callScope()))
 * })
 * await Effect.runPromise(Effect.provide(twice, Tools))
 * log // => ["ran", "double: 42", "double: 42"]
 * const { count } = await Effect.runPromise(Metric.value(calls))
 * count // => 2
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const around =
  <R = never>(wrap: (call: AroundCall, next: Effect.Effect<Turn.Outcome>) => Effect.Effect<Turn.Outcome, never, R>) =>
  <E, RIn>(self: Layer.Layer<ToolRegistry, E, RIn>): Layer.Layer<ToolRegistry, E, R | RIn> =>
    Layer.effect(
      ToolRegistry,
      Effect.contextWith((context: Services.Context<R | ToolRegistry>) => {
        const environment = Environment.make(context as Services.Context<never>) // needed by `wrap`, whose needs are forgotten
        return Effect.map(ToolRegistry, (registry) =>
          build(registry[EntriesKey].map((entry) =>
            Assembly.planned({ ...entry, around: [...entry.around, { wrap, environment }] })
          )))
      })
    ).pipe(Layer.provide(self))

/**
 * A call as those around it see it: its `input` is decoded and fits.
 *
 * @category models
 * @since 0.1.0
 */
export type AroundCall = Around.Asked

/**
 * A registry whose tools have a deadline where they do not say one themselves. An agent's own `timeout` goes before it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const defaultTimeout =
  (timeout: Duration.Input) =>
  <E, R>(self: Layer.Layer<ToolRegistry, E, R>): Layer.Layer<ToolRegistry, E | RegistryError, R> =>
    Layer.effect(
      ToolRegistry,
      Effect.flatMap(ToolRegistry, (registry) => {
        const duration = Legal.duration(timeout)
        const [problem] = Legal.durationProblem("timeout", timeout)
        return duration === undefined
          ? Effect.fail(new RegistryError({ problems: [`registry: ${problem}`] }))
          : Effect.succeed(registry.within(duration))
      })
    ).pipe(Layer.provide(self))

const start = Effect.fnUntraced(function*(drafts: ReadonlyArray<Assembly.Draft>) {
  const problems = Assembly.problemsIn(drafts)
  if (problems.length > 0) return yield* Effect.fail(new RegistryError({ problems }))
  const locks = Attempt.locks()
  return build(yield* Effect.forEach(drafts, (draft) => Assembly.equip(draft, locks)))
})

const assemble = (entries: ReadonlyArray<Entry>): Effect.Effect<Registry, RegistryError> =>
  Effect.suspend(() => {
    const problems = Assembly.problemsIn(entries)
    return problems.length > 0 ? Effect.fail(new RegistryError({ problems })) : Effect.succeed(build(entries))
  })

const build = (unsorted: ReadonlyArray<Entry>): Registry => {
  const entries = unsorted.toSorted((a, b) => a.tool.name < b.tool.name ? -1 : 1)
  const byName = new Map(entries.map((entry) => [entry.tool.name, entry]))
  const names = entries.map(({ tool }) => tool.name)
  const selected = new WeakMap<Selection, Effect.Effect<Registry, RegistryError>>()
  const timed = new WeakMap<Duration.Duration, Registry>()
  const get = (name: string) => byName.get(name)?.tool
  const ofTool = <A>(f: (tool: WireTool.Any) => A) => (name: string): A | undefined => {
    const tool = get(name)
    return tool === undefined ? undefined : f(tool)
  }
  const begin: Registry["begin"] = (call, scope, running) => {
    const entry = byName.get(call.name)
    return entry === undefined
      ? Answer.unrun(scope, Outcome.unknownTool(call.name, names))
      : Answer.begin(entry, call, scope, running)
  }
  return {
    names,
    table: Tool.table(entries.map(({ tool }) => tool)),
    get,
    meta: ofTool(metaOf),
    isSimple: entries.every(({ isReturnDirect, isSensitive, isSerial, maxCalls }) =>
      !isReturnDirect && !isSensitive && !isSerial && maxCalls === undefined
    ),
    isSerial: (name) => byName.get(name)?.isSerial,
    isReturnDirect: (name) => byName.get(name)?.isReturnDirect,
    isSensitive: (name) => byName.get(name)?.isSensitive,
    maxCalls: (name) => byName.get(name)?.maxCalls,
    timeout: (name) => byName.get(name)?.declared.timeout,
    effectiveTimeout: (name) => byName.get(name)?.plan?.timeout,
    retryPolicy: (name) => byName.get(name)?.declared.retry,
    schemas: (selection = {}) =>
      entries.filter(({ tool }) => isSelected(tool, selection)).map(({ tool }) => Tool.schema(tool)),
    select: (selection) => {
      const known = selected.get(selection) ?? selectFrom(entries, byName, selection)
      selected.set(selection, known)
      return known
    },
    within: (timeout) => {
      const known = timed.get(timeout) ??
        build(entries.map((entry) => Assembly.planned({ ...entry, fallbackTimeout: timeout })))
      timed.set(timeout, known)
      return known
    },
    answer: (call, scope) => SideBySide.one((running) => begin(call, scope, running), () => Failing.lost(scope)),
    begin,
    read: (call, scope) => {
      const entry = byName.get(call.name)
      return entry === undefined
        ? Effect.succeed({ _tag: "Misfit", outcome: Outcome.unknownTool(call.name, names) })
        : Answer.read(entry, call, scope)
    },
    get slots() {
      return Assembly.slotsOf(entries)
    },
    [EntriesKey]: entries
  }
}

const isSelected = (tool: WireTool.Any, { excludeTags, names, tags }: Selection): boolean =>
  (names === undefined || names.includes(tool.name)) &&
  (tags === undefined || Tool.hasAnyTag(tool, tags)) &&
  (excludeTags === undefined || !Tool.hasAnyTag(tool, excludeTags))

const selectFrom = (
  entries: ReadonlyArray<Entry>,
  byName: ReadonlyMap<string, Entry>,
  selection: Selection
): Effect.Effect<Registry, RegistryError> => {
  const missing = (selection.names ?? []).filter((name) => !byName.has(name))
  return missing.length > 0
    ? Effect.fail(
      new RegistryError({
        problems: [`no tools are named ${missing.join(", ")}; there are: ${Outcome.listed(Array.from(byName.keys()))}`]
      })
    )
    : Effect.succeed(build(entries.filter(({ tool }) => isSelected(tool, selection))))
}

const metaOf = (tool: WireTool.Any): Meta => ({
  name: tool.name,
  description: WireTool.getDescription(tool),
  tags: Tool.tags(tool),
  category: Tool.categoryOf(tool),
  title: Services.getOrUndefined(tool.annotations, WireTool.Title),
  readOnly: Services.get(tool.annotations, WireTool.Readonly),
  destructive: Services.get(tool.annotations, WireTool.Destructive),
  idempotent: Services.get(tool.annotations, WireTool.Idempotent),
  openWorld: Services.get(tool.annotations, WireTool.OpenWorld),
  serial: Tool.isSerial(tool),
  sensitive: Tool.isSensitive(tool),
  meta: Services.getOrUndefined(tool.annotations, WireTool.Meta)
})
