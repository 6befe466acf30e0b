import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Arbitrary from "effect/Arbitrary"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Provider from "toolfold/Provider"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Resilience from "../src/internal/resilience.ts"
import * as Wrapped from "../src/internal/wrapped.ts"
import { logged } from "./utils.ts"

const error = (reason: AiError.AiErrorReason) => AiError.make({ module: "Test", method: "ask", reason })
const down = error(new AiError.InternalProviderError({ description: "down" }))
const busy = error(new AiError.RateLimitError({}))
const lost = error(new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "http://host" }))
const unkeyed = error(new AiError.AuthenticationError({ kind: "InvalidKey" }))
const invalid = error(new AiError.InvalidRequestError({ description: "temperature must be at most 2" }))
const status = (status: number, headers: { readonly [name: string]: string } = {}) =>
  error(AiError.reasonFromHttpStatus({ status, http: { response: { status, headers } } }))

const request: Provider.Request = {
  messages: [Prompt.userMessage({ content: [Prompt.textPart({ text: "go" })] })],
  table: Tool.table([]),
  toolChoice: "auto"
}

interface Step {
  readonly says?: ReadonlyArray<string>
  readonly takes?: Duration.Input
  readonly fails?: AiError.AiError
}

/** A way to ask that does one step after the other, and knows when it was asked and how often it was interrupted. */
const scripted = (...steps: ReadonlyArray<Step | AiError.AiError | string>) => {
  const at: Array<number> = []
  let interrupted = 0
  const ask: Provider.Ask = (_, sink) =>
    Effect.gen(function*() {
      const given = steps[at.length]
      at.push(yield* Clock.currentTimeMillis)
      if (given === undefined) return yield* Effect.die(new Error("asked too often"))
      const step: Step = typeof given === "string"
        ? { says: [given] }
        : AiError.isAiError(given)
        ? { fails: given }
        : given
      const says = step.says ?? []
      if (sink !== undefined) yield* Effect.forEach(says, (delta) => sink([{ type: "text", delta }]), { discard: true })
      yield* Effect.sleep(step.takes ?? 0)
      if (step.fails !== undefined) return yield* Effect.fail(step.fails)
      return replyOf(says.join(""))
    }).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted++)))
  return { ask, at, interrupted: () => interrupted }
}

const replyOf = (text: string): Provider.Reply => ({
  content: [Prompt.textPart({ text })],
  finish: "stop",
  usage: Provider.unknownUsage
})

/** What came of asking: the text, the error's reason and message, or that it was interrupted. */
const outcome = (asked: Effect.Effect<Provider.Reply, AiError.AiError>): Effect.Effect<string> =>
  Effect.map(
    Effect.exit(asked),
    Exit.match({
      onSuccess: ({ content }) => content.map((part) => part.type === "text" ? part.text : part.type).join(""),
      onFailure: (cause) => {
        const failed = Cause.squash(cause)
        return Cause.hasInterruptsOnly(cause)
          ? "interrupted"
          : AiError.isAiError(failed)
          ? failed.reason._tag
          : `defect: ${failed}`
      }
    })
  )

/** Lets an hour pass in which everything happens that was waiting to. */
const inAnHour = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

/** Chance that always says the same. */
const always = (share: number) =>
  Effect.provideService(Random.Random, { nextDoubleUnsafe: () => share, nextIntUnsafe: () => 0 })

/** What a watcher saw. */
const watcher = () => {
  const seen: Array<string> = []
  const sink: Provider.Sink = (deltas) => Effect.sync(() => seen.push(...deltas.map(({ delta }) => delta)))
  return { seen, sink }
}

describe("a retry", () => {
  it.effect("SPEC-73: is one request for whoever asks, and three for the model", () =>
    Effect.gen(function*() {
      let asked = 0
      const model = scripted(down, busy, "at last")
      const ask: Provider.Ask = (request, sink) => {
        asked++
        return Resilience.retrying()(model.ask)(request, sink)
      }
      assert.strictEqual(yield* inAnHour(outcome(ask(request))), "at last")
      assert.deepStrictEqual([asked, model.at.length], [1, 3])
    }))

  it.effect("waits up to twice as long each time, and gives the last error after three requests", () =>
    Effect.gen(function*() {
      const model = scripted(busy, lost, down)
      assert.strictEqual(
        yield* inAnHour(outcome(Resilience.retrying()(model.ask)(request))).pipe(always(1)),
        "InternalProviderError"
      )
      assert.deepStrictEqual(model.at, [0, 500, 1_500])
    }))

  it.effect("waits no longer than its cap", () =>
    Effect.gen(function*() {
      const model = scripted(down, down, down, down, down, "at last")
      const ask = Resilience.retrying({ times: 5, base: "1 second", cap: "5 seconds" })(model.ask)
      assert.strictEqual(yield* inAnHour(outcome(ask(request))).pipe(always(1)), "at last")
      assert.deepStrictEqual(model.at, [0, 1_000, 3_000, 7_000, 12_000, 17_000])
    }))

  it.effect("SPEC-135: follows a lost connection, 429, 408, 409 and every 5xx, whoever tells of it", () =>
    Effect.gen(function*() {
      for (
        const failed of [
          lost,
          down,
          busy,
          ...[408, 409, 429, 500, 502, 503, 504, 529].map((code) => status(code))
        ]
      ) {
        const model = scripted(failed, "at last")
        assert.strictEqual(yield* inAnHour(outcome(Resilience.retrying()(model.ask)(request))), "at last")
      }
    }))

  it.effect("SPEC-74: never follows what asking again does not change, and keeps that error as it is", () =>
    Effect.gen(function*() {
      for (
        const failed of [
          unkeyed,
          invalid,
          ...[400, 401, 403, 404, 413, 422].map((code) => status(code)),
          error(new AiError.QuotaExhaustedError({})),
          error(new AiError.ContentPolicyError({ description: "no" })),
          error(new AiError.InvalidOutputError({ description: "no JSON" })),
          error(new AiError.StructuredOutputError({ description: "no JSON", responseText: "" })),
          error(new AiError.InvalidResponseError({ description: "HTML" })),
          error(new AiError.NetworkError({ reason: "InvalidUrlError", method: "POST", url: "x" })),
          error(new AiError.ToolNotFoundError({ toolName: "a", availableTools: [] }))
        ]
      ) {
        const model = scripted(failed, "at last")
        assert.strictEqual(yield* Effect.flip(Resilience.retrying()(model.ask)(request)), failed)
        assert.strictEqual(model.at.length, 1)
      }
    }))

  it.effect("never follows a defect", () =>
    Effect.gen(function*() {
      const asked = outcome(Resilience.retrying()(() => Effect.die("broken"))(request))
      assert.strictEqual(yield* asked, "defect: broken")
    }))

  it.effect("SPEC-75: waits 30 s where the server asks for an hour", () =>
    Effect.gen(function*() {
      const model = scripted(error(new AiError.RateLimitError({ retryAfter: Duration.hours(1) })), "at last")
      assert.strictEqual(yield* inAnHour(outcome(Resilience.retrying()(model.ask)(request))), "at last")
      assert.deepStrictEqual(model.at, [0, 30_000])
    }))

  it.effect("RET-01: waits what the server asks for in each of its forms, and as ever where that is no time", () =>
    Effect.gen(function*() {
      const date = "Tue, 01 Dec 2026 12:00:00 GMT"
      const later = "Tue, 01 Dec 2026 12:00:05 GMT"
      const asks: ReadonlyArray<readonly [{ readonly [name: string]: string }, number]> = [
        [{ "retry-after": "7" }, 7_000],
        [{ "retry-after-ms": "1500" }, 1_500],
        [{ "retry-after-ms": "0", "retry-after": "1" }, 1_000],
        [{ "retry-after": later, date }, 5_000],
        [{ "retry-after": later }, 5_000],
        [{ "retry-after": "86400" }, 30_000],
        [{ "retry-after": date, date: later }, 250],
        [{ "retry-after": "-1" }, 250],
        [{ "retry-after": "0" }, 250],
        [{ "retry-after": "abc" }, 250],
        [{ "retry-after": "" }, 250],
        [{}, 250]
      ]
      for (const code of [429, 503]) {
        for (const [headers, waited] of asks) {
          for (
            const failed of [yield* answered(code, headers), status(code, headers), status(code, capital(headers))]
          ) {
            yield* TestClock.setTime(Date.parse(date))
            const model = scripted(failed, "at last")
            const ask = Resilience.retrying()(model.ask)
            assert.strictEqual(yield* inAnHour(outcome(ask(request))).pipe(always(0.5)), "at last")
            const [first = 0, second = 0, ...more] = model.at
            assert.deepStrictEqual([second - first, more], [waited, []], `${code} ${JSON.stringify(headers)}`)
          }
        }
      }
    }))

  it.effect("RET-01: ends at once when it is interrupted while it waits", () =>
    Effect.gen(function*() {
      const model = scripted(error(new AiError.RateLimitError({ retryAfter: Duration.seconds(7) })))
      const fiber = yield* Effect.forkChild(outcome(Resilience.retrying()(model.ask)(request)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([model.at, yield* Clock.currentTimeMillis], [[0], 1_000])
    }))

  it.effect("RET-05: of a stream ends with its first piece, and whoever watches sees nothing twice", () =>
    Effect.gen(function*() {
      const { seen, sink } = watcher()
      const model = scripted(lost, { says: ["Hel", "lo"], fails: lost }, "Hello")
      assert.strictEqual(yield* inAnHour(outcome(Resilience.retrying()(model.ask)(request, sink))), "NetworkError")
      assert.deepStrictEqual([model.at.length, seen], [2, ["Hel", "lo"]])
    }))

  it.effect("goes on where a chunk without a piece was shown", () =>
    Effect.gen(function*() {
      let asked = 0
      const ask: Provider.Ask = (_, sink) =>
        Effect.suspend(() =>
          asked++ === 0 ? Effect.andThen(sink?.([]) ?? Effect.void, Effect.fail(lost)) : Effect.succeed(replyOf("ok"))
        )
      assert.strictEqual(yield* inAnHour(outcome(Resilience.retrying()(ask)(request, watcher().sink))), "ok")
    }))

  it.effect("asks anew each time that the same request is run", () =>
    Effect.gen(function*() {
      const model = scripted(down, "one", down, "two")
      const asked = inAnHour(outcome(Resilience.retrying({ times: 1 })(model.ask)(request)))
      assert.deepStrictEqual([yield* asked, yield* asked], ["one", "two"])
    }))

  it.effect("is what its options say", () =>
    Effect.gen(function*() {
      const once = scripted(down, "at last")
      assert.strictEqual(yield* outcome(Resilience.retrying({ times: 0 })(once.ask)(request)), "InternalProviderError")
      const other = scripted(invalid, down)
      const ask = Resilience.retrying({ while: ({ reason }) => reason._tag === "InvalidRequestError" })(other.ask)
      assert.strictEqual(yield* inAnHour(outcome(ask(request))), "InternalProviderError")
      assert.deepStrictEqual([once.at.length, other.at.length], [1, 2])
    }))

  it.effect("tells a log that wants to know, and survives one that dies", () =>
    Effect.gen(function*() {
      const { layer, lines } = logged()
      const ask = (model: ReturnType<typeof scripted>) => inAnHour(outcome(Resilience.retrying()(model.ask)(request)))
      yield* ask(scripted(down, "at last")).pipe(
        Effect.provide(layer),
        Effect.provideService(References.MinimumLogLevel, "Debug")
      )
      assert.deepStrictEqual(lines.map(({ level, message }) => [level, message]), [
        ["Debug", "a model failed and is asked again"]
      ])
      const dying = Logger.layer([
        Logger.make(() => {
          throw new Error("full")
        })
      ])
      const said = yield* ask(scripted(down, "at last")).pipe(
        Effect.provide(dying),
        Effect.provideService(References.MinimumLogLevel, "Debug")
      )
      assert.strictEqual(said, "at last")
    }))

  it.effect("waits at random, at most the base doubled with each and never more than the cap, whatever they are", () =>
    Effect.gen(function*() {
      const millis = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60_000 }))
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.schema(Schema.Struct({ base: millis, cap: millis, seed: Schema.String })),
        ({ base, cap, seed }) =>
          Effect.gen(function*() {
            const model = scripted(down, down, down, down, down, down)
            const ask = Resilience.retrying({ times: 5, base, cap })(model.ask)
            yield* inAnHour(outcome(ask(request))).pipe(Random.withSeed(seed))
            const waits = model.at.slice(1).map((at, index) => at - (model.at[index] ?? 0))
            return waits.length === 5 &&
              waits.every((wait, index) => wait >= 0 && wait <= Math.min(cap, base * 2 ** index))
          }),
        { runs: 100, seed: 1 }
      )
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    }))

  it.effect("waits differently each time", () =>
    Effect.gen(function*() {
      const waits = yield* Effect.all(Array.from({ length: 100 }, () => Resilience.jittered(1_000)))
      assert.isAbove(new Set(waits).size, 50)
    }).pipe(Random.withSeed("jitter")))
})

/** The error of an OpenAI-compatible server that answers so. */
const answered = (code: number, headers: { readonly [name: string]: string }) =>
  Effect.gen(function*() {
    const model = yield* LanguageModel.LanguageModel
    return yield* Effect.flip(Provider.askOf(model)(request))
  }).pipe(
    Effect.provide(OpenAiCompatible.layer({ model: "m" })),
    Effect.provideService(
      HttpClient.HttpClient,
      HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}", { status: code, headers })))
      )
    )
  )

const capital = (headers: { readonly [name: string]: string }) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.replace(/\b\w/g, (c) => c.toUpperCase()), value])
  )

describe("a fallback", () => {
  it.effect("asks the next model when one fails for good, each with its own retries", () =>
    Effect.gen(function*() {
      const { layer, lines } = logged()
      const first = scripted(down, down, busy)
      const second = scripted(lost, unkeyed)
      const third = scripted("the third")
      const retrying = Resilience.retrying()
      const ask = Resilience.fallback(retrying(first.ask), retrying(second.ask), retrying(third.ask))
      assert.strictEqual(yield* inAnHour(outcome(ask(request))).pipe(Effect.provide(layer)), "the third")
      assert.deepStrictEqual([first, second, third].map(({ at }) => at.length), [3, 2, 1])
      assert.deepStrictEqual(lines.map(({ level, message }) => [level, message]), [
        ["Warn", "a model failed and the next is asked"],
        ["Warn", "a model failed and the next is asked"]
      ])
      assert.include(lines[1]?.cause, "InvalidKey")
    }))

  it.effect("fails as the last model did", () =>
    Effect.gen(function*() {
      const ask = Resilience.fallback(scripted(down).ask, scripted(busy).ask, scripted(unkeyed).ask)
      assert.strictEqual(yield* Effect.flip(ask(request)).pipe(Effect.provide(logged().layer)), unkeyed)
    }))

  it.effect("of one model is that model", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Effect.flip(Resilience.fallback(scripted(down).ask)(request)), down)
    }))

  it.effect("SPEC-136: of a stream goes to the next only before the first piece; after it what was shown stands", () =>
    Effect.gen(function*() {
      const before = watcher()
      const ask = Resilience.fallback(scripted(down).ask, scripted({ says: ["from ", "the second"] }).ask)
      const said = yield* outcome(ask(request, before.sink)).pipe(Effect.provide(logged().layer))
      assert.deepStrictEqual([said, before.seen], ["from the second", ["from ", "the second"]])
      const amid = watcher()
      const first = scripted({ says: ["Hel", "lo"], fails: down })
      const second = scripted("from the second")
      assert.strictEqual(
        yield* outcome(Resilience.fallback(first.ask, second.ask)(request, amid.sink)),
        "InternalProviderError"
      )
      assert.deepStrictEqual([amid.seen, first.at.length, second.at.length], [["Hel", "lo"], 1, 0])
    }))

  it("is for what another model may do better, in the words of those who say it", () => {
    const said = (description: string) => error(new AiError.InvalidRequestError({ description }))
    const better: ReadonlyArray<AiError.AiError> = [
      down,
      busy,
      lost,
      unkeyed,
      ...[401, 403, 404, 408, 413, 429, 500, 529].map((code) => status(code)),
      error(new AiError.QuotaExhaustedError({})),
      error(new AiError.InvalidResponseError({ description: "HTML" })),
      error(new AiError.InvalidUserInputError({ description: "Unsupported media type 'video/mp4'" })),
      error(new AiError.UnsupportedSchemaError({ description: "recursive" })),
      ...[
        "Your input exceeds the context window of this model. [context_length_exceeded] (HTTP 400)",
        "prompt is too long: 3333404 tokens > 200000 maximum",
        "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens",
        "The total length of all messages is too long. [too_many_prompt_tokens] (HTTP 400)",
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        "Request too large for MODEL on tokens per min (TPM): Limit 30000, Requested 30601. [rate_limit_exceeded] (HTTP 429)",
        "Please reduce the length of the messages or completion.",
        "The requested model 'this-model-does-not-exist' does not exist. [model_not_found] (HTTP 400)",
        "models/gemini-1.5-flash is not found for API version v1beta, or is not supported for generateContent.",
        "The model `gpt-3.5-turbo-0613` has been deprecated",
        "The API deployment for this resource does not exist. [DeploymentNotFound] (HTTP 404): check the model's name",
        "Resource not found (HTTP 404): check the model's name and the base URL",
        "API key not valid. Please pass a valid API key.",
        "Incorrect API key provided. You can obtain an API key from https://console.x.ai."
      ].map(said)
    ]
    const same: ReadonlyArray<AiError.AiError> = [
      invalid,
      status(400),
      status(422),
      error(new AiError.ContentPolicyError({ description: "no" })),
      error(new AiError.ToolNotFoundError({ toolName: "a", availableTools: [] })),
      ...[
        "Error while downloading https://example.com/test-image.jpg. [invalid_image_url] (HTTP 400)",
        "Unsupported parameter: 'stop' is not supported with this model. [unsupported_parameter] (HTTP 400)",
        "Missing required parameter: 'messages[1].content[0].type'.",
        "Unable to submit request because it has a temperature value of 1000 but the supported range is from 0",
        "Please use a valid role: user, model."
      ].map(said)
    ]
    const wrong = (errors: ReadonlyArray<AiError.AiError>, is: boolean) =>
      errors.filter((error) => Resilience.isOfOneModel(error) !== is).map(({ message }) => message)
    assert.deepStrictEqual([wrong(better, true), wrong(same, false)], [[], []])
  })

  it.effect("keeps what is wrong with the request, a defect and an interruption to itself", () =>
    Effect.gen(function*() {
      const second = scripted("from the second")
      const of = (ask: Provider.Ask) => outcome(Resilience.fallback(ask, second.ask)(request))
      assert.strictEqual(yield* of(scripted(invalid).ask), "InvalidRequestError")
      assert.strictEqual(yield* of(() => Effect.die("broken")), "defect: broken")
      assert.strictEqual(yield* of(() => Effect.interrupt), "interrupted")
      const fiber = yield* Effect.forkChild(of(() => Effect.never))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(second.at.length, 0)
    }))
})

describe("a rate limit", () => {
  const five = (ask: Provider.Ask) =>
    Effect.forEach([1, 2, 3, 4, 5], () => outcome(ask(request)), { concurrency: "unbounded" })

  it.effect("lets no more requests begin in any window, and the first who asks first", () =>
    Effect.gen(function*() {
      const began: Array<readonly [number, string]> = []
      const ask = Resilience.rateLimiting({ limit: 2, window: "1 minute" })((request) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          began.push([now, String(request.toolChoice)])
          return replyOf("ok")
        })
      )
      const asked = (name: string, after: Duration.Input) =>
        Effect.delay(ask({ ...request, toolChoice: { tool: name } }).pipe(Effect.asVoid), after)
      yield* inAnHour(
        Effect.all([
          asked("a", 0),
          asked("b", "50 seconds"),
          asked("c", "51 seconds"),
          asked("d", "52 seconds"),
          asked("e", "5 minutes")
        ], { concurrency: "unbounded" })
      )
      assert.deepStrictEqual(began.map(([at]) => at), [0, 50_000, 60_000, 110_000, 300_000])
    }))

  it.effect("waits in line, with or without a stream, and refuses nobody", () =>
    Effect.gen(function*() {
      const model = scripted("1", "2", "3", "4", "5")
      const ask = Resilience.rateLimiting({ limit: 1, window: 1_000 })(model.ask)
      assert.deepStrictEqual(yield* inAnHour(five(ask)), ["1", "2", "3", "4", "5"])
      assert.deepStrictEqual(model.at, [0, 1_000, 2_000, 3_000, 4_000])
    }))

  it.effect("counts when a request begins, not how long it takes or what comes of it", () =>
    Effect.gen(function*() {
      const model = scripted({ takes: "10 minutes" }, down, "3")
      const ask = Resilience.rateLimiting({ limit: 1, window: "1 minute" })(model.ask)
      yield* inAnHour(Effect.forEach([1, 2, 3], () => outcome(ask(request)), { concurrency: "unbounded" }))
      assert.deepStrictEqual(model.at, [0, 60_000, 120_000])
    }))

  it.effect("keeps no place for who was interrupted in line", () =>
    Effect.gen(function*() {
      const model = scripted("1", "2")
      const ask = outcome(Resilience.rateLimiting({ limit: 1, window: "1 minute" })(model.ask)(request))
      // Each of these is another execution of one request, so they share the count.
      yield* ask
      const second = yield* Effect.forkChild(ask)
      const third = yield* Effect.forkChild(ask)
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.interrupt(second)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([yield* Fiber.join(third), model.at], ["2", [0, 60_000]])
    }))

  /** A clock that only its sleepers move, each by as much as it says. */
  const clockOf = (slept: Array<number>, moves: (millis: number) => number) => {
    let nanos = 10n ** 15n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: () => Number(nanos / 1_000_000n),
      currentTimeMillis: Effect.sync(() => Number(nanos / 1_000_000n)),
      currentTimeNanosUnsafe: () => nanos,
      currentTimeNanos: Effect.sync(() => nanos),
      monotonicTimeNanosUnsafe: () => nanos,
      monotonicTimeNanos: Effect.sync(() => nanos),
      sleep: (duration) =>
        Effect.sync(() => {
          slept.push(Duration.toMillis(duration))
          move(moves(Duration.toMillis(duration)))
        })
    }
    const move = (millis: number) => {
      nanos += BigInt(millis) * 1_000_000n
    }
    return { clock, move }
  }

  it.effect("waits no longer for a clock that goes back, and forgets nothing", () =>
    Effect.gen(function*() {
      const slept: Array<number> = []
      const { clock, move } = clockOf(slept, (millis) => millis)
      const ask = Resilience.rateLimiting({ limit: 1, window: "1 minute" })(() => Effect.succeed(replyOf("ok")))
      yield* Effect.gen(function*() {
        yield* ask(request)
        move(-3_600_000)
        yield* ask(request)
        move(20_000)
        yield* ask(request)
      }).pipe(Effect.provideService(Clock.Clock, clock))
      assert.deepStrictEqual(slept, [60_000, 40_000])
    }))

  it.effect("makes up for a timer that goes off too early", () =>
    Effect.gen(function*() {
      const slept: Array<number> = []
      const { clock } = clockOf(slept, (millis) => millis - 1)
      const ask = Resilience.rateLimiting({ limit: 1, window: "1 minute" })(() => Effect.succeed(replyOf("ok")))
      yield* Effect.all([ask(request), ask(request), ask(request)]).pipe(Effect.provideService(Clock.Clock, clock))
      assert.deepStrictEqual(slept, [60_000, 60_001])
    }))
})

describe("a timeout", () => {
  it.effect("SPEC-146: ends a request past its deadline at once, interrupts it, and charges nothing", () =>
    Effect.gen(function*() {
      const model = scripted({ takes: "10 minutes", says: ["late"] })
      const fiber = yield* Effect.forkChild(Effect.flip(Resilience.timingOut("30 seconds")(model.ask)(request)))
      yield* TestClock.adjust("29999 millis")
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust("1 millis")
      const { message, reason } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        [reason._tag, reason.message, "metadata" in reason && reason.metadata],
        ["InternalProviderError", "Internal provider error: no answer within 30s", { toolfold: { timeout: 30_000 } }],
        message
      )
      assert.deepStrictEqual([model.interrupted(), yield* Clock.currentTimeMillis], [1, 30_000])
      const slow = ScriptedModel.layer({ says: ["late"], after: Effect.never, usage: { input: 9, output: 9 } })
      const failed = yield* inAnHour(
        Effect.flip(AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" })).pipe(
          Effect.provide(ToolRegistry.layer()),
          Effect.provide(slow.pipe(Wrapped.timeout("30 seconds")))
        )
      )
      assert.deepStrictEqual(
        failed._tag === "ModelFailed" &&
          [failed.reason.reason._tag, failed.partial.usage.calls, failed.partial.usage.totalTokens],
        ["InternalProviderError", 0, 0]
      )
    }))

  it.effect("SPEC-145: is for each request of its model; without it there is none", () =>
    Effect.gen(function*() {
      const steps = [{ takes: "59 minutes", says: ["slow"] }, "fast"] as const
      assert.strictEqual(yield* inAnHour(outcome(scripted(...steps).ask(request))), "slow")
      const ask = Resilience.timingOut("1 minute")(scripted(...steps).ask)
      assert.deepStrictEqual(
        yield* inAnHour(Effect.all([outcome(ask(request)), outcome(ask(request))])),
        ["InternalProviderError", "fast"]
      )
    }))

  it.effect("does not wait for a request that cannot be interrupted, and shows nothing of it any more", () =>
    Effect.gen(function*() {
      const { seen, sink } = watcher()
      const ask = Resilience.timingOut("30 seconds")((_, sink) =>
        Effect.uninterruptible(Effect.gen(function*() {
          yield* sink?.([{ type: "text", delta: "early" }]) ?? Effect.void
          yield* Effect.sleep("1 minute")
          yield* sink?.([{ type: "text", delta: "late" }]) ?? Effect.void
          return replyOf("late")
        }))
      )
      const fiber = yield* Effect.forkChild(outcome(ask(request, sink)))
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "InternalProviderError")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(seen, ["early"])
    }))

  it.effect("holds where its caller cannot be interrupted", () =>
    Effect.gen(function*() {
      const model = scripted({ takes: "2 hours" })
      const asked = outcome(Resilience.timingOut("30 seconds")(model.ask)(request))
      assert.strictEqual(yield* inAnHour(Effect.uninterruptible(asked)), "InternalProviderError")
      assert.strictEqual(model.interrupted(), 1)
    }))

  it.effect("interrupts the request of who is interrupted, and waits for it", () =>
    Effect.gen(function*() {
      const model = scripted({ takes: "1 minute" })
      const fiber = yield* Effect.forkChild(Resilience.timingOut("30 seconds")(model.ask)(request))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(model.interrupted(), 1)
    }))

  it.effect("gives what came in time as it came: an answer, an error, a defect", () =>
    Effect.gen(function*() {
      const of = (ask: Provider.Ask) => outcome(Resilience.timingOut("30 seconds")(ask)(request))
      assert.strictEqual(yield* of(scripted("in time").ask), "in time")
      assert.strictEqual(yield* of(scripted(unkeyed).ask), "AuthenticationError")
      assert.strictEqual(yield* of(() => Effect.die("broken")), "defect: broken")
    }))

  it.effect("inside of a retry is one of each try, and what it ended is tried again", () =>
    Effect.gen(function*() {
      const model = scripted({ takes: "1 hour" }, { takes: "20 seconds", says: ["second"] })
      const ask = Resilience.retrying()(Resilience.timingOut("30 seconds")(model.ask))
      assert.strictEqual(yield* inAnHour(outcome(ask(request))).pipe(always(0)), "second")
      assert.deepStrictEqual(model.at, [0, 30_000])
    }))
})

describe("options", () => {
  it("that make no sense are refused where they are written, all of them at once", () => {
    const said = (make: () => unknown) => {
      try {
        return make()
      } catch (error) {
        return String(error)
      }
    }
    assert.deepStrictEqual(
      [
        // @ts-expect-error there is no such option
        said(() => Resilience.retrying({ times: -1, base: 0, cap: "Infinity", attempts: 3 })),
        said(() => Resilience.retrying({ times: 1.5 })),
        // @ts-expect-error it is no function
        said(() => Resilience.retrying({ while: true })),
        said(() => Resilience.rateLimiting({ limit: 0, window: -1 })),
        said(() => Resilience.timingOut(Number.NaN)),
        said(() => Wrapped.timeout(0))
      ],
      [
        'Error: Provider.retry: unknown option "attempts"; known: times, base, cap, while; times must be a whole number that is not negative, got -1; base must be a positive finite duration, got 0; cap must be a positive finite duration, got "Infinity"',
        "Error: Provider.retry: times must be a whole number that is not negative, got 1.5",
        "Error: Provider.retry: while must be a function, got true",
        "Error: Provider.rateLimit: limit must be a positive whole number, got 0; window must be a positive finite duration, got -1",
        "Error: Provider.timeout: duration must be a positive finite duration, got NaN",
        "Error: Provider.timeout: duration must be a positive finite duration, got 0"
      ]
    )
  })
})

const echo = Tool.make("echo", { input: { text: Schema.String }, handler: ({ text }) => Effect.succeed(text) })
const hidden = Tool.make("hidden", { handler: () => Effect.succeed("") })

const converse = AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
  Effect.provide(ToolRegistry.layer(echo, hidden))
)

describe("a wrapped provider", () => {
  it.effect("keeps its direct entry, and what else its layer gives", () =>
    Effect.gen(function*() {
      const Model = ScriptedModel.layer({ fails: down }, [ScriptedModel.call("echo", { text: "a" })], "done").pipe(
        Wrapped.timeout("30 seconds"),
        Wrapped.rateLimit({ limit: 10, window: "1 minute" }),
        Wrapped.retry()
      )
      const [text, requests, table] = yield* inAnHour(
        Effect.gen(function*() {
          const { text } = yield* converse
          const script = yield* ScriptedModel.Script
          const model = yield* LanguageModel.LanguageModel
          const [request] = script.requests
          // An own entry is one and the same each time that it is asked for.
          return [
            text,
            script.requests.length,
            request !== undefined && Provider.askOf(model) === Provider.askOf(model)
          ]
        }).pipe(Effect.provide(Model))
      )
      assert.deepStrictEqual([text, requests, table], ["done", 3, true])
    }))

  it.effect("is asked by everybody the same way: whole, in a stream, for an object", () =>
    Effect.gen(function*() {
      const Model = ScriptedModel.layer(
        { fails: down },
        "whole",
        { fails: busy },
        "in a stream",
        { fails: lost },
        `{"a":1}`
      )
        .pipe(Wrapped.retry())
      const said = yield* inAnHour(
        Effect.gen(function*() {
          const whole = yield* LanguageModel.generateText({ prompt: "go" })
          const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "go" }))
          const object = yield* LanguageModel.generateObject({ prompt: "go", schema: Schema.Struct({ a: Schema.Int }) })
          return [
            whole.text,
            parts.map((part) => part.type === "text-delta" ? part.delta : "").join(""),
            object.value
          ]
        }).pipe(Effect.provide(Model))
      )
      assert.deepStrictEqual(said, ["whole", "in a stream", { a: 1 }])
    }))

  it.effect("may be one of anybody's", () =>
    Effect.gen(function*() {
      const Model = ScriptedModel.layerPlain({ fails: down }, [ScriptedModel.call("echo", { text: "a" })], "done").pipe(
        Wrapped.retry()
      )
      const { text, turns } = yield* inAnHour(Effect.provide(converse, Model))
      assert.deepStrictEqual([text, turns.length], ["done", 2])
    }))

  it.effect("shares its limit with all that one value wraps, however often it is built", () =>
    Effect.gen(function*() {
      const began: Array<number> = []
      const Model = Provider.layer({
        ask: () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            began.push(now)
            return replyOf("ok")
          })
      })
      const limited = Wrapped.rateLimit({ limit: 2, window: "1 minute" })
      const [small, large] = [Model.pipe(limited), Model.pipe(limited)]
      yield* inAnHour(
        Effect.forEach([small, large, small, large], (layer) => Effect.provide(converse, layer), {
          concurrency: "unbounded"
        })
      )
      assert.deepStrictEqual(began, [0, 0, 60_000, 60_000])
    }))

  it.effect("falls back from layer to layer, whose errors and needs are those of the whole", () =>
    Effect.gen(function*() {
      const broken = Layer.effect(LanguageModel.LanguageModel, Effect.fail("no key" as const))
      const Both: Layer.Layer<LanguageModel.LanguageModel, "no key"> = Wrapped.fallback(
        ScriptedModel.layer("x"),
        broken
      )
      assert.strictEqual(yield* Effect.flip(Effect.provide(converse, Both)), "no key")
      const Needy: Layer.Layer<LanguageModel.LanguageModel, never, HttpClient.HttpClient> = Wrapped.fallback(
        OpenAiCompatible.layer({ model: "m" }),
        ScriptedModel.layer("from the second").pipe(Wrapped.retry())
      )
      const { text } = yield* converse.pipe(
        Effect.provide(Needy),
        Effect.provideService(
          HttpClient.HttpClient,
          HttpClient.make((request) =>
            Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}", { status: 401 })))
          )
        ),
        Effect.provide(logged().layer)
      )
      assert.strictEqual(text, "from the second")
    }))

  it.effect("SPEC-112: is also how a request is rewritten: the provider gets the tools that are left", () =>
    Effect.gen(function*() {
      const tools: Array<ReadonlyArray<string>> = []
      const inner: Provider.Ask = ({ table }) =>
        Effect.sync(() => {
          tools.push(table.schemas.map(({ name }) => name))
          return replyOf("done")
        })
      const without = Tool.table([echo])
      const Model = Provider.layer({ ask: (request, sink) => inner({ ...request, table: without }, sink) })
      yield* Effect.provide(converse, Model)
      assert.deepStrictEqual(tools, [["echo"]])
    }))

  it.effect("SPEC-113: what stands around a run runs once, what stands around a model once a turn", () =>
    Effect.gen(function*() {
      let runs = 0
      let requests = 0
      const call = (text: string) => [ScriptedModel.call("echo", { text })]
      const Model = Layer.effect(
        LanguageModel.LanguageModel,
        Effect.flatMap(LanguageModel.LanguageModel, (model) =>
          Provider.make({
            ask: (request, sink) => {
              requests++
              return Provider.askOf(model)(request, sink)
            }
          }))
      ).pipe(Layer.provide(ScriptedModel.layer(call("a"), call("b"), call("c"), "done")))
      yield* Effect.suspend(() => {
        runs++
        return converse
      }).pipe(Effect.provide(Model))
      assert.deepStrictEqual([runs, requests], [1, 4])
    }))
})
