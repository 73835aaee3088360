import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Digest from "../../src/core/Digest.js"
import { SessionId, type CorrelationId, type RequestId, type ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as AuditArchive from "../../src/audit/AuditArchive.js"
import type { AuditBroken } from "../../src/audit/AuditBroken.js"
import * as AuditChain from "../../src/audit/AuditChain.js"
import * as AuditFile from "../../src/audit/AuditFile.js"
import * as AuditRecord from "../../src/audit/AuditRecord.js"
import * as AuditReport from "../../src/audit/AuditReport.js"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as Runs from "../kit/Runs.js"

// -----------------------------------------------------------------------------------------------------------------
// samples
// -----------------------------------------------------------------------------------------------------------------

const root = "ses_1" as SessionId
const key = Redacted.make("3f1c9a77d2e84b60a5c0")
const otherKey = Redacted.make("another key, as long")

const origin: Origin.Origin = {
  sessionId: "ses_2" as SessionId,
  rootSessionId: root,
  agent: "main/code_reviewer",
  depth: 1,
  correlationId: "turn_1" as CorrelationId
}

const asked = (n: number): AuditRecord.AuditEntry =>
  AuditRecord.permission(origin, {
    tool: "run_command",
    toolCallId: `call_${n}` as ToolCallId,
    args: { command: `make ${n}` },
    granted: n % 2 === 0,
    method: n % 2 === 0 ? "user_approved" : "user_denied",
    reason: n % 2 === 0 ? "allowed (once) by console" : "der Benutzer sagte „nein“ \u{1F6D1}",
    requestId: `req_${n}` as RequestId,
    by: "console",
    how: "answered",
    askedAt: 1_000 * n,
    answeredAt: 1_000 * n + 500
  })

const question: AuditRecord.AuditEntry = {
  class: "interaction",
  kind: "Ask",
  outcome: "answered",
  rootSessionId: root,
  sessionId: root,
  agent: "main",
  answeredAt: 5
}

// -----------------------------------------------------------------------------------------------------------------
// kit
// -----------------------------------------------------------------------------------------------------------------

type Platform = FileSystem.FileSystem | Path.Path

let temporary = ""
const platform = <A, E>(effect: Effect.Effect<A, E, Platform>) => Effect.provide(effect, NodeContext.layer)
beforeAll(async () => {
  temporary = await Effect.runPromise(
    platform(Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectory({ prefix: "assent-audit-" })))
  )
})
afterAll(() =>
  Effect.runPromise(
    platform(Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(temporary, { recursive: true, force: true })))
  )
)

interface Place extends AuditArchive.Archive {
  readonly files: AuditChain.Files
}

const newPlace = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* fs.makeTempDirectory({ directory: temporary })
  const archive = { directory: path.join(base, "audit"), headDirectory: path.join(base, "heads") }
  return { ...archive, files: AuditArchive.files(path, archive, root) } satisfies Place
})

/** Runs one process: writes these entries one after the other, then ends. */
const process = (
  place: AuditArchive.Archive,
  entries: ReadonlyArray<AuditRecord.AuditEntry>,
  options: Partial<AuditFile.Options> = {}
) =>
  Effect.scoped(
    Effect.flatMap(AuditFile.make({ ...place, ...options }), (trail) =>
      Effect.forEach(entries, trail.record, { discard: true })
    )
  )

/** Whole and line by line, which come to the same. */
const verify = (place: AuditArchive.Archive, withKey?: AuditChain.Key) =>
  Effect.gen(function* () {
    const whole = yield* Effect.either(AuditArchive.verifySession(place, root, withKey))
    const streamed = yield* Effect.either(AuditArchive.verifyStreamed(place, root, withKey))
    if (Either.isLeft(whole) || Either.isLeft(streamed)) assert.deepStrictEqual<unknown>(streamed, whole)
    else {
      const { records, ...summary } = whole.right
      const { open: _, reopened, ...others } = streamed.right
      assert.deepStrictEqual(others, summary)
      assert.deepStrictEqual<ReadonlyArray<unknown>>(
        reopened,
        records.filter((record) => record._tag === "Reopened" && (record.unsealed > 0 || record.torn > 0))
      )
    }
    return yield* whole
  })

const broken = (place: AuditArchive.Archive, withKey?: AuditChain.Key) =>
  Effect.flatMap(Effect.either(verify(place, withKey)), (verified) =>
    Either.isLeft(verified) ? Effect.succeed(verified.left) : Effect.dieMessage("it verifies")
  )

const text = (file: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(file))

const overwrite = (file: string, content: string | Uint8Array) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    typeof content === "string" ? fs.writeFileString(file, content) : fs.writeFile(file, content)
  )

const remove = (file: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(file))

/** A file system on which some calls go otherwise. */
const withFiles = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  change: (fs: FileSystem.FileSystem) => Partial<FileSystem.FileSystem>
) => Effect.updateService(effect, FileSystem.FileSystem, (fs) => ({ ...fs, ...change(fs) }))

/** Heads that take until `goOn` to be written, which begins with `writing`. */
const slowHead = Effect.gen(function* () {
  const writing = yield* Deferred.make<void>()
  const goOn = yield* Deferred.make<void>()
  const held = (fs: FileSystem.FileSystem): Partial<FileSystem.FileSystem> => ({
    rename: (from, to) =>
      Deferred.succeed(writing, undefined).pipe(
        Effect.zipRight(Deferred.await(goOn)),
        Effect.zipRight(fs.rename(from, to))
      )
  })
  return { writing, goOn, held }
})

const diskFull = new PlatformError.SystemError({
  reason: "Unknown",
  module: "FileSystem",
  method: "write",
  description: "ENOSPC: no space left on device"
})

const live = <E>(name: string, effect: Effect.Effect<void, E, Platform | Scope.Scope>) =>
  it.live(name, () => platform(Effect.scoped(effect)))

// -----------------------------------------------------------------------------------------------------------------
// tests
// -----------------------------------------------------------------------------------------------------------------

describe("without a layer", () => {
  it.effect("nothing is kept, and recording succeeds", () =>
    Effect.gen(function* () {
      yield* AuditTrail.record(question)
      yield* Effect.provide(AuditTrail.record(question), AuditTrail.layerNoop)
    })
  )
})

describe("in memory", () => {
  it.effect("every decision is kept in order, with the digest of its arguments instead of them", () =>
    Effect.gen(function* () {
      yield* AuditTrail.record(asked(1))
      yield* AuditTrail.record(question)
      const { decisions } = yield* AuditTrail.AuditMemory
      assert.deepStrictEqual(JSON.parse(JSON.stringify(yield* decisions)), [
        {
          _tag: "Decided",
          class: "permission",
          kind: "Approve",
          outcome: "denied",
          sessionId: "ses_2",
          agent: "main/code_reviewer",
          correlationId: "turn_1",
          requestId: "req_1",
          method: "user_denied",
          reason: "der Benutzer sagte „nein“ \u{1F6D1}",
          by: "console",
          how: "answered",
          askedAt: 1_000,
          answeredAt: 1_500,
          tool: "run_command",
          toolCallId: "call_1",
          argsDigest: Digest.digest({ command: "make 1" })
        },
        {
          _tag: "Decided",
          class: "interaction",
          kind: "Ask",
          outcome: "answered",
          sessionId: "ses_1",
          agent: "main",
          answeredAt: 5
        }
      ])
    }).pipe(Effect.provide(AuditTrail.layerMemory()))
  )

  it("keeps a refusal, a withdrawal, a timeout and an absence apart", () => {
    const outcomeOf = (method: Parameters<typeof AuditRecord.permission>[1]["method"], granted = false) =>
      AuditRecord.permission(origin, {
        tool: "t",
        toolCallId: "c" as ToolCallId,
        args: {},
        granted,
        method,
        reason: "",
        answeredAt: 0
      }).outcome
    assert.deepStrictEqual(
      [
        outcomeOf("user_denied"),
        outcomeOf("guard"),
        outcomeOf("cancelled"),
        outcomeOf("timeout"),
        outcomeOf("unavailable"),
        outcomeOf("timeout", true)
      ],
      ["denied", "denied", "cancelled", "timed_out", "unavailable", "granted"]
    )
  })
})

describe("in files", () => {
  live(
    "a trail begins with its session, holds every decision, and verifies",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1), asked(2), question])
      const chain = yield* verify(place)
      assert.deepStrictEqual(
        chain.records.map((record) => [record.seq, record._tag]),
        [
          [1, "Opened"],
          [2, "Decided"],
          [3, "Decided"],
          [4, "Decided"]
        ]
      )
      assert.deepStrictEqual([chain.sessionId, chain.keyed, chain.torn], [root, false, 0])
      const [opened, first] = (yield* text(place.files.trail)).split("\n").map((line) => JSON.parse(line || "{}"))
      assert.include(opened, { version: 1, sessionId: root, seq: 1, prev: "0".repeat(64) })
      assert.include(first, { seq: 2, prev: opened.hash, argsDigest: Digest.digest({ command: "make 1" }) })
      const head = JSON.parse(yield* text(place.files.head))
      assert.include(head, { sessionId: root, directory: place.directory, count: 4, hash: chain.last.hash })
    })
  )

  live(
    "nothing is created before the first decision, and what is created only its owner can read",
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      assert.deepStrictEqual([yield* fs.exists(place.directory), yield* fs.exists(place.headDirectory)], [false, false])
      yield* trail.record(question)
      const modes = yield* Effect.forEach([place.directory, place.files.trail, place.files.head], (file) =>
        Effect.map(fs.stat(file), ({ mode }) => (mode & 0o777).toString(8))
      )
      assert.deepStrictEqual(modes, ["700", "600", "600"])
    })
  )

  live(
    "it is on the disk when recording returns",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      for (const n of [1, 2, 3]) {
        yield* trail.record(asked(n))
        assert.strictEqual((yield* verify(place)).records.length, n + 1)
      }
    })
  )

  live(
    "a trail verifies while it is being written",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      yield* trail.record(asked(1))
      let reads = 0
      const { records } = yield* withFiles(verify(place), (fs) => ({
        readFile: (file) =>
          // The next decision falls between reading the head and reading the trail.
          ++reads === 2 ? Effect.zipRight(Effect.orDie(trail.record(asked(2))), fs.readFile(file)) : fs.readFile(file)
      }))
      assert.strictEqual(records.length, 3)
    })
  )

  live(
    "what is decided at the same time keeps its order and shares its way to the disk",
    Effect.gen(function* () {
      const place = yield* newPlace
      let appended = 0
      const trail = yield* withFiles(AuditFile.make(place), (fs) => ({
        open: (file, options) => {
          if (options?.flag === "a") appended++
          return fs.open(file, options)
        }
      }))
      const numbers = Array.from({ length: 500 }, (_, n) => n)
      yield* Effect.forEach(numbers, (n) => trail.record(asked(n)), { concurrency: "unbounded", discard: true })
      const { records } = yield* verify(place)
      assert.deepStrictEqual(
        records.flatMap((record) => (record._tag === "Decided" ? [record.toolCallId] : [])),
        numbers.map((n) => `call_${n}` as ToolCallId)
      )
      assert.isAtMost(appended, 3)
    })
  )

  live(
    "every root session has its own trail, whatever it is called",
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const place = yield* newPlace
      const names = ["ses_1", "../../escape", "a/b", ".", "x\u001b[2J"].map((name) => SessionId.make(name))
      yield* Effect.scoped(
        Effect.flatMap(AuditFile.make(place), (trail) =>
          Effect.forEach(names, (rootSessionId) => trail.record({ ...question, rootSessionId }), {
            concurrency: "unbounded"
          })
        )
      )
      const written = yield* fs.readDirectory(place.directory)
      assert.strictEqual(written.length, names.length)
      assert.isFalse(written.some((name) => name.startsWith(".")))
      assert.deepStrictEqual((yield* fs.readDirectory(path.dirname(place.directory))).sort(), ["audit", "heads"])
      assert.deepStrictEqual(yield* AuditArchive.sessions(place), [...names].sort())
      for (const name of names) assert.strictEqual((yield* AuditArchive.verifySession(place, name)).sessionId, name)
    })
  )

  live(
    "a trail under the name of another session does not verify, even with its own head",
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const place = yield* newPlace
      yield* process(place, [asked(1)], { key })
      const other = SessionId.make("ses_2")
      const files = AuditArchive.files(path, place, other)
      yield* fs.copyFile(place.files.trail, files.trail)
      yield* fs.copyFile(place.files.head, files.head)
      assert.strictEqual((yield* Effect.flip(AuditArchive.verifySession(place, other, key))).problem, "foreign")
      const record = process(place, [{ ...asked(2), rootSessionId: other }], { key })
      assert.include((yield* Effect.flip(record)).message, "another session")
    })
  )

  live(
    "decisions that no session made get a trail of this process",
    Effect.gen(function* () {
      const place = yield* newPlace
      const outside = { ...question, rootSessionId: Origin.outside.rootSessionId }
      yield* process(place, [outside, outside])
      yield* process(place, [outside])
      const sessions = yield* AuditArchive.sessions(place)
      assert.strictEqual(sessions.length, 2)
      assert.notInclude(sessions, Origin.outside.rootSessionId)
    })
  )

  live(
    "a later process goes on with the trail, and the trail says so",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* process(place, [asked(2)])
      const { records } = yield* verify(place)
      assert.deepStrictEqual(
        records.map(({ _tag }) => _tag),
        ["Opened", "Decided", "Reopened", "Decided"]
      )
      assert.include(records[2], { unsealed: 0, torn: 0 })
    })
  )

  live(
    "the trail of a fork begins with where it comes from",
    Effect.gen(function* () {
      const place = yield* newPlace
      const forkOf = { sessionId: SessionId.make("ses_parent"), turn: 2, entry: 17 }
      yield* process(place, [{ ...question, class: "session", kind: "fork", forkOf }, asked(1)])
      yield* process(place, [asked(2)])
      const { records } = yield* verify(place)
      assert.deepInclude(records[0], { _tag: "Opened", forkOf })
      assert.notProperty(records[1], "forkOf")
      assert.deepStrictEqual(
        records
          .slice(0, 3)
          .map((record) => AuditReport.line(record).includes("a fork of ses_parent at the end of turn 2")),
        [true, false, false]
      )
      // Of a trail that is whole, nothing is said of who wrote in it before.
      assert.match(AuditReport.line(records[3] ?? assert.fail("it was not opened again")), /reopened$/)
    })
  )

  live(
    "a released session can come back",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      yield* trail.record(asked(1))
      yield* trail.release(root)
      yield* trail.record(asked(2))
      assert.strictEqual((yield* verify(place)).records.length, 4)
    })
  )

  live(
    "closing writes what waits; afterwards nothing can be recorded",
    Effect.gen(function* () {
      const place = yield* newPlace
      const scope = yield* Scope.make()
      const { goOn, held, writing } = yield* slowHead
      const trail = yield* Scope.extend(withFiles(AuditFile.make(place), held), scope)
      const first = yield* Effect.fork(trail.record(asked(1)))
      yield* Deferred.await(writing)
      const others = yield* Effect.fork(
        Effect.forEach([2, 3], (n) => trail.record(asked(n)), { concurrency: "unbounded" })
      )
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      // Until they stand in line.
      yield* Effect.repeatN(Effect.yieldNow(), 20)
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.joinAll<unknown, AuditTrail.AuditUnwritable>([first, others, closing])
      assert.strictEqual((yield* verify(place)).records.length, 4)
      const error = yield* Effect.flip(trail.record(asked(4)))
      assert.include(error.message, "the program is ending")
    })
  )

  live(
    "interrupting the wait does not take the record back, and does not stop the writer",
    Effect.gen(function* () {
      const place = yield* newPlace
      const { goOn, held, writing } = yield* slowHead
      const trail = yield* withFiles(AuditFile.make(place), held)
      const fiber = yield* Effect.fork(trail.record(asked(1)))
      yield* Deferred.await(writing)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.succeed(goOn, undefined)
      yield* trail.record(asked(2))
      assert.strictEqual((yield* verify(place)).records.length, 3)
    })
  )

  it.effect("the time of a trail is the program's clock", () =>
    platform(
      Effect.gen(function* () {
        const place = yield* newPlace
        yield* TestClock.adjust(77)
        yield* process(place, [asked(1)])
        assert.include((yield* verify(place)).records[0], { at: 77 })
      })
    )
  )
})

describe("secrets", () => {
  const canary = "correct horse battery staple"
  const token = `sk-ant-${"x7".repeat(20)}`

  live(
    "no secret reaches a file: not from any text, not from arguments, not cut in half",
    Effect.gen(function* () {
      const place = yield* newPlace
      const redactor = Redaction.make([Redacted.make(canary)])
      const told = `why: ${canary} and ${token}`
      const entry: AuditRecord.AuditEntry = {
        ...asked(1),
        kind: told,
        agent: told,
        method: told,
        reason: told,
        by: told,
        how: told,
        tool: told,
        requestId: told as RequestId,
        correlationId: told as CorrelationId,
        toolCallId: told as ToolCallId,
        args: { password: canary, token }
      }
      yield* process(place, [entry, { ...entry, reason: `${"a".repeat(3_990)}${canary}${"b".repeat(9_000)}` }], {
        redactor,
        key
      })
      const everything = (yield* text(place.files.trail)) + (yield* text(place.files.head))
      assert.notInclude(everything, canary)
      assert.notInclude(everything, canary.slice(0, 9))
      assert.notInclude(everything, token)
      assert.notInclude(everything, Redacted.value(key))
      assert.include(everything, Redaction.mask)
      const records = (yield* verify(place, key)).records
      assert.deepStrictEqual(
        records.flatMap((record) => (record._tag === "Decided" ? [(record.reason ?? "").length <= 4_000] : [])),
        [true, true]
      )
    })
  )

  live(
    "a secret that is declared later is masked from then on",
    Effect.gen(function* () {
      const place = yield* newPlace
      const redactor = Redaction.make()
      const trail = yield* AuditFile.make({ ...place, redactor })
      redactor.declare(Redacted.make("hunter22"))
      yield* trail.record({ ...question, reason: "it is hunter22" })
      assert.notInclude(yield* text(place.files.trail), "hunter22")
    })
  )
})

describe("what cannot be recorded", () => {
  live(
    "directories that cannot be written to are refused at once",
    Effect.gen(function* () {
      const path = yield* Path.Path
      const place = yield* newPlace
      const file = path.join(path.dirname(place.directory), "file")
      yield* overwrite(file, "")
      for (const options of [
        { ...place, directory: path.join(file, "audit") },
        { ...place, headDirectory: file }
      ]) {
        const error = yield* Effect.flip(AuditFile.make(options))
        assert.strictEqual(error._tag, "AuditUnwritable")
        assert.include(error.message, "Nothing is allowed unrecorded")
      }
    })
  )

  live(
    "a full disk fails the decision, leaves nothing half-written, and the next one goes through",
    Effect.gen(function* () {
      const place = yield* newPlace
      let full = false
      const trail = yield* withFiles(AuditFile.make(place), (fs) => ({
        open: (file, options) =>
          Effect.map(fs.open(file, options), (opened) =>
            // A file's members live on its class.
            Object.assign(Object.create(opened) as FileSystem.File, {
              writeAll: (bytes: Uint8Array) =>
                full && options?.flag === "a"
                  ? Effect.zipRight(opened.writeAll(bytes.subarray(0, 20)), Effect.fail(diskFull))
                  : opened.writeAll(bytes)
            })
          )
      }))
      yield* trail.record(asked(1))
      const before = yield* text(place.files.trail)
      full = true
      const failures = yield* Effect.forEach([asked(2), asked(3)], (entry) => Effect.flip(trail.record(entry)), {
        concurrency: "unbounded"
      })
      for (const error of failures) {
        assert.strictEqual(error._tag, "AuditUnwritable")
        assert.include(error.message, "no space left on device")
      }
      assert.strictEqual(yield* text(place.files.trail), before)
      yield* verify(place)
      full = false
      yield* trail.record(asked(4))
      const { records } = yield* verify(place)
      assert.deepStrictEqual(
        records.map(({ _tag }) => _tag),
        ["Opened", "Decided", "Reopened", "Decided"]
      )
    })
  )

  live(
    "a file system that crashes fails the decision, not the program",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* withFiles(AuditFile.make(place), () => ({ rename: () => Effect.dieMessage("boom") }))
      assert.include((yield* Effect.flip(trail.record(asked(1)))).message, "writing crashed: ")
    })
  )

  live(
    "a head that cannot be written takes the records back that it would have sealed",
    Effect.gen(function* () {
      const place = yield* newPlace
      let full = false
      const trail = yield* withFiles(AuditFile.make(place), (fs) => ({
        rename: (from, to) => (full ? Effect.fail(diskFull) : fs.rename(from, to))
      }))
      yield* trail.record(asked(1))
      full = true
      yield* Effect.flip(trail.record(asked(2)))
      assert.strictEqual((yield* verify(place)).records.length, 2)
    })
  )

  live(
    "one session's trouble is not another's",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* overwrite(place.files.trail, "nonsense\n")
      const trail = yield* AuditFile.make(place)
      const [bad, good] = yield* Effect.all(
        [
          Effect.exit(trail.record(asked(2))),
          Effect.exit(trail.record({ ...asked(2), rootSessionId: "ses_9" as SessionId }))
        ],
        { concurrency: "unbounded" }
      )
      assert.isTrue(Exit.isFailure(bad))
      assert.isTrue(Exit.isSuccess(good))
    })
  )

  live(
    "a trail that does not verify is not added to",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1), asked(2)])
      const changed = (yield* text(place.files.trail)).replace("user_denied", "user_appro")
      yield* overwrite(place.files.trail, changed)
      const error = yield* Effect.flip(process(place, [asked(3)]))
      assert.include(error.message, "record 2 was changed")
      assert.strictEqual(yield* text(place.files.trail), changed)
    })
  )

  live(
    "a trail that somebody cuts while it is written is not added to",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      yield* trail.record(asked(1))
      const whole = yield* text(place.files.trail)
      yield* overwrite(place.files.trail, whole.slice(0, whole.indexOf("\n") + 1))
      const first = yield* Effect.flip(trail.record(asked(2)))
      assert.include(first.message, "changed by somebody else")
      const second = yield* Effect.flip(trail.record(asked(2)))
      assert.include(second.message, "record 2 is missing at the end")
    })
  )

  live(
    "a trail written with a key is not added to without it",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)], { key })
      assert.include((yield* Effect.flip(process(place, [asked(2)]))).message, "give that key")
      assert.include((yield* Effect.flip(process(place, [asked(2)], { key: otherKey }))).message, "another key")
      yield* process(place, [asked(2)], { key })
      assert.strictEqual((yield* verify(place, key)).records.length, 4)
    })
  )

  live(
    "arguments that have no JSON fail the decision, not the program",
    Effect.gen(function* () {
      const place = yield* newPlace
      const trail = yield* AuditFile.make(place)
      const circular: { self?: unknown } = {}
      circular.self = circular
      const exit = yield* Effect.exit(trail.record({ ...asked(1), args: circular }))
      assert.isTrue(Exit.isFailure(exit) && Option.isSome(Cause.failureOption(exit.cause)))
      yield* trail.record(asked(2))
      assert.strictEqual((yield* verify(place)).records.length, 2)
    })
  )
})

/** The calls of the decisions that a program reads. */
const toolCalls = (options: AuditFile.Reading) =>
  Effect.map(Stream.runCollect(AuditFile.decisions(options)), (decided) =>
    Array.from(decided, ({ toolCallId }) => String(toolCallId))
  )

describe("decisions of the past", () => {
  const other = "ses_9" as SessionId
  const written = Effect.gen(function* () {
    const place = yield* newPlace
    yield* process(place, [asked(1), asked(2), { ...asked(3), rootSessionId: other }])
    yield* process(place, [asked(4)])
    return place
  })

  live(
    "are those of all trails of a directory, session by session, whatever processes wrote them",
    Effect.gen(function* () {
      const place = yield* written
      assert.deepStrictEqual(yield* toolCalls(place), ["call_1", "call_2", "call_4", "call_3"])
      assert.deepStrictEqual(yield* toolCalls({ ...place, sessionId: other }), ["call_3"])
    })
  )

  live(
    "are none where nothing was written yet",
    Effect.gen(function* () {
      const place = yield* newPlace
      assert.deepStrictEqual(yield* toolCalls(place), [])
      const missing = yield* Effect.flip(toolCalls({ ...place, sessionId: root }))
      assert.include(missing, { _tag: "AuditBroken", problem: "missing" })
    })
  )

  live(
    "are not told of a trail that was changed, and those before it are",
    Effect.gen(function* () {
      const place = yield* written
      const path = yield* Path.Path
      const { trail } = AuditArchive.files(path, place, other)
      yield* overwrite(trail, (yield* text(trail)).replace("user_denied", "user_approved"))
      const told: Array<unknown> = []
      const error = yield* AuditFile.decisions(place).pipe(
        Stream.runForEach(({ toolCallId }) => Effect.sync(() => told.push(toolCallId))),
        Effect.flip
      )
      assert.include(error, { _tag: "AuditBroken", problem: "changed", record: 2 })
      assert.deepStrictEqual(told, ["call_1", "call_2", "call_4"])
    })
  )

  live(
    "need the key that they were written with",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)], { key })
      assert.deepStrictEqual(yield* toolCalls({ ...place, key }), ["call_1"])
      assert.include(yield* Effect.flip(toolCalls(place)), { problem: "keyNeeded" })
    })
  )
})

describe("after a crash", () => {
  /** As a process leaves it that dies after appending and before sealing. */
  const crashed = Effect.gen(function* () {
    const place = yield* newPlace
    yield* process(place, [asked(1)])
    const head = yield* text(place.files.head)
    const sealed = yield* text(place.files.trail)
    const chain = yield* verify(place)
    const content = AuditRecord.decided(asked(2), Redaction.shapesOnly)
    const { line } = AuditChain.append(chain.last, content, undefined)
    return { place, head, sealed, line }
  })

  live(
    "records that were written and not sealed are reported as such, and named",
    Effect.gen(function* () {
      const { place, sealed, line } = yield* crashed
      yield* overwrite(place.files.trail, sealed + line)
      const error = yield* broken(place)
      assert.include(error, { problem: "unsealed", record: 3, records: 1, torn: 0 })
      assert.include(error.message, "record 3 is not sealed")
      assert.include(error.message, "took no effect")
    })
  )

  live(
    "a half-written record is reported as such",
    Effect.gen(function* () {
      const { place, sealed, line } = yield* crashed
      yield* overwrite(place.files.trail, sealed + line.slice(0, 40))
      const error = yield* broken(place)
      assert.include(error, { problem: "unsealed", records: 0, torn: 40 })
      assert.include(error.message, "40 bytes of a half-written record")
    })
  )

  live(
    "what was not sealed is no decision for those who read them",
    Effect.gen(function* () {
      const { place, sealed, line } = yield* crashed
      yield* overwrite(place.files.trail, sealed + line + line.slice(0, 40))
      assert.deepStrictEqual(yield* toolCalls(place), ["call_1"])
    })
  )

  live(
    "going on marks what was not sealed, for whoever verifies later",
    Effect.gen(function* () {
      const { place, sealed, line } = yield* crashed
      yield* overwrite(place.files.trail, sealed + line + line.slice(0, 40))
      yield* process(place, [asked(3)])
      const chain = yield* verify(place)
      assert.include(chain.records[3], { _tag: "Reopened", seq: 4, unsealed: 1, torn: 40 })
      const [verdict, note] = AuditReport.verdict(yield* AuditArchive.verifyStreamed(place, root))
      assert.include(verdict, "5 records, whole and in order")
      assert.include(note, "at record 4, the 1 record before it had not been sealed and 40 bytes")
    })
  )

  live(
    "a trail whose very first batch was not sealed goes on as well",
    Effect.gen(function* () {
      for (const left of [0, 30, Number.POSITIVE_INFINITY]) {
        const place = yield* newPlace
        let dies = false
        // Dies between the trail and its head: nothing is undone.
        yield* Effect.ignore(
          withFiles(process(place, [asked(1)]), (fs) => ({
            rename: (from, to) =>
              Effect.suspend(() => {
                if (dies) return Effect.fail(diskFull)
                dies = true
                return fs.rename(from, to)
              }),
            truncate: () => Effect.void
          }))
        )
        const whole = yield* text(place.files.trail)
        yield* overwrite(place.files.trail, whole.slice(0, left))
        if (left > 0) assert.strictEqual((yield* broken(place)).problem, "unsealed")
        else assert.strictEqual((yield* verify(place)).records.length, 0)
        yield* process(place, [asked(2)])
        const { records } = yield* verify(place)
        assert.strictEqual(records[0]?._tag, "Opened")
        const last = records.at(-1)
        assert.strictEqual(last?._tag === "Decided" ? last.toolCallId : undefined, "call_2")
        assert.strictEqual(
          records.some((record) => record._tag === "Reopened"),
          left > 0
        )
      }
    })
  )

  live(
    "a missing head is never taken for a crash",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* remove(place.files.head)
      assert.strictEqual((yield* broken(place)).problem, "headMissing")
      assert.include((yield* Effect.flip(process(place, [asked(2)]))).message, "no such head")
    })
  )

  live(
    "a missing trail is told as long as its head is there",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* remove(place.files.trail)
      const error = yield* broken(place)
      assert.include(error, { problem: "missing", records: 2 })
      assert.deepStrictEqual(yield* AuditArchive.sessions(place), [root])
      assert.deepStrictEqual(yield* AuditReport.list(place), ["ses_1  gone"])
    })
  )
})

describe("a tampered trail never verifies", () => {
  const directory = "/ws/.assent/audit"
  const files = { trail: `${directory}/ses_1.jsonl`, head: "/home/.config/assent/audit-heads/ses_1.json" }
  const bytes = (content: string) => new TextEncoder().encode(content)

  /** A trail of ten records as it would be written, and what a forger without the key would need to chain on. */
  const trailOf = (withKey: AuditChain.Key | undefined, decisions = 9) => {
    const lines: Array<string> = []
    let last = AuditChain.start
    const add = (content: AuditRecord.Content) => {
      const { line, link } = AuditChain.append(last, content, withKey)
      lines.push(line)
      last = link
    }
    add({
      _tag: "Opened",
      version: AuditRecord.version,
      sessionId: root,
      at: 1,
      ...(withKey === undefined ? {} : { key: AuditChain.fingerprint(withKey) })
    })
    for (let n = 1; n <= decisions; n++) add(AuditRecord.decided(asked(n), Redaction.shapesOnly))
    const head = AuditChain.renderHead({ sessionId: root, directory, count: last.seq, hash: last.hash }, withKey)
    return { lines, last, head }
  }

  const checked = (
    trail: string | Uint8Array,
    head: string | Uint8Array,
    withKey: AuditChain.Key | undefined
  ): Either.Either<AuditChain.Chain, AuditBroken> =>
    AuditChain.check(
      {
        files,
        trail: typeof trail === "string" ? bytes(trail) : trail,
        head: typeof head === "string" ? bytes(head) : head
      },
      withKey
    )

  const problemOf = (result: Either.Either<AuditChain.Chain, AuditBroken>) =>
    Either.match(result, { onLeft: ({ problem, record }) => [problem, record], onRight: () => ["verified"] })

  const assertBroken = (result: Either.Either<AuditChain.Chain, AuditBroken>) => {
    assert.isTrue(Either.isLeft(result))
    return Either.isLeft(result) ? result.left : assert.fail()
  }

  const forAll = <Values extends [unknown, ...Array<unknown>]>(
    arbitraries: { [I in keyof Values]: FastCheck.Arbitrary<Values[I]> },
    predicate: (...values: Values) => void
  ) => FastCheck.assert(FastCheck.property(...arbitraries, predicate), { numRuns: Runs.of(1_600) })

  const at = (length: number) => FastCheck.integer({ min: 0, max: length - 1 })
  const byte = FastCheck.integer({ min: 0, max: 255 })

  for (const [name, withKey] of [
    ["without a key", undefined],
    ["with a key", key]
  ] as const) {
    describe(name, () => {
      const { lines, head } = trailOf(withKey)
      const whole = bytes(lines.join(""))
      const wholeHead = bytes(head)
      const lineAt = (offset: number) => whole.subarray(0, offset).filter((value) => value === 10).length + 1

      it("the untouched trail does", () => {
        assert.deepStrictEqual(problemOf(checked(whole, head, withKey)), ["verified"])
      })

      it("hundreds of edits of one byte are found, each in its own record", () => {
        forAll([at(whole.length), byte], (offset, value) => {
          FastCheck.pre(whole[offset] !== value)
          const edited = whole.slice()
          edited[offset] = value
          const error = assertBroken(checked(edited, head, withKey))
          // The last line end is what makes the last record whole.
          const expected = offset === whole.length - 1 ? lines.length : lineAt(offset)
          assert.strictEqual(error.record, expected)
          assert.include(error.message, `record ${expected}`)
        })
      })

      it("hundreds of bytes inserted or removed are found", () => {
        forAll([at(whole.length), byte, FastCheck.boolean()], (offset, value, insert) => {
          const tail = whole.subarray(insert ? offset : offset + 1)
          const edited = [...whole.subarray(0, offset), ...(insert ? [value] : []), ...tail]
          assertBroken(checked(Uint8Array.from(edited), head, withKey))
        })
      })

      it("hundreds of edits of one byte in the head are found", () => {
        forAll([at(wholeHead.length), byte], (offset, value) => {
          FastCheck.pre(wholeHead[offset] !== value)
          const edited = wholeHead.slice()
          edited[offset] = value
          assert.strictEqual(assertBroken(checked(whole, edited, withKey)).problem, "headChanged")
        })
      })

      it("hundreds of cuts at either end, within lines or between them, are found", () => {
        forAll([at(whole.length), FastCheck.boolean()], (offset, front) => {
          const rest = front ? whole.subarray(offset + 1) : whole.subarray(0, offset)
          const error = assertBroken(checked(rest, head, withKey))
          assert.strictEqual(error.record, front ? 1 : lineAt(offset))
        })
      })

      it("hundreds of records taken out are found and named", () => {
        forAll([at(lines.length), FastCheck.integer({ min: 1, max: 4 })], (from, count) => {
          const rest = [...lines.slice(0, from), ...lines.slice(from + count)]
          const error = assertBroken(checked(rest.join(""), head, withKey))
          const last = from + count >= lines.length
          assert.deepInclude(error, { problem: last ? "cut" : "misplaced", record: from + 1 })
        })
      })

      it("hundreds of swaps are found", () => {
        forAll([at(lines.length), at(lines.length)], (a, b) => {
          FastCheck.pre(a !== b)
          const swapped = lines.map((line, n) => (n === a ? lines[b] : n === b ? lines[a] : line))
          assert.strictEqual(assertBroken(checked(swapped.join(""), head, withKey)).record, Math.min(a, b) + 1)
        })
      })

      it("hundreds of repeated records are found where they were put", () => {
        forAll([at(lines.length), at(lines.length + 1)], (which, where) => {
          const repeated = [...lines.slice(0, where), lines[which], ...lines.slice(where)]
          const error = assertBroken(checked(repeated.join(""), head, withKey))
          // A copy that stands before its original, or after it, puts the first stranger at the later of the two places.
          assert.strictEqual(error.record, where === which ? which + 2 : where + 1)
        })
      })

      it("hundreds of insertions of made-up lines are found", () => {
        const madeUp = FastCheck.oneof(
          FastCheck.string(),
          FastCheck.json(),
          FastCheck.constantFrom("", " ", "\r", "\ufeff", "{}", "[]", "null", `{"__proto__":{}}`, "[".repeat(50_000))
        )
        forAll([at(lines.length + 1), madeUp], (where, line) => {
          const inserted = [...lines.slice(0, where), `${line}\n`, ...lines.slice(where)]
          assertBroken(checked(inserted.join(""), head, withKey))
        })
      })

      it("hundreds of records that were forged to fit their place are found", () => {
        const forger = withKey === undefined ? undefined : otherKey
        forAll([at(lines.length), FastCheck.boolean(), FastCheck.boolean()], (where, replace, rechain) => {
          let last = AuditChain.start
          const forged: Array<string> = []
          lines.forEach((line, n) => {
            const { hash, prev, seq, ...content } = JSON.parse(line)
            const add = (said: AuditRecord.Content) => {
              const next = AuditChain.append(last, said, forger)
              forged.push(next.line)
              last = next.link
            }
            if (n < where || (n > where && !rechain)) {
              forged.push(line)
              last = { seq, hash }
              return
            }
            if (n === where) add(AuditRecord.decided({ ...question, reason: "forged" }, Redaction.shapesOnly))
            if (n > where || !replace) add(content)
          })
          assertBroken(checked(forged.join(""), head, withKey))
        })
      })

      it("a line says the same in no other way", () => {
        const third = lines[2] ?? ""
        const others = [
          third.replace('{"', '{ "'),
          third.replace("\n", "\r\n"),
          third.replace("user_approved", "user\\u005fapproved"),
          third.replace("2500", "2.5e3"),
          third.replace('"agent"', '"agent":"main","agent"'),
          third.replace("\n", " \n"),
          `\ufeff${third}`
        ]
        for (const other of others) {
          assert.notStrictEqual(other, third)
          const edited = lines.map((line, n) => (n === 2 ? other : line)).join("")
          assert.strictEqual(assertBroken(checked(edited, head, withKey)).record, 3)
        }
      })

      it("bytes that are no text are told apart from the sign that stands for them", () => {
        const { line, link } = AuditChain.append(
          { seq: lines.length, hash: JSON.parse(lines.at(-1) ?? "").hash },
          AuditRecord.decided({ ...question, reason: "\ufffd" }, Redaction.shapesOnly),
          withKey
        )
        const trail = bytes(lines.join("") + line)
        const sealed = AuditChain.renderHead({ sessionId: root, directory, count: link.seq, hash: link.hash }, withKey)
        assert.deepStrictEqual(problemOf(checked(trail, sealed, withKey)), ["verified"])
        const sign = trail.findIndex((value, n) => value === 0xef && trail[n + 1] === 0xbf && trail[n + 2] === 0xbd)
        const shorter = Uint8Array.from([...trail.subarray(0, sign + 2), ...trail.subarray(sign + 3)])
        assert.deepStrictEqual(problemOf(checked(shorter, sealed, withKey)), ["unreadable", link.seq])
      })

      it("another session's trail in its place is found", () => {
        const stranger = JSON.parse(head)
        const { seal: _, version: __, ...rest } = stranger
        const otherHead = AuditChain.renderHead({ ...rest, sessionId: "ses_7" as SessionId }, withKey)
        assert.deepStrictEqual(problemOf(checked(whole, otherHead, withKey)), ["foreign", 1])
      })

      it("an older head makes the later records unsealed, an older trail is cut", () => {
        const older = trailOf(withKey, 5)
        assert.deepStrictEqual(problemOf(checked(whole, older.head, withKey)), ["unsealed", 7])
        assert.deepStrictEqual(problemOf(checked(older.lines.join(""), head, withKey)), ["cut", 7])
      })
    })
  }

  it("without a key, a trail and a head that were both rewritten verify; with one they do not", () => {
    const forged = trailOf(undefined, 3)
    assert.deepStrictEqual(problemOf(checked(forged.lines.join(""), forged.head, undefined)), ["verified"])
    assert.deepStrictEqual(problemOf(checked(forged.lines.join(""), forged.head, key)), ["keyless", 1])
    const withOther = trailOf(otherKey, 3)
    assert.deepStrictEqual(problemOf(checked(withOther.lines.join(""), withOther.head, key)), ["keyWrong", 1])
    // The fingerprint of a key is no secret.
    const posing = AuditChain.append(
      AuditChain.start,
      { _tag: "Opened", version: 1, sessionId: root, at: 1, key: AuditChain.fingerprint(key) },
      undefined
    )
    assert.deepStrictEqual(problemOf(checked(posing.line, forged.head, key)), ["changed", 1])
  })

  it("with a key, cutting the trail and the head alike is found", () => {
    const { lines } = trailOf(key)
    const cut = lines.slice(0, 4)
    const hash = JSON.parse(cut.at(-1) ?? "").hash
    const head = AuditChain.renderHead({ sessionId: root, directory, count: 4, hash }, undefined)
    assert.deepStrictEqual(problemOf(checked(cut.join(""), head, key)), ["headChanged", undefined])
  })

  it("a keyed trail asks for its key, and a trail of a later format for a later program", () => {
    const { lines, head } = trailOf(key)
    assert.deepStrictEqual(problemOf(checked(lines.join(""), head, undefined)), ["keyNeeded", 1])
    const later = AuditChain.append(AuditChain.start, { _tag: "Opened", version: 2, sessionId: root, at: 1 }, undefined)
    assert.deepStrictEqual(problemOf(checked(later.line, head, undefined)), ["version", 1])
  })
})

describe("in words", () => {
  live(
    "trails and records are told one a line, and nothing in them commands a terminal",
    Effect.gen(function* () {
      const place = yield* newPlace
      const sly = { ...question, reason: "\u001b[2Jnot\nhere\u202e", requestId: "req_9" as RequestId, askedAt: 2 }
      yield* process(place, [asked(2), sly])
      assert.match(
        (yield* AuditReport.list(place))[0] ?? "",
        /^ses_1 {2}3 records {2}1970-01-01 00:00:00\.005Z to \d{4}-.*Z$/
      )
      const lines: Array<string> = []
      yield* AuditReport.show(place, root, (some) => Effect.sync(() => void lines.push(...some)))
      assert.deepStrictEqual(lines.slice(1), [
        `    2  1970-01-01 00:00:02.500Z  granted    permission run_command  main/code_reviewer  user_approved: allowed (once) by console  by console  after 0.5 s  [req_2 call_2 turn_1 args ${Digest.digest({ command: "make 2" }).slice(0, 12)}]`,
        `    3  1970-01-01 00:00:00.005Z  answered   interaction Ask  main  \\u{1b}[2Jnot\\u{a}here\\u{202e}  after 0.0 s  [req_9]`
      ])
    })
  )

  live(
    "an edit says what it changed and which question came of it, a vote that it decided nothing yet",
    Effect.gen(function* () {
      const place = yield* newPlace
      const about = (n: number) => `args ${Digest.digest({ command: `make ${n}` }).slice(0, 12)}]`
      const edited = {
        ...asked(2),
        outcome: "edited" as const,
        newArgs: { command: "make 3" },
        leadsTo: "req_3" as RequestId
      }
      const { leadsTo: _, ...decidedByRule } = edited
      yield* process(place, [
        { ...asked(1), outcome: "voted", votes: [{ by: "ada", vote: "allow" }] },
        edited,
        decidedByRule,
        { ...asked(4), countedAt: 9_000 }
      ])
      const lines: Array<string> = []
      yield* AuditReport.show(place, root, (some) => Effect.sync(() => void lines.push(...some)))
      const changed = `arguments changed to ${Digest.digest({ command: "make 3" }).slice(0, 12)}`
      const [, vote = "", edit = "", unasked = "", later = ""] = lines
      assert.match(vote, / {2}voted {6}permission run_command .* votes ada: allow {2}/)
      assert.match(edit, / {2}edited {5}permission run_command .* by console {2}/)
      assert.include(edit, `  ${changed}  asked again as req_3  after 0.5 s  [req_2 call_2 turn_1 ${about(2)}`)
      assert.include(unasked, `  ${changed}  after 0.5 s  [`)
      assert.include(later, "  counted by a later process at 1970-01-01 00:00:09.000Z  [")
    })
  )

  live(
    "the verdict names the questions that were left open, and none that a later record ends",
    Effect.gen(function* () {
      const place = yield* newPlace
      const leftOpen = (n: number) => ({ ...asked(n), outcome: "left_open" as const })
      const verdict = Effect.map(AuditArchive.verifyStreamed(place, root, undefined), AuditReport.verdict)
      const note = (id: string, what: string, seq: number) =>
        `  Note: the question ${id} about ${what} was left open at record ${seq}. Resume the session to go on with it.`
      const sly = { ...question, outcome: "left_open" as const, requestId: "req_\u001b[2J" as RequestId }
      yield* process(place, [leftOpen(1), leftOpen(2), sly])
      assert.deepStrictEqual(yield* verdict, [
        "ses_1: 4 records, whole and in order.",
        note("req_1", "run_command", 2),
        note("req_2", "run_command", 3),
        note("req_\\u{1b}[2J", "Ask", 4)
      ])
      // A vote decides nothing. An answer, an edit and a withdrawal do.
      yield* process(place, [
        { ...asked(1), outcome: "voted" },
        { ...asked(2), outcome: "edited" },
        { ...sly, outcome: "cancelled" }
      ])
      assert.deepStrictEqual(
        (yield* verdict).filter((line) => line.includes("question")),
        [note("req_1", "run_command", 2)]
      )
      yield* process(place, [leftOpen(1)])
      assert.deepStrictEqual(
        (yield* verdict).filter((line) => line.includes("question")),
        [note("req_1", "run_command", 10)]
      )
      yield* process(place, [asked(1)])
      assert.deepStrictEqual(
        (yield* verdict).filter((line) => line.includes("question")),
        []
      )
      const many = Array.from({ length: 101 }, (_, n) => leftOpen(n))
      yield* Effect.scoped(
        Effect.flatMap(AuditFile.make(place), (trail) =>
          Effect.forEach(many, trail.record, { concurrency: "unbounded", discard: true })
        )
      )
      yield* process(place, [leftOpen(7), leftOpen(101)])
      const named = (yield* verdict).filter((line) => line.includes("question"))
      assert.lengthOf(named, 100)
      assert.include(named, note("req_7", "run_command", 116))
    })
  )

  live(
    "the time of a trail begins with its first decision, which may be earlier than the record that opens it",
    Effect.gen(function* () {
      const place = yield* newPlace
      const now = yield* Clock.currentTimeMillis
      const at = (answeredAt: number) => ({ ...question, answeredAt })
      yield* process(place, [at(now - 60_000), at(now + 60_000), at(now + 120_000)])
      const shown = (millis: number) => new Date(millis).toISOString().replace("T", " ")
      assert.deepStrictEqual(yield* AuditReport.list(place), [
        `ses_1  4 records  ${shown(now - 60_000)} to ${shown(now + 120_000)}`
      ])
    })
  )

  live(
    "a long trail is told piece by piece, whole and in order",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* overwrite(place.files.trail, `${yield* text(place.files.trail)}${"nonsense\n".repeat(5_000)}`)
      const pieces: Array<ReadonlyArray<string>> = []
      yield* AuditReport.show(place, root, (some) => Effect.sync(() => void pieces.push(some)))
      assert.isAtMost(Math.max(...pieces.map(({ length }) => length)), 200)
      assert.deepStrictEqual(
        pieces.flat().map((line) => Number(line.slice(0, 5))),
        Array.from({ length: 5_002 }, (_, index) => index + 1)
      )
    })
  )

  live(
    "what is no record any more is shown as that",
    Effect.gen(function* () {
      const place = yield* newPlace
      yield* process(place, [asked(1)])
      yield* overwrite(place.files.trail, `${yield* text(place.files.trail)}nonsense\n`)
      const lines: Array<string> = []
      const say = (some: ReadonlyArray<string>) => Effect.sync(() => void lines.push(...some))
      yield* AuditReport.show(place, root, say)
      assert.strictEqual(lines[2], "    3  not a record")
      const error = yield* Effect.flip(AuditReport.show(place, "ses_404" as SessionId, say))
      assert.include(error.message, "there is no such trail")
    })
  )
})
