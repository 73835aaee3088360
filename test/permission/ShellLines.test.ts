import { assert, describe, it } from "@effect/vitest"
import * as ShellLines from "../kit/ShellLines.js"

describe("real shells", () => {
  it("run nothing that the rules did not let run", async () => {
    const random = ShellLines.randomOf(20_260_101)
    const machine = ShellLines.machine()
    try {
      assert.isNotEmpty(machine.shells)
      const all = { allowed: 0, ran: 0 }
      for (let batch = 0; batch < 3; batch++) {
        const lines = Array.from({ length: 1000 }, () => ShellLines.line(random))
        const { allowed, ran, unasked } = await machine.run(lines)
        assert.strictEqual(JSON.stringify(unasked, null, 1), "[]")
        all.allowed += allowed
        all.ran += ran
      }
      // What is asked about proves nothing.
      assert.isAbove(all.allowed, 450)
      assert.isAbove(all.ran, 900)
    } finally {
      machine.close()
    }
  }, 120_000)

  it("show what a reading would miss that takes a line for its first program", async () => {
    const machine = ShellLines.machine()
    try {
      const meant = (program: string, ...words: ReadonlyArray<string>) =>
        ShellLines.isMeant({ program, cwd: "", words })
      assert.isTrue(meant("git", "log"))
      for (const ran of [
        ["rm", "a"],
        ["git", "push"],
        ["sort", "-ro", "o"],
        ["find", ".", "-delete"],
        ["workspace-ls"]
      ]) {
        const [program = "", ...words] = ran
        assert.isFalse(meant(program, ...words), program)
      }
      assert.isFalse(ShellLines.isMeant({ program: "ls", cwd: "sub", words: [] }))
    } finally {
      machine.close()
    }
  })
})
