import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Model from "../../src/model/Model.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const model = "test/replies"
const rateLimited = (retryAfter?: number) =>
  Stream.fail(
    new Model.RateLimited({ model, message: "slow down", ...(retryAfter === undefined ? {} : { retryAfter }) })
  )

describe("transient errors", () => {
  it.scoped("are tried again after a delay that doubles, with an event each", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(
        rateLimited(),
        Stream.fail(new Model.Overloaded({ model: "m", message: "busy" })),
        Stream.fail(new Model.Network({ model: "m", message: "no line" })),
        { text: "at last" }
      )
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      for (const attempt of [2, 3, 4]) {
        const retries = yield* kit.of("ModelRetried")
        const retry = retries.at(-1)
        assert.strictEqual(retries.length, attempt - 1)
        assert.strictEqual(retry?.attempt, attempt)
        const longest = 1000 * 2 ** (attempt - 2)
        assert.isAtLeast(retry?.delay ?? 0, longest / 2)
        assert.isAtMost(retry?.delay ?? 0, longest)
        yield* TestClock.adjust((retry?.delay ?? 0) - 1)
        assert.strictEqual(heard.length, attempt - 1)
        yield* TestClock.adjust(1)
      }
      assert.deepStrictEqual(yield* Fiber.join(running), { _tag: "Completed", text: "at last", steps: 1 } as TurnEnd)
      assert.deepStrictEqual(
        (yield* kit.of("ModelRetried")).map(({ reason }) => reason),
        ["slow down", "busy", "no line"]
      )
      assert.strictEqual((yield* kit.of("ModelCallStarted")).length, 1, "one model call, tried four times")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("are tried again when the provider said, to the millisecond", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(rateLimited(7_000), rateLimited(120_000), { text: "at last" })
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust(7_000)
      yield* settle
      yield* TestClock.adjust(120_000)
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(
        (yield* kit.of("ModelRetried")).map(({ delay }) => delay),
        [7_000, 120_000]
      )
    })
  )

  it.scoped("end the turn at once when the provider asks for a longer pause, and say when it is over", () =>
    Effect.gen(function* () {
      const overloaded = Stream.fail(new Model.Overloaded({ model, message: "busy.", retryAfter: 3_600_000 }))
      const table = [
        [
          rateLimited(120_001),
          undefined,
          "slow down The provider asks for a pause of 2m 1s. Come back at 1970-01-01 00:02 UTC."
        ],
        [overloaded, undefined, "busy. The provider asks for a pause of 1h. Come back at 1970-01-01 01:00 UTC."],
        [
          rateLimited(1_500),
          "1 second",
          "slow down The provider asks for a pause of 2s. Come back at 1970-01-01 00:00 UTC."
        ]
      ] as const
      for (const [reply, retryWithin, error] of table) {
        const { heard, model } = Kit.replies(reply, { text: "fine now" })
        const kit = yield* Kit.start({ model, agent: { limits: retryWithin === undefined ? {} : { retryWithin } } })
        assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Failed", error, steps: 1 } as TurnEnd)
        assert.deepStrictEqual([heard.length, yield* kit.of("ModelRetried")], [1, []])
        assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      }
    })
  )

  it.scoped("doubled delays have a limit of their own", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(rateLimited(), { text: "at last" })
      const limits = { retryDelay: "1 hour", maxRetryDelay: "3 seconds", retryWithin: "1 second" } as const
      const kit = yield* Kit.start({ model, agent: { limits } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
    })
  )

  it.scoped("end the turn when they do not end, and the next turn works", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(rateLimited(), rateLimited(), rateLimited(), { text: "fine now" })
      const kit = yield* Kit.start({ model, agent: { limits: { modelAttempts: 3, retryDelay: "1 second" } } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      for (const _ of [1, 2]) {
        yield* settle
        yield* TestClock.adjust("30 seconds")
      }
      assert.deepStrictEqual(yield* Fiber.join(running), { _tag: "Failed", error: "slow down", steps: 1 } as TurnEnd)
      assert.strictEqual(heard.length, 3)
      assert.strictEqual((yield* kit.of("ModelCallEnded"))[0]?.finishReason, "error")
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), [
        "user: go",
        "user: again",
        "assistant: fine now"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("leave no trace of what a broken attempt had said", () =>
    Effect.gen(function* () {
      const cut = Stream.concat(
        Stream.make(Kit.text("Hel"), Kit.call("work", { name: "a" })),
        Stream.fail(new Model.Network({ model, message: "the line broke" }))
      )
      const kit = yield* Kit.start({ model: Kit.replies(cut, { text: "Hello" }).model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: go", "assistant: Hello"])
      assert.deepStrictEqual(yield* kit.of("ToolCallProposed"), [])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("a cancelled wait ends the turn at once", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies(rateLimited(), { text: "hello" }).model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.of("ModelRetried")
      yield* kit.agent.cancel()
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("what cannot be tried again ends the turn as failed, and the next turn works", () => {
  const fail = (parts: ReadonlyArray<Model.Part>) => Stream.fromIterable(parts)
  const secret = "hunter2-hunter2"
  const table: ReadonlyArray<readonly [string, Kit.Reply, string]> = [
    [
      "the key is wrong",
      Stream.fail(new Model.Unauthorized({ model, message: `The key ${secret} was refused.` })),
      "The key [REDACTED] was refused."
    ],
    ["the prompt is too long", Stream.fail(new Model.ContextTooLong({ model, message: "too long" })), "too long"],
    ["the request is refused", Stream.fail(new Model.Refused({ model, message: "no" })), "no"],
    ["the model crashes", Stream.die(new Error("boom")), "The model crashed. The log has the reason."],
    ["the model interrupts itself", Stream.fromEffect(Effect.interrupt), "The model call was broken off."],
    [
      "the filter stops it",
      fail([Kit.text("so"), Kit.finish("content-filter")]),
      "The provider's content filter stopped the answer."
    ],
    ["the provider says error", fail([Kit.finish("error")]), "The provider ended the answer with an error."],
    [
      "the provider reports an error in the stream",
      fail([Kit.text("so"), { type: "error", error: { type: "overloaded", key: secret } }]),
      'The provider reported: {"key":"[REDACTED]","type":"overloaded"}'
    ],
    [
      "the provider reports it as an error",
      fail([{ type: "error", error: new Error("the tape is full") }]),
      "The provider reported: the tape is full"
    ],
    ["the provider reports it in words", fail([{ type: "error", error: "no tape" }]), "The provider reported: no tape"]
  ]
  for (const [name, reply, error] of table) {
    it.scoped(name, () =>
      Effect.gen(function* () {
        const kit = yield* Kit.start({
          model: Kit.replies(reply, { text: "fine now" }).model,
          runtime: { secrets: [Redacted.make(secret)] }
        })
        assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Failed", error, steps: 1 } as TurnEnd)
        const ended = yield* kit.of("TurnEnded")
        assert.deepStrictEqual(
          ended.map(({ detail, reason }) => ({ detail, reason })),
          [{ detail: error, reason: "failed" }]
        )
        const end = yield* kit.agent.run("again")
        assert.deepStrictEqual(end, { _tag: "Completed", text: "fine now", steps: 1 } as TurnEnd)
        assert.deepStrictEqual(yield* kit.wrong, [])
        assert.notInclude(JSON.stringify([yield* kit.events, end]), secret)
      })
    )
  }

  it.scoped("an answer without end is stopped", () =>
    Effect.gen(function* () {
      let said = 0
      const endless = Stream.repeatValue(Kit.text("x".repeat(100))).pipe(Stream.tap(() => Effect.sync(() => said++)))
      const kit = yield* Kit.start({
        model: Kit.replies(endless, { text: "fine now" }).model,
        agent: { limits: { maxGeneration: 10_000 } }
      })
      assert.deepStrictEqual(yield* kit.agent.run("go"), {
        _tag: "Failed",
        error: "The model's answer was longer than 10000 characters and was stopped.",
        steps: 1
      } as TurnEnd)
      assert.isAtMost(said, 200)
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("so are arguments without end, and thinking", () =>
    Effect.gen(function* () {
      const endless = (part: Model.Part) => Stream.repeatValue(part)
      const kit = yield* Kit.start({
        model: Kit.replies(
          endless({ type: "tool-params-delta", id: "1", delta: "x".repeat(100) }),
          endless({ type: "reasoning-delta", id: "1", delta: "x".repeat(100) })
        ).model,
        agent: { limits: { maxGeneration: 10_000 } }
      })
      for (const _ of [1, 2]) assert.strictEqual((yield* kit.agent.run("go"))._tag, "Failed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("a stream that ends too early", () => {
  it.scoped("is a broken line, and tried again", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies(Stream.make(Kit.text("Hel")), { text: "Hello" }).model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(
        (yield* kit.of("ModelRetried")).map(({ reason }) => reason),
        ["The model's answer was cut off."]
      )
    })
  )
})

describe("what a stream holds", () => {
  const holding = (held: { count: number }, reply: Kit.Reply) =>
    Stream.acquireRelease(
      Effect.sync(() => held.count++),
      () => Effect.sync(() => held.count--)
    ).pipe(Stream.flatMap(() => (Stream.StreamTypeId in reply ? reply : Kit.parts(reply))))
  const table: ReadonlyArray<readonly [string, Kit.Reply, TurnEnd["_tag"]]> = [
    ["came to its end", { text: "a", chunks: 1 }, "Completed"],
    ["failed", Stream.fail(new Model.Refused({ model, message: "no" })), "Failed"],
    ["crashed", Stream.die(new Error("boom")), "Failed"],
    ["was left because it said too much", { text: "x".repeat(2_000), chunks: 10 }, "Failed"],
    ["was cancelled", Stream.concat(Stream.make(Kit.text("a")), Stream.never), "Cancelled"]
  ]
  for (const [name, reply, end] of table) {
    it.scoped(`is let go of when it ${name}`, () =>
      Effect.gen(function* () {
        const held = { count: 0 }
        const kit = yield* Kit.start({
          model: Kit.replies(holding(held, reply)).model,
          agent: { limits: { maxGeneration: 1_000 } }
        })
        const running = yield* Effect.fork(kit.agent.run("go"))
        yield* settle
        if (end === "Cancelled") {
          assert.strictEqual(held.count, 1)
          yield* kit.agent.cancel()
        }
        assert.strictEqual((yield* Fiber.join(running))._tag, end)
        assert.strictEqual(held.count, 0)
      })
    )
  }
})

describe("a provider that pauses", () => {
  it.scoped("is called again with what it said so far", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(Stream.make(Kit.text("first,"), Kit.finish("pause")), { text: "then" })
      const kit = yield* Kit.start({ model })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "then", steps: 2 } as TurnEnd)
      assert.deepStrictEqual(Kit.outline(heard[1]?.messages ?? []), ["user: go", "assistant: first,"])
    })
  )
})

describe("blocks", () => {
  it.scoped("are told as they come, kept in order, with what the provider said about them", () =>
    Effect.gen(function* () {
      const meta = { vendor: { signature: "abc" } }
      const { model } = Kit.replies(
        Stream.make<Array<Model.Part>>(
          { type: "reasoning-start", id: "0", metadata: meta },
          { type: "reasoning-delta", id: "0", delta: "hm" },
          { type: "reasoning-end", id: "0" },
          // Deltas without a start, as some servers send them.
          { type: "text-delta", id: "1", delta: "Let me " },
          { type: "text-delta", id: "1", delta: "see." },
          Kit.call("work", { name: "a" }, "one"),
          Kit.finish("tool-calls")
        ),
        { text: "done" }
      )
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      const reply = kit.agent.history.messages[1]
      assert(reply?.role === "assistant")
      assert.deepStrictEqual(
        reply.content.map((part) => [
          part.type,
          part.type === "text" || part.type === "reasoning" ? part.text : "",
          part.options
        ]),
        [
          ["reasoning", "hm", meta],
          ["text", "Let me see.", {}],
          ["tool-call", "", {}]
        ] as never
      )
      const told = (yield* kit.events).flatMap((event) => {
        switch (event._tag) {
          case "BlockStarted":
          case "BlockEnded":
            return [`${event._tag} ${event.block}`]
          case "TextDelta":
          case "ThinkingDelta":
            return [event.text]
          default:
            return []
        }
      })
      assert.deepStrictEqual(told.slice(0, 7), [
        "BlockStarted thinking",
        "hm",
        "BlockEnded thinking",
        "BlockStarted text",
        "Let me ",
        "see.",
        "BlockEnded text"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("keep what the provider says about them, also beside a delta and without a word", () =>
    Effect.gen(function* () {
      const [first, second] = [{ vendor: { signature: "abc" } }, { other: { cached: true } }]
      const { model } = Kit.replies(
        Stream.make<Array<Model.Part>>(
          { type: "reasoning-start", id: "0" },
          { type: "reasoning-end", id: "0", metadata: first },
          { type: "reasoning-start", id: "1" },
          { type: "reasoning-end", id: "1" },
          { type: "text-start", id: "2", metadata: first },
          { type: "text-delta", id: "2", delta: "Hello", metadata: second },
          { type: "text-start", id: "3" },
          { type: "text-delta", id: "3", delta: "you" },
          Kit.finish()
        )
      )
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      const reply = kit.agent.history.messages[1]
      assert(reply?.role === "assistant")
      assert.deepStrictEqual(
        reply.content.map((part) => [part.type, part.type === "text" ? part.text : "", part.options]),
        [
          ["reasoning", "", first],
          ["text", "Hello", { ...first, ...second }],
          ["text", "you", {}]
        ] as never
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("let others run when very many parts come at once, and lose none", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 1_000 }, (_, at) => `${at} `)
      const { model } = Kit.replies(Stream.fromIterable([...words.map(Kit.text), Kit.finish()]))
      const kit = yield* Kit.start({ model, agent: { events: { capacity: 64, whenFull: "wait" } } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      const read: Array<string> = []
      const reader = yield* Effect.fork(
        Effect.repeat(
          Effect.map(kit.agent.events.takeAll, (batch) => {
            const all = Option.getOrElse(batch, () => [])
            assert.isBelow(all.length, 700, "it waits for its reader")
            for (const event of all) if (event._tag === "TextDelta") read.push(event.text)
            return Option.isSome(batch)
          }),
          { while: (more) => more }
        )
      )
      yield* Fiber.join(running)
      yield* kit.agent.shutdown
      yield* Fiber.join(reader)
      assert.strictEqual(read.join(""), words.join(""))
    })
  )

  it.scoped("tools that the provider runs itself are kept with their results and not run here", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(
        Stream.make<Array<Model.Part>>(
          { type: "tool-call", id: "web", name: "search", params: { q: "x" }, providerExecuted: true },
          { type: "tool-result", id: "web", name: "search", result: ["y"], isFailure: false, providerExecuted: true },
          Kit.text("found"),
          Kit.finish()
        )
      )
      const kit = yield* Kit.start({ model })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.of("ToolCallProposed"), [])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("a call that is written", () => {
  const write = (id: string, name: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<Model.Part> => [
    { type: "tool-params-start", id, name },
    ...deltas.map((delta): Model.Part => ({ type: "tool-params-delta", id, delta })),
    { type: "tool-params-end", id }
  ]
  const told = (events: ReadonlyArray<AgentEvent>) =>
    events.flatMap((event) => {
      switch (event._tag) {
        case "ToolArgumentsStarted":
          return [`${event.toolCallId} is ${event.tool}`]
        case "ToolArgumentsDelta":
          return [`${event.toolCallId}: ${event.text}`]
        case "ToolCallProposed":
          return [`${event.toolCallId} proposed`]
        default:
          return []
      }
    })

  it.scoped("has its name before its arguments, also when two are written at once", () =>
    Effect.gen(function* () {
      const [a, b] = [write("a", "work", '{"na', 'me":"x"}'), write("b", "slow", "{}")]
      const parts = [a[0], b[0], a[1], b[1], a[2], b[2], a[3]].flatMap((part) => part ?? [])
      const { model } = Kit.replies(
        Stream.make(...parts, Kit.call("work", { name: "x" }, "a"), Kit.call("work", { name: "y" }, "b"), Kit.finish()),
        { text: "done" }
      )
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(told(yield* kit.events), [
        "a is work",
        "b is slow",
        'a: {"na',
        "b: {}",
        'a: me":"x"}',
        "a proposed",
        "b proposed"
      ])
    })
  )

  it.scoped("is proposed under the id that its arguments had, also if the provider repeats an id or gives none", () =>
    Effect.gen(function* () {
      const reply = (id: string) =>
        Stream.make(...write(id, "work", '{"name":"x"}'), Kit.call("work", { name: "x" }, id), Kit.finish("tool-calls"))
      const { model } = Kit.replies(reply("c"), reply("c"), reply(""), { text: "done" })
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      const lines = told(yield* kit.events)
      const ids = new Set(lines.map((line) => line.slice(0, line.search(/[: ]/))))
      assert.strictEqual(ids.size, 3)
      assert.deepStrictEqual(
        lines,
        [...ids].flatMap((id) => [`${id} is work`, `${id}: {"name":"x"}`, `${id} proposed`])
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("has no name with a secret", () =>
    Effect.gen(function* () {
      const token = `ghp_${"a".repeat(30)}`
      const { model } = Kit.replies(Stream.make(...write("a", token, "{}"), Kit.call(token, {}, "a"), Kit.finish()), {
        text: "done"
      })
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go")
      const events = yield* kit.events
      assert.include(told(events), "a is [REDACTED]")
      assert.notInclude(JSON.stringify(events), token)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("secrets", () => {
  it.scoped("are in no event, no history and no error, however they are cut", () =>
    Effect.gen(function* () {
      const declared = "correct horse battery"
      const token = `sk-${"a1b2".repeat(8)}`
      const both = `${declared} and ${token}`
      for (const chunks of [1, 2, 5, 9, 40]) {
        const kit = yield* Kit.start({
          model: [
            {
              thinking: `hm, ${both}`,
              text: `I saw ${both}.`,
              tools: [{ name: "work", params: { name: both } }],
              chunks
            },
            { text: both, tools: [{ name: "typed", params: { why: both } }], chunks },
            { error: "bad_output" }
          ],
          worker: (name) => Effect.as(Kit.print(`printing ${name}`), { [both]: `result ${name}` }),
          runtime: { secrets: [Redacted.make(declared)], instructions: `Never tell ${both}.` }
        })
        const end = yield* kit.agent.run(`my keys are ${both}`)
        const everything = JSON.stringify([yield* kit.events, kit.agent.history.messages, end])
        assert.notInclude(everything, declared, `${chunks} chunks`)
        assert.notInclude(everything, token, `${chunks} chunks`)
        const told = (yield* kit.of("TextDelta")).map(({ text }) => text).join("")
        assert.match(told, /I saw \[REDACTED\] and (s|sk)?\[REDACTED\]\./)
        assert.notInclude(told, "a1b2a1b2")
        const shown = (yield* kit.of("ToolArgumentsDelta")).map(({ text }) => text).join("")
        assert.notInclude(shown, "a1b2a1b2")
        assert.notInclude(shown, "correct horse b")
        assert.deepStrictEqual(yield* kit.wrong, [])
      }
    })
  )

  it.scoped("reach the tool all the same: what is masked is what is kept and shown", () =>
    Effect.gen(function* () {
      const token = `sk-${"a1b2".repeat(8)}`
      const given: Array<string> = []
      const kit = yield* Kit.start({
        model: [{ tools: [{ name: "work", params: { name: token } }] }, { text: "done" }],
        worker: (name) => Effect.sync(() => given.push(name))
      })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(given, [token])
    })
  )
})

describe("back-pressure", () => {
  it.scoped("a reader that is slow holds up the model, and nothing is lost", () =>
    Effect.gen(function* () {
      let said = 0
      const stream = Stream.concat(
        Stream.fromIterable(Array.from({ length: 50 }, (_, index) => Kit.text(`${index} `))).pipe(
          Stream.rechunk(1),
          Stream.tap(() =>
            Effect.sync(() => {
              said++
            })
          )
        ),
        Stream.make(Kit.finish())
      )
      const kit = yield* Kit.start({
        model: Kit.replies(stream).model,
        agent: { events: { capacity: 10, whenFull: "wait" } }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      assert.isBelow(said, 15)
      const read: Array<string> = []
      const readOn = Effect.map(kit.agent.events.takeAll, (batch) => {
        for (const event of Option.getOrElse(batch, () => [])) if (event._tag === "TextDelta") read.push(event.text)
        return Option.isSome(batch)
      })
      const reader = yield* Effect.fork(Effect.repeat(readOn, { while: (more) => more }))
      yield* Fiber.join(running)
      yield* kit.agent.shutdown
      yield* Fiber.join(reader)
      assert.strictEqual(read.join("").trim(), Array.from({ length: 50 }, (_, index) => index).join(" "))
    })
  )
})

describe("arguments that nothing can follow or write", () => {
  const nested = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`)
  const loop: Array<unknown> = []
  loop.push(loop)
  const table: ReadonlyArray<readonly [string, unknown]> = [
    ["of 65 levels", { name: "x", more: nested(64) }],
    ["of 100,000 levels", { name: nested(100_000) }],
    ["in a loop", { name: loop }],
    ["with a big integer", { name: 1n }],
    ["of a hundred million values", { name: new Array(100_000_000) }],
    ["of a long text in the wrong place", "x".repeat(2_000_000)]
  ]
  for (const [name, params] of table) {
    it.scoped(`become an error that the model can correct: ${name}`, () =>
      Effect.gen(function* () {
        const reply = Stream.make(Kit.call("work", params, "a"), Kit.finish("tool-calls"))
        const kit = yield* Kit.start({ model: Kit.replies(reply, { text: "sorry" }).model })
        assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
        assert.deepStrictEqual(
          (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome),
          ["invalid"]
        )
        const [result] = kit.results()
        assert.match(String(result), /^Invalid arguments for work/)
        assert.isBelow(String(result).length, 1_000)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )
  }

  it.scoped("are taken as they are up to 64 levels", () =>
    Effect.gen(function* () {
      const params = { name: "x", more: nested(63) }
      const reply = Stream.make(Kit.call("work", params, "a"), Kit.finish("tool-calls"))
      const kit = yield* Kit.start({ model: Kit.replies(reply, { text: "done" }).model })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.deepStrictEqual(kit.results(), ["x"])
    })
  )
})
