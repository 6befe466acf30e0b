/**
 * Do the slots of an application keep their laws? Property tests for any class of slots.
 *
 * A combiner must be associative, or the state would depend on how writes are grouped; and a reducer's initial value must
 * change nothing.
 *
 * @since 0.1.0
 */
import * as Arbitrary from "effect/Arbitrary"
import type * as Combiner from "effect/Combiner"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as HashSet from "effect/HashSet"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Context from "../Context.ts"

/**
 * A slot that breaks a law, with the smallest values found that show it.
 *
 * @category errors
 * @since 0.1.0
 */
export class LawBroken extends Schema.TaggedError<LawBroken>()("LawBroken", {
  slots: Schema.String,
  slot: Schema.String,
  law: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `slot ${JSON.stringify(this.slot)} of ${this.slots} is not ${this.law}: ${this.detail}`
  }
}

/**
 * Checks every slot of a class: that its combiner is associative, that a reducer's initial value is neutral, that the
 * initial value fits the schema, and that values come back from JSON as they were. Numbers are drawn as integers, since
 * no sum of floats is associative.
 *
 * **Example** (A combiner that is not associative)
 *
 * ```ts run
 * import * as Combiner from "effect/Combiner"
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 * import * as Laws from "toolfold/testing/Laws"
 *
 * class Bad extends Context.Slots<Bad>()("app/Bad", {
 *   difference: Context.slot(Schema.Finite, Combiner.make<number>((a, b) => a - b), 0)
 * }) {}
 *
 * const broken = await Effect.runPromise(Effect.flip(Laws.check(Bad)))
 * broken.law // => "associative"
 * ```
 *
 * @category checking
 * @since 0.1.0
 */
export const check = (
  slots: Context.AnySlots,
  options?: Arbitrary.CheckOptions
): Effect.Effect<void, LawBroken> =>
  Effect.forEach(
    Object.entries(slots.slots),
    ([name, slot]) =>
      checkSlot(slot, (law, detail) => new LawBroken({ slots: slots.id, slot: name, law, detail }), options),
    { discard: true }
  )

const checkSlot = Effect.fnUntraced(function*(
  slot: Context.Definitions[string],
  broken: (law: string, detail: string) => LawBroken,
  options: Arbitrary.CheckOptions | undefined
) {
  const { initial, schema } = slot
  const combiner: object & Combiner.Combiner<unknown> = slot.combiner
  const { combine } = combiner
  const fits = Schema.is(schema)
  if (!fits(initial)) return yield* broken("started well", "its initial value does not fit its schema")
  const drawn = Result.try(() => Arbitrary.schema(schema))
  if (Result.isFailure(drawn)) return yield* broken("checked", `its schema gives no values to try: ${drawn.failure}`)
  const values = Arbitrary.map(drawn.success, (value) => {
    const whole = integral(value)
    return fits(whole) ? whole : value
  })
  const holds = (law: string, property: (a: unknown, b: unknown, c: unknown) => boolean) =>
    Effect.gen(function*() {
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.all([values, values, values]),
        ([a, b, c]) => Effect.try({ try: () => property(a, b, c), catch: (thrown) => thrown }),
        options
      )
      const failure = Arbitrary.formatCheckFailure(result)
      if (failure !== undefined) yield* broken(law, failure)
    })
  const codec = Schema.toCodecJson(schema)
  yield* holds("associative", (a, b, c) => same(combine(combine(a, b), c), combine(a, combine(b, c))))
  yield* holds("storable", (a) => same(Schema.decodeUnknownSync(codec)(Schema.encodeUnknownSync(codec)(a)), a))
  if ("initialValue" in combiner && same(combiner.initialValue, initial)) {
    yield* holds("neutral at the start", (a) => same(combine(initial, a), a) && same(combine(a, initial), a))
  }
})

const same = (a: unknown, b: unknown): boolean => Equal.equals(a, b)

/** The same value with every number in it made an integer of moderate size. */
const integral = (u: unknown): unknown => {
  if (typeof u === "number") return Number.isFinite(u) ? Math.trunc(u % 1_000_000) + 0 : u
  if (Array.isArray(u)) return u.map(integral)
  // Members of a set are compared by value, as the slots do.
  if (u instanceof Set) return new Set(HashSet.fromIterable(Array.from(u, integral)))
  if (
    typeof u === "object" && u !== null &&
    (Object.getPrototypeOf(u) === Object.prototype || Object.getPrototypeOf(u) === null)
  ) {
    return Object.fromEntries(Object.entries(u).map(([key, value]) => [key, integral(value)]))
  }
  return u
}
