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
})
