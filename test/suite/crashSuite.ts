/**
 * The contract of persistence, run over every store: a tree of agents whose process dies at any moment, again and again: what was acknowledged is there, what was decided stays
 * decided, what was done is not done twice, and in the end everything is as if nobody had died.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as FastCheck from "fast-check"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as SubagentControl from "../../src/builtin/SubagentControl.js"
import * as Origin from "../../src/core/Origin.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as History from "../../src/conversation/History.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as AcceptedAnswers from "../kit/AcceptedAnswers.js"
import * as Family from "../kit/Family.js"
import { violations } from "../kit/historyRules.js"
import * as Mortal from "../kit/Mortal.js"

const simple = { parameters: { name: Schema.String }, success: Schema.String }
const Work = Tool.make("work", simple)
const Push = Tool.make("push", simple)
const Drop = Tool.make("drop", simple)
/** May be done again. */
const Look = Tool.make("look", simple).annotate(Tool.Idempotent, true)

const own = Toolkit.make(Work, Push, Drop, Look)
const toolkit = Toolkit.merge(own, Delegate.toolkit, SubagentControl.toolkit, Clarification.toolkit)

const use = (name: string, id: string, params: object = { name: id }): ScriptedModel.ToolUse => ({ name, id, params })
const step = (...tools: ReadonlyArray<ScriptedModel.ToolUse>): ScriptedModel.Step => ({
  text: "Let me.",
  tools,
  usage: { input: 10, output: 5 }
})

const form = {
  context: "there are two",
  questions: [
    { text: "Which?", question_type: "single_choice", choices: ["a", "b"] },
    { text: "Why?", question_type: "free_text", choices: [], required: false }
  ]
}

const script: ScriptedModel.Script["agents"] = {
  main: [
    step(use("work", "yes"), use("look", "seen"), use("work", "always"), use("work", "after_always")),
    step(
      use("delegate", "helping", { task: "help", profile: "helper" }),
      use("spawn_subagent", "spawning", { task: "nest", profile: "nested", keep: true }),
      use("delegate", "inline", { task: "toil", plugins: ["work"], max_turns: 3 })
    ),
    step(
      use("request_clarification", "form", form),
      use("ask_user", "asked", { prompt: "Which one?" }),
      use("ask_user", "asked_again", { prompt: "Which one?" }),
      use("ask_user", "withdrawn", { prompt: "Really?" }),
      use("drop", "refused"),
      use("push", "turn"),
      use("push", "after_turn"),
      use("nothing", "unknown"),
      use("work", "malformed", {})
    ),
    step(use("look", "knock")),
    step(use("agent_ask", "asking", { agent_id: "subagent_2", question: "and?" })),
    { text: "done" },
    { text: "heard" },
    step(use("drop", "all"), use("drop", "after_all")),
    { text: "finished" }
  ],
  helper: [
    step(use("work", "h_work"), use("push", "h_push"), use("drop", "h_idle"), use("drop", "h_after_idle")),
    { text: "helped" },
    { text: "and that" }
  ],
  nested: [step(use("drop", "n_drop")), step(use("ask_user", "n_asked", { prompt: "Mine?" })), { text: "nested done" }],
  subagent: [step(use("work", "i_work")), { text: "toiled" }]
}

const typed: { readonly [call: string]: string } = {
  always: "a",
  refused: "c: not now",
  turn: "t",
  h_idle: "i",
  all: "all"
}

const answerTo = ({ interaction }: InteractionRequest): TestInteractor.Step => {
  switch (interaction._tag) {
    case "Approve":
      return typed[interaction.toolCallId] ?? "y"
    case "Clarify":
      return TestInteractor.answer({ "1": { selected: 2, text: "b" }, "2": { value: "because" } })
    case "Ask":
      return interaction.prompt === "Really?" ? TestInteractor.cancel : `answer to ${interaction.prompt}`
    case "approveSubagentEnvelope":
      return TestInteractor.answer({ outcome: "approve" })
    default:
      return "y"
  }
}

const words = ["first", "second"]

/** One run of the whole story, over as many processes as it takes. */
const run = (worlds: Options["world"], deaths: ReadonlyArray<Mortal.Death>) =>
  Effect.gen(function* () {
    const world = yield* worlds
    const started = new Map<string, number>()
    const acknowledged: Array<string> = []
    let agent: Agent.Agent | undefined
    const begin = Effect.flatMap(Origin.current, ({ toolCallId = "" }) =>
      Effect.suspend(() => {
        started.set(toolCallId, (started.get(toolCallId) ?? 0) + 1)
        if (toolCallId !== "knock" || agent === undefined) return Effect.void
        return Effect.map(Effect.orDie(agent.send("knock")), () => {
          if (!acknowledged.includes("knock")) acknowledged.push("knock")
        })
      })
    )
    const worked = ({ name }: { readonly name: string }) => Effect.as(begin, `${name} is done`)
    const handlers = Layer.mergeAll(
      own.toLayer({ work: worked, push: worked, drop: worked, look: worked }),
      Delegate.layer,
      SubagentControl.layer,
      Clarification.layer
    )
    const runtime: Mortal.Options["runtime"] = (ids) =>
      AgentRuntime.layer({
        toolkit,
        policy: PermissionFile.policy({ whitelist: { tools: ["spawn_subagent"] } }),
        subagents: {
          profiles: [Family.profile("helper"), Family.profile("nested")],
          inline: { allowed: true, plugins: ["work"] }
        }
      }).pipe(
        Layer.provide(
          Layer.mergeAll(handlers, ScriptedModel.layer({ agents: script }), FileSystem.layerNoop({}), Path.layer)
        ),
        Layer.provide(ids),
        Layer.merge(ids)
      )
    const lives: Array<Mortal.Life> = []
    const open: Array<ReadonlyArray<string>> = []
    const journal = Effect.gen(function* () {
      const id = world.id
      assert.isDefined(id)
      const store = yield* world.open(0)
      return yield* Effect.map(Effect.either(store.load(id)), (loaded) =>
        loaded._tag === "Right" ? SessionSnapshot.fold(loaded.right.entries) : SessionSnapshot.empty
      )
    })
    for (let life = 0; ; life++) {
      const known = world.id === undefined ? SessionSnapshot.empty : yield* journal
      // What was never written down leaves nothing to go on with.
      if (known.seq === 0) world.id = undefined
      const drive = (mine: Agent.Agent, restored: SessionSnapshot.TreeSnapshot | undefined) =>
        Effect.gen(function* () {
          agent = mine
          const texts = (restored?.sessions[0]?.history ?? []).map(History.textOf)
          const waiting = (restored?.sessions[0]?.waiting ?? []).map(({ text }) => text)
          for (const text of words) {
            if (!texts.includes(text) && !waiting.includes(text)) {
              yield* mine.send(text)
              acknowledged.push(text)
            }
            yield* mine.awaitIdle
          }
        })
      const ended = yield* Mortal.live(world, { runtime, person: answerTo }, drive, deaths[life])
      lives.push(ended)
      open.push((yield* journal).sessions.flatMap((session) => session.open.map(({ requestId }) => requestId)))
      if (!ended.died) break
    }
    const { entries } =
      world.id === undefined ? { entries: [] } : yield* Effect.orDie((yield* world.open(0)).load(world.id))
    return { started, acknowledged, lives, open, entries, journal: yield* journal, agent: lives.at(-1)?.agent }
  }).pipe(Effect.scoped)

type Run = Effect.Effect.Success<ReturnType<typeof run>>

/** What was said, and what came of every call, without what differs between any two runs. */
const storyOf = (history: ReadonlyArray<Prompt.Message>) =>
  history.flatMap((message): ReadonlyArray<unknown> => {
    if (message.role === "system") return []
    if (message.role === "tool") return message.content.map(({ id, result }) => ({ id, result: plain(result) }))
    const calls =
      message.role === "assistant" ? message.content.flatMap((part) => (part.type === "tool-call" ? part.id : [])) : []
    return [{ role: message.role, text: History.textOf(message), ...(calls.length > 0 ? { calls } : {}) }]
  })

/** Results name the tokens of the children's calls, which a generation that was cut off uses twice. */
const plain = (result: unknown): unknown =>
  typeof result === "object" && result !== null && "token_usage" in result
    ? { ...result, token_usage: undefined }
    : result

const wrongIn = (run: Run, reference: Run): ReadonlyArray<string> => {
  const wrong: Array<string> = [...AcceptedAnswers.wrongIn(run)]
  const { sessions } = run.journal
  for (const session of sessions) {
    const { agent } = session.opened
    wrong.push(...violations(session.history).map((problem) => `${agent}: ${problem}`))
    if (session.turn !== undefined) wrong.push(`${agent} has a turn that did not end`)
    if (session.waiting.length > 0) wrong.push(`${agent} has words that were not read`)
    if (session.open.length > 0) wrong.push(`${agent} has ${session.open.length} questions open`)
    if (session.batch !== undefined) wrong.push(`${agent} has calls without results`)
    if (session.tasks.some(({ toolCallId }) => toolCallId === undefined))
      wrong.push(`${agent} has an end nobody was told`)
  }
  for (const [call, times] of run.started) {
    if (times > 1 && call !== "seen" && call !== "knock") wrong.push(`${call} was started ${times} times`)
  }
  const history = run.agent?.history.messages ?? []
  const kept = storyOf(sessions[0]?.history ?? [])
  if (JSON.stringify(kept) !== JSON.stringify(storyOf(history))) wrong.push("the journal has another history")
  const said = history.flatMap((message) =>
    message.role === "user" && History.metadata(message).source === "user" ? [History.textOf(message)] : []
  )
  for (const text of run.acknowledged) {
    const times = said.filter((one) => one === text).length
    // A tool that may be run again says it again.
    if (text === "knock" ? times < 1 : times !== 1) wrong.push(`${text} is in history ${times} times`)
  }
  for (const [index, life] of run.lives.entries()) {
    const answered = life.events.flatMap((event) => (event._tag === "InteractionAnswered" ? [event.requestId] : []))
    const later = run.lives.slice(index + 1)
    for (const id of answered) {
      if (later.some(({ shown }) => shown.some(({ requestId }) => requestId === id)))
        wrong.push(`${id} was asked again`)
    }
    const next = run.lives[index + 1]
    if (next === undefined) continue
    for (const id of run.open[index] ?? []) {
      const isBack = next.shown.some(({ requestId }) => requestId === id) || run.open[index + 1]?.includes(id) === true
      if (!isBack) wrong.push(`${id} was open and did not come back`)
    }
  }
  for (const session of reference.journal.sessions) {
    const { agent } = session.opened
    const same = sessions.find(({ opened }) => opened.agent === agent)
    if (same === undefined) {
      wrong.push(`${agent} was never made`)
      continue
    }
    const now = JSON.stringify(comparable(same.history, session.history))
    const then = JSON.stringify(comparable(session.history, same.history))
    if (now !== then) wrong.push(`${agent} came out otherwise:\n  ${now}\n  ${then}`)
  }
  if (sessions.length !== reference.journal.sessions.length) wrong.push(`there are ${sessions.length} sessions`)
  return wrong
}

/** Calls that were under way when a process died have no result to compare. */
const comparable = (history: ReadonlyArray<Prompt.Message>, other: ReadonlyArray<Prompt.Message>) => {
  const lost = new Set(
    [...history, ...other].flatMap((message) =>
      message.role !== "tool"
        ? []
        : message.content.flatMap(({ id, result }) =>
            typeof result === "string" && result.startsWith("The program ended") ? [id] : []
          )
    )
  )
  const isKnock = (entry: unknown) => JSON.stringify(entry).includes('"knock"')
  return storyOf(history).filter(
    (entry) =>
      !isKnock(entry) && !(typeof entry === "object" && entry !== null && "id" in entry && lost.has(String(entry.id)))
  )
}

export interface Options {
  /** A fresh world for each run. */
  readonly world: Effect.Effect<Mortal.CallerContext, never, Scope.Scope>
  /** Of the writes at which a process can die, every so many is tried. */
  readonly every: number
  /** Runs whose processes die several times. */
  readonly runs: number
}

export const crashSuite = (name: string, { every, runs, world }: Options): void => {
  describe(`a session in ${name} whose process dies`, () => {
    it.effect(
      "comes out the same, whenever that was",
      () =>
        Effect.gen(function* () {
          const reference = yield* run(world, [])
          assert.deepStrictEqual(wrongIn(reference, reference), [])
          const writes = reference.lives[0]?.writes ?? 0
          assert.isAbove(writes, 80)
          // The story has all of them in it.
          const kinds = new Set(reference.lives[0]?.shown.map(({ interaction }) => interaction._tag))
          assert.deepStrictEqual([...kinds].sort(), ["Approve", "Ask", "Clarify", "approveSubagentEnvelope"])
          const wrong: Array<string> = []
          for (let at = 1; at <= writes; at += every) {
            const cut = yield* run(world, [{ at, written: at % 5 === 0 }])
            wrong.push(...wrongIn(cut, reference).map((problem) => `${at}: ${problem}`))
          }
          assert.deepStrictEqual(wrong, [])
        }),
      240_000
    )

    it.effect(
      "comes out the same, however often that was",
      () =>
        Effect.gen(function* () {
          const reference = yield* run(world, [])
          const writes = reference.lives[0]?.writes ?? 0
          const deaths = FastCheck.array(
            FastCheck.record({ at: FastCheck.integer({ min: 1, max: writes }), written: FastCheck.boolean() }),
            { minLength: 2, maxLength: 6 }
          )
          for (const several of FastCheck.sample(deaths, { numRuns: runs, seed: 7 })) {
            assert.deepStrictEqual(wrongIn(yield* run(world, several), reference), [], JSON.stringify(several))
          }
        }),
      240_000
    )
  })
}
