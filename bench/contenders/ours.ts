// What does toolfold cost on the direct entry of a provider of its own?
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Provider from "../../src/Provider.ts"
import * as EffectWork from "../effectWork.ts"
import * as Work from "../work.ts"
import { define } from "./oursAgent.ts"

export const contender: Work.Contender = {
  timesOut: ["endless", "heeds", "deaf"],
  define: (spec, seen) => define(spec, seen, model(spec, seen))
}

// A model costs as little as elsewhere: a copy of a part is a plain object, as the other scripts make it.
const blankCall = Prompt.makePart("tool-call", { id: "", name: "get_weather", params: "", providerExecuted: false })
const blankText = Prompt.makePart("text", { text: "" })

export const model = (spec: Work.Spec, seen: Work.Seen) =>
  Provider.layer({
    ask: ({ messages, table }, sink) => {
      const callsOf = (turn: number) => {
        seen.requests++
        seen.definitions = table.schemas.length
        if (seen.schemas !== undefined) { for (const { input_schema } of table.schemas) seen.schemas.add(input_schema) }
        return Work.callsOf(spec, turn).map((id) => ({ ...blankCall, id, params: Work.json }))
      }
      const turn = (messages.length - 1) / 2
      if (sink === undefined) return Effect.sync(() => whole(callsOf(turn)))
      return Effect.suspend(() => {
        const calls = callsOf(turn)
        if (calls.length === 0) return Effect.succeed(whole(calls))
        const deltas = Work.deltasOf(spec, turn)
        const text = { ...blankText, text: deltas.join("") }
        return Effect.as(
          Effect.forEach(deltas, (delta) => sink([{ type: "text", delta }]), { discard: true }),
          reply([text, ...calls], "tool-calls")
        )
      })
    }
  })

const whole = (calls: ReadonlyArray<Prompt.ToolCallPart>): Provider.Reply =>
  calls.length === 0 ? reply([{ ...blankText, text: Work.answer }], "stop") : reply(calls, "tool-calls")

const reply = (
  content: Provider.Reply["content"],
  finish: Provider.Reply["finish"]
): Provider.Reply => ({ content, finish, usage: EffectWork.usage })
