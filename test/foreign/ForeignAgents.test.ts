import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import * as Bubblewrap from "../kit/Bubblewrap.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

/** Our own agent for editors, as one of others. */
const own = `${process.execPath} ${binary} acp`

/** An agent that does with each message what the body says; `send` writes one. */
const scripted = (place: Program.Place, body: string, agentCapabilities: object = {}) =>
  Effect.map(
    place.write(
      "agent.mjs",
      `import { createInterface } from "node:readline"
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
const update = (update) => send({ method: "session/update", params: { sessionId: "s", update } })
const text = (words) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } })
const options = [
  { optionId: "all", name: "All", kind: "allow_always" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]
const ask = (id, toolCall) =>
  send({ id, method: "session/request_permission", params: { sessionId: "s", toolCall, options } })
createInterface({ input: process.stdin }).on("line", async (line) => {
  const message = JSON.parse(line)
  if (message.method === "initialize")
    return send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: ${JSON.stringify(agentCapabilities)} } })
  if (message.method === "session/new") return send({ id: message.id, result: { sessionId: "s" } })
  ${body}
})
`
    ),
    (file) => `${process.execPath} ${file}`
  )

/** An agent that tells of its calls step by step, one call after the other. `ask` waits for the answer. */
const telling = (place: Program.Place, stories: ReadonlyArray<ReadonlyArray<string>>) =>
  scripted(
    place,
    `if (message.method === "session/prompt") {
      for (const [n, story] of ${JSON.stringify(stories)}.entries()) {
        let isFirst = true
        for (const step of story) {
          const call = { toolCallId: "t" + n, title: "act-" + n + ".", kind: "execute", rawInput: { command: "echo act-" + n } }
          if (step === "ask") {
            ask(1000 + n, call)
            await new Promise((answered) => { (globalThis.waiting ??= new Map()).set(1000 + n, answered) })
          } else update({ sessionUpdate: isFirst ? "tool_call" : "tool_call_update", ...call, status: step })
          isFirst = false
        }
      }
      return send({ id: message.id, result: { stopReason: "end_turn" } })
    }
    globalThis.waiting?.get(message.id)?.()`
  )

const states = fc.array(fc.constantFrom("pending", "in_progress", "completed", "failed"), { maxLength: 3 })

/** The calls that an answer or an audit names as acts that nobody decided about. */
const named = (text: string): ReadonlySet<number> =>
  new Set(
    [...text.matchAll(/(?:acted without asking|acted after a no|did not ask about): act-(\d+)\./g)].map(([, n]) =>
      Number(n)
    )
  )

const model = (command: string) => ["--model", `command:${command}`]

describe.concurrent("an agent of others", () => {
  it.scopedLive("asks through three processes, and the rules at the top decide", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const policy = yield* place.write("policy.json", {
        version: 1,
        whitelist: { patterns: ["foreign_execute(echo *)", "echo *"] },
        blacklist: { patterns: ["rm *"] }
      })
      yield* place.write("workspace/kept.txt", "kept")
      const args = ["run", "--policy", policy, ...model(`${own} --model 'command:${own}'`)]
      const allowed = yield* place.run([...args, "run echo deep"])
      assert.include(allowed.stdout, "deep")
      assert.strictEqual(allowed.code, 0, allowed.stderr)
      const denied = yield* place.run([...args, "run rm kept.txt"])
      assert.match(denied.stdout, /was not run/)
      assert.isTrue(yield* place.exists("workspace/kept.txt"))
      // Nobody is there to be asked about anything else.
      const halted = yield* place.run([...args, "write new.txt: hi"])
      assert.strictEqual(halted.code, 3)
      assert.isFalse(yield* place.exists("workspace/new.txt"))
    })
  )

  it.scopedLive("gets leave for one call, whatever lasts here, and its result is what it says", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        }
        if (message.id === 7) {
          const chosen = message.result.outcome.optionId
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed",
            content: [{ type: "content", content: { type: "text", text: "a b c" } }] })
          text("I got " + chosen)
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const { code, stdout } = yield* place.run(["run", "--mode", "allow", ...model(command), "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "I got yes")
      const [session] = (yield* place.run(["sessions", "list"])).stdout.split(" ")
      const { stdout: shown } = yield* place.run(["sessions", "show", session ?? ""])
      assert.include(shown, "a b c")
    })
  )

  it.scopedLive("is asked about each call of which only its words are known, and is seen at what it does unasked", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          update({ sessionUpdate: "tool_call", toolCallId: "u", title: "peek", status: "in_progress" })
          return ask(7, { toolCallId: "c", title: "safe thing, reply y", kind: "other", rawInput: { x: 1 } })
        }
        if (message.id === 7) {
          text("chosen " + message.result.outcome.optionId)
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const policy = yield* place.write("policy.json", { version: 1, whitelist: { tools: ["foreign_act"] } })
      const halted = yield* place.run(["run", "--policy", policy, ...model(command), "go"])
      assert.strictEqual(halted.code, 3, halted.stderr)
      const denied = yield* place.run(["run", "--json", "--mode", "deny", ...model(command), "go"])
      assert.match(denied.stdout, /chosen no/)
      assert.match(denied.stdout, /without asking: peek/)
      const all = yield* place.run(["run", "--yolo", "--policy", policy, ...model(command), "go"])
      assert.include(all.stdout, "chosen yes")
      const [session = ""] = (yield* place.run(["sessions", "list"])).stdout.split(" ")
      assert.match((yield* place.run(["audit", "show", session])).stdout, /granted .*foreign_act/)
    })
  )

  it.scopedLive("is seen at all that it does without a yes, in whatever order it says so", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const stories = fc
        .sample(
          fc
            .tuple(states, fc.boolean(), states)
            .map(([before, asks, after]) => [...before, ...(asks ? ["ask"] : []), ...after]),
          80
        )
        .filter((story) => story.length > 0)
      const isSeen = (story: ReadonlyArray<string>) => {
        const asked = story.indexOf("ask")
        // It ends with its first end before the question. A yes or no begins it anew.
        const after = story.slice(asked + 1)
        return asked < 0 || story.slice(0, asked).includes("completed") || story.slice(0, asked).includes("failed")
          ? true
          : after.includes("completed") || after.includes("in_progress")
      }
      const run = yield* place.run(["run", "--json", "--mode", "deny", ...model(yield* telling(place, stories)), "go"])
      assert.strictEqual(run.code, 0, run.stderr)
      const expected = stories.flatMap((story, n) => (isSeen(story) ? [n] : []))
      const [session = ""] = (yield* place.run(["sessions", "list"])).stdout.split(" ")
      const said = (yield* place.run(["sessions", "show", session])).stdout
      const recorded = (yield* place.run(["audit", "show", session])).stdout
      for (const [what, seen] of [
        ["answer", said],
        ["audit", recorded]
      ] as const) {
        const missing = expected.filter((n) => !named(seen).has(n)).map((n) => [n, stories[n]])
        const more = [...named(seen)].filter((n) => !expected.includes(n)).map((n) => [n, stories[n]])
        assert.deepStrictEqual({ what, missing, more }, { what, missing: [], more: [] })
      }
    })
  )

  it.scopedLive("acts under its yes until the call ends, and is seen at what it does beyond", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const policy = yield* place.write("policy.json", { version: 1, whitelist: { patterns: ["echo *"] } })
      const stories = [
        ["pending", "ask", "in_progress", "in_progress", "completed"],
        ["in_progress", "ask", "completed", "completed"],
        ["pending", "ask", "completed", "in_progress", "completed"],
        ["ask", "failed", "in_progress"],
        ["completed", "ask", "completed"]
      ]
      const run = yield* place.run(["run", "--policy", policy, ...model(yield* telling(place, stories)), "go"])
      assert.strictEqual(run.code, 0, run.stderr)
      const [session = ""] = (yield* place.run(["sessions", "list"])).stdout.split(" ")
      assert.deepStrictEqual([...named((yield* place.run(["sessions", "show", session])).stdout)].sort(), [2, 3, 4])
    })
  )

  it.scopedLive("does other things under a yes for one, and is seen", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const policy = yield* place.write("policy.json", { version: 1, whitelist: { patterns: ["echo *"] } })
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          return ask(7, { toolCallId: "c", title: "echo a", kind: "execute", rawInput: { command: "echo a" } })
        }
        if (message.id === 7) {
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "in_progress", rawInput: { command: "rm x" } })
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" })
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const { stdout } = yield* place.run(["run", "--policy", policy, ...model(command), "go"])
      assert.match(stdout, /acted without asking: echo a \(rm x\)/)
    })
  )

  it.scopedLive("that changes what it asks is asked about anew, and an answer to the old counts for nothing", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          const { existsSync } = await import("node:fs")
          const change = setInterval(() => {
            if (!existsSync("change")) return
            clearInterval(change)
            update({ sessionUpdate: "tool_call_update", toolCallId: "c", title: "other", rawInput: { command: "rm -rf x" } })
          }, 20)
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        }
        if (message.id === 7) {
          text("chosen " + message.result.outcome.optionId)
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" })
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const program = yield* place.start(["run", "--jsonl", ...model(command), "go"])
      const first = yield* program.json("InteractionRequest")
      assert.deepStrictEqual(first.request.interaction.arguments, { command: "ls" })
      yield* place.write("workspace/change", "")
      yield* program.json("InteractionCancelled", { requestId: first.request.requestId })
      const second = yield* program.json("InteractionRequested", { summary: "foreign_execute rm -rf x" })
      yield* program.tell({ _tag: "Answer", requestId: first.request.requestId, answer: "y" })
      yield* program.tell({ _tag: "Answer", requestId: second.requestId, answer: "n" })
      yield* program.json("TurnEnded", { reason: "completed" })
      yield* program.endInput
      yield* program.exit
      const { stdout } = yield* place.run(["sessions", "show", first.request.sessionId])
      assert.include(stdout, "chosen no")
      assert.include(stdout, "The agent changed what it asks, so it is asked again.")
    })
  )

  it.scopedLive("that offers no answer for one call is told no, and people see why", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      for (const [options, chosen] of [
        [[{ optionId: "all", name: "All", kind: "allow_always" }], "cancelled"],
        [
          [
            { optionId: "all", name: "All", kind: "allow_always" },
            { optionId: "no", name: "No", kind: "reject_once" }
          ],
          "no"
        ],
        // One id for a yes and a no is neither.
        [
          [
            { optionId: "go", name: "Yes", kind: "allow_once" },
            { optionId: "go", name: "No", kind: "reject_once" }
          ],
          "cancelled"
        ],
        [undefined, "cancelled"]
      ] as const) {
        const command = yield* scripted(
          place,
          `if (message.method === "session/prompt") {
            globalThis.prompt = message.id
            return send({ id: 7, method: "session/request_permission", params: { sessionId: "s",
              toolCall: { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } },
              options: ${JSON.stringify(options)} } })
          }
          if (message.id === 7) {
            const { outcome, _meta } = message.result
            text("chosen " + (outcome.optionId ?? outcome.outcome) + ": " + _meta["assent/reason"])
            return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
          }`
        )
        const { stdout } = yield* place.run(["run", "--yolo", ...model(command), "go"])
        assert.include(stdout, `chosen ${chosen}: Assent allows one call at a time.`)
        assert.match(stdout, /was told no, because it offered no way to allow this once: list/)
      }
    })
  )

  it.scopedLive("that asks in a way that nobody can read is shown whole, and nothing is remembered", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      for (const params of [
        { toolCall: { toolCallId: 5, title: ["list"], kind: "execute", rawInput: { command: "ls" } } },
        { toolCall: "list", extra: "all of it" },
        { toolCall: { toolCallId: "c", title: "list", kind: "run", rawInput: { command: "ls" }, extra: 1 } },
        { toolCall: { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } }, extra: 1 }
      ]) {
        const command = yield* scripted(
          place,
          `if (message.method === "session/prompt") {
            globalThis.prompt = message.id
            return send({ id: 7, method: "session/request_permission", params: { sessionId: "s", options, ...${JSON.stringify(params)} } })
          }
          if (message.id === 7) {
            text("chosen " + message.result.outcome.optionId)
            return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
          }`
        )
        const policy = yield* place.write("policy.json", {
          version: 1,
          whitelist: { readonly: true, tools: ["foreign_act"] }
        })
        const program = yield* place.start(["run", "--jsonl", "--policy", policy, ...model(command), "go"])
        const { request } = yield* program.json("InteractionRequest")
        assert.strictEqual(request.interaction.tool, "foreign_act")
        assert.isTrue(request.interaction.onceOnly)
        const words = JSON.stringify(params).match(/"(?:list|ls|extra|all of it|run)"/g) ?? []
        for (const word of words) assert.include(JSON.stringify(request.interaction.arguments), word)
        yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: "y" })
        yield* program.json("TurnEnded", { reason: "completed" })
        yield* program.endInput
        yield* program.exit
      }
    })
  )

  it.scopedLive("that exits, says garbage or refuses fails its turn with a sentence, and leaves nothing running", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      for (const [command, reason] of [
        ["false", "false ended with exit code 1 before its session began. Run it by hand to see why."],
        ["echo garbage", "echo ended with exit code 0 before its session began. Run it by hand to see why."],
        ["no-such-program-here", "no-such-program-here does not start: there is no such program."]
      ] as const) {
        const { code, stderr } = yield* place.run(["run", ...model(command), "go"])
        assert.strictEqual(code, 1, command)
        assert.include(stderr, reason)
      }
      const refusing = yield* place.write(
        "refusing.mjs",
        `process.stdin.once("data", () => {
          console.log('{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Sign in first."}}')
          setTimeout(() => process.exit(1), 100)
        })`
      )
      const refused = yield* place.run(["run", ...model(`${process.execPath} ${refusing}`), "go"])
      assert.deepStrictEqual([refused.code, refused.stderr], [1, "assent: node: Sign in first.\n"])
      const dying = yield* scripted(place, `if (message.method === "session/prompt") process.exit(1)`)
      const { code, stderr } = yield* place.run(["run", ...model(dying), "go"])
      assert.strictEqual(code, 1)
      assert.match(stderr, /node(?:: The agent)? has ended\./)
    })
  )

  it.scopedLive("that says what a turn took has it in the ledger, the growth of each turn once", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.turns = (globalThis.turns ?? 0) + 1
          const sum = 100 * globalThis.turns
          text("Turn " + globalThis.turns + ".")
          update({ sessionUpdate: "usage_update", used: sum, size: 1000,
            cost: { amount: 0.25 * globalThis.turns, currency: "USD" } })
          return send({ id: message.id, result: { stopReason: "end_turn",
            usage: { inputTokens: sum, outputTokens: sum / 10, totalTokens: sum * 1.1, cachedReadTokens: sum / 2 } } })
        }`
      )
      const { stdout } = yield* place.run(["chat", ...model(command)], { stdin: "one\ntwo\n/cost\n" })
      assert.match(stdout, /main\s+2\s+0\s+200\s+100\s+20\s+0\.50/)
    })
  )

  it.scopedLive("that asks by a form asks the person of its turn, with its name", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          return send({ id: 9, method: "elicitation/create", params: { sessionId: "s", mode: "form",
            message: "Which colour? <script>", requestedSchema: { type: "object",
              properties: { colour: { type: "string" } }, required: ["colour"] } } })
        }
        if (message.id === 9) {
          text("answer " + JSON.stringify(message.result))
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const asked = ["run", "--piped-answers", ...model(command), "go"]
      const filled = yield* place.run(asked, { stdin: "red\n" })
      assert.include(filled.stderr + filled.stdout, "[the agent node]")
      assert.include(filled.stdout, 'answer {"action":"accept","content":{"colour":"red"}}')
      // A person who does not answer leaves the question open, and the agent gets no answer of theirs.
      const left = yield* place.run(asked, { stdin: "" })
      assert.notInclude(left.stdout, "accept")
    })
  )

  const remembering = `
    if (message.method === "session/resume") {
      globalThis.resumed = message.params.sessionId
      return send({ id: message.id, result: {} })
    }
    if (message.method === "session/prompt") {
      const words = message.params.prompt[0].text
      if (words === "die") return process.exit(1)
      text(words + " in " + (globalThis.resumed ?? "a new session"))
      return send({ id: message.id, result: { stopReason: "end_turn" } })
    }`

  it.scopedLive("that ends goes on with its session if it can, and else says that it has forgotten", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const stdin = "one\ndie\ntwo\n"
      const able = yield* scripted(place, remembering, { sessionCapabilities: { resume: {} } })
      const first = yield* place.run(["chat", ...model(able)], { stdin })
      assert.include(first.stdout, "one in a new session")
      assert.include(first.stdout, "two in s")
      const unable = yield* scripted(place, remembering)
      const second = yield* place.run(["chat", ...model(unable)], { stdin })
      assert.include(second.stdout, "has started again, and knows nothing of what was said before.")
      assert.include(second.stdout, "two in a new session")
    })
  )

  it.scopedLive.skipIf(!Bubblewrap.isPossible)("of a profile with a sandbox works in it, and writes nowhere else", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      yield* scripted(
        place,
        `if (message.method === "session/prompt") {
            const { appendFileSync } = await import("node:fs")
            for (const file of message.params.prompt[0].text.split(" "))
              try { appendFileSync(file, "x") } catch (error) { text(error.code + " ") }
            text("done")
            return send({ id: message.id, result: { stopReason: "end_turn" } })
          }`
      )
      // The sandbox has its own directory for temporary files, so the program is in the workspace.
      const program = yield* place.write("workspace/agent.mjs", yield* place.read("agent.mjs"))
      const command = `${process.execPath} ${program}`
      yield* place.makeDirectory("outside")
      yield* place.makeDirectory("added")
      const files = ["workspace/in.txt", "added/in.txt", "outside/out.txt"].map((file) => place.path(file))
      const run = (sandbox: object | undefined, env: Record<string, string>) =>
        Effect.zipRight(
          place.write("workspace/.assent/profiles/other.json", { description: "another agent", command, sandbox }),
          place.run(["run", "--trust", "--profile", "other", files.join(" ")], { env })
        )
      const made = Effect.forEach(files, (file) => place.exists(file))
      const confined = yield* run({ writable: [place.path("added")] }, { ASSENT_SANDBOX: "auto" })
      assert.include(confined.stdout, "done", confined.stderr)
      assert.deepStrictEqual(yield* made, [true, true, false])
      // A person who turns the sandbox off has none, and no profile has one by itself.
      const open = yield* run(undefined, { ASSENT_SANDBOX: "auto" })
      assert.include(open.stdout, "done", open.stderr)
      assert.deepStrictEqual(yield* made, [true, true, true])
    })
  )

  it.scopedLive("that ends while a call of it runs is the reason why the call failed", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt")
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        if (message.id === 7) process.exit(1)`
      )
      const { stdout } = yield* place.run(["run", "--json", "--mode", "allow", ...model(command), "go"])
      assert.match(
        stdout,
        /"ToolCallEnded".*node(?:: The agent)? has ended\. Whether the call took effect is not known\./
      )
    })
  )

  it.scopedLive("that is the main agent runs outside the sandbox, and the chat says so", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const screen = yield* Pseudo.start(place, ["adopt", "--", ...own.split(" ")], { columns: 200 })
      yield* screen.sees((text) => text.includes("This agent runs outside the sandbox, with all its commands."))
      assert.notInclude(screen.everything(), "Commands of the agent run")
    })
  )

  it.scopedLive("that floods while a call of it runs is ended, and its call fails with a sentence", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt" && message.params.prompt[0].text.endsWith("then go on.\\n\\ngo")) {
          text("back again")
          return send({ id: message.id, result: { stopReason: "end_turn" } })
        }
        if (message.method === "session/prompt")
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        if (message.id === 7) for (let i = 0; i < 30; i++) text("x".repeat(1_000_000))`
      )
      const { code, stdout } = yield* place.run(["run", "--json", "--mode", "allow", ...model(command), "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "node sent more than 10 MB of text that nobody read. Its process was ended.")
      assert.include(stdout, "Whether the call took effect is not known.")
      assert.include(stdout, "back again")
    })
  )

  it.scopedLive("whose program is killed at its question begins anew with its task, and asks again", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        }
        if (message.id === 7) {
          text(message.result.outcome.optionId + " to: " + globalThis.prompt.params.prompt[0].text)
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" })
          return send({ id: globalThis.prompt.id, result: { stopReason: "end_turn" } })
        }`
      )
      const run = ["run", "--jsonl", ...model(command)]
      const first = yield* place.start([...run, "tidy up"])
      const { request } = yield* first.json("InteractionRequest")
      yield* first.signal("SIGKILL")
      yield* first.exit
      // Nobody waits for an answer to it any more.
      const { code, stderr } = yield* place.run(["sessions", "answer", request.sessionId, request.requestId, "y"])
      assert.strictEqual(code, 2, stderr)
      const second = yield* place.start([...run, "--resume", request.sessionId])
      const ended = yield* second.json("ToolCallEnded")
      assert.strictEqual(ended.result, "Its agent has ended, so the call was not made.")
      const again = yield* second.json("InteractionRequest")
      assert.notStrictEqual(again.request.requestId, request.requestId)
      yield* second.tell({ _tag: "Answer", requestId: again.request.requestId, answer: "y" })
      yield* second.json("TurnEnded", { reason: "completed" })
      yield* second.endInput
      assert.strictEqual((yield* second.exit).code, 0)
      const { stdout } = yield* place.run(["sessions", "show", request.sessionId])
      assert.include(stdout, "has started again, and knows nothing of what was said before.")
      assert.include(stdout, "yes to: Your process ended in the middle of this task.")
    })
  )

  it.scopedLive("ends with the program, its own processes too", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const pid = place.path("workspace", "pid")
      const program = yield* place.start([
        "run",
        ...model(`sh -c 'echo $$ > ${pid}.new; mv ${pid}.new ${pid}; sleep 60; true'`),
        "go"
      ])
      const child = Number((yield* place.appears(pid)).trim())
      yield* program.signal("SIGINT")
      yield* program.exit
      assert.isFalse(Program.isAlive(child))
      assert.isTrue(fs.existsSync(pid))
    })
  )

  it.scopedLive("of a profile works under its name, and the question to delegate shows the whole line", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      yield* place.write("config/profiles/other.json", { description: "another agent", command: own, plugins: [] })
      const { code, stderr, stdout } = yield* place.run(
        ["run", "--channel", "console", "--piped-answers", "delegate other: list"],
        { stdin: "y\ny\ny\n" }
      )
      assert.strictEqual(code, 0, stderr)
      assert.include(stderr, own)
      assert.isNotEmpty(stdout)
    })
  )
})
