// A sample of the recorded traffic; `npm run suite:traffic` plays all of it.
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Replay from "../scripts/replay.ts"
import * as Alike from "../scripts/traffic/alike.ts"
import * as Data from "../scripts/traffic/data.ts"
import { type Host, serve } from "../scripts/traffic/host.ts"
import * as Play from "../scripts/traffic/play.ts"
import * as Requests from "../scripts/traffic/requests.ts"
import * as Sending from "../scripts/traffic/sending.ts"

const loops = Replay.loops()
const data = Data.load()
const every = 10
let replay: Replay.Replay
let host: Host

beforeAll(async () => {
  replay = await Replay.serve()
  host = await serve()
})
afterAll(() => {
  replay.close()
  host.close()
})

describe("recorded loops", () => {
  for (const loop of (loops ?? []).filter((_, at) => at % every === 0)) {
    it(`${loop.sequence} ends as recorded, plain and streamed`, async () => {
      assert.isUndefined(await replay.play(loop, false))
      assert.isUndefined(await replay.play(loop, true))
    })
  }
  if (loops === undefined) it.skip("end as recorded (no data)", () => undefined)
})

describe("recorded requests", () => {
  const files = (data?.files ?? []).filter((_, at) => at % (4 * every) === 0)
  for (const recorded of files.map((file) => data!.exchange(file))) {
    const { api, file } = recorded
    const comparison = api === "openai-chat" ? "is sent as recorded, and keeps" : "keeps"
    it(`${file} ${comparison} the rules of ${api}`, async () => {
      const sent = { body: await Sending.send(host, recorded), recorded, differences: Alike.deliberate }
      assert.isUndefined(Requests.broken(sent))
      if (api === "openai-chat") assert.isUndefined(Requests.difference(sent))
    })
  }
  if (data === undefined) it.skip("are sent as recorded (no data)", () => undefined)
})

describe("recorded loops of other APIs", () => {
  const others = (data?.loops ?? []).filter(({ api }) => api !== "openai-chat")
  for (const { api, files, sequence } of others.filter((_, at) => at % every === 0)) {
    it(`${sequence} of ${api} ends as recorded`, async () => {
      assert.isUndefined(await Play.loop(host, sequence, files.map((file) => data!.exchange(file))))
    })
  }
  if (data === undefined) it.skip("end as recorded (no data)", () => undefined)
})
