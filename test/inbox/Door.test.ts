import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Option from "effect/Option"
import type { RequestId } from "../../src/core/Id.js"
import * as Door from "../../src/inbox/Door.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const door = () => {
  const late: Array<Door.Late> = []
  return { door: Door.make((reply) => void late.push(reply)), late }
}

/** Lets a question wait, and tells what comes of it. */
const open = (to: Door.Door, kind: Interaction.Kind, id: string) =>
  Effect.gen(function* () {
    const { interaction } = InteractionSample.samples[kind]
    const request: InteractionRequest = {
      ...(yield* InteractionSample.request(interaction)),
      requestId: id as RequestId
    }
    return Effect.exit(to.open(request).await)
  })

const failure = (exit: Door.Settlement) =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined

const answer = (exit: Door.Settlement) => (Exit.isSuccess(exit) ? exit.value.answer : undefined)

const response = (id: string, decision: string) =>
  `<permission_response request_id="${id}"><decision>${decision}</decision></permission_response>`

describe("a door", () => {
  it.effect("settles a question once, for whoever comes first, and tells the others that they are late", () =>
    Effect.gen(function* () {
      const { door: own, late } = door()
      const end = yield* open(own, "Ask", "r1")
      assert.isTrue(own.replyPort.settle("r1", Exit.succeed({ answer: "first", by: "main", how: "answered" }), "main"))
      assert.isFalse(
        own.replyPort.settle("r1", Exit.succeed({ answer: "second", by: "else", how: "answered" }), "else")
      )
      assert.isFalse(own.close("r1", Exit.fail(new InteractionCancelled({ requestId: "r1" as RequestId }))))
      assert.strictEqual(answer(yield* end), "first")
      assert.deepStrictEqual(late, [{ requestId: "r1", by: "else", winner: "main" }])
      assert.deepStrictEqual(own.waiting(), [])
    })
  )

  it.effect("is closed to replies once the asker has gone", () =>
    Effect.gen(function* () {
      const { door: own, late } = door()
      const end = yield* open(own, "Approve", "r1")
      assert.isTrue(own.close("r1", Exit.fail(new InteractionCancelled({ requestId: "r1" as RequestId }))))
      assert.isFalse(own.replyPort.reply(response("r1", "yes"), "main"))
      assert.strictEqual(failure(yield* end)?._tag, "InteractionCancelled")
      assert.deepStrictEqual(late, [{ requestId: "r1", by: "main", winner: "the asker" }])
    })
  )

  it.effect("gives each reply to the question it names, in any order", () =>
    Effect.gen(function* () {
      const { door: own } = door()
      const ids = Array.from({ length: 50 }, (_, index) => `r${index}`)
      const ends = yield* Effect.forEach(ids, (id) => open(own, "Approve", id))
      for (const id of ids.toReversed()) {
        const text = `<permission_response request_id="${id}"><decision>comment</decision><comment>for ${id}</comment></permission_response>`
        assert.isTrue(own.replyPort.reply(text, "main"))
      }
      for (const [index, end] of ends.entries()) {
        assert.deepInclude(answer(yield* end), { decision: "deny", comment: `for r${index}` })
      }
    })
  )

  it.effect("takes a bare word for the one approval that is open, and for none of two", () =>
    Effect.gen(function* () {
      const { door: own } = door()
      assert.isFalse(own.replyPort.reply("y", "main"), "nothing is open")
      const form = yield* open(own, "Clarify", "r0")
      const first = yield* open(own, "Approve", "r1")
      assert.isFalse(own.replyPort.reply("that is a good question", "main"), "somebody talks")
      assert.strictEqual(own.waiting().length, 2)
      const second = yield* open(own, "Approve", "r2")
      assert.isFalse(own.replyPort.reply("y", "main"), "which of them?")
      assert.isTrue(own.replyPort.reply(response("r2", "no"), "main"))
      assert.isTrue(own.replyPort.reply(" ALWAYS ", "main"))
      assert.deepStrictEqual(answer(yield* first), { decision: "allow", scope: "session" })
      assert.deepStrictEqual(answer(yield* second), { decision: "deny", scope: "once" })
      assert.deepStrictEqual(
        own.waiting().map(({ requestId }) => requestId as string),
        ["r0"]
      )
      assert.isTrue(own.replyPort.reply('<interaction_cancelled request_id="r0"/>', "main"))
      assert.strictEqual(failure(yield* form)?._tag, "InteractionCancelled")
    })
  )

  it.effect(
    "ends a question safely on a reply that cannot be understood: authority is denied, a form is cancelled",
    () =>
      Effect.gen(function* () {
        for (const kind of InteractionSample.kinds) {
          const { door: own } = door()
          const end = yield* open(own, kind, "r1")
          assert.isTrue(own.replyPort.reply(response("r1", "certainly"), "main"), kind)
          const tag = failure(yield* end)?._tag
          const grants = kind === "Approve" || kind === "grantStageTool" || kind === "approveSubagentEnvelope"
          assert.strictEqual(tag, grants ? "InteractorUnavailable" : "InteractionCancelled", kind)
        }
      })
  )

  it.effect("does nothing about replies to what is not open", () =>
    Effect.gen(function* () {
      const { door: own, late } = door()
      yield* Effect.asVoid(open(own, "Approve", "r1"))
      assert.isFalse(own.replyPort.reply(response("r2", "yes"), "main"))
      assert.isFalse(own.replyPort.reply('<interaction_cancelled request_id="r2"/>', "main"))
      assert.isFalse(own.replyPort.reply('<permission_response request_id="r2"><decision>y', "main"))
      assert.strictEqual(own.waiting().length, 1)
      assert.deepStrictEqual(late, [{ requestId: "r2", by: "main", winner: undefined }])
    })
  )

  it("allows nothing on any text but a reply to the very request, or a word where one approval is open", () => {
    const pieces = fc.constantFrom(
      "<permission_response",
      ' request_id="r2"',
      ' request_id="r1',
      '">',
      ">",
      "<decision>",
      "yes",
      "all",
      "</decision>",
      "</permission_response>",
      "<![CDATA[",
      "]]>",
      "&quot;",
      "&#114;1",
      "<!--",
      "-->",
      "\u0000",
      "<interaction_cancelled",
      "/>"
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces, { maxLength: 9 }).map((all) => all.join(""))
        ),
        (text) => {
          const { door: own } = door()
          const { interaction } = InteractionSample.samples.Approve
          // Two are open, so that a bare word means neither; `r1` is not one of them.
          for (const id of ["a", "b"]) {
            own.open({
              requestId: id as RequestId,
              correlationId: "none" as never,
              sessionId: "s" as never,
              agentPath: "main/x",
              issuedAt: 0,
              interaction
            })
          }
          assert.isFalse(own.replyPort.reply(text, "main"))
          assert.strictEqual(own.waiting().length, 2)
        }
      ),
      { numRuns: 20_000 }
    )
  })
})
