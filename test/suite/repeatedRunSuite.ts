/**
 * A run with an id over processes that are killed, run over every store: whenever the first one was killed, the next one does what
 * is left of the task, each later one gets the same end, and the task is done once.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as Bundle from "../kit/Bundle.js"

const moments = ["begun", "asked", "working", "answering", "over"] as const

/** What a process printed until it ended, or until it printed this line and was killed. */
const linesOf = (args: ReadonlyArray<string>, killAt?: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })),
    (child) =>
      Effect.promise(async () => {
        const ended = once(child, "exit")
        const lines: Array<string> = []
        for await (const line of createInterface(child.stdout)) {
          lines.push(line)
          if (line === killAt) child.kill("SIGKILL")
        }
        await ended
        return lines
      }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** `fresh`: the address of an empty store, given a directory that goes with the test. */
export const repeatedRunSuite = (
  name: string,
  fresh: (directory: string) => Effect.Effect<string, never, Scope.Scope>
): void => {
  describe(`a run with an id in ${name}`, () => {
    const program = `dist/repeatedRun/${name.replace(/\W+/g, "-")}.js`
    beforeAll(() => Effect.runPromise(Bundle.make("test/suite/repeatedRun.ts", program)))
    for (const killed of moments)
      it.scopedLive(
        `is done once, and has one end, when its process is killed: ${killed}`,
        () =>
          Effect.gen(function* () {
            const directory = yield* Effect.acquireRelease(
              Effect.sync(() => mkdtempSync(join(tmpdir(), "assent-run-"))),
              (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
            )
            const ledger = join(directory, "ledger")
            const args = [program, yield* fresh(directory), ledger]
            const first = yield* linesOf([...args, killed], killed)
            const [session = "", ...before] = first
            assert.include(before, killed)
            const [, ...second] = yield* linesOf([...args, "nowhere", session])
            const end = second.at(-2)
            assert.deepStrictEqual(JSON.parse(end ?? ""), { _tag: "Completed", text: "It is paid.", steps: 2 })
            // It began where the first one was killed.
            assert.deepStrictEqual(
              second.slice(0, -2),
              killed === "over" ? [] : killed === "working" ? ["answering"] : moments.slice(moments.indexOf(killed), -1)
            )
            assert.deepStrictEqual(yield* linesOf([...args, "nowhere", session]), [session, end, "over"])
            if (killed === "over") assert.include(before, end)
            assert.strictEqual(readFileSync(ledger, "utf8"), "paid\n")
          }),
        120_000
      )
  })
}
