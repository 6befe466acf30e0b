// Tools over one folder: they list, read, search and measure its files, and keep what was found in slots. None of them
// leaves the folder, whatever path the model asks for.
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Slots from "toolfold/Context"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"

/** What the agent remembers: any tool may write it, and it folds in call order. */
export class Findings extends Slots.Slots<Findings>()("workspace/Findings", {
  notes: Slots.list(Schema.Struct({ text: Schema.String, path: Schema.optionalKey(Schema.String) })),
  opened: Slots.set(Schema.String),
  bytesRead: Slots.sum,
  longestFile: Slots.max
}) {}

/** The folder that the tools work in. */
export class Folder extends Services.Service<Folder, { readonly root: string }>()("workspace/Folder") {}

/** A folder by its path; fails where there is none. */
export const folder = (path: string) =>
  Layer.effect(
    Folder,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const root = yield* Effect.mapError(fs.realPath(path), () => new NoFolder({ path }))
      const info = yield* Effect.mapError(fs.stat(root), () => new NoFolder({ path }))
      return info.type === "Directory" ? { root } : yield* new NoFolder({ path })
    })
  )

export class NoFolder extends Schema.TaggedError<NoFolder>()("NoFolder", { path: Schema.String }) {
  override get message(): string {
    return `there is no folder ${this.path}`
  }
}

/** What the model is told in full when a path is none of its business or not there. */
class PathRefused extends Schema.TaggedError<PathRefused>()("PathRefused", {
  path: Schema.String,
  problem: Schema.String
}) {}

const mostBytes = 100_000
const mostFiles = 2_000
const built = new Set(["node_modules", "dist", "coverage"])

/** The real path of something in the folder; symlinks that lead out are refused too. */
const inside = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { root } = yield* Folder
  const real = yield* Effect.mapError(
    fs.realPath(paths.resolve(root, path)),
    () => new PathRefused({ path, problem: "there is no such file or folder" })
  )
  return real === root || real.startsWith(`${root}${paths.sep}`)
    ? real
    : yield* new PathRefused({ path, problem: "it lies outside the folder" })
})

const unreadable = (path: string) => () => new PathRefused({ path, problem: "it cannot be read" })

/** Every file below a path, by its path in the folder; hidden and built folders are skipped. */
const filesBelow = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { root } = yield* Folder
  const found: Array<{ readonly path: string; readonly bytes: number }> = []
  const pending = [yield* inside(path)]
  while (pending.length > 0 && found.length < mostFiles) {
    const at = pending.pop() ?? root
    const info = yield* Effect.mapError(fs.stat(at), unreadable(path))
    if (info.type === "File") found.push({ path: paths.relative(root, at), bytes: Number(info.size) })
    if (info.type !== "Directory") continue
    for (const name of yield* Effect.mapError(fs.readDirectory(at), unreadable(path))) {
      if (built.has(name) || name.startsWith(".")) continue
      // A link is looked at once more, and followed only inside.
      const next = yield* Effect.option(inside(paths.relative(root, paths.join(at, name))))
      if (next._tag === "Some" && next.value === paths.join(at, name)) pending.push(next.value)
    }
  }
  return found.toSorted((a, b) => a.path < b.path ? -1 : 1)
})

const readText = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* inside(path)
  const info = yield* Effect.mapError(fs.stat(real), unreadable(path))
  if (info.type !== "File") return yield* new PathRefused({ path, problem: "it is not a file" })
  const bytes = yield* Effect.mapError(fs.readFile(real), unreadable(path))
  if (bytes.subarray(0, 8_000).includes(0)) return yield* new PathRefused({ path, problem: "it is binary" })
  return { text: new TextDecoder().decode(bytes.subarray(0, mostBytes)), bytes: bytes.length }
})

const path = Schema.String.annotate({ description: "Path in the folder, like src or src/index.ts" })
const anywhere = path.pipe(Schema.withDecodingDefaultKey(Effect.succeed(".")))

const listFiles = Tool.make("list_files", {
  description: "List the files below a folder, with their sizes in bytes",
  input: { path: anywhere },
  output: Schema.Array(Schema.Struct({ path: Schema.String, bytes: Schema.Int })),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path }) => Effect.map(filesBelow(path), (files) => files.slice(0, 200))
})

const readFile = Tool.make("read_file", {
  description: "Read the text of one file, some of its lines at a time",
  input: {
    path,
    from: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
    lines: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(200)))
  },
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ from, lines, path }) =>
    Effect.gen(function*() {
      const { bytes, text } = yield* readText(path)
      const findings = yield* Findings
      yield* findings.write({ opened: new Set([path]), bytesRead: bytes })
      const all = text.split("\n")
      const shown = all.slice(Math.max(0, from - 1), Math.max(0, from - 1) + lines)
      return shown.length < all.length
        ? `${shown.join("\n")}\n[${shown.length} of ${all.length} lines]`
        : shown.join("\n")
    })
})

const searchText = Tool.make("search_text", {
  description: "Search for a text in the files below a folder: which lines say, mention or contain it",
  input: { text: Schema.String.annotate({ description: "Text to search for, case does not matter" }), path: anywhere },
  output: Schema.Struct({
    files: Schema.Int,
    matches: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String }))
  }),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path, text }) =>
    Effect.gen(function*() {
      const files = yield* filesBelow(path)
      const needle = text.toLowerCase()
      const matches: Array<{ readonly path: string; readonly line: number; readonly text: string }> = []
      for (const file of files.filter(({ bytes }) => bytes <= mostBytes)) {
        const read = yield* Effect.option(readText(file.path))
        if (read._tag === "None") continue
        read.value.text.split("\n").forEach((line, at) => {
          if (line.toLowerCase().includes(needle)) {
            matches.push({ path: file.path, line: at + 1, text: line.trim().slice(0, 160) })
          }
        })
      }
      const findings = yield* Findings
      yield* findings.write({ opened: new Set(matches.map((match) => match.path)) })
      return { files: new Set(matches.map((match) => match.path)).size, matches: matches.slice(0, 40) }
    })
})

const measureFolder = Tool.make("measure_folder", {
  description: "Measure a folder: how many files, how large, how many lines of text, and which files are the longest",
  input: { path: anywhere },
  output: Schema.Struct({
    files: Schema.Int,
    bytes: Schema.Int,
    lines: Schema.Int,
    longest: Schema.Array(Schema.Struct({ path: Schema.String, lines: Schema.Int }))
  }),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path }) =>
    Effect.gen(function*() {
      const files = yield* filesBelow(path)
      const measured = yield* Effect.forEach(
        files.filter(({ bytes }) => bytes <= mostBytes),
        (file) =>
          Effect.match(readText(file.path), {
            onFailure: () => ({ path: file.path, lines: 0 }),
            onSuccess: ({ text }) => ({ path: file.path, lines: text.split("\n").length })
          }),
        { concurrency: 16 }
      )
      const longest = measured.toSorted((a, b) => b.lines - a.lines).slice(0, 5)
      const findings = yield* Findings
      yield* findings.write({ longestFile: longest[0]?.lines ?? 0 })
      return {
        files: files.length,
        bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
        lines: measured.reduce((sum, { lines }) => sum + lines, 0),
        longest
      }
    })
})

const saveFinding = Tool.make("save_finding", {
  description: "Save a finding, so that it stands in the notes of this run: remember or note something",
  input: { text: Schema.String, path: path.pipe(Schema.optionalKey) },
  tags: ["write"],
  handler: (finding) =>
    Effect.gen(function*() {
      const findings = yield* Findings
      yield* findings.write({ notes: [finding] })
      return "saved"
    })
})

/** The tools of the workspace; they need a folder, a file system, and the slots that they write. */
export const WorkspaceTools = ToolRegistry.layer(listFiles, readFile, searchText, measureFolder, saveFinding)
