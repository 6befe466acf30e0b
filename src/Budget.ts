/**
 * What may still be spent? Requests, tool calls, tokens and dollars, by one run or by all that share a budget.
 *
 * Counts are taken before they are spent, so that calls and runs beside each other never exceed them. Tokens and dollars are
 * known only afterwards: they are looked at before a request and charged after it, so the last request may go beyond.
 *
 * @since 0.1.0
 */
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Log from "./internal/log.ts"
import type { Usage } from "./Usage.ts"

/**
 * How much may be spent; what is not said has no limit.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  readonly requests?: number | undefined
  readonly toolCalls?: number | undefined
  readonly tokens?: number | undefined
  readonly usd?: number | undefined
}

/**
 * What was spent. Requests and calls count when they begin.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spent {
  readonly requests: number
  readonly toolCalls: number
  readonly tokens: number
  readonly usd: number
}

const TypeId = "~toolfold/Budget"

/**
 * A budget: whoever is given the same one shares it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget {
  readonly [TypeId]: typeof TypeId
  /** What was spent until now. */
  readonly spent: () => Spent
  /** What is left, here and in every budget around it; `Infinity` where there is no limit. */
  readonly left: () => Spent
  /** Counts as spent, here and in every budget around it. */
  readonly spend: (amount: Partial<Spent>) => void
  /** Whether dollars are counted here or around it, so that a price that is not known matters; reported once. */
  readonly needsPrice: () => boolean
}

const names = ["requests", "toolCalls", "tokens", "usd"] as const

const each = (f: (name: keyof Spent) => number): Spent => ({
  requests: f("requests"),
  toolCalls: f("toolCalls"),
  tokens: f("tokens"),
  usd: f("usd")
})

/**
 * A budget. Throws for a limit that is no number from 0 on, and where there is none.
 *
 * **Example** (A budget of two requests)
 *
 * ```ts run
 * import * as Budget from "toolfold/Budget"
 *
 * const budget = Budget.make({ requests: 2 })
 * const taken = [1, 2, 3].map(() => Budget.takeRequest(budget))
 * taken // => [true, true, false]
 * budget.spent().requests // => 2
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (limits: Limits): Budget => {
  const given = names.filter((name) => limits[name] !== undefined)
  if (given.length === 0) throw new Error(`a budget needs a limit: ${names.join(", ")}`)
  for (const name of given) {
    const limit = limits[name]
    if (!(typeof limit === "number" && limit >= 0)) {
      throw new Error(`a budget's ${name} must be a number from 0 on, got ${String(limit)}`)
    }
  }
  let spent = each(() => 0)
  let isUnreported = limits.usd !== undefined
  return {
    [TypeId]: TypeId,
    spent: () => spent,
    left: () => each((name) => Math.max(0, (limits[name] ?? Infinity) - spent[name])),
    spend: (amount) => {
      spent = each((name) => spent[name] + (amount[name] ?? 0))
    },
    needsPrice: () => {
      const needs = isUnreported
      isUnreported = false
      return needs
    }
  }
}

/**
 * The first budget within the second: what is spent of it is spent of both. It shows what was spent of the first.
 *
 * @category combining
 * @since 0.1.0
 */
export const within = (inner: Budget, outer: Budget): Budget => {
  if (membersOf(outer).has(inner)) return outer
  if (membersOf(inner).has(outer)) return inner
  const both: Budget = {
    [TypeId]: TypeId,
    spent: inner.spent,
    left: () => {
      const [here, around] = [inner.left(), outer.left()]
      return each((name) => Math.min(here[name], around[name]))
    },
    spend: (amount) => {
      inner.spend(amount)
      outer.spend(amount)
    },
    needsPrice: () => [inner.needsPrice(), outer.needsPrice()].includes(true)
  }
  members.set(both, new Set([...membersOf(inner), ...membersOf(outer)]))
  return both
}

// So that nothing is spent of one budget twice.
const members = new WeakMap<Budget, ReadonlySet<Budget>>()

const membersOf = (budget: Budget): ReadonlySet<Budget> => members.get(budget) ?? new Set([budget])

/**
 * Takes one request, if one is left and tokens and dollars are not used up.
 *
 * @category spending
 * @since 0.1.0
 */
export const takeRequest = (budget: Budget): boolean => {
  const { requests, tokens, usd } = budget.left()
  if (requests < 1 || tokens <= 0 || usd <= 0) return false
  budget.spend({ requests: 1 })
  return true
}

/**
 * Takes as many calls as are left of those that are wanted, and says how many.
 *
 * @category spending
 * @since 0.1.0
 */
export const takeCalls = (budget: Budget, wanted: number): number => {
  const toolCalls = Math.min(wanted, Math.floor(budget.left().toolCalls))
  budget.spend({ toolCalls })
  return toolCalls
}

/**
 * Charges what a request came to. A price that is not known costs nothing, and is warned of once.
 *
 * @category spending
 * @since 0.1.0
 */
export const charge = (budget: Budget, usage: Usage): Effect.Effect<void> =>
  Effect.suspend(() => {
    budget.spend({ tokens: usage.totalTokens, usd: usage.costUsd ?? 0 })
    return usage.costUsd === undefined && budget.needsPrice()
      ? Log.safely(
        Effect.logWarning(
          `the price of ${usage.model ?? "a model"} is not known: the budget's usd does not hold for it`
        )
      )
      : Effect.void
  })

/**
 * Whether a value is a budget.
 *
 * @category guards
 * @since 0.1.0
 */
export const isBudget = (u: unknown): u is Budget => typeof u === "object" && u !== null && TypeId in u

/**
 * The budget that holds where a fiber runs, if any. A run that has one of its own sets it for its tools, and so for every
 * agent that they run, however it is started.
 *
 * @category services
 * @since 0.1.0
 */
export const Current: Services.Reference<Budget | undefined> = Services.Reference<Budget | undefined>(
  "toolfold/Budget/Current",
  { defaultValue: () => undefined }
)
