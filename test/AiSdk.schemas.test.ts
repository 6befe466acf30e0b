// What of a schema reaches a provider? Never less than it would refuse, and never a rule that the tool does not have.
import { Validator } from "@cfworker/json-schema"
import { assert, describe, it } from "@effect/vitest"
import { collected } from "../scripts/schemas.ts"
import * as Narrow from "../src/providers/internal/narrow.ts"

type Json = Narrow.Narrowed["schema"]

const isNode = (u: unknown): u is Json => typeof u === "object" && u !== null && !Array.isArray(u)

/** All schemas within a schema. */
const nodes = (u: unknown): ReadonlyArray<Json> => {
  if (!isNode(u)) return []
  const byName = ["properties", "$defs"].flatMap((key) => isNode(u[key]) ? Object.values(u[key]) : [])
  const listed = ["anyOf", "oneOf", "prefixItems"].flatMap((key) =>
    Array.isArray(u[key]) ? u[key] as Array<unknown> : []
  )
  return [u, ...[...byName, ...listed, u.items, u.additionalProperties].flatMap(nodes)]
}

/** The capitals of Gemini's own form. */
const lower = (u: unknown): unknown =>
  Array.isArray(u)
    ? u.map(lower)
    : isNode(u)
    ? Object.fromEntries(
      Object.entries(u).map(([key, value]) => [
        key,
        key === "type" && typeof value === "string" ? value.toLowerCase() : lower(value)
      ])
    )
    : u

const accepts = (schema: Json, value: unknown): boolean => new Validator(schema, "2020-12").validate(value).valid

const geminiWords = new Set(
  ("$defs $ref type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf " +
    "properties additionalProperties required propertyOrdering").split(" ")
)

/** Arguments as a strict model writes them: what is left out is null. */
const spelled = (u: unknown, schema: unknown): unknown => {
  if (!isNode(schema) || !isNode(schema.properties) || !isNode(u)) return u
  const names = Object.keys(schema.properties)
  return Object.fromEntries(names.map((name) => [name, u[name] === undefined ? null : u[name]]))
}

describe("a schema of a real tool", () => {
  const tools = collected()?.flatMap(({ file, tools }) => tools.map((tool) => ({ ...tool, file })))
  const sample = (tools ?? []).filter((_, at) => at % 10 === 0).map((tool) => {
    const schema = lower(tool.inputSchema) as Json
    return { ...tool, schema, valid: tool.valid.filter((value) => accepts(schema, value)) }
  })
  const judged = sample.filter(({ schema_does_not_compile, valid }) =>
    schema_does_not_compile === undefined && valid.length > 0
  )

  for (const dialect of ["openai", "anthropic", "gemini"] as const) {
    it(`still takes what it took when it is narrowed for ${dialect}`, ({ skip }) => {
      if (tools === undefined) skip("no data")
      const refused = judged.flatMap(({ name, schema, valid }) => {
        const made = Narrow.narrow(schema, dialect, false).schema
        return valid.every((value) => accepts(made, value)) && made.type === "object" ? [] : [name]
      })
      assert.deepStrictEqual(refused, [])
      assert.isTrue(tools === undefined || judged.length > 100)
    })
  }

  it("says nothing to Gemini in words that it does not know", ({ skip }) => {
    if (tools === undefined) skip("no data")
    const unknown = sample.flatMap(({ schema }) =>
      nodes(Narrow.narrow(schema, "gemini", false).schema).flatMap((node) =>
        Object.keys(node).filter((key) => !geminiWords.has(key))
      )
    )
    assert.deepStrictEqual(unknown, [])
  })

  it("closes every object and names every property where OpenAI is to be strict, or says why it cannot", ({ skip }) => {
    if (tools === undefined) skip("no data")
    const wrong = sample.flatMap(({ name, schema }) => {
      const made = Narrow.narrow(schema, "openai", true)
      if (!made.isStrict) return made.why === undefined ? [name] : []
      return nodes(made.schema).every((node) =>
          !isNode(node.properties) ||
          (node.additionalProperties === false &&
            JSON.stringify(node.required) === JSON.stringify(Object.keys(node.properties)))
        )
        ? []
        : [name]
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("takes null for what is left out where it is strict", ({ skip }) => {
    if (tools === undefined) skip("no data")
    const flat = judged.filter(({ schema }) =>
      nodes(schema).every((node) => node === schema || node.properties === undefined)
    )
    const refused = flat.flatMap(({ name, schema, valid }) => {
      const made = Narrow.narrow(schema, "openai", true)
      const known = valid.filter((value) =>
        isNode(value) && Object.keys(value).every((key) => isNode(schema.properties) && key in schema.properties)
      )
      return made.isStrict && !known.every((value) => accepts(made.schema, spelled(value, made.schema))) ? [name] : []
    })
    assert.deepStrictEqual(refused, [])
  })
})
