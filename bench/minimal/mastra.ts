// What is the least agent of Mastra?
import { Agent, type AgentConfig } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { MockLanguageModelV4 } from "ai/test"
import { z } from "zod"
import { doGenerate } from "./scripted.ts"

const model = new MockLanguageModelV4({ doGenerate })

const weather = createTool({
  id: "get_weather",
  description: "Current weather for a city",
  inputSchema: z.object({ city: z.string(), days: z.int() }),
  execute: async ({ city }) => ({ city, temp: 21 })
})
const agent = new Agent({
  id: "bench",
  name: "bench",
  instructions: "",
  // The type asks for its own wrapper, which it makes from an AI SDK model.
  model: model as AgentConfig["model"],
  tools: { get_weather: weather }
})
console.log((await agent.generate("What is the weather in Paris?")).text)
