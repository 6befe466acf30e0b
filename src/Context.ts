/**
 * What does an agent remember? Typed slots: read as one snapshot, changed by one fold.
 *
 * A slot is a place with a Schema, a `Combiner` and an initial value. Any tool may read slots and any tool may write
 * them, but a write is only an intent: the writes of a whole batch fold into the next context at a barrier, in call
 * order, slot by slot. So what an agent remembers never depends on which tool finished first.
 *
 * Laws of the fold, for all contexts `s` and lists of writes `a` and `b`:
 *
 * - `fold(s, []) = s`
 * - `fold(fold(s, a), b) = fold(s, [...a, ...b])`
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as Issue from "effect/SchemaIssue"
import * as Parser from "effect/SchemaParser"
import * as Transformation from "effect/SchemaTransformation"
import * as Codec from "./internal/codec.ts"
import * as Explain from "./internal/explain.ts"
import * as Log from "./internal/log.ts"
import type { Slot } from "./internal/slot.ts"

export { first, last, list, max, min, record, set, type Slot, slot, sum } from "./internal/slot.ts"

/**
 * The slots of one class, by name.
 *
 * @category models
 * @since 0.1.0
 */
export interface Definitions {
  // oxlint-disable-next-line typescript/no-explicit-any -- the only bound that TypeScript has for an invariant parameter
  readonly [name: string]: Slot<any>
}

/**
 * Every slot at one moment.
 *
 * @category models
 * @since 0.1.0
 */
export type Snapshot<D extends Definitions> = { readonly [K in keyof D]: D[K] extends Slot<infer A> ? A : never }

/**
 * What one write says: a value for some of the slots.
 *
 * @category models
 * @since 0.1.0
 */
export type Values<D extends Definitions> = { readonly [K in keyof D]?: D[K] extends Slot<infer A> ? A : never }

/**
 * The intent to change slots of one class. `encoded` is the same as JSON data.
 *
 * @category models
 * @since 0.1.0
 */
export interface Write {
  readonly slots: AnySlots
  readonly values: { readonly [name: string]: unknown }
  readonly encoded: { readonly [name: string]: unknown }
}

const TypeId = "~toolfold/Context"
const CellTypeId = "~toolfold/Context/Cell"

/**
 * All slots of all classes at one moment: immutable, and what a finished run carries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Context {
  readonly [TypeId]: typeof TypeId
  readonly entries: ReadonlyMap<string, Entry>
}

/**
 * What a context holds for one class of slots.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly slots: AnySlots
  readonly values: { readonly [name: string]: unknown }
}

/**
 * What a handler sees of its slots. `get` and `snapshot` show the start of the turn, for every call of the batch and
 * under every concurrency: neither a call's own writes nor its siblings' are visible. `write` is buffered and folds at
 * the barrier if the call succeeds.
 *
 * The cell finds the running call through the running fiber when it is used. Outside a call (also in a callback of
 * foreign code, where no fiber runs) `get` shows the initial values, and `write` is a defect that says so.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cell<D extends Definitions> {
  readonly [CellTypeId]: AnySlots
  readonly get: <K extends keyof D & string>(name: K) => Snapshot<D>[K]
  readonly snapshot: Snapshot<D>
  readonly write: (values: Values<D>) => Effect.Effect<void>
}

/**
 * A class of slots: a service key for handlers, and the slots themselves.
 *
 * @category models
 * @since 0.1.0
 */
export interface SlotsClass<in out Self, in out Id extends string, D extends Definitions>
  extends Services.ServiceClass<Self, Id, Cell<D>>
{
  readonly id: Id
  readonly slots: D
  readonly initial: Snapshot<D>
  /** Satisfies the handlers' requirement. It serves every run, since the cell holds no state. */
  readonly layer: Layer.Layer<Self>
  /** These slots in a context; initial values where nothing was written. */
  readonly from: (context: Context) => Snapshot<D>
  /** A context in which these slots have the given values. */
  readonly into: (context: Context, values: Values<D>) => Context
  /** A write as a value, for `fold`. Throws when a value does not match its slot. */
  readonly write: (values: Values<D>) => Write
}

/**
 * Any class of slots, as the fold sees it.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnySlots {
  readonly id: string
  readonly slots: Definitions
  readonly initial: { readonly [name: string]: unknown }
}

/**
 * Declares a class of slots. In a handler `yield* Trip` gives the cell, and the class then stands in the handler's `R`:
 * a program that does not provide `Trip.layer` does not compile.
 *
 * **Example** (A handler that reads and writes)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 *
 * class Trip extends Context.Slots<Trip>()("app/Trip", {
 *   notes: Context.list(Schema.String),
 *   spent: Context.sum
 * }) {}
 *
 * const book = Effect.gen(function*() {
 *   const trip = yield* Trip
 *   yield* trip.write({ notes: ["hotel"], spent: 120 })
 *   return trip.get("spent")
 * })
 *
 * const captured = await Effect.runPromise(Context.capture(book))
 * captured.value // => 0
 * Trip.from(captured.context) // => { notes: ["hotel"], spent: 120 }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Slots =
  <Self>() => <const Id extends string, D extends Definitions>(id: Id, slots: D): SlotsClass<Self, Id, D> => {
    if (Object.hasOwn(slots, "__proto__")) {
      throw new Error(`slots ${JSON.stringify(id)}: no slot may be called __proto__`)
    }
    const initial = Object.fromEntries(Object.entries(slots).map(([name, { initial }]) => [name, initial]))
    const self: AnySlots = { id, slots, initial }
    const write = (values: { readonly [name: string]: unknown }) => writing(self, values)
    const cell = {
      [CellTypeId]: self,
      get: (name: string) => valuesOf(running()?.context ?? empty, self)[name],
      get snapshot() {
        return valuesOf(running()?.context ?? empty, self)
      },
      write: (values: { readonly [name: string]: unknown }) =>
        Effect.suspend(() => {
          const call = running()
          if (call === undefined) {
            throw new Error(`write to ${id} outside a tool call: slots change only at a run's barrier`)
          }
          const entry = write(values)
          if (call.open) {
            call.writes.push(entry)
            return Effect.void
          }
          return Log.safely(Effect.logWarning(`write to ${id} after its call was answered: dropped`))
        })
    }
    // A reference, so that `capture` can run a handler without knowing its classes; its type says service, so that a
    // program must provide the layer.
    const key = Services.Reference<unknown>(ownKey(id), { defaultValue: () => cell })
    const made = Object.assign(key, {
      ...self,
      layer: Layer.succeed(key)(cell),
      from: (context: Context) => valuesOf(context, self),
      into: (context: Context, values: { readonly [name: string]: unknown }) =>
        withEntry(context, self, { ...valuesOf(context, self), ...write(values).values }),
      write
    })
    // The wall is TypeScript's: a class that is built by hand cannot be inferred as effect's generic ServiceClass.
    return made as unknown as SlotsClass<Self, Id, D>
  }

const declarations = new Map<string, number>()

// Two classes with one id must not read each other's cell; which is why their keys differ. Assembly refuses the two.
const ownKey = (id: string): string => {
  const before = declarations.get(id) ?? 0
  declarations.set(id, before + 1)
  return before === 0 ? id : `${id}#${before + 1}`
}

/**
 * The class whose cell a service is, if it is one: how a registry finds two classes with one id.
 *
 * @category guards
 * @since 0.1.0
 */
export const slotsOf = (service: unknown): AnySlots | undefined =>
  typeof service === "object" && service !== null && CellTypeId in service ? service[CellTypeId] as AnySlots : undefined

const sameClass = (one: AnySlots, other: AnySlots): void => {
  if (one.slots !== other.slots) {
    throw new Error(`two classes of slots have the id ${JSON.stringify(one.id)}: give each its own`)
  }
}

// What is kept is made from the stored form, so a handler that goes on changing what it wrote changes nothing here.
const writing = (slots: AnySlots, given: { readonly [name: string]: unknown }): Write => {
  const encoded: Record<string, unknown> = {}
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(given)) {
    const slot = Object.hasOwn(slots.slots, name) ? slots.slots[name] : undefined
    if (slot === undefined) {
      throw new Error(
        `slots ${JSON.stringify(slots.id)} have no ${JSON.stringify(name)}, only: ${
          Object.keys(slots.slots).join(", ")
        }`
      )
    }
    const codec = Codec.jsonCodec(slot.schema)
    encoded[name] = now(codec.encode(given[name]), slots, name)
    values[name] = now(codec.decode(encoded[name]), slots, name)
  }
  return { slots, values, encoded }
}

const now = (effect: Effect.Effect<unknown, Issue.Issue, unknown>, slots: AnySlots, name: string): unknown => {
  // The schema of a slot needs no services.
  const exit = Effect.runSyncExit(effect as Effect.Effect<unknown, Issue.Issue>)
  if (Exit.isSuccess(exit)) return exit.value
  const issue = Cause.findErrorOption(exit.cause)
  const problem = Option.isSome(issue) ? Explain.describe(issue.value) : String(Cause.squash(exit.cause))
  throw new Error(`write to slot ${JSON.stringify(name)} of ${slots.id}: ${problem}`)
}

const valuesOf = (context: Context, slots: AnySlots): { readonly [name: string]: unknown } => {
  const entry = context.entries.get(slots.id)
  if (entry === undefined) return slots.initial
  sameClass(entry.slots, slots)
  return entry.values
}

const withEntry = (context: Context, slots: AnySlots, values: Entry["values"]): Context =>
  make(new Map(context.entries).set(slots.id, { slots, values }))

const make = (entries: ReadonlyMap<string, Entry>): Context => ({ [TypeId]: TypeId, entries })

/**
 * A write from its stored form; throws for a value that does not match its slot.
 *
 * @category storing
 * @since 0.1.0
 */
export const decodeWrite = (slots: AnySlots, encoded: Write["encoded"]): Write => {
  const decoded = Object.entries(encoded).map(([name, value]) => {
    const schema = Object.hasOwn(slots.slots, name) ? slots.slots[name]?.schema : undefined
    return [name, schema === undefined ? value : now(Codec.jsonCodec(schema).decode(value), slots, name)] as const
  })
  return writing(slots, Object.fromEntries(decoded))
}

/**
 * The context in which nothing was written yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Context = make(new Map())

/**
 * Folds writes into the next context, left to right, by each slot's combiner: the only way a context changes. Pure;
 * throws what a combiner throws.
 *
 * @category fold
 * @since 0.1.0
 */
export const fold = (self: Context, writes: ReadonlyArray<Write>): Context => {
  if (writes.length === 0) return self
  const entries = new Map(self.entries)
  for (const { slots, values } of writes) {
    const next = { ...valuesOf({ [TypeId]: TypeId, entries }, slots) }
    for (const name of Object.keys(values)) next[name] = slots.slots[name]?.combiner.combine(next[name], values[name])
    entries.set(slots.id, { slots, values: next })
  }
  return make(entries)
}

/**
 * What of a context is not as it was before: the classes of slots that changed.
 *
 * @category fold
 * @since 0.1.0
 */
export const changes = (before: Context, after: Context): Context =>
  make(new Map(Array.from(after.entries).filter(([id, entry]) => before.entries.get(id) !== entry)))

/**
 * What a call says while it runs: how far it is, or that its body is tried again, because the attempt before failed or was too
 * late.
 *
 * @category running call
 * @since 0.1.0
 */
export type Report =
  | { readonly _tag: "Progress"; readonly progress: unknown }
  | { readonly _tag: "Retry"; readonly attempt: number; readonly reason: "failure" | "timeout" }

/**
 * One running call, as its slots see it: the snapshot that it reads and the buffer that it writes to. `open` ends with
 * the call's answer; later writes are dropped and reported.
 *
 * @category running call
 * @since 0.1.0
 */
export interface CallScope {
  /** Names the call within everything that a program runs; empty for a call outside a run. */
  readonly id: string
  readonly context: Context
  readonly writes: Array<Write>
  open: boolean
  /** Its work goes on although it was interrupted. */
  stillRunning: boolean
  /** The call within which it is made, if any. */
  outer: CallScope | undefined
  /** What was read into its arguments so that they fit, and what they became. */
  repaired: { readonly input: unknown; readonly repairs: ReadonlyArray<string> } | undefined
  /** How often its body was tried. */
  attempts: number
  /** Takes what it says while it runs, where somebody watches. */
  report?: (report: Report) => Effect.Effect<void>
  /** The run that makes it, for an agent that is a tool. */
  readonly run: { readonly id: string } | undefined
  /** How the agent within it waits, or what it is resumed with. */
  waiting?: unknown
  /** An agent has run within it. */
  hasAgent?: boolean
}

class Scope implements CallScope {
  readonly context: Context
  readonly writes: Array<Write>
  open: boolean
  stillRunning: boolean
  outer: CallScope | undefined
  repaired: CallScope["repaired"]
  attempts: number
  /** The run that makes it, or its name where none does. */
  readonly owner: { readonly id: string } | string
  readonly turn: number
  readonly at: number
  constructor(
    context: Context,
    outer: CallScope | undefined,
    owner: { readonly id: string } | string,
    turn: number,
    at: number
  ) {
    this.context = context
    this.writes = []
    this.open = true
    this.stillRunning = false
    this.outer = outer
    this.repaired = undefined
    this.attempts = 0
    this.owner = owner
    this.turn = turn
    this.at = at
  }
  // Made when somebody asks for it, which is seldom.
  get id(): string {
    return typeof this.owner === "string" ? this.owner : `${this.owner.id}-${this.turn}-${this.at}`
  }
  get run(): CallScope["run"] {
    return typeof this.owner === "string" ? undefined : this.owner
  }
}

/**
 * The scope of a call that starts from a context.
 *
 * @category running call
 * @since 0.1.0
 */
export const callScope = (context: Context = empty, id = "", outer?: CallScope): CallScope =>
  new Scope(context, outer, id, 0, 0)

/**
 * The scope of a call of a run: of which turn, and which it is there.
 *
 * @category running call
 * @since 0.1.0
 */
export const callScopeOf = (run: { readonly id: string }, context: Context, turn: number, at: number): CallScope =>
  new Scope(context, undefined, run, turn, at)

/**
 * Says of a call that its work goes on although it was interrupted, and so of every call within which it was made.
 *
 * @category running call
 * @since 0.1.0
 */
export const goesOn = (scope: CallScope | undefined): void => {
  for (let call = scope; call !== undefined; call = call.outer) call.stillRunning = true
}

/**
 * The call that the running fiber answers, if any.
 *
 * @category running call
 * @since 0.1.0
 */
export const CurrentCall: Services.Reference<CallScope | undefined> = Services.Reference<CallScope | undefined>(
  "toolfold/Context/CurrentCall",
  { defaultValue: () => undefined }
)

const running = (): CallScope | undefined => Fiber.getCurrent()?.getRef(CurrentCall)

/**
 * What stays of an effect's requirements when its slots are provided.
 *
 * @category running call
 * @since 0.1.0
 */
export type WithoutSlots<R> = R extends { readonly Service: { readonly [CellTypeId]: AnySlots } } ? never : R

/**
 * Runs a handler alone, as one call: for tests of handlers. Gives its value, its writes, and the context after them.
 *
 * @category running call
 * @since 0.1.0
 */
export const capture = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  options: { readonly from?: Context | undefined } = {}
): Effect.Effect<
  { readonly value: A; readonly writes: ReadonlyArray<Write>; readonly context: Context },
  E,
  WithoutSlots<R>
> =>
  Effect.suspend(() => {
    const scope = callScope(options.from)
    return Effect.map(Effect.provideService(effect, CurrentCall, scope), (value) => {
      scope.open = false
      return { value, writes: scope.writes, context: fold(scope.context, scope.writes) }
    })
    // The cell of every class is the default of its key, so nothing needs to be provided.
  }) as Effect.Effect<never, E, WithoutSlots<R>>

/**
 * A context as stored data, with the version of its form.
 *
 * @category storing
 * @since 0.1.0
 */
export interface Encoded {
  readonly version: 1
  readonly slots: { readonly [id: string]: { readonly [name: string]: unknown } }
}

const declared = Schema.declare((u): u is Context => typeof u === "object" && u !== null && TypeId in u, {
  identifier: "toolfold/Context"
})

/**
 * The Schema of contexts that hold these classes, for a store of one's own. A slot that the data lacks starts at its
 * initial value; a class or slot that the data has and the program lacks is an error, since it would be lost.
 *
 * @category storing
 * @since 0.1.0
 */
export const schema = (...classes: ReadonlyArray<AnySlots>): Schema.Codec<Context, Encoded> => {
  const forms = new Map(classes.map((slots) => [slots.id, storedForm(slots)]))
  const each = <A, B>(
    entries: Iterable<readonly [string, A]>,
    convert: (form: ReturnType<typeof storedForm>, value: A) => Effect.Effect<B, Issue.Issue>
  ) =>
    Effect.forEach(Array.from(entries), ([id, value]): Effect.Effect<readonly [string, B], Issue.Issue> => {
      const form = forms.get(id)
      return form === undefined
        ? Effect.fail(at(id, new Issue.InvalidValue({ message: "Unknown class of slots" })))
        : Effect.mapBoth(convert(form, value), { onFailure: (issue) => at(id, issue), onSuccess: (out) => [id, out] })
    })
  return Stored.pipe(Schema.decodeTo(
    declared,
    Transformation.transformEffect({
      decode: ({ slots }) =>
        Effect.map(
          each(Object.entries(slots), (form, values) =>
            Effect.map(form.decode(values, strictly), (decoded): Entry => ({
              slots: form.slots,
              values: { ...form.slots.initial, ...decoded }
            }))),
          (entries) => make(new Map(entries))
        ),
      encode: ({ entries }: Context) =>
        Effect.map(
          each(entries, (form, { values }) => form.encode(values)),
          (encoded): typeof Stored.Type => ({ version: 1, slots: Object.fromEntries(encoded) })
        )
    })
  ))
}

const Stored = Schema.Struct({
  version: Schema.Literal(1),
  slots: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown))
})

const strictly = { errors: "all", onExcessProperty: "error" } as const

const at = (id: string, issue: Issue.Issue): Issue.Issue => new Issue.Pointer(["slots", id], issue)

const storedForm = (slots: AnySlots) => {
  const codec = Schema.Struct(Record.map(slots.slots, ({ schema }) => Schema.optionalKey(Schema.toCodecJson(schema))))
  return { slots, decode: Parser.decodeUnknownEffect(codec), encode: Parser.encodeUnknownEffect(codec) }
}

/**
 * A context as JSON data.
 *
 * @category storing
 * @since 0.1.0
 */
export const encode = (context: Context): Effect.Effect<Encoded, Schema.SchemaError> =>
  Schema.encodeEffect(schema(...Array.from(context.entries.values(), ({ slots }) => slots)))(context)

/**
 * A context from JSON data; the classes say what the slots are.
 *
 * **Example** (To JSON and back)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 *
 * class Trip extends Context.Slots<Trip>()("app/Trip", { cities: Context.set(Schema.String) }) {}
 *
 * const context = Trip.into(Context.empty, { cities: new Set(["Oslo"]) })
 * const stored = JSON.stringify(await Effect.runPromise(Context.encode(context)))
 * stored // => '{"version":1,"slots":{"app/Trip":{"cities":["Oslo"]}}}'
 * const restored = await Effect.runPromise(Context.decode(JSON.parse(stored), [Trip]))
 * Trip.from(restored).cities.has("Oslo") // => true
 * ```
 *
 * @category storing
 * @since 0.1.0
 */
export const decode = (
  encoded: unknown,
  classes: ReadonlyArray<AnySlots>
): Effect.Effect<Context, Schema.SchemaError> => Schema.decodeUnknownEffect(schema(...classes))(encoded)
