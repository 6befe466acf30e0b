// Do imports go down the floors? Types count too, and a file without a floor is an error. A half floor is a room that was
// split off the one above it.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const floors: { readonly [file: string]: number } = {
  "internal/anything.ts": 0,
  "internal/arguments.ts": 0,
  "internal/environment.ts": 0,
  "internal/failureClass.ts": 0,
  "internal/guard.ts": 0,
  "internal/id.ts": 0,
  "internal/jsonSchema.ts": 0,
  "internal/log.ts": 0,
  "internal/results.ts": 0,
  "internal/retryAfter.ts": 0,
  "internal/sideBySide.ts": 0,
  "internal/slot.ts": 0,
  "internal/text.ts": 0,
  "internal/unheard.ts": 0,
  "internal/legal.ts": 0.125,
  "internal/plain.ts": 0.125,
  "internal/repair.ts": 0.25,
  "internal/transcript.ts": 0.25,
  "internal/explain.ts": 0.125,
  "internal/codec.ts": 0.25,
  "internal/options.ts": 0.25,
  "internal/callable.ts": 0.5,
  "Context.ts": 1,
  "Subject.ts": 1,
  "Usage.ts": 1,
  "Budget.ts": 2,
  "Pricing.ts": 1.25,
  "internal/reporting.ts": 1.25,
  "internal/subjects.ts": 1.25,
  "internal/attempt.ts": 1.5,
  "Tool.ts": 2,
  "Turn.ts": 2,
  "internal/ask.ts": 2.25,
  "internal/arriving.ts": 2.4,
  "internal/spending.ts": 2.4,
  "internal/outcome.ts": 2.25,
  "internal/resilience.ts": 2.3,
  "internal/around.ts": 2.4,
  "internal/entry.ts": 2.42,
  "internal/failing.ts": 2.45,
  "internal/answer.ts": 2.5,
  "internal/foreignModel.ts": 2.6,
  "internal/publicModel.ts": 2.6,
  "internal/model.ts": 2.75,
  "internal/wrapped.ts": 2.9,
  "internal/assembly.ts": 2.75,
  "Event.ts": 3,
  "Gate.ts": 3,
  "Provider.ts": 3,
  "Pause.ts": 2.9,
  "PauseStore.ts": 2.95,
  "Result.ts": 3,
  "Stop.ts": 3,
  "ToolRegistry.ts": 3,
  "memory/internal/change.ts": 2.5,
  "memory/internal/window.ts": 2.5,
  "memory/internal/summary.ts": 2.75,
  "Memory.ts": 3,
  "Agent.ts": 3.5,
  "internal/threading.ts": 3.4,
  "internal/run.ts": 3.5,
  "internal/watch.ts": 3.25,
  "internal/streaming.ts": 3.3,
  "internal/observers.ts": 3.3,
  "internal/observe.ts": 3.6,
  "internal/probe.ts": 3.1,
  "internal/repeats.ts": 2.5,
  "internal/finalAnswer.ts": 2.5,
  "internal/opening.ts": 3.77,
  "internal/gating.ts": 3.7,
  "internal/deciding.ts": 3.72,
  "internal/pausing.ts": 3.75,
  "internal/desk.ts": 3.8,
  "internal/reopening.ts": 3.82,
  "internal/nested.ts": 3.85,
  "internal/answering.ts": 3.9,
  "internal/ownModel.ts": 3.6,
  "internal/edges.ts": 3.95,
  "internal/handle.ts": 3.8,

  "AgentLoop.ts": 4,
  "providers/internal/json.ts": 4.25,
  "providers/internal/aiSdk.ts": 4.25,
  "providers/internal/names.ts": 4.25,
  "providers/internal/narrowWords.ts": 4.3,
  "providers/internal/narrowStrict.ts": 4.35,
  "providers/internal/narrowSubset.ts": 4.35,
  "providers/internal/narrow.ts": 4.4,
  "providers/internal/aiSdkMarks.ts": 4.3,
  "providers/internal/aiSdkTraits.ts": 4.45,
  "providers/internal/aiSdkParts.ts": 4.5,
  "providers/internal/aiSdkPrompt.ts": 4.6,
  "providers/internal/aiSdkReply.ts": 4.6,
  "providers/internal/aiSdkRequest.ts": 4.7,
  "providers/internal/aiSdkError.ts": 4.8,
  "providers/internal/chatTraits.ts": 4.45,
  "providers/internal/chatCalls.ts": 4.5,
  "providers/internal/chatUsage.ts": 4.5,
  "providers/internal/chatSettings.ts": 4.5,
  "providers/internal/chatThoughts.ts": 4.5,
  "providers/internal/chatParts.ts": 4.5,
  "providers/internal/chatTools.ts": 4.5,
  "providers/internal/chatMessages.ts": 4.6,
  "providers/internal/chatReply.ts": 4.6,
  "providers/internal/chatRequest.ts": 4.7,
  "providers/internal/chatError.ts": 4.75,
  "testing/internal/lexical.ts": 4.5,
  "testing/internal/pieces.ts": 4.25,
  "testing/internal/tapeSecrets.ts": 4.25,
  "testing/internal/tapeStore.ts": 4.25,
  "testing/internal/tapeLines.ts": 4.25,
  "testing/internal/tapeErrors.ts": 4.25,
  "testing/internal/tapeDeck.ts": 4.3,
  "testing/internal/tapeRequest.ts": 4.4,
  "testing/internal/tapeReadings.ts": 4.4,
  "testing/internal/tapeRecorder.ts": 4.5,
  "testing/internal/tapePlayer.ts": 4.5,
  "dynamic/internal/keywords.ts": 4.25,
  "dynamic/internal/references.ts": 4.3,
  "dynamic/internal/document.ts": 4.4,
  "dynamic/internal/validator.ts": 4.5,
  "dynamic/DynamicTool.ts": 5,
  "dynamic/index.ts": 6,
  "policy/internal/command.ts": 4.25,
  "policy/internal/host.ts": 4.25,
  "policy/internal/name.ts": 4.125,
  "policy/internal/path.ts": 4.25,
  "policy/internal/rule.ts": 4.5,
  "policy/Policy.ts": 5,
  "policy/index.ts": 6,
  "telemetry/internal/names.ts": 4.125,
  "telemetry/internal/hiding.ts": 4.125,
  "telemetry/internal/content.ts": 4.25,
  "telemetry/internal/quiet.ts": 4.25,
  "telemetry/internal/meters.ts": 4.25,
  "telemetry/internal/spanning.ts": 4.125,
  "telemetry/internal/saying.ts": 4.4,
  "telemetry/internal/probing.ts": 4.5,
  "telemetry/Telemetry.ts": 5,
  "telemetry/index.ts": 6,
  "limits/Limits.ts": 5,
  "limits/index.ts": 6,
  "memory/internal/database.ts": 4.25,
  "memory/internal/key.ts": 4.25,
  "memory/internal/pauses.ts": 4.25,
  "memory/InMemory.ts": 5,
  "memory/KeyValue.ts": 5,
  "memory/KeyValuePauses.ts": 5,
  "memory/NodeSqlite.ts": 5,
  "memory/Sql.ts": 5,
  "memory/SqlPauses.ts": 5,
  "memory/index.ts": 6,
  "providers/AiSdk.ts": 5,
  "providers/OpenAiCompatible.ts": 5,
  "testing/Laws.ts": 5,
  "testing/OfflineModel.ts": 5,
  "testing/ScriptedModel.ts": 5,
  "testing/Tape.ts": 5,
  "providers/index.ts": 6,
  "testing/index.ts": 6,
  "index.ts": 6
}

// Files that may know `effect/ai`, which is marked unstable: everything else must not.
const mayImportAi = new Set([
  "internal/answer.ts",
  "internal/around.ts",
  "internal/assembly.ts",
  "internal/callable.ts",
  "internal/desk.ts",
  "internal/nested.ts",
  "internal/opening.ts",
  "internal/probe.ts",
  "internal/entry.ts",
  "internal/failing.ts",
  "internal/finalAnswer.ts",
  "internal/model.ts",
  "internal/observe.ts",
  "internal/observers.ts",
  "internal/options.ts",
  "internal/run.ts",
  "internal/threading.ts",
  "internal/transcript.ts",
  "Agent.ts",
  "Pause.ts",
  "AgentLoop.ts",
  "Memory.ts",
  "Gate.ts",
  "Provider.ts",
  "Result.ts",
  "Tool.ts",
  "ToolRegistry.ts",
  "Turn.ts",
  "Usage.ts"
])

// An optional peer belongs to one wing.
const peers: { readonly [specifier: string]: string } = {
  "@ai-sdk/provider": "providers/internal/aiSdk.ts",
  "@cfworker/json-schema": "dynamic/internal/validator.ts"
}

// What only Node has belongs to one file too; everything else runs anywhere.
const ofNode: { readonly [specifier: string]: string } = { "node:sqlite": "memory/NodeSqlite.ts" }

const importing = /^(?:import|export) (?:type )?(?:\*(?: as \w+)?|\{[^}]*\}) from "([^"]+)"/gm

/** What is wrong with the imports below a folder. */
export const check = (root: string): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
  for (const file of files) {
    const own = floors[file]
    if (own === undefined) problems.push(`src/${file} has no floor: give it one in scripts/floors.ts`)
    for (const [, specifier = ""] of readFileSync(join(root, file), "utf8").matchAll(importing)) {
      const line = `src/${file}`
      if (specifier.startsWith(".")) {
        const to = normalize(join(dirname(file), specifier))
        const below = floors[to]
        if (own !== undefined && (below === undefined || below >= own)) {
          problems.push(`${line} (floor ${own}) must not import src/${to} (floor ${below ?? "none"})`)
        }
      } else if (specifier === "effect") problems.push(`${line} imports the barrel of effect: import the module`)
      else if (specifier.startsWith("node:")) {
        if (ofNode[specifier] !== file) problems.push(`${line} imports ${specifier}: it must run where Node is not`)
      } else if (!specifier.startsWith("effect/") && peers[specifier] !== file) {
        problems.push(`${line} imports ${specifier}: effect is the only dependency`)
      } else if (specifier.startsWith("effect/ai") && !mayImportAi.has(file) && !file.includes("/")) {
        problems.push(`${line} must not know effect/ai`)
      }
    }
  }
  return problems
}

/** Floors of files that are not there. */
export const empty = (root: string): ReadonlyArray<string> =>
  Object.keys(floors).filter((file) => !existsSync(join(root, file))).map((file) =>
    `src/${file} has a floor and is not there`
  )
