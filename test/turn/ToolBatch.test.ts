import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import * as Stream from "effect/Stream"
import * as History from "../../src/conversation/History.js"
import * as Origin from "../../src/core/Origin.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { Confirm } from "../../src/interaction/Interaction.js"
import type * as Model from "../../src/model/Model.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const crashed = "work crashed. The log has the reason."
const work = (name: string) => ({ name: "work", params: { name } })
const ask = PermissionFile.policy({})

/** One step with these calls, and what the model is told. */
const resultsOf = (step: Kit.Step, options: Partial<Kit.Options> = {}) =>
  Effect.gen(function* () {
    const kit = yield* Kit.start({ model: [step, { text: "done" }], ...options })
    const end = yield* kit.agent.run("go")
    assert.deepStrictEqual(yield* kit.wrong, [])
    assert.strictEqual(end._tag, "Completed")
    const outcomes = (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome)
    return { results: kit.results(), outcomes, kit }
  })

describe("parallel calls", () => {
  it.scoped("run at most eight at once, and the rest as soon as there is room", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const gates = yield* Effect.all(Array.from({ length: 20 }, () => Deferred.make<void>()))
      const worker: Kit.Worker = (name) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            most = Math.max(most, ++running)
          }),
          () => Effect.as(Deferred.await(gates[Number(name)] as Deferred.Deferred<void>), name),
          () => Effect.sync(() => running--)
        )
      const kit = yield* Kit.start({ model: [{ tools: gates.map((_, index) => work(String(index))) }, {}], worker })
      yield* kit.agent.send("go")
      assert.strictEqual((yield* kit.of("ToolCallStarted")).length, 8)
      yield* Deferred.succeed(gates[7] as Deferred.Deferred<void>, undefined)
      assert.strictEqual((yield* kit.of("ToolCallStarted")).length, 9, "the ninth took the place of the one that ended")
      yield* Effect.forEach(gates, (gate) => Deferred.succeed(gate, undefined))
      yield* kit.agent.awaitIdle
      assert.strictEqual(most, 8)
      assert.deepStrictEqual(
        kit.results(),
        gates.map((_, index) => String(index))
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("take another bound from the limits", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map(work) }],
        worker: () => Effect.never,
        agent: { limits: { parallelTools: 2 } }
      })
      yield* kit.agent.send("go")
      assert.strictEqual((yield* kit.of("ToolCallStarted")).length, 2)
      yield* kit.agent.cancel()
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("start as soon as they are allowed, and are reported in the order in which they were proposed", () =>
    Effect.gen(function* () {
      const gates = { a: yield* Deferred.make<void>(), b: yield* Deferred.make<void>() }
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map(work) }, { text: "done" }],
        worker: (name) => (name === "c" ? Effect.succeed("c") : Effect.as(Deferred.await(gates[name as "a"]), name)),
        runtime: { policy: ask },
        person: ["y", TestInteractor.wait(Effect.as(Deferred.await(gates.a), "y")), "n"]
      })
      yield* kit.agent.send("go")
      assert.deepStrictEqual(
        (yield* kit.of("ToolCallStarted")).map(({ summary }) => summary),
        ["a"],
        "the first runs while the second is asked about"
      )
      yield* Deferred.succeed(gates.a, undefined)
      yield* settle
      yield* Deferred.succeed(gates.b, undefined)
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(kit.results(), ["a", "b", "Permission denied: person said no"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that fail leave the others alone", () =>
    Effect.gen(function* () {
      const { outcomes, results } = yield* resultsOf(
        { tools: [work("bad"), work("good"), { name: "nothing" }, { name: "work", params: {} }] },
        { worker: (name) => (name === "bad" ? Effect.dieMessage("boom") : Effect.succeed(name)) }
      )
      assert.deepStrictEqual(results.slice(0, 2), [crashed, "good"])
      assert.deepStrictEqual([...outcomes].sort(), ["failed", "invalid", "invalid", "succeeded"])
    })
  )
})

describe("what the model is told of", () => {
  const table: ReadonlyArray<readonly [string, Kit.Step, string, unknown]> = [
    [
      "a tool that does not exist",
      { tools: [{ name: "fly", params: {} }] },
      "invalid",
      'There is no tool "fly". Available: work, slow, typed.'
    ],
    ["a typed failure", { tools: [{ name: "typed", params: { why: "late" } }] }, "failed", { code: 7, why: "late" }],
    [
      "a failure that is not the tool's",
      { tools: [{ name: "typed", params: { why: "odd" } }] },
      "failed",
      "typed failed: odd"
    ],
    [
      "a result that is not the tool's",
      { tools: [{ name: "typed", params: { why: "wrong" } }] },
      "failed",
      "typed ran, and its result does not fit its schema. What does not fit is in the log."
    ],
    [
      "a result, encoded",
      { tools: [{ name: "typed", params: { why: "fine" } }] },
      "succeeded",
      { at: "1970-01-01T00:00:00.000Z" }
    ]
  ]
  for (const [name, step, outcome, result] of table) {
    it.scoped(name, () =>
      Effect.gen(function* () {
        const { outcomes, results } = yield* resultsOf(step)
        assert.deepStrictEqual({ outcomes, results }, { outcomes: [outcome], results: [result] } as never)
      })
    )
  }

  it.scoped("arguments that do not fit, each with where", () =>
    Effect.gen(function* () {
      const said = new Map<unknown, RegExp>([
        [{}, /^name: is missing$/],
        [{ name: 7 }, /^name: Expected string, actual 7$/],
        ['{"name":"a', /^they are no JSON: the text ends too early, after character 10$/],
        ["{oops}", /^they are no JSON: (?!the text ends)/],
        ['{"name":"a"}', /^they are JSON within a text, and no object$/],
        [undefined, /^name: is missing$/],
        [null, /^name: is missing$/],
        [[], /^they are no object$/],
        [7, /^they are no object$/]
      ])
      for (const [params, says] of said) {
        const { outcomes, results } = yield* resultsOf({ tools: [{ name: "work", params }] })
        assert.deepStrictEqual(outcomes, ["invalid"])
        const [, problem = ""] = /^Invalid arguments for work: (.*)$/.exec(String(results[0])) ?? []
        assert.match(problem, says)
      }
    })
  )

  const notJson = (why: string) => `work ran, and its result cannot be written as JSON: ${why}.`
  const circular: { self?: unknown } = {}
  circular.self = circular
  const values: ReadonlyArray<readonly [string, unknown, string, unknown]> = [
    ["nothing", undefined, "succeeded", null],
    ["null", null, "succeeded", null],
    ["a value that goes round in circles", circular, "failed", notJson("Converting circular structure to JSON")],
    ["a big integer", 7n, "failed", notJson("Do not know how to serialize a BigInt")],
    ...[
      ["a map", new Map([["a", 1]]), "a Map"],
      ["a set", new Set([1]), "a Set"],
      ["a function", () => 1, "a function"],
      ["a symbol", Symbol("x"), "a symbol"],
      ["an error", new Error("boom"), "an Error"],
      ["a promise", Promise.resolve(1), "a Promise"],
      ["bytes", new Uint8Array([1]), "a Uint8Array"],
      ["a pattern", /x/, "a RegExp"],
      ["no number", Number.NaN, "NaN"],
      ["an infinite number", { a: Number.POSITIVE_INFINITY }, "Infinity"],
      [
        "an object that hides what it holds",
        new (class {
          readonly #x = 1
          readonly y = () => this.#x
        })(),
        "a function"
      ],
      ["what says of itself that it is a map", { toJSON: () => new Map([["a", 1]]) }, "a Map"],
      ["what says nothing of itself", { a: { toJSON: () => () => 1 } }, "a function"],
      ["a map deep within", { a: [{ b: new Map() }] }, "a Map"],
      ["a function among others", [1, () => 1], "a function"],
      ["what writes nothing", { toJSON: () => undefined }, "nothing"]
    ].map(([name, value, lost]) => [String(name), value, "failed", notJson(`it holds ${String(lost)}`)] as const),
    ["an object with a member that is undefined", { a: 1, b: undefined }, "succeeded", { a: 1, b: undefined }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), "succeeded", { a: 1 }]
  ]
  for (const [name, value, outcome, result] of values) {
    it.scoped(`a result of ${name}`, () =>
      Effect.gen(function* () {
        const { outcomes, results } = yield* resultsOf({ tools: [work("a")] }, { worker: () => Effect.succeed(value) })
        assert.deepStrictEqual({ outcomes, results }, { outcomes: [outcome], results: [result] } as never)
      })
    )
  }

  const crashes: ReadonlyArray<readonly [string, Kit.Worker, string, string]> = [
    ["dies", () => Effect.die(new Error("boom")), "failed", crashed],
    ["dies of an object", () => Effect.die({ code: 7 }), "failed", crashed],
    [
      "throws before it is an effect",
      () => {
        throw new Error("early")
      },
      "failed",
      crashed
    ],
    [
      "fails with a map",
      () => Effect.fail(new Map([["a", 1]]) as never),
      "failed",
      "work failed: with a Map, which JSON cannot hold"
    ],
    [
      "fails with what holds a map",
      () => Effect.fail({ why: { toJSON: () => new Map() } } as never),
      "failed",
      "work failed: with an Object, which JSON cannot hold"
    ],
    ["fails with an object", () => Effect.fail({ why: 1 } as never), "failed", 'work failed: {"why":1}'],
    [
      "interrupts itself",
      () => Effect.interrupt,
      "interrupted",
      "The call was interrupted while it ran. Whether it took effect is not known."
    ]
  ]
  for (const [name, worker, outcome, result] of crashes) {
    it.scoped(`a handler that ${name}`, () =>
      Effect.gen(function* () {
        const { outcomes, results } = yield* resultsOf({ tools: [work("a")] }, { worker })
        assert.deepStrictEqual({ outcomes, results }, { outcomes: [outcome], results: [result] } as never)
      })
    )
  }

  it.scoped("a tool that takes too long, once its time is up", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [{ name: "slow" }] }, { text: "done" }] })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("119 seconds")
      assert.deepStrictEqual(yield* kit.of("ToolCallEnded"), [])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      assert.deepStrictEqual(kit.results(), [
        "slow took too long and was stopped. Whether it took effect is not known."
      ])
      assert.strictEqual((yield* kit.of("ToolCallEnded"))[0]?.duration, 120_000)
    })
  )

  it.scoped("a result that is too long: its beginning, and how much is missing", () =>
    Effect.gen(function* () {
      const secret = "hunter2-hunter2"
      const { results } = yield* resultsOf(
        { tools: [work("a")] },
        {
          worker: () => Effect.succeed(`${"x".repeat(95)}${secret}${"y".repeat(100)}`),
          agent: { limits: { maxResult: 100 } },
          runtime: { secrets: [Redacted.make(secret)] }
        }
      )
      assert.match(String(results[0]), /^x{95}\[REDA\n\[cut: \d+ of \d+ characters left out\]$/)
    })
  )

  it.scoped("arguments that were edited on the way", () =>
    Effect.gen(function* () {
      const { kit, results } = yield* resultsOf(
        {
          tools: [
            { ...work("theirs"), id: "c1" },
            { ...work("theirs"), id: "c2" }
          ]
        },
        {
          worker: (name) => Effect.succeed(name === "mine" ? `did ${name}` : { did: name }),
          runtime: { policy: ask },
          person: [
            TestInteractor.answer({ decision: "edit", editedArguments: { name: "mine" } }),
            "y",
            TestInteractor.answer({ decision: "edit", editedArguments: { name: "other" } }),
            "y"
          ]
        }
      )
      assert.deepStrictEqual(results, ["did mine", { did: "other" }])
      const words = kit.agent.history.messages.slice(
        kit.agent.history.messages.findIndex(({ role }) => role === "tool")
      )
      assert.deepStrictEqual(words.slice(1).map(History.textOf), [
        'About the call c1 of work: The user edited the arguments before approving: {"name":"mine"}',
        'About the call c2 of work: The user edited the arguments before approving: {"name":"other"}',
        "done"
      ])
    })
  )
})

describe("what comes after a call", () => {
  const Mark = FiberRef.unsafeMake("none")

  /** One reply a case, and whether the guard lets it run at the last look. */
  const cases: ReadonlyArray<readonly [string, Kit.Step]> = [
    ["allowed", { tools: [work("allowed")] }],
    ["denied by a person", { tools: [work("denied")] }],
    ["refused at the last look", { tools: [work("refused")] }],
    ["that crashes", { tools: [work("crashes")] }],
    ["among others", { tools: [work("one"), work("denied"), work("two")] }],
    ["that takes too long", { tools: [{ name: "slow" }] }]
  ]

  for (const [name, step] of cases) {
    it.scoped(`one ${name} has none of what was set for it, or by it`, () =>
      Effect.gen(function* () {
        const seen: Array<readonly [string | undefined, string]> = []
        const { model } = Kit.replies(step, { text: "done" })
        const looking: Model.Service = {
          id: model.id,
          stream: (asked) =>
            Stream.unwrap(
              Effect.map(Effect.zip(Origin.current, FiberRef.get(Mark)), ([{ toolCallId }, mark]) => {
                seen.push([toolCallId, mark])
                return model.stream(asked)
              })
            )
        }
        let looks = 0
        const kit = yield* Kit.start({
          model: looking,
          worker: (word) =>
            Effect.zipRight(
              FiberRef.set(Mark, "set by a handler"),
              word === "crashes" ? Effect.dieMessage("broken") : Effect.succeed(word)
            ),
          person: ({ interaction }) => (JSON.stringify(interaction).includes("denied") ? "n" : "y"),
          runtime: {
            policy: ask,
            guards: [
              ({ params }) =>
                JSON.stringify(params).includes("refused") && ++looks > 1 ? Effect.fail("changed") : Effect.void
            ]
          }
        })
        const running = yield* Effect.fork(kit.agent.run("go"))
        yield* settle
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
        assert.deepStrictEqual(seen, [
          [undefined, "none"],
          [undefined, "none"]
        ])
      })
    )
  }
})

describe("ids of calls", () => {
  const ids = (kit: Kit.Started) =>
    kit.agent.history.messages.flatMap((message) =>
      message.role === "assistant"
        ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
        : []
    )

  it.scoped("that are missing or taken are replaced, so that every result has its call", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(
        Stream.make(
          Kit.call("work", { name: "a" }, "x"),
          Kit.call("work", { name: "b" }, "x"),
          Kit.call("work", { name: "c" }, ""),
          Kit.call("work", { name: "d" }, ""),
          Kit.finish("tool-calls")
        ),
        // A server that counts anew in every step.
        Stream.make(Kit.call("work", { name: "e" }, "x"), Kit.finish("tool-calls")),
        { text: "done" }
      )
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(yield* kit.wrong, [])
      assert.strictEqual(new Set(ids(kit)).size, 5)
      assert.strictEqual(ids(kit)[0], "x", "one that is free is kept")
      assert.deepStrictEqual(kit.results(), ["e"])
    })
  )
})

describe("guards", () => {
  it.scoped("are asked again just before the call runs: what was allowed a moment ago may not be any more", () =>
    Effect.gen(function* () {
      let looks = 0
      const ran: Array<string> = []
      const { outcomes, results } = yield* resultsOf(
        { tools: [work("a")] },
        {
          worker: (name) => Effect.sync(() => ran.push(name)),
          runtime: { guards: [() => (++looks === 1 ? Effect.void : Effect.fail("the file has changed"))] }
        }
      )
      assert.deepStrictEqual({ outcomes, results }, {
        outcomes: ["denied"],
        results: ["Permission denied: the file has changed"]
      } as never)
      assert.strictEqual(looks, 2)
      assert.deepStrictEqual(ran, [])
    })
  )

  it.scoped("see the edited arguments before the call runs", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      yield* resultsOf(
        { tools: [work("theirs")] },
        {
          runtime: { policy: ask, guards: [({ params }) => Effect.sync(() => void seen.push(params))] },
          person: [TestInteractor.answer({ decision: "edit", editedArguments: { name: "mine" } }), "y"]
        }
      )
      assert.deepStrictEqual(seen, [{ name: "theirs" }, { name: "mine" }, { name: "mine" }])
    })
  )

  it.scoped("hold though everything is allowed at the prompt, call after call", () =>
    Effect.gen(function* () {
      const { outcomes } = yield* resultsOf(
        { tools: [work("a"), work("evil"), work("b")] },
        {
          runtime: {
            policy: ask,
            guards: [({ params }) => (JSON.stringify(params).includes("evil") ? Effect.fail("no evil") : Effect.void)]
          },
          person: ["all"]
        }
      )
      assert.deepStrictEqual([...outcomes].sort(), ["denied", "succeeded", "succeeded"])
    })
  )
})

describe("a running call", () => {
  it.scoped("knows who it is, and may ask whom its session asks", () =>
    Effect.gen(function* () {
      const origins: Array<Origin.Origin> = []
      const { kit, results } = yield* resultsOf(
        {
          tools: [
            { ...work("a"), id: "one" },
            { ...work("b"), id: "two" }
          ]
        },
        {
          worker: () =>
            Effect.gen(function* () {
              origins.push(yield* Origin.current)
              // The tool did not declare that it asks; the session's interactor is there all the same.
              const interactor = yield* Interactor.current as Effect.Effect<Interactor.Service>
              const request = Interactor.ask(new Confirm({ prompt: "Sure?", default: false }))
              return yield* Interactor.withInteractor(interactor)(request)
            }).pipe(Effect.orDie),
          person: () => "y"
        }
      )
      assert.deepStrictEqual(results, [true, true])
      assert.deepStrictEqual(
        (yield* kit.of("InteractionRequested")).map(({ toolCallId }) => toolCallId),
        ["one", "two"] as never
      )
      assert.deepStrictEqual(
        origins.map(({ agent, correlationId, sessionId, toolCallId }) => [
          agent,
          sessionId,
          toolCallId,
          typeof correlationId
        ]),
        [
          ["main", kit.agent.id, "one", "string"],
          ["main", kit.agent.id, "two", "string"]
        ] as never
      )
    })
  )

  for (const names of [["a"], ["a", "b"]]) {
    it.scoped(`has printed all before its end, also what was held back, one of ${names.length}`, () =>
      Effect.gen(function* () {
        const { kit } = yield* resultsOf(
          { tools: names.map((name) => ({ ...work(name), id: name })) },
          {
            worker: (name) => Effect.as(Kit.print("correct horse"), name),
            runtime: { secrets: [Redacted.make("correct horse battery")] }
          }
        )
        const events = yield* kit.events
        for (const id of names) {
          const told = events.flatMap((event) =>
            event._tag === "ToolOutput" && event.toolCallId === id
              ? [event.text]
              : event._tag === "ToolCallEnded" && event.toolCallId === id
                ? [event._tag]
                : []
          )
          assert.deepStrictEqual(told, ["correct horse", "ToolCallEnded"])
        }
      })
    )
  }

  it.scoped("prints while it runs, under its own id, with secrets masked wherever they are cut", () =>
    Effect.gen(function* () {
      const token = `ghp_${"a1".repeat(15)}`
      const { kit } = yield* resultsOf(
        { tools: [{ ...work("a"), id: "one" }] },
        {
          worker: () =>
            Effect.zipRight(
              Effect.forEach(["to", "ken: ", token.slice(0, 9), token.slice(9), "\nnext ", "gh"], Kit.print),
              Effect.succeed("")
            )
        }
      )
      const printed = yield* kit.of("ToolOutput")
      assert.isTrue(printed.every(({ stream, toolCallId }) => toolCallId === "one" && stream === "stdout"))
      assert.strictEqual(printed.map(({ text }) => text).join(""), "token: [REDACTED]\nnext gh")
    })
  )
})
