/**
 * Random stories of people who decide about calls, over as many processes as it takes, and what their audit tells.
 *
 * ```
 *  process 1 ──answers, edits, votes, withdrawals──► dies, or ends gently ──► answers through the store ──► process 2 ──► …
 *                                                                        the last one says yes to everything ──► judged
 * ```
 *
 * The audit outlives the processes. It is read alone, and compared with what the people said and what the tools did.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { setImmediate } from "node:timers/promises"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as Digest from "../../src/core/Digest.js"
import * as Id from "../../src/core/Id.js"
import * as Ballot from "../../src/interaction/Ballot.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import type * as JournalEntry from "../../src/journal/JournalEntry.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionVote from "../../src/journal/SessionVote.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { noFiles } from "./agents.js"
import * as Mortal from "./Mortal.js"

/** What came of a story. */
export interface Verdict {
  readonly problems: ReadonlyArray<string>
  readonly counts: Readonly<Record<string, number>>
}

const named = { parameters: { name: Schema.String }, success: Schema.String } as const
/** One person decides about it. */
const Work = Tool.make("work", named).pipe(ToolTrait.editable(["name"]))
/** Two of three have to agree. */
const Pair = Tool.make("pair", named).pipe(ToolTrait.editable(["name"]))
/** Asks a question of its own. */
const Wonder = Tool.make("wonder", { ...named, dependencies: [Interactor.Interactor] })
  .annotate(ToolTrait.Resumable, true)
  .annotate(ToolTrait.AutoApproved, true)
const toolkit = Toolkit.make(Work, Pair, Wonder)

const policy = Policy.make({
  approvals: [{ tools: ["pair"], quorum: 2, roles: ["desk"] }],
  roles: { desk: ["ada", "grace", "linus"] },
  whitelist: { patterns: ["work(name=free*)"] },
  blacklist: { patterns: ["work(name=bad*)"] }
})

/** Everybody who may have to do with it; eve has no say where a role is needed. */
const people = ["ada", "grace", "linus", "eve"] as const

type Approval = InteractionRequest<Interaction.Approve>

/** What a person was told to be kept. */
interface Acknowledged {
  readonly requestId: string
  readonly by: string
  readonly what: string
}

/** Plays one story in this world. `random` yields numbers from 0 up to 1. */
export const play = (random: () => number, world: Mortal.CallerContext): Effect.Effect<Verdict> =>
  Effect.suspend(() => {
    // Each look at the clock is an instant of its own, so that an order can be seen.
    let now = 0
    const clock = Object.assign(Clock.make(), {
      unsafeCurrentTimeMillis: () => ++now,
      currentTimeMillis: Effect.sync(() => ++now)
    })
    return Effect.withClock(
      Effect.flatMap(Story.make(random, world), (story) => story.play),
      clock
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Story {
  readonly problems: Array<string> = []
  readonly counts: Record<string, number> = {}
  /** What handlers did, by the name of the call. */
  private readonly done: Array<string> = []
  private readonly acknowledged: Array<Acknowledged> = []
  private readonly proposed = new Map<string, string>()
  private readonly script: ReadonlyArray<{
    readonly text?: string
    readonly tools?: ReadonlyArray<{ readonly name: string; readonly id: string; readonly params: object }>
  }>
  private edits = 0

  static make(random: () => number, world: Mortal.CallerContext): Effect.Effect<Story> {
    return Effect.map(AuditTrail.makeMemory(), ({ memory, trail }) => new Story(random, world, trail, memory))
  }

  constructor(
    private readonly random: () => number,
    private readonly world: Mortal.CallerContext,
    private readonly trail: AuditTrail.Service,
    private readonly memory: AuditTrail.AuditMemory["Type"]
  ) {
    let calls = 0
    const steps = Array.from({ length: 1 + this.below(2) }, () => ({
      tools: Array.from({ length: 1 + this.below(3) }, () => {
        const name = `n${++calls}`
        const id = `call_${calls}`
        this.proposed.set(id, name)
        return { name: this.pick(["work", "work", "pair", "pair", "wonder"]), id, params: { name } }
      })
    }))
    this.script = [...steps, { text: "done" }]
  }

  get play(): Effect.Effect<Verdict> {
    return Effect.gen(this, function* () {
      for (let left = this.below(5); left > 0; left--) {
        yield* this.process(false)
        yield* this.meanwhile
      }
      yield* this.process(true)
      yield* this.judge
      return { problems: this.problems, counts: this.counts }
    })
  }

  private below(n: number): number {
    return Math.floor(this.random() * n)
  }

  private pick<A>(items: ReadonlyArray<A>): A {
    return items[this.below(items.length)] as A
  }

  private count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by
  }

  private process(isLast: boolean): Effect.Effect<void> {
    const { world } = this
    return Effect.gen(this, function* () {
      this.count("processes")
      const pid = ++world.processes
      const life = { over: false }
      const death = isLast || this.random() < 0.5 ? undefined : { at: 1 + this.below(14), written: this.random() < 0.5 }
      const { store } = Mortal.mortal(yield* world.open(pid), death, () => {
        life.over = true
      })
      // Nothing of a dead process reaches the disk.
      const trail: AuditTrail.Service = {
        record: (entry) => Effect.suspend(() => (life.over ? Effect.never : this.trail.record(entry))),
        release: () => Effect.void
      }
      const scope = yield* Scope.make()
      const { agent, isNew } = yield* Scope.extend(this.start(pid, store, life), scope).pipe(
        Effect.provideService(AuditTrail.AuditTrail, trail)
      )
      const running = yield* Effect.forkDaemon(
        Effect.exit<unknown, unknown, never>(isNew ? agent.run("go") : agent.awaitIdle)
      )
      yield* this.rest
      const moves = isLast ? Number.POSITIVE_INFINITY : this.below(10)
      // A database on a busy machine takes its time: the clock of the machine ends what hangs.
      const end = performance.now() + 60_000
      for (let move = 0; move < moves && performance.now() < end && !life.over; move++) {
        const open = yield* agent.broker.open
        const [request] = open
        if (isLast && request === undefined && (yield* agent.isIdle)) break
        if (request !== undefined) {
          const asked = isLast ? request : this.pick(open)
          yield* this.answer(agent, asked, isLast)
          // Two at once.
          if (!isLast && this.random() < 0.2) yield* this.answer(agent, asked, false)
          if (isLast || this.random() < 0.8) yield* this.rest
        } else yield* this.rest
      }
      if (life.over) {
        this.count("killed")
        return
      }
      if (isLast) {
        if (!(yield* agent.isIdle)) this.problems.push("it does not come to an end")
        yield* Scope.close(scope, Exit.void)
        return
      }
      const ending = this.pick(["killed", "closed", "interrupted", "drained"] as const)
      this.count(ending)
      if (ending === "killed") {
        life.over = true
        return
      }
      // Somebody answers while it ends.
      const [late] = yield* agent.broker.open
      if (late !== undefined && this.random() < 0.3) yield* this.answer(agent, late, false)
      if (ending === "drained") yield* agent.drain("5 millis")
      if (ending === "interrupted") yield* Fiber.interrupt(running)
      yield* Effect.race(Scope.close(scope, Exit.void), this.dead(life))
      yield* this.rest
      life.over = true
    })
  }

  /** A process may die while it ends. */
  private dead(life: { readonly over: boolean }): Effect.Effect<void> {
    return Effect.repeat(
      Effect.promise(() => setImmediate()),
      { until: () => life.over }
    )
  }

  private start(pid: number, store: SessionStore.Service, life: { readonly over: boolean }) {
    const { world } = this
    const handler = (tool: string) => (given: { readonly name: string }) =>
      Effect.suspend(() => {
        if (life.over) return Effect.never
        this.done.push(`${tool} ${given.name}`)
        return Effect.as(Effect.repeatN(Effect.yieldNow(), this.below(4)), given.name)
      })
    let ids = 0
    const runtime = AgentRuntime.layer({ toolkit, policy, limits: { identicalErrors: 1_000 } }).pipe(
      Layer.provide([noFiles, ScriptedModel.layer({ agents: { main: this.script } })]),
      Layer.provide(
        toolkit.toLayer({
          work: handler("work"),
          pair: handler("pair"),
          wonder: ({ name }) =>
            Effect.map(
              Effect.either(Interactor.ask(new Interaction.Confirm({ prompt: name, default: false }))),
              (answer) => `${answer._tag} ${name}`
            )
        })
      ),
      Layer.provideMerge(Layer.succeed(Id.IdGenerator, { unsafeNext: (prefix) => `${prefix}_${pid}.${++ids}` }))
    )
    return Effect.gen(this, function* () {
      const { id } = world
      const persistence = yield* id === undefined
        ? Persistence.begin(store)
        : Effect.catchTag(Persistence.resume(store, id), "SessionUnknown", () => Persistence.begin(store))
      world.id = persistence.rootSessionId
      const context = yield* Layer.build(runtime)
      const agent = yield* Effect.provide(
        Agent.startWith([], { persistence, whenNobody: "wait", events: { capacity: Number.POSITIVE_INFINITY } }),
        context
      )
      /** What the events say of answers: they come when an answer counts. */
      const acknowledged = Effect.map(agent.events.takeAll, (batch) => {
        for (const event of Option.getOrElse(batch, () => []))
          if (event._tag === "InteractionAnswered")
            this.acknowledged.push({ requestId: event.requestId, by: event.by, what: "answered" })
        return Option.isSome(batch)
      })
      yield* Effect.forkDaemon(Effect.repeat(acknowledged, { while: (more) => more }))
      return { agent, isNew: persistence.restored === undefined }
    }).pipe(Effect.orDie)
  }

  private answer(agent: Agent.Agent, { interaction, requestId }: InteractionRequest, isLast: boolean) {
    const by = isLast && Ballot.isReserved(interaction) ? this.pick(["ada", "grace"]) : this.pick(people)
    const answer = isLast ? (interaction._tag === "Approve" ? allow : true) : this.answerTo(interaction)
    if (answer === withdrawal) {
      this.count("withdrawals")
      return Effect.forkDaemon(Effect.ignore(agent.broker.cancel(requestId, by)))
    }
    const isVote = Ballot.isReserved(interaction)
    return Effect.forkDaemon(
      Effect.matchEffect(agent.broker.answer(requestId, by, answer), {
        onFailure: () => Effect.sync(() => this.count("refused answers")),
        onSuccess: () =>
          Effect.sync(() => {
            this.count(isVote ? "votes" : "answers")
            if (isVote && by === "eve") this.problems.push(`eve has a vote on ${requestId}`)
            if (isVote) this.acknowledged.push({ requestId, by, what: "voted" })
          })
      })
    )
  }

  private answerTo(interaction: Interaction.Interaction): unknown {
    if (interaction._tag !== "Approve") return this.random() < 0.2 ? withdrawal : this.random() < 0.1 ? 7 : true
    const to = this.below(20)
    if (to < 6) return allow
    if (to < 8) return { decision: "deny", scope: "once", ...(to === 7 && { comment: "not now" }) }
    if (to === 8) return withdrawal
    if (to === 9) return { decision: "perhaps" }
    // For a quorum the same words have to be said twice.
    const isVote = Ballot.isReserved(interaction)
    const number = isVote ? this.below(2) : ++this.edits
    const kind = to < 12 ? this.pick(["free", "bad"]) : to === 12 ? "unfit" : "e"
    this.count("edits")
    const base = baseOf(nameIn(interaction))
    return { decision: "edit", editedArguments: { name: kind === "unfit" ? 5 : `${kind}${number}-${base}` } }
  }

  /** Answers through the store, while no process runs. */
  private get meanwhile(): Effect.Effect<void> {
    const { world } = this
    return Effect.gen(this, function* () {
      if (world.id === undefined) return
      const store = yield* world.open(++world.processes)
      const rootSessionId = world.id
      for (const { request } of yield* store.openRequests(rootSessionId)) {
        if (this.random() < 0.6) continue
        const { interaction, requestId } = request
        const answer = this.answerTo(interaction)
        if (answer === withdrawal) continue
        const by = this.pick(people)
        if (Ballot.isReserved(interaction)) {
          const vote = SessionVote.give(store, { rootSessionId, requestId, answer, by })
          const given = yield* Effect.either(Effect.provideService(vote, AuditTrail.AuditTrail, this.trail))
          if (given._tag === "Left") continue
          this.count("votes through the store")
          this.acknowledged.push({ requestId, by, what: "voted" })
        } else if ((yield* Effect.either(store.answer(requestId, answer, by)))._tag === "Right") {
          this.count("answers through the store")
          this.acknowledged.push({ requestId, by, what: "answered" })
        }
      }
    }).pipe(Effect.orDie)
  }

  /** Until everything that goes on by itself has gone on; a database answers in real time. */
  private get rest(): Effect.Effect<void> {
    return Effect.repeatN(
      Effect.zipRight(
        Effect.repeatN(Effect.yieldNow(), 10),
        Effect.promise(() => setImmediate())
      ),
      this.world.isSlow === true ? 12 : 2
    )
  }

  private get judge(): Effect.Effect<void> {
    const { problems, world } = this
    return Effect.gen(this, function* () {
      if (world.id === undefined) return
      const store = yield* world.open(++world.processes)
      const { entries } = yield* Effect.orDie(store.load(world.id))
      const records = yield* this.memory.decisions
      this.count("requests", new Set(entries.flatMap(({ entry }) => raisedIn(entry) ?? [])).size)
      this.count("records", records.length)
      this.count("effects", this.done.length)
      const journal = entries.map(({ entry }) => entry)
      problems.push(...this.ofJournal(journal), ...this.ofAudit(journal, records), ...this.ofEffects(journal, records))
    })
  }

  private ofJournal(journal: ReadonlyArray<JournalEntry.JournalEntry>): ReadonlyArray<string> {
    const found: Array<string> = []
    const raised = new Set(journal.flatMap((entry) => raisedIn(entry) ?? []))
    const settled = journal.filter((entry) => entry._tag === "InteractionSettled")
    for (const id of raised) {
      const ends = settled.filter(({ requestId }) => requestId === id)
      if (ends.length !== 1) found.push(`${id} has ${ends.length} settling entries`)
    }
    for (const { requestId } of settled) if (!raised.has(requestId)) found.push(`${requestId} was never raised`)
    for (const { by, requestId, what } of this.acknowledged) {
      const isKept =
        what === "voted"
          ? journal.some((entry) => entry._tag === "VoteGiven" && entry.requestId === requestId && entry.by === by)
          : settled.some((end) => end.requestId === requestId && end.by === by && end.status === "answered")
      if (!isKept) found.push(`${by} was told that their answer to ${requestId} counts, and it is lost (${what})`)
    }
    return found
  }

  /** By the audit alone: who decided what about which digest, when, and in which order. */
  private ofAudit(
    journal: ReadonlyArray<JournalEntry.JournalEntry>,
    records: ReadonlyArray<AuditTrail.Decided>
  ): ReadonlyArray<string> {
    const found: Array<string> = []
    let before = 0
    for (const { answeredAt, countedAt } of records) {
      const at = countedAt ?? answeredAt
      if (at < before) found.push(`a record of ${at} stands behind one of ${before}`)
      before = at
    }
    const requests = new Map(
      journal.flatMap((entry) =>
        entry._tag === "InteractionRaised" ? [[entry.request.requestId as string, entry.request] as const] : []
      )
    )
    for (const end of journal) {
      if (end._tag !== "InteractionSettled") continue
      const request = requests.get(end.requestId)
      const about = records.filter(({ requestId }) => requestId === end.requestId)
      const ends = about.filter(({ outcome }) => outcome !== "voted" && outcome !== "left_open")
      if (request === undefined) continue
      if (ends.length === 0) found.push(`the audit does not say how ${end.requestId} ended (${end.status})`)
      if (ends.filter(({ countedAt }) => countedAt === undefined).length > 1)
        found.push(`the audit has two ends of ${end.requestId}`)
      const expected = expectedOf(end)
      for (const one of ends) {
        if (!expected.includes(one.outcome)) found.push(`${end.requestId} was ${expected.join()}, not ${one.outcome}`)
        if (end.by !== undefined && one.by !== end.by) found.push(`${end.requestId} is by ${end.by}, not ${one.by}`)
      }
      if (request.interaction._tag !== "Approve") continue
      const digest = Digest.digest({ name: nameIn(request.interaction) })
      for (const one of about) {
        if (one.outcome !== "voted" && one.argsDigest !== digest)
          found.push(`${one.outcome} of ${end.requestId} has the digest of something else`)
        if (one.by === "eve" && one.outcome !== "cancelled" && Ballot.isReserved(request.interaction))
          found.push(`eve decided ${end.requestId}`)
      }
    }
    for (const { by, requestId, what } of this.acknowledged) {
      if (what !== "voted") continue
      const isThere = records.some((one) => one.requestId === requestId && one.outcome === "voted" && one.by === by)
      if (!isThere) found.push(`the audit does not know that ${by} voted on ${requestId}`)
    }
    return found
  }

  private ofEffects(
    journal: ReadonlyArray<JournalEntry.JournalEntry>,
    records: ReadonlyArray<AuditTrail.Decided>
  ): ReadonlyArray<string> {
    const found: Array<string> = []
    const bases = this.done.map((what) => baseOf(what.split(" ")[1] ?? ""))
    for (const base of new Set(bases))
      if (bases.filter((one) => one === base).length > 1) found.push(`${base} ran twice`)
    for (const what of this.done) {
      const [, name = ""] = what.split(" ")
      const id = [...this.proposed].find(([, base]) => base === baseOf(name))?.[0]
      const own = records.filter(({ toolCallId }) => toolCallId === id)
      let digest = Digest.digest({ name: baseOf(name) })
      let leadsTo: string | undefined
      let granted: string | undefined
      for (const one of own) {
        if (one.outcome === "voted" || one.outcome === "left_open") continue
        // What a later process took from the journal once more begins at the first of it.
        if (one.outcome === "edited" && one.countedAt !== undefined) digest = one.argsDigest ?? ""
        if (one.argsDigest !== digest) found.push(`${id}: ${one.outcome} is about something else than before it`)
        if (leadsTo !== undefined && one.requestId !== leadsTo && one.countedAt === undefined)
          found.push(`${id}: ${leadsTo} was to follow, not ${one.requestId}`)
        leadsTo = one.outcome === "edited" ? one.leadsTo : undefined
        if (one.outcome === "edited") digest = one.newArgsDigest ?? digest
        if (one.outcome === "granted") granted = one.argsDigest
        if (one.outcome === "cancelled") found.push(`${id} took effect, and is told to be cancelled`)
      }
      if (granted !== Digest.digest({ name })) found.push(`${id} ran as ${name}, and nobody allowed that`)
      const ends = journal.filter((entry) => entry._tag === "ToolEnded" && entry.toolCallId === id)
      for (const end of ends)
        if (end._tag === "ToolEnded" && end.outcome === "cancelled") found.push(`${id} ran and ended as cancelled`)
    }
    return found
  }
}

const allow = { decision: "allow", scope: "once" } as const
const withdrawal = Symbol("withdrawal")

const raisedIn = (entry: JournalEntry.JournalEntry): string | undefined =>
  entry._tag === "InteractionRaised" ? entry.request.requestId : undefined

/** The arguments that an approval shows. */
const nameIn = (interaction: Interaction.Interaction): string =>
  interaction._tag === "Approve" ? String((interaction as Approval["interaction"]).editable?.current["name"]) : ""

/** The name that a model proposed, behind the edits. */
const baseOf = (name: string): string => name.split("-").at(-1) ?? name

/** What the audit says of such an end. */
const expectedOf = ({ answer, status }: JournalEntry.EntryOf<"InteractionSettled">): ReadonlyArray<string> => {
  if (status !== "answered") return [status]
  switch ((answer as Interaction.ApproveAnswer | undefined)?.decision) {
    case "allow":
      return ["granted"]
    case "deny":
      return ["denied"]
    case "edit":
      // Too many edits in a row end the call.
      return ["edited", "denied"]
    default:
      return ["answered"]
  }
}
