import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { CorrelationId, RequestId, SessionId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as InteractionAudit from "../../src/broker/InteractionAudit.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import {
  InteractionCancelled,
  InteractionTimedOut,
  InteractorUnavailable,
  NoInteractor,
  type InteractionError
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const options = { rootSessionId: "ses_root" as SessionId, now: 9 }
const requestId = "req_1" as RequestId

const requestFor = (interaction: Interaction.Interaction): InteractionRequest => ({
  requestId,
  correlationId: "turn_1" as CorrelationId,
  sessionId: "ses_child" as SessionId,
  agentPath: "main/helper",
  issuedAt: 4,
  interaction
})

const answered = (kind: Interaction.Kind, answer?: unknown) => {
  const sample: InteractionSample.Sample = InteractionSample.samples[kind]
  return InteractionAudit.settled(
    requestFor(sample.interaction),
    Exit.succeed({
      answer: (answer ?? sample.answer) as Interaction.Answer<Interaction.Interaction>,
      by: "console",
      how: "answered"
    }),
    options
  )
}

const failed = (cause: Cause.Cause<InteractionError>) => {
  const request = requestFor(InteractionSample.samples.Confirm.interaction)
  const { by, outcome, reason } = Option.getOrThrow(InteractionAudit.settled(request, Exit.failCause(cause), options))
  return { by, outcome, reason }
}

describe("the audit of interactions", () => {
  it.effect("names the turn that asks, and no turn for a request from outside of any", () =>
    Effect.gen(function* () {
      const turnOf = (request: InteractionRequest) =>
        Option.getOrThrow(
          InteractionAudit.settled(request, Exit.fail(new NoInteractor({ requestId: request.requestId })), options)
        ).correlationId
      const asking = InteractionSample.request(InteractionSample.samples.Confirm.interaction)
      const turn = "turn_7" as CorrelationId
      assert.strictEqual(turnOf(yield* Origin.withOrigin(Origin.inTurn(Origin.outside, turn))(asking)), turn)
      assert.strictEqual(turnOf(yield* asking), undefined)
    })
  )

  it("tells of every kind but approvals that it was answered, and by whom, and of no kind the answer", () => {
    for (const kind of Object.keys(InteractionSample.samples) as ReadonlyArray<Interaction.Kind>) {
      const entry = answered(kind)
      if (kind === "Approve") {
        assert.isTrue(Option.isNone(entry))
        continue
      }
      const { class: audited, ...rest } = Option.getOrThrow(entry)
      const grants = kind === "grantStageTool" || kind === "approveSubagentEnvelope"
      assert.strictEqual(
        audited,
        { grantStageTool: "grant", approveSubagentEnvelope: "envelope" }[kind as string] ?? "interaction"
      )
      const told: Readonly<Record<string, unknown>> = rest
      assert.deepInclude(told, {
        kind,
        outcome: grants ? "granted" : "answered",
        rootSessionId: options.rootSessionId,
        sessionId: "ses_child",
        correlationId: "turn_1",
        requestId,
        agent: "main/helper",
        askedAt: 4,
        answeredAt: 9,
        by: "console",
        how: "answered"
      })
      for (const secret of InteractionSample.secrets) assert.notInclude(JSON.stringify(rest), secret)
      if (!grants) assert.doesNotHaveAnyKeys(rest, ["answer", "value", "reason"])
    }
  })

  it("takes a stage's no, and its later, for a denial, with the words that came with it", () => {
    for (const outcome of ["deny", "defer"]) {
      const entry = Option.getOrThrow(answered("grantStageTool", { outcome, note: "not now" }))
      assert.deepInclude(entry, { class: "grant", outcome: "denied", reason: "not now", tool: "deploy" })
    }
    assert.strictEqual(Option.getOrThrow(answered("approveSubagentEnvelope", { outcome: "deny" })).outcome, "denied")
  })

  it("keeps the ways apart in which nobody answers", () => {
    const by = "console"
    const fail = (error: InteractionError) => failed(Cause.fail(error))
    assert.deepStrictEqual(fail(new InteractionCancelled({ requestId, by })), {
      by,
      outcome: "cancelled",
      reason: "The question was cancelled by console."
    })
    assert.include(fail(new InteractionTimedOut({ requestId, by, after: 1_000 })), { by, outcome: "timed_out" })
    assert.include(fail(new InteractorUnavailable({ requestId, by, reason: "gone" })), { by, outcome: "unavailable" })
    assert.include(fail(new NoInteractor({ requestId })), { by: undefined, outcome: "unavailable" })
    assert.include(failed(Cause.interrupt(FiberId.none)), { outcome: "cancelled" })
    assert.include(failed(Cause.die("boom")), { outcome: "unavailable", reason: "asking failed" })
  })
})
