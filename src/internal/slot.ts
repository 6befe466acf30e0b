/**
 * How do two writes to one place become one? A slot: a Schema, a combiner and an initial value.
 *
 * `Context` exports these.
 */
import * as Arr from "effect/Array"
import * as Combiner from "effect/Combiner"
import * as Equal from "effect/Equal"
import * as HashSet from "effect/HashSet"
import * as Num from "effect/Number"
import * as Reducer from "effect/Reducer"
import * as Schema from "effect/Schema"

/**
 * A named, typed place with a merge rule.
 *
 * @category models
 * @since 0.1.0
 */
export interface Slot<in out A, out I = unknown> {
  readonly schema: Schema.Codec<A, I>
  readonly combiner: Combiner.Combiner<A>
  readonly initial: A
}

/**
 * Makes a slot. A `Reducer` brings its initial value, a bare `Combiner` wants one.
 *
 * **Example** (The cheapest offer)
 *
 * ```ts run
 * import * as Combiner from "effect/Combiner"
 * import * as Order from "effect/Order"
 * import * as Schema from "effect/Schema"
 * import * as Context from "toolfold/Context"
 *
 * const Offer = Schema.Struct({ from: Schema.String, price: Schema.Finite })
 * const byPrice = Order.mapInput(Order.Number, (offer: typeof Offer.Type) => offer.price)
 *
 * class Trip extends Context.Slots<Trip>()("app/Trip", {
 *   best: Context.slot(Offer, Combiner.min(byPrice), { from: "nobody", price: 1000 })
 * }) {}
 *
 * const context = Context.fold(Context.empty, [
 *   Trip.write({ best: { from: "Air A", price: 310 } }),
 *   Trip.write({ best: { from: "Air B", price: 290 } })
 * ])
 * Trip.from(context).best.from // => "Air B"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const slot: {
  <A, I>(schema: Schema.Codec<A, I>, reducer: Reducer.Reducer<A>): Slot<A, I>
  <A, I>(schema: Schema.Codec<A, I>, combiner: Combiner.Combiner<A>, initial: NoInfer<A>): Slot<A, I>
} = <A, I>(
  schema: Schema.Codec<A, I>,
  combiner: Combiner.Combiner<A> | Reducer.Reducer<A>,
  ...initial: ReadonlyArray<A>
): Slot<A, I> => ({
  schema,
  combiner,
  // The overloads make it one or the other; a given value wins over a reducer's own.
  initial: initial.length > 0 ? initial[0] as A : (combiner as Reducer.Reducer<A>).initialValue
})

/**
 * A list that grows: writes are appended in call order. Starts empty.
 *
 * @category slots
 * @since 0.1.0
 */
export const list = <A, I>(item: Schema.Codec<A, I>): Slot<ReadonlyArray<A>, ReadonlyArray<I>> =>
  slot(Schema.Array(item), Arr.getReadonlyReducerConcat<A>())

/**
 * A number that writes add to. Starts at 0.
 *
 * @category slots
 * @since 0.1.0
 */
export const sum: Slot<number, number> = slot(Schema.Finite, Num.ReducerSum)

/**
 * The largest number written. Starts at `-Infinity`, which every number beats.
 *
 * @category slots
 * @since 0.1.0
 */
export const max: Slot<number, number> = slot(Schema.Number, Num.ReducerMax)

/**
 * The smallest number written. Starts at `Infinity`, which every number beats.
 *
 * @category slots
 * @since 0.1.0
 */
export const min: Slot<number, number> = slot(Schema.Number, Num.ReducerMin)

/**
 * A set that grows: writes are united, members are compared by value. Starts empty.
 *
 * @category slots
 * @since 0.1.0
 */
export const set = <A, I>(item: Schema.Codec<A, I>): Slot<ReadonlySet<A>, ReadonlySet<I>> =>
  slot(Schema.ReadonlySet(item), Reducer.make<ReadonlySet<A>>(union, new Set()))

const indexes = new WeakMap<ReadonlySet<unknown>, HashSet.HashSet<unknown>>()

// The members by value are kept beside a set, so that a fold looks at new members alone.
const union = <A>(self: ReadonlySet<A>, that: ReadonlySet<A>): ReadonlySet<A> => {
  const out = new Set(self)
  let known = indexes.get(self) ?? (self.size === 0 ? HashSet.empty<unknown>() : undefined)
  for (const member of that) {
    if (typeof member !== "object" || member === null) out.add(member)
    else {
      known ??= HashSet.fromIterable<unknown>(self)
      if (!HashSet.has(known, member)) out.add(member)
      known = HashSet.add(known, member)
    }
  }
  if (known !== undefined) indexes.set(out, known)
  return out
}

/**
 * The last value written, in call order.
 *
 * @category slots
 * @since 0.1.0
 */
export const last = <A, I>(schema: Schema.Codec<A, I>, initial: NoInfer<A>): Slot<A, I> =>
  slot(schema, Combiner.last<A>(), initial)

/**
 * The first value written, in call order: once it differs from the initial value it stays.
 *
 * @category slots
 * @since 0.1.0
 */
export const first = <A, I>(schema: Schema.Codec<A, I>, initial: NoInfer<A>): Slot<A, I> =>
  slot(schema, Combiner.make<A>((self, that) => Equal.equals(self, initial) ? that : self), initial)

/**
 * A record that grows: where two writes name one key, the combiner decides, the last one by default. Starts empty.
 *
 * @category slots
 * @since 0.1.0
 */
export const record = <A, I>(
  value: Schema.Codec<A, I>,
  combiner: Combiner.Combiner<A> = Combiner.last<A>()
): Slot<{ readonly [key: string]: A }, { readonly [key: string]: I }> =>
  slot(Schema.Record(Schema.String, value), Reducer.make<{ readonly [key: string]: A }>(mergeBy(combiner), {}))

const mergeBy =
  <A>(combiner: Combiner.Combiner<A>) => (self: { readonly [key: string]: A }, that: { readonly [key: string]: A }) => {
    // A spread defines its keys, so that not even __proto__ is more than a key.
    const merged: Record<string, A> = { ...self, ...that }
    for (const key of Object.keys(that)) {
      const [one, other] = [self[key], that[key]]
      if (Object.hasOwn(self, key)) {
        Object.defineProperty(merged, key, { value: combiner.combine(one as A, other as A) })
      }
    }
    return merged
  }
