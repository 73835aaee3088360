/**
 * The addresses and the profile that flags gave a session, for the next time it goes on. They are of this machine: the
 * workspace's state has them, and the journal does not.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Lazy from "../../core/Lazy.js"
import * as ProviderName from "../../model/ProviderName.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

export interface GivenFlags {
  /** By provider: the address outlives a model of another one. */
  readonly baseUrls: BaseUrls
  /** Null where it goes on without one; undefined where its journal says it. */
  readonly profile: string | null | undefined
}

export type BaseUrls = { readonly [Name in ProviderName.ProviderName]?: string }

/**
 * The address of a flag, for one provider: the provider of the model that the flag's own caller uses, else the session's.
 * A client that chooses another provider must not send that provider's key to this address.
 */
export const addressed = (url: string | undefined, own: string, model: string): BaseUrls => {
  const providerOf = (ref: string) => ProviderName.providers.find((name) => ref.startsWith(`${name}/`))
  const provider = providerOf(own) ?? providerOf(model)
  return provider === undefined || url === undefined ? {} : { [provider]: url }
}

/** Nothing if there are none, or if the file cannot be read: then the session has what its journal says. */
export const read = ({ folder }: UserLocation.Folder, id: string): GivenFlags | undefined =>
  allIn(fileIn(folder)).find((one) => one.session === id)

/** If they cannot be kept, nothing fails. */
export const write = (place: UserLocation.Folder, id: string, { baseUrls, profile }: GivenFlags): Effect.Effect<void> =>
  Effect.zipRight(
    UserLocation.prepare(place),
    Effect.try(() => {
      const file = fileIn(place.folder)
      const others = allIn(file).filter(({ session }) => session !== id)
      const all = [...others, { session: id, baseUrls, profile }].slice(-most)
      UserLocation.replace(file, `${JSON.stringify({ version: 1, sessions: all }, undefined, 2)}\n`)
    })
  ).pipe(Effect.ignore)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Sessions that are remembered, the last ones. */
const most = 500

const fileIn = (folder: string): string => path.join(folder, "given.json")

const decode = Lazy.make(() =>
  Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({
        version: Schema.Literal(1),
        sessions: Schema.Array(
          Schema.Struct({
            session: Schema.String,
            baseUrls: Schema.partialWith(
              Schema.Record({ key: Schema.Literal(...ProviderName.providers), value: Schema.String }),
              { exact: true }
            ),
            profile: Schema.optional(Schema.NullOr(Schema.String))
          })
        )
      })
    )
  )
)

const allIn = (file: string): ReadonlyArray<GivenFlags & { readonly session: string }> => {
  const content = OwnFile.read(file, OwnFile.maxSettings)
  if (content._tag !== "Text") return []
  return Option.match(decode(content.text), {
    onNone: () => [],
    onSome: ({ sessions }) => sessions.map(({ baseUrls, profile, session }) => ({ session, profile, baseUrls }))
  })
}
