/** The harmless table against the real programs: what it lets run changes no file and runs no other program. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Bubblewrap from "../kit/Bubblewrap.js"
import { commandField, isByTable } from "../kit/Commands.js"
import * as Runs from "../kit/Runs.js"
import * as ShellLines from "../kit/ShellLines.js"

const split = (text: string): ReadonlyArray<string> => text.split(" ")

const programs = split(
  "ls dir vdir cat tac nl rev head tail wc pwd whoami id groups tty nproc uptime seq expr basename dirname readlink realpath stat " +
    "du df free which whereis locale getconf lscpu grep egrep fgrep cut paste tr comm join fold fmt expand unexpand od cmp cksum sum " +
    "md5sum sha1sum sha256sum b2sum ps numfmt tsort pathchk find sed printf test date sort uniq xxd hexdump strings column file tree " +
    "diff rg fd fdfind uname base64 lsblk"
)
const subcommands = split(
  "status diff log show shortlog blame grep ls-files ls-tree cat-file rev-parse rev-list describe name-rev merge-base show-ref " +
    "for-each-ref count-objects check-ignore check-attr branch tag stash remote reflog worktree diff-tree diff-index diff-files " +
    "symbolic-ref config notes update-ref range-diff"
)
const calls: ReadonlyArray<ReadonlyArray<string>> = [
  ...programs.map((program) => [program]),
  ...subcommands.map((subcommand) => ["git", subcommand])
]

const places = (process.env["PATH"] ?? "").split(":")
const placeOf = (program: string): string | undefined =>
  places.map((place) => join(place, program)).find((path) => path.startsWith("/") && existsSync(path))

const quoted = (words: ReadonlyArray<string>): string =>
  words.map((word) => (/^[A-Za-z0-9_./=,+-]+$/.test(word) ? word : `'${word}'`)).join(" ")

const reads = (words: ReadonlyArray<string>, confined = false): boolean =>
  isByTable(
    PermissionRule.subject({
      tool: "run_command",
      params: { command: quoted(words) },
      commandField,
      confined,
      repository: "harmless"
    })
  )

const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.@"]
const values = split(
  "1 2 auto x out new a b d +1 1,2 % -1 -- - -o -out @a HEAD main list show expire none 2n , + 5p 1w w"
)
/** Words that some parsers take whole, whatever else begins like them. */
const whole = split(
  "-ps -plain -postscript -revert -r -autoskip -bits -cols -include -exec -execdir -ok -delete -fprint -fls -fprintf -print -name " +
    "-newer -type -size -maxdepth -files0-from -ls -aux aux auxe e ef -ef -eo {} ; +"
)

/** Long options as the program's help names them. */
const longOf = ([program = "", subcommand]: ReadonlyArray<string>, path: string): ReadonlyArray<string> => {
  if (program === "ps") return split("--sort --forest --no-headers --format --pid --ppid --user --cols")
  const words = subcommand === undefined ? ["--help"] : [subcommand, "-h"]
  const { stderr, stdout } = spawnSync(path, words, { encoding: "utf8", timeout: 10_000, input: "" })
  return [...new Set([...`${stdout}${stderr}`.matchAll(/--[a-z][a-z0-9-]*[a-z0-9]/g)].map(([text]) => text))]
}

describe("a word that no list holds", () => {
  it("is asked about: abbreviations, further letters, clusters of those", () => {
    const random = ShellLines.randomOf(20_260_202)
    const of = (from: ReadonlyArray<string>): string => from[Math.floor(random() * from.length)] ?? ""
    let seen = 0
    for (const call of calls) {
      // Theirs are words, whatever they begin with.
      if (["expr", "test", "find", "ps", "printf", "xxd"].includes(call[0] ?? "")) continue
      const path = placeOf(call[0] ?? "")
      const long = path === undefined ? ["--help", "--version"] : longOf(call, path)
      // The help of git leaves out many options, and some of them are the beginning of longer ones.
      const whole = call[0] === "git" ? [] : long
      const listed = whole.filter((word) => reads([...call, word]) || reads([...call, `${word}=1`]))
      for (const word of listed)
        for (let end = 3; end < word.length; end++) {
          const start = word.slice(0, end)
          if (long.includes(start)) continue
          assert.isFalse(reads([...call, start]) || reads([...call, `${start}=x`], true), quoted([...call, start]))
          seen++
        }
      const flags = letters.filter((letter) => reads([...call, `-${letter}`]))
      for (let i = 0; i < 40; i++) {
        const odd = `--${of(letters)}${of(letters)}${of(letters)}`
        if (!long.includes(odd)) assert.isFalse(reads([...call, odd], true), quoted([...call, odd]))
        const cluster = `${of(letters)}${of(flags)}${of(letters)}`
        const every = [...cluster].every((letter) => flags.includes(letter) || /\d/.test(letter))
        // The first letter may take the others for its value.
        const [first = ""] = cluster
        if (reads([...call, `-${cluster}`]))
          assert.isTrue(every || flags.includes(first), quoted([...call, `-${cluster}`]))
      }
    }
    assert.isAbove(seen, 500)
  })
})

describe.skipIf(!Bubblewrap.isPossible)("what only reads", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "harmless-")))

  /** Used again as long as nothing changes it. */
  let shared: string | undefined

  const made = (): string => {
    const place = mkdtempSync(join(root, "w-"))
    for (const name of ["d", "home", "tmp", "bin"]) mkdirSync(join(place, name))
    for (const name of ["a", "b", "1", "x", "d/a", "@a", "list"]) writeFileSync(join(place, name), `${name} 1\nb 2\n`)
    for (const name of split("pr sh less more cat gzip bzip2 xz zstd gpg ssh hostname id ls x out new a b evil 1 main"))
      writeFileSync(join(place, "bin", name), `#!/bin/sh\n: > "${place}/ran-${name}"\n`, { mode: 0o755 })
    const git = (...words: ReadonlyArray<string>) =>
      execFileSync("git", ["-C", place, "-c", "user.name=n", "-c", "user.email=e@e", ...words], { stdio: "ignore" })
    git("init", "-q", "-b", "main")
    git("add", "a", "b")
    git("commit", "-qm", "one")
    writeFileSync(join(place, "a"), "a 1\nc 3\n")
    git("commit", "-qam", "two")
    return place
  }

  const snapshot = (place: string): ReadonlyMap<string, string> => {
    const found = new Map<string, string>()
    for (const name of readdirSync(place, { recursive: true, encoding: "utf8" })) {
      // Git notes there when it has seen the files.
      if (name === ".git/index") continue
      const path = join(place, name)
      const { mode, mtimeMs } = lstatSync(path)
      const isFile = lstatSync(path).isFile()
      found.set(name, isFile ? `${mode} ${mtimeMs} ${readFileSync(path, "base64")}` : String(mode))
    }
    return found
  }

  const inside = (place: string, text: string) =>
    spawnSync(
      "/usr/bin/bwrap",
      [
        ...["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"],
        ...["--bind", place, place, "--chdir", place, "--clearenv", "--setenv", "PATH", join(place, "bin")],
        ...["--setenv", "HOME", join(place, "home"), "--setenv", "TMPDIR", join(place, "tmp")],
        ...["--setenv", "PAGER", "cat", "--setenv", "GIT_PAGER", "cat", "--setenv", "GIT_OPTIONAL_LOCKS", "0", "--"],
        ...["/bin/sh", "-c", text]
      ],
      { stdio: "ignore", timeout: 120_000 }
    )

  it.each(calls)("changes nothing and runs nothing else: %s %s", (...call) => {
    const path = placeOf(call[0] ?? "")
    if (path === undefined) return
    const random = ShellLines.randomOf(call.join(" ").length * 7919 + (call.at(-1)?.charCodeAt(0) ?? 0))
    const of = (from: ReadonlyArray<string>): string => from[Math.floor(random() * from.length)] ?? ""
    const all = [...letters.map((letter) => `-${letter}`), ...longOf(call, path), ...whole]
    const known = all.filter((word) => reads([...call, word], true) || reads([...call, `${word}=1`], true))
    const word = (): string => {
      const option = random() < 0.7 ? of(known) : of(all)
      const dice = random()
      if (dice < 0.3) return option
      if (dice < 0.45) return option.startsWith("--") ? `${option}=${of(values)}` : option + of(values)
      if (dice < 0.6) return `-${of(known).slice(1, 2)}${of(known).slice(1, 2)}${of(letters)}`
      return of(values)
    }
    const forms = (option: string): ReadonlyArray<ReadonlyArray<string>> => [
      [option, "out", "a"],
      [option, "a", "out"],
      ["a", option, "out"],
      [`${option}out`, "a"],
      [`${option}=out`, "a"],
      [`${option}1`, "a", "out"],
      [option, "1", "a", "out"]
    ]
    const vectors = new Set<string>()
    const add = (words: ReadonlyArray<string>) => {
      if (reads([...call, ...words], true))
        vectors.add([path, ...call.slice(1), ...words].map((text) => `'${text}'`).join(" "))
    }
    // Each option in each form, with what may be an output; and words as they fall.
    for (const option of known) {
      const all = forms(option)
      const first = Runs.isWhole ? 0 : Math.floor(random() * all.length)
      for (const words of Runs.isWhole ? all : [...all.slice(first), ...all.slice(0, first)].slice(0, 2)) add(words)
    }
    for (let i = 0; i < Runs.of(200); i++) add(Array.from({ length: 1 + Math.floor(random() * 5) }, word))
    add(["a", "out"])
    const place = (shared ??= made())
    const before = snapshot(place)
    const timeout = placeOf("timeout") ?? "timeout"
    const lines = [...vectors].map((text) => `${timeout} 0.3 ${text} <list >/dev/null 2>&1`)
    // Some wait until their time is up, so a few run side by side.
    const rows = Array.from({ length: 6 }, (_, row) => lines.filter((_, index) => index % 6 === row).join("\n"))
    inside(place, `${rows.map((row) => `( :\n${row}\n) &`).join("\n")}\nwait`)
    const after = snapshot(place)
    if (JSON.stringify([...after]) !== JSON.stringify([...before])) {
      const changed = [...after].filter(([name, text]) => before.get(name) !== text).map(([name]) => name)
      shared = undefined
      assert.fail(`${changed.join(", ")} changed by one of\n${lines.join("\n")}`)
    }
  })

  it("would be seen if it did", () => {
    const place = made()
    const before = snapshot(place)
    inside(place, `${placeOf("sort") ?? "sort"} -o out a; sh`)
    const after = snapshot(place)
    assert.deepStrictEqual(
      [...after.keys()].filter((name) => !before.has(name)),
      ["out", "ran-sh"]
    )
    rmSync(root, { recursive: true, force: true })
  })
})
