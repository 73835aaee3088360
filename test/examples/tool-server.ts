/** An agent with the tools of a server of the Model Context Protocol. Each call is asked about like any other. */
import * as Toolkit from "@effect/ai/Toolkit"
import { AgentRuntime } from "assent"
import { McpServer } from "assent/mcp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Provide a model, and the platform, such as `NodeContext.layer`, which starts the program. */
export const runtime = Layer.unwrapScoped(
  Effect.gen(function* () {
    const files = yield* McpServer.make({ name: "files", command: "npx", args: ["-y", "some-server"] })
    return AgentRuntime.layer({ toolkit: Toolkit.empty, servers: [files] })
  })
)
