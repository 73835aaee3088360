import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Field from "../../src/interaction/Field.js"
import * as Form from "../../src/interaction/Form.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as TypedAnswer from "../../src/interaction/TypedAnswer.js"
import * as FieldSample from "../kit/FieldSample.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const decode = Schema.decodeUnknownEither(Field.Field)
const field = (input: object): Field.Field => Either.getOrThrow(decode({ name: "a", ...input }))
const said = (of: Field.Field, line: string): unknown => Either.merge(Field.parse(of, line))

describe("a field", () => {
  const flaws: ReadonlyArray<readonly [input: object, reason: string]> = [
    [{ type: "choice" }, "a choice field needs choices"],
    [{ type: "choices", choices: [] }, "a choices field needs choices"],
    [{ type: "string", choices: ["x"] }, "a string field has no choices"],
    [{ type: "choice", choices: ["x", "x"] }, "a choice is there twice"],
    [{ type: "choice", choices: ["x"], labels: [] }, "there is not one label for each choice"],
    [{ type: "string", minimum: 1 }, "a string field has no minimum"],
    [{ type: "boolean", format: "date" }, "a boolean field has no format"],
    [{ type: "integer", minLength: 1 }, "an integer field has no minLength".replace("an integer", "a integer")],
    [{ type: "integer", minimum: 2, maximum: 1 }, "2 to 1 is not a range"],
    [{ type: "choices", choices: ["x"], minItems: 2 }, "2 to 1 is not a range"],
    [{ type: "integer", default: 1.5 }, "its default does not fit"],
    [{ type: "boolean", default: "yes" }, "its default does not fit"],
    [{ name: "__proto__", type: "string" }, "cannot be the name of a field"],
    [{ name: " ", type: "string" }, "cannot be the name of a field"],
    [{ type: "number", minimum: Number.NaN }, "finite"],
    [{ type: "integer", maximum: Infinity }, "finite"]
  ]
  it.each(flaws)("is none with %j", (input, reason) => {
    const decoded = decode({ name: "a", ...input })
    assert.include(Either.isLeft(decoded) ? decoded.left.message : "taken", reason)
  })

  const typed: ReadonlyArray<readonly [input: object, line: string, value: unknown]> = [
    [{ type: "string" }, "  Ada ", "Ada"],
    [{ type: "string" }, "", "Please type a text."],
    [{ type: "string", required: false }, "", undefined],
    [{ type: "string", default: "x" }, " ", "x"],
    [{ type: "string", minLength: 3 }, "ab", "At least 3 characters are needed."],
    [{ type: "string", maxLength: 2 }, "👩👩👩", "At most 2 characters are allowed."],
    [{ type: "string", maxLength: 3 }, "👩👩👩", "👩👩👩"],
    [{ type: "string", format: "date" }, "2026-02-30", "Please give a date, such as 2026-01-31."],
    [{ type: "string", format: "date" }, "2024-02-29", "2024-02-29"],
    [
      { type: "string", format: "date-time" },
      "2026-01-31T25:00:00Z",
      "Please give a date with a time, such as 2026-01-31T09:00:00Z."
    ],
    [{ type: "string", format: "date-time" }, "2026-01-31T09:00:00+01:00", "2026-01-31T09:00:00+01:00"],
    [{ type: "string", format: "uri" }, "example", "Please give a whole address, such as https://example.com/."],
    [{ type: "string", format: "email" }, "a@b@c", "Please give an e-mail address, such as ada@example.com."],
    [{ type: "integer" }, "1e2", 100],
    [{ type: "integer" }, "0x10", "Please type a whole number."],
    [{ type: "integer" }, "1.5", "A whole number is expected."],
    [{ type: "integer" }, "9007199254740991", Number.MAX_SAFE_INTEGER],
    [{ type: "integer" }, "9007199254740993", "That is too large to be a whole number."],
    [{ type: "integer" }, "-1e300", "That is too large to be a whole number."],
    [{ type: "number", minimum: 0 }, "-0.5", "It must be at least 0."],
    [{ type: "number" }, "1e999", "A number is expected."],
    [{ type: "number" }, "NaN", "Please type a number."],
    [{ type: "boolean" }, "Yes", true],
    [{ type: "boolean" }, "1", "Please type yes or no."],
    [{ type: "choice", choices: ["eu", "us"], labels: ["Europe", "America"] }, "america", "us"],
    [{ type: "choice", choices: ["eu", "us"], labels: ["Europe", "America"] }, "us", "us"],
    [{ type: "choice", choices: ["eu", "us"] }, "3", "Please type a number from 1 to 2, or one of the choices."],
    [{ type: "choices", choices: ["a", "b", "c"], maxItems: 2 }, "1,b,a", ["a", "b"]],
    [{ type: "choices", choices: ["a", "b", "c"], maxItems: 2 }, "1,2,3", "At most 2 choices are allowed."]
  ]
  it.each(typed)("%j takes %j for %j", (input, line, value) => {
    assert.deepStrictEqual(said(field(input), line), value)
  })

  it.prop(
    "takes nothing that does not fit it, and never throws",
    [FieldSample.fields, FastCheck.string()],
    ([fields, line]) => {
      for (const one of fields) {
        const value = Field.parse(one, line)
        if (Either.isRight(value)) assert.isUndefined(Field.problemOf(one, value.right))
        else assert.match(value.left, /^[A-Z].*\.$/s)
      }
    }
  )

  it.prop("has defaults that fit, where no required one is missing", [FieldSample.fields], ([fields]) => {
    const values = Field.defaults(fields)
    const isMissing = fields.some((one) => one.required && one.default === undefined)
    assert.strictEqual(values === undefined, isMissing)
    if (values !== undefined) assert.deepStrictEqual(Field.problems(fields, values), [])
  })
})

describe("a form", () => {
  it("has a limit to its fields", () => {
    const fieldsOf = (count: number) =>
      Schema.decodeUnknownEither(Field.Fields)(
        Array.from({ length: count }, (_, index) => ({ name: `f${index}`, type: "string" }))
      )
    assert.isTrue(Either.isRight(fieldsOf(Field.maxFields)))
    const refused = fieldsOf(Field.maxFields + 1)
    assert.include(Either.isLeft(refused) ? refused.left.message : "taken", "at most 200 fields")
  })

  it.each(["DBPassword", "userpassword", "PASSWORD1", "API-Key", "accessToken", "pin code"])(
    "asks for a secret as %s",
    (name) => assert.isTrue(Field.isSecret(field({ name, type: "string" })))
  )

  it.each(["passage", "tokenizer", "pin", "compass", "secretary"])("asks for no secret as %s", (name) =>
    assert.isFalse(Field.isSecret(field({ name, type: "string" })))
  )

  it("takes no answer that would set a prototype", () => {
    const { interaction } = InteractionSample.samples.Elicit
    const hostile: unknown = JSON.parse('{"__proto__":{"admin":true},"name":"web","region":"eu"}')
    assert.isTrue(Either.isLeft(Interaction.decodeAnswer(interaction, hostile)))
    assert.isTrue(Either.isLeft(Form.decode(interaction, hostile)))
    assert.isTrue(Either.isLeft(TypedAnswer.parse(interaction, JSON.stringify(hostile))))
  })
})

describe("a form on one line", () => {
  const { interaction } = InteractionSample.samples.Elicit
  const parse = (line: string): unknown => Either.merge(TypedAnswer.parse(interaction, line))

  it("is JSON by name, of typed texts or of values, or a line for each field", () => {
    const rest = { port: 8080, tls: true }
    assert.deepStrictEqual(parse('{"region": "Europe", "name": "web"}'), { name: "web", region: "eu", ...rest })
    assert.deepStrictEqual(parse('{"region": "us", "name": "web", "flags": ["fast"], "port": 1, "tls": "n"}'), {
      name: "web",
      region: "us",
      flags: ["fast"],
      port: 1,
      tls: false
    })
    assert.deepStrictEqual(parse(""), { name: "api", region: "eu", ...rest })
    assert.deepStrictEqual(parse("us\nweb\n"), { name: "web", region: "us", ...rest })
  })

  it("with mistakes says which", () => {
    assert.strictEqual(
      parse('{"port": 0, "tls": 1, "x": "y"}'),
      "x: There is no such field. port: It must be from 1 to 65535. tls: Yes or no is expected."
    )
    assert.include(String(parse("a\nb\nc\nd\ne\nf\ng\nh")), "There are 7 fields and 8 lines.")
  })

  it("is cancelled by that word, unless it is the only field's choice", () => {
    assert.isTrue(TypedAnswer.isCancel(interaction, " Cancel "))
    const choice = new Interaction.Elicit({
      title: "?",
      fields: [{ name: "a", type: "choice", required: true, choices: ["cancel", "go"] }]
    })
    assert.isFalse(TypedAnswer.isCancel(choice, "cancel"))
    assert.deepStrictEqual(TypedAnswer.parse(choice, "cancel"), Either.right({ a: "cancel" }))
  })

  it.prop("sends every value of every form through a wire as it was", [FieldSample.fields], ([fields]) => {
    const [first, ...others] = fields
    if (first === undefined) return
    const form = new Interaction.Elicit({ title: "?", fields: [first, ...others] })
    assert.deepStrictEqual(
      Interaction.decode(JSON.parse(JSON.stringify(Interaction.encode(form)))),
      Either.right<Interaction.Interaction>(form)
    )
    const values = Field.defaults(fields)
    if (values !== undefined)
      assert.deepStrictEqual(TypedAnswer.parse(form, JSON.stringify(values)), Either.right(values))
  })
})
