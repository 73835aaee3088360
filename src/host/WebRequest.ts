/** One request to the public web: see `NodeWeb`. */
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import * as dns from "node:dns"
import * as http from "node:http"
import * as https from "node:https"
import type { LookupFunction } from "node:net"
import * as os from "node:os"
import { pipeline } from "node:stream"
import * as zlib from "node:zlib"
import { maxBytes, type Response } from "../builtin/FetchUrl.js"
import * as InternetAddress from "../core/InternetAddress.js"
import * as ProxyFault from "../core/ProxyFault.js"

/**
 * Which addresses may be reached.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Whether an IP address may be connected to. Default: those of the open internet, without this machine's own. */
  readonly mayReach?: ((address: string) => boolean) | undefined
  /** The addresses of this machine. Default: those of its network interfaces, as they are at each request. */
  readonly own?: (() => ReadonlyArray<string>) | undefined
  /** The addresses of a name. Default: the system's resolver. */
  readonly resolve?: ((name: string) => Effect.Effect<ReadonlyArray<string>, string>) | undefined
  /**
   * The client of addresses that are reached through a proxy. A proxy resolves names itself: a name that resolves here has
   * to be public, and another one needs a dot. Default: no proxy.
   */
  readonly through?: ((url: URL) => typeof fetch | undefined) | undefined
}

export const get = (url: URL, options: Options = {}): Effect.Effect<Response, string> =>
  Effect.gen(function* () {
    const { own = ofInterfaces, resolve = bySystem } = options
    const mayReach = options.mayReach ?? (yield* elsewhere(own))
    const client = options.through?.(url)
    const literal = InternetAddress.ofHost(url.hostname)
    const found = literal === undefined ? resolve(url.hostname) : Effect.succeed([literal])
    const isForeign = client !== undefined && literal === undefined && /\.[^.]+\.?$/.test(url.hostname)
    const addresses = yield* isForeign ? Effect.orElseSucceed(found, () => []) : found
    const closed = addresses.find((address) => !mayReach(address))
    if (closed !== undefined || (addresses.length === 0 && !isForeign)) {
      return yield* Effect.fail(`${url.hostname} is not an address of the public web.`)
    }
    return yield* client === undefined ? request(url, addresses) : proxied(url, client)
  }).pipe(
    Effect.timeoutFail({ duration: "30 seconds", onTimeout: () => `${url.host} did not answer within 30 seconds.` })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The machine's own address may be a public one: its services are no web. */
const elsewhere = (own: () => ReadonlyArray<string>): Effect.Effect<(address: string) => boolean, string> =>
  Effect.map(
    Effect.try({ try: own, catch: () => "The addresses of this machine cannot be read, so nothing is fetched." }),
    (addresses) => (address) =>
      InternetAddress.isPublic(address) && !addresses.some((one) => InternetAddress.isIn(address, one))
  )

const ofInterfaces = (): ReadonlyArray<string> =>
  Object.values(os.networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address))

const bySystem = (name: string): Effect.Effect<ReadonlyArray<string>, string> =>
  Effect.async((resume) => {
    dns.lookup(name, { all: true, verbatim: true }, (error, found) => {
      resume(
        error === null
          ? Effect.succeed(found.map(({ address }) => address))
          : Effect.fail(`There is no host ${name} (${error.code ?? error.message}).`)
      )
    })
  })

/** Yields what was resolved before, whatever is asked. */
const pinned =
  (addresses: ReadonlyArray<string>): LookupFunction =>
  (_, options, callback) => {
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
    const [first] = found
    if (options.all === true) callback(null, found)
    else callback(null, first?.address ?? "", first?.family)
  }

const headers = {
  accept: "text/html, text/plain, application/json;q=0.9, text/*;q=0.8, */*;q=0.1",
  "accept-encoding": "gzip",
  "user-agent": "assent"
}

const proxied = (url: URL, client: typeof fetch): Effect.Effect<Response, string> =>
  Effect.flatMap(
    Effect.tryPromise({
      try: (signal) => client(url, { headers, redirect: "manual", signal }),
      catch: (error) =>
        ProxyFault.within(error)?.message ??
        `${url.host} cannot be reached: ${error instanceof Error ? error.message : String(error)}`
    }),
    (response) =>
      received(url, {
        status: response.status,
        // `fetch` has unpacked the body.
        headers: {
          location: response.headers.get("location") ?? undefined,
          "content-type": response.headers.get("content-type") ?? undefined
        },
        body: chunksOf(response.body)
      })
  )

const request = (url: URL, addresses: ReadonlyArray<string>): Effect.Effect<Response, string> =>
  Effect.async((resume) => {
    const client = url.protocol === "https:" ? https : http
    const sent = client.get(
      url,
      {
        // A connection of its own: one that is kept open may lead elsewhere.
        agent: false,
        lookup: pinned(addresses),
        maxHeaderSize: 32_768,
        headers
      },
      (response) => {
        const over = Effect.sync(() => sent.destroy())
        const { headers, statusCode: status = 0 } = response
        resume(Effect.ensuring(received(url, { status, headers, body: response }), over))
      }
    )
    sent.on("error", (error) => resume(Effect.fail(`${url.host} cannot be reached: ${error.message}`)))
    return Effect.sync(() => sent.destroy())
  })

async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  try {
    for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) yield next.value
  } finally {
    await reader?.cancel()
  }
}

interface Received {
  readonly status: number
  readonly headers: { readonly [Name in "location" | "content-encoding" | "content-type"]?: string | undefined }
  readonly body: AsyncIterable<Uint8Array>
}

/** What the server sent, up to the limit. The rest is neither read nor unpacked. */
const received = (url: URL, { body, headers, status }: Received): Effect.Effect<Response, string> => {
  const { location, "content-encoding": encoding = "identity", "content-type": type = "" } = headers
  if (location !== undefined && status >= 300 && status < 400) {
    // Node reads each byte as a character; addresses are written in UTF-8.
    const bytes = Buffer.from(location, "latin1")
    const written = isUtf8(bytes) ? bytes.toString() : location
    return Effect.succeed({ status, location: written, type, body: new Uint8Array(), isCut: false })
  }
  const packing = encoding.toLowerCase()
  if (!["identity", "gzip", "x-gzip"].includes(packing)) {
    return Effect.fail(
      `${url.host} sent its page compressed${/^[\w-]{1,20}$/.test(encoding) ? ` as ${encoding}` : ""} without being asked to.`
    )
  }
  return Effect.tryPromise({
    try: async () => {
      const plain = packing === "identity" ? body : pipeline(body, zlib.createGunzip(), () => {})
      const chunks: Array<Uint8Array> = []
      let size = 0
      // Leaving the loop destroys what it reads.
      for await (const chunk of plain as AsyncIterable<Uint8Array>) {
        chunks.push(chunk)
        size += chunk.length
        if (size > maxBytes) break
      }
      return { status, location, type, body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: size > maxBytes }
    },
    catch: (error) => `${url.host} ended its page early: ${error instanceof Error ? error.message : String(error)}`
  })
}
