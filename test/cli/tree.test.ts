/** A person at a terminal with several agents: the whole of `chat` but for the process. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as ConsoleChannel from "../../src/tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../src/tui/console/ConsoleScreen.js"
import * as ChatExecutor from "../../src/tui/chat/ChatExecutor.js"
import * as ConfigurationInvalid from "../../src/host/local/ConfigurationInvalid.js"
import type * as EventBus from "../../src/event/EventBus.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Family from "../kit/Family.js"
import * as TestTerminal from "../kit/TestTerminal.js"

const { calls, delegate, spawn, work } = Family

const usage = { input: 100, output: 10 }

/** A step that says its text word by word, ten a second. */
const slowly = (text: string, more: Partial<ScriptedModel.Step> = {}): ScriptedModel.Step => ({
  text,
  usage,
  chunks: text.split(" ").length,
  chunkDelay: "100 millis",
  ...more
})

const chat = (
  script: ScriptedModel.Script["agents"],
  {
    columns = 100,
    commands,
    ...options
  }: Partial<Family.Options> & {
    readonly columns?: number
    readonly commands?: ChatExecutor.Options["commands"]
  } = {}
) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make({ columns, rows: 40 })
    const screen = yield* Effect.provide(ConsoleScreen.make({ color: false }), terminal.layer)
    const family = yield* Family.start({ ...options, script })
    const { agent } = family
    const console = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
    yield* agent.broker.attach(console)
    const live = yield* agent.subscribe({ capacity: Number.POSITIVE_INFINITY })
    const past = yield* family.events
    let isTold = false
    const events: EventBus.Subscription = {
      ...live,
      takeAll: Effect.suspend(() => {
        if (isTold) return live.takeAll
        isTold = true
        return Effect.succeed(Option.some(past))
      })
    }
    const running = yield* Effect.fork(
      Effect.provideService(
        ChatExecutor.run({
          agent: Object.create(agent, { events: { value: events } }),
          interactive: true,
          commands,
          setModel: (ref) => Effect.fail(ConfigurationInvalid.make(`There is no ${ref}.`)),
          profiles: ["helper"]
        }),
        ConsoleScreen.ConsoleScreen,
        screen
      )
    )
    // What a command loads is loaded before, because no clock of tests waits for it.
    yield* agent.permissions("show")
    const wait = (time: "250 millis" | "1 second" | "10 seconds") =>
      Effect.zipRight(TestClock.adjust(time), Effect.zipRight(terminal.settle, terminal.settle))
    const enter = (line: string) => Effect.zipRight(terminal.type(`${line}\n`), wait("250 millis"))
    const ctrlC = Effect.zipRight(terminal.press("c", { ctrl: true }), wait("250 millis"))
    yield* wait("1 second")
    return { terminal, screen, agent, running, wait, enter, ctrlC }
  })

const lastRow = (terminal: TestTerminal.TestTerminal) => terminal.screen().at(-1)

describe("how commands run", () => {
  const main = [slowly("one two three four five six seven eight nine ten")]

  it.scoped("is told at the beginning, and shown behind what the agent does where there is room", () =>
    Effect.gen(function* () {
      const sentence = "Commands of the agent run in a sandbox."
      const commands = Effect.succeed({ words: "commands confined, network off", sentence, remark: undefined })
      const { enter, terminal, wait } = yield* chat({ main }, { commands })
      assert.include(terminal.screen(), sentence)
      yield* enter("go")
      assert.include(terminal.screen().join("\n"), "streaming · commands confined, network off")
      yield* wait("10 seconds")
      assert.strictEqual(lastRow(terminal), ">")
    })
  )

  it.scoped("is told with what to do where commands cannot be confined", () =>
    Effect.gen(function* () {
      const remark = "Commands run without a sandbox: bubblewrap is not installed."
      const { enter, terminal } = yield* chat(
        { main },
        { columns: 30, commands: Effect.succeed({ words: "commands open", remark }) }
      )
      assert.include(terminal.screen().join(" ").replaceAll(/\s+/g, " "), "Commands run without a sandbox")
      yield* enter("go")
      assert.include(terminal.screen().join("\n"), "streaming")
      assert.notInclude(terminal.screen().join("\n"), "commands open")
    })
  )

  it.scoped("does not keep anybody from typing while it is found out", () =>
    Effect.gen(function* () {
      const { enter, terminal } = yield* chat({ main }, { commands: Effect.never })
      yield* enter("go")
      assert.include(terminal.screen().join("\n"), "streaming")
    })
  )
})

describe("chat with subagents", () => {
  it.scoped("three children at once stay readable, and the status says what each does", () =>
    Effect.gen(function* () {
      const { enter, terminal, wait } = yield* chat(
        {
          main: [
            calls(delegate("helper", "a"), delegate("other", "b"), delegate("nested", "c")),
            { text: "All done." }
          ],
          helper: [slowly("I look here and there and find one thing.\nIt is small.")],
          other: [slowly("I look there and here and find two things.\nThey are large.")],
          nested: [slowly("And I find nothing at all.")]
        },
        { subagents: { profiles: ["helper", "other", "nested"].map((name) => Family.profile(name)) } }
      )
      yield* enter("go")
      assert.include(terminal.screen().at(-2), "main executing · helper streaming · other streaming · nested streaming")
      yield* wait("10 seconds")
      const rows = terminal.screen()
      const said = (label: string) => rows.filter((row) => row.startsWith(`│ ${label} ▸`))
      assert.deepStrictEqual(said("helper"), [
        "│ helper ▸ I look here and there and find one thing.",
        "│ helper ▸ It is small."
      ])
      assert.deepStrictEqual(said("other"), [
        "│ other ▸ I look there and here and find two things.",
        "│ other ▸ They are large."
      ])
      assert.deepStrictEqual(said("nested"), ["│ nested ▸ And I find nothing at all."])
      const ends = rows.filter((row) => row.startsWith("  ✓"))
      assert.strictEqual(ends.length, 3)
      assert.match(ends.join("\n"), /✓ nested · 1 turn, 110 tokens, \d/)
      assert.deepStrictEqual(rows.slice(-2), ["All done.", ">"])
    })
  )

  it.scoped("a child's question names the child; Ctrl-C closes it, cancels the tree and leaves a prompt", () =>
    Effect.gen(function* () {
      const { agent, ctrlC, enter, running, terminal } = yield* chat({
        main: [calls(delegate("helper")), { text: "again" }],
        helper: [calls(delegate("nested"))],
        nested: [work("deep"), { text: "never", delay: "1 second" }]
      })
      yield* enter("go")
      assert.include(terminal.screen(), "[subagent:helper/nested] Allow work?")
      assert.include(terminal.screen().join("\n"), "nested waiting for you")
      yield* ctrlC
      const rows = terminal.screen()
      assert.includeMembers([...rows], ["answer> (cancelled)", "— cancelled (user) —"])
      assert.notInclude(rows.join("\n"), "▸ never")
      assert.match(rows.join("\n"), /│ helper ✗ nested interrupted · [^]*✗ helper interrupted · /)
      assert.strictEqual(rows.at(-1), ">")
      assert.isTrue(yield* agent.isIdle)
      yield* enter("and now")
      assert.include(terminal.screen(), "again")
      assert.strictEqual(running.unsafePoll(), null)
    })
  )

  it.scoped("gives back what no agent has read, before what is half typed", () =>
    Effect.gen(function* () {
      const { agent, enter, screen, terminal, wait } = yield* chat(
        { main: [calls(delegate("helper")), { text: "never" }], helper: [work("a"), { text: "never" }] },
        { worker: () => Effect.never, runtime: { policy: Family.delegationAllowed } }
      )
      yield* enter("/permissions allow work")
      yield* enter("/permissions default allow")
      yield* enter("go")
      yield* enter("@helper hurry")
      yield* enter("@main and tell me")
      yield* terminal.type("half")
      yield* terminal.press("escape")
      yield* wait("250 millis")
      assert.strictEqual(yield* screen.draft, "hurry\nand tell me\nhalf")
      assert.isTrue(yield* agent.isIdle)
    })
  )

  it.scoped("the prompt says who will hear, before and after somebody is selected", () =>
    Effect.gen(function* () {
      const { agent, enter, terminal, wait } = yield* chat({
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [slowly("one two three four five six seven eight nine ten"), { text: "You said it." }, { text: "Yes." }]
      })
      assert.strictEqual(lastRow(terminal), ">")
      yield* enter("go")
      assert.strictEqual(lastRow(terminal), "helper ›")
      yield* enter("/select main")
      assert.strictEqual(lastRow(terminal), "main ›")
      yield* enter("/select none")
      assert.strictEqual(lastRow(terminal), "helper ›")
      yield* enter("look at OAuth")
      assert.include(terminal.screen(), "helper › look at OAuth")
      assert.include(terminal.screen(), "│ helper ↳ from you: look at OAuth")
      yield* wait("10 seconds")
      assert.strictEqual(lastRow(terminal), ">")
      yield* enter("/select helper")
      assert.strictEqual(lastRow(terminal), "helper ›")
      yield* enter("still there?")
      assert.include(terminal.screen().join("\n"), "│ helper ○ still there?\n│ helper ▸ Yes.\n│ helper ✓ finished:")
      yield* enter("/select nobody")
      assert.include(terminal.screen().join("\n"), 'There is no agent "nobody". There are: main, main/helper.')
      assert.isTrue(yield* agent.isIdle)
    })
  )

  it.scoped("a slip in a name sends nothing and gives the line back; what is no name is only words", () =>
    Effect.gen(function* () {
      const { agent, enter, screen, terminal } = yield* chat({ main: [{ text: "Heard." }] })
      yield* enter("@exploer hurry")
      assert.strictEqual(yield* screen.draft, "@exploer hurry")
      assert.include(
        terminal.screen(),
        "There is no agent and no file exploer. /agents lists the agents. Nothing was sent."
      )
      yield* screen.setDraft("")
      yield* enter("@main")
      assert.include(terminal.screen(), "What is main to hear? Nothing was sent.")
      yield* screen.setDraft("")
      assert.strictEqual(agent.history.messages.length, 0)
      yield* enter("@types/node is missing")
      assert.include(terminal.screen(), "Heard.")
    })
  )

  it.scoped("/agents shows who is there, what they did and used, and /cost what it comes to", () =>
    Effect.gen(function* () {
      const { enter, terminal } = yield* chat({
        main: [
          { ...calls(delegate("helper")), usage },
          { text: "done", usage }
        ],
        helper: [
          { ...calls(delegate("nested")), usage },
          { text: "ok", usage }
        ],
        nested: [{ text: "ok", usage }]
      })
      yield* enter("/agents")
      assert.deepStrictEqual(terminal.screen().slice(-3, -1), [
        "agent  state  tasks  turns  tokens  id",
        "main   idle       0      0       0"
      ])
      yield* enter("go")
      yield* enter("/agents")
      assert.deepStrictEqual(terminal.screen().slice(-6, -1), [
        "agent       state     tasks  turns  tokens  id",
        "main        idle          1      2     220",
        "└ helper    finished      1      2     220  subagent_1",
        "  └ nested  finished      1      1     110  subagent_2",
        "What you type goes to main."
      ])
      yield* enter("/cost")
      assert.deepStrictEqual(
        terminal
          .screen()
          .slice(-5, -1)
          .map((row) => row.replace(/ +/g, " ")),
        ["main 2 0 200 0 20", "main/helper 2 0 200 0 20", "main/helper/nested 1 0 100 0 10", "total 5 0 500 0 50"]
      )
    })
  )

  it.scoped("everything fits thirty columns", () =>
    Effect.gen(function* () {
      const { enter, terminal, wait } = yield* chat(
        {
          main: [
            { ...calls(delegate("helper"), delegate("nested")), usage },
            { text: "done", usage }
          ],
          helper: [slowly("I look here and there and everywhere and find one thing.")],
          nested: [slowly("And I find nothing at all, wherever I look.")]
        },
        { columns: 30 }
      )
      yield* enter("go")
      assert.strictEqual(
        terminal
          .screen()
          .at(-2)
          ?.replace(/^\S+ /, "")
          .replace(/ [\d.]+s$/, ""),
        "3 agents"
      )
      yield* wait("10 seconds")
      yield* enter("/agents")
      yield* enter("/cost")
      const text = terminal.history().join("\n")
      for (const part of [
        "│ helper\n│ ▸ I look here and there and\n│   everywhere and find one\n│   thing.",
        "├ helper\n│   finished\n│   tasks: 1, turns: 1\n│   tokens: 110\n└ nested",
        "main/nested\n  calls: 1\n  tokens: 100 in, 10 out"
      ])
        assert.include(text, part)
    })
  )

  it.scoped("/cancel stops one agent and nobody else; Ctrl-C without a turn stops what works in the background", () =>
    Effect.gen(function* () {
      const { agent, ctrlC, enter, terminal } = yield* chat({
        main: [calls(spawn("helper"), spawn("nested")), { text: "started" }, { text: "heard" }, { text: "heard" }],
        helper: [slowly("one two three four five six seven eight nine ten", { chunkDelay: "10 seconds" })],
        nested: [slowly("one two three four five six seven eight nine ten", { chunkDelay: "10 seconds" })]
      })
      yield* enter("go")
      yield* enter("/cancel helper")
      assert.include(terminal.screen().join("\n"), "│ helper ✗ finished: cancelled (user)")
      assert.notInclude(terminal.screen().join("\n"), "│ nested ✗")
      assert.isFalse(yield* agent.isIdle)
      yield* enter("/cancel helper")
      assert.include(terminal.screen(), "helper does nothing.")
      yield* enter("/agents")
      assert.match(terminal.screen().join("\n"), /helper +cancelled/)
      yield* ctrlC
      assert.include(terminal.screen().join("\n"), "│ nested ✗ finished: cancelled (user)")
      assert.isTrue(yield* agent.isIdle)
    })
  )

  it.scoped("/cancel stops one running call, and the turn goes on", () =>
    Effect.gen(function* () {
      const { enter, terminal } = yield* chat(
        {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [work("a", "b"), { text: "One was stopped." }]
        },
        { worker: (name) => (name === "a" ? Effect.never : Effect.succeed(name)) }
      )
      yield* enter("/permissions allow work")
      yield* enter("/permissions default allow")
      yield* enter("go")
      yield* enter("/cancel sleep")
      assert.include(terminal.screen(), "No agent and no running call is called sleep. /agents lists the agents.")
      yield* enter("/cancel work")
      const rows = terminal.screen().join("\n")
      assert.match(rows, /│ helper ✗ work .*interrupted/)
      assert.include(rows, "│ helper ▸ One was stopped.\n  ✓ helper")
    })
  )

  it.scoped("completes agents and profiles", () =>
    Effect.gen(function* () {
      const { enter, screen, terminal } = yield* chat({
        main: [calls(delegate("helper"), delegate("nested")), { text: "done" }],
        helper: [{ text: "ok" }],
        nested: [{ text: "ok" }]
      })
      yield* enter("go")
      const completed = (typed: string) =>
        Effect.zipRight(Effect.zipRight(screen.setDraft(""), terminal.type(`${typed}\t`)), screen.draft)
      assert.strictEqual(yield* completed("/select he"), "/select helper")
      assert.strictEqual(yield* completed("/sel"), "/select ")
      assert.strictEqual(yield* completed("/ag"), "/agents")
      assert.strictEqual(yield* completed("@ne"), "@nested ")
      assert.strictEqual(yield* completed("delegate h"), "delegate helper: ")
      assert.strictEqual(yield* completed("dele"), "dele")
    })
  )

  it.scoped("ends when the input does", () =>
    Effect.gen(function* () {
      const { running, terminal } = yield* chat({ main: [{ text: "hi" }] })
      yield* terminal.end
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(running), 0)
    })
  )
})
