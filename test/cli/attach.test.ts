/** `assent chat --attach` at a pseudo-terminal: a session of `assent serve` at several terminals. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const serving = (place: Program.Place, args: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const model = yield* place.script(
      { tools: [{ name: "run_command", params: { command: "touch made" } }] },
      { text: "all done" },
      { tools: [{ name: "run_command", params: { command: "touch again" } }] },
      { text: "again done" }
    )
    const prices = { script: { input: 1, output: 1 }, [model]: { input: 1, output: 1 } }
    yield* place.write("config/config.json", JSON.stringify({ price_table: prices }))
    const program = yield* place.start(["serve", "--model", model, ...args])
    const line = yield* program.line((text) => text.startsWith("http://"))
    const [url = "", token = ""] = line.split("/#token=")
    return { program, line, url, token }
  })

const asks = (command: string) => (screen: string) => screen.includes(command) && screen.trimEnd().endsWith("answer>")

/** A key that comes at once was meant for something else. */
const hushed = Effect.sleep("700 millis")

describe.concurrent("assent chat --attach", () => {
  it.scopedLive(
    "shows one session at two terminals: answered at one, the question closes at the other",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const { line } = yield* serving(place, ["--port", "0"])
        const one = yield* Pseudo.start(place, ["chat", "--attach"])
        yield* one.sees((screen) => screen.includes("/help for"))
        yield* one.type("make it\r")
        yield* one.sees(asks("touch made"))
        // The address with its token, as the server printed it.
        const two = yield* Pseudo.start(place, ["chat", "--attach", line, "--continue"])
        yield* two.sees((screen) => screen.includes("> make it") && asks("touch made")(screen))
        yield* hushed
        yield* two.type("y")
        yield* one.sees((screen) => /The question was answered by \S+\./.test(screen) && screen.includes("all done"))
        yield* two.sees((screen) => screen.includes("all done"))
        assert.isTrue(yield* place.exists("workspace/made"))
        yield* two.type("/undo\r")
        yield* two.sees((screen) => screen.includes("/undo is not available in an attached chat."))
        yield* two.type("!ls\r")
        yield* two.sees((screen) => screen.includes("!ls is not available in an attached chat."))
        // Leaving withdraws nothing.
        yield* two.type("more\r")
        yield* one.sees((screen) => screen.includes("> more") && asks("touch again")(screen))
        yield* two.sees(asks("touch again"))
        yield* two.hangUp
        yield* hushed
        yield* one.type("y")
        yield* one.sees((screen) => screen.includes("again done"))
        yield* one.type("\x04")
        assert.strictEqual(yield* one.exit, 0)
        assert.match(one.everything(), /To\s+attach\s+again:\s+assent\s+chat\s+--attach\s+--resume\s+ses_/)
      }),
    120_000
  )

  it.scopedLive(
    "takes a question back with Ctrl-C, and connects again after the server was killed",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const before = yield* serving(place, ["--port", "0"])
        const { port } = new URL(before.url)
        const chat = yield* Pseudo.start(place, ["chat", "--attach", before.url])
        yield* chat.sees((screen) => screen.includes("/help for"))
        yield* chat.type("make it\r")
        yield* chat.sees(asks("touch made"))
        yield* before.program.signal("SIGKILL")
        yield* before.program.exit
        yield* chat.sees((screen) => screen.includes("The connection to the server is lost."))
        yield* serving(place, ["--port", port])
        yield* chat.sees((screen) => screen.includes("Connected again.") && screen.trimEnd().endsWith("answer>"))
        yield* chat.type("\x03")
        yield* chat.sees((screen) => screen.includes("cancelled (user)"))
        assert.isFalse(yield* place.exists("workspace/made"))
      }),
    120_000
  )

  it.scopedLive(
    "lists the sessions of the server, goes on with another one, and shows what the server counts",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const { token, url } = yield* serving(place, ["--port", "0"])
        const call = (path: string, body: object) =>
          Effect.promise(() =>
            fetch(`${url}${path}`, {
              method: "POST",
              headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
              body: JSON.stringify(body)
            })
          )
        yield* call("/v1/sessions", { id: "mine" })
        yield* call("/v1/sessions/mine/messages", { text: "an older task" })
        const chat = yield* Pseudo.start(place, ["chat", "--attach", url])
        yield* chat.sees((screen) => screen.includes("/help for"))
        yield* chat.type("/sessions\r")
        yield* chat.sees((screen) => screen.includes("an older task") && screen.includes("To resume one: /resume"))
        yield* chat.type("/resume nobody\r")
        yield* chat.sees((screen) => screen.includes("There is no session nobody."))
        yield* chat.type("/resume mi\r")
        yield* chat.sees((screen) => screen.includes("> an older task") && asks("touch made")(screen))
        yield* hushed
        yield* chat.type("y")
        yield* chat.sees((screen) => screen.includes("all done"))
        assert.isTrue(yield* place.exists("workspace/made"))
        yield* chat.type("/cost\r")
        yield* chat.sees((screen) => screen.includes("as the server counts it."))
        yield* chat.type("/model\r")
        yield* chat.sees((screen) => screen.includes("offline"))
        yield* chat.type("\x03\x04")
        assert.strictEqual(yield* chat.exit, 0)
        assert.match(chat.everything(), /To\s+attach\s+again:\s+assent\s+chat\s+--attach\s+\S+\s+--resume\s+mine/)
      }),
    120_000
  )

  it.scopedLive("answers piped lines, and says what is wrong with an address", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const refused = yield* place.run(["chat", "--attach"])
      assert.deepStrictEqual([refused.code, refused.stderr.includes("Start one with assent serve")], [2, true])
      const { url } = yield* serving(place, ["--port", "0"])
      const of = (...args: ReadonlyArray<string>) =>
        Effect.map(place.run(["chat", "--attach", ...args], { stdin: "" }), ({ code, stderr }) => ({
          code,
          stderr
        }))
      for (const [args, words] of [
        [["http://example.com:80/#token=x"], "clear text"],
        [["https://example.com"], "Give the token"],
        [["ftp://127.0.0.1"], "takes an address"],
        [[`${url}/#token=wrong`], "The token is missing or wrong"],
        [[url, "--resume", "nobody"], 'no session "nobody"'],
        [[url, "--yolo"], "--yolo does not go with --attach"],
        [[url, "--workspace", place.path()], "does not work in"]
      ] as const) {
        const { code, stderr } = yield* of(...args)
        assert.strictEqual(code, 2, stderr)
        assert.include(stderr, words)
      }
      const done = yield* place.run(["chat", "--attach", "--piped-answers"], { stdin: "make it\ny\n" })
      assert.include(done.stdout, "all done")
      assert.strictEqual(done.code, 0, done.stderr)
    })
  )
})
