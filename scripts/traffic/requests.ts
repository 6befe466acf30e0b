// Is what we send right? Requests against the recorded ones, and against the rules of their API.
import * as Alike from "./alike.ts"
import type { Exchange, Json } from "./data.ts"
import * as Rules from "./rules.ts"

/** A body that was sent, and the exchange that it stands for. */
export interface Sent {
  readonly body: Json | string | undefined
  readonly recorded: Exchange
  readonly differences: ReadonlyArray<Alike.Difference>
}

/** What is sent otherwise than recorded, or nothing. */
export const difference = ({ body, differences, recorded }: Sent): string | undefined =>
  typeof body === "object" ? Alike.difference(body, recorded.request, differences) : body ?? "nothing was sent"

/** What an API would refuse of it, or nothing; what the recording breaks, too, was taken. */
export const broken = ({ body, recorded: { api, request } }: Sent): string | undefined => {
  if (typeof body !== "object") return body ?? "nothing was sent"
  const taken = Rules.problems(api, request)
  const [problem] = Rules.problems(api, body).filter((found) => !taken.includes(found))
  return problem
}

/** In how many requests each difference is one that nothing else explains. */
export const needed = (all: ReadonlyArray<Sent>): ReadonlyArray<readonly [count: number, Alike.Difference]> => {
  const known = new Map(all.flatMap(({ differences }) => differences).map((one) => [one.what, one]))
  return [...known.values()].map((one) => {
    const hiding = all.filter((sent) =>
      difference(sent) === undefined &&
      difference({ ...sent, differences: without(sent.differences, one) }) !== undefined
    )
    return [hiding.length, one] as const
  })
}

const without = (all: ReadonlyArray<Alike.Difference>, { what }: Alike.Difference): ReadonlyArray<Alike.Difference> =>
  all.filter((one) => one.what !== what)
