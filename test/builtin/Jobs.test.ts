/** Background jobs of whole agents, whose processes the test plays. */
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as Jobs from "../../src/builtin/Jobs.js"
import * as SubagentControl from "../../src/builtin/SubagentControl.js"
import * as History from "../../src/conversation/History.js"
import type { AgentEvent, EventOf } from "../../src/event/AgentEvent.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as EventRules from "../kit/eventRules.js"
import * as PlayedCommands from "../kit/PlayedCommands.js"
import { settle } from "../kit/Recorder.js"
import { resultsOf } from "../kit/session.js"

const toolkit = Toolkit.merge(PlayedCommands.toolkit, Delegate.toolkit, SubagentControl.toolkit)

const allowed = PermissionFile.policy({
  whitelist: { tools: ["run_command", "delegate", "spawn_subagent", "close_subagent"] }
})

interface Options {
  readonly script: ReadonlyArray<ScriptedModel.Step> | ScriptedModel.Script
  readonly person?: TestInteractor.Script
  readonly policy?: PermissionFile.Policy
  readonly agent?: Agent.Options
  readonly secrets?: ReadonlyArray<string>
  readonly maxOutput?: number
}

const start = (options: Options) =>
  Effect.gen(function* () {
    const stage = PlayedCommands.make()
    const handlers = Layer.provideMerge(
      Layer.mergeAll(Delegate.layer, SubagentControl.layer),
      PlayedCommands.layer(stage, options.maxOutput)
    )
    const runtime = TestAgent.layer({
      toolkit,
      script: options.script,
      person: options.person,
      policy: options.policy ?? allowed,
      secrets: (options.secrets ?? []).map((secret) => Redacted.make(secret)),
      subagents: { profiles: [SubagentProfile.make({ name: "helper", description: "helps" })] }
    })
    const context = yield* Layer.build(Layer.provideMerge(runtime, handlers))
    const scope = yield* Scope.fork(yield* Effect.scope, { _tag: "Sequential" } as never)
    const started = yield* Effect.provide(Scope.extend(TestAgent.start(options.agent), scope), context)
    const { agent } = started
    const history = () => agent.history.messages.flatMap((message) => History.textOf(message) || [])
    return {
      ...started,
      stage,
      jobs: Context.get(context, Jobs.Jobs),
      /** Ends the scope that the agent was started in. */
      close: Scope.close(scope, Exit.void),
      /** What was said in the conversation. */
      said: history,
      results: () => resultsOf(agent.history.messages) as ReadonlyArray<any>,
      /** Runs a turn, with as much time as it needs. */
      turn: (words: string) => Effect.flatMap(Effect.fork(agent.run(words)), passing),
      of: <Tag extends AgentEvent["_tag"]>(tag: Tag): Effect.Effect<ReadonlyArray<EventOf<Tag>>> =>
        Effect.map(started.events, (events) => events.filter((event): event is EventOf<Tag> => event._tag === tag))
    }
  })

/** Lets time pass until a fiber has ended. */
const passing = <A, E>(fiber: Fiber.RuntimeFiber<A, E>): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    for (let round = 0; round < 200 && fiber.unsafePoll() === null; round++) {
      yield* settle
      yield* TestClock.adjust("50 millis")
    }
    return yield* Fiber.join(fiber)
  })

const background = (command: string, more: object = {}): ScriptedModel.ToolUse => ({
  name: "run_command",
  params: { command, background: true, ...more }
})
const look = (job_id: string): ScriptedModel.ToolUse => ({ name: "job_output", params: { job_id } })
const stop = (job_id: string): ScriptedModel.ToolUse => ({ name: "job_stop", params: { job_id } })
const step = (...tools: ReadonlyArray<ScriptedModel.ToolUse>): ScriptedModel.Step => ({ tools })
const done: ScriptedModel.Step = { text: "done" }

/** The n-th process, once it was started. */
const process = (stage: PlayedCommands.Stage, index = 0): Effect.Effect<PlayedCommands.Played> =>
  Effect.gen(function* () {
    yield* settle
    const found = stage.processes[index]
    return found ?? (yield* Effect.dieMessage(`no process ${index} was started`))
  })

const eight = Array.from({ length: 8 }, (_, index) => background(`serve ${index}`))

describe("a background job", () => {
  it.scoped("goes on after its call and its turn, and is looked at piece by piece", () =>
    Effect.gen(function* () {
      const { agent, events, jobs, of, results, said, stage, turn } = yield* start({
        script: [
          step(background("serve")),
          done,
          step(look("job_1")),
          done,
          step(look("job_1")),
          done,
          step(stop("job_1")),
          done
        ]
      })
      const first = yield* Effect.fork(agent.run("serve it"))
      const server = yield* process(stage)
      yield* server.print("up\n")
      yield* passing(first)
      assert.deepStrictEqual(results(), [
        {
          job_id: "job_1",
          state: "running",
          output: "up\n",
          notice:
            "[It runs in the background until job_stop, or the end of the session. job_output with job_1 shows what it prints.]"
        }
      ])
      assert.isTrue(yield* agent.isIdle)
      yield* server.print("one\ntwo\n")
      yield* turn("look")
      assert.deepStrictEqual(results(), [{ job_id: "job_1", state: "running", output: "one\ntwo\n" }])
      yield* turn("again")
      assert.deepStrictEqual(results(), [{ job_id: "job_1", state: "running", output: "" }])
      assert.deepInclude(jobs.list(agent.id)[0], { id: "job_1", agent: "main", command: "serve", lastLine: "two" })
      yield* server.print("bye")
      yield* turn("stop")
      assert.deepStrictEqual(results(), [
        {
          job_id: "job_1",
          state: "ended",
          output: "bye",
          ended: { exitCode: null, signal: "SIGTERM" },
          notice: "[It was stopped by main.]"
        }
      ])
      assert.isTrue(server.wasStopped() && server.isGone())
      const [began] = yield* of("JobStarted")
      assert.include(began, { jobId: "job_1", command: "serve" })
      const [ended] = yield* of("JobEnded")
      assert.include(ended, { jobId: "job_1", command: "serve", reason: "stopped", by: "main", signal: "SIGTERM" })
      // The model stopped it itself, so there is nothing to tell it.
      assert.deepStrictEqual(said(), ["serve it", "done", "look", "done", "again", "done", "stop", "done"])
      assert.deepStrictEqual(EventRules.violations(yield* events), [])
    })
  )

  it.scoped("that ends at once is no job: its call has the result of any command", () =>
    Effect.gen(function* () {
      const { agent, jobs, of, results, stage, turn } = yield* start({
        script: [step(background("false")), done, step(background("none")), done, step(look("job_1")), done]
      })
      const first = yield* Effect.fork(agent.run("go"))
      const failing = yield* process(stage)
      yield* failing.print("no such port\n")
      yield* failing.end(3)
      yield* passing(first)
      const [result] = results()
      assert.include(result, { exitCode: 3, output: "no such port\n" })
      assert.include(result.notice, "[It ran in a sandbox:")
      assert.include(result.notice, "[It has ended already, so there is no background job.]")
      assert.deepStrictEqual(jobs.list(agent.id), [])
      stage.refusal = "The sandbox could not be made: no."
      yield* turn("again")
      assert.deepStrictEqual(results(), ["The sandbox could not be made: no."])
      yield* turn("look")
      assert.deepStrictEqual(results(), ['There is no background job "job_1". There are none.'])
      assert.deepStrictEqual(yield* of("JobStarted"), [])
      assert.deepStrictEqual(yield* of("JobEnded"), [])
      assert.isTrue(failing.isGone())
    })
  )

  it.scoped("whose time is up at once says so", () =>
    Effect.gen(function* () {
      const { agent, results, stage } = yield* start({
        script: [step({ name: "run_command", params: { command: "serve", background: true, timeout: 1 } }), done]
      })
      const first = yield* Effect.fork(agent.run("go"))
      yield* process(stage)
      yield* passing(first)
      assert.include(
        results()[0].notice,
        "[It was stopped, as its time was up.]\n[It has ended already, so there is no background job.]"
      )
    })
  )

  it.scoped("tells its end once, with what the model reads next: a step of the turn that works, or the next turn", () =>
    Effect.gen(function* () {
      const { agent, events, said, stage, turn } = yield* start({
        script: [
          step(background("first")),
          step({ name: "run_command", params: { command: "build" } }),
          { text: "built" },
          step(background("second")),
          done,
          { text: "I see" },
          { text: "nothing new" }
        ]
      })
      const first = yield* Effect.fork(agent.run("build"))
      yield* settle
      yield* TestClock.adjust("2 seconds")
      const build = yield* process(stage, 1)
      yield* (yield* process(stage)).end(1)
      yield* settle
      yield* build.end(0)
      yield* passing(first)
      const told = "[Background job job_1 (first) ended with exit code 1. job_output shows what it printed last.]"
      assert.deepStrictEqual(said(), ["build", told, "built"])
      yield* turn("once more")
      yield* (yield* process(stage, 2)).end(0)
      yield* settle
      // It begins no turn.
      assert.isTrue(yield* agent.isIdle)
      assert.strictEqual(said().at(-1), "done")
      yield* turn("and?")
      yield* turn("well?")
      assert.deepStrictEqual(said().slice(-5), [
        "[Background job job_2 (second) ended with exit code 0. job_output shows what it printed last.]",
        "and?",
        "I see",
        "well?",
        "nothing new"
      ])
      assert.deepStrictEqual(EventRules.violations(yield* events), [])
    })
  )

  it.scoped("that the model finds ended is not told again, and prolongs no answer", () =>
    Effect.gen(function* () {
      const { agent, said, stage, results, turn } = yield* start({
        policy: PermissionFile.policy({ whitelist: { patterns: ["serve"] } }),
        person: [TestInteractor.delay("5 seconds", "y")],
        script: [
          step(background("serve")),
          done,
          // The second call is looked at once the first one is allowed.
          step({ name: "run_command", params: { command: "build", timeout: 1 } }, look("job_1")),
          { text: "it is over" },
          done
        ]
      })
      yield* turn("go")
      const looking = yield* Effect.fork(agent.run("look"))
      yield* settle
      const server = yield* process(stage)
      yield* server.print("last words")
      yield* server.end(0)
      yield* passing(looking)
      assert.deepInclude(results()[1], { state: "ended", output: "last words", ended: { exitCode: 0 } })
      yield* turn("thanks")
      assert.deepStrictEqual(said(), ["go", "done", "look", "it is over", "thanks", "done"])
    })
  )

  it.scoped("is one of eight at most, in the whole tree; the ninth is refused before anybody is asked", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { agent, jobs, person, results, stage, turn } = yield* start({
        policy: PermissionFile.policy({ whitelist: { tools: ["delegate"] } }),
        person: (request) => {
          asked.push(JSON.stringify(request))
          return "y"
        },
        script: {
          agents: {
            main: [
              step(...eight.slice(0, 7)),
              step({ name: "delegate", params: { profile: "helper", task: "serve", keep: true } }),
              step(background("ninth")),
              done,
              step(stop("job_3")),
              step(background("another")),
              done
            ],
            helper: [step(background("of the child")), done]
          }
        }
      })
      yield* turn("serve")
      assert.strictEqual(jobs.list(agent.id).length, 8)
      const [refusal] = results()
      assert.match(refusal, /^8 background jobs run already, and no more may run at once: job_1 \(serve 0\); /)
      assert.include(refusal, "of main/helper (of the child)")
      assert.match(refusal, /Stop one with job_stop first, or wait until one ends\.$/)
      assert.strictEqual((yield* person.shown).length, 8)
      yield* turn("make room")
      assert.include(results()[0], { job_id: "job_9", state: "running" })
      assert.strictEqual(stage.processes.filter((one) => !one.isGone()).length, 8)
      assert.isTrue(asked.every((text) => text.includes("background")))
    })
  )

  it.scoped("belongs to the agent that started it, and ends with that", () =>
    Effect.gen(function* () {
      const { agent, jobs, of, stage, turn, results } = yield* start({
        script: {
          agents: {
            main: [
              step(background("mine")),
              step({ name: "spawn_subagent", params: { profile: "helper", task: "serve", keep: true } }),
              done,
              { text: "it serves" },
              step(look("job_2"), stop("job_2"), look("job_77"), look("")),
              done,
              step({ name: "close_subagent", params: { agent_id: "subagent_1" } }),
              done,
              done
            ],
            helper: [step(background("of the child"), look("job_1")), done]
          }
        }
      })
      yield* turn("go")
      yield* passing(yield* Effect.fork(agent.awaitIdle))
      const another = "job_2 is a job of main/helper: only the agent that started it can look at it or stop it."
      yield* turn("meddle")
      assert.deepStrictEqual(results(), [
        another,
        another,
        'There is no background job "job_77". There are: job_1.',
        'There is no background job "". There are: job_1.'
      ])
      assert.isFalse((yield* process(stage, 1)).wasStopped())
      yield* turn("close")
      assert.isTrue((yield* process(stage, 1)).isGone())
      assert.isFalse((yield* process(stage, 0)).wasStopped())
      assert.deepStrictEqual(
        jobs.list(agent.id).map(({ id }) => id),
        ["job_1"]
      )
      const ended = yield* of("JobEnded")
      assert.deepStrictEqual(
        ended.map(({ agent, jobId, reason }) => ({ agent, jobId, reason })),
        [{ agent: "main/helper", jobId: "job_2", reason: "session_ended" }]
      )
    })
  )

  it.scoped("outlives the cancel of a turn, unless its call has not given it away yet", () =>
    Effect.gen(function* () {
      const { agent, jobs, stage } = yield* start({
        script: [
          step(background("kept")),
          step({ name: "run_command", params: { command: "sleep" } }),
          step(background("lost")),
          done
        ]
      })
      const first = yield* Effect.fork(agent.run("go"))
      yield* settle
      yield* TestClock.adjust("2 seconds")
      yield* settle
      yield* agent.cancel("user")
      yield* Fiber.join(first)
      const [kept, sleep] = stage.processes
      assert.isFalse(kept?.wasStopped())
      assert.isTrue(sleep?.isGone())
      const second = yield* Effect.fork(agent.run("again"))
      yield* settle
      const lost = yield* process(stage, 2)
      yield* agent.cancel("user")
      yield* Fiber.join(second)
      yield* settle
      assert.isTrue(lost.isGone())
      assert.deepStrictEqual(
        jobs.list(agent.id).map(({ command }) => command),
        ["kept"]
      )
    })
  )

  it.scoped("ends with its session: all at the same time, however that ends", () =>
    Effect.gen(function* () {
      for (const how of ["shutdown", "scope"] as const) {
        const { agent, close, events, jobs, of, stage, turn } = yield* start({ script: [step(...eight), done] })
        yield* turn("go")
        assert.strictEqual(jobs.list(agent.id).length, 8)
        yield* how === "shutdown" ? agent.shutdown : close
        assert.isTrue(stage.processes.every((one) => one.wasStopped() && one.isGone()))
        assert.deepStrictEqual(jobs.list(agent.id), [])
        // The reader of the events lives in that scope, too.
        if (how === "scope") continue
        const ended = yield* of("JobEnded")
        assert.strictEqual(ended.length, 8)
        assert.isTrue(ended.every(({ reason }) => reason === "session_ended"))
        assert.strictEqual((yield* events).at(-1)?._tag, "AgentCompleted")
      }
    })
  )

  it.scoped("that takes its time to end delays the shutdown by no more than that may take", () =>
    Effect.gen(function* () {
      const { agent, close, of, stage, turn } = yield* start({
        script: [step(background("stubborn")), done],
        agent: { shutdownWithin: "3 seconds" }
      })
      stage.stubborn = true
      yield* turn("go")
      const ending = yield* Effect.fork(agent.shutdown)
      yield* settle
      yield* TestClock.adjust("2 seconds")
      assert.isNull(ending.unsafePoll())
      yield* TestClock.adjust("1 seconds")
      yield* settle
      assert.isNotNull(ending.unsafePoll())
      assert.match((yield* of("AgentError"))[0]?.message ?? "", /did not stop|3 s/)
      stage.stubborn = false
      yield* (yield* process(stage)).end(0)
      yield* passing(yield* Effect.fork(close))
    })
  )

  it.scoped("that prints without end is read in helpings", () =>
    Effect.gen(function* () {
      const { agent, jobs, stage, turn } = yield* start({ script: [step(background("yes")), done] })
      yield* turn("go")
      const yes = yield* process(stage)
      yield* Effect.forEach(Array.from({ length: 30 }), () => yes.print("y\n".repeat(50_000)), { discard: true })
      const { leftOut, text } = yield* jobs.tail(agent.id, "job_1")
      assert.strictEqual(leftOut + text.length, 1_000_000)
      yield* TestClock.adjust("1 seconds")
      yield* settle
      const later = yield* jobs.tail(agent.id, "job_1")
      assert.strictEqual(later.leftOut + later.text.length, 3_000_000)
      assert.isAtMost(later.text.length, 400_000)
    })
  )

  it.scoped("that cannot be started takes no place, and no call waits for it", () =>
    Effect.gen(function* () {
      const { agent, jobs, results, stage, turn } = yield* start({
        script: [step(...eight), done, step(...eight), done]
      })
      stage.refusal = "no sandbox today"
      yield* turn("go")
      assert.deepStrictEqual([...new Set(results())], ["no sandbox today"])
      assert.deepStrictEqual(jobs.list(agent.id), [])
      stage.refusal = undefined
      yield* turn("again")
      assert.strictEqual(jobs.list(agent.id).length, 8)
    })
  )

  it.scoped("ends when its own time is up, which the model is told", () =>
    Effect.gen(function* () {
      const { of, said, stage, turn } = yield* start({
        script: [step(background("serve", { timeout: 60 })), done, done]
      })
      yield* turn("go")
      yield* TestClock.adjust("50 seconds")
      yield* settle
      assert.isFalse((yield* process(stage)).wasStopped())
      yield* TestClock.adjust("10 seconds")
      yield* settle
      yield* TestClock.adjust("1 seconds")
      assert.isTrue((yield* process(stage)).isGone())
      assert.include((yield* of("JobEnded"))[0], { reason: "timed_out", duration: 60_000 })
      yield* turn("and?")
      assert.include(said().join("\n"), "job_1 (serve) was stopped, as its time was up.")
    })
  )

  it.scoped("is stopped by a person, whom its agent is told", () =>
    Effect.gen(function* () {
      const { agent, jobs, of, said, stage, turn } = yield* start({ script: [step(background("serve")), done, done] })
      yield* turn("go")
      yield* (yield* process(stage)).print("one\ntwo\n")
      yield* settle
      assert.deepInclude(yield* jobs.tail(agent.id, "job_1", 4), { text: "two\n", leftOut: 4, lastLine: "two" })
      assert.deepInclude(yield* jobs.stop(agent.id, "job_1", "ada"), { id: "job_1" })
      assert.include((yield* of("JobEnded"))[0], { reason: "stopped", by: "ada" })
      assert.strictEqual(
        (yield* Effect.flip(jobs.tail(agent.id, "job_2"))).message,
        'There is no background job "job_2". There are: job_1.'
      )
      yield* turn("and?")
      assert.include(said().join("\n"), "[Background job job_1 (serve) was stopped by ada.")
    })
  )

  it.scoped("of another process is gone, which its agent is told in words; its id never comes back", () =>
    Effect.gen(function* () {
      const kept = yield* Effect.map(SessionStore.makeMemory, (open) =>
        open({ pid: 1, host: "here", isAlive: () => true })
      )
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent, turn } = yield* start({
            script: [step(background("serve"), background("watch")), done],
            agent: { persistence: yield* Persistence.begin(kept) }
          })
          yield* turn("go")
          return agent.id
        })
      )
      const { results, turn } = yield* start({
        script: [step(background("serve")), done, step(look("job_2")), done, step(background("serve")), done],
        agent: { persistence: yield* Persistence.resume(kept, id) }
      })
      yield* turn("look")
      assert.deepStrictEqual(results(), [
        'There is no background job "job_2". Jobs end with the process that runs them, and this session goes on in ' +
          "another one: start it again if it is still needed. There are none."
      ])
      yield* turn("then")
      assert.include(results()[0], { job_id: "job_3", state: "running" })
    })
  )

  it.effect("shows of much output the end, and how much is missing", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { results, stage, turn } = yield* start({
          maxOutput: 1_000,
          script: [step(background("flood")), done, step(look("job_1")), done]
        })
        yield* turn("go")
        const flood = yield* process(stage)
        yield* Effect.forEach(Array.from({ length: 50 }), (_, index) => flood.print(`line ${index}\n`.padStart(10_000)))
        yield* turn("look")
        const [{ output }] = results()
        assert.match(output, /^\[… 499000 characters left out\]\n/)
        assert.isTrue(output.endsWith("line 49\n"))
        assert.isBelow(output.length, 1_100)
      })
    )
  )

  it.effect("shows no secret, wherever its output is cut into pieces and looks", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(FastCheck.integer({ min: 1, max: 40 }), FastCheck.boolean(), (at, lookBetween) =>
          Effect.runPromise(
            Effect.scoped(
              Effect.gen(function* () {
                const secret = "correct-horse-battery"
                const { agent, jobs, results, stage, turn } = yield* start({
                  secrets: [secret],
                  script: [
                    step(background(`echo ${secret}`)),
                    done,
                    step(look("job_1")),
                    done,
                    step(look("job_1")),
                    done
                  ]
                })
                yield* turn("go")
                const one = yield* process(stage)
                const text = `before ${secret} after\n`
                yield* one.print(text.slice(0, at))
                yield* turn("look")
                const first = results()[0].output
                if (!lookBetween) yield* settle
                yield* one.print(text.slice(at))
                yield* one.end(0)
                yield* turn("look")
                assert.strictEqual(first + results()[0].output, "before [REDACTED] after\n")
                assert.notInclude(JSON.stringify(jobs.list(agent.id)), secret)
              })
            ).pipe(Effect.provide(TestContext.TestContext))
          )
        ),
        { numRuns: 15 }
      )
    )
  )
})

describe("permission for a background job", () => {
  const asks = PermissionFile.policy({})
  it.scoped("is not one for a turn or a time of work, which end sooner; it is one for the session, and for all", () =>
    Effect.gen(function* () {
      for (const [answer, again] of [
        ["t", true],
        ["i", true],
        ["a", false],
        ["all", false]
      ] as const) {
        const { person, turn } = yield* start({
          policy: asks,
          person: [answer, "y"],
          script: [
            step({ name: "run_command", params: { command: "npm test", timeout: 1 } }),
            step(background("npm test")),
            done
          ]
        })
        yield* turn("go")
        assert.strictEqual((yield* person.shown).length, again ? 2 : 1, answer)
      }
    })
  )

  it.scoped("says in its question that the command goes on, and asks about the network apart", () =>
    Effect.gen(function* () {
      const { person, stage, turn } = yield* start({
        policy: PermissionFile.policy({ whitelist: { tools: ["run_command"], sandboxed: true } }),
        person: ["y"],
        script: [
          step(background("quiet")),
          step(background("serve", { sandbox: "network", reason: "a browser looks at it" })),
          done
        ]
      })
      yield* turn("go")
      const shown = yield* person.shown
      assert.strictEqual(shown.length, 1)
      const text = JSON.stringify(shown)
      assert.include(text, "run in the background, until the session ends")
      assert.include(
        text,
        "It reaches the network and the services of this machine from its sandbox: a browser looks at it"
      )
      assert.deepStrictEqual(
        stage.processes.map(({ network }) => network),
        [false, true]
      )
    })
  )
})
