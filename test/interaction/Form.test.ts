import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import type { ToolCallId } from "../../src/core/Id.js"
import * as Field from "../../src/interaction/Field.js"
import * as Form from "../../src/interaction/Form.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type * as Question from "../../src/interaction/Question.js"
import * as FieldSample from "../kit/FieldSample.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { samples } = InteractionSample

const approve = (current: { readonly [name: string]: unknown }, format: "text" | "json" = "json") =>
  new Interaction.Approve({
    toolCallId: "call_1" as ToolCallId,
    tool: "deploy",
    argumentsSummary: "",
    approvalKey: "",
    options: [],
    editable: { parameters: Object.keys(current), format, current }
  })

const problems = (decoded: Either.Either<unknown, ReadonlyArray<Field.Problem>>) =>
  Either.isLeft(decoded) ? decoded.left.map(({ field, message }) => `${field ?? "form"}: ${message}`) : ["(none)"]

describe("a question as a form", () => {
  it("has none where no argument may be edited, and says what it takes", () => {
    const { editable: _, ...plain } = approve({})
    const request = new Interaction.Approve(plain)
    assert.isUndefined(Form.of(request))
    assert.deepStrictEqual(problems(Form.decode(request, { decision: "allow" })), [
      "form: This Approve request has no form; it takes an answer."
    ])
  })

  it("is flat JSON Schema with a message, in the shape of an elicitation", () => {
    assert.deepStrictEqual(Form.of(samples.Clarify.interaction), {
      message: "before we start",
      requestedSchema: {
        type: "object",
        properties: {
          q01: {
            type: "string",
            title: "Which database?",
            oneOf: [
              { const: "1", title: "postgres" },
              { const: "2", title: "sqlite" }
            ],
            default: "2"
          },
          q02: { type: "string", title: "Why?" }
        },
        required: ["q01"]
      }
    })
    assert.deepStrictEqual(Form.of(samples.Confirm.interaction)?.requestedSchema, {
      type: "object",
      properties: { answer: { type: "boolean", title: "Yes?", default: false } },
      required: ["answer"]
    })
    assert.deepStrictEqual(Form.of(samples.Approve.interaction)?.requestedSchema, {
      type: "object",
      properties: { command: { type: "string", default: "ls -la" } },
      required: []
    })
  })

  it("is none where authority is granted or somebody signs in, nor where nothing may be edited", () => {
    const { editable: _, ...plain } = samples.Approve.interaction
    assert.isUndefined(Form.of(new Interaction.Approve(plain)))
    for (const kind of ["grantStageTool", "approveSubagentEnvelope", "Auth.DeviceCode", "Auth.Password"] as const) {
      assert.isUndefined(Form.of(samples[kind].interaction), kind)
      assert.isTrue(Either.isLeft(Form.decode<Interaction.Interaction>(samples[kind].interaction, {})), kind)
    }
  })

  it("names more than ninety-nine questions by numbers of one length", () => {
    const question = { text: "?", question_type: "free_text", choices: [], required: true } as const
    const clarify = new Interaction.Clarify({
      context: "",
      questions: [question, ...Array.from({ length: 99 }, () => question)]
    })
    const names = Object.keys(Form.of(clarify)?.requestedSchema.properties ?? {})
    assert.deepStrictEqual([...names].sort(), names)
    assert.deepStrictEqual([names[0], names[99]], ["q001", "q100"])
  })
})

describe("a filled form", () => {
  it("is the answer to its question, also by choices of the same text", () => {
    const twins = new Interaction.Select({ prompt: "Which?", options: ["same", "same"] })
    assert.deepStrictEqual(Form.decode(twins, { answer: "2" }), Either.right(1))
    assert.deepStrictEqual(Form.decode(samples.Ask.interaction, { answer: "Ada" }), Either.right("Ada"))
    assert.deepStrictEqual(Form.decode(samples.Confirm.interaction, { answer: false }), Either.right(false))
    assert.deepStrictEqual(
      Form.decode(samples.Clarify.interaction, { q01: "1", q02: "" }),
      Either.right({ "1": { selected: 1, text: "postgres" }, "2": { skipped: true as const } })
    )
  })

  it("with mistakes says for each field what is wrong, in a sentence", () => {
    assert.deepStrictEqual(problems(Form.decode(samples.Clarify.interaction, { q01: "3", q03: 1 })), [
      "q03: There is no such field.",
      'q01: It must be one of "1", "2".'
    ])
    assert.deepStrictEqual(problems(Form.decode(samples.Clarify.interaction, {})), ["q01: An answer is required."])
    assert.deepStrictEqual(problems(Form.decode(samples.Confirm.interaction, { answer: "yes" })), [
      "answer: Yes or no is expected."
    ])
    assert.deepStrictEqual(problems(Form.decode(samples.Ask.interaction, { answer: "  " })), [
      "answer: An answer is required."
    ])
    for (const nonsense of [null, [], "y", 7, undefined]) {
      assert.include(problems(Form.decode(samples.Ask.interaction, nonsense))[0], "an object")
    }
  })

  it("edits arguments: texts, numbers and flags as themselves, the rest as JSON, what is left out not at all", () => {
    const call = approve({ path: "a", mode: 5, force: false, tags: ["x"], none: null })
    assert.deepStrictEqual(Form.of(call)?.requestedSchema.properties, {
      path: { type: "string", default: "a" },
      mode: { type: "number", default: 5 },
      force: { type: "boolean", default: false },
      tags: { type: "string", description: "As JSON.", default: '[\n  "x"\n]' },
      none: { type: "string", description: "As JSON.", default: "null" }
    })
    assert.deepStrictEqual(
      Form.decode(call, { path: "", mode: 7, tags: '["y"]' }),
      Either.right({ decision: "edit" as const, editedArguments: { path: "", mode: 7, tags: ["y"] } })
    )
    assert.deepStrictEqual(problems(Form.decode(call, { tags: "[y" })), ["tags: That is not JSON."])
    assert.deepStrictEqual(problems(Form.decode(call, { sudo: true })), ["sudo: There is no such field."])
  })

  it.prop("that says anything never throws, and allows nothing", [FastCheck.anything()], ([input]) => {
    for (const kind of InteractionSample.kinds) {
      const interaction: Interaction.Interaction = samples[kind].interaction
      const decoded = Form.decode<Interaction.Interaction>(interaction, input)
      if (Either.isLeft(decoded)) assert.isAbove(decoded.left.length, 0)
      else {
        assert.isUndefined(Interaction.misfit(interaction, decoded.right))
        // An edit is checked from the top, and asked about again.
        if (kind !== "Confirm" && kind !== "Approve") assert.isFalse(InteractionSample.allows(decoded.right))
      }
    }
  })

  it("that reads badly, or is too deep or too large, is refused", () => {
    const trap = {
      get answer(): string {
        throw new Error("no")
      }
    }
    let deep: unknown = "x"
    for (let level = 0; level < 1_000; level++) deep = [deep]
    for (const input of [trap, { answer: deep }, { answer: "x".repeat(2_000_000) }]) {
      assert.isTrue(Either.isLeft(Form.decode(samples.Ask.interaction, input)))
    }
    const proto: unknown = JSON.parse('{"__proto__":"1","answer":"1"}')
    assert.isTrue(Either.isLeft(Form.decode(samples.Select.interaction, proto)))
  })
})

describe("a form there and back", () => {
  const text = FastCheck.string({ maxLength: 12 })
  const words = text.filter((value) => value.trim() !== "")
  const questionAndAnswer = FastCheck.record({
    type: FastCheck.constantFrom<Array<Question.QuestionType>>("free_text", "single_choice", "multiple_choice"),
    choices: FastCheck.array(words, { minLength: 1, maxLength: 4 }),
    required: FastCheck.boolean(),
    pick: FastCheck.nat(3),
    preset: FastCheck.boolean(),
    words,
    skip: FastCheck.boolean()
  })
  const forms = FastCheck.array(questionAndAnswer, { minLength: 1, maxLength: 12 }).map((drafts) => {
    const questions = drafts.map(({ choices, pick, preset, required, type }) => ({
      text: "?",
      question_type: type,
      choices: type === "free_text" ? [] : choices,
      required,
      ...(preset && type !== "free_text" ? { default_choice: (pick % choices.length) + 1 } : {})
    }))
    const answers = drafts.map(({ choices, pick, required, skip, type, words }) => {
      const number = (pick % choices.length) + 1
      if (skip && !required) return { skipped: true as const }
      if (type === "free_text") return { value: words }
      const selected = { selected: number, text: choices[number - 1] ?? "" }
      return type === "single_choice" ? selected : { selected: [number], texts: [selected.text] }
    })
    return { questions, answers: Object.fromEntries(answers.map((answer, index) => [String(index + 1), answer])) }
  })

  it.prop("every clarification's answer comes back from its form", [forms], ([{ answers, questions }]) => {
    const [first, ...others] = questions
    if (first === undefined) return
    const clarify = new Interaction.Clarify({ context: "", questions: [first, ...others] })
    const values = JSON.parse(JSON.stringify(Form.encode(clarify, answers)))
    assert.deepStrictEqual(FieldSample.refusals(Form.of(clarify), values), [])
    assert.deepStrictEqual(Form.decode(clarify, values), Either.right(answers))
  })

  it.prop(
    "so do texts, choices, and yes and no",
    [words, FastCheck.nat(4), FastCheck.boolean()],
    ([name, index, yes]) => {
      const select = new Interaction.Select({ prompt: "?", options: ["a", "b", "a", "", "c"] })
      const there = <I extends Interaction.Interaction>(interaction: I, answer: Interaction.Answer<I>) => {
        const values = JSON.parse(JSON.stringify(Form.encode(interaction, answer)))
        assert.deepStrictEqual(FieldSample.refusals(Form.of(interaction), values), [])
        assert.deepStrictEqual(Form.decode(interaction, values), Either.right(answer))
      }
      there(samples.Ask.interaction, name)
      there(select, index)
      there(samples.Confirm.interaction, yes)
    }
  )

  const json = FastCheck.jsonValue().filter(
    (value) => !Object.is(value, -0) && !JSON.stringify(value).includes("__proto__")
  )
  it.prop(
    "so does every edit of arguments of any type",
    [FastCheck.dictionary(words, FastCheck.tuple(json, json), { maxKeys: 5, noNullPrototype: true })],
    ([pairs]) => {
      const names = Object.keys(pairs).filter((name) => name !== "__proto__")
      const sameKind = (before: unknown, after: unknown) => {
        const plain = ["string", "number", "boolean"]
        return plain.includes(typeof before) ? (typeof before === typeof after ? after : before) : after
      }
      const current = Object.fromEntries(names.map((name) => [name, pairs[name]?.[0]]))
      const editedArguments = Object.fromEntries(
        names.map((name) => [name, sameKind(pairs[name]?.[0], pairs[name]?.[1])])
      )
      const answer = { decision: "edit" as const, editedArguments }
      const call = approve(current)
      const values = JSON.parse(JSON.stringify(Form.encode(call, answer)))
      assert.deepStrictEqual(FieldSample.refusals(Form.of(call), values), [])
      assert.deepStrictEqual(
        JSON.parse(JSON.stringify(Either.getOrThrow(Form.decode(call, values)))),
        JSON.parse(JSON.stringify(answer))
      )
    }
  )

  it.prop("fields come back from their schema as they were", [FieldSample.fields], ([fields]) => {
    const { requestedSchema } = Form.make("?", fields)
    assert.deepStrictEqual(
      Form.readSchema(JSON.parse(JSON.stringify(requestedSchema))),
      Either.right(fields as unknown as Field.Fields)
    )
  })

  it.prop(
    "what the schema takes, the fields take, and the other way round",
    [FieldSample.fields, FastCheck.infiniteStream(FieldSample.value)],
    ([fields, stream]) => {
      const values = Object.fromEntries(
        fields.flatMap((field) => {
          const value: unknown = stream.next().value
          return value === undefined ? [] : [[field.name, value]]
        })
      )
      const refused = FieldSample.refusals(Form.make("?", fields), values)
      const found = Field.problems(fields, values).map(({ field }) => field)
      assert.deepStrictEqual([...new Set(found)].sort(), [...new Set(refused)].sort())
    }
  )

  it("somebody else's schema that is not flat is refused with a reason", () => {
    const refused: ReadonlyArray<readonly [unknown, string]> = [
      [{ type: "object", properties: { a: { type: "object", properties: {} } } }, "object"],
      [{ type: "object", properties: {} }, "missing"],
      [{ type: "array" }, "object"],
      [{ type: "object", properties: { a: { type: "array", items: { type: "string" } } } }, "needs choices"],
      [{ type: "object", properties: { a: { type: "integer", minimum: 5, default: 1 } } }, "default does not fit"],
      [{ type: "object", properties: { a: { type: "string", enum: ["x", "x"] } } }, "twice"],
      [null, "object"]
    ]
    for (const [schema, reason] of refused) {
      const read = Form.readSchema(schema)
      assert.include(Either.isLeft(read) ? read.left : "taken", reason)
    }
    assert.deepStrictEqual(
      Form.readSchema({ type: "object", properties: { a: { type: "string", enum: ["x"], enumNames: ["The X"] } } }),
      Either.right([{ name: "a", type: "choice", required: false, choices: ["x"], labels: ["The X"] }])
    )
  })

  it("a schema is JSON", () => {
    for (const kind of InteractionSample.kinds) {
      const form = Form.of(samples[kind].interaction)
      if (form !== undefined) assert.deepStrictEqual(JSON.parse(JSON.stringify(form)), form)
    }
    assert.isTrue(Schema.is(Field.Values)({ a: "x", b: 1, c: true, d: ["y"] }))
  })
})
