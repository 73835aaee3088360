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
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Function from "effect/Function"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as CommandEnvironment from "../builtin/CommandEnvironment.js"
import * as DeniedFiles from "../builtin/DeniedFiles.js"
import * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ForeignText from "../core/ForeignText.js"
import * as Id from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import { visible } from "../core/Visible.js"
import * as ForeignForm from "../interaction/ForeignForm.js"
import { Elicit } from "../interaction/Interaction.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Model from "../model/ModelPort.js"
import { BadOutput, type ModelError, Unreachable } from "../model/ModelError.js"
import * as HostSandbox from "../sandbox/HostSandbox.js"
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
  /** The sandbox of the agent that a command line starts. Default: none confines it. */
  readonly confines?: ((command: string) => Confined | undefined) | undefined
  /** Looks at the files of an agent each time before it starts. A failure says why the agent does not start. */
  readonly admit?: ((command: string) => Effect.Effect<void, string>) | undefined
}

/** A sandbox for one agent. */
export type Confined = HostSandbox.Options & {
  readonly network: boolean
  /** Globs from the workspace's root, as in `blacklist.paths`. */
  readonly deniedPaths?: ReadonlyArray<string> | undefined
}

/** What starting agents needs. */
export type Platform = CommandExecutor.CommandExecutor | FileSystem.FileSystem | Path.Path

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
export const make = (options: Options): Effect.Effect<ForeignAgents, never, Platform | Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const platform = yield* Effect.context<Platform>()
    const ids = yield* Id.IdGenerator
    const environment = yield* CommandEnvironment.make({
      passed: options.passedVariables,
      withheld: options.withheldVariables
    })
    const visits = new Map<string, Visit>()
    /** What was asked for, by the call that it became. */
    const asked = new Map<string, { readonly visit: Visit; readonly leave: Leave }>()

    /** `isLater`: something was said before. */
    const visitOf = (command: string, sessionId: string, isLater: boolean) =>
      Effect.gen(function* () {
        const key = `${sessionId}\n${command}`
        const known = visits.get(key)
        if (known !== undefined && !known.isGone) return known
        const before = known?.resumes === true ? known.id : undefined
        const { admit, confines, workspace } = options
        if (admit !== undefined) yield* Effect.mapError(admit(command), (reason) => `${named(command)} ${reason}.`)
        const visit = yield* begin({
          before,
          command,
          confined: confines?.(command),
          environment,
          scope,
          workspace
        }).pipe(Effect.provide(platform))
        visit.hasForgotten = (known !== undefined || isLater) && visit.id !== before
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
              const said = inputOf(prompt)
              const visit = yield* Effect.mapError(visitOf(command, sessionId, said.isLater), failure)
              visit.world = yield* Effect.runtime<never>()
              // A call with a result that its handler did not run was refused.
              for (const [toolCallId, { leave, visit: owner }] of asked)
                if (owner === visit && said.results.has(toolCallId)) {
                  asked.delete(toolCallId)
                  yield* leave.refuse
                }
              yield* visit.say(said.words === "" && visit.hasForgotten ? `${again}\n\n${said.task}` : said.words)
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
          if (found === undefined) return Effect.fail("No agent waits for this call, so it was not made.")
          asked.delete(toolCallId)
          return found.leave.allow.pipe(Effect.onInterrupt(() => found.visit.cancel))
        })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Forms of one turn. */
const maxForms = 20
/** Characters of a question. */
const maxMessage = 2_000

/** What an agent does, in its order. The connection writes it, a step reads it; the process that ends says so last. */
type Item =
  | { readonly _tag: "Said"; readonly kind: "text" | "thought"; readonly text: string }
  | { readonly _tag: "Asked"; readonly leave: Leave }
  | { readonly _tag: "Ended"; readonly stopReason: AcpConnection.StopReason; readonly spent: Spent }
  | { readonly _tag: "Failed"; readonly reason: string }

/** What an agent says that its turn took. */
interface Spent {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cached: number | undefined
  /** In US dollars. */
  readonly cost: number | undefined
}

/** Leave that an agent asked for. */
interface Leave {
  readonly tool: "foreign_execute" | "foreign_edit" | "foreign_act"
  readonly params: unknown
  /** Lets it go on, this once, and waits for the end of its call. */
  readonly allow: Effect.Effect<string, string>
  readonly refuse: Effect.Effect<void>
}

/** A call of the agent's own, as far as the agent has described it. */
interface OwnCall {
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
  /** The agent's own id of the session. */
  readonly id: string
  /** A later process of the agent goes on with the session. */
  readonly resumes: boolean
  /** The person has yet to hear that it knows nothing of an earlier process. */
  hasForgotten: boolean
  /** Its process has ended. */
  isGone: boolean
  /** The turn that it works for: who is asked what it asks. */
  world: Runtime.Runtime<never>
  /** Forms of the running turn. */
  forms: number
  readonly items: Queue.Queue<Item>
  /** Begins a turn there with these words. Without words, only if all of the last turn was read. */
  readonly say: (words: string) => Effect.Effect<void>
  readonly cancel: Effect.Effect<void>
}

interface Start {
  /** A session of an earlier process, to go on with. */
  readonly before: string | undefined
  readonly command: string
  readonly confined: Confined | undefined
  readonly environment: CommandEnvironment.Environment
  readonly scope: Scope.Scope
  readonly workspace: string
}

/** Characters of what an agent says of a call. */
const longest = 50_000

/** What an agent may send that no step has read: characters, and calls that have not ended. */
const most = { characters: 10_000_000, calls: 10_000 }

/** The pipes of a process. */
interface Piped {
  readonly write: (bytes: Stream.Stream<Uint8Array, string>) => Effect.Effect<void>
  readonly output: Stream.Stream<Uint8Array, PlatformError>
  /** Of the process; none if a signal ended it. */
  readonly exitCode: Effect.Effect<Option.Option<number>>
}

const startOpen = ({ command, environment, workspace }: Start): Effect.Effect<Piped, string, Platform | Scope.Scope> =>
  Effect.gen(function* () {
    const executor = yield* CommandExecutor.CommandExecutor
    const child = yield* Command.make("/bin/sh", "-c", `exec ${command}`).pipe(
      Command.workingDirectory(workspace),
      Command.env(environment, { extendEnv: false }),
      executor.start
    )
    yield* Effect.forkScoped(Stream.runDrain(child.stderr).pipe(Effect.ignore))
    return {
      write: (bytes: Stream.Stream<Uint8Array, string>) => Effect.ignore(Stream.run(bytes, child.stdin)),
      output: child.stdout,
      exitCode: Effect.option(child.exitCode)
    }
  }).pipe(Effect.mapError(({ message }) => `${named(command)} does not start: ${message}`))

/** The sandbox gives a command no input, so the input comes through a pipe with a name that both sides share. */
const startConfined = (
  { command, environment, workspace }: Start,
  confined: Confined
): Effect.Effect<Piped, string, Platform | Scope.Scope> =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const executor = yield* CommandExecutor.CommandExecutor
    const sandbox = yield* HostSandbox.make(confined)
    const state = yield* sandbox.state
    if (state._tag === "Unconfined")
      return yield* Effect.fail({ message: `no sandbox confines it here: ${state.reason}` })
    const directory = yield* Effect.flatMap(
      fileSystem.makeTempDirectoryScoped({ prefix: "assent-agent-" }),
      fileSystem.realPath
    )
    yield* executor.exitCode(Command.make("mkfifo", "-m", "600", `${directory}/in`))
    const files = yield* WorkspaceRoot.make({ root: workspace, deniedPaths: confined.deniedPaths })
    const hidden = yield* Effect.mapError(
      Effect.flatMap(files.denied, (denied) => DeniedFiles.find(files, denied)),
      (message) => ({ message })
    )
    // A process of its own writes into the pipe, so that nothing here waits for an agent that does not read.
    const feeder = yield* executor.start(Command.make("/bin/sh", "-c", 'exec cat >"$0"', `${directory}/in`))
    const { ended, process: program } = yield* Effect.acquireRelease(
      sandbox.start({
        command: ["/bin/sh", "-c", 'exec /bin/sh -c "exec $1" <"$ASSENT_AGENT/in" 2>/dev/null', "sh", command],
        directory: workspace,
        environment,
        network: confined.network,
        hidden,
        shared: { directory, variables: (inside) => ({ ASSENT_AGENT: inside }) }
      }),
      ({ settle, stop }) => Effect.zipRight(stop ?? Effect.void, settle)
    ).pipe(Effect.mapError((message) => ({ message })))
    return {
      write: (bytes: Stream.Stream<Uint8Array, string>) => Effect.ignore(Stream.run(bytes, feeder.stdin)),
      output: program.stdout,
      exitCode: Effect.map(
        Effect.option(ended),
        Option.flatMapNullable(({ exitCode }) => exitCode)
      )
    }
  }).pipe(Effect.mapError(({ message }) => `${named(command)} does not start: ${message}`))

const begin = (start: Start): Effect.Effect<Visit, string, Platform> =>
  Effect.gen(function* () {
    const { before, command, confined, scope, workspace } = start
    const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
    const child = yield* (
      confined === undefined || confined.mode === "off" ? startOpen(start) : startConfined(start, confined)
    ).pipe(Scope.extend(own))
    const items = yield* Queue.unbounded<Item>()
    const bill = new Bill()
    const calls = new Map<string, OwnCall>()
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

    const toldOf = (update: AcpConnection.ToolCallUpdate): OwnCall => {
      const known = calls.get(update.toolCallId)
      const told: OwnCall = {
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
        case "usage_update":
          if (update.cost?.currency === "USD") bill.cost = update.cost.amount
          return
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
        const fields = request.mode === "form" ? ForeignForm.read(request["requestedSchema"]) : undefined
        // A flood of questions would be answered by habit.
        if (fields === undefined || ++visit.forms > maxForms) return Effect.succeed({ action: "decline" })
        const said = UntrustedJson.echo(ForeignText.clean(request.message), maxMessage)
        const asking = Interactor.ask(new Elicit({ title: `${named(command)} asks: ${said}`, fields })).pipe(
          Origin.asking(`the agent ${named(command)}`),
          // No other process has the agent that waits for the answer.
          Origin.once,
          Effect.match({
            onFailure: (error): AcpConnection.CreateElicitationResponse => ({
              // A question that ends with its turn is nobody's no.
              action: error._tag === "InteractionCancelled" && error.by !== undefined ? "decline" : "cancel"
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
    yield* child
      .write(Stream.fromReadableStream({ evaluate: () => toAgent.readable, onError: String }))
      .pipe(Effect.forkIn(own))
    const agent = yield* AcpConnection.connect(
      { input: Stream.toReadableStream(child.output), output: toAgent.writable },
      { permission, elicitation, update }
    ).pipe(Scope.extend(own))
    const failed = ({ message }: AcpConnection.ProtocolError) =>
      `${named(command)}: ${visible(message).slice(0, 1_000)}`
    /** Its exit code comes soon after the end of its output. */
    const code = Effect.timeoutTo(child.exitCode, {
      duration: "1 second",
      onSuccess: Function.identity,
      onTimeout: Option.none<number>
    })
    const notBegun = (error: AcpConnection.ProtocolError) =>
      Effect.gen(function* () {
        const found = error.message === AcpConnection.ended ? yield* code : Option.none<number>()
        if (Option.isNone(found)) return yield* Effect.fail(failed(error))
        return yield* Effect.fail(
          found.value === 127
            ? `${named(command)} does not start: there is no such program.`
            : `${named(command)} ended with exit code ${found.value} before its session began. Run it by hand to see why.`
        )
      })
    const opened = Effect.gen(function* () {
      const { agentCapabilities } = yield* agent.request("initialize", {
        protocolVersion: 1,
        clientInfo: { name: "assent", version: "1" },
        clientCapabilities: { elicitation: { form: {} } }
      })
      const resumes = agentCapabilities?.sessionCapabilities?.resume != null
      const resumed =
        before === undefined || !resumes
          ? Option.none()
          : yield* Effect.option(agent.request("session/resume", { sessionId: before, cwd: workspace, mcpServers: [] }))
      if (before !== undefined && Option.isSome(resumed)) return { sessionId: before, resumes }
      const { sessionId } = yield* agent.request("session/new", { cwd: workspace, mcpServers: [] })
      return { sessionId, resumes }
    }).pipe(
      Effect.catchAll(notBegun),
      Effect.timeoutFail({ duration: "60 seconds", onTimeout: () => `${named(command)} does not answer.` }),
      Effect.tapError(() => Scope.close(own, Exit.void))
    )
    const { resumes, sessionId } = yield* opened

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
      id: sessionId,
      resumes,
      hasForgotten: false,
      isGone: false,
      world: yield* Effect.runtime<never>(),
      forms: 0,
      items,
      say: (words) =>
        Effect.gen(function* () {
          // Its turn may have ended before our next step begins: that step reads the rest of it.
          if (words === "" && (isBusy || (yield* Queue.size(items)) > 0)) return
          visit.forms = 0
          // Words into a running turn of others: it is cancelled, and the next one begins with them.
          if (isBusy) yield* agent.cancel(sessionId)
          while (isBusy || (yield* Queue.size(items)) > 0) {
            const item = yield* Queue.take(items)
            if (item._tag === "Asked") yield* item.leave.refuse
          }
          isBusy = true
          if (visit.hasForgotten)
            say("text", `[${named(command)} has started again, and knows nothing of what was said before.]\n`)
          visit.hasForgotten = false
          const prompt = [{ type: "text" as const, text: words === "" ? "Go on." : words }]
          yield* agent.request("session/prompt", { sessionId, prompt }).pipe(
            Effect.match({
              onFailure: (error): Item => ({ _tag: "Failed", reason: failed(error) }),
              onSuccess: (response): Item => ({
                _tag: "Ended",
                stopReason: response.stopReason,
                spent: bill.turn("usage" in response ? response.usage : undefined)
              })
            }),
            Effect.flatMap((item) =>
              end(item, item._tag === "Failed" ? `${item.reason} ${unknownEffect}` : "The agent ended its turn.")
            ),
            Effect.forkIn(own)
          )
        }),
      cancel: agent.cancel(sessionId)
    }
    yield* Effect.raceFirst(Effect.as(agent.closed, "has ended"), Deferred.await(flooded)).pipe(
      Effect.flatMap((why) => {
        visit.isGone = true
        const reason = `${named(command)} ${why}.`
        return end({ _tag: "Failed", reason }, `${reason} ${unknownEffect}`)
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
  const finish = (reason: "stop" | "tool-calls" | "length", { cached, cost, input, output }: Spent): Model.Part => ({
    type: "finish",
    reason,
    usage: { inputTokens: input, outputTokens: output, totalTokens: undefined, cachedInputTokens: cached },
    ...(cost === undefined ? {} : { metadata: Model.costs(cost) })
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
        return Either.right([...closed(), call, finish("tool-calls", nothingYet)])
      }
      case "Ended":
        if (item.stopReason === "refusal")
          return Either.left(new BadOutput({ model: id, message: "The agent refused to go on." }))
        return Either.right([...closed(), finish(item.stopReason === "max_tokens" ? "length" : "stop", item.spent)])
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

/** A step of a turn that goes on: the agent says at its end what all of it took. */
const nothingYet: Spent = { input: 0, output: 0, cached: undefined, cost: undefined }

/** Sums of a session at an agent, as it says them. What a turn took is the growth since the turn before. */
class Bill {
  /** In US dollars. */
  cost: number | undefined
  private paid = 0
  private counted: Readonly<Record<string, number>> = {}

  turn(usage: unknown): Spent {
    const said = Option.getOrUndefined(decodeUsage(usage)) ?? {}
    const grown = (name: keyof typeof said) => {
      const sum = said[name] ?? undefined
      const before = this.counted[name] ?? 0
      if (sum === undefined) return undefined
      this.counted = { ...this.counted, [name]: sum }
      // Some agents say what the turn took alone.
      return sum >= before ? sum - before : sum
    }
    const { cost, paid } = this
    this.paid = Math.max(paid, cost ?? 0)
    return {
      input: grown("inputTokens"),
      output: grown("outputTokens"),
      cached: grown("cachedReadTokens"),
      cost: cost === undefined ? undefined : Math.max(0, cost - paid)
    }
  }
}

const count = Schema.optional(Schema.NullOr(Schema.NonNegativeInt))

const decodeUsage = Schema.decodeUnknownOption(
  Schema.Struct({ inputTokens: count, outputTokens: count, cachedReadTokens: count })
)

/** The words of people since the last reply and the calls that have results. */
const inputOf = (prompt: Prompt.Prompt): Input => {
  const last = prompt.content.findLastIndex(({ role }) => role === "assistant")
  const results = new Set<string>()
  const words: Array<string> = []
  for (const message of prompt.content.slice(last + 1)) {
    if (message.role === "tool") for (const part of message.content) results.add(part.id)
    if (message.role === "user") words.push(...textsOf(message))
  }
  const task = prompt.content.findLast((message) => message.role === "user")
  return {
    words: words.join("\n\n"),
    results,
    isLater: last >= 0,
    task: task === undefined ? "" : textsOf(task).join("\n\n")
  }
}

interface Input {
  readonly words: string
  readonly results: ReadonlySet<string>
  /** There is a reply. */
  readonly isLater: boolean
  /** The last words of people, read or not. */
  readonly task: string
}

const textsOf = ({ content }: Prompt.UserMessage): ReadonlyArray<string> =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : []))

/** To an agent that has forgotten its task. */
const again = "Your process ended in the middle of this task. Look at what is done already, then go on."

/** What an agent asks, as a call that the gate understands. A rule that allows it takes the agent at its word. */
const callOf = ({ content, kind, locations, rawInput, title }: OwnCall): Pick<Leave, "params" | "tool"> => {
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

const textOf = ({ content }: OwnCall): string => {
  const text = content
    .flatMap((one) => (one.type === "content" && one.content.type === "text" ? [one.content.text] : []))
    .join("\n")
  return text === "" ? "Done." : text.slice(0, longest)
}

const unknownEffect = "Whether the call took effect is not known."

/** The program of a command line, for people. */
const named = (command: string): string => command.trim().split(/\s+/)[0]?.split("/").at(-1) ?? "the agent"
