/**
 * Whether requests may be sent to a node: the database answers, and the other nodes reach the address that it gave. Both are
 * looked at again and again, for a proxy that asks `/readyz`.
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connect } from "node:net"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Looks until the scope closes. Yields why requests are better sent elsewhere; undefined if they are not. `read`: something
 * that the node has to know of the database. `apart`: why the node takes no part.
 */
export const make = (
  read: Effect.Effect<void, SqlError>,
  address: Address,
  apart: Effect.Effect<string | undefined>
): Effect.Effect<Effect.Effect<string | undefined>, never, Scope.Scope> =>
  Effect.gen(function* () {
    let why: string | undefined
    const look = Effect.gen(function* () {
      const isDatabaseThere = yield* isTrue(read)
      const found = isDatabaseThere
        ? ((yield* apart) ?? ((yield* isTrue(reach(address))) ? undefined : unreached(address)))
        : silent
      if (found !== undefined && found !== why) yield* Effect.logWarning(found)
      why = found
    })
    yield* look
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.sleep(every), look)))
    return Effect.sync(() => why)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Where the node says that the others reach it. */
interface Address {
  readonly host: string
  readonly port: number
}

const every = Duration.seconds(3)

/** Longer than a loaded machine takes, and short enough that three looks are over in ten seconds. */
const patience = Duration.seconds(3)

const silent = "The database does not answer. Check that its server runs, and the network between."

const unreached = ({ host, port }: Address) =>
  `This node does not reach itself at ${host}:${port}, so the other nodes do not either. Correct ASSENT_NODE_ADDRESS.`

const isTrue = <E>(look: Effect.Effect<void, E>): Effect.Effect<boolean> =>
  Effect.match(Effect.timeout(look, patience), { onFailure: () => false, onSuccess: () => true })

const reach = ({ host, port }: Address) =>
  Effect.async<void, Error>((resume) => {
    const socket = connect({ host, port })
      .once("connect", () => resume(Effect.sync(() => void socket.destroy())))
      .once("error", (error) => resume(Effect.fail(error)))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.asVoid)
