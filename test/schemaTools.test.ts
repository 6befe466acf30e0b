// What becomes of arguments that a schema judges, from what the model wrote to what it is told.
import { assert, describe, it } from "@effect/vitest"
import * as WireTool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { pipe } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Getter from "effect/SchemaGetter"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { brief, converse, faults, logged } from "./utils.ts"

const { call } = ScriptedModel

/** A tool that keeps what its handler got. */
const keeper = <const I extends Schema.Struct.Fields>(name: string, input: I) => {
  const seen: Array<Schema.Struct.Type<I>> = []
  const tool = Tool.make(name, {
    input: Schema.Struct(input),
    handler: (given) => Effect.sync(() => `${seen.push(given as Schema.Struct.Type<I>)}`)
  })
  return { seen, tool }
}

/** What one call with these arguments comes to: the call on record, its outcome, and what the handler got. */
const called = <const I extends Schema.Struct.Fields>(input: I, raw: string) => {
  const { seen, tool } = keeper("t", input)
  return Effect.map(converse([tool], [[call("t", raw)], "done"]), ({ turns: [turn] }) => ({
    call: turn?.calls[0],
    outcome: turn?.outcomes[0],
    repairs: turn?.calls[0]?.repairs,
    seen
  }))
}

/** What a model is told line by line of arguments that do not fit. */
const lines = (outcome: Turn.Outcome | undefined) =>
  outcome?._tag === "Failure" && outcome.kind === "invalid-input" ? outcome.message.split("\n").slice(1, -1) : []

const filter = (message: string) => Schema.makeFilter((text: string) => text.startsWith("ok") ? undefined : message)

/** A text that is judged by an Effect. */
const judged = (judge: (text: string) => Effect.Effect<undefined | string>) =>
  Schema.String.pipe(Schema.decode({ decode: Getter.checkEffect<string>(judge), encode: Getter.passthrough() }))

describe("a schema", () => {
  it.effect("SPEC-07 that refuses an argument lets the model try again: two requests more, one of them accepted", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("greet", { name: Schema.String, age: Schema.Int })
      const result = yield* converse([tool], [
        [call("greet", { name: "Bo", age: "old" })],
        [call("greet", { name: "Bo", age: 3 })],
        "done"
      ])
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        'assistant: greet#call_1({"name":"Bo","age":"old"})',
        'tool: #call_1!The arguments do not fit:\n- age: Expected number, got string "old"\nCorrect them and call again.',
        'assistant: greet#call_2({"name":"Bo","age":3})',
        "tool: #call_2=1",
        "assistant: done"
      ])
      assert.deepStrictEqual([seen, result.usage.calls], [[{ name: "Bo", age: 3 }], 3])
    }))

  it.effect("SPEC-08 whose own check says no keeps the handler from running, in the check's words, before watchers", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("t", { word: Schema.String.check(filter("must begin with ok")) })
      const events: Array<object> = []
      const result = yield* converse([tool], [[call("t", { word: "no" })], "done"], {
        onToolCall: (event) => void events.push(event)
      })
      const message =
        'The arguments do not fit:\n- word: must begin with ok, got string "no"\nCorrect them and call again.'
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{
        _tag: "Failure",
        kind: "invalid-input",
        class: "semantic",
        message,
        issues: [{ path: "word", message: 'must begin with ok, got string "no"' }]
      }])
      assert.deepStrictEqual(seen, [])
      const asked = { tool: "t", id: "call_1", args: { word: "no" } }
      assert.deepStrictEqual(events, [
        { event: "start", ...asked },
        { event: "end", ...asked, result: message, error: true, durationMs: 0 }
      ])
    }))

  it.effect("SPEC-09 SPEC-10 that takes its time is asked after the start was shown; a run cancelled meanwhile runs no handler and asks no more", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const waiting = yield* Deferred.make<void>()
      const slow = judged(() =>
        Effect.andThen(
          Effect.sync(() => void order.push("judged")),
          Effect.andThen(Deferred.succeed(waiting, undefined), Effect.never)
        )
      )
      const { seen, tool } = keeper("t", { word: slow })
      yield* Effect.gen(function*() {
        const handle = yield* AgentLoop.start(AgentLoop.make("bot"), {
          prompt: "go",
          onToolCall: ({ event }) => void order.push(event)
        })
        yield* Deferred.await(waiting)
        const result = yield* handle.cancel
        assert.deepStrictEqual([result._tag, faults(result.messages)], ["Cancelled", []])
        assert.deepStrictEqual([order, seen], [["start", "judged", "end"], []])
        assert.strictEqual((yield* ScriptedModel.Script).requests.length, 1)
      }).pipe(
        Effect.provide(ToolRegistry.layer(tool)),
        Effect.provide(ScriptedModel.layer([call("t", { word: "x" })], "never"))
      )
    }).pipe(Effect.scoped))

  it.effect("SPEC-11 reports what its checks say in the order of declaration, and asks those after the first that fails", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const noting = (name: string) =>
        Schema.String.check(Schema.makeFilter(() => {
          asked.push(name)
          return `${name} says no`
        }))
      const late = judged((text) => Effect.as(Effect.yieldNow, text === "ok" ? undefined : "late says no"))
      const { outcome } = yield* called(
        { zeta: noting("zeta").check(filter("zeta says more")), late, alpha: noting("alpha") },
        '{"alpha":"1","late":"2","zeta":"3"}'
      )
      assert.deepStrictEqual(lines(outcome), [
        '- zeta: zeta says no, got string "3"',
        '- zeta: zeta says more, got string "3"',
        '- late: late says no, got string "2"',
        '- alpha: alpha says no, got string "1"'
      ])
      assert.deepStrictEqual(asked.slice(-2), ["zeta", "alpha"])
    }))

  it.effect("SPEC-12 takes arguments by name and gives them in the order of declaration; one that nobody uses shifts nothing", () =>
    Effect.gen(function*() {
      const { seen } = yield* called(
        { zeta: Schema.Int, unused: Schema.optionalKey(Schema.Int), alpha: Schema.Int },
        '{"alpha":1,"zeta":2}'
      )
      assert.deepStrictEqual(seen.map((input) => Object.entries(input)), [[["zeta", 2], ["alpha", 1]]])
    }))

  it.effect("SPEC-15 names what it allows: the values, the pattern, the field that is missing", () =>
    Effect.gen(function*() {
      const { outcome } = yield* called(
        {
          unit: Schema.Literals(["c", "f"]),
          code: Schema.String.check(Schema.isPattern(/^[a-z]{3}$/u)),
          city: Schema.String
        },
        '{"unit":"kelvin","code":"A1"}'
      )
      assert.deepStrictEqual(lines(outcome), [
        '- unit: Expected "c" | "f", got string "kelvin"',
        '- code: Expected a string matching the RegExp ^[a-z]{3}$, got string "A1"',
        "- city: Missing key"
      ])
    }))

  it.effect("SPEC-16 takes 1.0 as an integer, 1.5 as none, and an integer as a number", () =>
    Effect.gen(function*() {
      const input = { whole: Schema.Int, any: Schema.Finite }
      assert.deepStrictEqual((yield* called(input, '{"whole":1.0,"any":3}')).seen, [{ whole: 1, any: 3 }])
      assert.deepStrictEqual(lines((yield* called(input, '{"whole":1.5,"any":1.5}')).outcome), [
        "- whole: Expected an integer, got number 1.5"
      ])
    }))

  it.effect("SPEC-17 counts code points, as what it advertises does", () =>
    Effect.gen(function*() {
      const input = { flag: Schema.String.check(Schema.isMinCodePoints(2), Schema.isMaxCodePoints(3)) }
      assert.deepStrictEqual((yield* called(input, '{"flag":"😀😀😀"}')).seen, [{ flag: "😀😀😀" }])
      assert.deepStrictEqual(lines((yield* called(input, '{"flag":"😀"}')).outcome), [
        '- flag: Expected a string with at least 2 code points, got string "😀"'
      ])
      assert.deepStrictEqual(Tool.schema(keeper("t", input).tool).input_schema.properties, {
        flag: { type: "string", minLength: 2, maxLength: 3 }
      })
    }))

  it.effect("SPEC-18 tells every error at once with its exact path, and after twenty how many more there are", () =>
    Effect.gen(function*() {
      const Item = Schema.Struct({ name: Schema.String, tags: Schema.Array(Schema.String) })
      const { outcome } = yield* called(
        { items: Schema.Array(Item), by: Schema.Struct({ who: Item }) },
        '{"items":[{"name":1,"tags":["a",2]},{"tags":true}],"by":{"who":{"name":null,"tags":[[]]}}}'
      )
      assert.deepStrictEqual(outcome?._tag === "Failure" && outcome.issues, [
        { path: "items[0].name", message: "Expected string, got number 1" },
        { path: "items[0].tags[1]", message: "Expected string, got number 2" },
        { path: "items[1].name", message: "Missing key" },
        { path: "items[1].tags", message: "Expected array, got boolean true" },
        { path: "by.who.name", message: "Expected string, got null" },
        { path: "by.who.tags[0]", message: "Expected string, got an array of 0" }
      ])
      const many = yield* called(
        { list: Schema.Array(Schema.Boolean) },
        JSON.stringify({ list: Array.from({ length: 23 }, (_, at) => at) })
      )
      assert.deepStrictEqual(lines(many.outcome), [
        ...Array.from({ length: 20 }, (_, at) => `- list[${at}]: Expected boolean, got number ${at}`),
        "- … and 3 more like these"
      ])
      assert.strictEqual(many.outcome?._tag === "Failure" && many.outcome.issues?.length, 23)
    }))

  it.effect("SPEC-19 ignores keys that it does not know, at every depth", () =>
    Effect.gen(function*() {
      const input = { at: Schema.Struct({ x: Schema.Int }) }
      const { call, seen } = yield* called(input, '{"at":{"x":1,"extra":2},"more":3}')
      assert.deepStrictEqual([seen, call?.repairs], [[{ at: { x: 1 } }], []])
    }))

  it("SPEC-15 advertises a pattern with and without the u flag, and none that JSON Schema would read otherwise", () => {
    const patterns = [/^[a-z]+$/, /^[a-z]+$/u, /^x$/i, new RegExp("^\\-$")]
    const properties = patterns.map((pattern) => {
      const tool = Tool.make("t", {
        input: { at: Schema.String.check(Schema.isPattern(pattern)) },
        handler: () => Effect.succeed("")
      })
      return Tool.schema(tool).input_schema.properties
    })
    assert.deepStrictEqual(properties, [
      { at: { type: "string", pattern: "^[a-z]+$" } },
      { at: { type: "string", pattern: "^[a-z]+$" } },
      { at: { type: "string" } },
      { at: { type: "string" } }
    ])
  })

  it("SPEC-20 advertises a document that is one: an object at the root, with no reference that leads nowhere", () => {
    interface Tree {
      readonly kids: ReadonlyArray<Tree>
    }
    const Tree: Schema.Codec<Tree> = Schema.Struct({ kids: Schema.Array(Schema.suspend(() => Tree)) }).annotate({
      identifier: "a tree/of ~kids"
    })
    const { input_schema } = Tool.schema(
      keeper("t", {
        tree: Tree,
        either: Schema.Union([Schema.String, Schema.Array(Schema.Finite)]),
        maybe: Schema.NullOr(Schema.Int).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
        unit: Schema.Literals(["c", "f"]),
        any: Schema.Record(Schema.String, Schema.Unknown)
      }).tool
    )
    assert.strictEqual(input_schema.type, "object")
    assert.deepStrictEqual(wrong(input_schema, input_schema), [])
    assert.deepStrictEqual(JSON.parse(JSON.stringify(input_schema)), input_schema)
  })
})

type Node = Record<string, unknown>
const types = ["object", "array", "string", "number", "integer", "boolean", "null"]
const isNode = (u: unknown): u is Node => typeof u === "object" && u !== null && !Array.isArray(u)

/** What is wrong with a JSON Schema document, by the keywords that a schema of effect can become. */
const wrong = (node: unknown, root: Node, path = "#"): ReadonlyArray<string> => {
  if (!isNode(node)) return typeof node === "boolean" ? [] : [`${path} is no schema`]
  const found: Array<string> = []
  for (const [key, value] of Object.entries(node)) {
    const here = `${path}/${key}`
    const below = isNode(value) ? Object.entries(value) : Array.isArray(value) ? [...value.entries()] : []
    if (["properties", "patternProperties", "$defs"].includes(key)) {
      for (const [name, part] of below) found.push(...wrong(part, root, `${here}/${name}`))
    } else if (["anyOf", "oneOf", "allOf", "prefixItems"].includes(key)) {
      if (below.length === 0) found.push(`${here} is empty`)
      for (const [at, part] of below) found.push(...wrong(part, root, `${here}/${at}`))
    } else if (["items", "additionalProperties", "propertyNames", "not"].includes(key)) {
      found.push(...wrong(value, root, here))
    } else if (key === "type") {
      if (![value].flat().every((type) => types.includes(String(type)))) found.push(`${here} is ${String(value)}`)
    } else if (key === "required") {
      for (const name of value as ReadonlyArray<string>) {
        if (!isNode(node.properties) || !Object.hasOwn(node.properties, name)) found.push(`${here} names ${name}`)
      }
    } else if (key === "$ref") {
      const keys = decodeURIComponent(String(value)).split("/").slice(1)
      const target = keys.reduce<unknown>(
        (at, key) => isNode(at) ? at[key.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined,
        root
      )
      if (!isNode(target)) found.push(`${here} leads nowhere`)
    } else if (key === "enum" && !(Array.isArray(value) && value.length > 0)) found.push(`${here} allows nothing`)
  }
  return found
}

describe("arguments that nearly fit", () => {
  const retain = { content: Schema.String, tags: Schema.Array(Schema.String), note: Schema.optionalKey(Schema.String) }

  it.effect("ARG-06 a list as a text of JSON is read as the list where the schema says list, and recorded", () =>
    Effect.gen(function*() {
      const raw = String.raw`{"content":"m","tags":"[\"test\",\"debug\"]"}`
      const { call, seen } = yield* called(retain, raw)
      assert.deepStrictEqual(seen, [{ content: "m", tags: ["test", "debug"] }])
      assert.deepStrictEqual(call, {
        id: "call_1",
        name: "t",
        raw,
        input: { content: "m", tags: ["test", "debug"] },
        repairs: [String.raw`tags: read the string "[\"test\",\"debug\"]" as an array`]
      })
    }))

  it.effect("ARG-06 a text that is no list is refused, and a text that may be a text stays one", () =>
    Effect.gen(function*() {
      const refused = yield* called(retain, '{"content":"m","tags":"test"}')
      assert.deepStrictEqual([lines(refused.outcome), refused.repairs, refused.seen], [
        ['- tags: Expected array, got string "test"'],
        [],
        []
      ])
      const kept = yield* called(retain, '{"content":"m","tags":[],"note":"[1,2]"}')
      assert.deepStrictEqual([kept.seen, kept.repairs], [[{ content: "m", tags: [], note: "[1,2]" }], []])
      const both = yield* called(retain, '{"content":"m","tags":"[]","note":"[1,2]"}')
      assert.deepStrictEqual([both.seen, both.repairs], [[{ content: "m", tags: [], note: "[1,2]" }], [
        'tags: read the string "[]" as an array'
      ]])
    }))

  it.effect("ARG-08 null for what may be left out is left out, at every depth, and null that is meant stays", () =>
    Effect.gen(function*() {
      const search = {
        query: Schema.String,
        limit: Schema.optionalKey(Schema.Finite),
        sort: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("asc"))),
        parent: Schema.NullOr(Schema.String)
      }
      const flat = yield* called(search, '{"query":"cats","limit":null,"sort":null,"parent":null}')
      assert.deepStrictEqual([flat.seen, flat.repairs], [[{ query: "cats", sort: "asc", parent: null }], [
        "limit: read null as absent",
        "sort: read null as absent"
      ]])
      const nested = yield* called(
        { list: Schema.Array(Schema.Struct(search)) },
        '{"list":[{"query":"a","parent":"p"},{"query":"b","limit":null,"parent":null}]}'
      )
      assert.deepStrictEqual(nested.seen, [
        { list: [{ query: "a", sort: "asc", parent: "p" }, { query: "b", sort: "asc", parent: null }] }
      ])
      assert.deepStrictEqual(nested.repairs, ["list[1].limit: read null as absent"])
      assert.deepStrictEqual(lines((yield* called(search, '{"query":null,"parent":null}')).outcome), [
        "- query: Expected string, got null"
      ])
    }))

  it.effect("are on record in the turn and at the end of the call, not at its start", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("t", { n: Schema.Int, on: Schema.Boolean })
      const raw = '```json\n{"n":"5","on":"true"}\n```'
      const events = yield* AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Stream.runCollect,
        Effect.provide(ToolRegistry.layer(tool)),
        Effect.provide(ScriptedModel.layer([call("t", raw)], "done"))
      )
      const repairs = [
        "removed a code fence",
        'n: read the string "5" as a number',
        'on: read the string "true" as a boolean'
      ]
      const asked = { id: "call_1", name: "t", raw }
      const repaired = { ...asked, input: { n: 5, on: true }, repairs }
      const calls = Array.from(events).flatMap((event): ReadonlyArray<readonly [string, unknown]> =>
        event._tag === "Result"
          ? [[event._tag, event.result.turns[0]?.calls[0]]]
          : "call" in event
          ? [[event._tag, event.call]]
          : []
      )
      assert.deepStrictEqual(calls, [
        ["CallStart", { ...asked, input: { n: "5", on: "true" }, repairs: repairs.slice(0, 1) }],
        ["CallEnd", repaired],
        ["Result", repaired]
      ])
      assert.deepStrictEqual(seen, [{ n: 5, on: true }])
    }))

  it.effect("ARG-10 in an answer that was cut off are not run and not repaired, and what is kept can be sent again", () =>
    Effect.gen(function*() {
      const raws = [
        '{"path":"README.md","content":"# Title\\n| a | b |\\n|--',
        '{"path":"a.txt"}',
        '{"path":"a.txt","content":null}',
        '```json\n{"path":"a.txt"}\n```',
        '"{\\"path\\":\\"a.txt\\"}"',
        ""
      ]
      const { seen, tool } = keeper("write_file", { path: Schema.String, content: Schema.optionalKey(Schema.String) })
      for (const raw of raws) {
        const result = yield* converse([tool], [{ says: ["let me", call("write_file", raw)], finish: "length" }])
        assert.deepStrictEqual([result._tag, result._tag === "Refused" && result.reason], ["Refused", "length"])
        assert.deepStrictEqual(result.turns[0]?.calls.map(({ raw, repairs }) => [raw, repairs]), [[raw, []]])
        assert.strictEqual(
          brief(result.messages).at(-1),
          "tool: #call_1!This call was cancelled: the model's answer was cut off, so no call of it was run"
        )
        const next = yield* converse([tool], ["done"], { messages: result.messages, prompt: "go on" })
        assert.deepStrictEqual([next._tag, faults(next.messages)], ["Completed", []])
      }
      assert.deepStrictEqual(seen, [])
    }))

  it.effect("ARG-19 with half a surrogate pair reach the handler as they came, and the record can be stored", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("t", { text: Schema.String, more: Schema.Record(Schema.String, Schema.String) })
      const result = yield* converse([tool], [
        [call("t", String.raw`{"text":"a\uD83D","more":{"k\uDE00":"v"}}`)],
        "done"
      ])
      assert.deepStrictEqual(seen, [{ text: "a\uD83D", more: { "k\uDE00": "v" } }])
      const encoded = yield* Schema.encodeEffect(Schema.toCodecJson(Schema.Array(Turn.Turn)))(result.turns)
      assert.doesNotThrow(() => JSON.stringify(encoded))
    }))
})

describe("a model that does not learn", () => {
  const failing = '{tool:"X"}'

  it.effect("LOOP-05 ends the run after so many misfits in a row, and the last turn says what was wrong", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("t", { n: Schema.Int })
      const result = yield* converse([tool], [
        [call("t", failing)],
        [call("t", "{{tool:1}}")],
        [call("t", { n: "many" })],
        "never"
      ], { maxConsecutiveToolErrors: 3, maxTurns: 30 })
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit], [
        "LimitReached",
        "tool-errors"
      ])
      assert.deepStrictEqual(
        result.turns.map(({ outcomes: [outcome] }) => outcome?._tag === "Failure" && outcome.kind),
        [
          "invalid-json",
          "invalid-json",
          "invalid-input"
        ]
      )
      const last = result.turns.at(-1)?.outcomes.at(-1)
      assert.deepStrictEqual(last?._tag === "Failure" && last.issues, [
        { path: "n", message: 'Expected number, got string "many"' }
      ])
      assert.deepStrictEqual([seen, faults(result.messages)], [[], []])
    }))

  it.effect("LOOP-05 starts anew with every call that fits", () =>
    Effect.gen(function*() {
      const { seen, tool } = keeper("t", { n: Schema.Int })
      const twice = [[call("t", failing)], [call("t", failing)]]
      const result = yield* converse([tool], [...twice, [call("t", { n: 1 })], ...twice, "done"], {
        maxConsecutiveToolErrors: 3
      })
      assert.deepStrictEqual([result._tag, seen], ["Completed", [{ n: 1 }]])
    }))
})

describe("an option", () => {
  const plain = Tool.make("t", { input: { path: Schema.String }, handler: ({ path }) => Effect.succeed(path) })
  const key = ({ path }: { readonly path: string }) => `file ${path}`
  const policy = Schedule.recurs(1)

  it("is told, piped and given first, and its query shows it", () => {
    const told = Tool.make("t", {
      input: { path: Schema.String },
      timeout: "5 seconds",
      retry: policy,
      concurrency: 2,
      conflictKey: key,
      returnDirect: true,
      maxResultSize: 10,
      handler: ({ path }) => Effect.succeed(path)
    })
    const piped = plain.pipe(
      Tool.timeout("5 seconds"),
      Tool.retry(policy),
      Tool.concurrency(2),
      Tool.conflictKey(key),
      Tool.returnDirect(true),
      Tool.maxResultSize(10)
    )
    const first = [
      Tool.timeout(plain, "5 seconds"),
      Tool.retry(plain, policy),
      Tool.concurrency(plain, 2),
      Tool.conflictKey(plain, key),
      Tool.returnDirect(plain, true),
      Tool.maxResultSize(plain, 10)
    ]
    const queries = [
      Tool.timeoutOf,
      Tool.retryOf,
      Tool.concurrencyOf,
      Tool.conflictKeyOf,
      Tool.isReturnDirect,
      Tool.maxResultSizeOf
    ]
    const all = [Duration.seconds(5), policy, 2, key, true, 10]
    assert.deepStrictEqual(queries.map((query) => query(told)), all)
    assert.deepStrictEqual(queries.map((query) => query(piped)), all)
    assert.deepStrictEqual(first.map((tool, at) => queries[at]?.(tool)), all)
    assert.deepStrictEqual(queries.map((query) => query(plain)), [
      undefined,
      undefined,
      undefined,
      undefined,
      false,
      undefined
    ])
    assert.deepStrictEqual(Tool.conflictKeyOf(piped)?.({ path: "a" }), "file a")
  })

  it("retry: true is a policy, and false is none, also where one was declared", () => {
    assert.isTrue(Schedule.isSchedule(Tool.retryOf(Tool.retry(plain, true))))
    assert.isUndefined(Tool.retryOf(plain.pipe(Tool.retry(true), Tool.retry(false))))
  })

  it.effect("SPEC-06 timeout is shown by the tool and its registry, and a plain call does not know it", () =>
    Effect.gen(function*() {
      const slow = Tool.make("slow", {
        timeout: "1 second",
        handler: () => Effect.as(Effect.sleep("1 minute"), "done")
      })
      const registry = yield* Effect.provide(
        Effect.map(ToolRegistry.ToolRegistry, (it) => it),
        ToolRegistry.layer(slow)
      )
      assert.deepStrictEqual([Tool.timeoutOf(slow), registry.timeout("slow"), registry.effectiveTimeout("slow")], [
        Duration.seconds(1),
        Duration.seconds(1),
        Duration.seconds(1)
      ])
      assert.isUndefined(registry.timeout("gone"))
      const called = yield* Effect.forkChild(slow())
      yield* TestClock.adjust(0)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(called), "done")
    }))

  const x = Tool.make("x", { handler: () => Effect.succeed("") })
  const refused = (...tools: ReadonlyArray<typeof x>) =>
    Effect.map(Effect.flip(Layer.build(ToolRegistry.layer(...tools))), ({ problems }) => problems)

  it.effect("SPEC-28 SPEC-29 that makes no sense is refused at assembly, each of them and all at once", () =>
    Effect.gen(function*() {
      const durations = [["5s", '"5s"'], [-1, "-1"], [0, "0"], [NaN, "NaN"], [Infinity, "Infinity"]] as const
      for (const [timeout, shown] of durations) {
        assert.deepStrictEqual(yield* refused(Tool.timeout(x, timeout as number)), [
          `tool "x": timeout must be a positive finite duration, got ${shown}`
        ])
      }
      for (const [retry, shown] of [[-1, "-1"], ["x", '"x"']] as const) {
        assert.deepStrictEqual(yield* refused(Tool.retry(x, retry as never)), [
          `tool "x": retry must be a Schedule or true, got ${shown}`
        ])
      }
      const y = Tool.make("y", {
        timeout: -1,
        retry: "x" as never,
        concurrency: 0,
        maxResultSize: 1.5,
        conflictKey: 3 as never,
        handler: () => Effect.succeed("")
      })
      assert.deepStrictEqual(
        yield* Effect.map(
          Effect.flip(Layer.build(ToolRegistry.layer(y, Tool.concurrency(x, NaN), x))),
          ({ problems }) => problems
        ),
        [
          "duplicate tool names: x",
          'tool "y": timeout must be a positive finite duration, got -1',
          'tool "y": retry must be a Schedule or true, got "x"',
          'tool "y": concurrency must be a positive whole number, got 0',
          'tool "y": maxResultSize must be a positive whole number, got 1.5',
          'tool "y": conflictKey must be a function, got 3',
          'tool "x": concurrency must be a positive whole number, got NaN'
        ]
      )
    }))

  it.effect("SPEC-29 timeout that makes no sense is refused of an agent and of a registry too; none, and 2.7 ms, are fine", () =>
    Effect.gen(function*() {
      for (const [timeout, shown] of [[-1, "-1"], [0, "0"], [NaN, "NaN"], ["5s", '"5s"']] as const) {
        const problem = `timeout must be a positive finite duration, got ${shown}`
        assert.throws(() => AgentLoop.make("a", { timeout: timeout as number }), `agent "a": ${problem}`)
        const layer = ToolRegistry.layer(x).pipe(ToolRegistry.defaultTimeout(timeout as number))
        assert.deepStrictEqual((yield* Effect.flip(Layer.build(layer))).problems, [`registry: ${problem}`])
      }
      assert.isUndefined(AgentLoop.make("a", { timeout: undefined }).timeout)
      assert.deepStrictEqual(AgentLoop.make("a", { timeout: 2.7 }).timeout, Duration.millis(2.7))
      const layer = ToolRegistry.layer(
        Tool.timeout(x, 2.7),
        Tool.make("y", { timeout: undefined, retry: undefined, handler: () => Effect.succeed("") })
      ).pipe(ToolRegistry.defaultTimeout(3.5))
      const registry = yield* Effect.provide(Effect.map(ToolRegistry.ToolRegistry, (it) => it), layer)
      assert.deepStrictEqual([registry.effectiveTimeout("x"), registry.timeout("y"), registry.effectiveTimeout("y")], [
        Duration.millis(2.7),
        undefined,
        Duration.millis(3.5)
      ])
    }))
})

describe("the options of a tool of effect/ai", () => {
  const theirs = WireTool.make("theirs", {
    parameters: Schema.Struct({ path: Schema.String }),
    success: Schema.String,
    failure: Tool.failureClass(Schema.String, "transient")
  })

  const serving = <T extends typeof theirs>(
    tool: T,
    handler: (input: { readonly path: string }) => Effect.Effect<string, string>
  ) => {
    const kit = Toolkit.make(tool as typeof theirs)
    return ToolRegistry.fromToolkit(kit).pipe(Layer.provide(kit.toLayer({ theirs: handler })))
  }
  const answers = (...paths: ReadonlyArray<string>) =>
    Effect.flatMap(ToolRegistry.ToolRegistry, (registry) =>
      Effect.forEach(
        paths,
        (path) => registry.answer(Turn.call({ id: path, name: "theirs", params: { path } }), Context.callScope()),
        { concurrency: "unbounded" }
      ))
  const values = (outcomes: ReadonlyArray<Turn.Outcome>) => outcomes.map(Turn.told)

  /** A handler that says when it runs, and how many run with it. */
  const traced = () => {
    let running = 0
    const peaks: Array<number> = []
    const handler = ({ path }: { readonly path: string }) =>
      Effect.gen(function*() {
        peaks.push(++running)
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        running--
        return path
      })
    return { handler, peak: () => Math.max(...peaks) }
  }

  it.effect("hold: the deadline, and trying again", () =>
    Effect.gen(function*() {
      let tries = 0
      const tool = pipe(theirs, Tool.timeout("1 second"), Tool.retry(Schedule.recurs(2)))
      const layer = serving(tool, ({ path }) =>
        Effect.suspend(() =>
          ++tries === 1 ? Effect.never : tries === 2 ? Effect.fail("down") : Effect.succeed(path)
        ))
      const answered = yield* Effect.forkChild(Effect.provide(answers("a"), layer))
      yield* TestClock.adjust(0)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([values(yield* Fiber.join(answered)), tries], [["a"], 3])
    }))

  it.effect("hold: how many at a time, and which not at the same time", () =>
    Effect.gen(function*() {
      const free = traced()
      yield* Effect.provide(answers("a", "b", "b", "c"), serving(theirs, free.handler))
      const limited = traced()
      yield* Effect.provide(answers("a", "b", "b", "c"), serving(Tool.concurrency(theirs, 2), limited.handler))
      const keyed = traced()
      const outcomes = yield* Effect.provide(
        answers("a", "b", "b", "c"),
        serving(Tool.conflictKey(theirs, ({ path }) => path), keyed.handler)
      )
      assert.deepStrictEqual([free.peak(), limited.peak(), keyed.peak()], [4, 2, 3])
      assert.deepStrictEqual(values(outcomes), ["a", "b", "b", "c"])
    }))

  it.effect("hold: how large a result may be, and that it is the answer", () =>
    Effect.gen(function*() {
      const tool = pipe(theirs, Tool.maxResultSize(3), Tool.returnDirect(true))
      const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(serving(tool, ({ path }) => Effect.succeed(path))),
        Effect.provide(ScriptedModel.layer([call("theirs", { path: "abcdef" })]))
      )
      assert.deepStrictEqual([result._tag, result.text], ["Completed", "abc\n[cut: the first 3 of 6 characters]"])
    }))

  it.effect("are refused where they make no sense", () =>
    Effect.gen(function*() {
      const layer = serving(pipe(theirs, Tool.timeout(-1), Tool.concurrency(0)), () => Effect.succeed(""))
      assert.deepStrictEqual((yield* Effect.flip(Layer.build(layer))).problems, [
        'tool "theirs": timeout must be a positive finite duration, got -1',
        'tool "theirs": concurrency must be a positive whole number, got 0'
      ])
    }).pipe(Effect.provide(logged().layer)))
})
