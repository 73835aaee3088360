/** What every command says of a file, a directory, a store and a session that is not there, or is no such thing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Program from "../kit/Program.js"

/** A code, a call or a class of the system's or of a package's. */
const leak = /\bE[A-Z]{3,}\b|FileSystem\.|BadResource|NotFound|uv_|is not valid JSON|\bError:|\n\s+at |undefined/

const things = Effect.gen(function* () {
  const place = yield* Program.place
  yield* place.write("other/text", "no such thing\n")
  yield* place.write("other/cut.json", '{"a":')
  yield* place.write("other/empty", "")
  yield* place.makeDirectory("other/directory")
  execFileSync("mkfifo", [place.path("other", "pipe")])
  assert.strictEqual((yield* place.call(["run", "list"])).code, 0)
  const names = ["missing", "missing/below", "text", "text/below", "cut.json", "empty", "directory", "pipe"]
  return { place, files: names.map((name) => place.path("other", name)) }
})

/** Ends in words, with what the command line is to be. */
const told = (place: Program.Place, args: ReadonlyArray<string>, codes: ReadonlyArray<number>) =>
  Effect.map(place.call(args), ({ code, stderr, stdout }) => {
    const what = `${args.join(" ")}\n${stdout}${stderr}`
    assert.include(codes, code, what)
    assert.notMatch(`${stdout}${stderr}`, leak, what)
    if (code !== 0) assert.match(`${stdout}${stderr}`, /\S/, what)
  })

describe("what is not there", () => {
  it.live("is told in words where a file, a directory or a store is named", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { files, place } = yield* things
        const commands: ReadonlyArray<readonly [words: string, codes: ReadonlyArray<number>]> = [
          ["answer", [2]],
          ["permissions try", [0, 2]],
          ["permissions --policy", [0, 2]],
          ["profiles check", [2]],
          ["sessions import", [2]],
          ["audit verify --key", [2]],
          ["run x --file", [0, 2]],
          ["run x -i", [2]],
          ["run x --key", [2]],
          ["run x --workspace", [0, 2]],
          ["run x --add-dir", [0, 2]],
          ["run x --policy", [0, 2]],
          ["doctor --workspace", [0, 1]],
          ["doctor --policy", [1]],
          ["doctor --store", [0, 1]],
          ["sessions --store", [0, 2]],
          ["sessions waiting --store", [0, 2]],
          ["sessions prune --keep 1 --store", [0, 2]],
          ["sessions show x --store", [2]],
          ["run x --continue --store", [2]]
        ]
        for (const [words, codes] of commands) {
          for (const file of files) yield* told(place, [...words.split(" "), file], codes)
        }
        for (const file of files) {
          yield* told(place, ["run", "x", "--model", `script:${file}`], [2])
          yield* told(
            place,
            ["run", "x", "--channel", `file:${file}`],
            file.includes("missing") || file.endsWith("directory") ? [0] : [2]
          )
        }
      })
    )
  )

  it.live("is told where the state and the settings are kept in a file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { place } = yield* things
        for (const name of ["ASSENT_STATE_DIR", "ASSENT_CONFIG_DIR"]) {
          for (const words of [
            ["run", "run touch x"],
            ["sessions"],
            ["audit"],
            ["profiles", "check"],
            ["permissions"],
            ["doctor"]
          ]) {
            const { code, stderr, stdout } = yield* place.call(words, { env: { [name]: place.path("other", "text") } })
            assert.notMatch(`${stdout}${stderr}`, leak, `${name} ${words.join(" ")}`)
            assert.isBelow(code ?? 9, 3)
          }
        }
      })
    )
  )

  it.live("is told of a session, a profile, a workspace and a trail", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { place } = yield* things
        const named = [
          ...["show", "answer", "replay", "turns", "fork", "script", "export", "delete", "adopt"].map((verb) => [
            "sessions",
            verb
          ]),
          ["sessions", "list", "--after"],
          ["audit", "show"],
          ["audit", "verify"],
          ["profiles", "show"],
          ["run", "x", "--profile"],
          ["run", "x", "--resume"],
          ["chat", "--resume"]
        ]
        for (const words of named) {
          yield* told(place, [...words, "ses_none"], [2])
          // Without one, the trails are verified, the only one is shown, and a chat has nobody to pick.
          if (words[0] !== "audit") yield* told(place, words, [2])
        }
      })
    )
  )

  it.live("is told of the current directory", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { place } = yield* things
        const binary = fs.realpathSync("dist/bin/assent.js")
        for (const words of ["run list", "doctor", "sessions", "answer x"]) {
          const gone = yield* place.makeDirectory("gone")
          const { code, stderr } = yield* Program.execute(
            "sh",
            ["-c", `cd "$0" && rmdir "$0" && exec "$@"`, gone, process.execPath, binary, ...words.split(" ")],
            { env: place.environment }
          )
          assert.deepStrictEqual(
            [code, stderr.replace(/\s+/g, " ")],
            [
              2,
              "assent: The current directory is gone. Change to another directory, for example with cd ~, and start again. "
            ],
            words
          )
        }
      })
    )
  )
})
