import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Confined from "../kit/Confined.js"
import * as OrdinaryLines from "../kit/OrdinaryLines.js"
import * as Program from "../kit/Program.js"

const { other, reading } = OrdinaryLines.all
const lines = [...reading, ...other]

/** What `permissions check` says of each line, in a Git workspace with the policy that a person has who set nothing. */
const decisions = (sandbox: "require" | "off") =>
  Effect.gen(function* () {
    const at = yield* Program.place
    for (const file of ["src/a.ts", "package.json", "Makefile"]) yield* at.write(`workspace/${file}`, "{}")
    execFileSync("git", ["init", "-q"], { cwd: at.path("workspace") })
    const program = yield* at.start(["run", "--jsonl", "--model", "offline", "--store", ":memory:"], {
      env: { ASSENT_SANDBOX: sandbox }
    })
    const found = new Map<string, string>()
    for (const line of lines) {
      yield* program.tell({ _tag: "Permissions", command: `check run_command ${JSON.stringify({ command: line })}` })
      const told = (yield* program.json("Permissions")).lines.join(" ")
      found.set(line, /^\w+/.exec(told)?.[0] ?? told)
    }
    yield* program.endInput
    assert.strictEqual((yield* program.exit).code, 0)
    return found
  })

const count = (found: ReadonlyMap<string, string>, decision: string) =>
  [...found].filter(([, made]) => made === decision).length

describe("three hundred ordinary command lines", () => {
  it.scopedLive("are each asked about once without a sandbox, or run unasked", () =>
    Effect.gen(function* () {
      const found = yield* decisions("off")
      assert.strictEqual(found.size, 300)
      assert.deepStrictEqual(
        [...found].filter(([, decision]) => decision !== "ask" && decision !== "allow"),
        []
      )
    })
  )

  it.scopedLive.skipIf(!Confined.isWanted)("run unasked in the sandbox if they only read; none is refused", () =>
    Effect.gen(function* () {
      const found = yield* decisions("require")
      assert.strictEqual(count(found, "ask") + count(found, "allow"), 300)
      const asked = lines.filter((line) => found.get(line) === "ask")
      assert.isAtMost(asked.filter((line) => reading.includes(line)).length, 0.05 * reading.length, asked.join("\n"))
      assert.isAtMost(asked.length, 0.55 * lines.length)
    })
  )
})
