import { assert, describe, it } from "@effect/vitest"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as DynamicTool from "toolfold/dynamic/DynamicTool"
import * as Subject from "toolfold/Subject"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

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

describe("what a tool touches, and whether it needs a yes", () => {
  const copy = Tool.make("copy", {
    input: { from: Schema.String, to: Schema.String.pipe(Schema.optionalKey) },
    handler: () => Effect.succeed("")
  })
  const problems = (tool: Tool.Any) => {
    const layer = ToolRegistry.layer(tool) as Layer.Layer<ToolRegistry.ToolRegistry, ToolRegistry.RegistryError>
    return Effect.map(Effect.flip(Effect.scoped(Layer.build(layer))), ({ problems }) => problems)
  }

  it("are options, combinators and queries", () => {
    const subjects = ({ from }: { readonly from: string }) => [Subject.fileRead(from)]
    const declared = Tool.make("copy", {
      input: { from: Schema.String },
      sensitive: true,
      subjects,
      handler: () => Effect.succeed("")
    })
    const piped = copy.pipe(Tool.sensitive(true), Tool.subjects(subjects))
    const told = Tool.subjects(Tool.sensitive(copy, true), subjects)
    for (const tool of [declared, piped, told]) {
      assert.isTrue(Tool.isTool(tool) && Tool.isSensitive(tool))
      assert.deepStrictEqual(Tool.subjectsOf(tool, { from: "a" }), [{ kind: "file-read", value: "a" }])
    }
    assert.isFalse(Tool.isSensitive(copy))
    assert.isFalse(Tool.isSensitive(piped.pipe(Tool.sensitive(false))))
    assert.deepStrictEqual(Tool.subjectsOf(copy, { from: "a" }), [])
  })

  it("a parameter names one subject or several, a command by its words, and none where it is left out", () => {
    const tool = Tool.make("run", {
      input: {
        argv: Schema.Array(Schema.String),
        files: Schema.Array(Schema.String),
        url: Schema.URL,
        account: Schema.Int,
        out: Schema.NullOr(Schema.String).pipe(Schema.optionalKey)
      },
      subjects: [
        { kind: "command", pathArg: "argv" },
        { kind: "file-read", pathArg: "files" },
        { kind: "network", pathArg: "url" },
        { kind: "account", pathArg: "account" },
        { kind: "file-write", pathArg: "out" }
      ],
      handler: () => Effect.succeed("")
    })
    const input = { argv: ["ls", "a b"], files: ["a", "b"], url: new URL("https://example.com/x"), account: 7 }
    const named = [
      Subject.command("ls 'a b'"),
      Subject.fileRead("a"),
      Subject.fileRead("b"),
      Subject.network("https://example.com/x"),
      Subject.make("account", "7")
    ]
    assert.deepStrictEqual(Tool.subjectsOf(tool, input), named)
    assert.deepStrictEqual(Tool.subjectsOf(tool, { ...input, out: null }), named)
    assert.deepStrictEqual(Tool.subjectsOf(tool, { ...input, out: "o" }), [...named, Subject.fileWrite("o")])
    const none = Object.create({ out: "inherited" })
    assert.deepStrictEqual(Tool.subjectsOf(tool, none), [])
  })

  it("what cannot be a subject is an error, and not nothing", () => {
    const one = Tool.subjects(copy, [{ kind: "file-read", pathArg: "from" }])
    assert.throws(
      () => Tool.subjectsOf(one, { from: {} } as never),
      "from is an object with no keys, which names no file-read"
    )
    assert.throws(() => Tool.subjectsOf(one, { from: ["a", null] } as never), "names no file-read")
    const bad = Tool.subjects(copy, () => [undefined as never])
    assert.throws(() => Tool.subjectsOf(bad, { from: "a" }), 'subjects of tool "copy" did not give subjects')
  })

  it.effect("a pathArg that is no field is refused at assembly, with everything else that is wrong", () =>
    Effect.gen(function*() {
      const wrong = copy.pipe(
        Tool.timeout(0),
        Tool.subjects([{ kind: "file-read", pathArg: "path" as "from" }, { kind: "file-write", pathArg: "to" }])
      )
      assert.deepStrictEqual(yield* problems(wrong), [
        'tool "copy": subjects: pathArg "path" is no field of the input; there are: from, to',
        'tool "copy": timeout must be a positive finite duration, got 0'
      ])
      const junk = (subjects: unknown) => problems(Tool.subjects(copy, subjects as never))
      assert.deepStrictEqual(yield* junk("path"), [
        'tool "copy": subjects must be a function, or a list of { kind, pathArg }, got "path"'
      ])
      assert.deepStrictEqual(yield* junk([]), [
        'tool "copy": subjects must be a function, or a list of { kind, pathArg }, got an array of 0'
      ])
      assert.deepStrictEqual(yield* junk(["from", { kind: "", pathArg: "from" }]), [
        'tool "copy": subjects must be a list of { kind, pathArg }, and holds "from"',
        'tool "copy": subjects must be a list of { kind, pathArg }, and holds an object with kind, pathArg'
      ])
      assert.deepStrictEqual(yield* problems(Tool.sensitive(copy, "yes" as never)), [
        'tool "copy": sensitive must be true or false, got "yes"'
      ])
    }))

  it.effect("a pathArg is a field of the decoded input, or of a JSON Schema where there is none", () =>
    Effect.gen(function*() {
      const renamed = Tool.make("renamed", {
        input: Schema.Struct({ path: Schema.String }).pipe(Schema.encodeKeys({ path: "file_path" })),
        subjects: [{ kind: "file-read", pathArg: "path" }],
        handler: () => Effect.succeed("")
      })
      const dynamic = DynamicTool.make("dynamic", {
        jsonSchema: { type: "object", properties: { path: { type: "string" } } },
        handler: () => Effect.succeed("")
      })
      const theirs = WireTool.make("theirs", { parameters: Schema.Struct({ path: Schema.String }) })
      const fine = Tool.subjects(dynamic, [{ kind: "file-read", pathArg: "path" }])
      yield* Effect.scoped(Layer.build(ToolRegistry.layer(renamed, fine)))
      const read = [Subject.fileRead("a")]
      assert.deepStrictEqual(Tool.subjectsOf(renamed, { path: "a" }), read)
      assert.deepStrictEqual(Tool.subjectsOf(fine, { path: "a" }), read)
      assert.deepStrictEqual(
        Tool.subjectsOf(Tool.subjects(theirs, [{ kind: "file-read", pathArg: "path" }]), { path: "a" }),
        read
      )
      assert.deepStrictEqual(yield* problems(Tool.subjects(dynamic, [{ kind: "file-read", pathArg: "file" }])), [
        'tool "dynamic": subjects: pathArg "file" is no field of the input; there are: path'
      ])
    }))

  it.effect("a tool of effect/ai that needs approval is sensitive, and tells for a call", () =>
    Effect.gen(function*() {
      const parameters = Schema.Struct({ n: Schema.Int })
      const always = WireTool.make("always", { parameters, needsApproval: true })
      const never = WireTool.make("never", { parameters, needsApproval: false })
      const sync = WireTool.make("sync", {
        parameters,
        needsApproval: ({ n }, { toolCallId }) => n > 1 && toolCallId === "c"
      })
      const later = WireTool.make("later", { parameters, needsApproval: ({ n }) => Effect.succeed(n > 1) })
      const tools = [always, never, sync, later, Tool.sensitive(never, true), Tool.sensitive(later, true)]
      assert.deepStrictEqual(tools.map(Tool.isSensitive), [true, false, true, true, true, true])
      const needed = (n: number) =>
        Effect.forEach(
          tools,
          (tool) => Tool.needsApproval<WireTool.Any>(tool, { n }, { toolCallId: "c", messages: [] })
        )
      assert.deepStrictEqual(yield* needed(1), [true, false, false, false, true, true])
      assert.deepStrictEqual(yield* needed(2), [true, false, true, true, true, true])
    }))

  it.effect("are in a registry, by name", () =>
    Effect.gen(function*() {
      const registry = yield* ToolRegistry.ToolRegistry
      assert.deepStrictEqual(["copy", "s_publish", "publish"].map(registry.isSensitive), [undefined, true, undefined])
      assert.deepStrictEqual([registry.meta("s_copy")?.sensitive, registry.meta("s_publish")?.sensitive], [false, true])
    }).pipe(
      Effect.provide(
        ToolRegistry.layer(copy, Tool.make("publish", { sensitive: true, handler: () => Effect.succeed("") })).pipe(
          ToolRegistry.prefix("s_")
        )
      )
    ))
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
