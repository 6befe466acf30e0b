// Which promised behaviours have a test? Test titles begin with the number of the behaviour (SPEC-38) or of the case
// (ARG-06) that they pin; what docs/claims.md claims and no test shows is an error, and so is the reverse.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const id = /\b(?:SPEC-\d{1,3}|(?:ARG|SCH|RES|PRO|STR|LOOP|CON|RET|APR|MEM|MCP|TEL|USE)-\d{2})\b/g

/** What the tests show, from their titles. */
const shown = (): ReadonlySet<string> =>
  new Set(
    readdirSync("test", { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".test.ts") && !file.startsWith(".docs"))
      .flatMap((file) =>
        Array.from(
          readFileSync(join("test", file), "utf8").matchAll(
            /\b(?:it|describe|test)[\w.]*\(\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g
          ),
          ([, double, ticked]) => double ?? ticked ?? ""
        ).flatMap((title) => leading(title))
      )
  )

const leading = (title: string): ReadonlyArray<string> => {
  const head = /^((?:[A-Z]+-\d+[, ]*)+)/.exec(title)?.[1] ?? ""
  return head.match(id) ?? []
}

/** What is claimed. */
const claimed = (): ReadonlySet<string> =>
  new Set(
    readFileSync("docs/claims.md", "utf8").split("\n").filter((line) => line.startsWith("|")).join("\n").match(id) ?? []
  )

/** Claims without a test, and tests of what is not claimed. */
export const check = (): { readonly problems: ReadonlyArray<string>; readonly count: number } => {
  const tests = shown()
  const claims = claimed()
  return {
    problems: [
      ...[...claims].filter((claim) => !tests.has(claim)).map((claim) =>
        `${claim} is claimed in docs/claims.md and no test's title begins with it`
      ),
      ...[...tests].filter((test) => !claims.has(test)).map((test) =>
        `${test} has a test and is not claimed in docs/claims.md`
      )
    ],
    count: claims.size
  }
}
