// What is measured, and on whom?

const main = ["zod", "effect", "effect-ai", "ai-sdk", "ours"]
/** Far off, so what takes long is done once with them. */
export const slow = ["openai-agents", "langchain", "mastra"]
const all = [...main, ...slow]

/** They are for the order of magnitude. */
export const once = [...slow, "effect-ai"]

/** Whether the whole goes on without it in a round. */
export const isSpared = (contender: string, id: string, round: number): boolean =>
  round > 0 && once.includes(contender) || round >= (workloads[id]?.rounds ?? Infinity)

/** What a look takes first, for as long as there is time. */
export const urgency = (contender: string): number => {
  const at = ["ours", "ai-sdk", "effect", "zod"].indexOf(contender)
  return at >= 0 ? at : slow.includes(contender) ? 6 : contender === "effect-ai" ? 5 : 4
}

export interface Workload {
  readonly what: string
  /** The most rounds of it, where it takes long or does not scatter. */
  readonly rounds?: number
  /** Contenders measure a slice each in turn. */
  readonly isSliced?: boolean
  readonly contenders: ReadonlyArray<string>
}

export const workloads: Readonly<Record<string, Workload>> = {
  W1: { what: "one turn without a call; a run", rounds: 2, isSliced: true, contenders: [...all, "ours-plain"] },
  W2: {
    what: "10 turns with one call each, and a closing one; a turn",
    isSliced: true,
    contenders: [...all, "effect-ai-deferred", "ours-plain"]
  },
  W3: { what: "5 turns with so many calls each; a call", isSliced: true, contenders: all },
  W4: { what: "200 tools; a definition, a turn", rounds: 2, isSliced: true, contenders: all },
  W5: { what: "10,000 runs at once with a tool of 50 ms; a run", rounds: 2, contenders: all },
  W6: { what: "so many turns with one call each; a turn", rounds: 2, isSliced: true, contenders: all },
  W7: { what: "2,000 text deltas and a call; a run", rounds: 2, isSliced: true, contenders: [...all, "ours-onText"] },
  W8: { what: "start of a minimal agent, over that of node", rounds: 2, isSliced: true, contenders: all },
  W9: {
    what: "1,000 calls that never end, 10 ms each",
    rounds: 1,
    contenders: ["zod", "effect", "ours", "ai-sdk", "openai-agents", "langchain"]
  },
  W10: {
    what: "so many turns with one call each against a server of Chat Completions; a turn, and the bytes of a request",
    rounds: 1,
    contenders: ["floor", "ai-sdk", "ours"]
  },
  W11: {
    what: "type check of a project with 100 tools, and of one with a single tool",
    rounds: 1,
    contenders: ["zod", "effect-ai", "ai-sdk", "ours"]
  }
}
