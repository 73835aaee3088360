/**
 * Whether a request of a known caller comes through to its handler: by the rule of its path, before its body is read.
 *
 * ```
 *   caller ─► rule of the path ─► requests a second ─► verbs ─► tenant ─► ids ─► room for the body ─► body ─► handler
 * ```
 *
 * So nobody without a token or key has a byte of a body kept.
 */
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { IncomingMessage } from "node:http"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Api from "./Api.js"
import * as LongJson from "./LongJson.js"
import * as RouteTable from "./RouteTable.js"
import * as Share from "./Share.js"
import * as Tenancy from "./Tenancy.js"

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

export const layer: Layer.Layer<Api.Admission> = Layer.scoped(
  Api.Admission,
  Effect.gen(function* () {
    const bodies = Share.make(bytes)
    const longJson = yield* LongJson.make
    const withinRate = Tenancy.rate()
    return Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { params, route } = yield* HttpRouter.RouteContext
      const caller = Option.getOrUndefined(yield* Effect.serviceOption(Api.Caller))
      const rule = RouteTable.ruleOf(route)
      if (rule === undefined || caller === undefined) return yield* withoutRule
      yield* withinRate(caller)
      yield* Tenancy.permit(caller, rule)
      for (const [name, value = ""] of Object.entries(params))
        if (Api.control.test(value))
          return yield* new Api.BadRequest({ message: `"${name}" has a control character. Give the id as you got it.` })
      const value = yield* Effect.scoped(bodyOf(request, rule, caller, bodies, longJson))
      // Where handlers look for it. The text is not kept: some answers last for hours.
      if (value !== undefined) Object.defineProperty(request, "json", { value: Effect.succeed(value.json) })
    })
  })
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Of all bodies that are on their way. */
const bytes = { all: 64 * 1_048_576, each: 16 * 1_048_576 }

/** How long one body may take. */
const patience = Duration.seconds(20)

const withoutRule = new Api.Forbidden({ message: "This path has no rule, so nobody may use it." })

type Refused = Effect.Effect.Error<(typeof Api.Admission)["Service"]>

const bodyOf = (
  request: HttpServerRequest.HttpServerRequest,
  { body: most }: RouteTable.Rule,
  caller: Api.Person,
  bodies: Share.Share,
  longJson: LongJson.LongJson
) =>
  Effect.gen(function* () {
    const { "content-length": length, "content-type": type, "transfer-encoding": encoding } = request.headers
    if (request.method === "GET" || request.method === "HEAD" || most === 0) return undefined
    const isEmpty = (length === undefined && encoding === undefined) || length === "0"
    if (isEmpty ? type !== undefined && !isJson(type) : !isJson(type)) return yield* notJson
    if (isEmpty) return undefined
    const declared = length === undefined ? most : Number(length)
    if (!(declared <= most)) return yield* tooLarge(most)
    yield* Effect.catchAll(bodies.hold(caller, declared), noRoom)
    const body = yield* Effect.timeoutFail(read(request, most), { duration: patience, onTimeout: () => late })
    const parsed: Effect.Effect<unknown, Api.BodyTooLarge | string> =
      body.length > RouteTable.short
        ? longJson.parse(body)
        : Either.mapLeft(UntrustedJson.parse(body.toString()), ({ message }) => message)
    const json = yield* Effect.mapError(parsed, (why) =>
      typeof why === "string" ? new Api.BadRequest({ message: `The body ${why}.` }) : why
    )
    return { json }
  })

/** At most so many bytes. What is behind them is not kept. */
const read = (request: HttpServerRequest.HttpServerRequest, most: number): Effect.Effect<Buffer, Refused> => {
  const { source } = request
  if (!(source instanceof IncomingMessage))
    return request.text.pipe(
      HttpIncomingMessage.withMaxBodySize(Option.some(most)),
      Effect.map(Buffer.from),
      Effect.catchAll(() => tooLarge(most))
    )
  return Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    const done = (outcome: Effect.Effect<Buffer, Refused>) => {
      leave()
      resume(outcome)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > most) done(tooLarge(most))
      else chunks.push(chunk)
    }
    const end = () => done(Effect.succeed(Buffer.concat(chunks)))
    const cut = () => done(tooLarge(most))
    const leave = () => void source.off("data", take).off("end", end).off("error", cut).off("close", cut)
    source.on("data", take).on("end", end).on("error", cut).on("close", cut)
    return Effect.sync(leave)
  })
}

const isJson = (type: string | undefined) => /^application\/json(?:\s*;|$)/i.test(type?.trim() ?? "")

const notJson = new Api.TypeRefused({
  message: "The body has to be JSON. Send it with the header content-type: application/json."
})

const tooLarge = (most: number) =>
  new Api.BodyTooLarge({ message: `The body has more than ${most} bytes, or did not arrive whole.` })

const late = new Api.BodyLate({
  message: `The body did not arrive within ${Duration.toSeconds(patience)} seconds. Send it again.`
})

const noRoom = (full: Share.Full): Effect.Effect<never, Api.TooManyRequests | Api.Unavailable> =>
  full === "caller"
    ? Tenancy.tooMany("You send very much at once. Wait for the answers to your other requests.", 1)
    : new Api.Unavailable({ message: "This server gets very much at once. Try again in a moment." })
