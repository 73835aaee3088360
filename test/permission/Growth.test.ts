import { assert, describe, it } from "@effect/vitest"
import * as PermissionRule from "../../src/permission/PermissionRule.js"

const deny = PermissionRule.compile({
  tools: [],
  patterns: Array.from({ length: 60 }, (_, i) =>
    `${["tool#", "*x#y", "git p#", "rm -r#", "?a#", "a#*z*q"][i % 6]}*`.replace("#", `${i}`)
  ),
  arguments: Array.from({ length: 40 }, (_, i) => `--flag${i} a`)
})
const allow = PermissionRule.compile({
  tools: [],
  patterns: [...Array.from({ length: 99 }, (_, i) => `git x${i}*`), "git log*"],
  arguments: []
})
const session = ["git *", "npm run x", "rm *", "$ bash"]

/** Everything that is done with a command. */
const work = (command: string): void => {
  const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField: "command" })
  PermissionRule.denies(deny, subject)
  PermissionRule.doubt(deny, subject)
  PermissionRule.allows(allow, subject)
  PermissionRule.reads(subject)
  PermissionRule.entriesAllow(session, subject)
  for (const entry of session) PermissionRule.entryMatches(entry, subject, "deny")
  PermissionRule.rememberKey(subject)
}

const quickest = (command: string): number => {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3; i++) {
    const start = performance.now()
    work(command)
    best = Math.min(best, performance.now() - start)
  }
  return best
}

/** A beginning, what is repeated, an end. */
type Shape = readonly [begin: string, middle: string, end: string]

const shapes: ReadonlyArray<Shape> = [
  ...[
    "a",
    "a ",
    "a;",
    "a&&",
    "a|",
    "a\n",
    "a&",
    "'a'",
    '"a" ',
    "\\a",
    "a\\",
    "$(",
    "$(a) ",
    "`",
    "`a` ",
    "${",
    "${a} ",
    "${a:-"
  ],
  ...[
    "<",
    "< ",
    ">a ",
    "<<E ",
    "A=1 ",
    "(",
    "(a);",
    "*",
    "*a ",
    "{a,b}",
    "~a ",
    "#",
    "\u00a0",
    "é ",
    "\0",
    "if ",
    "=",
    ", ",
    "$"
  ],
  ...[
    "$a",
    "$'a'",
    "a() { b; };",
    "\t",
    "a\r",
    "<\t",
    "\\\n",
    "1",
    "1.",
    "git log a;",
    "a 'b' \"c\" $(d) >f 2>&1 | h && i; "
  ]
].map((middle): Shape => ["", middle, ""])

const around: ReadonlyArray<Shape> = [
  ["${", "-", ""],
  ["${", "a-", "$}"],
  ["$((", "1+", "1))"],
  ["$((", "(", ""],
  ["'", "a", ""],
  ['"', "a", '"'],
  ["a", " ", "b"],
  ["", "1", "x"],
  ["", "1.", "x"],
  ["A", "A", "=1"],
  ["rm ", "rm ", ""],
  ["env ", "env ", ""],
  ["env ", "rm ", ""],
  ["env ", "'a;b' ", ""],
  ["env ", "git -c a ", ""],
  ["env ", "--a=b ", ""],
  ["env ", "$x ", ""],
  ["sudo ", "/a/b/rm ", ""],
  ["sudo ", "/", ""],
  ["xargs ", "-n1 ", "ls"],
  ["git ", "-c a=b ", "log"],
  ["find . ", "-exec a {} \\; ", ""],
  ["find . -exec ", "-exec ", ""],
  ["watch ", "watch ", "ls"],
  ["bash -c '", "a;", "'"],
  ['bash -c "', "a 'b;c' ", '"'],
  ["cat ", "../", ""],
  ["git rebase ", "-x a ", ""],
  ["git ", "-c core.pager=x ", "log"],
  ["find ", "$x ", ""],
  ["A=b; find ", "$x ", ""],
  ["find . ", "-exec ls {} \\; ", ""],
  ["xargs -I{} a ", "{} ", ""],
  ["alias ", "a=b ", ""],
  ["make ", "A=b ", ""],
  ["ssh h ", "ssh h ", ""],
  ["hyperfine ", "'a b' ", ""],
  ["docker ", "sh ", ""],
  ["tar ", "--to-command=x ", ""],
  ["", "PAGER=x ", "a"],
  ["eval ", "eval ", ""],
  ["eval '", "a;", "'"],
  ["node -e '", "x(1);", "'"],
  ["npm ", "-c 'a b' ", ""],
  ["sed '", "s/a/b/;", "' f"],
  ["sed 'a", "\\x", "' f"],
  ["sed '", "[", "' f"],
  ["awk '", "{a/b/c}", "' f"],
  ["awk '", "/[", "' f"],
  ["awk '", "a_", "' f"]
]

const filled = ([begin, middle, end]: Shape, length: number): string =>
  begin + middle.repeat(Math.max(1, Math.floor((length - begin.length - end.length) / middle.length))) + end

describe("the time that rules take", () => {
  it.each([...shapes, ...around])("grows with the text, whatever it is: %j %j %j", (...shape) => {
    const small = filled(shape, 12_000)
    const large = filled(shape, 96_000)
    work(small)
    const few = quickest(small)
    const many = quickest(large)
    // Eight times the text. Something quadratic would take sixty-four times as long.
    assert.isTrue(many < 500 || many < 40 * few, `${few.toFixed(1)} ms and ${many.toFixed(1)} ms`)
  })
})

describe("a command that is too long", () => {
  const sentence = (command: string) => PermissionRule.tooLong("command", { command })

  it("is more than 100,000 bytes, and is told what to do", () => {
    assert.isUndefined(sentence("a".repeat(100_000)))
    assert.include(sentence("a".repeat(100_001)), "100001 bytes long")
    assert.isUndefined(sentence("é".repeat(50_000)))
    assert.include(sentence("é".repeat(50_001)), "Write it into a file")
    assert.isUndefined(PermissionRule.tooLong(undefined, { command: "a".repeat(200_000) }))
  })
})
