/**
 * How does a test say what the model says? By a script: one entry a turn, said word for word.
 *
 * The script refuses to be asked for more than it has, checks what it was sent where an entry says so, and keeps every
 * request for the test to look at.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Provider from "../Provider.ts"
import * as Pieces from "./internal/pieces.ts"

/**
 * A call that the model makes. Arguments that are text are sent as they are, so that a test can send broken JSON;
 * anything else is sent as JSON. Without an id it gets one: `call_1`, `call_2`, …
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly call: string
  readonly params: unknown
  readonly id?: string | undefined
}

/**
 * One thing that the model says in a turn: text, a call, or a part of a message.
 *
 * @category models
 * @since 0.1.0
 */
export type Line = string | Call | Prompt.AssistantMessagePart

/**
 * A turn in full. `expect` is shown the request before the turn is said; what it throws fails the test. `after` is
 * waited for first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly says?: ReadonlyArray<Line> | undefined
  readonly finish?: Provider.Reply["finish"] | undefined
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  readonly model?: string | undefined
  readonly warnings?: ReadonlyArray<string> | undefined
  readonly fails?: AiError.AiError | undefined
  readonly after?: Effect.Effect<unknown> | undefined
  readonly expect?: ((request: Provider.Request) => void) | undefined
}

/**
 * A turn: text, some lines, or a turn in full.
 *
 * @category models
 * @since 0.1.0
 */
export type Turn = string | ReadonlyArray<Line> | Entry

/**
 * What a scripted model was sent so far, and how much of its script is left. Messages are as they were at the time.
 *
 * @category services
 * @since 0.1.0
 */
export class Script extends Services.Service<Script, {
  readonly requests: ReadonlyArray<Provider.Request>
  readonly remaining: () => number
}>()("toolfold/testing/ScriptedModel/Script") {}

/**
 * A call of a tool.
 *
 * @category constructors
 * @since 0.1.0
 */
export const call = (name: string, params: unknown = {}, id?: string): Call => ({ call: name, params, id })

/**
 * A model that follows a script, with its direct entry.
 *
 * **Example** (Two turns)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as ScriptedModel from "toolfold/testing/ScriptedModel"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const program = AgentLoop.run(AgentLoop.make("bot"), { prompt: "Hello" }).pipe(
 *   Effect.provide(ToolRegistry.layer()),
 *   Effect.provide(ScriptedModel.layer("Hello to you"))
 * )
 * const result = await Effect.runPromise(program)
 * result.text // => "Hello to you"
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (...script: ReadonlyArray<Turn>): Layer.Layer<LanguageModel.LanguageModel | Script> =>
  layerWith(script, Provider.make)

/**
 * The same model without the direct entry, as any provider of `effect/ai` makes one.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerPlain = (...script: ReadonlyArray<Turn>): Layer.Layer<LanguageModel.LanguageModel | Script> =>
  // A copy is another model than the one that the entry belongs to.
  layerWith(script, (options) => Effect.map(Provider.make(options), (model) => ({ ...model })))

const layerWith = (script: ReadonlyArray<Turn>, make: typeof Provider.make) =>
  Layer.effectContext(Effect.suspend(() => {
    const requests: Array<Provider.Request> = []
    const remaining = () => script.length - requests.length
    let calls = 0
    const nextId = () => `call_${++calls}`
    const ask: Provider.Ask = (request, sink) =>
      Effect.suspend(() => {
        const turn = script[requests.length]
        const asked = requests.push({ ...request, messages: request.messages.slice() })
        return turn === undefined
          ? Effect.die(new Error(`the script has ${script.length} turns, and the model was asked for turn ${asked}`))
          : say(
            typeof turn === "string" ? { says: [turn] } : "length" in turn ? { says: turn } : turn,
            request,
            sink,
            nextId
          )
      })
    return Effect.map(
      make({ ask }),
      (model) => Services.make(LanguageModel.LanguageModel, model).pipe(Services.add(Script, { requests, remaining }))
    )
  }))

const say = Effect.fnUntraced(
  function*(entry: Entry, request: Provider.Request, sink: Provider.Sink | undefined, nextId: () => string) {
    entry.expect?.(request)
    if (entry.after !== undefined) yield* entry.after
    const content = (entry.says ?? []).map((line) => toPart(line, nextId))
    if (sink !== undefined) yield* Effect.forEach(content, (part) => speak(part, content, sink), { discard: true })
    if (entry.fails !== undefined) return yield* Effect.fail(entry.fails)
    const { input, output } = entry.usage ?? { input: 0, output: 0 }
    const reply: Provider.Reply = {
      content,
      finish: entry.finish ?? (content.some((part) => part.type === "tool-call") ? "tool-calls" : "stop"),
      usage: {
        inputTokens: { uncached: input, total: input, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: output, text: output, reasoning: undefined }
      },
      model: entry.model,
      warnings: entry.warnings
    }
    return reply
  }
)

const toPart = (line: Line, nextId: () => string): Prompt.AssistantMessagePart => {
  if (typeof line === "string") return Prompt.makePart("text", { text: line })
  if ("type" in line) return line
  const params = typeof line.params === "string" ? line.params : JSON.stringify(line.params)
  return Prompt.makePart("tool-call", { id: line.id ?? nextId(), name: line.call, params, providerExecuted: false })
}

// Word by word, as a model would; a call in one piece.
const speak = (
  part: Prompt.AssistantMessagePart,
  content: ReadonlyArray<Prompt.AssistantMessagePart>,
  sink: Provider.Sink
): Effect.Effect<void> => {
  if (part.type === "tool-call") {
    const calls = content.filter(({ type }) => type === "tool-call")
    const pieces = Pieces.ofCalls(content).filter((piece) => calls[piece.part] === part)
    return pieces.length === 0 ? Effect.void : sink(pieces)
  }
  if (part.type !== "text" && part.type !== "reasoning") return Effect.void
  const { text, type } = part
  return Effect.forEach(text.match(/\S+\s*|\s+/g) ?? [], (delta) => sink([{ type, delta }]), { discard: true })
}
