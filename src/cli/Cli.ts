/** The command line as one effect: words in, exit code out. Whatever goes wrong is told in one readable sentence. */
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as HashMap from "effect/HashMap"
import * as Inspectable from "effect/Inspectable"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Arguments from "./config/Arguments.js"
import type { ConfigurationInvalid } from "../host/local/ConfigurationInvalid.js"
import * as Help from "./config/Help.js"
import * as Environment from "../host/Environment.js"
import * as ExitCode from "../host/ExitCode.js"
import * as NodeFiles from "../host/NodeFiles.js"
import * as StoreLocation from "../host/StoreLocation.js"
import * as Output from "../tui/process/Output.js"
import * as Tty from "../tui/process/Tty.js"

type Failure = Arguments.UsageError | ConfigurationInvalid

export const main = (argv: ReadonlyArray<string>): Effect.Effect<number> =>
  Effect.gen(function* () {
    if (argv[0] === "__complete") {
      const Completion = yield* Effect.promise(() => import("./config/Completion.js"))
      const lines = Completion.of(argv.slice(1)).map((line) => `${line}\n`)
      return yield* Effect.as(Output.write("stdout", lines.join("")), ExitCode.completed)
    }
    const parsed = Arguments.parse(argv)
    if (Either.isLeft(parsed)) return yield* reportFailure(parsed.left)
    const invocation = parsed.right
    if (invocation.flags.plain === true) Tty.keepPlain()
    const level = yield* Effect.either(Arguments.logLevelOf(invocation.flags["log-level"]))
    if (Either.isLeft(level)) return yield* reportFailure(level.left)
    const debug = invocation.flags["log-level"] === "debug"
    return yield* dispatch(invocation).pipe(
      Effect.catchAll(reportFailure),
      Effect.catchAllCause((cause) => (Cause.isInterruptedOnly(cause) ? Effect.interrupt : crash(cause, debug))),
      Effect.provide(platform),
      Effect.withConfigProvider(yield* Environment.take),
      Effect.provide(Logger.minimumLogLevel(level.right)),
      Effect.provide(Logger.replace(Logger.defaultLogger, debug ? Logger.map(Logger.logfmtLogger, Output.log) : brief))
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One line for a failure, and a sentence as what it is: stack traces are shown on request only. */
const brief = Logger.make<unknown, void>((options) => {
  const [error] = Cause.prettyErrors(options.cause)
  if (error === undefined) {
    const texts = Array.isArray(options.message) ? options.message : [options.message]
    return Output.logOnce(
      texts.map((text) => (typeof text === "string" ? text : Inspectable.toStringUnknown(text))).join(" ")
    )
  }
  const annotations = HashMap.set(options.annotations, "cause", error.message)
  return Output.log(Logger.logfmtLogger.log({ ...options, annotations, cause: Cause.empty }))
})

/** Loaded with the first command that an agent runs: Node's part for processes is large, and most runs have none. */
const executor = Layer.effect(
  CommandExecutor.CommandExecutor,
  Effect.gen(function* () {
    const context = yield* Effect.context<FileSystem.FileSystem>()
    const node = yield* Effect.cached(
      Effect.flatMap(
        Effect.promise(() => import("@effect/platform-node/NodeCommandExecutor")),
        ({ layer }) =>
          Effect.provide(CommandExecutor.CommandExecutor, Layer.provide(layer, Layer.succeedContext(context)))
      )
    )
    return CommandExecutor.makeExecutor((command) => Effect.flatMap(node, ({ start }) => start(command)))
  })
)

/** Not `NodeContext`: it would also load a terminal and workers. */
const platform = executor.pipe(
  Layer.provideMerge(Layer.effectDiscard(NodeFiles.directLinks)),
  Layer.provideMerge(Layer.merge(NodeFileSystem.layer, NodePath.layer))
)

/** Commands are loaded when they are called: the start of one must not wait for the others. */
const dispatch = (invocation: Arguments.Invocation) =>
  Effect.gen(function* () {
    switch (invocation.command) {
      case "chat": {
        if (invocation.flags.attach !== undefined) {
          const Attach = yield* Effect.promise(() => import("./command/Attach.js"))
          return yield* Attach.run(invocation)
        }
        const Chat = yield* Effect.promise(() => import("./command/Chat.js"))
        return yield* Chat.run(invocation)
      }
      case "run": {
        const Run = yield* Effect.promise(() => import("./command/Run.js"))
        return yield* Run.run(invocation)
      }
      case "sessions": {
        const Sessions = yield* Effect.promise(() => import("./command/Sessions.js"))
        return yield* Sessions.run(invocation)
      }
      case "keys": {
        const Keys = yield* Effect.promise(() => import("./command/Keys.js"))
        return yield* Keys.run(invocation)
      }
      case "audit": {
        const Audit = yield* Effect.promise(() => import("./command/Audit.js"))
        return yield* Audit.run(invocation)
      }
      case "answer": {
        const Answer = yield* Effect.promise(() => import("./command/Answer.js"))
        return yield* Answer.run(invocation)
      }
      case "acp": {
        const Acp = yield* Effect.promise(() => import("./command/Acp.js"))
        return yield* Acp.run(invocation)
      }
      case "adopt": {
        const { flags, words } = invocation
        if (words.length === 0) return yield* new Arguments.UsageError({ message: adoptNobody })
        const model = `command:${words.map(StoreLocation.quoted).join(" ")}`
        const Chat = yield* Effect.promise(() => import("./command/Chat.js"))
        return yield* Chat.run({ ...invocation, flags: { ...flags, model }, words: [] })
      }
      case "profiles": {
        const Profiles = yield* Effect.promise(() => import("./command/Profiles.js"))
        return yield* Profiles.run(invocation)
      }
      case "mcp": {
        const Mcp = yield* Effect.promise(() => import("./command/Mcp.js"))
        return yield* Mcp.run(invocation)
      }
      case "permissions": {
        const Permissions = yield* Effect.promise(() => import("./command/Permissions.js"))
        return yield* Permissions.run(invocation)
      }
      case "serve": {
        const Serve = yield* Effect.promise(() => import("./command/Serve.js"))
        return yield* Serve.run(invocation)
      }
      case "doctor": {
        const Doctor = yield* Effect.promise(() => import("./command/Doctor.js"))
        return yield* Doctor.run(invocation)
      }
      case "completion": {
        const Completion = yield* Effect.promise(() => import("./config/Completion.js"))
        const shell = Completion.shells.find((name) => name === invocation.words[0])
        if (shell !== undefined)
          return yield* Output.write("stdout", Completion.script(shell)).pipe(Effect.as(ExitCode.completed))
        return yield* new Arguments.UsageError({ message: `assent completion takes ${Completion.shells.join(", ")}.` })
      }
      // `StaticHelp` has printed other help before.
      case "help": {
        if (invocation.words[0] === "settings") {
          const ConfigFile = yield* Effect.promise(() => import("../host/local/ConfigFile.js"))
          return yield* Output.say("stdout", `${Help.settings(ConfigFile.described())}\n`).pipe(
            Effect.as(ExitCode.completed)
          )
        }
        return yield* new Arguments.UsageError({ message: Help.unknown(invocation.words[0] ?? "") })
      }
    }
  })

const adoptNobody = "assent adopt needs a command that starts an agent, such as: assent adopt -- opencode acp"

const reportFailure = (failure: Failure): Effect.Effect<number> =>
  Effect.as(Output.notice(failure.message), ExitCode.usage)

/** Whatever asks for the current directory first finds it out. */
const gone = new Arguments.UsageError({
  message: "The current directory is gone. Change to another directory, for example with cd ~, and start again."
})

const crash = (cause: Cause.Cause<never>, debug: boolean): Effect.Effect<number> => {
  const defect = Option.getOrElse(Cause.dieOption(cause), () => "unknown")
  if (Predicate.hasProperty(defect, "syscall") && defect.syscall === "uv_cwd") return reportFailure(gone)
  const message = defect instanceof Error ? defect.message : String(defect)
  const text = debug ? Cause.pretty(cause) : `${message} (--log-level debug shows the place)`
  return Effect.as(debug ? Output.write("stderr", `assent: ${text}\n`) : Output.notice(text), ExitCode.failed)
}
