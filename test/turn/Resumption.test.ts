/** Turns that another process began: what is left of them is done, and nothing is done twice. */
import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ToolCallId } from "../../src/core/Id.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as HistoryRules from "../kit/historyRules.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Kit from "../kit/session.js"

const { decided, ended, opened, received, results, root, said, taken, turnEnded } = JournalSample

const words = [received("msg_1", "go"), taken("turn_1", 1, "msg_1")]
const late = received("msg_2", "and this", { interjection: { parentId: "root" } })
const lost = "The program ended while this call was under way. Whether it took effect is not known."

/** The answer of a model call, whole or cut off. */
const answered = (step: number, text: string, partial = false): ReadonlyArray<JournalEntry> => [
  {
    _tag: "UsageRecorded",
    correlationId: taken("turn_1", step).correlationId,
    step,
    model: "test/replies",
    finishReason: "stop",
    usage: {}
  },
  said(text, partial)
]

/** A step with calls of `work` by these names, which are their ids. */
const proposed = (step: number, ...names: ReadonlyArray<string>): JournalEntry => ({
  ...JournalSample.proposed("turn_1", step),
  content: [
    Prompt.textPart({ text: "I will." }),
    ...names.map((name) => Prompt.toolCallPart({ id: name, name: "work", params: { name }, providerExecuted: false }))
  ],
  calls: names.map((name) => ({ id: name as ToolCallId, name: "work", params: { name } }))
})
const started = (name: string): JournalEntry => ({ ...JournalSample.started(name), tool: "work", params: { name } })

/** The agent of another process, which goes on from these entries, and says what became of the turn. */
const resumed = (entries: ReadonlyArray<JournalEntry>, options: Partial<Kit.Options> = {}) =>
  Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const process = (pid: number) => open({ pid, host: "here", isAlive: () => false })
    yield* Effect.scoped(
      Effect.flatMap(process(1).lock(root), (lease) =>
        lease.append([opened(), ...entries].map((entry, at) => ({ sessionId: root, at, entry })))
      )
    )
    const persistence = yield* Persistence.resume(process(2), root)
    const { heard, model } = Kit.replies({ text: "done" })
    const ran: Array<string> = []
    const worker: Kit.Worker = (name) => Effect.sync(() => (ran.push(name), `did ${name}`))
    const kit = yield* Kit.start({ model, worker, ...options, agent: { persistence, ...options.agent } })
    yield* kit.agent.awaitIdle
    assert.deepStrictEqual(HistoryRules.violations(kit.agent.history.messages), [])
    return {
      ran,
      asked: (yield* kit.person.shown).length,
      proposed: (yield* kit.of("ToolCallProposed")).map(({ toolCallId }) => String(toolCallId)),
      acknowledged: (yield* kit.of("InterjectionAcknowledged")).map(({ messageId, step }) => [String(messageId), step]),
      ends: (yield* kit.of("TurnEnded")).map(({ reason, steps }) => [reason, steps]),
      heard: heard.map(({ messages }) => Kit.outline(messages)),
      history: Kit.outline(kit.agent.history.messages)
    }
  })

const nothing = { ran: [], asked: 0, proposed: [], acknowledged: [], heard: [] }

describe("a turn of another process", () => {
  const go = "user: go"
  const batch = 'assistant: I will. | work({"name":"a"}) | work({"name":"b"}) | work({"name":"c"})'
  const table: ReadonlyArray<readonly [string, ReadonlyArray<JournalEntry>, object]> = [
    [
      "that had no answer asks the model",
      words,
      {
        ...nothing,
        heard: [[go]],
        history: [go, "assistant: done"],
        ends: [["completed", 1]]
      }
    ],
    [
      "that had its answer ends with it, and asks nobody",
      [...words, ...answered(1, "hello")],
      { ...nothing, history: [go, "assistant: hello"], ends: [["completed", 1]] }
    ],
    [
      "whose answer was cut off asks the model, which reads the words that cut it off",
      [...words, late, ...answered(1, "hel", true), taken("turn_1", 2, "msg_2")],
      {
        ...nothing,
        heard: [[go, "assistant: hel …", "user: and this"]],
        history: [go, "assistant: hel …", "user: and this", "assistant: done"],
        acknowledged: [["msg_2", 2]],
        ends: [["completed", 2]]
      }
    ],
    [
      "whose answer was cut off, and nothing more, asks the model",
      [...words, ...answered(1, "hel", true)],
      {
        ...nothing,
        heard: [[go, "assistant: hel …"]],
        history: [go, "assistant: hel …", "assistant: done"],
        ends: [["completed", 2]]
      }
    ],
    [
      "that had its answer, and words behind it, asks the model",
      [...words, ...answered(1, "hello"), late],
      {
        ...nothing,
        heard: [[go, "assistant: hello", "user: and this"]],
        history: [go, "assistant: hello", "user: and this", "assistant: done"],
        acknowledged: [["msg_2", 2]],
        ends: [["completed", 2]]
      }
    ],
    [
      "makes the calls that were not made, keeps the results of others, and says so of those that may have been made",
      [...words, proposed(1, "a", "b", "c"), started("a"), ended("a"), decided("b", true), started("b")],
      {
        ...nothing,
        ran: ["c"],
        proposed: ["b", "c"],
        heard: [[go, batch, `tool: {"seen":"a"} | ✗ ${lost} | did c`]],
        history: [go, batch, `tool: {"seen":"a"} | ✗ ${lost} | did c`, "assistant: done"],
        ends: [["completed", 2]]
      }
    ],
    [
      "makes a call that was allowed, and not one that was denied",
      [...words, proposed(1, "a", "b"), decided("a", true), decided("b", false, "req_1")],
      {
        ...nothing,
        ran: ["a"],
        proposed: ["a", "b"],
        heard: [
          [
            go,
            'assistant: I will. | work({"name":"a"}) | work({"name":"b"})',
            "tool: did a | ✗ Permission denied: look"
          ]
        ],
        history: [
          go,
          'assistant: I will. | work({"name":"a"}) | work({"name":"b"})',
          "tool: did a | ✗ Permission denied: look",
          "assistant: done"
        ],
        ends: [["completed", 2]]
      }
    ],
    [
      "whose calls have their results asks the model",
      [...words, proposed(1, "a"), started("a"), ended("a"), results("turn_1")],
      {
        ...nothing,
        heard: [[go, 'assistant: I will. | work({"name":"a"})', 'tool: {"seen":"a"}']],
        history: [go, 'assistant: I will. | work({"name":"a"})', 'tool: {"seen":"a"}', "assistant: done"],
        ends: [["completed", 2]]
      }
    ],
    [
      "makes a lone call that was allowed",
      [...words, proposed(1, "a"), decided("a", true)],
      {
        ...nothing,
        ran: ["a"],
        proposed: ["a"],
        heard: [[go, 'assistant: I will. | work({"name":"a"})', "tool: did a"]],
        history: [go, 'assistant: I will. | work({"name":"a"})', "tool: did a", "assistant: done"],
        ends: [["completed", 2]]
      }
    ],
    [
      "that had its end is over",
      [...words, ...answered(1, "hello"), turnEnded("turn_1")],
      { ...nothing, history: [go, "assistant: hello"], ends: [] }
    ]
  ]
  for (const [what, entries, expected] of table) {
    it.scoped(what, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual<object>(yield* resumed(entries), expected)
      })
    )
  }

  it.scoped("asks about a call that nobody had decided, and counts the steps of both", () =>
    Effect.gen(function* () {
      const entries = [...words, proposed(1, "a")]
      const ask = { policy: PermissionFile.policy({}) }
      const { asked, heard, ran } = yield* resumed(entries, { runtime: ask, person: ["y"] })
      assert.deepStrictEqual([asked, heard.length, ran], [1, 1, ["a"]])
      const limited = yield* resumed(entries, { agent: { limits: { maxSteps: 1 } } })
      assert.deepStrictEqual([limited.ran, limited.heard, limited.ends], [["a"], [], [["turn_limit", 1]]])
    })
  )

  it.scoped("has a result for each call beyond the limit of a step, too", () =>
    Effect.gen(function* () {
      const { history, ran } = yield* resumed([...words, proposed(1, "a", "b", "c")], {
        agent: { limits: { callsPerStep: 2 } }
      })
      assert.deepStrictEqual(ran, ["a", "b"])
      const third = "This step has 3 calls, and only the first 2 are looked at. Propose this one again in a later step."
      assert.strictEqual(history[2], `tool: did a | did b | ✗ ${third}`)
    })
  )
})
