/**
 * A node of a cluster: sessions over one PostgreSQL database, of which each node runs some, and the API of all of them at
 * each node.
 *
 * ```
 *   client ─► API of any node ─► the node that has the session ─► agent ─► journal ─► PostgreSQL
 *                  ▲                        │  dies: another node goes on ─┘
 *                  └──── events ◄───────────┘
 * ```
 *
 * @since 0.1.0
 */
import * as RunnerAddress from "@effect/cluster/RunnerAddress"
import * as ShardId from "@effect/cluster/ShardId"
import * as Sharding from "@effect/cluster/Sharding"
import * as ShardingConfig from "@effect/cluster/ShardingConfig"
import type * as HttpServerError from "@effect/platform/HttpServerError"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as Host from "../host/Host.js"
import * as NodeProcess from "../host/NodeProcess.js"
import * as RuntimeHost from "../host/RuntimeHost.js"
import * as Api from "../http/Api.js"
import * as Server from "../http/Server.js"
import * as Sessions from "../http/Sessions.js"
import * as Stores from "../http/Stores.js"
import type { StoreUnusable, StoreUnwritable } from "../journal/StoreError.js"
import * as Digest from "../core/Digest.js"
import { AgentRuntime } from "../runtime/AgentRuntime.js"
import * as PostgresConnection from "../store/PostgresConnection.js"
import * as PostgresStore from "../store/PostgresStore.js"
import * as SqlFailure from "../store/SqlFailure.js"
import type * as SqlSessionStore from "../store/SqlSessionStore.js"
import * as ClusterSessions from "./ClusterSessions.js"
import * as ClusterTables from "./ClusterTables.js"
import * as DatabaseClock from "./DatabaseClock.js"
import * as Fingerprint from "./Fingerprint.js"
import * as Keys from "./Keys.js"
import * as NodeDoor from "./NodeDoor.js"
import * as NodeMetrics from "./NodeMetrics.js"
import * as NodeSessions from "./NodeSessions.js"
import * as NodeSecret from "./NodeSecret.js"
import * as OpenQuestions from "./OpenQuestions.js"
import * as Readiness from "./Readiness.js"
import * as TokenLimit from "./TokenLimit.js"

/**
 * An address with a port.
 *
 * @since 0.1.0
 * @category models
 */
export interface Address {
  readonly host: string
  readonly port: number
}

/**
 * The settings of a node.
 *
 * @since 0.1.0
 * @category models
 */
export interface Settings {
  /** `postgres://user:password@host:port/database`: the same for all nodes. */
  readonly url: Redacted.Redacted
  /** Where the API listens. Port 0: a free one. */
  readonly listen: Address
  /** Where the other nodes reach this one. What they say to each other is not encrypted, so it must be a private address. */
  readonly advertise: Address
  /** Further names with ports under which the API answers, such as those of a proxy. */
  readonly allowHosts?: ReadonlyArray<string> | undefined
  /** How long a session whose calls all wait for people stays in memory. Default: 5 seconds. */
  readonly parkAfter?: Duration.DurationInput | undefined
  /** How long an idle session stays in memory. Default: 10 seconds. */
  readonly evictAfter?: Duration.DurationInput | undefined
  /** How long running tools may go on when the node ends. Default: 10 seconds. */
  readonly drainWithin?: Duration.DurationInput | undefined
  /** `fast`: a node is missed after 6 seconds. `calm`: after 35 seconds, with fewer statements. Default: `fast`. */
  readonly failover?: "fast" | "calm" | undefined
  /** The parts in which sessions are shared out: the same for all nodes, for ever. Default: 300. */
  readonly shards?: number | undefined
  /** Connections to the database, three of them for the engine. Default: 10. */
  readonly connections?: number | undefined
  /**
   * Callers are known by the keys in the database, which `assent keys` makes. As long as there are none, your
   * `Api.Authentication` knows them. Default: it always does.
   */
  readonly keys?: boolean | undefined
  /** Seals the audit, so that nobody forges it without the key: the same for all nodes, for ever. */
  readonly auditKey?: Redacted.Redacted | undefined
  /** The webhook that one of the nodes calls about each question that waits. Default: none. */
  readonly notify?: Notify | undefined
}

/**
 * A webhook for questions that wait: one call a question, which says nothing of what it asks.
 *
 * @since 0.1.0
 * @category models
 */
export interface Notify {
  readonly webhook: URL
  /** How long a question waits before the call. */
  readonly after: Duration.DurationInput
  /** The address of a web console. The link in a call is `<console>/#/session/<id>`. */
  readonly console: string
  /** Makes the calls. Default: the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/**
 * A node that listens.
 *
 * @since 0.1.0
 * @category models
 */
export interface Node {
  /** Of the API, such as `http://127.0.0.1:4096`. */
  readonly url: string
  /** Ends gently: nothing new, running tools end, the other nodes take the sessions. */
  readonly end: Effect.Effect<void>
}

/**
 * The node of a program.
 *
 * @since 0.1.0
 * @category services
 */
export class ClusterNode extends Context.Tag("assent/cluster/ClusterNode")<ClusterNode, Node>() {}

/**
 * Why a node does not start.
 *
 * @since 0.1.0
 * @category models
 */
export type StartFailure = HttpServerError.ServeError | StoreUnusable | StoreUnwritable

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Starts a node whose sessions have the program's runtime: its model, its tools, its policy. Nodes may start at once, also
 * on an empty database. Closing the scope ends the node.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  settings: Settings
): Effect.Effect<Node, StartFailure, AgentRuntime | Api.Authentication | Scope.Scope> =>
  over(settings, ["/"], (store) => RuntimeHost.make(store, settings.auditKey), ofRuntime).pipe(
    // Such a host reads no configuration and has no workspaces.
    Effect.catchTags({ WorkspaceRefused: Effect.die, ConfigurationInvalid: Effect.die })
  )

/**
 * A node as long as the layer is in use. Its end is gentle: {@link Node.end}.
 *
 * @example
 * ```ts
 * import { AgentRuntime } from "assent"
 * import { ClusterNode } from "assent/cluster"
 * import type { Api } from "assent/http"
 * import { Layer, ManagedRuntime, Redacted } from "effect"
 *
 * export const start = (own: Layer.Layer<AgentRuntime.AgentRuntime | Api.Authentication>) =>
 *   ManagedRuntime.make(
 *     ClusterNode.layer({
 *       url: Redacted.make("postgres://assent@db.internal/assent"),
 *       listen: { host: "0.0.0.0", port: 4096 },
 *       advertise: { host: "10.0.0.5", port: 7700 }
 *     }).pipe(Layer.provide(own))
 *   )
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (settings: Settings): Layer.Layer<ClusterNode, StartFailure, AgentRuntime | Api.Authentication> =>
  Layer.scoped(
    ClusterNode,
    // Not acquired without interruption: what the engine begins meanwhile could never be interrupted.
    Effect.tap(make(settings), ({ end }) => Effect.addFinalizer(() => end))
  )

/**
 * As {@link make}, over a host that opens its sessions in the store that it is given.
 *
 * @internal
 */
export const over = <E, R>(
  settings: Settings,
  workspaces: ReadonlyArray<string>,
  makeHost: (store: SqlSessionStore.FencedStore) => Effect.Effect<Host.Service, E, R>,
  parts: Effect.Effect<Fingerprint.Parts, E, R>
): Effect.Effect<Node, E | StartFailure | Host.LookFailure, R | Api.Authentication | Scope.Scope> =>
  Effect.gen(function* () {
    const { connections = 10, url } = settings
    const failure = SqlFailure.make(PostgresStore.nameOf(url))
    const sql = yield* failure.reading(
      PostgresConnection.open({ url, maxConnections: Math.max(1, connections - forEngine) })
    )
    const engineSql = yield* failure.reading(PostgresConnection.open({ url, maxConnections: forEngine }))
    const clock = yield* failure.reading(DatabaseClock.make(engineSql))
    return yield* Effect.withClock(started(settings, workspaces, makeHost, parts, { sql, engineSql }), clock)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** In the time of the database. */
const started = <E, R>(
  settings: Settings,
  workspaces: ReadonlyArray<string>,
  makeHost: (store: SqlSessionStore.FencedStore) => Effect.Effect<Host.Service, E, R>,
  parts: Effect.Effect<Fingerprint.Parts, E, R>,
  { engineSql, sql }: { readonly sql: SqlClient.SqlClient; readonly engineSql: SqlClient.SqlClient }
): Effect.Effect<Node, E | StartFailure | Host.LookFailure, R | Api.Authentication | Scope.Scope> =>
  Effect.gen(function* () {
    const { advertise, auditKey, drainWithin = "10 seconds", listen, notify, shards = defaultShards, url } = settings
    const name = PostgresStore.nameOf(url)
    const failure = SqlFailure.make(name)
    const process = {
      ...NodeProcess.self,
      host: addressOf(advertise),
      holding: "fence" as const
    }
    const database = Layer.succeed(SqlClient.SqlClient, sql)
    const metrics = NodeMetrics.make()
    const store = metrics.counting(yield* Effect.provide(PostgresStore.over({ auditKey, process, name }), database))
    const made = metrics.timing(yield* makeHost(store))
    const host = settings.keys === true ? yield* TokenLimit.over(made, store, Keys.make(sql, failure)) : made
    const stores = yield* Stores.make(host)
    const own = Sessions.ofHost(host, stores, true)

    // Ended before the rest, so that the other nodes have the sessions when this one says goodbye.
    const sharing = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const secret = yield* failure.writing(NodeSecret.make(engineSql))
    const engine = NodeDoor.layer(advertise, secret).pipe(
      Layer.provide(ClusterTables.layer),
      Layer.provide(ShardingConfig.layer(shardingOf(settings))),
      // Its locks must not wait behind what sessions write.
      Layer.provide(Layer.succeed(SqlClient.SqlClient, engineSql))
    )
    const sessions = NodeSessions.layer({
      host,
      store,
      sessions: own,
      metrics,
      parkAfter: settings.parkAfter ?? "5 seconds",
      evictAfter: settings.evictAfter ?? "10 seconds",
      drainWithin
    })
    const runtime = yield* Effect.runtime()
    const notifying =
      notify === undefined
        ? Layer.empty
        : OpenQuestions.layer(sql, {
            ...notify,
            fetch: notify.fetch ?? fetch,
            warn: (sentence) => Runtime.runFork(runtime)(Effect.logWarning(sentence))
          })
    let joined: { readonly sessions: Sessions.Sessions; readonly engine: Effect.Effect<NodeMetrics.Engine> } | undefined
    let apart = "This node does not take part yet."
    const join = Effect.gen(function* () {
      const context = yield* Layer.buildWithScope(Layer.provideMerge(Layer.merge(sessions, notifying), engine), sharing)
      joined = {
        sessions: yield* Effect.provide(ClusterSessions.make(stores), context),
        engine: Effect.provide(engineOf(shards, store), context)
      }
    }).pipe(failure.reading)
    const print = yield* Fingerprint.make(engineSql, addressOf(advertise), yield* partsOf(parts, shards))
    // A node with other settings must not run sessions beside these.
    const look = Effect.gen(function* () {
      const why = yield* failure.reading(print.look)
      apart = why ?? apart
      if (why === undefined && joined === undefined) yield* join
      return why
    })
    // What is wrong with the database ends the start, and the rest is said by the readiness.
    yield* look
    const known = yield* Api.Authentication
    const callers = settings.keys === true ? yield* Keys.authentication(sql, known) : known
    const server = yield* Server.make({
      ...listen,
      workspaces,
      allowHosts: settings.allowHosts,
      sessions: ClusterSessions.later(() => joined?.sessions ?? apart),
      unready: yield* Readiness.make(
        secret.read,
        advertise,
        Effect.catchAll(look, ({ message }) => Effect.succeed(message))
      ),
      metrics: Effect.suspend(() =>
        joined === undefined ? Effect.succeed("") : Effect.map(joined.engine, metrics.text)
      ),
      draining: Scope.close(sharing, Exit.void)
    }).pipe(Effect.provideService(Host.Host, host), Effect.provideService(Api.Authentication, callers))
    return { url: server.url, end: server.end }
  })

/** What a program's runtime decides by. */
const ofRuntime = Effect.map(AgentRuntime, ({ instructions, limits, model, servers, subagents, tools }) => ({
  model: Digest.digest(model.id),
  tools: Digest.digest(tools.entries.map(({ name }) => name).sort()),
  servers: Digest.digest(servers.map(({ name }) => name).sort()),
  configuration: Digest.digest({ instructions, limits, profiles: [...subagents.profiles.keys()].sort() })
}))

/** Connections for the engine, which keeps one for its locks, and for what looks after the node. */
const forEngine = 3

/** What the engine of this node has now. */
const engineOf = (
  shards: number,
  store: Pick<SqlSessionStore.FencedStore, "waiting">
): Effect.Effect<NodeMetrics.Engine, never, Sharding.Sharding> =>
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const all = Array.from({ length: shards }, (_, index) => ShardId.make(NodeSessions.group, index + 1))
    return {
      shards: all.filter((id) => sharding.hasShardId(id)).length,
      entities: yield* sharding.activeEntityCount,
      // A database that does not answer has no number.
      waiting: yield* Effect.orElseSucceed(store.waiting, () => NaN)
    }
  })

const defaultShards = 300

const addressOf = ({ host, port }: Address) => `${host}:${port}`

/** Settings that cannot be read now are as they were. */
const partsOf = <E, R>(parts: Effect.Effect<Fingerprint.Parts, E, R>, shards: number) =>
  Effect.gen(function* () {
    let last = yield* parts
    const context = yield* Effect.context<R>()
    const again = Effect.map(parts, (found) => (last = found)).pipe(
      Effect.catchAll(() => Effect.succeed(last)),
      Effect.provide(context)
    )
    return Effect.map(yield* Effect.cachedWithTTL(again, "10 seconds"), (parts) => ({
      ...parts,
      [Fingerprint.handshake]: "proof of a secret",
      shards: String(shards)
    }))
  })

/**
 * Shards are locked by rows of a table and not by advisory locks: those stay with a process that stands still, as long as its
 * connection does.
 */
const shardingOf = ({ advertise, failover = "fast", shards = defaultShards }: Settings) => ({
  runnerAddress: Option.some(RunnerAddress.make(advertise.host, advertise.port)),
  runnerListenAddress: Option.none<RunnerAddress.RunnerAddress>(),
  shardsPerGroup: shards,
  shardLockDisableAdvisory: true,
  simulateRemoteSerialization: false,
  ...(failover === "calm"
    ? {}
    : {
        shardLockExpiration: Duration.seconds(6),
        shardLockRefreshInterval: Duration.seconds(2),
        runnerHealthCheckInterval: Duration.seconds(1),
        refreshAssignmentsInterval: Duration.seconds(1),
        entityMessagePollInterval: Duration.seconds(1)
      })
})
