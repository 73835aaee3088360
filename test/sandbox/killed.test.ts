import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Onslaught from "../kit/Onslaught.js"
import * as ShellLines from "../kit/ShellLines.js"

const place = realpathSync(mkdtempSync(join(tmpdir(), "assent-killed-")))
afterAll(() => {
  execFileSync("chmod", ["-R", "u+rwx", place])
  rmSync(place, { recursive: true, force: true })
})

describe.skipIf(!Confined.isWanted)("confined commands that are killed at any moment", () => {
  it("leave nothing that runs, is mounted or lies about", { timeout: 120_000 }, async () => {
    const { ends, left } = await Onslaught.run({ calls: 40, place, random: ShellLines.randomOf(7) })
    assert.deepStrictEqual(left, [])
    assert.strictEqual(
      Object.values(ends).reduce((all, count) => all + count, 0),
      40
    )
  })
})
