import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Arguments from "../src/internal/arguments.ts"
import * as Codec from "../src/internal/codec.ts"
import * as Explain from "../src/internal/explain.ts"
import * as JsonSchema from "../src/internal/jsonSchema.ts"
import * as Repair from "../src/internal/repair.ts"

const fenced = (body: string, language = "json") => `\`\`\`${language}\n${body}\n\`\`\``
const encoded = (text: string, levels: number): string =>
  levels === 0 ? text : encoded(JSON.stringify(text), levels - 1)

/** What is read of arguments, with the repairs where there are any. */
const read = (params: unknown, options?: { readonly isCutOff?: boolean }) => {
  const { input, repairs } = Arguments.parse(params, options)
  return repairs.length === 0 ? input : { input, repairs }
}

describe("arguments", () => {
  it("ARG-01 that are empty are read as {}", () => {
    for (const params of ["", "   ", "\n", "null", null, undefined]) {
      assert.deepStrictEqual(Arguments.parse(params), {
        input: {},
        ...(typeof params === "string" ? { raw: params } : {}),
        repairs: ["read empty arguments as {}"]
      })
    }
  })

  it("that are data are taken as they are", () => {
    const params = { a: "```json\n{}\n```" }
    assert.deepStrictEqual(Arguments.parse(params), { input: params, repairs: [] })
  })

  it("in a fence of Markdown are read without it", () => {
    const repaired = { input: { a: 1 }, repairs: ["removed a code fence"] }
    const texts = [
      fenced(`{"a":1}`),
      fenced(`{"a":1}`, ""),
      fenced(`{"a":1}`, "JSON"),
      `  ${fenced(`\n{"a":1}\n`)}\n`,
      '```json\r\n{"a":1}\r\n```',
      '```{"a":1}```'
    ]
    for (const text of texts) assert.deepStrictEqual(read(text), repaired, text)
  })

  it("ARG-06 that are encoded twice are read up to three levels deep", () => {
    for (const levels of [1, 2, 3]) {
      assert.deepStrictEqual(read(encoded(`{"a":"1"}`, levels)), {
        input: { a: "1" },
        repairs: ["read double-encoded JSON"]
      })
    }
    assert.deepStrictEqual(read(encoded("{}", 4)), encoded("{}", 3))
    assert.deepStrictEqual(read(fenced(encoded("{}", 1))), {
      input: {},
      repairs: ["removed a code fence", "read double-encoded JSON"]
    })
    assert.deepStrictEqual(read(encoded(fenced("{}"), 1)), {
      input: {},
      repairs: ["read double-encoded JSON", "removed a code fence"]
    })
  })

  it("ARG-03 that are wrong in any other way are not guessed at", () => {
    const texts = [
      `{'a':1}`,
      `{"a":1,}`,
      `{a:1}`,
      `{"a":1`,
      `{"a":1}}`,
      `{"{"tagIds":["a"]}`,
      `{"a":1} // note`,
      `{"a":1}{"b":2}`,
      `Here you are: {"a":1}`,
      `Here you are:\n${fenced("{}")}`,
      fenced("{}") + fenced("{}"),
      fenced(fenced("{}")),
      fenced("[1]"),
      fenced("5"),
      "```json\n{}",
      "``````",
      "```",
      '{"a":NaN}',
      "\uFEFF{}"
    ]
    for (const raw of texts) assert.deepStrictEqual(Arguments.parse(raw), { raw, repairs: [] }, raw)
  })

  it("that are JSON but no object are handed on", () => {
    for (const value of [[1, 2], 5, true, "test", "", "[1,2]", "null"]) {
      const raw = JSON.stringify(value)
      assert.deepStrictEqual(Arguments.parse(raw), { input: value, raw, repairs: [] })
    }
  })

  it("that are an object keep every text in it", () => {
    const value = { a: fenced("{}"), b: encoded("{}", 2), c: "null", d: "", e: "9007199254740993" }
    assert.deepStrictEqual(read(JSON.stringify(value)), value)
  })

  it("ARG-10 that were cut off are not repaired in any way", () => {
    for (const raw of ["", "  ", fenced("{}"), `{"a":"x`]) {
      assert.deepStrictEqual(Arguments.parse(raw, { isCutOff: true }), { raw, repairs: [] })
    }
    for (const params of [null, undefined]) {
      assert.deepStrictEqual(Arguments.parse(params, { isCutOff: true }), { repairs: [] })
    }
    for (const value of [null, "{}", { path: "a.txt" }]) {
      assert.deepStrictEqual(read(JSON.stringify(value), { isCutOff: true }), value)
    }
    assert.deepStrictEqual(read("", { isCutOff: false }), { input: {}, repairs: ["read empty arguments as {}"] })
  })

  it("keep a whole number that no number holds as the text of its digits", () => {
    const kept = (digits: string) => `kept ${digits} as text, because a number would round it`
    assert.deepStrictEqual(read(`{"id":9007199254740993,"ids":[-9007199254740993,1,9007199254740993]}`), {
      input: { id: "9007199254740993", ids: ["-9007199254740993", 1, "9007199254740993"] },
      repairs: [kept("9007199254740993"), kept("-9007199254740993")]
    })
    assert.deepStrictEqual(read(encoded(`{"id":9007199254740993}`, 1)), {
      input: { id: "9007199254740993" },
      repairs: ["read double-encoded JSON", kept("9007199254740993")]
    })
    assert.deepStrictEqual(read(fenced(`{"id":9007199254740993}`)), {
      input: { id: "9007199254740993" },
      repairs: ["removed a code fence", kept("9007199254740993")]
    })
    assert.deepStrictEqual(read(`{"id":10000000000000000}`), {
      input: { id: "10000000000000000" },
      repairs: ["kept 10000000000000000 as text, because a number could round it"]
    })
    const digits = "1".repeat(400)
    assert.deepStrictEqual(read(`{"id":${digits}}`), {
      input: { id: digits },
      repairs: [kept(`${"1".repeat(40)}…`)]
    })
    const many = Array.from({ length: 9 }, (_, at) => String(9007199254740993n + 2n * BigInt(at)))
    assert.deepStrictEqual(read(`[${many.join()}]`), { input: many, repairs: many.slice(0, 5).map(kept) })
  })

  it("keep every number that a number holds, and every key", () => {
    const texts = [
      `{"a":9007199254740991,"b":-9007199254740991}`,
      `{"a":0.12345678901234567890,"b":1e400,"c":1.5e300,"d":-0}`,
      `{"a":"90071992547409931","90071992547409931":1}`,
      `{"a":90071992547409931,"a":1}`
    ]
    for (const text of texts) assert.deepStrictEqual(Arguments.parse(text).input, JSON.parse(text), text)
  })

  it("ARG-13 keep a key called __proto__ as a key, with and without large numbers", () => {
    for (const digits of ["1", "90071992547409931"]) {
      const { input } = Arguments.parse(
        `{"__proto__":{"isAdmin":${digits}},"constructor":{"prototype":{"polluted":1}}}`
      )
      assert.isTrue(Arguments.isObject(input) && Object.getPrototypeOf(input) === Object.prototype)
      assert.deepStrictEqual(Object.keys(input as object), ["__proto__", "constructor"])
      assert.deepStrictEqual([Reflect.get({}, "isAdmin"), Reflect.get({}, "polluted")], [undefined, undefined])
    }
  })

  it("that are too large or nested too deep have no input, and are told from those that are no JSON", () => {
    const nested = (levels: number, inside = "1") => `{"a":${"[".repeat(levels - 1)}${inside}${"]".repeat(levels - 1)}}`
    const large = JSON.stringify("x".repeat(10_485_758))
    const isTooDeep = "The arguments are nested too deep: more than 200 levels."
    const cases: ReadonlyArray<readonly [raw: string, says: string | undefined]> = [
      [large, "The arguments are too large: 10485760 characters, at most 4000000."],
      [" ".repeat(4_000_001), "The arguments are too large: 4000001 characters, at most 4000000."],
      [nested(201), isTooDeep],
      [nested(10_000), isTooDeep],
      ["[".repeat(401), isTooDeep],
      [`{"a":`.repeat(300), isTooDeep],
      [nested(200), undefined],
      [nested(2, JSON.stringify(`\\"${"[".repeat(500)}`)), undefined],
      [`[${"[],".repeat(500)}[]]`, undefined],
      [`{"a":"x`, undefined]
    ]
    for (const [raw, says] of cases) {
      assert.strictEqual(Arguments.tooMuch(raw), says, raw.slice(0, 20))
      if (says !== undefined) assert.deepStrictEqual(Arguments.parse(raw), { raw, repairs: [] })
    }
    assert.isDefined(Arguments.parse(nested(200)).input)
    const hidden = encoded(nested(300), 1)
    assert.deepStrictEqual(read(hidden), JSON.parse(hidden))
  })
})

// -----------------------------------------------------------------------------

const advertised = (fields: Schema.Struct.Fields) => JsonSchema.advertise(Schema.Struct(fields))
const repaired = (fields: Schema.Struct.Fields, input: unknown) => Repair.repair(advertised(fields), input)
const properties = (byName: JsonSchema.JsonSchema, more: JsonSchema.JsonSchema = {}): JsonSchema.JsonSchema => ({
  type: "object",
  properties: byName,
  ...more
})

interface Tree {
  readonly value: number
  readonly children: ReadonlyArray<Tree>
}
const Tree = Schema.Struct({
  value: Schema.Finite,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
}).annotate({ identifier: "Tree" })

const shapes = Schema.Union([
  Schema.TaggedStruct("Circle", { radius: Schema.Finite }),
  Schema.TaggedStruct("Label", { radius: Schema.String, size: Schema.Int })
])

describe("a repair", () => {
  it("reads a text as what the schema has in its place", () => {
    const fields = {
      n: Schema.Finite,
      i: Schema.Int,
      b: Schema.Boolean,
      list: Schema.Array(Schema.Int),
      sub: Schema.Struct({ list: Schema.Array(Schema.Boolean) }),
      map: Schema.Record(Schema.String, Schema.Finite),
      pair: Schema.Tuple([Schema.String, Schema.Finite]),
      level: Schema.Literals([1, 2]),
      maybe: Schema.NullOr(Schema.Finite),
      either: Schema.Union([Schema.Literals(["auto"]), Schema.Finite]),
      any: Schema.Number
    }
    const cases: ReadonlyArray<readonly [input: unknown, output: unknown, repairs: ReadonlyArray<string>]> = [
      [{ n: " 5 " }, { n: 5 }, ['n: read the string " 5 " as a number']],
      [{ n: "-1.5e3" }, { n: -1500 }, ['n: read the string "-1.5e3" as a number']],
      [{ i: "5" }, { i: 5 }, ['i: read the string "5" as a number']],
      [{ i: "5.0" }, { i: 5 }, ['i: read the string "5.0" as a number']],
      [{ b: "True" }, { b: true }, ['b: read the string "True" as a boolean']],
      [{ b: "false" }, { b: false }, ['b: read the string "false" as a boolean']],
      [{ list: '[1,"2"]' }, { list: [1, 2] }, [
        'list: read the string "[1,\\"2\\"]" as an array',
        'list[1]: read the string "2" as a number'
      ]],
      [{ sub: '{"list":"[true]"}' }, { sub: { list: [true] } }, [
        'sub: read the string "{\\"list\\":\\"[true]\\"}" as an object',
        'sub.list: read the string "[true]" as an array'
      ]],
      [{ map: { a: "1", b: 2 } }, { map: { a: 1, b: 2 } }, ['map.a: read the string "1" as a number']],
      [{ pair: ["1", "1"] }, { pair: ["1", 1] }, ['pair[1]: read the string "1" as a number']],
      [{ level: "1" }, { level: 1 }, ['level: read the string "1" as a number']],
      [{ maybe: "1" }, { maybe: 1 }, ['maybe: read the string "1" as a number']],
      [{ either: "1" }, { either: 1 }, ['either: read the string "1" as a number']],
      [{ any: "1" }, { any: 1 }, ['any: read the string "1" as a number']]
    ]
    for (const [input, output, repairs] of cases) {
      const before = structuredClone(input)
      assert.deepStrictEqual(repaired(fields, input), { input: output, repairs })
      assert.deepStrictEqual(input, before)
    }
  })

  it("ARG-06 reads a list that was sent as a text, and leaves a text that looks like a list", () => {
    const fields = {
      content: Schema.String,
      tags: Schema.Array(Schema.String),
      note: Schema.optionalKey(Schema.String)
    }
    assert.deepStrictEqual(repaired(fields, { content: "m", tags: `["test","debug"]` }), {
      input: { content: "m", tags: ["test", "debug"] },
      repairs: ['tags: read the string "[\\"test\\",\\"debug\\"]" as an array']
    })
    for (const input of [{ content: "m", tags: "test" }, { content: "m", tags: [], note: "[1,2]" }]) {
      assert.isUndefined(repaired(fields, input))
    }
  })

  it("ARG-08 reads null as absent where the schema has no null, in nested places too", () => {
    const Search = Schema.Struct({
      query: Schema.String,
      limit: Schema.optionalKey(Schema.Finite),
      sort: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("asc"))),
      parent: Schema.NullOr(Schema.String)
    })
    const asked = { query: "cats", limit: null, sort: null, parent: null }
    assert.deepStrictEqual(Repair.repair(JsonSchema.advertise(Search), asked), {
      input: { query: "cats", parent: null },
      repairs: ["limit: read null as absent", "sort: read null as absent"]
    })
    assert.deepStrictEqual(repaired({ all: Schema.Array(Search) }, { all: [asked] }), {
      input: { all: [{ query: "cats", parent: null }] },
      repairs: ["all[0].limit: read null as absent", "all[0].sort: read null as absent"]
    })
    assert.deepStrictEqual(repaired({ maybe: Schema.NullOr(Search) }, { maybe: asked }), {
      input: { maybe: { query: "cats", parent: null } },
      repairs: ["maybe.limit: read null as absent", "maybe.sort: read null as absent"]
    })
  })

  it("leaves everything else as it is", () => {
    const fields = {
      text: Schema.String,
      n: Schema.Finite,
      i: Schema.Int,
      b: Schema.Boolean,
      list: Schema.Array(Schema.String),
      sub: Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
      map: Schema.Record(Schema.String, Schema.Finite),
      any: Schema.Unknown,
      big: Schema.BigInt,
      mode: Schema.Literals(["1", "true"]),
      either: Schema.Union([Schema.String, Schema.Finite, Schema.Array(Schema.Finite)]),
      optional: Schema.optionalKey(Schema.NullOr(Schema.Finite))
    }
    const inputs: ReadonlyArray<unknown> = [
      { text: "5" },
      { text: "true" },
      { text: "[1]" },
      { text: "{}" },
      { text: 5 },
      { text: null },
      { n: "" },
      { n: "5 apples" },
      { n: "0x10" },
      { n: "05" },
      { n: "+5" },
      { n: ".5" },
      { n: "1_000" },
      { n: "NaN" },
      { n: "Infinity" },
      { n: "1e400" },
      { n: "9007199254740993" },
      { n: "9007199254740993.0" },
      { n: true },
      { n: null },
      { n: [5] },
      { i: "5.5" },
      { i: "9007199254740993" },
      { b: "yes" },
      { b: "1" },
      { b: 1 },
      { list: "test" },
      { list: "a,b" },
      { list: "{}" },
      { list: "[1" },
      { list: "['a']" },
      { list: { 0: "a" } },
      { sub: "[]" },
      { sub: "a" },
      { map: { a: null } },
      { any: "5" },
      { any: "[1]" },
      { any: null },
      { big: "5" },
      { mode: "1" },
      { mode: "true" },
      { either: "5" },
      { either: "[1]" },
      { optional: null },
      { unknown: "5" },
      { unknown: null },
      "5",
      [],
      null
    ]
    for (const input of inputs) assert.isUndefined(repaired(fields, input), JSON.stringify(input))
  })

  it("follows a schema that refers to itself", () => {
    assert.deepStrictEqual(
      Repair.repair(JsonSchema.advertise(Tree), {
        value: "1",
        children: [{ value: 2, children: `[{"value":"3","children":[]}]` }]
      }),
      {
        input: { value: 1, children: [{ value: 2, children: [{ value: 3, children: [] }] }] },
        repairs: [
          'value: read the string "1" as a number',
          'children[0].children: read the string "[{\\"value\\":\\"3\\",\\"children\\":[]}]" as an array',
          'children[0].children[0].value: read the string "3" as a number'
        ]
      }
    )
  })

  it("reads a value by the alternative that its tag names, and none where it is not clear which is meant", () => {
    const fields = { shape: shapes }
    assert.deepStrictEqual(repaired(fields, { shape: { _tag: "Circle", radius: "5" } })?.input, {
      shape: { _tag: "Circle", radius: 5 }
    })
    assert.deepStrictEqual(repaired(fields, { shape: { _tag: "Label", radius: "5", size: "5" } })?.input, {
      shape: { _tag: "Label", radius: "5", size: 5 }
    })
    assert.isUndefined(repaired(fields, { shape: { radius: "5" } }))
    const untagged = {
      one: Schema.Union([Schema.Struct({ a: Schema.Finite }), Schema.Struct({ b: Schema.Finite })])
    }
    assert.deepStrictEqual(repaired(untagged, { one: { b: "5" } })?.input, { one: { b: 5 } })
    assert.isUndefined(repaired(untagged, { one: { a: "x", b: "y" } }))
  })

  it("knows the words of JSON Schema that Effect does not write", () => {
    const cases: ReadonlyArray<readonly [schema: JsonSchema.JsonSchema, input: unknown, output: unknown]> = [
      [properties({ a: { $ref: "#/definitions/N" } }, { definitions: { N: { type: "number" } } }), { a: "1" }, {
        a: 1
      }],
      [properties({ a: { $ref: "#/$defs/a~1b%20c" } }, { $defs: { "a/b c": { type: "number" } } }), { a: "1" }, {
        a: 1
      }],
      [properties({ a: { $ref: "#/$defs/A" } }, { $defs: { A: { $ref: "#/$defs/A" } } }), { a: "1" }, undefined],
      [properties({ a: { $ref: "#/$defs/%" } }), { a: "1" }, undefined],
      [properties({ a: { $ref: "https://example.com/a" } }), { a: "1" }, undefined],
      [properties({ a: { type: ["integer", "null"] } }), { a: "1" }, { a: 1 }],
      [properties({ a: { type: ["integer", "string"] } }), { a: "1" }, undefined],
      [properties({ a: { allOf: [{ type: "number" }, { minimum: 0 }] } }), { a: "1" }, { a: 1 }],
      [properties({ a: { allOf: [{ type: ["string", "number"] }, { type: "number" }] } }), { a: "1" }, { a: 1 }],
      [properties({ a: { oneOf: [{ const: true }, { enum: [1, 2] }] } }), { a: "2" }, { a: 2 }],
      [properties({ a: { const: 1 } }), { a: "1" }, { a: 1 }],
      [properties({ a: { enum: [1, "1"] } }), { a: "1" }, undefined],
      [properties({ a: { prefixItems: [{ type: "number" }], items: { type: "boolean" } } }), { a: ["1", "true"] }, {
        a: [1, true]
      }],
      [properties({ a: {} }), { a: "1" }, undefined],
      [properties({ a: { description: "a number" } }), { a: "1" }, undefined],
      [properties({ a: true }), { a: null }, undefined],
      [{ allOf: [properties({ a: { type: "number" } }), { required: ["a"] }] }, { a: null }, undefined],
      [{ allOf: [properties({ a: { type: "number" } }), { required: ["b"] }] }, { a: null, b: 1 }, { b: 1 }],
      [{ type: "object", additionalProperties: { type: "number" } }, { a: "1" }, { a: 1 }],
      [{}, { a: "1" }, undefined]
    ]
    for (const [schema, input, output] of cases) {
      assert.deepStrictEqual(Repair.repair(schema, input)?.input, output, JSON.stringify(schema))
    }
  })

  it("keeps a large number in a text it reads, and refuses one that is nested too deep", () => {
    assert.deepStrictEqual(repaired({ ids: Schema.Array(Schema.BigInt) }, { ids: "[9007199254740993]" }), {
      input: { ids: ["9007199254740993"] },
      repairs: [
        'ids: read the string "[9007199254740993]" as an array',
        "ids: kept 9007199254740993 as text, because a number would round it"
      ]
    })
    assert.isUndefined(
      repaired({ list: Schema.Array(Schema.Unknown) }, { list: `${"[".repeat(500)}${"]".repeat(500)}` })
    )
  })

  it("ARG-13 keeps a key called __proto__ as a key", () => {
    const schema = { type: "object", additionalProperties: { type: "object", properties: { a: { type: "number" } } } }
    const input: unknown = JSON.parse(`{"__proto__":{"a":"1"},"constructor":{"a":2}}`)
    const found = Repair.repair(schema, input)
    assert.strictEqual(JSON.stringify(found?.input), `{"__proto__":{"a":1},"constructor":{"a":2}}`)
    assert.deepStrictEqual(found?.repairs, ['__proto__.a: read the string "1" as a number'])
    assert.strictEqual(Reflect.get({}, "a"), undefined)
  })

  it("bounds what it records, and gives up where alternatives multiply", () => {
    const list = Array.from({ length: 5_000 }, () => "1")
    const found = repaired({ list: Schema.Array(Schema.Finite) }, { list })
    assert.deepStrictEqual([found?.repairs.length, found?.repairs.at(-1)], [101, "… and 4900 more like these"])
    assert.deepStrictEqual(found?.input, { list: Array(5_000).fill(1) })
    const long = repaired({ map: Schema.Record(Schema.String, Schema.Finite) }, { map: { ["k".repeat(100_000)]: "1" } })
    assert.deepStrictEqual(long?.repairs, [`map.${"k".repeat(60)}…: read the string "1" as a number`])

    const half = (name: string) => properties({ [name]: { type: "number" }, next: { $ref: "#/$defs/Node" } })
    const schema = properties({ next: { $ref: "#/$defs/Node" } }, {
      $defs: { Node: { anyOf: [half("a"), half("b")] } }
    })
    const deep = Array.from({ length: 150 }).reduce<object>((next) => ({ a: "x", b: "1", next }), {})
    const started = performance.now()
    assert.isUndefined(Repair.repair(schema, deep))
    assert.isBelow(performance.now() - started, 5_000)
  })
})

// -----------------------------------------------------------------------------

const varied = Schema.Struct({
  text: Schema.String,
  looksLike: Schema.Literals(["5", "true", "[1]", "{}", "null"]),
  n: Schema.Finite,
  any: Schema.Number,
  i: Schema.optionalKey(Schema.Int),
  b: Schema.Boolean,
  either: Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)]),
  maybe: Schema.optional(Schema.NullOr(Schema.String)),
  list: Schema.Array(Schema.Union([Schema.Literals(["1", 2, true]), Schema.Struct({ a: Schema.String })])),
  map: Schema.Record(Schema.String, Schema.NullOr(Schema.String)),
  pair: Schema.Tuple([Schema.String, Schema.Finite]),
  shape: shapes,
  untagged: Schema.Union([
    Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
    Schema.Struct({ a: Schema.Finite, b: Schema.Int })
  ]),
  big: Schema.BigInt,
  date: Schema.Date
})

const plain = Schema.Struct({
  n: Schema.Finite.check(Schema.isBetween({ minimum: -1e15, maximum: 1e15 })),
  i: Schema.Int,
  b: Schema.Boolean,
  list: Schema.Array(Schema.Int),
  sub: Schema.Struct({ b: Schema.Boolean, list: Schema.Array(Schema.Struct({ i: Schema.Int })) })
})

const everywhere = <S extends Schema.Codec<unknown, unknown>>(schema: S, holds: (json: unknown) => void) =>
  Effect.gen(function*() {
    const seed = Number(process.env.SEED ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
    // oxlint-disable-next-line no-console -- a failure must be found again
    console.log(`seed ${seed} (again: SEED=${seed})`)
    const result = yield* Arbitrary.checkEffect(
      Arbitrary.schema(Schema.toType(schema)),
      (value) =>
        Effect.gen(function*() {
          const json = JSON.parse(JSON.stringify(yield* Codec.jsonCodec(schema).encode(value)))
          yield* Effect.try(() => holds(json))
          yield* Codec.jsonCodec(schema).decode(json)
          return true
        }),
      { runs: 500, seed }
    )
    const failure = Arbitrary.formatCheckFailure(result)
    if (failure !== undefined) assert.fail(failure)
  }) as Effect.Effect<void>

describe("random arguments that fit a schema", () => {
  it.effect("need no repair and get none", () => {
    const schema = JsonSchema.advertise(varied)
    return everywhere(varied, (json) => {
      assert.isUndefined(Repair.repair(schema, json))
      // Numbers beyond 2^53 are kept as text whatever the schema is.
      const { repairs } = Arguments.parse(JSON.stringify(json))
      assert.deepStrictEqual(repairs.filter((repair) => !repair.startsWith("kept ")), [])
    })
  })

  it.effect("are read back where every member was sent as a text", () => {
    const schema = JsonSchema.advertise(plain)
    return everywhere(plain, (json) => {
      const asTexts = Object.fromEntries(
        Object.entries(json as object).map(([key, member]) => [key, JSON.stringify(member)])
      )
      assert.deepStrictEqual(Repair.repair(schema, asTexts)?.input, json)
    })
  })
})

// -----------------------------------------------------------------------------

const told = (field: Schema.Constraint, value: unknown) =>
  toldOf(Schema.Struct({ at: field }), value === absent ? {} : { at: value })

const toldOf = (schema: Schema.Constraint, input: unknown) =>
  Effect.map(
    Codec.jsonCodec(schema).explain(input) as Effect.Effect<ReadonlyArray<Explain.PathIssue>>,
    Explain.lines
  )

const absent = Symbol("absent")

describe("what is told of arguments that do not fit", () => {
  const two = Schema.Union([Schema.Struct({ a: Schema.Int }), Schema.Struct({ b: Schema.Struct({ c: Schema.Int }) })])
  class Point extends Schema.Class<Point>("Point")({ x: Schema.Int }) {}
  const cases: ReadonlyArray<readonly [field: Schema.Constraint, value: unknown, ...lines: ReadonlyArray<string>]> = [
    [Schema.Literals(["a", "b", 3]), "c", 'at: Expected "a" | "b" | 3, got string "c"'],
    [Schema.Literals(["a", "b"]), absent, 'at: Missing key, expected "a" | "b"'],
    [Schema.String, absent, "at: Missing key"],
    [Schema.Finite, absent, "at: Missing key, expected number (a finite number)"],
    [
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
      absent,
      "at: Missing key, expected number (an integer, a value between 1 and 5)"
    ],
    [Schema.Array(Schema.String), absent, "at: Missing key, expected array"],
    [Point, absent, "at: Missing key, expected object (Point)"],
    [
      Schema.String.check(Schema.isMinLength(2)),
      absent,
      "at: Missing key, expected string (a value with a length of at least 2)"
    ],
    [Schema.String.annotateKey({ messageMissingKey: "say where" }), absent, "at: say where"],
    [Schema.String.annotate({ message: "a name, please" }), 1, "at: a name, please, got number 1"],
    [Schema.String.annotate({ identifier: "UserName" }), 1, "at: Expected string (UserName), got number 1"],
    [
      Schema.String.check(Schema.isPattern(/^\d+$/)),
      "x",
      'at: Expected a string matching the RegExp ^\\d+$, got string "x"'
    ],
    [Schema.TemplateLiteral(["v", Schema.Number]), "x", 'at: Expected a string like v<number>, got string "x"'],
    [
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
      9,
      "at: Expected a value between 1 and 5, got number 9"
    ],
    [Schema.Finite.check(Schema.isGreaterThan(3)), 3, "at: Expected a value greater than 3, got number 3"],
    [Schema.Int, 1.5, "at: Expected an integer, got number 1.5"],
    [Schema.Int, "1.5", 'at: Expected number, got string "1.5"'],
    [Schema.Number, "x", 'at: Expected number | "Infinity" | "-Infinity" | "NaN", got string "x"'],
    [
      Schema.Finite,
      "9007199254740993",
      "at: Expected number, got 9007199254740993, which no number holds exactly"
    ],
    [
      Schema.NullOr(Schema.Int),
      "-9007199254740993",
      "at: Expected number | null, got -9007199254740993, which no number holds exactly"
    ],
    [
      Schema.Finite,
      "10000000000000000",
      "at: Expected number, got 10000000000000000, which is beyond 2^53, where numbers are rounded"
    ],
    [Schema.Boolean, "9007199254740993", 'at: Expected boolean, got string "9007199254740993"'],
    [
      Schema.String.check(Schema.isMaxLength(1)),
      "xy",
      'at: Expected a value with a length of at most 1, got string "xy"'
    ],
    [Schema.NonEmptyArray(Schema.Int), [], "at[0]: Missing item, expected number (an integer)"],
    [Schema.Tuple([Schema.String, Schema.Int]), ["a", "b"], 'at[1]: Expected number, got string "b"'],
    [
      Schema.Array(Schema.Struct({ a: Schema.Int })),
      [{ a: 1 }, { a: "x" }, 3],
      'at[1].a: Expected number, got string "x"',
      "at[2]: Expected object, got number 3"
    ],
    [Schema.Record(Schema.String, Schema.Int), { a: 1, b: "x" }, 'at.b: Expected number, got string "x"'],
    [Point, { x: "a" }, 'at.x: Expected number, got string "a"'],
    [Schema.Date, "soon", 'at: Expected a valid Date, got string "soon"'],
    [Schema.optionalKey(Schema.Int), null, "at: Expected number, got null"],
    [Schema.Union([Schema.String, Schema.Struct({ a: Schema.Int })]), 4, "at: Expected string | object, got number 4"],
    [
      Schema.Union([Schema.String, Schema.Struct({ a: Schema.Int })]),
      { a: "x" },
      'at.a: Expected number, got string "x"'
    ],
    [
      two,
      { b: { c: "x" } },
      'at: Fits none of 2 alternatives: a: Missing key, expected number (an integer), or b.c: Expected number, got string "x"'
    ],
    [two, 1, "at: Expected object, got number 1"],
    [shapes, { _tag: "Circle", radius: "x" }, 'at.radius: Expected number, got string "x"'],
    [shapes, { _tag: "Square" }, 'at._tag: Expected "Circle" | "Label", got string "Square"'],
    [shapes, { radius: 1 }, 'at._tag: Missing key, expected "Circle" | "Label"'],
    [shapes, "Circle", 'at: Expected object with _tag "Circle" | object with _tag "Label", got string "Circle"'],
    [
      Schema.String.check(Schema.makeFilter((text) => text === "x" || "must be x")),
      "y",
      'at: must be x, got string "y"'
    ],
    [
      Schema.String.check(Schema.makeFilter((text) => text === "x")),
      "y",
      'at: Expected a value that its check accepts, got string "y"'
    ]
  ]
  for (const [field, value, ...lines] of cases) {
    it.effect(lines.join(" & "), () => Effect.map(told(field, value), (them) => assert.deepStrictEqual(them, lines)))
  }

  it.effect("never shows a value that is redacted, wherever it is", () => {
    const secret = "hunter2"
    const long = Schema.String.check(Schema.isMinLength(50))
    const telling = Schema.String.check(Schema.makeFilter((text) => `${text} is bad`))
    const fields: ReadonlyArray<readonly [Schema.Constraint, unknown]> = [
      [Schema.Redacted(long), secret],
      [Schema.Redacted(Schema.Int), secret],
      [Schema.Redacted(telling), secret],
      [Schema.Redacted(Schema.BigInt), secret],
      [Schema.Redacted(Schema.Struct({ a: Schema.Array(Schema.Int) })), { a: [1, secret] }],
      [Schema.RedactedFromValue(long), secret],
      [Schema.RedactedFromValue(telling), secret],
      [Schema.RedactedFromValue(Schema.Finite), "9007199254740993"],
      [Schema.RedactedFromValue(Schema.Struct({ a: Schema.Int })), { a: secret }],
      [Schema.NullOr(Schema.RedactedFromValue(Schema.Int)), secret],
      [Schema.optional(Schema.RedactedFromValue(Schema.Int)), secret],
      [Schema.Array(Schema.Redacted(Schema.Int)), [secret]],
      [Schema.Record(Schema.String, Schema.Redacted(Schema.Int)), { key: secret }],
      [Schema.Option(Schema.Redacted(Schema.Int)), { _tag: "Some", value: secret }],
      [Schema.suspend(() => Schema.Redacted(Schema.Int)), secret],
      [Schema.Redacted(long, { label: "password" }), secret],
      [
        Schema.Union([Schema.Struct({ a: Schema.Redacted(Schema.Int) }), Schema.Struct({ b: Schema.Int })]),
        { a: secret }
      ]
    ]
    return Effect.forEach(fields, ([field, value]) =>
      Effect.map(told(field, value), (lines) => {
        const text = lines.join("\n")
        assert.include(text, "got a redacted value")
        assert.notInclude(text, secret)
        assert.notInclude(text, "9007199254740993")
      }))
  })

  it.effect("ARG-16 is told of values that JSON does not have, too", () =>
    Effect.gen(function*() {
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      const fields = { n: Schema.Finite, m: Schema.Finite, b: Schema.Finite, c: Schema.Finite }
      assert.deepStrictEqual(yield* toldOf(Schema.Struct(fields), { n: NaN, m: Infinity, b: 1n, c: cyclic }), [
        "n: Expected a finite number, got number NaN",
        "m: Expected a finite number, got number Infinity",
        "b: Expected number, got bigint 1",
        "c: Expected number, got an object with self"
      ])
    }))

  it.effect("is bounded where keys, paths and values are long", () =>
    Effect.gen(function*() {
      const key = "k".repeat(100_000)
      const lines = yield* told(Schema.Record(Schema.String, Schema.Array(Schema.Int)), { [key]: [key] })
      assert.deepStrictEqual(lines, [
        `at.${"k".repeat(60)}…[0]: Expected number, got string "${"k".repeat(60)}…"`
      ])
      const many = yield* told(Schema.Array(Schema.Int), Array(50).fill("x"))
      assert.deepStrictEqual([many.length, many.at(-1)], [21, "… and 30 more like these"])
    }))
})
