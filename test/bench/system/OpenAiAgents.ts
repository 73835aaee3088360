/** OpenAI Agents: a runner and an agent that all runs share, with a model of our own and without tracing. */
import * as Effect from "effect/Effect"
import * as Peers from "../Peers.js"
import * as Questions from "../Questions.js"
import * as Request from "../Request.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"

const { Agent, Runner, setTracingDisabled, tool, Usage } = await Peers.load<Package>("@openai/agents")
const zod = await Peers.load<Peers.Zod>("zod")
setTracingDisabled(true)

/** The part of the package that is used here. */
interface Package {
  readonly Agent: new (options: {
    readonly name: string
    readonly instructions: string
    readonly model: Model
    readonly tools: ReadonlyArray<unknown>
  }) => Agent
  readonly Runner: new (options: { readonly tracingDisabled: boolean }) => {
    readonly run: (agent: Agent, input: string | State, options: { readonly maxTurns: number }) => Promise<Result>
  }
  readonly Usage: new (options: object) => object
  readonly setTracingDisabled: (disabled: boolean) => void
  readonly tool: (options: {
    readonly name: string
    readonly description: string
    readonly parameters: unknown
    readonly needsApproval?: boolean
    readonly execute: (input: Sum) => Promise<number>
  }) => unknown
}

interface Agent {
  readonly name: string
}

interface Result {
  readonly finalOutput?: string
  readonly interruptions: ReadonlyArray<object>
  readonly state: State
}

interface State {
  readonly approve: (interruption: object) => void
}

interface Asked {
  readonly input: string | ReadonlyArray<{ readonly type?: string }>
}

interface Model {
  readonly getResponse: (request: Asked) => Promise<unknown>
  readonly getStreamedResponse: () => never
}

interface Sum {
  readonly a: number
  readonly b: number
}

const outputOf = ({ calls, text }: Script.Reply) =>
  calls.length === 0
    ? [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }]
    : calls.map(({ id, a, b }) => ({
        type: "function_call",
        callId: id,
        name: "add",
        arguments: JSON.stringify({ a, b }),
        status: "completed"
      }))

/** `said` tells which answer is next; by default they are counted. */
const mock = (
  script: Script.Script,
  count: Workload.Tally,
  said: (request: Asked) => number = () => count.modelCalls
): Model => {
  const outputs = script.map(outputOf)
  return {
    getResponse: async (request) => {
      const output = outputs[said(request)]
      count.modelCalls++
      if (output === undefined) throw new Error("The script has no more steps.")
      return { usage: new Usage({ requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 }), output }
    },
    getStreamedResponse: () => {
      throw new Error("Nobody streams here.")
    }
  }
}

/** By the history, where many agents share a model. */
const bySaying = ({ input }: Asked) =>
  typeof input === "string" ? 0 : input.filter(({ type }) => type === "function_call").length

const parameters = zod.z.object<Sum>({ a: zod.z.number(), b: zod.z.number() })

/** `before` is what a call does first. */
const adding = (count: Workload.Tally, options: { before?: () => Promise<unknown>; needsApproval?: boolean } = {}) => {
  const { before, needsApproval = false } = options
  const execute = async ({ a, b }: Sum) => {
    if (before !== undefined) await before()
    count.toolRuns++
    count.sum += a + b
    return a + b
  }
  return tool({ name: "add", description: "Adds.", parameters, needsApproval, execute })
}

const agentOf = (model: Model, add: unknown) => ({
  agent: new Agent({ name: "main", instructions: "", model, tools: [add] }),
  runner: new Runner({ tracingDisabled: true })
})

const maxTurns = 1_000

const run = (script: Script.Script) => {
  const count = Workload.tally()
  const expected = Workload.ofScript(script)
  const { agent, runner } = agentOf(mock(script, count), adding(count))
  return async () => {
    Object.assign(count, Workload.tally())
    const { finalOutput } = await runner.run(agent, "go", { maxTurns })
    Workload.assertRun(finalOutput, count, expected)
  }
}

const lives = (turns: number, units: number) => Effect.sync(() => Workload.awaited(units, run(Script.turns(turns))))

/** What its runs share. */
const make = Effect.sync(() => {
  const count = Workload.tally()
  const model = mock([], count)
  const add = adding(count)
  return Workload.awaited(1, async () => {
    if (agentOf(model, add).agent.name !== "main") throw new Error("There is no agent.")
  })
})

const parallel = Effect.sync(() => {
  const size = 100
  const script = Script.batch(size)
  const expected = Workload.ofScript(script)
  const count = Workload.tally()
  let crowd = new Script.Crowd(size)
  const { agent, runner } = agentOf(mock(script, count), adding(count, { before: () => crowd.join() }))
  return Workload.awaited(size, async () => {
    Object.assign(count, Workload.tally())
    crowd = new Script.Crowd(size)
    const { finalOutput } = await runner.run(agent, "go", { maxTurns })
    Workload.assertRun(finalOutput, count, expected)
  })
})

/** Its own approvals: a run ends where one is needed, and the next goes on with its state. */
const approved = (turns: number) =>
  Effect.sync(() => {
    const script = Script.turns(turns)
    const expected = { ...Workload.ofScript(script), asked: turns }
    const count = Workload.tally()
    const { agent, runner } = agentOf(mock(script, count), adding(count, { needsApproval: true }))
    return Workload.awaited(turns, async () => {
      Object.assign(count, Workload.tally())
      let result = await runner.run(agent, "go", { maxTurns })
      while (result.interruptions.length > 0) {
        for (const interruption of result.interruptions) {
          count.asked++
          result.state.approve(interruption)
        }
        result = await runner.run(agent, result.state, { maxTurns })
      }
      Workload.assertRun(result.finalOutput, count, expected)
    })
  })

const server = Effect.sync(() => {
  const script = Script.turns(1)
  const expected = Workload.ofScript(script)
  const count = Workload.tally()
  const { agent, runner } = agentOf(mock(script, count), adding(count))
  const request = Request.servedByPromise(zod, async (prompt) => {
    const { finalOutput } = await runner.run(agent, prompt, { maxTurns })
    return finalOutput ?? ""
  })
  return Workload.awaited(1, async () => {
    Object.assign(count, Workload.tally())
    await request()
    Workload.assertRun("done", count, expected)
  })
})

/** The tool waits for the answer in its place, which is cheaper than to begin again from a state. */
const blocked = (size: number) =>
  Effect.sync((): Workload.Workload => {
    const count = Workload.tally()
    const questions = Questions.make()
    const { agent, runner } = agentOf(mock(Script.turns(1), count, bySaying), adding(count, { before: questions.ask }))
    const all = async () => {
      const runs: Array<Promise<Result>> = []
      for (let i = 0; i < size; i++) runs.push(runner.run(agent, "go", { maxTurns }))
      for (const run of runs) if ((await run).finalOutput !== "done") throw new Error("An agent said something else.")
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

/** The agent, the runner and the first life of a process. */
export const first: Workload.First = () => run(Script.turns(1))()

export const workloads: Workload.Workloads = {
  turn: lives(50, 50),
  parallel,
  make,
  "life-1": lives(1, 1),
  "life-3": lives(3, 1),
  "life-10": lives(10, 1),
  "life-50": lives(50, 1),
  "approval-10": approved(10),
  approval: approved(50),
  server,
  "blocked-1000": blocked(1_000)
}
