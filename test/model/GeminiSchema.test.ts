/** What Gemini is told of a schema, by what its reference says that it takes. */
import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as JSONSchema from "effect/JSONSchema"
import * as Schema from "effect/Schema"
import * as GeminiSchema from "../../src/model/GeminiSchema.js"

interface Tree {
  readonly name: string
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Schema<Tree> = Schema.Struct({
  name: Schema.String,
  children: Schema.Array(Schema.suspend((): Schema.Schema<Tree> => Tree))
}).annotations({ identifier: "Tree" })

const told = (fields: Schema.Struct.Fields) => GeminiSchema.asJsonSchema(JSONSchema.make(Schema.Struct(fields)))

const keywords = new Set(
  "$defs $ref type format title description enum items prefixItems minItems maxItems minimum maximum anyOf properties additionalProperties required".split(
    " "
  )
)

/** What of a schema the reference rules out. */
const wrongIn = (schema: unknown, place = "$"): ReadonlyArray<string> => {
  if (typeof schema !== "object" || schema === null) return [`${place}: no schema`]
  const members = Object.entries(schema)
  const nested = members.flatMap(([key, value]) => {
    if (key === "$defs" || key === "properties")
      return Object.entries(value as object).flatMap(([name, one]) => wrongIn(one, `${place}.${name}`))
    if (key === "anyOf" || key === "prefixItems")
      return (value as ReadonlyArray<unknown>).flatMap((one, i) => wrongIn(one, `${place}.${key}[${i}]`))
    return key === "items" || (key === "additionalProperties" && value !== true)
      ? wrongIn(value, `${place}.${key}`)
      : []
  })
  return [
    ...members.filter(([key]) => !keywords.has(key)).map(([key]) => `${place}: ${key}`),
    ...("$ref" in schema && members.length > 1 ? [`${place}: something beside a reference`] : []),
    ...nested
  ]
}

describe("a schema for Gemini", () => {
  it("is in the form that all models take where that can say it", () => {
    const fields = {
      city: Schema.String,
      size: Schema.optional(Schema.Int),
      kind: Schema.Literal("a", "b"),
      spots: Schema.Array(Schema.Struct({ at: Schema.NullOr(Schema.Number) }))
    }
    assert.isUndefined(told(fields))
  })

  it("keeps members of any name, tuples and recursion", () => {
    assert.deepStrictEqual(
      told({
        counts: Schema.Record({ key: Schema.String, value: Schema.Number }),
        at: Schema.Tuple(Schema.Number, Schema.String)
      }),
      {
        type: "object",
        properties: {
          counts: { type: "object", additionalProperties: { type: "number" } },
          at: { type: "array", minItems: 2, maxItems: 2, prefixItems: [{ type: "number" }, { type: "string" }] }
        },
        required: ["counts", "at"]
      }
    )
    const children = { type: "array", items: { $ref: "#/$defs/Tree" } }
    const tree = { type: "object", properties: { name: { type: "string" }, children }, required: ["name"] }
    assert.deepStrictEqual(told({ tree: Tree }), {
      type: "object",
      properties: { tree },
      required: ["tree"],
      $defs: { Tree: tree }
    })
  })

  it("keeps to what the reference lists, whatever it is made of", () => {
    const any = FastCheck.letrec<{ schema: Schema.Schema.AnyNoContext }>((tie) => ({
      schema: FastCheck.oneof(
        { maxDepth: 3 },
        FastCheck.constantFrom<Schema.Schema.AnyNoContext>(
          Schema.String,
          Schema.NonEmptyString,
          Schema.Int,
          Schema.Boolean,
          Schema.Literal("a", 1, true, null),
          Schema.Literal(true),
          Schema.Date,
          Schema.Unknown,
          Tree
        ),
        tie("schema").map((one) => Schema.Array(one)),
        tie("schema").map((one) => Schema.NullOr(one)),
        tie("schema").map((value) => Schema.Record({ key: Schema.String, value })),
        FastCheck.tuple(tie("schema"), tie("schema")).map(([a, b]) => Schema.Union(a, b)),
        FastCheck.tuple(tie("schema"), tie("schema")).map(([a, b]) => Schema.Tuple([a], b)),
        FastCheck.tuple(tie("schema"), tie("schema")).map(([a, b]) => Schema.Struct({ a, b: Schema.optional(b) }))
      )
    })).schema
    FastCheck.assert(
      FastCheck.property(any, (one) => {
        const found = told({ one })
        if (found !== undefined) assert.deepStrictEqual(wrongIn(found), [])
      })
    )
  })
})
