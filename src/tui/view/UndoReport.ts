/** What an undo did, in words: what is back, what was left alone and why, and what it does not cover. */
import * as Either from "effect/Either"
import { visible } from "../../audit/AuditReport.js"
import type { Outcome, Remark } from "../../builtin/Undo.js"

export const lines = ({ conflicts, removed, restored, turn, uncovered }: Outcome): ReadonlyArray<string> => {
  const done = [
    ...restored.map((file) => `  put back   ${file}`),
    ...removed.map((file) => `  removed    ${file}, which the turn had created`)
  ]
  const others = [
    ...conflicts.map((one) => `  left alone ${told(one)}`),
    ...uncovered.map((one) => `  not undone ${told(one)}`)
  ]
  const files = `${done.length} ${done.length === 1 ? "file" : "files"}`
  const first =
    done.length > 0
      ? `The files of turn ${turn} are as before: ${files}. The agent reads this with your next message.`
      : others.length > 0
        ? `Nothing of turn ${turn} was restored.`
        : `Turn ${turn} has nothing to restore: no file tool changed a file, or each file is as before.`
  return [first, ...done, ...others].map(visible)
}

/** The same of an undo that a process had begun and not ended. */
export const finished = (outcome: Either.Either<Outcome, string>): ReadonlyArray<string> =>
  Either.match(outcome, {
    onLeft: (why) => [`An undo was cut off and cannot be finished: ${visible(why)}`],
    onRight: (outcome) => ["An undo was cut off and is finished now.", ...lines(outcome).slice(1)]
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const told = ({ what, why }: Remark): string => `${what}: ${why}`
