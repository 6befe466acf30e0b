/**
 * How is a program recorded? It runs as it does; each exchange and each call is written when it is over, whichever way.
 */
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as Context from "../../Context.ts"
import type * as Provider from "../../Provider.ts"
import type * as Tool from "../../Tool.ts"
import type * as Turn from "../../Turn.ts"
import * as Deck from "./tapeDeck.ts"
import * as Lines from "./tapeLines.ts"
import * as Readings from "./tapeReadings.ts"
import * as Request from "./tapeRequest.ts"
import * as Secrets from "./tapeSecrets.ts"
import * as Store from "./tapeStore.ts"

/** A deck that records, the clock and the random generator that it listens to, and what is left to do. */
export interface Recorder {
  readonly deck: Deck.Deck
  readonly listening: Readings.Listening
  /** Writes the end. */
  readonly end: Effect.Effect<void>
  /** Fails where something could not be written. */
  readonly written: Effect.Effect<void, Store.TapeFailed>
}

export interface Options {
  readonly redact?: ((text: string) => string) | undefined
  readonly requests?: "digest" | "text" | undefined
}

export const make = Effect.fnUntraced(function*<R>(
  store: Store.Store<R>,
  { redact, requests }: Options,
  clock: Clock.Clock,
  random: Random.Random
): Effect.fn.Return<Recorder, Store.TapeFailed, R | Scope.Scope> {
  const append = yield* store.begin
  const cleaner = Secrets.make(redact)
  const outliner = Request.outliner(cleaner, requests === "text")
  const listening = Readings.listen(clock, random)
  const one = yield* Semaphore.make(1)
  const before = new Map<string, Request.Form>()
  let isOver = false
  let failure: Store.TapeFailed | undefined

  // What goes wrong with the tape is told at the end, and never to the program.
  const failed = (problem: unknown): void => {
    failure ??= problem instanceof Store.TapeFailed
      ? problem
      : new Store.TapeFailed({ tape: store.name, problem: `cannot be written: ${String(problem)}` })
  }
  const write = (line: () => Lines.Line): Effect.Effect<void> => {
    const written = Effect.flatMap(
      Effect.suspend(() => Lines.encode(line())),
      (json) => append(JSON.stringify(cleaned(json, cleaner)))
    )
    const safe = Effect.catchCause(written, (cause) => Effect.sync(() => failed(Cause.squash(cause))))
    return Semaphore.withPermits(one, 1)(
      Effect.suspend(() => isOver || failure !== undefined ? Effect.void : safe)
    ).pipe(Effect.uninterruptible)
  }

  const shortened = (within: string, now: Request.Form): Lines.Request => {
    const last = before.get(within)
    before.set(within, now)
    const differs = now.messages.findIndex((message, at) => !isSame(message, last?.messages[at]))
    const same = differs === -1 ? now.messages.length : differs
    const isRest = last !== undefined && isSame(now.rest, last.rest)
    return { same, messages: now.messages.slice(same), ...(isRest ? {} : { rest: now.rest }) }
  }

  const ask = (model: Provider.Ask): Provider.Ask => (request, sink) =>
    Effect.suspend(() => {
      const within = Readings.line()
      // Now, since the transcript goes on growing.
      const canonical = Result.try(() => outliner.request(request))
      const deltas: Array<ReadonlyArray<Said>> = []
      const asked = sink === undefined ? model(request) : model(request, (chunk) => {
        // What is redacted in arguments lies across their pieces; the call itself is in the answer.
        const said = chunk.flatMap((delta) => delta.type === "input" ? [] : [delta])
        if (said.length > 0) deltas.push(said)
        return sink(chunk)
      })
      return Effect.onExit(asked, (exit) =>
        write(() => {
          const said = saidOf(exit, request.table, cleaner)
          return {
            kind: "ask",
            within,
            ...taken(listening, within),
            request: shortened(within, Result.getOrThrow(canonical).outline),
            ...(sink === undefined ? {} : { deltas: whole(deltas, cleaner) }),
            said
          }
        }))
    })

  const answer: Deck.Deck["answer"] = (call, next, scope) => {
    const written = scope.writes.length
    return Effect.onExit(next, (exit) =>
      write(() => ({
        kind: "call",
        id: scope.id,
        within: Deck.withinOf(scope),
        ...(scope.id === "" ? {} : taken(listening, scope.id)),
        name: call.name,
        input: outliner.value(cleaner.clean(Secrets.plain(call.input))),
        attempts: scope.attempts,
        answer: answerOf(exit, call.tool, scope, written, cleaner)
      })))
  }

  yield* append(JSON.stringify({ kind: "tape", version: 1, at: clock.currentTimeMillisUnsafe() }))
  return {
    deck: { isReplaying: false, ask, answer },
    listening,
    end: Effect.andThen(
      write(() => ({ kind: "end", readings: listening.takeAll() })),
      Effect.sync(() => {
        isOver = true
      })
    ),
    written: Effect.suspend(() => failure === undefined ? Effect.void : Effect.fail(failure))
  }
})

const isSame = (one: unknown, other: unknown): boolean => one === other || JSON.stringify(one) === JSON.stringify(other)

const taken = (listening: Readings.Listening, line: string): { readonly readings?: Lines.Readings } => {
  const readings = listening.take(line)
  return readings === undefined ? {} : { readings }
}

const saidOf = (
  exit: Exit.Exit<Provider.Reply, AiError.AiError>,
  table: Tool.Table,
  cleaner: Secrets.Cleaner
): Lines.Said => {
  if (Exit.isSuccess(exit)) return { _tag: "Replied", reply: replyOf(exit.value, table, cleaner) }
  if (Cause.hasInterrupts(exit.cause)) return { _tag: "Interrupted" }
  const error = Cause.squash(exit.cause)
  return AiError.isAiError(error)
    ? { _tag: "Failed", error: withoutWire(error) }
    : { _tag: "Died", message: messageOf(error) }
}

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

const replyOf = (
  { content, finish, model, usage: { inputTokens, outputTokens }, warnings }: Provider.Reply,
  table: Tool.Table,
  cleaner: Secrets.Cleaner
): Extract<Lines.Said, { readonly _tag: "Replied" }>["reply"] => ({
  content: content.map((part) =>
    part.type === "tool-call"
      ? { ...part, params: cleaner.params(table.tools.find((tool) => tool.name === part.name), part.params) }
      : part
  ),
  finish,
  usage: { inputTokens, outputTokens },
  ...(model === undefined ? {} : { model }),
  ...(warnings === undefined ? {} : { warnings })
})

type Deltas = NonNullable<Lines.Asked["deltas"]>

type Said = Extract<Provider.Delta, { readonly type: "text" | "reasoning" }>

const isOf = (one: Said) => (other: Said) => one.type === other.type && one.part === other.part

/** The pieces of an answer; one of them all where a secret lies across several. */
const whole = (deltas: ReadonlyArray<ReadonlyArray<Said>>, cleaner: Secrets.Cleaner): Deltas => {
  const all = deltas.flat()
  const firsts = all.filter((delta, at) => all.findIndex(isOf(delta)) === at)
  const joined = firsts.map((first) => ({
    ...first,
    delta: all.filter(isOf(first)).map(({ delta }) => delta).join("")
  }))
  const isClean = joined.every(({ delta }) => cleaner.clean(delta) === delta)
  return (isClean ? deltas : [joined]).map((chunk) =>
    chunk.map(({ delta, part, type }) => ({ type, delta, ...(part === undefined ? {} : { part }) }))
  )
}

const reasonCodec = Schema.toCodecJson(AiError.AiErrorReason)

/**
 * An error without what went over the wire: no body, and of an address only what names the server. The status and what says
 * when the request may be made again are kept, and no other header.
 */
const withoutWire = ({ method, module, reason }: AiError.AiError): AiError.AiError => {
  const { cause: _, description, http: __, url, ...rest }: Record<string, unknown> = Object(
    Schema.encodeSync(reasonCodec)(reason)
  )
  const response = "http" in reason ? reason.http?.response : undefined
  const headers = Object.entries(response?.headers ?? {}).filter(([name]) => ofTime.has(name.toLowerCase()))
  const bare = {
    ...rest,
    // Some servers say the key again that they refuse.
    ...(reason._tag === "AuthenticationError" || description === undefined ? {} : { description }),
    ...(typeof url === "string" ? { url: hostOf(url) } : {}),
    ...(response === undefined
      ? {}
      : { http: { response: { status: response.status, headers: Object.fromEntries(headers) } } })
  }
  return AiError.make({ method, module, reason: Schema.decodeUnknownSync(reasonCodec)(bare) })
}

const ofTime = new Set(["retry-after", "retry-after-ms", "date"])

const hostOf = (url: string): string => URL.canParse(url) ? new URL(url).origin : ""

const answerOf = (
  exit: Exit.Exit<Turn.Outcome>,
  tool: WireTool.Any,
  { stillRunning, writes }: Context.CallScope,
  written: number,
  cleaner: Secrets.Cleaner
): Lines.Answer => {
  if (Exit.isFailure(exit)) {
    return Cause.hasInterrupts(exit.cause)
      ? { _tag: "Cut", stillRunning }
      : { _tag: "Died", message: messageOf(Cause.squash(exit.cause)) }
  }
  if (exit.value._tag !== "Success") return { _tag: "Answered", outcome: exit.value }
  const { parts, value, writes: own } = exit.value
  // What stands around the call within the tape has written to the scope itself.
  const around = writes.slice(written).map(({ encoded, slots }) => ({ slots: slots.id, values: encoded }))
  return {
    _tag: "Answered",
    outcome: {
      _tag: "Success",
      value: cleaner.result(tool, value),
      writes: [...own, ...around],
      // They are what a tool's `toModelOutput` gave.
      ...(parts === undefined ? {} : { parts: parts as ReadonlyArray<Prompt.ToolModelOutputPart> })
    }
  }
}

const said = new Set(["said", "deltas", "answer"])

/** A line without secrets in what was said, and in what was asked where that is kept; its form says nothing. */
const cleaned = (line: Schema.Json, cleaner: Secrets.Cleaner): object =>
  Object.fromEntries(
    Object.entries(Object(line)).map(([key, value]: [string, unknown]) => [
      key,
      said.has(key) ? cleaner.clean(value) : key === "request" ? cleaner.scrub(value) : value
    ])
  )
