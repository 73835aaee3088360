/** A request of an earlier process keeps its id if its call shows the same again, whichever version kept it. */
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { shapesOnly } from "../../src/core/Redaction.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as RequestResumption from "../../src/journal/RequestResumption.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as JournalSample from "../kit/JournalSample.js"

const { interaction } = InteractionSample.samples.Approve
const { arguments: _, ...older } = interaction

/** The id under which the call asks again after its first question was kept like this. */
const resumed = (kept: Interaction.Approve, again: Interaction.Approve) => {
  const raised = { _tag: "InteractionRaised", request: JournalSample.request("req_1", kept) } as const
  const entry = Either.getOrThrow(Either.flatMap(JournalEntry.encode(raised), JournalEntry.decode))
  assert(entry._tag === "InteractionRaised")
  const resumption = RequestResumption.make({ answered: [], open: [entry.request] }, shapesOnly, () => {})
  return resumption.take(again, interaction.toolCallId)?.requestId
}

describe("an approval of an earlier process", () => {
  it("keeps its id, also if the version that kept it knew no arguments by name", () => {
    assert.strictEqual(resumed(interaction, interaction), "req_1")
    assert.strictEqual(resumed(Interaction.approve(older), interaction), "req_1")
  })

  it("is another one if its call shows something else", () => {
    const changed = { ...interaction, argumentsSummary: "rm -rf ." }
    assert.isUndefined(resumed(interaction, Interaction.approve(changed)))
  })
})
