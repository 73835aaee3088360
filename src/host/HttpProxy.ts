/**
 * The HTTP proxy of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in both cases.
 *
 * As in curl, the lower case comes first, and `ALL_PROXY` stands for a missing variable. As in Go, loopback addresses are
 * reached directly: a local model server is not behind a proxy.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as InternetAddress from "../core/InternetAddress.js"
import * as ProxyFault from "../core/ProxyFault.js"

/** The proxy that one variable names. */
export interface Route {
  readonly variable: string
  /** Host and port, as shown to people. */
  readonly host: string
  /** Holds the credentials. Nothing if the variable names no HTTP proxy. */
  readonly address: URL | undefined
}

export interface HttpProxy {
  /** How an address is reached. Nothing: directly. */
  readonly routeOf: (url: URL) => Route | undefined
  /** The proxies that are set, without credentials, as sentences for a person. */
  readonly described: ReadonlyArray<string>
  /** Whether each variable names an HTTP proxy. */
  readonly isUsable: boolean
  /** Passwords, to be masked. */
  readonly secrets: ReadonlyArray<string>
}

/** The names of all variables. */
export const variables: ReadonlyArray<string> = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap(
  (name) => [name.toLowerCase(), name]
)

/** Reads the environment. */
export const load: Effect.Effect<HttpProxy> = Effect.gen(function* () {
  const [https, http, all] = yield* Effect.all([found("HTTPS_PROXY"), found("HTTP_PROXY"), found("ALL_PROXY")])
  const exceptions = yield* found("NO_PROXY")
  const routes = { "https:": routeOf(https ?? all), "http:": routeOf(http ?? all) }
  const excepted = exceptionsIn(exceptions?.value ?? "")
  const set = [routes["https:"], routes["http:"]].flatMap((route) => route ?? [])
  const distinct = set.filter(({ variable }, at) => set.findIndex((other) => other.variable === variable) === at)
  return {
    routeOf: (url) => {
      const route = url.protocol === "https:" ? routes["https:"] : routes["http:"]
      return route === undefined || isLoopback(url.hostname) || excepted(url) ? undefined : route
    },
    described:
      exceptions === undefined || distinct.length === 0
        ? distinct.map(described)
        : [...distinct.map(described), `not for ${exceptions.value} (${exceptions.variable})`],
    isUsable: distinct.every(({ address }) => address !== undefined),
    secrets: distinct.flatMap(({ address }) => {
      const password = address?.password ?? ""
      return password === "" ? [] : [password, decoded(password)]
    })
  }
})

/** `fetch` that goes where the variables say. */
export const fetchOf = ({ routeOf }: Pick<HttpProxy, "routeOf">): typeof fetch => {
  const direct: typeof fetch = (input, init) => globalThis.fetch(input, init)
  return (input, init) => {
    const route = routeOf(new URL(input instanceof Request ? input.url : input))
    return route === undefined ? direct(input, init) : through(route, input, init)
  }
}

/** The HTTP client of everything that the command line sends, but for pages: `NodeWeb` has its own. */
export const client = (proxy: HttpProxy): Layer.Layer<HttpClient.HttpClient> =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("@effect/platform/FetchHttpClient")),
      ({ Fetch, layer }) =>
        proxy.described.length === 0 ? layer : Layer.provide(layer, Layer.succeed(Fetch, fetchOf(proxy)))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Variable {
  readonly variable: string
  readonly value: string
}

/** An empty variable sets nothing. */
const found = (name: string): Effect.Effect<Variable | undefined> =>
  Effect.gen(function* () {
    for (const variable of [name.toLowerCase(), name]) {
      const value = Option.getOrElse(yield* Effect.option(Config.string(variable)), () => "").trim()
      if (value !== "") return { variable, value }
    }
    return undefined
  })

/** A value without a scheme is an HTTP proxy. */
const routeOf = (set: Variable | undefined): Route | undefined => {
  if (set === undefined) return undefined
  const { value, variable } = set
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`
  if (!URL.canParse(text)) return { variable, host: "", address: undefined }
  const address = new URL(text)
  const isHttp = /^https?:$/.test(address.protocol) && address.hostname !== ""
  return { variable, host: address.host, address: isHttp ? address : undefined }
}

const described = ({ address, host, variable }: Route): string => {
  if (address === undefined) return `${variable} names no HTTP proxy; write http://HOST:PORT, or unset it`
  const { password, protocol, username } = address
  const account = username === "" ? "" : `${decoded(username)}${password === "" ? "" : ":***"}@`
  return `${protocol}//${account}${host} (${variable})`
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const isLoopback = (hostname: string): boolean => {
  const address = InternetAddress.ofHost(hostname)
  return address === undefined ? /^(?:.+\.)?localhost\.?$/i.test(hostname) : InternetAddress.isLoopback(address)
}

/** `*`, or names, addresses and blocks of addresses, each with a port if only that is meant. */
const exceptionsIn = (text: string): ((url: URL) => boolean) => {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== "")
  if (entries.includes("*")) return () => true
  const tests = entries.map((entry) => {
    const [, host = entry, port] = /^([^:]+|\[.*\]):(\d+)$/.exec(entry) ?? []
    const name = host
      .replace(/^\*?\./, "")
      .replace(/\.$/, "")
      .toLowerCase()
    return ({ hostname, port: own, protocol }: URL): boolean => {
      if (port !== undefined && port !== (own || (protocol === "https:" ? "443" : "80"))) return false
      const address = InternetAddress.ofHost(hostname)
      if (address !== undefined) return InternetAddress.isIn(address, host.replace(/^\[(.*)\]$/, "$1"))
      const asked = hostname.replace(/\.$/, "").toLowerCase()
      return asked === name || asked.endsWith(`.${name}`)
    }
  })
  return (url) => tests.some((test) => test(url))
}

type Agent = import("undici").ProxyAgent

/** One agent per proxy: it keeps its connections. */
const agents = new Map<string, Promise<Agent>>()

const agentOf = (address: URL): Promise<Agent> => {
  const known = agents.get(address.href)
  if (known !== undefined) return known
  const agent = import("undici").then(
    // A request of plain HTTP is sent to the proxy as it is: many proxies allow tunnels to port 443 only.
    ({ ProxyAgent }) => new ProxyAgent({ uri: address.href, proxyTunnel: false })
  )
  agents.set(address.href, agent)
  return agent
}

const through = async (route: Route, input: Parameters<typeof fetch>[0], init: RequestInit = {}): Promise<Response> => {
  const { address, variable } = route
  if (address === undefined) {
    throw new ProxyFault.ProxyFault(`${variable} names no HTTP proxy. Write http://HOST:PORT, or unset it.`, false)
  }
  const dispatcher = await agentOf(address)
  const response = await globalThis.fetch(input, { ...init, dispatcher } as RequestInit).catch((error: unknown) => {
    throw faultOf(route, error) ?? error
  })
  if (response.status === 407) throw unauthorized(route)
  return response
}

const unauthorized = ({ host, variable }: Route) =>
  new ProxyFault.ProxyFault(
    `The proxy ${host} wants a user name and a password (407). Write http://USER:PASSWORD@${host} into ${variable}.`,
    false,
    407
  )

/** What went wrong before the server had the request. */
const faultOf = (route: Route, error: unknown): ProxyFault.ProxyFault | undefined => {
  const { host, variable } = route
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const status = Number(/^Proxy response \((\d+)\)/.exec(current.message)?.[1])
    if (status === 407 || current.message.endsWith("(407)")) return unauthorized(route)
    if (status > 0) {
      const advice = "Ask for access, or name the host in NO_PROXY."
      return new ProxyFault.ProxyFault(
        `The proxy ${host} refused the connection (${status}). ${advice}`,
        status >= 500,
        status
      )
    }
    const code = "code" in current && typeof current.code === "string" ? current.code : ""
    if (unreachable.test(code)) {
      return new ProxyFault.ProxyFault(
        `The proxy ${host} cannot be reached (${code}). Check ${variable}, or name the host in NO_PROXY.`,
        !/REFUSED|NOTFOUND/.test(code)
      )
    }
  }
  return undefined
}

/** A connection goes to the proxy, so these are the proxy's. */
const unreachable = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/
