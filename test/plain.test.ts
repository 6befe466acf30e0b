// Plain values are read beside Schema's own parser, so both must agree: on what fits, on what it becomes, both ways. 1,000
// schemas with 20 values each; `SEED=…` repeats a run.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Codec from "../src/internal/codec.ts"
import { reader, unread } from "../src/internal/plain.ts"

type AnySchema = Schema.Codec<unknown, unknown>

const names = ["city", "days", "a", "toString", "constructor", "0", "", "length", "hasOwnProperty"]

/** Makes schemas and values of one row of numbers. */
const making = (seed: number) => {
  let state = seed
  const below = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor(state / 2 ** 32 * n)
  }
  const one = <A>(...of: ReadonlyArray<A>): A => of[below(of.length)] as A
  const many = <A>(make: () => A): ReadonlyArray<A> => Array.from({ length: 1 + below(3) }, make)

  const leaf = (): AnySchema =>
    one<() => AnySchema>(
      () => Schema.String,
      () => Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(4)),
      () => Schema.Finite,
      () => Schema.Int,
      () => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })),
      () => Schema.Boolean,
      () => Schema.Null,
      () => Schema.Literals(["x", 1, true]),
      () => Schema.Literal("x")
    )()
  const fieldsOf = (depth: number): Record<string, AnySchema> =>
    Object.fromEntries(
      many(() => one(...names)).map((name) => {
        const field = schema(depth - 1)
        return [name, below(4) === 0 ? Schema.optionalKey(field) : field]
      })
    )
  const schema = (depth: number): AnySchema =>
    depth === 0 ? leaf() : one<() => AnySchema>(
      leaf,
      () => Schema.Struct(fieldsOf(depth)),
      () => Schema.Struct(fieldsOf(depth)),
      () => Schema.Struct(fieldsOf(depth)).check(Schema.makeFilter((u) => Object.keys(u).length < 3)),
      () => Schema.Array(schema(depth - 1)),
      () => Schema.Array(schema(depth - 1)).check(Schema.isMaxLength(2)),
      () => Schema.NullOr(schema(depth - 1)),
      () => Schema.Union(many(() => schema(depth - 1))),
      () => Schema.Union([Schema.String, Schema.Int, Schema.Null, Schema.Struct(fieldsOf(depth))]),
      () => Schema.Union([Schema.TaggedStruct("A", fieldsOf(depth)), Schema.TaggedStruct("B", fieldsOf(depth))])
    )()

  const odd = (): unknown =>
    one<unknown>(undefined, NaN, Infinity, -0, 1, 2.5, 12, "x", "", "long enough", true, null, 1n, new Date(0), () => 1)
  /** Something like what fits, more often than not. */
  const value = (ast: AnySchema["ast"]): unknown => {
    if (below(12) === 0) return odd()
    switch (ast._tag) {
      case "String":
        return one("x", "", "abc", "abcdef")
      case "Number":
        return one(0, 1, 7, 12, 2.5, -1)
      case "Boolean":
        return one(true, false)
      case "Null":
        return null
      case "Literal":
        return ast.literal
      case "Objects": {
        const entries = ast.propertySignatures.flatMap(({ name, type }) =>
          below(8) === 0 ? [] : [[name, value(type)] as const]
        )
        const more = below(4) === 0 ? [["more", odd()] as const] : []
        const all = [...entries, ...more]
        return below(10) === 0
          ? Object.create(Object.fromEntries(all))
          : Object.fromEntries(below(3) === 0 ? all.toReversed() : all)
      }
      case "Arrays":
        return below(10) === 0 ? Array(2) : many(() => ast.rest[0] && value(ast.rest[0])).slice(below(3))
      case "Union":
        return value(one(...ast.types))
      default:
        return odd()
    }
  }
  return { schema, value }
}

/** The text shows the order of keys too, and what JSON has no word for. */
const text = (u: unknown): string => JSON.stringify(u, (_, value) => isJson(value) ? value : `${typeof value} ${value}`)

const isJson = (u: unknown): boolean =>
  typeof u === "number" ? Number.isFinite(u) && !Object.is(u, -0) : !/undefined|bigint|function/.test(typeof u)

describe("a plain value", () => {
  it.effect("is read as Schema reads it, both ways, and nothing else is", () =>
    Effect.gen(function*() {
      const seed = Number(process.env.SEED ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
      // oxlint-disable-next-line no-console -- a failure must be found again
      console.log(`seed ${seed}, 1000 schemas (again: SEED=${seed})`)
      const make = making(seed)
      let [fits, others] = [0, 0]
      for (let at = 0; at < 1_000; at++) {
        const schema = make.schema(3)
        const codec = Codec.jsonCodec(schema)
        const isKnown = reader(Schema.toCodecJson(schema).ast) !== undefined
        if (!isKnown) others++
        for (let each = 0; each < 20; each++) {
          const value = make.value(schema.ast)
          for (const [parse, plain] of [[codec.decode, codec.read], [codec.encode, codec.write]] as const) {
            const read = plain(value)
            const exit = Effect.runSyncExit(parse(value) as Effect.Effect<unknown, unknown>)
            const about = `${JSON.stringify(schema.ast)} of ${text(value)}`
            assert.strictEqual(read !== unread, isKnown && Exit.isSuccess(exit), about)
            if (isKnown && Exit.isSuccess(exit)) assert.strictEqual(text(read), text(exit.value), about)
            if (read !== unread) fits++
          }
        }
      }
      // Most cases say something.
      assert.isAbove(fits, 4_000)
      assert.isBelow(others, 700)
    }))

  it("shares nothing with what it was read from", () => {
    const { read: plain } = Codec.jsonCodec(Schema.Struct({ list: Schema.Array(Schema.Struct({ n: Schema.Int })) }))
    const given = { list: [{ n: 1 }] }
    const read = plain(given)
    given.list[0]!.n = 2
    given.list.push({ n: 3 })
    assert.deepStrictEqual(read, { list: [{ n: 1 }] })
  })

  it("has one reader for each schema, however often that is shared", () => {
    let node = Schema.Struct({ name: Schema.String }) as Schema.Codec<unknown>
    for (let level = 0; level < 40; level++) {
      const child = Schema.optionalKey(node)
      node = Schema.Struct({ name: Schema.String, and: child, or: child, not: child, xor: child })
    }
    const { read, write } = Codec.jsonCodec(node)
    const value = { name: "x", and: { name: "y", xor: { name: "z" } } }
    assert.deepStrictEqual([read(value), write(value)], [value, value])
  })

  it("is not looked at where Schema would not look", () => {
    const text = Schema.String.check(Schema.makeFilter((text: string) => typeof JSON.parse(text) === "object"))
    const Note = Schema.Union([
      Schema.Struct({ body: text, kind: Schema.Literal("json") }),
      Schema.Struct({ body: Schema.String, kind: Schema.Literal("text") })
    ])
    const note = { body: "hello", kind: "text" as const }
    assert.deepStrictEqual(Effect.runSync(Codec.jsonCodec(Note).decode(note) as Effect.Effect<unknown>), note)
    assert.strictEqual(Codec.jsonCodec(Note).read(note), unread)
  })

  it("is asked for a field before it gives it, and for the members of a list by their places", () => {
    const Fields = Schema.Struct({ a: Schema.String, b: Schema.optionalKey(Schema.String) })
    const strict = new Proxy<Record<string, string>>({ a: "x" }, {
      get: (fields, key) => {
        if (typeof key === "string" && key in fields) return fields[key]
        throw new Error(`no ${String(key)}`)
      }
    })
    assert.deepStrictEqual(Codec.jsonCodec(Fields).write(strict), { a: "x" })
    class Backwards extends Array<string> {
      override *[Symbol.iterator]() {
        yield* this.toReversed()
        return undefined
      }
    }
    assert.deepStrictEqual(Codec.jsonCodec(Schema.Array(Schema.String)).write(Backwards.of("a", "b")), ["a", "b"])
  })

  it("keeps a check that only says the same of itself as that of a whole number", () => {
    const even = Schema.Number.check(
      Schema.makeFilter((n: number) => n % 2 === 0, { ...Schema.isInt().annotations, expected: "an even integer" })
    )
    const described = Schema.Int.annotate({ description: "how many" })
    const { read } = Codec.jsonCodec(Schema.Struct({ even, described }))
    assert.deepStrictEqual(read({ even: 2, described: 1 }), { even: 2, described: 1 })
    assert.strictEqual(read({ even: 3, described: 1 }), unread)
    assert.strictEqual(read({ even: 2, described: 1.5 }), unread)
  })

  it("is left to Schema where that transforms, asks, tells apart or keeps what it does not know", () => {
    const others: ReadonlyArray<Schema.Constraint> = [
      Schema.Number,
      Schema.Date,
      Schema.BigInt,
      Schema.Unknown,
      Schema.Struct({}),
      Schema.Record(Schema.String, Schema.Int),
      Schema.Tuple([Schema.String, Schema.Int]),
      Schema.FiniteFromString,
      Schema.Struct({ a: Schema.optional(Schema.Int) }),
      Schema.Struct({ a: Schema.Struct({ b: Schema.Date }) }),
      Schema.Union([Schema.Struct({ a: Schema.Int }), Schema.Struct({ a: Schema.Finite })], { mode: "oneOf" }),
      Schema.Struct(Object.fromEntries([["__proto__", Schema.Int]])),
      Schema.TemplateLiteral(["a", Schema.String])
    ]
    for (const schema of others) {
      const { read, write } = Codec.jsonCodec(schema)
      for (const value of [{ a: 1, b: 2 }, "a"]) assert.deepStrictEqual([read(value), write(value)], [unread, unread])
    }
  })
})
