/**
 * Vercel's AI SDK: `generateText` with a tool. Its model is a plain object: the mock of `ai/test` keeps every prompt that it
 * ever saw, which would be held against it.
 */
import * as Effect from "effect/Effect"
import * as Peers from "../Peers.js"
import * as Questions from "../Questions.js"
import * as Request from "../Request.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"

const { generateText, isStepCount, tool } = await Peers.load<Sdk>("ai")
const zod = await Peers.load<Peers.Zod>("zod")

/** The part of the package that is used here. */
interface Sdk {
  readonly generateText: (options: {
    readonly model: Model
    readonly tools: Tools
    readonly stopWhen: unknown
    readonly prompt?: string
    readonly messages?: ReadonlyArray<unknown>
  }) => Promise<Generated>
  readonly isStepCount: (count: number) => unknown
  readonly tool: (options: {
    readonly description: string
    readonly inputSchema: unknown
    readonly needsApproval?: boolean
    readonly execute: (input: Sum) => Promise<number>
  }) => unknown
}

interface Generated {
  readonly text: string
  readonly content: ReadonlyArray<{ readonly type: string; readonly approvalId?: string }>
  readonly responseMessages: ReadonlyArray<unknown>
}

interface Model {
  readonly specificationVersion: "v4"
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: object
  readonly doGenerate: (options: { readonly prompt: ReadonlyArray<{ readonly role: string }> }) => Promise<unknown>
}

interface Sum {
  readonly a: number
  readonly b: number
}

type Tools = Readonly<Record<string, unknown>>

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined }
}

const answerOf = ({ calls, text }: Script.Reply, toolName: string) => ({
  content:
    calls.length === 0
      ? [{ type: "text", text }]
      : calls.map(({ id, a, b }) => ({ type: "tool-call", toolCallId: id, toolName, input: JSON.stringify({ a, b }) })),
  finishReason: { unified: calls.length === 0 ? "stop" : "tool-calls", raw: undefined },
  usage,
  warnings: []
})

/** `said` tells which answer is next; by default they are counted. */
const mock = (
  script: Script.Script,
  count: Workload.Tally,
  said: (prompt: ReadonlyArray<{ readonly role: string }>) => number = () => count.modelCalls,
  toolName = "add"
): Model => {
  const answers = script.map((reply) => answerOf(reply, toolName))
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "mock",
    supportedUrls: {},
    doGenerate: async ({ prompt }) => {
      const answer = answers[said(prompt)]
      count.modelCalls++
      if (answer === undefined) throw new Error("The script has no more steps.")
      return answer
    }
  }
}

/** By the history, where many agents share a model. */
const bySaying = (prompt: ReadonlyArray<{ readonly role: string }>) =>
  prompt.filter(({ role }) => role === "assistant").length

const inputSchema = zod.z.object<Sum>({ a: zod.z.number(), b: zod.z.number() })

/** `before` is what a call does first. */
const adding = (
  count: Workload.Tally,
  options: { before?: () => Promise<unknown>; needsApproval?: boolean } = {}
): Tools => {
  const { before, needsApproval = false } = options
  const execute = async ({ a, b }: Sum) => {
    if (before !== undefined) await before()
    count.toolRuns++
    count.sum += a + b
    return a + b
  }
  return { add: tool({ description: "Adds.", inputSchema, needsApproval, execute }) }
}

const stopWhen = isStepCount(1_000)

const run = (script: Script.Script) => {
  const count = Workload.tally()
  const expected = Workload.ofScript(script)
  const model = mock(script, count)
  const tools = adding(count)
  return async () => {
    Object.assign(count, Workload.tally())
    const { text } = await generateText({ model, tools, stopWhen, prompt: "go" })
    Workload.assertRun(text, count, expected)
  }
}

const lives = (turns: number, units: number) => Effect.sync(() => Workload.awaited(units, run(Script.turns(turns))))

const parallel = Effect.sync(() => {
  const size = 100
  const script = Script.batch(size)
  const expected = Workload.ofScript(script)
  const count = Workload.tally()
  let crowd = new Script.Crowd(size)
  const model = mock(script, count)
  const tools = adding(count, { before: () => crowd.join() })
  return Workload.awaited(size, async () => {
    Object.assign(count, Workload.tally())
    crowd = new Script.Crowd(size)
    const { text } = await generateText({ model, tools, stopWhen, prompt: "go" })
    Workload.assertRun(text, count, expected)
  })
})

/** Its own approvals: a run ends where one is needed, and the next goes on with the answer. */
const approved = (turns: number) =>
  Effect.sync(() => {
    const script = Script.turns(turns)
    const expected = { ...Workload.ofScript(script), asked: turns }
    const count = Workload.tally()
    const model = mock(script, count)
    const tools = adding(count, { needsApproval: true })
    return Workload.awaited(turns, async () => {
      Object.assign(count, Workload.tally())
      const messages: Array<unknown> = [{ role: "user", content: "go" }]
      for (;;) {
        const { content, responseMessages, text } = await generateText({ model, tools, stopWhen, messages })
        const asked = content.filter(({ type }) => type === "tool-approval-request")
        if (asked.length === 0) return Workload.assertRun(text, count, expected)
        count.asked += asked.length
        const answers = asked.map(({ approvalId }) => ({ type: "tool-approval-response", approvalId, approved: true }))
        messages.push(...responseMessages, { role: "tool", content: answers })
      }
    })
  })

const server = Effect.sync(() => {
  const script = Script.turns(1)
  const expected = Workload.ofScript(script)
  const count = Workload.tally()
  const model = mock(script, count)
  const tools = adding(count)
  const request = Request.servedByPromise(zod, async (prompt) => {
    const { text } = await generateText({ model, tools, stopWhen, prompt })
    return text
  })
  return Workload.awaited(1, async () => {
    Object.assign(count, Workload.tally())
    await request()
    Workload.assertRun("done", count, expected)
  })
})

/** The tool waits for the answer in its place, which is cheaper than to begin again from the messages. */
const blocked = (size: number) =>
  Effect.sync((): Workload.Workload => {
    const count = Workload.tally()
    const questions = Questions.make()
    const model = mock(Script.turns(1), count, bySaying)
    const tools = adding(count, { before: questions.ask })
    const all = async () => {
      const runs: Array<Promise<Generated>> = []
      for (let i = 0; i < size; i++) runs.push(generateText({ model, tools, stopWhen, prompt: "go" }))
      for (const run of runs) if ((await run).text !== "done") throw new Error("An agent said something else.")
    }
    return {
      sample: () =>
        Effect.promise(async () => {
          Object.assign(count, Workload.tally())
          const sample = await questions.blocked(size, all)
          Workload.assertRun("done", count, { modelCalls: 2 * size, toolRuns: size, sum: size })
          return sample
        })
    }
  })

/** A parent that calls so many children at once; each is a run of its own, whose tool asks. */
const children = (size: number) =>
  Effect.sync((): Workload.Workload => {
    const count = Workload.tally()
    const questions = Questions.make()
    const model = mock(Script.turns(1), count, bySaying)
    const tools = adding(count, { before: questions.ask })
    const parent = mock(Script.batch(size), count, bySaying, "child")
    const child = tool({
      description: "Works.",
      inputSchema,
      execute: async () => {
        const { text } = await generateText({ model, tools, stopWhen, prompt: "go" })
        return text.length
      }
    })
    const all = async () => {
      const { text } = await generateText({ model: parent, tools: { child }, stopWhen, prompt: "go" })
      if (text !== "done") throw new Error("The parent said something else.")
    }
    return {
      sample: () =>
        Effect.promise(async () => {
          Object.assign(count, Workload.tally())
          const sample = await questions.blocked(size, all)
          Workload.assertRun("done", count, { modelCalls: 2 * size + 2, toolRuns: size })
          return sample
        })
    }
  })

/** The tool, and the first life of a process. */
export const first: Workload.First = () => run(Script.turns(1))()

export const workloads: Workload.Workloads = {
  turn: lives(50, 50),
  parallel,
  "life-1": lives(1, 1),
  "life-3": lives(3, 1),
  "life-10": lives(10, 1),
  "life-50": lives(50, 1),
  "approval-10": approved(10),
  approval: approved(50),
  server,
  "blocked-1000": blocked(1_000),
  "children-1000": children(1_000)
}
