// What is the least agent of LangChain?
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, type BaseMessage } from "@langchain/core/messages"
import type { ChatResult } from "@langchain/core/outputs"
import { convertToOpenAITool } from "@langchain/core/utils/function_calling"
import { createAgent, tool } from "langchain"
import { z } from "zod"

class Scripted extends BaseChatModel {
  override _llmType() {
    return "scripted"
  }

  override bindTools(tools: Parameters<NonNullable<BaseChatModel["bindTools"]>>[0]) {
    return this.withConfig({ tools: tools.map((tool) => convertToOpenAITool(tool as never)) } as object)
  }

  override async _generate(messages: Array<BaseMessage>): Promise<ChatResult> {
    const message = messages.length === 1
      ? new AIMessage({
        content: "",
        tool_calls: [{ id: "1", name: "get_weather", args: { city: "Paris", days: 3 }, type: "tool_call" }]
      })
      : new AIMessage("done")
    return { generations: [{ text: "", message }] }
  }
}

const weather = tool(({ city }: { readonly city: string }) => ({ city, temp: 21 }), {
  name: "get_weather",
  description: "Current weather for a city",
  schema: z.object({ city: z.string(), days: z.int() })
})
const agent = createAgent({ model: new Scripted({}), tools: [weather] })
const { messages } = await agent.invoke({ messages: [{ role: "user", content: "What is the weather in Paris?" }] })
console.log(messages.at(-1)?.content)
