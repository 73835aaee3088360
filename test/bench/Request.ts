/** What a server is asked and what it answers, as JSON. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Zod } from "./Peers.js"
import * as Workload from "./Workload.js"

/** A request: decoded, worked on by an agent that says what it came to, and answered. */
export const served = <R>(agent: (prompt: string) => Effect.Effect<string, never, R>): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const { prompt, user } = yield* decode(body)
    const text = yield* agent(prompt)
    yield* Workload.expect("answer", yield* encode({ user, text }), right)
  }).pipe(Effect.orDie)

/** The same for a system that has promises and zod. */
export const servedByPromise = ({ z }: Zod, agent: (prompt: string) => Promise<string>): (() => Promise<void>) => {
  const asked = z.object<typeof Asked.Type>({ user: z.string(), prompt: z.string() })
  const answered = z.object<typeof Answered.Type>({ user: z.string(), text: z.string() })
  return async () => {
    const { prompt, user } = asked.parse(JSON.parse(body))
    const answer = JSON.stringify(answered.parse({ user, text: await agent(prompt) }))
    if (answer !== right) throw new Error(`The answer was ${answer}.`)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const body = JSON.stringify({ user: "u_42", prompt: "go" })
const right = JSON.stringify({ user: "u_42", text: "done" })

const Asked = Schema.Struct({ user: Schema.String, prompt: Schema.String })
const Answered = Schema.Struct({ user: Schema.String, text: Schema.String })

const decode = Schema.decodeUnknown(Schema.parseJson(Asked))
const encode = Schema.encode(Schema.parseJson(Answered))
