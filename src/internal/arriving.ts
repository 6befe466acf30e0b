/**
 * What is a call called whose arguments are still arriving? As it is when all of it is there: by an id that is its own, though
 * a provider may use one twice, and may have to be asked again.
 */
import type { Reply } from "./ask.ts"

/** A call that has been shown: what the provider calls it, which it is of which answer, and its id. */
export interface Arriving {
  readonly given: string
  readonly at: number
  readonly attempt: number
  readonly id: string
}

/** Where calls get their ids, and those that have been shown. */
interface Ids {
  readonly own: (given: string) => string
  arriving: Array<Arriving> | undefined
}

/** The id of a call of which a piece has arrived. What an answer that broke off has shown is the same call again. */
export const idOf = (ids: Ids, given: string, at: number, attempt: number): string => {
  ids.arriving ??= []
  const { arriving } = ids
  const known = arriving.find((call) => call.given === given && call.at === at && call.attempt === attempt)
  if (known !== undefined) return known.id
  const earlier = takeFirst(arriving, (call) => call.given === given && call.attempt < attempt)
  const id = earlier?.id ?? ids.own(given)
  arriving.push({ given, at, attempt, id })
  return id
}

/** Gives the calls of a whole answer their ids, in order: those that they were shown with, if they were. */
export const idsOf = ({ arriving, own }: Ids, content: Reply["content"]): (given: string) => string => {
  if (arriving === undefined) return own
  const asked = content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
  let next = 0
  return (given) => {
    const at = next++
    const call = takeFirst(arriving, (call) => call.given === given && call.at === at) ??
      // One that was shown at another place, unless that is where a call of this id stands too.
      takeFirst(arriving, (call) => call.given === given && asked[call.at] !== given)
    return call?.id ?? own(given)
  }
}

const takeFirst = <A>(list: Array<A>, is: (member: A) => boolean): A | undefined => {
  const at = list.findIndex(is)
  return at < 0 ? undefined : list.splice(at, 1)[0]
}
