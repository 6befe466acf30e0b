/**
 * What does somebody see of a run who only watches the system? Spans, counts and logs by the OpenTelemetry conventions for
 * generative AI, and of what was said nothing, unless it is asked for.
 *
 * A run is a span `invoke_agent`, a request of it `chat` and a call `execute_tool`, both below it; an agent within a call is
 * below that call, and so is each attempt of a retried tool. A span ends exactly once, also when its work fails or is
 * interrupted. A call that fails marks its own span and not that of the run. Where no tracer listens no span is made.
 *
 * The names are those of `@opentelemetry/semantic-conventions` 1.45.0. The spans go to whichever tracer is provided: that of
 * `effect/observability`, that of `@effect/opentelemetry`, or one of your own.
 *
 * What is said (prompts, instructions, arguments, results, answers) is content, and is recorded only where `inputs` or
 * `outputs` say so. The message of an error is content too: without `outputs` the spans and logs within a run, those of
 * tools and providers included, say of an error its name and where it was thrown. Keys and headers are never recorded.
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as Legal from "../internal/legal.ts"
import * as Probe from "../internal/probe.ts"
import type * as Content from "./internal/content.ts"
import * as Hiding from "./internal/hiding.ts"
import * as Probing from "./internal/probing.ts"

export type { Where } from "./internal/content.ts"
export { Conversation } from "./internal/probing.ts"

/**
 * What is recorded. Nothing of what is said, unless it is asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Whether to record what models and tools are given: instructions, messages, arguments. Default: no. */
  readonly inputs?: boolean | undefined
  /** Whether to record what they give: answers, results, and the messages of errors. Default: no. */
  readonly outputs?: boolean | undefined
  /**
   * Changes a text before it is recorded; `where` says which it is. Where it throws, nothing of the text is recorded. What
   * a Schema hides it never sees.
   */
  readonly redact?: ((text: string, where: Content.Where) => string) | undefined
  /** How many bytes of each text: at least 64. Of messages the last ones are kept. Default: 4096. */
  readonly maxContentSize?: number | undefined
  /** When to count requests and tokens: where a tracer listens, always, or never. Default: `traced`. */
  readonly metrics?: "traced" | "always" | "never" | undefined
}

/**
 * Records every run that it is provided to. Throws for options that make no sense.
 *
 * A model is called what effect's `Model.make("openai", "gpt-5", layer)` calls it, where its layer was made so.
 *
 * **Example** (The spans of a run)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Tracer from "effect/Tracer"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as Telemetry from "toolfold/telemetry/Telemetry"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const spans: Array<string> = []
 * const tracer = Tracer.make({
 *   span: (options) => {
 *     spans.push(options.name)
 *     return new Tracer.NativeSpan(options)
 *   }
 * })
 *
 * const getTime = Tool.make("get_time", { handler: () => Effect.succeed("noon") })
 * const program = AgentLoop.run(AgentLoop.make("clock"), { prompt: "What time is it?" }).pipe(
 *   Effect.provide(ToolRegistry.layer(getTime)),
 *   Effect.provide(ScriptedModel.layer([ScriptedModel.call("get_time")], "It is noon.")),
 *   Effect.provide(Telemetry.layer()),
 *   Effect.provideService(Tracer.Tracer, tracer)
 * )
 * await Effect.runPromise(program)
 * spans // => ["invoke_agent clock", "chat", "execute_tool get_time", "chat"]
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  Layer.succeed(Probe.Probe, Probing.make(legal(options)))

/**
 * A schema whose values are never recorded, as those of `Schema.Redacted` never are. It stands at the field that knows
 * that it holds a secret, so it holds wherever a tool or an answer has that field.
 *
 * **Example** (A field that is not recorded)
 *
 * ```ts run
 * import * as Schema from "effect/Schema"
 * import * as Telemetry from "toolfold/telemetry/Telemetry"
 *
 * const Login = Schema.Struct({ user: Schema.String, password: Schema.String.pipe(Telemetry.hidden) })
 * Schema.resolveAnnotations(Login.fields.password) // => { "toolfold/hidden": true }
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const hidden = <S extends Schema.Top>(self: S): S["Rebuild"] => self.annotate({ [Hiding.Key]: true })

const legal = (options: Options): Probing.Settings => {
  const { inputs = false, maxContentSize = 4096, metrics = "traced", outputs = false, redact } = options
  const known = ["inputs", "maxContentSize", "metrics", "outputs", "redact"]
  const isSize = Number.isSafeInteger(maxContentSize) && maxContentSize >= 64
  const problems = [
    ...Object.keys(options).filter((option) => !known.includes(option)).map((option) =>
      `unknown option ${Legal.shown(option)}; known: ${known.join(", ")}`
    ),
    ...Object.entries({ inputs, outputs }).flatMap(([option, given]) =>
      typeof given === "boolean" ? [] : [`${option} must be true or false, got ${Legal.shown(given)}`]
    ),
    ...(redact === undefined || typeof redact === "function"
      ? []
      : [`redact must be a function, got ${Legal.shown(redact)}`]),
    ...(isSize ? [] : [`maxContentSize must be a whole number of at least 64, got ${Legal.shown(maxContentSize)}`]),
    ...(["traced", "always", "never"].includes(metrics)
      ? []
      : [`metrics must be traced, always or never, got ${Legal.shown(metrics)}`])
  ]
  if (problems.length > 0) throw new Error(`Telemetry.layer: ${problems.join("; ")}`)
  return { inputs, metrics, most: maxContentSize, outputs, redact }
}
