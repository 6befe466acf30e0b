/**
 * What is an agent? How it asks, what it may call, and when it ends: a value that holds nothing of a run.
 *
 * `AgentLoop` exports these.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Legal from "./internal/legal.ts"
import type * as Stop from "./Stop.ts"
import type { Selection } from "./ToolRegistry.ts"

const TypeId = "~toolfold/AgentLoop/Agent"

/**
 * What an agent is: how it asks, what it may call, when it ends. A value; it holds nothing of a run. `R` is what it
 * needs besides a registry.
 *
 * @category models
 * @since 0.1.0
 */
export interface Agent<out E = never, out R = LanguageModel.LanguageModel> {
  readonly [TypeId]: typeof TypeId
  readonly name: string
  readonly instructions: string | Effect.Effect<string, E, R> | undefined
  readonly model: Layer.Layer<LanguageModel.LanguageModel, E, R> | undefined
  readonly tools: Selection | undefined
  readonly toolChoice: LanguageModel.ToolChoice<string>
  readonly concurrency: "sequential" | "unbounded" | number
  readonly maxTurns: number
  readonly maxToolCalls: number
  readonly maxConsecutiveToolErrors: number
  readonly timeout: Duration.Duration | undefined
  readonly stop: Stop.Stop | undefined
  /** What narrows the registry for it: its `tools`, and the tools that its `toolChoice` leaves. */
  readonly offers: ReadonlyArray<Selection>
}

type AnyModel = Layer.Layer<LanguageModel.LanguageModel, unknown, unknown> | undefined

/** What asking needs: the ambient model, unless the agent has its own. */
type ModelNeeds<M extends AnyModel> =
  | (undefined extends M ? LanguageModel.LanguageModel : never)
  | Layer.Services<Exclude<M, undefined>>

/**
 * What an agent declares.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<EI = never, RI = never, M extends AnyModel = undefined> {
  /** What the model is told before everything else: text, or an Effect that is run once at the start of a run. */
  readonly instructions?: string | Effect.Effect<string, EI, RI> | undefined
  /** The agent's own model, in place of the one around the run. */
  readonly model?: M
  /** Which tools of the registry it may call. Default: all. */
  readonly tools?: Selection | undefined
  /** Whether and what the model must call. A forced choice holds for the first turn; with `none` no tool is sent. */
  readonly toolChoice?: LanguageModel.ToolChoice<string> | undefined
  /** How many calls of a batch run at a time. Default: 8. What they see and what comes of them stays the same. */
  readonly concurrency?: "sequential" | "unbounded" | number | undefined
  /** At most so many requests to the model; the calls of the last one are still answered. Default: 10. */
  readonly maxTurns?: number | undefined
  /** At most so many calls in a run; calls beyond it are answered unrun, and the run ends. Default: no limit. */
  readonly maxToolCalls?: number | undefined
  /** So many failed calls in a row end the run; a success starts the count anew. Default: 5. */
  readonly maxConsecutiveToolErrors?: number | undefined
  /** How long an attempt of a tool may take that does not say so itself. Default: the registry's, else for ever. */
  readonly timeout?: Duration.Input | undefined
  /** Another reason to end. */
  readonly stop?: Stop.Stop | undefined
}

/**
 * Declares an agent. Throws for a number that makes no sense.
 *
 * **Example** (An agent and its options)
 *
 * ```ts run
 * import * as AgentLoop from "toolfold/AgentLoop"
 *
 * const bot = AgentLoop.make("weather-bot", { instructions: "Answer in one sentence.", maxTurns: 3 })
 * bot.maxTurns // => 3
 * bot.maxConsecutiveToolErrors // => 5
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <EI = never, RI = never, M extends AnyModel = undefined>(
  name: string,
  options: Options<EI, RI, M> = {}
): Agent<EI | Layer.Error<Exclude<M, undefined>>, RI | ModelNeeds<M>> => {
  const counts = {
    maxTurns: options.maxTurns ?? 10,
    maxToolCalls: options.maxToolCalls ?? Infinity,
    maxConsecutiveToolErrors: options.maxConsecutiveToolErrors ?? 5
  }
  const concurrency = options.concurrency ?? 8
  const refuse = (option: string, wanted: string, value: number) => {
    throw new Error(`agent ${JSON.stringify(name)}: ${option} must be a ${wanted}, got ${value}`)
  }
  for (const [option, value] of Object.entries(counts)) {
    if (!Number.isInteger(value) && value !== Infinity) refuse(option, "whole number", value)
  }
  if (counts.maxConsecutiveToolErrors < 1) {
    refuse("maxConsecutiveToolErrors", "positive whole number", counts.maxConsecutiveToolErrors)
  }
  if (typeof concurrency === "number" && !(Number.isInteger(concurrency) && concurrency > 0)) {
    refuse("concurrency", "positive whole number", concurrency)
  }
  for (const problem of options.timeout === undefined ? [] : Legal.durationProblem("timeout", options.timeout)) {
    throw new Error(`agent ${JSON.stringify(name)}: ${problem}`)
  }
  return {
    [TypeId]: TypeId,
    name,
    instructions: options.instructions,
    model: options.model,
    tools: options.tools,
    toolChoice: options.toolChoice ?? "auto",
    concurrency,
    ...counts,
    timeout: Legal.duration(options.timeout),
    stop: options.stop,
    offers: [options.tools, allowedBy(options.toolChoice)].filter((selection) => selection !== undefined)
  } as Agent<never, never> // what the options need was just read off their types
}

const allowedBy = (toolChoice: LanguageModel.ToolChoice<string> | undefined): Selection | undefined =>
  toolChoice === "none"
    ? { names: [] }
    : typeof toolChoice === "object" && "oneOf" in toolChoice
    ? { names: toolChoice.oneOf }
    : undefined

/**
 * Whether a value is an agent.
 *
 * @category guards
 * @since 0.1.0
 */
export const isAgent = (u: unknown): u is Agent<unknown, unknown> => typeof u === "object" && u !== null && TypeId in u
