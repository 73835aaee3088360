/** Schemas that are made at their first use are schemas in every other way. */
import { assert, describe, it } from "@effect/vitest"
import { Either, JSONSchema, Schema } from "effect"
import * as Lazy from "../../src/core/Lazy.js"

const person = () => {
  let made = 0
  const Person = Lazy.schema(() => {
    made++
    return Schema.TaggedStruct("Person", { name: Schema.String, age: Schema.optional(Schema.Number) })
  })
  return { Person, made: () => made }
}

describe("a schema made at its first use", () => {
  it("is made once, when a part of it is first read", () => {
    const { Person, made } = person()
    assert.strictEqual(made(), 0)
    assert.deepStrictEqual(Person.make({ name: "Ada" }), { _tag: "Person", name: "Ada" })
    assert.deepStrictEqual(Object.keys(Person.fields), ["_tag", "name", "age"])
    assert.strictEqual(made(), 1)
  })

  it("decodes, encodes, is a member and a field, and is described like the schema itself", () => {
    const { Person } = person()
    const Eager = Schema.TaggedStruct("Person", { name: Schema.String, age: Schema.optional(Schema.Number) })
    const ada = { _tag: "Person", name: "Ada" } as const
    assert.isTrue(Schema.isSchema(Person))
    assert.deepStrictEqual(Schema.decodeUnknownSync(Person)(ada), ada)
    assert.deepStrictEqual(Schema.encodeSync(Schema.Array(Person))([ada]), [ada])
    assert.isTrue(Either.isLeft(Schema.decodeUnknownEither(Person)({ _tag: "Person" })))
    assert.isTrue(Schema.is(Schema.Union(Person, Schema.Struct({ who: Person })))({ who: ada }))
    assert.strictEqual(String(Person), String(Eager))
    assert.deepStrictEqual(JSONSchema.make(Person), JSONSchema.make(Eager))
    assert.deepStrictEqual(
      JSONSchema.make(Person.annotations({ title: "T" })),
      JSONSchema.make(Eager.annotations({ title: "T" }))
    )
    assert.deepStrictEqual(JSONSchema.make(Person.pipe(Schema.pick("name"))), JSONSchema.make(Eager.pick("name")))
  })
})
