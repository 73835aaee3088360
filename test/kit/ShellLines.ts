/**
 * Shell lines, the rules' verdicts about them, and what real shells run.
 *
 * A line that the rules allow is run in `bash` and in `dash`, in a directory and with a path of their own. Every
 * program records its name, directory and words, and then runs its own commands if it has any. {@link isMeant} judges
 * the records: it restates the rules and knows nothing of the parser.
 */
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "./Commands.js"

export interface Line {
  readonly text: string
  /** Where it runs, seen from the workspace. */
  readonly cwd: string | undefined
}

/** One program that ran. */
export interface Ran {
  readonly program: string
  /** Seen from the workspace. */
  readonly cwd: string
  readonly words: ReadonlyArray<string>
}

export interface Outcome {
  /** How many of the lines the rules let run. */
  readonly allowed: number
  /** How many programs those ran, in all shells. */
  readonly ran: number
  /** What ran that nobody allowed. */
  readonly unasked: ReadonlyArray<Ran & { readonly shell: string; readonly line: Line }>
}

// -----------------------------------------------------------------------------------------------------------------
// rules
// -----------------------------------------------------------------------------------------------------------------

const rules = PermissionRule.compile({
  tools: [],
  patterns: [
    ...["git", "ls*", "cat", "grep*", "sort", "uniq", "find", "env*", "xargs*", "timeout*", "nohup*", "time*"],
    ...["npm test*", "wide*", "make build", "sh -c *", "env tool go*"]
  ],
  arguments: ["head", "npm run lint"]
})
const remembered = ["make all", '(in "sub") make sub', '(in "sub") (reading) wc *', "bash"]

export const isAllowed = ({ cwd, text }: Line): boolean => {
  const subject = PermissionRule.subject({
    tool: "run_command",
    params: cwd === undefined ? { command: text } : { command: text, cwd },
    commandField,
    pathFields: ["cwd"]
  })
  return (
    PermissionRule.allows(rules, subject) !== undefined ||
    PermissionRule.entriesAllow(remembered, subject) !== undefined ||
    PermissionRule.reads(subject)
  )
}

// `xargs` runs `echo` where it is told nothing.
const readers = new Set(["ls", "cat", "grep", "head", "wc", "echo"])
const runners = new Set(["env", "xargs", "timeout", "nohup", "nice", "setsid", "time", "sh", "bash"])
const gitReaders = new Set(["status", "log", "diff", "show", "stash", "branch", "grep"])

/**
 * The rules above once more, as plainly as can be. A line that begins in the workspace may go into `sub` by a plain `cd`:
 * what people wrote counts there, and what was remembered for the workspace does not.
 */
export const isMeant = ({ cwd, program, words }: Ran, line: Line): boolean => {
  const [first = ""] = words
  const dashed = words.filter((word) => word.startsWith("-"))
  if (cwd === "sub" && line.cwd !== "sub" && entersSub.test(line.text)) {
    return words.join(" ") !== "all" && isMeant({ program, words, cwd: "" }, line)
  }
  if (cwd === "sub") return ["wc", "make"].includes(program) && (program === "wc" || words.join(" ") === "sub")
  if (cwd !== "") return false
  if (readers.has(program) || runners.has(program)) return true
  switch (program) {
    case "git": {
      const rest = words[0] === "--no-pager" ? words.slice(1) : words
      if (rest.length === 0) return true
      if (!gitReaders.has(rest[0] ?? "")) return false
      if (rest.some((word) => /^--(?:out|ext|text|no-index|exec|upl|conf|git-dir|work)/.test(word))) return false
      if (rest[0] === "grep" && dashed.some((word) => /^(?:-[a-z]*O|--op)/.test(word))) return false
      if (rest[0] === "stash") return rest[1] === "list" || rest[1] === "show"
      return rest[0] !== "branch" || rest.slice(1).every((word) => /^(?:-[arv]+|--)$/.test(word))
    }
    case "sort":
      return !dashed.some(
        (word) => /^--(?:o|co|fi|te|pa|ra.*=)|^-[a-zA-Z]*[oST]/.test(word) && !/^-[a-z]*[kt]/.test(word)
      )
    case "uniq":
      // `-f 1` and its like take a word.
      return words.filter((word, i) => !word.startsWith("-") && !/^-[a-z]*[fsw]$/.test(words[i - 1] ?? "")).length <= 1
    case "find":
      return !withoutRuns(words).some((word) => /^-(?:delete|fprint|fls|execdir|okdir)/.test(word))
    case "npm":
      return first === "test" || (first === "run" && words[1] === "lint")
    case "make":
      return ["build", "all"].includes(words.join(" "))
    case "wide":
      return true
    case "tool":
      return first === "go"
    default:
      return false
  }
}

const entersSub = /(?:^|[\s;&|(])cd\s+(?:\.\/)?sub(?=$|[\s;&|)#])/

/** What `find` reads itself; what it runs writes down its own words. */
const withoutRuns = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words
    .join("\n")
    .replace(/^-(?:exec|ok)\n[^]*?^(?:;|\{\}\n\+)$/gm, "")
    .split("\n")

// -----------------------------------------------------------------------------------------------------------------
// lines
// -----------------------------------------------------------------------------------------------------------------

/** Numbers from 0 to below 1; the same for the same seed. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const split = (text: string): ReadonlyArray<string> => text.split("¦")

const good = split(
  "git status¦git log -3¦git diff --stat¦git --no-pager show¦git branch -a¦git stash list¦ls -l¦cat a¦grep -n x a¦grep x a" +
    "¦sort -r a¦uniq -c a¦find . -name a¦head -2 a¦npm test¦npm test x¦make build¦npm run lint¦git¦ls¦wc -l¦make all¦make sub¦bash¦wide¦wide open -f¦env¦xargs¦timeout 5¦cat a | xargs env¦cat a | xargs -n1 nice¦cat a | xargs env find ."
)
const bad = split(
  "rm a¦x¦git push¦git log --output=o¦git diff --ext-diff¦git -c a=b log¦git -C sub log¦git grep -O x¦git branch n¦git stash" +
    "¦git difftool¦sort -o o a¦sort -ro o a¦sort --outp=o a¦uniq a o¦find . -delete¦find . -fprint o¦npm publish¦npm testx" +
    "¦make¦make clean¦gitx log¦./git log¦sub/ls¦$X a¦r$(true)m¦tool stop¦make build x¦sh x¦bash -c 'rm a'"
)
const wrappers = split(
  "env ¦env A=1 ¦env -i ¦env -u A ¦timeout 5 ¦timeout -s KILL 5 ¦nohup ¦time ¦time -p ¦xargs ¦xargs -n1 ¦xargs -I{} ¦env -- ¦sh -c " +
    "¦sh -ec ¦command ¦exec ¦env tool go ¦nice ¦setsid ¦PATH=sub ¦A=1 ¦env -C sub ¦timeout 5 env ¦nohup sh -c " +
    "¦jobs -x ¦exec -a ls ¦exec -c ¦builtin ¦builtin command ¦eval ¦coproc ¦env -S ¦env --split-string=¦! ¦command -p ¦timeout -k 1 5 ¦xargs -a a ¦=¦trap "
)
const finds = split("find . -name a -exec ¦find . -type f -exec ¦find sub -exec ¦find . -execdir ¦find . -ok ")
const joints = split("; ¦ && ¦ || ¦ | ¦\n¦ & ¦;¦&&¦|¦ |& ¦ ; ; ¦ &&\n")
const places = split(
  "cd sub¦cd .¦cd¦cd sub; cd ..¦(cd sub)¦cd ./¦pushd sub¦alias ls=rm¦export PATH=sub¦ls() { rm a; }¦hash -r¦PATH=sub¦set -f" +
    "¦trap 'rm a' EXIT¦trap rm EXIT¦coproc rm a¦PATH+=:sub¦printf -v PATH sub¦read PATH <<< sub¦hash -p ./git ls¦declare -x PATH=sub¦set -- rm a¦unset PATH¦exec <a¦mapfile -C rm -c 1 <a¦wait -p 'b[$(rm a)]'¦shopt -s extglob¦BASH_ENV=a"
)
const tails = split(
  " 2>&1¦ >/dev/null¦ </dev/null¦ < a¦ > o¦ #x¦ *¦ $X¦ $(rm a)¦ `x`¦ \"$(git log)\"¦ <<E\nE¦ {}¦ +¦ \\;¦ &¦ {fd}>o¦ >|o¦ <>o¦ &>>o¦ >&o¦ 2>&1-¦ 3>o¦ <(rm a)¦ >(rm a)¦ <<<x¦ $((a[$(rm a)]))¦ ${a[$(rm a)]}¦ ${a:=$(rm a)}¦ {a,-o}¦ $'a'¦ @(a|b)"
)
/** They end by themselves, also when something is changed in them. */
const structures = split(
  "if §; then §; fi¦if §\nthen §\nelse §; fi¦if ls; then §; elif §; then §; fi 2>&1¦{ §; }¦{ §; § } >/dev/null¦! §¦case a in (a) §;; *) § ;; esac¦case $X in a|b) §\nesac" +
    "¦until ls; do §; done¦until ls; do cd sub; §; done¦for X in a b; do §; done¦for PATH in sub; do §; done¦while read -r X; do §; done < a¦cat <<E\n§\nE\n§¦cat <<'E' && §\n$(rm a)\nE¦cat <<E\n$(§)\nE" +
    "¦[[ -f a && -f b ]] && §¦[[ -f a && rm ]]; §¦ls || [[ a && rm ]]¦cat <(§)¦§ <<< a¦((X++)); §¦X=(a b); §¦echo ${X:-$(§)}¦echo $(( $(§) + 1 ))"
)
const noise = split(
  "'¦\"¦\\¦$¦`¦(¦)¦;¦&¦|¦<¦>¦{¦}¦ ¦\n¦\\\n¦*¦?¦[¦]¦~¦#¦=¦-¦!¦rm¦ x ¦-o¦--¦$()¦''¦\"\"¦$''¦${X}¦if ¦then ¦\t¦/¦a¦1¦,¦-exec¦{}¦\\;¦+¦-c¦env ¦git ¦cd "
)

/** Mostly lines that may be allowed, some of them almost. */
export const line = (random: () => number): Line => {
  const of = (from: ReadonlyArray<string>): string => from[Math.floor(random() * from.length)] ?? ""
  const simple = (depth: number): string => {
    const dice = random()
    const plain = dice < 0.86 ? of(good) : of(bad)
    if (depth > 2 || random() < 0.6) return plain
    if (random() < 0.2) {
      const more = random() < 0.4 ? ` -exec ${simple(3)} {} ${of(["\\;", "+", "';'"])}` : ""
      return `${of(finds)}${simple(3)} ${of(["{}", "a", ""])} ${of(["\\;", "+", "';'"])}${more}`
    }
    const wrapper = of(wrappers)
    const inner = simple(depth + 1)
    if (!/-e?c $/.test(wrapper)) return wrapper + inner
    return (
      wrapper +
      (inner.includes("'") ? JSON.stringify(inner) : `'${inner}${random() < 0.3 ? of(joints) + simple(2) : ""}'`)
    )
  }
  let text = simple(0)
  while (random() < 0.35) text += of(joints) + (random() < 0.12 ? of(places) : simple(1))
  if (random() < 0.06) text = of(places) + of(joints) + text
  if (random() < 0.2) text += of(tails)
  if (random() < 0.08) text = `(${text})`
  if (random() < 0.15)
    text = of(structures)
      .replace("§", () => text)
      .replaceAll("§", () => simple(1))
  const changes = random() < 0.35 ? 1 + Math.floor(random() * 2) : 0
  for (let i = 0; i < changes; i++) {
    const at = Math.floor(random() * (text.length + 1))
    const cut = random() < 0.3 ? 1 : 0
    text = text.slice(0, at) + of(noise) + text.slice(at + cut)
  }
  const where = random()
  return { text, cwd: where < 0.8 ? undefined : where < 0.87 ? "." : where < 0.97 ? "sub" : "sub/.." }
}

// -----------------------------------------------------------------------------------------------------------------
// shells
// -----------------------------------------------------------------------------------------------------------------

export interface Machine {
  readonly shells: ReadonlyArray<string>
  readonly run: (lines: ReadonlyArray<Line>) => Promise<Outcome>
  readonly close: () => void
}

const stubs = split("git¦ls¦cat¦grep¦sort¦uniq¦head¦wc¦npm¦make¦tool¦rm¦x¦gitx¦echo¦testx¦sub¦wide")
const real = split("env¦find¦xargs¦timeout¦nohup¦nice¦setsid¦stdbuf¦time¦sh¦bash¦dash")

const firstOf = (name: string): string | undefined =>
  ["/usr/bin", "/bin"].map((place) => join(place, name)).find((path) => existsSync(path))

/** A directory with a workspace, and programs that write down that they ran. */
export const machine = (): Machine => {
  const root = mkdtempSync(join(tmpdir(), "shell-lines-"))
  const at = (...names: ReadonlyArray<string>) => join(root, ...names)
  const sub = at("workspace", "sub")
  for (const place of [at("bin"), at("log"), sub]) mkdirSync(place, { recursive: true })
  for (const file of ["a", "b"]) writeFileSync(at("workspace", file), "rm a\n")
  const compiled = compile(root)
  for (const name of [...stubs, ...real]) {
    const target = real.includes(name) ? firstOf(name) : undefined
    if (real.includes(name) && target === undefined) continue
    const path = at("bin", name)
    if (compiled === undefined) writeFileSync(path, script(name, target), { mode: 0o755 })
    else symlinkSync(compiled, path)
  }
  // Programs of the workspace: what its own names run is another program.
  for (const name of ["git", "ls"]) {
    for (const path of [join(sub, name), at("workspace", name === "git" ? "git" : "ls.sh")]) {
      writeFileSync(path, script(`workspace-${name}`, undefined), { mode: 0o755 })
      chmodSync(path, 0o755)
    }
  }
  const shells = ["bash", "dash"].flatMap((name) => firstOf(name) ?? [])
  const run = async (lines: ReadonlyArray<Line>): Promise<Outcome> => {
    const allowed = lines.filter(isAllowed)
    const outcome = { allowed: allowed.length, ran: 0, unasked: new Array<Outcome["unasked"][number]>() }
    if (allowed.length === 0) return outcome
    for (const shell of shells) {
      const log = at("log", "log")
      writeFileSync(log, "")
      await runAll(shell, root, allowed)
      for (const record of readFileSync(log, "utf8").split("\u0002\u0001")) {
        const [number = "", program = "", cwd = "", ...words] = record.split("\u0001").slice(0, -1)
        const line = allowed[Number(number)]
        if (program === "" || line === undefined) continue
        outcome.ran++
        const ran = { program, cwd: seenFrom(at("workspace"), cwd), words }
        if (!isMeant(ran, line)) outcome.unasked.push({ ...ran, shell, line })
      }
    }
    return outcome
  }
  return { shells, run, close: () => rmSync(root, { recursive: true, force: true }) }
}

const seenFrom = (workspace: string, cwd: string): string =>
  cwd === workspace ? "" : cwd.startsWith(`${workspace}/`) ? cwd.slice(workspace.length + 1) : cwd

/** One shell runs all lines, each in a shell of its own below it. */
const runAll = (shell: string, root: string, lines: ReadonlyArray<Line>): Promise<void> =>
  new Promise((resolve, reject) => {
    const program =
      'n=0; while [ $# -gt 0 ]; do export LINE=$n; n=$((n+1)); ( cd "$ROOT/workspace/$1" || exit; set +m; eval "$2" ) </dev/null >/dev/null 2>&1; shift 2; done; wait'
    const words = lines.flatMap(({ cwd, text }) => [cwd ?? ".", text])
    const child = spawn(shell, ["-c", program, shell, ...words], {
      env: { PATH: join(root, "bin"), HOME: join(root, "workspace", "sub"), LOG: join(root, "log", "log"), ROOT: root },
      stdio: "ignore"
    })
    child.on("error", reject)
    child.on("close", () => resolve())
  })

const quoted = (text: string): string => `'${text}'`

const script = (name: string, target: string | undefined): string =>
  `#!/bin/sh\nprintf '%s\\001' "$LINE" ${quoted(name)} "$(pwd -P)" "$@" "$(printf '\\002')" >> "$LOG"\n` +
  (target === undefined ? "" : `exec ${target} "$@"\n`)

/** The same in a program that starts faster, where there is a compiler. */
const compile = (root: string): string | undefined => {
  const source = join(root, "stub.c")
  writeFileSync(
    source,
    `#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdio.h>
static char out[65536]; static size_t n;
static void put(const char *s) { size_t l = s ? strlen(s) : 0; if (n + l + 8 < sizeof out) { memcpy(out + n, s, l); n += l; } out[n++] = 1; }
int main(int argc, char **argv) {
  char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0], cwd[4096], path[512];
  const char *line = getenv("LINE"), *log = getenv("LOG");
  put(line ? line : "0"); put(name); put(getcwd(cwd, sizeof cwd) ? cwd : "?");
  for (int i = 1; i < argc; i++) put(argv[i]);
  put("\\002");
  int fd = open(log ? log : "${join(root, "log", "log")}", O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd >= 0) { if (write(fd, out, n) < 0) return 1; close(fd); }
  const char *real[] = {${real.map((name) => `"${name}"`).join(",")}, 0};
  for (int i = 0; real[i]; i++) if (!strcmp(real[i], name)) {
    snprintf(path, sizeof path, "/usr/bin/%s", name); execv(path, argv);
    snprintf(path, sizeof path, "/bin/%s", name); execv(path, argv);
    return 127;
  }
  return 0;
}
`
  )
  const target = join(root, "stub")
  try {
    execFileSync("cc", ["-O1", "-o", target, source], { stdio: "ignore" })
    return target
  } catch {
    return undefined
  }
}
