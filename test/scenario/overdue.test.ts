/** A question of a subagent whose time ended while nobody ran the session. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { noFiles } from "../kit/agents.js"
import * as Shuffled from "../kit/Shuffled.js"

const Deploy = Tool.make("deploy", { success: Schema.String })
const tools = Toolkit.make(Deploy)
const delegate = (profile: string) => ({ name: "delegate", params: { task: "go", profile } })
const toolkit = Toolkit.merge(tools, Delegate.toolkit)

interface Call {
  readonly name: string
  readonly params?: unknown
}

/** Who asks. */
const families = {
  "a child": { main: [delegate("helper")], helper: [{ name: "deploy" }] },
  "a child of a child": { main: [delegate("middle")], middle: [delegate("helper")], helper: [{ name: "deploy" }] }
}

const story = (seed: number, isAnswered: boolean, family: { readonly [agent: string]: ReadonlyArray<Call> }) =>
  Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const view = (pid: number) => open({ pid, host: `h${pid}`, isAlive: () => false })
    const runtime = AgentRuntime.layer({
      toolkit,
      policy: Policy.make({ whitelist: { tools: ["delegate"] } }),
      subagents: {
        profiles: ["helper", "middle"].map((name) => SubagentProfile.make({ name, description: "deploys" })),
        timeouts: { permission: 20_000 }
      }
    }).pipe(
      Layer.provide([
        tools.toLayer({ deploy: () => Effect.succeed("deployed") }),
        Delegate.layer,
        noFiles,
        ScriptedModel.layer({
          agents: Record.map(family, (tools) => [{ tools }, { text: "done" }])
        })
      ])
    )
    const start = (persistence: Persistence.Persistence, person: TestInteractor.Service) =>
      Effect.flatMap(Layer.build(runtime), (context) =>
        Effect.provide(Effect.orDie(Agent.startWith([person.interactor], { persistence, whenNobody: "wait" })), context)
      )
    const scope = yield* Scope.make()
    const person = yield* TestInteractor.make({ script: () => TestInteractor.silent })
    const agent = yield* Effect.flatMap(Persistence.begin(view(1)), (persistence) => start(persistence, person)).pipe(
      Scope.extend(scope)
    )
    yield* agent.send("go")
    const asked = yield* person.next
    yield* Scope.close(scope, Exit.void)
    yield* TestClock.adjust("10 seconds")
    if (isAnswered) yield* view(2).answer(asked.requestId, { decision: "allow", scope: "once" }, "ada")
    yield* TestClock.adjust("1 minute")
    const nobody = yield* TestInteractor.make({ script: () => TestInteractor.silent })
    const again = yield* start(yield* Persistence.resume(view(3), agent.id), nobody)
    const tick = Effect.zipRight(
      Effect.promise(() => new Promise((done) => setImmediate(done))),
      TestClock.adjust("1 millis")
    )
    yield* Effect.raceFirst(again.awaitIdle, Effect.forever(tick))
    const { entries } = yield* view(4).load(agent.id)
    const raised = new Set(
      entries.flatMap(({ entry }) => (entry._tag === "InteractionRaised" ? [entry.request.requestId] : []))
    )
    return Array.from(raised, (requestId) =>
      entries.flatMap(({ entry }) => {
        if (!("requestId" in entry) || entry.requestId !== requestId) return []
        if (entry._tag === "InteractionSettled") return [entry.status]
        return entry._tag === "CallDecided" ? [entry.granted ? "granted" : "refused"] : []
      })
    )
  }).pipe(Effect.scoped, Effect.withScheduler(new Shuffled.Shuffled(Shuffled.random(seed))))

describe("a question of a subagent whose time is over when the session goes on, in whatever order fibers run", () => {
  for (const [name, family] of Object.entries(families))
    for (const isAnswered of [false, true])
      it.effect(`of ${name} ${isAnswered ? "ends with the answer that came in time" : "is timed out once"}`, () =>
        Effect.gen(function* () {
          for (let seed = 0; seed < seeds; seed++) {
            const ends = yield* story(seed, isAnswered, family)
            const end = isAnswered ? ["answered", "granted"] : ["timed_out", "refused"]
            assert.deepStrictEqual(ends, [end], `seed ${seed}`)
          }
        })
      )
})

const seeds = 25
