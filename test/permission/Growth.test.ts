import { assert, describe, it } from "@effect/vitest"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "../kit/Commands.js"
import * as Computation from "../kit/Computation.js"

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
  const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
  PermissionRule.denies(deny, subject)
  PermissionRule.doubt(deny, subject)
  PermissionRule.allows(allow, subject)
  PermissionRule.reads(subject)
  PermissionRule.entriesAllow(session, subject)
  for (const entry of session) PermissionRule.entryMatches(entry, subject, "deny")
  PermissionRule.rememberKey(subject)
}

const timeOf = (command: string): number => {
  const computed = Computation.begin()
  work(command)
  return computed()
}

/** A beginning, what is repeated, an end. Each `%n` is another number. */
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

/** Nothing in these is a repetition, so that nothing can be skipped because it was seen before. */
const various: ReadonlyArray<Shape> = [
  ["", "a%n ", ""],
  ["", "a%n;", ""],
  ["", "a%n|", ""],
  ["", "$(a%n) ", ""],
  ["", "<<E%n ", ""],
  ["", "if a%n;", ""],
  ["", ">f%n ", ""],
  ["", "A%n=1 ", "a"],
  ["", "PAGER='a %n' ", "a"],
  ["env ", "a%n ", ""],
  ["env ", "/a/b%n ", ""],
  ["env ", "'a;b%n' ", ""],
  ["env ", "\"env 'a b%n'\" ", ""],
  ["env ", "git -c a%n config x y ", ""],
  ["env ", "git config --get a%n ", ""],
  ["env ", "cd -P -L a%n ", ""],
  ["env ", "env%n -c 'a b%n' ", ""],
  ["npm ", "-c 'a b%n' ", ""],
  ["find . ", "-exec a%n {} \\; ", ""],
  ["find . ", "-exec env a%n {} + ", ""],
  ["find . ", "-exec sh -c 'a b%n' \\; ", ""],
  ["git rebase ", "-x 'a %n' ", ""],
  ["git ", "-c a.b%n=c ", "log"],
  ["git clone ", "-c a.b%n=c ", "x"],
  ["git submodule foreach ", "a%n ", ""],
  ["docker ", "sh%n ", ""],
  ["docker ", "sh -c 'a b%n' ", ""],
  ["make ", "A%n='a b' ", ""],
  ["alias ", "a%n='b c' ", ""],
  ["hyperfine ", "'a b%n' ", ""],
  ["python -c '", "x%n(1);", "'"],
  ["bash -c '", "a%n;", "'"],
  ["eval '", "$(a%n);", "'"],
  ["bash -c \"bash -c '", "a%n;", "'\""],
  ["xargs -I{} a ", "{}%n ", ""],
  ["tar ", "--to-command='x %n' ", ""],
  ["ssh h ", "'a b%n' ", ""]
]

const filled = ([begin, middle, end]: Shape, length: number): string => {
  const room = length - begin.length - end.length
  if (!middle.includes("%n")) return begin + middle.repeat(Math.max(1, Math.floor(room / middle.length))) + end
  const parts: Array<string> = []
  for (let n = 100_000, taken = 0; taken + middle.length + 8 < room; n++) {
    const part = middle.replaceAll("%n", `${n}`)
    parts.push(part)
    taken += part.length
  }
  return begin + parts.join("") + end
}

/**
 * The text is doubled three times: something linear takes eight times as long, something that grows with the square
 * sixty-four times. Measured until it is stable, because compiling and collecting garbage can only make it slower.
 */
const growth = (measure: (command: string) => number, shape: Shape): string | undefined => {
  const [small, large] = [filled(shape, 12_000), filled(shape, 96_000)]
  let few = Number.POSITIVE_INFINITY
  let many = Number.POSITIVE_INFINITY
  measure(small)
  for (let round = 0; round < 20; round++) {
    few = Math.min(few, measure(small))
    many = Math.min(many, measure(large))
    // A few milliseconds are too few to be measured.
    if (round >= 2 && (many < 24 * few || many < 8)) return undefined
  }
  return `${few.toFixed(1)} ms and ${many.toFixed(1)} ms`
}

describe("the time that rules take", () => {
  it.each([...shapes, ...around, ...various])("grows as the text does, whatever it is: %j %j %j", (...shape) => {
    assert.isUndefined(growth(timeOf, shape))
  })
})

describe("a command that is too long", () => {
  const sentence = (command: string) => PermissionRule.tooLong(commandField, { command })

  it("is more than 100,000 bytes, and is told what to do", () => {
    assert.isUndefined(sentence("a".repeat(100_000)))
    assert.include(sentence("a".repeat(100_001)), "100001 bytes long")
    assert.isUndefined(sentence("é".repeat(50_000)))
    assert.include(sentence("é".repeat(50_001)), "Write it into a file")
    assert.isUndefined(PermissionRule.tooLong(undefined, { command: "a".repeat(200_000) }))
  })
})
