/**
 * Whose model does an agent ask? Its own where it has one, else the one around the run.
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Agent } from "../Agent.ts"

/** Provides the agent's own model, if it has one. */
export const provide = <A, EA, E, R, RA>(
  agent: Agent<E, R>,
  effect: Effect.Effect<A, EA, RA>
): Effect.Effect<A, EA | E, R | Exclude<RA, LanguageModel.LanguageModel>> =>
  // Without a model of its own an agent's `R` says that it needs one.
  (agent.model === undefined ? effect : Effect.provide(effect, agent.model)) as Effect.Effect<
    A,
    EA | E,
    R | Exclude<RA, LanguageModel.LanguageModel>
  >

/** The agent with its model built, in the scope around. */
export const built = <E, R, A>(agent: Agent<E, R, A>): Effect.Effect<Agent<E, R, A>, E, R | Scope.Scope> =>
  agent.model === undefined
    ? Effect.succeed(agent)
    : Effect.map(Layer.build(agent.model), (services) => ({ ...agent, model: Layer.succeedContext(services) }))
