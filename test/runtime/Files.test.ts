/** Files from their caller to the model: in memory, kept, resumed, made shorter; and what is told of them. */
import type * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as FastCheck from "fast-check"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as AttachedFile from "../../src/conversation/AttachedFile.js"
import * as Digest from "../../src/core/Digest.js"
import * as Input from "../../src/inbox/Input.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as Replay from "../../src/journal/Replay.js"
import * as SessionArchive from "../../src/journal/SessionArchive.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as StoreError from "../../src/journal/StoreError.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as FileSample from "../kit/FileSample.js"
import * as Kit from "../kit/session.js"

const picture = Input.image(FileSample.png(), { name: "shot.png" })
const sha256 = Digest.sha256(FileSample.png())
const described = { name: "shot.png", mediaType: "image/png", size: FileSample.png().length, sha256 }

const memory = Effect.map(SessionStore.makeMemory, (open) => ({
  first: open({ pid: 1, host: "here", isAlive: () => true }),
  second: open({ pid: 2, host: "here", isAlive: () => true })
}))

/** The parts of a person's messages, as a model sees them. */
const seen = (messages: ReadonlyArray<Prompt.Message> | undefined) =>
  (messages ?? []).flatMap((message) =>
    message.role !== "user"
      ? []
      : [
          message.content.map((part) =>
            part.type === "text"
              ? part.text
              : part.data instanceof Uint8Array
                ? `${part.fileName} ${part.mediaType} ${Digest.sha256(part.data) === sha256 ? "whole" : "other"}`
                : `${part.fileName} ${String(part.data)}`
          )
        ]
  )

const whole = "shot.png image/png whole"

describe("a message with files", () => {
  it.scoped("reaches the model in its order, by every way words take", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "a" }, { text: "b" }, { text: "c" }, { text: "d" }, { text: "e" })
      const { agent } = yield* Kit.start({ model })
      assert.strictEqual((yield* agent.run(["before", picture, "after"]))._tag, "Completed")
      yield* agent.send([picture])
      yield* agent.awaitIdle
      yield* agent.enqueue(["queued", picture])
      yield* agent.awaitIdle
      yield* agent.turn(["turn", picture])
      yield* agent.broadcast(["all", picture], ["main"])
      yield* agent.awaitIdle
      assert.deepStrictEqual(seen(heard.at(-1)?.messages), [
        ["before", whole, "after"],
        [whole],
        ["queued", whole],
        ["turn", whole],
        ["all", whole]
      ])
    })
  )

  it.scoped("reaches a turn that works, and is told with it", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(Kit.halting([Kit.text("I am")], begun), { text: "I see" })
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* Deferred.await(begun)
      yield* kit.agent.send(["Look at this instead", picture])
      yield* Fiber.join(running)
      assert.deepStrictEqual(seen(heard.at(-1)?.messages), [["go"], ["Look at this instead", whole]])
      assert.deepStrictEqual(
        (yield* kit.of("UserInterjected")).map(({ attachments, message }) => [message, attachments]),
        [["Look at this instead", [described]]]
      )
    })
  )

  it.scoped("is refused in a sentence before anything is filed or written", () =>
    Effect.gen(function* () {
      const { first } = yield* memory
      const { heard, model } = Kit.replies({ text: "a" })
      const persistence = yield* Persistence.begin(first)
      const { agent } = yield* Kit.start({
        model: { ...model, inputs: ["image/jpeg", "text/*"] },
        agent: { persistence, limits: { inputFileBytes: 50_000 } }
      })
      const bad: ReadonlyArray<readonly [Input.Part, string]> = [
        [
          picture,
          "The model test/replies takes no image/png (shot.png). It takes image/jpeg, text/*; choose another model, or convert the file."
        ],
        [
          Input.image(FileSample.jpeg().slice(0, 12), { name: "cut.jpg" }),
          "cut.jpg cannot be read as image/jpeg: it is cut off."
        ],
        [Input.fromBytes(new Uint8Array(50_001), { name: "big" }), "big is larger than 50 kB, and is not taken."]
      ]
      for (const [part, says] of bad) {
        for (const refused of [
          Effect.asVoid(agent.run(["go", part])),
          Effect.asVoid(agent.send([part])),
          Effect.asVoid(agent.enqueue([part])),
          Effect.asVoid(agent.turn([part]))
        ]) {
          const error = yield* Effect.flip(refused)
          assert.strictEqual(error._tag, "InputRefused")
          assert.strictEqual(String(error), `InputRefused: ${says}`)
        }
      }
      assert.deepStrictEqual(heard, [])
      assert.isTrue(yield* agent.isIdle)
      yield* persistence.journal.flush
      assert.deepStrictEqual(yield* first.list, [])
      assert.strictEqual((yield* Effect.flip(agent.run([" "])))._tag, "MessageBlank")
      assert.strictEqual(
        (yield* agent.run([Input.fromBytes(FileSample.text("ok"), { name: "a.txt" })]))._tag,
        "Completed"
      )
    })
  )

  it.scoped("is told to a model that cannot read it, when that was chosen later", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "a" }, { text: "b" })
      const { agent } = yield* Kit.start({ model })
      yield* agent.run(["Look", picture])
      yield* agent.setModel({ ...model, inputs: [] })
      yield* agent.run("And now?")
      assert.deepStrictEqual(seen(heard.at(-1)?.messages), [
        ["Look", `[Attached: shot.png (image/png, ${described.size} bytes); this model cannot read it]`],
        ["And now?"]
      ])
    })
  )

  it.scoped("is in no event, audit, log or journal but by name, type, size and digest", () =>
    Effect.gen(function* () {
      const { first } = yield* memory
      const logged: Array<unknown> = []
      const records: Array<unknown> = []
      const canary = Input.fromBytes(FileSample.pdf("canary-canary-canary"), { name: "paper.pdf" })
      const kit = yield* Kit.start({
        model: [{ tools: [{ name: "work", params: { name: "a" } }] }, { text: "done" }],
        person: ["y"],
        agent: { persistence: yield* Persistence.begin(first) }
      }).pipe(
        Effect.provide(Logger.add(Logger.make(({ message }) => void logged.push(message)))),
        Effect.provideService(AuditTrail.AuditTrail, {
          ...AuditTrail.noop,
          record: (record) => Effect.sync(() => void records.push(record))
        })
      )
      yield* kit.agent.run(["Read", canary])
      const entries = (yield* first.load(kit.agent.id)).entries
      const events = yield* kit.events
      const sinks = JSON.stringify([logged, records, events, entries, yield* first.list])
      const bytes = FileSample.pdf("canary-canary-canary")
      for (const secret of [
        "canary-canary",
        Encoding.encodeBase64(bytes).slice(8, 40),
        JSON.stringify([...bytes]).slice(1, 60)
      ]) {
        assert.notInclude(sinks, secret)
      }
      const started = events.flatMap((event) => (event._tag === "TurnStarted" ? [event] : []))
      assert.deepInclude(started[0], {
        input: "Read",
        attachments: [
          { name: "paper.pdf", mediaType: "application/pdf", size: bytes.length, sha256: Digest.sha256(bytes) }
        ]
      })
      // A replay tells the same.
      const replayed = Replay.events(entries).flatMap((event) => (event._tag === "TurnStarted" ? [event] : []))
      assert.deepStrictEqual(
        replayed.map(({ attachments, input }) => ({ attachments, input })),
        started.map(({ attachments, input }) => ({ attachments, input }))
      )
    })
  )
})

describe("a resumed session", () => {
  /** A first life that ends as it stands, and what the model of the second is given. */
  const lives = (
    first: (agent: Kit.Started["agent"]) => Effect.Effect<unknown, unknown>,
    compaction?: CompactionConfig.CompactionConfig
  ) =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { model } = Kit.replies({ text: "a" }, { text: "b" }, { text: "c" })
      const persistence = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.begin(stores.first)
          const { agent } = yield* Kit.start({ model, agent: { persistence }, runtime: { compaction } })
          yield* first(agent)
          return persistence
        })
      )
      const { heard, model: next } = Kit.replies({ text: "d" }, { text: "e" })
      const again = yield* Persistence.resume(stores.second, persistence.rootSessionId)
      const kit = yield* Kit.start({ model: next, agent: { persistence: again } })
      return { ...stores, heard, kit, id: persistence.rootSessionId }
    })

  it.scoped("gives the model its files again, out of the store", () =>
    Effect.gen(function* () {
      const { heard, kit, first, id } = yield* lives((agent) => agent.run(["Look", picture, "well"]))
      yield* kit.agent.run("Again")
      assert.deepStrictEqual(seen(heard[0]?.messages), [["Look", whole, "well"], ["Again"]])
      assert.deepStrictEqual(yield* first.getContent(sha256), FileSample.png())
      const { entries } = yield* first.load(id)
      assert.deepStrictEqual(JournalEntry.contentsIn(entries.map(({ entry }) => entry)), [sha256])
    })
  )

  it.scoped("has files that no turn has read yet", () =>
    Effect.gen(function* () {
      const { heard, kit } = yield* lives((agent) => Effect.zipRight(agent.enqueue(["Later", picture]), Effect.void))
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(seen(heard[0]?.messages).at(-1), ["Later", whole])
    })
  )

  it.scoped("says of a file that its store has lost that it is gone", () =>
    Effect.gen(function* () {
      const { first, id } = yield* lives((agent) => agent.run(["Look", picture]))
      const lossy: SessionStore.Service = {
        ...first,
        getContent: (sha256) => Effect.fail(new StoreError.ContentUnknown({ sha256 }))
      }
      const fork = yield* Persistence.fork(lossy, id)
      const { heard, model } = Kit.replies({ text: "d" })
      const kit = yield* Kit.start({ model, agent: { persistence: fork } })
      yield* kit.agent.run("Again")
      assert.deepStrictEqual(seen(heard[0]?.messages)[0], [
        "Look",
        `[Attached: shot.png (image/png, ${described.size} bytes); the store no longer has its content]`
      ])
    })
  )

  it.scoped("and a fork of it have the file after a compaction that kept it, which wrote no bytes", () =>
    Effect.gen(function* () {
      const config = { ...CompactionConfig.defaults, preserveRecentTurns: 1 }
      const { first, heard, kit, id } = yield* lives(
        (agent) =>
          Effect.gen(function* () {
            yield* agent.run("first of all, words ".repeat(40))
            yield* agent.run(["Look", picture])
            yield* agent.compact
          }),
        config
      )
      yield* kit.agent.run("Again")
      assert.deepStrictEqual(seen(heard[0]?.messages), [["Look", whole], ["Again"]])
      const { entries } = yield* first.load(id)
      const replaced = entries.map(({ entry }) => entry).filter(({ _tag }) => _tag === "HistoryReplaced")
      assert.lengthOf(replaced, 1)
      assert.deepStrictEqual(JournalEntry.contentsIn(replaced), [sha256])
      assert.notInclude(
        JSON.stringify(replaced.map(JournalEntry.encode)),
        Encoding.encodeBase64(FileSample.png()).slice(0, 30)
      )
      const fork = yield* Persistence.fork(first, id)
      const { heard: heardByFork, model } = Kit.replies({ text: "f" })
      const forked = yield* Kit.start({ model, agent: { persistence: fork } })
      yield* forked.agent.run("Otherwise")
      assert.deepStrictEqual(seen(heardByFork[0]?.messages)[0], ["Look", whole])
    })
  )
})

describe("a compaction", () => {
  it.scoped("leaves a note of the files that go, whatever the summary says", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "a" }, { text: "b" }, { text: "They spoke." }, { text: "c" })
      const { agent } = yield* Kit.start({
        model,
        runtime: { compaction: { ...CompactionConfig.defaults, type: "summarize", preserveRecentTurns: 1 } }
      })
      yield* agent.run(["Look at all this ".repeat(40), picture])
      yield* agent.run("and then?")
      yield* agent.compact
      const note = `[Attached: shot.png (image/png, ${described.size} bytes)]`
      assert.include(JSON.stringify(heard[2]?.messages), note)
      yield* agent.run("go on")
      const [summary = [], ...rest] = seen(heard.at(-1)?.messages)
      assert.include(summary[0], "They spoke.")
      assert.include(summary[0], note)
      assert.deepStrictEqual(rest, [["and then?"], ["go on"]])
    })
  )

  it("counts files about as providers do", () => {
    const part = (bytes: Uint8Array, mediaType: string) =>
      AttachedFile.parts([{ type: "file", file: { ...described, mediaType }, bytes }], (text) => text)
    const weigh = (bytes: Uint8Array, mediaType: string) =>
      part(bytes, mediaType).reduce((sum, one) => sum + (one.type === "file" ? AttachedFile.weigh(one) : 0), 0)
    assert.strictEqual(weigh(FileSample.png(1, 1), "image/png"), 16)
    assert.strictEqual(weigh(FileSample.png(750, 400), "image/png"), 400)
    assert.strictEqual(weigh(FileSample.png(4_000, 3_000), "image/png"), 1_600)
    assert.strictEqual(weigh(FileSample.text("x".repeat(4_000)), "text/plain"), 1_000)
    assert.strictEqual(weigh(FileSample.pdf(), "application/pdf"), 2_500)
  })
})

describe("any parts", () => {
  const parts = FastCheck.array(
    FastCheck.oneof(
      FastCheck.string({ minLength: 1 }).map((words): Input.Part => words),
      FastCheck.constantFrom(...FileSample.all).map(([mediaType, name, bytes]): Input.Part =>
        Input.fromBytes(bytes, { mediaType, name })
      ),
      FastCheck.nat(200).map((salt): Input.Part => Input.image(FileSample.png(2, 2, salt))),
      FastCheck.string({ minLength: 1 }).map((words): Input.Part =>
        Input.fromBytes(FileSample.text(`x${words.replaceAll("\0", "")}`))
      )
    ),
    { minLength: 1, maxLength: 6 }
  )

  it.effect.prop(
    "are the same through journal, export, import and resume",
    [FastCheck.array(parts, { minLength: 1, maxLength: 3 })],
    ([messages]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { first } = yield* memory
          const { heard, model } = Kit.replies(...messages.map(() => ({ text: "ok" })))
          const { agent, persistence } = yield* Effect.scoped(
            Effect.gen(function* () {
              const persistence = yield* Persistence.begin(first)
              const { agent } = yield* Kit.start({ model, agent: { persistence } })
              for (const input of messages) yield* Effect.ignore(agent.run(input))
              return { agent, persistence }
            })
          )
          const before = agent.history.messages.filter(({ role }) => role === "user").map(({ content }) => content)
          if (heard.length === 0) return
          const exported = JSON.parse(
            JSON.stringify(yield* SessionStore.toJson(yield* SessionArchive.load(first, persistence.rootSessionId)))
          )
          const { second } = yield* memory
          yield* SessionArchive.restore(second, yield* SessionArchive.decode(exported))
          const resumed = yield* Persistence.resume(second, persistence.rootSessionId)
          const after = resumed.restored?.sessions[0]?.history.filter(({ role }) => role === "user")
          assert.deepStrictEqual(
            after?.map(({ content }) => content),
            before
          )
        })
      )
  )
})
