/**
 * What a person reads before they trust a directory. The module is loaded only for such a question.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Display from "../../tui/terminal/Display.js"
import type { ConfigurationInvalid } from "../../host/local/ConfigurationInvalid.js"
import type { Platform } from "../../host/Launch.js"
import * as Output from "../../tui/process/Output.js"
import type * as Settings from "../../host/Settings.js"
import * as WorkspaceTrust from "../../host/WorkspaceTrust.js"

/** What a person sees before the question, and the changed programs that a yes lets start. */
export interface Preface {
  readonly lines: ReadonlyArray<string>
  readonly programs: WorkspaceTrust.Wanted["programs"]
}

/**
 * What to print before the question. A left says that it is too long to show, and what to do instead: a person must
 * have seen everything that a yes enables.
 */
export const preface = (
  settings: Settings.Settings
): Effect.Effect<Either.Either<Preface, string>, ConfigurationInvalid, Platform> =>
  Effect.map(WorkspaceTrust.wanted(settings), (known) => prefaceOf(settings, known))

/** Why something in the workspace has no effect, and what to do. For a start at which no person can be asked. */
export const notice = (
  settings: Settings.Settings
): Effect.Effect<ReadonlyArray<string>, ConfigurationInvalid, Platform> =>
  Effect.map(WorkspaceTrust.wanted(settings), (known) => noticeOf(settings, known))

/** The same on standard error. */
export const tell = (settings: Settings.Settings): Effect.Effect<void, ConfigurationInvalid, Platform> =>
  Effect.flatMap(
    notice(settings),
    Effect.forEach((line) => Output.notice(line), { discard: true })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const prefaceOf = (
  { workspace }: Settings.Settings,
  { allowances, changes, programs }: WorkspaceTrust.Wanted
): Either.Either<Preface, string> => {
  const lines = [
    changes === undefined
      ? `${workspace} brings settings that allow this without asking:`
      : `The settings of ${workspace} are not what you trusted. They allow this without asking:`,
    ...(allowances.length === 0 ? ["  nothing"] : allowances.map((line) => `  ${line}`)),
    ...(changes === undefined ? [] : ["What changed:", ...changes.map((line) => `  ${line}`)])
  ]
  return lines.length > maxLines || lines.some((line) => line.length > maxLength)
    ? Either.left(
        `What ${workspace} allows is too much to show here. Read its .assent and the files of its programs, and start with --trust if you agree with all of it.`
      )
    : Either.right({ lines: lines.map((line) => Display.oneLine(line)), programs })
}

const noticeOf = (
  { wantsTrust, workspace }: Settings.Settings,
  { allowances, changes, programs }: WorkspaceTrust.Wanted
): ReadonlyArray<string> => [
  ...programs.map(
    ({ names, program }) =>
      `${upper(program.name)} does not start: files of it are not as you trusted them (${names.join(", ")}). Look at them, then start with --trust.`
  ),
  ...(programs.length > 0 && !wantsTrust
    ? []
    : [
        changes === undefined
          ? `${workspace}/.assent allows something. Assent ignores that until you trust the directory: start with --trust.`
          : `${workspace}/.assent has changed since you trusted it. Assent ignores what it allows until you trust it again: start with --trust.`
      ]),
  ...some("It would allow:", allowances),
  ...(changes === undefined ? [] : some("What changed:", changes))
]

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const maxLines = 200
const maxLength = 2_000
/** Lines of a notice: it is printed beside other output. */
const maxNoticed = 12

const some = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (lines.length === 0) return []
  const rest = lines.length - maxNoticed
  return [
    title,
    ...lines.slice(0, maxNoticed).map((line) => `  ${Display.oneLine(line, 200)}`),
    ...(rest > 0 ? [`  … and ${rest} more`] : [])
  ]
}
