import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as Id from "../../src/core/Id.js"
import * as Inbox from "../../src/inbox/Inbox.js"
import type { Message } from "../../src/inbox/Message.js"

const texts = (messages: ReadonlyArray<Message>) => messages.map(({ text }) => text)
const make = Effect.provideService(Inbox.make(), Id.IdGenerator, Id.sequence())

describe("Inbox", () => {
  it.effect("files a message with its sender, its lane and its time", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      yield* TestClock.adjust("5 seconds")
      const message = inbox.file({ text: "hello", source: "parent" }, "steer", { parentId: "call_1" })
      assert.deepStrictEqual(message, {
        id: "msg_1" as Id.MessageId,
        source: "parent",
        delivery: "steer",
        text: "hello",
        at: 5_000,
        interjection: { parentId: "call_1" }
      })
      assert.deepStrictEqual(inbox.peek(), [message])
      assert.deepStrictEqual(inbox.takeSteering(), [message])
      assert.isTrue(inbox.isEmpty())
    })
  )

  it.effect("keeps two lanes, each in order of arrival, and files a message of another inbox as it is", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      inbox.file({ text: "q1" }, "queue")
      inbox.file({ text: "s1" }, "steer")
      inbox.file({ text: "q2", source: "child" }, "queue")
      const other = yield* make
      const moved = inbox.file(
        other.file({ text: "s2", id: "msg_9" as Id.MessageId, source: "system" }, "queue"),
        "steer"
      )
      assert.deepStrictEqual(texts(inbox.peek()), ["s1", "s2", "q1", "q2"])
      assert.deepInclude(moved, { source: "system", delivery: "steer", text: "s2" })
      assert.strictEqual(String(moved.id), "msg_9")
    })
  )

  it.effect("a turn begins without the messages that are for a later one, in either lane", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      const [s1, q1] = [inbox.file({ text: "s1" }, "steer"), inbox.file({ text: "q1" }, "queue")]
      assert.deepStrictEqual(inbox.takeTurn(undefined, new Set([s1.id, q1.id])), [])
      inbox.file({ text: "q2" }, "queue")
      assert.deepStrictEqual(texts(inbox.takeTurn(undefined, new Set([s1.id, q1.id]))), ["q2"])
      assert.deepStrictEqual(texts(inbox.takeTurn(q1.id)), ["q1", "s1"])
    })
  )

  it.effect("a turn begins with all that steers, else with one that was queued", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      for (const text of ["q1", "q2"]) inbox.file({ text }, "queue")
      for (const text of ["s1", "s2"]) inbox.file({ text }, "steer")
      assert.isTrue(inbox.hasSteering())
      assert.deepStrictEqual(texts(inbox.takeTurn()), ["s1", "s2"])
      assert.isFalse(inbox.hasSteering())
      assert.deepStrictEqual(texts(inbox.takeTurn()), ["q1"])
      assert.deepStrictEqual(texts(inbox.takeSteering()), [])
      assert.deepStrictEqual(texts(inbox.takeTurn()), ["q2"])
      assert.deepStrictEqual(texts(inbox.takeTurn()), [])
    })
  )

  it.effect("what goes along is read with a step or a turn, before their words, and begins neither", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      assert.isFalse(inbox.hasForStep())
      const gone = inbox.file({ text: "a0" }, "along")
      assert.isTrue(inbox.hasForStep())
      assert.isTrue(inbox.withdraw(gone.id))
      assert.isFalse(inbox.hasForStep())
      inbox.file({ text: "a1" }, "along")
      assert.isTrue(inbox.isEmpty())
      assert.isFalse(inbox.hasSteering())
      assert.deepStrictEqual(texts(inbox.takeTurn()), [])
      assert.deepStrictEqual(texts(inbox.takeSteering()), ["a1"])
      assert.isFalse(inbox.hasForStep())
      inbox.file({ text: "a2" }, "along")
      inbox.file({ text: "s1" }, "steer")
      assert.deepStrictEqual(texts(inbox.takeSteering()), ["a2", "s1"])
      inbox.file({ text: "q1" }, "queue")
      inbox.file({ text: "a3" }, "along")
      assert.deepStrictEqual(texts(inbox.takeTurn()), ["a3", "q1"])
      assert.deepStrictEqual(texts(inbox.takeSteering()), [])
    })
  )

  it.effect("a message can be taken back until it is taken", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      const [first, second] = [inbox.file({ text: "a" }, "steer"), inbox.file({ text: "b" }, "queue")]
      assert.isTrue(inbox.withdraw(second.id))
      assert.isFalse(inbox.withdraw(second.id))
      inbox.takeTurn()
      assert.isFalse(inbox.withdraw(first.id))
      assert.isTrue(inbox.isEmpty())
    })
  )
})
