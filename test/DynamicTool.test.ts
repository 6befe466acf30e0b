import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as DynamicTool from "toolfold/dynamic/DynamicTool"
import { call } from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Schemas from "../scripts/schemas.ts"
import { brief, converse } from "./utils.ts"

interface Document {
  readonly [keyword: string]: unknown
}

const tool = (jsonSchema: Document) =>
  DynamicTool.make("t", { jsonSchema, handler: (input) => Effect.succeed(JSON.stringify(input)) })

const object = (properties: Document, more: Document = {}): Document => ({ type: "object", properties, ...more })

const errors = (jsonSchema: Document, args: unknown) => Tool.validate(tool(jsonSchema), args).errors

const parsed = (text: string): Document => JSON.parse(text)

const refusals = (jsonSchema: Document) =>
  Layer.build(ToolRegistry.layer(tool(jsonSchema))).pipe(
    Effect.scoped,
    Effect.match({
      onSuccess: () => [],
      onFailure: ({ problems }) => problems.map((problem) => problem.replace('tool "t": its JSON Schema ', ""))
    })
  )

describe("a tool of a JSON Schema", () => {
  const document = object({ city: { type: "string" }, days: { default: 3, type: "integer" } }, { required: ["city"] })

  it.effect("is a tool like any other", () =>
    Effect.gen(function*() {
      const forecast = DynamicTool.make("forecast", {
        description: "Tells the weather",
        jsonSchema: document,
        tags: ["weather"],
        output: Schema.Struct({ text: Schema.String }),
        handler: ({ city }) => Effect.succeed({ text: `Rain in ${city}` })
      })
      assert.deepStrictEqual(yield* forecast({ city: "Bergen" }), { text: "Rain in Bergen" })
      assert.deepStrictEqual(Tool.tags(forecast), ["weather"])
      const { messages } = yield* converse([forecast], [
        [call("forecast", { city: "Bergen" }), call("forecast", { city: 1 })],
        "done"
      ])
      const [, calls, results = ""] = brief(messages)
      assert.strictEqual(calls, 'assistant: forecast#call_1({"city":"Bergen"}) forecast#call_2({"city":1})')
      assert.include(results, '#call_1={"text":"Rain in Bergen"} #call_2!')
      assert.include(results.split("\n"), "- city: Expected string, got number 1")
    }))

  it("advertises the document as it was given, whatever becomes of it", () => {
    const mine = structuredClone(document) as { properties: Record<string, unknown> }
    const forecast = tool({ ...mine, $schema: "http://json-schema.org/draft-07/schema#", "x-ours": [1] })
    delete mine.properties.city
    assert.strictEqual(
      JSON.stringify(Tool.schema(forecast).input_schema),
      JSON.stringify({ ...document, $schema: "http://json-schema.org/draft-07/schema#", "x-ours": [1] })
    )
    assert.deepStrictEqual(Tool.validate(forecast, {}).errors, ["city: Missing key"])
  })

  it("advertises an object at the root where a document leaves that open", () => {
    assert.deepStrictEqual(Tool.schema(tool({})).input_schema, { type: "object" })
    assert.deepStrictEqual(
      Tool.schema(tool({ type: "OBJECT", properties: { a: { type: "STRING" } } })).input_schema,
      object({ a: { type: "STRING" } })
    )
  })

  it.effect("gives its handler a copy of the arguments, with nothing filled in", () =>
    Effect.gen(function*() {
      const seen: Array<DynamicTool.Arguments> = []
      const keeping = DynamicTool.make("keeping", {
        jsonSchema: document,
        handler: (input) => Effect.sync(() => String(seen.push(input)))
      })
      const params = parsed('{"city":"Bergen","more":{"deep":[1]},"__proto__":{"polluted":true}}')
      yield* converse([keeping], [[call("keeping", params)], "done"])
      assert.deepStrictEqual(Object.entries(seen[0]!), Object.entries(params))
      assert.notStrictEqual(seen[0]!.more, params.more)
      assert.isUndefined(seen[0]!.polluted)
    }))
})

describe("arguments", () => {
  it("SPEC-15 the lines of a refusal show the allowed values, the pattern, the bounds, and the field that is missing", () => {
    assert.deepStrictEqual(
      errors(
        object({
          unit: { enum: ["metric", "imperial", 3, null] },
          kind: { const: "a" },
          zip: { type: "string", pattern: "^\\d{4}$" },
          days: { type: "integer", minimum: 1, maximum: 7 },
          share: { exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.25 },
          list: { type: "array", minItems: 2, uniqueItems: true, contains: { type: "string" } },
          map: { type: ["object", "null"], minProperties: 1, propertyNames: { pattern: "^a" } }
        }, { required: ["city", "unit"] }),
        { unit: "kelvin", kind: "b", zip: "x", days: 9, share: 1, list: [1], map: {} }
      ),
      [
        "city: Missing key",
        'unit: Expected "metric" | "imperial" | 3 | null, got string "kelvin"',
        'kind: Expected "a", got string "b"',
        'zip: Expected a string matching the RegExp ^\\d{4}$, got string "x"',
        "days: Expected a value less than or equal to 7, got number 9",
        "share: Expected a value less than 1, got number 1",
        "list: Expected a value with a length of at least 2, got an array of 1",
        'list: Expected an array with at least 1 of {"type":"string"}, got an array of 1',
        "map: Expected a value with at least 1 entry, got an object with no keys"
      ]
    )
  })

  it("SPEC-15 of alternatives, the one that was meant explains the failure", () => {
    const shapes = {
      oneOf: [
        object({ kind: { const: "circle" }, radius: { type: "number" } }, { required: ["kind", "radius"] }),
        object({ kind: { const: "square" }, side: { type: "number" } }, { required: ["kind", "side"] })
      ]
    }
    const schema = object({
      text: { anyOf: [{ type: "string" }, { type: "null" }] },
      shape: shapes,
      either: { anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      both: { oneOf: [{ type: "number" }, { type: "integer" }] },
      other: { not: { type: "string" } },
      closed: object({ a: {} }, { additionalProperties: false }),
      never: false
    })
    assert.deepStrictEqual(
      errors(schema, {
        text: 1,
        shape: { kind: "square" },
        either: {},
        both: 1,
        other: "s",
        closed: { a: 1, b: 2 },
        never: 1
      }),
      [
        "text: Expected string | null, got number 1",
        "shape.side: Missing key",
        "either: Expected a value that fits one of these: (a: Missing key) or (b: Missing key), got an object with no keys",
        "both: Expected a value that fits exactly one of 2 alternatives, not 2 of them, got number 1",
        'other: Expected a value that is not {"type":"string"}, got string "s"',
        "closed.b: Expected no such property; there are a, got number 2",
        "never: Expected no such property, got number 1"
      ]
    )
    assert.deepStrictEqual(errors(schema, { shape: { kind: "line" } }), [
      'shape.kind: Expected "circle" | "square", got string "line"'
    ])
    assert.deepStrictEqual(errors(schema, { shape: 1 }), ["shape: Expected object, got number 1"])
  })

  it("SPEC-16 1.0 is an integer and 1.5 is none; an integer is a number", () => {
    const schema = object({ a: { type: "integer" }, b: { type: "number" } })
    assert.deepStrictEqual(errors(schema, '{"a":1.0,"b":1}'), [])
    assert.deepStrictEqual(errors(schema, { a: 1.5 }), ["a: Expected an integer, got number 1.5"])
    assert.strictEqual(errors(schema, '{"a":1e999}').length, 1)
  })

  it("SPEC-17 the length of a string is its number of code points", () => {
    const schema = object({ a: { type: "string", minLength: 2, maxLength: 2 } })
    assert.deepStrictEqual(errors(schema, { a: "👍👍" }), [])
    assert.deepStrictEqual(errors(schema, { a: "👍" }), [
      'a: Expected a string with at least 2 code points, got string "👍"'
    ])
    assert.deepStrictEqual(errors(schema, { a: "👍👍👍" }), [
      'a: Expected a string with at most 2 code points, got string "👍👍👍"'
    ])
  })

  const item = object({ name: { type: "string" }, tags: { items: { type: "string" } } }, {
    required: ["name"],
    additionalProperties: false
  })
  const order = object({ items: { type: "array", items: item }, note: { type: "string" } })

  it("SPEC-18 all mistakes are told at once, each at its place", () => {
    assert.deepStrictEqual(errors(order, { items: [{ name: 1 }, { tags: ["a", 2], "x/y~z é": 1 }], note: null }), [
      "items[0].name: Expected string, got number 1",
      "items[1].name: Missing key",
      "items[1].tags[1]: Expected string, got number 2",
      "items[1].x/y~z é: Expected no such property; there are name, tags, got number 1",
      "note: Expected string, got null"
    ])
  })

  it.effect("SPEC-18 the model is told the first mistakes of very many", () =>
    Effect.gen(function*() {
      const params = { items: Array.from({ length: 50 }, () => ({ name: 1 })) }
      const { messages } = yield* converse([tool(order)], [[call("t", params)], "done"])
      const lines = brief(messages)[2]!.split("\n").filter((line) => line.startsWith("- "))
      assert.deepStrictEqual(lines, [
        ...Array.from({ length: 20 }, (_, at) => `- items[${at}].name: Expected string, got number 1`),
        "- … and 30 more like these"
      ])
    }))

  it("SPEC-19 keywords that are not known are ignored, and those for numbers pass over what is no number", () => {
    const schema = object({ a: { minimum: 3, maxLength: 1, "x-unit": 7, format: "constructor", deprecated: true } })
    assert.deepStrictEqual(errors(schema, { a: [1] }), [])
    assert.deepStrictEqual(errors(schema, { a: 3 }), [])
    assert.deepStrictEqual(errors(schema, { a: "12" }), [
      'a: Expected a string with at most 1 code points, got string "12"'
    ])
  })

  it("SPEC-20 what a Schema tool advertises is taken as it is, and judges alike", () => {
    interface Tree {
      readonly label: string
      readonly children: ReadonlyArray<Tree>
    }
    const Tree: Schema.Codec<Tree> = Schema.Struct({
      label: Schema.String,
      children: Schema.Array(Schema.suspend(() => Tree))
    }).annotate({ identifier: "Tree" })
    const typed = Tool.make("t", {
      input: {
        text: Schema.String.check(Schema.isPattern(/^[a-z]+$/u)),
        count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
        unit: Schema.Literals(["metric", "imperial"]),
        maybe: Schema.NullOr(Schema.Finite).pipe(Schema.optionalKey),
        limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))),
        pair: Schema.Tuple([Schema.String, Schema.Boolean]).pipe(Schema.optionalKey),
        map: Schema.Record(Schema.String, Schema.Finite).pipe(Schema.optionalKey),
        either: Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ b: Schema.Int })]).pipe(
          Schema.optionalKey
        ),
        tree: Tree.pipe(Schema.optionalKey)
      },
      handler: () => Effect.succeed("")
    })
    const dynamic = tool(Tool.schema(typed).input_schema)
    assert.deepStrictEqual(Tool.schema(dynamic).input_schema, Tool.schema(typed).input_schema)
    const base = { text: "abc", count: 3, unit: "metric" }
    const cases: ReadonlyArray<readonly [valid: boolean, args: object]> = [
      [true, base],
      [false, {}],
      [false, { ...base, text: "ABC" }],
      [false, { ...base, count: 0 }],
      [false, { ...base, count: 1.5 }],
      [false, { ...base, unit: "kelvin" }],
      [true, { ...base, maybe: null }],
      [true, { ...base, maybe: 0.5 }],
      [false, { ...base, maybe: "x" }],
      [true, { ...base, limit: 3 }],
      [false, { ...base, limit: null }],
      [true, { ...base, pair: ["a", true] }],
      [false, { ...base, pair: [true, "a"] }],
      [false, { ...base, pair: ["a"] }],
      [true, { ...base, map: { a: 1 } }],
      [false, { ...base, map: { a: "1" } }],
      [true, { ...base, either: { b: 1 } }],
      [false, { ...base, either: { c: 1 } }],
      [true, { ...base, tree: { label: "a", children: [{ label: "b", children: [] }] } }],
      [false, { ...base, tree: { label: "a", children: [{ label: 1, children: [] }] } }]
    ]
    for (const tool of [typed, dynamic]) {
      assert.deepStrictEqual(cases.map(([, args]) => [Tool.validate(tool, args).valid, args] as const), cases)
    }
  })

  it("have no names but their own", () => {
    const named = parsed(
      '{"type":"object","properties":{"__proto__":{"type":"number"},"constructor":{"type":"string"}},' +
        '"required":["__proto__","constructor"],"additionalProperties":false}'
    )
    assert.deepStrictEqual(errors(named, {}), ["__proto__: Missing key", "constructor: Missing key"])
    assert.deepStrictEqual(errors(named, parsed('{"__proto__":1,"constructor":"a"}')), [])
    assert.deepStrictEqual(errors(named, parsed('{"__proto__":{"x":1},"constructor":"a","valueOf":1}')), [
      "__proto__: Expected number, got an object with x",
      "valueOf: Expected no such property; there are __proto__, constructor, got number 1"
    ])
    assert.deepStrictEqual(errors(object({ toString: { type: "string" } }), {}), [])
    assert.deepStrictEqual(errors(object({ a: { const: parsed('{"__proto__":{}}') } }), { a: {} }).length, 1)
    assert.deepStrictEqual(errors({ dependentRequired: { toString: ["b"] } }, {}), [])
  })

  it("that are very deep or have very many mistakes are refused like any others", () => {
    const deep = `${'{"a":'.repeat(4000)}1${"}".repeat(4000)}`
    assert.strictEqual(errors(object({ a: { $ref: "#" } }), deep).length, 1)
    assert.isAtLeast(
      errors(object({ a: { items: { type: "string" } } }), { a: Array.from({ length: 150_000 }, () => 1) }).length,
      1
    )
  })
})

describe("dialects", () => {
  const draft7 = { $schema: "http://json-schema.org/draft-07/schema#" }

  it("are what $schema says", () => {
    const reference = object({ a: { $ref: "#/definitions/n", minimum: 5 } }, { definitions: { n: { type: "number" } } })
    assert.deepStrictEqual(errors({ ...draft7, ...reference }, { a: 1 }), [])
    assert.strictEqual(errors(reference, { a: 1 }).length, 1)
    assert.strictEqual(
      errors({ $schema: "https://json-schema.org/draft/2019-09/schema", ...reference }, { a: 1 }).length,
      1
    )
    assert.deepStrictEqual(errors({ ...draft7, dependentRequired: { a: ["b"] } }, { a: 1 }), [])
  })

  it("all know lists of items and dependencies, as older documents have them", () => {
    for (const $schema of [undefined, draft7.$schema, "https://json-schema.org/draft/2019-09/schema#"]) {
      const schema = object({ a: { items: [{ type: "string" }], additionalItems: false } }, {
        dependencies: { a: ["b"], c: { required: ["d"] } },
        $schema
      })
      assert.deepStrictEqual(errors(schema, { a: ["x", 1], c: 1 }), [
        "b: Missing key, which comes with a",
        "d: Missing key",
        "a[1]: Expected no such item, got number 1"
      ])
    }
  })
})

describe("a registry", () => {
  it.effect("refuses what leads out of the document, or nowhere", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* refusals(object({
          a: { $ref: "https://example.com/schema.json" },
          b: { $ref: "other.json#/a" },
          c: { $dynamicRef: "file:///etc/passwd" },
          d: { $ref: "http://json-schema.org/draft-07/schema#" },
          e: { $ref: "#/$defs/gone" },
          f: { $ref: "#/$defs/__proto__" }
        }, { $defs: {} })),
        [
          'has a $ref at #/properties/a to "https://example.com/schema.json", which is not in the document: nothing is fetched',
          'has a $ref at #/properties/b to "other.json#/a", which is not in the document: nothing is fetched',
          'has a $dynamicRef at #/properties/c to "file:///etc/passwd", which is not in the document: nothing is fetched',
          'has a $ref at #/properties/d to "http://json-schema.org/draft-07/schema#", which is not in the document: nothing is fetched',
          'has a $ref at #/properties/e to "#/$defs/gone", where nothing is',
          'has a $ref at #/properties/f to "#/$defs/__proto__", where nothing is'
        ]
      )
    }))

  it.effect("refuses $async as a keyword, not as a name", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* refusals(object({ a: { $async: false } }, { $async: true })), [
        'asks at # to be checked with "$async", which is not done',
        'asks at #/properties/a to be checked with "$async", which is not done'
      ])
      assert.deepStrictEqual(yield* refusals(object({ $async: { type: "string" } })), [])
    }))

  it.effect("refuses what no arguments could be held to, all of it at once", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* refusals({
          ...object({
            a: { type: "float" },
            b: { pattern: "(" },
            c: { minLength: -1 },
            d: 3,
            e: { anyOf: [] },
            f: { properties: [] }
          }),
          required: ["a", "constructor"]
        }),
        [
          'requires "constructor" at #, which its properties do not name',
          'has a "type" at #/properties/a that is not one or several of string, number, integer, boolean, null, array, object: "float"',
          'has a pattern at #/properties/b that is no regular expression: "("',
          'has a "minLength" at #/properties/c that is not a whole number that is not negative: -1',
          "has no schema at #/properties/d, but 3",
          "has no list of schemas at #/properties/e/anyOf",
          'has a "properties" at #/properties/f that is not an object of schemas by name: []'
        ]
      )
      assert.deepStrictEqual(yield* refusals(object({}, { required: ["a"], additionalProperties: true })), [])
    }))

  it.effect("refuses a root that is no object, and takes one that may be", () =>
    Effect.gen(function*() {
      const rootless = "is no schema of an object, which arguments always are"
      assert.deepStrictEqual(yield* refusals({ type: "string" }), [rootless])
      assert.deepStrictEqual(yield* refusals({ type: ["array", "null"] }), [rootless])
      assert.deepStrictEqual(yield* refusals(true as unknown as Document), [rootless])
      assert.deepStrictEqual(yield* refusals(null as unknown as Document), ["is no object"])
      assert.deepStrictEqual(yield* refusals({}), [])
      assert.deepStrictEqual(yield* refusals({ type: ["object", "null"] }), [])
      assert.deepStrictEqual(yield* refusals({ properties: {} }), [])
    }))

  it.effect("refuses what is no JSON, what is too deep, and a dialect that it does not know", () =>
    Effect.gen(function*() {
      const round: Record<string, unknown> = { type: "object" }
      round.properties = round
      const deep = Array.from({ length: 101 }).reduce<Document>((inner) => ({ not: inner }), {})
      assert.deepStrictEqual(yield* refusals(round), ["contains itself at #/properties"])
      assert.deepStrictEqual(yield* refusals({ default: () => 1 }), ["is no JSON at #/default: a function"])
      assert.deepStrictEqual(yield* refusals({ default: new Map() }), [
        "is no JSON at #/default: an instance of a class"
      ])
      assert.deepStrictEqual(yield* refusals(deep), ["is nested more than 100 levels deep"])
      assert.deepStrictEqual(yield* refusals({ $schema: "http://json-schema.org/draft-04/schema#" }), [
        'has a dialect that is not known, "http://json-schema.org/draft-04/schema#"; known: draft-07, 2019-09, 2020-12'
      ])
    }))

  it.effect("refuses what could not be checked in finite time", () =>
    Effect.gen(function*() {
      const doubling = Object.fromEntries(
        Array.from({ length: 40 }, (_, at) => {
          const next = { $ref: `#/$defs/d${at + 1}` }
          return [`d${at}`, { allOf: [next, next] }]
        })
      )
      assert.deepStrictEqual(yield* refusals({ $ref: "#" }), [
        "has a reference that leads back to itself, so that checking would not end"
      ])
      assert.deepStrictEqual(yield* refusals({ $ref: "#/$defs/d0", $defs: { ...doubling, d40: {} } }), [
        "has references and alternatives that make more than 10000 checks of one value"
      ])
      assert.deepStrictEqual(yield* refusals(object({ next: { $ref: "#" } })), [])
    }))
})

describe("patterns", () => {
  it("that compile only without the u flag mean the same with it", () => {
    for (
      const [pattern, good, bad] of [
        ["^[\\w-.]+\\@x\\-y$", "a-b.c@x-y", "@x-y"],
        ["^{a}]$", "{a}]", "a"],
        ['^\\_\\%\\"[\\:a]{2}$', '_%":a', '_%"a'],
        ["^[+-\\d]$", "-", ","]
      ] as const
    ) {
      assert.isTrue(Result.isFailure(Result.try(() => new RegExp(pattern, "u"))))
      assert.deepStrictEqual([good, bad].map((text) => new RegExp(pattern).test(text)), [true, false])
      const schema = object({ a: { pattern } })
      assert.deepStrictEqual([good, bad].map((a) => errors(schema, { a }).length), [0, 1])
    }
  })

  it("are not matched on very long strings", () => {
    assert.deepStrictEqual(errors(object({ a: { pattern: "^a*$" } }), { a: "a".repeat(10_001) }), [
      `a: Expected a string with at most 10000 code points, got string "${"a".repeat(60)}…"`
    ])
  })
})

describe("collected schemas", () => {
  const every = 10
  const sample = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter((_, at) => at % every === 0)
  const unknown = (name: string, misses: ReadonlyArray<Schemas.Miss>) =>
    Schemas.compare(Schemas.knownMisses(name), misses).unexpected

  const collected = Schemas.collected()
  for (const { file, tools } of collected ?? []) {
    it(`${file}: arguments are judged as they were collected`, async () => {
      assert.deepStrictEqual(unknown(file, (await Schemas.checkTools(sample(tools))).misses), [])
    })
  }
  if (collected === undefined) it.skip("are judged as they were collected (skipped: no data)", () => undefined)

  const drafts = Schemas.drafts()
  for (const { draft, groups } of drafts ?? []) {
    it(`${draft}: tests of the official suite`, () => {
      assert.deepStrictEqual(unknown(draft, Schemas.checkDraft(draft, sample(groups)).misses), [])
    })
  }
  if (drafts === undefined) it.skip("tests of the official suite (skipped: no data)", () => undefined)
})
