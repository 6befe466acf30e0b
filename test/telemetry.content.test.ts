import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Telemetry from "toolfold/telemetry/Telemetry"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Content from "../src/telemetry/internal/content.ts"
import * as Hiding from "../src/telemetry/internal/hiding.ts"
import { allOf, attributesOf, recorder } from "./telemetryTools.ts"
import { logged } from "./utils.ts"

const { call } = ScriptedModel

const login = Tool.make("login", {
  description: "Signs somebody in",
  input: { email: Schema.String, password: Schema.String },
  failure: Schema.Struct({ why: Schema.String }),
  handler: ({ email, password }) =>
    email === "" ? Effect.fail({ why: `no account for ${password}` }) : Effect.succeed(`AWS_SECRET=abc for ${email}`)
})

interface Asked {
  readonly script: ReadonlyArray<ScriptedModel.Turn>
  readonly options?: Telemetry.Options
  readonly tools?: Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>
  readonly agent?: AgentLoop.Options
  readonly prompt?: string
  readonly model?: typeof ScriptedModel.layer
}

/** What somebody who watches sees of a run: its spans, and everything that spans and logs say as one text. */
const seen = (
  {
    agent,
    model = ScriptedModel.layer,
    options,
    prompt = "Sign in user@example.com",
    script,
    tools = ToolRegistry.layer(login)
  }: Asked
) =>
  Effect.gen(function*() {
    const { spans, traced } = recorder()
    const log = logged()
    const lines: Array<string> = []
    const tracing = Logger.layer([
      Logger.tracerLogger,
      Logger.map(Logger.formatStructured, (line) => {
        lines.push(JSON.stringify(line))
      })
    ])
    const exit = yield* AgentLoop.run(AgentLoop.make("bot", agent), { prompt }).pipe(
      Effect.provide(tools),
      Effect.provide(model(...script)),
      Effect.provide(Telemetry.layer(options)),
      Effect.provide(tracing),
      traced,
      Effect.exit
    )
    return { exit, spans, log, all: `${allOf(spans)}\n${lines.join("\n")}` }
  })

const secrets = ["user@example.com", "p4ss", "AWS_SECRET", "sk-test-123", "You are", "Signed"]
const found = (all: string) => secrets.filter((secret) => all.includes(secret))

const signIn: Asked = {
  agent: { instructions: "You are kind" },
  script: [[call("login", { email: "user@example.com", password: "p4ss" })], "Signed in"]
}
const chatOf = (spans: ReadonlyArray<any>, at: number) => attributesOf(spans, "chat")[at] ?? {}

describe("content", () => {
  it.effect("TEL-02: is in no span and no log by default", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(found((yield* seen(signIn)).all), [])
      assert.deepStrictEqual(found((yield* seen({ ...signIn, model: ScriptedModel.layerPlain })).all), [])
    }))

  it.effect("TEL-02: nor what failures, defects and the errors of providers say", () =>
    Effect.gen(function*() {
      const failing = yield* seen({
        ...signIn,
        script: [
          [call("login", { email: "", password: "p4ss" }), call("login", { mail: "p4ss" }), call("p4ss", {})],
          "Sorry"
        ]
      })
      assert.deepStrictEqual(found(failing.all), [])

      class Refused extends Error {
        override readonly name = "Refused"
      }
      const error = new Refused("p4ss\n    at p4ss (p4ss.ts:1:1)", { cause: new Error("p4ss") })
      const dying = Tool.make("dying", {
        handler: () => Effect.withSpan(Effect.andThen(Effect.logWarning("oh", error), Effect.die(error)), "inner")
      })
      const died = yield* seen({ ...signIn, tools: ToolRegistry.layer(dying), script: [[call("dying")], "Sorry"] })
      assert.deepStrictEqual(found(died.all), [])
      // What went wrong and where is there all the same.
      assert.match(died.all, /Refused: \(not recorded\)\\n\s+at .*telemetry\.content\.test\.ts/)

      const fails = AiError.make({
        module: "Test",
        method: "ask",
        reason: new AiError.AuthenticationError({ kind: "InvalidKey", description: "401: bad key sk-test-123" })
      } as any)
      const refused = yield* seen({ ...signIn, script: [{ fails }] })
      assert.deepStrictEqual(found(refused.all), [])
      assert.strictEqual(chatOf(refused.spans, 0)["error.type"], "AuthenticationError")
      const foreign = yield* seen({ ...signIn, script: [{ fails }], model: ScriptedModel.layerPlain })
      assert.deepStrictEqual(found(foreign.all), [])
    }))

  it.effect("of inputs is recorded where it is asked for, and not that of outputs", () =>
    Effect.gen(function*() {
      const { all, spans } = yield* seen({ ...signIn, options: { inputs: true } })
      const user = { role: "user", parts: [{ type: "text", content: "Sign in user@example.com" }] }
      const input = { email: "user@example.com", password: "p4ss" }
      const instructions = [{ type: "text", content: "You are kind" }]
      const content = (attributes: object) =>
        Object.fromEntries(
          Object.entries(attributes).filter(([name]) =>
            /messages|instructions|arguments|result$/.test(name) && name.startsWith("gen_ai")
          )
            .map(([name, value]) => [name, JSON.parse(value)])
        )
      assert.deepStrictEqual(content(attributesOf(spans, "invoke_agent bot")[0]!), {
        "gen_ai.system_instructions": instructions,
        "gen_ai.input.messages": [user]
      })
      assert.deepStrictEqual(content(attributesOf(spans, "execute_tool login")[0]!), {
        "gen_ai.tool.call.arguments": input
      })
      assert.deepStrictEqual(content(chatOf(spans, 1)), {
        "gen_ai.system_instructions": instructions,
        "gen_ai.input.messages": [
          user,
          { role: "assistant", parts: [{ type: "tool_call", id: "call_1", name: "login", arguments: input }] },
          {
            role: "tool",
            parts: [{ type: "tool_call_response", id: "call_1", response: "AWS_SECRET=abc for user@example.com" }]
          }
        ]
      })
      assert.isFalse(all.includes("Signed"))
    }))

  it.effect("of outputs is recorded where it is asked for, and not that of inputs", () =>
    Effect.gen(function*() {
      const { all, spans } = yield* seen({
        ...signIn,
        options: { outputs: true },
        script: [[
          call("login", { email: "user@example.com", password: "x" }, "c1"),
          call("login", { email: "", password: "y" }, "c2")
        ], "Signed in"]
      })
      const answer = JSON.stringify([{
        role: "assistant",
        parts: [{ type: "text", content: "Signed in" }],
        finish_reason: "stop"
      }])
      assert.strictEqual(attributesOf(spans, "invoke_agent bot")[0]!["gen_ai.output.messages"], answer)
      assert.strictEqual(chatOf(spans, 1)["gen_ai.output.messages"], answer)
      assert.deepStrictEqual(
        JSON.parse(String(chatOf(spans, 0)["gen_ai.output.messages"]))[0].finish_reason,
        "tool_call"
      )
      const [first, second] = attributesOf(spans, "execute_tool login")
      assert.strictEqual(first!["gen_ai.tool.call.result"], '"AWS_SECRET=abc for user@example.com"')
      assert.strictEqual(second!["gen_ai.tool.call.result"], undefined)
      assert.include(all, "no account for y")
      assert.deepStrictEqual(found(all), ["user@example.com", "AWS_SECRET", "Signed"])
    }))

  it.effect("TEL-02: passes the application's redaction, errors too, and is not recorded where that fails", () =>
    Effect.gen(function*() {
      const places = new Set<string>()
      const both = {
        ...signIn,
        script: [[
          call("login", { email: "user@example.com", password: "p4ss" }),
          call("login", { email: "", password: "p4ss" })
        ], "Signed in"]
      }
      const options = { inputs: true, outputs: true }
      const { all } = yield* seen({
        ...both,
        options: {
          ...options,
          redact: (text, where) => {
            places.add(where)
            return text.replaceAll(/user@example\.com|p4ss|AWS_SECRET|You are|Signed/g, "***")
          }
        }
      })
      assert.deepStrictEqual(found(all), [])
      assert.include(all, "no account for ***")
      assert.deepStrictEqual([...places].toSorted(), [
        "answer",
        "arguments",
        "error",
        "instructions",
        "messages",
        "prompt",
        "result"
      ])
      const failing = yield* seen({
        ...both,
        options: {
          ...options,
          redact: () => {
            throw new Error("p4ss")
          }
        }
      })
      assert.deepStrictEqual([found(failing.all), failing.exit._tag], [[], "Success"])
    }))
})

describe("what a schema hides", () => {
  const Account = Schema.Struct({
    user: Schema.String,
    key: Schema.RedactedFromValue(Schema.String),
    pin: Schema.String.pipe(Telemetry.hidden)
  })
  const account = { user: "ada", key: "sk-test-123", pin: "p4ss" }
  const shut = { user: "ada", key: "<redacted>", pin: "<redacted>" }

  it.effect("TEL-02: is never recorded: not of arguments, results, answers, nor of what is said of it elsewhere", () =>
    Effect.gen(function*() {
      const open = Tool.make("open", {
        input: Account.fields,
        output: Account,
        failure: Schema.Struct({ why: Schema.String }),
        handler: (given) =>
          given.user === "ada" ? Effect.succeed(given) : Effect.fail({ why: `pin ${given.pin} is wrong` })
      })
      const { all, spans } = yield* seen({
        tools: ToolRegistry.layer(open),
        options: { inputs: true, outputs: true },
        agent: { output: Account },
        prompt: "Open",
        script: [
          [call("open", account), call("open", { ...account, user: "bob" })],
          JSON.stringify(account)
        ]
      })
      assert.deepStrictEqual(found(all), [])
      const [first, second] = attributesOf(spans, "execute_tool open")
      assert.deepStrictEqual(JSON.parse(String(first!["gen_ai.tool.call.arguments"])), shut)
      assert.deepStrictEqual(JSON.parse(String(first!["gen_ai.tool.call.result"])), shut)
      assert.strictEqual(second!["error.type"], "failure")
      assert.include(all, "pin <redacted> is wrong")
      assert.include(String(chatOf(spans, 1)["gen_ai.input.messages"]), '"user":"bob"')
      const answer = JSON.parse(String(attributesOf(spans, "invoke_agent bot")[0]!["gen_ai.output.messages"]))
      assert.deepStrictEqual(JSON.parse(answer[0].parts[0].content), shut)
    }))

  it.effect("is hidden where the arguments are not what the schema says", () =>
    Effect.gen(function*() {
      const open = Tool.make("open", { input: Account.fields, handler: () => Effect.succeed("open") })
      for (const params of ['{"pin": "p4ss', { PIN: "p4ss" }, { pin: { value: "p4ss" } }, '"p4ss"', ["p4ss"]]) {
        const { all } = yield* seen({
          tools: ToolRegistry.layer(open),
          options: { inputs: true, outputs: true },
          prompt: "Open",
          script: [[call("open", params)], "Sorry"]
        })
        assert.deepStrictEqual(found(all), [], JSON.stringify(params))
      }
    }))

  it("is found below lists, records, unions, circles and classes, and leaves everything else", () => {
    interface Node {
      readonly pin: string
      readonly below: ReadonlyArray<Node>
    }
    const Pin = Schema.String.pipe(Telemetry.hidden)
    const Circle = Schema.Struct({
      below: Schema.Array(Schema.suspend((): Schema.Codec<Node> => Circle as Schema.Codec<Node>)),
      pin: Pin
    })
    class Card extends Schema.Class<Card>("Card")({ pin: Pin }) {}
    const shown = (schema: Schema.Constraint, value: unknown) => Hiding.hide(schema, value, new Set())
    const H = Hiding.Placeholder
    assert.deepStrictEqual(shown(Circle, { pin: "1", below: [{ pin: "2", below: [{ pin: "3", below: [] }] }] }), {
      pin: H,
      below: [{ pin: H, below: [{ pin: H, below: [] }] }]
    })
    assert.deepStrictEqual(shown(Schema.Record(Schema.String, Pin), { a: "1", b: "2" }), { a: H, b: H })
    assert.deepStrictEqual(shown(Schema.Tuple([Schema.String, Pin]), ["1", "2"]), ["1", H])
    assert.deepStrictEqual(
      shown(Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ a: Schema.String, pin: Pin })]), {
        a: "1",
        pin: "2"
      }),
      { a: "1", pin: H }
    )
    assert.deepStrictEqual(shown(Schema.Struct({ pin: Schema.optionalKey(Pin) }), { pin: "1" }), { pin: H })
    assert.deepStrictEqual(shown(Schema.Struct({ pin: Pin.check(Schema.isMaxCodePoints(9)) }), { pin: "1" }), {
      pin: H
    })
    assert.deepStrictEqual(shown(Card, { pin: "1" }), H)
    assert.deepStrictEqual(shown(Schema.Option(Pin), { _tag: "Some", value: "1" }), H)
    assert.deepStrictEqual(shown(Schema.Struct({ a: Schema.String }), { a: "1", b: [2] }), { a: "1", b: [2] })
    assert.deepStrictEqual(shown(Schema.Unknown, { pin: "1" }), { pin: "1" })
  })

  it("does not change what a model is told of a tool", () => {
    const advertised = (pin: Schema.Codec<string>) =>
      Tool.schema(Tool.make("open", { input: { pin }, handler: () => Effect.succeed("") }))
    assert.deepStrictEqual(advertised(Schema.String.pipe(Telemetry.hidden)), advertised(Schema.String))
  })
})

describe("the size of content", () => {
  it("is bounded in bytes, and never cuts a character", () => {
    const bytes = (text: string) => new TextEncoder().encode(text).length
    for (const text of ["a".repeat(100), "é".repeat(60), "漢".repeat(40), "😀".repeat(30)]) {
      for (let most = 64; most < 80; most++) {
        const cut = Content.cut(text, most)
        assert.isAtMost(bytes(cut), most)
        assert.isAbove(bytes(cut), most - 8)
        assert.isTrue(cut.isWellFormed() && cut.endsWith("…") && text.startsWith(cut.slice(0, -1)))
      }
    }
    assert.strictEqual(Content.cut("a".repeat(64), 64), "a".repeat(64))
  })

  it.effect("keeps the last messages whole, in order", () =>
    Effect.gen(function*() {
      const echo = Tool.make("echo", { input: { text: Schema.String }, handler: ({ text }) => Effect.succeed(text) })
      const { spans } = yield* seen({
        tools: ToolRegistry.layer(echo),
        options: { inputs: true, maxContentSize: 300 },
        prompt: "p".repeat(1000),
        script: [[call("echo", { text: "one" })], [call("echo", { text: "two" })], "Done"]
      })
      const sizes = spans.flatMap(({ attributes }) => String(attributes.get("gen_ai.input.messages") ?? "").length)
      assert.isTrue(sizes.every((size) => size <= 300))
      const last = JSON.parse(String(chatOf(spans, 2)["gen_ai.input.messages"]))
      assert.deepStrictEqual(last.map(({ role }: { role: string }) => role), ["tool", "assistant", "tool"])
      assert.deepStrictEqual(last[2].parts[0].response, "two")
    }))
})
