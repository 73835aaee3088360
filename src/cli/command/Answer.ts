/** `assent answer DIR`: answers what a file channel asks, at a terminal or from a pipe. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import type { PlatformError } from "@effect/platform/Error"
import * as Effect from "effect/Effect"
import { visible } from "../../audit/AuditReport.js"
import * as FileFailure from "../../core/FileFailure.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import * as FileExchange from "../../channel/FileExchange.js"
import { ConsoleScreen } from "../../tui/console/ConsoleScreen.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"
import * as AnswerExecutor from "../executor/AnswerExecutor.js"
import * as Arguments from "../config/Arguments.js"
import * as InputLines from "../../tui/process/InputLines.js"
import * as Output from "../../tui/process/Output.js"
import * as Person from "../../host/local/Person.js"
import * as Screen from "../../tui/process/Screen.js"

/** The part of a command line that this command reads. */
export type Invocation = Omit<Arguments.Invocation, "command">

export const run = ({ words }: Invocation) =>
  Effect.gen(function* () {
    const directory = yield* directoryOf(words)
    const by = yield* Person.name
    if (!Screen.isInteractive("stdout")) {
      const print = (text: string) => Output.write("stdout", text)
      return yield* AnswerExecutor.read({ directory, by, lines: InputLines.linesUpTo(TypedAnswer.maxLength), print })
    }
    return yield* Effect.provide(
      Effect.flatMap(ConsoleScreen, (screen) => AnswerExecutor.attend({ directory, by, screen })),
      Screen.layer({ output: "stdout" })
    )
  }).pipe(
    Effect.catchTags({
      BadArgument: (error) => lost(error),
      SystemError: (error) => lost(error)
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The directory was there, and is not any more. */
const lost = (error: PlatformError) =>
  misuse(`The file channel is gone: ${FileFailure.reason(error)}. Start assent answer again.`)

const isDenied = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "PermissionDenied"

const misuse = (message: string) => new Arguments.UsageError({ message })

/** The directory of an existing exchange, checked to be writable for responses. */
const directoryOf = (words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [word, ...others] = words
    if (word === undefined || word === "" || others.length > 0) {
      return yield* misuse("assent answer needs one directory: assent answer DIR, the same as in --channel file:DIR.")
    }
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const directory = path.resolve(word)
    const exchange = yield* FileExchange.make(directory)
    const usable = Effect.zipRight(
      fs.readDirectory(exchange.requests),
      Effect.zipRight(fs.readDirectory(exchange.responses), fs.access(exchange.responses, { writable: true }))
    )
    const what = OwnFile.realDirectory(directory) === undefined ? "no directory" : "no directory of a file channel"
    yield* Effect.mapError(usable, (error) =>
      misuse(
        isDenied(error)
          ? `${visible(directory)} cannot be answered in: ${FileFailure.reason(error)}. Run it as the person who owns it.`
          : `${visible(directory)} is ${what}. Start an agent with --channel file:${StoreLocation.quoted(word)} first; it makes one.`
      )
    )
    return directory
  })
