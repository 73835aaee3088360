import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Arguments from "../../src/cli/config/Arguments.js"
import * as Sessions from "../../src/cli/command/Sessions.js"
import * as StoreLocation from "../../src/host/StoreLocation.js"
import * as UserLocation from "../../src/host/local/UserLocation.js"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as AgentEvent from "../../src/event/AgentEvent.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as ScriptFile from "../../src/model/ScriptFile.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import type { Draft } from "../../src/journal/JournalEntry.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as JournalSample from "../kit/JournalSample.js"
import { userInfo } from "node:os"

/** Whoever runs the tests. */
const user = userInfo().username

afterEach(() => {
  vi.restoreAllMocks()
})

const {
  decided,
  draft,
  ended,
  opened,
  proposed,
  raised,
  received,
  results,
  root,
  said,
  settled,
  started,
  taken,
  turnEnded
} = JournalSample

const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "assent-sessions-" }), fs.realPath)
  const workspace = `${base}/workspace`
  yield* fs.makeDirectory(workspace)
  const stateDirectory = `${base}/state`
  const folder = UserLocation.folderOf(stateDirectory, workspace)
  const file = StoreLocation.inFolder({ folder })
  /** Runs sessions, one after the other, as far as they came. */
  const seed = (sessions: { readonly [id: string]: ReadonlyArray<Draft> }, at = file) =>
    Effect.scoped(
      Effect.gen(function* () {
        const store = yield* StoreLocation.open(at)
        for (const [id, drafts] of Object.entries(sessions)) {
          yield* Effect.scoped(Effect.flatMap(store.lock(id as SessionId), (lease) => lease.append(drafts)))
        }
      })
    )
  return { base, workspace, folder, stateDirectory, file, seed, fs }
})

/** Runs the command and takes what it prints. */
const sessions = (
  { base, workspace }: { readonly base: string; readonly workspace: string },
  words: ReadonlyArray<string>,
  flags: Omit<Arguments.Flags, "workspace"> = {}
) =>
  Effect.gen(function* () {
    const printed = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      vi.spyOn(process[name], "write").mockImplementation((text, ...rest) => {
        printed[name] += String(text)
        for (const callback of rest) if (typeof callback === "function") callback()
        return true
      })
    }
    const code = yield* Effect.either(Sessions.run({ flags: { workspace, ...flags }, words })).pipe(
      Effect.withConfigProvider(
        ConfigProvider.fromMap(
          new Map([
            ["ASSENT_CONFIG_DIR", `${base}/config`],
            ["ASSENT_STATE_DIR", `${base}/state`]
          ])
        )
      ),
      Effect.ensuring(Effect.sync(() => vi.restoreAllMocks()))
    )
    return { code: code._tag === "Right" ? code.right : code.left.message, ...printed }
  })

const live = <E>(name: string, effect: Effect.Effect<void, E, NodeContext.NodeContext | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.provide(effect, NodeContext.layer))

const child = "ses_child" as SessionId

const story: ReadonlyArray<Draft> = [
  draft(opened()),
  draft(received("msg_1", "Fix the\ntests")),
  draft(taken("turn_1", 1, "msg_1")),
  draft(proposed("turn_1", 1, "call_1", "call_2")),
  draft(decided("call_1", true)),
  draft(started("call_1")),
  draft(
    opened(child, { agent: "main/explore", depth: 1, parentSessionId: root, parentToolCallId: "call_1" as ToolCallId }),
    child
  ),
  draft(said("Looked around.\u001b[2J"), child),
  draft(received("msg_2", "Be quick", { interjection: { parentId: "root" } })),
  draft(ended("call_1")),
  draft(decided("call_2", false)),
  draft(ended("call_2", "denied")),
  draft(results("turn_1")),
  draft(raised("req_1"))
]

describe("assent sessions", () => {
  live(
    "says that none are kept yet, and leaves no trace of having looked",
    Effect.gen(function* () {
      const at = yield* place
      for (const store of [undefined, `${at.base}/elsewhere/other.db`, ":memory:"]) {
        const { code, stderr, stdout } = yield* sessions(at, ["list"], store === undefined ? {} : { store })
        assert.deepStrictEqual([code, stdout], [0, ""])
        assert.include(stderr, "no sessions are stored in")
        assert.include(stderr, store ?? at.file)
      }
      assert.deepStrictEqual(yield* at.fs.readDirectory(at.workspace), [])
      assert.deepStrictEqual(yield* at.fs.readDirectory(at.base), ["workspace"])
    })
  )

  live(
    "lists them, last used first, in words and as JSON",
    Effect.gen(function* () {
      const at = yield* place
      const done = [...story.slice(0, 3), draft(turnEnded("turn_1"))]
      yield* at.seed({ ses_a: done.map(({ entry }) => draft(entry, "ses_a" as SessionId)) })
      yield* at.seed({ [root]: story })
      const { code, stdout } = yield* sessions(at, [])
      assert.strictEqual(code, 0)
      assert.match(
        stdout,
        /^ses_root {2}\w+ \d\d:\d\d {2}waiting {2}1 turn {2}offline {2}1 open request {2}Fix the tests\nses_a {2}.* {2}idle {2}1 turn {2}offline {2}Fix the tests\n$/
      )
      const json = yield* sessions(at, ["list"], { json: true })
      const [first] = json.stdout.split("\n")
      assert.deepInclude(JSON.parse(first ?? ""), { rootSessionId: root, state: "waiting", entries: 14, sessions: 2 })
    })
  )

  live(
    "lists the last hundred, says how to see those before them, and as JSON has all",
    Effect.gen(function* () {
      const at = yield* place
      const ids = Array.from({ length: 105 }, (_, index) => `ses_${String(index).padStart(3, "0")}`)
      // The later number was used last.
      yield* at.seed(
        Object.fromEntries(
          ids.map((id, index) => [id, [{ ...draft(opened(id as SessionId), id as SessionId), at: 1_000 + index }]])
        )
      )
      const newest = [...ids].reverse()
      const idsOf = (stdout: string) => stdout.match(/^ *ses_\d+/gm)?.map((id) => id.trim())
      const first = yield* sessions(at, ["list"])
      assert.deepStrictEqual(idsOf(first.stdout), newest.slice(0, 100))
      assert.strictEqual(
        first.stderr,
        `assent: there are more: assent sessions --workspace ${at.workspace} list --after ses_005\n`
      )
      const second = yield* sessions(at, ["list"], { after: "005", limit: "3" })
      assert.deepStrictEqual(idsOf(second.stdout), newest.slice(100, 103))
      assert.include(second.stderr, "list --limit 3 --after ses_002")
      const last = yield* sessions(at, ["list"], { after: "ses_002" })
      assert.deepStrictEqual([idsOf(last.stdout), last.stderr], [newest.slice(103), ""])
      const beyond = yield* sessions(at, ["list"], { after: "ses_000" })
      assert.deepStrictEqual([beyond.stdout, beyond.stderr], ["", "assent: that one is the oldest.\n"])
      const json = yield* sessions(at, ["list"], { json: true })
      assert.strictEqual(json.stdout.trim().split("\n").length, 105)
      yield* UserLocation.prepare(at)
      const everywhere = yield* sessions(at, ["list"], { all: true, limit: "2" })
      assert.deepStrictEqual(idsOf(everywhere.stdout), newest.slice(0, 2))
      assert.include(everywhere.stderr, `--workspace ${at.workspace} list --limit 2 --after ses_103`)
      for (const flags of [{ limit: "0" }, { limit: "-1" }, { limit: "many" }, { after: "ses_x" }, { after: "ses_" }]) {
        const { code } = yield* sessions(at, ["list"], flags)
        assert.match(String(code), /not a number of sessions|There is no session ses_x|More than 5 sessions begin with/)
      }
      const { code } = yield* sessions(at, ["list"], { all: true, after: "ses_104" })
      assert.match(String(code), /--all lists all workspaces. Remove one of them/)
    })
  )

  live(
    "shows what was said and done, a child's under its name, and what is open",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story })
      const { code, stdout } = yield* sessions(at, ["show", root])
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(stdout.split("\n").slice(2), [
        "> Fix the",
        "  tests",
        "I will.",
        "  look call_1",
        "  look call_2",
        "[main/explore] started, with model offline",
        "[main/explore] Looked around.\\u{1b}[2J",
        ">> Be quick",
        "    look: succeeded  call_1",
        "    look: denied, whitelist: look",
        "    look: denied  call_2",
        "  ? Select: Which? (a, b)",
        "open: req_1  Select: Which? (a, b)",
        ""
      ])
    })
  )

  live(
    "exports all of it as one JSON document",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story })
      const { code, stdout } = yield* sessions(at, ["export", root])
      assert.strictEqual(code, 0)
      const all = JSON.parse(stdout)
      assert.deepInclude(all, { version: 1, rootSessionId: root, answers: [] })
      assert.lengthOf(all.entries, story.length)
      assert.deepInclude(all.entries[3], { seq: 4, sessionId: root })
      assert.deepStrictEqual(all.entries[3].entry.calls[0], { id: "call_1", name: "look", params: { at: "call_1" } })
    })
  )

  live(
    "replays one as it was shown: what was said and asked, a child's under its name, and nobody waits for a pipe",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({
        [root]: [...story, draft(settled("req_1", 1)), draft(said("Done.")), draft(turnEnded("turn_1"))]
      })
      const { code, stdout } = yield* sessions(at, ["replay", root])
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(stdout.split("\n"), [
        "› Fix the",
        "  tests",
        "I will.",
        "● look call_1",
        "│ explore ▸ Looked around.",
        "  ↳ from you: Be quick",
        "  ✓ explore · works in the background",
        "  ✗ look call_2 denied · call_2",
        "  ? Select: Which?",
        "  ! person: 1",
        "Done.",
        ""
      ])
    })
  )

  live(
    "replays one as events, a line each",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story })
      const { code, stdout } = yield* sessions(at, ["replay", root], { json: true })
      assert.strictEqual(code, 0)
      const events = stdout
        .trim()
        .split("\n")
        .map((line) => Schema.decodeUnknownSync(AgentEvent.AgentEvent)(JSON.parse(line)))
      assert.strictEqual(events[0]?._tag, "AgentCreated")
      assert.includeMembers(
        events.map((event) => event._tag),
        ["TurnStarted", "ToolCallStarted", "UserInterjected", "InteractionRequested"]
      )
    })
  )

  live(
    "replays one at the pace that is asked for, and explains what a pace is",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story })
      for (const flags of [{ speed: "max" }, { speed: "1000x" }, { speed: "0.5", pause: "1ms" }]) {
        assert.strictEqual((yield* sessions(at, ["replay", root], flags)).code, 0)
      }
      for (const speed of ["0", "-1", "fast", "", "x"])
        assert.include(String((yield* sessions(at, ["replay", root], { speed })).code), "is not a speed")
      assert.include(String((yield* sessions(at, ["replay", root], { pause: "long" })).code), "Use one such as 90s")
    })
  )

  live(
    "prints one as a script that plays it again",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story })
      const { code, stdout } = yield* sessions(at, ["script", root])
      assert.strictEqual(code, 0)
      const script = Either.getOrThrow(ScriptFile.parse(stdout))
      assert.deepStrictEqual(Object.keys(script.agents), ["main", "explore"])
      assert.deepStrictEqual(script.agents["explore"], [{ text: "Looked around.\u001b[2J" }])
      assert.notInclude(stdout, "\u001b")
    })
  )

  live(
    "deletes one, but none that is running",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: story, ses_b: [draft(opened("ses_b" as SessionId), "ses_b" as SessionId)] })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* StoreLocation.open(at.file)
          yield* store.lock(root)
          const { code } = yield* sessions(at, ["delete", root])
          assert.include(String(code), `is run by process ${process.pid}`)
          const { stdout } = yield* sessions(at, [])
          assert.include(stdout, `running (process ${process.pid} on `)
        })
      )
      assert.strictEqual((yield* sessions(at, ["delete", root])).code, 0)
      assert.match((yield* sessions(at, [])).stdout, /^ses_b .*\n$/)
    })
  )

  live(
    "takes a store that is elsewhere, and none that is something else",
    Effect.gen(function* () {
      const at = yield* place
      const store = `${at.base}/other.db`
      yield* at.seed({ [root]: story }, store)
      assert.include((yield* sessions(at, ["list"], { store })).stdout, root)
      const text = `${at.base}/notes.txt`
      yield* at.fs.writeFileString(text, "not a database, but a text of some length")
      const { code } = yield* sessions(at, ["list"], { store: text })
      assert.include(String(code), "the file is not a database")
      assert.strictEqual(yield* at.fs.readFileString(text), "not a database, but a text of some length")
    })
  )

  live(
    "explains what it takes",
    Effect.gen(function* () {
      const at = yield* place
      const told = (...words: ReadonlyArray<string>) => Effect.map(sessions(at, words), ({ code }) => String(code))
      assert.include(
        yield* told("erase"),
        "list [--limit NUMBER] [--after SESSION] [--all] [--json]; waiting [--json]; show SESSION; answer SESSION [REQUEST [ANSWER]] [--json]; "
      )
      assert.include(yield* told("erase"), "export SESSION; delete SESSION")
      assert.include(yield* told("fokr"), "import FILE [--model MODEL]. Did you mean fork?")
      assert.include(yield* told("prune"), "--unused DURATION, --keep NUMBER, or both.")
      assert.include(yield* told("show", "ses_a", "more"), "assent sessions takes")
      assert.include(yield* told("answer"), "assent sessions answer needs a session.")
      assert.include(yield* told("answer", "ses_a", "req_1", "y"), "There is no session ses_a in")
      assert.include(yield* told("toString"), "assent sessions takes")
      assert.include(yield* told("list", "ses_a"), "assent sessions takes")
      assert.include(yield* told("show", "ses_a"), "There is no session ses_a in")
      yield* at.seed({ [root]: story })
      assert.include(yield* told("show"), "assent sessions show needs a session. There are: ses_root.")
      assert.include(yield* told("delete", "ses_a\u001b"), "There is no session ses_a\\u{1b}")
    })
  )
})

describe("assent sessions answer", () => {
  /** A session that waits for these, in a turn. */
  const waiting = (questions: { readonly [requestId: string]: Interaction.Interaction }): ReadonlyArray<Draft> => [
    ...story.slice(0, 3),
    ...Object.entries(questions).map(([requestId, interaction]) => draft(raised(requestId, interaction)))
  ]
  const choice = new Interaction.Select({ prompt: "Which?", options: ["a", "b"] })
  const question = new Interaction.Ask({ prompt: "Who?\u001b[2J" })

  const stored = (file: string): Effect.Effect<SessionStore.Loaded["answers"], unknown, NodeContext.NodeContext> =>
    Effect.scoped(
      Effect.flatMap(StoreLocation.open(file), (store) => Effect.map(store.load(root), ({ answers }) => answers))
    )

  live(
    "shows what is open, all of it or one, and says how to answer",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: waiting({ req_1: choice, req_2: question }) })
      const all = yield* sessions(at, ["answer", root])
      assert.deepStrictEqual(all, {
        code: 0,
        stdout: ["req_1", "A choice", "│ Which?", "│ 1. a", "│ 2. b", "", "req_2", "A question", "│ Who?␛[2J", ""].join(
          "\n"
        ),
        stderr: `assent: answer with: assent sessions --workspace ${at.workspace} answer ses_root REQUEST ANSWER\n`
      })
      const one = yield* sessions(at, ["answer", root, "req_2"])
      assert.strictEqual(one.stdout, "req_2\nA question\n│ Who?␛[2J\n")
      assert.deepStrictEqual(yield* stored(at.file), [])
    })
  )

  live(
    "shows them as lines of JSON, as a peer is asked",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: waiting({ req_1: choice, req_2: question }) })
      yield* sessions(at, ["answer", root, "req_1", "2"])
      const { code, stderr, stdout } = yield* sessions(at, ["answer", root], { json: true })
      assert.deepStrictEqual([code, stderr], [0, ""])
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        lines.map(({ _tag, answeredBy, request }) => [_tag, request.requestId, request.interaction._tag, answeredBy]),
        [
          ["InteractionRequest", "req_1", "Select", user],
          ["InteractionRequest", "req_2", "Ask", undefined]
        ]
      )
    })
  )

  live(
    "keeps the first answer to each, as it is typed, and says what is left and how to go on",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: waiting({ req_1: choice, req_2: question }) })
      const first = yield* sessions(at, ["answer", root, "req_2", "the", "left", "one"])
      assert.deepStrictEqual(first, {
        code: 0,
        stdout: "",
        stderr: `assent: the answer is stored, and counts when the session resumes; 1 more wait for one: assent run --workspace ${at.workspace} --resume ses_root\n`
      })
      const second = yield* sessions(at, ["answer", root, "req_1", "b"])
      assert.notInclude(second.stderr, "more wait")
      assert.include(String((yield* sessions(at, ["answer", root, "req_1", "a"])).code), `${user} has answered it`)
      assert.deepStrictEqual(
        (yield* stored(at.file)).map(({ answer, by, requestId }) => [requestId, answer, by]).sort(),
        [
          ["req_1", 1, user],
          ["req_2", "the left one", user]
        ]
      )
      const shown = yield* sessions(at, ["answer", root])
      assert.include(shown.stdout, `req_1  (answered by ${user}; counts when the session resumes)`)
      assert.include(shown.stderr, "no question is open; resume with: assent run")
    })
  )

  live(
    "says that a secret in an answer can be read until it is used, and leaves nothing of it in the file then",
    Effect.gen(function* () {
      const at = yield* place
      const token = `sk-${"a1B2".repeat(5)}`
      yield* at.seed({ [root]: waiting({ req_1: question, req_2: InteractionSample.samples.Approve.interaction }) })
      const { stderr } = yield* sessions(at, ["answer", root, "req_1", "take", token])
      assert.include(stderr, "it may hold a secret. The store has it")
      const denied = yield* sessions(at, ["answer", root, "req_2", `c: not with ${token}`])
      assert.notInclude(denied.stderr, "may hold a secret")
      assert.deepStrictEqual(
        (yield* stored(at.file)).map(({ answer }) => answer),
        [`take ${token}`, { decision: "deny", scope: "once", comment: "not with [REDACTED]" }]
      )
      const settled = {
        _tag: "InteractionSettled",
        requestId: "req_1" as SessionStore.StoredAnswer["requestId"],
        status: "cancelled"
      } as const
      yield* at.seed({ [root]: [draft(settled, root)] })
      assert.strictEqual((yield* stored(at.file)).length, 1)
      const names = yield* at.fs.readDirectory(at.folder)
      assert.include(names, "sessions.db")
      for (const name of names) {
        // The database closes meanwhile, and takes the files beside it along.
        const bytes = yield* Effect.option(at.fs.readFile(`${at.folder}/${name}`))
        assert.isFalse(
          Option.exists(bytes, (found) => Buffer.from(found).includes(token)),
          name
        )
      }
    })
  )

  live(
    "understands of every kind what a person types, and keeps no secret",
    Effect.gen(function* () {
      const at = yield* place
      const typed: { readonly [K in Interaction.Kind]: readonly [line: string, answer: unknown] } = {
        Approve: ["c: not that one", { decision: "deny", scope: "once", comment: "not that one" }],
        grantStageTool: ["deny: too early", { outcome: "deny", note: "too early" }],
        approveSubagentEnvelope: ["y", { outcome: "approve" }],
        Clarify: ["", undefined],
        Ask: ["", ""],
        Select: ["1", 0],
        Confirm: ["no", false],
        Elicit: ["us\nweb\n\n\n0.5\n\n", { name: "web", region: "us", port: 8080, share: 0.5, tls: true }],
        "Auth.DeviceCode": ["done", undefined],
        "Auth.Password": [InteractionSample.password, undefined]
      }
      for (const kind of InteractionSample.kinds) {
        const [line, answer] = typed[kind]
        if (kind === "Clarify") continue
        const id = `ses_${kind.replace(".", "_")}` as SessionId
        const interaction = InteractionSample.samples[kind].interaction
        const drafts = waiting({ [`req_${kind}`]: interaction }).map(({ entry }) => draft(entry, id))
        yield* at.seed({ [id]: drafts })
        const { code } = yield* sessions(at, ["answer", id, `req_${kind}`, line])
        const answers = yield* Effect.scoped(
          Effect.flatMap(StoreLocation.open(at.file), (store) => Effect.map(store.load(id), (loaded) => loaded.answers))
        )
        if (Interaction.isSecret(kind)) {
          assert.include(String(code), "needs a secret, and secrets are not stored. Answer it there: assent run")
          assert.notInclude(String(code), InteractionSample.password)
          assert.deepStrictEqual(answers, [])
        } else {
          assert.strictEqual(code, 0, kind)
          assert.deepStrictEqual(answers[0]?.answer, answer, kind)
        }
      }
    })
  )

  live(
    "takes several answers on one line, and edited arguments",
    Effect.gen(function* () {
      const at = yield* place
      const form = new Interaction.Clarify({
        context: "two things",
        questions: [
          { text: "Which?", question_type: "single_choice", choices: ["a", "b"], required: true },
          { text: "Why?", question_type: "free_text", choices: [], required: false }
        ]
      })
      const { interaction } = InteractionSample.samples.Approve
      yield* at.seed({ [root]: waiting({ req_1: form, req_2: interaction }) })
      const told = (...words: ReadonlyArray<string>) =>
        Effect.map(sessions(at, ["answer", root, ...words]), ({ code }) => String(code))
      assert.match(yield* told("req_1", "c"), /Question 1: /)
      assert.match(yield* told("req_1", "cancel"), /^Request req_1 \(Clarify\) cannot be cancelled here/)
      assert.strictEqual(yield* told("req_1", '{"1": "b", "2": "because"}'), "0")
      for (const line of ["{", '{"decision": "maybe"}', "{}"]) {
        assert.match(
          yield* told("req_2", line),
          /^Request req_2 \(Approve\) does not take that answer: .*It stays open\.$/
        )
      }
      assert.strictEqual(yield* told("req_2", '{"decision": "deny", "scope": "session"}'), "0")
      assert.deepStrictEqual(
        (yield* stored(at.file)).map(({ answer }) => answer),
        [
          { "1": { selected: 2, text: "b" }, "2": { value: "because" } },
          { decision: "deny", scope: "session" }
        ]
      )
    })
  )

  live(
    "turns away what is no answer, or is for no open request, and changes nothing",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({
        [root]: [...waiting({ req_1: choice, req_2: question, req_3: question }), draft(settled("req_3", "me"))]
      })
      const told = (...words: ReadonlyArray<string>) =>
        Effect.map(sessions(at, ["answer", root, ...words]), ({ code }) => code)
      const others = "There are open: req_1, req_2."
      for (const [words, message] of [
        [
          ["req_1", "3"],
          "Request req_1 (Select) does not take that answer: Please type a number from 1 to 2, or one of the choices. It stays open."
        ],
        [["req_1", ""], "Request req_1 (Select) does not take that answer"],
        [
          ["req_1", "cancel"],
          "Request req_1 (Select) cannot be cancelled here, only answered. Cancel it there: assent run"
        ],
        [["req_3", "you"], `Request req_3 was settled before (answered by person). ${others}`],
        [["req_3"], `Request req_3 was settled before (answered by person). ${others}`],
        [["req_4\u001b", "1"], `This session has no open request req_4\\u{1b}. ${others}`],
        [["1"], `This session has no open request 1. ${others}`]
      ] as const) {
        assert.include(String(yield* told(...words)), message)
      }
      assert.deepStrictEqual(yield* stored(at.file), [])
      yield* at.seed({ ses_b: [draft(opened("ses_b" as SessionId), "ses_b" as SessionId)] })
      const none = yield* sessions(at, ["answer", "ses_b"])
      assert.deepStrictEqual([none.code, none.stderr], [0, "assent: no request of this session is open.\n"])
      const other = yield* sessions(at, ["answer", "ses_b", "req_1", "1"])
      assert.strictEqual(other.code, "This session has no open request req_1. Nothing is open there.")
    })
  )

  live(
    "leaves a session alone that is run, and says by whom",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.seed({ [root]: waiting({ req_1: choice }) })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* StoreLocation.open(at.file)
          yield* store.lock(root)
          const shown = yield* sessions(at, ["answer", root])
          assert.include(shown.stdout, "req_1")
          assert.include(shown.stderr, `this session runs in process ${process.pid} on `)
          assert.include(shown.stderr, "answer it there")
          const { code } = yield* sessions(at, ["answer", root, "req_1", "1"])
          assert.include(String(code), `Session ses_root is run by process ${process.pid}`)
        })
      )
      assert.deepStrictEqual(yield* stored(at.file), [])
      assert.strictEqual((yield* sessions(at, ["answer", root, "req_1", "1"])).code, 0)
    })
  )
})
