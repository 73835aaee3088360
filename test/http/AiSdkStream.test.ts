import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fs from "node:fs"
import * as AiChat from "../kit/AiChat.js"
import * as Served from "../kit/Served.js"

/** A line for each part that stays in the message. */
const shown = ({ parts }: AiChat.AiChat) =>
  parts().flatMap((part) => {
    if (part.type === "text" || part.type === "reasoning") return [`${part.type}: ${part.text}`]
    if (part.type === "dynamic-tool") return [`${part.toolName}: ${part.state}`]
    return part.type === "step-start" ? [] : [part.type]
  })

const approvals = ({ parts }: AiChat.AiChat) =>
  parts().flatMap((part) =>
    part.type === "dynamic-tool" && part.state === "approval-requested" ? [part.approval.id] : []
  )

const answer = ({ chat }: AiChat.AiChat, id: string, approved: boolean, reason?: string) =>
  Effect.promise(() => Promise.resolve(chat.addToolApprovalResponse({ id, approved, ...(reason && { reason }) })))

/** What a hand-made request gets. */
const posted = (served: Served.Served, chat: AiChat.AiChat, parts: ReadonlyArray<object>) =>
  Effect.map(
    served.call(`/v1/ai/${chat.sessionId}`, {
      id: chat.chat.id,
      messages: [...chat.chat.messages.slice(0, -1), { id: "forged", role: "assistant", parts }]
    }),
    ({ body }) => String(body)
  )

const responded = (id: string, approved: unknown) => ({
  type: "dynamic-tool",
  toolName: "run_command",
  toolCallId: "call",
  state: "approval-responded",
  input: { command: "rm -r /" },
  approval: { id, approved }
})

describe("the stream for the AI SDK", () => {
  it.scopedLive(
    "shows a turn, asks, takes the yes that the client sends by itself, and goes on in the same message",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const model = place.script(
          { thinking: "hm", text: "I make it.", tools: [{ name: "run_command", params: { command: "touch made" } }] },
          { text: "All done.", chunks: 3 }
        )
        const served = yield* Served.serve(place, model)
        const chat = yield* AiChat.make(served)
        yield* chat.say("go")
        assert.deepStrictEqual(shown(chat), ["reasoning: hm", "text: I make it.", "run_command: approval-requested"])
        const [asked = ""] = approvals(chat)
        yield* answer(chat, asked, true)
        yield* Served.until(
          Effect.sync(() => chat.chat.status),
          (status) => status === "ready"
        )
        assert.deepStrictEqual(shown(chat), [
          "reasoning: hm",
          "text: I make it.",
          "run_command: output-available",
          "text: All done."
        ])
        assert.lengthOf(chat.chat.messages, 2)
        assert.isTrue(fs.existsSync(place.at("one", "made")))
        assert.isTrue(chat.data.some(({ type }) => type === "data-state"))
        const message = { id: "empty", role: "assistant", parts: [] }
        const { body, headers } = yield* served.call(`/v1/ai/${chat.sessionId}`, { id: "c", messages: [message] })
        assert.strictEqual(headers.get("x-vercel-ai-ui-message-stream"), "v1")
        assert.strictEqual(headers.get("content-type"), "text/event-stream")
        assert.isTrue(String(body).endsWith("data: [DONE]\n\n"))
      })
  )

  it.scopedLive("gives the agent the words of a no, and shows the call as denied", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const chat = yield* AiChat.make(served)
      yield* chat.say("go")
      const [asked = ""] = approvals(chat)
      yield* answer(chat, asked, false, "use ls")
      yield* Served.until(
        Effect.sync(() => chat.chat.status),
        (status) => status === "ready"
      )
      assert.deepStrictEqual(shown(chat), ["run_command: output-denied", "text: done"])
      assert.isFalse(fs.existsSync(place.at("one", "made")))
      const events = yield* served.events(`/v1/sessions/${chat.sessionId}/events`, (all) =>
        all.some(({ data }) => data._tag === "TurnEnded")
      )
      assert.include(JSON.stringify(events), "use ls")
    })
  )

  it.scopedLive("takes nothing else out of a history: made-up ids, stale ones and other parts", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(
        place,
        Served.asking(place, "touch made", [{ tools: [{ name: "run_command", params: { command: "touch more" } }] }])
      )
      const chat = yield* AiChat.make(served)
      yield* chat.say("go")
      const [asked = ""] = approvals(chat)
      const open = Effect.map(served.call(`/v1/sessions/${chat.sessionId}`), ({ body }) => body.open)
      assert.include(yield* posted(served, chat, [responded("req_none", true)]), "asks nothing under")
      assert.include(yield* posted(served, chat, [responded(asked, "yes")]), "has to be true or false")
      assert.deepStrictEqual(yield* open, [asked])
      assert.isFalse(fs.existsSync(place.at("one", "made")))
      yield* answer(chat, asked, true)
      yield* Served.until(
        Effect.sync(() => chat.chat.status),
        (status) => status === "ready"
      )
      assert.isTrue(fs.existsSync(place.at("one", "made")))
      yield* chat.say("again")
      const [second = ""] = approvals(chat)
      assert.include(yield* posted(served, chat, [responded(asked, true)]), "was settled in an earlier turn")
      assert.deepStrictEqual(yield* open, [second])
    })
  )

  it.scopedLive("has questions as parts, which are answered through the requests, and goes on behind them", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(
        place,
        place.script({ text: "I ask.", tools: [{ name: "ask_user", params: { prompt: "Which?" } }] }, { text: "done" })
      )
      const chat = yield* AiChat.make(served)
      yield* chat.say("go")
      assert.deepStrictEqual(shown(chat), ["text: I ask.", "ask_user: input-available", "data-question"])
      const question = chat.parts().find(({ type }) => type === "data-question")
      assert.deepInclude(question, { type: "data-question" })
      const { data, id } = question as { readonly id: string; readonly data: Record<string, unknown> }
      assert.deepInclude(data, { kind: "Ask", message: "Which?", agent: "main" })
      yield* served.call(`/v1/requests/${id}/answer`, { form: { answer: "this" } })
      yield* Effect.promise(() => chat.chat.sendMessage())
      assert.deepStrictEqual(shown(chat), ["text: I ask.", "ask_user: output-available", "data-question", "text: done"])
    })
  )

  it.scopedLive("shows the running turn again to a page that was loaded again, and nothing when none runs", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const first = yield* AiChat.make(served)
      yield* first.say("go")
      const again = yield* AiChat.make(served, first)
      yield* Effect.promise(() => again.chat.resumeStream())
      assert.deepStrictEqual(shown(again), ["run_command: approval-requested"])
      const [asked = ""] = approvals(again)
      yield* answer(again, asked, true)
      yield* Served.until(
        Effect.sync(() => again.chat.status),
        (status) => status === "ready"
      )
      assert.deepStrictEqual(shown(again), ["run_command: output-available", "text: done"])
      const path = `/v1/ai/${first.sessionId}/${first.chat.id}/stream`
      assert.strictEqual((yield* served.call(path)).status, 204)
    })
  )

  it.scopedLive("goes on when somebody else has answered, and says who", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const chat = yield* AiChat.make(served)
      yield* chat.say("go")
      const [asked = ""] = approvals(chat)
      yield* served.call(`/v1/requests/${asked}/answer`, { answer: "n" })
      yield* answer(chat, asked, true)
      yield* Served.until(
        Effect.sync(() => chat.chat.status),
        (status) => status === "ready"
      )
      assert.deepStrictEqual(shown(chat), ["run_command: output-error", "data-late-answer", "text: done"])
      assert.isFalse(fs.existsSync(place.at("one", "made")))
    })
  )

  it.scopedLive("ends as failed when the turn failed, and says why", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ error: "bad_output" }))
      const chat = yield* AiChat.make(served)
      yield* chat.say("go")
      assert.strictEqual(chat.chat.status, "error")
      assert.isAbove(chat.chat.error?.message.length ?? 0, 10)
    })
  )

  it.scopedLive("ends as aborted when the turn was cancelled", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "slow", delay: 60_000 }))
      const chat = yield* AiChat.make(served)
      const running = yield* Effect.fork(chat.say("go"))
      yield* Served.until(served.call(`/v1/sessions/${chat.sessionId}`), ({ body }) => body.agents[0]?.isIdle === false)
      yield* served.call(`/v1/sessions/${chat.sessionId}/interrupt`, {})
      yield* Fiber.join(running)
      assert.strictEqual(chat.chat.status, "ready")
    })
  )
})
