import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import {
  type Process,
  holderOf,
  impossiblyAhead,
  isHeld,
  silentAfter,
  tokenOf
} from "../../src/journal/SessionLease.js"

const now = 1_000_000_000
const here = "here"

/** Processes of this host by number, each with when it began. */
const hostOf = (running: Readonly<Record<number, string>>): Process => ({
  pid: 1,
  host: here,
  isAlive: (pid) => Object.hasOwn(running, pid),
  markOf: (pid) => running[pid]
})

describe("a lock", () => {
  const locker = hostOf({ 1: "a", 7: "b" })
  const tokenOf7 = tokenOf("ses_1", { ...locker, pid: 7 })
  const row = { pid: 7, host: here, token: tokenOf7, heartbeat: now }

  it("is its holder's while that process is there and was heard of", () => {
    assert.strictEqual(tokenOf7, "ses_1@b")
    assert.isTrue(isHeld(row, locker, now))
    assert.deepStrictEqual(holderOf(row, locker, now), { pid: 7, host: here })
    assert.isFalse(isHeld(row, locker, now + silentAfter))
  })

  it("of the future is nobody's when its process is gone, or another has its number", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.nat(10 * impossiblyAhead), (ahead) => {
        const later = { ...row, heartbeat: now + ahead }
        assert.isTrue(isHeld(later, locker, now), "the process is there")
        assert.isFalse(isHeld(later, hostOf({ 1: "a" }), now), "the process is gone")
        assert.isFalse(isHeld(later, hostOf({ 1: "a", 7: "c" }), now), "another process has the number")
        const elsewhere = { ...later, host: "there" }
        assert.strictEqual(isHeld(elsewhere, locker, now), ahead < impossiblyAhead, "another host")
      })
    )
  })

  it("that says nothing of its process is held by whoever has the number", () => {
    assert.isTrue(isHeld({ ...row, token: "ses_1" }, locker, now))
    assert.isTrue(isHeld(row, { ...locker, markOf: undefined }, now))
    assert.strictEqual(tokenOf("ses_1", { ...locker, markOf: undefined }), "ses_1")
  })

  it("of our own number is ours only if we took it", () => {
    assert.isFalse(isHeld({ ...row, pid: 1, heartbeat: now + impossiblyAhead }, locker, now))
  })
})
