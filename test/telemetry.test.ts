import { assert, describe, it } from "@effect/vitest"
import * as Conventions from "@opentelemetry/semantic-conventions"
import * as Incubating from "@opentelemetry/semantic-conventions/incubating"
import * as AiError from "effect/ai/AiError"
import * as Model from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Memory from "toolfold/Memory"
import * as InMemory from "toolfold/memory/InMemory"
import * as Pause from "toolfold/Pause"
import * as Provider from "toolfold/Provider"
import * as Telemetry from "toolfold/telemetry/Telemetry"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Names from "../src/telemetry/internal/names.ts"
import { attributesOf, recorder, tree } from "./telemetryTools.ts"
import { quiet } from "./utils.ts"

const getWeather = Tool.make("get_weather", {
  description: "Current weather for a city",
  input: { city: Schema.String },
  failure: Schema.Struct({ why: Schema.String }),
  handler: ({ city }) => city === "Atlantis" ? Effect.fail({ why: "it sank" }) : Effect.succeed(`sunny in ${city}`)
})

const { call } = ScriptedModel
const bot = AgentLoop.make("bot")

type Tools = Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>

/** Runs an agent with these tools, this script and this telemetry. */
const run = (
  script: ReadonlyArray<ScriptedModel.Turn>,
  options: Telemetry.Options = {},
  tools: Tools = ToolRegistry.layer(getWeather),
  agent: typeof bot = bot
) =>
  AgentLoop.run(agent, { prompt: "Weather?" }).pipe(
    Effect.provide(tools),
    Effect.provide(ScriptedModel.layer(...script)),
    Effect.provide(Telemetry.layer(options)),
    Effect.provide(quiet)
  )

const busy = (description: string) =>
  AiError.make({ module: "Test", method: "ask", reason: new AiError.InternalProviderError({ description }) })

describe("the names", () => {
  it("are those of the conventions", () => {
    const theirs = new Set(Object.values<unknown>({ ...Conventions }).concat(Object.values<unknown>({ ...Incubating })))
    const ours = [
      ...Object.values(Names.operation),
      ...Object.values(Names.attribute),
      ...Object.values(Names.metric).map(({ name }) => name),
      Names.errorType.other
    ]
    assert.deepStrictEqual(ours.filter((name) => !theirs.has(name)), [])
  })

  it("that are not begin with ours", () => {
    assert.deepStrictEqual(Object.values(Names.own).filter((name) => !name.startsWith("toolfold.")), [])
  })
})

describe("the spans of a run", () => {
  it.effect("are its requests and calls below it, with what the conventions say of each", () =>
    Effect.gen(function*() {
      const { ends, spans, traced } = recorder()
      const named = Model.make(
        "openai",
        "gpt-x",
        ScriptedModel.layer([call("get_weather", { city: "Oslo" }, "c1")], "It is sunny.")
      )
      const agent = AgentLoop.make("bot", {
        settings: { temperature: 0.5, maxTokens: 100, seed: 7, stop: ["END"], topP: 0.9 }
      })
      const result = yield* traced(
        AgentLoop.run(agent, { prompt: "Weather?" }).pipe(
          Effect.provide(ToolRegistry.layer(getWeather)),
          Effect.provide(named),
          Effect.provide(Telemetry.layer()),
          Effect.provideService(Telemetry.Conversation, "thread-1")
        )
      )
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: ok",
        "  chat gpt-x: ok",
        "  execute_tool get_weather: ok",
        "  chat gpt-x: ok"
      ])
      assert.deepStrictEqual(ends(), [1, 1, 1, 1])
      assert.deepStrictEqual(spans.map(({ kind }) => kind), ["internal", "client", "internal", "client"])
      const common = {
        "gen_ai.agent.name": "bot",
        "gen_ai.conversation.id": "thread-1",
        "toolfold.run.id": result.runId
      }
      const { usage } = result
      assert.deepStrictEqual(attributesOf(spans, "invoke_agent bot"), [{
        ...common,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": usage.inputTokens,
        "gen_ai.usage.output_tokens": usage.outputTokens,
        "toolfold.result": "Completed"
      }])
      const request = {
        ...common,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.seed": 7,
        "gen_ai.request.stop_sequences": ["END"]
      }
      const spent = (turn: number) => ({
        "gen_ai.usage.input_tokens": result.turns[turn]?.usage.inputTokens,
        "gen_ai.usage.output_tokens": result.turns[turn]?.usage.outputTokens
      })
      const chats = attributesOf(spans, "chat gpt-x")
      assert.deepInclude(chats[0], {
        ...request,
        ...spent(0),
        "toolfold.turn": 0,
        "gen_ai.response.finish_reasons": ["tool_call"]
      })
      assert.deepInclude(chats[1], {
        ...request,
        ...spent(1),
        "toolfold.turn": 1,
        "gen_ai.response.finish_reasons": ["stop"]
      })
      assert.deepStrictEqual(attributesOf(spans, "execute_tool get_weather"), [{
        ...common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Current weather for a city",
        "toolfold.turn": 0,
        "toolfold.outcome": "Success"
      }])
    }))

  it.effect("say what a provider reports of tokens and of the model that answered", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      const model = Provider.layer({
        ask: () =>
          Effect.succeed({
            content: [Prompt.textPart({ text: "Hello" })],
            finish: "stop",
            usage: {
              inputTokens: { total: 100, uncached: 60, cacheRead: 30, cacheWrite: 10 },
              outputTokens: { total: 50, text: 30, reasoning: 20 }
            },
            model: "gpt-x-0301"
          })
      })
      yield* AgentLoop.run(bot, { prompt: "Hello" }).pipe(
        Effect.provide([ToolRegistry.layer(), model, Telemetry.layer()]),
        traced
      )
      const [chat = {}] = attributesOf(spans, "chat")
      const said = Object.entries(chat).filter(([name]) => /^gen_ai\.(usage|response)/.test(name))
      assert.deepStrictEqual(Object.fromEntries(said), {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 20,
        "gen_ai.response.model": "gpt-x-0301",
        "gen_ai.response.finish_reasons": ["stop"]
      })
    }))

  it.effect("call a model of one turn by its own name or by none, and say what is streamed and of a form", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      const models = [
        Model.make("anthropic", "claude-x", ScriptedModel.layer([call("get_weather", { city: "Oslo" })])),
        ScriptedModel.layer('{"city":"Oslo"}')
      ]
      const agent = AgentLoop.make("bot", {
        output: Schema.Struct({ city: Schema.String }),
        prepare: ({ turn }) => Effect.succeed({ model: models[turn] })
      })
      yield* Stream.runDrain(AgentLoop.stream(agent, { prompt: "Weather?" })).pipe(
        Effect.provide(ToolRegistry.layer(getWeather)),
        Effect.provide(Model.make("openai", "gpt-x", ScriptedModel.layer())),
        Effect.provide(Telemetry.layer()),
        traced
      )
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: ok",
        "  chat claude-x: ok",
        "  execute_tool get_weather: ok",
        "  chat: ok"
      ])
      const said = ["gen_ai.provider.name", "gen_ai.request.model", "gen_ai.request.stream", "gen_ai.output.type"]
      assert.deepStrictEqual(
        spans.filter(({ kind }) => kind === "client").map(({ attributes }) => said.map((name) => attributes.get(name))),
        [["anthropic", "claude-x", true, "json"], [undefined, undefined, true, "json"]]
      )
    }))

  it.effect("are below the span around the run, and those of an agent within a call below that call", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      const researcher = AgentLoop.make("researcher", { model: ScriptedModel.layer("Oslo is large") })
      const research = AgentLoop.asTool(researcher, { description: "Finds things out" })
      yield* AgentLoop.run(AgentLoop.make("writer"), { prompt: "Write" }).pipe(
        Effect.provide(ToolRegistry.layer(research).pipe(Layer.provide(ToolRegistry.layer()))),
        Effect.provide(ScriptedModel.layer([call("researcher", { prompt: "How large?" })], "Large.")),
        Effect.provide(Telemetry.layer()),
        Effect.withSpan("request"),
        traced
      )
      assert.deepStrictEqual(tree(spans), [
        "request: ok",
        "  invoke_agent writer: ok",
        "    chat: ok",
        "    execute_tool researcher: ok",
        "      invoke_agent researcher: ok",
        "        chat: ok",
        "    chat: ok"
      ])
    }))

  it.effect("carry the id of the thread that the run rests in", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      yield* AgentLoop.run(bot, { prompt: "Hello", memory: Memory.thread("support/42") }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(ScriptedModel.layer("Hello")),
        Effect.provide(InMemory.layer),
        Effect.provide(Telemetry.layer()),
        traced
      )
      assert.deepStrictEqual(
        spans.map(({ attributes }) => attributes.get("gen_ai.conversation.id")),
        ["support/42", "support/42"]
      )
    }))

  it.effect("have those of each attempt of a retried tool below its call, which say no messages", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      let tries = 0
      const flaky = Tool.make("flaky", {
        failure: Schema.Struct({ why: Schema.String }).pipe(Tool.failureClass("transient")),
        retry: Schedule.recurs(1),
        handler: () => ++tries === 1 ? Effect.fail({ why: "s3cret host is down" }) : Effect.succeed("up")
      })
      yield* traced(run([[call("flaky")], "Done"], {}, ToolRegistry.layer(flaky)))
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: ok",
        "  chat: ok",
        "  execute_tool flaky: ok",
        "    tool attempt: _OTHER: (not recorded)",
        "    tool attempt: ok",
        "  chat: ok"
      ])
    }))

  it.effect("are not made where no tracer listens, and none where tracing is off", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      const made: Array<string> = []
      const kept = Tool.make("kept", {
        handler: () =>
          Effect.map(Effect.option(Effect.currentSpan), (span) => {
            made.push(span._tag)
            return "kept"
          })
      })
      yield* run([[call("kept")], "Done"], {}, ToolRegistry.layer(kept))
      yield* traced(
        Effect.provideService(
          run([[call("kept")], "Done"], {}, ToolRegistry.layer(kept)),
          References.TracerEnabled,
          false
        )
      )
      assert.deepStrictEqual([made, spans], [["None", "None"], []])
    }))
})

describe("what goes wrong", () => {
  it.effect("TEL-03: marks the call whose arguments are no JSON, that fails, dies, or that nobody knows, and not the run", () =>
    Effect.gen(function*() {
      const { ends, spans, traced } = recorder()
      const broken = Tool.make("broken", { handler: () => Effect.die(new Error("p4ss")) })
      const result = yield* traced(run(
        [
          [
            call("get_weather", '{"city": ', "c1"),
            call("get_weather", { city: "Atlantis" }, "c2"),
            call("broken", {}, "c3"),
            call("nobody", {}, "c4"),
            call("get_weather", { town: "Oslo" }, "c5")
          ],
          "Sorry"
        ],
        {},
        ToolRegistry.layer(getWeather, broken),
        AgentLoop.make("bot", { maxConsecutiveToolErrors: 6 })
      ))
      assert.strictEqual(result._tag, "Completed")
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: ok",
        "  chat: ok",
        "  execute_tool get_weather: invalid-json: invalid-json",
        "  execute_tool get_weather: failure: failure",
        "  execute_tool broken: defect: defect",
        "  execute_tool: unknown-tool: unknown-tool",
        "  execute_tool get_weather: invalid-input: invalid-input",
        "  chat: ok"
      ])
      assert.deepStrictEqual(
        spans.flatMap(({ attributes }) => attributes.get("gen_ai.tool.call.id") ?? []),
        ["c1", "c2", "c3", "c4", "c5"]
      )
      assert.deepStrictEqual(ends(), spans.map(() => 1))
      const [outcome] = result.turns[0]!.outcomes.filter((each) => each._tag === "Failure" && each.kind === "defect")
      assert.deepInclude(attributesOf(spans, "execute_tool broken")[0], {
        "error.type": "defect",
        "toolfold.error.id": outcome?._tag === "Failure" ? outcome.errorId : "none"
      })
    }))

  it.effect("TEL-03: ends every span of a run that is aborted within a call, once, as cancelled", () =>
    Effect.gen(function*() {
      const { ends, spans, traced } = recorder()
      const started = yield* Deferred.make<void>()
      const slow = Tool.make("slow", {
        handler: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
      const fiber = yield* Effect.forkChild(
        traced(run([[call("slow", {}, "c1")], "Done"], {}, ToolRegistry.layer(slow)))
      )
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: cancelled: cancelled",
        "  chat: ok",
        "  execute_tool slow: cancelled: cancelled"
      ])
      assert.deepStrictEqual(ends(), [1, 1, 1])
      assert.deepInclude(attributesOf(spans, "execute_tool slow")[0], {
        "gen_ai.tool.call.id": "c1",
        "error.type": "cancelled"
      })
    }))

  it.effect("TEL-03: ends the span of a request that is aborted, as cancelled", () =>
    Effect.gen(function*() {
      const { ends, spans, traced } = recorder()
      const started = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(traced(
        AgentLoop.run(bot, { prompt: "Hello" }).pipe(
          Effect.provide(ToolRegistry.layer()),
          Effect.provide(
            ScriptedModel.layer({ says: [], after: Effect.andThen(Deferred.succeed(started, undefined), Effect.never) })
          ),
          Effect.provide(Telemetry.layer())
        )
      ))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(tree(spans), ["invoke_agent bot: cancelled: cancelled", "  chat: cancelled: cancelled"])
      assert.deepStrictEqual(ends(), [1, 1])
    }))

  it.effect("TEL-03: marks the request that failed and its run, with the kind of the error", () =>
    Effect.gen(function*() {
      const { ends, spans, traced } = recorder()
      const exit = yield* Effect.exit(traced(run([{ fails: busy("401 with sk-test-123") }])))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: InternalProviderError: InternalProviderError",
        "  chat: InternalProviderError: InternalProviderError"
      ])
      assert.deepStrictEqual(spans.map(({ attributes }) => attributes.get("error.type")), [
        "InternalProviderError",
        "InternalProviderError"
      ])
      assert.deepStrictEqual(ends(), [1, 1])
    }))

  it.effect("TEL-03: has spans of its own for a run that is resumed where there is no trace, with the run's id", () =>
    Effect.gen(function*() {
      const before = recorder()
      const after = recorder()
      const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
      const layers = Layer.mergeAll(
        ToolRegistry.layer(pay),
        ScriptedModel.layer([call("pay", {}, "c1")], "Done."),
        Telemetry.layer()
      )
      const result = yield* Effect.gen(function*() {
        const paused = yield* before.traced(AgentLoop.run(bot, { prompt: "Pay" }))
        assert.strictEqual(paused._tag, "Paused")
        if (paused._tag !== "Paused") return paused
        return yield* after.traced(
          AgentLoop.resume(bot, JSON.parse(JSON.stringify(paused.state)), { [paused.pending[0]!.id]: Pause.approve })
        )
      }).pipe(Effect.provide(layers))
      assert.strictEqual(result._tag, "Completed")
      assert.deepStrictEqual(tree(before.spans), ["invoke_agent bot: ok", "  chat: ok"])
      assert.deepStrictEqual(tree(after.spans), ["invoke_agent bot: ok", "  execute_tool pay: ok", "  chat: ok"])
      const ids = [...before.spans, ...after.spans].map(({ attributes }) => attributes.get("toolfold.run.id"))
      assert.deepStrictEqual(new Set(ids), new Set([result.runId]))
      assert.deepInclude(attributesOf(before.spans, "invoke_agent bot")[0], {
        "toolfold.result": "Paused",
        "toolfold.result.reason": "approval"
      })
    }))

  it.effect("does not mark a call within which an agent waits for somebody", () =>
    Effect.gen(function*() {
      const { spans, traced } = recorder()
      const pay = Tool.make("pay", { sensitive: true, handler: () => Effect.succeed("paid") })
      const payer = AgentLoop.make("payer", { model: ScriptedModel.layer([call("pay")], "Paid") })
      const tool = AgentLoop.asTool(payer, { description: "Pays" })
      const result = yield* AgentLoop.run(bot, { prompt: "Pay" }).pipe(
        Effect.provide(ToolRegistry.layer(tool).pipe(Layer.provide(ToolRegistry.layer(pay)))),
        Effect.provide(ScriptedModel.layer([call("payer", { prompt: "Pay" })], "Done")),
        Effect.provide(Telemetry.layer()),
        traced
      )
      assert.strictEqual(result._tag, "Paused")
      assert.deepStrictEqual(tree(spans), [
        "invoke_agent bot: ok",
        "  chat: ok",
        "  execute_tool payer: ok",
        "    invoke_agent payer: ok",
        "      chat: ok"
      ])
      assert.deepInclude(attributesOf(spans, "execute_tool payer")[0], { "toolfold.outcome": "Waiting" })
    }))

  it.effect("with a tracer changes nothing of the run", () =>
    Effect.gen(function*() {
      const failing = Tracer.make({
        span: () => {
          throw new Error("the tracer is broken")
        }
      })
      const ending = Tracer.make({
        span: (options) =>
          Object.assign(new Tracer.NativeSpan(options), {
            attribute: () => {
              throw new Error("no attributes")
            },
            end: () => {
              throw new Error("no end")
            }
          })
      })
      const script = [[call("get_weather", { city: "Oslo" })], "It is sunny."]
      const plain = yield* run(script)
      for (const tracer of [failing, ending]) {
        const result = yield* Effect.provideService(run(script), Tracer.Tracer, tracer)
        assert.deepStrictEqual([result._tag, result.text, result.turns], [plain._tag, plain.text, plain.turns])
      }
    }))
})

describe("the metrics", () => {
  const counted = (registry: Map<string, any>) =>
    Effect.map(
      Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry),
      (all) =>
        all.filter(({ id }) => id.startsWith("gen_ai.")).map(({ attributes, id, state }) => ({
          id,
          attributes,
          ...("buckets" in state
            ? { count: state.count, sum: state.sum, bounds: state.buckets.map(([bound]) => bound) }
            : {})
        }))
    )
  const metered = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
    const registry = new Map<string, any>()
    return Effect.andThen(
      Effect.exit(Effect.provideService(effect, Metric.MetricRegistry, registry)),
      counted(registry)
    )
  }
  const script: ReadonlyArray<ScriptedModel.Turn> = ["Hello"]

  it.effect("count how long a request took and its tokens, in the buckets of the conventions", () =>
    Effect.gen(function*() {
      const { traced } = recorder()
      const found = yield* metered(traced(run([{ says: ["Hello"], usage: { input: 100, output: 50 } }])))
      const tokens = { "gen_ai.operation.name": "chat", unit: "{token}" }
      const bounds = { bounds: [...Names.metric.tokens.boundaries] }
      assert.deepStrictEqual(found.toSorted((a, b) => a.id.localeCompare(b.id) || (b.sum ?? 0) - (a.sum ?? 0)), [
        {
          id: "gen_ai.client.operation.duration",
          attributes: { "gen_ai.operation.name": "chat", unit: "s" },
          count: 1,
          sum: 0,
          bounds: [...Names.metric.duration.boundaries]
        },
        {
          id: "gen_ai.client.token.usage",
          attributes: { ...tokens, "gen_ai.token.type": "input" },
          count: 1,
          sum: 100,
          ...bounds
        },
        {
          id: "gen_ai.client.token.usage",
          attributes: { ...tokens, "gen_ai.token.type": "output" },
          count: 1,
          sum: 50,
          ...bounds
        }
      ])
    }))

  it.effect("count a request that failed by its kind of error, and no tokens that nobody reported", () =>
    Effect.gen(function*() {
      const found = yield* metered(run([{ fails: busy("down") }], { metrics: "always" }))
      assert.deepStrictEqual(found.map(({ attributes, id }) => [id, attributes]), [[
        "gen_ai.client.operation.duration",
        { "gen_ai.operation.name": "chat", "error.type": "InternalProviderError", unit: "s" }
      ]])
    }))

  it.effect("are taken where a tracer listens, always, or never", () =>
    Effect.gen(function*() {
      const taken = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.map(metered(effect), (found) => found.length > 0)
      const { traced } = recorder()
      assert.deepStrictEqual(
        yield* Effect.all([
          taken(run(script)),
          taken(traced(run(script))),
          taken(run(script, { metrics: "always" })),
          taken(traced(run(script, { metrics: "never" })))
        ]),
        [false, true, true, false]
      )
    }))
})

describe("the options", () => {
  it("that make no sense are refused, all of them at once", () => {
    assert.throws(
      () => Telemetry.layer({ inputs: "yes", maxContentSize: 0, metrics: "often", content: true } as any),
      'Telemetry.layer: unknown option "content"; known: inputs, maxContentSize, metrics, outputs, redact; ' +
        'inputs must be true or false, got "yes"; maxContentSize must be a whole number of at least 64, got 0; ' +
        'metrics must be traced, always or never, got "often"'
    )
  })
})
