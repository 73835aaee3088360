/** A server of the API in this process, with directories, a token and a script for its model. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"
import * as Api from "../../src/http/Api.js"
import * as Server from "../../src/http/Server.js"
import * as Token from "../../src/http/Token.js"
import * as Wait from "./Wait.js"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // Bodies differ by path; each test says what it expects.
  readonly body: any
}

export interface Served {
  readonly url: string
  readonly token: string
  readonly host: Host.Service
  readonly end: Effect.Effect<void>
  /** Sends JSON with the token; `POST` where there is a body. */
  readonly call: (
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
    method?: string
  ) => Effect.Effect<Answer>
  /** Reads events until `enough` says so, or the stream ends. `by`: with this token. */
  readonly events: (
    path: string,
    enough: (pieces: ReadonlyArray<Piece>) => boolean,
    after?: string,
    by?: string
  ) => Effect.Effect<ReadonlyArray<Piece>>
}

export interface Piece {
  readonly id?: string
  readonly event?: string
  readonly data: any
}

/** Directories that outlive a server. */
export const place = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-http-")))),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
  ),
  (root) => {
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    for (const name of ["one", "two", "config", "home"]) fs.mkdirSync(at(name))
    const script = (...steps: ReadonlyArray<unknown>) => {
      fs.writeFileSync(at("script.json"), JSON.stringify({ version: 1, agents: { main: steps } }))
      return `script:${at("script.json")}`
    }
    return { root, at, script }
  }
)

export type Place = Effect.Effect.Success<typeof place>

/** A model that wants to run this command, and says that it is done. */
export const asking = ({ script }: Place, command = "touch made", more: ReadonlyArray<unknown> = []) =>
  script({ tools: [{ name: "run_command", params: { command } }] }, { text: "done" }, ...more)

/** Serves both workspaces until the scope closes. */
export const serve = (
  { at }: Place,
  model: string,
  options: Partial<Server.Options> & {
    readonly store?: string
    readonly person?: { name: string; roles?: Array<string> }
    /** Who calls with which token, in the place of the one that is kept. */
    readonly people?: Readonly<Record<string, Api.Person>>
  } = {}
): Effect.Effect<Served, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const workspaces = [at("one"), at("two")]
    const variables = {
      HOME: at("home"),
      ASSENT_CONFIG_DIR: at("config"),
      ASSENT_STATE_DIR: at("state"),
      ASSENT_SANDBOX: "off",
      ...(options.store === undefined ? {} : { ASSENT_STORE: options.store })
    }
    const host = yield* Host.make({
      environment: Environment.of(variables),
      workspaces,
      overrides: { model },
      notify: () => {}
    })
    const kept = yield* Token.open(at("config", "serve-token"))
    const { people } = options
    const callers = people
      ? Layer.succeed(Api.Authentication, {
          token: (given) =>
            Either.fromNullable(people[Redacted.value(given)], () => new Api.Unauthorized({ message: "Nobody." }))
        })
      : Token.layer(kept, options.person ?? { name: "ada" })
    const server = yield* Server.make({ host: "127.0.0.1", port: 0, workspaces, ...options }).pipe(
      Effect.provide(callers),
      Effect.provideService(Host.Host, host)
    )
    const token = Redacted.value(yield* kept.value)
    const call: Served["call"] = (path, body, headers = {}, method) =>
      Effect.promise(async () => {
        const answer = await fetch(`${server.url}${path}`, {
          method: method ?? (body === undefined ? "GET" : "POST"),
          headers: {
            authorization: `Bearer ${token}`,
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...headers
          },
          ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
        })
        const text = await answer.text()
        const isJson = answer.headers.get("content-type")?.includes("json") === true
        return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
      })
    const events: Served["events"] = (path, enough, after, by = token) =>
      Effect.promise(async (signal) => {
        const answer = await fetch(`${server.url}${path}`, {
          signal,
          headers: { authorization: `Bearer ${by}`, ...(after === undefined ? {} : { "last-event-id": after }) }
        })
        const pieces: Array<Piece> = []
        let text = ""
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return pieces
          text += value
          const blocks = text.split("\n\n")
          text = blocks.pop() ?? ""
          for (const piece of blocks.flatMap(parse)) {
            pieces.push(piece)
            if (!enough(pieces)) continue
            await reader.cancel()
            return pieces
          }
        }
      })
    return { url: server.url, token, host, end: server.end, call, events }
  }).pipe(Effect.provide(NodeContext.layer))

/** An event of a stream as text; nothing for a comment. */
export const parse = (block: string): ReadonlyArray<Piece> => {
  const fields = new Map(
    block
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const)
  )
  const data = fields.get("data")
  if (data === undefined) return []
  const [id, event] = [fields.get("id"), fields.get("event")]
  return [{ ...(id === undefined ? {} : { id }), ...(event === undefined ? {} : { event }), data: JSON.parse(data) }]
}

/** Asks again until it is so. */
export const until = <A>(effect: Effect.Effect<A>, holds: (value: A) => boolean): Effect.Effect<A> =>
  Effect.orDie(Wait.until(effect, holds))

/** Begins a session with words, and yields it with the request that it waits for. */
export const question = (served: Served, body: object = {}) =>
  Effect.gen(function* () {
    const { sessionId } = (yield* served.call("/v1/sessions", body)).body
    yield* served.call(`/v1/sessions/${sessionId}/messages`, { text: "go" })
    const snapshot = yield* until(served.call(`/v1/sessions/${sessionId}`), ({ body }) => body.open.length > 0)
    return { sessionId: String(sessionId), requestId: String(snapshot.body.open[0]) }
  })
