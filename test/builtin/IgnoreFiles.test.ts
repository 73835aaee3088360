/** Ignore files of a repository that are made to be slow. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as IgnoreFiles from "../../src/builtin/IgnoreFiles.js"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as HeldLoop from "../kit/HeldLoop.js"
import * as Runs from "../kit/Runs.js"

const size = 262_144

/** As long as the system takes one. */
const long = `${`${"a".repeat(200)}/`.repeat(18)}${"a".repeat(200)}`

/** Milliseconds, with a generous factor: a shared processor takes longer for the same work. */
const limit = 200

/** The longest time that rules of this text hold the event loop, from the file to the verdict of a long path. */
const held = (text: string, depth = 1) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const directory = yield* fileSystem.makeTempDirectoryScoped()
    yield* fileSystem.writeFileString(path.join(directory, IgnoreFiles.name), text)
    const files = IgnoreFiles.make({ fileSystem, path })
    return yield* Effect.promise(() =>
      HeldLoop.measure({
        name: text.slice(0, 20),
        limit,
        make: () => "",
        run: () =>
          Effect.gen(function* () {
            const rules = yield* files.in(directory)
            const all = Array.from({ length: depth }, () => rules).flat()
            yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
            files.leaveOut(all, path.join(directory, long), false)
          })
      })
    )
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

describe("an ignore file", () => {
  for (const line of ["b", "*a*b", "**/a/**/b", "[a-z]*[!a]", "/a*/**/b*c", "?", " ", "é*"]) {
    it.live(`holds the event loop for no longer than 50 ms: ${line}`, () =>
      Effect.gen(function* () {
        const text = `${line}\n`.repeat(size).slice(0, size / 2)
        assert.isBelow((yield* held(text)).milliseconds, limit)
        assert.isBelow((yield* held(text, 20)).milliseconds, limit, "in each of 20 directories")
      })
    )
  }

  it.live("of any lines does not either", () =>
    Effect.gen(function* () {
      const part = fc.constantFrom(
        "*",
        "**",
        "?",
        "[",
        "]",
        "[a-z]",
        "[!a]",
        "/",
        "!",
        "a",
        "b",
        "\\",
        " ",
        "#",
        "é",
        "\n"
      )
      const lines = fc.sample(fc.array(part, { minLength: 1, maxLength: 12 }), { numRuns: Runs.of(48), seed: 7 })
      for (const line of lines) {
        const text = `${line.join("")}\n`
        assert.isBelow((yield* held(text.repeat(size / 2 / text.length), 3)).milliseconds, limit, text)
      }
    })
  )

  it.live("has all its rules, and its last matching rule counts, however long it is", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const directory = yield* fileSystem.makeTempDirectoryScoped()
      const many = Array.from({ length: 5_000 }, (_, at) => `file${at}.txt`)
      const text = ["first.txt", "*.log", ...many, "!kept.log", "last.txt"].join("\n")
      yield* fileSystem.writeFileString(path.join(directory, IgnoreFiles.name), text)
      const files = IgnoreFiles.make({ fileSystem, path })
      const rules = yield* files.in(directory)
      const leftOut = (name: string) => files.leaveOut(rules, path.join(directory, name), false)
      assert.deepStrictEqual(
        ["first.txt", "a.log", "file0.txt", "file2500.txt", "file4999.txt", "last.txt"].filter(
          (name) => !leftOut(name)
        ),
        []
      )
      assert.deepStrictEqual(["kept.log", "file5000.txt", "a.txt"].filter(leftOut), [])
    }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))
  )
})

describe("a pattern without ripgrep", () => {
  it.live("holds the event loop for no longer than 50 ms", () =>
    Effect.gen(function* () {
      // What loads the engine is no pattern's.
      yield* LinePattern.make("a", false)
      const part = fc.constantFrom(
        ...["a", "b", ".", "\\w", "\\pL", "[a-z]", "[^x]", "(?i)", "(", ")", "|", "*", "+", "?", "{9}", "{1,30}", "\\b"]
      )
      const patterns = fc
        .sample(fc.array(part, { minLength: 1, maxLength: 8 }), { numRuns: Runs.of(160), seed: 5 })
        .flatMap((parts) => [parts.join(""), parts.join("").repeat(40), `(${parts.join("")})*c`.repeat(20)])
      for (const pattern of patterns) {
        const { milliseconds } = yield* Effect.promise(() =>
          HeldLoop.measure({
            name: pattern,
            limit,
            make: () => pattern,
            run: (text) =>
              Effect.match(LinePattern.make(text.slice(0, 2_000), false), {
                onFailure: () => undefined,
                onSuccess: ({ find, longest }) => find("aab".repeat(longest).slice(0, longest))
              })
          })
        )
        assert.isBelow(milliseconds, limit, pattern)
      }
    })
  )
})
