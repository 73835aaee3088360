import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { RequestId } from "../../src/core/Id.js"
import * as PendingReplies from "../../src/inbox/PendingReplies.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const door = () => {
  const late: Array<PendingReplies.Late> = []
  return { door: PendingReplies.make((reply) => void late.push(reply)), late }
}

/** Lets a question wait, and tells what comes of it. */
const open = (to: PendingReplies.PendingReplies, kind: Interaction.Kind, id: string) =>
  Effect.gen(function* () {
    const { interaction } = InteractionSample.samples[kind]
    const request: InteractionRequest = {
      ...(yield* InteractionSample.request(interaction)),
      requestId: id as RequestId
    }
    return Effect.exit(to.open(request).await)
  })

const failure = (exit: PendingReplies.Settlement) =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined

const answer = (exit: PendingReplies.Settlement) => (Exit.isSuccess(exit) ? exit.value.answer : undefined)

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
      assert.isFalse(own.replyPort.settle("r1", Exit.succeed({ answer: "yes", by: "main", how: "answered" }), "main"))
      assert.strictEqual(failure(yield* end)?._tag, "InteractionCancelled")
      assert.deepStrictEqual(late, [{ requestId: "r1", by: "main", winner: "the asker" }])
    })
  )

  it.effect("gives each reply to the question it names, in any order", () =>
    Effect.gen(function* () {
      const { door: own } = door()
      const ids = Array.from({ length: 50 }, (_, index) => `r${index}`)
      const ends = yield* Effect.forEach(ids, (id) => open(own, "Ask", id))
      for (const id of ids.toReversed()) {
        const end = Exit.succeed({ answer: `for ${id}`, by: "main", how: "answered" as const })
        assert.isTrue(own.replyPort.settle(id, end, "main"))
      }
      for (const [index, end] of ends.entries()) assert.strictEqual(answer(yield* end), `for r${index}`)
    })
  )
})
