import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Escape from "../kit/Escape.js"
import * as Runs from "../kit/Runs.js"

// The path of a socket has 107 bytes at most, and the usual directory may have a longer one.
const place = tmpdir().length < 30 ? tmpdir() : "/tmp"
let base = ""
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(place, "assent-escape-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

/** Whether the attempt does harm where nothing confines it. */
const without = async (attempt: Escape.Attempt, index: number): Promise<boolean> => {
  const world = await Escape.make(join(base, `without-${index}`))
  try {
    const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
      // Our own servers have to answer meanwhile, which they could not while we wait in `spawnSync`.
      void import("node:child_process").then(({ execFile }) =>
        execFile(
          "/bin/sh",
          ["-c", Escape.lineIn(world, attempt)],
          { cwd: world.workspace, env: { PATH: process.env["PATH"], HOME: world.home }, timeout: 10_000 },
          (_, out, err) => resolve({ stdout: out, stderr: err })
        )
      )
    })
    await world.arrived()
    return attempt.harm(world, stdout + stderr)
  } finally {
    world.close()
  }
}

describe("the table of escapes", () => {
  it("is long enough, and names each attempt once", () => {
    assert.isAtLeast(Escape.attempts.length, 80)
    assert.strictEqual(new Set(Escape.attempts.map(({ name }) => name)).size, Escape.attempts.length)
  })
})

describe("the servers of a world", () => {
  it("have counted what was sent to them before", { timeout: 120_000 }, async () => {
    const world = await Escape.make(join(base, "served"))
    try {
      await world.arrived()
      assert.strictEqual(world.reached(), 0)
      const script = `exec 3<>/dev/tcp/127.0.0.1/${world.port}; echo x > /dev/udp/127.0.0.1/${world.port}`
      assert.strictEqual(spawnSync("/bin/bash", ["-c", script]).status, 0)
      await world.arrived()
      assert.strictEqual(world.reached(), 2)
    } finally {
      world.close()
    }
  })
})

// Each attempt in turn with another state; `npm run soak:random` makes each with all of them.
const states = Confined.states(place).map((state, turn) => ({ ...state, turn }))
describe.skipIf(!Confined.isWanted).each(states)(
  "from the sandbox, with its state $name, nothing comes of",
  { concurrent: true },
  ({ state, turn }) => {
    for (const [index, attempt] of Escape.attempts.entries()) {
      if (!Runs.isWhole && index % states.length !== turn) continue
      it.scopedLive(
        attempt.name,
        () =>
          Effect.gen(function* () {
            const world = yield* Effect.acquireRelease(
              Effect.promise(() => Escape.make(join(base, `${index}`))),
              (made) => Effect.sync(() => made.close())
            )
            const directory = yield* Effect.acquireRelease(
              Effect.sync(() => mkdtempSync(join(state, "assent-state-"))),
              (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
            )
            const sandbox = yield* Confined.make({ root: world.workspace, directory })
            const told = yield* Confined.run(sandbox, world.workspace, Escape.lineIn(world, attempt))
            yield* Effect.promise(() => world.arrived())
            assert.isFalse(attempt.harm(world, told.output), told.output)
          }),
        120_000
      )
    }
  }
)

// A table whose attempts would come to nothing anywhere proves nothing.
const isAsked = (process.env["ASSENT_ESCAPES"] ?? "") !== ""
describe.skipIf(!isAsked)("without a sandbox, harm comes of most of it", () => {
  it("and these are they", { timeout: 600_000 }, async () => {
    const harmful: Array<string> = []
    const harmless: Array<string> = []
    for (const [index, attempt] of Escape.attempts.entries()) {
      if (attempt.grave === true) continue
      const isHarm = await without(attempt, index)
      ;(isHarm ? harmful : harmless).push(attempt.name)
    }
    spawnSync("/bin/sh", ["-c", "cat >&2"], {
      input: `harm: ${harmful.length}\n${harmful.join("\n")}\n\nno harm: ${harmless.length}\n${harmless.join("\n")}\n`,
      stdio: ["pipe", "inherit", "inherit"]
    })
    assert.isAtLeast(harmful.length, 60)
  })
})
