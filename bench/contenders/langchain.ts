// What does LangChain cost? createAgent on a scripted chat model, LangSmith off.
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages"
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs"
import { convertToOpenAITool } from "@langchain/core/utils/function_calling"
import { createAgent, tool } from "langchain"
import { z } from "zod"
import * as Work from "../work.ts"

export const contender: Work.Contender = {
  timesOut: ["heeds", "deaf"],
  define: (spec, seen) => {
    const perform = Work.perform(spec, seen)
    const tools = Work.toolNames(spec.tools).map((name) => {
      const made = tool((input: Work.Input, config) => perform(input, config.signal), {
        name,
        description: Work.description,
        schema: z.object({ city: z.string(), days: z.int() })
      })
      if (Work.isTimed(spec)) made.defaultConfig = { timeout: 10 }
      return made
    })
    const agent = createAgent({ model: new Scripted(spec, seen), tools })
    const input = { messages: [{ role: "user", content: Work.question }] }
    const options = { recursionLimit: 4 * spec.turns + 10 }
    if (spec.deltas === 0) {
      return async () => String((await agent.invoke(input, options)).messages.at(-1)?.content)
    }
    return async () => {
      let text = ""
      for await (const [message] of await agent.stream(input, { ...options, streamMode: "messages" })) {
        if (!AIMessageChunk.isInstance(message) || message.content === "") continue
        if (message.content === Work.answer) text = Work.answer
        else seen.deltas++
      }
      return text
    }
  }
}

class Scripted extends BaseChatModel {
  private readonly spec: Work.Spec
  private readonly seen: Work.Seen

  constructor(spec: Work.Spec, seen: Work.Seen) {
    super({})
    this.spec = spec
    this.seen = seen
  }

  override _llmType() {
    return "scripted"
  }

  override bindTools(tools: Parameters<NonNullable<BaseChatModel["bindTools"]>>[0]) {
    return this.withConfig({ tools: tools.map((tool) => convertToOpenAITool(tool as never)) } as object)
  }

  private reply(messages: ReadonlyArray<BaseMessage>, options: object) {
    this.seen.requests++
    this.seen.definitions = "tools" in options && Array.isArray(options.tools) ? options.tools.length : 0
    const turn = (messages.length - 1) / (this.spec.calls + 1)
    return { turn, ids: Work.callsOf(this.spec, turn) }
  }

  override async _generate(messages: Array<BaseMessage>, options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const { ids } = this.reply(messages, options)
    const message = new AIMessage({
      content: ids.length === 0 ? Work.answer : "",
      tool_calls: ids.map((id) => ({ id, name: "get_weather", args: JSON.parse(Work.json), type: "tool_call" }))
    })
    return { generations: [{ text: "", message }] }
  }

  override async *_streamResponseChunks(
    messages: Array<BaseMessage>,
    options: this["ParsedCallOptions"],
    manager?: Parameters<BaseChatModel["_streamResponseChunks"]>[2]
  ): AsyncGenerator<ChatGenerationChunk> {
    const { ids, turn } = this.reply(messages, options)
    for (const text of ids.length === 0 ? [Work.answer] : Work.deltasOf(this.spec, turn)) {
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) })
      yield chunk
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk })
    }
    if (ids.length === 0) return
    const calls = ids.map((id, index) => ({
      id,
      index,
      name: "get_weather",
      args: Work.json,
      type: "tool_call_chunk" as const
    }))
    yield new ChatGenerationChunk({
      text: "",
      message: new AIMessageChunk({ content: "", tool_call_chunks: calls })
    })
  }
}
