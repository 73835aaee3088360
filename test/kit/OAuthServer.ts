/** A tool server over HTTP that wants a sign-in by OAuth, with its own authorization server. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"

export interface OAuthServer {
  /** Of the tool server. */
  readonly url: string
  /** What came, one line each. */
  readonly log: Array<string>
  /** Ends access tokens; without `all` they can be renewed. */
  readonly expire: (all?: "all") => void
  /** What the browser of a person does at a page: the address at which it ends. */
  readonly visit: (page: string, change?: (back: URL) => void) => Promise<string>
}

export interface Options {
  /** The page says no. */
  readonly refuses?: boolean
  /** Calls of tools want this scope, beside the one of a sign-in without any. */
  readonly wider?: string
  /** The authorization server is somewhere else. */
  readonly apart?: boolean
  /** Only this client is known; nobody can register. */
  readonly client?: { readonly id: string; readonly secret: string }
}

export const make = (options: Options = {}): Effect.Effect<OAuthServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const codes = new Map<string, { readonly challenge: string; readonly redirect: string; readonly scope: string }>()
    const access = new Map<string, string>()
    const refresh = new Set<string>()
    let number = 0

    const authorize = (url: URL): Sent => {
      const { searchParams: asked } = url
      const redirect = asked.get("redirect_uri") ?? ""
      const back = new URL(redirect)
      back.searchParams.set("state", asked.get("state") ?? "")
      back.searchParams.set("iss", issuer)
      if (options.refuses === true) back.searchParams.set("error", "access_denied")
      else {
        const code = `code-${++number}`
        codes.set(code, {
          challenge: asked.get("code_challenge") ?? "",
          redirect,
          scope: asked.get("scope") ?? "basic"
        })
        back.searchParams.set("code", code)
      }
      return { status: 302, headers: { location: back.href } }
    }

    const issue = (scope: string): Sent => {
      const tokens = { access_token: `access-secret-${++number}`, refresh_token: `refresh-secret-${number}` }
      access.set(tokens.access_token, scope)
      refresh.add(tokens.refresh_token)
      return json({ ...tokens, scope, token_type: "Bearer", expires_in: 3600 })
    }

    const token = (form: URLSearchParams): Sent => {
      const { client } = options
      if (client !== undefined && form.get("client_secret") !== client.secret)
        return json({ error: "invalid_client" }, 401)
      if (form.get("grant_type") === "refresh_token") {
        return refresh.delete(form.get("refresh_token") ?? "") ? issue("basic") : json({ error: "invalid_grant" }, 400)
      }
      const code = form.get("code") ?? ""
      const known = codes.get(code)
      codes.delete(code)
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url")
      const isRight = known?.challenge === challenge && known.redirect === form.get("redirect_uri")
      return isRight ? issue(known.scope) : json({ error: "invalid_grant" }, 400)
    }

    const authorization = (url: URL, body: string): Sent | undefined => {
      switch (url.pathname) {
        case "/.well-known/oauth-authorization-server":
          return json({
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            ...(options.client === undefined ? { registration_endpoint: `${issuer}/register` } : {}),
            response_types_supported: ["code"],
            code_challenge_methods_supported: ["S256"],
            token_endpoint_auth_methods_supported: ["none", "client_secret_post"],
            authorization_response_iss_parameter_supported: true
          })
        case "/register":
          return json({ ...(JSON.parse(body) as object), client_id: `client-${++number}` }, 201)
        case "/authorize":
          return authorize(url)
        case "/token":
          return token(new URLSearchParams(body))
        default:
          return undefined
      }
    }

    const tools = (url: URL, body: string, { headers, method }: IncomingMessage): Sent => {
      if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
        return json({ resource: `${home}/mcp`, authorization_servers: [issuer] })
      }
      if (url.pathname !== "/mcp") return { status: 404 }
      if (!access.has((headers.authorization ?? "").replace("Bearer ", ""))) {
        const metadata = `${home}/.well-known/oauth-protected-resource/mcp`
        return { status: 401, headers: { "www-authenticate": `Bearer resource_metadata="${metadata}"` } }
      }
      if (method !== "POST") return { status: 405 }
      const { id, method: called, params } = JSON.parse(body) as Called
      const scopes = (access.get((headers.authorization ?? "").replace("Bearer ", "")) ?? "").split(" ")
      if (called === "tools/call" && options.wider !== undefined && !scopes.includes(options.wider)) {
        const challenge = `Bearer error="insufficient_scope", scope="${options.wider}"`
        return { status: 403, headers: { "www-authenticate": challenge } }
      }
      if (id === undefined) return { status: 202 }
      switch (called) {
        case "initialize":
          return reply(id, {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {} },
            serverInfo: { name: "guarded", version: "1" }
          })
        case "tools/list":
          return reply(id, { tools: [{ name: "whoami", inputSchema: { type: "object" } }] })
        case "tools/call":
          return reply(id, { content: [{ type: "text", text: `you, ${String(params?.["name"])}` }] })
        default:
          return json({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } })
      }
    }

    const listen = (answer: (url: URL, body: string, request: IncomingMessage) => Sent) =>
      Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<{ readonly address: string; readonly close: () => void }>((resolve) => {
              const server = createServer((request, response) => {
                let body = ""
                request.on("data", (piece) => (body += String(piece)))
                request.on("end", () => {
                  const url = new URL(request.url ?? "/", "http://127.0.0.1")
                  const seen =
                    request.headers["x-key"] === undefined ? "" : ` x-key=${String(request.headers["x-key"])}`
                  log.push(`${request.method} ${url.pathname}${seen}`)
                  const { body: sent, headers, status } = answer(url, body, request)
                  response.writeHead(status, headers).end(sent)
                })
              })
              server.listen(0, "127.0.0.1", () => {
                const bound = server.address()
                const port = typeof bound === "object" && bound !== null ? bound.port : 0
                resolve({
                  address: `http://127.0.0.1:${port}`,
                  close: () => {
                    server.close()
                    server.closeAllConnections()
                  }
                })
              })
            })
        ),
        ({ close }) => Effect.sync(close)
      )

    const own = yield* listen((url, body, request) => authorization(url, body) ?? tools(url, body, request))
    const home = own.address
    const issuer =
      options.apart === true
        ? (yield* listen((url, body) => authorization(url, body) ?? { status: 404 })).address
        : home
    return {
      url: `${home}/mcp`,
      log,
      expire: (all) => {
        access.clear()
        if (all === "all") refresh.clear()
      },
      visit: async (page, change) => {
        const { headers } = await fetch(page, { redirect: "manual" })
        const back = new URL(headers.get("location") ?? "")
        change?.(back)
        return back.href
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------

interface Sent {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

interface Called {
  readonly id?: unknown
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}

const json = (value: unknown, status = 200): Sent => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value)
})

const reply = (id: unknown, result: unknown): Sent => json({ jsonrpc: "2.0", id, result })
