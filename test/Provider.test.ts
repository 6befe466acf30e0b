// What do those see of a model of ours who do not know its direct entry?
import { assert, describe, it } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Provider from "toolfold/Provider"

const thought = (text: string, signature: string) =>
  Prompt.makePart("reasoning", { text, options: { vendor: { signature } } })

const content = [thought("first", "s1"), thought("second", "s2"), Prompt.makePart("text", { text: "done" })]

const model = (deltas: ReadonlyArray<Provider.Delta>, said: Provider.Reply["content"] = content) =>
  Provider.layer({
    ask: (_, sink) =>
      Effect.as(sink === undefined ? Effect.void : sink(deltas), {
        content: said,
        finish: "stop",
        usage: Provider.unknownUsage
      })
  })

const streamed = (deltas: ReadonlyArray<Provider.Delta>) =>
  LanguageModel.streamText({ prompt: "go" }).pipe(
    Stream.runCollect,
    Effect.map((parts) =>
      parts.flatMap((part) => {
        if (part.type === "finish") return []
        const text = "delta" in part ? ` ${part.delta}` : ""
        const signature = part.type === "reasoning-end" ? ` ${JSON.stringify(part.metadata)}` : ""
        return [`${part.type} ${"id" in part ? part.id : ""}${text}${signature}`]
      })
    ),
    Effect.provide(model(deltas))
  )

describe("a streamed answer with several thoughts", () => {
  it.effect("gives each its pieces and its signature", () =>
    Effect.gen(function*() {
      const parts = yield* streamed([
        { type: "reasoning", delta: "fir", part: 0 },
        { type: "reasoning", delta: "st", part: 0 },
        { type: "reasoning", delta: "second", part: 1 },
        { type: "text", delta: "done", part: 0 }
      ])
      assert.deepStrictEqual(parts, [
        "reasoning-start reasoning-0",
        "reasoning-delta reasoning-0 fir",
        "reasoning-delta reasoning-0 st",
        "reasoning-start reasoning-1",
        "reasoning-delta reasoning-1 second",
        "text-start text-0",
        "text-delta text-0 done",
        'reasoning-end reasoning-0 {"vendor":{"signature":"s1"}}',
        'reasoning-end reasoning-1 {"vendor":{"signature":"s2"}}',
        "text-end text-0"
      ])
    }))

  it.effect("repeats nothing where the provider does not tell them apart", () =>
    Effect.gen(function*() {
      const parts = yield* streamed([{ type: "reasoning", delta: "firstsecond" }])
      assert.deepStrictEqual(parts.filter((part) => part.includes("delta")), [
        "reasoning-delta reasoning-0 firstsecond",
        "text-delta text-0 done"
      ])
    }))
})

describe("a file in an answer", () => {
  it.effect("is a part of it", () =>
    Effect.gen(function*() {
      const file = Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1, 2, 3]) })
      const { content } = yield* Effect.provide(LanguageModel.generateText({ prompt: "go" }), model([], [file]))
      const [part] = content
      assert.strictEqual(part?.type === "file" && part.mediaType, "image/png")
      assert.deepStrictEqual(part?.type === "file" && Array.from(part.data), [1, 2, 3])
    }))
})
