/**
 * The testing kit: models that need no network, tapes of runs, and the laws of slots.
 *
 * @since 0.1.0
 */
export * as Laws from "./Laws.ts"
export * as OfflineModel from "./OfflineModel.ts"
export * as ScriptedModel from "./ScriptedModel.ts"
export * as Tape from "./Tape.ts"
