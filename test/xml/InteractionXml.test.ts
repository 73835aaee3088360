import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Redaction from "../../src/core/Redaction.js"
import type { CorrelationId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionXml from "../../src/xml/InteractionXml.js"
import type * as ModelAnswer from "../../src/xml/ModelAnswer.js"
import * as RequestXml from "../../src/xml/RequestXml.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { samples } = InteractionSample

const requestOf = <I extends Interaction.Interaction>(interaction: I): InteractionRequest<I> => ({
  requestId: "abc123" as RequestId,
  correlationId: "turn_1" as CorrelationId,
  sessionId: "ses_1" as SessionId,
  agentPath: "main",
  issuedAt: 0,
  interaction
})

const call = (parts: Partial<ConstructorParameters<typeof Interaction.Approve>[0]>) =>
  new Interaction.Approve({
    toolCallId: "call_1" as ToolCallId,
    tool: "cli_based_tool",
    argumentsSummary: "git status",
    approvalKey: "git",
    options: [
      { short: "y", full: "yes", description: "Allow this tool execution" },
      { full: "never", description: "Deny & remember" }
    ],
    ...parts
  })

const asked = new Interaction.Elicit({
  title: "Where & when?",
  fields: [
    { name: "port", type: "integer", title: "Port", required: true, minimum: 1, maximum: 9, default: 8 },
    { name: "tier", type: "choices", required: false, choices: ["a", "b"], labels: ["<A>", "B"], default: ["b"] },
    { name: "note", type: "string", required: false }
  ],
  problems: [{ field: "port", message: "It is taken." }, { message: "Try again." }]
})

describe("a form of typed fields as XML", () => {
  const reply = (inside: string) =>
    InteractionXml.readReply(
      requestOf(asked),
      `<interaction_response kind="Elicit" request_id="abc123">${inside}</interaction_response>`
    )

  it("shows its fields with their limits, choices, defaults and what was wrong", () => {
    assert.strictEqual(
      InteractionXml.encodeRequest(requestOf(asked)),
      `<interaction_request kind="Elicit" request_id="abc123">
  <title>Where &amp; when?</title>
  <problem>Try again.</problem>
  <field name="port" type="integer" required="true" minimum="1" maximum="9">
    <title>Port</title>
    <problem>It is taken.</problem>
    <default>8</default>
  </field>
  <field name="tier" type="choices" required="false">
    <title>tier</title>
    <choices>
      <choice index="1">&lt;A&gt;</choice>
      <choice index="2" default="true">B</choice>
    </choices>
  </field>
  <field name="note" type="string" required="false">
    <title>note</title>
  </field>
</interaction_request>`
    )
  })

  it("is answered by the names of its fields; what is left out stays out, and an empty one is its default", () => {
    assert.deepStrictEqual(
      reply('<answer name="port">3</answer><answer name="tier">&lt;a&gt;, 2</answer>'),
      Either.right({ port: 3, tier: ["a", "b"] })
    )
    assert.deepStrictEqual(reply('<answer name="port"/>'), Either.right({ port: 8 }))
  })

  it.each([
    ["a required field that is not there", '<answer name="note">x</answer>', "Port: An answer is required."],
    ["a value beyond its limits", '<answer name="port">10</answer>', "Port: It must be from 1 to 9."],
    [
      "a field that is not asked for",
      '<answer name="port">1</answer><answer name="x">1</answer>',
      "x: There is no such"
    ],
    ["a field twice", '<answer name="port">1</answer><answer name="port">2</answer>', "answered twice"],
    ["an answer by number", '<answer index="1">1</answer>', "has no name"],
    ["text", "8", "text beside"],
    ["a decision", "<decision>yes</decision>", "does not belong"]
  ])("is not answered by %s", (_, inside, reason) => {
    const read = reply(inside)
    assert.include(Either.isLeft(read) ? read.left : "taken", reason)
  })
})

const editable = (current: { readonly [name: string]: unknown }) =>
  call({ editable: { parameters: ["command"], format: "json", current } })

const form = new Interaction.Clarify({
  context: "Need deployment preferences",
  questions: [
    {
      text: "Which environment?",
      question_type: "single_choice",
      choices: ["Development", "Staging"],
      required: true,
      default_choice: 2
    },
    { text: "Which checks?", question_type: "multiple_choice", choices: ["lint", "types", "tests"], required: false },
    { text: "Why?", question_type: "free_text", choices: [], required: true }
  ]
})

const read = <I extends ModelAnswer.Answerable>(interaction: I, text: string) =>
  InteractionXml.readReply(requestOf(interaction), text)

const right = <I extends ModelAnswer.Answerable>(interaction: I, text: string): Interaction.Answer<I> =>
  Either.getOrThrowWith(read(interaction, text), (reason) => new Error(`${text}: ${reason}`))

/** The reason why something is no answer. */
const reason = (interaction: ModelAnswer.Answerable, text: string): string =>
  Either.match(read(interaction, text), {
    onLeft: (reason) => reason,
    onRight: (answer) => assert.fail(`${text} was read as ${JSON.stringify(answer)}`)
  })

const permission = (inside: string) => `<permission_response request_id="abc123">${inside}</permission_response>`
const decision = (text: string) => permission(`<decision>${text}</decision>`)
const clarification = (inside: string) =>
  `<clarification_response request_id="abc123">${inside}</clarification_response>`
const response = (kind: Interaction.Kind, inside: string) =>
  `<interaction_response kind="${kind}" request_id="abc123">${inside}</interaction_response>`

describe("InteractionXml.encodeRequest", () => {
  it("writes a permission request", () => {
    assert.strictEqual(
      InteractionXml.encodeRequest(requestOf(editable({ command: "git log > a && echo 'x'", depth: 3, all: true }))),
      `<permission_request request_id="abc123">
  <tool_name>cli_based_tool</tool_name>
  <arguments>
    <arg name="command">git log &gt; a &amp;&amp; echo &apos;x&apos;</arg>
    <arg name="depth">3</arg>
    <arg name="all">true</arg>
  </arguments>
  <editable>
    <parameter>command</parameter>
  </editable>
  <options>
    <option short="y" full="yes">Allow this tool execution</option>
    <option full="never">Deny &amp; remember</option>
  </options>
</permission_request>`
    )
  })

  it("writes the summary of arguments that cannot be edited, and what is shown of the call", () => {
    const interaction = call({
      display: { summary: "Reads", details: "-a\n+b", format: "diff", truncated: true, warnings: ["slow", "big"] }
    })
    assert.strictEqual(
      InteractionXml.encodeRequest({ ...requestOf(interaction), agentPath: 'main/"x"', subagentId: "x" }),
      `<permission_request request_id="abc123" agent="main/&quot;x&quot;">
  <tool_name>cli_based_tool</tool_name>
  <arguments>
    <arg name="arguments">git status</arg>
  </arguments>
  <display>
    <summary>Reads</summary>
    <details format="diff" truncated="true">-a\n+b</details>
    <warning>slow</warning>
    <warning>big</warning>
  </display>
  <options>
    <option short="y" full="yes">Allow this tool execution</option>
    <option full="never">Deny &amp; remember</option>
  </options>
</permission_request>`
    )
  })

  it("writes a clarification request", () => {
    assert.strictEqual(
      InteractionXml.encodeRequest(requestOf(form)),
      `<clarification_request request_id="abc123">
  <context>Need deployment preferences</context>
  <question index="1" type="single_choice" required="true">
    <text>Which environment?</text>
    <choices>
      <choice index="1">Development</choice>
      <choice index="2" default="true">Staging</choice>
    </choices>
  </question>
  <question index="2" type="multiple_choice" required="false">
    <text>Which checks?</text>
    <choices>
      <choice index="1">lint</choice>
      <choice index="2">types</choice>
      <choice index="3">tests</choice>
    </choices>
  </question>
  <question index="3" type="free_text" required="true">
    <text>Why?</text>
  </question>
</clarification_request>`
    )
  })

  it("names the kind of any other request, and counts its options from one", () => {
    assert.strictEqual(
      InteractionXml.encodeRequest(requestOf(samples.Select.interaction)),
      `<interaction_request kind="Select" request_id="abc123">
  <prompt>Which?</prompt>
  <options>
    <option index="1">red</option>
    <option index="2">green</option>
    <option index="3">blue</option>
  </options>
</interaction_request>`
    )
    for (const kind of InteractionSample.kinds) {
      const text = InteractionXml.encodeRequest(requestOf<Interaction.Interaction>(samples[kind].interaction))
      const root =
        kind === "Approve" || kind === "Clarify"
          ? /^<(permission|clarification)_request request_id=/
          : /^<interaction_request kind="/
      assert.match(text, root)
    }
  })

  it("masks secrets before it cuts an argument, and cuts nothing else", () => {
    const redactor = Redaction.make([Redacted.make("hunter\u0007two")])
    const long = `${"x".repeat(494)} `
    const text = InteractionXml.encodeRequest(
      requestOf(
        editable({
          command: `${long}sk-abcdefghijklmnop1234`,
          edge: `${"x".repeat(499)}😀`,
          exact: "y".repeat(500),
          plain: "hunter\u0007two",
          parts: { token: "hunter\u0007two" },
          broken: "sk-abcdefgh\u0000ijklmnop1234"
        })
      ),
      redactor
    )
    assert.include(text, `<arg name="command">${long}[REDA...</arg>`)
    assert.include(text, `<arg name="edge">${"x".repeat(499)}...</arg>`)
    assert.include(text, `<arg name="exact">${"y".repeat(500)}</arg>`)
    assert.notInclude(text, "hunter")
    assert.notInclude(text, "sk-abc")
    const prompt = "p".repeat(2000)
    assert.include(InteractionXml.encodeRequest(requestOf(new Interaction.Ask({ prompt }))), prompt)
    const broken = InteractionXml.encodeRequest(
      requestOf(new Interaction.Ask({ prompt: "sk-abcdefgh\u0000ijklmnop1234" }))
    )
    assert.include(broken, "<prompt>[REDACTED]</prompt>")
  })

  it("shows arguments that are no JSON without failing", () => {
    const round: { self?: unknown } = {}
    round.self = round
    const text = InteractionXml.encodeRequest(requestOf(editable({ round, big: 1n, none: undefined })))
    assert.include(text, '<arg name="round">(cannot be shown)</arg>')
    assert.include(text, '<arg name="big">(cannot be shown)</arg>')
    assert.include(text, '<arg name="none"/>')
  })
})

describe("InteractionXml.isShownWhole", () => {
  const whole = (interaction: Interaction.Interaction) =>
    InteractionXml.isShownWhole(requestOf(interaction), Redaction.make([Redacted.make("hunter2-secret")]))

  it("knows when a part of the request is not in what is shown", () => {
    const details = { details: "{}", format: "json" } as const
    const cases: ReadonlyArray<readonly [boolean, Interaction.Interaction]> = [
      [true, call({})],
      [true, editable({ command: "x".repeat(RequestXml.maxArgument) })],
      [false, editable({ command: "x".repeat(RequestXml.maxArgument + 1) })],
      [false, editable({ command: { deep: "x".repeat(RequestXml.maxArgument) } })],
      [true, call({ argumentsSummary: "xx…", display: details })],
      [false, call({ argumentsSummary: "xx…" })],
      [false, call({ argumentsSummary: "xx…", display: { summary: "write" } })],
      [false, call({ display: { ...details, truncated: true } })],
      [false, call({ display: { details: "rm \u0000-rf", format: "text" } })],
      [false, call({ display: { details: "curl -u hunter2-secret", format: "text" } })],
      [false, call({ argumentsSummary: `rm ${Redaction.mask}` })],
      [true, form],
      [false, new Interaction.Ask({ prompt: `What is ${Redaction.mask}?` })]
    ]
    for (const [expected, interaction] of cases) {
      assert.strictEqual(whole(interaction), expected, JSON.stringify(interaction).slice(0, 200))
    }
  })
})

describe("InteractionXml.readReply", () => {
  it("takes nothing that stands with something else, or is not an element", () => {
    const reply = decision("yes")
    for (const text of [
      "",
      "yes",
      "y",
      "all",
      `ok ${reply}`,
      `${reply} ok`,
      `${reply}.`,
      `${reply}${reply}`,
      `${reply}\n${decision("no")}`,
      `\`\`\`xml\n${reply}\n\`\`\``,
      `[SUBAGENT agent_id=a event=X]\n${reply}`,
      `<user_message>${reply}</user_message>`,
      `<permission_response request_id="abc123">${reply}</permission_response>`,
      `<?xml version="1.0"?>${reply}`,
      `<!-- yes -->${reply}`,
      `<!DOCTYPE permission_response>${reply}`,
      `<permission_request request_id="abc123">${reply}</permission_request>`,
      "<permission_response><decision>yes</decision></permission_response>",
      '<permission_response request_id="abc123"><decision>yes',
      permission("<decision>yes</comment>"),
      permission("&yes;"),
      permission("&#0;"),
      permission("<decision>\ud800yes</decision>"),
      permission("<decision>yes</decision><!-- no -->"),
      permission("<a>".repeat(100)),
      '<interaction_cancelled request_id="abc123"/>',
      '<interaction_response kind="Approve" request_id="abc123"><decision>yes</decision></interaction_response>',
      reply.replaceAll("permission_response", "Permission_Response"),
      reply.replaceAll("permission_response", "p:permission_response"),
      decision(" ".repeat(6_200_000))
    ]) {
      assert.isString(reason(call({}), text), text)
    }
    assert.deepStrictEqual(right(call({}), ` \r\n\t${reply}\n`), { decision: "allow", scope: "once" })
  })

  it("knows a reply that goes nowhere from words", () => {
    for (const text of [
      decision("yes"),
      decision("x"),
      '<permission_response request_id="1"><decision>yes',
      clarification("")
    ]) {
      assert.isTrue(InteractionXml.isReply(text), text)
    }
    for (const text of ["", "yes", "I allow it.", "<decision>yes</decision>", `ok ${decision("yes")}`]) {
      assert.isFalse(InteractionXml.isReply(text), text)
    }
  })

  it("reads a decision about this one call, and nothing that reaches further", () => {
    const allowed = { decision: "allow", scope: "once" } as const
    for (const word of ["yes", " Y\n", "once", "<![CDATA[yes]]>"]) {
      assert.deepStrictEqual(right(call({}), decision(word)), allowed, word)
    }
    const denied = { decision: "deny", scope: "once" } as const
    assert.deepStrictEqual(right(call({}), decision("no")), denied)
    for (const inside of [
      "<decision>comment</decision>\n<comment> use &lt;tmp&gt; </comment>",
      "<decision>no</decision><comment>use &lt;tmp&gt;</comment>",
      "<decision>c: use &lt;tmp&gt;</decision>"
    ]) {
      assert.deepStrictEqual(right(call({}), permission(inside)), { ...denied, comment: "use <tmp>" })
    }
    for (const word of [
      "turn",
      "t",
      "idle",
      "i",
      "always",
      "a",
      "all",
      "never",
      "edit",
      "e",
      "allow",
      "ask_user",
      ""
    ]) {
      assert.include(reason(call({}), decision(word)), "not for a model", word)
    }
    assert.include(reason(editable({}), decision("edit")), "not for a model")
    assert.include(reason(call({}), decision("y".repeat(1000))), "…")
  })

  it("reads no decision out of anything else", () => {
    assert.include(reason(call({}), permission("")), "no decision")
    assert.include(reason(call({}), permission("yes")), "text beside")
    assert.include(reason(call({}), decision("yes").replaceAll("decision>", "Decision>")), "does not belong")
    assert.include(reason(call({}), decision("yes<b>no</b>")), "text only")
    assert.include(reason(call({}), permission('<decision scope="all">yes</decision>')), "text only")
    assert.include(reason(call({}), permission("<decision>yes</decision><decision>no</decision>")), "twice")
    assert.isString(reason(call({}), permission("<decision>yes</decision><comment>fine</comment>")))
    assert.isString(reason(call({}), permission("<decision>c: a</decision><comment>b</comment>")))
    assert.include(reason(call({}), permission("<decision>c</decision>")), "comment")
    assert.include(reason(call({}), permission("<decision>c</decision><comment> </comment>")), "comment")
    assert.include(reason(call({}), permission("<decision>yes</decision><cancelled/>")), "does not belong")
    assert.include(
      reason(editable({}), permission("<decision>yes</decision><edited_arguments>{}</edited_arguments>")),
      "does not belong"
    )
  })

  it("reads answers by number or by the choice's own text, and free text as it stands", () => {
    assert.deepStrictEqual(
      right(
        form,
        clarification(
          '<answer index="3"> a &lt;b&gt; </answer>\n<answer index="2">3, Lint,3</answer><answer index="1">staging</answer>'
        )
      ),
      {
        "1": { selected: 2, text: "Staging" },
        "2": { selected: [3, 1], texts: ["tests", "lint"] },
        "3": { value: " a <b> " }
      }
    )
    assert.deepStrictEqual(right(form, clarification('<answer index="1"/><answer index="3">cancel</answer>')), {
      "1": { selected: 2, text: "Staging" },
      "2": { skipped: true },
      "3": { value: "cancel" }
    })
  })

  it("reports questions that are missing, unknown, repeated or answered with something else", () => {
    const rest = '<answer index="3">x</answer>'
    assert.include(reason(form, clarification("")), "Question 1: an answer is required. Question 3:")
    assert.include(reason(form, clarification(rest)), "Question 1")
    assert.include(reason(form, clarification(`<answer index="1">3</answer>${rest}`)), "from 1 to 2")
    assert.include(reason(form, clarification(`<answer index="1">cancel</answer>${rest}`)), "from 1 to 2")
    assert.include(
      reason(form, clarification(`<answer index="1">1</answer><answer index="3"> </answer>`)),
      "Question 3"
    )
    assert.include(reason(form, clarification(`${rest}${rest}`)), "answered twice")
    assert.include(reason(form, clarification(`<answer>1</answer>${rest}`)), "no index")
    for (const index of ["0", "4", "-1", "01", "1.0", " 1", "1e0", "", "__proto__"]) {
      assert.include(reason(form, clarification(`<answer index="${index}">1</answer>${rest}`)), "no question", index)
    }
    assert.include(reason(form, clarification(`Staging ${rest}`)), "text beside")
    assert.include(reason(form, clarification(`<answers>${rest}</answers>`)), "does not belong")
    assert.include(reason(form, clarification("<cancelled/>")), "does not belong")
    assert.isString(reason(form, clarification(" Cancel ")))
  })

  it("reads the other kinds, and takes nothing for an answer that says nothing", () => {
    const { interaction: confirm } = samples.Confirm
    assert.strictEqual(right(samples.Select.interaction, response("Select", "<answer>Blue</answer>")), 2)
    assert.include(reason(samples.Select.interaction, response("Select", "<answer>0</answer>")), "from 1 to 3")
    assert.isString(reason(samples.Select.interaction, response("Select", "<answer>cancel</answer>")))
    assert.strictEqual(right(confirm, response("Confirm", "<answer>no</answer>")), false)
    const eager = new Interaction.Confirm({ prompt: "Deploy?", default: true })
    for (const inside of ["<answer> </answer>", "<answer/>", "", "<cancelled/>"]) {
      assert.isString(reason(eager, response("Confirm", inside)), inside)
      assert.isString(reason(samples.Ask.interaction, response("Ask", inside)), inside)
    }
    assert.strictEqual(right(samples.Ask.interaction, response("Ask", "<answer>cancel</answer>")), "cancel")
  })

  it("takes no answer to another request or to another kind", () => {
    assert.include(reason(call({}), decision("yes").replace("abc123", "abc124")), "another request")
    assert.include(reason(call({}), decision("yes").replace("abc123", "abc123 ")), "another request")
    assert.include(reason(call({}), clarification("<decision>yes</decision>")), "does not answer Approve")
    assert.include(reason(samples.Confirm.interaction, response("Ask", "<answer>yes</answer>")), "does not answer")
    assert.include(reason(form, response("Clarify", '<answer index="1">1</answer>')), "does not answer")
  })
})
