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

const isSame = (one: Turn.Turn | undefined, other: Turn.Turn | undefined): boolean => {
  if (one === undefined || other === undefined || one.calls.length === 0) return false
  if (one.calls.length !== other.calls.length) return false
  if (one.calls.every((call, at) => call.name === other.calls[at]?.name && isSameText(call, other.calls[at]))) {
    return true
  }
  const [forms, others] = [one.calls.map(formOf).sort(), other.calls.map(formOf).sort()]
  return forms.every((form, at) => form === others[at])
}

const isSameText = ({ raw }: Turn.Call, other: Turn.Call | undefined): boolean =>
  raw !== undefined && raw === other?.raw

/** A call in one form: whatever the order of keys in its arguments. */
const formOf = ({ input, name, raw }: Turn.Call): string => `${name} ${input === undefined ? raw : stable(input)}`

const stable = (value: unknown): string =>
  JSON.stringify(
    value,
    (_, member: unknown) =>
      typeof member === "object" && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member
  ) ?? ""
