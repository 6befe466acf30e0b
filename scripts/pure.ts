// Which of a module's values may a bundler leave out? All that nobody uses: loading a module of ours does nothing but make
// values. A bundler takes a call for more than that unless it is marked, and would keep every schema and option.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript-api"

const mark = "/*#__PURE__*/"

const declares: ReadonlyArray<(node: ts.Node) => boolean> = [
  ts.isImportDeclaration,
  ts.isExportDeclaration,
  ts.isVariableStatement,
  ts.isFunctionDeclaration,
  ts.isClassDeclaration
]

/** Marks the calls that the modules below a folder make when they are loaded; throws where one does more than that. */
export const markPure = (folder: string): void => {
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js")) continue
    const path = join(folder, file)
    const text = readFileSync(path, "utf8")
    const module = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
    const stray = module.statements.find((statement) => !declares.some((is) => is(statement)))
    if (stray !== undefined) throw new Error(`${file} does something when it is loaded: ${stray.getText(module)}`)
    const places = new Set(module.statements.flatMap((statement) => [...callsOf(statement, module)]))
    const ends = [...places].sort((a, b) => a - b)
    // On the same line, so that the lines of the source map stay right.
    writeFileSync(
      path,
      ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end)).concat(text.slice(ends.at(-1))).join(mark)
    )
  }
}

/** Where the calls begin that are made when a module is loaded; what is in a function is not, nor in a class's body. */
function* callsOf(node: ts.Node, module: ts.SourceFile): Generator<number> {
  if (ts.isFunctionLike(node)) return
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) yield node.getStart(module)
  const parts = ts.isClassLike(node) ? node.heritageClauses ?? [] : node.getChildren(module)
  for (const part of parts) yield* callsOf(part, module)
}
