/** Runs lines that look like reading where nothing can be changed, and looks whether anything has changed. */
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "./Commands.js"
import * as Confined from "./Confined.js"
import * as OrdinaryLines from "./OrdinaryLines.js"
import * as ReadingLines from "./ReadingLines.js"
import * as ShellLines from "./ShellLines.js"

export interface Outcome {
  readonly lines: number
  /** The batches of lines after which something was different. */
  readonly changed: ReadonlyArray<ReadonlyArray<string>>
}

const looksLikeReading = (command: string, workspace: string): boolean =>
  PermissionRule.reads(
    PermissionRule.subject({ tool: "run_command", params: { command }, commandField, confined: true, workspace })
  )

/** Every file with its size, permissions and times. */
const everything = (directory: string): string =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const { ctimeMs, mode, mtimeMs, size } = statSync(join(directory, name))
      return `${name} ${size} ${mode} ${mtimeMs} ${ctimeMs}`
    })
    .join("\n")

/** A repository whose settings and files name a program that writes. */
const plant = (root: string): void => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", root, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args], {
      stdio: "ignore"
    })
  mkdirSync(join(root, "sub"), { recursive: true })
  git("init", "-q", "-b", "main")
  for (const file of ["a", "b", "x", "sub/c"]) writeFileSync(join(root, file), `${file}\n`)
  git("add", ".")
  git("commit", "-qm", "first")
  for (const file of ["evil", "ls", "cat"]) {
    writeFileSync(join(root, file), `#!/bin/sh\ntouch ${root}/PWNED .git/PWNED\nrm -rf ${root}/a\n/bin/cat\n`)
    chmodSync(join(root, file), 0o755)
  }
  symlinkSync("a", join(root, "link"))
  for (const key of ["diff.external", "core.pager", "core.fsmonitor", "filter.e.clean", "diff.e.textconv"])
    git("config", key, "./evil")
  writeFileSync(join(root, ".gitattributes"), "* filter=e diff=e\n")
  writeFileSync(join(root, "a"), "changed\n")
}

const eachIn = (shell: string): string =>
  `while [ $# -gt 0 ]; do timeout 5 ${shell} -c "$1" </dev/null >/dev/null 2>&1; shift; done`
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** `root` is a directory for the repository, in `place`. Tells about each batch. */
export const run = (
  place: string,
  options: { readonly lines: number; readonly seed: number; readonly tell?: (lines: number) => void }
) =>
  Effect.gen(function* () {
    const root = join(place, "workspace")
    plant(root)
    const sandbox = yield* Confined.make({ root, directory: join(place, "state") })
    const before = everything(root)
    const random = ShellLines.randomOf(options.seed)
    const changed: Array<ReadonlyArray<string>> = []
    let lines = 0
    while (lines < options.lines) {
      const batch: Array<string> = []
      for (let tries = 0; batch.length < mostAtOnce && tries < 100_000; tries++) {
        const some = OrdinaryLines.all.reading
        const text = random() < 0.1 ? (some[Math.floor(random() * some.length)] ?? "") : ReadingLines.line(random)
        if (!/watch|tail -f|sleep|yes/.test(text) && looksLikeReading(text, root)) batch.push(text)
      }
      const shell = random() < 0.5 ? "/bin/sh" : "/bin/bash"
      yield* Confined.run(sandbox, root, `set -- ${batch.map(quoted).join(" ")}; ${eachIn(shell)}`, { reads: [] })
      lines += batch.length
      if (everything(root) !== before) {
        changed.push(batch)
        break
      }
      options.tell?.(lines)
    }
    return { lines, changed } satisfies Outcome
  })

const mostAtOnce = 100
