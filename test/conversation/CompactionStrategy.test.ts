import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import type { MessageId } from "../../src/core/Id.js"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as CompactionStrategy from "../../src/conversation/CompactionStrategy.js"
import * as TranscriptText from "../../src/conversation/TranscriptText.js"
import * as History from "../../src/conversation/History.js"
import * as HistorySegment from "../../src/conversation/HistorySegment.js"
import * as TokenEstimate from "../../src/conversation/TokenEstimate.js"
import * as Rules from "../kit/historyRules.js"
import * as Runs from "../kit/Runs.js"
import { outline } from "../kit/session.js"

type Messages = ReadonlyArray<Prompt.Message>

// -----------------------------------------------------------------------------------------------------------------
// histories
// -----------------------------------------------------------------------------------------------------------------

/** What one turn of a made-up history holds; numbers are lengths of texts. */
interface MadeTurn {
  readonly summaryBefore: boolean
  readonly said: number
  readonly parts: ReadonlyArray<
    { readonly results: ReadonlyArray<number> } | { readonly steering: number } | { readonly partial: number }
  >
  readonly answer: number | undefined
}

const text = (length: number) => "x".repeat(length)

const historyOf = (turns: ReadonlyArray<MadeTurn>, system: boolean, foreign: boolean, firstCall = 0): Messages => {
  const messages: Array<Prompt.Message> = system ? [Prompt.systemMessage({ content: "system" })] : []
  let calls = firstCall
  const user = (said: string, assent: object) =>
    messages.push(
      Prompt.userMessage({
        content: [Prompt.textPart({ text: said })],
        options: foreign ? {} : { assent: { ...assent } }
      })
    )
  turns.forEach((turn, number) => {
    if (turn.summaryBefore) messages.push(History.summaryMessage(`summary ${number}`))
    user(`turn ${number} ${text(turn.said)}`, { messageId: `m${number}`, turn: number })
    for (const part of turn.parts) {
      if ("steering" in part) user(`steering ${text(part.steering)}`, { messageId: "s" })
      else if ("partial" in part) {
        const content = [Prompt.textPart({ text: `partial ${text(part.partial)}` })]
        messages.push(Prompt.assistantMessage({ content, options: { assent: { partial: true } } }))
      } else {
        const ids = part.results.map(() => `c${calls++}`)
        messages.push(
          Prompt.assistantMessage({
            content: ids.map((id) => Prompt.toolCallPart({ id, name: "work", params: { id }, providerExecuted: false }))
          }),
          Prompt.toolMessage({
            content: ids.map((id, at) => result(id, at % 2 === 0 ? text(part.results[at] ?? 0) : { deep: [text(9)] }))
          })
        )
      }
    }
    if (turn.answer !== undefined) {
      messages.push(Prompt.assistantMessage({ content: [Prompt.textPart({ text: `answer ${text(turn.answer)}` })] }))
    }
  })
  return History.make(messages).messages
}

const result = (id: string, value: unknown) =>
  Prompt.toolResultPart({ id, name: "work", isFailure: false, providerExecuted: false, result: value })

const length = FastCheck.oneof(FastCheck.nat(60), FastCheck.nat(6_000))
const part = FastCheck.oneof(
  FastCheck.record({ results: FastCheck.array(length, { minLength: 1, maxLength: 3 }) }),
  FastCheck.record({ steering: length }),
  FastCheck.record({ partial: length })
)
const turn: FastCheck.Arbitrary<MadeTurn> = FastCheck.record({
  summaryBefore: FastCheck.integer({ min: 0, max: 5 }).map((dice) => dice === 0),
  said: length,
  parts: FastCheck.array(part, { maxLength: 4 }),
  answer: FastCheck.option(length, { nil: undefined })
})
const histories = FastCheck.tuple(
  FastCheck.array(turn, { maxLength: 9 }),
  FastCheck.boolean(),
  FastCheck.boolean()
).map(([turns, system, foreign]) => historyOf(turns, system, foreign))
const configs = FastCheck.record({
  type: FastCheck.constantFrom(...CompactionConfig.strategies),
  pressurePercent: FastCheck.constantFrom(0, 50, 90),
  preserveRecentTurns: FastCheck.nat(4),
  summarizeMiddleTurns: FastCheck.nat(3),
  pinnedTurnIndices: FastCheck.uniqueArray(FastCheck.nat(8), { maxLength: 3 })
}).map((changes) => ({ ...CompactionConfig.defaults, ...changes }))
const cases = FastCheck.record({
  messages: histories,
  config: configs,
  goalPercent: FastCheck.constantFrom(0, 30, 60, 100),
  goalTurns: FastCheck.constantFrom(Number.POSITIVE_INFINITY, 3),
  scale: FastCheck.constantFrom(0.5, 1, 3),
  running: FastCheck.boolean(),
  forced: FastCheck.boolean()
})
type Case = typeof cases extends FastCheck.Arbitrary<infer A> ? A : never

const snapshotOf = ({ config, forced, goalPercent, goalTurns, messages, running, scale }: Case) => {
  const tokens = TokenEstimate.estimate(messages) * scale
  const snapshot: CompactionStrategy.Snapshot = {
    messages,
    config,
    window: tokens * 1.2,
    tokens,
    goal: { tokens: (tokens * goalPercent) / 100, turns: goalTurns },
    running,
    forced,
    summarise: ({ limit }) => Effect.succeed({ text: text(limit), usage: {} })
  }
  return snapshot
}

const run = (snapshot: CompactionStrategy.Snapshot) =>
  Effect.runSync(CompactionStrategy.strategies[snapshot.config.type](snapshot))

const summaries = (messages: Messages) => messages.filter((message) => History.metadata(message).summary === true)

/** Turns that have to stay, as they are. */
const protectedTurns = ({ config, messages, running }: CompactionStrategy.Snapshot) => {
  const turns = HistorySegment.cut(messages).flatMap((unit) => (unit._tag === "Turn" ? [unit] : []))
  const recent = Math.max(config.preserveRecentTurns, running ? 1 : 0)
  return turns.filter(({ number }, at) => at >= turns.length - recent || config.pinnedTurnIndices.includes(number))
}

const check = (property: FastCheck.IProperty<[Case]>) => FastCheck.assert(property, { numRuns: Runs.of(300) })

describe("every strategy, for every history and configuration", () => {
  it("leaves a conversation that a provider takes", () => {
    check(
      FastCheck.property(cases, (one) => {
        assert.deepStrictEqual(Rules.violations(one.messages), [], "the made-up history is wrong")
        assert.deepStrictEqual(Rules.violations(run(snapshotOf(one)).messages), [])
      })
    )
  })

  it("keeps the system message, earlier summaries in order, pinned turns and the latest ones", () => {
    check(
      FastCheck.property(cases, (one) => {
        const snapshot = snapshotOf(one)
        const { messages } = run(snapshot)
        assert.strictEqual(messages[0]?.role === "system", one.messages[0]?.role === "system")
        const earlier = summaries(one.messages)
        assert.isTrue(
          summaries(messages)
            .slice(0, earlier.length)
            .every((message, at) => message === earlier[at])
        )
        assert.isAtMost(summaries(messages).length, earlier.length + 1)
        for (const turn of protectedTurns(snapshot)) {
          const at = messages.indexOf(turn.messages[0] ?? assert.fail())
          assert.isTrue(turn.messages.every((message, offset) => messages[at + offset] === message))
        }
      })
    )
  })

  it("keeps the order, and is never longer than before", () => {
    check(
      FastCheck.property(cases, (one) => {
        const { messages, removed, tokens } = run(snapshotOf(one))
        const kept = messages.map((message) => one.messages.indexOf(message)).filter((at) => at >= 0)
        assert.deepStrictEqual(
          kept,
          kept.toSorted((a, b) => a - b)
        )
        const before = TokenEstimate.estimate(one.messages)
        const after = TokenEstimate.estimate(messages)
        assert.isAtMost(after, before)
        assert.strictEqual(removed > 0, after < before)
        assert.closeTo(tokens, after * one.scale, 1)
      })
    )
  })

  it("reaches the goal, or nothing more may go: doing it again changes nothing", () => {
    check(
      FastCheck.property(cases, (one) => {
        const snapshot = snapshotOf(one)
        const { messages, tokens } = run(snapshot)
        const again = run({ ...snapshot, messages, tokens })
        assert.strictEqual(again.removed, 0)
        assert.strictEqual(again.messages, messages)
        if (tokens <= snapshot.goal.tokens || one.config.type === "budget") return
        const rest = TokenEstimate.estimate(
          HistorySegment.cut(messages)
            .filter(
              (unit) => unit._tag === "Turn" && !protectedTurns(snapshot).some((kept) => kept.number === unit.number)
            )
            .flatMap((unit) => unit.messages)
        )
        assert.isBelow(rest, one.config.type === "truncate" ? 1 : 100)
      })
    )
  })

  it("cuts results without taking anything away, and leaves pinned turns alone", () => {
    check(
      FastCheck.property(cases, (one) => {
        const snapshot = snapshotOf(one)
        const { messages, tokens } = CompactionStrategy.cutResults(snapshot)
        assert.deepStrictEqual(Rules.violations(messages), [])
        assert.strictEqual(messages.length, one.messages.length)
        assert.isAtMost(tokens, snapshot.tokens)
        for (const unit of HistorySegment.cut(one.messages)) {
          if (unit._tag !== "Turn" || !one.config.pinnedTurnIndices.includes(unit.number)) continue
          assert.isTrue(unit.messages.every((message) => messages.includes(message)))
        }
      })
    )
  })
})

describe("where turns are not enough", () => {
  const most = ({ goalPercent, messages, scale }: Case) =>
    (TokenEstimate.estimate(messages) * scale * goalPercent) / 100
  const thorough = (one: Case, limit: number | undefined) =>
    Effect.runSync(CompactionStrategy.thorough(one.config.type, limit)(snapshotOf(one)))
  const isStep = (message: Prompt.Message) =>
    History.metadata(message).steps === true ||
    message.role === "tool" ||
    (message.role === "assistant" && message.content.some((part) => part.type === "tool-call"))

  it("steps go, and the conversation is one that a provider takes", () => {
    check(
      FastCheck.property(cases, (one) => {
        const { messages, removed, tokens } = thorough(one, most(one))
        assert.deepStrictEqual(Rules.violations(messages), [])
        const before = TokenEstimate.estimate(one.messages)
        const after = TokenEstimate.estimate(messages)
        assert.isAtMost(after, before)
        assert.strictEqual(removed > 0, after < before)
        assert.closeTo(tokens, after * one.scale, 1)
      })
    )
  })

  it("what was said stays, and pinned turns, and what the model has not read", () => {
    check(
      FastCheck.property(cases, (one) => {
        const snapshot = snapshotOf(one)
        const { messages } = thorough(one, most(one))
        for (const turn of protectedTurns(snapshot)) {
          const isPinned = one.config.pinnedTurnIndices.includes(turn.number)
          const kept = turn.messages.filter((message) => isPinned || !isStep(message))
          const places = kept.map((message) => messages.indexOf(message))
          assert.notInclude(places, -1)
          assert.deepStrictEqual(
            places,
            places.toSorted((a, b) => a - b)
          )
        }
        const reply = one.messages.findLast(({ role }) => role === "assistant")
        const last = protectedTurns(snapshot).at(-1)?.messages ?? []
        const unread = reply === undefined || !last.includes(reply) ? [] : last.slice(last.indexOf(reply))
        assert.isTrue(unread.every((message) => messages.includes(message)))
      })
    )
  })

  it("and no steps where turns were enough", () => {
    check(
      FastCheck.property(cases, (one) => {
        const first = run(snapshotOf(one))
        const second = thorough(one, first.removed === 0 ? Number.POSITIVE_INFINITY : undefined)
        assert.deepStrictEqual(brief(second.messages), brief(first.messages))
      })
    )
  })

  it("and again: the summary of steps becomes a part of the next one", () => {
    check(
      FastCheck.property(cases, (one) => {
        const first = thorough(one, 0)
        const messages = [...first.messages, ...historyOf([more], false, false, 1_000)]
        const again = { ...one, messages, config: { ...one.config, preserveRecentTurns: 9, pinnedTurnIndices: [] } }
        const second = thorough(again, 0)
        assert.deepStrictEqual(Rules.violations(second.messages), [])
        const steps = second.messages.filter((message) => History.metadata(message).steps === true)
        assert.isAtMost(steps.length, 1)
      })
    )
  })

  /** A turn that works on, with ids that no made-up history has. */
  const more: MadeTurn = {
    summaryBefore: false,
    said: 1,
    parts: Array.from({ length: 40 }, () => ({ results: [3_000] })),
    answer: undefined
  }
  const brief = (messages: Messages) => messages.map((message) => `${message.role} ${History.textOf(message)}`)
})

describe("budget", () => {
  const turns = (...results: ReadonlyArray<ReadonlyArray<number>>) =>
    historyOf(
      results.map((each) => ({
        summaryBefore: false,
        said: 0,
        parts: each.map((size) => ({ results: [size] })),
        answer: 0
      })),
      false,
      false
    )
  const sizes = (messages: Messages) =>
    messages.flatMap((message) =>
      message.role === "tool"
        ? message.content.map(({ result }) =>
            String(result).startsWith("[This result") ? "note" : String(result).length
          )
        : []
    )
  const budget = (messages: Messages, tokens: number, changes: Partial<CompactionStrategy.Snapshot> = {}) =>
    Effect.runSync(
      CompactionStrategy.budget({
        messages,
        config: { ...CompactionConfig.defaults, preserveRecentTurns: 1 },
        window: 1_000_000,
        tokens: TokenEstimate.estimate(messages),
        goal: { tokens, turns: Number.POSITIVE_INFINITY },
        running: false,
        forced: false,
        summarise: () => Effect.dieMessage("no summary"),
        ...changes
      })
    )

  it("notes results of the oldest turn first, the longest of it first, and stops at the goal", () => {
    const messages = turns([500, 4_000, 1_000], [4_000], [4_000])
    const all = TokenEstimate.estimate(messages)
    assert.deepStrictEqual(sizes(budget(messages, all - 500).messages), [500, "note", 1_000, 4_000, 4_000])
    assert.deepStrictEqual(sizes(budget(messages, all - 1_100).messages), [500, "note", "note", 4_000, 4_000])
    assert.deepStrictEqual(sizes(budget(messages, all - 2_000).messages), ["note", "note", "note", "note", 4_000])
  })

  it("then drops calls with their results, and keeps what was said", () => {
    const messages = turns([500], [500], [500])
    assert.deepStrictEqual(outline(budget(messages, 0).messages).slice(0, 5), [
      "user: turn 0 ",
      "assistant: answer ",
      "user: turn 1 ",
      "assistant: answer ",
      "user: turn 2 "
    ])
  })

  it("drops whole turns only under pressure, never when continuous, and always when it must", () => {
    const messages = turns([500], [500], [500])
    const left = (changes: Partial<CompactionStrategy.Snapshot>) => budget(messages, 0, changes).messages.length
    const window = TokenEstimate.estimate(messages)
    const continuous = { ...CompactionConfig.defaults, preserveRecentTurns: 1, pressurePercent: 0 }
    assert.deepStrictEqual(
      [{}, { window }, { window: window * 1.2 }, { window, config: continuous }, { forced: true }].map(left),
      [8, 4, 8, 8, 4]
    )
  })
})

describe("units", () => {
  it("hold what steered a turn, and number turns as the session did", () => {
    const history = History.make([], undefined)
    const input = (said: string) => ({
      id: "m" as MessageId,
      source: "user" as const,
      delivery: "steer" as const,
      text: said,
      at: 0
    })
    history.setSystem("s")
    for (const said of ["a", "b", "c"]) {
      history.appendInput([input(said), input(`${said}2`)], { beginsTurn: true })
      history.appendInput([input(`${said}3`)])
    }
    history.replace(history.messages.filter((_, at) => at === 0 || at > 3))
    assert.deepStrictEqual(
      HistorySegment.cut(history.messages).map((unit) => [
        unit._tag === "Turn" ? unit.number : unit._tag,
        unit.messages.length
      ]),
      [
        ["System", 1],
        [1, 3],
        [2, 3]
      ]
    )
    history.appendAssistant([Prompt.toolCallPart({ id: "c", name: "work", params: {}, providerExecuted: false })])
    const before = history.revision()
    history.replace(history.messages.slice(0, -1))
    assert.notStrictEqual(history.revision(), before)
    assert.strictEqual(history.prompt.content, history.messages)
    assert.isTrue(history.hasCall("c"), "an id stays taken")
    const next = History.make(history.messages)
    next.appendInput([input("d")], { beginsTurn: true })
    assert.strictEqual(HistorySegment.cut(next.messages).at(-1)?._tag, "Turn")
    assert.deepStrictEqual(History.metadata(next.messages.at(-1) ?? assert.fail()).turn, 3, "numbers go on")
  })
})

describe("the meter", () => {
  it("takes what the provider counted and adds what came after, until the history is another one", () => {
    const history = History.make()
    const meter = TokenEstimate.make(history)
    const say = (length: number) => history.appendAssistant([Prompt.textPart({ text: text(length) })])
    say(400)
    assert.strictEqual(meter.tokens(), 104)
    meter.reported(1_000)
    meter.reported(0)
    say(40)
    assert.strictEqual(meter.tokens(), 1_014)
    history.clear()
    assert.strictEqual(meter.tokens(), 0)
    history.replace([History.summaryMessage(text(40))])
    meter.reset(7)
    say(40)
    assert.strictEqual(meter.tokens(), 21)
  })
})

describe("an excerpt", () => {
  const messages = historyOf(
    [{ summaryBefore: true, said: 0, parts: [{ results: [5_000] }, { steering: 1 }], answer: 3 }],
    true,
    false
  )

  it("says who said what, and cuts long results", () => {
    assert.deepStrictEqual(TranscriptText.make([], messages, 10_000).split("\n\n"), [
      "Summary of what came before: summary 0",
      "User: turn 0 ",
      'Assistant called work: {"id":"c0"}',
      `Result of work: ${text(2_000)} […]`,
      "User: steering x",
      "Assistant: answer xxx"
    ])
  })

  it("leaves out what was done where only words are of interest, and the oldest where there is no room", () => {
    assert.notInclude(TranscriptText.make(messages, [], 10_000), "work")
    const short = TranscriptText.make([], messages, 100)
    assert.isAtMost(short.length, 100)
    assert.match(short, /^\[The oldest part is left out here\.\]\n\n[^]*answer xxx$/)
  })

  it("never cuts a character in two", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string({ unit: "binary" }), FastCheck.nat(20), (all, length) => {
        for (const cut of [TranscriptText.head(all, length), TranscriptText.tail(all, length)]) {
          assert.isAtMost(cut.length, length)
          assert.isTrue(all.includes(cut))
          assert.notMatch(cut, /\p{Surrogate}/u)
        }
      })
    )
  })
})
