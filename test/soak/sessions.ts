/**
 * A thousand sessions of one host, each in the workspace of ten, to their first question: what one takes of memory and of
 * the processor. Ends with 1 when that is more than it may be: 0.4 MB and 10 ms.
 *
 * `node --expose-gc dist/soak-sessions/soak-sessions.js [SESSIONS [STORE]]`
 */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"

const mostMegabytes = 0.4
const mostMilliseconds = 10

const workspaces = 10
const sessions = Number(process.argv[2] ?? 1_000)
/** Default: a file for each workspace. */
const store = process.argv[3]

const collect = () => (globalThis as { readonly gc?: () => void }).gc?.()

const megabytes = () => {
  collect()
  return process.memoryUsage.rss() / 1_000_000
}

const milliseconds = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}

const program = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-sessions-")))),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
  )
  const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  for (const name of ["config", "home", ...Array.from({ length: workspaces }, (_, index) => `w${index}`)])
    fs.mkdirSync(at(name))
  fs.writeFileSync(
    at("script.json"),
    JSON.stringify({
      version: 1,
      agents: { main: [{ tools: [{ name: "run_command", params: { command: "touch made" } }] }, { text: "done" }] }
    })
  )
  const host = yield* Host.make({
    environment: Environment.of({
      PATH: process.env["PATH"],
      HOME: at("home"),
      ASSENT_CONFIG_DIR: at("config"),
      ASSENT_STATE_DIR: at("state"),
      ASSENT_SANDBOX: "off"
    }),
    overrides: { store }
  })
  /** To its first question. */
  const one = (index: number) =>
    Effect.gen(function* () {
      const session = yield* host.create({
        workspace: at(`w${index % workspaces}`),
        model: `script:${at("script.json")}`
      })
      const { stream } = yield* session.agent.subscribe()
      yield* session.agent.send("go")
      yield* Stream.runHead(Stream.filter(stream, ({ _tag }) => _tag === "InteractionRequested"))
    }).pipe(Effect.scoped)
  const many = (from: number, to: number) =>
    Effect.forEach(
      Array.from({ length: to - from }, (_, index) => from + index),
      one,
      { concurrency: 20, discard: true }
    )
  // What the workspaces share is there, and the code is warm.
  yield* many(0, workspaces * 5)
  const [memory, time, began] = [megabytes(), milliseconds(), performance.now()]
  yield* many(0, sessions)
  const perSession = {
    milliseconds: (milliseconds() - time) / sessions,
    megabytes: (megabytes() - memory) / sessions
  }
  const live = yield* host.live
  console.log(
    `${live.length} sessions wait for an answer. One takes ${perSession.megabytes.toFixed(3)} MB (at most ${mostMegabytes}) and ` +
      `${perSession.milliseconds.toFixed(1)} ms of the processor (at most ${mostMilliseconds}); all of them ` +
      `${((performance.now() - began) / 1_000).toFixed(1)} s.`
  )
  const idle = milliseconds()
  yield* Effect.sleep("15 seconds")
  const perMinute = ((milliseconds() - idle) * 4) / live.length
  console.log(`While it waits, one takes ${perMinute.toFixed(1)} ms of the processor a minute.`)
  const closing = performance.now()
  yield* Effect.forEach(live, ({ close }) => close, { concurrency: 20, discard: true })
  console.log(`They are closed in ${((performance.now() - closing) / 1_000).toFixed(1)} s.`)
  if (perSession.megabytes > mostMegabytes || perSession.milliseconds > mostMilliseconds) process.exitCode = 1
})

NodeRuntime.runMain(Effect.provide(Effect.scoped(program), NodeContext.layer))
