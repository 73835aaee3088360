/** How long foreign text holds the event loop on its way through the product: to a screen, into a dialog, into settings. */
import * as Terminal from "@effect/platform/Terminal"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import type { Scope } from "effect/Scope"
import * as ChangePreview from "../../src/builtin/ChangePreview.js"
import * as ConsoleChannel from "../../src/tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../src/tui/console/ConsoleScreen.js"
import * as Follow from "../../src/tui/view/Follow.js"
import * as Printed from "../../src/tui/view/Printed.js"
import * as AgentText from "../../src/tui/view/AgentText.js"
import * as Transcript from "../../src/tui/view/Transcript.js"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as AgentEvent from "../../src/event/AgentEvent.js"
import * as EventBus from "../../src/event/EventBus.js"
import * as ScriptFile from "../../src/model/ScriptFile.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import * as ProfileLoader from "../../src/subagent/ProfileLoader.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import type { ToolDisplay } from "../../src/tool/ToolCall.js"
import * as ForeignTexts from "./ForeignTexts.js"
import * as InteractionSample from "./InteractionSample.js"
import { key } from "./TestTerminal.js"
import * as Wait from "./Wait.js"

/** What was measured, in milliseconds. */
export interface Held {
  readonly name: string
  /** The longest time in which nothing else ran. */
  readonly milliseconds: number
  /** All of the work. */
  readonly whole: number
}

/** A text on its way. */
export interface Way {
  readonly name: string
  /** Milliseconds. */
  readonly limit: number
  readonly make: () => string
  readonly run: (text: string) => Effect.Effect<unknown, unknown, Scope>
}

/** The longest hold of a round; the least of up to five rounds if the others exceed the limit. */
export const measure = async (way: Way): Promise<Held> => {
  const text = way.make()
  let held = await round(way, text)
  for (let rounds = 1; rounds < 5 && held.milliseconds >= way.limit; rounds++) {
    const again = await round(way, text)
    if (again.milliseconds < held.milliseconds) held = again
  }
  return held
}

/** Of each hold, the time of the processor counts if that is less: other processes may have had the processor. */
const round = async ({ name, run }: Way, text: string): Promise<Held> => {
  let longest = 0
  let isOver = false
  const now = () => ({ wall: performance.now(), cpu: process.cpuUsage() })
  let last = now()
  const look = (): void => {
    const next = now()
    const cpu = (next.cpu.user + next.cpu.system - last.cpu.user - last.cpu.system) / 1_000
    longest = Math.max(longest, Math.min(next.wall - last.wall, cpu))
    last = next
  }
  const ticking = new Promise<void>((resolve) => {
    const tick = () => {
      look()
      if (isOver) resolve()
      else setImmediate(tick)
    }
    setImmediate(tick)
  })
  const began = performance.now()
  await Effect.runPromise(Effect.scoped(Effect.suspend(() => run(text))))
  const whole = performance.now() - began
  isOver = true
  await ticking
  return { name, milliseconds: longest, whole }
}

/** All kinds of text on all ways. */
export const ways = (size: number): ReadonlyArray<Way> => {
  const way = (name: string, make: () => string, run: Way["run"], limit = 50): Way => ({ name, limit, make, run })
  const dialogs = new Set(["usual", "one line", "scripts", "templates in lines"])
  return [
    ...ForeignTexts.markdown.flatMap(({ kind, make }) => {
      const text = () => make(size)
      return [
        way(`answer at once: ${kind}`, text, (text) => said([text])),
        way(`answer in pieces: ${kind}`, text, (text) => said(cut(text, 4_000))),
        way(`answer printed: ${kind}`, text, AgentText.answer),
        way(`thought: ${kind}`, text, (text) => thought(cut(text, 100_000))),
        way(`past answer: ${kind}`, text, past),
        way(`plan: ${kind}`, text, (details) => asked({ summary: "a plan", details, format: "markdown" }))
      ]
    }),
    ...ForeignTexts.languages.flatMap((language) =>
      ForeignTexts.code.flatMap(({ kind, make }) => [
        way(
          `fence: ${language}: ${kind}`,
          () => `\`\`\`${language}\n${make(size)}`,
          (text) => said([text])
        ),
        way(
          `fence in a list: ${language}: ${kind}`,
          () => `- item\n\n  \`\`\`${language}\n${make(size).replace(/^/gm, "  ")}`,
          (text) => said([text])
        ),
        ...(!dialogs.has(kind)
          ? []
          : [
              way(
                `new file: ${language}: ${kind}`,
                () => make(size),
                (text) => changed(`a.${language}`, undefined, text)
              ),
              way(
                `edit: ${language}: ${kind}`,
                () => make(size / 20),
                (text) => changed(`a.${language}`, text, text.replaceAll("a", "b"))
              )
            ])
      ])
    ),
    ...ForeignTexts.code.map(({ kind, make }) =>
      way(
        `long edit: ${kind}`,
        () => make(size),
        (text) => changed("a.ts", text, text.replaceAll("a", "b"))
      )
    ),
    ...ForeignTexts.diffs.map(({ kind, make }) =>
      way(
        `diff: ${kind}`,
        () => make(size),
        (details) => asked({ summary: "a change", details, format: "diff" })
      )
    ),
    ...[...ForeignTexts.markdown, ...ForeignTexts.printed].flatMap(({ kind, make }) => {
      const text = () => make(size)
      return [
        way(`printed: ${kind}`, text, (text) => printed(cut(text, 30_000))),
        way(`command to approve: ${kind}`, text, (text) => asked(ChangePreview.ofCommand(text, { shown: "." }))),
        way(`arguments to approve: ${kind}`, text, (text) =>
          asked({ summary: text, details: JSON.stringify({ text }), format: "json" })
        ),
        way(`call: ${kind}`, text, called)
      ]
    }),
    ...ForeignTexts.yaml.flatMap(({ kind, make }) => [
      way(`profiles: ${kind}`, () => make(size), profiles, 500),
      way(
        `script: ${kind}`,
        () => make(size),
        (text) => Effect.sync(() => ScriptFile.parse(text)),
        500
      )
    ]),
    ...policies(size).map(([kind, text]) =>
      way(`policy: ${kind}`, text, (text) => Effect.sync(() => PolicyFile.decode(text, "a.json")), 500)
    )
  ]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const cut = (text: string, length: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length))

const open = Effect.gen(function* () {
  let written = ""
  const mailbox = yield* Mailbox.make<Terminal.UserInput>()
  const terminal = Terminal.Terminal.of({
    columns: Effect.succeed(100),
    rows: Effect.succeed(40),
    isTTY: Effect.succeed(true),
    readInput: Effect.succeed(mailbox),
    readLine: Effect.never,
    display: (text) => Effect.sync(() => (written = text))
  })
  const screen = yield* Effect.provideService(ConsoleScreen.make({ color: true }), Terminal.Terminal, terminal)
  const sees = (text: RegExp) =>
    Effect.zipRight(
      Wait.until(
        Effect.sync(() => written),
        (shown) => text.test(shown)
      ),
      Effect.sleep("250 millis")
    )
  return { mailbox, screen, sees }
})

/** Shows these events to their end. */
const shown = (bodies: ReadonlyArray<AgentEvent.Body>) =>
  Effect.gen(function* () {
    const { screen } = yield* open
    const { bus, events } = EventBus.owned({ capacity: Infinity })
    const drawing = Effect.succeed({ printed: Printed.make({ color: true }), speech: AgentText.make({ color: true }) })
    const following = yield* Effect.fork(
      Follow.follow(events, screen, Transcript.make({ color: true }), { interactive: true, drawing })
    )
    const all: ReadonlyArray<AgentEvent.Body> = [
      { _tag: "AgentCreated", depth: 0, model: "test/model" },
      { _tag: "TurnStarted", input: "go" },
      ...bodies
    ]
    for (const body of all) {
      yield* bus.publish(AgentEvent.make({ at: 0, sessionId: "main" as SessionId, agent: "main" }, body))
      yield* Effect.sleep(0)
    }
    yield* bus.close
    yield* Fiber.join(following)
  })

const said = (pieces: ReadonlyArray<string>) =>
  shown([
    ...pieces.map((text): AgentEvent.Body => ({ _tag: "TextDelta", text })),
    { _tag: "BlockEnded", block: "text" }
  ])

const thought = (pieces: ReadonlyArray<string>) =>
  shown([
    ...pieces.map((text): AgentEvent.Body => ({ _tag: "ThinkingDelta", text })),
    { _tag: "BlockEnded", block: "thinking" }
  ])

const id = "c" as ToolCallId
const printed = (pieces: ReadonlyArray<string>) =>
  shown([
    { _tag: "ToolCallStarted", toolCallId: id, tool: "run_command", summary: "make" },
    ...pieces.map((text): AgentEvent.Body => ({ _tag: "ToolOutput", toolCallId: id, stream: "stdout", text })),
    {
      _tag: "ToolCallEnded",
      toolCallId: id,
      tool: "run_command",
      outcome: "failed",
      summary: "failed",
      result: "failed",
      duration: 40
    }
  ])

const called = (text: string) =>
  shown([
    { _tag: "ToolCallProposed", toolCallId: id, tool: "other", summary: text },
    { _tag: "ToolCallStarted", toolCallId: id, tool: "other", summary: text },
    { _tag: "ToolCallEnded", toolCallId: id, tool: "other", outcome: "failed", summary: text, duration: 40 },
    { _tag: "AgentError", message: text, recoverable: true }
  ] as ReadonlyArray<AgentEvent.Body>)

const past = (text: string) => AgentText.inHelpings(text, 100, true)

/** Asks about a call, looks at all of it, and answers. */
const asked = (display: ToolDisplay) =>
  Effect.gen(function* () {
    const { mailbox, screen, sees } = yield* open
    const console = yield* Effect.provideService(ConsoleChannel.make({}), ConsoleScreen.ConsoleScreen, screen)
    const request = yield* InteractionSample.request({ ...approve, display })
    const answered = yield* Effect.fork(console.request(request))
    const type = (word: string) => mailbox.offerAll([key(word, {}, word), key("return", {}, "\r")])
    yield* sees(/answer>/)
    yield* type("v")
    yield* sees(/q goes back|Please type/)
    yield* mailbox.offer(key("q", {}, "q"))
    yield* sees(/answer>/)
    yield* mailbox.offer(key("backspace"))
    yield* type("y")
    yield* Fiber.join(answered)
  })

const approve = InteractionSample.samples.Approve.interaction

const changed = (path: string, before: string | undefined, after: string) =>
  asked(
    ChangePreview.ofChange(
      {
        target: { absolute: `/project/${path}`, shown: path, info: Option.none() },
        before: before === undefined ? Option.none() : Option.some(before),
        after,
        places: 1
      } as never,
      "replace"
    )
  )

const profiles = (text: string) => {
  const part = Math.ceil(text.length / 6)
  const files = new Map(cut(text, part).map((text, at) => [`p${at}.yaml`, Either.right(text)]))
  return Effect.provide(
    ProfileLoader.load({
      directories: [{ path: "/project/profiles", trusted: false, files: Either.right(files) }],
      variables: () => undefined,
      tools: ToolRegistry.empty
    }),
    NodeContext.layer
  )
}

const policies = (size: number): ReadonlyArray<readonly [string, () => string]> => {
  const many = (item: (at: number) => unknown, room: number) =>
    Array.from({ length: Math.floor(size / room) }, (_, at) => item(at))
  return [
    [
      "deny patterns",
      () => JSON.stringify({ version: 1, guards: { deny: { patterns: many((at) => `rm -rf /a${at}*`, 20) } } })
    ],
    ["stars", () => JSON.stringify({ version: 1, guards: { deny: { patterns: many(() => "*a".repeat(40), 84) } } })],
    [
      "brackets",
      () => JSON.stringify({ version: 1, guards: { deny: { patterns: many(() => "[a-z]{a,b}".repeat(40), 404) } } })
    ],
    ["one pattern", () => JSON.stringify({ version: 1, guards: { deny: { patterns: ["*a".repeat(size / 2)] } } })],
    [
      "allowed",
      () =>
        JSON.stringify({
          version: 1,
          whitelist: { tools: many((at) => `tool_${at}`, 14), patterns: many((at) => `git a${at}*`, 14) }
        })
    ],
    [
      "denied paths",
      () => JSON.stringify({ version: 1, whitelist: { patterns: many((at) => `write_file(path=a/${at}/**)`, 36) } })
    ],
    ["arguments", () => JSON.stringify({ version: 1, blacklist: { arguments: many((at) => `--a${at}`, 9) } })],
    [
      "unknown fields",
      () => JSON.stringify({ version: 1, ...Object.fromEntries(many((at) => [`f${at}`, 1], 10) as never) })
    ],
    ["depth", () => `${"[".repeat(size / 2)}${"]".repeat(size / 2)}`],
    ["no JSON", () => `{"version": 1, ${"a".repeat(size)}`]
  ]
}
