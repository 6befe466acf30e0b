/**
 * What does a server take that speaks Chat Completions? What its documentation says and its recorded answers show, known
 * by where it is and by the model's name.
 */
import * as Names from "./names.ts"
import type * as Narrow from "./narrow.ts"

/**
 * What a server takes of what it may be asked. What it does not take is not sent, and said in the reply's `warnings`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Takes {
  /** The field that bounds an answer. */
  readonly maxTokens: "max_tokens" | "max_completion_tokens"
  /** Whether `temperature` and `topP` are taken, or only of a model that is not to reason. */
  readonly sampling: boolean | "without-effort"
  /** The field for a seed. */
  readonly seed: "seed" | "random_seed" | "none"
  /** How many texts may end an answer. */
  readonly stop: number
  /** Where it is said how hard to try: in a field, in an object (`reasoning`), or beside a switch of its own. */
  readonly effort: "reasoning_effort" | "reasoning" | "thinking" | "enable_thinking" | "none"
  /** Whether that may be said beside tools. */
  readonly effortWithTools: boolean
  /** What keeps the front of a transcript: the server by itself, a mark in the request, or nobody knows. */
  readonly cache: "always" | "cache_control" | "unknown"
  /** How JSON is asked for. With `json_object` and `none` the last message tells the model its form. */
  readonly format: "json_schema" | "json_object" | "none"
  /** What may be strict: tools that ask for it, the form of the answer too, or nothing. */
  readonly strict: "tools" | "tools-and-format" | "none"
  /** Whether `parallel_tool_calls` may be in `body`. */
  readonly parallel: boolean
  /** Whether a stream is to be asked for its usage. */
  readonly streamUsage: boolean
  /**
   * How the server wants back what its model thought: under the name that it came by, under one name whatever it came
   * by, in the content, or not at all.
   */
  readonly thoughts: "as-came" | "reasoning_content" | "reasoning" | "content" | "none"
  /** Which files a message may have. Text files are sent as text. */
  readonly files: ReadonlyArray<"image" | "audio" | "pdf" | "video">
  /** How many tools a request may have. */
  readonly maxTools: number
}

export interface Traits extends Takes {
  readonly names: Names.Rule
  readonly ids: Names.Rule
  /** How schemas are narrowed that are not strict; as they are where nothing is known. */
  readonly dialect: Narrow.Dialect | undefined
  /** How it is said that a tool must be called. */
  readonly must: "required" | "any"
}

const plain = "a-zA-Z0-9_-"
const upTo40 = Names.rule("\\x21-\\x7e", { most: 40 })

const common: Traits = {
  maxTokens: "max_tokens",
  sampling: true,
  seed: "seed",
  stop: Infinity,
  effort: "reasoning_effort",
  effortWithTools: true,
  cache: "unknown",
  format: "json_schema",
  strict: "tools",
  parallel: true,
  streamUsage: true,
  thoughts: "as-came",
  files: ["image", "audio", "pdf"],
  maxTools: Infinity,
  names: Names.rule(plain, { most: 64 }),
  ids: Names.anything,
  dialect: undefined,
  must: "required"
}

type Known = Partial<Traits>

interface Gpt {
  readonly reasons: boolean
  /** Of GPT its version, with the minor one as hundredths. */
  readonly version: number
}

const gpt = (model: string): Gpt | undefined => {
  const name = model.slice(model.lastIndexOf("/") + 1).replace(/^ft:/, "")
  if (/^o\d/.test(name)) return { reasons: true, version: 0 }
  const [, major, minor = "0"] = /^gpt-(\d)(?!\d)(?:\.(\d+))?/.exec(name) ?? []
  if (major === undefined) return undefined
  return { reasons: Number(major) >= 5 && !name.includes("chat"), version: Number(major) + Number(minor) / 100 }
}

const openai = (model: string): Known => {
  const known = gpt(model)
  return {
    maxTokens: "max_completion_tokens",
    stop: known?.reasons === true ? 0 : 4,
    sampling: known?.reasons !== true || (known.version >= 5.01 ? "without-effort" : false),
    effort: known?.reasons === false ? "none" : "reasoning_effort",
    effortWithTools: known === undefined || known.version < 5.04,
    cache: "always",
    format: /(?:^|\/|:)gpt-(?:3|4(?![.o]))/.test(model) ? "json_object" : "json_schema",
    strict: "tools-and-format",
    parallel: known === undefined || known.version > 0,
    thoughts: "none",
    maxTools: 128,
    ids: upTo40,
    dialect: "openai"
  }
}

const openrouter = (model: string): Known => ({
  effort: "reasoning",
  cache: model.startsWith("anthropic/")
    ? "cache_control"
    : /^(?:openai|google|deepseek|x-ai|moonshotai|z-ai)\//.test(model)
    ? "always"
    : "unknown",
  strict: "tools-and-format",
  thoughts: "reasoning",
  files: ["image", "audio", "pdf", "video"],
  dialect: "openai",
  ...(model.startsWith("openai/") ? { ids: upTo40, maxTools: 128 } : {}),
  ...(model.startsWith("anthropic/") ? { ids: Names.rule(plain, { most: 64 }) } : {})
})

const groq = (model: string): Known => ({
  maxTokens: "max_completion_tokens",
  stop: 4,
  cache: "always",
  format: /gpt-oss|kimi|llama-4/.test(model) ? "json_schema" : "json_object",
  strict: model.includes("gpt-oss") ? "tools-and-format" : "none",
  thoughts: "none",
  files: ["image"],
  maxTools: 128
})

const xai = (model: string): Known => ({
  maxTokens: "max_completion_tokens",
  stop: /grok-(?:[4-9]|3-mini)/.test(model) && !model.includes("non-reasoning") ? 0 : 4,
  cache: "always",
  strict: "tools-and-format",
  files: ["image"],
  maxTools: 128
})

const mistral: Known = {
  seed: "random_seed",
  cache: "always",
  strict: "tools-and-format",
  streamUsage: false,
  thoughts: "content",
  files: ["image"],
  ids: Names.rule("a-zA-Z0-9", { least: 9, most: 9 }),
  must: "any"
}

const deepseek: Known = {
  seed: "none",
  stop: 16,
  effort: "thinking",
  cache: "always",
  format: "json_object",
  strict: "none",
  thoughts: "reasoning_content",
  files: [],
  maxTools: 128
}

// Both want back what their models thought between calls.
const moonshot: Known = { effort: "thinking", cache: "always", format: "json_object", thoughts: "reasoning_content" }

const gemini: Known = {
  cache: "always",
  strict: "none",
  files: ["image", "audio"],
  maxTools: 512,
  names: Names.rule("a-zA-Z0-9_.:-", { most: 64, first: "a-zA-Z_" }),
  dialect: "gemini"
}

const anthropic: Known = {
  seed: "none",
  effort: "none",
  format: "none",
  strict: "none",
  thoughts: "none",
  files: ["image"],
  ids: Names.rule(plain, { most: 64 }),
  dialect: "anthropic"
}

const on = (domain: string, name: string): RegExp => new RegExp(`(?:^|\\.)(?:${domain})(?::\\d+)?$|^(?:${name})$`)

const hosts: ReadonlyArray<readonly [RegExp, (model: string) => Known]> = [
  [on("openai\\.com|openai\\.azure\\.com", "openai|azure"), openai],
  // One address for models of many.
  [on("ai\\.azure\\.com|cognitiveservices\\.azure\\.com", "foundry"), (model) => {
    if (gpt(model) !== undefined) return openai(model)
    return model.startsWith("grok") ? { ...xai(model), maxTokens: "max_tokens" } : {}
  }],
  [on("openrouter\\.ai", "openrouter"), openrouter],
  [on("groq\\.com", "groq"), groq],
  [on("x\\.ai", "xai"), xai],
  [on("mistral\\.ai", "mistral"), () => mistral],
  [on("deepseek\\.com", "deepseek"), () => deepseek],
  [on("moonshot\\.(?:ai|cn)|z\\.ai|bigmodel\\.cn", "moonshot|zai"), () => moonshot],
  [on("aliyuncs\\.com", "dashscope"), () => ({ effort: "enable_thinking", format: "json_object" })],
  [on("googleapis\\.com", "gemini"), () => gemini],
  [on("anthropic\\.com", "anthropic"), () => anthropic],
  [on("cerebras\\.ai", "cerebras"), () => ({ maxTokens: "max_completion_tokens", strict: "tools-and-format" })],
  [/^ollama$|(?:^|\.)ollama\.com$|:11434$/, () => ({ cache: "always", files: ["image"] })]
]

/** What is known of a host, by its address or its own name, and of the model. */
export const of = (
  host: string,
  model: string,
  own: { readonly [K in keyof Takes]?: Takes[K] | undefined }
): Traits => {
  const known = hosts.find(([pattern]) => pattern.test(host.toLowerCase()))
  // A host that nobody knows hands a model of OpenAI on to OpenAI.
  const elsewhere = gpt(model)?.reasons === true ? openai(model) : {}
  const said = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return { ...common, ...(known === undefined ? elsewhere : known[1](model)), ...said }
}
