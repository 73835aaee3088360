/** Sessions that go for their age or number, and what of a session goes to another place. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const ids = (at: Program.Place) =>
  Effect.map(at.call(["sessions", "list", "--json"]), ({ stdout }) =>
    Program.linesOf(stdout).map((line): string => JSON.parse(line).rootSessionId)
  )

describe.concurrent("assent sessions", () => {
  it.scopedLive("prune deletes what is not wanted any more, keeps what waits, and says what room is left", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const text of ["one", "two", "three"]) yield* at.call(["run", text])
      assert.strictEqual((yield* at.call(["run", "run touch made"])).code, 3)
      const before = yield* ids(at)
      assert.lengthOf(before, 4)
      const [waiting = "", newest = "", ...others] = before
      const young = yield* at.call(["sessions", "prune", "--unused", "1d"])
      assert.deepStrictEqual([young.code, young.stdout], [0, ""], young.stderr)
      const pruned = yield* at.call(["sessions", "prune", "--keep", "2"])
      assert.strictEqual(pruned.code, 0, pruned.stderr)
      for (const id of others) assert.include(pruned.stdout, id)
      assert.match(pruned.stderr, /^assent: 2 sessions are deleted\. Their audit stays\. \S+sessions\.db has \d+ kB/)
      assert.deepStrictEqual(yield* ids(at), [waiting, newest])
      yield* at.call(["sessions", "prune", "--keep", "0"])
      assert.deepStrictEqual(yield* ids(at), [waiting])
      for (const words of [
        ["--keep", "some"],
        ["--unused", "long"],
        ["--keep", "1", "more"]
      ]) {
        const { code, stderr } = yield* at.call(["sessions", "prune", ...words])
        assert.strictEqual(code, 2, words.join(" "))
        assert.match(stderr, /^assent: \S/)
      }
      // Without a word it deletes nothing.
      assert.strictEqual((yield* at.call(["sessions", "prune"])).code, 2)
      assert.deepStrictEqual(yield* ids(at), [waiting])
    })
  )

  it.scopedLive("import takes an exported session over, without what it was allowed and what was under way", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.call(["run", "hello there"])
      const [id = ""] = yield* ids(at)
      const { stdout } = yield* at.call(["sessions", "export", id])
      const file = yield* at.write("exported.json", stdout)
      const taken = yield* at.call(["sessions", "import", file])
      assert.strictEqual(taken.code, 0, taken.stderr)
      assert.include(taken.stdout, `was ${id}`)
      const [copy = ""] = (yield* ids(at)).filter((one) => one !== id)
      assert.include((yield* at.call(["sessions", "show", copy])).stdout, "hello there")
      const broken = yield* at.write("broken.json", stdout.slice(0, -20))
      const deep = yield* at.write("deep.json", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)
      const later = yield* at.write("later.json", stdout.replace('"version":1', '"version":9'))
      for (const [name, says] of [
        [broken, "is no JSON"],
        [deep, "is nested more than 128 levels deep"],
        [later, "version 9"]
      ] as const) {
        const { code, stderr } = yield* at.call(["sessions", "import", name])
        assert.strictEqual(code, 2)
        assert.include(stderr, says)
      }
      assert.lengthOf(yield* ids(at), 2)
    })
  )
})
