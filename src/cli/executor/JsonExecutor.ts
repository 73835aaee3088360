/**
 * One JSON value a line, for another process: events on standard output and, with a peer, commands on standard input.
 *
 * The peer is an interactor like any other: what it is asked comes as `InteractionRequest`, what closed as
 * `InteractionClosed`, what it said in vain as `AnswerRejected`. Events stay projections; only these lines carry requests.
 * That its words are taken, and on the disk where the session is kept, it is told by `SendTaken`.
 */
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
import * as ForeignJson from "../../core/ForeignJson.js"
import type { Message } from "../../inbox/Message.js"
import * as InteractionRequest from "../../interaction/InteractionRequest.js"
import * as Interactor from "../../interaction/Interactor.js"
import type * as Agent from "../../runtime/Agent.js"
import type { AgentUnknown } from "../../session/Interjection.js"
import * as ExitCode from "../ExitCode.js"
import * as JsonCommand from "./JsonCommand.js"
import * as Output from "../terminal/Output.js"
import { haltWith } from "./RunExecutor.js"

export interface Options {
  readonly agent: Agent.Agent
  readonly writer: Writer
  /** Absent with a peer that sends its own. */
  readonly task: string | undefined
  readonly halted: Effect.Effect<Halted>
  /** The process at the other end of standard input. */
  readonly peer: Peer | undefined
}

/** A process that reads our lines and writes commands. */
export interface Peer {
  readonly channel: QueueChannel.Service
  readonly lines: Stream.Stream<string>
  /** True when nobody but the peer can answer: once it is gone, requests halt. */
  readonly alone: boolean
}

/** The peer as an interactor: it has all the time there is, unless the environment says otherwise. */
export const makePeer = (timeouts: Interactor.Timeouts): Effect.Effect<QueueChannel.Service, never, Scope.Scope> =>
  QueueChannel.make({ id: "json", timeouts: Interactor.timeoutsOf(timeouts, { permission: 0, clarification: 0 }) })

/** Writes the agent's events; made before the agent, so that it is waited for after that has told its end. */
export interface Writer {
  readonly start: (agent: Agent.Agent) => Effect.Effect<Fiber.RuntimeFiber<void>>
}

/** Closing the scope waits until all that was told is written, but not for long for one who does not read. */
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
    const halt = yield* haltWith(agent, halted)
    if (task !== undefined) yield* Effect.ignore(agent.send(task))
    const haltOfPeer = peer === undefined ? Effect.succeedNone : yield* converse(agent, peer)
    const end = yield* agent.awaitIdle
    yield* agent.shutdown
    yield* Fiber.await(writing)
    const record = Option.orElse(yield* halt, () => Option.none())
    const recordOfPeer = yield* haltOfPeer
    for (const halted of Option.toArray(Option.orElse(record, () => recordOfPeer))) {
      yield* Output.writeJson("stdout", halted)
    }
    return Option.match(end, { onNone: () => ExitCode.completed, onSome: ExitCode.ofTurn })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Serves the peer until it is gone; yields what will tell whether its absence halted the agent. */
const converse = (
  agent: Agent.Agent,
  { channel, lines, alone }: Peer
): Effect.Effect<Effect.Effect<Option.Option<Halted>>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const attached = yield* Scope.make()
    yield* Scope.extend(agent.broker.attach(channel.interactor), attached)
    yield* Effect.forkScoped(Stream.runForEach(channel.stream, writeDialog))
    yield* lines.pipe(
      Stream.chunks,
      Stream.takeUntilEffect(hearing(agent, channel)),
      Stream.runDrain,
      // Whoever does not read our lines any more will not answer either, though its own end is still open.
      Effect.raceFirst(Output.gone("stdout"))
    )
    // Gone: what is still open falls to the others, or halts. The others stand ready before the peer leaves.
    const halt = yield* HaltChannel.make
    if (alone) yield* agent.broker.attach(halt.interactor)
    yield* Scope.close(attached, Exit.void)
    return yield* haltWith(agent, Deferred.await(halt.halted))
  })

const writeDialog = (dialog: QueueChannel.Dialog): Effect.Effect<void> =>
  Output.writeJson(
    "stdout",
    QueueChannel.match(dialog, {
      Opened: ({ request }) => ({ _tag: "InteractionRequest", request: InteractionRequest.encode(request) }),
      Closed: (closed) => ({ ...closed, _tag: "InteractionClosed" })
    })
  )

/**
 * Carries out the commands of some lines at a time, those of later ones after them. True: the peer wants an end.
 *
 * No line is heard before what an earlier one was told has been taken: by standard output, or as an event. So a peer that
 * does not read is not listened to. What is told of answers that were given in vain is written together.
 */
const hearing = (agent: Agent.Agent, channel: QueueChannel.Service) => {
  let number = 0
  let rejected: Array<unknown> = []
  const told = Effect.suspend(() => {
    if (rejected.length === 0) return Effect.void
    const written = Output.writeJsonLines("stdout", rejected)
    rejected = []
    return written
  })
  const reject = (requestId: string, reason: string) => {
    rejected.push({ _tag: "AnswerRejected", requestId: ForeignJson.echo(requestId), reason })
    return rejected.length < mostTogether ? Effect.void : told
  }
  return (lines: Iterable<string>): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      for (const line of lines) {
        number++
        if (line.trim() === "") continue
        const parsed = JsonCommand.parse(line)
        if (Either.isLeft(parsed)) {
          yield* agent.report(`Line ${number} of the input is no command and was skipped: ${parsed.left}`)
          continue
        }
        const command = parsed.right
        if (command._tag === "Answer") {
          const { requestId, answer, by } = command
          const given =
            typeof answer === "string"
              ? channel.answerText(requestId, answer, by)
              : channel.answer(requestId, answer, by)
          yield* Effect.catchAll(given, ({ message }) => reject(requestId, message))
          continue
        }
        yield* told
        if (yield* obey(agent, command, number)) return true
      }
      yield* told
      return false
    })
}

/** How many rejections are written at once. */
const mostTogether = 64

/**
 * Carries out one command that is no answer. True: the peer wants an end.
 *
 * One generator for all commands: each that is made for a call gets a shape of its own, which with all that it holds
 * outlives many collections.
 */
const obey = Effect.fnUntraced(function* (
  agent: Agent.Agent,
  command: Exclude<JsonCommand.JsonCommand, typeof JsonCommand.Answer.Type>,
  number: number
) {
  const complain = (effect: Effect.Effect<unknown, { readonly message: string }>) =>
    Effect.catchAll(effect, ({ message }) => agent.report(`Line ${number}: ${message}`))
  switch (command._tag) {
    case "Send":
      yield* complain(
        Effect.flatMap(send(agent, command), (taken) =>
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
        // What follows its first line is how to use the command, for people.
        onLeft: (reason) => agent.report(`Line ${number}: ${reason.split("\n", 1).join("")}`),
        onRight: ({ lines }) => Output.writeJson("stdout", { _tag: "Permissions", lines })
      })
      return false
    }
    case "Shutdown":
      // Not merely the running turn: what is queued must not begin.
      yield* agent.shutdown
      return true
  }
})

/** How words were taken. */
interface Taken {
  /** One for each target. */
  readonly messageIds: ReadonlyArray<string>
  /** Words were taken under this id before, and these were not. */
  readonly again?: true
}

/** Words after the end are nobody's, and have no receipt; the peer knows of the end. */
const send = (agent: Agent.Agent, { id, target, text, when }: typeof JsonCommand.Send.Type) => {
  type Refused = Agent.NotTaken | AgentUnknown | JsonCommand.TargetNotQueued | JsonCommand.IdForSeveral
  const hand = (): Effect.Effect<ReadonlyArray<Message>, Refused> => {
    if (when === "idle") {
      const isRoot = target === undefined || target === agent.origin.agent
      return isRoot
        ? Effect.map(agent.enqueue(text, { id }), Array.of)
        : new JsonCommand.TargetNotQueued({ root: agent.origin.agent })
    }
    if (target === undefined || typeof target === "string")
      return Effect.map(agent.send(text, { id, target }), Array.of)
    return id === undefined ? agent.broadcast(text, target) : new JsonCommand.IdForSeveral({ id })
  }
  return Effect.suspend(hand).pipe(
    Effect.map((messages): Taken => ({ messageIds: messages.map(({ id }) => id) })),
    Effect.catchTags({
      AgentStopped: () => Effect.succeed(undefined),
      MessageAlreadyTaken: ({ messageId }) => Effect.succeed<Taken>({ messageIds: [messageId], again: true })
    })
  )
}
