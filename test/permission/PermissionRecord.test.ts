/** What the audit has of a decision, and what counts when the audit has nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import type { AuditEntry } from "../../src/audit/AuditRecord.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/gate.js"
import { settle } from "../kit/Recorder.js"

const unwritable = new AuditTrail.AuditUnwritable({ directory: "/audit", reason: "the disk is full" })
const full = () => Effect.fail(unwritable)

/** A trail in memory, which writes at once, or keeps what is noted beside a journal. */
const trail = (how: "record" | "note" = "record", failing?: () => Effect.Effect<never, AuditTrail.AuditUnwritable>) => {
  const entries: Array<AuditEntry> = []
  const audit: AuditTrail.Service = {
    record: (entry) => failing?.() ?? Effect.sync(() => void entries.push(entry)),
    release: () => Effect.void,
    ...(how === "note" && {
      note: (given: ReadonlyArray<AuditEntry>) => {
        if (failing !== undefined) return unwritable
        entries.push(...given)
        return undefined
      }
    })
  }
  return { audit, entries }
}

const command = (text: string) => ({ command: text })
const edit = TestInteractor.answer({ decision: "edit", editedArguments: command("make test") })
const odd = TestInteractor.nonsense({ decision: "edit", editedArguments: { command: 7 } })

/** The members that are there, and what they are; ids of requests as the place of the request. */
const shownOf = (entries: ReadonlyArray<AuditEntry>, asked: ReadonlyArray<string>) =>
  entries.map(({ args, by, leadsTo, method, newArgs, outcome, requestId, ...rest }) => ({
    outcome,
    method,
    by,
    args,
    newArgs,
    asked: requestId === undefined ? undefined : asked.indexOf(requestId),
    leadsTo: leadsTo === undefined ? undefined : asked.indexOf(leadsTo),
    when: ["askedAt", "answeredAt", "countedAt"].filter((name) => (rest as Record<string, unknown>)[name] !== undefined)
  }))

const nobody = { by: undefined, asked: undefined, newArgs: undefined, leadsTo: undefined }

describe("the audit of a call", () => {
  for (const how of ["record", "note"] as const) {
    const cases: ReadonlyArray<readonly [string, Partial<Kit.Options>, boolean, ReadonlyArray<object>]> = [
      [
        "that a rule allows",
        { policy: { whitelist: { tools: ["shell"] } } },
        true,
        [{ ...nobody, outcome: "granted", method: "whitelist", args: command("make"), when: ["answeredAt"] }]
      ],
      [
        "that a rule denies",
        { policy: { blacklist: { patterns: ["make*"] } } },
        false,
        [{ ...nobody, outcome: "denied", method: "blacklist", args: command("make"), when: ["answeredAt"] }]
      ],
      [
        "that a person allows",
        { person: ["y"] },
        true,
        [
          {
            ...nobody,
            outcome: "granted",
            method: "user_approved",
            by: "person",
            args: command("make"),
            asked: 0,
            when: ["askedAt", "answeredAt"]
          }
        ]
      ],
      [
        "that a person denies",
        { person: ["n"] },
        false,
        [
          {
            ...nobody,
            outcome: "denied",
            method: "user_denied",
            by: "person",
            args: command("make"),
            asked: 0,
            when: ["askedAt", "answeredAt"]
          }
        ]
      ],
      [
        "that is edited has the edit, where it led, and the decision about the other arguments",
        { person: [edit, "y"] },
        true,
        [
          {
            outcome: "edited",
            method: undefined,
            by: "person",
            args: command("make"),
            newArgs: command("make test"),
            asked: 0,
            leadsTo: 1,
            when: ["askedAt", "answeredAt"]
          },
          {
            ...nobody,
            outcome: "granted",
            method: "user_approved",
            by: "person",
            args: command("make test"),
            asked: 1,
            when: ["askedAt", "answeredAt"]
          }
        ]
      ],
      [
        "that is edited to one that a rule denies",
        { person: [edit], policy: { blacklist: { patterns: ["make test*"] } } },
        false,
        [
          {
            outcome: "edited",
            method: undefined,
            by: "person",
            args: command("make"),
            newArgs: command("make test"),
            asked: 0,
            leadsTo: undefined,
            when: ["askedAt", "answeredAt"]
          },
          {
            ...nobody,
            outcome: "denied",
            method: "blacklist",
            by: "person",
            args: command("make test"),
            when: ["answeredAt"]
          }
        ]
      ]
    ]
    for (const [what, options, runs, expected] of cases) {
      it.effect(`${what} (${how})`, () =>
        Effect.gen(function* () {
          const { audit, entries } = trail(how)
          const kit = yield* Kit.make({ ...options, audit })
          const verdict = yield* kit.check("shell", command("make"))
          assert.strictEqual(verdict._tag, runs ? "Allowed" : "Denied")
          const asked = (yield* kit.person.shown).map(({ requestId }) => String(requestId))
          assert.deepStrictEqual<unknown>(shownOf(entries, asked), expected)
          for (const entry of entries)
            assert.deepInclude(entry, {
              class: "permission",
              kind: "Approve",
              sessionId: Kit.ses("root"),
              rootSessionId: Kit.ses("root"),
              agent: "main",
              tool: "shell"
            })
          assert.deepStrictEqual(
            kit.resolved().map(({ edited, granted }) => [granted, edited]),
            [[runs, entries.length > 1 ? true : undefined]]
          )
        })
      )
    }

    it.effect(`that cannot be written grants nothing, and a denial stays one (${how})`, () =>
      Effect.gen(function* () {
        const { audit } = trail(how, full)
        const allowing = yield* Kit.make({ policy: { whitelist: { tools: ["shell"] } }, audit })
        const verdict = yield* allowing.check("shell", command("make"))
        assert(verdict._tag === "Denied")
        assert.strictEqual(verdict.text, unwritable.message)
        assert.deepInclude(allowing.resolved()[0], { granted: false, method: "check_failed" })
        const asking = yield* Kit.make({ person: ["y"], audit })
        yield* asking.check("shell", command("make"))
        assert.deepInclude(asking.resolved()[0], { granted: false, method: "check_failed", by: "person" })
        const denying = yield* Kit.make({ policy: { blacklist: { tools: ["shell"] } }, audit })
        const denied = yield* denying.check("shell", command("make"))
        assert.strictEqual(
          denied._tag === "Denied" ? denied.text : "",
          "Permission denied: blocked by blacklist: shell"
        )
        assert.deepInclude(denying.resolved()[0], { granted: false, method: "blacklist" })
      })
    )

    it.effect(`of a process that ends leaves the decision open for the next one (${how})`, () =>
      Effect.gen(function* () {
        const { audit, entries } = trail(how)
        const kit = yield* Kit.make({ person: ["y"], audit, journal: { isFrozen: true } })
        yield* kit.check("shell", command("make"))
        assert.deepStrictEqual(
          entries.map(({ by, method, outcome }) => ({ by, method, outcome })),
          [{ by: undefined, method: undefined, outcome: "left_open" }]
        )
      })
    )

    it.effect(`of one that is withdrawn while a person is asked says so, and whom it asked (${how})`, () =>
      Effect.gen(function* () {
        const { audit, entries } = trail(how)
        const kit = yield* Kit.make({ person: [TestInteractor.silent], audit })
        const checking = yield* Effect.fork(kit.check("shell", command("make")))
        yield* settle
        yield* Fiber.interrupt(checking)
        const [request] = yield* kit.person.shown
        assert.deepStrictEqual(
          entries.map(({ method, outcome, requestId }) => ({ method, outcome, requestId })),
          [{ method: "cancelled", outcome: "cancelled", requestId: request?.requestId }] as never
        )
        assert.deepStrictEqual(
          kit.resolved().map(({ method }) => method),
          ["cancelled"]
        )
      })
    )
  }

  it.effect("that crashes grants nothing, and tells no model why", () =>
    Effect.gen(function* () {
      const { audit } = trail("record", () => Effect.dieMessage("the audit is broken"))
      const kit = yield* Kit.make({ policy: { whitelist: { tools: ["shell"] } }, audit })
      const verdict = yield* kit.check("shell", command("make"))
      assert.strictEqual(verdict._tag === "Denied" ? verdict.text : "", "Permission check failed")
      assert.deepStrictEqual(
        kit.resolved().map(({ granted, reason }) => [granted, reason]),
        [[false, "Permission check failed"]]
      )
    })
  )

  it.effect("has an edit that does not fit, and the denial of it", () =>
    Effect.gen(function* () {
      const { audit, entries } = trail()
      const kit = yield* Kit.make({ person: [odd, "n"], audit })
      assert.strictEqual((yield* kit.check("shell", command("make")))._tag, "Denied")
      assert.strictEqual(entries.at(-1)?.outcome, "denied")
      assert.deepStrictEqual(entries.at(-1)?.args, command("make"))
    })
  )
})
