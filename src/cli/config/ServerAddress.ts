/**
 * Where a server of this person is: it writes its address beside its token, and `--attach` finds it there.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import type { ConfigurationInvalid } from "../../host/local/ConfigurationInvalid.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as UserLocation from "../../host/local/UserLocation.js"
import type * as ApiClient from "../../http/ApiClient.js"
import * as Token from "../../http/Token.js"
import * as Arguments from "./Arguments.js"
import * as Flags from "./Flags.js"

/** The file with the token. */
export const tokenFile = ({ "token-file": file }: Arguments.Flags): Effect.Effect<string, ConfigurationInvalid> =>
  file === undefined ? Token.defaultFile : Effect.sync(() => path.resolve(file))

/** Says where a server is, until the scope closes. Who cannot write there is found by its address alone. */
export const announce = (file: string, url: string): Effect.Effect<void, never, Scope.Scope> => {
  const place = placeOf(file)
  return Effect.asVoid(
    Effect.acquireRelease(Effect.ignore(Effect.try(() => UserLocation.replace(place, `${url}\n`))), () =>
      // Another server may have begun meanwhile.
      Effect.ignore(Effect.try(() => addressIn(place) === url && fs.rmSync(place)))
    )
  )
}

/** The server that `--attach` names, with the token of its address, else of the file. */
export const of = (
  flags: Arguments.Flags
): Effect.Effect<ApiClient.Options, Arguments.UsageError | ConfigurationInvalid> =>
  Effect.gen(function* () {
    const file = yield* tokenFile(flags)
    const given = flags.attach ?? ""
    const address = yield* addressOf(given === "" || given === "auto" ? yield* announced(file) : given)
    const isHere = /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])$/.test(address.hostname)
    if (!isHere && address.protocol !== "https:")
      return yield* misuse(`The token would travel in clear text to ${address.host}. Use an address with https.`)
    const url = `${address.protocol}//${address.host}`
    const [, token] = /^#token=(\S+)$/.exec(address.hash) ?? []
    if (token !== undefined) return { url, token: Effect.succeed(Redacted.make(token)) }
    // The token of this machine's server is nothing for others.
    if (!isHere && flags["token-file"] === undefined)
      return yield* misuse(`Give the token of ${address.host} behind its address (#token=…), or as --token-file FILE.`)
    if (!OwnFile.isThere(file)) return yield* misuse(`There is no token in ${file}. Start a server with: assent serve`)
    const kept = yield* Token.open(file)
    return { url, token: Effect.orElseSucceed(kept.value, () => Redacted.make("")) }
  })

/** Refuses flags that are the server's to have. */
export const alone = (
  flags: Arguments.Flags,
  taken: ReadonlyArray<keyof Flags.Flags>
): Effect.Effect<void, Arguments.UsageError> => {
  const other = Flags.names.find((name) => flags[name] !== undefined && !taken.includes(name))
  return other === undefined ? Effect.void : misuse(`--${other} does not go with --attach: give it to assent serve.`)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const misuse = (message: string) => new Arguments.UsageError({ message })

const placeOf = (file: string): string => `${file}.url`

const addressIn = (place: string): string | undefined => {
  const content = OwnFile.readGiven(place, 1_000)
  return content._tag === "Text" ? content.text.trim() : undefined
}

const announced = (file: string): Effect.Effect<string, Arguments.UsageError> => {
  const address = addressIn(placeOf(file))
  return address !== undefined
    ? Effect.succeed(address)
    : misuse("No server of yours is known here. Start one with assent serve, or give its address: --attach URL")
}

const addressOf = (text: string): Either.Either<URL, Arguments.UsageError> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && (url.protocol === "http:" || url.protocol === "https:") && url.username === ""
    ? Either.right(url)
    : Either.left(
        misuse("--attach takes an address such as http://127.0.0.1:4096/#token=…, or nothing for your own server.")
      )
}
