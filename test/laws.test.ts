import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Combiner from "effect/Combiner"
import * as Effect from "effect/Effect"
import * as Order from "effect/Order"
import * as Reducer from "effect/Reducer"
import * as Schema from "effect/Schema"
import * as Context from "toolfold/Context"
import * as Laws from "toolfold/testing/Laws"

const Offer = Schema.Struct({ from: Schema.String, price: Schema.Finite })
const byPrice = Order.mapInput(Order.Number, (offer: typeof Offer.Type) => offer.price)

class Every extends Context.Slots<Every>()("test/Every", {
  list: Context.list(Schema.String),
  set: Context.set(Schema.String),
  setOfStructs: Context.set(Offer),
  sum: Context.sum,
  max: Context.max,
  min: Context.min,
  last: Context.last(Schema.NullOr(Schema.String), null),
  first: Context.first(Schema.String, ""),
  record: Context.record(Schema.Finite),
  recordOfSums: Context.record(Schema.Finite, Combiner.make<number>((a, b) => a + b)),
  best: Context.slot(Offer, Combiner.min(byPrice), { from: "nobody", price: 1_000 })
}) {}

describe("the laws", () => {
  it.effect("hold for every ready-made slot", () => Laws.check(Every))

  it.effect("find a combiner that is not associative", () =>
    Effect.gen(function*() {
      class Bad extends Context.Slots<Bad>()("test/Bad", {
        difference: Context.slot(Schema.Finite, Combiner.make<number>((a, b) => a - b), 0)
      }) {}
      const broken = yield* Effect.flip(Laws.check(Bad))
      assert.match(broken.message, /slot "difference" of test\/Bad is not associative/)
    }))

  it.effect("find an initial value that is not neutral", () =>
    Effect.gen(function*() {
      class Bad extends Context.Slots<Bad>()("test/Bad", {
        sum: Context.slot(Schema.Finite, Reducer.make<number>((a, b) => a + b, 1))
      }) {}
      const broken = yield* Effect.flip(Laws.check(Bad))
      assert.strictEqual(broken.law, "neutral at the start")
    }))

  it.effect("find an initial value that swallows what is written", () =>
    Effect.gen(function*() {
      class Bad extends Context.Slots<Bad>()("test/Bad", {
        least: Context.slot(Schema.Int, Reducer.make<number>(Math.min, 0))
      }) {}
      assert.strictEqual((yield* Effect.flip(Laws.check(Bad))).law, "neutral at the start")
    }))

  it.effect("are checked on values that fit a narrow schema, and say which slot throws", () =>
    Effect.gen(function*() {
      class Narrow extends Context.Slots<Narrow>()("test/Narrow", {
        share: Context.last(Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 0.9 })), 0.5)
      }) {}
      yield* Laws.check(Narrow)
      class Throws extends Context.Slots<Throws>()("test/Throws", {
        text: Context.slot(
          Schema.String,
          Combiner.make<string>(() => {
            throw new Error("boom")
          }),
          ""
        )
      }) {}
      assert.match((yield* Effect.flip(Laws.check(Throws))).message, /slot "text" of test\/Throws is not associative/)
    }))

  it.effect("find an initial value that does not fit", () =>
    Effect.gen(function*() {
      class Bad extends Context.Slots<Bad>()("test/Bad", { some: Context.last(Schema.NonEmptyString, "") }) {}
      const broken = yield* Effect.flip(Laws.check(Bad))
      assert.strictEqual(broken.law, "started well")
    }))
})

describe("the fold", () => {
  const writes = Arbitrary.array(
    Arbitrary.map(
      Arbitrary.schema(
        Schema.Struct({
          notes: Schema.Array(Schema.String),
          spent: Schema.Int.check(Schema.isBetween({ minimum: -1000, maximum: 1000 }))
        })
      ),
      ({ notes, spent }) => Every.write({ list: notes, sum: spent })
    ),
    { maxLength: 5 }
  )

  it.prop("of no writes changes nothing", [writes], ([before]) => {
    const context = Context.fold(Context.empty, before)
    assert.strictEqual(Context.fold(context, []), context)
  })

  it.prop("of some writes and then others is the fold of both", [writes, writes, writes], ([start, a, b]) => {
    const context = Context.fold(Context.empty, start)
    assert.deepStrictEqual(Context.fold(Context.fold(context, a), b), Context.fold(context, [...a, ...b]))
  })

  it.prop("leaves the context that it starts from as it was", [writes, writes], ([start, more]) => {
    const context = Context.fold(Context.empty, start)
    const before = structuredClone(Every.from(context))
    Context.fold(context, more)
    assert.deepStrictEqual(Every.from(context), before)
  })
})
