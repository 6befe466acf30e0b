/**
 * Who measures a run from within? A probe, if one is provided: it stands around the run, each request and each call, and
 * gives back what they give. The telemetry wing provides one.
 */
import type * as AiError from "effect/ai/AiError"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import * as Services from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Result from "../Result.ts"
import type * as Turn from "../Turn.ts"
import type { Reply, Request } from "./ask.ts"

/** Which run: `outer` is the call within which it runs, for an agent that is a tool. `messages` go on growing. */
export interface AboutRun {
  readonly agent: string
  readonly runId: string
  readonly instructions: string | undefined
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The thread that it rests in. */
  readonly thread: string | undefined
  readonly outer: { readonly agent: string; readonly runId: string; readonly callId: string } | undefined
}

/** What a model and its provider are called. */
export interface Names {
  readonly provider: string | undefined
  readonly model: string | undefined
}

/** The names that came with a model, as `Model.make` of effect/ai gives them. */
export const namesIn = (context: Services.Context<never>): Names => ({
  provider: Option.getOrUndefined(Services.getOption(context, Model.ProviderName)),
  model: Option.getOrUndefined(Services.getOption(context, Model.ModelName))
})

/** Which request of a run; `turn` counts from 0. `named` is whom it goes to, where that is known. */
export interface AboutRequest {
  readonly agent: string
  readonly runId: string
  readonly turn: number
  readonly request: Request
  readonly isStreamed: boolean
  readonly named: Names | undefined
}

/** Which call of a run; `tool` is whose it is, if there is one of that name. */
export interface AboutCall {
  readonly agent: string
  readonly runId: string
  readonly turn: number
  readonly call: Turn.Call
  readonly tool: WireTool.Any | undefined
  readonly description: string | undefined
}

/** Stands around what it measures. What it does itself must not fail. */
export interface Probe {
  readonly run: <A extends Result.Result, E, R>(about: AboutRun, run: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly request: (
    about: AboutRequest,
    request: Effect.Effect<Reply, AiError.AiError>
  ) => Effect.Effect<Reply, AiError.AiError>
  readonly call: (about: AboutCall, call: Effect.Effect<Turn.Outcome>) => Effect.Effect<Turn.Outcome>
}

/** The probe in force, if any. */
export const Probe: Services.Reference<Probe | undefined> = Services.Reference<Probe | undefined>("toolfold/Probe", {
  defaultValue: () => undefined
})
