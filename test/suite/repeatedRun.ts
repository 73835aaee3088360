/**
 * A process that runs one task under an id: in a new session, or in one that another process left. It prints a line at each
 * moment, and stands still at a chosen one until it is killed. See `repeatedRunSuite`.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { appendFileSync } from "node:fs"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { SessionId } from "../../src/core/Id.js"
import * as Model from "../../src/model/Model.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"

const [address = "", ledger = "", stopAt, session] = process.argv.slice(2)

const say = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))
const moment = (name: string) => Effect.zipRight(say(name), name === stopAt ? Effect.never : Effect.void)

const toolkit = Toolkit.make(Tool.make("pay", { success: Schema.String }))
const handlers = toolkit.toLayer({
  pay: () =>
    Effect.as(
      Effect.zipRight(
        Effect.sync(() => appendFileSync(ledger, "paid\n")),
        moment("working")
      ),
      "paid"
    )
})

const finish = (reason: "stop" | "tool-calls") =>
  ({ type: "finish", reason, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }) as const
const text: ReadonlyArray<Model.Part> = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "It is paid." },
  { type: "text-end", id: "1" },
  finish("stop")
]
const modelOf = (stored: Effect.Effect<unknown>) =>
  Model.fromAnswer({
    id: "own/payer",
    answer: ({ prompt }) =>
      prompt.content.at(-1)?.role === "tool"
        ? Effect.as(moment("answering"), text)
        : Effect.as(Effect.zipRight(stored, moment("begun")), [
            { type: "tool-call", id: "call_1", name: "pay", params: {} },
            finish("tool-calls")
          ])
  })

const store = Effect.suspend(() => {
  const self = { pid: process.pid, host: "here", isAlive: () => false }
  return address.startsWith("postgres:")
    ? PostgresStore.make({ url: Redacted.make(address), process: self })
    : LibsqlStore.make({ file: address, process: self })
})

const program = Effect.gen(function* () {
  const sessions = yield* store
  // A server may still be busy with the last commit of the dead.
  const persistence = yield* session === undefined
    ? Persistence.begin(sessions)
    : Effect.retry(Persistence.resume(sessions, session as SessionId), { times: 3 })
  const { rootSessionId } = persistence
  yield* say(rootSessionId)
  const person = yield* QueueChannel.make({ timeouts: {} })
  yield* person.stream.pipe(
    Stream.runForEach((dialog) =>
      dialog._tag === "Opened"
        ? Effect.zipRight(moment("asked"), person.answerText(dialog.request.requestId, "y", "ada"))
        : Effect.void
    ),
    Effect.forkScoped
  )
  const stored = Effect.retry(sessions.load(rootSessionId), { schedule: Schedule.spaced("10 millis") })
  const runtime = Layer.provide(AgentRuntime.layer({ toolkit }), [handlers, Model.layer(modelOf(Effect.orDie(stored)))])
  const agent = yield* Effect.provide(Agent.startWith([person.interactor], { persistence }), runtime)
  const { _tag, ...end } = yield* agent.run("pay the bill", { id: "bill" })
  yield* say(JSON.stringify({ _tag, ...end }))
  yield* moment("over")
}).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

NodeRuntime.runMain(program)
