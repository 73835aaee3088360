import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Message from "../../src/inbox/Message.js"

describe("words", () => {
  it("are blank when nobody could see them", () => {
    const table: ReadonlyArray<readonly [string, boolean]> = [
      ["", true],
      [" \n\t", true],
      ["\u200b\u0007", true],
      ["a", false],
      [" \u200b.", false]
    ]
    for (const [text, blank] of table) {
      assert.strictEqual(Message.isBlank(text), blank, JSON.stringify(text))
      assert.strictEqual(Schema.is(Message.Words)(text), !blank, JSON.stringify(text))
    }
  })

  it("that began a turn are without what was read along with them", () => {
    const words = (["along", "steer", "queue", "along"] as const).map((delivery) => ({ delivery, text: delivery }))
    assert.strictEqual(Message.wordsOf(words), "steer\n\nqueue")
  })

  it("have the files of all their messages, and no list of files when none has parts", () => {
    const file = (name: string) => ({ name, mediaType: "image/png", size: 1, sha256: name })
    const parts = (...names: ReadonlyArray<string>): ReadonlyArray<Message.Part> => [
      { type: "text", text: "Look" },
      ...names.map((name) => ({ type: "file" as const, file: file(name) }))
    ]
    assert.deepStrictEqual(Message.attachmentsOf([{ parts: parts("a", "b") }, {}, { parts: parts("c") }]), {
      attachments: ["a", "b", "c"].map(file)
    })
    assert.deepStrictEqual(Message.attachmentsOf([{}, { parts: undefined }]), {})
  })
})
