/**
 * A live session as one editor sees it: its prompts, its updates, its dialogs and what can be set about it.
 *
 * ```
 *   events of the tree ─► AcpUpdate ─┐                       the end of a turn ─► answers to its prompts
 *   sentences, the past ─────────────┴─► one writer ─► editor
 *   questions ─► AcpInteractor, behind what was written before them
 * ```
 *
 * The writer alone answers prompts, when it has written the end of their turn: an answer never overtakes an update.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FiberId from "effect/FiberId"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Id from "../core/Id.js"
import type { CorrelationId, ToolCallId } from "../core/Id.js"
import { visible } from "../core/Visible.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type { ShownSession } from "../host/SessionHandle.js"
import * as Input from "../inbox/Input.js"
import * as ServerPrompts from "../mcp/ServerPrompts.js"
import * as ThinkingSetting from "../model/ThinkingSetting.js"
import * as TokenLedger from "../model/TokenLedger.js"
import { modes } from "../permission/PermissionState.js"
import * as AcpConnection from "../foreign/AcpConnection.js"
import * as AcpInteractor from "./AcpInteractor.js"
import * as AcpUpdate from "./AcpUpdate.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** The editor at the other end. */
export interface Editor {
  readonly client: AcpConnection.Client
  /** The dialogs that it has. */
  readonly has: AcpInteractor.Editor["has"]
  readonly shows: AcpUpdate.Surroundings["shows"]
  /** The person at it. */
  readonly principal: string
}

/** A session at an editor. */
export interface AcpSession {
  readonly live: ShownSession
  /** Sends what happens from now on, and asks what is open, until the scope closes. */
  readonly begin: Effect.Effect<void, never, Scope.Scope>
  /** What can be set about it. */
  readonly options: Effect.Effect<Array<AcpConnection.SessionConfigOption>>
  readonly setOption: (
    id: string,
    value: unknown
  ) => Effect.Effect<Array<AcpConnection.SessionConfigOption>, AcpConnection.ProtocolError>
  /** Runs words as a turn, or lets the turn of an earlier prompt read them, and waits for the end of that turn. */
  readonly prompt: (input: Input.Input) => Effect.Effect<AcpConnection.PromptResponse, AcpConnection.ProtocolError>
  /** Cancels the running turn, and those of the prompts that wait behind it. */
  readonly cancel: Effect.Effect<void>
  /** Says a sentence to the person. */
  readonly say: (sentence: string) => Effect.Effect<void>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Sends the past if the editor has none of it, and nothing more until the session is begun. */
export const open = (
  live: ShownSession,
  editor: Editor,
  past: "all" | "nothing"
): Effect.Effect<AcpSession, AcpConnection.ProtocolError> =>
  Effect.gen(function* () {
    const { agent, workspace } = live
    const { client, shows } = editor
    const ids = yield* Id.IdGenerator
    const { next, past: before } = yield* Effect.mapError(live.read, ({ message }) => AcpConnection.refused(message))

    let state = AcpUpdate.empty
    /** The turn of the root that runs. */
    let turn: CorrelationId | undefined
    /** Those without an answer, oldest first. */
    let prompts: ReadonlyArray<Prompt> = []
    /** Completed by the writer when it has announced a call, read by questions about the call. */
    const announcements = new Map<ToolCallId, Deferred.Deferred<void>>()
    const writing = yield* Effect.makeSemaphore(1)

    const { toolOf } = live
    const modeOption = Effect.map(agent.permissions.status, ({ mode }): AcpConnection.SessionConfigOption => ({
      type: "select",
      id: "mode",
      name: "Mode",
      category: "mode",
      currentValue: mode,
      options: modes.map((value) => ({ value, name: value, description: modeWords[value] }))
    }))
    const modelOption = Effect.map(agent.model, ({ id }): AcpConnection.SessionConfigOption => ({
      type: "select",
      id: "model",
      name: "Model",
      category: "model",
      currentValue: id,
      options: [...new Set([id, ...live.models])].map((value) => ({ value, name: value }))
    }))
    let thinking: Thinking = "default"
    const thinkingOption = Effect.map(agent.model, ({ id }): ReadonlyArray<AcpConnection.SessionConfigOption> =>
      !takesThinking(id)
        ? []
        : [
            {
              type: "select",
              id: "thinking",
              name: "Thinking",
              category: "thought_level",
              currentValue: thinking,
              options: efforts.map((value) => ({ value, name: value }))
            }
          ]
    )
    const options = Effect.map(Effect.all([modeOption, modelOption, thinkingOption]), ([mode, model, thinking]) => [
      mode,
      model,
      ...thinking
    ])
    const setModel = (model: string, effort: Thinking) =>
      Effect.mapError(live.setModel(model, effort === "default" ? undefined : effort), ({ message }) =>
        AcpConnection.invalid(message)
      )
    /** What is set about the session, by option. */
    const setters: { readonly [id: string]: (value: unknown) => Effect.Effect<void, AcpConnection.ProtocolError> } = {
      mode: (value) => {
        const mode = modes.find((one) => one === value)
        return mode === undefined
          ? Effect.fail(AcpConnection.invalid(`The mode is one of ${modes.join(", ")}.`))
          : Effect.mapError(agent.permissions.setMode(mode, { by: editor.principal }), ({ message }) =>
              AcpConnection.refused(message)
            )
      },
      model: (value) =>
        typeof value === "string"
          ? setModel(value, takesThinking(value) ? thinking : "default")
          : Effect.fail(AcpConnection.invalid("The model is a text.")),
      thinking: (value) => {
        const effort = efforts.find((one) => one === value)
        if (effort === undefined) return Effect.fail(AcpConnection.invalid(`Thinking is one of ${efforts.join(", ")}.`))
        return Effect.flatMap(agent.model, ({ id }) =>
          Effect.map(setModel(id, effort), () => {
            thinking = effort
          })
        )
      }
    }

    const send = (updates: ReadonlyArray<AcpConnection.SessionUpdate>) =>
      Effect.forEach(updates, (update) => client.notify("session/update", { sessionId: live.id, update }), {
        discard: true
      })

    /** Whether this editor has sent the words of an event; notes to which turn they belong. */
    const claim = (event: AgentEvent): boolean => {
      if (event._tag === "UserInterjected") {
        const prompt = prompts.find(({ messageId }) => messageId === event.messageId)
        if (prompt !== undefined) prompt.turn = turn
        return prompt !== undefined
      }
      if (event._tag !== "TurnStarted" || event.sessionId !== live.id) return false
      turn = event.correlationId
      const waiting = prompts.filter((prompt) => prompt.turn === undefined)
      // Secrets are masked in the event, so its words may differ from those that were sent.
      const prompt = waiting.find(({ words }) => words === event.input.trim()) ?? waiting[0]
      if (prompt !== undefined) prompt.turn = turn
      return prompt !== undefined
    }

    /** What became of prompts, once the editor has all that came before. */
    const settle = (event: AgentEvent): Effect.Effect<unknown> => {
      if (event.sessionId !== live.id) return Effect.void
      if (event._tag === "TurnStarted" && prompts.some((prompt) => prompt.isCancelled && prompt.turn === turn))
        return Effect.fork(agent.cancel("user"))
      if (event._tag !== "TurnEnded") return Effect.void
      turn = undefined
      return Effect.forEach(
        prompts.filter((prompt) => prompt.turn !== undefined && prompt.turn === event.correlationId),
        (prompt) => Deferred.succeed(prompt.end, event)
      )
    }

    const write = (event: AgentEvent, isReplay: boolean): Effect.Effect<void> =>
      writing.withPermits(1)(
        Effect.gen(function* () {
          const isOwn = claim(event)
          const { cost } = agent.ledger.totals()
          const [next, updates] = AcpUpdate.step(state, event, {
            root: live.id,
            workspace,
            toolOf,
            shows,
            isReplay,
            isOwn,
            options: event._tag === "PermissionStatusChanged" ? yield* options : [],
            cost: cost === undefined ? undefined : { amount: cost, currency: agent.ledger.currency ?? "USD" }
          })
          state = next
          yield* send(updates)
          if ("toolCallId" in event && event.toolCallId !== undefined) {
            const announced = announcements.get(event.toolCallId)
            if (announced !== undefined) yield* Deferred.succeed(announced, undefined)
          }
          if (!isReplay) yield* settle(event)
        })
      )

    const flush = writing.withPermits(1)(
      Effect.suspend(() => {
        const [next, updates] = AcpUpdate.flush(state)
        state = next
        return send(updates)
      })
    )

    const sendCommands = (prompts: ReadonlyArray<ServerPrompts.Command>) =>
      send([
        {
          sessionUpdate: "available_commands_update",
          availableCommands: [
            ...availableCommands,
            ...prompts.map((prompt) => ({
              name: prompt.name,
              description: prompt.description === "" ? "A prompt of a tool server" : prompt.description,
              ...(prompt.parameters.length === 0 ? {} : { input: { hint: visible(ServerPrompts.hint(prompt)) } })
            }))
          ]
        }
      ])

    const say = (sentence: string) =>
      writing.withPermits(1)(
        send([
          shows.notices
            ? { sessionUpdate: "notice", severity: "info", title: visible(sentence) }
            : { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${visible(sentence)}\n` } }
        ])
      )

    const follow = Stream.runForEach(next, (event) => write(event, false)).pipe(
      Effect.catchAll(({ message }) => say(message))
    )

    /** A call is announced before somebody is asked about it. */
    const beforeAsking = (toolCallId: ToolCallId | undefined): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (toolCallId === undefined || AcpUpdate.isAnnounced(state, toolCallId)) return Effect.void
        const announced = announcements.get(toolCallId) ?? Deferred.unsafeMake<void>(FiberId.none)
        announcements.set(toolCallId, announced)
        return Deferred.await(announced).pipe(
          Effect.timeoutOption("1 second"),
          Effect.ensuring(Effect.sync(() => announcements.delete(toolCallId)))
        )
      })

    const interactor = AcpInteractor.make({
      client,
      sessionId: live.id,
      has: editor.has,
      around: { root: live.id, workspace, toolOf },
      beforeAsking,
      say,
      principal: editor.principal
    })

    const command = ({ argument, name }: Command): Effect.Effect<string> => {
      switch (name) {
        case "permissions":
          return Effect.map(
            agent.permissions(argument, { by: editor.principal }),
            Either.match({ onLeft: (reason) => reason, onRight: ({ lines }) => lines.join("\n") })
          )
        case "cost":
          return Effect.sync(() => TokenLedger.lines(agent.ledger).join("\n"))
        case "agents":
          return Effect.map(agent.agents, (agents) => agents.map(({ origin }) => origin.agent).join("\n"))
        case "compact":
          return Effect.match(agent.compact, {
            onFailure: ({ message }) => message,
            onSuccess: ({ removed }) =>
              removed > 0 ? "The conversation is shorter now." : "There is nothing to shorten."
          })
      }
    }

    /** Text in place of an answer of the agent. */
    const reply = (text: string) =>
      Effect.as(
        writing.withPermits(1)(
          send([{ sessionUpdate: "agent_message_chunk", content: { type: "text", text: visible(text) } }])
        ),
        { stopReason: "end_turn" as const }
      )

    const run = (input: Input.Input): Effect.Effect<AcpConnection.PromptResponse, AcpConnection.ProtocolError> =>
      Effect.suspend(() => {
        const isSteering = prompts.length > 0
        const id = Id.message(ids)
        const prompt = new Prompt(Input.wordsOf(input).trim(), isSteering ? id : undefined)
        prompts = [...prompts, prompt]
        const taken = isSteering ? Effect.asVoid(agent.send(input, { id })) : Effect.asVoid(live.run(input))
        return Effect.mapError(taken, ({ message }) => AcpConnection.invalid(message)).pipe(
          Effect.zipRight(Effect.raceFirst(Deferred.await(prompt.end), Effect.as(live.closed, undefined))),
          Effect.flatMap(answerTo),
          Effect.ensuring(Effect.sync(() => (prompts = prompts.filter((one) => one !== prompt))))
        )
      })

    if (past === "all") yield* Effect.forEach(before, (event) => write(event, true), { discard: true })
    else for (const event of before) claim(event)
    if (before.findLast(({ _tag, sessionId }) => sessionId === live.id && turnTags.has(_tag))?._tag === "TurnEnded")
      turn = undefined

    return {
      live,
      begin: Effect.gen(function* () {
        yield* Effect.forkScoped(follow)
        yield* Effect.forkScoped(Effect.repeat(flush, Schedule.spaced("250 millis")))
        yield* sendCommands([])
        if (live.prompts !== undefined)
          yield* Effect.forkScoped(
            Stream.runForEach(
              Stream.dropWhile(live.prompts.commands, (commands) => commands.length === 0),
              sendCommands
            )
          )
        yield* live.attach(interactor)
      }),
      options,
      setOption: (id, value) => {
        const set = Object.hasOwn(setters, id) ? setters[id] : undefined
        return set === undefined
          ? Effect.fail(AcpConnection.invalid(`There is no option ${JSON.stringify(id.slice(0, 200))}.`))
          : Effect.zipRight(set(value), options)
      },
      prompt: (input) => {
        const words = Input.wordsOf(input)
        if (live.prompts !== undefined && ServerPrompts.isLine(words)) {
          const files = typeof input === "string" ? [] : input.filter((part) => Input.wordsIn(part) === undefined)
          return Effect.matchEffect(live.prompts.words(words), {
            onFailure: reply,
            onSuccess: (text) => Effect.zipRight(reply(text), run([text, ...files]))
          })
        }
        const given = commandIn(words)
        if (given === undefined) return run(input)
        return Effect.flatMap(command(given), reply)
      },
      cancel: Effect.suspend(() => {
        for (const prompt of prompts) prompt.isCancelled = true
        return Effect.asVoid(agent.cancel("user"))
      }),
      say
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type TurnEnded = Extract<AgentEvent, { readonly _tag: "TurnEnded" }>

/** Words of the editor that wait for the end of their turn. The writer completes `end`, the handler of the prompt reads it. */
class Prompt {
  readonly end = Deferred.unsafeMake<TurnEnded>(FiberId.none)
  /** The turn that reads them, once it is known. */
  turn: CorrelationId | undefined
  isCancelled = false
  constructor(
    readonly words: string,
    /** Present when they were sent into a running turn. */
    readonly messageId: string | undefined
  ) {}
}

/** The answer to the prompts of a turn. No end means that the session was closed. */
const answerTo = (
  end: TurnEnded | undefined
): Effect.Effect<AcpConnection.PromptResponse, AcpConnection.ProtocolError> => {
  switch (end?.reason) {
    case "completed":
    case "halted":
    case "denied":
      return Effect.succeed({ stopReason: "end_turn" })
    case "turn_limit":
      return Effect.succeed({ stopReason: "max_turn_requests" })
    case "failed":
      return Effect.fail(AcpConnection.refused(end.detail ?? "The turn failed."))
    default:
      return Effect.succeed({ stopReason: "cancelled" })
  }
}

const turnTags: ReadonlySet<AgentEvent["_tag"]> = new Set<AgentEvent["_tag"]>(["TurnStarted", "TurnEnded"])

const efforts = ["default", "low", "medium", "high"] as const

type Thinking = (typeof efforts)[number]

const takesThinking = (model: string): boolean => ThinkingSetting.problem(model, { effort: "medium" }) === undefined

const modeWords = {
  ask: "Asks about calls that no rule decides.",
  plan: "Reads and plans, and changes nothing.",
  deny: "Denies calls that no rule decides.",
  allow: "Allows calls that no rule decides."
} as const

const availableCommands = [
  { name: "permissions", description: "Show and change what the agent may do", input: { hint: "show" } },
  { name: "cost", description: "Show tokens and cost" },
  { name: "agents", description: "List the agents at work" },
  { name: "compact", description: "Shorten the conversation" }
] as const

interface Command {
  readonly name: (typeof availableCommands)[number]["name"]
  readonly argument: string
}

/** The command that a prompt is; nothing for words to the agent. */
const commandIn = (words: string): Command | undefined => {
  const [, name, argument = ""] = /^\/([a-z]+)(?:\s+([^]*))?$/.exec(words.trim()) ?? []
  const known = availableCommands.find((one) => one.name === name)
  return known === undefined ? undefined : { name: known.name, argument: argument.trim() }
}
