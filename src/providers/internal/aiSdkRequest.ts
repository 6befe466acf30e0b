/**
 * What is a model behind the AI SDK asked? The call options of one request: transcript, tools, choice, form of the
 * answer, settings; tools are written once for each table.
 */
import * as WireTool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type * as Provider from "../../Provider.ts"
import type * as Tool from "../../Tool.ts"
import type * as AiSdk from "./aiSdk.ts"
import * as Marks from "./aiSdkMarks.ts"
import * as Prompts from "./aiSdkPrompt.ts"
import type * as Traits from "./aiSdkTraits.ts"
import * as Names from "./names.ts"
import * as Narrow from "./narrow.ts"

/** What of every request an application may set itself. */
export type Extra = Omit<
  AiSdk.LanguageModelV4CallOptions,
  "prompt" | "tools" | "toolChoice" | "responseFormat" | "abortSignal" | "includeRawChunks"
>

/** One request, and how to read the names and ids in its answer. */
export interface Written {
  readonly options: AiSdk.LanguageModelV4CallOptions
  readonly names: Names.Names
  readonly ids: Names.Ids
  readonly warnings: ReadonlyArray<string>
}

/** Writes requests; what cannot be sent is said in words. */
export interface Writer {
  (request: Provider.Request): Result.Result<Written, string>
}

interface Tools {
  readonly names: Names.Names
  readonly tools: ReadonlyArray<AiSdk.LanguageModelV4FunctionTool | AiSdk.LanguageModelV4ProviderTool>
  readonly warnings: ReadonlyArray<string>
}

/** A writer for one model; `own` are tools that its provider runs. */
export const make = (
  provider: string,
  traits: Traits.Traits,
  extra: Extra,
  own: ReadonlyArray<AiSdk.LanguageModelV4ProviderTool>
): Writer => {
  const prompts = Prompts.make(traits)
  const tables = new WeakMap<Tool.Table, Tools>()
  const schemas: Schemas = new WeakMap()
  const tools = (table: Tool.Table): Tools => {
    const known = tables.get(table) ?? writeTools(table, traits, { own, schemas })
    tables.set(table, known)
    return known
  }
  return ({ format, messages, settings, table, toolChoice }) => {
    const { names, tools: all, warnings } = tools(table)
    const chosen = choose(all, toolChoice, names)
    if (chosen.tools.length > traits.maxTools) {
      return Result.fail(
        `${chosen.tools.length} tools are offered, and ${provider} takes at most ${traits.maxTools}: select fewer`
      )
    }
    const { ids, messages: prompt } = prompts(messages, names)
    const shape = format === undefined ? undefined : writeFormat(format, traits)
    const providerOptions = Marks.joined(extra.providerOptions, shape?.providerOptions)
    return Result.succeed({
      options: {
        ...extra,
        ...writeSettings(settings),
        ...(providerOptions === undefined ? {} : { providerOptions }),
        prompt: settings?.cache === true ? cached(prompt, traits) : prompt.slice(),
        ...(chosen.tools.length === 0 ? {} : { tools: chosen.tools, ...chosen.choice }),
        ...(shape === undefined ? {} : { responseFormat: shape.responseFormat })
      },
      names,
      ids,
      warnings: shape === undefined ? warnings : [...warnings, ...shape.warnings]
    })
  }
}

// --- tools

const writeTools = (
  { schemas, tools }: Tool.Table,
  traits: Traits.Traits,
  { own, schemas: known }: {
    readonly own: ReadonlyArray<AiSdk.LanguageModelV4ProviderTool>
    readonly schemas: Schemas
  }
): Tools => {
  const names = Names.names(traits.names, [...own, ...schemas].map(({ name }) => name))
  const warnings: Array<string> = []
  const write = (tool: Tool.Advertised, at: number) => {
    const wire = tools[at]
    if (WireTool.isProviderDefined(wire)) {
      const { args, id, name } = wire
      return { type: "provider" as const, id, name: names.to(name), args: args ?? {} }
    }
    const made = known.get(tool) ?? narrowed(tool, traits)
    known.set(tool, made)
    const { isStrict, schema, why } = made
    if (why !== undefined) warnings.push(`tool ${JSON.stringify(tool.name)} is not sent as strict: ${why}`)
    return {
      type: "function" as const,
      name: names.to(tool.name),
      ...(tool.description === undefined ? {} : { description: tool.description }),
      inputSchema: schema as AiSdk.LanguageModelV4FunctionTool["inputSchema"], // JSON Schema, of whichever draft
      ...(isStrict === undefined ? {} : { strict: isStrict })
    }
  }
  return { names, tools: [...schemas.map(write), ...own], warnings }
}

interface Narrowed extends Omit<Narrow.Narrowed, "isStrict"> {
  readonly isStrict: boolean | undefined
}

// A tool is the same in many tables.
type Schemas = WeakMap<Tool.Advertised, Narrowed>

const narrowed = (tool: Tool.Advertised, { dialect, strictByDefault }: Traits.Traits): Narrowed => {
  if (dialect === undefined) return { schema: tool.input_schema, isStrict: tool.strict }
  const made = Narrow.narrow(tool.input_schema, dialect, tool.strict === true)
  return { ...made, isStrict: tool.strict === undefined && !strictByDefault ? undefined : made.isStrict }
}

interface Chosen {
  readonly tools: Array<AiSdk.LanguageModelV4FunctionTool | AiSdk.LanguageModelV4ProviderTool>
  readonly choice: Pick<AiSdk.LanguageModelV4CallOptions, "toolChoice">
}

const choose = (
  all: Tools["tools"],
  choice: Provider.Request["toolChoice"],
  names: Names.Names
): Chosen => {
  if (choice === "auto") return { tools: [...all], choice: {} }
  if (typeof choice === "string") return { tools: [...all], choice: { toolChoice: { type: choice } } }
  if ("tool" in choice) {
    return { tools: [...all], choice: { toolChoice: { type: "tool", toolName: names.to(choice.tool) } } }
  }
  const allowed = new Set(choice.oneOf.map(names.to))
  return {
    tools: all.filter(({ name }) => allowed.has(name)),
    choice: choice.mode === "required" ? { toolChoice: { type: "required" } } : {}
  }
}

// --- the answer's form

const writeFormat = (format: NonNullable<Provider.Request["format"]>, { dialect }: Traits.Traits) => {
  const { isStrict, schema, why }: Narrow.Narrowed = dialect === undefined
    ? { schema: format.schema, isStrict: true }
    : Narrow.narrowFormat(format.schema, dialect)
  return {
    responseFormat: {
      type: "json" as const,
      name: format.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64),
      schema: schema as AiSdk.LanguageModelV4FunctionTool["inputSchema"] // JSON Schema, of whichever draft
    },
    providerOptions: dialect === "openai" && !isStrict ? { openai: { strictJsonSchema: false } } : undefined,
    warnings: why === undefined ? [] : [`the form of the answer is not sent as strict: ${why}`]
  }
}

// --- settings

const writeSettings = (settings: Provider.Settings = {}): Extra => {
  const { effort, maxTokens, seed, stop, temperature, topP } = settings
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(effort === undefined ? {} : { reasoning: effort })
  }
}

// The tools and the instructions end with the last system message; what was said so far ends with the last message.
const cached = (
  prompt: ReadonlyArray<AiSdk.LanguageModelV4Message>,
  { cachePoint }: Traits.Traits
): Array<AiSdk.LanguageModelV4Message> => {
  const out = prompt.slice()
  if (cachePoint === undefined) return out
  for (const at of new Set([prompt.findLastIndex(({ role }) => role === "system"), prompt.length - 1])) {
    const message = prompt[at]
    if (message === undefined) continue
    out[at] = { ...message, providerOptions: Marks.joined(cachePoint, message.providerOptions) ?? cachePoint }
  }
  return out
}
