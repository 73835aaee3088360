import * as NodeContext from "@effect/platform-node/NodeContext"
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Search from "../../src/sandbox/Search.js"

const platform = Effect.all({
  executor: CommandExecutor.CommandExecutor,
  fileSystem: FileSystem.FileSystem,
  path: Path.Path
})

describe("a name that is no text", () => {
  it.prop(
    "is read so that no two names are one, and text is itself",
    { bytes: FastCheck.uint8Array(), text: FastCheck.fullUnicodeString() },
    ({ bytes, text }) => {
      const read = Search.textOf(bytes)
      const written = [...read].flatMap((sign) => {
        const code = sign.codePointAt(0) ?? 0
        return code >= 0xdc80 && code <= 0xdcff ? [code - 0xdc00] : [...new TextEncoder().encode(sign)]
      })
      assert.deepStrictEqual(written, [...bytes])
      assert.strictEqual(Search.textOf(new TextEncoder().encode(text)), text)
    }
  )
})

describe("a search whose fiber is interrupted", () => {
  it.scopedLive("neither interrupts nor holds up the end of the scope", () =>
    Effect.gen(function* () {
      const parts = yield* platform
      const root = yield* parts.fileSystem.makeTempDirectoryScoped()
      for (let round = 0; round < 30; round++) {
        const scope = yield* Scope.make()
        const search = yield* Scope.extend(Search.make(parts, [root], "/nowhere"), scope)
        if (round % 3 === 0) yield* search.find
        const searching = yield* Effect.fork(search.find)
        yield* Effect.sleep(round % 5)
        yield* Fiber.interruptFork(searching)
        if (round % 2 === 0) yield* Fiber.await(searching)
        assert.deepStrictEqual(yield* Effect.exit(Scope.close(scope, Exit.void)), Exit.void)
        yield* Fiber.await(searching)
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
