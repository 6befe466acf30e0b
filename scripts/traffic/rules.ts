// Is a body one that its API takes? The rules that the recorded requests keep and that their servers refuse to see broken,
// read here without the code that is under test.
import { type Api, type Json, list, object, text } from "./data.ts"

/** What a body breaks, in words; nothing if an API takes it. */
export const problems = (api: Api, body: Json): ReadonlyArray<string> => {
  switch (api) {
    case "openai-chat":
      return chat(body)
    case "anthropic":
      return anthropic(body)
    case "gemini":
      return gemini(body)
    case "openai-responses":
      return responses(body)
  }
}

const named = /^[a-zA-Z0-9_-]{1,64}$/

/** Calls that wait for their results, and ids that were. */
const ledger = (problem: (words: string) => void) => {
  const seen = new Set<string>()
  const open = new Set<string>()
  return {
    call: (id: string) => {
      if (id === "") problem("a call has no id")
      else if (seen.has(id)) problem(`two calls have the id ${id}`)
      seen.add(id)
      open.add(id)
    },
    result: (id: string) => {
      if (!open.delete(id)) problem(`a result is of no call that waits for it: ${id}`)
    },
    /** Nothing but results may stand here. */
    close: (before: string) => {
      for (const id of open) problem(`call ${id} has no result before ${before}`)
      open.clear()
    }
  }
}

const names = (problem: (words: string) => void, all: ReadonlyArray<unknown>, rule = named): void => {
  all.forEach((u, at) => {
    if (!rule.test(text(u))) problem(`a tool's name is not taken: ${JSON.stringify(u)}`)
    else if (all.indexOf(u) !== at) problem(`two tools have the name ${text(u)}`)
  })
}

const isJsonObject = (u: unknown): boolean => {
  try {
    const read: unknown = JSON.parse(text(u))
    return typeof read === "object" && read !== null && !Array.isArray(read)
  } catch {
    return false
  }
}

const isBlank = (content: unknown): boolean =>
  content === null || content === undefined || content === "" || (Array.isArray(content) && content.length === 0)

const unknown = (problem: (words: string) => void, where: string, json: Json, known: string): void => {
  for (const field of Object.keys(json)) {
    if (!known.split(" ").includes(field)) problem(`${where} has the field ${field}, which nobody knows`)
  }
}

// --- Chat Completions

const bodyFields = "model messages tools tool_choice stream stream_options temperature top_p n stop max_tokens " +
  "max_completion_tokens response_format seed reasoning reasoning_effort enable_thinking parallel_tool_calls functions " +
  "function_call safe_prompt usage logprobs frequency_penalty presence_penalty"

const messageFields: { readonly [role: string]: string } = {
  system: "role content",
  developer: "role content",
  user: "role content name",
  assistant: "role content name tool_calls reasoning reasoning_content reasoning_details",
  tool: "role content tool_call_id name"
}

const isSystem = ({ role }: Json): boolean => role === "system" || role === "developer"

const chat = (body: Json): ReadonlyArray<string> => {
  const found: Array<string> = []
  const problem = (words: string) => void found.push(words)
  const { close, ...calls } = ledger(problem)
  const messages = list(body.messages).map(object)
  unknown(problem, "the body", body, bodyFields)
  if (text(body.model) === "") problem("no model is named")
  if (messages.length === 0) problem("there is no message")
  if (body.stream !== true && body.stream_options !== undefined) problem("stream_options stands without a stream")
  if (messages.findIndex(isSystem) > 0) problem("the system's message is not the first")
  messages.forEach((message, at) => {
    const role = text(message.role)
    const fields = messageFields[role]
    if (fields === undefined) return problem(`there is no role ${JSON.stringify(message.role)}`)
    unknown(problem, `a message of ${role}`, message, fields)
    if (role === "tool") {
      if (typeof message.content !== "string") problem("a result is no text")
      return calls.result(text(message.tool_call_id))
    }
    close(`message ${at} of ${role}`)
    const made = list(message.tool_calls).map(object)
    if (made.length === 0 && isBlank(message.content)) problem(`message ${at} of ${role} is empty`)
    if (message.tool_calls !== undefined && made.length === 0) problem(`message ${at} has an empty list of calls`)
    for (const { function: called, id, type } of made) {
      calls.call(text(id))
      if (type !== "function") problem(`a call is of type ${JSON.stringify(type)}`)
      if (!named.test(text(object(called).name))) problem(`a call's name is not taken: ${text(object(called).name)}`)
      if (!isJsonObject(object(called).arguments)) problem(`arguments are no JSON object as text: ${id}`)
    }
  })
  close("the end")
  const tools = list(body.tools).map((tool) => object(object(tool).function))
  names(problem, tools.map(({ name }) => name))
  for (const { name, parameters } of tools) {
    if (object(parameters).type !== "object") problem(`the arguments of ${text(name)} are no object`)
  }
  const wanted = object(object(body.tool_choice).function).name
  if (body.tool_choice !== undefined && tools.length === 0) problem("tool_choice stands without tools")
  else if (wanted !== undefined && !tools.some(({ name }) => name === wanted)) {
    problem(`tool_choice names no tool: ${text(wanted)}`)
  }
  return found
}

// --- Anthropic

const anthropic = (body: Json): ReadonlyArray<string> => {
  const found: Array<string> = []
  const problem = (words: string) => void found.push(words)
  const calls = ledger(problem)
  const messages = list(body.messages).map(object)
  if (typeof body.max_tokens !== "number") problem("max_tokens is not said")
  if (messages[0]?.role !== "user") problem("the first message is not the user's")
  messages.forEach(({ content, role }, at) => {
    if (role !== "user" && role !== "assistant") return problem(`there is no role ${JSON.stringify(role)}`)
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : list(content).map(object)
    if (blocks.length === 0) problem(`message ${at} of ${role} is empty`)
    if (blocks.some(({ text: said, type }) => type === "text" && text(said).trim() === "")) {
      problem(`message ${at} of ${role} has an empty text`)
    }
    const results = blocks.filter(({ type }) => type === "tool_result")
    if (results.length > 0 && role !== "user") problem(`a result is in a message of ${role}`)
    if (blocks.slice(0, results.length).some(({ type }) => type !== "tool_result")) {
      problem(`message ${at} has something before its results`)
    }
    for (const { tool_use_id } of results) calls.result(text(tool_use_id))
    calls.close(`the end of message ${at}`)
    for (const { id, input, name, type } of blocks) {
      if (type !== "tool_use") continue
      if (role !== "assistant") problem(`a call is in a message of ${role}`)
      calls.call(text(id))
      if (!/^[a-zA-Z0-9_-]+$/.test(text(id))) problem(`a call's id is not taken: ${text(id)}`)
      if (!named.test(text(name))) problem(`a call's name is not taken: ${text(name)}`)
      if (object(input) !== input) problem(`the input of ${text(name)} is no object`)
    }
  })
  calls.close("the end")
  names(problem, list(body.tools).map((tool) => object(tool).name))
  return found
}

// --- Gemini

const gemini = (body: Json): ReadonlyArray<string> => {
  const found: Array<string> = []
  const problem = (words: string) => void found.push(words)
  const contents = list(body.contents).map(object)
  let open: ReadonlyArray<string> = []
  if (contents[0]?.role !== "user") problem("the first content is not the user's")
  contents.forEach(({ parts, role }, at) => {
    if (role !== "user" && role !== "model") return problem(`there is no role ${JSON.stringify(role)}`)
    const all = list(parts).map(object)
    if (all.length === 0) problem(`content ${at} of ${role} is empty`)
    const of = (kind: string) =>
      all.filter((part) => part[kind] !== undefined).map((part) => text(object(part[kind]).name))
    const answered = of("functionResponse")
    if (JSON.stringify(answered) !== JSON.stringify(open)) {
      problem(`content ${at} answers ${JSON.stringify(answered)}, called was ${JSON.stringify(open)}`)
    }
    open = of("functionCall")
    if (answered.length > 0 && role !== "user") problem(`a result is in a content of ${role}`)
    if (open.length > 0 && role !== "model") problem(`a call is in a content of ${role}`)
  })
  if (open.length > 0) problem(`nothing answers ${JSON.stringify(open)}`)
  const tools = list(body.tools).flatMap((tool) => list(object(tool).functionDeclarations)).map(object)
  names(problem, tools.map(({ name }) => name), /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/)
  return found
}

// --- Responses

const responses = (body: Json): ReadonlyArray<string> => {
  const found: Array<string> = []
  const problem = (words: string) => void found.push(words)
  const calls = ledger(problem)
  const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : list(body.input).map(object)
  if (text(body.model) === "") problem("no model is named")
  if (input.length === 0) problem("there is no input")
  input.forEach((item: Json, at) => {
    switch (item.type) {
      case "function_call":
        calls.call(text(item.call_id))
        if (!named.test(text(item.name))) problem(`a call's name is not taken: ${text(item.name)}`)
        if (!isJsonObject(item.arguments)) problem(`arguments are no JSON object as text: ${text(item.call_id)}`)
        return
      case "function_call_output":
        return calls.result(text(item.call_id))
      case undefined:
      case "message":
        if (!/^(system|developer|user|assistant)$/.test(text(item.role))) {
          problem(`there is no role ${JSON.stringify(item.role)}`)
        }
        if (isBlank(item.content)) problem(`item ${at} of ${text(item.role)} is empty`)
        return calls.close(`item ${at} of ${text(item.role)}`)
    }
  })
  calls.close("the end")
  names(problem, list(body.tools).map(object).flatMap(({ name, type }) => type === "function" ? [name] : []))
  return found
}
