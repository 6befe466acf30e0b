/**
 * What does the span of a run, a request and a call say, when it begins and when it ends? What the conventions want of each;
 * of an error its kind, and of content what the settings let through.
 */
import * as AiError from "effect/ai/AiError"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import type { Reply, Request } from "../../internal/ask.ts"
import type * as Probe from "../../internal/probe.ts"
import * as Ending from "../../Result.ts"
import type * as Turn from "../../Turn.ts"
import type * as Usage from "../../Usage.ts"
import * as Content from "./content.ts"
import * as Names from "./names.ts"
import * as Quiet from "./quiet.ts"
import type * as Spanning from "./spanning.ts"

const { attribute, errorType, operation, own } = Names

/** How the span of a run begins. */
export const openRun = (
  settings: Content.Settings,
  conversation: string | undefined,
  about: Probe.AboutRun
): Spanning.Opening => ({
  name: `${operation.agent} ${about.agent}`,
  kind: "internal",
  attributes: {
    ...common(conversation, operation.agent, about),
    [attribute.systemInstructions]: about.instructions && Content.instructions(settings, [about.instructions]),
    [attribute.inputMessages]: Content.asked(settings, about.messages)
  }
})

/** How the span of a request begins. */
export const openRequest = (
  settings: Content.Settings,
  conversation: string | undefined,
  about: Probe.AboutRequest
): Spanning.Opening => {
  const { isStreamed, named, request } = about
  const { maxTokens, seed, stop, temperature, topP } = request.settings ?? {}
  return {
    name: named?.model === undefined ? operation.chat : `${operation.chat} ${named.model}`,
    kind: "client",
    attributes: {
      ...common(conversation, operation.chat, about),
      [own.turn]: about.turn,
      [attribute.providerName]: named?.provider,
      [attribute.requestModel]: named?.model,
      [attribute.requestTemperature]: temperature,
      [attribute.requestTopP]: topP,
      [attribute.requestMaxTokens]: maxTokens,
      [attribute.requestSeed]: seed,
      [attribute.requestStopSequences]: stop,
      [attribute.requestStream]: isStreamed ? true : undefined,
      [attribute.outputType]: request.format === undefined ? undefined : "json",
      [attribute.systemInstructions]: Content.sentInstructions(settings, request),
      [attribute.inputMessages]: Content.sent(settings, request)
    }
  }
}

/** How the span of a call begins. */
export const openCall = (
  settings: Content.Settings,
  conversation: string | undefined,
  about: Probe.AboutCall
): Spanning.Opening => ({
  name: about.tool === undefined ? operation.tool : `${operation.tool} ${about.call.name}`,
  kind: "internal",
  attributes: {
    ...common(conversation, operation.tool, about),
    [own.turn]: about.turn,
    // A name that no tool has is what the model made up.
    [attribute.toolName]: about.tool === undefined && !settings.inputs ? undefined : about.call.name,
    [attribute.toolCallId]: about.call.id,
    [attribute.toolType]: "function",
    [attribute.toolDescription]: about.description,
    [attribute.toolCallArguments]: Content.argumentsOf(settings, about.call, about.tool)
  }
})

const common = (
  conversation: string | undefined,
  name: string,
  { agent, runId }: { readonly agent: string; readonly runId: string }
): Spanning.Attributes => ({
  [attribute.operationName]: name,
  [attribute.agentName]: agent,
  [attribute.conversationId]: conversation,
  [own.runId]: runId
})

/** How the span of a run ends. `form` is that of its answer. */
export const endRun = (
  settings: Content.Settings,
  form: Schema.Constraint | undefined,
  exit: Exit.Exit<Ending.Result, unknown>
): Spanning.End => {
  if (Exit.isFailure(exit)) {
    const { error } = failureOf(exit.cause)
    const usage = error instanceof Ending.ModelFailed ? usageOf(error.partial.usage) : {}
    return broken(settings, exit.cause, { ...usage })
  }
  const result = exit.value
  const attributes = {
    ...usageOf(result.usage),
    [attribute.responseModel]: result.usage.model,
    [attribute.outputMessages]: result.text === "" ? undefined : Content.answered(settings, result.text, form),
    [own.result]: result._tag,
    [own.resultReason]: "reason" in result ? result.reason : "limit" in result ? result.limit : undefined
  }
  return result._tag === "Cancelled"
    ? marked(errorType.cancelled, errorType.cancelled, attributes)
    : { attributes, exit: Exit.void }
}

const usageOf = ({ inputTokens, outputTokens }: Usage.Usage): Spanning.Attributes => ({
  [attribute.usageInputTokens]: inputTokens,
  [attribute.usageOutputTokens]: outputTokens
})

/** How the span of a request ends. */
export const endRequest = (
  settings: Content.Settings,
  request: Request,
  exit: Exit.Exit<Reply, AiError.AiError>
): Spanning.End => {
  if (Exit.isFailure(exit)) return broken(settings, exit.cause, {})
  const reply = exit.value
  const { inputTokens: input, outputTokens: output } = reply.usage
  return {
    attributes: {
      [attribute.responseModel]: reply.model,
      [attribute.responseFinishReasons]: [Names.finishReason(reply.finish)],
      [attribute.usageInputTokens]: input.total ?? input.uncached,
      [attribute.usageOutputTokens]: output.total ?? output.text,
      [attribute.usageCacheRead]: input.cacheRead,
      [attribute.usageCacheCreation]: input.cacheWrite,
      [attribute.usageReasoning]: output.reasoning,
      [attribute.outputMessages]: Content.said(settings, request, reply)
    },
    exit: Exit.void
  }
}

/** How the span of a call ends; one within which an agent waits is not over, and has not failed. */
export const endCall = (
  settings: Content.Settings,
  { call, tool }: Probe.AboutCall,
  { waits }: { readonly waits: boolean },
  exit: Exit.Exit<Turn.Outcome>
): Spanning.End => {
  if (Exit.isFailure(exit)) return broken(settings, exit.cause, {})
  const outcome = exit.value
  const isWaiting = waits && outcome._tag === "Failure"
  const attributes = {
    [own.outcome]: isWaiting ? "Waiting" : outcome._tag,
    [own.errorId]: outcome._tag === "Failure" ? outcome.errorId : undefined
  }
  if (isWaiting) return { attributes, exit: Exit.void }
  const told = Content.resultOf(settings, call, outcome, tool)
  switch (outcome._tag) {
    case "Success":
    case "Replied":
      return { attributes: { ...attributes, [attribute.toolCallResult]: told }, exit: Exit.void }
    case "Failure":
      return marked(outcome.kind, told ?? outcome.kind, attributes)
    case "Rejected":
      return marked("rejected", told ?? "rejected", attributes)
    case "Interrupted":
      return marked(errorType.cancelled, told ?? errorType.cancelled, attributes)
  }
}

const marked = (type: string, message: string, attributes: Spanning.Attributes): Spanning.End => ({
  attributes: { ...attributes, [attribute.errorType]: type },
  exit: Quiet.failed(type, message)
})

const broken = (
  settings: Content.Settings,
  cause: Cause.Cause<unknown>,
  attributes: Spanning.Attributes
): Spanning.End => {
  const { message, type } = failureOf(cause)
  const said = settings.outputs && message !== "" ? Content.text(settings, "error", message) : type
  return marked(type, said, attributes)
}

/** What a cause comes to. */
export const failureOf = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return { type: errorType.cancelled, message: "", error: undefined }
  const error = Cause.squash(cause)
  return { type: typeOf(error), message: error instanceof Error ? error.message : "", error }
}

/** The kind of an error, of which there are few. */
const typeOf = (error: unknown): string =>
  error instanceof Ending.ModelFailed
    ? typeOf(error.reason)
    : AiError.isAiError(error)
    ? error.reason._tag
    : Quiet.nameOf(error)
