// What does a project with many tools look like? For each contender the same tools, each with its own input, output, failure
// and work, in files of ten; and one file that assembles them and runs an agent.

export interface Project {
  /** A file of tools; each exports under `tool_N`. */
  readonly tools: (numbers: ReadonlyArray<number>) => string
  /** The file that runs an agent with all of them. */
  readonly main: (imports: string, numbers: ReadonlyArray<number>) => string
}

const names = (numbers: ReadonlyArray<number>): string => numbers.map((n) => `tool_${n}`).join(", ")

const lines = (numbers: ReadonlyArray<number>, line: (n: number) => string): string => numbers.map(line).join("\n")

const zodTool = (n: number, key: "input" | "inputSchema", output: string) =>
  `  ${key}: z.object({ city_${n}: z.string(), days_${n}: z.int(), unit_${n}: z.enum(["c", "f"]).optional() }),
  ${output}: z.object({ temp_${n}: z.number(), note_${n}: z.string() }),`

const zodWork = (n: number): string =>
  `async ({ city_${n}, days_${n}, unit_${n} }) => {
    if (unit_${n} === "f") throw new Down_${n}(city_${n})
    return { temp_${n}: days_${n}, note_${n}: city_${n} }
  }`

const down = (n: number): string =>
  `class Down_${n} extends Error { readonly city_${n}: string; constructor(city: string) { super(city); this.city_${n} = city } }`

const effectWork = (n: number): string =>
  `({ city_${n}, days_${n}, unit_${n} }) =>
    unit_${n} === "f" ? Effect.fail(new Down_${n}({ city_${n} })) : Effect.succeed({ temp_${n}: days_${n}, note_${n}: city_${n} })`

const effectSchemas = (n: number) => ({
  failure:
    `export class Down_${n} extends Schema.TaggedError<Down_${n}>()("Down_${n}", { city_${n}: Schema.String }) {}`,
  input:
    `{ city_${n}: Schema.String, days_${n}: Schema.Int, unit_${n}: Schema.optionalKey(Schema.Literals(["c", "f"])) }`,
  output: `Schema.Struct({ temp_${n}: Schema.Finite, note_${n}: Schema.String })`
})

export const projects: Readonly<Record<string, Project>> = {
  zod: {
    tools: (numbers) =>
      `import { z } from "zod"
const define = <I extends z.ZodType, O extends z.ZodType>(tool: {
  readonly name: string; readonly input: I; readonly output: O
  readonly execute: (input: z.output<I>) => Promise<z.input<O>>
}) => tool
${
        lines(numbers, (n) =>
          `${down(n)}
export const tool_${n} = define({
  name: "tool_${n}",
${zodTool(n, "input", "output")}
  execute: ${zodWork(n)}
})`)
      }`,
    main: (imports, numbers) =>
      `${imports}
const tools = { ${names(numbers)} }
export const run = async (name: keyof typeof tools, json: string): Promise<string> => {
  const tool = tools[name]
  const execute = tool.execute as (input: unknown) => Promise<unknown>
  return JSON.stringify(await execute(tool.input.parse(JSON.parse(json))))
}`
  },

  "ai-sdk": {
    tools: (numbers) =>
      `import { tool } from "ai"
import { z } from "zod"
${
        lines(numbers, (n) =>
          `${down(n)}
export const tool_${n} = tool({
  description: "Tool ${n}",
${zodTool(n, "inputSchema", "outputSchema")}
  execute: ${zodWork(n)}
})`)
      }`,
    main: (imports, numbers) =>
      `import { generateText, isStepCount, type LanguageModel } from "ai"
${imports}
const tools = { ${names(numbers)} }
export const run = async (model: LanguageModel): Promise<string> => {
  const { text, toolCalls } = await generateText({ model, tools, prompt: "Hello", stopWhen: isStepCount(10) })
  return text + toolCalls.length
}`
  },

  "effect-ai": {
    tools: (numbers) =>
      `import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
${
        lines(numbers, (n) => {
          const { failure, input, output } = effectSchemas(n)
          return `${failure}
export const tool_${n} = Tool.make("tool_${n}", {
  description: "Tool ${n}",
  parameters: Schema.Struct(${input}),
  success: ${output},
  failure: Down_${n},
  failureMode: "return"
})
export const handler_${n} = (${effectWork(n)}) satisfies (input: Tool.Parameters<typeof tool_${n}>) => unknown`
        })
      }`,
    main: (imports, numbers) =>
      `import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
${imports}
const toolkit = Toolkit.make(${names(numbers)})
const handlers = toolkit.toLayer({ ${numbers.map((n) => `tool_${n}: handler_${n}`).join(", ")} })
const loop = Effect.gen(function*() {
  let prompt = Prompt.make("Hello")
  for (;;) {
    const reply = yield* LanguageModel.generateText({ prompt, toolkit })
    prompt = Prompt.concat(prompt, Prompt.fromResponseParts(reply.content))
    if (reply.toolCalls.length === 0) return reply.text
  }
})
export const run = (model: Layer.Layer<LanguageModel.LanguageModel>): Promise<string> =>
  Effect.runPromise(loop.pipe(Effect.provide(handlers), Effect.provide(model)))`
  },

  ours: {
    tools: (numbers) =>
      `import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "toolfold/Tool"
${
        lines(numbers, (n) => {
          const { failure, input, output } = effectSchemas(n)
          return `${failure}
export const tool_${n} = Tool.make("tool_${n}", {
  description: "Tool ${n}",
  input: ${input},
  output: ${output},
  failure: Down_${n},
  handler: ${effectWork(n)}
})`
        })
      }`,
    main: (imports, numbers) =>
      `import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as AgentLoop from "toolfold/AgentLoop"
import * as ToolRegistry from "toolfold/ToolRegistry"
${imports}
const tools = ToolRegistry.layer(${names(numbers)})
const agent = AgentLoop.make("agent", { maxTurns: 10 })
const loop = Effect.map(AgentLoop.run(agent, { prompt: "Hello" }), ({ text }) => text)
export const run = (model: Layer.Layer<LanguageModel.LanguageModel>): Promise<string> =>
  Effect.runPromise(loop.pipe(Effect.provide(tools), Effect.provide(model)))`
  }
}
