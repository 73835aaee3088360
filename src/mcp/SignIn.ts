/**
 * Signing in to a tool server by OAuth: the client that the SDK asks, and the loopback address to which a browser returns.
 *
 * A connection only uses and renews what is stored. A person signs in by `McpServer.signIn`, which shows the address of the
 * page as a question; a session asks the same when a server wants it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createServer } from "node:http"
import type { Credentials } from "../tool/ServerSettings.js"

export interface Options {
  readonly credentials: Credentials
  /** A client that the person registered; else Assent registers itself. */
  readonly client: { readonly id: string; readonly secret: string | undefined } | undefined
  readonly scope: string | undefined
  readonly declareSecret: ((secret: Redacted.Redacted) => void) | undefined
  /** Where the browser returns to, while a person signs in. */
  readonly callback: Callback | undefined
}

/** The loopback address of one sign-in. */
export interface Callback {
  readonly address: string
  readonly state: string
}

// -----------------------------------------------------------------------------------------------------------------
// the client of OAuth
// -----------------------------------------------------------------------------------------------------------------

/** An `OAuthClientProvider` of the SDK, without its types. */
export class Provider {
  /** Why a person has to sign in, once that is so. */
  needed = false
  /** The page at which a person signs in. */
  page: URL | undefined
  private registered: unknown
  private verifier = ""
  private discovery: unknown
  private used: string | undefined

  constructor(private readonly options: Options) {}

  get redirectUrl(): string {
    return this.options.callback?.address ?? "http://127.0.0.1/callback"
  }

  get clientMetadata() {
    const { client, scope } = this.options
    return {
      client_name: "Assent",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: client?.secret === undefined ? "none" : "client_secret_post",
      ...(scope === undefined ? {} : { scope })
    }
  }

  state(): string {
    return this.options.callback?.state ?? this.refuse()
  }

  clientInformation(context?: { readonly issuer: string }): unknown {
    const { callback, client } = this.options
    const stored = this.stored()
    // Registering is the beginning of signing in, too.
    if (callback === undefined && stored?.tokens.refresh_token === undefined) return this.refuse()
    if (client !== undefined) {
      return {
        ...context,
        client_id: client.id,
        ...(client.secret === undefined ? {} : { client_secret: client.secret })
      }
    }
    return callback === undefined ? stored?.client : this.registered
  }

  saveClientInformation(client: unknown): void {
    this.registered = client
  }

  tokens(): unknown {
    // A request begins with its token: what an earlier one needed is over.
    this.needed = false
    // A new sign-in neither uses nor ends the one before it.
    return this.options.callback === undefined ? this.stored()?.tokens : undefined
  }

  saveTokens(tokens: unknown): void {
    const client = this.options.callback === undefined ? this.stored()?.client : this.registered
    const text = JSON.stringify({ client, tokens })
    this.options.credentials.write(text)
    this.declare(text)
  }

  redirectToAuthorization(page: URL): void {
    if (this.options.callback === undefined) this.refuse()
    this.page = page
  }

  saveCodeVerifier(verifier: string): void {
    this.verifier = verifier
  }

  codeVerifier(): string {
    return this.verifier
  }

  discoveryState(): unknown {
    return this.discovery
  }

  saveDiscoveryState(discovery: unknown): void {
    this.discovery = discovery
  }

  invalidateCredentials(): void {
    const { callback, credentials } = this.options
    this.discovery = undefined
    this.registered = undefined
    // Another process may have renewed them meanwhile.
    if (callback === undefined && this.used !== undefined && credentials.read() === this.used) {
      credentials.write(undefined)
    }
  }

  private stored(): Stored | undefined {
    const text = this.options.credentials.read()
    this.used = text
    return text === undefined ? undefined : this.declare(text)
  }

  private declare(text: string): Stored | undefined {
    const stored = Option.getOrUndefined(decode(text))
    const { declareSecret = () => undefined } = this.options
    for (const secret of [
      stored?.tokens.access_token,
      stored?.tokens.refresh_token,
      stored?.tokens.id_token,
      stored?.client?.client_secret
    ]) {
      if (secret !== undefined) declareSecret(Redacted.make(secret))
    }
    return stored
  }

  private refuse(): never {
    this.needed = true
    throw new Error("A person has to sign in.")
  }
}

/** What these scopes and those of stored tokens are for together. */
export const union = (credentials: Credentials, ...scopes: ReadonlyArray<string | undefined>): string | undefined => {
  const stored = credentials.read()
  const scope = stored === undefined ? undefined : Option.getOrUndefined(decode(stored))?.tokens["scope"]
  const all = [typeof scope === "string" ? scope : "", ...scopes].flatMap((text = "") => text.split(" "))
  const words = [...new Set(all.filter((word) => word !== ""))]
  return words.length === 0 ? undefined : words.join(" ")
}

// -----------------------------------------------------------------------------------------------------------------
// the way back
// -----------------------------------------------------------------------------------------------------------------

/** Waits at a loopback address for the browser. A visit without the state of this sign-in is refused. */
export const listen = (
  port: number
): Effect.Effect<Callback & { readonly arrived: Effect.Effect<URLSearchParams> }, string, Scope.Scope> =>
  Effect.gen(function* () {
    const state = crypto.randomUUID() + crypto.randomUUID()
    let arrive: (params: URLSearchParams) => void = () => undefined
    const arrival = new Promise<URLSearchParams>((resolve) => (arrive = resolve))
    const server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1")
      const isOurs = pathname === "/callback" && request.method === "GET"
      const found = isOurs ? read(searchParams, state) : "There is no such page."
      const refusal = typeof found === "string" ? found : undefined
      response.writeHead(refusal === undefined ? 200 : 400, {
        "content-type": "text/plain; charset=utf-8",
        connection: "close"
      })
      response.end(refusal ?? "Thank you. You can close this page and return to Assent.")
      if (typeof found !== "string") arrive(found)
    })
    yield* Effect.acquireRelease(
      Effect.async<void, string>((resume) => {
        server.once("error", ({ message }) => resume(Effect.fail(`cannot listen for your browser: ${message}`)))
        server.listen(port, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    const chosen = typeof address === "object" && address !== null ? address.port : port
    return { address: `http://127.0.0.1:${chosen}/callback`, state, arrived: Effect.promise(() => arrival) }
  })

/** What a browser brought back, from the address at which it ended. A string says why it is refused. */
export const read = (params: URLSearchParams, state: string): URLSearchParams | string => {
  if (params.get("state") !== state) return "The state is not that of this sign-in, so the visit is refused."
  return params.has("code") || params.has("error") ? params : "There is neither a code nor an error in the address."
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const text = Schema.optionalWith(Schema.String, { exact: true })

const Stored = Schema.Struct({
  client: Schema.optionalWith(
    Schema.Struct({ client_secret: text }, Schema.Record({ key: Schema.String, value: Schema.Unknown })),
    { exact: true }
  ),
  tokens: Schema.Struct(
    { access_token: Schema.String, refresh_token: text, id_token: text },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
})
type Stored = typeof Stored.Type

const decode = Schema.decodeUnknownOption(Schema.parseJson(Stored))
