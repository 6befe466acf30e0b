// What is the least agent of the OpenAI Agents SDK?
import { Agent, type Model, Runner, setTracingDisabled, tool, Usage } from "@openai/agents"
import { z } from "zod"

setTracingDisabled(true)

const model: Model = {
  getResponse: async ({ input }) => ({
    usage: new Usage(),
    output: input.length === 1
      ? [{
        type: "function_call",
        callId: "1",
        name: "get_weather",
        arguments: '{"city":"Paris","days":3}',
        status: "completed"
      }]
      : [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done" }] }]
  }),
  getStreamedResponse: () => {
    throw new Error("not streamed")
  }
}

const weather = tool({
  name: "get_weather",
  description: "Current weather for a city",
  parameters: z.object({ city: z.string(), days: z.int() }),
  execute: ({ city }) => ({ city, temp: 21 })
})
const agent = new Agent({ name: "bench", model, tools: [weather] })
const result = await new Runner({ tracingDisabled: true }).run(agent, "What is the weather in Paris?")
console.log(result.finalOutput)
