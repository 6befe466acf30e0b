// Can a wrong request be told from a right one? Each rule of each API can fail, and what is different on purpose hides
// nothing else.
import { assert, describe, it } from "@effect/vitest"
import * as Alike from "../scripts/traffic/alike.ts"
import type { Api, Json } from "../scripts/traffic/data.ts"
import * as Requests from "../scripts/traffic/requests.ts"
import * as Rules from "../scripts/traffic/rules.ts"

const call = (id: unknown, name = "look", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args }
})
const result = (id: string, content: unknown = "seen") => ({ role: "tool", tool_call_id: id, content })
const user = { role: "user", content: "Look" }
const called = { role: "assistant", content: null, tool_calls: [call("a"), call("b")] }
const look = (name = "look", parameters: Json = { type: "object" }) => ({
  type: "function",
  function: { name, parameters }
})
const right: Json = {
  model: "m",
  messages: [{ role: "system", content: "Be short" }, user, called, result("a"), result("b"), user],
  tools: [look()]
}
const saying = (...messages: ReadonlyArray<unknown>): Json => ({ ...right, messages })

const breaks = (
  api: Api,
  cases: ReadonlyArray<readonly [what: string, body: Json, problems: ReadonlyArray<string>]>
) => {
  for (const [what, body, problems] of cases) {
    it(`${api}: ${what}`, () => assert.deepStrictEqual(Rules.problems(api, body), problems))
  }
}

describe("the rules of Chat Completions see", () => {
  breaks("openai-chat", [
    ["nothing in what is right", right, []],
    ["a call without a result", saying(user, called, result("a"), user), [
      "call b has no result before message 3 of user"
    ]],
    ["a call without a result at the end", saying(user, called, result("b")), ["call a has no result before the end"]],
    ["another role between a call and its result", saying(user, called, result("a"), user, result("b")), [
      "call b has no result before message 3 of user",
      "a result is of no call that waits for it: b"
    ]],
    ["an orphan", saying(user, result("a")), ["a result is of no call that waits for it: a"]],
    ["two results of one call", saying(user, called, result("a"), result("b"), result("a")), [
      "a result is of no call that waits for it: a"
    ]],
    ["an id twice", saying(user, called, result("a"), result("b"), called, result("a"), result("b")), [
      "two calls have the id a",
      "two calls have the id b"
    ]],
    ["a call without an id", saying(user, { ...called, tool_calls: [call(undefined)] }, result("")), [
      "a call has no id"
    ]],
    ["a name that no server takes", saying(user, { ...called, tool_calls: [call("a", "look up")] }, result("a")), [
      "a call's name is not taken: look up"
    ]],
    ["arguments that are no JSON", saying(user, { ...called, tool_calls: [call("a", "look", "{")] }, result("a")), [
      "arguments are no JSON object as text: a"
    ]],
    ["arguments that are no object", saying(user, { ...called, tool_calls: [call("a", "look", "[]")] }, result("a")), [
      "arguments are no JSON object as text: a"
    ]],
    ["a call of another type", saying(user, { ...called, tool_calls: [{ ...call("a"), type: "x" }] }, result("a")), [
      `a call is of type "x"`
    ]],
    ["a message that says nothing", saying(user, { role: "assistant", content: "" }), [
      "message 1 of assistant is empty"
    ]],
    ["an empty list of calls", saying(user, { role: "assistant", content: "Hm", tool_calls: [] }), [
      "message 1 has an empty list of calls"
    ]],
    ["a result that is no text", saying(user, { ...called, tool_calls: [call("a")] }, result("a", {})), [
      "a result is no text"
    ]],
    ["instructions that come later", saying(user, { role: "system", content: "Be short" }), [
      "the system's message is not the first"
    ]],
    ["a role that is none", saying({ role: "robot", content: "Beep" }), [`there is no role "robot"`]],
    ["a field that nobody knows", { ...saying({ ...user, mood: "good" }), top_k: 1 }, [
      "the body has the field top_k, which nobody knows",
      "a message of user has the field mood, which nobody knows"
    ]],
    ["no messages and no model", { messages: [] }, ["no model is named", "there is no message"]],
    ["stream_options without a stream", { ...right, stream_options: {} }, ["stream_options stands without a stream"]],
    ["a tool's name that is not taken", { ...right, tools: [look("")] }, [`a tool's name is not taken: ""`]],
    ["two tools of one name", { ...right, tools: [look(), look()] }, ["two tools have the name look"]],
    ["arguments that may be anything", { ...right, tools: [look("look", { type: "string" })] }, [
      "the arguments of look are no object"
    ]],
    ["a choice of no tool", { ...right, tool_choice: look("other") }, ["tool_choice names no tool: other"]],
    ["a choice without tools", { ...right, tools: [], tool_choice: "required" }, ["tool_choice stands without tools"]]
  ])
})

describe("the rules of the other APIs see", () => {
  const use = (id: string, input: unknown = {}) => ({ type: "tool_use", id, name: "look", input })
  const used = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "seen" })
  const claude = (...messages: ReadonlyArray<unknown>): Json => ({ max_tokens: 9, messages: [user, ...messages] })
  const asks = { role: "assistant", content: [use("a"), use("b")] }
  breaks("anthropic", [
    ["nothing in what is right", claude(asks, { role: "user", content: [used("a"), used("b")] }), []],
    ["a call without a result", claude(asks, { role: "user", content: [used("a")] }), [
      "call b has no result before the end of message 2"
    ]],
    ["a call without a result at the end", claude({ role: "assistant", content: [use("a")] }), [
      "call a has no result before the end"
    ]],
    [
      "a result after something else",
      claude(asks, {
        role: "user",
        content: [{ type: "text", text: "Here" }, used("a"), used("b")]
      }),
      ["message 2 has something before its results"]
    ],
    ["a result that the assistant gives", claude(asks, { role: "assistant", content: [used("a"), used("b")] }), [
      "a result is in a message of assistant"
    ]],
    ["an orphan", claude({ role: "user", content: [used("a")] }), ["a result is of no call that waits for it: a"]],
    ["a blank text and an empty message", claude({ role: "assistant", content: [] }, { role: "user", content: " " }), [
      "message 1 of assistant is empty",
      "message 2 of user has an empty text"
    ]],
    [
      "an input that is no object, and an id with a space",
      claude({ role: "assistant", content: [use("a b", "x")] }, {
        role: "user",
        content: [used("a b")]
      }),
      ["a call's id is not taken: a b", "the input of look is no object"]
    ],
    ["no limit, and another beginning", { messages: [{ role: "assistant", content: "Hi" }] }, [
      "max_tokens is not said",
      "the first message is not the user's"
    ]]
  ])
  const model = (...names: ReadonlyArray<string>) => ({
    role: "model",
    parts: names.map((name) => ({ functionCall: { name, args: {} } }))
  })
  const answer = (...names: ReadonlyArray<string>) => ({
    role: "user",
    parts: names.map((name) => ({ functionResponse: { name, response: {} } }))
  })
  const ask = { role: "user", parts: [{ text: "Look" }] }
  const google = (...contents: ReadonlyArray<unknown>): Json => ({ contents: [ask, ...contents] })
  breaks("gemini", [
    ["nothing in what is right", google(model("x", "y"), answer("x", "y")), []],
    ["results of other calls", google(model("x", "y"), answer("y", "x")), [
      `content 2 answers ["y","x"], called was ["x","y"]`
    ]],
    ["a result without a call", google(answer("x")), [`content 1 answers ["x"], called was []`]],
    ["a call without a result", google(model("x")), [`nothing answers ["x"]`]],
    ["a call that the user makes", google({ ...model("x"), role: "user" }, answer("x")), [
      "a call is in a content of user"
    ]],
    ["a result that the model gives", google(model("x"), { ...answer("x"), role: "model" }), [
      "a result is in a content of model"
    ]],
    ["an empty content", google({ role: "model", parts: [] }), ["content 1 of model is empty"]],
    ["a role that is none, and another beginning", { contents: [{ ...ask, role: "robot" }] }, [
      "the first content is not the user's",
      `there is no role "robot"`
    ]],
    ["a tool's name that begins with a digit", { ...google(), tools: [{ functionDeclarations: [{ name: "1x" }] }] }, [
      `a tool's name is not taken: "1x"`
    ]]
  ])
  const item = (call_id: string, args = "{}") => ({ type: "function_call", call_id, name: "look", arguments: args })
  const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "seen" })
  const input = (...items: ReadonlyArray<unknown>): Json => ({ model: "m", input: [user, ...items] })
  breaks("openai-responses", [
    ["nothing in what is right", input(item("a"), item("b"), output("a"), output("b"), user), []],
    ["a call without an output", input(item("a"), user), ["call a has no result before item 2 of user"]],
    ["an output before its call", input(output("a"), item("a")), [
      "a result is of no call that waits for it: a",
      "call a has no result before the end"
    ]],
    ["an id twice", input(item("a"), output("a"), item("a"), output("a")), ["two calls have the id a"]],
    ["arguments that are no JSON", input(item("a", "{"), output("a")), ["arguments are no JSON object as text: a"]],
    ["a message that says nothing", input({ role: "assistant", content: [] }), ["item 1 of assistant is empty"]],
    ["no model and no input", {}, ["no model is named", "there is no input"]]
  ])
})

describe("a request is compared with the recorded one", () => {
  const text = (content: unknown) => ({ ...right, messages: [{ role: "user", content }] })
  const assistant = (fields: Json) => saying(user, { role: "assistant", content: "Hm", ...fields }, user)
  const pairs: Readonly<Record<string, readonly [sent: Json, recorded: Json]>> = {
    "whitespace in the JSON text of arguments": [
      saying(user, { ...called, tool_calls: [call("a", "look", `{"x":1}`)] }),
      saying(user, { ...called, tool_calls: [call("a", "look", `{ "x": 1 }`)] })
    ],
    "content that says nothing, beside calls: null, an empty text or no field": [
      saying(user, called),
      saying(user, { ...called, content: "" })
    ],
    "a text as the only part of a list": [text("Look"), text([{ type: "text", text: "Look" }])],
    "fields that say what holds without them: no stream, the choice left to the model, no tools, nothing to stop at": [
      right,
      { ...right, stream: false, tool_choice: "auto", stop: [] }
    ],
    "an empty message of the assistant is left out": [
      saying(user, user),
      saying(user, { role: "assistant", content: "" }, user)
    ],
    "a stream is asked for its usage": [{ ...right, stream_options: { include_usage: true } }, right],
    "instructions as system, not as developer": [
      saying({ role: "system", content: "Be short" }),
      saying({ role: "developer", content: "Be short" })
    ],
    "the name of a tool beside its result": [saying(result("a")), saying({ ...result("a"), name: "look" })],
    "the name of who speaks": [saying(user), saying({ ...user, name: "Ann" })],
    "an empty thought beside calls, where nothing was thought": [
      saying({ ...called, reasoning_content: "" }),
      saying(called)
    ],
    "a tool that says it is not strict": [right, {
      ...right,
      tools: [{ type: "function", function: { ...look().function, strict: false } }]
    }],
    "the model's name, where it is recorded as a part of the address": [right, {
      messages: right.messages,
      tools: right.tools
    }],
    "max_completion_tokens for max_tokens": [{ ...right, max_completion_tokens: 9 }, { ...right, max_tokens: 9 }],
    "temperature and stop are not sent to models of OpenAI that reason": [{ ...right, model: "gpt-5-nano" }, {
      ...right,
      model: "gpt-5-nano",
      temperature: 1
    }],
    "tools in the order of their names": [{ ...right, tools: [look("a"), look("b")] }, {
      ...right,
      tools: [look("b"), look("a")]
    }],
    "what a client says between turns": [saying(user, called, result("a")), saying(user, called, result("a"), user)],
    "the name that a thought goes back by": [assistant({ reasoning: "So" }), assistant({ reasoning_content: "So" })]
  }
  const differences = Alike.inLoop({ messages: [user] })

  for (const one of differences) {
    it(`${one.what} makes no difference, and nothing else hides it`, () => {
      const [sent, recorded] = pairs[one.what]!
      assert.isUndefined(Alike.difference(sent, recorded, differences))
      assert.isDefined(Alike.difference(sent, recorded, differences.filter((other) => other !== one)))
    })
  }

  it("what it says, calls, answers, offers or asks for is seen when it is different", () => {
    const others: ReadonlyArray<readonly [Json, string]> = [
      [{ ...right, model: "n" }, `model is "n", recorded "m"`],
      [saying(user, called, result("b"), result("a")), `messages.0.content is "Look", recorded "Be short"`],
      [{ ...right, tools: [look("other")] }, `tools.0.function.name is "other", recorded "look"`],
      [
        { ...right, tools: [look("look", { type: "object", required: ["x"] })] },
        `tools.0.function.parameters.required is ["x"], recorded nothing`
      ],
      [{ ...right, tool_choice: "required" }, `tool_choice is "required", recorded nothing`],
      [{ ...right, temperature: 1 }, `temperature is 1, recorded nothing`]
    ]
    for (const [sent, difference] of others) assert.strictEqual(Alike.difference(sent, right), difference)
    const of = (tool_calls: ReadonlyArray<Json>, content = "seen") =>
      saying(user, { ...called, tool_calls }, result("a", content))
    const before = of([call("a", "look", `{"x":1}`)])
    assert.deepStrictEqual(
      [
        of([call("b", "look", `{"x":1}`)]),
        of([call("a", "see", `{"x":1}`)]),
        of([call("a", "look", `{"x":"1"}`)]),
        of([call("a", "look", `{"x":1}`)], "not seen"),
        of([call("a", "look", `{"x":1}`), call("b")])
      ].map((sent) => Alike.difference(sent, before)),
      [
        `messages.1.tool_calls.0.id is "b", recorded "a"`,
        `messages.1.tool_calls.0.function.name is "see", recorded "look"`,
        `messages.1.tool_calls.0.function.arguments.x is "1", recorded 1`,
        `messages.2.content is "not seen", recorded "seen"`,
        `messages.1.tool_calls.1 is {"function":{"arguments":{},"name":"look"},"id":"b","type":"function"}, recorded nothing`
      ]
    )
  })

  it("a rule that the recording breaks, too, was taken; and what was not sent is a miss", () => {
    const recorded = {
      api: "openai-chat",
      file: "f",
      host: "",
      model: "m",
      status: 200,
      streamed: false,
      request: saying(user, result("a")),
      headers: {}
    } as const
    const sent = (body: Json | string | undefined) => ({ body, recorded, differences: Alike.deliberate })
    assert.deepStrictEqual(
      [saying(user, result("a")), saying(user, result("b")), "TransportError", undefined].map((body) => [
        Requests.broken(sent(body)),
        Requests.difference(sent(body))
      ]),
      [
        [undefined, undefined],
        ["a result is of no call that waits for it: b", `messages.1.tool_call_id is "b", recorded "a"`],
        ["TransportError", "TransportError"],
        ["nothing was sent", "nothing was sent"]
      ]
    )
  })
})
