import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { CorrelationId, RequestId, SessionId } from "../../../src/core/Id.js"
import * as AgentEvent from "../../../src/event/AgentEvent.js"
import * as ProgramStatus from "../../../src/tui/process/ProgramStatus.js"
import * as Program from "../../kit/Program.js"
import * as Pseudo from "../../kit/Pseudo.js"

const of = (agent: string, body: AgentEvent.Body): AgentEvent.AgentEvent =>
  AgentEvent.make(
    { at: 0, sessionId: `ses_${agent}` as SessionId, agent, correlationId: "turn_1" as CorrelationId },
    body
  )

const asked = (id: string, kind: string) =>
  of("main", { _tag: "InteractionRequested", requestId: id as RequestId, kind, summary: "" })

const withdrawn = (id: string, kind: string) =>
  of("main", { _tag: "InteractionCancelled", requestId: id as RequestId, kind })

const began = (agent: string) => of(agent, { _tag: "TurnStarted", input: "go" })

const ended = (agent: string, reason: AgentEvent.EndReason) => of(agent, { _tag: "TurnEnded", reason, steps: 1 })

const states = (events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> => {
  let known = ProgramStatus.nothing
  return events.map((event) => {
    known = ProgramStatus.after(known, event)
    return ProgramStatus.stateOf(known)
  })
}

describe("the state of a program", () => {
  it("is working in a turn, and then how the root's turn ended", () => {
    for (const [reason, state] of [
      ["completed", "done"],
      ["cancelled", "idle"],
      ["turn_limit", "error"],
      ["halted", "error"],
      ["denied", "error"],
      ["failed", "error"]
    ] as const) {
      assert.deepStrictEqual(states([began("main"), ended("main", reason)]), ["state=working", `state=${state}`])
    }
    assert.deepStrictEqual(
      states([began("main"), began("main/a"), ended("main", "completed"), ended("main/a", "failed")]),
      ["state=working", "state=working", "state=working", "state=done"]
    )
  })

  it("is blocked while a question is open, by its kind, whatever goes on beside", () => {
    for (const [kind, said] of [
      ["Approve", "permission"],
      ["grantStageTool", "permission"],
      ["approveSubagentEnvelope", "permission"],
      ["Confirm", "question"],
      ["Elicit", "question"],
      ["Auth.Password", "auth"]
    ] as const) {
      assert.deepStrictEqual(states([began("main"), asked("1", kind), withdrawn("1", kind)]), [
        "state=working",
        `state=blocked:kind=${said}`,
        "state=working"
      ])
    }
    assert.deepStrictEqual(
      states([
        asked("1", "Ask"),
        asked("2", "Approve"),
        withdrawn("1", "Ask"),
        began("main/a"),
        withdrawn("2", "Approve")
      ]),
      [
        "state=blocked:kind=question",
        "state=blocked:kind=question",
        "state=blocked:kind=permission",
        "state=blocked:kind=permission",
        "state=working"
      ]
    )
  })
})

const reports = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/\x1b\]7501;([^\x1b]*)\x1b\\/g), ([, state = ""]) => state.replace(":app=assent", ""))

describe.concurrent("a terminal", () => {
  it.scopedLive("is told what a run does, and how it ended, in order", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        { tools: [{ name: "run_command", params: { command: "touch made" } }] },
        { text: "All done." }
      )
      const screen = yield* Pseudo.start(at, ["run", "--model", model, "go"])
      yield* screen.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
      assert.deepStrictEqual(reports(screen.raw()), ["state=working", "state=blocked:kind=permission"])
      // An answer of one key counts once the question has stood for a moment.
      yield* Effect.zipRight(Effect.sleep("300 millis"), screen.type("y\r"))
      assert.strictEqual(yield* screen.exit, 0)
      assert.deepStrictEqual(reports(screen.raw()).slice(2), ["state=working", "state=done"])
    })
  )

  it.scopedLive("is told of a run that failed", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ text: "Nope.", expect: { contains: "nothing like it" } })
      const screen = yield* Pseudo.start(at, ["run", "--model", model, "go"])
      assert.strictEqual(yield* screen.exit, 1)
      assert.strictEqual(reports(screen.raw()).at(-1), "state=error")
    })
  )

  it.scopedLive("is told nothing where somebody listens, or where output is no terminal", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const plain = yield* Pseudo.start(at, ["run", "--plain", "list"])
      assert.strictEqual(yield* plain.exit, 0)
      assert.deepStrictEqual(reports(plain.raw()), [])
      const { stderr, stdout } = yield* at.run(["run", "list"])
      assert.notInclude(stdout + stderr, "7501")
    })
  )
})
