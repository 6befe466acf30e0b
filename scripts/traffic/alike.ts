// Is what we sent the recorded request? Everything of a body is compared; what is different on purpose is listed here,
// each with its reason, and nowhere else.
import { canonical, type Json, list, object, text } from "./data.ts"

/** A difference that is one of form: `same` writes both sides in one way. */
export interface Difference {
  readonly what: string
  readonly why: string
  readonly same: (body: Json, recorded: Json) => Json
}

const eachMessage = (body: Json, same: (message: Json) => Json): Json => ({
  ...body,
  messages: list(body.messages).map((message) => same(object(message)))
})

const eachTool = (body: Json, same: (called: Json) => Json): Json =>
  body.tools === undefined ? body : {
    ...body,
    tools: list(body.tools).map(object).map((tool) => ({ ...tool, function: same(object(tool.function)) }))
  }

const without = (json: Json, ...fields: ReadonlyArray<string>): Json =>
  Object.fromEntries(Object.entries(json).filter(([field]) => !fields.includes(field)))

const nameOf = (tool: Json): string => text(object(tool.function).name)

const isEmpty = (u: unknown): boolean =>
  u === undefined || u === null || u === "" || (Array.isArray(u) && u.length === 0)

const parsed = (u: unknown): unknown => {
  try {
    return JSON.parse(text(u) || "{}")
  } catch {
    return u
  }
}

const dropped = (recorded: Json, ...fields: ReadonlyArray<string>) => (body: Json): Json =>
  without(body, ...fields.filter((field) => recorded[field] === undefined))

const reasons = /^(?:.*\/)?(?:o\d|gpt-5)/

/** What is different on purpose. */
export const deliberate: ReadonlyArray<Difference> = [
  {
    what: "whitespace in the JSON text of arguments",
    why: "it means what it says when it is read, and is written anew from what was read",
    same: (body) =>
      eachMessage(body, (message) =>
        message.tool_calls === undefined ? message : {
          ...message,
          tool_calls: list(message.tool_calls).map(object).map((call) => ({
            ...call,
            function: { ...object(call.function), arguments: parsed(object(call.function).arguments) }
          }))
        })
  },
  {
    what: "content that says nothing, beside calls: null, an empty text or no field",
    why: "all three are taken, and null is what the protocol's own answers have",
    same: (body) =>
      eachMessage(
        body,
        (message) =>
          message.tool_calls !== undefined && isEmpty(message.content) ? without(message, "content") : message
      )
  },
  {
    what: "a text as the only part of a list",
    why: "every server takes a text, and not all take lists",
    same: (body) =>
      eachMessage(body, (message) => {
        const [only, ...others] = list(message.content).map(object)
        return only?.type === "text" && others.length === 0 ? { ...message, content: only.text } : message
      })
  },
  {
    what:
      "fields that say what holds without them: no stream, the choice left to the model, no tools, nothing to stop at",
    why: "what is not said is the same for every server, and some refuse what they do not know",
    same: (body) =>
      without(
        body,
        ...(body.stream === false ? ["stream"] : []),
        ...(body.tool_choice === "auto" ? ["tool_choice"] : []),
        ...["tools", "stop"].filter((field) => isEmpty(body[field]))
      )
  },
  {
    what: "an empty message of the assistant is left out",
    why: "some servers refuse it, and it says nothing",
    same: (body) => ({
      ...body,
      messages: list(body.messages).map(object).filter((message) =>
        !(message.role === "assistant" && isEmpty(message.content) && message.tool_calls === undefined)
      )
    })
  },
  {
    what: "a stream is asked for its usage",
    why: "what a run spends is counted, and most servers say it in streams only when they are asked",
    same: (body, recorded) => dropped(recorded, "stream_options")(body)
  },
  {
    what: "instructions as system, not as developer",
    why: "every server knows system, and OpenAI reads it as developer where a model wants that",
    same: (body) =>
      eachMessage(body, (message) => message.role === "developer" ? { ...message, role: "system" } : message)
  },
  {
    what: "the name of a tool beside its result",
    why: "the id says whose result it is; the protocol has no name there",
    same: (body) => eachMessage(body, (message) => message.role === "tool" ? without(message, "name") : message)
  },
  {
    what: "the name of who speaks",
    why: "a transcript of effect/ai has no place for it",
    same: (body) =>
      eachMessage(
        body,
        (message) => message.role === "user" || message.role === "assistant" ? without(message, "name") : message
      )
  },
  {
    what: "an empty thought beside calls, where nothing was thought",
    why: "DeepSeek and others refuse calls that have no such field once their model thinks",
    same: (body) =>
      eachMessage(body, (message) => message.reasoning_content === "" ? without(message, "reasoning_content") : message)
  },
  {
    what: "a tool that says it is not strict",
    why: "that holds for one that says nothing, and not every server knows the word",
    same: (body) => eachTool(body, (tool) => tool.strict === false ? without(tool, "strict") : tool)
  },
  {
    what: "the model's name, where it is recorded as a part of the address",
    why: "Azure takes it in both places, and the address that we use has no model",
    same: (body, recorded) => dropped(recorded, "model")(body)
  },
  {
    what: "max_completion_tokens for max_tokens",
    why: "OpenAI has renamed it, and its newer models refuse the old name",
    same: ({ max_completion_tokens, ...body }) =>
      max_completion_tokens === undefined ? body : { ...body, max_tokens: max_completion_tokens }
  },
  {
    what: "temperature and stop are not sent to models of OpenAI that reason",
    why:
      "they refuse all but the default, as a recorded answer says of stop; the reply's warnings say what was left out",
    same: (body, recorded) => reasons.test(text(recorded.model)) ? without(body, "temperature", "stop") : body
  }
]

/** What is different in a loop, which writes the conversation itself after the first request. */
export const inLoop = (first: Json): ReadonlyArray<Difference> => [
  ...deliberate,
  {
    what: "tools in the order of their names",
    why: "a registry keeps them so: requests begin with the same bytes, in whatever order it was put together",
    same: (body) =>
      body.tools === undefined
        ? body
        : { ...body, tools: list(body.tools).map(object).toSorted((a, b) => nameOf(a) < nameOf(b) ? -1 : 1) }
  },
  {
    what: "what a client says between turns",
    why: "crewAI adds a reminder and others a next question; a loop of ours goes on with the results alone",
    same: (body) => ({
      ...body,
      messages: list(body.messages).map(object).filter(({ role, tool_calls }, at, all) =>
        at < list(first.messages).length ||
        !(role === "user" || (role === "assistant" && tool_calls === undefined && at === all.length - 1))
      )
    })
  },
  {
    what: "the name that a thought goes back by",
    why: "it goes back by the one that it came by; ruby_llm has one that is its own, or sends it by two",
    same: (body) =>
      eachMessage(body, ({ reasoning, reasoning_content, ...message }) => ({
        ...message,
        thought: reasoning_content ?? reasoning
      }))
  }
]

/** What is sent otherwise than recorded, beside what is different on purpose; nothing if it is the same. */
export const difference = (sent: Json, recorded: Json, rules = deliberate): string | undefined => {
  const [ours, theirs] = [sent, recorded].map((body) => rules.reduce((all, { same }) => same(all, recorded), body))
  return firstOf(canonical(ours), canonical(theirs), "")
}

const shown = (u: unknown): string => JSON.stringify(u)?.slice(0, 160) ?? "nothing"

const firstOf = (ours: unknown, theirs: unknown, path: string): string | undefined => {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return undefined
  const bothLists = Array.isArray(ours) && Array.isArray(theirs)
  const bothObjects = [ours, theirs].every((u) => typeof u === "object" && u !== null && !Array.isArray(u))
  if (bothLists || bothObjects) {
    const [one, other] = [ours as Json, theirs as Json]
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const found = firstOf(one[key], other[key], `${path}.${key}`)
      if (found !== undefined) return found
    }
  }
  return `${path.slice(1)} is ${shown(ours)}, recorded ${shown(theirs)}`
}
