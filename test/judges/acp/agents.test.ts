/** Agents that others wrote work as ours do: what they ask is decided here. Their models are a mock. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Program from "../../kit/Program.js"
import * as VendorMock from "../../kit/VendorMock.js"
import * as Judged from "../Judged.js"

const judged = it.scopedLive.skipIf(!Judged.isInstalled("acp"))

const bin = (name: string) => fileURLToPath(new URL(`node_modules/.bin/${name}`, import.meta.url))

/** An agent whose model is at this address. It asks before each command. */
interface Agent {
  readonly command: (url: string) => string
  /** Its tool for commands, and what that wants beside the command. */
  readonly tool: string
  readonly more?: object
  /** Its settings, in the workspace. */
  readonly settings?: readonly [file: string, content: (url: string) => object]
}

const opencode: Agent = {
  command: () => `env OPENCODE_DISABLE_MODELS_FETCH=1 ${bin("opencode")} acp`,
  tool: "bash",
  settings: [
    "opencode.json",
    (url) => ({
      autoupdate: false,
      share: "disabled",
      model: "mock/m",
      provider: {
        mock: {
          npm: "@ai-sdk/openai-compatible",
          name: "Mock",
          options: { baseURL: `${url}/v1`, apiKey: "x" },
          models: { m: { name: "m" } }
        }
      },
      permission: { bash: "ask", edit: "ask" }
    })
  ]
}

const qwen: Agent = {
  command: (url) =>
    `env OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=x OPENAI_MODEL=m ${Judged.node("acp")} ${bin("qwen")} --acp --auth-type openai`,
  tool: "run_shell_command",
  more: { is_background: false }
}

const claude: Agent = {
  command: (url) =>
    `env ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=x CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ${Judged.node("acp")} ${bin("claude-agent-acp")}`,
  tool: "Bash"
}

/** The agent in a workspace; its model runs this command. */
const world = ({ command: line, more, settings, tool }: Agent, command: string) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const call = { command, description: "Makes it", ...more }
    const mock = yield* VendorMock.start(
      { match: { toolCallId: "call_1" }, response: { content: "All done." } },
      {
        match: { userMessage: "make it please" },
        response: { toolCalls: [{ id: "call_1", name: tool, arguments: JSON.stringify(call) }] }
      },
      { match: {}, response: { content: "A title" } }
    )
    if (settings !== undefined) yield* place.write(`workspace/${settings[0]}`, settings[1](mock.url))
    const model = `command:${line(mock.url)}`
    const run = (options: ReadonlyArray<string>, stdin: string) =>
      place.run(["run", "--model", model, ...options, "make it please"], { stdin })
    return { model, place, run, isMade: () => existsSync(place.path("workspace/made.txt")) }
  })

const command = "touch made.txt"

/** A policy file, and whether the command runs without a question, or not at all. */
const policies: ReadonlyArray<readonly [what: string, policy: object, isMade: boolean]> = [
  ["a rule that allows it", { whitelist: { patterns: [`foreign_execute(${command})`, command] } }, true],
  ["a rule that denies it", { blacklist: { patterns: ["touch *"] } }, false],
  [
    "a denial that goes before a rule that allows it",
    { whitelist: { patterns: [command] }, blacklist: { tools: ["foreign_execute"] } },
    false
  ]
]

describe.each([
  ["opencode 1.18.33", opencode],
  ["Qwen Code 0.24.4", qwen],
  ["Claude Code by claude-agent-acp 0.23.1", claude]
] as const)("%s", (_, agent) => {
  judged("makes the file after a yes, and not after a no", () =>
    Effect.gen(function* () {
      for (const [answer, isMade] of [
        ["y", true],
        ["n", false]
      ] as const) {
        const { isMade: made, run } = yield* world(agent, command)
        const { stderr, stdout } = yield* run(["--piped-answers"], `${answer}\n`)
        assert.strictEqual(made(), isMade, stderr)
        // After a no some go on with other words.
        if (isMade) assert.include(stdout, "All done.")
        // They report a call as `in_progress` before they ask, or report its end after a no.
        assert.notMatch(stdout, /without asking|after a no/)
      }
    })
  )

  for (const [what, policy, isMade] of policies) {
    judged(`is decided by ${what}, and nobody is asked`, () =>
      Effect.gen(function* () {
        const { isMade: made, place, run } = yield* world(agent, command)
        const file = yield* place.write("policy.json", { version: 1, ...policy })
        const { stderr } = yield* run(["--policy", file], "")
        assert.strictEqual(made(), isMade, stderr)
        assert.notInclude(stderr, "Allow foreign_execute?")
      })
    )
  }

  judged("leaves nothing running when it is cancelled within its command", () =>
    Effect.gen(function* () {
      const { model, place } = yield* world(agent, "echo > began; sleep 98715")
      const program = yield* place.start(["run", "--jsonl", "--yolo", "--model", model, "make it please"])
      yield* place.appears("workspace/began")
      yield* program.signal("SIGINT")
      yield* program.exit
      yield* Program.until(() => Program.processesWith("sleep 98715").length === 0, "the agent's command ends")
      yield* Program.until(() => Program.processesWith(place.path("workspace")).length === 0, "the agent ends")
    })
  )
})
