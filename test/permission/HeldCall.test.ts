/** Calls that are allowed and wait for room, or are asked about, while a person changes what allowed them or would. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { ToolCallId } from "../../src/core/Id.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Origin from "../../src/core/Origin.js"
import type * as PermissionGate from "../../src/permission/PermissionGate.js"
import type { PermissionState } from "../../src/permission/PermissionState.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/gate.js"

const origin = { sessionId: Kit.ses("root"), rootSessionId: Kit.ses("root"), agent: "main", depth: 0 }

/** What becomes of a call of the shell that is allowed, and has room when the state was changed. */
const outcome = (
  { authority, before, person, policy }: Case,
  meanwhile: (state: PermissionState) => void
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const kit = yield* Kit.make({ policy, person: person ?? {} })
    before?.(kit.state)
    const params = { command: "touch a" }
    const entry = kit.entryOf("shell")
    const proposal = {
      call: { id: "call_1" as ToolCallId, name: "shell", params },
      entry,
      params: Either.getOrThrow(entry.decode(params))
    }
    const held = yield* Effect.suspend(() => kit.gate.open(proposal, { authority, held: true }).verdict).pipe(
      Interactor.withInteractor(kit.person.interactor),
      Origin.withOrigin(origin)
    )
    if (held._tag === "Denied" || held.pending === undefined) return `not held: ${held._tag}`
    meanwhile(kit.state)
    const settled = yield* held.pending.settle.pipe(Origin.withOrigin(origin))
    const resolved = kit.resolved()
    assert.lengthOf(resolved, 1)
    assert.strictEqual(resolved[0]?.granted, settled._tag === "Allowed")
    return settled._tag
  })

interface Case {
  readonly policy: NonNullable<Parameters<typeof Kit.make>[0]>["policy"]
  readonly before?: (state: PermissionState) => void
  readonly person?: ReadonlyArray<string>
  readonly authority?: PermissionGate.Authority
}

const envelope: PermissionGate.Authority = () =>
  Effect.succeed(Option.some({ granted: true, method: "envelope", reason: "it may" } as const))

const allowed: Readonly<Record<string, Case>> = {
  "by a suspension": { policy: {}, before: (state) => state.suspend("idle", Kit.ses("root")) },
  "by a suspension of everything": { policy: {}, before: (state) => state.suspend("all", Kit.ses("root")) },
  "by the mode": { policy: {}, before: (state) => state.setMode("allow") },
  "by an entry of the session": { policy: {}, before: (state) => state.allow("touch *") },
  "by the policy": { policy: { whitelist: { patterns: ["touch *"] } } },
  "by a person": { policy: {}, person: ["y"] },
  "by a person, as somebody it is reserved for": {
    policy: { defaultPolicy: "deny", approvals: [{ patterns: ["touch *"] }] },
    person: ["y"]
  },
  "by an envelope": { policy: {}, authority: envelope }
}

const changes: Readonly<Record<string, (state: PermissionState) => void>> = {
  nothing: () => undefined,
  resumed: (state) => state.resume(),
  "mode ask": (state) => state.setMode("ask"),
  "mode plan": (state) => state.setMode("plan"),
  removed: (state) => void state.remove("touch *"),
  denied: (state) => state.deny("touch *")
}

/** The changes after which it does not run any more. */
const ends: Readonly<Record<string, ReadonlyArray<string>>> = {
  "by a suspension": ["resumed", "mode plan", "denied"],
  "by a suspension of everything": ["resumed", "mode plan", "denied"],
  "by the mode": ["mode ask", "mode plan", "denied"],
  "by an entry of the session": ["mode plan", "removed", "denied"],
  "by the policy": ["mode plan", "denied"],
  "by a person": ["mode plan", "denied"],
  "by a person, as somebody it is reserved for": ["mode plan", "denied"],
  "by an envelope": ["mode plan"]
}

describe("a call that waits for room", () => {
  for (const [what, one] of Object.entries(allowed)) {
    it.effect(`runs as long as what allowed it holds: ${what}`, () =>
      Effect.gen(function* () {
        const found: Array<string> = []
        for (const [name, meanwhile] of Object.entries(changes)) {
          const settled = yield* outcome(one, meanwhile)
          assert.match(settled, /^(?:Allowed|Denied)$/, name)
          if (settled === "Denied") found.push(name)
        }
        assert.deepStrictEqual(found, ends[what])
      })
    )
  }
})

/** What becomes of a call that is asked about, where the state is changed while the dialog is open. */
const whileAsked = (
  says: TestInteractor.Step,
  meanwhile: (state: PermissionState) => void,
  { authority, policy }: Case
): Effect.Effect<string> =>
  Effect.gen(function* () {
    let change = () => {}
    let asked = 0
    const person = () => {
      asked++
      return TestInteractor.wait(Effect.sync(() => (change(), says)))
    }
    const kit = yield* Kit.make({ policy, authority, person })
    change = () => meanwhile(kit.state)
    const { _tag } = yield* kit.check("shell", { command: "touch a" })
    assert.strictEqual(asked, 1)
    const resolved = kit.resolved()
    assert.lengthOf(resolved, 1)
    assert.strictEqual(resolved[0]?.granted, _tag === "Allowed")
    return _tag
  })

describe("a call that a person is asked about", () => {
  const cases: ReadonlyArray<readonly [string, Case]> = [
    ["by default", { policy: {} }],
    ["as it is reserved", { policy: { approvals: [{ patterns: ["touch *"] }] } }],
    ["as no envelope has it", { policy: {}, authority: () => Effect.succeedNone }]
  ]
  for (const [what, one] of cases) {
    it.effect(`runs as answered, unless somebody has denied such calls meanwhile: ${what}`, () =>
      Effect.gen(function* () {
        const all = {
          ...changes,
          "mode deny": (state: PermissionState) => state.setMode("deny"),
          cleared: (state: PermissionState) => state.clear(),
          "denied and removed": (state: PermissionState) => {
            state.deny("touch *")
            state.remove("touch *")
          },
          "denied and allowed": (state: PermissionState) => {
            state.deny("touch *")
            state.allow("touch *")
          }
        }
        for (const says of one.policy?.approvals === undefined ? ["y", "a"] : ["y"]) {
          const found: Array<string> = []
          for (const [name, meanwhile] of Object.entries(all))
            if ((yield* whileAsked(says, meanwhile, one)) === "Denied") found.push(name)
          assert.deepStrictEqual(found, ["mode plan", "denied"], says)
        }
        for (const meanwhile of Object.values(all)) assert.strictEqual(yield* whileAsked("n", meanwhile, one), "Denied")
      })
    )
  }

  it.effect("in another way, as about an envelope, runs unless somebody has denied such calls meanwhile", () =>
    Effect.gen(function* () {
      for (const denied of [false, true]) {
        const kit: Effect.Effect.Success<ReturnType<typeof Kit.make>> = yield* Kit.make({
          insteadOfAsking: () =>
            Effect.sync(() => {
              if (denied) kit.state.deny("touch *")
              return Option.some({ granted: true, method: "envelope", reason: "it may" } as const)
            })
        })
        const { _tag } = yield* kit.check("shell", { command: "touch a" })
        assert.strictEqual(_tag, denied ? "Denied" : "Allowed")
      }
    })
  )
})
