/**
 * A person at a terminal: lines go to the agent, events come back as a transcript.
 *
 * Enter while the agent works interjects. Ctrl-C cancels the turn, and quits when it comes twice or when nothing runs and
 * it comes again.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { ConsoleScreen, type Service as Screen } from "../channel/ConsoleScreen.js"
import * as Display from "../channel/Display.js"
import type * as Model from "../model/Model.js"
import type * as Agent from "../runtime/Agent.js"
import type { ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as ExitCode from "./ExitCode.js"
import * as Transcript from "./Transcript.js"

export interface Options {
  readonly agent: Agent.Agent
  /** Resolves `/model PROVIDER/MODEL`. */
  readonly resolveModel: (ref: string) => Effect.Effect<Model.Service, ConfigurationInvalid>
  /** False for piped input: one line at a time, each after the turn before it. */
  readonly interactive: boolean
}

/** Runs until the person quits; yields the exit code. */
export const run = (options: Options): Effect.Effect<number, never, ConsoleScreen | Scope.Scope> =>
  Effect.gen(function* () {
    const { agent, interactive } = options
    const screen = yield* ConsoleScreen
    const transcript = Transcript.make({ color: screen.color, verbose: false })
    // Written by the transcript, a word a turn; read by the loop at a pipe. Whoever types does not wait for turns.
    const turnShown = yield* Queue.sliding<void>(1)
    const shown = yield* Effect.forkScoped(
      Transcript.follow(agent.events, screen, transcript, Queue.offer(turnShown, undefined))
    )
    yield* screen.setCompletion(complete)
    yield* greet(screen, agent)

    let exit: number = ExitCode.completed
    let lastInterrupt = -Infinity
    const quit = Effect.gen(function* () {
      yield* agent.shutdown
      yield* Fiber.await(shown)
      return exit
    })
    for (;;) {
      const submitted = yield* screen.next
      switch (submitted._tag) {
        case "EndOfInput":
          if (!interactive) yield* agent.awaitIdle
          return yield* quit
        case "Interrupt": {
          const now = yield* Clock.currentTimeMillis
          const again = now - lastInterrupt < 1_500
          lastInterrupt = now
          if (again) return yield* quit
          if (yield* agent.isIdle) {
            yield* screen.printLine("Press Ctrl-C again to quit, or type /quit.")
          } else {
            yield* agent.cancel("user")
          }
          break
        }
        case "Line": {
          const text = submitted.text.trim()
          if (text === "/quit" || text === "/exit") return yield* quit
          if (text.startsWith("/")) {
            yield* command(text.slice(1), options, screen, transcript)
            break
          }
          yield* Effect.ignore(agent.send(submitted.text))
          if (!interactive) {
            const end = yield* agent.awaitIdle
            // The next line may ask for what this turn has come to.
            yield* Effect.raceFirst(Queue.take(turnShown), Fiber.await(shown))
            exit = Option.match(end, { onNone: () => exit, onSome: ExitCode.ofTurn })
          }
        }
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const greet = (screen: Screen, agent: Agent.Agent) =>
  Effect.gen(function* () {
    const style = Display.style(screen.color)
    const model = yield* agent.model
    yield* screen.printLine(
      `${style.bold("assent")} ${style.dim(`model ${model.id} · /help for commands · Ctrl-D to quit`)}`
    )
    if (model.id.startsWith("offline")) {
      yield* screen.printLine(
        style.dim(
          "The offline stand-in is not a language model. Try: read README.md and run ls, or choose one with /model."
        )
      )
    }
  })

const commandHelp: ReadonlyArray<readonly [string, string]> = [
  ["/help", "this list"],
  ["/permissions [COMMAND]", "show, status, check, allow, deny, default, suspend, resume, clear"],
  ["/model [PROVIDER/MODEL]", "show or change the model"],
  ["/cost", "model calls and tokens so far"],
  ["/clear", "forget the conversation"],
  ["/quit", "leave; Ctrl-D and twice Ctrl-C do too"]
]

const completions: ReadonlyArray<string> = [
  "/help",
  ...["show", "status", "check ", "allow ", "deny ", "default ", "suspend ", "resume", "clear"].map(
    (verb) => `/permissions ${verb}`
  ),
  "/model ",
  "/cost",
  "/clear",
  "/quit"
]

const complete = (line: string): ReadonlyArray<string> =>
  line.startsWith("/") ? completions.filter((candidate) => candidate.startsWith(line)) : []

const command = (line: string, options: Options, screen: Screen, transcript: Transcript.Transcript) =>
  Effect.gen(function* () {
    const { agent } = options
    const [name = "", ...rest] = line.split(/\s+/)
    const argument = line.slice(name.length).trim()
    switch (name) {
      case "help":
        return yield* screen.printLine(commandHelp.map(([usage, what]) => `${usage.padEnd(26)} ${what}`).join("\n"))
      case "permissions": {
        const outcome = yield* agent.permissions(argument)
        return yield* screen.printLine(
          Either.match(outcome, { onLeft: (reason) => reason, onRight: ({ lines }) => lines.join("\n") })
        )
      }
      case "model": {
        if (rest.length === 0) return yield* screen.printLine((yield* agent.model).id)
        const resolved = yield* Effect.either(options.resolveModel(argument))
        if (Either.isLeft(resolved)) return yield* screen.printLine(resolved.left.message)
        yield* agent.setModel(resolved.right)
        return yield* screen.printLine(`The model is now ${resolved.right.id}.`)
      }
      case "cost": {
        const { calls, input, output } = transcript.usage()
        return yield* screen.printLine(`${calls} model calls, ${input} tokens in, ${output} tokens out`)
      }
      case "clear":
        if (!(yield* agent.isIdle))
          return yield* screen.printLine("Wait until the agent is idle, or cancel with Ctrl-C.")
        agent.history.clear()
        return yield* screen.printLine("The conversation is forgotten.")
      default:
        return yield* screen.printLine(`There is no command /${name}. /help lists them.`)
    }
  })
