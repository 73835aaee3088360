/**
 * The tool servers that an editor passes to a session. They are the person's own: they start without a question of trust,
 * and each call asks as ever.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type * as AcpConnection from "../foreign/AcpConnection.js"
import * as ServerSettings from "../tool/ServerSettings.js"

/** Servers by the names that their tools have, and sentences about those that are left out or have another name. */
export interface WorkspaceSettings {
  readonly servers: ServerSettings.Servers
  readonly remarks: ReadonlyArray<string>
}

/** A left is a sentence: the editor passes what can be no server. */
export const of = (given: ReadonlyArray<AcpConnection.McpServer>): Either.Either<WorkspaceSettings, string> => {
  const servers: Record<string, unknown> = {}
  const remarks: Array<string> = []
  for (const server of given) {
    const settings = settingsOf(server)
    if (settings === undefined) {
      remarks.push(`The tool server ${shown(server.name)} speaks over SSE, which is not supported.`)
      continue
    }
    const name = nameOf(server.name, servers)
    if (name !== server.name) remarks.push(`The tool server ${shown(server.name)} is named ${name} here.`)
    servers[name] = settings
  }
  return Either.mapBoth(Schema.decodeUnknownEither(ServerSettings.Servers)(servers), {
    onLeft: (error) =>
      `The tool servers cannot be used: ${ParseResult.ArrayFormatter.formatErrorSync(error)[0]?.message}.`,
    onRight: (servers) => ({ servers, remarks })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const settingsOf = (server: AcpConnection.McpServer): object | undefined => {
  if (!("type" in server)) return { command: server.command, args: server.args, env: record(server.env) }
  return server.type === "http" ? { url: server.url, headers: record(server.headers) } : undefined
}

const record = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))

/** An editor may name a server as it likes; names of tools are more narrow. */
const nameOf = (given: string, taken: object): string => {
  const plain = given
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, longest)
  const name = ServerSettings.isName(given) ? given : plain === "" ? "server" : plain
  for (let number = 1; ; number++) {
    const next = number === 1 ? name : `${name.slice(0, longest)}-${number}`
    if (!Object.hasOwn(taken, next)) return next
  }
}

/** Characters, with room for a number. */
const longest = 28

const shown = (name: string): string => JSON.stringify(name.slice(0, 80))
