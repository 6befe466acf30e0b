// Do the documents tell the truth? Every fence marked `ts run` in a docstring, in README and in docs/ becomes a test, and
// every fence marked `ts` is at least type-checked. `expression // => value` asserts.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const out = "test/.docs"

const sources = (): ReadonlyArray<string> => [
  ...readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts")).map((file) =>
    `src/${file}`
  ),
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md")).map((file) =>
    `docs/${file}`
  )
]

interface Fence {
  readonly source: string
  readonly line: number
  readonly run: boolean
  readonly code: ReadonlyArray<string>
  /** What a fence marked `text output` right below says that the example prints. */
  readonly prints: string | undefined
}

const fencesOf = (source: string): ReadonlyArray<Fence> => {
  const lines = readFileSync(source, "utf8").split("\n")
    .map((line) => source.endsWith(".ts") ? line.replace(/^\s*\* ?/, "") : line)
  const fences: Array<Fence> = []
  for (let at = 0; at < lines.length; at++) {
    const opened = /^```ts( run)?$/.exec(lines[at] ?? "")
    if (opened === null) continue
    const line = at + 1
    const end = lines.indexOf("```", at + 1)
    let prints: string | undefined
    const next = lines.findIndex((text, index) => index > end && text.trim() !== "")
    if (lines[next] === "```text output") prints = lines.slice(next + 1, lines.indexOf("```", next + 1)).join("\n")
    fences.push({ source, line, run: opened[1] !== undefined, code: lines.slice(at + 1, end), prints })
    at = end
  }
  return fences
}

const assertion = (line: string): string => {
  const bound = /^(\s*)const (\w+) = .*\/\/ => (.+)$/.exec(line)
  if (bound !== null) return `${line}\n${bound[1]}assert.deepStrictEqual(${bound[2]}, ${bound[3]})`
  const plain = /^(\s*)(.+?) \/\/ => (.+)$/.exec(line)
  return plain === null ? line : `${plain[1]}assert.deepStrictEqual(${plain[2]}, ${plain[3]})`
}

const toTest = ({ code, line, prints, run, source }: Fence): string => {
  const imports = code.filter((text) => text.startsWith("import "))
  const body = code.filter((text) => !text.startsWith("import "))
  if (!run) return [...imports, ...body, "export {}"].join("\n")
  const title = JSON.stringify(`${source}:${line} runs`)
  const captured = prints === undefined
    ? { before: [], after: [] }
    : {
      before: [
        "const printed: Array<string> = []",
        'const log = vi.spyOn(console, "log").mockImplementation((...args) => void printed.push(args.join(" ")))'
      ],
      after: ["log.mockRestore()", `assert.strictEqual(printed.join("\\n"), ${JSON.stringify(prints)})`]
    }
  return [
    `import { assert, it${prints === undefined ? "" : ", vi"} } from "@effect/vitest"`,
    ...imports,
    "",
    `it(${title}, async () => {`,
    ...captured.before,
    ...body.map(assertion).map((text) => text.replace(/^export /, "")),
    ...captured.after,
    "})"
  ].join("\n")
}

/** Writes the tests of every document anew; gives how many examples run and how many are only checked. */
export const write = (): { readonly run: number; readonly checked: number } => {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const fences = sources().flatMap(fencesOf)
  for (const fence of fences) {
    const name = `${fence.source.replaceAll(/[/.]/g, "-")}-${fence.line}${fence.run ? ".test" : ""}.ts`
    writeFileSync(join(out, name), `${toTest(fence)}\n`)
  }
  const run = fences.filter((fence) => fence.run).length
  return { run, checked: fences.length - run }
}

/** Files that a document names and that are not there. */
export const deadNames = (): ReadonlyArray<string> => {
  const known = new Set(
    ["src", "test", "docs", "examples", "scripts", "typetest", ".ci"].flatMap((folder) => {
      const below = readdirSync(folder, { recursive: true, encoding: "utf8" })
      return [folder, ...below.map((file) => `${folder}/${file}`)]
    })
  )
  return sources().filter((source) => source.endsWith(".md")).flatMap((source) =>
    Array.from(
      readFileSync(source, "utf8").matchAll(
        /(?<![\w./-])(?:src|test|docs|examples|scripts|typetest|\.ci)\/[\w./-]*\w/g
      ),
      ([name]) => name
    ).filter((name) => !known.has(name)).map((name) => `${source} names ${name}, which is not there`)
  )
}
