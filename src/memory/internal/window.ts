/**
 * Which end of a transcript does a model see? One that starts with a question, and in which no call is cut off from its
 * results.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Legal from "../../internal/legal.ts"
import * as Transcript from "../../internal/transcript.ts"

/**
 * How much is kept. Where both are given, both hold.
 *
 * @category windows
 * @since 0.1.0
 */
export interface WindowOptions {
  /** How many messages, system messages not counted: an integer of at least 1. Default: all. */
  readonly messages?: number | undefined
  /** How many times the model speaks, each with the results of its calls: an integer of at least 1. Default: all. */
  readonly turns?: number | undefined
}

/**
 * Keeps the end of a transcript: a function from messages to messages, for one run or for a program of your own.
 *
 * Every system message stays. A call and its results stay or go together. What stays begins with what a user said: where
 * the window opens in the middle of an answer, the last question before it stays too, and counts. The last message stays
 * whatever the limits say, with its question, and with what it answers. Messages that were no valid transcript are healed first: a
 * result without its call goes, a call without a result is answered as cancelled. A transcript that fits is given back as
 * it is, and so is each message that stays.
 *
 * Throws when an option is illegal.
 *
 * **Example** (The last two messages)
 *
 * ```ts run
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Memory from "toolfold/Memory"
 *
 * const { content } = Prompt.make([
 *   { role: "system", content: "Be brief." },
 *   { role: "user", content: "One?" },
 *   { role: "assistant", content: "1" },
 *   { role: "user", content: "Two?" },
 *   { role: "assistant", content: "2" }
 * ])
 *
 * Memory.window({ messages: 2 })(content).map(({ role }) => role) // => ["system", "user", "assistant"]
 * ```
 *
 * @category windows
 * @since 0.1.0
 */
export const window = (
  { messages = Infinity, turns = Infinity }: WindowOptions
): (transcript: ReadonlyArray<Prompt.Message>) => ReadonlyArray<Prompt.Message> => {
  refuse("window", { messages, turns })
  return (transcript) => {
    const sound = soundly(transcript)
    const { system, units } = split(sound)
    const start = tail(units, messages, turns)
    return start === 0 ? sound : [...system, ...questionOf(units, start), ...units.slice(start).flat()]
  }
}

/** Throws where a limit is not a count. */
export const refuse = (by: string, limits: { readonly [option: string]: number }): void => {
  const wrong = Object.entries(limits).flatMap(([option, limit]) =>
    limit === Infinity ? [] : Legal.countProblem(option, limit)
  )
  if (wrong.length > 0) throw new Error(`${by}: ${wrong.join("; ")}`)
}

/** What stays or goes together: a message, or an answer with the results of its calls. */
export type Unit = ReadonlyArray<Prompt.Message>

/** A transcript as units, its system messages aside. */
export const split = (
  transcript: ReadonlyArray<Prompt.Message>
): { readonly system: Array<Prompt.Message>; readonly units: ReadonlyArray<Unit> } => {
  const system: Array<Prompt.Message> = []
  const units: Array<Array<Prompt.Message>> = []
  for (const message of transcript) {
    if (message.role === "system") system.push(message)
    else if (message.role === "tool") units.at(-1)?.push(message)
    else units.push([message])
  }
  return { system, units }
}

/** The question that units from here on answer, if they do not begin with one themselves. */
export const questionOf = (units: ReadonlyArray<Unit>, start: number): ReadonlyArray<Prompt.Message> =>
  isQuestion(units[start]) ? [] : units.slice(0, start).findLast(isQuestion) ?? []

const isQuestion = (unit: Unit | undefined): boolean => unit?.[0]?.role === "user"

/** Where the longest end begins that fits. */
const tail = (units: ReadonlyArray<Unit>, messages: number, turns: number): number => {
  let start = units.length
  let room = messages
  let spoken = 0
  while (start > 0) {
    const unit = units[start - 1] ?? []
    const isLast = start === units.length
    const speaks = isQuestion(unit) ? 0 : 1
    if (!isLast && (unit.length > room || spoken + speaks > turns)) break
    room -= unit.length
    spoken += speaks
    start--
  }
  // The question takes the place of what comes first, unless that is all there is.
  while (start < units.length - 1 && questionOf(units, start).length > room) room += units[start++]?.length ?? 0
  return start
}

/** The transcript itself where it is valid, so that each message is still the one that its provider knows. */
export const soundly = (transcript: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  isSound(transcript) ? transcript : Transcript.heal(transcript)

const isSound = (transcript: ReadonlyArray<Prompt.Message>): boolean =>
  transcript.every((message, at) => {
    switch (message.role) {
      case "system":
        return !isBlank(message.content)
      case "user":
        return message.content.length > 0 &&
          message.content.every((part) => part.type !== "text" || !isBlank(part.text))
      case "assistant":
        return isAnswered(message, transcript[at + 1])
      case "tool":
        return transcript[at - 1]?.role === "assistant"
    }
  })

const isBlank = (text: string): boolean => text.trim() === ""

const isAnswered = ({ content }: Prompt.AssistantMessage, next: Prompt.Message | undefined): boolean => {
  const asked = content.flatMap((part) => part.type === "tool-call" && !part.providerExecuted ? [part.id] : [])
  const answered = next?.role === "tool" ? next.content.map((part) => part.type === "tool-result" ? part.id : "") : []
  return content.length > 0 && Transcript.spoken(content) === content && new Set(asked).size === asked.length &&
    asked.length === answered.length && asked.every((id, at) => id === answered[at])
}
