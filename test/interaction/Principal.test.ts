/** One person in every spelling: where names are compared, and at each door for names. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as RemoteInteractor from "../../src/channel/RemoteInteractor.js"
import * as Wire from "../../src/host/Wire.js"
import * as Ballot from "../../src/interaction/Ballot.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import * as Principal from "../../src/interaction/Principal.js"
import * as Tally from "../../src/interaction/Tally.js"
import * as Interactors from "../../src/people/Interactors.js"
import * as Policy from "../../src/permission/Policy.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import * as PolicySource from "../../src/permission/PolicySource.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Runs from "../kit/Runs.js"

const allow: Interaction.ApproveAnswer = { decision: "allow", scope: "once" }

const need = { quorum: 2, roles: [], members: [], deny: "one", rule: "work" } as const

const standing = (names: ReadonlyArray<string>, of: Interaction.Need = need) =>
  Tally.standing(
    { needs: { digest: "", all: [of], votes: [] } },
    names.map((by) => ({ answer: allow, by }))
  )._tag

const one = [
  ["ada", " ada "],
  ["ada", "\u00a0ada\u2003"],
  ["ada", "\ufeffada"],
  ["ada", "ada\n"],
  ["ada", "Ada"],
  ["ada", "ＡＤＡ"],
  ["ada", "ad\u200ba"],
  ["ada", "a\u00adda\u2060"],
  ["ada", "ada\ufe0f"],
  ["ada", "a\u034fda"],
  ["ada", "\u3164ada\u115f"],
  ["ada", "\u2800ada"],
  ["ada", "\u202eada\u202c"],
  ["ada lovelace", "Ada\u00a0 Lovelace"],
  ["josé", "jose\u0301"],
  ["JOSÉ", "jose\u0301"],
  ["straße", "STRASSE"],
  ["Ångström", "\u212bngstro\u0308m"],
  ["ﬁona", "Fiona"],
  ["ΣΊΣΥΦΟΣ", "σίσυφος"]
] as const

const two = [
  ["ada", "ada."],
  ["ada", "ada1"],
  ["ada", "a da"],
  ["ada", "adа"],
  ["jose", "josé"],
  ["ada@a.test", "ada@b.test"],
  ["o'brien", "obrien"],
  ["田中", "田中花子"]
] as const

describe("a name", () => {
  it.each(one)("is one person's as %j and %j", (left, right) => {
    assert.isTrue(Principal.isSame(left, right))
    assert.strictEqual(standing([left, right]), "Open")
    assert.strictEqual(standing([left, right, "grace"]), "Decided")
  })

  it.each(two)("is of two people as %j and %j", (left, right) => {
    assert.isFalse(Principal.isSame(left, right))
    assert.strictEqual(standing([left, right]), "Decided")
  })

  it("counts once, however it is decorated, and whoever else has voted", () => {
    const people = ["ada", "Grace Hopper", "josé", "straße", "Σοφία", "田中", "иван"]
    const hidden = FastCheck.constantFrom(
      "",
      "",
      "\u200b",
      "\u2060",
      "\u00ad",
      "\ufe0f",
      "\u034f",
      "\u200d",
      "\u{e0020}"
    )
    const blank = FastCheck.constantFrom("", " ", "\t", "\u00a0", "\u3000", "\ufeff", "\u2028", "\u2800")
    const form = FastCheck.constantFrom("NFC", "NFD", "NFKC", "NFKD")
    const spelling = (name: string) =>
      FastCheck.tuple(
        form,
        blank,
        blank,
        FastCheck.array(FastCheck.tuple(hidden, FastCheck.boolean()), { minLength: 20, maxLength: 20 })
      ).map(([form, before, after, marks]) => {
        const letters = [...name.normalize(form)].map((letter, at) => {
          const [mark = "", isUpper = false] = marks[at] ?? []
          return `${isUpper ? letter.toUpperCase() : letter.toLowerCase()}${mark}`
        })
        return `${before}${letters.join("")}${after}`
      })
    FastCheck.assert(
      FastCheck.property(
        FastCheck.constantFrom(...people).chain((name) =>
          FastCheck.tuple(FastCheck.constant(name), FastCheck.array(spelling(name), { minLength: 1, maxLength: 6 }))
        ),
        FastCheck.constantFrom(...people),
        ([name, spellings], other) => {
          assert.strictEqual(standing([name, ...spellings]), "Open")
          assert.strictEqual(standing([...spellings, other]), other === name ? "Open" : "Decided")
        }
      ),
      { numRuns: Runs.of(500) }
    )
  })

  it("has a role in every spelling of both", () => {
    const ops = { ...need, quorum: 1, roles: ["Ops"], members: ["Ada"] }
    for (const by of ["ada", " ADA ", "ad\u00e1"]) {
      assert.strictEqual(Ballot.isEntitled(ops, { by }), by !== "ad\u00e1", by)
      assert.isTrue(Ballot.isEntitled(ops, { by: "grace", roles: ["ops"] }))
    }
    const policy = Policy.make({
      roles: { OPS: ["Ada"], dev: ["grace"] },
      approvals: [{ tools: ["work"], roles: ["ops"], quorum: 1 }]
    })
    assert.deepStrictEqual(policy.approvals?.[0]?.need.members, ["Ada"])
    assert.deepStrictEqual(policy.warnings, [])
    const twice = Policy.make({
      roles: { ops: ["ada", "ADA"] },
      approvals: [{ tools: ["work"], roles: ["ops"], quorum: 2 }]
    })
    assert.include(twice.warnings.join(), "names only")
  })

  it("of a role that the person filled is filled by no workspace, in no spelling", () => {
    const merged = PolicySource.merge(
      { roles: { ops: ["ada"] } },
      { roles: { OPS: ["mallory"], dev: ["grace"] } },
      true
    )
    assert.deepStrictEqual(merged.roles, { ops: ["ada"], dev: ["grace"] })
  })
})

describe("a door for names", () => {
  const decode = Schema.decodeUnknownEither(RemoteInteractor.Name)
  const refused = [
    "",
    " ",
    "\u2800",
    "ad\u200ba",
    "a\nb",
    "ada\ufe0f",
    "\u202eada",
    "\ud800",
    "\ue000",
    "a".repeat(201)
  ]

  it("takes the blanks from a name, and refuses a text that hides something", () => {
    assert.deepStrictEqual(decode(" Ada\u00a0Lovelace\n"), Either.right("Ada Lovelace" as Principal.Principal))
    assert.deepStrictEqual(decode("jose\u0301"), Either.right("josé" as Principal.Principal))
    for (const text of refused) assert.isTrue(Either.isLeft(decode(text)), JSON.stringify(text))
  })

  it("is the same for a line of JSON", () => {
    const answer = (by: string) => Wire.parse(JSON.stringify({ _tag: "Answer", requestId: "a", answer: "y", by }))
    assert.include(JSON.stringify(Either.getOrThrow(answer(" ada "))), '"by":"ada"')
    for (const text of refused) {
      assert.deepStrictEqual(
        answer(text),
        Either.left('"by" of Answer must be a name of at most 200 characters.'),
        JSON.stringify(text)
      )
    }
  })

  it("of a policy refuses a text that names nobody", () => {
    for (const text of ["", " ", "\u2800", "\u200b", "\ufe0f\u3164"]) {
      const file = JSON.stringify({ roles: { ops: [text] } })
      assert.isTrue(Either.isLeft(PolicyFile.decode(file, "p.json")), JSON.stringify(text))
    }
  })

  it("of code lets a text that names nobody cast no vote", () => {
    for (const by of refused) {
      const reason = Tally.refusal({ digest: "", all: [need], votes: [] }, { by })
      assert.include(reason, "the name of its author", JSON.stringify(by))
    }
  })
})

describe("a quorum of interactors", () => {
  const deploy = InteractionSample.samples.Confirm.interaction
  const answering = (by: string) => ({
    id: by,
    relay: false,
    request: () => Effect.succeed({ answer: true, by } as never)
  })
  it.effect("is not reached by one person in two spellings", () =>
    Effect.gen(function* () {
      const ask = (...names: ReadonlyArray<string>) =>
        Effect.flatMap(InteractionSample.request(deploy), (request) =>
          Effect.either(Interactors.quorum({ of: names.map(answering), need: 2 }).request(request))
        )
      assert.isTrue(Either.isLeft(yield* ask("ada", " ada ")))
      assert.isTrue(Either.isLeft(yield* ask("josé", "JOSE\u0301")))
      assert.isTrue(Either.isRight(yield* ask("ada", "grace")))
    })
  )

  it.effect("finds a role in every spelling", () =>
    Effect.gen(function* () {
      const request = yield* InteractionSample.request(deploy)
      const asked = (only: string) =>
        Effect.either(
          Interactors.roles({ of: answering(" ADA "), members: { Ops: ["ada"] }, only: [only] }).request(request)
        )
      assert.isTrue(Either.isRight(yield* asked("ops")))
      assert.isTrue(Either.isLeft(yield* asked("dev")))
    })
  )
})
