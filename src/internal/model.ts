/**
 * What is a model of ours? One of `effect/ai` that carries one more entry, by which the loop asks it directly.
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Ask } from "./ask.ts"
import { throughPublic } from "./foreignModel.ts"
import * as PublicModel from "./publicModel.ts"

const EntryKey = Symbol("toolfold/Provider/Entry")

interface Entry {
  readonly model: LanguageModel.LanguageModel
  readonly ask: Ask
}

/**
 * Makes a language model from one function, for use with `effect/ai` and, through its direct entry, with the loop.
 *
 * **Example** (A model that repeats the question)
 *
 * ```ts run
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Effect from "effect/Effect"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Provider from "toolfold/Provider"
 *
 * const Echo = Provider.layer({
 *   ask: ({ messages }) =>
 *     Effect.succeed({
 *       content: [Prompt.textPart({ text: `You sent ${messages.length} message` })],
 *       finish: "stop",
 *       usage: { inputTokens: { total: 3 }, outputTokens: { total: 4 } } as any
 *     })
 * })
 *
 * const reply = await Effect.runPromise(LanguageModel.generateText({ prompt: "Hello" }).pipe(Effect.provide(Echo)))
 * reply.text // => "You sent 1 message"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: { readonly ask: Ask }): Effect.Effect<LanguageModel.LanguageModel> =>
  Effect.map(
    LanguageModel.make(PublicModel.methods(options.ask)),
    (model) => Object.defineProperty(model, EntryKey, { value: { model, ask: options.ask } satisfies Entry })
  )

/**
 * `make` as a layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: { readonly ask: Ask }): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

/**
 * How a model is asked: through its direct entry if it is the very model that the entry belongs to, else through its
 * public methods, with calls left unresolved and unjudged.
 *
 * @category asking
 * @since 0.1.0
 */
export const askOf = (model: LanguageModel.LanguageModel): Ask => {
  const entry: Entry | undefined = Reflect.get(model, EntryKey)
  return entry?.model === model ? entry.ask : throughPublic(model)
}
