// What does a receiver of OTLP that is not ours get? Spans by the names of the conventions, and nothing of what was said.
import { assert, describe, it } from "@effect/vitest"
import type * as TelemetryServer from "@genkit-ai/telemetry-server"
import * as Incubating from "@opentelemetry/semantic-conventions/incubating"
import * as Model from "effect/ai/Model"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Telemetry from "toolfold/telemetry/Telemetry"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as ChatHost from "./chatHost.ts"

// Its module for `import` does not load.
const Server: typeof TelemetryServer = createRequire(import.meta.url)(
  "@genkit-ai/telemetry-server"
)

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** A receiver: where it is, and everything that it has kept, as text. */
const receiver = Effect.gen(function*() {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "receiver-"))),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )
  const port = yield* freePort
  const stores = { storeRoot: root, indexRoot: root }
  yield* Effect.acquireRelease(
    Effect.promise(() =>
      Server.startTelemetryServer({
        port,
        traceStore: new Server.LocalFileTraceStore(stores),
        logStore: new Server.LocalFileLogStore(stores)
      })
    ),
    () => Effect.promise(() => Server.stopTelemetryApi())
  )
  const url = `http://127.0.0.1:${port}/api`
  const get = (path: string) => Effect.tryPromise(async () => (await fetch(`${url}${path}`)).text())
  yield* Effect.retry(get("/__health"), Schedule.spaced("20 millis"))
  const kept = Effect.sync(() =>
    readdirSync(root, { recursive: true, encoding: "utf8" }).map((file) => join(root, file))
      .filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, "utf8")).join("\n")
  )
  return { url, get, kept }
})

/** Sends what is recorded of an effect, and gives what was sent. */
const sending = (url: string) => {
  const bodies: Array<string> = []
  const tapped = Layer.effect(
    HttpClient.HttpClient,
    Effect.map(
      HttpClient.HttpClient,
      HttpClient.tapRequest((request) =>
        Effect.sync(() => {
          if (request.body._tag === "Uint8Array") bodies.push(new TextDecoder().decode(request.body.body))
        })
      )
    )
  ).pipe(Layer.provide(FetchHttpClient.layer))
  const layer = Otlp.layerJson({
    baseUrl: `${url}/otlp`,
    resource: { serviceName: "test" },
    loggerMergeWithExisting: false
  }).pipe(
    Layer.provide(tapped)
  )
  return { bodies, layer }
}

const canaries = {
  prompt: "canary-prompt",
  arguments: "canary-arguments",
  result: "canary-result",
  failure: "canary-failure",
  defect: "canary-defect",
  header: "canary-header",
  key: "sk-canary-key",
  answer: "canary-answer"
}

const tools = ToolRegistry.layer(
  Tool.make("find", {
    input: { text: Schema.String },
    handler: () => Effect.succeed(canaries.result)
  }),
  Tool.make("fail", {
    failure: Schema.Struct({ why: Schema.String }).pipe(Tool.failureClass("transient")),
    retry: Schedule.recurs(1),
    handler: () => Effect.fail({ why: canaries.failure })
  }),
  Tool.make("die", {
    retry: Schedule.recurs(1),
    handler: () => Effect.withSpan(Effect.die(new Error(canaries.defect)), "inner")
  })
)

const says = (message: object, finish: string) =>
  new Response(JSON.stringify({
    id: "r",
    object: "chat.completion",
    created: 1,
    model: "gpt-x-0301",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: finish }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  }))

const calls = [["find", { text: canaries.arguments }], ["fail", {}], ["die", {}]].map(([name, input], at) => ({
  id: `call_${at}`,
  type: "function",
  function: { name, arguments: JSON.stringify(input) }
}))

/** A run of three calls that ends well, and one whose key is refused. */
const recorded = (telemetry: Layer.Layer<never>, out: ReturnType<typeof sending>["layer"]) => {
  const answers = [
    () => says({ tool_calls: calls }, "tool_calls"),
    () => says({ content: canaries.answer }, "stop"),
    () => new Response(JSON.stringify({ error: { message: `bad key ${canaries.key}`, code: 401 } }), { status: 401 })
  ]
  const { model } = ChatHost.host(() => answers.shift()?.() ?? new Response("", { status: 500 }))
  const layer = model({ apiKey: canaries.key, headers: { "x-custom": canaries.header } })
  const agent = AgentLoop.make("bot", { instructions: `Say ${canaries.prompt}` })
  const run = AgentLoop.run(agent, { prompt: canaries.prompt })
  return Effect.all([Effect.exit(run), Effect.exit(run)]).pipe(
    Effect.provide([tools, Model.make("openai", "gpt-x", layer), telemetry]),
    Effect.provide(out)
  )
}

const hits = (text: string) => Object.entries(canaries).flatMap(([name, canary]) => text.includes(canary) ? [name] : [])

interface Trace {
  readonly spans: Record<string, {
    readonly spanId: string
    readonly parentSpanId?: string
    readonly displayName: string
    readonly spanKind: string
    readonly attributes: Record<string, unknown>
    readonly status?: { readonly code: number; readonly message?: string }
    readonly startTime: number
    readonly endTime: number
  }>
}

describe("a receiver of OTLP", () => {
  it.live("TEL-02, TEL-03: gets the spans of a run by the conventions' names, and under the defaults nothing that was said", () =>
    Effect.gen(function*() {
      const { get, kept, url } = yield* receiver
      const { bodies, layer } = sending(url)
      const exits = yield* recorded(Telemetry.layer(), layer)
      assert.deepStrictEqual(exits.map(({ _tag }) => _tag), ["Success", "Failure"])

      const listed: { readonly traces: ReadonlyArray<{ readonly traceId: string }> } = JSON.parse(
        yield* get("/traces?limit=100")
      )
      const received = yield* Effect.forEach(
        listed.traces,
        ({ traceId }) => Effect.map(get(`/traces/${traceId}`), (text): Trace => JSON.parse(text))
      )
      const spans = received.flatMap((trace) => Object.values(trace.spans)).toSorted((a, b) =>
        a.startTime - b.startTime
      )
      const nameOf = (id: string | undefined) => spans.find(({ spanId }) => spanId === id)?.displayName
      const lines = spans.map(({ displayName, parentSpanId, spanKind, status }) =>
        `${nameOf(parentSpanId) ?? "-"} > ${displayName} ${spanKind} ${status?.code ?? 0} ${status?.message ?? ""}`
          .trim()
      )
      assert.deepStrictEqual(lines.toSorted(), [
        "- > invoke_agent bot INTERNAL 1",
        "- > invoke_agent bot INTERNAL 2 AuthenticationError",
        "chat gpt-x > POST CLIENT 1",
        "chat gpt-x > POST CLIENT 1",
        "chat gpt-x > POST CLIENT 2 (not recorded)",
        "execute_tool die > tool attempt INTERNAL 2 (not recorded)",
        "execute_tool fail > tool attempt INTERNAL 2 (not recorded)",
        "execute_tool fail > tool attempt INTERNAL 2 (not recorded)",
        "invoke_agent bot > chat gpt-x CLIENT 1",
        "invoke_agent bot > chat gpt-x CLIENT 1",
        "invoke_agent bot > chat gpt-x CLIENT 2 AuthenticationError",
        "invoke_agent bot > execute_tool die INTERNAL 2 defect",
        "invoke_agent bot > execute_tool fail INTERNAL 2 failure",
        "invoke_agent bot > execute_tool find INTERNAL 1",
        "tool attempt > inner INTERNAL 2 (not recorded)"
      ])
      assert.isTrue(spans.every(({ endTime, startTime }) => endTime >= startTime && endTime > 0))

      const known = new Set<unknown>(Object.values({ ...Incubating } as Record<string, unknown>))
      const own = spans.filter(({ attributes }) => "gen_ai.operation.name" in attributes)
      const names = own.flatMap(({ attributes }) => Object.keys(attributes))
      assert.deepStrictEqual(
        names.filter((name) => !known.has(name) && !name.startsWith("toolfold.") && name !== "error.type"),
        []
      )

      assert.isAbove(bodies.length, 0)
      assert.deepStrictEqual(hits(bodies.join("\n")), [])
      assert.deepStrictEqual(hits(yield* kept), [])
      // The search has something to look through: the log of the call that died is there.
      assert.include(bodies.join("\n"), 'tool \\"die\\" failed')
    }))

  it.live("gets what was said where it is asked for, and never a key or a header", () =>
    Effect.gen(function*() {
      const { url } = yield* receiver
      const { bodies, layer } = sending(url)
      yield* recorded(Telemetry.layer({ inputs: true, outputs: true }), layer)
      const text = bodies.join("\n")
      assert.deepStrictEqual(hits(text), ["prompt", "arguments", "result", "failure", "defect", "answer"])
    }))
})
