/**
 * A story that a session goes through over as many processes as it takes, each but the last killed at some moment: tools
 * that leave a line behind, questions, children, words in between. And what must be true of it in the end.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as NodeContext from "@effect/platform-node/NodeContext"
import type { SessionId } from "../../src/core/Id.js"
import * as History from "../../src/conversation/History.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as HistoryRules from "../kit/historyRules.js"
import * as Program from "../kit/Program.js"

/** What came of some stories. */
export interface Figures {
  readonly stories: number
  readonly kills: number
  readonly resumes: number
  readonly messages: number
  readonly decisions: number
  readonly answers: number
  readonly effects: number
  /** Calls of which nobody knows whether they took effect. */
  readonly interrupted: number
  /** Sentences about what is wrong. */
  readonly violations: ReadonlyArray<string>
}

export const none: Figures = {
  stories: 0,
  kills: 0,
  resumes: 0,
  messages: 0,
  decisions: 0,
  answers: 0,
  effects: 0,
  interrupted: 0,
  violations: []
}

export const sum = (a: Figures, b: Figures): Figures => ({
  stories: a.stories + b.stories,
  kills: a.kills + b.kills,
  resumes: a.resumes + b.resumes,
  messages: a.messages + b.messages,
  decisions: a.decisions + b.decisions,
  answers: a.answers + b.answers,
  effects: a.effects + b.effects,
  interrupted: a.interrupted + b.interrupted,
  violations: [...a.violations, ...b.violations]
})

/**
 * Plays the story once, with at most this many kills. `random` yields numbers from 0 up to 1. `postgres` is the address of
 * the store; default: a file of the story's own.
 */
export const play = (random: () => number, kills: number, postgres?: string): Effect.Effect<Figures> =>
  Effect.scoped(Effect.flatMap(Program.place, (place) => new Saga(place, random, kills, postgres).play)).pipe(
    Effect.provide(NodeContext.layer),
    Effect.orDie
  )

// -----------------------------------------------------------------------------------------------------------------

const run = (id: string) => ({
  name: "run_command",
  id,
  params: { command: `echo ${id} >> effects.txt; sleep 0.0${id.length % 7}` }
})
const ask = (id: string) => ({ name: "ask_user", id, params: { prompt: `What of ${id}?` } })

const agents = {
  main: [
    { delay: "20ms", tools: [run("a1"), run("a22"), { name: "list_files", id: "listed", params: {} }] },
    { delay: "20ms", tools: [ask("q1"), run("refused"), ask("q2")] },
    {
      delay: "20ms",
      tools: [
        { name: "agent", id: "helping", params: { task: "help" } },
        { name: "spawn_subagent", id: "spawning", params: { task: "toil", profile: "toiler" } },
        run("a333")
      ]
    },
    {
      delay: "30ms",
      tools: [
        {
          name: "request_clarification",
          id: "form",
          params: { context: "there are two", questions: [{ text: "Which?", choices: ["a", "b"] }] }
        }
      ]
    },
    { delay: "20ms", text: "All of that is done now.", chunks: 5, chunkDelay: "10ms" },
    { delay: "20ms", text: "I have heard." },
    { delay: "20ms", tools: [run("a4444"), ask("q3")] },
    { text: "Finished." }
  ],
  agent: [
    { delay: "20ms", tools: [run("h1"), run("h22")] },
    { delay: "20ms", tools: [ask("hq")] },
    { text: "Helped." }
  ],
  toiler: [
    { delay: "30ms", tools: [run("t1")] },
    { delay: "40ms", tools: [ask("tq"), run("t22")] },
    { text: "Toiled." }
  ]
}

const words = ["first", "second"]

/** What a test sees of a session's tree while nobody runs it. */
interface Kept {
  readonly sessions: ReadonlyArray<SessionSnapshot.SessionSnapshot>
  readonly open: ReadonlyArray<string>
  readonly texts: ReadonlyArray<string>
  readonly isQuiet: boolean
}

class Saga {
  private readonly violations: Array<string> = []
  private readonly acknowledged = new Set<string>()
  /** By prompt: what was answered and told to be. */
  private readonly answers = new Map<string, string>()
  private readonly settled = new Set<string>()
  private readonly decisions = new Set<string>()
  private readonly given = new Map<string, readonly [prompt: string, answer: string]>()
  private session: SessionId | undefined
  private killed = 0
  private processes = 0
  private interjected = false

  constructor(
    private readonly place: Program.Place,
    private readonly random: () => number,
    private readonly kills: number,
    private readonly postgres: string | undefined
  ) {}

  get play(): Effect.Effect<Figures, unknown, NodeContext.NodeContext> {
    return Effect.gen(this, function* () {
      yield* this.place.write("script.json", { version: 1, agents })
      yield* this.place.write("config/profiles/toiler.json", {
        name: "toiler",
        description: "toils",
        plugins: ["cli", "clarification"]
      })
      let before: Kept = yield* this.kept
      for (let over = false; !over;) {
        if (this.processes > this.kills + 20) {
          this.violations.push("it does not come to an end")
          break
        }
        const shown = new Set<string>()
        over = yield* Effect.scoped(this.process(before, shown))
        const now = yield* this.kept
        for (const id of before.open)
          if (!shown.has(id) && !now.open.includes(id)) this.violations.push(`${id} was open and did not come back`)
        before = now
      }
      const kept = yield* this.kept
      yield* this.judge(kept)
      const results = kept.sessions.flatMap(({ history }) => HistoryResults(history))
      return {
        stories: 1,
        kills: this.killed,
        resumes: this.processes - 1,
        messages: kept.sessions.reduce((total, { history }) => total + history.length, 0),
        decisions: this.decisions.size,
        answers: this.settled.size,
        effects: this.effects().length,
        interrupted: results.filter(({ result }) => isInterrupted(result)).length,
        violations: this.violations.map((problem) => `${this.session}: ${problem}`)
      }
    })
  }

  /** Runs one process until it has no more to do, or is killed. True: the story is over. */
  private process(before: Kept, shown: Set<string>): Effect.Effect<boolean, never, Scope.Scope> {
    return Effect.gen(this, function* () {
      this.processes++
      const program = yield* this.place.start([
        "run",
        "--jsonl",
        "--store",
        this.postgres ?? this.place.path("sessions.db"),
        "--model",
        `script:${this.place.path("script.json")}`,
        ...(this.session === undefined ? [] : ["--resume", this.session])
      ])
      const mortal = this.killed < this.kills
      const moment = Math.floor(this.random() * (this.random() < 0.15 ? 300 : 1_400))
      const interjects = !this.interjected && this.random() < 0.6 ? 200 + Math.floor(this.random() * 600) : undefined
      if (mortal) yield* Effect.forkScoped(Effect.delay(program.signal("SIGKILL"), moment))
      if (interjects !== undefined) {
        const knock = Effect.suspend(() => {
          this.interjected = true
          return program.tell({ _tag: "Send", text: "hurry", id: "hurry" })
        })
        yield* Effect.forkScoped(Effect.delay(knock, interjects))
      }
      let sent = words.filter((text) => before.texts.includes(text)).length
      const next = Effect.suspend(() => {
        const text = words[sent++]
        return text === undefined ? program.endInput : program.tell({ _tag: "Send", text, id: text })
      })
      /** By agent: what it has seen, and what it was told while it worked, by id. */
      const seen = new Map<string, Array<string>>()
      const told = new Map<string, string>()
      const acknowledge = (agent: string) => {
        for (const text of seen.get(agent) ?? []) this.acknowledged.add(text)
        seen.delete(agent)
      }
      const see = (agent: string, ...texts: ReadonlyArray<string>) =>
        seen.set(agent, [...(seen.get(agent) ?? []), ...texts])
      let begun = false
      for (;;) {
        const line = yield* Effect.exit(program.line(() => true))
        if (Exit.isFailure(line)) break
        const event = JSON.parse(line.value)
        switch (event._tag) {
          case "AgentCreated":
            this.session ??= event.sessionId
            if (!begun && event.agent === "main") {
              begun = true
              if (before.isQuiet) yield* next
            }
            break
          case "SendTaken":
            this.acknowledged.add(event.id)
            break
          case "TurnStarted":
            see(event.agent, ...event.input.split("\n\n"))
            break
          case "UserInterjected":
            told.set(event.messageId, event.message)
            break
          case "InterjectionAcknowledged":
            see(event.agent, told.get(event.messageId) ?? "")
            break
          case "ToolCallStarted":
          case "TurnEnded":
            // What its agent had seen before it is on the disk.
            acknowledge(event.agent)
            break
          case "PermissionResolved":
            this.decisions.add(event.toolCallId)
            break
          case "InteractionRequest": {
            const { requestId, interaction } = event.request
            shown.add(requestId)
            if (this.settled.has(requestId)) this.violations.push(`${requestId} was answered and is asked again`)
            const answer = this.answerTo(interaction)
            this.given.set(requestId, [interaction.prompt ?? "", String(answer)])
            yield* Effect.delay(program.tell({ _tag: "Answer", requestId, answer }), Math.floor(this.random() * 20))
            break
          }
          case "InteractionAnswered": {
            this.settled.add(event.requestId)
            const [prompt = "", answer = ""] = this.given.get(event.requestId) ?? []
            this.answers.set(prompt, answer)
            break
          }
          case "AnswerRejected":
            this.violations.push(`an answer was rejected: ${event.reason}`)
            break
          case "AgentStatusChanged":
            if (event.agent === "main" && event.status === "idle") yield* next
            break
        }
      }
      const { code, stderr } = yield* program.exit
      if (code === null) {
        this.killed++
        return false
      }
      if (code !== 0) this.violations.push(`a process ended with ${code}: ${stderr}`)
      return true
    })
  }

  private answerTo({ _tag, argumentsSummary, prompt }: Record<string, string | undefined>): unknown {
    switch (_tag) {
      case "Approve":
        return argumentsSummary?.includes("refused") === true ? "n" : "y"
      case "Ask":
        return `${prompt} ${Math.floor(this.random() * 1e9)}`
      default:
        return _tag === "Clarify" ? { "1": { selected: 2, text: "b" } } : "y"
    }
  }

  private get kept(): Effect.Effect<Kept, unknown, NodeContext.NodeContext> {
    const { session } = this
    const { postgres } = this
    const file = this.place.path("sessions.db")
    const nothing: Kept = { sessions: [], open: [], texts: [], isQuiet: true }
    if (session === undefined || (postgres === undefined && !fs.existsSync(file))) return Effect.succeed(nothing)
    return Effect.scoped(
      Effect.gen(this, function* () {
        const us = { pid: process.pid, host: "soak", isAlive: () => false }
        const store = yield* postgres === undefined
          ? LibsqlStore.make({ file, process: us })
          : PostgresStore.make({ url: Redacted.make(postgres), process: us })
        const loaded = yield* Effect.either(store.load(session))
        if (loaded._tag === "Left") {
          // Killed before anything was written down: there is no such session.
          if (loaded.left._tag !== "SessionUnknown") this.violations.push(loaded.left.message)
          this.session = undefined
          return nothing
        }
        const { sessions } = SessionSnapshot.fold(loaded.right.entries)
        const [root] = sessions
        return {
          sessions,
          open: sessions.flatMap(({ open }) => open.map(({ requestId }) => requestId)),
          texts: [...(root?.history ?? []).map(History.textOf), ...(root?.waiting ?? []).map(({ text }) => text)],
          isQuiet: sessions.every(
            ({ tasks, turn, waiting }) =>
              turn === undefined && waiting.length === 0 && tasks.every(({ toolCallId }) => toolCallId !== undefined)
          )
        }
      })
    )
  }

  private effects(): ReadonlyArray<string> {
    const file = this.place.path("workspace/effects.txt")
    return fs.existsSync(file) ? Program.linesOf(fs.readFileSync(file, "utf8")) : []
  }

  private judge({ isQuiet, open, sessions }: Kept): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { violations } = this
      if (!isQuiet) violations.push("something is still going on")
      for (const id of open) violations.push(`${id} is open`)
      for (const { history, opened } of sessions)
        violations.push(...HistoryRules.violations(history).map((problem) => `${opened.agent}: ${problem}`))
      const said = sessions.flatMap(({ history }) => history.map(History.textOf))
      for (const text of this.acknowledged) {
        const times = said.filter((one) => one === text).length
        if (times !== 1 && [...words, "hurry"].includes(text)) violations.push(`${text} is in history ${times} times`)
      }
      const effects = this.effects()
      for (const line of new Set(effects))
        if (effects.filter((one) => one === line).length > 1) violations.push(`${line} took effect twice`)
      if (effects.includes("refused")) violations.push("what was refused took effect")
      for (const { id, name, result } of sessions.flatMap(({ history }) => HistoryResults(history))) {
        if (isInterrupted(result)) {
          if (name !== "run_command") violations.push(`${name} was interrupted`)
          continue
        }
        if (name === "run_command" && id !== "refused" && !effects.includes(id)) violations.push(`${id} left no line`)
        const answer = name === "ask_user" ? this.answers.get(`What of ${id}?`) : undefined
        if (answer !== undefined && result !== answer)
          violations.push(`${id} was answered ${answer} and got ${String(result)}`)
      }
      const calls = sessions.flatMap(({ history }) => HistoryResults(history)).length
      const proposed = Object.values(agents).flatMap((steps) =>
        steps.flatMap((step) => ("tools" in step ? step.tools : []))
      )
      if (calls !== proposed.length) violations.push(`there are results of ${calls} calls, not of ${proposed.length}`)
      const audit = yield* this.place.run(["audit", "verify"])
      if (audit.code !== 0) violations.push(`the audit: ${audit.stderr}`)
    })
  }
}

const HistoryResults = (history: SessionSnapshot.SessionSnapshot["history"]) =>
  history.flatMap((message) => (message.role === "tool" ? message.content : []))

const isInterrupted = (result: unknown): boolean => typeof result === "string" && result.startsWith("The program ended")
