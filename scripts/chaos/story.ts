// What does the agent that is killed do, and what may its thread be after that? A model and a tool whose every word follows
// from what was said before, so that a thread can be told over again from its beginning.
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { isDeepStrictEqual } from "node:util"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import type * as Memory from "toolfold/Memory"
import * as Provider from "toolfold/Provider"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

export class Log extends Context.Slots<Log>()("chaos/Log", {
  order: Context.list(Schema.String),
  sum: Context.sum,
  last: Context.last(Schema.String, "")
}) {}

/** What the agent remembers. */
export type Remembered = ReturnType<typeof Log.from>

class Failed extends Schema.TaggedError<Failed>()("Failed", {}) {}

const Step = { turn: Schema.Int, at: Schema.Int }
type Step = { readonly turn: number; readonly at: number }

const fails = ({ at, turn }: Step): boolean => (turn + at) % 4 === 3

const writes = ({ at, turn }: Step) => ({ order: [`${turn}.${at}`], sum: turn, last: `${turn}.${at}` })

const saw = ({ at, turn }: Step, { order, sum }: { readonly order: ReadonlyArray<string>; readonly sum: number }) =>
  `${turn}.${at} saw ${order.length} and ${sum}, and then ${order.at(-1) ?? "nothing"}`

const step = Tool.make("step", {
  input: Step,
  failure: Failed,
  handler: (input) =>
    Effect.gen(function*() {
      const log = yield* Log
      yield* log.write(writes(input))
      // The last of a batch is done first.
      yield* Effect.sleep(4 - input.at)
      return fails(input) ? yield* new Failed() : saw(input, log.snapshot)
    })
})

export const Tools: Layer.Layer<ToolRegistry.ToolRegistry> = Layer.orDie(ToolRegistry.layer(step)).pipe(
  Layer.provide(Log.layer)
)

export const agent = AgentLoop.make("storyteller")

const turnsOf = (messages: ReadonlyArray<Prompt.Message>): number =>
  messages.filter(({ role }) => role === "assistant").length

const callsOf = (turn: number): ReadonlyArray<Step> => Array.from({ length: 1 + turn % 4 }, (_, at) => ({ turn, at }))

/** How many turns a run has before it answers. */
const calling = 3

export const turnsOfARun = calling + 1

/** What the model says to a transcript: some turns of calls, and then an answer. */
const says = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.AssistantMessagePart> => {
  const turn = turnsOf(messages)
  const asked = messages.findLastIndex(({ role }) => role === "user")
  return turnsOf(messages.slice(asked)) === calling
    ? [Prompt.makePart("text", { text: `answer ${turn}` })]
    : callsOf(turn).map((params) =>
      Prompt.makePart("tool-call", {
        id: `call_${turn}_${params.at}`,
        name: "step",
        params,
        providerExecuted: false
      })
    )
}

export const promptOf = (turns: number): string => `go on from ${turns}`

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

/** A model that tells how many turns it is shown, which are those that have to be in the thread. */
export const model = (tell: (turns: number) => void) =>
  Provider.make({
    ask: ({ messages }) =>
      Effect.sync(() => {
        tell(turnsOf(messages))
        const content = says(messages)
        return {
          content: content.map((part) =>
            part.type === "tool-call" ? { ...part, params: JSON.stringify(part.params) } : part
          ),
          finish: content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop",
          usage
        }
      })
  })

const differing = (what: string, is: unknown, should: unknown): string =>
  `${what} is ${JSON.stringify(is)} and should be ${JSON.stringify(should)}`

/** What is wrong with a thread of which at least so many turns were there, and at most one more. */
export const faults = (
  { context, messages, turns, usage, version }: Memory.Thread,
  remembered: Remembered,
  least: number
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const same = (what: string, is: unknown, should: unknown) => {
    if (!isDeepStrictEqual(is, should)) found.push(differing(what, is, should))
  }
  if (turns !== least && turns !== least + 1) {
    found.push(`it has ${turns} turns, and should have ${least} or one more`)
  }
  same("its version", version, turns)
  same("what it used", [usage.calls, usage.totalTokens], [turns, 2 * turns])
  same("its transcript", turnsOf(messages), turns)
  same("its memory", Object.keys(context.slots), turns > 0 ? ["chaos/Log"] : [])
  const told = retell(messages)
  found.push(...told.problems)
  same("what is remembered", remembered, told.remembered)
  return found
}

/** Tells a transcript over again, message by message. */
const retell = (messages: ReadonlyArray<Prompt.Message>) => {
  const problems: Array<string> = []
  let remembered: Remembered = { order: [], sum: 0, last: "" }
  messages.forEach((message, at) => {
    const before = messages.slice(0, at)
    const last = messages[at - 1]
    const turn = turnsOf(before)
    const expect = (...roles: ReadonlyArray<string | undefined>) => {
      if (!roles.includes(last?.role)) problems.push(`message ${at} is of ${message.role} and follows ${last?.role}`)
    }
    const say = (should: ReadonlyArray<unknown>, is: ReadonlyArray<unknown>) => {
      if (!isDeepStrictEqual(is, should)) problems.push(differing(`message ${at}`, is, should))
    }
    if (message.role === "user") {
      expect(undefined, "assistant", "tool")
      say([promptOf(turn)], message.content.map((part) => part.type === "text" ? part.text : part.type))
    } else if (message.role === "assistant") {
      expect("user", "tool")
      say(says(before), message.content)
    } else if (message.role === "tool") {
      expect("assistant")
      const steps = callsOf(turn - 1)
      say(
        steps.map((step) => [`call_${step.turn}_${step.at}`, fails(step) || saw(step, remembered)]),
        message.content.map((part) =>
          part.type === "tool-result" ? [part.id, part.isFailure || part.result] : [part.type]
        )
      )
      for (const step of steps.filter((step) => !fails(step))) {
        const { last, order, sum } = writes(step)
        remembered = { order: [...remembered.order, ...order], sum: remembered.sum + sum, last }
      }
    }
  })
  const last = messages.at(-1)
  if (last?.role === "user") problems.push("the last message asks, and nobody answered")
  if (last?.role === "assistant" && last.content.some(({ type }) => type === "tool-call")) {
    problems.push("the last message calls, and nothing was answered")
  }
  return { problems, remembered }
}
