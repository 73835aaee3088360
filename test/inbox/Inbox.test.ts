import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as TestClock from "effect/TestClock"
import * as Id from "../../src/core/Id.js"
import * as ChildRequestQueue from "../../src/inbox/ChildRequestQueue.js"
import * as Inbox from "../../src/inbox/Inbox.js"
import type { Delivery, Message } from "../../src/inbox/Message.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Runs from "../kit/Runs.js"

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

describe("whatever is filed, taken and withdrawn", () => {
  const file = fc.record({
    op: fc.constant("file" as const),
    delivery: fc.constantFrom<Delivery>("steer", "queue", "along"),
    parts: fc.constantFrom(undefined, [{ type: "text" as const, text: "a part" }])
  })
  /** Places among all messages that were filed so far; some of them were read long ago. */
  const places = fc.array(fc.nat(15), { maxLength: 4 })
  const turn = fc.record({
    op: fc.constant("turn" as const),
    lead: fc.option(fc.nat(15), { nil: undefined }),
    later: fc.option(places, { nil: undefined })
  })
  const withdraw = fc.record({ op: fc.constant("withdraw" as const), at: fc.nat(15) })
  const step = fc.constant({ op: "step" as const })

  it("each message is read once, in its order, or is still there", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 4, arbitrary: file }, turn, withdraw, step), { maxLength: 30 }),
        fc.array(file, { maxLength: 3 }),
        (ops, before) => {
          const filed: Array<Message> = []
          const withdrawn: Array<Id.MessageId> = []
          const all: Array<Message> = []
          /** What is unread, in order of arrival. */
          let unread: ReadonlyArray<Message> = []
          const lane = (delivery: Delivery) => unread.filter((message) => message.delivery === delivery)
          const take = (words: ReadonlyArray<Message>) => {
            const taken = words.length === 0 ? words : [...lane("along"), ...words]
            unread = unread.filter((message) => !taken.includes(message))
            return taken
          }
          for (const { delivery, parts } of before) {
            const at = all.length
            const old = { id: `old_${at}` as Id.MessageId, source: "user" as const, delivery, text: `${at}`, at }
            all.push(parts === undefined ? old : { ...old, parts })
          }
          unread = [...all]
          const inbox = Inbox.unsafeMake(Id.sequence(), Clock.make(), {
            filed: (message) => void filed.push(message),
            withdrawn: (id) => void withdrawn.push(id),
            messages: all
          })
          for (const one of ops) {
            if (one.op === "file") {
              const { delivery, parts } = one
              const message = inbox.file({ text: `${all.length}`, ...(parts && { parts }) }, delivery)
              const { at, id } = message
              const words = { id, source: "user" as const, delivery, text: `${all.length}`, at }
              assert.deepStrictEqual(message, parts === undefined ? words : { ...words, parts })
              assert.strictEqual(filed.at(-1), message)
              all.push(message)
              unread = [...unread, message]
            } else if (one.op === "step") {
              const expected = [...lane("along"), ...lane("steer")]
              unread = lane("queue")
              assert.deepStrictEqual(inbox.takeSteering(), expected)
            } else if (one.op === "withdraw") {
              const message = all[one.at]
              const isThere = message !== undefined && unread.includes(message)
              assert.strictEqual(inbox.withdraw(message?.id ?? ("none" as Id.MessageId)), isThere)
              if (isThere) assert.strictEqual(withdrawn.pop(), message.id)
              assert.deepStrictEqual(withdrawn, [])
              unread = unread.filter((other) => other !== message)
            } else {
              const later = one.later && new Set(one.later.flatMap((at) => all[at]?.id ?? []))
              const lead = one.lead === undefined ? undefined : all[one.lead]
              const isNow = (message: Message) => later?.has(message.id) !== true
              const led = lane("queue").filter((message) => message === lead)
              const steering = lane("steer").filter(isNow)
              const words = [...led, ...steering]
              const expected = take(words.length > 0 ? words : lane("queue").filter(isNow).slice(0, 1))
              assert.deepStrictEqual(inbox.takeTurn(lead?.id, later), expected)
            }
            assert.deepStrictEqual(inbox.peek(), [...lane("steer"), ...lane("queue"), ...lane("along")])
            assert.strictEqual(inbox.hasSteering(), lane("steer").length > 0)
            assert.strictEqual(inbox.hasForStep(), lane("steer").length + lane("along").length > 0)
            assert.strictEqual(inbox.isEmpty(), lane("steer").length + lane("queue").length === 0)
          }
          assert.deepStrictEqual(
            filed.map(({ text }) => text),
            all.slice(before.length).map(({ text }) => text)
          )
        }
      ),
      { numRuns: Runs.of(4_000) }
    )
  })
})

describe("a child's end of its parent's inbox", () => {
  const why = new InteractionCancelled({ requestId: "r1" as Id.RequestId })

  it.effect("brings questions and withdrawals to the mediator, and its parent's words stay apart", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      const request = yield* InteractionSample.request(InteractionSample.samples.Ask.interaction)
      const raised = new ChildRequestQueue.ChildRequest(request, {}, () => {})
      inbox.childPort.ask(raised)
      const taken = inbox.childPort.withdraw("r1", why)
      assert.isTrue(inbox.isEmpty())
      assert.deepStrictEqual(yield* inbox.requests.take, [
        ChildRequestQueue.Ask({ raised }),
        ChildRequestQueue.Withdraw({ requestId: "r1", why, taken })
      ])
      const seen: Array<string> = []
      taken.observe(() => seen.push("taken"))
      assert.deepStrictEqual(seen, [])
    })
  )

  it.effect("lets no child wait when the mediator is gone, before or after the withdrawal", () =>
    Effect.gen(function* () {
      const inbox = yield* make
      const seen: Array<string> = []
      const request = yield* InteractionSample.request(InteractionSample.samples.Ask.interaction)
      const raised = new ChildRequestQueue.ChildRequest(request, {}, () => {})
      inbox.childPort.ask(raised)
      inbox.childPort.withdraw("r1", why).observe(() => seen.push("r1"))
      inbox.requests.close()
      assert.deepStrictEqual(seen, ["r1"])
      inbox.childPort.withdraw("r2", why).observe(() => seen.push("r2"))
      assert.deepStrictEqual(seen, ["r1", "r2"])
      assert.isTrue(raised.isOpen, "its child ends it")
    })
  )
})
