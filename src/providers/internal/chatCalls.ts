/**
 * Which pieces make up which call? Servers say it by an id, by an index, by both, or by neither.
 */
import * as Result from "effect/Result"
import { type Json, object, text } from "./json.ts"

/** A call as it came; `args` is the text of its arguments, `extra` what the server hung on it. */
export interface Call {
  readonly index: number | undefined
  id: string
  name: string
  args: string
  /** How much of its arguments was shown. */
  shown: number
  extra: unknown
}

type Piece = Readonly<Call>

/** A call that something was added to, and which it is in the answer. */
export interface Added {
  readonly call: Call
  readonly at: number
}

/** Collects the calls of one answer. */
export const make = () => {
  const calls: Array<Call> = []
  const open = (piece: Piece): Call => {
    const call = { ...piece }
    calls.push(call)
    return call
  }
  const add = (piece: Piece, isFirst: boolean): Call => {
    const call = continued(calls, piece, isFirst)
    if (call === undefined) return open(piece)
    if (call.id === "") call.id = piece.id
    if (call.name === "") call.name = piece.name
    call.args += piece.args
    call.extra ??= piece.extra
    return call
  }
  const added = (call: Call): Added => ({ call, at: calls.indexOf(call) })
  return {
    all: (): ReadonlyArray<Call> => calls,
    /** The calls of a whole message: each element is one. */
    whole: (elements: ReadonlyArray<unknown>): ReadonlyArray<Added> =>
      elements.map(read).map((piece) => added(open(piece))),
    /** The calls in one piece of a stream. */
    piece: (elements: ReadonlyArray<unknown>): ReadonlyArray<Added> =>
      elements.map(read).map((piece, at) => added(add(piece, at === 0)))
  }
}

const read = (u: unknown): Piece => {
  const { extra_content: extra, function: called, id, index } = object(u)
  const { arguments: args, name }: Json = object(called)
  return {
    index: typeof index === "number" || (typeof index === "string" && /^\d+$/.test(index)) ? Number(index) : undefined,
    id: typeof id === "number" ? String(id) : text(id),
    name: text(name),
    args: typeof args === "object" && args !== null ? JSON.stringify(args) : text(args),
    shown: 0,
    extra
  }
}

/** The call that a piece goes on with; none where it begins one. */
const continued = (calls: ReadonlyArray<Call>, piece: Piece, isFirst: boolean): Call | undefined => {
  const known = piece.id === "" ? undefined : calls.findLast(({ id }) => id === piece.id)
  if (known !== undefined && (piece.index === undefined || piece.index === known.index)) return known
  const open = piece.index !== undefined
    ? calls.findLast(({ index }) => index === piece.index)
    // Several in one piece without an index are several calls.
    : isFirst
    ? calls.at(-1)
    : undefined
  if (open === undefined || piece.name === "" || open.name === "") return open
  const isAnother = (piece.id !== "" && open.id !== "" && piece.id !== open.id) || piece.name !== open.name ||
    (piece.id === "" && isComplete(open.args))
  return isAnother ? undefined : open
}

const isComplete = (args: string): boolean =>
  args.trimEnd().endsWith("}") && Result.isSuccess(Result.try(() => JSON.parse(args)))
