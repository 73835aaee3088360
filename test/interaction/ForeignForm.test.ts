import { assert, describe, it } from "@effect/vitest"
import * as ForeignForm from "../../src/interaction/ForeignForm.js"

const form = (properties: object) => ForeignForm.read({ type: "object", properties })

describe("a form from outside", () => {
  it("is read with clean titles", () => {
    const [field] =
      form({ a: { type: "string", title: "\u001b[2JWhich\u202e?", description: "one\u0007", enum: ["x", "y"] } }) ?? []
    assert.deepInclude(field, { name: "a", title: "[2JWhich?", description: "one", choices: ["x", "y"] })
  })

  it("is nothing to ask if it wants a secret, or holds what a person cannot read", () => {
    const wrong: ReadonlyArray<object> = [
      { password: { type: "string" } },
      { api_key: { type: "string" } },
      { a: { type: "string", format: "password" } },
      { a: { type: "string", title: "Your token" } },
      { "a\u001b[2J": { type: "string" } },
      { a: { type: "string", enum: ["yes", "no\u202e"] } },
      { a: { type: "object" } }
    ]
    for (const properties of wrong) assert.isUndefined(form(properties), JSON.stringify(properties))
    for (const schema of [undefined, null, 1, "x", [], {}]) assert.isUndefined(ForeignForm.read(schema))
  })
})
