/**
 * The port at which the nodes of a cluster call each other. It has the rules of the front door: no page, the exact address,
 * and a proof of the cluster's secret. They hold before the WebSocket opens, so that the engine reads no frame of a stranger.
 *
 * ```
 *   engine ─► proof ─► WebSocket ═══► origin? ─► address? ─► proof? ─► engine
 *                                        └──────────┴───────────┴─► 403, closed
 * ```
 */
import * as HttpRunner from "@effect/cluster/HttpRunner"
import type * as MessageStorage from "@effect/cluster/MessageStorage"
import * as RunnerHealth from "@effect/cluster/RunnerHealth"
import * as Runners from "@effect/cluster/Runners"
import type * as RunnerStorage from "@effect/cluster/RunnerStorage"
import type * as Sharding from "@effect/cluster/Sharding"
import type * as ShardingConfig from "@effect/cluster/ShardingConfig"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import type * as HttpServerError from "@effect/platform/HttpServerError"
import * as Socket from "@effect/platform/Socket"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { IncomingMessage, Server as NodeServer, ServerResponse } from "node:http"
import { Socket as NetSocket } from "node:net"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { NodeSecret } from "./NodeSecret.js"

/** Where the other nodes reach this one. */
interface Address {
  readonly host: string
  readonly port: number
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** The engine behind the door of this address. */
export const layer = (
  address: Address,
  secret: NodeSecret
): Layer.Layer<
  Sharding.Sharding | Runners.Runners,
  HttpServerError.ServeError,
  MessageStorage.MessageStorage | RunnerStorage.RunnerStorage | ShardingConfig.ShardingConfig
> => {
  const calling = proving(secret)
  const health = RunnerHealth.layerPing.pipe(
    Layer.provide(Runners.layerRpc),
    Layer.provide(Layer.provide(HttpRunner.layerClientProtocolWebsocketDefault, calling))
  )
  return HttpRunner.layerWebsocket.pipe(
    Layer.provide([listening(address, secret), calling, health]),
    Layer.provide(RpcSerialization.layerMsgPack)
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As a URL has it: in lower case, without the port 80. */
const nameOf = ({ host, port }: Address): string => {
  const url = `ws://${host}:${port}`
  return URL.canParse(url) ? new URL(url).host : `${host}:${port}`
}

/** Traces mask this header. */
const header = "authorization"

const scheme = "Node "

/** Each WebSocket carries a proof for the node that it calls. */
const proving = (secret: NodeSecret): Layer.Layer<Socket.WebSocketConstructor> =>
  Layer.effect(
    Socket.WebSocketConstructor,
    Effect.map(Socket.WebSocketConstructor, (open) => (url) => {
      const options = { headers: { [header]: `${scheme}${secret.proofFor(new URL(url).host)}` } }
      // `ws` and Node's own WebSocket take options in the place of protocols, which the type of browsers does not have.
      return open(url, options as unknown as Array<string>)
    })
  ).pipe(Layer.provide(NodeSocket.layerWebSocketConstructor))

const listening = (address: Address, secret: NodeSecret) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime()
      const door = new Door(
        (request) => judge(request, nameOf(address), secret),
        (sentence) => void Runtime.runFork(runtime)(Effect.logWarning(sentence))
      )
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.delay(
            Effect.sync(() => door.closeFormer()),
            every
          )
        )
      )
      return NodeHttpServer.layer(() => door, address)
    })
  )

/** Between two looks for connections whose secret counts no more. */
const every = Duration.seconds(5)

/** Milliseconds in which the log has one sentence of a kind: strangers do not fill it. */
const quiet = 60_000

/** Connections at once that have not proved anything. The oldest one leaves for a new one. */
const strangers = 128

/** Whether the secret of an accepted call counts still. */
type Counts = () => boolean

/** Why the call is refused, for the caller and for the log. */
interface Refusal {
  readonly answer: string
  readonly log: string
}

const judge = (request: IncomingMessage, name: string, secret: NodeSecret): Counts | Refusal => {
  const { [header]: proofs = [], host: hosts = [] } = request.headersDistinct
  const [host = ""] = hosts
  const [proof = ""] = proofs
  const from = `A caller at ${request.socket.remoteAddress} was refused`
  // Node sends neither; a browser does, and no page can leave them out.
  if (Object.keys(request.headers).some((one) => one === "origin" || one.startsWith("sec-fetch-"))) {
    const answer = "Pages may not use this port. It is for the nodes of a cluster."
    return { answer, log: `${from}: a web page tried to act as a node. Keep ${name} inside a private network.` }
  }
  if (hosts.length !== 1 || host.toLowerCase() !== name) {
    const answer = "This node does not answer under that name. Use the address in its ASSENT_NODE_ADDRESS."
    return {
      answer,
      log: `${from}: it asked for ${JSON.stringify(UntrustedJson.echo(host, 100))} and not for ${name}.`
    }
  }
  if (proofs.length === 0) {
    const answer = "This port is for nodes with a proof of the cluster's secret. Upgrade nodes of earlier versions."
    return {
      answer,
      log: `${from}: it has no proof of the cluster's secret. If it is a node, upgrade it to this version.`
    }
  }
  return (
    (proofs.length === 1 && proof.startsWith(scheme) ? secret.check(proof.slice(scheme.length), name) : undefined) ?? {
      answer: "The proof of the cluster's secret is wrong or old.",
      log: `${from}: its proof of the cluster's secret is wrong or old. If it is a node, give it the database of this one.`
    }
  )
}

/** Opens WebSockets for nodes, and nothing for others. */
class Door extends NodeServer {
  private readonly strange = new Set<NetSocket>()
  private readonly known = new Map<NetSocket, Counts>()
  private readonly said = new Map<string, number>()

  constructor(
    private readonly judge: (request: IncomingMessage) => Counts | Refusal,
    private readonly warn: (sentence: string) => void
  ) {
    super({ maxHeaderSize: 16_384, headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 })
  }

  override emit(event: string, ...args: ReadonlyArray<unknown>): boolean {
    const [first, second] = args
    if (event === "connection" && first instanceof NetSocket) this.admit(first)
    if (!(first instanceof IncomingMessage)) return super.emit(event, ...args)
    if (event === "upgrade" && second instanceof NetSocket) {
      const found = this.judge(first)
      if (typeof found !== "function") return this.refuse(second, found)
      this.strange.delete(second)
      this.known.set(second, found)
      // Behind the door, nothing has the proof.
      delete first.headers[header]
      return super.emit(event, ...args)
    }
    // Nodes send no other requests. It has no body that anybody reads.
    if (second instanceof ServerResponse) second.writeHead(403, { connection: "close" }).end(forNodes)
    else first.socket.destroy()
    return true
  }

  /** Silent connections of strangers do not hold up the end. */
  override close(callback?: (error?: Error) => void): this {
    for (const socket of this.strange) socket.destroy()
    return super.close(callback)
  }

  /** Ends what was opened with a secret that counts no more. Its node comes back with the new one. */
  closeFormer(): void {
    for (const [socket, counts] of this.known) if (!counts()) socket.destroy()
  }

  private admit(socket: NetSocket): void {
    this.strange.add(socket)
    socket.once("close", () => {
      this.strange.delete(socket)
      this.known.delete(socket)
    })
    const [oldest] = this.strange
    if (this.strange.size > strangers) oldest?.destroy()
  }

  private refuse(socket: NetSocket, { answer, log }: Refusal): boolean {
    const now = performance.now()
    if (now - (this.said.get(answer) ?? -quiet) >= quiet) {
      this.said.set(answer, now)
      this.warn(log)
    }
    // A caller that is gone by now is no failure of ours.
    socket.on("error", () => socket.destroy())
    const head = `HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${answer.length}`
    socket.end(`${head}\r\n\r\n${answer}`, () => socket.destroy())
    return true
  }
}

const forNodes = "This port is for the nodes of a cluster. It serves nothing else."
