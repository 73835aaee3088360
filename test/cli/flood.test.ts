/** A peer that writes without end, or writes and does not read: what it says is heard no faster than it reads. */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as JsonExecutor from "../../src/cli/executor/JsonExecutor.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Agents from "../kit/agents.js"
import * as Program from "../kit/Program.js"
import * as Runs from "../kit/Runs.js"

afterEach(() => {
  vi.restoreAllMocks()
})

/** Standard output whose reader stalls until it is told to go on. */
const stalledReader = () => {
  const writes: Array<string> = []
  const unread: Array<() => void> = []
  let stalls = true
  vi.spyOn(process.stdout, "write").mockImplementation((text, ...rest: ReadonlyArray<unknown>) => {
    const taken = rest.find((one) => typeof one === "function")
    writes.push(String(text))
    const read = () => {
      if (typeof taken === "function") taken()
    }
    if (stalls) unread.push(read)
    else queueMicrotask(read)
    return !stalls
  })
  return {
    writes,
    linesOf: (tag: string) =>
      writes.flatMap((text) => text.split("\n")).filter((line) => line.includes(`"_tag":"${tag}"`)).length,
    goOn: () => {
      stalls = false
      for (const read of unread.splice(0)) read()
    }
  }
}

const settle = Effect.repeatN(Effect.yieldNow(), 5_000)

const many = 4_000

/** As standard input gives lines: several at a time. */
const together = 500

const answer = JSON.stringify({ _tag: "Answer", requestId: "req_nobody", answer: "y" })

/** An agent with a peer that says this line very often. */
const flooded = (line: string) =>
  Effect.gen(function* () {
    const reader = stalledReader()
    let taken = 0
    const batch = Effect.sync(() => {
      taken += together
      return Array.from({ length: together }, () => line)
    })
    const lines = Stream.repeatEffect(batch).pipe(
      Stream.take(many / together),
      Stream.mapConcat((one) => one)
    )
    const writer = yield* JsonExecutor.makeWriter
    const channel = yield* JsonExecutor.makePeer({})
    const agent = yield* Effect.provide(
      Agent.startWith([], { whenNobody: "wait", events: { capacity: 256, whenFull: "wait" } }),
      Agents.runtime({ agents: {} })
    )
    const running = yield* Effect.fork(
      JsonExecutor.run({
        agent,
        writer,
        task: undefined,
        halted: Effect.never,
        peer: {
          channel,
          interactor: channel.interactor,
          lines,
          alone: true,
          authorOf: () => undefined,
          masking: Redaction.shapesOnly.declared
        }
      })
    )
    // Before the agent ends: one that fails must not wait for who never reads.
    yield* Effect.addFinalizer(() => Effect.sync(reader.goOn))
    return { reader, running, taken: () => taken }
  })

describe("a peer's flood", () => {
  it.scoped.each([
    { what: "no JSON", line: "this is no command", told: "AgentError" },
    { what: "broken JSON", line: "{this is no command", told: "AgentError" },
    { what: "no command", line: '{"_tag":"Jump"}', told: "AgentError" },
    { what: "half a command", line: '{"_tag":"Send"}', told: "AgentError" },
    { what: "broken JSON in an object", line: '{"_tag":broken}', told: "AgentError" },
    { what: "interruptions of nobody", line: '{"_tag":"Interrupt","target":"nobody"}', told: "AgentError" },
    { what: "words for nobody", line: '{"_tag":"Send","text":"x","target":"main/nobody"}', told: "AgentError" },
    { what: "permissions lines that are none", line: '{"_tag":"Permissions","command":"x"}', told: "AgentError" },
    { what: "answers to nobody", line: answer, told: "AnswerRejected" }
  ])("of $what is taken no faster than it is read, and told line by line", ({ line, told }) =>
    Effect.gen(function* () {
      const { reader, running, taken } = yield* flooded(line)
      yield* settle
      assert.isAtMost(taken(), 4 * together, "lines that were taken while nobody reads")
      assert.isAtMost(reader.writes.length, 2)
      reader.goOn()
      assert.strictEqual(yield* Fiber.join(running), 0)
      assert.strictEqual(taken(), many)
      assert.strictEqual(reader.linesOf(told), many)
      assert.isBelow(reader.writes.length, many / 10, "lines are written together")
    })
  )
})

/**
 * Lines of a flood, and the memory in megabytes and the time in milliseconds that it may cost the process. With a young
 * generation that grows, and a heap that is collected late, it would be twice as much; what nobody collects, hundreds.
 */
const lines = 100_000
const room = 40
const patience = 120_000

const kinds = [
  { what: "no JSON", line: "this is no command" },
  { what: "broken JSON", line: "{broken json" },
  { what: "broken JSON in an object", line: '{"_tag":broken}' },
  { what: "half a command", line: '{"_tag":"Send"}' },
  { what: "permissions lines that are none", line: '{"_tag":"Permissions","command":"frobnicate"}' },
  { what: "interruptions of nobody", line: '{"_tag":"Interrupt","target":"nobody"}' }
]
/** All of them are told from one process, and each from a process of its own in the soak. */
const floods = Runs.isWhole
  ? kinds.map(({ line, what }) => ({ what, sent: [line] }))
  : [{ what: "everything that is no command", sent: kinds.map(({ line }) => line) }]

describe("a process under a flood", () => {
  const told = '"_tag":"AgentError"'
  it.scopedLive.each(floods)(
    "of $what stays as small as it was, and answers each line",
    ({ sent }) =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const program = yield* at.start(["run", "--jsonl", "--store", ":memory:"])
        const answered = (text: string) => program.line((said) => said.includes(told) && said.includes(text))
        const written = sent.map((line) => `${line}\n`).join("")
        const times = Math.ceil(lines / sent.length)
        // What it loads with the first such lines is no growth.
        yield* program.write(written)
        yield* answered(`Line ${sent.length}`)
        const before = Program.peakMegabytes(program.pid)
        yield* program.write(written.repeat(times))
        yield* answered(`Line ${(times + 1) * sent.length}`)
        const after = Program.peakMegabytes(program.pid)
        yield* program.endInput
        const { code, stdout } = yield* program.exit
        assert.strictEqual(code, 0)
        assert.strictEqual(stdout.split(told).length - 1, (times + 1) * sent.length)
        if (before !== undefined && after !== undefined) assert.isBelow(after - before, room)
      }),
    patience
  )
})
