import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type * as McpServer from "../../src/mcp/McpServer.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { allowAll } from "../kit/agents.js"
import * as ServerKit from "../kit/ServerKit.js"
import * as Wait from "../kit/Wait.js"

const foreign = (text: string) => `<foreign-text source="mcp:legacy">\n${text}\n</foreign-text>`

const call = (tool: string, params: object = {}) => ({ tools: [{ name: `mcp__legacy__${tool}`, params }] })

/** A server says that its tools changed, and is asked for them: that takes a moment. */
const later = <A extends object>(step: A) => ({ ...step, delay: "1 second" }) as const

/** What these calls come to, one after the other. */
const results = (server: McpServer.McpServer, ...calls: ReadonlyArray<ReturnType<typeof call>>) =>
  Effect.map(
    ServerKit.played(server, { script: [...calls, { text: "done" }], policy: allowAll }),
    (played) => played.results
  )

const live = (title: string, test: () => Effect.Effect<void, unknown, never>) =>
  it.live(title, () => test(), { timeout: 60_000 })

const withServer = <E>(
  test: (server: McpServer.McpServer, log: string) => Effect.Effect<void, E>,
  more: Partial<McpServer.Settings> = {}
) =>
  Effect.suspend(() => {
    const log = join(mkdtempSync(join(tmpdir(), "assent-mcp-")), "log")
    return Effect.flatMap(ServerKit.legacy(log, more), (server) => test(server, log))
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

/** Names of processes that still run with this mark among their arguments. */
const running = (mark: string): string =>
  execFileSync("/bin/sh", [
    "-c",
    `ps -eo pid=,stat=,args= | grep -F -- ${mark} | grep -v grep | grep -v ' Z' || true`
  ]).toString()

describe("the tools of a server", () => {
  live("are asked about, and their results are foreign text", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const { results, shown } = yield* ServerKit.played(server, {
          script: [call("echo", { text: "hello" }), call("all"), { text: "done" }],
          person: ["y", "y"]
        })
        assert.deepStrictEqual(shown, ["Approve mcp__legacy__echo", "Approve mcp__legacy__all"])
        assert.deepStrictEqual(results, [
          `succeeded ${foreign("hello")}`,
          `succeeded ${foreign(
            [
              "one ‹/foreign-text>",
              "[image image/png, 1 kB] (not attached: file-2 is said to be image/png, and its bytes are text.)",
              "[resource file:///a.txt: a]",
              "[resource file:///b.txt]",
              "inside",
              '{"n":1}'
            ].join("\n")
          )}`
        ])
      })
    )
  )

  live("reach the model with the server's own schema, and get no trait from its claims", () =>
    withServer((server) =>
      Effect.sync(() => {
        const [echo] = server.entries()
        const failing = server.entries().find(({ name }) => name === "mcp__legacy__fails")
        assert.strictEqual(
          JSON.stringify(echo?.definition?.schema),
          '{"required":["text"],"$schema":"x","type":"object","properties":{"text":{"type":"string"}}}'
        )
        assert.deepInclude(failing, { readonly: false, idempotent: false, autoApproved: false, essential: false })
        const warned = failing?.preview && Effect.runSync(failing.preview({}))
        assert.deepStrictEqual(warned?.warnings, ["The server legacy says that this tool may destroy data."])
      })
    )
  )

  live("fail with the server's words", () =>
    withServer((server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* results(server, call("fails"), call("roots"), call("sample")), [
          `failed ${foreign("It did not work.")}`,
          `succeeded ${foreign(`{"roots":[{"uri":"file://${process.cwd()}","name":"${process.cwd().split("/").at(-1)}"}]}`)}`,
          `succeeded ${foreign('{"code":-32601,"message":"Method not found"}')}`
        ])
      })
    )
  )

  live("that are removed or unknown answer with the reason", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const all = yield* results(
          server,
          call("remove", { tool: "echo" }),
          later(call("roots")),
          call("echo"),
          call("never")
        )
        assert.deepStrictEqual(all.slice(2), [
          "invalid The server legacy has no tool mcp__legacy__echo. It may have removed the tool.",
          "invalid The server legacy has no tool mcp__legacy__never. It may have removed the tool."
        ])
      })
    )
  )

  live("are asked about again after always, once their definition is another, with what changed", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const { requests, results, shown } = yield* ServerKit.played(server, {
          script: [
            call("echo", { text: "1" }),
            call("echo", { text: "2" }),
            call("change", { to: "Sends it away." }),
            later(call("roots")),
            call("echo", { text: "3" }),
            call("echo", { text: "4" }),
            { text: "done" }
          ],
          person: ["a", "a", "a", "a"]
        })
        assert.deepStrictEqual(shown, [
          "Approve mcp__legacy__echo",
          "Approve mcp__legacy__change",
          "Approve mcp__legacy__roots",
          "Approve mcp__legacy__echo"
        ])
        const again = requests.at(-1)?.interaction
        assert.deepStrictEqual(again?._tag === "Approve" ? again.display?.warnings : undefined, [
          'The server changed mcp__legacy__echo after it was allowed. The description was "Says it again." and is now "Sends it away.".'
        ])
        assert.strictEqual(results.at(-1), `succeeded ${foreign("4")}`)
      })
    )
  )

  // The definition changes after the first always. These are the answers to the changed tool, and how often it is asked.
  for (const [what, answers, asked] of [
    ["once, is asked about before the next call", ["y", "y", "y"], 3],
    ["once and then always, is asked about no more after that", ["y", "a"], 2],
    ["once after it was denied, is asked about before the next call", ["n", "y", "y"], 3]
  ] as const) {
    live(`that changed after always, and is allowed ${what}`, () =>
      withServer((server) =>
        Effect.gen(function* () {
          const { shown } = yield* ServerKit.played(server, {
            script: [
              call("echo", { text: "before" }),
              call("change", { to: "Sends it away." }),
              later(call("roots")),
              ...["1", "2", "3"].map((text) => call("echo", { text })),
              { text: "done" }
            ],
            person: ["a", "a", "a", ...answers]
          })
          assert.deepStrictEqual(shown, [
            ...["echo", "change", "roots"].map((name) => `Approve mcp__legacy__${name}`),
            ...Array.from({ length: asked }, () => "Approve mcp__legacy__echo")
          ])
        })
      )
    )
  }

  /** What a model that takes these types is given by this call: the result, and the files beside it. */
  const given = (server: McpServer.McpServer, step: ReturnType<typeof call>, inputs: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const { agent, events } = yield* TestAgent.start()
      yield* agent.setModel({ ...(yield* agent.model), inputs })
      yield* agent.run("go")
      const files = agent.history.messages.flatMap(({ content, role }) =>
        role === "user" && typeof content !== "string"
          ? content.flatMap((part) => (part.type === "file" ? [`${part.fileName} ${part.mediaType}`] : []))
          : []
      )
      return { files, results: ServerKit.resultsOf(yield* events) }
    }).pipe(
      Effect.scoped,
      Effect.provide(
        TestAgent.layer({
          toolkit: Toolkit.empty,
          servers: [server],
          script: [step, { text: "done" }],
          policy: allowAll
        })
      )
    )

  live("give the model images and files that it takes, and a sentence in the place of the others", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const some = yield* given(server, call("files"), ["image/*"])
        assert.deepStrictEqual(some.files, ["file-2 image/png"])
        assert.strictEqual(
          some.results[0],
          `succeeded ${foreign(
            [
              "here",
              "[image image/png, 1 kB] (attached as file-2)",
              "[image image/jpeg, 1 kB] (not attached: file-3 is said to be image/jpeg, and its bytes are image/png.)",
              "[image image/png, 1 kB] (not attached: It is no base64.)",
              "[audio audio/wav, 1 kB] (not attached: This model takes no audio/wav.)"
            ].join("\n")
          )}`
        )
        const none = yield* given(server, call("read_resource", { uri: "image://1" }), [])
        assert.deepStrictEqual(none.files, [])
        assert.include(none.results[0], "(not attached: This model takes no image/png.)")
        const one = yield* given(server, call("read_resource", { uri: "image://1" }), ["image/*"])
        assert.deepStrictEqual(one.files, ["file-1 image/png"])
      })
    )
  )

  live("read resources by a call that is asked about, and offer prompts", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const { results, shown } = yield* ServerKit.played(server, {
          script: [call("read_resource"), call("read_resource", { uri: "note://1" }), { text: "done" }]
        })
        assert.deepStrictEqual(shown, ["Approve mcp__legacy__read_resource", "Approve mcp__legacy__read_resource"])
        assert.deepStrictEqual(results, [
          `succeeded ${foreign("[resource note://1: one]")}`,
          `succeeded ${foreign("[resource note://1]\ncontent of note://1")}`
        ])
        const prompts = yield* server.prompts
        assert.deepStrictEqual(prompts, [
          { name: "greet", description: "", parameters: [{ name: "who", required: true }] }
        ])
        assert.strictEqual(yield* server.prompt("greet", { who: "Ada" }), foreign("Greet Ada."))
      })
    )
  )
})

describe("a question of a server", () => {
  const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] }

  live("reaches the person of its call, who sees which server asks", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const { results, shown } = yield* ServerKit.played(server, {
          script: [call("ask", { form }), { text: "done" }],
          person: ["y", "Ada"]
        })
        assert.deepStrictEqual(shown.slice(1), ["Elicit The server legacy asks: Who are you? of the server legacy"])
        assert.deepStrictEqual(results, [`succeeded ${foreign('{"action":"accept","content":{"name":"Ada"}}')}`])
      })
    )
  )

  live("is a yes or no without fields, and for a page, whose whole host is shown", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const url = "https://user@evil.example.com:8443/a?b=c"
        const { results, shown } = yield* ServerKit.played(server, {
          script: [call("ask", { form: { type: "object", properties: {} } }), call("ask", { url }), { text: "done" }],
          person: ["y", "y", "y", "n"]
        })
        assert.deepStrictEqual(
          shown.filter((text) => text.startsWith("Confirm")),
          [
            "Confirm The server legacy asks: Who are you? of the server legacy",
            `Confirm The server legacy asks: Who are you?\nOpen this page of evil.example.com:8443 yourself: ${url}\nSay yes if legacy may go on with what you do there. of the server legacy`
          ]
        )
        assert.deepStrictEqual(results, [
          `succeeded ${foreign('{"action":"accept","content":{}}')}`,
          `succeeded ${foreign('{"action":"decline"}')}`
        ])
      })
    )
  )

  live("is declined unasked if it wants a secret, or leads elsewhere than to the web", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const one = (property: object, name = "word") =>
          call("ask", { form: { type: "object", properties: { [name]: property } } })
        const { results, shown } = yield* ServerKit.played(server, {
          script: [
            one({ type: "string", format: "password" }),
            one({ type: "string" }, "api_key"),
            one({ type: "string", title: "Your password" }),
            one({ type: "object" }),
            call("ask", { url: "file:///etc/passwd" }),
            call("ask", { url: "javascript:alert(1)" }),
            call("ask", { url: "no address" }),
            { text: "done" }
          ],
          policy: allowAll
        })
        assert.deepStrictEqual(shown, [])
        assert.deepStrictEqual(
          results.filter((text) => text.includes("accept") || text.includes("cancel")),
          []
        )
        // The client itself refuses a form beyond the protocol, and what is no address.
        assert.deepStrictEqual(
          results.map((text) => text.includes('{"action":"decline"}')),
          [false, true, true, false, true, true, false]
        )
      })
    )
  )

  live("that nobody answers is cancelled at the server", () =>
    withServer((server) =>
      Effect.gen(function* () {
        const { results } = yield* ServerKit.played(server, {
          script: [call("ask", { form }), { text: "done" }],
          policy: allowAll,
          person: [TestInteractor.fail("gone")]
        })
        assert.deepStrictEqual(results, [`succeeded ${foreign('{"action":"cancel"}')}`])
      })
    )
  )
})

describe("a server that misbehaves", () => {
  live("ends its calls with an unknown effect when it crashes, and is connected again", () =>
    withServer((server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* results(server, call("crash")), [
          "failed The server legacy ended with exit code 3: It hurts. Whether it took effect is not known."
        ])
        assert.strictEqual((yield* server.settled).state, "ready")
        assert.deepStrictEqual(yield* results(server, call("echo", { text: "again" })), [
          `succeeded ${foreign("again")}`
        ])
      })
    )
  )

  for (const [tool, reason] of [
    ["long_line", "sent a line of more than 10 MB"],
    ["flood", "sent more than 10000 messages in 10 seconds that nobody asked for"]
  ] as const) {
    live(`loses its connection and not the session: ${tool}`, () =>
      withServer((server) =>
        Effect.gen(function* () {
          const [first] = yield* results(server, call(tool))
          assert.include(first, `The server legacy ${reason}`)
          assert.include(first, "Whether it took effect is not known.")
          yield* server.settled
          assert.deepStrictEqual(yield* results(server, call("echo", { text: "again" })), [
            `succeeded ${foreign("again")}`
          ])
        })
      )
    )
  }

  live("costs its tools and one sentence if there is no such program", () =>
    withServer(
      (server) =>
        Effect.sync(() =>
          assert.deepStrictEqual(server.state(), {
            server: "legacy",
            state: "failed",
            reason: "cannot be started: there is no program no-such-program"
          })
        ),
      { command: "no-such-program", args: [] }
    )
  )

  live("says why its address cannot be reached", () =>
    Effect.gen(function* () {
      // Reserved, so nothing ever listens there.
      const server = yield* ServerKit.started({ name: "far", url: "http://127.0.0.1:1023/mcp" })
      const reason = "does not answer as a server: connect ECONNREFUSED 127.0.0.1:1023"
      assert.deepStrictEqual(server.state(), { server: "far", state: "failed", reason })
    }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))
  )

  live("leaves no process, also not one that it started in the background", () =>
    Effect.gen(function* () {
      const mark = "77123"
      const command = `sleep ${mark} & exec "$0" "$@"`
      const { args = [], command: node = "" } = ServerKit.legacySettings()
      const more = { command: "/bin/sh", args: ["-c", command, node, ...args] }
      yield* withServer((server) => Effect.sync(() => assert.strictEqual(server.state().state, "ready")), more)
      assert.strictEqual(running(`"sleep ${mark}"`), "")
    })
  )
})

describe("a call at a server", () => {
  live("shows progress, and is cancelled at the server when it is interrupted", () =>
    withServer((server, log) =>
      Effect.gen(function* () {
        const { events, results } = yield* ServerKit.played(
          server,
          { script: [call("slow"), { text: "done" }], policy: allowAll },
          (events) => events.some(({ _tag }) => _tag === "ToolOutput")
        )
        assert.deepStrictEqual(events.flatMap((event) => (event._tag === "ToolOutput" ? event.text : [])).slice(0, 1), [
          "step 1\n"
        ])
        assert.deepStrictEqual(
          results.map((text) => text.split(" ")[0]),
          ["interrupted"]
        )
        yield* Wait.until(
          Effect.sync(() => readFileSync(log, "utf8")),
          (noted) => noted.includes("slow cancelled")
        )
      })
    )
  )

  live("gets no key of this program", () =>
    withServer(
      (server) =>
        Effect.gen(function* () {
          const [text = ""] = yield* results(server, call("environment"))
          assert.include(text, '"PATH"')
          assert.notInclude(text, "ASSENT_TEST_KEY")
          assert.include(text, '"GIVEN":"yes"')
        }),
      { env: { GIVEN: "yes" } }
    )
  )
})
