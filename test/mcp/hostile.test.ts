/** Servers that do harm: each costs its own tools and a sentence, and never the session. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as Program from "../kit/Program.js"
import * as Runs from "../kit/Runs.js"
import * as ServerKit from "../kit/ServerKit.js"

const program = resolve("test/kit/servers/hostile.mjs")

const [starts, welcomes, lists, acts] = JSON.parse(execFileSync(process.execPath, [program, "kinds"]).toString()) as [
  starts: ReadonlyArray<string>,
  welcomes: ReadonlyArray<string>,
  lists: ReadonlyArray<string>,
  acts: ReadonlyArray<string>
]

const kinds = [...starts, ...welcomes, ...lists, ...acts]

/** Kinds that send much. */
const large = [
  "answers with 100 MB",
  "prints without an end of line",
  "prints errors for ever",
  "answers with a line of 11 MB",
  "answers with a thousand levels",
  "lists for ever",
  "lists ten thousand",
  "lists a schema of 5 MB",
  "lists a deep schema",
  "lists a description of 1 MB",
  "answers with 9 MB",
  "answers with an image of 9 MB",
  "sends a line of 11 MB",
  "sends 100,000 notifications",
  "sends 20,000 requests",
  "reports hostile progress"
]

const pick = (all: ReadonlyArray<string>, at: number): string => all[at % all.length] ?? ""

/** Servers that do harm in three ways, one after the other; with those of one way they are 200. */
const mixed = Array.from({ length: 200 - kinds.length }, (_, i) =>
  [pick([...starts, ...welcomes], i), pick(lists, i * 5 + 1), pick(acts, i * 7 + 2)].join(" + ")
)

const act = { tools: [{ name: "mcp__hostile__act", params: {} }] }

/** What a terminal obeys or hides. */
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

/** Kinds whose first answer never comes: the session goes on without their tools. */
const isLate = (kind: string) => kind.includes("never answers the first") || kind.includes("never lists")

/** What went wrong with a session that has such a server. A person allows the first call, and denies all others. */
const flawsOf = (kind: string) =>
  Effect.gen(function* () {
    const log = join(mkdtempSync(join(tmpdir(), "assent-hostile-")), "log")
    const settings = { name: "hostile", command: process.execPath, args: [program, kind, log], timeout: 2 }
    const server = yield* isLate(kind) ? ServerKit.begun(settings) : ServerKit.started(settings)
    let approvals = 0
    const { end, events, requests, results } = yield* ServerKit.played(server, {
      script: [act, act, act, { text: "done" }],
      person: ({ interaction }) => {
        if (interaction._tag === "Elicit") return "name"
        return interaction._tag === "Approve" && ++approvals === 1 ? "y" : "n"
      }
    })
    const calls = existsSync(log) ? readFileSync(log, "utf8").split("\n").length - 1 : 0
    const { reason = "", state } = server.state()
    const asked = requests.filter(({ interaction }) => interaction._tag !== "Approve").length
    const said = [
      reason,
      ...results,
      JSON.stringify(requests.map(({ interaction }) => interaction)),
      JSON.stringify(events)
    ]
    // A failure is a sentence, or foreign text of the server with its mark.
    const unsaid = results.filter((text) => text.startsWith("failed") && !/(?:\.|<\/foreign-text>)$/.test(text))
    const own = said.filter((text) => control.test(text.replaceAll("\n", "")))
    return [
      ...(end._tag === "Completed" ? [] : [`the session ended as ${end._tag}`]),
      ...(calls <= 1 ? [] : [`${calls} calls were made and one was allowed`]),
      ...(results.length === 3 ? [] : [`${results.length} results of 3 calls`]),
      ...(asked <= 20 ? [] : [`${asked} questions`]),
      ...unsaid.map((text) => `no sentence: ${text.slice(0, 200)}`),
      ...own.map((text) => `control characters: ${JSON.stringify(text).slice(0, 300)}`),
      ...(state === "failed" && reason === "" ? ["no reason"] : []),
      ...(Object.hasOwn(Object.prototype, "polluted") ? ["polluted"] : [])
    ].map((flaw) => `${kind}: ${flaw}`)
  }).pipe(
    Effect.scoped,
    Effect.timeoutTo({ duration: "40 seconds", onSuccess: (flaws) => flaws, onTimeout: () => [`${kind}: hangs`] }),
    Effect.catchAllCause((cause) => Effect.succeed([`${kind}: ${String(cause).slice(0, 500)}`])),
    Effect.provide(NodeContext.layer)
  )

const running = () =>
  execFileSync("/bin/sh", ["-c", `ps -eo args= | grep -F -- ${program} | grep -v grep || true`]).toString()

describe("a hostile server", () => {
  it.live(
    `of ${kinds.length} kinds`,
    () =>
      Effect.gen(function* () {
        const flaws = yield* Effect.forEach(kinds, flawsOf, { concurrency: 4 })
        assert.deepStrictEqual(flaws.flat(), [])
        assert.strictEqual(running(), "")
      }),
    { timeout: 600_000 }
  )

  /** The most megabytes of a program whose model calls the tool of a server that does this. */
  const peakOf = (kind: string) =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const hostile = { command: process.execPath, args: [program, kind, place.path("log")], timeout: 2 }
      yield* place.write("config/config.json", { mcp_servers: { hostile } })
      const wait = { tools: [{ name: "run_command", params: { command: "sleep 4" } }] }
      const model = yield* place.script(wait, act, act, { text: "done" })
      const run = yield* place.start(["run", "--jsonl", "--mode", "allow", "--model", model, "go"])
      yield* run.json("TurnEnded", { reason: "completed" })
      const peak = Program.peakMegabytes(run.pid) ?? 0
      yield* run.endInput
      return peak
    }).pipe(Effect.scoped)

  it.live(
    "costs at most 100 MB of memory",
    () =>
      Effect.gen(function* () {
        const measured = (kind: string) => Effect.map(peakOf(kind), (peak) => ({ kind, peak }))
        const [usual, ...others] = yield* Effect.all([peakOf("nothing"), ...Runs.some(large).map(measured)], {
          concurrency: 4
        })
        for (const { kind, peak } of others) {
          assert.isBelow(peak - usual, 100, `${kind}: ${peak} MB, and ${usual} MB of a usual server`)
        }
      }),
    { timeout: 600_000 }
  )

  it.live(
    "of several ways at once",
    () =>
      Effect.gen(function* () {
        const flaws = yield* Effect.forEach(Runs.some(mixed), flawsOf, { concurrency: 4 })
        assert.deepStrictEqual(flaws.flat(), [])
        assert.strictEqual(running(), "")
      }),
    { timeout: 1_200_000 }
  )
})
