/**
 * Agents of others as models: a command that speaks the Agent Client Protocol. Its text is the reply, and what it asks
 * leave for is a proposed call, which our gate, people, budget and audit decide about.
 *
 * ```
 *   words ─► session/prompt ─► the agent works ─► it asks leave ─► a step ends with a proposed call
 *                                   ▲                                     │ gate
 *                                   ├── allow_once, and its result ◄──────┤ allowed: the handler
 *                                   └── reject_once ◄─────────────────────┘ refused: the next step
 * ```
 *
 * The gate cannot stop what an agent does without asking. The reply names such a call, and the journal has it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Command from "@effect/platform/Command"
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as CommandEnvironment from "../builtin/CommandEnvironment.js"
import * as Id from "../core/Id.js"
import { visible } from "../core/Visible.js"
import * as Form from "../interaction/Form.js"
import { Elicit } from "../interaction/Interaction.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import { BadOutput, type ModelError, Unreachable } from "../model/ModelError.js"
import * as AcpConnection from "./AcpConnection.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Options of the agents of others of one workspace. */
export interface Options {
  /** Absolute. */
  readonly workspace: string
  /** Names of further variables that they get, and of variables that they never get. */
  readonly passedVariables?: ReadonlyArray<string> | undefined
  readonly withheldVariables?: ReadonlyArray<string> | undefined
}

export interface ForeignAgents {
  /** The agent that a command line starts, as a model. It is started with the first words, and ends with the scope. */
  readonly model: (command: string) => Model.Service
  /** Lets an agent go on that asked by this call. Yields what it says of the call. */
  readonly goOn: (toolCallId: string | undefined) => Effect.Effect<string, string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Agents end with the scope, their processes too. */
export const make = (
  options: Options
): Effect.Effect<ForeignAgents, never, CommandExecutor.CommandExecutor | Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const executor = yield* CommandExecutor.CommandExecutor
    const ids = yield* Id.IdGenerator
    const environment = yield* CommandEnvironment.make({
      passed: options.passedVariables,
      withheld: options.withheldVariables
    })
    const visits = new Map<string, Visit>()
    /** What was asked for, by the call that it became. */
    const asked = new Map<string, { readonly visit: Visit; readonly leave: Leave }>()

    const visitOf = (command: string, sessionId: string) =>
      Effect.gen(function* () {
        const key = `${sessionId}\n${command}`
        const known = visits.get(key)
        if (known !== undefined && !known.isGone) return known
        const visit = yield* begin({ command, environment, executor, scope, workspace: options.workspace })
        visits.set(key, visit)
        return visit
      })

    const model = (command: string): Model.Service => {
      const id = `command:${command}`
      const failure = (message: string): ModelError => new Unreachable({ model: id, message })
      return {
        id,
        stream: ({ prompt, sessionId }) =>
          Stream.unwrap(
            Effect.gen(function* () {
              const visit = yield* Effect.mapError(visitOf(command, sessionId), failure)
              visit.world = yield* Effect.runtime<never>()
              const said = inputOf(prompt)
              // A call with a result that its handler did not run was refused.
              for (const [toolCallId, { leave, visit: owner }] of asked)
                if (owner === visit && said.results.has(toolCallId)) {
                  asked.delete(toolCallId)
                  yield* leave.refuse
                }
              yield* visit.say(said.words)
              return replyOf(visit, id, (leave) => {
                const toolCallId = ids.unsafeNext("call")
                asked.set(toolCallId, { visit, leave })
                return toolCallId
              })
            })
          )
      }
    }

    return {
      model,
      goOn: (toolCallId = "") =>
        Effect.suspend(() => {
          const found = asked.get(toolCallId)
          if (found === undefined) return Effect.fail("No agent of others asked for this call.")
          asked.delete(toolCallId)
          return found.leave.allow.pipe(Effect.onInterrupt(() => found.visit.cancel))
        })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What an agent does, in its order. The connection writes it, a step reads it; the process that ends says so last. */
type Item =
  | { readonly _tag: "Said"; readonly kind: "text" | "thought"; readonly text: string }
  | { readonly _tag: "Asked"; readonly leave: Leave }
  | { readonly _tag: "Ended"; readonly stopReason: AcpConnection.StopReason }
  | { readonly _tag: "Failed"; readonly reason: string }

/** Leave that an agent asked for. */
interface Leave {
  readonly tool: "foreign_execute" | "foreign_edit" | "foreign_act"
  readonly params: unknown
  /** Lets it go on, this once, and waits for the end of its call. */
  readonly allow: Effect.Effect<string, string>
  readonly refuse: Effect.Effect<void>
}

/** A call of the agent's own, as far as the agent has described it. */
interface Told {
  readonly title: string
  readonly kind: string
  readonly rawInput: unknown
  readonly locations: ReadonlyArray<string>
  readonly content: ReadonlyArray<AcpConnection.ToolCallContent>
  readonly ended: Deferred.Deferred<string, string>
  isAsked: boolean
}

/** One session at one agent. */
interface Visit {
  /** Its process has ended. */
  isGone: boolean
  /** The turn that it works for: who is asked what it asks. */
  world: Runtime.Runtime<never>
  readonly items: Queue.Queue<Item>
  /** Begins a turn there with these words, unless one runs and there are none. */
  readonly say: (words: string) => Effect.Effect<void>
  readonly cancel: Effect.Effect<void>
}

interface Start {
  readonly command: string
  readonly environment: CommandEnvironment.Environment
  readonly executor: CommandExecutor.CommandExecutor
  readonly scope: Scope.Scope
  readonly workspace: string
}

/** Characters of what an agent says of a call. */
const longest = 50_000

/** What an agent may send that no step has read: characters, and calls that have not ended. */
const most = { characters: 10_000_000, calls: 10_000 }

const begin = ({ command, environment, executor, scope, workspace }: Start): Effect.Effect<Visit, string> =>
  Effect.gen(function* () {
    const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
    const child = yield* Command.make("/bin/sh", "-c", `exec ${command}`).pipe(
      Command.workingDirectory(workspace),
      Command.env(environment, { extendEnv: false }),
      executor.start,
      Scope.extend(own),
      Effect.mapError(({ message }) => `${named(command)} does not start: ${message}`)
    )
    const items = yield* Queue.unbounded<Item>()
    const calls = new Map<string, Told>()
    let isBusy = false
    /** Completed when the agent asks for leave once more. */
    let another = yield* Deferred.make<void>()
    const flooded = yield* Deferred.make<string>()
    /** Characters since a step had read all. */
    let unread = 0
    const say = (kind: "text" | "thought", text: string): void => {
      if (Option.contains(items.unsafeSize(), 0)) unread = 0
      unread += text.length
      if (unread > most.characters) return flood("10 MB of text that nobody read")
      Queue.unsafeOffer(items, { _tag: "Said", kind, text })
    }
    const flood = (what: string): void =>
      Deferred.unsafeDone(flooded, Exit.succeed(`sent more than ${what}. Its process was ended`))

    const toldOf = (update: AcpConnection.ToolCallUpdate): Told => {
      const known = calls.get(update.toolCallId)
      const told: Told = {
        title: update.title ?? known?.title ?? "",
        kind: update.kind ?? known?.kind ?? "other",
        rawInput: update.rawInput ?? known?.rawInput,
        locations: update.locations?.map(({ path }) => path) ?? known?.locations ?? [],
        content: update.content ?? known?.content ?? [],
        ended: known?.ended ?? Deferred.unsafeMake(FiberId.none),
        isAsked: known?.isAsked ?? false
      }
      calls.set(update.toolCallId, told)
      if (calls.size > most.calls) flood(`${most.calls} calls at once`)
      return told
    }

    const update = ({ update }: AcpConnection.SessionNotification): void => {
      switch (update.sessionUpdate) {
        case "agent_message_chunk":
        case "agent_thought_chunk": {
          const kind = update.sessionUpdate === "agent_message_chunk" ? "text" : "thought"
          const { content } = update
          if (content.type === "text") say(kind, content.text)
          return
        }
        case "tool_call":
        case "tool_call_update": {
          const told = toldOf(update)
          if (update.status === "in_progress" && !told.isAsked) {
            told.isAsked = true
            say("text", `\n[${named(command)}, without asking: ${visible(told.title).slice(0, 300)}]\n`)
          }
          if (update.status === "completed") Deferred.unsafeDone(told.ended, Exit.succeed(textOf(told)))
          if (update.status === "failed") Deferred.unsafeDone(told.ended, Exit.fail(textOf(told)))
          if (update.status === "completed" || update.status === "failed") calls.delete(update.toolCallId)
          return
        }
        default:
          return
      }
    }

    const permission = ({ options, toolCall }: AcpConnection.RequestPermissionRequest) =>
      Effect.gen(function* () {
        const told = toldOf(toolCall)
        told.isAsked = true
        const answer = yield* Deferred.make<AcpConnection.RequestPermissionResponse>()
        const choose = (kind: AcpConnection.PermissionOption["kind"]) => {
          const option = options.find((option) => option.kind === kind)
          return Deferred.succeed(answer, {
            outcome:
              option === undefined
                ? { outcome: "cancelled" as const }
                : { outcome: "selected" as const, optionId: option.optionId }
          })
        }
        yield* Deferred.succeed(another, undefined)
        const next = (another = yield* Deferred.make<void>())
        const { params, tool } = callOf(told)
        const leave: Leave = {
          tool,
          params,
          // It may wait for leave for another call before this one ends.
          allow: Effect.zipRight(
            choose("allow_once"),
            Effect.raceFirst(
              Deferred.await(told.ended),
              Effect.as(Deferred.await(next), "It goes on beside other calls.")
            )
          ),
          refuse: Effect.asVoid(choose("reject_once"))
        }
        yield* Queue.offer(items, { _tag: "Asked", leave })
        return yield* Deferred.await(answer)
      })

    const elicitation = (request: AcpConnection.CreateElicitationRequest) =>
      Effect.suspend((): Effect.Effect<AcpConnection.CreateElicitationResponse> => {
        const fields = request.mode === "form" ? Form.readSchema(request["requestedSchema"]) : Either.left("")
        if (Either.isLeft(fields)) return Effect.succeed({ action: "decline" })
        const title = `${named(command)} asks: ${visible(request.message)}`
        const asking = Interactor.ask(new Elicit({ title, fields: fields.right })).pipe(
          Effect.match({
            onFailure: (error): AcpConnection.CreateElicitationResponse => ({
              action: error._tag === "InteractionCancelled" ? "decline" : "cancel"
            }),
            onSuccess: (content): AcpConnection.CreateElicitationResponse => ({
              action: "accept",
              content: Object.fromEntries(
                Object.entries(content).map(([name, value]) => [name, typeof value === "object" ? [...value] : value])
              )
            })
          })
        )
        // Asked of the people of the turn that it works for.
        return Effect.promise((signal) =>
          Runtime.runPromise(visit.world as Runtime.Runtime<Interactor.Interactor>)(asking, { signal })
        )
      })

    const toAgent = new TransformStream<Uint8Array, Uint8Array>()
    yield* Stream.fromReadableStream({ evaluate: () => toAgent.readable, onError: String }).pipe(
      Stream.run(child.stdin),
      Effect.ignore,
      Effect.forkIn(own)
    )
    const agent = yield* AcpConnection.connect(
      { input: Stream.toReadableStream(child.stdout), output: toAgent.writable },
      { permission, elicitation, update }
    ).pipe(Scope.extend(own))
    yield* Effect.forkIn(Stream.runDrain(child.stderr).pipe(Effect.ignore), own)
    const failed = ({ message }: AcpConnection.ProtocolError) =>
      `${named(command)}: ${visible(message).slice(0, 1_000)}`
    const opened = Effect.gen(function* () {
      yield* agent.request("initialize", {
        protocolVersion: 1,
        clientInfo: { name: "assent", version: "1" },
        clientCapabilities: { elicitation: { form: {} } }
      })
      return yield* agent.request("session/new", { cwd: workspace, mcpServers: [] })
    }).pipe(
      Effect.mapError(failed),
      Effect.timeoutFail({ duration: "60 seconds", onTimeout: () => `${named(command)} does not answer.` }),
      Effect.tapError(() => Scope.close(own, Exit.void))
    )
    const { sessionId } = yield* opened

    /** The end of its turn, once. */
    const end = (item: Item, why: string) =>
      Effect.suspend(() => {
        if (!isBusy) return Effect.void
        isBusy = false
        for (const { ended } of calls.values()) Deferred.unsafeDone(ended, Exit.fail(why))
        calls.clear()
        return Queue.offer(items, item)
      })

    const visit: Visit = {
      isGone: false,
      world: yield* Effect.runtime<never>(),
      items,
      say: (words) =>
        Effect.gen(function* () {
          if (isBusy && words === "") return
          // Words into a running turn of others: it is cancelled, and the next one begins with them.
          if (isBusy) yield* agent.cancel(sessionId)
          while (isBusy || (yield* Queue.size(items)) > 0) {
            const item = yield* Queue.take(items)
            if (item._tag === "Asked") yield* item.leave.refuse
          }
          isBusy = true
          const prompt = [{ type: "text" as const, text: words === "" ? "Go on." : words }]
          yield* agent.request("session/prompt", { sessionId, prompt }).pipe(
            Effect.match({
              onFailure: (error): Item => ({ _tag: "Failed", reason: failed(error) }),
              onSuccess: ({ stopReason }): Item => ({ _tag: "Ended", stopReason })
            }),
            Effect.flatMap((item) => end(item, "The agent ended its turn.")),
            Effect.forkIn(own)
          )
        }),
      cancel: agent.cancel(sessionId)
    }
    yield* Effect.raceFirst(Effect.as(agent.closed, "has ended"), Deferred.await(flooded)).pipe(
      Effect.flatMap((why) => {
        visit.isGone = true
        const reason = `${named(command)} ${why}.`
        return end({ _tag: "Failed", reason }, `${reason} Whether the call took effect is not known.`)
      }),
      Effect.zipRight(Scope.close(own, Exit.void)),
      Effect.forkIn(scope)
    )
    return visit
  })

/** One step: what the agent says until it asks for leave, or ends its turn. */
const replyOf = (
  visit: Visit,
  id: string,
  propose: (leave: Leave) => string
): Stream.Stream<Model.Part, ModelError> => {
  let block: "text" | "thought" | undefined
  let count = 0
  const closed = (): ReadonlyArray<Model.Part> => {
    const last = block
    block = undefined
    if (last === undefined) return []
    return [last === "text" ? { type: "text-end", id: String(count) } : { type: "reasoning-end", id: String(count) }]
  }
  const finish = (reason: "stop" | "tool-calls" | "length"): Model.Part => ({
    type: "finish",
    reason,
    usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
  })
  const partsOf = (item: Item): Either.Either<ReadonlyArray<Model.Part>, ModelError> => {
    switch (item._tag) {
      case "Said": {
        const begun: Array<Model.Part> = []
        if (block !== item.kind) {
          begun.push(...closed())
          block = item.kind
          count++
          begun.push(
            item.kind === "text"
              ? { type: "text-start", id: String(count) }
              : { type: "reasoning-start", id: String(count) }
          )
        }
        const delta = { id: String(count), delta: item.text }
        begun.push(item.kind === "text" ? { type: "text-delta", ...delta } : { type: "reasoning-delta", ...delta })
        return Either.right(begun)
      }
      case "Asked": {
        const { params, tool } = item.leave
        const call: Model.Part = { type: "tool-call", id: propose(item.leave), name: tool, params }
        return Either.right([...closed(), call, finish("tool-calls")])
      }
      case "Ended":
        if (item.stopReason === "refusal")
          return Either.left(new BadOutput({ model: id, message: "The agent refused to go on." }))
        return Either.right([...closed(), finish(item.stopReason === "max_tokens" ? "length" : "stop")])
      case "Failed":
        return Either.left(new Unreachable({ model: id, message: item.reason }))
    }
  }
  return Stream.repeatEffect(Queue.take(visit.items)).pipe(
    Stream.mapEffect((item) => partsOf(item)),
    Stream.takeUntil((parts) => parts.some(({ type }) => type === "finish")),
    Stream.mapConcat((parts) => parts),
    // An interrupted step is a cancelled turn, also there.
    Stream.ensuringWith((exit) => (Exit.isInterrupted(exit) ? visit.cancel : Effect.void))
  )
}

/** The words of people since the last reply, and the calls that have results. */
const inputOf = (prompt: Prompt.Prompt): { readonly words: string; readonly results: ReadonlySet<string> } => {
  const last = prompt.content.findLastIndex(({ role }) => role === "assistant")
  const results = new Set<string>()
  const words: Array<string> = []
  for (const message of prompt.content.slice(last + 1)) {
    if (message.role === "tool") for (const part of message.content) results.add(part.id)
    if (message.role === "user") for (const part of message.content) if (part.type === "text") words.push(part.text)
  }
  return { words: words.join("\n\n"), results }
}

/** What an agent asks, as a call that the gate understands. A rule that allows it takes the agent at its word. */
const callOf = ({ content, kind, locations, rawInput, title }: Told): Pick<Leave, "params" | "tool"> => {
  const shown = title === "" ? {} : { title: title.slice(0, 500) }
  const command =
    typeof rawInput === "object" && rawInput !== null && "command" in rawInput ? rawInput.command : undefined
  if (kind === "execute" && typeof command === "string" && command.trim() !== "")
    return { tool: "foreign_execute", params: { command } }
  const [path, ...others] = [...new Set(locations)]
  if ((kind === "edit" || kind === "delete" || kind === "move") && path !== undefined && others.length === 0) {
    const diff = content.find((one) => one.type === "diff" && one.path === path)
    const change =
      diff?.type !== "diff"
        ? {}
        : { after: diff.newText, ...(typeof diff.oldText === "string" ? { before: diff.oldText } : {}) }
    return { tool: "foreign_edit", params: { path, ...shown, ...change } }
  }
  return { tool: "foreign_act", params: { title: title.slice(0, 500), kind, input: rawInput ?? null } }
}

const textOf = ({ content }: Told): string => {
  const text = content
    .flatMap((one) => (one.type === "content" && one.content.type === "text" ? [one.content.text] : []))
    .join("\n")
  return text === "" ? "Done." : text.slice(0, longest)
}

/** The program of a command line, for people. */
const named = (command: string): string => command.trim().split(/\s+/)[0]?.split("/").at(-1) ?? "the agent"
