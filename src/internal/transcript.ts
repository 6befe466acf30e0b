/**
 * Which sequence of messages does every provider take? One in which each call has exactly one result, directly after
 * its assistant message and in call order, and nothing is blank.
 */
import * as Prompt from "effect/ai/Prompt"

/** What a model is told of one call. */
export interface Told {
  readonly id: string
  readonly name: string
  readonly isFailure: boolean
  readonly result: unknown
}

const wellFormed = (result: unknown): unknown => typeof result === "string" ? result.toWellFormed() : result

const resultPart = (told: Told): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", { ...told, result: wellFormed(told.result), providerExecuted: false })

/** The message that answers the calls of one turn. */
export const results = (told: ReadonlyArray<Told>): Prompt.ToolMessage =>
  Prompt.makeMessage("tool", { content: told.map(resultPart) })

const isBlank = (part: { readonly type: string; readonly text?: unknown; readonly options: object }): boolean =>
  (part.type === "text" || part.type === "reasoning") && typeof part.text === "string" && part.text.trim() === "" &&
  Object.keys(part.options).length === 0

/** What is kept of an assistant's message: nothing blank, and no request for approval, which a prompt cannot grant. */
export const spoken = (
  content: ReadonlyArray<Prompt.AssistantMessagePart>
): ReadonlyArray<Prompt.AssistantMessagePart> =>
  content.every((part) => !isBlank(part) && part.type !== "tool-approval-request")
    ? content
    : content.filter((part) => !isBlank(part) && part.type !== "tool-approval-request")

const cancelled = "This call was cancelled: the run ended before it was answered"

/**
 * Heals messages that come from elsewhere: a call without a result is answered as cancelled, a result without its call
 * or a second one is dropped, results move to directly after their calls, blank parts and empty messages go.
 */
export const heal = (messages: ReadonlyArray<Prompt.Message>): Array<Prompt.Message> => {
  const out: Array<Prompt.Message> = []
  const open = new Map<string, { readonly results: Array<Prompt.ToolResultPart>; readonly at: number }>()
  for (const message of messages) {
    if (message.role === "tool") {
      for (const part of message.content) {
        const place = part.type === "tool-result" ? open.get(part.id) : undefined
        if (place === undefined || part.type !== "tool-result") continue
        place.results[place.at] = part
        open.delete(part.id)
      }
      continue
    }
    if (message.role !== "assistant") {
      const content = typeof message.content === "string"
        ? message.content
        : message.content.filter((part) => !isBlank(part))
      if (content.length > 0) out.push({ ...message, content } as Prompt.Message) // the same role with fewer parts
      continue
    }
    const content = spoken(message.content)
    if (content.length === 0) continue
    out.push(content === message.content ? message : { ...message, content })
    const calls = content.filter((part) => part.type === "tool-call").filter((part) => !part.providerExecuted)
    if (calls.length === 0) continue
    const results = calls.map(({ id, name }) => resultPart({ id, name, isFailure: true, result: cancelled }))
    calls.forEach(({ id }, at) => open.set(id, { results, at }))
    out.push(Prompt.makeMessage("tool", { content: results }))
  }
  return out
}
