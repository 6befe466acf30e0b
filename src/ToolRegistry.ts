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
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Context from "./Context.ts"
import * as Answer from "./internal/answer.ts"
import * as Callable from "./internal/callable.ts"
import * as Environment from "./internal/environment.ts"
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
  readonly schemas: (selection?: Selection) => ReadonlyArray<Tool.Advertised>
  /** A registry of some of these tools; refuses names that are not there. */
  readonly select: (selection: Selection) => Effect.Effect<Registry, RegistryError>
  /** Answers a call. Always succeeds, with one outcome; ends otherwise only when the caller is interrupted. */
  readonly answer: (call: Turn.Call, scope: Context.CallScope) => Effect.Effect<Turn.Outcome>
  readonly [EntriesKey]: ReadonlyArray<Answer.Entry>
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
      return assemble(tools.map((tool): Answer.Entry => ({ tool, run: tool[Callable.TypeId].handler, environment })))
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
      assemble(
        Object.values(toolkit.tools).map((tool): Answer.Entry => {
          const handler: WireTool.Handler<string> | undefined = context.mapUnsafe.get(tool.id)
          return {
            tool,
            run: (input, toolCallId) =>
              handler === undefined
                ? Effect.die(new Error(`tool ${JSON.stringify(tool.name)} has no handler`))
                : handler.handler(input, { toolCallId, preliminary: () => Effect.void }),
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
      const entries: Array<ReadonlyArray<Answer.Entry>> = []
      // Each layer is one of `Layers`, whose errors and needs the result has.
      for (const each of layers as ReadonlyArray<Each<Layers>>) {
        const context = yield* Layer.buildWithMemoMap(each, memoMap, scope)
        entries.push(Services.get(context, ToolRegistry)[EntriesKey])
      }
      return Services.make(ToolRegistry, yield* assemble(entries.flat()))
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
          registry[EntriesKey].map((entry) => ({
            ...entry,
            tool: Callable.rename(entry.tool, `${prefix}${entry.tool.name}`)
          }))
        ))
    ).pipe(Layer.provide(self))

const assemble = (entries: ReadonlyArray<Answer.Entry>): Effect.Effect<Registry, RegistryError> =>
  Effect.suspend(() => {
    const problems = [...duplicates(entries), ...twins(entries), ...entries.flatMap(({ tool }) => problemsOf(tool))]
    return problems.length > 0 ? Effect.fail(new RegistryError({ problems })) : Effect.succeed(build(entries))
  })

const duplicates = (entries: ReadonlyArray<Answer.Entry>): ReadonlyArray<string> => {
  const names = entries.map(({ tool }) => tool.name)
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return twice.size === 0 ? [] : [`duplicate tool names: ${Array.from(twice).sort().join(", ")}`]
}

/** Classes of slots that share an id, among everything that the handlers may need. */
const twins = (entries: ReadonlyArray<Answer.Entry>): ReadonlyArray<string> => {
  const byId = new Map<string, Set<unknown>>()
  for (const { environment } of entries) {
    for (const [, service] of environment.services) {
      const slots = Context.slotsOf(service)
      if (slots !== undefined) byId.set(slots.id, (byId.get(slots.id) ?? new Set()).add(slots))
    }
  }
  return Array.from(byId).filter(([, classes]) => classes.size > 1).map(([id]) =>
    `two classes of slots have the id ${JSON.stringify(id)}: give each its own`
  )
}

const legalName = /^[a-zA-Z0-9_-]{1,64}$/

const problemsOf = (tool: WireTool.Any): ReadonlyArray<string> => {
  const owner = `tool ${JSON.stringify(tool.name)}`
  const found = Tool.isTool(tool) ? [...tool[Callable.TypeId].problems] : []
  if (!legalName.test(tool.name)) found.push("a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -")
  if (tool.needsApproval !== undefined && tool.needsApproval !== false) {
    found.push("it needs approval, and nothing here can ask for it yet")
  }
  if (tool.toModelOutput !== undefined) found.push("its toModelOutput is not used yet")
  if (WireTool.isProviderDefined(tool)) found.push("tools that a provider defines are not taken yet")
  else {
    const schema = Result.try(() => Tool.schema(tool).input_schema)
    if (Result.isFailure(schema)) found.push(`its input has no JSON Schema: ${String(schema.failure)}`)
    else if (schema.success.type !== "object") found.push("its input must be an object at the root")
  }
  return found.map((problem) => `${owner}: ${problem}`)
}

const build = (unsorted: ReadonlyArray<Answer.Entry>): Registry => {
  const entries = unsorted.toSorted((a, b) => a.tool.name < b.tool.name ? -1 : 1)
  const byName = new Map(entries.map((entry) => [entry.tool.name, entry]))
  const names = entries.map(({ tool }) => tool.name)
  const selected = new WeakMap<Selection, Effect.Effect<Registry, RegistryError>>()
  const get = (name: string) => byName.get(name)?.tool
  const ofTool = <A>(f: (tool: WireTool.Any) => A) => (name: string): A | undefined => {
    const tool = get(name)
    return tool === undefined ? undefined : f(tool)
  }
  return {
    names,
    table: Tool.table(entries.map(({ tool }) => tool)),
    get,
    meta: ofTool(metaOf),
    isSerial: ofTool(Tool.isSerial),
    schemas: (selection = {}) =>
      entries.filter(({ tool }) => isSelected(tool, selection)).map(({ tool }) => Tool.schema(tool)),
    select: (selection) => {
      const known = selected.get(selection) ?? selectFrom(entries, byName, selection)
      selected.set(selection, known)
      return known
    },
    answer: (call, scope) => {
      const entry = byName.get(call.name)
      return entry === undefined ? Answer.unknownTool(call, names, scope) : Answer.answer(entry, call, scope)
    },
    [EntriesKey]: entries
  }
}

const isSelected = (tool: WireTool.Any, { excludeTags, names, tags }: Selection): boolean =>
  (names === undefined || names.includes(tool.name)) &&
  (tags === undefined || Tool.hasAnyTag(tool, tags)) &&
  (excludeTags === undefined || !Tool.hasAnyTag(tool, excludeTags))

const selectFrom = (
  entries: ReadonlyArray<Answer.Entry>,
  byName: ReadonlyMap<string, Answer.Entry>,
  selection: Selection
): Effect.Effect<Registry, RegistryError> => {
  const missing = (selection.names ?? []).filter((name) => !byName.has(name))
  return missing.length > 0
    ? Effect.fail(
      new RegistryError({
        problems: [`no tools are named ${missing.join(", ")}; there are: ${Answer.listed(Array.from(byName.keys()))}`]
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
  meta: Services.getOrUndefined(tool.annotations, WireTool.Meta)
})
