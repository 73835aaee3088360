/** A local collector of traces: it keeps all posts. */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createServer } from "node:http"

export interface Post {
  readonly path: string
  readonly headers: { readonly [name: string]: string | undefined }
  /** As Latin-1, so that nothing of a binary body is lost. */
  readonly body: string
}

/** A span as it came over the wire. */
export interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status: { readonly code: number; readonly message?: string }
  readonly attributes: { readonly [name: string]: unknown }
}

export interface Collector {
  readonly url: string
  readonly posts: () => ReadonlyArray<Post>
  /** The spans of all JSON posts, in order of arrival. */
  readonly spans: () => ReadonlyArray<Span>
  /** The resource of the last JSON post. */
  readonly resource: () => { readonly [name: string]: unknown }
  /** Each span with those above it: `turn > tool`. */
  readonly outline: () => ReadonlyArray<string>
}

/** Listens on a free port until the scope closes. `answer` is what every post gets, `Effect.never` for none. */
export const make = (
  answer: Effect.Effect<number> = Effect.succeed(200)
): Effect.Effect<Collector, never, Scope.Scope> =>
  Effect.gen(function* () {
    const posts: Array<Post> = []
    const raw = createServer()
    const server = yield* NodeHttpServer.make(() => raw, { port: 0, host: "127.0.0.1" })
    yield* server.serve(
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const body = Buffer.from(yield* request.arrayBuffer).toString("latin1")
        posts.push({ path: request.url, headers: request.headers, body })
        return HttpServerResponse.text("{}", { status: yield* Effect.interruptible(answer) })
      })
    )
    // A client that gave up must not hold up the end of the test.
    yield* Effect.addFinalizer(() => Effect.sync(() => raw.closeAllConnections()))
    const { address } = server
    const bodies = () => posts.map(({ body }) => JSON.parse(body) as Body)
    const spans = () => bodies().flatMap(({ resourceSpans: [first] }) => (first?.scopeSpans[0]?.spans ?? []).map(shown))
    return {
      url: address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : "",
      posts: () => posts,
      spans,
      resource: () => attributesOf(bodies().at(-1)?.resourceSpans[0]?.resource.attributes ?? []),
      outline: () => {
        const all = new Map(spans().map((span) => [span.spanId, span]))
        const path = ({ name, parentSpanId = "" }: Span): string => {
          const parent = all.get(parentSpanId)
          return `${parent === undefined ? "" : `${path(parent)} > `}${name.replace(/^assent\./, "")}`
        }
        return spans().map(path)
      }
    }
  }).pipe(Effect.orDie)

// -----------------------------------------------------------------------------------------------------------------

type Attributes = ReadonlyArray<{ readonly key: string; readonly value: Readonly<Record<string, unknown>> }>

interface Body {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: Attributes }
    readonly scopeSpans: ReadonlyArray<{
      readonly spans: ReadonlyArray<Omit<Span, "attributes"> & { readonly attributes: Attributes }>
    }>
  }>
}

const attributesOf = (attributes: Attributes): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const shown = ({ attributes, ...span }: Omit<Span, "attributes"> & { readonly attributes: Attributes }): Span => ({
  ...span,
  attributes: attributesOf(attributes)
})
