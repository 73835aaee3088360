/** `assent permissions`: what the policy says, without an agent. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as ToolRegistry from "../../tool/ToolRegistry.js"
import * as Arguments from "../config/Arguments.js"
import * as Arrangement from "../../host/Arrangement.js"
import * as Channels from "../config/Channels.js"
import * as CommandTable from "../config/CommandTable.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Launch from "../../host/Launch.js"
import * as Output from "../../tui/process/Output.js"
import * as Settings from "../../host/Settings.js"
import * as TrustQuestion from "../config/TrustQuestion.js"

const describe = ({ sandbox, workspace }: Settings.Settings) =>
  Effect.flatMap(
    Effect.promise(() => import("../../host/SandboxSettings.js")),
    ({ describe }) => describe(workspace, sandbox)
  )

/** Who is asked where a person works at a terminal. */
const asked = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.map(Channels.plan(flags, settings, [{ _tag: "Console" }]), (plans) => {
    const { reviewer } = settings
    return [
      ...(reviewer === undefined ? [] : [`reviewer: ${Arrangement.describeReviewer(reviewer)}`]),
      `asked: ${Channels.describe(plans, settings)}`
    ]
  })

/** A shell has read the words already: several words behind the tool of a command are the words of one program. */
const lineOf = (words: ReadonlyArray<string>, tools: ToolRegistry.Service): string => {
  const [verb, name = "", ...call] = words
  const isCommand = (verb === "check" || verb === "why") && tools.get(name)?.shellCommand !== undefined
  return [...words.slice(0, 2), ...(isCommand && call.length > 1 ? call.map(quoted) : call)].join(" ")
}

/** A sentence about a flag of ours behind the JSON of a call. */
const flagBehind = ([verb, name = "", ...call]: ReadonlyArray<string>, tools: ToolRegistry.Service) => {
  const entry = verb === "check" || verb === "why" ? tools.get(name) : undefined
  if (entry === undefined || entry.shellCommand !== undefined) return undefined
  const flag = call.slice(1).find((word) => /^--[a-z]/.test(word))
  return flag === undefined
    ? undefined
    : `All words behind ${name} belong to the call. Put ${flag} before them: assent permissions ${flag} … ${verb} ${name} '{…}'.`
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

export const run = ({ flags, words }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const [verb, file] = words
    if (verb === "try") {
      if (file === undefined || words.length > 2)
        return yield* new Arguments.UsageError({
          message: "permissions try takes one policy file, such as stricter.json."
        })
      const PermissionsTry = yield* Effect.promise(() => import("./PermissionsTry.js"))
      return yield* PermissionsTry.run(flags, file)
    }
    const settings = yield* Settings.load(flags)
    const profiles = yield* Launch.profiles(settings)
    const { permissions, tools } = yield* Launch.judgement(settings, profiles)
    const behind = flagBehind(words, tools)
    if (behind !== undefined) return yield* new Arguments.UsageError({ message: behind })
    const outcome = yield* permissions(lineOf(words, tools))
    if (Either.isLeft(outcome)) {
      // The lines behind the first one are commands of a session.
      const isKnown = CommandTable.verbOf("permissions", words) !== undefined
      const [first = ""] = outcome.left.split("\n")
      const message = isKnown ? outcome.left : `${first} assent help permissions lists the commands.`
      return yield* new Arguments.UsageError({ message })
    }
    // There is no session here that it could hold for.
    if (outcome.right.changed) {
      return yield* new Arguments.UsageError({
        message: `permissions ${verb} changes a running session: type /permissions ${words.join(" ")} in assent chat. To change the policy itself, edit ${settings.configDirectory}/permissions.json or .assent/permissions.json.`
      })
    }
    if (settings.wantsTrust || profiles.wantTrust) yield* TrustQuestion.tell(settings)
    const { lines } = outcome.right
    const isShown = verb === undefined || verb === "show"
    const told = isShown ? [...settings.warnings, ...Launch.unmet(settings, profiles)] : []
    for (const line of [...told, ...profiles.remarks]) yield* Output.notice(line)
    const sandbox = isShown ? [yield* describe(settings)] : []
    const [first = ""] = lines
    const people = isShown || /^(?:ask \(|Asked about\b)/.test(first) ? yield* asked(flags, settings) : []
    yield* Output.write("stdout", `${[...lines, ...people, ...sandbox].join("\n")}\n`)
    return ExitCode.completed
  }).pipe(Effect.scoped)
