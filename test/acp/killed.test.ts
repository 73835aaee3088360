/** The built `assent acp`, killed at points of a turn: what an editor sees after a load. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { existsSync, readFileSync } from "node:fs"
import * as AcpEditor from "../kit/AcpEditor.js"
import * as AcpProgram from "../kit/AcpProgram.js"
import * as Program from "../kit/Program.js"
import * as Runs from "../kit/Runs.js"

const points = Array.from({ length: 30 }, (_, i) => i)

const question = { text: "Which colour?", question_type: "free_text" }

const command = (word: string) => ({ tools: [{ name: "run_command", params: { command: `echo ${word} >> log` } }] })

const steps = [
  { text: "I begin.", ...command("one") },
  { tools: [{ name: "request_clarification", params: { context: "c", questions: [question] } }] },
  { tools: [{ name: "write_file", params: { path: "a.txt", content: "hi" } }] },
  { text: "I go on.", ...command("two") },
  { tools: [{ name: "list_files", params: {} }] },
  { text: "All done." },
  { text: "More." }
]

/** What the agent sent before this answer. The editor's library hands an answer over sooner than what came before it. */
const sentBefore = ({ lines }: AcpEditor.Editor, answer: number): AcpEditor.Editor["updates"] => {
  const end = lines.findIndex(({ id, method }) => method === undefined && id === answer)
  return lines.slice(0, end).flatMap(({ method, params }) => (method === "session/update" ? [params.update] : []))
}

/** What a person at the editor says. */
const answers = ({ method }: AcpEditor.Question) =>
  method === "elicitation/create" ? { action: "accept", content: { q01: "red" } } : AcpEditor.choose("y")

const requestId = ({ params }: AcpEditor.Question): unknown => params._meta?.["assent/requestId"]

/** The conversation as an editor shows it: what a person and the agent said, and the last state of each call. */
const shown = (updates: AcpEditor.Editor["updates"]) => {
  const user: Array<string> = []
  const calls = new Map<string, string>()
  const announced: Array<string> = []
  for (const update of updates) {
    if (update.sessionUpdate === "tool_call") announced.push(update.toolCallId)
    if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") {
      calls.set(update.toolCallId, update.status ?? calls.get(update.toolCallId) ?? "")
    }
    if (update.sessionUpdate === "user_message_chunk" && update.content.type === "text") user.push(update.content.text)
  }
  assert.deepStrictEqual(announced, [...new Set(announced)], "a call is announced twice")
  return { user, agent: AcpEditor.saying(updates), calls: [...calls] }
}

/** One turn whose process is killed when the editor has got this part of all lines. */
const play = (part: number) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const cwd = place.path("workspace")
    const model = yield* place.script(...steps)
    const at = { answers, args: ["--model", model], capabilities: { elicitation: { form: {} } } }
    const lines = 3 + Math.floor(part * linesOfTurn)
    let isDue = (): boolean => false
    // A question at which the process is killed stays open.
    const first = yield* AcpProgram.started(place, {
      ...at,
      answers: (asked) => (isDue() ? undefined : answers(asked))
    })
    isDue = () => first.lines.length >= lines
    const { sessionId } = yield* first.request("session/new", { cwd, mcpServers: [] })
    const prompt = AcpEditor.text("go")
    const ended = yield* Effect.fork(first.refusal("session/prompt", { sessionId, prompt }))
    // The last points may be behind the end of the turn.
    yield* Effect.raceFirst(
      first.sees(() => (isDue() ? true : undefined)),
      Fiber.await(ended)
    )
    first.child.kill("SIGKILL")
    yield* first.exit
    yield* Fiber.await(ended)

    const second = yield* AcpProgram.started(place, at)
    yield* second.request("session/load", { sessionId, cwd, mcpServers: [] })
    const before = shown(sentBefore(second, 1))
    const isKept = before.user.includes("go")
    if (!isKept) yield* second.request("session/prompt", { sessionId, prompt })
    yield* second.request("session/prompt", { sessionId, prompt: AcpEditor.text("and then?") })
    const callOf = ({ params }: AcpEditor.Question) => params.toolCall?.toolCallId ?? params.message
    for (const asked of second.questions) {
      const same = first.questions.find((other) => callOf(other) === callOf(asked))
      if (same !== undefined && isKept) assert.strictEqual(requestId(asked), requestId(same))
    }
    yield* second.leave
    yield* second.exit

    const third = yield* AcpProgram.started(place, at)
    yield* third.request("session/load", { sessionId, cwd, mcpServers: [] })
    const after = shown(sentBefore(third, 1))
    // An editor knows what it has sent itself.
    assert.deepStrictEqual({ ...shown(sentBefore(second, isKept ? 2 : 3)), user: ["go", "and then?"] }, after)
    assert.deepStrictEqual(third.questions, [])
    assert.isTrue(after.calls.every(([, status]) => status === "completed" || status === "failed"))
    const log = existsSync(place.path("workspace/log")) ? readFileSync(place.path("workspace/log"), "utf8") : ""
    const done = log.split("\n").filter((line) => line !== "")
    assert.deepStrictEqual(done, [...new Set(done)], "a command ran twice")
    for (const editor of [first, second, third]) AcpEditor.judge(editor)
  })

/** Lines that an editor gets of the turn, about. */
const linesOfTurn = 24

describe("assent acp", () => {
  it.scopedLive.each(Runs.some(points))(
    "that is killed at point %i of a turn loses nothing and does nothing twice",
    (point) => play(point / points.length),
    180_000
  )
})
