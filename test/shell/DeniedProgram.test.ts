/** With `rm *` denied, no line that would run `rm` is let through: it is denied, or a person is asked. */
import { assert, describe, it } from "@effect/vitest"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "../kit/Commands.js"

const deny = PermissionRule.compile({ tools: [], patterns: ["rm *"], arguments: [] })

const stops = (text: string): boolean => {
  const subject = PermissionRule.subject({ tool: "run_command", params: { command: text }, commandField })
  return PermissionRule.denies(deny, subject) !== undefined || PermissionRule.doubt(deny, subject) !== undefined
}

describe("a denied program", () => {
  it.each([
    "r''m x",
    "$'\\x72m' x",
    '$"rm" x',
    "${X:=rm} x",
    "r$()m x",
    "{r,}m x",
    "X=rm; $X x",
    "set -- rm x; $*",
    "a=(rm x); ${a[@]}",
    "f() { rm x; }; f",
    "coproc rm x",
    "case a in a) rm x;; esac",
    "trap 'rm x' EXIT",
    "rm<x",
    ">y rm x",
    "A[0]=1 rm x",
    "ls <(rm x)",
    "cat <<E\n$(rm x)\nE",
    "bash <<< 'rm x'",
    "echo rm x | xargs env",
    "echo cm0geA== | base64 -d | sh",
    "$0 -c 'rm x'",
    "$(which rm) x",
    "/bin/r? x",
    "bash -c '$0 x' rm",
    "mapfile -C 'rm x' -c 1 < a",
    "PS4='$(rm x)' bash -xc :",
    "BASH_ENV=./x bash -c :",
    "hash -p /bin/rm z; z x",
    "jobs -x rm x",
    "jobs -lx rm %1",
    "jobs $X",
    "zsh -fc '=rm x'"
  ])("is found however it is spelled: %j", (text) => assert.isTrue(stops(text)))

  it.each([
    "a='b[$(rm x)]'; let a",
    "a='b[$(rm x)]'; echo $((a))",
    "a='b[$(rm x)]'; declare -i n=a",
    "x=abc; a='b[$(rm x)]'; : ${x:a}",
    "x=abc; a='b[$(rm x)]'; : ${x:0:a}",
    "x=1; a='b[$(rm x)]'; : ${x[a]}",
    "ls & wait -n -p 'b[$(rm x)]'",
    "ls & wait -np'b[$(rm x)]'",
    'ls & wait -p "$a"',
    "a='-pb[$(rm x)]'; ls & wait $a",
    "exit 'b[$(rm x)]'",
    "shift 'b[`rm x`]'",
    "a='$(rm x)'; echo ${a@P}",
    "a='$(rm x)'; echo \"${a@P}\""
  ])("is not run by a computation: %j", (text) => assert.isTrue(stops(text)))

  it.each([
    "logsave y rm x",
    "setarch x86_64 rm x",
    "linux64 rm x",
    "capsh -- -c 'rm x'",
    "sg root 'rm x'",
    "eatmydata rm x",
    "pee 'rm x' < a",
    "fzf --preview 'rm x'",
    "fzf --bind 'start:execute(rm x)'",
    "bat --pager='rm x' a",
    "yt-dlp --exec 'rm x' y",
    "aria2c --on-download-complete=rm x",
    "c99 -wrapper rm x",
    "install -s --strip-program=rm a y",
    "someday-invented rm x",
    "someday-invented sh -c 'rm x'",
    "env someday-invented 'rm x'"
  ])("is found behind a program that nobody knows: %j", (text) => assert.isTrue(stops(text)))

  it.each([
    "echo 'rm x' > y; sh y",
    "echo 'rm x' > ./y; . y",
    "echo 'rm x' > y && chmod +x y && ./y",
    "cat x | tee y; bash ./y",
    "cp /bin/rm z; ./z x",
    "ln -s /bin/rm z && ./z x",
    "python3 gen.py > y.py; python3 y.py"
  ])("is not run from a file that the same line writes: %j", (text) => assert.isTrue(stops(text)))

  it.each([
    "echo rm x",
    "grep -rn 'rm x' src",
    "cat rm",
    "git rm x",
    "npm test > log; cat log",
    "node build.js > out.txt && node check.js",
    "x=abcdef; echo ${x:2}",
    "x=abc; echo ${x:-n}",
    "i=1; echo $((i + 1))",
    "cp a b && ./run.sh",
    "cat <<E\nnever do rm x\nE",
    "rustc a.rs -o rm.o",
    "npm start & pid=$!; npm test; kill $pid; wait $pid",
    "npm start & wait $!",
    "jobs -l; wait; exit 1"
  ])("is not seen in %j", (text) => {
    const subject = PermissionRule.subject({ tool: "run_command", params: { command: text }, commandField })
    if (!text.includes("<<")) assert.isUndefined(PermissionRule.doubt(deny, subject))
    assert.isUndefined(PermissionRule.denies(deny, subject))
  })

  const words = PermissionRule.compile({ tools: [], patterns: ["kill 1", "kill 12"], arguments: [] })
  const both = PermissionRule.compile({ tools: [], patterns: ["kill"], arguments: [] })
  it.each([
    ["kill 1&>/dev/null", true],
    ["kill 12>&1", true],
    ["kill 12>/dev/null", true],
    ["kill 2>&1", false]
  ])("gets as a word what is no descriptor to some shell: %j", (command, isWord) => {
    const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
    const isStopped =
      PermissionRule.denies(words, subject) !== undefined || PermissionRule.doubt(words, subject) !== undefined
    assert.strictEqual(isStopped, isWord)
    assert.strictEqual(PermissionRule.allows(both, subject) === undefined, isWord)
  })
})
