import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { kinds, samples } = InteractionSample

describe("the kinds", () => {
  it("are a closed set of ten under one version", () => {
    assert.sameMembers(
      [...kinds],
      [
        "Approve",
        "grantStageTool",
        "approveSubagentEnvelope",
        "Clarify",
        "Ask",
        "Select",
        "Confirm",
        "Elicit",
        "Auth.DeviceCode",
        "Auth.Password"
      ]
    )
    assert.strictEqual(Interaction.contractVersion, "2.0.0")
    for (const tag of ["approve", "", "__proto__", "toString"]) assert.isFalse(Interaction.isKind(tag))
  })

  it("that grant authority take the slot, and deny when nobody answers; the others have no safe answer", () => {
    const authority = ["Approve", "grantStageTool", "approveSubagentEnvelope"]
    for (const kind of kinds) {
      const safe = Interaction.safeAnswer<Interaction.Interaction>(samples[kind].interaction)
      assert.strictEqual(Interaction.takesPromptSlot(kind), authority.includes(kind), kind)
      assert.strictEqual(Option.isSome(safe), authority.includes(kind), kind)
      if (Option.isSome(safe)) {
        assert.isFalse(InteractionSample.allows(safe.value))
        assert.isUndefined(Interaction.misfit(samples[kind].interaction, safe.value))
      }
    }
    assert.deepStrictEqual(
      kinds.filter(Interaction.isSecret),
      kinds.filter((kind) => kind.startsWith("Auth."))
    )
  })
})

describe("over a wire", () => {
  it.effect.each(kinds)("%s arrives as it was sent, envelope and answer too", (kind) =>
    Effect.gen(function* () {
      const { answer, encoded, interaction } = samples[kind]
      const line = JSON.parse(JSON.stringify(Interaction.encode(interaction)))
      assert.deepStrictEqual(Interaction.decode(line), Either.right(interaction))
      const request = yield* InteractionSample.request<Interaction.Interaction>(interaction)
      const envelope = JSON.parse(JSON.stringify(InteractionRequest.encode(request)))
      assert.deepStrictEqual(Schema.decodeUnknownSync(InteractionRequest.InteractionRequest)(envelope), request)
      assert.deepStrictEqual(Interaction.encodeAnswer(interaction, answer as never), encoded)
      assert.deepStrictEqual(
        Interaction.decodeAnswer<Interaction.Interaction>(interaction, encoded),
        Either.right(answer)
      )
      assert.isUndefined(Interaction.misfit(interaction, answer))
    })
  )

  it("a kind outside the contract is unknown, and a payload that does not match is named", () => {
    for (const input of [{ _tag: "Delete" }, { _tag: "__proto__" }, {}, null, 7, "Confirm?"]) {
      const decoded = Interaction.decode(input)
      assert(Either.isLeft(decoded))
      assert.strictEqual(decoded.left._tag, "InteractionKindUnknown")
    }
    for (const input of [
      { _tag: "Confirm", prompt: "?" },
      { _tag: "Confirm", prompt: "?", default: "no" },
      { _tag: "Confirm", prompt: "?", default: true, sudo: true },
      { _tag: "Select", prompt: "?", options: [] }
    ]) {
      const decoded = Interaction.decode(input)
      assert(Either.isLeft(decoded))
      assert.strictEqual(decoded.left._tag, "InteractionPayloadMismatch")
      assert.include(decoded.left.message, input._tag)
    }
  })

  it("no answer to one kind is taken for an answer to another that allows something", () => {
    for (const asked of kinds) {
      for (const given of kinds) {
        const decoded = Interaction.decodeAnswer<Interaction.Interaction>(
          samples[asked].interaction,
          samples[given].encoded
        )
        if (asked !== given && Either.isRight(decoded)) {
          // Of all pairs, these alone have the same form.
          assert.include(["grantStageTool", "approveSubagentEnvelope", "Ask", "Auth.Password"], asked)
        }
      }
    }
  })

  const anything = FastCheck.anything()
  for (const kind of kinds) {
    it.prop(`nothing random answers ${kind}, unless it is an answer`, [anything], ([value]) => {
      const { interaction } = samples[kind]
      const decoded = Interaction.decodeAnswer<Interaction.Interaction>(interaction, value)
      if (Either.isRight(decoded)) assert.isUndefined(Interaction.misfit(interaction, decoded.right))
      else assert.isString(decoded.left)
      const misfit = Interaction.misfit(interaction, value)
      assert.isTrue(misfit === undefined || misfit.length > 0)
    })
  }

  it.prop(
    "every answer that the schema of approvals can make is taken, unless it edits what cannot be edited",
    [Arbitrary.make(Interaction.ApproveAnswer)],
    ([answer]) => {
      const { interaction } = samples.Approve
      const fits = answer.decision !== "edit" || Object.keys(answer.editedArguments).every((name) => name === "command")
      assert.strictEqual(Interaction.misfit(interaction, answer) === undefined, fits)
    }
  )

  /** An answer that decodes and does not fit; absent where every answer that decodes does. */
  const misfits: { readonly [K in Interaction.Kind]: unknown } = {
    Approve: { decision: "edit", editedArguments: { nowhere: 1 } },
    grantStageTool: undefined,
    approveSubagentEnvelope: undefined,
    Clarify: {},
    Ask: undefined,
    Select: 3,
    Confirm: undefined,
    Elicit: {},
    "Auth.DeviceCode": undefined,
    "Auth.Password": undefined
  }
  it("an answer that decodes and does not fit is none", () => {
    for (const kind of kinds) {
      if (misfits[kind] === undefined) continue
      const { interaction } = samples[kind]
      assert.isString(Interaction.misfit(interaction, misfits[kind]), kind)
      assert.isTrue(Either.isLeft(Interaction.decodeAnswer<Interaction.Interaction>(interaction, misfits[kind])), kind)
    }
  })

  it("an edit is no answer to a call that cannot be edited, and an index none out of range", () => {
    const { editable: _, ...plain } = samples.Approve.interaction
    const fixed = new Interaction.Approve(plain)
    const edit = { decision: "edit", editedArguments: {} }
    assert.deepStrictEqual(Interaction.decodeAnswer(fixed, edit), Either.left("this call's arguments cannot be edited"))
    for (const index of [-1, 3, 0.5, Number.NaN, "1"]) {
      assert.isTrue(Either.isLeft(Interaction.decodeAnswer(samples.Select.interaction, index)))
      assert.isString(Interaction.misfit(samples.Select.interaction, index))
    }
  })

  it("a misfit says nothing of what was given", () => {
    assert.notInclude(Interaction.misfit(samples["Auth.Password"].interaction, "hunter2") ?? "", "hunter2")
  })
})
