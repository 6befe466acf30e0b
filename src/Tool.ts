/**
 * What may the model ask for? A name, a description, a Schema in, a Schema out, and an Effect as the body.
 *
 * A tool is three things at once: the declaration that a registry reads, a real tool of `effect/ai` that goes into
 * `Toolkit.make` and an MCP server unchanged, and the plain function of its handler.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import type { Pipeable } from "effect/Pipeable"
import * as Schema from "effect/Schema"
import type * as Types from "effect/Types"
import * as Arguments from "./internal/arguments.ts"
import * as Attempt from "./internal/attempt.ts"
import * as Callable from "./internal/callable.ts"
import * as Codec from "./internal/codec.ts"
import * as Explain from "./internal/explain.ts"
import * as FailureClass from "./internal/failureClass.ts"
import * as JsonSchema from "./internal/jsonSchema.ts"
import * as Options from "./internal/options.ts"
import * as Reporting from "./internal/reporting.ts"
import * as Subjects from "./internal/subjects.ts"
import * as Text from "./internal/text.ts"

export {
  category,
  categoryOf,
  concurrency,
  concurrencyOf,
  conflictKey,
  conflictKeyOf,
  destructive,
  hasAnyTag,
  idempotent,
  isReturnDirect,
  isSerial,
  maxCalls,
  maxCallsOf,
  maxResultSize,
  maxResultSizeOf,
  meta,
  openWorld,
  type Options,
  readOnly,
  retry,
  retryOf,
  returnDirect,
  serial,
  strict,
  tags,
  timeout,
  timeoutOf,
  title
} from "./internal/options.ts"
export {
  isSensitive,
  needsApproval,
  sensitive,
  type SubjectOf,
  type Subjects,
  subjects,
  subjectsOf
} from "./internal/subjects.ts"

/**
 * A tool: callable, and a tool of `effect/ai`. `R` is what its handler needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tool<
  out Name extends string,
  In extends Schema.Constraint,
  Out extends Schema.Constraint,
  Fail extends Schema.Constraint,
  out R = never
> extends WireTool.Tool<Name, Config<In, Out, Fail>, R>, Pipeable {
  /** Runs the handler alone, with defaults applied: no validation, and nothing of what a registry does around it. */
  (...input: CallArguments<In>): Effect.Effect<Out["Type"], Fail["Type"], R | In["DecodingServices"]>
  readonly [Callable.TypeId]: Callable.Declaration
  annotate<I, S>(tag: Services.Key<I, S>, value: S): Tool<Name, In, Out, Fail, R>
  annotateMerge<I>(context: Services.Context<I>): Tool<Name, In, Out, Fail, R>
  /** Never chosen by a call: it is where `effect/ai`'s types find the schemas. */
  annotateMerge<I>(context: Services.Context<I>): WireTool.Tool<Name, Config<In, Out, Fail>, R>
  addDependency<I, S>(tag: Services.Key<I, S>): Tool<Name, In, Out, Fail, R | I>
  setNeedsApproval(needsApproval: WireTool.NeedsApproval<In>): Tool<Name, In, Out, Fail, R>
  /** The schemas belong to the handler: declare another tool instead. */
  readonly setParameters: never
  readonly setSuccess: never
  readonly setFailure: never
}

/**
 * How `effect/ai` sees the schemas of a tool.
 *
 * @category models
 * @since 0.1.0
 */
export interface Config<In extends Schema.Constraint, Out extends Schema.Constraint, Fail extends Schema.Constraint> {
  readonly parameters: In
  readonly success: Out
  readonly failure: Fail
  readonly failureMode: "return"
}

/**
 * Any tool of ours, its schemas and needs forgotten.
 *
 * @category models
 * @since 0.1.0
 */
export type Any = Callable.AnyTool

type Fields = Schema.Struct.Fields

/**
 * The schema of an `input` option: itself, or the Struct of its fields.
 *
 * @category inference
 * @since 0.1.0
 */
export type InputSchema<I> = I extends Schema.Constraint ? I : I extends Fields ? Schema.Struct<I> : never

type OptionalKeys<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? K : never }[keyof T]

/**
 * What the plain call takes: the decoded input, where a parameter with a decoding default may be left out.
 *
 * @category inference
 * @since 0.1.0
 */
export type PlainInput<In extends Schema.Constraint> = Types.Simplify<
  & Omit<In["Type"], OptionalKeys<In["Encoded"]> & keyof In["Type"]>
  & Partial<Pick<In["Type"], OptionalKeys<In["Encoded"]> & keyof In["Type"]>>
>

/**
 * The arguments of the plain call: none where nothing is required.
 *
 * @category inference
 * @since 0.1.0
 */
export type CallArguments<In extends Schema.Constraint> = {} extends PlainInput<In> ? [input?: PlainInput<In>]
  : [input: PlainInput<In>]

/**
 * What a tool's handler gets.
 *
 * @category inference
 * @since 0.1.0
 */
export type Input<T> = T extends Tool<infer _N, infer In, infer _O, infer _F, infer _R> ? In["Type"] : never

/**
 * What a tool's handler gives.
 *
 * @category inference
 * @since 0.1.0
 */
export type Output<T> = T extends Tool<infer _N, infer _I, infer Out, infer _F, infer _R> ? Out["Type"] : never

/**
 * How a tool's handler may fail.
 *
 * @category inference
 * @since 0.1.0
 */
export type Failure<T> = T extends Tool<infer _N, infer _I, infer _O, infer Fail, infer _R> ? Fail["Type"] : never

/**
 * What a tool needs: its handler's services and slots, and those of its schemas.
 *
 * @category inference
 * @since 0.1.0
 */
export type Services_<T> = T extends Tool<infer _N, infer In, infer Out, infer Fail, infer R>
  ? R | In["DecodingServices"] | Out["EncodingServices"] | Fail["EncodingServices"]
  // Whose needs are forgotten may need anything.
  : unknown
export type { Services_ as Services }

const annotations = { ...Options.annotations, ...Subjects.annotations }

const known = new Set([
  "description",
  "input",
  "output",
  "failure",
  "handler",
  "toModelOutput",
  ...Object.keys(annotations)
])

/**
 * Declares a tool.
 *
 * `input` is a Struct schema or its fields; what is advertised and what decodes the arguments is one codec, its
 * properties in the order of declaration. `output` is what the handler gives, `String` when absent. `failure` is how it
 * may fail: the model sees such a failure in full, and nothing of any other. A declaration that is wrong is refused
 * where a registry is assembled, together with everything else that is wrong there.
 *
 * **Example** (A tool is also the function)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "toolfold/Tool"
 *
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   input: { a: Schema.Finite, b: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))) },
 *   output: Schema.Finite,
 *   handler: ({ a, b }) => Effect.succeed(a + b)
 * })
 *
 * await Effect.runPromise(add({ a: 41 })) // => 42
 * Tool.schema(add).input_schema.required // => ["a"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <
  const Name extends string,
  R,
  I extends Fields | Schema.Constraint = {},
  Out extends Schema.Constraint = Schema.String,
  Fail extends Schema.Constraint = Schema.Never
>(
  name: Name,
  options: Options.Options & {
    readonly description?: string | undefined
    readonly input?: I | undefined
    readonly output?: Out | undefined
    readonly failure?: Fail | undefined
    /** What the model sees in the place of the result, where its provider takes them: texts and files of `Prompt.makePart`. */
    readonly toModelOutput?: ((output: NoInfer<Out>["Type"]) => ReadonlyArray<Prompt.ToolModelOutputPart>) | undefined
    /** See `conflictKey`. */
    readonly conflictKey?: ((input: InputSchema<NoInfer<I>>["Type"]) => string) | undefined
    /** See `subjects`. */
    readonly subjects?: Subjects.Subjects<InputSchema<NoInfer<I>>["Type"]> | undefined
    readonly handler: (
      input: InputSchema<NoInfer<I>>["Type"]
    ) => Effect.Effect<NoInfer<Out>["Type"], NoInfer<Fail>["Type"], R>
  }
): Tool<Name, InputSchema<I>, Out, Fail, R> => {
  const given = options.input ?? {}
  const input: Schema.Constraint = Schema.isSchema(given) ? given : Schema.Struct(given as Fields)
  const failure = options.failure ?? Schema.Never
  const output = options.output ?? Schema.String
  const problems = Object.keys(options).filter((key) => !known.has(key))
    .map((key) => `unknown option ${JSON.stringify(key)}; known: ${Array.from(known).join(", ")}`)
  let notes = Services.empty()
  for (const [key, annotation] of Object.entries(annotations)) {
    const value: unknown = Reflect.get(options, key)
    if (value !== undefined) notes = Services.add(notes, annotation as Services.Reference<unknown>, value)
  }
  const handler = options.handler as Callable.Declaration["handler"]
  return Callable.build({
    [Callable.TypeId]: { input, output, failure, handler, problems },
    id: `effect/ai/Tool/${name}`,
    name,
    description: options.description,
    toModelOutput: options.toModelOutput,
    failureMode: "return",
    parametersSchema: Schema.toCodecJson(input),
    successSchema: Schema.toCodecJson(output),
    failureSchema: Schema.toCodecJson(failure),
    annotations: notes
  }) as unknown as Tool<Name, InputSchema<I>, Out, Fail, R> // its types were checked above; `build` knows the shape alone
}

/**
 * Whether a value is a tool of ours.
 *
 * @category guards
 * @since 0.1.0
 */
export const isTool = (u: unknown): u is Any => typeof u === "function" && Callable.TypeId in u

/**
 * What a model is shown of a tool. Made once for each tool; its bytes never change.
 *
 * @category queries
 * @since 0.1.0
 */
export interface Advertised {
  readonly name: string
  readonly description?: string
  readonly input_schema: JsonSchema.JsonSchema
  readonly strict?: boolean
}

const advertised = new WeakMap<WireTool.Any, Advertised>()

/**
 * What is advertised of a tool.
 *
 * @category queries
 * @since 0.1.0
 */
export const schema = (self: WireTool.Any): Advertised => {
  const made = advertised.get(self)
  if (made !== undefined) return made
  const description = WireTool.getDescription(self)
  const verbatim = isTool(self)
    ? self[Callable.TypeId].advertised
    : WireTool.isDynamic(self)
    ? self.jsonSchema
    : undefined
  const strict = WireTool.getStrictMode(self)
  const out: Advertised = {
    name: self.name,
    ...(description === undefined ? {} : { description }),
    input_schema: verbatim === undefined
      ? JsonSchema.advertise(isTool(self) ? self[Callable.TypeId].input : self.parametersSchema)
      : { ...verbatim },
    ...(strict === undefined ? {} : { strict })
  }
  advertised.set(self, out)
  return out
}

/**
 * Tools as a provider is handed them: what is advertised, and the tools of `effect/ai` for a provider of its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Table {
  readonly schemas: ReadonlyArray<Advertised>
  readonly tools: ReadonlyArray<WireTool.Any>
}

/**
 * The table of these tools.
 *
 * @category constructors
 * @since 0.1.0
 */
export const table = (tools: ReadonlyArray<WireTool.Any>): Table => ({ schemas: tools.map(schema), tools })

/**
 * What would be wrong with these arguments, one line an error: what a registry would tell the model.
 *
 * **Example** (Two mistakes at once)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "toolfold/Tool"
 *
 * const greet = Tool.make("greet", {
 *   input: { name: Schema.String, age: Schema.Int },
 *   handler: ({ name }) => Effect.succeed(`Hello ${name}`)
 * })
 *
 * Tool.validate(greet, { age: "old" }).errors // => ["name: Missing key", 'age: Expected number, got string "old"']
 * ```
 *
 * @category queries
 * @since 0.1.0
 */
export const validate = (
  self: WireTool.Any,
  raw: unknown
): { readonly valid: boolean; readonly errors: ReadonlyArray<string> } => {
  const { input } = Arguments.parse(raw)
  if (input === undefined) return { valid: false, errors: ["the arguments are not valid JSON"] }
  if (!Arguments.isObject(input)) {
    return { valid: false, errors: [`Expected one object of arguments, got ${Text.describe(input)}`] }
  }
  // What a schema needs besides its input is not here; that shows as an error like any other.
  const explained = Effect.runSyncExit(
    Effect.suspend(() => Codec.jsonCodec(self.parametersSchema).explain(input)) as Effect.Effect<
      ReadonlyArray<Explain.PathIssue>
    >
  )
  const errors = Exit.isSuccess(explained) ? explained.value.map(Explain.line) : [String(Cause.squash(explained.cause))]
  return { valid: errors.length === 0, errors }
}

/**
 * The schema of a failure, with who can put such a failure right: `transient` is tried again where a tool says `retry`;
 * `environment` needs a person. One class for all, or what a function says of each. In a union each member has its own.
 * Default: `semantic`, which the model repairs.
 *
 * **Example** (Worth another try, or not)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "toolfold/Tool"
 *
 * class Down extends Schema.TaggedError<Down>()("Down", { status: Schema.Int }) {}
 *
 * let tries = 0
 * const fetchPage = Tool.make("fetch_page", {
 *   input: { url: Schema.String },
 *   failure: Down.pipe(Tool.failureClass(({ status }) => status >= 500 ? "transient" : "semantic")),
 *   retry: true,
 *   handler: () => Effect.suspend(() => ++tries < 3 ? Effect.fail(new Down({ status: 503 })) : Effect.succeed("text"))
 * })
 *
 * Tool.retryOf(fetchPage) === undefined // => false
 * ```
 *
 * @category failures
 * @since 0.1.0
 */
export const failureClass: {
  <S extends Schema.Top>(
    failureClass: FailureClass.FailureClass | ((failure: S["Type"]) => FailureClass.FailureClass)
  ): (schema: S) => S["Rebuild"]
  <S extends Schema.Top>(
    schema: S,
    failureClass: FailureClass.FailureClass | ((failure: S["Type"]) => FailureClass.FailureClass)
  ): S["Rebuild"]
} = dual(2, FailureClass.annotate)

/**
 * Says how far a handler is, for whoever watches the run: an event `Progress` with this value. It waits for observers that are
 * Effects and while a stream is unread, which its deadline counts; where nobody watches it costs next to nothing.
 *
 * **Example** (A tool that says how far it is)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const index = Tool.make("index", {
 *   handler: () => Effect.as(Effect.forEach([1, 2], (done) => Tool.progress({ done, of: 2 })), "indexed")
 * })
 * const seen: Array<unknown> = []
 *
 * const program = AgentLoop.run(AgentLoop.make("bot"), {
 *   prompt: "Index it",
 *   onEvent: (event) => event._tag === "Progress" ? void seen.push(event.progress) : undefined
 * }).pipe(
 *   Effect.provide(ToolRegistry.layer(index)),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("index")], "Done."))
 * )
 * await Effect.runPromise(program)
 * seen // => [{ done: 1, of: 2 }, { done: 2, of: 2 }]
 * ```
 *
 * @category running call
 * @since 0.1.0
 */
export const progress = (value: Schema.Json): Effect.Effect<void> =>
  Reporting.report({ _tag: "Progress", progress: value })

/**
 * A foreign promise as (part of) a handler. The function gets a signal that is aborted when the call is interrupted; the
 * promise then has 100 ms to settle, and if it does not, the call's outcome says that its work may still be going on. A
 * rejection is a defect, or what `catch` makes of it.
 *
 * **Example** (A rejection as a declared failure)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Tool from "toolfold/Tool"
 *
 * const page = Tool.promise({
 *   try: (signal) => signal.aborted ? Promise.resolve("") : Promise.reject(new Error("no connection")),
 *   catch: (error) => `the page did not load: ${error instanceof Error ? error.message : "unknown"}`
 * })
 * await Effect.runPromise(Effect.flip(page)) // => "the page did not load: no connection"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const promise = <A, E = never>(
  start: ((signal: AbortSignal) => PromiseLike<A>) | {
    readonly try: (signal: AbortSignal) => PromiseLike<A>
    readonly catch: (error: unknown) => E
  }
): Effect.Effect<A, E> =>
  typeof start === "function"
    ? Attempt.promise<A, E>(start, Effect.die)
    : Attempt.promise(start.try, (error) => Effect.suspend(() => Effect.fail(start.catch(error))))
