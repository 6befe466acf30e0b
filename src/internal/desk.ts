/**
 * How is the model asked in a turn, and who answers its calls? As the agent says, and as its `prepare` says for one turn.
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import type * as Scope from "effect/Scope"
import * as Agent from "../Agent.ts"
import * as Budget from "../Budget.ts"
import * as Pricing from "../Pricing.ts"
import * as Provider from "../Provider.ts"
import { type Registry, ToolRegistry } from "../ToolRegistry.ts"
import type * as Usage from "../Usage.ts"
import * as Observe from "./observe.ts"
import * as Probe from "./probe.ts"
import * as Resilience from "./resilience.ts"
import type * as Run from "./run.ts"
import * as Spending from "./spending.ts"
import * as Threading from "./threading.ts"
import * as Transcript from "./transcript.ts"

type AnyAgent = Agent.Agent<unknown, unknown>

/** Where a run asks and is answered. */
export interface Desk {
  readonly ask: Provider.Ask
  /** Who is there for the agent; `registry` is who answers in this turn. */
  readonly offered: Registry
  registry: Registry
  readonly budget: Budget.Budget | undefined
  readonly pricing: Pricing.Pricing
  readonly probe: Probe.Probe | undefined
  /** What its model is called; kept for the probe. */
  readonly named: Probe.Names | undefined
}

/** Opens the desk of a run. */
export const open = (
  agent: AnyAgent
): Effect.Effect<Desk, never, LanguageModel.LanguageModel | ToolRegistry> =>
  Effect.contextWith((context: Services.Context<LanguageModel.LanguageModel | ToolRegistry>) => {
    const probe = Services.get(context, Probe.Probe)
    const desk = (offered: Registry): Desk => ({
      ask: Provider.askOf(Services.get(context, LanguageModel.LanguageModel)),
      offered,
      registry: offered,
      budget: Services.get(context, Budget.Current),
      pricing: Services.get(context, Pricing.Pricing),
      probe,
      named: probe && Probe.namesIn(context)
    })
    const registry = Services.get(context, ToolRegistry)
    return isOfferedAll(agent)
      ? Effect.succeed(desk(registry))
      : Effect.map(narrowed(agent, agent, registry), desk)
  })

const isOfferedAll = ({ offers, timeout, toolChoice }: AnyAgent): boolean =>
  timeout === undefined && offers.length === 0 && typeof toolChoice === "string"

/** What an agent is offered of a registry. */
export const offeredTo = (agent: AnyAgent, registry: Registry): Effect.Effect<Registry> =>
  isOfferedAll(agent) ? Effect.succeed(registry) : narrowed(agent, agent, registry)

const narrowed = Effect.fnUntraced(function*(
  { name, timeout }: AnyAgent,
  { offers, toolChoice }: Pick<AnyAgent, "offers" | "toolChoice">,
  all: Registry
): Effect.fn.Return<Registry> {
  let registry = timeout === undefined ? all : all.within(timeout)
  for (const selection of offers) registry = yield* Effect.orDie(registry.select(selection))
  if (typeof toolChoice === "object" && "tool" in toolChoice && registry.get(toolChoice.tool) === undefined) {
    throw new Error(`agent ${JSON.stringify(name)}: toolChoice names ${toolChoice.tool}, which it is not offered`)
  }
  return registry
})

/** Charges a turn to the budget, if there is one. */
export const charge = ({ budget, pricing }: Desk, usage: Usage.Usage): Effect.Effect<void> => {
  if (budget === undefined) return Effect.void
  const costUsd = usage.model === undefined ? undefined : Pricing.costOf(pricing, usage.model, usage)
  return Budget.charge(budget, costUsd === undefined ? usage : { ...usage, costUsd })
}

/** Runs with a budget of its own, within the one around it, for its tools and all that they start. */
export const within = <A, E, R>(
  own: Budget.Limits | Budget.Budget | undefined,
  run: Run.Run,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  own === undefined ? effect : Effect.withFiber(({ context }) => {
    const outer = Services.get(context, Budget.Current)
    const budget = Budget.isBudget(own) ? own : fresh(own, run, Services.get(context, Pricing.Pricing))
    return Effect.provideService(
      effect,
      Budget.Current,
      outer === undefined ? budget : Budget.within(budget, outer)
    )
  })

/** A budget of one run, of which a run that was paused has spent something, it and the agents within it. */
const fresh = (limits: Budget.Limits, run: Run.Run, pricing: Pricing.Pricing): Budget.Budget => {
  const budget = Budget.make(limits)
  for (const usage of [...Spending.of(run), ...run.before].flatMap(({ spent }) => spent)) {
    const usd = usage.model === undefined ? 0 : Pricing.costOf(pricing, usage.model, usage) ?? 0
    budget.spend({ requests: usage.calls, tokens: usage.totalTokens, usd })
  }
  budget.spend({ toolCalls: run.toolCalls })
  return budget
}

/** A failure of the agent's own code, which is told from one of the model. */
export class Unprepared {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/** Lays what is new into the thread that the run rests in, if it has one. */
export const rest = (run: Run.Run): Effect.Effect<void, Unprepared> =>
  run.thread === undefined
    ? Effect.void
    // What the thread needs and fails with, the options of the run said.
    : Effect.mapError(Threading.append(run, run.thread) as Effect.Effect<void, unknown>, (error) => {
      run.thread = undefined
      return new Unprepared(error)
    })

/** Asks the model what comes next. */
export const ask = (
  desk: Desk,
  agent: AnyAgent,
  run: Run.Run
): Effect.Effect<Provider.Reply, AiError.AiError | Unprepared> => {
  if (agent.prepare !== undefined) return prepared(desk, agent, agent.prepare, run)
  const { offered: { table } } = desk
  const turn = run.turns.length
  const toolChoice = choice(turn > 0 ? "auto" : agent.toolChoice)
  const request = { messages: run.messages, table, toolChoice, settings: agent.settings, format: agent.output?.format }
  return asked(desk, run, request, desk.ask)
}

const asked = (desk: Desk, run: Run.Run, request: Provider.Request, ask: Provider.Ask) => {
  const { probe } = desk
  const { watch } = run
  const turn = run.turns.length
  const reply = watch === undefined ? ask(request) : Observe.asking(ask, request, watch, run)
  if (probe === undefined) return reply
  const named = names.get(ask) ?? desk.named
  return probe.request(
    { agent: run.agent, runId: run.id, turn, request, isStreamed: watch?.deltas === true, named },
    reply
  )
}

// What models of single turns are called.
const names = new WeakMap<Provider.Ask, Probe.Names>()

// What is offered was narrowed before.
const choice = (toolChoice: LanguageModel.ToolChoice<string>): LanguageModel.ToolChoice<string> => {
  if (toolChoice === "none") return "auto"
  if (typeof toolChoice === "object" && "oneOf" in toolChoice) return toolChoice.mode ?? "auto"
  return toolChoice
}

const prepared = (
  desk: Desk,
  agent: AnyAgent,
  prepare: Agent.Prepare<unknown, unknown>,
  run: Run.Run
): Effect.Effect<Provider.Reply, AiError.AiError | Unprepared> => {
  const turn = run.turns.length
  const once = Effect.fnUntraced(function*(isTooLong: boolean) {
    const override = yield* Effect.mapError(
      // What it needs, the agent needs.
      prepare({
        turn,
        remaining: agent.maxTurns - turn,
        messages: run.messages.slice(run.first),
        turns: run.turns,
        context: Ref.getUnsafe(run.context),
        isTooLong
      }) as Effect.Effect<Agent.Override<unknown, unknown>, unknown>,
      (error) => new Unprepared(error)
    )
    const { model, tools, toolChoice = turn > 0 ? "auto" : agent.toolChoice } = override
    const offers = [tools, Agent.allowedBy(override.toolChoice)].filter((selection) => selection !== undefined)
    desk.registry = yield* narrowed(agent, { offers, toolChoice }, desk.offered)
    const request: Provider.Request = {
      messages: messagesOf(run, override),
      table: desk.registry.table,
      toolChoice: choice(toolChoice),
      settings: { ...agent.settings, ...Agent.settingsOf(override) },
      format: agent.output?.format
    }
    const ask = model === undefined ? desk.ask : yield* askOf(run, model)
    const noting: Provider.Ask = (request, sink) =>
      ask(
        request,
        sink && ((deltas) => {
          isShown ||= Resilience.isSaid(deltas)
          return sink(deltas)
        })
      )
    const called = names.get(ask)
    if (called !== undefined) names.set(noting, called)
    return yield* asked(desk, run, request, noting)
  })
  let isShown = false
  // Asked again it is another request, and what was shown cannot be taken back.
  return Effect.catchIf(
    once(false),
    (error): error is AiError.AiError =>
      !(error instanceof Unprepared) && Resilience.isTooLong(error) && !isShown &&
      (desk.budget === undefined || Budget.takeRequest(desk.budget)),
    (error) => Effect.andThen(Observe.retried(run, error), once(true))
  )
}

const messagesOf = (
  run: Run.Run,
  { instructions, messages }: Agent.Override<unknown, unknown>
): ReadonlyArray<Prompt.Message> => {
  if (instructions === undefined && messages === undefined) return run.messages
  const system = instructions === undefined
    ? run.messages.slice(0, run.first)
    : instructions.trim() === ""
    ? []
    : [Prompt.makeMessage("system", { content: instructions })]
  return [...system, ...(messages === undefined ? run.messages.slice(run.first) : Transcript.heal(messages))]
}

/** A model of one turn, built once for the run and released with it. */
const askOf = (
  run: Run.Run,
  model: Layer.Layer<LanguageModel.LanguageModel, unknown, unknown>
): Effect.Effect<Provider.Ask, Unprepared> => {
  const known = run.models?.get(model)
  if (known !== undefined) return Effect.succeed(known)
  const built = Effect.map(Effect.flatMap(Effect.scope, (scope) => Layer.buildWithScope(model, scope)), (context) => {
    const ask = Provider.askOf(Services.get(context, LanguageModel.LanguageModel))
    run.models ??= new Map()
    run.models.set(model, ask)
    names.set(ask, Probe.namesIn(context))
    return ask
  })
  // What it needs, the agent needs; the scope is that of the run.
  return Effect.mapError(built as Effect.Effect<Provider.Ask, unknown>, (error) => new Unprepared(error))
}

/** Runs with a scope for the models of its turns, where there may be any. */
export const scoped = <A, E, R>(agent: AnyAgent, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  agent.prepare === undefined ? effect : Effect.scoped(effect as Effect.Effect<A, E, R | Scope.Scope>)
