import { assert, describe, it } from "@effect/vitest"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Tool from "toolfold/Tool"

const search = Tool.make("search", {
  description: "Search for something",
  input: {
    query: Schema.String.annotate({ description: "What to look for" }),
    limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))),
    since: Schema.Date.pipe(Schema.optionalKey)
  },
  output: Schema.Struct({ query: Schema.String, limit: Schema.Int }),
  tags: ["web"],
  handler: ({ limit, query }) => Effect.succeed({ query, limit })
})

const now = Tool.make("now", { handler: () => Effect.succeed("12:00") })

describe("a declaration", () => {
  it.effect("SPEC-01 a parameter that is left out takes its default, not null", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* search({ query: "cats" }), { query: "cats", limit: 10 })
    }))

  it.effect("SPEC-02 a parameter that is given keeps its value", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* search({ query: "cats", limit: 3 }), { query: "cats", limit: 3 })
    }))

  it("SPEC-04 a parameter with a default is a property, is not required, and shows its default", () => {
    assert.deepStrictEqual(Tool.schema(search), {
      name: "search",
      description: "Search for something",
      input_schema: {
        type: "object",
        properties: {
          query: { type: "string", description: "What to look for" },
          limit: { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, default: 10 },
          since: { type: "string" }
        },
        required: ["query"]
      }
    })
  })

  it.effect("SPEC-13 a tool without input is called without one, and advertises an empty object", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const tool = Tool.make("seen", { handler: (input) => Effect.sync(() => String(seen.push(input))) })
      yield* tool()
      assert.deepStrictEqual(seen, [{}])
      assert.deepStrictEqual(Tool.schema(tool), { name: "seen", input_schema: { type: "object", properties: {} } })
    }))

  it("SPEC-15 the lines of a refusal show the allowed values, the pattern, and the field that is missing", () => {
    const tool = Tool.make("t", {
      input: {
        unit: Schema.Literals(["metric", "imperial"]),
        zip: Schema.String.check(Schema.isPattern(/^\d{4}$/u)),
        city: Schema.String
      },
      handler: () => Effect.succeed("")
    })
    assert.deepStrictEqual(Tool.validate(tool, { unit: "kelvin", zip: "x" }), {
      valid: false,
      errors: [
        'unit: Expected "metric" | "imperial", got string "kelvin"',
        'zip: Expected a string matching the RegExp ^\\d{4}$, got string "x"',
        "city: Missing key"
      ]
    })
  })

  it("that is fine with its arguments says so", () => {
    assert.deepStrictEqual(Tool.validate(search, '{"query":"cats"}'), { valid: true, errors: [] })
    assert.deepStrictEqual(Tool.validate(search, "{query}"), {
      valid: false,
      errors: ["the arguments are not valid JSON"]
    })
    assert.deepStrictEqual(Tool.validate(search, "[1]").valid, false)
  })

  it("has its options as annotations, and each as a combinator", () => {
    const dressed = now.pipe(
      Tool.tags("clock"),
      Tool.tags("time", "local"),
      Tool.category("time"),
      Tool.title("The time"),
      Tool.readOnly(true),
      Tool.destructive(false),
      Tool.idempotent(true),
      Tool.openWorld(false),
      Tool.strict(true),
      Tool.meta({ owner: "us" }),
      Tool.serial(true)
    )
    assert.deepStrictEqual(Tool.tags(dressed), ["clock", "time", "local"])
    assert.strictEqual(Tool.categoryOf(dressed), "time")
    assert.strictEqual(
      Services.get(dressed.annotations as Services.Context<WireTool.Title>, WireTool.Title),
      "The time"
    )
    assert.deepStrictEqual(
      [WireTool.Readonly, WireTool.Destructive, WireTool.Idempotent, WireTool.OpenWorld, WireTool.Strict].map((key) =>
        Services.get(dressed.annotations, key)
      ),
      [true, false, true, false, true]
    )
    assert.isTrue(Tool.isSerial(dressed))
    assert.isFalse(Tool.isSerial(now))
    assert.isTrue(Tool.hasAnyTag(dressed, ["other", "time"]))
    assert.isFalse(Tool.hasAnyTag(now, ["time"]))
    assert.isTrue(Tool.schema(dressed).strict)
  })

  it.effect("stays callable whatever is done to it", () =>
    Effect.gen(function*() {
      const changed = Tool.serial(now, true).annotate(WireTool.Title, "t").annotateMerge(Services.empty())
        .addDependency(WireTool.Meta)
      assert.isTrue(Tool.isTool(changed))
      assert.strictEqual(yield* Effect.provideService(changed(), WireTool.Meta, {}), "12:00")
      assert.isTrue(Tool.isTool(now.setNeedsApproval(true)))
      assert.isFalse(Tool.isTool({ name: "now" }))
    }))
})

describe("the advertised schema", () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`p${(at * 7) % 40}`, Schema.String]))
  const deep = Tool.make("deep", {
    input: {
      zeta: Schema.Struct({ ...many, alpha: Schema.Array(Schema.Struct({ z: Schema.String, a: Schema.Int })) }),
      alpha: Schema.Finite
    },
    handler: () => Effect.succeed("")
  })

  it("SCH-10 keeps the order of declaration at every depth and count", () => {
    const { properties } = Tool.schema(deep).input_schema as {
      properties: Record<string, { properties: Record<string, never> }>
    }
    assert.deepStrictEqual(Object.keys(properties), ["zeta", "alpha"])
    assert.deepStrictEqual(Object.keys(properties.zeta!.properties), [...Object.keys(many), "alpha"])
  })

  it("SCH-10 has the same bytes in every process", () => {
    const program = `
      import * as Effect from "effect/Effect"
      import * as Schema from "effect/Schema"
      import * as Tool from "toolfold/Tool"
      const tool = Tool.make("t", {
        input: { b: Schema.Struct({ z: Schema.Int, a: Schema.String }), a: Schema.Literals(["y", "x"]) },
        handler: () => Effect.succeed("")
      })
      process.stdout.write(JSON.stringify(Tool.schema(tool)))`
    const once = () =>
      execFileSync(process.execPath, ["--conditions=@toolfold/source", "--input-type=module", "-e", program], {
        encoding: "utf8"
      })
    const bytes = once()
    assert.strictEqual(once(), bytes)
    assert.include(bytes, '"properties":{"b":{"type":"object","properties":{"z"')
  })

  it("is made once", () => {
    assert.strictEqual(Tool.schema(deep), Tool.schema(deep))
  })

  it("has an object at the root also for a schema with a name of its own, and for one that refers to itself", () => {
    class Named extends Schema.Class<Named>("Named")({ a: Schema.String }) {}
    const named = Tool.make("named", { input: Named, handler: ({ a }) => Effect.succeed(a) })
    assert.deepStrictEqual(Tool.schema(named).input_schema, {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"]
    })

    interface Tree {
      readonly label: string
      readonly children: ReadonlyArray<Tree>
    }
    const Tree: Schema.Codec<Tree> = Schema.Struct({
      label: Schema.String,
      children: Schema.Array(Schema.suspend(() => Tree))
    }).annotate({ identifier: "Tree" })
    const tree = Tool.make("tree", { input: Tree, handler: ({ label }) => Effect.succeed(label) })
    const { $defs, properties, type } = Tool.schema(tree).input_schema
    assert.strictEqual(type, "object")
    assert.deepStrictEqual(Object.keys(properties as object), ["label", "children"])
    assert.deepStrictEqual(Object.keys($defs as object), ["Tree"])
  })

  it("shows the defaults of nested structs", () => {
    const nested = Tool.make("nested", {
      input: { page: Schema.Struct({ size: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(20))) }) },
      handler: () => Effect.succeed("")
    })
    assert.deepStrictEqual((Tool.schema(nested).input_schema.properties as any).page.properties.size.default, 20)
  })
})

describe("a tool of ours", () => {
  it.effect("goes into a toolkit of effect/ai unchanged, as declaration and as handler", () =>
    Effect.gen(function*() {
      const kit = Toolkit.make(search, now)
      const layer = kit.toLayer({ search, now: () => now() })
      const results = yield* Effect.gen(function*() {
        const { handle } = yield* kit
        // The parameters are JSON here, as a provider would deliver them.
        const wire = { query: "cats", since: "2024-02-29T00:00:00.000Z" } as never
        return yield* Stream.runCollect(yield* handle("search", wire))
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(Array.from(results, ({ encodedResult, isFailure }) => [encodedResult, isFailure]), [[{
        query: "cats",
        limit: 10
      }, false]])
    }))
})
