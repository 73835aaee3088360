/** `assent profiles`: the recipes of subagents, and what is wrong with their files. */
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Display from "../../tui/terminal/Display.js"
import * as ProfileLoader from "../../subagent/ProfileLoader.js"
import * as SubagentProfile from "../../subagent/SubagentProfile.js"
import * as ToolRegistry from "../../tool/ToolRegistry.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Output from "../../tui/process/Output.js"
import * as ProfileLocation from "../../host/ProfileLocation.js"
import * as Screen from "../../tui/process/Screen.js"
import * as Settings from "../../host/Settings.js"
import * as Tools from "../../host/Tools.js"

/** Exit code 2 when a checked file has a problem, or when there is no such profile. */
export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", ...rest] = words
    const counted = verb === "list" ? rest.length === 0 : verb === "show" ? rest.length === 1 : verb === "check"
    if (!counted) return yield* new Arguments.UsageError({ message: CommandTable.takes("profiles", words) })
    const settings = yield* Settings.load(flags)
    const tools = yield* Tools.registry(settings)
    const style = Display.style(yield* Screen.wantsColor("stdout"))
    if (verb === "check" && rest.length > 0) return yield* checkFiles(rest, settings, tools)
    const loaded = yield* ProfileLocation.load(settings, Effect.succeed(tools))
    switch (verb) {
      case "check":
        return yield* reportProblems(loaded, `${loaded.profiles.size} profiles, no problem`)
      case "show":
        return yield* show(rest.join(""), loaded, { settings, tools, style })
      default:
        return yield* list(loaded, { settings, tools, style })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sandboxOf = ({ network, writable }: NonNullable<SubagentProfile.SubagentProfile["sandbox"]>): string =>
  [network ? "with the network" : "without the network", ...writable.map((place) => `may write ${place}`)].join(", ")

interface View {
  readonly settings: Settings.Settings
  readonly tools: ToolRegistry.Service
  readonly style: Display.Style
}

/** Of lines whose foreign text is spelled out: what colours they have are ours. */
const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.write("stdout", lines.map((line) => `${line}\n`).join(""), true)

const warn = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(lines, (line) => Output.notice(line), { discard: true })

/** File contents are foreign text: control characters are spelled out. */
const remark = ({ file, path, message }: ProfileLoader.Remark): string =>
  Display.oneLine(`${file}: ${path}: ${message}`)

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

const list = ({ problems, profiles, warnings }: ProfileLoader.Loaded, { settings, style }: View) =>
  Effect.gen(function* () {
    yield* say(
      [...profiles.values()].flatMap((profile) => [
        `${style.bold(Display.oneLine(profile.name))}  ${Display.oneLine(profile.description, 400)}`,
        style.dim(
          Display.oneLine(
            `  model ${modelOf(profile, settings)}; tools ${toolsOf(profile)}; from ${profile.source}${profile.autoApproved ? "; asks nobody" : ""}`
          )
        )
      ])
    )
    yield* warn(warnings.map(remark))
    if (problems.length > 0) {
      yield* warn([`${count(problems.length, "problem")} in profile files. Run assent profiles check.`])
    }
    return ExitCode.completed
  })

const show = (name: string, { problems, profiles, warnings }: ProfileLoader.Loaded, { settings, style, tools }: View) =>
  Effect.gen(function* () {
    const profile = profiles.get(name)
    if (profile === undefined) {
      const known = [...profiles.keys()].map((key) => Display.oneLine(key)).join(", ")
      return yield* new Arguments.UsageError({
        message: `There is no profile ${JSON.stringify(name)}. There are: ${known}.`
      })
    }
    const about = ({ file }: ProfileLoader.Remark) => file === profile.source
    const row = (title: string, text: string) => `${style.dim(title.padEnd(13))} ${Display.oneLine(text)}`
    const entries = ToolRegistry.subset(tools, profile.plugins).tools.entries
    yield* say([
      `${style.bold(Display.oneLine(profile.name))}  ${Display.oneLine(profile.description)}`,
      row("from", profile.source),
      row("model", modelOf(profile, settings)),
      row("names", toolsOf(profile)),
      row("tools", entries.map((entry) => entry.name).join(", ")),
      row("max turns", String(profile.maxTurns)),
      row("asks", profile.autoApproved ? "nobody; guards still deny" : "as the policy says"),
      row("compaction", profile.gc === undefined ? "as its parent" : JSON.stringify(profile.gc)),
      ...(profile.sandbox === undefined ? [] : [row("sandbox", sandboxOf(profile.sandbox))]),
      ...(profile.iconName === undefined ? [] : [row("icon", profile.iconName)]),
      ...Object.entries(profile.pluginConfigs).map(([of, config]) => row(`for ${of}`, JSON.stringify(config))),
      ...(profile.systemInstructions === undefined ? [] : ["", Display.reveal(profile.systemInstructions)])
    ])
    yield* warn([...problems, ...warnings].filter(about).map(remark))
    return ExitCode.completed
  })

const checkFiles = (files: ReadonlyArray<string>, settings: Settings.Settings, tools: ToolRegistry.Service) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const directories = yield* ProfileLocation.directories(settings)
    const read = yield* Effect.forEach(files, (name) => {
      const file = path.resolve(name)
      // A file outside of the profile directories is checked as if it were in one.
      const place = directories.find((directory) => directory.path === path.dirname(file))
      const trusted = place === undefined || place.trusted
      return ProfileLoader.loadFile(file, { ...ProfileLocation.context(settings, tools), trusted })
    })
    const problems = read.flatMap((one) => one.problems)
    const warnings = read.flatMap((one) => one.warnings)
    return yield* reportProblems({ problems, warnings }, `${count(files.length, "file")}, no problem`)
  })

const reportProblems = ({ problems, warnings }: Pick<ProfileLoader.Read, "problems" | "warnings">, good: string) =>
  Effect.gen(function* () {
    yield* warn(warnings.map(remark))
    yield* say(problems.length === 0 ? [good] : problems.map(remark))
    return problems.length === 0 ? ExitCode.completed : ExitCode.usage
  })

const modelOf = (profile: SubagentProfile.SubagentProfile, settings: Settings.Settings): string =>
  SubagentProfile.modelRef(profile, settings.model) ?? `as its parent (${settings.model})`

const toolsOf = ({ plugins }: SubagentProfile.SubagentProfile): string =>
  plugins === null ? "all" : plugins.length === 0 ? "essential only" : plugins.join(", ")
