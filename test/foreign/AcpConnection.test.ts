import * as acp from "@agentclientprotocol/sdk"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as AcpConnection from "../../src/foreign/AcpConnection.js"
import * as AcpSchema from "../kit/AcpSchema.js"

const refuse = () => Effect.fail(AcpConnection.refused("Not here."))

const nothing: AcpConnection.Handlers = {
  initialize: () => Effect.succeed({ protocolVersion: 1 }),
  authenticate: refuse,
  new: refuse,
  load: refuse,
  resume: refuse,
  list: refuse,
  close: refuse,
  delete: refuse,
  setConfigOption: refuse,
  prompt: refuse,
  cancel: () => Effect.void
}

/** An agent with these handlers, and the other ends of its pipes. */
const served = (handlers: Partial<AcpConnection.Handlers>, seen: (client: AcpConnection.Client) => void = () => {}) =>
  Effect.gen(function* () {
    const toAgent = new TransformStream<Uint8Array, Uint8Array>()
    const fromAgent = new TransformStream<Uint8Array, Uint8Array>()
    const scope = yield* Scope.make()
    const fiber = yield* AcpConnection.serve({ input: toAgent.readable, output: fromAgent.writable }, (client) => {
      seen(client)
      return { ...nothing, ...handlers }
    }).pipe(Scope.extend(scope), Effect.fork)
    return { input: toAgent.writable, output: fromAgent.readable, fiber, scope }
  })

/** The SDK's client at the agent, past its greeting. */
const client = (
  { input, output }: { readonly input: WritableStream<Uint8Array>; readonly output: ReadableStream<Uint8Array> },
  app: acp.ClientApp = acp.client()
) =>
  Effect.promise(async () => {
    const connection = app.connect(acp.ndJsonStream(input, output))
    await connection.agent.request("initialize", { protocolVersion: 1 })
    return connection
  })

const codeOf = (asked: Promise<unknown>) =>
  Effect.promise(() =>
    asked.then(
      () => "answered",
      (error: unknown) => (error instanceof acp.RequestError ? `${error.code} ${error.message}` : String(error))
    )
  )

describe("a connection to an editor", () => {
  it.scoped("answers with the result, or with the code and the sentence of a failure", () =>
    Effect.gen(function* () {
      const ends = yield* served({
        list: () => Effect.succeed({ sessions: [] }),
        new: () => Effect.fail(AcpConnection.invalid("The directory is missing.")),
        close: ({ sessionId }) => Effect.fail(AcpConnection.unknownSession(sessionId)),
        prompt: () => Effect.die(new Error("broken"))
      })
      const { agent } = yield* client(ends)
      const { session } = acp.methods.agent
      assert.deepStrictEqual(yield* Effect.promise(() => agent.request(session.list, {})), { sessions: [] })
      assert.strictEqual(
        yield* codeOf(agent.request(session.new, { cwd: "/", mcpServers: [] })),
        "-32602 The directory is missing."
      )
      assert.strictEqual(
        yield* codeOf(agent.request(session.prompt, { sessionId: "a", prompt: [] })),
        "-32603 Assent has a defect: broken"
      )
      assert.match(yield* codeOf(agent.request(session.new, { cwd: 5 })), /^-32602/)
      assert.match(yield* codeOf(agent.request("_x/y", {})), /^-32601/)
    })
  )

  it.scoped("answers garbage with the codes of the protocol, and lives on", () =>
    Effect.gen(function* () {
      const { input, output } = yield* served({})
      const writer = input.getWriter()
      const reader = output.getReader()
      const line = (text: string) =>
        Effect.promise(async () => {
          await writer.write(new TextEncoder().encode(`${text}\n`))
          const { value } = await reader.read()
          const answer: { readonly error?: { readonly code: number } } = JSON.parse(new TextDecoder().decode(value))
          return answer.error?.code ?? "answered"
        })
      assert.strictEqual(yield* line("garbage"), -32700)
      assert.strictEqual(yield* line("[]"), -32600)
      assert.strictEqual(yield* line('{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}'), -32600)
      const hello = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":99}}'
      assert.strictEqual(yield* line(hello), "answered")
      assert.strictEqual(yield* line('{"jsonrpc":"2.0","id":3,"method":"nope","params":{}}'), -32601)
    })
  )

  it.scoped("handles messages in the order in which they arrive", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const done = yield* Deferred.make<void>()
      const ends = yield* served({
        list: () => Effect.sync(() => (order.push("list"), { sessions: [] })),
        cancel: ({ sessionId }) => Effect.sync(() => void order.push(`cancel ${sessionId}`)),
        prompt: ({ sessionId }) =>
          Effect.zipRight(
            Effect.sync(() => void order.push(`prompt ${sessionId}`)),
            sessionId === "9"
              ? Effect.as(Deferred.succeed(done, undefined), { stopReason: "end_turn" as const })
              : Effect.never
          )
      })
      const { agent } = yield* client(ends)
      const { session } = acp.methods.agent
      const expected: Array<string> = []
      for (let n = 0; n < 10; n++) {
        const sessionId = String(n)
        void agent.notify(session.cancel, { sessionId })
        void agent.request(session.prompt, { sessionId, prompt: [] }).catch(() => {})
        void agent.request(session.list, {}).catch(() => {})
        expected.push(`cancel ${n}`, `prompt ${n}`, "list")
      }
      yield* Deferred.await(done)
      yield* Effect.promise(() => agent.request(session.list, {}))
      assert.deepStrictEqual(order, [...expected, "list"])
    })
  )

  it.scoped("withdraws a request with the fiber that waits for it", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<AbortSignal>()
      let editor: AcpConnection.Client | undefined
      const ends = yield* served({}, (client) => {
        editor = client
      })
      const app = acp.client().onRequest(acp.methods.client.session.requestPermission, ({ signal }) => {
        Deferred.unsafeDone(asked, Effect.succeed(signal))
        return new Promise<never>(() => {})
      })
      yield* client(ends, app)
      const params = { sessionId: "a", toolCall: { toolCallId: "1" }, options: [] }
      const waits = yield* Effect.fork(editor?.request("session/request_permission", params) ?? Effect.void)
      const signal = yield* Deferred.await(asked)
      yield* Fiber.interrupt(waits)
      yield* Effect.promise(() => new Promise<void>((aborted) => signal.addEventListener("abort", () => aborted())))
    })
  )

  it.scoped("ends when the editor leaves, and takes that for no answer", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      let editor: AcpConnection.Client | undefined
      const ends = yield* served(
        {
          prompt: () =>
            Effect.zipRight(
              Deferred.succeed(begun, undefined),
              Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
            )
        },
        (client) => {
          editor = client
        }
      )
      const connection = yield* client(ends)
      void connection.agent.request(acp.methods.agent.session.prompt, { sessionId: "a", prompt: [] }).catch(() => {})
      yield* Deferred.await(begun)
      const params = { sessionId: "a", toolCall: { toolCallId: "1" }, options: [] }
      const asks = yield* Effect.fork(editor?.request("session/request_permission", params) ?? Effect.void)
      connection.close()
      yield* Effect.promise(() => ends.input.close()).pipe(Effect.ignore)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(ends.fiber)))
      yield* Deferred.await(interrupted)
      yield* Effect.yieldNow()
      assert.isNull(asks.unsafePoll())
      yield* Fiber.interrupt(asks)
    })
  )

  it.scoped("refuses a flood of requests beyond a thousand, and answers it", () =>
    Effect.gen(function* () {
      const ends = yield* served({ prompt: () => Effect.never })
      const { agent } = yield* client(ends)
      const { session } = acp.methods.agent
      for (let n = 0; n < 1_000; n++) {
        void agent.request(session.prompt, { sessionId: "a", prompt: [] }).catch(() => {})
      }
      assert.strictEqual(
        yield* codeOf(agent.request(session.prompt, { sessionId: "a", prompt: [] })),
        "-32603 More than 1000 requests are under way. Wait for an answer."
      )
    })
  )
})

describe("the judge of the protocol", () => {
  it("finds what is wrong", () => {
    assert.isDefined(AcpSchema.problem("SessionNotification", { sessionId: "a", update: { sessionUpdate: "plan" } }))
    assert.isDefined(AcpSchema.problem("CreateElicitationRequest", { sessionId: "a", mode: "form", message: "?" }))
    assert.isDefined(AcpSchema.problem("RequestPermissionRequest", { sessionId: "a", options: [] }))
  })
})
