// What does a hand-written loop on Effect cost, with Schema for the arguments? The practical limit for a library on Effect.
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as EffectWork from "../effectWork.ts"
import * as Work from "../work.ts"

type Message =
  | { readonly role: "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string; readonly calls: ReadonlyArray<Call> }
  | { readonly role: "tool"; readonly id: string; readonly content: string }

interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

interface Reply {
  readonly text: string
  readonly calls: ReadonlyArray<Call>
}

type Piece = { readonly text: string } | { readonly calls: ReadonlyArray<Call> }

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

    const calls = (turn: number): ReadonlyArray<Call> =>
      Work.callsOf(spec, turn).map((id) => ({ id, name: "get_weather", arguments: Work.json }))
    const turnOf = (messages: ReadonlyArray<Message>) => {
      seen.requests++
      seen.definitions = definitions.length
      return (messages.length - 1) / (spec.calls + 1)
    }
    const ask = (messages: ReadonlyArray<Message>): Effect.Effect<Reply> =>
      Effect.sync(() => {
        const asked = calls(turnOf(messages))
        return asked.length === 0 ? { text: Work.answer, calls: asked } : { text: "", calls: asked }
      })
    const stream = (messages: ReadonlyArray<Message>): Stream.Stream<Piece> =>
      Stream.suspend(() => {
        const turn = turnOf(messages)
        const asked = calls(turn)
        const last: Piece = asked.length === 0 ? { text: Work.answer } : { calls: asked }
        const pieces = [...Work.deltasOf(spec, turn).map((text): Piece => ({ text })), last]
        return Stream.fromIteratorSucceed(pieces.values(), 1)
      })
    const hear = (messages: ReadonlyArray<Message>): Effect.Effect<Reply> => {
      if (spec.deltas === 0) return ask(messages)
      return Effect.suspend(() => {
        let text = ""
        let asked: ReadonlyArray<Call> = []
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
    const answer = (call: Call): Effect.Effect<Message> =>
      Effect.gen(function*() {
        const tool = tools.get(call.name)
        if (tool === undefined) return yield* Effect.fail(new Error(`there is no tool ${call.name}`))
        const input = yield* tool.decode(JSON.parse(call.arguments))
        const value = yield* timed ? Effect.timeout(perform(input), 10) : perform(input)
        return { role: "tool", id: call.id, content: JSON.stringify(value) } as const
      }).pipe(Effect.catch((error) => Effect.succeed({ role: "tool", id: call.id, content: String(error) } as const)))

    const run = Effect.gen(function*() {
      const messages: Array<Message> = [{ role: "user", content: Work.question }]
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
