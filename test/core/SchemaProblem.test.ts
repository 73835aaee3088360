import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as SchemaProblem from "../../src/core/SchemaProblem.js"

const decode = Schema.decodeUnknownEither(
  Schema.Struct({
    name: Schema.optional(Schema.String),
    model: Schema.optional(Schema.NonEmptyString),
    mode: Schema.optional(Schema.Union(Schema.Literal("auto", "off"), Schema.Struct({ network: Schema.Boolean }))),
    rules: Schema.optional(Schema.Array(Schema.Struct({ "a b": Schema.String })))
  }),
  { errors: "all", onExcessProperty: "error" }
)

const problems = (value: unknown) =>
  Either.match(decode(value), {
    onLeft: (error) => SchemaProblem.of(error).map(({ message, path }) => `${SchemaProblem.place(path)}: ${message}`),
    onRight: () => []
  })

describe("SchemaProblem", () => {
  it("is one sentence for each place, and never a type of TypeScript", () => {
    assert.deepStrictEqual(problems([]), ["$: Expected an object, actual []"])
    assert.deepStrictEqual(problems("x"), ['$: Expected an object, actual "x"'])
    assert.deepStrictEqual(problems({ rules: "x" }), ['$.rules: Expected a list, actual "x"'])
    assert.deepStrictEqual(problems({ mode: "maybe", name: 5 }), [
      "$.name: Expected string, actual 5",
      '$.mode: Expected "auto", "off" or an object, actual "maybe"'
    ])
    assert.deepStrictEqual(problems({ model: 7, rules: [{ "a b": 1 }, {}] }), [
      "$.model: Expected string, actual 7",
      '$.rules[0]["a b"]: Expected string, actual 1',
      '$.rules[1]["a b"]: is missing'
    ])
  })

  it("names the field that was probably meant", () => {
    assert.deepStrictEqual(problems({ modle: "x" }), ["$.modle: there is no such field here. Did you mean model?"])
    assert.deepStrictEqual(problems({ colour: "x" }), ["$.colour: there is no such field here"])
    assert.deepStrictEqual(problems({ rules: [{ "a b": "", "a c": 1 }] }), [
      '$.rules[0]["a c"]: there is no such field here. Did you mean a b?'
    ])
  })

  it("shortens names that nobody wrote by hand", () => {
    assert.strictEqual(SchemaProblem.place(["a", 3, "x y z"], 4), '$.a[3]["x y…]')
  })
})
