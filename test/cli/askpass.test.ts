/** Commands that ask for a password: it reaches the command, and nothing else of the program. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Wait from "../kit/Wait.js"

const secret = "correct-horse-battery"

const calling = (command: string, more: object = {}) => ({
  text: "So.",
  tools: [{ name: "run_command", params: { command, ...more } }]
})

/** Prints the password in two ways, and proves that it has it. */
const echoing = `p=$("$SUDO_ASKPASS" "Password of ada: ") || exit 9; echo "it is $p."; printf %s "$p" | base64; echo "\${#p} characters"`
/** A program may ask for a password if its command was allowed by name. */
const named = { defaultPolicy: "allow", whitelist: { patterns: [echoing] } }
const redacted = "it is [REDACTED].\\n[REDACTED]"

/** The directories of calls that go on. */
const askpassOf = (at: Program.Place) =>
  Effect.gen(function* () {
    const [output = ""] = yield* at.list("tmp")
    return (yield* at.list(`tmp/${output}`)).filter((name) => name.startsWith("askpass"))
  })

/** So long nobody types before an answer. */
const hushed = Effect.sleep("700 millis")

const places = ["off", ...(Confined.isWanted ? ["require"] : [])]

describe.concurrent("a command that asks for a password", () => {
  it.scopedLive.each(places)(
    "gets it from the peer, and it is in no event, no journal and no audit, sandbox %s",
    (sandbox) =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", named)
        const model = yield* at.script(calling(echoing), {
          expect: { contains: `${secret.length} characters` },
          text: "I have it."
        })
        const program = yield* at.start(["run", "--jsonl", "--model", model], { env: { ASSENT_SANDBOX: sandbox } })
        yield* program.json("AgentCreated")
        yield* program.tell({ _tag: "Send", text: "go" })
        const { request } = yield* program.json("InteractionRequest")
        assert.strictEqual(request.interaction._tag, "Auth.Password")
        assert.match(request.interaction.prompt, / {2}Password of ada:\n(?:Started by: .*\n)?Command: p=\$\(/)
        yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: secret })
        yield* program.json("InteractionClosed", { requestId: request.requestId })
        yield* program.json("TurnEnded", { reason: "completed" })
        yield* program.endInput
        const { code, stderr, stdout } = yield* program.exit
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
        const all = `${stdout}${yield* at.allText}`
        assert.include(all, redacted)
        assert.include(all, `${secret.length} characters`)
        for (const text of [secret, Buffer.from(secret).toString("base64")]) assert.notInclude(all, text)
        assert.deepStrictEqual(yield* at.list("tmp"), [])
      }),
    120_000
  )

  it.scopedLive("of a subagent gets it from the person, too", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", named)
      yield* at.write("config/profiles/helper.json", { name: "helper", description: "helps", plugins: ["cli"] })
      const delegate = { name: "delegate", params: { profile: "helper", task: "look" } }
      const told = { expect: { contains: `${secret.length} characters` }, text: "It had it." }
      const agents = { main: [{ text: "So.", tools: [delegate] }, { text: "Done." }], helper: [calling(echoing), told] }
      const file = yield* at.write("script.json", { version: 1, agents })
      const program = yield* at.start(["run", "--jsonl", "--model", `script:${file}`])
      yield* program.json("AgentCreated")
      yield* program.tell({ _tag: "Send", text: "go" })
      const { request } = yield* program.json("InteractionRequest")
      assert.strictEqual(request.interaction._tag, "Auth.Password")
      assert.strictEqual(request.agentPath, "main/helper")
      yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: secret })
      yield* program.json("TurnEnded", { agent: "main", reason: "completed" })
      yield* program.endInput
      const { stdout } = yield* program.exit
      const all = `${stdout}${yield* at.allText}`
      assert.include(all, "It had it.")
      assert.notInclude(all, secret)
    })
  )

  it.scopedLive("gets a sentence if the run halts for questions, and the run goes on", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", named)
      const model = yield* at.script(calling(echoing), {
        expect: { contains: "assent: No person can be asked for a password." },
        text: "I cannot."
      })
      const { code, stdout } = yield* at.call(["run", "--channel", "halt", "--model", model, "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "I cannot.")
    })
  )

  it.scopedLive("gets a sentence from channels that take no password", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", named)
      const model = yield* at.script(calling(echoing), {
        expect: { contains: "exitCode" },
        text: "I cannot."
      })
      for (const how of [["--yolo"], ["--channel", "auto"], ["--channel", `file:${at.path("answers")}`]]) {
        const { code, stderr, stdout } = yield* at.call(["run", ...how, "--model", model, "go"])
        assert.strictEqual(code, 0, `${how.join(" ")}: ${stderr}`)
        assert.include(stdout, "I cannot.")
      }
    })
  )

  it.live(
    "asks at the terminal, where nothing is shown of it, also in the background and when it is cancelled",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          yield* at.write("config/permissions.json", named)
          const model = yield* at.script(
            calling(echoing),
            { expect: { contains: `${secret.length} characters` }, ...calling(echoing, { background: true }) },
            { text: "It waits." },
            calling(echoing),
            { text: "unheard" }
          )
          const screen = yield* Pseudo.start(at, ["chat", "--model", model], { columns: 120, rows: 40 })
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.type("go\r")
          const asks = (text: string) => text.includes("A password is needed") && text.endsWith("password (not shown)>")
          const shown = yield* screen.sees(asks)
          assert.include(shown, "Password of ada:")
          assert.include(shown, "Only this command gets your answer.")
          yield* hushed
          yield* screen.type(`${secret}\r`)
          yield* screen.sees((text) => text.includes("It waits.") && asks(text))
          yield* hushed
          yield* screen.type(`${secret}\r`)
          yield* screen.sees((text) => /job_1 .*ended with exit code 0/.test(text) && text.endsWith("\n>"))
          yield* hushed
          yield* screen.type("again\r")
          yield* screen.sees((text) => text.split("\n> again").length > 1 && asks(text))
          yield* hushed
          yield* screen.type("\x1b")
          yield* screen.sees((text) => text.endsWith("\n>"))
          assert.notInclude(screen.everything(), "unheard")
          assert.notInclude(screen.everything(), secret)
          assert.notInclude(yield* at.allText, secret)
          // The call ends beside the prompt.
          yield* Wait.until(askpassOf(at), (left) => left.length === 0)
        })
      ),
    120_000
  )
})
