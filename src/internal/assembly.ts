/**
 * How does a declaration become an entry of a registry? What is wrong with it is said, all at once; what its options
 * need at run time is made, once for each registry.
 */
import * as WireTool from "effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Context from "../Context.ts"
import * as Tool from "../Tool.ts"
import * as Attempt from "./attempt.ts"
import * as Callable from "./callable.ts"
import type { Entry } from "./entry.ts"
import * as Failing from "./failing.ts"
import * as Guard from "./guard.ts"
import * as Options from "./options.ts"
import * as Subjects from "./subjects.ts"

/** A tool, its body, and where that runs. */
export type Draft = Pick<Entry, "tool" | "run" | "environment">

/** Everything that is wrong with these tools, duplicate names first. */
export const problemsIn = (drafts: ReadonlyArray<Draft>): ReadonlyArray<string> => [
  ...duplicates(drafts),
  ...twins(drafts),
  ...drafts.flatMap(({ tool }) => problemsOf(tool))
]

const duplicates = (drafts: ReadonlyArray<Draft>): ReadonlyArray<string> => {
  const names = drafts.map(({ tool }) => tool.name)
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return twice.size === 0 ? [] : [`duplicate tool names: ${Array.from(twice).sort().join(", ")}`]
}

/** Classes of slots that share an id, among everything that the handlers may need. */
const twins = (drafts: ReadonlyArray<Draft>): ReadonlyArray<string> => {
  const byId = new Map<string, Set<unknown>>()
  for (const slots of slotsOf(drafts)) byId.set(slots.id, (byId.get(slots.id) ?? new Set()).add(slots))
  return Array.from(byId).filter(([, classes]) => classes.size > 1).map(([id]) =>
    `two classes of slots have the id ${JSON.stringify(id)}: give each its own`
  )
}

/** The classes of slots among everything that the handlers may need. */
export const slotsOf = (drafts: ReadonlyArray<Draft>): ReadonlyArray<Context.AnySlots> => {
  const found = drafts.flatMap(({ environment }) => environment.services.map(([, service]) => Context.slotsOf(service)))
  return [...new Set(found)].filter((slots) => slots !== undefined)
}

const legalName = /^[a-zA-Z0-9_-]{1,64}$/

const problemsOf = (tool: WireTool.Any): ReadonlyArray<string> => {
  const owner = `tool ${JSON.stringify(tool.name)}`
  const found = Tool.isTool(tool) ? [...tool[Callable.TypeId].problems] : []
  if (!legalName.test(tool.name)) found.push("a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -")
  if (WireTool.isProviderDefined(tool)) found.push("tools that a provider defines are not taken yet")
  else {
    const schema = Result.try(() => Tool.schema(tool).input_schema)
    if (Result.isFailure(schema)) found.push(`its input has no JSON Schema: ${String(schema.failure)}`)
    else if (schema.success.type !== "object") found.push("its input must be an object at the root")
    found.push(...Subjects.problemsOf(tool, Result.getOrElse(schema, () => ({}))))
  }
  return [...found, ...Options.problemsOf(tool)].map((problem) => `${owner}: ${problem}`)
}

/** The entry of a tool that nothing is wrong with. What is made for it lives as long as the scope. */
export const equip = Effect.fnUntraced(function*(
  draft: Draft,
  locks: Attempt.Locks
): Effect.fn.Return<Entry, never, Scope.Scope> {
  const { tool } = draft
  const guards: Array<(body: Guard.Body) => Guard.Body> = []
  for (const guard of Services.get(tool.annotations, Guard.Guards)) {
    guards.push(yield* guard.make(tool.name, (failed) => blames(tool, failed)))
  }
  const most = Tool.concurrencyOf(tool)
  return planned({
    ...draft,
    around: [],
    fallbackTimeout: undefined,
    maxResultSize: Tool.maxResultSizeOf(tool),
    isPlain: Tool.maxResultSizeOf(tool) === undefined && tool.toModelOutput === undefined,
    isSerial: Tool.isSerial(tool),
    isReturnDirect: Tool.isReturnDirect(tool),
    isSensitive: Tool.isSensitive(tool),
    maxCalls: Tool.maxCallsOf(tool),
    codecs: {},
    declared: {
      tool: tool.name,
      timeout: Tool.timeoutOf(tool),
      retry: Tool.retryOf(tool),
      isTransient: (failed) =>
        (failed instanceof Attempt.TimedOut && !failed.stillRunning) ||
        (!(failed instanceof Attempt.TimedOut) && !(failed instanceof Guard.Refusal) &&
          Failing.classOf(tool, failed) === "transient"),
      guard: guards.length === 0
        ? undefined
        : (body) => guards.reduceRight((guarded, guard) => guard(guarded), body),
      permits: most === undefined ? undefined : Semaphore.makeUnsafe(most),
      // The option was declared for what this tool decodes.
      conflictKey: Tool.conflictKeyOf(tool) as ((input: unknown) => string) | undefined,
      locks,
      scope: yield* Effect.scope
    }
  })
})

/** Whether what a tool depends on is to blame for a failed attempt, and not the model. */
const blames = (tool: WireTool.Any, failed: Cause.Cause<unknown>): boolean => {
  if (Cause.hasInterruptsOnly(failed)) return false
  const error = Cause.findError(failed)
  return Result.isFailure(error) || error.success instanceof Attempt.TimedOut ||
    Failing.classOf(tool, error.success) !== "semantic"
}

/** The same entry with the plan that its options come to. */
export const planned = (entry: Omit<Entry, "plan">): Entry => {
  const { around, fallbackTimeout, declared } = entry
  const timeout = declared.timeout ?? fallbackTimeout
  const { conflictKey, guard, permits, retry } = declared
  const isPlain = [timeout, conflictKey, guard, permits, retry].every((part) => part === undefined)
  return { ...entry, plan: isPlain && around.length === 0 ? undefined : { ...declared, timeout } }
}

/** The entries of several registries, in which equal conflict keys are one. */
export const together = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const locks = Attempt.locks()
  return entries.map((entry) => planned({ ...entry, declared: { ...entry.declared, locks } }))
}
