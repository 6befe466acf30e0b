/**
 * When are two requests the same, and where do they differ first? Each has an outline: its form, with a digest in the place
 * of every text, so that a tape tells one from another and does not keep what was asked.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Text from "../../internal/text.ts"
import type * as Provider from "../../Provider.ts"
import type * as Tool from "../../Tool.ts"
import * as Secrets from "./tapeSecrets.ts"

/** A request to compare: what it says in plain, and its outline. */
export interface Canonical {
  readonly plain: Form
  readonly outline: Form
}

/** Its messages, and everything else. */
export interface Form {
  readonly messages: ReadonlyArray<unknown>
  readonly rest: unknown
}

/** How outlines are made; `keep` says that they hold the texts too. */
export interface Outliner {
  readonly request: (request: Provider.Request) => Canonical
  readonly value: (json: unknown) => unknown
}

export const outliner = (cleaner: Secrets.Cleaner, keep: boolean): Outliner => {
  // Messages only ever grow within a run, and are made once.
  const messages = new WeakMap<Prompt.Message, { readonly plain: unknown; readonly outline: unknown }>()
  const tables = new WeakMap<Tool.Table, ReadonlyArray<unknown>>()
  const leaf = (text: string) => keep ? `${mark(text)} ${text}` : mark(text)
  const value = (json: unknown): unknown => outline(json, leaf)
  const message = (given: Prompt.Message, table: Tool.Table) => {
    const known = messages.get(given)
    if (known !== undefined) return known
    const plain = plainMessage(given, table, cleaner)
    const made = { plain, outline: outlineMessage(plain, value) }
    messages.set(given, made)
    return made
  }
  const toolsOf = (table: Tool.Table): ReadonlyArray<unknown> => {
    const known = tables.get(table)
    if (known !== undefined) return known
    const made = table.schemas.map((schema) => ({
      name: schema.name,
      advertised: mark(JSON.stringify(cleaner.hook(Secrets.plain(schema))))
    }))
    tables.set(table, made)
    return made
  }
  return {
    value,
    request: ({ format, messages, settings, table, toolChoice }) => {
      const all = messages.map((each) => message(each, table))
      const rest = cleaner.hook(Secrets.plain({
        tools: toolsOf(table),
        toolChoice,
        ...(format === undefined
          ? {}
          : { format: { name: format.name, schema: mark(JSON.stringify(Secrets.plain(format.schema))) } }),
        ...(settings === undefined ? {} : { settings })
      }))
      return {
        plain: { messages: all.map(({ plain }) => plain), rest },
        outline: { messages: all.map(({ outline }) => outline), rest }
      }
    }
  }
}

// What somebody asks is as it is on both sides; what a model or a tool said may hold what the tape does not.
const plainMessage = (message: Prompt.Message, table: Tool.Table, cleaner: Secrets.Cleaner): unknown => {
  if (message.role === "system" || message.role === "user") return cleaner.hook(Secrets.plain(message))
  const toolOf = (name: string) => table.tools.find((tool) => tool.name === name)
  return cleaner.clean(Secrets.plain({
    ...message,
    content: message.content.map((part) =>
      part.type === "tool-call"
        ? { ...part, params: cleaner.params(toolOf(part.name), part.params) }
        : part.type === "tool-result"
        ? { ...part, result: cleaner[part.isFailure ? "failure" : "result"](toolOf(part.name), part.result) }
        : part
    )
  }))
}

/** Words of the form, which say nothing of what was asked. */
const isWord = new Set(["role", "type", "name", "id", "mediaType"])

const outlineMessage = (json: unknown, value: (json: unknown) => unknown): unknown =>
  ofKeys(json, (key, member) =>
    key === "content" && Array.isArray(member)
      ? member.map((part) => ofKeys(part, (key, member) => isWord.has(key) ? member : value(member)))
      : isWord.has(key)
      ? member
      : value(member))

const ofKeys = (json: unknown, change: (key: string, member: unknown) => unknown): unknown =>
  isObject(json)
    ? Object.fromEntries(Object.entries(json).map(([key, member]) => [key, change(key, member)]))
    : json

const outline = (json: unknown, leaf: (text: string) => string): unknown =>
  typeof json === "string"
    ? leaf(json)
    : Array.isArray(json)
    ? json.map((member) => outline(member, leaf))
    : ofKeys(json, (_, member) => outline(member, leaf))

const isObject = (u: unknown): u is { readonly [key: string]: unknown } =>
  typeof u === "object" && u !== null && !Array.isArray(u)

// Sixty-four bits that tell texts apart; whoever guesses a text can find it in them.
const mark = (text: string): string => {
  let [a, b] = [0x9e3779b9 ^ text.length, 0x7f4a7c15]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    a = Math.imul((a << 5 | a >>> 27) ^ code, 0x85ebca6b)
    b = Math.imul((b << 7 | b >>> 25) + code ^ a >>> 15, 0xc2b2ae35)
  }
  return `#${hex(a)}${hex(b)}:${text.length}`
}

const hex = (bits: number): string => ((bits ^ bits >>> 16) >>> 0).toString(16).padStart(8, "0")

const marked = /^(#[0-9a-f]{16}:(\d+))(?: ([^]*))?$/

// The text behind a digest is for whoever reads it.
const isSameText = (one: string, other: string): boolean =>
  one === other || (marked.exec(one)?.[1] ?? one) === (marked.exec(other)?.[1] ?? other)

/** Where two values differ first: the way to it, and what stands there in the recorded one. */
export interface Difference {
  readonly path: ReadonlyArray<string | number>
  readonly recorded: unknown
}

/** The first place, in the order of the recorded one, where another differs from it. */
export const difference = (
  recorded: unknown,
  came: unknown,
  path: ReadonlyArray<string | number> = []
): Difference | undefined => {
  if (recorded === came) return undefined
  if (Array.isArray(recorded) && Array.isArray(came)) {
    const most = Math.max(recorded.length, came.length)
    return first(Array.from({ length: most }, (_, at) => at), (at) => difference(recorded[at], came[at], [...path, at]))
  }
  if (isObject(recorded) && isObject(came)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(came)])
    return first(keys, (key) => difference(own(recorded, key), own(came, key), [...path, key]))
  }
  return typeof recorded === "string" && typeof came === "string" && isSameText(recorded, came)
    ? undefined
    : { path, recorded }
}

const first = <A, B>(members: Iterable<A>, of: (member: A) => B | undefined): B | undefined => {
  for (const member of members) {
    const found = of(member)
    if (found !== undefined) return found
  }
  return undefined
}

const own = (value: { readonly [key: string]: unknown }, key: string): unknown =>
  Object.hasOwn(value, key) ? value[key] : undefined

/** What stands at a place. */
export const at = (value: unknown, path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, key) => typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined,
    value
  )

/** A place, as a program would name it. */
export const shownPath = (path: ReadonlyArray<string | number>): string =>
  path.map((key, at) => typeof key === "number" ? `[${key}]` : at === 0 ? key : `.${key}`).join("") || "(the whole)"

/** A value, for a message; of a text that was not kept only what is known of it. */
export const shown = (value: unknown): string => {
  if (value === undefined) return "nothing"
  const [, digest, length, kept] = typeof value === "string" ? marked.exec(value) ?? [] : []
  return digest === undefined || kept !== undefined
    ? Text.excerpt(JSON.stringify(kept ?? value), 200)
    : `a text of ${length} characters (${digest.slice(0, 9)})`
}
