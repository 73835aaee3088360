/** The person who runs a command, named as the operating system knows them. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as os from "node:os"
import * as RemoteInteractor from "../../channel/RemoteInteractor.js"

/**
 * Of the account that this process has: never of the environment, where anybody may call themselves anything. An account
 * without a name, as containers have them, is told by its number.
 */
export const name: Effect.Effect<string> = Effect.sync(() => {
  const known = nameOfAccount()
  return isName(known) ? known : `user ${process.getuid?.() ?? "without a name"}`
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isName = Schema.is(RemoteInteractor.Name)

const nameOfAccount = (): string | undefined => {
  try {
    return os.userInfo().username
  } catch {
    return undefined
  }
}
