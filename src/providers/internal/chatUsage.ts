/**
 * What did an answer cost? Servers count alike and name and nest it differently: what was read from a cache is part of
 * the prompt for most, and beside it for some.
 */
import type * as Provider from "../../Provider.ts"
import { type Json, object } from "./json.ts"

const count = (...named: ReadonlyArray<unknown>): number | undefined => {
  const found = named.find((u) => typeof u === "number" && Number.isFinite(u) && u >= 0)
  return typeof found === "number" ? Math.trunc(found) : undefined
}

/** Usage in disjoint parts. */
export const of = (usage: Json): Provider.Reply["usage"] => {
  const output = count(usage.completion_tokens)
  const reasoning = count(object(usage.completion_tokens_details).reasoning_tokens, usage.reasoning_tokens)
  // What was thought is part of the answer, unless there is more of it, or the sum says otherwise.
  const isBeside = output !== undefined && reasoning !== undefined && reasoning > 0 &&
    (reasoning > output || count(usage.total_tokens) === (count(usage.prompt_tokens) ?? 0) + output + reasoning)
  const total = isBeside ? output + reasoning : output
  return {
    inputTokens: inputOf(usage, output ?? 0),
    outputTokens: {
      total,
      text: total === undefined ? undefined : Math.max(0, total - (reasoning ?? 0)),
      reasoning
    }
  }
}

const inputOf = (usage: Json, output: number): Provider.Reply["usage"]["inputTokens"] => {
  const details = object(usage.prompt_tokens_details)
  const prompt = count(usage.prompt_tokens)
  const read = count(
    details.cached_tokens,
    usage.prompt_cache_hit_tokens,
    usage.cached_tokens,
    usage.cache_read_input_tokens
  )
  const write = count(details.cache_write_tokens, details.cache_creation_tokens, usage.cache_creation_input_tokens)
  const cached = (read ?? 0) + (write ?? 0)
  if (prompt === undefined) return { uncached: undefined, total: undefined, cacheRead: read, cacheWrite: write }
  const sum = count(usage.total_tokens)
  // Anthropic counts what it cached beside the rest, and so do those who hand its numbers on.
  const isAnthropics = usage.cache_read_input_tokens !== undefined || usage.cache_creation_input_tokens !== undefined
  const isBeside = (cached > 0 && sum === prompt + output + cached) ||
    (cached > prompt && (sum === undefined || isAnthropics))
  if (isBeside) return { uncached: prompt, total: prompt + cached, cacheRead: read, cacheWrite: write }
  // Some say that more was cached than was asked: no part is larger than the whole.
  const cacheRead = read === undefined ? undefined : Math.min(read, prompt)
  const cacheWrite = write === undefined ? undefined : Math.min(write, prompt - (cacheRead ?? 0))
  return { uncached: prompt - (cacheRead ?? 0) - (cacheWrite ?? 0), total: prompt, cacheRead, cacheWrite }
}
