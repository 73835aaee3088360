/** Arguments that somebody edited are ruled as a call of their own, whoever edited them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as Interactors from "../../src/people/Interactors.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/gate.js"

const policy = {
  guards: { deny: { patterns: ["sudo *"] } },
  blacklist: { patterns: ["rm *"] },
  whitelist: { patterns: ["git status"] },
  approvals: [{ patterns: ["deploy *"], quorum: 2 }]
} as const

/** Who answers: first with the edit, and with yes to whatever is asked then. */
const doors: Readonly<Record<string, (command: unknown) => Effect.Effect<Interactor.Service>>> = {
  ada: (command) => Effect.map(TestInteractor.make({ id: "ada", script: said(command) }), (one) => one.interactor),
  "ada, grace": (command) =>
    Effect.map(TestInteractor.people({ ada: said(command), grace: said(command) }), ({ ada, grace }) =>
      Interactors.quorum({ of: [ada.interactor, grace.interactor], need: 2 })
    )
}
const said = (command: unknown) =>
  [TestInteractor.nonsense({ decision: "edit", editedArguments: { command } }), "y"] as const

describe("a command edited to another one", () => {
  const table = [
    { command: "git status", method: "whitelist", granted: true },
    { command: "make all", method: "user_approved", granted: true },
    { command: "ls > .git/hooks/x", method: "user_approved", granted: true },
    { command: "sudo ls", method: "guard", granted: false },
    { command: "env -i sudo ls", method: "guard", granted: false },
    { command: "rm x", method: "blacklist", granted: false },
    { command: "git status; rm x", method: "blacklist", granted: false }
  ] as const
  for (const [by, door] of Object.entries(doors)) {
    it.effect.each(table)(`is ruled anew, and the record names ${by}: $command`, ({ command, granted, method }) =>
      Effect.gen(function* () {
        const kit = yield* Kit.make({ policy, interactor: yield* door(command) })
        const verdict = yield* kit.check("shell", { command: "make" })
        assert.deepStrictEqual(verdict._tag === "Allowed" ? verdict.params : "denied", granted ? { command } : "denied")
        assert.lengthOf(kit.resolved(), 1)
        assert.deepInclude(kit.resolved()[0], { by, edited: true, granted, method })
      })
    )
  }

  it.effect.each(["deploy x", "git status; deploy x", "env deploy x"])(
    "that several have to allow is not allowed by the one who wrote it: %s",
    (command) =>
      Effect.gen(function* () {
        for (const [by, door] of Object.entries(doors)) {
          const kit = yield* Kit.make({ policy, interactor: yield* door(command) })
          const verdict = yield* kit.check("shell", { command: "make" })
          assert.strictEqual(verdict._tag, by === "ada" ? "Denied" : "Allowed")
          assert.include(verdict._tag === "Denied" ? verdict.text : "", by === "ada" ? "needs 2 people" : "")
        }
      })
  )

  it.effect("that is none leaves the call as it was, which is asked again", () =>
    Effect.gen(function* () {
      for (const [by, door] of Object.entries(doors)) {
        const kit = yield* Kit.make({ policy, interactor: yield* door(5) })
        const verdict = yield* kit.check("shell", { command: "make" })
        assert.deepStrictEqual(verdict._tag === "Allowed" && verdict.params, { command: "make" })
        assert.deepInclude(kit.resolved()[0], { by, granted: true })
      }
    })
  )
})
