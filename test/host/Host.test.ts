import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"
import * as NodeProcess from "../../src/host/NodeProcess.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import { SessionId } from "../../src/core/Id.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Wait from "../kit/Wait.js"
import { anthropic, chat } from "../kit/Wire.js"

const key = "canary.9a1c+opaque/key=="

/** Directories for hosts, with two workspaces. */
const place = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-host-")))),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
  ),
  (root) => {
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    for (const name of ["one", "two", "config", "home"]) fs.mkdirSync(at(name))
    const variables: Record<string, string> = {
      HOME: at("home"),
      ASSENT_CONFIG_DIR: at("config"),
      ASSENT_STATE_DIR: at("state"),
      ASSENT_SANDBOX: "off"
    }
    const write = (file: string, content: unknown) => {
      fs.mkdirSync(path.dirname(at(file)), { recursive: true })
      fs.writeFileSync(at(file), typeof content === "string" ? content : JSON.stringify(content))
      return at(file)
    }
    const script = (...steps: ReadonlyArray<unknown>) =>
      `script:${write("script.json", { version: 1, agents: { main: steps } })}`
    return { at, variables, write, script }
  }
)

const said: Array<string> = []

const hostOf = ({ variables }: Effect.Effect.Success<typeof place>, options: Host.Options = {}) =>
  Host.make({ environment: Environment.of(variables), notify: (sentence) => void said.push(sentence), ...options })

const reply = (text: string) => ModelServer.eventStream(chat.events({ text: [text] }))

const failureOf = <A, E extends { readonly _tag: string; readonly message: string }, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.map(Effect.flip(effect), ({ _tag, message }) => ({ _tag, message }))

const textOf = (end: { readonly _tag: string; readonly text?: string }) => end.text

describe("a host", () => {
  it.scopedLive("runs two sessions with a key that it hid from the process before the first", () =>
    Effect.gen(function* () {
      const at = yield* place
      const server = yield* ModelServer.make
      const before = { ...process.env }
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const name of [...Object.keys(at.variables), "OPENAI_COMPATIBLE_API_KEY", "OPENAI_COMPATIBLE_BASE_URL"])
            if (before[name] === undefined) delete process.env[name]
            else process.env[name] = before[name]
        })
      )
      Object.assign(process.env, at.variables, {
        OPENAI_COMPATIBLE_API_KEY: key,
        OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1`
      })
      const host = yield* Host.make()
      assert.isUndefined(process.env["OPENAI_COMPATIBLE_API_KEY"])
      yield* server.play(reply("first"), reply("second"))
      const model = "openai-compatible/local-test"
      for (const [workspace, answer] of [
        ["one", "first"],
        ["two", "second"]
      ] as const) {
        const session = yield* host.create({ workspace: at.at(workspace), model })
        assert.strictEqual(textOf(yield* session.agent.run("hello")), answer)
        assert.strictEqual((yield* server.received).headers.authorization, `Bearer ${key}`)
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )

  for (const [wish, reached] of [
    [undefined, "own"],
    ["openai-compatible/other", "own"],
    ["anthropic/claude-x", "vendor"]
  ] as const) {
    it.scopedLive(`has the address of its own model's provider, for a session with ${wish ?? "its own model"}`, () =>
      Effect.gen(function* () {
        const at = yield* place
        const [own, vendor] = [yield* ModelServer.make, yield* ModelServer.make]
        yield* own.play(reply("own"), reply("own"))
        yield* vendor.play(...[1, 2].map(() => ModelServer.eventStream(anthropic.events({ text: ["vendor"] }))))
        const variables = { ...at.variables, ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: vendor.url }
        const overrides = { model: "openai-compatible/local", "base-url": `${own.url}/v1` }
        const host = yield* hostOf({ ...at, variables }, { overrides })
        const begun = yield* host.create({ workspace: at.at("one"), id: "one", model: wish })
        assert.strictEqual(textOf(yield* begun.agent.run("hello")), reached)
        yield* begun.close
        // It goes on at a host that was given another address, and does not remember the first.
        const moved = yield* ModelServer.make
        yield* moved.play(reply("own"))
        const next = yield* hostOf({ ...at, variables }, { overrides: { ...overrides, "base-url": `${moved.url}/v1` } })
        const resumed = yield* next.open("one", { workspace: at.at("one") })
        assert.strictEqual(textOf(yield* resumed.agent.run("again")), reached)
        assert.deepStrictEqual(
          [own, moved, vendor].map((server) => server.count()),
          reached === "own" ? [1, 1, 0] : [0, 0, 2]
        )
      }).pipe(Effect.provide(NodeContext.layer))
    )
  }

  it.scopedLive("gives each tenant its own model key, as it is when a session is opened, and masks it", () =>
    Effect.gen(function* () {
      const at = yield* place
      const server = yield* ModelServer.make
      const variables = {
        ...at.variables,
        ANTHROPIC_API_KEY: "sk-of-the-server",
        ANTHROPIC_BASE_URL: server.url,
        ASSENT_STORE: ":memory:"
      }
      const workspace = at.at("one")
      const file = at.write("keys/..data/key", "sk-of-acme-1\n")
      fs.mkdirSync(at.at("keys", "acme"))
      // As Kubernetes mounts a secret.
      fs.symlinkSync("../..data/key", at.at("keys", "acme", "ANTHROPIC_API_KEY"))
      const overrides = { model: "anthropic/claude-haiku-4-5", "model-keys": at.at("keys") }
      const hosted = (more: object) => hostOf({ ...at, variables }, { overrides: { ...overrides, ...more } })
      const host = yield* hosted({})
      const keyOf = (session: Host.LiveSession) =>
        Effect.gen(function* () {
          yield* server.play(
            ModelServer.eventStream(anthropic.events({ text: ["my key is sk-of-acme-1, sk-of-acme-2"] }))
          )
          yield* session.agent.run("hello")
          const { headers } = yield* server.received
          const answer = (yield* session.agent.feed?.entries ?? Effect.succeed([])).findLast(
            ({ entry }) => entry._tag === "AssistantAppended"
          )
          return { key: headers["x-api-key"], journal: JSON.stringify(answer) }
        })
      const live = yield* host.create({ workspace, id: "acme.s" })
      assert.include(live.files.protectedPaths ?? [], at.at("keys"))
      const first = yield* keyOf(live)
      assert.deepInclude(first, { key: "sk-of-acme-1" })
      assert.include(first.journal, "sk-of-acme-2")
      assert.notInclude(first.journal, "sk-of-acme-1")
      for (const id of ["beta.s", "acme", "s"])
        assert.strictEqual((yield* keyOf(yield* host.create({ workspace, id }))).key, "sk-of-the-server", id)
      fs.writeFileSync(file, "sk-of-acme-2")
      assert.strictEqual((yield* keyOf(live)).key, "sk-of-acme-1")
      assert.strictEqual((yield* keyOf(yield* host.create({ workspace, id: "acme.t" }))).key, "sk-of-acme-2")
      yield* host.close("acme.s")
      const again = yield* keyOf(yield* host.open("acme.s"))
      assert.strictEqual(again.key, "sk-of-acme-2")
      assert.notInclude(again.journal, "sk-of-acme-2")
      // No other key pays, whatever is wrong with the file.
      for (const content of ["", " \n", "two words", "sk-a\nsk-b", "k".repeat(10_001)]) {
        fs.writeFileSync(file, content)
        const failure = yield* failureOf(host.create({ workspace, id: "acme.u" }))
        assert.strictEqual(failure._tag, "ConfigurationInvalid")
        assert.include(failure.message, at.at("keys", "acme", "ANTHROPIC_API_KEY"))
        if (content.trim() !== "") assert.notInclude(failure.message, content)
      }
      fs.rmSync(file)
      assert.strictEqual((yield* failureOf(host.create({ workspace, id: "acme.u" })))._tag, "ConfigurationInvalid")
      const alone = yield* hosted({ "own-model-keys": true })
      const { _tag, message } = yield* failureOf(alone.create({ workspace, id: "beta.s" }))
      assert.strictEqual(_tag, "ModelRefused")
      assert.include(message, at.at("keys", "beta", "ANTHROPIC_API_KEY"))
      assert.strictEqual((yield* keyOf(yield* alone.create({ workspace, id: "s" }))).key, "sk-of-the-server")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("lists a session that nobody spoke to, which another host resumes under its chosen id", () =>
    Effect.gen(function* () {
      const at = yield* place
      const model = at.script({ text: "done" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const host = yield* hostOf(at, { overrides: { model } })
          const session = yield* host.create({ workspace: at.at("one"), id: "my-own_1" })
          assert.strictEqual(session.id, "my-own_1")
          assert.deepStrictEqual(
            (yield* host.live).map(({ id }) => id),
            ["my-own_1"]
          )
          const [stored] = (yield* host.list()).sessions
          assert.deepInclude(stored, { rootSessionId: session.id, workspace: at.at("one"), isLive: true, turns: 0 })
        })
      )
      const host = yield* hostOf(at)
      assert.deepStrictEqual(yield* host.live, [])
      assert.deepInclude(yield* host.find("my-own_1"), { isLive: false, state: "idle", model })
      const session = yield* host.open("my-own_1")
      assert.strictEqual(session.workspace, at.at("one"))
      assert.strictEqual(textOf(yield* session.agent.run("go")), "done")
      yield* session.close
      assert.deepStrictEqual(yield* host.live, [])
      assert.deepInclude(yield* host.find("my-own_1"), { isLive: false, turns: 1 })
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("gives all who open a session at once the same one, and anew who comes while it closes", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const all = yield* Effect.all(
        Array.from({ length: 5 }, () => host.create({ workspace: at.at("one"), id: "same" })),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(all).size, 1)
      assert.strictEqual(yield* host.open("same"), all[0])
      const [again] = yield* Effect.all([host.close("same"), host.open("same")], { concurrency: "unbounded" }).pipe(
        Effect.map(([, session]) => [session])
      )
      assert.notStrictEqual(again, all[0])
      assert.isTrue(yield* again!.agent.isIdle)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("asks at an interactor that attaches later, and at no one else's", () =>
    Effect.gen(function* () {
      const at = yield* place
      const model = at.script({ tools: [{ name: "run_command", params: { command: "touch made" } }] }, { text: "done" })
      const host = yield* hostOf(at, { overrides: { model } })
      const [one, two] = yield* Effect.all([
        host.create({ workspace: at.at("one") }),
        host.create({ workspace: at.at("two") })
      ])
      const [first, second] = yield* Effect.all([QueueChannel.make(), QueueChannel.make()])
      yield* one.attach(first.interactor)
      yield* two.attach(second.interactor)
      const before = yield* one.lastActivity
      const running = yield* Effect.fork(one.agent.run("go"))
      const dialog = yield* first.take
      assert.strictEqual(dialog._tag, "Opened")
      if (dialog._tag === "Opened") yield* first.answerText(dialog.request.requestId, "y")
      assert.strictEqual(textOf(yield* Fiber.join(running)), "done")
      assert.isTrue(fs.existsSync(at.at("one", "made")))
      assert.isFalse(fs.existsSync(at.at("two", "made")))
      assert.isAtLeast(yield* one.lastActivity, before)
      assert.deepStrictEqual(yield* second.open, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive(
    "shares one runtime and audit writer among the sessions of a workspace and a profile, until a setting changes",
    () =>
      Effect.gen(function* () {
        const at = yield* place
        const host = yield* hostOf(at)
        const made = (workspace: string, wishes: Host.Wishes = {}) =>
          host.create({ workspace: at.at(workspace), ...wishes })
        const [one, same, other, model] = yield* Effect.all([
          made("one"),
          made("one"),
          made("two"),
          made("one", { model: "ollama/other" })
        ])
        const shares = (a: Host.LiveSession, b: Host.LiveSession) => [
          a.trail === b.trail,
          a.agent.tools === b.agent.tools
        ]
        assert.deepStrictEqual(shares(one, same), [true, true])
        assert.deepStrictEqual(shares(one, other), [false, false])
        assert.deepStrictEqual(shares(one, model), [false, false])
        at.write("one/a.txt", "x")
        // The first to end takes nothing from the second.
        yield* one.close
        assert.deepInclude(yield* same.agent.run("hello"), { _tag: "Completed" })
        assert.deepStrictEqual(shares(same, yield* made("one")), [true, true])
        at.write("config/permissions.json", { blacklist: { tools: ["read_file"] } })
        const later = yield* made("one")
        assert.deepStrictEqual(shares(same, later), [false, false])
        const decisionOf = ({ agent }: Host.LiveSession) =>
          Effect.map(agent.permissions.check("read_file", { path: "a.txt" }), ({ decision }) => decision)
        assert.deepStrictEqual([yield* decisionOf(same), yield* decisionOf(later)], ["allow", "deny"])
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("keeps two workspaces apart: keys, permissions, files, stores, and no colours", () =>
    Effect.gen(function* () {
      const at = yield* place
      const server = yield* ModelServer.make
      at.write("one/.assent/permissions.json", { blacklist: { tools: ["fetch_url"] } })
      at.write("one/own.txt", "of one")
      at.write("two/own.txt", "of two")
      const environment = Environment.of({
        ...at.variables,
        OPENAI_COMPATIBLE_API_KEY: key,
        OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1`
      })
      const host = yield* hostOf(at, { environment })
      const made = (workspace: string) =>
        host.create({ workspace: at.at(workspace), model: "openai-compatible/local-test" })
      const [one, two] = yield* Effect.all([made("one"), made("two")])
      const decisions = (tool: string, params: (workspace: string) => unknown) =>
        Effect.all(
          [one, two].flatMap(({ agent }) =>
            ["one", "two"].map((workspace) =>
              Effect.map(agent.permissions.check(tool, params(workspace)), ({ decision }) => decision)
            )
          )
        )

      // A file belongs to the workspace that holds it.
      const reads = (workspace: string) => ({ path: at.at(workspace, "own.txt") })
      assert.deepStrictEqual(yield* decisions("read_file", reads), ["allow", "deny", "deny", "allow"])
      // A rule of one workspace's files, and one that a person gave to one session.
      const fetches = () => ({ url: "https://example.com/" })
      assert.deepStrictEqual(yield* decisions("fetch_url", fetches), ["deny", "deny", "ask", "ask"])
      const commands = () => ({ command: "make" })
      assert.deepStrictEqual(yield* decisions("run_command", commands), ["ask", "ask", "ask", "ask"])
      yield* one.agent.permissions.allow("make")
      yield* two.agent.permissions.setMode("plan")
      const [first, , third] = yield* decisions("run_command", commands)
      assert.deepStrictEqual([first, third], ["allow", "deny"])

      // The model is sent no key, and commands find none.
      const call = {
        id: "call_a",
        name: "run_command",
        args: JSON.stringify({ command: "env; printf '\\033[31mred'" })
      }
      yield* server.play(ModelServer.eventStream(chat.events({ calls: [call] })), reply("done"))
      yield* one.attach(HaltChannel.yolo)
      const events = yield* one.agent.subscribe({ capacity: 1_000 })
      assert.deepInclude(yield* one.agent.run("show"), { _tag: "Completed" })
      yield* server.received
      const { text } = yield* server.received
      assert.include(text, "HOME=")
      assert.notInclude(text, key)
      assert.notInclude(text, "OPENAI_COMPATIBLE_API_KEY")
      yield* one.close
      const seen = JSON.stringify(Chunk.toReadonlyArray(yield* Stream.runCollect(events.stream)))
      assert.include(seen, "red")
      assert.notInclude(seen, key)
      assert.notMatch(seen, /\\u001b\[(?!31m)/)

      // Each in a store of its own, and neither is found in the other's workspace.
      const stores = fs.readdirSync(at.at("state", "workspaces"))
      assert.lengthOf(stores, 2)
      const listed = yield* Effect.forEach(["one", "two"], (workspace) => host.list({ workspace: at.at(workspace) }))
      assert.deepStrictEqual(
        listed.map(({ sessions }) => sessions.map(({ rootSessionId }) => rootSessionId)),
        [[one.id], [two.id]]
      )
      const elsewhere = yield* failureOf(host.open(one.id, { workspace: at.at("two") }))
      assert.strictEqual(elsewhere._tag, "SessionUnknown")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("refuses with a sentence what cannot be a session", () =>
    Effect.gen(function* () {
      const at = yield* place
      at.write("one/file", "x")
      fs.mkdirSync(at.at("state"))
      const host = yield* hostOf(at, { workspaces: [at.at("one"), at.at("state"), at.at("config"), at.at("gone")] })
      const refusal = (workspace: string) => failureOf(host.create({ workspace }))
      assert.include((yield* refusal("one")).message, "its path is relative")
      assert.include((yield* refusal(at.at("gone"))).message, "no such directory")
      assert.include((yield* refusal(at.at("one", "file"))).message, "no such directory")
      assert.include((yield* refusal(at.at("two"))).message, "does not permit")
      assert.include((yield* refusal(at.at("state"))).message, "keeps settings or state")
      assert.include((yield* refusal(at.at("config"))).message, "keeps settings or state")
      fs.symlinkSync(at.at("two"), at.at("one", "link"))
      assert.include((yield* refusal(at.at("one", "link"))).message, "does not permit")
      for (const id of ["", "../x", "a b", "x".repeat(129), "a.b.c", ".b", "a.", "A.b"])
        assert.strictEqual((yield* failureOf(host.create({ workspace: at.at("one"), id })))._tag, "SessionIdInvalid")
      for (const directory of [at.at("two"), "one", "/"])
        assert.strictEqual(
          (yield* failureOf(host.create({ workspace: at.at("one"), addDirs: [directory] })))._tag,
          "WorkspaceRefused"
        )
      const noKey = yield* failureOf(host.create({ workspace: at.at("one"), model: "anthropic/claude-haiku-4-5" }))
      assert.strictEqual(noKey._tag, "ModelRefused")
      assert.include(noKey.message, "ANTHROPIC_API_KEY")
      assert.strictEqual((yield* failureOf(host.open("ses_unknown")))._tag, "SessionUnknown")
      assert.strictEqual((yield* failureOf(host.delete("ses_unknown")))._tag, "SessionUnknown")
      // Nothing of all that is left.
      assert.deepStrictEqual((yield* host.list()).sessions, [])
      assert.deepStrictEqual(yield* host.live, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("names the process that holds a session", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const session = yield* host.create({ workspace: at.at("one"), id: "held" })
      yield* session.close
      const file = path.join(
        at.at("state", "workspaces"),
        fs.readdirSync(at.at("state", "workspaces"))[0] ?? "",
        "sessions.db"
      )
      const other = yield* LibsqlStore.make({ file, process: { ...NodeProcess.self, pid: process.ppid } })
      yield* other.lock(SessionId.make("held"))
      const locked = yield* failureOf(host.open("held"))
      assert.strictEqual(locked._tag, "SessionLocked")
      assert.include(locked.message, `process ${process.ppid} on `)
      assert.strictEqual((yield* failureOf(host.delete("held")))._tag, "SessionLocked")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("takes no id of a session that works elsewhere", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at, { overrides: { store: at.at("all.db") } })
      const session = yield* host.create({ workspace: at.at("one"), id: "mine" })
      const elsewhere = [
        host.create({ workspace: at.at("two"), id: "mine" }),
        host.open("mine", { workspace: at.at("two") })
      ]
      for (const live of [true, false]) {
        for (const attempt of elsewhere) {
          const refused = yield* failureOf(attempt)
          assert.strictEqual(refused._tag, "SessionElsewhere")
          assert.include(refused.message, at.at("one"))
        }
        if (live) yield* session.close
      }
      assert.strictEqual((yield* host.open("mine")).workspace, at.at("one"))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("deletes a stored session, and none that runs", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const session = yield* host.create({ workspace: at.at("one"), id: "short" })
      assert.strictEqual((yield* failureOf(host.delete("short")))._tag, "SessionRunning")
      yield* session.close
      yield* host.delete("short")
      assert.isUndefined(yield* host.find("short"))
      assert.strictEqual((yield* failureOf(host.open("short")))._tag, "SessionUnknown")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("lists sessions of all workspaces in pages, last used first", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      for (const [id, workspace] of [
        ["a", "one"],
        ["b", "two"],
        ["c", "one"],
        ["d", "two"]
      ] as const)
        yield* Effect.delay(host.create({ workspace: at.at(workspace), id }), 2)
      const first = yield* host.list({ limit: 3 })
      const rest = yield* host.list({ limit: 3, after: first.next })
      const ids = (page: Host.Page) => page.sessions.map(({ rootSessionId }) => rootSessionId)
      assert.deepStrictEqual([ids(first), ids(rest), rest.next], [["d", "c", "b"], ["a"], undefined])
      assert.deepStrictEqual(ids(yield* host.list({ workspace: at.at("one") })), ["c", "a"])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("keeps sessions in memory until it closes, where that is asked for", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at, { overrides: { store: ":memory:" } })
      const session = yield* host.create({ workspace: at.at("one"), id: "brief" })
      yield* session.close
      assert.deepInclude(yield* host.find("brief"), { isLive: false })
      assert.strictEqual((yield* host.open("brief")).workspace, at.at("one"))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("closes its sessions with itself, and begins no more", () =>
    Effect.gen(function* () {
      const at = yield* place
      const scope = yield* Scope.make()
      const host = yield* Scope.extend(hostOf(at), scope)
      const session = yield* host.create({ workspace: at.at("one") })
      yield* Scope.close(scope, Exit.void)
      yield* session.closed
      assert.strictEqual((yield* failureOf(session.agent.send("hello")))._tag, "AgentStopped")
      assert.strictEqual((yield* failureOf(host.create({ workspace: at.at("one") })))._tag, "HostClosed")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("closes what its sessions share after the last of them has ended", () =>
    Effect.gen(function* () {
      const at = yield* place
      const scope = yield* Scope.make()
      const kept = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
      const sessions: Array<Host.LiveSession> = []
      const outcomes: Array<string> = []
      const openStore = () =>
        Effect.acquireRelease(Effect.succeed(kept), () =>
          Effect.forEach(sessions, ({ agent }) =>
            Effect.map(Effect.either(agent.send("more")), (sent) => outcomes.push(sent._tag))
          )
        )
      const host = yield* Scope.extend(hostOf(at, { openStore }), scope)
      for (const id of ["one", "two"]) sessions.push(yield* host.create({ workspace: at.at("one"), id }))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(outcomes, ["Left", "Left"], "no words are taken any more")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("gives back a session that was being opened when it closed, and says so", () =>
    Effect.gen(function* () {
      const at = yield* place
      for (const steps of [0, 1, 5, 50, 500]) {
        const scope = yield* Scope.make()
        const host = yield* Scope.extend(hostOf(at), scope)
        const opening = yield* Effect.fork(Effect.either(host.create({ workspace: at.at("one"), id: "late" })))
        yield* Effect.repeatN(Effect.yieldNow(), steps)
        yield* Scope.close(scope, Exit.void)
        const outcome = yield* Fiber.join(opening)
        if (outcome._tag === "Left") assert.strictEqual(outcome.left._tag, "HostClosed")
        else yield* outcome.right.closed
      }
      const host = yield* hostOf(at)
      assert.strictEqual((yield* host.create({ workspace: at.at("one"), id: "late" })).id, "late")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("forgets a session whose agent ended by itself", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const session = yield* host.create({ workspace: at.at("one") })
      yield* session.agent.shutdown
      yield* session.closed
      assert.deepStrictEqual(yield* host.live, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("goes on with the model and the thinking that were chosen, on another machine too, and in a fork", () =>
    Effect.gen(function* () {
      const at = yield* place
      const server = yield* ModelServer.make
      const kept = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
      const onMachine = (name: string) => {
        const variables = {
          ...at.variables,
          ASSENT_STATE_DIR: at.at(name),
          ASSENT_STORE: ":memory:",
          ANTHROPIC_API_KEY: key,
          ANTHROPIC_BASE_URL: server.url
        }
        const overrides = { model: "anthropic/claude-haiku-4-5" }
        return hostOf({ ...at, variables }, { overrides, openStore: () => Effect.succeed(kept) })
      }
      const askedBy = (session: Host.LiveSession) =>
        Effect.gen(function* () {
          yield* server.play(ModelServer.eventStream(anthropic.events({ text: ["hello"] })))
          yield* session.agent.run("hello")
          const { model, thinking, output_config } = JSON.parse((yield* server.received).text)
          return { model, thinking, output_config }
        })
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(onMachine("first"), scope)
      const session = yield* first.create({ workspace: at.at("one"), id: "chosen" })
      assert.deepInclude(yield* askedBy(session), { model: "claude-haiku-4-5", thinking: undefined })
      yield* session.setModel("anthropic/claude-sonnet-5-5", "high")
      const chosen = yield* askedBy(session)
      assert.strictEqual(chosen.model, "claude-sonnet-5-5")
      assert.notStrictEqual(JSON.stringify(chosen.thinking ?? chosen.output_config), undefined)
      yield* Scope.close(scope, Exit.void)

      const second = yield* onMachine("second")
      assert.deepStrictEqual(yield* askedBy(yield* second.open("chosen")), chosen)
      const { forked } = yield* second.fork("chosen", { at: 1, by: "ann" })
      assert.deepStrictEqual(yield* askedBy(yield* second.open(forked.rootSessionId)), chosen)
      assert.deepInclude(yield* second.find("chosen"), { model: "anthropic/claude-sonnet-5-5" })
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("lets a session leave memory when it rests, and opens it for who asks", () =>
    Effect.gen(function* () {
      const at = yield* place
      const model = at.script({ tools: [{ name: "run_command", params: { command: "true" } }] }, { text: "done" })
      const host = yield* hostOf(at, { overrides: { model }, evictAfter: "300 millis" })
      const isLive = (id: string) => Effect.map(host.live, (all) => all.some((one) => one.id === id))
      const begin = (id: string) => host.create({ workspace: at.at("one"), id })
      const [asking, attended, resting] = yield* Effect.all([begin("asking"), begin("attended"), begin("resting")])
      yield* asking.agent.send("go")
      const channel = yield* QueueChannel.make()
      const watching = yield* Scope.make()
      yield* Scope.extend(attended.attach(channel.interactor), watching)
      yield* resting.closed
      assert.deepStrictEqual(yield* Effect.forEach(["asking", "attended", "resting"], isLive), [true, true, false])
      // It was asked for now: the time begins anew, and the words reach it.
      const again = yield* host.open("resting")
      assert.notStrictEqual(again, resting)
      yield* again.agent.send("go")
      yield* Wait.until(again.agent.broker.open, (open) => open.length === 1)
      yield* Scope.close(watching, Exit.void)
      yield* attended.closed
      assert.deepStrictEqual(yield* Effect.forEach(["asking", "attended", "resting"], isLive), [true, false, true])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("takes no file and no program of this machine as a client's model", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const session = yield* host.create({ workspace: at.at("one") })
      for (const model of [at.script({ text: "x" }), `command:touch ${at.at("one/made")}`, "command:"]) {
        const refused = { _tag: "ModelRefused" }
        assert.deepInclude(yield* failureOf(host.create({ workspace: at.at("one"), model })), refused)
        assert.deepInclude(yield* failureOf(session.setModel(model)), refused)
      }
      assert.isFalse(fs.existsSync(at.at("one/made")))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("runs a session in its own world, when the fiber that opened it is long gone", () =>
    Effect.gen(function* () {
      const at = yield* place
      const model = at.script({ text: "still here" })
      const host = yield* hostOf(at, { overrides: { model } })
      const session = yield* Fiber.join(yield* Effect.fork(Effect.scoped(host.create({ workspace: at.at("one") }))))
      assert.strictEqual(textOf(yield* session.agent.run("hello")), "still here")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("opens a session for the others when one who waits for it is interrupted", () =>
    Effect.gen(function* () {
      const at = yield* place
      const host = yield* hostOf(at)
      const begun = yield* Deferred.make<void>()
      const first = yield* Effect.fork(
        Effect.zipRight(Deferred.succeed(begun, undefined), host.create({ workspace: at.at("one"), id: "shared" }))
      )
      yield* Deferred.await(begun)
      const second = yield* Effect.fork(host.create({ workspace: at.at("one"), id: "shared" }))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(first)
      assert.strictEqual((yield* Fiber.join(second)).id, "shared")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
