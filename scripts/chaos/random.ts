// What is drawn by lot, so that it can be drawn again? Numbers of a seed: `SEED`, or one of the moment.

export const seed = (): number => Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))

/** Numbers from 0 to below 1, always the same for a seed. */
export const numbers = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** So many of the numbers from 1 to the last, in order: all of them where there are no more. */
export const some = (count: number, last: number, next: () => number): ReadonlyArray<number> => {
  const all = Array.from({ length: last }, (_, at) => at + 1)
  if (last <= count) return all
  return all.map((at) => [next(), at] as const).sort(([one], [other]) => one - other).slice(0, count)
    .map(([, at]) => at).sort((one, other) => one - other)
}
