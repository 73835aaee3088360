/**
 * Comes before the tests of every file. Between two tests the event loop goes round: tests that only compute, one after
 * the other, would keep this process from answering vitest, which gives it up after a minute. A property that does not say
 * how often it is tried is tried a hundred times, and more often where everything is.
 */
import { setImmediate } from "node:timers/promises"
import { afterEach } from "vitest"
import * as Runs from "./Runs.js"

if (Runs.isWhole) (await import("effect/FastCheck")).configureGlobal({ numRuns: 2_000 })

afterEach(() => setImmediate())
