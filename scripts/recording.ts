// What is in a recording? Requests and answers of Chat Completions, read here without the code that is under test.
import * as Prompt from "effect/ai/Prompt"

export interface Message {
  readonly role: string
  readonly content?: unknown
  readonly refusal?: string | null
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<ToolCall>
  readonly reasoning_content?: string
  readonly reasoning?: string
  readonly reasoning_details?: ReadonlyArray<unknown>
  /** The form before tools. */
  readonly function_call?: ToolCall["function"] | null
}

const legacy = (called: Message["function_call"]): ReadonlyArray<ToolCall> =>
  called === undefined || called === null ? [] : [{ function: called }]

interface ToolCall {
  readonly id?: string | number
  readonly index?: number
  readonly function: { readonly name?: string; readonly arguments?: string }
}

export interface Recorded {
  readonly status: number
  readonly request: {
    readonly body: {
      readonly model?: string
      readonly messages: ReadonlyArray<Message>
      readonly tools?: ReadonlyArray<{
        readonly function: {
          readonly name: string
          readonly description?: string
          readonly parameters?: { readonly [key: string]: unknown }
        }
      }>
    }
  } | null
  readonly response: {
    readonly headers: { readonly [name: string]: string }
    readonly body?: Answer
    readonly text?: string
  }
}

interface Answer {
  readonly choices?: ReadonlyArray<
    { readonly message?: Message; readonly delta?: Message; readonly finish_reason?: string | null }
  >
  readonly usage?: unknown
  readonly [key: string]: unknown
}

const chunks = (text: string): ReadonlyArray<Answer> =>
  text.split("\n").filter((line) => line.startsWith("data:") && !line.includes("[DONE]")).map((line) =>
    JSON.parse(line.slice(5))
  )

/** A recorded answer as one message, as a server would give it plain. */
export const toJsonAnswer = ({ response }: Recorded): Answer => {
  if (response.body !== undefined) return response.body
  const calls: Array<
    { id?: string | number; type: "function"; index: number; function: { name: string; arguments: string } }
  > = []
  const pieces = chunks(response.text ?? "")
  let content = ""
  let finish: string | null = null
  for (const { choices } of pieces) {
    const [choice] = choices ?? []
    content += typeof choice?.delta?.content === "string" ? choice.delta.content : ""
    finish = choice?.finish_reason ?? finish
    for (const piece of choice?.delta?.tool_calls ?? []) {
      let call = calls.find(({ index }) => index === (piece.index ?? 0))
      if (call === undefined) {
        call = { type: "function", index: piece.index ?? 0, function: { name: "", arguments: "" } }
        calls.push(call)
      }
      if (piece.id !== undefined && piece.id !== "") call.id = piece.id
      call.function.name ||= piece.function.name ?? ""
      call.function.arguments += piece.function.arguments ?? ""
    }
  }
  const usage = pieces.findLast((piece) => piece.usage !== undefined && piece.usage !== null)?.usage
  return {
    ...pieces[0],
    object: "chat.completion",
    choices: [{
      message: {
        role: "assistant",
        content,
        ...(calls.length === 0 ? {} : { tool_calls: calls as ReadonlyArray<ToolCall> })
      },
      finish_reason: finish
    }],
    ...(usage === undefined ? {} : { usage })
  }
}

const halves = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)]

/** A recorded answer as server-sent events: as it was recorded, or cut into pieces. */
export const toStream = ({ response }: Recorded): string => {
  if (response.text !== undefined) return response.text
  const { choices, usage, ...rest } = response.body ?? {}
  const [choice] = choices ?? []
  const { content, tool_calls, ...message } = choice?.message ?? { role: "assistant" }
  const deltas: Array<object> = [
    { ...message, content: "" },
    ...(typeof content === "string" ? halves(content).map((content) => ({ content })) : [{ content }]),
    ...(tool_calls ?? []).flatMap((call, index) =>
      halves(call.function.arguments ?? "").map((piece, half) => ({
        tool_calls: [
          half === 0
            ? { ...call, index, function: { ...call.function, arguments: piece } }
            : { index, function: { arguments: piece } }
        ]
      }))
    )
  ]
  const events = [
    ...deltas.map((delta) => ({ ...rest, choices: [{ index: 0, delta, finish_reason: null }] })),
    { ...rest, choices: [{ index: 0, delta: {}, finish_reason: choice?.finish_reason ?? null }] },
    { ...rest, choices: [], usage }
  ]
  return [...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), "data: [DONE]\n\n"].join("")
}

/** What a recorded answer says: its text, and its calls with their arguments. */
export const recordedAnswer = (record: Recorded) => {
  const message = toJsonAnswer(record).choices?.[0]?.message
  return {
    text: (typeof message?.content === "string" ? message.content : "") + (message?.refusal ?? ""),
    calls: [...message?.tool_calls ?? [], ...legacy(message?.function_call)].map((call) => ({
      name: call.function.name ?? "",
      input: JSON.parse(call.function.arguments || "{}") ?? {}
    }))
  }
}

const said = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
    ? content.map((part) => part.type === "text" ? part.text : "").join("")
    : ""

// In the options of its part, as our own client keeps it.
const thoughts = (
  { reasoning, reasoning_content, reasoning_details }: Message
): ReadonlyArray<Prompt.ReasoningPart> => {
  const kept = { reasoning, reasoning_content, reasoning_details }
  const came = Object.entries(kept).filter(([, value]) => value !== undefined)
  return came.length === 0
    ? []
    : [
      Prompt.reasoningPart({
        text: reasoning_content ?? reasoning ?? "",
        options: { openaiCompatible: Object.fromEntries(came) } as Prompt.ProviderOptions
      })
    ]
}

/** Recorded messages as a transcript. */
export const toPrompt = (messages: ReadonlyArray<Message>): ReadonlyArray<Prompt.Message> => {
  const names = new Map<string, string>()
  return messages.map((message): Prompt.Message => {
    switch (message.role) {
      case "system":
      case "developer":
        return Prompt.systemMessage({ content: String(message.content) })
      case "assistant":
        for (const call of message.tool_calls ?? []) names.set(String(call.id), call.function.name ?? "")
        return Prompt.assistantMessage({
          content: [
            ...thoughts(message),
            ...(said(message.content) === "" ? [] : [Prompt.textPart({ text: said(message.content) })]),
            ...(message.tool_calls ?? []).map((call) =>
              Prompt.toolCallPart({
                id: String(call.id),
                name: call.function.name ?? "",
                params: JSON.parse(call.function.arguments || "{}"),
                providerExecuted: false
              })
            )
          ]
        })
      case "tool":
        return Prompt.toolMessage({
          content: [
            Prompt.toolResultPart({
              id: String(message.tool_call_id),
              name: names.get(String(message.tool_call_id)) ?? "",
              isFailure: false,
              result: message.content,
              providerExecuted: false
            })
          ]
        })
      default:
        return Prompt.userMessage({
          content: typeof message.content === "string" ?
            [Prompt.textPart({ text: message.content })] :
            (message.content as ReadonlyArray<
              { readonly text?: string; readonly image_url?: { readonly url: string } }
            >).map((part) =>
              part.image_url === undefined
                ? Prompt.textPart({ text: part.text ?? "" })
                : Prompt.filePart({
                  mediaType: /^data:([^;,]+)/.exec(part.image_url.url)?.[1] ?? "image/*",
                  data: part.image_url.url
                })
            )
        })
    }
  })
}
