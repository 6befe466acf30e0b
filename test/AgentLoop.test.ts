import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Combiner from "effect/Combiner"
import * as Services from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Context from "toolfold/Context"
import * as Gate from "toolfold/Gate"
import * as Stop from "toolfold/Stop"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import type * as Turn from "toolfold/Turn"
import { brief, converse, faults, logged } from "./utils.ts"

const { call } = ScriptedModel

class Memo extends Context.Slots<Memo>()("test/Memo", {
  notes: Context.list(Schema.String),
  last: Context.last(Schema.String, "nothing"),
  count: Context.sum
}) {}

const note = Tool.make("note", {
  input: { text: Schema.String },
  handler: ({ text }) =>
    Effect.gen(function*() {
      const memo = yield* Memo
      yield* memo.write({ notes: [text], last: text, count: 1 })
      return `before: ${memo.get("last")}`
    })
})
const read = Tool.make("read", { handler: () => Effect.map(Memo, (memo) => memo.get("last")) })
const boom = Tool.make("boom", {
  handler: () =>
    Effect.gen(function*() {
      const memo = yield* Memo
      yield* memo.write({ notes: ["lost"], count: 1 })
      return yield* Effect.die(new Error("boom"))
    })
})
const ok = Tool.make("ok", { handler: () => Effect.succeed("fine") })
class Bad extends Schema.TaggedError<Bad>()("Bad", { why: Schema.String }) {}
const bad = Tool.make("bad", { failure: Bad, handler: () => Effect.fail(new Bad({ why: "x" })) })

const outcomes = (turn: Turn.Turn | undefined) =>
  turn?.outcomes.map((outcome) => outcome._tag === "Failure" ? outcome.kind : outcome._tag)
const silent = logged().layer

describe("a batch", () => {
  it.effect("SPEC-37 any tool may write, whether it reads or not", () =>
    Effect.gen(function*() {
      const result = yield* converse([note], [[call("note", { text: "a" })], "done"])
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["a"], last: "a", count: 1 })
    }).pipe(Effect.provide(Memo.layer)))

  for (const concurrency of ["sequential", 8, "unbounded"] as const) {
    it.effect(`SPEC-38 shows every call the start of the turn (${concurrency})`, () =>
      Effect.gen(function*() {
        const result = yield* converse([note, read], [
          [call("note", { text: "a" }), call("read")],
          [call("read")],
          "done"
        ], { concurrency })
        assert.deepStrictEqual(
          result.turns.map((turn) => turn.outcomes.map((outcome) => outcome._tag === "Success" && outcome.value)),
          [
            ["before: nothing", "nothing"],
            ["a"],
            []
          ]
        )
      }).pipe(Effect.provide(Memo.layer)))
  }

  it.effect("SPEC-39 SPEC-50 folds and answers in call order, whoever finishes first", () =>
    Effect.gen(function*() {
      const fastIsDone = yield* Deferred.make<void>()
      const slow = Tool.make("slow", {
        handler: () => Effect.andThen(Deferred.await(fastIsDone), note({ text: "slow" }))
      })
      const fast = Tool.make("fast", {
        handler: () => Effect.tap(note({ text: "fast" }), () => Deferred.succeed(fastIsDone, undefined))
      })
      const result = yield* converse([slow, fast], [[call("slow"), call("fast")], "done"])
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["slow", "fast"], last: "fast", count: 2 })
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        "assistant: slow#call_1({}) fast#call_2({})",
        "tool: #call_1=before: nothing #call_2=before: nothing",
        "assistant: done"
      ])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-40 drops the writes of a call that failed, and keeps its sibling's", () =>
    Effect.gen(function*() {
      const result = yield* converse([note, boom], [[call("boom"), call("note", { text: "kept" })], "done"])
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["kept"], last: "kept", count: 1 })
    }).pipe(Effect.provide([Memo.layer, silent])))

  it.effect("SPEC-41 has nothing of a call that its gate refuses but its record and what a watcher is told", () =>
    Effect.gen(function*() {
      let ran = 0
      const counted = Tool.make("counted", {
        handler: () => Effect.sync(() => ++ran).pipe(Effect.andThen(note({ text: "refused" })))
      })
      const gate = Gate.forTools(["counted"], Gate.deny("not now"))
      const events: Array<object> = []
      const result = yield* converse(
        [counted, note],
        [[call("counted"), call("note", { text: "kept" })], "done"],
        { gate, onToolCall: (event) => event.tool === "counted" ? void events.push(event) : undefined }
      )
      assert.deepStrictEqual(result.turns[0]?.outcomes, [
        { _tag: "Rejected", reason: "not now" },
        {
          _tag: "Success",
          value: "before: nothing",
          writes: [{ slots: "test/Memo", values: { notes: ["kept"], last: "kept", count: 1 } }]
        }
      ])
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["kept"], last: "kept", count: 1 })
      assert.strictEqual(ran, 0)
      assert.deepStrictEqual(events, [
        { event: "start", tool: "counted", id: "call_1", args: {} },
        {
          event: "end",
          tool: "counted",
          id: "call_1",
          args: {},
          result: "This call was refused: not now",
          error: true,
          durationMs: 0
        }
      ])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-44 what a call wrote is in its record, not in what the model is sent, and a failed call has none", () =>
    Effect.gen(function*() {
      const [result, requests] = yield* Effect.gen(function*() {
        const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" })
        return [result, (yield* ScriptedModel.Script).requests] as const
      }).pipe(
        Effect.provide([ToolRegistry.layer(note, boom), silent]),
        Effect.provide(ScriptedModel.layer([call("note", { text: "kept apart" }, "a"), call("boom", {}, "b")], "done"))
      )
      const [good, failed] = result.turns[0]?.outcomes ?? []
      assert.deepStrictEqual(good, {
        _tag: "Success",
        value: "before: nothing",
        writes: [{ slots: "test/Memo", values: { notes: ["kept apart"], last: "kept apart", count: 1 } }]
      })
      assert.isFalse(failed !== undefined && "writes" in failed)
      const told = requests[1]?.messages.filter(({ role }) => role === "tool")
      assert.notInclude(JSON.stringify(told), "kept apart")
      assert.notInclude(JSON.stringify(result.messages.filter(({ role }) => role === "tool")), "kept apart")
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-42 appends what two calls of a turn write, in order, and keeps what was there", () =>
    Effect.gen(function*() {
      const context = Memo.into(Context.empty, { notes: ["old"], count: 10 })
      const result = yield* converse([note], [[call("note", { text: "a" }), call("note", { text: "b" })], "done"], {
        context
      })
      assert.deepStrictEqual(Memo.from(result.context), { notes: ["old", "a", "b"], last: "b", count: 12 })
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-43 counts over three turns to three", () =>
    Effect.gen(function*() {
      const turn = [call("note", { text: "x" })]
      const result = yield* converse([note], [turn, turn, turn, "done"])
      assert.strictEqual(Memo.from(result.context).count, 3)
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-46 a combiner that throws loses that call's writes as a whole, is reported, and the batch stands", () =>
    Effect.gen(function*() {
      class Picky extends Context.Slots<Picky>()("test/Picky", {
        safe: Context.list(Schema.String),
        picky: Context.slot(
          Schema.String,
          Combiner.make<string>((_, that) => {
            if (that === "bad") throw new Error("no")
            return that
          }),
          ""
        )
      }) {}
      const write = Tool.make("write", {
        input: { text: Schema.String },
        handler: ({ text }) =>
          Effect.as(Effect.flatMap(Picky, (picky) => picky.write({ safe: [text], picky: text })), "written")
      })
      const log = logged()
      const result = yield* converse([write], [[
        call("write", { text: "a" }),
        call("write", { text: "bad" }),
        call("write", { text: "b" })
      ], "done"]).pipe(
        Effect.provide([Picky.layer, log.layer])
      )
      assert.deepStrictEqual(Picky.from(result.context), { safe: ["a", "b"], picky: "b" })
      assert.deepStrictEqual(log.lines.map(({ level, message }) => [level, message]), [[
        "Warn",
        "the writes of call call_2 did not fold and are lost"
      ]])
      assert.deepStrictEqual(outcomes(result.turns[0]), ["Success", "Success", "Success"])
    }))

  const traced = () => {
    const events: Array<string> = []
    let running = 0
    let peak = 0
    const tool = (name: string, serial: boolean) =>
      Tool.make(name, {
        serial,
        handler: () =>
          Effect.gen(function*() {
            events.push(`${name}-start`)
            peak = Math.max(peak, ++running)
            yield* Effect.yieldNow
            yield* Effect.yieldNow
            running--
            events.push(`${name}-end`)
            return name
          })
      })
    return { events, tool, peak: () => peak }
  }

  it.effect("SPEC-47 runs its calls one after the other where the agent says so", () =>
    Effect.gen(function*() {
      const { events, tool } = traced()
      yield* converse([tool("a", false), tool("b", false)], [[call("a"), call("b")], "done"], {
        concurrency: "sequential"
      })
      assert.deepStrictEqual(events, ["a-start", "a-end", "b-start", "b-end"])
    }))

  it.effect("SPEC-48 two calls that wait for each other both finish", () =>
    Effect.gen(function*() {
      const one = yield* Deferred.make<void>()
      const two = yield* Deferred.make<void>()
      const a = Tool.make("a", {
        handler: () => Effect.as(Effect.andThen(Deferred.succeed(one, undefined), Deferred.await(two)), "a")
      })
      const b = Tool.make("b", {
        handler: () => Effect.as(Effect.andThen(Deferred.succeed(two, undefined), Deferred.await(one)), "b")
      })
      const result = yield* converse([a, b], [[call("a"), call("b")], "done"])
      assert.deepStrictEqual(outcomes(result.turns[0]), ["Success", "Success"])
    }))

  it.effect("SPEC-49 a serial tool keeps the calls of its batch apart, and without one they overlap", () =>
    Effect.gen(function*() {
      const serial = traced()
      yield* converse([serial.tool("a", true), serial.tool("b", false)], [[call("b"), call("a"), call("b")], "done"])
      assert.strictEqual(serial.peak(), 1)
      const free = traced()
      yield* converse([free.tool("a", false), free.tool("b", false)], [[call("b"), call("a"), call("b")], "done"])
      assert.strictEqual(free.peak(), 3)
    }))

  it.effect("SPEC-51 runs as many calls at a time as the agent allows, and no more", () =>
    Effect.gen(function*() {
      const six = Array.from({ length: 6 }, () => call("a"))
      for (const [concurrency, expected] of [[2, 2], ["unbounded", 6]] as const) {
        const { peak, tool } = traced()
        yield* converse([tool("a", false)], [six, "done"], { concurrency })
        assert.strictEqual(peak(), expected)
      }
    }))

  it.effect("CON-09 of 200 calls that take unequal times runs no more at a time, and answers all in call order", () =>
    Effect.gen(function*() {
      let running = 0
      let peak = 0
      const wait = Tool.make("wait", {
        input: { n: Schema.Int },
        handler: ({ n }) =>
          Effect.gen(function*() {
            peak = Math.max(peak, ++running)
            yield* Effect.sleep((n * 7) % 13)
            running--
            return `waited ${n}`
          })
      })
      const numbers = Array.from({ length: 200 }, (_, n) => n)
      const fiber = yield* Effect.forkChild(
        converse([wait], [numbers.map((n) => call("wait", { n })), "done"], { concurrency: 4 })
      )
      yield* TestClock.adjust("1 minute")
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        result.turns[0]?.outcomes,
        numbers.map((n) => ({ _tag: "Success", value: `waited ${n}`, writes: [] }))
      )
      assert.deepStrictEqual([peak, running, faults(result.messages)], [4, 0, []])
    }))

  it.effect("SPEC-53 comes to the same values and the same context under every concurrency", () =>
    Effect.gen(function*() {
      const batch = [call("note", { text: "a" }), call("read"), call("bad"), call("note", { text: "b" })]
      const results = yield* Effect.forEach(
        ["sequential", 2, "unbounded"] as const,
        (concurrency) => converse([note, read, bad], [batch, "done"], { concurrency })
      )
      const [first, ...others] = results.map(({ context, messages }) => [brief(messages), Memo.from(context)])
      for (const other of others) assert.deepStrictEqual(other, first)
    }).pipe(Effect.provide(Memo.layer)))

  const Locale = Services.Reference<string>("test/Locale", { defaultValue: () => "en" })
  const locale = Tool.make("locale", { handler: () => Effect.map(Locale, (value) => value) })

  it.effect("SPEC-55 every call sees the references of the run, be it one or two, whatever the concurrency", () =>
    Effect.gen(function*() {
      for (const concurrency of ["sequential", 8, "unbounded"] as const) {
        const result = yield* converse([locale], [[call("locale")], [call("locale"), call("locale")], "done"], {
          concurrency
        }).pipe(
          Effect.provideService(Locale, "nb")
        )
        assert.deepStrictEqual(
          result.turns.flatMap((turn) => turn.outcomes.map((outcome) => outcome._tag === "Success" && outcome.value)),
          ["nb", "nb", "nb"]
        )
      }
    }))

  it.effect("SPEC-57 without calls is the answer", () =>
    Effect.gen(function*() {
      const result = yield* converse([], [[]])
      assert.deepStrictEqual([result._tag, result.text, brief(result.messages)], ["Completed", "", ["user: go"]])
    }))

  it.effect("CON-01 a call that fails, dies or interrupts itself leaves its siblings alone, and so does an observer that fails", () =>
    Effect.gen(function*() {
      const dies = Tool.make("dies", { handler: () => Effect.die(new Error("x")) })
      const quits = Tool.make("quits", { handler: () => Effect.interrupt })
      const joins = Tool.make("joins", {
        handler: () =>
          Effect.flatMap(
            Effect.forkChild(Effect.never),
            (fiber) => Effect.andThen(Fiber.interrupt(fiber), Fiber.join(fiber))
          )
      })
      const result = yield* converse(
        [ok, bad, dies, quits, joins],
        [[call("ok"), call("bad"), call("dies"), call("quits"), call("joins"), call("ok")], "done"],
        { onToolCall: ({ event, tool }) => tool === "ok" && event === "end" ? Effect.die("observer") : undefined }
      )
      assert.strictEqual(result._tag, "Completed")
      assert.deepStrictEqual(outcomes(result.turns[0]), [
        "Success",
        "failure",
        "defect",
        "Interrupted",
        "Interrupted",
        "Success"
      ])
      assert.deepStrictEqual(faults(result.messages), [])
    }).pipe(Effect.provide(silent)))

  it.effect("gives calls that share an id, or have none, one each of their own", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [[call("ok", {}, "x"), call("ok", {}, "x"), call("ok", {}, "")], "done"])
      const ids = result.turns[0]?.calls.map(({ id }) => id) ?? []
      assert.deepStrictEqual([ids[0], new Set(ids).size, ids.includes("")], ["x", 3, false])
      assert.deepStrictEqual(faults(result.messages), [])
    }))
})

describe("what the model gets wrong", () => {
  it.effect("ARG-01 empty arguments of any kind are an empty object, in the record and in the transcript", () =>
    Effect.gen(function*() {
      const getTime = Tool.make("get_time", { handler: (input) => Effect.succeed(JSON.stringify(input)) })
      const part = (params: unknown, id: string) =>
        Prompt.makePart("tool-call", { id, name: "get_time", params, providerExecuted: false })
      const says = ["", "   ", null, undefined, "null", "{}"].map((params, at) => part(params, `c${at}`))
      for (const onText of [undefined, () => undefined]) {
        const result = yield* converse([getTime], [{ says }, "done"], { onText })
        assert.deepStrictEqual(
          result.turns[0]?.outcomes.map((outcome) => outcome._tag === "Success" && outcome.value),
          Array(6).fill("{}")
        )
        assert.deepStrictEqual(result.turns[0]?.calls.map(({ input, repairs }) => [input, repairs.length]), [
          [{}, 1],
          [{}, 1],
          [{}, 1],
          [{}, 1],
          [{}, 1],
          [{}, 0]
        ])
        assert.deepStrictEqual(
          brief(result.messages)[1],
          `assistant: ${says.map((_, at) => `get_time#c${at}({})`).join(" ")}`
        )
      }
    }))

  it.effect("ARG-03 broken JSON is told to the model, kept in a form that every provider takes, and the run goes on", () =>
    Effect.gen(function*() {
      const tagged: Array<ReadonlyArray<string>> = []
      const tag = Tool.make("tag", {
        input: { tagIds: Schema.Array(Schema.String) },
        handler: ({ tagIds }) => Effect.sync(() => String(tagged.push(tagIds)))
      })
      const result = yield* converse([tag], [
        [call("tag", '{"{"tagIds":["a"]}')],
        [call("tag", '{"tagIds":["a"]}')],
        "done"
      ])
      assert.deepStrictEqual(tagged, [["a"]])
      assert.deepStrictEqual(brief(result.messages).slice(1, 3), [
        "assistant: tag#call_1({})",
        'tool: #call_1!The arguments are not valid JSON: "{\\"{\\"tagIds\\":[\\"a\\"]}". Send one JSON object.'
      ])
      assert.deepStrictEqual(outcomes(result.turns[0]), ["invalid-json"])
      assert.deepStrictEqual(result.turns[0]?.calls[0]?.raw, '{"{"tagIds":["a"]}')
    }))

  it.effect("ARG-04 an argument that does not fit is named, with what was expected and what came", () =>
    Effect.gen(function*() {
      const greet = Tool.make("greet", {
        input: { name: Schema.String, age: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) },
        handler: () => Effect.succeed("")
      })
      const raw = '{"name":"Bo","age":"old"}'
      const result = yield* converse([greet], [[call("greet", raw)], "done"])
      assert.deepStrictEqual(result.turns[0]?.outcomes, [{
        _tag: "Failure",
        kind: "invalid-input",
        class: "semantic",
        message: 'The arguments do not fit:\n- age: Expected number, got string "old"\nCorrect them and call again.',
        issues: [{ path: "age", message: 'Expected number, got string "old"' }]
      }])
      assert.deepStrictEqual(result.turns[0]?.calls, [{
        id: "call_1",
        name: "greet",
        input: { name: "Bo", age: "old" },
        raw,
        repairs: []
      }])
    }))

  it.effect("ARG-14 an unknown tool in a batch is answered with the names that are there, and the other calls run", () =>
    Effect.gen(function*() {
      const search = Tool.make("search", {
        input: { q: Schema.String },
        handler: ({ q }) => Effect.succeed(`found ${q}`)
      })
      const result = yield* converse([search], [[call("search", { q: "x" }, "a"), call("serach_web", {}, "b")], "done"])
      assert.deepStrictEqual(
        brief(result.messages)[2],
        'tool: #a=found x #b!There is no tool named "serach_web". The tools are: search.'
      )
    }))

  it.effect("a tool that is hidden from the agent is unknown to it", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok, bad], [[call("bad")], "done"], { tools: { names: ["ok"] } })
      assert.deepStrictEqual(outcomes(result.turns[0]), ["unknown-tool"])
    }))

  it.effect("SPEC-85 a tool that dies once does not end the run", () =>
    Effect.gen(function*() {
      const result = yield* converse([boom], [[call("boom")], "done"])
      assert.deepStrictEqual([result._tag, result.turns.length], ["Completed", 2])
    }).pipe(Effect.provide([Memo.layer, silent])))

  it.effect("ARG-19 half a surrogate pair in a result or an error is made whole", () =>
    Effect.gen(function*() {
      const broken = Tool.make("broken", { handler: () => Effect.succeed("ok \uD83D end") })
      const fails = Tool.make("fails", { failure: Schema.String, handler: () => Effect.fail("\uDE00 start") })
      const result = yield* converse([broken, fails], [[call("broken"), call("fails"), call("no\uD83D")], "done"])
      const told = result.messages.flatMap((message) => message.role === "tool" ? message.content : []).map((part) =>
        part.type === "tool-result" && part.result
      )
      assert.deepStrictEqual(told.slice(0, 2), ["ok \uFFFD end", "\uFFFD start"])
      assert.isTrue(told.every((text) => String(text).isWellFormed()))
    }))
})

describe("limits", () => {
  const again = [call("ok")]

  it.effect("SPEC-77 LOOP-02 maxTurns is so many requests; the calls of the last one are answered", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [again, again, again, again], { maxTurns: 3 })
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit, result.usage.calls], [
        "LimitReached",
        "turns",
        3
      ])
      assert.strictEqual(result.messages.filter((message) => message.role === "tool").length, 3)
      assert.deepStrictEqual(faults(result.messages), [])
    }))

  it.effect("SPEC-78 a limit of none or less ends the run before a request", () =>
    Effect.gen(function*() {
      for (const maxTurns of [0, -3]) {
        const result = yield* converse([ok], [], { maxTurns })
        assert.deepStrictEqual([result._tag, result.turns, brief(result.messages)], ["LimitReached", [], ["user: go"]])
      }
    }))

  it.effect("SPEC-81 the last message at the limit is the results of its calls, and every call has one", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [["thinking", call("ok"), call("ok")]], { maxTurns: 1 })
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        "assistant: thinking ok#call_1({}) ok#call_2({})",
        "tool: #call_1=fine #call_2=fine"
      ])
      assert.strictEqual(result.text, "thinking")
    }))

  it.effect("SPEC-82 a limit is a result and no error", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [again, again], { maxTurns: 2 })
      assert.strictEqual(result._tag, "LimitReached")
    }))

  it.effect("SPEC-84 five failed calls in a row end the run, over turns and within one; a success starts the count anew", () =>
    Effect.gen(function*() {
      const over = yield* converse([ok, bad], [
        [call("bad"), call("bad")],
        [call("bad"), call("bad")],
        [call("bad")],
        "never"
      ])
      assert.deepStrictEqual([over._tag, over._tag === "LimitReached" && over.limit, over.turns.length], [
        "LimitReached",
        "tool-errors",
        3
      ])
      assert.deepStrictEqual(faults(over.messages), [])
      const anew = yield* converse([ok, bad], [[call("bad"), call("bad"), call("bad"), call("bad")], [call("ok")], [
        call("bad")
      ], "done"])
      assert.strictEqual(anew._tag, "Completed")
      const after = yield* converse([ok, bad], [[
        call("bad"),
        call("bad"),
        call("bad"),
        call("bad"),
        call("bad"),
        call("ok")
      ], "done"])
      assert.strictEqual(after._tag, "Completed")
    }))

  it.effect("SPEC-88 maxToolCalls is never passed, not by a batch either; what is beyond it is answered unrun", () =>
    Effect.gen(function*() {
      assert.strictEqual(AgentLoop.make("bot").maxToolCalls, Infinity)
      const result = yield* converse([ok], [[call("ok"), call("ok")], [call("ok"), call("ok")], "never"], {
        maxToolCalls: 3
      })
      assert.deepStrictEqual([result._tag, result._tag === "LimitReached" && result.limit], [
        "LimitReached",
        "tool-calls"
      ])
      assert.deepStrictEqual(result.turns.map(outcomes), [["Success", "Success"], ["Success", "limit"]])
      assert.deepStrictEqual(faults(result.messages), [])
    }))

  it.effect("that are exactly met do not end the run", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [[call("ok"), call("ok")], "done"], { maxToolCalls: 2, maxTurns: 2 })
      assert.strictEqual(result._tag, "Completed")
    }))

  it("that make no sense are refused where the agent is made", () => {
    assert.throws(() => AgentLoop.make("a", { maxTurns: NaN }), /agent "a": maxTurns must be a whole number, got NaN/)
    assert.throws(
      () => AgentLoop.make("a", { concurrency: 0 }),
      /agent "a": concurrency must be a positive whole number, got 0/
    )
    assert.throws(
      () => AgentLoop.make("a", { maxToolCalls: 1.5 }),
      /agent "a": maxToolCalls must be a whole number, got 1.5/
    )
  })
})

describe("stops", () => {
  it.effect("SPEC-80 before the calls run: they are answered as cancelled, and the text is the answer", () =>
    Effect.gen(function*() {
      let ran = 0
      const counted = Tool.make("counted", { handler: () => Effect.sync(() => String(++ran)) })
      const result = yield* converse([counted], [["enough", call("counted")]], { stop: Stop.whenAsked("counted") })
      assert.deepStrictEqual([result._tag, result.text, ran], ["Completed", "enough", 0])
      assert.deepStrictEqual(
        brief(result.messages).at(-1),
        "tool: #call_1!This call was cancelled: the run was stopped before its calls were run"
      )
    }))

  it.effect("SPEC-80 may look at what the agent remembers", () =>
    Effect.gen(function*() {
      const stop: Stop.Stop = (_, { context }) => Memo.from(context).count >= 2
      const turn = [call("note", { text: "x" })]
      const result = yield* converse([note], [turn, turn, turn], { stop })
      assert.deepStrictEqual([result._tag, result.turns.length], ["Completed", 2])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("after a turn, by its calls or its number; any and all combine", () =>
    Effect.gen(function*() {
      const again = [call("ok")]
      const turns = (stop: Stop.Stop) =>
        Effect.map(converse([ok, read], [again, again, [call("read")], again, "done"], { stop }), (result) =>
          result.turns.length)
      assert.strictEqual(yield* turns(Stop.afterTurns(2)), 2)
      assert.strictEqual(yield* turns(Stop.whenCalled("read")), 3)
      assert.strictEqual(yield* turns(Stop.any(Stop.afterTurns(4), Stop.whenCalled("read"))), 3)
      assert.strictEqual(yield* turns(Stop.all(Stop.afterTurns(2), Stop.whenCalled("ok"))), 2)
    }).pipe(Effect.provide(Memo.layer)))
})

describe("the transcript", () => {
  it.effect("SPEC-79 SPEC-86 after one tool turn: user, assistant with its calls, results, assistant; and that is what the model is sent", () =>
    Effect.gen(function*() {
      const requests = yield* Effect.gen(function*() {
        yield* AgentLoop.run(AgentLoop.make("bot", { instructions: "be kind" }), { prompt: "go" })
        return (yield* ScriptedModel.Script).requests
      }).pipe(
        Effect.provide(ToolRegistry.layer(ok)),
        Effect.provide(ScriptedModel.layer(["", call("ok", {}, "a")], "done"))
      )
      assert.deepStrictEqual(requests.map(({ messages }) => brief(messages)), [
        ["system: be kind", "user: go"],
        ["system: be kind", "user: go", "assistant: ok#a({})", "tool: #a=fine"]
      ])
    }))

  it.effect("SPEC-87 given to the next run keeps calls, ids and names, and has no instructions in it", () =>
    Effect.gen(function*() {
      const first = yield* converse([ok], [[call("ok", {}, "a")], "done"], { instructions: "one" })
      const second = yield* converse([ok], ["again"], { instructions: "two", messages: first.messages, prompt: "more" })
      assert.deepStrictEqual(brief(second.messages), [
        "user: go",
        "assistant: ok#a({})",
        "tool: #a=fine",
        "assistant: done",
        "user: more",
        "assistant: again"
      ])
      const encoded = Schema.encodeSync(Schema.Array(Prompt.Message))(second.messages)
      const third = yield* converse([ok], ["once more"], {
        messages: JSON.parse(JSON.stringify(encoded)),
        prompt: "and"
      })
      assert.deepStrictEqual(brief(third.messages).slice(0, 6), brief(second.messages))
    }))

  it.effect("SPEC-128 PRO-01 a call that an abandoned run left open is answered as cancelled", () =>
    Effect.gen(function*() {
      const open = [
        Prompt.userMessage({ content: [Prompt.textPart({ text: "edit" })] }),
        Prompt.assistantMessage({
          content: [Prompt.toolCallPart({ id: "c1", name: "ok", params: {}, providerExecuted: false })]
        })
      ]
      const result = yield* converse([ok], ["done"], { messages: open, prompt: "continue" })
      assert.deepStrictEqual(brief(result.messages), [
        "user: edit",
        "assistant: ok#c1({})",
        "tool: #c1!This call was cancelled: the run ended before it was answered",
        "user: continue",
        "assistant: done"
      ])
    }))

  it.effect("PRO-12 results come directly after their calls, whatever was put between, and only once", () =>
    Effect.gen(function*() {
      const result = (id: string, text: string) =>
        Prompt.toolResultPart({ id, name: "ok", isFailure: false, result: text, providerExecuted: false })
      const scattered = [
        Prompt.assistantMessage({
          content: ["a", "b"].map((id) => Prompt.toolCallPart({ id, name: "ok", params: {}, providerExecuted: false }))
        }),
        Prompt.toolMessage({ content: [result("b", "B")] }),
        Prompt.userMessage({ content: [Prompt.textPart({ text: "a note" })] }),
        Prompt.toolMessage({ content: [result("a", "A"), result("b", "B again"), result("z", "orphan")] })
      ]
      const { messages } = yield* converse([ok], ["done"], { messages: scattered, prompt: "go on" })
      assert.deepStrictEqual(brief(messages), [
        "assistant: ok#a({}) ok#b({})",
        "tool: #a=A #b=B",
        "user: a note",
        "user: go on",
        "assistant: done"
      ])
    }))

  it.effect("PRO-10 has no blank parts and no empty messages; calls and signatures stay", () =>
    Effect.gen(function*() {
      const history = [
        Prompt.userMessage({ content: [Prompt.textPart({ text: "hi" }), Prompt.textPart({ text: " " })] }),
        Prompt.assistantMessage({ content: [Prompt.textPart({ text: "" })] }),
        Prompt.assistantMessage({ content: [] }),
        Prompt.assistantMessage({
          content: [
            Prompt.reasoningPart({ text: "", options: { vendor: { signature: "s" } } }),
            Prompt.textPart({ text: "yes" })
          ]
        })
      ]
      const { messages } = yield* converse([ok], [["", call("ok")], "done"], { messages: history, prompt: "again" })
      assert.deepStrictEqual(brief(messages), [
        "user: hi",
        "assistant:  yes",
        "user: again",
        "assistant: ok#call_1({})",
        "tool: #call_1=fine",
        "assistant: done"
      ])
    }))

  it.effect("LOOP-06 keeps the text that came with calls before them, and ends with the text of the last turn", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [["I will check both.", call("ok")], "Result: 5"])
      assert.strictEqual(result.text, "Result: 5")
      assert.strictEqual(brief(result.messages)[1], "assistant: I will check both. ok#call_1({})")
      assert.deepStrictEqual(result.turns.map((turn) => turn.text), ["I will check both.", "Result: 5"])
    }))

  it.effect("takes images and files in the prompt", () =>
    Effect.gen(function*() {
      const prompt = [
        Prompt.userMessage({
          content: [
            Prompt.textPart({ text: "what is this?" }),
            Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2]) })
          ]
        })
      ]
      const result = yield* converse([], ["a cat"], { prompt })
      assert.deepStrictEqual(brief(result.messages), ["user: what is this? <file>", "assistant: a cat"])
    }))
})

describe("the model's choice", () => {
  const choices = (toolChoice: LanguageModel.ToolChoice<string>, script: ReadonlyArray<ScriptedModel.Turn>) =>
    Effect.gen(function*() {
      const result = yield* AgentLoop.run(AgentLoop.make("bot", { toolChoice }), { prompt: "go" })
      const { requests } = yield* ScriptedModel.Script
      return {
        result,
        sent: requests.map((request) => [request.toolChoice, request.table.schemas.map(({ name }) => name)])
      }
    }).pipe(Effect.provide(ToolRegistry.layer(ok, bad)), Effect.provide(ScriptedModel.layer(...script)))

  it.effect("SPEC-83 none: the model is sent no tool, and a call of one is not run", () =>
    Effect.gen(function*() {
      const { result, sent } = yield* choices("none", [[call("ok")], "done"])
      assert.deepStrictEqual(sent, [["auto", []], ["auto", []]])
      assert.deepStrictEqual(outcomes(result.turns[0]), ["unknown-tool"])
    }))

  it.effect("LOOP-07 a forced choice holds for the first turn", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* choices("required", [[call("ok")], "done"])).sent, [["required", ["bad", "ok"]], [
        "auto",
        ["bad", "ok"]
      ]])
      assert.deepStrictEqual((yield* choices({ tool: "ok" }, [[call("ok")], "done"])).sent, [[{ tool: "ok" }, [
        "bad",
        "ok"
      ]], ["auto", ["bad", "ok"]]])
      assert.deepStrictEqual((yield* choices({ mode: "required", oneOf: ["ok"] }, [[call("ok")], "done"])).sent, [[
        "required",
        ["ok"]
      ], ["auto", ["ok"]]])
    }))

  it.effect("STR-04 calls run whatever reason the model gives for stopping, but not when it was cut off", () =>
    Effect.gen(function*() {
      for (const finish of ["stop", "other", "unknown", "tool-calls"] as const) {
        const result = yield* converse([ok], [{ says: ["let me", call("ok")], finish }, "done"])
        assert.deepStrictEqual([result._tag, outcomes(result.turns[0])], ["Completed", ["Success"]])
      }
      for (const finish of ["length", "content-filter", "error"] as const) {
        const result = yield* converse([ok], [{ says: ["let me", call("ok")], finish }])
        assert.deepStrictEqual([result._tag, result._tag === "Refused" && result.reason, outcomes(result.turns[0])], [
          "Refused",
          finish,
          ["Interrupted"]
        ])
        assert.deepStrictEqual(faults(result.messages), [])
      }
    }))

  it.effect("a pause of the model goes on in the next turn", () =>
    Effect.gen(function*() {
      const result = yield* converse([ok], [{ says: ["first"], finish: "pause" }, "second"])
      assert.deepStrictEqual([result._tag, result.text, result.turns.length], ["Completed", "second", 2])
    }))
})

describe("a model that fails", () => {
  const down = AiError.make({
    module: "Test",
    method: "ask",
    reason: new AiError.InternalProviderError({ description: "overloaded" })
  })

  it.effect("is an error that carries what the run had", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        converse([note], [[call("note", { text: "a" })], { says: ["par"], fails: down }])
      )
      assert.instanceOf(error, AgentLoop.ModelFailed)
      assert.strictEqual(error.reason, down)
      assert.strictEqual(error.message, "Internal provider error: overloaded")
      assert.deepStrictEqual(brief(error.partial.messages), [
        "user: go",
        'assistant: note#call_1({"text":"a"})',
        "tool: #call_1=before: nothing"
      ])
      assert.strictEqual(Memo.from(error.partial.context).count, 1)
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("STR-06 in the middle of its answer: the pieces were shown, and are not stored as an answer", () =>
    Effect.gen(function*() {
      const shown: Array<string> = []
      const error = yield* Effect.flip(
        converse([], [{ says: ["Par is"], fails: down }], { onText: (delta) => void shown.push(delta) })
      )
      assert.deepStrictEqual(shown, ["Par ", "is"])
      assert.instanceOf(error, AgentLoop.ModelFailed)
      assert.deepStrictEqual(brief(error.partial.messages), ["user: go"])
    }))
})

describe("watching", () => {
  it.effect("SPEC-120 shows the pieces of the answer in order, and leaves the same transcript as without", () =>
    Effect.gen(function*() {
      const script = [["one two", call("ok")], "three four"]
      const pieces: Array<string> = []
      const watched = yield* converse([ok], script, { onText: (delta) => void pieces.push(delta) })
      const plain = yield* converse([ok], script)
      assert.deepStrictEqual(pieces, ["one ", "two", "three ", "four"])
      assert.deepStrictEqual(brief(watched.messages), brief(plain.messages))
    }))

  it.effect("SPEC-121 after a turn without text shows only the text of the last", () =>
    Effect.gen(function*() {
      const pieces: Array<string> = []
      yield* converse([ok], [[call("ok")], "final"], { onText: (delta) => Effect.sync(() => pieces.push(delta)) })
      assert.deepStrictEqual(pieces, ["final"])
    }))

  it.effect("STR-09 every call that starts ends once: found or not, fitting or not, failed or not", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      yield* converse(
        [ok, bad, boom],
        [[call("ok"), call("gone"), call("ok", "{"), call("bad"), call("boom")], "done"],
        {
          onToolCall: (event) =>
            void events.push(`${event.event} ${event.id}${event.event === "end" ? ` ${event.error}` : ""}`)
        }
      )
      const ends = ["call_1 false", "call_2 true", "call_3 true", "call_4 true", "call_5 true"]
      assert.deepStrictEqual(events.toSorted(), [
        ...ends.map((end) => `end ${end}`),
        ...ends.map((end) => `start ${end.slice(0, 6)}`)
      ])
    }).pipe(Effect.provide([Memo.layer, silent])))

  it.effect("tells onToolCall the arguments, a preview that cuts no character in half, and the time", () =>
    Effect.gen(function*() {
      const long = Tool.make("long", {
        input: { n: Schema.Int },
        handler: () => Effect.succeed("é".repeat(198) + "😀😀")
      })
      const events: Array<object> = []
      yield* converse([long], [[call("long", { n: 1 })], "done"], { onToolCall: (event) => void events.push(event) })
      assert.deepStrictEqual(events, [
        { event: "start", tool: "long", id: "call_1", args: { n: 1 } },
        {
          event: "end",
          tool: "long",
          id: "call_1",
          args: { n: 1 },
          result: `${"é".repeat(198)}😀…`,
          error: false,
          durationMs: 0
        }
      ])
    }))

  it.effect("LOOP-06 streams everything that happens, and the result at the end", () =>
    Effect.gen(function*() {
      const events = yield* AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Stream.map((event) =>
          "delta" in event
            ? `${event._tag} ${event.delta}`
            : "call" in event
            ? `${event._tag} ${event.call.name}`
            : event._tag
        ),
        Stream.runCollect,
        Effect.provide(ToolRegistry.layer(note)),
        Effect.provide(ScriptedModel.layer(["let me", call("note", { text: "a" })], "done"))
      )
      assert.deepStrictEqual(Array.from(events), [
        "RunStart",
        "TurnStart",
        "TextDelta let ",
        "TextDelta me",
        'InputDelta {"text":"a"}',
        "CallStart note",
        "CallEnd note",
        "Fold",
        "TurnEnd",
        "TurnStart",
        "TextDelta done",
        "TurnEnd",
        "RunEnd",
        "Result"
      ])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("a stream that nobody reads on ends the run and stops its tools", () =>
    Effect.gen(function*() {
      const stopped = yield* Deferred.make<void>()
      const endless = Tool.make("endless", {
        handler: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
      })
      yield* AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Stream.takeUntil((event) => event._tag === "CallStart"),
        Stream.runDrain,
        Effect.provide(ToolRegistry.layer(endless)),
        Effect.provide(ScriptedModel.layer([call("endless")]))
      )
      yield* Deferred.await(stopped)
    }))

  it.effect("a model error ends a stream as it ends a run", () =>
    Effect.gen(function*() {
      const fails = AiError.make({
        module: "Test",
        method: "ask",
        reason: new AiError.UnknownError({ description: "x" })
      })
      const error = yield* Effect.flip(
        AgentLoop.stream(AgentLoop.make("bot"), { prompt: "go" }).pipe(
          Stream.runDrain,
          Effect.provide(ToolRegistry.layer()),
          Effect.provide(ScriptedModel.layer({ fails }))
        )
      )
      assert.instanceOf(error, AgentLoop.ModelFailed)
    }))
})

describe("a tool that asks a model itself", () => {
  it.effect("SPEC-141 asks within its call: the answer is the outer one, and each request was made once", () =>
    Effect.gen(function*() {
      const translate = Tool.make("translate", {
        input: { text: Schema.String },
        handler: ({ text }) =>
          Effect.map(Effect.orDie(LanguageModel.generateText({ prompt: `In French: ${text}` })), ({ text }) => text)
      })
      const [result, requests] = yield* Effect.gen(function*() {
        const result = yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "Hello?" })
        return [result, (yield* ScriptedModel.Script).requests] as const
      }).pipe(
        Effect.provide(ToolRegistry.layer(translate)),
        Effect.provide(ScriptedModel.layer([call("translate", { text: "hello" })], "bonjour", "It is bonjour."))
      )
      assert.strictEqual(result.text, "It is bonjour.")
      assert.deepStrictEqual(requests.map(({ messages }) => brief(messages)), [
        ["user: Hello?"],
        ["user: In French: hello"],
        ["user: Hello?", 'assistant: translate#call_1({"text":"hello"})', "tool: #call_1=bonjour"]
      ])
      assert.strictEqual(result.usage.calls, 2)
    }))
})

describe("cancelling", () => {
  it.effect("PRO-01 keeps what finished, answers the rest as cancelled, and stops the tools", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const endless = Tool.make("endless", {
        handler: () =>
          Effect.gen(function*() {
            const memo = yield* Memo
            yield* memo.write({ notes: ["lost"] })
            yield* Deferred.succeed(started, undefined)
            return yield* Effect.never
          }).pipe(Effect.onInterrupt(() => Deferred.succeed(stopped, undefined)))
      })
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer(note, endless)),
        Effect.provide(ScriptedModel.layer([call("note", { text: "kept" }), call("endless")]))
      )
      yield* Deferred.await(started)
      assert.deepStrictEqual((yield* handle.partial).turns, [])
      const result = yield* handle.cancel
      yield* Deferred.await(stopped)
      assert.strictEqual(result._tag, "Cancelled")
      assert.deepStrictEqual(brief(result.messages), [
        "user: go",
        'assistant: note#call_1({"text":"kept"}) endless#call_2({})',
        "tool: #call_1=before: nothing #call_2!This call was cancelled: the run ended while it ran, so whether it took effect is unknown"
      ])
      assert.deepStrictEqual(Memo.from(result.context).notes, ["kept"])
      assert.deepStrictEqual(yield* handle.await, result)
      const next = yield* converse([note], ["done"], {
        messages: result.messages,
        context: result.context,
        prompt: "go on"
      })
      assert.deepStrictEqual(faults(next.messages), [])
    }).pipe(Effect.provide(Memo.layer), Effect.scoped))

  it.effect("a run that has ended changes nothing", () =>
    Effect.gen(function*() {
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.provide(ScriptedModel.layer("done"))
      )
      assert.strictEqual((yield* handle.await)._tag, "Completed")
      assert.strictEqual((yield* handle.cancel)._tag, "Completed")
    }).pipe(Effect.scoped))

  it.effect("STR-09 ends every call that started for whoever watches", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const endless = Tool.make("endless", {
        handler: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
      const events: Array<string> = []
      const handle = yield* AgentLoop.start(AgentLoop.make("bot"), {
        prompt: "go",
        onToolCall: ({ event, id }) => void events.push(`${event} ${id}`)
      }).pipe(
        Effect.provide(ToolRegistry.layer(endless)),
        Effect.provide(ScriptedModel.layer([call("endless")]))
      )
      yield* Deferred.await(started)
      yield* handle.cancel
      assert.deepStrictEqual(events, ["start call_1", "end call_1"])
    }).pipe(Effect.scoped))
})

describe("several agents at once", () => {
  it.effect("SPEC-90 do not hear each other", () =>
    Effect.gen(function*() {
      const lengths = yield* Effect.forEach([1, 3, 5], (turns) =>
        Effect.map(
          converse([note], [
            ...Array.from({ length: turns }, () => [call("note", { text: `${turns}` })]),
            `end ${turns}`
          ], { maxRepeats: Infinity }),
          (result) => [result.text, Memo.from(result.context).notes]
        ), { concurrency: "unbounded" })
      assert.deepStrictEqual(lengths, [
        ["end 1", ["1"]],
        ["end 3", ["3", "3", "3"]],
        ["end 5", ["5", "5", "5", "5", "5"]]
      ])
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("SPEC-130 are each charged what they spent", () =>
    Effect.gen(function*() {
      const spent = (turns: number) =>
        converse([ok], [
          ...Array.from({ length: turns - 1 }, () => ({ says: [call("ok")], usage: { input: 10, output: 5 } })),
          { says: ["done"], usage: { input: 10, output: 5 } }
        ], { maxRepeats: Infinity })
      const results = yield* Effect.forEach([1, 3, 5], spent, { concurrency: "unbounded" })
      assert.deepStrictEqual(results.map(({ usage }) => [usage.calls, usage.totalTokens]), [[1, 15], [3, 45], [5, 75]])
      assert.strictEqual(results.reduce((sum, { usage }) => sum + usage.totalTokens, 0), 135)
    }))

  it.effect("one inside a tool of another has its own context", () =>
    Effect.gen(function*() {
      const inner = Tool.make("inner", {
        handler: () =>
          Effect.gen(function*() {
            const memo = yield* Memo
            yield* memo.write({ notes: ["outer before"] })
            const result = yield* Effect.orDie(converse([note], [[call("note", { text: "inner" })], "inner done"]))
            yield* memo.write({ notes: ["outer after"] })
            return `${result.text}: ${Memo.from(result.context).notes.join()}`
          })
      })
      const result = yield* converse([inner], [[call("inner")], "outer done"])
      assert.deepStrictEqual(
        result.turns[0]?.outcomes[0]?._tag === "Success" && result.turns[0].outcomes[0].value,
        "inner done: inner"
      )
      assert.deepStrictEqual(Memo.from(result.context).notes, ["outer before", "outer after"])
    }).pipe(Effect.provide(Memo.layer)))
})

describe("an agent", () => {
  it("can be looked at", () => {
    const bot = AgentLoop.make("bot", { instructions: "be kind", tools: { tags: ["a"] } })
    assert.deepStrictEqual(
      [
        bot.name,
        bot.instructions,
        bot.tools,
        bot.model,
        bot.maxTurns,
        bot.maxToolCalls,
        bot.maxConsecutiveToolErrors,
        bot.concurrency
      ],
      ["bot", "be kind", { tags: ["a"] }, undefined, 10, Infinity, 5, 8]
    )
    assert.isTrue(AgentLoop.isAgent(bot))
    assert.isFalse(AgentLoop.isAgent({ name: "bot" }))
  })

  it.effect("may have instructions that are looked up once, and a model of its own", () =>
    Effect.gen(function*() {
      class Name extends Services.Service<Name, string>()("test/Name") {}
      let asked = 0
      const bot = AgentLoop.make("bot", {
        instructions: Effect.map(Name, (name) => `you are ${name}, asked ${++asked}`),
        model: ScriptedModel.layer({
          says: [call("ok")],
          expect: ({ messages }) => assert.deepStrictEqual(brief(messages), ["system: you are Bo, asked 1", "user: go"])
        }, "own model")
      })
      const result = yield* AgentLoop.run(bot, { prompt: "go" }).pipe(
        Effect.provide(ToolRegistry.layer(ok)),
        Effect.provideService(Name, "Bo")
      )
      assert.deepStrictEqual([result.text, asked], ["own model", 1])
    }))

  it.effect("that is offered a tool that is not there is a defect with its name", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(converse([ok], ["done"], { tools: { names: ["gone"] } }))
      assert.include(String(exit), "no tools are named gone; there are: ok")
      const choice = yield* Effect.exit(converse([ok], ["done"], { toolChoice: { tool: "gone" } }))
      assert.include(String(choice), 'agent "tester": toolChoice names gone, which it is not offered')
    }))

  it.effect("without a prompt and without messages is a defect that says so", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(converse([ok], ["done"], { prompt: [] }))
      assert.include(String(exit), 'agent "tester": a run needs a prompt or messages')
    }))
})

describe("a model made by LanguageModel.make", () => {
  const script = [
    ["hm", call("note", { text: "a" }), call("gone"), call("note", "{")],
    [call("note", { text: "b" })],
    "done"
  ]
  const through = (model: Layer.Layer<LanguageModel.LanguageModel>, onText?: () => void) =>
    AgentLoop.run(AgentLoop.make("bot"), { prompt: "go", onText }).pipe(
      Effect.provide(ToolRegistry.layer(note)),
      Effect.provide(model)
    )

  it.effect("runs the loop to the same end, plain and streamed", () =>
    Effect.gen(function*() {
      const direct = yield* through(ScriptedModel.layer(...script))
      for (const onText of [undefined, () => undefined]) {
        const plain = yield* through(ScriptedModel.layerPlain(...script), onText)
        assert.deepStrictEqual(brief(plain.messages), brief(direct.messages))
        assert.deepStrictEqual(Memo.from(plain.context), Memo.from(direct.context))
        assert.deepStrictEqual(plain.usage, direct.usage)
      }
    }).pipe(Effect.provide(Memo.layer)))

  it.effect("a user's wrapper round a model sees every request", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const wrapped = Layer.effect(
        LanguageModel.LanguageModel,
        Effect.map(LanguageModel.LanguageModel, (model) =>
          Object.assign(Object.create(model), {
            generateText: (options: { readonly prompt: Prompt.Prompt }) => {
              seen.push(options.prompt.content.length)
              return model.generateText(options)
            }
          }))
      ).pipe(Layer.provide(ScriptedModel.layer(...script)))
      const result = yield* through(wrapped)
      assert.deepStrictEqual([result.text, seen], ["done", [1, 3, 5]])
    }).pipe(Effect.provide(Memo.layer)))
})
