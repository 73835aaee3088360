import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as FastCheck from "effect/FastCheck"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as TypedAnswer from "../../src/interaction/TypedAnswer.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Runs from "../kit/Runs.js"

const { samples } = InteractionSample

const right = <I extends Interaction.Interaction>(interaction: I, line: string): Interaction.Answer<I> =>
  Either.getOrThrowWith(TypedAnswer.parse(interaction, line), (reason) => new Error(reason))

const reason = (interaction: Interaction.Interaction, line: string): string =>
  Either.match(TypedAnswer.parse(interaction, line), {
    onLeft: (text) => text,
    onRight: (answer) => assert.fail(`${JSON.stringify(line)} was understood as ${JSON.stringify(answer)}`)
  })

const approve = samples.Approve.interaction
const plain = new Interaction.Approve({
  toolCallId: approve.toolCallId,
  tool: approve.tool,
  argumentsSummary: approve.argumentsSummary,
  approvalKey: approve.approvalKey,
  options: approve.options
})

describe("TypedAnswer", () => {
  it.each([...InteractionSample.kinds])("reads the sample answer to %s, encoded and typed", (kind) => {
    const sample = samples[kind]
    const typed = right(sample.interaction, sample.line)
    assert.deepStrictEqual(Interaction.encodeAnswer(sample.interaction, typed), sample.encoded)
    assert.isTrue(Either.isRight(TypedAnswer.decode(sample.interaction, sample.encoded)))
    assert.isTrue(Either.isRight(TypedAnswer.decodeOrParse(sample.interaction, sample.line)))
  })

  it("reads every option of a permission prompt, whatever its case, and nothing longer or shorter", () => {
    assert.deepStrictEqual(right(approve, " Y \n"), { decision: "allow", scope: "once" })
    assert.deepStrictEqual(right(approve, "NEVER"), { decision: "deny", scope: "session" })
    assert.deepStrictEqual(right(approve, "comment:  use tmp "), {
      decision: "deny",
      scope: "once",
      comment: "use tmp"
    })
    for (const line of ["", "ye", "ok", "allow", "1", "cancel", "a bit later", "nope, not now"]) {
      assert.include(reason(approve, line), "y, n, a")
    }
  })

  it.each([
    ["no, use ls instead", "once", "use ls instead"],
    ["No use ls instead", "once", "use ls instead"],
    ["n - use ls instead", "once", "use ls instead"],
    ["no. All of it is wrong:\nlook again", "once", "All of it is wrong:\nlook again"],
    ["comment, use ls", "once", "use ls"],
    ["never, this is production", "session", "this is production"]
  ] as const)("takes %j for a denial with the words behind it", (line, scope, comment) => {
    assert.deepStrictEqual(right(approve, line), { decision: "deny", scope, comment })
  })

  it.each([
    ["yes, but only in src", "type yes alone"],
    ["yes please", "type yes alone"],
    ["always, but not in web", "type always alone"],
    ["e: ls", "type edit alone"],
    ["no, yes", "yes or a no"],
    ["no problem, go on", "yes or a no"],
    ["never mind", "yes or a no"]
  ])("asks what %j means, and allows nothing by it", (line, asks) => {
    assert.include(reason(approve, line), asks)
  })

  it("takes words behind the answer to a grant or an envelope for its note, and asks where they may take it back", () => {
    for (const { interaction } of [samples.grantStageTool, samples.approveSubagentEnvelope]) {
      assert.deepStrictEqual(right(interaction, "yes, but read only"), { outcome: "approve", note: "but read only" })
      assert.deepStrictEqual(right(interaction, "no, too broad"), { outcome: "deny", note: "too broad" })
      assert.deepStrictEqual(right(interaction, "deny too broad"), { outcome: "deny", note: "too broad" })
      for (const line of ["yes, no", "yes or no?", "yes, wait", "y, but", "no, yes", "no worries"])
        assert.include(reason(interaction, line), "Is that a yes or a no?")
    }
    assert.include(reason(samples.Confirm.interaction, "no, use ls instead"), "takes no words")
  })

  it("says how to comment and how to edit, and offers editing only where it is possible", () => {
    assert.include(reason(approve, "c"), "c: ")
    assert.include(reason(approve, "c:  "), "c: ")
    assert.include(reason(approve, "e"), "editedArguments")
    assert.notInclude(reason(plain, "e"), "editedArguments")
  })

  it("reads grants and envelopes with a note, and defers only a grant", () => {
    const { interaction: grant } = samples.grantStageTool
    const { interaction: envelope } = samples.approveSubagentEnvelope
    assert.deepStrictEqual(right(grant, "d"), { outcome: "defer" })
    assert.deepStrictEqual(right(grant, "Deny: not: now"), { outcome: "deny", note: "not: now" })
    assert.deepStrictEqual(right(envelope, "y:"), { outcome: "approve" })
    assert.include(reason(envelope, "defer"), "approve or deny")
    assert.include(reason(grant, "always"), "approve, deny or defer")
  })

  it("counts options from one and takes an option's own text", () => {
    const select = new Interaction.Select({ prompt: "?", options: ["10", "Green", "blue"] })
    assert.strictEqual(right(select, "1"), 0)
    assert.strictEqual(right(select, "3"), 2)
    assert.strictEqual(right(select, "10"), 0)
    assert.strictEqual(right(select, " green "), 1)
    for (const line of ["", "0", "4", "-1", "1.0", "1,2"]) assert.include(reason(select, line), "3")
  })

  it("confirms with words only; nothing typed is the default", () => {
    for (const expected of [true, false]) {
      const confirm = new Interaction.Confirm({ prompt: "?", default: expected })
      assert.strictEqual(right(confirm, "  \n"), expected)
      assert.strictEqual(right(confirm, "TRUE"), true)
      assert.strictEqual(right(confirm, "no"), false)
      assert.include(reason(confirm, "sure"), "yes or no")
    }
  })

  it("answers a form by lines or by a JSON object, and names every question that is not answered right", () => {
    const { interaction: form } = samples.Clarify
    assert.deepStrictEqual(right(form, "\n\n"), {
      "1": { selected: 2, text: "sqlite" },
      "2": { skipped: true }
    })
    assert.deepStrictEqual(right(form, '{"2": "a; b", "1": 1}'), {
      "1": { selected: 1, text: "postgres" },
      "2": { value: "a; b" }
    })
    assert.include(reason(form, "3\nwhy"), "Question 1")
    assert.include(reason(form, "1\nwhy\nand\nmore"), "no question 3, 4")
    assert.include(reason(form, '{"3": "x"}'), "no question 3")
  })

  it("takes the whole text for a form of one question, line breaks and braces included", () => {
    const one = new Interaction.Clarify({
      context: "",
      questions: [{ text: "Why?", question_type: "free_text", choices: [], required: true }]
    })
    assert.deepStrictEqual(right(one, "a\nb"), { "1": { value: "a\nb" } })
    assert.deepStrictEqual(right(one, "{ not json }"), { "1": { value: "{ not json }" } })
    assert.deepStrictEqual(right(one, '{"1": "json"}'), { "1": { value: "json" } })
    assert.include(reason(one, "  "), "type an answer")
  })

  it("hears cancel where it can mean nothing else", () => {
    const select = new Interaction.Select({ prompt: "?", options: ["go on", "Cancel"] })
    for (const kind of ["Clarify", "Select", "Confirm", "Auth.DeviceCode"] as const) {
      assert.isTrue(TypedAnswer.isCancel(samples[kind].interaction, " Cancel\n"), kind)
    }
    for (const text of ["1\ncancel", "cancel\nit scales", "1\nplease\ncancel\nit", "1\r\nCancel"]) {
      assert.isFalse(TypedAnswer.isCancel(samples.Clarify.interaction, text), text)
    }
    assert.deepStrictEqual(right(samples.Clarify.interaction, "1\ncancel"), {
      "1": { selected: 1, text: "postgres" },
      "2": { value: "cancel" }
    })
    assert.isTrue(TypedAnswer.isCancel(samples.Clarify.interaction, '{"2": "cancel"}'))
    assert.isFalse(TypedAnswer.isCancel(select, "cancel"))
    assert.strictEqual(right(select, "cancel"), 1)
    for (const kind of ["Approve", "Ask", "Auth.Password", "grantStageTool", "approveSubagentEnvelope"] as const) {
      assert.isFalse(TypedAnswer.isCancel(samples[kind].interaction, "cancel"), kind)
    }
  })

  it("keeps the white space of a password, and shows none of it when it is turned away", () => {
    const { interaction } = samples["Auth.Password"]
    assert.strictEqual(Redacted.value(right(interaction, " p w \r\n")), " p w ")
    const wrong = TypedAnswer.decode(interaction, { password: InteractionSample.password })
    assert.isTrue(Either.isLeft(wrong) && !wrong.left.includes(InteractionSample.password))
  })

  it("reads no line that is absurdly long, and gives no reason that is", () => {
    const { interaction } = samples.Ask
    assert.include(reason(interaction, "x".repeat(TypedAnswer.maxLength + 1)), "too long")
    const wrong = TypedAnswer.decode(samples.Confirm.interaction, "x".repeat(5_000_000))
    assert.isTrue(Either.isLeft(wrong) && wrong.left.length <= 500)
  })

  it("knows no answer that is for a whole project: that is for a person at a terminal", () => {
    for (const line of ["p", "P", "project", " Project ", "p: ls"])
      assert.isTrue(Either.isLeft(TypedAnswer.parse(approve, line)), line)
    for (const scope of ["project", "workspace", "Project"])
      assert.isTrue(Either.isLeft(TypedAnswer.decode(approve, { decision: "allow", scope })), scope)
  })

  // What people, models and broken programs type instead of an option: near misses, look-alikes, arbitrary text.
  const options = ["y", "yes", "a", "always", "t", "turn", "i", "idle", "once", "all", "approve", "true", "e", "edit"]
  const understood = new Set([...options, "n", "no", "never", "c", "comment"])
  const nearMiss = FastCheck.tuple(
    FastCheck.constantFrom(...options, "ja", "ok", "sure", "allow", "\u0443", "\uFF59", "\u0455\u0435\u0455"),
    FastCheck.constantFrom("", " ", ".", "!", "\u0000", "\u200B", "s", ",", ";", "\n", "&", "\u0301", '"'),
    FastCheck.oneof(FastCheck.constantFrom("", "y", "yes", "all"), FastCheck.string({ maxLength: 6 }))
  ).map((parts) => parts.join(""))
  const wrong = FastCheck.oneof(nearMiss, FastCheck.fullUnicodeString({ maxLength: 12 }), FastCheck.string()).filter(
    (line) => !understood.has(line.trim().toLowerCase()) && !/^[^:]*(?:y|yes|approve)\s*:/i.test(line.trim())
  )

  it("allows nothing for tens of thousands of lines that are no option", { timeout: 120_000 }, () => {
    const authorities: ReadonlyArray<Interaction.Interaction> = [
      approve,
      plain,
      samples.grantStageTool.interaction,
      samples.approveSubagentEnvelope.interaction,
      new Interaction.Confirm({ prompt: "?", default: false })
    ]
    let tried = 0
    FastCheck.assert(
      FastCheck.property(wrong, (line) => {
        tried++
        return authorities.every((interaction) =>
          [TypedAnswer.parse(interaction, line), TypedAnswer.decode(interaction, line)].every(
            (parsed) => Either.isLeft(parsed) || !InteractionSample.allows(parsed.right)
          )
        )
      }),
      { numRuns: Runs.of(100_000) }
    )
    assert.isAtLeast(tried, Runs.of(100_000))
  })
})

describe("the reason why a value is no answer", () => {
  const fault = (interaction: Interaction.Interaction, given: unknown): string =>
    Either.getOrThrow(Either.flip(TypedAnswer.decode<Interaction.Interaction>(interaction, given)))

  it("is a sentence", () => {
    assert.strictEqual(fault(approve, { decision: "maybe" }), '"decision" has to be one of allow, deny, edit')
    assert.strictEqual(fault(approve, {}), '"decision" has to be one of allow, deny, edit')
    assert.strictEqual(
      fault(approve, { decision: "allow", scope: "ever" }),
      '"scope" has to be one of once, turn, idle, session, all'
    )
    assert.strictEqual(fault(approve, { decision: "deny", scope: "turn" }), '"scope" has to be one of once, session')
    assert.strictEqual(fault(approve, { decision: "deny", scope: "once", comment: 1 }), '"comment" has to be a text')
    assert.strictEqual(
      fault(approve, { decision: "allow", scope: "once", why: 1 }),
      'there is no field "why" in an answer to Approve'
    )
    assert.strictEqual(
      fault(approve, 5),
      "an answer to Approve has to be an object with decision and scope, or an object with decision and editedArguments"
    )
    assert.strictEqual(
      fault(samples.grantStageTool.interaction, { outcome: "yes" }),
      '"outcome" has to be one of approve, deny, defer'
    )
    assert.strictEqual(fault(samples.Confirm.interaction, "y"), "an answer to Confirm has to be true or false")
    assert.strictEqual(fault(samples.Ask.interaction, 1), "an answer to Ask has to be a text")
  })

  it("has no type in it, whatever the value is", () => {
    const key = FastCheck.constantFrom("decision", "scope", "outcome", "1", "text", "selected", "note", "name")
    const value = FastCheck.oneof(
      FastCheck.constantFrom("allow", "deny", "edit", "once", "approve", null, true, 1, -1, 0.5, ""),
      FastCheck.array(FastCheck.integer())
    )
    const given = FastCheck.oneof(
      value,
      FastCheck.dictionary(key, FastCheck.oneof(value, FastCheck.dictionary(key, value)), { maxKeys: 3 })
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.constantFrom(...InteractionSample.kinds), given, (kind, given) => {
        const { interaction } = samples[kind]
        const decoded = TypedAnswer.decode<Interaction.Interaction>(interaction, given)
        if (Either.isLeft(decoded)) assert.notMatch(decoded.left, /\||readonly|[{}]|Expected|\n/, kind)
      }),
      { numRuns: Runs.of(2000) }
    )
  })
})
