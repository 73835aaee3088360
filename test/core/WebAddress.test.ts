import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as WebAddress from "../../src/core/WebAddress.js"

const reasonOf = (text: string): string =>
  Either.match(WebAddress.parse(text), { onLeft: ({ reason }) => reason, onRight: () => "taken" })

describe("WebAddress", () => {
  it.each([
    "http://localhost:4318/v1/traces",
    "https://example.org",
    "HTTPS://Example.org/x?y=1#z",
    "http://[::1]:8080/",
    "  https://example.org/hook \n"
  ])("takes %j", (text) => {
    assert.strictEqual(reasonOf(text), "taken")
  })

  it.each([
    ["", "unreadable"],
    ["example.org", "unreadable"],
    ["//example.org", "unreadable"],
    ["http:", "unreadable"],
    ["http:example.org", "unreadable"],
    ["http:/example.org", "unreadable"],
    ["http:\\\\example.org", "unreadable"],
    ["https://exa\nmple.org", "unreadable"],
    ["https://example.org/a b", "unreadable"],
    ["https://example.org/\u0000", "unreadable"],
    ["https://", "unreadable"],
    ["https://example.org:99999", "unreadable"],
    ["file:///etc/passwd", "scheme"],
    ["ftp://example.org", "scheme"],
    ["javascript:alert(1)", "scheme"],
    ["data:text/plain,x", "scheme"],
    ["ws://example.org", "scheme"],
    ["https://user@example.org", "credentials"],
    ["https://user:secret@example.org", "credentials"],
    ["https://:secret@example.org", "credentials"],
    ["https://%75ser@example.org", "credentials"],
    ["https://example.org@other.org", "credentials"]
  ])("refuses %j as %s", (text, reason) => {
    assert.strictEqual(reasonOf(text), reason)
  })

  it("never throws, takes nothing with credentials, and says nothing of what it refuses", () => {
    const piece = FastCheck.constantFrom(
      "http",
      "https",
      "ftp",
      ":",
      "//",
      "/",
      "@",
      "?",
      "#",
      "\\",
      " ",
      "host",
      "se3cret"
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join("")
        const parsed = WebAddress.parse(text)
        if (Either.isLeft(parsed)) return assert.notInclude(parsed.left.message, "se3cret")
        assert.match(parsed.right.protocol, /^https?:$/)
        assert.strictEqual(`${parsed.right.username}${parsed.right.password}`, "")
      })
    )
  })
})
