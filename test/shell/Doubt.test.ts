import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/gate.js"

/** What they are told to run is not known before. */
const told = [
  'eval "$x"',
  "env $x y",
  "sudo -u a $x",
  'bash -c "$x"',
  "xargs $x",
  "find . -exec $x {} +",
  "nohup time $x"
]

/** They cannot be taken apart, or what they run is not known before. */
const dark = ["if true; then rm x; fi", "$X -rf x", "r$()m -rf x", "$'rm' x", "cat <<E\nE", "r\\\nm x", ...told]

const rule: PolicySource = { guards: { deny: { patterns: ["rm -rf*"] } } }
const listed: PolicySource = { blacklist: { arguments: ["--force"] } }
const sanitized: PolicySource = { guards: { sanitize: { metacharacters: true } } }

/** What came of the call, and whether the person was asked. */
const settled = (
  command: string,
  policy: PolicySource,
  change: (kit: Effect.Effect.Success<ReturnType<typeof Kit.make>>) => void,
  interactor?: typeof HaltChannel.yolo
) =>
  Effect.gen(function* () {
    const kit = yield* Kit.make({ policy, person: [TestInteractor.cancel], interactor })
    change(kit)
    yield* kit.check("shell", { command })
    const [resolved] = kit.resolved()
    return `${resolved?.granted === true ? "allowed" : "denied"} (${resolved?.method})`
  })

const nothing = () => undefined

describe("text that cannot be taken apart", () => {
  for (const command of dark) {
    it.effect(`is asked about where a rule denies commands, whatever else allows it: ${JSON.stringify(command)}`, () =>
      Effect.gen(function* () {
        for (const policy of [rule, listed]) {
          const open: PolicySource = { ...policy, defaultPolicy: "allow" }
          // The person cancels: asked, and not allowed.
          assert.strictEqual(yield* settled(command, open, nothing), "denied (cancelled)")
          for (const scope of ["turn", "idle", "all"] as const) {
            const suspend = settled(command, policy, ({ state }) => state.suspend(scope, Kit.ses("root")))
            assert.strictEqual(yield* suspend, "denied (cancelled)")
          }
          const byName: PolicySource = { ...policy, whitelist: { tools: ["shell"] } }
          assert.strictEqual(yield* settled(command, byName, nothing), "denied (cancelled)")
        }
      })
    )

    it.effect(`is denied by those rules where nobody looks at it: ${JSON.stringify(command)}`, () =>
      Effect.gen(function* () {
        for (const policy of [rule, listed]) {
          assert.match(yield* settled(command, policy, nothing, HaltChannel.yolo), /^denied/)
          const open: PolicySource = { ...policy, defaultPolicy: "allow" }
          assert.match(yield* settled(command, open, nothing, HaltChannel.yolo), /^denied/)
        }
        assert.strictEqual(yield* settled(command, {}, nothing, HaltChannel.yolo), "allowed (yolo)")
      })
    )

    it.effect(`is as any other text where no rule denies commands: ${JSON.stringify(command)}`, () =>
      Effect.gen(function* () {
        for (const policy of [{}, { blacklist: { tools: ["write"], patterns: ["write(path=*)"] } }]) {
          assert.strictEqual(
            yield* settled(command, { ...policy, defaultPolicy: "allow" }, nothing),
            "allowed (default)"
          )
          assert.strictEqual(yield* settled(command, { ...policy, defaultPolicy: "deny" }, nothing), "denied (default)")
          assert.strictEqual(yield* settled(command, policy, nothing), "denied (cancelled)")
          const all = settled(command, policy, ({ state }) => state.suspend("all", Kit.ses("root")))
          assert.strictEqual(yield* all, "allowed (allow_all)")
        }
      })
    )

    it.effect(`is covered by the same text: ${JSON.stringify(command)}`, () =>
      Effect.gen(function* () {
        const same = settled(command, rule, ({ state }) => state.allow(`$ ${command}`))
        assert.strictEqual(yield* same, "allowed (session_whitelist)")
        const other = settled(`${command} x`, rule, ({ state }) => state.allow(`$ ${command}`))
        assert.strictEqual(yield* other, "denied (cancelled)")
      })
    )
  }

  it.effect("names the reason where nobody is there", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.make({
        policy: { ...rule, defaultPolicy: "allow" },
        person: [TestInteractor.fail("nobody")]
      })
      const verdict = yield* kit.check("shell", { command: "$X y" })
      assert.deepInclude(verdict, { _tag: "Denied" })
      assert.include(JSON.stringify(verdict), "Which program $X is cannot be told before it runs")
    })
  )

  it.effect("is told apart from a word that no rule could mean", () =>
    Effect.gen(function* () {
      const open: PolicySource = { guards: { deny: { patterns: ["git push*"] } }, defaultPolicy: "allow" }
      assert.strictEqual(yield* settled("git $X", open, nothing), "denied (cancelled)")
      assert.strictEqual(yield* settled("git log $X", open, nothing), "allowed (default)")
      assert.strictEqual(
        yield* settled("if x; then y; fi", { ...sanitized, defaultPolicy: "allow" }, nothing),
        "denied (cancelled)"
      )
    })
  )
})

describe("a command that is too long", () => {
  it.effect("is an error in words, before anybody is asked, under every suspension", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.make({})
      kit.state.suspend("all", Kit.ses("root"))
      const verdict = yield* kit.check("shell", { command: `echo ${"x".repeat(100_000)}` })
      assert.deepInclude(verdict, { _tag: "Denied", outcome: "invalid" })
      assert.include(JSON.stringify(verdict), "100005 bytes long")
      assert.strictEqual(kit.resolved()[0]?.method, "pre_validation")
    })
  )
})

describe("a program that runs others", () => {
  it.effect("is no doubt where what it runs is written out", () =>
    Effect.gen(function* () {
      for (const command of ["timeout 5 npm test $x", "xargs cat $x", "find $d -exec cat {} +", "bash -c 'echo $x'"]) {
        assert.strictEqual(
          yield* settled(command, { ...rule, defaultPolicy: "allow" }, nothing),
          "allowed (default)",
          command
        )
      }
    })
  )
})
