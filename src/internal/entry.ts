/**
 * What does it take to answer a call? The entry of its tool in a registry, and how far the call has come.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import type * as Duration from "effect/Duration"
import type * as Schema from "effect/Schema"
import type * as Context from "../Context.ts"
import type * as Turn from "../Turn.ts"
import * as Anything from "./anything.ts"
import type * as Around from "./around.ts"
import type * as Attempt from "./attempt.ts"
import * as Codec from "./codec.ts"
import type * as Environment from "./environment.ts"
import type { Body } from "./guard.ts"

/** A tool with what it takes to answer a call of it. */
export interface Entry {
  readonly tool: WireTool.Any
  readonly run: (input: unknown, callId: string) => Body
  readonly environment: Environment.Environment
  /** Outermost first. */
  readonly around: ReadonlyArray<Around.Around>
  /** What its options come to. */
  readonly declared: Attempt.Plan
  /** What an agent or the registry says for tools that do not say it themselves. */
  readonly fallbackTimeout: Duration.Duration | undefined
  /** How its body is tried, with the timeout that holds; nothing where it is just run. */
  readonly plan: Attempt.Plan | undefined
  readonly maxResultSize: number | undefined
  /** Its results are shown as they are. */
  readonly isPlain: boolean
  readonly isSerial: boolean
  readonly isReturnDirect: boolean
  /** Its calls may need somebody's yes. */
  readonly isSensitive: boolean
  readonly maxCalls: number | undefined
  /** Made at the first call. */
  readonly codecs: { input?: Codec.Codec; output?: Codec.Codec }
}

/** Between JSON and what the handler is given. */
export const inputOf = ({ codecs, tool }: Entry): Codec.Codec => codecs.input ??= Codec.jsonCodec(tool.parametersSchema)

/** Between what the handler gives and JSON. */
export const outputOf = ({ codecs, tool }: Entry): Codec.Codec => codecs.output ??= opened(tool.successSchema)

/** Between what the handler fails with and JSON. */
export const failureOf = ({ tool }: Entry): Codec.Codec => opened(tool.failureSchema)

const opened = (schema: Schema.Constraint): Codec.Codec => Codec.jsonCodec(Anything.open(schema))

/** A call on its way: how far it came, and what it has so far. */
export interface Way {
  readonly entry: Entry
  readonly call: Turn.Call
  readonly scope: Context.CallScope
  stage: "input" | "body" | "output" | "around"
  input: unknown
  value: unknown
  parts: ReadonlyArray<Prompt.ToolModelOutputPart> | undefined
  /** What the last run wrote, and where among the writes of those around it that stands. */
  writes: ReadonlyArray<Context.Write>
  at: number
  /** What the last run came to. */
  own: Turn.Outcome | undefined
  /** What is still to be done when it has its outcome. */
  readonly finish: (way: Way, outcome: Turn.Outcome) => Turn.Outcome
}
