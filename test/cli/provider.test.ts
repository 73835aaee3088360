import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AcpEditor from "../kit/AcpEditor.js"
import * as AcpProgram from "../kit/AcpProgram.js"
import * as Console from "../kit/Console.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import { anthropic, chat } from "../kit/Wire.js"

/** A key of no shape that anybody would recognise: it has to be known to be masked. */
const key = "canary.7f3a+opaque/key=="

const model = ["--model", "openai-compatible/local-test"]

/** A place, a server that plays an OpenAI-compatible endpoint, and how to reach the one from the other. */
const setting = Effect.gen(function* () {
  const at = yield* Program.place
  const server = yield* ModelServer.make
  const args = ["--base-url", `${server.url}/v1`, ...model]
  const env = { OPENAI_COMPATIBLE_API_KEY: key }
  return { at, server, args, env }
})

const replies = (...reply: ReadonlyArray<Parameters<typeof chat.events>[0]>) =>
  reply.map((one) => ModelServer.eventStream(chat.events(one)))

/** The next call of a model; what else is asked of a server is which models it has. */
const nextCall = (server: ModelServer.ModelServer) =>
  Effect.repeat(server.received, { until: ({ method }) => method === "POST" })

const nextModel = (server: ModelServer.ModelServer) =>
  Effect.map(nextCall(server), (request) => ModelServer.json(request).model)

/** A gateway that tells what it was sent. */
const tattling =
  (status: number, headers: Record<string, string> = {}) =>
  (request: ModelServer.Received): ModelServer.Script =>
    ModelServer.jsonError(
      status,
      chat.error(`Refused. You sent: Authorization: ${request.headers.authorization}`, "invalid_request_error"),
      headers
    )

describe.concurrent("a provider", () => {
  it.scopedLive("gets the task, runs a tool, is asked again after a 429, and its answer is printed", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      yield* at.write("workspace/notes.txt", "remember the milk")
      yield* at.write("workspace/AGENTS.md", "Answer in one word.")
      yield* server.play(
        ...replies({
          thinking: "A file.",
          text: ["Let me ", "look."],
          calls: [{ id: "call_a", name: "read_file", args: '{"path":"notes.txt"}' }]
        }),
        ModelServer.jsonError(429, chat.error("Slow down.", "rate_limit"), { "retry-after-ms": "20" }),
        ModelServer.jsonError(429, chat.error("Slow down.", "rate_limit"), { "retry-after-ms": "30" }),
        ...replies({ text: ["Mi", "lk."] })
      )
      const { code, stdout, stderr } = yield* at.call(["run", ...args, "what to buy?"], { env })
      assert.deepStrictEqual({ code, stdout }, { code: 0, stdout: "Milk.\n" })
      assert.match(
        stderr,
        /^assent: .*too many requests \(429: Slow down\)\. .* Trying again in 20 ms \(attempt 2 of \d\)\.\nassent: Trying again in 30 ms \(attempt 3 of \d\)\.\n$/
      )
      const first = yield* server.received
      assert.strictEqual(first.url, chat.path)
      assert.strictEqual(first.headers.authorization, `Bearer ${key}`)
      const body = ModelServer.json(first)
      assert.strictEqual(body.model, "local-test")
      assert.deepInclude(body.messages.at(-1), { role: "user" })
      assert.include(JSON.stringify(body.messages.at(-1)), "what to buy?")
      assert.include(body.messages[0].content, "Answer in one word.")
      assert.include(body.messages[0].content, at.path("workspace"))
      assert.includeMembers(
        body.tools.map((tool: { readonly function: { readonly name: string } }) => tool.function.name),
        ["run_command", "read_file", "write_file", "request_clarification"]
      )
      const refused = yield* server.received
      const again = yield* server.received
      assert.deepStrictEqual(ModelServer.json(again), ModelServer.json(refused))
      assert.deepStrictEqual(ModelServer.json(yield* server.received), ModelServer.json(refused))
      const result = ModelServer.json(again).messages.at(-1)
      assert.deepInclude(result, { role: "tool", tool_call_id: "call_a" })
      assert.include(result.content, "remember the milk")
    })
  )

  it.scopedLive("of Anthropic is asked to keep what it has read, for long replies, and is told how hard to think", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const server = yield* ModelServer.make
      yield* at.write("config/config.json", {
        models: { "anthropic/claude-sonnet-5-5": { thinking: "low", max_output_tokens: 50_000 } }
      })
      const calls = [{ id: "call_a", name: "list_files", args: "{}" }]
      const usage = { input: 1_000, output: 10, cached: 9_000 }
      const answers = [{ text: ["Looking."], calls, usage }, { text: ["Nothing."], usage }, { text: ["Short."] }]
      yield* server.play(...answers.map((one) => ModelServer.eventStream(anthropic.events(one))))
      const env = { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: server.url }
      const ran = yield* at.call(["run", "--json", "--model", "anthropic/claude-sonnet-5-5", "what is there?"], { env })
      assert.strictEqual(ran.code, 0, ran.stderr)
      const marksIn = (body: any) =>
        [...body.system, ...body.messages.flatMap(({ content }: any) => content)].filter((block) => block.cache_control)
      const first = ModelServer.json(yield* server.received)
      const second = ModelServer.json(yield* server.received)
      assert.deepStrictEqual(
        [first.max_tokens, first.output_config, first.thinking],
        [50_000, { effort: "low" }, undefined]
      )
      assert.deepStrictEqual(
        marksIn(first).map(({ type }) => type),
        ["text", "text"]
      )
      assert.deepStrictEqual(
        marksIn(second).map(({ type }) => type),
        ["text", "text", "tool_result"]
      )
      assert.include(ran.stdout, '"context":{"tokens":10000,"window":1000000}')
      const old = yield* at.call(["run", "--model", "anthropic/claude-haiku-4-5", "hello"], { env })
      assert.strictEqual(old.stdout, "Short.\n", old.stderr)
      assert.strictEqual(ModelServer.json(yield* server.received).max_tokens, 32_000)
    })
  )

  it.scopedLive("whose window is nearly full has its conversation shortened, unless somebody wants that never", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const turn = (n: number) => ({ text: `answer ${n} ${"word ".repeat(60)}`, usage: { input: 150 * n, output: 60 } })
      const script = yield* at.script(...[1, 2, 3, 4, 5, 6, 7].map(turn), { text: "end" })
      const settings = { models: { [script]: { context_window: 1_000 } } }
      const talk = Array.from({ length: 7 }, (_, n) => `tell me ${n}\n`).join("") + "/quit\n"
      yield* at.write("config/config.json", settings)
      const shortened = yield* at.call(["chat", "--model", script], { stdin: talk })
      assert.include(shortened.stdout, "The conversation was shortened")
      yield* at.write("config/config.json", { ...settings, compaction: false })
      const never = yield* at.call(["chat", "--model", script], { stdin: talk })
      assert.notInclude(never.stdout, "The conversation was shortened")
    })
  )

  it.scopedLive("is found again when a session goes on, and at another address where one is given", () =>
    Effect.gen(function* () {
      const { args, at, env, server } = yield* setting
      const other = yield* ModelServer.make
      const asked = (said: ModelServer.ModelServer) =>
        Effect.map(said.received, (request) => [
          ModelServer.json(request).model,
          ModelServer.json(request).messages.length
        ])
      yield* server.play(...replies({ text: ["One."] }, { text: ["Two."] }, { text: ["Four."] }))
      yield* other.play(...replies({ text: ["Three."] }, { text: ["Five."] }))
      const run = (...words: ReadonlyArray<string>) => at.call(["run", ...words], { env })
      assert.deepInclude(yield* run(...args, "first"), { stdout: "One.\n", code: 0 })
      assert.deepInclude(yield* run("--continue", "second"), { stdout: "Two.\n", code: 0 })
      assert.deepInclude(yield* run("--continue", "--base-url", `${other.url}/v1`, "third"), {
        stdout: "Three.\n",
        code: 0
      })
      const moved = yield* run("--continue", "--base-url", `${server.url}/v1`, "fourth")
      assert.deepInclude(moved, { stdout: "Four.\n", code: 0 })
      assert.deepStrictEqual(yield* Effect.all([asked(server), asked(server), asked(other), asked(server)]), [
        ["local-test", 2],
        ["local-test", 4],
        ["local-test", 6],
        ["local-test", 8]
      ])
      // Another provider has another address.
      const elsewhere = yield* run("--continue", "--model", "offline", "hello")
      assert.strictEqual(elsewhere.code, 0)
      assert.deepInclude(yield* run("--continue", ...model, "--base-url", `${other.url}/v1`, "sixth"), {
        stdout: "Five.\n",
        code: 0
      })
    })
  )

  it.scopedLive("is found again at its address after another model of its provider, or none, was picked", () =>
    Effect.gen(function* () {
      const { args, at, env, server } = yield* setting
      // A chat also asks which models there are, and makes nothing of this answer.
      const reply = replies({ text: ["Seen."] })
      yield* server.play(...Array.from({ length: 20 }, () => reply).flat())
      const asked = nextModel(server)
      const going = (words: ReadonlyArray<string>, stdin = "") =>
        Effect.map(at.call(words, { env, stdin }), ({ code, stderr }) => assert.strictEqual(code, 0, stderr))
      yield* going(["run", ...args, "first"])
      yield* going(["run", "--continue", "--model", "openai-compatible/second", "second"])
      // The address was given two processes before, and the model in between is of no provider.
      yield* going(["chat", "--continue"], "/model openai-compatible/third\n/model offline\n")
      yield* going(["chat", "--continue"], "/model openai-compatible/fourth\nthird\n")
      yield* going(["run", "--continue", "fourth"])
      assert.deepStrictEqual(yield* Effect.all([asked, asked, asked, asked]), [
        "local-test",
        "second",
        "fourth",
        "fourth"
      ])
    })
  )

  it.scopedLive(
    "goes on with the model that a flag named the last time it went on, unless there is no such model",
    () =>
      Effect.gen(function* () {
        const { args, at, env, server } = yield* setting
        const reply = replies({ text: ["Seen."] })
        yield* server.play(...Array.from({ length: 20 }, () => reply).flat())
        const asked = nextModel(server)
        const going = (words: ReadonlyArray<string>, { code = 0, stdin = "" } = {}) =>
          Effect.map(at.call(words, { env, stdin }), (ended) => assert.strictEqual(ended.code, code, ended.stderr))
        yield* going(["run", ...args, "first"])
        const ways: ReadonlyArray<{
          readonly name: string
          readonly words: ReadonlyArray<string>
          readonly stdin?: string
        }> = [
          { name: "run-continue", words: ["run", "--continue", "--model", "openai-compatible/run-continue", "go"] },
          {
            name: "chat-continue",
            words: ["chat", "--continue", "--model", "openai-compatible/chat-continue"],
            stdin: "go\n"
          },
          { name: "resume", words: ["run", "--resume", "ses_", "--model", "openai-compatible/resume", "go"] }
        ]
        assert.strictEqual(yield* asked, "local-test")
        for (const { name, stdin = "", words } of ways) {
          yield* going(words, { stdin })
          yield* going(["run", "--continue", "--model", "openai-compatible", "go"], { code: 2 })
          yield* going(["run", "--continue", "go"])
          assert.deepStrictEqual(yield* Effect.all([asked, asked]), [name, name])
        }
        // A fork has it, and a fork of that.
        for (let n = 0; n < 2; n++) {
          const { rootSessionId } = JSON.parse((yield* at.call(["sessions", "--json"])).stdout.split("\n")[0] ?? "")
          yield* going(["sessions", "fork", rootSessionId])
          yield* going(["run", "--continue", "go"])
          assert.strictEqual(yield* asked, "resume")
        }
      })
  )

  it.scopedLive("is told the profile that a flag named the last time its session went on, or that there is none", () =>
    Effect.gen(function* () {
      const { args, at, env, server } = yield* setting
      for (const name of ["terse", "kind"])
        yield* at.write(`config/profiles/${name}.json`, { name, description: name, system_instructions: `Be ${name}!` })
      yield* server.play(...Array.from({ length: 20 }, () => replies({ text: ["Seen."] })).flat())
      const spokenAs = (words: ReadonlyArray<string>, stdin = "") =>
        Effect.gen(function* () {
          const { code, stderr } = yield* at.call(words, { env, stdin })
          assert.strictEqual(code, 0, stderr)
          const request = yield* nextCall(server)
          return /Be (\w+)!/.exec(ModelServer.json(request).messages[0].content)?.[1]
        })
      const sessions = Effect.map(at.call(["sessions", "--json"]), ({ stdout }) =>
        Program.linesOf(stdout).map((line): string => JSON.parse(line).rootSessionId)
      )
      assert.strictEqual(yield* spokenAs(["run", ...args, "first"]), undefined)
      const [plain = ""] = yield* sessions
      assert.strictEqual(yield* spokenAs(["run", "--continue", "--profile", "terse", "go"]), "terse")
      assert.strictEqual((yield* at.call(["run", "--continue", "--profile", "gone", "go"], { env })).code, 2)
      assert.strictEqual(yield* spokenAs(["run", "--continue", "go"]), "terse")
      assert.strictEqual(yield* spokenAs(["chat", "--resume", plain], "/model openai-compatible/other\ngo\n"), "terse")
      yield* at.call(["sessions", "fork", plain])
      assert.strictEqual(yield* spokenAs(["run", "--continue", "go"]), "terse")
      const [fork = ""] = yield* sessions
      assert.strictEqual(yield* spokenAs(["chat", "--resume", plain, "--profile", "kind"], "go\n"), "kind")
      assert.strictEqual(yield* spokenAs(["run", "--resume", fork, "--profile", "none", "go"]), undefined)
      assert.strictEqual(yield* spokenAs(["run", "--resume", fork, "go"]), undefined)
      // In one chat each session has its own.
      assert.strictEqual(yield* spokenAs(["chat", "--resume", fork], `/resume ${plain}\ngo\n`), "kind")
      assert.strictEqual(yield* spokenAs(["run", "--resume", plain, "go"]), "kind")
    })
  )

  it.live("is reached, when a session goes on, where the settings say that are trusted then", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { at, server } = yield* setting
        const model = ["--model", "ollama/local-test"]
        const needy = ["--model", "openai-compatible/local-test"]
        const env = { OLLAMA_BASE_URL: server.url, OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1` }
        yield* server.play(...replies(...["One.", "Two.", "Three.", "Four."].map((said) => ({ text: [said] }))))
        const ids: Array<string> = []
        for (const flags of [model, needy]) {
          assert.strictEqual((yield* at.call(["run", ...flags, "go"], { env })).code, 0)
          ids.push(JSON.parse((yield* at.call(["sessions", "--json"])).stdout.split("\n")[0] ?? "").rootSessionId)
        }
        yield* at.write("workspace/.assent/config.json", {
          base_urls: { ollama: server.url, "openai-compatible": `${server.url}/v1` }
        })
        const [first = "", second = ""] = ids
        const untrusted = yield* at.call(["run", "--resume", second, "go"])
        assert.strictEqual(untrusted.code, 2)
        assert.match(untrusted.stderr, /start with --trust[^]*needs a base URL/)
        for (const [id, said] of [
          [second, "Three."],
          [first, "Four."]
        ] as const) {
          const screen = yield* Pseudo.start(at, ["chat", "--resume", id], { columns: 200 })
          yield* screen.sees((text) => text.endsWith("y/N>"))
          // What is typed at once is no answer.
          yield* Effect.sleep("700 millis")
          yield* screen.type("y\r")
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.includes(said))
          yield* screen.type("\x04")
          assert.strictEqual(yield* screen.exit, 0)
          // Another one is asked about again.
          yield* at.write("workspace/.assent/config.json", {
            base_urls: { "openai-compatible": `${server.url}/v1`, ollama: server.url }
          })
        }
      })
    )
  )

  const served = (at: Program.Place, args: ReadonlyArray<string>, wishes: object) =>
    Effect.gen(function* () {
      const { call } = yield* Console.serving(at, args)
      assert.strictEqual((yield* call("/v1/sessions", { id: "one", ...wishes })).status, 200)
      yield* call("/v1/sessions/one/messages", { text: "go" })
    })
  const doors: {
    readonly [door: string]: (
      world: Effect.Effect.Success<typeof setting>
    ) => Effect.Effect<unknown, unknown, Scope.Scope>
  } = {
    run: ({ args, at, env }) => at.call(["run", ...args, "go"], { env }),
    chat: ({ args, at, env }) => at.call(["chat", ...args], { env, stdin: "go\n" }),
    serve: ({ args, at }) => served(at, args, {}),
    "serve, for a model of the client": ({ at, server }) =>
      served(at, ["--base-url", `${server.url}/v1`], { model: model[1] }),
    acp: ({ args, at, env }) =>
      Effect.gen(function* () {
        const editor = yield* AcpProgram.started(at, { args, env })
        const cwd = at.path("workspace")
        const { sessionId } = yield* editor.request("session/new", { cwd, mcpServers: [] })
        yield* editor.request("session/prompt", { sessionId, prompt: AcpEditor.text("go") })
      })
  }
  for (const [door, ask] of Object.entries(doors)) {
    it.scopedLive(`is reached at the address of --base-url by ${door}`, () =>
      Effect.gen(function* () {
        const world = yield* setting
        yield* world.server.play(...replies({ text: ["Here."] }))
        yield* ask(world)
        assert.deepInclude(yield* nextCall(world.server), { method: "POST", url: "/v1/chat/completions" })
      })
    )
  }

  it.scopedLive("is not reached at the address that was given for the model of another one", () =>
    Effect.gen(function* () {
      const { args, at, env, server } = yield* setting
      const vendor = yield* ModelServer.make
      yield* server.play(...replies({ text: ["One."] }, { text: ["Two."] }))
      yield* vendor.play(ModelServer.eventStream(anthropic.events({ text: ["Three."] })))
      yield* at.call(["run", ...args, "first"], { env })
      const chatted = yield* at.call(["chat", "--continue", "--base-url", `${server.url}/v1`], {
        env: { ...env, ASSENT_MODEL: "anthropic/claude-x", ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: vendor.url },
        stdin: "second\n/model anthropic/claude-x\nthird\n"
      })
      assert.include(chatted.stdout, "Two.")
      assert.include(chatted.stdout, "Three.")
    })
  )

  it.scopedLive("that cuts its answer off, or sends what nobody understands, is told on standard error", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      const cut = chat.events({ text: ["Once upon"] }).map((event) => event.replace('"stop"', '"length"'))
      const strange = `data: ${JSON.stringify({ object: "hologram" })}\n\n`
      yield* server.play(ModelServer.eventStream([strange, ...cut]))
      assert.deepStrictEqual(yield* at.call(["run", ...args, "tell"], { env }), {
        code: 0,
        stdout: "Once upon\n",
        stderr:
          "assent: The model's answer was cut off at the limit of its length. " +
          "The provider sent 1 part that Assent does not understand: hologram.\n"
      })
      yield* server.play(...replies({ text: ["Fine."] }))
      const watched = yield* at.call(["run", "--json", ...args, "tell"], { env })
      assert.notInclude(watched.stdout, "remark")
    })
  )

  it.scopedLive("that is not there, redirects, or has credentials in its address ends the program at once", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      yield* server.play({ status: 307, headers: { location: "https://elsewhere.example/v1" } })
      const redirected = yield* at.call(["run", ...args, "tell"], { env })
      assert.strictEqual(redirected.code, 1)
      assert.include(redirected.stderr, "the server redirects (307: to elsewhere.example)")
      assert.strictEqual(server.count(), 1)
      const { url: gone } = yield* Effect.scoped(ModelServer.make)
      const refused = yield* at.call(["run", "--base-url", gone, ...model, "tell"], { env })
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, "nothing listens there")
      // Whoever tried again would have been silent meanwhile.
      assert.notInclude(refused.stderr, "Trying again")
      const secret = yield* at.call(["run", "--base-url", "http://me:pass-word@127.0.0.1/v1", ...model, "tell"], {
        env
      })
      assert.strictEqual(secret.code, 2)
      assert.include(secret.stderr, "user name or a password")
      assert.notInclude(secret.stderr, "pass-word")
    })
  )

  it.scopedLive("is found by the variable or the user's file as well as by the flag", () =>
    Effect.gen(function* () {
      const { at, server, env } = yield* setting
      yield* server.play(...replies({ text: ["one"] }, { text: ["two"] }))
      const variable = { OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1` }
      assert.strictEqual((yield* at.call(["run", ...model, "x"], { env: { ...env, ...variable } })).stdout, "one\n")
      yield* at.write("config/config.json", {
        model: "openai-compatible/local-test",
        base_urls: { "openai-compatible": `${server.url}/v1` }
      })
      assert.strictEqual((yield* at.call(["run", "x"])).stdout, "two\n")
      yield* server.received
      assert.isUndefined((yield* server.received).headers.authorization)
    })
  )

  it.scopedLive("that tells our key in its errors does not get it shown anywhere", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      for (const mode of [[], ["--json"], ["--log-level", "debug"], ["--json", "--log-level", "debug"]]) {
        yield* server.play(tattling(429, { "retry-after-ms": "1" }), tattling(401))
        const { code, stdout, stderr } = yield* at.call(["run", ...mode, ...args, "x"], { env })
        assert.strictEqual(code, 1)
        assert.strictEqual((yield* server.received).headers.authorization, `Bearer ${key}`)
        yield* server.received
        const said = mode.includes("--json") ? stdout : stderr
        assert.include(said, "OPENAI_COMPATIBLE_API_KEY")
        for (const text of [stdout, stderr]) {
          assert.notInclude(text, key)
          assert.notInclude(text, "canary")
        }
      }
      assert.deepStrictEqual(yield* at.list("tmp"), [])
      assert.notInclude(yield* at.allText, "canary")
    })
  )

  it.scopedLive("that plays our key back as text and in calls does not get it shown, run results included", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      const run = (command: string, id: string) => ({ id, name: "run_command", args: JSON.stringify({ command }) })
      const [head, tail] = [key.slice(0, 9), key.slice(9)]
      // Spelled so that only what the command prints is the key, one half after the other.
      const coded = (text: string) => Buffer.from(text).reduce((out, byte) => `${out}\\${byte.toString(8)}`, "")
      yield* server.play(
        ...replies(
          {
            text: ["Your key is ", head, tail, ", or: ", key, "."],
            calls: [
              run("env; tr '\\0' '\\n' < /proc/$PPID/environ", "call_1"),
              run("env", "call_2"),
              run(`printf '${coded(head)}'; sleep 0.1; printf '${coded(tail)}'`, "call_3"),
              run(`echo ${key} >&2; false`, "call_4"),
              { id: "call_5", name: "read_file", args: JSON.stringify({ path: key }) }
            ]
          },
          { thinking: `Hm, ${key}.`, text: ["Bye, ", head, tail, "!"] }
        )
      )
      const { code, stdout, stderr } = yield* at.call(["run", "--json", "--yolo", ...args, "x"], { env })
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      assert.notInclude(stdout, key)
      assert.notInclude(stdout, "canary")
      const events = Program.events(stdout)
      const joined = (tag: "TextDelta" | "ToolOutput") =>
        events.flatMap((event) => (event._tag === tag && "text" in event ? [event.text] : [])).join("")
      assert.notInclude(joined("TextDelta"), key)
      assert.notInclude(joined("ToolOutput"), key)
      assert.include(joined("TextDelta"), "Your key is [REDACTED], or: [REDACTED].")
      assert.include(joined("ToolOutput"), `HOME=${at.path("home")}`)
      assert.notInclude(joined("ToolOutput"), "OPENAI_COMPATIBLE_API_KEY")
      const ends = events.flatMap((event) => (event._tag === "ToolCallEnded" ? [event] : []))
      assert.strictEqual(ends.filter(({ outcome }) => outcome === "succeeded").length, 4)
      assert.notInclude(yield* at.allText, "canary")
      // Nor does it go back to the provider, or to whichever comes next.
      yield* server.received
      const second = yield* server.received
      assert.notInclude(second.text, key)
      assert.notInclude(second.text, "canary")
      assert.include(second.text, "[REDACTED]")
    })
  )

  it.scopedLive("its key is read by no command, not from the environment of any process of ours either", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      yield* at.write(
        "config/permissions.json",
        JSON.stringify({ defaultPolicy: "allow", guards: { sanitize: { pathScope: false } } })
      )
      // Every second character of the key is counted apart, so that masking what is printed cannot make the test pass.
      const command =
        "tr '\\0' '\\n' < /proc/$PPID/environ > dump; env > own; grep -c '^HOME=' dump; " +
        `grep -c -e 7f3a -e otelkey -e hooktoken dump own; grep -c -e OTEL -e TOKEN own`
      yield* server.play(
        ...replies(
          { calls: [{ id: "call_1", name: "run_command", args: JSON.stringify({ command }) }] },
          { text: ["Done."] }
        )
      )
      const { code, stdout } = yield* at.call(["run", "--json", ...args, "x"], {
        env: {
          ...env,
          OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer otelkey12345",
          OTEL_SERVICE_NAME: "otelname",
          ASSENT_WEBHOOK_TOKEN: "hooktoken12345",
          MY_OWN_TOKEN: "secret"
        }
      })
      assert.strictEqual(code, 0)
      const printed = Program.events(stdout)
        .flatMap((event) => (event._tag === "ToolOutput" && "text" in event ? [event.text] : []))
        .join("")
      assert.strictEqual(printed, "1\ndump:0\nown:0\n0\n")
    })
  )

  it.scopedLive("no value that commands do not get is in the environment of our process, whatever its name", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        {
          tools: [
            { name: "run_command", params: { command: "tr '\\0' '\\n' < /proc/$PPID/environ > dump; env > own" } }
          ]
        },
        { text: "done" }
      )
      const hidden = {
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9/canary1",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:9/canary2",
        OTEL_EXPORTER_OTLP_HEADERS: "key=canary3",
        OTEL_RESOURCE_ATTRIBUTES: "place=canary4",
        HTTPS_PROXY: "http://ada:canary5@127.0.0.1:9",
        NOTION_TOKEN: "canary6",
        EDITOR: "vi canary7",
        "_x.y": "canary8",
        "a b": "canary9"
      }
      const args = ["run", "--json", "--yolo", "--sandbox", "off", "--store", ":memory:", "--model", model, "go"]
      const { code } = yield* at.run(args, { env: { ...hidden, LANG: "C.UTF-8" } })
      assert.strictEqual(code, 0)
      const [dump, own] = [yield* at.read("workspace/dump"), yield* at.read("workspace/own")]
      assert.notInclude(dump + own, "canary")
      assert.include(dump, `HOME=${at.path("home")}`)
      assert.include(dump, "LANG=C.UTF-8")
    })
  )

  it.scopedLive("that cannot be reached, or breaks off, ends the run with a sentence", () =>
    Effect.gen(function* () {
      const { at, server, args, env } = yield* setting
      yield* server.play(ModelServer.jsonError(400, chat.error("The model does not exist.", "not_found")))
      const failed = yield* at.call(["run", ...args, "x"], { env })
      assert.strictEqual(failed.code, 1)
      assert.strictEqual(failed.stdout, "")
      assert.match(failed.stderr, /^assent: [^\n]*does not exist[^\n]*\n$/)
      yield* server.play(...[1, 2, 3, 4, 5].map(() => tattling(429, { "retry-after-ms": "1" })))
      const busy = yield* at.call(["run", "--json", ...args, "x"], { env })
      assert.strictEqual(busy.code, 1)
      const events = Program.events(busy.stdout)
      assert.isNotEmpty(events.filter((event) => event._tag === "ModelRetried"))
      assert.deepInclude(
        events.find((event) => event._tag === "TurnEnded"),
        { reason: "failed" }
      )
    })
  )
})
