/** `assent keys`: who may use a cluster, for which tenant, and how much. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as StoreAddress from "../../host/local/StoreAddress.js"
import * as ConfigurationInvalid from "../../host/local/ConfigurationInvalid.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Settings from "../../host/Settings.js"
import * as Api from "../../http/Api.js"
import * as Tenancy from "../../http/Tenancy.js"
import * as Output from "../../tui/process/Output.js"
import type { Key, Keys } from "../../cluster/Keys.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"

export const run = ({ flags, words }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const [verb = "list", name, ...rest] = words
    const isMisused =
      CommandTable.verbOf("keys", words) === undefined ||
      (verb === "list" || verb === "rotate-node-secret" ? name !== undefined : name === undefined) ||
      (verb !== "limit" && rest.length > 0)
    if (isMisused) return yield* misuse(CommandTable.takes("keys", words))
    if ((verb === "add" || verb === "limit") && !Tenancy.isTenant(name ?? ""))
      return yield* misuse(notTenant(name ?? ""))
    const store = yield* Settings.databaseOf(flags)
    const database = store && (yield* Effect.mapError(StoreAddress.parse(Redacted.value(store)), misuse))
    if (database === undefined) return yield* misuse(noDatabase)
    const { open } = yield* Effect.promise(() => import("../../cluster/Keys.js"))
    const keys = yield* Effect.mapError(open(database.url), ({ message }) => ConfigurationInvalid.make(message))
    return yield* Effect.catchTags(act(keys, flags, verb, name ?? "", rest), {
      StoreUnusable: ({ message }) => ConfigurationInvalid.make(message),
      StoreUnwritable: ({ message }) => ConfigurationInvalid.make(message)
    })
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const misuse = (message: string) => new Arguments.UsageError({ message })

const noDatabase =
  "Keys are in the database of a cluster. Give its address in ASSENT_DATABASE_URL, such as postgres://user@host:5432/database."

const notTenant = (name: string) =>
  `${JSON.stringify(name)} cannot name a tenant. Use letters in lower case, digits, - and _; 32 at most.`

const noSubject = "Say in --subject whose key it is: the audit names them. Such as --subject ann."

const act = (keys: Keys, flags: Arguments.Flags, verb: string, name: string, rest: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    switch (verb) {
      case "add": {
        const { may, role: roles = [], subject = "" } = flags
        if (subject.trim() === "") return yield* misuse(noSubject)
        const { key, text } = yield* keys.add({
          tenant: name,
          subject,
          roles,
          may: yield* Either.mapLeft(Tenancy.permitsIn(may), misuse)
        })
        yield* Output.notice(`key ${key.id} ${accountOf(key)}. It is shown once; the database has its SHA-256 alone.`)
        yield* say([Redacted.value(text)])
        return ExitCode.completed
      }
      case "revoke": {
        const revoked = yield* keys.revoke(name)
        if (revoked === undefined)
          return yield* misuse(`There is no key ${JSON.stringify(name)} that counts. assent keys shows all of them.`)
        yield* Output.notice(
          `key ${revoked.id} ${accountOf(revoked)} is revoked. Every node refuses it within 10 seconds, and ends its streams within 30.`
        )
        return ExitCode.completed
      }
      case "limit": {
        const limits = yield* changed(yield* keys.limits(name), rest)
        if (rest.length > 0) yield* keys.limit(name, limits)
        const counts = (yield* keys.list).some(({ revoked, tenant }) => tenant === name && revoked === undefined)
        if (!counts)
          yield* Output.notice(`no key of ${name} counts, so nobody has its limits. assent keys shows all tenants.`)
        yield* say(limitNames.map((one) => `${one.padEnd(8)}  ${limits[one] ?? "none"}`))
        return ExitCode.completed
      }
      case "rotate-node-secret": {
        yield* keys.rotateNodeSecret
        yield* Output.notice("the nodes get a new secret. The former one counts nowhere after 30 seconds.")
        return ExitCode.completed
      }
      default: {
        const all = yield* keys.list
        if (all.length === 0)
          yield* Output.notice("there is no key yet: callers need the token of the server, and have all sessions.")
        yield* say(all.map(lineOf))
        return ExitCode.completed
      }
    }
  })

const say = (lines: ReadonlyArray<string>) => Output.write("stdout", lines.map((line) => `${line}\n`).join(""))

const accountOf = ({ subject, tenant }: Key) => (subject === tenant ? `of ${tenant}` : `of ${tenant} for ${subject}`)

const lineOf = (key: Key): string =>
  [
    key.id,
    key.revoked === undefined ? "counts " : "revoked",
    key.tenant,
    key.subject,
    key.roles.length === 0 ? "no roles" : `roles ${key.roles.join(",")}`,
    Api.Verb.literals.every((verb) => key.may.includes(verb)) ? "may do everything" : `may ${key.may.join(",")}`,
    new Date(key.created).toISOString().slice(0, 10)
  ].join("  ")

const limitNames = ["sessions", "turns", "tokens", "requests"] as const

/** `turns=4 sessions=none` */
const changed = (limits: Api.Limits, words: ReadonlyArray<string>) =>
  Effect.reduce(words, limits, (limits, word) => {
    const [, name, value = ""] = /^(\w+)=(none|\d{1,12})$/.exec(word) ?? []
    const limit = limitNames.find((one) => one === name)
    return limit === undefined
      ? misuse(
          `${JSON.stringify(word)} is no limit. Give one such as sessions=100, turns=4, tokens=5000000, requests=20 or turns=none.`
        )
      : Effect.succeed({ ...limits, [limit]: value === "none" ? undefined : Number(value) })
  })
