/**
 * What did a Chat Completions server say? One message, whole or in pieces, as parts of a transcript.
 *
 * Servers that call themselves compatible differ: ids may be missing, fresh in every piece, or numbers; indexes missing or
 * repeated; content may be a list; and what a model thought has several names. All of it is read here by hand, where the
 * bytes arrive.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Provider from "../../Provider.ts"
import * as Calls from "./chatCalls.ts"
import * as Thoughts from "./chatThoughts.ts"
import * as Usage from "./chatUsage.ts"
import { isJson, type Json, list, object, text } from "./json.ts"
import type * as Names from "./names.ts"

/** Collects what a server sends; each step gives what it adds to the answer. */
export interface Reader {
  readonly whole: (answer: Json) => Array<Provider.Delta>
  readonly piece: (chunk: Json) => Array<Provider.Delta>
  /** The server says that it is done, which some do instead of giving a reason. */
  readonly end: () => void
  /** Whether there is an answer, and the server said in one way or the other that it is complete. */
  readonly finished: () => boolean
  readonly reply: () => Provider.Reply
}

/** How one answer is read. */
export interface Options {
  /** Begins the ids that a server leaves out. */
  readonly idPrefix: string
  readonly names: Names.Names
  readonly ids: Names.Ids
  readonly warnings: ReadonlyArray<string>
}

/** A reader for one answer. */
export const make = ({ idPrefix, ids, names, warnings }: Options): Reader => {
  let said = ""
  let thought = ""
  let field: string | undefined
  let inContent = false
  let refused = false
  let finish = ""
  let ended = false
  let answered = false
  let model = ""
  let usage: Json = {}
  const details: Array<unknown> = []
  const calls = Calls.make()

  const idOf = ({ id }: Calls.Call, at: number): string => id === "" ? `${idPrefix}_${at}` : ids.from(id)

  const take = (
    chunk: Json,
    message: (choice: Json) => Json,
    readCalls: (calls: ReadonlyArray<unknown>) => ReadonlyArray<Calls.Added>
  ) => {
    const deltas: Array<Provider.Delta> = []
    const choices = list(chunk.choices).map(object)
    const choice = choices.find(({ index }) => index === undefined || index === null || index === 0)
    const counted = [chunk.usage, object(chunk.x_groq).usage, choice?.usage].map(object).find(isCounted)
    if (counted !== undefined) usage = counted
    model = text(chunk.model) || model
    // What it cost is the last thing that a server says.
    if (answered && counted !== undefined && choices.length === 0) ended = true
    if (choice === undefined) return deltas
    answered = true
    finish = text(choice.finish_reason) || finish
    const { content, function_call, reasoning_details, refusal, tool_calls, ...rest } = message(choice)
    const spoken = Thoughts.ofContent(content)
    const named = Thoughts.names.find((name) => text(rest[name]) !== "")
    field ??= named
    inContent ||= spoken.thought !== ""
    refused ||= text(refusal) !== ""
    for (
      const [type, delta] of [
        ["reasoning", (named === undefined ? "" : text(rest[named])) + spoken.thought],
        ["text", spoken.said + text(refusal)]
      ] as const
    ) {
      if (delta !== "") deltas.push({ type, delta })
      if (type === "text") said += delta
      else thought += delta
    }
    for (const detail of list(reasoning_details)) details.push(detail)
    const called = list(tool_calls)
    // The form that calls had before there were tools.
    const added = readCalls(called.length === 0 && isJson(function_call) ? [{ function: function_call }] : called)
    for (const { at, call } of added) {
      const delta = call.args.slice(call.shown)
      // A call that cannot be named yet waits until it can.
      if (delta === "" || call.id === "" || call.name === "") continue
      call.shown = call.args.length
      deltas.push({ type: "input", delta, part: at, id: idOf(call, at), name: names.from(call.name) })
    }
    return deltas
  }

  return {
    whole: (answer) => take(answer, (choice) => object(choice.message ?? choice.delta), calls.whole),
    piece: (chunk) => take(chunk, (choice) => object(choice.delta ?? choice.message), calls.piece),
    end: () => {
      ended = true
    },
    finished: () => answered && (ended || finish !== ""),
    reply: () => ({
      content: [
        ...(thought === "" && details.length === 0
          ? []
          : [Thoughts.part({ text: thought, field, inContent, details })]),
        ...(said === "" ? [] : [Prompt.makePart("text", { text: said })]),
        ...calls.all().map((call, at) =>
          Prompt.makePart("tool-call", {
            id: idOf(call, at),
            name: names.from(call.name),
            params: call.args,
            providerExecuted: false,
            options: Thoughts.callOptions(call.extra)
          })
        )
      ],
      finish: refused ? "content-filter" : finishOf(finish),
      usage: Usage.of(usage),
      ...(model === "" ? {} : { model }),
      ...(warnings.length === 0 ? {} : { warnings })
    })
  }
}

const isCounted = (usage: Json): boolean => Object.keys(usage).length > 0

const finishes = new Map<string, Provider.Reply["finish"]>([
  ["", "unknown"],
  ["stop", "stop"],
  ["eos", "stop"],
  ["length", "length"],
  ["model_length", "length"],
  ["content_filter", "content-filter"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["error", "error"]
])

const finishOf = (finish: string): Provider.Reply["finish"] => finishes.get(finish) ?? "other"

/** JSON that is an object, or a list of one, if a text is that. */
export const parse = (body: string): Json | undefined => {
  const result = Result.try((): unknown => JSON.parse(body))
  if (Result.isFailure(result) || typeof result.success !== "object" || result.success === null) return undefined
  return object(Array.isArray(result.success) ? result.success[0] : result.success)
}
