/**
 * What is an agent? How it asks, what it may call, and when it ends: a value that holds nothing of a run.
 *
 * `AgentLoop` exports these.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as Budget from "./Budget.ts"
import type * as Context from "./Context.ts"
import * as Gate from "./Gate.ts"
import type { Settings } from "./internal/ask.ts"
import * as FinalAnswer from "./internal/finalAnswer.ts"
import * as Legal from "./internal/legal.ts"
import type * as Stop from "./Stop.ts"
import type { Selection } from "./ToolRegistry.ts"
import type * as Turn from "./Turn.ts"

const TypeId = "~toolfold/AgentLoop/Agent"
declare const ValueKey: unique symbol

/**
 * What an agent is: how it asks, what it may call, when it ends. A value; it holds nothing of a run. `R` is what it
 * needs besides a registry.
 *
 * @category models
 * @since 0.1.0
 */
export interface Agent<out E = never, out R = LanguageModel.LanguageModel, out A = unknown> {
  readonly [ValueKey]?: A
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
  readonly runTimeout: Duration.Duration | undefined
  readonly stop: Stop.Stop | undefined
  readonly settings: Settings | undefined
  readonly prepare: Prepare<E, R> | undefined
  readonly gate: Gate.Gate<R>
  /** The form of its answer. */
  readonly output: FinalAnswer.Form | undefined
  readonly outputRetries: number
  readonly onEnvironmentError: "proceed" | "pause"
  readonly budget: Budget.Limits | Budget.Budget | undefined
  readonly maxRepeats: number
  /** What narrows the registry for it: its `tools`, and the tools that its `toolChoice` leaves. */
  readonly offers: ReadonlyArray<Selection>
}

/**
 * Where a run stands before the model is asked. `turn` counts from 0, and `remaining` are the requests that are left with
 * this one. `messages` are without the instructions. `isTooLong` says that the model has just refused them as more than it
 * takes, and is asked once more with what `prepare` gives.
 *
 * @category models
 * @since 0.1.0
 */
export interface Before {
  readonly turn: number
  readonly remaining: number
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly turns: ReadonlyArray<Turn.Turn>
  readonly context: Context.Context
  readonly isTooLong: boolean
}

/**
 * What holds for one request; what is not said stays as it is. The messages are healed, so that no call is without its
 * result; the transcript of the run keeps all of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Override<out E = never, out R = never> {
  readonly instructions?: string | undefined
  readonly messages?: ReadonlyArray<Prompt.Message> | undefined
  /** Narrows what the agent is offered; what is not, is not answered in this turn. */
  readonly tools?: Selection | undefined
  readonly toolChoice?: LanguageModel.ToolChoice<string> | undefined
  /** Built once for a run. */
  readonly model?: Layer.Layer<LanguageModel.LanguageModel, E, R> | undefined
  readonly settings?: Omit<Settings, "effort"> | undefined
  readonly reasoningEffort?: Settings["effort"] | undefined
}

/**
 * Says what holds for the next request.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prepare<out E = never, out R = never> {
  (before: Before): Effect.Effect<Override<E, R>, E, R>
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
export interface Options<
  EI = never,
  RI = never,
  M extends AnyModel = undefined,
  EP = never,
  RP = never,
  RG = never,
  A = unknown
> {
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
  /**
   * How long a run may take in all; what ran until then is kept. Waiting for a decision does not count, and observers that are
   * Effects are waited for all the same. Default: for ever.
   */
  readonly runTimeout?: Duration.Input | undefined
  /** Another reason to end. */
  readonly stop?: Stop.Stop | undefined
  /** How the model is to speak. A model that has no such setting says so in a `Warned` event. */
  readonly settings?: Omit<Settings, "effort"> | undefined
  /** How hard a model that reasons is to try. */
  readonly reasoningEffort?: Settings["effort"] | undefined
  /** Is asked before every request what holds for it. */
  readonly prepare?: Prepare<EP, RP> | undefined
  /**
   * The form of the final answer. The model is asked for it, its answer is decoded, and `Completed.value` holds what came of
   * it; an answer that does not fit is sent back with all that is wrong with it.
   */
  readonly output?: Schema.Codec<A, unknown> | undefined
  /** How often an answer that does not fit is sent back; after that the run ends as `Refused`. Default: 2. */
  readonly outputRetries?: number | undefined
  /** Who may run a call. Default: `Gate.sensitive`, which has the run pause for tools declared `sensitive`. */
  readonly gate?: Gate.Gate<RG> | undefined
  /** Whether the run pauses when calls failed because of their environment, for somebody to repair it. Default: proceed. */
  readonly onEnvironmentError?: "proceed" | "pause" | undefined
  /** What a run may spend, or a budget that its runs share. */
  readonly budget?: Budget.Limits | Budget.Budget | undefined
  /**
   * So many turns with the same calls, or so many times the same two turns, end the run. Default: 3; `Infinity` for an agent
   * that polls.
   */
  readonly maxRepeats?: number | undefined
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
export const make = <
  EI = never,
  RI = never,
  M extends AnyModel = undefined,
  EP = never,
  RP = never,
  RG = never,
  A = unknown
>(
  name: string,
  options: Options<EI, RI, M, EP, RP, RG, A> = {}
): Agent<EI | EP | Layer.Error<Exclude<M, undefined>>, RI | RP | RG | ModelNeeds<M>, A> => {
  const counts = {
    maxTurns: options.maxTurns ?? 10,
    maxToolCalls: options.maxToolCalls ?? Infinity,
    maxConsecutiveToolErrors: options.maxConsecutiveToolErrors ?? 5,
    maxRepeats: options.maxRepeats ?? 3,
    outputRetries: options.outputRetries ?? 2
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
  if (counts.maxRepeats < 2) refuse("maxRepeats", "whole number from 2 on", counts.maxRepeats)
  if (options.budget !== undefined && !Budget.isBudget(options.budget)) Budget.make(options.budget)
  if (typeof concurrency === "number" && !(Number.isInteger(concurrency) && concurrency > 0)) {
    refuse("concurrency", "positive whole number", concurrency)
  }
  for (const option of ["timeout", "runTimeout"] as const) {
    const given = options[option]
    for (const problem of given === undefined ? [] : Legal.durationProblem(option, given)) {
      throw new Error(`agent ${JSON.stringify(name)}: ${problem}`)
    }
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
    runTimeout: Legal.duration(options.runTimeout),
    stop: options.stop,
    settings: settingsOf(options),
    prepare: options.prepare,
    gate: options.gate ?? Gate.sensitive,
    output: options.output === undefined ? undefined : FinalAnswer.form(options.output),
    onEnvironmentError: options.onEnvironmentError ?? "proceed",
    budget: options.budget,
    offers: [options.tools, allowedBy(options.toolChoice)].filter((selection) => selection !== undefined)
  } as unknown as Agent<never, never, A> // what the options need was just read off their types
}

/** Settings and effort as one, or nothing where neither is said. */
export const settingsOf = (
  { reasoningEffort, settings }: Pick<Override, "settings" | "reasoningEffort">
): Settings | undefined => reasoningEffort === undefined ? settings : { ...settings, effort: reasoningEffort }

/** What a choice of tools leaves of them. */
export const allowedBy = (toolChoice: LanguageModel.ToolChoice<string> | undefined): Selection | undefined =>
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
