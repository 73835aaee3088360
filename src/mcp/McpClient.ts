/**
 * The client of the Model Context Protocol: the only file that knows the SDK. The SDK is loaded with the first server.
 *
 * A result, a question and an error of the server come out as plain data. Interruption of a call cancels the call at the
 * server. Nothing is sent twice.
 */
import type * as Sdk from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ForeignText from "../core/ForeignText.js"
import type { Provider } from "./SignIn.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** A way to a server. */
export interface Link {
  readonly transport: object
  /** Why the connection ended, as a sentence without its subject. */
  readonly reason: () => string | undefined
}

/** The address of a server behind HTTP. */
export interface Address {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch?: typeof fetch | undefined
  /** Signs in if the server wants that. */
  readonly auth?: Provider | undefined
}

/** A question of a server, as the protocol has it. */
export interface Asked {
  readonly mode: "form" | "url"
  readonly message: string
  readonly schema: unknown
  readonly url: string
}

/** The answer to a question of a server, as the protocol has it. */
export type Answer =
  | { readonly action: "accept"; readonly content?: Record<string, string | number | boolean | Array<string>> }
  | { readonly action: "decline" | "cancel" }

/** What a server wants of us beside calls. */
export interface Handlers {
  readonly ask: (asked: Asked, signal: AbortSignal) => Promise<Answer>
  /** Absolute paths. */
  readonly roots: ReadonlyArray<string>
  /** Its tools are others. */
  readonly changed: () => void
  /** It does nothing before a person signs in. */
  readonly wants: (wanted: Wanted) => void
}

/** A tool as the server describes it. */
export interface ListedTool {
  readonly name: string
  readonly description: string
  readonly schema: object
  readonly destructive: boolean
  /** The server runs the tool only as a task, which is not spoken here. */
  readonly isTask: boolean
}

/** The end of one message of a call. */
export type Reply =
  | {
      readonly _tag: "Result"
      readonly isError: boolean
      readonly content: ReadonlyArray<unknown>
      readonly structured: unknown
    }
  /** The call goes on when it is sent again with answers to these questions and with this state. */
  | {
      readonly _tag: "Asks"
      readonly questions: Readonly<Record<string, Asked | undefined>>
      readonly state: string | undefined
    }

/** What a server wants signed in for. */
export interface Wanted {
  /** Absent: for any use. */
  readonly scope: string | undefined
  /** Where the server says who signs in. */
  readonly metadata: URL | undefined
}

/** Why a call has no result. */
export interface Failure {
  /** The server refused the call; else the connection broke, and nobody knows the effect. */
  readonly refused: boolean
  readonly message: string
  /** The server did nothing, and wants a person to sign in before. */
  readonly wants?: Wanted | undefined
}

/** The rest of a call that a server interrupted for questions. */
export interface Continued {
  readonly answers: Readonly<Record<string, Answer>>
  readonly state: string | undefined
}

export interface Connection {
  /** The server asks within the result of a call; an older server asks beside its calls. */
  readonly isModern: boolean
  readonly version: string
  readonly title: string
  readonly instructions: string
  readonly offers: { readonly resources: boolean; readonly prompts: boolean }
  readonly tools: Effect.Effect<ReadonlyArray<ListedTool>, string>
  readonly call: (
    name: string,
    params: Readonly<Record<string, unknown>>,
    options: { readonly progress: (text: string) => void; readonly continued: Continued | undefined }
  ) => Effect.Effect<Reply, Failure>
  /** Any other request of the protocol, with its plain result. */
  readonly request: (method: string, params: Readonly<Record<string, unknown>>) => Effect.Effect<unknown, Failure>
  /** Waits for the end of the connection; yields the reason. */
  readonly closed: Effect.Effect<string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Connects over pipes. Fails with a sentence without its subject. */
export const connect = (
  link: Link,
  handlers: Handlers,
  mode: "auto" | "legacy"
): Effect.Effect<Connection, string, Scope.Scope> =>
  Effect.flatMap(load, (sdk) =>
    // Structurally a transport: `LineTransport` must not import the SDK.
    connected(sdk, link.transport as Sdk.Transport, link.reason, handlers, mode)
  )

/** Connects over HTTP. */
export const connectHttp = (address: Address, handlers: Handlers): Effect.Effect<Connection, string, Scope.Scope> =>
  Effect.flatMap(load, (sdk) =>
    Effect.suspend(() => {
      let reason: string | undefined
      const transport = overHttp(sdk, address, (why) => (reason ??= why))
      const reasonOf = () => reason ?? (address.auth?.needed === true ? signInNeeded : undefined)
      return connected(sdk, transport, reasonOf, handlers, "auto")
    })
  )

/** Why a server behind HTTP cannot be used, if a person has to sign in. */
export const signInNeeded = "wants you to sign in"

/** Why a connection cannot be made, as a sentence without its subject, if the token is too narrow. */
export const scopeNeeded = "wants you to sign in for more"

/**
 * Signs in to a server behind HTTP. `visit` brings a person to an address and yields the answer of the page. Yields false
 * if the server wants no sign-in. `wanted` is what the server said before.
 */
export const signIn = <R>(
  address: Address & { readonly auth: Provider },
  visit: (page: URL) => Effect.Effect<URLSearchParams, string, R>,
  wanted: Wanted | undefined
): Effect.Effect<boolean, string, R> =>
  Effect.gen(function* () {
    const sdk = yield* load
    const { auth } = address
    const transport = overHttp(sdk, address, () => undefined)
    const nothing = () => undefined
    const ask = () => Promise.resolve({ action: "cancel" } as const)
    const handlers: Handlers = { ask, roots: [], changed: nothing, wants: nothing }
    const { metadata, scope } = wanted ?? {}
    const begin: Effect.Effect<unknown, string> =
      scope === undefined
        ? Effect.scoped(connected(sdk, transport, () => undefined, handlers, "auto"))
        : Effect.tryPromise({
            try: () =>
              sdk.auth(providerOf(auth), {
                serverUrl: address.url,
                scope,
                ...(metadata === undefined ? {} : { resourceMetadataUrl: metadata }),
                ...(address.fetch === undefined ? {} : { fetchFn: address.fetch })
              }),
            catch: (error) => `cannot begin the sign-in: ${wordsOf(error)}`
          })
    const first = yield* Effect.either(begin)
    const { page } = auth
    if (page === undefined) return first._tag === "Right" ? false : yield* Effect.fail(first.left)
    const answer = yield* visit(page)
    yield* Effect.tryPromise({
      try: () => transport.finishAuth(answer),
      catch: (error) => `refused the sign-in: ${wordsOf(error)}`
    })
    return true
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Module = typeof Sdk

const load: Effect.Effect<Module, string> = Effect.tryPromise({
  try: () => import("@modelcontextprotocol/client"),
  catch: () => "needs a package. Install it: npm install @modelcontextprotocol/client@2.4.0"
})

/** The SDK gets no time limit of its own: the time of a person's answer does not count. */
const noLimit = 2_147_483_647
/** Milliseconds for a handshake and for lists. */
const patience = 30_000
/** Milliseconds until a server that answers nothing to the first message of 2026 is spoken to as an older one. */
const probe = 5_000

const connected = (
  sdk: Module,
  transport: Sdk.Transport,
  reasonOf: () => string | undefined,
  handlers: Handlers,
  mode: "auto" | "legacy"
): Effect.Effect<Connection, string, Scope.Scope> =>
  Effect.gen(function* () {
    const client = new sdk.Client(
      { name: "assent", version: "0.1.0" },
      {
        capabilities: { elicitation: { form: {}, url: {} }, roots: {} },
        versionNegotiation: { mode, probe: { timeoutMs: probe, maxRetries: 0 } },
        inputRequired: { autoFulfill: false },
        // A foreign schema is neither compiled nor trusted: results are foreign text anyway.
        jsonSchemaValidator: {
          getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined })
        },
        listChanged: { tools: { autoRefresh: false, debounceMs: settle, onChanged: handlers.changed } }
      }
    )
    client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }) => ({
      ...(await handlers.ask(askedOf(params), mcpReq.signal))
    }))
    client.setRequestHandler("roots/list", () => ({
      roots: handlers.roots.map((path) => ({
        uri: `file://${encodeURI(path)}`,
        name: path.slice(path.lastIndexOf("/") + 1)
      }))
    }))
    const failed = (error: unknown): Failure => {
      const failure = failureOf(sdk, error, reasonOf)
      if (failure.wants !== undefined) handlers.wants(failure.wants)
      return failure
    }
    let end: (reason: string) => void = () => undefined
    const closed = new Promise<string>((resolve) => (end = resolve))
    Object.assign(client, { onerror: () => undefined, onclose: () => end(reasonOf() ?? "closed the connection") })
    yield* Effect.addFinalizer(() => Effect.promise(() => client.close().catch(() => undefined)))
    yield* Effect.tryPromise({
      try: (signal) => client.connect(transport, { signal, timeout: patience }),
      catch: (error) => {
        const { message, wants } = failed(error)
        return wants === undefined ? (reasonOf() ?? `does not answer as a server: ${wordsOf(rootOf(error))}`) : message
      }
    })
    const offers = client.getServerCapabilities() ?? {}
    const raw = (method: string, params: object) =>
      Effect.tryPromise({
        try: (signal) => client.request({ method, params: { ...params } }, anything, { signal, timeout: patience }),
        catch: failed
      })
    return {
      isModern: client.getProtocolEra() === "modern",
      version: client.getNegotiatedProtocolVersion() ?? "",
      title: named(client.getServerVersion()),
      instructions: client.getInstructions() ?? "",
      offers: { resources: offers.resources !== undefined, prompts: offers.prompts !== undefined },
      tools: offers.tools === undefined ? Effect.succeed([]) : Effect.mapError(listed(raw), ({ message }) => message),
      call: (name, params, { continued, progress }) =>
        Effect.tryPromise({
          try: (signal) => {
            const more =
              continued === undefined ? {} : { inputResponses: { ...continued.answers }, requestState: continued.state }
            return client.callTool({ name, arguments: { ...params }, ...more } as Sdk.CallToolRequest["params"], {
              signal,
              timeout: noLimit,
              allowInputRequired: true,
              onprogress: ({ message, progress: done, total }) =>
                progress(message ?? (total === undefined ? String(done) : `${done}/${total}`))
            })
          },
          catch: failed
        }).pipe(Effect.flatMap(replyOf)),
      request: raw,
      closed: Effect.promise(() => closed)
    }
  })

/** Milliseconds. Servers tell of each of their tools right after the handshake. */
const settle = 50

/** Takes any result as it is, so that the model gets a schema as the server wrote it. */
const anything = {
  "~standard": { version: 1, vendor: "assent", validate: (value: unknown) => ({ value }) }
} as const

const maxPages = 100

const listed = (
  raw: (method: string, params: object) => Effect.Effect<unknown, Failure>
): Effect.Effect<ReadonlyArray<ListedTool>, Failure> =>
  Effect.gen(function* () {
    const found: Array<ListedTool> = []
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const result = yield* raw("tools/list", cursor === undefined ? {} : { cursor })
      const tools = Predicate.isRecord(result) ? result["tools"] : undefined
      if (!Array.isArray(tools))
        return yield* Effect.fail({ refused: true, message: "lists no tools in its list of tools" })
      for (const tool of tools as ReadonlyArray<unknown>) if (Predicate.isRecord(tool)) found.push(toolOf(tool))
      cursor = Predicate.isRecord(result) ? result["nextCursor"] : undefined
      if (cursor === undefined || cursor === null) return found
    }
    return yield* Effect.fail({ refused: true, message: `lists its tools on more than ${maxPages} pages` })
  })

const toolOf = (tool: { readonly [key: string]: unknown }): ListedTool => {
  const { annotations, description, execution, inputSchema, name } = tool
  return {
    name: typeof name === "string" ? name : "",
    description: typeof description === "string" ? description : "",
    schema: Predicate.isRecord(inputSchema) ? inputSchema : { type: "object" },
    destructive: Predicate.isRecord(annotations) && annotations["destructiveHint"] === true,
    isTask: Predicate.isRecord(execution) && execution["taskSupport"] === "required"
  }
}

const replyOf = (result: unknown): Effect.Effect<Reply, Failure> => {
  if (!Predicate.isRecord(result)) return Effect.fail({ refused: true, message: "sent a result that is no object" })
  if (result["resultType"] === "input_required") {
    const { inputRequests, requestState } = result
    const questions = Predicate.isRecord(inputRequests) ? Object.entries(inputRequests) : []
    return Effect.succeed({
      _tag: "Asks",
      questions: Object.fromEntries(questions.map(([id, request]) => [id, questionOf(request)])),
      state: typeof requestState === "string" ? requestState : undefined
    })
  }
  const { content, isError, structuredContent } = result
  return Effect.succeed({
    _tag: "Result",
    isError: isError === true,
    content: Array.isArray(content) ? content : [],
    structured: structuredContent
  })
}

/** Only questions to a person are answered: neither our model nor our files are offered there. */
const questionOf = (request: unknown): Asked | undefined =>
  Predicate.isRecord(request) && request["method"] === "elicitation/create" && Predicate.isRecord(request["params"])
    ? askedOf(request["params"])
    : undefined

const askedOf = (params: object): Asked => {
  const { message, mode, requestedSchema, url }: { readonly [key: string]: unknown } = { ...params }
  return {
    mode: mode === "url" ? "url" : "form",
    message: typeof message === "string" ? message : "",
    schema: requestedSchema,
    url: typeof url === "string" ? url : ""
  }
}

const failureOf = (sdk: Module, error: unknown, reasonOf: () => string | undefined): Failure => {
  if (error instanceof sdk.InsufficientScopeError) {
    const wants = { scope: error.requiredScope, metadata: error.resourceMetadataUrl }
    return { refused: true, message: scopeNeeded, wants }
  }
  if (error instanceof sdk.ProtocolError) return { refused: true, message: `refused the call: ${wordsOf(error)}` }
  const message = reasonOf() ?? wordsOf(error)
  return message === signInNeeded
    ? { refused: true, message, wants: { scope: undefined, metadata: undefined } }
    : { refused: false, message }
}

// The SDK's own types stay out of `SignIn`.
const providerOf = (auth: Provider) => auth as unknown as Sdk.OAuthClientProvider

/** The last cause that says something: `fetch` itself says only that it failed. */
const rootOf = (error: unknown, depth = 0): unknown => {
  if (!(error instanceof Error) || !(error.cause instanceof Error) || depth === 10) return error
  const { code, message }: { readonly code?: unknown; readonly message: string } = error.cause
  return message === "" && typeof code !== "string" ? error : rootOf(message === "" ? code : error.cause, depth + 1)
}

const wordsOf = (error: unknown): string =>
  UntrustedJson.echo(ForeignText.clean(error instanceof Error ? error.message : String(error)), 500)

const named = (
  server: { readonly name?: unknown; readonly title?: unknown; readonly version?: unknown } | undefined
): string =>
  UntrustedJson.echo(
    ForeignText.clean(
      [server?.title ?? server?.name, server?.version].filter((part) => typeof part === "string").join(" ")
    ),
    100
  )

const overHttp = (
  sdk: Module,
  { auth, fetch = globalThis.fetch, headers, url }: Address,
  refuse: (reason: string) => void
): Sdk.StreamableHTTPClientTransport =>
  new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: boundedFetch(withoutHeaders(fetch, url, Object.keys(headers)), refuse),
    onInsufficientScope: "throw",
    ...(auth === undefined ? {} : { authProvider: providerOf(auth) })
  })

/** Headers of the settings are for the server itself, and not for the servers that sign in. */
const withoutHeaders =
  (fetch: typeof globalThis.fetch, server: URL, names: ReadonlyArray<string>): typeof globalThis.fetch =>
  (url, init) => {
    if (new URL(url instanceof Request ? url.url : url).origin === server.origin) return fetch(url, init)
    const headers = new Headers(init?.headers)
    for (const name of names) headers.delete(name)
    return fetch(url, { ...init, headers })
  }

/** Bytes of one message over HTTP. */
const maxBody = 10_000_000

/** The body of an answer ends with an error once one message in it is too long. */
const boundedFetch =
  (fetch: typeof globalThis.fetch, refuse: (reason: string) => void) =>
  async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    if (response.body === null) return response
    const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true
    let since = 0
    const bounded = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          const last = isStream ? bytes.lastIndexOf(0x0a) : -1
          since = last < 0 ? since + bytes.length : bytes.length - last - 1
          if (since <= maxBody) return controller.enqueue(bytes)
          refuse(`sent a message of more than ${maxBody / 1_000_000} MB`)
          controller.error(new Error("The message is too long."))
        }
      })
    )
    return new Response(bounded, {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers
    })
  }
