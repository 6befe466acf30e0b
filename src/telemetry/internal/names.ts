/**
 * What do the OpenTelemetry conventions for generative AI call things? As `@opentelemetry/semantic-conventions` 1.45.0 has
 * them; a test compares. The names that are ours begin with `toolfold.`.
 */

/** What is done. */
export const operation = { agent: "invoke_agent", chat: "chat", tool: "execute_tool" } as const

/** Attributes of spans and metrics. */
export const attribute = {
  agentName: "gen_ai.agent.name",
  conversationId: "gen_ai.conversation.id",
  errorType: "error.type",
  inputMessages: "gen_ai.input.messages",
  operationName: "gen_ai.operation.name",
  outputMessages: "gen_ai.output.messages",
  outputType: "gen_ai.output.type",
  providerName: "gen_ai.provider.name",
  requestMaxTokens: "gen_ai.request.max_tokens",
  requestModel: "gen_ai.request.model",
  requestSeed: "gen_ai.request.seed",
  requestStopSequences: "gen_ai.request.stop_sequences",
  requestStream: "gen_ai.request.stream",
  requestTemperature: "gen_ai.request.temperature",
  requestTopP: "gen_ai.request.top_p",
  responseFinishReasons: "gen_ai.response.finish_reasons",
  responseModel: "gen_ai.response.model",
  systemInstructions: "gen_ai.system_instructions",
  tokenType: "gen_ai.token.type",
  toolCallArguments: "gen_ai.tool.call.arguments",
  toolCallId: "gen_ai.tool.call.id",
  toolCallResult: "gen_ai.tool.call.result",
  toolDescription: "gen_ai.tool.description",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  usageCacheCreation: "gen_ai.usage.cache_creation.input_tokens",
  usageCacheRead: "gen_ai.usage.cache_read.input_tokens",
  usageInputTokens: "gen_ai.usage.input_tokens",
  usageOutputTokens: "gen_ai.usage.output_tokens",
  usageReasoning: "gen_ai.usage.reasoning.output_tokens"
} as const

/** Attributes that the conventions do not have. */
export const own = {
  errorId: "toolfold.error.id",
  outcome: "toolfold.outcome",
  result: "toolfold.result",
  resultReason: "toolfold.result.reason",
  runId: "toolfold.run.id",
  turn: "toolfold.turn"
} as const

/** Histograms, with the boundaries and units that the conventions give them. */
export const metric = {
  duration: {
    name: "gen_ai.client.operation.duration",
    unit: "s",
    boundaries: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
  },
  tokens: {
    name: "gen_ai.client.token.usage",
    unit: "{token}",
    boundaries: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
  }
} as const

/** What we say of an error where nothing of the neighbour's is to be said. */
export const errorType = { cancelled: "cancelled", other: "_OTHER" } as const

/** Why a model stopped, as the conventions say it. */
export const finishReason = (finish: string): string =>
  finish === "tool-calls" ? "tool_call" : finish === "content-filter" ? "content_filter" : finish
