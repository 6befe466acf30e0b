import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Names from "../src/providers/internal/names.ts"

const rules = {
  openai: Names.rule("a-zA-Z0-9_-", { most: 64 }),
  gemini: Names.rule("a-zA-Z0-9_.:-", { most: 64, first: "a-zA-Z_" }),
  mistral: Names.rule("a-zA-Z0-9", { least: 9, most: 9 }),
  short: Names.rule("a-z0-9", { most: 2, first: "a-z" }),
  anything: Names.anything
}
const each = Object.entries(rules)
const distinct = (texts: ReadonlyArray<string>) => [...new Set(texts)]

describe("names", () => {
  for (const [provider, rule] of each.filter(([name]) => name !== "short")) {
    it.prop(
      `fit ${provider}, come back as they were, and are never two things`,
      [Schema.Array(Schema.String)],
      ([texts]) => {
        const own = distinct(texts).filter((text) => text !== "")
        const { from, to } = Names.names(rule, own)
        const legal = own.map(to)
        assert.deepStrictEqual(legal.filter((name) => !rule.legal.test(name)), [])
        assert.deepStrictEqual(legal.map(from), own)
        assert.strictEqual(new Set(legal).size, own.length)
        assert.deepStrictEqual(own.map(Names.names(rule, own).to), legal)
      }
    )
  }

  it("stay what they are where they fit, and carry what is readable of them where they do not", () => {
    const { to } = Names.names(rules.openai, ["get_weather", "my.resource/read", "städte"])
    assert.deepStrictEqual(["get_weather", "my.resource/read", "städte"].map(to), [
      "get_weather",
      `my_resource_read_${Names.alias(rules.mistral, "my.resource/read")}`,
      `st_dte_${Names.alias(rules.mistral, "städte")}`
    ])
  })

  it("give way to a tool that is really called what the alias of another would be", () => {
    const taken = Names.alias(rules.openai, "a.b")
    const { from, to } = Names.names(rules.openai, ["a.b", taken])
    assert.strictEqual(to(taken), taken)
    assert.strictEqual(to("a.b"), Names.alias(rules.openai, "a.b", 1))
    assert.deepStrictEqual([from(to("a.b")), from(to(taken))], ["a.b", taken])
  })

  it("of tools that are no longer there are told apart from those that are", () => {
    const { from, to } = Names.names(rules.gemini, ["9lives"])
    assert.match(to("9lives"), /^[a-zA-Z]{1}[a-zA-Z0-9]{8}$/)
    assert.deepStrictEqual([to("old/tool"), to("old/tool")].map(from), ["old/tool", "old/tool"])
    assert.strictEqual(from("never_heard_of"), "never_heard_of")
  })

  it("still differ where hardly any fit", () => {
    const own = Array.from({ length: 60 }, (_, at) => `Tool ${at}`)
    const { to } = Names.names(rules.short, own)
    assert.strictEqual(new Set(own.map(to)).size, 60)
  })
})

describe("ids", () => {
  const given = [
    "call_AbCdEfGhIjKlMnOpQrStUvWx",
    "functions.search:0",
    "toolu_01Ab",
    "x".repeat(66),
    "turn1_0",
    ""
  ]

  for (const [provider, rule] of each.filter(([name]) => name !== "short")) {
    it.prop(`fit ${provider} and belong to one call each`, [Schema.Array(Schema.String)], ([texts]) => {
      const own = [...given, ...texts, ...texts]
      const made = Names.ids(rule)
      const legal = own.map(made.call)
      assert.deepStrictEqual(legal.filter((id) => !rule.legal.test(id)), [])
      assert.strictEqual(new Set(legal).size, own.length)
      assert.deepStrictEqual(legal.map(made.from), own)
      assert.deepStrictEqual(own.map(Names.ids(rule).call), legal)
    })
  }

  it("that fit are left alone, and results follow the latest call of their id", () => {
    const made = Names.ids(rules.openai)
    assert.deepStrictEqual([made.call("call_0"), made.result("call_0")], ["call_0", "call_0"])
    const again = made.call("call_0")
    assert.notStrictEqual(again, "call_0")
    assert.strictEqual(made.result("call_0"), again)
    assert.strictEqual(made.result("unknown"), "unknown")
    assert.strictEqual(made.from(again), "call_0")
  })
})
