import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Combiner from "effect/Combiner"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Reducer from "effect/Reducer"
import * as Schema from "effect/Schema"
import * as Context from "toolfold/Context"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import { logged } from "./utils.ts"

const Offer = Schema.Struct({ from: Schema.String, price: Schema.Finite })

class Trip extends Context.Slots<Trip>()("test/Trip", {
  notes: Context.list(Schema.String),
  spent: Context.sum,
  cities: Context.set(Schema.String),
  offers: Context.set(Offer),
  budget: Context.last(Schema.Finite, 0),
  opener: Context.first(Schema.String, ""),
  most: Context.max,
  least: Context.min,
  prices: Context.record(Schema.Finite),
  totals: Context.record(Schema.Finite, Combiner.make<number>((a, b) => a + b))
}) {}

class Other extends Context.Slots<Other>()("test/Other", { count: Context.sum }) {}

const after = (...writes: ReadonlyArray<Parameters<typeof Trip.write>[0]>) =>
  Trip.from(Context.fold(Context.empty, writes.map((values) => Trip.write(values))))

const dies = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "it did not die"

describe("the slots", () => {
  it("SPEC-33 two writes of one slot: the later one in call order wins where the slot keeps the last", () => {
    assert.strictEqual(after({ budget: 1 }, { budget: 2 }).budget, 2)
  })

  it("SPEC-34 a slot's own combiner folds the writes", () => {
    assert.deepStrictEqual(after({ totals: { a: 1, b: 1 } }, { totals: { b: 2 } }).totals, { a: 1, b: 3 })
  })

  it("SPEC-35 a slot starts at its initial value, and keeps what was written after", () => {
    const counts = Context.slot(Schema.Finite, Combiner.make<number>((a, b) => a + b), 100)
    class Counter extends Context.Slots<Counter>()("test/Counter", { counts }) {}
    assert.deepStrictEqual(Counter.from(Context.empty), { counts: 100 })
    assert.deepStrictEqual(
      Counter.from(Context.fold(Context.empty, [Counter.write({ counts: 0 }), Counter.write({ counts: 1 })])),
      { counts: 101 }
    )
  })

  it("SPEC-36 a sum adds, and no write changes nothing", () => {
    assert.strictEqual(after({ spent: 3 }, { spent: 4 }).spent, 7)
    const context = Trip.into(Context.empty, { spent: 3 })
    assert.strictEqual(Context.fold(context, []), context)
  })

  it("append, unite, keep the first, the largest and the smallest", () => {
    assert.deepStrictEqual(
      after(
        { notes: ["a"], cities: new Set(["Oslo"]), opener: "hi", most: 2, least: 2, prices: { a: 1 } },
        {
          notes: ["b", "a"],
          cities: new Set(["Oslo", "Bergen"]),
          opener: "ho",
          most: 1,
          least: 1,
          prices: { a: 2, b: 3 }
        }
      ),
      {
        ...Trip.initial,
        notes: ["a", "b", "a"],
        cities: new Set(["Oslo", "Bergen"]),
        opener: "hi",
        most: 2,
        least: 1,
        prices: { a: 2, b: 3 }
      }
    )
  })

  it("compare the members of a set by value", () => {
    const offer = { from: "A", price: 1 }
    assert.deepStrictEqual(
      after({ offers: new Set([offer]) }, { offers: new Set([{ ...offer }, { from: "B", price: 1 }]) }).offers,
      new Set([offer, { from: "B", price: 1 }])
    )
  })

  it("take their initial value from a reducer", () => {
    assert.strictEqual(Context.slot(Schema.Finite, Reducer.make<number>((a, b) => a * b, 1)).initial, 1)
  })

  it("keep a key that is called __proto__ in a record, and refuse a slot of that name", () => {
    const prices = JSON.parse('{"__proto__":5}')
    assert.deepStrictEqual(Object.keys(after({ prices }, { prices: { a: 1 } }).prices), ["__proto__", "a"])
    assert.throws(() => Context.Slots()("test/Bad", JSON.parse('{"__proto__":1}')), /no slot may be called __proto__/)
  })
})

describe("a write", () => {
  it("that does not match its slot is refused with the slot's name", () => {
    assert.throws(() => Trip.write({ spent: NaN }), /write to slot "spent" of test\/Trip: Expected a finite number/)
    assert.throws(() => Trip.write({ spend: 1 } as object), /have no "spend", only: notes, spent,/)
  })

  it.effect("outside a tool call is a defect that says so", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Effect.flatMap(Trip, (trip) => trip.write({ spent: 1 })))
      assert.match(dies(exit), /write to test\/Trip outside a tool call/)
    }).pipe(Effect.provide(Trip.layer)))

  it.effect("after the call was answered never lands and is reported", () =>
    Effect.gen(function*() {
      const log = logged()
      const scope = Context.callScope()
      yield* Effect.gen(function*() {
        const trip = yield* Trip
        scope.open = false
        yield* trip.write({ spent: 1 })
      }).pipe(Effect.provideService(Context.CurrentCall, scope), Effect.provide([Trip.layer, log.layer]))
      assert.deepStrictEqual(scope.writes, [])
      assert.deepStrictEqual(log.lines.map(({ level, message }) => [level, message]), [[
        "Warn",
        "write to test/Trip after its call was answered: dropped"
      ]])
    }))
})

describe("capture", () => {
  it.effect("runs a handler alone: its value, its writes, and the context after them", () =>
    Effect.gen(function*() {
      const from = Trip.into(Context.empty, { notes: ["before"] })
      const captured = yield* Context.capture(
        Effect.gen(function*() {
          const trip = yield* Trip
          yield* trip.write({ notes: ["own"], spent: 2 })
          yield* trip.write({ spent: 3 })
          const other = yield* Other
          yield* other.write({ count: 1 })
          return { seen: trip.get("notes"), snapshot: trip.snapshot.spent }
        }),
        { from }
      )
      assert.deepStrictEqual(captured.value, { seen: ["before"], snapshot: 0 })
      assert.deepStrictEqual(captured.writes.map((write) => write.values), [
        { notes: ["own"], spent: 2 },
        { spent: 3 },
        { count: 1 }
      ])
      assert.deepStrictEqual(Trip.from(captured.context), { ...Trip.initial, notes: ["before", "own"], spent: 5 })
      assert.deepStrictEqual(Other.from(captured.context), { count: 1 })
    }))

  it.effect("shows the initial values to a handler that starts from nothing", () =>
    Effect.gen(function*() {
      const { value } = yield* Context.capture(Effect.map(Trip, (trip) => trip.snapshot))
      assert.deepStrictEqual(value, Trip.initial)
    }))
})

describe("two classes of slots with one id", () => {
  class Twin extends Context.Slots<Twin>()("test/Trip", { other: Context.sum }) {}

  it.effect("are refused where a registry is assembled, whether its tools are given together or merged", () =>
    Effect.gen(function*() {
      const one = Tool.make("one", { handler: () => Effect.map(Trip, (trip) => String(trip.get("spent"))) })
      const other = Tool.make("other", { handler: () => Effect.map(Twin, (twin) => String(twin.get("other"))) })
      const together = ToolRegistry.layer(one, other).pipe(Layer.provide(Trip.layer), Layer.provide(Twin.layer))
      const merged = ToolRegistry.merge(
        ToolRegistry.layer(one).pipe(Layer.provide(Trip.layer)),
        ToolRegistry.layer(other).pipe(Layer.provide(Twin.layer))
      )
      for (const layer of [together, merged]) {
        const error = yield* Effect.flip(Effect.provide(ToolRegistry.ToolRegistry, layer))
        assert.deepStrictEqual(error.problems, ['two classes of slots have the id "test/Trip": give each its own'])
      }
    }))

  it.effect("do not see each other's values", () =>
    Effect.gen(function*() {
      const { value } = yield* Context.capture(Effect.map(Twin, (twin) => twin.snapshot))
      assert.deepStrictEqual(value, { other: 0 })
    }))

  it("are refused where one reads what the other wrote", () => {
    assert.throws(() => Twin.from(Trip.into(Context.empty, { spent: 1 })), /two classes of slots have the id/)
  })

  it.effect("but one class may be provided twice", () =>
    Effect.provide(Effect.void, Layer.mergeAll(Trip.layer, Other.layer, Trip.layer)))
})

describe("a stored context", () => {
  const context = Context.fold(Context.empty, [
    Trip.write({ notes: ["a"], cities: new Set(["Oslo"]), most: 4, prices: { a: 1 } }),
    Other.write({ count: 2 })
  ])

  it.effect("comes back from JSON as it was", () =>
    Effect.gen(function*() {
      const encoded = yield* Context.encode(context)
      const decoded = yield* Context.decode(JSON.parse(JSON.stringify(encoded)), [Trip, Other])
      assert.deepStrictEqual(Trip.from(decoded), Trip.from(context))
      assert.deepStrictEqual(Other.from(decoded), { count: 2 })
      assert.deepStrictEqual(encoded.version, 1)
    }))

  class Odd extends Context.Slots<Odd>()("test/Odd", {
    bytes: Context.last(Schema.Uint8Array, new Uint8Array()),
    map: Context.last(Schema.ReadonlyMap(Schema.String, Schema.Finite), new Map()),
    big: Context.last(Schema.BigInt, 0n),
    maybe: Context.last(Schema.UndefinedOr(Schema.String), "something"),
    at: Context.last(Schema.Date, new Date(0)),
    number: Context.last(Schema.Number, 0),
    any: Context.last(Schema.Struct({ nested: Schema.Struct({ value: Schema.Unknown }) }), { nested: { value: 1 } })
  }) {}

  it.effect("MEM-02 has bytes, maps, big integers and what is undefined where the schemas of its slots say so", () =>
    Effect.gen(function*() {
      const values = {
        bytes: new Uint8Array([0, 255]),
        map: new Map([["k", 1]]),
        big: 2n ** 64n,
        maybe: undefined,
        at: new Date("2024-02-29T00:00:00Z"),
        number: NaN
      }
      const encoded = yield* Context.encode(Odd.into(Context.empty, values))
      const decoded = yield* Context.decode(JSON.parse(JSON.stringify(encoded)), [Odd])
      assert.deepStrictEqual(Odd.from(decoded), { ...values, any: { nested: { value: 1 } } })
      const damaged = { version: 1, slots: { "test/Odd": { ...encoded.slots["test/Odd"], bytes: "?" } } }
      const error = yield* Effect.flip(Context.decode(damaged, [Odd]))
      assert.match(error.message, /at \["slots"\]\["test\/Odd"\]\["bytes"\]/)
    }))

  it("MEM-02 never has what is not JSON and has no schema that makes it so: to write it is refused, and says where", () => {
    for (const value of [new Date(0), 2n ** 64n, NaN, undefined, new Map([["k", 1]]), new Error("x")]) {
      assert.throws(
        () => Odd.into(Context.empty, { any: { nested: { value } } }),
        'write to slot "any" of test/Odd: Expected JSON value at ["nested"]["value"]'
      )
    }
  })

  it.effect("starts a slot that the data lacks at its initial value", () =>
    Effect.gen(function*() {
      const decoded = yield* Context.decode({ version: 1, slots: { "test/Trip": { spent: 3 } } }, [Trip])
      assert.deepStrictEqual(Trip.from(decoded), { ...Trip.initial, spent: 3 })
    }))

  it.effect("is refused, all of it and by name, where the program does not have what it holds", () =>
    Effect.gen(function*() {
      const refused = (u: unknown) => Effect.map(Effect.flip(Context.decode(u, [Trip])), (error) => error.message)
      assert.match(
        yield* refused({ version: 1, slots: { "test/Gone": {} } }),
        /Unknown class of slots\n {2}at \["slots"\]\["test\/Gone"\]/
      )
      assert.match(
        yield* refused({ version: 1, slots: { "test/Trip": { gone: 1 } } }),
        /\["slots"\]\["test\/Trip"\]\["gone"\]/
      )
      assert.match(
        yield* refused({ version: 1, slots: { "test/Trip": { spent: "much" } } }),
        /Expected number\n {2}at \["slots"\]\["test\/Trip"\]\["spent"\]/
      )
      assert.match(yield* refused({ version: 2, slots: {} }), /\["version"\]/)
    }))
})
