/**
 * The background jobs of agents: commands that live on beside the turns, each in a sandbox of its own, until they end, are
 * stopped, or their session ends.
 *
 * They are known by the root session of their tree, whose agents together may have {@link most} at once. The agent that
 * started a job looks at it and stops it, and so does the person, through this service. Jobs live in this process: one that
 * resumes a session has none of those before.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { SessionId } from "../core/Id.js"
import * as LazyModule from "../core/LazyModule.js"
import * as Origin from "../core/Origin.js"
import * as HandlerSession from "../session/HandlerSession.js"
import * as ToolOutput from "../tool/ToolOutput.js"
import type { Job } from "./Job.js"
import type * as ShellProcess from "./ShellProcess.js"
import type * as ShellRun from "./ShellRun.js"
import { WorkspaceRoot } from "./WorkspaceRoot.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * How many jobs may run at once in one tree of sessions.
 *
 * @since 0.1.0
 * @category constants
 */
export const most = 8

/**
 * How a job ended: its exit code, null where a signal ended it, and in words.
 *
 * @since 0.1.0
 * @category models
 */
export interface Ended {
  readonly exitCode: number | null
  readonly signal?: string
  /** Such as `ended with exit code 1`. */
  readonly outcome: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * One job, as a person sees it. Secrets are masked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Listed {
  readonly id: string
  readonly sessionId: SessionId
  /** The path of the agent that started it. */
  readonly agent: string
  readonly command: string
  /** The directory in which it runs; an absolute path. */
  readonly directory: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** Absent while it runs. */
  readonly ended?: Ended
  /** The last line that it printed. */
  readonly lastLine: string
}

/**
 * A job with the end of its output.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tail extends Listed {
  readonly text: string
  /** Characters before it that are not shown. */
  readonly leftOut: number
}

/**
 * A job, for the agent that has it.
 *
 * @internal
 */
export interface Seen {
  readonly job_id: string
  readonly state: "running" | "ended"
  /** What it printed since the last look. */
  readonly output: string
  readonly ended?: { readonly exitCode: number | null; readonly signal?: string }
  readonly notice?: string
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * There is no job with this id.
 *
 * @since 0.1.0
 * @category errors
 */
export class JobUnknown extends Schema.TaggedError<JobUnknown>("assent/builtin/JobUnknown")("JobUnknown", {
  id: Schema.String,
  /** The jobs that there are. */
  known: Schema.Array(Schema.String),
  /** True if another process began the session; its jobs ended with it. */
  isResumed: Schema.Boolean
}) {
  override get message(): string {
    const there = this.known.length === 0 ? "There are none." : `There are: ${this.known.join(", ")}.`
    const gone = this.isResumed
      ? " Jobs end with the process that runs them, and this session goes on in another one: start it again if it is still needed."
      : ""
    return `There is no background job ${JSON.stringify(this.id)}.${gone} ${there}`
  }
}

/**
 * Another agent started the job.
 *
 * @since 0.1.0
 * @category errors
 */
export class JobOfAnother extends Schema.TaggedError<JobOfAnother>("assent/builtin/JobOfAnother")("JobOfAnother", {
  id: Schema.String,
  /** The path of that agent. */
  agent: Schema.String
}) {
  override get message(): string {
    return `${this.id} is a job of ${this.agent}: only the agent that started it can look at it or stop it.`
  }
}

/**
 * The limit of running jobs is reached.
 *
 * @since 0.1.0
 * @category errors
 */
export class TooManyJobs extends Schema.TaggedError<TooManyJobs>("assent/builtin/TooManyJobs")("TooManyJobs", {
  /** What runs. */
  running: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return (
      `${this.running.length} background jobs run already, and no more may run at once: ${this.running.join("; ")}. ` +
      "Stop one with job_stop first, or wait until one ends."
    )
  }
}

/**
 * Nothing can go on in the background here.
 *
 * @since 0.1.0
 * @category errors
 */
export class NoJobsHere extends Schema.TaggedError<NoJobsHere>("assent/builtin/NoJobsHere")("NoJobsHere", {
  /** A sentence. */
  reason: Schema.String
}) {
  override get message(): string {
    return `${this.reason} Call again without background.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------------------------------------------

/**
 * The jobs of all sessions whose commands run with one set of tools.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** The jobs of a tree, by its root session: those that run, and the last that have ended. */
  readonly list: (root: SessionId) => ReadonlyArray<Listed>
  /** A job with the end of its output: at most `limit` characters. Default: all characters in memory. */
  readonly tail: (root: SessionId, id: string, limit?: number) => Effect.Effect<Tail, JobUnknown>
  /**
   * Ends a job, and waits until all its processes have ended. `by` names the person or agent. The job's agent reads
   * about it with its next input.
   */
  readonly stop: (root: SessionId, id: string, by: string) => Effect.Effect<Listed, JobUnknown>
  /**
   * Whether an agent may begin one now.
   *
   * @internal
   */
  readonly room: Effect.Effect<void, NoJobsHere | TooManyJobs>
  /**
   * Begins one for the session that calls a tool. One that ends at once has a result as any command has.
   *
   * @internal
   */
  readonly begin: (
    start: ShellProcess.Start,
    params: ShellRun.Params
  ) => Effect.Effect<Seen | ShellRun.Result, string, WorkspaceRoot>
  /**
   * What a job of the session that calls a tool printed since the last look.
   *
   * @internal
   */
  readonly look: (id: string) => Effect.Effect<Seen, JobUnknown | JobOfAnother | NoJobsHere>
  /**
   * The same, at its end: it is stopped.
   *
   * @internal
   */
  readonly end: (id: string) => Effect.Effect<Seen, JobUnknown | JobOfAnother | NoJobsHere>
}

/**
 * The jobs of the running tool set.
 *
 * @since 0.1.0
 * @category services
 */
export class Jobs extends Context.Tag("assent/builtin/Jobs")<Jobs, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * No jobs yet.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Jobs> = Layer.effect(
  Jobs,
  Effect.suspend(() => Effect.map(loaded, (work) => new AllJobs(work)))
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What runs a job: most programs have none. */
const loaded = LazyModule.make(() =>
  Promise.all([import("./Job.js"), import("./ShellRun.js")]).then(([{ Job }, { check }]) => ({ Job, check }))
)

type Work = Effect.Effect.Success<typeof loaded>

/** How many jobs that have ended are kept for a look. */
const mostEnded = 16

/** The jobs of one tree. */
interface Tree {
  readonly jobs: Map<string, Job>
  /** The sessions that have had some, and have not ended. */
  readonly sessions: Set<SessionId>
  last: number
}

class AllJobs implements Service {
  private readonly trees = new Map<SessionId, Tree>()

  constructor(private readonly work: Work) {}

  list(root: SessionId): ReadonlyArray<Listed> {
    return Array.from(this.trees.get(root)?.jobs.values() ?? [], listed)
  }

  tail(root: SessionId, id: string, limit = Infinity): Effect.Effect<Tail, JobUnknown> {
    return Effect.map(this.job(root, id, false), (job) => {
      const { leftOut, text } = job.printed.last(limit)
      return { ...listed(job), text, leftOut }
    })
  }

  stop(root: SessionId, id: string, by: string): Effect.Effect<Listed, JobUnknown> {
    return Effect.flatMap(this.job(root, id, false), (job) =>
      Effect.map(job.stop({ reason: "stopped", by, silent: false }), () => listed(job))
    )
  }

  readonly room = Effect.flatMap(held, (hold) => {
    const full = this.fullFor(hold)
    return full === undefined ? Effect.void : Effect.fail(full)
  })

  begin(
    start: ShellProcess.Start,
    params: ShellRun.Params
  ): Effect.Effect<Seen | ShellRun.Result, string, WorkspaceRoot> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(this, function* () {
        const { maxOutput } = yield* WorkspaceRoot
        const { absolute: directory } = yield* restore(this.work.check(params))
        const hold = yield* Effect.mapError(held, ({ message }) => message)
        const { toolCallId } = yield* Origin.current
        const startedAt = yield* Clock.currentTimeMillis
        const tree = this.treeOf(hold)
        yield* this.join(hold, tree)
        if (!tree.sessions.has(hold.origin.sessionId)) return yield* Effect.fail(over)
        // In one step with taking the place.
        const full = this.fullFor(hold)
        if (full !== undefined) return yield* Effect.fail(full.message)
        const job = new this.work.Job({
          id: `job_${++tree.last}`,
          hold,
          toolCallId,
          command: params.command,
          directory,
          startedAt,
          maxShown: maxOutput,
          limit: params.timeout === undefined ? undefined : `${params.timeout} seconds`
        })
        tree.jobs.set(job.id, job)
        const forget = () => {
          tree.jobs.delete(job.id)
          job.neverBegun()
        }
        const scope = yield* Scope.make()
        const { command, sandbox } = params
        const started = restore(Scope.extend(start({ command, directory, sandbox, leashed: true }), scope))
        const shell = yield* Effect.onError(started, (cause) =>
          Effect.zipRight(Scope.close(scope, Exit.failCause(cause)), Effect.sync(forget))
        )
        yield* job.begin(shell, scope)
        const abandon = Effect.zipRight(job.stop({ reason: "stopped", silent: true }), Effect.sync(forget))
        yield* Effect.onError(restore(job.firstMoment), () => abandon)
        // Its call was given up, and nobody will learn of it.
        if (toolCallId !== undefined && !hold.isRunning(toolCallId)) {
          yield* abandon
          return yield* Effect.interrupt
        }
        const output = job.look()
        yield* ToolOutput.emit({ stream: "stdout", text: output })
        if (job.ended === undefined) {
          job.leave()
          return { job_id: job.id, state: "running", output, notice: goesOn(job.id) }
        }
        forget()
        if (job.failure !== undefined) return yield* Effect.fail(job.failure)
        const { at, exitCode, signal } = job.ended
        return {
          exitCode,
          ...(signal === undefined ? {} : { signal }),
          output,
          notice: [...noticesOf(job.ended), "[It has ended already, so there is no background job.]"].join("\n"),
          durationMs: at - startedAt
        }
      })
    )
  }

  look(id: string): Effect.Effect<Seen, JobUnknown | JobOfAnother | NoJobsHere> {
    return Effect.flatMap(held, (hold) => Effect.map(this.own(hold, id), seen))
  }

  end(id: string): Effect.Effect<Seen, JobUnknown | JobOfAnother | NoJobsHere> {
    return Effect.flatMap(held, (hold) =>
      Effect.flatMap(this.own(hold, id), (job) => {
        const before = job.ended !== undefined
        const stopped = job.stop({ reason: "stopped", by: hold.origin.agent, silent: true })
        return Effect.map(stopped, () => (before ? { ...seen(job), notice: "[It had ended before.]" } : seen(job)))
      })
    )
  }

  private fullFor(hold: HandlerSession.Service): TooManyJobs | undefined {
    const jobs = [...(this.trees.get(hold.origin.rootSessionId)?.jobs.values() ?? [])]
    const running = jobs.filter(({ ended }) => ended === undefined)
    if (running.length < most) return undefined
    const own = (job: Job) => job.options.hold.origin.sessionId === hold.origin.sessionId
    return new TooManyJobs({
      running: running.map((job) => {
        const whose = own(job) ? "" : ` of ${job.options.hold.origin.agent}`
        return `${job.id}${whose} (${job.line(40)})`
      })
    })
  }

  private treeOf({ history, isRestored, origin: { rootSessionId } }: HandlerSession.Service): Tree {
    const known = this.trees.get(rootSessionId)
    if (known !== undefined) {
      forgetOldest(known)
      return known
    }
    // An id that the model has heard of must not come to mean another job.
    const last = isRestored ? lastNamed(JSON.stringify(history.messages)) : 0
    const tree: Tree = { jobs: new Map(), sessions: new Set(), last }
    this.trees.set(rootSessionId, tree)
    return tree
  }

  /** With the first job of a session: all of its jobs end with it. */
  private join(hold: HandlerSession.Service, tree: Tree): Effect.Effect<void> {
    const { sessionId } = hold.origin
    if (tree.sessions.has(sessionId)) return Effect.void
    tree.sessions.add(sessionId)
    return hold.atEnd(Effect.suspend(() => this.leave(hold, tree)))
  }

  private leave({ origin: { rootSessionId, sessionId } }: HandlerSession.Service, tree: Tree): Effect.Effect<void> {
    tree.sessions.delete(sessionId)
    const own = [...tree.jobs.values()].filter(({ options }) => options.hold.origin.sessionId === sessionId)
    const stopped = Effect.forEach(own, (job) => job.stop({ reason: "session_ended", silent: true }), {
      concurrency: "unbounded",
      discard: true
    })
    return Effect.map(stopped, () => {
      for (const { id } of own) tree.jobs.delete(id)
      if (tree.sessions.size === 0 && this.trees.get(rootSessionId) === tree) this.trees.delete(rootSessionId)
    })
  }

  private own(hold: HandlerSession.Service, id: string): Effect.Effect<Job, JobUnknown | JobOfAnother> {
    const { rootSessionId, sessionId } = hold.origin
    const found = this.trees.get(rootSessionId)?.jobs.get(id)
    const owner = found?.options.hold.origin
    if (owner !== undefined && owner.sessionId !== sessionId)
      return Effect.fail(new JobOfAnother({ id, agent: owner.agent }))
    return found === undefined
      ? Effect.fail(this.unknown(rootSessionId, id, hold.isRestored, sessionId))
      : Effect.succeed(found)
  }

  private job(root: SessionId, id: string, isResumed: boolean): Effect.Effect<Job, JobUnknown> {
    const found = this.trees.get(root)?.jobs.get(id)
    return found === undefined ? Effect.fail(this.unknown(root, id, isResumed)) : Effect.succeed(found)
  }

  private unknown(root: SessionId, id: string, isResumed: boolean, session?: SessionId): JobUnknown {
    const known = this.list(root).filter(({ sessionId }) => session === undefined || sessionId === session)
    return new JobUnknown({ id, known: known.map((job) => job.id), isResumed })
  }
}

/** The session that calls the tool. */
const held: Effect.Effect<HandlerSession.Service, NoJobsHere> = Effect.flatMap(
  Effect.serviceOption(HandlerSession.HandlerSession),
  Option.match({
    onNone: () => Effect.fail(new NoJobsHere({ reason: "Only an agent can run background commands." })),
    onSome: (hold) => Effect.succeed(hold)
  })
)

const over = "The session has ended and runs no background commands."

const goesOn = (id: string): string =>
  `[It runs in the background until job_stop, or the end of the session. job_output with ${id} shows what it prints.]`

const lastNamed = (text: string): number =>
  Array.from(text.matchAll(/\bjob_(\d{1,6})\b/g), ([, digits]) => Number(digits)).reduce((a, b) => Math.max(a, b), 0)

const forgetOldest = ({ jobs }: Tree): void => {
  const ended = [...jobs.values()].filter((job) => job.ended !== undefined)
  for (const { id } of ended.slice(0, Math.max(0, ended.length - mostEnded))) jobs.delete(id)
}

const seen = (job: Job): Seen => {
  const output = job.look()
  const { ended } = job
  if (ended === undefined) return { job_id: job.id, state: "running", output }
  const { exitCode, signal } = ended
  const told = noticesOf(ended)
  return {
    job_id: job.id,
    state: "ended",
    output,
    ended: { exitCode, ...(signal === undefined ? {} : { signal }) },
    ...(told.length === 0 ? {} : { notice: told.join("\n") })
  }
}

/** With how it ended, where it did not end by itself. */
const noticesOf = ({ notices, outcome, reason }: NonNullable<Job["ended"]>): ReadonlyArray<string> =>
  reason === "exited" ? notices : [`[It ${outcome}.]`, ...notices]

const listed = (job: Job): Listed => {
  const { command, ended, id, options, printed } = job
  const { agent, sessionId } = options.hold.origin
  const { directory, startedAt } = options
  const base = { id, sessionId, agent, command, directory, startedAt, lastLine: printed.lastLine }
  if (ended === undefined) return base
  const { at, exitCode, signal } = ended
  return { ...base, ended: { exitCode, ...(signal === undefined ? {} : { signal }), outcome: ended.outcome, at } }
}
