/**
 * How does an agent run within a call of another? It shares the other's budget, is seen by whoever watches it, counts for its
 * usage, and waits with it.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type { Agent } from "../Agent.ts"
import * as Context from "../Context.ts"
import * as Pause from "../Pause.ts"
import * as Pricing from "../Pricing.ts"
import * as Ending from "../Result.ts"
import * as Tool from "../Tool.ts"
import * as Log from "./log.ts"
import * as Observe from "./observe.ts"
import * as Probe from "./probe.ts"
import type * as Run from "./run.ts"
import type * as Spending from "./spending.ts"
import * as Watch from "./watch.ts"

/**
 * An agent within a call did not come to an answer: why, and what it said last.
 *
 * @category models
 * @since 0.1.0
 */
export const AgentStopped = Schema.TaggedStruct("AgentStopped", {
  agent: Schema.String,
  why: Schema.String,
  text: Schema.String
})

/** Where an agent runs within a call: the scope of that call, and the run that makes it. */
export interface Place {
  readonly scope: Context.CallScope
  readonly outer: Run.Run
}

/** The call of a run that the running fiber answers, if any. */
export const place = (): Place | undefined => {
  let scope = Fiber.getCurrent()?.getRef(Context.CurrentCall)
  // An attempt has a scope of its own.
  while (scope !== undefined && scope.run === undefined) scope = scope.outer
  return scope === undefined ? undefined : { scope, outer: scope.run as Run.Run } // `Run.hear` puts it there
}

/** What a call within which an agent waited is resumed with. */
export interface Resumed {
  readonly _tag: "Resumed"
  readonly state: Pause.Encoded
  readonly decisions: Pause.Decisions
}

/** What an agent within this call is to be resumed with, once: the first, since no other may wait. */
const resumed = (place: Place | undefined): Resumed | undefined => {
  const waiting = place?.scope.waiting
  if (place === undefined || typeof waiting !== "object" || waiting === null) return undefined
  if (!("_tag" in waiting) || waiting._tag !== "Resumed") return undefined
  place.scope.waiting = undefined
  return waiting as Resumed // `Deciding.apply` puts it there
}

/** The watch of an agent within a call, where somebody sees that call: it ends with the call. */
export const watch = (at: Place | undefined, run: Run.Run): Watch.Watch | undefined => {
  const outer = at?.outer.watch
  const call = at && callOf(at)
  if (outer?.all !== true || call?.shownSince === undefined) return undefined
  const watch = Watch.within(outer, { callId: call.call.id, agent: run.agent, runId: run.id })
  const pricing = Services.get(Fiber.getCurrent()?.context ?? Services.empty(), Pricing.Pricing)
  call.within ??= []
  call.within.push((now) => Observe.leave(run, watch, pricing, now))
  return watch
}

/** Runs within the probe, if there is one. */
export const probed = <A extends Ending.Result, E, R>(
  run: Run.Run,
  running: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) => {
    const probe = Services.get(context, Probe.Probe)
    if (probe === undefined) return running
    const [system] = run.messages.slice(0, run.first)
    const at = place()
    return probe.run({
      agent: run.agent,
      runId: run.id,
      instructions: system?.role === "system" ? system.content : undefined,
      messages: run.messages,
      thread: run.thread?.ref.id,
      outer: at && { agent: at.outer.agent, runId: at.outer.id, callId: callOf(at)?.call.id ?? "" }
    }, running)
  })

const callOf = ({ outer, scope }: Place): Run.Place | undefined =>
  outer.batch?.places.find((each) => each.scope === scope)

/** Counts what an agent spent for the run around it. */
export const count = (place: Place | undefined, spent: ReadonlyArray<Spending.Spent>): void => {
  place?.outer.nested.push(...spent)
}

/** Why an agent came to no answer, in words. */
export const why = (result: Exclude<Ending.Result, Ending.Completed | Ending.Paused>): string => {
  switch (result._tag) {
    case "LimitReached":
      return `it reached its limit: ${result.limit}`
    case "Refused":
      return `its model broke off: ${result.reason}`
    case "Cancelled":
      return "it was cancelled"
  }
}

/** What a tool takes that does not say it: what its agent is asked. */
export type AskedFor = typeof askedFor

const askedFor = { prompt: Schema.String }

/** An agent as a tool: what the model is told of it, and what its agent is asked. */
export interface Options<Name extends string, I extends Schema.Struct.Fields> {
  readonly description: string
  /** Default: the agent's. */
  readonly name?: Name | undefined
  /** What the tool takes. Default: a `prompt`. */
  readonly input?: I | undefined
  /** What the agent is asked with that. Default: its `prompt`, else all of it as JSON. */
  readonly prompt?: ((input: Schema.Struct<NoInfer<I>>["Type"]) => Prompt.RawInput) | undefined
}

/** The tool that an agent is; it gives the agent's answer. */
export type AgentTool<Name extends string, I extends Schema.Struct.Fields, R> = Tool.Tool<
  Name,
  Schema.Struct<I>,
  typeof Schema.Unknown,
  typeof AgentStopped,
  R
>

/** Makes the tool; `run` runs the agent within the call, or goes on with it. */
export const toolOf = <Name extends string, I extends Schema.Struct.Fields, E, R>(
  agent: Agent<unknown, unknown>,
  options: Options<Name, I>,
  run: (
    prompt: Prompt.RawInput,
    place: Place | undefined,
    resumed: Resumed | undefined
  ) => Effect.Effect<Ending.Result, E, R>
): AgentTool<Name, I, R> => {
  const stopped = (why: string, text: string) => Effect.fail(AgentStopped.make({ agent: agent.name, why, text }))
  const failed = (error: E) =>
    Effect.andThen(
      Log.safely(Effect.logError(`the agent ${JSON.stringify(agent.name)} failed`, error)),
      stopped("it failed", error instanceof Ending.ModelFailed ? error.partial.text : "")
    )
  const tool = Tool.make((options.name ?? agent.name) as Name, { // the default has a wider type
    description: options.description,
    input: Schema.Struct<Schema.Struct.Fields>(options.input ?? askedFor),
    output: (agent.output?.schema ?? Schema.String) as Schema.Codec<unknown>, // of the agent's own answers
    failure: AgentStopped,
    handler: (input) =>
      Effect.suspend(() => {
        const at = place()
        const isFirst = at !== undefined && at.scope.hasAgent !== true
        if (isFirst) at.scope.hasAgent = true
        const going = resumed(at)
        const prompt = options.prompt?.(input as Schema.Struct<I>["Type"]) ?? promptOf(input) // its schema is that of `input`
        return Effect.matchEffect(run(prompt, at, going), {
          onFailure: (error) => {
            if (at === undefined || going === undefined || !isUndecided(error)) return failed(error)
            // Whoever decided can decide again: nothing of it was touched.
            waits(at, { _tag: "Paused", pending: pendingOf(going.state), state: going.state })
            return stopped(`it still waits: ${error.message}`, "")
          },
          onSuccess: (result) => {
            if (result._tag === "Completed") {
              return Effect.succeed(agent.output === undefined ? result.text : result.value)
            }
            if (result._tag !== "Paused") return stopped(why(result), result.text)
            if (isFirst) waits(at, result)
            return stopped("it waits for a decision, for which nobody asks here", result.text)
          }
        })
      })
  })
  return tool as unknown as AgentTool<Name, I, R> // its input is the one of the options
}

const waits = ({ outer, scope }: Place, how: unknown): void => {
  scope.waiting = how
  outer.hasWaited = true
}

const isUndecided = (error: unknown): error is Pause.ResumeRefused =>
  error instanceof Pause.ResumeRefused && error.reason !== "used" && error.reason !== "store"

// A pending call is the same as JSON.
const pendingOf = (state: Pause.Encoded): ReadonlyArray<Pause.Pending> =>
  Schema.is(Schema.Struct({ pending: Schema.Array(Pause.Pending) }))(state) ? state.pending : []

const promptOf = (input: object): string =>
  "prompt" in input && typeof input.prompt === "string" ? input.prompt : JSON.stringify(input)
