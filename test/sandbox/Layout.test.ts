import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Wait from "../kit/Wait.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-layout-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const world = Effect.gen(function* () {
  const place = join(base, `${count++}`)
  const root = join(place, "workspace")
  mkdirSync(join(root, "inside"), { recursive: true })
  execFileSync("git", ["init", "-q", root])
  const hidden = [join(root, "inside/profiles")]
  const sandbox = yield* Confined.make({ root, hidden, directory: join(place, "state") })
  return { place, root, sandbox, run: (line: string) => Confined.run(sandbox, root, line) }
})

/** What is at a path, in one word; of a link its target. */
const lookAt = (file: string): string => {
  const info = lstatSync(file, { throwIfNoEntry: false })
  if (info === undefined) return "absent"
  if (info.isSymbolicLink()) return readlinkSync(file)
  return info.isDirectory() ? "directory" : info.isFile() ? "file" : "other"
}

/** How each of them is made, by a shell. */
const making: Readonly<Record<string, (file: string) => string>> = {
  absent: () => ":",
  directory: (file) => `mkdir ${file}`,
  file: (file) => `echo 'gitdir: nowhere' > ${file}`,
  "../../inside": (file) => `ln -sT ../../inside ${file}`,
  "/usr/share": (file) => `ln -sT /usr/share ${file}`,
  nowhere: (file) => `ln -sT nowhere ${file}`,
  other: (file) => `mkfifo ${file}`
}
const befores = ["absent", "directory", "file", "../../inside", "nowhere"]
const afters = ["absent", "directory", "file", "/usr/share", "other"]
const isLink = (kind: string) => !["absent", "directory", "file", "other"].includes(kind)

/** Below a directory of their own each, so that one command can try all of them. */
const places = [
  "a/.assent",
  "a/.git",
  "b/.git/config",
  "b/.git/commondir",
  "b/.git/hooks",
  "b/.git/info",
  "b/.git/modules",
  "b/.git/worktrees",
  "c/.git/modules/m",
  "c/.git/worktrees/w"
]

describe.skipIf(!Confined.isWanted)("what a command makes of what acts", () => {
  it.scopedLive("is undone and told, whatever was there and whatever it left there", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      execFileSync("git", ["init", "-q", join(root, "made")])
      rmSync(join(root, "made/.git/hooks"), { recursive: true })
      const tried = befores.flatMap((before, row) =>
        afters.flatMap((after, column) =>
          before === after ? [] : places.map((place) => ({ before, after, place, file: `${row}-${column}/${place}` }))
        )
      )
      const shell = (line: string) => execFileSync("/bin/sh", ["-c", line], { cwd: root })
      for (const cell of new Set(tried.map(({ file }) => file.split("/")[0]))) {
        for (const name of ["b", "c"]) shell(`mkdir -p ${cell}/a ${cell}/${name}; cp -r made/.git ${cell}/${name}/`)
        shell(`mkdir -p ${cell}/c/.git/modules ${cell}/c/.git/worktrees`)
      }
      shell(tried.map(({ before, file }) => `rm -rf ${file}; ${making[before]?.(file)}`).join("\n"))
      const line = tried.map(({ after, file }) => `rm -rf ${file}; ${making[after]?.(file)}`).join("\n")
      const { all: notices } = yield* run(`exec 2>/dev/null; ${line.replaceAll("> ", "2>/dev/null > ")}`)
      const seen = tried.map(({ after, before, file }) => ({
        change: `${before} -> ${after} ${file}`,
        left: lookAt(join(root, file)),
        told: notices
          .filter((notice) => notice.startsWith(`[${file} `))
          .map((notice) => notice.slice(file.length + 2).replace(/moved to \S+\]/, "moved]"))
      }))
      const wanted = tried.map(({ after, before, file, place }) => {
        // Git's own directories are made before the command begins.
        const made = before === "absent" && /hooks|info/.test(place)
        const isMade = before === "absent" && after === "directory" && /(?:modules|worktrees)$/.test(place)
        const appeared = "appeared, which acts later; it was moved]"
        const isReplaced = after !== "absent" && (isLink(before) || before === "absent")
        return {
          change: `${before} -> ${after} ${file}`,
          left: made || isMade ? "directory" : before,
          told: [
            ...(isReplaced && !made && !isMade ? [appeared] : []),
            ...(isLink(before) ? [`was a link to ${before}, which is gone; it was restored.]`] : [])
          ]
        }
      })
      assert.deepStrictEqual(seen, wanted)
      assert.lengthOf(notices, wanted.flatMap(({ told }) => told).length)
      assert.deepStrictEqual((yield* run("true")).notices, [])
    })
  )

  it.scopedLive("is undone at the root too, and what a link leads to is not written", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      writeFileSync(join(root, "inside/permissions.json"), "{}")
      symlinkSync("inside", join(root, ".assent"))
      const { notices } = yield* run(
        "echo x > .assent/permissions.json; echo x > inside/permissions.json; mv inside y; rm .assent; mkdir .assent"
      )
      assert.deepStrictEqual(
        notices.map((notice) => notice.replace(/moved to \S+\]/, "moved]")),
        [
          "[.assent appeared, which acts later; it was moved]",
          "[.assent was a link to inside, which is gone; it was restored.]"
        ]
      )
      assert.strictEqual(lookAt(join(root, ".assent")), "inside")
      assert.strictEqual(readFileSync(join(root, "inside/permissions.json"), "utf8"), "{}")
    })
  )

  it.scopedLive("leaves a workspace writable where a link leads to what it lies in", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      symlinkSync(".", join(root, ".assent"))
      symlinkSync("..", join(root, "inside/.assent"))
      rmSync(join(root, ".git/hooks"), { recursive: true })
      symlinkSync("../..", join(root, ".git/hooks"))
      yield* run("touch here inside/there .git/description")
      assert.deepStrictEqual([existsSync(join(root, "here")), existsSync(join(root, "inside/there"))], [true, true])
    })
  )

  const lines = ["rm -r sub", "mv sub away", "rm -r sub; mkfifo sub", "rm -r sub; ln -s inside sub"]
  it.scopedLive.each(lines)("is told where a link is gone with its directory: %s", (line) =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      mkdirSync(join(root, "sub"))
      symlinkSync("../inside", join(root, "sub/.assent"))
      const { notices } = yield* run(line)
      const aside = line.startsWith("mv") ? ["[away/.assent appeared, which acts later; it was moved]"] : []
      assert.deepStrictEqual(
        notices.map((notice) => notice.replace(/moved to \S+\]/, "moved]")),
        [...aside, "[sub/.assent was a link to ../inside, which is gone; make it again if it is to hold.]"]
      )
      assert.deepStrictEqual((yield* run("true")).notices, [])
    })
  )

  it.scopedLive("is undone once where several commands run", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      mkdirSync(join(root, "sub"))
      symlinkSync("../inside", join(root, "sub/.assent"))
      const first = yield* Effect.fork(run("touch up; while [ ! -e go ]; do sleep 0.02; done"))
      yield* Wait.until(
        Effect.sync(() => existsSync(join(root, "up"))),
        Boolean
      )
      const { notices } = yield* run("rm sub/.assent")
      assert.deepStrictEqual(notices, ["[sub/.assent was a link to ../inside, which is gone; it was restored.]"])
      writeFileSync(join(root, "go"), "")
      assert.deepStrictEqual((yield* Fiber.join(first)).notices, [])
      assert.strictEqual(lookAt(join(root, "sub/.assent")), "../inside")
    })
  )

  it.scopedLive("is not what a person makes of it between two commands", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      const links = [join(root, "inside/.assent"), join(root, ".git/config.worktree")]
      for (const file of links) symlinkSync(join(dirname(file), "nowhere"), file)
      yield* run("true")
      for (const file of links) unlinkSync(file)
      assert.deepStrictEqual((yield* run("true")).notices, [])
      assert.deepStrictEqual(links.map(lookAt), ["absent", "absent"])
      yield* run(`ln -s nowhere .git/config.worktree`)
      assert.strictEqual(lookAt(join(root, ".git/config.worktree")), "absent")
    })
  )
})

describe.skipIf(!Confined.isWanted)("another name of what acts, by a hard link", () => {
  /** What acts, and a name for each of them in a directory where commands write. */
  const acting = [
    ".assent/permissions.json",
    ".assent/profiles/a.json",
    ".git/config",
    ".git/hooks/pre-push",
    "inside/profiles/b.json"
  ]
  const linked = Effect.gen(function* () {
    const { root, run } = yield* world
    const files = acting.map((file, index) => ({ file, other: `inside/deep/${index}`, text: `# ${file}\n` }))
    mkdirSync(join(root, ".assent/profiles"), { recursive: true })
    for (const name of ["deep", "profiles"]) mkdirSync(join(root, "inside", name))
    for (const { file, text } of files) writeFileSync(join(root, file), text)
    const link = () => {
      for (const { file, other } of files) linkSync(join(root, file), join(root, other))
    }
    const attack = files
      .map(({ file, other }) => [
        `echo x > ${other}; echo x >> ${other}; truncate -s 0 ${other}; chmod 777 ${other}; cp /etc/passwd ${other}`,
        `ln ${file} new; ln ${other} new; echo x >> new; mv -f new ${other}; mv ${other} moved; echo x >> moved; rm ${other}`
      ])
      .flat()
    const line = `exec 2>/dev/null; ${attack.join("; ")}; mv inside away; echo x >> away/deep/1; echo mine > inside/free`
    const isAsBefore = () => {
      for (const { file, other, text } of files) {
        assert.strictEqual(readFileSync(join(root, file), "utf8"), text)
        assert.strictEqual(readFileSync(join(root, other), "utf8"), text)
        assert.strictEqual(lstatSync(join(root, file)).mode & 0o777, 0o644)
      }
      assert.strictEqual(readFileSync(join(root, "inside/free"), "utf8"), "mine\n")
    }
    return { root, run, files, link, line, isAsBefore }
  })

  it.scopedLive("is as little written as the first one, however a command goes about it", () =>
    Effect.gen(function* () {
      const { isAsBefore, line, link, run } = yield* linked
      link()
      assert.deepStrictEqual((yield* run(line)).notices, [])
      isAsBefore()
    })
  )

  it.scopedLive(
    "is so from the next command on where it is made between two, and no more when it is its own file",
    () =>
      Effect.gen(function* () {
        const { files, isAsBefore, line, link, root, run } = yield* linked
        yield* run("true")
        link()
        yield* run(line)
        isAsBefore()
        for (const { file, other, text } of files) {
          unlinkSync(join(root, other))
          writeFileSync(join(root, other), text)
          yield* run(`echo more >> ${other}`)
          assert.deepStrictEqual(
            [file, other].map((name) => readFileSync(join(root, name), "utf8")),
            [text, `${text}more\n`]
          )
        }
      })
  )
})
