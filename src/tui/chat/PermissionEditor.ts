/**
 * The rules as a list that a person edits in a chat: what is allowed and denied, where each rule comes from, and what a
 * call would come to. Rules of this session and of this project are made and taken back here; those of a policy stand in
 * its file.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Asker, DialogClosed, Service as Screen } from "../console/ConsoleScreen.js"
import type { PolicySource } from "../../permission/PolicySource.js"
import type { ProjectRules } from "../../permission/ProjectRules.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as RememberedText from "../../shell/RememberedText.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"

/** What holds beside the rules of a session. */
export interface Sources {
  readonly project: (ProjectRules & { readonly keep: (entry: string) => Effect.Effect<void, string> }) | undefined
  /** The files of the policy, with each file's own content. */
  readonly files: ReadonlyArray<{ readonly path: string; readonly source: PolicySource }>
}

export interface Options {
  readonly agent: Pick<SessionHandle, "permissions">
  readonly screen: Screen
  readonly sources: Sources
}

/** Asks for changes until the person is done. */
export const open = (options: Options): Effect.Effect<void> =>
  options.screen.dialog("Permissions", (ask) => go(options, ask)).pipe(Effect.catchAll(() => Effect.void))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Rule {
  readonly verb: "allow" | "deny" | "never"
  readonly text: string
  readonly from: string
  /** What `permissions remove` takes; nothing for a rule of a file. */
  readonly entry?: string
}

const go = (options: Options, ask: Asker): Effect.Effect<void, DialogClosed> =>
  Effect.gen(function* () {
    const style = Display.style(options.screen.color)
    const { between } = Glyphs.of(options.screen)
    let lines: ReadonlyArray<string> = []
    for (;;) {
      const rules = yield* rulesOf(options)
      const status = yield* options.agent.permissions("status")
      const typed = yield* ask({
        lines: [
          ...(Either.isRight(status) ? [style.dim(status.right.lines.join(between))] : []),
          ...rules.map((rule, index) => rowOf(style, rule, index + 1, between)),
          ...lines.map((line) => style.yellow(Display.reveal(line))),
          style.cyan(["allow RULE", "deny RULE", "project RULE", "remove NUMBER"].join(between)),
          style.cyan(["mode ask|plan|deny|allow", "why TOOL ARGUMENTS", "an empty line ends"].join(between))
        ],
        label: "rules> ",
        back: true,
        followUp: true,
        commands: false
      })
      const line = typed.trim()
      if (line === "" || /^(?:q|quit|done|exit)$/i.test(line)) return
      lines = yield* run(options, rules, line)
    }
  })

const rowOf = (style: Display.Style, { entry, from, text, verb }: Rule, number: number, between: string): string => {
  // What was remembered is taken back by its number here, so nobody needs its text.
  const said =
    (entry === undefined ? undefined : RememberedText.describe(entry, verb === "allow" ? verb : "deny")) ?? text
  const word = verb === "allow" ? style.green("allow") : style.red(verb === "deny" ? "deny " : "never")
  return `${String(number).padStart(3)} ${word} ${Display.oneLine(said, 200)}${style.dim(`${between}${Display.oneLine(from)}`)}`
}

/** Session first, then what lasts longer. */
const rulesOf = ({ agent, sources: { files, project } }: Options): Effect.Effect<ReadonlyArray<Rule>> =>
  Effect.map(agent.permissions.status, ({ allow, deny }) => [
    ...deny.map((entry): Rule => ({ verb: "deny", text: entry, entry, from: "this session" })),
    ...allow.map((entry): Rule => ({ verb: "allow", text: entry, entry, from: "this session" })),
    ...[...(project?.entries() ?? [])].map((entry): Rule => ({
      verb: "allow",
      text: entry,
      entry,
      from: "this project"
    })),
    ...files.flatMap(({ path, source }) => [
      ...textsOf(source.guards?.deny).map((text): Rule => ({ verb: "never", text, from: path })),
      ...textsOf(source.blacklist).map((text): Rule => ({ verb: "deny", text, from: path })),
      ...textsOf(source.whitelist).map((text): Rule => ({ verb: "allow", text, from: path }))
    ])
  ])

const textsOf = (
  list:
    | {
        readonly tools?: ReadonlyArray<string> | undefined
        readonly patterns?: ReadonlyArray<string> | undefined
        readonly arguments?: ReadonlyArray<string> | undefined
      }
    | undefined
): ReadonlyArray<string> => [
  ...(list?.tools ?? []).map((name) => `tool ${name}`),
  ...(list?.patterns ?? []),
  ...(list?.arguments ?? []).map((word) => `argument ${word}`)
]

const run = (options: Options, rules: ReadonlyArray<Rule>, line: string): Effect.Effect<ReadonlyArray<string>> => {
  const [, verb = "", argument = ""] = /^(\S+)\s*([^]*)$/.exec(line) ?? []
  const { agent, sources } = options
  const permissions = (words: string) =>
    Effect.map(agent.permissions(words), Either.match({ onLeft: (why) => [why], onRight: ({ lines }) => lines }))
  switch (verb) {
    case "allow":
    case "deny":
    case "mode":
    case "default":
    case "suspend":
    case "resume":
    case "clear":
      return permissions(line)
    case "why":
    case "check":
      return permissions(`why ${argument}`)
    case "remove": {
      const rule = rules[Number(argument) - 1]
      if (rule === undefined) return Effect.succeed([`Please name a rule by its number, 1 to ${rules.length}.`])
      return rule.entry === undefined
        ? Effect.succeed([`That rule is in ${rule.from}: change it there. The change counts from the next start.`])
        : permissions(`remove ${rule.entry}`)
    }
    case "project": {
      if (sources.project === undefined)
        return Effect.succeed(["This project has no rules of its own: a policy was named."])
      if (argument === "") return Effect.succeed(["project needs a rule, such as project npm test."])
      return Effect.match(sources.project.keep(argument), {
        onFailure: (why) => [why],
        onSuccess: () => [`Allowed in this project, in every session: ${RememberedText.describe(argument) ?? argument}`]
      })
    }
    default:
      return Effect.succeed([
        rules[Number(verb) - 1] === undefined
          ? `Nothing here is called ${Display.oneLine(verb, 40)}: allow, deny, project, remove, mode or why, and what follows.`
          : `remove ${verb} removes that rule.`
      ])
  }
}
