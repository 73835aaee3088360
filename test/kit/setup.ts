/**
 * Comes before the tests of every file. Between two tests the event loop goes round: tests that only compute, one after
 * the other, would keep this process from answering vitest, which gives it up after a minute.
 */
import { setImmediate } from "node:timers/promises"
import { afterEach } from "vitest"

afterEach(() => setImmediate())
