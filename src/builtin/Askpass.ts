/**
 * Leads a command's request for a password to the person: the program behind `SUDO_ASKPASS`, `SSH_ASKPASS` and
 * `GIT_ASKPASS`.
 *
 * ```
 *  sudo, ssh, git ── prompt ──► helper ── file N.request ──► we ── interaction ──► the current interactor
 *                 ◄─ answer ───        ◄─ pipe N.answer ────    ◄─ answer ───────
 * ```
 *
 * Each call has a directory of its own with the helper. The command can change everything there, so we follow no link, read
 * regular files only, and write into pipes only. The secret goes into the pipe, and is masked everywhere else.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Visible from "../core/Visible.js"
import * as Auth from "../interaction/Auth.js"
import { Ask, Confirm } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as Interactor from "../interaction/Interactor.js"
import * as HandlerSession from "../session/HandlerSession.js"
import type { Environment } from "./CommandEnvironment.js"
import { isWithin } from "../sandbox/View.js"

/** What the system does in a directory that a command can change. */
export interface Service {
  /** The text of a regular file of at most so many bytes; undefined for anything else. It follows no link. */
  readonly text: (file: string, most: number) => string | undefined
  /** Writes into a pipe, at once. False if this is no pipe, or nobody reads it. It follows no link. */
  readonly write: (pipe: string, text: string) => boolean
  /** Calls `changed` when a name in the directory changes. Yields how to end that. */
  readonly watch: (directory: string, changed: () => void) => () => void
  /** Why nobody can be asked and what to do, as a sentence. Absent: the current interactor is asked. */
  readonly nobody?: string | undefined
}

/** A system without it sets no variables. */
export class Askpass extends Context.Tag("assent/builtin/Askpass")<Askpass, Service>() {}

export interface Options {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  /** As the person reads it. */
  readonly command: string
  /** Absolute; the directory of the call is made in it. */
  readonly parent: string
  /** Absolute, without links: where commands write. A directory in one of these could be replaced by a link. */
  readonly writable: ReadonlyArray<string>
}

/** The way of one call to the person. */
export interface Opened {
  /** Absolute. */
  readonly directory: string
  /** The variables of a command that finds the directory at `place`. */
  readonly variables: (place: string) => Environment
  /** Answers until the scope closes. */
  readonly serve: Effect.Effect<void, never, Scope.Scope>
  /** Milliseconds for which questions of the command have been open. */
  readonly waited: () => number
}

/** What a program wants to know. */
export interface Question {
  readonly kind: "Password" | "Ask" | "Confirm"
  readonly prompt: string
  /** The program that asks, then the program that started it, and so on, as they name themselves. */
  readonly chain: ReadonlyArray<string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nothing if there is no interactor, or no safe directory can be made: then the command runs without. */
export const open = (
  port: Service,
  { command, fileSystem, parent, path, writable }: Options
): Effect.Effect<Opened | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const found = yield* Effect.serviceOption(Interactor.Interactor)
    if (Option.isNone(found)) return undefined
    const { value: interactor } = found
    const place = yield* fileSystem.realPath(parent)
    if (writable.some((root) => isWithin(root, place))) return undefined
    const directory = yield* Effect.acquireRelease(
      fileSystem.makeTempDirectory({ directory: place, prefix: "askpass-" }),
      // The command may have left what cannot be removed.
      (made) => Effect.ignore(fileSystem.remove(made, { recursive: true, force: true }))
    )
    yield* fileSystem.writeFileString(path.join(directory, name), helper, { mode: 0o700 })
    const clock = yield* Effect.clock
    let waitedBefore = 0
    let since: number | undefined
    const now = () => clock.unsafeCurrentTimeMillis()
    const waited = () => waitedBefore + (since === undefined ? 0 : now() - since)
    const asking = <A>(question: Effect.Effect<A>): Effect.Effect<A> =>
      Effect.suspend(() => {
        since = now()
        return Effect.ensuring(
          question,
          Effect.sync(() => {
            waitedBefore = waited()
            since = undefined
          })
        )
      })

    const answer = (number: number, request: string) =>
      Effect.gen(function* () {
        const pipe = path.join(directory, `${number}.answer`)
        const isGone = Effect.repeat(
          Effect.delay(
            Effect.sync(() => !port.write(pipe, "")),
            lookAgain
          ),
          { until: (gone) => gone }
        )
        const reply = yield* asking(
          Effect.raceFirst(
            port.nobody === undefined
              ? Effect.provideService(replyTo(questionOf(request), command), Interactor.Interactor, interactor)
              : Effect.succeed(`-${port.nobody}`),
            Effect.as(isGone, undefined)
          )
        )
        if (reply !== undefined) port.write(pipe, `${reply}\n`)
      })

    const serve = Effect.gen(function* () {
      // The port writes when a name changes, the fiber below reads. One place is enough: each look finds all requests.
      const changed = yield* Queue.sliding<void>(1)
      yield* Effect.acquireRelease(
        Effect.sync(() => port.watch(directory, () => void changed.unsafeOffer())),
        (end) => Effect.sync(end)
      )
      const unanswered = new Set(Array.from({ length: most }, (_, index) => index + 1))
      const look = Effect.gen(function* () {
        for (const number of unanswered) {
          const request = port.text(path.join(directory, `${number}.request`), longestRequest)
          if (request === undefined) continue
          unanswered.delete(number)
          yield* answer(number, request)
        }
      })
      const rounds = Effect.gen(function* () {
        while (unanswered.size > 0) {
          yield* look
          // Some file systems report no changes. A command that changes names without end must not keep us busy.
          yield* Effect.timeoutOption(Queue.take(changed), lookAnyway)
          yield* Effect.sleep(breath)
        }
      })
      yield* Effect.forkScoped(rounds)
    })
    return { directory, variables: (inside: string) => variables(path.join(inside, name)), serve, waited }
  }).pipe(Effect.orElseSucceed(() => undefined))

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** Reads what the helper wrote: a line with the hint that ssh gives, one with the names of programs, then the prompt. */
export const questionOf = (request: string): Question => {
  const [hint = "", names = "", ...lines] = request.split("\n")
  const prompt = lines.join("\n").trim()
  const kind = hint === "confirm" || yesOrNo.test(prompt) ? "Confirm" : userName.test(prompt) ? "Ask" : "Password"
  const chain = names.split("/").filter((name) => name !== "")
  return { kind, prompt: prompt === "" ? "Password:" : prompt, chain }
}

/** What the person reads: who asks, and who gets the answer. */
export const shown = ({ chain, kind, prompt }: Question, command: string): string =>
  [
    `${askerOf(chain)} asks:`,
    ...Visible.visible(brief(prompt, longestPrompt))
      .split("\n")
      .map((line) => `  ${line}`),
    ...(chain.length < 2 ? [] : [`Started by: ${named(chain.slice(1))}`]),
    `Command: ${Visible.visible(brief(command.trim().replace(/\s+/g, " "), longestCommand))}`,
    ...(kind === "Password" ? ["Only this command gets your answer. The agent does not see it."] : [])
  ].join("\n")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const name = "askpass"

/** Questions of one call. */
const most = 10
const longestRequest = 16_384
const longestPrompt = 1_000
const longestCommand = 200
/** Characters: a pipe takes that much at once. */
const longestAnswer = 1_000
const lookAgain = "500 millis"
const lookAnyway = "2 seconds"
const breath = "20 millis"

const yesOrNo = /\byes\W{1,5}no\b/i
const userName = /^user ?name\b/i

const variables = (helper: string): Environment => ({
  SUDO_ASKPASS: helper,
  SSH_ASKPASS: helper,
  SSH_ASKPASS_REQUIRE: "force",
  GIT_ASKPASS: helper
})

/**
 * A request appears whole, by its name. The helper opens its pipe for both directions first: so we find a reader as long as the
 * helper lives, and the helper never waits for a writer.
 */
const helper = `#!/bin/sh
# Asks the person for what a program wants to know, through Assent.
PATH=/usr/bin:/bin:/run/current-system/sw/bin
[ "\${SSH_ASKPASS_PROMPT-}" = none ] && exit 0
fail() { printf 'assent: %s\\n' "$1" >&2; exit 1; }
umask 077
place=\${0%/*}
number=1
until mkdir "$place/$number" 2>/dev/null; do
  [ -d "$place/$number" ] || fail 'The question cannot be put.'
  number=$((number + 1))
  [ "$number" -le ${most} ] || fail 'This command has asked ${most} times. Find out what it asks for before you run it again.'
done
chain= pid=$PPID
while [ "$pid" -gt 1 ] && [ -r "/proc/$pid/comm" ] && [ \${#chain} -lt 200 ]; do
  IFS= read -r name <"/proc/$pid/comm" && chain="$chain/$name"
  pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
done
mkfifo "$place/$number.answer" && exec 3<>"$place/$number.answer" &&
  printf '%s\\n%s\\n%s' "\${SSH_ASKPASS_PROMPT-}" "$chain" "\${1-}" >"$place/$number/request" &&
  mv "$place/$number/request" "$place/$number.request" &&
  IFS= read -r answer <&3 || fail 'The question cannot be put.'
case $answer in
  +*) printf '%s\\n' "\${answer#+}" ;;
  *) fail "\${answer#-}" ;;
esac
`

/** A line for the helper: `+` and the answer, or `-` and why there is none. */
const replyTo = (question: Question, command: string): Effect.Effect<string, never, Interactor.Interactor> =>
  Effect.gen(function* () {
    const hold = Option.getOrUndefined(yield* Effect.serviceOption(HandlerSession.HandlerSession))
    const answer = yield* Effect.catchAll(ask(question, command, hold), (error) =>
      Effect.succeed({ refused: refusal(error) })
    )
    if (typeof answer !== "string") return `-${answer.refused}`
    return /[\n\0]/.test(answer) || answer.length > longestAnswer
      ? "-The answer is too long, or has more than one line. Ask the person what to do."
      : `+${answer}`
  })

const ask = (question: Question, command: string, hold: HandlerSession.Service | undefined) => {
  const prompt = shown(question, command)
  switch (question.kind) {
    case "Password":
      return Auth.password({
        prompt,
        redactor: hold?.redactor,
        use: (secret) => Effect.succeed(Redacted.value(secret))
      })
    case "Ask":
      return Effect.map(
        Interactor.request(new Ask({ prompt })),
        ofPerson((answer) => answer)
      )
    case "Confirm":
      return Effect.map(
        Interactor.request(new Confirm({ prompt, default: false })),
        ofPerson((answer) => (answer ? "yes" : "no"))
      )
  }
}

/** What a rule or a model answers does not count: a host's key is accepted by a person. */
const ofPerson =
  <A>(written: (answer: A) => string) =>
  ({ answer, how }: { readonly answer: A; readonly how: Interactor.How }) =>
    how === "answered" ? written(answer) : { refused: nobodyThere }

const refusal = (error: InteractionError): string =>
  error._tag === "InteractionCancelled"
    ? "The person gave no answer. Ask them before you run it again."
    : error._tag === "InteractionTimedOut"
      ? "Nobody answered in time. Ask the person before you run it again."
      : nobodyThere

const nobodyThere = "No person can answer here. Use a key or a token that needs no question, or let the person run it."

const askerOf = ([program]: ReadonlyArray<string>): string =>
  program === undefined ? "A program of a running command" : `The program ${named([program])} of a running command`

const named = (chain: ReadonlyArray<string>): string => Visible.visible(brief(chain.join(" ← "), longestCommand))

const brief = (text: string, limit: number): string => (text.length <= limit ? text : `${text.slice(0, limit - 1)}…`)
