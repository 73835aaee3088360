/** The row below the prompt, /status and /model, at a terminal and by lines. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, writeFileSync } from "node:fs"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as ModelServer from "../kit/ModelServer.js"

const model = "script:script.json"
const on = { ASSENT_STATUS_LINE: "on" }

const script = [
  {
    text: "Looking.",
    usage: { input: 310_000, output: 100 },
    tools: [
      {
        name: "todo_write",
        params: {
          items: [
            { content: "look", status: "completed" },
            { content: "mend", status: "pending" }
          ]
        }
      },
      { name: "explore", params: { task: "who calls it" } }
    ]
  },
  { text: "Two places call it.", usage: { input: 340_000, output: 1_000 } },
  { text: "Second.", usage: { input: 350_000, output: 10 } }
]

const settings = {
  models: { [model]: { context_window: 1_000_000 } },
  price_table: { [model]: { input: 0.2, output: 1 } }
}

const place = (config: object = settings, main: ReadonlyArray<unknown> = script) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const agents = { main, explore: [{ text: "In a.ts.", usage: { input: 50_000, output: 10 } }] }
    yield* place.write("workspace/script.json", { version: 1, agents })
    yield* place.write("config/config.json", config)
    mkdirSync(place.path("workspace", ".git"))
    writeFileSync(place.path("workspace", ".git/HEAD"), "ref: refs/heads/feature/login\n")
    return place
  })

const chat = (at: Program.Place, options: Pseudo.Options = {}, ...flags: ReadonlyArray<string>) =>
  Pseudo.start(at, ["chat", "--model", model, ...flags], { ...options, env: { ...on, ...options.env } })

/** Without times, which differ. */
const steady = (text: string) => `${text.replace(/,\s+\d+(?:\.\d)?\s+m?s/g, ", N s")}\n`

describe.concurrent("the line below the prompt", () => {
  for (const columns of [120, 80, 40])
    it.live(`shows what is known, and less in fewer columns: ${columns}`, ({ expect }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* place()
          const screen = yield* chat(at, { columns, rows: 45 }, "--yolo")
          const begun = yield* screen.sees((text) => /\n>\n.*ask.*$/.test(text))
          assert.notInclude(begun, "context")
          yield* screen.type("go\r")
          const told = yield* screen.sees((text) => text.includes("call it.") && /\n>\n.*context 34%.*$/.test(text))
          assert.include(screen.styleOf(columns === 40 ? "asks nothing" : "script:"), "dim")
          yield* Effect.promise(() => expect(steady(told)).toMatchFileSnapshot(`screens/status-${columns}.txt`))
        })
      )
    )

  it.live(
    "follows the branch, the model, what is asked and the size of the window, and gives way to a list and a question",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* place()
          yield* at.write("workspace/notes.txt", "")
          const screen = yield* chat(at, { columns: 100, rows: 30 })
          yield* screen.sees((text) => text.endsWith(`${model} · git feature/login · ask`))
          yield* screen.type("hello @")
          yield* screen.sees((text) => text.includes("› notes.txt") && !text.includes("git feature"))
          yield* screen.type("\x1b")
          yield* screen.sees((text) => text.endsWith("git feature/login · ask"))
          yield* screen.type("\x03")
          writeFileSync(at.path("workspace", ".git/HEAD"), "ref: refs/heads/other\n")
          yield* screen.type("/permissions default deny\r")
          yield* screen.sees((text) => text.endsWith(`> \n${model} · git other · deny`.replace("> \n", ">\n")))
          yield* screen.type("/model offline\r")
          yield* screen.sees((text) => text.endsWith("offline/offline · git other · deny"))
          yield* screen.type("/permissions default ask\r")
          yield* screen.sees((text) => text.endsWith("· git other · ask"))
          yield* screen.type("run ls\r")
          const asked = yield* screen.sees((text) => text.endsWith("answer>"))
          assert.notInclude(asked, "git other")
          yield* screen.type("\x1b")
          yield* screen.sees((text) => text.includes("cancelled") && text.endsWith("· git other · ask"))
          yield* screen.resize(30, 30)
          yield* screen.sees((text) => text.endsWith("\noffline · git other · ask"))
          yield* screen.resize(100, 6)
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.resize(100, 30)
          yield* screen.sees((text) => text.endsWith("\noffline/offline · git other · ask"))
          yield* screen.type("/status\r")
          assert.include(
            yield* screen.sees((text) => text.includes("until the first answer")),
            "Model: offline/offline\nBranch: other\nMode: ask\nContext: unknown until the first answer"
          )
        })
      )
  )

  it.live("is not drawn where somebody wants none, by lines, or on a dumb terminal", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const without = yield* place({ ...settings, status_line: false })
        const quiet = yield* Pseudo.start(without, ["chat", "--model", model], { env: { ASSENT_STATUS_LINE: "" } })
        yield* quiet.sees((text) => text.endsWith("Commands open.\n>"))
        const at = yield* place()
        for (const [flags, env] of [
          [["--plain"], on],
          [[], { ...on, TERM: "dumb" }]
        ] as const) {
          const plain = yield* chat(at, { env }, ...flags)
          yield* plain.type("/cost\r")
          yield* plain.sees((text) => text.includes("No model was called yet."))
          assert.notInclude(plain.raw(), "git feature")
        }
        const piped = yield* at.call(["chat", "--model", model], { stdin: "/status\n/quit\n", env: on })
        assert.match(piped.stdout, /Model: script:script\.json\nBranch: feature\/login\nMode: ask\n/)
        assert.notInclude(piped.stdout, "· git")
        const wrong = yield* at.call(["chat", "--model", model], { stdin: "", env: { ASSENT_STATUS_LINE: "maybe" } })
        assert.strictEqual(wrong.code, 2)
        assert.include(wrong.stderr, 'ASSENT_STATUS_LINE takes on or off, not "maybe".')
      })
    )
  )

  it.live("is drawn with the prompt, and not with each piece of an answer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const long = {
          text: "word ".repeat(400),
          chunks: 200,
          chunkDelay: "1 millis",
          usage: { input: 100_000, output: 400 }
        }
        const at = yield* place(settings, [long])
        const screen = yield* chat(at, { columns: 60 })
        yield* screen.sees((text) => text.endsWith("git feature/login · ask"))
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.endsWith("context 10% · $0.02"))
        // It is drawn again with each row that is printed above, and with nothing else.
        assert.isBelow(screen.raw().split("git feature/login").length, 60)
      })
    )
  )
})

describe.concurrent("/model", () => {
  it.live("without a name is a list to pick from, with the present one marked", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* place({ ...settings, base_urls: { "openai-compatible": "http://127.0.0.1:9/v1" } })
        const env = { ANTHROPIC_API_KEY: "sk-ant-api03-x", OLLAMA_BASE_URL: "http://127.0.0.1:9/v1" }
        const screen = yield* chat(at, { columns: 80, rows: 40, env })
        yield* screen.sees((text) => text.endsWith("ask"))
        yield* screen.type("/model\r")
        const list = yield* screen.sees((text) => text.includes("offline/offline"))
        assert.match(list, / 1\. ● script:script\.json\n/)
        assert.match(list, /\d\. {3}anthropic\/claude-sonnet-5-5 +1M tokens, \$2 in, \$10 out a million\n/)
        assert.notInclude(list, "openai/")
        yield* screen.type("99\r")
        yield* screen.sees((text) => /Please name one of 1 to[^]*model>\n›/.test(text))
        yield* screen.type("4\r")
        yield* screen.sees((text) =>
          /The model is now anthropic\/claude-sonnet-5-5\.\n[^]*claude-sonnet-5-5 · git/.test(text)
        )
        yield* screen.type("/model\r")
        yield* screen.sees((text) => text.includes("● anthropic/claude-sonnet-5-5"))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.endsWith("claude-sonnet-5-5 · git feature/login · ask"))
        yield* screen.type("/model anthropic/claude-op\t")
        yield* screen.sees((text) => text.includes("/model anthropic/claude-opus-"))
      })
    )
  )

  it.live("names the model that was meant, and completes those that local servers have", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* ModelServer.make
        const at = yield* place()
        yield* server.play(ModelServer.jsonError(200, { data: [{ id: "qwen3:8b" }, { id: "bad\u001b[2J" }, 7] }))
        const env = { ANTHROPIC_API_KEY: "sk-ant-api03-x", OLLAMA_BASE_URL: server.url }
        const lines = [
          "/model",
          "/model sonnet-5-5",
          "/model antropic/claude-opus-5",
          "/model anthropic/claude-opus-55",
          "/quit"
        ]
        const said = yield* at.call(["chat", "--model", model], { stdin: `${lines.join("\n")}\n`, env })
        assert.strictEqual((yield* server.received).url, "/v1/models")
        assert.match(said.stdout, /^ 1\. ● script:script\.json$/m)
        assert.match(said.stdout, /^ ?\d+\. {3}ollama\/qwen3:8b$/m)
        assert.notInclude(said.stdout, "bad")
        assert.match(said.stdout, /"sonnet-5-5" is not a model\..* Did you mean anthropic\/claude-sonnet-5-5\?/)
        assert.match(said.stdout, /There is no provider "antropic"\..* Did you mean anthropic\/claude-opus-5\?/)
        assert.match(
          said.stdout,
          /The model is now anthropic\/claude-opus-55\.\nAssent does not know it\. Did you mean anthropic\/claude-opus-5(?:-5)?\?/
        )
      })
    )
  )
})

describe.concurrent("what a chat says", () => {
  it.live("is broken between words, names paths as they were typed, and tells of an @ that names no file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* place()
        const screen = yield* chat(at, { columns: 40, rows: 30 })
        yield* screen.sees((text) => text.endsWith("ask"))
        yield* screen.type("/nosuch\r")
        const said = yield* screen.sees((text) => text.includes("blank before it."))
        assert.include(
          said,
          "There is no command /nosuch. /help lists\nthem. To begin a message with a slash,\nput a blank before it.\n"
        )
        yield* screen.type("\x03")
        yield* screen.type("/attach /etc\r")
        yield* screen.sees((text) => text.includes("/etc is a directory, and is not taken."))
        yield* screen.type("look at @nothing, please\r")
        yield* screen.sees((text) => text.includes("there is no file nothing; it is sent\n  as a word"))
      })
    )
  )
})
