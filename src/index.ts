/**
 * Typed tools, a tool registry and an agent loop for Effect 4.
 *
 * @since 0.1.0
 */
export * as AgentLoop from "./AgentLoop.ts"
export * as Budget from "./Budget.ts"
export * as Context from "./Context.ts"
export * as Event from "./Event.ts"
export * as Gate from "./Gate.ts"
export * as Memory from "./Memory.ts"
export * as Pause from "./Pause.ts"
export * as PauseStore from "./PauseStore.ts"
export * as Pricing from "./Pricing.ts"
export * as Provider from "./Provider.ts"
export * as Stop from "./Stop.ts"
export * as Subject from "./Subject.ts"
export * as Tool from "./Tool.ts"
export * as ToolRegistry from "./ToolRegistry.ts"
export * as Turn from "./Turn.ts"
export * as Usage from "./Usage.ts"
