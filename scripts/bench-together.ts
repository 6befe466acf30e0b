// What does a turn cost in one tree against another? Both in one process, in turns of a few milliseconds, so that whatever else
// the machine does meets both: that finds a twentieth where processes of their own differ by halves.
//
//   node scripts/bench-together.ts TREE TREE TURNS CALLS
//
// Prints the ratio of the second to the first for each pair of slices, as JSON.
const [first = "", second = "", turns = "10", calls = "1"] = process.argv.slice(2)

const runOf = async (tree: string): Promise<() => Promise<string>> => {
  const Work = await import(`${tree}/bench/work.ts`)
  const { contender } = await import(`${tree}/bench/contenders/ours.ts`)
  return contender.define(Work.spec({ turns: Number(turns), calls: Number(calls) }), Work.nothingSeen())
}

const [one, other] = [await runOf(first), await runOf(second)]
// About eight milliseconds.
const times = Math.max(1, Math.round(2_500 / (Number(turns) * Number(calls))))

const slice = async (run: () => Promise<string>): Promise<number> => {
  const from = process.hrtime.bigint()
  for (let at = 0; at < times; at++) await run()
  return Number(process.hrtime.bigint() - from)
}

const ratios: Array<number> = []
for (let at = 0; at < 300; at++) {
  // Whoever is second finds a warmer cache.
  const isTurned = at % 2 === 1
  const before = await slice(isTurned ? other : one)
  const after = await slice(isTurned ? one : other)
  // The first half gets the process warm.
  if (at >= 150) ratios.push(isTurned ? before / after : after / before)
}
console.log(JSON.stringify(ratios))
