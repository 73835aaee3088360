/** The sessions of this process, for a surface that shows them. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { SessionId } from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import * as Replay from "../journal/Replay.js"
import * as Agent from "../runtime/Agent.js"
import type * as Host from "./Host.js"
import type { Refusal, ShownSession, ShownSessions } from "./SessionHandle.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (host: Host.Service): ShownSessions => ({
  isHere: true,
  create: (options) => Effect.map(host.create(options), shown),
  open: (id, options) => Effect.map(host.open(id, options), shown),
  list: ({ after, limit, workspace }) =>
    Effect.gen(function* () {
      const place = after === undefined ? undefined : yield* placeOf(after)
      const { next, sessions } = yield* host.list({ workspace, after: place, limit })
      return {
        sessions: sessions.map(({ lastActivity, rootSessionId, title, workspace }) => ({
          id: rootSessionId,
          title,
          workspace,
          lastActivity
        })),
        next: next === undefined ? undefined : Encoding.encodeBase64Url(encodePlace(next))
      }
    }),
  close: host.close,
  delete: host.delete
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const shown = ({ agent, attach, closed, id, models, prompts, setModel, workspace }: Host.LiveSession): ShownSession => {
  const { feed } = agent
  const follow = (after: number): Stream.Stream<AgentEvent, Refusal> =>
    Stream.catchTag(Agent.events(agent, { after }), "ReaderLagged", ({ position }) => follow(position))
  return {
    id,
    workspace,
    agent,
    attach,
    closed,
    models,
    prompts,
    setModel,
    run: (input) => agent.run(input),
    toolOf: (name) => agent.tools.get(name),
    read:
      feed === undefined
        ? Effect.fail({ _tag: "SessionNotStored", message: `Session ${id} is not stored.` })
        : Effect.map(feed.entries, (entries) => ({
            past: Replay.events(entries),
            next: follow(entries.at(-1)?.seq ?? 0)
          }))
  }
}

const Place = Schema.parseJson(Schema.Struct({ lastActivity: Schema.Number, rootSessionId: SessionId }))

const encodePlace = Schema.encodeSync(Place)

const placeOf = (cursor: string): Either.Either<typeof Place.Type, Refusal> =>
  Either.mapLeft(
    Either.flatMap(Encoding.decodeBase64UrlString(cursor), (text) => Schema.decodeEither(Place)(text)),
    () => ({ _tag: "CursorUnknown", message: "The cursor does not belong to this list. Leave it out to begin again." })
  )
