/**
 * What is a name or an id called where not every character is taken? One that fits stays what it is; any other gets an
 * alias that is the same in every process, and no two have the same.
 *
 * Laws: `legal(to(x))`; `from(to(x)) = x`; `to(x) = x` where `x` is legal and stands for nothing else.
 */

/** What a name or an id may be. */
export interface Rule {
  readonly legal: RegExp
  /** Each character that must be replaced. */
  readonly illegal: RegExp
  /** What replaces it: nothing where all but letters and digits is refused. */
  readonly joint: "_" | ""
  readonly most: number
}

/** A rule from what a character may be, what the first one may be, and how many there may be. */
export const rule = (
  characters: string,
  size: { readonly most: number; readonly least?: number; readonly first?: string }
): Rule => ({
  legal: new RegExp(
    `^${size.first === undefined ? "" : `(?=[${size.first}])`}[${characters}]{${size.least ?? 1},${size.most}}$`
  ),
  illegal: new RegExp(`[^${characters}]`, "g"),
  joint: new RegExp(`^[${characters}]$`).test("_") ? "_" : "",
  most: size.most
})

/** Anything that is not empty. */
export const anything: Rule = { legal: /[^]/, illegal: /(?!)/g, joint: "_", most: Infinity }

const digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const digestSize = 9

/** Nine letters and digits for a text, the first a letter: 64 bits of FNV-1a over its UTF-16 halves. */
const digest = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    for (const byte of [unit & 0xff, unit >> 8]) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  }
  let out = digits.charAt(Number(hash % 52n))
  hash /= 52n
  while (out.length < digestSize) {
    out += digits.charAt(Number(hash % 62n))
    hash /= 62n
  }
  return out
}

/** The alias of a text; `nth` tells apart what would have the same. */
export const alias = ({ illegal, joint, legal, most }: Rule, text: string, nth = 0): string => {
  const tail = digest(nth === 0 ? text : `${text}\u0000${nth}`)
  const room = most - tail.length - joint.length
  const long = room > 0 ? `${text.replace(illegal, joint).slice(0, room).toWellFormed()}${joint}${tail}` : tail
  return legal.test(long) ? long : tail.slice(0, most)
}

interface Free {
  readonly legal: string
  /** Where to go on looking for the same text. */
  readonly next: number
}

const free = (rule: Rule, own: string, isTaken: (legal: string) => boolean, from = 0): Free => {
  if (from === 0 && rule.legal.test(own) && !isTaken(own)) return { legal: own, next: 0 }
  for (let nth = from;; nth++) {
    const legal = alias(rule, own, nth)
    if (!isTaken(legal)) return { legal, next: nth + 1 }
  }
}

/** Names in both directions. */
export interface Names {
  readonly to: (own: string) => string
  readonly from: (legal: string) => string
}

/** The names of these tools, which come first, and of any other that a transcript holds. */
export const names = (rule: Rule, known: ReadonlyArray<string>): Names => {
  const legalOf = new Map<string, string>()
  const ownOf = new Map<string, string>()
  const to = (own: string): string => {
    const made = legalOf.get(own)
    if (made !== undefined) return made
    const { legal } = free(rule, own, (legal) => ownOf.has(legal))
    legalOf.set(own, legal)
    ownOf.set(legal, own)
    return legal
  }
  // What is legal keeps its name, whatever the others would be called.
  for (const own of known) if (rule.legal.test(own)) to(own)
  for (const own of known) to(own)
  return { to, from: (legal) => ownOf.get(legal) ?? legal }
}

/** The ids of one transcript, which are taken in the order in which they stand in it. */
export interface Ids {
  /** The id of a call: its own, or an alias where that is illegal or an earlier call has it. */
  readonly call: (own: string) => string
  /** The id of a result: that of the latest call whose own id it names. */
  readonly result: (own: string) => string
  readonly from: (legal: string) => string
}

/** Ids by a rule; a transcript that is read again from its beginning needs new ones. */
export const ids = (rule: Rule): Ids => {
  const ownOf = new Map<string, string>()
  const latest = new Map<string, Free>()
  return {
    call: (own) => {
      const made = free(rule, own, (legal) => ownOf.has(legal), latest.get(own)?.next)
      ownOf.set(made.legal, own)
      latest.set(own, made)
      return made.legal
    },
    result: (own) => latest.get(own)?.legal ?? (rule.legal.test(own) ? own : alias(rule, own)),
    from: (legal) => ownOf.get(legal) ?? legal
  }
}
