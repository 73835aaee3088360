import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import type { ContentBlock } from "../../src/foreign/AcpConnection.js"
import * as AcpPrompt from "../../src/acp/AcpPrompt.js"
import * as Input from "../../src/inbox/Input.js"
import * as Runs from "../kit/Runs.js"

const wordsOf = (...blocks: ReadonlyArray<ContentBlock>) =>
  Either.match(AcpPrompt.toInput(blocks), { onLeft: ({ message }) => `refused: ${message}`, onRight: Input.wordsOf })

describe("the prompt of an editor", () => {
  it("is its words, with links as paths that the agent reads itself", () => {
    assert.strictEqual(
      wordsOf(
        { type: "text", text: "look at" },
        { type: "resource_link", name: "a b.ts", uri: "file:///project/src/a%20b.ts#L1-5" },
        { type: "resource_link", name: "docs", uri: "https://example.com/x" }
      ),
      "look at\n\n[a b.ts: /project/src/a b.ts#L1-5]\n\n[docs: https://example.com/x]"
    )
  })

  it("quotes what the editor embeds, in a fence that the text cannot close", () => {
    assert.strictEqual(
      wordsOf({ type: "resource", resource: { uri: "file:///project/a.md", text: "```\nhi\n```" } }),
      "[/project/a.md]\n````\n```\nhi\n```\n````"
    )
  })

  it("takes images and files as bytes", () => {
    const png = Buffer.from("png").toString("base64")
    const input = Either.getOrThrow(
      AcpPrompt.toInput([
        { type: "image", data: png, mimeType: "image/png" },
        { type: "resource", resource: { uri: "file:///project/b.bin", blob: png, mimeType: "application/pdf" } }
      ])
    )
    assert.deepStrictEqual(input, [
      Input.image(new Uint8Array(Buffer.from("png")), { mediaType: "image/png" }),
      Input.fromBytes(new Uint8Array(Buffer.from("png")), { name: "b.bin", mediaType: "application/pdf" })
    ])
  })

  it("is refused with a sentence if it is empty, damaged or sound", () => {
    assert.strictEqual(wordsOf(), "refused: The prompt is empty. Send some words.")
    assert.strictEqual(wordsOf({ type: "text", text: "" }), "refused: The prompt is empty. Send some words.")
    assert.strictEqual(
      wordsOf({ type: "image", data: "§", mimeType: "image/png" }),
      "refused: The data of the image is not base64."
    )
    assert.strictEqual(
      wordsOf({ type: "audio", data: "", mimeType: "audio/wav" }),
      "refused: Assent takes no audio. Send text, links, files or images."
    )
  })

  it("never throws, and keeps an address on its line", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), FastCheck.string(), (uri, name) => {
        const words = wordsOf(
          { type: "resource_link", uri, name },
          { type: "resource_link", uri: `file:///${uri}`, name }
        )
        assert.lengthOf(words.split("\n"), 3)
      }),
      { numRuns: Runs.of(2_000) }
    )
  })
})
