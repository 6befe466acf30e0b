// What does the AI SDK cost with its provider for compatible servers?
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, isStepCount, tool } from "ai"
import { z } from "zod"
import type { Contender } from "../requests.ts"
import * as Work from "../work.ts"

export const contender: Contender = {
  define: (turns, baseURL) => {
    const model = createOpenAICompatible({ name: "bench", baseURL }).chatModel("scripted")
    const tools = {
      get_weather: tool({
        description: Work.description,
        inputSchema: z.object({ city: z.string(), days: z.int() }),
        execute: Work.weather
      })
    }
    const stopWhen = isStepCount(turns + 2)
    return async () => (await generateText({ model, tools, prompt: Work.question, stopWhen })).text
  }
}
