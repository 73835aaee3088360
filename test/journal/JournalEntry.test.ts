import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as FastCheck from "fast-check"
import * as TurnEnd from "../../src/event/TurnEnd.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as JournalSample from "../kit/JournalSample.js"

/** Written down and read again. */
const throughJson = (entry: JournalEntry.JournalEntry) =>
  Either.getOrThrow(JournalEntry.decode(JSON.parse(JSON.stringify(Either.getOrThrow(JournalEntry.encode(entry))))))

describe("an entry", () => {
  it("is read as it was written", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (written) => {
        for (const { entry } of written) assert.deepStrictEqual(throughJson(entry), entry)
      }),
      { numRuns: 50 }
    )
  })

  it("keeps what only some models say", () => {
    const entry: JournalEntry.JournalEntry = {
      _tag: "AssistantAppended",
      content: [
        Prompt.reasoningPart({ text: "Hm.", options: { anthropic: { type: "thinking", signature: "c2ln" } } }),
        Prompt.toolCallPart({ id: "srv_1", name: "web_search", params: { q: "x" }, providerExecuted: true }),
        Prompt.toolResultPart({
          id: "srv_1",
          name: "web_search",
          isFailure: false,
          result: ["y"],
          providerExecuted: true
        }),
        Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2, 250]) }),
        Prompt.textPart({ text: "Here \ud83d\ude00\u0000\u2028" })
      ]
    }
    assert.deepStrictEqual(throughJson(entry), entry)
    const shown = Prompt.userMessage({
      content: [
        Prompt.filePart({ mediaType: "image/png", data: new URL("https://example.org/a.png"), fileName: "a.png" }),
        Prompt.filePart({ mediaType: "text/plain", data: "aGk=" })
      ]
    })
    const replaced: JournalEntry.JournalEntry = {
      _tag: "HistoryReplaced",
      reason: "compacted",
      messages: [shown, Prompt.assistantMessage({ content: entry.content })]
    }
    assert.deepStrictEqual(throughJson(replaced), replaced)
  })

  it("keeps a request of every kind, and every answer but the secret ones", () => {
    for (const kind of InteractionSample.kinds) {
      const { answer, encoded, interaction } = InteractionSample.samples[kind]
      const request = JournalSample.request("req_1", interaction)
      const raised = throughJson({ _tag: "InteractionRaised", request })
      assert.deepStrictEqual(raised, { _tag: "InteractionRaised", request })
      assert.isTrue(
        raised._tag === "InteractionRaised" && raised.request.interaction instanceof Interaction.kinds[kind]
      )
      const settled = throughJson(JournalEntry.answered(request, answer, "person"))
      assert.deepStrictEqual(settled, {
        _tag: "InteractionSettled",
        requestId: request.requestId,
        status: "answered",
        ...(Interaction.isSecret(kind) ? {} : { answer: encoded }),
        by: "person"
      })
      assert.notInclude(JSON.stringify(settled), InteractionSample.password)
    }
  })

  it("keeps every way in which a turn ends as journals of earlier versions have it", () => {
    const ends: { readonly [Tag in TurnEnd.TurnEnd["_tag"]]: readonly [TurnEnd.TurnEnd, string] } = {
      Completed: [TurnEnd.Completed({ text: "ok", steps: 1 }), '{"_tag":"Completed","text":"ok","steps":1}'],
      Cancelled: [TurnEnd.Cancelled({ reason: "user", steps: 2 }), '{"_tag":"Cancelled","reason":"user","steps":2}'],
      TurnLimit: [TurnEnd.TurnLimit({ text: "", steps: 3 }), '{"_tag":"TurnLimit","text":"","steps":3}'],
      Halted: [TurnEnd.Halted({ detail: "nobody", steps: 4 }), '{"_tag":"Halted","detail":"nobody","steps":4}'],
      Denied: [TurnEnd.Denied({ detail: "again", steps: 5 }), '{"_tag":"Denied","detail":"again","steps":5}'],
      Failed: [TurnEnd.Failed({ error: "broken", steps: 0 }), '{"_tag":"Failed","error":"broken","steps":0}']
    }
    const entry = JournalSample.turnEnded("turn_1")
    for (const [end, text] of Object.values(ends)) {
      const kept = { ...entry, end: JSON.parse(text) }
      assert.deepStrictEqual(Either.getOrThrow(JournalEntry.decode(kept)), kept)
      assert.isTrue(Schema.is(TurnEnd.TurnEnd)(end))
      const written = Either.getOrThrow(JournalEntry.encode({ ...entry, end }))
      assert.deepStrictEqual(JSON.parse(JSON.stringify(written)), kept)
    }
  })

  it("of a later version, of an unknown kind or half there is told from one that can be read", () => {
    const reasonOf = (input: unknown) => Either.getOrElse(Either.flip(JournalEntry.decode(input)), () => "read")
    assert.include(reasonOf({ ...JournalSample.opened(), version: JournalEntry.version + 1 }), "this program reads 1")
    assert.include(reasonOf({ _tag: "MoonPhaseChanged" }), 'an entry of the kind "MoonPhaseChanged", which a later')
    const interaction = { _tag: "Divination", cards: 3 }
    assert.include(
      reasonOf({ _tag: "InteractionRaised", request: { requestId: "req_1", interaction } }),
      'a question of the kind "Divination", which a later version asked'
    )
    assert.include(reasonOf({ ...JournalSample.opened(), model: undefined }), "model")
    assert.notStrictEqual(reasonOf(null), "read")
    assert.strictEqual(reasonOf({ ...JournalSample.opened(), addedLater: true }), "read")
  })

  it("that does not fit is told in one sentence, which names the first place", () => {
    const reasonOf = (input: unknown) => Either.getOrElse(Either.flip(JournalEntry.decode(input)), () => "read")
    const turn = "turn_1"
    const entries: ReadonlyArray<readonly [unknown, string]> = [
      [{ ...JournalSample.turnEnded(turn), end: { _tag: "Nope" } }, "end._tag"],
      [{ ...JournalSample.opened(), model: undefined }, "model"],
      [{ _tag: "SessionOpened" }, "version is missing"],
      [{ _tag: "MessageReceived", message: { id: 1 } }, "message.id is 1, and string is expected"],
      [
        {
          _tag: "UsageRecorded",
          model: "x",
          correlationId: turn,
          step: 1,
          finishReason: "stop",
          usage: { inputTokens: "a\nb" }
        },
        "usage.inputTokens"
      ],
      [{ _tag: "HistoryReplaced", reason: "cleared", messages: "none" }, "messages"],
      [{ _tag: "MessageReceived", message: "x".repeat(20_000) }, "message"],
      [{}, "_tag is missing"],
      [3, "it has not the form that an entry has there"]
    ]
    for (const [entry, says] of entries) {
      const reason = reasonOf(entry)
      assert.include(reason, says)
      assert.isBelow(reason.length, 300, reason)
      assert.notMatch(reason, /[\n{]|Brand/, reason)
    }
  })
})
