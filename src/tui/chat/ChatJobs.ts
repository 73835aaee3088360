/** `/jobs` at the prompt: the commands that run in the background, what one printed, and its end. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as AuditTrail from "../../audit/AuditTrail.js"
import type * as Jobs from "../../builtin/Jobs.js"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as Display from "../terminal/Display.js"
import * as JobReport from "../view/JobReport.js"

/** What the commands need of a started agent, and who gives them. */
export interface Own {
  readonly jobs: Jobs.Service
  readonly trail: AuditTrail.Service
  readonly by: string
}

export interface Options extends Own {
  readonly agent: SessionHandle
  readonly screen: Screen
  readonly columns: number | undefined
}

/** Does what is said after `/jobs`. */
export const run = (argument: string, options: Options): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { agent, columns, jobs, screen } = options
    const now = yield* Clock.currentTimeMillis
    const [first = "", second = ""] = argument.split(/\s+/)
    const say = (lines: ReadonlyArray<string>) => screen.printLine(lines.join("\n"))
    if (argument === "")
      return yield* say(JobReport.list(jobs.list(agent.id), { columns, main: agent.origin.agent, now }))
    if (first === "stop" && second === "") return yield* say(["Name a job: /jobs stop ID. /jobs lists them."])
    const named = JobReport.named(
      first === "stop" ? second : first,
      jobs.list(agent.id).map(({ id }) => id)
    )
    if (Either.isLeft(named)) return yield* say([named.left])
    if (first !== "stop")
      return yield* Effect.flatMap(jobs.tail(agent.id, named.right, shown), (job) => say(JobReport.tail(job, now)))
    const remark = yield* stop(named.right, options)
    if (remark !== undefined) yield* say([remark])
  }).pipe(Effect.catchTag("JobUnknown", ({ message }) => options.screen.printLine(Display.oneLine(message, 300))))

/** Recorded first, as the person's act. */
const stop = (id: string, { agent, by, jobs, trail }: Options) =>
  Effect.gen(function* () {
    const before: Jobs.Tail = yield* jobs.tail(agent.id, id, 0)
    if (before.ended !== undefined) return `${id} has ended already: it ${before.ended.outcome}.`
    const recorded = trail.record({
      class: "session",
      kind: "job",
      outcome: "done",
      rootSessionId: agent.id,
      sessionId: before.sessionId,
      agent: before.agent,
      reason: `the person stopped ${id}`,
      by,
      answeredAt: yield* Clock.currentTimeMillis
    })
    // What a person wants ended ends, also where nothing can be recorded.
    const problem = yield* Effect.match(recorded, { onFailure: ({ message }) => message, onSuccess: () => undefined })
    // Its end is told as an event.
    yield* jobs.stop(agent.id, id, by)
    return problem
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters of a job's output that are shown. */
const shown = 4_000
