/** Background jobs as lines for a person. */
import * as Either from "effect/Either"
import type * as Jobs from "../../builtin/Jobs.js"
import * as IdName from "../../core/IdName.js"
import * as Nearest from "../../core/Nearest.js"
import type { EventOf } from "../../event/AgentEvent.js"
import * as Display from "../terminal/Display.js"
import type { Glyphs } from "../terminal/Glyphs.js"
import * as Activity from "./Activity.js"

/** Two lines a job: what it is, and the last line that it printed. */
export const list = (
  jobs: ReadonlyArray<Jobs.Listed>,
  { columns, main, now }: { readonly columns: number | undefined; readonly main: string; readonly now: number }
): ReadonlyArray<string> => {
  if (jobs.length === 0) return ["No command runs in the background."]
  const rows = jobs.flatMap((job) => {
    const whose = job.agent === main ? "" : ` · of ${job.agent}`
    const row = `${job.id}  ${Display.oneLine(job.command, 100)}  ${state(job, now)}${whose}`
    return job.lastLine === "" ? [row] : [row, `  ${Display.oneLine(job.lastLine, 200)}`]
  })
  const hint = "/jobs ID shows what one printed, /jobs stop ID ends it"
  return [...rows, hint].map((row) => Display.truncate(row, columns ?? Infinity))
}

/** The job that a person means by its id, its number, or a beginning that no other has; else a sentence. */
export const named = (word: string, known: ReadonlyArray<string>): Either.Either<string, string> => {
  const [id, ...others] = IdName.found(word, known, start)
  const said = Display.oneLine(JSON.stringify(word), 80)
  if (id !== undefined && others.length === 0) return Either.right(id)
  if (id !== undefined) return Either.left(`Several jobs begin with ${said}: ${[id, ...others].join(", ")}.`)
  if (known.length === 0) return Either.left(`There is no background job ${said}. There are none.`)
  // A number that is not there is no slip.
  const meant = /^(?:job_)?\d+$/.test(word) ? undefined : Nearest.of(word, [...known, "stop"])
  const question = meant === undefined ? "" : ` Did you mean /jobs ${meant}?`
  return Either.left(`There is no background job ${said}.${question} There are: ${known.join(", ")}.`)
}

/** What a job printed last, under what it is. */
export const tail = (job: Jobs.Tail, now: number): ReadonlyArray<string> => {
  const text = Display.sanitize(job.text.trimEnd())
  const left = job.leftOut === 0 ? [] : [`  … ${job.leftOut} characters before`]
  const said = text === "" ? ["  It has printed nothing."] : text.split("\n").map((row) => `  ${row}`)
  return [`${job.id}  ${Display.oneLine(job.command, 200)}`, ...left, ...said, state(job, now)]
}

/** Which of them end with a session that is left. */
export const stopped = (jobs: ReadonlyArray<Jobs.Listed>): ReadonlyArray<string> =>
  jobs.flatMap(({ command, ended, id }) =>
    ended === undefined
      ? [`${id} (${Display.oneLine(command, 80)}) is stopped: background jobs end with their session.`]
      : []
  )

/** Which of them go on although plan mode has begun. */
export const going = (jobs: ReadonlyArray<Jobs.Listed>): ReadonlyArray<string> =>
  jobs.flatMap(({ command, ended, id }) =>
    ended === undefined
      ? [`${id} (${Display.oneLine(command, 80)}) continues: plan mode counts for new calls. /jobs stop ${id} ends it.`]
      : []
  )

/** `job_1 ended with exit code 1 · npm run dev · 3.2 s`, and a mark for it. */
export const ended = (event: EventOf<"JobEnded">, signs: Glyphs): readonly [text: string, mark: string] => {
  const { by, command, duration, exitCode, jobId, reason, signal } = event
  const how =
    reason === "exited"
      ? exitCode === undefined
        ? `was ended by ${signal ?? "a signal"}`
        : `ended with exit code ${exitCode}`
      : reason === "timed_out"
        ? "was stopped, as its time was up"
        : reason === "session_ended"
          ? "was stopped: background jobs end with the session"
          : `was stopped${by === undefined ? "" : ` by ${by}`}`
  const text = Display.oneLine([`${jobId} ${how}`, command, Activity.duration(duration)].join(signs.between), 400)
  const isGood = reason === "stopped" || reason === "session_ended" || exitCode === 0
  return [text, isGood ? signs.note : signs.failed]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What every id begins with. */
const start = "job_"

const state = ({ ended, startedAt }: Jobs.Listed, now: number): string =>
  ended === undefined
    ? `runs for ${Activity.duration(now - startedAt)}`
    : `${ended.outcome}, ${Activity.duration(now - ended.at)} ago`
