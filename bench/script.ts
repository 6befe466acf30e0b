// What does the model of a hand-written loop say? The messages of such a loop, and the script that answers them.
import * as Work from "./work.ts"

export type Message =
  | { readonly role: "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string; readonly calls: ReadonlyArray<Call> }
  | { readonly role: "tool"; readonly id: string; readonly content: string }

export interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export interface Reply {
  readonly text: string
  readonly calls: ReadonlyArray<Call>
}

/** A model that is asked with the messages and the definitions of the tools. */
export const model = (spec: Work.Spec, seen: Work.Seen) => {
  const turnOf = (messages: ReadonlyArray<Message>): number => (messages.length - 1) / (spec.calls + 1)
  return {
    reply: (messages: ReadonlyArray<Message>, definitions: ReadonlyArray<unknown>): Reply => {
      seen.requests++
      seen.definitions = definitions.length
      const calls = Work.callsOf(spec, turnOf(messages)).map((id) => ({
        id,
        name: "get_weather",
        arguments: Work.json
      }))
      return { text: calls.length === 0 ? Work.answer : "", calls }
    },
    /** The pieces of text that come before a reply where it is streamed. */
    deltas: (messages: ReadonlyArray<Message>): ReadonlyArray<string> => Work.deltasOf(spec, turnOf(messages))
  }
}
