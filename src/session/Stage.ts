/**
 * A bounded piece of an agent's work: *act* is one turn under an envelope of tools, *assert* decides whether it
 * succeeded.
 *
 * ```
 *  act ─► turn ─► assert ─┬─ ok ────────────────► Ok
 *   ▲                     ├─ fail ──────────────► Failed
 *   └──────── retry ──────┴─ no attempt is left ► Exhausted        (the turn was stopped ► Stopped)
 * ```
 *
 * In the turn, calls of `allowedTools` run without asking. Any other call raises `grantStageTool`: an approval counts
 * for that one call in that attempt; a denial, `defer` and silence are denials of that call, and the turn goes on. So does
 * a call that starts what lives on behind the stage, such as a command in the background.
 * Guards come first in every case. Approvals from elsewhere do not count here, not even `permissions all`.
 *
 * Tasks that the turn gives to subagents are under the stage as well: their calls are decided like its own. Work of
 * subagents that continues after the turn may still use only `allowedTools`, and asks for those as usual.
 *
 * @example
 * ```ts
 * import { Agent, Stage } from "assent"
 * import { Effect } from "effect"
 *
 * const build = (testsPass: Effect.Effect<boolean>) =>
 *   Stage.make({
 *     name: "build",
 *     allowedTools: ["run_command"],
 *     act: "Make the tests pass.",
 *     assert: () => Effect.map(testsPass, (pass) => (pass ? Stage.ok("green") : Stage.retry("tests fail"))),
 *     retryPolicy: { maxAttempts: 3 }
 *   })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   return yield* Stage.run(agent, build(Effect.succeed(true)))
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import type * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { IdGenerator } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import { EventBus } from "../event/EventBus.js"
import { GrantStageTool } from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Grant from "../permission/Grant.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import * as Subject from "../permission/Subject.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { TurnOptions } from "./Session.js"
import type { TurnEnd } from "../turn/Turn.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The outcome of a call outside the envelope.
 *
 * @since 0.1.0
 * @category models
 */
export interface GrantRecord {
  readonly proposalId: string
  readonly tool: string
  readonly argsDigest: string
  /** Secrets masked. */
  readonly argsSummary: string
  /** `unanswered`: cancelled, timed out, or no interactor. Only `approve` allows the call. */
  readonly outcome: "approve" | "deny" | "defer" | "unanswered"
  /** The answer's comment. */
  readonly note?: string
  /** The person who answered; absent if nobody answered. */
  readonly by?: string
}

/**
 * An attempt that has ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface Attempt {
  /** 0-based. */
  readonly index: number
  readonly end: TurnEnd
  /** In the order of the requests. */
  readonly grants: ReadonlyArray<GrantRecord>
  /** The reason for another attempt; absent for the latest. */
  readonly retry?: string
}

/**
 * Input of `act`.
 *
 * @since 0.1.0
 * @category models
 */
export interface ActContext {
  readonly stage: string
  /** Unique for this run of the stage. */
  readonly stageExecutionId: string
  /** 0-based. */
  readonly attempt: number
  /** Earlier attempts, oldest first. */
  readonly attempts: ReadonlyArray<Attempt>
}

/**
 * Input of `assert`: `attempts` ends with the attempt in question.
 *
 * @since 0.1.0
 * @category models
 */
export interface AssertContext extends ActContext {
  /** The attempt in question. */
  readonly current: Attempt
}

/**
 * The result of `assert`.
 *
 * @since 0.1.0
 * @category models
 */
export type Verdict<A> = Data.TaggedEnum<{
  readonly Ok: { readonly value: A }
  readonly Retry: { readonly reason: string }
  readonly Fail: { readonly reason: string }
}>

/**
 * A bounded piece of work: its tools, its prompt, and what must be true afterwards.
 *
 * @since 0.1.0
 * @category models
 */
export interface Stage<A, E = never, R = never> {
  readonly name: string
  /** Exact names of tools. */
  readonly allowedTools: ReadonlyArray<string>
  /** The prompt: a constant, or made from the attempts so far. */
  readonly act: string | ((context: ActContext) => Effect.Effect<string, E, R>)
  /** Run after every attempt that was not stopped, also after a failed turn. */
  readonly assert: (context: AssertContext) => Effect.Effect<Verdict<A>, E, R>
  readonly retryPolicy: {
    /** The first included; at least 1. */
    readonly maxAttempts: number
  }
}

/**
 * The end of a stage, as a value like `TurnEnd`. It holds every attempt, oldest first.
 *
 * @since 0.1.0
 * @category models
 */
export type StageEnd<A> = Data.TaggedEnum<{
  readonly Ok: { readonly value: A; readonly attempts: ReadonlyArray<Attempt> }
  readonly Failed: { readonly reason: string; readonly attempts: ReadonlyArray<Attempt> }
  /** The last attempt asked for a retry as well. */
  readonly Exhausted: { readonly reason: string; readonly attempts: ReadonlyArray<Attempt> }
  /** The last turn was cancelled or halted, so there is no further attempt. */
  readonly Stopped: { readonly end: TurnEnd; readonly attempts: ReadonlyArray<Attempt> }
}>

/**
 * The acting `Agent` or `Session`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Actor<E> {
  readonly tools: ToolRegistry.Service
  readonly turn: (text: string, options?: TurnOptions) => Effect.Effect<TurnEnd, E>
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * This agent cannot run the stage; nothing was begun.
 *
 * @since 0.1.0
 * @category errors
 */
export class StageInvalid extends Schema.TaggedError<StageInvalid>("assent/session/StageInvalid")("StageInvalid", {
  stage: Schema.String,
  /** All problems. */
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Stage ${JSON.stringify(this.stage)} cannot be run: ${this.problems.join("; ")}.`
  }
}

/**
 * The stage ended without a value; see {@link getOrFail}.
 *
 * @since 0.1.0
 * @category errors
 */
export class StageFailed extends Schema.TaggedError<StageFailed>("assent/session/StageFailed")("StageFailed", {
  how: Schema.Literal("Failed", "Exhausted", "Stopped"),
  reason: Schema.String,
  /** The number of attempts. */
  attempts: Schema.Number
}) {
  override get message(): string {
    const attempts = this.attempts === 1 ? "1 attempt" : `${this.attempts} attempts`
    return `The stage did not succeed (${this.how} after ${attempts}): ${this.reason}`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A stage as given; makes the types of `act` and `assert` meet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <A, E = never, R = never>(stage: Stage<A, E, R>): Stage<A, E, R> => stage

/**
 * The stage succeeded with this value.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ok = <A>(value: A): Verdict<A> => ({ _tag: "Ok", value })
/**
 * Another attempt is needed; the next `act` can read the reason.
 *
 * @since 0.1.0
 * @category constructors
 */
export const retry = (reason: string): Verdict<never> => ({ _tag: "Retry", reason })
/**
 * The stage failed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fail = (reason: string): Verdict<never> => ({ _tag: "Fail", reason })

// -----------------------------------------------------------------------------------------------------------------
// running
// -----------------------------------------------------------------------------------------------------------------

/**
 * Runs a stage. Each attempt is a turn of its own, after the agent's present work. An interrupt cancels the turn;
 * grants end with their attempt in every case. Fails with {@link StageInvalid}, and with the errors of `act`, `assert`
 * and the agent's `turn`.
 *
 * @since 0.1.0
 * @category operations
 */
export const run = <A, E, R, E2>(
  actor: Actor<E2>,
  stage: Stage<A, E, R>
): Effect.Effect<StageEnd<A>, E | E2 | StageInvalid, R> =>
  Effect.gen(function* () {
    const problems = problemsOf(actor, stage)
    if (problems.length > 0) return yield* new StageInvalid({ stage: stage.name, problems })
    const ids = yield* IdGenerator
    const stageExecutionId = ids.unsafeNext("stage")
    let attempts: ReadonlyArray<Attempt> = []
    for (;;) {
      const index = attempts.length
      const context: ActContext = { stage: stage.name, stageExecutionId, attempt: index, attempts }
      const text = typeof stage.act === "string" ? stage.act : yield* stage.act(context)
      const grants: Array<GrantRecord> = []
      const end = yield* Effect.scoped(
        Effect.gen(function* () {
          const held = yield* Grant.make({ stageExecutionId, attempt: index })
          const bounds = new Bounds(stage, held, grants)
          yield* Effect.addFinalizer(() => Effect.sync(() => bounds.end()))
          return yield* actor.turn(text, { authority: bounds.authority })
        })
      )
      const current: Attempt = { index, end, grants: [...grants] }
      attempts = [...attempts, current]
      if (isStopped(end)) return { _tag: "Stopped", end, attempts }
      const verdict = yield* stage.assert({ ...context, attempts, current })
      switch (verdict._tag) {
        case "Ok":
          return { _tag: "Ok", value: verdict.value, attempts }
        case "Fail":
          return { _tag: "Failed", reason: verdict.reason, attempts }
        case "Retry":
          if (attempts.length >= stage.retryPolicy.maxAttempts) {
            return { _tag: "Exhausted", reason: verdict.reason, attempts }
          }
          attempts = attempts.with(index, { ...current, retry: verdict.reason })
      }
    }
  })

/**
 * The value of a stage that ended well, for stages that build on one another; other ends become {@link StageFailed}.
 *
 * @since 0.1.0
 * @category operations
 */
export const getOrFail = <A>(end: StageEnd<A>): Effect.Effect<A, StageFailed> => {
  switch (end._tag) {
    case "Ok":
      return Effect.succeed(end.value)
    case "Failed":
    case "Exhausted":
      return new StageFailed({ how: end._tag, reason: end.reason, attempts: end.attempts.length })
    case "Stopped":
      return new StageFailed({ how: end._tag, reason: stopReason(end.end), attempts: end.attempts.length })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The most characters of arguments in a question. */
const longestShown = 100_000

const problemsOf = <E>(actor: Actor<E>, { allowedTools, retryPolicy }: Stage<unknown, unknown, unknown>) => {
  const unknown = allowedTools.filter((name) => actor.tools.get(name) === undefined)
  const known = actor.tools.entries.map((entry) => entry.name).join(", ")
  return [
    ...(unknown.length === 0 ? [] : [`the agent has no tool ${unknown.join(", ")} (it has: ${known})`]),
    ...(Number.isInteger(retryPolicy.maxAttempts) && retryPolicy.maxAttempts > 0
      ? []
      : [`maxAttempts is ${retryPolicy.maxAttempts} and must be a whole number from 1`])
  ]
}

/** A timeout ends only one attempt; every other cancellation, and a halt, ends the stage. */
const isStopped = (end: TurnEnd): boolean =>
  end._tag === "Halted" || (end._tag === "Cancelled" && end.reason !== "timeout")

const stopReason = (end: TurnEnd): string => {
  if (end._tag === "Cancelled") return `the turn was cancelled (${end.reason})`
  return end._tag === "Halted" ? end.detail : "the turn was stopped"
}

/**
 * Decides about every call of one attempt, so that none reaches the rules; and about calls of its work after its end.
 */
class Bounds {
  private readonly allowed: ReadonlySet<string>
  private readonly given: string
  private isOver = false

  constructor(
    private readonly stage: Pick<Stage<unknown>, "name" | "allowedTools">,
    private readonly grants: Grant.Grants,
    private readonly records: Array<GrantRecord>
  ) {
    this.allowed = new Set(stage.allowedTools)
    this.given = stage.allowedTools.length === 0 ? "no tools" : stage.allowedTools.join(", ")
  }

  readonly authority: PermissionGate.Authority = ({ call, entry }, { bus, redactor, state }) => {
    const { grants, records } = this
    const { name } = this.stage
    const isAllowed = this.allowed.has(call.name)
    const lasts = Subject.lasts(entry.outlives, call.params)
    if (this.isOver) return isAllowed ? Effect.succeedNone : Effect.succeedSome(this.outside(call.name))
    // What ends with the attempt says nothing of what goes on after it.
    if (isAllowed && !lasts) {
      const reason = `in the envelope of stage ${name}`
      return Effect.succeedSome(resolution({ granted: true, method: "envelope", reason }))
    }
    const reason = `Stage ${name} was given ${this.given}.${isAllowed ? " Work that this call starts continues after the call." : ""}`
    if (state?.asksNobody === true)
      return Effect.succeedSome(resolution({ granted: false, method: "mode", reason: `${reason} The mode is deny.` }))
    return Effect.asSome(Effect.provideService(asked(call, { name, reason, grants, records, redactor }), EventBus, bus))
  }

  /** Ends the attempt: afterwards allowed tools are left to the rules, and all others are denied. */
  end(): void {
    this.isOver = true
  }

  private outside(tool: string): PermissionGate.Resolution {
    const reason = `stage ${this.stage.name} is over, and what was begun in it may use ${this.given}, not ${tool}`
    return resolution({ granted: false, method: "stage_grant", reason })
  }
}

interface Asking {
  /** Name of the stage. */
  readonly name: string
  /** Shown with the question. */
  readonly reason: string
  readonly grants: Grant.Grants
  readonly records: Array<GrantRecord>
  readonly redactor: Redaction.Redactor
}

/** Asks for a grant of this one call, and consumes it. */
const asked = (
  call: ToolCall,
  { name, reason, grants, records, redactor }: Asking
): Effect.Effect<PermissionGate.Resolution, never, Interactor.Interactor | EventBus> =>
  Effect.gen(function* () {
    const binding = Grant.bindingOf(grants.attempt, call)
    const { tool, argsDigest, proposalId } = binding
    // The person must see what runs: text that only looks like a secret is not masked.
    const shown = Redaction.summarize(call.params, redactor.declared, longestShown)
    const argsSummary = Redaction.summarize(call.params, redactor)
    const keep = (record: Pick<GrantRecord, "outcome" | "note" | "by">) => {
      records.push({ proposalId, tool, argsDigest, argsSummary, ...record })
    }
    const interactor = yield* Interactor.current
    const request = yield* InteractionRequest.make(new GrantStageTool({ ...binding, argsSummary: shown, reason }))
    const { requestId } = request
    const unanswered = Effect.sync(() => keep({ outcome: "unanswered" }))
    const exit = yield* Effect.exit(Effect.onError(InteractorCall.ask(interactor, request), () => unanswered))
    if (Exit.isFailure(exit)) {
      const failure = Cause.failureOption(exit.cause)
      if (Option.isNone(failure)) return yield* Effect.failCause(Cause.stripFailures(exit.cause))
      const method = PermissionGate.unanswered(failure.value)
      return resolution({ granted: false, method, reason: redactor.text(failure.value.message), requestId })
    }
    const { answer, by, how } = exit.value
    const note = answer.note === undefined ? undefined : redactor.text(answer.note)
    keep({ outcome: answer.outcome, by, ...(note === undefined ? {} : { note }) })
    if (answer.outcome !== "approve") {
      const who = by === "console" ? "the user" : by
      const said = answer.outcome === "defer" ? "put off the decision about" : "did not grant"
      const method = how !== "answered" ? "unavailable" : note === undefined ? "user_denied" : "user_comment"
      return resolution({
        granted: false,
        method,
        reason: note ?? `${who} ${said} ${tool} in this stage`,
        requestId,
        by
      })
    }
    yield* grants.mint(binding)
    // The binding is computed again from the call: if its arguments changed meanwhile, the grant does not match.
    yield* grants.consume(Grant.bindingOf(grants.attempt, call))
    return resolution({
      granted: true,
      method: how === "yolo" ? "yolo" : "stage_grant",
      reason: `granted once, in attempt ${grants.attempt.attempt + 1} of stage ${name}`,
      requestId,
      by
    })
  }).pipe(
    Effect.catchAll(({ message }) =>
      Effect.succeed(resolution({ granted: false, method: "stage_grant", reason: message }))
    )
  )

const resolution = (how: PermissionGate.Resolution): PermissionGate.Resolution => how
