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
 * A description that changes while its question is open withdraws the question, and is asked about anew.
 *
 * The gate cannot stop what an agent does without asking. The reply names such an act, and the audit records it.
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
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as CommandEnvironment from "../builtin/CommandEnvironment.js"
import * as DeniedFiles from "../builtin/DeniedFiles.js"
import * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import { canonicalJson } from "../core/CanonicalJson.js"
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
import * as ForeignCall from "./ForeignCall.js"

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
        stream: ({ prompt, session, sessionId }) =>
          Stream.unwrap(
            Effect.gen(function* () {
              const said = inputOf(prompt)
              const visit = yield* Effect.mapError(visitOf(command, sessionId, said.isLater), failure)
              visit.attach(yield* Effect.runtime<never>(), session)
              // A call with a result that its handler did not run was refused.
              for (const [toolCallId, { leave, visit: owner }] of asked)
                if (owner === visit && said.results.has(toolCallId)) {
                  asked.delete(toolCallId)
                  yield* leave.isStale() ? leave.again : leave.refuse
                }
              yield* visit.say(said.words === "" && visit.hasForgotten ? `${again}\n\n${said.task}` : said.words)
              return replyOf(visit, id, (leave) => {
                const toolCallId = ids.unsafeNext("call")
                asked.set(toolCallId, { visit, leave })
                return { id: toolCallId, ...leave.propose(toolCallId) }
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
          const { leave, visit } = found
          // An answer to other words is no answer to these.
          if (leave.isStale()) return Effect.zipRight(leave.again, Effect.fail(`${changed}.`))
          return leave.allow.pipe(Effect.onInterrupt(() => visit.cancel))
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
  /** A line of ours about it: none is lost. */
  | { readonly _tag: "Noted"; readonly text: string }
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
  /** The call that the gate decides about, as the agent describes it now. */
  readonly propose: (toolCallId: string) => { readonly name: string; readonly params: unknown }
  /** The agent describes it in other words than those that were proposed. */
  readonly isStale: () => boolean
  /** Proposes it once more. */
  readonly again: Effect.Effect<void>
  /** Lets it go on, this once, and waits for the end of its call. */
  readonly allow: Effect.Effect<string, string>
  readonly refuse: Effect.Effect<void>
}

/** A call of the agent's own. */
interface OwnCall {
  said: ForeignCall.Description
  readonly result: Deferred.Deferred<string, string>
  /** Its open questions, to be looked at after each message about the call. */
  readonly questions: Set<{ readonly changed: () => void }>
  /** What it was told, last. */
  told: "nothing" | "yes" | "no"
  /** As it was described when a yes was given. A yes holds until the call ends. */
  readonly allowed: Array<ForeignCall.Description>
  /** It said that it works on the call, and no yes covers that. */
  isActing: boolean
  ended: "completed" | "failed" | undefined
  /** The turn that it belongs to has ended. */
  isGone: boolean
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
  readonly world: Runtime.Runtime<never>
  /** A step of the turn that it works for begins. */
  readonly attach: (world: Runtime.Runtime<never>, session: Model.DecidingSession | undefined) => void
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

/** What an agent may send that no step has read: characters, and calls that have not ended. And changes of a question. */
const most = { characters: 10_000_000, calls: 10_000, changes: 20 }

/** How long an agent may say that it works on a call before it has to have asked. Some say so first, and then ask. */
const patience = "2 seconds"

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
    let world = yield* Effect.runtime<never>()
    let session: Model.DecidingSession | undefined
    /** Lines that no answer has yet, and acts that no audit has. */
    let late: Array<string> = []
    let unrecorded: Array<Model.UndecidedAct> = []
    /** Acts of the running turn that nobody decided about. */
    let notes = 0
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

    /** A line in the answer. Between turns it waits for the next answer. */
    const note = (text: string): void => {
      const line = `\n[${named(command)} ${text}]\n`
      if (!isBusy) return void late.push(line)
      unread += line.length
      Queue.unsafeOffer(items, { _tag: "Noted", text: line })
    }
    const record = (act: Model.UndecidedAct): void => {
      if (session === undefined) return void unrecorded.push(act)
      const recorded = Effect.map(session.record(act), (isRecorded) => {
        if (isRecorded) return
        Deferred.unsafeDone(flooded, Exit.succeed("acted, and the audit cannot record it. Its process was ended"))
      })
      Runtime.runFork(world)(recorded)
    }
    /** An act that nobody decided about: a line, and an audit record. */
    const tell = (call: OwnCall, how: string, outcome: "done" | "denied"): void => {
      if (++notes > most.calls) return flood(`${most.calls} acts without a question`)
      const { params, tool } = ForeignCall.decide(call.said, workspace)
      const text = `${how}: ${shown(call.said, params)}`
      note(text)
      record({ outcome, tool, reason: `${named(command)} ${text}`, args: params })
    }
    const tellUnasked = (call: OwnCall): void => {
      call.isActing = false
      tell(call, call.told === "no" ? "acted after a no" : "acted without asking", "done")
    }

    const callOf = (toolCallId: string, said: ForeignCall.Description): OwnCall => {
      const known = calls.get(toolCallId)
      // An id that is used again is another call.
      if (known !== undefined && (known.ended === undefined || said["sessionUpdate"] !== "tool_call")) {
        const before = known.said
        known.said = ForeignCall.merge(before, said)
        if (known.ended !== undefined && !ForeignCall.isWithin(known.said, before, workspace)) known.ended = undefined
        for (const question of known.questions) question.changed()
        return known
      }
      const call: OwnCall = {
        said: ForeignCall.merge({}, said),
        result: Deferred.unsafeMake(FiberId.none),
        questions: new Set(),
        told: "nothing",
        allowed: [],
        isActing: false,
        ended: undefined,
        isGone: false
      }
      if (calls.size >= most.calls) for (const [id, { ended }] of calls) if (ended !== undefined) calls.delete(id)
      calls.set(toolCallId, call)
      if (calls.size > most.calls) flood(`${most.calls} calls at once`)
      return call
    }

    /** Whether a yes covers what it says of the call. */
    const isCovered = ({ allowed, said }: OwnCall): boolean =>
      allowed.some((then) => ForeignCall.isWithin(said, then, workspace))

    const act = (call: OwnCall): void => {
      if (call.isActing || call.questions.size > 0 || isCovered(call)) return
      call.isActing = true
      const look: Effect.Effect<void> = Effect.suspend(() => {
        if (!call.isActing) return Effect.void
        // Some agents ask one question after the other: until then it may wait for its own.
        if ([...calls.values()].some(({ questions }) => questions.size > 0)) return Effect.delay(look, patience)
        return Effect.sync(() => tellUnasked(call))
      })
      Runtime.runFork(world)(Effect.forkIn(Effect.delay(look, patience), own))
    }

    /** Some agents say twice that a call is completed. */
    const finish = (call: OwnCall, status: "completed" | "failed"): void => {
      const isUnasked =
        status === "completed"
          ? call.ended !== status && !isCovered(call)
          : call.ended === undefined && call.told === "nothing"
      if (call.isActing || isUnasked) tellUnasked(call)
      call.ended = status
      call.allowed.length = 0
      const text = textOf(call.said)
      Deferred.unsafeDone(call.result, status === "completed" ? Exit.succeed(text) : Exit.fail(text))
    }

    const update = (params: unknown): void => {
      const update = Option.getOrUndefined(decodeUpdate(params))?.update
      if (update === undefined) return
      switch (update.sessionUpdate) {
        case "agent_message_chunk":
        case "agent_thought_chunk":
          return say(update.sessionUpdate === "agent_message_chunk" ? "text" : "thought", update.content.text)
        case "usage_update":
          if (update.cost?.currency === "USD") bill.cost = update.cost.amount
          return
        default: {
          const isRefused = UntrustedJson.refusal(update) !== undefined
          const id = typeof update.toolCallId === "string" ? update.toolCallId : unreadable
          const call = callOf(id, isRefused ? { title: unreadable } : update)
          if (update.status === "in_progress") act(call)
          if (update.status === "completed" || update.status === "failed") finish(call, update.status)
        }
      }
    }

    const permission = (params: unknown) =>
      Effect.gen(function* () {
        const problem = UntrustedJson.refusal(params)
        if (problem !== undefined) {
          note(`asked for leave, and its question ${problem.message}, so it was told no`)
          return yield* Effect.fail(AcpConnection.invalid(`The question ${problem.message}.`))
        }
        const { options, toolCall, ...others } = isRecord(params) ? params : { params }
        const given = isRecord(toolCall) ? toolCall : { toolCall: toolCall ?? null }
        const id = typeof given["toolCallId"] === "string" ? given["toolCallId"] : unreadable
        const { sessionId: _, ...beside } = others
        const request = id === unreadable ? { ...beside, toolCallId: given["toolCallId"] ?? null } : beside
        const call = callOf(id, given)
        // What the request says beside its call is of the call too.
        call.said = {
          ...call.said,
          ...("_meta" in given ? { _meta: given["_meta"] } : {}),
          ...(ForeignCall.isRemark(request) ? {} : { request })
        }
        call.isActing = false
        call.ended = undefined
        const choice = (kind: string): AcpConnection.RequestPermissionResponse["outcome"] | undefined => {
          const offered = Option.getOrElse(decodeOptions(options), () => [])
          const option = offered.find((option) => option.kind === kind)
          // An id that stands for two things chooses neither.
          const isOne = offered.every(({ kind, optionId }) => optionId !== option?.optionId || kind === option.kind)
          return option === undefined || !isOne ? undefined : { outcome: "selected", optionId: option.optionId }
        }
        const yes = choice("allow_once")
        const no = choice("reject_once") ?? { outcome: "cancelled" as const }
        if (yes === undefined) {
          call.told = "no"
          tell(call, "was told no, because it offered no way to allow this once", "denied")
          return { outcome: no, _meta: { "assent/reason": noWay } }
        }
        const answer = yield* Deferred.make<AcpConnection.RequestPermissionResponse>()
        yield* Deferred.succeed(another, undefined)
        const next = (another = yield* Deferred.make<void>())
        /** As it was proposed. */
        let proposal: { readonly toolCallId: string; readonly said: string; isWithdrawn: boolean } | undefined
        let changes = 0
        const settle = (told: "yes" | "no") =>
          Effect.suspend(() => {
            call.questions.delete(question)
            call.told = told
            proposal = undefined
            if (told === "yes") call.allowed.push(call.said)
            return Deferred.succeed(answer, { outcome: told === "yes" ? yes : no })
          })
        const isStale = () =>
          proposal !== undefined && !call.isGone && (proposal.isWithdrawn || proposal.said !== canonicalJson(call.said))
        const leave: Leave = {
          propose: (toolCallId) => {
            proposal = { toolCallId, said: canonicalJson(call.said), isWithdrawn: false }
            const { params, tool } = ForeignCall.decide(call.said, workspace)
            return { name: tool, params }
          },
          isStale,
          again: Effect.suspend(() => {
            proposal = undefined
            if (++changes <= most.changes) return Effect.asVoid(Queue.offer(items, { _tag: "Asked", leave }))
            tell(call, "was told no, because it changed its question again and again", "denied")
            return Effect.asVoid(settle("no"))
          }),
          // It may wait for leave for another call before this one ends.
          allow: Effect.zipRight(
            settle("yes"),
            Effect.raceFirst(
              Deferred.await(call.result),
              Effect.as(Deferred.await(next), "It goes on beside other calls.")
            )
          ),
          refuse: Effect.asVoid(settle("no"))
        }
        const question = {
          changed: () => {
            const shown = proposal
            if (shown === undefined || shown.isWithdrawn || session === undefined || !isStale()) return
            shown.isWithdrawn = true
            // The step that proposed it may have yet to begin to decide.
            const withdrawn = session.withdraw(shown.toolCallId, changed).pipe(
              Effect.repeat({
                until: (isDone) => isDone || proposal !== shown,
                schedule: Schedule.spaced("20 millis")
              })
            )
            Runtime.runFork(world)(Effect.forkIn(withdrawn, own))
          }
        }
        call.questions.add(question)
        yield* Queue.offer(items, { _tag: "Asked", leave })
        return yield* Deferred.await(answer).pipe(Effect.onInterrupt(() => settle("no")))
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
        for (const call of calls.values()) {
          const isOpen = call.ended === undefined && call.told === "nothing" && call.questions.size === 0
          if (call.isActing) tellUnasked(call)
          else if (isOpen) tell(call, "announced, and did not ask about", "done")
          call.isGone = true
          Deferred.unsafeDone(call.result, Exit.fail(why))
        }
        calls.clear()
        isBusy = false
        return Queue.offer(items, item)
      })

    const visit: Visit = {
      id: sessionId,
      resumes,
      hasForgotten: false,
      isGone: false,
      get world() {
        return world
      },
      attach: (now, of) => {
        world = now
        session = of
        const waiting = unrecorded
        unrecorded = []
        if (of !== undefined) waiting.forEach(record)
      },
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
            if (item._tag === "Noted") late.push(item.text)
          }
          isBusy = true
          notes = 0
          for (const text of late) Queue.unsafeOffer(items, { _tag: "Noted", text })
          late = []
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
  propose: (leave: Leave) => { readonly id: string; readonly name: string; readonly params: unknown }
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
      case "Noted":
      case "Said": {
        const kind = item._tag === "Said" ? item.kind : "text"
        const begun: Array<Model.Part> = []
        if (block !== kind) {
          begun.push(...closed())
          block = kind
          count++
          begun.push(
            kind === "text" ? { type: "text-start", id: String(count) } : { type: "reasoning-start", id: String(count) }
          )
        }
        const delta = { id: String(count), delta: item.text }
        begun.push(kind === "text" ? { type: "text-delta", ...delta } : { type: "reasoning-delta", ...delta })
        return Either.right(begun)
      }
      case "Asked":
        return Either.right([
          ...closed(),
          { type: "tool-call", ...propose(item.leave) },
          finish("tool-calls", nothingYet)
        ])
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

const textOf = ({ content }: ForeignCall.Description): string => {
  const text = Option.getOrElse(decodeTexts(content), () => [])
    .flatMap((one) => ("content" in one ? [one.content.text] : []))
    .join("\n")
  return text === "" ? "Done." : text.slice(0, longest)
}

/** An act in one line: what the agent says of it, and the command, if it says another thing of that. */
const shown = (said: ForeignCall.Description, params: ForeignCall.Proposed["params"]): string => {
  const title = ForeignCall.titleOf(said)
  const command = "command" in params && !title.includes(params.command) ? `(${params.command})` : ""
  const path = "path" in params && !title.includes(params.path) ? `(${params.path})` : ""
  const line = [title, command, path].filter((part) => part !== "").join(" ")
  return visible((line === "" ? "something that it does not describe" : line).replace(/\s+/g, " ")).slice(0, 600)
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })

/** The updates that are read. Of a call every key counts. */
const decodeUpdate = Schema.decodeUnknownOption(
  Schema.Struct({
    update: Schema.Union(
      Schema.Struct({
        sessionUpdate: Schema.Literal("agent_message_chunk", "agent_thought_chunk"),
        content: TextBlock
      }),
      Schema.Struct(
        {
          sessionUpdate: Schema.Literal("tool_call", "tool_call_update"),
          toolCallId: Schema.optional(Schema.Unknown),
          status: Schema.optional(Schema.Unknown)
        },
        { key: Schema.String, value: Schema.Unknown }
      ),
      Schema.Struct({
        sessionUpdate: Schema.Literal("usage_update"),
        cost: Schema.optional(Schema.NullOr(Schema.Struct({ amount: Schema.Number, currency: Schema.String })))
      })
    )
  })
)

const decodeOptions = Schema.decodeUnknownOption(
  Schema.Array(Schema.Struct({ optionId: Schema.String, kind: Schema.String }))
)

const decodeTexts = Schema.decodeUnknownOption(
  Schema.Array(Schema.Union(Schema.Struct({ type: Schema.Literal("content"), content: TextBlock }), Schema.Struct({})))
)

/** The end of a question that the agent has changed. */
const changed = "The agent changed what it asks, so it is asked again"

const unreadable = "something that Assent cannot read"

/** To an agent that offers no `allow_once`. */
const noWay = "Assent allows one call at a time. Offer an option of the kind allow_once."

const unknownEffect = "Whether the call took effect is not known."

/** The program of a command line, for people. */
const named = (command: string): string => command.trim().split(/\s+/)[0]?.split("/").at(-1) ?? "the agent"
