/** `assent permissions`: what the policy says, without an agent. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Origin from "../../core/Origin.js"
import * as PermissionCommand from "../../permission/PermissionCommand.js"
import { PermissionState } from "../../permission/PermissionState.js"
import * as Arguments from "../config/Arguments.js"
import * as Arrangement from "../config/Arrangement.js"
import * as Channels from "../config/Channels.js"
import * as ExitCode from "../ExitCode.js"
import * as Launch from "../Launch.js"
import * as Output from "../terminal/Output.js"
import * as Settings from "../config/Settings.js"
import * as TrustQuestion from "../config/TrustQuestion.js"

const describe = ({ sandbox, workspace }: Settings.Settings) =>
  Effect.flatMap(
    Effect.promise(() => import("../config/SandboxSettings.js")),
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

export const run = ({ flags, words }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const settings = yield* Settings.load(flags)
    const [verb] = words
    const remarks = yield* Launch.unknownTools(settings)
    const { guards, policy, redactor, tools } = yield* Launch.judgement(settings)
    const state = new PermissionState()
    if (settings.mode !== undefined) state.begin(settings.mode)
    const outcome = yield* PermissionCommand.answer(words.join(" "), {
      guards,
      state,
      policy,
      redactor,
      tools,
      sessionId: Origin.outside.sessionId
    })
    if (Either.isLeft(outcome)) return yield* new Arguments.UsageError({ message: outcome.left })
    // There is no session here that it could hold for.
    if (outcome.right.changed) {
      return yield* new Arguments.UsageError({
        message: `permissions ${verb} changes a running session: type /permissions ${words.join(" ")} in assent chat. To change the policy itself, edit ${settings.configDirectory}/permissions.json or .assent/permissions.json.`
      })
    }
    if (settings.wantsTrust) yield* TrustQuestion.tell(settings)
    for (const line of remarks) yield* Output.notice(line)
    const { lines } = outcome.right
    const isShown = verb === undefined || verb === "show"
    const sandbox = isShown ? [yield* describe(settings)] : []
    const [first = ""] = lines
    const people = isShown || /^(?:ask \(|Asked about\b)/.test(first) ? yield* asked(flags, settings) : []
    yield* Output.write("stdout", `${[...lines, ...people, ...sandbox].join("\n")}\n`)
    return ExitCode.completed
  }).pipe(Effect.scoped)
