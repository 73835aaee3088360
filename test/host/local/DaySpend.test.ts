import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as DaySpend from "../../../src/host/local/DaySpend.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "assent-spend-"))),
  (place) => Effect.sync(() => fs.rmSync(place, { recursive: true, force: true }))
)

const noon = new Date(2026, 10, 27, 12).getTime()

const made = Effect.gen(function* () {
  yield* TestClock.setTime(noon)
  const place = yield* folder
  const clock = yield* Effect.clock
  const failures: Array<string> = []
  const make = (currency = "USD") =>
    DaySpend.make({ folder: place, clock, currency, failed: (sentence) => void failures.push(sentence) })
  return { failures, file: path.join(place, "spend-2026-11-27.jsonl"), make, place }
})

describe("the spend of a day", () => {
  it.scoped("is known to every process, as soon as a call is over", () =>
    Effect.gen(function* () {
      const { file, make } = yield* made
      const [one, other] = [make(), make()]
      assert.deepStrictEqual([one.spent(), other.spent()], [0, 0])
      assert.isFalse(fs.existsSync(file))
      one.add(1.5)
      other.add(0.25)
      assert.deepStrictEqual([one.spent(), other.spent(), make().spent()], [1.75, 1.75, 1.75])
      one.add(1)
      assert.deepStrictEqual([one.spent(), other.spent()], [2.75, 2.75])
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
    })
  )

  it.scoped("begins anew at midnight, where the person is, and leaves no file of a former day", () =>
    Effect.gen(function* () {
      const { file, make, place } = yield* made
      const day = make()
      day.add(3)
      yield* TestClock.adjust("11 hours")
      assert.deepStrictEqual([day.today(), day.spent()], ["2026-11-27", 3])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([day.today(), day.spent()], ["2026-11-28", 0])
      fs.writeFileSync(path.join(place, "sessions.db"), "x")
      day.add(2)
      assert.strictEqual(day.spent(), 2)
      assert.isFalse(fs.existsSync(file))
      assert.deepStrictEqual(fs.readdirSync(place).sort(), ["sessions.db", "spend-2026-11-28.jsonl"])
    })
  )

  it.scoped("counts whole lines of its currency, and a damaged one for nothing", () =>
    Effect.gen(function* () {
      const { file, make } = yield* made
      const day = make()
      day.add(1)
      make("EUR").add(8)
      fs.appendFileSync(file, 'nonsense\n{"cost":-4,"currency":"USD"}\n{"cost":"9","currency":"USD"}\n{"cost":2,"curr')
      assert.strictEqual(day.spent(), 1)
      fs.appendFileSync(file, 'ency":"USD"}\n')
      assert.strictEqual(day.spent(), 3)
      assert.strictEqual(make("EUR").spent(), 8)
      // Somebody removed it: then less was spent.
      fs.rmSync(file)
      assert.strictEqual(day.spent(), 0)
      day.add(0.5)
      assert.strictEqual(day.spent(), 0.5)
    })
  )

  it.scoped("that cannot be written is counted here, and said", () =>
    Effect.gen(function* () {
      const { failures, file, make, place } = yield* made
      fs.mkdirSync(path.join(place, "elsewhere"))
      fs.symlinkSync(path.join(place, "elsewhere", "file"), file)
      const day = make()
      day.add(1)
      assert.lengthOf(failures, 1)
      assert.include(failures[0] ?? "", "Other processes do not count it.")
      assert.deepStrictEqual(fs.readdirSync(path.join(place, "elsewhere")), [])
      fs.rmSync(file)
      day.add(2)
      assert.strictEqual(day.spent(), 3)
      assert.strictEqual(make().spent(), 2)
    })
  )
})
