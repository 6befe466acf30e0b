import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Logger from "effect/Logger"
import * as PlatformError from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Context from "toolfold/Context"
import * as Gate from "toolfold/Gate"
import * as Policy from "toolfold/policy/Policy"
import * as Subject from "toolfold/Subject"
import * as Tool from "toolfold/Tool"

const explain = (policy: Policy.Policy, ...subjects: ReadonlyArray<Subject.Subject>) =>
  Policy.explain(policy, { name: "tool", subjects })

const verdictOf = (policy: Policy.Policy, ...subjects: ReadonlyArray<Subject.Subject>) =>
  Effect.map(explain(policy, ...subjects), ({ verdict }) => verdict)

type Line = readonly [value: string, verdict: Policy.Verdict]

const table = (policy: Policy.Policy, kind: Subject.Kind, lines: ReadonlyArray<Line>) => {
  for (const [value, verdict] of lines) {
    it.effect(`${verdict}: ${JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)}`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* verdictOf(policy, Subject.make(kind, value)), verdict)
      }))
  }
}

describe("paths: work may be read, but not its secrets; a draft is asked for", () => {
  const policy = Policy.make({
    root: "/work",
    rules: [
      Policy.allow("file-read", "**"),
      Policy.deny("file-read", "secret/**"),
      Policy.deny("file-read", "**/.env"),
      Policy.deny("file-read", "caf\u00e9/**"),
      Policy.ask("file-read", "drafts/*.md"),
      Policy.allow("file-read", "/usr/share/{doc,man}/**"),
      Policy.allow("file-read", "/usr/caf\u00e9/*")
    ]
  })
  table(policy, "file-read", [
    ["src/a.ts", "allow"],
    ["/work/src/a.ts", "allow"],
    ["/work", "allow"],
    [".", "allow"],
    ["./src//a.ts", "allow"],
    ["src/", "allow"],
    [".hidden/file", "allow"],
    ["src/..", "allow"],
    ["..", "ask"],
    ["../other/file", "ask"],
    ["src/../../etc/passwd", "ask"],
    ["/etc/passwd", "ask"],
    ["/work/../etc/passwd", "ask"],
    ["/workshop/file", "ask"],
    ["/../../work/src/a.ts", "allow"],
    ["secret", "deny"],
    ["secret/", "deny"],
    ["secret/key", "deny"],
    ["secret/.dot/key", "deny"],
    ["./secret/key", "deny"],
    ["src/../secret/key", "deny"],
    ["src/./../secret//key", "deny"],
    ["/work//secret/./key", "deny"],
    ["../work/secret/key", "deny"],
    ["../../../../work/secret/key", "deny"],
    ["Secret/key", "deny"],
    ["SECRET/KEY", "deny"],
    ["\u017fecret/key", "deny"],
    ["secrets/key", "allow"],
    ["a/b/.env", "deny"],
    ["a/b/.ENV", "deny"],
    [".env", "deny"],
    [".env.example", "allow"],
    ["caf\u00e9/menu", "deny"],
    ["cafe\u0301/menu", "deny"],
    ["CAFE\u0301/menu", "deny"],
    ["drafts/a.md", "ask"],
    ["drafts/.a.md", "ask"],
    ["drafts/b/a.md", "allow"],
    ["/usr/share/doc/x", "allow"],
    ["/usr/share/info/x", "ask"],
    ["/usr/caf\u00e9/x", "allow"],
    ["/usr/cafe\u0301/x", "allow"],
    ["/usr/CAF\u00c9/x", "ask"],
    ["", "deny"],
    ["src/a.ts\0.png", "deny"],
    ["~/.ssh/id_rsa", "deny"],
    ["~root/x", "deny"],
    ["./~x", "allow"],
    ["src\\..\\secret\\key", "deny"],
    ["C:/work/secret", "deny"],
    ["c:secret", "deny"],
    ["file:///work/secret/key", "deny"],
    ["file:/work/secret/key", "deny"],
    ["src/%2e%2e/secret/key", "allow"],
    ["a\ud800", "deny"],
    ["a/".repeat(3000), "deny"]
  ])

  it.effect("a pattern means what it means to effect's Glob, from the root", () =>
    Effect.gen(function*() {
      const matches: ReadonlyArray<readonly [pattern: string, path: string, isMatch: boolean]> = [
        ["a/[[:digit:]]", "a/1", true],
        ["a/[[:digit:]]", "a/b", false],
        ["a/[]b]", "a/]", true],
        ["a/[!a-c]", "a/d", true],
        ["a/\\*", "a/*", true],
        ["a/\\*", "a/b", false],
        ["{a,b/{c,d}}/e", "b/d/e", true],
        ["a{,b}", "ab", true],
        ["**/a", "a", true],
        ["a/**/b", "a/x/.y/b", true],
        ["./a/./b", "a/b", true],
        ["//a", "/a", true],
        ["/", "/", true],
        ["/**", "/", true],
        [".", "/r[1]", true],
        ["a?", "a\u{1f600}", true]
      ]
      for (const [pattern, path, isMatch] of matches) {
        const policy = Policy.make({ root: "/r[1]", rules: [Policy.allow("file-read", pattern)] })
        const verdict = yield* verdictOf(policy, Subject.fileRead(path))
        assert.strictEqual(verdict, isMatch ? "allow" : "ask", `${pattern} ${path}`)
      }
    }))

  it.effect("a relative path cannot be judged where there is no root, and an absolute one can", () =>
    Effect.gen(function*() {
      const rootless = Policy.make({ rules: [Policy.allow("file-write", "/tmp/**")] })
      assert.strictEqual(yield* verdictOf(rootless, Subject.fileWrite("/tmp/a")), "allow")
      assert.deepStrictEqual(
        (yield* explain(rootless, Subject.fileWrite("tmp/a"))).reason,
        [
          'the policy denies file-write "tmp/a", which cannot be judged: it is relative, and the policy has no root'
        ].join()
      )
    }))
})

describe("hosts: the API and its subdomains, but not the inside", () => {
  const policy = Policy.make({
    rules: [
      Policy.allow("network", "example.com"),
      Policy.allow("network", "*.example.com"),
      Policy.allow("network", "b\u00fccher.example"),
      Policy.allow("network", "api.test:443"),
      Policy.deny("network", "admin.example.com"),
      Policy.deny("network", "127.0.0.0/8"),
      Policy.deny("network", "10.0.0.0/8"),
      Policy.deny("network", "0.0.0.0/8"),
      Policy.deny("network", "169.254.169.254"),
      Policy.deny("network", "[::1]"),
      Policy.deny("network", "fd00::/8")
    ]
  })
  table(policy, "network", [
    ["https://example.com/a?b#c", "allow"],
    ["HTTPS://EXAMPLE.COM", "allow"],
    ["example.com", "allow"],
    ["example.com.", "allow"],
    ["https://example.com.:8443/", "allow"],
    ["//example.com/x", "allow"],
    ["wss://a.b.example.com/", "allow"],
    ["https://ex%61mple.com/", "allow"],
    ["https://user:pass@example.com/", "allow"],
    ["https://example.com@evil.test/", "ask"],
    ["https://evil.test/example.com", "ask"],
    ["https://evil.test?example.com", "ask"],
    ["https://evil.test#@example.com", "ask"],
    ["https://example.com.evil.test/", "ask"],
    ["https://notexample.com/", "ask"],
    ["https://example.co", "ask"],
    ["https://evil.test\\@example.com/", "deny"],
    ["https://exam\nple.com/", "deny"],
    [" https://example.com", "deny"],
    ["https:example.com", "deny"],
    ["https:/example.com", "deny"],
    ["http:2130706433", "deny"],
    ["https://", "deny"],
    ["", "deny"],
    ["/etc/passwd", "deny"],
    ["file:///etc/passwd", "deny"],
    ["data:text/plain,hi", "deny"],
    ["https://admin.example.com", "deny"],
    ["https://ADMIN.example.com.", "deny"],
    ["https://\uff41dmin.example.com", "deny"],
    ["https://xn--bcher-kva.example", "allow"],
    ["https://B\u00dcCHER.example", "allow"],
    ["https://api.test", "allow"],
    ["http://api.test", "ask"],
    ["https://api.test:444", "ask"],
    ["api.test:443", "allow"],
    ["api.test", "ask"],
    ["http://127.0.0.1/", "deny"],
    ["http://127.1/", "deny"],
    ["http://2130706433/", "deny"],
    ["http://0x7f000001/", "deny"],
    ["http://0x7f.1/", "deny"],
    ["http://0177.0.0.1/", "deny"],
    ["127.0.0.1.", "deny"],
    ["http://[::ffff:127.0.0.1]/", "deny"],
    ["http://[::ffff:7f00:1]:80/", "deny"],
    ["http://[0:0:0:0:0:0:0:1]/", "deny"],
    ["::1", "deny"],
    ["[::1]:443", "deny"],
    ["http://[fd12:3456::1]/", "deny"],
    ["http://[fe80::1%25eth0]/", "deny"],
    ["http://[2001:db8::1]/", "ask"],
    ["http://10.255.0.1:8080/", "deny"],
    ["http://0/", "deny"],
    ["http://[::7]/", "ask"],
    ["http://11.0.0.1/", "ask"],
    ["http://169.254.169.254/latest/meta-data", "deny"],
    ["http://0251.0376.0251.0376/", "deny"],
    ["http://256.1.1.1/", "deny"],
    ["ssh://git@evil.test:22/repo", "ask"],
    ["postgres://u:p@EXAMPLE.com:5432/db", "allow"],
    ["postgres://u:p@2130706433/db", "deny"],
    ["ssh://git@ADMIN.example.com:22/repo", "deny"],
    ["evil.test", "ask"]
  ])

  it.effect("with a port that is not known it may be the one that is denied, and is not the one that is allowed", () =>
    Effect.gen(function*() {
      const policy = Policy.make({
        rules: [Policy.allow("network", "*"), Policy.deny("network", "*:22"), Policy.deny("network", "db.test:5432")]
      })
      const hosts = ["https://a.test", "ssh://a.test", "a.test:80", "a.test", "postgres://db.test/x", "http://db.test"]
      assert.deepStrictEqual(yield* Effect.forEach(hosts, (host) => verdictOf(policy, Subject.network(host))), [
        "allow",
        "deny",
        "allow",
        "deny",
        "deny",
        "allow"
      ])
    }))
})

describe("commands: looking is allowed, pushing is asked for, removing is denied", () => {
  const policy = Policy.make({
    rules: [
      Policy.allow("command", ["git", "status"]),
      Policy.allow("command", "git log"),
      Policy.allow("command", "ls"),
      Policy.allow("command", "echo"),
      Policy.allow("command", "sh"),
      Policy.allow("command", "find"),
      Policy.allow("command", "NODE_ENV=test npm test"),
      Policy.allow("command", "npm test"),
      Policy.ask("command", "git push"),
      Policy.allow("command", ["say", "$HOME"]),
      Policy.allow("command", ["say", "~"]),
      Policy.deny("command", "docker run"),
      Policy.deny("command", "rm"),
      Policy.deny("command", ["git", "push", "--force"])
    ]
  })
  table(policy, "command", [
    ["git status", "allow"],
    ["git status -s", "allow"],
    ["  git   'status'  ", "allow"],
    ['g"it" sta\\tus', "allow"],
    ["git statusx", "ask"],
    ["git", "ask"],
    ["git push", "ask"],
    ["git -C . push", "ask"],
    ["git --no-pager -c a=b push origin", "ask"],
    ["say $HOME", "ask"],
    ['say "$HOME"', "ask"],
    ["say '$HOME'", "allow"],
    ["say ~", "ask"],
    ["say '~'", "allow"],
    ["docker run x", "deny"],
    ["docker -H host --tls run x", "deny"],
    ["docker -D -l debug run", "deny"],
    ["docker $X run", "deny"],
    ["docker ps run", "ask"],
    ["docker -H", "ask"],
    ["git push --force", "deny"],
    ["git push -u --force", "deny"],
    ["git -C . push origin --force", "ask"],
    ["rm x", "deny"],
    ["/bin/rm x", "deny"],
    ["../../bin/RM x", "deny"],
    ["rm.exe x", "deny"],
    ["r\\m x", "deny"],
    ["'r'm x", "deny"],
    ["r''m x", "deny"],
    ["A=1 rm x", "deny"],
    ["sudo -u root rm x", "deny"],
    ["env -i A=1 rm x", "deny"],
    ["ls | xargs rm", "deny"],
    ["find . -name '*.o' -exec rm {} +", "deny"],
    ["find . -exec ls {} +", "allow"],
    ["ls; rm x", "deny"],
    ["ls && rm x", "deny"],
    ["ls || rm x", "deny"],
    ["ls & rm x", "deny"],
    ["ls\nrm x", "deny"],
    ["ls\rrm x", "deny"],
    ["echo `rm x`", "deny"],
    ["echo $(rm x)", "deny"],
    ['echo "$(rm x)"', "deny"],
    ["echo ${X:-$(rm x)}", "deny"],
    ["echo $((1+1))", "deny"],
    ["echo $'a'", "deny"],
    ["cat <(rm x)", "deny"],
    ["(rm x)", "deny"],
    ["{ rm x; }", "deny"],
    ["if true; then rm x; fi", "deny"],
    ["! rm x", "deny"],
    ["sh -c 'rm x'", "deny"],
    ["sh -ec \"ls; 'rm' x\"", "deny"],
    ["sh -o errexit -c 'rm x'", "deny"],
    ["sh -c -o errexit 'rm x'", "deny"],
    ["sh -c \"sh -c 'rm x'\"", "deny"],
    ["sudo sh -c 'rm x'", "deny"],
    ["sh -c ls", "allow"],
    ["sh -c 'cat x'", "ask"],
    ["sh -c $X", "deny"],
    ["eval 'rm' x", "deny"],
    ["$X x", "deny"],
    ["r? x", "deny"],
    ["{rm,x}", "deny"],
    ["echo 'rm; x'", "allow"],
    ["echo rm", "allow"],
    ["echo a\\;b", "allow"],
    ["echo '$(rm)'", "allow"],
    ["ls $HOME ~ *.ts", "allow"],
    ["git $X", "deny"],
    ["[ -f x ] && ls", "ask"],
    ["ls > out", "deny"],
    ["ls >> ~/.bashrc", "deny"],
    ["ls < in", "deny"],
    ["ls <<EOF", "deny"],
    ["ls 2>&1 | git log", "allow"],
    ["ls >/dev/null 2>&1", "allow"],
    ["ls &>/dev/null", "deny"],
    ["ls &>/dev/null rm x", "deny"],
    [">/dev/null rm x", "deny"],
    ["git status ''2>&1", "allow"],
    ["git ''2>&1 status", "ask"],
    ["''NODE_ENV=test npm test", "ask"],
    ["NODE_ENV='test' npm test", "allow"],
    ["ls >/dev/nullx", "deny"],
    ["ls # rm", "deny"],
    ["ls a#b", "allow"],
    ["npm test", "allow"],
    ["NODE_ENV=test npm test", "allow"],
    ["PATH=/tmp npm test", "ask"],
    ["PATH=/tmp; git status", "ask"],
    ["/tmp/git status", "ask"],
    ["./ls", "ask"],
    ["ls 'x", "deny"],
    ['ls "x', "deny"],
    ["ls \\", "deny"],
    ["ls \\\n-l", "allow"],
    ["ls;", "allow"],
    ["", "deny"],
    [" ; ", "deny"],
    ["ls\0", "deny"],
    [`ls ${"x".repeat(10_000)}`, "deny"]
  ])

  const argvs: ReadonlyArray<readonly [ReadonlyArray<string>, Policy.Verdict]> = [
    [["git", "status", ";", "rm", "x"], "allow"],
    [["echo", "$(rm x)", "`rm`", "a\nb", ">", "it's"], "allow"],
    [["rm", "-rf", "a b"], "deny"],
    [["A=1", "git", "status"], "ask"],
    [["sh", "-c", "rm x"], "deny"],
    [["git status"], "ask"],
    [[], "deny"]
  ]
  for (const [argv, verdict] of argvs) {
    it.effect(`${verdict}: ${JSON.stringify(argv)}`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* verdictOf(policy, Subject.command(argv)), verdict)
      }))
  }
})

describe("a call", () => {
  const policy = Policy.make({
    root: "/work",
    rules: [
      Policy.allow(["file-read", "file-write"], "**"),
      Policy.ask("file-write", "package.json", "others read it"),
      Policy.deny("file-write", ".git/**"),
      Policy.allow("undeclared", "get_*"),
      Policy.deny("undeclared", "get_secret"),
      Policy.allow("calendar", "team/*"),
      Policy.deny("external", "*")
    ],
    otherwise: "ask"
  })
  const write = Tool.make("write", {
    input: { path: Schema.String },
    subjects: [{ kind: "file-write", pathArg: "path" }],
    handler: () => Effect.succeed("")
  })
  const info: Gate.Info = { agent: "bot", runId: "r", turn: 0, context: Context.empty, calls: [] }
  const asked = (tool: Tool.Any, input: unknown = {}) => Gate.asked({ id: "c1", tool, input })

  it.effect("is judged by the strictest of its subjects", () =>
    Effect.gen(function*() {
      const one = Subject.fileWrite("a")
      const two = Subject.fileWrite("package.json")
      const three = Subject.fileWrite(".git/config")
      assert.strictEqual(yield* verdictOf(policy, one), "allow")
      assert.strictEqual(yield* verdictOf(policy, one, two), "ask")
      assert.strictEqual(yield* verdictOf(policy, three, one, two), "deny")
    }))

  it.effect("without subjects is of the kind undeclared, by the name of its tool", () =>
    Effect.gen(function*() {
      const verdicts = yield* Effect.forEach(
        ["get_weather", "get_secret", "save"],
        (name) => Effect.map(Policy.explain(policy, { name, subjects: [] }), ({ verdict }) => verdict)
      )
      assert.deepStrictEqual(verdicts, ["allow", "deny", "ask"])
    }))

  it.effect("of a kind of the application is judged by name, which is no path", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* verdictOf(policy, Subject.make("calendar", "team/a/../b")), "allow")
      assert.strictEqual(yield* verdictOf(policy, Subject.make("calendar", "/team/a")), "ask")
      assert.strictEqual(yield* verdictOf(policy, Subject.make("calendar", "")), "deny")
      for (const value of ["a", "//a", "..", ".", "a/../b", "\n"]) {
        assert.strictEqual(yield* verdictOf(policy, Subject.external(value)), "deny")
      }
    }))

  it.effect("is let through, paused or refused by the gate, and the log is told what the model is", () =>
    Effect.gen(function*() {
      const logged: Array<unknown> = []
      const gate = (path: string) =>
        Gate.decide(policy, asked(write, { path }), info).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))]))
        )
      const asks =
        'the policy asks for approval of file-write "package.json" by rule 2 (ask file-write "package.json"): others read it'
      const denies = 'the policy denies file-write ".git/config" by rule 3 (deny file-write ".git/**")'
      assert.deepStrictEqual([yield* gate("a"), yield* gate("package.json"), yield* gate(".git/config")], [
        Gate.proceed,
        Gate.pause(asks),
        Gate.reject(denies)
      ])
      assert.deepStrictEqual(logged, [[asks], [denies]])
    }))

  it.effect("of a sensitive tool needs a rule that allows it", () =>
    Effect.gen(function*() {
      const open = Policy.make({ root: "/work", rules: [Policy.allow("file-write", "out/**")], otherwise: "allow" })
      const decide = (tool: Tool.Any, path: string) => Gate.decide(open, asked(tool, { path }), info)
      const sensitive = Tool.sensitive(write, true)
      assert.deepStrictEqual(yield* decide(write, "src/a"), Gate.proceed)
      assert.deepStrictEqual(yield* decide(sensitive, "out/a"), Gate.proceed)
      const both = sensitive.pipe(Tool.subjects(() => [Subject.fileWrite("out/a"), Subject.external("x")]))
      assert.strictEqual((yield* Effect.provide(decide(both, "a"), Logger.layer([])))._tag, "Pause")
      assert.deepStrictEqual(
        yield* Effect.provide(decide(sensitive, "src/a"), Logger.layer([])),
        Gate.pause('the tool "write" is sensitive, and no rule allows this call')
      )
    }))

  it.effect("that runs any command is allowed or denied by *", () =>
    Effect.gen(function*() {
      for (const verdict of ["allow", "deny"] as const) {
        const any = Policy.make({ rules: [{ verdict, kind: "command", pattern: "*" }] })
        assert.strictEqual(yield* verdictOf(any, Subject.command("make -j2 && ./run")), verdict)
      }
    }))

  it.effect("that cannot say what it touches is refused", () =>
    Effect.gen(function*() {
      const broken = write.pipe(Tool.subjects(() => {
        throw new Error("password=1")
      }))
      const decision = yield* Effect.provide(
        Gate.decide(policy, asked(broken, { path: "a" }), info),
        Logger.layer([])
      )
      assert.strictEqual(decision._tag, "Reject")
      assert.notInclude(JSON.stringify(decision), "password")
    }))

  it.effect("is explained: which rule decided of which subject, and what it was taken to mean", () =>
    Effect.gen(function*() {
      const rules = [Policy.deny("file-write", "/work/.git/**")]
      const subjects = [Subject.fileWrite("a/../.git/x"), Subject.fileWrite("b"), Subject.fileWrite("")]
      assert.deepStrictEqual(
        yield* explain(Policy.make({ root: "/work", rules, otherwise: "allow" }), ...subjects),
        {
          verdict: "deny",
          reason: 'the policy denies file-write "a/../.git/x" by rule 1 (deny file-write "/work/.git/**"); ' +
            'file-write "", which cannot be judged: it is empty',
          subjects: [
            {
              subject: subjects[0]!,
              verdict: "deny",
              rule: rules[0]!,
              index: 0,
              judgedAs: ["/work/.git/x"],
              problem: undefined
            },
            {
              subject: subjects[1]!,
              verdict: "allow",
              rule: undefined,
              index: undefined,
              judgedAs: ["/work/b"],
              problem: undefined
            },
            {
              subject: subjects[2]!,
              verdict: "deny",
              rule: undefined,
              index: undefined,
              judgedAs: [],
              problem: "it is empty"
            }
          ]
        }
      )
    }))

  it.effect("with many subjects has a short reason", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 50 }, (_, at) => Subject.external(`${at}${"x".repeat(100)}`))
      const { reason } = yield* explain(policy, ...many)
      assert.isBelow(reason.length, 500)
      assert.isTrue(reason.endsWith("; and 47 more"))
    }))
})

describe("what may match", () => {
  it.effect("asks or denies, and does not soften what holds otherwise", () =>
    Effect.gen(function*() {
      const policy = Policy.make({
        root: "/work",
        rules: [Policy.ask("file-read", "Readme"), Policy.allow("file-read", "Notes")],
        otherwise: "deny"
      })
      const verdicts = yield* Effect.forEach(
        ["Readme", "README", "Notes", "NOTES"],
        (path) => verdictOf(policy, Subject.fileRead(path))
      )
      assert.deepStrictEqual(verdicts, ["ask", "deny", "allow", "deny"])
    }))

  it.effect("is judged as strictly as everything that a value may mean", () =>
    Effect.gen(function*() {
      const policy = Policy.make({ rules: [Policy.allow("command", "ls")], otherwise: "ask" })
      assert.strictEqual(yield* verdictOf(policy, Subject.command("ls; cat x")), "ask")
      assert.strictEqual(yield* verdictOf(policy, Subject.command("cat x; ls")), "ask")
    }))
})

describe("links", () => {
  const withFiles = <A, E>(use: (root: string) => Effect.Effect<A, E, FileSystem.FileSystem>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const top = realpathSync(mkdtempSync(join(tmpdir(), "policy-")))
        for (const folder of ["work/src/deep", "outside/secret"]) mkdirSync(join(top, folder), { recursive: true })
        writeFileSync(join(top, "outside/secret/key"), "")
        symlinkSync("../outside/secret", join(top, "work/link"))
        symlinkSync("../link/key", join(top, "work/src/twice"))
        symlinkSync("../../outside/not-there", join(top, "work/src/dangling"))
        symlinkSync("loop", join(top, "work/loop"))
        symlinkSync(join(top, "work"), join(top, "alias"))
        symlinkSync("/", join(top, "work/slash"))
        return top
      }),
      (top) => use(top).pipe(Effect.provide(NodeFileSystem.layer)),
      (top) => Effect.sync(() => rmSync(top, { recursive: true }))
    )

  it.effect("are followed, in every part of a path, also to what is not there yet", () =>
    withFiles((top) =>
      Effect.gen(function*() {
        const policy = Policy.make({
          root: `${top}/work`,
          rules: [Policy.allow("file-write", "**"), Policy.deny("file-write", `${top}/outside/secret/**`)]
        })
        const lines: ReadonlyArray<Line> = [
          ["src/new", "allow"],
          ["src/deep/a/b/c", "allow"],
          ["link", "deny"],
          ["link/key", "deny"],
          ["link/new", "deny"],
          ["src/twice", "deny"],
          ["src/dangling", "ask"],
          ["link/../secret/key", "deny"],
          ["link/../else", "ask"],
          ["src/deep/../../link/key", "deny"],
          ["loop", "deny"],
          [`slash${top}/outside/secret/key`, "deny"],
          [`${top}/alias/link/key`, "deny"],
          [`${top}/alias/src/new`, "ask"]
        ]
        for (const [path, verdict] of lines) {
          assert.strictEqual(yield* verdictOf(policy, Subject.fileWrite(path)), verdict, path)
        }
      })
    ))

  it.effect("are followed in the patterns too, and in the root", () =>
    withFiles((top) =>
      Effect.gen(function*() {
        const policy = Policy.make({
          root: `${top}/alias`,
          rules: [
            Policy.allow("file-read", "src/**"),
            Policy.deny("file-read", "link/**"),
            Policy.allow("file-read", "**")
          ]
        })
        const lines: ReadonlyArray<Line> = [
          ["src/deep", "allow"],
          [`${top}/work/README`, "allow"],
          [`${top}/outside/secret/key`, "deny"],
          ["link/key", "deny"]
        ]
        for (const [path, verdict] of lines) {
          const { subjects, verdict: got } = yield* explain(policy, Subject.fileRead(path))
          assert.strictEqual(got, verdict, JSON.stringify([path, subjects]))
        }
      })
    ))

  it.effect("are not seen where there is no file system", () =>
    Effect.gen(function*() {
      const policy = Policy.make({ root: "/work", rules: [Policy.allow("file-read", "**")] })
      assert.deepStrictEqual((yield* explain(policy, Subject.fileRead("link/../a"))).subjects[0]?.judgedAs, ["/work/a"])
    }))

  it.effect("that cannot be looked at cannot be judged", () =>
    Effect.gen(function*() {
      const policy = Policy.make({ root: "/work", rules: [Policy.allow("file-read", "**")] })
      const closed = FileSystem.layerNoop({
        readLink: (path) =>
          Effect.fail(
            PlatformError.systemError({
              _tag: "PermissionDenied",
              module: "FileSystem",
              method: "readLink",
              pathOrDescriptor: path
            })
          )
      })
      const { subjects, verdict } = yield* Effect.provide(explain(policy, Subject.fileRead("a")), closed)
      assert.strictEqual(verdict, "deny")
      assert.strictEqual(subjects[0]?.problem, "where its links lead cannot be seen")
    }))
})

describe("a policy is refused", () => {
  const patterns: ReadonlyArray<readonly [Subject.Kind, string | ReadonlyArray<string>, string]> = [
    ["file-read", "", "is empty"],
    ["file-read", "secret/", "ends with /"],
    ["file-read", "a/../b", "holds a .. segment"],
    ["file-read", "a/[b", "has a [ that is not closed"],
    ["file-read", "a/[[:alpha:]", "has a [ that is not closed"],
    ["file-read", "a/[[:letters:]]", "has a [ that is not closed"],
    ["file-read", "a/[z-a]", "has a range in [ ] that goes backwards"],
    ["file-read", "a/{b,c", "has a { that is not closed"],
    ["file-read", "a/b,c}", "has a } that opens nowhere"],
    ["file-read", "a/{b}", "has braces with nothing to choose from"],
    ["file-read", "{a,/b}", "has a root inside braces"],
    ["file-read", "{1,2}".repeat(20), "has too many alternatives"],
    ["file-read", "src/**.ts", "has a ** that does not stand alone"],
    ["file-read", "a\\", "ends with a backslash"],
    ["file-read", "~/x", "begins with ~"],
    ["file-read", ["a", "b"], "is a list"],
    ["network", "", "is empty"],
    ["network", "https://example.com", "is no host"],
    ["network", "ex*mple.com", "is no host"],
    ["network", "*.10.0.0.1", "is an address"],
    ["network", "10.0.0.0/33", "is no range"],
    ["network", "user@example.com", "is no host"],
    ["command", "", "is empty"],
    ["command", [], "is empty"],
    ["command", "git; ls", "is more than one command"],
    ["command", "git *", "has a wildcard"],
    ["command", "git $X", "has a wildcard or a variable"],
    ["command", "$(ls)", "is no command"],
    ["command", "A=1", "names no program"],
    ["command", ["git", ""], "has a word that is empty"],
    ["calendar", "", "is empty"]
  ]
  for (const [kind, pattern, problem] of patterns) {
    it(`for the ${kind} pattern ${JSON.stringify(pattern).slice(0, 60)}: ${problem}`, () => {
      const made = Result.try(() => Policy.make({ root: "/work", rules: [Policy.deny(kind, pattern)] }))
      const message = Result.isFailure(made) ? String(made.failure) : "it was taken"
      assert.include(message, `Error: Policy: rule 1 has a pattern ${JSON.stringify(pattern)} that ${problem}`)
    })
  }

  it("for everything that is wrong with it at once", () => {
    const rules = [
      Policy.allow(["file-read", "network"], "x"),
      Policy.allow([], "x"),
      Policy.allow("file-read", "ok"),
      Policy.allow("file-read", "")
    ]
    assert.throws(
      () => Policy.make({ root: "/work", rules }),
      'Policy: rule 1 has kinds whose patterns are not of one sort; write a rule for each; rule 2 names no kind; rule 4 has a pattern "" that is empty'
    )
    const options: object = { rules: [{ deny: "x" }], otherwise: "maybe", root: "work", rule: [] }
    assert.throws(
      () => Policy.make(options as Parameters<typeof Policy.make>[0]),
      'Policy: unknown option "rule"; known: rules, otherwise, root; root must be an absolute path, got "work"; ' +
        'otherwise must be allow, ask or deny, got "maybe"; rule 1 is none: got an object with deny'
    )
  })
})

describe("for every path, command and set of rules", () => {
  const runs = 200
  const piece = Schema.Literals([
    "secret",
    "SECRET",
    "key",
    ".",
    "..",
    "",
    "a b",
    "caf\u00e9",
    "cafe\u0301",
    "[x]",
    "*"
  ])
  const pieces = Arbitrary.array(Arbitrary.schema(piece), { minLength: 1, maxLength: 6 })
  const check = <A, E>(arbitrary: Arbitrary.Arbitrary<A>, property: (value: A) => Effect.Effect<boolean, E>) =>
    Effect.gen(function*() {
      const result = yield* Arbitrary.checkEffect(arbitrary, property, { runs, seed: 7 })
      assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
    })
  const judgedAs = (policy: Policy.Policy, subject: Subject.Subject) =>
    Effect.map(explain(policy, subject), ({ subjects }) => subjects[0]?.judgedAs[0])
  const strictness = { allow: 0, ask: 1, deny: 2 }

  it.effect("what a path is taken to mean is taken to mean itself", () =>
    check(pieces, (pieces) =>
      Effect.gen(function*() {
        const policy = Policy.make({ root: "/work", rules: [] })
        const once = yield* judgedAs(policy, Subject.fileRead(pieces.join("/") || "."))
        const twice = yield* judgedAs(policy, Subject.fileRead(once ?? ""))
        return once !== undefined && once === twice
      })))

  it.effect("a denied path is denied in every spelling", () =>
    check(
      Arbitrary.all({
        into: Arbitrary.array(Arbitrary.schema(Schema.Literals(["x/../", "./", "/", "../work/", "y/z/../../"])), {
          maxLength: 5
        }),
        isAbsolute: Arbitrary.schema(Schema.Boolean),
        isUpper: Arbitrary.schema(Schema.Boolean),
        isDecomposed: Arbitrary.schema(Schema.Boolean),
        ends: Arbitrary.schema(Schema.Literals(["", "/", "/.", "/b", "//b/..", "/.hidden"]))
      }),
      ({ ends, into, isAbsolute, isDecomposed, isUpper }) =>
        Effect.gen(function*() {
          const policy = Policy.make({
            root: "/work",
            rules: [Policy.allow("file-read", "/**"), Policy.deny("file-read", "caf\u00e9/**")]
          })
          const front = isAbsolute ? "/work/" : "./"
          const name = isUpper ? "CAF\u00c9" : "caf\u00e9"
          const path = `${front}${into.join("")}${isDecomposed ? name.normalize("NFD") : name}${ends}`
          return (yield* verdictOf(policy, Subject.fileRead(path))) === "deny"
        })
    ))

  const kinds = Schema.Literals(["file-read", "network", "command", "calendar"])
  const values = Schema.Literals(["*", "a", "b", "a.b", "a b", "A"])
  const aRule = Arbitrary.schema(
    Schema.Struct({ verdict: Policy.Verdict, kind: kinds, pattern: Schema.Literals(["a", "b", "a.b", "A"]) })
  )
  it.effect("another rule that denies never allows more", () =>
    check(
      Arbitrary.all({
        rules: Arbitrary.array(aRule, { maxLength: 5 }),
        more: aRule,
        otherwise: Arbitrary.schema(Policy.Verdict),
        kind: Arbitrary.schema(kinds),
        value: Arbitrary.schema(values)
      }),
      ({ kind, more, otherwise, rules, value }) =>
        Effect.gen(function*() {
          const judge = (rules: ReadonlyArray<Policy.Rule>) =>
            verdictOf(Policy.make({ root: "/", rules, otherwise }), Subject.make(kind, value))
          const before = strictness[yield* judge(rules)]
          const after = strictness[yield* judge([...rules, { ...more, verdict: "deny" }])]
          return after >= before
        })
    ))

  it.effect("a program and its arguments are one command of exactly those words", () =>
    check(
      Arbitrary.array(
        Arbitrary.filter(Arbitrary.schema(Schema.String), (word) => word !== "" && !word.includes("\0")),
        { minLength: 1, maxLength: 4 }
      ),
      (argv) =>
        Effect.gen(function*() {
          const policy = Policy.make({ rules: [Policy.allow("command", ["run", ...argv])] })
          const { subjects, verdict } = yield* explain(policy, Subject.command(["run", ...argv]))
          const isReadable = !/(?![\t\n])\p{Cc}/u.test(argv.join("")) && argv.every((word) => word.isWellFormed())
          return isReadable ? verdict === "allow" && subjects[0]?.judgedAs.length === 1 : verdict === "deny"
        })
    ))
})
