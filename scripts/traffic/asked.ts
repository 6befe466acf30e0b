// What was a recorded request? Its transcript as ours, its tools, and the results and signatures that it gives back.
import * as Prompt from "effect/ai/Prompt"
import * as WireTool from "effect/ai/Tool"
import { type Message, toPrompt } from "../recording.ts"
import { type Api, type Json, list, object, text } from "./data.ts"

/** A result, by the id of its call where the API has ids, else by the name of its tool. */
export interface Answered {
  readonly key: string
  readonly value: unknown
}

/** The tools that were offered and that the client runs. */
export const tools = (api: Api, request: Json) => {
  const declared = list(request.tools).map(object)
  const all: ReadonlyArray<Json> = api === "gemini"
    ? declared.flatMap((tool) => list(tool.functionDeclarations ?? tool.function_declarations).map(object))
    : api === "openai-chat"
    ? declared.map((tool) => object(tool.function))
    : declared.filter(({ type }) => type === undefined || type === "function" || type === "custom")
  return all.map(({ description, input_schema, name, parameters, parametersJsonSchema, strict }) => {
    const tool = WireTool.dynamic(text(name), {
      ...(typeof description === "string" ? { description } : {}),
      parameters: { ...lower(object(input_schema ?? parameters ?? parametersJsonSchema)), type: "object" }
    })
    return typeof strict === "boolean" ? tool.annotate(WireTool.Strict, strict) : tool
  })
}

// Gemini's own form writes types in capitals.
const lower = (schema: Json): Json =>
  Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === "type" && typeof value === "string"
        ? value.toLowerCase()
        : key === "properties"
        ? Object.fromEntries(Object.entries(object(value)).map(([name, part]) => [name, lower(object(part))]))
        : key === "items"
        ? lower(object(value))
        : value
    ])
  )

/** The results that a request gives back, in order. */
export const results = (api: Api, request: Json): ReadonlyArray<Answered> => {
  switch (api) {
    case "anthropic":
      return list(request.messages).map(object).flatMap(({ content }) => list(content).map(object))
        .filter(({ type }) => type === "tool_result")
        .map(({ content, tool_use_id }) => ({ key: text(tool_use_id), value: plain(content) }))
    case "gemini":
      return list(request.contents).map(object).flatMap(({ parts }) => list(parts).map(object))
        .flatMap(({ functionResponse }) => functionResponse === undefined ? [] : [object(functionResponse)])
        .map(({ name, response }) => ({ key: text(name), value: response }))
    case "openai-responses":
      return list(request.input).map(object).filter(({ type }) => type === "function_call_output")
        .map(({ call_id, output }) => ({ key: text(call_id), value: plain(output) }))
    case "openai-chat":
      return list(request.messages).map(object).filter(({ role }) => role === "tool")
        .map(({ content, tool_call_id }) => ({ key: String(tool_call_id), value: content }))
  }
}

// A text, or its only part.
const plain = (content: unknown): unknown =>
  Array.isArray(content) && content.every((part) => text(object(part).type).endsWith("text"))
    ? content.map((part) => text(object(part).text)).join("\n")
    : content

/** What of a request must be what the answers before it said, byte for byte. */
export const signatures = (api: Api, request: Json): ReadonlyArray<string> => {
  switch (api) {
    case "anthropic":
      return list(request.messages).map(object).filter(({ role }) => role === "assistant")
        .flatMap(({ content }) => list(content).map(object))
        .flatMap(({ data, signature, type }) =>
          type === "thinking" ? [text(signature)] : type === "redacted_thinking" ? [text(data)] : []
        )
    case "gemini":
      return list(request.contents).map(object).flatMap(({ parts }) => list(parts).map(object))
        .flatMap(({ thoughtSignature }) => typeof thoughtSignature === "string" ? [thoughtSignature] : [])
    case "openai-responses":
      return list(request.input).map(object).flatMap(({ encrypted_content }) =>
        typeof encrypted_content === "string" ? [encrypted_content] : []
      )
    case "openai-chat":
      return []
  }
}

/** The transcript that a request begins with. */
export const transcript = (api: Api, request: Json): ReadonlyArray<Prompt.Message> => {
  switch (api) {
    case "anthropic":
      return [
        ...system(plain(request.system)),
        ...list(request.messages).map(object).flatMap(({ content, role }) =>
          fromParts(role, typeof content === "string" ? [{ type: "text", text: content }] : list(content).map(object))
        )
      ]
    case "gemini": {
      const names = list(request.contents).map(object)
      return [
        ...system(
          plain(list(object(request.systemInstruction).parts).map((part) => ({ ...object(part), type: "text" })))
        ),
        ...names.flatMap(({ parts, role }) =>
          fromParts(role === "model" ? "assistant" : role, list(parts).map(ofGemini))
        )
      ]
    }
    case "openai-responses":
      return [
        ...system(request.instructions),
        ...(typeof request.input === "string"
          ? [Prompt.userMessage({ content: [Prompt.textPart({ text: request.input })] })]
          : list(request.input).map(object).flatMap(ofItem))
      ]
    case "openai-chat":
      return toPrompt(list(request.messages) as ReadonlyArray<Message>)
  }
}

const system = (content: unknown): ReadonlyArray<Prompt.Message> =>
  typeof content === "string" && content !== "" ? [Prompt.systemMessage({ content })] : []

const fromParts = (role: unknown, parts: ReadonlyArray<Json>): ReadonlyArray<Prompt.Message> => {
  const texts = parts.filter(({ type }) => type === "text").map((part) => Prompt.textPart({ text: text(part.text) }))
  const calls = parts.filter(({ type }) => type === "tool_use").map(({ id, input, name, options }) =>
    Prompt.toolCallPart({
      id: text(id),
      name: text(name),
      params: input,
      providerExecuted: false,
      options: object(options) as Prompt.ProviderOptions
    })
  )
  const answers = parts.filter(({ type }) => type === "tool_result").map(({ content, name, tool_use_id }) =>
    Prompt.toolResultPart({
      id: text(tool_use_id),
      name: text(name),
      isFailure: false,
      result: plain(content),
      providerExecuted: false
    })
  )
  if (role === "system") return system(texts.map(({ text }) => text).join("\n"))
  return [
    ...(answers.length === 0 ? [] : [Prompt.toolMessage({ content: answers })]),
    ...(role === "assistant"
      ? [Prompt.assistantMessage({ content: [...texts, ...calls] })]
      : texts.length === 0
      ? []
      : [Prompt.userMessage({ content: texts })])
  ]
}

// Gemini's calls have names and no ids; in these recordings a call of one name is answered before the next.
const ofGemini = (u: unknown): Json => {
  const { functionCall, functionResponse, text: said, thoughtSignature } = object(u)
  if (functionCall !== undefined) {
    const { args, name } = object(functionCall)
    return {
      type: "tool_use",
      id: name,
      name,
      input: args ?? {},
      options: thoughtSignature === undefined ? {} : { google: { thoughtSignature } }
    }
  }
  if (functionResponse === undefined) return { type: "text", text: said }
  const { name, response } = object(functionResponse)
  return { type: "tool_result", tool_use_id: name, name, content: response }
}

const ofItem = (item: Json): ReadonlyArray<Prompt.Message> => {
  switch (item.type) {
    case "function_call":
      return fromParts("assistant", [{
        type: "tool_use",
        id: item.call_id,
        name: item.name,
        input: JSON.parse(text(item.arguments) || "{}")
      }])
    case "function_call_output":
      return fromParts("tool", [{ type: "tool_result", tool_use_id: item.call_id, name: "", content: item.output }])
    case "reasoning":
      return [Prompt.assistantMessage({
        content: [Prompt.reasoningPart({
          text: list(item.summary).map((part) => text(object(part).text)).join(""),
          options: { openai: { itemId: text(item.id), reasoningEncryptedContent: text(item.encrypted_content) } }
        })]
      })]
    default:
      return fromParts(
        item.role,
        typeof item.content === "string"
          ? [{ type: "text", text: item.content }]
          : list(item.content).map((part) => ({ type: "text", text: object(part).text }))
      )
  }
}
