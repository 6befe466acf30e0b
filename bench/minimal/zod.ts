// What is the least agent of a hand-written loop with zod 4?
import { z } from "zod"

const input = z.object({ city: z.string(), days: z.int() })
const definitions = [{ name: "get_weather", description: "Current weather for a city", schema: z.toJSONSchema(input) }]

interface Message {
  readonly role: string
  readonly content: string
  readonly call?: { readonly id: string; readonly arguments: string }
}

const model = async (messages: ReadonlyArray<Message>, _tools: typeof definitions): Promise<Message> =>
  messages.length === 1
    ? { role: "assistant", content: "", call: { id: "1", arguments: '{"city":"Paris","days":3}' } }
    : { role: "assistant", content: "done" }

const messages: Array<Message> = [{ role: "user", content: "What is the weather in Paris?" }]
for (;;) {
  const reply = await model(messages, definitions)
  messages.push(reply)
  if (reply.call === undefined) break
  const { city } = input.parse(JSON.parse(reply.call.arguments))
  messages.push({ role: "tool", content: JSON.stringify({ city, temp: 21 }) })
}
console.log(messages.at(-1)?.content)
