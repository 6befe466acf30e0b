/**
 * What has a run spent? By model, and by agent where some ran within it.
 */
import * as Effect from "effect/Effect"
import * as Usage from "../Usage.ts"

/** What an agent spent, by model. */
export interface Spent {
  readonly agent: string
  readonly spent: ReadonlyArray<Usage.Usage>
}

/** What of a run is about what it spent. */
interface Spending {
  readonly agent: string
  /** By model. */
  readonly spent: Array<Usage.Usage>
  /** What agents within it spent, by agent and model. */
  readonly nested: Array<Spent>
  /** What it spent before it was resumed within a call, which the run around it has counted. */
  readonly before: Array<Spent>
}

export const add = ({ spent }: { readonly spent: Array<Usage.Usage> }, usage: Usage.Usage): void => {
  const at = spent.length === 1 && spent[0]?.model === usage.model
    ? 0
    : spent.findIndex(({ model }) => model === usage.model)
  const before = spent[at]
  if (before === undefined) spent.push(usage)
  else spent[at] = Usage.add(before, usage)
}

/** What a run spent, and agents within it. */
export const of = ({ agent, nested, spent }: Spending): ReadonlyArray<Spent> => [{ agent, spent }, ...nested]

export const total = (
  { agent, nested, spent }: Spending,
  costOf: (model: string, usage: Usage.Usage) => number | undefined
): Usage.Total => {
  if (nested.length === 0) return Usage.total(spent, costOf)
  const all = { spent: spent.slice() }
  const byAgent = new Map([[agent, { spent: spent.slice() }]])
  for (const each of nested) {
    const its = byAgent.get(each.agent) ?? { spent: [] }
    byAgent.set(each.agent, its)
    for (const usage of each.spent) [all, its].forEach((sum) => add(sum, usage))
  }
  const totals = Array.from(byAgent, ([agent, { spent }]) => {
    const { byModel: _, ...total } = Usage.total(spent, costOf)
    return [agent, total] as const
  })
  return { ...Usage.total(all.spent, costOf), byAgent: Object.fromEntries(totals) }
}

/** Forgets what was spent, for whoever has counted it. */
export const forget = ({ agent, before, nested, spent }: Spending): Effect.Effect<void> =>
  Effect.sync(() => {
    before.push({ agent, spent: spent.splice(0) }, ...nested.splice(0))
  })
