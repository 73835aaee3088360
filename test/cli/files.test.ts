/** Files that come with words, at the command line and over JSON lines. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FileSample from "../kit/FileSample.js"
import * as Program from "../kit/Program.js"

const place = Effect.gen(function* () {
  const at = yield* Program.place
  const notes = yield* at.write("workspace/notes.txt", "remember the milk\n")
  const directory = join(notes, "..")
  writeFileSync(join(directory, "shot.png"), FileSample.png())
  writeFileSync(join(directory, "fake.png"), "no picture")
  writeFileSync(join(directory, "large.pdf"), new Uint8Array(20_000_001))
  return at
})

describe.concurrent("files with words", () => {
  it.scopedLive("go to the model with the task, or without one", () =>
    Effect.gen(function* () {
      const at = yield* place
      for (const words of [["what is wrong?"], []]) {
        const result = yield* at.call(["run", "-i", "shot.png", "--file", "notes.txt", ...words])
        assert.strictEqual(result.code, 0)
        assert.include(result.stdout, "I cannot look at shot.png and notes.txt: the offline model reads words only.")
      }
    })
  )

  it.scopedLive("that cannot be taken end it with a sentence and 2, before anything began", () =>
    Effect.gen(function* () {
      const at = yield* place
      const cases: ReadonlyArray<readonly [string, string, string]> = [
        ["-i", "none.png", "none.png cannot be read: there is no such file."],
        ["-i", "fake.png", "fake.png is to be an image (PNG, JPEG, GIF or WebP), and its bytes are text."],
        ["--file", "fake.png", "fake.png is called image/png, and its bytes are text."],
        ["--file", "large.pdf", "large.pdf is larger than 20 MB, and is not taken."],
        ["--file", "/dev/zero", "/dev/zero is a device, and is not taken."],
        ["-i", "", "The name of a file is empty. Name one that is there."],
        ["-i", "loop", "loop cannot be read: its links lead in a circle; name the file itself."],
        ["-i", "sub", "sub is a directory, and is not taken. Name a file in it."],
        [
          "--file",
          "sub/pipe",
          "sub/pipe is a pipe, and is not taken. Write its output into a file, and attach that file."
        ],
        ["--file", "fake.png/x", "fake.png/x cannot be read: there is no such file."],
        ["--file", "x".repeat(300), `${"x".repeat(199)}… cannot be read: its name is too long.`]
      ]
      yield* at.makeDirectory("workspace/sub")
      yield* at.link("loop", "workspace/loop")
      execFileSync("mkfifo", [at.path("workspace/sub/pipe")])
      for (const [flag, file, says] of cases) {
        const result = yield* at.call(["run", flag, file, "look"])
        assert.deepStrictEqual(result, { code: 2, stdout: "", stderr: `assent: ${says}\n` })
      }
    })
  )

  it.scopedLive("come with a line of JSON, and a bad one is told with its line", () =>
    Effect.gen(function* () {
      const at = yield* place
      const lines = [
        { _tag: "Send", text: "see", files: [{ path: "shot.png" }] },
        { _tag: "Send", files: [{ base64: "aGVsbG8=", name: "x.png" }] },
        { _tag: "Send" }
      ]
      const { stdout } = yield* at.call(["run", "--jsonl"], {
        stdin: lines.map((line) => JSON.stringify(line)).join("\n")
      })
      assert.match(stdout, /"input":"see","attachments":\[\{"name":"shot\.png","mediaType":"image\/png"/)
      assert.include(stdout, "Line 2: x.png is called image/png, and its bytes are text.")
      assert.include(stdout, 'Line 3 of the input was skipped: Send needs \\"text\\" or \\"files\\".')
    })
  )
})
