import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Question from "../../src/interaction/Question.js"

const decode = Schema.decodeUnknownEither(Question.Question)
const question = (input: unknown): Question.Question => Either.getOrThrow(decode(input))

const single = question({ text: "Which?", choices: ["red", "Green", "blue"] })
const withDefault = question({ text: "Which?", choices: ["red", "green"], default_choice: 2 })
const several = question({ text: "Which?", question_type: "multiple_choice", choices: ["red", "green", "3"] })
const text = question({ text: "Why?", question_type: "free_text" })
const optional = <Q extends Question.Question>(each: Q): Question.Question => ({ ...each, required: false })

describe("a question", () => {
  it("is a required single choice unless it says otherwise", () => {
    assert.deepStrictEqual(single, {
      text: "Which?",
      question_type: "single_choice",
      choices: ["red", "Green", "blue"],
      required: true
    })
  })

  const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
    ["a choice without choices", { text: "?" }, "a single_choice question needs choices"],
    [
      "a default out of range",
      { text: "?", choices: ["a"], default_choice: 2 },
      "default_choice 2 is out of range 1-1"
    ],
    ["a default of zero", { text: "?", choices: ["a"], default_choice: 0 }, "default_choice 0 is out of range 1-1"],
    [
      "a default for free text",
      { text: "?", question_type: "free_text", default_choice: 1 },
      "a free_text question cannot have a default_choice"
    ],
    ["an unknown type", { text: "?", question_type: "essay" }, "essay"]
  ]
  it.each(wrong)("cannot be %s", (_, input, reason) => {
    const decoded = decode(input)
    assert(Either.isLeft(decoded))
    assert.include(decoded.left.message, reason)
  })
})

describe("what somebody types", () => {
  const right: ReadonlyArray<readonly [string, Question.Question, string, Question.QuestionAnswer]> = [
    ["a number", single, " 2 ", { selected: 2, text: "Green" }],
    ["a choice's own text", single, "blue", { selected: 3, text: "blue" }],
    ["the text in another case", single, "GREEN", { selected: 2, text: "Green" }],
    ["nothing, for the default", withDefault, "", { selected: 2, text: "green" }],
    ["nothing, for nothing", optional(single), "", { skipped: true }],
    ["a list with doubles", several, "2, 1,green,", { selected: [2, 1], texts: ["green", "red"] }],
    ["a number before a choice of that text", several, "3", { selected: [3], texts: ["3"] }],
    ["some words", text, "  because  ", { value: "because" }],
    ["no words where none are needed", optional(text), " ", { skipped: true }]
  ]
  it.each(right)("may be %s", (_, each, line, answer) => {
    assert.deepStrictEqual(Question.parse(each, line), Either.right(answer))
  })

  const wrong: ReadonlyArray<readonly [string, Question.Question, string, string]> = [
    ["a number out of range", single, "4", "Please type a number from 1 to 3, or one of the choices."],
    ["zero", single, "0", "Please type a number from 1 to 3, or one of the choices."],
    ["a number with a point", single, "1.0", "Please type a number from 1 to 3, or one of the choices."],
    ["nothing where something is needed", single, "", "Please choose from 1 to 3."],
    ["a list with strangers", several, "1, 9, mauve", "Not among the choices 1-3: 9, mauve."],
    ["an empty list", several, " , ", "Please choose from 1 to 3."],
    ["no words", text, "", "Please type an answer."]
  ]
  it.each(wrong)("is asked for again when it is %s", (_, each, line, reason) => {
    assert.deepStrictEqual(Question.parse(each, line), Either.left(reason))
  })

  it("is not guessed when two choices differ in case only", () => {
    const alike = question({ text: "?", choices: ["Ada", "ADA"] })
    assert.isTrue(Either.isLeft(Question.parse(alike, "ada")))
    assert.deepStrictEqual(Question.parse(alike, "ADA"), Either.right({ selected: 2, text: "ADA" }))
  })

  it("cancels by one word alone", () => {
    for (const line of ["cancel", " CANCEL "]) assert.isTrue(Question.isCancel(line))
    for (const line of ["cancel it", "", "c"]) assert.isFalse(Question.isCancel(line))
  })
})

const anyQuestion: FastCheck.Arbitrary<Question.Question> = FastCheck.record({
  text: FastCheck.string(),
  question_type: FastCheck.constantFrom<Array<Question.QuestionType>>("single_choice", "multiple_choice", "free_text"),
  choices: FastCheck.array(FastCheck.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }),
  required: FastCheck.boolean()
})

describe("answers to a form", () => {
  it.prop(
    "fit their question when they were typed, and are one short line",
    [anyQuestion, FastCheck.string()],
    ([each, line]) => {
      const parsed = Question.parse(each, line)
      if (Either.isLeft(parsed)) return assert.isNotEmpty(parsed.left)
      assert.isUndefined(Question.ClarifyAnswers.misfit([each], { "1": parsed.right }))
      if (each.question_type === "free_text") assert.isAtMost(Question.summarize(parsed.right).length, 64)
    }
  )

  it.prop("fit their question when nobody gave them", [anyQuestion], ([each]) => {
    assert.isUndefined(Question.ClarifyAnswers.misfit([each], { "1": Question.autoAnswer(each, "none") }))
  })

  const misfits: ReadonlyArray<readonly [string, Question.ClarifyAnswers, string]> = [
    ["a missing one", {}, "question 1: an answer is required"],
    ["one skipped that is needed", { "1": { skipped: true } }, "question 1: an answer is required"],
    ["one too many", { "1": { selected: 1, text: "red" }, "3": { value: "x" } }, 'there is no question "3"'],
    ["one numbered from zero", { "0": { selected: 1, text: "red" } }, 'there is no question "0"'],
    ["one with a number of its own", { "01": { selected: 1, text: "red" } }, 'there is no question "01"'],
    ["one of another type", { "1": { value: "red" } }, "question 1: one choice is expected"],
    ["a choice out of range", { "1": { selected: 9, text: "red" } }, "question 1: choice 9 is out of range"],
    ["half a choice", { "1": { selected: 1.5, text: "red" } }, "question 1: choice 1.5 is out of range"],
    [
      "a choice by another name",
      { "1": { selected: 1, text: "blue" } },
      "question 1: the text is not that of the choice"
    ],
    [
      "a choice twice",
      { "1": { selected: 1, text: "red" }, "2": { selected: [1, 1], texts: ["red", "red"] } },
      "question 2: a choice is repeated"
    ]
  ]
  it.each(misfits)("do not fit with %s", (_, answers, reason) => {
    assert.strictEqual(Question.ClarifyAnswers.misfit([single, optional(several)], answers), reason)
  })
})
