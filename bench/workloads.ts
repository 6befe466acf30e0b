// What is measured, and on whom?

const main = ["zod", "effect", "effect-ai", "ai-sdk", "ours"]
/** Far off, so what takes long is done once with them. */
export const slow = ["openai-agents", "langchain", "mastra"]
const all = [...main, ...slow]

export interface Workload {
  readonly what: string
  readonly contenders: ReadonlyArray<string>
}

export const workloads: Readonly<Record<string, Workload>> = {
  W1: { what: "one turn without a call; a run", contenders: [...all, "ours-plain"] },
  W2: {
    what: "10 turns with one call each, and a closing one; a turn",
    contenders: [...all, "effect-ai-deferred", "ours-plain"]
  },
  W3: { what: "5 turns with so many calls each; a call", contenders: all },
  W4: { what: "200 tools; a definition, a turn", contenders: all },
  W5: { what: "10,000 runs at once with a tool of 50 ms; a run", contenders: all },
  W6: { what: "so many turns with one call each; a turn", contenders: all },
  W7: { what: "2,000 text deltas and a call; a run", contenders: [...all, "ours-onText"] },
  W8: { what: "start of a minimal agent, over that of node", contenders: all },
  W9: {
    what: "1,000 calls that never end, 10 ms each",
    contenders: ["zod", "effect", "ours", "ai-sdk", "openai-agents", "langchain"]
  }
}
