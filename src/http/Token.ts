/**
 * The token of a server: a file that only its owner can read. Whoever has the token is that owner.
 *
 * It is read again when the file changes, so that a token that was rotated does not count any more.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { statSync } from "node:fs"
import { dirname } from "node:path"
import * as ConfigurationInvalid from "../host/local/ConfigurationInvalid.js"
import * as OwnFile from "../host/local/OwnFile.js"
import * as UserLocation from "../host/local/UserLocation.js"
import * as Api from "./Api.js"

/** A token that is kept in a file. */
export interface Token {
  readonly file: string
  /** For the person who starts the server. */
  readonly value: Effect.Effect<Redacted.Redacted, ConfigurationInvalid.ConfigurationInvalid>
  /** Whether it is the token that counts now. It takes as long for every text. */
  readonly isIt: (text: Redacted.Redacted) => Effect.Effect<boolean>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The file, with a new token in it if there is none. */
export const open = (file: string): Effect.Effect<Token, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.gen(function* () {
    if (!OwnFile.isThere(file)) yield* rotate(file)
    let known = yield* read(file)
    const current = Effect.suspend(() =>
      stampOf(file) === known.stamp ? Effect.succeed(known) : Effect.map(read(file), (found) => (known = found))
    )
    return {
      file,
      value: Effect.map(current, ({ value }) => value),
      isIt: (text) =>
        // A file that is gone or damaged has no token, and nothing is it.
        Effect.match(current, {
          onFailure: () => false,
          onSuccess: ({ digest }) => timingSafeEqual(digest, digestOf(Redacted.value(text)))
        })
    }
  })

/** Makes a new token. Servers that have the file open take only that one from now on. */
export const rotate = (file: string): Effect.Effect<void, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.try({
    try: () => {
      UserLocation.makeAll(dirname(file))
      UserLocation.replace(file, `${randomBytes(24).toString("base64url")}\n`)
    },
    catch: (error) =>
      ConfigurationInvalid.make(`The token cannot be written to ${file}: ${UserLocation.reasonOf(error)}.`)
  })

/** The default place of the token. */
export const defaultFile: Effect.Effect<string, ConfigurationInvalid.ConfigurationInvalid> = Effect.map(
  UserLocation.configDirectory,
  (directory) => `${directory}/serve-token`
)

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** Whoever has the token is this person. */
export const layer = (token: Token, person: Api.Person): Layer.Layer<Api.Authentication> =>
  Layer.succeed(Api.Authentication, {
    token: (given) =>
      Effect.flatMap(token.isIt(given), (isIt) =>
        isIt
          ? Effect.succeed(person)
          : new Api.Unauthorized({
              message: `The token is missing or wrong. Send it as "Authorization: Bearer …"; it is in ${token.file}.`
            })
      )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Known {
  readonly stamp: string | undefined
  readonly value: Redacted.Redacted
  readonly digest: Buffer
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** Changes with the file. */
const stampOf = (file: string): string | undefined => {
  const found = statSync(file, { throwIfNoEntry: false })
  return found && `${found.ino} ${found.mtimeMs} ${found.size}`
}

/** 22 characters of base64 are 128 bits. */
const shortest = 22

const read = (file: string): Effect.Effect<Known, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.suspend(() => {
    const stamp = stampOf(file)
    const content = OwnFile.readGiven(file, 1_000)
    const refused = (reason: string) =>
      ConfigurationInvalid.make(`The token file ${file} ${reason}. Make a new one with: assent serve token rotate`)
    if (content._tag !== "Text")
      return Effect.fail(refused(content._tag === "Absent" ? "is not there" : content.reason))
    const text = content.text.trim()
    if (text.length < shortest || /\s/.test(text)) {
      return Effect.fail(refused(`has no token of at least ${shortest} characters without spaces`))
    }
    return Effect.succeed({ stamp, value: Redacted.make(text), digest: digestOf(text) })
  })
