/** The `--channel` flags made into interactors. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as AutoChannel from "../../channel/AutoChannel.js"
import type * as ConsoleChannel from "../../tui/console/ConsoleChannel.js"
import * as HaltChannel from "../../channel/HaltChannel.js"
import * as WebAddress from "../../core/WebAddress.js"
import * as Interactor from "../../interaction/Interactor.js"
import type * as CompiledPolicy from "../../permission/CompiledPolicy.js"
import * as Arguments from "./Arguments.js"
import * as Arrangement from "../../host/Arrangement.js"
import * as ConfigurationInvalid from "../../host/local/ConfigurationInvalid.js"
import * as HttpProxy from "../../host/HttpProxy.js"
import * as Person from "../../host/local/Person.js"
import * as Tty from "../../tui/process/Tty.js"
import type { Settings } from "../../host/Settings.js"
import * as Remedy from "../../host/Remedy.js"

/** Which channels to use, before any of them is opened. */
export type Plan =
  | { readonly _tag: "Console" }
  | { readonly _tag: "Auto" }
  | { readonly _tag: "Halt" }
  | { readonly _tag: "Yolo" }
  | { readonly _tag: "File"; readonly directory: string; readonly vouches: boolean }
  | { readonly _tag: "Webhook"; readonly url: string; readonly vouches: boolean }

/** Reads the flags; without any, takes what the policy file names, else the fallback. In the order in which they are asked. */
export const plan = (
  flags: Arguments.Flags,
  settings: Settings,
  fallback: ReadonlyArray<Plan>
): Effect.Effect<ReadonlyArray<Plan>, Arguments.UsageError, FileSystem.FileSystem | Path.Path> =>
  Effect.tap(
    Effect.flatMap(chosen(flags, settings, fallback), (plans) => inOrder(plans, flags, settings, fallback)),
    (plans) => Effect.forEach(plans, (one) => checked(one, settings), { discard: true })
  )

/** The channels of an escalation: those that were named; the terminal comes first where only another one was. */
const inOrder = (
  plans: ReadonlyArray<Plan>,
  flags: Arguments.Flags,
  { escalation }: Settings,
  fallback: ReadonlyArray<Plan>
): Effect.Effect<ReadonlyArray<Plan>, Arguments.UsageError> =>
  Effect.gen(function* () {
    if (escalation === undefined) return plans
    const hasPerson = fallback.some(isConsole)
    const vouching = yield* vouched(flags)
    const ofFile = yield* Effect.forEach(escalation.to, (channel) => parse(channel, vouching))
    if (ofFile.some((one) => one._tag === "Halt")) return yield* nobodyThere
    // What a file names for a terminal does not count where there is none.
    const named =
      flags.channel === undefined && ofFile.length > 0 ? ofFile.filter((one) => hasPerson || !isConsole(one)) : plans
    const [only] = named
    const order =
      named.length === 1 && only !== undefined && hasPerson && !isConsole(only) ? [...fallback, only] : named
    if (order.length > 1) return order
    if (!escalation.isFlag) return order.length === 0 ? plans : order
    return yield* misuse(
      "--escalate needs a second channel. Name the channels in their order, such as --channel console --channel file:DIR."
    )
  })

const chosen = (
  flags: Arguments.Flags,
  { policy }: Settings,
  fallback: ReadonlyArray<Plan>
): Effect.Effect<ReadonlyArray<Plan>, Arguments.UsageError> =>
  Effect.gen(function* () {
    const given = flags.channel ?? []
    const vouching = yield* vouched(flags)
    if (flags.yolo === true) {
      if (given.length > 0) return yield* misuse("--yolo asks nobody; leave out --channel.")
      return [{ _tag: "Yolo" }]
    }
    const peer = flags.jsonl === true
    if (given.length === 0) {
      const plans = policy.channel === undefined ? fallback : ofPolicy(policy.channel, fallback, vouching)
      return plans.some((one) => peer && excludesPeer(one)) ? fallback : plans
    }
    const plans = yield* Effect.forEach(given, (flag) => parse(flag, vouching))
    const excluded = peer ? plans.find(excludesPeer) : undefined
    if (excluded !== undefined) {
      return yield* misuse(
        excluded._tag === "Console"
          ? "--jsonl reads commands where --channel console would read answers; leave one of them out."
          : "With --jsonl a program answers, with --channel halt nobody does. Leave one of them out."
      )
    }
    if (plans.length > 1 && plans.some((one) => one._tag === "Halt")) return yield* nobodyThere
    return plans
  })

/** Where a person at the console answers: in a pipe they said so of, else at a terminal. Nothing where there is none. */
export const answersFrom = (flags: Arguments.Flags): "standard input" | "terminal" | undefined =>
  flags["piped-answers"] === true || Tty.isOne(0) ? "standard input" : Tty.isThere() ? "terminal" : undefined

/** The channels without a console that nobody can answer at; refused where somebody named it. */
export const reachable = (
  plans: ReadonlyArray<Plan>,
  flags: Arguments.Flags
): Effect.Effect<ReadonlyArray<Plan>, Arguments.UsageError> => {
  if (!plans.some(isConsole)) {
    return flags["piped-answers"] === true
      ? misuse("--piped-answers goes with the console: add --channel console, or leave out --piped-answers.")
      : Effect.succeed(plans)
  }
  if (answersFrom(flags) !== undefined) return Effect.succeed(plans)
  if (flags.channel?.includes("console") === true) {
    return misuse(
      "--channel console needs a terminal, and this process has none. Add --piped-answers if lines of standard input " +
        "answer questions, or name another channel, such as --channel file:DIR."
    )
  }
  const others = plans.filter((one) => !isConsole(one))
  return Effect.succeed(others.length > 0 ? others : [{ _tag: "Halt" }])
}

/** How a person at a console is asked: without a limit, unless the environment or a policy sets one. */
export const consoleOptions = ({ project, timeouts }: Settings): ConsoleChannel.Options => ({
  timeouts,
  keepForProject: project?.keep
})

/** The channels whose programs vouch for the names in their answers. */
export const vouched = ({
  jsonl,
  vouch = []
}: Arguments.Flags): Effect.Effect<ReadonlySet<string>, Arguments.UsageError> => {
  const unknown = vouch.find((name) => name !== "file" && name !== "webhook" && name !== "json")
  if (unknown !== undefined) {
    return misuse(
      `No program behind ${JSON.stringify(unknown)} could vouch for anybody; --vouch takes file, webhook or json.`
    )
  }
  if (vouch.includes("json") && jsonl !== true) return misuse("--vouch json goes with --jsonl.")
  return Effect.succeed(new Set(vouch))
}

/** What is asked, for a person: the channels, and in which order. */
export const describe = (plans: ReadonlyArray<Plan>, { escalation }: Settings): string => {
  const names = plans.map(nameOf)
  return escalation === undefined || names.length < 2
    ? names.join(", or ")
    : Arrangement.describeEscalation(names, escalation.after)
}

/** The interactors to attach, and the signal that an unattended program had to halt. */
export interface Opened {
  readonly interactors: ReadonlyArray<Interactor.Service>
  /** Never completes when somebody is there. */
  readonly halted: Effect.Effect<HaltChannel.Halted>
  /** Directories from which answers are read; the agent must not write there. */
  readonly directories: ReadonlyArray<string>
  /** Whether a person at a terminal is among them. */
  readonly attended: boolean
  /** Whether nobody is there, and a question halts the agent. */
  readonly halts: boolean
}

/** Who answers, and the places that no tool may touch: those from which answers are read, and these files. */
export const placed = ({ attended, directories, halts }: Opened, files: ReadonlyArray<string>) => ({
  attended,
  halts,
  outOfReach: [...directories, ...files]
})

/** Opens the planned channels. `console` is run only when a console is among them. */
export const open = <R>(
  plans: ReadonlyArray<Plan>,
  settings: Settings,
  console: Effect.Effect<Interactor.Service, never, R>
): Effect.Effect<
  Opened,
  ConfigurationInvalid.ConfigurationInvalid | Arguments.UsageError,
  FileSystem.FileSystem | Path.Path | Scope.Scope | R
> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const interactors: Array<Interactor.Service> = []
    const directories: Array<string> = []
    let halted: Opened["halted"] = Effect.never
    for (const one of plans) {
      switch (one._tag) {
        case "Console":
          interactors.push(yield* console)
          break
        case "Auto":
          interactors.push(AutoChannel.make())
          break
        case "Yolo":
          interactors.push(HaltChannel.yolo)
          break
        case "Halt": {
          const halt = yield* HaltChannel.makeWith(Remedy.hint)
          interactors.push(halt.interactor)
          halted = Deferred.await(halt.halted)
          break
        }
        case "File":
          interactors.push(yield* openFile(one, settings))
          directories.push(path.resolve(one.directory))
          break
        case "Webhook":
          interactors.push(yield* openWebhook(one, settings))
      }
    }
    const { escalation } = settings
    if (escalation !== undefined && interactors.length > 1) {
      const { make } = yield* Effect.promise(() => import("../../people/Escalation.js"))
      interactors.splice(0, interactors.length, make({ to: [...interactors], after: escalation.after }))
    }
    return {
      interactors,
      halted,
      directories,
      attended: plans.some(({ _tag }) => _tag === "Console"),
      halts: plans.some(({ _tag }) => _tag === "Halt")
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A plan is checked before any channel is opened. */
const checked = (
  one: Plan,
  { workspace }: Settings
): Effect.Effect<void, Arguments.UsageError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (one._tag === "Webhook") {
      const address = WebAddress.parse(one.url)
      if (Either.isLeft(address)) {
        return yield* misuse(`The address of --channel webhook ${address.left.message}`)
      }
    }
    if (one._tag === "File") {
      const path = yield* Path.Path
      // With real paths: the agent may write in the workspace, so answers must not be read there, also not through
      // links.
      const inside = path.relative(workspace, yield* realPathOf(path.resolve(one.directory)))
      if (!/^\.\.(?:[/\\]|$)/.test(inside) && !path.isAbsolute(inside)) {
        return yield* misuse(
          `--channel file:${one.directory} is inside the workspace, where the agent could answer itself.`
        )
      }
    }
  })

/** For a path that does not exist yet: where it would be. */
const realPathOf = (file: string): Effect.Effect<string, never, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(Effect.all([FileSystem.FileSystem, Path.Path]), ([fs, path]) =>
    Effect.catchAll(fs.realPath(file), () =>
      path.dirname(file) === file
        ? Effect.succeed(file)
        : Effect.map(realPathOf(path.dirname(file)), (above) => path.join(above, path.basename(file)))
    )
  )

const openFile = ({ directory, vouches }: Extract<Plan, { readonly _tag: "File" }>, { timeouts }: Settings) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const FileChannel = yield* Effect.promise(() => import("../../channel/FileChannel.js"))
    // Whoever can write there is this user.
    const principal = yield* Person.name
    return yield* Effect.mapError(
      FileChannel.make({ directory: path.resolve(directory), timeouts, principal, vouches }),
      (error) => ConfigurationInvalid.make(error.message)
    )
  })

/** A bearer token comes from `ASSENT_WEBHOOK_TOKEN`. */
const openWebhook = ({ url, vouches }: Extract<Plan, { readonly _tag: "Webhook" }>, { proxy, timeouts }: Settings) =>
  Effect.gen(function* () {
    const token = yield* Effect.option(Config.redacted(Config.nonEmptyString("ASSENT_WEBHOOK_TOKEN")))
    const WebhookChannel = yield* Effect.promise(() => import("../../channel/WebhookChannel.js"))
    return yield* Effect.provide(
      Effect.mapError(
        WebhookChannel.make({ url, token: Option.getOrUndefined(token), timeouts, vouches }),
        ({ message }) => ConfigurationInvalid.make(`The address of the webhook ${message}`)
      ),
      HttpProxy.client(proxy)
    )
  })

/** A console would read the peer's lines, and a halt channel says that nobody is there although the peer is. */
const excludesPeer = ({ _tag }: Plan): boolean => _tag === "Console" || _tag === "Halt"

/** A queue is what the command line itself offers with `--jsonl`, so it adds nothing to the fallback. */
const ofPolicy = (
  channel: NonNullable<CompiledPolicy.Policy["channel"]>,
  fallback: ReadonlyArray<Plan>,
  vouching: ReadonlySet<string>
): ReadonlyArray<Plan> => {
  switch (channel.type) {
    case "console":
      return [{ _tag: "Console" }]
    case "auto":
      return [{ _tag: "Auto" }]
    case "halt":
      return [{ _tag: "Halt" }]
    case "file":
      return [
        { _tag: "File", directory: channel.directory ?? "", vouches: channel.vouches === true || vouching.has("file") }
      ]
    case "webhook":
      return [
        { _tag: "Webhook", url: channel.endpoint ?? "", vouches: channel.vouches === true || vouching.has("webhook") }
      ]
    case undefined:
    case "queue":
      return fallback
  }
}

const parse = (flag: string, vouching: ReadonlySet<string>): Effect.Effect<Plan, Arguments.UsageError> => {
  const [type = "", ...rest] = flag.split(":")
  const argument = rest.join(":")
  switch (type) {
    case "console":
      return Effect.succeed({ _tag: "Console" })
    case "auto":
      return Effect.succeed({ _tag: "Auto" })
    case "halt":
      return Effect.succeed({ _tag: "Halt" })
    case "file":
      return argument === ""
        ? misuse("--channel file needs a directory: file:DIR.")
        : Effect.succeed({ _tag: "File", directory: argument, vouches: vouching.has("file") })
    case "webhook":
      return argument === ""
        ? misuse("--channel webhook needs an address: webhook:URL.")
        : Effect.succeed({ _tag: "Webhook", url: argument, vouches: vouching.has("webhook") })
    default:
      return misuse(
        `There is no channel ${JSON.stringify(flag)}. Channels: console, auto, halt, file:DIR, webhook:URL.`
      )
  }
}

const isConsole = ({ _tag }: Plan): boolean => _tag === "Console"

/** The value for `--channel`, without secrets of an address. */
const nameOf = (one: Plan): string => {
  switch (one._tag) {
    case "Console":
      return "console"
    case "Auto":
      return "auto"
    case "Halt":
      return "nobody: it halts"
    case "Yolo":
      return "nobody: everything is allowed"
    case "File":
      return `file:${one.directory}`
    case "Webhook":
      return `webhook:${originOf(one.url)}`
  }
}

const originOf = (url: string): string =>
  Either.match(WebAddress.parse(url), { onLeft: () => url, onRight: ({ origin }) => origin })

const misuse = (message: string) => Effect.fail(new Arguments.UsageError({ message }))

const nobodyThere = misuse("With --channel halt nobody answers. Leave out the other channels, or halt.")
