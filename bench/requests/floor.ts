// What does HTTP itself cost? Bodies that are there already, posted with fetch one after the other; the answers are parsed.
import { type Contender, messages } from "../requests.ts"
import * as Work from "../work.ts"

export const contender: Contender = {
  define: (turns, url) => {
    const all = messages(turns).map((message) => JSON.stringify(message))
    const parameters = {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city", "days"],
      additionalProperties: false
    }
    const tool = { type: "function", function: { name: "get_weather", description: Work.description, parameters } }
    // The messages last, so that one text holds every body but its end.
    const start = `{"model":"scripted","tools":${JSON.stringify([tool])},"messages":[`
    const bytes = Buffer.from(`${start}${all.join(",")}`)
    const ends = [start.length - 1]
    for (const message of all) ends.push((ends.at(-1) ?? 0) + message.length + 1)
    const bodies = Array.from(
      { length: turns + 1 },
      (_, turn) => Buffer.concat([bytes.subarray(0, ends[2 * turn + 1]), Buffer.from("]}")])
    )
    const headers = { "content-type": "application/json" }
    return async () => {
      let text = ""
      for (const body of bodies) {
        const response = await fetch(`${url}/chat/completions`, { method: "POST", headers, body })
        text = JSON.parse(await response.text()).choices[0].message.content ?? ""
      }
      return text
    }
  }
}
