import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { readUIMessageStream, type UIMessageChunk } from "ai"
import * as FastCheck from "fast-check"
import { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import type { AgentEvent, Body } from "../../src/event/AgentEvent.js"
import * as AgUi from "../../src/http/AgUi.js"
import * as AiSdkStream from "../../src/http/AiSdkStream.js"
import * as RunProjection from "../../src/http/RunProjection.js"
import * as AgUiRules from "../kit/AgUiRules.js"
import * as Runs from "../kit/Runs.js"

const agents = {
  root: "main",
  child: "main/reviewer",
  other: "main/writer",
  grandchild: "main/reviewer/reader"
} as const
type Name = keyof typeof agents
const names = Object.keys(agents) as ReadonlyArray<Name>
const parents: { readonly [name in Name]?: Name } = { child: "root", other: "root", grandchild: "child" }

const event = (name: Name, turn: number, body: Body): AgentEvent => ({
  at: 0,
  sessionId: SessionId.make(name),
  agent: agents[name],
  correlationId: CorrelationId.make(`${name}-turn${turn}`),
  ...body
})

const created = (name: Name): AgentEvent =>
  event(name, 0, {
    _tag: "AgentCreated",
    depth: 0,
    model: "script",
    ...(parents[name] === undefined ? {} : { parentSessionId: SessionId.make(parents[name]) })
  })

const word = FastCheck.constantFrom("a", "bc", "deaf", "😀", "")

const callId = (name: Name, n: number) => ToolCallId.make(`${name}-call${n}`)

/** Any body, sensible or not. */
const anyBody = (name: Name): FastCheck.Arbitrary<Body> =>
  FastCheck.oneof(
    FastCheck.integer({ min: 1, max: 3 }).map((step): Body => ({ _tag: "ModelCallStarted", model: "script", step })),
    FastCheck.integer({ min: 1, max: 3 }).map((step): Body => ({
      _tag: "ModelCallEnded",
      model: "script",
      step,
      finishReason: "stop",
      usage: {}
    })),
    FastCheck.constantFrom("text" as const, "thinking" as const).chain((block) =>
      FastCheck.oneof(
        FastCheck.constant<Body>({ _tag: "BlockStarted", block }),
        FastCheck.constant<Body>({ _tag: "BlockEnded", block }),
        word.map((text): Body => ({ _tag: block === "text" ? "TextDelta" : "ThinkingDelta", text }))
      )
    ),
    FastCheck.integer({ min: 1, max: 3 }).chain((n) =>
      FastCheck.constantFrom<Body>(
        { _tag: "ToolArgumentsStarted", toolCallId: callId(name, n), tool: "t" },
        { _tag: "ToolArgumentsDelta", toolCallId: callId(name, n), text: "{}" },
        { _tag: "ToolCallProposed", toolCallId: callId(name, n), tool: "t", summary: "", arguments: { n } },
        { _tag: "ToolCallStarted", toolCallId: callId(name, n), tool: "t", summary: "" },
        { _tag: "ToolCallEnded", toolCallId: callId(name, n), tool: "t", outcome: "failed", summary: "", result: n }
      )
    ),
    FastCheck.constantFrom<Body>(
      { _tag: "ModelRetried", model: "script", attempt: 1, reason: "network", delay: 0 },
      { _tag: "TurnStarted", input: "go" },
      { _tag: "TurnEnded", reason: "completed", steps: 1 },
      { _tag: "AgentCompleted", success: true, turnsUsed: 1 },
      { _tag: "AgentCompleted", success: false, turnsUsed: 1, error: "no" },
      { _tag: "AgentStatusChanged", status: "thinking" }
    )
  )

const anyEvent = FastCheck.constantFrom(...names).chain((name) =>
  FastCheck.oneof(
    { arbitrary: anyBody(name).map((body) => event(name, 1, body)), weight: 12 },
    { arbitrary: FastCheck.constant(created(name)), weight: 1 }
  )
)

const input = { threadId: "t", runId: "r", protocolVersion: "1.0", messages: [] }

const encoded = (pieces: ReadonlyArray<RunProjection.Piece>) =>
  Array.from(Effect.runSync(Stream.runCollect(AgUi.events(Stream.fromIterable(pieces), input))))

const finished: RunProjection.End = { _tag: "Finished" }

/** A turn of one agent, as it is published. */
const turnOf = (name: Name, turn: number): FastCheck.Arbitrary<ReadonlyArray<AgentEvent>> =>
  FastCheck.array(
    FastCheck.record({
      blocks: FastCheck.array(
        FastCheck.record({
          block: FastCheck.constantFrom("text" as const, "thinking" as const),
          words: FastCheck.array(word, { minLength: 1, maxLength: 4 })
        }),
        { maxLength: 3 }
      ),
      calls: FastCheck.array(FastCheck.boolean(), { maxLength: 2 })
    }),
    { minLength: 1, maxLength: 3 }
  ).map((steps) => [
    ...(name === "root" ? [] : [created(name)]),
    event(name, turn, { _tag: "TurnStarted", input: name === "root" ? "go" : "task" }),
    ...steps.flatMap(({ blocks, calls }, index) => {
      const step = index + 1
      const ids = calls.map((isStreamed, n) => ({ isStreamed, id: callId(name, 100 * turn + 10 * step + n) }))
      const bodies: ReadonlyArray<Body> = [
        { _tag: "ModelCallStarted", model: "script", step },
        ...blocks.flatMap(({ block, words }): ReadonlyArray<Body> => [
          { _tag: "BlockStarted", block },
          ...words.map((text): Body => ({ _tag: block === "text" ? "TextDelta" : "ThinkingDelta", text })),
          { _tag: "BlockEnded", block }
        ]),
        ...ids.flatMap(({ id, isStreamed }): ReadonlyArray<Body> =>
          isStreamed
            ? [
                { _tag: "ToolArgumentsStarted", toolCallId: id, tool: "t" },
                { _tag: "ToolArgumentsDelta", toolCallId: id, text: '{"a":' },
                { _tag: "ToolArgumentsDelta", toolCallId: id, text: "1}" }
              ]
            : []
        ),
        { _tag: "ModelCallEnded", model: "script", step, finishReason: "stop", usage: {} },
        ...ids.map(({ id }): Body => ({
          _tag: "ToolCallProposed",
          toolCallId: id,
          tool: "t",
          summary: "",
          arguments: { a: 1 }
        })),
        ...ids.map(({ id }): Body => ({
          _tag: "ToolCallEnded",
          toolCallId: id,
          tool: "t",
          outcome: "succeeded",
          summary: "",
          result: "done"
        }))
      ]
      return bodies.map((body) => event(name, turn, body))
    }),
    event(name, turn, { _tag: "TurnEnded", reason: "completed", steps: steps.length }),
    ...(name === "root" ? [] : [event(name, turn, { _tag: "AgentCompleted", success: true, turnsUsed: 1 })])
  ])

/** Turns of all agents, in a random order of their events. */
const session = FastCheck.tuple(...names.map((name) => turnOf(name, 1))).chain((turns) =>
  FastCheck.infiniteStream(FastCheck.nat()).map((picks) => {
    const left = turns.map((turn) => [...turn])
    const all: Array<AgentEvent> = []
    for (;;) {
      const some = left.filter((turn) => turn.length > 0)
      const next = some[(picks.next().value ?? 0) % Math.max(1, some.length)]?.shift()
      if (next === undefined) return all
      all.push(next)
    }
  })
)

describe("a run", () => {
  it("ends all that it starts, once, whatever happens in whatever order, and wherever it begins", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(anyEvent, { maxLength: 80 }),
        FastCheck.nat(40),
        FastCheck.nat(40),
        (events, unseen, words) => {
          const projection = new RunProjection.RunProjection(SessionId.make("root"))
          const pieces = events.flatMap((one, index) =>
            projection.take(one, index < unseen ? "nothing" : index < unseen + words ? "words" : "all")
          )
          const whole = encoded([...pieces, ...projection.end(finished)])
          assert.deepStrictEqual(AgUiRules.problems(whole), [])
        }
      ),
      { numRuns: Runs.of(1_000) }
    )
  })

  it("gives a client that was cut off anywhere what it lacks, and nothing twice", () => {
    FastCheck.assert(
      FastCheck.property(session, FastCheck.array(FastCheck.nat(60), { maxLength: 4 }), (events, cuts) => {
        const run = (messages: ReadonlyArray<AgUiRules.Message>) => {
          const start = Either.getOrThrow(AgUi.startOf({ ...input, messages: [...messages] }))
          const projection = new RunProjection.RunProjection(SessionId.make("root"), start.known, () => "client")
          const pieces = events.flatMap((one) => projection.take(one, "all"))
          const whole = encoded([...pieces, ...projection.end(finished)])
          assert.deepStrictEqual(AgUiRules.problems(whole), [])
          return whole
        }
        const user: ReadonlyArray<AgUiRules.Message> = [{ id: "u", role: "user", content: "go" }]
        const whole = AgUiRules.reduce(user, run(user))
        let messages = user
        for (const cut of [...cuts, Infinity]) messages = AgUiRules.reduce(messages, run(messages).slice(0, cut))
        const byId = (all: ReadonlyArray<AgUiRules.Message>) =>
          Object.fromEntries(all.map((message) => [message.id, message]))
        assert.deepStrictEqual(byId(messages), byId(whole))
        assert.strictEqual(messages.length, whole.length)
      }),
      { numRuns: Runs.of(300) }
    )
  })

  it("is read by the AI SDK's own reader, whatever happens in whatever order", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(anyEvent, { maxLength: 60 }), async (events) => {
        const projection = new RunProjection.RunProjection(SessionId.make("root"))
        const pieces = [...events.flatMap((one) => projection.take(one, "all")), ...projection.end(finished)]
        const chunks = AiSdkStream.chunks(Stream.fromIterable(pieces), {
          id: "c",
          messages: [{ id: "u", role: "user", parts: [] }]
        })
        const problems: Array<unknown> = []
        const messages = readUIMessageStream({
          // The reader checks what it reads.
          stream: Stream.toReadableStream(chunks) as ReadableStream<UIMessageChunk>,
          onError: (error) => problems.push(error)
        })
        for await (const message of messages) assert.strictEqual(message.id, "assent-u")
        assert.deepStrictEqual(problems, [])
      }),
      { numRuns: Runs.of(300) }
    ))
})
