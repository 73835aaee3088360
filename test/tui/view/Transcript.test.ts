import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as Glyphs from "../../../src/tui/terminal/Glyphs.js"
import * as Activity from "../../../src/tui/view/Activity.js"
import * as Indent from "../../../src/tui/view/Indent.js"
import * as Transcript from "../../../src/tui/view/Transcript.js"
import type { MessageId, RequestId, SessionId, ToolCallId } from "../../../src/core/Id.js"
import * as AgentEvent from "../../../src/event/AgentEvent.js"
import * as Runs from "../../kit/Runs.js"

const interjected = (message: string): AgentEvent.Body => ({
  _tag: "UserInterjected",
  messageId: "m" as MessageId,
  message,
  targetAgent: "main",
  parentId: "root"
})

/** An agent and how to make its events. Ids are plain words here. */
const agent = (path: string, parent?: string, toolCallId = `call of ${path}`) => {
  const stamp = (at: number) => ({ at, sessionId: path as SessionId, agent: path })
  const event = (body: AgentEvent.Body, at = 0) => AgentEvent.make(stamp(at), body)
  return {
    event,
    created: event({
      _tag: "AgentCreated",
      depth: path.split("/").length - 1,
      model: "test/model",
      ...(parent === undefined
        ? {}
        : {
            parentSessionId: parent as SessionId,
            parentToolCallId: toolCallId as ToolCallId,
            subagentId: `id_${path.length}`
          })
    }),
    turn: (input = "go", at = 0) => event({ _tag: "TurnStarted", input }, at),
    status: (status: AgentEvent.AgentStatus, at = 0) => event({ _tag: "AgentStatusChanged", status }, at),
    begins: event({ _tag: "BlockStarted", block: "text" }),
    says: (text: string) => event({ _tag: "TextDelta", text }),
    ends: event({ _tag: "BlockEnded", block: "text" }),
    proposes: (tool: string, id: string, summary: string) =>
      event({ _tag: "ToolCallProposed", toolCallId: id as ToolCallId, tool, summary }),
    calls: (tool: string, id: string, summary = "", at = 0) =>
      event({ _tag: "ToolCallStarted", toolCallId: id as ToolCallId, tool, summary }, at),
    called: (
      tool: string,
      id: string,
      summary = "",
      outcome: AgentEvent.EventOf<"ToolCallEnded">["outcome"] = "succeeded",
      duration = 40
    ) =>
      event({ _tag: "ToolCallEnded", toolCallId: id as ToolCallId, tool, outcome, summary, result: summary, duration }),
    used: (input: number, output: number) =>
      event({
        _tag: "ModelCallEnded",
        model: "test/model",
        step: 1,
        finishReason: "stop",
        usage: { inputTokens: input, outputTokens: output }
      }),
    completed: (success: boolean, turnsUsed: number, error?: string, at = 0) =>
      event({ _tag: "AgentCompleted", success, turnsUsed, ...(error === undefined ? {} : { error }) }, at)
  }
}

const main = agent("main")
const explore = agent("main/explore", "main")
const second = agent("main/explore-2", "main")
const nested = agent("main/explore/explore", "main/explore")

/** What stands on a screen that prints events in this order. */
const shown = (
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  columns?: number,
  options: Partial<Transcript.Options> = {}
): ReadonlyArray<string> => {
  const transcript = Transcript.make({ color: false, ...options })
  let text = ""
  for (const event of events) {
    for (const piece of transcript.show(event, columns)) {
      if (!piece.whole) text += piece.text
      else text += `${text === "" || text.endsWith("\n") ? "" : "\n"}${piece.text}\n`
    }
  }
  return text.replace(/\n$/, "").split("\n")
}

const working = [main.created, main.turn(), main.status("executing")]
const withChild = [
  ...working,
  main.calls("delegate", "call of main/explore", "look around"),
  explore.created,
  explore.turn("look around"),
  explore.status("streaming")
]
const withChildren = [
  ...withChild,
  main.calls("delegate", "call of main/explore-2", "look again"),
  second.created,
  second.turn("look again"),
  second.status("streaming")
]

describe("the transcript of one agent", () => {
  it("has nothing of a sequence that comes in pieces, and all the words around it", () => {
    const words = ["a\x1b[3", "1mb\x1b]0;ti", "tle\x07c", "\x1b]d"]
    assert.deepStrictEqual(shown([...working, main.begins, ...words.map(main.says), main.ends]), ["abcd"])
  })

  it("prints words as they come, and calls with their ends", () => {
    const events = [
      ...working,
      main.begins,
      main.says("Let me "),
      main.says("look."),
      main.ends,
      main.calls("list_files", "c", "src"),
      main.called("list_files", "c", "a.ts"),
      main.calls("run_command", "d", "rm"),
      main.called("run_command", "d", "Permission denied.", "denied"),
      main.calls("read_file", "e", "b.ts"),
      main.called("read_file", "e", "b.ts does not exist.", "invalid")
    ]
    assert.deepStrictEqual(shown(events), [
      "Let me look.",
      "● list_files src",
      "  ✓ 40 ms · a.ts",
      "● run_command rm",
      "  ✗ run_command denied · 40 ms · Permission denied.",
      "● read_file b.ts",
      "  ✗ read_file not run · 40 ms · b.ts does not exist."
    ])
  })

  it("names what was denied before it began", () => {
    const events = [
      ...working,
      main.proposes("run_command", "c", "touch a"),
      main.proposes("run_command", "d", "rm b"),
      main.calls("run_command", "c", "touch a"),
      main.called("run_command", "d", "Permission denied: a rule denies it.", "denied"),
      main.called("run_command", "c", "1 line")
    ]
    assert.deepStrictEqual(shown(events), [
      "● run_command touch a",
      "  ✗ run_command rm b denied · 40 ms · a rule denies it.",
      "  ✓ run_command touch a · 40 ms · 1 line"
    ])
  })

  it("names a call that does not end right below its beginning", () => {
    const events = [
      ...working,
      main.calls("list_files", "c", "src"),
      main.calls("list_files", "d", "test"),
      main.called("list_files", "c", "a.ts"),
      main.called("list_files", "d", "b.ts")
    ]
    assert.deepStrictEqual(shown(events).slice(2), [
      "  ✓ list_files src · 40 ms · a.ts",
      "  ✓ list_files test · 40 ms · b.ts"
    ])
  })

  it("keeps empty lines, and breaks none that ended by itself", () => {
    assert.deepStrictEqual(
      shown([...working, main.says("one\n\n"), main.says("two\n"), main.ends, main.calls("t", "c")]),
      ["one", "", "two", "● t"]
    )
  })

  it("has the wait for the next attempt as what goes on, until something comes", () => {
    const transcript = Transcript.make({ color: false })
    const after = (...events: ReadonlyArray<AgentEvent.AgentEvent>) => {
      for (const event of events) transcript.show(event, 80)
      return transcript.status(80)
    }
    const retried = (of: typeof main) =>
      of.event({ _tag: "ModelRetried", model: "m", attempt: 2, attempts: 5, reason: "Busy.", delay: 18_000 })
    const event = retried(main)
    assert.deepStrictEqual(after(...working, event)?.pause, {
      until: event.at + 18_000,
      reason: "to try again (2 of 5)"
    })
    assert.isUndefined(after(main.says("So"))?.pause)
    // One below the main agent is named; where another works meanwhile, what all do is said.
    assert.strictEqual(
      after(explore.created, explore.status("thinking"), retried(explore))?.pause?.reason,
      "to try again (2 of 5, explore)"
    )
    assert.isUndefined(after(second.created, second.status("streaming"))?.pause)
  })

  it("says why a model is asked again once, and later only when, unless the reason is another", () => {
    const retried = (attempt: number, reason: string) =>
      main.event({ _tag: "ModelRetried", model: "m", attempt, reason, delay: 1000 * attempt })
    const busy = (id: string) => `The server is busy (request ${id}).`
    assert.deepStrictEqual(
      shown([
        ...working,
        retried(2, busy("req_1a")),
        retried(3, busy("req_2b")),
        retried(4, "Too many requests."),
        retried(5, "Too many requests."),
        retried(2, "Too many requests."),
        // Whole, as it is said once.
        retried(2, `${"Busy. ".repeat(30)}Another model may answer.`)
      ]),
      [
        "  · The server is busy (request req_1a). Trying again in 2.0 s (attempt 2).",
        "  · Trying again in 3.0 s (attempt 3).",
        "  · Too many requests. Trying again in 4.0 s (attempt 4).",
        "  · Trying again in 5.0 s (attempt 5).",
        "  · Too many requests. Trying again in 2.0 s (attempt 2).",
        `  · ${"Busy. ".repeat(30)}Another model may answer. Trying again in 2.0 s (attempt 2).`
      ]
    )
  })

  it("has a sentence for retries, compaction, restored sessions and interjections, but not for quiet ones", () => {
    const compacted = { reason: "threshold", removed: 12, tokens: 3400 }
    const events = [
      ...working,
      main.event({ _tag: "ModelRetried", model: "m", attempt: 2, reason: "Too many requests.", delay: 1500 }),
      main.event({ _tag: "CompactionEnded", ...compacted }),
      main.event({ _tag: "CompactionEnded", ...compacted, quiet: true }),
      main.event({ _tag: "CompactionEnded", ...compacted, removed: 0 }),
      main.event({ _tag: "SessionRestored", messages: 1 }),
      main.event(interjected("of an earlier turn")),
      main.event(interjected("of another one")),
      main.event({ _tag: "AgentStatusChanged", status: "thinking" }),
      main.event(interjected("and OAuth")),
      main.event({ _tag: "TurnEnded", reason: "turn_limit", steps: 3, detail: "after 3 calls" })
    ]
    assert.deepStrictEqual(shown(events), [
      "  · Too many requests. Trying again in 1.5 s (attempt 2).",
      "  · The conversation was shortened: 12 messages went, about 3,400 tokens stay.",
      "  · 1 message from before.",
      "  ↳ from you: and OAuth",
      "— turn limit: after 3 calls —"
    ])
  })

  it("says once what went wrong", () => {
    const failed = main.event({ _tag: "TurnEnded", reason: "failed", steps: 1, detail: "The disk is full." })
    const error = main.event({ _tag: "AgentError", message: "The disk is full." })
    const later = ["— failed: The disk is full. —"]
    assert.deepStrictEqual(shown([error, failed, failed]), ["✗ The disk is full.", "— failed —", ...later])
    const mended = main.event({ _tag: "TurnEnded", reason: "completed", steps: 1 })
    assert.deepStrictEqual(shown([error, mended, failed]), ["✗ The disk is full.", ...later])
  })

  it("lets nothing a model or a tool wrote steer the terminal", () => {
    const evil = "a\u001b[2Jb\u0007\u202ec"
    const events = [
      ...withChild,
      explore.says(evil),
      explore.ends,
      explore.calls("t", "c", evil),
      explore.called("t", "c", evil),
      main.event({ _tag: "AgentError", message: evil })
    ]
    const text = shown(events).join("\n")
    assert.notMatch(text, /[\u001b\u0007\u202e]/)
    assert.include(text, "│ explore ▸ abc")
  })
})

describe("the transcript of several agents", () => {
  it("shows a child under its call, with a margin and a label, and its figures at the end", () => {
    const events = [
      ...withChild,
      explore.says("I look.\nI see."),
      explore.ends,
      explore.used(1000, 200),
      explore.calls("list_files", "c", "src"),
      explore.called("list_files", "c", "a.ts"),
      explore.status("idle"),
      explore.completed(true, 2),
      main.called("delegate", "call of main/explore", "success=true", "succeeded", 3200)
    ]
    assert.deepStrictEqual(shown(events), [
      "● delegate look around",
      "│ explore ○ started",
      "│ explore ▸ I look.",
      "│ explore ▸ I see.",
      "│ explore ● list_files src",
      "│ explore ✓ 40 ms · a.ts",
      "  ✓ explore · 2 turns, 1,200 tokens, 3.2 s"
    ])
  })

  it("tells why a child did not succeed, though the call did", () => {
    const events = [
      ...withChild,
      explore.status("idle"),
      explore.completed(false, 10, "turn limit"),
      main.called("delegate", "call of main/explore", "success=false", "succeeded", 900)
    ]
    assert.strictEqual(shown(events).at(-1), "  ✗ explore · turn limit, 10 turns, 0 tokens, 900 ms")
    const cancelled = [...withChild, main.called("delegate", "call of main/explore", "stopped", "cancelled", 900)]
    assert.strictEqual(shown(cancelled).at(-1), "  ✗ explore cancelled · 0 tokens, 900 ms")
  })

  it("tells the end of a child in the background itself", () => {
    const events = [
      ...withChild,
      main.called("delegate", "call of main/explore", "spawned", "succeeded", 2),
      explore.status("idle"),
      explore.completed(true, 1, undefined, 5000)
    ]
    assert.deepStrictEqual(shown(events).slice(-2), [
      "  ✓ explore · works in the background",
      "│ explore ✓ finished: 1 turn, 0 tokens, 5.0 s"
    ])
  })

  it("tells a later task from the first, and its end at the call that asked for it", () => {
    const events = [
      ...withChild,
      explore.completed(true, 1),
      main.called("delegate", "call of main/explore", "", "succeeded", 10),
      main.calls("agent_ask", "ask", `agent_id=id_${"main/explore".length}, question=why`, 50),
      explore.turn("why", 60),
      explore.says("Because."),
      explore.ends,
      explore.completed(true, 1, undefined, 70),
      main.called("agent_ask", "ask", "success=true", "succeeded", 30)
    ]
    assert.deepStrictEqual(shown(events).slice(-3), [
      "│ explore ○ why",
      "│ explore ▸ Because.",
      "  ✓ explore · 1 turn, 0 tokens, 30 ms"
    ])
  })

  it("never mixes agents inside a line, and leaves the main agent's line whole", () => {
    const events = [
      ...withChildren,
      explore.says("one "),
      second.says("un "),
      explore.says("two\nthree"),
      second.says("deux\n"),
      explore.ends,
      second.ends
    ]
    assert.deepStrictEqual(shown(events).slice(4), [
      "│ explore ▸ one two",
      "│ explore-2 ▸ un deux",
      "│ explore ▸ three"
    ])
    const interrupted = [...working, main.says("I wri"), explore.created, explore.turn("x"), explore.says("hi\n")]
    assert.deepStrictEqual(shown([...interrupted, main.says("te.\n")]), ["I write.", "│ explore ○ x", "│ explore ▸ hi"])
  })

  it("prints the main agent's words by rows too while others work, so that those come between", () => {
    const words = (text: string) => text.split(/(?<= )/).map((word) => main.says(word))
    const events = [
      ...withChild,
      ...words("one two three four five six seven eight nine ten eleven twelve "),
      explore.says("hello\n"),
      ...words("thirteen"),
      main.ends
    ]
    assert.deepStrictEqual(shown(events, 62).slice(2), [
      "one two three four five six seven eight nine ten eleven twelve",
      "│ explore ▸ hello",
      "thirteen"
    ])
  })

  it("loses no blank between words, however they come and wherever a row ends", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 40, maxLength: 60 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 50, max: 80 }),
        (lengths, size, columns) => {
          const text = lengths.map((length) => "x".repeat(length)).join(" ")
          const pieces = text.match(new RegExp(`.{1,${size}}`, "g")) ?? []
          const rows = shown([...withChild, ...pieces.map((piece) => main.says(piece)), main.ends], columns)
          assert.strictEqual(rows.filter((row) => row.startsWith("x")).join(" "), text)
        }
      )
    )
  })

  it("does not keep others quiet for ever behind a line that does not end", () => {
    const many = Array.from({ length: 300 }, (_, index) => explore.says(`${index}\n`))
    const lines = shown([...working, main.says("I wri"), explore.created, explore.turn("x"), ...many])
    assert.strictEqual(lines[0], "I wri")
    assert.include(lines, "│ explore ▸ 299")
  })

  it("gives agents of one name different labels", () => {
    const events = [
      ...withChildren,
      explore.calls("explore", "call of main/explore/explore", "deeper"),
      nested.created,
      nested.turn("deeper"),
      nested.says("Deep.\n")
    ]
    assert.deepStrictEqual(shown(events).slice(-2), ["│ │ explore/explore ○ started", "│ │ explore/explore ▸ Deep."])
  })

  it("breaks a child's lines at words behind its margin, row by row while they come", () => {
    const words = "one two three four five six seven eight nine ten eleven twelve thirteen"
    const events = [...withChildren, ...words.split(/(?<= )/).map((word) => explore.says(word))]
    const before = shown(events, 62)
    assert.deepStrictEqual(before.slice(4), ["│ explore ▸ one two three four five six seven eight nine ten"])
    assert.deepStrictEqual(shown([...events, second.says("hello\n"), explore.ends], 62).slice(4), [
      "│ explore ▸ one two three four five six seven eight nine ten",
      "│ explore-2 ▸ hello",
      "│ explore ▸ eleven twelve thirteen"
    ])
    assert.deepStrictEqual(shown([...events, explore.ends], 62).slice(5), ["│           eleven twelve thirteen"])
  })

  it("gives the label a row of its own on a narrow terminal, when another agent begins", () => {
    const events = [
      ...withChildren,
      explore.says("a\nb\n"),
      second.says("c\n"),
      explore.calls("list_files", "c", "a very long path that does not fit")
    ]
    assert.deepStrictEqual(shown(events, 30).slice(6), [
      "│ explore",
      "│ ▸ a",
      "│ ▸ b",
      "│ explore-2",
      "│ ▸ c",
      "│ explore",
      "│ ● list_files a very long",
      "│   path that does not fit"
    ])
  })

  it("prints every word of every agent once and in order, in rows of one agent that fit, at any width", () => {
    const names = ["N1", "N2", "N2/N3"]
    const agents = [main, ...names.map((name) => agent(`main/${name}`, name.includes("/") ? "main/N2" : "main"))]
    // Each agent speaks in a letter of its own, which is in no label.
    const letters = ["a", "b", "c", "d"]
    const delta = fc.record({
      who: fc.integer({ min: 0, max: 3 }),
      what: fc.array(fc.constantFrom("x", "x", "xx", " ", "\n", "xxxxxxxxxxxxxxx", "END"), { maxLength: 8 })
    })
    fc.assert(
      fc.property(
        fc.array(delta, { maxLength: 60 }),
        fc.constantFrom(undefined, 24, 30, 60, 100),
        (deltas, columns) => {
          const said = ["", "", "", ""]
          const events = agents.flatMap((agent) => [agent.created, agent.turn("…"), agent.status("streaming")])
          for (const { what, who } of deltas) {
            const speaker = agents[who] ?? main
            for (const piece of what) {
              const text = piece.replaceAll("x", letters[who] ?? "")
              events.push(piece === "END" ? speaker.ends : speaker.says(text))
              if (piece !== "END") said[who] += text
            }
          }
          events.push(...agents.map((agent) => agent.ends))
          const lines = shown(events, columns)
          for (const [who, letter] of letters.entries()) {
            const printed = lines.join("").replace(new RegExp(`[^${letter}]`, "g"), "")
            assert.strictEqual(printed, (said[who] ?? "").replace(/[^abcd]/g, ""))
          }
          for (const line of lines) {
            assert.isAtMost(new Set(line.replace(/[^abcd]/g, "")).size, 1, line)
            // The main agent's words may be streamed, and are broken by the terminal.
            if (columns !== undefined && !line.includes("a")) assert.isAtMost(Display.width(line), columns)
          }
        }
      ),
      { numRuns: Runs.of(500) }
    )
  })

  it("leaves the main agent's words out where they are told elsewhere, and nothing else", () => {
    const events = [...withChild, main.says("the answer"), main.ends, explore.says("I look.\n")]
    assert.deepStrictEqual(shown(events, undefined, { quiet: true }).slice(1), [
      "│ explore ○ started",
      "│ explore ▸ I look."
    ])
  })
})

describe("the margin", () => {
  const node = (depth: number) => {
    const transcript = Transcript.make({ color: false })
    const path = Array.from({ length: depth + 1 }, (_, index) => `a${index}`).join("/")
    transcript.show(agent(path).created, undefined)
    const [first] = transcript.outline.nodes()
    assert.isDefined(first)
    return first
  }

  it("leaves room for words twenty levels down", () => {
    const line = {
      node: node(20),
      mark: Glyphs.drawn.says,
      text: "words and more words",
      continues: false,
      changes: true
    }
    for (const columns of [20, 30, 60, 100]) {
      const rows = Indent.rows(line, { style: Display.style(false), columns, signs: Glyphs.drawn })
      assert.isTrue(rows.every((row) => Display.width(row) <= columns))
      assert.isAtLeast(Indent.room(line.node, columns), columns / 3)
    }
  })
})

describe("rows that are heard", () => {
  const row = (depth: number, mark: string, text: string, columns?: number) => {
    const transcript = Transcript.make({ color: false })
    const path = Array.from({ length: depth + 1 }, (_, index) => `a${index}`).join("/")
    transcript.show(agent(path).created, undefined)
    const node = transcript.outline.nodes().find((one) => one.depth === depth)
    assert.isDefined(node)
    const line = { node, mark, text, continues: false, changes: false }
    return Indent.rows(line, { style: Display.style(false), columns, signs: Glyphs.said })
  }

  it("say the kind of a row, and whose it is, and draw nothing", () => {
    const { call, failed, note, says, succeeded, task } = Glyphs.said
    assert.deepStrictEqual(
      [
        ...[row(0, says, "words"), row(0, call, "read_file a"), row(0, `  ${succeeded}`, "3 lines")],
        ...[row(0, `  ${succeeded}`, ""), row(0, `  ${failed}`, "stopped"), row(0, `  ${note}`, "mode: plan")],
        ...[row(1, says, "words"), row(1, call, "read_file a"), row(1, failed, "read_file a"), row(1, task, "look")]
      ].flat(),
      ["words", "calls read_file a", "  done: 3 lines", "  done", "  failed: stopped", "  mode: plan"].concat([
        "a1: words",
        "a1 calls read_file a",
        "a1 failed: read_file a",
        "a1 begins: look"
      ])
    )
    for (const columns of [20, 30, 60])
      for (const depth of [0, 1, 3])
        for (const mark of Object.values(Glyphs.said)) {
          if (typeof mark !== "string") continue
          const rows = row(depth, mark, "words and more words, and others behind them", columns)
          assert.isTrue(
            rows.every((one) => Display.width(one) <= columns && /^[ -~]*$/.test(one)),
            rows.join("|")
          )
        }
  })
})

describe("the status", () => {
  const status = (events: ReadonlyArray<AgentEvent.AgentEvent>, columns = 100) => {
    const transcript = Transcript.make({ color: false })
    for (const event of events) transcript.show(event, columns)
    return transcript.status(columns)
  }
  const asked = second.event({
    _tag: "InteractionRequested",
    requestId: "r" as RequestId,
    kind: "Approve",
    summary: "run ls"
  })
  const settled = second.event({ _tag: "InteractionCancelled", requestId: "r" as RequestId, kind: "Approve" })

  it("is what the one agent does, and nothing when all are idle", () => {
    assert.deepStrictEqual(status([main.created, main.status("thinking", 7)]), { text: "thinking", since: 7 })
    assert.isUndefined(status([main.created, main.status("thinking"), main.status("idle")]))
  })

  it("says what each of several does, and who waits for the person", () => {
    const text = "main executing · explore streaming · explore-2 "
    assert.strictEqual(status(withChildren)?.text, `${text}streaming`)
    assert.strictEqual(status([...withChildren, asked])?.text, `${text}waiting for you`)
    assert.strictEqual(status([...withChildren, asked, settled])?.text, `${text}streaming`)
    assert.strictEqual(
      status([...withChildren, asked, second.status("done")])?.text,
      "main executing · explore streaming"
    )
  })

  it("says less where less fits, and who waits for the person first", () => {
    const events = [...withChildren, asked]
    assert.strictEqual(status(events, 60)?.text, "explore streaming · explore-2 waiting for you")
    const three = [...events, nested.created, nested.status("streaming")]
    assert.strictEqual(status(three, 64)?.text, "4 agents: 1 waiting for you, 1 executing, 2 streaming")
    assert.strictEqual(status(events, 20)?.text, "3 agents")
  })

  it("tells times in the unit a person would", () => {
    assert.deepStrictEqual([40, 3_210, 245_000].map(Activity.duration), ["40 ms", "3.2 s", "4 min 5 s"])
  })
})
