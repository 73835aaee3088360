/** A provider that refuses a file: the session goes on without it, also in another process, and no other file goes. */
import type * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Input from "../../src/inbox/Input.js"
import * as Replay from "../../src/journal/Replay.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Model from "../../src/model/Model.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as FileSample from "../kit/FileSample.js"
import * as Kit from "../kit/session.js"

const good = Input.image(FileSample.png(), { name: "good.png" })
const bad = Input.image(FileSample.png(3, 3, 7), { name: "bad.png" })

const message = "picky/one: the provider refused the request (400: Could not process image). Check the request."
const refusal = (status?: number) =>
  new Model.Refused({ model: "picky/one", message, ...(status === undefined ? {} : { status }) })

/** What a person said, as this request has it. */
const seen = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap(({ content, role }) =>
    role !== "user" ? [] : content.map((part) => (part.type === "text" ? part.text : `<${part.fileName}>`))
  )

const note = (name: string, isOneOf = false) =>
  `[Attached: ${name} (image/png, ${(name === "bad.png" ? FileSample.png(3, 3, 7) : FileSample.png()).length} bytes); the provider refused it${isOneOf ? ", or a file beside it" : ""}]`

/** Answers where `refuses` gives no failure for what it is sent. */
const picky = (refuses: (said: ReadonlyArray<string>) => Model.ModelError | undefined) => {
  const heard: Array<ReadonlyArray<string>> = []
  const model: Model.Service = {
    id: "picky/one",
    stream: ({ prompt }) =>
      Stream.suspend(() => {
        const said = seen(prompt.content)
        heard.push(said)
        const failure = refuses(said)
        return failure === undefined ? Kit.parts({ text: `answer ${heard.length}` }) : Stream.fail(failure)
      })
  }
  return { heard, model }
}

const refusesBad = (said: ReadonlyArray<string>) => (said.includes("<bad.png>") ? refusal(400) : undefined)

describe("a file that the provider refuses", () => {
  it.scoped("is left out: the turn is answered, the model is told, and people are", () =>
    Effect.gen(function* () {
      const { heard, model } = picky(refusesBad)
      const kit = yield* Kit.start({ model })
      assert.strictEqual((yield* kit.agent.run(["First", good]))._tag, "Completed")
      const end = yield* kit.agent.run(["Look", bad])
      assert.deepInclude(end, { _tag: "Completed", text: "answer 3" })
      yield* kit.agent.run("And now?")
      assert.deepStrictEqual(heard.slice(1), [
        ["First", "<good.png>", "Look", "<bad.png>"],
        ["First", "<good.png>", "Look", note("bad.png")],
        ["First", "<good.png>", "Look", note("bad.png"), "And now?"]
      ])
      assert.deepStrictEqual(
        (yield* kit.of("AgentError")).map((event) => event.message),
        [`${message} Asking again without bad.png.`]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("stays left out in another process, and a replay tells of no compaction", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const first = open({ pid: 1, host: "here", isAlive: () => true })
      const second = open({ pid: 2, host: "here", isAlive: () => true })
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.begin(first)
          const { agent } = yield* Kit.start({ model: picky(refusesBad).model, agent: { persistence } })
          yield* agent.run(["Look", good, bad])
          return persistence.rootSessionId
        })
      )
      const { heard, model } = picky(refusesBad)
      const kit = yield* Kit.start({ model, agent: { persistence: yield* Persistence.resume(second, id) } })
      yield* kit.agent.run("Again")
      assert.deepStrictEqual(heard, [["Look", note("good.png", true), note("bad.png", true), "Again"]])
      const { entries } = yield* second.load(id)
      assert.deepStrictEqual(
        entries.flatMap(({ entry }) => (entry._tag === "HistoryReplaced" ? [entry.reason] : [])),
        ["files_refused"]
      )
      assert.notInclude(
        Replay.events(entries).map(({ _tag }) => _tag),
        "CompactionStarted"
      )
    })
  )

  it.scoped("is found among earlier ones when none came since the last answer", () =>
    Effect.gen(function* () {
      const lenient = picky(() => undefined)
      const { heard, model } = picky(refusesBad)
      const { agent } = yield* Kit.start({ model: lenient.model })
      yield* agent.run(["Look", bad])
      yield* agent.setModel(model)
      assert.strictEqual((yield* agent.run("And now?"))._tag, "Completed")
      assert.deepStrictEqual(heard, [
        ["Look", "<bad.png>", "And now?"],
        ["Look", note("bad.png"), "And now?"]
      ])
    })
  )

  it.scoped("may stay where the request is refused without it too: the first reason is the turn's", () =>
    Effect.gen(function* () {
      let isDown = true
      const { heard, model } = picky((said) =>
        !isDown
          ? undefined
          : said.includes("<good.png>")
            ? refusal(400)
            : new Model.Refused({ model: "x", message: "other" })
      )
      const { agent } = yield* Kit.start({ model })
      assert.deepInclude(yield* agent.run(["Look", good]), { _tag: "Failed", error: message })
      isDown = false
      yield* agent.run("And now?")
      assert.deepStrictEqual(heard, [
        ["Look", "<good.png>"],
        ["Look", note("good.png")],
        ["Look", "<good.png>", "And now?"]
      ])
    })
  )

  it.scoped("is not thought of where the reason is another", () =>
    Effect.gen(function* () {
      const fields = { model: "x", message: "no" }
      const reasons: ReadonlyArray<readonly [Model.ModelError, asked: number]> = [
        [refusal(400), 2],
        [refusal(415), 2],
        [refusal(422), 2],
        [refusal(), 2],
        [new Model.Overloaded({ ...fields, message: "image input is not supported", status: 500 }), 2],
        [new Model.Overloaded({ ...fields, status: 500 }), 1],
        [refusal(404), 1],
        [refusal(429), 1],
        [new Model.Unauthorized({ ...fields, status: 401 }), 1],
        [new Model.RateLimited({ ...fields, status: 429 }), 1],
        [new Model.Overloaded({ ...fields, status: 529 }), 1],
        [new Model.Network(fields), 1],
        [new Model.Unreachable(fields), 1],
        [new Model.BadOutput(fields), 1]
      ]
      for (const [reason, asked] of reasons) {
        const { heard, model } = picky(() => reason)
        const { agent } = yield* Kit.start({ model, agent: { limits: { modelAttempts: 1 } } })
        assert.strictEqual((yield* agent.run(["Look", good]))._tag, "Failed")
        assert.lengthOf(heard, asked, `${reason._tag} ${"status" in reason ? reason.status : ""}`)
        const { agent: plain } = yield* Kit.start({ model, agent: { limits: { modelAttempts: 1 } } })
        heard.length = 0
        yield* plain.run("No file")
        assert.lengthOf(heard, 1)
      }
    })
  )

  it.scoped("leaves after a request that is too long with it alone", () =>
    Effect.gen(function* () {
      const { heard, model } = picky((said) =>
        said.some((part) => part.startsWith("<")) ? new Model.ContextTooLong({ model: "x", message: "413" }) : undefined
      )
      const { agent } = yield* Kit.start({ model })
      assert.strictEqual((yield* agent.run(["Look", good]))._tag, "Completed")
      assert.notInclude(heard.at(-1)?.join(" "), "<good.png>")
    })
  )

  it.scoped("does not go where words cut off the second request, and the next one is refused too", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(
        Stream.fail(refusal(400)),
        Kit.halting([], begun),
        Stream.fail(new Model.Refused({ model: "x", message: "other", status: 400 })),
        { text: "and on" }
      )
      const { agent } = yield* Kit.start({ model })
      const running = yield* Effect.fork(agent.run(["Look", bad]))
      yield* Deferred.await(begun)
      yield* agent.send("Quickly")
      assert.deepInclude(yield* Fiber.join(running), { _tag: "Failed", error: message })
      yield* agent.run("Next")
      assert.deepStrictEqual(seen(heard.at(-1)?.messages ?? []), ["Look", "<bad.png>", "Quickly", "Next"])
    })
  )

  it.scoped("stays withheld when words cut off the second request before it said anything", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(
        Stream.fail(refusal(400)),
        Kit.halting([], begun),
        { text: "I see" },
        { text: "and on" }
      )
      const { agent } = yield* Kit.start({ model })
      const running = yield* Effect.fork(agent.run(["Look", bad]))
      yield* Deferred.await(begun)
      yield* agent.send("Quickly")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      yield* agent.run("Next")
      assert.deepStrictEqual(
        heard.map(({ messages }) => seen(messages)),
        [
          ["Look", "<bad.png>"],
          ["Look", note("bad.png")],
          ["Look", note("bad.png"), "Quickly"],
          ["Look", note("bad.png"), "Quickly", "Next"]
        ]
      )
    })
  )
})
