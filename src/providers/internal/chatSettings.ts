/**
 * How is a server told how its model is to speak? A setting in the field that it has for it; what it has no field for is
 * said in words.
 */
import type * as Provider from "../../Provider.ts"
import type { Traits } from "./chatTraits.ts"
import type { Json } from "./json.ts"

/** Fields of a body, and what could not be put into them. */
export interface Said {
  readonly body: Json
  readonly warnings: ReadonlyArray<string>
}

const notTaken = (setting: string, why = "this model does not take it"): string =>
  `the setting ${setting} is not sent: ${why}`

/** The fields for settings; a body of the user's own has what the settings do not say. */
export const write = (
  settings: Provider.Settings = {},
  takes: Traits,
  { extra, hasTools }: { readonly extra: Json; readonly hasTools: boolean }
): Said => {
  const { effort, maxTokens, seed, stop } = settings
  const warnings: Array<string> = []
  const body: { [field: string]: unknown } = { ...extra }
  if ("parallel_tool_calls" in body && !(hasTools && takes.parallel)) {
    delete body.parallel_tool_calls
    // Without tools it says nothing, and some refuse it.
    if (hasTools) warnings.push("parallel_tool_calls is not sent: this model does not take it")
  }
  if (maxTokens !== undefined) {
    delete body.max_tokens
    delete body.max_completion_tokens
    body[takes.maxTokens] = maxTokens
  }
  for (const [setting, field] of [["temperature", "temperature"], ["topP", "top_p"]] as const) {
    const value = settings[setting]
    if (value === undefined) continue
    if (takes.sampling === true || (takes.sampling === "without-effort" && effort === "none")) body[field] = value
    else {
      warnings.push(
        notTaken(setting, takes.sampling === false ? undefined : 'this model takes it only with the effort "none"')
      )
    }
  }
  if (seed !== undefined) {
    if (takes.seed === "none") warnings.push(notTaken("seed"))
    else body[takes.seed] = seed
  }
  if (stop !== undefined && stop.length > 0) {
    if (takes.stop > 0) body.stop = stop.slice(0, takes.stop)
    if (takes.stop === 0) warnings.push(notTaken("stop"))
    else if (stop.length > takes.stop) {
      warnings.push(
        `of the setting stop the first ${takes.stop} of ${stop.length} texts are sent, which is all that is taken`
      )
    }
  }
  if (effort !== undefined) {
    if (hasTools && !takes.effortWithTools && effort !== "none") {
      warnings.push(notTaken("effort", "this model does not take it beside tools"))
    } else Object.assign(body, effortFields(effort, takes, warnings))
  }
  if (settings.cache === true) {
    if (takes.cache === "cache_control") body.cache_control = { type: "ephemeral" }
    else if (takes.cache === "unknown") {
      warnings.push(notTaken("cache", "there is no field for it, and whether this server keeps anything is not known"))
    }
  }
  return { body, warnings }
}

type Effort = NonNullable<Provider.Settings["effort"]>

const effortFields = (effort: Effort, takes: Traits, warnings: Array<string>): Json => {
  switch (takes.effort) {
    case "reasoning_effort":
      return { reasoning_effort: effort }
    case "reasoning":
      return { reasoning: { effort } }
    case "thinking":
      return effort === "none" ? { thinking: { type: "disabled" } } : { reasoning_effort: effort }
    case "enable_thinking":
      if (effort !== "none") {
        warnings.push(`of the setting effort only that the model is to reason is sent, not "${effort}"`)
      }
      return { enable_thinking: effort !== "none" }
    case "none":
      warnings.push(notTaken("effort"))
      return {}
  }
}
