/** Entries of a session's lists that hold a secret, as a journal keeps them. */
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Redaction from "../../src/core/Redaction.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import * as SessionRule from "../../src/permission/SessionRule.js"
import { commandField } from "../kit/Commands.js"
import { ses } from "../kit/gate.js"
import * as Runs from "../kit/Runs.js"

const secret = "hunter2-hunter2"
const redactor = Redaction.make([secret])
const plain = { readonly: false, autoApproved: false }
const shell = (command: string) => PermissionRule.subject({ tool: "shell", params: { command }, commandField })
const everything = PermissionFile.policy({ defaultPolicy: "allow" })

/** What a journal keeps of the answer `always` or `never` to a command, restored. */
const resumed = (verb: "allow" | "deny", command: string) => {
  const state = new PermissionState()
  state[verb](PermissionRule.rememberKey(shell(command)))
  const kept = { ...state.snapshot(), ...SessionRule.kept(state.snapshot(), redactor) }
  assert.notInclude(JSON.stringify(kept), secret)
  assert.isFalse(Redaction.isMasked(kept))
  const next = new PermissionState()
  next.restore(kept)
  return next
}
const decided = (state: PermissionState, command: string, policy = everything) =>
  state.evaluate(policy, shell(command), plain, ses("root")).decision

/** Commands with the secret somewhere in them, between all that means something to a shell or to a pattern. */
const commands = FastCheck.tuple(
  FastCheck.constantFrom("curl", "./deploy", "git push", "A=1 node", "/bin/x"),
  FastCheck.array(
    FastCheck.constantFrom(
      ...[
        "-H",
        "x",
        "a b",
        "'q r'",
        '"d"',
        "\\\\ ",
        "*",
        "?",
        "[ab]",
        "{a,b}",
        "$(echo x)",
        "~/f",
        "é",
        "#c",
        "&&",
        "|"
      ],
      ...["> out", "(in", "$", "=", "!", "\n", "\t"]
    ),
    { maxLength: 5 }
  ),
  FastCheck.constantFrom(
    (s: string) => s,
    (s: string) => `'X: ${s}'`,
    (s: string) => `"k=${s}"`,
    (s: string) => `a${s}b`
  ),
  FastCheck.array(FastCheck.constantFrom("x", "*", "[ab]", "'", '"', "; ls", ")", "&& rm x"), { maxLength: 3 })
).map(([program, before, written, after]) => [program, ...before, written(secret), ...after].join(" "))

describe("an entry with a secret in it", () => {
  it("allows nothing in another process", () => {
    FastCheck.assert(
      FastCheck.property(commands, (command) => {
        const state = resumed("allow", command)
        assert.deepStrictEqual(state.entries, [])
      })
    )
  })

  it("denies in another process what it denied", () => {
    FastCheck.assert(
      FastCheck.property(commands, (command) => {
        assert.strictEqual(decided(resumed("deny", command), command), "deny", command)
      }),
      { numRuns: Runs.of(500) }
    )
    assert.strictEqual(decided(resumed("deny", `curl -H 'X: ${secret}' u`), "curl u"), "ask", "no more than needed")
  })

  it("denies as a pattern of a person, too", () => {
    const { deny } = SessionRule.kept({ allow: [], deny: [`run_command(curl *${secret}*)`, "rm *"] }, redactor)
    assert.deepStrictEqual(deny, ["run_command(curl ***)", "rm *"])
  })

  it("is not taken with a mask, which would be a class of letters", () => {
    for (const verb of ["allow", "deny"] as const) {
      const { message } = Either.getOrThrow(Either.flip(SessionRule.of(verb, `curl ${Redaction.mask} u`)))
      assert.strictEqual(
        message,
        "[REDACTED] masks a secret, and a pattern would read it as a class of letters. Write * instead."
      )
    }
  })
})
