/**
 * Events of the server by `fetch`, which can send the token. `EventSource` cannot.
 *
 * ```
 *   connecting ─► open ──ends, fails, is silent for 40 s──► lost ──0.5 s, 1 s, … 8 s──► connecting
 *                                                            with the id of the last event that came
 * ```
 */
import type { AgentEvent } from "../event/AgentEvent.js"

/** An event of a session, with the session of its tree's root if the stream is of all sessions. */
export type LiveEvent = AgentEvent & { readonly rootSessionId?: string }

/** One piece of the stream. */
export type Piece = { readonly id: string | undefined } & (
  | { readonly event: "message"; readonly data: LiveEvent }
  /** All that is there now: the client knows nothing that still counts. */
  | { readonly event: "snapshot"; readonly data: { readonly cursor: string } }
  | { readonly event: "failed" | "goodbye" | "unauthorized"; readonly data: { readonly message: string } }
)

export interface Options {
  readonly path: string
  readonly token: string
  /** The pieces that came together, in order. */
  readonly take: (pieces: ReadonlyArray<Piece>) => void
  readonly state: (state: "open" | "lost") => void
  /** The server refuses the stream for good. */
  readonly refused: (status: number, message: string) => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Follows until the returned function is called. */
export const follow = ({ path, refused, state, take, token }: Options): (() => void) => {
  let last = ""
  let attempt = 0
  let isEnded = false
  let current = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined

  const connect = async (): Promise<void> => {
    timer = undefined
    current = new AbortController()
    const { signal } = current
    let watch: ReturnType<typeof setTimeout> | undefined
    const within = (limit: number) => {
      clearTimeout(watch)
      watch = setTimeout(() => current.abort(), limit)
    }
    try {
      within(patience)
      const response = await fetch(`/v1${path}`, {
        signal,
        headers: { authorization: `Bearer ${token}`, ...(last === "" ? {} : { "last-event-id": last }) }
      })
      if (response.status === 401 || response.status === 404) {
        const { message } = await response.json()
        isEnded = true
        refused(response.status, String(message))
        return
      }
      if (!response.ok || response.body === null) throw new Error("no stream")
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      const parse = parser()
      let isOpen = false
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        within(silence)
        if (!isOpen) state("open")
        isOpen = true
        attempt = 0
        const pieces = parse(value)
        for (const { id } of pieces) last = id ?? last
        if (pieces.length > 0) take(pieces)
      }
    } catch {
      // It is lost, and begins again below.
    } finally {
      clearTimeout(watch)
    }
    if (isEnded) return
    state("lost")
    timer = setTimeout(connect, Math.min(8_000, 500 * 2 ** attempt++))
  }

  /** The network or the person is back: no waiting. */
  const hurry = () => {
    if (timer === undefined || isEnded || document.hidden) return
    clearTimeout(timer)
    void connect()
  }
  addEventListener("online", hurry)
  document.addEventListener("visibilitychange", hurry)
  void connect()
  return () => {
    isEnded = true
    clearTimeout(timer)
    removeEventListener("online", hurry)
    document.removeEventListener("visibilitychange", hurry)
    current.abort()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A server that accepts and says nothing is asked again. In milliseconds. */
const patience = 10_000

/** The server says something at least every 15 seconds. In milliseconds. */
const silence = 40_000

/** Text in, whole pieces out. */
const parser = () => {
  let rest = ""
  return (text: string): ReadonlyArray<Piece> => {
    const blocks = (rest + text).split("\n\n")
    rest = blocks.pop() ?? ""
    return blocks.flatMap((block): ReadonlyArray<Piece> => {
      let id: string | undefined
      let event = "message"
      let data: string | undefined
      for (const line of block.split("\n")) {
        const at = line.indexOf(": ")
        const value = line.slice(at + 2)
        if (line.startsWith("id")) id = value
        else if (line.startsWith("event")) event = value
        else if (line.startsWith("data")) data = value
      }
      // The server says what it sends.
      return data === undefined ? [] : [{ id, event, data: JSON.parse(data) } as Piece]
    })
  }
}
