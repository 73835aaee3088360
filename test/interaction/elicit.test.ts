/** A form by a schema: what is asked, what is told when the schema refuses it, and which schemas are none. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as AutoChannel from "../../src/channel/AutoChannel.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as FlatSchema from "../../src/interaction/FlatSchema.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"

enum Size {
  Small = "s",
  Large = "l"
}

const Server = Schema.Struct({
  name: Schema.NonEmptyString.annotations({ title: "Name of the server", description: "As in the DNS." }),
  region: Schema.Literal("eu", "us"),
  port: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 65535)), { default: () => 8080 }),
  share: Schema.Number.pipe(Schema.greaterThanOrEqualTo(0), Schema.lessThan(1)),
  size: Schema.optional(Schema.Enums(Size)),
  tags: Schema.Array(Schema.Literal("a", "b", "c")).pipe(Schema.maxItems(2)),
  since: Schema.optionalWith(Schema.NumberFromString.pipe(Schema.between(2000, 2100)), { default: () => 2026 }),
  note: Schema.optionalWith(Schema.String, { as: "Option" }),
  tls: Schema.Boolean
})

const filled = { name: "web", region: "eu", port: 80, share: 0.5, tags: ["a"], tls: true }

const even = Schema.Int.pipe(Schema.filter((n) => n % 2 === 0 || "It must be even."))
const Pair = Schema.Struct({ low: even, high: even }).pipe(
  Schema.filter(({ high, low }) => low < high || "Low comes before high.")
)

const formOf = ({ interaction }: InteractionRequest) => {
  assert(interaction._tag === "Elicit")
  return interaction
}

describe("a schema as a form", () => {
  it("has a field for each member, with the limits and defaults of its encoded side", () => {
    assert.deepStrictEqual(Either.getOrThrow(FlatSchema.fields(Server)) as unknown, [
      {
        name: "name",
        type: "string",
        minLength: 1,
        title: "Name of the server",
        description: "As in the DNS.",
        required: true
      },
      { name: "region", type: "choice", choices: ["eu", "us"], required: true },
      { name: "port", type: "integer", minimum: 1, maximum: 65535, default: 8080, required: false },
      { name: "share", type: "number", minimum: 0, required: true },
      { name: "size", type: "choice", choices: ["s", "l"], labels: ["Small", "Large"], required: false },
      { name: "tags", type: "choices", choices: ["a", "b", "c"], maxItems: 2, required: true },
      { name: "since", type: "string", default: "2026", required: false },
      { name: "note", type: "string", required: false },
      { name: "tls", type: "boolean", required: true }
    ])
    class Person extends Schema.Class<Person>("Person")({ name: Schema.String }) {}
    assert.deepStrictEqual(
      Either.map(FlatSchema.fields(Person), (fields) => fields.length),
      Either.right(1)
    )
  })

  const refused: ReadonlyArray<readonly [name: string, schema: Schema.Schema.AnyNoContext, reason: string]> = [
    ["nothing", Schema.Struct({}), "no fields"],
    ["no struct", Schema.String, "not a struct"],
    ["a record", Schema.Record({ key: Schema.String, value: Schema.String }), "not a struct"],
    ["a nested struct", Schema.Struct({ a: Schema.Struct({ b: Schema.String }) }), "nested"],
    ["a list of texts", Schema.Struct({ a: Schema.Array(Schema.String) }), "a choice among several literals"],
    ["a date", Schema.Struct({ a: Schema.DateFromSelf }), "nested"],
    ["null", Schema.Struct({ a: Schema.NullOr(Schema.String) }), "nested"],
    ["numbers to choose from", Schema.Struct({ a: Schema.Literal(1, 2) }), "choices are texts"],
    ["a secret", Schema.Struct({ a: Schema.Redacted(Schema.String) }), "secret"],
    ["a secret that may be absent", Schema.Struct({ a: Schema.optional(Schema.Redacted(Schema.String)) }), "secret"],
    [
      "a limited secret",
      Schema.Struct({ a: Schema.Redacted(Schema.String).pipe(Schema.filter(() => true)) }),
      "secret"
    ],
    [
      "a default that it refuses itself",
      Schema.Struct({ a: Schema.Int.pipe(Schema.filter(() => false)).annotations({ default: 1 }) }),
      "its default is not one of its values"
    ],
    [
      "a default beyond its limits",
      Schema.Struct({
        a: Schema.optionalWith(Schema.Int.annotations({ jsonSchema: { type: "integer", minimum: 5 } }), {
          default: () => 1
        })
      }),
      "default does not fit"
    ]
  ]
  it.effect.each(refused)("is refused when it is %s, before anybody is asked", ([, schema, reason]) =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make()
      const failed = yield* Interactor.elicit(schema as Schema.Schema<{}, {}>).pipe(
        Effect.flip,
        Interactor.withInteractor(person.interactor)
      )
      assert.strictEqual(failed._tag, "SchemaNotFlat")
      assert.include(failed.message, reason)
      assert.deepStrictEqual(yield* person.shown, [])
    })
  )

  it("that is nested, or holds a secret, does not compile", () => {
    const asked = [
      // @ts-expect-error: a struct in a field.
      Interactor.elicit(Schema.Struct({ a: Schema.Struct({ b: Schema.String }) })),
      // @ts-expect-error: a list of numbers.
      Interactor.elicit(Schema.Struct({ a: Schema.Array(Schema.Number) })),
      // @ts-expect-error: a secret.
      Interactor.elicit(Schema.Struct({ a: Schema.Redacted(Schema.String) })),
      Interactor.elicit(Server)
    ]
    assert.lengthOf(asked, 4)
  })
})

describe("Interactor.elicit", () => {
  it.effect("gives the decoded value, with the schema's own defaults", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.answer({ ...filled, since: "2020" })] })
      const server = yield* Interactor.elicit(Server, { title: "Where?" }).pipe(
        Interactor.withInteractor(person.interactor)
      )
      assert.deepStrictEqual(server, { ...filled, since: 2020, note: Option.none() } as typeof server)
      const [shown] = yield* person.shown
      assert.strictEqual(shown === undefined ? "" : formOf(shown).title, "Where?")
    })
  )

  it.effect("tells what a refinement refuses field by field, keeps what was filled in, and asks again", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({
        script: ["1\n3", "4\n2", '{"low": 2, "high": "4"}']
      })
      const pair = yield* Interactor.elicit(Pair).pipe(Interactor.withInteractor(person.interactor))
      assert.deepStrictEqual(pair, { low: 2, high: 4 })
      const forms = (yield* person.shown).map(formOf)
      assert.deepStrictEqual(
        forms.map(({ fields, problems }) => [fields.map((field) => field.default), problems]),
        [
          [[undefined, undefined], undefined],
          [
            [1, 3],
            [
              { field: "low", message: "It must be even." },
              { field: "high", message: "It must be even." }
            ]
          ],
          [[4, 2], [{ message: "Low comes before high." }]]
        ]
      )
    })
  )

  it.effect("asks as often as somebody tries, and no longer whoever gives the same again and again", () =>
    Effect.gen(function* () {
      let times = 0
      const trying = yield* TestInteractor.make({ script: () => `${2 * times++ + 1}\n1` })
      const asking = yield* Effect.fork(Interactor.elicit(Pair).pipe(Interactor.withInteractor(trying.interactor)))
      while (times < 50) yield* Effect.yieldNow()
      assert.isNull(asking.unsafePoll())
      yield* Fiber.interrupt(asking)
      const stubborn = yield* TestInteractor.make({ script: () => "1\n1" })
      const failed = yield* Effect.flip(Interactor.elicit(Pair).pipe(Interactor.withInteractor(stubborn.interactor)))
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.include(failed.message, "low: It must be even.")
      assert.strictEqual((yield* stubborn.shown).length, 3)
    })
  )

  it.effect("takes defaults where nobody is there, once, and is cancelled where one is missing", () =>
    Effect.gen(function* () {
      const Defaults = Schema.Struct({
        port: Schema.optionalWith(even, { default: () => 80 }),
        note: Schema.optional(Schema.String)
      })
      const Odd = Defaults.pipe(Schema.filter(() => "Never."))
      for (const nobody of [AutoChannel.make(), HaltChannel.yolo]) {
        const ask = <A, E>(form: Effect.Effect<A, E, Interactor.Interactor>) => Interactor.withInteractor(nobody)(form)
        assert.deepStrictEqual(yield* ask(Interactor.elicit(Defaults)), { port: 80 })
        const missing = yield* Effect.flip(ask(Interactor.elicit(Pair)))
        assert.strictEqual(missing._tag, "InteractionCancelled")
        const refused = yield* Effect.flip(ask(Interactor.elicit(Odd)))
        assert.strictEqual(refused._tag, "InteractorUnavailable")
      }
    })
  )

  it.effect("ends as cancelled, and leaves no dialog when it is interrupted half-filled", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["1\n1", "cancel"] })
      const failed = yield* Effect.flip(Interactor.elicit(Pair).pipe(Interactor.withInteractor(person.interactor)))
      assert.strictEqual(failed._tag, "InteractionCancelled")
      const silent = yield* TestInteractor.make({ script: ["1\n1", TestInteractor.silent] })
      const asking = yield* Effect.fork(Interactor.elicit(Pair).pipe(Interactor.withInteractor(silent.interactor)))
      yield* silent.next
      yield* silent.next
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* silent.open, [])
    })
  )

  it.effect("decodes with whatever the schema needs", () =>
    Effect.gen(function* () {
      const Checked = Schema.Struct({
        name: Schema.transformOrFail(Schema.String, Schema.String, {
          strict: true,
          decode: (name, _, ast) =>
            Effect.zipRight(
              Effect.yieldNow(),
              name === "taken"
                ? ParseResult.fail(new ParseResult.Type(ast, name, "That name is taken."))
                : ParseResult.succeed(name)
            ),
          encode: ParseResult.succeed
        })
      })
      const person = yield* TestInteractor.make({ script: ["taken", "free"] })
      const value = yield* Interactor.elicit(Checked).pipe(Interactor.withInteractor(person.interactor))
      assert.deepStrictEqual(value, { name: "free" })
      const [, again] = yield* person.shown
      assert.deepStrictEqual(again === undefined ? [] : formOf(again).problems, [
        { field: "name", message: "That name is taken." }
      ])
    })
  )

  it.effect("is turned away by an interactor that knows fewer kinds", () =>
    Effect.gen(function* () {
      const { Elicit: _, ...older } = Object.fromEntries(
        ["Approve", "grantStageTool", "Clarify", "Ask", "Select", "Confirm", "Elicit"].map((kind) => [
          kind,
          Interactor.declines
        ])
      )
      const service = Interactor.make({ id: "older", handlers: older as unknown as Interactor.Handlers })
      const failed = yield* Effect.flip(Interactor.elicit(Pair).pipe(Interactor.withInteractor(service)))
      assert.strictEqual(failed.message, "older could not answer: it does not take Elicit requests")
    })
  )
})

describe("an interactor that gives anything", () => {
  const Port = Schema.Struct({ constructor: Schema.optional(Schema.String), port: Schema.Number })
  const given = (answer: unknown): Interactor.Service => ({
    id: "anything",
    relay: false,
    request: () => Effect.succeed({ answer: answer as never })
  })

  const answers: ReadonlyArray<readonly [what: string, answer: unknown]> = [
    ["a text for a number", { port: "eighty" }],
    ["nothing for a number", { port: null }],
    ["a list for a number", { port: [1] }],
    ["a number under the name of a method", { port: 1, constructor: 2 }],
    ["null", null],
    ["a text", "80"],
    ["a list", []]
  ]
  it.effect.each(answers)("such as %s is refused in words", ([, answer]) =>
    Effect.gen(function* () {
      const refused = yield* Interactor.elicit(Port).pipe(Interactor.withInteractor(given(answer)), Effect.flip)
      assert.strictEqual(refused._tag, "InteractorUnavailable")
      assert.match(refused.message, /was refused: /)
    })
  )
})
