/**
 * One JSON value a line, for another process: events on standard output and, with a peer, commands on standard input.
 *
 * The peer is an interactor like any other: requests come to it as `InteractionRequest`, closed ones as
 * `InteractionClosed`, rejected answers as `AnswerRejected`. Events stay projections; only these lines carry requests.
 * `SendTaken` tells the peer that its words were taken, and are on disk when the session is stored.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Halted } from "../../channel/HaltChannel.js"
import * as HaltChannel from "../../channel/HaltChannel.js"
import * as QueueChannel from "../../channel/QueueChannel.js"
import type * as Redaction from "../../core/Redaction.js"
import * as Input from "../../inbox/Input.js"
import * as Interactor from "../../interaction/Interactor.js"
import type { Principal } from "../../interaction/Principal.js"
import type * as Agent from "../../runtime/Agent.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Wire from "../../host/Wire.js"
import * as Output from "../../tui/process/Output.js"
import { haltedBy } from "./RunExecutor.js"
import * as Remedy from "../../host/Remedy.js"

export interface Options {
  readonly agent: Agent.Agent
  readonly writer: Writer
  /** Absent with a peer that sends its own. */
  readonly task: Input.Input | undefined
  readonly halted: Effect.Effect<Halted>
  /** The process at the other end of standard input. */
  readonly peer: Peer | undefined
}

/** A process that reads our lines and writes commands. */
export interface Peer {
  readonly channel: QueueChannel.Service
  /** The channel as it is asked: a model may decide before it. */
  readonly interactor: Interactor.Service
  readonly lines: Stream.Stream<string>
  /** Who answers, as far as anybody knows: what an answer says of its author, or always the one who runs this. */
  readonly authorOf: (said: Principal | undefined) => string | undefined
  /** True when nobody but the peer can answer: once it is gone, requests halt. */
  readonly alone: boolean
  /** Masks what the program was given in secret, in what is asked. */
  readonly masking: Redaction.Masking
}

/** The peer as an interactor: its requests have no timeout, unless the environment sets one. */
export const makePeer = (timeouts: Interactor.Timeouts): Effect.Effect<QueueChannel.Service, never, Scope.Scope> =>
  QueueChannel.make({ id: "json", timeouts: Interactor.timeoutsOf(timeouts, { permission: 0, clarification: 0 }) })

/** Writes the agent's events. It is made before the agent, so that its scope closes after the agent's last event. */
export interface Writer {
  readonly start: (agent: Agent.Agent) => Effect.Effect<Fiber.RuntimeFiber<void>>
}

/** Closing the scope waits until all events are written, with a time limit for a reader that does not read. */
export const makeWriter: Effect.Effect<Writer, never, Scope.Scope> = Effect.suspend(() => {
  let writing: Fiber.RuntimeFiber<void> | undefined
  const written = Effect.suspend(() => (writing === undefined ? Effect.void : Fiber.await(writing)))
  return Effect.as(
    Effect.addFinalizer(() => Effect.timeoutOption(Effect.disconnect(Effect.interruptible(written)), "5 seconds")),
    {
      start: (agent: Agent.Agent) =>
        Effect.map(
          Effect.forkDaemon(
            Stream.runForEachChunk(agent.events.stream, (chunk) => Output.writeJsonLines("stdout", chunk))
          ),
          (fiber) => (writing = fiber)
        )
    }
  )
})

/** Runs until the agent is idle and, with a peer, until its input has ended or it said `Shutdown`. */
export const run = ({ agent, writer, task, halted, peer }: Options): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const writing = yield* writer.start(agent)
    const halt = yield* haltedBy(halted)
    if (task !== undefined) yield* Effect.ignore(agent.send(task))
    const haltOfPeer = peer === undefined ? Effect.succeedNone : yield* converse(agent, peer)
    const end = yield* agent.awaitIdle
    yield* agent.shutdown
    yield* Fiber.await(writing)
    const record = Option.orElse(yield* halt, () => Option.none())
    const recordOfPeer = yield* haltOfPeer
    const known = Option.getOrUndefined(Option.orElse(record, () => recordOfPeer))
    if (known !== undefined) yield* Output.writeJson("stdout", known)
    // In plan mode the plan is what was wanted.
    if (known?.plan !== undefined) return ExitCode.completed
    return Option.match(end, { onNone: () => ExitCode.completed, onSome: ExitCode.ofRun })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Serves the peer until it is gone; yields an effect that tells whether its absence halted the agent. */
const converse = (
  agent: Agent.Agent,
  { channel, interactor, lines, alone, authorOf, masking }: Peer
): Effect.Effect<Effect.Effect<Option.Option<Halted>>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const attached = yield* Scope.make()
    yield* Scope.extend(agent.broker.attach(interactor), attached)
    yield* Effect.forkScoped(Stream.runForEach(channel.stream, (dialog) => writeDialog(dialog, masking)))
    yield* lines.pipe(
      Stream.chunks,
      Stream.takeUntilEffect(hearing(agent, channel, authorOf)),
      Stream.runDrain,
      // A peer that stopped reading our lines will not answer either, though its input is still open.
      Effect.raceFirst(Output.gone("stdout"))
    )
    // The peer is gone: open requests go to the other interactors, or halt. The halt channel is attached before the
    // peer is detached.
    const halt = yield* HaltChannel.makeWith(Remedy.hint)
    if (alone) yield* agent.broker.attach(halt.interactor)
    yield* Scope.close(attached, Exit.void)
    return yield* haltedBy(Deferred.await(halt.halted))
  })

const writeDialog = (dialog: QueueChannel.Dialog, masking: Redaction.Masking): Effect.Effect<void> =>
  Output.writeJson("stdout", Wire.dialog(dialog, masking))

/**
 * Executes commands in the order of their lines, a batch at a time. True: the peer asked to shut down.
 *
 * Back-pressure: a line is processed after the output of the earlier ones was taken, by standard output or as an event.
 * So a peer that does not read is not listened to. Rejections of answers are written together.
 */
const hearing = (agent: Agent.Agent, channel: QueueChannel.Service, authorOf: Peer["authorOf"]) => {
  let number = 0
  let rejected: Array<Wire.Rejected> = []
  const reportRejected = Effect.suspend(() => {
    if (rejected.length === 0) return Effect.void
    const written = Output.writeJsonLines("stdout", rejected)
    rejected = []
    return written
  })
  const reject = (rejection: Wire.Rejected) => {
    rejected.push(rejection)
    return rejected.length < mostTogether ? Effect.void : reportRejected
  }
  return (lines: Iterable<string>): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      for (const line of lines) {
        number++
        if (line.trim() === "") continue
        const parsed = Wire.parse(line)
        if (Either.isLeft(parsed)) {
          yield* agent.report(`Line ${number} of the input was skipped: ${parsed.left}`)
          continue
        }
        const command = parsed.right
        if (command._tag === "Answer") {
          yield* Effect.catchAll(Wire.answer(channel, command, authorOf(command.by)), reject)
          continue
        }
        yield* reportRejected
        if (yield* obey(agent, command, number)) return true
      }
      yield* reportRejected
      return false
    })
}

/** How many rejections are written at once. */
const mostTogether = 64

/**
 * Executes one command that is no answer. True: the peer asked to shut down.
 *
 * One generator for all commands: a generator made per call gets a hidden class of its own, which survives many
 * collections with all that it holds.
 */
const obey = Effect.fnUntraced(function* (
  agent: Agent.Agent,
  command: Exclude<Wire.Command, typeof Wire.Answer.Type>,
  number: number
) {
  const complain = (effect: Effect.Effect<unknown, { readonly message: string }>) =>
    Effect.catchAll(effect, ({ message }) => agent.report(`Line ${number}: ${message}`))
  switch (command._tag) {
    case "Send":
      yield* complain(
        Effect.flatMap(Wire.send(agent, command, read), (taken) =>
          taken === undefined
            ? Effect.void
            : Output.writeJson("stdout", { _tag: "SendTaken", line: number, id: command.id, ...taken })
        )
      )
      return false
    case "Interrupt":
      yield* complain(agent.interrupt({ target: command.target, toolCallId: command.toolCallId }))
      return false
    case "Permissions": {
      const outcome = yield* agent.permissions(command.command)
      yield* Either.match(outcome, {
        // Only the first line: the usage text after it is for people.
        onLeft: (reason) => agent.report(`Line ${number}: ${reason.split("\n", 1).join("")}`),
        onRight: ({ lines }) => Output.writeJson("stdout", { _tag: "Permissions", lines })
      })
      return false
    }
    case "Shutdown":
      // A shutdown, not only an interrupt: queued turns must not begin.
      yield* agent.shutdown
      return true
  }
})

/** Reads files with the rights of this process: the sender of the lines started it. */
const read: Wire.ReadFile = (file) => Effect.provide(Input.read(file.path, file), NodeFileSystem.layer)
