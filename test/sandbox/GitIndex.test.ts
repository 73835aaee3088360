import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import * as GitIndex from "../../src/sandbox/GitIndex.js"
import * as Computation from "../kit/Computation.js"
import * as IndexFile from "../kit/IndexFile.js"
import * as Runs from "../kit/Runs.js"

const root = fs.mkdtempSync(join(tmpdir(), "assent-index-"))
afterAll(() => fs.rmSync(root, { recursive: true, force: true }))

const git = (words: ReadonlyArray<string>, input = "") =>
  spawnSync("git", words, {
    cwd: root,
    input,
    env: { PATH: process.env["PATH"], HOME: root },
    encoding: "utf8",
    maxBuffer: 1e9
  })
const oid = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
const file = join(root, ".git/index")
git(["init", "-q"])
git(["hash-object", "-w", "--stdin"])

interface Entry {
  readonly name: string
  readonly mode: string
}
/** An index that git itself writes. */
const write = (entries: ReadonlyArray<Entry>, version: number, more: ReadonlyArray<string> = []): Uint8Array => {
  fs.rmSync(file, { force: true })
  git(["update-index", "-z", "--index-info"], entries.map(({ mode, name }) => `${mode} ${oid}\t${name}\0`).join(""))
  git(["update-index", "--index-version", `${version}`, ...more])
  return new Uint8Array(fs.readFileSync(file))
}
/** What git sees in an index, or nothing if it refuses to read it. */
const seen = (bytes: Uint8Array): ReadonlyArray<string> | undefined => {
  fs.writeFileSync(file, bytes)
  const { status, stdout } = git(["ls-files", "-z", "--stage"])
  return status === 0 ? stdout.split("\0").slice(0, -1) : undefined
}

const part = fc.oneof(
  fc.constantFrom("a", "b", ".github", "..a", "git", "g~1", "é", "x y", "-"),
  fc.string({ minLength: 1, maxLength: 12 }).map((text) => `n${text.replace(/[\0/\\:~\n]/g, "_")}`)
)
const entry: fc.Arbitrary<Entry> = fc.record({
  name: fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => `${parts.join("/")}.f`),
  mode: fc.constantFrom("100644", "100755", "120000", "160000")
})
const version = fc.constantFrom(2, 3, 4)
const unique = (most: number) => fc.uniqueArray(entry, { selector: ({ name }) => name, maxLength: most })

describe("an index of git's own", () => {
  it("is read, with all submodules", () => {
    fc.assert(
      fc.property(unique(30), version, fc.boolean(), (entries, version, isSkipped) => {
        write(entries, version)
        const [first] = entries
        if (isSkipped && first !== undefined) git(["update-index", "--skip-worktree", first.name])
        const bytes = new Uint8Array(fs.readFileSync(file))
        const submodules = (seen(bytes) ?? [])
          .filter((line) => line.startsWith("160000"))
          .map((line) => line.slice(line.indexOf("\t") + 1))
        assert.deepStrictEqual(GitIndex.parse(bytes, 20), { refused: [], submodules })
      }),
      { numRuns: Runs.of(400) }
    )
  })

  it.each([2, 4])("may have a hundred thousand entries, and tables for threads: version %i", (version) => {
    const entries = Array.from({ length: 100_000 }, (_, number) => ({
      mode: "100644",
      name: `packages/part-${number % 97}/src/module-${number}/index.ts`
    }))
    git(["config", "index.threads", "8"])
    const bytes = write(entries, version)
    git(["config", "--unset", "index.threads"])
    const text = Buffer.from(bytes).toString("latin1")
    assert.isAbove(text.lastIndexOf("IEOT"), 0)
    assert.deepStrictEqual(GitIndex.parse(bytes, 20), { refused: [], submodules: [] })
    assert.isBelow(
      Computation.least(100, () => GitIndex.parse(bytes, 20)),
      200
    )
    // A table that leads git to other entries.
    const table = text.lastIndexOf("IEOT") + 8 + 4 + 8
    const other = Uint8Array.from(bytes)
    new DataView(other.buffer).setUint32(table, new DataView(other.buffer).getUint32(table) + 8)
    assert.isUndefined(GitIndex.parse(other, 20))
    if (version === 4) {
      // The first part has one entry more: the second part would begin with an entry that needs the one before.
      const parts = Uint8Array.from(bytes)
      const view = new DataView(parts.buffer)
      view.setUint32(table - 4, view.getUint32(table - 4) + 1)
      view.setUint32(table + 4, view.getUint32(table + 4) - 1)
      view.setUint32(table, parts.indexOf(0, view.getUint32(table) + 63) + 1)
      assert.isUndefined(GitIndex.parse(parts, 20))
    }
    const end = Uint8Array.from(bytes)
    new DataView(end.buffer).setUint32(text.lastIndexOf("EOIE") + 8, 1_000)
    assert.isUndefined(GitIndex.parse(end, 20))
  })

  it("is not read with names of another length", () => {
    const bytes = write(
      [
        { mode: "100644", name: "a/b/c.f" },
        { mode: "100644", name: "d.f" }
      ],
      2
    )
    assert.isUndefined(GitIndex.parse(bytes, 32))
  })
})

describe("an index that another program wrote", () => {
  it("has no entry that git sees and we do not", () => {
    const evil = [".git/x", ".GIT/x", "a/../x", "/x", "git~1/x", "a/.git", "..", "a//x"]
    /** Puts a name over the bytes, at any place, and changes some more. */
    const draw = fc.record({
      entries: unique(6),
      version,
      text: fc.constantFrom(...evil),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      bytes: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 })), {
        maxLength: 2
      }),
      cut: fc.constantFrom(0, 0, 0, 1, 8, 20)
    })
    let read = 0
    fc.assert(
      fc.property(draw, ({ at, bytes: changes, cut, entries, text, version }) => {
        const longer = entries.map(({ mode, name }) => ({ mode, name: name.padEnd(14, "z") }))
        const bytes = write(longer, version)
        const names = Buffer.from(bytes).toString("latin1")
        const places = longer
          .map(({ name }) => names.lastIndexOf(Buffer.from(name.slice(-8)).toString("latin1")))
          .filter((place) => place > 0)
        const place = places[Math.floor(at * places.length)] ?? Math.floor(at * (bytes.length - 10))
        bytes.set(Buffer.from(text), place)
        for (const [where, byte] of changes) bytes[Math.floor(where * (bytes.length - 1))] = byte
        const whole = bytes.subarray(0, bytes.length - cut)
        const ours = GitIndex.parse(whole, 20)
        if (ours === undefined || ours.refused.length > 0) return
        const shown = seen(whole)
        if (shown === undefined) return
        read++
        for (const line of shown) {
          const name = line.slice(line.indexOf("\t") + 1)
          assert.isFalse(name !== "" && GitIndex.isRefused(name), JSON.stringify({ name, shown }))
        }
      }),
      { numRuns: Runs.of(3_000) }
    )
    assert.isAbove(read, 0)
  })

  it.each([
    ["a shorter name than it says", IndexFile.of("abc\0/x", { length: 6 })],
    ["a longer name than it says", IndexFile.of("abcdef", { length: 3 })],
    ["no long name, where it says so", IndexFile.of("abc", { length: 0xfff })],
    ["something behind its name", IndexFile.of("abc", { filling: 1 })],
    ["flags of another version", IndexFile.of("  abc", { length: 3, flags: 0x4000 })],
    ["flags of no version", IndexFile.of("\u0010 abc", { length: 3, flags: 0x4000, version: 3 })],
    ["a name before that is not there", IndexFile.of("abcdefgh", { length: 3, stripped: 5, version: 4 })],
    ["version 5", IndexFile.of("abc", { version: 5 })]
  ])("is not certain with %s", (_, bytes) => {
    assert.isUndefined(GitIndex.parse(bytes, 20))
  })

  it("is read without a second look at most names, and no other name is missed", () => {
    const piece = fc.constantFrom(
      ..."g i t G . / \\ : ~ 1 x - \u200c \u00e9".split(" "),
      " ",
      ".git",
      "git~1",
      "/.git",
      ".."
    )
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), version, (pieces, version) => {
        const name = pieces.join("")
        assert.deepStrictEqual(
          GitIndex.parse(IndexFile.of(name, { version }), 20)?.refused,
          GitIndex.isRefused(name) ? [name] : []
        )
      }),
      { numRuns: Runs.of(200_000) }
    )
  })

  it.each([
    ".git",
    ".Git/hooks/x",
    "a/.git/x",
    "git~1",
    "GIT~2/x",
    ".git ",
    ".git. .",
    ".git::$INDEX_ALLOCATION",
    ".g\u200dit",
    "..",
    "a/..",
    "./a",
    "/a",
    "a//b",
    "a/",
    "",
    "a\\.git\\b"
  ])("git refuses the name %j", (name) => {
    assert.isTrue(GitIndex.isRefused(name))
  })
  it.each([
    ".gitignore",
    ".github/x",
    "git",
    "a.git/x",
    "x/.gitmodules",
    "...",
    "..a",
    "a..",
    "git~",
    "été",
    "a:b",
    "a\\b",
    ".gitattributes"
  ])("git checks out the name %j", (name) => {
    assert.isFalse(GitIndex.isRefused(name))
  })
})
