/**
 * The rules of each path: one row an endpoint. A row that is missing does not compile, and a path without a row is refused.
 *
 * `Admission` asks for the verbs, the tenant and the body before a handler runs. `Tenancy` has the sessions of a tenant,
 * `ApiHandlers` the streams and the masks.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Api from "./Api.js"

/** What a path asks of a request, and what its answer shows. */
export interface Rule {
  /** What a key has to permit. `open`: no key is asked. */
  readonly verbs: ReadonlyArray<Api.Verb> | "open"
  /** `own`: of a tenant's caller, the sessions of the tenant. `whole`: only callers of the whole server. `none`: no session. */
  readonly tenant: "own" | "whole" | "none"
  /** The longest body, in bytes. 0: no body is read. */
  readonly body: number
  /** The answer stays open, and its caller is checked again. */
  readonly stream: boolean
  /** `secrets`: declared secrets and shapes of tokens. `values`: also each value of a tool server's environment and headers. */
  readonly mask: "secrets" | "values" | "none"
}

/** A path with its rule. */
export interface Door {
  readonly method: string
  /** Such as `/v1/sessions/:sessionId`. */
  readonly path: string
  readonly rule: Rule
}

// -----------------------------------------------------------------------------------------------------------------
// the table
// -----------------------------------------------------------------------------------------------------------------

const kilobytes = 1_024

/** Of a body that is parsed at once. Longer ones are parsed beside the event loop. */
export const short = 256 * kilobytes

/** With files, or edited arguments. */
const long = 1_024 * kilobytes

/** Of a page that sends its whole history with each message. */
const history = 4_096 * kilobytes

const reads = { verbs: ["read"], tenant: "own", body: 0, stream: false, mask: "secrets" } as const
const follows = { ...reads, stream: true } as const
const does = (verb: Api.Verb, body = short): Rule => ({ ...reads, verbs: [verb], body })
const runs = { verbs: ["send", "answer"], tenant: "own", body: history, stream: true, mask: "secrets" } as const
const open = { verbs: "open", tenant: "none", body: 0, stream: false, mask: "none" } as const

type Groups = typeof Api.Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer _E, infer _R> ? Groups : never

const rules: {
  readonly [Group in HttpApiGroup.HttpApiGroup.Name<Groups>]: {
    readonly [
      Endpoint in HttpApiEndpoint.HttpApiEndpoint.Name<HttpApiGroup.HttpApiGroup.EndpointsWithName<Groups, Group>>
    ]: Rule
  }
} = {
  sessions: {
    create: does("send"),
    list: reads,
    get: reads,
    send: does("send", long),
    interrupt: does("cancel"),
    takeBack: does("cancel"),
    compact: does("send"),
    permissions: does("permissions"),
    mode: does("permissions"),
    model: does("permissions"),
    remove: does("permissions", 0),
    events: follows,
    allEvents: follows
  },
  requests: { list: reads, answer: does("answer", long), cancel: does("cancel") },
  runs: { agui: runs, ai: runs, aiStream: follows },
  control: {
    about: { ...reads, verbs: [], tenant: "none", mask: "none" },
    workspaces: { ...reads, tenant: "whole", mask: "values" },
    trust: { ...does("permissions"), tenant: "whole", mask: "values" },
    turns: reads,
    fork: does("send"),
    models: reads,
    audit: reads
  },
  health: { healthz: open, readyz: open },
  metrics: { metrics: { ...reads, verbs: ["operate"], tenant: "none", mask: "none" } }
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

const read = (): ReadonlyArray<Door> => {
  const doors: Array<Door> = []
  const all: { readonly [group: string]: { readonly [endpoint: string]: Rule } } = rules
  HttpApi.reflect(Api.Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group }) => {
      const rule = all[group.identifier]?.[endpoint.name]
      if (rule !== undefined) doors.push({ method: endpoint.method, path: endpoint.path, rule })
    }
  })
  return doors
}

/** All paths of the API. */
export const doors: ReadonlyArray<Door> = read()

/** The rule of a route; undefined for one that is not of the API. */
export const ruleOf = ({ method, path }: { readonly method: string; readonly path: string }): Rule | undefined =>
  byRoute.get(`${method} ${path}`)

/** The methods of a path as a client sends it; none for an unknown path. */
export const methodsOf = (url: string): ReadonlyArray<string> => {
  const [pathname = ""] = url.split("?")
  const parts = pathname.split("/")
  return patterns.flatMap(({ method, pattern }) =>
    pattern.length === parts.length && pattern.every((one, at) => one === parts[at] || one.startsWith(":"))
      ? method === "GET"
        ? ["GET", "HEAD"]
        : [method]
      : []
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const byRoute: ReadonlyMap<string, Rule> = new Map(doors.map(({ method, path, rule }) => [`${method} ${path}`, rule]))

const patterns = doors.map(({ method, path }) => ({ method, pattern: path.split("/") }))
