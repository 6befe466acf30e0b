// Does toolfold hold what it set out to reach? Each goal reads the figures and says what the others cost, what it costs
// itself, and whether its must and its aim hold.
import type { Figures } from "./measure.ts"

/** The figures of a workload: one record a contender, for every round. */
export type Rounds = ReadonlyArray<Readonly<Record<string, Figures>>>
export type Results = Readonly<Record<string, Rounds>>

export const peers = ["ai-sdk", "openai-agents", "langchain", "mastra"]

export interface Verdict {
  readonly text: string
  /** Absent where a contender that it needs was not measured. */
  readonly holds: boolean | undefined
}

export interface Row {
  readonly work: string
  readonly zod: string
  readonly effect: string
  readonly effectAi: string
  readonly peer: string
  readonly ours: string
  readonly must: ReadonlyArray<Verdict>
  readonly aim: ReadonlyArray<Verdict>
}

export const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted.length === 0 ? NaN : ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
}

export const valuesOf = (rounds: Rounds | undefined, contender: string, key: string): ReadonlyArray<number> =>
  (rounds ?? []).flatMap((round) => round[contender]?.[key] ?? [])

/** The ratios of two figures, each within its round. */
export const ratios = (rounds: Rounds | undefined, key: string, a: string, b: string): ReadonlyArray<number> =>
  (rounds ?? []).flatMap((round) => {
    const [above, below] = [round[a]?.[key], round[b]?.[key]]
    return above === undefined || below === undefined ? [] : [above / below]
  })

export const time = (us: number): string => {
  if (Number.isNaN(us)) return "–"
  const [value, unit] = us < 1_000 ? [us, "µs"] : us < 1_000_000 ? [us / 1_000, "ms"] : [us / 1_000_000, "s"]
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${unit}`
}

export const size = (bytes: number): string => Number.isNaN(bytes) ? "–" : `${(bytes / 1_024).toFixed(1)} KB`

export const count = (things: number): string => Number.isNaN(things) ? "–" : `${(things / 1_000).toFixed(0)} k`

export const times = (ratio: number): string =>
  Number.isNaN(ratio) ? "–" : `×${ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(0)}`

const atMost = (goal: string, found: number, most: number, show: (found: number) => string): Verdict => ({
  text: `${goal}: ${show(found)}`,
  holds: Number.isNaN(found) ? undefined : found <= most
})

const part = (ratio: number): string => Number.isNaN(ratio) ? "–" : `1/${(1 / ratio).toFixed(1)}`

export const rows = (results: Results): ReadonlyArray<Row> => {
  const of = (workload: string, key: string, contender: string) => median(valuesOf(results[workload], contender, key))
  const ratio = (workload: string, key: string, a: string, b: string) => median(ratios(results[workload], key, a, b))
  const best = (workload: string, key: string): string =>
    peers.filter((peer) => !Number.isNaN(of(workload, key, peer)))
      .toSorted((a, b) => of(workload, key, a) - of(workload, key, b))[0] ?? ""
  const shown = (workload: string, key: string, show: (value: number) => string) => {
    const peer = best(workload, key)
    const value = (contender: string) => show(of(workload, key, contender))
    return {
      zod: value("zod"),
      effect: value("effect"),
      effectAi: value("effect-ai"),
      peer: peer === "" ? "–" : `${peer} ${value(peer)}`,
      ours: value("ours")
    }
  }
  const exponent = (workload: string, from: number, to: number, contender: string): number =>
    median((results[workload] ?? []).flatMap((round) => {
      const [small, large] = [round[contender]?.[from], round[contender]?.[to]]
      return small === undefined || large === undefined ? [] : [1 + Math.log(large / small) / Math.log(to / from)]
    }))
  const growth = (workload: string, from: number, to: number) => {
    const show = (contender: string) => exponentText(exponent(workload, from, to, contender))
    const steady = peers.filter((peer) => !Number.isNaN(exponent(workload, from, to, peer)))
      .toSorted((a, b) => exponent(workload, from, to, a) - exponent(workload, from, to, b))[0]
    return {
      zod: show("zod"),
      effect: show("effect"),
      effectAi: show("effect-ai"),
      peer: steady === undefined ? "–" : `${steady} ${show(steady)}`,
      ours: show("ours"),
      must: [atMost("≤ 1.10", exponent(workload, from, to, "ours"), 1.1, exponentText)],
      aim: []
    }
  }
  const manyTools = (contender: string): number =>
    median((results.W4 ?? []).flatMap((round) => {
      const figures = round[contender]
      return figures === undefined ? [] : [(figures.later ?? NaN) / (figures["later, 1 tool"] ?? NaN)]
    }))
  const manyToolsPeer = peers.filter((peer) => !Number.isNaN(manyTools(peer)))
    .toSorted((a, b) => manyTools(a) - manyTools(b))[0]

  /** What is above the floor of a loop that posts ready bodies. */
  const encoding = (contender: string, turns: number): number =>
    median((results.W10 ?? []).flatMap((round) => {
      const [all, floor] = [round[contender]?.[turns], round.floor?.[turns]]
      return all === undefined || floor === undefined ? [] : [all - floor]
    }))

  const turnPeer = best("W2", "turn")
  const callPeer = best("W3", "32")
  const deltaPeer = best("W7", "run")
  const runPeer = best("W5", "run")

  return [
    {
      work: "a turn with one call (W2)",
      ...shown("W2", "turn", time),
      must: [atMost("≤ 1/25 of the best peer", ratio("W2", "turn", "ours", turnPeer), 1 / 25, part)],
      aim: [atMost("≤ 2× Effect", ratio("W2", "turn", "ours", "effect"), 2, times)]
    },
    {
      work: "one of 32 parallel calls (W3)",
      ...shown("W3", "32", time),
      must: [atMost("≤ 1/8 of the best peer", ratio("W3", "32", "ours", callPeer), 1 / 8, part)],
      aim: [atMost("≤ 2× Effect", ratio("W3", "32", "ours", "effect"), 2, times)]
    },
    { work: "growth, 100 → 1,000 turns, exponent (W6)", ...growth("W6", 100, 1_000) },
    { work: "growth, 32 → 1,024 parallel calls, exponent (W3)", ...growth("W3", 32, 1_024) },
    {
      work: "2,000 text deltas, as a stream (W7)",
      ...shown("W7", "run", time),
      must: [atMost("faster than every peer", ratio("W7", "run", "ours", deltaPeer), 1, times)],
      aim: [atMost("≤ 3× zod", ratio("W7", "run", "ours", "zod"), 3, times)]
    },
    {
      work: "2,000 text deltas, by an observer (W7)",
      ...shown("W7", "run", time),
      ours: time(of("W7", "run", "ours-onText")),
      must: [atMost("faster than every peer", ratio("W7", "run", "ours-onText", deltaPeer), 1, times)],
      aim: [atMost("≤ 3× zod", ratio("W7", "run", "ours-onText", "zod"), 3, times)]
    },
    {
      work: "a later turn with 200 tools against one (W4)",
      zod: times(manyTools("zod")),
      effect: times(manyTools("effect")),
      effectAi: times(manyTools("effect-ai")),
      peer: manyToolsPeer === undefined ? "–" : `${manyToolsPeer} ${times(manyTools(manyToolsPeer))}`,
      ours: times(manyTools("ours")),
      must: [
        atMost("≤ ×1.3", manyTools("ours"), 1.3, times),
        atMost("each JSON Schema made once", of("W4", "schemas made", "ours"), 200, (made) => `${made} for 200`)
      ],
      aim: []
    },
    {
      work: "a turn through a plain model of effect/ai (W2)",
      ...shown("W2", "turn", time),
      ours: time(of("W2", "turn", "ours-plain")),
      must: [
        atMost("≤ 1.3× the bare request", ratio("W2", "turn", "ours-plain", "effect-ai-deferred"), 1.3, times),
        atMost("≤ 1/2.5 of the best peer", ratio("W2", "turn", "ours-plain", turnPeer), 1 / 2.5, part)
      ],
      aim: []
    },
    {
      work: "10,000 runs at once, CPU a run (W5)",
      ...shown("W5", "run", time),
      must: [
        atMost("≤ 1/7 of the best peer", ratio("W5", "run", "ours", runPeer), 1 / 7, part),
        atMost("no timer left", of("W5", "timers left", "ours"), 0, String),
        atMost("no heap left, a run", of("W5", "heap left", "ours"), 200, (bytes) => `${bytes.toFixed(0)} B`)
      ],
      aim: []
    },
    {
      work: "live heap of a run in flight (W5)",
      ...shown("W5", "heap", size),
      must: [atMost("≤ 10 KB", of("W5", "heap", "ours"), 10 * 1_024, size)],
      aim: [atMost("≤ 5.5 KB", of("W5", "heap", "ours"), 5.5 * 1_024, size)]
    },
    {
      work: "minimal agent, minified, gz (W8)",
      ...shown("W8", "bundle bytes gz", size),
      must: [atMost("≤ 63 KB", of("W8", "bundle bytes gz", "ours"), 63 * 1_024, size)],
      aim: [atMost("≤ 47 KB", of("W8", "bundle bytes gz", "ours"), 47 * 1_024, size)]
    },
    {
      work: "cold start of its bundle, CPU over node's (W8)",
      ...shown("W8", "bundle starts", time),
      must: [atMost("≤ effect/ai", ratio("W8", "bundle starts", "ours", "effect-ai"), 1, times)],
      aim: []
    },
    {
      work: "a turn of 1,000 over HTTP, without what HTTP costs (W10)",
      zod: "–",
      effect: "–",
      effectAi: "–",
      peer: `ai-sdk ${time(encoding("ai-sdk", 1_000))}`,
      ours: time(encoding("ours", 1_000)),
      must: [],
      aim: [atMost("less than the AI SDK", encoding("ours", 1_000) / encoding("ai-sdk", 1_000), 1, times)]
    },
    {
      work: "type check of 100 tools, instantiations (W11)",
      ...shown("W11", "instantiations", count),
      must: [],
      aim: [atMost("≤ effect/ai", ratio("W11", "instantiations", "ours", "effect-ai"), 1, times)]
    },
    {
      work: "1,000 tools that never end, 10 ms: answered / stopped / said to be running (W9)",
      zod: endless(of, "zod"),
      effect: endless(of, "effect"),
      effectAi: endless(of, "effect-ai"),
      peer: peers.map((peer) => [peer, endless(of, peer)]).filter(([, text]) => text !== "–")
        .map((pair) => pair.join(" ")).join("; ") || "–",
      ours: endless(of, "ours"),
      must: [
        ...(["endless", "heeds", "deaf"] as const).map((body) =>
          exactly(`${body}: all answered`, of("W9", `${body}: answered`, "ours"), 1_000)
        ),
        exactly("native ones stopped", of("W9", "endless: stopped", "ours"), 1_000),
        exactly("ones that heed stopped", of("W9", "heeds: stopped", "ours"), 1_000),
        exactly("deaf ones said to be running", of("W9", "deaf: said to be running", "ours"), 1_000)
      ],
      aim: []
    }
  ]
}

const exponentText = (exponent: number): string => Number.isNaN(exponent) ? "–" : exponent.toFixed(2)

const exactly = (goal: string, found: number, wanted: number): Verdict => ({
  text: `${goal}: ${Number.isNaN(found) ? "–" : found}`,
  holds: Number.isNaN(found) ? undefined : found === wanted
})

const endless = (of: (workload: string, key: string, contender: string) => number, contender: string): string =>
  ["endless", "heeds", "deaf"].flatMap((body) => {
    const figures = ["answered", "stopped", "said to be running"].map((key) => of("W9", `${body}: ${key}`, contender))
    return figures.some(Number.isNaN)
      ? []
      : [`${body} ${figures.join(" / ")} in ${time(of("W9", `${body}: wall`, contender))}`]
  }).join(", ") || "–"
