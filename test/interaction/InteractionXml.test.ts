import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Redaction from "../../src/core/Redaction.js"
import type { CorrelationId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionXml from "../../src/interaction/InteractionXml.js"
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

const decode = <I extends Interaction.Interaction>(interaction: I, text: string) =>
  InteractionXml.decodeAnswer(requestOf(interaction), InteractionXml.parseReply(text))

const right = <I extends Interaction.Interaction>(interaction: I, text: string): Interaction.Answer<I> =>
  Either.getOrThrowWith(decode(interaction, text), ({ reason }) => new Error(`${text}: ${reason}`))

const left = (interaction: Interaction.Interaction, text: string): InteractionXml.Unreadable =>
  Either.match(decode(interaction, text), {
    onLeft: (unreadable) => unreadable,
    onRight: (answer) => assert.fail(`${text} was read as ${JSON.stringify(answer)}`)
  })

/** The reason why something is no answer; never that it withdraws the request. */
const reason = (interaction: Interaction.Interaction, text: string): string => {
  const unreadable = left(interaction, text)
  assert.isFalse(unreadable.cancelled, text)
  return unreadable.reason
}

const permission = (inside: string) => `<permission_response request_id="abc123">${inside}</permission_response>`
const decision = (text: string) => permission(`<decision>${text}</decision>`)
const clarification = (inside: string) =>
  `<clarification_response request_id="abc123">${inside}</clarification_response>`
const response = (kind: Interaction.Kind, inside: string) =>
  `<interaction_response kind="${kind}" request_id="abc123">${inside}</interaction_response>`

const parsed = (text: string) => ({ ...InteractionXml.parseReply(text) })

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

describe("InteractionXml.encodeAnswer", () => {
  const encode = <I extends Interaction.Interaction>(interaction: I, answer: Interaction.Answer<I>) =>
    Option.getOrUndefined(InteractionXml.encodeAnswer(requestOf(interaction), answer))

  it("writes decisions in the words of the options", () => {
    const words = (["once", "turn", "idle", "session", "all"] as const).map((scope) =>
      encode(call({}), { decision: "allow", scope })
    )
    assert.deepStrictEqual(words, ["yes", "turn", "idle", "always", "all"].map(decision))
    assert.strictEqual(encode(call({}), { decision: "deny", scope: "session" }), decision("never"))
    assert.strictEqual(
      encode(call({}), { decision: "deny", scope: "once", comment: "use <tmp>" }),
      permission("<decision>no</decision><comment>use &lt;tmp&gt;</comment>")
    )
    assert.strictEqual(
      encode(editable({}), { decision: "edit", editedArguments: { command: "ls\u0000\uffff" } }),
      permission(
        "<decision>edit</decision><edited_arguments>{&quot;command&quot;:&quot;ls\\u0000\\uffff&quot;}</edited_arguments>"
      )
    )
  })

  it("writes choices by number and leaves out what was skipped", () => {
    assert.strictEqual(
      encode(form, {
        "1": { selected: 2, text: "Staging" },
        "2": { selected: [3, 1], texts: ["tests", "lint"] },
        "3": { value: " so \n that " }
      }),
      clarification('<answer index="1">2</answer><answer index="2">3,1</answer><answer index="3"> so \n that </answer>')
    )
    assert.strictEqual(
      encode(form, { "1": { selected: 1, text: "Development" }, "2": { skipped: true }, "3": { value: "x" } }),
      clarification('<answer index="1">1</answer><answer index="3">x</answer>')
    )
  })

  it("never writes a password, nor arguments that are not JSON, nor what is too long to be read", () => {
    assert.isUndefined(encode(samples["Auth.Password"].interaction, Redacted.make(InteractionSample.password)))
    assert.isUndefined(encode(editable({}), { decision: "edit", editedArguments: { command: 1n } }))
    assert.isUndefined(encode(editable({}), { decision: "edit", editedArguments: { toJSON: () => undefined } }))
    assert.isUndefined(encode(samples.Ask.interaction, "&".repeat(1_300_000)))
  })
})

describe("InteractionXml.parseReply", () => {
  it("takes an option word alone for a bare answer, and other words for conversation", () => {
    for (const word of [
      "y",
      "YES",
      " n\n",
      "no",
      "a",
      "always",
      "t",
      "turn",
      "i",
      "idle",
      "once",
      "never",
      "all",
      "c: not here"
    ]) {
      assert.deepStrictEqual(parsed(word), { _tag: "Bare", text: word })
    }
    for (const words of [
      "",
      "yes please",
      "ok",
      "deny",
      "allow",
      "c",
      "c:",
      "e",
      "edit",
      "cancel",
      "1",
      "{}",
      "say <y>"
    ]) {
      const reply = parsed(words)
      assert.strictEqual(reply._tag, "Malformed", words)
      assert.notProperty(reply, "requestId")
    }
  })

  it("takes a reply for conversation when anything stands around it", () => {
    const reply = decision("yes")
    for (const text of [
      `ok ${reply}`,
      `${reply} ok`,
      `${reply}${reply}`,
      `[SUBAGENT agent_id=a event=X]\n${reply}`,
      `<user_message>${reply}</user_message>`,
      `<?xml version="1.0"?>${reply}`,
      `<!-- yes -->${reply}`,
      `<!DOCTYPE permission_response>${reply}`,
      `<permission_request request_id="abc123">${reply}</permission_request>`,
      "<permission_response><decision>yes</decision></permission_response>",
      reply.replaceAll("permission_response", "Permission_Response"),
      reply.replaceAll("permission_response", "p:permission_response")
    ]) {
      const read = parsed(text)
      assert.strictEqual(read._tag, "Malformed", text)
      assert.notProperty(read, "requestId", text)
    }
    assert.strictEqual(parsed(` \r\n\t${reply}\n`)._tag, "Response")
  })

  it("says which request a spoilt reply was for", () => {
    for (const text of [
      '<permission_response request_id="abc123"><decision>yes',
      permission("<decision>yes</comment>"),
      permission("&yes;"),
      permission("&toString;"),
      permission("&#0;"),
      permission("&#xD800;"),
      permission("<decision>\ud800yes</decision>"),
      permission("\udc00"),
      permission("\u0007"),
      permission("<!-- no -->"),
      permission("<?x y?>"),
      permission("<a b='1' b='2'/>"),
      permission("<a>".repeat(100)),
      '<interaction_cancelled request_id="abc123">now</interaction_cancelled>',
      '<interaction_response request_id="abc123"/>',
      '<interaction_response kind="Approve" request_id="abc123"><decision>yes</decision></interaction_response>',
      '<interaction_response kind="toString" request_id="abc123"/>'
    ]) {
      const reply = InteractionXml.parseReply(text)
      assert.isTrue(InteractionXml.is("Malformed")(reply) && reply.requestId === "abc123", text)
    }
  })

  it("reads a withdrawal", () => {
    assert.deepStrictEqual(parsed('<interaction_cancelled request_id="abc123"/>'), {
      _tag: "Cancelled",
      requestId: "abc123"
    })
    assert.deepStrictEqual(parsed(InteractionXml.encodeCancelled("a\n<b", "main")), {
      _tag: "Cancelled",
      requestId: "a\n<b",
      by: "main"
    })
  })

  it("refuses a text too long to be a reply", () => {
    assert.strictEqual(parsed(decision(" ".repeat(6_200_000)))._tag, "Malformed")
  })
})

describe("InteractionXml.decodeAnswer", () => {
  it("reads a decision by any option's word, with the comment or the arguments that belong to it", () => {
    assert.deepStrictEqual(right(call({}), decision(" T\n")), { decision: "allow", scope: "turn" })
    assert.deepStrictEqual(right(call({}), decision("<![CDATA[never]]>")), { decision: "deny", scope: "session" })
    assert.deepStrictEqual(right(call({}), decision("c: not &amp; here")), {
      decision: "deny",
      scope: "once",
      comment: "not & here"
    })
    assert.deepStrictEqual(right(call({}), permission("<decision>c</decision>\n<comment> use tmp </comment>")), {
      decision: "deny",
      scope: "once",
      comment: " use tmp "
    })
    assert.deepStrictEqual(
      right(editable({}), permission('<decision>e</decision><edited_arguments>{"command": "ls"}</edited_arguments>')),
      { decision: "edit", editedArguments: { command: "ls" } }
    )
    assert.deepStrictEqual(right(call({}), " ALL "), { decision: "allow", scope: "all" })
  })

  it("reads no decision out of anything else", () => {
    const edit = (json: string) => permission(`<decision>edit</decision><edited_arguments>${json}</edited_arguments>`)
    assert.include(reason(call({}), permission("")), "<decision> is missing")
    assert.include(reason(call({}), permission("yes")), "text beside")
    assert.include(reason(call({}), decision("")), "not an option")
    assert.include(reason(call({}), decision("allow")), '"allow" is not an option')
    assert.include(reason(call({}), decision("y".repeat(1000))), "…")
    assert.include(reason(call({}), decision("yes").replaceAll("decision>", "Decision>")), "does not belong")
    assert.include(reason(call({}), decision("yes<b>no</b>")), "text only")
    assert.include(reason(call({}), permission("<decision>yes</decision><decision>no</decision>")), "twice")
    assert.include(reason(call({}), permission("<decision>yes</decision><comment>fine</comment>")), "denial")
    assert.include(reason(call({}), permission("<decision>c: a</decision><comment>b</comment>")), "denial")
    assert.include(reason(call({}), permission("<decision>c</decision>")), "<comment>")
    assert.include(reason(call({}), permission("<decision>c</decision><comment> </comment>")), "<comment>")
    assert.include(reason(call({}), edit('{"command": "ls"}')), "not an option")
    assert.include(reason(editable({}), decision("edit")), "<edited_arguments>")
    assert.include(reason(editable({}), edit("ls")), "JSON object")
    assert.include(reason(editable({}), edit("null")), "JSON object")
    assert.isString(reason(editable({}), edit('["ls"]')))
    assert.include(reason(editable({}), edit('{"cwd": "/"}')), "cannot be edited: cwd")
    assert.include(reason(editable({}), edit('{"__proto__": {"command": "ls"}}')), "__proto__")
    const both = edit('{"command": "ls"}').replace(">edit<", ">yes<")
    assert.include(reason(editable({}), both), "belongs to the decision edit")
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
    assert.include(
      reason(form, clarification(`<answer index="1">1</answer><answer index="3"> </answer>`)),
      "Question 3"
    )
    assert.include(reason(form, clarification(`${rest}${rest}`)), "answered twice")
    assert.include(reason(form, clarification(`<answer>1</answer>${rest}`)), "no index")
    for (const index of ["0", "4", "-1", "01", "1.0", " 1", "1e0", ""]) {
      assert.include(reason(form, clarification(`<answer index="${index}">1</answer>${rest}`)), "no question", index)
    }
    assert.include(reason(form, clarification(`Staging ${rest}`)), "text beside")
    assert.include(reason(form, clarification(`<answers>${rest}</answers>`)), "does not belong")
  })

  it("tells a withdrawal from a mistake", () => {
    const withdrawn = (interaction: Interaction.Interaction, text: string) =>
      assert.isTrue(left(interaction, text).cancelled, text)
    withdrawn(form, clarification("<cancelled/>"))
    withdrawn(form, clarification(" Cancel\n"))
    withdrawn(form, clarification('<answer index="1">cancel</answer><answer index="3">x</answer>'))
    withdrawn(form, '<interaction_cancelled request_id="abc123"/>')
    withdrawn(call({}), permission("<cancelled></cancelled>"))
    withdrawn(samples.Ask.interaction, response("Ask", "<cancelled/>"))
    withdrawn(samples.Select.interaction, response("Select", "<answer>cancel</answer>"))
    assert.include(reason(form, '<interaction_cancelled request_id="other"/>'), "another request")
    assert.include(reason(form, clarification("<cancelled/> not")), "alone")
    assert.include(reason(form, clarification("<cancelled>no</cancelled>")), "empty")
    assert.include(reason(form, "cancel"), "neither")
    assert.strictEqual(right(samples.Ask.interaction, response("Ask", "<answer>cancel</answer>")), "cancel")
  })

  it("reads the other kinds, and takes nothing for an answer that says nothing", () => {
    const { interaction: grant } = samples.grantStageTool
    const { interaction: confirm } = samples.Confirm
    assert.deepStrictEqual(right(grant, response("grantStageTool", "<outcome>Defer</outcome><note> later </note>")), {
      outcome: "defer",
      note: " later "
    })
    assert.include(reason(grant, response("grantStageTool", "<outcome>y: a</outcome><note>b</note>")), "two notes")
    assert.include(reason(grant, response("grantStageTool", "<note>approve</note>")), "<outcome> is missing")
    assert.isString(
      reason(
        samples.approveSubagentEnvelope.interaction,
        response("approveSubagentEnvelope", "<outcome>defer</outcome>")
      )
    )
    assert.strictEqual(right(samples.Select.interaction, response("Select", "<answer>Blue</answer>")), 2)
    assert.include(reason(samples.Select.interaction, response("Select", "<answer>0</answer>")), "from 1 to 3")
    assert.strictEqual(right(confirm, response("Confirm", "<answer>no</answer>")), false)
    const eager = new Interaction.Confirm({ prompt: "Deploy?", default: true })
    assert.include(reason(eager, response("Confirm", "<answer> </answer>")), "empty")
    assert.include(reason(eager, response("Confirm", "")), "missing")
    assert.strictEqual(
      right(samples["Auth.DeviceCode"].interaction, response("Auth.DeviceCode", "<answer>done</answer>")),
      "completed"
    )
  })

  it("takes no answer to another request, to another kind, or to a password", () => {
    assert.include(reason(call({}), decision("yes").replace("abc123", "abc124")), "another request")
    assert.include(reason(call({}), clarification("<decision>yes</decision>")), "answers Clarify, but Approve")
    assert.include(reason(samples.Confirm.interaction, response("Ask", "<answer>yes</answer>")), "answers Ask")
    assert.include(reason(samples.Confirm.interaction, "yes"), "bare word")
    const password = response("Auth.Password", `<answer>${InteractionSample.password}</answer>`)
    assert.notInclude(reason(samples["Auth.Password"].interaction, password), InteractionSample.password)
  })
})
