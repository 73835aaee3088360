/**
 * Questions of a tool server, and the person whom each one reaches.
 *
 * A question belongs to the call that caused it. A server of 2026 asks within the result of its call. An older server
 * asks beside its calls and names none: with one call in flight the question is of that call, with several of one agent
 * it is of that agent, with several agents of one tree it goes to the root's people. Calls of several trees cannot be
 * told apart, so nobody is asked and the server gets no answer.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ForeignText from "../core/ForeignText.js"
import type { SessionId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Visible from "../core/Visible.js"
import * as ForeignForm from "../interaction/ForeignForm.js"
import { Confirm, Elicit } from "../interaction/Interaction.js"
import * as Interactor from "../interaction/Interactor.js"
import type { Answer, Asked } from "./McpClient.js"

/** One call that runs at the server. */
export interface Flight {
  readonly origin: Origin.Origin
  /** The call's own fiber values: whom it asks, as whom. */
  readonly runtime: Runtime.Runtime<Interactor.Interactor>
  /** Questions of the call that are open: the time of a person does not count. */
  open: number
  /** When the server last gave a sign of the call. In milliseconds. */
  sign: number
  /** Questions that were asked so far. */
  asked: number
}

/** The people at the root of a tree, by its session. */
export type People = ReadonlyMap<SessionId, Interactor.Service>

export class ServerQuestions {
  private readonly flights = new Set<Flight>()

  constructor(
    private readonly server: string,
    private readonly people: People
  ) {}

  /** Runs the work as a call in flight, to which a question may belong. */
  during<A, E, R>(work: (flight: Flight) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Interactor.Interactor> {
    const { flights } = this
    return Effect.flatMap(
      Effect.all([Effect.runtime<Interactor.Interactor>(), Origin.current, Clock.currentTimeMillis]),
      ([runtime, origin, now]) => {
        const flight: Flight = { origin, runtime, open: 0, sign: now, asked: 0 }
        flights.add(flight)
        return Effect.ensuring(
          work(flight),
          Effect.sync(() => flights.delete(flight))
        )
      }
    )
  }

  /** Asks the person of one call, in the fiber of that call. */
  ask(flight: Flight, asked: Asked, remark?: string): Effect.Effect<Answer, never, Interactor.Interactor> {
    // A flood of questions would be answered by habit.
    if (++flight.asked > maxQuestions) return Effect.succeed({ action: "cancel" })
    return this.open(flight, ask(this.server, asked, remark))
  }

  /** Runs a question of a call: its time does not count. */
  open<A, E, R>(flight: Flight, question: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.acquireUseRelease(
      Effect.sync(() => flight.open++),
      () => question,
      () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          flight.open--
          flight.sign = now
        })
    )
  }

  /** A question that names no call, from a callback of the client. */
  readonly askUnnamed = (asked: Asked, signal: AbortSignal): Promise<Answer> => {
    const found = this.attribute()
    if (found === undefined) return Promise.resolve({ action: "cancel" })
    const { flight, interactor, remark } = found
    const question = this.ask(flight, asked, remark)
    // The question of an older server has no second life: a later process has no connection that waits for the answer.
    const once = Origin.once(question)
    const placed = interactor === undefined ? once : Interactor.withInteractor(interactor)(once)
    return Runtime.runPromiseExit(flight.runtime)(placed, { signal }).then((exit) =>
      Exit.isSuccess(exit) ? exit.value : { action: "cancel" }
    )
  }

  private attribute():
    | {
        readonly flight: Flight
        readonly interactor: Interactor.Service | undefined
        readonly remark: string | undefined
      }
    | undefined {
    const flights = [...this.flights]
    const [first] = flights
    if (first === undefined) return undefined
    if (flights.length === 1) return { flight: first, interactor: undefined, remark: undefined }
    const unnamed = `${flights.length} calls run at this server, and it does not say for which of them it asks.`
    if (flights.every(({ origin }) => origin.sessionId === first.origin.sessionId)) {
      return { flight: first, interactor: undefined, remark: unnamed }
    }
    const root = first.origin.rootSessionId
    if (flights.some(({ origin }) => origin.rootSessionId !== root)) return undefined
    const agents = [...new Set(flights.map(({ origin }) => origin.agent))].join(", ")
    const flight = flights.reduce((high, one) => (one.origin.depth < high.origin.depth ? one : high))
    const interactor = this.people.get(root)
    return interactor === undefined && flight.origin.depth > 0
      ? undefined
      : { flight, interactor, remark: `${unnamed} They are of ${agents}.` }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const declined: Answer = { action: "decline" }

/** Shows the question. What no person may be asked, such as a secret, is declined unasked. */
const ask = (
  server: string,
  asked: Asked,
  remark: string | undefined
): Effect.Effect<Answer, never, Interactor.Interactor> => {
  const said = UntrustedJson.echo(ForeignText.clean(asked.message), maxMessage)
  const words = [`The server ${server} asks: ${said}`, ...(remark === undefined ? [] : [remark])].join("\n")
  const question = asked.mode === "url" ? visit(server, words, asked.url) : fill(words, asked.schema)
  return question === undefined
    ? Effect.succeed(declined)
    : Origin.asking(`the server ${server}`)(question).pipe(
        Effect.catchAll((error) =>
          // A question that ends with its turn is nobody's no.
          Effect.succeed<Answer>({
            action: error._tag === "InteractionCancelled" && error.by !== undefined ? "decline" : "cancel"
          })
        )
      )
}

const maxMessage = 2_000

/** Questions of one call. */
const maxQuestions = 20

const visit = (server: string, words: string, address: string) => {
  if (!URL.canParse(address)) return undefined
  const url = new URL(address)
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined
  const shown = [
    words,
    `Open this page of ${url.host} yourself: ${Visible.visible(url.href)}`,
    `Say yes if ${server} may go on with what you do there.`
  ].join("\n")
  return Effect.map(Interactor.ask(new Confirm({ prompt: shown, default: false })), confirmed)
}

const confirmed = (yes: boolean): Answer => (yes ? { action: "accept" } : declined)

const fill = (words: string, schema: unknown) => {
  const properties = Predicate.isRecord(schema) ? schema["properties"] : undefined
  const isEmpty = properties === undefined || (Predicate.isRecord(properties) && Object.keys(properties).length === 0)
  if (isEmpty) {
    return Effect.map(Interactor.ask(new Confirm({ prompt: words, default: false })), (yes): Answer =>
      yes ? { action: "accept", content: {} } : declined
    )
  }
  const fields = ForeignForm.read(schema)
  if (fields === undefined) return undefined
  return Effect.map(Interactor.ask(new Elicit({ title: words, fields })), (values): Answer => ({
    action: "accept",
    content: Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, typeof value === "object" ? [...value] : value])
    )
  }))
}
