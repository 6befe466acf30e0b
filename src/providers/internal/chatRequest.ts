/**
 * What is a Chat Completions server asked? One body: first what is the same in every request of a run, then the
 * transcript, then what belongs to this request alone.
 */
import * as Result from "effect/Result"
import type * as Provider from "../../Provider.ts"
import * as Messages from "./chatMessages.ts"
import * as Settings from "./chatSettings.ts"
import * as Tools from "./chatTools.ts"
import type { Traits } from "./chatTraits.ts"
import { fields, type Json, write } from "./json.ts"
import type * as Names from "./names.ts"

/** One request, and how to read the names and ids in its answer. */
export interface Written {
  readonly body: string
  readonly names: Names.Names
  readonly ids: Names.Ids
  readonly warnings: ReadonlyArray<string>
}

/** Writes requests, and keeps what it wrote of messages and tools; what cannot be sent at all is said in words. */
export interface Writer {
  (request: Provider.Request, streamed: boolean): Result.Result<Written, string>
}

export interface Options {
  readonly model: string
  /** What the server is called. */
  readonly server: string
  readonly traits: Traits
  /** Goes into every body as it is. */
  readonly extra: Json
}

interface Head {
  readonly text: string
  readonly warnings: ReadonlyArray<string>
}

export const make = ({ extra, model, server, traits }: Options): Writer => {
  const messages = Messages.make(traits)
  const tools = Tools.make(traits, server)
  const heads = [new WeakMap<Provider.Settings, Head>(), new WeakMap<Provider.Settings, Head>()] as const
  const head = (settings: Provider.Settings | undefined, hasTools: boolean): Head => {
    const kept = heads[hasTools ? 1 : 0]
    const own = settings ?? unset
    const known = kept.get(own)
    if (known !== undefined) return known
    const { body, warnings } = Settings.write(own, traits, { extra, hasTools })
    const made = { text: `{"model":${write(model)}${fields(body)}`, warnings }
    kept.set(own, made)
    return made
  }
  return (request, streamed) => {
    const chosen = tools(request)
    if (Result.isFailure(chosen)) return Result.fail(chosen.failure)
    const { choice, hasTools, names, tools: table, warnings } = chosen.success
    const start = head(request.settings, hasTools)
    const transcript = messages(request.messages, names)
    const form = Tools.form(request.format, traits)
    const last = form.message === "" || transcript.text === "" ? form.message : `,${form.message}`
    const stream = !streamed
      ? ""
      : traits.streamUsage
      ? `,"stream":true,"stream_options":{"include_usage":true}`
      : `,"stream":true`
    return Result.succeed({
      body: `${start.text}${table},"messages":[${transcript.text}${last}]${choice}${form.field}${stream}}`,
      names,
      ids: transcript.ids,
      warnings: [...start.warnings, ...warnings, ...transcript.warnings, ...form.warnings]
    })
  }
}

const unset: Provider.Settings = {}
