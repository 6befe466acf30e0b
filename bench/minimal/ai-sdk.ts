// What is the least agent of the AI SDK?
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { generateText, isStepCount, tool } from "ai"
import { z } from "zod"
import { doGenerate } from "./scripted.ts"

const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "bench",
  modelId: "scripted",
  supportedUrls: {},
  doGenerate,
  doStream: () => Promise.reject(new Error("not streamed"))
}

const { text } = await generateText({
  model,
  prompt: "What is the weather in Paris?",
  stopWhen: isStepCount(5),
  tools: {
    get_weather: tool({
      description: "Current weather for a city",
      inputSchema: z.object({ city: z.string(), days: z.int() }),
      execute: ({ city }) => ({ city, temp: 21 })
    })
  }
})
console.log(text)
