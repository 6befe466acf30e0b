// What does one workload cost on one contender, in the tree that this file stands in? Its figures, as JSON.
//
//   node --expose-gc scripts/bench-workload.ts CONTENDER WORKLOAD
const [contender = "", id = ""] = process.argv.slice(2)

if (id === "W8") {
  const Start = await import("../bench/start.ts")
  await Start.prepare([contender])
  process.stdout.write(`\n${JSON.stringify(Start.measure([contender])[0])}`)
} else if (id === "W11") {
  const Types = await import("../bench/types.ts")
  Types.prepare()
  process.stdout.write(`\n${JSON.stringify(Types.measure(contender))}`)
} else {
  // It reads the same arguments.
  await import("../bench/measure.ts")
}
