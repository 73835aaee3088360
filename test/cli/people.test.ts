/** People in arrangements at the command line: a reviewer, an escalation, a quorum, with a second process and at a terminal. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import { userInfo } from "node:os"
import * as FileExchange from "../../src/channel/FileExchange.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

/** Who runs the tests, at every terminal and with every file that nobody vouches for. */
const account = userInfo().username

const begin = Effect.gen(function* () {
  const at = yield* Program.place
  yield* at.makeDirectory("channel/requests")
  yield* at.makeDirectory("channel/responses")
  /** A model that says this of the first calls it is asked about. */
  const reviewer = (...texts: ReadonlyArray<string>) =>
    Effect.map(
      at.write("reviewer.json", { version: 1, agents: { reviewer: texts.map((text) => ({ text })) } }),
      (file) => `script:${file}`
    )
  return {
    at,
    reviewer,
    channel: `file:${at.path("channel")}`,
    /** The request that is open there. */
    request: Effect.map(at.appearsIn("channel/requests", ".json"), (text) => JSON.parse(text)),
    respond: (requestId: string, answer: unknown, by?: string) =>
      Effect.provide(Effect.orDie(FileExchange.respond(at.path("channel"), requestId, answer, by)), NodeContext.layer),
    /** The decisions of the one session, as a person reads them. */
    audit: Effect.gen(function* () {
      const [session = ""] = (yield* at.call(["audit", "list"])).stdout.split(/\s/)
      return (yield* at.call(["audit", "show", session])).stdout
    })
  }
})

const allow = '{"decision": "allow", "reason": "it only makes a file"}'
const deny = '{"decision": "deny", "reason": "not in this directory"}'
const delegating = { delegated: { patterns: ["touch *"] } }

/** A person who reads before they type. */
const say = (screen: Pseudo.Pseudo, line: string) => Effect.delay(screen.type(line), "700 millis")

describe.concurrent("a reviewer", () => {
  it.scopedLive("decides what the policy delegates, with nobody else there; the record says that a model did", () =>
    Effect.gen(function* () {
      const { at, audit, reviewer } = yield* begin
      yield* at.write("config/permissions.json", delegating)
      const ran = yield* at.call(["run", "--reviewer", yield* reviewer(allow), "run touch made"])
      assert.strictEqual(ran.code, 0)
      assert.isTrue(yield* at.exists("workspace/made"))
      assert.match(yield* audit, /by reviewer.*model|model.*reviewer/)
    })
  )

  it.scopedLive("denies with its reason", () =>
    Effect.gen(function* () {
      const { at, reviewer } = yield* begin
      yield* at.write("config/permissions.json", delegating)
      const { stdout } = yield* at.call(["run", "--reviewer", yield* reviewer(deny), "run touch made"])
      assert.include(stdout, "not in this directory")
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("is named in the person's settings, and has no say in anything else: that halts, or is asked", () =>
    Effect.gen(function* () {
      const { at, channel, request, respond, reviewer } = yield* begin
      yield* at.write("config/permissions.json", delegating)
      const model = yield* reviewer(allow, allow)
      yield* at.write("config/config.json", { reviewer: { model, budget: { calls: 1 }, timeout: 20 } })
      const halted = yield* at.call(["run", "run mkdir made"])
      assert.strictEqual(halted.code, 3)
      const program = yield* at.start(["run", "--channel", channel, "run touch one and run touch two"])
      // The second one is more than it may use.
      const { interaction, requestId } = yield* request
      assert.deepInclude(interaction, { argumentsSummary: "touch two", delegated: true })
      yield* respond(requestId, "n")
      assert.strictEqual((yield* program.exit).code, 0)
      assert.isTrue(yield* at.exists("workspace/one"))
      assert.isFalse(yield* at.exists("workspace/two"))
    })
  )

  it.scopedLive("comes before a program that answers as well, and is asked once for all", () =>
    Effect.gen(function* () {
      const { at, channel, reviewer } = yield* begin
      yield* at.write("config/permissions.json", delegating)
      const args = ["run", "--jsonl", "--channel", channel, "--reviewer", yield* reviewer(allow), "run touch made"]
      const program = yield* at.start(args)
      assert.deepInclude(yield* program.json("PermissionResolved"), { granted: true, by: "reviewer", how: "model" })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
      assert.deepStrictEqual(yield* at.list("channel/requests"), [])
    })
  )
})

describe.concurrent("an escalation", () => {
  it.scopedLive("asks at the terminal first, and after the time another process too, which answers", () =>
    Effect.gen(function* () {
      const { at, audit, channel, request } = yield* begin
      const screen = yield* Pseudo.start(at, ["chat", "--escalate", "6s", "--channel", channel])
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("run touch made\r")
      yield* screen.sees((text) => text.includes("file is asked too after 6s") && text.endsWith("answer>"))
      assert.deepStrictEqual(yield* at.list("channel/requests"), [])
      yield* request
      const answering = yield* at.start(["answer", at.path("channel")])
      yield* answering.write("y\n")
      yield* answering.endInput
      yield* screen.sees((text) => text.includes("run_command: done") && text.endsWith("\n>"))
      assert.isTrue(yield* at.exists("workspace/made"))
      assert.include(yield* audit, account)
    })
  )

  it.scopedLive("goes on at once when the person passes", () =>
    Effect.gen(function* () {
      const { at, channel, request, respond } = yield* begin
      const flags = ["--escalate", "1h", "--channel", "console", "--channel", channel, "--vouch", "file"]
      const screen = yield* Pseudo.start(at, ["chat", ...flags])
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("run touch made\r")
      yield* screen.sees((text) => text.includes("type pass to ask them now") && text.endsWith("answer>"))
      yield* say(screen, "pass\r")
      const { requestId } = yield* request
      yield* respond(requestId, "n", "grace")
      yield* screen.sees((text) => text.includes("was not run") && text.endsWith("\n>"))
    })
  )
})

describe.concurrent("a quorum", () => {
  it.scopedLive("of a person at the terminal and one at another process is shown, collected and recorded", () =>
    Effect.gen(function* () {
      const { at, audit, channel, request, respond } = yield* begin
      yield* at.write("config/permissions.json", { approvals: [{ patterns: ["touch *"], quorum: 2 }] })
      const flags = ["--channel", "console", "--channel", channel, "--vouch", "file"]
      const screen = yield* Pseudo.start(at, ["chat", ...flags])
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("run touch made\r")
      yield* screen.sees((text) => text.includes("needs 2 people") && text.endsWith("answer>"))
      yield* say(screen, "y\r")
      const { requestId } = yield* request
      assert.isFalse(yield* at.exists("workspace/made"))
      yield* respond(requestId, "y", "grace")
      yield* screen.sees((text) => text.includes("run_command: done") && text.endsWith("\n>"))
      assert.isTrue(yield* at.exists("workspace/made"))
      const shown = yield* audit
      for (const name of [account, "grace"]) assert.include(shown, name)
    })
  )
})

describe.concurrent("a vote from another process", () => {
  it.scopedLive("is in the audit, with its author", () =>
    Effect.gen(function* () {
      const { at, audit } = yield* begin
      yield* at.write("config/permissions.json", { approvals: [{ patterns: ["touch *"], quorum: 2 }] })
      assert.strictEqual((yield* at.call(["run", "--channel", "halt", "run touch made"])).code, 3)
      const waiting = JSON.parse((yield* at.call(["sessions", "waiting", "--json"])).stdout)
      const answered = yield* at.call(["sessions", "answer", waiting.rootSessionId, waiting.request.requestId, "y"])
      assert.strictEqual(answered.code, 0, answered.stderr)
      const shown = yield* audit
      assert.match(shown, new RegExp(`voted +permission run_command .* by ${account} `))
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )
})

describe.concurrent("who is asked", () => {
  it.scopedLive("is told by permissions check and show, in order and with the model before", () =>
    Effect.gen(function* () {
      const { at } = yield* begin
      yield* at.write("config/permissions.json", delegating)
      yield* at.write("config/config.json", {
        reviewer: { model: "offline", budget: { calls: 5 } },
        escalate: { after: "10m", to: ["console", "file:../ops", "webhook:https://ops.example/ask?key=secret"] }
      })
      const { stdout } = yield* at.call(["permissions", "check", "run_command", "touch x"])
      assert.deepStrictEqual(stdout.trimEnd().split("\n"), [
        "ask (default): the default is ask",
        "a model may decide it first: touch *",
        "reviewer: offline decides what the policy delegates, or passes it on, within 5 calls",
        `asked: console, after 10m also file:${at.path("ops")}, after 10m also webhook:https://ops.example`
      ])
      const why = yield* at.call(["permissions", "why", "run_command", "touch x"])
      assert.deepStrictEqual(why.stdout.split("\n"), [
        "Asked about: the default is ask",
        ...stdout.split("\n").slice(1)
      ])
      const other = yield* at.call(["permissions", "--escalate", "none", "check", "run_command", "mkdir x"])
      assert.notInclude(other.stdout, "a model may decide it first")
      assert.include(other.stdout, "asked: console\n")
      assert.include((yield* at.call(["permissions"])).stdout, "reviewer: offline")
      assert.notInclude((yield* at.call(["permissions", "--reviewer", "none"])).stdout, "reviewer:")
    })
  )

  it.scopedLive("is not for a workspace to say, unless it is trusted", () =>
    Effect.gen(function* () {
      const { at } = yield* begin
      yield* at.write("workspace/.assent/config.json", {
        reviewer: "offline",
        escalate: { after: "1s", to: ["file:/ops"] }
      })
      const untrusted = yield* at.call(["permissions"])
      assert.notInclude(untrusted.stdout, "reviewer:")
      assert.include(untrusted.stdout, "asked: console\n")
      assert.include(untrusted.stderr, 'the setting reviewer = "offline"')
      assert.include((yield* at.call(["permissions", "--trust"])).stdout, "reviewer: offline")
    })
  )

  it.scopedLive.each([
    {
      args: ["--escalate", "soon", "--channel", "auto"],
      told: '--escalate takes a time such as 90s, 5m or 1.5h, or none, not "soon".'
    },
    { args: ["--escalate", "5m"], told: "--escalate needs a second channel" },
    { args: ["--escalate", "5m", "--channel", "auto"], told: "--escalate needs a second channel" },
    {
      args: ["--escalate", "5m", "--channel", "halt", "--channel", "auto"],
      told: "With --channel halt nobody answers"
    },
    { args: ["--escalate", "5m", "--yolo"], told: "--yolo asks nobody; leave out --escalate." },
    { args: ["--escalate", "5m", "--jsonl"], told: "With --jsonl the program at the other end decides" },
    { args: ["--reviewer", "offline", "--yolo"], told: "--yolo asks nobody, not even a model; leave out --reviewer." },
    { args: ["--reviewer", "nobody/none"], told: 'There is no provider "nobody"' },
    { args: ["--reviewer", " "], told: "--reviewer needs a model" }
  ])("is refused in words: $args", ({ args, told }) =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stderr } = yield* at.call(["run", ...args, "run touch made"])
      assert.strictEqual(code, 2)
      assert.include(stderr, told)
    })
  )
})
