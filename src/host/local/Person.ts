/** The person who runs a command, named as the operating system knows them. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as os from "node:os"
import * as Principal from "../../interaction/Principal.js"

/**
 * The account name of this process. It is never taken from the environment, where it could be set to any name. An
 * account without a name, as in containers, is named by its number.
 */
export const name: Effect.Effect<string> = Effect.sync(() => {
  const nameless = () => `user ${process.getuid?.() ?? "without a name"}`
  return Either.getOrElse(Principal.of(nameOfAccount() ?? ""), nameless)
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nameOfAccount = (): string | undefined => {
  try {
    return os.userInfo().username
  } catch {
    return undefined
  }
}
