import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as ConsolePlain from "../../../src/tui/console/ConsolePlain.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as Printed from "../../../src/tui/view/Printed.js"
import * as Follow from "../../../src/tui/view/Follow.js"
import * as AgentText from "../../../src/tui/view/AgentText.js"
import * as Transcript from "../../../src/tui/view/Transcript.js"
import type { SessionId, ToolCallId } from "../../../src/core/Id.js"
import * as AgentEvent from "../../../src/event/AgentEvent.js"
import * as EventBus from "../../../src/event/EventBus.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const screens = {
  drawn: ConsoleScreen.make({ color: false }),
  plain: ConsolePlain.make({ color: false, echoes: true })
}

/** Follows an agent that works, on a screen of this kind. */
const setup = (kind: keyof typeof screens) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make({ columns: 60, rows: 24 })
    const screen = yield* Effect.provide(screens[kind], terminal.layer)
    const { bus, events } = EventBus.owned()
    const drawing = Effect.succeed({ printed: Printed.make({ color: false }) })
    yield* Effect.forkScoped(
      Follow.follow(events, screen, Transcript.make({ color: false }), { interactive: true, drawing })
    )
    const tell = (...bodies: ReadonlyArray<AgentEvent.Body>) =>
      Effect.forEach(
        bodies,
        (body) => bus.publish(AgentEvent.make({ at: 0, sessionId: "main" as SessionId, agent: "main" }, body)),
        { discard: true }
      ).pipe(Effect.zipRight(terminal.settle), Effect.zipRight(TestClock.adjust("1 second")))
    yield* tell({ _tag: "AgentCreated", depth: 0, model: "test/model" }, { _tag: "TurnStarted", input: "go" })
    // Without a screen the terminal itself goes back to the first column at the end of a line.
    const rows = () => (kind === "drawn" ? terminal.history() : terminal.raw().split("\n"))
    const shown = () => rows().filter((row) => row !== "" && row !== ">" && !row.startsWith("⠋"))
    return { terminal, screen, tell, shown }
  })

const begins = (id: string, summary: string): AgentEvent.Body => ({
  _tag: "ToolCallStarted",
  toolCallId: id as ToolCallId,
  tool: "run_command",
  summary
})
const prints = (id: string, text: string): AgentEvent.Body => ({
  _tag: "ToolOutput",
  toolCallId: id as ToolCallId,
  stream: "stdout",
  text
})
const ends = (id: string): AgentEvent.Body => ({
  _tag: "ToolCallEnded",
  toolCallId: id as ToolCallId,
  tool: "run_command",
  outcome: "succeeded",
  summary: "2 lines",
  result: "one\ntwo",
  duration: 40
})

describe.each(["drawn", "plain"] as const)("calls on a %s screen", (kind) => {
  it.scoped("have what they printed between their two rows, or below the one that names them", () =>
    Effect.gen(function* () {
      const { shown, tell } = yield* setup(kind)
      yield* tell(begins("c", "make"), prints("c", "a\nb\n"), ends("c"))
      assert.deepStrictEqual(shown(), ["● run_command make", "    a", "    b", "  ✓ 40 ms · 2 lines"])
      yield* tell(begins("d", "make one"), begins("e", "make two"), prints("d", "1\n2\n"), prints("e", "3\n4\n"))
      yield* tell(ends("e"), ends("d"))
      assert.deepStrictEqual(shown().slice(4), [
        "● run_command make one",
        "● run_command make two",
        "    3",
        "    4",
        "  ✓ 40 ms · 2 lines",
        "  ✓ run_command make one · 40 ms · 2 lines",
        "    1",
        "    2"
      ])
    })
  )

  it.scoped("are named at their end where somebody else has printed since their beginning", () =>
    Effect.gen(function* () {
      const { screen, shown, tell } = yield* setup(kind)
      yield* tell(begins("c", "make"))
      yield* screen.printLine("Mode: ask")
      yield* tell(prints("c", "a\nb\n"), ends("c"))
      assert.deepStrictEqual(shown(), [
        "● run_command make",
        "Mode: ask",
        "  ✓ run_command make · 40 ms · 2 lines",
        "    a",
        "    b"
      ])
    })
  )

  it.scoped("goes on in plain text, and says so once, when drawing fails", () =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 100, rows: 24 })
      const screen = yield* Effect.provide(screens.drawn, terminal.layer)
      const { bus, events } = EventBus.owned()
      const fails = () => {
        throw new RangeError("Maximum call stack size exceeded")
      }
      const speech: AgentText.AgentText = { ...AgentText.make({ color: false }), take: fails, live: fails, end: fails }
      const drawing = Effect.succeed({ speech, printed: Printed.make({ color: false }) })
      const transcript = Transcript.make({ color: false })
      yield* Effect.forkScoped(Follow.follow(events, screen, transcript, { interactive: true, drawing }))
      const tell = (body: AgentEvent.Body) =>
        bus
          .publish(AgentEvent.make({ at: 0, sessionId: "main" as SessionId, agent: "main" }, body))
          .pipe(Effect.zipRight(terminal.settle), Effect.zipRight(TestClock.adjust("1 second")))
      yield* tell({ _tag: "AgentCreated", depth: 0, model: "test/model" })
      yield* tell({ _tag: "TurnStarted", input: "go" })
      yield* tell({ _tag: "TextDelta", text: "lost\n" })
      yield* tell(begins("call_1", "ls"))
      yield* tell({ _tag: "TextDelta", text: "seen\n" })
      const rows = terminal.history().join("\n")
      assert.include(rows, "seen")
      assert.include(rows, "run_command ls")
      assert.lengthOf(rows.match(/The screen failed to draw/g) ?? [], 1)
    })
  )
})
