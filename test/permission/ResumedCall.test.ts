/** What of a decision in another process holds in this one, by what the journal says of who made it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import type { Authority } from "../../src/permission/Authority.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import type { Past, Resolution } from "../../src/permission/Verdict.js"
import * as Kit from "../kit/gate.js"

const origin = { sessionId: Kit.ses("root"), rootSessionId: Kit.ses("root"), agent: "main", depth: 0 }

const policies: Readonly<Record<string, PolicySource>> = {
  asks: {},
  allows: { whitelist: { tools: ["deploy"] } },
  denies: { blacklist: { tools: ["deploy"] } },
  "for a person": { approvals: [{ tools: ["deploy"] }] },
  "for two": { approvals: [{ tools: ["deploy"], quorum: 2 }] },
  "for ops": { approvals: [{ tools: ["deploy"], roles: ["ops"] }], roles: { ops: ["ann"] } },
  "for ops and two": {
    approvals: [
      { tools: ["deploy"], roles: ["ops"] },
      { patterns: ["deploy*"], quorum: 2 }
    ],
    roles: { ops: ["ann"] }
  }
}

const approved = { method: "user_approved" } as const

/** Where it runs. */
const cases: ReadonlyArray<readonly [what: string, decided: Past["decided"], runs: ReadonlyArray<string>]> = [
  ["a person", approved, ["asks", "allows", "for a person"]],
  ["a model", { ...approved, how: "model" }, ["allows"]],
  ["nobody, because that allowed it", { method: "timeout" }, ["allows"]],
  ["nobody, because nobody was to be asked", { method: "yolo" }, ["allows"]],
  ["a rule", { method: "whitelist" }, ["allows"]],
  ["somebody of the list", { ...approved, voters: [{ by: "ann" }] }, ["asks", "allows", "for a person", "for ops"]],
  [
    "somebody of the role",
    { ...approved, voters: [{ by: "bob", roles: ["ops"] }] },
    ["asks", "allows", "for a person", "for ops"]
  ],
  ["another one", { ...approved, voters: [{ by: "bob" }] }, ["asks", "allows", "for a person"]],
  [
    "one person twice",
    { ...approved, voters: [{ by: "ann" }, { by: "ann" }] },
    ["asks", "allows", "for a person", "for ops"]
  ],
  ["two others", { ...approved, voters: [{ by: "bob" }, { by: "cy" }] }, ["asks", "allows", "for a person", "for two"]],
  [
    "two, one of them of the list",
    { ...approved, voters: [{ by: "bob" }, { by: "ann" }] },
    ["asks", "allows", "for a person", "for two", "for ops", "for ops and two"]
  ],
  ["nobody of those who voted", { ...approved, voters: [] }, ["asks", "allows"]],
  ["what had begun, and goes on", undefined, Object.keys(policies)]
]

/** The policies under which it runs. */
const runsUnder = (decided: Past["decided"], authority?: Authority) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    for (const [name, policy] of Object.entries(policies)) {
      const kit = yield* Kit.make({ policy })
      const params = { n: 1 }
      const call = { id: "call_1" as ToolCallId, name: "deploy", params }
      const entry = kit.entryOf("deploy")
      const past: Past = { _tag: "Allowed", params, encoded: params, edited: false, decided }
      const verdict = yield* kit.gate
        .lookAgain({ call, entry }, past, authority)
        .pipe(Interactor.withInteractor(kit.person.interactor), Origin.withOrigin(origin))
      if (verdict._tag === "Allowed") found.push(name)
      // A refusal is told; what runs was told when it was decided.
      assert.lengthOf(kit.resolved(), verdict._tag === "Allowed" ? 0 : 1)
    }
    return found
  })

describe("a call that was allowed in another process", () => {
  for (const [what, decided, runs] of cases) {
    it.effect(`runs where that suffices still: ${what}`, () =>
      Effect.map(runsUnder(decided), (found) => {
        assert.deepStrictEqual(found, runs)
      })
    )
  }

  const envelope = { method: "envelope" } as const
  const says = (resolution?: Resolution) => (): Effect.Effect<Option.Option<Resolution>> =>
    Effect.succeed(Option.fromNullable(resolution))
  const grants = says({ granted: true, method: "envelope", reason: "" })
  const denies = says({ granted: false, method: "envelope", reason: "not now" })
  const ruled: ReadonlyArray<readonly [string, Authority, Past["decided"], ReadonlyArray<string>]> = [
    // A person may have answered before there was an envelope: what lists deny by now stays denied.
    ["a person, where an envelope allows it now", grants, approved, ["asks", "allows", "for a person"]],
    ["an envelope, which allows it still", grants, envelope, ["asks", "allows", "denies"]],
    ["a model, where an envelope allows it now", grants, { ...approved, how: "model" }, ["asks", "allows", "denies"]],
    ["an envelope, which says nothing of it now", says(), envelope, ["allows"]],
    ["a person, where an envelope says nothing", says(), approved, ["asks", "allows", "for a person"]],
    ["a person, where an envelope denies it now", denies, approved, []]
  ]
  for (const [what, authority, decided, runs] of ruled) {
    it.effect(`runs where an envelope lets it, too: ${what}`, () =>
      Effect.map(runsUnder(decided, authority), (found) => {
        assert.deepStrictEqual(found, runs)
      })
    )
  }
})
