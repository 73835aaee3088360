import { assert, describe, it } from "@effect/vitest"
import * as ShellLines from "../kit/ShellLines.js"

describe("real shells", () => {
  it("run nothing that the rules did not let run", async () => {
    const random = ShellLines.randomOf(20_260_101)
    const machine = ShellLines.machine()
    try {
      assert.isNotEmpty(machine.shells)
      const all = { allowed: 0, ran: 0 }
      for (let batch = 0; batch < 10; batch++) {
        const lines = Array.from({ length: 1000 }, () => ShellLines.line(random))
        const { allowed, ran, unasked } = await machine.run(lines)
        assert.strictEqual(JSON.stringify(unasked, null, 1), "[]")
        all.allowed += allowed
        all.ran += ran
      }
      // What is asked about proves nothing.
      assert.isAbove(all.allowed, 1_500)
      assert.isAbove(all.ran, 3_000)
    } finally {
      machine.close()
    }
  }, 120_000)

  it("show what a reading would miss that takes a line for its first program", async () => {
    const machine = ShellLines.machine()
    try {
      const meant = (program: string, ...words: ReadonlyArray<string>) =>
        ShellLines.isMeant({ program, cwd: "", words }, { text: program, cwd: undefined })
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
      const inSub = (program: string, text: string, cwd?: string, ...words: ReadonlyArray<string>) =>
        ShellLines.isMeant({ program, cwd: "sub", words }, { text, cwd })
      assert.isTrue(inSub("ls", "cd sub && ls"))
      assert.isTrue(inSub("make", "cd sub; make build", undefined, "build"))
      assert.isFalse(inSub("make", "cd sub; make all", undefined, "all"))
      assert.isFalse(inSub("rm", "cd sub && rm a", undefined, "a"))
      assert.isFalse(inSub("ls", "cd sub && ls", "sub"))
      assert.isFalse(inSub("ls", "pushd sub; ls"))
      assert.isFalse(inSub("ls", "env -C sub ls"))
    } finally {
      machine.close()
    }
  })
})
