/**
 * How does a run begin? With what it is asked, and the transcript that it follows on.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type { Agent } from "../Agent.ts"
import type * as Budget from "../Budget.ts"
import * as Context from "../Context.ts"
import * as Id from "./id.ts"
import type * as Observe from "./observe.ts"
import * as Run from "./run.ts"

/**
 * What a run is given.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions<R = never> extends Observe.Observers<R> {
  /** What is asked: text, or messages, with images and files. */
  readonly prompt?: Prompt.RawInput | undefined
  /** The transcript that it follows on. It is healed: every call gets its one result. */
  readonly messages?: Prompt.RawInput | ReadonlyArray<Prompt.Message> | undefined
  /** What the agent remembers at the start. Default: the initial values of every slot. */
  readonly context?: Context.Context | undefined
  /** What it may spend, or a budget that it shares; goes before that of the agent. */
  readonly budget?: Budget.Limits | Budget.Budget | undefined
}

/**
 * What a resumed run is given. `slots` are classes of slots that the run began with and no tool needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeOptions<R = never> extends Observe.Observers<R> {
  readonly slots?: ReadonlyArray<Context.AnySlots> | undefined
  readonly budget?: RunOptions["budget"]
}

/** The run of these options. */
export const prepare = <E, R>(agent: Agent<E, R>, options: RunOptions<unknown>): Effect.Effect<Run.Run, E, R> =>
  Effect.flatMap(
    Effect.isEffect(agent.instructions) ? agent.instructions : Effect.succeed(agent.instructions),
    (instructions) =>
      Effect.map(Id.fresh, (id) => {
        const messages = [...messagesOf(options.messages ?? []), ...messagesOf(options.prompt ?? [])]
        const run = Run.make(id, agent.name, instructions, messages, options.context ?? Context.empty)
        if (run.messages.length === run.first) {
          throw new Error(`agent ${JSON.stringify(agent.name)}: a run needs a prompt or messages that are not blank`)
        }
        return run
      })
  )

const messagesOf = (input: Prompt.RawInput | ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  Array.isArray(input) && input.every(isMessage) ? input : Prompt.make(input as Prompt.RawInput).content

const isMessage = (u: object): u is Prompt.Message => "~effect/ai/Prompt/Message" in u
