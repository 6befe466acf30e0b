// Is a JSON Schema understood? Every tool of the collected schemas with its arguments, and the official test suite.
//
//   npm run suite:schemas
//
// What is not understood is written down in scripts/known-misses, each with its reason: a miss that is not there fails,
// and so does one that is there and passes.
import * as Schemas from "./schemas.ts"

const collected = Schemas.collected()
const drafts = Schemas.drafts()
if (collected === undefined || drafts === undefined) {
  console.log(
    `no schemas at ${Schemas.root}: set TOOLFOLD_DATA to the folder that holds schemas/ and json-schema-test-suite/`
  )
  process.exit(2)
}

let passed = 0
let failed = 0
let known = 0

const report = (list: Schemas.KnownMisses, checked: number, misses: ReadonlyArray<Schemas.Miss>): void => {
  const { gone, unexpected } = Schemas.compare(list, misses)
  for (const miss of misses) {
    console.log(`  miss   ${miss.id}: ${miss.what} (${Schemas.reasonOf(list, miss.id) ?? "not known"})`)
  }
  for (const miss of unexpected) console.log(`  FAIL   ${miss.id}: ${miss.what}, and is no known miss`)
  for (const id of gone) console.log(`  FAIL   ${id}: passes, so it is a known miss no more`)
  passed += checked - misses.length
  known += misses.length - unexpected.length
  failed += unexpected.length + gone.length
}

for (const { file, tools } of collected) {
  const result = await Schemas.checkTools(tools)
  console.log(
    `${file}: ${tools.length} tools, ${result.refused} refused; valid accepted ${result.accepted}/${result.valid}, ` +
      `invalid refused ${result.rejected}/${result.invalid}`
  )
  report(Schemas.knownMisses(file), tools.length + result.valid + result.invalid, result.misses)
}
for (const { draft, groups } of drafts) {
  const { misses, total } = Schemas.checkDraft(draft, groups)
  console.log(`${draft}: ${total - misses.length}/${total} tests of the official suite`)
  report(Schemas.knownMisses(draft), total, misses)
}
console.log(`${known} known misses`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
