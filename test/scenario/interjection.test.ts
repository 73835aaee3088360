/** Another process steers a family of agents by line: says something to one, stops one call, one agent, everything. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const sleep = { name: "run_command", params: { command: "echo pid $$; sleep 300 & echo also $!; wait" } }
const agent = (id: string) => ({ name: "agent", params: { task: "wait for it" }, id })

/** A program whose root waits for a child, which runs a command that starts another process. */
const start = (script: { readonly main: ReadonlyArray<unknown>; readonly agent: ReadonlyArray<unknown> }) =>
  Effect.gen(function* () {
    const at = yield* Program.place
    const file = yield* at.write("family.json", { version: 1, agents: script })
    const program = yield* at.start(["run", "--jsonl", "--yolo", "--model", `script:${file}`, "go"])
    const { toolCallId } = yield* program.json("ToolCallStarted", { agent: "main/agent", tool: "run_command" })
    const first = yield* program.json("ToolOutput", { agent: "main/agent" })
    const text = /also/.test(first.text) ? first.text : `${first.text}${(yield* program.json("ToolOutput")).text}`
    const pids = [...text.matchAll(/(?:pid|also) (\d+)/g)].map(([, pid]) => Number(pid))
    assert.strictEqual(pids.length, 2)
    assert.deepStrictEqual(pids.map(Program.isAlive), [true, true])
    return { program, pids, toolCallId }
  })

describe.concurrent("a family of agents with a person at the wire", () => {
  it.scopedLive("hears what is said while a child works, the child first, and main by name", () =>
    Effect.gen(function* () {
      const { pids, program, toolCallId } = yield* start({
        main: [{ tools: [agent("call_agent")] }, { expect: { contains: "to main" }, text: "Both heard." }],
        agent: [{ tools: [sleep] }, { expect: { contains: "to the child" }, text: "I hear." }]
      })
      yield* program.tell({ _tag: "Send", text: "to the child" })
      assert.deepInclude(yield* program.json("UserInterjected"), {
        agent: "main/agent",
        targetAgent: "main/agent",
        parentId: "call_agent"
      })
      yield* program.tell({ _tag: "Send", text: "to main", target: "main" })
      assert.deepInclude(yield* program.json("UserInterjected"), { targetAgent: "main", parentId: "root" })
      yield* program.tell({ _tag: "Send", text: "to nobody", target: "main/nobody" })
      const { message } = yield* program.json("AgentError")
      assert.strictEqual(message, 'Line 3: There is no agent "main/nobody". There are: main, main/agent.')
      yield* program.tell({ _tag: "Send", text: "later", target: "main/agent", when: "idle" })
      assert.match((yield* program.json("AgentError")).message, /^Line 4: "when": "idle" is for main alone/)
      // The command alone: its processes end, and the child's turn goes on with what was said meanwhile.
      yield* program.tell({ _tag: "Interrupt", toolCallId })
      assert.deepInclude(yield* program.json("ToolCallEnded", { toolCallId }), { outcome: "interrupted" })
      assert.deepInclude(yield* program.json("InterjectionAcknowledged"), { agent: "main/agent", step: 2 })
      assert.deepInclude(yield* program.json("InterjectionAcknowledged"), { agent: "main", step: 2 })
      assert.deepInclude(yield* program.json("TurnEnded", { agent: "main" }), { reason: "completed" })
      assert.deepStrictEqual(pids.map(Program.isAlive), [false, false])
      yield* program.tell({ _tag: "Interrupt", toolCallId })
      assert.match((yield* program.json("AgentError")).message, /^Line 6: There is no running tool call/)
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
    })
  )

  it.scopedLive("stops one agent and what it runs; its caller goes on", () =>
    Effect.gen(function* () {
      const { pids, program } = yield* start({
        main: [{ tools: [agent("call_agent")] }, { expect: { contains: "cancelled (user)" }, text: "So be it." }],
        agent: [{ tools: [sleep] }]
      })
      yield* program.tell({ _tag: "Interrupt", target: "main/agent" })
      assert.deepInclude(yield* program.json("TurnEnded", { agent: "main/agent" }), {
        reason: "cancelled",
        detail: "user"
      })
      assert.deepInclude(yield* program.json("TurnEnded", { agent: "main" }), { reason: "completed" })
      assert.deepStrictEqual(pids.map(Program.isAlive), [false, false])
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
    })
  )

  it.scopedLive("stops everything below the root with the root, and says so by its exit code", () =>
    Effect.gen(function* () {
      const { pids, program } = yield* start({
        main: [{ tools: [agent("call_agent")] }],
        agent: [{ tools: [sleep] }]
      })
      yield* program.tell({ _tag: "Interrupt" })
      assert.deepInclude(yield* program.json("TurnEnded", { agent: "main/agent" }), {
        reason: "cancelled",
        detail: "parent"
      })
      assert.deepInclude(yield* program.json("TurnEnded", { agent: "main" }), { reason: "cancelled", detail: "user" })
      assert.deepStrictEqual(pids.map(Program.isAlive), [false, false])
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 130)
      assert.notInclude(stdout, "AgentError", "a cancellation is no error")
    })
  )
})
