/** The port between nodes: strangers get no WebSocket there, and nodes go on while the secret is rotated. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connect } from "node:net"
import * as NodeSecret from "../../src/cluster/NodeSecret.js"
import * as Digest from "../../src/core/Digest.js"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 180_000)

const two = Effect.gen(function* () {
  const cluster = yield* Effect.flatMap(Postgres.schema, (parameters) => Cluster.make(Postgres.url(parameters)))
  const options = { nap: 100, parkAfter: 60_000, evictAfter: 60_000 }
  const nodes = yield* Effect.all([cluster.start("a", options), cluster.start("b", options)], {
    concurrency: "unbounded"
  })
  yield* cluster.settled(2)
  const [row] = yield* cluster.sql<{ readonly address: string }>`SELECT address FROM assent_node LIMIT 1`
  const secrets = cluster.sql<{ readonly secret: string }>`SELECT secret FROM assent_node_secret ORDER BY number DESC`
  return { ...cluster, nodes, address: row?.address ?? assert.fail("no node"), secrets }
})

const proof = (secret: string, address: string, at = Date.now()) =>
  `authorization: Node ${at}.${Digest.hmacSha256(secret, `node ${at} ${address}`)}`

/** An answer's first line; empty if there was none. `ended` waits for the end of the connection. */
const say = (address: string, text: string | Buffer) =>
  Effect.async<{ readonly line: string; readonly ended: Effect.Effect<void> }, never, never>((resume) => {
    const [host = "", port = ""] = address.split(":")
    const socket = connect({ host, port: Number(port) }, () => socket.write(text))
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
    let got = ""
    const answer = () =>
      resume(Effect.succeed({ line: got.split("\r\n")[0] ?? "", ended: Effect.promise(() => closed) }))
    socket.on("error", () => undefined)
    socket.on("data", (data) => {
      got += data.toString("latin1")
      if (got.startsWith("HTTP/1.1 101")) answer()
    })
    socket.once("close", answer)
  })

const upgrade = (address: string, headers: ReadonlyArray<string>, host: string | undefined = address) =>
  say(
    address,
    [
      "GET / HTTP/1.1",
      `host: ${host}`,
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
      "",
      ""
    ].join("\r\n")
  )

const accepted = "HTTP/1.1 101 Switching Protocols"
const refused = "HTTP/1.1 403 Forbidden"

/** A turn of a session that the node has not to which it is sent. */
const talks = (nodes: ReadonlyArray<Cluster.Node>, id: string) =>
  Effect.gen(function* () {
    const [first] = nodes
    assert(first !== undefined)
    yield* Cluster.begin(first, id)
    const request = yield* Cluster.asked(first, id)
    const owner = yield* Cluster.ownerOf(nodes, id)
    const other = nodes.find((node) => node !== owner) ?? assert.fail("one node")
    const answer = yield* Cluster.asking(other.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }))
    assert.deepStrictEqual([answer.status, answer.body.status], [200, "answered"], JSON.stringify(answer))
  })

describe.runIf(Postgres.isThere)("the port between nodes", { concurrent: true }, () => {
  live("opens for a node with a proof, and for no page, no other name and no wrong proof", () =>
    Effect.gen(function* () {
      const { address, nodes, secrets } = yield* two
      const [{ secret } = assert.fail("no secret"), ...rest] = yield* secrets
      assert.deepStrictEqual(rest, [])
      const good = proof(secret, address)
      assert.strictEqual((yield* upgrade(address, [good])).line, accepted)
      const port = address.split(":")[1] ?? ""
      const refusals: ReadonlyArray<readonly [headers: ReadonlyArray<string>, host?: string]> = [
        [[good, "origin: null"]],
        [[good, "origin: http://evil.example"]],
        [[good, `origin: http://${address}`]],
        [[good, "sec-fetch-site: same-origin"]],
        [[good], "evil.example"],
        [[good], `evil.example:${port}`],
        [[good], `localhost:${port}`],
        [[good], "127.0.0.1"],
        [[good], "127.0.0.1:1"],
        [[good], ""],
        [[]],
        [["authorization: Node "]],
        [[`authorization: Node ${secret}`]],
        [[good.replace("Node", "Bearer")]],
        [[good.slice(0, -1)]],
        [[good, good]],
        [[proof("another", address)]],
        [[proof("", address)]],
        [[proof(secret, "127.0.0.1:1")]],
        [[proof(secret, address, Date.now() - 60_000)]],
        [[proof(secret, address, Date.now() + 60_000)]]
      ]
      for (const [headers, host] of refusals) {
        const { ended, line } = yield* upgrade(address, headers, host)
        assert.strictEqual(line, refused, JSON.stringify([headers, host]))
        yield* ended
      }
      const plain = yield* say(address, `GET / HTTP/1.1\r\nhost: ${address}\r\n${good}\r\n\r\n`)
      assert.strictEqual(plain.line, refused)
      for (const garbage of [Buffer.from([0x82, 0x05, 1, 2, 3, 4, 5]), "\0".repeat(20_000), "nodes\r\n\r\n"]) {
        const { line } = yield* say(address, garbage)
        assert.notStrictEqual(line, accepted)
      }
      yield* talks(nodes, "s")
      const logs = nodes.map((node) => node.logged()).join("\n")
      assert.include(logs, "upgrade it to this version")
      assert.include(logs, "a web page tried to act as a node")
      assert.notInclude(logs, secret)
      // A sentence for each kind, however many callers there were.
      assert.lengthOf(logs.match(/wrong or old/g) ?? [], 1)
    })
  )

  live("takes the former secret for a while after a rotation, and then ends what it opened", () =>
    Effect.gen(function* () {
      const { address, nodes, secrets, sql } = yield* two
      const [{ secret: former } = assert.fail("no secret")] = yield* secrets
      yield* talks(nodes, "before")
      yield* Effect.all([NodeSecret.rotate(sql), NodeSecret.rotate(sql)], { concurrency: "unbounded" })
      const [{ secret: next } = assert.fail("no secret")] = yield* secrets
      assert.notStrictEqual(next, former)
      const lines = (secret: string) =>
        Effect.map(
          Effect.suspend(() => upgrade(address, [proof(secret, address)])),
          ({ line }) => line
        )
      // The node has read the new one.
      yield* Cluster.until(lines(next), (line) => line === accepted)
      const opened = yield* upgrade(address, [proof(former, address)])
      assert.strictEqual(opened.line, accepted)
      // Half a minute later, by the database.
      yield* sql`UPDATE assent_node_secret SET made = made - ${NodeSecret.expiring}`
      yield* Cluster.until(lines(former), (line) => line === refused)
      yield* opened.ended
      assert.strictEqual(yield* lines(next), accepted)
      yield* talks(nodes, "after")
      for (const node of nodes) assert.strictEqual((yield* Cluster.asking(node.call("/readyz"))).status, 200)
    })
  )
})
