/**
 * What clients of the API do with one session, by its id. The host of this process does it; in a cluster, the host of the
 * node that has the session.
 *
 * ```
 *   handlers ─► Sessions ─┬─ ofHost ─► the agent, here
 *                         └─ a cluster's ─► the node that has the session ─► ofHost, there
 * ```
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../event/AgentEvent.js"
import type * as Host from "../host/Host.js"
import * as Input from "../inbox/Input.js"
import type { Mode } from "../permission/PermissionState.js"
import * as Answers from "./Answers.js"
import * as Api from "./Api.js"
import * as PageRun from "./PageRun.js"
import * as Present from "./Present.js"
import * as Refusal from "./Refusal.js"
import * as Runs from "./Runs.js"
import type { Stores } from "./Stores.js"

/** Words to an agent, under an id of the client's. */
export interface Words {
  readonly text?: string | undefined
  readonly files?:
    | ReadonlyArray<{
        readonly base64: Uint8Array
        readonly name?: string | undefined
        readonly mediaType?: string | undefined
      }>
    | undefined
  readonly target?: string | undefined
  /** `queue`: a turn of its own. Default: a running turn reads the words. */
  readonly delivery?: "steer" | "queue" | undefined
  readonly id?: string | undefined
}

export interface Sessions {
  /** `id` is chosen by the client. The workspace is permitted. */
  readonly create: (wishes: {
    readonly id?: string | undefined
    readonly workspace: string
    readonly model?: string | undefined
    readonly profile?: string | undefined
  }) => Effect.Effect<{ readonly sessionId: string }, Refusal.Refusal>
  /** Undefined when no process runs the session. */
  readonly present: (id: string) => Effect.Effect<Present.Present | undefined, Refusal.Refusal>
  /** What brokers ask, of one session or of all: also what no other process asks again. */
  readonly open: (of: string | undefined) => Effect.Effect<ReadonlyArray<Api.OpenRequest>, Refusal.Refusal>
  /** The models that can be chosen, as far as they are known without asking a server. */
  readonly models: (id: string) => Effect.Effect<ReadonlyArray<string>, Refusal.Refusal>
  readonly send: (
    id: string,
    words: Words
  ) => Effect.Effect<{ readonly messageId: string; readonly again?: true | undefined }, Refusal.Refusal>
  readonly interrupt: (
    id: string,
    what: { readonly target?: string | undefined; readonly toolCallId?: string | undefined }
  ) => Effect.Effect<void, Refusal.Refusal>
  readonly permissions: (
    id: string,
    command: string,
    by: string
  ) => Effect.Effect<{ readonly lines: ReadonlyArray<string> }, Refusal.Refusal>
  readonly setMode: (id: string, mode: Mode, by: string) => Effect.Effect<void, Refusal.Refusal>
  readonly setModel: (
    id: string,
    model: string,
    thinking?: "low" | "medium" | "high"
  ) => Effect.Effect<void, Refusal.Refusal>
  /** Withdraws the user's words that no agent has read, oldest first. */
  readonly takeBack: (
    id: string,
    target: string | undefined
  ) => Effect.Effect<
    { readonly messages: ReadonlyArray<{ readonly id: string; readonly text: string; readonly at: number }> },
    Refusal.Refusal
  >
  readonly compact: (
    id: string
  ) => Effect.Effect<{ readonly removed: number; readonly tokens: number }, Refusal.Refusal>
  readonly remove: (id: string) => Effect.Effect<void, Refusal.Refusal>
  readonly answer: Answers.Answers["answer"]
  readonly cancel: Answers.Answers["cancel"]
  /** Gives answers and words. Yields what the page gets; undefined when no turn runs that it could see again. */
  readonly run: (
    id: string,
    page: PageRun.Page,
    by: Runs.By
  ) => Effect.Effect<Stream.Stream<string> | undefined, Refusal.Refusal, Scope.Scope>
  /** The events behind a position, with live pieces, as long as a process runs the session. Empty when none does. */
  readonly events: (
    id: string,
    after: number
  ) => Stream.Stream<AgentEvent, { readonly _tag: string; readonly message: string }>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Does it here, in this process. `owned`: no other process has these sessions, whatever their store says. */
export const ofHost = (host: Host.Service, stores: Stores, owned = false): Sessions => {
  const liveOf = (id: string) => Effect.map(host.live, (all) => all.find((one) => one.id === id))
  const opened = (id: string) => Refusal.of(host.open(id))
  /** The session, if it is live, or has work: a turn that waits for a person, or that its process left, goes on here. */
  const working = (id: string) =>
    Effect.gen(function* () {
      const found = yield* Refusal.of(stores.session(id))
      const isAtWork = found !== undefined && found.listed.state !== "idle" && found.listed.state !== "closed"
      return (yield* liveOf(id)) ?? (isAtWork ? yield* opened(id) : undefined)
    })
  const answers = Answers.make(host, stores, owned)
  const runs = Runs.make(stores, answers)
  return {
    ...answers,
    create: (wishes) => Refusal.of(Effect.map(host.create(wishes), ({ id }) => ({ sessionId: id }))),
    present: (id) =>
      Effect.flatMap(liveOf(id), (live) =>
        live === undefined
          ? Effect.succeed(undefined)
          : Effect.map(Present.of(live), (present) => ({
              ...present,
              ...(live.wantsTrust ? { wantsTrust: true as const } : {}),
              position: live.agent.feed?.position
            }))
      ),
    open: (of) =>
      Effect.map(
        Effect.flatMap(
          host.live,
          Effect.forEach((live) => (of === undefined || of === live.id ? Present.open(live) : Effect.succeed([])))
        ),
        (open) => open.flat()
      ),
    models: (id) => Effect.map(opened(id), ({ models }) => models),
    run: (id, page, by) => Effect.flatMap(opened(id), (session) => PageRun.begin(runs, session, page, by)),
    send: (session, { delivery, files = [], id, target, text }) =>
      Effect.gen(function* () {
        const { agent } = yield* opened(session)
        const input: Input.Input =
          files.length === 0 ? (text ?? "") : [text ?? "", ...files.map((file) => Input.fromBytes(file.base64, file))]
        const taken = delivery === "queue" ? agent.enqueue(input, { id }) : agent.send(input, { id, target })
        return yield* Effect.map(taken, (message) => ({ messageId: message.id })).pipe(
          Effect.catchTag("MessageAlreadyTaken", ({ messageId }) =>
            Effect.succeed({ messageId, again: true as const })
          ),
          Refusal.of
        )
      }),
    interrupt: (id, what) =>
      Effect.flatMap(working(id), (live) =>
        live === undefined ? Effect.void : Effect.asVoid(Refusal.of(live.agent.interrupt(what)))
      ),
    permissions: (id, command, by) =>
      Effect.gen(function* () {
        const { agent } = yield* opened(id)
        const outcome = yield* agent.permissions(command, { by })
        if (Either.isLeft(outcome)) return yield* new Api.Unprocessable({ message: outcome.left })
        return { lines: outcome.right.lines }
      }),
    setMode: (id, mode, by) =>
      Effect.flatMap(opened(id), ({ agent }) => Effect.asVoid(Refusal.of(agent.permissions.setMode(mode, { by })))),
    setModel: (id, model, thinking) =>
      Effect.flatMap(opened(id), (session) => Refusal.of(session.setModel(model, thinking))),
    takeBack: (id, target) =>
      Effect.gen(function* () {
        const live = yield* working(id)
        const messages = live === undefined ? [] : yield* Refusal.of(live.agent.takeBack(target))
        return { messages: messages.map(({ at, id, text }) => ({ id, text, at })) }
      }),
    compact: (id) =>
      Effect.gen(function* () {
        const { agent } = yield* opened(id)
        // Else it waits for the turn, which may wait for a person.
        if (!(yield* agent.isIdle))
          return yield* new Api.Conflict({ message: `Session ${id} is at work. Try again when it is idle.` })
        return yield* Refusal.of(agent.compact)
      }),
    remove: (id) =>
      Effect.gen(function* () {
        const live = yield* liveOf(id)
        if (live !== undefined && !(yield* live.agent.isIdle)) {
          return yield* new Api.Conflict({ message: `Session ${id} is at work. Interrupt it first.` })
        }
        yield* host.close(id)
        yield* Refusal.of(host.delete(id))
      }),
    events: (id, after) =>
      Stream.unwrap(Effect.map(liveOf(id), (live) => live?.agent.feed?.read({ after }) ?? Stream.empty))
  }
}
