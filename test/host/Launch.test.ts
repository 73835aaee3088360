import { assert, describe, it } from "@effect/vitest"
import * as Launch from "../../src/host/Launch.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { Approve, Ask } = InteractionSample.samples

describe("the time for what a subagent asks", () => {
  it.each([
    { given: {}, attended: true, permission: undefined, question: undefined },
    { given: {}, attended: false, permission: 300_000, question: 300_000 },
    { given: { permission: 5_000 }, attended: true, permission: 5_000, question: undefined },
    { given: { permission: 5_000 }, attended: false, permission: 5_000, question: 300_000 },
    { given: { clarification: 0 }, attended: false, permission: 300_000, question: undefined }
  ])("with $given, at a terminal: $attended", ({ attended, given, permission, question }) => {
    const timeouts = Launch.subagentTimeouts(given, attended)
    assert.strictEqual(Interactor.millisOf(Approve.interaction, timeouts), permission)
    assert.strictEqual(Interactor.millisOf(Ask.interaction, timeouts), question)
  })
})
