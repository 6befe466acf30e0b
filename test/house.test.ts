// Do the checks of the house see what they are there for?
import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Floors from "../scripts/floors.ts"

describe("the floors", () => {
  const problems = (files: { readonly [file: string]: string }) => {
    const root = mkdtempSync(join(tmpdir(), "floors-"))
    mkdirSync(join(root, "internal"))
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text)
    const found = Floors.check(root)
    rmSync(root, { recursive: true })
    return found
  }

  it("of this house hold", () => {
    assert.deepStrictEqual(Floors.check("src"), [])
  })

  it("refuse an import that goes up or stays, types too", () => {
    assert.deepStrictEqual(
      problems({
        "Context.ts": 'import type * as Tool from "./Tool.ts"',
        "Tool.ts": 'import {\n  Turn\n} from "./Turn.ts"\nimport * as Context from "./Context.ts"',
        "Turn.ts": 'export * as X from "./internal/gone.ts"'
      }),
      [
        "src/Context.ts (floor 1) must not import src/Tool.ts (floor 2)",
        "src/Tool.ts (floor 2) must not import src/Turn.ts (floor 2)",
        "src/Turn.ts (floor 2) must not import src/internal/gone.ts (floor none)"
      ]
    )
  })

  it("refuse a file without a floor, the barrel of effect, a dependency, and effect/ai where it must not be", () => {
    assert.deepStrictEqual(
      problems({
        "New.ts": "",
        "Stop.ts":
          'import { Effect } from "effect"\nimport * as z from "zod"\nimport type * as Prompt from "effect/ai/Prompt"'
      }),
      [
        "src/New.ts has no floor: give it one in scripts/floors.ts",
        "src/Stop.ts imports the barrel of effect: import the module",
        "src/Stop.ts imports zod: effect is the only dependency",
        "src/Stop.ts must not know effect/ai"
      ]
    )
  })

  it("pass over imports in examples", () => {
    assert.deepStrictEqual(
      problems({ "Stop.ts": '/**\n * import * as Stop from "toolfold/Stop"\n */\nexport const a = 1' }),
      []
    )
  })
})
