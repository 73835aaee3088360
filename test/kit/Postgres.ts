/** The PostgreSQL server of the tests: a schema for each test, and connections that are cut where a test wants it. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer, type Socket } from "node:net"
import { dirname, join } from "node:path"
import { inject } from "vitest"
import * as PostgresServer from "./PostgresServer.js"

const server = inject("postgres")

/** Whether there is a server; tests that need it are skipped otherwise. */
export const isThere = server !== undefined

const theServer = server ?? { socket: "", user: "", password: "" }

/** The address of the server, with parameters. */
export const url = (parameters: Readonly<Record<string, string>>, socket?: string) =>
  PostgresServer.url(theServer, parameters, socket)

/** A connection as the owner of the database. */
export const admin = PostgresServer.admin(theServer)

/** A fresh schema: the parameters with which a connection makes its tables there. */
export const schema = PostgresServer.schema(theServer)

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
        const socket = mkdtempSync(join(dirname(dirname(theServer.socket)), "assent-proxy-"))
        const lines = new Set<Socket>()
        const listener = createServer((client) => {
          const upstream = createConnection(join(theServer.socket, ".s.PGSQL.5432"))
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
