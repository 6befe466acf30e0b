// How do the figures read? The table of goals, and for each workload what every contender costs.
import * as Goals from "./goals.ts"
import { once, slow, workloads } from "./workloads.ts"

export interface Measured {
  readonly results: Goals.Results
  /** What was given up, and why. */
  readonly given: ReadonlyArray<string>
  readonly rounds: number
  readonly seconds: number
  /** Whether it was to be over soon. */
  readonly isLook: boolean
  /** Whether all of it was measured. */
  readonly isWhole: boolean
}

/** The goals for which toolfold was measured. */
export const goals = (results: Goals.Results): ReadonlyArray<Goals.Row> =>
  Goals.rows(results).filter(({ ours }) => ours !== "–")

export const page = ({ given, isLook, isWhole, results, rounds, seconds }: Measured): string =>
  `# What an agent's loop costs

Written by \`npm run bench\`: Node ${process.versions.node}, ${
    rounds === 1 ? "one round" : isWhole ? `${rounds} rounds (${fewer()})` : `${rounds} rounds`
  }, ${seconds.toFixed(0)} s.${
    isLook
      ? " A look: two processes at a time, less time to get warm for each but ai-sdk, and as many rounds of the peers as there was time for."
      : ""
  }

A model without latency (W10: a server on this machine); the same work is checked for the same result before it is timed. Times
are CPU time, of a process of its own for each contender, workload and round. It first runs until ten pieces are no cheaper
than the ten before and hardly scatter, for three seconds at most (one for ${
    slow.join(", ")
  }); then it measures up to eleven
slices of 50 ms, of which the median counts: garbage collection and the compiler's second thoughts are part of what a thing
costs. In W1 to W4, W6 and W7 contenders, and the sizes of one, measure a slice each in turn, so that a machine that is slow for a
while is slow for all. W5: the median of up to three crowds; W8: the least of five starts, one of each in turn; W9: one batch; W11: the median of three checks. A
cell has the median of the rounds, in brackets the lowest and the highest quartile of the slices of any round, and (×) the
median of the ratios to ours within a round. A dash: not measured, since it has none or would take too long.

${summary(results)}

${Object.keys(results).map((id) => detail(results, id)).join("\n")}${
    given.length === 0 ? "" : `\n## Given up\n\n${given.map((line) => `- ${line}\n`).join("")}`
  }`

/** What has fewer rounds than the rest. */
const fewer = (): string => `two of ${atMost(2)}; one of ${atMost(1)}, and of ${once.join(", ")}`

const atMost = (rounds: number): string =>
  Object.keys(workloads).filter((id) => workloads[id]?.rounds === rounds).join(", ")

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
  const keys = [...new Set(rounds.flatMap((round) => Object.values(round).flatMap(Object.keys)))].filter((key) =>
    !/ (low|high)$/.test(key)
  )
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
  const ends = ["low", "high"].flatMap((end) => Goals.valuesOf(rounds, contender, `${key} ${end}`))
  const [least, most] = [Math.min(...values, ...ends), Math.max(...values, ...ends)].map(show)
  const spread = least === most ? "" : ` (${least}–${most})`
  const ratios = Goals.ratios(rounds, key, contender, "ours")
  const against = contender === "ours" || ratios.length === 0 ? "" : `; ${Goals.times(Goals.median(ratios))}`
  return `${middle}${spread}${against}`
}

const shown = (key: string): (value: number) => string => {
  if (key === "heap left") return (bytes) => `${bytes.toFixed(0)} B`
  if (key.includes("bytes") || key === "heap") return Goals.size
  if (key.includes("instantiations")) return Goals.count
  return /answered|stopped|running|left$|^runs$|made/.test(key) ? String : Goals.time
}
