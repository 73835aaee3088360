import * as Path from "@effect/platform/Path"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as BuiltInGuards from "../../src/permission/BuiltInGuards.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as SanitizerOptions from "../../src/permission/SanitizerOptions.js"
import * as Kit from "../kit/agents.js"
import { commandField } from "../kit/Commands.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"

const platform = Effect.context<FileSystem.FileSystem | Path.Path>()

const entry = Effect.map(AgentRuntime.registry(Kit.kit), (tools) => {
  const [first] = tools.entries
  assert(first !== undefined)
  return first
}).pipe(Effect.provide(Kit.handlers()))

describe("a guard that was not loaded yet", () => {
  it.live("looks at the first call with a path or a command all the same", () =>
    Effect.gen(function* () {
      const plain = yield* entry
      const sanitizer = BuiltInGuards.sanitizer({ workspace: "/ws", platform: yield* platform })
      const guard = sanitizer(SanitizerOptions.strict)
      const look = (params: unknown, more: Pick<typeof plain, "paths" | "shellCommand">) =>
        Effect.either(
          guard({
            tool: plain.name,
            params,
            entry: { ...plain, ...more },
            subject: PermissionRule.subject({
              tool: plain.name,
              params,
              commandField: more.shellCommand,
              pathFields: more.paths
            })
          })
        )
      const [path, command] = yield* Effect.all(
        [
          look({ path: "/etc/passwd" }, { paths: ["path"], shellCommand: undefined }),
          look({ command: "sudo x" }, { paths: [], shellCommand: commandField })
        ],
        { concurrency: "unbounded" }
      )
      assert.isTrue(Either.isLeft(path), "it lets a path pass")
      assert.isTrue(Either.isLeft(command), "it lets a command pass")
      assert.isTrue(Either.isRight(yield* look({ path: "a" }, { paths: [], shellCommand: undefined })))
    }).pipe(Effect.provide(Layer.merge(FileSystem.layerNoop({}), Path.layer)))
  )
})
