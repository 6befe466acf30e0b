// What is the least agent of a hand-written loop on Effect with Schema?
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Input = Schema.Struct({ city: Schema.String, days: Schema.Int })
const definitions = [{
  name: "get_weather",
  description: "Current weather for a city",
  schema: Schema.toJsonSchemaDocument(Input)
}]
const decode = Schema.decodeUnknownEffect(Input)

interface Message {
  readonly role: string
  readonly content: string
  readonly call?: { readonly id: string; readonly arguments: string }
}

const model = (messages: ReadonlyArray<Message>, _tools: typeof definitions): Effect.Effect<Message> =>
  Effect.succeed(
    messages.length === 1
      ? { role: "assistant", content: "", call: { id: "1", arguments: '{"city":"Paris","days":3}' } }
      : { role: "assistant", content: "done" }
  )

const run = Effect.gen(function*() {
  const messages: Array<Message> = [{ role: "user", content: "What is the weather in Paris?" }]
  for (;;) {
    const reply = yield* model(messages, definitions)
    messages.push(reply)
    if (reply.call === undefined) return reply.content
    const { city } = yield* decode(JSON.parse(reply.call.arguments))
    messages.push({ role: "tool", content: JSON.stringify({ city, temp: 21 }) })
  }
})
console.log(await Effect.runPromise(run))
