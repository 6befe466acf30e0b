// An agent answers a question about the files of a folder, and shows what it does.
//
//   npm start -- "question" --dir PATH [--model NAME]
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { dirname } from "node:path"
import { parseArgs } from "node:util"
import * as AgentLoop from "toolfold/AgentLoop"
import type * as Event from "toolfold/Event"
import * as Turn from "toolfold/Turn"
import { chooseModel } from "./workspace/model.ts"
import { Findings, folder, WorkspaceTools } from "./workspace/tools.ts"

const ownQuestion =
  `Measure the folder "src", search the files of "src" for "barrier", and read the file "docs/tour.md". ` +
  `Then save a finding that "writes fold at a barrier, in call order" in src/Context.ts.`

const agent = AgentLoop.make("workspace", {
  instructions:
    "You answer questions about the files of one folder. Look things up with the tools, call several at once " +
    "where you can, save what you find with save_finding, and end with a short answer that names the files.",
  maxTurns: 12
})

const preview = (u: unknown, most = 100): string => {
  const text = (typeof u === "string" ? u : JSON.stringify(u) ?? "").replace(/\s+/g, " ")
  return text.length > most ? `${text.slice(0, most)}…` : text
}

/** How much the calls of a turn wrote to a slot. */
const written = ({ writes }: typeof Event.Fold.Type, slot: string): number =>
  writes.reduce(
    (sum, { values: { [slot]: value } }) => sum + (Array.isArray(value) ? value.length : Number(value ?? 0)),
    0
  )

const show = (event: AgentLoop.Event): Effect.Effect<void> => {
  switch (event._tag) {
    case "CallStart":
      return Console.log(`  → ${event.call.name} ${preview(event.call.input ?? event.call.raw)}`)
    case "CallEnd":
      return Console.log(
        `  ${Turn.isError(event.outcome) ? "✗" : "✓"} ${event.call.name} ${event.durationMs} ms  ${
          preview(Turn.told(event.outcome))
        }`
      )
    case "Fold": {
      const changes = [
        `${written(event, "notes")} notes`,
        `${written(event, "opened")} files opened`,
        `${written(event, "bytesRead")} bytes read`
      ].filter((change) => !change.startsWith("0 "))
      return Console.log(
        `  ± folded: ${changes.length === 0 ? "longest file known" : changes.map((change) => `+${change}`).join(", ")}`
      )
    }
    case "Result": {
      const { context, text, turns, usage } = event.result
      const { notes, opened } = Findings.from(context)
      const ended = event.result._tag === "Completed" ? "" : `\n(the run ended early: ${event.result._tag})`
      return Console.log(
        `\n${text}${ended}\n\nfindings: ${notes.length === 0 ? "none" : notes.map((note) => note.text).join("; ")}` +
          `\nopened: ${opened.size} files` +
          `\nusage: ${turns.length} turns, ${usage.inputTokens} tokens in, ${usage.outputTokens} out, ${usage.calls} requests`
      )
    }
    default:
      return Effect.void
  }
}

const failing = Effect.sync(() => {
  process.exitCode = 1
})

// Whoever closes the pipe has seen enough.
process.stdout.on("error", () => process.exit(0))

const main = Effect.gen(function*() {
  const { positionals, values } = yield* Effect.try({
    try: () => parseArgs({ allowPositionals: true, options: { dir: { type: "string" }, model: { type: "string" } } }),
    catch: (error) =>
      new Error(`${error instanceof Error ? error.message : error}. Usage: npm start -- "question" --dir PATH`)
  })
  if (values.dir === "") return yield* Effect.fail(new Error("--dir needs a folder"))
  const dir = values.dir ?? (positionals.length === 0 ? dirname(import.meta.dirname) : ".")
  const question = positionals.join(" ") ||
    (values.dir === undefined ? ownQuestion : `List the files and measure the folder.`)
  const model = yield* chooseModel(process.env, values.model)
  yield* Console.log(`${model.line}\nfolder: ${dir}\nquestion: ${question}\n`)
  yield* AgentLoop.stream(agent, { prompt: question }).pipe(
    Stream.tap((event) => event._tag === "Result" && event.result._tag !== "Completed" ? failing : Effect.void),
    Stream.runForEach(show),
    Effect.provide(WorkspaceTools.pipe(Layer.provide(Findings.layer), Layer.provide(folder(dir)))),
    Effect.provide(model.layer)
  )
})

main.pipe(
  // Whatever a person can put right is one line.
  Effect.catch((error) =>
    Effect.andThen(
      Console.error(`error: ${error.message.replace(/\s+/g, " ").trim()}`),
      failing
    )
  ),
  Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer)),
  NodeRuntime.runMain
)
