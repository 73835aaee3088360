/**
 * JSON messages of a server program, one a line: the three methods of a transport over any pair of pipes.
 *
 * The server is foreign. A line over 10 MB, a message that is nested too deep, and a flood of notifications end the
 * connection with a sentence. A line that is no JSON is skipped, because many programs print words of their own.
 */
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as UntrustedJson from "../core/UntrustedJson.js"

/** Writes to the server; the promise is fulfilled when the pipe took the text. */
export type Write = (text: string) => Promise<void>

export class LineTransport {
  onmessage?: (message: never) => void
  onclose?: () => void
  onerror?: (error: Error) => void
  /** Why the connection ended, as a sentence without its subject. */
  reason: string | undefined
  /** The server has sent a message of the protocol. */
  isHeard = false
  /** The first line that was no JSON. */
  noise: string | undefined
  private pieces: Array<Buffer> = []
  private pending = 0
  private isOpen = true
  private finish = (): void => undefined
  private readonly over = new Promise<void>((resolve) => (this.finish = resolve))
  private readonly flood: Flood

  constructor(
    now: () => number,
    private readonly write: Write,
    /** Runs once, when the connection ends from our side. */
    private readonly ended: () => void
  ) {
    this.flood = new Flood(now)
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  send(message: object): Promise<void> {
    if (!this.isOpen) return Promise.reject(new Error("The server is gone."))
    return this.write(`${JSON.stringify(message)}\n`).catch((error: unknown) => this.broken(error))
  }

  /** The pipe of a program that ends breaks before its exit is known, and the exit is the better reason. */
  private broken(error: unknown): Promise<never> {
    const waited = new Promise<void>((resolve) => setTimeout(resolve, patience).unref())
    return Promise.race([this.over, waited]).then(() => Promise.reject(error))
  }

  close(): Promise<void> {
    this.end("was closed")
    return Promise.resolve()
  }

  /** Ends the connection. Later reasons do not count. */
  end(reason: string): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.reason ??= reason
    this.pieces = []
    this.finish()
    this.ended()
    this.onclose?.()
  }

  /** Takes what the server printed. */
  push(bytes: Uint8Array): void {
    let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let end = rest.indexOf(newline); end >= 0 && this.isOpen; end = rest.indexOf(newline)) {
      const line = Buffer.concat([...this.pieces, rest.subarray(0, end)]).toString("utf8")
      this.pieces = []
      this.pending = 0
      rest = rest.subarray(end + 1)
      this.take(line)
    }
    if (!this.isOpen || rest.length === 0) return
    this.pending += rest.length
    if (this.pending > maxLine) return this.end(`sent a line of more than ${maxLine / 1_000_000} MB`)
    // A copy: the rest is a part of a larger buffer that would stay in memory.
    this.pieces.push(Buffer.from(rest))
  }

  private take(line: string): void {
    if (line.trim() === "") return
    if (line.length > maxLine) return this.end(`sent a line of more than ${maxLine / 1_000_000} MB`)
    const parsed = UntrustedJson.parse(line, { size: maxLine })
    if (Either.isLeft(parsed)) {
      if (parsed.left.reason !== "syntax") return this.end(`sent a message that ${parsed.left.message}`)
      this.noise ??= UntrustedJson.echo(line)
      return
    }
    const message = parsed.right
    if (!Predicate.isRecord(message) || message["jsonrpc"] !== "2.0") {
      this.noise ??= UntrustedJson.echo(line)
      return
    }
    this.isHeard = true
    if (line.includes("__proto__") && UntrustedJson.refusal(message, { isCopied: true }) !== undefined) {
      return this.end("sent a message with a member named __proto__")
    }
    const problem = this.flood.refusal(message)
    if (problem !== undefined) return this.end(problem)
    // The client of the protocol checks the rest of the message.
    this.onmessage?.((isBroken(message) ? { jsonrpc: "2.0", id: message["id"], error: broken } : message) as never)
  }
}

/** Counts what nobody asked for. */
class Flood {
  private from = 0
  private count = 0

  constructor(private readonly now: () => number) {}

  /** Why the connection has to end. */
  refusal(message: { readonly [key: string]: unknown }): string | undefined {
    if (message["method"] === undefined) return undefined
    const now = this.now()
    if (now - this.from > window) {
      this.from = now
      this.count = 0
    }
    return ++this.count > most
      ? `sent more than ${most} messages in ${window / 1_000} seconds that nobody asked for`
      : undefined
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const newline = 0x0a

/** An answer without a result and without an error of the protocol: the client would wait on for another one. */
const isBroken = ({ error, id, method, result }: { readonly [key: string]: unknown }): boolean =>
  method === undefined &&
  id !== undefined &&
  !(error === undefined
    ? Predicate.isRecord(result)
    : result === undefined &&
      Predicate.isRecord(error) &&
      Number.isInteger(error["code"]) &&
      typeof error["message"] === "string")

const broken = { code: -32_603, message: "The server's answer is none of the protocol." }

/** Milliseconds. */
const patience = 1_000

/** Bytes. */
const maxLine = 10_000_000

/** Requests and notifications of a server in so many milliseconds. */
const most = 10_000
const window = 10_000
