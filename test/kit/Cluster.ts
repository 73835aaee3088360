/** Nodes of a cluster as processes, which a test starts, asks, stops and kills. Their program is `test/postgres/node.ts`. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { createInterface } from "node:readline"
import type { SessionId } from "../../src/core/Id.js"
import * as AuditTable from "../../src/store/AuditTable.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as SqlFailure from "../../src/store/SqlFailure.js"
import * as AcceptedAnswers from "./AcceptedAnswers.js"
import * as AuditedJournal from "./AuditedJournal.js"
import * as Bundle from "./Bundle.js"
import { until } from "./Wait.js"

export { until } from "./Wait.js"

/** What a node answers. */
export interface Answer {
  readonly status: number
  // Bodies differ by path; each test says what it expects.
  readonly body: any
}

export interface Node {
  readonly name: string
  readonly url: string
  readonly pid: number
  /** Sends JSON as this person; `POST` if there is a body and nothing else is said. A node that does not answer has the status 0. */
  readonly call: (path: string, body?: unknown, by?: string, method?: string) => Effect.Effect<Answer>
  /** Reads events behind this id until `enough` says so, or the stream ends. */
  readonly events: (
    path: string,
    after: string | undefined,
    enough: (pieces: ReadonlyArray<Piece>) => boolean
  ) => Effect.Effect<ReadonlyArray<Piece>>
  /** What it has logged until now. */
  readonly logged: () => string
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits for its end: its exit code, or null after a kill. */
  readonly exit: Effect.Effect<number | null>
}

/** An event, or a snapshot. */
export interface Piece {
  readonly id?: string | undefined
  readonly event?: string | undefined
  readonly data: any
}

/** What a tool left. */
export interface Run {
  readonly tool: string
  readonly session: string
  readonly node: string
}

export interface Cluster {
  readonly start: (name: string, options?: object) => Effect.Effect<Node, unknown, Scope.Scope>
  /** What tools left, of one session. */
  readonly runs: (session: string) => Effect.Effect<ReadonlyArray<Run>, unknown>
  /** Fails if a journal has a gap. */
  readonly gapless: Effect.Effect<void, unknown>
  /** Fails unless each audit verifies, and has exactly the decisions of the journal, and each answer has its effect. */
  readonly audited: Effect.Effect<void, unknown>
  /** Waits until so many nodes share all sessions out: no session moves then. */
  readonly settled: (nodes: number) => Effect.Effect<unknown, unknown>
  /** Asks the database past all nodes. */
  readonly sql: Effect.Effect.Success<ReturnType<typeof PostgresConnection.open>>
}

const program = "dist/postgres/node.js"

/** Over an empty database. */
export const make = (url: Redacted.Redacted): Effect.Effect<Cluster, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    yield* built
    const sql = yield* PostgresConnection.open({ url, maxConnections: 2 })
    yield* sql`CREATE TABLE tool_run (tool TEXT NOT NULL, session TEXT NOT NULL, node TEXT NOT NULL)`
    return {
      sql,
      start: (name, options = {}) =>
        Effect.gen(function* () {
          const port = yield* freePort
          const args = ["--expose-gc", program, Redacted.value(url), name, "0", String(port), JSON.stringify(options)]
          const child = yield* Effect.acquireRelease(
            Effect.sync(() => spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] })),
            (child) => Effect.sync(() => child.kill("SIGKILL"))
          )
          return yield* nodeOf(name, child)
        }),
      settled: (nodes) =>
        until(
          sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM assent_cluster_locks GROUP BY address`,
          (found) => found.length === nodes && found.every(({ count }) => count >= 300 / nodes / 2),
          60_000
        ),
      runs: (session) => sql<Run>`SELECT * FROM tool_run WHERE session = ${session}`,
      gapless: Effect.flatMap(
        sql<{ readonly root: string }>`SELECT root FROM assent_entry GROUP BY root HAVING count(*) <> max(seq)`,
        (gaps) => (gaps.length === 0 ? Effect.void : new Failed({ message: `gaps in ${JSON.stringify(gaps)}` }))
      ),
      audited: Effect.gen(function* () {
        for (const { root } of yield* sql<{ readonly root: string }>`SELECT DISTINCT root FROM assent_entry`) {
          const rows = yield* sql<{ readonly session: SessionId; readonly body: string }>`
            SELECT session, body FROM assent_entry WHERE root = ${root} ORDER BY seq`
          const entries = rows.map(({ body, session }) => ({ sessionId: session, entry: JSON.parse(body) }))
          const wrong = AcceptedAnswers.wrongIn({ entries })
          if (wrong.length > 0) return yield* new Failed({ message: `${root}: ${wrong.join("; ")}` })
        }
        const source = AuditTable.make(sql, SqlFailure.make("the database"))
        const { audited, journaled } = yield* AuditedJournal.both(sql, source)
        if (audited.join() !== journaled.join())
          return yield* new Failed({ message: `the journal has ${journaled.join()}, the audit ${audited.join()}` })
      })
    }
  })

/** What a cluster did not do. */
export class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

/** What a client does with an answer that says "soon": it asks again, which ids make harmless. */
export const asking = (call: Effect.Effect<Answer>) =>
  until(call, ({ status }) => status !== 503 && status !== 0, 90_000)

/** Begins a session with words through this node. */
export const begin = ({ call }: Pick<Node, "call">, id: string, by = "ann") =>
  Effect.gen(function* () {
    const begun = yield* asking(call("/v1/sessions", { id }, by))
    if (begun.status !== 200) return yield* new Failed({ message: JSON.stringify(begun) })
    const sent = yield* asking(call(`/v1/sessions/${id}/messages`, { text: "go", id: `${id}-1` }, by))
    if (sent.status !== 200) return yield* new Failed({ message: JSON.stringify(sent) })
  })

/** The request that the session waits for, as this node sees it. */
export const asked = ({ call }: Pick<Node, "call">, id: string, within?: number) =>
  Effect.map(
    until(call(`/v1/sessions/${id}`), ({ body }) => body?.open?.length === 1, within),
    ({ body }) => String(body.open[0])
  )

/** The process that runs the session. */
export const ownerOf = (nodes: ReadonlyArray<Node>, id: string) =>
  Effect.gen(function* () {
    const [first] = nodes
    if (first === undefined) return yield* new Failed({ message: "no node" })
    const { body } = yield* until(first.call(`/v1/sessions/${id}`), ({ body }) => body?.holder !== undefined)
    const owner = nodes.find(({ pid }) => pid === body.holder.pid)
    return owner ?? (yield* new Failed({ message: `nobody here is ${JSON.stringify(body.holder)}` }))
  })

/** Asks a server with this token, or with the name of a person for one. */
export const callerOf =
  (url: string, token?: string): Node["call"] =>
  (path, body, by = "ann", method = body === undefined ? "GET" : "POST") =>
    Effect.promise(async () => {
      try {
        const answer = await fetch(`${url}${path}`, {
          method,
          headers: { authorization: `Bearer ${token ?? by}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        const text = await answer.text()
        return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text }
      } catch (error) {
        return { status: 0, body: String(error) }
      }
    })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const built = Effect.runSync(Effect.cached(Bundle.make("test/postgres/node.ts", program)))

/** Of this machine, and not one of those that the system gives to connections: it could be gone before a node listens. */
export const freePort: Effect.Effect<number> = Effect.suspend(() => {
  const port = 10_000 + Math.floor(Math.random() * 20_000)
  return Effect.async<boolean>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(true))))
  }).pipe(Effect.flatMap((isFree) => (isFree ? Effect.succeed(port) : freePort)))
})

const nodeOf = (name: string, child: ChildProcess): Effect.Effect<Node, unknown> =>
  Effect.gen(function* () {
    const exited = once(child, "exit")
    let log = ""
    child.stderr?.on("data", (data) => {
      log += String(data)
      process.stderr.write(data)
    })
    if (child.stdout === null) return yield* new Failed({ message: "it has no output" })
    const lines = createInterface(child.stdout)
    const [line] = yield* Effect.tryPromise(() =>
      Promise.race([once(lines, "line"), exited.then(([code]) => Promise.reject(new Error(`${name} ended: ${code}`)))])
    )
    const { pid, url } = JSON.parse(String(line)) as { readonly pid: number; readonly url: string }
    return {
      name,
      url,
      pid,
      logged: () => log,
      call: callerOf(url),
      events: (path, after, enough) =>
        Effect.promise(async (signal) => {
          const pieces: Array<Piece> = []
          const own = new AbortController()
          signal.addEventListener("abort", () => own.abort())
          try {
            const answer = await fetch(`${url}${path}`, {
              signal: own.signal,
              headers: { authorization: "Bearer ann", ...(after === undefined ? {} : { "last-event-id": after }) }
            })
            let text = ""
            const decoder = new TextDecoder()
            const reader = answer.body?.getReader()
            for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
              text += decoder.decode(read.value, { stream: true })
              const whole = text.split("\n\n")
              text = whole.pop() ?? ""
              for (const block of whole) {
                const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]
                const data = field("data")
                if (data !== undefined) pieces.push({ id: field("id"), event: field("event"), data: JSON.parse(data) })
              }
              if (enough(pieces)) break
            }
          } catch {
            // A node that died says nothing more.
          }
          own.abort()
          return pieces
        }),
      signal: (signal) => Effect.sync(() => void child.kill(signal)),
      exit: Effect.map(
        Effect.promise(() => exited),
        ([code]) => code
      )
    }
  })
