/** A client of AG-UI of others, as a person's page drives it. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Served from "../../kit/Served.js"

export const versions = [{ version: "0.0.59" }, { version: "1.0.0" }] as const

/** What the tests use of the package. */
interface Package {
  readonly HttpAgent: new (config: object) => HttpAgent
}

// Messages and events are those of the package; each test says what it expects.
interface HttpAgent {
  messages: ReadonlyArray<any>
  pendingInterrupts: ReadonlyArray<any>
  readonly state: any
  readonly addMessage: (message: object) => void
  readonly runAgent: (parameters: object, subscriber: object) => Promise<unknown>
  readonly abortRun: () => void
}

const nameOf = { "0.0.59": "agui-0", "1.0.0": "agui-1" } as const

/** Where the package is; nothing when it is not installed. */
export const load = (version: keyof typeof nameOf): URL | undefined => {
  const url = new URL(`node_modules/${nameOf[version]}/dist/index.mjs`, import.meta.url)
  return fs.existsSync(url) ? url : undefined
}

let ids = 0

/** A client of a new session. Its runs yield their events, and fail as the client does. */
export const agent = (url: URL | undefined, served: Served.Served) =>
  Effect.gen(function* () {
    const { HttpAgent }: Package = yield* Effect.promise(() => import(String(url)))
    const sessionId = String((yield* served.call("/v1/sessions", {})).body.sessionId)
    const http = new HttpAgent({
      url: `${served.url}/v1/agui/${sessionId}`,
      headers: { authorization: `Bearer ${served.token}` },
      threadId: `thread-${++ids}`
    })
    const run = (parameters: object = {}, seen: (events: ReadonlyArray<any>) => unknown = () => undefined) =>
      Effect.tryPromise({
        try: async () => {
          const events: Array<any> = []
          const onEvent = ({ event }: { event: unknown }) => {
            events.push(event)
            seen(events)
          }
          await quietly(http.runAgent({ runId: `run-${++ids}`, ...parameters }, { onEvent }))
          return events as ReadonlyArray<any>
        },
        catch: (error) => new Cause.UnknownException(error, error instanceof Error ? error.message : String(error))
      })
    const say = (content: string, seen?: (events: ReadonlyArray<any>) => unknown) =>
      Effect.suspend(() => {
        http.addMessage({ id: `message-${++ids}`, role: "user", content })
        return run({}, seen)
      })
    /**
     * The interrupts of a run once the session waits for so many. On a machine with other work two questions may be further
     * apart than a run waits for siblings.
     */
    const asked = (count: number) =>
      Effect.gen(function* () {
        yield* Served.until(served.call(`/v1/sessions/${sessionId}`), ({ body }) => body.open.length === count)
        if (http.pendingInterrupts.length !== count) {
          http.pendingInterrupts = []
          yield* run()
        }
        return http.pendingInterrupts
      })
    return { http, sessionId, run, say, asked }
  })

/** The clients print their errors, too. */
const quietly = async <A>(running: Promise<A>): Promise<A> => {
  const { error } = console
  console.error = () => undefined
  try {
    return await running
  } finally {
    console.error = error
  }
}

/** An entry of `resume`. */
export const resolved = ({ id }: { readonly id: string }, payload: unknown) => ({
  interruptId: id,
  status: "resolved",
  payload
})

/** A line for each message. */
export const transcript = (messages: ReadonlyArray<any>): ReadonlyArray<string> =>
  messages.map(({ content = "", role, toolCalls = [] }) => {
    const calls = toolCalls.map((call: any) => call.function.name).join(", ")
    return `${role}: ${content}${calls === "" ? "" : ` (${calls})`}`
  })

/** Prints the events for a person who asks for them with `ASSENT_TRANSCRIPTS=1`. */
export const show = (version: string, name: string, events: ReadonlyArray<any>): void => {
  if (process.env["ASSENT_TRANSCRIPTS"] !== "1") return
  const lines = events.map(({ type, ...rest }) => `${type} ${JSON.stringify(rest)}`.slice(0, 160))
  process.stderr.write(`\n# ${version}: ${name}\n${lines.join("\n")}\n`)
}
