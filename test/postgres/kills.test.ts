/** Real processes that are killed: what they had acknowledged is there, and the server of the tests stays with nobody. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { createInterface } from "node:readline"
import type { SessionId } from "../../src/core/Id.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as Bundle from "../kit/Bundle.js"
import * as Postgres from "../kit/Postgres.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 120_000)

/** Killed with the test. */
const start = (args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const linesOf = ({ stdout }: ChildProcess) =>
  stdout === null ? assert.fail("it has no output") : createInterface(stdout)[Symbol.asyncIterator]()

describe.runIf(Postgres.isThere)("a process that is killed", () => {
  live("loses nothing that was acknowledged, leaves nothing in part, and the next one takes over at once", () =>
    Effect.gen(function* () {
      const program = "dist/postgres/writer.js"
      yield* Bundle.make("test/postgres/writer.ts", program)
      const url = Postgres.url(yield* Postgres.schema)
      const root = "ses_killed" as SessionId
      const store = yield* PostgresStore.make({ url, process: { pid: 1, host: "there", isAlive: () => true } })
      let written = 0
      for (let kills = 0; kills < 10; kills++) {
        const child = yield* start([program, Redacted.value(url), root, `${written}`])
        const lines = linesOf(child)
        let acknowledged = written - 1
        // So many are waited for; it goes on meanwhile, and is killed in the middle of whatever it does then.
        for (let heard = 0; heard < 3 + kills; heard++) {
          acknowledged = Number((yield* Effect.promise(() => lines.next())).value)
        }
        const ended = once(child, "exit")
        child.kill("SIGKILL")
        yield* Effect.promise(() => ended)
        for (let next; !(next = yield* Effect.promise(() => lines.next())).done;) acknowledged = Number(next.value)
        // What was on its way when it died may arrive now, as a whole.
        const { entries } = yield* store.load(root)
        assert.strictEqual(entries.length % 3, 0)
        assert.isAtLeast(entries.length, 3 * (acknowledged + 1))
        // The server may still be busy with the last commit of the dead.
        yield* Effect.retry(
          Effect.suspend(() =>
            PostgresStore.make({ url, process: { pid: 1, host: "here", isAlive: () => false } })
          ).pipe(
            Effect.flatMap((next) => next.lock(root)),
            Effect.scoped
          ),
          { times: 3 }
        )
        const ids = (yield* store.load(root)).entries.map(({ entry }) =>
          entry._tag === "MessageReceived" ? entry.message.id : "?"
        )
        written = ids.length / 3
        const whole = Array.from({ length: written }, (_, batch) => [0, 1, 2].map((at) => `${batch}/${at}`)).flat()
        assert.deepStrictEqual(ids as ReadonlyArray<string>, whole)
      }
    })
  )

  live("takes the server of its tests with it", () =>
    Effect.gen(function* () {
      const parent = yield* start([
        "-e",
        `require("node:child_process").spawn(process.execPath, ["test/postgres/server.mjs"],
          { stdio: ["pipe", "inherit", "inherit"] }); setInterval(() => {}, 1_000)`
      ])
      const { value } = yield* Effect.promise(() => linesOf(parent).next())
      const { socket } = JSON.parse(String(value)) as { readonly socket: string }
      assert.isTrue(existsSync(`${socket}/.s.PGSQL.5432`))
      parent.kill("SIGKILL")
      // Its directory goes when the server has ended.
      yield* Effect.repeat(
        Effect.sync(() => existsSync(dirname(socket))),
        { while: (isThere) => isThere, schedule: Schedule.spaced("50 millis") }
      )
    })
  )
})
