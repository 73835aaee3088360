import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import { inWorkspace } from "./workspaceFixture.js"

describe("a secret in a file", () => {
  const secret = ["sk", "0".repeat(24)].join("-")

  it.scopedLive(
    "is not lost by the mask that a model reads in its place",
    inWorkspace(({ call, fileSystem, root }) =>
      Effect.gen(function* () {
        const before = `key: ${secret}\nport: 1\n`
        yield* fileSystem.writeFileString(`${root}/conf`, before)
        const masked = "key: [REDACTED]\nport: 1\n"
        for (const told of [
          yield* call("write_file", { path: "conf", content: masked }),
          yield* call("edit_file", { path: "conf", old_text: before, new_text: masked }),
          yield* call("edit_file", { path: "conf", old_text: "port: 1", new_text: "port: [REDACTED]" })
        ]) {
          assert.include(told, "[REDACTED] stands for a secret in conf that you are not shown")
        }
        const told = yield* call("edit_file", { path: "conf", old_text: masked, new_text: "port: 2" })
        assert.include(told, "[REDACTED] masks a secret there: use an old_text without it.")
        assert.strictEqual(yield* fileSystem.readFileString(`${root}/conf`), before)
        yield* call("edit_file", { path: "conf", old_text: "port: 1", new_text: "port: 2" })
        assert.strictEqual(yield* fileSystem.readFileString(`${root}/conf`), `key: ${secret}\nport: 2\n`)
      })
    )
  )

  it.scopedLive(
    "is not meant where a text speaks of masks",
    inWorkspace(({ call, fileSystem, root }) =>
      Effect.gen(function* () {
        yield* call("write_file", { path: "new", content: "shown as [REDACTED]\n" })
        yield* call("edit_file", { path: "new", old_text: "shown", new_text: "[REDACTED] is shown" })
        assert.strictEqual(yield* fileSystem.readFileString(`${root}/new`), "[REDACTED] is shown as [REDACTED]\n")
        yield* fileSystem.writeFileString(`${root}/both`, `${secret} is [REDACTED]\n`)
        yield* call("edit_file", { path: "both", old_text: "is", new_text: "is not" })
        assert.strictEqual(yield* fileSystem.readFileString(`${root}/both`), `${secret} is not [REDACTED]\n`)
      })
    )
  )
})

describe("paths", () => {
  it.scopedLive(
    "in an added directory are like those of the workspace, but for what is the runtime's there",
    inWorkspace(
      ({ call, fileSystem, outside, root, run }) =>
        Effect.gen(function* () {
          yield* fileSystem.makeDirectory(`${outside}/.assent`)
          yield* fileSystem.writeFileString(`${outside}/.assent/permissions.json`, "{}")
          yield* fileSystem.writeFileString(`${outside}/.gitignore`, "left")
          yield* fileSystem.writeFileString(`${outside}/left`, "needle")
          yield* fileSystem.symlink("/etc", `${outside}/out`)
          const there = `${outside}/deep/new`
          yield* call("write_file", { path: there, content: "needle\n" })
          assert.strictEqual(yield* call("read_file", { path: "../outside/deep/new" }), "     1\tneedle")
          yield* call("edit_file", { path: there, old_text: "needle", new_text: "a needle" })
          assert.strictEqual(yield* fileSystem.readFileString(there), "a needle\n")
          assert.include(yield* call("search_files", { pattern: "needle", path: outside }), `${there}:1: a needle\n`)
          assert.include(yield* call("list_files", { path: outside }), `${outside}/deep/`)
          assert.strictEqual((yield* run({ command: "pwd", cwd: outside })).output, `${outside}\n`)
          for (const path of [
            ".assent/permissions.json",
            ".ASSENT/x",
            ".a\u017fsent/x",
            ".jaato/x",
            "deep/../.assent",
            "deep/.assent/x"
          ]) {
            const told = yield* call("write_file", { path: `${outside}/${path}`, content: "x" })
            assert.include(told, "belongs to the runtime", path)
          }
          for (const path of [`${outside}/out/passwd`, `${outside}/../x`, `${outside}-not/x`]) {
            const told = yield* call("read_file", { path })
            assert.include(told, `is outside the workspace; use a path inside ${root} or ${outside}.`, path)
          }
        }),
      ({ outside }) => ({ added: [outside] })
    )
  )

  it.scopedLive(
    "outside the workspace are refused, however they are written",
    inWorkspace(({ call, check, fileSystem, outside, root }) =>
      Effect.gen(function* () {
        yield* fileSystem.writeFileString(`${outside}/secret`, "s")
        yield* fileSystem.symlink(outside, `${root}/link`)
        yield* fileSystem.symlink(`${outside}/secret`, `${root}/file`)
        yield* fileSystem.symlink(`${outside}/new`, `${root}/dangling`)
        for (const path of [
          "../outside/secret",
          `${outside}/secret`,
          "link/secret",
          "file",
          "a/../../outside/secret"
        ]) {
          const refusal = `${path} is outside the workspace; use a path inside ${root}.`
          assert.strictEqual(yield* call("read_file", { path }), `failed: ${refusal}`)
          assert.strictEqual(yield* call("write_file", { path, content: "x" }), `failed: ${refusal}`)
          assert.strictEqual(yield* check("write_file", { path, content: "x" }), refusal)
          assert.strictEqual(yield* check("edit_file", { path, old_text: "s", new_text: "x" }), refusal)
        }
        assert.include(yield* call("write_file", { path: "link/new/file", content: "x" }), "outside the workspace")
        assert.include(yield* call("write_file", { path: "dangling", content: "x" }), "leads nowhere")
        assert.include(yield* call("write_file", { path: "dangling/x", content: "x" }), "leads nowhere")
        assert.include(yield* call("list_files", { path: "link" }), "outside the workspace")
        assert.include(yield* call("search_files", { pattern: "s", path: "file" }), "outside the workspace")
        assert.include(yield* call("run_command", { command: "pwd", cwd: "link" }), "outside the workspace")
        assert.deepStrictEqual(yield* fileSystem.readDirectory(outside), ["secret"])
        assert.strictEqual(yield* fileSystem.readFileString(`${outside}/secret`), "s")
      })
    )
  )

  it.scopedLive(
    "inside it work absolutely, through links, and for names that merely look like climbing",
    inWorkspace(({ call, fileSystem, get, put, root }) =>
      Effect.gen(function* () {
        yield* put("real/a", "text")
        yield* fileSystem.symlink(`${root}/real`, `${root}/link`)
        assert.strictEqual(yield* call("read_file", { path: `${root}/link/a` }), "     1\ttext")
        assert.strictEqual(yield* call("write_file", { path: "link/b", content: "1" }), "Created real/b (1 line).")
        yield* call("write_file", { path: "..name", content: "2" })
        assert.strictEqual(yield* get("..name"), "2")
      })
    )
  )

  it.scopedLive(
    "that belong to the runtime can be neither read nor written, listed or searched",
    inWorkspace(
      ({ call, fileSystem, put, root }) =>
        Effect.gen(function* () {
          yield* put(".assent/audit/log", "canary")
          yield* put("keys/id", "canary")
          yield* put("other/.assent/config.json", "canary")
          yield* put("plain", "canary")
          yield* fileSystem.symlink(`${root}/other/.assent`, `${root}/theirs`)
          yield* fileSystem.symlink(`${root}/.assent`, `${root}/alias`)
          for (const path of [
            ".assent/audit/log",
            "./x/../.assent/audit/log",
            "alias/audit/log",
            "keys/id",
            ".ASSENT/x",
            ".a\u017fsent/x",
            "other/.assent/config.json",
            "other/.Assent/new",
            "theirs/new"
          ]) {
            assert.include(yield* call("read_file", { path }), "belongs to the runtime")
            assert.include(yield* call("write_file", { path, content: "x" }), "belongs to the runtime")
          }
          assert.include(yield* call("write_file", { path: ".jaato/new", content: "x" }), "belongs to the runtime")
          assert.include(yield* call("list_files", { path: ".assent" }), "belongs to the runtime")
          assert.include(yield* call("run_command", { command: "ls", cwd: "alias" }), "belongs to the runtime")
          assert.strictEqual(yield* call("list_files", { pattern: "**" }), "alias@\nother/\nplain\ntheirs@")
          assert.strictEqual(yield* call("search_files", { pattern: "canary" }), "plain:1: canary")
        }),
      { protectedPaths: ["keys"] }
    )
  )

  it.scopedLive(
    "that are directories, pipes, missing or impossible are refused with a sentence",
    inWorkspace(({ call, check, put, run }) =>
      Effect.gen(function* () {
        yield* put("dir/a", "x")
        yield* run({ command: "mkfifo pipe" })
        assert.include(yield* call("read_file", { path: "dir" }), "dir is a directory; list_files")
        assert.include(yield* call("write_file", { path: "dir", content: "x" }), "dir is a directory.")
        assert.include(yield* call("write_file", { path: "new/", content: "x" }), "names a directory")
        assert.include(yield* call("read_file", { path: "pipe" }), "pipe is not a regular file")
        assert.include(yield* call("write_file", { path: "pipe", content: "x" }), "pipe is not a regular file")
        assert.include(yield* call("read_file", { path: "none" }), "none does not exist.")
        assert.include(yield* call("read_file", { path: "dir/a/b" }), "failed: dir/a/b cannot be used: ENOTDIR")
        assert.include(yield* call("read_file", { path: "a\0b" }), "zero character")
        assert.strictEqual(yield* check("read_file", { path: "none" }), "none does not exist.")
        assert.isUndefined(yield* check("read_file", { path: "dir/a" }))
      })
    )
  )
})

describe("read_file", () => {
  it.scopedLive(
    "numbers the lines, whatever ends them, and leaves out a byte order mark",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("a", "\ufeffone\r\ntwo\n\nfour")
        assert.strictEqual(yield* call("read_file", { path: "a" }), "     1\tone\n     2\ttwo\n     3\t\n     4\tfour")
        yield* put("b", "x\n")
        assert.strictEqual(yield* call("read_file", { path: "b" }), "     1\tx")
        yield* put("empty", "")
        assert.strictEqual(yield* call("read_file", { path: "empty" }), "[empty is empty]")
      })
    )
  )

  it.scopedLive(
    "reads a window and says how to go on",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("a", Array.from({ length: 10 }, (_, index) => `l${index + 1}`).join("\n"))
        assert.strictEqual(
          yield* call("read_file", { path: "a", offset: 4, limit: 2 }),
          "     4\tl4\n     5\tl5\n[Lines 4–5 of 10. Continue with offset 6.]"
        )
        assert.strictEqual(
          yield* call("read_file", { path: "a", offset: 10, limit: 2 }),
          "    10\tl10\n[Line 10 of 10.]"
        )
        yield* put("long", "x\n".repeat(1_259))
        assert.include(
          yield* call("read_file", { path: "long", limit: 1_100 }),
          "\n[Lines 1–1,100 of 1,259. Continue with offset 1101.]"
        )
        assert.strictEqual(
          yield* call("read_file", { path: "a", offset: 11 }),
          "failed: a has 10 lines; there is no line 11."
        )
      })
    )
  )

  it.scopedLive(
    "shows a part of a huge file without loading it, and cuts huge lines",
    inWorkspace(({ call, put, run }) =>
      Effect.gen(function* () {
        // 2 GB of which almost nothing is on the disk: more than a string or a buffer could hold.
        yield* run({
          command: "(echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo third) > big; truncate -s 2G big"
        })
        const text = yield* call("read_file", { path: "big", limit: 3 })
        assert.include(text, "     1\tfirst\n     2\txxx")
        assert.include(
          text,
          "[… 98000 more characters in this line]\n     3\tthird\n[Lines 1–3; more follow. Continue with offset 4.]"
        )
        yield* put("smile", "😀".repeat(3_000))
        assert.isFalse(/[\ud800-\udbff](?![\udc00-\udfff])/.test(yield* call("read_file", { path: "smile" })))
        const all = yield* call("run_command", { command: "seq 100000 > long" })
        assert.include(all, '"exitCode":0')
        const cut = yield* call("read_file", { path: "long", limit: 50_000 })
        assert.isAtMost(cut.length, 30_100)
        const next = Number(/Continue with offset (\d+)/.exec(cut)?.[1])
        assert.include(yield* call("read_file", { path: "long", offset: next, limit: 1 }), `\t${next}\n`)
      })
    )
  )

  it.scopedLive(
    "reads UTF-16 behind a byte order mark, and Latin-1",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        const text = "naïve 😀\r\ntwo\n"
        const little = Buffer.from(`\ufeff${text}`, "utf16le")
        yield* put("little", little)
        yield* put("big", Buffer.from(little).swap16())
        yield* put("latin", Buffer.from("na\xefve\ntwo", "latin1"))
        const lines = "     1\tnaïve 😀\n     2\ttwo"
        assert.strictEqual(yield* call("read_file", { path: "little" }), lines)
        assert.strictEqual(yield* call("read_file", { path: "big" }), lines)
        assert.strictEqual(yield* call("read_file", { path: "latin" }), "     1\tnaïve\n     2\ttwo")
        assert.strictEqual(
          yield* call("search_files", { pattern: "na.ve" }),
          "big:1: naïve 😀\nlatin:1: naïve\nlittle:1: naïve 😀"
        )
        // One that is too long to be read at once.
        yield* put("long", Buffer.from(`\ufeff${"ß\n".repeat(600_000)}`, "utf16le"))
        assert.strictEqual(
          yield* call("read_file", { path: "long", offset: 600_000 }),
          "600000\tß\n[Line 600,000 of 600,000.]"
        )
      })
    )
  )

  it.scopedLive(
    "refuses binary files",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("b", new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]))
        assert.strictEqual(
          yield* call("read_file", { path: "b" }),
          "failed: b is a binary file; only text can be read."
        )
      })
    )
  )
})

describe("write_file", () => {
  const asCall = (id: string) => Origin.inToolCall(ToolCallId.make(id))

  it.scopedLive(
    "creates directories, replaces whole files, keeps their mode, and leaves nothing beside them",
    inWorkspace(({ call, fileSystem, get, root }) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* call("write_file", { path: "a/b/c", content: "1\n2\n" }), "Created a/b/c (2 lines).")
        yield* fileSystem.chmod(`${root}/a/b/c`, 0o755)
        assert.strictEqual(yield* call("write_file", { path: "a/b/c", content: "3" }), "Replaced a/b/c (1 line).")
        assert.strictEqual(yield* get("a/b/c"), "3")
        assert.strictEqual((yield* fileSystem.stat(`${root}/a/b/c`)).mode & 0o777, 0o755)
        assert.deepStrictEqual(yield* fileSystem.readDirectory(`${root}/a/b`), ["c"])
      })
    )
  )

  it.scopedLive(
    "does not write through another name of what is protected, by a hard link",
    inWorkspace(({ call, check, fileSystem, get, put, root }) =>
      Effect.gen(function* () {
        for (const there of [".assent/deep/policy", ".jaato/x", ".git/config", ".git/hooks/pre-commit"]) {
          yield* put(there, "old")
          yield* fileSystem.link(`${root}/${there}`, `${root}/name`)
          const refusal = `name is another name, by a hard link, of ${there}, which tools do not change.`
          assert.include(yield* call("edit_file", { path: "name", old_text: "old", new_text: "new" }), refusal)
          assert.include((yield* check("write_file", { path: "name", content: "new" })) ?? "", refusal)
          assert.strictEqual(yield* get(there), "old")
          yield* fileSystem.remove(`${root}/name`)
        }
      })
    )
  )

  it.scopedLive(
    "keeps hard links, mode, owner, group and ACL of the file",
    inWorkspace(({ call, get, put, root, run }) =>
      Effect.gen(function* () {
        yield* put("a", "one\ntwo\nthree\n")
        yield* run({ command: "ln a b; chmod 0640 a; chown 1:2 a 2>/dev/null; setfacl -m u:3:rw a 2>/dev/null; :" })
        const look = Effect.map(
          run({ command: "stat -c '%i %h %a %u %g' a; getfacl -c a 2>/dev/null" }),
          ({ output }) => output
        )
        const before = yield* look
        yield* call("read_file", { path: "a" })
        const contents = ["longer than before\n".repeat(9), "x", "", "one\n"]
        for (const content of contents) {
          assert.include(yield* call("write_file", { path: "a", content }), "Replaced a")
          assert.deepStrictEqual([yield* get("a"), yield* get("b"), yield* look], [content, content, before])
        }
        assert.strictEqual(yield* call("edit_file", { path: "b", old_text: "one", new_text: "1" }), "Edited b.")
        assert.deepStrictEqual([yield* get("a"), yield* look], ["1\n", before])
        assert.deepStrictEqual(fs.readdirSync(root).sort(), ["a", "b"])
      })
    )
  )

  it.scopedLive(
    "refuses a read-only file before anybody is asked",
    inWorkspace(
      ({ call, check, get, put }) =>
        Effect.gen(function* () {
          yield* put("fixed", "old")
          const refusal = "fixed is read-only for you. Nothing was written. Ask the person to make it writable."
          assert.strictEqual(yield* check("write_file", { path: "fixed", content: "new" }), refusal)
          const edit = { path: "fixed", old_text: "old", new_text: "new" }
          assert.strictEqual(yield* check("edit_file", edit), refusal)
          assert.strictEqual(yield* call("edit_file", edit), `failed: ${refusal}`)
          assert.strictEqual(yield* get("fixed"), "old")
          assert.strictEqual(yield* call("write_file", { path: "other", content: "new" }), "Created other (1 line).")
        }),
      {},
      // The system refuses it to an ordinary user, and the tests may run as root.
      Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (real) => ({
          ...real,
          access: (path: string, options?: FileSystem.AccessFileOptions) =>
            path.endsWith("/fixed") && options?.writable === true
              ? Effect.fail(
                  new PlatformError.SystemError({
                    module: "FileSystem",
                    method: "access",
                    reason: "PermissionDenied",
                    pathOrDescriptor: path
                  })
                )
              : real.access(path, options)
        }))
      )
    )
  )

  const utf16 = (text: string, isBig: boolean) => {
    const bytes = Buffer.from(`\ufeff${text}`, "utf16le")
    return new Uint8Array(isBig ? bytes.swap16() : bytes)
  }

  it.scopedLive(
    "keeps encoding, byte order mark and line ends of the file that it replaces",
    inWorkspace(({ call, put, root }) =>
      Effect.gen(function* () {
        const cases: ReadonlyArray<readonly [old: Uint8Array, content: string, now: Uint8Array, kept: string]> = [
          [Buffer.from("caf\xe9\n", "latin1"), "th\xe9\n", Buffer.from("th\xe9\n", "latin1"), "Latin-1"],
          [
            Buffer.from("\xff\xe9 ok\r\n", "latin1"),
            "\xfc\n",
            Buffer.from("\xfc\r\n", "latin1"),
            "Latin-1, CRLF line ends"
          ],
          [
            utf16("a\r\nb\r\n", false),
            "ü\n😀\n",
            utf16("ü\r\n😀\r\n", false),
            "UTF-16 LE, byte order mark, CRLF line ends"
          ],
          [utf16("a\n", true), "b\n", utf16("b\n", true), "UTF-16 BE, byte order mark"],
          [Buffer.from("\ufeffa\n"), "b\n", Buffer.from("\ufeffb\n"), "byte order mark"],
          [Buffer.from("\ufeffa\n"), "\ufeffb\n", Buffer.from("\ufeffb\n"), "byte order mark"],
          [Buffer.from("a\r\nb"), "c\r\nd\n", Buffer.from("c\r\nd\r\n"), "CRLF line ends"],
          [Buffer.from("a\nb\r\n"), "c\nd\n", Buffer.from("c\nd\n"), ""],
          [Buffer.from("ü\n"), "é\n", Buffer.from("é\n"), ""]
        ]
        for (const [old, content, now, kept] of cases) {
          yield* put("f", old)
          yield* call("read_file", { path: "f" })
          const told = yield* call("write_file", { path: "f", content })
          assert.strictEqual(told.split("Kept as it was: ")[1] ?? "", kept === "" ? "" : `${kept}.`)
          assert.strictEqual(fs.readFileSync(`${root}/f`).toString("hex"), Buffer.from(now).toString("hex"), kept)
        }
      })
    )
  )

  it.scopedLive(
    "refuses a character that the encoding of the file does not have, and says the way",
    inWorkspace(({ call, check, put, root }) =>
      Effect.gen(function* () {
        const latin = Buffer.from("caf\xe9 price\n", "latin1")
        yield* put("f", latin)
        const refusal =
          "f is encoded in Latin-1, which has no “→”. Nothing was written. " +
          "Leave the character out, or convert the file first: iconv -f windows-1252 -t utf-8."
        assert.strictEqual(yield* check("write_file", { path: "f", content: "a → b" }), refusal)
        const edit = { path: "f", old_text: "price", new_text: "→" }
        assert.strictEqual(yield* check("edit_file", edit), refusal)
        assert.strictEqual(yield* call("edit_file", edit), `failed: ${refusal}`)
        assert.deepStrictEqual(fs.readFileSync(`${root}/f`), latin)
        yield* call("edit_file", { path: "f", old_text: "é price", new_text: "é für 3 €" })
        assert.strictEqual(
          fs.readFileSync(`${root}/f`).toString("hex"),
          Buffer.from("caf\xe9 f\xfcr 3 \x80\n", "latin1").toString("hex")
        )
      })
    )
  )

  it.scopedLive(
    "does not overwrite a file that changed since the agent read it, and shows the change",
    inWorkspace(({ call, check, get, put }) =>
      Effect.gen(function* () {
        const mine = (content: string) => call("write_file", { path: "f", content })
        const refused = (patch: string) =>
          "f has changed since you read it. Nothing was written. Read it, and propose the change again." + patch
        yield* put("f", "a\nb\n")
        yield* call("read_file", { path: "f" })
        yield* put("f", "a\nB\n")
        const first = refused("\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n")
        assert.strictEqual(yield* check("write_file", { path: "f", content: "mine" }), first)
        assert.strictEqual(yield* mine("mine"), `failed: ${first}`)
        assert.strictEqual(yield* get("f"), "a\nB\n")
        yield* call("read_file", { path: "f", limit: 1 })
        assert.include(yield* mine("mine\n"), "Replaced f")
        // What the agent wrote itself it knows; what came behind its own edit it does not.
        yield* call("edit_file", { path: "f", old_text: "mine", new_text: "mine 2" })
        assert.include(yield* mine("mine 3\n"), "Replaced f")
        yield* put("f", "mine 3\ntheirs\n")
        assert.strictEqual(yield* call("edit_file", { path: "f", old_text: "mine 3", new_text: "mine 4" }), "Edited f.")
        assert.include(yield* mine("mine 5\n"), "+theirs\n")
        assert.strictEqual(yield* get("f"), "mine 4\ntheirs\n")
        // A file too long to be kept is known by its size and its time.
        const long = "line\n".repeat(300_000)
        yield* put("f", long)
        yield* call("read_file", { path: "f" })
        yield* put("f", `${long}more\n`)
        assert.strictEqual(yield* mine("x"), `failed: ${refused("")}`)
        yield* call("read_file", { path: "f" })
        assert.include(yield* mine("x"), "Replaced f")
      })
    )
  )

  it.scopedLive(
    "replaces a file that was never read only after a question that says so",
    inWorkspace(({ call, get, preview, put }) =>
      Effect.gen(function* () {
        const params = { path: "f", content: "mine\n" }
        yield* put("f", "theirs\n")
        assert.strictEqual(
          yield* call("write_file", params),
          "failed: f is there already, and you have not read it. Nothing was written. Read it, and propose the change again."
        )
        assert.strictEqual(yield* get("f"), "theirs\n")
        assert.deepStrictEqual((yield* asCall("c1")(preview("write_file", params))).warnings, [
          "The agent has not read f."
        ])
        assert.include(yield* asCall("c1")(call("write_file", params)), "Replaced f")
        // Another agent has not read what this one wrote.
        const other =
          (id: string) =>
          <A, E, R>(effect: Effect.Effect<A, E, R>) =>
            Effect.flatMap(Origin.current, (origin) =>
              Origin.withOrigin({ ...origin, sessionId: SessionId.make(id) })(effect)
            )
        assert.include(yield* other("child")(call("write_file", { path: "f", content: "child's" })), "have not read it")
        yield* put("binary", new Uint8Array([1, 0, 2]))
        assert.include(yield* call("write_file", { path: "binary", content: "x" }), "not a text file: write to another")
        yield* put("empty", "")
        assert.include(yield* call("write_file", { path: "empty", content: "x" }), "Replaced empty")
        yield* put("same", "x")
        assert.include(yield* call("write_file", { path: "same", content: "x" }), "Replaced same")
      })
    )
  )

  it.scopedLive(
    "edits the places that a person was shown, also when other edits moved them",
    inWorkspace(({ call, get, preview, put }) =>
      Effect.gen(function* () {
        const ask = (id: string, old_text: string, new_text: string) => {
          const params = { path: "f", old_text, new_text }
          return Effect.as(asCall(id)(preview("edit_file", params)), asCall(id)(call("edit_file", params)))
        }
        const refused = /^failed: f was changed after a person was shown this change\./
        // Somebody else writes the text to another line.
        yield* put("f", "a\nhere\nb\n")
        const swapped = yield* ask("c1", "here", "new")
        yield* put("f", "here\na\nb\n")
        assert.match(yield* swapped, refused)
        assert.strictEqual(yield* get("f"), "here\na\nb\n")
        // Both edits were shown in one step: the first one moves the second one.
        yield* put("f", "one\ntwo\nthree\n")
        const first = yield* ask("c2", "one", "1\n1\n1")
        const third = yield* ask("c3", "three", "3")
        assert.strictEqual(yield* first, "Edited f.")
        assert.strictEqual(yield* third, "Edited f.")
        assert.strictEqual(yield* get("f"), "1\n1\n1\ntwo\n3\n")
        // A decided edit takes the text away and puts it to another place.
        yield* put("f", "head\nhere\nmiddle\ntail\n")
        const gone = yield* ask("c4", "here\nmiddle\ntail", "middle\nhere\ntail")
        const late = yield* ask("c5", "here", "new")
        assert.strictEqual(yield* gone, "Edited f.")
        assert.match(yield* late, refused)
        assert.strictEqual(yield* get("f"), "head\nmiddle\nhere\ntail\n")
      })
    )
  )

  it.scopedLive(
    "replaces what a person was shown, and not what somebody else wrote while they were asked",
    inWorkspace(({ call, get, preview, put }) =>
      Effect.gen(function* () {
        const write = (id: string, path: string) => asCall(id)(call("write_file", { path, content: "model's" }))
        const ask = (id: string, path: string) => asCall(id)(preview("write_file", { path, content: "model's" }))
        yield* put("old", "shown")
        for (const path of ["old", "new"]) {
          yield* ask("c1", path)
          yield* put(path, "written meanwhile")
          assert.match(
            yield* write("c1", path),
            /^failed: (?:old|new) was changed after a person was shown .* Read it, and/
          )
          assert.strictEqual(yield* get(path), "written meanwhile")
          // It is asked about anew.
          yield* ask("c2", path)
          yield* write("c2", path)
          assert.strictEqual(yield* get(path), "model's")
          // Nobody is asked about the next one, and one that was asked about is denied.
          yield* ask("c3", path)
          yield* put(path, "written meanwhile")
          assert.include(yield* write("c4", path), "has changed since you read it")
          yield* call("read_file", { path })
          yield* write("c4", path)
          assert.strictEqual(yield* get(path), "model's")
        }
      })
    )
  )

  it.scopedLive(
    "writes nowhere else than where a person was shown, whatever became of a link",
    inWorkspace(({ call, fileSystem, get, preview, put, root }) =>
      Effect.gen(function* () {
        yield* put("one/file", "same")
        yield* put("two/file", "same")
        yield* fileSystem.symlink(`${root}/one`, `${root}/link`)
        const params = { path: "link/file", content: "new" }
        yield* asCall("c1")(preview("write_file", params))
        yield* fileSystem.remove(`${root}/link`)
        yield* fileSystem.symlink(`${root}/two`, `${root}/link`)
        assert.match(yield* asCall("c1")(call("write_file", params)), /^failed: .*Nothing was written/)
        assert.deepStrictEqual([yield* get("one/file"), yield* get("two/file")], ["same", "same"])
      })
    )
  )

  it.scopedLive(
    "replaces what calls that were asked about together have written of a file",
    inWorkspace(({ call, get, preview, put }) =>
      Effect.gen(function* () {
        yield* put("file", "one")
        const contents = ["two", "three"]
        for (const content of contents) yield* asCall(content)(preview("write_file", { path: "file", content }))
        yield* asCall("c0")(call("edit_file", { path: "file", old_text: "one", new_text: "1" }))
        for (const content of contents) yield* asCall(content)(call("write_file", { path: "file", content }))
        assert.strictEqual(yield* get("file"), "three")
      })
    )
  )

  it.scopedLive(
    "shows a new file and an overwritten one as different things, as a diff",
    inWorkspace(({ preview, put, root }) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* preview("write_file", { path: "n/new", content: "a\nb\n" }), {
          summary: "create n/new (new file, 2 lines)",
          details: "--- /dev/null\n+++ b/n/new\n@@ -0,0 +1,2 @@\n+a\n+b\n",
          format: "diff",
          change: { path: `${root}/n/new`, after: "a\nb\n" }
        })
        yield* put("old", "a\nb\nc\n")
        assert.deepStrictEqual(yield* preview("write_file", { path: "old", content: "a\nB\n" }), {
          summary: "replace the whole of old: 3 lines by 2 lines",
          details: "--- a/old\n+++ b/old\n@@ -1,3 +1,2 @@\n a\n-b\n-c\n+B\n",
          format: "diff",
          warnings: ["The agent has not read old."],
          change: { path: `${root}/old`, before: "a\nb\nc\n", after: "a\nB\n" }
        })
        assert.deepStrictEqual(yield* preview("write_file", { path: "old", content: "a\nb\nc\n" }), {
          summary: "replace the whole of old: 3 lines by 3 lines",
          format: "diff",
          warnings: ["Nothing would change."],
          change: { path: `${root}/old`, before: "a\nb\nc\n", after: "a\nb\nc\n" }
        })
      })
    )
  )

  it.scopedLive(
    "shows what hides from the eye, cuts what is long, and warns about what cannot be shown",
    inWorkspace(({ call, preview, put }) =>
      Effect.gen(function* () {
        const hidden = yield* preview("write_file", { path: "a", content: "ok\x1b[2K\u202egnp\x9b" })
        assert.include(hidden.details ?? "", "+ok␛[2K⟨U+202E⟩gnp⟨U+009B⟩")
        const long = yield* preview("write_file", { path: "a", content: "line\n".repeat(40_000) })
        assert.isTrue(long.truncated)
        assert.isAtMost((long.details ?? "").length, 100_200)
        assert.isUndefined(long.change, "an editor gets the whole or nothing")
        yield* put("binary", new Uint8Array([1, 0, 2]))
        const lost = yield* preview("write_file", { path: "binary", content: "x" })
        assert.deepStrictEqual(lost.warnings, [
          "binary holds something that cannot be shown as text; it would be lost."
        ])
        const lines = (seed: number) => Array.from({ length: 30_000 }, (_, i) => (i * seed) % 99_991).join("\n")
        yield* put("unlike", lines(31))
        yield* call("read_file", { path: "unlike" })
        const unlike = yield* preview("write_file", { path: "unlike", content: lines(37) })
        assert.deepStrictEqual([unlike.format, unlike.warnings?.length], ["text", 1])
      })
    )
  )

  const full = (error: string) =>
    Layer.effect(
      FileSystem.FileSystem,
      Effect.map(FileSystem.FileSystem, (real) => ({
        ...real,
        open: (path: string, options?: FileSystem.OpenFileOptions) =>
          Effect.map(real.open(path, options), (file) =>
            Object.assign(Object.create(file), {
              seek: file.seek.bind(file),
              truncate: file.truncate.bind(file),
              readAlloc: file.readAlloc.bind(file),
              writeAll: (bytes: Uint8Array) =>
                Effect.zipRight(
                  file.writeAll(bytes.subarray(0, 2)),
                  Effect.fail(
                    new PlatformError.SystemError({
                      module: "FileSystem",
                      method: "writeAll",
                      reason: "Unknown",
                      pathOrDescriptor: path,
                      description: error
                    })
                  )
                )
            })
          )
      }))
    )

  it.scopedLive(
    "leaves the old file whole and nothing beside it when the disk is full",
    inWorkspace(
      ({ call, fileSystem, get, put, root }) =>
        Effect.gen(function* () {
          yield* put("a", "whole\n")
          yield* call("read_file", { path: "a" })
          assert.strictEqual(
            yield* call("write_file", { path: "a", content: "new content" }),
            "failed: a cannot be used: ENOSPC: no space left on device."
          )
          assert.include(yield* call("edit_file", { path: "a", old_text: "whole", new_text: "half" }), "ENOSPC")
          assert.strictEqual(yield* get("a"), "whole\n")
          assert.deepStrictEqual(yield* fileSystem.readDirectory(root), ["a"])
        }),
      {},
      full("ENOSPC: no space left on device, write")
    )
  )
})

describe("edit_file", () => {
  it.scopedLive(
    "replaces one place literally",
    inWorkspace(({ call, get, preview, put, root }) =>
      Effect.gen(function* () {
        yield* put("a", "one\ntwo\nthree\n")
        const params = { path: "a", old_text: "two", new_text: "$& $1 $$" }
        assert.deepStrictEqual(yield* preview("edit_file", params), {
          summary: "edit a",
          details: "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+$& $1 $$\n three\n",
          format: "diff",
          change: { path: `${root}/a`, before: "one\ntwo\nthree\n", after: "one\n$& $1 $$\nthree\n" }
        })
        assert.strictEqual(yield* call("edit_file", params), "Edited a.")
        assert.strictEqual(yield* get("a"), "one\n$& $1 $$\nthree\n")
      })
    )
  )

  it.scopedLive(
    "refuses, before anybody is asked, what cannot be done",
    inWorkspace(({ call, check, get, put }) =>
      Effect.gen(function* () {
        const refused = (params: object) =>
          Effect.gen(function* () {
            const reason = yield* check("edit_file", params)
            assert.strictEqual(yield* call("edit_file", params), `failed: ${reason}`)
            return reason ?? ""
          })
        yield* put("a", "x = 1\ny\nx = 1\n  deep\n")
        assert.include(yield* refused({ path: "a", old_text: "z", new_text: "" }), "does not occur in a.")
        assert.include(
          yield* refused({ path: "a", old_text: "y\n x  = 1", new_text: "" }),
          "spaces, tabs or line breaks"
        )
        assert.include(yield* refused({ path: "a", old_text: "     2\ty", new_text: "" }), "leave out the line numbers")
        assert.include(yield* refused({ path: "a", old_text: "x = 1", new_text: "" }), "2 times in a (lines 1, 3)")
        assert.include(yield* refused({ path: "a", old_text: "", new_text: "x" }), "old_text is empty")
        assert.include(yield* refused({ path: "a", old_text: "y", new_text: "y" }), "are the same")
        assert.include(yield* refused({ path: "none", old_text: "y", new_text: "x" }), "none does not exist")
        assert.include(yield* refused({ path: ".", old_text: "y", new_text: "x" }), "is a directory")
        yield* put("damaged", new Uint8Array([0x63, 0xc3, 0xa9, 0xe9]))
        assert.include(yield* refused({ path: "damaged", old_text: "c", new_text: "x" }), "not encoded as UTF-8")
        yield* put("bin", new Uint8Array([0x63, 0x00]))
        assert.include(yield* refused({ path: "bin", old_text: "c", new_text: "x" }), "binary")
        yield* put("wide", "a".repeat(5_000))
        const huge = { path: "wide", old_text: "a", new_text: "b".repeat(5_000), replace_all: true }
        assert.include(yield* refused(huge), "longer than")
        assert.strictEqual(yield* get("a"), "x = 1\ny\nx = 1\n  deep\n")
      })
    )
  )

  it.scopedLive(
    "replaces every place when told to",
    inWorkspace(({ call, get, put }) =>
      Effect.gen(function* () {
        yield* put("a", "aaa b aa")
        const params = { path: "a", old_text: "aa", new_text: "c", replace_all: true }
        assert.strictEqual(yield* call("edit_file", params), "Edited a in 2 places.")
        assert.strictEqual(yield* get("a"), "ca b c")
      })
    )
  )

  it.scopedLive(
    "keeps byte order mark and line endings",
    inWorkspace(({ call, get, put }) =>
      Effect.gen(function* () {
        yield* put("crlf", "\ufeffone\r\ntwo\r\nthree\r\n")
        yield* call("edit_file", { path: "crlf", old_text: "one\ntwo", new_text: "1\n2\n2b" })
        assert.strictEqual(yield* get("crlf"), "\ufeff1\r\n2\r\n2b\r\nthree\r\n")
        yield* put("mixed", "one\r\ntwo\nthree\n")
        yield* call("edit_file", { path: "mixed", old_text: "two\nthree", new_text: "2\n3" })
        assert.strictEqual(yield* get("mixed"), "one\r\n2\n3\n")
      })
    )
  )

  it.scopedLive(
    "loses none of many edits of one file at once",
    inWorkspace(({ call, get, put }) =>
      Effect.gen(function* () {
        const names = Array.from({ length: 20 }, (_, index) => `<${index}>`)
        yield* put("a", names.join(" "))
        yield* Effect.forEach(names, (name) => call("edit_file", { path: "a", old_text: name, new_text: "ok" }), {
          concurrency: "unbounded"
        })
        assert.strictEqual(yield* get("a"), names.map(() => "ok").join(" "))
      })
    )
  )
})
