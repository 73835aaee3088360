/** Runs one task: the answer on standard output, everything else on standard error. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type * as Jobs from "../../builtin/Jobs.js"
import type { Service as Screen } from "../../tui/console/ConsoleScreen.js"
import type { Halted } from "../../channel/HaltChannel.js"
import type { Input } from "../../inbox/Input.js"
import type * as Agent from "../../runtime/Agent.js"
import { Cancelled, Failed, type TurnEnd } from "../../turn/Turn.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Glyphs from "../../tui/terminal/Glyphs.js"
import * as Output from "../../tui/process/Output.js"
import { isDrawable } from "../../tui/process/Tty.js"
import * as Retries from "../../tui/view/Retries.js"
import { serverWords } from "../../mcp/ServerWords.js"

export interface Options {
  readonly agent: Agent.Agent
  /** What runs in the background, and ends with the run. */
  readonly jobs: Jobs.Service
  /** Absent when a resumed session continues its own work. */
  readonly task: Input | undefined
  /** The screen of the person who watches, and may be asked; undefined when nobody watches. */
  readonly screen: Screen | undefined
  /** Whether what they type is for the agent. Where lines are piped in, each is an answer. */
  readonly listens: boolean
  readonly halted: Effect.Effect<Halted>
  /** The command that goes on with the session, when it is kept. */
  readonly resumeCommand: (command: "run" | "chat") => Effect.Effect<string | undefined>
}

/**
 * Runs the task until the agent is idle. Yields an effect to run after the screen has restored the terminal: it prints
 * the answer and yields the exit code.
 */
export const run = ({
  agent,
  jobs,
  task,
  screen,
  listens,
  halted,
  resumeCommand
}: Options): Effect.Effect<Effect.Effect<number>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const shown = yield* Effect.forkScoped(screen === undefined ? watch(agent) : Effect.as(follow(agent, screen), []))
    if (screen !== undefined && listens) yield* Effect.forkScoped(listen(screen, agent))
    const halt = yield* haltedBy(halted)
    const end = yield* ending(agent, task)
    const left = jobs.list(agent.id).filter(({ ended }) => ended === undefined)
    yield* agent.shutdown
    const told = Exit.getOrElse(yield* Fiber.await(shown), () => [])
    // A screen shows their ends.
    const remarks = screen === undefined ? [...told, ...left.map(stoppedWithRun)] : []
    const record = yield* halt
    const said = Effect.zipRight(
      Effect.forEach(remarks, (remark) => Output.notice(remark), { discard: true }),
      report(end, record)
    )
    // A person reads a plan before they approve it. A cancelled turn is over: a run would have nothing to do.
    const isForChat = end._tag === "Cancelled" || Option.exists(record, ({ plan }) => plan !== undefined)
    if (end._tag !== "Halted" && end._tag !== "Cancelled") return said
    return Effect.zipLeft(said, hint(resumeCommand(isForChat ? "chat" : "run")))
  })

/** Tells a person how to go on with what was not done. */
export const hint = (resumeCommand: ReturnType<Options["resumeCommand"]>): Effect.Effect<void> =>
  Effect.flatMap(resumeCommand, (command) =>
    command === undefined ? Effect.void : Output.notice(`resume with: ${command}`)
  )

/** Yields the record of the first request that nobody could answer, if there was one. */
export const haltedBy = (
  halted: Effect.Effect<Halted>
): Effect.Effect<Effect.Effect<Option.Option<Halted>>, never, Scope.Scope> =>
  Effect.gen(function* () {
    let record = Option.none<Halted>()
    yield* Effect.forkScoped(
      Effect.map(halted, (halt) => {
        record = Option.some(halt)
      })
    )
    return Effect.sync(() => record)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const stoppedWithRun = ({ command, id }: Jobs.Listed): string => {
  const line = command.trim().replace(/\s+/g, " ")
  return `${id} (${line.length > 80 ? `${line.slice(0, 79)}…` : line}) was stopped: background jobs end with the run.`
}

const stopped: TurnEnd = Cancelled({ reason: "shutdown", steps: 0 })

/** Sends the task to the root, also when a resumed turn works, and waits until nothing works any more. */
const ending = (agent: Agent.Agent, task: Input | undefined): Effect.Effect<TurnEnd> => {
  const idle = Effect.map(
    agent.awaitIdle,
    Option.getOrElse(() => stopped)
  )
  if (task === undefined) return idle
  return Effect.catchAll(Effect.zipRight(agent.send(task, { target: agent.id }), idle), (error) =>
    Effect.succeed(error._tag === "AgentStopped" ? stopped : Failed({ error: error.message, steps: 0 }))
  )
}

/** Tool calls, what they print, notices and what subagents say; the answer itself goes to standard output once, at the end. */
const follow = (agent: Agent.Agent, screen: Screen): Effect.Effect<void> =>
  Effect.flatMap(
    // On demand, as the screen.
    Effect.promise(() =>
      Promise.all([
        import("../../tui/view/Follow.js"),
        import("../../tui/view/Transcript.js"),
        import("../../tui/view/Printed.js")
      ])
    ),
    ([Follow, Transcript, Printed]) => {
      const { color } = screen
      const isRead = Output.isTerminal("stderr")
      const signs = Glyphs.of(screen)
      const printed = isRead ? Effect.succeed({ printed: Printed.make({ color, signs }) }) : undefined
      const transcript = Transcript.make({ color, signs, quiet: true })
      return Follow.follow(agent.events, screen, transcript, { interactive: isRead, drawing: printed })
    }
  )

/**
 * For a run without a screen: says at once why a model is asked again, so that a wait is no silence; yields the remarks
 * about answers that were cut off.
 */
const watch = (agent: Agent.Agent): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const remarks = new Set<string>()
    const retries = Retries.make()
    for (;;) {
      const events = yield* agent.events.takeAll
      if (Option.isNone(events)) return [...remarks]
      for (const event of events.value) {
        if (event._tag === "ModelCallEnded" && event.remark !== undefined) remarks.add(event.remark)
        const who = event.sessionId === agent.id ? "" : `${event.agent}: `
        if (event._tag === "FilesSetAside")
          yield* Effect.forEach(event.notices, (notice) => Output.notice(`${who}${notice}`), { discard: true })
        const server = event._tag === "McpServerChanged" ? serverWords(event) : undefined
        if (server !== undefined) yield* Output.notice(`${who}${server}`)
        if (event._tag === "AgentError") yield* Output.notice(`${who}${event.message}`)
        if (event._tag !== "ModelRetried") continue
        yield* Output.notice(`${who}${retries(event)}`)
      }
    }
  })

/** A person who watches may interject and cancel. Whoever quits a run leaves nothing working. */
const listen = (screen: Screen, agent: Agent.Agent): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (;;) {
      const submitted = yield* screen.next
      if (submitted._tag === "EndOfInput") return yield* agent.shutdown
      if (submitted._tag === "Shortcut") continue
      // Unread words would begin another turn.
      if (submitted._tag !== "Line") yield* Effect.zipRight(Effect.ignore(agent.takeBack()), agent.cancel("user"))
      else yield* Effect.ignore(agent.send(submitted.text))
    }
  })

/** As it came; on a terminal drawn, or at least broken between words. */
const answer = (text: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (text === "") return
    const columns = Output.columns("stdout")
    const rows = isDrawable("stdout")
      ? yield* Effect.flatMap(loadMarkdown, (draw) => draw(text))
      : [columns === undefined ? text : (yield* loadWrap).wrapped(text, columns)]
    yield* Output.write("stdout", `${rows.join("\n")}\n`)
  })
const loadMarkdown = Effect.promise(async () => (await import("../../tui/view/AgentText.js")).answer)
const loadWrap = Effect.promise(() => import("../../tui/terminal/WordWrap.js"))

const report = (end: TurnEnd, halted: Option.Option<Halted>): Effect.Effect<number> =>
  Effect.gen(function* () {
    const plan = Option.getOrUndefined(halted)?.plan
    // In plan mode the plan is what was wanted.
    if (end._tag === "Halted" && plan !== undefined) {
      yield* answer(plan)
      yield* Output.notice(
        "no person can approve this plan, so nothing was changed. Resume the session in a chat and approve it there."
      )
      return ExitCode.completed
    }
    const code = ExitCode.ofRun(end)
    switch (end._tag) {
      case "Completed":
        yield* answer(end.text)
        if (code === ExitCode.failed) yield* Output.notice("the model ended without an answer in words.")
        break
      case "TurnLimit":
        yield* answer(end.text)
        yield* Output.notice(`the limit of ${end.steps} model calls was reached.`)
        break
      case "Cancelled":
        yield* Output.notice(`cancelled (${end.reason}).`)
        break
      case "Denied":
        yield* Output.notice(end.detail)
        break
      case "Failed":
        yield* Output.notice(end.error)
        break
      case "Halted":
        if (Option.isSome(halted)) yield* Output.writeJson("stderr", halted.value)
        else yield* Output.notice(end.detail)
    }
    return code
  })
