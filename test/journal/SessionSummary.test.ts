import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as FastCheck from "fast-check"
import type { SessionId } from "../../src/core/Id.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as SessionSummary from "../../src/journal/SessionSummary.js"
import * as JournalSample from "../kit/JournalSample.js"

const bySchema = Schema.decodeUnknownEither(Schema.parseJson(SessionSummary.SessionSummary))

describe("a stored summary", () => {
  it("is read as the schema reads it, whole or damaged anywhere", () => {
    const wrong = FastCheck.constantFrom<unknown>(undefined, null, 1, "text", true, [], [{}], {}, { turn: 1 })
    FastCheck.assert(
      FastCheck.property(
        JournalSample.journals,
        FastCheck.nat(),
        wrong,
        FastCheck.boolean(),
        (entries, at, value, damaged) => {
          const summary = {
            ...SessionSummary.after(SessionSummary.empty(JournalSample.root, 1), entries),
            ...(at % 2 === 0 ? { workspace: "/home/ada/shop" } : {}),
            ...(at % 3 === 0 ? { forkOf: { rootSessionId: "ses_parent", turn: 2 } } : {})
          }
          const names = Object.keys(summary)
          const changed = damaged ? { ...summary, [names[at % names.length] ?? ""]: value } : summary
          const text = JSON.stringify(changed)
          assert.deepStrictEqual(SessionSummary.parse(text), Either.getOrUndefined(bySchema(text)))
        }
      )
    )
    for (const text of ["", "{", "null", "[]", "1", '"x"']) assert.isUndefined(SessionSummary.parse(text))
  })

  const whole = {
    ...SessionSummary.empty(JournalSample.root, 5),
    title: "Fix it",
    model: "m/m",
    turn: "turn_1",
    workspace: "/home/ada/shop",
    open: [{ requestId: "req_1", kind: "Confirm" }],
    forkOf: { rootSessionId: "ses_parent", turn: 2 },
    spent: { day: 3, tokens: 7 }
  }

  it("is damaged by each member that is of another type or not there, as for the schema", () => {
    const wrong = [undefined, null, 1, "text", true, [], [{}], {}, { turn: 1 }]
    const nested = [
      [{ requestId: "r" }],
      [{ kind: "k" }],
      [{ requestId: 1, kind: "k" }],
      [{ requestId: "r", kind: 1 }],
      [null],
      { rootSessionId: "r" },
      { rootSessionId: 1, turn: 1 },
      { rootSessionId: "r", turn: "1" },
      { day: 1 },
      { tokens: 1 },
      { day: "1", tokens: 1 },
      { day: 1, tokens: "1" }
    ]
    assert.isDefined(SessionSummary.parse(JSON.stringify(whole)))
    for (const name of Object.keys(whole))
      for (const value of [...wrong, ...nested]) {
        const text = JSON.stringify({ ...whole, [name]: value })
        assert.deepStrictEqual(SessionSummary.parse(text), Either.getOrUndefined(bySchema(text)), text)
      }
  })

  it("is listed with what becomes of its session, and who runs it", () => {
    const holder = { pid: 1, host: "here" }
    const states: ReadonlyArray<readonly [object, typeof holder | undefined, SessionSummary.State]> = [
      [{ closed: true, open: [], inTurn: true }, holder, "running"],
      [{ closed: true, inTurn: true }, undefined, "closed"],
      [{ inTurn: true }, undefined, "waiting"],
      [{ open: [], inTurn: true }, undefined, "interrupted"],
      [{ open: [] }, undefined, "idle"]
    ]
    for (const [changes, by, state] of states) {
      const summary = { ...whole, ...changes } as unknown as SessionSummary.SessionSummary
      const expected = { ...summary, state, ...(by === undefined ? {} : { holder: by }) }
      assert.deepStrictEqual<object>(SessionSummary.listed(summary, by), expected)
      assert.deepStrictEqual<object | undefined>(SessionSummary.parseListed(JSON.stringify(summary), by), expected)
    }
    assert.isUndefined(SessionSummary.parseListed("{", undefined))
  })
})

describe("the summary of a journal", () => {
  const { opened, raised, received, root, said, settled, taken, turnEnded, write, draft } = JournalSample
  const child = "ses_child" as SessionId
  const after = (...entries: ReadonlyArray<JournalEntry>) =>
    SessionSummary.after(SessionSummary.empty(root, 0), write(entries.map((entry) => draft(entry))))

  it("has the first words of its root as its title, in one line, or the names of files", () => {
    const titleOf = (text: string) => after(opened(), received("msg_1", text), received("msg_2", "later")).title
    assert.strictEqual(titleOf(" Fix\n  the\ttests "), "Fix the tests")
    assert.strictEqual(titleOf("x".repeat(80)), "x".repeat(80))
    assert.strictEqual(titleOf("x".repeat(81)), `${"x".repeat(79)}…`)
    const files = JournalSample.attached("msg_1", JournalSample.content("a"), JournalSample.content("b"))
    const silent = { ...files, message: { ...files.message, text: "" } }
    assert.strictEqual(after(opened(), silent).title, "0.png, 1.png")
  })

  it("has its turns, what is open, and how its root stands", () => {
    const words = [opened(), received("msg_1", "go"), taken("turn_1", 1, "msg_1")]
    assert.deepInclude(after(...words), { turns: 1, inTurn: true, sessions: 1, entries: 3, model: "offline" })
    assert.deepInclude(after(...words, said("hel", true), received("msg_2", "on"), taken("turn_1", 2, "msg_2")), {
      turns: 1
    })
    assert.deepInclude(after(...words, turnEnded("turn_1")), { turns: 1, inTurn: false })
    const asked = after(...words, raised("req_1"), raised("req_1"), raised("req_2"))
    assert.deepStrictEqual(
      asked.open.map(({ requestId }) => String(requestId)),
      ["req_1", "req_2"]
    )
    assert.deepStrictEqual(
      after(...words, raised("req_1"), raised("req_2"), settled("req_1")).open.map(({ requestId }) =>
        String(requestId)
      ),
      ["req_2"]
    )
    assert.isTrue(after(...words, { _tag: "SessionClosed" }).closed)
    assert.isFalse(after(...words, { _tag: "SessionClosed" }, { _tag: "SessionResumed" }).closed)
    assert.strictEqual(after(...words, { _tag: "SessionResumed", workspace: "/ws" }).workspace, "/ws")
    const others = write(
      [
        opened(child, { agent: "main/child", model: "other" }),
        received("msg_9", "task"),
        taken("turn_9", 1, "msg_9"),
        { _tag: "SessionClosed" } as const
      ].map((entry) => ({ ...draft(entry), sessionId: child }))
    )
    const own = after(...words)
    assert.deepStrictEqual(SessionSummary.after(own, others), {
      ...own,
      sessions: 2,
      entries: others.at(-1)?.seq ?? 0,
      lastActivity: others.at(-1)?.at ?? 0
    })
    assert.strictEqual(SessionSummary.after(own, []), own)
  })

  it("stands in a list by its last use, and those of one moment by their ids", () => {
    const at = (rootSessionId: string, lastActivity: number) => ({
      rootSessionId: rootSessionId as SessionId,
      lastActivity
    })
    const list = [at("b", 1), at("c", 2), at("a", 1), at("a", 1)]
    assert.deepStrictEqual(
      list.toSorted(SessionSummary.byActivity).map(({ rootSessionId }) => String(rootSessionId)),
      ["c", "a", "a", "b"]
    )
    assert.strictEqual(SessionSummary.byActivity(at("a", 1), at("a", 1)), 0)
  })

  it("has the tokens of the last day that had some", () => {
    const used = (at: number, input: number) => ({
      ...draft({
        _tag: "UsageRecorded",
        correlationId: taken("turn_1", 1).correlationId,
        step: 1,
        model: "m/m",
        finishReason: "stop",
        usage: { inputTokens: input, outputTokens: 1 }
      }),
      seq: 1,
      at
    })
    const begun = SessionSummary.beginOf(10)
    const summary = SessionSummary.after(SessionSummary.empty(root, begun), [
      used(begun - 1, 100),
      used(begun, 10),
      used(begun + 5, 20)
    ])
    assert.deepStrictEqual(summary.spent, { day: 10, tokens: 32 })
    assert.deepStrictEqual([SessionSummary.spentOn(summary, 10), SessionSummary.spentOn(summary, 11)], [32, 0])
    const later = SessionSummary.after(summary, [used(SessionSummary.beginOf(11), 1)])
    assert.deepStrictEqual(later.spent, { day: 11, tokens: 2 })
  })
})
