/** Patterns that name a tool whose calls are commands: they deny and reserve what they would without its name. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/gate.js"

const patterns = [
  "shell(rm *)",
  "shell(command=rm*)",
  "shell(command=rm *)",
  "shell( rm *)",
  "shell(rm *",
  "shell(command=rm *, cwd=src/*)",
  "shell(background=true, command=rm *)",
  "sh*(command=rm *)"
]

const commands = ["rm x", "git status; rm x", "env FOO=1 rm -rf x", "echo $(rm x)", "ls && ( rm x )"]

const lists: Readonly<Record<string, (pattern: string) => PolicySource>> = {
  "in a blacklist": (pattern) => ({ defaultPolicy: "allow", blacklist: { patterns: [pattern] } }),
  "in the guards": (pattern) => ({ defaultPolicy: "allow", guards: { deny: { patterns: [pattern] } } }),
  "in approvals": (pattern) => ({ defaultPolicy: "allow", approvals: [{ patterns: [pattern], quorum: 2 }] })
}

describe("a pattern over the calls of a tool that runs commands", () => {
  for (const [where, policyOf] of Object.entries(lists)) {
    it.effect.each(patterns)(`is one over its commands, ${where}: %s`, (pattern) =>
      Effect.gen(function* () {
        const { interactor } = yield* TestInteractor.make({ id: "ada", script: ["y"] })
        const kit = yield* Kit.make({ policy: policyOf(pattern), interactor })
        for (const command of commands) {
          assert.strictEqual((yield* kit.check("shell", { command }))._tag, "Denied", command)
        }
        for (const command of ["ls x", "echo rmdir"]) {
          assert.strictEqual((yield* kit.check("shell", { command }))._tag, "Allowed", command)
        }
      })
    )
  }

  it.effect("is one over its commands in a session's list", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.make({ policy: { defaultPolicy: "allow" } })
      kit.state.deny("shell(rm *)")
      assert.strictEqual((yield* kit.check("shell", { command: "git status; rm x" }))._tag, "Denied")
      assert.strictEqual((yield* kit.check("shell", { command: "ls" }))._tag, "Allowed")
    })
  )

  it.effect("is about that tool alone, and allows nothing", () =>
    Effect.gen(function* () {
      const other = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns: ["bash(rm *)"] } } })
      assert.strictEqual((yield* other.check("shell", { command: "rm x" }))._tag, "Allowed")
      const allowing = yield* Kit.make({
        policy: { defaultPolicy: "deny", whitelist: { patterns: ["shell(git status)"] } }
      })
      assert.strictEqual((yield* allowing.check("shell", { command: "git status" }))._tag, "Denied")
    })
  )

  it.effect("costs no more than it is long, however it is written", () =>
    Effect.gen(function* () {
      const none = ["a".repeat(100_000), "*-".repeat(50_000), "shell(".repeat(15_000)]
      const quiet = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns: none } } })
      assert.strictEqual((yield* quiet.check("shell", { command: "ls" }))._tag, "Allowed")
      // Nobody can say what that means.
      const patterns = [`shell(${"a=,".repeat(30_000)})`]
      const kit = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns } } })
      assert.strictEqual((yield* kit.check("shell", { command: "ls" }))._tag, "Denied")
    })
  )
})
