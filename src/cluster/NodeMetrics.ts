/** What a node measures of itself, beside what every server does: for `/metrics`. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Host from "../host/Host.js"
import type * as SqlSessionStore from "../store/SqlSessionStore.js"

export interface NodeMetrics {
  /** Measures how long sessions take that it opens. */
  readonly timing: (host: Host.Service) => Host.Service
  /** Counts writes that the database refuses, because another node has the session. */
  readonly counting: (store: SqlSessionStore.FencedStore) => SqlSessionStore.FencedStore
  /** After a sweep. */
  readonly swept: () => void
  /** After a session left memory until an answer, words or its deadline. */
  readonly parked: () => void
  /** In the text format of Prometheus, with what engine and database have now. */
  readonly text: (engine: Engine) => string
}

/** What the engine and the database have. */
export interface Engine {
  readonly waiting: number
  readonly shards: number
  readonly entities: number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): NodeMetrics => {
  let [refused, sweeps, parkings] = [0, 0, 0]
  const wakes = { counts: bounds.map(() => 0), count: 0, sum: 0 }
  const woke = (seconds: number) => {
    wakes.count++
    wakes.sum += seconds
    for (const [index, bound] of bounds.entries())
      if (seconds <= bound) wakes.counts[index] = (wakes.counts[index] ?? 0) + 1
  }
  return {
    timing: (host) => ({
      ...host,
      open: (id, options) =>
        Effect.gen(function* () {
          const began = yield* Clock.currentTimeMillis
          const isLive = (yield* host.live).some((one) => one.id === id)
          const session = yield* host.open(id, options)
          if (!isLive) woke(((yield* Clock.currentTimeMillis) - began) / 1_000)
          return session
        })
    }),
    counting: (store) => ({
      ...store,
      lock: (root) =>
        Effect.map(store.lock(root), (lease) => ({
          ...lease,
          append: (drafts) =>
            Effect.tapErrorTag(lease.append(drafts), "SessionTakenOver", () => Effect.sync(() => void refused++))
        }))
    }),
    swept: () => void sweeps++,
    parked: () => void parkings++,
    text: ({ entities, shards, waiting }) =>
      [
        ...family("assent_cluster_shards", "gauge", "Shards that this node has.", shards),
        ...family(
          "assent_cluster_entities",
          "gauge",
          "Sessions of which the engine keeps something in memory.",
          entities
        ),
        ...family("assent_cluster_sessions_waiting", "gauge", "Sessions of all nodes that wait for answers.", waiting),
        ...family("assent_cluster_parkings_total", "counter", "Sessions that left memory to wait.", parkings),
        ...family("assent_cluster_sweeps_total", "counter", "Looks for sessions to go on with.", sweeps),
        ...family("assent_cluster_writes_refused_total", "counter", "Writes refused by the session's fence.", refused),
        ...header("assent_cluster_wake_seconds", "histogram", "How long sessions took to come into memory."),
        ...bounds.map(
          (bound, index) => `assent_cluster_wake_seconds_bucket{le="${bound}"} ${wakes.counts[index] ?? 0}`
        ),
        `assent_cluster_wake_seconds_bucket{le="+Inf"} ${wakes.count}`,
        `assent_cluster_wake_seconds_sum ${wakes.sum}`,
        `assent_cluster_wake_seconds_count ${wakes.count}`,
        ""
      ].join("\n")
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Seconds. */
const bounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const header = (name: string, type: string, help: string) => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]

const family = (name: string, type: string, help: string, value: number) => [
  ...header(name, type, help),
  `${name} ${value}`
]
