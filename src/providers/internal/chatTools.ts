/**
 * How are tools and the form of an answer written in the Chat Completions protocol? Each table of tools once, with names
 * and schemas that the server takes.
 */
import * as WireTool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type * as Provider from "../../Provider.ts"
import type * as Tool from "../../Tool.ts"
import type { Traits } from "./chatTraits.ts"
import { fields, type Json, write } from "./json.ts"
import * as Names from "./names.ts"
import * as Narrow from "./narrow.ts"

/** The tools of one request, as fields of its body. */
export interface Chosen {
  readonly tools: string
  readonly choice: string
  readonly names: Names.Names
  readonly hasTools: boolean
  readonly warnings: ReadonlyArray<string>
}

/** Chooses among the tools of a table, or says why they cannot be sent. */
export interface Tools {
  (request: Provider.Request): Result.Result<Chosen, string>
}

interface Written {
  readonly names: Names.Names
  /** Each tool by its own name. */
  readonly tools: ReadonlyMap<string, One>
  readonly all: Chosen
}

interface One {
  readonly text: string
  readonly warnings: ReadonlyArray<string>
}

export const make = (traits: Traits, server: string): Tools => {
  const tables = new WeakMap<Tool.Table, Written>()
  // A tool is the same in many tables.
  const known = new WeakMap<Tool.Advertised, Json>()
  const kept = (table: Tool.Table): Written => {
    const made = tables.get(table) ?? writeTable(table, traits, known)
    tables.set(table, made)
    return made
  }
  return ({ table, toolChoice }) => {
    const { all, names, tools } = kept(table)
    const some = typeof toolChoice === "object" && "oneOf" in toolChoice
      ? [...tools].flatMap(([name, one]) => toolChoice.oneOf.includes(name) ? [one] : [])
      : undefined
    const count = some?.length ?? tools.size
    if (count > traits.maxTools) {
      return Result.fail(`${count} tools are offered, and ${server} takes at most ${traits.maxTools}: select fewer`)
    }
    const chosen = some === undefined ? all : joined(some, names)
    return Result.succeed(
      chosen.hasTools && toolChoice !== "auto"
        ? { ...chosen, choice: fields({ tool_choice: writeChoice(toolChoice, names, traits) }) }
        : chosen
    )
  }
}

const joined = (tools: ReadonlyArray<One>, names: Names.Names): Chosen => ({
  tools: tools.length === 0 ? "" : `,"tools":[${tools.map(({ text }) => text).join(",")}]`,
  choice: "",
  names,
  hasTools: tools.length > 0,
  warnings: tools.flatMap(({ warnings }) => warnings)
})

const writeTable = (table: Tool.Table, traits: Traits, known: WeakMap<Tool.Advertised, Json>): Written => {
  const isOurs = (_tool: Tool.Advertised, at: number) => !WireTool.isProviderDefined(table.tools[at])
  const ours = table.schemas.filter(isOurs)
  const names = Names.names(traits.names, ours.map(({ name }) => name))
  const tools = new Map(ours.map((tool) => {
    const made = known.get(tool) ?? writeFunction(tool, traits)
    known.set(tool, made)
    const { why, ...rest } = made
    const text = write({ type: "function", function: { name: names.to(tool.name), ...rest } })
    return [tool.name, { text, warnings: typeof why === "string" ? [why] : [] }]
  }))
  const others = table.schemas.filter((tool, at) => !isOurs(tool, at)).map(({ name }) =>
    `tool ${JSON.stringify(name)} is not sent: its provider runs it, which is not possible here`
  )
  const all = joined([...tools.values()], names)
  return { names, tools, all: others.length === 0 ? all : { ...all, warnings: [...all.warnings, ...others] } }
}

const writeFunction = ({ description, input_schema, name, strict }: Tool.Advertised, traits: Traits): Json => {
  const given = description === undefined ? {} : { description }
  const asks = strict === true && traits.strict !== "none"
  if (!asks && traits.dialect === undefined) {
    return { ...given, parameters: input_schema, ...unsent(name, strict, "this server does not take that") }
  }
  const { isStrict, schema, why } = Narrow.narrow(input_schema, traits.dialect ?? "openai", asks)
  return {
    ...given,
    // A schema that cannot be strict stays what it is.
    parameters: asks && !isStrict && traits.dialect === undefined ? input_schema : schema,
    ...(asks ? { strict: isStrict } : {}),
    ...(isStrict ? {} : unsent(name, strict, why ?? "this server does not take that"))
  }
}

const unsent = (name: string, strict: boolean | undefined, why: string): Json =>
  strict === true ? { why: `tool ${JSON.stringify(name)} is not sent as strict: ${why}` } : {}

const writeChoice = (choice: Provider.Request["toolChoice"], names: Names.Names, { must }: Traits): unknown => {
  if (typeof choice === "string") return choice === "required" ? must : choice
  if ("tool" in choice) return { type: "function", function: { name: names.to(choice.tool) } }
  return choice.mode === "required" ? must : "auto"
}

/** How the answer's form is asked for: a field, and a message where the model must be told. */
export interface Form {
  readonly field: string
  readonly message: string
  readonly warnings: ReadonlyArray<string>
}

const formless: Form = { field: "", message: "", warnings: [] }

export const form = (format: Provider.Request["format"], traits: Traits): Form => {
  if (format === undefined) return formless
  const name = format.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64)
  if (traits.format !== "json_schema") {
    const content = `Answer with nothing but JSON that fits this JSON Schema: ${write(format.schema)}`
    return {
      field: traits.format === "none" ? "" : fields({ response_format: { type: "json_object" } }),
      message: write({ role: "user", content }),
      warnings: [
        "the form of the answer is not sent as a schema, which this server does not take: the model is told of it"
      ]
    }
  }
  const strict = traits.strict === "tools-and-format"
  const { isStrict, schema, why }: Narrow.Narrowed = strict
    ? Narrow.narrowFormat(format.schema, traits.dialect === "gemini" ? "gemini" : "openai")
    : traits.dialect === "gemini"
    ? Narrow.narrowFormat(format.schema, "gemini")
    : { schema: format.schema, isStrict: false }
  return {
    field: fields({
      response_format: { type: "json_schema", json_schema: { name, schema, ...(strict ? { strict: isStrict } : {}) } }
    }),
    message: "",
    warnings: why === undefined ? [] : [`the form of the answer is not sent as strict: ${why}`]
  }
}
