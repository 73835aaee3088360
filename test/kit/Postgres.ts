/** The PostgreSQL server of the tests: a schema for each test, and connections that are cut where a test wants it. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { inject } from "vitest"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"

const server = inject("postgres")

/** Whether there is a server; tests that need it are skipped otherwise. */
export const isThere = server !== undefined

/** The address of the server, with parameters. */
export const url = (parameters: Readonly<Record<string, string>>, socket = server?.socket ?? "") =>
  Redacted.make(
    `postgres://${server?.user}:${server?.password}@/postgres?${new URLSearchParams({ host: socket, ...parameters }).toString().replaceAll("+", "%20")}`
  )

/** A connection as the owner of the database. */
export const admin = PostgresConnection.open({ url: url({}), maxConnections: 1 })

/** A fresh schema: the parameters with which a connection makes its tables there. */
export const schema: Effect.Effect<Readonly<Record<string, string>>, unknown, Scope.Scope> = Effect.gen(function* () {
  const name = `test_${randomBytes(8).toString("hex")}`
  const sql = yield* admin
  yield* Effect.acquireRelease(sql`CREATE SCHEMA ${sql(name)}`, () =>
    Effect.ignore(Effect.zipRight(sql`SET client_min_messages = error`, sql`DROP SCHEMA ${sql(name)} CASCADE`))
  )
  return { options: `-c search_path=${name}`, application_name: name }
})

/** What a proxy does with what comes from the client: forward it, cut the line, or say nothing any more. */
export type Fate = "forward" | "cut" | "cut when answered" | "silence"

export interface Proxy {
  /** The directory of the proxy's socket. */
  readonly socket: string
  /** Decides on everything that a client sends, until it is set anew. */
  fate: (text: string) => Fate
  /** Cuts all lines. */
  readonly cut: () => void
}

/** Stands between a store and the server. */
export const proxy: Effect.Effect<Proxy, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(
    () =>
      new Promise<Proxy & { readonly close: () => void }>((resolve) => {
        // Beside the server, because the path of a socket has 107 bytes at most.
        const socket = mkdtempSync(join(dirname(dirname(server?.socket ?? "")), "assent-proxy-"))
        const lines = new Set<Socket>()
        const listener = createServer((client) => {
          const upstream = createConnection(join(server?.socket ?? "", ".s.PGSQL.5432"))
          const end = () => {
            client.destroy()
            upstream.destroy()
            lines.delete(client)
          }
          let whenAnswered = false
          let isSilent = false
          lines.add(client)
          client.on("data", (data) => {
            const fate = it.fate(data.toString("latin1"))
            if (fate === "cut") return end()
            whenAnswered ||= fate === "cut when answered"
            isSilent ||= fate === "silence"
            if (!isSilent) upstream.write(data)
          })
          upstream.on("data", (data) => (whenAnswered ? end() : isSilent || client.write(data)))
          for (const each of [client, upstream]) each.on("error", end).on("close", end)
        })
        const it: Proxy & { readonly close: () => void } = {
          socket,
          fate: () => "forward",
          cut: () => lines.forEach((line) => line.destroy()),
          close: () => {
            it.cut()
            listener.close()
            rmSync(socket, { recursive: true, force: true })
          }
        }
        listener.listen(join(socket, ".s.PGSQL.5432"), () => resolve(it))
      })
  ),
  (it) => Effect.sync(() => it.close())
)
