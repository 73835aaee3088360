import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FastCheck from "fast-check"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as UserLocation from "../../../src/host/local/UserLocation.js"

const under = (variables: Record<string, string>) =>
  Effect.withConfigProvider(
    Effect.all([UserLocation.configDirectory, UserLocation.stateDirectory]),
    ConfigProvider.fromMap(new Map(Object.entries(variables)))
  )

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-state-")))),
  (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
)

const modeOf = (file: string) => fs.statSync(file).mode & 0o777

describe("the person's directories", () => {
  it.effect("are where the variables say, else where the system has them, and never where we happen to be", () =>
    Effect.gen(function* () {
      const own = { ASSENT_CONFIG_DIR: "/c", ASSENT_STATE_DIR: "/s", XDG_STATE_HOME: "/x", HOME: "/h" }
      assert.deepStrictEqual(yield* under(own), ["/c", "/s"])
      assert.deepStrictEqual(yield* under({ XDG_CONFIG_HOME: "/xc", XDG_STATE_HOME: "/xs", HOME: "/h" }), [
        "/xc/assent",
        "/xs/assent"
      ])
      const usual = process.platform === "darwin" ? "/h/Library/Application Support/assent" : "/h/.local/state/assent"
      assert.deepStrictEqual(yield* under({ HOME: "/h" }), ["/h/.config/assent", usual])
      // Relative ones would lie in the workspace, and whoever made that could have filled them.
      assert.deepStrictEqual(yield* under({ HOME: "/h", XDG_CONFIG_HOME: ".", XDG_STATE_HOME: "state" }), [
        "/h/.config/assent",
        usual
      ])
      for (const directory of [
        ...(yield* under({})),
        ...(yield* under({ HOME: "" })),
        ...(yield* under({ HOME: "." }))
      ]) {
        assert.isTrue(path.isAbsolute(directory))
        assert.isFalse(directory.startsWith(process.cwd()))
      }
    })
  )

  it("have a folder for each workspace, whatever its name", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string({ unit: "binary" }), FastCheck.string({ unit: "binary" }), (one, other) => {
        const [first, second] = [one, other].map((name) => UserLocation.folderOf("/state", path.join("/w", name)))
        assert.strictEqual(path.dirname(first ?? ""), "/state/workspaces")
        assert.match(path.basename(first ?? ""), /^[\w-][\w.-]{0,60}-[0-9a-f]{16}$/)
        assert.strictEqual(first === second, path.join("/w", one) === path.join("/w", other))
      })
    )
  })

  it.scopedLive("are made for nobody else, and closed where they stood open", () =>
    Effect.gen(function* () {
      const state = path.join(yield* temporary, "state")
      const folder = UserLocation.folderOf(state, "/w/shop")
      fs.mkdirSync(path.join(state, "workspaces"), { recursive: true, mode: 0o777 })
      fs.chmodSync(state, 0o777)
      yield* UserLocation.prepare({ folder, workspace: "/w/shop" })
      for (const directory of [state, path.join(state, "workspaces"), folder])
        assert.strictEqual(modeOf(directory), 0o700)
      assert.strictEqual(modeOf(path.join(folder, "workspace.json")), 0o600)
      assert.deepStrictEqual(yield* UserLocation.folders(state), [{ folder, workspace: "/w/shop" }])
    })
  )

  it.scopedLive("leave the mode alone of what is no directory, wherever it stands", () =>
    Effect.gen(function* () {
      const root = yield* temporary
      const at = (...names: ReadonlyArray<string>) => path.join(root, ...names)
      fs.writeFileSync(at("file"), "", { mode: 0o644 })
      execFileSync("mkfifo", ["-m", "666", at("pipe")])
      fs.symlinkSync(at("file"), at("link"))
      fs.mkdirSync(at("state"), { mode: 0o700 })
      fs.writeFileSync(at("state", "workspaces"), "", { mode: 0o644 })
      for (const [state, other] of [
        [at("file"), at("file")],
        [at("pipe"), at("pipe")],
        [at("link"), at("file")],
        [at("state"), at("state", "workspaces")]
      ] as const) {
        const before = modeOf(other)
        const folder = UserLocation.folderOf(state, "/w")
        const { message } = yield* Effect.flip(UserLocation.prepare({ folder, workspace: "/w" }))
        assert.include(message, "not a directory")
        assert.strictEqual(modeOf(other), before, other)
      }
    })
  )

  it.scopedLive("that cannot be made are told in one sentence that says what to do", () =>
    Effect.gen(function* () {
      const root = yield* temporary
      fs.writeFileSync(path.join(root, "file"), "")
      const folder = UserLocation.folderOf(path.join(root, "file", "state"), "/w")
      const { message } = yield* Effect.flip(UserLocation.prepare({ folder, workspace: "/w" }))
      assert.match(
        message,
        /^Assent cannot store its state in .*: not a directory.* set ASSENT_STATE_DIR to another one\.$/
      )
    })
  )
})
