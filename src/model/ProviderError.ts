/**
 * Converts errors of providers to `ModelError`s.
 *
 * Client libraries keep requests, headers and causes in their errors, and with them the API key. None of that is passed
 * on: an error of this file holds a status, a time to wait and one masked sentence.
 */
import type * as AiError from "@effect/ai/AiError"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as ProxyFault from "../core/ProxyFault.js"
import * as Redaction from "../core/Redaction.js"
import * as ModelError from "./ModelError.js"

/** The model, and advice about a refused key. */
export interface Source {
  /** `provider/model`. */
  readonly model: string
  /** Masks the sent keys, which servers echo. Default: masks token shapes only. */
  readonly redactor?: Redaction.Redactor | undefined
  /** A sentence such as `Check ANTHROPIC_API_KEY.` */
  readonly credentials?: string | undefined
}

/** The parts of an unsuccessful response that are read. */
export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** As sent: JSON, plain text or nothing. */
  readonly body: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The error of an unsuccessful status. */
export const fromResponse = (source: Source, response: Response): ModelError.ModelError => {
  if (response.status === 0 || (response.status >= 300 && response.status < 400)) return redirected(source, response)
  const report = reportOf(parsed(response.body))
  return classify(source, { ...report, status: response.status, retryAfter: waitOf(response) ?? report.retryAfter })
}

/** The error of an error object inside a stream. */
export const fromReported = (source: Source, error: unknown): ModelError.ModelError => classify(source, reportOf(error))

/** No connection, or a broken one. `detail` is shown in brackets. */
export const network = (source: Source, detail: string): ModelError.Network =>
  new ModelError.Network({
    model: source.model,
    message: sentence(source, "the connection failed", { text: detail }, "Check the network and the base URL.")
  })

/** The stream ended without the model's finish. */
export const cutOff = (source: Source): ModelError.Network => network(source, incomplete)

export const incomplete = "the answer ended before it was complete"

/** An unusable answer. */
export const badOutput = (source: Source, detail: string): ModelError.BadOutput =>
  new ModelError.BadOutput({
    model: source.model,
    message: sentence(source, "the answer cannot be used", { text: detail }, "Try again, or use another model.")
  })

/** A request that cannot be made, or was refused. */
export const refused = (source: Source, detail: string): ModelError.ModelError =>
  classify(source, { ...nothing, text: detail, status: 400 })

/** Errors of `@effect/ai` clients. */
export const fromAiError = (source: Source, error: AiError.AiError): ModelError.ModelError => {
  switch (error._tag) {
    case "HttpRequestError":
      return fromRequest(source, error.reason, error.request.url, "cause" in error ? error.cause : undefined)
    case "HttpResponseError":
      return error.reason === "StatusCode"
        ? fromResponse(source, { ...error.response, body: error.body })
        : cutOff(source)
    case "MalformedInput":
      return refused(source, error.description ?? "the request could not be built")
    case "MalformedOutput":
      return reportedWithin(source, error.cause) ?? badOutput(source, error.description ?? "it is not as documented")
    case "UnknownError":
      return badOutput(source, error.description ?? "the client library gave no reason")
  }
}

/** Errors of the HTTP client before a response, or while its body is read. */
export const fromHttpClientError = (source: Source, error: HttpClientError.HttpClientError): ModelError.ModelError =>
  error._tag === "RequestError"
    ? fromRequest(source, error.reason, error.request.url, error.cause)
    : network(source, codeOf(error.cause) ?? incomplete)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The content of an error body of any shape. */
interface Report {
  readonly text: string | undefined
  /** Machine-readable names of the error: types, codes, statuses. */
  readonly codes: ReadonlyArray<string>
  readonly status: number | undefined
  /** Milliseconds. */
  readonly retryAfter: number | undefined
}

const nothing: Report = { text: undefined, codes: [], status: undefined, retryAfter: undefined }

// What may pass is asked for again by itself: its advice tells nobody to do that.
// Order matters: a wrong key may come as a 400, a conversation that is too long as a 500, an exhausted account as a 400,
// 403 or 429.
const classify = (source: Source, report: Report): ModelError.ModelError => {
  const { status } = report
  const text = report.text ?? ""
  const names = report.codes.join(" ")
  const fields = { model: source.model, ...(status === undefined ? {} : { status }) }
  const waited = { ...fields, ...(report.retryAfter === undefined ? {} : { retryAfter: report.retryAfter }) }
  const say = (what: string, advice: string) => ({ message: sentence(source, what, report, advice) })
  if (status === 402 || accountNames.test(names) || accountTexts.test(text)) {
    return new ModelError.Refused({
      ...fields,
      ...say("the account has no credit left", "Check its plan and billing.")
    })
  }
  if (status === 401 || status === 403 || keyNames.test(names) || keyTexts.test(text)) {
    const advice = source.credentials ?? "Check the API key and which models it may use."
    return new ModelError.Unauthorized({ ...fields, ...say("the provider did not accept the API key", advice) })
  }
  if (status === 429 || rateNames.test(names)) {
    return new ModelError.RateLimited({
      ...waited,
      ...say("too many requests", "Assent repeats the call after a while.")
    })
  }
  if (status === 413 || lengthNames.test(names) || lengthTexts.test(text)) {
    const advice = "Shorten the conversation, or use a model with a larger context."
    return new ModelError.ContextTooLong({ ...fields, ...say("the conversation is too long for the model", advice) })
  }
  if (status === 408 || (status !== undefined && status >= 500) || overloadNames.test(names)) {
    const advice = "That often passes; another model may answer meanwhile."
    return new ModelError.Overloaded({ ...waited, ...say("the provider cannot serve right now", advice) })
  }
  if (status !== undefined || refusalNames.test(names)) {
    const advice = "Check the model's name, the base URL and the request's parameters."
    return new ModelError.Refused({ ...fields, ...say("the provider refused the request", advice) })
  }
  return badOutput(source, text === "" ? "the provider reported an error without a message" : text)
}

const keyNames =
  /authentication_error|permission_error|permission_denied|invalid_api_key|api_key_invalid|unauthenticated/i
const keyTexts = /\bapi key (is )?(not valid|invalid|missing|expired)|\b(invalid|incorrect|missing) (x-)?api[- ]key/i
const accountNames =
  /insufficient_(quota|credits?|balance|funds)|billing_(error|hard_limit|not_active)|exceeded_current_quota/i
// Google says "check your plan and billing details" of a limit that passes in a minute, so these words decide nothing.
const accountTexts =
  /credit balance is too low|insufficient (account )?(balance|credits?|funds|quota)|(out of|requires more|used all( \w+)?|purchase( more)?) credits|credits? (are |is |have been |has been )?(depleted|exhausted|used up)|spending limit|billing hard limit|(requires?|enable) billing|billing to be enabled/i
const rateNames = /rate_limit|resource_exhausted|too_many_requests/i
const overloadNames = /overloaded|api_error|server_error|internal_error|unavailable|timeout|\binternal\b/i
const lengthNames = /context_length|exceed_context|request_too_large|string_above_max_length/i
const lengthTexts =
  /context[ _-]?(length|window|size|limit)|prompt is too long|prompt (contains|has) \d+ tokens.*too large|token count.*exceeds|maximum number of tokens|too many (input )?tokens|reduce the length of (the|your) (messages|prompt|input)/i
const refusalNames = /invalid_request|invalid_argument|not_found|invalid_prompt|content_filter|content_policy/i

const fromRequest = (source: Source, reason: string, url: string, cause: unknown): ModelError.ModelError => {
  if (reason !== "Transport") {
    return refused(source, reason === "InvalidUrl" ? "the base URL is not a URL" : "the request could not be encoded")
  }
  const proxy = ProxyFault.within(cause)
  if (proxy !== undefined) {
    const fields = { model: source.model, message: `${source.model}: ${proxy.message}` }
    const status = proxy.status === undefined ? {} : { status: proxy.status }
    return proxy.transient
      ? new ModelError.Network({ ...fields, ...status })
      : new ModelError.Unreachable({ ...fields, ...status })
  }
  const code = codeOf(cause)
  const text = [hostOf(url), code ?? "no connection"].join(": ")
  const nobody = nobodyThere.find(([pattern]) => pattern.test(code ?? ""))
  if (nobody === undefined) return network(source, text)
  const [, what, advice] = nobody
  return new ModelError.Unreachable({ model: source.model, message: sentence(source, what, { text }, advice) })
}

// Permanent failures, for which a retry is useless. `EAI_AGAIN` is not among them: the network may be coming up.
const nobodyThere: ReadonlyArray<readonly [code: RegExp, what: string, advice: string]> = [
  [/^ECONNREFUSED$/, "nothing listens there", "Start the server, or check the base URL."],
  [/^(ENOTFOUND|EAI_NONAME|EAI_NODATA)$/, "there is no such host", "Check the base URL and the name resolution."],
  [
    /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)|_CERT(IFICATE)?(_|$)/,
    "no secure connection could be made",
    "Check the base URL and the server's certificate."
  ],
  [/^BAD_PORT$/, "that port is not for web servers", "Check the base URL."],
  [/^HPE_/, "the server does not speak HTTP", "Check the base URL."]
]

/** A redirect is never followed: it would carry the key to another server. */
const redirected = (source: Source, { headers, status }: Response): ModelError.ModelError => {
  const to = headers.location
  // Only the host of the target: it is enough to find the right address.
  const text = to !== undefined && URL.canParse(to) ? `to ${new URL(to).host}` : undefined
  const shown = status === 0 ? undefined : status
  const advice = "Redirects are not followed. Set the base URL to where the API is."
  return new ModelError.Refused({
    model: source.model,
    message: sentence(source, "the server redirects", { text, status: shown }, advice),
    ...(shown === undefined ? {} : { status })
  })
}

// Only the host: a URL may hold credentials in its authority, path or query.
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : "unknown host")

// A system error's code says what happened; its message may quote the header or body it was about.
const codeOf = (cause: unknown): string | undefined => {
  let current = cause
  for (let depth = 0; depth < 5 && Predicate.isRecord(current); depth++) {
    if (current.message === "bad port") return "BAD_PORT"
    if (typeof current.code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(current.code)) return current.code
    current = current.cause
  }
  return undefined
}

/** `model: what (status: the provider's words). advice` */
const sentence = (source: Source, what: string, report: Partial<Report>, advice: string): string => {
  const masked = (source.redactor ?? Redaction.shapesOnly).text((report.text ?? "").replace(/\s+/g, " ").trim())
  const words = masked.length <= textLimit ? masked : `${masked.slice(0, textLimit - 1)}…`
  const status = report.status === undefined ? "" : String(report.status)
  // Its own full stop would stand before ours.
  const detail = [status, words.replace(/\.$/, "")].filter((part) => part !== "").join(": ")
  return `${source.model}: ${what}${detail === "" ? "" : ` (${detail})`}. ${advice}`
}

const textLimit = 500

/** JSON where it is JSON, else the text. */
const parsed = (body: string | undefined): unknown => {
  if (body === undefined || body === "undefined") return undefined
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

// Known shapes: {error:{message,type,code,status}}, {error:"…"}, {message,type,code}, {detail:"…"}, [{error}], and
// OpenRouter's {error:{message,metadata:{raw}}} where `raw` is the body of the provider behind it.
const reportOf = (value: unknown, depth = 0): Report => {
  // A web page, from a proxy, has no useful message.
  if (typeof value === "string") return /^\s*(<|$)/.test(value) ? nothing : { ...nothing, text: value }
  if (Array.isArray(value)) return depth < 3 ? reportOf(value[0], depth + 1) : nothing
  if (!Predicate.isRecord(value)) return nothing
  const { error } = value
  const inner = Predicate.isRecord(error) ? error : value
  const text = [error, inner.message, value.message, value.detail].find(
    (candidate): candidate is string => typeof candidate === "string" && candidate !== ""
  )
  const names = [inner.type, inner.code, inner.status, value.type].filter(Predicate.isString)
  const details = Array.isArray(inner.details) ? inner.details.filter(Predicate.isRecord) : []
  const status = [inner.code, inner.status, inner.status_code].find(isErrorStatus)
  const behind =
    depth < 3 && Predicate.isRecord(inner.metadata) && typeof inner.metadata.raw === "string"
      ? reportOf(parsed(inner.metadata.raw), depth + 1)
      : nothing
  return {
    text: behind.text === undefined ? text : [text, behind.text].filter(Predicate.isString).join(": "),
    codes: [...names, ...details.map((detail) => detail.reason).filter(Predicate.isString), ...behind.codes],
    status,
    retryAfter: details.map((detail) => secondsOf(detail.retryDelay)).find(Predicate.isNumber) ?? behind.retryAfter
  }
}

const isErrorStatus = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 400 && value < 600

/** `35s` or `0.5s`, as milliseconds. */
const secondsOf = (value: unknown): number | undefined => {
  const seconds = typeof value === "string" ? /^(\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
}

/** The wait that a response asks for. A date is compared with the response's own date, so our clock is not used. */
const waitOf = ({ headers }: Response): number | undefined => {
  const exact = headers["retry-after-ms"]
  if (exact !== undefined && /^\d+(\.\d+)?$/.test(exact)) return Math.ceil(Number(exact))
  const value = headers["retry-after"]
  if (value === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000)
  const wait = Date.parse(value) - Date.parse(headers.date ?? "")
  return Number.isFinite(wait) && wait >= 0 ? wait : undefined
}

// An error event whose type a client library does not know fails its decoding; the event is still in the issue.
const reportedWithin = (source: Source, cause: unknown): ModelError.ModelError | undefined => {
  if (!ParseResult.isParseError(cause)) return undefined
  const { actual } = cause.issue
  const events = Predicate.isIterable(actual) && typeof actual !== "string" ? Array.from(actual) : [actual]
  for (const event of events) {
    const value = typeof event === "string" ? parsed(event) : event
    if (Predicate.isRecord(value) && Predicate.isRecord(value.error)) return fromReported(source, value)
  }
  return undefined
}
