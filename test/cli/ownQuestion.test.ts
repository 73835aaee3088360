import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

describe.concurrent("what git would run", () => {
  const calls = [
    { name: "write_file", params: { path: ".git/hooks/pre-commit", content: "evil" } },
    { name: "write_file", params: { path: "notes/config", content: "evil" } },
    { name: "run_command", params: { command: "echo evil > .git/hooks/pre-commit" } },
    { name: "run_command", params: { command: "cp evil .git/hooks/pre-commit" } }
  ]
  const setting = Effect.gen(function* () {
    const at = yield* Program.place
    yield* at.write("config/permissions.json", {
      defaultPolicy: "allow",
      whitelist: { tools: ["write_file", "run_command"] }
    })
    yield* at.makeDirectory("workspace/.git/hooks")
    yield* at.link(".git/hooks", "workspace/notes")
    yield* at.write("workspace/evil", "evil")
    return at
  })

  for (const [index, call] of calls.entries()) {
    it.scopedLive(`is asked about though everything is allowed: ${call.name} ${index + 1}`, () =>
      Effect.gen(function* () {
        const at = yield* setting
        const model = yield* at.script({ tools: [call] }, { text: "Done." })
        const { code, stderr } = yield* at.call(["run", "--model", model, "x"])
        assert.strictEqual(code, 3, stderr)
        assert.deepStrictEqual(yield* at.list("workspace/.git/hooks"), [])
        const yes = yield* at.call(["run", "--yolo", "--model", model, "x"])
        assert.strictEqual(yes.code, 0, yes.stderr)
        assert.strictEqual((yield* at.list("workspace/.git/hooks")).length, 1)
      })
    )
  }
})
