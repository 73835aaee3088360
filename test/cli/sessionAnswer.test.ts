/** Questions of a session that no process runs, answered from the command line: the session goes on with the answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { userInfo } from "node:os"
import * as Program from "../kit/Program.js"

/** Whoever runs the tests, whatever the environment calls them. */
const user = userInfo().username

const ask = (id: string) => ({ name: "ask_user", id, params: { prompt: `What of ${id}?` } })
const run = (id: string, command: string) => ({ name: "run_command", id, params: { command } })

/** The requests that a session waits for, by what is asked. */
const open = (at: Program.Place, sessionId: string) =>
  Effect.map(at.call(["sessions", "answer", sessionId, "--json"]), ({ code, stdout }) => {
    assert.strictEqual(code, 0)
    const requests = Program.linesOf(stdout).map((line) => JSON.parse(line).request)
    return new Map<string, string>(
      requests.map(({ interaction, requestId }) => [interaction.prompt ?? interaction.argumentsSummary, requestId])
    )
  })

/** Answers, and expects it to be kept. */
const answer = (at: Program.Place, ...words: ReadonlyArray<string>) =>
  Effect.map(
    at.call(["sessions", "answer", ...words], { env: { USER: "mallory", LOGNAME: "mallory" } }),
    ({ code, stderr, stdout }) => {
      assert.deepStrictEqual([code, stdout], [0, ""], stderr)
      return stderr
    }
  )

const sessionOf = (at: Program.Place) =>
  Effect.map(
    at.call(["sessions", "list", "--json"]),
    ({ stdout }): string => JSON.parse(stdout.split("\n")[0] ?? "").rootSessionId
  )

describe.concurrent("a session that nobody runs", () => {
  it.scopedLive("halts, is answered, and does what was allowed once", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        { tools: [run("one", "echo one >> effects"), run("two", "echo two >> effects")] },
        { expect: { contains: "User comment: not that one" }, text: "One of two." }
      )
      assert.strictEqual((yield* at.call(["run", "--model", model, "go"])).code, 3)
      const id = yield* sessionOf(at)
      const [[first = "", request = ""] = []] = yield* open(at, id)
      assert.include(first, "echo one")
      assert.include(yield* answer(at, id, request, "y"), `assent run --resume ${id}`)
      // Goes on to the next question, which the other answer is for.
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 3)
      assert.strictEqual(yield* at.read("workspace/effects"), "one\n")
      const [[second = "", next = ""] = []] = yield* open(at, id)
      assert.include(second, "echo two")
      yield* answer(at, id, next, "c: not that one")
      const end = yield* at.call(["run", "--resume", id])
      assert.deepStrictEqual([end.code, end.stdout], [0, "One of two.\n"])
      assert.strictEqual(yield* at.read("workspace/effects"), "one\n")
      const audit = yield* at.call(["audit", "show", id])
      assert.strictEqual(audit.code, 0)
      assert.match(audit.stdout, new RegExp(`granted .* by ${user}\\b`))
      assert.match(audit.stdout, new RegExp(`denied .* by ${user}\\b`))
      assert.strictEqual((yield* at.call(["sessions", "answer", id, next, "y"])).code, 2)
    })
  )

  it.scopedLive("is asked again about a file that is another by now, and an answer counts for what was shown", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/f", "old\n")
      const write = { name: "write_file", id: "w", params: { path: "f", content: "new\n" } }
      const model = yield* at.script({ tools: [write] }, { text: "Written." })
      assert.strictEqual((yield* at.call(["run", "--model", model, "go"])).code, 3)
      const id = yield* sessionOf(at)
      const requestOf = Effect.map(open(at, id), (requests) => {
        assert.strictEqual(requests.size, 1)
        return [...requests.values()][0] ?? ""
      })
      const first = yield* requestOf
      yield* answer(at, id, first, "y")
      yield* at.write("workspace/f", "of somebody else\n")
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 3)
      assert.strictEqual(yield* at.read("workspace/f"), "of somebody else\n")
      const second = yield* requestOf
      assert.notStrictEqual(second, first)
      assert.include((yield* at.call(["sessions", "answer", id, first, "y"])).stderr, "was settled before (cancelled)")
      assert.include((yield* at.call(["sessions", "answer", id, second])).stdout, "-of somebody else")
      yield* answer(at, id, second, "y")
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 0)
      assert.strictEqual(yield* at.read("workspace/f"), "new\n")
    })
  )

  it.scopedLive("runs what has a word that stands for a key, and says of a call with a key that it is lost", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const key = "sk-abcdefghijklmnop1234"
      const model = yield* at.script({ tools: [run("one", "echo none > f")] }, { text: "Done." })
      assert.strictEqual((yield* at.call(["run", "--model", model, "go"], { env: { OPENAI_API_KEY: "none" } })).code, 3)
      const id = yield* sessionOf(at)
      const [[what = "", request = ""] = []] = yield* open(at, id)
      assert.include(what, "echo none > f")
      assert.notInclude(yield* answer(at, id, request, "y"), "secret")
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 0)
      assert.strictEqual(yield* at.read("workspace/f"), "none\n")
      const other = yield* at.script({ tools: [run("two", `echo ${key} > g`)] }, { text: "Done." })
      assert.strictEqual((yield* at.call(["run", "--model", other, "go"])).code, 3)
      const next = yield* sessionOf(at)
      const [[, lost = ""] = []] = yield* open(at, next)
      assert.include(yield* answer(at, next, lost, "y"), "its call holds a secret, which is not stored")
      assert.strictEqual((yield* at.call(["run", "--resume", next])).code, 0)
      assert.isFalse(yield* at.exists("workspace/g"))
    })
  )

  it.scopedLive("is killed with questions of its own and of a child's open, and hears an answer to each", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/profiles/asker.json", { name: "asker", description: "asks", plugins: ["clarification"] })
      const agents = {
        main: [
          { tools: [{ name: "spawn_subagent", id: "spawning", params: { task: "ask", profile: "asker" } }] },
          { tools: [ask("a"), ask("b")] },
          { expect: { contains: "for b" }, text: "Heard." },
          { text: "All told." }
        ],
        asker: [{ tools: [ask("c")] }, { expect: { contains: "for c" }, text: "Thanks." }]
      }
      const model = `script:${yield* at.write("family.json", { version: 1, agents })}`
      const policy = yield* at.write("policy.json", { version: 1, whitelist: { tools: ["spawn_subagent"] } })
      const first = yield* at.start(["run", "--jsonl", "--model", model, "--policy", policy, "go"])
      // A peer is shown one dialog at a time; the events tell of all.
      for (let raised = 0; raised < 3; raised++) yield* first.json("InteractionRequested")
      const id = yield* sessionOf(at)
      const refused = yield* at.call(["sessions", "answer", id, "req_any", "x"])
      assert.strictEqual(refused.code, 2)
      const requests = yield* open(at, id)
      assert.deepStrictEqual([...requests.keys()].sort(), ["What of a?", "What of b?", "What of c?"])
      const early = yield* at.call(["sessions", "answer", id, requests.get("What of a?") ?? "", "x"])
      assert.strictEqual(early.code, 2)
      assert.include(early.stderr, `is run by process ${first.pid}`)
      yield* first.signal("SIGKILL")
      yield* first.exit
      for (const [prompt, requestId] of requests) {
        yield* answer(at, id, requestId, `for ${prompt.replace("What of ", "").replace("?", "")}`)
      }
      const again = yield* at.call(["sessions", "answer", id, requests.get("What of a?") ?? "", "other"])
      assert.strictEqual(again.code, 2)
      assert.include(again.stderr, `${user} has answered it`)
      const end = yield* at.call(["run", "--json", "--policy", policy, "--resume", id])
      assert.strictEqual(end.code, 0, end.stderr)
      const answers = Program.events(end.stdout).flatMap((event) =>
        event._tag === "InteractionAnswered" ? [[event.value, event.by]] : []
      )
      assert.deepStrictEqual(
        answers.sort(),
        ["a", "b", "c"].map((name) => [`for ${name}`, user])
      )
      assert.strictEqual((yield* at.call(["audit", "verify"])).code, 0)
    })
  )

  it.scopedLive("is listed with what it waits for, and answered, wherever one is", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const none = yield* at.call(["sessions", "waiting"])
      assert.deepStrictEqual([none.code, none.stdout], [0, ""])
      assert.include(none.stderr, "no session waits for an answer")
      const model = yield* at.script(
        { tools: [run("one", "touch made"), ask("it\u001b[2J")] },
        { text: "Done.", expect: { contains: "the left one" } }
      )
      yield* at.call(["run", "--model", model, "do it"])
      const id = yield* sessionOf(at)
      yield* at.makeDirectory("other")
      const there = { cwd: at.path("other") }
      const { code, stdout } = yield* at.call(["sessions", "waiting"], there)
      assert.strictEqual(code, 0)
      assert.match(
        stdout,
        new RegExp(
          `^${at.path("workspace")}\n {2}(req_\\S+) {2}since \\w+ \\d\\d:\\d\\d \\(\\d+[^\n]*\\) {2}main {2}Approve: run_command[^\n]*\n {4}in ${id} {2}do it\n {4}assent sessions --workspace ${at.path("workspace")} answer ${id} \\1 ANSWER\n`
        )
      )
      const json = yield* at.call(["sessions", "waiting", "--json"], there)
      const lines = Program.linesOf(json.stdout).map((line) => JSON.parse(line))
      const { request, rootSessionId, workspace } = lines[0] ?? {}
      assert.deepStrictEqual([rootSessionId, workspace], [id, at.path("workspace")])
      assert.strictEqual(request.interaction.tool, "run_command")
      const kept = yield* at.call(["sessions", "answer", id, request.requestId, "y"], there)
      assert.strictEqual(kept.code, 0, kept.stderr)
      assert.include(kept.stderr, `assent run --workspace ${at.path("workspace")} --resume ${id}`)
      assert.include((yield* at.call(["sessions", "waiting"], there)).stdout, `answered by ${user}; counts when`)
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 3)
      assert.isTrue(yield* at.exists("workspace/made"))
      const next = yield* at.call(["sessions", "waiting"], there)
      assert.include(next.stdout, "What of it")
      assert.notInclude(next.stdout, "\u001b")
      const [[, last = ""] = []] = yield* open(at, id)
      yield* answer(at, id, last, "the left one")
      assert.deepStrictEqual((yield* at.call(["run", "--resume", id])).stdout, "Done.\n")
      assert.strictEqual((yield* at.call(["sessions", "waiting"], there)).stdout, "")
      assert.strictEqual((yield* at.call(["sessions", "waiting", id])).code, 2)
    })
  )

  it.scopedLive("is refused what is no answer, with exit code 2 and one sentence", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ tools: [run("one", "touch made")] }, { text: "Done." })
      yield* at.call(["run", "--model", model, "go"])
      const id = yield* sessionOf(at)
      const [[, request = ""] = []] = yield* open(at, id)
      for (const words of [
        ["ses_nobody", request, "y"],
        [id, "req_nobody", "y"],
        [id, request, "maybe"],
        [id, request, ""],
        [id, request, "--yes"],
        [id, "y"]
      ]) {
        const { code, stderr, stdout } = yield* at.call(["sessions", "answer", ...words])
        assert.deepStrictEqual([code, stdout], [2, ""], words.join(" "))
        assert.match(stderr, /^assent: \S/)
      }
      assert.strictEqual((yield* at.call(["run", "--resume", id])).code, 3)
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )
})
