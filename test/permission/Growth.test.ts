import { assert, describe, it } from "@effect/vitest"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import { commandField } from "../kit/Commands.js"
import * as Computation from "../kit/Computation.js"
import { ses } from "../kit/gate.js"
import * as LongCommands from "../kit/LongCommands.js"

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

/**
 * The text is doubled three times: something linear takes eight times as long, something that grows with the square
 * sixty-four times. Measured until it is stable, because compiling and collecting garbage can only make it slower.
 */
const growth = (measure: (command: string) => number, shape: LongCommands.Shape): string | undefined => {
  const [small, large] = [LongCommands.filled(shape, 12_000), LongCommands.filled(shape, 96_000)]
  measure(small)
  // What the small one takes must not seem more than it is: that would hide a growth.
  let few = Math.min(measure(small), measure(small), measure(small))
  let many = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    many = Math.min(many, measure(large))
    // A few milliseconds are too few to be measured, and they only become fewer.
    if (many < 8 || many < 24 * few) return undefined
    few = Math.min(few, measure(small))
  }
  return `${few.toFixed(1)} ms and ${many.toFixed(1)} ms`
}

describe("the time that rules take", () => {
  it.each(LongCommands.shapes)("grows as the text does, whatever it is: %j %j %j", (...shape) => {
    assert.isUndefined(growth(timeOf, shape))
  })
})

describe("one decision", () => {
  const most = Array.from({ length: 100 }, (_, i) => `${i}`)
  const policy = CompiledPolicy.make({
    defaultPolicy: "allow",
    blacklist: { patterns: deny.rules.patterns, arguments: most.map((n) => `--flag${n} a`) },
    whitelist: { patterns: allow.rules.patterns, arguments: most.map((n) => `npm run a${n}`), readonly: true }
  })
  const state = new PermissionState()
  const traits = { readonly: false, autoApproved: false }

  it.each(LongCommands.dearest)("takes milliseconds, however long the command is: %j %j %j", (...shape) => {
    const command = LongCommands.filled(shape, 100_000)
    let least = Number.POSITIVE_INFINITY
    // A slower machine may take twice as long as this one.
    for (let round = 0; round < 30 && least >= 40; round++) {
      const computed = Computation.begin()
      const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
      state.evaluate(policy, subject, traits, ses("root"))
      least = Math.min(least, computed())
    }
    assert.isBelow(least, 40)
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
