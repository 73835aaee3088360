import * as Tool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import type { ToolCallId } from "../../src/core/Id.js"
import * as ToolOutcome from "../../src/core/ToolOutcome.js"
import type { CallSnapshot } from "../../src/journal/JournalReading.js"
import type * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as CallResumption from "../../src/turn/CallResumption.js"

const id = "c1" as ToolCallId
const sent = { to: "ann" }
const masked = { to: "[REDACTED]" }

const proposed = (params: unknown = sent): CallSnapshot => ({
  call: { id, name: "send", params },
  decided: undefined,
  started: undefined,
  ended: undefined
})
const decided = (
  granted: boolean,
  more: Partial<NonNullable<CallSnapshot["decided"]>> = {}
): NonNullable<CallSnapshot["decided"]> => ({
  _tag: "CallDecided",
  toolCallId: id,
  granted,
  method: granted ? "user_approved" : "user_denied",
  reason: granted ? "allowed" : "person said no",
  ...more
})
const started = (params: unknown = sent): NonNullable<CallSnapshot["started"]> => ({
  _tag: "ToolStarted",
  toolCallId: id,
  tool: "send",
  params
})
const ended: NonNullable<CallSnapshot["ended"]> = { _tag: "ToolEnded", toolCallId: id, outcome: "succeeded", result: 7 }
const asking = { continuation: "step 2" } as NonNullable<CallSnapshot["continuation"]>

const Send = Tool.make("send")
/** Only what is looked at. */
const tool = (more: Partial<ToolRegistry.Entry> = {}): ToolRegistry.Entry =>
  ({
    name: "send",
    tool: Send,
    resumable: false,
    idempotent: false,
    decode: (params: unknown) =>
      typeof params === "object" ? Either.right({ decoded: params }) : Either.left("they are no object"),
    ...more
  }) as ToolRegistry.Entry
const gone = tool({ tool: Send.annotate(ToolTrait.Unoffered, true) })

const runs = (encoded: unknown, more: object = {}) => ({
  _tag: "Allowed",
  params: { decoded: encoded },
  encoded,
  edited: false,
  decided: undefined,
  byPerson: true,
  ...more
})
const ends = (result: string) => ({ _tag: "Ends", outcome: "interrupted", result })
const unknown = ends(ToolOutcome.lost)
const unasked = ends("Its agent has ended, so the call was not made.")
const lost = ends("Its arguments held a secret, and secrets are not stored. Propose the call again.")
const granted = decided(true)
const byRule = decided(true, { method: "whitelist" })
const edited = decided(true, { params: { to: "eve" } })

describe("a call of a process that ended", () => {
  const table: ReadonlyArray<
    readonly [string, CallSnapshot | undefined, ToolRegistry.Entry | undefined, object | undefined]
  > = [
    ["that nobody knows is decided", undefined, tool(), undefined],
    ["that was not decided is decided", proposed(), tool(), undefined],
    ["that was not decided, and whose tool is gone, is decided", proposed(), undefined, undefined],
    ["that was not decided, with a secret, is lost", proposed(masked), tool(), lost],
    [
      "that ended keeps its result",
      { ...proposed(), started: started(), ended },
      tool(),
      { _tag: "Ended", result: { id, name: "send", outcome: "succeeded", result: 7 } }
    ],
    [
      "that ended keeps its result, however it was decided",
      { ...proposed(), decided: decided(false), ended },
      undefined,
      { _tag: "Ended", result: { id, name: "send", outcome: "succeeded", result: 7 } }
    ],
    [
      "that was denied stays denied",
      { ...proposed(), decided: decided(false) },
      tool(),
      { _tag: "Denied", outcome: "denied", text: "Permission denied: person said no", refused: true }
    ],
    [
      "that a rule denied stays denied, as no refusal of a person",
      { ...proposed(), decided: decided(false, { method: "blacklist", reason: "never" }) },
      tool(),
      { _tag: "Denied", outcome: "denied", text: "Permission denied: never" }
    ],
    [
      "that was invalid stays invalid",
      { ...proposed(), decided: decided(false, { method: "pre_validation", reason: "no such file" }) },
      tool(),
      { _tag: "Ends", outcome: "invalid", result: "no such file" }
    ],
    ["that was granted runs", { ...proposed(), decided: granted }, tool(), runs(sent, { decided: granted })],
    [
      "that was granted with other arguments runs with those",
      { ...proposed(), decided: edited },
      tool(),
      runs({ to: "eve" }, { decided: edited, edited: true })
    ],
    [
      "that a rule granted runs, and nobody was asked",
      { ...proposed(), decided: byRule },
      tool(),
      { _tag: "Allowed", params: { decoded: sent }, encoded: sent, edited: false, decided: byRule }
    ],
    ["that was granted, with a secret, is lost", { ...proposed(masked), decided: granted }, tool(), lost],
    ["that was granted, and whose tool is gone, ends", { ...proposed(), decided: granted }, undefined, unknown],
    ["that was granted, and does not fit any more, ends", { ...proposed(7), decided: granted }, tool(), unknown],
    ["that was granted in an agent that has ended is not made", { ...proposed(), decided: granted }, gone, unasked],
    ["that was proposed in an agent that has ended is not made", proposed(), gone, unasked],
    ["that began is not run again", { ...proposed(), decided: granted, started: started() }, tool(), unknown],
    ["that began in an agent that has ended may have run", { ...proposed(), started: started() }, gone, unknown],
    [
      "that began and may run twice runs again, as it began",
      { ...proposed(), decided: granted, started: started({ to: "bob" }) },
      tool({ idempotent: true }),
      runs({ to: "bob" }, { decided: granted })
    ],
    [
      "that began, may run twice and has a secret is lost",
      { ...proposed(), decided: granted, started: started(masked) },
      tool({ idempotent: true }),
      lost
    ],
    [
      "that began and can be resumed goes on, and is decided no more",
      { ...proposed(), decided: granted, started: started() },
      tool({ resumable: true }),
      runs(sent)
    ],
    [
      "that can be resumed and has not begun keeps its decision",
      { ...proposed(), decided: granted },
      tool({ resumable: true }),
      runs(sent, { decided: granted })
    ],
    [
      "that asks, and goes on at its question, goes on there",
      { ...proposed(), decided: granted, started: started(), continuation: asking },
      tool({ continues: true }),
      runs(sent, { continuation: "step 2" })
    ],
    [
      "that asks with a tool that cannot go on there may have run",
      { ...proposed(), decided: granted, started: started(), continuation: asking },
      tool(),
      unknown
    ],
    [
      "that could go on at a question, and has none, may have run",
      { ...proposed(), decided: granted, started: started() },
      tool({ continues: true }),
      unknown
    ]
  ]
  for (const [what, past, entry, expected] of table) {
    it(what, () => {
      assert.deepStrictEqual<unknown>(CallResumption.of(past, entry), expected)
    })
  }
})
