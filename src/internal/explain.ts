/**
 * What is wrong with a value that does not decode? One line a place: where, what was expected, what came. What a schema
 * calls redacted is never shown.
 */
import * as Iterable from "effect/Iterable"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Issue from "effect/SchemaIssue"
import * as Arguments from "./arguments.ts"
import * as Text from "./text.ts"

/** What is wrong with one place of a value. */
export interface PathIssue {
  readonly path: string
  readonly message: string
}

/** What is looked at: the schema on its way to JSON, and the JSON. */
export interface Subject {
  readonly ast: AST.AST
  readonly input: unknown
}

type Keys = ReadonlyArray<PropertyKey>

/** What is wrong at some keys; `type` is what was expected where the value is of another type altogether. */
interface Finding {
  readonly keys: Keys
  readonly message: string
  readonly type?: AST.AST
}

/** The issues of a value that does not decode, one a place, and no more of them than anybody reads. */
export const explain = (issue: Issue.Issue, subject: Subject): ReadonlyArray<PathIssue> => {
  const byLine = new Map<string, PathIssue>()
  for (const { keys, message } of findings(subject, issue, [], undefined)) {
    const found = { path: renderPath(keys), message }
    const shown = line(found)
    if (!byLine.has(shown)) byLine.set(shown, found)
    if (byLine.size === mostIssues) break
  }
  return [...byLine.values()]
}

const mostIssues = 10_000

function* findings(subject: Subject, issue: Issue.Issue, keys: Keys, parent: AST.AST | undefined): Generator<Finding> {
  switch (issue._tag) {
    case "Pointer":
      return yield* findings(subject, issue.issue, [...keys, ...issue.path], parent)
    case "Encoding":
      return yield* findings(subject, issue.issue, keys, parent)
    case "Composite":
      for (const each of issue.issues) yield* findings(subject, each, keys, issue.ast)
      return
    case "AnyOf":
      return yield* unfit(subject, issue, keys)
    case "MissingKey":
      return yield { keys, message: missing(issue, keys, parent) }
    case "InvalidType":
      return yield mistyped(subject, issue.ast, keys)
    default:
      if (isRedacted(subject.ast, keys)) {
        return yield finding(subject, keys, `Expected ${expectedWithoutValue(issue)}`)
      }
      for (const { message, path = [] } of format(issue).issues) {
        const below = path.map((segment) => typeof segment === "object" ? segment.key : segment)
        yield finding(subject, [...keys, ...below], inOurWords(message, parent))
      }
  }
}

const inOurWords = (message: string, parent: AST.AST | undefined): string =>
  parent !== undefined && AST.isTemplateLiteral(parent)
    ? `Expected a string like ${
      parent.parts.map((part) => AST.isLiteral(part) ? part.literal : `<${expected(part)}>`).join("")
    }`
    : message.replace("<filter>", "a value that its check accepts")

const format = Issue.makeFormatterStandardSchemaV1()

/** A finding, with what came. */
const finding = (subject: Subject, keys: Keys, message: string, type?: AST.AST): Finding => ({
  keys,
  message: `${message}${received(subject, keys, type)}`,
  ...(type === undefined ? {} : { type })
})

const received = ({ ast, input }: Subject, keys: Keys, type: AST.AST | undefined): string => {
  const came = valueAt(input, keys)
  if (came === undefined) return ""
  if (isRedacted(ast, keys)) return ", got a redacted value"
  return type !== undefined && isNumeric(type) && isBeyond(came.value)
    ? `, got ${Text.excerpt(came.value)}, which ${
      Arguments.isRounded(came.value) ? "no number holds exactly" : "is beyond 2^53, where numbers are rounded"
    }`
    : `, got ${Text.describe(came.value)}`
}

const valueAt = (input: unknown, keys: Keys): { readonly value: unknown } | undefined => {
  let value = input
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return { value }
}

const isNumeric = (ast: AST.AST): boolean => AST.isNumber(ast) || (AST.isUnion(ast) && ast.types.some(isNumeric))

const isBeyond = (value: unknown): value is string =>
  typeof value === "string" && /^-?\d+$/.test(value) && !Number.isSafeInteger(Number(value))

const mistyped = (subject: Subject, ast: AST.AST, keys: Keys): Finding => {
  const stated = ast.annotations?.message
  return finding(subject, keys, typeof stated === "string" ? stated : `Expected ${typeWords(ast)}`, ast)
}

// That a text is missing needs no more words: its name says what it is.
const missing = (issue: Issue.MissingKey, keys: Keys, parent: AST.AST | undefined): string => {
  const stated = issue.annotations?.messageMissingKey
  if (typeof stated === "string") return stated
  const key = keys.at(-1)
  const type = parent === undefined || key === undefined ? undefined : memberOf(parent, key)
  const what = type === undefined ? "string" : checked(type)
  return `Missing ${typeof key === "number" ? "item" : "key"}${what === "string" ? "" : `, expected ${what}`}`
}

/** Why no member of a union takes a value: by its type, by its tag, or by what is wrong with each that it could be. */
const unfit = (subject: Subject, { ast, issues }: Issue.AnyOf, keys: Keys): ReadonlyArray<Finding> => {
  const each = issues.map((issue) => [...Iterable.take(findings(subject, issue, keys, ast), mostIssues)])
  const close = each.filter((found) => !found.every(({ keys: { length }, type }) => type && length === keys.length))
  const [only = [], ...others] = close
  if (others.length > 0) {
    const reasons = close.slice(0, mostReasons).map((found) =>
      found.slice(0, mostReasons).map((one) =>
        line({ path: renderPath(one.keys.slice(keys.length)), message: one.message })
      ).join(" and ")
    )
    return [{ keys, message: `Fits none of ${close.length} alternatives: ${reasons.join(", or ")}` }]
  }
  if (close.length > 0) return only
  const tag = ast.annotations?.message === undefined ? tagOf(ast) : undefined
  const value = valueAt(subject.input, keys)?.value
  if (tag === undefined || typeof value !== "object" || value === null || Array.isArray(value)) {
    return [mistyped(subject, ast, keys)]
  }
  const place = [...keys, tag.key]
  return [
    Object.hasOwn(value, tag.key)
      ? finding(subject, place, `Expected ${tag.values}`)
      : { keys: place, message: `Missing key, expected ${tag.values}` }
  ]
}

const mostReasons = 5

/** What a schema expects of JSON, in a few words. */
const expected = (ast: AST.AST): string => {
  const shape = AST.toEncoded(ast)
  const name = AST.resolveIdentifier(ast)
  const text = AST.isUnion(shape)
    ? [...new Set(shape.types.map(expected))].join(" | ")
    : AST.isObjects(shape)
    ? ["object", ...[...constantsOf(shape)].map(([key, value]) => `with ${String(key)} ${value}`)].join(" ")
    : words.get(shape._tag) ?? inEffectsWords(shape)
  return name === undefined || text.endsWith(`(${name})`) ? text : `${text} (${name})`
}

const words: ReadonlyMap<string, string> = new Map([
  ["String", "string"],
  ["Number", "number"],
  ["Boolean", "boolean"],
  ["Arrays", "array"]
])

const inEffectsWords = (ast: AST.AST): string =>
  format(new Issue.InvalidType(ast)).issues.map(({ message }) => message.replace(/^Expected /, "")).join(" ")

// What is declared is of another type in JSON already when it is found to be wrong.
const typeWords = (ast: AST.AST): string => AST.isDeclaration(ast) ? inEffectsWords(ast) : expected(ast)

/** What a schema expects with its checks. */
const checked = (ast: AST.AST): string => {
  const checks = (ast.checks ?? []).flatMap(({ annotations }) =>
    typeof annotations?.expected === "string" ? [annotations.expected] : []
  )
  return checks.length === 0 ? expected(ast) : `${expected(ast)} (${checks.join(", ")})`
}

const memberOf = (ast: AST.AST, key: PropertyKey): AST.AST | undefined =>
  AST.isObjects(ast)
    ? ast.propertySignatures.find(({ name }) => name === key)?.type ?? ast.indexSignatures[0]?.type
    : AST.isArrays(ast)
    ? ast.elements[Number(key)] ?? ast.rest[0]
    : undefined

/** The properties that have one value only, and that value. */
const constantsOf = (ast: AST.AST): ReadonlyMap<PropertyKey, string> =>
  new Map(
    AST.isObjects(ast)
      ? ast.propertySignatures.flatMap(({ name, type }) => {
        const shape = AST.toEncoded(type)
        return AST.isLiteral(shape) ? [[name, expected(shape)] as const] : []
      })
      : []
  )

/** The property that tells the members of a union apart. */
const tagOf = (union: AST.Union): { readonly key: PropertyKey; readonly values: string } | undefined => {
  const [first, ...others] = union.types.map((type) => constantsOf(AST.toEncoded(type)))
  const key = [...first?.keys() ?? []].find((key) => others.every((constants) => constants.has(key)))
  if (first === undefined || key === undefined) return undefined
  return { key, values: [...new Set([first, ...others].map((constants) => constants.get(key)))].join(" | ") }
}

/** Whether what is at these keys, or what holds it, is not to be shown. */
const isRedacted = (root: AST.AST, keys: Keys): boolean => {
  let level = unfold(root, new Set())
  for (const key of keys) {
    if (level.some(isSecret)) return true
    level = level.flatMap((ast) => memberOf(ast, key) ?? []).flatMap((ast) => unfold(ast, new Set()))
  }
  return level.some(isSecret)
}

const isSecret = (ast: AST.AST): boolean => {
  const representation = ast.annotations?.representation
  return typeof representation === "object" && representation !== null && "id" in representation &&
    representation.id === "effect/schema/Redacted"
}

/** A schema, what it is in JSON, and what it may be instead. */
const unfold = (ast: AST.AST, seen: Set<AST.AST>): ReadonlyArray<AST.AST> => {
  if (seen.has(ast)) return []
  seen.add(ast)
  const others = AST.isUnion(ast) ? ast.types : AST.isSuspend(ast) ? [ast.thunk()] : []
  return [ast, ...[...others, ...(ast.encoding ?? []).map(({ to }) => to)].flatMap((other) => unfold(other, seen))]
}

// What an issue of a value that is not to be shown says by itself may hold the value.
const expectedWithoutValue = (issue: Issue.Issue): string => {
  const annotations = issue._tag === "Filter"
    ? issue.filter.annotations
    : issue._tag === "InvalidValue"
    ? issue.annotations
    : undefined
  return typeof annotations?.expected === "string" ? annotations.expected : "a valid value"
}

const renderPath = (keys: Keys): string =>
  Text.excerpt(
    keys.reduce<string>((path, key) => {
      if (typeof key === "number") return `${path}[${key}]`
      const name = Text.excerpt(String(key))
      return path === "" ? name : `${path}.${name}`
    }, ""),
    200
  )

/** An issue of a value that does not encode, in a few words. */
export const describe = (issue: Issue.Issue): string =>
  new Schema.SchemaError(issue).message.replaceAll("\n  at ", " at ")

/** An issue as one line. */
export const line = ({ message, path }: PathIssue): string => path === "" ? message : `${path}: ${message}`

const most = 20
const mostCharacters = 800

/** The first issues as lines, and how many more there are. */
export const lines = (issues: ReadonlyArray<PathIssue>): ReadonlyArray<string> => {
  const first = issues.slice(0, most).map((issue) => Text.excerpt(line(issue), mostCharacters))
  return issues.length <= most ? first : [...first, `… and ${issues.length - most} more like these`]
}
