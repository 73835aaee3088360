import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as ConsolePrompt from "../../../src/tui/console/ConsolePrompt.js"
import * as Display from "../../../src/tui/terminal/Display.js"
import type { SessionId, ToolCallId } from "../../../src/core/Id.js"
import * as Interaction from "../../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../../src/interaction/InteractionRequest.js"
import * as PermissionOption from "../../../src/interaction/PermissionOption.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as Runs from "../../kit/Runs.js"

const look = { color: false, now: 0 }

const inChild = <I extends Interaction.Interaction>(interaction: I) =>
  Effect.map(InteractionSample.request(interaction), (request): InteractionRequest<I> => ({
    ...request,
    agentPath: "main/code_reviewer",
    subagentId: "sub_1",
    parentSessionId: "ses_1" as SessionId
  }))

const approve = (more: Partial<ConstructorParameters<typeof Interaction.Approve>[0]> = {}) =>
  new Interaction.Approve({
    toolCallId: "call_1" as ToolCallId,
    tool: "run_command",
    argumentsSummary: '{"command":"ls"}',
    approvalKey: "ls",
    options: PermissionOption.offered({ editable: more.editable !== undefined }),
    ...more
  })

describe("render", () => {
  it.effect.each([...InteractionSample.kinds])("begins with who asks, for %s", (kind) =>
    Effect.gen(function* () {
      const request = yield* inChild(InteractionSample.samples[kind].interaction)
      assert.match(ConsolePrompt.render(request, look).title, /^\[subagent:code_reviewer\] \S/)
      const own = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
      assert.notMatch(ConsolePrompt.render(own, look).title, /^\[/)
    })
  )

  it.effect("bounds what is drawn of a call, also for somebody who wants to see all of it", () =>
    Effect.gen(function* () {
      const patch = `--- a/a.ts\n+++ b/a.ts\n@@ -1,1 +1,2 @@\n a\n+${"x".repeat(300_000)}\n`
      const sizeOf = (lines: ReadonlyArray<string> = []) => lines.join("\n").length
      for (const format of ["text", "markdown", "diff"] as const) {
        const details = format === "diff" ? patch : `one\n${"words ".repeat(50_000)}`
        const display = { summary: "s".repeat(300_000), details, format }
        const request = yield* InteractionSample.request(approve({ display }))
        const { lines, whole } = ConsolePrompt.render(request, { ...look, diff: {}, draw: (text) => [text] })
        assert.isBelow(sizeOf(lines), 12_000)
        assert.isBelow(sizeOf(whole?.()), 190_000)
      }
    })
  )

  it.effect("says in a row each what always allows and what never denies", () =>
    Effect.gen(function* () {
      for (const [tool, approvalKey, said, denied] of [
        ["run_command", "(reading) echo *", "echo commands that only read", "every echo command"],
        ["run_command", "npm test", "exactly `npm test`", "`npm test`, also inside a longer one"],
        ["run_command", '(in "web") $ bash', 'exactly `bash`, in "web"', "`bash`, also inside a longer one"],
        ["write_file", "write_file", "every call of write_file"],
        ["fetch_url", "fetch_url(url=https://example.com/*)", "every address at https://example.com"],
        ["fetch_url", "fetch_url(url=https://[[]2606:4700::1]/*)", "every address at https://[2606:4700::1]"],
        ["fetch_url", "fetch_url(url=no address[*])", "fetch_url(url=no address[*])"],
        ["run_command", "a\u001b it", "exactly `a␛ it`", "`a␛ it`, also inside a longer one"]
      ] as const) {
        const interaction = { ...InteractionSample.samples.Approve.interaction, tool, approvalKey }
        const approve = Interaction.approve(interaction as Interaction.Approve)
        const { lines } = ConsolePrompt.render(yield* InteractionSample.request(approve), { color: false, now: 0 })
        assert.deepStrictEqual(lines.slice(-2), [`\`always\` allows: ${said}`, `\`never\` denies: ${denied ?? said}`])
        const [, rule] = ConsolePrompt.projectQuestion(approve)
        assert.strictEqual(rule, `  ${said}`)
      }
    })
  )

  it.effect("shows the options in their order, and what an answer that lasts means", () =>
    Effect.gen(function* () {
      const prompt = ConsolePrompt.render(yield* inChild(approve()), look)
      assert.strictEqual(prompt.title, "[subagent:code_reviewer] Allow run_command?")
      assert.deepStrictEqual(prompt.lines, [
        '{"command":"ls"}',
        "[y]es [n]o [a]lways [t]urn [i]dle once never all [c]omment",
        "`always` allows: ls",
        "`never` denies: ls"
      ])
      assert.include(prompt.help, "  [t]urn     allow until this turn ends")
      assert.isFalse(prompt.help.some((line) => line.includes("once ")))
    })
  )

  it.effect("reads a command that stands there once, and says so of a rule about exactly that", () =>
    Effect.gen(function* () {
      const last = (approvalKey: string, details: string, more: Partial<Interaction.Approve> = {}) =>
        Effect.map(
          InteractionSample.request(
            approve({
              ...more,
              approvalKey,
              display: { summary: `run ${details}`, details, format: "code", language: "sh" }
            })
          ),
          (request) => ConsolePrompt.render(request, look).lines.filter((line) => line.startsWith("`"))
        )
      const never = "`never` denies: this command, also inside a longer one"
      assert.deepStrictEqual(yield* last("make it", "make it\n"), ["`always` allows: exactly this command", never])
      assert.deepStrictEqual(yield* last("$ make", "make"), ["`always` allows: exactly this command", never])
      assert.deepStrictEqual(yield* last('(in "web") make it', "make it"), [
        "`always` allows: exactly this command, in web",
        never
      ])
      assert.deepStrictEqual(yield* last("make it", "make that"), [
        "`always` allows: exactly `make it`",
        "`never` denies: `make it`, also inside a longer one"
      ])
      assert.deepStrictEqual(yield* last("(reading) git *", "git status"), [
        "`always` allows: git commands that only read",
        "`never` denies: every git command"
      ])
      assert.deepStrictEqual(yield* last("make it", "make it", { onceOnly: true }), [never])
      assert.deepStrictEqual(yield* last("", "make it"), [])
    })
  )

  it.effect("offers to keep a rule for the project, but none with a secret in it", () =>
    Effect.gen(function* () {
      const offered = (approvalKey: string) =>
        Effect.map(InteractionSample.request(approve({ approvalKey })), (request) =>
          ConsolePrompt.render(request, { ...look, project: true }).help.some((line) => line.includes("[p]roject"))
        )
      assert.isTrue(yield* offered("ls -l"))
      for (const key of ["curl [REDACTED] u", "psql postgres://app:letmein@db/x", ""])
        assert.isFalse(yield* offered(key), key)
    })
  )

  it.effect("colours a diff, and says what is missing and what to beware of", () =>
    Effect.gen(function* () {
      const display = {
        summary: "change a.ts",
        details: "--- a.ts\n+++ a.ts\n@@ -1 +1 @@\n-old\n+new\n same\n",
        format: "diff" as const,
        truncated: true,
        warnings: ["outside the plan"]
      }
      const prompt = ConsolePrompt.render(yield* inChild(approve({ display })), { ...look, color: true })
      const style = Display.style(true)
      assert.deepStrictEqual(prompt.lines.slice(0, 9), [
        "change a.ts",
        style.bold("--- a.ts"),
        style.bold("+++ a.ts"),
        style.cyan("@@ -1 +1 @@"),
        style.red("-old"),
        style.green("+new"),
        " same",
        style.dim("(something is left out here)"),
        style.yellow("! outside the plan")
      ])
    })
  )

  it.effect("lays JSON out and names the language of code", () =>
    Effect.gen(function* () {
      const json = { details: '{"a":[1]}', format: "json" as const }
      const code = { details: "print(1)\n", format: "code" as const, language: "python" }
      const lines = (display: typeof json | typeof code) =>
        Effect.map(inChild(approve({ display })), (request) => ConsolePrompt.render(request, look).lines)
      assert.deepStrictEqual((yield* lines(json)).slice(0, 5), ["{", '  "a": [', "    1", "  ]", "}"])
      assert.deepStrictEqual((yield* lines(code)).slice(0, 2), ["python:", "print(1)"])
    })
  )

  it.effect("shows a command of one line once, and every other command whole below its summary", () =>
    Effect.gen(function* () {
      const lines = (details: string, summary: string, more: { readonly truncated?: true } = {}) =>
        Effect.map(
          inChild(approve({ display: { summary, details, format: "code", language: "sh", ...more } })),
          (request) => ConsolePrompt.render(request, look).lines.slice(0, -3)
        )
      assert.deepStrictEqual(yield* lines("ls -l\n", "run ls -l in /w"), ["run ls -l in /w"])
      assert.deepStrictEqual(yield* lines("ls\nrm x", "run ls … in /w"), ["run ls … in /w", "sh:", "ls", "rm x"])
      // What the summary has in another form, or not to its end, is shown as it is.
      assert.deepStrictEqual(yield* lines("ls  -l", "run ls -l in /w"), ["run ls -l in /w", "sh:", "ls  -l"])
      assert.deepStrictEqual(yield* lines("ls -l x", "run ls -l … in /w"), ["run ls -l … in /w", "sh:", "ls -l x"])
      assert.include(yield* lines("ls", "run ls in /w", { truncated: true }), "sh:")
      assert.deepStrictEqual(yield* lines("", "run  in /w"), ["run  in /w", "sh:", ""])
    })
  )

  it.effect("shows url, code and how long the code is good for", () =>
    Effect.gen(function* () {
      const interaction = new Interaction.AuthDeviceCode({ url: "https://e.org/d", code: "AB-CD", expiresAt: 570_000 })
      const request = yield* InteractionSample.request(interaction)
      assert.deepStrictEqual(ConsolePrompt.render(request, look).lines, [
        "open https://e.org/d",
        "and enter the code AB-CD",
        "the code expires in 9 min 30 s"
      ])
      assert.include(ConsolePrompt.render(request, { ...look, now: 570_000 }).lines, "the code has expired")
    })
  )

  it("numbers the choices of a question and marks its default", () => {
    const [question] = InteractionSample.samples.Clarify.interaction.questions
    assert.deepStrictEqual(ConsolePrompt.renderQuestion(question, 1, 2, look), [
      "Question 1/2 [required]",
      "Which database?",
      "1. postgres",
      "2. sqlite (default)",
      "type a number or a choice; cancel ends all questions"
    ])
  })

  it.effect("shows an envelope as a list of tools, with task, model and depth", () =>
    Effect.gen(function* () {
      const request = yield* InteractionSample.request(
        new Interaction.ApproveSubagentEnvelope({
          ...InteractionSample.samples.approveSubagentEnvelope.interaction,
          subagentId: "subagent_2",
          depth: 2,
          requestedEnvelope: ["read_file", "run_command"],
          promptSummary: "Run the tests",
          model: { providerId: "acme", modelId: "small/fast" }
        })
      )
      const { title, lines } = ConsolePrompt.render(request, look)
      assert.include(title, "Let subagent subagent_2 use these tools without asking?")
      assert.deepStrictEqual(lines, [
        "- read_file",
        "- run_command",
        "task: Run the tests",
        "model: acme/small/fast",
        "depth: 2 (a subagent of a subagent)",
        "[y] approve  [n] deny; a note may follow a colon"
      ])
    })
  )

  it.effect("lets nothing that others wrote steer the terminal or pass for a title", () =>
    Effect.gen(function* () {
      const evil = "\x1b[2Jx\rAllow safe_tool?\n\u202ey"
      const requests = [
        approve({
          tool: evil,
          argumentsSummary: evil,
          approvalKey: evil,
          display: { summary: evil, warnings: [evil] }
        }),
        approve({ display: { details: evil, format: "code", language: evil } }),
        new Interaction.GrantStageTool({
          ...InteractionSample.samples.grantStageTool.interaction,
          tool: evil,
          argsSummary: evil,
          reason: evil,
          stageExecutionId: evil
        }),
        new Interaction.ApproveSubagentEnvelope({
          ...InteractionSample.samples.approveSubagentEnvelope.interaction,
          subagentId: evil,
          requestedEnvelope: [evil],
          promptSummary: evil
        }),
        new Interaction.Clarify({
          context: evil,
          questions: [{ text: evil, question_type: "single_choice", choices: [evil], required: true }]
        }),
        new Interaction.Ask({ prompt: evil }),
        new Interaction.Select({ prompt: evil, options: [evil] }),
        new Interaction.Confirm({ prompt: evil, default: true }),
        new Interaction.AuthDeviceCode({ url: evil, code: evil, expiresAt: 0 }),
        new Interaction.AuthPassword({ prompt: evil })
      ]
      for (const interaction of requests) {
        const request = { ...(yield* inChild(interaction)), agentPath: `main/${evil}` }
        const { title, lines, label, help } = ConsolePrompt.render(request, look)
        assert.notInclude(title, "\n")
        for (const text of [title, ...lines, label, ...help]) assert.notMatch(text, /[^\P{Cc}\n]|\u202e/u)
      }
    })
  )
})

describe("parse", () => {
  const words = new Set(["y", "yes", "a", "always", "t", "turn", "i", "idle", "once", "all"])
  // Lines that are close to an option are the interesting ones.
  const nearly = FastCheck.tuple(
    FastCheck.constantFrom(
      "y",
      "yes",
      "a",
      "always",
      "t",
      "turn",
      "i",
      "idle",
      "once",
      "all",
      "approve",
      "e",
      "edit",
      "ok",
      "1",
      "true"
    ),
    FastCheck.constantFrom(
      "",
      " ",
      "!",
      ".",
      ",",
      "\u0000",
      "\x1b[C",
      "\n",
      "s",
      "es",
      "\u200b",
      "y",
      ";",
      ":",
      " please"
    ),
    FastCheck.constantFrom("", " ", "y", "no", "\u00a0x", "!", "ы", "_")
  ).map((parts) => parts.join(""))
  const lines = FastCheck.oneof(
    nearly,
    FastCheck.string({ maxLength: 12 }),
    FastCheck.string({ unit: "binary", maxLength: 12 })
  )

  const permits = (parsed: ConsolePrompt.Parsed<unknown>) =>
    parsed._tag === "Answered" && InteractionSample.allows(parsed.answer)

  const never = (name: string, interaction: Interaction.Interaction, allowed: (line: string) => boolean) =>
    it(`allows ${name} for nothing but its exact words, in thousands of tries`, () => {
      let wrong = 0
      FastCheck.assert(
        FastCheck.property(lines, (line) => {
          if (allowed(line.trim().toLowerCase())) return true
          wrong++
          return !permits(ConsolePrompt.parse(interaction, line))
        }),
        { numRuns: Runs.of(100_000) }
      )
      assert.isAbove(wrong, Runs.of(50_000))
    })

  never("a call", approve(), (line) => words.has(line))
  never("a call that can be edited", InteractionSample.samples.Approve.interaction, (line) => words.has(line))
  const outcome = (line: string) => /^(?:y|yes|approve)\s*(?::[^]*)?$/.test(line)
  never("a stage's tool", InteractionSample.samples.grantStageTool.interaction, outcome)
  never("an envelope", InteractionSample.samples.approveSubagentEnvelope.interaction, outcome)
  never("a confirmation", InteractionSample.samples.Confirm.interaction, (line) => ["y", "yes", "true"].includes(line))

  it.each(["", " ", "\n", "\t"])("takes an empty line (%j) for no answer where authority is asked for", (line) => {
    for (const kind of ["Approve", "grantStageTool", "approveSubagentEnvelope"] as const) {
      assert.strictEqual(ConsolePrompt.parse(InteractionSample.samples[kind].interaction, line)._tag, "Again")
    }
  })

  it("takes only options that the request offers", () => {
    const narrow = approve({ options: PermissionOption.offered({ editable: false }).slice(0, 2) })
    assert.strictEqual(ConsolePrompt.parse(narrow, "all")._tag, "Again")
    assert.strictEqual(ConsolePrompt.parse(narrow, "c: words")._tag, "Again")
    assert.strictEqual(ConsolePrompt.parse(narrow, " YES ")._tag, "Answered")
  })

  it("asks for a comment or an edit only where there can be one", () => {
    assert.strictEqual(ConsolePrompt.parse(approve(), "c")._tag, "NeedsComment")
    assert.strictEqual(ConsolePrompt.parse(approve(), "e")._tag, "Again")
    assert.strictEqual(ConsolePrompt.parse(InteractionSample.samples.Approve.interaction, "e")._tag, "NeedsEdit")
  })

  it.each([...InteractionSample.kinds])("understands the usual answer to %s", (kind) => {
    const { interaction, line, encoded } = InteractionSample.samples[kind]
    const parsed = ConsolePrompt.parse(interaction, line)
    assert.strictEqual(parsed._tag, "Answered")
    if (parsed._tag === "Answered")
      assert.deepStrictEqual(Interaction.encodeAnswer(interaction, parsed.answer), encoded)
  })

  it("takes Enter for done when somebody signed in, and for the default of a confirmation", () => {
    const { "Auth.DeviceCode": device, Confirm } = InteractionSample.samples
    const answered = (answer: unknown) => ({ _tag: "Answered", answer })
    assert.deepEqual<unknown>(ConsolePrompt.parse(device.interaction, ""), answered("completed"))
    assert.deepEqual<unknown>(ConsolePrompt.parse(Confirm.interaction, ""), answered(false))
  })
})

describe("the arguments of a call", () => {
  const editable = (format: "text" | "json", current: Record<string, unknown>): ConsolePrompt.Editable => ({
    parameters: Object.keys(current),
    format,
    current
  })

  it("are a text when there is one text to edit", () => {
    const one = editable("text", { command: "ls" })
    assert.strictEqual(ConsolePrompt.editText(one), "ls")
    assert.deepStrictEqual(ConsolePrompt.parseEdit(one, "ls -la"), Either.right({ command: "ls -la" }))
  })

  it("are JSON otherwise", () => {
    const several = editable("text", { path: "a", count: 2 })
    assert.strictEqual(ConsolePrompt.editText(several), '{\n  "path": "a",\n  "count": 2\n}')
    assert.deepStrictEqual(ConsolePrompt.parseEdit(several, '{"count":3}'), Either.right({ count: 3 }))
    assert.strictEqual(ConsolePrompt.editText(editable("json", { command: "ls" })), '{\n  "command": "ls"\n}')
    assert.strictEqual(ConsolePrompt.editText(editable("text", { count: 2 })), '{\n  "count": 2\n}')
  })

  it.each(["", "{", "[1]", "null", '"text"', '{"other":1}'])("are not %j", (text) => {
    assert.isTrue(Either.isLeft(ConsolePrompt.parseEdit(editable("json", { command: "ls" }), text)))
  })
})
