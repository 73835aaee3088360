import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as AcpAgent from "../../src/acp/AcpAgent.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"
import * as HostSessions from "../../src/host/HostSessions.js"
import * as AcpEditor from "../kit/AcpEditor.js"
import * as Runs from "../kit/Runs.js"
import * as ServerKit from "../kit/ServerKit.js"

const { choose, short, text } = AcpEditor

/** A workspace, a host with a model that plays these steps, or else with the stand-in for one, and editors at it. */
const world = (script?: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const root = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-acp-")))),
      (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
    )
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    for (const name of ["work", "other", "config", "home"]) fs.mkdirSync(at(name))
    const environment = Environment.of({
      HOME: at("home"),
      ASSENT_CONFIG_DIR: at("config"),
      ASSENT_STATE_DIR: at("state"),
      ASSENT_SANDBOX: "off"
    })
    const model = `script:${at("script.json")}`
    if (script !== undefined)
      fs.writeFileSync(at("script.json"), JSON.stringify({ version: 1, agents: { main: script } }))
    const host = yield* Host.make({
      environment,
      notify: () => {},
      ...(script === undefined ? {} : { overrides: { model } })
    })
    const editor = (options?: AcpEditor.Options) =>
      Effect.gen(function* () {
        const toAgent = new TransformStream<Uint8Array, Uint8Array>()
        const fromAgent = new TransformStream<Uint8Array, Uint8Array>()
        const pipes = { input: toAgent.readable, output: fromAgent.writable }
        const serving = yield* Effect.forkScoped(
          Effect.scoped(AcpAgent.serve(pipes, { host: HostSessions.make(host), principal: "ann" }))
        )
        const editor = yield* AcpEditor.open({ input: toAgent.writable, output: fromAgent.readable }, options)
        return { ...editor, serving }
      })
    return {
      at,
      cwd: at("work"),
      host,
      editor,
      read: (file: string) => fs.readFileSync(at("work", file), "utf8")
    }
  })

const begun = (editor: AcpEditor.Editor, cwd: string) =>
  Effect.map(editor.request("session/new", { cwd, mcpServers: [] }), ({ sessionId }) => sessionId)

const live = <A, E>(body: Effect.Effect<A, E, import("effect/Scope").Scope | NodeContext.NodeContext>) =>
  Effect.provide(body, NodeContext.layer)

describe("an editor", () => {
  it.scopedLive("gets all updates before the answer, each as the protocol has it", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor, read } = yield* world()
        const at = yield* editor({ answers: () => choose("y") })
        const sessionId = yield* begun(at, cwd)
        const answer = yield* at.request("session/prompt", { sessionId, prompt: text("write a.txt: hi") })
        assert.deepStrictEqual(answer, { stopReason: "end_turn" })
        assert.deepInclude(at.lines.at(-1), { result: { stopReason: "end_turn" } })
        assert.strictEqual(read("a.txt"), "hi")
        assert.match(AcpEditor.saying(at.updates), /Created a\.txt/)
        assert.deepStrictEqual(
          at.updates.map(short).filter((line) => /^(?:call|update)/.test(line)),
          ["call pending", "update in_progress", "update completed"]
        )
        AcpEditor.judge(at)
      })
    )
  )

  it.scopedLive("brings tool servers to its session alone, and their calls ask as ever", () =>
    live(
      Effect.gen(function* () {
        const { command = "", args = [] } = ServerKit.legacySettings()
        const {
          at: place,
          cwd,
          editor,
          host
        } = yield* world([
          { tools: [{ name: "list_directory", params: { path: "." } }] },
          { tools: [{ name: "mcp__my-tools__echo", params: { text: "hello" } }] },
          { text: "done" }
        ])
        const at = yield* editor({ answers: () => choose("y"), capabilities: { session: { notices: {} } } })
        const servers = [{ name: "my tools", command, args: [...args, place("log")], env: [] }]
        const { sessionId } = yield* at.request("session/new", { cwd, mcpServers: servers })
        yield* at.sees(() =>
          at.updates.find(
            (update) =>
              update.sessionUpdate === "notice" && update.title === 'The tool server "my tools" is named my-tools here.'
          )
        )
        const [session] = yield* host.live
        yield* at.sees(() => session?.agent.tools.get("mcp__my-tools__echo"))
        yield* at.request("session/prompt", { sessionId, prompt: text("go") })
        assert.lengthOf(at.questions, 1)
        assert.include(JSON.stringify(at.updates), "hello")
        AcpEditor.judge(at)
      })
    )
  )

  it.scopedLive("offers prompts of tool servers as commands, and sends one as foreign text", () =>
    live(
      Effect.gen(function* () {
        const { command = "", args = [] } = ServerKit.legacySettings()
        const { at: place, cwd, editor, host } = yield* world([{ text: "Hello, Ada." }])
        const at = yield* editor()
        const servers = [{ name: "my", command, args: [...args, place("log")], env: [] }]
        const { sessionId } = yield* at.request("session/new", { cwd, mcpServers: servers })
        const offered = yield* at.sees(() =>
          at.updates
            .flatMap((update) => (update.sessionUpdate === "available_commands_update" ? update.availableCommands : []))
            .find(({ name }) => name === "mcp:my:greet")
        )
        assert.deepStrictEqual(offered, {
          name: "mcp:my:greet",
          description: "A prompt of a tool server",
          input: { hint: "WHO" }
        })
        const prompt = (line: string) => at.request("session/prompt", { sessionId, prompt: text(line) })
        assert.deepStrictEqual(yield* prompt("/mcp:my:greet"), { stopReason: "end_turn" })
        assert.include(AcpEditor.saying(at.updates), "The prompt needs arguments: /mcp:my:greet WHO")
        assert.deepStrictEqual(yield* prompt("/mcp:my:greet Ada"), { stopReason: "end_turn" })
        assert.include(AcpEditor.saying(at.updates), "Hello, Ada.")
        const [session] = yield* host.live
        assert.include(JSON.stringify(session?.agent.history.messages), "Greet Ada.")
        AcpEditor.judge(at)
      })
    )
  )

  const withFiles = { fs: { readTextFile: true, writeTextFile: true } }

  it.scopedLive(
    "shows its unsaved words to file tools, and takes their changes; other files are written on the disk",
    () =>
      live(
        Effect.gen(function* () {
          const edit = (path: string, old_text: string, new_text: string) => ({
            tools: [{ name: "edit_file", params: { path, old_text, new_text } }]
          })
          const {
            at: place,
            cwd,
            editor,
            read
          } = yield* world([
            { tools: [{ name: "read_file", params: { path: "open.txt" } }] },
            edit("open.txt", "typed", "changed"),
            edit("saved.txt", "disk", "changed"),
            edit("latin.txt", "a", "b"),
            { text: "done" }
          ])
          fs.writeFileSync(place("work", "open.txt"), "saved\r\n")
          fs.writeFileSync(place("work", "saved.txt"), "on the disk\n")
          fs.writeFileSync(place("work", "latin.txt"), Buffer.from([0xe4, 0x61, 0x0a]))
          const buffers = new Map([
            [place("work", "open.txt"), "typed\n"],
            [place("work", "saved.txt"), "on the disk\n"],
            [place("work", "latin.txt"), "not this\n"],
            [place("home", "secret.txt"), "secret\n"]
          ])
          const at = yield* editor({ answers: () => choose("y"), capabilities: withFiles, buffers })
          const sessionId = yield* begun(at, cwd)
          yield* at.request("session/prompt", { sessionId, prompt: text("go") })
          assert.include(JSON.stringify(at.updates), "typed")
          // The question shows the difference from what the person sees.
          const [asked] = at.questions
          const [diff] = asked?.params.toolCall.content ?? []
          assert.deepInclude(diff, { type: "diff", oldText: "typed\r\n", newText: "changed\r\n" })
          assert.strictEqual(buffers.get(place("work", "open.txt")), "changed\r\n")
          assert.strictEqual(read("open.txt"), "saved\r\n")
          assert.strictEqual(read("saved.txt"), "on the changed\n")
          assert.strictEqual(buffers.get(place("work", "saved.txt")), "on the disk\n")
          assert.deepStrictEqual([...fs.readFileSync(place("work", "latin.txt"))], [0xe4, 0x62, 0x0a])
          assert.lengthOf(at.questions, 3)
          AcpEditor.judge(at)
        })
      )
  )

  it.scopedLive("is asked for no file that the tools may not read", () =>
    live(
      Effect.gen(function* () {
        const paths = ["../home/secret.txt", "link.txt", ".git/config", "gone.txt"]
        const {
          at: place,
          cwd,
          editor
        } = yield* world([{ tools: paths.map((path) => ({ name: "read_file", params: { path } })) }, { text: "done" }])
        fs.writeFileSync(place("home", "secret.txt"), "secret on the disk\n")
        fs.symlinkSync(place("home", "secret.txt"), place("work", "link.txt"))
        const buffers = new Map(paths.map((file) => [path.resolve(cwd, file), "secret in the editor\n"]))
        const at = yield* editor({ answers: () => choose("n"), capabilities: withFiles, buffers })
        const sessionId = yield* begun(at, cwd)
        yield* at.request("session/prompt", { sessionId, prompt: text("go") })
        assert.notInclude(JSON.stringify(at.updates), "secret in the editor")
        assert.deepStrictEqual(
          at.lines.filter(({ method }) => method?.startsWith("fs/")),
          []
        )
      })
    )
  )

  it.scopedLive("that takes no text, or changes it meanwhile, keeps its words", () =>
    live(
      Effect.gen(function* () {
        const {
          at: place,
          cwd,
          editor,
          read
        } = yield* world([
          { tools: [{ name: "read_file", params: { path: "open.txt" } }] },
          { tools: [{ name: "write_file", params: { path: "open.txt", content: "new" } }] },
          { text: "done" }
        ])
        fs.writeFileSync(place("work", "open.txt"), "saved\n")
        const file = place("work", "open.txt")
        const tried = (capabilities: object, typing: boolean) =>
          Effect.gen(function* () {
            const buffers = new Map([[file, "typed\n"]])
            const at = yield* editor({
              capabilities,
              buffers,
              answers: () => {
                if (typing) buffers.set(file, "typed more\n")
                return choose("y")
              }
            })
            const sessionId = yield* begun(at, cwd)
            yield* at.request("session/prompt", { sessionId, prompt: text("go") })
            assert.strictEqual(read("open.txt"), "saved\n")
            return [buffers.get(file), JSON.stringify(at.updates)] as const
          })
        const [mute, said] = yield* tried({ fs: { readTextFile: true } }, false)
        assert.strictEqual(mute, "typed\n")
        assert.include(said, "unsaved changes in an editor that takes no text")
        const [typed, refused] = yield* tried({ fs: { readTextFile: true, writeTextFile: true } }, true)
        assert.strictEqual(typed, "typed more\n")
        assert.include(refused, "Nothing was written")
      })
    )
  )

  it.scopedLive("denies by an option, by closing the dialog, and by nothing that was not offered", () =>
    live(
      Effect.gen(function* () {
        const { at: place, cwd, editor } = yield* world()
        const answers = [
          choose("n"),
          { outcome: { outcome: "cancelled" } },
          ...Array.from({ length: 5 }, () => choose("z"))
        ]
        const at = yield* editor({ answers: () => answers.shift() })
        const sessionId = yield* begun(at, cwd)
        for (let n = 0; n < 3; n++) yield* at.request("session/prompt", { sessionId, prompt: text("write a.txt: hi") })
        assert.isFalse(fs.existsSync(place("work", "a.txt")))
        assert.lengthOf(answers, 0)
        assert.lengthOf(
          at.updates.filter((update) => "status" in update && update.status === "failed"),
          3
        )
      })
    )
  )

  it.scopedLive("that leaves keeps its question for the next one, under its id", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor, read } = yield* world()
        const first = yield* editor()
        const sessionId = yield* begun(first, cwd)
        yield* Effect.fork(first.request("session/prompt", { sessionId, prompt: text("write a.txt: hi") }))
        const asked = yield* first.question(0)
        yield* first.leave
        yield* Fiber.await(first.serving)
        const second = yield* editor()
        yield* second.request("session/load", { sessionId, cwd, mcpServers: [] })
        const replayed = second.updates.map(short)
        assert.deepStrictEqual(replayed, [
          "user: write a.txt: hi",
          "session_info_update",
          "agent: I will write a.txt.",
          "call pending"
        ])
        assert.lengthOf(second.questions, 0)
        const again = yield* second.question(0)
        assert.strictEqual(again.params._meta?.["assent/requestId"], asked.params._meta?.["assent/requestId"])
        const next = yield* Effect.fork(second.request("session/prompt", { sessionId, prompt: text("read a.txt") }))
        again.answer(choose("y"))
        assert.deepStrictEqual(yield* Fiber.join(next), { stopReason: "end_turn" })
        assert.strictEqual(read("a.txt"), "hi")
        AcpEditor.judge(second)
      })
    )
  )

  it.scopedLive("resumes without the past, and loads a session that it has open already", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor } = yield* world()
        const at = yield* editor()
        const sessionId = yield* begun(at, cwd)
        yield* at.request("session/prompt", { sessionId, prompt: text("list") })
        const before = at.updates.length
        yield* at.request("session/resume", { sessionId, cwd })
        assert.deepStrictEqual(at.updates.slice(before).map(short), [])
        yield* at.request("session/load", { sessionId, cwd, mcpServers: [] })
        assert.include(at.updates.slice(before).map(short), "user: list")
        yield* at.request("session/prompt", { sessionId, prompt: text("list") })
        const ends = at.updates
          .slice(before)
          .map(short)
          .filter((line) => line === "update completed")
        // One of the past, and one that was not sent twice.
        assert.lengthOf(ends, 2)
      })
    )
  )

  it.scopedLive("steers a turn by a second prompt, and cancels both", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor } = yield* world()
        const at = yield* editor({ answers: () => choose("y") })
        const sessionId = yield* begun(at, cwd)
        const prompt = (words: string) => Effect.fork(at.request("session/prompt", { sessionId, prompt: text(words) }))
        const running = () => at.updates.find((update) => "status" in update && update.status === "in_progress")
        const first = yield* prompt("run sleep 1")
        yield* at.sees(running)
        const second = yield* prompt("run echo steered")
        assert.deepStrictEqual(yield* Fiber.join(Fiber.zip(first, second)), [
          { stopReason: "end_turn" },
          { stopReason: "end_turn" }
        ])
        assert.include(AcpEditor.saying(at.updates), "steered")
        assert.notInclude(at.updates.map(short).join("\n"), "user:")
        const third = yield* prompt("run sleep 30")
        yield* at.sees(() =>
          at.questions.length === 3 && at.updates.map(short).at(-1) === "update in_progress" ? true : undefined
        )
        const fourth = yield* prompt("and then list")
        yield* at.cancel(sessionId)
        assert.deepStrictEqual((yield* Fiber.join(third)).stopReason, "cancelled")
        yield* Fiber.join(fourth)
      })
    )
  )

  it.scopedLive("whose dialog somebody else answers sees it closed", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor, host, read } = yield* world()
        const at = yield* editor()
        const sessionId = yield* begun(at, cwd)
        const channel = yield* QueueChannel.make({ id: "other", dialogs: "unbounded" })
        const [session] = yield* host.live
        yield* session?.attach(channel.interactor) ?? Effect.void
        const turn = yield* Effect.fork(at.request("session/prompt", { sessionId, prompt: text("write a.txt: hi") }))
        const question = yield* at.question(0)
        const [dialog] = yield* at.sees(() => {
          const open = Effect.runSync(channel.open)
          return open.length > 0 ? open : undefined
        })
        yield* channel.answerText(dialog?.requestId ?? "", "y")
        yield* at.sees(() => (question.isWithdrawn() ? true : undefined))
        // The answer to a withdrawn request counts for nothing.
        question.answer(choose("n"))
        yield* Fiber.join(turn)
        assert.strictEqual(read("a.txt"), "hi")
      })
    )
  )

  it.scopedLive("sets the mode and the model, and commands of its own", () =>
    live(
      Effect.gen(function* () {
        const { cwd, editor } = yield* world()
        const at = yield* editor()
        const { configOptions, sessionId } = yield* at.request("session/new", { cwd, mcpServers: [] })
        assert.deepStrictEqual(
          configOptions?.map(({ category, id }) => [id, category]),
          [
            ["mode", "mode"],
            ["model", "model"]
          ]
        )
        const set = (configId: string, value: string) => ({ sessionId, configId, value })
        const planned = yield* at.request("session/set_config_option", set("mode", "plan"))
        assert.deepInclude(planned.configOptions[0], { currentValue: "plan" })
        yield* at.sees(() => at.updates.find(({ sessionUpdate }) => sessionUpdate === "config_option_update"))
        assert.strictEqual(
          yield* at.refusal("session/set_config_option", set("mode", "all")),
          "-32602 The mode is one of ask, plan, deny, allow."
        )
        assert.match(yield* at.refusal("session/set_config_option", set("model", "anthropic/x")), /^-32602 .*API key/)
        assert.strictEqual(
          yield* at.refusal("session/set_config_option", set("x", "y")),
          '-32602 There is no option "x".'
        )
        yield* at.request("session/set_config_option", set("model", "offline/offline"))
        yield* at.request("session/prompt", { sessionId, prompt: text("/permissions status") })
        assert.match(AcpEditor.saying(at.updates), /mode: plan/)
        AcpEditor.judge(at)
      })
    )
  )

  it.scopedLive("lists, closes and deletes sessions, also those that nobody spoke to", () =>
    live(
      Effect.gen(function* () {
        const { at: place, cwd, editor } = yield* world()
        const at = yield* editor()
        const ids: Array<string> = []
        for (let n = 0; n < 3; n++) ids.push(yield* begun(at, cwd))
        yield* begun(at, place("other"))
        const { sessions } = yield* at.request("session/list", { cwd })
        assert.sameMembers(
          sessions.map(({ sessionId }) => sessionId),
          ids
        )
        const [first = ""] = ids
        assert.match(
          yield* at.refusal("session/delete", { sessionId: first }),
          /^-32603 .*is running\. Close it first\./
        )
        yield* at.request("session/close", { sessionId: first })
        assert.match(yield* at.refusal("session/prompt", { sessionId: first, prompt: text("x") }), /^-32002/)
        yield* at.request("session/delete", { sessionId: first })
        assert.lengthOf((yield* at.request("session/list", { cwd })).sessions, 2)
        assert.match(yield* at.refusal("session/load", { sessionId: first, cwd, mcpServers: [] }), /^-32002/)
      })
    )
  )

  it.scopedLive("is refused in the codes of the protocol, with a sentence", () =>
    live(
      Effect.gen(function* () {
        const { at: place, cwd, editor } = yield* world()
        const at = yield* editor()
        const create = (cwd: string, more: object = {}) => at.refusal("session/new", { cwd, mcpServers: [], ...more })
        assert.match(yield* create("work"), /^-32602 .*relative/)
        assert.match(yield* create(place("nowhere")), /^-32602 .*no such directory/)
        assert.match(yield* create(place("config")), /^-32602 .*settings or state/)
        assert.match(yield* create(cwd, { additionalDirectories: ["x"] }), /^-32602 .*absolute/)
        assert.match(yield* at.refusal("session/list", { cursor: "?" }), /^-32602 .*cursor/)
        for (const sessionId of ["ses_nobody", "../x", ""]) {
          assert.match(yield* at.refusal("session/load", { sessionId, cwd, mcpServers: [] }), /^-32002 No session/)
          assert.match(yield* at.refusal("session/prompt", { sessionId, prompt: text("x") }), /^-32002 No session/)
        }
        const sessionId = yield* begun(at, cwd)
        assert.match(yield* at.refusal("session/prompt", { sessionId, prompt: [] }), /^-32602 The prompt is empty/)
        const elsewhere = { sessionId, cwd: place("other"), mcpServers: [] }
        yield* at.request("session/close", { sessionId })
        assert.match(yield* at.refusal("session/load", elsewhere), /^-32(?:602|002) /)
      })
    )
  )

  it.scopedLive("is asked for a subagent on the session that it knows", () =>
    live(
      Effect.gen(function* () {
        const { at: place, cwd, editor, read } = yield* world()
        fs.mkdirSync(place("config", "profiles"))
        const profile = { name: "writer", description: "writes", plugins: ["file_edit"] }
        fs.writeFileSync(place("config", "profiles", "writer.json"), JSON.stringify(profile))
        const at = yield* editor({ answers: () => choose("y") })
        const sessionId = yield* begun(at, cwd)
        yield* at.request("session/prompt", { sessionId, prompt: text("delegate writer: write b.txt: deep") })
        assert.strictEqual(read("b.txt"), "deep")
        const [delegating, writing] = at.questions.map(({ params }) => params)
        assert.strictEqual(delegating?.toolCall.title, "start subagent writer")
        assert.match(writing?.toolCall.title ?? "", /^\[main\/writer[^\]]*\] /)
        assert.strictEqual(writing?.sessionId, sessionId)
        const titles = at.updates.flatMap((update) => (update.sessionUpdate === "tool_call" ? [update.title] : []))
        assert.match(titles[1] ?? "", /^\[main\/writer/)
        AcpEditor.judge(at)
      })
    )
  )

  it.scopedLive("races another surface, and each question has one winner", () =>
    live(
      Effect.gen(function* () {
        const { at: place, cwd, editor, host } = yield* world()
        const times = Runs.of(1_000)
        // Of both answers one allows, so a second one that counted would be seen.
        const at = yield* editor({ answers: () => choose("n") })
        const sessionId = yield* begun(at, cwd)
        const channel = yield* QueueChannel.make({ id: "other", dialogs: "unbounded" })
        const [session] = yield* host.live
        yield* session?.attach(channel.interactor) ?? Effect.void
        yield* Effect.forkScoped(
          Effect.forever(
            Effect.zipRight(
              Effect.flatMap(channel.open, (open) =>
                Effect.forEach(open, ({ requestId }) => Effect.ignore(channel.answerText(requestId, "y")))
              ),
              Effect.sleep("1 millis")
            )
          )
        )
        for (let n = 0; n < times; n++)
          yield* at.request("session/prompt", { sessionId, prompt: text(`write ${n}.txt: x`) })
        const ended = (status: string) =>
          at.updates.filter((update) => "status" in update && update.status === status).length
        yield* at.sees(() => (ended("failed") + ended("completed") === times ? true : undefined))
        assert.lengthOf(fs.readdirSync(cwd), ended("completed"))
        // The trail has one decision of a person for each question, and it is the one that was carried out.
        const trail = fs
          .readdirSync(place("state"), { recursive: true, encoding: "utf8" })
          .find((name) => name.endsWith(`audit/${sessionId}.jsonl`))
        const records = fs.readFileSync(place("state", trail ?? ""), "utf8").split("\n")
        const decided = (outcome: string) =>
          records.filter((line) => line.includes('"kind":"Approve"') && line.includes(`"outcome":"${outcome}"`)).length
        assert.strictEqual(decided("granted"), ended("completed"))
        assert.strictEqual(decided("granted") + decided("denied"), times)
      })
    )
  )
})
