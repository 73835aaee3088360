/** The reference server of the protocol, over stdio and over HTTP: each of its tools goes through the gate. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import type * as McpServer from "../../../src/mcp/McpServer.js"
import * as ServerKit from "../../kit/ServerKit.js"
import * as Judged from "../Judged.js"

const judged = it.live.skipIf(!Judged.isInstalled("mcp"))

const program = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url)
)

const stdio = ServerKit.started({ name: "everything", command: Judged.node("mcp"), args: [program, "stdio"] })

const freePort = Effect.promise(
  () =>
    new Promise<number>((resolve) => {
      const server = createServer().listen(0, "127.0.0.1", () => {
        const address = server.address()
        server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
      })
    })
)

const http = Effect.gen(function* () {
  const port = yield* freePort
  yield* Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<() => void>((resolve) => {
          const env = { ...process.env, PORT: String(port) }
          const child = spawn(Judged.node("mcp"), [program, "streamableHttp"], {
            env,
            stdio: ["ignore", "pipe", "pipe"]
          })
          const heard = () => resolve(() => child.kill("SIGKILL"))
          child.stdout.once("data", heard)
          child.stderr.once("data", heard)
        })
    ),
    (end) => Effect.sync(end)
  )
  return yield* ServerKit.started({ name: "everything", url: `http://127.0.0.1:${port}/mcp` })
})

const ways: ReadonlyArray<
  readonly [way: string, server: Effect.Effect<McpServer.McpServer, never, McpServer.Platform | Scope.Scope>]
> = [
  ["stdio", stdio],
  ["HTTP", http]
]

const call = (tool: string, params: object = {}) => ({ tools: [{ name: `mcp__everything__${tool}`, params }] })

describe.each(ways)("server-everything over %s", (_, started) => {
  const within = <E>(test: (server: McpServer.McpServer) => Effect.Effect<void, E>) =>
    Effect.flatMap(started, test).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

  judged("has its tools asked about, and answers as it documents", () =>
    within((server) =>
      Effect.gen(function* () {
        assert.strictEqual(server.state().state, "ready", server.state().reason)
        const names = server.entries().map(({ name }) => name)
        assert.includeMembers(names, ["mcp__everything__echo", "mcp__everything__get-sum"])
        const { results, shown } = yield* ServerKit.played(server, {
          script: [
            call("echo", { message: "hello" }),
            call("get-sum", { a: 2, b: 3 }),
            call("get-tiny-image"),
            call("echo", { message: "denied" }),
            { text: "done" }
          ],
          person: ["y", "y", "y", "n"]
        })
        assert.lengthOf(shown, 4)
        assert.include(results[0], "Echo: hello")
        assert.include(results[1], "The sum of 2 and 3 is 5")
        assert.include(results[2], "image/png")
        assert.match(results[3] ?? "", /^denied/)
      })
    )
  )

  judged("elicits from the person of the call, and its long operation is cancelled there", () =>
    within((server) =>
      Effect.gen(function* () {
        const { results, shown } = yield* ServerKit.played(server, {
          script: [call("trigger-elicitation-request"), { text: "done" }],
          person: ({ interaction }) => (interaction._tag === "Approve" ? "y" : "cancel")
        })
        assert.isTrue(shown.some((text) => text.startsWith("Elicit The server everything asks:")))
        assert.match(results[0] ?? "", /^succeeded/)
        const before = Date.now()
        const long = yield* ServerKit.played(
          server,
          { script: [call("trigger-long-running-operation", { duration: 60, steps: 60 }), { text: "done" }] },
          (events) => events.some(({ _tag }) => _tag === "ToolOutput")
        )
        assert.deepStrictEqual(
          long.results.map((text) => text.split(" ")[0]),
          ["interrupted"]
        )
        assert.isBelow(Date.now() - before, 30_000)
        assert.isTrue(long.events.some(({ _tag }) => _tag === "ToolOutput"))
      })
    )
  )
})
