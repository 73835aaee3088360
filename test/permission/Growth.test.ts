import { assert, describe, it } from "@effect/vitest"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import { commandField } from "../kit/Commands.js"
import * as Computation from "../kit/Computation.js"
import { ses } from "../kit/gate.js"
import * as LongCommands from "../kit/LongCommands.js"
import * as Runs from "../kit/Runs.js"

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
 * The text is doubled three times: something linear takes twice as long each time, something that grows with the square four
 * times, by eight and by sixty-four in all. Where something begins to be kept in large pieces of memory, single steps are
 * as steep. Measured until it is stable, because compiling and collecting garbage can only make it slower.
 */
const growth = (shape: LongCommands.Shape): string | undefined => {
  const texts = [12_000, 24_000, 48_000, 96_000].map((length) => LongCommands.filled(shape, length))
  const least = texts.map((text) => Math.min(timeOf(text), timeOf(text), timeOf(text)))
  for (let round = 0; round < 20; round++) {
    const steps = least.slice(1).map((time, step) => time / (least[step] ?? time))
    // A few milliseconds are too few to be measured, and they only become fewer.
    const [few = 0, many = 0] = [least[0], least.at(-1)]
    if (many < 8 || many < 24 * few || Math.min(...steps) < 2.5) return undefined
    texts.forEach((text, index) => (least[index] = Math.min(least[index] ?? Infinity, timeOf(text))))
  }
  return least.map((time) => `${time.toFixed(1)} ms`).join(", ")
}

describe("the time that rules take", () => {
  it.each(Runs.some(LongCommands.shapes))("grows as the text does, whatever it is: %j %j %j", (...shape) => {
    assert.isUndefined(growth(shape))
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
    const decide = () => {
      const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
      state.evaluate(policy, subject, traits, ses("root"))
    }
    // A slower machine may take twice as long as this one.
    assert.isBelow(Computation.least(40, decide), 40)
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
