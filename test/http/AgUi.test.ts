import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as Redaction from "../../src/core/Redaction.js"
import * as AgUi from "../../src/http/AgUi.js"
import type * as Api from "../../src/http/Api.js"
import * as ResumePayload from "../../src/http/ResumePayload.js"
import type { Piece } from "../../src/http/RunProjection.js"
import * as Form from "../../src/interaction/Form.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as AgUiRules from "../kit/AgUiRules.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Served from "../kit/Served.js"

const input = { threadId: "t", runId: "r", protocolVersion: "1.0", messages: [] }

const events = (pieces: ReadonlyArray<Piece>, from: Api.RunAgentInput = input) =>
  Effect.map(Stream.runCollect(AgUi.events(Stream.fromIterable(pieces), from)), (all) =>
    Array.from(all, (event) => JSON.parse(JSON.stringify(event)))
  )

/** The events of a run, as they come over the wire. */
const run = (
  served: Served.Served,
  sessionId: string,
  body: { readonly say?: string; readonly id?: string; readonly resume?: ReadonlyArray<object> },
  more: object = {}
) =>
  Effect.map(
    served.call(`/v1/agui/${sessionId}`, {
      ...input,
      messages: body.say === undefined ? [] : [{ id: body.id ?? `m-${body.say}`, role: "user", content: body.say }],
      ...(body.resume === undefined ? {} : { resume: body.resume }),
      ...more
    }),
    (answer) => ({
      status: answer.status,
      events: String(answer.body)
        .split("\n\n")
        .flatMap(Served.parse)
        .map(({ data }) => data as AgUi.Event & { readonly [field: string]: any })
    })
  )

const resolved = (interruptId: string, payload: unknown) => ({ interruptId, status: "resolved", payload })

const interruptsOf = (events: ReadonlyArray<any>) => events.at(-1).outcome.interrupts

describe("an interrupt", () => {
  it.effect("has, for each kind, a schema whose answers are answers, and a sentence", () =>
    Effect.gen(function* () {
      for (const { answer, interaction } of Object.values(InteractionSample.samples)) {
        const request = yield* InteractionSample.request(interaction)
        const [, finished] = yield* events([
          { _tag: "Interrupted", requests: [{ request, redactor: Redaction.shapesOnly, child: "child" }] }
        ])
        const [interrupt] = finished.outcome.interrupts
        assert.deepInclude(interrupt, { id: request.requestId, subagentRunId: "child" })
        assert.isAbove(interrupt.message.length, 2)
        const filled = Form.encode<Interaction.Interaction>(interaction, answer)
        const { _tag } = interaction
        if (_tag === "Auth.DeviceCode" || _tag === "Auth.Password") assert.isUndefined(interrupt.responseSchema)
        else assert.strictEqual(interrupt.responseSchema.type, "object")
        if (filled === undefined || _tag === "Approve") continue
        assert.deepStrictEqual(interrupt.responseSchema, Form.of(interaction)?.requestedSchema)
        assert.deepStrictEqual(
          ResumePayload.decode(interaction, filled),
          Either.right(Interaction.encodeAnswer<Interaction.Interaction>(interaction, answer))
        )
      }
    })
  )

  const approve = Interaction.approve({
    toolCallId: "call" as never,
    tool: "run_command",
    argumentsSummary: "touch a",
    approvalKey: "run_command",
    options: [],
    editable: { parameters: ["command"], format: "text", current: { command: "touch a" } }
  })

  it.each([
    [{ approved: true }, { decision: "allow", scope: "once" }],
    [
      { approved: true, scope: "session" },
      { decision: "allow", scope: "session" }
    ],
    [
      { approved: true, editedArgs: { command: "touch a" } },
      { decision: "allow", scope: "once" }
    ],
    [
      { approved: true, editedArgs: {} },
      { decision: "allow", scope: "once" }
    ],
    [
      { approved: true, editedArgs: { command: "touch b" } },
      { decision: "edit", editedArguments: { command: "touch b" } }
    ],
    [{ approved: false }, { decision: "deny", scope: "once" }],
    [
      { approved: false, comment: "no" },
      { decision: "deny", scope: "once", comment: "no" }
    ],
    [
      { approved: false, scope: "session" },
      { decision: "deny", scope: "session" }
    ]
  ])("about a call takes %j", (payload, answer) => {
    assert.deepStrictEqual(ResumePayload.decode(approve, payload), Either.right(answer))
  })

  it.each([
    [undefined, "It has to be an object"],
    ["yes", "It has to be an object"],
    [{}, '"approved" has to be true or false'],
    [{ approved: "true" }, '"approved" has to be true or false'],
    [{ approved: true, answer: 1 }, "unknown fields: answer"],
    [{ approved: true, scope: "ever" }, '"scope" has to be one of'],
    [{ approved: true, comment: "well" }, "Words go to the agent with a no only"],
    [{ approved: true, editedArgs: { other: 1 } }, "These arguments cannot be edited: other"],
    [{ approved: true, editedArgs: [] }, '"editedArgs" has to be an object'],
    [{ approved: true, scope: "session", editedArgs: { command: "b" } }, "allowed once only"],
    [{ approved: false, editedArgs: { command: "b" } }, "takes no edited arguments"],
    [{ approved: false, scope: "all" }, "A no holds for"]
  ])("about a call refuses %j", (payload, sentence) => {
    const decoded = ResumePayload.decode(approve, payload)
    assert.include(Either.isLeft(decoded) ? decoded.left : "taken", sentence)
  })

  it("about a call that is allowed once only offers no scope, and takes none", () => {
    const once = Interaction.approve({ ...approve, onceOnly: true })
    assert.notInclude(JSON.stringify(ResumePayload.schemaOf(once)), "scope")
    assert.isTrue(Either.isLeft(ResumePayload.decode(once, { approved: true, scope: "session" })))
  })
})

describe("the end of a run", () => {
  it.effect("tells clients of 0.x that a turn was cancelled in words that they know", () =>
    Effect.gen(function* () {
      const cancelled: Piece = { _tag: "Cancelled", detail: "by ada" }
      assert.deepInclude((yield* events([cancelled]))[1], { outcome: { type: "cancelled" } })
      const [started, finished] = yield* events([cancelled], { threadId: "t", runId: "r", messages: [] })
      assert.notProperty(started, "protocolVersion")
      assert.notProperty(finished, "outcome")
      assert.deepStrictEqual(finished.result, { reason: "cancelled", detail: "by ada" })
    })
  )

  it.effect("has the state as a snapshot, and then only what changed", () =>
    Effect.gen(function* () {
      const [, first, second, third] = yield* events([
        { _tag: "StateChanged", state: { mode: "ask", todos: [], gone: 1 } },
        { _tag: "StateChanged", state: { mode: "ask", todos: [], gone: 1 } },
        { _tag: "StateChanged", state: { mode: "plan", todos: [], come: 2 } },
        { _tag: "Finished" }
      ])
      assert.deepStrictEqual(first, { type: "STATE_SNAPSHOT", snapshot: { mode: "ask", todos: [], gone: 1 } })
      assert.deepStrictEqual(second, {
        type: "STATE_DELTA",
        delta: [
          { op: "replace", path: "/mode", value: "plan" },
          { op: "remove", path: "/gone" },
          { op: "add", path: "/come", value: 2 }
        ]
      })
      assert.strictEqual(third.type, "RUN_FINISHED")
    })
  )
})

describe("POST /v1/agui", () => {
  it.scopedLive("keeps the rules of the protocol from the first words to the end, over two runs", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      yield* served.call("/v1/sessions", { id: "mine" })
      const first = yield* run(served, "mine", { say: "go" })
      assert.strictEqual(first.status, 200)
      assert.deepStrictEqual(AgUiRules.problems(first.events), [])
      const [asked] = interruptsOf(first.events)
      assert.deepInclude(asked.metadata.assent.interaction, { _tag: "Approve", argumentsSummary: "touch made" })
      const second = yield* run(served, "mine", { resume: [resolved(asked.id, { approved: true })] })
      assert.deepStrictEqual(AgUiRules.problems(second.events), [])
      assert.deepStrictEqual(second.events.at(-1)?.["outcome"], { type: "success" })
      assert.isTrue(fs.existsSync(place.at("one", "made")))
      // The same answer again, by a page that missed the run.
      const again = yield* run(served, "mine", { resume: [resolved(asked.id, { approved: true })] })
      assert.deepStrictEqual(again.events.at(-1)?.["outcome"], { type: "success" })
      assert.notInclude(JSON.stringify(again.events), "LateAnswer")
    })
  )

  it.scopedLive("refuses what it cannot begin, in the client's own terms", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      yield* served.call("/v1/sessions", { id: "mine" })
      assert.strictEqual((yield* served.call("/v1/agui/none", { ...input })).status, 404)
      for (const body of [{}, { ...input, messages: [{ role: "user" }] }, { ...input, resume: [{ interruptId: "r" }] }])
        assert.strictEqual((yield* served.call("/v1/agui/mine", body)).status, 400)
      const bad = [
        { content: 7, says: "has to be a text, or a list of parts" },
        { content: [{ type: "image", source: { type: "url", value: "http://x" } }], says: "has to be in the message" },
        { content: [{ type: "image", source: { type: "data", value: "§" } }], says: "no base64" },
        { content: "  ", says: "blank" }
      ]
      for (const { content, says } of bad) {
        const { events } = yield* run(served, "mine", {}, { messages: [{ id: "m", role: "user", content }] })
        assert.deepInclude(events.at(-1), { type: "RUN_ERROR", code: "not_taken" })
        assert.include(events.at(-1)?.["message"], says)
      }
      const first = yield* run(served, "mine", { say: "go", id: "m1" })
      assert.strictEqual(first.events.at(-1)?.["outcome"].type, "interrupt")
      const other = yield* run(served, "mine", { say: "something else", id: "m1" })
      assert.strictEqual(other.status, 409)
      const history = (size: number) =>
        run(served, "mine", {}, { messages: [{ id: "a", role: "assistant", content: "x".repeat(size) }] })
      assert.strictEqual((yield* history(2_000_000)).events.at(-1)?.["outcome"].type, "interrupt")
      assert.strictEqual((yield* history(4_200_000)).status, 413)
      // Neither a state nor a tool of the page gives the agent anything.
      const { body } = yield* served.call("/v1/sessions/mine")
      assert.strictEqual(body.mode, "ask")
    })
  )

  it.scopedLive("takes no request of another session", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId } = yield* Served.question(served)
      yield* served.call("/v1/sessions", { id: "other" })
      const { events } = yield* run(served, "other", { resume: [resolved(requestId, { approved: true })] })
      assert.deepInclude(events.at(-1), { type: "RUN_ERROR", code: "unknown_interrupt" })
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
    })
  )

  it.scopedLive("files a vote, and goes on until the others have voted", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.writeFileSync(
        place.at("config", "permissions.json"),
        JSON.stringify({
          approvals: [{ tools: ["run_command"], quorum: 2, roles: ["ops"] }],
          roles: { ops: ["ada", "grace"] }
        })
      )
      const served = yield* Served.serve(place, Served.asking(place))
      yield* served.call("/v1/sessions", { id: "mine" })
      const first = yield* run(served, "mine", { say: "go" })
      const [{ id }] = interruptsOf(first.events)
      const voting = yield* Effect.fork(run(served, "mine", { resume: [resolved(id, { approved: true })] }))
      const [session] = yield* Served.until(served.host.live, (live) => live.length === 1)
      yield* Served.until(
        served.events("/v1/sessions/mine/events", (all) => all.some(({ data }) => data._tag === "InteractionVoted")),
        () => true
      )
      assert.isTrue(Option.isNone(yield* Fiber.poll(voting)))
      yield* Effect.orDie(
        session?.agent.broker.answer(id, "grace", { decision: "allow", scope: "once" }, ["ops"]) ?? Effect.void
      )
      const { events } = yield* Fiber.join(voting)
      assert.deepStrictEqual(events.at(-1)?.["outcome"], { type: "success" })
      assert.isTrue(fs.existsSync(place.at("one", "made")))
    })
  )

  it.scopedLive("shows a subagent's work and questions as the subagent's, over all runs", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.mkdirSync(place.at("config", "profiles"))
      const profile = { name: "writer", description: "writes", plugins: ["file_edit"] }
      fs.writeFileSync(place.at("config", "profiles", "writer.json"), JSON.stringify(profile))
      const agents = {
        main: [{ tools: [{ name: "delegate", params: { profile: "writer", task: "write" } }] }, { text: "done" }],
        writer: [
          { text: "I write.", tools: [{ name: "write_file", params: { path: "b.txt", content: "deep" } }] },
          { text: "written" }
        ]
      }
      fs.writeFileSync(place.at("script.json"), JSON.stringify({ version: 1, agents }))
      const served = yield* Served.serve(place, `script:${place.at("script.json")}`)
      yield* served.call("/v1/sessions", { id: "mine" })
      let { events } = yield* run(served, "mine", { say: "go" })
      const asked: Array<string | undefined> = []
      while (events.at(-1)?.["outcome"].type === "interrupt") {
        assert.deepStrictEqual(AgUiRules.problems(events), [])
        const interrupts = interruptsOf(events)
        asked.push(...interrupts.map((one: { subagentRunId?: string }) => one.subagentRunId))
        const resume = interrupts.map(({ id }: { id: string }) => resolved(id, { approved: true }))
        const known = AgUiRules.reduce([{ id: "m-go", role: "user", content: "go" }], events)
        ;({ events } = yield* run(served, "mine", { resume }, { messages: known }))
      }
      assert.deepStrictEqual(AgUiRules.problems(events), [])
      const [started] = events.filter(({ type }) => type === "SUBAGENT_STARTED")
      assert.deepInclude(started, { name: "writer" })
      assert.deepStrictEqual(asked, [undefined, started?.["subagentRunId"]])
      const words = events.filter(({ delta, type }) => type === "TEXT_MESSAGE_CONTENT" && delta !== undefined)
      assert.deepStrictEqual(
        words.map(({ delta, subagentRunId }) => [delta, subagentRunId]),
        [
          ["written", started?.["subagentRunId"]],
          ["done", undefined]
        ]
      )
      assert.strictEqual(fs.readFileSync(place.at("one", "b.txt"), "utf8"), "deep")
    })
  )

  it.scopedLive("ends as cancelled when somebody interrupts the turn, and withdraws questions that are cancelled", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(
        place,
        place.script({ tools: [{ name: "ask_user", params: { prompt: "Which?" } }] }, { text: "slow", delay: 60_000 })
      )
      yield* served.call("/v1/sessions", { id: "mine" })
      const [{ id }] = interruptsOf((yield* run(served, "mine", { say: "go" })).events)
      const running = yield* Effect.fork(
        run(served, "mine", { resume: [{ interruptId: id, status: "cancelled" }] }, { messages: [] })
      )
      yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === 0)
      yield* served.call("/v1/sessions/mine/interrupt", {})
      const { events } = yield* Fiber.join(running)
      assert.deepStrictEqual(AgUiRules.problems(events), [])
      assert.deepStrictEqual(events.at(-1)?.["outcome"], { type: "cancelled" })
      assert.include(
        events.map(({ name }) => name),
        "assent.InteractionCancelled"
      )
    })
  )

  it.scopedLive("takes answers as the process after the one that asked, which has not asked again yet", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const before = yield* Scope.extend(Served.serve(place, model), first)
      yield* before.call("/v1/sessions", { id: "mine" })
      const [{ id }] = interruptsOf((yield* run(before, "mine", { say: "go" })).events)
      yield* Scope.close(first, Exit.void)
      const after = yield* Served.serve(place, model)
      const { events } = yield* run(after, "mine", { resume: [resolved(id, { approved: true })] })
      assert.deepStrictEqual(events.at(-1)?.["outcome"], { type: "success" })
      assert.isTrue(fs.existsSync(place.at("one", "made")))
    })
  )

  it.scopedLive("says so when the session is closed here, and goes on with it when it is run again", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "slow", delay: 60_000 }))
      yield* served.call("/v1/sessions", { id: "mine" })
      const running = yield* Effect.fork(run(served, "mine", { say: "go" }))
      yield* Served.until(served.call("/v1/sessions/mine"), ({ body }) => body.agents[0]?.isIdle === false)
      yield* served.host.close("mine")
      const { events } = yield* Fiber.join(running)
      assert.deepStrictEqual(AgUiRules.problems(events), [])
      assert.deepInclude(events.at(-1), { type: "RUN_ERROR", code: "stream_ended" })
      const again = yield* Effect.fork(run(served, "mine", { say: "go" }))
      yield* Served.until(served.call("/v1/sessions/mine"), ({ body }) => body.agents[0]?.isIdle === false)
      yield* served.call("/v1/sessions/mine/interrupt", {})
      assert.deepStrictEqual((yield* Fiber.join(again)).events.at(-1)?.["outcome"], { type: "cancelled" })
    })
  )

  it.scopedLive("says goodbye when the server ends", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "slow", delay: 60_000 }))
      yield* served.call("/v1/sessions", { id: "mine" })
      const running = yield* Effect.fork(run(served, "mine", { say: "go" }))
      yield* Served.until(served.call("/v1/sessions/mine"), ({ body }) => body.agents[0]?.isIdle === false)
      yield* served.end
      const { events } = yield* Fiber.join(running)
      assert.deepInclude(events.at(-1), { type: "RUN_ERROR", code: "stream_ended" })
    })
  )
})
