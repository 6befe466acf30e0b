/**
 * In what form does a pause rest? As two texts: what a list shows of it, and its state.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Explain from "../../internal/explain.ts"
import * as Legal from "../../internal/legal.ts"
import * as Pause from "../../Pause.ts"
import * as PauseStore from "../../PauseStore.ts"

/** What a list shows. */
export const Waiting = Schema.Struct({
  version: Schema.Literal(1),
  id: Schema.String,
  agent: Schema.String,
  runId: Schema.String,
  reason: Pause.Reason,
  pending: Schema.Array(Pause.Pending)
})

/** As text. */
export const text = <A, I>(schema: Schema.Codec<A, I>): Schema.Codec<A, string> =>
  Schema.fromJsonString(Schema.toCodecJson(schema))

const State = text(Schema.Json)

export const stateText = (id: string, state: Pause.Encoded) => encode(State, id, state)
export const stateOf = (id: string, kept: string): Effect.Effect<Pause.Encoded, PauseStore.PauseStoreFailed> =>
  decode(State, id, kept)

export const encode = <A>(codec: Schema.Codec<A, string>, id: string, value: A) =>
  Effect.mapError(
    Schema.encodeEffect(codec)(value),
    ({ issue }) => failed(id, `is not JSON: ${Explain.describe(issue)}`)
  )

export const decode = <A>(codec: Schema.Codec<A, string>, id: string, kept: string) =>
  Effect.mapError(
    Schema.decodeEffect(codec)(kept),
    ({ issue }) => failed(id, `does not decode: ${Explain.describe(issue)}`)
  )

const failed = (id: string, problem: string) =>
  new PauseStore.PauseStoreFailed({ cause: `the pause ${Legal.shown(id)} ${problem}` })

/** What a store fails with is a failure of the store of pauses; an id that stores do not tell apart is refused. */
export const inside = <A>(
  effect: Effect.Effect<A, unknown>,
  id?: string
): Effect.Effect<A, PauseStore.PauseStoreFailed> =>
  id !== undefined && (id === "" || !id.isWellFormed() || id.includes("\0"))
    ? Effect.fail(failed(id, "needs an id that is not empty, without half characters and NUL"))
    : Effect.mapError(
      effect,
      (cause) => cause instanceof PauseStore.PauseStoreFailed ? cause : new PauseStore.PauseStoreFailed({ cause })
    )

/** The time, in milliseconds since 1970; later than every time that it gave before, so that it says an order too. */
export const ticking = (): Effect.Effect<number> => {
  let last = 0
  return Effect.map(Clock.currentTimeMillis, (now) => last = Math.max(now, last + 0.001))
}
