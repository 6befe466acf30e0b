// The example of a payment that one process asks for and another one approves: it is paid once, whoever approves it again.
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const folder = mkdtempSync(join(tmpdir(), "toolfold-approval-"))
afterAll(() => rmSync(folder, { recursive: true }))

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const run = (...args: ReadonlyArray<string>) =>
  new Promise<Ran>((done) => {
    const node = ["--disable-warning=ExperimentalWarning", "--conditions=@toolfold/source", "examples/approval.ts"]
    const child = spawn(process.execPath, [...node, ...args])
    let [out, err] = ["", ""]
    child.stdout.on("data", (chunk) => {
      out += chunk
    })
    child.stderr.on("data", (chunk) => {
      err += chunk
    })
    child.on("close", (code) => done({ code, out, err }))
  })

const asked = `asked: pay({"payee":"Ada","amount":90}) waits for approval; nothing is paid\n`
const approving = (amount: number) => `approving: pay({"payee":"Ada","amount":90}) with the amount ${amount}\n`
const approved = (amount: number) =>
  `${approving(amount)}resumed: "paid ${amount} to Ada"; the model says: Ada's invoice is paid.
remembered: looked up Ada, paid ${amount}
ledger: Ada ${amount}
`
const nothingWaits: Ran = { code: 1, out: "", err: "error: no payment waits; each is approved once\n" }

describe("a payment that waits for approval", () => {
  it(
    "APR-05: is asked for by one process, paid once by a second with another amount, and refused to a third",
    async () => {
      const file = join(folder, "once.db")
      assert.deepStrictEqual(await run("ask", file), { code: 0, out: asked, err: "" })
      assert.deepStrictEqual(await run("approve", file, "80"), { code: 0, out: approved(80), err: "" })
      assert.deepStrictEqual(await run("approve", file, "70"), nothingWaits)
    },
    60_000
  )

  it("is paid once where processes approve it beside each other", async () => {
    const file = join(folder, "race.db")
    await run("ask", file)
    const ran = await Promise.all([1, 2, 3].map((amount) => run("approve", file, String(amount))))
    const winners = ran.flatMap((one, at) => one.code === 0 ? [at + 1] : [])
    assert.strictEqual(winners.length, 1)
    for (const [at, one] of ran.entries()) {
      // Whoever came while it waited is told by the store; whoever came later sees nothing that waits.
      const wasLate = {
        code: 1,
        out: approving(at + 1),
        err: "error: the run cannot be resumed: it was resumed before\n"
      }
      const expected = one.code === 0
        ? { code: 0, out: approved(at + 1), err: "" }
        : one.out === ""
        ? nothingWaits
        : wasLate
      assert.deepStrictEqual(one, expected)
    }
  }, 60_000)

  it("is shown as two processes where nothing else is asked", async () => {
    assert.deepStrictEqual(await run(), { code: 0, out: `${asked}… that process has ended\n${approved(80)}`, err: "" })
  }, 60_000)

  it("is not touched by what cannot be meant", async () => {
    const file = join(folder, "mistakes.db")
    await run("ask", file)
    const usage = "error: Usage: npm run example:approval -- ask FILE | approve FILE AMOUNT\n"
    for (const args of [["approve", file], ["approve", file, "8O"], ["approve", file, "-1"], ["ask"], ["pay", file]]) {
      assert.deepStrictEqual(await run(...args), { code: 1, out: "", err: usage })
    }
    assert.deepStrictEqual(
      await run("ask", join(folder, "no", "such.db")),
      { code: 1, out: "", err: "error: SQLite: cannot open\n" }
    )
    assert.deepStrictEqual(await run("approve", file, "80"), { code: 0, out: approved(80), err: "" })
  }, 60_000)
})
