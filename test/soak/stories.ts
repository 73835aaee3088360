/**
 * Random stories of people who decide about calls, over processes that end in any way: in memory, in SQLite files and in a
 * PostgreSQL database.
 *
 * ```
 * node dist/soak-stories/soak-stories.js [--memory 6000] [--libsql 3000] [--postgres 1000] [--seed 1]
 * ```
 *
 * PostgreSQL needs the server that `npm run test:postgres` installs. Prints what came of it, and exits with 1 when an answer
 * that was acknowledged is lost, a call ran twice or is told wrongly, or the audit does not tell all of it.
 */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as AuditedStories from "../kit/AuditedStories.js"
import * as Mortal from "../kit/Mortal.js"
import * as PostgresServer from "../kit/PostgresServer.js"
import * as Shuffled from "../kit/Shuffled.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const seed = numberOf("--seed", 1)
const write = (text: string) => process.stdout.write(`${text}\n`)
let wrong = 0

/** Plays so many stories, each in a world of its own. */
const play = async (
  name: string,
  stories: number,
  world: Effect.Effect<Mortal.CallerContext, unknown, Scope.Scope>
): Promise<void> => {
  const began = performance.now()
  const counts = new Map<string, number>()
  const before = wrong
  const say = (played: number) =>
    write(
      `${played} stories in ${name}, ${wrong - before} wrong, ${((performance.now() - began) / 1_000).toFixed(0)} s`
    )
  for (let story = 0; story < stories; story++) {
    const random = Shuffled.random(seed * 1_000_000 + story)
    const verdict = await Effect.runPromise(
      Effect.scoped(Effect.flatMap(world, (made) => AuditedStories.play(random, made)))
    )
    for (const [what, count] of Object.entries(verdict.counts)) counts.set(what, (counts.get(what) ?? 0) + count)
    if (verdict.problems.length > 0) wrong++
    for (const problem of verdict.problems) write(`  story ${story}: ${problem}`)
    if ((story + 1) % 500 === 0) say(story + 1)
  }
  if (stories % 500 !== 0) say(stories)
  write(`  ${[...counts].map(([what, count]) => `${count} ${what}`).join(", ")}`)
}

write(`seed ${seed}`)
await play("memory", numberOf("--memory", 6_000), Mortal.world)

const files = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "assent-stories-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
  ),
  (directory) => join(directory, "assent.db")
)
await play(
  "SQLite files",
  numberOf("--libsql", 3_000),
  Effect.flatMap(files, (file) =>
    Mortal.worldOf((process) => Effect.provide(LibsqlStore.make({ file, process }), NodeContext.layer))
  )
)

const inDatabase = numberOf("--postgres", 1_000)
if (PostgresServer.isInstalled && inDatabase > 0) {
  const { server, stop } = await PostgresServer.start()
  const world = Effect.flatMap(PostgresServer.schema(server), (parameters) =>
    Mortal.worldOf((process) => PostgresStore.make({ url: PostgresServer.url(server, parameters), process }))
  )
  await play("PostgreSQL", inDatabase, world)
  await stop()
} else if (inDatabase > 0) write("No PostgreSQL server here: npm run test:postgres installs it.")
// The dead processes of the stories leave timers behind.
process.exit(wrong === 0 ? 0 : 1)
