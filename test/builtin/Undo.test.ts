/** Files that are put back: those that are as the agent left them, and no others. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as FastCheck from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Checkpoints from "../../src/builtin/Checkpoints.js"
import * as EditorFiles from "../../src/builtin/EditorFiles.js"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as FetchUrl from "../../src/builtin/FetchUrl.js"
import * as Planning from "../../src/builtin/Planning.js"
import * as Undo from "../../src/builtin/Undo.js"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as WorkspaceFile from "../../src/builtin/WorkspaceFile.js"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as Digest from "../../src/core/Digest.js"
import type { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import type { Draft, JournalEntry } from "../../src/journal/JournalEntry.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Runs from "../kit/Runs.js"

const { draft, opened, received, root, taken, turnEnded } = JournalSample
const child = "ses_child" as SessionId

/** A session that works on files, call by call, in a directory of its own. */
class Story {
  readonly base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-undo-")))
  readonly root = path.join(this.base, "ws")
  readonly outside = path.join(this.base, "outside")
  readonly drafts: Array<Draft> = [draft(opened())]
  readonly recorded: Array<string> = []
  turn = 0
  calls = 0
  checkpoints: Checkpoints.Service | undefined

  constructor() {
    fs.mkdirSync(this.root)
    fs.mkdirSync(this.outside)
  }

  at(name: string) {
    return path.join(this.root, name)
  }

  put(name: string, content: string | Uint8Array, mode = 0o644) {
    fs.mkdirSync(path.dirname(this.at(name)), { recursive: true })
    fs.writeFileSync(this.at(name), content)
    fs.chmodSync(this.at(name), mode)
  }

  /** Every file with its content and mode, every directory, every link. */
  get all(): Readonly<Record<string, string>> {
    const names = fs
      .readdirSync(this.base, { recursive: true, encoding: "utf8" })
      .filter((name) => !name.startsWith("state"))
    return Object.fromEntries(
      names.sort().map((name) => {
        const file = path.join(this.base, name)
        const info = fs.lstatSync(file)
        if (info.isSymbolicLink()) return [name, `-> ${fs.readlinkSync(file)}`]
        return [
          name,
          info.isDirectory() ? "/" : `${(info.mode & 0o777).toString(8)} ${fs.readFileSync(file, "latin1")}`
        ]
      })
    )
  }

  begin() {
    this.turn++
    this.drafts.push(
      draft(received(`msg_${this.turn}`, "go")),
      draft(taken(`turn_${this.turn}`, 1, `msg_${this.turn}`))
    )
  }

  end() {
    this.drafts.push(draft(turnEnded(`turn_${this.turn}`)))
  }

  workspace(wrap: (real: FileSystem.FileSystem) => FileSystem.FileSystem = (real) => real) {
    return Effect.gen(this, function* () {
      this.checkpoints ??= yield* Checkpoints.make(path.join(this.base, "state"), { file: 1_000, session: 3_000 })
      const made = WorkspaceRoot.make({ root: this.root }).pipe(
        Effect.provideService(Checkpoints.Checkpoints, this.checkpoints),
        Effect.provideService(FileSystem.FileSystem, wrap(yield* FileSystem.FileSystem)),
        Effect.provide(NodeFiles.layer)
      )
      return yield* made
    })
  }

  /** A call as it runs and is written down. */
  call(
    tool: string,
    params: object,
    run: Effect.Effect<string, string, WorkspaceRoot.WorkspaceRoot>,
    {
      sessionId = root,
      outcome = "succeeded" as const
    }: { readonly sessionId?: SessionId; readonly outcome?: "succeeded" } = {}
  ) {
    return Effect.gen(this, function* () {
      const toolCallId = `call_${++this.calls}` as ToolCallId
      const started: JournalEntry = { _tag: "ToolStarted", toolCallId, tool, params }
      this.drafts.push(draft(started, sessionId))
      const origin: Origin.Origin = {
        sessionId,
        rootSessionId: root,
        agent: "main",
        depth: sessionId === root ? 0 : 1,
        correlationId: `turn_${sessionId === root ? "" : "c"}${this.turn}` as CorrelationId,
        toolCallId
      }
      const ended = yield* Effect.either(
        Effect.provideService(run, WorkspaceRoot.WorkspaceRoot, yield* this.workspace()).pipe(Origin.withOrigin(origin))
      )
      this.drafts.push(
        draft(
          { _tag: "ToolEnded", toolCallId, outcome: Either.isRight(ended) ? outcome : "failed", result: "" },
          sessionId
        )
      )
      return toolCallId
    })
  }

  write(name: string, content: string, sessionId?: SessionId) {
    const params = { path: name, content }
    const write = Effect.zipRight(Effect.ignore(WorkspaceFile.showWrite(params)), WorkspaceFile.write(params))
    return this.call("write_file", params, write, sessionId === undefined ? {} : { sessionId })
  }

  edit(name: string, old_text: string, new_text: string) {
    const params = { path: name, old_text, new_text }
    return this.call("edit_file", params, WorkspaceFile.edit(params))
  }

  undo(options: Partial<Undo.Options> = {}, wrap?: (real: FileSystem.FileSystem) => FileSystem.FileSystem) {
    return Effect.gen(this, function* () {
      const workspace = yield* this.workspace(wrap)
      const tools = yield* Effect.provide(
        AgentRuntime.registry(
          Toolkit.merge(Workspace.toolkit, Planning.toolkit, Clarification.toolkit, FetchUrl.toolkit)
        ),
        Layer.mergeAll(
          Workspace.layer({ root: this.root }),
          Planning.layer,
          Clarification.layer,
          Layer.provide(FetchUrl.layer, Layer.succeed(FetchUrl.WebAccess, { get: () => Effect.never }))
        )
      )
      return yield* Undo.run({
        loaded: { rootSessionId: root, entries: JournalSample.write(this.drafts), answers: [] },
        tools,
        workspace,
        checkpoints: this.checkpoints ?? Checkpoints.makeMemory(),
        record: (outcome) => Effect.sync(() => void this.recorded.push(Undo.summary(outcome))),
        ...options
      })
    })
  }
}

const told = <A, E>(name: string, test: (story: Story) => Effect.Effect<A, E, NodeContext.NodeContext>) =>
  it.scopedLive(name, () =>
    Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => new Story()),
        ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true }))
      ),
      (story) => Effect.provide(test(story), NodeContext.layer)
    )
  )

const remarks = (found: ReadonlyArray<Undo.Remark>) => found.map(({ what, why }) => `${what}: ${why}`)

describe("an undo", () => {
  told("puts back what was replaced, edited and made in the last turn, with bytes, modes and directories", (story) =>
    Effect.gen(function* () {
      story.put("a.txt", "one\r\ntwo\r\n", 0o751)
      story.put("bin", Uint8Array.of(0, 255, 0, 128), 0o600)
      story.put("empty", "")
      story.put("early.txt", "early")
      story.begin()
      yield* story.write("early.txt", "of turn 1")
      story.end()
      const before = story.all
      story.begin()
      yield* story.edit("a.txt", "two", "three")
      yield* story.edit("a.txt", "one", "zero")
      yield* story.write("bin", "text")
      yield* story.write("empty", "full")
      yield* story.write("new/deep/er.txt", "made")
      yield* story.write("new/deep/too.txt", "made", child)
      yield* story.edit("a.txt", "absent", "present")
      story.end()
      const outcome = yield* story.undo()
      assert.deepStrictEqual(story.all, before)
      assert.deepStrictEqual(outcome.restored, ["a.txt", "bin", "empty"])
      assert.deepStrictEqual(outcome.removed, ["new/deep/er.txt", "new/deep/too.txt"])
      assert.deepStrictEqual([outcome.conflicts, outcome.uncovered], [[], []])
      assert.deepStrictEqual(story.recorded, [
        "turn 2; put back a.txt, bin, empty; removed new/deep/er.txt, new/deep/too.txt"
      ])
      const again = yield* story.undo()
      assert.deepStrictEqual([again.restored, again.removed, again.conflicts, again.uncovered], [[], [], [], []])
      assert.lengthOf(story.recorded, 1)
    })
  )

  /** An editor with these unsaved words of a file. It saves what it is given, or keeps that to itself. */
  const editing = (story: Story, name: string, words: string, saves: boolean) => {
    let held = words
    return EditorFiles.withEditor({
      read: (file) => Effect.succeed(file === story.at(name) ? Option.some(held) : Option.none()),
      write: (_, text) =>
        Effect.sync(() => {
          held = text
          if (saves) story.put(name, text)
        })
    })
  }

  told("puts back the unsaved words that an editor had, and not those on the disk", (story) =>
    Effect.gen(function* () {
      story.put("a.txt", "saved")
      story.begin()
      yield* editing(story, "a.txt", "typed", true)(story.write("a.txt", "by the agent"))
      story.end()
      assert.strictEqual(fs.readFileSync(story.at("a.txt"), "utf8"), "by the agent")
      const { conflicts, restored } = yield* story.undo()
      assert.deepStrictEqual([restored, conflicts], [["a.txt"], []])
      assert.strictEqual(fs.readFileSync(story.at("a.txt"), "utf8"), "typed")
    })
  )

  told("leaves the disk alone if an editor kept the change to itself, and says why", (story) =>
    Effect.gen(function* () {
      story.put("a.txt", "saved")
      story.begin()
      yield* editing(story, "a.txt", "typed", false)(story.write("a.txt", "by the agent"))
      story.end()
      const { conflicts, restored } = yield* story.undo()
      assert.deepStrictEqual(restored, [])
      assert.deepStrictEqual(remarks(conflicts), ["a.txt: it was changed since"])
      assert.strictEqual(fs.readFileSync(story.at("a.txt"), "utf8"), "saved")
    })
  )

  told("leaves alone what is not as the agent left it, and says why", (story) =>
    Effect.gen(function* () {
      const names = ["changed", "gone", "linked", "folder", "between", "through/x", "fine"]
      for (const name of names) story.put(name, `old ${name}`)
      story.begin()
      for (const name of names) yield* story.write(name, `new ${name}`)
      story.put("between", "theirs")
      yield* story.write("between", "new again")
      story.end()
      story.put("changed", "new changed, and more")
      fs.rmSync(story.at("gone"))
      fs.writeFileSync(path.join(story.outside, "target"), "new linked")
      fs.rmSync(story.at("linked"))
      fs.symlinkSync(path.join(story.outside, "target"), story.at("linked"))
      fs.rmSync(story.at("folder"))
      fs.mkdirSync(story.at("folder"))
      fs.renameSync(story.at("through"), path.join(story.outside, "through"))
      fs.symlinkSync(path.join(story.outside, "through"), story.at("through"))
      const before = story.all
      const { conflicts, restored } = yield* story.undo()
      assert.deepStrictEqual(restored, ["fine"])
      assert.deepStrictEqual(
        remarks(conflicts).map((remark) => remark.replace(/; use a path inside .*/, "")),
        [
          "changed: it was changed since",
          "gone: it was removed since",
          `linked: ${story.at("linked")} is outside the workspace`,
          "folder: it is no longer a regular file",
          "between: another program changed it between two calls",
          `through/x: ${story.at("through/x")} is outside the workspace`
        ]
      )
      assert.deepStrictEqual(story.all, { ...before, "ws/fine": "644 old fine" })
      // What was in the way is gone: the rest of it is undone then.
      fs.writeFileSync(story.at("changed"), "new changed")
      assert.deepStrictEqual((yield* story.undo()).restored, ["changed"])
      assert.strictEqual(story.all["ws/changed"], "644 old changed")
    })
  )

  told("follows no link to another file inside", (story) =>
    Effect.gen(function* () {
      story.put("a", "old")
      story.put("b", "new")
      story.begin()
      yield* story.write("a", "new")
      story.end()
      fs.rmSync(story.at("a"))
      fs.symlinkSync("b", story.at("a"))
      const before = story.all
      assert.deepStrictEqual(remarks((yield* story.undo()).conflicts), ["a: a symbolic link now leads elsewhere"])
      assert.deepStrictEqual(story.all, before)
    })
  )

  told("makes nothing where the workspace is gone, and says so", (story) =>
    Effect.gen(function* () {
      story.put("a", "old")
      story.begin()
      yield* story.write("a", "new")
      yield* story.write("made", "new")
      story.end()
      fs.rmSync(story.root, { recursive: true })
      assert.include(yield* Effect.flip(story.undo()), `The workspace is gone: there is no directory ${story.root}.`)
      assert.isFalse(fs.existsSync(story.root))
      assert.deepStrictEqual(story.recorded, [])
    })
  )

  told("brings back what a tool deleted, with its mode, and not over another file", (story) =>
    Effect.gen(function* () {
      story.put("dir/a", "old", 0o750)
      story.put("b", "old")
      const before = story.all
      story.begin()
      for (const name of ["dir/a", "b"]) {
        const toolCallId = yield* story.call("delete_file", { path: name }, Effect.succeed(""))
        const bytes = new TextEncoder().encode("old")
        yield* Effect.flatMap(story.workspace(), ({ checkpoints = Checkpoints.makeMemory() }) =>
          checkpoints.keep(
            root,
            {
              path: story.at(name),
              shown: name,
              sessionId: root,
              toolCallId,
              correlationId: "turn_1" as CorrelationId,
              depth: 0,
              before: { digest: Digest.sha256("old"), mode: fs.statSync(story.at(name)).mode & 0o777, size: 3 },
              made: []
            },
            Effect.succeed(bytes)
          )
        )
        fs.rmSync(story.at(name))
      }
      fs.rmdirSync(story.at("dir"))
      story.end()
      story.put("b", "theirs")
      const { conflicts, restored } = yield* story.undo()
      assert.deepStrictEqual(restored, ["dir/a"])
      assert.deepStrictEqual(remarks(conflicts), ["b: it is there again"])
      assert.deepStrictEqual(story.all, { ...before, "ws/b": "644 theirs" })
    })
  )

  told("names what it does not cover: commands, and what was too large to be kept", (story) =>
    Effect.gen(function* () {
      story.put("large", "x".repeat(1_001))
      for (const name of ["one", "two", "three", "four"]) story.put(name, name.repeat(300).slice(0, 900))
      story.begin()
      for (const name of ["large", "one", "two", "three", "four"]) yield* story.write(name, "new")
      yield* story.call("run_command", { command: "rm -rf dist\n&& make" }, Effect.succeed(""))
      yield* story.call("read_file", { path: "one" }, Effect.succeed(""))
      for (const tool of ["todo_write", "propose_plan", "fetch_url", "ask_user"])
        yield* story.call(tool, {}, Effect.succeed(""))
      yield* story.call("write_file", { path: "refused" }, Effect.fail("no"))
      yield* story.call("write_file", { path: "lost" }, Effect.succeed(""))
      story.end()
      const { restored, uncovered } = yield* story.undo()
      assert.deepStrictEqual(restored, ["one", "two", "three"])
      assert.deepStrictEqual(remarks(uncovered), [
        "large: it is larger than 1000 bytes",
        "four: more than 3000 bytes would be kept",
        "run_command rm -rf dist && make: what commands changed stays",
        "write_file lost: the old content was not stored"
      ])
    })
  )

  told("is nothing where the last turn changed nothing, has not ended, or was another session's", (story) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Effect.flip(story.undo()), "Nothing was done in this session yet.")
      story.put("a", "old")
      story.begin()
      yield* story.write("a", "new")
      assert.strictEqual(yield* Effect.flip(story.undo()), "The last turn has not ended.")
      story.end()
      story.begin()
      story.end()
      const { removed, restored } = yield* story.undo()
      assert.deepStrictEqual([removed, restored], [[], []])
      assert.strictEqual(story.all["ws/a"], "644 new")
      const forkOf = { rootSessionId: "ses_parent" as SessionId, turn: 2, entry: 9, subagents: 0, spent: [] }
      story.drafts[0] = draft(opened(root, { forkOf }))
      assert.match(yield* Effect.flip(story.undo()), /made in session ses_parent; only there can it be undone/)
    })
  )
})

describe("an undo that goes wrong", () => {
  const two = (story: Story) =>
    Effect.gen(function* () {
      for (const name of ["a", "b", "c"]) story.put(name, `old ${name}`)
      story.begin()
      for (const name of ["a", "b", "c"]) yield* story.write(name, `new ${name}`)
      yield* story.write("made/d", "d")
      story.end()
    })

  told("changes nothing when it cannot be recorded", (story) =>
    Effect.gen(function* () {
      yield* two(story)
      const before = story.all
      const refused = yield* Effect.flip(story.undo({ record: () => Effect.fail({ message: "The audit is full." }) }))
      assert.strictEqual(refused, "The audit is full.")
      assert.deepStrictEqual(story.all, before)
      assert.lengthOf((yield* story.undo()).restored, 3)
    })
  )

  for (const fails of [0, 1, 2, 3]) {
    told(`takes everything back when exchange ${fails} fails`, (story) =>
      Effect.gen(function* () {
        yield* two(story)
        const before = story.all
        let renames = 0
        const refused = yield* Effect.flip(
          story.undo({}, (real) => ({
            ...real,
            // Those of the exchange come first.
            rename: (from, to) =>
              Effect.suspend(() => real.rename(renames++ === fails ? `${from}-is-not-there` : from, to))
          }))
        )
        assert.match(refused, /Nothing was restored\.$/)
        assert.deepStrictEqual(story.all, before)
        assert.lengthOf((yield* story.undo()).restored, 3)
      })
    )

    told(`is finished by the next one when the process dies at exchange ${fails}`, (story) =>
      Effect.gen(function* () {
        const old = ["a", "b", "c"].map((name) => [`ws/${name}`, `644 old ${name}`])
        yield* two(story)
        let renames = 0
        const dying = story.undo({}, (real) => ({
          ...real,
          rename: (from, to) =>
            Effect.suspend(() => (renames++ === fails ? Effect.die("killed") : real.rename(from, to))),
          // The dead tidy nothing up.
          remove: () => Effect.suspend(() => Effect.die("dead"))
        }))
        assert.strictEqual((yield* Effect.exit(dying))._tag, "Failure")
        for (const name of ["a", "b", "c"]) assert.match(story.all[`ws/${name}`] ?? "", /^644 (?:old|new) [abc]$/)
        assert.isTrue(yield* Checkpoints.isUnfinished(story.checkpoints ?? Checkpoints.makeMemory(), root))
        yield* story.undo()
        assert.deepStrictEqual(story.all, { ...Object.fromEntries(old), outside: "/", ws: "/" })
        assert.isFalse(yield* Checkpoints.isUnfinished(story.checkpoints ?? Checkpoints.makeMemory(), root))
      })
    )
  }
})

describe("an undo of anything", () => {
  const names = ["a", "d/b", "d/c"]
  const plans = FastCheck.array(
    FastCheck.record({
      who: FastCheck.constantFrom("agent", "child", "agent", "person", "remove"),
      name: FastCheck.constantFrom(...names),
      text: FastCheck.constantFrom("1", "2", "3", "")
    }),
    { maxLength: 8 }
  )

  it("gives every file back that nobody else touched, and leaves every other one as it is", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.subarray(names), plans, async (there, plan) => {
        const story = new Story()
        const body = Effect.gen(function* () {
          for (const name of there) story.put(name, `first ${name}`)
          const before = story.all
          story.begin()
          /** What the first call of the turn found, and whether somebody came in after it. */
          const found = new Map<string, string | undefined>()
          const foreign = new Set<string>()
          for (const { name, text, who } of plan) {
            const file = `ws/${name}`
            if (who === "person") story.put(name, `theirs ${text}`)
            else if (who === "remove") fs.rmSync(story.at(name), { force: true })
            else {
              if (!found.has(file)) found.set(file, story.all[file])
              yield* story.write(name, `ours ${text}`, who === "child" ? child : undefined)
              continue
            }
            if (found.has(file)) foreign.add(file)
          }
          story.end()
          const now = story.all
          yield* story.undo()
          const after = story.all
          for (const name of names.map((name) => `ws/${name}`)) {
            const isOurs = found.has(name) && !foreign.has(name)
            assert.strictEqual(after[name], isOurs ? found.get(name) : now[name], name)
          }
          if (foreign.size === 0 && plan.every(({ who }) => who === "agent" || who === "child")) {
            assert.deepStrictEqual(after, before)
          }
          assert.deepStrictEqual(
            Object.keys(after).filter((name) => name.includes(".tmp")),
            []
          )
        })
        try {
          await Effect.runPromise(Effect.provide(Effect.scoped(body), NodeContext.layer))
        } finally {
          fs.rmSync(story.base, { recursive: true })
        }
      }),
      { numRuns: Runs.of(120) }
    )
  })
})
