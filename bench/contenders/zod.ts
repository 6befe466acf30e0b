// What does a hand-written loop on promises cost, with zod 4 for the arguments?
import { z } from "zod"
import * as Script from "../script.ts"
import * as Work from "../work.ts"

export const contender: Work.Contender = {
  timesOut: ["heeds", "deaf"],
  define: (spec, seen) => {
    const perform = Work.perform(spec, seen)
    const tools = new Map(
      Work.toolNames(spec.tools).map((name) => {
        const input = z.object({ city: z.string(), days: z.int() })
        return [name, { input, definition: { name, description: Work.description, schema: z.toJSONSchema(input) } }]
      })
    )
    const definitions = [...tools.values()].map(({ definition }) => definition)

    const model = Script.model(spec, seen)
    const ask = async (messages: ReadonlyArray<Script.Message>): Promise<Script.Reply> =>
      model.reply(messages, definitions)
    const stream = async function*(messages: ReadonlyArray<Script.Message>): AsyncGenerator<string, Script.Reply> {
      for (const delta of model.deltas(messages)) yield delta
      return model.reply(messages, definitions)
    }

    const answer = async (call: Script.Call): Promise<Script.Message> => {
      try {
        const tool = tools.get(call.name)
        if (tool === undefined) throw new Error(`there is no tool ${call.name}`)
        const input = tool.input.safeParse(JSON.parse(call.arguments))
        if (!input.success) throw input.error
        const value = Work.isTimed(spec)
          ? await within(10, (signal) => perform(input.data, signal))
          : await perform(input.data)
        return { role: "tool", id: call.id, content: JSON.stringify(value) }
      } catch (error) {
        return { role: "tool", id: call.id, content: String(error) }
      }
    }

    const hear = async (messages: ReadonlyArray<Script.Message>): Promise<Script.Reply> => {
      if (spec.deltas === 0) return ask(messages)
      const pieces = stream(messages)
      let text = ""
      for (;;) {
        const next = await pieces.next()
        if (next.done) return { text: text + next.value.text, calls: next.value.calls }
        text += next.value
        seen.deltas++
      }
    }

    return async () => {
      const messages: Array<Script.Message> = [{ role: "user", content: Work.question }]
      for (;;) {
        const { calls, text } = await hear(messages)
        messages.push({ role: "assistant", content: text, calls })
        const [first] = calls
        if (first === undefined) return text
        if (calls.length === 1) messages.push(await answer(first))
        else for (const message of await Promise.all(calls.map(answer))) messages.push(message)
      }
    }
  }
}

const within = async <A>(ms: number, start: (signal: AbortSignal) => A | Promise<A>): Promise<A> => {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => {
      const error = new Error(`timed out after ${ms} ms`)
      fail(error)
      controller.abort(error)
    }, ms)
  })
  try {
    return await Promise.race([start(controller.signal), late])
  } finally {
    clearTimeout(timer)
  }
}
