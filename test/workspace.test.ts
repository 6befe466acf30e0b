// The example that a newcomer runs first: its tools stay in their folder, and its mistakes are one line.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, vi } from "@effect/vitest"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Context from "toolfold/Context"
import { ToolRegistry } from "toolfold/ToolRegistry"
import * as Turn from "toolfold/Turn"
import { chooseModel, namedBy } from "../examples/workspace/model.ts"
import { Findings, folder, WorkspaceTools } from "../examples/workspace/tools.ts"

/** A folder with a secret beside it, and links that lead out and round. */
const withFolder = <A, E>(use: (root: string) => Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const base = yield* fs.makeTempDirectoryScoped()
    const root = paths.join(base, "root")
    yield* fs.makeDirectory(paths.join(root, "sub"), { recursive: true })
    yield* fs.makeDirectory(paths.join(base, "root-sibling"))
    yield* fs.writeFileString(paths.join(base, "secret.txt"), "the barrier secret")
    yield* fs.writeFileString(paths.join(base, "root-sibling", "secret.txt"), "the barrier secret")
    yield* fs.writeFileString(paths.join(root, "a.txt"), "one\ntwo barrier\nthree")
    yield* fs.writeFileString(paths.join(root, "sub", "b.txt"), "a barrier")
    yield* fs.writeFileString(paths.join(root, ".env"), "KEY=secret")
    yield* fs.writeFile(paths.join(root, "binary"), new Uint8Array([1, 0, 2]))
    yield* fs.symlink(paths.join(base, "secret.txt"), paths.join(root, "link.txt"))
    yield* fs.symlink(base, paths.join(root, "up"))
    yield* fs.symlink(root, paths.join(root, "sub", "round"))
    return yield* use(root)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const answer = (root: string, name: string, params: object) =>
  Effect.gen(function*() {
    const registry = yield* ToolRegistry
    const scope = Context.callScope()
    const outcome = yield* registry.answer(Turn.call({ id: "1", name, params }), scope)
    return {
      told: Turn.told(outcome),
      isError: Turn.isError(outcome),
      findings: Findings.from(Context.fold(Context.empty, scope.writes))
    }
  }).pipe(
    Effect.provide(WorkspaceTools.pipe(Layer.provide(Findings.layer), Layer.provide(folder(root)))),
    Effect.orDie
  )

describe("the workspace's tools", () => {
  it.live("list, read, search, measure and save", () =>
    withFolder((root) =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* answer(root, "list_files", {})).told, {
          files: [{ path: "a.txt", bytes: 21 }, { path: "binary", bytes: 3 }, { path: "sub/b.txt", bytes: 9 }],
          more: false
        })
        const read = yield* answer(root, "read_file", { path: "a.txt", lines: 2 })
        assert.deepStrictEqual([read.told, read.findings.bytesRead, [...read.findings.opened]], [
          "one\ntwo barrier\n[2 of 3 lines]",
          21,
          ["a.txt"]
        ])
        assert.deepStrictEqual((yield* answer(root, "search_text", { text: "BARRIER" })).told, {
          matches: [{ path: "a.txt", line: 2, text: "two barrier" }, { path: "sub/b.txt", line: 1, text: "a barrier" }],
          more: false
        })
        const measured = yield* answer(root, "measure_folder", { path: "sub" })
        assert.deepStrictEqual([measured.told, measured.findings.longestFile], [{
          files: 1,
          bytes: 9,
          lines: 1,
          longest: [{ path: "sub/b.txt", lines: 1 }],
          more: false
        }, 1])
        assert.deepStrictEqual((yield* answer(root, "save_finding", { text: "found" })).findings.notes, [{
          text: "found"
        }])
      })
    ))

  it.live("never leave the folder: not by .., an absolute path, a link, or a name that begins alike", () =>
    withFolder((root) =>
      Effect.gen(function*() {
        for (
          const path of [
            "../secret.txt",
            "/etc/passwd",
            "link.txt",
            "up/secret.txt",
            "sub/../../secret.txt",
            "../root-sibling/secret.txt"
          ]
        ) {
          const { isError, told } = yield* answer(root, "read_file", { path })
          assert.isTrue(isError)
          assert.notInclude(String(told), "the barrier secret")
        }
        for (const name of ["list_files", "search_text", "measure_folder"]) {
          assert.isTrue((yield* answer(root, name, { path: "..", text: "x" })).isError)
          assert.isTrue((yield* answer(root, name, { path: "up", text: "x" })).isError)
        }
      })
    ))

  it.live("say when there is more than they show, and stop looking", () =>
    withFolder((root) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        yield* fs.writeFileString(`${root}/long.txt`, "a barrier\n".repeat(20_000))
        const found = (yield* answer(root, "search_text", { text: "barrier", path: "long.txt" })).told as {
          readonly matches: ReadonlyArray<object>
          readonly more: boolean
        }
        assert.deepStrictEqual([found.matches.length, found.more], [40, true])
        assert.match(
          String((yield* answer(root, "read_file", { path: "long.txt", from: 9_999, lines: 1 })).told),
          /^a barrier\n\[1 of 10001 lines, of the first 100000 bytes; the file is longer\]$/
        )
        assert.isTrue((yield* answer(root, "search_text", { text: "" })).isError)
        assert.isTrue((yield* answer(root, "read_file", { path: "long.txt", lines: -1 })).isError)
      })
    ))

  it.live("refuse what is binary, no file, or not there, and say so", () =>
    withFolder((root) =>
      Effect.gen(function*() {
        assert.include(String((yield* answer(root, "read_file", { path: "binary" })).told), "it is binary")
        assert.include(String((yield* answer(root, "read_file", { path: "sub" })).told), "it is not a file")
        assert.include(
          String((yield* answer(root, "read_file", { path: "gone" })).told),
          "there is no such file or folder"
        )
      })
    ))
})

describe("the workspace's model", () => {
  it("is what the environment names: OpenAI and its like, then Anthropic, then Google, else nothing", () => {
    const openai = "(another: OPENAI_MODEL or --model; another server: OPENAI_BASE_URL)"
    const other = "(another: --model; another vendor: OPENAI_API_KEY)"
    const [anthropic, google] = [{ ANTHROPIC_API_KEY: "a" }, { GOOGLE_GENERATIVE_AI_API_KEY: "g" }]
    const cases: ReadonlyArray<
      readonly [env: NodeJS.ProcessEnv, wanted: string | undefined, named: object | undefined]
    > = [
      [{}, "any", undefined],
      [{ OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ANTHROPIC_API_KEY: "" }, undefined, undefined],
      [{ ...anthropic, ...google, OPENAI_API_KEY: "o", OPENAI_MODEL: "" }, undefined, {
        api: "openai",
        model: "gpt-5-mini",
        apiKey: "o",
        line: `model: gpt-5-mini at OpenAI ${openai}`
      }],
      [{ OPENAI_BASE_URL: "http://x/v1", OPENAI_MODEL: "m" }, undefined, {
        api: "openai",
        model: "m",
        baseUrl: "http://x/v1",
        line: `model: m at http://x/v1 ${openai}`
      }],
      [{ OPENAI_API_KEY: "o", OPENAI_MODEL: "m" }, "n", {
        api: "openai",
        model: "n",
        apiKey: "o",
        line: `model: n at OpenAI ${openai}`
      }],
      [{ ...anthropic, ...google, OPENAI_API_KEY: "", OPENAI_MODEL: "m" }, undefined, {
        api: "anthropic",
        model: "claude-haiku-4-5",
        apiKey: "a",
        line: `model: claude-haiku-4-5 at Anthropic ${other}`
      }],
      [google, "gemini-x", {
        api: "google",
        model: "gemini-x",
        apiKey: "g",
        line: `model: gemini-x at Google ${other}`
      }]
    ]
    assert.deepStrictEqual(cases.map(([env, wanted]) => namedBy(env, wanted)), cases.map(([, , named]) => named))
  })

  it.effect("asks the vendor that the key is of, and never shows the key", () =>
    Effect.gen(function*() {
      for (
        const [env, provider] of [
          [{ ANTHROPIC_API_KEY: "secret" }, /api\.anthropic\.com/],
          [{ GOOGLE_GENERATIVE_AI_API_KEY: "secret" }, /generativelanguage\.googleapis\.com/]
        ] as const
      ) {
        const asked: Array<string> = []
        const fetched = vi.spyOn(globalThis, "fetch").mockImplementation((url) => {
          asked.push(String(url))
          return Promise.resolve(new Response("{}", { status: 401 }))
        })
        const { layer, line } = yield* chooseModel(env, undefined)
        yield* Effect.exit(LanguageModel.generateText({ prompt: "Hi" }).pipe(Effect.provide(layer)))
        fetched.mockRestore()
        assert.deepStrictEqual([asked.length, provider.test(asked[0] ?? ""), line.includes("secret")], [1, true, false])
      }
    }).pipe(Effect.provide(FetchHttpClient.layer)))
})

const start = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.promise(() =>
    new Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>((resolve) => {
      const rest = Object.fromEntries(
        Object.entries(process.env).filter(([name]) => !/^(OPENAI|ANTHROPIC|GOOGLE_GENERATIVE_AI)_/.test(name))
      )
      const child = spawn(process.execPath, ["--conditions=@toolfold/source", "examples/workspace.ts", ...args], {
        env: { ...rest, ...env }
      })
      let out = ""
      let err = ""
      child.stdout.on("data", (chunk) => {
        out += chunk
      })
      child.stderr.on("data", (chunk) => {
        err += chunk
      })
      child.on("close", (code) => resolve({ code, out, err }))
    })
  )

describe("npm start", () => {
  const refused = (args: ReadonlyArray<string>, env?: Record<string, string>) =>
    Effect.map(start(args, env), ({ code, err }) => {
      assert.deepStrictEqual([code, err.trim().split("\n").length], [1, 1], err)
      assert.notMatch(err, /\n\s+at /)
      return err.trim()
    })

  it.live(
    "answers a question about the files of a folder, and shows what it does",
    () =>
      withFolder((root) =>
        Effect.gen(function*() {
          const question = `list the files, read the file "a.txt", then save a finding that "it is short"`
          const { code, err, out } = yield* start([question, "--dir", root])
          assert.deepStrictEqual([code, err], [0, ""], out)
          // A server on this machine would answer in other words.
          if (!out.startsWith("model: OfflineModel")) return
          assert.match(out, /→ list_files .*\n.*→ read_file \{"path":"a.txt"\}/)
          assert.match(out, /✓ read_file \d+ ms {2}one two barrier three/)
          assert.match(out, /± folded: \+1 files opened, \+21 bytes read/)
          assert.match(out, /findings: it is short\nopened: 1 files\nusage: 3 turns/)
        })
      ),
    30_000
  )

  it.live("says in one line what is wrong with what it was given", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* refused(["x", "--dir", "/nowhere/at/all"]), "error: there is no folder /nowhere/at/all")
      assert.strictEqual(yield* refused(["x", "--dir", "package.json"]), "error: there is no folder package.json")
      assert.match(yield* refused(["--flag"]), /^error: Unknown option '--flag'/)
      assert.match(
        yield* refused(["x"], { OPENAI_BASE_URL: "http://127.0.0.1:47/v1" }),
        /^error: TransportError: .*127\.0\.0\.1:47/
      )
    }), 60_000)

  it.live(
    "says in one line what a server refuses: a wrong key, a model that does not exist, no JSON",
    () =>
      Effect.gen(function*() {
        for (
          const [status, body, line] of [
            [
              401,
              JSON.stringify({ error: { message: "Incorrect API key" } }),
              /^error: InvalidKey: .*Incorrect API key/
            ],
            [
              404,
              JSON.stringify({ error: { message: "no model m" } }),
              /^error: Invalid request. no model m .*check the model's name/
            ],
            [200, "<html>", /^error: Invalid response: an answer that is not JSON: "<html>"/]
          ] as const
        ) {
          const server = createServer((_, response) =>
            response.writeHead(status, { "content-type": "application/json" }).end(body)
          )
          yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
          const { port } = server.address() as AddressInfo
          const err = yield* refused(["x"], {
            OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
            OPENAI_API_KEY: "sk-secret"
          })
          server.close()
          assert.match(err, line)
          assert.notInclude(err, "sk-secret")
        }
      }),
    60_000
  )
})
