// What did a recorded answer say? Its text, its calls and its signatures, read here without the code that is under test.
import { recordedAnswer } from "../recording.ts"
import { events, type Exchange, type Json, list, object, text } from "./data.ts"

/** What the client must hear of an answer: what a server ran itself is not among the calls. */
export interface Said {
  readonly text: string
  readonly calls: ReadonlyArray<readonly [name: string, input: unknown]>
  /** What must go back byte for byte, in order. */
  readonly signatures: ReadonlyArray<string>
}

const sum = (usage: Json, ...keys: ReadonlyArray<string>): number | undefined =>
  keys.some((key) => typeof usage[key] === "number")
    ? keys.reduce((total, key) => total + Number(usage[key] ?? 0), 0)
    : undefined

/** How many tokens were sent and said, all of them, where a recording tells; a stream tells them at its end. */
export const tokens = (exchange: Exchange): readonly [input: unknown, output: unknown] => {
  const whole = exchange.text === undefined && !Array.isArray(exchange.body)
  const pieces = whole ? [object(exchange.body)] : chunks(exchange)
  const said = pieces.flatMap((piece) =>
    [piece.usage, piece.usageMetadata, object(piece.message).usage, object(piece.response).usage].map(object)
  ).reduce<Json>(
    // What is not there does not undo what was.
    (all, one) => ({ ...all, ...Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)) }),
    {}
  )
  switch (exchange.api) {
    case "anthropic":
      return [
        sum(said, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        sum(said, "output_tokens")
      ]
    case "gemini":
      return [
        sum(said, "promptTokenCount", "toolUsePromptTokenCount"),
        sum(said, "candidatesTokenCount", "thoughtsTokenCount")
      ]
    case "openai-responses":
      return [sum(said, "input_tokens"), sum(said, "output_tokens")]
    case "openai-chat":
      return [sum(said, "prompt_tokens"), sum(said, "completion_tokens")]
  }
}

export const said = (exchange: Exchange): Said => {
  switch (exchange.api) {
    case "anthropic":
      return ofBlocks(exchange.text === undefined ? list(object(exchange.body).content) : blocks(exchange.text))
    case "gemini":
      return ofCandidates(chunks(exchange))
    case "openai-responses":
      return ofItems(items(exchange))
    case "openai-chat": {
      const { body, headers, status, text } = exchange
      const answer = recordedAnswer({
        status,
        request: null,
        response: { headers, ...(text === undefined ? { body: body as Json } : { text }) }
      })
      return { text: answer.text, calls: answer.calls.map(({ input, name }) => [name, input]), signatures: [] }
    }
  }
}

const parsed = (args: unknown): unknown => JSON.parse(text(args) || "{}")

const joined = (parts: ReadonlyArray<Json>, key = "text"): string => parts.map((part) => text(part[key])).join("")

// --- Anthropic

const ofBlocks = (content: ReadonlyArray<unknown>): Said => {
  const parts = content.map(object)
  return {
    text: joined(parts.filter(({ type }) => type === "text")),
    calls: parts.filter(({ type }) => type === "tool_use").map(({ input, name }) => [text(name), input]),
    signatures: parts.flatMap(({ data, signature, type }) =>
      type === "thinking" ? [text(signature)] : type === "redacted_thinking" ? [text(data)] : []
    )
  }
}

const blocks = (stream: string): ReadonlyArray<Json> => {
  const out = new Map<unknown, { block: Json; said: string; args: string; signature: string }>()
  for (const event of events(stream)) {
    const { content_block, index, type } = event
    if (type === "content_block_start") {
      out.set(index, { block: object(content_block), said: text(object(content_block).text), args: "", signature: "" })
    }
    const one = out.get(index)
    if (type !== "content_block_delta" || one === undefined) continue
    const delta = object(event.delta)
    one.said += text(delta.text)
    one.args += text(delta.partial_json)
    one.signature += text(delta.signature)
  }
  return [...out.values()].map(({ args, block, said, signature }) => ({
    ...block,
    text: said,
    signature,
    input: args === "" ? block.input : parsed(args)
  }))
}

// --- Gemini

export const chunks = ({ body, text }: Exchange): ReadonlyArray<Json> =>
  text !== undefined ? events(text) : Array.isArray(body) ? body.map(object) : [object(body)]

const ofCandidates = (chunks: ReadonlyArray<Json>): Said => {
  const parts = chunks.flatMap(({ candidates }) => list(object(object(list(candidates)[0]).content).parts)).map(object)
  return {
    text: joined(parts.filter(({ thought }) => thought !== true)),
    calls: parts.filter((part) => part.functionCall !== undefined).map(({ functionCall }) => {
      const { args, name } = object(functionCall)
      return [text(name), args ?? {}]
    }),
    signatures: parts.flatMap(({ thoughtSignature }) => typeof thoughtSignature === "string" ? [thoughtSignature] : [])
  }
}

// --- Responses

const items = ({ body, text: stream }: Exchange): ReadonlyArray<unknown> => {
  if (stream === undefined) return list(object(body).output)
  const all = events(stream)
  const done = all.filter(({ type }) => type === "response.output_item.done")
  return done.map(({ item }) => item)
}

const ofItems = (output: ReadonlyArray<unknown>): Said => {
  const all = output.map(object)
  return {
    text: all.filter(({ type }) => type === "message").map(({ content }) =>
      joined(list(content).map(object)) + joined(list(content).map(object), "refusal")
    ).join(""),
    calls: all.filter(({ type }) => type === "function_call").map((call) => [text(call.name), parsed(call.arguments)]),
    signatures: all.flatMap(({ encrypted_content, type }) =>
      type === "reasoning" && typeof encrypted_content === "string" ? [encrypted_content] : []
    )
  }
}
