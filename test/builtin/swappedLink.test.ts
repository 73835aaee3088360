import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import { inWorkspace, type Fixture, type Needs } from "./workspaceFixture.js"

/** What somebody does to the workspace in the middle of a call. */
type Deed = (place: Pick<Fixture, "root" | "outside">) => void

/** A directory becomes a link that leads out of the workspace. */
const swap: Deed = ({ outside, root }) => {
  fs.renameSync(`${root}/dir`, `${root}/aside`)
  fs.symlinkSync(outside, `${root}/dir`)
}

/** Does it right before the call of this number. */
class Attacker {
  calls = 0
  armed = false

  constructor(
    readonly at: number,
    readonly deed: Deed
  ) {}

  readonly layer = (place: Pick<Fixture, "root" | "outside">) =>
    Layer.effect(
      FileSystem.FileSystem,
      Effect.map(FileSystem.FileSystem, (real) => {
        const strike = () => {
          if (this.armed && this.calls++ === this.at) this.deed(place)
        }
        return new Proxy(real, {
          get: (target, name, receiver) => {
            const member: unknown = Reflect.get(target, name, receiver)
            if (typeof member !== "function") return member
            return (...args: ReadonlyArray<unknown>) =>
              Effect.suspend(() => {
                strike()
                return Reflect.apply(member, target, args)
              })
          }
        })
      })
    )
}

/** Does the same with another attacker until one strikes too late: at every moment once. */
const atEveryMoment = (
  outsideText: string,
  use: (
    fixture: Fixture,
    strike: <A, E, R>(call: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>,
    at: number
  ) => Effect.Effect<void, unknown, Needs>,
  deed: Deed = swap
) =>
  Effect.gen(function* () {
    let finished = false
    for (let at = 0; !finished && at < 200; at++) {
      const place = { root: "", outside: "" }
      const attacker = new Attacker(at, deed)
      const strike = <A, E, R>(call: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          attacker.armed = true
          return Effect.ensuring(
            call,
            Effect.sync(() => void (attacker.armed = false))
          )
        })
      yield* inWorkspace(
        (fixture) =>
          Effect.gen(function* () {
            const { outside, root } = Object.assign(place, { root: fixture.root, outside: fixture.outside })
            fs.mkdirSync(`${root}/dir`)
            fs.writeFileSync(`${root}/dir/there.txt`, "old")
            fs.writeFileSync(`${outside}/there.txt`, outsideText)
            yield* use(fixture, strike, at)
            finished = attacker.calls <= at
          }),
        {},
        attacker.layer(place)
      )()
    }
    assert.isTrue(finished)
  })

describe("a directory that becomes a link while a file in it is written", () => {
  const calls = [
    ["write_file", { path: "dir/file.txt", content: "secret" }],
    ["write_file", { path: "dir/new/deep/file.txt", content: "secret" }],
    ["edit_file", { path: "dir/there.txt", old_text: "old", new_text: "secret" }]
  ] as const
  for (const [tool, params] of calls) {
    it.scopedLive(
      `never leads ${tool} of ${params.path} out of the workspace, whenever that happens`,
      () =>
        atEveryMoment("old", ({ call, outside }, strike, at) =>
          Effect.gen(function* () {
            yield* strike(call(tool, params))
            // Nothing was changed, made or left behind there.
            assert.deepStrictEqual(fs.readdirSync(outside, { recursive: true }), ["there.txt"], `call ${at}`)
            assert.strictEqual(fs.readFileSync(`${outside}/there.txt`, "utf8"), "old", `call ${at}`)
          })
        ),
      120_000
    )
  }
})

describe("a directory that becomes a link while a file in it is read", () => {
  const calls = [
    ["read_file", { path: "dir/there.txt" }],
    ["search_files", { pattern: ".", path: "dir/there.txt" }],
    ["search_files", { pattern: "." }],
    ["edit_file", { path: "dir/there.txt", old_text: "old", new_text: "new" }]
  ] as const
  for (const [tool, params] of calls) {
    it.scopedLive(
      `never shows ${tool} of ${JSON.stringify(params)} what is outside of the workspace, whenever that happens`,
      () =>
        atEveryMoment("old, and a key", ({ call, root }, strike, at) =>
          Effect.gen(function* () {
            const result = yield* Effect.exit(strike(call(tool, params)))
            const changed = fs
              .readdirSync(root, { recursive: true, encoding: "utf8" })
              .map((name) => `${root}/${name}`)
              .filter((name) => !name.startsWith(`${root}/dir`) && fs.statSync(name).isFile())
              .map((name) => fs.readFileSync(name, "utf8"))
            assert.notInclude(JSON.stringify([result, changed]), "and a key", `call ${at}`)
          })
        ),
      120_000
    )
  }
})

describe("a workspace that goes while a call works in it", () => {
  const calls = [
    ["write_file", { path: "file.txt", content: "new" }],
    ["write_file", { path: "dir/new/deep/file.txt", content: "new" }],
    ["edit_file", { path: "dir/there.txt", old_text: "old", new_text: "new" }]
  ] as const
  for (const [tool, params] of calls) {
    it.scopedLive(
      `is not made again by ${tool} of ${params.path}, whenever that happens`,
      () =>
        atEveryMoment(
          "old",
          ({ call, root }, strike, at) =>
            Effect.gen(function* () {
              yield* strike(call(tool, params))
              // The call was over in time.
              const gone = fs.existsSync(`${root}-moved`)
              assert.notStrictEqual(fs.existsSync(root), gone, `call ${at}`)
            }),
          ({ root }) => fs.renameSync(root, `${root}-moved`)
        ),
      120_000
    )
  }
})
