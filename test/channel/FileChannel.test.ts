import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { basename, dirname } from "node:path"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as FileChannel from "../../src/channel/FileChannel.js"
import * as FileExchange from "../../src/channel/FileExchange.js"
import type { RequestId } from "../../src/core/Id.js"
import { Approve, Confirm } from "../../src/interaction/Interaction.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import { interactorSuite, type Outside, type Subject } from "../suite/interactorSuite.js"

const confirm = new Confirm({ prompt: "Deploy?", default: false })
const newRequest = InteractionSample.request(confirm)

let root = ""
beforeAll(() =>
  Effect.runPromise(
    FileSystem.FileSystem.pipe(
      Effect.flatMap((fs) => fs.makeTempDirectory()),
      Effect.map((directory) => {
        root = directory
      }),
      Effect.provide(NodeContext.layer)
    )
  )
)
afterAll(() =>
  Effect.runPromise(
    FileSystem.FileSystem.pipe(
      Effect.flatMap((fs) => fs.remove(root, { recursive: true })),
      Effect.provide(NodeContext.layer)
    )
  )
)

/** A channel in a fresh directory, with everything the outside wants to see of it. */
interface Opening extends Omit<FileChannel.Options, "directory"> {
  readonly watch?: boolean
  /** After each renaming, before the channel goes on. */
  readonly appeared?: (file: string) => Effect.Effect<void>
}

const open = ({ appeared: onRename, ...options }: Opening = {}) =>
  Effect.gen(function* () {
    const real = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    // Outlives the channel's scope, so that one can see what the channel has left there.
    const directory = path.join(yield* real.makeTempDirectory({ directory: root }), "exchange")
    const renamed = yield* Queue.unbounded<string>()
    const looked = yield* Queue.sliding<string>(1)
    let output = ""
    const fs: FileSystem.FileSystem = {
      ...real,
      // Files appear by being renamed: whoever waits for one listens here.
      rename: (from, to) =>
        Effect.zipRight(
          Effect.tap(real.readFileString(from), (text) => (output += text)),
          Effect.zipRight(real.rename(from, to), Queue.offer(renamed, path.basename(to)))
        ).pipe(Effect.zipLeft(onRename?.(to) ?? Effect.void)),
      stat: (file) => Effect.ensuring(real.stat(file), Queue.offer(looked, path.basename(file))),
      watch: (file, watching) => (options.watch === false ? Stream.fail(unwatchable(file)) : real.watch(file, watching))
    }
    const interactor = yield* Effect.provideService(
      FileChannel.make({ ...options, directory }),
      FileSystem.FileSystem,
      fs
    )
    const exchange = yield* FileExchange.make(directory)
    /** Waits until a file of this kind has appeared, and names its request. */
    const appeared = (ending: RegExp): Effect.Effect<RequestId> =>
      Effect.flatMap(Queue.take(renamed), (name) =>
        ending.test(name) ? Effect.succeed(name.replace(ending, "") as RequestId) : appeared(ending)
      )
    return {
      directory,
      exchange,
      fs: real,
      interactor,
      looked: Queue.take(looked),
      shown: appeared(/(?<!\.rejected)\.json$/),
      rejected: appeared(/\.rejected\.json$/),
      listing: Effect.orDie(
        Effect.map(
          Effect.all([real.readDirectory(exchange.requests), real.readDirectory(exchange.responses)]),
          ([requests, responses]) => [...requests, ...responses].sort()
        )
      ),
      output: Effect.sync(() => output)
    }
  }).pipe(Effect.orDie)

const unwatchable = (path: string) =>
  new PlatformError.SystemError({ reason: "Unknown", module: "FileSystem", method: "watch", pathOrDescriptor: path })

const subject = (
  form: "encoded" | "line" | "form",
  options: Parameters<typeof open>[0]
): Effect.Effect<Subject, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<NodeContext.NodeContext>()
    const channel = yield* open(options)
    const respond = (requestId: string, answer: unknown) =>
      Effect.orDie(Effect.provide(FileExchange.respond(channel.directory, requestId, answer), context))
    const outside: Outside = {
      shown: channel.shown,
      answer: ({ requestId }, sample) => {
        const values = form === "form" ? InteractionSample.filled(sample) : undefined
        return values === undefined
          ? respond(requestId, form === "line" ? sample.line : sample.encoded)
          : channel.exchange
              .write(channel.exchange.files(requestId).response, JSON.stringify({ requestId, form: values }))
              .pipe(Effect.orDie)
      },
      nonsense: ({ requestId }) =>
        Effect.zipRight(respond(requestId, "by all means\ndo\nit"), Effect.asVoid(channel.rejected)),
      send: ({ requestId }, json) =>
        channel.exchange
          .write(
            channel.exchange.files(requestId).response,
            `{"requestId":${JSON.stringify(requestId)},"answer":${json}}`
          )
          .pipe(Effect.orDie, Effect.zipRight(Effect.asVoid(channel.rejected))),
      cancel: ({ requestId }) => respond(requestId, "cancel"),
      visible: Effect.orDie(
        Effect.map(channel.fs.readDirectory(channel.exchange.requests), (names) =>
          names.map((name) => name.replace(/\.json$/, ""))
        )
      )
    }
    return { interactor: channel.interactor, outside, output: channel.output }
  }).pipe(Effect.provide(NodeContext.layer))

for (const dialogs of ["one", "unbounded"] as const) {
  interactorSuite(`FileChannel (watching, encoded answers, dialogs: ${dialogs})`, {
    claims: ["Approve", "Clarify", "Confirm", "Ask", "Select", "Elicit"],
    dialogs,
    make: subject("encoded", { dialogs })
  })
  interactorSuite(`FileChannel (watching, filled forms, dialogs: ${dialogs})`, {
    claims: ["Approve", "Clarify", "Confirm", "Ask", "Select", "Elicit"],
    dialogs,
    make: subject("form", { dialogs })
  })
  interactorSuite(`FileChannel (polling, typed answers, dialogs: ${dialogs})`, {
    claims: ["Approve", "Clarify", "Confirm", "Ask", "Select", "Elicit"],
    dialogs,
    make: subject("line", { dialogs, watch: false, pollInterval: Duration.millis(5) })
  })
}

const quick = { pollInterval: Duration.millis(5) }

describe("FileChannel", () => {
  it.scopedLive.each([
    { what: "the channel", who: {}, by: "file" },
    { what: "the owner of the directory", who: { principal: "grace" }, by: "grace" },
    { what: "whom the answer names, where that is vouched for", who: { principal: "grace", vouches: true }, by: "ada" }
  ])("names who answers: $what", ({ by, who }) =>
    Effect.gen(function* () {
      const channel = yield* open({ ...quick, ...who })
      const request = yield* newRequest
      const asking = yield* Effect.fork(InteractorCall.ask(channel.interactor, request))
      yield* channel.shown
      yield* FileExchange.respond(channel.directory, request.requestId, "y", "ada")
      assert.deepStrictEqual(yield* Fiber.join(asking), { answer: true, by, how: "answered" })
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("says who was faster, and turns away what comes after that", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const late: Array<string> = []
      const request = yield* newRequest
      const ended = () => ({ status: "answered" as const, by: "ada", late: (by: string) => void late.push(by) })
      const asking = yield* Effect.fork(channel.interactor.request(request, { ended }))
      const { requestId } = request
      assert.strictEqual(yield* channel.shown, requestId)
      yield* Fiber.interrupt(asking)
      const files = channel.exchange.files(requestId)
      assert.deepStrictEqual(JSON.parse(yield* channel.fs.readFileString(files.settled)), {
        requestId,
        status: "answered",
        by: "ada"
      })
      assert.isFalse(yield* channel.fs.exists(files.request))
      yield* channel.exchange.write(files.response, JSON.stringify({ requestId, answer: true }))
      yield* channel.rejected
      assert.include(yield* channel.fs.readFileString(files.reason), "settled before (answered by ada)")
      assert.deepStrictEqual(late, ["file"])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  const unusable = (
    arrange: (fs: FileSystem.FileSystem, path: Path.Path, directory: string) => Effect.Effect<unknown, unknown>
  ) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const directory = path.join(yield* fs.makeTempDirectory({ directory: root }), "exchange")
      yield* fs.makeDirectory(directory, { mode: 0o700 })
      yield* Effect.orDie(arrange(fs, path, directory))
      const refused = yield* Effect.flip(FileChannel.make({ directory }))
      return refused.message
    }).pipe(Effect.provide(NodeContext.layer))

  it.scopedLive.each([0o770, 0o707, 0o777, 0o720, 0o702])("refuses a directory that others may write to: %o", (mode) =>
    Effect.gen(function* () {
      assert.include(yield* unusable((fs, _, directory) => fs.chmod(directory, mode)), "by others than its owner")
      const inside = unusable((fs, path, directory) =>
        Effect.zipRight(
          fs.makeDirectory(path.join(directory, "responses"), { mode: 0o700 }),
          fs.chmod(path.join(directory, "responses"), mode)
        )
      )
      assert.include(yield* inside, "by others than its owner")
    })
  )

  it.scopedLive.each(["requests", "responses"])("refuses a link where %s should be", (name) =>
    Effect.gen(function* () {
      const linked = unusable((fs, path, directory) =>
        Effect.flatMap(fs.makeTempDirectory({ directory: root }), (other) =>
          fs.symlink(other, path.join(directory, name))
        )
      )
      assert.include(yield* linked, "is a link")
    })
  )

  it.scopedLive("reads no answer through a link, or from somebody else", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const path = yield* Path.Path
      const { fs } = channel
      const request = yield* newRequest
      const { requestId } = request
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      const files = channel.exchange.files(requestId)
      const elsewhere = path.join(yield* fs.makeTempDirectory({ directory: root }), "answer.json")
      yield* fs.writeFileString(elsewhere, JSON.stringify({ requestId, answer: true }))
      yield* fs.symlink(elsewhere, files.response)
      yield* channel.rejected
      assert.include(yield* fs.readFileString(files.reason), "is a link")
      const foreign = yield* Effect.either(
        Effect.zipRight(
          fs.writeFileString(`${elsewhere}.foreign`, JSON.stringify({ requestId, answer: true })),
          fs.chown(`${elsewhere}.foreign`, 12_345, 12_345)
        )
      )
      // Only who may give files away can try it.
      if (Either.isRight(foreign)) {
        yield* fs.rename(`${elsewhere}.foreign`, files.response)
        yield* channel.rejected
        assert.include(yield* fs.readFileString(files.reason), "belongs to another user")
      }
      assert.isNull(asking.unsafePoll())
      yield* FileExchange.respond(channel.directory, requestId, "y")
      assert.isTrue((yield* Fiber.join(asking)).answer)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("writes the encoded request, whole and for its owner only, and leaves nothing when it is settled", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const request = yield* newRequest
      const asking = yield* Effect.fork(InteractorCall.ask(channel.interactor, request))
      yield* channel.shown
      assert.deepStrictEqual(yield* channel.listing, [`${request.requestId}.json`])
      const file = channel.exchange.files(request.requestId).request
      assert.deepStrictEqual(
        JSON.parse(yield* channel.fs.readFileString(file)),
        JSON.parse(JSON.stringify(InteractionRequest.present(request)))
      )
      assert.strictEqual((yield* channel.fs.stat(file)).mode & 0o777, 0o600)
      assert.deepStrictEqual(yield* FileExchange.pending(channel.directory), [request])
      yield* FileExchange.respond(channel.directory, request.requestId, true)
      assert.deepStrictEqual(yield* Fiber.join(asking), { answer: true, by: "file", how: "answered" })
      assert.deepStrictEqual(yield* channel.listing, [])
      const late = yield* Effect.flip(FileExchange.respond(channel.directory, request.requestId, true))
      assert.strictEqual(late._tag, "UnknownRequest")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("writes no declared secret, not even where arguments may be edited, and what only looks like one", () =>
    Effect.gen(function* () {
      const key = "correct-horse-battery"
      const token = `ghp_${"a".repeat(30)}`
      const channel = yield* open({ ...quick, redactor: Redaction.make([key]) })
      const sample = InteractionSample.samples.Approve.interaction
      const request = yield* InteractionSample.request(
        new Approve({
          toolCallId: sample.toolCallId,
          tool: sample.tool,
          argumentsSummary: sample.argumentsSummary,
          approvalKey: "curl",
          options: sample.options,
          editable: { parameters: ["command"], format: "text", current: { command: `curl -H ${key} ${token}` } }
        })
      )
      yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      assert.notInclude(yield* channel.output, key)
      assert.include(yield* channel.output, token)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive.each([
    ["another request's id", '{"requestId":"req_other","answer":true}', "another request"],
    ["no request id", '{"answer":true}', "requestId"],
    ["no answer", '{"requestId":"ID"}', "ID"],
    ["extra fields", '{"requestId":"ID","answer":true,"also":1}', "requestId"],
    ["an answer of another kind", '{"requestId":"ID","answer":{"decision":"allow"}}', "true or false"],
    ["a list", "[true]", "requestId"],
    ["text that never becomes JSON", "certainly!", "JSON"],
    ["binary", "\u0000\uFFFD\u0001", "JSON"],
    ["ten megabytes", `{"requestId":"ID","answer":"${"y".repeat(10_000_000)}"}`, "larger than"]
  ] as const)("moves %s aside, says why, and keeps the request open", ([, text, reason]) =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const request = yield* newRequest
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      const files = channel.exchange.files(request.requestId)
      yield* channel.fs.writeFileString(files.response, text.replace("ID", request.requestId))
      assert.strictEqual(yield* channel.rejected, request.requestId)
      const why = yield* channel.fs.readFileString(files.reason)
      assert.include(why, reason.replace("ID", request.requestId))
      assert.isBelow(why.length, 1000)
      assert.isFalse(yield* channel.fs.exists(files.response))
      yield* FileExchange.respond(channel.directory, request.requestId, "n")
      assert.strictEqual((yield* Fiber.join(asking)).answer, false)
      assert.deepStrictEqual(yield* channel.listing, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("reads the answer that comes while nonsense is taken away", () =>
    Effect.gen(function* () {
      let isSent = false
      const channel = yield* open({
        pollInterval: Duration.millis(20),
        // The reason tells people that the first one was read: from then on they write another.
        appeared: (file) => {
          if (isSent || !file.endsWith(".reason.txt")) return Effect.void
          isSent = true
          const answered = FileExchange.respond(dirname(dirname(file)), basename(file, ".reason.txt"), true)
          return Effect.provide(Effect.orDie(answered), NodeContext.layer)
        }
      })
      const request = yield* newRequest
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      yield* FileExchange.respond(channel.directory, request.requestId, "perhaps")
      assert.strictEqual((yield* Fiber.join(asking)).answer, true)
      assert.isTrue(isSent)
    }).pipe(Effect.provide(NodeContext.layer), Effect.timeout("60 seconds"))
  )

  it.scopedLive("waits for a response that is only half there", () =>
    Effect.gen(function* () {
      // Long enough that only what the file system tells makes it look again.
      const channel = yield* open({ pollInterval: Duration.seconds(5) })
      const request = yield* newRequest
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      const { response } = channel.exchange.files(request.requestId)
      const whole = JSON.stringify({ requestId: request.requestId, answer: true })
      for (const length of [0, 1, 10, whole.length - 1]) {
        yield* channel.fs.writeFileString(response, whole.slice(0, length))
        yield* channel.looked
        // It looks again, for some other reason, and finds the same.
        for (const again of ["a", "b", "c"]) {
          yield* channel.fs.writeFileString(`${channel.exchange.responses}/${again}`, String(length))
          yield* channel.looked
        }
        assert.isTrue(yield* channel.fs.exists(response), "it was not moved aside")
      }
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* channel.fs.writeFileString(response, whole)
      assert.strictEqual((yield* Fiber.join(asking)).answer, true)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("takes a response that was there before its request, as after a restart", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const request = yield* newRequest
      yield* channel.exchange.write(
        channel.exchange.files(request.requestId).response,
        JSON.stringify({ requestId: request.requestId, answer: "yes" })
      )
      assert.strictEqual((yield* channel.interactor.request(request)).answer, true)
      assert.deepStrictEqual(yield* channel.listing, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("withdraws what a former process left behind, and keeps its responses", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const exchange = yield* FileExchange.make(directory)
      yield* fs.makeDirectory(exchange.requests)
      yield* fs.makeDirectory(exchange.responses)
      yield* fs.writeFileString(exchange.files("req_old").request, "{}")
      yield* fs.writeFileString(`${exchange.requests}/.req_half.json.half`, "{")
      yield* fs.writeFileString(exchange.files("req_old").response, "{}")
      const logged: Array<unknown> = []
      const listening = Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ message }) => logged.push(message))
      )
      yield* Effect.provide(FileChannel.make({ directory }), listening)
      assert.include(String(logged[0]), "req_old")
      assert.deepStrictEqual(yield* fs.readDirectory(exchange.requests), [])
      assert.deepStrictEqual(yield* fs.readDirectory(exchange.responses), ["req_old.json"])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("keeps odd request ids inside the directory", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      const odd = "../../etc/a b%:.json"
      const request = { ...(yield* newRequest), requestId: odd as RequestId }
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      assert.deepStrictEqual(yield* channel.exchange.waiting, [odd])
      assert.lengthOf(yield* channel.listing, 1)
      yield* FileExchange.respond(channel.directory, odd, "y")
      assert.strictEqual((yield* Fiber.join(asking)).answer, true)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.live("removes in the end what came too late for a settled request", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const outer = yield* Scope.make()
      const fs = yield* FileSystem.FileSystem
      const directory = yield* Scope.extend(fs.makeTempDirectoryScoped(), outer)
      const interactor = yield* Scope.extend(FileChannel.make({ directory, ...quick }), scope)
      const exchange = yield* FileExchange.make(directory)
      const request = yield* newRequest
      const { response } = exchange.files(request.requestId)
      yield* exchange.write(response, JSON.stringify({ requestId: request.requestId, answer: true }))
      yield* interactor.request(request)
      yield* exchange.write(response, JSON.stringify({ requestId: request.requestId, answer: true }))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* fs.readDirectory(exchange.responses), [])
      yield* Scope.close(outer, Exit.void)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("times out after half a minute for an approval, and takes its files away", () =>
    Effect.gen(function* () {
      const channel = yield* open()
      const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const asking = yield* Effect.fork(Effect.either(channel.interactor.request(request)))
      yield* channel.shown
      yield* TestClock.adjust("30 seconds")
      const ended = yield* Fiber.join(asking)
      assert.isTrue(Either.isLeft(ended) && ended.left._tag === "InteractionTimedOut")
      assert.deepStrictEqual(yield* channel.listing, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("says at once that a directory cannot be used", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = yield* fs.makeTempFileScoped()
      const failed = yield* Effect.flip(FileChannel.make({ directory: file }))
      assert.strictEqual(failed._tag, "FileChannelUnusable")
      assert.include(failed.message, file)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is unavailable, with the reason, when the request cannot be written", () =>
    Effect.gen(function* () {
      const channel = yield* open(quick)
      yield* channel.fs.remove(channel.exchange.requests, { recursive: true })
      const failed = yield* Effect.flip(channel.interactor.request(yield* newRequest))
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.include(failed.message, "could not be written")
      yield* channel.fs.makeDirectory(channel.exchange.requests)
      const request = yield* newRequest
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.shown
      yield* FileExchange.respond(channel.directory, request.requestId, "y")
      assert.strictEqual((yield* Fiber.join(asking)).answer, true)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
