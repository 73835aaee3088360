/** What the rules take to decide about a command as long as one may be. */
import * as Effect from "effect/Effect"
import * as CompiledPolicy from "../../../src/permission/CompiledPolicy.js"
import * as PermissionRule from "../../../src/permission/PermissionRule.js"
import { PermissionState } from "../../../src/permission/PermissionState.js"
import type { SessionId } from "../../../src/core/Id.js"
import { fieldOf } from "../../kit/Commands.js"
import * as LongCommands from "../../kit/LongCommands.js"
import * as Cpu from "../Cpu.js"
import type { Workload } from "../Workload.js"

const rules = (text: (n: number) => string) => Array.from({ length: 100 }, (_, n) => text(n))

/** A hundred rules of each kind, for and against. */
const policy = CompiledPolicy.make({
  defaultPolicy: "allow",
  blacklist: {
    tools: rules((n) => `tool_${n}`),
    patterns: rules((n) => `${["tool#", "*x#y", "git p#", "rm -r#", "?a#", "a#*z*q"][n % 6]}*`.replace("#", `${n}`)),
    arguments: rules((n) => `--flag${n} a`)
  },
  whitelist: {
    tools: rules((n) => `reader_${n}`),
    patterns: rules((n) => `git x${n}*`),
    arguments: rules((n) => `npm run a${n}`),
    readonly: true
  }
})

const traits = { readonly: false, autoApproved: false }

/** The dearest shape counts. */
export const longest: Effect.Effect<Workload> = Effect.map(fieldOf("command"), (commandField) => {
  const state = new PermissionState()
  const session = "bench" as SessionId
  const commands = LongCommands.dearest.map((shape) => LongCommands.filled(shape, 100_000))
  const judge = (command: string): void => {
    const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
    state.evaluate(policy, subject, traits, session)
  }
  const meanOf = (command: string, budget: number): number => {
    let runs = 0
    let spent = 0
    const start = Cpu.now()
    while (runs === 0 || spent < budget * 1_000) {
      judge(command)
      runs++
      spent = Cpu.now() - start
    }
    return spent / runs
  }
  return {
    sample: (budget) =>
      Effect.sync(() => ({
        ms: Math.max(...commands.map((command) => meanOf(command, budget / commands.length))) / 1_000
      }))
  }
})
