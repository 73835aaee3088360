/**
 * What signing in to tool servers yields, in a file of the person's configuration directory, with access for its owner
 * only. The address of the server is the key: a workspace that gives another server a known name gets nothing.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Lazy from "../../core/Lazy.js"
import type { Credentials } from "../../tool/ServerSettings.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** What is stored for the server at an address. A file that cannot be read counts as empty. */
export const of = (configDirectory: string, url: string): Credentials => {
  const file = path.join(configDirectory, "server-tokens.json")
  const key = URL.canParse(url) ? new URL(url).href : url
  const all = (): Readonly<Record<string, string>> => {
    const content = OwnFile.read(file, OwnFile.maxSettings)
    return content._tag === "Text" ? Option.getOrElse(decode(content.text), () => ({})) : {}
  }
  return {
    read: () => {
      const known = all()
      return Object.hasOwn(known, key) ? known[key] : undefined
    },
    // The file is read again: another session may have written for another server.
    write: (text) => {
      const others = Object.entries(all()).filter(([address]) => address !== key)
      const servers = Object.fromEntries(text === undefined ? others : [...others, [key, text]])
      UserLocation.makeAll(configDirectory)
      UserLocation.replace(file, `${JSON.stringify({ version: 1, servers }, undefined, 2)}\n`)
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decode = Lazy.make(() => {
  const read = Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({
        version: Schema.Literal(1),
        servers: Schema.Record({ key: Schema.String, value: Schema.String })
      })
    )
  )
  return (text: string) => Option.map(read(text), ({ servers }) => servers)
})
