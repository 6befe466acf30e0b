/**
 * How is a program run again from a tape? Whatever it asks is looked for among what was recorded in the same place; what
 * differs from it, and what is not there, ends the program with an error that says so.
 */
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Context from "../../Context.ts"
import * as Callable from "../../internal/callable.ts"
import * as Nested from "../../internal/nested.ts"
import type * as Provider from "../../Provider.ts"
import * as Tool from "../../Tool.ts"
import type * as ToolRegistry from "../../ToolRegistry.ts"
import type * as Turn from "../../Turn.ts"
import * as Pieces from "./pieces.ts"
import * as Deck from "./tapeDeck.ts"
import { Drift, inCall, LeftOver, Miss } from "./tapeErrors.ts"
import * as Lines from "./tapeLines.ts"
import * as Readings from "./tapeReadings.ts"
import * as Request from "./tapeRequest.ts"
import * as Secrets from "./tapeSecrets.ts"
import * as Store from "./tapeStore.ts"

/** A deck that plays, and the clock and the random generator that were recorded. */
export interface Player {
  readonly deck: Deck.Deck
  readonly clock: Clock.Clock
  readonly random: Random.Random
  /** Fails as soon as the program differs. */
  readonly stopped: Effect.Effect<never, Drift | Miss>
  /** Fails where something is left. */
  readonly finished: Effect.Effect<void, LeftOver>
}

export interface Options {
  readonly tools?: "tape" | "run" | undefined
  readonly redact?: ((text: string) => string) | undefined
}

/** A record, whether it was asked for, and how many of its line were before it. */
interface Place<Line> {
  readonly line: Line
  readonly turn: number
  readonly form: unknown
  isUsed: boolean
}

export const make = Effect.fnUntraced(function*<R>(
  store: Store.Store<R>,
  { redact, tools = "tape" }: Options,
  clock: Clock.Clock
): Effect.fn.Return<Player, Store.TapeFailed, R> {
  const lines = yield* read(store)
  const isComplete = lines.at(-1)?.kind === "end"
  const cleaner = Secrets.make(redact)
  const outliner = Request.outliner(cleaner, false)
  const asks = placesOfAsks(lines)
  const calls = placesOfCalls(lines)
  const answered = new Set<string>()
  const stop = Deferred.makeUnsafe<never, Drift | Miss>()
  // Whoever differs goes no further, and the program is interrupted.
  const halt = (error: Drift | Miss): Effect.Effect<never> =>
    Effect.andThen(Deferred.fail(stop, error), Effect.interruptible(Effect.never))
  const miss = (turn: number, within: string, wanted: string) =>
    new Miss({ tape: store.name, turn, within, wanted, isComplete })
  const drift = (
    { turn, within }: { readonly turn: number; readonly within: string },
    { path, recorded }: Request.Difference,
    plain: unknown,
    before: ReadonlyArray<string | number> = []
  ) => {
    const whole = Request.shownPath([...before, ...path])
    const came = Request.shown(Request.at(plain, path))
    return new Drift({ tape: store.name, turn, within, path: whole, recorded: Request.shown(recorded), came })
  }
  const saying = Readings.say(clock, lines, (line) => {
    Deferred.doneUnsafe(stop, Effect.fail(miss(turnOf(line), line, "further random number")))
  })

  const ask: Provider.Ask = (request, sink) =>
    Effect.suspend(() => {
      const within = Readings.line()
      const { outline, plain } = outliner.request(request)
      const open = (asks.get(within) ?? []).filter(({ isUsed }) => !isUsed)
      const place = open.find(({ form }) => Request.difference(form, outline) === undefined)
      if (place === undefined) {
        const [next] = open
        const difference = next && Request.difference(next.form, outline)
        return next === undefined || difference === undefined
          ? halt(miss(asks.get(within)?.length ?? 0, within, "exchange with a model"))
          : halt(drift({ turn: next.turn, within }, difference, plain))
      }
      place.isUsed = true
      const shown = sink === undefined
        ? Effect.void
        : Effect.forEach(piecesOf(place.line), (chunk) => sink(chunk), { discard: true })
      return Effect.ensuring(
        Effect.andThen(shown, said(place.line.said)),
        Effect.sync(() => saying.goOn(within))
      )
    })

  const answer: Deck.Deck["answer"] = (call, next, scope, slots) =>
    Effect.suspend(() => {
      const place = calls.get(scope.id)?.find((place) =>
        !place.isUsed && differs(place, call, outliner, cleaner) === undefined
      )
      if (place === undefined) {
        const open = calls.get(scope.id)?.find(({ isUsed }) => !isUsed)
        const difference = open && differs(open, call, outliner, cleaner)
        const [turn, within] = [turnOf(scope.id), Deck.withinOf(scope)]
        return difference === undefined
          ? halt(miss(turn, within, `outcome of the call ${call.id} of ${call.name}`))
          : halt(drift({ turn, within }, difference, asCalled(call), ["calls", callOf(scope.id)]))
      }
      place.isUsed = true
      if (tools === "run" || isAgent(call)) return next
      answered.add(scope.id)
      scope.attempts = place.line.attempts
      const { answer } = place.line
      const lost = unwritten(answer, scope, slots)
      if (lost === undefined) return answerFrom(answer, scope)
      const [turn, within] = [turnOf(scope.id), Deck.withinOf(scope)]
      return halt(drift({ turn, within }, { path: ["writes"], recorded: lost }, {}, ["calls", callOf(scope.id)]))
    })

  return {
    deck: { isReplaying: true, ask: () => ask, answer },
    clock: saying.clock,
    random: saying.random,
    stopped: Deferred.await(stop),
    finished: Effect.suspend(() => {
      const left = leftOf(lines, asks, calls, answered)
      return left.length === 0 ? Effect.void : Effect.fail(new LeftOver({ tape: store.name, left }))
    })
  }
})

const read = Effect.fnUntraced(function*<R>(
  store: Store.Store<R>
): Effect.fn.Return<ReadonlyArray<Lines.Line>, Store.TapeFailed, R> {
  const text = yield* store.read
  // What stands behind the last line break was cut off while it was written.
  const lines = yield* Effect.forEach(text.split("\n").slice(0, -1), (line, at) => {
    const unreadable = (why: string) =>
      new Store.TapeFailed({ tape: store.name, problem: `has in line ${at + 1} ${why}` })
    const json = Result.try((): unknown => JSON.parse(line))
    if (Result.isFailure(json)) return Effect.fail(unreadable("what is not JSON"))
    return Effect.mapError(
      Lines.decode(json.success),
      (error) => unreadable(`no record of version 1: ${error.message}`)
    )
  })
  if (lines[0]?.kind === "tape") return lines
  return yield* Effect.fail(new Store.TapeFailed({ tape: store.name, problem: "is empty or no tape: record it anew" }))
})

const placesOfAsks = (lines: ReadonlyArray<Lines.Line>): ReadonlyMap<string, ReadonlyArray<Place<Lines.Asked>>> => {
  const before = new Map<string, Request.Form>()
  return grouped(lines.filter((line) => line.kind === "ask"), (line) => line.within, ({ request, within }) => {
    const last = before.get(within)
    const form: Request.Form = {
      messages: [...last?.messages.slice(0, request.same) ?? [], ...request.messages],
      rest: request.rest ?? last?.rest
    }
    before.set(within, form)
    return form
  })
}

const placesOfCalls = (lines: ReadonlyArray<Lines.Line>): ReadonlyMap<string, ReadonlyArray<Place<Lines.Called>>> =>
  grouped(lines.filter((line) => line.kind === "call"), ({ id }) => id, ({ input, name }) => ({ name, input }))

const grouped = <Line>(
  lines: ReadonlyArray<Line>,
  keyOf: (line: Line) => string,
  formOf: (line: Line) => unknown
): ReadonlyMap<string, ReadonlyArray<Place<Line>>> => {
  const groups = new Map<string, Array<Place<Line>>>()
  for (const line of lines) {
    const group = groups.get(keyOf(line)) ?? []
    groups.set(keyOf(line), group)
    group.push({ line, turn: group.length, form: formOf(line), isUsed: false })
  }
  return groups
}

const asCalled = ({ input, name }: ToolRegistry.AroundCall) => ({ name, input: Secrets.plain(input) })

const differs = (
  { form }: Place<Lines.Called>,
  call: ToolRegistry.AroundCall,
  outliner: Request.Outliner,
  cleaner: Secrets.Cleaner
): Request.Difference | undefined => {
  const { input, name } = asCalled(call)
  return Request.difference(form, { name, input: outliner.value(cleaner.clean(input)) })
}

/** The place of a call of a run: `run-turn-place`. */
const placeOf = (id: string): ReadonlyArray<number> => /-(\d+)-(\d+)$/.exec(id)?.slice(1).map(Number) ?? []
const turnOf = (id: string): number => placeOf(id)[0] ?? 0
const callOf = (id: string): number => placeOf(id)[1] ?? 0

// An agent within a call is run again: what it asks is on the tape, and what it spends counts for whoever calls it.
const isAgent = ({ tool }: ToolRegistry.AroundCall): boolean =>
  Tool.isTool(tool) && tool[Callable.TypeId].failure === Nested.AgentStopped

const said = (said: Lines.Said): ReturnType<Provider.Ask> => {
  switch (said._tag) {
    case "Replied":
      return Effect.succeed(said.reply)
    case "Failed":
      return Effect.fail(said.error)
    case "Died":
      return Effect.die(new Error(said.message))
    case "Interrupted":
      // Whoever interrupted it will do so again.
      return Effect.never
  }
}

/** Writes what a call wrote; gives what does not fit the slots that are there. */
const unwritten = (
  answer: Lines.Answer,
  scope: Context.CallScope,
  slots: () => ReadonlyArray<Context.AnySlots>
): unknown => {
  if (answer._tag !== "Answered" || answer.outcome._tag !== "Success") return undefined
  const classes = answer.outcome.writes.length === 0 ? [] : slots()
  return answer.outcome.writes.find(({ slots: id, values }) => {
    const own = classes.find((slots) => slots.id === id)
    const write = own && Result.try(() => Context.decodeWrite(own, values))
    if (write === undefined || Result.isFailure(write)) return true
    scope.writes.push(write.success)
    return false
  })
}

const answerFrom = (answer: Lines.Answer, scope: Context.CallScope): Effect.Effect<Turn.Outcome> => {
  switch (answer._tag) {
    case "Died":
      return Effect.die(new Error(answer.message))
    case "Cut":
      if (answer.stillRunning) Context.goesOn(scope)
      return Effect.never
    case "Answered":
      // What it wrote is in its scope.
      return Effect.succeed(answer.outcome._tag === "Success" ? { ...answer.outcome, writes: [] } : answer.outcome)
  }
}

/** What was not asked for, but for what was within a call that did not run. */
const leftOf = (
  lines: ReadonlyArray<Lines.Line>,
  asks: ReadonlyMap<string, ReadonlyArray<Place<Lines.Asked>>>,
  calls: ReadonlyMap<string, ReadonlyArray<Place<Lines.Called>>>,
  answered: ReadonlySet<string>
): ReadonlyArray<string> => {
  const outer = new Map(lines.flatMap((line) => line.kind === "call" && line.id !== "" ? [[line.id, line.within]] : []))
  const isWithin = (id: string): boolean => id !== "" && (answered.has(id) || isWithin(outer.get(id) ?? ""))
  const open = <Line extends { readonly within: string }>(places: ReadonlyMap<string, ReadonlyArray<Place<Line>>>) =>
    Array.from(places.values()).flat().filter(({ isUsed, line }) => !isUsed && !isWithin(line.within))
  return [
    ...open(asks).map(({ line, turn }) => `turn ${turn}${inCall(line.within)}: an exchange with a model`),
    ...open(calls).map(({ line }) =>
      `turn ${turnOf(line.id)}${inCall(line.within)}: call ${callOf(line.id)}, of ${line.name}`
    )
  ]
}

/** What was shown of an answer that was streamed. */
const piecesOf = ({ deltas, said }: Lines.Asked): ReadonlyArray<ReadonlyArray<Provider.Delta>> =>
  [...deltas ?? [], deltas === undefined || said._tag !== "Replied" ? [] : Pieces.ofCalls(said.reply.content)]
    .filter((pieces) => pieces.length > 0)
