// What does each door of the package offer? A name that comes or goes shows here.
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"

interface Door {
  readonly "@toolfold/source": string
  readonly types: string
  readonly default: string
}

const manifest: { readonly exports: { readonly [door: string]: Door | string | null } } = JSON.parse(
  readFileSync("package.json", "utf8")
)
const doors = Object.entries(manifest.exports).filter((entry): entry is [string, Door] =>
  typeof entry[1] === "object" && entry[1] !== null
)

const offers: { readonly [door: string]: ReadonlyArray<string> } = {
  ".": [
    "AgentLoop",
    "Budget",
    "Context",
    "Event",
    "Gate",
    "Memory",
    "Pause",
    "PauseStore",
    "Pricing",
    "Provider",
    "Stop",
    "Subject",
    "Tool",
    "ToolRegistry",
    "Turn",
    "Usage"
  ],
  "./AgentLoop": ["AgentStopped", "ModelFailed", "asTool", "isAgent", "make", "resume", "run", "start", "stream"],
  "./Budget": ["Current", "charge", "isBudget", "make", "takeCalls", "takeRequest", "within"],
  "./Context": [
    "CurrentCall",
    "Slots",
    "callScope",
    "callScopeOf",
    "capture",
    "changes",
    "decode",
    "decodeWrite",
    "empty",
    "encode",
    "first",
    "fold",
    "goesOn",
    "last",
    "list",
    "max",
    "min",
    "record",
    "schema",
    "set",
    "slot",
    "slotsOf",
    "sum"
  ],
  "./Event": [
    "CallEnd",
    "CallStart",
    "Event",
    "Fold",
    "Gate",
    "InputDelta",
    "Pause",
    "Progress",
    "ReasoningDelta",
    "Retry",
    "RunEnd",
    "RunStart",
    "Step",
    "TextDelta",
    "TurnEnd",
    "TurnStart",
    "Warning"
  ],
  "./Gate": [
    "Decision",
    "Edit",
    "Pause",
    "Proceed",
    "Reject",
    "Reply",
    "all",
    "allow",
    "ask",
    "asked",
    "decide",
    "deny",
    "edit",
    "forTools",
    "pause",
    "proceed",
    "reject",
    "reply",
    "sensitive"
  ],
  "./Memory": [
    "Entry",
    "Head",
    "Memory",
    "MemoryFailed",
    "ThreadConflict",
    "ThreadRefused",
    "make",
    "summarize",
    "thread",
    "window"
  ],
  "./Pause": [
    "Decision",
    "Pending",
    "Place",
    "Reason",
    "ResumeRefused",
    "State",
    "approve",
    "approveWith",
    "proceed",
    "reject",
    "reply",
    "retry"
  ],
  "./PauseStore": ["PauseStore", "PauseStoreFailed", "layerMemory", "make"],
  "./Pricing": ["Pricing", "costOf", "layer", "make"],
  "./Provider": [
    "askOf",
    "fallback",
    "isTransient",
    "layer",
    "make",
    "rateLimit",
    "retry",
    "timeout",
    "unknownUsage"
  ],
  "./Stop": ["afterTurns", "all", "any", "whenAsked", "whenCalled"],
  "./Subject": ["Subject", "command", "external", "fileRead", "fileWrite", "make", "network"],
  "./Tool": [
    "category",
    "categoryOf",
    "concurrency",
    "concurrencyOf",
    "conflictKey",
    "conflictKeyOf",
    "destructive",
    "failureClass",
    "hasAnyTag",
    "idempotent",
    "isReturnDirect",
    "isSensitive",
    "isSerial",
    "isTool",
    "make",
    "maxCalls",
    "maxCallsOf",
    "maxResultSize",
    "maxResultSizeOf",
    "meta",
    "needsApproval",
    "openWorld",
    "progress",
    "promise",
    "readOnly",
    "retry",
    "retryOf",
    "returnDirect",
    "schema",
    "sensitive",
    "serial",
    "strict",
    "subjects",
    "subjectsOf",
    "table",
    "tags",
    "timeout",
    "timeoutOf",
    "title",
    "validate"
  ],
  "./ToolRegistry": [
    "RegistryError",
    "ToolRegistry",
    "around",
    "defaultTimeout",
    "fromToolkit",
    "layer",
    "merge",
    "prefix",
    "select"
  ],
  "./Turn": [
    "Call",
    "Failure",
    "FailureClass",
    "FailureKind",
    "Finish",
    "Interrupted",
    "Issue",
    "Outcome",
    "Rejected",
    "Replied",
    "Success",
    "Turn",
    "Write",
    "call",
    "isError",
    "told"
  ],
  "./Usage": ["Total", "Usage", "add", "empty", "fromResponse", "total"],
  "./dynamic": ["DynamicTool"],
  "./dynamic/DynamicTool": ["make"],
  "./limits": ["Limits"],
  "./limits/Limits": ["breaker", "rateLimit"],
  "./memory": ["InMemory", "KeyValue", "KeyValuePauses", "Sql", "SqlPauses"],
  "./memory/InMemory": ["layer"],
  "./memory/KeyValue": ["layer"],
  "./memory/KeyValuePauses": ["layer"],
  "./memory/NodeSqlite": ["layer", "make"],
  "./memory/Sql": ["layer"],
  "./memory/SqlPauses": ["layer"],
  "./policy": ["Policy"],
  "./policy/Policy": ["Rule", "Verdict", "allow", "ask", "deny", "explain", "make"],
  "./providers": ["AiSdk", "OpenAiCompatible"],
  "./providers/AiSdk": ["layer", "make"],
  "./providers/OpenAiCompatible": ["layer"],
  "./telemetry": ["Telemetry"],
  "./telemetry/Telemetry": ["Conversation", "hidden", "layer"],
  "./testing": ["Laws", "OfflineModel", "ScriptedModel", "Tape"],
  "./testing/Laws": ["LawBroken", "check"],
  "./testing/OfflineModel": ["layer"],
  "./testing/ScriptedModel": ["Script", "call", "layer", "layerPlain"],
  "./testing/Tape": [
    "Drift",
    "LeftOver",
    "Miss",
    "Tape",
    "TapeFailed",
    "file",
    "memory",
    "model",
    "record",
    "replay",
    "tools"
  ]
}

describe("the package", () => {
  it("has these doors", () => {
    assert.deepStrictEqual(doors.map(([door]) => door).toSorted(), Object.keys(offers).toSorted())
  })

  for (const [door, target] of doors) {
    it(`offers these names at ${door}`, async () => {
      const module: object = await import(door === "." ? "toolfold" : `toolfold/${door.slice(2)}`)
      assert.deepStrictEqual(Object.keys(module).toSorted(), offers[door])
      assert.isTrue(existsSync(target["@toolfold/source"]))
      assert.deepStrictEqual(
        [target.types, target.default],
        [".d.ts", ".js"].map((ending) =>
          target["@toolfold/source"].replace("./src/", "./dist/").replace(/\.ts$/, ending)
        )
      )
    })
  }

  it("keeps its internals closed", async () => {
    const inside = "toolfold/internal/run"
    let refused = false
    await import(/* @vite-ignore */ inside).catch(() => {
      refused = true
    })
    assert.isTrue(refused)
  })
})
