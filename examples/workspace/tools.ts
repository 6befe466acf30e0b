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
const mostEntries = 5_000
const built = new Set(["node_modules", "dist", "coverage"])

/** The real path of something in the folder; links that lead out and what is hidden are refused. */
const inside = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { root } = yield* Folder
  const real = yield* Effect.mapError(
    fs.realPath(paths.resolve(root, path)),
    () => new PathRefused({ path, problem: "there is no such file or folder" })
  )
  const relative = paths.relative(root, real)
  if (relative === ".." || relative.startsWith(`..${paths.sep}`) || paths.isAbsolute(relative)) {
    return yield* new PathRefused({ path, problem: "it lies outside the folder" })
  }
  if (relative.split(paths.sep).some((name) => name.startsWith("."))) {
    return yield* new PathRefused({ path, problem: "it is hidden" })
  }
  return real
})

const unreadable = (path: string) => () => new PathRefused({ path, problem: "it cannot be read" })

interface Found {
  readonly files: ReadonlyArray<{ readonly path: string; readonly bytes: number }>
  /** There is more than was looked at. */
  readonly more: boolean
}

/** The files below a path, by their paths in the folder. Links, hidden and built folders, and what cannot be read are skipped. */
const filesBelow = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { root } = yield* Folder
  const start = yield* inside(path)
  const files: Array<{ readonly path: string; readonly bytes: number }> = []
  const pending = [start]
  let looked = 0
  for (let at = pending.shift(); at !== undefined && looked < mostEntries; at = pending.shift()) {
    looked++
    const info = yield* Effect.option(fs.lstat(at))
    if (info._tag === "None") continue
    const { size, type } = info.value
    if (type === "File") files.push({ path: paths.relative(root, at), bytes: Number(size) })
    if (type !== "Directory") continue
    const names = yield* Effect.orElseSucceed(fs.readDirectory(at), () => [])
    for (const name of names.toSorted()) {
      if (!built.has(name) && !name.startsWith(".") && pending.length < mostEntries) pending.push(paths.join(at, name))
    }
  }
  const found: Found = { files: files.toSorted((a, b) => a.path < b.path ? -1 : 1), more: pending.length > 0 }
  return found
})

/** The beginning of a file's text. Somebody who swaps files for links while this runs is not kept out. */
const readText = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* inside(path)
  const file = yield* Effect.mapError(fs.open(real), unreadable(path))
  const { size, type } = yield* Effect.mapError(file.stat, unreadable(path))
  if (type !== "File") return yield* new PathRefused({ path, problem: "it is not a file" })
  const read = yield* Effect.mapError(file.readAlloc(mostBytes), unreadable(path))
  const bytes = read._tag === "Some" ? read.value : new Uint8Array()
  if (bytes.subarray(0, 8_000).includes(0)) return yield* new PathRefused({ path, problem: "it is binary" })
  return { text: new TextDecoder().decode(bytes), bytes: bytes.length, whole: bytes.length >= Number(size) }
}, Effect.scoped)

const path = Schema.String.annotate({ description: "Path in the folder, like src or src/index.ts" })
const anywhere = path.pipe(Schema.withDecodingDefaultKey(Effect.succeed(".")))

const mostListed = 200

const listFiles = Tool.make("list_files", {
  description: "List the files below a folder, with their sizes in bytes",
  input: { path: anywhere },
  output: Schema.Struct({
    files: Schema.Array(Schema.Struct({ path: Schema.String, bytes: Schema.Int })),
    more: Schema.Boolean.annotate({ description: "There are more files than are listed" })
  }),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path }) =>
    Effect.map(filesBelow(path), ({ files, more }) => ({
      files: files.slice(0, mostListed),
      more: more || files.length > mostListed
    }))
})

const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const readFile = Tool.make("read_file", {
  description: "Read the text of one file, some of its lines at a time",
  input: {
    path,
    from: natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
    lines: natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(200)))
  },
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ from, lines, path }) =>
    Effect.gen(function*() {
      const { bytes, text, whole } = yield* readText(path)
      const findings = yield* Findings
      yield* findings.write({ opened: new Set([path]), bytesRead: bytes })
      const all = text.split("\n")
      const shown = all.slice(from - 1, from - 1 + lines)
      const notes = [
        ...(shown.length < all.length ? [`${shown.length} of ${all.length} lines`] : []),
        ...(whole ? [] : [`of the first ${mostBytes} bytes; the file is longer`])
      ]
      return notes.length === 0 ? text : `${shown.join("\n")}\n[${notes.join(", ")}]`
    })
})

const mostMatches = 40

const searchText = Tool.make("search_text", {
  description: "Search for a text in the files below a folder: which lines say, mention or contain it",
  input: {
    text: Schema.NonEmptyString.annotate({ description: "Text to search for, case does not matter" }),
    path: anywhere
  },
  output: Schema.Struct({
    matches: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String })),
    more: Schema.Boolean.annotate({ description: "There may be more matches than are shown" })
  }),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path, text }) =>
    Effect.gen(function*() {
      const found = yield* filesBelow(path)
      const needle = text.toLowerCase()
      const matches: Array<{ readonly path: string; readonly line: number; readonly text: string }> = []
      let more = found.more
      for (const file of found.files) {
        if (matches.length > mostMatches) break
        const read = yield* Effect.option(readText(file.path))
        if (read._tag === "None") continue
        more ||= !read.value.whole
        for (const [at, line] of read.value.text.split("\n").entries()) {
          if (matches.length > mostMatches) break
          if (line.toLowerCase().includes(needle)) {
            matches.push({ path: file.path, line: at + 1, text: line.trim().slice(0, 160) })
          }
        }
      }
      const findings = yield* Findings
      yield* findings.write({ opened: new Set(matches.map((match) => match.path)) })
      return { matches: matches.slice(0, mostMatches), more: more || matches.length > mostMatches }
    })
})

const measureFolder = Tool.make("measure_folder", {
  description: "Measure a folder: how many files, how large, how many lines of text, and which files are the longest",
  input: { path: anywhere },
  output: Schema.Struct({
    files: Schema.Int,
    bytes: Schema.Int,
    lines: Schema.Int,
    longest: Schema.Array(Schema.Struct({ path: Schema.String, lines: Schema.Int })),
    more: Schema.Boolean.annotate({ description: "There is more than was measured" })
  }),
  failure: PathRefused,
  readOnly: true,
  tags: ["read"],
  handler: ({ path }) =>
    Effect.gen(function*() {
      const found = yield* filesBelow(path)
      const measured = yield* Effect.forEach(
        found.files,
        (file) =>
          Effect.match(readText(file.path), {
            onFailure: () => ({ path: file.path, lines: 0, whole: true }),
            onSuccess: ({ text, whole }) => ({ path: file.path, lines: text.split("\n").length, whole })
          }),
        { concurrency: 16 }
      )
      const longest = measured.toSorted((a, b) => b.lines - a.lines).slice(0, 5)
      const findings = yield* Findings
      yield* findings.write({ longestFile: longest[0]?.lines ?? 0 })
      return {
        files: found.files.length,
        bytes: found.files.reduce((sum, { bytes }) => sum + bytes, 0),
        lines: measured.reduce((sum, { lines }) => sum + lines, 0),
        longest: longest.map(({ lines, path }) => ({ path, lines })),
        more: found.more || measured.some(({ whole }) => !whole)
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
