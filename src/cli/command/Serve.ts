/** `assent serve`: sessions over HTTP until a signal ends it. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { lookup } from "node:dns/promises"
import * as path from "node:path"
import * as InternetAddress from "../../core/InternetAddress.js"
import { fileURLToPath } from "node:url"
import * as Host from "../../host/Host.js"
import * as HttpProxy from "../../host/HttpProxy.js"
import * as AuditLocation from "../../host/local/AuditLocation.js"
import * as ConfigurationInvalid from "../../host/local/ConfigurationInvalid.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as Person from "../../host/local/Person.js"
import * as StoreAddress from "../../host/local/StoreAddress.js"
import * as Settings from "../../host/Settings.js"
import * as SettingsParts from "../../host/SettingsParts.js"
import * as SharedWorkspace from "../../host/SharedWorkspace.js"
import * as Server from "../../http/Server.js"
import * as Token from "../../http/Token.js"
import * as Arguments from "../config/Arguments.js"
import * as ServerAddress from "../config/ServerAddress.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Interrupts from "../../tui/process/Interrupts.js"
import * as Output from "../../tui/process/Output.js"

export const run = (invocation: Arguments.Invocation) =>
  invocation.words[0] === "token" ? token(invocation) : serve(invocation)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Beside the built program. */
const web = fileURLToPath(new URL("../../web", import.meta.url))

const misuse = (message: string) => new Arguments.UsageError({ message })

const token = ({ flags, words }: Arguments.Invocation) =>
  Effect.gen(function* () {
    if (words[1] !== "rotate" || words.length > 2) return yield* misuse("assent serve token takes: rotate.")
    const file = yield* ServerAddress.tokenFile(flags)
    yield* Token.rotate(file)
    yield* Output.notice(`the new token is in ${file}; the old one is no longer valid`)
    return ExitCode.completed
  })

const serve = ({ flags, words }: Arguments.Invocation) =>
  Effect.scoped(
    Effect.gen(function* () {
      if (flags.cluster === true) return yield* node(flags, words)
      if (flags["model-keys"] !== undefined || flags["own-model-keys"] === true) return yield* misuse(noTenants)
      const { host: _, workspace, ...overrides } = flags
      const workspaces = yield* Effect.forEach([workspace ?? ".", ...words], directoryOf)
      const notify = yield* Settings.notify
      // Before the host: what ends the program must end it gently from the start.
      const signal = yield* Interrupts.listenForEnd
      const made = yield* Host.make({
        workspaces,
        overrides,
        evictAfter: "10 minutes",
        notify: (sentence) => Output.logOnce(sentence)
      })
      const listens = yield* listening(made, flags, workspaces)
      if (notify !== undefined) yield* notifying(made, notify, flags, listens.server.url)
      return yield* serveUntil(signal, listens)
    })
  )

/** Calls the webhook of the person's settings about questions that wait. */
const notifying = (made: Host.Service, { after, webhook }: Settings.Notify, flags: Arguments.Flags, url: string) =>
  Effect.gen(function* () {
    const Notifications = yield* Effect.promise(() => import("../../http/Notifications.js"))
    const { stateDirectory } = yield* Settings.storage(flags)
    yield* Notifications.run(made, {
      webhook,
      after,
      console: consoleOf(flags, url),
      file: path.join(stateDirectory, "notified.json"),
      fetch: HttpProxy.fetchOf(yield* HttpProxy.load),
      warn: Output.logOnce
    }).pipe(Effect.mapError(({ message }) => misuse(message)))
  })

/** Where people see the web console: at the proxy in front, if there is one. */
const consoleOf = ({ "allow-host": [proxy] = [] }: Arguments.Flags, url: string): string =>
  proxy === undefined ? url : `https://${proxy.replace(/:443$/, "")}`

/** A server of the host at the port that flags name, until the scope closes; with its address and token as a line. */
export const listening = (made: Host.Service, flags: Arguments.Flags, workspaces: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { host = "127.0.0.1" } = flags
    const port = yield* portOf(flags.port)
    const token = yield* Token.open(yield* ServerAddress.tokenFile(flags))
    const name = yield* Person.name
    const server = yield* Server.make({ host, port, workspaces, allowHosts: flags["allow-host"], web }).pipe(
      Effect.provide(Token.layer(token, { name })),
      Effect.provideService(Host.Host, made),
      Effect.catchTags({
        ServeError: ({ cause }) => notListening(host, port, cause),
        WorkspaceRefused: ({ message }) => misuse(message),
        StoreUnusable: ({ message }) => ConfigurationInvalid.make(message)
      })
    )
    return { server, token, line: yield* lineOf(server, token) }
  })

/** The line that a server prints. */
const lineOf = ({ url }: Pick<Server.Server, "url">, { value }: Token.Token) =>
  Effect.map(value, (secret) => `${url}/#token=${Redacted.value(secret)}`)

interface Listening {
  readonly server: Pick<Server.Server, "end" | "url">
  readonly token: Token.Token
  readonly line: string
}

/** The second signal ends it at once. */
const serveUntil = (signal: Effect.Effect<void>, { line, server, token }: Listening) =>
  Effect.gen(function* () {
    yield* ServerAddress.announce(token.file, server.url)
    yield* Output.write("stdout", `${line}\n`)
    yield* signal
    yield* Effect.raceFirst(server.end, signal)
    return ExitCode.completed
  })

/** A node of a cluster. Without `--workspace` its sessions have no tools for files and commands. */
const node = (flags: Arguments.Flags, words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { workspace, ...given } = flags
    const addresses = yield* Settings.nodeAddresses
    const listen = yield* addressOf("ASSENT_LISTEN", addresses.listen ?? "127.0.0.1:4096")
    const host = flags.host ?? listen.host
    const port = flags.port === undefined ? listen.port : yield* portOf(flags.port)
    const advertise = yield* addressOf("ASSENT_NODE_ADDRESS", addresses.advertise ?? "")
    if (flags["insecure-runner"] !== true && (yield* isPublic(advertise.host)))
      return yield* misuse(publicly(advertise))
    const hasWorkspace = workspace !== undefined || words.length > 0
    const workspaces = hasWorkspace ? yield* Effect.forEach([workspace ?? ".", ...words], directoryOf) : ["/"]
    const overrides = { ...given, "model-keys": yield* modelKeysOf(flags, workspaces) }
    const store = yield* Effect.map(Settings.databaseOf(flags), (store) => store && Redacted.value(store))
    const database = store === undefined ? undefined : yield* Either.mapLeft(StoreAddress.parse(store), misuse)
    if (store === undefined || database === undefined) return yield* misuse(noDatabase)
    const shared = hasWorkspace ? yield* Effect.forEach(workspaces, SharedWorkspace.idOf) : ["none"]
    const token = yield* Token.open(yield* ServerAddress.tokenFile(flags))
    const auditKey = yield* AuditLocation.readKey(flags.key)
    const found = yield* Settings.notify
    const notify = found && {
      ...found,
      console: consoleOf(flags, `http://${host}:${port}`),
      fetch: HttpProxy.fetchOf(yield* HttpProxy.load)
    }
    const signal = yield* Interrupts.listenForEnd
    const ClusterNode = yield* Effect.promise(() => import("../../cluster/ClusterNode.js"))
    const started = ClusterNode.over(
      {
        url: database.url,
        listen: { host, port },
        advertise,
        allowHosts: flags["allow-host"],
        keys: true,
        auditKey,
        notify
      },
      workspaces,
      (opened) =>
        Host.make({
          workspaces,
          hasWorkspace,
          openStore: () => Effect.succeed(opened),
          overrides: { ...overrides, store },
          notify: (sentence) => Output.logOnce(sentence)
        }),
      Effect.map(
        Effect.forEach(workspaces, (workspace) => SettingsParts.of({ ...overrides, workspace })),
        // Of several directories, each has a part in each digest.
        (all) => ({
          ...Arr.reduce(all, {}, SettingsParts.both),
          workspace: shared.map((id, index) => `${id} ${workspaces[index]}`).join(" ")
        })
      )
    )
    const server = yield* started.pipe(
      Effect.provide(Token.layer(token, { name: yield* Person.name })),
      Effect.catchTags({
        ServeError: ({ cause }) => notListening(host, port, cause),
        WorkspaceRefused: ({ message }) => misuse(message),
        StoreUnusable: ({ message }) => ConfigurationInvalid.make(message),
        StoreUnwritable: ({ message }) => ConfigurationInvalid.make(message)
      })
    )
    return yield* serveUntil(signal, { server, token, line: yield* lineOf(server, token) })
  })

/** The directory with the model keys of tenants. */
const modelKeysOf = (
  { "model-keys": named, "own-model-keys": isAlone }: Arguments.Flags,
  workspaces: ReadonlyArray<string>
) =>
  Effect.gen(function* () {
    if (named === undefined) return isAlone === true ? yield* misuse(noModelKeys) : undefined
    const directory = yield* directoryOf(named)
    const inside = workspaces.find((one) => OwnFile.isWithin(directory, one))
    return inside === undefined
      ? directory
      : yield* misuse(`${directory} has model keys, and no session may work in ${inside}. Move the keys elsewhere.`)
  })

const noTenants = "Only a cluster has tenants with model keys of their own. Start it with --cluster."

const noModelKeys = "Say in --model-keys DIR where the tenants' own model keys are."

const noDatabase =
  "A cluster keeps its sessions in PostgreSQL. Give the address of the database in ASSENT_DATABASE_URL, such as postgres://user@host:5432/database."

const addressOf = (name: string, text: string) => {
  const [, host = "", port = ""] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  return host === "" || Number(port) > 65_535
    ? misuse(
        text === ""
          ? `Say in ${name} where the other nodes reach this one, such as ${name}=10.0.0.5:7700.`
          : `${name} is ${JSON.stringify(text)}. Give an address and a port, such as 10.0.0.5:7700.`
      )
    : Effect.succeed({ host, port: Number(port) })
}

/** Whether machines of others may reach it. */
const isPublic = (host: string) =>
  Effect.promise(async () => {
    const found = await lookup(host, { all: true }).catch(() => [])
    return found.some(({ address }) => InternetAddress.isPublic(address))
  })

const publicly = ({ host, port }: { readonly host: string; readonly port: number }) =>
  `${host}:${port} is a public address. Nodes do not encrypt their calls, so others could read them. Give a private address in ASSENT_NODE_ADDRESS, or start with --insecure-runner.`

const portOf = (text = "4096"): Either.Either<number, Arguments.UsageError> =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535
    ? Either.right(Number(text))
    : Either.left(misuse(`${JSON.stringify(text)} is not a port. Use a number from 0 to 65535.`))

const directoryOf = (word: string) => {
  const real = OwnFile.realDirectory(path.resolve(word))
  return real === undefined ? misuse(`There is no directory ${JSON.stringify(word)}.`) : Effect.succeed(real)
}

/** Why it does not listen, and who does, where that is known. */
const notListening = (host: string, port: number, cause: unknown) =>
  Effect.gen(function* () {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined
    if (code !== "EADDRINUSE") {
      const reason = cause instanceof Error ? cause.message : String(cause)
      return yield* misuse(`Cannot listen on ${host}:${port}: ${reason}. Choose another --host or --port.`)
    }
    const other = yield* whoIs(host, port)
    return yield* misuse(`Port ${port} of ${host} is in use${other}. End that program, or choose another --port.`)
  })

const whoIs = (host: string, port: number) =>
  Effect.tryPromise(async (signal) => {
    const answer = await fetch(`http://${host}:${port}/healthz`, { signal })
    const isOurs = answer.ok && (await answer.text()).startsWith('{"ok":')
    return isOurs ? " by another assent serve" : " by a web server"
  }).pipe(
    Effect.timeout("500 millis"),
    Effect.orElseSucceed(() => "")
  )
