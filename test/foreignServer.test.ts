// Does our client understand a server that somebody else wrote? Loops against a mock of Chat Completions that is no part
// of this house, plain and streamed: they end as they must, and what the server was sent is what it expects.
import { LLMock } from "@copilotkit/aimock"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { brief, faults, quiet } from "./utils.ts"

const weather = Tool.make("weather", {
  input: { city: Schema.String },
  output: Schema.Struct({ city: Schema.String, degrees: Schema.Int }),
  handler: ({ city }) => Effect.succeed({ city, degrees: city.length })
})

const server = (script: (mock: LLMock) => void) =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const mock = new LLMock({ port: 0 })
      script(mock)
      return mock.start().then(() => mock)
    }),
    (mock) => Effect.promise(() => mock.stop())
  )

interface Asked {
  readonly streamed: boolean
  /** How often a failed request is made again. */
  readonly times?: number
}

/** Runs an agent against the server: how it ended, what was shown of it, and how many requests came. */
const converse = (mock: LLMock, { streamed, times }: Asked) =>
  Effect.gen(function*() {
    const shown: Array<string> = []
    const onText = streamed ? { onText: (delta: string) => void shown.push(delta) } : {}
    const model = OpenAiCompatible.layer({ model: "gpt-4o", baseUrl: `${mock.url}/v1`, apiKey: "mock" }).pipe(
      Layer.provide(FetchHttpClient.layer)
    )
    const ended = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "How warm is it?", ...onText }).pipe(
      Effect.provide(Layer.orDie(ToolRegistry.layer(weather))),
      Effect.provide(times === undefined ? model : Provider.retry({ times, cap: "1 millis" })(model)),
      Effect.provide(quiet),
      Effect.result
    )
    return { ended, shown, requests: mock.getRequests().length }
  })

/** What a run that could not go on ended with: the kind of error, and the transcript until then. */
const failure = ({ ended }: Effect.Success<ReturnType<typeof converse>>) => {
  if (ended._tag === "Success") throw assert.fail(`ended as ${ended.success._tag}`)
  const { partial, reason } = ended.failure
  assert.deepStrictEqual(faults(partial.messages), [])
  return [reason.reason._tag, brief(partial.messages)]
}

const success = ({ ended }: Effect.Success<ReturnType<typeof converse>>) => {
  if (ended._tag === "Failure") throw ended.failure
  assert.deepStrictEqual(faults(ended.success.messages), [])
  return ended.success
}

const call = (city: string, id: string) => ({ name: "weather", arguments: JSON.stringify({ city }), id })
const before = { hasToolResult: false, endpoint: "chat" } as const
const after = { hasToolResult: true, endpoint: "chat" } as const
const twoTurns = (mock: LLMock) =>
  mock.on(before, { toolCalls: [call("Oslo", "call_a")] }).on(after, { content: "Four degrees." })
const asked = "user: How warm is it?"

for (const streamed of [false, true]) {
  describe(streamed ? "streamed" : "plain", () => {
    it.live("a loop of two turns ends with the answer, and the server saw call and result", () =>
      Effect.gen(function*() {
        const mock = yield* server(twoTurns)
        const run = yield* converse(mock, { streamed })
        const result = success(run)
        assert.deepStrictEqual(brief(result.messages), [
          asked,
          'assistant: weather#call_a({"city":"Oslo"})',
          'tool: #call_a={"city":"Oslo","degrees":4}',
          "assistant: Four degrees."
        ])
        assert.deepStrictEqual([result._tag, run.shown.join("")], ["Completed", streamed ? "Four degrees." : ""])
        const { messages = [], stream = false }: any = mock.getLastRequest()?.body ?? {}
        assert.deepStrictEqual([stream, messages.slice(1)], [streamed, [
          {
            role: "assistant",
            content: null,
            tool_calls: [{
              id: "call_a",
              type: "function",
              function: { name: "weather", arguments: '{"city":"Oslo"}' }
            }]
          },
          { role: "tool", tool_call_id: "call_a", content: '{"city":"Oslo","degrees":4}' }
        ]])
      }))

    it.live("parallel calls with text before them are answered each, in the order of the calls", () =>
      Effect.gen(function*() {
        const mock = yield* server((mock) =>
          mock.on(before, { content: "Let me see.", toolCalls: [call("Oslo", "call_a"), call("Rome!", "call_b")] })
            .on(after, { content: "Done." })
        )
        assert.deepStrictEqual(brief(success(yield* converse(mock, { streamed })).messages), [
          asked,
          'assistant: Let me see. weather#call_a({"city":"Oslo"}) weather#call_b({"city":"Rome!"})',
          'tool: #call_a={"city":"Oslo","degrees":4} #call_b={"city":"Rome!","degrees":5}',
          "assistant: Done."
        ])
      }))

    it.live("usage and the model are those that the server says", () =>
      Effect.gen(function*() {
        const usage = { prompt_tokens: 20, completion_tokens: 5 }
        const mock = yield* server((mock) => mock.on({}, { content: "Warm.", model: "gpt-4o-2026", usage }))
        const { turns, usage: spent } = success(yield* converse(mock, { streamed }))
        assert.deepStrictEqual([spent.inputTokens, spent.outputTokens, spent.calls], [20, 5, 1])
        assert.strictEqual(turns[0]?.usage.model, "gpt-4o-2026")
      }))

    it.live("a rate limit that passes is waited for and asked again", () =>
      Effect.gen(function*() {
        const mock = yield* server((mock) => twoTurns(mock).nextRequestError(429, { message: "slow down" }))
        const run = yield* converse(mock, { streamed, times: 2 })
        assert.deepStrictEqual([success(run).text, run.requests], ["Four degrees.", 3])
      }))

    it.live("a rate limit that nobody waits for says how long to wait", () =>
      Effect.gen(function*() {
        const error = { message: "slow down", code: "rate_limit_exceeded" }
        const mock = yield* server((mock) => mock.on({}, { status: 429, retryAfter: 7, error }))
        const run = yield* converse(mock, { streamed })
        assert.deepStrictEqual([...failure(run), run.requests], ["RateLimitError", [asked], 1])
        const reason = run.ended._tag === "Failure" ? run.ended.failure.reason.reason : undefined
        assert.deepStrictEqual(
          reason?._tag === "RateLimitError" && reason.retryAfter && Duration.toMillis(reason.retryAfter),
          7_000
        )
      }))

    it.live("a server that is down twice is asked a third time, and one that stays down is given up", () =>
      Effect.gen(function*() {
        const down = (mock: LLMock) => mock.nextRequestError(500, { message: "down" })
        const passing = yield* server((mock) => down(down(twoTurns(mock))))
        const run = yield* converse(passing, { streamed, times: 2 })
        assert.deepStrictEqual([success(run).text, run.requests], ["Four degrees.", 4])
        const staying = yield* server((mock) => mock.on({}, { status: 503, error: { message: "down" } }))
        const lost = yield* converse(staying, { streamed, times: 2 })
        assert.deepStrictEqual([...failure(lost), lost.requests], ["InternalProviderError", [asked], 3])
      }))

    it.live("a server that goes down between the turns leaves a transcript in which the call is answered", () =>
      Effect.gen(function*() {
        const mock = yield* server((mock) =>
          mock.on(before, { toolCalls: [call("Oslo", "call_a")] }).on(after, {
            status: 500,
            error: { message: "down" }
          })
        )
        assert.deepStrictEqual(failure(yield* converse(mock, { streamed })), ["InternalProviderError", [
          asked,
          'assistant: weather#call_a({"city":"Oslo"})',
          'tool: #call_a={"city":"Oslo","degrees":4}'
        ]])
      }))

    it.live("an answer that is not JSON is an invalid response, and is not asked for again", () =>
      Effect.gen(function*() {
        const mock = yield* server((mock) => mock.on({}, { content: "hi" }, { chaos: { malformedRate: 1 } }))
        const run = yield* converse(mock, { streamed, times: 2 })
        assert.deepStrictEqual([...failure(run), run.requests], ["InvalidResponseError", [asked], 1])
      }))

    it.live("a connection that breaks before the answer is one of the network, and is tried again", () =>
      Effect.gen(function*() {
        const mock = yield* server((mock) => mock.on({}, { content: "hi" }, { chaos: { disconnectRate: 1 } }))
        const run = yield* converse(mock, { streamed, times: 1 })
        assert.deepStrictEqual([...failure(run), run.requests], ["NetworkError", [asked], 2])
      }))
  })
}

describe("a stream that is cut", () => {
  const cut = (response: Parameters<LLMock["on"]>[1]) =>
    server((mock) => mock.on({}, response, { chunkSize: 4, truncateAfterChunks: 4, latency: 5 }))

  it.live("RET-05 after text was shown is one of the network, and is not asked for again", () =>
    Effect.gen(function*() {
      const mock = yield* cut({ content: "It is four degrees." })
      const run = yield* converse(mock, { streamed: true, times: 2 })
      assert.deepStrictEqual([failure(run)[0], run.requests], ["NetworkError", 1])
      assert.isTrue("It is four degrees.".startsWith(run.shown.join("")) && run.shown.length > 0, run.shown.join())
    }))

  it.live("within a call runs nothing of it, and is asked for again, since nothing was shown", () =>
    Effect.gen(function*() {
      const mock = yield* cut({ toolCalls: [call("Oslo and the rest of Norway", "call_a")] })
      const run = yield* converse(mock, { streamed: true, times: 1 })
      assert.deepStrictEqual([...failure(run), run.requests], ["NetworkError", [asked], 2])
    }))
})
