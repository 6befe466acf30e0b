/**
 * How is a call that is there whole said in pieces? As one piece, its arguments.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Provider from "../../Provider.ts"

type Piece = Extract<Provider.Delta, { readonly type: "input" }>

/** The pieces of the calls of an answer. */
export const ofCalls = (content: ReadonlyArray<Prompt.AssistantMessagePart>): ReadonlyArray<Piece> =>
  content.filter((part) => part.type === "tool-call").flatMap((call, part) => {
    const { id, name, params, providerExecuted } = call
    const delta = typeof params === "string" ? params : JSON.stringify(params)
    return providerExecuted || delta === "" ? [] : [{ type: "input", delta, part, id, name }]
  })
