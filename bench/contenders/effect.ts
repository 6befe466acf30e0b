// What does a hand-written loop on Effect cost, with Schema for the arguments? The practical limit for a library on Effect.
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as EffectWork from "../effectWork.ts"
import * as Script from "../script.ts"
import * as Work from "../work.ts"

type Piece = { readonly text: string } | { readonly calls: ReadonlyArray<Script.Call> }

export const contender: Work.Contender = {
  timesOut: ["endless", "heeds", "deaf"],
  define: (spec, seen) => {
    const perform = EffectWork.perform(spec, seen, Effect.promise)
    const tools = new Map(
      Work.toolNames(spec.tools).map((name) => {
        const input = Schema.Struct(EffectWork.fields())
        const schema = Tool.getJsonSchemaFromSchema(input)
        const decode = Schema.decodeUnknownEffect(input)
        return [name, { decode, definition: { name, description: Work.description, schema } }]
      })
    )
    const definitions = [...tools.values()].map(({ definition }) => definition)

    const model = Script.model(spec, seen)
    const ask = (messages: ReadonlyArray<Script.Message>): Effect.Effect<Script.Reply> =>
      Effect.sync(() => model.reply(messages, definitions))
    const stream = (messages: ReadonlyArray<Script.Message>): Stream.Stream<Piece> =>
      Stream.suspend(() => {
        const { calls, text } = model.reply(messages, definitions)
        const last: Piece = calls.length === 0 ? { text } : { calls }
        const pieces = [...model.deltas(messages).map((text): Piece => ({ text })), last]
        return Stream.fromIteratorSucceed(pieces.values(), 1)
      })
    const hear = (messages: ReadonlyArray<Script.Message>): Effect.Effect<Script.Reply> => {
      if (spec.deltas === 0) return ask(messages)
      return Effect.suspend(() => {
        let text = ""
        let asked: ReadonlyArray<Script.Call> = []
        const take = (piece: Piece) =>
          Effect.sync(() => {
            if ("calls" in piece) asked = piece.calls
            else {
              text += piece.text
              if (piece.text !== Work.answer) seen.deltas++
            }
          })
        return Effect.map(Stream.runForEach(stream(messages), take), () => ({ text, calls: asked }))
      })
    }

    const timed = Work.isTimed(spec)
    const answer = (call: Script.Call): Effect.Effect<Script.Message> =>
      Effect.gen(function*() {
        const tool = tools.get(call.name)
        if (tool === undefined) return yield* Effect.fail(new Error(`there is no tool ${call.name}`))
        const input = yield* tool.decode(JSON.parse(call.arguments))
        const value = yield* timed ? Effect.timeout(perform(input), 10) : perform(input)
        return { role: "tool", id: call.id, content: JSON.stringify(value) } as const
      }).pipe(Effect.catch((error) => Effect.succeed({ role: "tool", id: call.id, content: String(error) } as const)))

    const run = Effect.gen(function*() {
      const messages: Array<Script.Message> = [{ role: "user", content: Work.question }]
      for (;;) {
        const { calls, text } = yield* hear(messages)
        messages.push({ role: "assistant", content: text, calls })
        if (calls.length === 0) return text
        for (const message of yield* Effect.forEach(calls, answer, { concurrency: "unbounded" })) messages.push(message)
      }
    })
    return () => Effect.runPromise(run)
  }
}
