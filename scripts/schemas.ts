// What do the collected schemas and the official suite say, and where do we say otherwise?
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as DynamicTool from "toolfold/dynamic/DynamicTool"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Validator from "../src/dynamic/internal/validator.ts"

/** Where the data is; it is not part of the project. */
export const root = process.env.TOOLFOLD_DATA ?? join(dirname(import.meta.dirname), "../shared/data")

const parse = <A>(file: string): A => JSON.parse(readFileSync(file, "utf8"))

/** A collected tool, with arguments that it takes and arguments that it does not. */
export interface Collected {
  readonly id: string
  readonly name: string
  readonly inputSchema: { readonly [keyword: string]: unknown }
  readonly valid: ReadonlyArray<unknown>
  readonly invalid: ReadonlyArray<{ readonly why: string; readonly arguments: unknown }>
  /** What the collectors' own validator says of a schema that is none. */
  readonly schema_does_not_compile?: string
}

/** The collected tools by file, or nothing where there is no data. */
export const collected = (): ReadonlyArray<{ file: string; tools: ReadonlyArray<Collected> }> | undefined => {
  const folder = join(root, "schemas")
  if (!existsSync(folder)) return undefined
  return readdirSync(folder).filter((file) => /^tools-.*\.json$/.test(file)).sort().map((file) => ({
    file: basename(file, ".json"),
    tools: parse<ReadonlyArray<Collected>>(join(folder, file))
  }))
}

/** A group of tests of the official suite. */
export interface Group {
  readonly file: string
  readonly description: string
  readonly schema: unknown
  readonly tests: ReadonlyArray<{ readonly description: string; readonly data: unknown; readonly valid: boolean }>
}

/** The required tests of the official suite by draft, or nothing where there is no data. */
export const drafts = (): ReadonlyArray<{ draft: string; groups: ReadonlyArray<Group> }> | undefined => {
  const folder = join(root, "json-schema-test-suite/tests")
  if (!existsSync(folder)) return undefined
  return ["draft7", "draft2020-12"].map((draft) => ({
    draft,
    groups: readdirSync(join(folder, draft)).filter((file) => file.endsWith(".json")).sort().flatMap((file) =>
      parse<ReadonlyArray<Omit<Group, "file">>>(join(folder, draft, file)).map((group) => ({
        file: basename(file, ".json"),
        ...group
      }))
    )
  }))
}

/** Where we say otherwise than the data. */
export interface Miss {
  readonly id: string
  readonly what: string
}

const dynamic = (jsonSchema: Collected["inputSchema"]) =>
  DynamicTool.make("tool", { jsonSchema, handler: () => Effect.succeed("") })

/** What a registry refuses of a tool, or nothing. */
const refusal = (tool: ReturnType<typeof dynamic>): Promise<string | undefined> =>
  Layer.build(ToolRegistry.layer(tool)).pipe(
    Effect.scoped,
    Effect.match({ onSuccess: () => undefined, onFailure: ({ problems }) => problems.join("; ") }),
    Effect.runPromise
  )

/** Each tool into a registry of its own, and all of its arguments against it. */
export const checkTools = async (tools: ReadonlyArray<Collected>) => {
  const misses: Array<Miss> = []
  const counts = { refused: 0, valid: 0, accepted: 0, invalid: 0, rejected: 0 }
  for (const { id, inputSchema, invalid, schema_does_not_compile, valid } of tools) {
    const tool = dynamic(inputSchema)
    const refused = await refusal(tool)
    if (refused !== undefined) counts.refused++
    if ((refused === undefined) !== (schema_does_not_compile === undefined)) {
      misses.push({ id, what: `refused: ${refused ?? "not, although it is no schema"}` })
    }
    // The root of a tool is an object, in these words.
    const { type: _, ...said } = inputSchema
    const { type, ...advertised } = Tool.schema(tool).input_schema
    if (refused === undefined && (type !== "object" || JSON.stringify(advertised) !== JSON.stringify(said))) {
      misses.push({ id: `${id} document`, what: "is advertised otherwise than it was given" })
    }
    valid.forEach((given, at) => {
      counts.valid++
      const { errors, valid } = Tool.validate(tool, given)
      if (valid && refused === undefined) counts.accepted++
      else misses.push({ id: `${id} valid ${at}`, what: `not accepted: ${errors.join("; ")}` })
    })
    invalid.forEach(({ arguments: given, why }, at) => {
      counts.invalid++
      if (refused !== undefined || !Tool.validate(tool, given).valid) counts.rejected++
      else misses.push({ id: `${id} invalid ${at}`, what: `accepted although ${why}` })
    })
  }
  return { ...counts, misses }
}

/** Each test of a draft through the validator that dynamic tools have. */
export const checkDraft = (draft: string, groups: ReadonlyArray<Group>) => {
  const misses: Array<Miss> = []
  let total = 0
  for (const { description, file, schema, tests } of groups) {
    const validator = Validator.make(draft === "draft7" ? asDraft7(schema) : schema)
    const [problem] = validator.problems
    for (const test of tests) {
      total++
      const id = `${file} / ${description} / ${test.description}`
      const issues = problem === undefined ? validator.validate(test.data) : []
      if (problem !== undefined) misses.push({ id, what: `refused: ${problem}` })
      else if ((issues.length === 0) !== test.valid) {
        misses.push({
          id,
          what: test.valid ? `not accepted: ${issues.map(({ message }) => message).join("; ")}` : "accepted"
        })
      }
    }
  }
  return { total, misses }
}

// The suite says by its folder which dialect it means.
const asDraft7 = (schema: unknown): unknown =>
  typeof schema === "object" ? { $schema: "http://json-schema.org/draft-07/schema#", ...schema } : schema

/** The ids of misses, by their reason. */
export interface KnownMisses {
  readonly [reason: string]: ReadonlyArray<string>
}

/** The misses that are known of a file or a draft. */
export const knownMisses = (name: string): KnownMisses => {
  const file = join(import.meta.dirname, "known-misses", `${name}.json`)
  return existsSync(file) ? parse(file) : {}
}

/** Why a miss is one. */
export const reasonOf = (known: KnownMisses, id: string): string | undefined =>
  Object.entries(known).find(([, ids]) => ids.includes(id))?.[0]

/** Misses that are not known, and known ones that are none. */
export const compare = (known: KnownMisses, misses: ReadonlyArray<Miss>) => {
  const missed = new Set(misses.map(({ id }) => id))
  return {
    unexpected: misses.filter(({ id }) => reasonOf(known, id) === undefined),
    gone: Object.values(known).flat().filter((id) => !missed.has(id))
  }
}
