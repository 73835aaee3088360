/**
 * The definitions of servers' tools that a person allowed in one workspace, in a file with the person's own state. A
 * permission for such a tool holds for this definition in every session.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Lazy from "../../core/Lazy.js"
import type * as ToolDefinition from "../../tool/ToolDefinition.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads them. `failed` hears of a file that cannot be read or written: then permissions end with their session. */
export const open = (place: UserLocation.Folder, failed: (message: string) => void): ToolDefinition.Known => {
  const file = path.join(place.folder, "tool-definitions.json")
  const read = (): ReadonlyMap<string, ToolDefinition.Written> => {
    const content = OwnFile.read(file, maxSize)
    if (content._tag === "Absent") return new Map()
    const found = content._tag === "Text" ? Option.getOrUndefined(decode(content.text)) : undefined
    if (found === undefined) {
      failed(`${file} cannot be read. Delete it to see the definitions of tool servers again.`)
      return new Map()
    }
    return new Map(found.tools.map((tool) => [tool.name, tool]))
  }
  let known = read()
  return {
    get: (name) => known.get(name),
    note: ({ description, digest, name, schema }) => {
      // Another session may have added some.
      known = new Map([...read(), [name, { name, description, schema, digest }]])
      try {
        UserLocation.replace(file, JSON.stringify({ version: 1, tools: [...known.values()] }))
      } catch (error) {
        failed(`${file} cannot be written: ${UserLocation.reasonOf(error)}.`)
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. */
const maxSize = 50_000_000

const decode = Lazy.make(() =>
  Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({
        version: Schema.Literal(1),
        tools: Schema.Array(
          Schema.Struct({
            name: Schema.String,
            description: Schema.String,
            schema: Schema.Unknown,
            digest: Schema.String
          })
        )
      })
    )
  )
)
