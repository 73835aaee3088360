/** What is remembered of a command, in words: they say what the rule does, to allow and to deny. */
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as CommandLine from "../../src/shell/CommandLine.js"
import * as CommandPattern from "../../src/shell/CommandPattern.js"
import * as Location from "../../src/shell/Location.js"
import * as ProgramRun from "../../src/shell/ProgramRun.js"
import * as RememberedText from "../../src/shell/RememberedText.js"
import * as Runs from "../kit/Runs.js"

describe("what always and never remember", () => {
  it("is said of a rule that needed several, by the entries that there are", () => {
    assert.strictEqual(RememberedText.describe("(reading) git *", "deny"), "every git command")
    assert.strictEqual(RememberedText.describe('(in "web") npm test', "deny"), "`npm test`, also inside a longer one")
    const rule = "a + b + (reading) git * + npm test"
    const words = "exactly `a + b` + git commands that only read + exactly `npm test`"
    assert.strictEqual(RememberedText.ofRule(rule, ["npm test", "(reading) git *", "a + b", "a"], "allow"), words)
    assert.strictEqual(RememberedText.ofRule(rule, ["npm test"], "allow"), rule)
  })

  it("is said as it holds: no command is allowed or denied that the words do not name", () => {
    const one = fc.constantFrom(
      ...["git log", "git push", "git", "ls", "ls -l a", "make", "make all", "cat f", "npm test", "npm", "sort -o x y"],
      ...["find . -delete", "bash", "sh -c 'git log'", "rm *", "echo hi > f", "GIT log", "awk 1"]
    )
    const around = fc.constantFrom<(command: string) => string>(
      ...[(c: string) => c, (c: string) => `${c} && ${c}`, (c: string) => `${c}; rm -rf x`, (c: string) => `sudo ${c}`],
      ...[
        (c: string) => `/usr/bin/${c}`,
        (c: string) => `A=1 ${c}`,
        (c: string) => `${c} 2>&1`,
        (c: string) => `${c} >f`
      ],
      ...[
        (c: string) => `bash -c '${c}'`,
        (c: string) => `(${c})`,
        (c: string) => `echo $(${c})`,
        (c: string) => `${c} |${c}`
      ],
      ...[(c: string) => `\\${c}`, (c: string) => c.replaceAll(" ", "  "), (c: string) => c.replace("t", "\\t")],
      ...[(c: string) => `cd web && ${c}`, (c: string) => `${c} &`, (c: string) => `env ${c}`, (c: string) => `! ${c}`]
    )
    const entry = fc.oneof(
      one.map((command) => CommandLine.formatRemembered(CommandLine.remembered(command))),
      fc.constantFrom("(reading) make *", "(reading) bash *", "(reading) npm *", "(reading) awk *", "(reading) git *")
    )
    let checked = 0
    fc.assert(
      fc.property(entry, one, fc.array(around, { maxLength: 2 }), (text, command, wrapping) => {
        const remembered = CommandLine.parseRemembered(text)
        const given = wrapping.reduce((inner, wrap) => wrap(inner), command)
        const line = Either.getOrUndefined(CommandLine.parse(given))
        const allow = RememberedText.describe(text, "allow") ?? ""
        const deny = RememberedText.describe(text, "deny") ?? ""
        if (CommandLine.covers(remembered, given)) {
          checked++
          const [, program] = /^(.*) commands that only read$/.exec(allow) ?? []
          const runs = line === undefined ? [] : (ProgramRun.ofLine(line, Location.directory("")) ?? [])
          if (program === undefined) {
            const [, exact] = /^exactly `(.*)`$/.exec(allow) ?? []
            assert.isTrue(
              given === exact ||
                runs.every(
                  ({ assignments, text, words }) => text === exact || [...assignments, ...words].join(" ") === exact
                ),
              `${allow}: ${given}`
            )
          } else
            for (const run of runs) {
              assert.strictEqual(run.words[0], program, given)
              assert.isDefined(CommandPattern.harmless("").covers(run), `${allow}: ${given}`)
            }
        }
        if (CommandLine.touches(remembered, given)) {
          const [, program] = /^every (.*) command$/.exec(deny) ?? []
          const [, exact = program ?? ""] = /^`(.*)`, also inside a longer one$/.exec(deny) ?? []
          const said = CommandPattern.normal(given.replaceAll("\\", "")).toLowerCase()
          assert.include(said, exact.replaceAll("'", "").slice(0, 3).toLowerCase(), `${deny}: ${given}`)
          if (!deny.startsWith("every")) assert.notInclude(deny, "only read")
        }
      }),
      { numRuns: Runs.of(20_000) }
    )
    assert.isAbove(checked, Runs.of(100))
  })
})
