/** `assent sessions turns` and `fork`: going back to a turn from the command line. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type * as Arguments from "../../src/cli/config/Arguments.js"
import * as Sessions from "../../src/cli/command/Sessions.js"
import * as StoreLocation from "../../src/host/StoreLocation.js"
import * as UserLocation from "../../src/host/local/UserLocation.js"
import type { SessionId } from "../../src/core/Id.js"
import type { Draft } from "../../src/journal/JournalEntry.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as JournalSample from "../kit/JournalSample.js"

const { draft, opened, received, root, said, taken, turnEnded } = JournalSample

afterEach(() => {
  vi.restoreAllMocks()
})

const story: ReadonlyArray<Draft> = [
  draft(opened()),
  draft(received("msg_1", "Fix the\ntests")),
  draft(taken("turn_1", 1, "msg_1")),
  draft(said("Fixed.")),
  draft(turnEnded("turn_1")),
  draft(received("msg_2", "And the others")),
  draft(taken("turn_2", 1, "msg_2"))
]

const place = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-fork-")))
    const workspace = path.join(base, "workspace")
    fs.mkdirSync(workspace)
    const folder = UserLocation.folderOf(path.join(base, "state"), workspace)
    return { base, workspace, folder, file: StoreLocation.inFolder({ folder }) }
  }),
  ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true }))
)
type Place = Effect.Effect.Success<typeof place>

const inStore = <A, E>({ file, folder }: Place, use: (store: SessionStore.Service) => Effect.Effect<A, E>) =>
  Effect.scoped(
    Effect.flatMap(
      Effect.sync(() => fs.mkdirSync(folder, { recursive: true, mode: 0o700 })),
      () => Effect.flatMap(StoreLocation.open(file), use)
    )
  )

const seeded = Effect.tap(place, (at) =>
  inStore(at, (store) => Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append(story))))
)

const bytes = (at: Place) =>
  inStore(at, (store) =>
    Effect.map(store.load(root), (loaded) => JSON.stringify(Either.getOrThrow(SessionStore.toJson(loaded))))
  )

const sessions = ({ base, workspace }: Place, words: ReadonlyArray<string>, flags: Arguments.Flags = {}) =>
  Effect.gen(function* () {
    const printed = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      vi.spyOn(process[name], "write").mockImplementation((text, ...rest) => {
        printed[name] += String(text)
        for (const callback of rest) if (typeof callback === "function") callback()
        return true
      })
    }
    const own = new Map([
      ["ASSENT_CONFIG_DIR", path.join(base, "config")],
      ["ASSENT_STATE_DIR", path.join(base, "state")]
    ])
    const code = yield* Effect.either(Sessions.run({ flags: { workspace, ...flags }, words })).pipe(
      Effect.withConfigProvider(ConfigProvider.fromMap(own)),
      Effect.ensuring(Effect.sync(() => vi.restoreAllMocks()))
    )
    return { code: Either.isRight(code) ? code.right : code.left.message, ...printed }
  })

const live = <E>(name: string, test: (at: Place) => Effect.Effect<void, E, NodeContext.NodeContext>) =>
  it.scopedLive(name, () => Effect.provide(Effect.flatMap(seeded, test), NodeContext.layer))

describe("assent sessions", () => {
  live("lists the turns that can be gone back to", (at) =>
    Effect.gen(function* () {
      const { stdout } = yield* sessions(at, ["turns", root])
      const lines = stdout.trimEnd().split("\n")
      assert.match(lines[0] ?? "", /^1 {2}\w+ \d\d:\d\d {2}Completed {2}Fix the tests$/)
      assert.match(lines[1] ?? "", /^2 {2}\w+ \d\d:\d\d {2}has not ended {2}And the others$/)
      const json = yield* sessions(at, ["turns", root], { json: true })
      assert.deepInclude(JSON.parse(json.stdout.split("\n")[0] ?? ""), { number: 1, words: "Fix the\ntests" })
    })
  )

  live("forks one, says how to go on, records it, and leaves it as it is", (at) =>
    Effect.gen(function* () {
      const before = yield* bytes(at)
      const { code, stderr, stdout } = yield* sessions(at, ["fork", root], { at: "1" })
      const id = stdout.trim() as SessionId
      assert.strictEqual(code, 0)
      assert.strictEqual(
        stderr,
        `assent: ${id} continues from the end of turn 1 of ses_root, which stays unchanged. To resume: assent chat --workspace ${at.workspace} --resume ${id}\n`
      )
      const trail = fs.readFileSync(path.join(at.folder, "audit", `${id}.jsonl`), "utf8").split("\n")
      assert.deepInclude(JSON.parse(trail[1] ?? ""), {
        kind: "fork",
        outcome: "done",
        by: os.userInfo().username,
        reason: "from ses_root, at the end of turn 1 (entry 5)"
      })
      assert.strictEqual(yield* bytes(at), before)
      const list = yield* sessions(at, ["list"])
      assert.include(list.stdout, "(fork of ses_root at turn 1)  Fix the tests")
      const shown = yield* sessions(at, ["show", id])
      assert.deepStrictEqual(shown.stdout.trimEnd().split("\n").slice(2), [
        "> Fix the",
        "  tests",
        "Fixed.",
        "-- Completed",
        "-- resumed"
      ])
      const running = yield* sessions(at, ["fork", root], { at: "2" })
      assert.match(running.stderr, /^assent: Turn 2 has not ended\. \S+ continues from the end of turn 1 of ses_root/)
      const beginning = yield* sessions(at, ["fork", root], { at: "0" })
      assert.include(beginning.stderr, "continues from the beginning of ses_root")
    })
  )

  live("refuses in words what cannot be forked, and leaves nothing of it", (at) =>
    Effect.gen(function* () {
      const refusals = [
        [
          ["fork", root],
          { at: "3" },
          /Session ses_root has no turn 3: 1 turn of it has ended; 0 is its beginning\. assent sessions turns/
        ],
        [["fork", root], { at: "-1" }, /"-1" is not the number of a turn/],
        [["fork", root], { at: "two" }, /"two" is not the number of a turn/],
        [["fork"], {}, /assent sessions fork needs a session/],
        [["fork", "ses_none"], {}, /There is no session ses_none/],
        [["turns", "ses_none"], {}, /There is no session ses_none/]
      ] as const
      for (const [words, flags, says] of refusals) assert.match(String((yield* sessions(at, words, flags)).code), says)
      assert.lengthOf(yield* inStore(at, (store) => store.list), 1)
      assert.isFalse(fs.existsSync(path.join(at.folder, "audit")))
    })
  )
})
