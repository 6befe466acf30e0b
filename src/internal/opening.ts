/**
 * How does a run begin? With what it is asked, and the transcript that it follows on.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type { Agent } from "../Agent.ts"
import type * as Budget from "../Budget.ts"
import * as Context from "../Context.ts"
import type * as Memory from "../Memory.ts"
import * as Id from "./id.ts"
import type * as Observers from "./observers.ts"
import * as Run from "./run.ts"
import * as Threading from "./threading.ts"

/**
 * What a run is given.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions<R = never, EM = never, RM = never> extends Observers.Observers<R> {
  /** What is asked: text, or messages, with images and files. */
  readonly prompt?: Prompt.RawInput | undefined
  /** The transcript that it follows on. It is healed: every call gets its one result. */
  readonly messages?: Prompt.RawInput | ReadonlyArray<Prompt.Message> | undefined
  /** What the agent remembers at the start. Default: the initial values of every slot. */
  readonly context?: Context.Context | undefined
  /** What it may spend, or a budget that it shares; goes before that of the agent. */
  readonly budget?: Budget.Limits | Budget.Budget | undefined
  /** The thread that it goes on with, and appends to turn by turn: see `Memory.thread`. */
  readonly memory?: Memory.ThreadRef<EM, RM> | undefined
}

/**
 * What a resumed run is given. `slots` are classes of slots that the run began with and no tool needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeOptions<R = never, EM = never, RM = never> extends Observers.Observers<R> {
  readonly slots?: ReadonlyArray<Context.AnySlots> | undefined
  readonly budget?: RunOptions["budget"]
  /** The thread that the run rests in, where it was given one. */
  readonly memory?: Memory.ThreadRef<EM, RM> | undefined
}

/** The run of these options. */
export const prepare = <E, R, EM = never, RM = never>(
  agent: Agent<E, R>,
  options: RunOptions<unknown, EM, RM>
): Effect.Effect<Run.Run, E | EM, R | RM> => {
  const { instructions } = agent
  return Effect.isEffect(instructions)
    ? Effect.flatMap(instructions, (instructions) => opened(agent.name, instructions, options))
    : opened(agent.name, instructions, options)
}

const opened = <EM, RM>(
  agent: string,
  instructions: string | undefined,
  options: RunOptions<unknown, EM, RM>
): Effect.Effect<Run.Run, EM, RM> => {
  const { memory } = options
  if (memory === undefined) {
    return Effect.withFiber(({ context }) => Effect.succeed(open(agent, Id.make(context), instructions, options)))
  }
  // What the thread needs and fails with is what it says; the registry is there wherever a run is.
  const loaded = Threading.load(memory) as Effect.Effect<Threading.Start, EM, RM>
  return Effect.flatMap(Id.fresh, (id) =>
    Effect.map(loaded, (start) => {
      const run = open(agent, id, instructions, options, start)
      run.thread = Threading.begin(memory, start)
      return run
    }))
}

const open = (
  agent: string,
  id: string,
  instructions: string | undefined,
  { context, messages = [], prompt = [] }: RunOptions<unknown, unknown, unknown>,
  start: Threading.Start = { messages: [], context: Context.empty, version: 0 }
): Run.Run => {
  const asked = [...messagesOf(messages), ...messagesOf(prompt)]
  const run = Run.make(id, agent, instructions, [...start.messages, ...asked], context ?? start.context)
  if (run.messages.length === run.first) {
    throw new Error(`agent ${JSON.stringify(agent)}: a run needs a prompt or messages that are not blank`)
  }
  return run
}

const messagesOf = (input: Prompt.RawInput | ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  Array.isArray(input) && input.every(isMessage) ? input : Prompt.make(input as Prompt.RawInput).content

const isMessage = (u: object): u is Prompt.Message => "~effect/ai/Prompt/Message" in u
