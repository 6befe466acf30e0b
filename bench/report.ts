// How do the figures read? The table of goals, and for each workload what every contender costs.
import * as Goals from "./goals.ts"
import { slow, workloads } from "./workloads.ts"

export interface Measured {
  readonly results: Goals.Results
  /** What was given up, and why. */
  readonly given: ReadonlyArray<string>
  readonly rounds: number
  readonly seconds: number
}

/** The goals for which toolfold was measured. */
export const goals = (results: Goals.Results): ReadonlyArray<Goals.Row> =>
  Goals.rows(results).filter(({ ours }) => ours !== "–")

export const page = ({ given, results, rounds, seconds }: Measured): string =>
  `# What an agent's loop costs

Written by \`npm run bench\`: Node ${process.versions.node}, ${
    rounds === 1 ? "one round" : `${rounds} rounds (one for ${slow.join(", ")} and W9)`
  }, ${seconds.toFixed(0)} s.

A model without latency; the same work is checked for the same result before it is timed. Times are CPU time of a process of
its own for each contender and workload, warm: of eight slices the least, since what disturbs a slice only adds to it; then
the median of the rounds with the least and the most. Ratios (×) are medians of the ratios to ours within a round. A dash: not
measured, since it has none or would take longer than five seconds.

${summary(results)}

${Object.keys(results).map((id) => detail(results, id)).join("\n")}${
    given.length === 0 ? "" : `\n## Given up\n\n${given.map((line) => `- ${line}\n`).join("")}`
  }`

const table = (head: ReadonlyArray<string>, lines: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

const mark = ({ holds, text }: Goals.Verdict): string => `${holds === undefined ? "?" : holds ? "✓" : "✗"} ${text}`

const summary = (results: Goals.Results): string =>
  table(
    ["work", "hand-written zod", "hand-written Effect", "effect/ai loop", "best peer", "ours", "must", "aim"],
    goals(results).map((row) => [
      row.work,
      row.zod,
      row.effect,
      row.effectAi,
      row.peer,
      row.ours,
      row.must.map(mark).join("<br>"),
      row.aim.map(mark).join("<br>")
    ])
  )

const detail = (results: Goals.Results, id: string): string => {
  const { contenders = [], what = "" } = workloads[id] ?? {}
  const rounds = results[id] ?? []
  const keys = [...new Set(rounds.flatMap((round) => Object.values(round).flatMap(Object.keys)))]
  const present = contenders.filter((contender) => rounds.some((round) => contender in round))
  const lines = keys.map((key) => [key, ...present.map((contender) => cell(rounds, key, contender))])
  return `## ${id}: ${what}\n\n${table(["", ...present], lines)}\n`
}

const cell = (rounds: Goals.Rounds, key: string, contender: string): string => {
  const values = Goals.valuesOf(rounds, contender, key)
  if (values.length === 0) return "–"
  const show = shown(key)
  const middle = show(Goals.median(values))
  if (show === String) return middle
  const spread = values.length === 1 ? "" : ` (${show(Math.min(...values))}–${show(Math.max(...values))})`
  const ratios = Goals.ratios(rounds, key, contender, "ours")
  const against = contender === "ours" || ratios.length === 0 ? "" : `; ${Goals.times(Goals.median(ratios))}`
  return `${middle}${spread}${against}`
}

const shown = (key: string): (value: number) => string => {
  if (key === "heap left") return (bytes) => `${bytes.toFixed(0)} B`
  if (key.includes("bytes") || key === "heap") return Goals.size
  return /answered|stopped|running|left$|^runs$|made/.test(key) ? String : Goals.time
}
