// A sample of the recorded loops; `npm run suite:traffic` plays all of them.
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Replay from "../scripts/replay.ts"

const loops = Replay.loops()
const every = 10
let replay: Replay.Replay

beforeAll(async () => {
  replay = await Replay.serve()
})
afterAll(() => replay.close())

describe("recorded loops", () => {
  for (const loop of (loops ?? []).filter((_, at) => at % every === 0)) {
    it(`${loop.sequence} ends as recorded, plain and streamed`, async () => {
      assert.isUndefined(await replay.play(loop, false))
      assert.isUndefined(await replay.play(loop, true))
    })
  }
  if (loops === undefined) it.skip("end as recorded (no data)", () => undefined)
})
