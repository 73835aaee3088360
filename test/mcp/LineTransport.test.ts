import { assert, describe, it } from "@effect/vitest"
import { LineTransport } from "../../src/mcp/LineTransport.js"

describe("a connection over lines", () => {
  it("gives the exit of a program as the reason if its pipe breaks first", async () => {
    const transport = new LineTransport(
      () => 0,
      () => Promise.reject(new Error("EPIPE")),
      () => undefined
    )
    const sent = transport.send({}).then(
      () => "sent",
      () => transport.reason
    )
    setImmediate(() => transport.end("ended with exit code 1"))
    assert.strictEqual(await sent, "ended with exit code 1")
    await transport.close()
    assert.strictEqual(transport.reason, "ended with exit code 1")
  })

  it("turns an answer that is none of the protocol into a refusal, so that its call ends", () => {
    const taken: Array<unknown> = []
    const transport = new LineTransport(
      () => 0,
      () => Promise.resolve(),
      () => undefined
    )
    Object.assign(transport, { onmessage: (message: never) => taken.push(message) })
    const push = (...answers: ReadonlyArray<object>) => {
      for (const answer of answers) transport.push(Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...answer })}\n`))
      return taken.splice(0)
    }
    const right = [
      { id: 1, result: {} },
      { id: "a", error: { code: -32_000, message: "no" } },
      { method: "ping", id: 2 }
    ]
    assert.deepStrictEqual(
      push(...right),
      right.map((answer) => ({ jsonrpc: "2.0", ...answer }))
    )
    const wrong = [
      { id: 1 },
      { id: 1, result: null },
      { id: 1, result: 5 },
      { id: 1, result: [] },
      { id: 1, error: null },
      { id: 1, error: { code: "x", message: "no" } },
      { id: 1, error: { code: 1 } },
      { id: 1, result: {}, error: { code: 1, message: "no" } }
    ]
    const error = { code: -32_603, message: "The server's answer is none of the protocol." }
    assert.deepStrictEqual(
      push(...wrong),
      wrong.map(() => ({ jsonrpc: "2.0", id: 1, error }))
    )
  })
})
