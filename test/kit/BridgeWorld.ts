/**
 * A broker, a person, and children that ask through bridges. A plan fixes the order of everything, down to single steps
 * of fibers: the same plan gives the same run.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as ParentBridgedChannel from "../../src/bridge/ParentBridgedChannel.js"
import type { CorrelationId, RequestId, SessionId } from "../../src/core/Id.js"
import type * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type * as EventBus from "../../src/event/EventBus.js"
import type { ChildRequest } from "../../src/inbox/ChildRequestQueue.js"
import * as Inbox from "../../src/inbox/Inbox.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import {
  InteractionCancelled,
  InteractorUnavailable,
  type InteractionError
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { samples } from "./InteractionSample.js"
import { settling } from "./Recorder.js"
import * as Shuffled from "./Shuffled.js"
import { Stepped, waiting } from "./Stepped.js"

// -----------------------------------------------------------------------------------------------------------------
// plans
// -----------------------------------------------------------------------------------------------------------------

/** The parent of each child; the root is 0. */
export const trees = { child: [0], nested: [0, 1], deep: [0, 1, 2], siblings: [0, 0], family: [0, 0, 1] } as const

export const kinds = ["Approve", "Approve", "Ask", "approveSubagentEnvelope"] as const
export const deeds = ["allow", "deny", "all", "cancel", "fail", "crash", "nonsense"] as const
export const policies = ["answers", "knows nothing", "misfits", "crashes", "hangs"] as const

/** A number selects one of the things that exist at that moment. */
export type Action =
  | { readonly do: "ask"; readonly who: number; readonly kind: (typeof kinds)[number] }
  | { readonly do: "react"; readonly dialog: number; readonly deed: (typeof deeds)[number] }
  | { readonly do: "outside"; readonly request: number; readonly what: "answer" | "withdraw" | "garbage" }
  | { readonly do: "tick"; readonly millis: number }
  | { readonly do: "interrupt"; readonly asking: number }
  | { readonly do: "close"; readonly who: number }
  | { readonly do: "leave" | "return" | "all" | "end" }

export interface Plan {
  readonly tree: keyof typeof trees
  /** Of every bridge, in milliseconds. */
  readonly timeout: number
  readonly onTimeout: "allow" | "deny"
  readonly dialogs: "one" | "unbounded"
  readonly whenNobody: "fail" | "wait"
  /** The policy of every mediator; `after` is its delay in milliseconds. Absent: all is forwarded. */
  readonly policy: { readonly does: (typeof policies)[number]; readonly after: number } | undefined
  /** After each round all fibers come to rest and everything is checked. */
  readonly rounds: ReadonlyArray<ReadonlyArray<Action>>
  readonly seed: number
}

// -----------------------------------------------------------------------------------------------------------------
// worlds
// -----------------------------------------------------------------------------------------------------------------

interface InteractorCall {
  readonly request: InteractionRequest
  readonly member: Member
  readonly fiber: Fiber.RuntimeFiber<Interactor.Answered<Interaction.Interaction>, InteractionError>
  interrupted: boolean
}

interface Mediation {
  readonly scope: Scope.CloseableScope
  /** What lives in it while no question is held. */
  readonly quiet: number
}

interface Member {
  readonly origin: Origin.Origin
  readonly interactor: Interactor.Service
  readonly inbox: Inbox.Service
  readonly scope: Scope.CloseableScope
  /** Of those who have children. */
  readonly mediation: Mediation | undefined
  readonly above: Member | undefined
  closed: boolean
}

interface Dialog {
  readonly request: InteractionRequest
  readonly end: (deed: (typeof deeds)[number]) => void
}

/** Plays the plan. Yields violations; `seen` is called with the kinds of events. */
export const play = (plan: Plan, seen: (what: string) => void): ReadonlyArray<string> =>
  new CallerContext(plan, seen).run()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class CallerContext {
  private readonly random: () => number
  private readonly machine: Stepped
  private readonly events: Array<AgentEvent> = []
  private readonly members: Array<Member> = []
  private readonly askings: Array<InteractorCall> = []
  private readonly dialogs = new Set<Dialog>()
  /** Questions that children handed over. */
  private readonly raised: Array<ChildRequest> = []
  private readonly shown = new Set<RequestId>()
  private readonly wrong: Array<string> = []
  private readonly broker: InteractionBroker.Service
  private readonly parents: ReadonlySet<number>
  private attached: Scope.CloseableScope | undefined
  private all = false
  private count = 0

  constructor(
    private readonly plan: Plan,
    private readonly seen: (what: string) => void
  ) {
    this.random = Shuffled.random(plan.seed)
    this.machine = new Stepped(this.random)
    this.parents = new Set(trees[plan.tree])
    const rootScope = this.now(Scope.make())
    this.broker = this.now(
      InteractionBroker.make({ bus: this.bus, redactor: Redaction.shapesOnly, whenNobody: plan.whenNobody }).pipe(
        Scope.extend(rootScope)
      )
    )
    this.join(undefined, rootScope)
    for (const above of trees[plan.tree]) {
      const parent = this.members[above]
      if (parent !== undefined) this.join(parent, this.now(Scope.fork(parent.scope, parent.scope.strategy)))
    }
    this.comeIn()
  }

  run(): ReadonlyArray<string> {
    for (const round of this.plan.rounds) {
      if (this.isGone(this.members[0])) break
      this.seen("schedules")
      this.begin()
      for (const action of round) {
        this.act(action)
        this.machine.steps(Math.floor(this.random() * 7))
      }
      this.conclude()
    }
    this.begin()
    // Nothing is blocked by earlier events: every living child asks and gets an answer.
    for (const [who, { mediation }] of this.members.entries()) if (mediation === undefined) this.ask(who, "Approve")
    this.conclude()
    this.close(0)
    this.expect(this.machine.rest(), "the end does not come to rest")
    this.expect(this.dialogs.size === 0, "a dialog outlives the root")
    this.expect(this.machine.asleep === 0, "somebody sleeps after the end")
    return this.wrong
  }

  private begin(): void {
    this.askings.length = 0
    this.events.length = 0
    this.all = false
    this.comeIn()
  }

  private expect(holds: boolean, otherwise: string): void {
    if (!holds) this.wrong.push(otherwise)
  }

  /** Runs what has to be done before anything else goes on. */
  private now<A>(effect: Effect.Effect<A>): A {
    const fiber = this.machine.runFork(effect)
    for (let i = 0; i < 20_000; i++) {
      const exit = fiber.unsafePoll()
      if (exit !== null) {
        if (Exit.isSuccess(exit)) return exit.value
        throw new Error(Cause.pretty(exit.cause))
      }
      if (!this.machine.step()) break
    }
    throw new Error("it does not end")
  }

  private get bus(): EventBus.Service {
    const unsafePublish = (event: AgentEvent) => this.events.push(event) > 0
    return {
      unsafePublish,
      publish: (event) => Effect.sync(() => void unsafePublish(event)),
      awaitRoom: Effect.void,
      subscribe: () => Effect.dieMessage("nobody reads here"),
      close: Effect.void
    }
  }

  // ---- members ----

  private join(above: Member | undefined, scope: Scope.CloseableScope): void {
    const number = this.members.length
    const id = `ses_${number}` as SessionId
    const agent = above === undefined ? "main" : `${above.origin.agent}/c${number}`
    const origin: Origin.Origin = {
      sessionId: id,
      rootSessionId: "ses_0" as SessionId,
      agent,
      depth: (above?.origin.depth ?? -1) + 1,
      ...(above === undefined ? {} : { parentSessionId: above.origin.sessionId, subagentId: `subagent_${number}` })
    }
    const inbox = this.now(Inbox.make())
    const { timeout, onTimeout } = this.plan
    const interactor =
      above === undefined
        ? this.broker.interactor
        : ParentBridgedChannel.make({
            parent: above.origin.agent,
            port: this.watched(above.inbox.childPort),
            timeouts: { permission: timeout, clarification: timeout, onTimeout },
            late: () => this.seen("a reply comes too late")
          })
    const mediation = this.parents.has(number) ? this.mediate(scope, inbox, interactor, origin) : undefined
    this.members.push({ origin, interactor, inbox, scope, mediation, above, closed: false })
  }

  private watched(port: Inbox.ChildPort): Inbox.ChildPort {
    return {
      ask: (raised) => {
        this.raised.push(raised)
        port.ask(raised)
      },
      withdraw: (requestId, why) => port.withdraw(requestId, why)
    }
  }

  private mediate(
    above: Scope.Scope,
    inbox: Inbox.Service,
    interactor: Interactor.Service,
    origin: Origin.Origin
  ): Mediation {
    const scope = this.now(Scope.fork(above, above.strategy))
    const strategy = this.strategy(origin.agent)
    const { bus } = this
    const options = { requests: inbox.requests, interactor, strategy, origin, bus, redactor: Redaction.shapesOnly }
    this.now(Scope.extend(Mediator.start(options), scope))
    return { scope, quiet: finalizersOf(scope) }
  }

  private strategy(agent: string): Mediator.Strategy | undefined {
    const { policy } = this.plan
    if (policy === undefined) return undefined
    return (request) =>
      Effect.suspend(() => {
        this.seen(`a policy ${policy.does}`)
        const known = this.decision(policy.does, request, agent)
        return policy.after === 0 ? known : Effect.delay(known, policy.after)
      })
  }

  private decision(
    does: (typeof policies)[number],
    request: InteractionRequest,
    agent: string
  ): Effect.Effect<Option.Option<unknown>> {
    switch (does) {
      case "answers":
        return Effect.succeedSome(answerFor(request, "deny", agent))
      case "knows nothing":
        return Effect.succeedNone
      case "misfits":
        return Effect.succeedSome({ decision: "perhaps" })
      case "crashes":
        return Effect.dieMessage("the policy is broken")
      case "hangs":
        return Effect.never
    }
  }

  private isGone(member: Member | undefined): boolean {
    return member !== undefined && (member.closed || this.isGone(member.above))
  }

  // ---- the person ----

  private readonly person: Interactor.Service = {
    id: "person",
    relay: false,
    request: <I extends Interaction.Interaction>(request: InteractionRequest<I>) => {
      let dialog: Dialog | undefined
      return waiting<Interactor.Answered<I>, InteractionError>(
        (resume) => {
          dialog = {
            request,
            end: (deed) => {
              if (dialog !== undefined) this.dialogs.delete(dialog)
              // What the deed says is an answer to the request's own kind.
              resume(this.react(request, deed) as Effect.Effect<Interactor.Answered<I>, InteractionError>)
            }
          }
          this.dialogs.add(dialog)
          this.shown.add(request.requestId)
        },
        () => {
          if (dialog !== undefined && this.dialogs.delete(dialog)) this.seen("a dialog is dismissed")
        }
      )
    }
  }

  private react(
    request: InteractionRequest,
    deed: (typeof deeds)[number]
  ): Effect.Effect<Interactor.Answered<Interaction.Interaction>, InteractionError> {
    const { requestId } = request
    switch (deed) {
      case "allow":
      case "deny":
        return Effect.succeed({ answer: answerFor(request, deed, "person"), by: "person", how: "answered" })
      case "all":
        if (request.interaction._tag !== "Approve") return this.react(request, "allow")
        this.all = true
        return Effect.succeed({ answer: { decision: "allow", scope: "all" }, by: "person", how: "answered" })
      case "cancel":
        return Effect.fail(new InteractionCancelled({ requestId, by: "person" }))
      case "fail":
        return Effect.fail(new InteractorUnavailable({ requestId, by: "person", reason: "it went away" }))
      case "crash":
        return Effect.dieMessage("the person's program is broken")
      case "nonsense":
        // The cast is deliberate: this value must be refused.
        return Effect.succeed({ answer: 7 as never, by: "person", how: "answered" })
    }
  }

  private comeIn(): void {
    if (this.attached !== undefined || this.members[0]?.closed === true) return
    this.attached = this.now(Scope.make())
    const interactor = this.plan.dialogs === "one" ? Interactor.serialized(this.person) : this.person
    this.now(Scope.extend(this.broker.attach(interactor), this.attached))
  }

  private goAway(): void {
    const scope = this.attached
    if (scope === undefined) return
    this.attached = undefined
    this.seen(this.dialogs.size > 0 ? "the person leaves an open dialog" : "the person leaves")
    this.machine.runFork(Scope.close(scope, Exit.void))
  }

  // ---- what happens ----

  private act(action: Action): void {
    switch (action.do) {
      case "ask":
        return this.ask(action.who % this.members.length, action.kind)
      case "react": {
        const dialog = [...this.dialogs][action.dialog % Math.max(1, this.dialogs.size)]
        if (dialog === undefined) return
        this.seen(`the person: ${action.deed}`)
        return dialog.end(action.deed)
      }
      case "outside":
        return this.outside(action)
      case "tick":
        return this.machine.pass(action.millis)
      case "interrupt": {
        const asking = this.askings[action.asking % Math.max(1, this.askings.length)]
        if (asking === undefined) return
        if (asking.fiber.unsafePoll() === null) this.seen("an asker is interrupted")
        asking.interrupted = true
        return asking.fiber.unsafeInterruptAsFork(FiberId.none)
      }
      case "close": {
        const number = 1 + (action.who % (this.members.length - 1))
        return this.close(number)
      }
      case "leave":
        return this.goAway()
      case "return":
        return this.comeIn()
      case "all":
        this.all = true
        return
      case "end":
        return this.close(0)
    }
  }

  private ask(who: number, kind: (typeof kinds)[number]): void {
    const member = this.members[who]
    if (member === undefined || this.isGone(member)) return
    const requestId = `req_${++this.count}` as RequestId
    const { origin } = member
    const request: InteractionRequest = {
      requestId,
      correlationId: "none" as CorrelationId,
      sessionId: origin.sessionId,
      agentPath: origin.agent,
      issuedAt: 0,
      ...(origin.parentSessionId === undefined ? {} : { parentSessionId: origin.parentSessionId }),
      ...(origin.subagentId === undefined ? {} : { subagentId: origin.subagentId }),
      interaction: samples[kind].interaction
    }
    const recheck = Effect.sync(() =>
      this.all ? Option.some({ decision: "allow", scope: "once" } as const) : Option.none()
    )
    this.seen(`depth ${origin.depth} asks ${kind}`)
    const fiber = this.machine.runFork(
      InteractorCall.ask(member.interactor, request, kind === "Approve" ? { recheck } : undefined)
    )
    this.askings.push({ request, member, fiber, interrupted: false })
  }

  private outside({ request, what }: Extract<Action, { readonly do: "outside" }>): void {
    // Also one that is settled already, or has not come that far.
    const asking = this.askings[request % Math.max(1, this.askings.length)]
    if (asking === undefined) return
    const { requestId } = asking.request
    const open = Effect.runSync(this.broker.open).some((open) => open.requestId === requestId)
    this.seen(`from outside: ${what}${open ? "" : ", not open"}`)
    if (what === "withdraw") {
      const withdrawn = Effect.runSync(this.broker.cancel(requestId, "outside"))
      return this.expect(withdrawn === open, `${requestId} was withdrawn though it was not open, or not though it was`)
    }
    const answer = what === "garbage" ? { decision: "allow" } : answerFor(asking.request, "deny", "outside")
    const exit = Effect.runSyncExit(this.broker.answer(requestId, "outside", answer))
    this.expect(
      Exit.isSuccess(exit) === (open && what === "answer"),
      `${requestId}: ${what} from outside, open ${open}`
    )
  }

  private close(number: number): void {
    const member = this.members[number]
    if (member === undefined || member.closed) return
    member.closed = true
    const inside = this.askings.filter((asking) => this.isGone(asking.member))
    for (const asking of inside) {
      if (asking.fiber.unsafePoll() !== null) continue
      this.seen(number === 0 ? "the root ends with an open question" : "a child is closed with an open question")
      asking.interrupted = true
      asking.fiber.unsafeInterruptAsFork(FiberId.none)
    }
    this.machine.runFork(Scope.close(member.scope, Exit.void))
  }

  // ---- what must be true ----

  private get unfinished(): ReadonlyArray<InteractorCall> {
    return this.askings.filter(({ fiber }) => fiber.unsafePoll() === null)
  }

  /** All requests end once the person answers and delays pass. */
  private conclude(): void {
    this.machine.rest()
    this.comeIn()
    for (let i = 0; i < 100; i++) {
      this.expect(this.machine.rest(), "it does not come to rest")
      this.checkDialogs()
      const [dialog] = this.dialogs
      if (dialog !== undefined) dialog.end("allow")
      else if (this.unfinished.length === 0 || !this.machine.passToNext()) break
    }
    for (const { request } of this.unfinished) this.wrong.push(`${request.requestId} is stuck`)
    for (const asking of this.askings) this.checkOutcome(asking)
    this.checkQuiet()
    this.checkEvents()
  }

  /** No dialog is open without a waiting request. */
  private checkDialogs(): void {
    for (const { request } of this.dialogs) {
      const asking = this.askings.find((asking) => asking.request === request)
      this.expect(asking?.fiber.unsafePoll() === null, `${request.requestId} is shown, and its asker has gone`)
    }
  }

  private checkQuiet(): void {
    this.expect(this.dialogs.size === 0, `at rest: a dialog is open`)
    this.expect(Effect.runSync(this.broker.open).length === 0, `at rest: the broker has an open request`)
    this.expect(this.machine.asleep === 0, `at rest: a clock runs`)
    this.expect(!this.raised.some(({ isOpen }) => isOpen), `at rest: a question of a child waits`)
    for (const member of this.members) {
      const { mediation } = member
      if (mediation === undefined || this.isGone(member)) continue
      const held = finalizersOf(mediation.scope) - mediation.quiet
      this.expect(held === 0, `at rest: the mediator of ${member.origin.agent} holds ${held} questions`)
    }
  }

  private checkOutcome({ fiber, interrupted, member, request }: InteractorCall): void {
    const { requestId } = request
    const exit = fiber.unsafePoll()
    if (exit === null) return
    const told = this.events.filter((event) => "requestId" in event && event.requestId === requestId)
    const requested = told.filter(({ _tag }) => _tag === "InteractionRequested").length
    const settled = told.filter(({ _tag }) => settling.has(_tag))
    this.expect(requested <= 1, `${requestId} was raised ${requested} times`)
    this.expect(
      settled.length === requested,
      `${requestId} was raised ${requested} and settled ${settled.length} times`
    )
    this.expect(!this.shown.has(requestId) || requested === 1, `${requestId} was shown and never raised`)
    if (Exit.isFailure(exit)) {
      const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
      if (failure === undefined) this.expect(interrupted, `${requestId} died: ${Cause.pretty(exit.cause)}`)
      else this.expect(failure.requestId === requestId, `${requestId} was given the end of ${failure.requestId}`)
      return this.seen(`ends as ${failure?._tag ?? "interrupted"}`)
    }
    const { answer, by, how } = exit.value
    this.seen(`ends ${how} at depth ${member.origin.depth}`)
    const named = nameOf(answer)
    this.expect(named === undefined || named === requestId, `${requestId} was given the answer to ${named}`)
    if (how === "recheck") return this.expect(this.all, `${requestId} was decided by nobody's rule`)
    if (how === "timeout") return this.expect(this.plan.onTimeout === "allow", `${requestId} was allowed by a timeout`)
    const [end] = settled
    this.expect(
      end?._tag === "InteractionAnswered" && end.by === by,
      `${requestId} was answered by ${by}, told ${end?._tag}`
    )
  }

  private checkEvents(): void {
    const open = new Map<string, number>()
    for (const event of this.events) {
      if (event._tag === "InteractionRequested") open.set(event.requestId, (open.get(event.requestId) ?? 0) + 1)
      else if (settling.has(event._tag) && "requestId" in event && event.requestId !== undefined) {
        const now = (open.get(event.requestId) ?? 0) - 1
        this.expect(now === 0, `${event._tag} of ${event.requestId} ends nothing`)
        open.set(event.requestId, now)
      }
    }
    for (const [id, count] of open) this.expect(count === 0, `${id} has no end`)
  }
}

/** An answer that tells which request it is for, where the kind leaves room for it. */
const answerFor = (
  request: InteractionRequest,
  deed: "allow" | "deny",
  by: string
): Interaction.Answer<Interaction.Interaction> => {
  const words = `${request.requestId} by ${by}`
  switch (request.interaction._tag) {
    case "Approve":
      return deed === "allow"
        ? { decision: "allow", scope: "once" }
        : { decision: "deny", scope: "once", comment: words }
    case "approveSubagentEnvelope":
      return { outcome: deed === "allow" ? "approve" : "deny", note: words }
    default:
      return words
  }
}

const nameOf = (answer: unknown): string | undefined => {
  const words =
    typeof answer === "object" && answer !== null
      ? "comment" in answer
        ? answer.comment
        : "note" in answer
          ? answer.note
          : undefined
      : answer
  return typeof words === "string" ? words.split(" by ")[0] : undefined
}

/** How many fibers and resources live in a scope; Effect keeps that to itself. */
const finalizersOf = (scope: Scope.Scope): number => {
  const state: unknown = Reflect.get(scope, "state")
  const finalizers: unknown = typeof state === "object" && state !== null ? Reflect.get(state, "finalizers") : undefined
  return finalizers instanceof Map ? finalizers.size : 0
}
