// What is the work that every contender does? A script for the model, tools with their bodies, and what must have been
// seen when it is done.

/** How a tool goes about its work. */
export type Body =
  | "at once"
  /** A promise that is settled already. */
  | "settled"
  | "50 ms"
  /** Until `seen.gate` opens. */
  | "gate"
  /** Never ends; in the contender's own way, so on Effect there is no signal to heed. */
  | "endless"
  /** A promise that never settles, and heeds its signal. */
  | "heeds"
  /** A promise that never settles, and ignores its signal. */
  | "deaf"

export interface Spec {
  /** How often the model asks for calls before it answers. */
  readonly turns: number
  /** How many calls it asks for each time. */
  readonly calls: number
  /** How many tools there are. */
  readonly tools: number
  /** How many pieces of text come with the calls; with any, the model is streamed. */
  readonly deltas: number
  readonly body: Body
}

export const spec = (options: Partial<Spec>): Spec => ({
  turns: 1,
  calls: 1,
  tools: 1,
  deltas: 0,
  body: "at once",
  ...options
})

/** What happened since it was last cleared. */
export interface Seen {
  requests: number
  /** The tool definitions of the last request. */
  definitions: number
  started: number
  stopped: number
  deltas: number
  /** The calls that were answered as timed out with their work still going on. */
  stillRunning: number
  gate: Promise<void>
  /** The JSON Schemas that a model was sent, by identity, where they are to be counted. */
  schemas?: Set<object>
}

export const nothingSeen = (): Seen => ({
  requests: 0,
  definitions: 0,
  started: 0,
  stopped: 0,
  deltas: 0,
  stillRunning: 0,
  gate: Promise.resolve()
})

/** One run of an agent to its last word. */
export type Run = () => Promise<string>

export interface Contender {
  /** Makes the tools and the agent. */
  readonly define: (spec: Spec, seen: Seen) => Run | Promise<Run>
  /** The bodies without an end that its tools can have a deadline for: 10 ms, where the body is one of them. */
  readonly timesOut: ReadonlyArray<Body>
}

/** Whether the body has no end, so that its tool has a deadline. */
export const isTimed = ({ body }: Spec): boolean => body === "endless" || body === "heeds" || body === "deaf"

export const question = "What is the weather in Paris?"
export const answer = "done"
export const json = '{"city":"Paris","days":3}'

export interface Input {
  readonly city: string
  readonly days: number
}

export interface Weather {
  readonly city: string
  readonly temp: number
}

export const weather = ({ city }: Input): Weather => ({ city, temp: 21 })

export const toolNames = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, at) => at === 0 ? "get_weather" : `get_weather_${at}`)

export const description = "Current weather for a city"

/** The ids of the calls of a turn, or none when the model answers. */
export const callsOf = (spec: Spec, turn: number): ReadonlyArray<string> => script(spec).calls[turn] ?? none

/** The pieces of text that come with the calls of a turn. */
export const deltasOf = (spec: Spec, turn: number): ReadonlyArray<string> =>
  turn < spec.turns ? script(spec).deltas : none

/** What a model says; it is written before it is said, so that no run pays for it. */
export interface Script {
  readonly calls: ReadonlyArray<ReadonlyArray<string>>
  readonly deltas: ReadonlyArray<string>
}

const scripts = new WeakMap<Spec, Script>()

export const script = (spec: Spec): Script => {
  const known = scripts.get(spec)
  if (known !== undefined) return known
  const written = {
    calls: Array.from(
      { length: spec.turns },
      (_, turn) => Array.from({ length: spec.calls }, (_, at) => `call_${turn}_${at}`)
    ),
    deltas: Array.from({ length: spec.deltas }, () => "word ")
  }
  scripts.set(spec, written)
  return written
}

const none: ReadonlyArray<string> = []

/** A tool's work for those who write promises. */
export const perform = (
  { body }: Spec,
  seen: Seen
): (input: Input, signal?: AbortSignal) => Weather | Promise<Weather> => {
  const start = (input: Input): Weather => {
    seen.started++
    return weather(input)
  }
  switch (body) {
    case "at once":
      return start
    case "settled":
      return (input) => Promise.resolve(start(input))
    case "50 ms":
      return (input) => new Promise((done) => setTimeout(() => done(start(input)), 50))
    case "gate":
      return (input) => {
        const found = start(input)
        return seen.gate.then(() => found)
      }
    case "endless":
    case "heeds":
      return (input, signal) => {
        start(input)
        return new Promise((_, fail) => {
          signal?.addEventListener("abort", () => {
            seen.stopped++
            fail(signal.reason)
          }, { once: true })
        })
      }
    case "deaf":
      return (input) => {
        start(input)
        return new Promise(() => {})
      }
  }
}

const differs = (what: string, wanted: unknown, found: unknown) =>
  wanted === found ? [] : [`${what}: ${found} instead of ${wanted}`]

/** What is wrong with what was seen of one run. */
export const faults = (spec: Spec, seen: Seen, text: string): ReadonlyArray<string> => [
  ...differs("text", answer, text),
  ...differs("tool runs", spec.turns * spec.calls, seen.started),
  ...differs("requests", spec.turns + 1, seen.requests),
  ...differs("tool definitions", spec.tools, seen.definitions),
  ...differs("deltas", spec.deltas * spec.turns, seen.deltas)
]
