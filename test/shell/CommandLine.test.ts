import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Command from "@effect/platform/Command"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as RememberedText from "../../src/shell/RememberedText.js"
import * as CommandLine from "../../src/shell/CommandLine.js"
import * as Runs from "../kit/Runs.js"

const git: CommandLine.Remembered = { _tag: "Program", program: "git", cwd: "" }

const parsed = (text: string): CommandLine.CommandLine =>
  Either.getOrElse(CommandLine.parse(text), (error) => {
    throw error
  })

const programs = (text: string): ReadonlyArray<string> | undefined =>
  Either.match(CommandLine.parse(text), {
    onLeft: () => undefined,
    onRight: (line) => line.commands.map((command) => command.program)
  })

// text, programs found (nothing: unparseable), remembered as a program, covered by `git *`
type Row = readonly [text: string, programs: string | undefined, remembered: string | undefined, covered: boolean]

const table: ReadonlyArray<Row> = [
  // plain
  ["git status", "git", "git", true],
  ["git", "git", "git", true],
  ["  git  status\t-s \n", "git", "git", true],
  ["git log --grep='a; rm -rf x'", "git", "git", true],
  ["git commit -m 'a; rm -rf x'", "git", undefined, false],
  ['git log --grep="a && b | c > d"', "git", "git", true],
  ["git log --grep=a\\;b", "git", "git", true],
  ["git log --format='%H %s'", "git", "git", true],
  ["git show stash@{0}", "git", "git", true],
  ["git diff src/*.ts", "git", "git", true],
  ["git add src/*.ts", "git", undefined, false],
  ["git diff HEAD~3 -- a.ts # what changed; rm", "git", "git", true],
  ["git log \\\n  --oneline", "git", "git", true],
  ["git status 2>&1", "git", "git", true],
  ["git status >/dev/null 2>&1", "git", "git", true],
  ["git log --oneline < fix.patch", "git", "git", true],
  ["git apply < fix.patch", "git", undefined, false],
  ["git status &", "git", "git", true],
  ["(git status)", "git", "git", true],
  ["git log --grep 'naïve 😀'", "git", "git", true],
  ['"git" status', "git", "git", true],
  ["g\\it status", "git", "git", true],
  // other programs
  ["gitevil", "gitevil", undefined, false],
  ["gitevil status", "gitevil", undefined, false],
  ["git-evil status", "git-evil", undefined, false],
  ["ls -la", "ls", "ls", false],
  ["./git status", "./git", undefined, false],
  ["/usr/bin/git status", "/usr/bin/git", undefined, false],
  ["~/bin/git status", "~/bin/git", undefined, false],
  ["'git status'", "git status", undefined, false],
  ["git\\ status", "git status", undefined, false],
  ["GIT status", "GIT", undefined, false],
  // compounds
  ["git status; rm -rf x", "git rm", undefined, false],
  ["git status && x", "git x", undefined, false],
  ["git status || x", "git x", undefined, false],
  ["git status | x", "git x", undefined, false],
  ["git status |& x", "git x", undefined, false],
  ["git status & x", "git x", undefined, false],
  ["git status\nx", "git x", undefined, false],
  ["git status && git log", "git git", undefined, true],
  ["git log | git shortlog", "git git", undefined, true],
  ["git diff;\n\ngit status\n", "git git", undefined, true],
  ["(git fetch; x)", "git x", undefined, false],
  ["git status; (cd x && (rm y))", "git cd rm", undefined, false],
  // substitutions and expansions
  ["git $(x)", "x git", undefined, false],
  ["git `x`", "x git", undefined, false],
  ['git commit -m "$(x)"', "x git", undefined, false],
  ['git commit -m "`x`"', "x git", undefined, false],
  ["git log --grep '$(x)'", "git", "git", true],
  ["git log --grep \\$x", "git", "git", true],
  ["git $(git rev-parse HEAD)", "git git", undefined, false],
  ["git $(x; y | z)", "x y z git", undefined, false],
  ["git $(x $(y))", "y x git", undefined, false],
  ["git $X", "git", undefined, false],
  ['git "$X"', "git", undefined, false],
  ["git ${X:-status}", "git", undefined, false],
  ["git log -$((1+2))", "git", undefined, false],
  ["git grep foo$ src", "git", "git", true],
  ["$X status", "$X", undefined, false],
  ["${X}git status", "${X}git", undefined, false],
  ["g$X status", "g$X", undefined, false],
  ["gi? status", "gi?", undefined, false],
  ["git *", "git", undefined, false],
  ["git add *.ts", "git", undefined, false],
  ["git add -*", "git", undefined, false],
  ["git {push,status}", "git", undefined, false],
  ["{git,status}", "{git,status}", undefined, false],
  ["git log ~root/x", "git", undefined, false],
  // assignments
  ["GIT_SSH_COMMAND=x git fetch", "git", undefined, false],
  ["PATH=. git status", "git", undefined, false],
  ["A=1 B=2 git status", "git", undefined, false],
  ["X=1", "", undefined, false],
  // redirections
  ["git status > ~/.bashrc", "git", undefined, false],
  ["git status >> log", "git", undefined, false],
  ["git status >| log", "git", undefined, false],
  ["git status &> log", "git", undefined, false],
  ["git status >& log", "git", undefined, false],
  ["git status 2> log", "git", undefined, false],
  ["> log git status", "git", undefined, false],
  ["git <> log", "git", undefined, false],
  ["git apply < /dev/tcp/1.2.3.4/80", "git", undefined, false],
  ["git apply < $X", "git", undefined, false],
  ["> log", "", undefined, false],
  // git that runs others
  ["git -c core.pager=x log", "git", undefined, false],
  ["git -ccore.pager=x log", "git", undefined, false],
  ["git --exec-path=. status", "git", undefined, false],
  ["git --config-env=core.pager=X log", "git", undefined, false],
  ["git -C ../evil status", "git", undefined, false],
  ["git --git-dir=evil status", "git", undefined, false],
  ["git --no-pager log", "git", "git", true],
  ["git foo", "git", undefined, false],
  ["git config core.pager x", "git", undefined, false],
  ["git rebase main", "git", undefined, false],
  ["git rebase --exec x main", "git", undefined, false],
  ["git rebase -ix x", "git", undefined, false],
  ["git fetch --upload-pack=x", "git", undefined, false],
  ["git fetch --upload-p x", "git", undefined, false],
  ["git push -u origin main", "git", undefined, false],
  ["git clone -u x y", "git", undefined, false],
  ["git clone ext::x", "git", undefined, false],
  ["git clone https://example.com/a.git", "git", undefined, false],
  ["git grep -O x", "git", undefined, false],
  ["git grep -nOx y", "git", undefined, false],
  ["git log --output=/tmp/x", "git", undefined, false],
  ["git bisect run x", "git", undefined, false],
  ["git submodule foreach x", "git", undefined, false],
  ["git difftool -x y", "git", undefined, false],
  // programs that run programs
  ["bash -c 'git status'", "bash", undefined, false],
  ["sudo git status", "sudo", undefined, false],
  ["env git status", "env", undefined, false],
  ["xargs git", "xargs", undefined, false],
  ["find . -name x", "find", "find", false],
  ["find . -exec rm {} \\;", "find", undefined, false],
  ["find . -delete", "find", undefined, false],
  ["npx git", "npx", undefined, false],
  ["python3.12 -c x", "python3.12", undefined, false],
  ["node -e x", "node", undefined, false],
  ["awk '{system(\"x\")}'", "awk", undefined, false],
  ["make all", "make", undefined, false],
  ["eval git status", "eval", undefined, false],
  [". ./env.sh", ".", undefined, false],
  ["cd sub", "cd", undefined, true],
  ["BASH -c x", "BASH", undefined, false],
  ["timeout 5 git status", "timeout", undefined, false],
  ["[ -f x ]", "[", undefined, false],
  // structures: each command in them is one of the line
  ["if true; then git status; fi", "true git", undefined, false],
  [
    "if git diff --quiet; then git log; elif git status; then git show\nelse git tag -l; fi",
    "git git git git git",
    undefined,
    true
  ],
  ["if git log; then x; fi", "git x", undefined, false],
  ["while git log; do git show; done", "git git", undefined, true],
  ["until git log; do rm x; done", "git rm", undefined, false],
  ["while x; do y; done | z", "x y z", undefined, false],
  ["for f in a; do git add $f; done", "git", undefined, false],
  ["for f in a; do git status; done", "git", undefined, false],
  ["for f in $(x); do y; done", "x y", undefined, false],
  ["for f\ndo\n  x # in a; done\ndone", "x", undefined, false],
  ["for ((i = 0; i < 3; i++)); do x; done", "x", undefined, false],
  ["case $x in a | 'b c') git log;; (*.ts) rm x;; *) esac", "git rm", undefined, false],
  ["case x in a) git log\nesac", "git", "git", true],
  ["{ git status; }", "git", "git", true],
  ["{ git status; rm x; } 2>&1", "git rm", undefined, false],
  ["! git status", "git", "git", true],
  ["! rm x", "rm", undefined, false],
  ["[[ -f x ]]", "[[", undefined, false],
  ["[[ $(x) == a* && -d b ]] || y", "x [[ y", undefined, false],
  ["((i++)); x", "(( x", undefined, false],
  ["a=(1 2)", "", undefined, false],
  ["a=(1 $(x)\n  3)", "x ", undefined, false],
  ["git log <<EOF\nx\nEOF", "git", "git", true],
  ["git apply <<EOF\nx\nEOF", "git", undefined, false],
  ["git log <<'E' && x\n$(y) `z`\nE\nrm", "git x rm", undefined, false],
  ["git log <<-E\n\t$(y)\n\tE\n", "git y", undefined, false],
  ["git commit -F - <<A <<B\n`x`\nA\n\\$(y)\nB", "git x", undefined, false],
  ["git commit -m \"$(cat <<'EOF'\nit's (x); rm y\nEOF\n)\"", "cat git", undefined, false],
  ["git apply <<< x", "git", undefined, false],
  ["git log <<< $(x)", "x git", undefined, false],
  ["git diff <(x) <(y)", "x y git", undefined, false],
  ["git log > >(x)", "x git", undefined, false],
  ["while x; do y; done < <(z)", "x y z", undefined, false],
  ["git commit -m $'a\\nb'", "git", undefined, false],
  ["$'git' log", "$'git'", undefined, false],
  ["git $(($(x) + ${#a}))", "x git", undefined, false],
  ["git ${X:-$(x)} ${Y%/*} ${Z//\\//$(y)}", "x y git", undefined, false],
  ['git ${X:-`x`} "${A[$i]}"', "x git", undefined, false],
  // refused
  ["", undefined, undefined, false],
  ["# only a comment", undefined, undefined, false],
  ["git status &&", undefined, undefined, false],
  ["| git status", undefined, undefined, false],
  ["git status ;; x", undefined, undefined, false],
  ["git() { rm x; }", undefined, undefined, false],
  ["function git { rm x; }", undefined, undefined, false],
  ["a=() { rm x; }", undefined, undefined, false],
  ["select x in a; do y; done", undefined, undefined, false],
  ["coproc x", undefined, undefined, false],
  ["time { x; }", undefined, undefined, false],
  ["time -p ! x", undefined, undefined, false],
  ["if x; then y", undefined, undefined, false],
  ["if x; then; fi", undefined, undefined, false],
  ["if x; fi", undefined, undefined, false],
  ["if (x) then y; fi", undefined, undefined, false],
  ["for x in a & do y; done", undefined, undefined, false],
  ["for x in a; do y; fi", undefined, undefined, false],
  ["for x in a; { y; }", undefined, undefined, false],
  ["case x in a) y;& esac", undefined, undefined, false],
  ["case x in a) y;;", undefined, undefined, false],
  ["git $(case x in x) y;; esac)", undefined, undefined, false],
  ["{ x }", undefined, undefined, false],
  ["x; }", undefined, undefined, false],
  ["[[ -f x", undefined, undefined, false],
  ["[[ a < b ]]", undefined, undefined, false],
  ["[[ a > b ]]", undefined, undefined, false],
  ["[[ a =~ (b) ]]", undefined, undefined, false],
  ["[[ a || x ]]", undefined, undefined, false],
  ["! [[ a && x ]]", undefined, undefined, false],
  ["! a | [[ b && x ]]", undefined, undefined, false],
  ["a || [[ b && x ]]", undefined, undefined, false],
  ["! { [[ b && x ]]; }", undefined, undefined, false],
  ["a=(1) x", undefined, undefined, false],
  ["a=(1; x)", undefined, undefined, false],
  ["cat <<E\nx", undefined, undefined, false],
  ["cat <<E x; y", undefined, undefined, false],
  ["cat <<E\nx\\\nE\nE", undefined, undefined, false],
  ["cat <<$X\nx\n$X", undefined, undefined, false],
  ["cat <<E 'a\nb'\nE", undefined, undefined, false],
  ["cat <<E $(x\ny)\nE\n", undefined, undefined, false],
  ["cat <<E\n$(x\nE\ny)", undefined, undefined, false],
  ["git $(cat <<E\nx\nE)\nE\n)", undefined, undefined, false],
  ["git a<(x)", undefined, undefined, false],
  ["git <(x)b", undefined, undefined, false],
  ["<(x) a", undefined, undefined, false],
  ["git $'a\\'b'", undefined, undefined, false],
  ["git ${X@P}", undefined, undefined, false],
  ["git \"${X:-'}'}\"", undefined, undefined, false],
  ["git ${X:-{a}}", undefined, undefined, false],
  ["((x))", undefined, undefined, false],
  ['git commit -m $"a"', undefined, undefined, false],
  ["git $[1+1]", undefined, undefined, false],
  ["git commit -m 'a", undefined, undefined, false],
  ['git commit -m "a', undefined, undefined, false],
  ["git `x", undefined, undefined, false],
  ["git `x \\`y\\``", undefined, undefined, false],
  ["git $(x", undefined, undefined, false],
  ["git x)", undefined, undefined, false],
  ["()", undefined, undefined, false],
  ["git \\", undefined, undefined, false],
  ["git sta\\\ntus", undefined, undefined, false],
  ["git &\\\n& x", undefined, undefined, false],
  ['git "$\\\n(x)"', undefined, undefined, false],
  ["git $((1)+(x))", undefined, undefined, false],
  ["git $((x)&&(y))", undefined, undefined, false],
  ["git log &>/dev/null rm x", undefined, undefined, false],
  ["git log &>/dev/null", "git", "git", true],
  ["git >", undefined, undefined, false],
  ["git status\r\nrm x", undefined, undefined, false],
  ["git status\u0000", undefined, undefined, false],
  ["git status\u001b[2J", undefined, undefined, false],
  ["git\u00a0status", undefined, undefined, false],
  ["git\u2028rm x", undefined, undefined, false],
  ["git \ud800", undefined, undefined, false]
]

describe("a command is taken apart", () => {
  it.each(table)("%j", (text, found, program, covered) => {
    assert.deepStrictEqual(programs(text), found === undefined ? undefined : found === "" ? [""] : split(text, found))
    const entry = CommandLine.remembered(text)
    assert.strictEqual(entry._tag === "Program" ? entry.program : undefined, program)
    assert.strictEqual(CommandLine.covers(git, text), covered)
    assert.isTrue(CommandLine.covers(entry, text))
    assert.deepStrictEqual(CommandLine.parseRemembered(CommandLine.formatRemembered(entry)), entry)
  })

  it("keeps words without their quotes and the source of each command", () => {
    assert.deepStrictEqual(parsed(`A="b c" git commit -m 'it''s' "x \\"y\\" \\n" z\\ 1 2>&1 | tee "out put" > $LOG`), {
      text: `A="b c" git commit -m 'it''s' "x \\"y\\" \\n" z\\ 1 2>&1 | tee "out put" > $LOG`,
      compound: true,
      loops: false,
      sets: [],
      commands: [
        {
          program: "git",
          words: ["git", "commit", "-m", "its", 'x "y" \\n', "z 1"],
          sources: ["git", "commit", "-m", "'it''s'", `"x \\"y\\" \\n"`, "z\\ 1"],
          text: `A="b c" git commit -m 'it''s' "x \\"y\\" \\n" z\\ 1`,
          dynamic: false,
          unknown: [],
          globs: [],
          named: true,
          fed: false,
          assignments: ["A=b c"]
        },
        {
          program: "tee",
          words: ["tee", "out put"],
          sources: ["tee", `"out put"`],
          text: `tee "out put"`,
          dynamic: true,
          unknown: [],
          globs: [],
          named: true,
          fed: true,
          assignments: []
        }
      ],
      redirects: [
        { operator: "2>&", target: "1" },
        { operator: ">", target: "$LOG" }
      ]
    })
  })

  it("knows a program behind a quoted expansion by its last part, and no other", () => {
    const named = (text: string) => parsed(text).commands.at(-1)?.named
    assert.isTrue(named('"$HOME/bin/tool" x'))
    assert.isFalse(named("$HOME/bin/tool x"))
    assert.isFalse(named('"$HOME" x'))
    assert.isFalse(named('"$@/tool" x'))
    assert.isFalse(named("/bin/r? x"))
    assert.isTrue(named("/opt/*/tool x"))
    assert.isFalse(named("{a,b}/tool x"))
  })

  it("says what it could not read and where", () => {
    const error = Either.flip(CommandLine.parse("git log; select x in y; do z; done")).pipe(Either.getOrThrow)
    assert.strictEqual(
      error.message,
      "The command cannot be taken apart: a control structure (select) (at character 10). Write it as simple commands."
    )
  })

  it("refuses what is too long or nested too deeply, quickly", () => {
    assert.isTrue(Either.isLeft(CommandLine.parse(`git ${"x".repeat(20_000)}`)))
    assert.isTrue(Either.isLeft(CommandLine.parse(`${"$(".repeat(5000)}x${")".repeat(5000)}`)))
    assert.isTrue(Either.isLeft(CommandLine.parse("`".repeat(60_000))))
    assert.isTrue(Either.isRight(CommandLine.parse(`git ${" ".repeat(19_000)} x`)))
  })

  it("never throws and never hangs on noise", () => {
    const pieces = fc.constantFrom(
      ..."git rm ; & && | || ( ) { } < > >> << 2>&1 $ $( $(( ${ ` ' \" \\ \n \t # * ? [ ] ~ = A=b -c if fi ! \u0000 é 😀 \ud800".split(
        " "
      ),
      " "
    )
    const noise = fc.oneof(
      fc.array(pieces, { maxLength: 24 }).map((parts) => parts.join("")),
      fc.string({ unit: "binary", maxLength: 40 })
    )
    fc.assert(
      fc.property(noise, (text) => {
        const line = CommandLine.parse(text)
        if (Either.isRight(line)) assert.isAbove(line.right.commands.length, 0)
        const entry = CommandLine.remembered(text)
        assert.isTrue(CommandLine.covers(entry, text))
        CommandLine.startedBy(text, Either.getOrUndefined(line))
      }),
      { numRuns: Runs.of(40_000) }
    )
  })
})

it.scopedLive("a real shell runs no program that was not found", () =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const root = yield* fs.makeTempDirectoryScoped()
    for (const directory of ["bin", "cwd", "log"]) yield* fs.makeDirectory(`${root}/${directory}`)
    const stubs = ["git", "rm", "x"]
    for (const name of stubs) {
      yield* fs.writeFileString(`${root}/bin/${name}`, `#!/bin/sh\necho ${name} >> "$LOG"\n`)
      yield* fs.chmod(`${root}/bin/${name}`, 0o755)
    }
    const pieces = fc.constantFrom(
      ...`git¦rm¦x¦; ¦&¦&&¦|¦||¦(¦)¦<¦>¦2>&1¦&>¦|&¦#¦*¦{¦}¦,¦~¦A=¦[¦!¦ ¦ ¦ ¦ ¦if ¦/¦1¦\n¦'¦"¦'a b'`.split("¦"),
      ...String.raw`\¦$¦$(¦$(x)¦"$(rm)"¦$X¦$'¦$((¦))`.split("¦"),
      "${X}",
      "`rm`",
      "\\\n"
    )
    const texts = fc
      .sample(
        fc.array(pieces, { minLength: 2, maxLength: 12 }).map((parts) => parts.join("")),
        4000
      )
      .filter((text) => Either.isRight(CommandLine.parse(text)))
      .slice(0, 250)
    assert.isAbove(texts.length, 100)
    const check = (text: string, i: number) =>
      Effect.gen(function* () {
        const log = `${root}/log/${i}`
        yield* Command.make("/bin/sh", "-c", `${text}\nwait`).pipe(
          Command.workingDirectory(`${root}/cwd`),
          Command.env({ PATH: `${root}/bin`, HOME: `${root}/cwd`, LOG: log }),
          Command.exitCode
        )
        const ran = (yield* Effect.orElseSucceed(fs.readFileString(log), () => ""))
          .split("\n")
          .filter((name) => name !== "")
        const { commands } = parsed(text)
        const known = commands.map((command) => command.program.replace(/^.*\//, ""))
        const foreign = commands.every((command) => command.named) ? ran.filter((name) => !known.includes(name)) : []
        assert.deepStrictEqual(foreign, [], text)
        if (CommandLine.covers(git, text))
          assert.deepStrictEqual(
            ran.filter((name) => name !== "git"),
            [],
            text
          )
      })
    yield* Effect.forEach(texts, check, { concurrency: 4, discard: true })
  }).pipe(Effect.provide(NodeContext.layer))
)

describe("what always remembers", () => {
  it("has a text form that cannot be taken for another", () => {
    const form = (text: string) => CommandLine.formatRemembered(CommandLine.remembered(text))
    const texts = ["git log", "bash run.sh", "bash", "rm *", "$ x", "a\nb", "(reading) git *", "(reading) x y"]
    assert.deepStrictEqual(texts.map(form), [
      "(reading) git *",
      "bash run.sh",
      "$ bash",
      "$ rm *",
      "$ $ x",
      "a\nb",
      "$ (reading) git *",
      "$ (reading) x y"
    ])
  })

  it("is said as a person would say it", () => {
    const said = (text: string, cwd = "") =>
      RememberedText.describe(CommandLine.formatRemembered({ ...CommandLine.remembered(text), cwd }))
    assert.deepStrictEqual(
      ["echo hi", "npm test", "bash", "rm *", "$ x"].map((text) => said(text)),
      ["echo commands that only read", "exactly `npm test`", "exactly `bash`", "exactly `rm *`", "exactly `$ x`"]
    )
    assert.strictEqual(said("git log", "web"), 'git commands that only read, in "web"')
    assert.strictEqual(said("npm test", "a b"), 'exactly `npm test`, in "a b"')
    for (const pattern of ["git *", "read_file", "git*"]) assert.isUndefined(RememberedText.describe(pattern))
  })

  it("round-trips for every text", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "git *",
        "(reading) git *",
        "(reading) x y",
        "$ git *",
        "$ ",
        "",
        " x ",
        "x *",
        "a b",
        "?",
        "$ $ x",
        "git  *"
      )
    )
    fc.assert(
      fc.property(text, (command) => {
        for (const entry of [
          { _tag: "Exact", command, cwd: "" } as const,
          { _tag: "Exact", command, cwd: command } as const,
          CommandLine.remembered(command)
        ]) {
          assert.deepStrictEqual({ ...CommandLine.parseRemembered(CommandLine.formatRemembered(entry)) }, { ...entry })
        }
      })
    )
  })

  it("covers a decorated or compound command only when every part is covered", () => {
    const part = fc.constantFrom(
      "git status",
      "git log -3",
      "rm -rf x",
      "ls",
      "gitx",
      "git -c a=b log",
      "./git log",
      "bash -c git"
    )
    const joint = fc.constantFrom("; ", " && ", " || ", " | ", "\n", " & ", ";", "&&", "|", " ;\n")
    const wrap = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => `(${text})`,
      (text) => ` ${text} `,
      (text) => `${text} 2>&1`,
      (text) => `( ${text} ) 2>/dev/null`
    )
    const good = (text: string) => text === "git status" || text === "git log -3"
    const line = fc.tuple(
      fc.array(fc.tuple(part, wrap), { minLength: 1, maxLength: 5 }),
      fc.array(joint, { minLength: 5, maxLength: 5 })
    )
    fc.assert(
      fc.property(line, ([parts, joints]) => {
        const text = parts.map(([command, around], i) => (i === 0 ? "" : joints[i]) + around(command)).join("")
        assert.strictEqual(
          CommandLine.covers(git, text),
          parts.every(([command]) => good(command)),
          text
        )
      }),
      { numRuns: Runs.of(2000) }
    )
  })

  it("covers nothing that carries another program in any disguise", () => {
    const inject = fc.constantFrom(
      "; X",
      "&& X",
      "| X",
      "\nX",
      "& X",
      "$(X)",
      "`X`",
      '"$(X)"',
      '"`X`"',
      "> f",
      ">> f",
      "&>f",
      "2>f",
      "<(X)",
      ">(X)",
      "<<< $(X)",
      "|| X",
      "\\\n; X",
      "\r\nX",
      "$X",
      "${X}",
      "*",
      "{X,y}",
      "$((X))",
      "$'X'",
      "-c X",
      "--exec-path=X",
      "&\nX",
      "#\nX"
    )
    const at = fc.constantFrom(
      (x: string) => `git ${x} status`,
      (x: string) => `git log ${x}`,
      (x: string) => `git ${x}`,
      (x: string) => `git log --x="a" ${x} b`
    )
    fc.assert(
      fc.property(inject, at, (what, place) => {
        const text = place(what)
        // After the subcommand `-c` is an option of the subcommand.
        fc.pre(!(what.startsWith("-") && text.startsWith("git log")))
        assert.isFalse(CommandLine.covers(git, text), text)
      }),
      { numRuns: Runs.of(500) }
    )
  })
})

describe("what never remembers", () => {
  const rm: CommandLine.Remembered = { _tag: "Program", program: "rm", cwd: "" }

  it.each([
    "rm x",
    "ls; rm x",
    "ls && (rm x)",
    "ls $(rm x)",
    "ls `rm x`",
    "/bin/rm x",
    "'rm' x",
    "\\rm x",
    "A=1 rm x",
    "sudo rm x",
    "env A=1 rm x",
    "xargs rm",
    "find . -exec rm {} +",
    "bash -c 'rm x'",
    `bash -c "bash -c 'rm x'"`,
    "sh -c 'ls; rm x'",
    "if true; then rm x; fi",
    "for f in a; do rm $f; done",
    "{ rm x; }",
    "f() { rm x; }",
    "! rm x",
    "cat <<E\nE\nrm x",
    "echo $'a'; rm x",
    "case x in x) rm y;; esac",
    "RM x",
    "r\\\nm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "while rm x; do y; done",
    "'r''m' x; (",
    "eval 'rm x'",
    "{ rm x; } > f"
  ])("finds the program in %j", (text) => assert.isTrue(CommandLine.touches(rm, text)))

  it.each([
    "ls rm",
    "rmdir x",
    "git rm x",
    "echo 'rm x'",
    "git commit -m 'rm; x'",
    "cat <<E\nnever do rm x\nE",
    "npm-rm x"
  ])("does not see it in %j", (text) => assert.isFalse(CommandLine.touches(rm, text)))

  it("finds an exact command as one part of another", () => {
    const entry = CommandLine.remembered("bash deploy.sh")
    assert.isTrue(CommandLine.touches(entry, " bash deploy.sh\n"))
    assert.isTrue(CommandLine.touches(entry, "true && bash deploy.sh"))
    assert.isFalse(CommandLine.touches(entry, "bash deploy.sh now"))
  })
})

// A quoted space keeps a program's name together.
const split = (text: string, found: string): ReadonlyArray<string> =>
  /^(?:'git status'|git\\ status)$/.test(text) ? [found] : found.split(" ")
