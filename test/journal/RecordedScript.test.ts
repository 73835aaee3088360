import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import type { SessionId } from "../../src/core/Id.js"
import * as ScriptFile from "../../src/model/ScriptFile.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as RecordedScript from "../../src/journal/RecordedScript.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Family from "../kit/Family.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Runs from "../kit/Runs.js"
import { outline } from "../kit/session.js"

const { draft, opened, proposed, raised, received, root, said, settled, taken, turnEnded } = JournalSample
const { calls, delegate, work } = Family

const recording = (...entries: ReadonlyArray<JournalEntry>) =>
  RecordedScript.make({
    rootSessionId: root,
    entries: JournalSample.write([opened(), ...entries].map((entry) => draft(entry)))
  })

const parsed = (text: string): ScriptedModel.Script => {
  const script = ScriptFile.parse(text)
  assert(Either.isRight(script), Either.isLeft(script) ? script.left.message : "")
  return script.right
}

const used = (finishReason = "stop", inputTokens = 5, outputTokens = 2): JournalEntry => ({
  _tag: "UsageRecorded",
  correlationId: turnEnded("turn_1").correlationId,
  step: 1,
  model: "some/model",
  finishReason,
  usage: { inputTokens, outputTokens }
})

const content = (...parts: Extract<JournalEntry, { _tag: "AssistantAppended" }>["content"]): JournalEntry => ({
  _tag: "AssistantAppended",
  content: parts
})

/** Runs a family over a store: what became of it in the end, and in its journal. */
const run = (script: ScriptedModel.Script["agents"], person: Family.Options["person"], input: string) =>
  Effect.gen(function* () {
    const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
    const persistence = yield* Persistence.begin(store)
    const { agent } = yield* Family.start({ script, person, agent: { persistence } })
    const end = yield* agent.run(input)
    yield* persistence.journal.flush
    const loaded = yield* store.load(persistence.rootSessionId)
    const histories = SessionSnapshot.fold(loaded.entries).sessions.map(({ history, opened, usage }) => [
      opened.agent,
      outline(history),
      usage
    ])
    return { end, histories, loaded }
  })

describe("a recorded script", () => {
  it.scoped("plays the session again: the same messages, results, usage and ends, of children too", () =>
    Effect.gen(function* () {
      const person = ["y", "c: not b", "y"]
      const first = yield* run(
        {
          main: [
            { thinking: "Hm.\n  Well.", text: "I ask.", tools: [delegate("helper", "look"), { name: "nothing" }] },
            { text: "# not a comment: {a: 1}\n\nAll done. 'Yes' \"no\" \\", usage: { input: 7, output: 3 } }
          ],
          helper: [work("a", "b"), calls({ name: "work", params: { nam: 1 } }), work("c"), { text: "child done" }]
        },
        person,
        "go"
      )
      const text = RecordedScript.print(RecordedScript.make(first.loaded))
      const script = parsed(text)
      assert.deepStrictEqual(Object.keys(script.agents), ["main", "helper"])
      const second = yield* run(script.agents, person, "go")
      assert.deepStrictEqual(second.histories, first.histories)
      assert.deepStrictEqual(second.end, first.end)
      // Once more: what it recorded of itself is the same script.
      const again = RecordedScript.toScript(RecordedScript.make(second.loaded))
      assert.deepStrictEqual(again, RecordedScript.toScript(RecordedScript.make(first.loaded)))
    })
  )

  it("says in comments what people said, answered and stopped, where it happened", () => {
    const text = RecordedScript.print(
      recording(
        received("msg_1", "Fix\nit"),
        taken("turn_1", 1, "msg_1"),
        used("tool-calls"),
        proposed("turn_1", 1, "call_1"),
        raised("req_1"),
        settled("req_1"),
        JournalSample.decided("call_1", false, "req_1"),
        JournalSample.ended("call_1", "denied"),
        received("msg_2", "No, that", { interjection: { parentId: "root" } }),
        said("I was ab", true),
        taken("turn_1", 2, "msg_2"),
        said("That then."),
        {
          _tag: "TurnEnded",
          correlationId: turnEnded("turn_1").correlationId,
          end: { _tag: "Halted", detail: "a question", steps: 2 }
        }
      )
    )
    assert.strictEqual(
      text,
      `# Session ses_root, recorded 1970-01-01 00:00:01Z with model offline.
# It began with: Fix it
# The replay differs from the session:
# - A reply of main was interrupted. In the replay, send the words marked >> at that moment.

version: 1
agents:
  main:
    # > Fix it
    - text: I will.
      tools:
        - name: look
          params:
            at: call_1
          id: call_1
      usage:
        input: 5
        output: 2
    # Asked: Select (req_1)
    # req_1 answered by person: 0
    # look denied, user_denied: look
    # look denied: call_1
    # >> No, that
    - text: I was ab
    # The reply above was stopped here.
    - text: That then.
    # The turn halted: a question
`
    )
    parsed(text)
  })

  it("says at the top what cannot be played again", () => {
    const { remarks } = recording(
      received("msg_1", "use [REDACTED]"),
      content(
        Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1]) }),
        Prompt.toolCallPart({ id: "p1", name: "web_search", params: {}, providerExecuted: true })
      ),
      { _tag: "HistoryReplaced", reason: "threshold", messages: [] }
    )
    assert.deepStrictEqual(remarks, [
      "Secrets were masked in what main said or heard: [REDACTED] stands for them.",
      "main made a file, which a script cannot.",
      "web_search was run by the provider of main, which a script cannot.",
      "The history of main was shortened on the way; play it where nothing shortens it."
    ])
  })

  it("lets a model fail where it failed, and leaves other failures to the run", () => {
    const failed = (...before: ReadonlyArray<JournalEntry>) =>
      RecordedScript.toScript(
        recording(...before, {
          _tag: "TurnEnded",
          correlationId: turnEnded("turn_1").correlationId,
          end: { _tag: "Failed", error: "It broke.\nBadly.", steps: 1 }
        })
      ).agents["main"]
    assert.deepStrictEqual(failed(used("error")), [{ error: "bad_output" }])
    assert.deepStrictEqual(failed(said("x"), used("stop")), [{ text: "x" }])
  })

  it("tells agents of one name apart by their numbers, and names those it cannot", () => {
    const child = (id: string, agent: string) =>
      [
        draft(opened(id as SessionId, { agent, depth: 1, parentSessionId: root }), id as SessionId),
        draft(said(`I am ${agent}`), id as SessionId)
      ] as const
    const { agents, remarks } = RecordedScript.make({
      rootSessionId: root,
      entries: JournalSample.write([
        draft(opened()),
        ...child("a", "main/explore"),
        ...child("b", "main/explore-2"),
        ...child("c", "main/explore/explore")
      ])
    })
    assert.deepStrictEqual(
      agents.map(({ name }) => name),
      ["main", "explore", "explore-2"]
    )
    assert.deepStrictEqual(remarks, ["Several agents are called explore; the script has the steps of the first."])
  })

  it("is a script that can be read, whatever was said", () => {
    const texts = FastCheck.oneof(
      FastCheck.string({ unit: "binary" }),
      FastCheck.string({ unit: FastCheck.constantFrom("#", ":", " ", "\n", "-", "'", '"', "|", "\t", "\r", "a", "\\") })
    )
    FastCheck.assert(
      FastCheck.property(texts, texts, FastCheck.jsonValue(), texts, (text, thinking, params, words) => {
        const recorded = recording(
          received("msg_1", words, { interjection: { parentId: "root" } }),
          content(
            Prompt.reasoningPart({ text: thinking }),
            Prompt.textPart({ text }),
            Prompt.toolCallPart({ id: "call_1", name: "look", params, providerExecuted: false }),
            // The same value twice is no alias.
            Prompt.toolCallPart({ id: "call_2", name: "look", params, providerExecuted: false })
          )
        )
        assert.deepStrictEqual(
          JSON.parse(JSON.stringify(parsed(RecordedScript.print(recorded)).agents)),
          JSON.parse(JSON.stringify(RecordedScript.toScript(recorded).agents))
        )
      }),
      { numRuns: Runs.of(300) }
    )
  })

  it("can be taken from any journal", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        parsed(RecordedScript.print(RecordedScript.make({ rootSessionId: root, entries })))
      }),
      { numRuns: 100 }
    )
  })
})
