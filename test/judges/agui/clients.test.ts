import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fs from "node:fs"
import * as Served from "../../kit/Served.js"
import * as Judge from "./Judge.js"

/** Asks two things at once, and says that it is done. */
const twoQuestions = ({ script }: Served.Place) =>
  script(
    {
      thinking: "two things to know",
      text: "I have to ask.",
      tools: [
        { name: "ask_user", params: { prompt: "Which colour?" } },
        {
          name: "request_input",
          params: { title: "How many?", fields: [{ name: "count", type: "integer", minimum: 1 }] }
        }
      ]
    },
    { text: "All done.", chunks: 3 }
  )

const open = (served: Served.Served) =>
  Effect.map(served.call("/v1/requests"), ({ body }) =>
    body.requests.map(({ request }: { request: { requestId: string } }) => request.requestId)
  )

describe.each(Judge.versions)("@ag-ui/client $version", ({ version }) => {
  const client = Judge.load(version)
  const judged = it.scopedLive.skipIf(client === undefined)

  judged("is interrupted with two, refuses a part, and resumes with both", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, twoQuestions(place))
      const agent = yield* Judge.agent(client, served)
      const first = yield* agent.say("go")
      const [colour, count] = yield* agent.asked(2)
      assert.deepInclude(colour, { reason: "input", message: "Which colour?" })
      assert.deepStrictEqual(count.responseSchema, {
        type: "object",
        properties: { count: { type: "integer", minimum: 1 } },
        required: ["count"]
      })
      const partial = yield* Effect.flip(agent.run({ resume: [Judge.resolved(colour, { answer: "red" })] }))
      assert.include(partial.message, "1 pending interrupt(s) not addressed by resume")
      const misfit = yield* agent.run({
        resume: [Judge.resolved(colour, { answer: "red" }), Judge.resolved(count, { count: 0 })]
      })
      assert.match(misfit.at(-1).message, /does not fit\. .*count/)
      assert.lengthOf(agent.http.pendingInterrupts, 2)
      assert.deepStrictEqual(yield* open(served), [colour.id, count.id])
      const last = yield* agent.run({
        resume: [Judge.resolved(colour, { answer: "red" }), Judge.resolved(count, { count: 3 })]
      })
      assert.deepStrictEqual(last.at(-1).outcome, { type: "success" })
      assert.deepStrictEqual(agent.http.pendingInterrupts, [])
      assert.deepStrictEqual(Judge.transcript(agent.http.messages), [
        "user: go",
        "reasoning: two things to know",
        "assistant: I have to ask. (ask_user, request_input)",
        "tool: red",
        'tool: {"values":{"count":3}}',
        "assistant: All done."
      ])
      Judge.show(version, "two questions", [...first, ...last])
    })
  )

  judged("allows a call with edited arguments, and denies one with words", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place, "touch made", [
        { tools: [{ name: "run_command", params: { command: "touch never" } }] },
        { text: "so be it" }
      ])
      const served = yield* Served.serve(place, model)
      const agent = yield* Judge.agent(client, served)
      yield* agent.say("go")
      const [asked] = agent.http.pendingInterrupts
      assert.deepInclude(asked, { reason: "tool_call" })
      assert.deepStrictEqual(asked.responseSchema.required, ["approved"])
      const foreign = yield* agent.run({
        resume: [Judge.resolved(asked, { approved: true, editedArgs: { nothing: 1 } })]
      })
      assert.include(foreign.at(-1).message, "These arguments cannot be edited: nothing")
      yield* agent.run({
        resume: [Judge.resolved(asked, { approved: true, editedArgs: { command: "touch other" } })]
      })
      // What was edited is asked about again, as in a terminal.
      for (const again of agent.http.pendingInterrupts)
        yield* agent.run({ resume: [Judge.resolved(again, { approved: true })] })
      yield* agent.say("once more")
      const [second] = agent.http.pendingInterrupts
      const events = yield* agent.run({ resume: [Judge.resolved(second, { approved: false, comment: "use ls" })] })
      assert.deepStrictEqual(events.at(-1).outcome, { type: "success" })
      assert.deepStrictEqual(
        ["made", "other", "never"].filter((name) => fs.existsSync(place.at("one", name))),
        ["other"]
      )
      assert.include(JSON.stringify(agent.http.messages), "use ls")
    })
  )

  judged("goes on when somebody else has answered", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, twoQuestions(place), { person: { name: "ada" } })
      const agent = yield* Judge.agent(client, served)
      yield* agent.say("go")
      const [colour, count] = yield* agent.asked(2)
      yield* served.call(`/v1/requests/${colour.id}/answer`, { answer: "green" })
      const last = yield* agent.run({
        resume: [Judge.resolved(colour, { answer: "red" }), Judge.resolved(count, { count: 3 })]
      })
      const late = last.filter(({ name }) => name === "assent.LateAnswer").map(({ value }) => value)
      assert.deepStrictEqual(late, [{ _tag: "LateAnswer", requestId: colour.id, winner: "ada" }])
      assert.deepStrictEqual(last.at(-1).outcome, { type: "success" })
      assert.include(Judge.transcript(agent.http.messages).join("\n"), "tool: green")
      Judge.show(version, "answered elsewhere", last)
    })
  )

  judged("withdraws a question by a cancelled answer", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, twoQuestions(place))
      const agent = yield* Judge.agent(client, served)
      yield* agent.say("go")
      const resume = (yield* agent.asked(2)).map(({ id }) => ({ interruptId: id, status: "cancelled" }))
      const last = yield* agent.run({ resume })
      assert.deepStrictEqual(last.at(-1).outcome, { type: "success" })
      assert.deepStrictEqual(yield* open(served), [])
    })
  )

  judged("is told that the turn was cancelled", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "slow", delay: 60_000 }))
      const agent = yield* Judge.agent(client, served)
      const running = yield* Effect.fork(agent.say("go"))
      yield* Served.until(
        served.call(`/v1/sessions/${agent.sessionId}`),
        ({ body }) => body.agents[0]?.isIdle === false
      )
      yield* served.call(`/v1/sessions/${agent.sessionId}/interrupt`, {})
      const last = (yield* Fiber.join(running)).at(-1)
      assert.strictEqual(last.type, "RUN_FINISHED")
      if (version === "0.0.59") assert.strictEqual(last.result.reason, "cancelled")
      else assert.deepStrictEqual(last.outcome, { type: "cancelled" })
    })
  )

  judged("has everything once after its connection was cut, and the agent went on meanwhile", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const words = Array.from({ length: 40 }, (_, n) => `word${n}`).join(" ")
      const served = yield* Served.serve(
        place,
        place.script(
          { text: words, chunks: 40, chunkDelay: 25, tools: [{ name: "list_files", params: { path: "." } }] },
          { text: "done" }
        )
      )
      const agent = yield* Judge.agent(client, served)
      yield* Effect.either(agent.say("go", (events) => events.length > 15 && agent.http.abortRun()))
      const before = Judge.transcript(agent.http.messages)
      assert.isBelow(before.join().length, words.length)
      yield* agent.run()
      const after = Judge.transcript(agent.http.messages)
      assert.deepStrictEqual(
        [after[0], after[1], after.at(-1)],
        ["user: go", `assistant: ${words} (list_files)`, "assistant: done"]
      )
      assert.lengthOf(after, 4)
    })
  )

  judged("answers for a subagent, whose work is its own", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.mkdirSync(place.at("config", "profiles"))
      fs.writeFileSync(
        place.at("config", "profiles", "writer.json"),
        JSON.stringify({ name: "writer", description: "writes", plugins: ["file_edit"] })
      )
      fs.writeFileSync(
        place.at("script.json"),
        JSON.stringify({
          version: 1,
          agents: {
            main: [{ tools: [{ name: "delegate", params: { profile: "writer", task: "write" } }] }, { text: "done" }],
            writer: [
              { text: "I write.", tools: [{ name: "write_file", params: { path: "b.txt", content: "deep" } }] },
              { text: "written" }
            ]
          }
        })
      )
      const served = yield* Served.serve(place, `script:${place.at("script.json")}`)
      const agent = yield* Judge.agent(client, served)
      const events = [...(yield* agent.say("go"))]
      while (agent.http.pendingInterrupts.length > 0) {
        const [asked] = agent.http.pendingInterrupts
        events.push(...(yield* agent.run({ resume: [Judge.resolved(asked, { approved: true })] })))
      }
      assert.deepStrictEqual(events.at(-1).outcome, { type: "success" })
      assert.strictEqual(fs.readFileSync(place.at("one", "b.txt"), "utf8"), "deep")
      const started = events.filter(({ type }) => type === "SUBAGENT_STARTED")
      const finished = events.filter(({ type }) => type === "SUBAGENT_FINISHED")
      assert.deepStrictEqual(
        finished.map(({ outcome }) => outcome.type),
        ["suspended", "success"]
      )
      assert.deepStrictEqual(new Set(started.map(({ subagentRunId }) => subagentRunId)).size, 1)
      const asked = events.flatMap(({ outcome }) => outcome?.interrupts ?? [])
      assert.deepStrictEqual(
        asked.map(({ subagentRunId }) => subagentRunId === started[0].subagentRunId),
        [false, true]
      )
      assert.deepStrictEqual(finished[0].outcome.interruptIds, [asked[1].id])
      Judge.show(version, "subagent", events)
    })
  )
})

describe("a client of AG-UI that checks nothing", () => {
  const first = Judge.load("1.0.0")

  it.scopedLive.skipIf(first === undefined)("gets an error with a sentence, and the agent waits on", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, twoQuestions(place))
      const agent = yield* Judge.agent(first, served)
      yield* agent.say("go")
      const [colour, count] = yield* agent.asked(2)
      const run = (resume: ReadonlyArray<object>) => {
        agent.http.pendingInterrupts = []
        return Effect.map(agent.run({ resume }), (events) => events.at(-1).message)
      }
      assert.include(yield* run([Judge.resolved(colour, { answer: "red" })]), `answers to ${count.id} are missing`)
      const both = [Judge.resolved(colour, { answer: "red" }), Judge.resolved(count, { count: 3 })]
      assert.include(
        yield* run([...both, { interruptId: "req_none", status: "resolved" }]),
        'asks nothing under "req_none"'
      )
      assert.deepStrictEqual(yield* open(served), [colour.id, count.id])
      const right = yield* agent.run({ resume: both })
      assert.deepStrictEqual(right.at(-1).outcome, { type: "success" })
    })
  )
})
