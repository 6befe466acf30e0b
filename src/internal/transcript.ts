/**
 * Which sequence of messages does every provider take? One in which each call has exactly one result, directly after
 * its assistant message and in call order, and nothing is blank.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Arguments from "./arguments.ts"
import * as Text from "./text.ts"

// A copy of a part that is there costs a fraction of making one.
const blankResult = Prompt.makePart("tool-result", {
  id: "",
  name: "",
  isFailure: false,
  result: null,
  providerExecuted: false
})
const noOptions = Object.freeze({})
const blankResults = Prompt.makeMessage("tool", { content: [] })
const blankAssistant = Prompt.makeMessage("assistant", { content: [] })

/** What the model is told of one call; `parts` are what it is to see in the place of the result. */
export const result = (
  id: string,
  name: string,
  isFailure: boolean,
  result: unknown,
  parts?: ReadonlyArray<unknown>
): Prompt.ToolResultPart => {
  const part = { ...blankResult, id, name, isFailure, result: Text.wellFormed(result), options: noOptions }
  // They are what a tool's `toModelOutput` gave.
  return parts === undefined ? part : { ...part, modelOutput: parts as ReadonlyArray<Prompt.ToolModelOutputPart> }
}

/** The message that answers the calls of one turn. */
export const results = (content: ReadonlyArray<Prompt.ToolResultPart>): Prompt.ToolMessage => ({
  ...blankResults,
  content,
  options: noOptions
})

/** The message of what the model said. */
export const assistant = (content: ReadonlyArray<Prompt.AssistantMessagePart>): Prompt.AssistantMessage => ({
  ...blankAssistant,
  content,
  options: noOptions
})

const isBlank = (part: { readonly type: string; readonly text?: unknown; readonly options: object }): boolean =>
  (part.type === "text" || part.type === "reasoning") && typeof part.text === "string" && part.text.trim() === "" &&
  Object.keys(part.options).length === 0

/** What is kept of an assistant's message: nothing blank, and no request for approval, which a prompt cannot grant. */
export const spoken = (
  content: ReadonlyArray<Prompt.AssistantMessagePart>
): ReadonlyArray<Prompt.AssistantMessagePart> => content.every(isKept) ? content : content.filter(isKept)

const isKept = (part: Prompt.AssistantMessagePart) => !isBlank(part) && part.type !== "tool-approval-request"

/** Gives calls ids of their own: one that is missing, not legal, or taken is replaced by one that is free. */
export const ids = (fresh: (at: number) => string, isLegal: (id: string) => boolean = always) => {
  let taken: Set<string> | undefined
  const take = (id: string): boolean => {
    taken ??= new Set()
    const { size } = taken
    return taken.add(id).size > size
  }
  const other = (): string => {
    let at = taken?.size ?? 0
    let id = fresh(at)
    while (!take(id)) id = fresh(++at)
    return id
  }
  return (id: string): string => id !== "" && isLegal(id) && take(id) ? id : other()
}

const always = (): boolean => true

const cancelled = "This call was cancelled: the run ended before it was answered"

interface Place {
  readonly results: Array<Prompt.ToolResultPart>
  readonly at: number
  readonly id: string
}

/**
 * Heals messages that come from elsewhere: a call without a result is answered as cancelled, a result without its call
 * is dropped, results move to directly after their calls, ids that repeat within a message are told apart, blank parts
 * and empty messages go. What a provider ran itself stays in the assistant's message, call and result together.
 */
export const heal = (messages: ReadonlyArray<Prompt.Message>): Array<Prompt.Message> => {
  const out: Array<Prompt.Message> = []
  const open = new Map<string, Array<Place>>()
  const answerOpen = (part: Prompt.ToolResultPart): void => {
    const place = open.get(part.id)?.shift()
    if (place !== undefined) place.results[place.at] = { ...part, id: place.id, providerExecuted: false }
  }
  for (const message of messages) {
    switch (message.role) {
      case "system":
        if (message.content.trim() !== "") out.push(message)
        break
      case "user": {
        const content = message.content.filter((part) => !isBlank(part))
        if (content.length > 0) out.push(content.length === message.content.length ? message : { ...message, content })
        break
      }
      case "tool":
        for (const part of message.content) if (part.type === "tool-result") answerOpen(part)
        break
      case "assistant":
        healAssistant(message, out, open, answerOpen)
    }
  }
  return out
}

const healAssistant = (
  message: Prompt.AssistantMessage,
  out: Array<Prompt.Message>,
  open: Map<string, Array<Place>>,
  answerOpen: (part: Prompt.ToolResultPart) => void
): void => {
  const own = ids((at) => `call_${out.length}_${at}`)
  const results: Array<Prompt.ToolResultPart> = []
  const inline: Array<Prompt.ToolResultPart> = []
  const asked = new Set<string>()
  const finished = new Set(
    message.content.flatMap((part) => part.type === "tool-result" && part.providerExecuted ? [part.id] : [])
  )
  const content: Array<Prompt.AssistantMessagePart> = []
  for (const part of spoken(message.content)) {
    if (part.type === "tool-call" && !part.providerExecuted) {
      const id = own(part.id)
      const params = Arguments.isObject(part.params) ? part.params : Arguments.toObject(part.params)
      content.push(id === part.id && params === part.params ? part : { ...part, id, params })
      const place = { results, at: results.length, id }
      results.push(result(id, part.name, true, cancelled))
      // A call that repeats the id of an earlier message is meant by the results that follow.
      if (asked.has(part.id)) open.get(part.id)?.push(place)
      else open.set(part.id, [place])
      asked.add(part.id)
    } else if (part.type === "tool-call") {
      if (finished.has(part.id)) content.push(part)
    } else if (part.type !== "tool-result") content.push(part)
    else if (!part.providerExecuted) inline.push(part)
    else if (content.some((call) => call.type === "tool-call" && call.id === part.id)) content.push(part)
  }
  if (content.length === 0) return
  const unchanged = content.length === message.content.length &&
    content.every((part, at) => part === message.content[at])
  out.push(unchanged ? message : { ...message, content })
  if (results.length > 0) out.push(Prompt.makeMessage("tool", { content: results }))
  inline.forEach(answerOpen)
}
