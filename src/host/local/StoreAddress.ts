/**
 * The address of a PostgreSQL database in which sessions are kept. It may hold a password, so it is kept redacted and shown
 * without.
 */
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"

/** A database. As a text it has no password. */
export class Database {
  constructor(
    readonly url: Redacted.Redacted,
    private readonly shown: string
  ) {}

  toString(): string {
    return this.shown
  }
}

/** Whether a text means a database, and no file. */
export const isOne = (text: string): boolean => /^postgres(ql)?:/i.test(text)

/** Nothing where the text names a file. A left says what is wrong, and does not repeat the text. */
export const parse = (text: string): Either.Either<Database | undefined, string> => {
  if (!isOne(text)) {
    return isOther(text)
      ? Either.left(
          "Assent stores sessions in a file or in PostgreSQL. Use a path, or postgres://user@host:5432/database."
        )
      : Either.right(undefined)
  }
  const address = read(text)
  return address === undefined
    ? Either.left(
        "The address of the PostgreSQL database cannot be read. Give one such as postgres://user@host:5432/database; " +
          "in user and password, characters such as @, / and % are written as %40, %2F and %25."
      )
    : Either.right(new Database(Redacted.make(text), address.shown))
}

/** As it can be shown, and given again by whoever knows the password: an address without it. */
export const shown = (text: string): string => {
  if (isOne(text)) return read(text)?.shown ?? "postgres://…"
  return isOther(text) ? text.replace(/:\/\/.*$/s, "://…") : text
}

/** The password in it, which is masked wherever it might be told. */
export const passwordIn = (text: string): string | undefined => (isOne(text) ? read(text)?.password : undefined)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An address of something else, which may hold a password: it is neither a file's name nor shown. */
const isOther = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text)

interface Address {
  readonly password: string | undefined
  readonly shown: string
}

/** Parameters that hold no secret. */
const harmless = new Set(["host", "port", "user", "dbname", "options", "sslmode", "application_name"])

/** What stands in for the host of a socket, which is a parameter. */
const noHost = "socket"

const read = (text: string): Address | undefined => {
  if (!/^postgres(ql)?:\/\/\S+$/i.test(text)) return undefined
  const whole = text.replace("@/", `@${noHost}/`)
  if (!URL.canParse(whole)) return undefined
  const url = new URL(whole)
  const [user, name, userinfo] = [url.username, url.pathname, url.password].map(decoded)
  if (user === undefined || name === undefined || userinfo === undefined) return undefined
  const password = userinfo === "" ? (url.searchParams.get("password") ?? "") : userinfo
  url.password = ""
  for (const parameter of [...url.searchParams.keys()]) {
    if (!harmless.has(parameter)) url.searchParams.delete(parameter)
  }
  const shown = whole === text ? url.href : url.href.replace(`@${noHost}/`, "@/")
  return { password: password === "" ? undefined : password, shown }
}

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
