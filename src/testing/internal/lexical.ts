/**
 * Which tool do these words mean, and which of them are its arguments? A ranking by BM25, and literals by their looks.
 */
import type * as Tool from "../../Tool.ts"

const quoted = /"([^"]{0,1000})"|“([^”]{0,1000})”|`([^`]{0,1000})`/g

/** The steps of a question, each a list of clauses. What is quoted is never cut. */
export const steps = (question: string): ReadonlyArray<ReadonlyArray<string>> => {
  const literals: Array<string> = []
  const masked = question.replace(quoted, (literal) => `\uE000${literals.push(literal) - 1}\uE000`)
  const unmask = (text: string) => text.replace(/\uE000(\d+)\uE000/g, (_, at) => literals[Number(at)] ?? "")
  return masked.split(/\bthen\b/i)
    .map((step) =>
      step.split(/[,;?!]|\.(?=\s|$)|\band\b/i).map((clause) => unmask(clause).trim()).filter((clause) => clause !== "")
    )
    .filter((step) => step.length > 0)
}

const stop = new Set(
  "a an the of in on at to for from is are it its this that which what how me my i you your with by as be do does"
    .split(" ")
)

const words = (text: string): ReadonlyArray<string> =>
  text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1 && !stop.has(word))
    .map((word) => word.length > 3 ? word.replace(/(?:ies)$/, "y").replace(/(?<=[^s])s$/, "") : word)

const documents = new WeakMap<Tool.Advertised, ReadonlyArray<string>>()

// A name says more than a description does.
const documentOf = (tool: Tool.Advertised): ReadonlyArray<string> => {
  const known = documents.get(tool)
  if (known !== undefined) return known
  const parameters = parametersOf(tool).map(([name, { description }]) => `${name} ${description ?? ""}`)
  const document = words([tool.name, tool.name, tool.name, tool.description ?? "", ...parameters].join(" "))
  documents.set(tool, document)
  return document
}

/** The tool that fits a clause best, if any word of it fits one. */
export const best = (clause: string, tools: ReadonlyArray<Tool.Advertised>): Tool.Advertised | undefined => {
  const query = words(clause.replace(quoted, " "))
  const average = tools.reduce((sum, tool) => sum + documentOf(tool).length, 0) / tools.length
  const rarity = new Map(query.map((word) => {
    const having = tools.filter((tool) => documentOf(tool).includes(word)).length
    return [word, Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))]
  }))
  let top: Tool.Advertised | undefined
  let most = 0
  for (const tool of tools) {
    const document = documentOf(tool)
    const norm = 1.2 * (0.25 + 0.75 * document.length / average)
    let score = 0
    for (const [word, idf] of rarity) {
      const times = document.filter((other) => other === word).length
      score += idf * times * 2.2 / (times + norm)
    }
    if (score > most) [top, most] = [tool, score]
  }
  return top
}

interface Parameter {
  readonly type?: unknown
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
}

const parametersOf = ({ input_schema }: Tool.Advertised): ReadonlyArray<readonly [string, Parameter]> =>
  Object.entries(input_schema.properties ?? {})

const isPath = (text: string): boolean => /^[\w.@~-]*(\/[\w.@~-]*)+$|^[\w-]+\.[a-z]{1,5}$/.test(text)

const place = /\b(?:in|under|inside|below|of|folder|directory|file)\s*$/i

interface Literal {
  readonly text: string
  readonly isPlace: boolean
}

const looksLikePath = ({ isPlace, text }: Literal): boolean => isPlace || isPath(text)

/** The arguments that a clause gives a tool literally, and the required ones that it lacks. */
export const fill = (clause: string, tool: Tool.Advertised) => {
  const literals = Array.from(clause.matchAll(quoted), (match): Literal => ({
    text: match[1] ?? match[2] ?? match[3] ?? "",
    isPlace: place.test(clause.slice(0, match.index))
  }))
  const bare = clause.replace(quoted, " ")
  const bareWords = bare.split(/[\s,;]+/).map((word) => word.replace(/[.:]$/, ""))
  const paths = [
    ...literals.filter(looksLikePath).map(({ text }) => text),
    ...bareWords.filter((word) => /\w/.test(word) && isPath(word))
  ]
  const others = literals.filter((literal) => !looksLikePath(literal)).map(({ text }) => text)
  const numbers = Array.from(bare.matchAll(/(?<![\w./])-?\d+(?:\.\d+)?(?![\w/])/g), ([number]) => Number(number))
  const required = new Set(Array.isArray(tool.input_schema.required) ? tool.input_schema.required : [])
  const input: Record<string, unknown> = {}
  const parameters = parametersOf(tool)
  const takeText = (name: string): string | undefined => {
    const wantsPath = /path|file|dir|folder/i.test(name)
    if (wantsPath) return paths.shift() ?? (required.has(name) ? others.shift() : undefined)
    return required.has(name) ? others.shift() ?? paths.shift() : others.shift()
  }
  // Paths find their parameters first, so that a text does not take one of them.
  const order = [...parameters].sort(([a], [b]) =>
    Number(/path|file|dir|folder/i.test(b)) - Number(/path|file|dir|folder/i.test(a))
  )
  for (const [name, parameter] of order) {
    const value = parameter.enum !== undefined
      ? parameter.enum.find((member) => words(bare).includes(String(member).toLowerCase()))
      : parameter.type === "integer" || parameter.type === "number"
      ? numbers.shift()
      : parameter.type === "array"
      ? others.length > 0 ? others.splice(0) : undefined
      : parameter.type === "boolean"
      ? undefined
      : takeText(name)
    if (value !== undefined) input[name] = value
  }
  return {
    input,
    missing: parameters.map(([name]) => name).filter((name) => required.has(name) && !Object.hasOwn(input, name))
  }
}
