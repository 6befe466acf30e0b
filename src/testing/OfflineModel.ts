/**
 * What answers when there is no model? A stand-in that says so: it picks tools by the words of the question and fills
 * their arguments from what stands in it literally. For first runs, demos and tests of wiring.
 *
 * A question is read step by step (`then` begins a step) and clause by clause (a comma, a semicolon or `and`); the clauses
 * of a step are called together. Each clause goes to the tool whose name, description and parameters fit its words best
 * (BM25). Quoted text, paths, numbers and the values of an enum fill the parameters; when a required one stays empty, the
 * stand-in asks for it. When every step is done it answers with what the tools said.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Text from "../internal/text.ts"
import * as Provider from "../Provider.ts"
import type * as Tool from "../Tool.ts"
import * as Lexical from "./internal/lexical.ts"

/**
 * The stand-in, as a model.
 *
 * **Example** (A question without a model)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as AgentLoop from "toolfold/AgentLoop"
 * import * as OfflineModel from "toolfold/testing/OfflineModel"
 * import * as Tool from "toolfold/Tool"
 * import * as ToolRegistry from "toolfold/ToolRegistry"
 *
 * const weather = Tool.make("get_weather", {
 *   description: "Current weather for a city",
 *   input: { city: Schema.String },
 *   handler: ({ city }) => Effect.succeed(`${city}: 21 degrees`)
 * })
 *
 * const program = AgentLoop.run(AgentLoop.make("bot"), { prompt: 'How is the weather in "Oslo"?' }).pipe(
 *   Effect.provide(ToolRegistry.layer(weather)),
 *   Effect.provide(OfflineModel.layer)
 * )
 * const result = await Effect.runPromise(program)
 * result.turns[0]?.calls[0]?.input // => { city: "Oslo" }
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<LanguageModel.LanguageModel> = Provider.layer({
  ask: (request) => Effect.sync(() => reply(request))
})

const label = "[OfflineModel: a stand-in without a language model]"

const reply = ({ messages, table }: Provider.Request): Provider.Reply => {
  const asked = messages.findLastIndex((message) => message.role === "user")
  const since = messages.slice(asked + 1)
  const steps = Lexical.steps(questionOf(messages[asked]))
  const done = since.filter((message) => message.role === "assistant").length
  const step = steps[done]
  if (step === undefined || table.schemas.length === 0) return saying(answer(since))
  const plans = step.flatMap((clause) => plan(clause, table))
  const lacking = plans.filter((plan) => plan.missing.length > 0)
  const ready = plans.filter((plan) => plan.missing.length === 0)
  if (ready.length === 0) return saying(lacking.length === 0 ? nothing(table) : wanting(lacking))
  return {
    content: ready.map(({ input, tool }, at) =>
      Prompt.makePart("tool-call", {
        id: `offline_${messages.length}_${at}`,
        name: tool.name,
        params: JSON.stringify(input),
        providerExecuted: false
      })
    ),
    finish: "tool-calls",
    usage: Provider.unknownUsage
  }
}

const saying = (text: string): Provider.Reply => ({
  content: [Prompt.makePart("text", { text: `${label} ${text}` })],
  finish: "stop",
  usage: Provider.unknownUsage
})

const questionOf = (message: Prompt.Message | undefined): string =>
  message?.role === "user"
    ? message.content.map((part) => part.type === "text" ? part.text : "").join(" ")
    : ""

interface Plan {
  readonly tool: Tool.Advertised
  readonly input: { readonly [name: string]: unknown }
  readonly missing: ReadonlyArray<string>
}

const plan = (clause: string, { schemas }: Tool.Table): ReadonlyArray<Plan> => {
  const tool = Lexical.best(clause, schemas)
  return tool === undefined ? [] : [{ tool, ...Lexical.fill(clause, tool) }]
}

const nothing = ({ schemas }: Tool.Table): string =>
  `I match words, and none of yours fits a tool. The tools are: ${schemas.map(({ name }) => name).join(", ")}.`

const wanting = (plans: ReadonlyArray<Plan>): string =>
  plans.map(({ missing, tool }) => `For ${tool.name} I need ${missing.join(" and ")}: put it in quotes.`).join(" ")

const answer = (since: ReadonlyArray<Prompt.Message>): string => {
  const results = since.flatMap((message) => message.role === "tool" ? message.content : [])
    .filter((part) => part.type === "tool-result")
  if (results.length === 0) return "There is nothing that I could do."
  const told = results.map(({ isFailure, name, result }) => {
    const text = typeof result === "string" ? result : JSON.stringify(result)
    return `- ${name}${isFailure ? " failed" : ""}: ${Text.excerpt(text.trim(), 600)}`
  })
  return `This is what the tools said:\n${told.join("\n")}`
}
