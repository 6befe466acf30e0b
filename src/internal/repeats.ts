/**
 * Does a run go round in circles? When the same calls come again and again, alone or in turn with others.
 */
import type * as Turn from "../Turn.ts"

/** Whether the last turns ask for the same, or alternate between the same two, so many times. */
export const isCircling = (turns: ReadonlyArray<Turn.Turn>, most: number): boolean =>
  isPeriodic(turns, 1, most) || isPeriodic(turns, 2, most)

const isPeriodic = (turns: ReadonlyArray<Turn.Turn>, period: number, times: number): boolean => {
  const from = turns.length - period * times
  if (from < 0) return false
  for (let at = turns.length - 1; at >= from + period; at--) {
    if (!isSame(turns[at], turns[at - period])) return false
  }
  return true
}

/** Whether two turns ask for the same, in whatever order. */
const isSame = (one: Turn.Turn | undefined, other: Turn.Turn | undefined): boolean => {
  if (one === undefined || other === undefined || one.calls.length === 0) return false
  if (one.calls.length !== other.calls.length) return false
  const left = other.calls.slice()
  return one.calls.every((call) => {
    const at = left.findIndex((its) => isSameCall(call, its))
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  })
}

const isSameCall = (one: Turn.Call, other: Turn.Call): boolean => {
  if (one.name !== other.name) return false
  if (one.raw !== undefined && one.raw === other.raw) return true
  return one.input !== undefined && isSameJson(one.input, other.input)
}

// It ends at the first difference, which most often comes early: this is asked in every turn.
const isSameJson = (one: unknown, other: unknown): boolean => {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameJson(Reflect.get(one, key), Reflect.get(other, key)))
}
