/**
 * Where the votes on one request go: each is in the journal before its author is told, and the one that completes what the
 * rules demand settles the request.
 *
 * ```
 *  answer ─► is it one, from somebody who has a say? ─► journal ─► counted, told ─┬─► open: others are waited for
 *                                                                                └─► decided: the request is settled
 * ```
 *
 * Votes are filed one after the other, so that their order in the journal is the order in which they counted.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FairLock from "../internal/FairLock.js"
import { isImmediate } from "../internal/Immediate.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import type * as Interaction from "../interaction/Interaction.js"
import { misfit } from "../interaction/Interaction.js"
import {
  InteractionAlreadyAnswered,
  InteractorUnavailable,
  MalformedAnswer,
  VoteRefused,
  type AnswerRejected,
  type InteractionError
} from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as Needs from "../interaction/Needs.js"
import * as NeedText from "../interaction/NeedText.js"
import * as Principal from "../interaction/Principal.js"

/** What this needs of a broker. */
export interface Host {
  /** Returns when the vote is durable; fails with a sentence. */
  readonly keep: (request: InteractionRequest, vote: Ballot.Cast) => Effect.Effect<void, string>
  readonly tell: (voted: Needs.Voted, missing: string | undefined) => void
  /** Who settled the request; nothing while it is open. */
  readonly settledBy: () => string | undefined
  readonly settle: (answered: Interactor.Answered<Interaction.Approve>) => void
}

export class BallotBox {
  private votes: ReadonlyArray<Ballot.Cast> = []
  /** Where votes wait for each other: held while one is written down. */
  private readonly line = FairLock.make()

  constructor(
    private readonly host: Host,
    private readonly request: InteractionRequest,
    private readonly reserved: Interaction.Approve & Ballot.Reserved
  ) {}

  /** The request as it is shown now: with those who have voted. */
  get shown(): InteractionRequest {
    if (this.votes.length === 0) return this.request
    return Tally.shownWith(this.request, this.reserved, Needs.votedOf(this.votes))
  }

  get cast(): ReadonlyArray<Ballot.Cast> {
    return this.votes
  }

  /** Takes votes that are in the journal already, or were given before. */
  restore(votes: ReadonlyArray<Ballot.Cast>): void {
    for (const vote of votes) {
      if (this.refusalOf(vote) === undefined) this.votes = Tally.having(this.reserved, this.votes, vote) ?? this.votes
    }
  }

  /** Settles the request when the votes suffice. `at`: when they did, in an earlier process. */
  count(at?: number): Interactor.Filed {
    return this.counted(Tally.standing(this.reserved, this.votes), at)
  }

  /** Why this person is not asked; `voted` when they have their vote in already. */
  refuses(principal: string, roles?: ReadonlyArray<string>): string | undefined {
    if (this.votes.some(({ by }) => Principal.isSame(by, principal))) return "voted"
    return Tally.refusal(this.reserved.needs, { by: principal, roles })
  }

  /** Files an answer, or the votes of those who gave it together. */
  file(answered: Interactor.Answered<Interaction.Approve>): Effect.Effect<Interactor.Filed, AnswerRejected> {
    const { answer, by, roles, votes } = answered
    const objection = this.objection(answered)
    if (objection !== undefined) return objection
    const given = votes ?? [{ answer, by, ...(roles && { roles }) }]
    const each = Effect.reduce(given, "open" as Interactor.Filed, (filed, vote) => this.one(filed, vote))
    return this.line.hold(Effect.uninterruptible(each))
  }

  /** Why this is nobody's vote; nothing when it is somebody's. */
  objection({ by, how }: Interactor.Answered<Interaction.Approve>): VoteRefused | undefined {
    if (how === "answered") return undefined
    const reason = `${NeedText.describeAll(this.reserved.needs.all)}, and it came from nobody (${how})`
    return new VoteRefused({ requestId: this.request.requestId, by, reason })
  }

  /** The end of a request that nobody is left for: who is missing, and who has voted. */
  missing(last: InteractionError | undefined): InteractionError {
    if (last?._tag === "InteractionTimedOut") return last
    const { requestId } = this.request
    const said = NeedText.describeVotes(Needs.votedOf(this.votes))
    const reason = [
      ...(said === undefined
        ? ["nobody who could decide it is there"]
        : [said, "nobody else who could decide it is there"]),
      last?.message ?? 'to wait for further people, start the agent with whenNobody: "wait"'
    ].join("; ")
    return new InteractorUnavailable({ requestId, by: "broker", reason })
  }

  /** Files one vote: as an exit, where it need not be written down. */
  private one(filed: Interactor.Filed, vote: Ballot.Cast): Effect.Effect<Interactor.Filed, AnswerRejected> {
    const { requestId } = this.request
    const { by } = vote
    if (filed === "settled") return Effect.succeed(filed)
    const refused = this.late() ?? this.decided() ?? this.refusalOf(vote)
    if (refused !== undefined) return Effect.fail(refused)
    const votes = Tally.having(this.reserved, this.votes, vote)
    // Given twice, also on two channels or after a crash, it counts once.
    if (votes === undefined) return Effect.succeed("open")
    const keeping = this.host.keep(this.request, vote)
    if (isImmediate(keeping)) return this.kept(votes, vote)
    return Effect.matchEffect(keeping, {
      onFailure: (reason) =>
        new VoteRefused({ requestId, by, reason: `it could not be recorded: ${reason}`, unwritten: true }),
      onSuccess: () => this.kept(votes, vote)
    })
  }

  private kept(
    votes: ReadonlyArray<Ballot.Cast>,
    { answer, by }: Ballot.Cast
  ): Effect.Effect<Interactor.Filed, AnswerRejected> {
    // It was withdrawn while the vote was written.
    const late = this.late()
    if (late !== undefined) return Effect.fail(late)
    this.votes = votes
    const standing = Tally.standing(this.reserved, votes)
    this.host.tell({ by, vote: answer.decision }, standing._tag === "Open" ? standing.missing : undefined)
    return Effect.succeed(this.counted(standing))
  }

  private late(): AnswerRejected | undefined {
    const by = this.host.settledBy()
    return by === undefined ? undefined : new InteractionAlreadyAnswered({ requestId: this.request.requestId, by })
  }

  private counted(standing: Tally.Standing, at?: number): Interactor.Filed {
    if (standing._tag === "Open") return "open"
    this.host.settle({ answer: standing.answer, at, by: standing.by, how: "answered", votes: this.votes })
    return "settled"
  }

  /** Votes of an earlier process decide the request, and it is settled as soon as it is in the journal again. */
  private decided(): AnswerRejected | undefined {
    const standing = Tally.standing(this.reserved, this.votes)
    if (standing._tag === "Open") return undefined
    return new InteractionAlreadyAnswered({ requestId: this.request.requestId, by: standing.by })
  }

  private refusalOf(vote: Ballot.Cast): AnswerRejected | undefined {
    const { requestId } = this.request
    const reason = misfit(this.reserved, vote.answer)
    if (reason !== undefined) return new MalformedAnswer({ requestId, kind: "Approve", reason })
    const refused = Tally.refusal(this.reserved.needs, vote)
    return refused === undefined ? undefined : new VoteRefused({ requestId, by: vote.by, reason: refused })
  }
}

/** The end of a request that was settled, for a vote. */
export const settledWith = (
  answered: Interactor.Answered<Interaction.Approve>
): Exit.Exit<Interactor.Answered<Interaction.Interaction>, InteractionError> =>
  // An answer to an approval is one to an interaction; the type of all answers cannot say so.
  Exit.succeed(answered as Interactor.Answered<Interaction.Interaction>)
