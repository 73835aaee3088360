/**
 * Comes before the tests of every file. Between two tests the event loop goes round: tests that only compute, one after
 * the other, would keep this process from answering vitest, which gives it up after a minute. A property that does not say
 * how often it is tried is tried 50 times, and more often where everything is.
 */
import { configureGlobal } from "effect/FastCheck"
import { setImmediate } from "node:timers/promises"
import { afterEach } from "vitest"
import * as Runs from "./Runs.js"

configureGlobal({ numRuns: Runs.isWhole ? 2_000 : 50 })

afterEach(() => setImmediate())
